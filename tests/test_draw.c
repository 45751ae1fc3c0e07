/* Slots, tokens, samples and enumerations of texts: all draws of small cases, one by one, with and without tokens that
 * are deleted. */
#include "tiny.h"

#include "draw/enumerate.h"

#include <stdlib.h>

static safer_error error;

/* ----------------------------------------------------------------- sampler */

static void test_sampler(void **state)
{
    (void)state;
    safer_lexicon *l = make_tiny_lexicon(5, "weighted", 0, 0);
    sf_slots slots = {0};
    sf_sampler sampler = {0};
    enum { N = 60000 };
    const char *text = "aa bb cc dd ee ff aa";
    assert_ok(sf_slots_read(&slots, l, text, strlen(text), &error));
    assert_ok(sf_sampler_prepare(&sampler, &slots, l, &error));
    assert_true(slots.slot_count >= 5);
    uint32_t *all = malloc(N * slots.slot_count * sizeof *all), *some = malloc(100 * slots.slot_count * sizeof *some);
    sf_stream stream = sf_stream_of(9, slots.hash, SF_STAGE_CERTIFICATION);
    sf_sampler_draw(all, &sampler, stream, 0, N);
    sf_sampler_draw(some, &sampler, stream, 777, 100); /* any part, in any order, is the same */
    assert_memory_equal(some, all + 777 * slots.slot_count, 100 * slots.slot_count * sizeof *some);
    for (size_t s = 0; s < slots.slot_count; s++) { /* chi-square against the weights */
        const sf_draw_rule *rule = &sampler.rules[s];
        double chi = 0;
        for (uint32_t i = 0; i < rule->count; i++) {
            size_t seen = 0;
            for (size_t d = 0; d < N; d++) seen += all[d * slots.slot_count + s] == i;
            double expected = (double)N * rule->weights[i] / rule->total;
            chi += ((double)seen - expected) * ((double)seen - expected) / expected;
        }
        if (chi > 30) fail_msg("slot %zu: chi-square %.1f", s, chi);
    }
    /* Two slots of one sample are not the same stream. */
    size_t equal = 0;
    for (size_t d = 0; d < N; d++)
        equal += all[d * slots.slot_count] == all[d * slots.slot_count + slots.slot_count - 1];
    assert_true(equal < N * 9 / 10);
    free(all);
    free(some);
    sf_sampler_free(&sampler);
    sf_slots_free(&slots);
    safer_lexicon_free(l);
}

/* A draw rendered from X equals the same draw rendered from X'. */
static void test_rendering(void **state)
{
    (void)state;
    safer_lexicon *l = make_tiny_lexicon(5, "component", 0, 0);
    sf_slots a = {0}, b = {0};
    sf_buffer first = {0}, second = {0};
    uint32_t x = safer_lexicon_find(l, "aa", 2), y = SAFER_NO_WORD;
    for (uint32_t w = 0; w < WORDS && y == SAFER_NO_WORD; w++)
        if (safer_lexicon_word(l, w).synonym_count) {
            x = w;
            y = safer_lexicon_word(l, w).synonyms[0];
        }
    char from[64], to[64];
    snprintf(from, sizeof from, "--%c%s, %s; %c%c!", names[x][0] - 32, names[x] + 1, names[x], names[x][0] - 32,
             names[x][1] - 32);
    snprintf(to, sizeof to, "--%c%s, %s; %c%c!", names[y][0] - 32, names[y] + 1, names[y], names[y][0] - 32,
             names[y][1] - 32);
    assert_ok(sf_slots_read(&a, l, from, strlen(from), &error));
    assert_ok(sf_slots_read(&b, l, to, strlen(to), &error));
    assert_int_equal(a.slot_count, 3);
    assert_int_equal(b.slot_count, 3);
    uint32_t count = (uint32_t)safer_lexicon_word(l, x).support_count;
    for (uint32_t d = 0; d < count * count * count; d++) {
        uint32_t draws[3] = {d % count, d / count % count, d / count / count};
        sf_buffer_clear(&first);
        sf_buffer_clear(&second);
        assert_int_equal(sf_slots_render(&first, &a, l, draws), 0);
        assert_int_equal(sf_slots_render(&second, &b, l, draws), 0);
        assert_string_equal(first.bytes, second.bytes);
    }
    sf_buffer_free(&first);
    sf_buffer_free(&second);
    sf_slots_free(&a);
    sf_slots_free(&b);
    safer_lexicon_free(l);
}

