/* What all classifiers share: opening a file by its architecture, labels and how those of data map to them, batches,
 * digests and names. model.h has the interface. */
#define _GNU_SOURCE
#include "model/model.h"

#include "base/elementary.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "model/arithmetic.h"
#include "model/sum.h"
#include "nn/device.h"
#include "text/name.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

safer_status sf_model_probe(const safer_model *model, const sf_span *texts, size_t count, safer_error *error)
{
    return model->class->probe ? model->class->probe(model, texts, count, error) : SAFER_OK;
}

int sf_model_answer(float *scores, const int64_t *totals, size_t K, int bits)
{
    size_t best = 0;
    double sum = 0;
    for (size_t k = 1; k < K; k++)
        if (totals[k] > totals[best]) best = k;
    if (scores) {
        for (size_t k = 0; k < K; k++) sum += sf_exp(ldexp((double)(totals[k] - totals[best]), -bits));
        for (size_t k = 0; k < K; k++)
            scores[k] = (float)(sf_exp(ldexp((double)(totals[k] - totals[best]), -bits)) / sum);
    }
    return (int)best;
}

typedef struct hosted {
    int threads;
    size_t count, grain;
    sf_task task;
    void *context;
} hosted;

static void do_hosted(void *context)
{
    const hosted *h = context;
    sf_parallel(h->threads, h->count, h->grain, h->task, h->context);
}

void sf_model_parallel(const safer_model *model, int threads, size_t count, size_t grain, sf_task task, void *context)
{
    hosted h = {threads, count, grain, task, context};
    if (model && model->class->host)
        model->class->host(model, do_hosted, &h);
    else
        do_hosted(&h);
}

int sf_model_is_random(const safer_model *model) { return model->class->is_random && model->class->is_random(model); }

void sf_model_set_random(const safer_model *model)
{
    if (model->class->set_random) model->class->set_random(model);
}

int sf_model_is_remote(const safer_model *model) { return model->class->confirm != NULL; }

uint64_t sf_model_asks(const safer_model *model) { return sf_model_is_remote(model) ? 2 : 1; }

safer_status sf_model_confirm(const safer_model *model, const sf_span *texts, const int *answers, size_t count,
                              void *scratch, safer_error *error)
{
    if (!sf_model_is_remote(model) || sf_model_is_random(model)) return SAFER_OK;
    return model->class->confirm(model, texts, answers, count, scratch, error);
}

safer_status sf_model_identify(const safer_model *model, safer_error *error)
{
    return sf_model_is_remote(model) ? model->class->identify(model, error) : SAFER_OK;
}

const char *sf_model_probe_digest(const safer_model *model)
{
    return sf_model_is_remote(model) && !sf_model_is_random(model) ? model->class->probe_digest(model) : "";
}

safer_status sf_model_check_name(const safer_model *model, const char *why, safer_error *error)
{
    if (!sf_model_is_remote(model) || model->name) return SAFER_OK;
    return sf_fail(error, SAFER_INVALID, "`model_name`: a remote model needs a name %s", why);
}

void sf_model_clear(safer_model *model)
{
    for (size_t i = 0; model->labels && i < model->classes; i++) free(model->labels[i]);
    free(model->labels);
    free(model->trained_with);
    free(model->name);
    model->labels = NULL;
    model->name = NULL;
    model->trained_with = NULL;
    model->classes = 0;
}

safer_status sf_model_json(json_t **out, const char *bytes, size_t length, size_t flags, const char *name,
                           safer_error *error)
{
    json_error_t problem = {0};
    if (length == 0) return sf_fail(error, SAFER_INPUT, "%s: JSON was expected, but nothing is there", name);
    const safer_status status = sf_json_parse(out, bytes, length, JSON_DECODE_INT_AS_REAL | flags, &problem);
    if (status == SAFER_OK) return SAFER_OK;
    if (status == SAFER_MEMORY) return sf_fail_memory(error);
    return sf_fail(error, SAFER_INPUT, "%s: no JSON, line %d: %s", name, problem.line, problem.text);
}

static safer_status read_labels(safer_model *model, const json_t *list, const char *file, safer_error *error)
{
    size_t count = json_array_size(list);
    if (count < 2)
        return sf_fail(error, SAFER_INPUT, "%s: the metadata \"labels\" must be a JSON list of at least two names",
                       file);
    model->labels = sf_calloc(count, sizeof *model->labels);
    if (!model->labels) return sf_fail_memory(error);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name)
            return sf_fail(error, SAFER_INPUT, "%s: item %zu of the metadata \"labels\" is not a string", file, i + 1);
        for (size_t j = 0; j < i; j++)
            if (strcmp(model->labels[j], name) == 0)
                return sf_fail(error, SAFER_INPUT, "%s: the label \"%s\" occurs twice in the metadata", file, name);
        if (!(model->labels[i] = sf_strdup(name))) return sf_fail_memory(error);
        model->classes = i + 1;
    }
    return SAFER_OK;
}

