/* Attacks against brute force: small random lexicons and classifiers, every new text tried. An attack may find less
 * than there is, and must never find what there is not. Whole data sets: test_attack_run.c. */
#define _GNU_SOURCE
#include "test_attack.h"

/* ------------------------------------------------------------- brute force */

/* Weights that voted for each class over all draws. Weights are small whole numbers: doubles are exact. */
static void exact_shares(double shares[CLASSES], const safer_lexicon *l, const any_model *m, const uint32_t *text,
                         size_t length)
{
    uint32_t at[LONGEST] = {0}, drawn[LONGEST];
    memset(shares, 0, CLASSES * sizeof *shares);
    for (;;) {
        char rendered[32];
        double weight = 1;
        for (size_t i = 0; i < length; i++) {
            safer_word w = safer_lexicon_word(l, text[i]);
            drawn[i] = w.support[at[i]];
            weight *= w.weights[at[i]];
        }
        int answer = any_answer(m, rendered, write_text(rendered, drawn, length), NULL);
        if (answer >= 0) shares[answer] += weight;
        size_t i = 0;
        while (i < length && ++at[i] == safer_lexicon_word(l, text[i]).support_count) at[i++] = 0;
        if (i == length) return;
    }
}

/* The classifier's answer, found without the code under test. */
static int answer_to(const safer_lexicon *l, const any_model *m, const uint32_t *text, size_t length, int smoothed)
{
    char bytes[32];
    double shares[CLASSES];
    int best = 0;
    if (!smoothed) return any_answer(m, bytes, write_text(bytes, text, length), NULL);
    exact_shares(shares, l, m, text, length);
    for (int c = 1; c < (int)m->base.classes; c++)
        if (shares[c] > shares[best]) best = c;
    return shares[best] > 0 ? best : SF_NO_LABEL;
}

/* Whether some text within `radius` is answered, and not with y. */
static int can_succeed(const safer_lexicon *l, const any_model *m, const uint32_t *text, size_t length, int y,
                       size_t radius, int smoothed)
{
    uint32_t choice[LONGEST] = {0}, attacked[LONGEST];
    for (;;) {
        size_t changed = 0;
        for (size_t i = 0; i < length; i++) {
            attacked[i] = choice[i] ? safer_lexicon_word(l, text[i]).synonyms[choice[i] - 1] : text[i];
            changed += choice[i] != 0;
        }
        int answer = changed && changed <= radius ? answer_to(l, m, attacked, length, smoothed) : y;
        if (answer >= 0 && answer != y) return 1;
        size_t i = 0;
        while (i < length && ++choice[i] == safer_lexicon_word(l, text[i]).synonym_count + 1) choice[i++] = 0;
        if (i == length) return 0;
    }
}

static uint32_t word_at(const char *text, size_t i)
{
    for (uint32_t w = 0; w < WORDS; w++)
        if (strncmp(text + 3 * i, names[w], 2) == 0) return w;
    fail_msg("not a word in \"%s\"", text);
    return 0;
}

static int is_synonym(const safer_lexicon *l, uint32_t word, uint32_t other)
{
    safer_word w = safer_lexicon_word(l, word);
    for (size_t k = 0; k < w.synonym_count; k++)
        if (w.synonyms[k] == other) return 1;
    return 0;
}

/* A success must be one: synonyms, not too many, and another answer when asked again. */
static void check_success(const safer_attack_result *r, const safer_lexicon *l, const any_model *m,
                          const uint32_t *text, size_t length, size_t radius, int smoothed)
{
    uint32_t attacked[LONGEST];
    size_t changed = 0;
    assert_int_equal(r->text_length, 3 * length - 1);
    for (size_t i = 0; i < length; i++) {
        attacked[i] = word_at(r->text, i);
        if (attacked[i] == text[i]) continue;
        assert_true(is_synonym(l, text[i], attacked[i]));
        assert_int_equal(r->changes[changed].word, i);
        assert_int_equal(r->changes[changed].begin, 3 * i);
        assert_string_equal(r->changes[changed].from, names[text[i]]);
        assert_string_equal(r->changes[changed].to, names[attacked[i]]);
        changed++;
    }
    assert_int_equal(r->changed, changed);
    assert_true(changed >= 1 && changed <= radius);
    int answer = answer_to(l, m, attacked, length, smoothed);
    assert_true(answer >= 0 && answer != r->target);
    assert_int_equal(answer, r->after);
}

