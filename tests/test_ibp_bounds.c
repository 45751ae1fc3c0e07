/* Interval bounds: against all substitutions, on networks of every kind with weights meant to break
 * them, and against long double; their records. Whole texts: test_margins.c. */
#define _GNU_SOURCE
#include "base/buffer.h"
#include "certify/record.h"
#include "ibp/bounds.h"
#include "ibp/network.h"
#include "support.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

/* ------------------------------------------------------------------ networks */

enum { WORDS_KNOWN = 12 };

typedef struct network {
    sf_cnn_layout layout;
    float parameters[4000], scale[200];
    sf_cnn_net *net;
    sf_cnn_scratch *scratch;
    sf_ibp_network_scratch *ibp;
} network;

static void network_open(network *n, sf_cnn_shape shape, float (*weight)(void))
{
    safer_error error = {0};
    shape.vocabulary = WORDS_KNOWN;
    shape.max_words = 1000;
    if (!shape.convolution) shape.width_count = shape.widths[0] = 1, shape.filters = shape.dim;
    sf_cnn_layout_make(&n->layout, &shape);
    assert_true(n->layout.size <= 4000 && n->layout.features <= 200);
    for (size_t i = 0; i < n->layout.size; i++) n->parameters[i] = weight();
    assert_int_equal(sf_cnn_scales(n->scale, &n->layout, n->parameters, 1), 0);
    assert_ok(sf_cnn_net_new(&n->net, &n->layout, n->parameters, n->scale, &error));
    assert_ok(sf_cnn_scratch_new(n->net, &n->scratch, &error));
}

static void network_close(network *n)
{
    sf_ibp_network_scratch_free(n->ibp);
    sf_cnn_scratch_free(n->scratch);
    sf_cnn_net_free(n->net);
    *n = (network){0};
}

static sf_cnn_shape any_shape(uint32_t c)
{
    sf_cnn_shape s = {.convolution = (int)(c % 2),
                      .max_pool = (int)(c / 2 % 2),
                      .dim = 2 + c % 5,
                      .hidden = c / 4 % 2 ? 6 : 0,
                      .classes = 2 + c % 3};
    if (s.convolution)
        s = (sf_cnn_shape){.convolution = 1,
                           .max_pool = s.max_pool,
                           .dim = s.dim,
                           .hidden = s.hidden,
                           .classes = s.classes,
                           .filters = 5,
                           .width_count = 2,
                           .widths = {3, 2}};
    return s;
}

/* A random text with up to `most` words to choose from at a position; some repeat. */
static sf_ibp_choices any_text(uint32_t *ids, size_t *begin, size_t N, uint32_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < N; i++) {
        begin[i] = count;
        for (uint32_t k = 0, size = 1 + next_below(most); k < size; k++) ids[count++] = next_below(WORDS_KNOWN);
    }
    begin[N] = count;
    return (sf_ibp_choices){ids, begin, N};
}

/* The program's own lead of `target` over every class, for one choice; its answer. */
static int program_margins(double *out, network *n, const uint32_t *ids, size_t N, size_t target)
{
    safer_error error = {0};
    int label;
    assert_ok(sf_cnn_classify_ids(&label, NULL, n->net, ids, N, n->scratch, &error));
    const float *logits = sf_cnn_scratch_logits(n->scratch);
    for (size_t k = 0; k < n->layout.shape.classes; k++) out[k] = (double)logits[target] - (double)logits[k];
    return label;
}

/* Every way to choose from a text of up to 8 positions, one after the other: 0 when all were seen. */
static int next_choice(uint32_t *chosen, size_t *way, const sf_ibp_choices *text)
{
    size_t rest = (*way)++;
    for (size_t i = 0; i < text->count; i++) {
        const size_t size = text->begin[i + 1] - text->begin[i];
        chosen[i] = text->ids[text->begin[i] + rest % size];
        rest /= size;
    }
    return rest == 0;
}

/* All substitutions of tiny texts: none leads by less than the bound. Returns whether the bounds
 * certify; least (classes): the smallest leads. */
