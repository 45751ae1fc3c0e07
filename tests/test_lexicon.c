/* Graph, ranking, kernels and overlaps against brute force on small random cases; the
 * .lex file; tables. */
#include "support.h"

#include "base/hash.h"
#include "base/number.h"
#include "base/rng.h"
#include "lexicon/lexicon.h"
#include "lexicon/overlap.h"
#include "lexicon/table.h"
#include "lexicon/wordnet.h"
#include "lexicon/vectors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static safer_error error;
__extension__ typedef unsigned __int128 wide;

static uint32_t below(uint32_t sample, uint32_t slot, uint32_t bound)
{
    return sf_draw_below(sf_stream_of(11, 0, SF_STAGE_DATA), sample, slot, bound);
}

/* A random graph: an adjacency matrix and the edges in random order, some twice. */
enum { MAX = 40 };
typedef struct random_graph {
    uint32_t n;
    int edge[MAX][MAX];
    sf_pair edges[2 * MAX * MAX];
    size_t count;
} random_graph;

static void make_graph(random_graph *g, uint32_t seed, sf_direction direction)
{
    memset(g, 0, sizeof *g);
    g->n = 2 + below(seed, 0, MAX - 1);
    uint32_t wanted = below(seed, 1, 2 * g->n);
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t a = below(seed, 10 + 2 * i, g->n), b = below(seed, 11 + 2 * i, g->n);
        g->edges[g->count++] = (sf_pair){a, b, (float)i};
        if (i % 5 == 0) g->edges[g->count++] = (sf_pair){a, b, (float)i};
        if (a == b) continue;
        g->edge[a][b] = 1;
        if (direction == SF_SYMMETRIC) g->edge[b][a] = 1;
    }
}

/* Which words hang together, by repeated squaring of "can reach". */
static void reach(const random_graph *g, int r[MAX][MAX])
{
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t j = 0; j < g->n; j++) r[i][j] = i == j || g->edge[i][j] || g->edge[j][i];
    for (uint32_t k = 0; k < g->n; k++)
        for (uint32_t i = 0; i < g->n; i++)
            for (uint32_t j = 0; j < g->n; j++) r[i][j] |= r[i][k] && r[k][j];
}

static void test_graph(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 600; seed++) {
        static random_graph g;
        static int r[MAX][MAX];
        sf_direction direction = seed % 3 ? SF_SYMMETRIC : SF_DIRECTED;
        sf_graph built;
        size_t added, listed = 0, kept = 0;
        make_graph(&g, seed, direction);
        reach(&g, r);
        assert_ok(sf_graph_build(&built, g.n, g.edges, g.count, direction, 1, &added, &error));
        for (uint32_t a = 0; a < g.n; a++) {
            uint64_t e = built.offsets[a];
            for (uint32_t b = 0; b < g.n; b++) {
                int given = 0;
                for (size_t i = 0; i < g.count; i++) given |= g.edges[i].a == a && g.edges[i].b == b && a != b;
                listed += (size_t)given;
                kept += (size_t)g.edge[a][b];
                if (g.edge[a][b]) assert_int_equal(built.ids[e++], b); /* complete, ascending, nothing else */
                assert_int_equal(built.component[a] == built.component[b], r[a][b]);
            }
            assert_int_equal(e, built.offsets[a + 1]);
        }
        assert_int_equal(added, kept - listed);
        for (uint32_t c = 0; c < built.components; c++)
            for (uint64_t i = built.member_offsets[c]; i < built.member_offsets[c + 1]; i++) {
                assert_int_equal(built.component[built.members[i]], c);
                if (i > built.member_offsets[c]) assert_true(built.members[i] > built.members[i - 1]);
            }
        assert_int_equal(built.member_offsets[built.components], g.n);
        sf_graph_free(&built);
    }
}

/* ----------------------------------------------------- ranking and kernels */

typedef struct random_space {
    float rows[MAX][4];
    const float *row[MAX];
} random_space;

static void make_space(random_space *s, uint32_t seed, uint32_t n, int holes)
{
    for (uint32_t i = 0; i < n; i++) {
        /* Few distinct values: ties must go to the smaller id. */
        for (uint32_t k = 0; k < 4; k++) s->rows[i][k] = (float)below(seed + 5000, 4 * i + k, 3) - 1.0f;
        s->row[i] = holes && below(seed + 5000, 1000 + i, 3) == 0 ? NULL : s->rows[i];
    }
}

