/* Attacks against brute force: small random lexicons and classifiers, every new text tried.
 * Then the run: threads, batches, limits, resume; and the cross-check, which must find no
 * violation of sound certificates, and those of a lexicon that lies about its overlaps. */
#define _GNU_SOURCE
#include "support.h"

#include "attack/attack.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/rng.h"
#include "certify/record.h"
#include "lexicon/overlap.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static safer_error error;

static uint32_t below(uint64_t sample, uint32_t slot, uint32_t bound)
{
    return sf_draw_below(sf_stream_of(29, 0, SF_STAGE_DATA), sample, slot, bound);
}

/* ------------------------------------------- a model that is any function */

enum { WORDS = 6, LONGEST = 4, CLASSES = 5 };
static const char *const names[WORDS] = {"aa", "bb", "cc", "dd", "ee", "ff"};

/* Scores are a hash of the text, or a sum of what each word says. */
typedef struct any_model {
    safer_model base;
    uint64_t salt;
    uint32_t bias;  /* of 1024: class 0 gets this much more */
    int additive;
    int silent;     /* of 16 texts, so many get no answer */
    atomic_ullong asked; /* texts */
} any_model;

static float word_score(const any_model *m, const char *bytes, size_t length, uint64_t c)
{
    return (float)(sf_hash(bytes, length, m->salt * 31 + c) % 1024) / 1024.0f;
}

static int any_answer(const any_model *m, const char *bytes, size_t length, float *scores)
{
    float all[CLASSES], sum = 0;
    int best = 0;
    for (size_t c = 0; c < m->base.classes; c++) {
        all[c] = c == 0 ? (float)m->bias / 1024.0f : 0;
        if (!m->additive) all[c] += word_score(m, bytes, length, c);
        for (size_t i = 0; m->additive && i + 2 <= length; i += 3) all[c] += word_score(m, bytes + i, 2, c);
        sum += all[c];
        if (all[c] > all[best]) best = (int)c;
    }
    for (size_t c = 0; scores && c < m->base.classes; c++) scores[c] = all[c] / sum;
    return m->silent && (int)(sf_hash(bytes, length, m->salt + 99) % 16) < m->silent ? SF_NO_LABEL : best;
}

static safer_status any_classify(const safer_model *model, const sf_span *texts, size_t count, int *labels, float *scores, void *scratch,
                                 safer_error *e)
{
    any_model *m = (any_model *)(uintptr_t)model;
    (void)scratch, (void)e;
    atomic_fetch_add(&m->asked, count);
    for (size_t i = 0; i < count; i++)
        labels[i] = any_answer(m, texts[i].bytes, texts[i].length, scores ? scores + i * model->classes : NULL);
    return SAFER_OK;
}

/* The same with a fast path, which renders by the lexicon that it was prepared with. */
typedef struct fast {
    const sf_slots *slots;
    const safer_lexicon *lexicon;
} fast;

static safer_status fast_prepare(const safer_model *model, const safer_lexicon *lexicon, const sf_slots *slots, void **out, safer_error *e)
{
    (void)model;
    fast *f = sf_alloc(1, sizeof *f);
    if (!f) return sf_fail_memory(e);
    *f = (fast){slots, lexicon};
    *out = f;
    return SAFER_OK;
}

static safer_status fast_sample(const safer_model *model, const void *prepared, const uint32_t *draws, size_t count, int *labels, void *scratch,
                                safer_error *e)
{
    const fast *f = prepared;
    any_model *m = (any_model *)(uintptr_t)model;
    (void)scratch;
    atomic_fetch_add(&m->asked, count);
    for (size_t i = 0; i < count; i++) {
        sf_buffer text = {0};
        if (sf_slots_render(&text, f->slots, f->lexicon, draws + i * f->slots->slot_count)) {
            sf_buffer_free(&text);
            return sf_fail_memory(e);
        }
        labels[i] = any_answer(m, text.bytes ? text.bytes : "", text.length, NULL);
        sf_buffer_free(&text);
    }
    return SAFER_OK;
}

static const sf_model_class any_class = {.arch = "any", .classify = any_classify};
static const sf_model_class fast_class = {.arch = "any", .classify = any_classify, .prepare = fast_prepare, .sample = fast_sample, .release = free};

static char label_names[CLASSES][2] = {"0", "1", "2", "3", "4"};
static char *label_list[CLASSES] = {label_names[0], label_names[1], label_names[2], label_names[3], label_names[4]};