/* Draws by their public name are those of the certificate's own streams. */
typedef struct expectation {
    const safer_lexicon *lexicon;
    sf_slots slots;
    sf_sampler sampler;
    sf_stream stream;
    uint64_t next, end;
} expectation;

static int expect_draw(void *context, uint64_t index, const char *text, size_t length)
{
    expectation *e = context;
    uint32_t draw[8];
    sf_buffer rendered = {0};
    assert_true(index == e->next++ && e->slots.slot_count <= 8);
    sf_sampler_draw(draw, &e->sampler, e->stream, index, 1);
    assert_int_equal(sf_slots_render(&rendered, &e->slots, e->lexicon, draw), 0);
    assert_true(length == rendered.length && memcmp(text, rendered.bytes, length) == 0);
    sf_buffer_free(&rendered);
    return e->next == e->end;
}

static void test_public_draws(void **state)
{
    (void)state;
    static const safer_stage stages[] = {SAFER_STAGE_SELECTION, SAFER_STAGE_CERTIFICATION};
    static const sf_stage streams[] = {SF_STAGE_SELECTION, SF_STAGE_CERTIFICATION};
    safer_lexicon *l = make_tiny_lexicon(5, "weighted", 0, 0);
    const char *text = "aa bb, cc dd! EE";
    const size_t length = strlen(text);
    expectation e = {.lexicon = l};
    assert_ok(sf_slots_read(&e.slots, l, text, length, &error));
    assert_ok(sf_sampler_prepare(&e.sampler, &e.slots, l, &error));
    for (int i = 0; i < 2; i++) {
        e.stream = sf_stream_of(9, e.slots.hash, streams[i]);
        e.next = 5;
        e.end = 0;
        assert_ok(safer_draw(l, text, length, stages[i], 9, 5, 200, expect_draw, &e, &error));
        assert_int_equal(e.next, 205);
        e.next = 0;
        e.end = 3; /* refuses the third */
        assert_fails(safer_draw(l, text, length, stages[i], 9, 0, 200, expect_draw, &e, &error), SAFER_CALLBACK,
                     "reported failure");
        assert_int_equal(e.next, 3);
    }
    assert_fails(safer_draw(l, text, length, (safer_stage)2, 9, 0, 1, expect_draw, &e, &error), SAFER_INVALID, "stage");
    assert_fails(safer_draw(l, "\xff", 1, SAFER_STAGE_SELECTION, 9, 0, 1, expect_draw, &e, &error), SAFER_INPUT,
                 "UTF-8");
    sf_slots_free(&e.slots);
    sf_sampler_free(&e.sampler);
    safer_lexicon_free(l);
}

/* ------------------------------------------------------------- enumeration */

enum { SLOTS = 4, MOST = 4 };

/* A sampler of slots with 1 .. MOST choices each; the weights are those of a table. */
typedef struct made {
    sf_draw_rule rules[SLOTS];
    uint32_t weights[SLOTS][MOST];
    sf_sampler sampler;
} made;

static void make_sampler(made *out, const uint32_t *counts, size_t slots, uint64_t seed)
{
    out->sampler = (sf_sampler){.rules = out->rules, .slots = slots};
    for (size_t s = 0; s < slots; s++) {
        uint32_t total = 0;
        for (uint32_t i = 0; i < counts[s]; i++)
            total += out->weights[s][i] = 1 + tiny_below(seed, (uint32_t)(s * MOST + i), 1000);
        out->rules[s] = (sf_draw_rule){.total = total, .count = counts[s], .weights = out->weights[s]};
    }
}

/* Every number gives another draw, every draw is reached, and its weight is the product; all of
 * them, and the same in parts. */