/* Steps from word to word, by Floyd and Warshall. */
static void measure(const random_graph *g, int distance[MAX][MAX])
{
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t j = 0; j < g->n; j++) distance[i][j] = i == j ? 0 : g->edge[i][j] ? 1 : 1000;
    for (uint32_t k = 0; k < g->n; k++)
        for (uint32_t i = 0; i < g->n; i++)
            for (uint32_t j = 0; j < g->n; j++)
                if (distance[i][k] + distance[k][j] < distance[i][j]) distance[i][j] = distance[i][k] + distance[k][j];
}

/* Is z before y in x's ranking, by the definition? */
static int before(int distance[MAX][MAX], const random_space *s, uint32_t x, uint32_t z, uint32_t y)
{
    int z_vector = s && s->row[x] && s->row[z], y_vector = s && s->row[x] && s->row[y];
    if (z == x || y == x) return z == x && y != x;
    if (z_vector != y_vector) return z_vector;
    if (z_vector) {
        float p = 0, q = 0;
        for (int k = 0; k < 4; k++) {
            p += s->row[x][k] * s->row[z][k];
            q += s->row[x][k] * s->row[y][k];
        }
        return p != q ? p > q : z < y;
    }
    int p = distance[x][z], q = distance[x][y];
    return p != q ? p < q : z < y;
}

static void test_kernels(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 300; seed++) {
        static random_graph g;
        static random_space s;
        static int r[MAX][MAX], distance[MAX][MAX];
        sf_direction direction = seed % 5 ? SF_SYMMETRIC
                                          : SF_DIRECTED; /* then some words of a component cannot be reached */
        sf_graph graph;
        make_graph(&g, seed, direction);
        make_space(&s, seed, g.n, seed % 2);
        reach(&g, r);
        measure(&g, distance);
        const float *const *rows = seed % 4 == 3 ? NULL : s.row;
        const random_space *space = rows ? &s : NULL;
        uint64_t counts[MAX];
        for (uint32_t i = 0; i < g.n; i++) counts[i] = below(seed, 3000 + i, 4);
        assert_ok(sf_graph_build(&graph, g.n, g.edges, g.count, direction, 0, NULL, &error));
        for (uint32_t k = 1; k < 12; k += 1 + seed % 3) {
            sf_nearest nearest;
            sf_kernel kernel;
            assert_ok(sf_nearest_build(&nearest, &graph, rows, 4, k, k + seed % 3, 1 + (int)(seed % 2), NULL, &error));
            assert_ok(sf_kernel_build(&kernel, &graph, counts, &nearest, (sf_kernel_spec){SF_TOPK, k}, &error));
            for (uint32_t x = 0; x < g.n; x++) {
                uint32_t row = kernel.row_of[x], size = 0, own = 0;
                for (uint32_t z = 0; z < g.n; z++) size += (uint32_t)r[x][z];
                uint64_t support = kernel.offsets[row + 1] - kernel.offsets[row];
                assert_int_equal(support, size < k ? size : k);
                assert_int_equal(kernel.totals[row], support);
                for (uint64_t i = kernel.offsets[row]; i < kernel.offsets[row + 1]; i++) {
                    uint32_t z = kernel.ids[i];
                    own |= z == x;
                    assert_int_equal(kernel.weights[i], 1);
                    assert_true(r[x][z]);
                    /* No word outside the set may be before one inside. */
                    for (uint32_t y = 0; size > k && y < g.n; y++) {
                        int inside = 0;
                        for (uint64_t j = kernel.offsets[row]; j < kernel.offsets[row + 1]; j++)
                            inside |= kernel.ids[j] == y;
                        if (r[x][y] && !inside && before(distance, space, x, y, z))
                            fail_msg("seed %u k %u: %u before %u for %u", seed, k, y, z, x);
                    }
                }
                assert_true(own);
            }
            sf_kernel_free(&kernel);
            sf_nearest_free(&nearest);
        }
        sf_kernel component, representative;
        assert_ok(sf_kernel_build(&component, &graph, counts, NULL, (sf_kernel_spec){SF_COMPONENT, 0}, &error));
        assert_ok(
            sf_kernel_build(&representative, &graph, counts, NULL, (sf_kernel_spec){SF_REPRESENTATIVE, 0}, &error));
        for (uint32_t x = 0; x < g.n; x++) {
            uint32_t row = component.row_of[x], best = SF_NONE, one = representative.row_of[x];
            uint64_t at = component.offsets[row];
            for (uint32_t z = 0; z < g.n; z++) {
                if (!r[x][z]) continue;
                assert_int_equal(component.ids[at++], z);
                if (best == SF_NONE || counts[z] > counts[best]) best = z;
            }
            assert_int_equal(at, component.offsets[row + 1]);
            assert_int_equal(representative.offsets[one + 1] - representative.offsets[one], 1);
            assert_int_equal(representative.ids[representative.offsets[one]], best);
        }
        double overlap[MAX];
        uint32_t worst[MAX];
        sf_kernel_view views[2] = {sf_kernel_as_view(&component), sf_kernel_as_view(&representative)};
        for (int v = 0; v < 2; v++) {
            sf_overlap_all(overlap, worst, &views[v], &graph, 1);
            for (uint32_t x = 0; x < g.n; x++) assert_true(overlap[x] == 1.0);
        }
        sf_kernel_free(&component);
        sf_kernel_free(&representative);
        sf_graph_free(&graph);
    }
}

