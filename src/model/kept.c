/* The word pieces of a text whose tokens are deleted and whose words are drawn. kept.h says how. */
#include "model/kept.h"

#include "base/memory.h"

#include <string.h>

/* How a token stands in a draw. */
enum { FIRST, BEHIND_SPACE, PLACES };

typedef struct token {
    uint32_t slot; /* or SF_NONE */
    sf_case pattern;
    sf_edges edges;        /* of a slot: whatever it draws */
    uint64_t words;        /* of a slot: its row of the kernel */
    size_t offset[PLACES]; /* of no slot: its pieces in the pool, */
    size_t count[PLACES];  /* and how many */
} token;

struct sf_kept {
    const sf_piecer *piecer;
    const safer_lexicon *lexicon;
    const sf_slots *slots;
    sf_lexpieces *words;
    sf_window window;
    uint32_t around[PLACES]; /* the numbers of these surroundings; SF_NONE: slots cannot be looked up there */
    token *tokens;           /* as the slots have them */
    sf_ids pool;
};

void sf_kept_free(sf_kept *kept)
{
    if (!kept) return;
    free(kept->tokens);
    sf_ids_free(&kept->pool);
    free(kept);
}

size_t sf_kept_rendered(const sf_kept *kept)
{
    size_t count = 0;
    for (size_t t = 0; t < kept->slots->token_count; t++)
        count += !kept->tokens[t].edges.begins || !kept->tokens[t].edges.ends ||
                 (kept->tokens[t].slot != SF_NONE && kept->around[BEHIND_SPACE] == SF_NONE);
    return count;
}

/* -------------------------------------------------------------- preparing */

static void set_slot(token *out, const sf_kept *k, uint32_t slot)
{
    const sf_text_word *w = &k->slots->words[k->slots->slots[slot]];
    const uint32_t row = k->lexicon->kernel.row_of[w->word];
    sf_lexletters letters = {0, 0};
    if (sf_piecer_minds_letters(k->piecer)) letters = sf_lexpieces_letters(k->words, k->lexicon, row, w->pattern);
    *out = (token){.slot = slot,
                   .pattern = w->pattern,
                   .edges = sf_piecer_word_edges(k->piecer, letters.begins, letters.ends),
                   .words = k->lexicon->kernel.offsets[row]};
}

static int set_fixed(token *out, sf_kept *k, const sf_token *t, sf_lexpieces_tools *tools)
{
    const char *bytes = k->slots->text + t->begin;
    const size_t length = t->end - t->begin;
    *out = (token){.slot = SF_NONE, .edges = sf_piecer_edges(k->piecer, bytes, length)};
    for (int place = 0; place < PLACES; place++) {
        sf_buffer_clear(&tools->text);
        out->offset[place] = k->pool.count;
        if ((place == BEHIND_SPACE && sf_buffer_add_byte(&tools->text, ' ')) ||
            sf_buffer_add(&tools->text, bytes, length) ||
            sf_piecer_encode_part(&k->pool, k->piecer, tools->text.bytes, tools->text.length,
                                  sf_window_reach(k->window), place == BEHIND_SPACE, &tools->piecer))
            return -1;
        out->count[place] = k->pool.count - out->offset[place];
    }
    return 0;
}

static int make(sf_kept *k, sf_lexpieces_tools *tools)
{
    const size_t count = k->slots->token_count;
    const sf_surroundings around[PLACES] = {{{"", 0}, {"", 0}, 0},
                                            {{" ", 1}, {"", 0}, sf_piecer_minds_letters(k->piecer)}};
    if (!(k->tokens = sf_alloc(count + 1, sizeof *k->tokens)) ||
        sf_grow(&k->pool.ids, &k->pool.capacity, 1, sizeof *k->pool.ids)) /* so that empty runs lie somewhere */
        return -1;
    for (int place = 0; place < PLACES; place++)
        if (sf_lexpieces_find(&k->around[place], k->words, &around[place])) return -1;
    for (size_t i = 0; i < count; i++) {
        const sf_token *t = &k->slots->tokens[i];
        if (t->slot != SF_NONE)
            set_slot(&k->tokens[i], k, t->slot);
        else if (set_fixed(&k->tokens[i], k, t, tools))
            return -1;
    }
    return 0;
}

safer_status sf_kept_new(sf_kept **out, const sf_piecer *piecer, const safer_lexicon *lexicon, sf_lexpieces *words,
                         const sf_slots *slots, sf_window window, safer_error *error)
{
    sf_kept *k = sf_calloc(1, sizeof *k);
    sf_lexpieces_tools *tools = sf_lexpieces_take(words);
    if (k) *k = (sf_kept){.piecer = piecer, .lexicon = lexicon, .words = words, .slots = slots, .window = window};
    const int failed = !k || !tools || make(k, tools);
    sf_lexpieces_give(words, tools);
    if (failed) {
        sf_kept_free(k);
        return sf_fail_memory(error);
    }
    *out = k;
    return SAFER_OK;
}

