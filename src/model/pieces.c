/* The word pieces of a text whose words are drawn.
 *
 * Cuts. In the gaps between slots there are places where the text may be cut whatever is
 * drawn (sf_piecer_find_cuts). A slot together with what has no cut on either side of it is a
 * part; slots without a cut between them share one.
 *
 * Hidden slots. The least number of pieces before a part is summed from the left: exact
 * for fixed text; for a slot the least over all words that any synonym of its word can
 * draw; for slots glued together sf_piecer_least, 1 where letters never vanish. The sum holds for every
 * draw of every text with words exchanged, because their gaps are the same. Where it
 * reaches the limit nothing needs to be prepared any more. docs/design.md, "From a text to BERT's
 * answer", has the rest of the way. */
#include "model/pieces.h"

#include "base/memory.h"

#include <string.h>

typedef enum part_kind { FIXED, DRAWN, GLUED } part_kind;

typedef struct part {
    part_kind kind;
    uint32_t slot, slots;  /* DRAWN, GLUED: those in it */
    uint32_t begin, end;   /* GLUED: bytes of the text */
    size_t offset;         /* FIXED: of its pieces in the pool. DRAWN: of the slot's words in the kernel */
    size_t count;          /* FIXED: of its pieces */
    uint32_t surroundings; /* DRAWN: the number of what stands around the slot */
    sf_case pattern;       /* DRAWN */
} part;

struct sf_pieces {
    const sf_piecer *piecer;
    const safer_lexicon *lexicon;
    const sf_slots *slots;
    sf_lexpieces *words;
    sf_window window;
    size_t limit; /* its reach */
    size_t visible;
    part *parts;
    size_t count, capacity;
    sf_ids pool;
};

void sf_pieces_free(sf_pieces *pieces)
{
    if (!pieces) return;
    free(pieces->parts);
    sf_ids_free(&pieces->pool);
    free(pieces);
}

void sf_pieces_scratch_free(sf_pieces_scratch *scratch)
{
    sf_buffer_free(&scratch->text);
    sf_ids_free(&scratch->ids);
    sf_piecer_scratch_free(&scratch->piecer);
}

size_t sf_pieces_visible(const sf_pieces *pieces) { return pieces->visible; }

size_t sf_pieces_rendered(const sf_pieces *pieces)
{
    size_t bytes = 0;
    for (size_t i = 0; i < pieces->count; i++)
        if (pieces->parts[i].kind == GLUED) bytes += pieces->parts[i].end - pieces->parts[i].begin;
    return bytes;
}

/* -------------------------------------------------------------- preparing */

typedef struct making {
    sf_pieces *pieces;
    sf_lexpieces_tools *tools;
} making;

/* A slot with what is glued to it. */
typedef struct frame {
    sf_surroundings around;
    uint32_t number; /* of them, or SF_NONE */
    sf_case pattern;
} frame;

/* How many pieces a word has in its frame; SIZE_MAX when memory is out. */
static size_t count_framed(making *m, uint32_t word, const frame *f)
{
    const sf_words_view *words = &m->pieces->lexicon->words;
    const uint32_t begin = words->offsets[word];
    sf_buffer *text = &m->tools->text;
    sf_ids *ids = &m->tools->ids;
    sf_buffer_clear(text);
    ids->count = 0;
    if (sf_buffer_add(text, f->around.before.bytes, f->around.before.length) ||
        sf_word_render(text, words->pool + begin, words->offsets[word + 1] - begin - 1, f->pattern) ||
        sf_buffer_add(text, f->around.after.bytes, f->around.after.length) ||
        sf_piecer_encode_part(ids, m->pieces->piecer, text->bytes, text->length, m->pieces->limit, f->around.inside,
                              &m->tools->piecer))
        return SIZE_MAX;
    return ids->count;
}

/* The least number of pieces that a word of a row has; SIZE_MAX when memory is out. */
static size_t least_of_row(making *m, uint32_t row, const frame *f)
{
    const sf_kernel_view *kernel = &m->pieces->lexicon->kernel;
    const size_t floor = sf_piecer_least(m->pieces->piecer);
    size_t least = SIZE_MAX - 1;
    if (f->number != SF_NONE)
        return sf_lexpieces_least(m->pieces->words, m->pieces->lexicon, f->number, row, f->pattern);
    for (uint64_t i = kernel->offsets[row]; i < kernel->offsets[row + 1] && least > floor; i++) {
        const size_t count = count_framed(m, kernel->ids[i], f);
        if (count == SIZE_MAX) return SIZE_MAX;
        if (count < least) least = count > floor ? count : floor;
    }
    return least;
}

