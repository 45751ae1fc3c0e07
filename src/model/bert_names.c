/* The tensors of an encoder's checkpoint: names, shapes, values. What every family calls its tensors is written down
 * here and nowhere else; the canonical names are those of bert_layout.c. */
#include "model/bert_names.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* --------------------------------------------------------------------- names */

static const char *const prefixes[] = {"module.",  "model.",   "0.auto_model.", "bert.",  "distilbert.",
                                       "roberta.", "electra.", "albert.",       "mpnet.", "deberta."};

/* What other families call the tensors of a layer, and the rest. Those of BERT are the canonical ones. */
static const struct {
    const char *theirs, *ours;
    sf_bert_family family;
} parts[] =
    {
        {"attention.q_lin.", "attention.self.query.", SF_FAMILY_DISTIL},
        {"attention.k_lin.", "attention.self.key.", SF_FAMILY_DISTIL},
        {"attention.v_lin.", "attention.self.value.", SF_FAMILY_DISTIL},
        {"attention.out_lin.", "attention.output.dense.", SF_FAMILY_DISTIL},
        {"sa_layer_norm.", "attention.output.LayerNorm.", SF_FAMILY_DISTIL},
        {"ffn.lin1.", "intermediate.dense.", SF_FAMILY_DISTIL},
        {"ffn.lin2.", "output.dense.", SF_FAMILY_DISTIL},
        {"output_layer_norm.", "output.LayerNorm.", SF_FAMILY_DISTIL},
        {"attention.query.", "attention.self.query.", SF_FAMILY_ALBERT},
        {"attention.key.", "attention.self.key.", SF_FAMILY_ALBERT},
        {"attention.value.", "attention.self.value.", SF_FAMILY_ALBERT},
        {"attention.dense.", "attention.output.dense.", SF_FAMILY_ALBERT},
        {"attention.LayerNorm.", "attention.output.LayerNorm.", SF_FAMILY_ALBERT},
        {"ffn.", "intermediate.dense.", SF_FAMILY_ALBERT},
        {"ffn_output.", "output.dense.", SF_FAMILY_ALBERT},
        {"full_layer_layer_norm.", "output.LayerNorm.", SF_FAMILY_ALBERT},
        {"attention.attn.q.", "attention.self.query.", SF_FAMILY_MPNET},
        {"attention.attn.k.", "attention.self.key.", SF_FAMILY_MPNET},
        {"attention.attn.v.", "attention.self.value.", SF_FAMILY_MPNET},
        {"attention.attn.o.", "attention.output.dense.", SF_FAMILY_MPNET},
        {"attention.LayerNorm.", "attention.output.LayerNorm.", SF_FAMILY_MPNET},
        {"attention.self.query_proj.", "attention.self.query.", SF_FAMILY_DEBERTA},
        {"attention.self.key_proj.", "attention.self.key.", SF_FAMILY_DEBERTA},
        {"attention.self.value_proj.", "attention.self.value.", SF_FAMILY_DEBERTA},
        {"attention.self.pos_key_proj.", "attention.self.place_key.", SF_FAMILY_DEBERTA},
        {"attention.self.pos_query_proj.", "attention.self.place_query.", SF_FAMILY_DEBERTA},
        {"attn_norm.", "attention.output.LayerNorm.", SF_FAMILY_MODERN},
        {"attn.Wqkv.", "attention.self.qkv.", SF_FAMILY_MODERN},
        {"attn.Wo.", "attention.output.dense.", SF_FAMILY_MODERN},
        {"mlp_norm.", "output.LayerNorm.", SF_FAMILY_MODERN},
        {"mlp.Wi.", "intermediate.dense.", SF_FAMILY_MODERN},
        {"mlp.Wo.", "output.dense.", SF_FAMILY_MODERN},
},
  rests[] = {
      {"pre_classifier.", "pooler.dense.", SF_FAMILY_DISTIL},
      {"classifier.out_proj.", "classifier.", SF_FAMILY_ROBERTA}, /* and "classifier.dense.": take_head */
      {"embeddings_project.", "embeddings.projection.", SF_FAMILY_ROBERTA},
      {"encoder.embedding_hidden_mapping_in.", "embeddings.projection.", SF_FAMILY_ALBERT},
      {"pooler.weight", "pooler.dense.weight", SF_FAMILY_ALBERT},
      {"pooler.bias", "pooler.dense.bias", SF_FAMILY_ALBERT},
      {"classifier.out_proj.", "classifier.", SF_FAMILY_MPNET},
      {"embeddings.embed_proj.", "embeddings.projection.", SF_FAMILY_DEBERTA},
      {"embeddings.tok_embeddings.", "embeddings.word_embeddings.", SF_FAMILY_MODERN},
      {"embeddings.norm.", "embeddings.LayerNorm.", SF_FAMILY_MODERN},
      {"final_norm.", "encoder.final_norm.", SF_FAMILY_MODERN},
      {"head.dense.", "pooler.dense.", SF_FAMILY_MODERN},
      {"head.norm.", "pooler.norm.", SF_FAMILY_MODERN},
};
enum { PARTS = sizeof parts / sizeof *parts, RESTS = sizeof rests / sizeof *rests };

