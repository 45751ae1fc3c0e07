/* The pieces of a lexicon's words, cut once for all texts: by case pattern and by what is glued to them (an envelope),
 * each when it is first asked for. lexpieces.h says why. */
#include "model/lexpieces.h"

#include "base/memory.h"
#include "text/unicode.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATTERNS = SF_UPPER + 1,
    BLOCK_IDS = 1 << 14,
    MOST_BYTES = 8,      /* of surroundings, on either side */
    MOST_ENVELOPES = 48, /* and as many as fit into */
    MOST_MEMORY = 1 << 26
};

/* Memory of words that were cut. It never moves. */
typedef struct block {
    struct block *next;
    uint32_t ids[];
} block;

/* Surroundings, and the words in them. */
typedef struct envelope {
    char before[MOST_BYTES], after[MOST_BYTES];
    size_t before_length, after_length;
    int inside;
    _Atomic(const uint32_t *) *cut; /* (PATTERNS, words); NULL: not yet */
    atomic_uint *least;             /* (PATTERNS, rows): it and 1; 0: not known yet */
} envelope;

struct sf_lexpieces {
    const sf_piecer *piecer;
    size_t limit;
    sf_digest lexicon;
    uint32_t words,
        rows; /* rows: 0 for lexicons whose kernel changes from text to text, of which only words are kept */
    envelope envelopes[MOST_ENVELOPES];
    atomic_uint count;
    unsigned most;
    _Atomic sf_letters *begins, *ends; /* (rows) in lower case; 0: not known yet */
    atomic_uint holds;
    pthread_mutex_t lock; /* of what is below and of new envelopes: one thread cuts at a time */
    block *blocks;
    size_t used, size; /* ids of the first block */
    sf_lexpieces_tools own, *spare;
};

/* Memory of the envelope behind the last one. */
static int make_envelope(sf_lexpieces *t, const sf_surroundings *s)
{
    envelope *e = &t->envelopes[t->count];
    e->cut = sf_calloc((size_t)PATTERNS * t->words + 1, sizeof *e->cut);
    e->least = sf_calloc((size_t)PATTERNS * t->rows + 1, sizeof *e->least);
    if (!e->cut || !e->least) {
        free((void *)e->cut);
        free(e->least);
        return -1;
    }
    if (s->before.length) memcpy(e->before, s->before.bytes, s->before.length);
    if (s->after.length) memcpy(e->after, s->after.bytes, s->after.length);
    e->before_length = s->before.length;
    e->after_length = s->after.length;
    e->inside = s->inside;
    atomic_store_explicit(&t->count, t->count + 1, memory_order_release);
    return 0;
}

sf_lexpieces *sf_lexpieces_new(const sf_piecer *piecer, const safer_lexicon *lexicon, size_t limit)
{
    sf_lexpieces *t = sf_calloc(1, sizeof *t);
    if (!t) return NULL;
    t->piecer = piecer;
    t->limit = limit;
    t->lexicon = lexicon->sha256;
    t->words = lexicon->kernel.words;
    t->rows = lexicon->shadow ? 0 : lexicon->kernel.rows;
    t->begins = sf_calloc((size_t)t->rows + 1, sizeof *t->begins);
    t->ends = sf_calloc((size_t)t->rows + 1, sizeof *t->ends);
    const size_t each = PATTERNS * ((size_t)t->words * sizeof(void *) + (size_t)t->rows * sizeof(atomic_uint)) + 1;
    const size_t most = MOST_MEMORY / each;
    t->most = (unsigned)(most < 1 ? 1 : most > MOST_ENVELOPES ? MOST_ENVELOPES : most);
    atomic_init(&t->holds, 1);
    pthread_mutex_init(&t->lock, NULL);
    if (t->begins && t->ends && make_envelope(t, &(sf_surroundings){{"", 0}, {"", 0}, 0}) == 0) return t;
    sf_lexpieces_free(t);
    return NULL;
}

static void tools_free(sf_lexpieces_tools *tools)
{
    sf_buffer_free(&tools->text);
    sf_ids_free(&tools->ids);
    sf_piecer_scratch_free(&tools->piecer);
}

