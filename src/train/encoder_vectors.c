/* Word vectors from an encoder.
 *
 * An encoder reads every word alone, as a text of one word, and pools it as it pools texts. Such vectors all point in
 * much the same direction and have more numbers than a small classifier can use. So they are brought to length 1, their
 * mean is taken off, and what is left is projected on its first principal directions, those that most differences
 * between words lie in; the covariance is that of SAMPLE words, spread evenly over the vocabulary. In the end all
 * numbers are multiplied by one factor, after which their mean square is SIZE * SIZE: about that of GloVe's vectors,
 * which the rates of training suit.
 *
 * The same for any number of threads: a word's features are the same in every batch, and every sum is that of one
 * thread, over words in their order. */
#include "train/encoder_vectors.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "model/bert.h"
#include "train/principal.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { BATCH = 32 /* words */, SAMPLE = 16384 };
static const double SIZE = 0.4;

int sf_encoder_named(const char *path)
{
    struct stat info;
    const char *end = strrchr(path, '.');
    return (end && (strcasecmp(end, ".safetensors") == 0 || strcasecmp(end, ".onnx") == 0)) ||
           (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

/* ----------------------------------------------------------------- reading */

typedef struct reader {
    sf_bert_scratch *bert;
    sf_piecer_scratch pieces;
    sf_ids ids;     /* of the batch */
    sf_ids encoded; /* of one word */
    size_t offsets[BATCH + 1];
} reader;

typedef struct reading {
    const sf_words *words;
    const sf_bert_checkpoint *encoder;
    const sf_bert_net *net;
    reader *readers; /* one per worker */
    float *features; /* (words, hidden) */
    sf_meter meter;
    atomic_int failed;
} reading;

static int push(sf_ids *ids, const uint32_t *more, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sf_ids_push(ids, more[i])) return -1;
    return 0;
}

/* A word in the encoder's frame, [CLS] and [SEP]. */
static int add_word(reader *r, const reading *job, uint32_t word)
{
    const sf_piecer *piecer = job->encoder->piecer;
    const sf_tokenizer_frame frame = sf_piecer_frame(piecer);
    return push(&r->ids, frame.before, frame.before_count) ||
           sf_piecer_encode(&r->encoded, piecer, sf_words_string(job->words, word), sf_words_length(job->words, word),
                            sf_bert_window(&job->encoder->layout.shape, piecer), &r->pieces) ||
           push(&r->ids, r->encoded.ids, r->encoded.count) || push(&r->ids, frame.after, frame.after_count);
}

/* Batches begin..end-1. */
static void read_batches(void *context, size_t begin, size_t end, int worker)
{
    reading *job = context;
    reader *r = &job->readers[worker];
    const size_t hidden = job->encoder->layout.shape.hidden;
    for (size_t b = begin; b < end; b++) {
        const size_t first = b * BATCH, left = job->words->count - first, count = left < BATCH ? left : BATCH;
        if (sf_meter_cancelled(&job->meter)) return;
        r->ids.count = 0;
        for (size_t i = 0; i < count; i++) {
            if (add_word(r, job, (uint32_t)(first + i))) {
                atomic_store(&job->failed, 1);
                return;
            }
            r->offsets[i + 1] = r->ids.count;
        }
        const sf_bert_batch batch = {r->ids.ids, r->offsets, count};
        sf_bert_features(job->features + first * hidden, job->net, &batch, r->bert);
        sf_meter_add(&job->meter, count, worker);
    }
}

/* features (words, hidden) */
static safer_status read_words(float *features, const sf_words *words, const sf_bert_checkpoint *encoder,
                               const safer_train_options *options, safer_error *error)
{
    const int threads = sf_threads(options->threads);
    safer_status status = SAFER_OK;
    sf_bert_net *net = NULL;
    reading job = {.words = words, .encoder = encoder, .features = features};
    job.readers = sf_calloc((size_t)threads, sizeof *job.readers);
    if (!job.readers) return sf_fail_memory(error);
    SF_TRY(sf_bert_net_new(&net, &encoder->layout, encoder->parameters, sf_arithmetic_of(options->course.precision),
                           threads, error));
    job.net = net;
    for (int t = 0; t < threads; t++) SF_TRY(sf_bert_scratch_new(&job.readers[t].bert, net, error));
    sf_meter_start(&job.meter, &options->progress, "word vectors", words->count);
    sf_parallel(threads, (words->count + BATCH - 1) / BATCH, 1, read_batches, &job);
    status = sf_meter_finish(&job.meter, error);
    if (status == SAFER_OK && atomic_load(&job.failed)) status = sf_fail_memory(error);
done:
    for (int t = 0; t < threads; t++) {
        sf_bert_scratch_free(job.readers[t].bert);
        sf_piecer_scratch_free(&job.readers[t].pieces);
        sf_ids_free(&job.readers[t].ids);
        sf_ids_free(&job.readers[t].encoded);
    }
    free(job.readers);
    sf_bert_net_free(net);
    return status;
}

/* --------------------------------------------------------------- directions */

typedef struct reduction {
    const float *features; /* (count, hidden), each of length 1 */
    size_t count, hidden, dim;
    sf_principal principal;
    float *out; /* (count, dim) */
} reduction;

static void project(void *context, size_t begin, size_t end, int worker)
{
    reduction *r = context;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        const float *x = r->features + i * r->hidden;
        for (size_t k = 0; k < r->dim; k++) {
            const double *direction = r->principal.directions + k * r->hidden;
            double sum = 0;
            for (size_t d = 0; d < r->hidden; d++) sum += direction[d] * ((double)x[d] - r->principal.mean[d]);
            r->out[i * r->dim + k] = (float)sum;
        }
    }
}

