/* The certifier against enumeration: small random lexicons and classifiers, every attack
 * tried, g computed exactly. Then the run: order, threads, batches, resume, verify. */
#define _GNU_SOURCE
#include "tiny.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"
#include "certify/certificate.h"
#include "certify/record.h"
#include "stats/binomial.h"

#include <fenv.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

static safer_error error;

/* ------------------------------------------- a model that is any function */

/* Its answer is a hash of the text, biased so that certificates happen. */
typedef struct hash_model {
    safer_model base;
    uint64_t salt;
    uint32_t bias; /* of 1024: class 0 gets this share beyond its own */
    size_t read;   /* words that are looked at; 0: all */
} hash_model;

static int hash_answer(const hash_model *m, const char *bytes, size_t length)
{
    size_t limit = m->read ? 3 * m->read - 1 : length; /* words have two letters */
    uint64_t h = sf_hash(bytes, length < limit ? length : limit, m->salt);
    if ((h & 1023) < m->bias) return 0;
    return (int)((h >> 20) % m->base.classes);
}

static safer_status hash_classify(const safer_model *model, const sf_span *texts, size_t count, int *labels,
                                  float *scores, void *scratch, safer_error *e)
{
    (void)scores, (void)scratch, (void)e;
    for (size_t i = 0; i < count; i++)
        labels[i] = hash_answer((const hash_model *)model, texts[i].bytes, texts[i].length);
    return SAFER_OK;
}

static const sf_model_class hash_class = {.arch = "bow", .classify = hash_classify};

static hash_model make_model(uint64_t salt, size_t classes, uint32_t bias)
{
    return (hash_model){.base = {.class = &hash_class,
                                 .classes = classes,
                                 .labels = label_list,
                                 .hash = salt,
                                 .sha256 = digest_for(salt),
                                 .arithmetic = "portable"},
                        .salt = salt,
                        .bias = bias};
}

/* ------------------------------------------------------------- brute force */

/* g(X, c) exactly, as weights; returns the total. Enumerates without the certifier's code. */
static double exact_shares(double shares[5], const safer_lexicon *l, const hash_model *m, const uint32_t *text,
                           size_t length)
{
    double total = 0;
    uint32_t at[4] = {0};
    memset(shares, 0, 5 * sizeof *shares);
    for (;;) {
        char rendered[32];
        size_t n = 0;
        double weight = 1;
        for (size_t i = 0; i < length; i++) {
            safer_word w = safer_lexicon_word(l, text[i]);
            n += (size_t)sprintf(rendered + n, "%s%s", i ? " " : "", names[w.support[at[i]]]);
            weight *= w.weights[at[i]];
        }
        shares[hash_answer(m, rendered, n)] += weight;
        total += weight;
        size_t i = 0;
        while (i < length && ++at[i] == safer_lexicon_word(l, text[i]).support_count) at[i++] = 0;
        if (i == length) break;
    }
    return total;
}

/* Does class y win strictly at X? Weights are small whole numbers: doubles are exact. */
static int wins(const safer_lexicon *l, const hash_model *m, const uint32_t *text, size_t length, int y)
{
    double shares[5];
    exact_shares(shares, l, m, text, length);
    for (int c = 0; c < (int)m->base.classes; c++)
        if (c != y && shares[c] >= shares[y]) return 0;
    return 1;
}

/* Whether some X' within `radius` changes makes y lose. */
static int attack_succeeds(const safer_lexicon *l, const hash_model *m, const uint32_t *text, size_t length, int y,
                           size_t radius)
{
    uint32_t choice[4] = {0}, attacked[4];
    for (;;) {
        size_t changed = 0;
        for (size_t i = 0; i < length; i++) {
            attacked[i] = choice[i] ? safer_lexicon_word(l, text[i]).synonyms[choice[i] - 1] : text[i];
            changed += choice[i] != 0;
        }
        if (changed <= radius && !wins(l, m, attacked, length, y)) return 1;
        size_t i = 0;
        while (i < length && ++choice[i] == safer_lexicon_word(l, text[i]).synonym_count + 1) choice[i++] = 0;
        if (i == length) return 0;
    }
}

