/* Training by interval bounds: gradients against finite differences of a naive reference in double;
 * the bounds that are trained on; runs. */
#define _GNU_SOURCE
#include "base/rng.h"
#include "ibp/network.h"
#include "train/ibp_step.h"
#include "training.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ------------------------------------------------------------ the reference */

enum { V = 14, D = 5, SETS = 4, TEXTS = 3, WORDS = 15, MOST = 400 };

/* Sets 0..3; items V+k. Set 3 holds the unknown word. */
static uint32_t members[] = {1, 2, 3, 4, 5, 2, 1, 3, 7, 0};
static size_t set_offsets[] = {0, 3, 5, 8, 10};
static sf_ibp_sets sets = {members, set_offsets, SETS};
static uint32_t items[WORDS] = {V, 9, V + 1, 10, V + 2, V, 11, V + 3, 0, V + 1, 12, 13, V + 2, 8, 1};
static const size_t offsets[TEXTS + 1] = {0, 6, 7, WORDS};
static const int labels[TEXTS] = {1, 0, 2};
static const sf_ibp_batch batch = {items, offsets, labels, TEXTS};

typedef struct reference {
    sf_ibp_layout l;
    double kappa, eps, triplet, margin;
    uint32_t others[8];
} reference;

static double relu(double x) { return x > 0 ? x : 0; }

/* What the interval is taken of: all hull numbers of a word. */
static void transform(double *out, const reference *r, const double *p, uint32_t word)
{
    const sf_ibp_layout *l = &r->l;
    for (size_t q = 0; q < l->hull; q++) {
        out[q] = l->shape.wordwise ? p[l->word_bias + q] : 0;
        for (size_t d = 0; d < D; d++) out[q] += p[l->first + q * D + d] * p[word * D + d];
    }
}

/* The interval of an item, shrunk, and activated after Jia. */
static void item_interval(double *value, double *low, double *high, const reference *r, const double *p, uint32_t item)
{
    const sf_ibp_layout *l = &r->l;
    double pre[64];
    uint32_t own = item < V ? item : members[set_offsets[item - V]];
    transform(value, r, p, own);
    memcpy(low, value, l->hull * sizeof *low);
    memcpy(high, value, l->hull * sizeof *high);
    for (size_t m = item < V ? 0 : set_offsets[item - V]; item >= V && m < set_offsets[item - V + 1]; m++) {
        transform(pre, r, p, members[m]);
        for (size_t q = 0; q < l->hull; q++) {
            low[q] = fmin(low[q], pre[q]);
            high[q] = fmax(high[q], pre[q]);
        }
    }
    for (size_t q = 0; q < l->hull; q++) {
        low[q] = value[q] + r->eps * (low[q] - value[q]);
        high[q] = value[q] + r->eps * (high[q] - value[q]);
        if (!l->shape.wordwise) continue;
        low[q] = relu(low[q]);
        high[q] = relu(high[q]);
        value[q] = relu(value[q]);
    }
}

/* low, high (outputs) of W x + b for x within [low, high] (inputs). */
static void affine(double *out_low, double *out_high, const double *weight, const double *bias, const double *low,
                   const double *high, size_t inputs, size_t outputs)
{
    for (size_t o = 0; o < outputs; o++) {
        out_low[o] = out_high[o] = bias ? bias[o] : 0;
        for (size_t i = 0; i < inputs; i++) {
            double w = weight[o * inputs + i];
            out_low[o] += w >= 0 ? w * low[i] : w * high[i];
            out_high[o] += w >= 0 ? w * high[i] : w * low[i];
        }
    }
}

