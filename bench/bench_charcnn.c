/* Samples per second of the character CNN, and its training, beside our own f32 products of plain matrices.
 *
 * The paper's small network on 1014 characters. One text longer than that, in which 43% of
 * the words are slots with 50 substitutes each; draws are made beforehand. The reference
 * is the same network in f32: table look-ups for the first convolution, then im2col and
 * sf_gemm, 8 texts at a time. Agreement is checked first. "Share of the peak" is the
 * arithmetic of all products over what the bare multiply loop does in the same time. With
 * --json one object for programs. */
#define _GNU_SOURCE
#include "bench.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/progress.h"
#include "model/charcnn.h"
#include "model/charcnn_answer.h"
#include "model/charcnn_codes.h"
#include "nn/gemm.h"
#include "nn/layers.h"
#include "train/charcnn_step.h"

#include <math.h>

enum {
    L = 1014,
    F = 256,
    H = 1024,
    K = 2,
    CHOICES = 50,
    SAMPLES = 256,
    CHUNK = 64,
    TOGETHER = 8,
    TRAIN = 128,
    THREADS = 2
};

static uint64_t state = 1;

typedef struct fixture {
    sf_charcnn_layout layout;
    float *parameters;
    safer_lexicon *lexicon;
    safer_model *model;
    sf_buffer text;
    sf_slots slots;
    void *prepared;
    uint32_t *draws; /* (SAMPLES, slots) */
    uint8_t *codes;  /* (SAMPLES, L): the same texts, rendered */
    size_t *lengths;
    int *labels;
    void *scratch[THREADS];
    float *columns, *frames, *raw, *hidden; /* of the reference */
} fixture;

/* ------------------------------------------------------------------- fixture */

static void name_word(char out[16], uint32_t number)
{
    size_t length = 3 + number % 7;
    for (size_t i = 0; i < length; i++, number /= 3) out[i] = (char)('a' + (number * 7 + i * 11) % 26);
    snprintf(out + length, 16 - length, "%c%c", 'a' + (int)(number / 26 % 26), 'a' + (int)(number % 26));
}

static void make_lexicon(fixture *x)
{
    sf_buffer table = {0};
    int failed = 0;
    for (uint32_t w = 0; w < 100; w++) {
        char word[16];
        for (uint32_t c = 0; c < CHOICES; c++) {
            name_word(word, w * CHOICES + c + 1000);
            failed |= sf_buffer_format(&table, "%s%c", word, c == 0 ? '\t' : c + 1 < CHOICES ? ' ' : '\n');
        }
    }
    check(!failed, "out of memory");
    x->lexicon = bench_lexicon(table.bytes, table.length);
    while (!failed && x->text.length < 2 * L) {
        char word[16];
        uint32_t w = bench_below(&state, 100);
        if (bench_below(&state, 100) < 43)
            name_word(word, w * CHOICES + bench_below(&state, CHOICES) + 1000);
        else
            snprintf(word, sizeof word, "%s", w % 3 ? "the" : w % 2 ? "of" : "zebras");
        failed |= sf_buffer_format(&x->text, "%s%s", word, w % 9 ? " " : ", ");
    }
    check(!failed, "out of memory");
    sf_buffer_free(&table);
}

