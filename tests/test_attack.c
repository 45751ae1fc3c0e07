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
                    assert_int_equal(r.queries + r.checks + attacker->own.asked, atomic_load(&m.asked));
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

/* ------------------------------------------------------- in, out and replaced */

/* As write_text, of no words too. */
static size_t write_some(char *bytes, const uint32_t *words, size_t count)
{
    return count ? write_text(bytes, words, count) : 0;
}

/* The words of a text of names, by number. */
static size_t read_names(uint32_t *out, const char *text, size_t length)
{
    size_t count = 0;
    assert_true(length % 3 == 2 || length == 0);
    for (; 3 * count < length; count++) out[count] = word_at(text, count);
    return count;
}

/* The least number of edits of these kinds from a to b, at most 99. */
static size_t distance(const uint32_t *a, size_t n, const uint32_t *b, size_t m, unsigned operations)
{
    size_t least = n == 0 && m == 0 ? 0 : 99, d;
    if (n && m && a[0] == b[0]) least = distance(a + 1, n - 1, b + 1, m - 1, operations);
    if (n && m && (operations & SF_REPLACE) && (d = 1 + distance(a + 1, n - 1, b + 1, m - 1, operations)) < least)
        least = d;
    if (n && (operations & SF_TAKE_OUT) && (d = 1 + distance(a + 1, n - 1, b, m, operations)) < least) least = d;
    if (m && (operations & SF_PUT_IN) && (d = 1 + distance(a, n, b + 1, m - 1, operations)) < least) least = d;
    return least;
}

/* Whether one edit is enough against the model itself. */
static int one_edit_succeeds(const any_model *m, const uint32_t *text, size_t length, int y, unsigned operations)
{
    char bytes[32];
    uint32_t new[LONGEST + 1];
    for (size_t at = 0; at <= length; at++)
        for (uint32_t w = 0; w <= WORDS; w++)
            for (int puts_in = 0; puts_in < 2; puts_in++) {
                const unsigned operation = w == WORDS ? SF_TAKE_OUT : SF_REPLACE;
                size_t n = 0;
                if (puts_in ? !(operations & SF_PUT_IN) || w == WORDS : !(operations & operation) || at == length)
                    continue;
                for (size_t i = 0; i < at; i++) new[n++] = text[i];
                if (w < WORDS) new[n++] = w;
                for (size_t i = puts_in ? at : at + 1; i < length; i++) new[n++] = text[i];
                const int answer = any_answer(m, bytes, write_some(bytes, new, n), NULL);
                if (answer >= 0 && answer != y) return 1;
            }
    return 0;
}

/* shares[c] of all draws that keep each word with the chance 1/2. */
static void halved_shares(double shares[CLASSES], const safer_lexicon *l, const any_model *m, const uint32_t *text,
                          size_t length)
{
    memset(shares, 0, CLASSES * sizeof *shares);
    for (unsigned kept = 0; kept < 1u << length; kept++) {
        uint32_t some[LONGEST];
        double part[CLASSES] = {0}, total = 1;
        size_t n = 0;
        for (size_t i = 0; i < length; i++)
            if (kept >> i & 1) some[n++] = text[i];
        const int empty = any_answer(m, "", 0, NULL);
        if (n)
            exact_shares(part, l, m, some, n);
        else if (empty >= 0)
            part[empty] = 1;
        for (size_t i = 0; i < n; i++) {
            const safer_word w = safer_lexicon_word(l, some[i]);
            double sum = 0;
            for (size_t k = 0; k < w.support_count; k++) sum += w.weights[k];
            total *= sum;
        }
        for (size_t c = 0; c < CLASSES; c++) shares[c] += part[c] / total;
    }
}

/* What was found on a text: so many successes, by one edit, on samples, and of these not real. */
typedef struct rewritten {
    size_t found, single, sampled, wrong;
} rewritten;

/* What comes back is a text within the edits that the method may make, and the answer is another one. */
static void check_rewriting(rewritten *sum, const safer_attack_result *r, const safer_attack_options *o,
                            const safer_lexicon *l, const any_model *m, const uint32_t *text, size_t length)
{
    const unsigned operations = sf_rewrite_operations(o->method);
    uint32_t attacked[3 * LONGEST];
    char bytes[32];
    const size_t count = read_names(attacked, r->text, r->text_length);
    write_text(bytes, text, length);
    assert_in_range(distance(text, length, attacked, count, operations), 1, r->changed);
    assert_in_range(r->changed, 1, o->radius);
    for (size_t i = 0; i < r->changed; i++) {
        assert_int_equal(r->changes[i].from[0] == 0, o->method == SAFER_ATTACK_INSERT);
        assert_int_equal(r->changes[i].to[0] == 0, o->method == SAFER_ATTACK_DELETE);
        if (r->changes[i].from[0]) assert_memory_equal(bytes + r->changes[i].begin, r->changes[i].from, 2);
    }
    sum->found++;
    sum->single += r->changed == 1;
    if (!o->smoothed) {
        assert_int_equal(any_answer(m, r->text, r->text_length, NULL), r->after);
        assert_true(r->after >= 0 && r->after != r->target);
        return;
    }
    double shares[CLASSES], others = 0;
    halved_shares(shares, l, m, attacked, count);
    for (int c = 0; c < CLASSES; c++) others = c == r->target ? others : fmax(others, shares[c]);
    sum->sampled++;
    sum->wrong += shares[r->target] > others + 1e-9; /* of equals the first class wins */
}