safer_status sf_model_read_common(safer_model *model, const sf_safetensors *file, safer_error *error)
{
    const char *name = sf_safetensors_name(file), *labels = sf_safetensors_metadata(file, "labels");
    const char *trained_with = sf_safetensors_metadata(file, "trained_with");
    json_error_t problem;
    if (!labels) return sf_fail(error, SAFER_INPUT, "%s: the metadata have no \"labels\"", name);
    json_t *list;
    safer_status status = sf_json_parse(&list, labels, strlen(labels), 0, &problem);
    if (status == SAFER_MEMORY) return sf_fail_memory(error);
    status = read_labels(model, list, name, error); /* no JSON is no list either */
    json_decref(list);
    if (status != SAFER_OK) return status;
    model->hash = sf_safetensors_hash(file);
    status = sf_safetensors_sha256(&model->sha256, file, error);
    if (status != SAFER_OK) return status;
    model->arithmetic = SF_PORTABLE_NAME; /* unless its class says otherwise */
    if (trained_with && !(model->trained_with = sf_strdup(trained_with))) return sf_fail_memory(error);
    return SAFER_OK;
}

static safer_status open_model(safer_model **out, const char *path, safer_error *error)
{
    sf_safetensors *file = NULL;
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return sf_bert_open(out, path, error);
    if (sf_sum_is(path)) return sf_sum_open(out, path, error);
    safer_status status = sf_safetensors_open(&file, path, error);
    if (status != SAFER_OK) return status;
    const char *arch = sf_safetensors_metadata(file, "arch");
    if (!arch) {
        status = sf_fail(error, SAFER_INPUT,
                         "%s: the metadata have no \"arch\": it is not a model written by safer train", path);
    } else if (strcmp(arch, "ngram") == 0) {
        status = sf_ngram_open(out, file, error);
    } else if (strcmp(arch, "bow") == 0 || strcmp(arch, "cnn") == 0) {
        status = sf_cnn_open(out, file, error);
        if (status == SAFER_OK) file = NULL; /* the model's now */
    } else if (strcmp(arch, "charcnn") == 0) {
        status = sf_charcnn_open(out, file, error);
        if (status == SAFER_OK) file = NULL;
    } else if (strcmp(arch, "bert") == 0) {
        status = sf_bert_open(out, path, error);
    } else if (strcmp(arch, "context") == 0) {
        status = sf_context_open(out, file, error);
    } else {
        status = sf_fail(
            error, SAFER_INPUT,
            "%s: a model of architecture \"%.40s\"; ngram, bow, cnn, charcnn, bert and context can be opened", path,
            arch);
    }
    sf_safetensors_free(file);
    return status;
}

safer_status safer_model_open(safer_model **out, const char *path, safer_error *error)
{
    safer_model *model = NULL;
    fenv_t before;
    sf_plain_arithmetic(&before);
    safer_status status = open_model(&model, path, error);
    fesetenv(&before);
    if (status == SAFER_OK && !(model->name = sf_path_name(path))) status = sf_fail_memory(error);
    if (status == SAFER_OK)
        *out = model;
    else
        safer_model_free(model);
    return status;
}

safer_status safer_model_set_device(safer_model *model, const char *device, safer_error *error)
{
    sf_device_wish wish;
    const safer_status status = sf_device_parse(&wish, device, error);
    if (status != SAFER_OK) return status;
    if (model->class->set_device) return model->class->set_device(model, device, error);
    if (wish.kind != SF_DEVICE_CUDA) return SAFER_OK;
    return sf_fail(error, SAFER_INVALID, "`device` is \"%s\", but a model of the kind %s is computed on the CPU alone",
                   device, model->class->arch);
}

safer_status safer_model_set_precision(safer_model *model, safer_precision precision, safer_error *error)
{
    fenv_t before;
    if (!safer_precision_name(precision)) return sf_fail(error, SAFER_INVALID, "`precision`: unknown");
    if (model->class->set_precision) {
        sf_plain_arithmetic(&before);
        const safer_status status = model->class->set_precision(model, precision, error);
        fesetenv(&before);
        return status;
    }
    if (!model->arithmetic)
        return sf_fail(error, SAFER_INVALID, "`precision`: a model of architecture %s has none of its own",
                       model->class->arch);
    if (precision == SAFER_PRECISION_PORTABLE) return SAFER_OK;
    return sf_fail(error, SAFER_INVALID, "`precision`: a model of architecture %s is always portable",
                   model->class->arch);
}

