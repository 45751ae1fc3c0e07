/* Linear classifiers, and the exact worst case.
 *
 * A `bow` without a hidden layer leads class y over class c by a sum over the words of a
 * text. The attacker chooses word by word, so the least lead is the sum of the least that
 * each word can give: no interval, no relaxation. What is left of training is convex. It
 * goes text by text, by gradient descent with a rate of its own for every number (AdaGrad;
 * Duchi, Hazan and Singer 2011): words are as different in frequency as can be. */
#include "train/ibp_step.h"

#include "base/memory.h"
#include "base/rng.h"
#include "train/leads.h"

/* A bias counts for a whole text, a word's number for one word of it. */
static const double BIAS_RATE = 1.0 / 64;

struct sf_linear_step {
    sf_ibp_layout layout;
    const sf_ibp_sets *sets;
    sf_linear_options options;
    sf_stream dropout;
    uint32_t *words; /* (classes, longest): which word is the worst for each class */
    uint32_t *own;   /* (longest): the word itself, or SF_NONE when it is dropped */
    size_t longest;
    double *leads, *pulls; /* (classes) */
};

void sf_linear_step_free(sf_linear_step *s)
{
    if (!s) return;
    free(s->words);
    free(s->own);
    free(s->leads);
    free(s->pulls);
    free(s);
}

safer_status sf_linear_step_new(sf_linear_step **out, const sf_ibp_layout *layout, const sf_ibp_sets *sets,
                                const sf_linear_options *options, size_t longest, safer_error *error)
{
    size_t K = layout->shape.classes;
    sf_linear_step *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    *s = (sf_linear_step){.layout = *layout,
                          .sets = sets,
                          .options = *options,
                          .longest = longest,
                          .dropout = sf_stream_of(options->seed, UINT64_C(0x6c696e6561720000),
                                                  SF_STAGE_TRAINING)}; /* "linear" */
    s->words = sf_alloc(K * longest, sizeof *s->words);
    s->own = sf_alloc(longest, sizeof *s->own);
    s->leads = sf_alloc(K, sizeof *s->leads);
    s->pulls = sf_alloc(K, sizeof *s->pulls);
    if (!s->words || !s->own || !s->leads || !s->pulls) {
        sf_linear_step_free(s);
        return sf_fail_memory(error);
    }
    *out = s;
    return SAFER_OK;
}

/* What a row, or the biases, give class y over class c. One number for two classes is the
 * lead of class 1. */
static double lead(const float *row, size_t outputs, size_t y, size_t c)
{
    return outputs == 1 ? (y ? (double)row[0] : -(double)row[0]) : (double)row[y] - (double)row[c];
}

/* Fills `own`; returns how many words are left. */
static size_t read_words(sf_linear_step *s, const uint32_t *items, size_t count, uint64_t number)
{
    size_t V = s->layout.shape.vocabulary, left = 0;
    for (size_t i = 0; i < count; i++) {
        int dropped = s->options.dropout > 0 && sf_draw_unit(s->dropout, number, (uint32_t)i) < s->options.dropout;
        s->own[i] = dropped ? SF_NONE : items[i] < V ? items[i] : s->sets->members[s->sets->offsets[items[i] - V]];
        left += !dropped;
    }
    return left;
}

/* The word of item i that is the worst for y against c. */
static uint32_t worst_word(const sf_linear_step *s, const float *parameters, uint32_t item, size_t y, size_t c)
{
    size_t D = s->layout.features, V = s->layout.shape.vocabulary;
    if (item < V) return item;
    const uint32_t *word = s->sets->members + s->sets->offsets[item - V],
                   *end = s->sets->members + s->sets->offsets[item - V + 1];
    uint32_t worst = *word;
    double least = lead(parameters + *word * D, D, y, c);
    while (++word < end) {
        double value = lead(parameters + *word * D, D, y, c);
        if (value < least) {
            least = value;
            worst = *word;
        }
    }
    return worst;
}

/* The mean lead of y over c: of the words themselves, and moved by the share eps towards the
 * worst ones, which are noted. */
static double least_lead(sf_linear_step *s, const float *parameters, const uint32_t *items, size_t count, size_t left,
                         double eps, size_t y, size_t c)
{
    size_t D = s->layout.features;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (s->own[i] == SF_NONE) continue;
        uint32_t worst = eps > 0 ? worst_word(s, parameters, items[i], y, c) : s->own[i];
        s->words[c * s->longest + i] = worst;
        sum += eps * lead(parameters + worst * D, D, y, c) + (1 - eps) * lead(parameters + s->own[i] * D, D, y, c);
    }
    return lead(parameters + s->layout.output_bias, D, y, c) + (left ? sum / (double)left : 0);
}

/* Both ends of a lead; `pull` is the gradient of the loss by it. */
static void descend_lead(const sf_linear_step *s, float *parameters, float *squares, size_t at, size_t y, size_t c,
                         double pull, double rate)
{
    double decay = s->options.decay;
    if (s->layout.features == 1) {
        sf_descend(parameters + at, squares + at, y ? pull : -pull, rate, decay);
    } else {
        sf_descend(parameters + at + y, squares + at + y, pull, rate, decay);
        sf_descend(parameters + at + c, squares + at + c, -pull, rate, decay);
    }
}

/* One text, its loss at `eps` with this weight. */
static double learn(sf_linear_step *s, float *parameters, float *squares, const uint32_t *items, size_t count,
                    size_t left, size_t y, double eps, double weight)
{
    size_t D = s->layout.features, K = s->layout.shape.classes;
    double rate = s->options.rate;
    for (size_t c = 0; c < K; c++)
        if (c != y) s->leads[c] = least_lead(s, parameters, items, count, left, eps, y, c);
    double loss = weight * sf_lead_entropy(s->pulls, s->leads, K, y);
    for (size_t c = 0; c < K; c++) {
        if (c == y) continue;
        double pull = weight * s->pulls[c];
        for (size_t i = 0; i < count; i++) {
            if (s->own[i] == SF_NONE) continue;
            uint32_t worst = s->words[c * s->longest + i];
            if (eps > 0) descend_lead(s, parameters, squares, worst * D, y, c, eps * pull / (double)left, rate);
            if (eps < 1)
                descend_lead(s, parameters, squares, s->own[i] * D, y, c, (1 - eps) * pull / (double)left, rate);
        }
        descend_lead(s, parameters, squares, s->layout.output_bias, y, c, pull, rate * BIAS_RATE);
    }
    return loss;
}

double sf_linear_step_learn(sf_linear_step *s, float *parameters, float *squares, const sf_ibp_batch *batch,
                            double kappa, double eps, uint64_t number)
{
    double loss = 0;
    for (size_t b = 0; b < batch->count; b++) {
        const uint32_t *items = batch->items + batch->offsets[b];
        size_t count = batch->offsets[b + 1] - batch->offsets[b], y = (size_t)batch->labels[b];
        size_t left = read_words(s, items, count, number << 16 | b);
        if (kappa < 1) loss += learn(s, parameters, squares, items, count, left, y, 0, 1 - kappa);
        if (kappa > 0) loss += learn(s, parameters, squares, items, count, left, y, eps, kappa);
    }
    return loss;
}
