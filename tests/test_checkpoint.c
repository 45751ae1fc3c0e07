/* BERT checkpoints in folders: of every form, and what is wrong with those that are refused.
 * The one-file form and ONNX are in test_checkpoint_files.c. */
#define _GNU_SOURCE
#include "test_checkpoint.h"

static void test_names(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"embeddings.LayerNorm.gamma", "embeddings.LayerNorm.weight"},
        {"bert.embeddings.LayerNorm.beta", "embeddings.LayerNorm.bias"},
        {"module.bert.pooler.dense.weight", "pooler.dense.weight"},
        {"0.auto_model.encoder.layer.3.output.dense.bias", "encoder.layer.3.output.dense.bias"},
        {"distilbert.transformer.layer.11.attention.q_lin.weight", "encoder.layer.11.attention.self.query.weight"},
        {"transformer.layer.0.sa_layer_norm.bias", "encoder.layer.0.attention.output.LayerNorm.bias"},
        {"transformer.layer.0.output_layer_norm.weight", "encoder.layer.0.output.LayerNorm.weight"},
        {"transformer.layer.0.ffn.lin2.weight", "encoder.layer.0.output.dense.weight"},
        {"transformer.layer.x.ffn.lin2.weight", "transformer.layer.x.ffn.lin2.weight"},
        {"pre_classifier.bias", "pooler.dense.bias"},
        {"classifier.gamma", "classifier.gamma"},
        {"bert.", ""},
    };
    char out[96], large[200];
    for (size_t i = 0; i < COUNT(pairs); i++) {
        assert_int_equal(sf_bert_canonical(out, pairs[i][0]), 0);
        assert_string_equal(out, pairs[i][1]);
    }
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    assert_int_equal(sf_bert_canonical(out, large), -1);
    for (size_t length = 60; length < 100; length++) { /* whatever fits is as long as it says */
        memset(large, 'x', sizeof large);
        strcpy(large + length, "LayerNorm.gamma");
        if (sf_bert_canonical(out, large) == 0) assert_string_equal(out + length, "LayerNorm.weight");
    }
}

static void test_forms(void **state)
{
    (void)state;
    static const sf_dtype types[] = {SF_F32, SF_F16, SF_BF16, SF_F64};
    uint64_t same = 0;
    for (names n = PLAIN; n < NAMES; n++) {
        sf_bert_shape shape = classifier(n == DISTIL ? 0 : 2);
        model m = make_model(&shape);
        for (size_t t = 0; t < COUNT(types); t++)
            for (int shards = 0; shards < 4; shards += 3) {
                form f = {.names = n, .type = types[t], .shards = shards, .extras = t % 2};
                uint64_t hash = check_open(write_folder("forms", &m, &f, NULL), &m);
                if (n == PLAIN && t == 0 && shards == 0) same = hash;
                if (n == DISTIL)
                    assert_int_not_equal(hash, same); /* another model */
                else
                    assert_int_equal(hash, same); /* the form of the weights decides no answer */
            }
        check_open(
            write_folder("forms", &m, &(form){.names = n, .file = "model.fp16.safetensors", .type = SF_F16}, NULL), &m);
        free_model(&m);
    }
}

