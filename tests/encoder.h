/* A small BERT encoder to train from. */
#ifndef TESTS_ENCODER_H
#define TESTS_ENCODER_H

#include "base/buffer.h"
#include "base/memory.h"
#include "model/bert.h"
#include "training.h"

#include <stdio.h>
#include <string.h>

/* Random weights and a vocabulary of letters and some words; with classes, their head too. Returns the path of its
 * file, a static string. */
static inline const char *make_bert(size_t classes)
{
    safer_error error = {0};
    sf_wordpiece *wordpiece = NULL;
    sf_piecer *piecer = NULL;
    sf_bert_layout layout;
    sf_bert_shape shape = {.positions = 40,
                           .types = 2,
                           .layers = 2,
                           .hidden = 16,
                           .heads = 2,
                           .inner = 24,
                           .activation = SF_GELU,
                           .pool = SF_POOL_MEAN,
                           .epsilon = 1e-6f,
                           .tokens = 24,
                           .classes = classes};
    const sf_wordpiece_options options = {.lower = 1, .accents = 1, .ideographs = 1, .clean = 1, .longest = 100};
    sf_buffer vocabulary = {0};
    static char path[600];
    snprintf(path, sizeof path, "%s", temporary("encoder.safetensors"));
    assert_int_equal(sf_buffer_add_string(&vocabulary, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n"), 0);
    for (char c = 'a'; c <= 'z'; c++) assert_int_equal(sf_buffer_format(&vocabulary, "%c\n##%c\n", c, c), 0);
    assert_int_equal(
        sf_buffer_add_string(&vocabulary,
                             "good\nfine\ngreat\nbad\npoor\nawful\nfilm\nmovie\nthe\nwas\nplot\n!\n.\n##ing\n"),
        0);
    assert_ok(sf_wordpiece_new(&wordpiece, vocabulary.bytes, vocabulary.length, &options, "vocabulary", &error));
    assert_ok(sf_piecer_of_wordpiece(&piecer, wordpiece, &error));
    shape.vocabulary = sf_piecer_size(piecer);
    assert_int_equal(sf_bert_layout_make(&layout, &shape), 0);
    float *p = sf_alloc_aligned(layout.size, sizeof *p);
    for (size_t i = 0; i < layout.size; i++) p[i] = ((float)next_below(2000) / 1000 - 1) * 0.3f;
    for (size_t t = 0; t < layout.tensor_count; t++)
        if (strstr(layout.tensors[t].name, "LayerNorm.weight"))
            for (size_t i = 0; i < layout.tensors[t].count; i++) p[layout.tensors[t].offset + i] += 1;
    assert_ok(sf_bert_save(path, &layout, p, piecer, classes ? "[\"0\",\"1\"]" : NULL, NULL, &error));
    free(p);
    sf_bert_layout_free(&layout);
    sf_piecer_free(piecer);
    sf_buffer_free(&vocabulary);
    return path;
}

static inline const char *make_encoder(void) { return make_bert(0); }

#endif
