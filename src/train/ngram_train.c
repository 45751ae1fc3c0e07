/* Training the n-gram classifier: texts to buckets in parallel, the fit, the file.
 *
 * With a lexicon the model learns from draws of its kernel. When every row is a point mass
 * a text has one draw; otherwise each text is drawn several times (options->course.epochs, at most
 * MAX_COPIES; where tokens are deleted, as many more as the copies are shorter; by length, MOST_DELETED) and each copy
 * counts for its share. The draws are the sampler's, of the
 * training stage, so that they depend on nothing but the seed and the text.
 *
 * The cost C is chosen from a short ladder by accuracy on the dev texts (ties go to the
 * smaller), with models fitted to the rows that are not held out; that accuracy is what is
 * reported. The model that is kept is then fitted with this C: to train when dev was given,
 * otherwise to all rows, the held-out tenth included. The model is defined in model/ngram.h. */
#include "base/memory.h"
#include "base/parallel.h"
#include "draw/drawn.h"
#include "train/ngram_fit.h"
#include "train/train.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, MAX_COPIES = 4, MOST_DELETED = 32, PASSES = 30 };

/* Alpha and the tolerance were settled on held-out tenths of imdb_train, and are the same
 * for all data. */
#define ALPHA 1.0
#define TOLERANCE 0.05
static const double costs[] = {0.01, 0.05, 0.25, 1};
enum { COSTS = sizeof costs / sizeof costs[0] };

/* The buckets of up to BLOCK texts, one after the other. */
typedef struct block {
    uint32_t *buckets;
    size_t length, capacity;
} block;

typedef struct worker {
    sf_ngram_scratch scratch;
    sf_slots slots;
    sf_sampler sampler;
    uint32_t *draws;
    size_t draw_capacity;
    sf_drawn drawn; /* where tokens are deleted */
} worker;

/* Turns rows of a data set into examples. */
typedef struct reading {
    const safer_data *data;
    const size_t *rows;
    size_t row_count, copies;
    const safer_train_options *options;
    const uint64_t *word_hashes; /* of the lexicon's words, or NULL */
    block *blocks;
    sf_ngram_example *examples; /* (rows, copies) */
    worker *workers;
    sf_meter *meter;
    atomic_size_t tokens;
    atomic_int no_memory;
} reading;

/* Appends the buckets of the tokens whose hashes are in the scratch. */
static int add_example(const reading *r, block *b, worker *w, size_t tokens, sf_ngram_example *example)
{
    if (sf_ngram_reserve(&w->scratch, tokens, r->options->ngram.order)) return -1;
    size_t count = sf_ngram_features(&w->scratch, tokens, r->options->ngram.order, r->options->ngram.bits);
    if (sf_grow(&b->buckets, &b->capacity, b->length + count, sizeof *b->buckets)) return -1;
    if (count) memcpy(b->buckets + b->length, w->scratch.buckets, count * sizeof *b->buckets);
    b->length += count;
    example->count = (uint32_t)count;
    return 0;
}

static int read_drawn(reading *r, block *b, worker *w, safer_row row, sf_ngram_example *examples)
{
    const safer_lexicon *l = r->options->lexicon;
    const sf_slots *slots = &w->slots;
    size_t tokens;
    if (sf_slots_read(&w->slots, l, row.text, row.text_length, NULL) != SAFER_OK ||
        sf_sampler_prepare(&w->sampler, slots, l, NULL) != SAFER_OK ||
        sf_grow(&w->draws, &w->draw_capacity, slots->slot_count + 1, sizeof *w->draws) ||
        sf_ngram_read_slots(&w->scratch, slots, &tokens))
        return -1;
    atomic_fetch_add(&r->tokens, tokens);
    sf_stream stream = sf_stream_of(r->options->seed, slots->hash, SF_STAGE_TRAINING);
    for (size_t copy = 0; copy < r->copies; copy++) {
        sf_sampler_draw(w->draws, &w->sampler, stream, copy, 1);
        for (size_t s = 0; s < slots->slot_count; s++) {
            uint64_t first = l->kernel.offsets[l->kernel.row_of[slots->words[slots->slots[s]].word]];
            w->scratch.hashes[w->scratch.places[s]] = r->word_hashes[l->kernel.ids[first + w->draws[s]]];
        }
        if (add_example(r, b, w, tokens, &examples[copy])) return -1;
    }
    return 0;
}

