/* Texts as word numbers, ready to be drawn again and again; texts.h says what they are for. docs/train.md says
 * what training draws. */
#include "train/texts.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/rng.h"
#include "draw/slots.h"
#include "nn/lookup.h"
#include "train/encoder_vectors.h"

#include <string.h>

/* All words seen, while reading. */
typedef struct reading {
    const safer_lexicon *lexicon;
    safer_deletion deletion;
    sf_words seen;
    uint64_t *counts; /* (seen): in the part that is learned from */
    uint32_t *slot;   /* (seen): the lexicon word when it is a slot, or SF_NONE */
    size_t count_capacity, slot_capacity, token_capacity, limit;
    sf_slots slots;
    sf_word_reader reader;
} reading;

static void texts_free(sf_texts *t)
{
    free(t->tokens);
    free(t->offsets);
    free(t->hashes);
    free(t->labels);
    free(t->deletions);
    *t = (sf_texts){0};
}

void sf_textset_free(sf_textset *corpus)
{
    texts_free(&corpus->fit);
    texts_free(&corpus->dev);
    sf_words_free(&corpus->words);
    free(corpus->drawn);
    *corpus = (sf_textset){0};
}

static safer_status add_token(reading *r, sf_texts *t, size_t *count, const char *key, size_t length, uint32_t slot,
                              int learn, safer_error *error)
{
    uint32_t id, before = r->seen.count;
    safer_status status = sf_words_add(&r->seen, key, length, &id, error);
    if (status != SAFER_OK) return status;
    if (sf_grow(&r->counts, &r->count_capacity, (size_t)id + 1, sizeof *r->counts) ||
        sf_grow(&r->slot, &r->slot_capacity, (size_t)id + 1, sizeof *r->slot) ||
        sf_grow(&t->tokens, &r->token_capacity, *count + 1, sizeof *t->tokens))
        return sf_fail_memory(error);
    if (id == before) {
        r->counts[id] = 0;
        r->slot[id] = slot;
    }
    r->counts[id] += learn != 0;
    t->tokens[(*count)++] = id;
    return SAFER_OK;
}

static safer_status read_text(reading *r, sf_texts *t, size_t *count, safer_row row, int learn, safer_error *error)
{
    safer_status status = SAFER_OK;
    if (r->lexicon || sf_deletes(r->deletion)) {
        SF_TRY(sf_slots_read(&r->slots, r->lexicon, row.text, row.text_length, error));
        SF_TRY(sf_slots_split(&r->slots, r->deletion, error)); /* its length in tokens decides how often */
        for (size_t i = 0; i < r->slots.word_count && i < r->limit; i++) {
            const sf_text_word *w = &r->slots.words[i];
            SF_TRY(add_token(r, t, count, r->slots.keys.bytes + w->key, w->key_length,
                             w->slot == SF_NONE ? SF_NONE : w->word, learn, error));
        }
    } else {
        sf_word word;
        int more = 0;
        sf_word_reader_start(&r->reader, row.text, row.text_length);
        for (size_t i = 0; i < r->limit && (more = sf_word_reader_next(&r->reader, &word)) > 0; i++)
            SF_TRY(add_token(r, t, count, word.key, word.key_length, SF_NONE, learn, error));
        if (more < 0) status = sf_fail_memory(error);
    }
done:
    return status;
}