/* With exact g not one certified text has a successful attack: over 100,000 instances. */
static void test_exact_soundness(void **state)
{
    (void)state;
    size_t instances = 0, certified = 0, partial = 0;
    for (uint32_t seed = 0; instances < 100000; seed++) {
        safer_lexicon *l = make_tiny_lexicon(seed, kinds[seed % 6], 0, 0);
        safer_workspace *workspace = NULL;
        safer_certify_options o = safer_certify_options_default();
        size_t classes = 2 + seed % 4;
        o.n = 100000; /* everything is enumerated */
        o.unlabelled = 1;
        hash_model m = make_model(seed, classes, (seed / 4) % 5 * 220);
        for (uint32_t k = 0; k < 60; k++, instances++) {
            uint32_t text[4];
            size_t length = 1 + tiny_below(seed, 1000 + k, 3);
            char bytes[32];
            for (size_t i = 0; i < length; i++) text[i] = tiny_below(seed, 2000 + 4 * k + (uint32_t)i, WORDS);
            m.salt = (uint64_t)seed << 32 | k;
            size_t n = write_text(bytes, text, length);
            safer_certificate c;
            assert_ok(safer_certify_text(&c, &workspace, &m.base, l, bytes, n, -1, &o, &error));
            assert_true(c.exact);
            size_t radius = c.radius == SAFER_ALL ? length : c.radius;
            if (c.radius == SAFER_ALL)
                certified++;
            else if (c.radius)
                partial++;
            if ((c.radius == SAFER_ALL || c.radius) && attack_succeeds(l, &m, text, length, c.prediction, radius))
                fail_msg("seed %u, text %u (%s): certified at radius %zu, but an attack succeeds", seed, k,
                         kinds[seed % 6], radius);
        }
        safer_workspace_free(workspace);
        safer_lexicon_free(l);
    }
    printf("%zu instances, %zu certified against all, %zu at a smaller radius, no attack succeeds\n", instances,
           certified, partial);
    assert_true(certified > instances / 20);
    assert_true(partial > 20);
}

/* ---- a model that stops reading ---- */

typedef struct reading {
    const sf_slots *slots;
    const safer_lexicon *lexicon;
    size_t visible;
} reading;

static safer_status read_prepare(const safer_model *model, const safer_lexicon *lexicon, const sf_slots *slots,
                                 void **out, safer_error *e)
{
    (void)e;
    reading *r = calloc(1, sizeof *r);
    *r = (reading){slots, lexicon, 0};
    while (r->visible < slots->slot_count && slots->slots[r->visible] < ((const hash_model *)model)->read) r->visible++;
    *out = r;
    return SAFER_OK;
}

static safer_status read_sample(const safer_model *model, const void *prepared, const uint32_t *draws, size_t count,
                                int *labels, void *scratch, safer_error *e)
{
    const reading *r = prepared;
    (void)scratch, (void)e;
    for (size_t i = 0; i < count; i++) {
        sf_buffer text = {0};
        assert_int_equal(sf_slots_render(&text, r->slots, r->lexicon, draws + i * r->slots->slot_count), 0);
        labels[i] = hash_answer((const hash_model *)model, text.bytes, text.length);
        sf_buffer_free(&text);
    }
    return SAFER_OK;
}

static size_t read_visible(const void *prepared) { return ((const reading *)prepared)->visible; }

static const sf_model_class reading_class = {.arch = "cnn",
                                             .classify = hash_classify,
                                             .prepare = read_prepare,
                                             .sample = read_sample,
                                             .release = free,
                                             .visible = read_visible};

/* What the model cannot see leaves the product, and only that: no attack succeeds, q is that
 * of the text cut off where reading ends, and so is the number of draws. */
