/* Classifiers: opened, made of a function, asked. Part of safer.h, which says what holds throughout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAFER_MODEL_H
#define SAFER_MODEL_H

#include "safer/lexicon.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A classifier. The answer of those made here is a function of the text alone. */
typedef struct safer_model safer_model;

/* Loads a model file written by safer_train, or a directory as HuggingFace has them: a classifier of
 * the kind of BERT (config.json, the tokenizer's files, model.safetensors; docs/models.md lists which), or a sum
 * of models (a file of JSON). */
#define SAFER_SUM_MEMBERS 64 /* of a sum, at most */
SAFER_API safer_status safer_model_open(safer_model **out, const char *path, safer_error *error);
SAFER_API void safer_model_free(safer_model *model);

/* The arithmetic of answers and of training. */
typedef enum safer_precision {
    SAFER_PRECISION_BF16,    /* fast */
    SAFER_PRECISION_F32,     /* exact to about 1e-5 */
    SAFER_PRECISION_PORTABLE /* as f32, and slower, with the same bits on every machine; not for training */
} safer_precision;
SAFER_NAMED(safer_precision); /* "bf16", "f32", "portable" */

/* How to compute from now on. bert, charcnn and context, and sums with such members, are opened with
 * bf16 and have the choice; ngram, bow and cnn are always portable, and refuse the other two. Not while the
 * model is in use, or a workspace made with it is kept. The answers of two arithmetics may differ in
 * rare, nearly even cases; which have the same bits is in docs/models.md. */
SAFER_API safer_status safer_model_set_precision(safer_model *model, safer_precision precision, safer_error *error);

/* Computes on a device from now on: "cpu"; "cuda", all GPUs there are, or "cuda:N", one; "auto", GPUs where there are
 * any that this build can use for this model, else the CPU. For a `bert` or `charcnn`, the encoder of a `context`, and
 * the members of a sum that are one. Nobody may be asking the model at the same time, and no workspace of it outlives
 * the change. */
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

/* "ngram", "bow", "cnn", "charcnn", "bert", "context", "sum", "exec", "http" or "callback". */
SAFER_API const char *safer_model_arch(const safer_model *model);

/* What records call the model: the last part of its path, or the model_name of a remote one, "" without; and its
 * SHA-256: of its file, what sha256sum prints; of a directory's files or a sum's members, docs/models.md; "" of a
 * remote one. Both live as long as the model. */
SAFER_API const char *safer_model_name(const safer_model *model);
SAFER_API const char *safer_model_sha256(const safer_model *model);

/* The arithmetic in which it answers here, as records name it ("portable", "bf16 avx512"); NULL: a remote model's. */
SAFER_API const char *safer_model_arithmetic(const safer_model *model);

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
 * Called from one thread at a time, unless `concurrency` allows more: by a run from the thread that called
 * safer_certify, safer_verify or safer_attack, else from any. A call may hold draws of many texts. */
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

/* Makes one model file of the checkpoint of an encoder. INPUT is a folder as HuggingFace
 * has them (config.json, vocab.txt or tokenizer.json, and the weights as safetensors or
 * ONNX), or an .onnx file with the rest beside it or in the folder above. Without a
 * classifier in it, the file can be trained from, not asked. OUTPUT is written whole or
 * not at all. */
SAFER_API safer_status safer_model_convert(const char *output, const char *input, safer_error *error);

/* Makes one model file of several BERT models that were fine-tuned from the same encoder: the
 * mean of their parameters. It often errs less than each of them. */
SAFER_API safer_status safer_model_average(const char *output, const char *const *inputs, size_t count,
                                           safer_error *error);

#ifdef __cplusplus
}
#endif
#endif
