/* Word vectors, all pairs, counter-fitting, all-but-the-top, SimLex. Files are read the same by any number of threads
 * and in any locale; pairs are those of the naive search. */
#include "support.h"

#include "base/rng.h"
#include "lexicon/allbutthetop.h"
#include "lexicon/counterfit.h"
#include "lexicon/pairs.h"
#include "lexicon/simlex.h"
#include "lexicon/vectors.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static safer_error error;

static safer_status parse(sf_vectors *v, const char *text, const sf_words *keep, int threads)
{
    return sf_vectors_parse(v, text, strlen(text), "file.txt", keep, threads, &error);
}

static double unit(uint32_t i, uint32_t j) { return sf_draw_unit(sf_stream_of(7, 0, SF_STAGE_DATA), i, j) * 2 - 1; }

/* Random rows that fall into clusters, so that some pairs are close. */
static float *random_rows(size_t count, size_t dim, uint32_t salt)
{
    float *values = malloc(count * dim * sizeof *values);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < dim; k++)
            values[i * dim + k] = (float)(unit((uint32_t)(i % (count / 3 + 1)) + salt, (uint32_t)k) +
                                          0.25 * unit((uint32_t)i + salt + 100000, (uint32_t)k));
    sf_vectors_normalise(values, count, dim, 1);
    return values;
}

/* ---------------------------------------------------------------- reading */

static void test_text(void **state)
{
    (void)state;
    sf_vectors v;
    assert_ok(parse(&v, "the 1 -2.5 3e-1\ncat 0.5 .25 1\n", NULL, 1));
    assert_int_equal(v.words.count, 2);
    assert_int_equal(v.dim, 3);
    assert_string_equal(sf_words_string(&v.words, 1), "cat");
    assert_true(v.values[1] == -2.5f && v.values[2] == 0.3f && v.values[4] == 0.25f);
    sf_vectors_free(&v);

    assert_ok(parse(&v, "2 3\r\nthe 1 2 3 \r\ncat 4 5 6\r\n", NULL, 1)); /* header, CRLF, blanks at the end */
    assert_int_equal(v.words.count, 2);
    assert_true(v.values[5] == 6.0f);
    sf_vectors_free(&v);

    assert_ok(parse(&v, "a 1 2", NULL, 1)); /* no newline at the end */
    assert_int_equal(v.words.count, 1);
    sf_vectors_free(&v);

    assert_ok(parse(&v, "3.14 1 2\n7 3 4\n", NULL, 1)); /* words that are numbers */
    assert_int_equal(v.words.count, 2);
    sf_vectors_free(&v);
}

static void test_set_aside(void **state)
{
    (void)state;
    sf_vectors v;
    assert_ok(
        parse(&v, "The 1 1\nthe 2 2\nTHE 3 3\ncat 0 0\nice cream 1 2\n\xff\xfe 1 2\ndog 5 6\nDog 7 8\n", NULL, 1));
    assert_int_equal(v.rows, 8);
    assert_int_equal(v.words.count, 2); /* the, dog */
    assert_int_equal(v.duplicates, 3);
    assert_int_equal(v.unusable, 2);
    assert_int_equal(v.zeros, 1);
    assert_true(v.values[0] == 2.0f); /* the lower-case row wins */
    assert_true(v.values[2] == 5.0f);
    sf_vectors_free(&v);

    sf_words keep = {0};
    uint32_t id;
    assert_ok(sf_words_add(&keep, "dog", 3, &id, &error));
    assert_ok(parse(&v, "the 2 2\ndog 5 6\n", &keep, 1));
    assert_int_equal(v.words.count, 1);
    assert_int_equal(v.rows, 2);
    assert_true(v.values[0] == 5.0f);
    sf_vectors_free(&v);
    sf_words_free(&keep);
}