static void test_encoders(void **state)
{
    (void)state;
    model m = make_model(&encoder);
    const form plain = {0};
    static const struct {
        const char *pooling;
        sf_bert_pool pool;
    } modes[] = {
        {"{\"word_embedding_dimension\": 8, \"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": false}",
         SF_POOL_CLS},
        {"{\"pooling_mode_cls_token\": false, \"pooling_mode_mean_tokens\": true, \"pooling_mode_max_tokens\": false}",
         SF_POOL_MEAN},
        {"{\"pooling_mode\": \"cls\"}", SF_POOL_CLS},
        {"{\"pooling_mode\": \"mean\"}", SF_POOL_MEAN},
    };
    check_open(write_folder("encoder", &m, &plain, NULL), &m); /* no pooler: mean */
    for (size_t i = 0; i < COUNT(modes); i++) {
        const char *path = write_folder("encoder", &m, &plain, NULL);
        assert_int_equal(mkdir(in_folder("encoder", "1_Pooling"), 0777), 0);
        write_text("encoder", "1_Pooling/config.json", modes[i].pooling);
        m.layout.shape.pool = modes[i].pool;
        check_open(path, &m);
    }
    const char *path = write_folder("encoder", &m, &plain, NULL);
    assert_int_equal(mkdir(in_folder("encoder", "1_Pooling"), 0777), 0);
    write_text("encoder", "1_Pooling/config.json", "{\"pooling_mode_max_tokens\": true}");
    check_refused(path, "pooling by \"pooling_mode_max_tokens\"");
    write_text("encoder", "1_Pooling/config.json",
               "{\"pooling_mode_mean_tokens\": true, \"pooling_mode_cls_token\": true}");
    check_refused(path, "several modes");
    write_text("encoder", "1_Pooling/config.json", "{\"pooling_mode_mean_tokens\": 1}");
    check_refused(path, "pooling by none");
    free_model(&m);

    sf_bert_shape pooled = encoder; /* a pooler that nothing uses: the mean all the same */
    pooled.pool = SF_POOL_POOLER;
    model with = make_model(&pooled);
    path = write_folder("encoder", &with, &plain, NULL);
    sf_bert_shape mean = encoder;
    mean.pool = SF_POOL_MEAN;
    model without = make_model(&mean);
    check_open(path, &without);
    free_model(&with);
    free_model(&without);
}

static void test_configurations(void **state)
{
    (void)state;
    sf_bert_shape shape = classifier(2);
    model m = make_model(&shape);
    static const struct {
        const char *changes, *words;
    } bad[] = {
        {"{\"model_type\": \"deberta\"}", "\"deberta\"; bert, distilbert, roberta,"},
        {"{\"model_type\": null}", "no \"model_type\""},
        {"{\"position_embedding_type\": \"relative_key\"}", "\"relative_key\"; absolute is supported"},
        {"{\"is_decoder\": true}", "decoder"},
        {"{\"hidden_act\": \"mish\"}", "\"mish\"; gelu"},
        {"{\"hidden_act\": null}", "\"hidden_act\" is missing"},
        {"{\"hidden_size\": null}", "\"hidden_size\" must be a whole number"},
        {"{\"hidden_size\": \"8\"}", "\"hidden_size\" must be a whole number"},
        {"{\"hidden_size\": 8.5}", "\"hidden_size\" must be a whole number"},
        {"{\"hidden_size\": 0}", "\"hidden_size\" must be a whole number from 1"},
        {"{\"hidden_size\": 9}", "cannot be divided among 2 heads"},
        {"{\"hidden_size\": 16}", "the shape of tensor"},
        {"{\"num_attention_heads\": 0}", "\"num_attention_heads\""},
        {"{\"num_hidden_layers\": 1000000000}", "\"num_hidden_layers\""},
        {"{\"num_hidden_layers\": 3}", "there is no tensor \"encoder.layer.2.attention.self.query.weight\""},
        {"{\"intermediate_size\": -1}", "\"intermediate_size\""},
        {"{\"vocab_size\": 1e300}", "\"vocab_size\""},
        {"{\"vocab_size\": 9223372036854775807}", "\"vocab_size\""},
        {"{\"max_position_embeddings\": 2}", "\"max_position_embeddings\""},
        {"{\"type_vocab_size\": 0}", "\"type_vocab_size\""},
        {"{\"layer_norm_eps\": 0}", "\"layer_norm_eps\""},
        {"{\"layer_norm_eps\": \"1e-12\"}", "\"layer_norm_eps\""},
        {"{\"id2label\": {\"0\": \"a\", \"1\": \"b\"}}", "\"id2label\" names 2 labels, but the classifier has 3"},
        {"{\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"3\": \"c\"}}", "no label \"2\" in \"id2label\""},
        {"{\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"a\"}}", "the label \"a\" occurs twice"},
        {"{\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": 3}}", "no label \"2\""},
        {"{\"architectures\": [\"BertForTokenClassification\"]}", "BertForTokenClassification"},
        {"{\"problem_type\": \"multi_label_classification\"}", "exec_transformers.py FOLDER --label NAME"},
        {"{\"problem_type\": \"regression\"}", "exec_transformers.py FOLDER --threshold T"},
        {"{\"problem_type\": \"other\"}", "\"problem_type\" is \"other\"; single_label_classification is supported"},
        {"{\"problem_type\": 7}", "\"problem_type\" is no text"},
        {"{\"model_type\": \"gpt2\"}", "use --model 'exec:python3 examples/exec_transformers.py FOLDER' --workers 1"},
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        check_refused(write_folder("config", &m, &(form){0}, bad[i].changes), bad[i].words);

    check_open(write_folder("config", &m, &(form){0},
                            "{\"architectures\": null, \"problem_type\": \"single_label_classification\"}"),
               &m);
    static const struct {
        const char *name;
        sf_activation activation;
    } good[] = {{"gelu", SF_GELU}, {"gelu_new", SF_GELU_TANH}, {"gelu_pytorch_tanh", SF_GELU_TANH}, {"relu", SF_RELU}};
    for (size_t i = 0; i < COUNT(good); i++) {
        char changes[100];
        snprintf(changes, sizeof changes, "{\"hidden_act\": \"%s\", \"layer_norm_eps\": 1e-5}", good[i].name);
        m.layout.shape.activation = good[i].activation;
        m.layout.shape.epsilon = 1e-5f;
        check_open(write_folder("config", &m, &(form){0}, changes), &m);
    }
    safer_error error = {0};
    sf_bert_checkpoint c; /* names for labels that have none */
    assert_ok(sf_bert_checkpoint_open(&c, write_folder("config", &m, &(form){0}, "{\"id2label\": null}"), &error));
    assert_string_equal(c.labels[2], "LABEL_2");
    sf_bert_checkpoint_free(&c);
    free_model(&m);
}