static void check_enumeration(const made *m, size_t visible)
{
    const sf_sampler *sampler = &m->sampler;
    const size_t slots = sampler->slots;
    uint64_t expected = 1;
    sf_weight sum = 0, total = 1;
    uint32_t draws[256 * SLOTS], part[7 * SLOTS];
    int seen[256] = {0};
    for (size_t s = 0; s < visible; s++) expected *= m->rules[s].count;
    for (size_t s = 0; s < visible; s++) total *= m->rules[s].total;
    assert_int_equal(sf_enumerate_count(sampler, visible, UINT64_MAX), expected);
    assert_int_equal(sf_enumerate_count(sampler, visible, expected), expected);
    if (expected > 1) assert_int_equal(sf_enumerate_count(sampler, visible, expected - 1), 0);
    sf_enumerate_draws(draws, sampler, visible, 0, (size_t)expected);
    for (uint64_t d = 0; d < expected; d++) {
        const uint32_t *draw = draws + d * slots;
        uint64_t number = 0;
        sf_weight weight = 1;
        for (size_t s = visible; s < slots; s++) assert_int_equal(draw[s], 0);
        for (size_t s = visible; s-- > 0;) { /* back to the number, by Horner */
            assert_true(draw[s] < m->rules[s].count);
            number = number * m->rules[s].count + draw[s];
            weight *= m->weights[s][draw[s]];
        }
        assert_int_equal(number, d);
        assert_int_equal(seen[number]++, 0);
        assert_true(sf_enumerate_weight(sampler, visible, draw) == weight);
        sum += weight;
    }
    assert_true(sum == total);
    for (uint64_t first = 0; first < expected; first += 7) {
        const size_t count = expected - first < 7 ? (size_t)(expected - first) : 7;
        sf_enumerate_draws(part, sampler, visible, first, count);
        assert_memory_equal(part, draws + first * slots, count * slots * sizeof *part);
    }
}

static void test_enumeration(void **state)
{
    (void)state;
    made m;
    for (size_t slots = 0; slots <= SLOTS; slots++) {
        uint32_t shapes = 1, counts[SLOTS] = {0};
        for (size_t s = 0; s < slots; s++) shapes *= MOST;
        for (uint32_t shape = 0; shape < shapes; shape++) {
            for (uint32_t s = 0, rest = shape; s < slots; s++, rest /= MOST) counts[s] = 1 + rest % MOST;
            make_sampler(&m, counts, slots, shape);
            for (size_t visible = 0; visible <= slots; visible++) check_enumeration(&m, visible);
        }
    }
}

/* What does not fit is reported: more draws than 64 bits hold, or weights beyond 128. */
static void test_enumeration_overflow(void **state)
{
    (void)state;
    sf_draw_rule rules[160];
    sf_sampler sampler = {.rules = rules, .slots = 160};
    for (size_t s = 0; s < 160; s++) rules[s] = (sf_draw_rule){.total = UINT32_MAX, .count = UINT32_MAX};
    const uint64_t square = UINT64_C(0xffffffff) * 0xffffffff;
    assert_int_equal(sf_enumerate_count(&sampler, 0, 1), 1);
    assert_int_equal(sf_enumerate_count(&sampler, 1, UINT64_MAX), UINT32_MAX);
    assert_int_equal(sf_enumerate_count(&sampler, 2, UINT64_MAX), square);
    assert_int_equal(sf_enumerate_count(&sampler, 2, square - 1), 0);
    assert_int_equal(sf_enumerate_count(&sampler, 3, UINT64_MAX), 0);

    for (size_t s = 0; s < 160; s++) rules[s].count = 1; /* one draw of a large weight */
    assert_int_equal(sf_enumerate_count(&sampler, 4, 1), 1);
    for (size_t s = 5; s <= 160; s++) assert_int_equal(sf_enumerate_count(&sampler, s, 1), 0);

    for (size_t s = 0; s < 160; s++) rules[s].total = 2; /* 2^127 fits, 2^128 does not */
    assert_int_equal(sf_enumerate_count(&sampler, 127, 1), 1);
    assert_int_equal(sf_enumerate_count(&sampler, 128, 1), 0);
    assert_int_equal(sf_enumerate_count(&sampler, 160, 1), 0);
    for (size_t s = 0; s < 128; s++) rules[s].count = s < 63 ? 2 : 1;
    assert_int_equal(sf_enumerate_count(&sampler, 127, UINT64_MAX), UINT64_C(1) << 63);
    rules[63].count = 2; /* 2^64 draws */
    assert_int_equal(sf_enumerate_count(&sampler, 127, UINT64_MAX), 0);
}