/* The hidden layer of a text, as an interval: `run` 0: of the text itself, 1: of the box. */
static void hidden_interval(double *hidden_low, double *hidden_high, const reference *r, const double *p, size_t text,
                            int run)
{
    const sf_ibp_layout *l = &r->l;
    size_t N = offsets[text + 1] - offsets[text], T = l->shape.width, F = l->features, Q = l->hull, H = l->shape.hidden;
    double low_pool[64] = {0}, high_pool[64] = {0};
    for (size_t i = 0; i < N; i++) {
        double window_low[64], window_high[64];
        for (size_t f = 0; f < F; f++) window_low[f] = window_high[f] = l->shape.convolution ? p[l->conv_bias + f] : 0;
        for (size_t t = 0; t < T; t++) {
            double value[64], low[64], high[64], tap_low[64], tap_high[64];
            if (i + t < (T - 1) / 2 || i + t - (T - 1) / 2 >= N) continue;
            item_interval(value, low, high, r, p, items[offsets[text] + i + t - (T - 1) / 2]);
            if (!run) memcpy(low, value, sizeof low), memcpy(high, value, sizeof high);
            if (l->shape.wordwise && l->shape.convolution) {
                affine(tap_low, tap_high, p + l->conv_weight + t * F * Q, NULL, low, high, Q, F);
            } else {
                memcpy(tap_low, low + (l->shape.convolution ? t * F : 0), F * sizeof *low);
                memcpy(tap_high, high + (l->shape.convolution ? t * F : 0), F * sizeof *high);
            }
            for (size_t f = 0; f < F; f++) window_low[f] += tap_low[f], window_high[f] += tap_high[f];
        }
        for (size_t f = 0; f < F; f++) {
            double a = l->shape.convolution ? relu(window_low[f]) : window_low[f],
                   b = l->shape.convolution ? relu(window_high[f]) : window_high[f];
            low_pool[f] = !l->shape.max_pool ? low_pool[f] + a / (double)N : i ? fmax(low_pool[f], a) : a;
            high_pool[f] = !l->shape.max_pool ? high_pool[f] + b / (double)N : i ? fmax(high_pool[f], b) : b;
        }
    }
    if (l->pooled_hidden)
        for (size_t h = 0; h < H; h++)
            hidden_low[h] = low_pool[h] + p[l->hidden_bias + h], hidden_high[h] = high_pool[h] + p[l->hidden_bias + h];
    else
        affine(hidden_low, hidden_high, p + l->hidden_weight, p + l->hidden_bias, low_pool, high_pool, F, H);
    for (size_t h = 0; h < H; h++) hidden_low[h] = relu(hidden_low[h]), hidden_high[h] = relu(hidden_high[h]);
}

/* Upper bounds of logit[k] - logit[y], or with run 0 that difference itself. */
static void worst_margins(double *out, const reference *r, const double *p, size_t text, int run)
{
    const sf_ibp_layout *l = &r->l;
    size_t H = l->shape.hidden, y = (size_t)labels[text];
    double low[64], high[64];
    hidden_interval(low, high, r, p, text, run);
    for (size_t k = 0; k < l->shape.classes; k++) {
        out[k] = p[l->output_bias + k] - p[l->output_bias + y];
        for (size_t h = 0; h < H; h++) {
            double w = p[l->output_weight + k * H + h] - p[l->output_weight + y * H + h];
            out[k] += w >= 0 ? w * high[h] : w * low[h];
        }
    }
}

static double cross_entropy(const double *margins, size_t K)
{
    double sum = 0;
    for (size_t k = 0; k < K; k++) sum += exp(margins[k]);
    return log(sum);
}

static double triplet_loss(const reference *r, const double *p)
{
    double sum = 0;
    for (size_t i = 0; i < WORDS; i++) {
        double extent = 0, far = 0;
        uint32_t item = items[i];
        const double *own = p + (item < V ? item : members[set_offsets[item - V]]) * D;
        for (size_t c = 0; c < D; c++) {
            double most = 0;
            for (size_t m = item < V ? 0 : set_offsets[item - V]; item >= V && m < set_offsets[item - V + 1]; m++)
                most = fmax(most, fabs(own[c] - p[members[m] * D + c]));
            extent += most;
        }
        for (size_t k = 0; k < 8; k++) {
            double distance = 0;
            for (size_t c = 0; c < D; c++) distance += fabs(own[c] - p[r->others[k] * D + c]);
            far += fmin(distance, r->margin) / 8;
        }
        sum += relu(extent - far + r->margin);
    }
    return r->triplet * sum / WORDS;
}