static int check_all(double *margins, double *least, network *n, const sf_ibp_choices *text, size_t target)
{
    safer_error error = {0};
    uint32_t chosen[8];
    double one[8], extent;
    const size_t K = n->layout.shape.classes;
    assert_ok(sf_ibp_network_margins(margins, &extent, n->net, text, target, &n->ibp, &error));
    const int certified = sf_ibp_certifies(margins, K, target);
    for (size_t k = 0; k < K; k++) least[k] = DBL_MAX;
    for (size_t way = 0; next_choice(chosen, &way, text);) {
        const int label = program_margins(one, n, chosen, text->count, target);
        if (certified && label != (int)target) fail_msg("certified %zu, answered %d", target, label);
        for (size_t k = 0; k < K; k++) {
            const double logit = fabs((double)sf_cnn_scratch_logits(n->scratch)[k]);
            if (extent < DBL_MAX && !(logit <= extent))
                fail_msg("logit %zu is %.9g from 0, bound %.9g", k, logit, extent);
            if (k != target && margins[k] > -DBL_MAX && !(one[k] >= margins[k]))
                fail_msg("class %zu leads by %.9g, bound %.9g", k, one[k], margins[k]);
            least[k] = one[k] < least[k] ? one[k] : least[k];
        }
    }
    return certified;
}

/* Random networks of every kind. */
static void no_substitution_violates_a_bound(void **unused)
{
    (void)unused;
    size_t certified = 0, tight = 0;
    for (uint32_t c = 0; c < 400; c++) {
        network n = {0};
        uint32_t ids[64];
        size_t begin[9];
        double margins[8], least[8];
        network_open(&n, any_shape(c), next_float);
        sf_ibp_choices text = any_text(ids, begin, c % 6, 4);
        size_t K = n.layout.shape.classes, target = next_below((uint32_t)K);
        certified += (size_t)check_all(margins, least, &n, &text, target);
        for (size_t k = 0; k < K; k++) tight += k != target && least[k] - margins[k] < 1e-4;
        network_close(&n);
    }
    assert_true(certified > 20 && tight > 40); /* the bounds are worth something */
}

/* Weights of all sizes, around one that changes from network to network. */
static int centre, spread;

static float hostile(void)
{
    if (next_below(8) == 0) return 0;
    return (next_below(2) ? 1.0f : -1.0f) *
           ldexpf(1 + (next_below(2) ? 0 : fabsf(next_float())), centre + (int)next_below((uint32_t)spread + 1));
}

/* Makes classes that differ by rounding alone: equal, or neighbours; and hidden units that cancel. */
static void almost_equal(network *n)
{
    const sf_cnn_layout *l = &n->layout;
    float *weight = n->parameters + l->output_weight, *bias = n->parameters + l->output_bias;
    for (size_t k = 1; k < l->shape.classes; k++) {
        for (size_t i = 0; i < l->inputs; i++) {
            const float w = weight[i];
            weight[k * l->inputs + i] = next_below(2) ? w : nextafterf(w, next_below(2) ? FLT_MAX : -FLT_MAX);
        }
        bias[k] = next_below(2) ? bias[0] : nextafterf(bias[0], FLT_MAX);
    }
    float *hidden = n->parameters + l->hidden_weight;
    for (size_t i = 0; l->shape.hidden && i + 1 < l->shape.hidden * l->features; i += 2)
        hidden[i + 1] = next_below(4) ? -hidden[i] : hidden[i];
}

/* The same with weights that are huge, tiny, denormal or cancel, and with scales of a file that
 * nobody made by training. */