static void make_fixture(fixture *x)
{
    safer_error error = {0};
    const char *path = bench_path("charcnn");
    sf_safetensors *file = NULL;
    make_lexicon(x);
    sf_charcnn_layout_make(&x->layout, &(sf_charcnn_shape){L, F, H, K});
    x->parameters = sf_alloc_aligned(x->layout.size, sizeof *x->parameters);
    check(x->parameters != NULL, "out of memory");
    for (size_t i = 0; i < x->layout.tensor_count; i++) {
        const size_t *shape = x->layout.tensors[i].shape;
        double inputs = i == 0 ? 7 : x->layout.tensors[i].rank == 3 ? (double)(shape[0] * shape[1]) : (double)shape[0];
        if (i + 2 == x->layout.tensor_count) inputs = H;
        for (size_t k = 0; k < x->layout.tensors[i].count; k++)
            x->parameters[x->layout.tensors[i].offset + k] = x->layout.tensors[i].rank == 1
                                                                 ? 0
                                                                 : (float)((bench_below(&state, 1 << 20) * 0x1p-19 -
                                                                            1) *
                                                                           sqrt(3 / inputs));
    }
    check(sf_charcnn_save(path, &x->layout, x->parameters, "[\"0\",\"1\"]", "{}", &error) == SAFER_OK, error.message);
    check(sf_safetensors_open(&file, path, &error) == SAFER_OK && sf_charcnn_open(&x->model, file, &error) == SAFER_OK,
          error.message);

    check(sf_slots_read(&x->slots, x->lexicon, x->text.bytes, x->text.length, &error) == SAFER_OK, error.message);
    x->draws = sf_alloc(SAMPLES * x->slots.slot_count, sizeof *x->draws);
    x->codes = sf_calloc(SAMPLES, L);
    x->lengths = sf_alloc(SAMPLES, sizeof *x->lengths);
    x->labels = sf_alloc(SAMPLES, sizeof *x->labels);
    x->columns = sf_alloc_aligned((size_t)TOGETHER * 336 * 7 * F, sizeof *x->columns);
    x->frames = sf_alloc_aligned((size_t)TOGETHER * 336 * F, sizeof *x->frames);
    x->raw = sf_alloc_aligned((size_t)TOGETHER * 336 * F, sizeof *x->raw);
    x->hidden = sf_alloc_aligned((size_t)TOGETHER * 2 * H, sizeof *x->hidden);
    check(x->draws && x->codes && x->lengths && x->labels && x->columns && x->frames && x->raw && x->hidden,
          "out of memory");
    sf_buffer rendered = {0};
    for (size_t s = 0; s < SAMPLES; s++) {
        uint32_t *draw = x->draws + s * x->slots.slot_count;
        for (size_t i = 0; i < x->slots.slot_count; i++) {
            uint32_t support = (uint32_t)safer_lexicon_word(x->lexicon, x->slots.words[x->slots.slots[i]].word)
                                   .support_count;
            draw[i] = bench_below(&state, support);
        }
        sf_buffer_clear(&rendered);
        check(sf_slots_render(&rendered, &x->slots, x->lexicon, draw) == 0, "out of memory");
        x->lengths[s] = sf_charcnn_encode(x->codes + s * L, rendered.bytes, rendered.length, L);
    }
    sf_buffer_free(&rendered);
    for (int i = 0; i < THREADS; i++)
        check(x->model->class->scratch_new(x->model, &x->scratch[i], &error) == SAFER_OK, error.message);
    check(x->model->class->prepare(x->model, x->lexicon, &x->slots, &x->prepared, &error) == SAFER_OK, error.message);
}

/* ----------------------------------------------------------------- reference */

static void pool(float *out, const float *in, size_t frames)
{
    for (size_t p = 0; p < frames; p++)
        for (size_t f = 0; f < F; f++) {
            const float *x = in + 3 * p * F + f;
            float best = x[0] > x[F] ? x[0] : x[F];
            out[p * F + f] = best > x[2 * F] ? best : x[2 * F];
        }
}

static void first_convolution(float *out, const fixture *x, const uint8_t *codes)
{
    const float *weight = x->parameters + x->layout.conv_weight[0], *bias = x->parameters + x->layout.conv_bias[0];
    for (size_t p = 0; p < 336; p++)
        for (size_t j = 0; j < 3; j++) {
            float row[F];
            memcpy(row, bias, sizeof row);
            for (size_t t = 0; t < 7; t++)
                if (codes[3 * p + j + t]) {
                    const float *w = weight + ((codes[3 * p + j + t] - 1u) * 7 + t) * F;
                    for (size_t f = 0; f < F; f++) row[f] += w[f];
                }
            for (size_t f = 0; f < F; f++) {
                float y = row[f] > 0 ? row[f] : 0;
                if (j == 0 || y > out[p * F + f]) out[p * F + f] = y;
            }
        }
}

static void multiply(float *out, const float *a, const float *w, const float *bias, size_t rows, size_t outputs,
                     size_t inputs)
{
    sf_gemm_dense(SF_GEMM_NN, out, a, w, 0, rows, outputs, inputs);
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < outputs; o++) {
            float y = out[r * outputs + o] + bias[o];
            out[r * outputs + o] = y > 0 ? y : 0;
        }
}

