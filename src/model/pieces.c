/* The word pieces of a text whose words are drawn.
 *
 * Cuts. In the gaps between slots every character that certainly ends a pre-token is a
 * place to cut, unless a special token could lie across it in some draw ("[" before a slot
 * that may become "SEP"). A slot together with what has no cut on either side of it is a
 * part; slots without a cut between them share one.
 *
 * Hidden slots. The least number of pieces before a part is summed from the left: exact
 * for fixed text; for a slot the least over all words that any synonym of its word can
 * draw; for slots glued together 1, since letters never vanish. The sum holds for every
 * draw of every text with words exchanged, because their gaps are the same. Where it
 * reaches the limit nothing needs to be prepared any more. docs/design.md, "From a text to BERT's
 * answer", has the rest of the way. */
#include "model/pieces.h"

#include "base/memory.h"
#include "base/table.h"
#include "text/unicode.h"

#include <string.h>

typedef struct run { /* of ids in the pool */
    uint32_t offset, count;
} run;

typedef enum part_kind { FIXED, DRAWN, GLUED } part_kind;

typedef struct part {
    part_kind kind;
    uint32_t slot, slots; /* those in it */
    uint32_t begin, end;  /* bytes of the text */
    size_t runs;          /* FIXED: its run. DRAWN: that of the first word of the support */
} part;

struct sf_pieces {
    const sf_wordpiece *wordpiece;
    const safer_lexicon *lexicon;
    const sf_slots *slots;
    size_t limit, visible;
    part *parts;
    size_t count, capacity;
    run *runs;
    size_t run_count, run_capacity;
    sf_ids pool;
};

void sf_pieces_free(sf_pieces *pieces)
{
    if (!pieces) return;
    free(pieces->parts);
    free(pieces->runs);
    sf_ids_free(&pieces->pool);
    free(pieces);
}

void sf_pieces_scratch_free(sf_pieces_scratch *scratch)
{
    sf_buffer_free(&scratch->text);
    sf_ids_free(&scratch->ids);
    sf_wordpiece_scratch_free(&scratch->wordpiece);
}

size_t sf_pieces_visible(const sf_pieces *pieces) { return pieces->visible; }

/* ------------------------------------------------------------------- memo */

/* What was computed already: a number to a run. */
typedef struct memory {
    uint64_t key;
    run value;
} memory;

typedef struct memo {
    sf_hashtable table; /* of the memories' numbers */
    memory *memories;
    size_t count, capacity;
} memo;

static void memo_free(memo *m)
{
    sf_hashtable_free(&m->table);
    free(m->memories);
}

/* The place of a key, new ones with no value yet (*fresh is 1), until another is got. NULL when
 * memory is out. */
static run *memo_get(memo *m, uint64_t key, int *fresh)
{
    const uint32_t tag = (uint32_t)key;
    sf_hashtable_walk walk = sf_hashtable_find(&m->table, tag);
    *fresh = 0;
    for (uint32_t i; (i = sf_hashtable_next(&m->table, &walk)) != SF_NONE;)
        if (m->memories[i].key == key) return &m->memories[i].value;
    *fresh = 1; /* a text has hundreds: room for many at once */
    if ((m->count == m->capacity && sf_grow(&m->memories, &m->capacity, m->count + 128, sizeof *m->memories)) ||
        sf_hashtable_add(&m->table, tag, (uint32_t)m->count))
        return NULL;
    m->memories[m->count].key = key;
    return &m->memories[m->count++].value;
}

/* -------------------------------------------------------------- preparing */

typedef struct making {
    sf_pieces *pieces;
    sf_pieces_scratch scratch;
    memo words;  /* a word in a pattern -> its run */
    memo tables; /* a kernel row in a pattern -> where its runs begin, and the least count */
    memo leasts; /* a row in a pattern -> the least count alone */
} making;

/* A slot with what is glued to it. */
typedef struct frame {
    sf_span before, after;
    sf_case pattern;
} frame;

