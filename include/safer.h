/* safer: certified robustness of text classifiers to word substitution.
 *
 * This is the whole public interface of libsafer. It reads in the order in which
 * data flows: errors, data sets, lexicons, models, training, certification, attacks,
 * comparisons, gates, reports, evidence, serving. The shortest way through it:
 *
 *     safer_lexicon_open, safer_data_load, safer_model_open    what there is
 *     safer_certify                                            a whole data set
 *     safer_certify_text                                       one text
 *
 * examples/certify.c shows it with a classifier of its own. Rules that hold throughout:
 *
 *   - A fallible function returns a safer_status; results come back through
 *     pointers, which are written only on SAFER_OK (but for reports on how a lexicon was
 *     made, and workspaces, which may be kept after a failure). The last parameter is an
 *     optional safer_error (may be NULL) that explains a failure in one line.
 *   - An object that comes back through its first parameter belongs to the caller and ends
 *     with its _free function (a server: _stop), which accepts NULL.
 *   - NULL for a struct of options means the defaults.
 *   - Strings are UTF-8. Pointers into an object live as long as the object.
 *   - Objects are immutable once made: any number of threads may read one.
 *   - The library never prints, never exits, and never repairs a parameter.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAFER_H
#define SAFER_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SAFER_API __attribute__((visibility("default")))
#else
#define SAFER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- version */

#define SAFER_VERSION_MAJOR 0
#define SAFER_VERSION_MINOR 2
#define SAFER_VERSION_PATCH 0
#define SAFER_VERSION "0.2.0"
#define SAFER_VERSION_NUMBER (SAFER_VERSION_MAJOR * 10000 + SAFER_VERSION_MINOR * 100 + SAFER_VERSION_PATCH)

/* The version of the library that is running: "0.2.0", and 200. */
SAFER_API const char *safer_version(void);
SAFER_API int safer_version_number(void);

/* ------------------------------------------------------------------ errors */

#define SAFER_STATUS_MAP(X) \
    X(OK, "ok") \
    X(INVALID, "invalid parameter") /* the caller asked for something impossible */ \
    X(INPUT, "bad input")           /* a file or text does not hold what it should */ \
    X(SYSTEM, "system error")       /* open, read, write, map or thread failed */ \
    X(MEMORY, "out of memory") \
    X(CANCELLED, "cancelled")      /* the progress callback asked to stop */ \
    X(CALLBACK, "callback failed") /* a function of the caller reported failure */

typedef enum safer_status {
#define X(name, text) SAFER_##name,
    SAFER_STATUS_MAP(X)
#undef X
} safer_status;

/* What went wrong, where (file, line or row) and, if it helps, what to do. */
typedef struct safer_error {
    safer_status status;
    char message[1000]; /* one line, no trailing newline, always terminated */
} safer_error;

/* Whether the library that is running can serve a program compiled with a header of this number
 * (pass SAFER_VERSION_NUMBER): the same major version, before 1.0 the same minor one too, and not
 * older. Else SAFER_INVALID. */
SAFER_API safer_status safer_version_check(int number, safer_error *error);

/* Every enum has names, as the program, records and Python spell them. TYPE_name gives that of a
 * value, NULL beyond the last, so that counting up from 0 lists all; TYPE_parse reads one, and
 * refuses others with a message that lists all (SAFER_INVALID). */
#define SAFER_NAMED(type) \
    SAFER_API const char *type##_name(type value); \
    SAFER_API safer_status type##_parse(type *out, const char *name, safer_error *error)

SAFER_NAMED(safer_status); /* "ok", "bad input", ... */

/* Every struct of options begins with its size, by which the library knows which members the caller
 * has: later versions add members at the end of the outermost struct, never within a nested one, and
 * those that a caller lacks keep their defaults.
 * TYPE_default gives all defaults and sets the size; it calls TYPE_init, which is what a caller
 * from another language needs (size: that of its struct). Options that were not begun with
 * either are refused (SAFER_INVALID). */
#define SAFER_OPTIONS(type) \
    SAFER_API void type##_init(type *options, size_t size); \
    static inline type type##_default(void) \
    { \
        type options; \
        type##_init(&options, sizeof options); \
        return options; \
    } \
    struct type /* declared again, to end with the caller's semicolon */

/* Stands for what suits the case, where a member says so. */
#define SAFER_DEFAULT (-1)

/* Called from time to time, always from the thread that called the library.
 * `total` is 0 when it is not known. Return nonzero to cancel: the operation then
 * cleans up and returns SAFER_CANCELLED. */
typedef struct safer_progress {
    int (*report)(void *context, const char *stage, uint64_t done, uint64_t total);
    void *context;
} safer_progress;

/* -------------------------------------------------------------------- data */

/* A labelled set of texts, in memory, in file order. */
typedef struct safer_data safer_data;

typedef enum safer_format {
    SAFER_FORMAT_AUTO, /* detected from the name and the content */
    SAFER_FORMAT_TSV,
    SAFER_FORMAT_CSV,
    SAFER_FORMAT_JSONL,
    SAFER_FORMAT_FASTTEXT,
    SAFER_FORMAT_FOLDER /* of one folder per class */
} safer_format;
SAFER_NAMED(safer_format); /* "auto", "tsv", ... */

typedef struct safer_data_options {
    size_t size;
    safer_format format;
    const char *sample;          /* "every:N": every Nth of each class; "random:N": N rows; NULL: all */
    size_t limit;                /* keep the first `limit` rows after sampling; 0: all */
    uint64_t seed;               /* for random:N */
    int repair;                  /* invalid UTF-8 becomes U+FFFD instead of an error */
    int strip_breaks;            /* "<br />" becomes a space (folders of IMDB reviews always do) */
    const safer_data *labels_of; /* use this set's labels; a label it lacks is an error. May be NULL */
} safer_data_options;

/* One text. `label` indexes the label names, or is -1 when the row has none. */
typedef struct safer_row {
    const char *id;     /* terminated; the row's number from 1 when the file has no ids */
    const char *text;   /* terminated, but may hold NUL bytes: use text_length */
    size_t text_length; /* bytes */
    int label;
} safer_row;

SAFER_OPTIONS(safer_data_options);

/* Reads PATH: a file (plain, gz, xz, zst, bz2), `ARCHIVE:MEMBER` inside a tar or
 * zip archive, or a folder (or archive folder) with one subfolder of .txt files per
 * class. NULL options mean the defaults. */
SAFER_API safer_status safer_data_load(safer_data **out, const char *path, const safer_data_options *options,
                                       safer_error *error);
/* From memory: `count` texts of lengths[i] bytes (NULL: terminated ones), with names of labels
 * and ids (either list, or single entries, may be NULL). All of it is copied. */
SAFER_API safer_status safer_data_from_texts(safer_data **out, const char *const *texts, const size_t *lengths,
                                             const char *const *labels, const char *const *ids, size_t count,
                                             safer_error *error);
SAFER_API void safer_data_free(safer_data *data);

SAFER_API size_t safer_data_size(const safer_data *data);
SAFER_API safer_row safer_data_row(const safer_data *data, size_t index);

/* The most bytes that any compressed file or archive may become, or that are read from a pipe or device; 0, as it
 * is in the beginning: 8 GiB (a pipe: 2 GiB) or half of the machine's memory, whichever is less, and, above 1 GiB,
 * 250 times the compressed size. For all threads. */
SAFER_API void safer_set_max_unpacked(uint64_t bytes);

/* Label names, in ascending order: numbers by value first, then words by bytes. */
SAFER_API size_t safer_data_label_count(const safer_data *data);
SAFER_API const char *safer_data_label(const safer_data *data, size_t label);

