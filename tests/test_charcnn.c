/* The charcnn classifier: characters, answers against the definition, the fast path, what
 * can be seen, gradients, training, files. */
#define _GNU_SOURCE
#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/rng.h"
#include "lexicon/overlap.h"
#include "model/charcnn.h"
#include "nn/layers.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ support */

static uint64_t state = 1;

static uint32_t below(uint32_t bound)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)((state >> 33) % bound);
}

static float noise(void) { return (float)below(1 << 20) * 0x1p-19f - 1; }

static sf_charcnn_layout make_layout(size_t characters, size_t features, size_t hidden, size_t classes)
{
    sf_charcnn_layout l;
    sf_charcnn_layout_make(&l, &(sf_charcnn_shape){characters, features, hidden, classes});
    return l;
}

/* Numbers that neither vanish nor grow from layer to layer. */
static float *random_parameters(const sf_charcnn_layout *l)
{
    float *p = malloc(l->trained * sizeof *p);
    assert_non_null(p);
    for (size_t i = l->size; i < l->trained; i++) p[i] = 1 + noise() / 2;
    for (size_t i = 0; i < l->tensor_count; i++) {
        const size_t *shape = l->tensors[i].shape;
        double inputs = l->tensors[i].rank == 1 ? 20 : l->tensors[i].rank == 2 ? (double)(i + 2 == l->tensor_count ? shape[1] : shape[0])
                        : i == 0 ? 7 : (double)(shape[0] * shape[1]);
        for (size_t k = 0; k < l->tensors[i].count; k++) p[l->tensors[i].offset + k] = noise() * (float)sqrt(4 / inputs);
    }
    return p;
}

static void random_codes(uint8_t *codes, size_t length, size_t L)
{
    memset(codes, 0, L);
    for (size_t i = 0; i < length; i++) codes[i] = (uint8_t)(below(5) ? below(SF_CHARCNN_CODES) : 0);
}

static void *zeros(size_t count, size_t size)
{
    void *p = calloc(count + 1, size);
    assert_non_null(p);
    return p;
}

/* ---------------------------------------------------------------- definition */

/* One convolution and ReLU: in (T, C), weights (width, C, F). Returns the frames. */
static size_t naive_convolution(double *out, const double *in, const double *weight, const double *bias, size_t T, size_t width, size_t C,
                                size_t F)
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

static size_t naive_pool(double *x, size_t T, size_t F)
{
    for (size_t p = 0; p < T / 3; p++)
        for (size_t f = 0; f < F; f++) x[p * F + f] = fmax(x[3 * p * F + f], fmax(x[(3 * p + 1) * F + f], x[(3 * p + 2) * F + f]));
    return T / 3;
}

/* The network as the header defines it, in double precision, all frames of it. masks:
 * (2, H) of dropout, or NULL. */
