/* The triplet loss of a training step.
 *
 * EIBC (Wang, Yang, He and He, Findings of ACL 2023): a word's synonyms should lie close, other
 * words far away. The extent of a set is the sum over all numbers of the largest distance from
 * the word to a synonym; the distance from another word, drawn at random, is the sum of the
 * differences, and counts up to the margin a. The loss of a word is
 *     max(0, extent - mean over the others of min(a, distance) + a),
 * averaged over all positions of the batch. It is a loss of the word vectors alone. */
#include "train/ibp_inside.h"

#include "base/parallel.h"
#include "nn/isa.h"

#include <math.h>

/* The synonym of type u that is farthest in column c, the first of them; the word itself
 * when it has none. */
static uint32_t farthest(const sf_ibp_step *s, size_t u, size_t c)
{
    size_t D = s->layout.shape.dim;
    uint32_t own = s->own[u], best = own;
    float most = 0;
    for (size_t m = u < s->S ? s->member_begin[u] : 0; u < s->S && m < s->member_begin[u + 1]; m++) {
        float distance = fabsf(s->vectors[own * D + c] - s->vectors[s->members[m] * D + c]);
        if (distance > most) {
            most = distance;
            best = s->members[m];
        }
    }
    return best;
}

SF_WIDE static void measure_triplets(void *context, size_t begin, size_t end, int worker)
{
    sf_ibp_step *s = context;
    size_t D = s->layout.shape.dim;
    const float margin = (float)s->options.margin;
    (void)worker;
    for (size_t u = begin; u < end; u++) {
        const float *own = s->vectors + s->own[u] * D;
        float extent = 0, far = 0;
        for (size_t c = 0; c < D; c++) extent += fabsf(own[c] - s->vectors[farthest(s, u, c) * D + c]);
        for (size_t i = 0; i < SF_IBP_OTHERS; i++) {
            const float *other = s->vectors + s->other[i] * D;
            float distance = 0;
            for (size_t c = 0; c < D; c++) distance += fabsf(own[c] - other[c]);
            s->apart[u * SF_IBP_OTHERS + i] = distance;
            far += distance < margin ? distance : margin;
        }
        float excess = extent - far / SF_IBP_OTHERS + margin;
        s->pull[u] = excess > 0 ? excess : 0;
    }
}

/* out += x, of -= x, with the sign of the difference of two numbers. */
static void push(float *out, float *from, float a, float b, float x)
{
    float signed_x = a > b ? x : a < b ? -x : 0;
    *out += signed_x;
    *from -= signed_x;
}

/* Items are columns, as in return_to_words. */
SF_WIDE static void pull_columns(void *context, size_t begin, size_t end, int worker)
{
    sf_ibp_step *s = context;
    size_t D = s->layout.shape.dim, N = s->batch->offsets[s->batch->count];
    (void)worker;
    for (size_t u = 0; u < s->U; u++) {
        size_t own = s->own[u] * D;
        float weight = (float)(s->options.triplet * (double)(s->begin[u + 1] - s->begin[u]) / (double)N);
        if (s->pull[u] <= 0) continue;
        for (size_t c = begin; c < end; c++) {
            size_t synonym = farthest(s, u, c) * D;
            push(&s->dvectors[own + c], &s->dvectors[synonym + c], s->vectors[own + c], s->vectors[synonym + c],
                 weight);
        }
        for (size_t i = 0; i < SF_IBP_OTHERS; i++) {
            size_t other = s->other[i] * D;
            if (!(s->apart[u * SF_IBP_OTHERS + i] < (float)s->options.margin)) continue;
            for (size_t c = begin; c < end; c++)
                push(&s->dvectors[own + c], &s->dvectors[other + c], s->vectors[own + c], s->vectors[other + c],
                     -weight / SF_IBP_OTHERS);
        }
    }
}

double sf_ibp_triplets(sf_ibp_step *s)
{
    double sum = 0, N = (double)s->batch->offsets[s->batch->count];
    if (!(s->options.triplet > 0) || N == 0) return 0;
    sf_parallel(s->options.threads, s->U, 64, measure_triplets, s);
    sf_parallel(s->options.threads, s->layout.shape.dim, SF_IBP_COLUMNS, pull_columns, s);
    for (size_t u = 0; u < s->U; u++) sum += (double)s->pull[u] * (double)(s->begin[u + 1] - s->begin[u]);
    return s->options.triplet * sum / N * (double)s->batch->count;
}