static void hostile_weights_violate_no_bound(void **unused)
{
    (void)unused;
    static const int centres[] = {-149, -140, -126, -75, -20, 0, 5, 30, 60, 110, 125};
    enum { CENTRES = sizeof centres / sizeof centres[0], CASES = 24000 };
    size_t certified[CENTRES] = {0}, sum = 0;
    safer_error error = {0};
    for (uint32_t c = 0; c < CASES; c++) {
        network n = {0};
        uint32_t ids[64];
        size_t begin[9];
        double margins[8], least[8];
        const size_t which = c % CENTRES;
        centre = centres[which];
        spread = (int)next_below(c % 3 ? 3 : 24);
        if (centre + spread > 126) spread = 126 - centre;
        network_open(&n, any_shape(c / 3), hostile);
        const sf_cnn_layout *l = &n.layout;
        if (next_below(2)) almost_equal(&n);
        if (next_below(3) == 0) /* the last layer at a size of its own */
            for (size_t i = l->output_weight; i < l->size; i++)
                n.parameters[i] = next_float() * ldexpf(1, (int)next_below(40) - 30);
        if (next_below(2))
            assert_int_equal(sf_cnn_scales(n.scale, l, n.parameters, 1), 0);
        else
            for (size_t p = 0; p < l->features; p++)
                n.scale[p] = next_below(9) ? ldexpf(1, (int)next_below(276) - 149) : FLT_MAX;
        sf_cnn_net_free(n.net);
        n.net = NULL;
        assert_ok(sf_cnn_net_new(&n.net, l, n.parameters, n.scale, &error));
        sf_ibp_choices text = any_text(ids, begin, c % 5, 3);
        /* Certificates are about the class that leads: ask for it. */
        int target;
        uint32_t first[8];
        for (size_t i = 0; i < text.count; i++) first[i] = ids[begin[i]];
        assert_ok(sf_cnn_classify_ids(&target, NULL, n.net, first, text.count, n.scratch, &error));
        certified[which] += (size_t)check_all(margins, least, &n, &text, (size_t)target);
        network_close(&n);
    }
    for (size_t i = 0; i < CENTRES; i++) {
        printf("around 2^%d: %zu certified\n", centres[i], certified[i]);
        sum += certified[i];
    }
    assert_true(sum > CASES / 10);
}

#if defined(__SSE__)
/* Libraries built for speed switch a whole process to treating denormal numbers as 0. What is
 * bounded and answered in such a process agrees, too. */
static void denormals_may_be_flushed(void **unused)
{
    (void)unused;
    const unsigned flush = 0x8040, before = _mm_getcsr(); /* results, operands */
    size_t certified = 0;
    for (uint32_t c = 0; c < 2000; c++) {
        network n = {0};
        uint32_t ids[64];
        size_t begin[9];
        double margins[8], least[8];
        sf_cnn_shape shape = any_shape(c);
        shape.hidden = 0;
        centre = -20;
        spread = 2;
        network_open(&n, shape, hostile);
        for (size_t i = n.layout.output_weight; i < n.layout.size; i++)
            n.parameters[i] = next_float() * ldexpf(1, -(int)next_below(70) - 60);
        for (size_t k = 0; k < shape.classes; k++) n.parameters[n.layout.output_bias + k] = 0;
        sf_ibp_choices text = any_text(ids, begin, 1 + c % 4, 2);
        _mm_setcsr(before | flush);
        certified += (size_t)check_all(margins, least, &n, &text, next_below((uint32_t)shape.classes));
        _mm_setcsr(before);
        network_close(&n);
    }
    assert_true(certified > 100);
}
#endif

/* Larger texts and sets, sampled. */
static void samples_stay_within_bounds(void **unused)
{
    (void)unused;
    safer_error error = {0};
    for (uint32_t c = 0; c < 60; c++) {
        network n = {0};
        enum { LONG = 40 };
        uint32_t ids[LONG * 10], chosen[LONG];
        size_t begin[LONG + 1];
        double margins[8], one[8];
        network_open(&n, any_shape(c), next_float);
        sf_ibp_choices text = any_text(ids, begin, LONG, 9);
        assert_ok(sf_ibp_network_margins(margins, NULL, n.net, &text, 1, &n.ibp, &error));
        for (int sample = 0; sample < 300; sample++) {
            for (size_t i = 0; i < LONG; i++)
                chosen[i] = ids[begin[i] + next_below((uint32_t)(begin[i + 1] - begin[i]))];
            program_margins(one, &n, chosen, LONG, 1);
            for (size_t k = 0; k < n.layout.shape.classes; k++) assert_true(one[k] >= margins[k]);
        }
        network_close(&n);
    }
}

