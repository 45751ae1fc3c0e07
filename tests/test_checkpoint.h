/* What the tests of BERT checkpoints share: tiny random models, the folders they come in,
 * and comparisons with what was read. */
#ifndef TESTS_TEST_CHECKPOINT_H
#define TESTS_TEST_CHECKPOINT_H

#include "base/memory.h"
#include "model/bert_names.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nfilm\nis\ngood\n##ly\nbad\n.\na\n##n\n";
enum { PIECES = 14 };

/* ------------------------------------------------------------------ the model */

static const sf_bert_shape encoder = {.vocabulary = PIECES,
                                      .positions = 16,
                                      .types = 2,
                                      .layers = 2,
                                      .hidden = 8,
                                      .heads = 2,
                                      .inner = 12,
                                      .activation = SF_GELU,
                                      .pool = SF_POOL_MEAN,
                                      .epsilon = 1e-12f,
                                      .tokens = 16};

static inline sf_bert_shape classifier(size_t types)
{
    sf_bert_shape s = encoder;
    s.classes = 3;
    s.pool = SF_POOL_POOLER;
    s.types = types;
    s.pooler = types == 0 ? SF_ENCODER_RELU : SF_ENCODER_TANH;
    return s;
}

/* Of at most eight bits: F16 and BF16 hold them exactly. */
static inline float parameter(size_t i) { return (float)((int)(i * 7919 % 511) - 255) / 64; }

typedef struct model {
    sf_bert_layout layout;
    float *parameters;
} model;

static inline model make_model(const sf_bert_shape *shape)
{
    model m;
    assert_int_equal(sf_bert_layout_make(&m.layout, shape), 0);
    m.parameters = malloc(m.layout.size * sizeof *m.parameters);
    assert_non_null(m.parameters);
    for (size_t i = 0; i < m.layout.size; i++) m.parameters[i] = parameter(i);
    return m;
}

static inline void free_model(model *m)
{
    sf_bert_layout_free(&m->layout);
    free(m->parameters);
}

/* ------------------------------------------------------------------- a folder */

typedef enum names { PLAIN, PREFIXED, OLD, DISTIL, NAMES } names;

/* Every parameter of the model, in the form that is to be read. */
typedef struct form {
    names names;
    sf_dtype type;
    int shards;       /* 0: model.safetensors */
    const char *file; /* instead of model.safetensors */
    int extras;
    const char *without;   /* a canonical name: this tensor is missing */
    const char *misshapen; /* this one has a row more */
    const char *whole;     /* this one is I64 */
    const char *broken;    /* this one holds a NaN */
} form;

static inline void rename_layer(char *out, const char *name)
{
    static const char *const pairs[][2] = {
        {"attention.self.query", "attention.q_lin"},
        {"attention.self.key", "attention.k_lin"},
        {"attention.self.value", "attention.v_lin"},
        {"attention.output.dense", "attention.out_lin"},
        {"attention.output.LayerNorm", "sa_layer_norm"},
        {"intermediate.dense", "ffn.lin1"},
        {"output.dense", "ffn.lin2"},
        {"output.LayerNorm", "output_layer_norm"},
    };
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; i < COUNT(pairs); i++)
        if (strncmp(name + 16, pairs[i][0], strlen(pairs[i][0])) == 0 &&
            strlen(pairs[i][0]) == (size_t)(dot - name) - 16) {
            sprintf(out, "distilbert.transformer.layer.%c.%s%s", name[14], pairs[i][1], dot);
            return;
        }
    fail_msg("%s", name);
}

static inline void name_as(char out[128], const char *name, names n)
{
    int head = strncmp(name, "classifier.", 11) == 0;
    const char *end = strrchr(name, '.');
    sprintf(out, "%s%s", n == PLAIN || head ? "" : n == DISTIL ? "distilbert." : "bert.", name);
    if (n == OLD && strstr(name, "LayerNorm."))
        sprintf(out, "bert.%.*s.%s", (int)(end - name), name, strcmp(end, ".weight") == 0 ? "gamma" : "beta");
    if (n == DISTIL && strncmp(name, "encoder.", 8) == 0) rename_layer(out, name);
    if (n == DISTIL && strncmp(name, "pooler.", 7) == 0) sprintf(out, "pre_classifier%s", end);
}

static inline uint16_t half_of(float x) /* exact for the values that are used */
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    uint32_t exponent = bits >> 23 & 255;
    if (exponent == 0) return (uint16_t)(bits >> 16 & 0x8000);
    if (exponent == 255) return 0x7e00;
    return (uint16_t)((bits >> 16 & 0x8000) | (exponent - 127 + 15) << 10 | (bits >> 13 & 1023));
}