static void test_truncation(void **state)
{
    (void)state;
    size_t certified = 0, gained = 0;
    for (uint32_t seed = 0; seed < 300; seed++) {
        safer_lexicon *l = make_tiny_lexicon(seed, kinds[seed % 6], 0, 0);
        safer_workspace *whole_workspace = NULL, *cut_workspace = NULL, *blind_workspace = NULL;
        safer_certify_options o = safer_certify_options_default();
        o.n = 100000;
        o.unlabelled = 1;
        hash_model m = make_model(seed, 2 + seed % 2, 700), blind = m;
        m.base.class = &reading_class;
        for (uint32_t k = 0; k < 20; k++) {
            uint32_t text[4];
            char bytes[32];
            safer_certificate whole, cut, unaware;
            m.read = blind.read = 1 + tiny_below(seed, 900 + k, 2);
            for (uint32_t i = 0; i < 3; i++) text[i] = tiny_below(seed, 3000 + 4 * k + i, WORDS);
            m.salt = blind.salt = (uint64_t)seed << 32 | k;
            size_t n = write_text(bytes, text, 3);
            assert_ok(safer_certify_text(&cut, &cut_workspace, &m.base, l, bytes, 3 * m.read - 1, -1, &o, &error));
            double q_cut = cut.q[SAFER_RADII - 1];
            uint64_t queries = cut.queries;
            assert_ok(safer_certify_text(&whole, &whole_workspace, &m.base, l, bytes, n, -1, &o, &error));
            assert_true(whole.exact);
            assert_true(whole.visible <= whole.slots);
            assert_true(whole.q[SAFER_RADII - 1] == q_cut);
            assert_int_equal(whole.queries, queries);
            assert_int_equal(whole.radius, cut.radius);
            assert_ok(safer_certify_text(&unaware, &blind_workspace, &blind.base, l, bytes, n, -1, &o,
                                         &error)); /* a black box */
            assert_true(unaware.q[SAFER_RADII - 1] >= q_cut);
            gained += whole.radius == SAFER_ALL && unaware.radius != SAFER_ALL;
            if (whole.radius != SAFER_ALL) continue;
            certified++;
            if (attack_succeeds(l, &m, text, 3, whole.prediction, 3))
                fail_msg("seed %u, text %u: an attack succeeds", seed, k);
        }
        safer_workspace_free(whole_workspace);
        safer_workspace_free(cut_workspace);
        safer_workspace_free(blind_workspace);
        safer_lexicon_free(l);
    }
    assert_true(certified > 500);
    assert_true(gained > 20);
}

/* With sampled g, wrong certificates are no more than delta of the texts; here at
 * delta = .2, so that a broken test would show. */
static void test_sampled_soundness(void **state)
{
    (void)state;
    const safer_method methods[] = {SAFER_METHOD_ADAPTIVE, SAFER_METHOD_BINOMIAL, SAFER_METHOD_HOEFFDING};
    for (int m = 0; m < 3; m++) {
        size_t texts = 0, wrong = 0, certified = 0;
        for (uint32_t seed = 0; seed < 400; seed++) {
            safer_lexicon *l = make_tiny_lexicon(seed, kinds[seed % 6], 0, 0);
            safer_workspace *workspace = NULL;
            safer_certify_options o = safer_certify_options_default();
            o.method = methods[m];
            o.delta = 0.2;
            o.n = 40;
            o.n0 = 5;
            o.seed = seed;
            hash_model model = make_model(seed, 2 + seed % 3, 300);
            for (uint32_t k = 0; k < 25; k++) {
                uint32_t text[4];
                size_t length = 3;
                char bytes[32];
                for (size_t i = 0; i < length; i++) text[i] = tiny_below(seed, 5000 + 4 * k + (uint32_t)i, WORDS);
                model.salt = (uint64_t)seed << 32 | (k + 7777);
                safer_certificate c;
                assert_ok(safer_certify_text(&c, &workspace, &model.base, l, bytes, write_text(bytes, text, length), 0,
                                             &o, &error));
                if (c.exact) continue;
                texts++;
                if (c.radius == 0) continue;
                certified++;
                wrong += (size_t)attack_succeeds(l, &model, text, length, 0, c.radius == SAFER_ALL ? length : c.radius);
            }
            safer_workspace_free(workspace);
            safer_lexicon_free(l);
        }
        printf("method %d: %zu texts, %zu certified, %zu wrong\n", m, texts, certified, wrong);
        assert_true(certified > texts / 50);
        /* delta n plus four standard deviations. */
        assert_true((double)wrong <= 0.2 * (double)texts + 4 * sqrt(0.16 * (double)texts));
    }
}