static uint64_t key_of(uint32_t number, sf_case pattern) { return ((uint64_t)number << 2) | (uint64_t)pattern; }

/* Encodes text into the pool. */
static int encode(run *out, making *m, const char *text, size_t length, size_t limit)
{
    sf_ids *pool = &m->pieces->pool;
    size_t before = pool->count;
    if (sf_wordpiece_encode(pool, m->pieces->wordpiece, text, length, limit, &m->scratch.wordpiece)) return -1;
    if (pool->count > UINT32_MAX) return -1;
    *out = (run){(uint32_t)before, (uint32_t)(pool->count - before)};
    return 0;
}

static int encode_word(run *out, making *m, uint32_t word, const frame *f)
{
    const sf_words_view *words = &m->pieces->lexicon->words;
    uint32_t begin = words->offsets[word];
    sf_buffer *text = &m->scratch.text;
    sf_buffer_clear(text);
    if (sf_buffer_add(text, f->before.bytes, f->before.length) ||
        sf_word_render(text, words->pool + begin, words->offsets[word + 1] - begin - 1, f->pattern) ||
        sf_buffer_add(text, f->after.bytes, f->after.length))
        return -1;
    return encode(out, m, text->bytes, text->length, m->pieces->limit);
}

/* A word by itself; those were often seen before. */
static int run_of_word(run *out, making *m, uint32_t word, const frame *f)
{
    int fresh;
    if (f->before.length || f->after.length) return encode_word(out, m, word, f);
    run *known = memo_get(&m->words, key_of(word, f->pattern), &fresh);
    if (!known || (fresh && encode_word(known, m, word, f))) return -1;
    *out = *known;
    return 0;
}

/* Lower bounds never fall below 1: a word has letters, and letters never vanish. */
static uint32_t least_of(uint32_t least, uint32_t count) { return count < least ? (count ? count : 1) : least; }

/* The runs of a row's words, one after the other: `out->offset` is the first. */
static int add_table(run *out, making *m, uint32_t row, const frame *f)
{
    sf_pieces *p = m->pieces;
    const sf_kernel_view *kernel = &p->lexicon->kernel;
    *out = (run){(uint32_t)p->run_count, UINT32_MAX};
    for (uint64_t i = kernel->offsets[row]; i < kernel->offsets[row + 1]; i++) {
        run r;
        if (p->run_count >= UINT32_MAX || run_of_word(&r, m, kernel->ids[i], f) ||
            sf_grow(&p->runs, &p->run_capacity, p->run_count + 1, sizeof *p->runs))
            return -1;
        p->runs[p->run_count++] = r;
        out->count = least_of(out->count, r.count);
    }
    return 0;
}

/* The least number of pieces that a word of a row has. Nothing of it is kept. */
static int least_of_row(uint32_t *out, making *m, uint32_t row, const frame *f)
{
    const sf_kernel_view *kernel = &m->pieces->lexicon->kernel;
    int glued = f->before.length || f->after.length;
    *out = UINT32_MAX;
    for (uint64_t i = kernel->offsets[row]; i < kernel->offsets[row + 1] && *out > 1; i++) {
        size_t before = m->pieces->pool.count;
        run r;
        if (run_of_word(&r, m, kernel->ids[i], f)) return -1;
        if (glued) m->pieces->pool.count = before;
        *out = least_of(*out, r.count);
    }
    return 0;
}

/* Lowers *least to what any synonym of the word can draw. */
static int lower_by_synonyms(uint32_t *least, making *m, uint32_t word, const frame *f)
{
    const safer_lexicon *l = m->pieces->lexicon;
    int glued = f->before.length || f->after.length;
    for (uint64_t i = l->synonym_offsets[word]; i < l->synonym_offsets[word + 1] && *least > 1; i++) {
        uint32_t row = l->kernel.row_of[l->synonyms[i]], count;
        int fresh = 1;
        run *known = NULL;
        if (!glued && !(known = memo_get(&m->leasts, key_of(row, f->pattern), &fresh))) return -1;
        if (!fresh)
            count = known->count;
        else if (least_of_row(&count, m, row, f))
            return -1;
        if (known) known->count = count;
        *least = least_of(*least, count);
    }
    return 0;
}

