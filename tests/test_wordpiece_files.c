/* BERT's tokenizer: its files, good and bad, and memory that runs out. What it makes of texts is in
 * test_wordpiece.c. */
#define _GNU_SOURCE
#include "test_wordpiece.h"

/* ------------------------------------------------------------------ files */

static const char *make_folder(const char *name)
{
    const char *path = temporary(name);
    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

static void write_in(const char *folder, const char *name, const char *content)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, strlen(content), file), strlen(content));
    assert_int_equal(fclose(file), 0);
}

#define SPECIALS "\"[PAD]\": 0, \"[UNK]\": 1, \"[CLS]\": 2, \"[SEP]\": 3, \"[MASK]\": 4"
#define TOKEN(id, content, flags) "{\"id\": " #id ", \"content\": \"" content "\", \"special\": true" flags "}"
#define JSON(normalizer, pre, model, added, rest) \
    "{\"normalizer\": " normalizer ", \"pre_tokenizer\": " pre ", \"model\": " model ", \"added_tokens\": [" added \
    "]" rest "}"
#define NORMALIZER(flags) \
    "{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, " flags "}"
#define PRE "{\"type\": \"BertPreTokenizer\"}"
#define MODEL(vocab) \
    "{\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", \"continuing_subword_prefix\": \"##\", " \
    "\"max_input_chars_per_word\": 5, " \
    "\"vocab\": {" vocab "}}"
#define GOOD \
    JSON(NORMALIZER("\"strip_accents\": null, \"lowercase\": true"), PRE, \
         MODEL(SPECIALS ", \"a\": 5, \"##b\": 7, \"A\": 8, \"\u00e9\": 9, \"e\": 10"), TOKEN(3, "[SEP]", ""), "")

/* The ids as text. Static. */
static const char *ids_of(const char *folder, const char *text)
{
    static char out[256];
    sf_wordpiece *w = NULL;
    sf_ids ids = {0};
    assert_ok(sf_wordpiece_open(&w, folder, NULL, &error));
    append(&ids, w, text, strlen(text));
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < ids.count; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, i ? " %u" : "%u", (unsigned)ids.ids[i]);
    sf_ids_free(&ids);
    sf_wordpiece_free(w);
    return out;
}