/* What records call the data: the last part of the path, of ARCHIVE:MEMBER those of both, "memory" without a
 * file; and the SHA-256 over the rows in order (docs/data.md), 64 lower-case digits. It is computed when it is
 * first asked for, by any thread; NULL when libcrypto cannot. Both live as long as the data. */
SAFER_API const char *safer_data_name(const safer_data *data);
SAFER_API const char *safer_data_sha256(const safer_data *data);

/* Whether an input is still what it was: the SHA-256 of a file, of all that is in a folder with its names, or of the
 * archive of ARCHIVE:MEMBER and the member's name. `out` gets 64 digits and a NUL. */
SAFER_API safer_status safer_path_sha256(char *out, const char *path, safer_error *error);

/* ----------------------------------------------------------------- lexicon */

/* What an attacker may do and how the smoothing answers: for every word x its synonyms
 * S_x, the distribution pi_x its substitutes are drawn from, and the overlap s_x. */
typedef struct safer_lexicon safer_lexicon;

#define SAFER_NO_WORD UINT32_MAX
#define SAFER_ALL SIZE_MAX /* a radius: every word of the text may change */

typedef enum safer_metric {
    SAFER_METRIC_COSINE, /* vectors of length 1 */
    SAFER_METRIC_DOT     /* after all-but-the-top the lengths are left as they are */
} safer_metric;
SAFER_NAMED(safer_metric); /* "cosine", "dot" */

/* How to make a lexicon. Paths may name compressed files or ARCHIVE:MEMBER. */
typedef struct safer_lexicon_options {
    size_t size;
    const char *vectors; /* build: word vectors, GloVe text or word2vec binary. import: optional, ranks topk */
    const char *table;   /* import: {"word": ["synonym", ...]} (JSON) or word<TAB>synonyms (text) */
    const char *wordnet; /* import: a folder with WordNet's data.noun, data.verb, data.adj, data.adv */

    const char *vocab;             /* a list, one word per line: only these words count. May be NULL */
    const char *const *vocab_from; /* data sets; only words seen in them are kept */
    size_t vocab_from_count;
    uint64_t min_count; /* seen at least so often (with vocab_from); 2 */
    int repair;         /* invalid UTF-8 in that data becomes U+FFFD instead of an error */

    const char *const *synonyms; /* counter-fitting constraints, two words per line */
    size_t synonyms_count;
    const char *const *antonyms;
    size_t antonyms_count;
    int counterfit;      /* steps; 20. Without constraints nothing is fitted */
    int all_but_the_top; /* directions to remove; 8 */
    double threshold;    /* synonyms are the pairs at least this similar; 0.8 */
    safer_metric metric;
    const char *simlex; /* SimLex-999, to report the rank correlation with human judgement. May be NULL */

    int directed;        /* import: keep one-way synonyms one-way */
    const char *exclude; /* file: per line a word (loses all its pairs) or a pair (not synonyms). May be NULL */
    const char *protect; /* file: words that are never substituted. May be NULL */

    const char *kernel; /* "topk:K", "component", "representative"; topk:100 */
    int threads;        /* 0: all cores */
    safer_progress progress;
} safer_lexicon_options;

/* What happened while a lexicon was made. Counts of what was set aside are decisions
 * that a user should see. */
typedef struct safer_lexicon_report {
    size_t vector_rows, vector_dim;                          /* in the vector file */
    size_t vector_duplicates, vector_unusable, vector_zeros; /* rows set aside */
    size_t listed;                                           /* words with a vector (and in the vocabulary list) */
    size_t texts, tokens;                                    /* in the data the vocabulary comes from */
    size_t words;                                            /* in the lexicon */
    size_t table_phrases;                                    /* import: entries that are not one word */
    size_t attract, repel, preserved;                        /* counter-fitting: pairs used */
    size_t pairs;         /* synonym pairs in the lexicon (one-way pairs count once) */
    size_t symmetrised;   /* import: pairs that were listed one way only */
    size_t refused_words; /* words that cannot be written in every case pattern and read back */
    size_t refused_pairs, excluded_pairs, protected_words;
    size_t unknown_edits; /* lines of exclude and protect with a word that the lexicon does not have */
    size_t simlex_pairs;  /* of SimLex-999 with both words known; 0: not asked for */
    double simlex_before, simlex_fitted, simlex_after; /* Spearman: as read; counter-fitted; all done */
    struct {
        const char *name;
        double seconds;
    } stages[12];
    size_t stage_count;
    /* For a ladder of K: the share of texts of vocab_from for which topk:K leaves the
     * product of all overlaps above one half. Empty without vocab_from. */
    struct {
        uint32_t k;
        double share;
    } ladder[24];
    size_t ladder_count;
    uint32_t suggested_k; /* the smallest of the ladder that reaches 95%; 0: none does */
} safer_lexicon_report;

SAFER_OPTIONS(safer_lexicon_options);

/* From word vectors: counter-fitting, all-but-the-top, all pairs at the threshold.
 * `report` may be NULL. */
SAFER_API safer_status safer_lexicon_build(safer_lexicon **out, const safer_lexicon_options *options,
                                           safer_lexicon_report *report, safer_error *error);

/* From a table or WordNet; vectors, when given, only rank the neighbours for topk. */
SAFER_API safer_status safer_lexicon_import(safer_lexicon **out, const safer_lexicon_options *options,
                                            safer_lexicon_report *report, safer_error *error);

/* The same words and synonyms with another kernel. */
SAFER_API safer_status safer_lexicon_with_kernel(safer_lexicon **out, const safer_lexicon *lexicon, const char *kernel,
                                                 int threads, safer_error *error);

/* Maps a .lex file; one that is damaged, truncated or of another version is refused. So is one that
 * does not mean what it says: overlaps, the words it finds, what it exchanges and the kind of its kernel are looked at
 * again. */
SAFER_API safer_status safer_lexicon_open(safer_lexicon **out, const char *path, safer_error *error);

/* Writes it whole or not at all. The same lexicon gives the same bytes. */
SAFER_API safer_status safer_lexicon_save(const safer_lexicon *lexicon, const char *path, safer_error *error);

SAFER_API void safer_lexicon_free(safer_lexicon *lexicon);

typedef struct safer_lexicon_info {
    size_t words, pairs;
    size_t words_with_synonyms;
    double mean_synonyms;          /* of those, without the word itself */
    size_t components;             /* with at least two words */
    size_t largest_components[10]; /* their sizes, falling, 0 at the end */
    size_t kernel_rows, kernel_entries, largest_support;
    const char *kernel;     /* as it was asked for */
    const char *provenance; /* JSON: how it was made, from which files */
    size_t bytes;
    int directed; /* some synonyms may count one way only */
} safer_lexicon_info;

SAFER_API safer_lexicon_info safer_lexicon_describe(const safer_lexicon *lexicon);

/* What records call the lexicon: the last part of its path, "memory" where it was just made; and the SHA-256 of its
 * file, what sha256sum prints. Both live as long as the lexicon. */
SAFER_API const char *safer_lexicon_name(const safer_lexicon *lexicon);
SAFER_API const char *safer_lexicon_sha256(const safer_lexicon *lexicon);

/* The number of a word (any case), or SAFER_NO_WORD: also when memory is out, and errno is ENOMEM then. */
SAFER_API uint32_t safer_lexicon_find(const safer_lexicon *lexicon, const char *word, size_t length);

