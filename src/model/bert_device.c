/* The `bert` classifier as devices are given it. */
#include "model/bert.h"

#include "base/memory.h"

static sf_encoder_pair affine(const float *parameters, size_t weight, size_t bias)
{
    return (sf_encoder_pair){parameters + weight, parameters + bias};
}

static sf_encoder_activation activation_of(sf_activation activation)
{
    return activation == SF_RELU ? SF_ENCODER_RELU : activation == SF_GELU_TANH ? SF_ENCODER_GELU_TANH : SF_ENCODER_GELU;
}

int sf_bert_encoder(sf_encoder *out, const sf_bert_layout *l, const float *p)
{
    const sf_bert_shape *shape = &l->shape;
    sf_encoder_layer *layers = sf_alloc(shape->layers, sizeof *layers);
    if (!layers) return -1;
    for (size_t i = 0; i < shape->layers; i++) {
        const sf_bert_layer *o = &l->layers[i];
        layers[i] = (sf_encoder_layer){.qkv = affine(p, o->qkv_weight, o->qkv_bias),
                                       .attention = affine(p, o->attention_weight, o->attention_bias),
                                       .norm1 = affine(p, o->norm1_weight, o->norm1_bias),
                                       .inner = affine(p, o->inner_weight, o->inner_bias),
                                       .outer = affine(p, o->outer_weight, o->outer_bias),
                                       .norm2 = affine(p, o->norm2_weight, o->norm2_bias)};
    }
    *out = (sf_encoder){.vocabulary = shape->vocabulary,
                        .positions = shape->positions,
                        .layers = shape->layers,
                        .hidden = shape->hidden,
                        .heads = shape->heads,
                        .inner = shape->inner,
                        .classes = shape->classes,
                        .tokens = shape->tokens,
                        .epsilon = shape->epsilon,
                        .activation = activation_of(shape->activation),
                        .words = p + l->words,
                        .places = p + l->positions,
                        .type = l->types == SIZE_MAX ? NULL : p + l->types,
                        .norm = affine(p, l->norm_weight, l->norm_bias),
                        .layer = layers,
                        .mean = shape->pool == SF_POOL_MEAN,
                        .pooler_activation = shape->pooler_relu ? SF_ENCODER_RELU : SF_ENCODER_TANH,
                        .classifier = affine(p, l->classifier_weight, l->classifier_bias)};
    if (shape->pool == SF_POOL_POOLER) out->pooler = affine(p, l->pooler_weight, l->pooler_bias);
    return 0;
}