static int add_part(sf_pieces *p, part x)
{
    if (sf_grow(&p->parts, &p->capacity, p->count + 1, sizeof *p->parts)) return -1;
    p->parts[p->count++] = x;
    return 0;
}

/* Each of these adds a part, and its least number of pieces to *least. */
static int add_fixed(making *m, size_t begin, size_t end, size_t *least)
{
    sf_pieces *p = m->pieces;
    run r;
    if (begin == end) return 0;
    if (encode(&r, m, p->slots->text + begin, end - begin, p->limit - *least) ||
        sf_grow(&p->runs, &p->run_capacity, p->run_count + 1, sizeof *p->runs) ||
        add_part(p, (part){.kind = FIXED, .begin = (uint32_t)begin, .end = (uint32_t)end, .runs = p->run_count}))
        return -1;
    p->runs[p->run_count++] = r;
    *least += r.count;
    return 0;
}

static int add_drawn(making *m, size_t slot, size_t begin, size_t end, size_t *least)
{
    sf_pieces *p = m->pieces;
    const sf_text_word *w = &p->slots->words[p->slots->slots[slot]];
    const char *text = p->slots->text;
    frame f = {{text + begin, w->begin - begin}, {text + w->end, end - w->end}, w->pattern};
    uint32_t row = p->lexicon->kernel.row_of[w->word];
    int fresh = 1;
    run own, *table = &own;
    if (!f.before.length && !f.after.length && !(table = memo_get(&m->tables, key_of(row, f.pattern), &fresh)))
        return -1;
    if (fresh && add_table(table, m, row, &f)) return -1;
    uint32_t count = table->count;
    if (lower_by_synonyms(&count, m, w->word, &f)) return -1;
    *least += count;
    return add_part(p, (part){DRAWN, (uint32_t)slot, 1, (uint32_t)begin, (uint32_t)end, table->offset});
}

/* ------------------------------------------------------------------- cuts */

/* The gap before slot s (the last one is behind all slots), and where it may be cut. */
typedef struct gap {
    size_t begin, end;
    size_t first, last; /* cuts; SIZE_MAX: none */
} gap;

static void note_cut(gap *g, const sf_pieces *p, size_t at)
{
    const char *text = p->slots->text;
    size_t length = p->slots->length;
    if (at > 0 && at < length) { /* a slot's own bytes are not known */
        int before = at > g->begin ? (unsigned char)text[at - 1] : -1,
            after = at < g->end ? (unsigned char)text[at] : -1;
        if (sf_wordpiece_joins(p->wordpiece, before, after)) return;
    }
    if (g->first == SIZE_MAX) g->first = at;
    g->last = at;
}

static gap find_gap(const sf_pieces *p, size_t slot)
{
    const sf_slots *s = p->slots;
    gap g = {0, s->length, SIZE_MAX, SIZE_MAX};
    if (slot > 0) g.begin = s->words[s->slots[slot - 1]].end;
    if (slot < s->slot_count) g.end = s->words[s->slots[slot]].begin;
    if (g.begin == 0) note_cut(&g, p, 0);
    for (size_t at = g.begin; at < g.end;) {
        uint32_t code;
        size_t step = sf_utf8_decode(s->text + at, s->text + g.end, &code);
        if (step && sf_wordpiece_cuts(p->wordpiece, code)) {
            note_cut(&g, p, at);
            note_cut(&g, p, at + step);
        }
        at += step ? step : 1;
    }
    if (g.end == s->length) note_cut(&g, p, s->length);
    return g;
}

