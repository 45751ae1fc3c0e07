/* A rate of deletion by length, against the truth: every text of up to 7 tokens over two letters, every text of up to 8
 * that edits and synonyms can make of it, every draw of both, and the classifier for which it is worst. In this range
 * keep:1 has four bins: 1, 2 and 3, 4 to 7, and 8. That edits may leave their bin is seen to matter: the rule that
 * forgets it is wrong here. */
#include "base/number.h"
#include "stats/edits.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 8, STRINGS = 511 };

static const safer_deletion keep = {.keep = 1};

/* Texts are numbered by length, then as binary numbers. */
typedef struct text {
    int length;
    int letter[LONGEST];
} text;

static int first_of(int length) { return (1 << length) - 1; }

static text text_of(int number)
{
    text t = {0};
    while (number >= first_of(t.length + 1)) t.length++;
    number -= first_of(t.length);
    for (int i = t.length; i-- > 0; number /= 2) t.letter[i] = number % 2;
    return t;
}

/* A kernel, the same seen from both letters: `own` of `own + other` parts are the letter itself. */
typedef struct world {
    int own, other;
    sf_weight drawn[STRINGS][STRINGS], total[STRINGS]; /* [text][draw] */
} world;

static void draw_all(world *w, int number)
{
    const text t = text_of(number);
    const uint64_t deletion = sf_deletion_at(keep, (size_t)t.length);
    const int shift = __builtin_ctzll(deletion);
    const uint64_t out = deletion >> shift, whole = UINT64_C(1) << (32 - shift); /* at most 8 from 2 tokens on */
    sf_weight *weights = w->drawn[number], next[STRINGS];
    memset(weights, 0, sizeof w->drawn[number]);
    weights[0] = w->total[number] = 1;
    for (int i = 0; i < t.length; i++) {
        memset(next, 0, sizeof next);
        for (int length = 0; length <= i; length++)
            for (int s = first_of(length); s < first_of(length + 1); s++) {
                next[s] += weights[s] * out * (unsigned)(w->own + w->other);
                for (int z = 0; z < 2; z++)
                    next[first_of(length + 1) + (s - first_of(length)) * 2 + z] += weights[s] * (whole - out) *
                                                                                   (unsigned)(z == t.letter[i]
                                                                                                  ? w->own
                                                                                                  : w->other);
            }
        memcpy(weights, next, sizeof next);
        w->total[number] *= whole * (unsigned)(w->own + w->other);
    }
}

/* The fewest edits of a kind that make `to` of `from`; letters are synonyms where draws exchange them. */
static int edits_between(const world *w, text from, text to, safer_edit_kind kind)
{
    enum { FAR = 99 };
    const int in = kind == SAFER_EDITS_ANY || kind == SAFER_EDITS_INSERT ? 1 : FAR;
    const int out = kind == SAFER_EDITS_ANY || kind == SAFER_EDITS_DELETE ? 1 : FAR;
    const int other = kind == SAFER_EDITS_ANY || kind == SAFER_EDITS_REPLACE ? 1 : FAR;
    int cost[LONGEST + 1][LONGEST + 1] = {0};
    for (int i = 0; i <= from.length; i++)
        for (int j = 0; j <= to.length; j++) {
            int best = i + j ? FAR : 0;
            if (i && cost[i - 1][j] + out < best) best = cost[i - 1][j] + out;
            if (j && cost[i][j - 1] + in < best) best = cost[i][j - 1] + in;
            if (i && j) {
                const int same = w->other || from.letter[i - 1] == to.letter[j - 1];
                if (cost[i - 1][j - 1] + (same ? 0 : other) < best) best = cost[i - 1][j - 1] + (same ? 0 : other);
            }
            cost[i][j] = best;
        }
    return cost[from.length][to.length];
}

typedef struct ratio {
    sf_weight own, other;
} ratio;

static int by_ratio(const void *left, const void *right)
{
    const ratio *a = left, *b = right; /* other/own, falling; below 2^40 each */
    const sf_weight l = a->other * b->own, r = b->other * a->own;
    return l < r ? 1 : l > r ? -1 : 0;
}

/* The largest D(X) of any classifier for which D(X') is not above 0 (Neyman and Pearson; test_edits.c). */
static long double worst_lead(const world *w, int from, int to)
{
    ratio list[STRINGS];
    size_t count = 0;
    for (int s = 0; s < STRINGS; s++)
        if (w->drawn[from][s] || w->drawn[to][s]) list[count++] = (ratio){w->drawn[from][s], w->drawn[to][s]};
    qsort(list, count, sizeof *list, by_ratio);
    sf_weight left = w->total[to];
    long double lead = 1;
    for (size_t i = 0; i < count && left > 0 && list[i].other; i++) {
        const int all = 2 * list[i].other <= left;
        const long double share = all ? 1 : (long double)left / (2.0L * (long double)list[i].other);
        lead -= 2 * share * (long double)list[i].own / (long double)w->total[from];
        left -= all ? 2 * list[i].other : left;
    }
    return lead;
}

typedef struct found {
    size_t instances, certifiable, wrong[4]; /* wrong: of the rule that forgets the bins, by kind */
} found;