static void test_faults(void **state)
{
    (void)state;
    sf_vectors v;
    assert_fails(parse(&v, "the 1 2\ncat 1\n", NULL, 1), SAFER_INPUT,
                 "file.txt, line 2: 1 number where 2 are expected");
    assert_fails(parse(&v, "the 1 2\ncat 1 2 3\n", NULL, 1), SAFER_INPUT, "line 2: 3 numbers");
    assert_fails(parse(&v, "the 1 2\n\ncat 1 2\n", NULL, 1), SAFER_INPUT, "line 2");
    assert_fails(parse(&v, "the 1 nan\n", NULL, 1), SAFER_INPUT, "line 1: NaN");
    assert_fails(parse(&v, "the 1 2\na inf 1\n", NULL, 1), SAFER_INPUT, "line 2: NaN");
    assert_fails(parse(&v, "the 1 1e39\n", NULL, 1), SAFER_INPUT, "line 1");
    assert_fails(parse(&v, "the 1 2x\n", NULL, 1), SAFER_INPUT, "line 1: not a number");
    assert_fails(parse(&v, "3 2\nthe 1 2\ncat 1 2\n", NULL, 1), SAFER_INPUT, "promises 3 vectors, it holds 2");
    assert_fails(parse(&v, "2 5\nthe 1 2\ncat 1 2\n", NULL, 1), SAFER_INPUT,
                 "line 2: 2 numbers where the header says 5");
    assert_fails(parse(&v, "2 2\nthe 1 2\ncat 1 x\n", NULL, 1), SAFER_INPUT, "line 3"); /* counted with the header */
    assert_fails(parse(&v, "the 1\n 1 2\n", NULL, 1), SAFER_INPUT, "line 2: no word before the numbers");
    assert_fails(parse(&v, "", NULL, 1), SAFER_INPUT, "no word vectors");
    assert_fails(parse(&v, "lonely\n", NULL, 1), SAFER_INPUT, "no word vectors");
}

static void test_binary(void **state)
{
    (void)state;
    sf_vectors v;
    char bytes[256];
    const float rows[2][3] = {{1.5f, -2, 3}, {4, 5, 1e-7f}}, bad[3] = {1, NAN, 2};
    size_t n = (size_t)sprintf(bytes, "2 3\n");
    n += (size_t)sprintf(bytes + n, "the ");
    memcpy(bytes + n, rows[0], 12);
    n += 12;
    n += (size_t)sprintf(bytes + n, "\ncat ");
    memcpy(bytes + n, rows[1], 12);
    n += 12;
    assert_ok(sf_vectors_parse(&v, bytes, n, "w.bin", NULL, 1, &error));
    assert_int_equal(v.words.count, 2);
    assert_string_equal(sf_words_string(&v.words, 1), "cat");
    assert_memory_equal(v.values, rows, sizeof rows);
    sf_vectors_free(&v);
    for (size_t cut = 10; cut < n; cut++)
        if (sf_vectors_parse(&v, bytes, cut, "w.bin", NULL, 1, &error) == SAFER_OK)
            fail_msg("cut at %zu was accepted", cut);
    memcpy(bytes + n - 12, bad, 12);
    assert_fails(sf_vectors_parse(&v, bytes, n, "w.bin", NULL, 1, &error), SAFER_INPUT, "vector 2: NaN");
    n = (size_t)sprintf(bytes, "99999999999 300\nthe ");
    memset(bytes + n, 1, 64);
    assert_fails(sf_vectors_parse(&v, bytes, n + 64, "w.bin", NULL, 1, &error), SAFER_INPUT, "truncated");
}