/* Tokens are numbers in `seen` at first. */
static safer_status read_texts(reading *r, sf_texts *t, const safer_data *data, const size_t *rows, size_t count,
                               int learn, safer_error *error)
{
    size_t tokens = 0;
    t->count = count;
    t->offsets = sf_calloc(count + 1, sizeof *t->offsets);
    t->hashes = sf_alloc(count, sizeof *t->hashes);
    t->labels = sf_alloc(count, sizeof *t->labels);
    const int by_chance = sf_deletes(r->deletion) && !r->deletion.groups;
    if (by_chance) t->deletions = sf_calloc(count, sizeof *t->deletions);
    if (!t->offsets || !t->hashes || !t->labels || (by_chance && !t->deletions)) return sf_fail_memory(error);
    r->token_capacity = 0;
    for (size_t i = 0; i < count; i++) {
        safer_row row = safer_data_row(data, rows[i]);
        safer_status status = read_text(r, t, &tokens, row, learn, error);
        if (status != SAFER_OK) return status;
        t->offsets[i + 1] = tokens;
        t->hashes[i] = sf_hash(row.text, row.text_length, 0);
        t->labels[i] = row.label;
        if (t->deletions) t->deletions[i] = r->slots.deletion;
        if (tokens - t->offsets[i] > t->longest) t->longest = tokens - t->offsets[i];
    }
    return SAFER_OK;
}

/* The word of the lexicon with this number. */
static safer_status add_lexicon_word(sf_textset *c, uint32_t word, safer_error *error)
{
    const sf_words_view *words = &c->lexicon->words;
    uint32_t at = words->offsets[word], end = words->offsets[word + 1] - 1, number;
    return sf_words_add(&c->words, words->pool + at, end - at, &number, error);
}

/* What the lexicon lets happen to a word of it. */
static safer_status add_substitutes(sf_textset *c, uint32_t word, sf_known known, safer_error *error)
{
    safer_status status = SAFER_OK;
    const safer_lexicon *l = c->lexicon;
    uint32_t row = l->kernel.row_of[word];
    if (known == SF_KNOW_SYNONYMS) {
        SF_TRY(add_lexicon_word(c, word, error));
        for (uint64_t k = l->synonym_offsets[word]; k < l->synonym_offsets[word + 1]; k++)
            SF_TRY(add_lexicon_word(c, l->synonyms[k], error));
    } else {
        for (uint64_t k = l->kernel.offsets[row]; k < l->kernel.offsets[row + 1]; k++)
            SF_TRY(add_lexicon_word(c, l->kernel.ids[k], error));
    }
done:
    return status;
}

static safer_status make_vocabulary(sf_textset *c, const reading *r, sf_known known, size_t min_count,
                                    safer_error *error)
{
    safer_status status = SAFER_OK;
    uint32_t number;
    for (uint32_t i = 0; i < r->seen.count; i++)
        if (r->counts[i] >= min_count)
            SF_TRY(sf_words_add(&c->words, sf_words_string(&r->seen, i), sf_words_length(&r->seen, i), &number, error));
    if (!c->lexicon) goto done;
    const sf_words_view *words = &c->lexicon->words;
    for (uint32_t i = 0; i < r->seen.count; i++)
        if (r->slot[i] != SF_NONE && r->counts[i] > 0) SF_TRY(add_substitutes(c, r->slot[i], known, error));
    if (!(c->drawn = sf_alloc(words->count, sizeof *c->drawn))) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (uint32_t i = 0; i < words->count; i++)
        c->drawn[i] = sf_words_find(&c->words, words->pool + words->offsets[i],
                                    words->offsets[i + 1] - words->offsets[i] - 1) +
                      1;
done:
    return status;
}

static void renumber(sf_texts *t, const sf_textset *c, const reading *r)
{
    for (size_t i = 0; i < t->offsets[t->count]; i++) {
        uint32_t id = t->tokens[i];
        t->tokens[i] = r->slot[id] != SF_NONE
                           ? SF_TOKEN_SLOT | r->slot[id]
                           : sf_words_find(&c->words, sf_words_string(&r->seen, id), sf_words_length(&r->seen, id)) + 1;
    }
}

size_t sf_texts_limit(const safer_train_options *options)
{
    int limit = options->cnn.max_words;
    return limit && limit < SF_LOOKUP_POSITIONS ? (size_t)limit : SF_LOOKUP_POSITIONS;
}