static void test_lengths(void **state)
{
    (void)state;
    static const struct {
        const char *tokenizer;
        size_t tokens;
    } cases[] = {{"{}", 16},
                 {"{\"model_max_length\": 12}", 12},
                 {"{\"model_max_length\": 7}", 16},
                 {"{\"model_max_length\": 512}", 16},
                 {"{\"model_max_length\": 1000000000000000019884624838656}", 16},
                 {"{\"model_max_length\": \"8\"}", 16}};
    model m = make_model(&encoder);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *path = write_folder("lengths", &m, &(form){0}, NULL);
        write_text("lengths", "tokenizer_config.json", cases[i].tokenizer);
        m.layout.shape.tokens = cases[i].tokens;
        check_open(path, &m);
    }
    free_model(&m);
    sf_bert_shape wide = encoder;
    wide.positions = 600;
    wide.tokens = 512;
    m = make_model(&wide);
    check_open(write_folder("lengths", &m, &(form){0}, "{\"max_position_embeddings\": 600}"), &m);
    free_model(&m);
}

static void test_vocabularies(void **state)
{
    (void)state;
    char larger[256];
    model m = make_model(&encoder);
    const char *path = write_folder("vocabulary", &m, &(form){0}, NULL);
    snprintf(larger, sizeof larger, "%sone\n", vocabulary);
    write_text("vocabulary", "vocab.txt", larger);
    check_refused(path, "the tokenizer has 15 pieces, but the embedding of the model has 14 rows only");
    free_model(&m);

    sf_bert_shape padded = encoder; /* rows that no piece has */
    padded.vocabulary = 16;
    m = make_model(&padded);
    check_open(write_folder("vocabulary", &m, &(form){0}, "{\"vocab_size\": 16}"), &m);
    path = write_folder("vocabulary", &m, &(form){0}, "{\"vocab_size\": 16}");
    write_text("vocabulary", "vocab.txt", "[PAD]\n[UNK]\n[CLS]\nthe\n");
    check_refused(path, "[SEP]");
    assert_int_equal(unlink(in_folder("vocabulary", "vocab.txt")), 0);
    safer_error error;
    sf_bert_checkpoint c;
    assert_int_not_equal(sf_bert_checkpoint_open(&c, path, &error), SAFER_OK);
    free_model(&m);
}