/* Several pieces, several threads, another locale: always the same matrix. */
static void test_parallel_and_locale(void **state)
{
    (void)state;
    size_t count = 40000, length = 0;
    char *text = malloc(count * 100);
    for (size_t i = 0; i < count; i++)
        length += (size_t)sprintf(text + length, "w%zu %.4f %.6g %g\n", i, unit((uint32_t)i, 0), unit((uint32_t)i, 1),
                                  unit((uint32_t)i, 2) * 1e-5);
    assert_true(length > 1u << 20);
    sf_vectors one, many;
    assert_ok(sf_vectors_parse(&one, text, length, "f", NULL, 1, &error));
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8")) printf("skipped: no locale with a decimal comma\n");
    assert_ok(sf_vectors_parse(&many, text, length, "f", NULL, 5, &error));
    setlocale(LC_NUMERIC, "C");
    assert_int_equal(one.words.count, count);
    assert_memory_equal(one.values, many.values, count * 3 * sizeof(float));
    for (size_t i = 0; i < count; i += 977) {
        char expected[16];
        sprintf(expected, "w%zu", i);
        assert_string_equal(sf_words_string(&many.words, (uint32_t)i), expected);
        float x;
        assert_int_equal(sscanf(strstr(text, expected) + strlen(expected), "%f", &x), 1);
        if (i > 9999) assert_true(many.values[i * 3] == x);
    }
    sf_vectors_free(&one);
    sf_vectors_free(&many);
    /* A fault deep inside names its line, whichever piece it is in. */
    char *victim = strstr(text, "\nw33333 ");
    memcpy(victim + 8, "oops", 4);
    assert_fails(sf_vectors_parse(&one, text, length, "f", NULL, 2, &error), SAFER_INPUT, "line 33334");
    free(text);
}

static safer_status read_without_memory(void *context, safer_error *e)
{
    sf_vectors v;
    (void)context;
    static const char text[] = "The 1 2\nthe 3 4\ncat 1 2\n";
    safer_status status = sf_vectors_parse(&v, text, sizeof text - 1, "f", NULL, 1, e);
    if (status == SAFER_OK) sf_vectors_free(&v);
    return status;
}

/* ------------------------------------------------------------------ pairs */

static void test_pairs(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 2, 7, 63, 600, 1500}, dims[] = {1, 3, 8, 17, 100};
    for (size_t c = 0; c < 6; c++)
        for (size_t d = 0; d < 5; d++) {
            float *rows = random_rows(counts[c], dims[d], (uint32_t)(c * 10 + d));
            sf_pairs naive, fast;
            assert_ok(sf_pairs_find_naive(&naive, rows, counts[c], dims[d], 0.8, &error));
            for (int threads = 1; threads <= 3; threads += 2) {
                assert_ok(sf_pairs_find(&fast, rows, counts[c], dims[d], 0.8, threads, NULL, "pairs", &error));
                assert_int_equal(fast.count, naive.count);
                for (size_t i = 0; i < naive.count; i++)
                    assert_memory_equal(&fast.items[i], &naive.items[i], sizeof(sf_pair));
                free(fast.items);
            }
            if (counts[c] >= 63 && dims[d] >= 8) assert_true(naive.count > 0);
            free(naive.items);
            free(rows);
        }
}

/* A threshold equal to a pair's own similarity keeps the pair; the next number drops it. */
static void test_threshold_is_exact(void **state)
{
    (void)state;
    size_t n = 300, dim = 50;
    float *rows = random_rows(n, dim, 99);
    sf_pairs all, some;
    assert_ok(sf_pairs_find(&all, rows, n, dim, 0.7, 2, NULL, "", &error));
    assert_true(all.count > 20);
    for (size_t i = 0; i < all.count; i += all.count / 20) {
        double exact = sf_vectors_dot(rows + all.items[i].a * dim, rows + all.items[i].b * dim, dim);
        int found[2] = {0, 0};
        for (int k = 0; k < 2; k++) {
            assert_ok(sf_pairs_find(&some, rows, n, dim, k ? nextafter(exact, 2) : exact, 2, NULL, "", &error));
            for (size_t j = 0; j < some.count; j++)
                found[k] |= some.items[j].a == all.items[i].a && some.items[j].b == all.items[i].b;
            free(some.items);
        }
        assert_true(found[0] && !found[1]);
    }
    free(all.items);
    free(rows);
}

