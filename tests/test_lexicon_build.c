/* Building and importing from end to end: what is kept, refused, excluded; exports; the
 * ladder; the figures on real data. */
#include "support.h"

#include "base/file.h"
#include "base/rng.h"
#include "lexicon/lexicon.h"
#include "lexicon/overlap.h"
#include "lexicon/vectors.h"
#include "text/word.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static safer_error error;

static int are_synonyms(const safer_lexicon *l, const char *a, const char *b)
{
    uint32_t x = safer_lexicon_find(l, a, strlen(a)), y = safer_lexicon_find(l, b, strlen(b));
    if (x == SAFER_NO_WORD || y == SAFER_NO_WORD) return 0;
    safer_word w = safer_lexicon_word(l, x);
    for (size_t i = 0; i < w.synonym_count; i++)
        if (w.synonyms[i] == y) return 1;
    return 0;
}

static const char *write_text(const char *name, const char *text) { return write_temporary(name, text, strlen(text)); }

static safer_lexicon_options table_options(const char *text)
{
    safer_lexicon_options options = safer_lexicon_options_default();
    options.table = write_temporary("table.tsv", text, strlen(text));
    options.kernel = "component";
    return options;
}

/* ---------------------------------------------------------------- the rules */

static void test_admission(void **state)
{
    (void)state;
    safer_lexicon *l = NULL;
    safer_lexicon_report report;
    safer_lexicon_options o = table_options("me\ti\nstreet\tstraße road\nbook\tספר\nספר\tמחברת\nlate\ttardy\n");
    assert_ok(safer_lexicon_import(&l, &o, &report, &error));
    assert_false(are_synonyms(l, "me", "i"));          /* "I" is both title and upper */
    assert_false(are_synonyms(l, "street", "straße")); /* STRASSE does not come back */
    assert_false(are_synonyms(l, "book", "ספר"));      /* cased with caseless */
    assert_true(are_synonyms(l, "ספר", "מחברת"));
    assert_true(are_synonyms(l, "road", "street"));
    assert_true(are_synonyms(l, "tardy", "LATE"));
    assert_int_equal(report.refused_words, 2);
    assert_int_equal(report.refused_pairs, 3);
    assert_int_equal(report.symmetrised, 3);
    safer_lexicon_free(l);
}

static void test_exclude_and_protect(void **state)
{
    (void)state;
    const char *table = "a1\tx\nbig\tlarge huge\nsmall\ttiny little\nold\tancient\n";
    safer_lexicon *l = NULL;
    safer_lexicon_report report;
    safer_lexicon_options o = table_options(table);
    o.exclude = write_text("exclude.txt", "big huge\nold\nunknown\n");
    o.protect = write_text("protect.txt", "small\n");
    assert_ok(safer_lexicon_import(&l, &o, &report, &error));
    assert_true(are_synonyms(l, "big", "large"));
    assert_false(are_synonyms(l, "big", "huge"));
    assert_false(are_synonyms(l, "old", "ancient"));
    assert_false(are_synonyms(l, "small", "tiny"));
    assert_int_equal(report.excluded_pairs, 2);
    assert_int_equal(report.protected_words, 1);
    safer_lexicon_free(l);

    o.directed = 1; /* one-way: small is never replaced, but may replace */
    o.table = write_text("directed.tsv", "small\ttiny\ntiny\tsmall\nold\tancient\nbig\tlarge\n");
    o.exclude = NULL;
    assert_ok(safer_lexicon_import(&l, &o, &report, &error));
    assert_false(are_synonyms(l, "small", "tiny"));
    assert_true(are_synonyms(l, "tiny", "small"));
    assert_true(are_synonyms(l, "big", "large"));
    assert_false(are_synonyms(l, "large", "big"));
    assert_int_equal(report.symmetrised, 0);
    safer_lexicon_free(l);

    o.protect = write_text("bad.txt", "one two\n");
    assert_fails(safer_lexicon_import(&l, &o, &report, &error), SAFER_INPUT, "bad.txt, line 1: 2 words where one is");
    o.protect = NULL;
    o.exclude = write_text("bad2.txt", "one\none two three\n");
    assert_fails(safer_lexicon_import(&l, &o, &report, &error), SAFER_INPUT, "bad2.txt, line 2: 3 words");
}