/* Any weights: s(x,x') is the largest double at most the exact fraction, s_x the least. */
static void test_overlaps(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 400; seed++) {
        static random_graph g;
        sf_graph graph;
        sf_kernel kernel;
        uint32_t weight[MAX][MAX], row;
        uint64_t total[MAX];
        make_graph(&g, seed, SF_SYMMETRIC);
        assert_ok(sf_graph_build(&graph, g.n, g.edges, g.count, SF_SYMMETRIC, 0, NULL, &error));
        assert_ok(sf_kernel_start(&kernel, g.n, &error));
        uint32_t scale = seed % 3 == 0 ? 2 : seed % 3 == 1 ? 1000 : UINT32_MAX / MAX;
        for (uint32_t x = 0; x < g.n; x++) {
            uint32_t ids[MAX], weights[MAX];
            size_t count = 0;
            total[x] = 0;
            for (uint32_t z = 0; z < g.n; z++) {
                weight[x][z] = below(seed, 9000 + x * MAX + z, 3) == 0 || z == x
                                   ? 1 + below(seed, 20000 + x * MAX + z, scale)
                                   : 0;
                if (!weight[x][z]) continue;
                ids[count] = z;
                weights[count++] = weight[x][z];
                total[x] += weight[x][z];
            }
            assert_ok(sf_kernel_add(&kernel, ids, weights, count, &row, &error));
            kernel.row_of[x] = row;
            assert_int_equal(kernel.totals[row], total[x]);
        }
        double overlap[MAX];
        uint32_t worst[MAX];
        sf_kernel_view view = sf_kernel_as_view(&kernel);
        sf_overlap_all(overlap, worst, &view, &graph, 2);
        for (uint32_t x = 0; x < g.n; x++) {
            double least = 1.0;
            for (uint32_t y = 0; y < g.n; y++) {
                if (x == y) continue;
                wide numerator = 0, denominator = (wide)total[x] * total[y];
                for (uint32_t z = 0; z < g.n; z++) {
                    wide p = (wide)weight[x][z] * total[y], q = (wide)weight[y][z] * total[x];
                    numerator += p < q ? p : q;
                }
                double s = sf_overlap(&view, x, y);
                /* s = m * 2^e exactly: compare m * denominator with numerator * 2^-e. */
                int exponent;
                double mantissa = frexp(s, &exponent);
                if (numerator == 0) {
                    assert_true(s == 0.0);
                } else {
                    uint64_t m = (uint64_t)ldexp(mantissa, 53);
                    long double exact = (long double)numerator / (long double)denominator;
                    assert_true((long double)s <= exact * (1 + 1e-18L));
                    assert_true((long double)nextafter(s, 2) > exact * (1 - 1e-18L));
                    int shift = 53 - exponent; /* s = m / 2^shift */
                    if (shift < 62 && denominator < (wide)1 << 62 && numerator < (wide)1 << (126 - shift)) {
                        assert_true((wide)m * denominator <= numerator << shift);
                        assert_true((wide)(m + 1) * denominator > numerator << shift);
                    }
                }
                if (g.edge[x][y] && s < least) least = s;
            }
            assert_true(overlap[x] == least);
            assert_true(worst[x] == SF_NONE ? graph.offsets[x] == graph.offsets[x + 1]
                                            : g.edge[x][worst[x]] && sf_overlap(&view, x, worst[x]) == overlap[x]);
        }
        sf_kernel_free(&kernel);
        sf_graph_free(&graph);
    }
}