static void test_open_json(void **unused)
{
    const char *folder = make_folder("json");
    sf_wordpiece *w = NULL;
    (void)unused;
    write_in(folder, "tokenizer.json", GOOD);
    assert_string_equal(ids_of(folder, "ab A é Éb [SEP] [CLS] abbbbb"), "5 7 5 10 10 7 3 1 1 1 1");
    assert_ok(sf_wordpiece_open(&w, folder, NULL, &error));
    const sf_wordpiece_options *o = sf_wordpiece_get_options(w);
    assert_true(o->lower && o->accents && o->ideographs && o->clean && o->longest == 5);
    sf_wordpiece_specials s = sf_wordpiece_special(w);
    assert_true(s.pad == 0 && s.unk == 1 && s.cls == 2 && s.sep == 3);
    assert_int_equal(sf_wordpiece_size(w), 11);
    sf_wordpiece_free(w);

    /* tokenizer_config.json has the last word, as in transformers. */
    write_in(folder, "tokenizer_config.json", "{\"do_lower_case\": false}");
    assert_string_equal(ids_of(folder, "A é"), "8 9");
    write_in(folder, "tokenizer_config.json", "{\"do_lower_case\": false, \"strip_accents\": true}");
    assert_string_equal(ids_of(folder, "A é"), "8 10");
    write_in(folder, "tokenizer_config.json", "{\"do_lower_case\": true, \"strip_accents\": false}");
    assert_string_equal(ids_of(folder, "A é"), "5 9");
    write_in(folder, "tokenizer_config.json",
             "{\"do_lower_case\": false, \"tokenizer_class\": \"PreTrainedTokenizerFast\"}");
    assert_string_equal(ids_of(folder, "A é"), "5 10");
    write_in(folder, "tokenizer_config.json", "{\"tokenizer_class\": \"BertTokenizer\"}");
    assert_string_equal(ids_of(folder, "A é"), "5 10");
    write_in(folder, "tokenizer_config.json", "{}");

    write_in(folder, "tokenizer.json",
             JSON(NORMALIZER("\"lowercase\": true"), PRE, MODEL(SPECIALS ", \"a\": 5"),
                  TOKEN(6, "ee", ", \"single_word\": true"), ""));
    assert_string_equal(ids_of(folder, "ee _ee a"), "6 1 1 5"); /* a token that is no piece */

    /* Accents of their own; the ends by the post-processor; added tokens beyond the model. */
    write_in(
        folder, "tokenizer.json",
        JSON(NORMALIZER("\"strip_accents\": false, \"lowercase\": true"), PRE,
             MODEL("\"[UNK]\": 1, \"<s>\": 2, \"</s>\": 3, \"a\": 4, \"\u00e9\": 5"),
             TOKEN(2, "<s>", ", \"normalized\": false") ", " TOKEN(9, "new\\nA", ", \"normalized\": true"),
             ", \"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"</s>\", 3], \"cls\": [\"<s>\", 2]}"));
    assert_string_equal(ids_of(folder, "É a<s>NEW a new"), "5 4 2 9 1"); /* cleaning makes a space of the newline */
    assert_string_equal(ids_of(folder, "xnew aé"), "1 9 5");
    assert_ok(sf_wordpiece_open(&w, folder, NULL, &error));
    s = sf_wordpiece_special(w);
    assert_true(s.unk == 1 && s.cls == 2 && s.sep == 3 && s.pad == 0 && sf_wordpiece_size(w) == 10);
    sf_wordpiece_free(w);
    write_in(folder, "tokenizer.json",
             JSON(NORMALIZER("\"strip_accents\": false, \"lowercase\": true"), PRE,
                  MODEL("\"[UNK]\": 1, \"<s>\": 2, \"</s>\": 3"), "",
                  ", \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": ["
                  "{\"SpecialToken\": {\"id\": \"<s>\"}}, {\"Sequence\": {}}, "
                  "{\"SpecialToken\": {\"id\": \"</s>\"}}]}"));
    assert_ok(sf_wordpiece_open(&w, folder, NULL, &error));
    s = sf_wordpiece_special(w);
    assert_true(s.cls == 2 && s.sep == 3);
    sf_wordpiece_free(w);
}

static void test_open_text(void **unused)
{
    const char *folder = make_folder("text");
    sf_wordpiece *w = NULL;
    (void)unused;
    write_in(folder, "vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n");
    sf_buffer written = {0}; /* where nothing is unusual, the usual form comes back */
    assert_ok(sf_wordpiece_open(&w, folder, NULL, &error));
    assert_int_equal(sf_wordpiece_vocabulary(&written, w), 0);
    assert_string_equal(written.bytes, "[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n");
    sf_buffer_free(&written);
    sf_wordpiece_free(w);
    write_in(folder, "vocab.txt",
             "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\na\r\n##b \r\nA\r\n\r\n\u00e9\r\ne\r\n");
    assert_string_equal(ids_of(folder, "ab A é [SEP][MASK] [sep]"), "5 6 5 10 3 4 1 1 1");
    write_in(folder, "tokenizer_config.json", "{\"do_lower_case\": false}");
    assert_string_equal(ids_of(folder, "ab A é"), "5 6 7 9");
    write_in(folder, "tokenizer_config.json",
             "{\"do_lower_case\": true, \"strip_accents\": false, \"tokenize_chinese_chars\": false}");
    assert_string_equal(ids_of(folder, "ab A é 日日"), "5 6 5 9 1");
    write_in(folder, "tokenizer_config.json",
             "{\"mask_token\": {\"content\": \"A\"}, "
             "\"added_tokens_decoder\": {\"11\": {\"content\": \"<x>\", \"normalized\": false}, "
             "\"3\": {\"content\": \"[SEP]\", \"normalized\": false}}}");
    write_in(folder, "added_tokens.json", "{\"New\": 12}");
    assert_string_equal(ids_of(folder, "aA<x>newa [MASK] [SEP]"), "5 7 11 12 5 1 1 7 1 1 3");
    write_in(folder, "tokenizer_config.json", "{}");
    write_in(folder, "special_tokens_map.json",
             "{\"cls_token\": \"a\", \"sep_token\": {\"content\": \"e\"}, \"unk_token\": \"A\"}");
    write_in(folder, "added_tokens.json", "{}");
    assert_ok(sf_wordpiece_open(&w, folder, NULL, &error));
    sf_wordpiece_specials s = sf_wordpiece_special(w);
    assert_true(s.cls == 5 && s.sep == 10 && s.unk == 7 && s.pad == 0);
    sf_wordpiece_free(w);
}

static void test_bad_vocabularies(void **unused)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "x.txt is empty"},
        {"\n", "no [UNK]"},
        {"[CLS]\n[SEP]\na\n", "x.txt has no [UNK] among its 3 pieces"},
        {"[UNK]\n[SEP]\na\n", "no [CLS]"},
        {"[UNK]\n[CLS]\na\n", "no [SEP]"},
        {"[UNK]\n[CLS]\n[SEP]\na\nb\na\n", "x.txt: line 6 repeats \"a\" of line 4"},
        {"[UNK]\n[CLS]\n[SEP]\na\na \n", "line 5 repeats"},
        {"[UNK]\n[CLS]\n[SEP]\n\xff\n", "line 4 is not valid UTF-8"},
        {"[UNK]\n[CLS]\n[SEP]\nab\tc\n", "line 4: \"c\" behind a tab"},
        {"[UNK]\tunk\n[CLS]\tcls\n[SEP]\tsep\nab\tprefix=##\n", "line 4: \"prefix=##\""}, /* only in the first line */
        {"[UNK]\n[CLS]\tcls\n[SEP]\tsep\n", "no [UNK]"},                                  /* marks are all or nothing */
    };
    sf_wordpiece *w = NULL;
    (void)unused;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_fails(sf_wordpiece_new(&w, cases[i].text, strlen(cases[i].text), &uncased, "x.txt", &error), SAFER_INPUT,
                     cases[i].words);
    assert_fails(sf_wordpiece_new(&w, "[UNK]\na\0b\n", 10, &uncased, "x.txt", &error), SAFER_INPUT,
                 "line 2 holds a NUL byte");
    static char line[6000] = "[UNK]\n";
    memset(line + 6, 'a', 5000);
    assert_fails(sf_wordpiece_new(&w, line, strlen(line), &uncased, "x.txt", &error), SAFER_INPUT,
                 "line 2 has 5000 bytes");
    assert_null(w);
}