static void naive_logits(double *logits, const sf_charcnn_layout *l, const double *w, const uint8_t *codes, const float *masks)
{
    const size_t L = l->shape.characters, F = l->shape.features, H = l->shape.hidden, K = l->shape.classes;
    double *x = zeros(L * (F > SF_CHARCNN_ALPHABET ? F : SF_CHARCNN_ALPHABET), sizeof *x), *y = zeros(L * F, sizeof *y);
    double *h = zeros(2 * H, sizeof *h);
    double *first = zeros(SF_CHARCNN_WIDE * SF_CHARCNN_ALPHABET * F, sizeof *first);
    size_t T = L;
    for (size_t c = 0; c < SF_CHARCNN_ALPHABET; c++) /* (character, tap, feature) to (tap, character, feature) */
        for (size_t t = 0; t < SF_CHARCNN_WIDE; t++)
            memcpy(first + (t * SF_CHARCNN_ALPHABET + c) * F, w + l->conv_weight[0] + (c * SF_CHARCNN_WIDE + t) * F, F * sizeof *first);
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
static void naive_scale(double *w, const sf_charcnn_layout *l, const double *trained)
{
    memcpy(w, trained, l->size * sizeof *w);
    for (size_t i = 0; i < SF_CHARCNN_MATRICES; i++) {
        const size_t F = l->shape.features, H = l->shape.hidden, at = i < 5 ? l->conv_weight[i + 1] : l->hidden_weight[i - 5];
        const size_t N = i < 5 ? F : H, n = i == 0 ? 7 * F : i < 5 ? 3 * F : i == 5 ? l->inputs : H;
        const double m = i < 2 || i == 5 ? 1.26 : 0.5;
        for (size_t o = 0; o < N; o++) {
            double mean = 0, squares = 0;
            for (size_t k = 0; k < n; k++) mean += trained[at + k * N + o] / (double)n;
            for (size_t k = 0; k < n; k++) squares += pow(trained[at + k * N + o] - mean, 2) / (double)n;
            for (size_t k = 0; k < n; k++)
                w[at + k * N + o] = trained[l->gains[i] + o] * (trained[at + k * N + o] - mean) / sqrt(squares * (double)n * m);
        }
    }
}

/* --------------------------------------------------------------- characters */

static void characters_have_codes(void **unused)
{
    (void)unused;
    static const char all[] = "abcdefghijklmnopqrstuvwxyz0123456789-,;.!?:'\"/\\|_@#$%^&*~`+=<>()[]{}\n";
    uint8_t codes[80];
    assert_int_equal(strlen(all), SF_CHARCNN_ALPHABET);
    assert_int_equal(sf_charcnn_encode(codes, all, strlen(all), 80), SF_CHARCNN_ALPHABET);
    for (size_t i = 0; i < SF_CHARCNN_ALPHABET; i++) assert_int_equal(codes[i], i + 1);
    for (uint32_t c = 0; c < 128; c++) {
        const char *at = c ? strchr(all, (int)(c >= 'A' && c <= 'Z' ? c + 32 : c)) : NULL;
        assert_int_equal(sf_charcnn_code(c), at ? at - all + 1 : 0);
    }
    assert_int_equal(sf_charcnn_code(0xe9), 0);
    assert_int_equal(sf_charcnn_code(0x212a), sf_charcnn_code('k')); /* the Kelvin sign's lower case */
    assert_int_equal(sf_charcnn_code(0x17f), 0);                     /* but a long s is lower case already */

    /* Characters, not bytes; what is no UTF-8 is blank byte by byte; the limit counts characters. */
    const char text[] = "A\xc3\xa9" "b\xe2\x82" "c\xff" "D\xf0\x9f\x98\x80" "e";
    const uint8_t want[] = {1, 0, 2, 0, 0, 3, 0, 4, 0, 5};
    assert_int_equal(sf_charcnn_encode(codes, text, strlen(text), 80), 10);
    assert_memory_equal(codes, want, 10);
    for (size_t limit = 0; limit <= 10; limit++) {
        assert_int_equal(sf_charcnn_encode(codes, text, strlen(text), limit), limit);
        assert_memory_equal(codes, want, limit);
    }
}

static void layouts_are_the_papers(void **unused)
{
    (void)unused;
    sf_charcnn_layout small = make_layout(1014, 256, 1024, 2), large = make_layout(1014, 1024, 2048, 4);
    assert_int_equal(small.inputs, 8704); /* both in the paper */
    assert_int_equal(large.inputs, 34816);
    assert_int_equal(small.size, (69 * 7 * 256 + 256) + (7 * 256 * 256 + 256) + 4 * (3 * 256 * 256 + 256) + (8704 * 1024 + 1024) +
                                     (1024 * 1024 + 1024) + (2 * 1024 + 2));
    assert_int_equal(make_layout(SF_CHARCNN_SHORTEST, 16, 1, 2).frames[SF_CHARCNN_C], 1);
    assert_int_equal(small.tensor_count, SF_CHARCNN_TENSORS);
}

/* ------------------------------------------------------------------- answers */

typedef struct fixture {
    sf_charcnn_layout layout;
    float *parameters;
    double *exact;
    sf_charcnn_net *net;
    sf_charcnn_scratch *scratch;
} fixture;

static fixture make_fixture(size_t characters, size_t features, size_t hidden, size_t classes, sf_dtype type)
{
    safer_error error = {0};
    fixture x = {.layout = make_layout(characters, features, hidden, classes)};
    x.parameters = random_parameters(&x.layout);
    x.exact = zeros(x.layout.size, sizeof *x.exact);
    for (size_t i = 0; i < x.layout.size; i++) x.exact[i] = (double)x.parameters[i];
    assert_ok(sf_charcnn_net_new(&x.net, &x.layout, type, &error));
    sf_charcnn_net_load(x.net, x.parameters, 2);
    assert_ok(sf_charcnn_scratch_new(x.net, &x.scratch, &error));
    return x;
}

static void free_fixture(fixture *x)
{
    free(x->parameters);
    free(x->exact);
    sf_charcnn_scratch_free(x->scratch);
    sf_charcnn_net_free(x->net);
}

/* Texts of every kind of length, up to and above what is read. */
static size_t some_length(size_t i, size_t L)
{
    const size_t lengths[] = {0, 1, 2, 3, 6, 7, 8, 9, 10, L, L - 1, L - 2, L - 3, L - 7, L / 2, L / 3};
    return i < sizeof lengths / sizeof lengths[0] ? lengths[i] : below((uint32_t)L + 1);
}

static void answers_equal_the_definition(void **unused)
{
    (void)unused;
    const struct { size_t L, F, H, K; } shapes[] = {{123, 16, 5, 2}, {124, 32, 40, 3}, {149, 16, 130, 2}, {150, 48, 7, 5}, {151, 16, 9, 2},
                                                    {152, 16, 9, 2}, {230, 32, 129, 4},
                                                    {600, 64, 140, 2}}; /* the last: more inputs than one slice */
    for (int type = 0; type < 2; type++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            enum { TEXTS = 24 };
            const size_t L = shapes[s].L, K = shapes[s].K;
            fixture x = make_fixture(L, shapes[s].F, shapes[s].H, K, type ? SF_BF16 : SF_F32);
            uint8_t *codes = zeros(TEXTS * L, 1);
            size_t lengths[TEXTS];
            int labels[TEXTS];
            float logits[TEXTS * 5], scores[TEXTS * 5];
            for (size_t i = 0; i < TEXTS; i++) random_codes(codes + i * L, lengths[i] = some_length(i, L), L);
            sf_charcnn_classify_codes(labels, scores, logits, x.net, codes, lengths, TEXTS, x.scratch);
            double worst = 0, spread = 0;
            for (size_t i = 0; i < TEXTS; i++) {
                double want[5], sum = 0;
                naive_logits(want, &x.layout, x.exact, codes + i * L, NULL);
                for (size_t k = 0; k < K; k++) {
                    worst = fmax(worst, fabs(want[k] - (double)logits[i * K + k]));
                    spread = fmax(spread, fabs(want[k]));
                    sum += (double)scores[i * K + k];
                    assert_true(logits[i * K + k] <= logits[i * K + (size_t)labels[i]]);
                }
                assert_true(fabs(sum - 1) < 1e-5);
            }
            if (!(worst < (type ? 0.03 : 2e-5) * (spread + 0.1)))
                fail_msg("L %zu, %s: off by %g of %g", L, type ? "bf16" : "f32", worst, spread);
            free(codes);
            free_fixture(&x);
        }
}

/* Whatever shares the batch, whatever ran before, however lengths are given. */
static void answers_depend_on_the_text_alone(void **unused)
{
    (void)unused;
    enum { TEXTS = 150, K = 3 };
    for (int type = 0; type < 2; type++) {
        const size_t L = 170;
        fixture x = make_fixture(L, 32, 20, K, type ? SF_BF16 : SF_F32);
        uint8_t *codes = zeros(TEXTS * L, 1), *other = zeros(TEXTS * L, 1);
        size_t lengths[TEXTS], other_lengths[TEXTS];
        int labels[TEXTS];
        float together[TEXTS * K], alone[K], shuffled[TEXTS * K];
        for (size_t i = 0; i < TEXTS; i++) random_codes(codes + i * L, lengths[i] = some_length(i, L), L);
        sf_charcnn_classify_codes(labels, NULL, together, x.net, codes, lengths, TEXTS, x.scratch);
        for (size_t i = 0; i < TEXTS; i++) { /* backwards, and blanks at the end may be counted or not */
            memcpy(other + i * L, codes + (TEXTS - 1 - i) * L, L);
            size_t n = lengths[TEXTS - 1 - i];
            other_lengths[i] = i % 2 ? L : n;
        }
        sf_charcnn_classify_codes(labels, NULL, shuffled, x.net, other, other_lengths, TEXTS, x.scratch);
        for (size_t i = 0; i < TEXTS; i++) {
            sf_charcnn_classify_codes(labels, NULL, alone, x.net, codes + i * L, lengths + i, 1, x.scratch);
            assert_memory_equal(alone, together + i * K, sizeof alone);
            /* f32 products depend on their number of rows, and that on the length. */
            if (type || other_lengths[TEXTS - 1 - i] == lengths[i])
                assert_memory_equal(alone, shuffled + (TEXTS - 1 - i) * K, sizeof alone);
        }
        free(codes);
        free(other);
        free_fixture(&x);
    }
}

static void instruction_sets_agree(void **unused)
{
    (void)unused;
    enum { F = 48, N = 11, BLOCK = 1, TABLE = SF_CHARCNN_CODES * 7 * 16 };
    float *table = sf_alloc_aligned(TABLE, sizeof *table), bias[F], dout[N * F];
    uint8_t codes[3 * N + 6];
    uint32_t places[3 * N + 6], begin[SF_CHARCNN_CODES + 1];
    static float spread[(3 * N + 12) * 16];
    sf_isa best = sf_isa_choose();
    assert_non_null(table);
    for (size_t i = 0; i < TABLE; i++) table[i] = noise();
    for (size_t i = 0; i < F; i++) bias[i] = noise() - 1;
    for (size_t i = 0; i < N * F; i++) dout[i] = noise();
    random_codes(codes, sizeof codes, sizeof codes);
    sf_charcnn_places(places, begin, codes, sizeof codes);
    for (int type = 0; type < 2; type++)
        for (int isa = SF_PORTABLE; isa <= (int)best && isa <= SF_AVX512; isa++) {
            static float first[N * F], pooled[N * F], din[3 * N * F], drelu[N * F], raw[3 * N * F];
            static float first0[N * F], pooled0[N * F], din0[3 * N * F], drelu0[N * F];
            static uint8_t which[2][N * F], which0[2][N * F];
            float sums[3][F] = {{0}}, *dtable = zeros(TABLE, sizeof *dtable);
            static float sums0[3][F], dtable0[TABLE];
            const sf_dtype t = type ? SF_BF16 : SF_F32;
            memset(first, 0, sizeof first);
            for (size_t i = 0; isa == 0 && i < 3 * N * F; i++) {
                float x = noise();
                if (type) sf_to_bf16((sf_bf16 *)(void *)raw + i, &(float){x > 0 ? x : 0}, 1, SF_PORTABLE);
                else raw[i] = x > 0 ? x : below(2) ? 0.0f : -0.0f;
            }
            sf_charcnn_first((sf_view){first, F, t}, which[0], table, bias, codes, N, BLOCK, (sf_isa)isa);
            sf_charcnn_pool((sf_view){pooled, F, t}, which[1], (sf_view){raw, F, t}, N, F, (sf_isa)isa);
            sf_charcnn_pool_backward((sf_view){din, F, t}, sums[0], dout, (sf_view){pooled, F, t}, which[1], N, F, (sf_isa)isa);
            sf_charcnn_relu_backward((sf_view){drelu, F, t}, sums[1], dout, (sf_view){pooled, F, t}, N, F, (sf_isa)isa);
            sf_charcnn_first_backward(dtable, sums[2], spread, dout, (sf_view){first, F, t}, which[0], places, begin, N, BLOCK,
                                      (sf_isa)isa);
            static float exact_first[N * F];
            if (isa == SF_PORTABLE && type == 0) {
                memcpy(exact_first, first, sizeof first);
            } else if (isa == SF_PORTABLE) { /* bf16 is f32, rounded as products round */
                static sf_bf16 want[N * F];
                sf_to_bf16(want, exact_first, N * F, SF_PORTABLE);
                assert_memory_equal(first, want, sizeof want);
            }
            if (isa == SF_PORTABLE) {
                memcpy(first0, first, sizeof first);
                memcpy(pooled0, pooled, sizeof pooled);
                memcpy(din0, din, sizeof din);
                memcpy(drelu0, drelu, sizeof drelu);
                memcpy(which0, which, sizeof which);
                memcpy(sums0, sums, sizeof sums);
                memcpy(dtable0, dtable, sizeof dtable0);
                float some = 0;
                for (size_t i = 0; i < TABLE; i++) some += fabsf(dtable[i]);
                assert_true(some > 1);
            } else {
                assert_memory_equal(first, first0, sizeof first);
                assert_memory_equal(pooled, pooled0, sizeof pooled);
                assert_memory_equal(din, din0, sizeof din);
                assert_memory_equal(drelu, drelu0, sizeof drelu);
                assert_memory_equal(which, which0, sizeof which);
                assert_memory_equal(sums, sums0, sizeof sums);
                assert_memory_equal(dtable, dtable0, sizeof dtable0);
            }
            free(dtable);
        }
    free(table);
}

/* ---------------------------------------------------------------- fast path */

static const char table[] = "good\tfine great extraordinarily\nfine\tnice\nbad\tpoor awful\nfilm\tmovie\nmovie\tpicture\n"
                            "caf\xc3\xa9\tbar restaurant\nit's\tcan't\nor\tand\nnine\tfivefold\n";

/* A lexicon that no program of ours makes: rows of any words with any weights, and a word
 * that changes when it is written in capitals (the long s becomes an S). */
static safer_lexicon *make_odd_lexicon(void)
{
    enum { WORDS = 9 };
    static const char *const names[WORDS] = {"good", "extraordinarily", "film", "caf\xc3\xa9", "wi\305\277e", "it's", "or", "nine",
                                             "\xe4\xb8\xad"};
    safer_error error = {0};
    safer_lexicon *lexicon = NULL;
    sf_words words = {0};
    sf_graph graph = {0};
    sf_kernel kernel = {0};
    sf_pair edges[WORDS];
    double overlap[WORDS];
    uint32_t id, worst[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) {
        assert_ok(sf_words_add(&words, names[i], strlen(names[i]), &id, &error));
        edges[i] = (sf_pair){i, (i + 1 + below(3)) % WORDS, 0};
    }
    assert_ok(sf_graph_build(&graph, WORDS, edges, WORDS, SF_DIRECTED, 0, NULL, &error));
    assert_ok(sf_kernel_start(&kernel, WORDS, &error));
    for (uint32_t x = 0; x < WORDS; x++) {
        uint32_t ids[WORDS], weights[WORDS], row, n = 0;
        for (uint32_t z = 0; z < WORDS; z++)
            if (z == (x + 3) % WORDS || below(3) == 0) {
                ids[n] = z;
                weights[n++] = 1 + below(4);
            }
        assert_ok(sf_kernel_add(&kernel, ids, weights, n, &row, &error));
        kernel.row_of[x] = row;
    }
    sf_kernel_view view = sf_kernel_as_view(&kernel);
    sf_overlap_all(overlap, worst, &view, &graph, 1);
    sf_lexicon_parts parts = {.words = &words, .graph = &graph, .kernel = &kernel, .overlap = overlap, .worst = worst, .directed = 1,
                              .kernel_name = "odd", .provenance = "{}"};
    assert_ok(sf_lexicon_assemble(&lexicon, &parts, &error));
    sf_words_free(&words);
    sf_graph_free(&graph);
    sf_kernel_free(&kernel);
    return lexicon;
}

static safer_lexicon *make_lexicon(const char *kernel)
{
    safer_error error = {0};
    safer_lexicon *lexicon = NULL;
    if (strcmp(kernel, "odd") == 0) return make_odd_lexicon();
    safer_lexicon_options options = safer_lexicon_options_default();
    options.table = write_temporary("table.tsv", table, sizeof table - 1);
    options.kernel = kernel;
    assert_ok(safer_lexicon_import(&lexicon, &options, NULL, &error));
    return lexicon;
}

static const char *save_random_model(const sf_charcnn_layout *l, const char *name)
{
    safer_error error = {0};
    const char *path = temporary(name);
    float *w = random_parameters(l);
    assert_ok(sf_charcnn_save(path, l, w, l->shape.classes == 2 ? "[\"a\",\"b\"]" : "[\"0\",\"1\",\"2\"]", "{}", &error));
    free(w);
    return path;
}

static safer_status open_model(safer_model **out, const char *path, safer_error *error)
{
    sf_safetensors *file = NULL;
    safer_status status = sf_safetensors_open(&file, path, error);
    if (status != SAFER_OK) return status;
    status = sf_charcnn_open(out, file, error);
    if (status != SAFER_OK) sf_safetensors_free(file);
    return status;
}

static void random_text(sf_buffer *out, size_t words)
{
    const char *all[] = {"good", "fine", "great", "nice", "bad", "poor", "film", "movie", "caf\xc3\xa9", "wi\305\277e", "it's", "or", "nine",
                         "zebra", "the", "of", "\xc3\xa9t\xc3\xa9", "\xe4\xb8\xad"};
    /* Between words, also nothing but digits, symbols, zero-width and broken bytes. */
    const char *gaps[] = {" ", " ", " ", ", ", "7", "_", "\xe2\x80\x8b", "\xff", "\xe2\x82", "\n", " \xf0\x9f\x98\x80 ", "\xc3"};
    sf_buffer_clear(out);
    assert_int_equal(sf_buffer_add_string(out, below(2) ? "" : gaps[below(12)]), 0);
    for (size_t i = 0; i < words; i++) {
        const char *word = all[below(18)];
        assert_int_equal(sf_word_render(out, word, strlen(word), (sf_case)below(3)), 0);
        assert_int_equal(sf_buffer_add_string(out, gaps[below(12)]), 0);
    }
}

static void draw(uint32_t *draws, const sf_slots *slots, const safer_lexicon *lexicon)
{
    for (size_t s = 0; s < slots->slot_count; s++)
        draws[s] = below((uint32_t)safer_lexicon_word(lexicon, slots->words[slots->slots[s]].word).support_count);
}

enum { DRAWS = 12 };

static void check_fast_path(const safer_model *model, const safer_lexicon *lexicon, size_t words)
{
    safer_error error = {0};
    sf_buffer text = {0}, rendered[DRAWS] = {{0}};
    sf_span spans[DRAWS];
    sf_slots slots = {0};
    void *prepared = NULL, *scratch = NULL;
    int labels[DRAWS], sampled[DRAWS], one;
    float scores[DRAWS * 3], single[3];
    random_text(&text, words);
    assert_ok(sf_slots_read(&slots, lexicon, text.bytes, text.length, &error));
    uint32_t *draws = zeros(DRAWS * slots.slot_count, sizeof *draws);
    assert_ok(model->class->scratch_new(model, &scratch, &error));
    assert_ok(model->class->prepare(model, lexicon, &slots, &prepared, &error));
    for (size_t d = 0; d < DRAWS; d++) {
        draw(draws + d * slots.slot_count, &slots, lexicon);
        assert_int_equal(sf_buffer_reserve(&rendered[d], 1), 0);
        assert_int_equal(sf_slots_render(&rendered[d], &slots, lexicon, draws + d * slots.slot_count), 0);
        spans[d] = (sf_span){rendered[d].bytes, rendered[d].length};
    }
    assert_ok(model->class->classify(model, spans, DRAWS, labels, scores, scratch, &error));
    assert_ok(model->class->sample(model, prepared, draws, DRAWS, sampled, scratch, &error));
    assert_memory_equal(labels, sampled, sizeof labels);
    for (size_t d = 0; d < DRAWS; d++) {
        assert_ok(model->class->sample(model, prepared, draws + d * slots.slot_count, 1, &one, scratch, &error));
        sf_softmax_forward(single, sf_charcnn_scratch_logits(scratch), model->classes);
        assert_memory_equal(single, scores + d * model->classes, model->classes * sizeof(float));
        assert_int_equal(one, labels[d]);
    }
    model->class->release(prepared);
    model->class->scratch_free(scratch);
    for (size_t d = 0; d < DRAWS; d++) sf_buffer_free(&rendered[d]);
    sf_buffer_free(&text);
    sf_slots_free(&slots);
    free(draws);
}

static void draws_equal_rendered_texts(void **unused)
{
    (void)unused;
    safer_error error = {0};
    const char *kernels[] = {"topk:2", "component", "representative", "odd"};
    const size_t words[] = {0, 1, 2, 5, 12, 25, 60, 200};
    for (int k = 0; k < 4; k++) {
        safer_lexicon *lexicon = make_lexicon(kernels[k]);
        for (int round = 0; round < 6; round++) {
            sf_charcnn_layout l = make_layout(123 + below(60), 16, 20, 2 + (size_t)round % 2);
            safer_model *model = NULL;
            assert_ok(open_model(&model, save_random_model(&l, "random.safetensors"), &error));
            for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
                for (int again = 0; again < 3; again++) check_fast_path(model, lexicon, words[i]);
            if (round == 5) {
                assert_ok(sf_charcnn_set_precision(model, SF_F32, &error));
                assert_non_null(strstr(model->arithmetic, "f32"));
                for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) check_fast_path(model, lexicon, words[i]);
            }
            model->class->free(model);
        }
        safer_lexicon_free(lexicon);
    }
}

