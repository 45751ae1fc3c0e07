/* Checkpoints whose tokenizer is not BERT's: its ids, its frame, its longest text, in a folder and in one file; those
 * that do not suit the model. */
#define _GNU_SOURCE
#include "test_checkpoint.h"

/* Byte-level BPE with two numbers before a text and one behind it. */
static const char bytes_json[] =
    "{\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"normalized\":false},{\"id\":1,\"content\":\"</s>\","
    "\"normalized\":false}],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"post_processor\":"
    "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},{\"SpecialToken\":"
    "{\"id\":\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"</s>\","
    "\"type_id\":0}}],\"pair\":[],\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[0],\"tokens\":[\"<s>\"]},"
    "\"</s>\":{\"id\":\"</s>\",\"ids\":[1],\"tokens\":[\"</s>\"]}}},\"model\":{\"type\":\"BPE\",\"vocab\":{\"<s>\":0,"
    "\"</s>\":1,\"a\":2,\"b\":3,\"\xc4\xa0\":4,\"ab\":5,\"\xc4\xa0"
    "ab\":6,\"\xc4\xa0"
    "a\":7},\"merges\":[\"a b\",\"\xc4\xa0 ab\",\"\xc4\xa0 a\"]}}";

static void check_ids(const sf_bert_checkpoint *c, const char *text, const char *expected)
{
    sf_piecer_scratch scratch = {0};
    sf_ids ids = {0};
    char got[400] = "";
    size_t n = 0;
    assert_int_equal(sf_piecer_encode(&ids, c->piecer, text, strlen(text), sf_bert_window(&c->layout.shape, c->piecer),
                                      &scratch),
                     0);
    for (size_t i = 0; i < ids.count; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, i ? " %u" : "%u", (unsigned)ids.ids[i]);
    assert_string_equal(got, expected);
    sf_ids_free(&ids);
    sf_piecer_scratch_free(&scratch);
}

static void check_bytes(const sf_bert_checkpoint *c, size_t tokens)
{
    const sf_tokenizer_frame frame = sf_piecer_frame(c->piecer);
    assert_non_null(sf_piecer_tokenizer(c->piecer));
    assert_null(sf_piecer_wordpiece(c->piecer));
    assert_int_equal(sf_piecer_size(c->piecer), 8);
    assert_int_equal(c->layout.shape.tokens, tokens);
    assert_int_equal(sf_bert_window(&c->layout.shape, c->piecer).most, tokens - 3);
    assert_true(frame.before_count == 2 && frame.before[0] == 0 && frame.before[1] == 0);
    assert_true(frame.after_count == 1 && frame.after[0] == 1);
    check_ids(c, "ab ab a<s> b", "5 6 7 0 4 3");
    check_ids(c, "", "");
}

/* From a folder, and from the file that it is converted to: the same ids, the same weights. */
static void test_folder(void **state)
{
    (void)state;
    safer_error error = {0};
    sf_bert_checkpoint c, again;
    sf_bert_shape shape = classifier(2);
    shape.tokens = 11; /* as tokenizer_config.json says */
    model m = make_model(&shape);
    char *path = keep(write_folder("bytes", &m, &(form){0}, NULL));
    assert_int_equal(unlink(in_folder("bytes", "vocab.txt")), 0);
    write_text("bytes", "tokenizer.json", bytes_json);
    write_text("bytes", "tokenizer_config.json", "{\"model_max_length\": 11}");
    assert_ok(sf_bert_checkpoint_open(&c, path, &error));
    check_bytes(&c, 11);
    check_ids(&c, "abababababababababab", "5 5 5 5 5 5 5 5");
    char *file = keep(temporary("bytes.safetensors"));
    assert_ok(safer_model_convert(file, path, &error));
    assert_ok(sf_bert_checkpoint_open(&again, file, &error));
    check_bytes(&again, 11);
    assert_int_equal(again.layout.size, c.layout.size);
    assert_memory_equal(again.parameters, c.parameters, c.layout.size * sizeof *c.parameters);
    sf_bert_checkpoint_free(&again);

    safer_model *from_folder = NULL, *from_file = NULL; /* the same answers */
    assert_ok(safer_model_open(&from_folder, path, &error));
    assert_ok(safer_model_open(&from_file, file, &error));
    static const char *const texts[] = {"ab", "", "a b ab <s> aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "xyz"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        const size_t length = strlen(texts[i]);
        float scores[2][3];
        int labels[2];
        assert_ok(safer_model_classify(from_folder, &texts[i], &length, 1, &labels[0], scores[0], &error));
        assert_ok(safer_model_classify(from_file, &texts[i], &length, 1, &labels[1], scores[1], &error));
        assert_int_equal(labels[0], labels[1]);
        assert_memory_equal(scores[0], scores[1], sizeof scores[0]);
    }
    safer_model_free(from_folder);
    safer_model_free(from_file);
    sf_bert_checkpoint_free(&c);
    free(path);
    free(file);
    free_model(&m);
}

/* The description with one string in it replaced. */
static void write_changed(const char *name, const char *from, const char *to)
{
    const char *at = strstr(bytes_json, from);
    char *text = NULL;
    assert_non_null(at);
    assert_true(asprintf(&text, "%.*s%s%s", (int)(at - bytes_json), bytes_json, to, at + strlen(from)) > 0);
    write_text(name, "tokenizer.json", text);
    free(text);
}