/* q as the library computes it for those two sets in every slot. */
static double library_q(uint32_t k, uint32_t shared, uint32_t universe, uint32_t slots)
{
    const size_t all = SIZE_MAX;
    sf_kernel kernel;
    uint32_t ids[8], ones[8], row;
    double overlaps[3], product;
    assert_ok(sf_kernel_start(&kernel, universe, &error));
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < k; i++) {
            ids[i] = i + side * (k - shared);
            ones[i] = 1;
        }
        assert_ok(sf_kernel_add(&kernel, ids, ones, k, &row, &error));
        kernel.row_of[side * (universe - 1)] = row;
    }
    sf_kernel_view view = sf_kernel_as_view(&kernel);
    for (uint32_t s = 0; s < slots; s++) overlaps[s] = sf_overlap(&view, 0, universe - 1);
    sf_overlap_products(&product, &all, 1, overlaps, slots);
    sf_kernel_free(&kernel);
    return sf_complement_up(product);
}

/* Theorem 2: for uniform kernels of equal size the bound is attained. With f the
 * indicator of a set, |g(X) - g(X')| = q exactly when f picks the draws that X has and X'
 * lacks, in product form: here for one and two slots. */
static void test_bound_is_attained(void **state)
{
    (void)state;
    for (uint32_t k = 2; k <= 4; k++)
        for (uint32_t shared = 0; shared < k; shared++)
            for (uint32_t slots = 1; slots <= 3; slots++) {
                /* P_x = {0..k-1}, P_x' = {k-shared .. 2k-shared-1}: |intersection| = shared.
                 * A = draws with all slots in the intersection; f = 1 outside A on X's side. */
                uint32_t universe = 2 * k - shared, total = 1, inside_x = 0, x_ones = 0, y_ones = 0;
                for (uint32_t s = 0; s < slots; s++) total *= universe;
                for (uint32_t d = 0; d < total; d++) {
                    uint32_t rest = d;
                    int in_x = 1, in_y = 1;
                    for (uint32_t s = 0; s < slots; s++, rest /= universe) {
                        in_x &= rest % universe < k;
                        in_y &= rest % universe >= k - shared;
                    }
                    int f = in_x && !in_y;
                    inside_x += (uint32_t)in_x;
                    x_ones += (uint32_t)(f && in_x);
                    y_ones += (uint32_t)(f && in_y);
                }
                double q = library_q(k, shared, universe, slots);
                assert_true(fabs((double)(x_ones - y_ones) / inside_x - q) < 1e-12);
            }
}

/* --------------------------------------------------------------------- runs */

static void test_run(void **state)
{
    (void)state;
    safer_lexicon *l = make_tiny_lexicon(8, "weighted", 0, 0);
    safer_data *data = make_tiny_data(300);
    hash_model m = make_model(3, 2, 600);
    safer_certify_options o = safer_certify_options_default();
    safer_summary first, other;
    const char *path = temporary("run.jsonl");
    o.n = 300;
    o.threads = 1;
    assert_ok(safer_certify(&first, path, 0, &m.base, l, data, &o, &error));
    assert_int_equal(first.texts, 300);
    assert_true(first.without_slots >= 6 && first.exact > 0 && first.exact < 300 &&
                first.certified_at[0] >= first.certified);
    char *expected = records_of(path);
    const struct {
        int threads;
        size_t batch;
    } ways[] = {{2, 256}, {5, 256}, {1, 1}, {2, 7}, {3, 1000}};
    for (int i = 0; i < 5; i++) {
        const char *again = temporary("again.jsonl");
        unlink(again);
        o.threads = ways[i].threads;
        o.batch = ways[i].batch;
        assert_ok(safer_certify(&other, again, 0, &m.base, l, data, &o, &error));
        char *got = records_of(again);
        assert_string_equal(got, expected);
        free(got);
        assert_int_equal(other.queries, first.queries);
        safer_summary_free(&other);
    }
    assert_fails(safer_certify(NULL, path, 0, &m.base, l, data, &o, &error), SAFER_INVALID, "exists");
    /* Cut anywhere, resume: nothing lost, nothing twice. */
    sf_file whole = {0};
    assert_ok(sf_file_load(&whole, path, &error));
    char *bytes = malloc(whole.length);
    memcpy(bytes, whole.bytes, whole.length);
    size_t length = whole.length;
    sf_file_free(&whole);
    for (uint32_t i = 0; i < 60; i++) {
        const char *part = write_temporary("part.jsonl", bytes, tiny_below(i, 77, (uint32_t)length + 1));
        o.threads = 1 + (int)(i % 3);
        assert_ok(safer_certify(&other, part, 1, &m.base, l, data, &o, &error));
        char *got = records_of(part);
        assert_string_equal(got, expected);
        free(got);
        assert_int_equal(other.certified, first.certified);
        assert_int_equal(other.texts, 300);
        safer_summary_free(&other);
    }
    o.seed = 2; /* another run's file is refused */
    assert_fails(safer_certify(NULL, path, 1, &m.base, l, data, &o, &error), SAFER_INPUT, "belongs to another run");
    safer_verification found;
    assert_ok(safer_verify(&found, path, NULL, NULL, NULL, 1, NULL, &error));
    assert_int_equal(found.summary.certified, first.certified);
    safer_summary_free(&found.summary);
    assert_ok(safer_verify(NULL, path, &m.base, l, data, 2, NULL, &error));
    m.salt = 4; /* another model behind the same name */
    assert_fails(safer_verify(NULL, path, &m.base, l, data, 2, NULL, &error), SAFER_INPUT,
                 "line 2: the model gives another record");
    safer_summary_free(&first);
    free(bytes);
    free(expected);
    safer_data_free(data);
    safer_lexicon_free(l);
}