/* The same for all that the word or a synonym of it can draw. */
static size_t least_of_slot(making *m, uint32_t word, const frame *f)
{
    const safer_lexicon *l = m->pieces->lexicon;
    const size_t floor = sf_piecer_least(m->pieces->piecer);
    size_t least = least_of_row(m, l->kernel.row_of[word], f);
    if (least == SIZE_MAX) return SIZE_MAX;
    for (uint64_t i = l->synonym_offsets[word]; i < l->synonym_offsets[word + 1] && least > floor; i++) {
        const size_t count = least_of_row(m, l->kernel.row_of[l->synonyms[i]], f);
        if (count == SIZE_MAX) return SIZE_MAX;
        if (count < least) least = count;
    }
    return least;
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
    const size_t before = p->pool.count;
    if (begin == end) return 0;
    if (sf_piecer_encode_part(&p->pool, p->piecer, p->slots->text + begin, end - begin, p->limit - *least, begin > 0,
                              &m->tools->piecer))
        return -1;
    const size_t count = p->pool.count - before;
    *least += count;
    return add_part(p, (part){.kind = FIXED, .offset = before, .count = count});
}

/* Its words are looked up with what is glued to them, where the table has room for it. */
static int add_drawn(making *m, size_t slot, size_t begin, size_t end, size_t *least)
{
    sf_pieces *p = m->pieces;
    const sf_text_word *w = &p->slots->words[p->slots->slots[slot]];
    const char *text = p->slots->text;
    const int inside = begin > 0 && sf_piecer_minds_letters(p->piecer);
    frame f = {.around = {{text + begin, w->begin - begin}, {text + w->end, end - w->end}, inside},
               .pattern = w->pattern};
    if (sf_lexpieces_find(&f.number, p->words, &f.around)) return -1;
    const size_t count = least_of_slot(m, w->word, &f);
    if (count == SIZE_MAX) return -1;
    *least += count;
    return add_part(p, (part){.kind = f.number == SF_NONE ? GLUED : DRAWN,
                              .slot = (uint32_t)slot,
                              .slots = 1,
                              .begin = (uint32_t)begin,
                              .end = (uint32_t)end,
                              .offset = p->lexicon->kernel.offsets[p->lexicon->kernel.row_of[w->word]],
                              .surroundings = f.number,
                              .pattern = w->pattern});
}

/* ------------------------------------------------------------------- cuts */

/* With what the words begin and end that a slot can draw, or that a slot in its place can draw whose word is a
 * synonym. */
static sf_lexletters letters_of(const sf_pieces *p, size_t slot)
{
    const safer_lexicon *l = p->lexicon;
    const sf_text_word *w = &p->slots->words[p->slots->slots[slot]];
    sf_lexletters all = sf_lexpieces_letters(p->words, l, l->kernel.row_of[w->word], w->pattern);
    for (uint64_t i = l->synonym_offsets[w->word]; i < l->synonym_offsets[w->word + 1]; i++) {
        const sf_lexletters more = sf_lexpieces_letters(p->words, l, l->kernel.row_of[l->synonyms[i]], w->pattern);
        all.begins |= more.begins;
        all.ends |= more.ends;
    }
    return all;
}

/* The gap before slot s; the last one is behind all slots. */
static sf_gap find_gap(const sf_pieces *p, size_t slot)
{
    const sf_slots *s = p->slots;
    const int letters = sf_piecer_minds_letters(p->piecer);
    sf_gap g = {.end = s->length};
    if (slot > 0) g.begin = s->words[s->slots[slot - 1]].end;
    if (slot < s->slot_count) g.end = s->words[s->slots[slot]].begin;
    if (letters && slot > 0) g.before = letters_of(p, slot - 1).ends;
    if (letters && slot < s->slot_count) g.after = letters_of(p, slot).begins;
    sf_piecer_find_cuts(&g, p->piecer, s->text, s->length);
    return g;
}

