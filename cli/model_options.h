/* The options of a model, of a remote one too, and opening it. */
#ifndef CLI_MODEL_OPTIONS_H
#define CLI_MODEL_OPTIONS_H

#include "cli.h"
#include "data_options.h"

typedef struct cli_model_flags {
    const char *const *shared_labels;                                  /* cli_share_labels; NULL: `labels` */
    const char *path, *arithmetic, *device, *labels, *cache, *profile; /* NULL: not given */
    int asked_once; /* the verb asks about every text once: no options for what asks again */
    uint64_t request_texts;
    safer_remote_options remote;
} cli_model_flags;

cli_model_flags cli_model_default(void);
void cli_model_options(cli_options *options, cli_model_flags *m);
void cli_remote_options(cli_options *options, cli_model_flags *m);    /* with a heading */
void cli_model_name_option(cli_options *options, cli_model_flags *m); /* behind those, for verbs with records */

/* Exits when records of a remote model are to be written, and it has no name. */
void cli_model_need_name(const cli_model_flags *m, const cli_verb *verb);

/* In a verb that has a model and data, --labels is one option: classes of the model, or a map of the data's labels. To
 * be called before the options of both are listed. */
void cli_share_labels(cli_model_flags *m, cli_data *d);

/* Exits when a remote model is to be shared (--mpi), and its labels are not given: only rank 0 reads the data. */
void cli_model_need_labels(const cli_model_flags *m, const cli_verb *verb);

/* Whether only its answers are known: then what is exact assumes that they are a function of the text. */
int cli_model_is_remote(const safer_model *model);

/* "bf16", "f32": what training takes. */
const char *cli_precisions(size_t number);

/* Opens it, with the data's labels when none are given (data may be NULL). cli_model_open says why not
 * and exits. */
safer_status cli_model_try(safer_model **out, cli_model_flags *m, const safer_data *data, safer_error *error);
safer_model *cli_model_open(cli_model_flags *m, const cli_verb *verb, const safer_data *data);

int cli_is_remote(const char *path); /* exec:COMMAND or an http address */

/* What a remote model was asked, for --json (NULL for any other) and as a line. */
json_t *cli_traffic_json(const safer_model *model);
void cli_traffic_print(const safer_model *model, int width); /* of its first column */

/* A note when the model was trained with another lexicon, kernel or chance to be deleted. */
void cli_note_training(const safer_model *model, const safer_lexicon *lexicon, safer_deletion deletion);

#endif