/* The folder "tensors" with its weights in this form is refused. */
static void check_weights(const model *m, const form *f, const char *words)
{
    write_tensors(in_folder("tensors", "model.safetensors"), m, f, 0, 1, NULL);
    check_refused(temporary("tensors"), words);
}

/* Each tensor in turn: missing, of another shape, of whole numbers, with a NaN. */
static void test_tensors(void **state)
{
    (void)state;
    for (names n = PLAIN; n < NAMES; n += DISTIL) {
        sf_bert_shape shape = classifier(n == DISTIL ? 0 : 2);
        model m = make_model(&shape);
        write_folder("tensors", &m, &(form){.names = n}, NULL);
        for (size_t i = 0; i < m.layout.tensor_count; i++) {
            const sf_bert_tensor *t = &m.layout.tensors[i];
            char named[128], words[400];
            int head = strcmp(t->name, "classifier.weight") == 0; /* it says itself how many classes there are */
            name_as(named, t->name, n);
            snprintf(words, sizeof words, "there is no tensor \"%s\"",
                     strncmp(named, "distilbert.", 11) == 0 ? named + 11 : named);
            if (!head) check_weights(&m, &(form){.names = n, .without = t->name}, words);
            if (t->rank == 2)
                snprintf(words, sizeof words, "the shape of tensor \"%s\" is [%zu, %zu], not [%zu, %zu]", named,
                         t->shape[0] + 1, t->shape[1], t->shape[0], t->shape[1]);
            else
                snprintf(words, sizeof words, "the shape of tensor \"%s\" is [%zu], not [%zu]", named, t->shape[0] + 1,
                         t->shape[0]);
            if (head) strcpy(words, "\"classifier.bias\" is [3], not [4]");
            check_weights(&m, &(form){.names = n, .misshapen = t->name}, words);
            if (n == DISTIL) continue; /* from here on it is the same */
            snprintf(words, sizeof words, "tensor \"%s\" are whole numbers", named);
            check_weights(&m, &(form){.whole = t->name}, words);
            snprintf(words, sizeof words, "tensor \"%s\" is not a finite number", named);
            check_weights(&m, &(form){.broken = t->name, .type = i % 2 ? SF_F16 : SF_F32}, words);
        }
        free_model(&m);
    }
    sf_bert_shape one = classifier(2);
    one.classes = 1;
    model m = make_model(&one);
    check_refused(write_folder("tensors", &m, &(form){0}, NULL), "gives a number, not a class (regression)");
    free_model(&m);
}