/* --------------------------------------------------------------- truncation */

/* Where slot s begins, in characters, with the least that slots before it can become: by
 * trying every synonym and every draw. */
static size_t earliest(const sf_slots *slots, const safer_lexicon *lexicon, size_t s)
{
    uint8_t codes[4096];
    size_t at = 0, sum = 0;
    for (size_t i = 0; i <= s; i++) {
        const sf_text_word *w = &slots->words[slots->slots[i]];
        sum += sf_charcnn_encode(codes, slots->text + at, w->begin - at, sizeof codes);
        at = w->end;
        if (i == s) break;
        safer_word word = safer_lexicon_word(lexicon, w->word);
        size_t least = SIZE_MAX;
        for (size_t k = 0; k <= word.synonym_count; k++) {
            safer_word other = safer_lexicon_word(lexicon, k ? word.synonyms[k - 1] : w->word);
            for (size_t d = 0; d < other.support_count; d++) {
                const char *drawn = safer_lexicon_word(lexicon, other.support[d]).word;
                sf_buffer surface = {0};
                assert_int_equal(sf_word_render(&surface, drawn, strlen(drawn), w->pattern), 0);
                size_t n = sf_charcnn_encode(codes, surface.bytes, surface.length, sizeof codes);
                if (n < least) least = n;
                sf_buffer_free(&surface);
            }
        }
        sum += least;
    }
    return sum;
}