static void try_pair(found *f, const world *w, int from, int to)
{
    const text x = text_of(from), other = text_of(to);
    const size_t L = (size_t)x.length;
    const double p = sf_deletion_share(sf_deletion_at(keep, L)),
                 s = 1 - (w->own - w->other) / (double)(w->own + w->other);
    const double q = w->other ? fmin(1 - pow(p + (1 - p) * s, (double)L) + 1e-15, 1) : 0;
    long double worst = -2;
    for (int kind = 0; kind < 4; kind++)
        for (size_t r = (size_t)edits_between(w, x, other, (safer_edit_kind)kind); r <= 3; r++) {
            const double claimed = sf_edits_q(keep, L, (safer_edit_kind)kind, r, q);
            const double forgetful = sf_edits_q((safer_deletion){.chance = p}, L, (safer_edit_kind)kind, r, q);
            assert_true(claimed >= forgetful);
            f->instances++;
            if (forgetful >= 0.5) continue;
            if (worst < -1) worst = worst_lead(w, from, to);
            f->certifiable += claimed < 0.5;
            if (claimed < 0.5) assert_true(worst <= 2 * (long double)claimed);
            f->wrong[kind] += worst > 2 * (long double)forgetful + 1e-9L;
        }
}

static void test_every_edit(void **state)
{
    (void)state;
    static world w;
    found f = {0};
    for (int synonyms = 0; synonyms < 2; synonyms++) {
        w.own = synonyms ? 3 : 1;
        w.other = synonyms ? 2 : 0;
        for (int number = 0; number < STRINGS; number++) draw_all(&w, number);
        for (int from = 0; from < first_of(LONGEST); from += synonyms ? 5 : 1)
            for (int to = 0; to < STRINGS; to++) try_pair(&f, &w, from, to);
    }
    print_message("%zu instances, %zu below 1/2; wrong without bins: %zu %zu %zu %zu\n", f.instances, f.certifiable,
                  f.wrong[0], f.wrong[1], f.wrong[2], f.wrong[3]);
    assert_true(f.instances > 200000 && f.certifiable > 10000);
    assert_int_equal(f.wrong[SAFER_EDITS_REPLACE], 0);
    assert_true(f.wrong[SAFER_EDITS_ANY] > 0 && f.wrong[SAFER_EDITS_INSERT] > 0 && f.wrong[SAFER_EDITS_DELETE] > 0);
}

static void test_rule(void **state)
{
    (void)state;
    const safer_deletion d = {.keep = 25};
    assert_int_equal(sf_deletion_at(d, 0), 1);
    assert_int_equal(sf_deletion_at(d, 31), 1);
    for (size_t k = 5; k < 31; k++) /* exact at both ends of every bin */
        for (size_t i = 0; i < 2; i++)
            assert_true(sf_deletion_share(sf_deletion_at(d, i ? ((size_t)2 << k) - 1 : (size_t)1 << k)) ==
                        1 - 25 / (double)((size_t)1 << k));
    assert_int_equal(sf_deletion_room(d, SAFER_EDITS_ANY, 256), 0);
    assert_int_equal(sf_deletion_room(d, SAFER_EDITS_ANY, 259), 3);
    assert_int_equal(sf_deletion_room(d, SAFER_EDITS_ANY, 510), 1);
    assert_int_equal(sf_deletion_room(d, SAFER_EDITS_INSERT, 256), 255);
    assert_int_equal(sf_deletion_room(d, SAFER_EDITS_INSERT, 511), 0);
    assert_int_equal(sf_deletion_room(d, SAFER_EDITS_DELETE, 256), 0);
    assert_int_equal(sf_deletion_room(d, SAFER_EDITS_DELETE, 300), 44);
    assert_int_equal(sf_deletion_room(d, SAFER_EDITS_INSERT, 0), 0);
    assert_true(sf_deletion_room(d, SAFER_EDITS_DELETE, 0) == SIZE_MAX); /* there is nothing to take out */
    assert_true(sf_deletion_room(d, SAFER_EDITS_REPLACE, 256) == SIZE_MAX);
    assert_true(sf_deletion_room((safer_deletion){.chance = 0.5}, SAFER_EDITS_ANY, 256) == SIZE_MAX);
}

static void test_names(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",         "keep:",    "keep:0", "keep:1000001", "keep:-1",  "keep:2.5",
        "keep:25x", "keep: 25", "Keep:2", "0.5 ",         "1",        "-0.1",
        "nan",      "inf",      "0.5x",   "keep",         "keep:1e3", "keep:99999999999999999999"};
    safer_deletion d = {0};
    safer_error e;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(safer_deletion_parse(&d, wrong[i], &e), SAFER_INVALID);
    assert_int_equal(safer_deletion_parse(&d, "keep:1000000", &e), SAFER_OK);
    assert_true(d.keep == 1000000 && d.chance == 0);
    assert_int_equal(safer_deletion_parse(&d, "0.75", &e), SAFER_OK);
    assert_true(d.keep == 0 && d.chance == 0.75);
    assert_int_equal(sf_deletion_check((safer_deletion){.chance = 0.5, .keep = 3}, &e), SAFER_INVALID);
    assert_int_equal(sf_deletion_check((safer_deletion){.keep = SAFER_KEEP + 1}, &e), SAFER_INVALID);
    static const char *const values[] = {"\"keep:025\"", "\"0.5\"", "0.3", "0.0", "1.0", "1", "\"keep:0\"", "null"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        json_t *value = json_loads(values[i], JSON_DECODE_ANY, NULL);
        assert_non_null(value);
        assert_int_equal(sf_deletion_read(&d, value), -1);
        json_decref(value);
    }
    for (size_t i = 0; i < 2; i++) {
        const safer_deletion one = {.chance = i ? 0 : 0.625, .keep = i ? 25 : 0};
        json_t *value = sf_deletion_json(one);
        assert_int_equal(sf_deletion_read(&d, value), 0);
        assert_true(d.chance == one.chance && d.keep == one.keep);
        json_decref(value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_edit), cmocka_unit_test(test_rule),
                                       cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