/* One text, its batches shared by several threads. */
static void test_batches_are_shared(void **state)
{
    (void)state;
    safer_lexicon *l = make_tiny_lexicon(8, "weighted", 0, 0);
    hash_model m = make_model(3, 3, 300);
    const char *text = "aa bb cc dd ee ff aa bb cc dd";
    safer_certificate first = {0};
    uint64_t votes[3] = {0};
    for (int threads = 1; threads <= 5; threads++) {
        safer_workspace *workspace = NULL;
        safer_certificate c;
        safer_certify_options o = safer_certify_options_default();
        o.method = SAFER_METHOD_BINOMIAL;
        o.n = 3000;
        o.threads = threads;
        assert_ok(safer_certify_text(&c, &workspace, &m.base, l, text, strlen(text), -1, &o, &error));
        if (threads == 1) {
            first = c;
            memcpy(votes, c.votes, sizeof votes);
            assert_true(votes[0] && votes[1] && votes[2]);
        }
        assert_memory_equal(c.votes, votes, sizeof votes);
        assert_true(c.bound == first.bound && c.prediction == first.prediction && c.radius == first.radius);
        safer_workspace_free(workspace);
    }
    safer_lexicon_free(l);
}

static atomic_size_t calls;

static safer_status counting_classify(const safer_model *model, const sf_span *texts, size_t count, int *labels,
                                      float *scores, void *scratch, safer_error *e)
{
    atomic_fetch_add(&calls, 1);
    return hash_classify(model, texts, count, labels, scores, scratch, e);
}

/* A text with one draw alone costs one call, for itself and for the draw. */
static void test_one_call(void **state)
{
    (void)state;
    const sf_model_class counting = {.arch = "bow", .classify = counting_classify};
    safer_lexicon *l = make_tiny_lexicon(8, "representative", 0, 0);
    hash_model m = make_model(3, 3, 300);
    size_t different = 0;
    m.base.class = &counting;
    for (uint32_t i = 0; i < 200; i++) {
        safer_workspace *workspace = NULL;
        safer_certificate c;
        safer_certify_options o = safer_certify_options_default();
        char text[32];
        double shares[5];
        uint32_t words[4];
        const size_t length = i % 5;
        for (uint32_t k = 0; k < length; k++) words[k] = tiny_below(i, k, WORDS);
        const size_t n = write_text(text, words, length);
        o.batch = 1 + i % 2;
        atomic_store(&calls, 0);
        assert_ok(safer_certify_text(&c, &workspace, &m.base, l, text, n, -1, &o, &error));
        assert_true(atomic_load(&calls) == 1 && c.exact && c.queries == 1);
        assert_int_equal(c.base, hash_answer(&m, text, n));
        exact_shares(shares, l, &m, words, length);
        assert_true(shares[c.prediction] == 1);
        different += c.base != c.prediction;
        safer_workspace_free(workspace);
    }
    assert_true(different > 20);
    safer_lexicon_free(l);
}

static size_t asked; /* texts */

static safer_status noting_classify(const safer_model *model, const sf_span *texts, size_t count, int *labels,
                                    float *scores, void *scratch, safer_error *e)
{
    asked += count;
    return hash_classify(model, texts, count, labels, scores, scratch, e);
}

