/* The large files a lexicon is made from, loaded side by side: loading is mostly
 * decompression, which one core does for one file. */
#ifndef SF_LEXICON_INPUTS_H
#define SF_LEXICON_INPUTS_H

#include "base/file.h"
#include "safer.h"

typedef struct sf_inputs {
    sf_file vectors;   /* unpacked; all zero when there is no vector file */
    safer_data **sets; /* the data of vocab_from */
    size_t set_count;
} sf_inputs;

safer_status sf_inputs_load(sf_inputs *out, const safer_lexicon_options *options, safer_error *error);
void sf_inputs_free(sf_inputs *inputs);

/* The data sets alone: they are large, and used up first. */
void sf_inputs_free_sets(sf_inputs *inputs);

#endif