static void test_kernel_rows_are_checked(void **state)
{
    (void)state;
    sf_kernel kernel;
    sf_kernel_spec spec;
    uint32_t row, ids[2] = {1, 2}, twice[2] = {1, 1}, far[1] = {5}, weights[2] = {1, 1}, zero[2] = {1, 0},
                  huge[2] = {UINT32_MAX, 1};
    assert_ok(sf_kernel_start(&kernel, 5, &error));
    assert_fails(sf_kernel_add(&kernel, ids, weights, 0, &row, &error), SAFER_INVALID, "without words");
    assert_fails(sf_kernel_add(&kernel, twice, weights, 2, &row, &error), SAFER_INVALID, "distinct");
    assert_fails(sf_kernel_add(&kernel, far, weights, 1, &row, &error), SAFER_INVALID, "in the lexicon");
    assert_fails(sf_kernel_add(&kernel, ids, zero, 2, &row, &error), SAFER_INVALID, "weight of 0");
    assert_fails(sf_kernel_add(&kernel, ids, huge, 2, &row, &error), SAFER_INVALID, "2^32");
    assert_int_equal(kernel.rows, 0);
    sf_kernel_free(&kernel);
    assert_ok(sf_kernel_spec_parse(&spec, "topk:7", &error));
    assert_int_equal(spec.k, 7);
    const char *bad[] = {"topk", "topk:", "topk:0", "topk:x", "topk:-1", "topk:99999999999", "components", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(sf_kernel_spec_parse(&spec, bad[i], &error), SAFER_INVALID, "it must be topk:K");
}

/* The product of the R smallest, never above the exact one. */
static void test_products(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 2000; seed++) {
        double overlaps[12], sorted[12], products[3];
        const size_t radii[3] = {1, 3, SIZE_MAX};
        size_t count = below(seed, 0, 13);
        wide exact[3] = {1, 1, 1};
        int bits[3] = {0, 0, 0};
        for (size_t i = 0; i < count; i++) overlaps[i] = sorted[i] = ldexp(1 + below(seed, (uint32_t)i + 1, 512), -9);
        for (size_t i = 0; i < count; i++)
            for (size_t j = i + 1; j < count; j++)
                if (sorted[j] < sorted[i]) {
                    double swap = sorted[i];
                    sorted[i] = sorted[j];
                    sorted[j] = swap;
                }
        for (int r = 0; r < 3; r++)
            for (size_t i = 0; i < count && i < radii[r]; i++) {
                exact[r] *= (uint64_t)ldexp(sorted[i], 9); /* 12 factors of 10 bits: 120 bits */
                bits[r] += 9;
            }
        sf_overlap_products(products, radii, 3, overlaps, count);
        for (int r = 0; r < 3; r++) {
            long double value = (long double)exact[r] * powl(2, -bits[r]);
            assert_true((long double)products[r] <= value * (1 + 1e-19L));
            assert_true((long double)products[r] >= value * (1 - 12 * 0x1p-52L));
        }
    }
}

/* ----------------------------------------------------------- the .lex file */

static safer_lexicon *small_lexicon(const char *kernel)
{
    return import_table("good\tgreat fine\ngreat\tgreatest\nbad\tawful\nalone\t\nна\tпо\n", kernel);
}

static void test_file_round_trip(void **state)
{
    (void)state;
    const char *kernels[] = {"topk:2", "component", "representative"};
    for (int k = 0; k < 3; k++) {
        safer_lexicon *made = small_lexicon(kernels[k]), *read = NULL, *again = NULL;
        const char *path = temporary("small.lex");
        assert_ok(safer_lexicon_save(made, path, &error));
        assert_ok(safer_lexicon_open(&read, path, &error));
        assert_int_equal(read->image.length, made->image.length);
        assert_memory_equal(read->image.bytes, made->image.bytes, made->image.length);
        assert_string_equal(safer_lexicon_describe(read).kernel, kernels[k]);
        char sha256[65];
        assert_ok(safer_path_sha256(sha256, path, &error));
        assert_string_equal(safer_lexicon_sha256(read), sha256);
        assert_string_equal(safer_lexicon_sha256(made), sha256);
        assert_string_equal(safer_lexicon_name(read), "small.lex");
        assert_string_equal(safer_lexicon_name(made), "memory");
        for (uint32_t x = 0; x < read->words.count; x++) {
            safer_word a = safer_lexicon_word(made, x), b = safer_lexicon_word(read, x);
            assert_string_equal(a.word, b.word);
            assert_int_equal(safer_lexicon_find(read, a.word, strlen(a.word)), x);
            assert_true(a.overlap == b.overlap && a.worst == b.worst && a.total == b.total);
        }
        assert_ok(safer_lexicon_with_kernel(&again, read, kernels[k], 1, &error)); /* the same kernel: the same file */
        assert_int_equal(again->image.length, made->image.length);
        assert_memory_equal(again->image.bytes, made->image.bytes, made->image.length);
        safer_lexicon_free(made);
        safer_lexicon_free(read);
        safer_lexicon_free(again);
    }
}