/* How many texts were asked when the prediction was chosen, with workspace->fixed_vote. */
static int note_selection(void *context, sf_moment moment, const safer_certificate *so_far, safer_workspace *workspace)
{
    assert_false(so_far->exact);
    assert_int_not_equal(moment, SF_VOTE_ASKED);
    if (moment != SF_PREDICTION_CHOSEN) return 0;
    assert_int_equal(so_far->vote_n, workspace->options.n0);
    *(size_t *)context = asked;
    return 0;
}

/* Few draws, but the sum of their weights needs more than 128 bits: the text is sampled, and no
 * question is wasted on its enumeration. */
static void test_weights_too_large(void **state)
{
    (void)state;
    const sf_model_class noting = {.arch = "bow", .classify = noting_classify};
    safer_lexicon *l = make_tiny_lexicon(8, "weighted", 0, 0);
    hash_model m = make_model(3, 3, 300);
    m.base.class = &noting;
    safer_certify_options o = safer_certify_options_default();
    o.threads = 1;
    o.n = 100000;
    o.n0 = 100;
    const char *text = "aa bb cc dd ee";
    const uint32_t rows = l->kernel.rows;
    const size_t items = (size_t)l->kernel.offsets[rows];
    const uint32_t *small_weights = l->kernel.weights, *small_totals = l->kernel.totals;
    uint32_t *weights = malloc(items * sizeof *weights), *totals = malloc(rows * sizeof *totals);
    for (size_t i = 0; i < items; i++) weights[i] = small_weights[i] << 27;
    for (uint32_t r = 0; r < rows; r++) totals[r] = small_totals[r] << 27;
    for (int large = 0; large < 2; large++) { /* the same kernel, once in large numbers */
        safer_workspace *workspace = NULL;
        safer_certificate c;
        size_t at_selection = 0;
        l->kernel.weights = large ? weights : small_weights;
        l->kernel.totals = large ? totals : small_totals;
        assert_ok(sf_workspace_new(&workspace, &m.base, l, &o, &error));
        if (large) workspace->watch = (sf_watch){note_selection, &at_selection};
        workspace->fixed_vote = 1;
        asked = 0;
        assert_ok(safer_certify_text(&c, &workspace, &m.base, l, text, strlen(text), -1, &o, &error));
        assert_int_equal(c.slots, 5);
        assert_int_equal(c.exact, !large);
        assert_int_equal(at_selection, large ? 1 + o.n0 : 0);
        if (!large) assert_int_equal(asked, 1 + c.queries);
        safer_workspace_free(workspace);
    }
    l->kernel.weights = small_weights;
    l->kernel.totals = small_totals;
    free(weights);
    free(totals);
    safer_lexicon_free(l);
}

/* Any edited number, bound or decision is refused: also when the editor knows how to put
 * the check right, wherever the decision does not follow. */