/* Every method on random texts, beside all texts in reach. Returns the share of the possible
 * successes that each found. */
static void try_all(double found_share[SAFER_ATTACKS], int smoothed, const sf_model_class *class, int additive,
                    uint32_t seeds)
{
    size_t possible[SAFER_ATTACKS] = {0}, found[SAFER_ATTACKS] = {0}, skipped = 0;
    for (uint32_t seed = 0; seed < seeds; seed++) {
        safer_lexicon *l = make_tiny_lexicon(seed, kinds[seed % KINDS], 0, seed % 7 == 3);
        for (int method = 0; method < EXCHANGES; method++) {
            any_model m;
            safer_attacker *attacker = NULL;
            safer_attack_options o = safer_attack_options_default();
            make_model(&m, seed, 2 + seed % 4, seed % 3 * 200);
            m.base.class = class;
            m.additive = additive;
            m.silent = seed % 5 == 4 ? 4 : 0;
            o.method = (safer_attack_method)method;
            o.smoothed = smoothed;
            o.n = 100000; /* everything is enumerated */
            o.iterations = 10;
            o.radius = seed % 4 == 0 ? SAFER_ALL : 1 + seed % 3;
            for (uint32_t k = 0; k < 12; k++) {
                uint32_t text[LONGEST];
                size_t length = 1 + tiny_below(seed, 1000 + k, LONGEST);
                char bytes[32];
                safer_attack_result r;
                for (uint32_t i = 0; i < length; i++) text[i] = tiny_below(seed, 2000 + LONGEST * k + i, WORDS);
                const int right = answer_to(l, &m, text, length, smoothed),
                          label = k % 3 == 0 ? -1 : (int)(k % m.base.classes);
                assert_ok(safer_attack_text(&r, &attacker, &m.base, l, bytes, write_text(bytes, text, length), label,
                                            &o, &error));
                assert_int_equal(r.before, right);
                if (right < 0 || (label >= 0 && right != label)) {
                    assert_int_equal(r.outcome, SAFER_OUTCOME_SKIPPED);
                    skipped++;
                    continue;
                }
                const int can = can_succeed(l, &m, text, length, right, o.radius, smoothed);
                possible[method] += (size_t)can;
                if (r.outcome != SAFER_OUTCOME_SUCCEEDED) {
                    assert_null(r.text);
                    assert_non_null(r.reason);
                    continue;
                }
                if (!can)
                    fail_msg("seed %u, %s: a success where none is possible", seed, safer_attack_method_name(o.method));
                check_success(&r, l, &m, text, length, o.radius, smoothed);
                found[method]++;
            }
            safer_attacker_free(attacker);
        }
        safer_lexicon_free(l);
    }
    assert_true(skipped > 0);
    for (int method = 0; method < EXCHANGES; method++) {
        assert_true(possible[method] > 20);
        found_share[method] = (double)found[method] / (double)possible[method];
        printf("%s: %zu of %zu possible successes found\n", safer_attack_method_name((safer_attack_method)method),
               found[method], possible[method]);
    }
}

static void test_model_itself(void **state)
{
    (void)state;
    double share[SAFER_ATTACKS];
    try_all(share, 0, &any_class, 0, 300);
    assert_true(share[SAFER_ATTACK_GENETIC] > 0.97); /* a hash has no slope to follow: it looks at nearly all */
    assert_true(share[SAFER_ATTACK_RANDOM] > 0.8);
    try_all(share, 0, &any_class, 1, 300);
    assert_true(share[SAFER_ATTACK_TEXTFOOLER] > 0.95); /* each word for itself: the greedy way is nearly the best */
    assert_true(share[SAFER_ATTACK_GENETIC] > 0.97);
    assert_true(share[SAFER_ATTACK_PWWS] > 0.9);
}

static void test_smoothed_exactly(void **state)
{
    (void)state;
    double share[SAFER_ATTACKS];
    try_all(share, 1, &any_class, 0, 150);
    assert_true(share[SAFER_ATTACK_GENETIC] > 0.95);
    try_all(share, 1, &fast_class, 0, 150);
    assert_true(share[SAFER_ATTACK_GENETIC] > 0.95);
}

