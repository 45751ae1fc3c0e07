/* What the verbs of the command line share. The program uses the library through
 * safer.h alone. */
#ifndef CLI_H
#define CLI_H

#include "safer.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum cli_exit {
    CLI_DONE = 0,
    CLI_UNMET = 1,        /* a stated requirement was not met */
    CLI_USAGE = 2,        /* the command line is wrong */
    CLI_INPUT = 3,        /* a file does not hold what it should */
    CLI_SYSTEM = 4,       /* the machine failed us: disk, memory, permissions */
    CLI_INTERRUPTED = 130 /* Ctrl-C */
};

/* ----------------------------------------------------------------- options */

typedef enum cli_kind {
    CLI_FLAG,   /* int *: set to 1 */
    CLI_STRING, /* const char ** */
    CLI_PATH,   /* const char **: a file or folder that is read */
    CLI_LIST,   /* cli_list *: such paths; may be given several times */
    CLI_INT,    /* int *: not negative */
    CLI_UINT,   /* uint64_t * */
    CLI_REAL,   /* double * */
    CLI_VALUE,  /* json_t **, borrowed: any value; in configurations only */
    CLI_HEADING /* a line in the help, nothing else */
} cli_kind;

typedef struct cli_list {
    const char **items;
    size_t count;
} cli_list;

typedef struct cli_option {
    const char *name; /* "threshold" for --threshold */
    cli_kind kind;
    void *target;
    const char *value; /* how the help names the value */
    const char *help;  /* with the default */
} cli_option;

typedef struct cli_verb {
    const char *name;                    /* "lexicon build" */
    const char *usage;                   /* what follows the name */
    const char *summary;                 /* one or two sentences */
    const char *examples;                /* two or more, one a line */
    size_t min_arguments, max_arguments; /* positional */
} cli_verb;

/* Reads the command line into the targets; prints help and exits on --help; prints one
 * line and exits on misuse. Positional arguments are moved to the front of argv and
 * their number is returned. Every verb also takes --json, --quiet and --threads. */
size_t cli_parse(int argc, char **argv, const cli_verb *verb, const cli_option *options);

/* The option of a name, or NULL; and the one that was likely meant where there is none, or NULL. */
const cli_option *cli_option_named(const cli_option *options, const char *name, size_t length);
const char *cli_option_nearest(const cli_option *options, const char *typed, size_t length);

void cli_list_add(cli_list *list, const char *item); /* which is borrowed */

/* Letters to change to get from what was typed to a name, for "did you mean"; SIZE_MAX
 * when it is too far off to have been meant. */
size_t cli_distance(const char *typed, size_t length, const char *name);

/* The options that every verb has, after cli_parse. */
typedef struct cli_common {
    int json, quiet, threads;
} cli_common;
const cli_common *cli_settings(void);

/* ---------------------------------------------------------------- messages */

/* "safer: message" on stderr, one line whatever it quotes. cli_say is for notes, which
 * --quiet silences; cli_fail returns the exit code that the status means, as cli_code does; cli_misuse
 * also says which help to read (of the program itself when the verb is NULL). */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_fail(const safer_error *error);