static const char bert_layer[] = "encoder.layer.", own_head[] = "classifier.dense.";

/* How their layers begin, before a number or, in ALBERT, instead of one. */
static const struct {
    const char *theirs;
    sf_bert_family family;
    int numbered;
} layers[] = {{"transformer.layer.", SF_FAMILY_DISTIL, 1},
              {"encoder.albert_layer_groups.0.albert_layers.0.", SF_FAMILY_ALBERT, 0},
              {"layers.", SF_FAMILY_MODERN, 1},
              {bert_layer, SF_FAMILY_BERT, 1}};
enum { LAYERS = sizeof layers / sizeof *layers };

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

/* The name of a tensor with BERT's words, or as it is. Returns what snprintf does. */
static int to_bert(char out[96], const char *name)
{
    const char *rest;
    for (int i = 0; i < RESTS; i++)
        if ((rest = after(name, rests[i].theirs))) return snprintf(out, 96, "%s%s", rests[i].ours, rest);
    for (int i = 0; i < LAYERS; i++) {
        const char *number = after(name, layers[i].theirs);
        if (!number) continue;
        const size_t digits = layers[i].numbered ? strspn(number, "0123456789") : 0;
        if (layers[i].numbered && number[digits] != '.') continue;
        for (int k = 0; k < PARTS; k++)
            if ((rest = after(number + digits + (size_t)layers[i].numbered, parts[k].theirs)))
                return snprintf(out, 96, "%s%.*s.%s%s", bert_layer, layers[i].numbered ? (int)digits : 1,
                                layers[i].numbered ? number : "0", parts[k].ours, rest);
    }
    return snprintf(out, 96, "%s", name);
}

/* The other way, for messages. */
static void from_bert(char out[160], const char *name, sf_bert_family family)
{
    const char *rest, *number = after(name, bert_layer), *layer = bert_layer;
    const int headed = family == SF_FAMILY_ROBERTA || family == SF_FAMILY_MPNET;
    snprintf(out, 160, "%s", name);
    if (headed && (rest = after(name, "pooler.dense."))) snprintf(out, 160, "%s%s", own_head, rest);
    for (int i = 0; i < RESTS; i++)
        if (rests[i].family == family && (rest = after(name, rests[i].ours)))
            snprintf(out, 160, "%s%s", rests[i].theirs, rest);
    if (!number) return;
    const size_t digits = strspn(number, "0123456789");
    int shown = (int)digits + 1, part = -1;
    for (int i = 0; i < LAYERS; i++)
        if (layers[i].family == family) {
            layer = layers[i].theirs;
            if (!layers[i].numbered) shown = 0;
        }
    for (int i = 0; i < PARTS; i++)
        if (parts[i].family == family && after(number + digits + 1, parts[i].ours)) part = i;
    rest = part < 0 ? number + digits + 1 : after(number + digits + 1, parts[part].ours);
    snprintf(out, 160, "%s%.*s%s%s", layer, shown, number, part < 0 ? "" : parts[part].theirs, rest);
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
    int length = to_bert(out, strip(name));
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
    if (!after(found.name, "embeddings.") && !after(found.name, "encoder.") && !after(found.name, "pooler.") &&
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

/* RoBERTa and its kin have a dense layer in their head. It is the pooler; one of the encoder's own is not used then. */
static void take_head(sf_bert_source *source)
{
    int own = 0;
    size_t count = 0;
    for (size_t i = 0; i < source->count; i++) own = own || after(source->found[i].name, own_head);
    for (size_t i = 0; own && i < source->count; i++) {
        sf_bert_found found = source->found[i];
        if (after(found.name, "pooler.")) continue;
        const char *rest = after(source->found[i].name, own_head);
        if (rest) snprintf(found.name, sizeof found.name, "pooler.dense.%s", rest);
        source->found[count++] = found;
    }
    if (own) source->count = count;
}

safer_status sf_bert_source_sort(sf_bert_source *source, safer_error *error)
{
    take_head(source);
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
        from_bert(name, wanted->name, source->family);
        return sf_fail(error, SAFER_INPUT, "%s: there is no tensor \"%s\"%s", source->name, name,
                       source->onnx ? " (ONNX names no matrix without a bias: give the folder's safetensors)" : "");
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
