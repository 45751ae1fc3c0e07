/* Filters of pairs by frequency, part of speech and rank: every small graph, in all combinations of the options, both
 * ways and one way, against the plain definition; what a lexicon says of them. */
#include "support.h"

#include "base/buffer.h"
#include "base/json.h"
#include "lexicon/draft.h"
#include "lexicon/filter.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static safer_error error;

enum { WORDS = 4, SLOTS = WORDS * (WORDS - 1) / 2 };

static const char *write_text(const char *name, const char *text) { return write_temporary(name, text, strlen(text)); }

/* A folder with as much of WordNet as the filter reads: noun and verb, adjective, noun and adverb, none. */
static const char *const NAMES[WORDS] = {"aunt", "brisk", "cart", "zzz"};
static const unsigned PARTS[WORDS] = {SF_NOUN | SF_VERB, SF_ADJECTIVE, SF_NOUN | SF_ADVERB, SF_NO_PART};

static char *parts_folder(void)
{
    static const char *const files[8][2] = {{"index.noun", "  1 licence\naunt n 1\ncart n 1\n"},
                                            {"index.verb", "aunt v 1\n"},
                                            {"index.adj", "brisk a 1\n"},
                                            {"index.adv", "cart r 1\n"},
                                            {"noun.exc", "\n"},
                                            {"verb.exc", "\n"},
                                            {"adj.exc", "\n"},
                                            {"adv.exc", "\n"}};
    for (int i = 0; i < 8; i++) write_text(files[i][0], files[i][1]);
    const char *path = write_text("none", "");
    char *folder = malloc(strlen(path) + 1);
    assert_non_null(folder);
    strcpy(folder, path);
    *strrchr(folder, '/') = '\0';
    return folder;
}

/* ------------------------------------------------------------ the definition */

typedef struct plain {
    int is[WORDS][WORDS]; /* b may replace a */
    double similarity[WORDS][WORDS];
    uint64_t counts[WORDS];
    int directed, by_speech;
    size_t nearest;
    double share; /* most of 100 words; 0: any */
} plain;

/* How many synonyms of a come before b: more similar, or as similar and with a smaller number. */
static size_t before(int is[WORDS][WORDS], const plain *p, int a, int b)
{
    size_t count = 0;
    for (int c = 0; c < WORDS; c++)
        count += is[a][c] && c != b &&
                 (p->similarity[a][c] > p->similarity[a][b] || (p->similarity[a][c] == p->similarity[a][b] && c < b));
    return count;
}

static void filter_plainly(int out[WORDS][WORDS], const plain *p)
{
    int left[WORDS][WORDS];
    for (int a = 0; a < WORDS; a++)
        for (int b = 0; b < WORDS; b++) {
            const int too_often[2] = {p->share > 0 && (double)p->counts[a] > p->share * 100,
                                      p->share > 0 && (double)p->counts[b] > p->share * 100};
            left[a][b] = p->is[a][b] && !too_often[0] && (p->directed || !too_often[1]) &&
                         (!p->by_speech || (PARTS[a] & PARTS[b]));
        }
    for (int a = 0; a < WORDS; a++)
        for (int b = 0; b < WORDS; b++) {
            out[a][b] = left[a][b];
            if (!p->nearest || !left[a][b]) continue;
            out[a][b] = before(left, p, a, b) < p->nearest && (p->directed || before(left, p, b, a) < p->nearest);
        }
}

/* --------------------------------------------------------------- the filter */

