/* What edits cost, against the truth: every text over a small alphabet, every text that edits and synonyms can make of
 * it, every draw of both, and the classifier for which it is worst. */
#include "stats/edits.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- the world */

enum { LETTERS = 3, LONGEST = 4, STRINGS = 1 + 3 + 9 + 27 + 81 };

static safer_deletion chance_of(uint32_t deletion) { return (safer_deletion){.chance = sf_deletion_share(deletion)}; }

/* Texts are numbered by length, then as numbers of base 3. */
typedef struct text {
    int length;
    int letter[LONGEST];
} text;

static const int first_of[LONGEST + 2] = {0, 1, 4, 13, 40, 121};

static text text_of(int number)
{
    text t = {0};
    while (number >= first_of[t.length + 1]) t.length++;
    number -= first_of[t.length];
    for (int i = t.length; i-- > 0; number /= LETTERS) t.letter[i] = number % LETTERS;
    return t;
}

/* A kernel of weights, and who is whose synonym. */
typedef struct world {
    int weight[LETTERS][LETTERS], total[LETTERS];
    int synonym[LETTERS][LETTERS]; /* [x][x']: x' may stand for x */
    uint32_t deletion;             /* of 2^32, a multiple of 2^29 */
} world;

/* The weight of every string among the draws of a text; they sum to the product of 8 * total. */
static int64_t draw_all(int64_t weights[STRINGS], const world *w, text t)
{
    int64_t total = 1;
    const int eighths = (int)(w->deletion >> 29);
    memset(weights, 0, STRINGS * sizeof *weights);
    weights[0] = 1;
    for (int i = 0; i < t.length; i++) {
        int64_t next[STRINGS] = {0};
        const int x = t.letter[i];
        for (int length = 0; length <= i; length++)
            for (int s = first_of[length]; s < first_of[length + 1]; s++) {
                next[s] += weights[s] * eighths * w->total[x];
                for (int z = 0; z < LETTERS; z++)
                    next[first_of[length + 1] + (s - first_of[length]) * LETTERS + z] += weights[s] * (8 - eighths) *
                                                                                         w->weight[x][z];
            }
        memcpy(weights, next, sizeof next);
        total *= 8 * w->total[x];
    }
    return total;
}

/* The fewest edits of a kind that make `to` of `from`, where a synonym costs nothing; -1: none do. */
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
                const int same = w->synonym[from.letter[i - 1]][to.letter[j - 1]];
                const int exchanged = cost[i - 1][j - 1] + (same ? 0 : other);
                if (exchanged < best) best = exchanged;
            }
            cost[i][j] = best;
        }
    return cost[from.length][to.length] < FAR ? cost[from.length][to.length] : -1;
}

/* q' of the text, as exactly as it matters: 1 - the product of p + (1-p) s. */
static long double synonyms_q(const world *w, text t)
{
    long double kept = 1, p = (long double)w->deletion * 0x1p-32L;
    for (int i = 0; i < t.length; i++) {
        long double least = 1;
        for (int other = 0; other < LETTERS; other++) {
            if (!w->synonym[t.letter[i]][other]) continue;
            long double shared = 0;
            for (int z = 0; z < LETTERS; z++)
                shared += fminl((long double)w->weight[t.letter[i]][z] / w->total[t.letter[i]],
                                (long double)w->weight[other][z] / w->total[other]);
            least = fminl(least, shared);
        }
        kept *= p + (1 - p) * least;
    }
    return 1 - kept;
}

/* -------------------------------------------------------------- the worst case */

typedef struct ratio {
    int64_t own, other;
} ratio;

static int by_ratio(const void *left, const void *right)
{
    const ratio *a = left, *b = right; /* a/b: other/own, falling */
    const int64_t l = a->other * b->own, r = b->other * a->own;
    return l < r ? 1 : l > r ? -1 : 0;
}

/* The largest D(X) of any classifier, even one that flips coins, for which D(X') is not above 0: all draws answer y,
 * then those turn to c that X' has and X has not, until enough have (Neyman and Pearson). */
static long double worst_lead(const int64_t own[STRINGS], int64_t own_total, const int64_t other[STRINGS],
                              int64_t other_total)
{
    ratio list[STRINGS];
    int count = 0;
    for (int s = 0; s < STRINGS; s++)
        if (own[s] || other[s]) list[count++] = (ratio){own[s], other[s]};
    qsort(list, (size_t)count, sizeof *list, by_ratio);
    int64_t left = other_total; /* D(X') times its total */
    long double lead = 1;
    for (int i = 0; i < count && left > 0; i++) {
        if (!list[i].other) break;
        const long double share = 2 * list[i].other <= left ? 1
                                                            : (long double)left / (2.0L * (long double)list[i].other);
        lead -= 2 * share * (long double)list[i].own / (long double)own_total;
        left -= 2 * list[i].other < left ? 2 * list[i].other : left;
    }
    return lead;
}

typedef struct found {
    size_t instances, certifiable, attained[4]; /* by kind */
    long double closest[4]; /* how near the worst case comes to the bound, where that is below 1/2 */
} found;

