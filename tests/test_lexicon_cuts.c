/* Pairs that are cut so that antonyms share no component and none is too large: every small graph against the
 * definition, larger ones drawn at random; what a lexicon says of its cuts; function words. */
#include "support.h"

#include "base/rng.h"
#include "lexicon/cuts.h"
#include "lexicon/function_words.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static safer_error error;

enum { MOST_WORDS = 12 };

/* A graph with its antonyms: of each pair of words the strength, below 0: no pair; and whether they are antonyms. */
typedef struct graph {
    uint32_t words;
    float strength[MOST_WORDS][MOST_WORDS];
    unsigned char antonyms[MOST_WORDS][MOST_WORDS];
    unsigned char kept[MOST_WORDS][MOST_WORDS];
    size_t most;
} graph;

/* The component of every word along pairs that are kept, by walking until nothing changes. */
static void walk(uint32_t *component, const graph *g)
{
    for (uint32_t x = 0; x < g->words; x++) component[x] = x;
    for (uint32_t round = 0; round < g->words; round++)
        for (uint32_t a = 0; a < g->words; a++)
            for (uint32_t b = 0; b < g->words; b++)
                if (g->kept[a < b ? a : b][a < b ? b : a] && component[b] < component[a]) component[a] = component[b];
}

/* Whether no component holds antonyms or too many words. */
static int is_right(const graph *g)
{
    uint32_t component[MOST_WORDS];
    size_t size[MOST_WORDS] = {0};
    walk(component, g);
    for (uint32_t a = 0; a < g->words; a++) {
        size[component[a]]++;
        for (uint32_t b = a + 1; b < g->words; b++)
            if (g->antonyms[a][b] && component[a] == component[b]) return 0;
    }
    for (uint32_t x = 0; x < g->words; x++)
        if (g->most && size[x] > g->most) return 0;
    return 1;
}

/* The definition: from the strongest on, a pair is kept when all is right with it. */
static void keep_by_definition(graph *g)
{
    memset(g->kept, 0, sizeof g->kept);
    float last = 2;
    for (;;) {
        uint32_t best_a = 0, best_b = 0;
        float best = -1;
        for (uint32_t a = 0; a < g->words; a++)
            for (uint32_t b = a + 1; b < g->words; b++)
                if (g->strength[a][b] < last && g->strength[a][b] > best) {
                    best = g->strength[a][b];
                    best_a = a;
                    best_b = b;
                }
        if (best < 0) return;
        last = best;
        g->kept[best_a][best_b] = 1;
        if (!is_right(g)) g->kept[best_a][best_b] = 0;
    }
}

/* All strengths differ here. */
static void compare(const graph *given, sf_stream stream, uint32_t turn)
{
    graph g = *given;
    sf_pair edges[2 * MOST_WORDS * MOST_WORDS];
    sf_constraints antonyms = {0};
    uint32_t before[MOST_WORDS];
    size_t count = 0, cut = 0, parted = 0;
    sf_cuts cuts = {0};
    antonyms.pairs = malloc(sizeof *antonyms.pairs * MOST_WORDS * MOST_WORDS);
    assert_non_null(antonyms.pairs);
    memset(g.kept, 0, sizeof g.kept);
    for (uint32_t a = 0; a < g.words; a++)
        for (uint32_t b = 0; b < g.words; b++) {
            const uint32_t low = a < b ? a : b, high = a < b ? b : a;
            if (a < b && g.strength[a][b] >= 0) {
                const size_t at = count ? sf_draw_below(stream, turn, (uint32_t)count, (uint32_t)count + 1) : 0;
                edges[count++] = edges[at]; /* in any order */
                edges[at] = a % 2 ? (sf_pair){a, b, g.strength[a][b]} : (sf_pair){b, a, g.strength[a][b]};
                g.kept[a][b] = 1;
            }
            if (a != b && g.antonyms[low][high]) {
                antonyms.pairs[antonyms.count][0] = a;
                antonyms.pairs[antonyms.count++][1] = b;
            }
        }
    walk(before, &g);
    for (uint32_t a = 0; a < g.words; a++)
        for (uint32_t b = a + 1; b < g.words; b++) parted += g.antonyms[a][b] && before[a] == before[b];
    const sf_cutting from = {
        .words = g.words, .edges = edges, .count = count, .similar = 1, .antonyms = &antonyms, .most = g.most};
    assert_ok(sf_cuts_find(&cuts, &from, &error));
    assert_int_equal(cuts.parted, parted);
    keep_by_definition(&g);
    for (uint32_t a = 0; a < g.words; a++)
        for (uint32_t b = a + 1; b < g.words; b++) cut += g.strength[a][b] >= 0 && !g.kept[a][b];
    assert_int_equal(cuts.count, cut);
    for (size_t i = 0; i < cuts.count; i++) {
        const sf_pair p = cuts.items[i].pair;
        assert_true(p.a < p.b && g.strength[p.a][p.b] >= 0 && !g.kept[p.a][p.b]);
        assert_true(p.similarity == g.strength[p.a][p.b]);
        assert_true(!i || cuts.items[i - 1].strength > cuts.items[i].strength);
        assert_true(!cuts.items[i].for_size || g.most);
    }
    assert_true(is_right(&g));                /* which is what all this is for */
    for (size_t i = 0; i < cuts.count; i++) { /* and no cut could be put back */
        const sf_pair p = cuts.items[i].pair;
        g.kept[p.a][p.b] = 1;
        assert_false(is_right(&g));
        g.kept[p.a][p.b] = 0;
    }
    free(cuts.items);
    free(antonyms.pairs);
}

