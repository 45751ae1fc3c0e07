/* BERT checkpoints in one file, and in ONNX; converting them; memory that runs out. Checkpoints in folders are in
 * test_checkpoint.c. */
#define _GNU_SOURCE
#include "test_checkpoint.h"

#include "model/onnx.h"

/* ------------------------------------------------------------------- one file */

static const char labels_json[] = "[\"bad\",\"so \\\"so\\\"\",\"good\"]";

static const char *save(const char *name, const model *m, const char *trained_with)
{
    safer_error error = {0};
    sf_wordpiece *wordpiece = NULL;
    sf_piecer *piecer = NULL;
    const char *path = temporary(name);
    assert_ok(sf_wordpiece_new(&wordpiece, vocabulary, strlen(vocabulary), &(sf_wordpiece_options){1, 0, 1, 1, 77, 0},
                               "test", &error));
    assert_ok(sf_piecer_of_wordpiece(&piecer, wordpiece, &error));
    assert_ok(sf_bert_save(path, &m->layout, m->parameters, piecer, m->layout.shape.classes ? labels_json : NULL,
                           trained_with, &error));
    sf_piecer_free(piecer);
    return path;
}

static void test_saved(void **state)
{
    (void)state;
    safer_error error = {0};
    sf_bert_checkpoint c;
    for (int i = 0; i < 12; i++) {
        sf_bert_shape shape = i % 3 ? classifier(i % 3 == 1 ? 2 : 0) : encoder;
        static const sf_activation activations[] = {SF_GELU, SF_GELU_TANH, SF_RELU, SF_GELU};
        shape.activation = activations[i / 3];
        shape.epsilon = 1.2345679e-7f;
        shape.tokens = 9;
        if (i == 3) shape.pool = SF_POOL_CLS;
        if (i == 6) shape.pool = SF_POOL_POOLER; /* without classes */
        model m = make_model(&shape);
        const char *path = save("saved.safetensors", &m, i % 2 ? "{\"lexicon\":1}" : NULL);
        assert_ok(sf_bert_checkpoint_open(&c, path, &error));
        check_checkpoint(&c, &m);
        if (i % 2)
            assert_string_equal(c.trained_with, "{\"lexicon\":1}");
        else
            assert_null(c.trained_with);
        const sf_wordpiece_options *o = sf_wordpiece_get_options(sf_piecer_wordpiece(c.piecer));
        assert_true(o->lower && !o->accents && o->ideographs && o->clean && o->longest == 77);
        sf_safetensors *file = NULL;
        assert_ok(sf_safetensors_open(&file, path, &error));
        assert_int_equal(c.hash, sf_safetensors_hash(file));
        sf_safetensors_free(file);
        sf_bert_checkpoint_free(&c);
        free_model(&m);
    }
}

/* Writes a file again with one string of its metadata changed (NULL: removed) and one
 * tensor missing. */
static const char *rewrite(const char *path, const char *key, const char *value, const char *without)
{
    safer_error error = {0};
    static const char *const keys[] = {"arch", "config", "vocabulary", "tokenizer", "labels", "trained_with"};
    sf_metadata metadata[6];
    sf_tensor tensors[TENSORS];
    size_t count = 0, strings = 0;
    sf_safetensors *file = NULL;
    assert_ok(sf_safetensors_open(&file, path, &error));
    for (size_t i = 0; i < sf_safetensors_count(file); i++)
        if (!is(sf_safetensors_at(file, i)->name, without)) tensors[count++] = *sf_safetensors_at(file, i);
    for (size_t i = 0; i < COUNT(keys); i++) {
        const char *string = is(keys[i], key) ? value : sf_safetensors_metadata(file, keys[i]);
        if (string) metadata[strings++] = (sf_metadata){keys[i], string};
    }
    const char *out = temporary("rewritten.safetensors");
    assert_ok(sf_safetensors_write(out, tensors, count, metadata, strings, &error));
    sf_safetensors_free(file);
    return out;
}