/* Puts the checksum right. */
static void seal(char *bytes, size_t length)
{
    uint64_t checksum = sf_hash(bytes, length - 8, 0);
    memcpy(bytes + length - 8, &checksum, 8);
}

static void test_file_damage(void **state)
{
    (void)state;
    safer_lexicon *made = small_lexicon("topk:2"), *read = NULL;
    size_t length = made->image.length;
    char *bytes = malloc(length);
    for (size_t i = 0; i < length; i++) { /* any one byte */
        memcpy(bytes, made->image.bytes, length);
        bytes[i] = (char)(bytes[i] ^ (1 << (i % 8)));
        sf_file image = {.bytes = bytes, .length = length};
        if (sf_lexicon_from_image(&read, &image, "x.lex", &error) == SAFER_OK) fail_msg("byte %zu may be flipped", i);
        assert_non_null(strstr(error.message, "x.lex"));
    }
    for (size_t cut = 0; cut < length; cut += cut < 600 ? 1 : 37) { /* any truncation */
        memcpy(bytes, made->image.bytes, length);
        sf_file image = {.bytes = bytes, .length = cut};
        if (sf_lexicon_from_image(&read, &image, "x.lex", &error) == SAFER_OK) fail_msg("cut at %zu is accepted", cut);
    }
    /* A section of another length than its numbers need. The two names at the end may be padded. */
    enum { SECTIONS = 19, TABLE = 48 };
    for (size_t i = 0; i < 2 * SECTIONS; i++) {
        const size_t at = TABLE + i / 2 * 16 + 8;
        uint64_t section;
        if (i % 2 && i / 2 >= SECTIONS - 2) continue;
        memcpy(bytes, made->image.bytes, length);
        memcpy(&section, bytes + at, 8);
        section += i % 2 ? 8 : UINT64_MAX; /* or one byte less */
        memcpy(bytes + at, &section, 8);
        seal(bytes, length);
        sf_file image = {.bytes = bytes, .length = length};
        if (sf_lexicon_from_image(&read, &image, "x.lex", &error) == SAFER_OK)
            fail_msg("section %zu may %s", i / 2, i % 2 ? "grow" : "shrink");
    }
    /* A file made to deceive: numbers changed and the checksum put right. Whatever is
     * accepted must still be safe to walk through. */
    size_t accepted = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        memcpy(bytes, made->image.bytes, length);
        for (uint32_t k = 0; k < 1 + i % 3; k++)
            bytes[below(i, 2 * k, (uint32_t)length - 8)] = (char)below(i, 2 * k + 1, 256);
        seal(bytes, length);
        sf_file image = {.bytes = bytes, .length = length};
        if (sf_lexicon_from_image(&read, &image, "x.lex", &error) != SAFER_OK) continue;
        accepted++;
        for (uint32_t x = 0; x < read->words.count; x++) {
            safer_word w = safer_lexicon_word(read, x);
            uint64_t sum = strlen(w.word);
            for (size_t j = 0; j < w.synonym_count; j++) sum += strlen(safer_lexicon_word(read, w.synonyms[j]).word);
            for (size_t j = 0; j < w.support_count; j++) sum += strlen(safer_lexicon_word(read, w.support[j]).word);
            safer_lexicon_find(read, w.word, strlen(w.word));
            assert_true(sum < 100000);
        }
        safer_lexicon_describe(read);
        read->image = (sf_file){0};
        safer_lexicon_free(read);
    }
    assert_true(accepted > 0);
    free(bytes);
    safer_lexicon_free(made);
    assert_fails(safer_lexicon_open(&read, "/nonexistent.lex", &error), SAFER_SYSTEM, "/nonexistent.lex");
    assert_fails(safer_lexicon_open(&read, write_temporary("text.lex", "hello", 5), &error), SAFER_INPUT,
                 "does not begin");
}

