/* The tensors of a BERT checkpoint: names, shapes, values. */
#include "model/bert_names.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* --------------------------------------------------------------------- names */

static const char *const prefixes[] = {"module.", "model.", "0.auto_model.", "bert.", "distilbert."};

static const struct {
    const char *distil, *bert;
} parts[] = {
    {"attention.q_lin.", "attention.self.query."},
    {"attention.k_lin.", "attention.self.key."},
    {"attention.v_lin.", "attention.self.value."},
    {"attention.out_lin.", "attention.output.dense."},
    {"sa_layer_norm.", "attention.output.LayerNorm."},
    {"ffn.lin1.", "intermediate.dense."},
    {"ffn.lin2.", "output.dense."},
    {"output_layer_norm.", "output.LayerNorm."},
};
enum { PARTS = sizeof parts / sizeof *parts };

static const char bert_layer[] = "encoder.layer.", distil_layer[] = "transformer.layer.";
static const char bert_pooler[] = "pooler.dense.", distil_pooler[] = "pre_classifier.";

/* What follows a prefix, or NULL. */
static const char *after(const char *name, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 ? name + length : NULL;
}

static const char *strip(const char *name)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const char *rest = after(name, prefixes[i]);
        if (rest) {
            name = rest;
            i = SIZE_MAX; /* they may be nested: from the first again */
        }
    }
    return name;
}

/* "transformer.layer.N.PART" with BERT's words, or as it is. Returns what snprintf does. */
static int from_distil(char out[96], const char *name)
{
    const char *rest = after(name, distil_pooler);
    if (rest) return snprintf(out, 96, "%s%s", bert_pooler, rest);
    const char *number = after(name, distil_layer);
    if (number) {
        size_t digits = strspn(number, "0123456789");
        for (int i = 0; i < PARTS && number[digits] == '.'; i++)
            if ((rest = after(number + digits + 1, parts[i].distil)))
                return snprintf(out, 96, "%s%.*s.%s%s", bert_layer, (int)digits, number, parts[i].bert, rest);
    }
    return snprintf(out, 96, "%s", name);
}

/* The other way, for messages. */
static void to_distil(char out[160], const char *name)
{
    const char *rest = after(name, bert_pooler);
    const char *number = after(name, bert_layer);
    snprintf(out, 160, "%s%s", rest ? distil_pooler : "", rest ? rest : name);
    if (!number) return;
    size_t digits = strspn(number, "0123456789");
    for (int i = 0; i < PARTS; i++)
        if ((rest = after(number + digits + 1, parts[i].bert)))
            snprintf(out, 160, "%s%.*s.%s%s", distil_layer, (int)digits, number, parts[i].distil, rest);
}

static void replace_end(char *name, const char *old, const char *new)
{
    size_t length = strlen(name), cut = strlen(old);
    if (length >= cut && strcmp(name + length - cut, old) == 0)
        snprintf(name + length - cut, 96 - (length - cut), "%s", new);
}

int sf_bert_canonical(char out[96], const char *name)
{
    if (strlen(name) > 4096) return -1;
    int length = from_distil(out, strip(name));
    if (length < 0 || length > 94) return -1; /* "beta" grows by nothing, "gamma" by one */
    replace_end(out, "LayerNorm.gamma", "LayerNorm.weight");
    replace_end(out, "LayerNorm.beta", "LayerNorm.bias");
    return 0;
}

/* -------------------------------------------------------------------- source */

safer_status sf_bert_source_add(sf_bert_source *source, const sf_tensor *tensor, const char *name, const char *file,
                                int transposed, safer_error *error)
{
    sf_bert_found found = {.tensor = *tensor, .file = file, .transposed = transposed};
    if (sf_bert_canonical(found.name, name)) return SAFER_OK;
    if (!after(found.name, "embeddings.") && !after(found.name, bert_layer) && !after(found.name, bert_pooler) &&
        !after(found.name, "classifier."))
        return SAFER_OK;
    if (sf_grow(&source->found, &source->capacity, source->count + 1, sizeof *source->found))
        return sf_fail_memory(error);
    source->found[source->count++] = found;
    return SAFER_OK;
}

safer_status sf_bert_source_add_file(sf_bert_source *source, const sf_safetensors *file, safer_error *error)
{
    safer_status status = SAFER_OK;
    for (size_t i = 0; i < sf_safetensors_count(file) && status == SAFER_OK; i++) {
        const sf_tensor *tensor = sf_safetensors_at(file, i);
        status = sf_bert_source_add(source, tensor, tensor->name, sf_safetensors_name(file), 0, error);
    }
    return status;
}

static int by_name(const void *a, const void *b)
{
    const sf_bert_found *x = a, *y = b;
    return strcmp(x->name, y->name);
}