static void test_files(void **state)
{
    (void)state;
    model m = make_model(&encoder);
    safer_error error;
    sf_bert_checkpoint c;
    assert_fails(sf_bert_checkpoint_open(&c, temporary("nothing"), &error), SAFER_SYSTEM, "nothing");
    char *path = keep(write_folder("files", &m, &(form){0}, NULL));
    assert_int_equal(unlink(in_folder("files", "config.json")), 0);
    assert_fails(sf_bert_checkpoint_open(&c, path, &error), SAFER_SYSTEM, "config.json");

    write_config("files", PLAIN, 0, NULL);
    assert_int_equal(unlink(in_folder("files", "model.safetensors")), 0);
    check_refused(path, "there is no model.safetensors, no pytorch_model.bin and no ONNX file");
    write_text("files", "pytorch_model.bin", "x");
    check_refused(path, "pytorch_model.bin is no file of torch.save");
    write_text("files", "pytorch_model.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
    check_refused(path, "pytorch_model.bin is a pointer of Git LFS");
    assert_int_equal(unlink(in_folder("files", "pytorch_model.bin")), 0);
    assert_int_equal(mkfifo(in_folder("files", "pytorch_model.bin"), 0666), 0);
    check_refused(path, "pytorch_model.bin is not a plain file");
    assert_int_equal(unlink(in_folder("files", "pytorch_model.bin")), 0);
    assert_int_equal(symlink("model.safetensors", in_folder("files", "model.safetensors")), 0);
    assert_fails(sf_bert_checkpoint_open(&c, path, &error), SAFER_SYSTEM, "symbolic links");
    assert_int_equal(unlink(in_folder("files", "model.safetensors")), 0);
    assert_int_equal(symlink("nowhere", in_folder("files", "model.safetensors")), 0);
    assert_fails(sf_bert_checkpoint_open(&c, path, &error), SAFER_SYSTEM, "model.safetensors");
    assert_int_equal(unlink(in_folder("files", "model.safetensors")), 0);
    write_tensors(in_folder("files", "a.safetensors"), &m, &(form){0}, 0, 1, NULL);
    check_open(path, &m);
    write_tensors(in_folder("files", "b.safetensors"), &m, &(form){0}, 0, 1, NULL);
    check_refused(path, "2 safetensors files, none of them model.safetensors");

    write_folder("files", &m, &(form){.shards = 2}, NULL);
    assert_int_equal(unlink(in_folder("files", "model-00002-of-00002.safetensors")), 0);
    assert_fails(sf_bert_checkpoint_open(&c, path, &error), SAFER_SYSTEM, "model-00002-of-00002.safetensors");
    write_tensors(in_folder("files", "model-00002-of-00002.safetensors"), &m, &(form){0}, 0, 1, NULL);
    check_refused(path, "are both the model's \"");
    write_text("files", "model.safetensors.index.json", "{\"weight_map\": {\"a\": \"../model.safetensors\"}}");
    check_refused(path, "tensor \"a\" is not in a safetensors file of the same folder");
    write_text("files", "model.safetensors.index.json", "{\"weight_map\": {\"a\": 3}}");
    check_refused(path, "tensor \"a\" is not in a safetensors file");
    write_text("files", "model.safetensors.index.json", "{\"weight_map\": []}");
    check_refused(path, "no \"weight_map\"");
    write_text("files", "model.safetensors.index.json", "{\"weight_map\": {");
    check_refused(path, "model.safetensors.index.json: no JSON");
    free(path);
    free_model(&m);
}

/* The safetensors reader has tests of its own: that its refusals arrive is what counts here. */
static void test_damaged_weights(void **state)
{
    (void)state;
    model m = make_model(&encoder);
    static const struct {
        const char *header;
        const char *words;
    } bad[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
         "overlap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[0,32]}}", "truncated"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "belong to none"},
        {"{\"a\":{\"dtype\":\"I4\",\"shape\":[2],\"data_offsets\":[0,8]}}", "I4"},
        {"{\"a\":", "header"},
    };
    char *path = keep(write_folder("damaged", &m, &(form){0}, NULL));
    for (size_t i = 0; i < COUNT(bad); i++) {
        char bytes[400] = {0};
        size_t length = strlen(bad[i].header);
        bytes[0] = (char)length;
        memcpy(bytes + 8, bad[i].header, length);
        write_temporary("damaged/model.safetensors", bytes, 8 + length + 12);
        check_refused(path, bad[i].words);
    }
    write_temporary("damaged/model.safetensors", "\0\0\0\0\0\0\0\x80{}", 10);
    check_refused(path, "its header would have 9223372036854775808 bytes");

    sf_file file = {0}; /* cut anywhere */
    write_folder("damaged", &m, &(form){0}, NULL);
    safer_error error = {0};
    assert_ok(sf_file_load(&file, in_folder("damaged", "model.safetensors"), &error));
    char *copy = malloc(file.length);
    assert_non_null(copy);
    memcpy(copy, file.bytes, file.length);
    for (size_t cut = 0; cut < file.length; cut += 97) {
        write_temporary("damaged/model.safetensors", copy, cut);
        check_refused(path, "model.safetensors");
    }
    free(copy);
    sf_file_free(&file);

    write_folder("damaged", &m, &(form){0}, NULL); /* every beginning of a configuration is none */
    assert_ok(sf_file_load(&file, in_folder("damaged", "config.json"), &error));
    copy = malloc(file.length);
    assert_non_null(copy);
    memcpy(copy, file.bytes, file.length);
    for (size_t cut = 0; cut + 1 < file.length; cut++) {
        write_temporary("damaged/config.json", copy, cut);
        check_refused(path, "config.json");
    }
    write_text("damaged", "config.json", "[]");
    check_refused(path, "not a JSON object");
    write_config("damaged", PLAIN, 0, NULL);
    write_text("damaged", "tokenizer_config.json", "{\"model_max_length\": ");
    check_refused(path, "tokenizer_config.json");
    free(copy);
    sf_file_free(&file);
    free(path);
    free_model(&m);
}

