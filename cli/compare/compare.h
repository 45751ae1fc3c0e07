/* The parts of safer compare: the configuration, the folder, the study, the tables. safer sweep uses the first
 * three too. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "attack_options.h"
#include "certify_options.h"
#include "crew.h"
#include "data_options.h"
#include "lexicon_options.h"
#include "model_options.h"
#include "train_options.h"

enum { CMP_ATTACKS = 16, CMP_CELLS = 1000 };

/* ----------------------------------------------------------- configuration */

/* One defence of one model on one data set, and what came out. */
typedef struct cmp_cell {
    const char *data, *model, *defense;
    const char *attacks[CMP_ATTACKS];
    size_t attack_count;
    char name[256]; /* what its files begin with */

    safer_error error;                /* status SAFER_OK: all went well */
    safer_run *certified;             /* NULL: nothing was certified */
    safer_run *attacked[CMP_ATTACKS]; /* as in `attacks` */
    double train_seconds, certify_seconds, attack_seconds[CMP_ATTACKS];
} cmp_cell;

/* A configuration file, read and checked as far as that goes without its inputs. */
typedef struct cmp_config {
    const char *path;
    char *folder; /* its folder, with a slash, or "" */
    json_t *root;
    json_t *kept; /* strings that were made from it */
    const char *title;
    uint64_t seed;
    size_t radius;
    cmp_cell *cells;
    size_t cell_count;
} cmp_config;

safer_status cmp_config_read(cmp_config *out, const char *path, safer_error *error);
/* One that a program made: paths in it are as they are, `name` stands for the file in messages. Takes `root` over. */
safer_status cmp_config_take(cmp_config *out, const char *name, json_t *root, safer_error *error);
void cmp_config_free(cmp_config *config); /* with the results of its cells */

/* A data set: texts to learn from and to ask about, and the synonyms of their words. */
typedef struct cmp_corpus {
    cli_data train, dev, test; /* path NULL: none */
    const char *lexicon;       /* a ready one; else: */
    cli_lexicon_flags build;
    int imports;
} cmp_corpus;

/* What a cell asks for. */
typedef struct cmp_setup {
    int is_ready; /* the model is there; else it is trained */
    cli_model_flags model;
    cli_train_flags training;
    const char *kernel; /* NULL: nothing is smoothed */
    int certifies;
    safer_certify_options certify;
} cmp_setup;

typedef struct cmp_attack {
    int has_own_texts;
    cli_data data; /* those */
    safer_attack_options options;
} cmp_attack;

/* The parts as options. `given`, when not NULL, gets a new object with what was given, where the
 * hash of a file stands for its name: two that are equal ask for the same. */
safer_status cmp_corpus_read(cmp_corpus *out, cmp_config *config, const char *data, json_t **given, safer_error *error);
safer_status cmp_setup_read(cmp_setup *out, cmp_config *config, const cmp_cell *cell, json_t **given,
                            safer_error *error);
safer_status cmp_attack_read(cmp_attack *out, cmp_config *config, const char *data, const char *attack,
                             safer_error *error);
void cmp_corpus_free(cmp_corpus *corpus);

/* A name as part of a file's name. */
void cmp_file_name(char *out, size_t size, const char *name);

/* -------------------------------------------------------------- the folder */

/* Where everything goes. made.json in it says of every file what it was made with: a file is
 * used again when that is what is asked for, and refused when it is not. */
typedef struct cmp_folder {
    const char *path;
    int lock;
    json_t *made;
} cmp_folder;

safer_status cmp_folder_open(cmp_folder *out, const char *path, safer_error *error);
void cmp_folder_close(cmp_folder *folder);

/* The path of a file in it. */
void cmp_folder_file(char *out, size_t size, const cmp_folder *folder, const char *file);

/* Before a file is made: whether it is done already. `with` is borrowed. */
safer_status cmp_folder_begin(cmp_folder *folder, const char *file, const json_t *with, int *done, safer_error *error);
/* After so many seconds of work on it. */
safer_status cmp_folder_end(cmp_folder *folder, const char *file, double seconds, int done, safer_error *error);

/* A finished file that was made with this, or NULL; and the seconds that a file took. */
const char *cmp_folder_find(const cmp_folder *folder, const json_t *with);
double cmp_folder_seconds(const cmp_folder *folder, const char *file);

/* Removes the checkpoint of a model that is finished, if there is one. */
void cmp_folder_drop_checkpoint(const cmp_folder *folder, const char *file);

/* --------------------------------------------------------------- the study */

/* Does all that a configuration asks for in a folder, but for what is done there already. A cell that fails
 * is complained about, its error is kept in it, and the others go on, unless `all` says that they are of no use
 * then. Returns an exit code: that of the first failure. */
int cmp_study_run(cmp_config *config, cmp_folder *folder, int all, safer_crew *crew);

/* With a crew (NULL: none) rank 0 does this; it makes lexicons and models alone, and shares certificates and attacks.
 * Before each it tells the helpers, who do this until all is done: */
int cmp_help(cmp_config *config, safer_crew *crew);

/* What rank 0 tells: JSON. */
#define CMP_STEP_SIZE 65536

/* -------------------------------------------------------------- the tables */

/* All pairs of the cells that can be compared: of one data set, by certificates or by one attack. */
typedef struct cmp_pair {
    const cmp_cell *first, *second;
    const char *attack; /* NULL: certificates */
    safer_comparison result;
} cmp_pair;

typedef struct cmp_pairs {
    cmp_pair *items;
    size_t count;
} cmp_pairs;

safer_status cmp_pairs_make(cmp_pairs *out, const cmp_config *config, safer_error *error);

void cmp_print(const cmp_config *config, const cmp_pairs *pairs);
json_t *cmp_json(const cmp_config *config, const cmp_pairs *pairs, const char *folder);
safer_status cmp_write_markdown(const char *path, const cmp_config *config, const cmp_pairs *pairs, safer_error *error);
/* cells.csv and pairs.csv in a folder, made when missing. */
safer_status cmp_write_csv(const char *folder, const cmp_config *config, const cmp_pairs *pairs, safer_error *error);

#endif