safer_status sf_textset_read(sf_textset *out, const sf_train_split *split, sf_known known,
                             const safer_train_options *options, safer_error *error)
{
    safer_status status;
    sf_textset c = {.lexicon = options->lexicon,
                    .deletes = sf_deletes(options->deletion),
                    .groups = options->deletion.groups,
                    .limit = sf_texts_limit(options)};
    reading r = {.lexicon = options->lexicon, .deletion = options->deletion, .limit = c.deletes ? SIZE_MAX : c.limit};
    SF_TRY(read_texts(&r, &c.fit, split->fit_data, split->fit, split->fit_count, 1, error));
    SF_TRY(read_texts(&r, &c.dev, split->dev_data, split->dev, split->dev_count, 0, error));
    SF_TRY(make_vocabulary(&c, &r, known, (size_t)options->cnn.min_count, error));
    renumber(&c.fit, &c, &r);
    renumber(&c.dev, &c, &r);
    *out = c;
    c = (sf_textset){0};
done:
    sf_textset_free(&c);
    sf_words_free(&r.seen);
    free(r.counts);
    free(r.slot);
    sf_slots_free(&r.slots);
    sf_word_reader_free(&r.reader);
    return status;
}

/* Whether word `i` of the text is deleted: as the sampler does it, but that only words count. */
static int is_deleted(uint32_t deletion, sf_stream stream, uint64_t sample, size_t i, uint32_t block[4])
{
    const uint32_t counter[4] = {(uint32_t)sample, (uint32_t)(sample >> 32), (uint32_t)(i / 4), UINT32_MAX};
    if (i % 4 == 0) sf_philox(block, counter, stream.key);
    return block[i % 4] < deletion;
}

/* The words of one group, each by its canonical number: as the sampler does it, but that another hash will do. */
static size_t draw_group(uint32_t *ids, const sf_textset *c, const uint32_t *tokens, size_t count, sf_stream stream,
                         uint64_t sample)
{
    size_t kept = 0;
    for (size_t i = 0; i < count && kept < c->limit; i++) {
        uint32_t id = tokens[i], block[4];
        if (id & SF_TOKEN_SLOT) {
            const sf_kernel_view *kernel = &c->lexicon->kernel;
            id = c->drawn[kernel->ids[kernel->offsets[kernel->row_of[id & ~SF_TOKEN_SLOT]]]];
        }
        const uint32_t counter[4] = {(uint32_t)sample, (uint32_t)(sample >> 32), id, UINT32_MAX};
        sf_philox(block, counter, stream.key);
        if (block[0] % c->groups == 0) ids[kept++] = id;
    }
    return kept;
}

size_t sf_textset_draw(uint32_t *ids, const sf_textset *c, const sf_texts *texts, size_t index, uint64_t seed,
                       uint64_t sample)
{
    size_t count = texts->offsets[index + 1] - texts->offsets[index];
    const uint32_t *tokens = texts->tokens + texts->offsets[index];
    sf_stream stream = sf_stream_of(seed, texts->hashes[index], SF_STAGE_TRAINING);
    uint32_t slot = 0, block[4] = {0};
    size_t kept = 0;
    if (c->groups) return draw_group(ids, c, tokens, count, stream, sample);
    for (size_t i = 0; i < count && kept < c->limit; i++) {
        const int slots = (tokens[i] & SF_TOKEN_SLOT) != 0;
        if (texts->deletions && is_deleted(texts->deletions[index], stream, sample, i, block)) {
            slot += (uint32_t)slots;
            continue;
        }
        if (!slots) {
            ids[kept++] = tokens[i];
            continue;
        }
        const sf_kernel_view *kernel = &c->lexicon->kernel;
        uint32_t row = kernel->row_of[tokens[i] & ~SF_TOKEN_SLOT];
        uint64_t k = kernel->offsets[row];
        uint32_t ticket = sf_draw_below(stream, sample, slot++, kernel->totals[row]);
        if (kernel->totals[row] == kernel->offsets[row + 1] - k)
            k += ticket; /* all weights are 1 */
        else
            while (ticket >= kernel->weights[k]) ticket -= kernel->weights[k++];
        ids[kept++] = c->drawn[kernel->ids[k]];
    }
    return kept;
}