int cli_code(safer_status status);
_Noreturn void cli_misuse(const cli_verb *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Call last: CLI_SYSTEM, with a message, when what was printed on stdout did not
 * arrive (a full disk), else `code`. */
int cli_finish(int code);

/* A progress line on stderr, when that is a terminal and --quiet was not given; notices
 * Ctrl-C in any case. */
const safer_progress *cli_progress(void);
void cli_progress_clear(void);

double cli_now(void); /* seconds, of a clock that is never set */

/* ------------------------------------------------------------------ output */

/* Emphasis on stdout, empty when it is not a terminal or NO_COLOR is set. */
const char *cli_bold(void);
const char *cli_dim(void);
const char *cli_red(void);
const char *cli_green(void);
const char *cli_plain(void);

/* A whole number with thousands separated: "44,593". Static, 8 at a time. */
const char *cli_count(uint64_t n);

/* x cut (not rounded up) to so many decimals. Static, 8 at a time. */
const char *cli_cut(double x, int decimals);

/* part/whole in per cent, two decimals, cut. Static, 8 at a time. */
const char *cli_percent(size_t part, size_t whole);

/* Fills in an error of this program's own and returns its status. */
safer_status cli_error(safer_error *error, safer_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes a file whole or not at all. */
safer_status cli_write_file(const char *path, const char *bytes, size_t length, safer_error *error);

safer_status cli_make_folder(const char *path, safer_error *error); /* one that is there is fine */

/* Prints a JSON value and a newline on stdout, and releases it. */
void cli_print_json(json_t *value);

/* ------------------------------------------------------- what verbs share */

/* How a data set is read; CLI_DATA_OPTIONS goes into a verb's table. */
typedef struct cli_data {
    const char *path, *format;
    uint64_t limit, seed;
    safer_data_options options;
} cli_data;

cli_data cli_data_default(void);

#define CLI_DATA_OPTIONS(d) \
    {"data", CLI_PATH, &(d).path, "DATA", "the texts: TSV, CSV, JSONL, fastText or a folder, also compressed"}, \
        {"format", CLI_STRING, &(d).format, "NAME", \
         "tsv, csv, jsonl, fasttext or folder (default: told by the file)"}, \
        {"sample", CLI_STRING, &(d).options.sample, "HOW", "every:N of each class, or random:N"}, \
        {"limit", CLI_UINT, &(d).limit, "N", "only the first N texts"}, \
        {"repair", CLI_FLAG, &(d).options.repair, NULL, "replace invalid UTF-8 instead of refusing it"}, \
    { \
        "strip-br", CLI_FLAG, &(d).options.strip_breaks, NULL, "turn <br /> into a space, as folders always do" \
    }

/* Loads it, or says why not and exits. `random:N` uses the seed. */
safer_data *cli_data_load(cli_data *d, uint64_t seed);

safer_lexicon *cli_lexicon_open(const char *path); /* or exits */

/* The model of a verb; CLI_MODEL_OPTIONS goes into its table. */
typedef struct cli_model_flags {
    const char *path, *precision, *labels, *cache, *profile;
    uint64_t request_texts;
    safer_remote_options remote;
} cli_model_flags;

cli_model_flags cli_model_default(void);

#define CLI_MODEL_OPTIONS(m) \
    {"model", CLI_PATH, &(m).path, "MODEL", \
     "a model file, a sum (JSON), a HuggingFace folder, exec:COMMAND, http address"}, \
    { \
        "precision", CLI_STRING, &(m).precision, "TYPE", \
            "charcnn, bert, sums of them: products in bf16 or f32 (default bf16)" \
    }

#define CLI_REMOTE_OPTIONS(m) \
    {NULL, CLI_HEADING, NULL, NULL, "Models that live elsewhere (exec, http)"}, \
        {"labels", CLI_STRING, &(m).labels, "LIST", "names of the classes, as neg,pos (default: the data's)"}, \
        {"workers", CLI_INT, &(m).remote.workers, "N", "exec: processes (default: one a core)"}, \
        {"concurrency", CLI_INT, &(m).remote.concurrency, "N", "http: requests at a time (default 8)"}, \
        {"request-texts", CLI_UINT, &(m).request_texts, "N", \
         "texts of a request, at most (default: exec 64, http 32)"}, \
        {"timeout", CLI_REAL, &(m).remote.timeout, "S", "seconds that a request may take (default 60)"}, \
        {"retries", CLI_INT, &(m).remote.retries, "N", "of a request that got lost (default 5)"}, \
        {"cache", CLI_STRING, &(m).cache, "HOW", "on: ask identical texts once; off (default: on for http)"}, \
        {"random", CLI_FLAG, &(m).remote.random, NULL, "it may answer the same text differently: sampling only"}, \
        {"profile", CLI_STRING, &(m).profile, "NAME", "http: json, kserve, tei or openai (default json)"}, \
        {"request", CLI_STRING, &(m).remote.request, "BODY", \
         "json: the body, with {{texts}} or {{text}}; openai: the prompt"}, \
        {"answer", CLI_STRING, &(m).remote.answer, "POINTER", "json: where labels or scores are, as /result/labels"}, \
        {"name", CLI_STRING, &(m).remote.name, "NAME", "kserve: the input's name; openai: the model's"}, \
    { \
        "token-env", CLI_STRING, &(m).remote.token, "VAR", "http: the environment variable with a bearer token" \
    }

/* Opens it, with the data's labels when none are given (data may be NULL); cli_model_open or
 * exits. */
safer_status cli_model_try(safer_model **out, cli_model_flags *m, const safer_data *data, safer_error *error);
safer_model *cli_model_open(cli_model_flags *m, const cli_verb *verb, const safer_data *data);

int cli_is_remote(const char *path); /* exec:COMMAND or an http address */

/* What a remote model was asked, for --json (NULL: it is none) and as a line. */
json_t *cli_traffic_json(const safer_model *model);
void cli_traffic_print(const safer_model *model);

/* The options of a certificate; CLI_CERTIFY_OPTIONS goes into a verb's table. */
typedef struct cli_certify_flags {
    const char *method, *radius;
    uint64_t batch;
    safer_certify_options options;
} cli_certify_flags;

cli_certify_flags cli_certify_default(void);

#define CLI_CERTIFY_OPTIONS(c) \
    CLI_TEST_OPTIONS(c), \
        {"radius", CLI_STRING, &(c).radius, "R", "words the attacker may change: a number or all (default all)"}, \
        {"seed", CLI_UINT, &(c).options.seed, "N", "of the random draws (default 1)"}, \
    { \
        "batch", CLI_UINT, &(c).batch, "N", "draws asked at once (default 256); results do not depend on it" \
    }

#define CLI_TEST_OPTIONS(c) \
    {"method", CLI_STRING, &(c).method, "NAME", "adaptive, binomial, hoeffding or ibp (default adaptive)"}, \
        {"n", CLI_UINT, &(c).options.n, "N", "samples of a certificate; adaptive: at most (default 5000)"}, \
        {"n0", CLI_UINT, &(c).options.n0, "N", "separate samples that choose the prediction (default 100)"}, \
        {"delta", CLI_REAL, &(c).options.delta, "D", "error probability of a certificate (default 0.01)"}, \
    { \
        "alpha", CLI_REAL, &(c).options.alpha, "A", "level at which a prediction must be clear (default 0.001)" \
    }

/* How models are trained; CLI_TRAIN_OPTIONS goes into a verb's table. cli_train_finish reads the names
 * of choices into the options. */
typedef struct cli_train_flags {
    const char *arch, *pool, *precision, *defense, *size, *layers; /* NULL: not given */
    safer_train_options options;
} cli_train_flags;

cli_train_flags cli_train_default(void);
safer_status cli_train_finish(cli_train_flags *t, safer_error *error);

#define CLI_TRAIN_OPTIONS(t) \
    {NULL, CLI_HEADING, NULL, NULL, "ngram"}, \
        {"ngrams", CLI_INT, &(t).options.ngram.order, "N", "longest n-gram (default 3)"}, \
        {"bits", CLI_INT, &(t).options.ngram.bits, "B", "2^B hashed features (default 22)"}, \
        {NULL, CLI_HEADING, NULL, NULL, "bow, cnn, charcnn and bert; defaults in this order"}, \
        {"dropout", CLI_REAL, &(t).options.course.dropout, "P", "share of units dropped (0.2, 0.2, 0.5, 0.1)"}, \
        {"rate", CLI_REAL, &(t).options.course.rate, "R", \
         "learning rate of Adam (0.001; charcnn 0.002; bert 0.00006, its head alone 0.001)"}, \
        {"decay", CLI_REAL, &(t).options.course.decay, "W", "weight decay (0.0001, 0.0001, 0.1, 0.01)"}, \
        {"clip", CLI_REAL, &(t).options.course.clip, "C", \
         "charcnn, bert: the gradient's length at most, 0 for any (1)"}, \
        {"warmup", CLI_REAL, &(t).options.course.warmup, "S", \
         "charcnn, bert: share of steps in which the rate rises, then it falls (0.1)"}, \
        {"batch", CLI_INT, &(t).options.course.batch, "N", "texts a step (32, 32, 128, 32)"}, \
        {"epochs", CLI_INT, &(t).options.course.epochs, "N", "at most (10, 10, 30, 3)"}, \
        {"patience", CLI_INT, &(t).options.course.patience, "N", \
         "epochs without a better dev accuracy before stopping (3, 3, never, never; 0: never)"}, \
        {"pool", CLI_STRING, &(t).pool, "HOW", \
         "bow, cnn: mean or max over the words (mean); bert: mean or cls (the encoder's)"}, \
        {"precision", CLI_STRING, &(t).precision, "TYPE", "charcnn, bert: products in bf16 or f32 (bf16)"}, \
        {NULL, CLI_HEADING, NULL, NULL, "bow and cnn"}, \
        {"vectors", CLI_PATH, &(t).options.cnn.vectors, "FILE", "pretrained word vectors to start from"}, \
        {"dim", CLI_INT, &(t).options.cnn.dim, "D", "length of learned word vectors (default 100)"}, \
        {"widths", CLI_STRING, &(t).options.cnn.widths, "LIST", "cnn: filter widths, as 3 or 3,4,5 (default 3)"}, \
        {"filters", CLI_INT, &(t).options.cnn.filters, "N", "cnn: filters of each width (default 100)"}, \
        {"hidden", CLI_INT, &(t).options.cnn.hidden, "N", "units before the output, 0 for none (default 100)"}, \
        {"max-words", CLI_INT, &(t).options.cnn.max_words, "N", \
         "read only the first N words of a text (default 0: all)"}, \
        {"min-count", CLI_INT, &(t).options.cnn.min_count, "N", "words seen less often are unknown (default 2)"}, \
        {"freeze", CLI_FLAG, &(t).options.cnn.freeze, NULL, "do not train the word vectors"}, \
        {NULL, CLI_HEADING, NULL, NULL, "charcnn"}, \
        {"characters", CLI_INT, &(t).options.charcnn.characters, "N", "read of a text (default 1014)"}, \
        {"size", CLI_STRING, &(t).size, "SIZE", "small or large (default small)"}, \
        {NULL, CLI_HEADING, NULL, NULL, "bert"}, \
        {"encoder", CLI_PATH, &(t).options.bert.encoder, "MODEL", \
         "what to start from: a converted encoder, a HuggingFace directory, a trained model"}, \
        {"train-layers", CLI_STRING, &(t).layers, "N|all", \
         "train so many layers from the top (default 0: the head alone)"}, \
    { \
        "tokens", CLI_INT, &(t).options.bert.tokens, "N", \
            "word pieces read of a text (default: what the encoder takes, at most 512)" \
    }

/* Training by interval bounds. */
#define CLI_DEFENSE_OPTIONS(t) \
    {NULL, CLI_HEADING, NULL, NULL, "bow and cnn, trained by interval bounds"}, \
        {"defense", CLI_STRING, &(t).defense, "NAME", \
         "ibp-jia or ibp-huang: 60 epochs, clip 0.25; exact: bow without a hidden layer, 12 epochs, rate 2"}, \
        {"kappa", CLI_REAL, &(t).options.defense.kappa, "K", \
         "weight of the worst case in the loss, in the end (default 0.8; exact 1)"}, \
        {"ramp", CLI_INT, &(t).options.defense.ramp, "N", \
         "epochs in which it and the intervals grow (default: two thirds of all; exact 0)"}, \
        {"train-vectors", CLI_FLAG, &(t).options.defense.train_vectors, NULL, \
         "let classification train the pretrained word vectors too"}, \
        {"triplet", CLI_REAL, &(t).options.defense.triplet, "W", \
         "weight of a loss on the word vectors that pulls synonyms together (default 0)"}, \
    { \
        "margin", CLI_REAL, &(t).options.defense.margin, "A", "how far apart that wants other words (default 10)" \
    }

/* How texts are searched; CLI_ATTACK_OPTIONS goes into a verb's table. */
#define CLI_ATTACK_OPTIONS(o) \
    {"max-queries", CLI_UINT, &(o).max_queries, "N", \
     "texts a search may ask the model about; smoothed: n or more (default: any number)"}, \
        {"population", CLI_INT, &(o).population, "N", "genetic: members (default 60)"}, \
        {"iterations", CLI_INT, &(o).iterations, "N", "genetic: generations (default 40)"}, \
    { \
        "tries", CLI_INT, &(o).tries, "N", "random: new texts (default 100)" \
    }

#define CLI_VOTE_OPTIONS(o) \
    {"n", CLI_UINT, &(o).n, "N", "smoothed: draws that vote on a new text (default 200)"}, \
    { \
        "alpha", CLI_REAL, &(o).alpha, "A", \
            "smoothed: level at which fresh draws must bear a success out (default 0.001)" \
    }

/* How lexicons are made: by `lexicon build`, or by `lexicon import`. */
typedef struct cli_lexicon_flags {
    cli_list vocab_from, synonyms, antonyms;
    const char *metric;
    uint64_t min_count; /* UINT64_MAX, or as asked */
    int counterfit;     /* -1, or as asked */
    safer_lexicon_options options;
} cli_lexicon_flags;

cli_lexicon_flags cli_lexicon_default(void);

#define CLI_BUILD_OPTIONS(a) \
    {NULL, CLI_HEADING, NULL, NULL, "Words"}, \
        {"vectors", CLI_PATH, &(a).options.vectors, "FILE", "word vectors: GloVe text or word2vec binary"}, \
        {"vocab", CLI_PATH, &(a).options.vocab, "FILE", "use only the words of this list, one a line"}, \
        {"vocab-from", CLI_LIST, &(a).vocab_from, "DATA", "keep only words seen in this data (repeatable)"}, \
        {"min-count", CLI_UINT, &(a).min_count, "N", "... at least N times (default 2)"}, \
        {"repair", CLI_FLAG, &(a).options.repair, NULL, "replace invalid UTF-8 in that data instead of refusing it"}, \
        {NULL, CLI_HEADING, NULL, NULL, "Vectors"}, \
        {"synonyms", CLI_LIST, &(a).synonyms, "FILE", "pairs to pull together (repeatable)"}, \
        {"antonyms", CLI_LIST, &(a).antonyms, "FILE", "pairs to push apart (repeatable)"}, \
        {"counterfit", CLI_INT, &(a).counterfit, "STEPS", "steps of counter-fitting with those pairs (default 20)"}, \
        {"all-but-the-top", CLI_INT, &(a).options.all_but_the_top, "D", "common directions to remove (default 8)"}, \
        {"simlex", CLI_PATH, &(a).options.simlex, "FILE", "report the rank correlation with SimLex-999"}, \
        {NULL, CLI_HEADING, NULL, NULL, "Synonyms"}, \
        {"threshold", CLI_REAL, &(a).options.threshold, "T", "similarity that makes synonyms (default 0.8)"}, \
        {"metric", CLI_STRING, &(a).metric, "NAME", "cosine, or dot without rescaling (default cosine)"}, \
        {"exclude", CLI_PATH, &(a).options.exclude, "FILE", \
         "words that take part in nothing, or pairs that are no synonyms"}, \
        {"protect", CLI_PATH, &(a).options.protect, "FILE", "words that are never substituted"}, \
    { \
        NULL, CLI_HEADING, NULL, NULL, "Smoothing" \
    }

#define CLI_IMPORT_OPTIONS(a) \
    {NULL, CLI_HEADING, NULL, NULL, "Words and synonyms"}, \
        {"table", CLI_PATH, &(a).options.table, "FILE", "the synonyms, JSON or text"}, \
        {"wordnet", CLI_PATH, &(a).options.wordnet, "DIR", \
         "the folder with data.noun, data.verb, data.adj, data.adv"}, \
        {"directed", CLI_FLAG, &(a).options.directed, NULL, "one-way synonyms stay one-way"}, \
        {"vocab", CLI_PATH, &(a).options.vocab, "FILE", "use only the words of this list, one a line"}, \
        {"vocab-from", CLI_LIST, &(a).vocab_from, "DATA", "keep only words seen in this data (repeatable)"}, \
        {"min-count", CLI_UINT, &(a).min_count, "N", "... at least N times (default 2)"}, \
        {"repair", CLI_FLAG, &(a).options.repair, NULL, "replace invalid UTF-8 in that data instead of refusing it"}, \
        {"exclude", CLI_PATH, &(a).options.exclude, "FILE", \
         "words that take part in nothing, or pairs that are no synonyms"}, \
        {"protect", CLI_PATH, &(a).options.protect, "FILE", "words that are never substituted"}, \
        {NULL, CLI_HEADING, NULL, NULL, "Smoothing"}, \
    { \
        "vectors", CLI_PATH, &(a).options.vectors, "FILE", \
            "rank neighbours by these vectors (default: by graph distance)" \
    }

/* Turns the flags into options, or says what is wrong with them. */
safer_status cli_lexicon_finish(cli_lexicon_flags *a, safer_error *error);

/* "all" or a number of words from 1; cli_radius_of gives 0 for anything else, cli_radius
 * says what is wrong and exits. */
size_t cli_radius_of(const char *text);
size_t cli_radius(const char *text, const cli_verb *verb);

/* Turns the flags into options, or says what is wrong and exits. */
void cli_certify_finish(cli_certify_flags *c, const cli_verb *verb);

/* A note when the model was trained with another lexicon or kernel. */
void cli_note_training(const safer_model *model, const safer_lexicon *lexicon);

/* "95%: 82.79 to 86.75", as percentages. Static. */
const char *cli_interval(size_t part, size_t whole);

/* The results of a run as `certify --json` prints them, and as a table. */
json_t *cli_summary_json(const safer_summary *s, uint64_t seed);
void cli_summary_print(const safer_summary *s, const safer_certify_options *options);

/* The verbs; each returns an exit code. */
int cli_train(int argc, char **argv);
int cli_certify(int argc, char **argv);
int cli_predict(int argc, char **argv);
int cli_verify(int argc, char **argv);
int cli_attack(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_sample(int argc, char **argv);
int cli_serve(int argc, char **argv);
int cli_sweep(int argc, char **argv);
int cli_compare(int argc, char **argv);
int cli_model(int argc, char **argv);
int cli_lexicon(int argc, char **argv);
int cli_lexicon_build(int argc, char **argv);
int cli_lexicon_import(int argc, char **argv);
int cli_lexicon_export(int argc, char **argv);
int cli_lexicon_show(int argc, char **argv);
int cli_lexicon_stats(int argc, char **argv);

#endif