static void filter_draft(int out[WORDS][WORDS], size_t found[3], const plain *p, const char *folder)
{
    safer_lexicon_options o = safer_lexicon_options_default();
    safer_lexicon_report report = {.tokens = 100};
    sf_draft d = {.options = &o, .report = &report, .with_similarity = !p->directed, .provenance = json_object()};
    uint32_t id;
    o.directed = p->directed;
    o.nearest = p->nearest;
    o.max_frequency = p->share;
    o.same_pos = p->by_speech ? folder : NULL;
    d.counts = malloc(WORDS * sizeof *d.counts);
    d.edges = malloc((WORDS * WORDS + 1) * sizeof *d.edges);
    assert_non_null(d.counts);
    assert_non_null(d.edges);
    memcpy(d.counts, p->counts, sizeof p->counts);
    for (int a = 0; a < WORDS; a++) {
        assert_ok(sf_words_add(&d.words, NAMES[a], strlen(NAMES[a]), &id, &error));
        for (int b = 0; b < WORDS; b++)
            if (p->is[a][b] && (p->directed || (a < b) == ((a + b) % 2))) /* of a pair one direction, either */
                d.edges[d.edge_count++] = (sf_pair){(uint32_t)a, (uint32_t)b, (float)p->similarity[a][b]};
    }
    if (d.edge_count) d.edges[d.edge_count] = d.edges[0], d.edge_count++; /* repeats are allowed */
    assert_ok(sf_draft_filter(&d, &error));
    memset(out, 0, sizeof(int[WORDS][WORDS]));
    for (size_t i = 0; i < d.edge_count; i++) {
        out[d.edges[i].a][d.edges[i].b] = 1;
        if (!p->directed) out[d.edges[i].b][d.edges[i].a] = 1;
    }
    found[0] = report.filtered_for_frequency;
    found[1] = report.filtered_for_speech;
    found[2] = report.filtered_for_rank;
    const json_t *list = json_object_get(json_object_get(d.provenance, "filters"), "pairs");
    assert_int_equal(json_array_size(list), found[0] + found[1] + found[2]);
    sf_words_free(&d.words);
    free(d.counts);
    free(d.edges);
    json_decref(d.provenance);
}

static void compare(plain *p, const char *folder)
{
    int expected[WORDS][WORDS], kept[WORDS][WORDS];
    size_t found[3], gone = 0;
    filter_plainly(expected, p);
    filter_draft(kept, found, p, folder);
    for (int a = 0; a < WORDS; a++) {
        size_t synonyms = 0;
        for (int b = 0; b < WORDS; b++) {
            assert_int_equal(kept[a][b], expected[a][b]);
            assert_true(p->directed || kept[a][b] == kept[b][a]);
            gone += p->is[a][b] && !kept[a][b] && (p->directed || a < b);
            synonyms += (size_t)kept[a][b];
        }
        assert_true(!p->nearest || synonyms <= p->nearest);
    }
    assert_int_equal(found[0] + found[1] + found[2], gone);
}

/* Every graph of four words, both ways, with similarities of three values, so that some are equal. */
static void test_every_graph(void **state)
{
    (void)state;
    char *folder = parts_folder();
    unsigned turn = 1;
    for (unsigned pairs = 0; pairs < 1u << SLOTS; pairs++)
        for (unsigned options = 0; options < 16; options++)
            for (unsigned draw = 0; draw < 4; draw++) {
                plain p = {.nearest = options & 3, .by_speech = options >> 2 & 1, .share = options >> 3 ? 0.25 : 0};
                unsigned bit = 0;
                for (int a = 0; a < WORDS; a++) {
                    turn = turn * 1664525 + 1013904223;
                    p.counts[a] = 24 + (turn >> 20) % 3; /* 25 of 100 words are not more than a quarter */
                    for (int b = a + 1; b < WORDS; b++, bit++) {
                        turn = turn * 1664525 + 1013904223;
                        p.is[a][b] = p.is[b][a] = pairs >> bit & 1;
                        p.similarity[a][b] = p.similarity[b][a] = 0.5 + 0.25 * ((turn >> 16) % 3) / 2;
                    }
                }
                compare(&p, folder);
            }
    free(folder);
}

/* One way: every graph of four words, without ranks. */
static void test_every_directed_graph(void **state)
{
    (void)state;
    char *folder = parts_folder();
    for (unsigned edges = 0; edges < 1u << (2 * SLOTS); edges++) {
        plain p = {.directed = 1, .by_speech = edges & 1, .share = edges & 2 ? 0.25 : 0, .counts = {24, 25, 26, 30}};
        unsigned bit = 0;
        for (int a = 0; a < WORDS; a++)
            for (int b = 0; b < WORDS; b++)
                if (a != b) p.is[a][b] = edges >> bit++ & 1;
        compare(&p, folder);
    }
    free(folder);
}

