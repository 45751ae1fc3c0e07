/* The one interface of all classifiers: classify a batch.
 *
 * A model is a function of the text alone: its answer depends on nothing that shares
 * the batch, on no thread and on no earlier call. Models that can take draws directly
 * offer a fast path; its answers equal those for the rendered texts, exactly. */
#ifndef SF_MODEL_MODEL_H
#define SF_MODEL_MODEL_H

#include "base/parallel.h"
#include "base/sha256.h"
#include "draw/slots.h"
#include "nn/safetensors.h"

#include <jansson.h>

#define SF_NO_LABEL (-1) /* the model gave no usable answer: a vote for "none" */

typedef struct sf_model_class {
    const char *arch; /* "ngram", "bow", "cnn", ... */

    /* labels[i] = class of texts[i]; scores, when not NULL, gets (count, classes)
     * probabilities. `scratch` is the calling thread's own. */
    safer_status (*classify)(const safer_model *model, const sf_span *texts, size_t count, int *labels, float *scores,
                             void *scratch, safer_error *error);

    /* The fast path, all three or none. prepare: once per text; the result may be used by
     * several threads at once. sample: draws (count, slots) as in sf_slots_render. */
    safer_status (*prepare)(const safer_model *model, const safer_lexicon *lexicon, const sf_slots *slots,
                            void **prepared, safer_error *error);
    safer_status (*sample)(const safer_model *model, const void *prepared, const uint32_t *draws, size_t count,
                           int *labels, void *scratch, safer_error *error);
    void (*release)(void *prepared);
    /* How many slots, from the first on, an answer can depend on, over all draws of the text
     * and of every text with words exchanged for synonyms; NULL: all. */
    size_t (*visible)(const void *prepared);
    int deletes; /* the fast path takes draws that delete tokens too, of texts that are split (sf_slots_split) */

    /* Working memory of one thread, reused from call to call. May be NULL functions. */
    safer_status (*scratch_new)(const safer_model *model, void **scratch, safer_error *error);
    void (*scratch_free)(void *scratch);

    void (*free)(safer_model *model);

    /* Remote models, which may answer the same text differently: all of these; else NULL. What they
     * find out is kept behind the model, which itself never changes; any threads may call them at
     * once. probe: asks some of these texts twice, unless that was done before; threads that come
     * meanwhile wait for what it finds. is_random: such an answer was seen, or
     * set_random was called. The others: see sf_model_confirm and sf_model_identify. */
    safer_status (*probe)(const safer_model *model, const sf_span *texts, size_t count, safer_error *error);
    int (*is_random)(const safer_model *model);
    void (*set_random)(const safer_model *model);
    safer_status (*confirm)(const safer_model *model, const sf_span *texts, const int *answers, size_t count,
                            void *scratch, safer_error *error);
    safer_status (*identify)(const safer_model *model, safer_error *error);
    const char *(*probe_digest)(const safer_model *model);

    /* Does `work` while this thread makes all calls of the model, when it wants that; NULL: any thread may. */
    void (*host)(const safer_model *model, void (*work)(void *context), void *context);

    /* Computes in this arithmetic from now on; NULL: there is no choice. */
    safer_status (*set_precision)(safer_model *model, safer_precision precision, safer_error *error);
    /* Computes on these devices from now on, "cpu" or as sf_device_choose has them; NULL: on the CPU alone. */
    safer_status (*set_device)(safer_model *model, const char *device, safer_error *error);
} sf_model_class;

/* Every model begins with this. */
struct safer_model {
    const sf_model_class *class;
    size_t classes;
    char **labels;          /* names, in the order of the class numbers; owned */
    uint64_t hash;          /* of the model file: what names it in runs of format 1 */
    sf_digest sha256;       /* of its file, its folder or its sum; remote: none */
    const char *arithmetic; /* the name of the bits of its answers (model/arithmetic.h); NULL: a remote model's */
    int concurrency;        /* threads that it gains by being asked from; 0: as many as there are cores */
    int calls;              /* calls that it gains by having at once; 0: as many as there are cores */
    size_t group;           /* texts worked on together: more at a time gain nothing. 0: the more the better */
    char *trained_with;     /* provenance: JSON with the lexicon's hash and kernel, or NULL; owned */
    char *name;             /* what records call it; remote: may be NULL; owned */
    int function;           /* remote: declared to be a function of the text */
};

