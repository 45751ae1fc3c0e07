/* The vote of a text: that its draws are those of the stage `selection`, in order, and end where stats/vote.h says,
 * whatever batches and threads; that it errs as seldom as it claims; the vote of runs before it was sequential. */
#include "tiny.h"

#include "base/hash.h"
#include "certify/certificate.h"
#include "stats/select.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static safer_error error;

/* ------------------------------------------------------------------- a model */

/* Its answer is a hash of the text: class 0 for so many of 1024, no label for some more. */
typedef struct hash_model {
    safer_model base;
    uint64_t salt;
    uint32_t first, none;
} hash_model;

static int hash_answer(const hash_model *m, const char *bytes, size_t length)
{
    const uint64_t h = sf_hash(bytes, length, m->salt);
    const uint32_t ball = (uint32_t)(h & 1023);
    if (ball < m->first) return 0;
    return ball < m->first + m->none ? SF_NO_LABEL : 1 + (int)((h >> 20) % (m->base.classes - 1));
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

static hash_model make_model(uint64_t salt, size_t classes, uint32_t first, uint32_t none)
{
    return (hash_model){.base = {.class = &hash_class,
                                 .classes = classes,
                                 .labels = label_list,
                                 .hash = salt,
                                 .sha256 = digest_for(salt),
                                 .arithmetic = "portable"},
                        .salt = salt,
                        .first = first,
                        .none = none};
}

static const char long_text[] = "aa bb cc dd ee ff aa bb cc dd aa bb cc dd ee ff aa bb cc dd";

/* ------------------------------------------------------------- draw by draw */

/* The same votes asked by hand: one that may be given up, and one that insists. */
typedef struct by_hand {
    const hash_model *model;
    sf_vote vote, patient;
    uint64_t counts[CLASSES], patient_counts[CLASSES];
    uint64_t first[CLASSES]; /* the votes of the first 100 draws */
} by_hand;

static int ask_by_hand(void *context, uint64_t index, const char *text, size_t length)
{
    by_hand *h = context;
    const int answer = hash_answer(h->model, text, length);
    if (index < 100 && answer >= 0) h->first[answer]++;
    if (!sf_vote_done(&h->vote)) sf_vote_add(&h->vote, answer);
    if (!sf_vote_done(&h->patient)) sf_vote_add(&h->patient, answer);
    return 0;
}

static void vote_by_hand(by_hand *h, const sf_vote_rule *rule, const safer_lexicon *l, uint64_t seed, uint64_t count)
{
    sf_vote_begin(&h->vote, rule, h->counts);
    sf_vote_begin(&h->patient, rule, h->patient_counts);
    sf_vote_insist(&h->patient);
    assert_ok(
        safer_draw(l, long_text, strlen(long_text), SAFER_STAGE_SELECTION, seed, 0, count, ask_by_hand, h, &error));
}

/* Returns whether there was a certificate and the vote insisted for it. */
static int check_vote(const safer_lexicon *l, const hash_model *m, int label, safer_certify_options o)
{
    static const struct {
        int threads;
        size_t batch;
    } ways[] = {{1, 256}, {1, 1}, {2, 7}, {3, 64}, {5, 5000}};
    const uint64_t most = o.n0 ? o.n0 : o.n;
    const sf_vote_rule rule = sf_vote_rule_of(m->base.classes, o.alpha, most);
    by_hand h = {.model = m};
    int insisted = 0;
    vote_by_hand(&h, &rule, l, o.seed, most);
    for (size_t i = 0; i < COUNT(ways); i++) {
        safer_workspace *workspace = NULL;
        safer_certificate c;
        o.threads = ways[i].threads;
        o.batch = ways[i].batch;
        for (int again = 0; again < 2; again++) { /* nothing of a text is left in the workspace */
            assert_ok(safer_certify_text(&c, &workspace, &m->base, l, long_text, strlen(long_text), label, &o, &error));
            insisted = c.radius > 0 && h.patient.n > h.vote.n;
            const sf_vote *vote = insisted ? &h.patient : &h.vote;
            assert_int_equal(c.vote_n, vote->n);
            assert_memory_equal(c.vote_votes, vote->counts, m->base.classes * sizeof *h.counts);
            assert_int_equal(c.queries, c.vote_n + c.n);
            assert_int_equal(c.prediction, sf_vote_leader(vote->counts, m->base.classes));
            assert_int_equal(c.target, label < 0 ? c.prediction : label);
            assert_int_equal(c.abstained, vote->verdict != SF_VOTE_CLEAR);
        }
        safer_workspace_free(workspace);
    }
    return insisted;
}

static void test_draws_in_order(void **state)
{
    (void)state;
    static const uint64_t limits[] = {0, 1, 30, 2000};
    size_t insisted = 0;
    for (int kind = 0; kind < 2; kind++) {
        safer_lexicon *l = make_tiny_lexicon(8, kind ? "component" : "weighted", 0, 0);
        for (size_t classes = 2; classes <= CLASSES; classes++)
            for (uint32_t first = 300; first <= 1000; first += 20)
                for (size_t i = 0; i < COUNT(limits); i++) {
                    const hash_model m = make_model(first, classes, first, first < 900 ? 70 : 0);
                    safer_certify_options o = safer_certify_options_default();
                    o.method = i % 2 ? SAFER_METHOD_ADAPTIVE : SAFER_METHOD_BINOMIAL;
                    o.n = 700;
                    o.delta = 0.2;
                    o.n0 = limits[i];
                    o.alpha = i % 2 ? 0.05 : 0.001;
                    o.seed = first + i;
                    insisted += (size_t)check_vote(l, &m, (int)(i + classes) % 2 - 1, o);
                }
        safer_lexicon_free(l);
    }
    printf("%zu votes insisted\n", insisted);
    assert_true(insisted > 5);
}

/* Votes that name a class only after they had been given up: the certificate is about the class that they name,
 * or that leads in the end. */
static void test_another_leader(void **state)
{
    (void)state;
    safer_lexicon *l = make_tiny_lexicon(8, "component", 0, 0);
    size_t changed = 0;
    for (uint32_t seed = 0; seed < 400; seed++) {
        const hash_model m = make_model(seed % 4, 2, 560, 0);
        safer_certify_options o = safer_certify_options_default();
        const sf_vote_rule rule = sf_vote_rule_of(2, 1e-9, 2000);
        by_hand h = {.model = &m};
        safer_workspace *workspace = NULL;
        safer_certificate c;
        o.threads = 1;
        o.delta = 0.9; /* so that the wrong class is sometimes certified */
        o.alpha = 1e-9;
        o.n = o.n0 = 2000;
        o.seed = seed;
        vote_by_hand(&h, &rule, l, o.seed, o.n0);
        assert_ok(safer_certify_text(&c, &workspace, &m.base, l, long_text, strlen(long_text), -1, &o, &error));
        assert_int_equal(c.target, c.prediction);
        assert_int_equal(c.prediction, sf_vote_leader(c.vote_votes, 2));
        if (c.radius == 0 && c.vote_n > h.vote.n) {
            assert_int_not_equal(c.prediction, sf_vote_leader(h.counts, 2));
            assert_false(c.certified);
            changed++;
        }
        safer_workspace_free(workspace);
    }
    printf("%zu votes changed their leader\n", changed);
    assert_true(changed > 0);
    safer_lexicon_free(l);
}

/* -------------------------------------------------------------- n0 draws, once */

static void test_fixed_vote(void **state)
{
    (void)state;
    safer_lexicon *l = make_tiny_lexicon(8, "weighted", 0, 0);
    size_t abstained = 0, answered = 0;
    for (uint32_t first = 400; first <= 1000; first += 20) {
        const hash_model m = make_model(first, 3, first, 0);
        const sf_vote_rule any = sf_vote_rule_of(3, 0.5, 1);
        by_hand h = {.model = &m};
        safer_workspace *workspace = NULL;
        safer_certificate c;
        safer_certify_options o = safer_certify_options_default();
        o.n = 300;
        o.n0 = 100;
        vote_by_hand(&h, &any, l, o.seed, 100);
        const sf_election election = sf_elect(h.first, 3);
        assert_ok(sf_workspace_new(&workspace, &m.base, l, &o, &error));
        workspace->fixed_vote = 1;
        assert_ok(safer_certify_text(&c, &workspace, &m.base, l, long_text, strlen(long_text), -1, &o, &error));
        assert_memory_equal(c.vote_votes, h.first, 3 * sizeof *h.first);
        assert_int_equal(c.vote_n, 100);
        assert_int_equal(c.prediction, election.winner);
        assert_int_equal(c.abstained, !sf_election_is_clear(&election, o.alpha));
        (*(c.abstained ? &abstained : &answered))++;
        safer_workspace_free(workspace);
    }
    assert_true(abstained && answered);
    safer_lexicon_free(l);
}

/* ------------------------------------------------------------------- errors */

/* Of texts whose shares are known, equal ones among them: the answers that are not the one class with the largest
 * share are no more than alpha of the texts; here at alpha = .2, so that a broken vote would show. */
static void test_errors(void **state)
{
    (void)state;
    for (size_t classes = 2; classes <= 4; classes++) {
        size_t texts = 0, ties = 0, answered = 0, wrong = 0;
        for (uint32_t seed = 0; seed < 1500; seed++) {
            safer_lexicon *l = make_tiny_lexicon(seed % 30, kinds[seed % KINDS], 0, 0);
            const hash_model m = make_model(seed, classes, 1024 / (uint32_t)classes, 0);
            safer_workspace *exact = NULL, *sampled = NULL;
            safer_certificate truth, c;
            safer_certify_options o = safer_certify_options_default();
            const char *text = &long_text[3 * (seed % 6)];
            const size_t length = 3 * (1 + seed % 3) - 1;
            o.threads = 1;
            assert_ok(safer_certify_text(&truth, &exact, &m.base, l, text, length, -1, &o, &error));
            assert_true(truth.exact);
            o.method = SAFER_METHOD_BINOMIAL; /* samples whatever the text */
            o.n = 400;
            o.alpha = 0.2;
            o.seed = seed;
            assert_ok(safer_certify_text(&c, &sampled, &m.base, l, text, length, -1, &o, &error));
            if (truth.shares[truth.prediction] < 0.9) {
                texts++;
                ties += (size_t)truth.abstained;
                answered += !c.abstained;
                wrong += !c.abstained && (truth.abstained || c.prediction != truth.prediction);
            }
            safer_workspace_free(exact);
            safer_workspace_free(sampled);
            safer_lexicon_free(l);
        }
        printf("%zu classes: %zu texts, %zu ties, %zu answered, %zu wrong\n", classes, texts, ties, answered, wrong);
        assert_true(texts > 100 && ties > 20 && answered > texts / 5);
        /* alpha n plus four standard deviations. */
        assert_true((double)wrong <= 0.2 * (double)texts + 4 * sqrt(0.16 * (double)texts));
    }
}

/* ------------------------------------------------------------------ watching */

typedef struct watcher {
    size_t looks, stop; /* stop: the look that ends it */
    unsigned moments;   /* those that were shown, a bit each */
} watcher;

static int look(void *context, sf_moment moment, const safer_certificate *so_far, safer_workspace *w)
{
    watcher *s = context;
    (void)so_far, (void)w;
    s->moments |= 1u << moment;
    return s->looks++ == s->stop;
}

/* Whoever watches may end a certificate at every look; the workspace serves the next text as if nothing had been. */
static void test_stopped(void **state)
{
    (void)state;
    size_t stopped = 0, all = 0;
    for (uint32_t seed = 0; seed < 24; seed++) {
        safer_lexicon *l = make_tiny_lexicon(seed, kinds[seed % KINDS], 0, 0);
        const hash_model m = make_model(seed, 2, 500, 0);
        safer_workspace *workspace = NULL;
        safer_certify_options o = safer_certify_options_default();
        safer_certificate whole, again;
        const size_t length = seed % 2 ? 8 : sizeof long_text - 1;
        o.threads = 1;
        o.batch = 64;
        o.n = 1000;
        o.method = seed % 3 ? SAFER_METHOD_ADAPTIVE : SAFER_METHOD_BINOMIAL;
        assert_ok(sf_workspace_new(&workspace, &m.base, l, &o, &error));
        watcher s = {.stop = SIZE_MAX};
        workspace->watch = (sf_watch){look, &s};
        assert_ok(safer_certify_text(&whole, &workspace, &m.base, l, long_text, length, -1, &o, &error));
        const size_t looks = s.looks, step = looks / 16 + 1;
        for (size_t stop = 0; stop < looks; stop += stop < 8 || stop + 8 >= looks ? 1 : step, stopped++) {
            s = (watcher){.stop = stop};
            assert_fails(safer_certify_text(&again, &workspace, &m.base, l, long_text, length, -1, &o, &error),
                         SAFER_CANCELLED, "cancelled");
            assert_int_equal(s.looks, stop + 1);
        }
        s = (watcher){.stop = SIZE_MAX};
        assert_ok(safer_certify_text(&again, &workspace, &m.base, l, long_text, length, -1, &o, &error));
        assert_true(s.looks == looks && again.queries == whole.queries && again.bound == whole.bound &&
                    again.radius == whole.radius && again.prediction == whole.prediction);
        all += s.moments == 0xf;
        safer_workspace_free(workspace);
        safer_lexicon_free(l);
    }
    assert_true(stopped > 100 && all > 4);
}

/* One text at a time: what is wrong with a call is named, and nothing is asked. */
static void test_misuse(void **state)
{
    (void)state;
    safer_lexicon *l = make_tiny_lexicon(1, kinds[0], 0, 0), *other = make_tiny_lexicon(2, kinds[0], 0, 0);
    const hash_model m = make_model(1, 2, 500, 0), another = make_model(2, 2, 500, 0);
    const safer_certify_options o = safer_certify_options_default();
    safer_workspace *w = NULL;
    safer_certificate c;
    char *json = NULL;
    assert_fails(safer_certify_text(&c, &w, &m.base, l, "aa", 2, 2, &o, &error), SAFER_INVALID,
                 "label: 2, but the model has 2 classes");
    assert_fails(safer_certify_text(&c, &w, &m.base, l, "aa\xff", 3, -1, &o, &error), SAFER_INPUT,
                 "not valid UTF-8 at byte 2");
    assert_fails(safer_certify_text(&c, &w, &m.base, other, "aa", 2, -1, &o, &error), SAFER_INVALID, "workspace: ");
    assert_fails(safer_certify_text(&c, &w, &another.base, l, "aa", 2, -1, &o, &error), SAFER_INVALID, "workspace: ");
    assert_ok(safer_certify_text(&c, &w, &m.base, l, "aa", 2, -1, &o, &error));
    assert_ok(safer_answer_json(&json, &c, &m.base, &error));
    free(json);
    for (int prediction = -1; prediction <= 2; prediction += 3) {
        safer_certificate changed = c;
        changed.prediction = prediction;
        assert_fails(safer_answer_json(&json, &changed, &m.base, &error), SAFER_INVALID, "no class of the model");
    }
    c.target = 1 - c.target;
    assert_fails(safer_answer_json(&json, &c, &m.base, &error), SAFER_INVALID, "about another class");
    assert_true(safer_reported_radius(0) == 1 && safer_reported_radius(SAFER_RADII) == SAFER_ALL);
    safer_workspace_free(w);
    safer_lexicon_free(l);
    safer_lexicon_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_draws_in_order), cmocka_unit_test(test_another_leader),
                                       cmocka_unit_test(test_fixed_vote),     cmocka_unit_test(test_errors),
                                       cmocka_unit_test(test_stopped),        cmocka_unit_test(test_misuse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