safer_status sf_bert_source_sort(sf_bert_source *source, safer_error *error)
{
    if (source->count) qsort(source->found, source->count, sizeof *source->found, by_name);
    for (size_t i = 1; i < source->count; i++) {
        const sf_bert_found *a = &source->found[i - 1], *b = &source->found[i];
        if (strcmp(a->name, b->name) == 0)
            return sf_fail(error, SAFER_INPUT, "%s: tensors \"%.200s\" and \"%.200s\" are both the model's \"%s\"",
                           source->name, a->tensor.name, b->tensor.name, a->name);
    }
    return SAFER_OK;
}

const sf_bert_found *sf_bert_source_find(const sf_bert_source *source, const char *name)
{
    size_t low = 0, high = source->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(source->found[middle].name, name);
        if (order == 0) return &source->found[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void sf_bert_source_free(sf_bert_source *source)
{
    free(source->found);
    *source = (sf_bert_source){0};
}

/* "[3, 4]" */
static void describe(char *out, size_t size, size_t rank, const size_t *shape)
{
    size_t length = (size_t)snprintf(out, size, "[");
    for (size_t i = 0; i < rank; i++)
        length += (size_t)snprintf(out + length, size - length, "%s%zu", i ? ", " : "", shape[i]);
    snprintf(out + length, size - length, "]");
}

static safer_status check(const sf_bert_source *source, const sf_bert_tensor *wanted, safer_error *error)
{
    const sf_bert_found *found = sf_bert_source_find(source, wanted->name);
    if (!found) {
        char name[160];
        to_distil(name, wanted->name);
        return sf_fail(error, SAFER_INPUT, "%s: there is no tensor \"%s\"", source->name,
                       source->distil ? name : wanted->name);
    }
    const sf_tensor *t = &found->tensor;
    size_t shape[2] = {wanted->shape[found->transposed], wanted->shape[!found->transposed]};
    if (t->rank != wanted->rank || t->shape[0] != shape[0] || (t->rank == 2 && t->shape[1] != shape[1])) {
        char is[200], not [200];
        describe(is, sizeof is, t->rank, t->shape);
        describe(not, sizeof not, wanted->rank, shape);
        return sf_fail(error, SAFER_INPUT, "%s: the shape of tensor \"%.200s\" is %s, not %s", found->file, t->name, is,
                       not );
    }
    if (t->type != SF_F32 && t->type != SF_F16 && t->type != SF_BF16 && t->type != SF_F64)
        return sf_fail(error, SAFER_INPUT,
                       "%s: the values of tensor \"%.200s\" are whole numbers; F32, F16, BF16 or F64 are needed",
                       found->file, t->name);
    return SAFER_OK;
}

safer_status sf_bert_source_check(const sf_bert_source *source, const sf_bert_layout *layout, safer_error *error)
{
    safer_status status = SAFER_OK;
    for (size_t i = 0; i < layout->tensor_count && status == SAFER_OK; i++)
        status = check(source, &layout->tensors[i], error);
    return status;
}

/* out (N, M) = in (M, N) transposed, in blocks that stay in the cache */
static void transpose(float *out, const float *in, size_t M, size_t N)
{
    enum { BLOCK = 32 };
    for (size_t i = 0; i < M; i += BLOCK)
        for (size_t j = 0; j < N; j += BLOCK)
            for (size_t a = i; a < M && a < i + BLOCK; a++)
                for (size_t b = j; b < N && b < j + BLOCK; b++) out[b * M + a] = in[a * N + b];
}

static safer_status load(float *out, const sf_bert_found *found, float *scratch, safer_error *error)
{
    const sf_tensor *t = &found->tensor;
    safer_status status = sf_tensor_floats(found->transposed ? scratch : out, t, found->file, error);
    if (status == SAFER_OK && found->transposed) transpose(out, scratch, t->shape[0], t->shape[1]);
    return status;
}

safer_status sf_bert_source_load(float **parameters, const sf_bert_source *source, const sf_bert_layout *layout,
                                 safer_error *error)
{
    safer_status status;
    float *values = NULL, *scratch = NULL;
    size_t most = 0;
    /* Shapes before memory: a configuration that the tensors contradict allocates nothing. */
    SF_TRY(sf_bert_source_check(source, layout, error));
    for (size_t i = 0; i < layout->tensor_count; i++) {
        const sf_bert_found *found = sf_bert_source_find(source, layout->tensors[i].name);
        if (found->transposed && found->tensor.count > most) most = found->tensor.count;
    }
    values = sf_alloc_aligned(layout->size, sizeof *values);
    scratch = sf_alloc(most, sizeof *scratch);
    if (!values || !scratch) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t i = 0; i < layout->tensor_count; i++)
        SF_TRY(load(values + layout->tensors[i].offset, sf_bert_source_find(source, layout->tensors[i].name), scratch,
                    error));
    *parameters = values;
    values = NULL;
done:
    free(scratch);
    free(values);
    return status;
}