static void test_vocabulary(void **state)
{
    (void)state;
    safer_lexicon *l = NULL;
    safer_lexicon_report report;
    safer_lexicon_options o = table_options("good\tgreat fine\nbad\tawful\n");
    const char *data[1] = {write_text("d.tsv", "1\t0\tGood good GREAT great.\n2\t1\tBad, bad: awful\n")};
    o.vocab_from = data;
    o.vocab_from_count = 1;
    assert_ok(safer_lexicon_import(&l, &o, &report, &error));
    assert_int_equal(report.words, 3); /* good great bad: twice each */
    assert_int_equal(report.tokens, 7);
    assert_int_equal(report.texts, 2);
    assert_int_equal(safer_lexicon_word(l, safer_lexicon_find(l, "good", 4)).count, 2);
    safer_lexicon_free(l);
    o.min_count = 1;
    o.vocab = write_text("list.txt", "AWFUL\nbad\nzebra\n");
    assert_ok(safer_lexicon_import(&l, &o, &report, &error));
    assert_int_equal(report.words, 2);
    assert_true(are_synonyms(l, "bad", "awful"));
    assert_int_equal(report.ladder_count, 1); /* K = 2, the largest component */
    assert_int_equal(report.suggested_k, 2);
    safer_lexicon_free(l);
    o.vocab = write_text("none.txt", "zebra\n");
    assert_fails(safer_lexicon_import(&l, &o, &report, &error), SAFER_INPUT, "no word is left");
    o.vocab = write_text("empty.txt", "\n");
    assert_fails(safer_lexicon_import(&l, &o, &report, &error), SAFER_INPUT, "holds no words");
}

static void test_parameters(void **state)
{
    (void)state;
    safer_lexicon *l = NULL;
    safer_lexicon_options o = safer_lexicon_options_default();
    assert_fails(safer_lexicon_build(&l, &o, NULL, &error), SAFER_INVALID, "vectors");
    assert_fails(safer_lexicon_import(&l, &o, NULL, &error), SAFER_INVALID, "table or wordnet");
    o.vectors = "/nonexistent/v.txt";
    assert_fails(safer_lexicon_build(&l, &o, NULL, &error), SAFER_SYSTEM, "/nonexistent/v.txt");
    o.table = "t";
    assert_fails(safer_lexicon_build(&l, &o, NULL, &error), SAFER_INVALID, "for importing");
#define BAD(field, value, words) \
    o = safer_lexicon_options_default(); \
    o.field = value; \
    assert_fails(safer_lexicon_build(&l, &o, NULL, &error), SAFER_INVALID, words)
    BAD(threshold, 0, "threshold");
    BAD(threshold, 1.5, "threshold");
    BAD(threshold, (double)NAN, "threshold");
    BAD(counterfit, -1, "counterfit");
    BAD(all_but_the_top, -1, "all_but_the_top");
    BAD(threads, -2, "threads");
    BAD(kernel, "topk:0", "topk:K");
    BAD(kernel, NULL, "kernel");
#undef BAD
}

/* --------------------------------------------------------------- from vectors */

/* Clusters of words around random directions; w0, w1, ... as letters only. */
static const char *write_vectors(size_t count, size_t dim)
{
    char *text = malloc(count * (dim * 12 + 16));
    size_t length = 0;
    sf_stream stream = sf_stream_of(5, 0, SF_STAGE_DATA);
    for (uint32_t i = 0; i < count; i++) {
        length += (size_t)sprintf(text + length, "w%c%c%c", 'a' + (int)(i % 26), 'a' + (int)(i / 26 % 26),
                                  'a' + (int)(i / 676));
        for (uint32_t k = 0; k < dim; k++)
            length += (size_t)sprintf(text + length, " %.4f",
                                      sf_draw_unit(stream, i % 60, k) - 0.5 +
                                          0.3 * (sf_draw_unit(stream, i + 1000, k) - 0.5));
        text[length++] = '\n';
    }
    const char *path = write_temporary("vectors.txt", text, length);
    free(text);
    return path;
}