static float positive(void) { return fabsf(next_float()) + 0.01f; }

/* Where everything rises, the lowest words give the lowest margin: the bound is reached. */
static void monotone_networks_have_tight_bounds(void **unused)
{
    (void)unused;
    safer_error error = {0};
    for (uint32_t c = 0; c < 40; c++) {
        network n = {0};
        uint32_t ids[20], lowest[5];
        size_t begin[6];
        double margins[8], one[8];
        sf_cnn_shape shape = any_shape(c);
        shape.classes = 2;
        network_open(&n, shape, positive);
        size_t dim = shape.dim, I = n.layout.inputs;
        for (size_t w = 1; w < WORDS_KNOWN; w++) /* word w is above word w-1 everywhere */
            for (size_t d = 0; d < dim; d++) n.parameters[w * dim + d] = n.parameters[(w - 1) * dim + d] + positive();
        for (size_t i = 0; i < I; i++)
            n.parameters[n.layout.output_weight + i] += n.parameters[n.layout.output_weight + I + i];
        assert_int_equal(sf_cnn_scales(n.scale, &n.layout, n.parameters, 1), 0);
        sf_cnn_net_free(n.net);
        n.net = NULL;
        assert_ok(sf_cnn_net_new(&n.net, &n.layout, n.parameters, n.scale, &error));
        sf_ibp_choices text = any_text(ids, begin, 5, 4);
        for (size_t i = 0; i < 5; i++) {
            lowest[i] = ids[begin[i]];
            for (size_t k = begin[i]; k < begin[i + 1]; k++) lowest[i] = ids[k] < lowest[i] ? ids[k] : lowest[i];
        }
        assert_ok(sf_ibp_network_margins(margins, NULL, n.net, &text, 0, &n.ibp, &error));
        program_margins(one, &n, lowest, 5, 0);
        if (!(margins[1] <= one[1] && one[1] - margins[1] < 1e-4 * (1 + fabs(one[1]))))
            fail_msg("case %u: %.9g, bound %.9g", c, one[1], margins[1]);
        network_close(&n);
    }
}

static float wild(void) { return next_float() * ldexpf(1, (int)next_below(24) - 8); }

/* Margins that cancel to almost nothing, so that rounding decides their sign: the bound stays
 * below the program's margin and below the real number, which long double computes; a bound
 * that forgets the program's rounding does not. */
static void rounding_goes_outward(void **unused)
{
    (void)unused;
    safer_error error = {0};
    size_t naive_fails = 0;
    for (uint32_t c = 0; c < 600; c++) {
        network n = {0};
        uint32_t ids[3];
        size_t begin[4];
        double margins[2], one[2];
        sf_cnn_shape shape = {.dim = 20, .classes = 2};
        network_open(&n, shape, wild);
        const sf_cnn_layout *l = &n.layout;
        float *weight = n.parameters + l->output_weight, *bias = n.parameters + l->output_bias;
        for (size_t i = 0; i < 20; i++)
            weight[20 + i] = nextafterf(weight[i], next_float() * 1e9f); /* nearly the same class */
        bias[1] = bias[0];
        sf_ibp_choices text = any_text(ids, begin, 3, 1);
        assert_ok(sf_ibp_network_margins(margins, NULL, n.net, &text, 0, &n.ibp, &error));
        program_margins(one, &n, ids, 3, 0);
        const int16_t *rows[3];
        const float *features;
        for (size_t i = 0; i < 3; i++) rows[i] = sf_cnn_row(n.net, ids[i], n.scratch);
        assert_ok(sf_cnn_features(&features, n.net, rows, 3, n.scratch, &error));
        long double real = 0;
        for (size_t i = 0; i < 20; i++)
            real += ((long double)weight[i] - (long double)weight[20 + i]) * (long double)features[i];
        assert_true(margins[1] <= one[1]);
        assert_true((long double)margins[1] < real);
        naive_fails += real > (long double)one[1];
        network_close(&n);
    }
    assert_true(naive_fails > 50);
}

/* Numbers that overflow floats certify nothing. */
static float enormous(void) { return next_float() * 1e30f; }

