/* The word pieces of a lexicon's words, cut once for all texts. */
#include "model/lexpieces.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERNS = SF_UPPER + 1, BLOCK_IDS = 1 << 14 };

/* Memory of words that were cut. It never moves. */
typedef struct block {
    struct block *next;
    uint32_t ids[];
} block;

struct sf_lexpieces {
    const sf_piecer *piecer;
    size_t limit;
    sf_digest lexicon;
    uint32_t words, rows;
    _Atomic(const uint32_t *) *cut; /* (PATTERNS, words); NULL: not yet */
    atomic_uint *least;             /* (PATTERNS, rows): it and 1; 0: not known yet */
    atomic_uint holds;
    pthread_mutex_t lock; /* of what is below: one thread cuts at a time */
    block *blocks;
    size_t used, size; /* ids of the first block */
    sf_buffer text;
    sf_ids ids;
    sf_piecer_scratch scratch;
};

sf_lexpieces *sf_lexpieces_new(const sf_piecer *piecer, const safer_lexicon *lexicon, size_t limit)
{
    sf_lexpieces *t = sf_calloc(1, sizeof *t);
    if (!t) return NULL;
    t->piecer = piecer;
    t->limit = limit;
    t->lexicon = lexicon->sha256;
    t->words = lexicon->kernel.words;
    t->rows = lexicon->kernel.rows;
    t->cut = sf_calloc((size_t)PATTERNS * t->words + 1, sizeof *t->cut);
    t->least = sf_calloc((size_t)PATTERNS * t->rows + 1, sizeof *t->least);
    atomic_init(&t->holds, 1);
    pthread_mutex_init(&t->lock, NULL);
    if (t->cut && t->least) return t;
    sf_lexpieces_free(t);
    return NULL;
}

void sf_lexpieces_free(sf_lexpieces *t)
{
    if (!t || atomic_fetch_sub(&t->holds, 1) > 1) return;
    for (block *b = t->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free((void *)t->cut);
    free(t->least);
    sf_buffer_free(&t->text);
    sf_ids_free(&t->ids);
    sf_piecer_scratch_free(&t->scratch);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* A copy of the ids, behind their number. The lock is held. */
static const uint32_t *keep(sf_lexpieces *t)
{
    const size_t need = t->ids.count + 1;
    if (need > t->size - t->used) {
        const size_t size = need > BLOCK_IDS ? need : BLOCK_IDS;
        block *b = sf_alloc(1, sizeof *b + size * sizeof *b->ids);
        if (!b) return NULL;
        b->next = t->blocks;
        t->blocks = b;
        t->size = size;
        t->used = 0;
    }
    uint32_t *out = t->blocks->ids + t->used;
    out[0] = (uint32_t)t->ids.count;
    if (t->ids.count) memcpy(out + 1, t->ids.ids, t->ids.count * sizeof *out);
    t->used += need;
    return out;
}

static const uint32_t *cut_word(sf_lexpieces *t, const safer_lexicon *lexicon, uint32_t word, sf_case pattern)
{
    const sf_words_view *words = &lexicon->words;
    const uint32_t begin = words->offsets[word];
    sf_buffer_clear(&t->text);
    t->ids.count = 0;
    if (sf_word_render(&t->text, words->pool + begin, words->offsets[word + 1] - begin - 1, pattern) ||
        sf_piecer_encode(&t->ids, t->piecer, t->text.bytes, t->text.length, t->limit, &t->scratch))
        return NULL;
    return keep(t);
}

const uint32_t *sf_lexpieces_word(sf_lexpieces *t, const safer_lexicon *lexicon, uint32_t word, sf_case pattern)
{
    _Atomic(const uint32_t *) *place = &t->cut[(size_t)pattern * t->words + word];
    const uint32_t *known = atomic_load_explicit(place, memory_order_acquire);
    if (known) return known;
    pthread_mutex_lock(&t->lock);
    known = atomic_load_explicit(place, memory_order_relaxed);
    if (!known && (known = cut_word(t, lexicon, word, pattern)))
        atomic_store_explicit(place, known, memory_order_release);
    pthread_mutex_unlock(&t->lock);
    return known;
}

size_t sf_lexpieces_least(sf_lexpieces *t, const safer_lexicon *lexicon, uint32_t row, sf_case pattern)
{
    const sf_kernel_view *kernel = &lexicon->kernel;
    const uint32_t floor = sf_piecer_least(t->piecer);
    atomic_uint *place = &t->least[(size_t)pattern * t->rows + row];
    uint32_t least = atomic_load_explicit(place, memory_order_relaxed);
    if (least) return least - 1;
    least = UINT32_MAX - 1;
    for (uint64_t i = kernel->offsets[row]; i < kernel->offsets[row + 1] && least > floor; i++) {
        const uint32_t *pieces = sf_lexpieces_word(t, lexicon, kernel->ids[i], pattern);
        if (!pieces) return SIZE_MAX;
        if (pieces[0] < least) least = pieces[0] > floor ? pieces[0] : floor;
    }
    atomic_store_explicit(place, least + 1, memory_order_relaxed);
    return least;
}

/* ---------------------------------------------------------------- the last one */

struct sf_lexpieces_last {
    pthread_mutex_t lock;
    sf_lexpieces *table; /* or NULL */
};

sf_lexpieces_last *sf_lexpieces_last_new(void)
{
    sf_lexpieces_last *last = sf_calloc(1, sizeof *last);
    if (last) pthread_mutex_init(&last->lock, NULL);
    return last;
}

void sf_lexpieces_last_free(sf_lexpieces_last *last)
{
    if (!last) return;
    sf_lexpieces_free(last->table);
    pthread_mutex_destroy(&last->lock);
    free(last);
}

sf_lexpieces *sf_lexpieces_of(sf_lexpieces_last *last, const sf_piecer *piecer, const safer_lexicon *lexicon,
                              size_t limit)
{
    sf_lexpieces *before = NULL;
    pthread_mutex_lock(&last->lock);
    sf_lexpieces *t = last->table;
    if (!t || memcmp(&t->lexicon, &lexicon->sha256, sizeof t->lexicon) != 0) {
        t = sf_lexpieces_new(piecer, lexicon, limit);
        if (t) {
            before = last->table;
            last->table = t;
        }
    }
    if (t) atomic_fetch_add(&t->holds, 1);
    pthread_mutex_unlock(&last->lock);
    sf_lexpieces_free(before);
    return t;
}