static void make_model(any_model *m, uint64_t salt, size_t classes, uint32_t bias)
{
    *m = (any_model){.base = {.class = &any_class, .classes = classes, .labels = label_list, .hash = salt}, .salt = salt, .bias = bias};
}

/* --------------------------------------------------- small random lexicons */

static const char *const kinds[] = {"topk:1", "topk:2", "topk:3", "component", "representative", "weighted"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void weighted_kernel(sf_kernel *kernel, uint32_t seed)
{
    assert_ok(sf_kernel_start(kernel, WORDS, &error));
    for (uint32_t x = 0; x < WORDS; x++) {
        uint32_t ids[WORDS], weights[WORDS], row;
        size_t n = 0;
        for (uint32_t z = 0; z < WORDS; z++)
            if (z == x || below(seed, 200 + x * WORDS + z, 2)) {
                ids[n] = z;
                weights[n++] = 1 + below(seed, 300 + x * WORDS + z, 4);
            }
        assert_ok(sf_kernel_add(kernel, ids, weights, n, &row, &error));
        kernel->row_of[x] = row;
    }
}

/* Random synonyms and a random kernel. `lying`: every overlap is said to be 1. */
static safer_lexicon *make_lexicon(uint32_t seed, const char *kind, int lying, int directed)
{
    safer_lexicon *lexicon = NULL;
    sf_words words = {0};
    sf_pair edges[WORDS * WORDS];
    size_t count = 0;
    uint32_t id, worst[WORDS];
    uint64_t counts[WORDS];
    double overlap[WORDS];
    sf_graph graph;
    sf_kernel kernel = {0};
    sf_nearest nearest = {0};
    for (int i = 0; i < WORDS; i++) assert_ok(sf_words_add(&words, names[i], 2, &id, &error));
    for (uint32_t a = 0; a < WORDS; a++)
        for (uint32_t b = a + 1; b < WORDS; b++)
            if (below(seed, a * WORDS + b, 5) < 2) edges[count++] = (sf_pair){a, b, 0};
    assert_ok(sf_graph_build(&graph, WORDS, edges, count, directed ? SF_DIRECTED : SF_SYMMETRIC, 0, NULL, &error));
    for (uint32_t i = 0; i < WORDS; i++) counts[i] = below(seed, 100 + i, 5);
    if (strcmp(kind, "weighted") == 0) {
        weighted_kernel(&kernel, seed);
    } else {
        sf_kernel_spec spec;
        assert_ok(sf_kernel_spec_parse(&spec, kind, &error));
        if (spec.kind == SF_TOPK) assert_ok(sf_nearest_build(&nearest, &graph, NULL, 0, spec.k, spec.k, 1, NULL, &error));
        assert_ok(sf_kernel_build(&kernel, &graph, counts, &nearest, spec, &error));
    }
    sf_kernel_view view = sf_kernel_as_view(&kernel);
    sf_overlap_all(overlap, worst, &view, &graph, 1);
    for (int i = 0; lying && i < WORDS; i++) overlap[i] = 1;
    sf_lexicon_parts parts = {.words = &words, .counts = counts, .graph = &graph, .kernel = &kernel, .overlap = overlap, .worst = worst,
                              .kernel_name = kind, .provenance = "{}", .directed = directed};
    assert_ok(sf_lexicon_assemble(&lexicon, &parts, &error));
    sf_words_free(&words);
    sf_graph_free(&graph);
    sf_kernel_free(&kernel);
    sf_nearest_free(&nearest);
    return lexicon;
}

/* ------------------------------------------------------------- brute force */

static size_t write_text(char *out, const uint32_t *text, size_t length)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) n += (size_t)sprintf(out + n, "%s%s", i ? " " : "", names[text[i]]);
    return n;
}

