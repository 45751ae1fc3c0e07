/* What the tests of the charcnn classifier share: random networks, the definition in double
 * precision, lexicons and model files. */
#ifndef TESTS_TEST_CHARCNN_H
#define TESTS_TEST_CHARCNN_H

#include "assemble.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/rng.h"
#include "model/charcnn.h"
#include "model/charcnn_answer.h"
#include "model/charcnn_codes.h"
#include "nn/layers.h"
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ support */

static inline sf_charcnn_layout make_layout(size_t characters, size_t features, size_t hidden, size_t classes)
{
    sf_charcnn_layout l;
    sf_charcnn_layout_make(&l, &(sf_charcnn_shape){characters, features, hidden, classes});
    return l;
}

/* Numbers that neither vanish nor grow from layer to layer. */
static inline float *random_parameters(const sf_charcnn_layout *l)
{
    float *p = malloc(l->trained * sizeof *p);
    assert_non_null(p);
    for (size_t i = l->size; i < l->trained; i++) p[i] = 1 + next_float() / 2;
    for (size_t i = 0; i < l->tensor_count; i++) {
        const size_t *shape = l->tensors[i].shape;
        double inputs = l->tensors[i].rank == 1   ? 20
                        : l->tensors[i].rank == 2 ? (double)(i + 2 == l->tensor_count ? shape[1] : shape[0])
                        : i == 0                  ? 7
                                                  : (double)(shape[0] * shape[1]);
        for (size_t k = 0; k < l->tensors[i].count; k++)
            p[l->tensors[i].offset + k] = next_float() * (float)sqrt(4 / inputs);
    }
    return p;
}

static inline void random_codes(uint8_t *codes, size_t length, size_t L)
{
    memset(codes, 0, L);
    for (size_t i = 0; i < length; i++) codes[i] = (uint8_t)(next_below(5) ? next_below(SF_CHARCNN_CODES) : 0);
}

static inline void *zeros(size_t count, size_t size)
{
    void *p = calloc(count + 1, size);
    assert_non_null(p);
    return p;
}

/* ---------------------------------------------------------------- definition */

/* One convolution and ReLU: in (T, C), weights (width, C, F). Returns the frames. */
static inline size_t naive_convolution(double *out, const double *in, const double *weight, const double *bias,
                                       size_t T, size_t width, size_t C, size_t F)
{
    for (size_t i = 0; i + width <= T; i++)
        for (size_t f = 0; f < F; f++) out[i * F + f] = bias[f];
    for (size_t i = 0; i + width <= T; i++)
        for (size_t t = 0; t < width; t++)
            for (size_t c = 0; c < C; c++) {
                const double x = in[(i + t) * C + c], *w = weight + (t * C + c) * F;
                for (size_t f = 0; x != 0 && f < F; f++) out[i * F + f] += x * w[f];
            }
    for (size_t i = 0; i < (T - width + 1) * F; i++) out[i] = out[i] > 0 ? out[i] : 0;
    return T - width + 1;
}

static inline size_t naive_pool(double *x, size_t T, size_t F)
{
    for (size_t p = 0; p < T / 3; p++)
        for (size_t f = 0; f < F; f++)
            x[p * F + f] = fmax(x[3 * p * F + f], fmax(x[(3 * p + 1) * F + f], x[(3 * p + 2) * F + f]));
    return T / 3;
}

/* The network as the header defines it, in double precision, all frames of it. masks:
 * (2, H) of dropout, or NULL. */
static inline void naive_logits(double *logits, const sf_charcnn_layout *l, const double *w, const uint8_t *codes,
                                const float *masks)
{
    const size_t L = l->shape.characters, F = l->shape.features, H = l->shape.hidden, K = l->shape.classes;
    double *x = zeros(L * (F > SF_CHARCNN_ALPHABET ? F : SF_CHARCNN_ALPHABET), sizeof *x), *y = zeros(L * F, sizeof *y);
    double *h = zeros(2 * H, sizeof *h);
    double *first = zeros(SF_CHARCNN_WIDE * SF_CHARCNN_ALPHABET * F, sizeof *first);
    size_t T = L;
    for (size_t c = 0; c < SF_CHARCNN_ALPHABET; c++) /* (character, tap, feature) to (tap, character, feature) */
        for (size_t t = 0; t < SF_CHARCNN_WIDE; t++)
            memcpy(first + (t * SF_CHARCNN_ALPHABET + c) * F, w + l->conv_weight[0] + (c * SF_CHARCNN_WIDE + t) * F,
                   F * sizeof *first);
    for (size_t i = 0; i < L; i++)
        if (codes[i]) x[i * SF_CHARCNN_ALPHABET + codes[i] - 1] = 1;
    for (size_t i = 0; i < SF_CHARCNN_CONVS; i++) {
        T = naive_convolution(y, x, i ? w + l->conv_weight[i] : first, w + l->conv_bias[i], T, sf_charcnn_width(i),
                              i ? F : SF_CHARCNN_ALPHABET, F);
        if (i < 2 || i == 5) T = naive_pool(y, T, F);
        memcpy(x, y, T * F * sizeof *x);
    }
    assert_int_equal(T * F, l->inputs);
    const double *in = x;
    size_t inputs = l->inputs;
    for (size_t i = 0; i < 2; i++) {
        for (size_t o = 0; o < H; o++) {
            double sum = w[l->hidden_bias[i] + o];
            for (size_t k = 0; k < inputs; k++) sum += in[k] * w[l->hidden_weight[i] + k * H + o];
            h[i * H + o] = sum > 0 ? sum * (masks ? (double)masks[i * H + o] : 1) : 0;
        }
        in = h + i * H;
        inputs = H;
    }
    for (size_t k = 0; k < K; k++) {
        logits[k] = w[l->output_bias + k];
        for (size_t o = 0; o < H; o++) logits[k] += in[o] * w[l->output_weight + k * H + o];
    }
    free(x);
    free(y);
    free(h);
    free(first);
}