static void scale(float *values, size_t count)
{
    double squares = 0;
    for (size_t i = 0; i < count; i++) squares += (double)values[i] * (double)values[i];
    const double factor = squares > 0 ? SIZE / sqrt(squares / (double)count) : 0;
    for (size_t i = 0; i < count; i++) values[i] = (float)(factor * (double)values[i]);
}

/* out (count, dim) */
static safer_status reduce(float *out, float *features, size_t count, size_t hidden, size_t dim, int threads,
                           safer_error *error)
{
    reduction r = {.features = features, .count = count, .hidden = hidden, .dim = dim, .out = out};
    sf_vectors_normalise(features, count, hidden, threads);
    const safer_status status = sf_principal_find(&r.principal, features, count, hidden,
                                                  count < SAMPLE ? count : SAMPLE, threads, error);
    if (status == SAFER_OK) {
        sf_parallel(threads, count, 256, project, &r);
        scale(out, count * dim);
    }
    sf_principal_free(&r.principal);
    return status;
}

/* --------------------------------------------------------------------- face */

safer_status sf_encoder_vectors(sf_vectors *out, const sf_words *words, const char *path, size_t dim,
                                const safer_train_options *options, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_bert_checkpoint encoder = {0};
    float *features = NULL;
    *out = (sf_vectors){0};
    SF_TRY(sf_bert_checkpoint_open(&encoder, path, error));
    const size_t hidden = encoder.layout.shape.hidden;
    out->dim = dim < hidden ? dim : hidden;
    for (uint32_t w = 0; w < words->count && status == SAFER_OK; w++)
        status = sf_words_add(&out->words, sf_words_string(words, w), sf_words_length(words, w), &(uint32_t){0}, error);
    if (status != SAFER_OK || words->count == 0) goto done;
    features = sf_alloc((size_t)words->count * hidden, sizeof *features);
    out->values = sf_alloc((size_t)words->count * out->dim, sizeof *out->values);
    if (!features || !out->values) {
        status = sf_fail_memory(error);
        goto done;
    }
    out->rows = words->count;
    SF_TRY(read_words(features, words, &encoder, options, error));
    status = reduce(out->values, features, words->count, hidden, out->dim, options->threads, error);
done:
    free(features);
    sf_bert_checkpoint_free(&encoder);
    if (status != SAFER_OK) {
        sf_vectors_free(out);
        *out = (sf_vectors){0};
    }
    return status;
}