/* ---------------------------------------------------------------- drawing */

/* Kept tokens, one behind the other, without a cut between them. */
typedef struct run {
    size_t first, tokens; /* the number of the first; how many */
    int place;            /* of the first */
} run;

/* One draw as it is put together. */
typedef struct drawing {
    const sf_kept *kept;
    const uint32_t *draw;
    sf_pieces_scratch *scratch;
    uint32_t *ids;
    size_t count;
} drawing;

/* The word that a slot draws. */
static uint32_t word_of(const drawing *d, const token *t)
{
    return d->kept->lexicon->kernel.ids[t->words + d->draw[t->slot]];
}

/* Where not all words that a slot can draw have good edges, the one that it draws decides. */
static sf_edges edges_of(const drawing *d, const token *t)
{
    const sf_kept *k = d->kept;
    if (t->slot == SF_NONE || (t->edges.begins && t->edges.ends) || !sf_piecer_minds_letters(k->piecer))
        return t->edges;
    const sf_lexletters letters = sf_lexpieces_word_letters(k->lexicon, word_of(d, t), t->pattern);
    return sf_piecer_word_edges(k->piecer, letters.begins, letters.ends);
}

/* Appends a token, and a space before it, to the text of a run. */
static int render(const drawing *d, size_t t, int place)
{
    const sf_kept *k = d->kept;
    sf_buffer *text = &d->scratch->text;
    return (place == BEHIND_SPACE && sf_buffer_add_byte(text, ' ')) ||
                   sf_slots_render_token(text, k->slots, k->lexicon, &k->slots->tokens[t], d->draw)
               ? -1
               : 0;
}

/* The run's next token, which has no cut before it: from the second on there is a text. */
static int lengthen(const drawing *d, run *r, size_t t)
{
    if (r->tokens == 1) {
        sf_buffer_clear(&d->scratch->text);
        if (render(d, r->first, r->place)) return -1;
    }
    r->tokens++;
    return render(d, t, BEHIND_SPACE);
}

/* The pieces of what was rendered. */
static int encode(const drawing *d, const run *r)
{
    const sf_window window = d->kept->window;
    sf_pieces_scratch *s = d->scratch;
    s->ids.count = 0;
    return sf_piecer_encode_part(&s->ids, d->kept->piecer, s->text.length ? s->text.bytes : "", s->text.length,
                                 window.last ? SIZE_MAX : window.most - d->count, r->place == BEHIND_SPACE, &s->piecer);
}

/* Adds the pieces of a run. */
static int finish(drawing *d, const run *r)
{
    const sf_kept *k = d->kept;
    const token *t = &k->tokens[r->first];
    const uint32_t *source;
    size_t n;
    if (r->tokens == 1 && t->slot == SF_NONE) {
        source = k->pool.ids + t->offset[r->place];
        n = t->count[r->place];
    } else if (r->tokens == 1 && k->around[r->place] != SF_NONE) {
        const uint32_t *known = sf_lexpieces_word(k->words, k->lexicon, k->around[r->place], word_of(d, t), t->pattern);
        if (!known) return -1;
        source = known + 1;
        n = known[0];
    } else {
        if (r->tokens < 2) sf_buffer_clear(&d->scratch->text);
        if ((r->tokens == 1 && render(d, r->first, r->place)) || encode(d, r)) return -1;
        source = d->scratch->ids.ids;
        n = d->scratch->ids.count;
    }
    d->count = sf_window_add(d->ids, d->count, source, n, k->window);
    return 0;
}

size_t sf_kept_draw(uint32_t *ids, const sf_kept *k, const uint32_t *draw, sf_pieces_scratch *scratch)
{
    drawing d = {.kept = k, .draw = draw, .scratch = scratch, .ids = ids};
    const size_t groups = (k->slots->token_count + 31) / 32;
    run r = {0};
    int ends = 0;
    for (size_t group = 0; group < groups; group++)
        for (uint32_t bits = draw[k->slots->slot_count + group]; bits; bits &= bits - 1) {
            const size_t t = 32 * group + (size_t)__builtin_ctz(bits);
            const sf_edges edges = edges_of(&d, &k->tokens[t]);
            if (r.tokens && !(ends && edges.begins)) {
                if (lengthen(&d, &r, t)) return SIZE_MAX;
            } else {
                if (r.tokens && finish(&d, &r)) return SIZE_MAX;
                if (!k->window.last && d.count >= k->window.most) return d.count;
                r = (run){.first = t, .tokens = 1, .place = r.tokens ? BEHIND_SPACE : FIRST};
            }
            ends = edges.ends;
        }
    return finish(&d, &r) ? SIZE_MAX : d.count; /* without a token: the pieces of the empty text */
}