static void slots_behind_the_end_are_not_visible(void **unused)
{
    (void)unused;
    safer_error error = {0};
    const char *kernels[] = {"topk:2", "component", "representative", "topk:1", "odd"};
    size_t all = 0, some = 0;
    for (int k = 0; k < 5; k++) {
        safer_lexicon *lexicon = make_lexicon(kernels[k]);
        for (int round = 0; round < 40; round++) {
            sf_charcnn_layout l = make_layout(123 + below(10), 16, 4, 2);
            safer_model *model = NULL;
            sf_buffer text = {0};
            sf_slots slots = {0};
            void *prepared = NULL;
            assert_ok(open_model(&model, save_random_model(&l, "visible.safetensors"), &error));
            random_text(&text, 10 + below(40));
            assert_ok(sf_slots_read(&slots, lexicon, text.bytes, text.length, &error));
            assert_ok(model->class->prepare(model, lexicon, &slots, &prepared, &error));
            size_t visible = sf_charcnn_visible(prepared), want = 0;
            while (want < slots.slot_count && earliest(&slots, lexicon, want) < l.shape.characters) want++;
            assert_int_equal(visible, want);
            all += visible == slots.slot_count;
            some += visible < slots.slot_count;
            model->class->release(prepared);
            model->class->free(model);
            sf_buffer_free(&text);
            sf_slots_free(&slots);
        }
        safer_lexicon_free(lexicon);
    }
    assert_true(all > 20 && some > 20);
}

/* ---------------------------------------------------------------- gradients */

enum { BATCH = 19, CLASSES = 3 }; /* more than one group of texts */

static double naive_loss(const sf_charcnn_layout *l, const double *trained, const sf_charcnn_batch *batch, const float *masks,
                         double smoothing)
{
    double loss = 0, logits[CLASSES], *w = zeros(l->size, sizeof *w);
    naive_scale(w, l, trained);
    const size_t K = l->shape.classes;
    for (size_t b = 0; b < batch->count; b++) {
        double sum = 0, mean = 0;
        naive_logits(logits, l, w, batch->codes + b * l->shape.characters, masks ? masks + b * 2 * l->shape.hidden : NULL);
        for (size_t k = 0; k < K; k++) {
            sum += exp(logits[k]);
            mean += logits[k] / (double)K;
        }
        loss += log(sum) - (1 - smoothing) * logits[batch->labels[b]] - smoothing * mean;
    }
    free(w);
    return loss;
}