/* TextFooler as DESIGN has it, written down once more, without batches or memory. */
static int greedy_reference(uint32_t *text, const safer_lexicon *l, const any_model *m, size_t length, size_t radius)
{
    char bytes[32];
    float start[CLASSES], scores[CLASSES];
    double importance[LONGEST] = {0};
    int used[LONGEST] = {0};
    const int y = any_answer(m, bytes, write_text(bytes, text, length), start);
    for (size_t i = 0; i < length; i++) {
        size_t n = write_text(bytes, text, length);
        memmove(bytes + 3 * i, bytes + 3 * i + 2, n - 3 * i - 2);
        int label = any_answer(m, bytes, n - 2, scores);
        importance[i] = (double)start[y] - (double)scores[y];
        if (label != y) importance[i] += (double)scores[label] - (double)start[label];
    }
    double current = (double)start[y];
    size_t changed = 0;
    for (size_t step = 0; step < length && changed < radius; step++) {
        size_t slot = SIZE_MAX;
        for (size_t i = 0; i < length; i++) {
            if (used[i] || !safer_lexicon_word(l, text[i]).synonym_count) continue;
            if (slot == SIZE_MAX || importance[i] > importance[slot]) slot = i;
        }
        if (slot == SIZE_MAX) return 0;
        used[slot] = 1;
        const safer_word w = safer_lexicon_word(l, text[slot]);
        uint32_t own = text[slot], best = own, flip = SAFER_NO_WORD;
        double flip_score = 2;
        for (size_t k = 0; k < w.synonym_count; k++) {
            text[slot] = w.synonyms[k];
            int label = any_answer(m, bytes, write_text(bytes, text, length), scores);
            if (label != y && (double)scores[y] < flip_score) {
                flip = text[slot];
                flip_score = (double)scores[y];
            }
            if ((double)scores[y] < current) {
                current = (double)scores[y];
                best = text[slot];
            }
        }
        text[slot] = flip != SAFER_NO_WORD ? flip : best;
        if (flip != SAFER_NO_WORD) return 1;
        changed += best != own;
    }
    return 0;
}

static void test_textfooler_is_greedy(void **state)
{
    (void)state;
    size_t same = 0;
    for (uint32_t seed = 0; seed < 400; seed++) {
        safer_lexicon *l = make_tiny_lexicon(seed, "topk:2", 0, 0);
        safer_attacker *attacker = NULL;
        safer_attack_options o = safer_attack_options_default();
        any_model m;
        make_model(&m, seed, 2 + seed % 3, 100);
        m.additive = (int)(seed % 2);
        o.radius = seed % 5 ? SAFER_ALL : 2;
        for (uint32_t k = 0; k < 10; k++) {
            uint32_t text[LONGEST];
            char bytes[32], expected[32];
            safer_attack_result r;
            for (uint32_t i = 0; i < LONGEST; i++) text[i] = tiny_below(seed, 7000 + LONGEST * k + i, WORDS);
            size_t n = write_text(bytes, text, LONGEST);
            assert_ok(safer_attack_text(&r, &attacker, &m.base, l, bytes, n, -1, &o, &error));
            int success = greedy_reference(text, l, &m, LONGEST, o.radius);
            assert_int_equal(r.outcome == SAFER_OUTCOME_SUCCEEDED, success);
            if (!success) continue;
            n = write_text(expected, text, LONGEST);
            assert_int_equal(r.text_length, n);
            assert_memory_equal(r.text, expected, n);
            same++;
        }
        safer_attacker_free(attacker);
        safer_lexicon_free(l);
    }
    assert_true(same > 200);
}

/* What stands between words, unchanged words and case patterns stay. */
static void test_rendering(void **state)
{
    (void)state;
    safer_lexicon *l = make_tiny_lexicon(2, "component", 0, 0);
    size_t checked = 0;
    for (uint32_t salt = 0; salt < 60; salt++) {
        any_model m;
        safer_attacker *attacker = NULL;
        safer_attack_result r;
        safer_attack_options o = safer_attack_options_default();
        const char *text = "\tAa, \xe2\x80\x94 BB! (unknown) cC.\n";
        make_model(&m, salt, 2, 0);
        assert_ok(safer_attack_text(&r, &attacker, &m.base, l, text, strlen(text), -1, &o, &error));
        if (r.outcome == SAFER_OUTCOME_SUCCEEDED) {
            char rebuilt[64];
            size_t n = 0, at = 0;
            for (size_t i = 0; i < r.changed; i++) {
                const safer_change *c = &r.changes[i];
                assert_memory_equal(text + c->begin, c->from, strlen(c->from));
                assert_true(c->to[0] >= 'A' && (c->word != 0 || (c->to[0] <= 'Z' && c->to[1] >= 'a')));
                if (c->word == 1) assert_true(c->to[0] <= 'Z' && c->to[1] <= 'Z');
                n += (size_t)sprintf(rebuilt + n, "%.*s%s", (int)(c->begin - at), text + at, c->to);
                at = c->begin + strlen(c->from);
            }
            strcpy(rebuilt + n, text + at);
            assert_string_equal(r.text, rebuilt);
            checked++;
        }
        safer_attacker_free(attacker);
    }
    assert_true(checked > 5);
    safer_lexicon_free(l);
}

