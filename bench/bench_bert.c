/* Texts per second of the BERT encoder, and what share of the bare multiply loop that is.
 *
 * Random weights in the shape of gte-small (12 layers, 384 hidden, 12 heads, 1536 inner),
 * texts of 256 pieces, on one thread and on two; then a step of training all layers with
 * 32 such texts. With --json one object for programs.
 *
 *   bench_bert --features MODEL   reads lines of text and prints their pieces and pooled
 *   [--precision f32]             vectors as JSON: what other runtimes are compared with */
#define _GNU_SOURCE
#include "bench.h"

#include "base/memory.h"
#include "base/progress.h"
#include "train/bert_step.h"

enum { TOKENS = 256, TEXTS = 32, AT_ONCE = 8, STEP_TEXTS = 32 };

/* ----------------------------------------------------------------- features */

static void print_features(const char *path, safer_precision precision)
{
    safer_error error = {0};
    sf_bert_checkpoint c = {0};
    sf_bert_net *net = NULL;
    sf_bert_scratch *scratch = NULL;
    sf_ids ids = {0};
    sf_piecer_scratch pieces = {0};
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    check(sf_bert_checkpoint_open(&c, path, &error) == SAFER_OK, error.message);
    check(sf_bert_net_new(&net, &c.layout, c.parameters, sf_arithmetic_of(precision), 0, &error) == SAFER_OK,
          error.message);
    check(sf_bert_scratch_new(&scratch, net, &error) == SAFER_OK, error.message);
    float *features = sf_alloc_aligned(c.layout.shape.hidden, sizeof *features);
    uint32_t *whole = sf_alloc(c.layout.shape.tokens, sizeof *whole);
    check(features && whole, "out of memory");
    while ((length = getline(&line, &capacity, stdin)) > 0) {
        const sf_tokenizer_frame frame = sf_piecer_frame(c.piecer);
        const sf_window window = sf_bert_window(&c.layout.shape, c.piecer);
        check(!sf_piecer_encode(&ids, c.piecer, line, (size_t)length, window, &pieces), "out of memory");
        uint32_t *p = whole;
        for (size_t i = 0; i < frame.before_count; i++) *p++ = frame.before[i];
        for (size_t i = 0; i < ids.count; i++) *p++ = ids.ids[i];
        for (size_t i = 0; i < frame.after_count; i++) *p++ = frame.after[i];
        size_t offsets[2] = {0, (size_t)(p - whole)};
        sf_bert_batch batch = {whole, offsets, 1};
        sf_bert_features(features, net, &batch, scratch);
        printf("{\"ids\":[");
        for (size_t i = 0; i < offsets[1]; i++) printf("%s%u", i ? "," : "", whole[i]);
        printf("],\"features\":[");
        for (size_t i = 0; i < c.layout.shape.hidden; i++) printf("%s%.9g", i ? "," : "", (double)features[i]);
        printf("]}\n");
    }
    free(line);
    free(features);
    free(whole);
    sf_ids_free(&ids);
    sf_piecer_scratch_free(&pieces);
    sf_bert_scratch_free(scratch);
    sf_bert_net_free(net);
    sf_bert_checkpoint_free(&c);
}

/* -------------------------------------------------------------------- speed */

static const sf_bert_shape gte_small = {.vocabulary = 30522,
                                        .positions = 512,
                                        .types = 2,
                                        .layers = 12,
                                        .hidden = 384,
                                        .heads = 12,
                                        .inner = 1536,
                                        .classes = 2,
                                        .activation = SF_GELU,
                                        .pool = SF_POOL_MEAN,
                                        .epsilon = 1e-12f,
                                        .tokens = 512};

/* Multiplications and additions of one text's forward pass. */
static double work_of(const sf_bert_shape *s, double T)
{
    double H = (double)s->hidden, F = (double)s->inner;
    return (double)s->layers * (2 * T * (4 * H * H + 2 * H * F) + 4 * T * T * H);
}

typedef struct run {
    const sf_bert_net *net;
    sf_bert_scratch *scratch[2];
    uint32_t ids[TEXTS * TOKENS];
    size_t offsets[TEXTS + 1];
    float features[TEXTS * 384];
    double rate[2];
} run;

/* Texts begin..end-1. */
static void encode(run *r, size_t begin, size_t end, size_t worker)
{
    size_t offsets[TEXTS + 1];
    for (size_t i = begin; i <= end; i++) offsets[i - begin] = r->offsets[i] - r->offsets[begin];
    sf_bert_batch batch = {r->ids + r->offsets[begin], offsets, end - begin};
    sf_bert_features(r->features + begin * 384, r->net, &batch, r->scratch[worker]);
}

/* Every thread has texts and a clock of its own, as it has in measure_peak: none waits for the other. */
static void measure_rate(void *context, size_t begin, size_t end, int worker)
{
    run *r = context;
    double start = sf_seconds(), now;
    size_t done = 0;
    (void)end;
    (void)worker;
    do {
        const size_t first = begin * TEXTS / 2 + done % (TEXTS / 2);
        encode(r, first, first + AT_ONCE, begin);
        done += AT_ONCE;
    } while ((now = sf_seconds()) - start < 0.3);
    r->rate[begin] = (double)done / (now - start);
}

static double texts_per_second(run *r, int threads)
{
    sf_parallel(threads, (size_t)threads, 1, measure_rate, r);
    return r->rate[0] + (threads > 1 ? r->rate[1] : 0);
}

typedef struct peak {
    sf_isa isa;
    double rate[2];
} peak;