static void test_saved_damaged(void **state)
{
    (void)state;
    sf_bert_shape shape = classifier(2);
    model m = make_model(&shape);
    char *good = keep(save("good.safetensors", &m, NULL));
    static const struct {
        const char *key, *value, *words;
    } bad[] = {
        {"arch", NULL, "give its folder"},
        {"arch", "cnn", "\"cnn\", not bert"},
        {"config", NULL, "no \"config\""},
        {"config", "", "no \"config\""},
        {"config", "[]", "no \"config\""},
        {"config", "{", "no \"config\""},
        {"vocabulary", NULL, "no \"vocabulary\""},
        {"vocabulary", "", "is empty"},
        {"vocabulary", "[UNK]\n[CLS]\n", "[SEP]"},
        {"vocabulary", "[UNK]\n[CLS]\n[SEP]\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n",
         "the tokenizer has 15 pieces"},
        {"tokenizer", NULL, "no \"tokenizer\""},
        {"tokenizer", "{\"lower\":true,\"accents\":true,\"ideographs\":true,\"longest\":100}",
         "\"clean\" in the metadata \"tokenizer\""},
        {"tokenizer", "{\"lower\":true,\"accents\":1,\"ideographs\":true,\"clean\":true,\"longest\":100}",
         "\"accents\""},
        {"tokenizer", "{\"lower\":true,\"accents\":true,\"ideographs\":true,\"clean\":true,\"longest\":0}",
         "\"longest\""},
        {"labels", NULL, "there is no tensor"},
        {"labels", "[\"a\"]", "at least two"},
        {"labels", "[\"a\",\"b\"]", "classifier.weight"},
        {"labels", "[\"a\",\"b\",\"a\"]", "twice"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        const char *path = rewrite(good, bad[i].key, bad[i].value, NULL);
        if (is(bad[i].key, "labels") && !bad[i].value) { /* an encoder whose classifier nobody needs */
            safer_error error = {0};
            sf_bert_checkpoint c;
            assert_ok(sf_bert_checkpoint_open(&c, path, &error));
            assert_int_equal(c.layout.shape.classes, 0);
            sf_bert_checkpoint_free(&c);
        } else {
            check_refused(path, bad[i].words);
        }
    }
    for (size_t i = 0; i < m.layout.tensor_count; i++) {
        char words[200];
        snprintf(words, sizeof words, "there is no tensor \"%s\"", m.layout.tensors[i].name);
        check_refused(rewrite(good, NULL, NULL, m.layout.tensors[i].name), words);
    }
    m.parameters[m.layout.layers[1].inner_weight] = INFINITY;
    check_refused(save("infinite.safetensors", &m, NULL), "encoder.layer.1.intermediate.dense.weight");
    free(good);
    free_model(&m);
}

static void test_saved_configurations(void **state)
{
    (void)state;
    sf_bert_shape shape = classifier(2);
    model m = make_model(&shape);
    char *good = keep(save("good.safetensors", &m, NULL));
    safer_error error = {0};
    sf_safetensors *file = NULL;
    assert_ok(sf_safetensors_open(&file, good, &error));
    static const char *const bad[][2] = {
        {"vocabulary", "0"},
        {"vocabulary", "13"},
        {"vocabulary", "100000000000"},
        {"positions", "2"},
        {"positions", "17"},
        {"types", "-1"},
        {"types", "0.5"},
        {"layers", "0"},
        {"layers", "257"},
        {"layers", "1e18"},
        {"hidden", "0"},
        {"hidden", "1e9"},
        {"heads", "0"},
        {"heads", "3"},
        {"inner", "0"},
        {"inner", "11"},
        {"activation", "\"tanh\""},
        {"activation", "3"},
        {"pool", "\"max\""},
        {"pool", "null"},
        {"pool", "\"cl\""},
        {"pooler", "\"mish\""},
        {"epsilon", "0"},
        {"epsilon", "2"},
        {"epsilon", "\"x\""},
        {"tokens", "2"},
        {"tokens", "17"},
        {"tokens", "null"},
        {"form", "1"},
        {"form", "{\"width\": -1}"},
        {"form", "{\"gated\": 2}"},
        {"form", "{\"novel\": 1}"},
        {"form", "{\"local\": \"012\"}"},
        {"form", "{\"local\": \"01\"}"},
        {"form", "{\"theta\": 0.5}"},
        {"form", "{\"relative\": \"other\"}"},
        {"form", "{\"relative\": \"bias\", \"buckets\": 31}"},
        {"form", "{\"relative\": \"parts\"}"},
        {"form", "{\"relative\": \"parts\", \"span\": 4, \"buckets\": 6}"},
        {"form", "{\"relative\": \"parts\", \"span\": 4, \"prenorm\": 1}"},
        {"form", "{\"relative\": \"parts\", \"span\": 4, \"theta\": 100}"},
        {"form", "{\"shared\": 1, \"prenorm\": 1}"},
        {"form", "{\"projected_first\": 1}"},
        {"form", "{\"padded\": 1, \"pad\": 14}"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        json_t *config = json_loads(sf_safetensors_metadata(file, "config"), 0, NULL);
        json_t *value = json_loads(bad[i][1], JSON_DECODE_ANY, NULL);
        assert_true(config && value && (json_object_get(config, bad[i][0]) || strcmp(bad[i][0], "form") == 0));
        json_object_set_new(config, bad[i][0], value);
        char *text = json_dumps(config, 0);
        sf_bert_checkpoint c;
        const char *path = rewrite(good, "config", text, NULL);
        if (sf_bert_checkpoint_open(&c, path, &error) != SAFER_INPUT)
            fail_msg("%s %s is accepted", bad[i][0], bad[i][1]);
        free(text);
        json_decref(config);
    }
    sf_safetensors_free(file);
    free(good);
    free_model(&m);
}

/* Every byte of the header damaged in turn: refused, or another model, but read within bounds. */
static void test_saved_bytes(void **state)
{
    (void)state;
    sf_bert_shape shape = classifier(2);
    model m = make_model(&shape);
    safer_error error = {0};
    sf_file file = {0};
    size_t refused = 0;
    assert_ok(sf_file_load(&file, save("good.safetensors", &m, NULL), &error));
    size_t header = 8 + (size_t)(unsigned char)file.bytes[0] + ((size_t)(unsigned char)file.bytes[1] << 8);
    assert_true(header < file.length);
    for (size_t i = 0; i < header; i++) {
        char *copy = malloc(file.length);
        assert_non_null(copy);
        memcpy(copy, file.bytes, file.length);
        copy[i] = (char)(copy[i] ^ (i % 2 ? 1 : 3));
        sf_file image = {.bytes = copy, .length = file.length, .heap = copy};
        sf_safetensors *read = NULL;
        sf_bert_checkpoint c = {0};
        error = (safer_error){0};
        safer_status status = sf_safetensors_parse(&read, &image, "damaged", &error);
        if (status == SAFER_OK) status = sf_bert_file_read(&c, read, &error);
        if (status != SAFER_OK && (status != SAFER_INPUT || !error.message[0]))
            fail_msg("byte %zu: %d %s", i, status, error.message);
        refused += status != SAFER_OK;
        sf_bert_checkpoint_free(&c);
        sf_safetensors_free(read);
        sf_file_free(&image);
    }
    assert_true(refused > header / 2);
    sf_file_free(&file);
    free_model(&m);
}

/* ----------------------------------------------------------------------- ONNX */

static void put_varint(sf_buffer *out, uint64_t x)
{
    for (; x >= 128; x >>= 7) assert_int_equal(sf_buffer_add_byte(out, (char)(x | 128)), 0);
    assert_int_equal(sf_buffer_add_byte(out, (char)x), 0);
}

static void put_number(sf_buffer *out, unsigned field, uint64_t x)
{
    put_varint(out, field << 3);
    put_varint(out, x);
}

static void put_bytes(sf_buffer *out, unsigned field, const void *bytes, size_t length)
{
    put_varint(out, field << 3 | 2);
    put_varint(out, length);
    assert_int_equal(sf_buffer_add(out, bytes, length), 0);
}

static void put_string(sf_buffer *out, unsigned field, const char *string)
{
    put_bytes(out, field, string, strlen(string));
}

static void put_message(sf_buffer *out, unsigned field, sf_buffer *message)
{
    put_bytes(out, field, message->bytes ? message->bytes : "", message->length);
    sf_buffer_free(message);
}

static void put_node(sf_buffer *graph, const char *operation, const char *a, const char *b, const char *c,
                     const char *output, int transB)
{
    sf_buffer node = {0}, attribute = {0};
    put_string(&node, 1, a);
    if (b) put_string(&node, 1, b);
    if (c) put_string(&node, 1, c);
    put_string(&node, 2, output);
    put_string(&node, 4, operation);
    if (transB >= 0) {
        put_string(&attribute, 1, "transB");
        put_number(&attribute, 3, (uint64_t)transB);
        put_message(&node, 5, &attribute);
        put_string(&attribute, 1, "alpha");
        put_varint(&attribute, 2 << 3 | 5);
        assert_int_equal(sf_buffer_add(&attribute, "\0\0\x80\x3f", 4), 0);
        put_message(&node, 5, &attribute);
    }
    put_message(graph, 1, &node);
}

typedef enum storage { RAW, PACKED, SINGLE, PIECEWISE, HALF, WIDE, STORAGES } storage;

static void put_tensor(sf_buffer *graph, const char *name, size_t rank, const size_t *shape, const float *values,
                       storage how)
{
    sf_buffer tensor = {0}, dims = {0};
    size_t count = 1;
    for (size_t i = 0; i < rank; i++) count *= shape[i];
    if (how == PACKED) {
        for (size_t i = 0; i < rank; i++) put_varint(&dims, shape[i]);
        put_message(&tensor, 1, &dims);
    } else {
        for (size_t i = 0; i < rank; i++) put_number(&tensor, 1, shape[i]);
    }
    put_number(&tensor, 2, how == HALF ? 10 : how == WIDE ? 11 : 1);
    if (how == PACKED) put_bytes(&tensor, 4, values, 4 * count);
    if (how == PIECEWISE) {
        put_bytes(&tensor, 4, values, 4);
        put_bytes(&tensor, 4, values + 1, 4 * (count - 1));
    }
    for (size_t i = 0; i < count && how == SINGLE; i++) {
        put_varint(&tensor, 4 << 3 | 5);
        assert_int_equal(sf_buffer_add(&tensor, &values[i], 4), 0);
    }
    if (how == RAW || how == HALF || how == WIDE) {
        void *converted = convert_values(values, count, how == HALF ? SF_F16 : how == WIDE ? SF_F64 : SF_F32);
        put_bytes(&tensor, 9, converted, count * (how == HALF ? 2 : how == WIDE ? 8 : 4));
        free(converted);
    }
    put_string(&tensor, 8, name);
    put_message(graph, 5, &tensor);
}

/* What may be odd about an exported model. */
typedef struct oddity {
    storage storage;
    const char *prefix;
    const char *without;   /* a canonical name */
    const char *operation; /* one more node */
    int named;             /* matrices keep their names */
    int fused;             /* their biases are added by something else */
    int shared;            /* layer 1's first norm is layer 0's, through Identity */
    int external;          /* a tensor whose values are in another file */
    int twice;             /* a name that occurs twice */
    int bytes;             /* a tensor with a byte less than its shape says */
    int strange;           /* two biases are added to one product */
} oddity;

static void put_matrix(sf_buffer *graph, const model *m, const sf_bert_tensor *t, size_t i, const oddity *o)
{
    char own[128], bias[128], product[32], sum[32];
    size_t shape[2] = {t->shape[1], t->shape[0]};
    float *turned = malloc(t->count * sizeof *turned);
    assert_non_null(turned);
    for (size_t r = 0; r < t->shape[0]; r++)
        for (size_t k = 0; k < t->shape[1]; k++)
            turned[k * t->shape[0] + r] = m->parameters[t->offset + r * t->shape[1] + k];
    if (!o->named)
        snprintf(own, sizeof own, "onnx::MatMul_%zu", 700 + i);
    else
        snprintf(own, sizeof own, "%s%s", o->prefix, t->name);
    snprintf(bias, sizeof bias, "%s%.*s.bias", o->prefix, (int)(strlen(t->name) - 7), t->name);
    snprintf(product, sizeof product, "product_%zu", i);
    snprintf(sum, sizeof sum, "sum_%zu", i);
    put_tensor(graph, own, 2, shape, turned, o->storage);
    put_node(graph, "MatMul", "hidden", own, NULL, product, -1);
    put_node(graph, o->fused ? "FusedAdd" : "Add", i % 2 ? bias : product, i % 2 ? product : bias, NULL, sum, -1);
    if (o->strange) put_node(graph, "Add", "classifier.bias", product, NULL, "strange", -1);
    free(turned);
}

static void compose(sf_buffer *out, const model *m, const oddity *o)
{
    sf_buffer graph = {0};
    for (size_t i = 0; i < m->layout.tensor_count; i++) {
        const sf_bert_tensor *t = &m->layout.tensors[i];
        int head = strncmp(t->name, "classifier.", 11) == 0, matrix = t->rank == 2 && !strstr(t->name, "embeddings.");
        const float *values = m->parameters + t->offset;
        char name[128];
        snprintf(name, sizeof name, "%s%s", head ? "" : o->prefix, t->name);
        if (is(t->name, o->without)) continue;
        if (matrix && !head && !strstr(t->name, "pooler")) {
            put_matrix(&graph, m, t, i, o);
        } else if (o->shared && strcmp(t->name, "encoder.layer.1.attention.output.LayerNorm.weight") == 0) {
            put_node(&graph, "Identity", "encoder.layer.0.attention.output.LayerNorm.weight", NULL, NULL, name, -1);
        } else {
            char bias[128];
            snprintf(bias, sizeof bias, "%.*s.bias", (int)(strlen(name) - 7), name);
            put_tensor(&graph, name, t->rank, t->shape, values, o->storage);
            if (matrix) put_node(&graph, "Gemm", "pooled", name, bias, "logits", 1);
        }
        if (o->twice && i == 3) put_tensor(&graph, name, t->rank, t->shape, values, RAW);
    }
    if (o->operation) put_node(&graph, o->operation, "x", "y", NULL, "z", -1);
    sf_buffer odd = {0};
    put_number(&odd, 1, 4);
    put_number(&odd, 2, o->bytes || o->external ? 1 : 7); /* else whole numbers: passed over */
    put_string(&odd, 8, "odd");
    put_bytes(&odd, 9, "0123456789abcdef", o->bytes ? 15 : 16);
    if (o->external) put_number(&odd, 14, 1);
    put_message(&graph, 5, &odd);
    put_number(out, 1, 8); /* the version */
    put_string(out, 2, "test");
    put_message(out, 7, &graph);
}

static void write_onnx(const char *folder, const char *name, const model *m, const oddity *o)
{
    sf_buffer bytes = {0};
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    compose(&bytes, m, o);
    write_temporary(path, bytes.bytes, bytes.length);
    sf_buffer_free(&bytes);
}

static const char *write_onnx_folder(const char *folder, const char *name, const model *m, const oddity *o)
{
    clear(folder);
    write_config(folder, PLAIN, m->layout.shape.classes, NULL);
    write_text(folder, "vocab.txt", vocabulary);
    assert_int_equal(mkdir(in_folder(folder, "onnx"), 0777), 0);
    write_onnx(folder, name, m, o);
    return temporary(folder);
}

static void test_onnx(void **state)
{
    (void)state;
    sf_bert_shape shape = classifier(2);
    model m = make_model(&shape);
    uint64_t hash = check_open(write_folder("onnx", &m, &(form){0}, NULL), &m);
    for (storage s = RAW; s < STORAGES; s++)
        for (int named = 0; named < 2; named++) {
            oddity o = {.storage = s, .prefix = named ? "bert." : "", .named = named};
            assert_int_equal(check_open(write_onnx_folder("onnx", "onnx/model.onnx", &m, &o), &m), hash);
        }
    check_open(write_onnx_folder("onnx", "model.onnx", &m, &(oddity){.prefix = "", .named = 1, .fused = 1}), &m);
    float *norm = m.parameters + m.layout.layers[1].norm1_weight;
    memcpy(norm, m.parameters + m.layout.layers[0].norm1_weight, shape.hidden * sizeof *norm);
    check_open(write_onnx_folder("onnx", "model.onnx", &m, &(oddity){.prefix = "", .shared = 1}), &m);
    free_model(&m);

    m = make_model(&encoder); /* wherever it lies */
    const oddity plain = {.prefix = ""};
    static const char *const places[] = {"onnx/model.onnx", "model.onnx", "onnx/quaint.onnx", "other.ONNX"};
    for (size_t i = 0; i < COUNT(places); i++) {
        check_open(write_onnx_folder("onnx", places[i], &m, &plain), &m);
        check_open(in_folder("onnx", places[i]), &m);
    }
    write_onnx("onnx", "second.onnx", &m, &plain);
    check_refused(temporary("onnx"), "2 ONNX files, none of them model.onnx");
    check_open(in_folder("onnx", "second.onnx"), &m);
    assert_int_equal(unlink(in_folder("onnx", "config.json")), 0);
    safer_error error;
    sf_bert_checkpoint c;
    assert_fails(sf_bert_checkpoint_open(&c, in_folder("onnx", "second.onnx"), &error), SAFER_SYSTEM, "config.json");
    free_model(&m);
}

static void test_onnx_refused(void **state)
{
    (void)state;
    sf_bert_shape shape = classifier(2);
    model m = make_model(&shape);
    const struct {
        oddity oddity;
        const char *words;
    } bad[] = {
        {{.operation = "DynamicQuantizeLinear"}, "is quantised (it has the operation DynamicQuantizeLinear)"},
        {{.operation = "MatMulInteger"}, "MatMulInteger"},
        {{.external = 1}, "\"odd\" are in another file"},
        {{.bytes = 1}, "initialiser \"odd\" has 15 bytes, but 4 values"},
        {{.twice = 1}, "two initialisers are called \"embeddings.LayerNorm.weight\""},
        {{.strange = 1},
         "there is no tensor \"encoder.layer.0.attention.self.query.weight\" (ONNX names no matrix without a bias"},
        {{.without = "encoder.layer.1.output.dense.bias"},
         "there is no tensor \"encoder.layer.1.output.dense.weight\""},
        {{.without = "encoder.layer.1.output.dense.weight"},
         "there is no tensor \"encoder.layer.1.output.dense.weight\""},
        {{.without = "embeddings.word_embeddings.weight"}, "there is no tensor \"embeddings.word_embeddings.weight\""},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        oddity o = bad[i].oddity;
        o.prefix = "";
        check_refused(write_onnx_folder("refused", "model.onnx", &m, &o), bad[i].words);
    }
    const char *path = write_onnx_folder("refused", "model.onnx", &m, &(oddity){.prefix = ""});
    write_text("refused", "model.onnx", "hello");
    check_refused(path, "no ONNX file");
    write_text("refused", "model.onnx", "");
    check_refused(path, "no graph");
    write_config("refused", PLAIN, 3, "{\"intermediate_size\": 16}");
    write_onnx("refused", "model.onnx", &m, &(oddity){.prefix = ""});
    check_refused(path, "\"onnx::MatMul_715\" is [8, 12], not [8, 16]"); /* as it lies in the file */
    free_model(&m);
}

static safer_status parse_bytes(const char *bytes, size_t length, safer_error *error)
{
    sf_onnx *onnx = NULL;
    char *copy = malloc(length + !length); /* of exactly this size: the sanitizers watch its ends */
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    sf_file image = {.bytes = copy, .length = length, .heap = copy};
    safer_status status = sf_onnx_parse(&onnx, &image, "damaged", error);
    for (size_t i = 0; status == SAFER_OK && i < sf_onnx_count(onnx); i++) {
        const sf_onnx_weight *w = sf_onnx_at(onnx, i);
        float *values = malloc((w->tensor.count + 1) * sizeof *values);
        assert_true(values && w->name && w->tensor.name);
        (void)sf_tensor_floats(values, &w->tensor, "damaged", NULL);
        free(values);
    }
    sf_onnx_free(onnx);
    sf_file_free(&image);
    return status;
}

/* Cut at every byte, and with every byte damaged. */
static void test_onnx_bytes(void **state)
{
    (void)state;
    sf_bert_shape shape = classifier(2);
    shape.hidden = 2;
    shape.inner = 2;
    shape.positions = 3;
    shape.layers = 1;
    model m = make_model(&shape);
    for (storage s = RAW; s < STORAGES; s++) {
        sf_buffer bytes = {0};
        safer_error error = {0};
        size_t refused = 0;
        compose(&bytes, &m, &(oddity){.storage = s, .prefix = ""});
        assert_ok(parse_bytes(bytes.bytes, bytes.length, &error));
        for (size_t cut = 0; cut < bytes.length; cut++) {
            assert_int_equal(parse_bytes(bytes.bytes, cut, &error), SAFER_INPUT);
            assert_true(error.message[0]);
        }
        for (size_t i = 0; i < bytes.length; i++) {
            static const unsigned char masks[] = {0xff, 0x80, 0x01, 0x08};
            for (size_t k = 0; k < COUNT(masks); k++) {
                bytes.bytes[i] = (char)(bytes.bytes[i] ^ (char)masks[k]);
                error = (safer_error){0};
                safer_status status = parse_bytes(bytes.bytes, bytes.length, &error);
                bytes.bytes[i] = (char)(bytes.bytes[i] ^ (char)masks[k]);
                if (status != SAFER_OK && (status != SAFER_INPUT || !error.message[0]))
                    fail_msg("byte %zu: %d", i, status);
                refused += status != SAFER_OK;
            }
        }
        assert_true(refused > 200);
        sf_buffer_free(&bytes);
    }
    free_model(&m);
}

/* -------------------------------------------------------------- converting it */

static void test_convert(void **state)
{
    (void)state;
    safer_error error = {0};
    sf_bert_shape shape = classifier(0);
    model m = make_model(&shape);
    const char *out = temporary("converted.safetensors");
    assert_ok(
        safer_model_convert(out, write_folder("convert", &m, &(form){.names = DISTIL, .type = SF_F16}, NULL), &error));
    uint64_t hash = check_open(out, &m);
    const char *again = temporary("again.safetensors"); /* its own output, and the same bytes */
    assert_ok(safer_model_convert(again, out, &error));
    assert_int_equal(check_open(again, &m), hash);
    free_model(&m);
    m = make_model(&encoder);
    assert_ok(
        safer_model_convert(out, write_onnx_folder("convert", "onnx/model.onnx", &m, &(oddity){.prefix = ""}), &error));
    check_open(out, &m);
    assert_fails(safer_model_convert(temporary("no/such/folder"), temporary("convert"), &error), SAFER_SYSTEM,
                 "no/such/folder");
    assert_fails(safer_model_convert(again, temporary("nowhere"), &error), SAFER_SYSTEM, "nowhere");
    free_model(&m);
}

/* --------------------------------------------------------------------- memory */

static safer_status try_open(void *path, safer_error *error)
{
    sf_bert_checkpoint c = {0};
    safer_status status = sf_bert_checkpoint_open(&c, path, error);
    if (status == SAFER_OK) sf_bert_checkpoint_free(&c);
    return status;
}

static safer_status try_convert(void *path, safer_error *error)
{
    return safer_model_convert(temporary("memory.safetensors"), path, error);
}

/* Every form there is, one after the other; the paths are to be freed. */
static size_t write_all(char *paths[8], const model *m)
{
    size_t count = 0;
    paths[count++] = keep(write_folder("memory1", m, &(form){.shards = 2}, NULL));
    write_text("memory1", "tokenizer_config.json", "{\"model_max_length\": 9}");
    paths[count++] = keep(write_folder("memory2", m, &(form){.file = "x.safetensors", .names = OLD, .extras = 1},
                                       "{\"id2label\": null}"));
    paths[count++] = keep(
        write_onnx_folder("memory3", "onnx/a.onnx", m, &(oddity){.prefix = "bert.", .storage = SINGLE}));
    paths[count++] = keep(in_folder("memory3", "onnx/a.onnx"));
    paths[count++] = keep(save("memory4.safetensors", m, "{}"));
    return count;
}

static void test_memory(void **state)
{
    (void)state;
    sf_bert_shape shape = classifier(2);
    model m = make_model(&shape);
    char *paths[8];
    size_t count = write_all(paths, &m);
    for (size_t i = 0; i < count; i++) check_every_allocation(try_open, paths[i]);
    check_every_allocation(try_convert, paths[count - 1]);
    model e = make_model(&encoder);
    write_folder("memory5", &e, &(form){0}, NULL);
    assert_int_equal(mkdir(in_folder("memory5", "1_Pooling"), 0777), 0);
    write_text("memory5", "1_Pooling/config.json", "{\"pooling_mode\": \"cls\"}");
    paths[count++] = keep(temporary("memory5"));
    check_every_allocation(try_open, paths[count - 1]);
    for (size_t i = 0; i < count; i++) free(paths[i]);
    free_model(&m);
    free_model(&e);
}

/* jansson's own allocations: it may blame the file, or lose the end of a key or number when
 * its buffer does not grow, but nothing crashes or leaks. (With an escape in a string it
 * stops the program by an assertion of its own: there is none in this folder.) */
static void test_memory_of_jansson(void **state)
{
    (void)state;
    sf_bert_shape shape = classifier(2);
    model m = make_model(&shape);
    char *path = keep(write_folder("jansson", &m, &(form){.shards = 2}, "{\"id2label\": null}"));
    long n = 0;
    json_malloc_t usual_malloc;
    json_free_t usual_free;
    json_get_alloc_funcs(&usual_malloc, &usual_free);
    json_set_alloc_funcs(malloc, free);
    for (int happened = 1; happened; n++) {
        safer_error error = {0};
        fail_allocation(n);
        safer_status status = try_open(path, &error);
        happened = allocation_failed();
        fail_allocation(-1);
        if (status != SAFER_OK && status != SAFER_MEMORY && status != SAFER_INPUT)
            fail_msg("allocation %ld: %s", n, error.message);
        if (!happened) assert_int_equal(status, SAFER_OK);
    }
    json_set_alloc_funcs(usual_malloc, usual_free);
    assert_true(n > 200);
    free(path);
    free_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saved),
        cmocka_unit_test(test_saved_damaged),
        cmocka_unit_test(test_saved_configurations),
        cmocka_unit_test(test_saved_bytes),
        cmocka_unit_test(test_onnx),
        cmocka_unit_test(test_onnx_refused),
        cmocka_unit_test(test_onnx_bytes),
        cmocka_unit_test(test_convert),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_of_jansson),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