static void test_hashes(void **state)
{
    (void)state;
    sf_bert_shape shape = classifier(2);
    model m = make_model(&shape);
    safer_error error = {0};
    sf_bert_checkpoint c;
    uint64_t hashes[6];
    hashes[0] = check_open(write_folder("hash", &m, &(form){0}, NULL), &m);
    assert_int_equal(check_open(write_folder("hash", &m, &(form){0}, "{\"transformers_version\": \"4.0\"}"), &m),
                     hashes[0]);
    m.parameters[m.layout.size - 1] += 1;
    hashes[1] = check_open(write_folder("hash", &m, &(form){0}, NULL), &m);
    m.parameters[m.layout.size - 1] -= 1;
    for (int i = 2; i < 6; i++) {
        static const char *const changes[] = {"{\"id2label\": null}", "{\"layer_norm_eps\": 1e-11}", NULL, NULL};
        const char *path = write_folder("hash", &m, &(form){0}, changes[i - 2]);
        if (i == 4)
            write_text("hash", "vocab.txt",
                       "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nfilm\nis\ngood\n##ly\nbad\n.\na\n##m\n");
        if (i == 5) write_text("hash", "tokenizer_config.json", "{\"do_lower_case\": false}");
        assert_ok(sf_bert_checkpoint_open(&c, path, &error));
        hashes[i] = c.hash;
        sf_bert_checkpoint_free(&c);
    }
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < i; j++) assert_int_not_equal(hashes[i], hashes[j]);
    free_model(&m);
}

/* SHA-256 over name, NUL and digest of every file that is read, in the order of their names. */
static void test_folder_digest(void **state)
{
    (void)state;
    const sf_bert_shape shape = classifier(2);
    model m = make_model(&shape);
    safer_error error = {0};
    sf_bert_checkpoint c;
    sf_digest expected, part;
    const char *path = write_folder("digest", &m, &(form){0}, NULL);
    write_text("digest", "README.md", "not read");
    static const char *const files[] = {"config.json", "model.safetensors", "vocab.txt"};
    sf_sha256_sum sum = {0};
    for (size_t i = 0; i < COUNT(files); i++) {
        sf_file file = {0};
        assert_ok(sf_file_load(&file, in_folder("digest", files[i]), &error));
        assert_ok(sf_sha256(&part, file.bytes, file.length, &error));
        sf_sha256_add(&sum, files[i], strlen(files[i]) + 1);
        sf_sha256_add(&sum, part.bytes, 32);
        sf_file_free(&file);
    }
    assert_ok(sf_sha256_end(&expected, &sum, &error));
    assert_ok(sf_bert_checkpoint_open(&c, path, &error));
    assert_string_equal(c.sha256.hex, expected.hex);
    sf_bert_checkpoint_free(&c);
    write_text("digest", "tokenizer_config.json", "{\"model_max_length\": 100}"); /* read twice, and counts once */
    assert_ok(sf_bert_checkpoint_open(&c, path, &error));
    assert_string_not_equal(c.sha256.hex, expected.hex);
    sf_bert_checkpoint_free(&c);
    free_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),           cmocka_unit_test(test_forms),
        cmocka_unit_test(test_encoders),        cmocka_unit_test(test_configurations),
        cmocka_unit_test(test_lengths),         cmocka_unit_test(test_vocabularies),
        cmocka_unit_test(test_tensors),         cmocka_unit_test(test_files),
        cmocka_unit_test(test_damaged_weights), cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_folder_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