/* ------------------------------------------------------------------ tables */

static safer_status parse_table(sf_table *t, const char *text)
{
    *t = (sf_table){0};
    safer_status status = sf_table_parse(t, text, strlen(text), "t.tsv", &error);
    if (status != SAFER_OK) sf_table_free(t);
    return status;
}

static void test_tables(void **state)
{
    (void)state;
    sf_table t;
    assert_ok(parse_table(&t, "Good\tgreat  fine\r\n\nalone\t\nlonely\nnaïve\tsimple ice-cream\n"));
    assert_int_equal(t.words.count, 7); /* good great fine alone lonely naïve simple */
    assert_int_equal(t.count, 3);
    assert_int_equal(t.phrases, 1);
    assert_string_equal(sf_words_string(&t.words, 0), "good");
    sf_table_free(&t);
    assert_ok(parse_table(&t, "{\"good\": [\"great\", \"very good\"], \"don't\": [\"DON\\u2019T\"], \"x\": []}"));
    assert_int_equal(t.words.count, 4);
    assert_int_equal(t.count, 1); /* don't -> don't is no pair */
    assert_int_equal(t.phrases, 1);
    sf_table_free(&t);
    assert_fails(parse_table(&t, "{\"a\": [\"b\", 3]}"), SAFER_INPUT, "item 2 of \"a\" is not a word");
    assert_fails(parse_table(&t, "{\"a\": \"b\"}"), SAFER_INPUT, "the value of \"a\" is not a list");
    assert_fails(parse_table(&t, "{\"a\": [\"\\ud800\"]}"), SAFER_INPUT, "t.tsv, line 1"); /* lone surrogate */
    assert_fails(parse_table(&t, "{\"a\": [\"b\"], \"a\": []}"), SAFER_INPUT, "duplicate");
    assert_fails(parse_table(&t, "{\"a\": [\"b\"]"), SAFER_INPUT, "t.tsv, line 1");
    assert_fails(parse_table(&t, "ok\tfine\ngood great\n"), SAFER_INPUT, "t.tsv, line 2: no tab");
    assert_fails(parse_table(&t, "ok\tfine\nb\xff\tgreat\n"), SAFER_INPUT, "t.tsv, line 2: not UTF-8");
    assert_fails(parse_table(&t, "word\tsynonym\ngood\tgreat\n"), SAFER_INPUT,
                 "t.tsv, line 1: a header (\"word\", \"synonym\")");
    assert_fails(parse_table(&t, "\xef\xbb\xbfSource\tTarget score\r\ngood\tgreat\n"), SAFER_INPUT, "line 1: a header");
    assert_ok(parse_table(&t, "neighbor\tneighbour\nword\tterm\nsource\tspring target\nterm\tsimilar\n"));
    assert_int_equal(t.count, 5); /* words like any others */
    sf_table_free(&t);
    assert_fails(parse_table(&t, " \n"), SAFER_INPUT, "is empty");
    t = (sf_table){0};
    assert_fails(sf_table_parse(&t, "{\"a\\u0000b\": []}", 16, "t", &error), SAFER_INPUT,
                 "t, line 1"); /* NUL in a key */
    sf_table_free(&t);
}

static void test_wordnet(void **state)
{
    (void)state;
    sf_table t = {0};
    static const char data[] =
        "  1 a line of the licence\n"
        "00001740 29 v 04 breathe 0 take_a_breath 0 respire 0 Suspire 3 021 * 00005041 v 0000 | draw air\n"
        "00002000 00 s 02 asleep(p) 0 sleeping 0 000 | not awake\n";
    assert_ok(sf_wordnet_parse(&t, data, sizeof data - 1, "data.verb", &error));
    assert_int_equal(t.words.count, 5);
    assert_int_equal(t.count, 6 + 2);
    assert_int_equal(t.phrases, 1);
    assert_true(sf_words_find(&t.words, "asleep", 6) != SF_NONE);
    sf_table_free(&t);
    assert_fails(sf_wordnet_parse(&t, "00001740 29 v zz breathe 0\n", 27, "data.verb", &error), SAFER_INPUT,
                 "data.verb, line 1");
    sf_table_free(&t);
    assert_fails(sf_wordnet_parse(&t, "00001740 29 v 04 breathe 0\n", 27, "data.verb", &error), SAFER_INPUT,
                 "data.verb, line 1");
    sf_table_free(&t);
    assert_fails(sf_wordnet_read(&t, "/nonexistent", &error), SAFER_SYSTEM, "/nonexistent/data.noun");
}