/* The masks that step `number` uses. */
static void read_masks(float *masks, float dropout, uint64_t seed, uint64_t number, size_t count, size_t H)
{
    sf_stream stream = sf_stream_of(seed, UINT64_C(0x64726f706f757400), SF_STAGE_TRAINING);
    float *ones = malloc(H * sizeof *ones), *out = malloc(H * sizeof *out);
    assert_true(ones && out);
    for (size_t i = 0; i < H; i++) ones[i] = 1;
    for (size_t b = 0; b < count; b++)
        for (size_t i = 0; i < 2; i++)
            sf_dropout_forward(out, masks + (b * 2 + i) * H, ones, dropout, stream, number, (uint32_t)(2 * b + i), H);
    free(ones);
    free(out);
}

static void check_gradients(size_t L, size_t F, size_t H, float dropout, float smoothing, size_t count, size_t tries)
{
    safer_error error = {0};
    sf_charcnn_layout l = make_layout(L, F, H, CLASSES);
    float *w = random_parameters(&l), *masks = zeros(count * 2 * H, sizeof *masks);
    double *exact = zeros(l.trained, sizeof *exact), loss, want;
    uint8_t *codes = zeros(count * L, 1);
    size_t lengths[BATCH];
    int labels[BATCH];
    sf_charcnn_step *step = NULL;
    const float *gradient = NULL;
    for (size_t i = 0; i < l.trained; i++) exact[i] = (double)w[i];
    for (size_t i = 0; i < count; i++) {
        random_codes(codes + i * L, lengths[i] = i == 0 ? L : i == 1 ? 40 : i == 2 ? 0 : some_length(16 + i, L), L);
        labels[i] = (int)below(CLASSES);
    }
    sf_charcnn_batch batch = {codes, lengths, labels, count};
    sf_charcnn_options options = {.type = SF_F32, .dropout = dropout, .smoothing = smoothing, .threads = 2, .seed = 5};
    assert_ok(sf_charcnn_step_new(&step, &l, &options, BATCH, &error));
    for (int round = 0; round < 2; round++) /* twice: nothing may be left from the step before */
        gradient = sf_charcnn_step_gradient(&loss, step, w, &batch, 3);
    read_masks(masks, dropout, 5, 3, count, H);
    want = naive_loss(&l, exact, &batch, masks, (double)smoothing);
    if (!(fabs(loss - want) < 1e-4 * want)) fail_msg("loss %g, definition %g", loss, want);
    for (size_t t = 0; t <= l.tensor_count; t++) { /* the gains last */
        const int gains = t == l.tensor_count;
        const size_t first = gains ? l.size : l.tensors[t].offset, count_of = gains ? l.trained - l.size : l.tensors[t].count;
        const char *name = gains ? "gains" : l.tensors[t].name;
        size_t alive = 0, off = 0;
        for (size_t k = 0; k < tries || (k < 50 * tries && alive < 3); k++) {
            const size_t i = first + below((uint32_t)count_of);
            const double h = 1e-6, at = exact[i];
            exact[i] = at + h;
            double up = naive_loss(&l, exact, &batch, masks, (double)smoothing);
            exact[i] = at - h;
            double down = naive_loss(&l, exact, &batch, masks, (double)smoothing);
            exact[i] = at;
            want = (up - down) / (2 * h) / (double)count; /* of the mean */
            /* Where two frames are equal to the last bits of a float, the step may take the other. */
            off += !(fabs(want - (double)gradient[i]) < 1e-6 + 1e-3 * fabs(want));
            alive += want != 0;
        }
        if (off > tries / 20) fail_msg("%s: %zu of %zu gradients differ", name, off, tries);
        if (!alive) fail_msg("%s: nothing was tested", name);
    }
    sf_charcnn_step_free(step);
    free(w);
    free(masks);
    free(exact);
    free(codes);
}

static void gradients_match_differences(void **unused)
{
    (void)unused;
    check_gradients(128, 16, 10, 0, 0, 3, 40);
    check_gradients(123, 16, 7, 0.5f, 0, 2, 20);
    check_gradients(180, 16, 6, 0, 0.2f, 3, 20);
    check_gradients(150, 32, 130, 0.3f, 0.1f, BATCH, 3);
}

/* Blank texts alone, where every frame is the shared one. */
static void blank_texts_have_gradients(void **unused)
{
    (void)unused;
    safer_error error = {0};
    sf_charcnn_layout l = make_layout(130, 16, 6, CLASSES);
    float *w = random_parameters(&l);
    double *exact = zeros(l.trained, sizeof *exact), loss;
    uint8_t codes[2 * 130] = {0};
    const size_t lengths[] = {0, 100}; /* the second is as blank, but is not told so */
    const int labels[] = {1, 2};
    sf_charcnn_step *step = NULL;
    for (size_t i = 0; i < l.trained; i++) exact[i] = (double)w[i];
    sf_charcnn_batch batch = {codes, lengths, labels, 2};
    sf_charcnn_options options = {.type = SF_F32, .threads = 1};
    assert_ok(sf_charcnn_step_new(&step, &l, &options, 2, &error));
    const float *gradient = sf_charcnn_step_gradient(&loss, step, w, &batch, 1);
    for (size_t i = 0; i < SF_CHARCNN_CONVS; i++)
        for (size_t f = 0; f < 16; f++) {
            const size_t at = l.conv_bias[i] + f;
            const double h = 1e-6, x = exact[at];
            exact[at] = x + h;
            double up = naive_loss(&l, exact, &batch, NULL, 0);
            exact[at] = x - h;
            double down = naive_loss(&l, exact, &batch, NULL, 0);
            exact[at] = x;
            assert_true(fabs((up - down) / (4 * h) - (double)gradient[at]) < 1e-5);
        }
    for (size_t i = 0; i < SF_CHARCNN_ALPHABET * SF_CHARCNN_WIDE * 16; i++) assert_true(gradient[l.conv_weight[0] + i] == 0);
    sf_charcnn_step_free(step);
    free(w);
    free(exact);
}

/* bf16 gradients point where those in f32 do; clipping keeps the direction; threads do not matter. */
static void gradients_keep_their_direction(void **unused)
{
    (void)unused;
    safer_error error = {0};
    enum { L = 200, TEXTS = 150 };
    sf_charcnn_layout l = make_layout(L, 32, 140, CLASSES);
    float *w = random_parameters(&l), *kept[5];
    uint8_t *codes = zeros(TEXTS * L, 1);
    size_t lengths[TEXTS];
    int labels[TEXTS];
    double losses[5];
    for (size_t i = 0; i < TEXTS; i++) {
        random_codes(codes + i * L, lengths[i] = some_length(i, L), L);
        labels[i] = (int)below(CLASSES);
    }
    sf_charcnn_batch batch = {codes, lengths, labels, TEXTS};
    for (int i = 0; i < 5; i++) {
        sf_charcnn_options options = {.type = i == 0 ? SF_F32 : SF_BF16, .dropout = 0.5f, .threads = i == 2 ? 3 : 1, .seed = 1,
                                      .clip = i == 3 ? 1e-3 : i == 4 ? 1e9 : 0};
        sf_charcnn_step *step = NULL;
        kept[i] = zeros(l.trained, sizeof *kept[i]);
        assert_ok(sf_charcnn_step_new(&step, &l, &options, TEXTS, &error));
        memcpy(kept[i], sf_charcnn_step_gradient(&losses[i], step, w, &batch, 1), l.trained * sizeof *kept[i]);
        sf_charcnn_step_free(step);
    }
    assert_memory_equal(kept[1], kept[2], l.trained * sizeof(float));
    assert_memory_equal(kept[1], kept[4], l.trained * sizeof(float));
    assert_true(losses[1] == losses[2] && fabs(losses[0] - losses[1]) < 0.02 * losses[0]);
    for (size_t t = 0; t < l.tensor_count; t++) {
        double ab = 0, aa = 0, bb = 0;
        for (size_t i = l.tensors[t].offset; i < l.tensors[t].offset + l.tensors[t].count; i++) {
            ab += (double)kept[0][i] * (double)kept[1][i];
            aa += (double)kept[0][i] * (double)kept[0][i];
            bb += (double)kept[1][i] * (double)kept[1][i];
        }
        if (!(ab / sqrt(aa * bb) > 0.97)) fail_msg("%s: cosine %g", l.tensors[t].name, ab / sqrt(aa * bb));
    }
    double norm = 0, plain = 0;
    for (size_t i = 0; i < l.trained; i++) {
        norm += (double)kept[3][i] * (double)kept[3][i];
        plain += (double)kept[1][i] * (double)kept[1][i];
    }
    assert_true(fabs(sqrt(norm) - 1e-3) < 1e-6 && plain > 1e-4);
    for (size_t i = 0; i < l.trained; i++)
        assert_true(fabs((double)kept[3][i] - (double)kept[1][i] * 1e-3 / sqrt(plain)) <= 1e-6 * fabs((double)kept[3][i]) + 1e-12);
    for (int i = 0; i < 5; i++) free(kept[i]);
    free(w);
    free(codes);
}