static inline void *convert_values(const float *values, size_t count, sf_dtype type)
{
    void *out = calloc(count + 1, 8);
    assert_non_null(out);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        if (type == SF_F32)
            ((float *)out)[i] = values[i];
        else if (type == SF_F64)
            ((double *)out)[i] = (double)values[i];
        else if (type == SF_BF16)
            ((uint16_t *)out)[i] = (uint16_t)(bits >> 16);
        else if (type == SF_F16)
            ((uint16_t *)out)[i] = half_of(values[i]);
    }
    return out;
}

enum { TENSORS = 64 };

static inline int is(const char *a, const char *b) { return b && strcmp(a, b) == 0; }

/* The tensors of shard `shard` of `shards`; 0 of 1 is all. */
static inline void write_tensors(const char *path, const model *m, const form *f, size_t shard, size_t shards,
                                 json_t *map)
{
    safer_error error = {0};
    static char named[TENSORS][128];
    sf_tensor tensors[TENSORS];
    size_t count = 0;
    void *owned[TENSORS];
    static const int64_t ids[16] = {0, 1, 2};
    static const float bias[14] = {0};
    for (size_t i = 0; i < m->layout.tensor_count; i++) {
        const sf_bert_tensor *t = &m->layout.tensors[i];
        if (i % shards != shard || is(t->name, f->without)) continue;
        float *values = calloc(2 * t->count, sizeof *values);
        assert_non_null(values);
        memcpy(values, m->parameters + t->offset, t->count * sizeof *values);
        if (is(t->name, f->broken)) values[t->count / 2] = NAN;
        name_as(named[count], t->name, f->names);
        sf_tensor out = {.name = named[count],
                         .type = is(t->name, f->whole) ? SF_I64 : f->type,
                         .rank = t->rank,
                         .count = t->count,
                         .shape = {t->shape[0], t->shape[1]}};
        if (is(t->name, f->misshapen)) {
            out.shape[0]++;
            out.count += t->rank == 2 ? t->shape[1] : 1;
        }
        out.bytes = owned[count] = convert_values(values, out.count, f->type);
        free(values);
        if (map) assert_int_equal(json_object_set_new(map, named[count], json_string(strrchr(path, '/') + 1)), 0);
        tensors[count++] = out;
    }
    size_t made = count;
    if (f->extras) {
        tensors[count++] = (sf_tensor){.name = "bert.embeddings.position_ids",
                                       .type = SF_I64,
                                       .rank = 2,
                                       .shape = {1, 16},
                                       .count = 16,
                                       .bytes = ids};
        tensors[count++] = (sf_tensor){
            .name = "cls.predictions.bias", .type = SF_F32, .rank = 1, .shape = {14}, .count = 14, .bytes = bias};
        tensors[count++] = (sf_tensor){
            .name = "vocab_transform.weight", .type = SF_F32, .rank = 1, .shape = {14}, .count = 14, .bytes = bias};
    }
    const sf_metadata metadata[] = {{"format", "pt"}};
    assert_ok(sf_safetensors_write(path, tensors, count, metadata, 1, &error));
    for (size_t i = 0; i < made; i++) free(owned[i]);
}

static inline const char *in_folder(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return temporary(path);
}

static inline void write_text(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_temporary(path, text, strlen(text));
}

/* config.json with some keys changed: a JSON object whose nulls remove. */
static inline void write_config(const char *folder, names n, size_t classes, const char *changes)
{
    json_error_t problem;
    json_t *config = n == DISTIL ? json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:[s]}", "model_type",
                                             "distilbert", "vocab_size", PIECES, "max_position_embeddings", 16, "dim",
                                             8, "n_layers", 2, "n_heads", 2, "hidden_dim", 12, "activation", "gelu",
                                             "architectures", "DistilBertForSequenceClassification")
                                 : json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:f, s:s, s:[s]}",
                                             "model_type", "bert", "vocab_size", PIECES, "max_position_embeddings", 16,
                                             "type_vocab_size", 2, "hidden_size", 8, "num_hidden_layers", 2,
                                             "num_attention_heads", 2, "intermediate_size", 12, "hidden_act", "gelu",
                                             "layer_norm_eps", 1e-12, "position_embedding_type", "absolute",
                                             "architectures", classes ? "BertForSequenceClassification" : "BertModel");
    assert_non_null(config);
    if (classes)
        json_object_set_new(config, "id2label",
                            json_pack("{s:s, s:s, s:s}", "0", "bad", "1", "so \"so\"", "2", "good"));
    const char *text_of = changes ? changes : "{}", *key;
    json_t *more = json_loads(text_of, 0, &problem), *value;
    if (!more) fail_msg("%s: %s", text_of, problem.text);
    json_object_foreach(more, key, value) if (json_is_null(value)) json_object_del(config, key);
    else json_object_set(config, key, value);
    char *text = json_dumps(config, JSON_INDENT(2));
    write_text(folder, "config.json", text);
    free(text);
    json_decref(config);
    json_decref(more);
}

