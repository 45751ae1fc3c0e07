/* Requirements on a run: their options, what came of them, and which certificates were lost. */
#ifndef CLI_GATES_H
#define CLI_GATES_H

#include "cli.h"

typedef struct cli_gates {
    double require;             /* NaN: nothing */
    cli_list recall_words;      /* LABEL=X each */
    const char *not_worse_than; /* NULL: nothing */
    safer_recall *recalls;      /* (recall_words.count), after cli_gates_finish */
} cli_gates;

cli_gates cli_gates_default(void);
void cli_gates_options(cli_options *options, cli_gates *gates);

/* Reads and checks what was given, or says what is wrong and exits; then, once the model is open, that it has
 * the labels. */
void cli_gates_finish(cli_gates *gates, const cli_verb *verb);
void cli_gates_check_labels(const cli_gates *gates, const safer_model *model, const cli_verb *verb);
const char *cli_gates_given(const cli_gates *gates); /* the first option that was given, "--require"; NULL: none */
void cli_gates_free(cli_gates *gates);

/* What came of them. Begins as zeros. */
typedef struct cli_verdict {
    safer_gate *gates;
    size_t count;
    safer_run *run, *baseline; /* whose texts are compared; NULL: none are */
} cli_verdict;

/* Room for all gates. */
void cli_verdict_reserve(cli_verdict *verdict, const cli_gates *gates);

/* Judges a run by its totals and, where there is a baseline, by its records at `output`. */
safer_status cli_verdict_reach(cli_verdict *verdict, const cli_gates *gates, const safer_summary *summary,
                               const char *output, safer_error *error);

/* Adds "gates" and, where runs are compared, "lost" and "gained" to a result. */
void cli_verdict_add_json(json_t *result, const cli_verdict *verdict);

/* The requirements that are met, and some of the texts that were lost. */
void cli_verdict_print(const cli_verdict *verdict);

/* A line on stderr for each that is not met; CLI_UNMET then, else CLI_DONE. */
int cli_verdict_code(const cli_verdict *verdict);
void cli_verdict_free(cli_verdict *verdict);

#endif