/* What models do that compute here (all but remote ones) they do in plain arithmetic (base/number.h),
 * whatever the caller's is: opening, and these two, which everybody calls in place of the class's own.
 * The parameters are those of the class. */
safer_status sf_model_classify(const safer_model *model, const sf_span *texts, size_t count, int *labels, float *scores,
                               void *scratch, safer_error *error);
safer_status sf_model_sample(const safer_model *model, const void *prepared, const uint32_t *draws, size_t count,
                             int *labels, void *scratch, safer_error *error);

/* sf_parallel for a task that asks the model: one that must be called by the caller's thread alone (Python's) is, while
 * other threads do the task. NULL: it asks none. */
void sf_model_parallel(const safer_model *model, int threads, size_t count, size_t grain, sf_task task, void *context);

/* Finds out, once, whether the model answers these texts the same way twice; a built-in one does.
 * Any thread. An error is the model's, and then the next call tries again. */
safer_status sf_model_probe(const safer_model *model, const sf_span *texts, size_t count, safer_error *error);

/* Whether it answers the same text differently, as far as is known: then there is no exact claim.
 * Any thread; once 1, always 1. */
int sf_model_is_random(const safer_model *model);

/* From now on it is taken to do so, as it did in a run that is resumed. Any thread; built-in models
 * stay what they are. */
void sf_model_set_random(const safer_model *model);

/* What an exact certificate of a remote model assumes, in records and answers. */
#define SF_ASSUMES_FUNCTION "the model is a function of the text"

/* Whether only its answers are known: a program, a service, a function of the caller. */
int sf_model_is_remote(const safer_model *model);

/* How often each text behind an exact certificate is asked: a built-in model once, a remote one twice. */
uint64_t sf_model_asks(const safer_model *model);

/* The second time: answers[i] is what texts[i] got, in a request with other texts. It is asked in a request of
 * its own or in one with those of this call, and no cache is looked into. Another answer is SAFER_INPUT, and the
 * model counts as random from then on. Nothing is asked of a built-in model, or of one that is random already. */
safer_status sf_model_confirm(const safer_model *model, const sf_span *texts, const int *answers, size_t count,
                              void *scratch, safer_error *error);

/* Before a run: asks a remote model about the probe set (remote/probe.h), twice, once per model. One that
 * changes an answer is random from then on, or, where it was declared a function, an error. Then there is a digest
 * of the answers, 64 hexadecimal digits; "" when the model is random, built-in or was not asked yet. */
safer_status sf_model_identify(const safer_model *model, safer_error *error);
const char *sf_model_probe_digest(const safer_model *model);

/* What a model that adds up whole numbers of 2^-bits answers: the class with the greatest total (K), the first of equal
 * ones; scores (K), when not NULL, get the probabilities whose logarithms these are. */
int sf_model_answer(float *scores, const int64_t *totals, size_t K, int bits);

/* SAFER_INVALID when a remote model has no name; `why` begins the message's second half, as "to write records". */
safer_status sf_model_check_name(const safer_model *model, const char *why, safer_error *error);

/* Frees the common part. */
void sf_model_clear(safer_model *model);

/* Sets the labels from a JSON array in the file's metadata "labels" (checks there are at
 * least two, distinct), both digests, and trained_with from the metadata "trained_with". Clears
 * nothing on failure: the caller's sf_model_clear does. */
safer_status sf_model_read_common(safer_model *model, const sf_safetensors *file, safer_error *error);

/* JSON with numbers as reals, so that whole ones may be of any size; `flags` are jansson's, besides.
 * The error names file and line. */
safer_status sf_model_json(json_t **out, const char *bytes, size_t length, size_t flags, const char *name,
                           safer_error *error);

/* Of every label of the data, the model's class. The caller frees it. */
safer_status sf_map_labels(int **out, const safer_model *model, const safer_data *data, safer_error *error);

/* Loaders, by the metadata "arch". */
safer_status sf_ngram_open(safer_model **out, const sf_safetensors *file, safer_error *error);
safer_status sf_cnn_open(safer_model **out, sf_safetensors *file,
                         safer_error *error); /* bow and cnn; takes the file over on success only */
safer_status sf_charcnn_open(safer_model **out, sf_safetensors *file, safer_error *error); /* likewise */
safer_status sf_bert_open(safer_model **out, const char *path,
                          safer_error *error); /* a file or a HuggingFace directory */
safer_status sf_context_open(safer_model **out, const sf_safetensors *file, safer_error *error);

#endif