static int make(making *m)
{
    sf_pieces *p = m->pieces;
    const size_t slots = p->slots->slot_count;
    size_t at = 0, least = 0, slot = 0;
    if (sf_grow(&p->pool.ids, &p->pool.capacity, 1, sizeof *p->pool.ids))
        return -1; /* so that empty runs lie somewhere */
    gap left = find_gap(p, 0);
    while (slot < slots && least < p->limit) {
        size_t first = slot;
        gap right;
        if (add_fixed(m, at, left.last, &least)) return -1;
        if (least >= p->limit) break;
        while ((right = find_gap(p, ++slot)).first == SIZE_MAX) {} /* the last gap has a cut: the end */
        if (slot - first == 1) {
            if (add_drawn(m, first, left.last, right.first, &least)) return -1;
        } else {
            part x = {GLUED, (uint32_t)first, (uint32_t)(slot - first), (uint32_t)left.last, (uint32_t)right.first, 0};
            if (add_part(p, x)) return -1;
            least++;
        }
        at = right.first;
        left = right;
    }
    p->visible = slot;
    return least < p->limit ? add_fixed(m, at, p->slots->length, &least) : 0;
}

safer_status sf_pieces_new(sf_pieces **out, const sf_wordpiece *wordpiece, const safer_lexicon *lexicon,
                           const sf_slots *slots, size_t limit, safer_error *error)
{
    making m = {.pieces = sf_calloc(1, sizeof *m.pieces)};
    if (!m.pieces) return sf_fail_memory(error);
    *m.pieces = (sf_pieces){.wordpiece = wordpiece, .lexicon = lexicon, .slots = slots, .limit = limit};
    int failed = make(&m);
    sf_pieces_scratch_free(&m.scratch);
    memo_free(&m.words);
    memo_free(&m.tables);
    memo_free(&m.leasts);
    if (failed) {
        sf_pieces_free(m.pieces);
        return sf_fail_memory(error);
    }
    *out = m.pieces;
    return SAFER_OK;
}

/* ---------------------------------------------------------------- drawing */

/* Slots that share a part are rendered and encoded again. */
static int encode_glued(sf_pieces_scratch *scratch, const sf_pieces *p, const part *x, const uint32_t *draws,
                        size_t limit)
{
    const sf_slots *s = p->slots;
    const safer_lexicon *l = p->lexicon;
    size_t at = x->begin;
    sf_buffer_clear(&scratch->text);
    scratch->ids.count = 0;
    for (size_t i = x->slot; i < (size_t)x->slot + x->slots; i++) {
        const sf_text_word *w = &s->words[s->slots[i]];
        uint32_t drawn = l->kernel.ids[l->kernel.offsets[l->kernel.row_of[w->word]] + draws[i]],
                 begin = l->words.offsets[drawn];
        if (sf_buffer_add(&scratch->text, s->text + at, w->begin - at) ||
            sf_word_render(&scratch->text, l->words.pool + begin, l->words.offsets[drawn + 1] - begin - 1, w->pattern))
            return -1;
        at = w->end;
    }
    if (sf_buffer_add(&scratch->text, s->text + at, x->end - at)) return -1;
    return sf_wordpiece_encode(&scratch->ids, p->wordpiece, scratch->text.bytes, scratch->text.length, limit,
                               &scratch->wordpiece);
}

size_t sf_pieces_draw(uint32_t *ids, const sf_pieces *pieces, const uint32_t *draws, sf_pieces_scratch *scratch)
{
    const size_t limit = pieces->limit;
    size_t count = 0;
    for (size_t k = 0; k < pieces->count && count < limit; k++) {
        const part *x = &pieces->parts[k];
        const uint32_t *source;
        size_t n;
        if (x->kind == GLUED) {
            if (encode_glued(scratch, pieces, x, draws, limit - count)) return SIZE_MAX;
            source = scratch->ids.ids;
            n = scratch->ids.count;
        } else {
            const run *r = &pieces->runs[x->runs + (x->kind == DRAWN ? draws[x->slot] : 0)];
            source = pieces->pool.ids + r->offset;
            n = r->count < limit - count ? r->count : limit - count;
        }
        for (size_t i = 0; i < n; i++) ids[count + i] = source[i];
        count += n;
    }
    return count;
}
