/* The options of a data set, and opening what a verb works on. */
#ifndef CLI_DATA_OPTIONS_H
#define CLI_DATA_OPTIONS_H

#include "cli.h"

typedef struct cli_data {
    const char *path, *format; /* NULL: not given */
    const char *labels;        /* --labels: a map, or with labels_shared the classes of the model, which have no '=' */
    int labels_shared;         /* the verb has a model too: cli_share_labels */
    uint64_t limit;
    safer_data_options options;
} cli_data;

cli_data cli_data_default(void);
void cli_data_options(cli_options *options, cli_data *d);
void cli_column_options(cli_options *options, safer_data_options *o); /* which columns are which; among those above */

/* Loads it; `random:N` uses the seed. cli_data_load says why not and exits. */
safer_status cli_data_try(safer_data **out, cli_data *d, uint64_t seed, safer_error *error);
safer_data *cli_data_load(cli_data *d, uint64_t seed);

/* The same for who reads a row when its turn comes: texts of a plain file stay on the disk. */
safer_data *cli_data_open(cli_data *d, uint64_t seed);

/* Another file beside `d`, read in the same way (not sampled, of any format), with the labels of `labels_of`. */
cli_data cli_data_beside(const cli_data *d, const char *path, const safer_data *labels_of);

safer_lexicon *cli_lexicon_open(const char *path); /* or exits */

/* Says on stderr when the lexicon does not fit the texts, and returns it (static), else ""; `results` when results
 * follow, which say some of it. */
const char *cli_fit_say(const safer_lexicon *lexicon, const safer_data *data, int results);

/* As safer_lexicon_describe, or exits: that says nothing of components when memory is out. */
safer_lexicon_info cli_lexicon_info(const safer_lexicon *lexicon);

#endif