/* ------------------------------------------------------------------ batches */

static int falling(const void *left, const void *right)
{
    const size_t *a = left, *b = right;
    return *a < *b ? 1 : *a > *b ? -1 : 0;
}

/* The words of the longest `batch` texts together: no batch has more. SIZE_MAX without memory. */
static size_t most_words(const sf_texts *texts, size_t batch)
{
    size_t sum = 0, *lengths = sf_alloc(texts->count, sizeof *lengths);
    if (!lengths) return SIZE_MAX;
    for (size_t i = 0; i < texts->count; i++) lengths[i] = texts->offsets[i + 1] - texts->offsets[i];
    qsort(lengths, texts->count, sizeof *lengths, falling);
    for (size_t i = 0; i < batch && i < texts->count; i++) sum += lengths[i];
    free(lengths);
    return sum;
}

safer_status sf_textbatch_new(sf_textbatch *out, const sf_texts *texts, size_t size, safer_error *error)
{
    sf_textbatch b = {.size = size < texts->count ? size : texts->count, .words = most_words(texts, size)};
    if (b.words == SIZE_MAX) return sf_fail_memory(error);
    if (b.words > UINT32_MAX)
        return sf_fail(error, SAFER_INVALID,
                       "`batch` is %zu: the longest texts have %zu words together; lower it or give `max_words`", size,
                       b.words);
    b.ids = sf_alloc(b.words, sizeof *b.ids);
    b.offsets = sf_calloc(b.size + 1, sizeof *b.offsets);
    b.labels = sf_alloc(b.size, sizeof *b.labels);
    if (!b.ids || !b.offsets || !b.labels) {
        sf_textbatch_free(&b);
        return sf_fail_memory(error);
    }
    *out = b;
    return SAFER_OK;
}

void sf_textbatch_free(sf_textbatch *b)
{
    free(b->ids);
    free(b->offsets);
    free(b->labels);
    *b = (sf_textbatch){0};
}

void sf_textbatch_choose(sf_textbatch *b, const sf_texts *texts, const uint32_t *chosen, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        b->offsets[i + 1] = b->offsets[i] + (texts->offsets[chosen[i] + 1] - texts->offsets[chosen[i]]);
        b->labels[i] = texts->labels[chosen[i]];
    }
}

void sf_textbatch_shorten(sf_textbatch *b, const size_t *lengths, size_t count)
{
    size_t end = 0;
    for (size_t i = 0; i < count; i++) {
        memmove(b->ids + end, b->ids + b->offsets[i], lengths[i] * sizeof *b->ids);
        b->offsets[i] = end;
        end += lengths[i];
    }
    b->offsets[count] = end;
}

/* ------------------------------------------------------------- word vectors */

safer_status sf_textset_vectors(sf_vectors *out, const sf_textset *corpus, const safer_train_options *options,
                                safer_error *error)
{
    const char *path = options->cnn.vectors;
    sf_file file = {0};
    safer_status status;
    if (sf_encoder_named(path))
        return sf_encoder_vectors(out, &corpus->words, path, (size_t)options->cnn.dim, options, error);
    SF_TRY(sf_file_read(&file, path, error));
    SF_TRY(sf_vectors_parse(out, file.bytes, file.length, path, &corpus->words, options->threads, error));
    if (out->words.count == 0)
        status = sf_fail(error, SAFER_INPUT, "%s: not one word of the training texts has a vector there", path);
done:
    sf_file_free(&file);
    return status;
}

void sf_textset_place(float *embedding, const sf_textset *corpus, const sf_vectors *vectors)
{
    const sf_words *words = &corpus->words;
    size_t D = vectors->dim;
    for (uint32_t w = 0; w < words->count; w++) {
        uint32_t at = sf_words_find(&vectors->words, sf_words_string(words, w), sf_words_length(words, w));
        if (at != SF_NONE) memcpy(embedding + ((size_t)w + 1) * D, vectors->values + at * D, D * sizeof *embedding);
    }
}