/* The same where tokens are deleted: every copy is a text of its own. */
static int read_deleted(reading *r, block *b, worker *w, safer_row row, sf_ngram_example *examples)
{
    size_t tokens;
    for (size_t copy = 0; copy < r->copies; copy++) {
        if (sf_drawn_text(&w->drawn, r->options->lexicon, row.text, row.text_length, r->options->deletion,
                          r->options->seed, copy, NULL) != SAFER_OK ||
            sf_ngram_read(&w->scratch, w->drawn.text.bytes ? w->drawn.text.bytes : "", w->drawn.text.length, &tokens) ||
            add_example(r, b, w, tokens, &examples[copy]))
            return -1;
        atomic_fetch_add(&r->tokens, tokens);
    }
    return 0;
}

static int read_plain(reading *r, block *b, worker *w, safer_row row, sf_ngram_example *example)
{
    size_t tokens;
    if (sf_ngram_read(&w->scratch, row.text, row.text_length, &tokens)) return -1;
    atomic_fetch_add(&r->tokens, tokens);
    return add_example(r, b, w, tokens, example);
}

static void read_block(void *context, size_t begin, size_t end, int index)
{
    reading *r = context;
    for (size_t i = begin; i < end; i++) {
        block *b = &r->blocks[i];
        size_t first = i * BLOCK, last = first + BLOCK < r->row_count ? first + BLOCK : r->row_count;
        if (sf_meter_cancelled(r->meter) || atomic_load(&r->no_memory)) return;
        for (size_t n = first; n < last; n++) {
            safer_row row = safer_data_row(r->data, r->rows[n]);
            sf_ngram_example *examples = r->examples + n * r->copies;
            if ((sf_deletes(r->options->deletion) ? read_deleted
                 : r->word_hashes                 ? read_drawn
                                                  : read_plain)(r, b, &r->workers[index], row, examples)) {
                atomic_store(&r->no_memory, 1);
                return;
            }
            for (size_t copy = 0; copy < r->copies; copy++) examples[copy].label = row.label;
        }
        const uint32_t *at = b->buckets; /* it moves no more */
        for (size_t e = first * r->copies; e < last * r->copies; at += r->examples[e++].count)
            r->examples[e].features = at;
        sf_meter_add(r->meter, last - first, index);
    }
}

static void reading_free(reading *r)
{
    for (size_t i = 0; r->blocks && i < (r->row_count + BLOCK - 1) / BLOCK; i++) free(r->blocks[i].buckets);
    free(r->blocks);
    free(r->examples);
    *r = (reading){0};
}

static safer_status reading_run(reading *r, const char *stage, safer_error *error)
{
    safer_status status = SAFER_OK;
    int threads = sf_threads(r->options->threads);
    size_t blocks = (r->row_count + BLOCK - 1) / BLOCK;
    sf_meter meter;
    r->blocks = sf_calloc(blocks, sizeof *r->blocks);
    r->examples = sf_calloc(r->row_count, r->copies * sizeof *r->examples);
    r->workers = sf_calloc((size_t)threads, sizeof *r->workers);
    r->meter = &meter;
    sf_meter_start(&meter, &r->options->progress, stage, r->row_count);
    if (!r->blocks || !r->examples || !r->workers) {
        status = sf_fail_memory(error);
        goto done;
    }
    sf_parallel(threads, blocks, 1, read_block, r);
    if (atomic_load(&r->no_memory)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_meter_finish(&meter, error));
done:
    for (int i = 0; r->workers && i < threads; i++) {
        sf_ngram_scratch_clear(&r->workers[i].scratch);
        sf_slots_free(&r->workers[i].slots);
        sf_sampler_free(&r->workers[i].sampler);
        free(r->workers[i].draws);
        sf_drawn_free(&r->workers[i].drawn);
    }
    free(r->workers);
    r->workers = NULL;
    r->meter = NULL;
    return status;
}

/* ------------------------------------------------------------------ the fit */

static sf_ngram_settings settings_of(const reading *train, double cost)
{
    return (sf_ngram_settings){.cost = cost,
                               .alpha = ALPHA,
                               .weight = 1 / (double)train->copies,
                               .passes = PASSES,
                               .tolerance = TOLERANCE,
                               .seed = train->options->seed,
                               .threads = train->options->threads};
}

typedef struct search {
    const reading *train, *dev;
    size_t classes, right[COSTS];
    sf_meter *meter;
    atomic_int no_memory;
} search;