static double reference_loss(const reference *r, const double *p)
{
    double sum = 0, margins[8];
    for (size_t b = 0; b < TEXTS; b++) {
        worst_margins(margins, r, p, b, 0);
        sum += (1 - r->kappa) * cross_entropy(margins, r->l.shape.classes);
        worst_margins(margins, r, p, b, 1);
        sum += r->kappa * cross_entropy(margins, r->l.shape.classes);
    }
    return sum / TEXTS + (r->triplet > 0 ? triplet_loss(r, p) : 0);
}

/* ---------------------------------------------------------------- gradients */

/* Case c: both nets, both defences, and in every third case the greatest numbers of a text instead of their mean. */
static sf_ibp_layout make_layout(int c)
{
    sf_ibp_layout l;
    int convolution = c & 1, wordwise = c >> 1 & 1;
    sf_ibp_shape s = {.convolution = convolution,
                      .wordwise = wordwise,
                      .max_pool = c % 3 == 1 && (convolution || wordwise),
                      .vocabulary = V,
                      .dim = D,
                      .inner = wordwise ? 6 : 0,
                      .width = convolution ? 3 : 1,
                      .filters = convolution ? 7 : 0,
                      .hidden = 4,
                      .classes = 3,
                      .max_words = 1000};
    sf_ibp_layout_make(&l, &s);
    assert_true(l.size < MOST);
    return l;
}

static void random_parameters(float *p, const sf_ibp_layout *l)
{
    for (size_t i = 0; i < l->size; i++) p[i] = next_float();
}

static void gradients_are_right(void **unused)
{
    (void)unused;
    safer_error error = {0};
    size_t checked = 0;
    for (int c = 0; c < 48; c++) { /* several eps, with triplets on either vectors */
        reference r = {.l = make_layout(c), .kappa = 0.3, .eps = c < 16 ? 1 : 0.6, .margin = 3};
        int freeze = c >> 2 & 1;
        r.triplet = c >= 32 ? 0.7 : 0;
        float p[MOST], gradient[MOST];
        double exact[MOST], loss;
        sf_ibp_step *step = NULL;
        sf_ibp_options o = {.rate = 0.001,
                            .freeze = freeze,
                            .triplet = r.triplet,
                            .margin = r.margin,
                            .threads = 1,
                            .seed = (uint64_t)c};
        random_parameters(p, &r.l);
        for (size_t i = 0; i < r.l.size; i++) exact[i] = (double)p[i];
        sf_stream stream = sf_stream_of(o.seed, UINT64_C(0x7472697000000000), SF_STAGE_TRAINING);
        for (uint32_t k = 0; k < 8; k++) r.others[k] = 1 + sf_draw_below(stream, 5, k, V - 1);
        assert_ok(sf_ibp_step_new(&step, &r.l, &sets, &o, WORDS, &error));
        for (int again = 0; again < 2; again++) /* a second batch finds no traces of the first */
            assert_ok(sf_ibp_step_gradient(&loss, step, p, &batch, r.kappa, r.eps, 5, &error));
        double expected = reference_loss(&r, exact);
        if (fabs(loss / TEXTS - expected) > 1e-5 * (1 + fabs(expected)))
            fail_msg("case %d: loss %.7f, not %.7f", c, loss / TEXTS, expected);
        sf_ibp_step_read(gradient, step);
        for (size_t i = 0; i < r.l.size; i++) {
            const double h = 1e-6;
            double kept = exact[i],
                   (*loss_of)(const reference *, const double *) = i < V * D && freeze ? triplet_loss : reference_loss;
            double here = loss_of(&r, exact);
            exact[i] = kept + h;
            double up = loss_of(&r, exact);
            exact[i] = kept - h;
            double down = loss_of(&r, exact), slope = (up - down) / (2 * h);
            exact[i] = kept;
            if (fabs((up - here) - (here - down)) > 1e-3 * h + 1e-13) continue; /* a kink: there is no slope */
            if (fabs(slope - (double)gradient[i]) > 2e-4 * (1 + fabs(slope)))
                fail_msg("case %d, parameter %zu of %zu: %.6f, not %.6f", c, i, r.l.size, (double)gradient[i], slope);
            checked++;
        }
        sf_ibp_step_free(step);
    }
    assert_true(checked > 48 * 150);
}