/* One word of the lexicon. Numbers run from 0; arrays belong to the lexicon. */
typedef struct safer_word {
    const char *word;
    uint64_t count; /* occurrences in the data it was built from */
    uint32_t component;
    size_t synonym_count;
    const uint32_t *synonyms; /* S_x without x, ascending */
    const float *similarity;  /* of each, or NULL when none is known */
    size_t support_count;
    const uint32_t *support; /* what pi_x draws, ascending */
    const uint32_t *weights; /* pi_x(support[i]) = weights[i] / total */
    uint32_t total;
    double overlap; /* s_x, rounded down */
    uint32_t worst; /* the synonym that attains it, or SAFER_NO_WORD */
} safer_word;

SAFER_API safer_word safer_lexicon_word(const safer_lexicon *lexicon, uint32_t word);

/* s(x, other), rounded down. */
SAFER_API double safer_lexicon_overlap(const safer_lexicon *lexicon, uint32_t word, uint32_t other);

/* What the lexicon means for a data set. For each of `radii` (SAFER_ALL: all) the
 * distribution over texts of the product of the smallest overlaps. */
#define SAFER_SURVEY_RADII 4
typedef struct safer_survey {
    size_t texts, tokens; /* words in them */
    size_t known_tokens;  /* in the lexicon */
    size_t tokens_with_synonyms;
    struct {
        size_t radius;       /* 5, 10, 20, SAFER_ALL */
        double quantiles[7]; /* minimum, 5, 25, 50, 75, 95 %, maximum */
        double above_half;   /* share of texts with a product above 1/2 */
    } products[SAFER_SURVEY_RADII];
    size_t without_synonyms; /* texts in which no word has one: their certificates would be empty */
} safer_survey;

SAFER_API safer_status safer_lexicon_survey(safer_survey *out, const safer_lexicon *lexicon, const safer_data *data,
                                            int threads, const safer_progress *progress, safer_error *error);

typedef enum safer_export {
    SAFER_EXPORT_SYNONYMS, /* word<TAB>w1 w2 ... */
    SAFER_EXPORT_KERNEL,   /* word<TAB>total<TAB>z1:weight z2:weight ... */
    SAFER_EXPORT_OVERLAP   /* word<TAB>s */
} safer_export;
SAFER_NAMED(safer_export); /* "synonyms", "kernel", "overlap" */

/* Writes a table of all words, one line for each, or one JSON object, through a callback that
 * returns nonzero to stop (SAFER_SYSTEM is returned then). Overlaps are printed cut,
 * never above the stored value. */
typedef int (*safer_write)(void *context, const char *bytes, size_t length);
SAFER_API safer_status safer_lexicon_export(const safer_lexicon *lexicon, safer_export what, int json,
                                            safer_write write, void *context, safer_error *error);

/* ------------------------------------------------------------------ models */

/* A classifier. The answer of those made here is a function of the text alone. */
typedef struct safer_model safer_model;

/* Loads a model file written by safer_train, or a directory as HuggingFace has them: a BERT
 * or DistilBERT classifier (config.json, vocab.txt or tokenizer.json, model.safetensors), or a sum
 * of models (a file of JSON; docs/models.md). */
SAFER_API safer_status safer_model_open(safer_model **out, const char *path, safer_error *error);
SAFER_API void safer_model_free(safer_model *model);

/* The arithmetic of answers and of training. */
typedef enum safer_precision {
    SAFER_PRECISION_BF16,    /* fast */
    SAFER_PRECISION_F32,     /* exact to about 1e-5 */
    SAFER_PRECISION_PORTABLE /* as f32, and slower, with the same bits on every machine; not for training */
} safer_precision;
SAFER_NAMED(safer_precision); /* "bf16", "f32", "portable" */

/* How to compute from now on. bert and charcnn, and sums with such members, are opened with bf16 and
 * have the choice; ngram, bow and cnn are always portable, and refuse the other two. Not while the
 * model is in use, or a workspace made with it is kept. The answers of two arithmetics may differ in
 * rare, nearly even cases; which have the same bits is in docs/models.md. */
SAFER_API safer_status safer_model_set_precision(safer_model *model, safer_precision precision, safer_error *error);

/* Computes on a device from now on: "cpu"; "cuda", all GPUs there are, or "cuda:N", one; "auto", GPUs where there are
 * any that this build can use for this model, else the CPU. For a `bert`, and the members of a sum that are one. Nobody
 * may be asking the model at the same time, and no workspace of it outlives the change. */
SAFER_API safer_status safer_model_set_device(safer_model *model, const char *device, safer_error *error);

/* What can compute. */
typedef struct safer_device {
    char name[32];         /* as safer_model_set_device takes it: "cpu", "cuda:0"; "cuda": no GPU can be used */
    char hardware[256];    /* as its maker calls it; empty: not known */
    char instructions[32]; /* "avx512-bf16", "sm_90" */
    char driver[64];       /* of a GPU: the newest CUDA that it is for, "CUDA 13.0" */
    char arithmetic[352];  /* in which a bert answers there, as records name it */
    int threads;           /* of the CPU: used where 0 is given */
    uint64_t memory;       /* bytes */
    uint64_t free_memory;  /* of a GPU */
    char reason[1000];     /* why it cannot be used; empty: it can */
} safer_device;

/* Devices of this machine, by number: 0 is the CPU, then come GPUs, or one entry that says why there are none. Returns
 * 0 after the last, else 1. */
SAFER_API int safer_device_get(safer_device *out, size_t number);

/* "ngram", "bow", "cnn", "charcnn", "bert", "sum", "exec", "http" or "callback". */
SAFER_API const char *safer_model_arch(const safer_model *model);

/* What records call the model: the last part of its path, or the model_name of a remote one, "" without; and its
 * SHA-256: of its file, what sha256sum prints; of a directory's files or a sum's members, docs/models.md; "" of a
 * remote one. Both live as long as the model. */
SAFER_API const char *safer_model_name(const safer_model *model);
SAFER_API const char *safer_model_sha256(const safer_model *model);

SAFER_API size_t safer_model_class_count(const safer_model *model);
SAFER_API const char *safer_model_label(const safer_model *model, size_t label);

/* What the model was trained with: JSON with the lexicon's digests and kernel, or NULL. */
SAFER_API const char *safer_model_trained_with(const safer_model *model);

/* Whether that is this very lexicon: 1 or 0, -1 when nothing is said of a lexicon. */
SAFER_API int safer_model_trained_on(const safer_model *model, const safer_lexicon *lexicon);

/* labels[i] = class number of texts[i] (lengths[i] bytes). `scores`, when not NULL, gets
 * (count, classes) probabilities. */
SAFER_API safer_status safer_model_classify(const safer_model *model, const char *const *texts, const size_t *lengths,
                                            size_t count, int *labels, float *scores, safer_error *error);

/* What an HTTP service understands. */
typedef enum safer_profile {
    SAFER_PROFILE_JSON, /* any JSON: see `request` and `answer` */
    SAFER_PROFILE_KSERVE,
    SAFER_PROFILE_TEI,   /* text-embeddings-inference */
    SAFER_PROFILE_OPENAI /* a language model that is asked for a label */
} safer_profile;
SAFER_NAMED(safer_profile); /* "json", "kserve", "tei", "openai" */