void safer_model_free(safer_model *model)
{
    if (model) model->class->free(model);
}

const char *safer_model_arch(const safer_model *model) { return model->class->arch; }
const char *safer_model_arithmetic(const safer_model *model) { return model->arithmetic; }

const char *safer_model_sha256(const safer_model *model) { return model->sha256.hex; }
const char *safer_model_name(const safer_model *model) { return model->name ? model->name : ""; }
size_t safer_model_class_count(const safer_model *model) { return model->classes; }
const char *safer_model_label(const safer_model *model, size_t label) { return model->labels[label]; }
const char *safer_model_trained_with(const safer_model *model) { return model->trained_with; }

int safer_model_trained_on(const safer_model *model, const safer_lexicon *lexicon)
{
    json_t *with = model->trained_with ? json_loads(model->trained_with, 0, NULL) : NULL;
    const char *sha256 = json_string_value(json_object_get(with, "lexicon_sha256"));
    const char *hash = json_string_value(json_object_get(with, "lexicon")); /* all that version 0.1.0 wrote */
    char ours[17];
    snprintf(ours, sizeof ours, "%016llx", (unsigned long long)sf_lexicon_hash(lexicon));
    const int same = sha256 ? strcmp(sha256, lexicon->sha256.hex) == 0 : hash ? strcmp(hash, ours) == 0 : -1;
    json_decref(with);
    return same;
}

/* ---------------------------------------------------------------- answering */

safer_status sf_model_classify(const safer_model *model, const sf_span *texts, size_t count, int *labels, float *scores,
                               void *scratch, safer_error *error)
{
    fenv_t before;
    if (!model->arithmetic) return model->class->classify(model, texts, count, labels, scores, scratch, error);
    sf_plain_arithmetic(&before);
    const safer_status status = model->class->classify(model, texts, count, labels, scores, scratch, error);
    fesetenv(&before);
    return status;
}

safer_status sf_model_sample(const safer_model *model, const void *prepared, const uint32_t *draws, size_t count,
                             int *labels, void *scratch, safer_error *error)
{
    fenv_t before;
    sf_plain_arithmetic(&before);
    const safer_status status = model->class->sample(model, prepared, draws, count, labels, scratch, error);
    fesetenv(&before);
    return status;
}

safer_status safer_model_classify(const safer_model *model, const char *const *texts, const size_t *lengths,
                                  size_t count, int *labels, float *scores, safer_error *error)
{
    safer_status status = SAFER_OK;
    void *scratch = NULL;
    sf_span *spans = sf_alloc(count, sizeof *spans);
    if (!spans) return sf_fail_memory(error);
    for (size_t i = 0; i < count; i++) spans[i] = (sf_span){texts[i], lengths[i]};
    if (model->class->scratch_new) SF_TRY(model->class->scratch_new(model, &scratch, error));
    SF_TRY(sf_model_classify(model, spans, count, labels, scores, scratch, error));
done:
    if (scratch) model->class->scratch_free(scratch);
    free(spans);
    return status;
}

safer_status sf_map_labels(int **out, const safer_model *model, const safer_data *data, safer_error *error)
{
    size_t count = safer_data_label_count(data);
    int *classes = sf_alloc(count, sizeof *classes);
    if (!classes) return sf_fail_memory(error);
    for (size_t i = 0; i < count; i++) {
        classes[i] = -1;
        for (size_t k = 0; k < model->classes; k++)
            if (strcmp(safer_data_label(data, i), model->labels[k]) == 0) classes[i] = (int)k;
        if (classes[i] < 0) {
            sf_buffer known = {0};
            for (size_t k = 0; k < model->classes && known.length < 200; k++)
                (void)sf_buffer_format(&known, "%s%s", k ? ", " : "", model->labels[k]);
            sf_fail(error, SAFER_INPUT,
                    "the data has the label \"%s\", which the model does not know (it knows: %s); `labels` "
                    "0=NAME gives the label 0 another name",
                    safer_data_label(data, i), known.bytes ? known.bytes : "none");
            sf_buffer_free(&known);
            free(classes);
            return SAFER_INPUT;
        }
    }
    *out = classes;
    return SAFER_OK;
}