/* Rows that are not of length 1, as with --metric dot. */
static void test_pairs_unnormalised(void **state)
{
    (void)state;
    size_t n = 700, dim = 33;
    float *rows = random_rows(n, dim, 5);
    for (size_t i = 0; i < n * dim; i++) rows[i] *= (float)(1 + i % 7);
    sf_pairs naive, fast;
    assert_ok(sf_pairs_find_naive(&naive, rows, n, dim, 11.5, &error));
    assert_ok(sf_pairs_find(&fast, rows, n, dim, 11.5, 2, NULL, "", &error));
    assert_true(naive.count > 0);
    assert_int_equal(fast.count, naive.count);
    assert_memory_equal(fast.items, naive.items, naive.count * sizeof(sf_pair));
    free(naive.items);
    free(fast.items);
    free(rows);
}

static int cancel_at_once(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)context, (void)stage, (void)done, (void)total;
    return 1;
}

static void test_cancel(void **state)
{
    (void)state;
    float *rows = random_rows(3000, 10, 1);
    sf_pairs pairs;
    safer_progress progress = {cancel_at_once, NULL};
    assert_fails(sf_pairs_find(&pairs, rows, 3000, 10, 0.9, 2, &progress, "pairs", &error), SAFER_CANCELLED, "pairs");
    free(rows);
}

/* -------------------------------------------------------- counter-fitting */

/* One step by the definition, in the order of the paper's terms. */
static void naive_step(double *v, const double *start, size_t n, size_t dim, const int *kind)
{
    double *moved = malloc(n * dim * sizeof *moved);
    for (size_t i = 0; i < n; i++) {
        double update[64] = {0};
        int active = 0;
        for (size_t j = 0; j < n; j++) {
            double dot = 0, dot0 = 0;
            if (j == i) continue;
            for (size_t k = 0; k < dim; k++) {
                dot += v[i * dim + k] * v[j * dim + k];
                dot0 += start[i * dim + k] * start[j * dim + k];
            }
            int antonym = kind[i * n + j] == 2, synonym = kind[i * n + j] == 1, near = dot0 >= 0.8;
            for (size_t pass = 0; pass < 3; pass++) {
                double sign;
                if (pass == 0 && antonym && 1 - dot < 1)
                    sign = 0.1;
                else if (pass == 1 && synonym && 1 - dot > 0)
                    sign = -0.1;
                else if (pass == 2 && near && !antonym && dot <= dot0 + 1e-9)
                    sign = -0.1;
                else
                    continue;
                active++;
                for (size_t k = 0; k < dim; k++) update[k] += sign * (dot * v[i * dim + k] - v[j * dim + k]);
            }
        }
        double square = 0;
        for (size_t k = 0; k < dim; k++) {
            moved[i * dim + k] = v[i * dim + k] + (active ? update[k] / active : 0);
            square += moved[i * dim + k] * moved[i * dim + k];
        }
        for (size_t k = 0; k < dim; k++) moved[i * dim + k] /= sqrt(square);
    }
    memcpy(v, moved, n * dim * sizeof *v);
    free(moved);
}