/* The pairs of the finished lexicon are those of the definition on its own vectors. */
static void test_build(void **state)
{
    (void)state;
    safer_lexicon *l = NULL, *other = NULL;
    safer_lexicon_report report;
    safer_lexicon_options o = safer_lexicon_options_default();
    o.vectors = write_vectors(500, 20);
    o.all_but_the_top = 2;
    o.threshold = 0.85;
    o.kernel = "topk:3";
    o.threads = 1;
    assert_ok(safer_lexicon_build(&l, &o, &report, &error));
    assert_int_equal(report.words, 500);
    assert_true(report.pairs > 200);
    size_t checked = 0;
    for (size_t i = 0; i < l->vector_count; i++)
        for (size_t j = 0; j < l->vector_count; j++) {
            double dot = sf_vectors_dot(l->vectors + i * 20, l->vectors + j * 20, 20);
            const char *a = safer_lexicon_word(l, l->vector_words[i]).word,
                       *b = safer_lexicon_word(l, l->vector_words[j]).word;
            if (i != j) assert_int_equal(are_synonyms(l, a, b), dot >= 0.85);
            checked += dot >= 0.85 && i != j;
        }
    assert_int_equal(checked, 2 * report.pairs);
    for (uint32_t x = 0; x < l->words.count; x++) {
        safer_word w = safer_lexicon_word(l, x);
        assert_true(w.support_count <= 3 && w.total == w.support_count);
        if (w.synonym_count == 0) assert_true(w.overlap == 1.0 && w.worst == SAFER_NO_WORD);
    }
    o.threads = 4; /* the same file, byte for byte */
    assert_ok(safer_lexicon_build(&other, &o, NULL, &error));
    assert_int_equal(other->image.length, l->image.length);
    assert_memory_equal(other->image.bytes, l->image.bytes, l->image.length);
    safer_lexicon_free(other);
    assert_ok(safer_lexicon_with_kernel(&other, l, "topk:5", 1, &error)); /* ranks by the stored vectors */
    o.kernel = "topk:5";
    safer_lexicon *direct = NULL;
    assert_ok(safer_lexicon_build(&direct, &o, NULL, &error));
    assert_memory_equal(other->overlap, direct->overlap, l->words.count * sizeof(double));
    safer_lexicon_free(other);
    safer_lexicon_free(direct);
    safer_lexicon_free(l);
    o.metric = SAFER_METRIC_DOT;
    o.threshold = 0.2;
    assert_ok(safer_lexicon_build(&l, &o, &report, &error));
    safer_lexicon_free(l);
    o.all_but_the_top = 20;
    assert_fails(safer_lexicon_build(&l, &o, &report, &error), SAFER_INVALID, "20 directions");
}

static safer_status import_once(void *context, safer_error *e)
{
    safer_lexicon *l = NULL;
    safer_status status = safer_lexicon_import(&l, context, NULL, e);
    safer_lexicon_free(l);
    return status;
}

static safer_status build_once(void *context, safer_error *e)
{
    safer_lexicon *l = NULL;
    safer_status status = safer_lexicon_build(&l, context, NULL, e);
    safer_lexicon_free(l);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    const char *data[1] = {write_text("m.tsv", "1\t0\tgood great\n2\t1\tbad\n")};
    safer_lexicon_options o = table_options("good\tgreat fine\nbad\tawful\ngreat\tgrand\n");
    o.vocab_from = data;
    o.vocab_from_count = 1;
    o.min_count = 0;
    o.threads = 1;
    o.kernel = "topk:2";
    o.protect = write_text("p.txt", "bad\n");
    o.exclude = write_text("e.txt", "good fine\n");
    check_every_allocation(import_once, &o);
    safer_lexicon_options b = safer_lexicon_options_default();
    const char *synonyms[1] = {write_text("s.txt", "waaa wbaa\n")};
    b.vectors = write_vectors(40, 5);
    b.synonyms = synonyms;
    b.synonyms_count = 1;
    b.counterfit = 2;
    b.all_but_the_top = 1;
    b.kernel = "topk:2";
    b.threads = 1;
    check_every_allocation(build_once, &b);
}

/* ------------------------------------------------------------------- export */