/* Weights that voted for each class over all draws. Weights are small whole numbers: doubles are exact. */
static void exact_shares(double shares[CLASSES], const safer_lexicon *l, const any_model *m, const uint32_t *text, size_t length)
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
static int can_succeed(const safer_lexicon *l, const any_model *m, const uint32_t *text, size_t length, int y, size_t radius, int smoothed)
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
static void check_success(const safer_attack_result *r, const safer_lexicon *l, const any_model *m, const uint32_t *text, size_t length,
                          size_t radius, int smoothed)
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
static void try_all(double found_share[SAFER_ATTACKS], int smoothed, const sf_model_class *class, int additive, uint32_t seeds)
{
    size_t possible[SAFER_ATTACKS] = {0}, found[SAFER_ATTACKS] = {0}, skipped = 0;
    for (uint32_t seed = 0; seed < seeds; seed++) {
        safer_lexicon *l = make_lexicon(seed, kinds[seed % KINDS], 0, seed % 7 == 3);
        for (int method = 0; method < SAFER_ATTACKS; method++) {
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
                size_t length = 1 + below(seed, 1000 + k, LONGEST);
                char bytes[32];
                safer_attack_result r;
                for (uint32_t i = 0; i < length; i++) text[i] = below(seed, 2000 + LONGEST * k + i, WORDS);
                const int right = answer_to(l, &m, text, length, smoothed), label = k % 3 == 0 ? -1 : (int)(k % m.base.classes);
                assert_ok(safer_attack_text(&r, &attacker, &m.base, l, bytes, write_text(bytes, text, length), label, &o, &error));
                assert_int_equal(r.before, right);
                if (right < 0 || (label >= 0 && right != label)) {
                    assert_int_equal(r.outcome, SAFER_ATTACK_SKIPPED);
                    skipped++;
                    continue;
                }
                const int can = can_succeed(l, &m, text, length, right, o.radius, smoothed);
                possible[method] += (size_t)can;
                if (r.outcome != SAFER_ATTACK_SUCCEEDED) {
                    assert_null(r.text);
                    assert_non_null(r.reason);
                    continue;
                }
                if (!can) fail_msg("seed %u, %s: a success where none is possible", seed, safer_attack_name(o.method));
                check_success(&r, l, &m, text, length, o.radius, smoothed);
                found[method]++;
            }
            safer_attacker_free(attacker);
        }
        safer_lexicon_free(l);
    }
    assert_true(skipped > 0);
    for (int method = 0; method < SAFER_ATTACKS; method++) {
        assert_true(possible[method] > 20);
        found_share[method] = (double)found[method] / (double)possible[method];
        printf("%s: %zu of %zu possible successes found\n", safer_attack_name((safer_attack_method)method), found[method], possible[method]);
    }
}

static void test_model_itself(void **state)
{
    (void)state;
    double share[SAFER_ATTACKS];
    try_all(share, 0, &any_class, 0, 300);
    assert_true(share[SAFER_GENETIC] > 0.97); /* a hash has no slope to follow: it looks at nearly all */
    assert_true(share[SAFER_RANDOM] > 0.8);
    try_all(share, 0, &any_class, 1, 300);
    assert_true(share[SAFER_TEXTFOOLER] > 0.95); /* each word for itself: the greedy way is nearly the best */
    assert_true(share[SAFER_GENETIC] > 0.97);
    assert_true(share[SAFER_PWWS] > 0.9);
}

