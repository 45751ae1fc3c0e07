/* Training of the `context` classifier: one text at a time. context_step.h says what is learned. */
#include "train/context_step.h"

#include "base/memory.h"
#include "base/rng.h"
#include "train/leads.h"

/* Parts of the rate. A bias counts for a whole text, `common` for all of its words; what a word is in its context must
 * not run ahead of what it is in all of them. */
static const double BIAS_RATE = 1.0 / 64, COMMON_RATE = 1.0 / 256, EACH_RATE = 1.0 / 2048;

struct sf_context_step {
    sf_context_layout layout;
    const sf_ibp_sets *sets;
    sf_context_step_options options;
    sf_stream dropout;
    uint32_t *words; /* (classes, longest): which word is the worst for each class */
    uint8_t *counts; /* (longest): whether `each` does */
    size_t longest;
    double *leads, *pulls; /* (classes) */
    double *mean;          /* (size): of the contexts */
};

void sf_context_step_free(sf_context_step *s)
{
    if (!s) return;
    free(s->words);
    free(s->counts);
    free(s->leads);
    free(s->pulls);
    free(s->mean);
    free(s);
}

safer_status sf_context_step_new(sf_context_step **out, const sf_context_layout *layout, const sf_ibp_sets *sets,
                                 const sf_context_step_options *options, size_t longest, safer_error *error)
{
    const size_t K = layout->shape.classes;
    sf_context_step *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    *s = (sf_context_step){.layout = *layout,
                           .sets = sets,
                           .options = *options,
                           .longest = longest,
                           .dropout = sf_stream_of(options->seed, UINT64_C(0x636f6e7465787400),
                                                   SF_STAGE_TRAINING)}; /* "context" */
    s->words = sf_alloc(K * longest, sizeof *s->words);
    s->counts = sf_alloc(longest, sizeof *s->counts);
    s->leads = sf_alloc(K, sizeof *s->leads);
    s->pulls = sf_alloc(K, sizeof *s->pulls);
    s->mean = sf_alloc(layout->shape.size, sizeof *s->mean);
    if (!s->words || !s->counts || !s->leads || !s->pulls || !s->mean) {
        sf_context_step_free(s);
        return sf_fail_memory(error);
    }
    *out = s;
    return SAFER_OK;
}

/* -------------------------------------------------------------------- the loss */

/* What numbers of outputs, `stride` apart, give class y over class c. One output is the lead of class 1. */
static double lead(const float *numbers, size_t outputs, size_t stride, size_t y, size_t c)
{
    return outputs == 1 ? (y ? (double)numbers[0] : -(double)numbers[0])
                        : (double)numbers[y * stride] - (double)numbers[c * stride];
}

/* What a word gives y over c; context NULL: by itself. */
static double word_lead(const sf_context_step *s, const float *p, uint32_t word, const float *context, size_t y,
                        size_t c)
{
    const size_t D = s->layout.shape.outputs, k = s->layout.shape.size;
    const float *each = p + s->layout.each + word * D * k;
    double sum = lead(p + s->layout.words + word * D, D, 1, y, c);
    for (size_t j = 0; context && j < k; j++) sum += lead(each + j, D, k, y, c) * (double)context[j];
    return sum;
}

/* The context in which `each` counts at position i, or NULL. */
static const float *context_at(const sf_context_step *s, const sf_context_lesson *l, size_t i)
{
    return s->counts[i] ? sf_context_at(l->contexts, i) : NULL;
}

static uint32_t own_word(const sf_context_step *s, uint32_t item)
{
    const size_t V = s->layout.shape.vocabulary;
    return item < V ? item : s->sets->members[s->sets->offsets[item - V]];
}

/* The word that item i may be that is the worst for y against c, and what it gives. */
static double worst_word(uint32_t *word, const sf_context_step *s, const float *p, const sf_context_lesson *l, size_t i,
                         size_t y, size_t c)
{
    const size_t V = s->layout.shape.vocabulary;
    const float *context = context_at(s, l, i);
    const uint32_t item = l->items[i];
    double least = word_lead(s, p, *word = own_word(s, item), context, y, c);
    for (size_t m = item < V ? 1 : s->sets->offsets[item - V] + 1; item >= V && m < s->sets->offsets[item - V + 1];
         m++) {
        const double value = word_lead(s, p, s->sets->members[m], context, y, c);
        if (value >= least) continue;
        least = value;
        *word = s->sets->members[m];
    }
    return least;
}

