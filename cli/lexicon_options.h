/* The options of making a lexicon: by `lexicon build`, or by `lexicon import`. */
#ifndef CLI_LEXICON_OPTIONS_H
#define CLI_LEXICON_OPTIONS_H

#include "cli.h"

typedef struct cli_lexicon_flags {
    cli_list vocab_from, synonyms, antonyms, protect;
    const char *metric; /* NULL: not given */
    uint64_t min_count; /* UINT64_MAX, or as asked */
    int counterfit;     /* -1, or as asked */
    uint64_t max_component, nearest;
    int building;               /* not importing */
    safer_data_options columns; /* of vocab_from */
    safer_lexicon_options options;
} cli_lexicon_flags;

cli_lexicon_flags cli_lexicon_default(void);
void cli_lexicon_flags_free(cli_lexicon_flags *a);

/* With headings; the last one is for the kernel. */
void cli_build_options(cli_options *options, cli_lexicon_flags *a);
void cli_import_options(cli_options *options, cli_lexicon_flags *a);
void cli_kernel_option(cli_options *options, cli_lexicon_flags *a);
void cli_fold_option(cli_options *options, cli_lexicon_flags *a);

/* Turns the flags into options, or says what is wrong with them. */
safer_status cli_lexicon_finish(cli_lexicon_flags *a, safer_error *error);

#endif