/* On the model itself one edit alone is found whenever there is one: these texts are so short that all are tried. */
static void test_rewriting(void **state)
{
    (void)state;
    rewritten sum = {0};
    for (uint32_t seed = 0; seed < 360; seed++) {
        any_model m;
        safer_attacker *attacker = NULL;
        safer_attack_options o = safer_attack_options_default();
        safer_lexicon *l = make_tiny_lexicon(seed, kinds[seed % KINDS], 0, 0);
        make_model(&m, seed, 2 + seed % 2, 0);
        m.base.class = seed % 2 ? &fast_class : &any_class;
        m.additive = (int)(seed / 2 % 2);
        o.method = (safer_attack_method)(SAFER_ATTACK_INSERT + seed % 3);
        o.smoothed = seed % 4 == 3;
        o.deletion.chance = o.smoothed ? 0.5 : 0;
        o.radius = 1 + seed / 3 % (o.smoothed ? 2 : 3);
        o.batch = 1 + seed % 50;
        for (uint32_t k = 0; k < (o.smoothed ? 4 : 10); k++) {
            uint32_t text[LONGEST];
            const size_t length = 1 + tiny_below(seed, 1000 + k, o.smoothed ? 2 : LONGEST);
            char bytes[32];
            safer_attack_result r;
            for (uint32_t i = 0; i < length; i++) text[i] = tiny_below(seed, 2000 + LONGEST * k + i, WORDS);
            const size_t size = write_text(bytes, text, length);
            assert_ok(safer_attack_text(&r, &attacker, &m.base, l, bytes, size, -1, &o, &error));
            if (!o.smoothed && o.radius == 1)
                assert_int_equal(r.outcome == SAFER_OUTCOME_SUCCEEDED,
                                 one_edit_succeeds(&m, text, length, r.before, sf_rewrite_operations(o.method)));
            if (r.outcome == SAFER_OUTCOME_SUCCEEDED) check_rewriting(&sum, &r, &o, l, &m, text, length);
        }
        safer_attacker_free(attacker);
        safer_lexicon_free(l);
    }
    printf("%zu successes, %zu by one edit; %zu on samples, %zu of them not real\n", sum.found, sum.single, sum.sampled,
           sum.wrong);
    assert_true(sum.found > 300 && sum.single > 100 && sum.sampled > 20);
    assert_int_equal(sum.wrong, 0);
}

/* The definition, without a table. */
static int within(const safer_lexicon *l, const sf_reach *r, const uint32_t *a, size_t n, const uint32_t *b, size_t m,
                  size_t edits, size_t synonyms)
{
    const int any = r->kind == SAFER_EDITS_ANY;
    if (n == 0 && m == 0) return 1;
    if (n && m && a[0] == b[0] && within(l, r, a + 1, n - 1, b + 1, m - 1, edits, synonyms)) return 1;
    if (n && m && synonyms && is_synonym(l, a[0], b[0]) &&
        within(l, r, a + 1, n - 1, b + 1, m - 1, edits, synonyms - 1))
        return 1;
    if (!edits) return 0;
    if (n && m && (any || r->kind == SAFER_EDITS_REPLACE) &&
        within(l, r, a + 1, n - 1, b + 1, m - 1, edits - 1, synonyms))
        return 1;
    if (n && (any || r->kind == SAFER_EDITS_DELETE) && within(l, r, a + 1, n - 1, b, m, edits - 1, synonyms)) return 1;
    return m && (any || r->kind == SAFER_EDITS_INSERT) && within(l, r, a, n, b + 1, m - 1, edits - 1, synonyms);
}

static void test_reach(void **state)
{
    (void)state;
    sf_reach reach = {0};
    size_t inside = 0, outside = 0;
    for (uint32_t seed = 0; seed < 4000; seed++) {
        uint32_t a[LONGEST], b[LONGEST];
        char from[32], to[32];
        const size_t n = tiny_below(seed, 1, LONGEST + 1), m = tiny_below(seed, 2, LONGEST + 1);
        safer_lexicon *l = make_tiny_lexicon(seed % 40, "topk:2", 0, seed % 3 == 0);
        for (uint32_t i = 0; i < LONGEST; i++) {
            a[i] = tiny_below(seed, 10 + i, 4);
            b[i] = tiny_below(seed, 20 + i, 3) ? a[i] : tiny_below(seed, 30 + i, 4);
        }
        reach.kind = (safer_edit_kind)(seed % 4);
        reach.edits = seed / 4 % 4;
        reach.radius = seed / 16 % 3 == 2 ? SAFER_ALL : seed / 16 % 3;
        int covered = -1;
        assert_ok(sf_reach_begin(&reach, l, from, write_some(from, a, n), &error));
        assert_ok(sf_reach_covers(&covered, &reach, to, write_some(to, b, m), &error));
        assert_int_equal(covered, within(l, &reach, a, n, b, m, reach.edits, reach.radius));
        inside += covered == 1;
        outside += covered == 0;
        safer_lexicon_free(l);
    }
    printf("%zu texts inside, %zu outside\n", inside, outside);
    assert_true(inside > 500 && outside > 500);
    sf_reach_free(&reach);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_itself),
        cmocka_unit_test(test_smoothed_exactly),
        cmocka_unit_test(test_textfooler_is_greedy),
        cmocka_unit_test(test_rendering),
        cmocka_unit_test(test_smoothed_by_samples),
        cmocka_unit_test(test_query_limits),
        cmocka_unit_test(test_rewriting),
        cmocka_unit_test(test_reach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