static size_t count_right(const reading *dev, const float *weights, const float *bias, size_t classes, double *sums)
{
    size_t right = 0;
    for (size_t i = 0; i < dev->row_count * dev->copies; i++) {
        const sf_ngram_example *e = &dev->examples[i];
        sf_ngram_sum(sums, e->features, e->count, weights, bias, sf_ngram_outputs(classes));
        right += sf_ngram_decide(sums, classes, NULL) == e->label;
    }
    return right;
}

static void try_costs(void *context, size_t begin, size_t end, int index)
{
    search *s = context;
    int bits = s->train->options->ngram.bits;
    size_t outputs = sf_ngram_outputs(s->classes), count = s->train->row_count * s->train->copies;
    float *weights = sf_alloc((size_t)1 << bits, outputs * sizeof *weights), *bias = sf_alloc(outputs, sizeof *bias);
    double *sums = sf_alloc(outputs, sizeof *sums);
    int failed = !weights || !bias || !sums;
    for (size_t i = begin; i < end && !failed && !sf_meter_cancelled(s->meter); i++) {
        sf_ngram_settings settings = settings_of(s->train, costs[i]);
        sf_ngram_fitted fitted;
        settings.threads = 1;
        settings.worker = index;
        failed = sf_ngram_fit(weights, bias, s->train->examples, count, s->classes, bits, &settings, s->meter, &fitted,
                              NULL) != SAFER_OK;
        if (!failed) s->right[i] = count_right(s->dev, weights, bias, s->classes, sums);
    }
    if (failed) atomic_store(&s->no_memory, 1); /* nothing else can go wrong */
    free(weights);
    free(bias);
    free(sums);
}

/* The best cost, and how well it does on dev. */
static safer_status choose_cost(double *cost, double *accuracy, const reading *train, const reading *dev,
                                safer_error *error)
{
    sf_meter meter;
    search s = {.train = train, .dev = dev, .classes = safer_data_label_count(train->options->train), .meter = &meter};
    sf_meter_start(&meter, &train->options->progress, "fitting", 0);
    sf_parallel(train->options->threads, COSTS, 1, try_costs, &s);
    if (atomic_load(&s.no_memory)) return sf_fail_memory(error);
    size_t best = 0;
    for (size_t i = 1; i < COSTS; i++)
        if (s.right[i] > s.right[best]) best = i;
    *cost = costs[best];
    *accuracy = (double)s.right[best] / (double)(dev->row_count * dev->copies);
    return sf_meter_finish(&meter, error);
}

/* Fits what is kept. `all` has room for the examples of both. */
static safer_status fit_kept(float *weights, float *bias, const reading *train, const reading *dev, double cost,
                             sf_ngram_example *all, safer_train_report *report, safer_error *error)
{
    safer_status status;
    const safer_train_options *options = train->options;
    size_t count = train->row_count * train->copies, held = options->dev ? 0 : dev->row_count * dev->copies;
    sf_ngram_settings settings = settings_of(train, cost);
    sf_ngram_fitted fitted;
    sf_meter meter;
    memcpy(all, train->examples, count * sizeof *all);
    if (held) memcpy(all + count, dev->examples, held * sizeof *all);
    sf_meter_start(&meter, &options->progress, "fitting the kept model", 0);
    SF_TRY(sf_ngram_fit(weights, bias, all, count + held, safer_data_label_count(options->train), options->ngram.bits,
                        &settings, &meter, &fitted, error));
    SF_TRY(sf_meter_finish(&meter, error));
    report->epochs = report->best_epoch = fitted.passes;
    report->loss = fitted.loss;
done:
    return status;
}

/* -------------------------------------------------------------------- whole */

static safer_status save(const char *output, const safer_train_options *options, const float *weights,
                         const float *bias, size_t outputs, double cost, safer_error *error)
{
    char ngrams[16], chosen[32];
    size_t buckets = (size_t)1 << options->ngram.bits;
    char *labels = sf_train_labels_json(options->train), *trained_with = sf_train_provenance_json(options);
    safer_status status = SAFER_MEMORY;
    snprintf(ngrams, sizeof ngrams, "%d", options->ngram.order);
    snprintf(chosen, sizeof chosen, "%g", cost);
    if (labels && trained_with) {
        const sf_tensor tensors[] = {
            {.name = "weights",
             .type = SF_F32,
             .rank = 2,
             .shape = {buckets, outputs},
             .count = buckets * outputs,
             .bytes = weights},
            {.name = "bias", .type = SF_F32, .rank = 1, .shape = {outputs}, .count = outputs, .bytes = bias},
        };
        const sf_metadata metadata[] = {{"arch", "ngram"},
                                        {"labels", labels},
                                        {"trained_with", trained_with},
                                        {"ngrams", ngrams},
                                        {"hashing", SF_NGRAM_HASHING},
                                        {"cost", chosen}};
        status = sf_safetensors_write(output, tensors, 2, metadata, sizeof metadata / sizeof metadata[0], error);
    } else {
        status = sf_fail_memory(error);
    }
    free(labels);
    free(trained_with);
    return status;
}