static int collect(void *context, const char *bytes, size_t length) { return sf_buffer_add(context, bytes, length); }

static int refuse(void *context, const char *bytes, size_t length)
{
    (void)context, (void)bytes, (void)length;
    return 1;
}

static void test_export(void **state)
{
    (void)state;
    safer_lexicon *l = NULL, *again = NULL;
    safer_lexicon_options o = table_options("good\tgreat fine\ngreat\tgrand\nbad\tawful\nrock'n'roll\t\n");
    o.kernel = "topk:2";
    assert_ok(safer_lexicon_import(&l, &o, NULL, &error));
    sf_buffer text = {0};
    assert_ok(safer_lexicon_export(l, SAFER_EXPORT_SYNONYMS, 0, collect, &text, &error));
    assert_string_equal(
        text.bytes,
        "good\tgreat fine\ngreat\tgood grand\nfine\tgood\ngrand\tgreat\nbad\tawful\nawful\tbad\nrock'n'roll\t\n");
    o.table = write_temporary("again.tsv", text.bytes, text.length); /* what is exported can be imported */
    assert_ok(safer_lexicon_import(&again, &o, NULL, &error));
    assert_int_equal(again->words.count, l->words.count);
    assert_memory_equal(again->overlap, l->overlap, l->words.count * sizeof(double));
    sf_buffer_clear(&text);
    assert_ok(safer_lexicon_export(l, SAFER_EXPORT_KERNEL, 0, collect, &text, &error));
    assert_non_null(strstr(text.bytes, "good\t2\tgood:1 great:1\n"));
    assert_non_null(strstr(text.bytes, "rock'n'roll\t1\trock'n'roll:1\n"));
    sf_buffer_clear(&text);
    assert_ok(safer_lexicon_export(l, SAFER_EXPORT_OVERLAP, 0, collect, &text, &error));
    assert_non_null(strstr(text.bytes, "good\t0.50000000000000000000\n"));
    const safer_export tables[3] = {SAFER_EXPORT_SYNONYMS, SAFER_EXPORT_KERNEL, SAFER_EXPORT_OVERLAP};
    for (int i = 0; i < 3; i++) {
        sf_buffer_clear(&text);
        assert_ok(safer_lexicon_export(l, tables[i], 1, collect, &text, &error));
        json_t *root = json_loads(text.bytes, 0, NULL);
        assert_non_null(root);
        assert_int_equal(json_object_size(root), 7);
        if (i == 0) assert_int_equal(json_array_size(json_object_get(root, "good")), 2);
        if (i == 1)
            assert_int_equal(json_integer_value(
                                 json_object_get(json_object_get(json_object_get(root, "bad"), "weights"), "awful")),
                             1);
        if (i == 2) assert_true(json_real_value(json_object_get(root, "good")) == 0.5);
        json_decref(root);
    }
    assert_fails(safer_lexicon_export(l, SAFER_EXPORT_KERNEL, 0, refuse, NULL, &error), SAFER_SYSTEM, "export");
    sf_buffer_free(&text);
    safer_lexicon_free(l);
    safer_lexicon_free(again);
}

static void test_survey(void **state)
{
    (void)state;
    safer_lexicon *l = NULL;
    safer_data *data = NULL;
    safer_survey survey;
    safer_lexicon_options o = table_options("good\tgreat fine\ngreat\tgrand\nbad\tawful\n");
    o.kernel = "topk:2"; /* good {good,great}: with fine {good,fine} 1/2 */
    assert_ok(safer_lexicon_import(&l, &o, NULL, &error));
    assert_ok(safer_data_load(&data, write_text("s.tsv", "1\t0\tGood good nothing\n2\t1\tbad bad\n3\t1\t...\n"), NULL,
                              &error));
    assert_ok(safer_lexicon_survey(&survey, l, data, 1, NULL, &error));
    assert_int_equal(survey.texts, 3);
    assert_int_equal(survey.tokens, 5);
    assert_int_equal(survey.known_tokens, 4);
    assert_int_equal(survey.tokens_with_synonyms, 4);
    assert_true(survey.products[3].quantiles[0] == 0.25 && survey.products[3].quantiles[6] == 1.0);
    assert_true(fabs(survey.products[3].above_half - 2.0 / 3) < 1e-12);
    safer_data_free(data);
    safer_lexicon_free(l);
}