/* Sampled votes: a success that fresh draws bore out is real, up to their level. */
static void test_smoothed_by_samples(void **state)
{
    (void)state;
    size_t succeeded = 0, wrong = 0;
    for (uint32_t seed = 0; seed < 120; seed++) {
        safer_lexicon *l = make_tiny_lexicon(seed, seed % 2 ? "weighted" : "topk:3", 0, 0);
        safer_attacker *attacker = NULL;
        safer_attack_options o = safer_attack_options_default();
        any_model m;
        make_model(&m, seed, 2 + seed % 2, 0);
        m.base.class = seed % 3 ? &fast_class : &any_class;
        o.smoothed = 1;
        o.n = 20; /* fewer than the draws of most texts */
        o.method = (safer_attack_method)(seed % EXCHANGES);
        o.iterations = 5;
        for (uint32_t k = 0; k < 10; k++) {
            uint32_t text[LONGEST], attacked[LONGEST];
            char bytes[32];
            safer_attack_result r;
            for (uint32_t i = 0; i < LONGEST; i++) text[i] = tiny_below(seed, 9000 + LONGEST * k + i, WORDS);
            assert_ok(
                safer_attack_text(&r, &attacker, &m.base, l, bytes, write_text(bytes, text, LONGEST), -1, &o, &error));
            if (r.outcome != SAFER_OUTCOME_SUCCEEDED) continue;
            for (size_t i = 0; i < LONGEST; i++) attacked[i] = word_at(r.text, i);
            succeeded++;
            wrong += answer_to(l, &m, attacked, LONGEST, 1) == r.target;
        }
        safer_attacker_free(attacker);
        safer_lexicon_free(l);
    }
    printf("%zu successes, %zu of them not real\n", succeeded, wrong);
    assert_true(succeeded > 30);
    assert_true(wrong <= 2); /* one in a thousand of 1,200 attacks */
}

/* ------------------------------------------------------------------- limits */

static void test_query_limits(void **state)
{
    (void)state;
    size_t limited = 0;
    for (uint32_t seed = 0; seed < 60; seed++) {
        safer_lexicon *l = make_tiny_lexicon(seed, "weighted", 0, 0);
        for (int method = 0; method < SAFER_ATTACKS; method++)
            for (int smoothed = 0; smoothed < 2; smoothed++)
                for (uint64_t most = smoothed ? 7 : 1; most < 90; most += 1 + most / 4) {
                    any_model m;
                    safer_attacker *attacker = NULL;
                    safer_attack_result r;
                    safer_attack_options o = safer_attack_options_default();
                    const char *text = "aa bb cc dd ee ff";
                    make_model(&m, seed, 2, 0);
                    m.base.class = seed % 2 ? &fast_class : &any_class;
                    o.method = (safer_attack_method)method;
                    o.smoothed = smoothed;
                    o.n = 7;
                    o.max_queries = most;
                    o.iterations = 3;
                    o.batch = 1 + seed % 40;
                    assert_ok(safer_attack_text(&r, &attacker, &m.base, l, text, strlen(text), -1, &o, &error));
                    assert_true(r.queries <= most);
                    assert_int_equal(r.queries + r.checks, atomic_load(&m.asked));
                    if (!smoothed) assert_int_equal(r.checks, 0);
                    if (r.reason && strcmp(r.reason, "the queries are used up") == 0) {
                        limited++;
                        if (!smoothed) assert_int_equal(r.queries, most);
                    }
                    safer_attacker_free(attacker);
                }
        safer_lexicon_free(l);
    }
    assert_true(limited > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_itself),         cmocka_unit_test(test_smoothed_exactly),
        cmocka_unit_test(test_textfooler_is_greedy), cmocka_unit_test(test_rendering),
        cmocka_unit_test(test_smoothed_by_samples),  cmocka_unit_test(test_query_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