/* ----------------------------------------------------------------- training */

/* Texts whose class is that of their good or bad words, among others. */
static safer_data *make_data(size_t rows)
{
    const char *good[] = {"good", "fine", "great", "nice"}, *bad[] = {"bad", "poor", "awful", "dull"};
    const char *other[] = {"film", "movie", "the", "a", "was", "plot", "story", "of", "and", "it"};
    safer_error error = {0};
    safer_data *data = NULL;
    sf_buffer out = {0};
    for (size_t i = 0; i < rows; i++) {
        int label = i % 2 == 0;
        assert_int_equal(sf_buffer_format(&out, "%zu\t%d\t", i, label), 0);
        for (size_t k = 0, words = 3 + below(12); k < words; k++)
            assert_int_equal(sf_buffer_format(&out, "%s ", k % 3 ? other[below(10)] : label ? good[below(4)] : bad[below(4)]), 0);
        assert_int_equal(sf_buffer_add_byte(&out, '\n'), 0);
    }
    assert_ok(safer_data_load(&data, write_temporary("train.tsv", out.bytes, out.length), NULL, &error));
    sf_buffer_free(&out);
    return data;
}

static safer_train_options small_options(const safer_data *data, const safer_lexicon *lexicon)
{
    safer_train_options o = safer_train_options_default();
    o.arch = "charcnn";
    o.train = data;
    o.lexicon = lexicon;
    o.characters = 123;
    o.dropout = 0.1;
    o.rate = 0.003;
    o.decay = 0.0001;
    o.clip = 1;
    o.warmup = 0.1;
    o.batch = 10;
    o.epochs = 4;
    o.patience = 0;
    o.threads = 1;
    return o;
}

static const sf_charcnn_plan small_plan = {.features = 32, .hidden = 24, .blanked = 0.05, .moved = 0.5, .shift = 4};

static safer_status train(const char *output, const safer_train_options *o, safer_train_report *report, safer_error *error)
{
    safer_train_report unused;
    return sf_charcnn_train_plan(output, o, &small_plan, report ? report : &unused, error);
}

static void assert_same_file(const char *a, const char *b)
{
    safer_error error = {0};
    sf_file left = {0}, right = {0};
    assert_ok(sf_file_map(&left, a, &error));
    assert_ok(sf_file_map(&right, b, &error));
    assert_int_equal(left.length, right.length);
    assert_memory_equal(left.bytes, right.bytes, left.length);
    sf_file_free(&left);
    sf_file_free(&right);
}