/* A remote model: only its answers are needed. */
typedef struct safer_remote_options {
    size_t size;
    const char *const *labels; /* names of the classes, at least two, in the order of their numbers */
    size_t label_count;
    size_t batch;   /* texts of a request, at most; 0: 64 for exec, 32 for http, 256 for a callback */
    double timeout; /* seconds that a request may take; 60 */
    int retries;    /* of a request that got lost, or whose worker died; 5 */
    int cache;      /* ask identical texts once: needs `function`; SAFER_DEFAULT: for http, when it is declared */
    int random;     /* known to answer the same text differently: no cache and no exact claims. 0: test it */

    int workers;     /* exec: processes; 0: one per core */
    int concurrency; /* http: requests at a time. callback: threads that may call it at once. SAFER_DEFAULT: 8 and 1 */

    /* http */
    safer_profile profile;
    const char *request; /* json: the body, with {{texts}} (a list) or {{text}}. openai: the prompt, with {{text}}
                          * and {{labels}} */
    const char *answer;  /* json: a JSON pointer to labels or scores in what comes back; NULL: found */
    const char *name;    /* kserve: the input's name; openai: the model's name */
    const char *token; /* the environment variable that holds a bearer token; NULL: none. Its value is never written */

    const char *model_name; /* what records call the model; needed where a run is written, or compared with one. UTF-8
                             * without control characters, at most 200 bytes; NULL: none */
    int function; /* declared: its answer is a function of the text alone. Then sampled texts may be cached. Texts that
                   * are enumerated are asked twice all the same; another answer is an error. Not with `random` */
    int insecure_token; /* allows a token, or a password in the address, over http:// to another machine */
} safer_remote_options;

SAFER_OPTIONS(safer_remote_options);

/* "exec:COMMAND", a program that reads {"id":N,"texts":[...]} and writes {"id":N,"labels":[...]}
 * or {"id":N,"scores":[[...],...]}, one line for each; or an http:// or https:// address. */
SAFER_API safer_status safer_model_connect(safer_model **out, const char *address, const safer_remote_options *options,
                                           safer_error *error);

/* A function of the caller: labels[i] gets the class number of texts[i] (lengths[i] bytes,
 * terminated), or -1 for no answer. Nonzero ends what is being done with SAFER_CALLBACK.
 * Called from one thread at a time, not always the same, unless `concurrency` allows more. */
typedef int (*safer_classify)(void *context, const char *const *texts, const size_t *lengths, size_t count,
                              int *labels);
SAFER_API safer_status safer_model_from_callback(safer_model **out, safer_classify classify, void *context,
                                                 const safer_remote_options *options, safer_error *error);

/* What a remote model was asked so far; zeros for any other. */
typedef struct safer_traffic {
    uint64_t asked;   /* texts sent, without those below */
    uint64_t cached;  /* answered from the cache */
    uint64_t again;   /* texts sent to see whether answers stay: before a run, a share of all, and every text behind
                       * an exact certificate once more */
    uint64_t changed; /* of those: the answer did not */
    uint64_t none;    /* answers that were not a label */
    uint64_t requests, retries;
    uint64_t restarts; /* exec: workers that had to be started again */
} safer_traffic;
SAFER_API safer_traffic safer_model_traffic(const safer_model *model);

/* Whether it is known, by its options or by a test, to give different answers to the same text. */
SAFER_API int safer_model_is_random(const safer_model *model);

/* Makes one model file of a BERT or DistilBERT checkpoint. INPUT is a folder as HuggingFace
 * has them (config.json, vocab.txt or tokenizer.json, and the weights as safetensors or
 * ONNX), or an .onnx file with the rest beside it or in the folder above. Without a
 * classifier in it, the file can be trained from, not asked. OUTPUT is written whole or
 * not at all. */
SAFER_API safer_status safer_model_convert(const char *output, const char *input, safer_error *error);

/* Makes one model file of several BERT models that were fine-tuned from the same encoder: the
 * mean of their parameters. It often errs less than each of them. */
SAFER_API safer_status safer_model_average(const char *output, const char *const *inputs, size_t count,
                                           safer_error *error);

/* ---------------------------------------------------------------- training */

typedef enum safer_arch {
    SAFER_ARCH_NGRAM, /* a linear model on hashed n-grams */
    SAFER_ARCH_BOW,   /* the mean of word vectors */
    SAFER_ARCH_CNN,   /* a convolution over word vectors */
    SAFER_ARCH_CHARCNN,
    SAFER_ARCH_BERT
} safer_arch;
SAFER_NAMED(safer_arch); /* "ngram", "bow", "cnn", "charcnn", "bert" */

/* How the vectors of a text become one. */
typedef enum safer_pool {
    SAFER_POOL_DEFAULT, /* bow, cnn: mean; bert: the encoder's own */
    SAFER_POOL_MEAN,
    SAFER_POOL_MAX, /* bow, cnn */
    SAFER_POOL_CLS  /* bert: the first piece's */
} safer_pool;
SAFER_NAMED(safer_pool); /* "default", "mean", "max", "cls" */

/* Training by bounds over the lexicon's synonyms instead of draws. */
typedef enum safer_defense {
    SAFER_DEFENSE_NONE,
    SAFER_DEFENSE_IBP_JIA,
    SAFER_DEFENSE_IBP_HUANG,
    SAFER_DEFENSE_EXACT /* the worst case itself, of a bow without hidden layer */
} safer_defense;
SAFER_NAMED(safer_defense); /* "none", "ibp-jia", "ibp-huang", "exact" */

typedef enum safer_charcnn_size { SAFER_CHARCNN_SMALL, SAFER_CHARCNN_LARGE } safer_charcnn_size;
SAFER_NAMED(safer_charcnn_size); /* "small", "large" */

#define SAFER_ALL_LAYERS (-1)

/* SAFER_DEFAULT stands for what suits the architecture. */
typedef struct safer_train_options {
    size_t size;
    safer_arch arch;              /* cnn */
    const safer_data *train;      /* labelled */
    const safer_data *dev;        /* labelled, with train's labels; NULL: every 10th row of each class of train */
    const safer_lexicon *lexicon; /* texts are drawn from its kernel, again for every mini-batch; NULL: plain text */
    uint64_t seed;                /* 1 */
    int threads;                  /* 0: all cores; the result does not depend on it */
    int resume;                   /* all but ngram: continue from OUTPUT's checkpoint when there is one */
    safer_progress progress;      /* the stage shows epoch, loss and dev accuracy */

    /* The course of training: all but ngram. */
    struct {
        double dropout;  /* bow, cnn 0.2; charcnn 0.5; bert 0.1 (of the pooled vector) */
        double rate;     /* Adam's: 0.001; charcnn 0.002; bert 0.00006, and 0.001 for the head alone */
        double decay;    /* weight decay: 0.0001; charcnn 0.1; bert 0.01 */
        double clip;     /* the gradient's length at most, 0: any; bow, cnn 0; charcnn, bert 1 */
        double warmup;   /* share of the steps in which the rate rises; then it falls to 0. charcnn, bert: 0.1 */
        int batch;       /* texts per step; 32, charcnn 128 */
        int epochs;      /* at most; bow, cnn 10; charcnn 30; bert 3 */
        int patience;    /* epochs without a better dev accuracy before it stops; 0: any number. bow, cnn 3; else 0 */
        safer_pool pool; /* bow, cnn, bert */
        safer_precision precision; /* charcnn, bert: of products; bf16 */
    } course;

    struct {
        int order; /* the longest n-gram; 3 */
        int bits;  /* size of the hashed feature table, a power of two; 22 */
    } ngram;

    /* bow and cnn */
    struct {
        const char *vectors; /* pretrained word vectors to start from; NULL: learned from random ones */
        int dim;             /* of learned word vectors; 100 */
        const char *widths;  /* cnn: filter widths, "3" or "3,4,5" */
        int filters;         /* cnn: per width; 100 */
        int hidden;          /* units of the layer before the output; 100 */
        int max_words;       /* only the first so many words of a text are read; 0: all */
        int min_count;       /* words seen less often are unknown; 2 */
        int freeze;          /* word vectors are not trained */
    } cnn;

    /* bow and cnn, trained by bounds */
    struct {
        safer_defense kind; /* ibp: epochs is 60, clip 0.25 and patience 0 by default; exact: 12 epochs at rate 2 */
        double kappa;       /* weight of the worst case in the loss, in the end; 0.8, exact 1 */
        int ramp;           /* epochs in which that weight and the intervals grow from 0; two thirds of all, exact 0 */
        int train_vectors;  /* classification trains pretrained vectors too; else only triplets do. Without
                             * `vectors` it always does */
        double triplet;     /* weight of a loss that pulls vectors of synonyms together and others apart; 0 */
        double margin;      /* how far apart that loss moves other words; 10 */
    } defense;

    struct {
        int characters; /* read of a text; 1014 */
        safer_charcnn_size size;
    } charcnn;

    struct {
        const char *encoder; /* to start from: a converted encoder, a HuggingFace directory, or a trained model */
        int layers;          /* trained, from the top; 0: the head alone, as in the paper; SAFER_ALL_LAYERS: with
                              * the embeddings */
        int tokens;          /* most pieces of a text; 0: as many as the encoder takes, up to 512 */
    } bert;

    /* bert: where it is trained, as safer_model_set_device has it; NULL: the CPU. Of several GPUs one is used. A
     * checkpoint of one device can be resumed on another; the model is then neither's alone. */
    const char *device;
} safer_train_options;

