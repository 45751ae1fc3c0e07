/* Every kind of encoder beside BERT: time for the same work, and memory.
 *
 * Random weights in the shape of BERT-base (768 hidden, 12 heads, 3072 inner), three layers of each, texts of 128 and
 * of 512 pieces, one thread. A kind's turns alternate with BERT's, and the time of the thread is counted, not that of
 * the clock: others use the machine too. "Work" is the multiplications and additions of the matrices and of attention
 * as BERT has it; DeBERTa's two further products of attention are not counted. Then each model in its full size, in a
 * process of its own: the most memory that opening it and answering one text of 512 pieces took.
 *
 *   bench_encoders [--json] [--precision NAME] [--no-memory] [--no-speed] [--only NAME] */
#define _GNU_SOURCE
#include "bench.h"

#include "base/memory.h"
#include "model/bert.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { ROWS = 1024, TURNS = 7, LAYERS = 3 };

typedef struct kind {
    const char *name;
    sf_bert_shape shape; /* as published */
} kind;

#define BASE(act) \
    .layers = 12, .hidden = 768, .heads = 12, .inner = 3072, .classes = 2, .activation = act, .pool = SF_POOL_POOLER, \
    .epsilon = 1e-12f, .tokens = 512

static kind kinds[] = {
    {"bert", {BASE(SF_GELU), .vocabulary = 30522, .positions = 512, .types = 2}},
    {"roberta", {BASE(SF_GELU), .vocabulary = 50265, .positions = 514, .types = 1, .form = {.padded = 1, .pad = 1}}},
    {"xlm-roberta",
     {BASE(SF_GELU), .vocabulary = 250002, .positions = 514, .types = 1, .form = {.padded = 1, .pad = 1}}},
    {"electra", {BASE(SF_GELU), .vocabulary = 30522, .positions = 512, .types = 2, .form = {.width = 128}}},
    {"albert",
     {BASE(SF_GELU_TANH), .vocabulary = 30000, .positions = 512, .types = 2, .form = {.width = 128, .shared = 1}}},
    {"mpnet",
     {BASE(SF_GELU), .vocabulary = 30527, .positions = 514,
      .form = {.padded = 1, .pad = 1, .relative = SF_RELATIVE_BIAS, .buckets = 32}}},
    {"deberta-v3",
     {BASE(SF_GELU), .vocabulary = 128100, .positions = 512,
      .form = {.placeless = 1,
               .relative = SF_RELATIVE_PARTS,
               .buckets = 256,
               .span = 512,
               .place_keys = 1,
               .place_queries = 1,
               .places_shared = 1,
               .places_normed = 1}}},
    {"modernbert",
     {.vocabulary = 50368,
      .positions = 8192,
      .layers = 22,
      .hidden = 768,
      .heads = 12,
      .inner = 1152,
      .classes = 2,
      .activation = SF_GELU,
      .pool = SF_POOL_POOLER,
      .epsilon = 1e-5f,
      .tokens = 512,
      .form = {.placeless = 1,
               .prenorm = 1,
               .gated = 1,
               .attention_plain = 1,
               .inner_plain = 1,
               .norm_plain = 1,
               .theta = 160000,
               .local_theta = 10000,
               .window = 64,
               .dense_plain = 1,
               .dense_norm = 1}}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Multiplications and additions of one text's forward pass. */
static double work_of(const sf_bert_shape *s, size_t T)
{
    const double H = (double)s->hidden, F = (double)s->inner, pieces = (double)T;
    double work = 2 * pieces * H * (double)s->form.width;
    for (size_t i = 0; i < s->layers; i++) {
        double seen = 0;
        for (size_t q = 0; q < T; q++) {
            const size_t w = s->form.local[i] ? s->form.window : T, low = q > w ? q - w : 0;
            seen += (double)((q + w + 1 < T ? q + w + 1 : T) - low);
        }
        work += 2 * pieces * (4 * H * H + (s->form.gated ? 3 : 2) * H * F) + 4 * seen * H;
    }
    return work;
}

/* ---------------------------------------------------------------------- a model */

typedef struct model {
    sf_bert_layout layout;
    float *parameters;
    sf_bert_net *net;
    sf_bert_scratch *scratch;
} model;

static void model_make(model *m, const sf_bert_shape *shape, safer_precision precision)
{
    safer_error error = {0};
    uint64_t state = 1;
    check(sf_bert_layout_make(&m->layout, shape) == 0, "out of memory");
    m->parameters = sf_alloc_aligned(m->layout.size, sizeof *m->parameters);
    check(m->parameters != NULL, "out of memory");
    for (size_t i = 0; i < m->layout.size; i++) m->parameters[i] = 0.05f * bench_noise(&state);
    for (size_t t = 0; t < m->layout.tensor_count; t++)
        if (strstr(m->layout.tensors[t].name, "orm.weight"))
            for (size_t i = 0; i < m->layout.tensors[t].count; i++) m->parameters[m->layout.tensors[t].offset + i] = 1;
    check(sf_bert_net_new(&m->net, &m->layout, m->parameters, sf_arithmetic_of(precision), 1, &error) == SAFER_OK,
          error.message);
    check(sf_bert_scratch_new(&m->scratch, m->net, &error) == SAFER_OK, error.message);
}

static void model_end(model *m)
{
    sf_bert_scratch_free(m->scratch);
    sf_bert_net_free(m->net);
    sf_bert_layout_free(&m->layout);
    free(m->parameters);
}

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds for `rows` pieces in texts of T. */
static double turn(const model *m, size_t T, size_t rows)
{
    static uint32_t ids[ROWS];
    static float features[ROWS * 768];
    size_t offsets[ROWS + 1];
    for (size_t i = 0; i < rows; i++) ids[i] = (uint32_t)(5 + i * 7919 % (m->layout.shape.vocabulary - 5));
    for (size_t i = 0; i <= rows / T; i++) offsets[i] = i * T;
    const double begin = thread_seconds();
    sf_bert_features(features, m->net, &(sf_bert_batch){ids, offsets, rows / T}, m->scratch);
    return thread_seconds() - begin;
}

/* Time per work of a kind, as a multiple of BERT's: the middle of some turns; and its rate. */
static double compare(double *rate, const model *m, const model *bert, size_t T)
{
    double ratios[TURNS], best = 1e30;
    for (int i = 0; i < TURNS; i++) {
        const double ours = turn(m, T, ROWS), theirs = turn(bert, T, ROWS);
        double ratio = ours / work_of(&m->layout.shape, T) / (theirs / work_of(&bert->layout.shape, T));
        int k = i;
        best = ours < best ? ours : best;
        for (; k && ratios[k - 1] > ratio; k--) ratios[k] = ratios[k - 1];
        ratios[k] = ratio;
    }
    *rate = (double)(ROWS / T) * work_of(&m->layout.shape, T) / best;
    return ratios[TURNS / 2];
}

/* The most memory of a process that opens a model and answers a text, in bytes. */
static double memory_of(const sf_bert_shape *shape, safer_precision precision)
{
    struct rusage used;
    int status;
    fflush(stdout);
    const pid_t child = fork();
    check(child >= 0, "fork failed");
    if (child == 0) {
        model m = {0};
        model_make(&m, shape, precision);
        (void)turn(&m, 512, 512);
        _exit(0);
    }
    check(wait4(child, &status, 0, &used) == child && status == 0, "a model could not be made");
    return 1024.0 * (double)used.ru_maxrss;
}

int main(int argc, char **argv)
{
    const int json = bench_option(argc, argv, "--json"), memory = !bench_option(argc, argv, "--no-memory"),
              speed = !bench_option(argc, argv, "--no-speed");
    safer_precision precision = SAFER_PRECISION_BF16;
    const char *only = NULL;
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--only") == 0)
            only = argv[i + 1];
        else if (strcmp(argv[i], "--precision") == 0)
            check(safer_precision_parse(&precision, argv[i + 1], NULL) == SAFER_OK,
                  "--precision bf16, f32 or portable");
    static const size_t lengths[] = {128, 512};
    double full[KINDS] = {0};
    for (int i = 0; i < KINDS; i++)
        for (size_t k = 0; kinds[i].shape.form.window && k < kinds[i].shape.layers; k++)
            kinds[i].shape.form.local[k] = k % 3 != 0;
    for (int i = 0; memory && i < KINDS; i++)
        if (!only || strcmp(only, kinds[i].name) == 0) full[i] = memory_of(&kinds[i].shape, precision);
    json_t *out = json_object();
    model bert = {0};
    sf_bert_shape small = kinds[0].shape;
    small.layers = LAYERS, small.vocabulary = 1000;
    model_make(&bert, &small, precision);
    printf("%-14s%22s%22s%14s\n", safer_precision_name(precision), "128 pieces, to BERT", "512 pieces, to BERT",
           "memory");
    for (int i = 0; i < KINDS; i++) {
        if (only && strcmp(only, kinds[i].name) != 0) continue;
        model m = {0};
        double ratio[2] = {0}, rate[2] = {0};
        sf_bert_shape shape = kinds[i].shape;
        shape.layers = LAYERS, shape.vocabulary = 1000;
        model_make(&m, &shape, precision);
        for (int k = 0; speed && k < 2; k++) ratio[k] = compare(&rate[k], &m, &bert, lengths[k]);
        printf("%-14s%8.0f GFLOP/s %5.2f%8.0f GFLOP/s %5.2f%11.0f MB\n", kinds[i].name, rate[0] / 1e9, ratio[0],
               rate[1] / 1e9, ratio[1], full[i] / 1e6);
        json_object_set_new(out, kinds[i].name,
                            json_pack("{s:f, s:f, s:f}", "time_128", ratio[0], "time_512", ratio[1], "memory",
                                      full[i]));
        model_end(&m);
    }
    model_end(&bert);
    if (json)
        bench_print_json(out);
    else
        json_decref(out);
    return 0;
}