/* Whether a folder, and the file that it is converted to, are read by their end, and which ids a text has then. */
static void check_side(const char *path, int ending, const char *text, const char *expected)
{
    safer_error error = {0};
    char *file = keep(temporary("side.safetensors"));
    assert_ok(safer_model_convert(file, path, &error));
    for (int i = 0; i < 2; i++) {
        sf_bert_checkpoint c;
        assert_ok(sf_bert_checkpoint_open(&c, i ? file : path, &error));
        assert_int_equal(c.layout.shape.ending, ending);
        check_ids(&c, text, expected);
        sf_bert_checkpoint_free(&c);
    }
    free(file);
}

/* Texts with too many pieces lose their beginning: as tokenizer_config.json says, else as tokenizer.json does. */
static void test_side(void **state)
{
    (void)state;
    static const char long_text[] = "aaaaababab ab a b", first[] = "2 2 2 2 5 5 5 6", last[] = "2 2 5 5 5 6 7 4 3",
                      left[] = "{\"truncation\":{\"max_length\":11,\"direction\":\"Left\"},\"added_tokens\"",
                      any[] = "{\"truncation\":{\"max_length\":9223372036854775807},\"added_tokens\"";
    sf_bert_shape shape = classifier(2);
    shape.tokens = 11;
    model m = make_model(&shape);
    char *path = keep(write_folder("side", &m, &(form){0}, NULL));
    assert_int_equal(unlink(in_folder("side", "vocab.txt")), 0);
    write_text("side", "tokenizer.json", bytes_json);
    write_text("side", "tokenizer_config.json", "{\"model_max_length\": 11}");
    check_side(path, 0, long_text, first);
    write_text("side", "tokenizer_config.json", "{\"model_max_length\": 11, \"truncation_side\": \"left\"}");
    check_side(path, 1, long_text, last + 2);
    write_changed("side", "{\"added_tokens\"", left);
    write_text("side", "tokenizer_config.json", "{}");
    check_side(path, 1, long_text, last + 2);
    write_text("side", "tokenizer_config.json", "{\"truncation_side\": \"right\"}");
    check_side(path, 0, long_text, first);
    write_changed("side", "{\"added_tokens\"", any);
    write_text("side", "tokenizer_config.json", "{\"truncation_side\": \"left\", \"model_max_length\": 11}");
    check_side(path, 1, long_text, last + 2);
    write_text("side", "tokenizer_config.json", "{\"truncation_side\": \"left\"}");
    check_side(path, 1, long_text, "2 2 2 2 5 5 5 6 7 4 3"); /* as many as there are positions */
    free(path);
    free_model(&m);
}

/* The same of BERT's own tokenizer. */
static void test_plain_side(void **state)
{
    (void)state;
    static const char text[] = "the film is good the film is bad.";
    sf_bert_shape shape = classifier(2);
    shape.tokens = 8;
    model m = make_model(&shape);
    char *path = keep(write_folder("plain", &m, &(form){0}, NULL));
    write_text("plain", "tokenizer_config.json", "{\"model_max_length\": 8}");
    check_side(path, 0, text, "5 6 7 8 5 6");
    write_text("plain", "tokenizer_config.json", "{\"model_max_length\": 8, \"truncation_side\": \"left\"}");
    check_side(path, 1, text, "8 5 6 7 10 11");
    write_text("plain", "tokenizer_config.json", "{\"truncation_side\": 1}");
    check_refused(path, "\"truncation_side\" is neither left nor right");
    free(path);
    free_model(&m);
}

static void test_unsuited(void **state)
{
    (void)state;
    sf_bert_shape shape = classifier(2);
    model m = make_model(&shape);
    char *path = keep(write_folder("unsuited", &m, &(form){0}, NULL));
    assert_int_equal(unlink(in_folder("unsuited", "vocab.txt")), 0);
    check_refused(path, "has neither tokenizer.json nor vocab.txt");
    write_changed("unsuited", "\"<s>\":0,", "\"<s>\":0,\"more\":14,");
    check_refused(path, "the tokenizer has 15 pieces, but the embedding of the model has 14 rows only");
    write_changed("unsuited", "{\"added_tokens\"", "{\"truncation\":{\"max_length\":3},\"added_tokens\"");
    check_refused(path, "3 tokens are room for no piece of a text between the 3 that the tokenizer puts around it");
    write_changed("unsuited", "\"BPE\"", "\"Bytes\"");
    check_refused(path, "tokenizer.json");
    assert_int_equal(truncate(in_folder("unsuited", "tokenizer.json"), ((off_t)1 << 28) + 1), 0);
    check_refused(path, "tokenizer.json: a file of 268435457 bytes; a tokenizer's are read up to 268435456");
    free(path);
    free_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_folder), cmocka_unit_test(test_side),
                                       cmocka_unit_test(test_plain_side), cmocka_unit_test(test_unsuited)};
    return cmocka_run_group_tests_name("checkpoint_tokenizer", tests, NULL, NULL);
}