static void measure_peak(void *context, size_t begin, size_t end, int worker)
{
    peak *p = context;
    (void)end;
    (void)worker;
    p->rate[begin] = sf_product_peak(p->isa, 0.1);
}

int main(int argc, char **argv)
{
    int json = 0;
    safer_precision features_in = SAFER_PRECISION_BF16;
    const char *model = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strcmp(argv[i], "--features") == 0 && i + 1 < argc)
            model = argv[++i];
        else if (strcmp(argv[i], "--precision") == 0 && i + 1 < argc)
            check(safer_precision_parse(&features_in, argv[++i], NULL) == SAFER_OK,
                  "--precision bf16, f32 or portable");
        else
            check(0, "usage: bench_bert [--json] | --features MODEL [--precision NAME]");
    }
    if (model) {
        print_features(model, features_in);
        return 0;
    }
    safer_error error = {0};
    sf_bert_layout layout;
    check(sf_bert_layout_make(&layout, &gte_small) == 0, "out of memory");
    float *parameters = sf_alloc_aligned(layout.size, sizeof *parameters);
    check(parameters != NULL, "out of memory");
    for (size_t i = 0; i < layout.size; i++)
        parameters[i] = 0.05f * (float)((double)((i * 2654435761u) % 65536) / 32768 - 1);
    for (size_t t = 0; t < layout.tensor_count; t++)
        if (strstr(layout.tensors[t].name, "LayerNorm.weight"))
            for (size_t i = 0; i < layout.tensors[t].count; i++) parameters[layout.tensors[t].offset + i] = 1;
    run *r = sf_calloc(1, sizeof *r);
    check(r != NULL, "out of memory");
    for (size_t i = 0; i < TEXTS * TOKENS; i++) r->ids[i] = (uint32_t)(i * 7919 % gte_small.vocabulary);
    for (size_t i = 0; i <= TEXTS; i++) r->offsets[i] = i * TOKENS;
    json_t *out = json_object();
    double work = work_of(&gte_small, TOKENS);
    for (int i = 0; i < 3; i++) {
        const safer_precision precision = (safer_precision)i;
        const char *name = safer_precision_name(precision);
        sf_bert_net *net = NULL;
        check(sf_bert_net_new(&net, &layout, parameters, sf_arithmetic_of(precision), 0, &error) == SAFER_OK,
              error.message);
        r->net = net;
        for (int t = 0; t < 2; t++) check(sf_bert_scratch_new(&r->scratch[t], net, &error) == SAFER_OK, error.message);
        for (int threads = 1; threads <= 2; threads++) {
            peak p = {.isa = sf_isa_choose()};
            double best = 0, loop = 0, share;
            for (int repeat = 0; repeat < (precision == SAFER_PRECISION_BF16 ? 12 : 3);
                 repeat++) { /* short turns, the best of each: others use the machine too */
                sf_parallel(threads, (size_t)threads, 1, measure_peak, &p);
                double rate = texts_per_second(r, threads), all = p.rate[0] + (threads > 1 ? p.rate[1] : 0);
                best = rate > best ? rate : best;
                loop = all > loop ? all : loop;
            }
            share = best * work / loop;
            printf("%s, %d thread%s: %.1f texts/s, %.3f TFLOP/s, %.0f%% of the bare bf16 loop\n", name, threads,
                   threads > 1 ? "s" : "", best, best * work / 1e12, 100 * share);
            char key[32];
            snprintf(key, sizeof key, "%s_%d", name, threads);
            json_object_set_new(
                out, key, json_pack("{s:f, s:f, s:f}", "texts_per_second", best, "flops", best * work, "share", share));
        }
        for (int t = 0; t < 2; t++) sf_bert_scratch_free(r->scratch[t]);
        sf_bert_net_free(net);
    }
    sf_bert_step *step = NULL;
    sf_bert_options options = {.layers = SIZE_MAX, .decay = 0.01, .clip = 1, .type = SF_BF16, .threads = 0, .seed = 1};
    int labels[STEP_TEXTS];
    for (int i = 0; i < STEP_TEXTS; i++) labels[i] = i % 2;
    float *means = sf_calloc(layout.size, sizeof *means), *variances = sf_calloc(layout.size, sizeof *variances);
    check(means && variances, "out of memory");
    check(sf_bert_step_new(&step, &layout, parameters, &options, STEP_TEXTS, STEP_TEXTS * TOKENS, &error) == SAFER_OK,
          error.message);
    sf_bert_batch batch = {r->ids, r->offsets, STEP_TEXTS};
    double gradient = 1e9, update = 1e9;
    for (uint64_t i = 1; i <= 4; i++) {
        double start = sf_seconds();
        sf_bert_step_gradient(step, &batch, labels, i);
        double middle = sf_seconds();
        sf_bert_step_update(step, means, variances, 1e-5, i);
        double end = sf_seconds();
        gradient = middle - start < gradient ? middle - start : gradient;
        update = end - middle < update ? end - middle : update;
    }
    double step_work = 3 * work * STEP_TEXTS;
    printf("training all layers, 32 texts per step: gradient %.0f ms, update %.0f ms, %.3f TFLOP/s\n", 1e3 * gradient,
           1e3 * update, step_work / (gradient + update) / 1e12);
    json_object_set_new(out, "step",
                        json_pack("{s:f, s:f, s:f}", "gradient_seconds", gradient, "update_seconds", update, "flops",
                                  step_work / (gradient + update)));
    if (json)
        bench_print_json(out);
    else
        json_decref(out);
    sf_bert_step_free(step);
    free(means);
    free(variances);
    free(r);
    free(parameters);
    sf_bert_layout_free(&layout);
    return 0;
}