static inline void clear(const char *folder)
{
    char command[640];
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s'", temporary(folder), temporary(folder));
    assert_int_equal(system(command), 0);
}

/* A folder with all that belongs to a model; returns its path. */
static inline const char *write_folder(const char *folder, const model *m, const form *f, const char *changes)
{
    clear(folder);
    write_config(folder, f->names, m->layout.shape.classes, changes);
    write_text(folder, "vocab.txt", vocabulary);
    if (f->shards) {
        json_t *map = json_object(), *index;
        for (int i = 0; i < f->shards; i++) {
            char name[64];
            snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", i + 1, f->shards);
            form one = *f;
            one.extras = f->extras && i == 0;
            write_tensors(in_folder(folder, name), m, &one, (size_t)i, (size_t)f->shards, map);
        }
        index = json_pack("{s:{s:i}, s:o}", "metadata", "total_size", 1, "weight_map", map);
        char *text = json_dumps(index, 0);
        write_text(folder, "model.safetensors.index.json", text);
        free(text);
        json_decref(index);
    } else {
        write_tensors(in_folder(folder, f->file ? f->file : "model.safetensors"), m, f, 0, 1, NULL);
    }
    return temporary(folder);
}

/* --------------------------------------------------------------- what is read */

static inline void check_shape(const sf_bert_shape *a, const sf_bert_shape *b)
{
    assert_int_equal(a->vocabulary, b->vocabulary);
    assert_int_equal(a->positions, b->positions);
    assert_int_equal(a->types, b->types);
    assert_int_equal(a->layers, b->layers);
    assert_int_equal(a->hidden, b->hidden);
    assert_int_equal(a->heads, b->heads);
    assert_int_equal(a->inner, b->inner);
    assert_int_equal(a->classes, b->classes);
    assert_int_equal(a->activation, b->activation);
    assert_int_equal(a->pool, b->pool);
    assert_int_equal(a->pooler, b->pooler);
    assert_int_equal(a->tokens, b->tokens);
    assert_memory_equal(&a->epsilon, &b->epsilon, sizeof a->epsilon);
}

static inline void check_checkpoint(const sf_bert_checkpoint *c, const model *m)
{
    static const char *const labels[] = {"bad", "so \"so\"", "good"};
    check_shape(&c->layout.shape, &m->layout.shape);
    assert_int_equal(c->layout.size, m->layout.size);
    assert_int_equal((uintptr_t)c->parameters % 64, 0);
    for (size_t i = 0; i < m->layout.tensor_count; i++) {
        const sf_bert_tensor *t = &m->layout.tensors[i];
        for (size_t k = t->offset; k < t->offset + t->count; k++)
            if (c->parameters[k] != m->parameters[k])
                fail_msg("%s[%zu] is %g, not %g", t->name, k - t->offset, (double)c->parameters[k],
                         (double)m->parameters[k]);
    }
    assert_int_equal(sf_piecer_size(c->piecer), PIECES);
    assert_int_equal(sf_wordpiece_special(sf_piecer_wordpiece(c->piecer)).sep, 3);
    for (size_t i = 0; i < c->layout.shape.classes; i++) assert_string_equal(c->labels[i], labels[i]);
}

/* Opens, compares, and returns the hash. */
static inline uint64_t check_open(const char *path, const model *m)
{
    safer_error error = {0};
    sf_bert_checkpoint c;
    assert_ok(sf_bert_checkpoint_open(&c, path, &error));
    check_checkpoint(&c, m);
    uint64_t hash = c.hash;
    sf_bert_checkpoint_free(&c);
    return hash;
}

static inline void check_refused(const char *path, const char *words)
{
    safer_error error;
    sf_bert_checkpoint c;
    assert_fails(sf_bert_checkpoint_open(&c, path, &error), SAFER_INPUT, words);
}

/* A path that outlives the few that `temporary` remembers. */
static inline char *keep(const char *path)
{
    char *copy = strdup(path);
    assert_non_null(copy);
    return copy;
}

#endif