static void test_verify_refuses_edits(void **state)
{
    (void)state;
    const safer_method methods[] = {SAFER_METHOD_ADAPTIVE, SAFER_METHOD_BINOMIAL, SAFER_METHOD_HOEFFDING};
    safer_lexicon *l = make_tiny_lexicon(8, "topk:2", 0, 0);
    safer_data *data = make_tiny_data(300);
    hash_model m = make_model(3, 3, 700);
    for (int k = 0; k < 3; k++) {
        safer_certify_options o = safer_certify_options_default();
        const char *path = temporary("edit.jsonl");
        unlink(path);
        o.n = 200;
        o.method = methods[k];
        assert_ok(safer_certify(NULL, path, 0, &m.base, l, data, &o, &error));
        sf_file file = {0};
        assert_ok(sf_file_load(&file, path, &error));
        char *bytes = malloc(file.length);
        size_t length = file.length, accepted = 0, tried = 0;
        memcpy(bytes, file.bytes, length);
        sf_file_free(&file);
        for (uint32_t i = 0; i < 400; i++) { /* a digit, a letter or a brace */
            size_t at = tiny_below(i, 5, (uint32_t)length);
            char old = bytes[at];
            bytes[at] = old >= '0' && old <= '8' ? (char)(old + 1)
                        : old == '9'             ? '0'
                        : old == 't'             ? 'f'
                        : old == 'x'             ? 'y'
                                                 : 'x';
            /* "seconds" and the date may be edited: they are no decisions. */
            size_t line_start = at, seconds = 0;
            while (line_start && bytes[line_start - 1] != '\n') line_start--;
            char *field = memmem(bytes + line_start, length - line_start, "\"seconds\":", 10);
            if (field && at >= (size_t)(field - bytes) && at < (size_t)(field - bytes) + 40) seconds = 1;
            field = memmem(bytes, length, "\"date\":", 7);
            if (at >= (size_t)(field - bytes) && at < (size_t)(field - bytes) + 30) seconds = 1;
            if (!seconds) {
                tried++;
                accepted += safer_verify(NULL, write_temporary("edited.jsonl", bytes, length), NULL, NULL, NULL, 1,
                                         NULL, &error) == SAFER_OK;
            }
            bytes[at] = old;
        }
        assert_true(tried > 300);
        assert_int_equal(accepted, 0);
        /* With the checks made right again: change one thing at a time in a record. */
        size_t forged = 0, refused = 0;
        const char *fields[] = {"certified", "bound",   "radius", "counts", "n",        "target",
                                "q_at",      "queries", "exact",  "vote",   "abstained"};
        for (uint32_t i = 0; i < 120; i++) {
            sf_buffer copy = {0};
            uint64_t seed = 0, check;
            size_t line = 0, victim = 1 + tiny_below(i, 6, 300);
            int changed = 0;
            for (const char *p = bytes, *end = bytes + length; p < end; line++) {
                const char *newline = memchr(p, '\n', (size_t)(end - p));
                json_t *object = json_loadb(p, (size_t)(newline - p), 0, NULL);
                assert_ok(sf_unseal(object, p, (size_t)(newline - p), seed, &check, "x", line + 1, &error));
                if (line == victim) {
                    const char *field = fields[i % COUNT(fields)];
                    json_t *value = json_object_get(object, field);
                    changed = 1;
                    if (strcmp(field, "q_at") == 0) {
                        json_array_set_new(value, SAFER_RADII - 1, json_real(0.0));
                        json_object_set_new(object, "q", json_real(0.0));
                        json_object_set_new(object, "certified", json_true());
                        json_object_set_new(object, "radius", json_string("all"));
                        changed = json_array_size(value) &&
                                  json_number_value(json_array_get(value, 0)) > 0; /* then it no longer rises */
                    } else if (strcmp(field, "counts") == 0) {
                        const char *key = json_string_value(json_object_get(object, "target"));
                        if (!value) value = json_object_get(object, "weights");
                        json_t *count = json_object_get(value, key);
                        if (json_is_integer(count))
                            json_object_set_new(value, key, json_integer(json_integer_value(count) + 1));
                        else
                            json_object_set_new(value, key, json_string("12345"));
                    } else if (strcmp(field, "target") == 0) {
                        json_object_set_new(object, field,
                                            json_string(strcmp(json_string_value(value), "0") == 0 ? "1" : "0"));
                    } else if (strcmp(field, "radius") == 0) {
                        json_object_set_new(object, field,
                                            json_string(strcmp(json_string_value(value), "0") == 0 ? "all" : "0"));
                    } else if (strcmp(field, "vote") == 0) {
                        changed = value != NULL;
                        json_object_set_new(value, "n",
                                            json_integer(json_integer_value(json_object_get(value, "n")) + 1));
                    } else if (json_is_boolean(value)) {
                        json_object_set_new(object, field, json_boolean(!json_boolean_value(value)));
                    } else if (json_is_integer(value)) {
                        json_object_set_new(object, field, json_integer(json_integer_value(value) + 1));
                        changed = strcmp(field, "queries") != 0; /* a record does not hold the draws of its vote */
                    } else {
                        json_object_set_new(object, field, json_real(json_number_value(value) + 0.01));
                    }
                }
                size_t n;
                char *sealed = sf_seal(object, line ? 0.5 : -1, seed, &n, NULL);
                assert_int_equal(sf_buffer_add(&copy, sealed, n), 0);
                if (line == 0) seed = check;
                free(sealed);
                json_decref(object);
                p = newline + 1;
            }
            if (changed) {
                forged++;
                error.message[0] = '\0';
                if (safer_verify(NULL, write_temporary("forged.jsonl", copy.bytes, copy.length), NULL, NULL, NULL, 1,
                                 NULL, &error) != SAFER_OK)
                    refused++;
                else
                    fail_msg("a forged %s in line %zu is accepted", fields[i % COUNT(fields)], victim + 1);
            }
            sf_buffer_free(&copy);
        }
        assert_true(forged > 80);
        assert_int_equal(refused, forged);
        free(bytes);
    }
    safer_data_free(data);
    safer_lexicon_free(l);
}