/* The lead of y over c, in the worst case or (0) as the text stands; notes the words. */
static double lead_of(sf_context_step *s, const float *p, const sf_context_lesson *l, int worst, size_t y, size_t c)
{
    const size_t N = l->contexts.words, D = s->layout.shape.outputs, k = s->layout.shape.size;
    double sum = 0, common = 0;
    for (size_t i = 0; i < N; i++) {
        uint32_t *word = &s->words[c * s->longest + i];
        *word = own_word(s, l->items[i]);
        sum += worst ? worst_word(word, s, p, l, i, y, c) : word_lead(s, p, *word, context_at(s, l, i), y, c);
    }
    for (size_t j = 0; j < k; j++) common += lead(p + s->layout.common + j, D, k, y, c) * s->mean[j];
    return lead(p + s->layout.bias, D, 1, y, c) + common + (N ? sum / (double)N : 0);
}

/* -------------------------------------------------------------------- learning */

/* Both ends of a lead that `number` times the numbers at `at`, `stride` apart, give. */
static void descend_lead(const sf_context_step *s, float *p, float *squares, size_t at, size_t stride, size_t y,
                         size_t c, double gradient, double rate)
{
    const double decay = s->options.decay;
    if (s->layout.shape.outputs == 1) {
        sf_descend(p + at, squares + at, y ? gradient : -gradient, rate, decay);
    } else {
        sf_descend(p + at + y * stride, squares + at + y * stride, gradient, rate, decay);
        sf_descend(p + at + c * stride, squares + at + c * stride, -gradient, rate, decay);
    }
}

/* `pull` is the gradient of the loss by the lead of y over c, whose words were noted. */
static void descend_text(const sf_context_step *s, float *p, float *squares, const sf_context_lesson *l, int each,
                         size_t y, size_t c, double pull)
{
    const sf_context_layout *o = &s->layout;
    const size_t N = l->contexts.words, D = o->shape.outputs, k = o->shape.size;
    const double rate = s->options.rate, share = N ? pull / (double)N : 0;
    for (size_t i = 0; i < N; i++) {
        const uint32_t word = s->words[c * s->longest + i];
        const float *context = each ? context_at(s, l, i) : NULL;
        descend_lead(s, p, squares, o->words + word * D, 1, y, c, share, rate);
        for (size_t j = 0; context && j < k; j++)
            descend_lead(s, p, squares, o->each + word * D * k + j, k, y, c, share * (double)context[j],
                         rate * EACH_RATE);
    }
    for (size_t j = 0; j < k; j++)
        descend_lead(s, p, squares, o->common + j, k, y, c, pull * s->mean[j], rate * COMMON_RATE);
    descend_lead(s, p, squares, o->bias, 1, y, c, pull, rate * BIAS_RATE);
}

/* The loss with this weight. */
static double learn(sf_context_step *s, float *p, float *squares, const sf_context_lesson *l, int each, int worst,
                    double weight)
{
    const size_t K = s->layout.shape.classes, y = l->label;
    for (size_t c = 0; c < K; c++)
        if (c != y) s->leads[c] = lead_of(s, p, l, worst, y, c);
    const double loss = weight * sf_lead_entropy(s->pulls, s->leads, K, y);
    for (size_t c = 0; c < K; c++)
        if (c != y) descend_text(s, p, squares, l, each, y, c, weight * s->pulls[c]);
    return loss;
}

static void read_contexts(sf_context_step *s, const sf_context_lesson *l, int each, uint64_t number)
{
    const size_t N = l->contexts.words, k = s->layout.shape.size;
    for (size_t j = 0; j < k; j++) s->mean[j] = 0;
    for (size_t i = 0; i < N; i++) {
        const float *context = sf_context_at(l->contexts, i);
        s->counts[i] = each &&
                       !(s->options.dropout > 0 && sf_draw_unit(s->dropout, number, (uint32_t)i) < s->options.dropout);
        for (size_t j = 0; context && j < k; j++) s->mean[j] += (double)context[j];
    }
    for (size_t j = 0; N && j < k; j++) s->mean[j] /= (double)N;
}

double sf_context_step_learn(sf_context_step *s, float *parameters, float *squares, const sf_context_lesson *l,
                             int each, uint64_t number)
{
    const double kappa = s->options.kappa;
    double loss = 0;
    read_contexts(s, l, each, number);
    if (kappa < 1) loss += learn(s, parameters, squares, l, each, 0, 1 - kappa);
    if (kappa > 0) loss += learn(s, parameters, squares, l, each, 1, kappa);
    return loss;
}