static void try_text(found *f, const world *w, int number, int longest)
{
    int64_t own[STRINGS], other[STRINGS];
    const text from = text_of(number);
    const int64_t own_total = draw_all(own, w, from);
    const double q = (double)synonyms_q(w, from) + 1e-15;
    for (int to = 0; to < first_of[longest + 1]; to++) {
        const text target = text_of(to);
        long double worst = -2;
        for (int kind = 0; kind < 4; kind++) {
            const int edits = edits_between(w, from, target, (safer_edit_kind)kind);
            if (edits < 0) continue;
            if (worst < -1) {
                const int64_t other_total = draw_all(other, w, target);
                worst = worst_lead(own, own_total, other, other_total);
            }
            for (size_t r = (size_t)edits; r <= 4; r++) { /* at most r edits */
                const double claimed = sf_edits_q(chance_of(w->deletion), 4, (safer_edit_kind)kind, r, q < 1 ? q : 1);
                f->instances++;
                if (claimed >= 0.5) continue;
                f->certifiable++;
                assert_true(worst <= 2 * (long double)claimed);
                const long double gap = 2 * (long double)claimed - worst;
                if (r == 0) continue;
                if (gap < f->closest[kind]) f->closest[kind] = gap;
                f->attained[kind] += gap < 1e-13L;
            }
        }
    }
}

/* Letters without synonyms, with some, and one-way ones; each kernel in lowest terms. */
static const world worlds[] = {
    {.weight = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, .synonym = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
    {.weight = {{2, 1, 0}, {1, 2, 0}, {0, 0, 1}}, .synonym = {{1, 1, 0}, {1, 1, 0}, {0, 0, 1}}},
    {.weight = {{1, 1, 0}, {1, 1, 0}, {0, 0, 1}}, .synonym = {{1, 1, 0}, {1, 1, 0}, {0, 0, 1}}}, /* q' = 0 */
    {.weight = {{1, 0, 0}, {1, 2, 0}, {0, 1, 3}}, .synonym = {{1, 1, 0}, {0, 1, 0}, {0, 1, 1}}},
};

static void test_every_edit(void **state)
{
    (void)state;
    found f = {.closest = {9, 9, 9, 9}};
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++)
        for (uint32_t eighths = 4; eighths < 8; eighths++) {
            world w = worlds[i];
            w.deletion = eighths << 29;
            for (int x = 0; x < LETTERS; x++) w.total[x] = w.weight[x][0] + w.weight[x][1] + w.weight[x][2];
            for (int number = 0; number < first_of[4]; number++) try_text(&f, &w, number, LONGEST);
        }
    assert_true(f.instances > 200000);
    assert_true(f.certifiable > 50000);
    /* No better bound is possible: some pairs of texts attain it. */
    for (int kind = 0; kind < 4; kind++) assert_true(f.attained[kind] > 0);
    print_message("%zu instances, %zu below 1/2; attained %zu %zu %zu %zu\n", f.instances, f.certifiable, f.attained[0],
                  f.attained[1], f.attained[2], f.attained[3]);
}

/* ---------------------------------------------------------------- the numbers */

/* The formula itself, in long double. */
static long double formula(uint32_t deletion, safer_edit_kind kind, size_t edits, long double q)
{
    const long double power = powl((long double)deletion * 0x1p-32L, (long double)edits);
    if (edits == 0) return q;
    if (kind == SAFER_EDITS_DELETE) return q >= 0.5L ? q : 0.5L - power * (0.5L - q);
    if (kind == SAFER_EDITS_INSERT) return fminl(1, 0.5L / power - 0.5L + q);
    return 1 - power * (1 - q);
}

static void test_rounding(void **state)
{
    (void)state;
    static const double shares[] = {1e-12, 0.1, 1. / 3, 0.5, 0.7, 0.9, 0.95, 0.999, 0.9999999, 1 - 1e-12};
    static const double qs[] = {0, 1e-300, 1e-17, 0.1, 1. / 3, 0.4999999999999999, 0.5, 0.7, 1};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        for (int kind = 0; kind < 4; kind++)
            for (size_t j = 0; j < sizeof qs / sizeof *qs; j++) {
                const uint32_t deletion = sf_deletion_of(shares[i]);
                double last = 0;
                for (size_t edits = 0; edits <= SAFER_EDITS; edits++) {
                    const double own = sf_edits_q(chance_of(deletion), edits, (safer_edit_kind)kind, edits, qs[j]);
                    const long double truth = formula(deletion, (safer_edit_kind)kind, edits, (long double)qs[j]);
                    assert_true((long double)own >= truth - 1e-18L && (long double)own <= truth + 1e-13L);
                    assert_true(own >= last && own <= 1);
                    last = own;
                }
            }
}

static void test_deletion(void **state)
{
    (void)state;
    assert_int_equal(sf_deletion_of(0.5), 1u << 31);
    assert_int_equal(sf_deletion_of(1e-300), 1);
    assert_int_equal(sf_deletion_of(1 - 1e-16), UINT32_MAX);
    assert_int_equal(sf_deletion_of(sf_deletion_share(123456789)), 123456789);
    assert_true(sf_deletion_share(sf_deletion_of(0.9)) == 3865470566. / 4294967296.);
    assert_true(sf_deletion_overlap(1u << 31, 0.5) <= 0.75 && sf_deletion_overlap(1u << 31, 0.5) > 0.75 - 1e-15);
    assert_true(sf_deletion_overlap(12345, 1) == 1);
    for (uint32_t deletion = 1; deletion < UINT32_MAX - 99999999; deletion += 99999999)
        for (double s = 0; s < 1; s += 1. / 7) {
            const long double p = deletion * 0x1p-32L, truth = p + (1 - p) * (long double)s;
            const double own = sf_deletion_overlap(deletion, s);
            assert_true((long double)own <= truth && (long double)own >= truth - 1e-15L);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_edit), cmocka_unit_test(test_rounding),
                                       cmocka_unit_test(test_deletion)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