void sf_lexpieces_free(sf_lexpieces *t)
{
    if (!t || atomic_fetch_sub(&t->holds, 1) > 1) return;
    for (block *b = t->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    for (unsigned i = 0; i < t->count; i++) {
        free((void *)t->envelopes[i].cut);
        free(t->envelopes[i].least);
    }
    for (sf_lexpieces_tools *s = t->spare, *next; s; s = next) {
        next = s->next;
        tools_free(s);
        free(s);
    }
    free((void *)t->begins);
    free((void *)t->ends);
    tools_free(&t->own);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

sf_lexpieces_tools *sf_lexpieces_take(sf_lexpieces *t)
{
    pthread_mutex_lock(&t->lock);
    sf_lexpieces_tools *tools = t->spare;
    if (tools) t->spare = tools->next;
    pthread_mutex_unlock(&t->lock);
    return tools ? tools : sf_calloc(1, sizeof *tools);
}

void sf_lexpieces_give(sf_lexpieces *t, sf_lexpieces_tools *tools)
{
    if (!tools) return;
    pthread_mutex_lock(&t->lock);
    tools->next = t->spare;
    t->spare = tools;
    pthread_mutex_unlock(&t->lock);
}

/* ------------------------------------------------------------ surroundings */

static int is_same(const envelope *e, const sf_surroundings *s)
{
    return e->inside == s->inside && e->before_length == s->before.length && e->after_length == s->after.length &&
           (!s->before.length || memcmp(e->before, s->before.bytes, s->before.length) == 0) &&
           (!s->after.length || memcmp(e->after, s->after.bytes, s->after.length) == 0);
}

static uint32_t find(sf_lexpieces *t, const sf_surroundings *s, unsigned from, unsigned count)
{
    for (unsigned i = from; i < count; i++)
        if (is_same(&t->envelopes[i], s)) return i;
    return SF_NONE;
}

int sf_lexpieces_find(uint32_t *number, sf_lexpieces *t, const sf_surroundings *s)
{
    const unsigned count = atomic_load_explicit(&t->count, memory_order_acquire);
    int failed = 0;
    *number = find(t, s, 0, count);
    if (*number != SF_NONE || s->before.length > MOST_BYTES || s->after.length > MOST_BYTES || count >= t->most)
        return 0;
    pthread_mutex_lock(&t->lock);
    *number = find(t, s, count, t->count);
    if (*number == SF_NONE && t->count < t->most) {
        failed = make_envelope(t, s);
        if (!failed) *number = t->count - 1;
    }
    pthread_mutex_unlock(&t->lock);
    return failed;
}

/* ------------------------------------------------------------------- words */

/* A copy of the ids, behind their number. The lock is held. */
static const uint32_t *keep(sf_lexpieces *t)
{
    const size_t need = t->own.ids.count + 1;
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
    out[0] = (uint32_t)t->own.ids.count;
    if (t->own.ids.count) memcpy(out + 1, t->own.ids.ids, t->own.ids.count * sizeof *out);
    t->used += need;
    return out;
}

static const uint32_t *cut_word(sf_lexpieces *t, const safer_lexicon *lexicon, const envelope *e, uint32_t word,
                                sf_case pattern)
{
    const sf_words_view *words = &lexicon->words;
    const uint32_t begin = words->offsets[word];
    sf_buffer *text = &t->own.text;
    sf_buffer_clear(text);
    t->own.ids.count = 0;
    if (sf_buffer_add(text, e->before, e->before_length) ||
        sf_word_render(text, words->pool + begin, words->offsets[word + 1] - begin - 1, pattern) ||
        sf_buffer_add(text, e->after, e->after_length) ||
        sf_piecer_encode_part(&t->own.ids, t->piecer, text->bytes, text->length, t->limit, e->inside, &t->own.piecer))
        return NULL;
    return keep(t);
}

const uint32_t *sf_lexpieces_word(sf_lexpieces *t, const safer_lexicon *lexicon, uint32_t surroundings, uint32_t word,
                                  sf_case pattern)
{
    const envelope *e = &t->envelopes[surroundings];
    _Atomic(const uint32_t *) *place = &e->cut[(size_t)pattern * t->words + word];
    const uint32_t *known = atomic_load_explicit(place, memory_order_acquire);
    if (known) return known;
    pthread_mutex_lock(&t->lock);
    known = atomic_load_explicit(place, memory_order_relaxed);
    if (!known && (known = cut_word(t, lexicon, e, word, pattern)))
        atomic_store_explicit(place, known, memory_order_release);
    pthread_mutex_unlock(&t->lock);
    return known;
}

size_t sf_lexpieces_least(sf_lexpieces *t, const safer_lexicon *lexicon, uint32_t surroundings, uint32_t row,
                          sf_case pattern)
{
    const sf_kernel_view *kernel = &lexicon->kernel;
    const uint32_t floor = sf_piecer_least(t->piecer);
    atomic_uint *place = t->rows ? &t->envelopes[surroundings].least[(size_t)pattern * t->rows + row] : NULL;
    uint32_t least = place ? atomic_load_explicit(place, memory_order_relaxed) : 0;
    if (least) return least - 1;
    least = UINT32_MAX - 1;
    for (uint64_t i = kernel->offsets[row]; i < kernel->offsets[row + 1] && least > floor; i++) {
        const uint32_t *pieces = sf_lexpieces_word(t, lexicon, surroundings, kernel->ids[i], pattern);
        if (!pieces) return SIZE_MAX;
        if (pieces[0] < least) least = pieces[0] > floor ? pieces[0] : floor;
    }
    if (place) atomic_store_explicit(place, least + 1, memory_order_relaxed);
    return least;
}

/* ----------------------------------------------------------------- letters */

/* Keys are in lower case; what is not plain is any letter. */
static void note_word(sf_lexletters *out, const safer_lexicon *lexicon, uint32_t word)
{
    const sf_words_view *words = &lexicon->words;
    const char *key = words->pool + words->offsets[word];
    const size_t length = words->offsets[word + 1] - words->offsets[word] - 1;
    const sf_letters other = (sf_letters)1 << SF_LETTER_OTHER;
    const int plain = length > 1; /* one letter can be its own title */
    out->begins |= plain && key[0] >= 'a' ? sf_letter((unsigned char)key[0]) : other;
    out->ends |= plain && key[length - 1] >= 'a' ? sf_letter((unsigned char)key[length - 1]) : other;
}

/* The capitals of these letters. */
static sf_letters capitals(sf_letters small)
{
    const sf_letters other = (sf_letters)1 << SF_LETTER_OTHER;
    return (small & (((sf_letters)1 << 26) - 1)) << 26 | (small & other);
}

static sf_lexletters in_pattern(sf_lexletters lower, sf_case pattern)
{
    return (sf_lexletters){.begins = pattern != SF_LOWER ? capitals(lower.begins) : lower.begins,
                           .ends = pattern == SF_UPPER ? capitals(lower.ends) : lower.ends};
}

sf_lexletters sf_lexpieces_letters(sf_lexpieces *t, const safer_lexicon *lexicon, uint32_t row, sf_case pattern)
{
    const sf_kernel_view *kernel = &lexicon->kernel;
    sf_lexletters all = {0, 0};
    if (t->rows) {
        all.begins = atomic_load_explicit(&t->begins[row], memory_order_relaxed);
        all.ends = atomic_load_explicit(&t->ends[row], memory_order_relaxed);
    }
    if (!all.begins || !all.ends) {
        all = (sf_lexletters){0, 0};
        for (uint64_t i = kernel->offsets[row]; i < kernel->offsets[row + 1]; i++)
            note_word(&all, lexicon, kernel->ids[i]);
        if (t->rows) {
            atomic_store_explicit(&t->begins[row], all.begins, memory_order_relaxed);
            atomic_store_explicit(&t->ends[row], all.ends, memory_order_relaxed);
        }
    }
    return in_pattern(all, pattern);
}

sf_lexletters sf_lexpieces_word_letters(const safer_lexicon *lexicon, uint32_t word, sf_case pattern)
{
    sf_lexletters letters = {0, 0};
    note_word(&letters, lexicon, word);
    return in_pattern(letters, pattern);
}

/* ---------------------------------------------------------------- the last one */

struct sf_lexpieces_last {
    pthread_mutex_t lock;
    sf_lexpieces *tables[2]; /* or NULL; the second for lexicons of texts under attack */
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
    sf_lexpieces_free(last->tables[0]);
    sf_lexpieces_free(last->tables[1]);
    pthread_mutex_destroy(&last->lock);
    free(last);
}

sf_lexpieces *sf_lexpieces_of(sf_lexpieces_last *last, const sf_piecer *piecer, const safer_lexicon *lexicon,
                              size_t limit)
{
    sf_lexpieces *before = NULL, **table = &last->tables[lexicon->shadow != 0];
    pthread_mutex_lock(&last->lock);
    sf_lexpieces *t = *table;
    if (!t || memcmp(&t->lexicon, &lexicon->sha256, sizeof t->lexicon) != 0) {
        t = sf_lexpieces_new(piecer, lexicon, limit);
        if (t) {
            before = *table;
            *table = t;
        }
    }
    if (t) atomic_fetch_add(&t->holds, 1);
    pthread_mutex_unlock(&last->lock);
    sf_lexpieces_free(before);
    return t;
}