typedef struct safer_train_report {
    size_t texts, tokens; /* read once each, without augmentation */
    size_t parameters;
    int epochs, best_epoch; /* run, and the one that is kept */
    double loss;            /* mean of the last epoch */
    double dev_accuracy;    /* of the kept model on draws of the dev texts (plain text without a lexicon); with a
                               * defense: the share of dev texts that its bounds certify */
    double seconds, tokens_per_second;
} safer_train_report;

SAFER_OPTIONS(safer_train_options);

/* Trains and writes a model file (safetensors) at `output`, whole or not at all; beside
 * it, while training, a checkpoint that ends with the run. `report` may be NULL. */
SAFER_API safer_status safer_train(const char *output, const safer_train_options *options, safer_train_report *report,
                                   safer_error *error);

/* ------------------------------------------------------------ certification */

typedef enum safer_method {
    SAFER_METHOD_ADAPTIVE,  /* samples until decided, valid at any stopping time; enumerates when that is cheaper */
    SAFER_METHOD_BINOMIAL,  /* n samples, Clopper-Pearson */
    SAFER_METHOD_HOEFFDING, /* n samples, the paper's test */
    SAFER_METHOD_IBP /* interval bounds of the model itself, not smoothed: bow, cnn, sums. No samples, no delta */
} safer_method;
SAFER_NAMED(safer_method); /* "adaptive", "binomial", "hoeffding", "ibp" */

/* The radii every run reports: 1, 2, 5, 10, 20, SAFER_ALL. */
#define SAFER_RADII 6
SAFER_API size_t safer_reported_radius(size_t index);

typedef struct safer_certify_options {
    size_t size;
    safer_method method;
    uint64_t n;      /* samples of a certificate (adaptive: at most); 5000 */
    uint64_t n0;     /* separate samples that choose the prediction, at most; 0: as many as n */
    double delta;    /* the chance that a text that could be attacked gets a certificate is at most delta; it is not the
                      * chance that a given certificate is wrong. 0.01 */
    double alpha;    /* bounds the probability that a class is returned that does not win among all draws; 0.001 */
    int family_wise; /* delta covers the whole data set: each text gets delta / texts */
    size_t radius;   /* what `certified` refers to; SAFER_ALL */
    int unlabelled;  /* certify the prediction, not the label */
    uint64_t seed;   /* 1 */
    int threads;     /* 0: all cores; one per text, or several share one text; results do not depend on it */
    size_t batch;    /* texts asked at once; results do not depend on it; 256 */
    safer_progress progress; /* also how to stop: see safer_progress */
} safer_certify_options;

SAFER_OPTIONS(safer_certify_options);

/* What is known of one text. Class numbers are the model's; -1 means none. */
typedef struct safer_certificate {
    const char *id;
    int label;             /* the data's */
    int base;              /* the base model's own answer for the text as it is */
    int prediction;        /* the smoothed classifier's; ibp: the base model's */
    int abstained;         /* the vote for the prediction was not clear at level alpha */
    int target;            /* the class that the certificate is about: the label, or the prediction */
    size_t words, slots;   /* in the text, and those of them that may change */
    size_t visible;        /* slots, from the first on, that the model can see before it stops reading */
    int exact;             /* all draws were asked: nothing is estimated, if a remote model is a function of the text */
    uint64_t n;            /* samples of the certificate; 0 when exact */
    const uint64_t *votes; /* of every class; NULL when exact */
    const double *shares;  /* of every class, approximately: votes/n, or the exact shares */
    double bound; /* lower bound on g(target), or on (1 + g(target) - max g)/2 with several classes; ibp: 1 or 0 */
    const double *margins; /* ibp: per class a lower bound on the target's lead, in logits, for all words; else NULL */
    double q[SAFER_RADII]; /* q_X at the reported radii, rounded up */
    int certified_at[SAFER_RADII];
    int certified;    /* at the asked radius */
    size_t radius;    /* the largest certified one: 0 .. slots - 1, or SAFER_ALL; ibp: 0 or SAFER_ALL */
    uint64_t queries; /* vote_n + n; exact: the enumerated draws, of a remote model twice */
    double seconds;
    uint64_t vote_n;            /* separate samples that chose the prediction; 0 when exact */
    const uint64_t *vote_votes; /* of every class, in these samples; NULL when exact */
} safer_certificate;

/* Certifies one text, for `label` or (label -1) for the prediction. The result's arrays
 * live in `*workspace`, which is made when NULL, reused by further calls of the same
 * thread with the same model, lexicon and options, and ended by
 * safer_workspace_free. A thread that does not round to the nearest (fesetround) is refused. */
typedef struct safer_workspace safer_workspace;
SAFER_API safer_status safer_certify_text(safer_certificate *out, safer_workspace **workspace, const safer_model *model,
                                          const safer_lexicon *lexicon, const char *text, size_t length, int label,
                                          const safer_certify_options *options, safer_error *error);
SAFER_API void safer_workspace_free(safer_workspace *workspace);

/* A certificate of a prediction (label -1) as the JSON object that `safer predict --json` and
 * POST /v1/predict give: the smoothed classifier's answer, or that it abstains, and how far the
 * answer holds; docs/serve.md lists the members. `model` is the one that was certified. *out is one
 * line of UTF-8, without newline, and ends with free(). SAFER_INVALID when the certificate is
 * about another class than the prediction. */
SAFER_API safer_status safer_answer_json(char **out, const safer_certificate *certificate, const safer_model *model,
                                         safer_error *error);

/* A share of texts: part / whole, where there is a whole. */
typedef struct safer_figure {
    const char *name;
    size_t part, whole;
} safer_figure;

/* The texts of one label. */
typedef struct safer_class_summary {
    char *label;
    size_t texts;
    size_t certified, certified_answered; /* of these, as in safer_summary */
    size_t *answers; /* (classes + 1): of these, how many were answered each class; the last: none, it abstained.
                      * NULL where there are more than 1000 classes */
} safer_class_summary;

