/* The `charcnn` classifier: where its parameters lie. */
#include "model/charcnn_layout.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

size_t sf_charcnn_width(size_t convolution) { return convolution < 2 ? SF_CHARCNN_WIDE : SF_CHARCNN_NARROW; }

static size_t add_tensor(sf_charcnn_layout *l, const char *name, size_t index, const char *what, size_t rank, size_t a,
                         size_t b, size_t c)
{
    size_t i = l->tensor_count++, at = l->size;
    assert(i < SF_CHARCNN_TENSORS);
    if (index == SIZE_MAX)
        snprintf(l->tensors[i].name, sizeof l->tensors[i].name, "%s.%s", name, what);
    else
        snprintf(l->tensors[i].name, sizeof l->tensors[i].name, "%s.%u.%s", name, (unsigned)index, what);
    l->tensors[i].rank = rank;
    l->tensors[i].shape[0] = a;
    l->tensors[i].shape[1] = b;
    l->tensors[i].shape[2] = c;
    l->tensors[i].count = a * (rank > 1 ? b : 1) * (rank > 2 ? c : 1);
    l->tensors[i].offset = at;
    l->size += l->tensors[i].count;
    return at;
}

void sf_charcnn_layout_make(sf_charcnn_layout *out, const sf_charcnn_shape *shape)
{
    sf_charcnn_layout l = {.shape = *shape};
    const size_t F = shape->features, H = shape->hidden, K = shape->classes;
    const size_t shrink = (SF_CHARCNN_CONVS - 2) * (SF_CHARCNN_NARROW - 1);
    assert(shape->characters >= SF_CHARCNN_SHORTEST && F && F % SF_CHARCNN_LANES == 0);
    l.frames[SF_CHARCNN_A] = (shape->characters - (SF_CHARCNN_WIDE - 1)) / SF_CHARCNN_POOL;
    l.frames[SF_CHARCNN_B] = (l.frames[SF_CHARCNN_A] - (SF_CHARCNN_WIDE - 1)) / SF_CHARCNN_POOL;
    l.frames[SF_CHARCNN_C] = (l.frames[SF_CHARCNN_B] - shrink) / SF_CHARCNN_POOL;
    l.inputs = l.frames[SF_CHARCNN_C] * F;
    for (size_t i = 0; i < SF_CHARCNN_CONVS; i++) {
        if (i == 0)
            l.conv_weight[i] = add_tensor(&l, "conv", i, "weight", 3, SF_CHARCNN_ALPHABET, SF_CHARCNN_WIDE, F);
        else
            l.conv_weight[i] = add_tensor(&l, "conv", i, "weight", 3, sf_charcnn_width(i), F, F);
        l.conv_bias[i] = add_tensor(&l, "conv", i, "bias", 1, F, 0, 0);
    }
    l.convolutions = l.size;
    for (size_t i = 0; i < 2; i++) {
        l.hidden_weight[i] = add_tensor(&l, "dense", i, "weight", 2, i ? H : l.inputs, H, 0);
        l.hidden_bias[i] = add_tensor(&l, "dense", i, "bias", 1, H, 0, 0);
    }
    l.output_weight = add_tensor(&l, "output", SIZE_MAX, "weight", 2, K, H, 0);
    l.output_bias = add_tensor(&l, "output", SIZE_MAX, "bias", 1, K, 0, 0);
    l.trained = l.size;
    for (size_t i = 0; i < SF_CHARCNN_MATRICES; i++) {
        l.gains[i] = l.trained;
        l.trained += i < SF_CHARCNN_CONVS - 1 ? F : H;
    }
    *out = l;
}

sf_convnet sf_charcnn_convnet(const sf_charcnn_layout *l)
{
    sf_convnet out = {.characters = l->shape.characters,
                      .features = l->shape.features,
                      .hidden = l->shape.hidden,
                      .classes = l->shape.classes,
                      .size = l->size,
                      .trained = l->trained,
                      .output_weight = l->output_weight,
                      .output_bias = l->output_bias};
    _Static_assert(sizeof out.frames == sizeof l->frames && sizeof out.conv_weight == sizeof l->conv_weight &&
                       sizeof out.gains == sizeof l->gains,
                   "as many stages, convolutions and matrices");
    memcpy(out.frames, l->frames, sizeof out.frames);
    memcpy(out.conv_weight, l->conv_weight, sizeof out.conv_weight);
    memcpy(out.conv_bias, l->conv_bias, sizeof out.conv_bias);
    memcpy(out.dense_weight, l->hidden_weight, sizeof out.dense_weight);
    memcpy(out.dense_bias, l->hidden_bias, sizeof out.dense_bias);
    memcpy(out.gains, l->gains, sizeof out.gains);
    return out;
}