static int make(making *m)
{
    sf_pieces *p = m->pieces;
    const size_t slots = p->slots->slot_count;
    size_t at = 0, least = 0, slot = 0;
    if (sf_grow(&p->pool.ids, &p->pool.capacity, 1, sizeof *p->pool.ids))
        return -1; /* so that empty runs lie somewhere */
    sf_gap left = find_gap(p, 0);
    while (slot < slots && least < p->limit) {
        size_t first = slot;
        sf_gap right;
        if (add_fixed(m, at, left.last, &least)) return -1;
        if (least >= p->limit) break;
        while ((right = find_gap(p, ++slot)).first == SIZE_MAX) {} /* the last gap has a cut: the end */
        if (slot - first == 1) {
            if (add_drawn(m, first, left.last, right.first, &least)) return -1;
        } else {
            const part x = {.kind = GLUED,
                            .slot = (uint32_t)first,
                            .slots = (uint32_t)(slot - first),
                            .begin = (uint32_t)left.last,
                            .end = (uint32_t)right.first};
            if (add_part(p, x)) return -1;
            least += sf_piecer_least(p->piecer);
        }
        at = right.first;
        left = right;
    }
    p->visible = slot;
    return least < p->limit ? add_fixed(m, at, p->slots->length, &least) : 0;
}

safer_status sf_pieces_new(sf_pieces **out, const sf_piecer *piecer, const safer_lexicon *lexicon, sf_lexpieces *words,
                           const sf_slots *slots, sf_window window, safer_error *error)
{
    making m = {.pieces = sf_calloc(1, sizeof *m.pieces), .tools = sf_lexpieces_take(words)};
    int failed = !m.pieces || !m.tools;
    if (m.pieces)
        *m.pieces = (sf_pieces){.piecer = piecer,
                                .lexicon = lexicon,
                                .words = words,
                                .slots = slots,
                                .window = window,
                                .limit = sf_window_reach(window)};
    failed = failed || make(&m);
    sf_lexpieces_give(words, m.tools);
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
    const sf_words_view *words = &p->lexicon->words;
    const sf_kernel_view *kernel = &p->lexicon->kernel;
    size_t at = x->begin;
    sf_buffer_clear(&scratch->text);
    scratch->ids.count = 0;
    for (size_t i = x->slot; i < (size_t)x->slot + x->slots; i++) {
        const sf_text_word *w = &s->words[s->slots[i]];
        const uint32_t drawn = kernel->ids[kernel->offsets[kernel->row_of[w->word]] + draws[i]],
                       begin = words->offsets[drawn];
        if (sf_buffer_add(&scratch->text, s->text + at, w->begin - at) ||
            sf_word_render(&scratch->text, words->pool + begin, words->offsets[drawn + 1] - begin - 1, w->pattern))
            return -1;
        at = w->end;
    }
    if (sf_buffer_add(&scratch->text, s->text + at, x->end - at)) return -1;
    return sf_piecer_encode_part(&scratch->ids, p->piecer, scratch->text.bytes, scratch->text.length, limit,
                                 x->begin > 0, &scratch->piecer);
}

size_t sf_pieces_draw(uint32_t *ids, const sf_pieces *p, const uint32_t *draws, sf_pieces_scratch *scratch)
{
    const sf_window window = p->window;
    size_t count = 0;
    for (size_t k = 0; k < p->count && (window.last || count < window.most); k++) {
        const part *x = &p->parts[k];
        const uint32_t *source;
        size_t n;
        if (x->kind == FIXED) {
            source = p->pool.ids + x->offset;
            n = x->count;
        } else if (x->kind == DRAWN) {
            const uint32_t word = p->lexicon->kernel.ids[x->offset + draws[x->slot]];
            const uint32_t *known = sf_lexpieces_word(p->words, p->lexicon, x->surroundings, word, x->pattern);
            if (!known) return SIZE_MAX;
            source = known + 1;
            n = known[0];
        } else {
            if (encode_glued(scratch, p, x, draws, window.last ? SIZE_MAX : window.most - count)) return SIZE_MAX;
            source = scratch->ids.ids;
            n = scratch->ids.count;
        }
        count = sf_window_add(ids, count, source, n, window);
    }
    return count;
}