static void test_every_small_graph(void **state)
{
    (void)state;
    const sf_stream stream = sf_stream_of(7, 1, SF_STAGE_DATA);
    uint32_t turn = 0;
    for (unsigned pairs = 0; pairs < 64; pairs++)
        for (unsigned antonyms = 0; antonyms < 64; antonyms++)
            for (size_t most = 0; most < 4; most++) {
                graph g = {.words = 4, .most = most == 1 ? 0 : most};
                unsigned bit = 0, order[6];
                for (unsigned i = 0; i < 6; i++) { /* a permutation: each pair has a strength of its own */
                    const unsigned at = sf_draw_below(stream, turn, 100 + i, i + 1);
                    order[i] = order[at];
                    order[at] = i;
                }
                for (uint32_t a = 0; a < 4; a++)
                    for (uint32_t b = a + 1; b < 4; b++, bit++) {
                        g.strength[a][b] = pairs >> bit & 1 ? (float)order[bit] / 8 : -1;
                        g.antonyms[a][b] = antonyms >> bit & 1;
                    }
                compare(&g, stream, turn++);
            }
}

static void test_larger_graphs(void **state)
{
    (void)state;
    const sf_stream stream = sf_stream_of(11, 2, SF_STAGE_DATA);
    for (uint32_t turn = 0; turn < 3000; turn++) {
        graph g = {.words = 5 + turn % 8, .most = turn % 3 ? turn % 7 : 0};
        uint32_t slot = 1000;
        if (g.most == 1) g.most = 2;
        for (uint32_t a = 0; a < g.words; a++)
            for (uint32_t b = a + 1; b < g.words; b++) {
                g.strength[a][b] = -1;
                if (sf_draw_below(stream, turn, slot++, 100) < 35)
                    g.strength[a][b] = (float)(sf_draw_below(stream, turn, slot++, 4096) * 256 + a * 16 + b) * 0x1p-20f;
                g.antonyms[a][b] = sf_draw_below(stream, turn, slot++, 100) < turn % 20;
            }
        compare(&g, stream, turn);
    }
}

/* ------------------------------------------------------------ in a lexicon */

static const char *write_text(const char *name, const char *text) { return write_temporary(name, text, strlen(text)); }

static uint32_t component_of(const safer_lexicon *l, const char *word)
{
    const uint32_t x = safer_lexicon_find(l, word, strlen(word));
    assert_true(x != SAFER_NO_WORD);
    return safer_lexicon_word(l, x).component;
}

static int collect(void *context, const char *bytes, size_t length) { return sf_buffer_add(context, bytes, length); }