/* logits (TOGETHER, K) of samples from `first` on. */
static void reference(float *logits, fixture *x, size_t first)
{
    const sf_charcnn_layout *l = &x->layout;
    const float *w = x->parameters;
    size_t frames = 336;
    for (size_t b = 0; b < TOGETHER; b++) first_convolution(x->frames + b * frames * F, x, x->codes + (first + b) * L);
    for (size_t i = 1; i < SF_CHARCNN_CONVS; i++) {
        const size_t width = sf_charcnn_width(i), out = frames - width + 1;
        for (size_t b = 0; b < TOGETHER; b++)
            for (size_t r = 0; r < out; r++)
                memcpy(x->columns + (b * out + r) * width * F, x->frames + (b * frames + r) * F,
                       width * F * sizeof *x->columns);
        multiply(x->raw, x->columns, w + l->conv_weight[i], w + l->conv_bias[i], TOGETHER * out, F, width * F);
        const int pooled = i == 1 || i == 5;
        frames = pooled ? out / 3 : out;
        for (size_t b = 0; b < TOGETHER; b++) {
            if (pooled)
                pool(x->frames + b * frames * F, x->raw + b * out * F, frames);
            else
                memcpy(x->frames + b * frames * F, x->raw + b * out * F, frames * F * sizeof *x->frames);
        }
    }
    multiply(x->hidden, x->frames, w + l->hidden_weight[0], w + l->hidden_bias[0], TOGETHER, H, l->inputs);
    multiply(x->hidden + TOGETHER * H, x->hidden, w + l->hidden_weight[1], w + l->hidden_bias[1], TOGETHER, H, H);
    sf_linear_forward(logits, x->hidden + TOGETHER * H, w + l->output_weight, w + l->output_bias, TOGETHER, H, K);
}

/* ------------------------------------------------------------------- timing */

static void sample(void *context, size_t begin, size_t end, int worker)
{
    fixture *x = context;
    check(x->model->class->sample(x->model, x->prepared, x->draws + begin * x->slots.slot_count, end - begin,
                                  x->labels + begin, x->scratch[worker], NULL) == SAFER_OK,
          "sampling failed");
}

/* The best of several short rounds: on a busy machine some run undisturbed. */
static double sampling_rate(fixture *x, int threads)
{
    const size_t samples = (size_t)threads * CHUNK;
    return (double)samples / bench_best(30, threads, samples, CHUNK, sample, x);
}

static double code_rate(fixture *x, size_t length)
{
    const sf_charcnn_net *net = sf_charcnn_net_of(x->model);
    uint8_t *codes = sf_calloc(CHUNK, L);
    size_t lengths[CHUNK];
    double best = 0;
    check(codes != NULL, "out of memory");
    for (size_t i = 0; i < CHUNK; i++) {
        memcpy(codes + i * L, x->codes + i * L, length);
        lengths[i] = length;
    }
    for (int round = 0; round < 30; round++) {
        double start = sf_seconds();
        sf_charcnn_classify_codes(x->labels, NULL, NULL, net, codes, lengths, CHUNK, x->scratch[0]);
        best = fmax(best, CHUNK / (sf_seconds() - start));
    }
    free(codes);
    return best;
}

static double training_rate(fixture *x, int threads)
{
    safer_error error = {0};
    sf_charcnn_options options = {.type = SF_BF16, .dropout = 0.5f, .clip = 1, .threads = threads};
    sf_charcnn_step *step = NULL;
    const size_t size = x->layout.trained;
    float *w = sf_alloc_aligned(size, sizeof *w), *means = sf_calloc(size, sizeof *means),
          *variances = sf_calloc(size, sizeof *variances);
    double best = 0, loss;
    check(w && means && variances, "out of memory");
    check(sf_charcnn_step_new(&step, &x->layout, &options, TRAIN, &error) == SAFER_OK, error.message);
    memcpy(w, x->parameters, x->layout.size * sizeof *w);
    for (size_t i = x->layout.size; i < size; i++) w[i] = 1; /* gains */
    memset(x->labels, 0, TRAIN * sizeof *x->labels);
    sf_charcnn_batch batch = {x->codes, x->lengths, x->labels, TRAIN};
    for (uint64_t number = 1; number <= 12; number++) {
        double start = sf_seconds();
        sf_charcnn_step_gradient(&loss, step, w, &batch, number);
        sf_charcnn_step_update(step, w, means, variances, 1e-6, number);
        best = fmax(best, TRAIN / (sf_seconds() - start));
    }
    sf_charcnn_step_free(step);
    free(w);
    free(means);
    free(variances);
    return best;
}