static void overflow_certifies_nothing(void **unused)
{
    (void)unused;
    safer_error error = {0};
    for (uint32_t c = 0; c < 16; c++) {
        network n = {0};
        uint32_t ids[12];
        size_t begin[5];
        double margins[8];
        network_open(&n, any_shape(c), enormous);
        sf_ibp_choices text = any_text(ids, begin, 4, 3);
        double extent = 0;
        assert_ok(sf_ibp_network_margins(margins, &extent, n.net, &text, 0, &n.ibp, &error));
        assert_true(extent == DBL_MAX);
        for (size_t k = 1; k < n.layout.shape.classes; k++) assert_true(margins[k] == -DBL_MAX);
        network_close(&n);
    }
}

/* ------------------------------------------------------------------- records */

static safer_status check_record(const json_t *json, const sf_config *config, safer_error *error)
{
    sf_record record;
    safer_status status = sf_record_read(&record, json, config, "run", 2, error);
    return status == SAFER_OK ? sf_record_recheck(&record, config, "run", 2, error) : status;
}

/* A record of bounds must follow from its margins, even when its seal is right. */
static void records_follow_from_margins(void **unused)
{
    (void)unused;
    safer_error error = {0};
    json_t *labels = json_pack("[sss]", "a", "b", "c");
    sf_config config = {.method = SAFER_METHOD_IBP, .radius = SAFER_ALL, .classes = 3, .labels = labels};
    const char *right = "{\"id\":\"1\",\"label\":\"b\",\"prediction\":\"b\",\"abstained\":false,\"base\":\"b\","
                        "\"target\":\"b\",\"words\":3,\"slots\":2,\"exact\":true,"
                        "\"margins\":{\"a\":0.5,\"c\":1e-9},\"certified\":true,\"radius\":\"all\",\"queries\":0}";
    const struct {
        const char *field, *value, *words;
    } forged[] = {
        {"margins", "{\"a\":0.5,\"c\":-1e-9}", "radius does not follow"},
        {"margins", "{\"a\":0.5,\"c\":0.0}", "radius does not follow"},
        {"margins", "{\"a\":0.5}", "not a record"},
        {"margins", "{\"a\":0.5,\"b\":1.0}", "not a record"},
        {"margins", "{\"a\":0.5,\"c\":\"1\"}", "not a record"},
        {"radius", "0", "radius does not follow"},
        {"radius", "5", "radius does not follow"},
        {"certified", "false", "certified does not follow"},
        {"target", "\"a\"", "not a record"},
        {"label", "\"a\"", "another class"},
        {"prediction", "\"a\"", "not the model's answer"},
        {"queries", "1", "no queries"},
        {"exact", "false", "no queries"},
        {"label", "\"x\"", "not a record"},
    };
    json_t *record = json_loads(right, 0, NULL);
    assert_ok(check_record(record, &config, &error));
    for (size_t i = 0; i < sizeof forged / sizeof forged[0]; i++) {
        json_t *copy = json_deep_copy(record);
        json_object_set_new(copy, forged[i].field, json_loads(forged[i].value, JSON_DECODE_ANY, NULL));
        assert_fails(check_record(copy, &config, &error), SAFER_INPUT, forged[i].words);
        json_decref(copy);
    }
    /* A model that answers otherwise than its bounds say it must. */
    json_object_set_new(record, "base", json_string("a"));
    json_object_set_new(record, "prediction", json_string("a"));
    assert_fails(check_record(record, &config, &error), SAFER_INPUT, "contradict");
    json_decref(record);
    json_decref(labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_substitution_violates_a_bound),
        cmocka_unit_test(hostile_weights_violate_no_bound),
#if defined(__SSE__)
        cmocka_unit_test(denormals_may_be_flushed),
#endif
        cmocka_unit_test(samples_stay_within_bounds),
        cmocka_unit_test(monotone_networks_have_tight_bounds),
        cmocka_unit_test(rounding_goes_outward),
        cmocka_unit_test(overflow_certifies_nothing),
        cmocka_unit_test(records_follow_from_margins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