static void test_bad_files(void **unused)
{
#define WITH(model) JSON(NORMALIZER("\"lowercase\": true"), PRE, model, "", "")
    static const struct {
        const char *json, *words;
    } cases[] = {
        {"", "tokenizer.json: line"},
        {"{", "tokenizer.json: line 1"},
        {"[]", "tokenizer.json is not a JSON object"},
        {"{\"a\": 1, \"a\": 2}", "duplicate"},
        {"{}", "tokenizer.json has no \"model\""},
        {WITH("{\"type\": \"BPE\"}"), "the model is of type \"BPE\"; only WordPiece can be read"},
        {WITH("{\"type\": \"Unigram\", \"vocab\": [[\"a\", 0]]}"), "\"Unigram\""},
        {WITH("{\"vocab\": {}}"), "the model is of type \"\""},
        {WITH("{\"type\": \"WordPiece\"}"), "the model has no \"vocab\""},
        {WITH("{\"type\": \"WordPiece\", \"vocab\": {\"a\": \"b\"}}"),
         "the number of piece \"a\" is not a whole number"},
        {WITH("{\"type\": \"WordPiece\", \"vocab\": {\"a\": -1}}"), "piece \"a\" has the number -1"},
        {WITH("{\"type\": \"WordPiece\", \"vocab\": {\"a\": 4000000000}}"), "piece \"a\" has the number 4000000000"},
        {WITH("{\"type\": \"WordPiece\", \"vocab\": {\"a\": 3, \"b\": 3}}"), "have the same number 3"},
        {WITH("{\"type\": \"WordPiece\", \"vocab\": {}}"), "is empty"},
        {WITH(MODEL("\"[CLS]\": 0, \"[SEP]\": 1")), "tokenizer.json has no [UNK]"},
        {WITH("{\"type\": \"WordPiece\", \"vocab\": {}, \"max_input_chars_per_word\": 0}"),
         "\"max_input_chars_per_word\""},
        {WITH("{\"type\": \"WordPiece\", \"vocab\": {}, \"continuing_subword_prefix\": \"# #\"}"),
         "\"continuing_subword_prefix\""},
        {JSON("null", PRE, MODEL(SPECIALS), "", ""), "no \"normalizer\""},
        {JSON("{\"type\": \"Lowercase\"}", PRE, MODEL(SPECIALS), "", ""),
         "the normalizer is of type \"Lowercase\"; only BertNormalizer"},
        {JSON(NORMALIZER("\"lowercase\": 1"), PRE, MODEL(SPECIALS), "", ""), "\"lowercase\" is neither true nor false"},
        {JSON(NORMALIZER("\"lowercase\": true"), "{\"type\": \"ByteLevel\"}", MODEL(SPECIALS), "", ""),
         "the pre_tokenizer is of type \"ByteLevel\""},
        {JSON(NORMALIZER("\"lowercase\": true"), PRE, MODEL(SPECIALS), "{\"id\": 7}", ""),
         "added token 1 has no \"content\""},
        {JSON(NORMALIZER("\"lowercase\": true"), PRE, MODEL(SPECIALS), TOKEN(3, "x", ""), ""),
         "\"[SEP]\" and \"x\" have the same number 3"},
        {JSON(NORMALIZER("\"lowercase\": true"), PRE, MODEL(SPECIALS), TOKEN(7, "[SEP]", ""), ""), "repeats \"[SEP]\""},
    };
    const char *folder = make_folder("bad");
    sf_wordpiece *w = NULL;
    (void)unused;
    assert_fails(sf_wordpiece_open(&w, folder, NULL, &error), SAFER_INPUT, "has neither tokenizer.json nor vocab.txt");
    assert_fails(sf_wordpiece_open(&w, "/nonexistent", NULL, &error), SAFER_INPUT, "/nonexistent has neither");
    for (size_t i = 0; i < COUNT(cases); i++) {
        write_in(folder, "tokenizer.json", cases[i].json);
        assert_fails(sf_wordpiece_open(&w, folder, NULL, &error), SAFER_INPUT, cases[i].words);
    }
    write_in(folder, "tokenizer.json", GOOD);
    write_in(folder, "tokenizer_config.json", "{\"do_lower_case\": 1}");
    assert_fails(sf_wordpiece_open(&w, folder, NULL, &error), SAFER_INPUT, "tokenizer_config.json: \"do_lower_case\"");
    write_in(folder, "tokenizer_config.json", "{");
    assert_fails(sf_wordpiece_open(&w, folder, NULL, &error), SAFER_INPUT, "tokenizer_config.json: line 1");

    const char *text = make_folder("bad-text");
    write_in(text, "vocab.txt", "[UNK]\n[CLS]\n[SEP]\nno newline");
    write_in(text, "tokenizer_config.json", "{\"added_tokens_decoder\": {\"x\": {\"content\": \"a\"}}}");
    assert_fails(sf_wordpiece_open(&w, text, NULL, &error), SAFER_INPUT, "holds \"x\", which is no number");
    write_in(text, "tokenizer_config.json", "{\"added_tokens_decoder\": {\"3\": {\"content\": \"a\"}}}");
    assert_fails(sf_wordpiece_open(&w, text, NULL, &error), SAFER_INPUT,
                 "\"no newline\" and \"a\" have the same number 3");
    write_in(text, "tokenizer_config.json", "{}");
    write_in(text, "added_tokens.json", "{\"a\": null}");
    assert_fails(sf_wordpiece_open(&w, text, NULL, &error), SAFER_INPUT, "added_tokens.json: the number of \"a\"");
    write_in(text, "added_tokens.json", "{}");
    write_in(text, "vocab.txt", "");
    assert_fails(sf_wordpiece_open(&w, text, NULL, &error), SAFER_INPUT, "vocab.txt is empty");
    assert_null(w);
}