/* A whole data set in numbers. A text is *answered* when the vote, as it would be deployed, is clear and gives the
 * class that the certificate is about. */
typedef struct safer_summary {
    size_t texts, labelled;
    size_t base_correct, smoothed_correct; /* of the labelled */
    size_t certified; /* of the labelled, for their label, at the asked radius, answered or not: the paper's figure */
    size_t certified_at[SAFER_RADII];
    size_t abstained;     /* predictions without a clear vote */
    size_t exact;         /* texts whose draws were enumerated, or bounded: nothing is estimated */
    size_t without_slots; /* texts in which no word can change: certified trivially when right */
    uint64_t queries, base_queries;
    double seconds; /* of this call */
    size_t resumed; /* records that were there already */

    size_t certified_answered; /* of the certified: the headline */
    size_t certified_answered_at[SAFER_RADII];
    size_t unlabelled_certified;           /* of the texts without a label, for their prediction */
    size_t stable, stable_at[SAFER_RADII]; /* of all texts, certified and answered, right or not */
    size_t certificates;                   /* of all texts, for a label or a prediction, at the asked radius */
    size_t empty;          /* of these, of texts in which the model sees no word that can change: they say nothing */
    int about_predictions; /* the option `unlabelled`: certificates are about predictions */
    int remote;            /* the model is remote: what is exact assumes that it is a function of the text */
    size_t classes;
    safer_class_summary *by_class; /* (classes): the labelled texts */
} safer_summary;

/* Ends what a summary owns. Zeros are accepted, and NULL. */
SAFER_API void safer_summary_free(safer_summary *summary);

/* The figure that stands for a run: "certified and answered", of the labelled texts. Where certificates are about
 * predictions, or no text has a label: "stable", of all texts. */
SAFER_API safer_figure safer_summary_headline(const safer_summary *summary);

/* What is left of the recall and precision of a class, below `classes`, when an attacker changes every text as he
 * likes, within the asked radius. Recall: of the texts of the class, those certified and answered. Precision: those, of
 * themselves and all texts of other labels that are not certified and answered. docs/certify.md has the reasons. */
SAFER_API safer_figure safer_summary_recall(const safer_summary *summary, size_t class_number);
SAFER_API safer_figure safer_summary_precision(const safer_summary *summary, size_t class_number);

/* Whether the figures of a run say little, because most of its certificates are empty. Then `text` gets a sentence that
 * says so, cut to `size` bytes, which belongs before any figure; else "". */
SAFER_API int safer_summary_caution(const safer_summary *summary, char *text, size_t size);

/* Certifies every text and writes `output`: the configuration first, then one record per text in the data's order,
 * each flushed whole. With `resume` an output of the same configuration is continued after its last whole record;
 * without, an existing file is an error. Where a remote model is found to change its answers the run fails, and the
 * output is renamed to OUTPUT.changed: it cannot be continued. `output` may be NULL: no records. `out`, which may be
 * NULL too, ends with safer_summary_free. */
SAFER_API safer_status safer_certify(safer_summary *out, const char *output, int resume, const safer_model *model,
                                     const safer_lexicon *lexicon, const safer_data *data,
                                     const safer_certify_options *options, safer_error *error);

/* The draws of a text that a certificate with this seed asks about, `count` of them from
 * number `first` on, in order, one call each. Nonzero from `each` ends it with SAFER_CALLBACK. */
typedef enum safer_stage {
    SAFER_STAGE_SELECTION,    /* the samples, at most n0, that choose the prediction */
    SAFER_STAGE_CERTIFICATION /* the certificate's own */
} safer_stage;
SAFER_NAMED(safer_stage); /* "selection", "certification" */
typedef int (*safer_draw_function)(void *context, uint64_t index, const char *text, size_t length);
SAFER_API safer_status safer_draw(const safer_lexicon *lexicon, const char *text, size_t length, safer_stage stage,
                                  uint64_t seed, uint64_t first, uint64_t count, safer_draw_function each,
                                  void *context, safer_error *error);

/* Wilson's 95% interval for a share of `part` in `whole` texts: how far a figure of this
 * data set may lie from the one of its source. whole >= 1. */
SAFER_API void safer_interval(size_t part, size_t whole, double *low, double *high);

/* What was found of a run: its totals, the version of its format, at which radius and with which chances of error it
 * claims them, and what was checked and what was not, in phrases: lists that end with NULL. The phrases live for
 * ever. */
#define SAFER_PHRASES 12
typedef struct safer_verification {
    safer_summary summary; /* ends with safer_summary_free */
    int format;
    safer_method method;
    size_t radius;       /* what `certified` refers to */
    double delta, alpha; /* as asked; 0 for ibp, which cannot err by chance */
    int family_wise;     /* delta covers all texts together */
    const char *checked[SAFER_PHRASES], *not_checked[SAFER_PHRASES];
} safer_verification;

/* Recomputes every decision of a run from its records. With the lexicon and the data (both or none)
 * also what the records say of the texts: ids, labels, words, slots, q, and the totals of exact certificates;
 * with the model too (only together with these), all draws and answers. The first record that
 * does not hold is an error that names its line. `out` may be NULL. */
SAFER_API safer_status safer_verify(safer_verification *out, const char *path, const safer_model *model,
                                    const safer_lexicon *lexicon, const safer_data *data, int threads,
                                    const safer_progress *progress, safer_error *error);

/* ------------------------------------------------------------------ attacks */

/* How a text is searched for words to exchange. All look for any other class than the right
 * one, and exchange words for their synonyms in the lexicon only. */
typedef enum safer_attack_method {
    SAFER_ATTACK_TEXTFOOLER, /* the most important words first; of each the synonym that hurts most */
    SAFER_ATTACK_GENETIC,    /* a population that mutates and crosses */
    SAFER_ATTACK_PWWS,       /* every word's best synonym, in the order of saliency times gain */
    SAFER_ATTACK_RANDOM      /* random exchanges: what a search must beat */
} safer_attack_method;

#define SAFER_ATTACKS 4
SAFER_NAMED(safer_attack_method); /* "textfooler", "genetic", "pwws", "random" */

/* Takes a record of a run, as a line of JSON without newline, "seconds" and "check", when its
 * turn has come: in the order of the data, one at a time, from any thread. */
typedef void (*safer_record_function)(void *context, const char *record);

typedef struct safer_attack_options {
    size_t size;
    safer_attack_method method;
    int smoothed;         /* attack the smoothed classifier, not the model itself */
    uint64_t n;           /* smoothed: draws of a text that vote on it; where a text has no more, all are asked. 200 */
    size_t radius;        /* words that may change; SAFER_ALL */
    uint64_t max_queries; /* texts a search may ask the model about; smoothed: at least n; 0: any number */
    int population;       /* genetic; 60 */
    int iterations;       /* genetic; 40 */
    int tries;            /* random; 100 */
    double alpha;         /* smoothed: a success counts when a test on fresh draws says so at this level; 0.001 */
    uint64_t seed;        /* 1 */
    int threads;          /* 0: all cores, one per text; results do not depend on it */
    size_t batch;         /* texts asked at once, at most; results do not depend on it; 256 */
    safer_record_function each; /* sees every record of this run; may be NULL */
    void *each_context;
    safer_progress progress; /* also how to stop */
} safer_attack_options;

SAFER_OPTIONS(safer_attack_options);

typedef enum safer_outcome {
    SAFER_OUTCOME_FAILED, /* no such exchange was found */
    SAFER_OUTCOME_SUCCEEDED,
    SAFER_OUTCOME_SKIPPED /* there was nothing to attack: the answer is already wrong */
} safer_outcome;
SAFER_NAMED(safer_outcome); /* "failed", "succeeded", "skipped" */