static const char *write_file(const char *name, const char *text) { return write_temporary(name, text, strlen(text)); }

static int are_in(const sf_constraints *c, const sf_words *words, const char *a, const char *b)
{
    const uint32_t x = sf_words_find(words, a, strlen(a)), y = sf_words_find(words, b, strlen(b));
    for (size_t i = 0; i < c->count; i++)
        if (c->pairs[i][0] == x && c->pairs[i][1] == y) return 1;
    return 0;
}

static void test_wordnet_antonyms(void **state)
{
    (void)state;
    sf_wordnet w = {0};
    sf_constraints synonyms = {0}, antonyms = {0};
    const char *adjectives = write_file("data.adj",
                                        "00000100 00 a 02 hot 0 torrid 0 002 ! 00000200 a 0101 & 00000100 a 0000 | x\n"
                                        "00000200 00 s 02 cold 0 ice_cold 0 001 ! 00000100 a 0101 | y\n"
                                        "00000300 00 a 01 slow 0 001 ! 00000100 r 0000 | of another file, all words\n");
    write_file("data.adv", "00000100 02 r 02 quickly 0 fast 0 000 | z\n");
    write_file("data.noun", "00000100 03 n 02 box 0 case 0 001 ! 00009999 n 0101 | leads nowhere\n");
    write_file("data.verb", "00000100 29 v 01 love 0 000 | w\n");
    char folder[512];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(adjectives, '/') - adjectives), adjectives);
    assert_ok(sf_wordnet_open(&w, folder, &error));
    const sf_words *words = &w.table.words;
    assert_ok(sf_wordnet_synonyms(&synonyms, &w, words, &error));
    assert_ok(sf_wordnet_antonyms(&antonyms, &w, words, &error));
    assert_int_equal(synonyms.count, 6); /* hot torrid, quickly fast, box case, both ways */
    assert_true(are_in(&synonyms, words, "torrid", "hot"));
    assert_int_equal(antonyms.count, 2 + 4); /* torrid has none: the pointer is from the first word */
    assert_true(are_in(&antonyms, words, "hot", "cold") && are_in(&antonyms, words, "fast", "slow") &&
                are_in(&antonyms, words, "slow", "quickly"));
    static const struct {
        const char *word;
        unsigned parts;
    } expected[] = {
        {"hot", SF_ADJECTIVE}, {"cold", SF_ADJECTIVE},    {"boxes", SF_NOUN},  {"loves", SF_VERB}, {"loving", SF_VERB},
        {"loved", SF_VERB},    {"slowest", SF_ADJECTIVE}, {"fast", SF_ADVERB}, {"nothing", 0},     {"s", 0},
        {"cases", SF_NOUN}};
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_int_equal(sf_wordnet_parts(&w, expected[i].word, strlen(expected[i].word)), expected[i].parts);
    sf_constraints_free(&synonyms);
    sf_constraints_free(&antonyms);
    sf_wordnet_free(&w);
    static const char *const wrong[] = {"00000100 00 a 01 hot 0 001 ! 00000200 a 01\n",
                                        "00000100 00 a 01 hot 0 002 ! 00000200 a 0101\n",
                                        "00000100 00 a 01 hot 0 001 ! 00000200 a 0201\n",
                                        "00000100 00 x 01 hot 0 000\n",
                                        "00000100 00 a 01 hot 0\n",
                                        "00000100 00 a 01 hot 0 001 ! 0000020g a 0101\n"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        write_file("data.adj", wrong[i]);
        assert_fails(sf_wordnet_open(&w, folder, &error), SAFER_INPUT, "data.adj, line 1: not a WordNet synset");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph),       cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_overlaps),    cmocka_unit_test(test_kernel_rows_are_checked),
        cmocka_unit_test(test_products),    cmocka_unit_test(test_file_round_trip),
        cmocka_unit_test(test_file_damage), cmocka_unit_test(test_tables),
        cmocka_unit_test(test_wordnet),     cmocka_unit_test(test_wordnet_antonyms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