/* ---------------------------------------------------------------- memory */

static safer_status encode_once(void *context, safer_error *e)
{
    static const char text[] = "Hello unaffable [SEP] naïve\u302e\U0001d165 日本語 goodgood";
    sf_wordpiece *w = NULL;
    sf_ids ids = {0};
    sf_buffer buffer = {0};
    sf_wordpiece_scratch scratch = {0};
    (void)context;
    safer_status status = sf_wordpiece_new(&w, vocabulary.bytes, vocabulary.length, &uncased, "small", e);
    if (status == SAFER_OK &&
        (sf_wordpiece_encode(&ids, w, text, strlen(text), SIZE_MAX, &scratch) ||
         sf_wordpiece_normalize(&buffer, w, text, strlen(text), &scratch) || sf_wordpiece_vocabulary(&buffer, w)))
        status = SAFER_MEMORY;
    sf_ids_free(&ids);
    sf_buffer_free(&buffer);
    sf_wordpiece_scratch_free(&scratch);
    sf_wordpiece_free(w);
    return status;
}

static safer_status open_once(void *folder, safer_error *e)
{
    sf_wordpiece *w = NULL;
    safer_status status = sf_wordpiece_open(&w, folder, NULL, e);
    sf_wordpiece_free(w);
    return status;
}

static void test_memory(void **unused)
{
    (void)unused;
    check_every_allocation(encode_once, NULL);
    const char *json = make_folder("memory"), *text = make_folder("memory-text");
    write_in(json, "tokenizer.json",
             JSON(NORMALIZER("\"lowercase\": true"), PRE, MODEL(SPECIALS ", \"a\": 5"),
                  TOKEN(3, "[SEP]", "") ", " TOKEN(6, "B\u00e9", ", \"normalized\": true"), ""));
    write_in(json, "tokenizer_config.json", "{\"do_lower_case\": true}");
    check_every_allocation(open_once, (void *)(uintptr_t)json);
    write_in(text, "vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\n");
    write_in(text, "tokenizer_config.json",
             "{\"added_tokens_decoder\": {\"6\": {\"content\": \"x\", \"normalized\": false}}}");
    write_in(text, "added_tokens.json", "{\"y\": 7}");
    check_every_allocation(open_once, (void *)(uintptr_t)text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_json), cmocka_unit_test(test_open_text), cmocka_unit_test(test_bad_vocabularies),
        cmocka_unit_test(test_bad_files), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests_name("wordpiece files", tests, make_vocabulary, free_vocabulary);
}