/* What the trained numbers stand for: column by column, as the header says. */
static inline void naive_scale(double *w, const sf_charcnn_layout *l, const double *trained)
{
    memcpy(w, trained, l->size * sizeof *w);
    for (size_t i = 0; i < SF_CHARCNN_MATRICES; i++) {
        const size_t F = l->shape.features, H = l->shape.hidden,
                     at = i < 5 ? l->conv_weight[i + 1] : l->hidden_weight[i - 5];
        const size_t N = i < 5 ? F : H, n = i == 0 ? 7 * F : i < 5 ? 3 * F : i == 5 ? l->inputs : H;
        const double m = i < 2 || i == 5 ? 1.26 : 0.5;
        for (size_t o = 0; o < N; o++) {
            double mean = 0, squares = 0;
            for (size_t k = 0; k < n; k++) mean += trained[at + k * N + o] / (double)n;
            for (size_t k = 0; k < n; k++) squares += pow(trained[at + k * N + o] - mean, 2) / (double)n;
            for (size_t k = 0; k < n; k++)
                w[at + k * N + o] = trained[l->gains[i] + o] * (trained[at + k * N + o] - mean) /
                                    sqrt(squares * (double)n * m);
        }
    }
}

/* Texts of every kind of length, up to and above what is read. */
static inline size_t some_length(size_t i, size_t L)
{
    const size_t lengths[] = {0, 1, 2, 3, 6, 7, 8, 9, 10, L, L - 1, L - 2, L - 3, L - 7, L / 2, L / 3};
    return i < sizeof lengths / sizeof lengths[0] ? lengths[i] : next_below((uint32_t)L + 1);
}

/* ------------------------------------------------------- lexicons and models */

static const char synonym_table[] =
    "good\tfine great extraordinarily\nfine\tnice\nbad\tpoor awful\nfilm\tmovie\nmovie\tpicture\n"
    "caf\xc3\xa9\tbar restaurant\nit's\tcan't\nor\tand\nnine\tfivefold\n";

/* A lexicon that no program of ours makes: rows of any words with any weights, and a word
 * that changes when it is written in capitals (the long s becomes an S). */
static inline safer_lexicon *make_odd_lexicon(void)
{
    enum { WORDS = 9 };
    static const char *const names[WORDS] = {
        "good", "extraordinarily", "film", "caf\xc3\xa9", "wi\305\277e", "it's", "or", "nine", "\xe4\xb8\xad"};
    safer_error error = {0};
    sf_words words = {0};
    sf_graph graph = {0};
    sf_kernel kernel = {0};
    sf_pair edges[WORDS];
    uint32_t id;
    for (uint32_t i = 0; i < WORDS; i++) {
        assert_ok(sf_words_add(&words, names[i], strlen(names[i]), &id, &error));
        edges[i] = (sf_pair){i, (i + 1 + next_below(3)) % WORDS, 0};
    }
    assert_ok(sf_graph_build(&graph, WORDS, edges, WORDS, SF_DIRECTED, 0, NULL, &error));
    assert_ok(sf_kernel_start(&kernel, WORDS, &error));
    for (uint32_t x = 0; x < WORDS; x++) {
        uint32_t ids[WORDS], weights[WORDS], row, n = 0;
        for (uint32_t z = 0; z < WORDS; z++)
            if (z == (x + 3) % WORDS || next_below(3) == 0) {
                ids[n] = z;
                weights[n++] = 1 + next_below(4);
            }
        assert_ok(sf_kernel_add(&kernel, ids, weights, n, &row, &error));
        kernel.row_of[x] = row;
    }
    return assemble_lexicon(&words, NULL, &graph, &kernel, "odd", 1, 0);
}

static inline safer_lexicon *make_word_lexicon(const char *kernel)
{
    return strcmp(kernel, "odd") == 0 ? make_odd_lexicon() : import_table(synonym_table, kernel);
}

static inline const char *save_random_model(const sf_charcnn_layout *l, const char *name)
{
    safer_error error = {0};
    const char *path = temporary(name);
    float *w = random_parameters(l);
    assert_ok(
        sf_charcnn_save(path, l, w, l->shape.classes == 2 ? "[\"a\",\"b\"]" : "[\"0\",\"1\",\"2\"]", "{}", &error));
    free(w);
    return path;
}

static inline safer_status open_model(safer_model **out, const char *path, safer_error *error)
{
    sf_safetensors *file = NULL;
    safer_status status = sf_safetensors_open(&file, path, error);
    if (status != SAFER_OK) return status;
    status = sf_charcnn_open(out, file, error);
    if (status != SAFER_OK) sf_safetensors_free(file);
    return status;
}

#endif