static void test_bad_options(void **state)
{
    (void)state;
    safer_lexicon *l = make_tiny_lexicon(1, "component", 0, 0);
    safer_data *data = NULL;
    hash_model m = make_model(1, 2, 0);
    safer_certify_options o;
    assert_ok(safer_data_load(&data, write_temporary("u.tsv", "1\tx\taa\n", 7), NULL, &error));
    o = safer_certify_options_default();
    assert_fails(safer_certify(NULL, NULL, 0, &m.base, l, data, &o, &error), SAFER_INPUT,
                 "label \"x\", which the model does not know");
#define BAD(field, value, words) \
    o = safer_certify_options_default(); \
    o.field = value; \
    assert_fails(safer_certify(NULL, NULL, 0, &m.base, l, data, &o, &error), SAFER_INVALID, words)
    BAD(delta, 0, "delta");
    BAD(delta, 1, "delta");
    BAD(delta, (double)NAN, "delta");
    BAD(method, (safer_method)99, "method: unknown");
    BAD(alpha, 0, "alpha");
    BAD(alpha, 1, "alpha");
    BAD(n, 0, "n:");
    BAD(n, UINT64_MAX, "n:");
    BAD(n0, UINT64_MAX, "n0:");
    BAD(radius, 0, "radius");
    BAD(batch, 0, "batch");
    BAD(threads, -1, "threads");
#undef BAD
    safer_data_free(data);
    data = make_tiny_data(300);
    o = safer_certify_options_default();
    assert_fails(safer_certify(NULL, "/dev/full", 0, &m.base, l, data, &o, &error), SAFER_SYSTEM, "/dev/full");
    assert_fails(safer_certify(NULL, "/nonexistent/x.jsonl", 0, &m.base, l, data, &o, &error), SAFER_SYSTEM,
                 "/nonexistent/x.jsonl");
    const int directions[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int i = 0; i < 3; i++) { /* the workers of a run round as its caller does */
        fesetround(directions[i]);
        const safer_status status = safer_certify(NULL, NULL, 0, &m.base, l, data, &o, &error);
        fesetround(FE_TONEAREST);
        assert_int_equal(status, SAFER_INVALID);
        assert_non_null(strstr(error.message, "round"));
    }
#if defined(__SSE__)
    _MM_SET_ROUNDING_MODE(_MM_ROUND_UP); /* which fegetround does not see */
    const safer_status up = safer_certify(NULL, NULL, 0, &m.base, l, data, &o, &error);
    _MM_SET_ROUNDING_MODE(_MM_ROUND_NEAREST);
    assert_int_equal(up, SAFER_INVALID);
#endif
    o.family_wise = 1;
    const char *path = temporary("family.jsonl");
    assert_ok(safer_certify(NULL, path, 0, &m.base, l, data, &o, &error));
    assert_ok(safer_verify(NULL, path, &m.base, l, data, 1, NULL, &error));
    safer_data_free(data);
    safer_lexicon_free(l);
}

typedef struct world {
    safer_lexicon *lexicon;
    safer_data *data;
    hash_model model;
} world;

static safer_status certify_once(void *context, safer_error *e)
{
    world *w = context;
    safer_certify_options o = safer_certify_options_default();
    o.n = 50;
    o.threads = 1;
    const char *path = temporary("memory.jsonl");
    unlink(path);
    return safer_certify(NULL, path, 0, &w->model.base, w->lexicon, w->data, &o, e);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    world w = {.lexicon = make_tiny_lexicon(8, "topk:2", 0, 0),
               .data = make_two_texts(),
               .model = make_model(1, 3, 300)};
    check_every_allocation(certify_once, &w);
    safer_data_free(w.data);
    safer_lexicon_free(w.lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_soundness),
        cmocka_unit_test(test_sampled_soundness),
        cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_bound_is_attained),
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_batches_are_shared),
        cmocka_unit_test(test_one_call),
        cmocka_unit_test(test_weights_too_large),
        cmocka_unit_test(test_verify_refuses_edits),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