/* Floating-point operations of the products of one text. */
static double work(const sf_charcnn_layout *l)
{
    double frames = (double)l->frames[SF_CHARCNN_A], sum = 0;
    for (size_t i = 1; i < SF_CHARCNN_CONVS; i++) {
        frames -= (double)sf_charcnn_width(i) - 1;
        sum += 2 * frames * (double)sf_charcnn_width(i) * F * F;
        if (i == 1) frames = (double)l->frames[SF_CHARCNN_B];
    }
    return sum + 2.0 * (double)l->inputs * H + 2.0 * H * H;
}

static void agree(fixture *x, double *worst, double *spread)
{
    float want[TOGETHER * K], have[TOGETHER * K];
    *worst = *spread = 0;
    for (size_t s = 0; s < 32; s += TOGETHER) {
        reference(want, x, s);
        sample(x, s, s + TOGETHER, 0);
        memcpy(have, sf_charcnn_scratch_logits(x->scratch[0]), sizeof have);
        for (size_t i = 0; i < TOGETHER * K; i++) {
            *worst = fmax(*worst, fabs((double)have[i] - (double)want[i]));
            *spread = fmax(*spread, fabs((double)want[i]));
        }
    }
}

int main(int argc, char **argv)
{
    int json = bench_option(argc, argv, "--json");
    fixture x = {0};
    double worst, spread, fast[THREADS], training[THREADS], slow = 0;
    float logits[TOGETHER * K];
    make_fixture(&x);
    agree(&x, &worst, &spread);
    check(worst < 0.05 * spread, "bf16 and f32 disagree");
    for (int t = 0; t < THREADS; t++) fast[t] = sampling_rate(&x, t + 1);
    for (int round = 0; round < 20; round++) {
        double start = sf_seconds();
        reference(logits, &x, 0);
        slow = fmax(slow, TOGETHER / (sf_seconds() - start));
    }
    double quarter = code_rate(&x, L / 4), flops = work(&x.layout), peak = sf_product_peak(sf_isa_choose(), 0.2);
    for (int t = 0; t < THREADS; t++) training[t] = training_rate(&x, t + 1);
    if (json) {
        json_t *out = json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "isa",
                                sf_isa_name(sf_isa_choose()), "characters", L, "features", F, "disagreement",
                                worst / spread, "samples_1", fast[0], "samples_2", fast[1], "sgemm_1", slow, "ratio_1",
                                fast[0] / slow, "quarter_length_1", quarter, "training_1", training[0], "training_2",
                                training[1], "megaflops", flops * 1e-6, "peak_tflops", peak * 1e-12, "peak_share",
                                fast[0] * flops / peak);
        bench_print_json(out);
    } else {
        printf("small network, %d characters, %zu slots with %d substitutes; %s; draws made beforehand\n", L,
               x.slots.slot_count, CHOICES, sf_isa_name(sf_isa_choose()));
        printf("largest difference of a logit from f32: %.2f%% of the largest logit\n", 100 * worst / spread);
        printf("sampling   %8.0f samples/s on one thread, %8.0f on two; sf_gemm in f32 %6.0f; ratio %.1f\n", fast[0],
               fast[1], slow, fast[0] / slow);
        printf("           %.0f MFLOP per sample: %.2f TFLOP/s, %.0f%% of the bare loop's %.2f\n", flops * 1e-6,
               fast[0] * flops * 1e-12, 100 * fast[0] * flops / peak, peak * 1e-12);
        printf("           %8.0f texts/s of a quarter of the length, where blank frames are not computed\n", quarter);
        printf("training   %8.0f texts/s on one thread, %8.0f on two, %d per step: %.2f TFLOP/s on one\n", training[0],
               training[1], TRAIN, 3 * training[0] * flops * 1e-12);
    }
    x.model->class->release(x.prepared);
    for (int i = 0; i < THREADS; i++) x.model->class->scratch_free(x.scratch[i]);
    x.model->class->free(x.model);
    safer_lexicon_free(x.lexicon);
    sf_slots_free(&x.slots);
    sf_buffer_free(&x.text);
    void *owned[] = {x.parameters, x.draws, x.codes, x.lengths, x.labels, x.columns, x.frames, x.raw, x.hidden};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
    return 0;
}