static void test_counterfit(void **state)
{
    (void)state;
    enum { N = 30, DIM = 6 };
    float *rows = random_rows(N, DIM, 77);
    double v[N * DIM], start[N * DIM];
    int kind[N * N] = {0};
    char synonyms_text[2000] = "", antonyms_text[2000] = "";
    sf_words words = {0};
    uint32_t id;
    for (size_t i = 0; i < N; i++) {
        char word[8];
        sprintf(word, "w%zu", i);
        assert_ok(sf_words_add(&words, word, strlen(word), &id, &error));
    }
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t a = sf_draw_below(sf_stream_of(3, 0, SF_STAGE_DATA), i, 0, N),
                 b = sf_draw_below(sf_stream_of(3, 0, SF_STAGE_DATA), i, 1, N);
        if (a == b) continue;
        char line[32];
        sprintf(line, "w%u W%u\n", a, b); /* case does not matter */
        strcat(i % 2 ? synonyms_text : antonyms_text, line);
        if (i % 2 == 0)
            kind[a * N + b] = kind[b * N + a] = 2; /* antonym wins */
        else if (!kind[a * N + b])
            kind[a * N + b] = kind[b * N + a] = 1;
    }
    for (size_t i = 0; i < N * DIM; i++) v[i] = start[i] = (double)rows[i];
    strcat(synonyms_text, "w1 nowhere\n\n");
    sf_constraints synonyms = {0}, antonyms = {0};
    assert_ok(sf_constraints_parse(&synonyms, synonyms_text, strlen(synonyms_text), "s", &words, &error));
    assert_ok(sf_constraints_parse(&antonyms, antonyms_text, strlen(antonyms_text), "a", &words, &error));
    assert_int_equal(synonyms.unknown, 1);
    sf_constraints_sort(&synonyms);
    sf_constraints_sort(&antonyms);
    sf_counterfit_options options = sf_counterfit_options_default();
    options.steps = 7;
    size_t preserved;
    float *again = malloc(N * DIM * sizeof *again);
    memcpy(again, rows, N * DIM * sizeof *again);
    assert_ok(sf_counterfit(rows, N, DIM, &synonyms, &antonyms, &options, 1, NULL, &preserved, &error));
    assert_ok(sf_counterfit(again, N, DIM, &synonyms, &antonyms, &options, 3, NULL, &preserved, &error));
    assert_memory_equal(rows, again, N * DIM * sizeof *rows);
    assert_true(preserved > 0);
    for (int step = 0; step < options.steps; step++) naive_step(v, start, N, DIM, kind);
    for (size_t i = 0; i < N * DIM; i++)
        if (fabs(v[i] - (double)rows[i]) > 1e-5)
            fail_msg("entry %zu: %.9f where %.9f is expected", i, (double)rows[i], v[i]);
    assert_fails(sf_constraints_parse(&synonyms, "a b\nonly\n", 9, "s.txt", &words, &error), SAFER_INPUT,
                 "s.txt, line 2: 1 word where");
    assert_fails(sf_constraints_parse(&synonyms, "Word antonym\na b\n", 17, "s.txt", &words, &error), SAFER_INPUT,
                 "s.txt, line 1: a header (\"Word\", \"antonym\")");
    assert_fails(sf_constraints_parse(&synonyms, "a b c\n", 6, "s.txt", &words, &error), SAFER_INPUT,
                 "line 1: 3 words");
    sf_constraints_free(&synonyms);
    sf_constraints_free(&antonyms);
    sf_words_free(&words);
    free(rows);
    free(again);
}

/* -------------------------------------------------------- all-but-the-top */

static void test_eigen(void **state)
{
    (void)state;
    enum { N = 24 };
    double a[N * N], work[N * N], values[N], vectors[N * N];
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t j = 0; j <= i; j++) a[i * N + j] = a[j * N + i] = unit(i + 500, j);
    memcpy(work, a, sizeof a);
    assert_ok(sf_eigen_symmetric(work, values, vectors, N, &error));
    for (size_t e = 0; e < N; e++) {
        if (e) assert_true(values[e] <= values[e - 1]);
        for (size_t i = 0; i < N; i++) {
            double av = 0, orthogonal = 0;
            for (size_t j = 0; j < N; j++) {
                av += a[i * N + j] * vectors[e * N + j];
                orthogonal += vectors[e * N + j] * vectors[i * N + j];
            }
            assert_true(fabs(av - values[e] * vectors[e * N + i]) < 1e-11);
            assert_true(fabs(orthogonal - (e == i)) < 1e-12);
        }
    }
}

