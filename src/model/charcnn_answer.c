/* The `charcnn` classifier: from codes to classes. */
#include "model/charcnn_answer.h"

#include "base/memory.h"
#include "model/charcnn_pass.h"
#include "nn/layers.h"

#include <string.h>

/* ------------------------------------------------------------------ scratch */

/* Texts go through the convolutions PASS at a time (fewer are slower, more are not faster),
 * and through the dense layers HEAD at a time, many, because those read more weights than
 * any cache holds. */
enum { PASS = 8, HEAD = SF_CHARCNN_TOGETHER };

struct sf_charcnn_scratch {
    sf_charcnn_pass *pass;
    uint8_t *codes;  /* (HEAD, L) */
    size_t *lengths; /* (HEAD) */
    void *features;  /* (HEAD, inputs) */
    float *hidden;   /* (HEAD, H): of either dense layer */
    void *rounded;   /* (HEAD, H): of the first */
    float *logits;   /* (HEAD, classes) */
};

void sf_charcnn_scratch_free(sf_charcnn_scratch *s)
{
    if (!s) return;
    sf_charcnn_pass_free(s->pass);
    free(s->codes);
    free(s->lengths);
    free(s->features);
    free(s->hidden);
    free(s->rounded);
    free(s->logits);
    free(s);
}

safer_status sf_charcnn_scratch_of_device(const sf_charcnn_layout *l, sf_charcnn_scratch **out, safer_error *error)
{
    sf_charcnn_scratch *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    s->codes = sf_alloc(HEAD * l->shape.characters, 1);
    s->lengths = sf_alloc(HEAD, sizeof *s->lengths);
    s->logits = sf_alloc(HEAD * l->shape.classes, sizeof *s->logits);
    if (!s->codes || !s->lengths || !s->logits) {
        sf_charcnn_scratch_free(s);
        return sf_fail_memory(error);
    }
    *out = s;
    return SAFER_OK;
}

safer_status sf_charcnn_scratch_new(const sf_charcnn_net *net, sf_charcnn_scratch **out, safer_error *error)
{
    const sf_charcnn_layout *l = &net->layout;
    safer_status status;
    sf_charcnn_scratch *s = NULL;
    SF_TRY(sf_charcnn_scratch_of_device(l, &s, error));
    SF_TRY(sf_charcnn_pass_new(&s->pass, net, PASS, 0, error));
    s->features = sf_alloc_aligned(HEAD * l->inputs, sf_element(net->type));
    s->hidden = sf_alloc_aligned(HEAD * l->shape.hidden, sizeof *s->hidden);
    s->rounded = sf_alloc_aligned(HEAD * l->shape.hidden, sf_element(net->type));
    if (!s->features || !s->hidden || !s->rounded) {
        status = sf_fail_memory(error);
        goto done;
    }
    *out = s;
    s = NULL;
done:
    sf_charcnn_scratch_free(s);
    return status;
}

float *sf_charcnn_scratch_logits(const sf_charcnn_scratch *scratch) { return scratch->logits; }
uint8_t *sf_charcnn_scratch_codes(sf_charcnn_scratch *scratch) { return scratch->codes; }
size_t *sf_charcnn_scratch_lengths(sf_charcnn_scratch *scratch) { return scratch->lengths; }

/* ------------------------------------------------------------------ answers */

void sf_charcnn_classes(int *labels, float *probabilities, const float *logits, size_t count, size_t K)
{
    for (size_t i = 0; i < count; i++, logits += K) {
        labels[i] = 0;
        for (size_t k = 1; k < K; k++)
            if (logits[k] > logits[labels[i]]) labels[i] = (int)k;
        if (probabilities) sf_softmax_forward(probabilities + i * K, logits, K);
    }
}

static void answer(int *labels, float *probabilities, const sf_charcnn_net *net, const uint8_t *codes,
                   const size_t *lengths, size_t count, sf_charcnn_scratch *s)
{
    const sf_charcnn_layout *l = &net->layout;
    const size_t H = l->shape.hidden, K = l->shape.classes, size = sf_element(net->type);
    const sf_view features = {s->features, l->inputs, net->type}, rounded = {s->rounded, H, net->type};
    for (size_t i = 0; i < count; i += PASS)
        sf_charcnn_pass_run(s->pass, (char *)s->features + i * l->inputs * size, net, codes + i * l->shape.characters,
                            lengths + i, sf_least(PASS, count - i));
    sf_charcnn_dense(s->hidden, features, net, 0, 0, net->pieces, count);
    if (net->type == SF_F32)
        memcpy(rounded.values, s->hidden, count * H * sizeof *s->hidden);
    else
        sf_to_bf16(rounded.values, s->hidden, count * H, net->isa);
    sf_charcnn_dense(s->hidden, rounded, net, 1, 0, net->pieces, count);
    sf_linear_forward(s->logits, s->hidden, net->output_weight, net->output_bias, count, H, K);
    sf_charcnn_classes(labels, probabilities, s->logits, count, K);
}

void sf_charcnn_classify_codes(int *labels, float *probabilities, float *logits, const sf_charcnn_net *net,
                               const uint8_t *codes, const size_t *lengths, size_t count, sf_charcnn_scratch *scratch)
{
    const size_t K = net->layout.shape.classes;
    for (size_t i = 0; i < count; i += HEAD) {
        size_t n = sf_least(HEAD, count - i);
        answer(labels + i, probabilities ? probabilities + i * K : NULL, net, codes + i * net->layout.shape.characters,
               lengths + i, n, scratch);
        if (logits) memcpy(logits + i * K, scratch->logits, n * K * sizeof *logits);
    }
}