/* ------------------------------------------------------------- in a lexicon */

static int collect(void *context, const char *bytes, size_t length) { return sf_buffer_add(context, bytes, length); }

static void test_what_a_lexicon_says(void **state)
{
    (void)state;
    safer_lexicon *l = NULL;
    safer_lexicon_report report;
    sf_buffer text = {0};
    const char *data[1] = {write_text("seen.tsv", "1\tx\taunt aunt aunt brisk cart zzz yyy yyy xxx\n")};
    char *folder = parts_folder();
    safer_lexicon_options o = safer_lexicon_options_default();
    o.table = write_text("filter.tsv", "aunt\tcart\nbrisk\tcart\nzzz\tyyy xxx\n");
    o.kernel = "component";
    o.vocab_from = data;
    o.vocab_from_count = 1;
    o.min_count = 1;
    o.max_frequency = 0.25;
    o.same_pos = folder;
    o.nearest = 1;
    o.dropped = write_text("dropped.txt", "");
    assert_ok(safer_lexicon_import(&l, &o, &report, &error));
    assert_int_equal(report.frequent_words, 1);
    assert_int_equal(report.filtered_for_frequency, 1);
    assert_int_equal(report.filtered_for_speech, 1);
    assert_int_equal(report.filtered_for_rank, 1);
    assert_int_equal(report.pairs, 1);
    assert_ok(safer_lexicon_export(l, SAFER_EXPORT_CUTS, 0, collect, &text, &error));
    assert_string_equal(text.bytes, "aunt\tcart\tfrequency\ncart\tbrisk\tpart of speech\nzzz\txxx\trank\n");
    sf_buffer_clear(&text);
    assert_ok(safer_lexicon_export(l, SAFER_EXPORT_CUTS, 1, collect, &text, &error));
    json_t *list = json_loads(text.bytes, 0, NULL);
    assert_int_equal(json_array_size(list), 3);
    json_decref(list);
    json_t *provenance = json_loads(safer_lexicon_describe(l).provenance, 0, NULL);
    const json_t *filters = json_object_get(provenance, "filters");
    assert_int_equal(json_integer_value(json_object_get(filters, "nearest")), 1);
    assert_int_equal(strlen(json_string_value(json_object_get(filters, "same_pos"))), 64);
    assert_true(json_real_value(json_object_get(filters, "max_frequency")) == 0.25);
    json_decref(provenance);
    safer_lexicon_free(l);
    sf_buffer_free(&text);
    o.same_pos = "nowhere";
    assert_fails(safer_lexicon_import(&l, &o, &report, &error), SAFER_SYSTEM, "nowhere");
    o.same_pos = NULL;
    o.max_frequency = 1;
    assert_fails(safer_lexicon_import(&l, &o, &report, &error), SAFER_INVALID, "`max_frequency`: 1");
    o.max_frequency = 0.5;
    o.vocab_from_count = 0;
    assert_fails(safer_lexicon_import(&l, &o, &report, &error), SAFER_INVALID, "`vocab_from`");
    free(folder);
}

static safer_status import_once(void *context, safer_error *e)
{
    safer_lexicon *l = NULL;
    safer_status status = safer_lexicon_import(&l, context, NULL, e);
    safer_lexicon_free(l);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    const char *data[1] = {write_text("memory-seen.tsv", "1\tx\taunt aunt aunt brisk cart zzz\n")};
    char *folder = parts_folder();
    safer_lexicon_options o = safer_lexicon_options_default();
    o.table = write_text("memory-filter.tsv", "aunt\tcart\nbrisk\tcart\nzzz\tyyy xxx\n");
    o.kernel = "component";
    o.vocab_from = data;
    o.vocab_from_count = 1;
    o.min_count = 0;
    o.max_frequency = 0.25;
    o.same_pos = folder;
    o.nearest = 1;
    o.threads = 1;
    check_every_allocation(import_once, &o);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_graph),
        cmocka_unit_test(test_every_directed_graph),
        cmocka_unit_test(test_what_a_lexicon_says),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
