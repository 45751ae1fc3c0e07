/* Words counted in data sets. */
#include "lexicon/corpus.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "lexicon/overlap.h"
#include "text/word.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_TEXTS = 256 };

/* The words of one block of texts. */
typedef struct block {
    uint32_t *ids;
    size_t count, capacity, tokens;
    size_t lengths[BLOCK_TEXTS];
} block;

typedef struct reading {
    const safer_data *data;
    const sf_words_view *words;
    size_t texts;
    block *blocks;
    const sf_fold *fold;     /* or NULL */
    sf_word_reader *readers; /* one per worker, */
    sf_folder *folders;      /* and one of these */
    atomic_int no_memory;
    sf_meter meter;
} reading;

static int read_text(const reading *job, block *b, int worker, safer_row row, size_t *length)
{
    sf_word_reader *reader = &job->readers[worker];
    sf_folder *folder = &job->folders[worker];
    sf_word word;
    int more;
    size_t before = b->count;
    if (job->fold && sf_folder_apply(folder, job->fold, row.text, row.text_length)) return -1;
    sf_word_reader_start(reader, job->fold ? folder->text.bytes : row.text,
                         job->fold ? folder->text.length : row.text_length);
    while ((more = sf_word_reader_next(reader, &word)) > 0) {
        b->tokens++;
        uint32_t id = sf_words_view_find(job->words, word.key, word.key_length);
        if (id == SF_NONE) continue;
        if (sf_grow(&b->ids, &b->capacity, b->count + 1, sizeof *b->ids)) return -1;
        b->ids[b->count++] = id;
    }
    *length = b->count - before;
    return more;
}

static void read_blocks(void *context, size_t begin, size_t end, int worker)
{
    reading *job = context;
    for (size_t i = begin; i < end; i++) {
        block *b = &job->blocks[i];
        if (sf_meter_cancelled(&job->meter) || atomic_load(&job->no_memory)) return;
        for (size_t t = 0; t < BLOCK_TEXTS && i * BLOCK_TEXTS + t < job->texts; t++) {
            safer_row row = safer_data_row(job->data, i * BLOCK_TEXTS + t);
            if (read_text(job, b, worker, row, &b->lengths[t])) {
                atomic_store(&job->no_memory, 1);
                return;
            }
        }
        sf_meter_add(&job->meter, BLOCK_TEXTS, worker);
    }
}

/* Adds the texts of one data set. */
static safer_status read_data(sf_corpus *corpus, const safer_data *data, const sf_words_view *words,
                              const sf_fold *fold, int threads, const safer_progress *progress, safer_error *error)
{
    safer_status status = SAFER_OK;
    reading job = {.data = data, .words = words, .fold = fold, .texts = safer_data_size(data)};
    size_t blocks = (job.texts + BLOCK_TEXTS - 1) / BLOCK_TEXTS, more = 0;
    threads = sf_threads(threads);
    job.blocks = sf_calloc(blocks, sizeof *job.blocks);
    job.readers = sf_calloc((size_t)threads, sizeof *job.readers);
    job.folders = sf_calloc((size_t)threads, sizeof *job.folders);
    if (!job.blocks || !job.readers || !job.folders) goto no_memory;
    sf_meter_start(&job.meter, progress, "counting words", job.texts);
    sf_parallel(threads, blocks, 1, read_blocks, &job);
    SF_TRY(sf_meter_finish(&job.meter, error));
    if (atomic_load(&job.no_memory)) goto no_memory;

    uint64_t filled = corpus->offsets ? corpus->offsets[corpus->texts] : 0;
    for (size_t i = 0; i < blocks; i++) more += job.blocks[i].count;
    uint32_t *ids = sf_realloc(corpus->ids, filled + more, sizeof *ids);
    if (ids) corpus->ids = ids;
    uint64_t *offsets = sf_realloc(corpus->offsets, corpus->texts + job.texts + 1, sizeof *offsets);
    if (offsets) corpus->offsets = offsets;
    if (!ids || !offsets) goto no_memory;
    offsets[corpus->texts] = filled;
    for (size_t i = 0; i < blocks; i++) {
        block *b = &job.blocks[i];
        if (b->count) memcpy(ids + filled, b->ids, b->count * sizeof *ids);
        for (size_t k = 0; k < b->count; k++) corpus->counts[b->ids[k]]++;
        for (size_t t = 0; t < BLOCK_TEXTS && i * BLOCK_TEXTS + t < job.texts; t++) {
            filled += b->lengths[t];
            offsets[++corpus->texts] = filled;
        }
        corpus->tokens += b->tokens;
    }
    goto done;
no_memory:
    status = sf_fail_memory(error);
done:
    for (size_t i = 0; job.blocks && i < blocks; i++) free(job.blocks[i].ids);
    for (int i = 0; job.readers && i < threads; i++) sf_word_reader_free(&job.readers[i]);
    for (int i = 0; job.folders && i < threads; i++) sf_folder_free(&job.folders[i]);
    free(job.blocks);
    free(job.readers);
    free(job.folders);
    return status;
}

safer_status sf_corpus_of(sf_corpus *out, const safer_data *const *sets, size_t count, const sf_words_view *words,
                          const sf_fold *fold, int threads, const safer_progress *progress, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_corpus corpus = {0};
    corpus.counts = sf_calloc(words->count, sizeof *corpus.counts);
    corpus.offsets = sf_calloc(1, sizeof *corpus.offsets);
    if (!corpus.counts || !corpus.offsets) status = sf_fail_memory(error);
    for (size_t i = 0; i < count && status == SAFER_OK; i++)
        status = read_data(&corpus, sets[i], words, fold, threads, progress, error);
    if (status == SAFER_OK)
        *out = corpus;
    else
        sf_corpus_free(&corpus);
    return status;
}

void sf_corpus_free(sf_corpus *corpus)
{
    free(corpus->counts);
    free(corpus->offsets);
    free(corpus->ids);
    *corpus = (sf_corpus){0};
}

void sf_corpus_renumber(sf_corpus *corpus, const uint32_t *map)
{
    uint64_t kept = 0, begin = 0;
    for (size_t t = 0; t < corpus->texts; t++) {
        uint64_t end = corpus->offsets[t + 1];
        for (uint64_t i = begin; i < end; i++)
            if (map[corpus->ids[i]] != SF_NONE) corpus->ids[kept++] = map[corpus->ids[i]];
        corpus->offsets[t + 1] = kept;
        begin = end;
    }
}

size_t sf_corpus_longest(const sf_corpus *corpus)
{
    uint64_t longest = 0;
    for (size_t t = 0; t < corpus->texts; t++)
        if (corpus->offsets[t + 1] - corpus->offsets[t] > longest)
            longest = corpus->offsets[t + 1] - corpus->offsets[t];
    return (size_t)longest;
}

double sf_corpus_share_above_half(const sf_corpus *corpus, const double *overlap, double *scratch)
{
    const size_t all = SIZE_MAX;
    size_t above = 0;
    for (size_t t = 0; t < corpus->texts; t++) {
        size_t count = 0;
        double product;
        for (uint64_t i = corpus->offsets[t]; i < corpus->offsets[t + 1]; i++)
            if (overlap[corpus->ids[i]] < 1.0) scratch[count++] = overlap[corpus->ids[i]];
        sf_overlap_products(&product, &all, 1, scratch, count);
        above += product > 0.5;
    }
    return corpus->texts ? (double)above / (double)corpus->texts : 0.0;
}