static void test_all_but_the_top(void **state)
{
    (void)state;
    /* Points around m, spread widely along one known direction u: removing one component
     * must leave v - m - (u.v)u. */
    enum { COUNT = 9000, DIM = 5 };
    const double u[DIM] = {0.5, -0.5, 0.5, 0.5, 0}, m[DIM] = {3, 1, -2, 0.5, 4};
    float *rows = malloc(COUNT * DIM * sizeof *rows), *other = malloc(COUNT * DIM * sizeof *other);
    for (uint32_t i = 0; i < COUNT; i++)
        for (uint32_t k = 0; k < DIM; k++)
            rows[i * DIM + k] = (float)(m[k] + 20 * unit(i, 100) * u[k] + 0.01 * unit(i, k));
    memcpy(other, rows, COUNT * DIM * sizeof *rows);
    float first[DIM];
    memcpy(first, rows, sizeof first);
    double mean[DIM] = {0}, along = 0;
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < DIM; k++) mean[k] += (double)rows[i * DIM + k] / COUNT;
    for (size_t k = 0; k < DIM; k++) along += u[k] * (double)first[k];
    assert_ok(sf_all_but_the_top(rows, COUNT, DIM, 1, 1, &error));
    assert_ok(sf_all_but_the_top(other, COUNT, DIM, 1, 3, &error));
    assert_memory_equal(rows, other, COUNT * DIM * sizeof *rows); /* threads do not matter */
    for (size_t k = 0; k < DIM; k++)
        if (fabs((double)rows[k] - ((double)first[k] - mean[k] - along * u[k])) > 2e-3)
            fail_msg("%zu: %f, not %f", k, (double)rows[k], (double)first[k] - mean[k] - along * u[k]);
    assert_fails(sf_all_but_the_top(rows, COUNT, DIM, 5, 1, &error), SAFER_INVALID, "5 directions");
    memcpy(other, rows, COUNT * DIM * sizeof *rows);
    assert_ok(sf_all_but_the_top(rows, COUNT, DIM, 0, 1, &error)); /* 0: nothing */
    assert_memory_equal(rows, other, COUNT * DIM * sizeof *rows);
    free(rows);
    free(other);
}

/* ------------------------------------------------------------------ SimLex */

static void test_simlex(void **state)
{
    (void)state;
    sf_words words = {0};
    uint32_t id;
    const char *names[] = {"a", "b", "c", "d", "e"};
    for (int i = 0; i < 5; i++) assert_ok(sf_words_add(&words, names[i], 1, &id, &error));
    const float rows[] = {1, 0, 1, 0.1f, 1, 0.5f, 1, 1, 0, 1}; /* cosine with a falls from b to e */
    const char falling[] =
        "word1\tword2\tPOS\tSimLex999\nA\tb\tN\t9\na\tc\tN\t8\na\td\tN\t8\na\te\tN\t1\na\tzz\tN\t5\n";
    sf_simlex simlex;
    double rho;
    assert_ok(sf_simlex_read(&simlex, write_temporary("simlex.txt", falling, strlen(falling)), &words, &error));
    assert_int_equal(simlex.count, 4);
    assert_ok(sf_simlex_correlation(&rho, &simlex, rows, 2, &error));
    assert_true(fabs(rho - 0.9486832980505138) < 1e-12); /* ranks 1 2 3 4 against 1 2.5 2.5 4 */
    sf_simlex_free(&simlex);
    assert_fails(sf_simlex_read(&simlex, write_temporary("bad.txt", "a b\n", 4), &words, &error), SAFER_INPUT,
                 "line 1");
    sf_words_free(&words);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    check_every_allocation(read_without_memory, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_set_aside),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_parallel_and_locale),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_threshold_is_exact),
        cmocka_unit_test(test_pairs_unnormalised),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_counterfit),
        cmocka_unit_test(test_eigen),
        cmocka_unit_test(test_all_but_the_top),
        cmocka_unit_test(test_simlex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