/* The enumeration speaks of the draws that are sampled: shares of 200,000 samples are the weights'. */
static void test_enumeration_is_of_the_samples(void **state)
{
    (void)state;
    enum { N = 200000 };
    safer_lexicon *l = make_tiny_lexicon(5, "weighted", 0, 0);
    const char *text = "aa bb cc";
    sf_slots slots = {0};
    sf_sampler sampler = {0};
    uint32_t draw[8];
    assert_ok(sf_slots_read(&slots, l, text, strlen(text), &error));
    assert_ok(sf_sampler_prepare(&sampler, &slots, l, &error));
    const size_t count = (size_t)sf_enumerate_count(&sampler, slots.slot_count, 1000);
    assert_true(count > 4 && slots.slot_count <= 8);
    size_t *seen = calloc(count, sizeof *seen);
    const sf_stream stream = sf_stream_of(2, slots.hash, SF_STAGE_CERTIFICATION);
    for (uint64_t i = 0; i < N; i++) {
        size_t number = 0;
        sf_sampler_draw(draw, &sampler, stream, i, 1);
        for (size_t s = slots.slot_count; s-- > 0;) number = number * sampler.rules[s].count + draw[s];
        assert_true(number < count);
        seen[number]++;
    }
    double total = 1, chi = 0;
    for (size_t s = 0; s < slots.slot_count; s++) total *= sampler.rules[s].total;
    for (size_t d = 0; d < count; d++) {
        sf_enumerate_draws(draw, &sampler, slots.slot_count, d, 1);
        const double expected = N * (double)sf_enumerate_weight(&sampler, slots.slot_count, draw) / total;
        chi += ((double)seen[d] - expected) * ((double)seen[d] - expected) / expected;
    }
    /* Mean count - 1, standard deviation sqrt(2 (count - 1)): six of them. */
    if ((chi - (double)count) * (chi - (double)count) > 72 * (double)count)
        fail_msg("chi-square %.1f of %zu", chi, count);
    free(seen);
    sf_sampler_free(&sampler);
    sf_slots_free(&slots);
    safer_lexicon_free(l);
}

/* ---------------------------------------------------------------- deletion */

static void expect_tokens(const char *text, const char *joined)
{
    sf_slots slots = {0};
    sf_sampler sampler = {0};
    sf_buffer out = {0};
    uint32_t all[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}, none[4] = {0};
    size_t spaces = 0;
    assert_ok(sf_slots_read(&slots, NULL, text, strlen(text), &error));
    assert_int_equal(slots.slot_count, 0);
    assert_int_equal(sf_slots_width(&slots), 0);
    assert_ok(sf_slots_split(&slots, (safer_deletion){.chance = 0.1}, &error));
    for (const char *p = joined; *p; p++) spaces += *p == ' ';
    assert_int_equal(slots.token_count, *joined ? spaces + 1 : 0);
    assert_int_equal(sf_slots_width(&slots), (slots.token_count + 31) / 32);
    if (slots.token_count % 32) all[slots.token_count / 32] &= (1u << slots.token_count % 32) - 1;
    assert_int_equal(sf_slots_render(&out, &slots, NULL, all), 0);
    assert_int_equal(out.length, strlen(joined));
    assert_memory_equal(out.length ? out.bytes : "", joined, out.length);
    sf_buffer_clear(&out);
    assert_int_equal(sf_slots_render(&out, &slots, NULL, none), 0);
    assert_int_equal(out.length, 0);
    assert_ok(sf_slots_read(&slots, NULL, text, strlen(text), &error)); /* and not split any more */
    assert_int_equal(sf_slots_width(&slots), 0);
    sf_buffer_free(&out);
    sf_sampler_free(&sampler);
    sf_slots_free(&slots);
}

static void test_tokens(void **state)
{
    (void)state;
    expect_tokens("", "");
    expect_tokens(" \t\n\xc2\xa0\xe3\x80\x80 ", "");
    expect_tokens("A fine  film, 10/10 I'd say.", "A fine film , 10 / 10 I'd say .");
    expect_tokens("abc123def", "abc 123 def");
    expect_tokens("3.14 -- '80s", "3 . 14 - - ' 80 s");
    expect_tokens("na\xc3\xafve\xe2\x80\x99s \xe2\x80\x9cx\xe2\x80\x9d",
                  "na\xc3\xafve\xe2\x80\x99s \xe2\x80\x9c x \xe2\x80\x9d");
    expect_tokens("\xd9\xa1\xd9\xa2 e\xcc\x81t", "\xd9\xa1\xd9\xa2 e \xcc\x81 t"); /* digits; a combining mark */
    expect_tokens("a\x1c"
                  "b\xe2\x80\x8b"
                  "c",
                  "a \x1c b \xe2\x80\x8b c"); /* neither is white space */
    expect_tokens("a\xff"
                  "b",
                  "a \xff b");
}