static void test_smoothed_exactly(void **state)
{
    (void)state;
    double share[SAFER_ATTACKS];
    try_all(share, 1, &any_class, 0, 150);
    assert_true(share[SAFER_GENETIC] > 0.95);
    try_all(share, 1, &fast_class, 0, 150);
    assert_true(share[SAFER_GENETIC] > 0.95);
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
        safer_lexicon *l = make_lexicon(seed, "topk:2", 0, 0);
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
            for (uint32_t i = 0; i < LONGEST; i++) text[i] = below(seed, 7000 + LONGEST * k + i, WORDS);
            size_t n = write_text(bytes, text, LONGEST);
            assert_ok(safer_attack_text(&r, &attacker, &m.base, l, bytes, n, -1, &o, &error));
            int success = greedy_reference(text, l, &m, LONGEST, o.radius);
            assert_int_equal(r.outcome == SAFER_ATTACK_SUCCEEDED, success);
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
    safer_lexicon *l = make_lexicon(2, "component", 0, 0);
    size_t checked = 0;
    for (uint32_t salt = 0; salt < 60; salt++) {
        any_model m;
        safer_attacker *attacker = NULL;
        safer_attack_result r;
        safer_attack_options o = safer_attack_options_default();
        const char *text = "\tAa, \xe2\x80\x94 BB! (unknown) cC.\n";
        make_model(&m, salt, 2, 0);
        assert_ok(safer_attack_text(&r, &attacker, &m.base, l, text, strlen(text), -1, &o, &error));
        if (r.outcome == SAFER_ATTACK_SUCCEEDED) {
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
        safer_lexicon *l = make_lexicon(seed, seed % 2 ? "weighted" : "topk:3", 0, 0);
        safer_attacker *attacker = NULL;
        safer_attack_options o = safer_attack_options_default();
        any_model m;
        make_model(&m, seed, 2 + seed % 2, 0);
        m.base.class = seed % 3 ? &fast_class : &any_class;
        o.smoothed = 1;
        o.n = 20; /* fewer than the draws of most texts */
        o.method = (safer_attack_method)(seed % SAFER_ATTACKS);
        o.iterations = 5;
        for (uint32_t k = 0; k < 10; k++) {
            uint32_t text[LONGEST], attacked[LONGEST];
            char bytes[32];
            safer_attack_result r;
            for (uint32_t i = 0; i < LONGEST; i++) text[i] = below(seed, 9000 + LONGEST * k + i, WORDS);
            assert_ok(safer_attack_text(&r, &attacker, &m.base, l, bytes, write_text(bytes, text, LONGEST), -1, &o, &error));
            if (r.outcome != SAFER_ATTACK_SUCCEEDED) continue;
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
        safer_lexicon *l = make_lexicon(seed, "weighted", 0, 0);
        for (int method = 0; method < SAFER_ATTACKS; method++)
            for (int smoothed = 0; smoothed < 2; smoothed++)
                for (uint64_t most = 1; most < 90; most += 1 + most / 4) {
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

/* ---------------------------------------------------------------------- run */

static safer_data *make_data(uint32_t count)
{
    char *text = malloc(200 * count);
    size_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        n += (size_t)sprintf(text + n, "id%u\t%u\t", i, below(i, 1, 2));
        size_t words = 1 + below(i, 2, 9);
        for (uint32_t k = 0; k < words; k++) n += (size_t)sprintf(text + n, "%s ", i % 50 == 7 ? "zz" : names[below(i, 10 + k, WORDS)]);
        text[n++] = '\n';
    }
    safer_data *data = NULL;
    assert_ok(safer_data_load(&data, write_temporary("run.tsv", text, n), NULL, &error));
    free(text);
    return data;
}

/* The records of a run without their times. */
static char *records_of(const char *path)
{
    sf_file file = {0};
    assert_ok(sf_file_map(&file, path, &error));
    char *text = malloc(file.length + 1), *out = text;
    for (size_t i = 0; i < file.length; i++) {
        if (strncmp(file.bytes + i, "\"seconds\":", 10) == 0)
            while (file.bytes[i] != ',') i++;
        *out++ = file.bytes[i];
    }
    *out = '\0';
    sf_file_free(&file);
    return text;
}

static void count_line(void *context, const char *record)
{
    assert_int_equal(record[0], '{');
    ++*(size_t *)context;
}

/* The same bytes with any threads and batches, with and without the fast path, cut anywhere
 * and resumed. */
static void test_run(void **state)
{
    (void)state;
    safer_lexicon *l = make_lexicon(8, "weighted", 0, 0);
    safer_data *data = make_data(60);
    const struct { int threads; size_t batch; const sf_model_class *class; } ways[] = {
        {2, 256, &any_class}, {5, 7, &any_class}, {1, 1, &fast_class}, {3, 1000, &fast_class}};
    for (int method = 0; method < SAFER_ATTACKS; method++)
        for (int smoothed = 0; smoothed < 2; smoothed++) {
            any_model m;
            safer_attack_summary first, other;
            safer_attack_options o = safer_attack_options_default();
            size_t lines = 0;
            const char *path = temporary("attack.jsonl");
            unlink(path);
            make_model(&m, 3, 2, 100);
            o.method = (safer_attack_method)method;
            o.smoothed = smoothed;
            o.n = 30;
            o.threads = 1;
            o.iterations = 3;
            o.population = 10;
            o.each = count_line;
            o.each_context = &lines;
            assert_ok(safer_attack(&first, path, 0, &m.base, l, data, &o, &error));
            assert_int_equal(first.texts, 60);
            assert_int_equal(lines, 60);
            assert_true(first.skipped > 0 && first.without_choices >= 1 && first.queries > 60);
            if (!smoothed) assert_true(first.succeeded > 5);
            assert_int_equal(first.queries + first.checks, atomic_load(&m.asked));
            char *expected = records_of(path);
            for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
                const char *again = temporary("again.jsonl");
                unlink(again);
                m.base.class = ways[i].class;
                o.threads = ways[i].threads;
                o.batch = ways[i].batch;
                assert_ok(safer_attack(&other, again, 0, &m.base, l, data, &o, &error));
                char *got = records_of(again);
                assert_string_equal(got, expected);
                free(got);
            }
            sf_file whole = {0};
            assert_ok(sf_file_map(&whole, path, &error));
            char *bytes = malloc(whole.length);
            memcpy(bytes, whole.bytes, whole.length);
            const size_t length = whole.length;
            sf_file_free(&whole);
            for (uint32_t i = 0; i < 10; i++) {
                const char *part = write_temporary("part.jsonl", bytes, below(i, 77, (uint32_t)length + 1));
                lines = 0;
                assert_ok(safer_attack(&other, part, 1, &m.base, l, data, &o, &error));
                char *got = records_of(part);
                assert_string_equal(got, expected);
                free(got);
                assert_int_equal(other.succeeded, first.succeeded);
                assert_int_equal(lines, 60);
            }
            o.seed = 2;
            assert_fails(safer_attack(&other, path, 1, &m.base, l, data, &o, &error), SAFER_INPUT, "belongs to another run");
            free(bytes);
            free(expected);
        }
    safer_data_free(data);
    safer_lexicon_free(l);
}

static int stop_soon(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)stage, (void)done, (void)total;
    return ++*(int *)context > 1;
}

static void test_cancel(void **state)
{
    (void)state;
    safer_lexicon *l = make_lexicon(8, "topk:2", 0, 0);
    safer_data *data = make_data(20);
    any_model m;
    int calls = 1;
    safer_attack_summary s;
    safer_attack_options o = safer_attack_options_default();
    o.progress = (safer_progress){stop_soon, &calls};
    make_model(&m, 1, 2, 0);
    assert_fails(safer_attack(&s, NULL, 0, &m.base, l, data, &o, &error), SAFER_CANCELLED, "cancelled");
    safer_data_free(data);
    safer_lexicon_free(l);
}

/* ------------------------------------------------------ models elsewhere */

static int say_none(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    (void)texts, (void)lengths;
    for (size_t i = 0; i < count; i++) labels[i] = *(int *)context;
    return 0;
}

/* "aa" is 0, all else 1; labels only. */
static int say_by_word(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    (void)context, (void)lengths;
    for (size_t i = 0; i < count; i++) labels[i] = strstr(texts[i], "aa") ? 0 : 1;
    return 0;
}

static int say_at_random(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    (void)texts, (void)lengths;
    for (size_t i = 0; i < count; i++) labels[i] = (int)below(++*(uint64_t *)context, 5, 2);
    return 0;
}

static void test_other_answers(void **state)
{
    (void)state;
    const char *const labels[] = {"0", "1"};
    safer_remote_options remote = safer_remote_options_default();
    safer_lexicon *l = make_lexicon(5, "component", 0, 0);
    uint32_t synonym = SAFER_NO_WORD;
    assert_true(safer_lexicon_word(l, 0).synonym_count > 0);
    synonym = safer_lexicon_word(l, 0).synonyms[0];
    remote.labels = labels;
    remote.label_count = 2;
    for (int smoothed = 0; smoothed < 2; smoothed++)
        for (int method = 0; method < SAFER_ATTACKS; method++) {
            safer_model *model = NULL;
            safer_attacker *attacker = NULL;
            safer_attack_result r;
            safer_attack_options o = safer_attack_options_default();
            int none = -1;
            uint64_t counter = 0;
            char text[16];
            o.method = (safer_attack_method)method;
            o.smoothed = smoothed;
            o.iterations = 4;
            assert_ok(safer_model_from_callback(&model, say_none, &none, &remote, &error));
            assert_ok(safer_attack_text(&r, &attacker, model, l, "aa bb", 5, 0, &o, &error));
            assert_int_equal(r.outcome, SAFER_ATTACK_SKIPPED);
            assert_string_equal(r.reason, "the classifier gives no answer");
            safer_attacker_free(attacker);
            safer_model_free(model);
            attacker = NULL;
            assert_ok(safer_model_from_callback(&model, say_by_word, NULL, &remote, &error));
            snprintf(text, sizeof text, "aa %s", names[synonym]);
            assert_ok(safer_attack_text(&r, &attacker, model, l, text, 5, 0, &o, &error));
            if (!smoothed) assert_int_equal(r.outcome, SAFER_ATTACK_SUCCEEDED); /* one word, whatever the scores */
            safer_attacker_free(attacker);
            safer_model_free(model);
            attacker = NULL;
            remote.random = 1;
            assert_ok(safer_model_from_callback(&model, say_at_random, &counter, &remote, &error));
            assert_ok(safer_attack_text(&r, &attacker, model, l, "aa bb cc dd", 11, -1, &o, &error));
            assert_true(r.queries >= 1);
            safer_attacker_free(attacker);
            safer_model_free(model);
            remote.random = 0;
        }
    safer_lexicon_free(l);
}

/* ------------------------------------------------------------- real models */

/* One preparation for all texts in reach answers as the texts written out do, for every
 * architecture with a fast path. */
static void test_fast_paths(void **state)
{
    (void)state;
    static const char *const archs[] = {"ngram", "bow", "cnn", "charcnn"};
    safer_data *data = make_data(50);
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++)
        for (int k = 0; k < 2; k++) {
            safer_lexicon *l = make_lexicon(8, k ? "topk:2" : "weighted", 0, 0);
            safer_model *model = NULL;
            safer_attack_summary s;
            safer_attack_options o = safer_attack_options_default();
            safer_train_options t = safer_train_options_default();
            const char *file = temporary("trained"), *fast_records = temporary("fast.jsonl"), *slow_records = temporary("slow.jsonl");
            unlink(fast_records);
            unlink(slow_records);
            t.arch = archs[i];
            t.train = t.dev = data;
            t.lexicon = l;
            t.bits = 10;
            t.epochs = 1;
            t.min_count = 1;
            t.dim = t.filters = t.hidden = 8;
            if (strcmp(t.arch, "charcnn") == 0) t.characters = 200; /* more than a text has */
            assert_ok(safer_train(file, &t, NULL, &error));
            assert_ok(safer_model_open(&model, file, &error));
            sf_model_class slow = *model->class;
            const sf_model_class *quick = model->class;
            assert_non_null(slow.prepare);
            slow.prepare = NULL;
            o.smoothed = 1;
            o.n = 20;
            o.population = 6;
            o.iterations = 2;
            o.method = k ? SAFER_TEXTFOOLER : SAFER_GENETIC;
            assert_ok(safer_attack(&s, fast_records, 0, model, l, data, &o, &error));
            model->class = &slow;
            assert_ok(safer_attack(&s, slow_records, 0, model, l, data, &o, &error));
            model->class = quick;
            char *a = records_of(fast_records), *b = records_of(slow_records);
            assert_string_equal(a, b);
            assert_true(s.queries > 1000);
            free(a);
            free(b);
            safer_model_free(model);
            safer_lexicon_free(l);
        }
    safer_data_free(data);
}

/* -------------------------------------------------------------- cross-check */

/* Certifies and attacks what was certified. */
static safer_against_summary cross_check(const safer_lexicon *l, const safer_model *model, const safer_data *data, uint64_t n, double delta,
                                         const char *path)
{
    safer_summary certified;
    safer_against_summary s;
    safer_certify_options c = safer_certify_options_default();
    safer_attack_options o = safer_attack_options_default();
    const char *run = temporary("certified.jsonl");
    unlink(run);
    if (path) unlink(path);
    c.n = n;
    c.delta = delta;
    c.unlabelled = 1;
    o.iterations = 3;
    o.population = 10;
    o.tries = 20;
    assert_ok(safer_certify(&certified, run, 0, model, l, data, &c, &error));
    assert_ok(safer_attack_against(&s, run, path, 0, model, l, data, &o, &error));
    assert_int_equal(s.texts, safer_data_size(data));
    assert_int_equal(s.certified, certified.certified_at[0]);
    return s;
}

static void test_sound_certificates_hold(void **state)
{
    (void)state;
    safer_data *data = make_data(40);
    size_t certified = 0, exact = 0;
    for (uint32_t seed = 0; seed < 90; seed++) {
        any_model m;
        safer_lexicon *l = make_lexicon(seed, kinds[seed % KINDS], 0, seed % 7 == 3);
        make_model(&m, seed, 2 + seed % 3, seed % 4 * 150);
        m.base.class = seed % 2 ? &fast_class : &any_class;
        m.additive = (int)(seed % 3 == 0);
        safer_against_summary s = cross_check(l, &m.base, data, seed % 3 ? 200 : 100000, 0.001, NULL);
        if (s.violations || s.alarm) fail_msg("seed %u (%s): %zu violations", seed, kinds[seed % KINDS], s.violations);
        certified += s.certified;
        exact += s.exact;
        safer_lexicon_free(l);
    }
    printf("%zu certificates attacked, %zu of them exact, no violation\n", certified, exact);
    assert_true(certified > 800 && exact > 300 && exact < certified);
    safer_data_free(data);
}

/* A lexicon that says every overlap is 1 certifies too much, exactly and by sampling, and is found out. */
static void test_broken_certificates_are_caught(void **state)
{
    (void)state;
    safer_data *data = make_data(40);
    size_t alarms[2] = {0}, tried[2] = {0};
    for (uint32_t seed = 0; seed < 60; seed++) {
        any_model m;
        const int exact = seed % 2 == 0;
        safer_lexicon *l = make_lexicon(seed, seed % 4 < 2 ? "topk:1" : "topk:2", 1, 0);
        make_model(&m, seed, 2, 0);
        m.additive = 1;
        m.base.class = seed % 3 ? &fast_class : &any_class;
        const char *path = temporary("against.jsonl");
        safer_against_summary s = cross_check(l, &m.base, data, exact ? 100000 : 20, 0.01, path);
        tried[exact]++;
        alarms[exact] += (size_t)s.alarm;
        assert_true(!s.violations || s.alarm == (s.violations_exact > 0 || s.p_value < SAFER_AGAINST_LEVEL));
        /* What the records call a violation is one. */
        char *records = records_of(path);
        size_t found = 0;
        for (char *p = records; (p = strstr(p, "\"violation\":{")); p++) found++;
        assert_int_equal(found, s.violations);
        free(records);
        safer_lexicon_free(l);
    }
    printf("found out: %zu of %zu exact, %zu of %zu sampled\n", alarms[1], tried[1], alarms[0], tried[0]);
    assert_true(alarms[1] * 10 >= tried[1] * 8);
    assert_true(alarms[0] * 10 >= tried[0] * 5);
    safer_data_free(data);
}

/* The cross-check itself: the same records however it is run, resumed too; and only for its own run. */
static void test_against_run(void **state)
{
    (void)state;
    safer_data *data = make_data(30), *other_data = make_data(29);
    safer_lexicon *l = make_lexicon(4, "topk:2", 1, 0), *other = make_lexicon(5, "topk:2", 0, 0);
    any_model m, another;
    safer_against_summary s;
    safer_attack_options o = safer_attack_options_default();
    const char *path = temporary("against-1.jsonl");
    make_model(&m, 4, 2, 0);
    make_model(&another, 5, 2, 0);
    m.additive = 1;
    cross_check(l, &m.base, data, 50, 0.01, path);
    char *expected = records_of(path);
    o.iterations = 3;
    o.population = 10;
    o.tries = 20;
    const char *run = temporary("certified.jsonl");
    for (int i = 0; i < 6; i++) {
        const char *again = i < 3 ? temporary("against-2.jsonl") : write_temporary("against-2.jsonl", expected, 0);
        if (i < 3) unlink(again);
        o.threads = 1 + i;
        o.batch = i % 2 ? 3 : 100;
        m.base.class = i % 2 ? &fast_class : &any_class;
        assert_ok(safer_attack_against(&s, run, again, i >= 3, &m.base, l, data, &o, &error));
        char *got = records_of(again);
        assert_string_equal(got, expected);
        free(got);
    }
    free(expected);
    assert_fails(safer_attack_against(&s, run, NULL, 0, &another.base, l, data, &o, &error), SAFER_INPUT, "belongs to another");
    assert_fails(safer_attack_against(&s, run, NULL, 0, &m.base, other, data, &o, &error), SAFER_INPUT, "belongs to another");
    assert_fails(safer_attack_against(&s, run, NULL, 0, &m.base, l, other_data, &o, &error), SAFER_INPUT, "belongs to another");
    assert_fails(safer_attack_against(&s, path, NULL, 0, &m.base, l, data, &o, &error), SAFER_INPUT, "not the configuration of a run");
    safer_data_free(data);
    safer_data_free(other_data);
    safer_lexicon_free(l);
    safer_lexicon_free(other);
}

/* ---------------------------------------------------------- bad parameters */

static void test_bad_options(void **state)
{
    (void)state;
    safer_lexicon *l = make_lexicon(1, "component", 0, 0);
    safer_data *data = make_data(3);
    any_model m;
    safer_attacker *attacker = NULL;
    safer_attack_result r;
    safer_attack_summary s;
    safer_attack_options o;
    make_model(&m, 1, 2, 0);
#define BAD(field, value, words)                                                                             \
    o = safer_attack_options_default();                                                                      \
    o.field = value;                                                                                         \
    assert_fails(safer_attack(&s, NULL, 0, &m.base, l, data, &o, &error), SAFER_INVALID, words)
    BAD(method, (safer_attack_method)7, "method");
    BAD(n, 0, "n:");
    BAD(n, UINT64_MAX, "n:");
    BAD(radius, 0, "radius");
    BAD(population, 1, "population");
    BAD(iterations, -1, "iterations");
    BAD(tries, 0, "tries");
    BAD(alpha, 0, "alpha");
    BAD(alpha, (double)NAN, "alpha");
    BAD(threads, -1, "threads");
    BAD(batch, 0, "batch");
#undef BAD
    o = safer_attack_options_default();
    assert_fails(safer_attack_text(&r, &attacker, &m.base, l, "aa", 2, 2, &o, &error), SAFER_INVALID, "label: 2");
    assert_fails(safer_attack_text(&r, &attacker, &m.base, l, "a\xff", 2, 0, &o, &error), SAFER_INPUT, "UTF-8 at byte 1");
    assert_ok(safer_attack_text(&r, &attacker, &m.base, l, "", 0, -1, &o, &error));
    assert_string_equal(r.reason, "no word can change");
    assert_string_equal(safer_attack_name(SAFER_PWWS), "pwws");
    assert_null(safer_attack_name((safer_attack_method)SAFER_ATTACKS));
    safer_attacker_free(attacker);
    safer_data_free(data);
    safer_lexicon_free(l);
}

typedef struct world {
    safer_lexicon *lexicon;
    safer_data *data;
    any_model model;
    safer_attack_method method;
    int smoothed;
} world;

static safer_status attack_once(void *context, safer_error *e)
{
    world *w = context;
    safer_attack_summary s;
    safer_attack_options o = safer_attack_options_default();
    const char *path = temporary("memory.jsonl");
    unlink(path);
    o.method = w->method;
    o.smoothed = w->smoothed;
    o.threads = 1;
    o.n = 3;
    o.population = 3;
    o.iterations = 2;
    o.tries = 3;
    return safer_attack(&s, path, 0, &w->model.base, w->lexicon, w->data, &o, e);
}

static safer_status against_once(void *context, safer_error *e)
{
    world *w = context;
    safer_against_summary s;
    safer_attack_options o = safer_attack_options_default();
    o.threads = 1;
    o.n = 3;
    o.population = 3;
    o.iterations = 1;
    o.tries = 3;
    return safer_attack_against(&s, temporary("certified.jsonl"), NULL, 0, &w->model.base, w->lexicon, w->data, &o, e);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    world w = {.lexicon = make_lexicon(4, "topk:2", 1, 0)};
    make_model(&w.model, 4, 2, 0);
    w.model.additive = 1;
    assert_ok(safer_data_load(&w.data, write_temporary("m.tsv", "1\t0\taa bb cc dd\n2\t1\tff ee\n", 26), NULL, &error));
    for (int method = 0; method < SAFER_ATTACKS; method++)
        for (w.smoothed = 0; w.smoothed < 2; w.smoothed++) {
            w.method = (safer_attack_method)method;
            w.model.base.class = w.smoothed ? &fast_class : &any_class;
            check_every_allocation(attack_once, &w);
        }
    cross_check(w.lexicon, &w.model.base, w.data, 20, 0.01, NULL);
    check_every_allocation(against_once, &w);
    safer_data_free(w.data);
    safer_lexicon_free(w.lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_itself),      cmocka_unit_test(test_smoothed_exactly),
        cmocka_unit_test(test_textfooler_is_greedy), cmocka_unit_test(test_rendering),
        cmocka_unit_test(test_smoothed_by_samples), cmocka_unit_test(test_query_limits),
        cmocka_unit_test(test_run),               cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_other_answers),     cmocka_unit_test(test_fast_paths),
        cmocka_unit_test(test_sound_certificates_hold),
        cmocka_unit_test(test_broken_certificates_are_caught), cmocka_unit_test(test_against_run),
        cmocka_unit_test(test_bad_options),       cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