/* With eps 0 the box is the text: the worst margins are the differences of the logits. */
static void no_box_is_the_plain_network(void **unused)
{
    (void)unused;
    safer_error error = {0};
    for (int c = 0; c < 8; c++) {
        sf_ibp_layout l = make_layout(c);
        float p[MOST];
        double loss;
        sf_ibp_step *step = NULL;
        sf_ibp_options o = {.dropout = c >= 4 ? 0.5f : 0, .threads = 1, .seed = 3};
        random_parameters(p, &l);
        assert_ok(sf_ibp_step_new(&step, &l, &sets, &o, WORDS, &error));
        assert_ok(sf_ibp_step_gradient(&loss, step, p, &batch, 0.5, 0, 1, &error));
        const float *logits = sf_ibp_step_logits(step), *worst = sf_ibp_step_worst(step);
        for (size_t b = 0; b < TEXTS; b++)
            for (size_t k = 0; k < 3; k++)
                assert_true(fabsf(worst[b * 3 + k] - (logits[b * 3 + k] - logits[b * 3 + (size_t)labels[b]])) < 1e-4f);
        sf_ibp_step_free(step);
    }
}

/* The bounds that are trained on hold for every substitution, and the certificate's are no looser. */
static void trained_bounds_hold(void **unused)
{
    (void)unused;
    safer_error error = {0};
    uint32_t original[WORDS];
    memcpy(original, items, sizeof items);
    for (int c = 0; c < 40; c++) {
        sf_ibp_layout l = make_layout(c);
        sf_cnn_layout folded_layout;
        float p[MOST], folded[2 * MOST], scale[64], worst[TEXTS * 3];
        double loss;
        sf_ibp_step *step = NULL;
        sf_cnn_net *net = NULL;
        sf_cnn_scratch *scratch = NULL;
        sf_ibp_options o = {.threads = 1};
        random_parameters(p, &l);
        sf_ibp_fold_layout(&folded_layout, &l);
        assert_true(folded_layout.size <= 2 * MOST && folded_layout.features <= 64);
        sf_ibp_fold(folded, &l, p, 1);
        assert_int_equal(sf_cnn_scales(scale, &folded_layout, folded, 1), 0);
        assert_ok(sf_cnn_net_new(&net, &folded_layout, folded, scale, &error));
        assert_ok(sf_cnn_scratch_new(net, &scratch, &error));
        assert_ok(sf_ibp_step_new(&step, &l, &sets, &o, WORDS, &error));
        assert_ok(sf_ibp_step_gradient(&loss, step, p, &batch, 0.5, 1, 1, &error));
        memcpy(worst, sf_ibp_step_worst(step), sizeof worst);
        for (uint32_t way = 0; way < 648; way++) { /* of texts 0 and 2, in step */
            uint32_t rest = way;
            for (size_t i = 0; i < WORDS; i++) {
                size_t set = original[i] - V;
                if (original[i] < V) continue;
                size_t size = set_offsets[set + 1] - set_offsets[set];
                items[i] = members[set_offsets[set] + rest % size];
                rest = i == offsets[1] - 1 ? way : rest / (uint32_t)size;
            }
            assert_ok(sf_ibp_step_gradient(&loss, step, p, &batch, 0.5, 1, 1, &error));
            const float *logits = sf_ibp_step_logits(step);
            for (size_t b = 0; b < TEXTS; b++) {
                int answer;
                size_t y = (size_t)labels[b];
                for (size_t k = 0; k < 3; k++)
                    assert_true(logits[b * 3 + k] - logits[b * 3 + y] <= worst[b * 3 + k] + 1e-4f);
                if (way % 40) continue;
                /* The model file's network is the same one, in fixed point. */
                assert_ok(sf_cnn_classify_ids(&answer, NULL, net, items + offsets[b], offsets[b + 1] - offsets[b],
                                              scratch, &error));
                for (size_t k = 0; k < 3; k++)
                    assert_true(fabsf(sf_cnn_scratch_logits(scratch)[k] - logits[b * 3 + k]) < 2e-2f);
            }
        }
        memcpy(items, original, sizeof items);
        sf_ibp_network_scratch *ibp = NULL;
        for (size_t b = 0; b < TEXTS; b++) {
            uint32_t ids[64];
            size_t begin[16] = {0}, count = 0, N = offsets[b + 1] - offsets[b];
            double margins[3];
            for (size_t i = 0; i < N; i++) {
                uint32_t item = items[offsets[b] + i];
                if (item < V) ids[count++] = item;
                for (size_t m = item < V ? 0 : set_offsets[item - V]; item >= V && m < set_offsets[item - V + 1]; m++)
                    ids[count++] = members[m];
                begin[i + 1] = count;
            }
            sf_ibp_choices text = {ids, begin, N};
            assert_ok(sf_ibp_network_margins(margins, NULL, net, &text, (size_t)labels[b], &ibp, &error));
            for (size_t k = 0; k < 3; k++) assert_true(margins[k] >= -(double)worst[b * 3 + k] - 2e-2);
        }
        sf_ibp_network_scratch_free(ibp);
        sf_ibp_step_free(step);
        sf_cnn_scratch_free(scratch);
        sf_cnn_net_free(net);
    }
}