static void it_learns(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_data(400);
    safer_lexicon *lexicon = make_lexicon("component");
    const char *output = temporary("learned");
    for (int i = 0; i < 3; i++) {
        safer_train_options o = small_options(data, i == 1 ? lexicon : NULL);
        safer_train_report report;
        safer_model *model = NULL;
        o.epochs = 12;
        o.precision = i == 2 ? "f32" : "bf16";
        assert_ok(train(output, &o, &report, &error));
        if (!(report.dev_accuracy > 0.9 && report.loss < 0.35))
            fail_msg("case %d: dev %.3f, loss %.3f", i, report.dev_accuracy, report.loss);
        assert_true(report.texts == 360 && report.tokens > 5000 && report.parameters > 10000 && report.seconds > 0);
        assert_true(report.best_epoch >= 1 && report.best_epoch <= report.epochs && report.tokens_per_second > 0);
        assert_ok(open_model(&model, output, &error));
        const char *texts[] = {"A GOOD film, the story was fine and great", "awful plot, poor movie, dull"};
        const size_t lengths[] = {strlen(texts[0]), strlen(texts[1])};
        int labels[2];
        assert_ok(safer_model_classify(model, texts, lengths, 2, labels, NULL, &error));
        assert_string_equal(safer_model_label(model, (size_t)labels[0]), "1");
        assert_string_equal(safer_model_label(model, (size_t)labels[1]), "0");
        assert_non_null(strstr(safer_model_trained_with(model), o.lexicon ? "component" : "null"));
        assert_string_equal(safer_model_arch(model), "charcnn");
        assert_non_null(strstr(model->arithmetic, "bf16"));
        model->class->free(model);
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* Texts learned from are changed as the plan says: what the last epoch's loss tells. */
static void texts_are_changed(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_data(200), *late = NULL;
    sf_buffer out = {0};
    for (size_t i = 0; i < 200; i++) { /* the class is told behind the characters that are read */
        assert_int_equal(sf_buffer_format(&out, "%zu\t%d\t", i, i % 2 == 0), 0);
        for (size_t k = 0; k < 33; k++) assert_int_equal(sf_buffer_add_string(&out, "abc "), 0);
        for (size_t k = 0; k < 100; k++) assert_int_equal(sf_buffer_add_string(&out, i % 2 ? "77 " : "!! "), 0);
        assert_int_equal(sf_buffer_add_byte(&out, '\n'), 0);
    }
    assert_ok(safer_data_load(&late, write_temporary("late.tsv", out.bytes, out.length), NULL, &error));
    sf_buffer_free(&out);
    const struct { const safer_data *data; sf_charcnn_plan plan; int learns; } cases[] = {
        {data, {.features = 16, .hidden = 16}, 1},
        {data, {.features = 16, .hidden = 16, .blanked = 1}, 0},
        {data, {.features = 16, .hidden = 16, .shift = 100000}, 0},
        {late, {.features = 16, .hidden = 16}, 0},
        {late, {.features = 16, .hidden = 16, .moved = 1}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        safer_train_options o = small_options(cases[i].data, NULL);
        safer_train_report report;
        o.epochs = 8;
        o.dropout = 0;
        o.characters = 130;
        assert_ok(sf_charcnn_train_plan(temporary("changed"), &o, &cases[i].plan, &report, &error));
        if ((report.loss < 0.6) != cases[i].learns) fail_msg("case %zu: loss %g", i, report.loss);
    }
    safer_data_free(data);
    safer_data_free(late);
}

static void threads_do_not_matter(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_data(120);
    safer_lexicon *lexicon = make_lexicon("component");
    const char *one = temporary("one"), *more = temporary("more");
    safer_train_options o = small_options(data, lexicon);
    o.batch = 50;
    o.epochs = 2;
    assert_ok(train(one, &o, NULL, &error));
    for (int threads = 2; threads <= 5; threads += 3) {
        o.threads = threads;
        assert_ok(train(more, &o, NULL, &error));
        assert_same_file(one, more);
    }
    o.seed = 2; /* and the seed does */
    assert_ok(train(more, &o, NULL, &error));
    safer_model *first = NULL, *second = NULL;
    assert_ok(open_model(&first, one, &error));
    assert_ok(open_model(&second, more, &error));
    assert_true(safer_model_hash(first) != safer_model_hash(second));
    first->class->free(first);
    second->class->free(second);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* Cancels when the stage says this, or at this number of texts. */
typedef struct stopper {
    const char *when;
    uint64_t at, done, total;
    char last[200];
} stopper;

static int stop(void *context, const char *stage, uint64_t done, uint64_t total)
{
    stopper *s = context;
    snprintf(s->last, sizeof s->last, "%s", stage);
    s->done = done;
    s->total = total;
    return (s->when && strstr(stage, s->when) != NULL) || (s->at && done >= s->at);
}

static void stopped_runs_go_on(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_data(100);
    safer_lexicon *lexicon = make_lexicon("component");
    const char *whole = temporary("whole"), *parts = temporary("parts"), *checkpoint = temporary("parts.checkpoint");
    safer_train_options o = small_options(data, lexicon);
    stopper s = {0};
    safer_train_report report, straight;
    o.progress = (safer_progress){stop, &s};
    assert_ok(train(whole, &o, &straight, &error));
    assert_non_null(strstr(s.last, "loss 0."));
    assert_non_null(strstr(s.last, "dev "));
    assert_int_equal(s.total, 4 * 90);
    o.resume = 1; /* where there is nothing to go on from, it begins */
    const char *stops[] = {"epoch 1 of 4", "epoch 1 of 4: loss", "epoch 2 of 4: loss", "epoch 3 of 4: loss"};
    for (int i = 0; i < 4; i++) {
        s.when = stops[i];
        assert_fails(train(parts, &o, NULL, &error), SAFER_CANCELLED, "epoch");
        assert_int_not_equal(access(parts, F_OK), 0);
        assert_int_equal(access(checkpoint, F_OK) == 0, i > 0);
    }
    s.when = NULL;
    assert_ok(train(parts, &o, &report, &error));
    assert_same_file(whole, parts);
    assert_int_not_equal(access(checkpoint, F_OK), 0);
    assert_int_equal(report.epochs, 4);
    assert_true(report.loss == straight.loss && report.dev_accuracy == straight.dev_accuracy);
    unlink(parts);

    /* A checkpoint of another run, or half of one. */
    s.when = "epoch 1 of 4: loss";
    assert_fails(train(parts, &o, NULL, &error), SAFER_CANCELLED, "epoch");
    s.when = NULL;
    safer_train_options changed[7];
    for (int i = 0; i < 7; i++) changed[i] = o;
    changed[0].seed = 9;
    changed[1].rate = 0.02;
    changed[2].epochs = 5;
    changed[3].lexicon = NULL;
    changed[4].warmup = 0.5;
    changed[5].dropout = 0;
    changed[6].characters = 124;
    for (int i = 0; i < 7; i++) assert_fails(train(parts, &changed[i], NULL, &error), SAFER_INPUT, "other options");
    assert_int_equal(truncate(checkpoint, 1000), 0);
    assert_fails(train(parts, &o, NULL, &error), SAFER_INPUT, "parts.checkpoint");
    o.resume = 0; /* a fresh start does not look at it */
    assert_ok(train(parts, &o, NULL, &error));
    assert_same_file(whole, parts);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* In the middle of an epoch: progress is told ten times a second, so the epoch must last. */
static void runs_stop_within_an_epoch(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_data(200);
    const char *whole = temporary("whole2"), *parts = temporary("parts2");
    safer_train_options o = small_options(data, NULL);
    safer_train_report report, straight;
    stopper s = {0};
    size_t within = 0;
    const sf_charcnn_plan plan = {.features = 128, .hidden = 64};
    o.batch = 1;
    o.epochs = 2;
    o.progress = (safer_progress){stop, &s};
    assert_ok(sf_charcnn_train_plan(whole, &o, &plan, &straight, &error));
    o.resume = 1;
    for (s.at = 2; s.at < 2 * 180;) {
        assert_fails(sf_charcnn_train_plan(parts, &o, &plan, &report, &error), SAFER_CANCELLED, "epoch");
        within += s.done % 180 != 0;
        s.at = s.done + 60;
    }
    s.at = 0;
    assert_ok(sf_charcnn_train_plan(parts, &o, &plan, &report, &error));
    assert_same_file(whole, parts);
    assert_true(report.loss == straight.loss);
    assert_true(within > 0);
    safer_data_free(data);
}

static void bad_options_are_refused(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_data(40);
    safer_train_options o = small_options(data, NULL);
    o.characters = 122;
    assert_fails(train(temporary("bad"), &o, NULL, &error), SAFER_INVALID, "characters");
    o.characters = 1 << 17;
    assert_fails(train(temporary("bad"), &o, NULL, &error), SAFER_INVALID, "characters");
    o = small_options(data, NULL);
    assert_fails(train("/nonexistent/folder/model", &o, NULL, &error), SAFER_SYSTEM, "/nonexistent/folder");
    sf_charcnn_plan plan = sf_charcnn_plan_of(&o);
    assert_true(plan.features == 256 && plan.hidden == 1024);
    o.size = "large";
    plan = sf_charcnn_plan_of(&o);
    assert_true(plan.features == 1024 && plan.hidden == 2048);
    o = small_options(data, NULL);
    o.epochs = 60;
    o.patience = 2;
    safer_train_report report;
    assert_ok(train(temporary("patience"), &o, &report, &error));
    assert_true(report.epochs < 60 && report.epochs == report.best_epoch + 2);
    safer_data_free(data);
}

/* -------------------------------------------------------------------- files */

static void files_come_back(void **unused)
{
    (void)unused;
    safer_error error = {0};
    sf_charcnn_layout l = make_layout(140, 32, 9, 2);
    float *w = random_parameters(&l);
    char path[600];
    safer_model *model = NULL;
    snprintf(path, sizeof path, "%s", temporary("file.safetensors"));
    assert_ok(sf_charcnn_save(path, &l, w, "[\"no\",\"yes\"]", "{\"lexicon\":null}", &error));
    assert_ok(open_model(&model, path, &error));
    const sf_charcnn_model *inside = (const sf_charcnn_model *)model;
    assert_memory_equal(&inside->layout.shape, &l.shape, sizeof l.shape);
    assert_string_equal(safer_model_label(model, 1), "yes");
    assert_string_equal(safer_model_trained_with(model), "{\"lexicon\":null}");
    sf_charcnn_net *net = NULL;
    assert_ok(sf_charcnn_net_new(&net, &l, SF_BF16, &error));
    sf_charcnn_net_load(net, w, 1);
    for (size_t i = 1; i < SF_CHARCNN_CONVS; i++)
        assert_memory_equal(net->conv[i].values, inside->net->conv[i].values, net->conv[i].capacity);
    assert_memory_equal(net->table, inside->net->table, SF_CHARCNN_CODES * 7 * 32 * sizeof(float));
    assert_memory_equal(net->blank[2], inside->net->blank[2], 32 * sizeof(sf_bf16));
    sf_charcnn_net_free(net);
    model->class->free(model);
    free(w);
}

/* The file with one tensor (how 0: left out, 1: shortened, 2: NaN) or one metadata value
 * (how 3) changed. */
static const char *spoil(const char *path, const char *name, int how, const char *value)
{
    safer_error error = {0};
    static const char *const keys[] = {"arch", "config", "labels", "trained_with"};
    sf_safetensors *file = NULL;
    sf_tensor tensors[SF_CHARCNN_TENSORS];
    sf_metadata metadata[4];
    float *copy = NULL;
    size_t count = 0;
    const char *out = temporary("spoiled.safetensors");
    assert_ok(sf_safetensors_open(&file, path, &error));
    for (size_t i = 0; i < sf_safetensors_count(file); i++) {
        sf_tensor t = *sf_safetensors_at(file, i);
        if (strcmp(t.name, name) == 0) {
            if (how == 0) continue;
            copy = malloc(t.count * sizeof *copy);
            assert_non_null(copy);
            memcpy(copy, t.bytes, t.count * sizeof *copy);
            if (how == 1) t.rank = 1, t.shape[0] = --t.count;
            if (how == 2) copy[t.count / 2] = (float)NAN;
            t.bytes = copy;
        }
        tensors[count++] = t;
    }
    for (int i = 0; i < 4; i++)
        metadata[i] = (sf_metadata){keys[i], how == 3 && strcmp(keys[i], name) == 0 ? value : sf_safetensors_metadata(file, keys[i])};
    assert_ok(sf_safetensors_write(out, tensors, count, metadata, 4, &error));
    sf_safetensors_free(file);
    free(copy);
    return out;
}

static void bad_files_are_refused(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_model *model = NULL;
    sf_charcnn_layout l = make_layout(150, 16, 7, 3);
    char path[600];
    snprintf(path, sizeof path, "%s", save_random_model(&l, "good.safetensors"));
    for (size_t i = 0; i < l.tensor_count; i++)
        for (int how = 0; how < 3; how++)
            assert_fails(open_model(&model, spoil(path, l.tensors[i].name, how, NULL), &error), SAFER_INPUT, l.tensors[i].name);
    const struct { const char *config, *says; } configs[] = {
        {"[]", "config"}, {"{", "config"},
        {"{\"features\":16,\"hidden\":7}", "characters"},
        {"{\"characters\":122,\"features\":16,\"hidden\":7}", "characters"},
        {"{\"characters\":70000,\"features\":16,\"hidden\":7}", "characters"},
        {"{\"characters\":150,\"features\":17,\"hidden\":7}", "features"},
        {"{\"characters\":150,\"features\":0,\"hidden\":7}", "features"},
        {"{\"characters\":150,\"features\":\"16\",\"hidden\":7}", "features"},
        {"{\"characters\":150,\"features\":16,\"hidden\":0}", "hidden"},
        {"{\"characters\":150,\"features\":16,\"hidden\":7.5}", "hidden"},
        {"{\"characters\":150,\"features\":32,\"hidden\":7}", "conv.0.weight"},
        {"{\"characters\":65536,\"features\":65536,\"hidden\":65536}", "conv.0.weight"},
        {"{\"characters\":180,\"features\":16,\"hidden\":7}", "dense.0.weight"},
        {"{\"characters\":150,\"features\":16,\"hidden\":8}", "dense.0.weight"},
    };
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        assert_fails(open_model(&model, spoil(path, "config", 3, configs[i].config), &error), SAFER_INPUT, configs[i].says);
    assert_fails(open_model(&model, spoil(path, "labels", 3, "[\"a\",\"b\"]"), &error), SAFER_INPUT, "output.weight");
    assert_fails(open_model(&model, spoil(path, "labels", 3, "[]"), &error), SAFER_INPUT, "labels");
    assert_null(model);
}

/* ------------------------------------------------------------------- memory */

static safer_status use_model(void *context, safer_error *error)
{
    safer_status status;
    const safer_lexicon *lexicon = ((void **)context)[1];
    safer_model *model = NULL;
    sf_slots slots = {0};
    void *prepared = NULL, *scratch = NULL;
    const char *text = "The Film was GOOD, a great story";
    size_t length = strlen(text);
    const uint32_t draws[8] = {0};
    int label;
    SF_TRY(open_model(&model, ((void **)context)[0], error));
    SF_TRY(sf_slots_read(&slots, lexicon, text, length, error));
    SF_TRY(model->class->prepare(model, lexicon, &slots, &prepared, error));
    SF_TRY(model->class->scratch_new(model, &scratch, error));
    SF_TRY(model->class->sample(model, prepared, draws, 1, &label, scratch, error));
    SF_TRY(safer_model_classify(model, &text, &length, 1, &label, NULL, error));
    model->class->scratch_free(scratch); /* it is of one precision */
    scratch = NULL;
    SF_TRY(sf_charcnn_set_precision(model, SF_F32, error));
done:
    if (prepared) model->class->release(prepared);
    if (scratch) model->class->scratch_free(scratch);
    sf_slots_free(&slots);
    if (model) model->class->free(model);
    return status;
}

typedef struct job {
    safer_train_options options;
    const char *output;
} job;

static safer_status train_once(void *context, safer_error *error)
{
    job *j = context;
    return train(j->output, &j->options, NULL, error);
}

static void memory_may_run_out(void **unused)
{
    (void)unused;
    sf_charcnn_layout l = make_layout(123, 16, 7, 2);
    char path[600], output[600];
    safer_lexicon *lexicon = make_lexicon("component");
    safer_data *data = make_data(24);
    snprintf(path, sizeof path, "%s", save_random_model(&l, "memory.safetensors"));
    snprintf(output, sizeof output, "%s", temporary("memory"));
    void *context[2] = {path, lexicon};
    check_every_allocation(use_model, context);
    job j = {small_options(data, lexicon), output};
    j.options.epochs = 1;
    /* Describing a lexicon, for the provenance, does without memory: the run is then whole. */
    for (long n = 0;; n++) {
        safer_error error = {0};
        fail_allocation(n);
        safer_status status = train_once(&j, &error);
        int happened = allocation_failed();
        fail_allocation(-1);
        if (status != SAFER_MEMORY) assert_ok(status);
        if (!happened) break;
    }
    j.options.lexicon = NULL;
    check_every_allocation(train_once, &j);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_have_codes),        cmocka_unit_test(layouts_are_the_papers),
        cmocka_unit_test(answers_equal_the_definition), cmocka_unit_test(answers_depend_on_the_text_alone),
        cmocka_unit_test(instruction_sets_agree),       cmocka_unit_test(draws_equal_rendered_texts),
        cmocka_unit_test(slots_behind_the_end_are_not_visible),
        cmocka_unit_test(gradients_match_differences),  cmocka_unit_test(blank_texts_have_gradients),
        cmocka_unit_test(gradients_keep_their_direction), cmocka_unit_test(it_learns),
        cmocka_unit_test(texts_are_changed),
        cmocka_unit_test(threads_do_not_matter),        cmocka_unit_test(stopped_runs_go_on),
        cmocka_unit_test(runs_stop_within_an_epoch),
        cmocka_unit_test(bad_options_are_refused),      cmocka_unit_test(files_come_back),
        cmocka_unit_test(bad_files_are_refused),        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