static int all_point_masses(const safer_lexicon *l) { return l->kernel.offsets[l->kernel.rows] == l->kernel.rows; }

/* How often a text is drawn: copies of which most is deleted are short, and may be more. */
static size_t copies_of(const safer_train_options *o)
{
    const int deletes = sf_deletes(o->deletion), drawn = deletes || (o->lexicon && !all_point_masses(o->lexicon));
    const int copies = !drawn ? 1 : o->course.epochs < MAX_COPIES ? o->course.epochs : MAX_COPIES;
    if (!deletes) return (size_t)copies;
    const double more = o->deletion.keep     ? MOST_DELETED
                        : o->deletion.groups ? (double)copies * (double)o->deletion.groups
                                             : copies / (1 - o->deletion.chance);
    return more < MOST_DELETED ? (size_t)more : MOST_DELETED;
}

static uint64_t *hash_words(const safer_lexicon *l)
{
    uint64_t *hashes = sf_alloc(l->words.count, sizeof *hashes);
    for (uint32_t x = 0; hashes && x < l->words.count; x++)
        hashes[x] = sf_ngram_word_hash(l->words.pool + l->words.offsets[x],
                                       l->words.offsets[x + 1] - l->words.offsets[x] - 1);
    return hashes;
}

safer_status sf_ngram_train(const char *output, const safer_train_options *options, safer_train_report *report,
                            safer_error *error)
{
    safer_status status;
    double start = sf_seconds(), cost = 0;
    sf_train_split split = {0};
    reading train = {0}, dev = {0};
    uint64_t *word_hashes = NULL;
    float *weights = NULL, *bias = NULL;
    sf_ngram_example *all = NULL;
    size_t outputs = sf_ngram_outputs(safer_data_label_count(options->train)), copies = 1;
    size_t parameters = ((size_t)1 << options->ngram.bits) * outputs + outputs;
    safer_train_report result = {.parameters = parameters};

    SF_TRY(sf_train_split_make(&split, options, error));
    copies = copies_of(options);
    if (options->lexicon) word_hashes = hash_words(options->lexicon);
    weights = sf_alloc(parameters - outputs, sizeof *weights);
    bias = sf_alloc(outputs, sizeof *bias);
    all = sf_alloc((split.fit_count + split.dev_count) * copies, sizeof *all);
    if ((options->lexicon && !word_hashes) || !weights || !bias || !all) {
        status = sf_fail_memory(error);
        goto done;
    }
    train = (reading){.data = split.fit_data,
                      .rows = split.fit,
                      .row_count = split.fit_count,
                      .copies = copies,
                      .options = options,
                      .word_hashes = word_hashes};
    dev = (reading){.data = split.dev_data,
                    .rows = split.dev,
                    .row_count = split.dev_count,
                    .copies = copies,
                    .options = options,
                    .word_hashes = word_hashes};
    SF_TRY(reading_run(&train, "reading texts", error));
    SF_TRY(reading_run(&dev, "reading dev texts", error));
    SF_TRY(choose_cost(&cost, &result.dev_accuracy, &train, &dev, error));
    SF_TRY(fit_kept(weights, bias, &train, &dev, cost, all, &result, error));
    SF_TRY(save(output, options, weights, bias, outputs, cost, error));

    result.texts = split.fit_count + (options->dev ? 0 : split.dev_count);
    result.tokens = atomic_load(&train.tokens) + (options->dev ? 0 : atomic_load(&dev.tokens));
    result.seconds = sf_seconds() - start;
    result.tokens_per_second = (double)result.tokens / result.seconds;
    *report = result;
done:
    reading_free(&train);
    reading_free(&dev);
    sf_train_split_free(&split);
    free(word_hashes);
    free(weights);
    free(bias);
    free(all);
    return status;
}