static void test_what_a_lexicon_says(void **state)
{
    (void)state;
    safer_lexicon *l = NULL, *kept = NULL;
    safer_lexicon_report report;
    sf_buffer text = {0};
    const char *antonyms[1] = {write_text("antonyms.txt", "hot cold\nbig unknown\n")};
    safer_lexicon_options o = safer_lexicon_options_default();
    o.table = write_text("chain.tsv", "hot\twarm\nwarm\tmild heated\nmild\tcool\ncool\tcold chilly\n");
    o.kernel = "component";
    o.antonyms = antonyms;
    o.antonyms_count = 1;
    assert_ok(safer_lexicon_import(&l, &o, &report, &error));
    assert_int_equal(report.antonyms, 1);
    assert_int_equal(report.parted_antonyms, 1);
    assert_int_equal(report.cut_for_antonyms, 1);
    assert_int_equal(report.cut_for_size, 0);
    assert_true(component_of(l, "hot") != component_of(l, "cold"));
    assert_ok(safer_lexicon_export(l, SAFER_EXPORT_CUTS, 0, collect, &text, &error));
    assert_string_equal(text.bytes, "mild\tcool\tantonyms\n");
    sf_buffer_clear(&text);
    assert_ok(safer_lexicon_export(l, SAFER_EXPORT_CUTS, 1, collect, &text, &error));
    json_t *list = json_loads(text.bytes, 0, NULL);
    assert_int_equal(json_array_size(list), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "reason")), "antonyms");
    json_decref(list);
    safer_lexicon_free(l);

    o.directed = 1; /* a component is what chains of either direction lead to */
    assert_ok(safer_lexicon_import(&l, &o, &report, &error));
    assert_int_equal(report.cut_for_antonyms, 1);
    assert_true(component_of(l, "hot") != component_of(l, "cold"));
    safer_lexicon_free(l);
    o.directed = 0;

    o.keep_antonyms = 1;
    assert_ok(safer_lexicon_import(&kept, &o, &report, &error));
    assert_int_equal(report.antonyms + report.cut_for_antonyms, 0);
    assert_true(component_of(kept, "hot") == component_of(kept, "cold"));
    assert_null(strstr(safer_lexicon_describe(kept).provenance, "cuts"));
    safer_lexicon_free(kept);

    o.max_component = 3;
    assert_ok(safer_lexicon_import(&l, &o, &report, &error));
    assert_int_equal(safer_lexicon_describe(l).largest_components[0], 3);
    assert_int_equal(report.cut_for_size, 2);
    assert_non_null(strstr(safer_lexicon_describe(l).provenance, "\"max_component\":3"));
    safer_lexicon_free(l);
    o.max_component = 1;
    assert_fails(safer_lexicon_import(&l, &o, &report, &error), SAFER_INVALID, "max_component: 1");
    sf_buffer_free(&text);
}

static void test_function_words(void **state)
{
    (void)state;
    safer_lexicon *l = NULL;
    safer_lexicon_report report;
    safer_lexicon_options o = safer_lexicon_options_default();
    o.table = write_text("words.tsv", "not\tthey\nthe\ton\ngood\tgreat\nbad\tawful\n");
    o.kernel = "component";
    assert_ok(safer_lexicon_import(&l, &o, &report, &error));
    assert_int_equal(report.protected_words, 4);
    assert_int_equal(report.protected_pairs, 2);
    assert_int_equal(report.pairs, 2);
    assert_non_null(strstr(safer_lexicon_describe(l).provenance, "English function words"));
    safer_lexicon_free(l);
    o.protect = write_text("more.txt", "bad\nunknown\n"); /* a file adds to them */
    assert_ok(safer_lexicon_import(&l, &o, &report, &error));
    assert_int_equal(report.protected_words, 5);
    assert_int_equal(report.pairs, 1);
    assert_int_equal(report.unknown_edits, 1); /* of the file; of the list that is built in nobody needs to know */
    safer_lexicon_free(l);
    o.function_words = 0; /* or stands alone */
    assert_ok(safer_lexicon_import(&l, &o, &report, &error));
    assert_int_equal(report.protected_words, 1);
    assert_int_equal(report.pairs, 3);
    assert_null(strstr(safer_lexicon_describe(l).provenance, "English function words"));
    safer_lexicon_free(l);
    assert_true(sf_is_function_word("the", 3) && sf_is_function_word("didn't", 6) && sf_is_function_word("a", 1));
    assert_false(sf_is_function_word("th", 2) || sf_is_function_word("good", 4) || sf_is_function_word("", 0));
}

static int ignore(void *context, const char *bytes, size_t length)
{
    (void)context, (void)bytes, (void)length;
    return 0;
}

static safer_status import_once(void *context, safer_error *e)
{
    safer_lexicon *l = NULL;
    safer_status status = safer_lexicon_import(&l, context, NULL, e);
    if (status == SAFER_OK) status = safer_lexicon_export(l, SAFER_EXPORT_CUTS, 1, ignore, NULL, e);
    safer_lexicon_free(l);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    const char *antonyms[1] = {write_text("memory.txt", "hot cold\n")};
    safer_lexicon_options o = safer_lexicon_options_default();
    o.table = write_text("memory.tsv", "hot\twarm\nwarm\tcold\ncold\tcool chilly\nthe\ton\n");
    o.kernel = "component";
    o.antonyms = antonyms;
    o.antonyms_count = 1;
    o.max_component = 2;
    o.protect = write_text("memory-protect.txt", "chilly\n");
    o.threads = 1;
    check_every_allocation(import_once, &o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_small_graph),   cmocka_unit_test(test_larger_graphs),
        cmocka_unit_test(test_what_a_lexicon_says), cmocka_unit_test(test_function_words),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