/* One exchanged word. */
typedef struct safer_change {
    size_t word;      /* which of the text's words, from 0 */
    size_t begin;     /* where it begins in the text attacked, bytes */
    const char *from; /* as it stands there, terminated */
    const char *to;   /* as it stands in the new text, terminated */
} safer_change;

/* What an attack did to one text. Class numbers are the model's; -1 means none. */
typedef struct safer_attack_result {
    const char *id;
    int label;  /* the data's */
    int target; /* the class that must not be answered any more: the label, or (without one) the answer */
    int before; /* the answer for the text as it is */
    int after;  /* for the new text; as `before` when the attack did not succeed */
    double score_before, score_after; /* the target's share of the classifier's belief; after: lowest that was found */
    safer_outcome outcome;
    const char *reason;    /* why it failed or was skipped, a few words; NULL on success */
    size_t words, choices; /* of the text, and those of them that have synonyms */
    size_t changed;        /* words exchanged in the new text; 0 without success */
    const safer_change *changes;
    const char *text; /* the new text; NULL without success */
    size_t text_length;
    uint64_t queries; /* texts the model was asked about by the search */
    uint64_t checks;  /* and by the tests of its successes (smoothed) */
    double seconds;
} safer_attack_result;

/* Attacks one text, whose label is `label`, or (label -1) whose label is what is answered. The
 * result's pointers live in `*attacker`, which is made when NULL, reused by further calls of
 * the same thread with the same model, lexicon and options, and ended by safer_attacker_free.
 * Random choices depend on the seed and the text alone. */
typedef struct safer_attacker safer_attacker;
SAFER_API safer_status safer_attack_text(safer_attack_result *out, safer_attacker **attacker, const safer_model *model,
                                         const safer_lexicon *lexicon, const char *text, size_t length, int label,
                                         const safer_attack_options *options, safer_error *error);
SAFER_API void safer_attacker_free(safer_attacker *attacker);

/* A whole data set. */
typedef struct safer_attack_summary {
    size_t texts;
    size_t skipped;         /* already answered wrongly */
    size_t succeeded;       /* of those that were not */
    size_t without_choices; /* texts of which no word has a synonym */
    size_t limited;         /* attacks that ended because max_queries were used up */
    uint64_t changed;       /* words, over all successes */
    double changed_share;   /* sum over all successes of the share of the text's words */
    uint64_t queries, checks;
    double seconds; /* of this call */
    size_t resumed; /* records that were there already */
} safer_attack_summary;

/* Attacks every text and writes `output`, as safer_certify does: the configuration, then one
 * record per text, with the new text and its exchanged words. `output` may be NULL. */
SAFER_API safer_status safer_attack(safer_attack_summary *out, const char *output, int resume, const safer_model *model,
                                    const safer_lexicon *lexicon, const safer_data *data,
                                    const safer_attack_options *options, safer_error *error);

/* The cross-check: attacks on what a run of safer_certify certified. */
typedef struct safer_against_summary {
    size_t texts;            /* in the run */
    size_t certified;        /* at radius 1 or more: those are attacked */
    size_t exact;            /* of these, without sampling */
    size_t untouched;        /* certified, but no word has a synonym */
    size_t limited;          /* certified, but a search ended because max_queries were used up */
    size_t violations;       /* certified texts for which a new text was found that breaks the certificate */
    size_t violations_exact; /* of these, where the certificate claimed to be exact */
    size_t sampled;          /* texts of the run that were sampled, certified or not */
    double delta;            /* of a text of the run */
    double p_value;          /* of as many violations of sampled certificates, if delta holds; rounded up */
    int alarm;    /* delta does not explain the violations: any exact one, or p_value below SAFER_AGAINST_LEVEL */
    size_t flips; /* new texts on which the votes of a search went wrong, before the test on fresh draws */
    uint64_t queries, checks;
    double seconds;
    size_t resumed;
} safer_against_summary;

#define SAFER_AGAINST_LEVEL 0.001  /* of the alarm */
#define SAFER_VIOLATION_LEVEL 1e-6 /* of the test that makes a new text a violation, all methods together */

/* Attacks every certified text of the run `against` with every method, within its certified
 * radius, on what was certified: the smoothed classifier or, by interval bounds, the model itself.
 * The run's seals and decisions are checked first, and that model, lexicon and data are its own.
 * The best new text of each method is tested with fresh draws, as it would be when deployed; a violation
 * is one for which a test at level 1e-6 rejects that the certified class wins, or enumeration (for
 * the model itself: its answer) shows that it does not. The options method, smoothed, alpha and
 * radius are ignored. `output` may be NULL: no records. */
SAFER_API safer_status safer_attack_against(safer_against_summary *out, const char *against, const char *output,
                                            int resume, const safer_model *model, const safer_lexicon *lexicon,
                                            const safer_data *data, const safer_attack_options *options,
                                            safer_error *error);

/* -------------------------------------------------------------- comparisons */

/* A finished run of safer_certify or safer_attack, read back: its totals, and of every text
 * whether it held. That is: certified and answered, at the asked radius, for its own label; or answered
 * rightly before and after the attack. Seals and order of the records are checked, and the
 * decisions of certificates. */
typedef struct safer_run safer_run;
SAFER_API safer_status safer_run_read(safer_run **out, const char *path, safer_error *error);
SAFER_API void safer_run_free(safer_run *run);

/* The totals, which belong to the run, with `seconds` 0; NULL for a run of the other kind. */
SAFER_API const safer_summary *safer_run_certified(const safer_run *run);
SAFER_API const safer_attack_summary *safer_run_attacked(const safer_run *run);

SAFER_API size_t safer_run_size(const safer_run *run); /* texts */
SAFER_API int safer_run_held(const safer_run *run, size_t row);
SAFER_API const char *safer_run_id(const safer_run *run, size_t row); /* of the text; NULL beyond the last */

/* Why a text held or did not, of certificates: "certified and answered", "not certified", "abstained" or "answered as
 * another class"; of an attack NULL. */
SAFER_API const char *safer_run_outcome(const safer_run *run, size_t row);

/* Two runs on the same texts, text by text. */
typedef struct safer_comparison {
    size_t first, second;                          /* numbers of the runs */
    size_t both, only_first, only_second, neither; /* texts that held */
    double p_value;  /* McNemar's exact test: two-sided, binomial on the texts that held in one run only; rounded up */
    double adjusted; /* the same after Holm, for all pairs compared at once */
} safer_comparison;

/* Compares every two of `count` runs: out gets count (count - 1) / 2 of them, (0,1), (0,2),
 * ..., (1,2), .... The runs must be of one kind, one radius and one data set. */
SAFER_API safer_status safer_compare(safer_comparison *out, const safer_run *const *runs, size_t count,
                                     safer_error *error);

/* -------------------------------------------------------------------- gates */

/* What is required of a run, as continuous integration does. */
typedef enum safer_gate_kind {
    SAFER_GATE_ACCURACY, /* the headline (safer_summary_headline) is at least so much */
    SAFER_GATE_RECALL,   /* the certified recall of a class is */
    SAFER_GATE_NOT_WORSE /* a paired exact test does not say that fewer texts held than in a baseline */
} safer_gate_kind;
SAFER_NAMED(safer_gate_kind); /* "accuracy", "recall", "not-worse" */