/* ---------------------------------------------------------------- real data */

static void test_imdb(void **state)
{
    (void)state;
    const char *vectors = shared_data("glove6B100.txt.xz");
    if (!vectors) return;
    const char *data[2] = {shared_data("imdb_train.tsv.xz"), shared_data("imdb_test.tsv.xz")};
    const char *synonyms[1] = {shared_data("cf_ppdb_synonyms.txt.xz")};
    const char *antonyms[2] = {shared_data("cf_ppdb_antonyms.txt.xz"), shared_data("cf_wordnet_antonyms.txt.xz")};
    safer_lexicon_options o = safer_lexicon_options_default();
    safer_lexicon_report r;
    safer_lexicon *l = NULL;
    o.vectors = vectors;
    o.vocab = shared_data("cf_vocabulary.txt.xz");
    o.vocab_from = data;
    o.vocab_from_count = 2;
    o.synonyms = synonyms;
    o.synonyms_count = 1;
    o.antonyms = antonyms;
    o.antonyms_count = 2;
    o.simlex = shared_data("cf_SimLex-999.txt.xz");
    o.kernel = "topk:250";
    assert_ok(safer_lexicon_build(&l, &o, &r, &error));
    safer_lexicon_info info = safer_lexicon_describe(l);
    printf("words %zu, pairs %zu, components %zu %zu %zu, SimLex %.3f -> %.3f\n", info.words, info.pairs,
           info.largest_components[0], info.largest_components[1], info.largest_components[2], r.simlex_before,
           r.simlex_fitted);
    assert_in_range(info.words, 43700, 45500);
    assert_in_range(info.pairs, 27200, 28600);
    assert_in_range(info.largest_components[0], 340, 400);
    assert_in_range(info.largest_components[1], 170, 210);
    assert_in_range(r.cut_for_antonyms, 125, 150); /* so that antonyms share no component */
    assert_in_range(r.parted_antonyms, 70, 95);
    assert_in_range(r.protected_pairs, 200, 300); /* of function words */
    assert_true(r.simlex_before > 0.29 && r.simlex_before < 0.32);
    assert_true(r.simlex_fitted > 0.46 && r.simlex_fitted < 0.50);
    /* Every word of the lexicon, every pattern: what may replace a word is read back. */
    sf_buffer surface = {0};
    sf_word_reader reader = {0};
    size_t read_back = 0;
    for (uint32_t x = 0; x < info.words; x++) {
        safer_word w = safer_lexicon_word(l, x);
        for (size_t i = 0; i < w.synonym_count; i++) {
            const char *synonym = safer_lexicon_word(l, w.synonyms[i]).word;
            for (int pattern = SF_LOWER; pattern <= SF_UPPER; pattern++) {
                sf_word word;
                sf_buffer_clear(&surface);
                assert_int_equal(sf_word_render(&surface, synonym, strlen(synonym), (sf_case)pattern), 0);
                sf_word_reader_start(&reader, surface.bytes, surface.length);
                assert_int_equal(sf_word_reader_next(&reader, &word), 1);
                assert_true(word.begin == 0 && word.end == surface.length && word.pattern == (sf_case)pattern);
                assert_int_equal(word.key_length, strlen(synonym));
                assert_memory_equal(word.key, synonym, word.key_length);
                assert_int_equal(safer_lexicon_find(l, word.key, word.key_length), w.synonyms[i]);
                read_back++;
            }
        }
        uint32_t worst = w.worst;
        if (worst != SAFER_NO_WORD) assert_true(safer_lexicon_overlap(l, x, worst) == w.overlap);
    }
    assert_int_equal(read_back, 6 * info.pairs);
    sf_buffer_free(&surface);
    sf_word_reader_free(&reader);
    safer_lexicon_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_admission),  cmocka_unit_test(test_exclude_and_protect),
        cmocka_unit_test(test_vocabulary), cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_build),      cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_export),     cmocka_unit_test(test_survey),
        cmocka_unit_test(test_imdb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