/* ------------------------------------------------------------------- training */

static safer_train_options small_options(const char *defense, const char *arch, const safer_data *data,
                                         const safer_lexicon *lexicon)
{
    safer_train_options o = safer_train_options_default();
    assert_int_equal(safer_defense_parse(&o.defense.kind, defense, NULL), SAFER_OK);
    assert_int_equal(safer_arch_parse(&o.arch, arch, NULL), SAFER_OK);
    o.train = data;
    o.lexicon = lexicon;
    o.cnn.dim = 8;
    o.cnn.filters = 10;
    o.cnn.hidden = 6;
    o.course.rate = 0.01;
    o.course.batch = 7;
    o.course.epochs = 4;
    o.cnn.min_count = 1;
    o.threads = 1;
    return o;
}

static const char *const defenses[] = {"ibp-jia", "ibp-huang"}, *const arches[] = {"cnn", "bow"};

static void threads_do_not_matter(void **unused)
{
    (void)unused;
    safer_data *data = make_reviews_with(600, 1);
    safer_lexicon *lexicon = make_review_lexicon("representative");
    for (int c = 0; c < 8; c++) {
        safer_train_options o = small_options(defenses[c & 1], arches[c >> 1 & 1], data, lexicon);
        o.course.batch = 200; /* some 500 different words: more than one block of them */
        o.course.epochs = 2;
        o.defense.triplet = c >= 4 ? 0.1 : 0;
        o.cnn.hidden = o.cnn.filters = 70; /* more than one share of columns */
        check_threads_do_not_matter(safer_train, &o);
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void stopped_runs_are_resumed(void **unused)
{
    (void)unused;
    static const stop_point stops[] = {{"epoch 2 of 4: loss", 0, 1}};
    safer_data *data = make_reviews(100);
    safer_lexicon *lexicon = make_review_lexicon("representative");
    const char *vectors = make_review_vectors();
    for (int c = 0; c < 3; c++) {
        safer_train_options o = small_options(defenses[c & 1], arches[c >> 1 & 1], data, lexicon);
        o.cnn.vectors = c ? vectors : NULL; /* frozen ones are no part of the checkpoint */
        check_stopped_runs_are_resumed(safer_train, &o, 90, stops, COUNT(stops));
        safer_train_options changed[2] = {o, o};
        changed[0].defense.kappa = 0.5;
        changed[1].course.epochs = 6; /* it decides how fast the intervals grow */
        check_other_options_are_refused(safer_train, &o, "epoch 2 of 4: loss", changed, COUNT(changed));
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* Every way to train learns, and certifies what it learned, in both senses. */
static void it_learns(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(300);
    safer_lexicon *lexicon = make_review_lexicon("representative");
    const char *output = temporary("learned"), *vectors = make_review_vectors();
    for (int c = 0; c < 16; c++) {
        safer_train_options o = small_options(defenses[c & 1], arches[c >> 1 & 1], data, lexicon);
        safer_train_report report;
        safer_model *model = NULL;
        o.defense.triplet = c >> 2 & 1 ? 0.05 : 0;
        o.defense.margin = 2;
        o.cnn.vectors = c >> 3 & 1 ? vectors : NULL;
        o.defense.train_vectors = o.cnn.vectors && o.defense.triplet > 0;
        o.course.epochs = 24;
        o.course.dropout = 0;
        assert_ok(safer_train(output, &o, &report, &error));
        if (!(report.dev_accuracy > (o.cnn.vectors ? 0.7 : 0.95)))
            fail_msg("case %d: dev %.3f, loss %.3f", c, report.dev_accuracy, report.loss);
        check_report(&report, 270, 1000, 100);
        assert_ok(safer_model_open(&model, output, &error));
        assert_string_equal(safer_model_arch(model), arches[c >> 1 & 1]);
        assert_non_null(strstr(safer_model_trained_with(model), defenses[c & 1]));
        /* Synonyms are known, though no text holds them and the kernel never draws them. */
        assert_true(sf_cnn_number((const sf_cnn_model *)model, "splendid", 8) != 0);
        assert_true(sf_cnn_number((const sf_cnn_model *)model, "flick", 5) != 0);
        safer_workspace *workspace = NULL;
        safer_certificate certificate;
        safer_certify_options certify = safer_certify_options_default();
        const char *text = "A GOOD film, the story was fine and great";
        certify.method = SAFER_METHOD_IBP;
        assert_ok(
            safer_certify_text(&certificate, &workspace, model, lexicon, text, strlen(text), -1, &certify, &error));
        assert_true(certificate.exact && certificate.queries == 0 && certificate.slots == 5 &&
                    certificate.prediction == certificate.base);
        assert_true(certificate.radius == (certificate.certified ? SAFER_ALL : 0));
        assert_true(certificate.margins && certificate.margins[certificate.target] == 0);
        if (!o.cnn.vectors) assert_true(certificate.certified && certificate.target == 1);
        safer_workspace_free(workspace);
        safer_model_free(model);
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void bad_options_are_named(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(40);
    safer_lexicon *lexicon = make_review_lexicon("representative");
    const safer_train_options good = small_options("ibp-huang", "cnn", data, lexicon);
    safer_train_options o;
#define REFUSED(words, change) \
    o = good; \
    change; \
    assert_fails(safer_train(temporary("bad"), &o, NULL, &error), SAFER_INVALID, words)
    REFUSED("defense: unknown", o.defense.kind = (safer_defense)4);
    REFUSED("not ngram", o.arch = SAFER_ARCH_NGRAM);
    REFUSED("lexicon is not given", o.lexicon = NULL);
    REFUSED("pool is \"max\"; for bow", o.arch = SAFER_ARCH_BOW; o.defense.kind = SAFER_DEFENSE_IBP_HUANG;
            o.course.pool = SAFER_POOL_MAX);
    REFUSED("hidden is 0", o.cnn.hidden = 0);
    REFUSED("widths is \"3,4\"", o.cnn.widths = "3,4");
    REFUSED("kappa is 1.5", o.defense.kappa = 1.5);
    REFUSED("ramp is -5", o.defense.ramp = -5);
    REFUSED("triplet is -1", o.defense.triplet = -1);
    REFUSED("margin is", o.defense.margin = (double)NAN);
    REFUSED("contradict", (o.cnn.freeze = 1, o.defense.train_vectors = 1));
    REFUSED("freeze and triplet contradict", (o.cnn.freeze = 1, o.defense.triplet = 1));
    REFUSED("triplet is 1: only", (o.defense.kind = SAFER_DEFENSE_NONE, o.defense.triplet = 1));
    REFUSED("train_vectors is for a defense", (o.defense.kind = SAFER_DEFENSE_NONE, o.defense.train_vectors = 1));
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void memory_may_run_out(void **unused)
{
    (void)unused;
    safer_data *data = make_reviews(24);
    safer_lexicon *lexicon = make_review_lexicon("representative");
    safer_train_options o = small_options("ibp-jia", "cnn", data, lexicon);
    o.course.epochs = 1;
    check_training_memory(safer_train, &o, 0);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_right),      cmocka_unit_test(no_box_is_the_plain_network),
        cmocka_unit_test(trained_bounds_hold),      cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(stopped_runs_are_resumed), cmocka_unit_test(it_learns),
        cmocka_unit_test(bad_options_are_named),    cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