/* A requirement, and whether it is met. Messages round no share up. */
typedef struct safer_gate {
    safer_gate_kind kind;
    int met;
    char name[200];     /* what is required, a few words: "certified recall of toxic" */
    char message[600];  /* one line: what was found, and what was required */
    size_t part, whole; /* texts that count, of so many; not worse: those lost, of those lost or gained */
    double value;       /* part / whole, or 0; not worse: the p-value, rounded up */
    double threshold;   /* value must be at least this; not worse: above it */
} safer_gate;

#define SAFER_NOT_WORSE_LEVEL 0.05 /* of the test: the chance that a run that is no worse fails */

/* A headline of at least `least`, from 0 to 1. Not met, whatever it is, where safer_summary_caution has something to
 * say. */
SAFER_API void safer_gate_accuracy(safer_gate *out, const safer_summary *summary, double least);

/* A certified recall of at least `least`. A class that no text has does not meet it, and a run in which most
 * certificates are empty meets none; SAFER_INVALID when the run has no such label. */
SAFER_API safer_status safer_gate_recall(safer_gate *out, const safer_summary *summary, const char *label, double least,
                                         safer_error *error);

/* McNemar's exact test, one-sided, on the texts that held in one of the runs only. Both are runs of certificates with
 * the same texts, labels, lexicon and radius, and the run's delta per text and its alpha are not larger than the
 * baseline's. */
SAFER_API safer_status safer_gate_not_worse(safer_gate *out, const safer_run *run, const safer_run *baseline,
                                            safer_error *error);

/* ------------------------------------------------------------------ reports */

typedef struct safer_report_options {
    size_t size;
    /* Records hold no texts. With the data of the runs the page shows them, and with the
     * lexicons of the runs their words. Each must belong to at least one of the runs. */
    const safer_data *data;               /* may be NULL */
    const safer_lexicon *const *lexicons; /* need data */
    size_t lexicon_count;
    const char *const *attacks; /* records of attacks on the runs' models and this data; need data */
    size_t attack_count;
    size_t texts;    /* shown, at most; 25000 */
    const char *svg; /* a folder, made when missing: the plots as files. May be NULL */
    const char *csv; /* a folder: runs.csv, radii.csv, classes.csv, confusion.csv, texts.csv. May be NULL */
    safer_progress progress;
} safer_report_options;

SAFER_OPTIONS(safer_report_options);

/* Writes an HTML page about finished runs, 1 to 16 files of records, to `output`: one file,
 * which needs no other and no network. Runs are checked as safer_verify does from records alone, and one that
 * does not hold is an error that names its line. NULL options mean the defaults;
 * `summaries`, when not NULL, gets one of every run, each of which ends with safer_summary_free. */
SAFER_API safer_status safer_report(safer_summary *summaries, const char *output, const char *const *runs,
                                    size_t run_count, const safer_report_options *options, safer_error *error);

/* ----------------------------------------------------------------- evidence */

/* A certified recall that is required. */
typedef struct safer_recall {
    const char *label;
    double least; /* 0 to 1 */
} safer_recall;

typedef struct safer_evidence_options {
    size_t size;
    /* With these the run is checked as safer_verify does, which says what may be NULL. */
    const safer_model *model;
    const safer_lexicon *lexicon;
    const safer_data *data;
    double require; /* the headline is at least this, 0 to 1; SAFER_DEFAULT: any */
    const safer_recall *recalls;
    size_t recall_count;
    const char *baseline;       /* a run: texts that held in it and do not any more are listed. May be NULL */
    const char *not_worse_than; /* the same, and the run may not be worse. May be NULL; not with baseline */
    const char *model_card;     /* a file of Markdown or JSON, whose name, version, license, tags and link of
                                 * the model are taken over unchecked; docs/evidence.md. May be NULL */
    int threads;                /* 0: all cores */
    safer_progress progress;
} safer_evidence_options;

SAFER_OPTIONS(safer_evidence_options);

/* Checks a run of certificates (format 2) and writes what other programs read about it into `folder`, which is
 * made when missing: safer_evidence_file names the files, docs/evidence.md says what is in them. Each is written whole
 * or not at all, and the same inputs give the same bytes. `gates`, when not NULL, gets the requirements: of the
 * headline, of recalls in their order, of the comparison, as far as the options state them. Requirements that
 * are not met are no error. */
SAFER_API safer_status safer_evidence(safer_gate *gates, const char *folder, const char *run,
                                      const safer_evidence_options *options, safer_error *error);

/* "bom.cdx.json" (CycloneDX), "statement.intoto.json" (in-toto), "results.sarif" (SARIF), "junit.xml" (JUnit),
 * "summary.md" (Markdown); NULL beyond the last. */
SAFER_API const char *safer_evidence_file(size_t number);

/* ------------------------------------------------------------------ serving */

/* An HTTP server that predicts and certifies; docs/serve.md is its contract. */
typedef struct safer_server safer_server;

typedef struct safer_serve_options {
    size_t size;
    int fixed_seed;    /* use the seed of `certify` and show it to clients; else it is random and a secret */
    const char *host;  /* an address to bind to; "127.0.0.1" */
    uint16_t port;     /* 0: any free one; 8080 */
    const char *token; /* bearer token that clients must send, 16 visible ASCII characters or more; NULL: no token */
    int without_token; /* allows an address that is not loopback without a token */
    size_t max_body, max_text; /* bytes; 1048576 and 100000 */
    size_t max_texts;          /* of a request; 64 */
    size_t queue;              /* texts that wait, at most; 1024 */
    size_t connections;        /* open at a time; 1024 */
    double deadline;           /* seconds until a request must be answered; 30 */
    double patience;           /* seconds in which a whole request must arrive, and an answer be received; 20 */
    int log_texts;             /* the log holds the texts too */
    /* Takes a line of JSON about every request, from a thread of the server; may be NULL. */
    void (*log)(void *context, const char *line);
    void *log_context;
    /* Of one client, which is an address (of IPv6, a /64; 127.0.0.1 and ::1 are not counted): */
    size_t client_connections; /* open at a time; 0: any number; 256 */
    double client_rate;        /* requests per second, on average over a second; 0: any number; 0 */
} safer_serve_options;

SAFER_OPTIONS(safer_serve_options);

/* Starts to serve, with threads of its own. Model and lexicon must outlive it, or be replaced. `certify` says how texts
 * are certified; its threads are the texts worked on at a time, and its seed (unless fixed_seed),
 * unlabelled, family_wise and progress have no effect. NULL options, of both, mean the defaults. */
SAFER_API safer_status safer_server_start(safer_server **out, const safer_model *model, const safer_lexicon *lexicon,
                                          const safer_certify_options *certify, const safer_serve_options *options,
                                          safer_error *error);

/* "http://127.0.0.1:8080", and the port in it. */
SAFER_API const char *safer_server_url(const safer_server *server);
SAFER_API uint16_t safer_server_port(const safer_server *server);

/* Serves another model and lexicon from now on: requests that come later are answered with them, those that came
 * earlier with the old pair. Returns when none of these is left, so that the old pair may be freed; that takes no
 * longer than the deadline, or the model's last answer. The options stay as they were at the start, and so does the
 * seed. On failure nothing has changed, and the new pair may be freed. May be called from any thread, but not at the
 * same time as safer_server_stop. */
SAFER_API safer_status safer_server_reload(safer_server *server, const safer_model *model, const safer_lexicon *lexicon,
                                           safer_error *error);

/* Accepts no more connections, answers what was asked on those it has, and ends. Takes no longer
 * than deadline and patience together. NULL is accepted. */
SAFER_API void safer_server_stop(safer_server *server);

#ifdef __cplusplus
}
#endif
#endif