/* Number d of the enumeration, as its digits say. */
static uint64_t number_of(const sf_slots *slots, const sf_sampler *sampler, const uint32_t *draw)
{
    uint64_t number = 0;
    for (size_t t = slots->token_count; t-- > 0;) {
        const uint32_t slot = slots->tokens[t].slot, count = slot == SF_NONE ? 1 : sampler->rules[slot].count;
        number *= count + 1;
        if (sf_slots_keeps(slots, draw, t)) number += 1 + (slot == SF_NONE ? 0 : draw[slot]);
    }
    return number;
}

/* Every draw is enumerated once, weights sum to the total, samples have these shares; what is kept is drawn as it is
 * without deletion. */
static void test_deleted_draws(void **state)
{
    (void)state;
    enum { N = 200000 };
    safer_lexicon *l = make_tiny_lexicon(5, "weighted", 0, 0);
    static const char text[] = "aa, bb 7 cc";
    sf_slots slots = {0}, plain = {0};
    sf_sampler sampler = {0}, whole = {0};
    uint32_t draw[16], other[16];
    sf_weight total, sum = 0;
    assert_ok(sf_slots_read(&plain, l, text, strlen(text), &error));
    assert_ok(sf_sampler_prepare(&whole, &plain, l, &error));
    assert_ok(sf_slots_read(&slots, l, text, strlen(text), &error));
    assert_ok(sf_slots_split(&slots, (safer_deletion){.chance = 0.75}, &error));
    assert_ok(sf_sampler_prepare(&sampler, &slots, l, &error));
    assert_int_equal(slots.token_count, 5);
    assert_true(slots.slot_count >= 2 && sampler.width == slots.slot_count + 1 && sampler.width <= 16);
    const size_t count = (size_t)sf_enumerate_total(&total, &sampler, slots.slot_count, 100000);
    assert_true(count > 32);
    assert_int_equal(sf_enumerate_count(&sampler, slots.slot_count, count - 1), 0);
    size_t *seen = calloc(count, sizeof *seen);
    for (size_t d = 0; d < count; d++) {
        sf_enumerate_draws(draw, &sampler, slots.slot_count, d, 1);
        assert_int_equal(number_of(&slots, &sampler, draw), d);
        sum += sf_enumerate_weight(&sampler, slots.slot_count, draw);
    }
    assert_true(sum == total);
    const sf_stream stream = sf_stream_of(2, slots.hash, SF_STAGE_CERTIFICATION);
    for (uint64_t i = 0; i < N; i++) {
        sf_sampler_draw(draw, &sampler, stream, i, 1);
        sf_sampler_draw(other, &whole, stream, i, 1);
        for (size_t t = 0; t < slots.token_count; t++) {
            const uint32_t s = slots.tokens[t].slot;
            if (s != SF_NONE) assert_int_equal(draw[s], sf_slots_keeps(&slots, draw, t) ? other[s] : 0);
        }
        seen[number_of(&slots, &sampler, draw)]++;
    }
    double chi = 0;
    for (size_t d = 0; d < count; d++) {
        sf_enumerate_draws(draw, &sampler, slots.slot_count, d, 1);
        const double expected = N * (double)sf_enumerate_weight(&sampler, slots.slot_count, draw) / (double)total;
        chi += ((double)seen[d] - expected) * ((double)seen[d] - expected) / expected;
    }
    if ((chi - (double)count) * (chi - (double)count) > 72 * (double)count)
        fail_msg("chi-square %.1f of %zu", chi, count);
    /* With a chance that is not a short fraction the weights of four tokens do not fit. */
    assert_ok(sf_slots_split(&slots, (safer_deletion){.chance = 0.9}, &error));
    assert_ok(sf_sampler_prepare(&sampler, &slots, l, &error));
    assert_int_equal(sf_enumerate_count(&sampler, slots.slot_count, UINT64_MAX), 0);
    free(seen);
    sf_sampler_free(&sampler);
    sf_sampler_free(&whole);
    sf_slots_free(&slots);
    sf_slots_free(&plain);
    safer_lexicon_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sampler),
        cmocka_unit_test(test_rendering),
        cmocka_unit_test(test_public_draws),
        cmocka_unit_test(test_enumeration),
        cmocka_unit_test(test_enumeration_overflow),
        cmocka_unit_test(test_enumeration_is_of_the_samples),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_deleted_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
