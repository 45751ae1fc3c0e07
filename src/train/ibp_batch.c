/* One training step: its memory, and the numbers of a batch's words and items. */
#include "train/ibp_inside.h"

#include "base/memory.h"

#include <string.h>

/* ------------------------------------------------------------------- memory */

void sf_ibp_step_free(sf_ibp_step *s)
{
    if (!s) return;
    void *owned[] = {s->word_place,   s->item_place, s->words,       s->types, s->single, s->own,     s->members,
                     s->member_begin, s->text,       s->occurrences, s->begin, s->memory, s->gradient};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
    for (int run = 0; run < SF_IBP_RUNS; run++) free(s->rows_of[run]);
    free(s);
}

static void *numbers(int *failed, size_t count)
{
    void *p = sf_alloc(count, sizeof(uint32_t));
    if (!p) *failed = 1;
    return p;
}

safer_status sf_ibp_step_new(sf_ibp_step **out, const sf_ibp_layout *l, const sf_ibp_sets *sets,
                             const sf_ibp_options *options, size_t words, safer_error *error)
{
    size_t V = l->shape.vocabulary, items = V + sets->count, types = words < items ? words : items;
    int failed = 0;
    sf_ibp_step *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    s->layout = *l;
    s->sets = sets;
    s->options = *options;
    s->dropout = sf_stream_of(options->seed, UINT64_C(0x64726f706f757400), SF_STAGE_TRAINING); /* "dropout" */
    s->others = sf_stream_of(options->seed, UINT64_C(0x7472697000000000), SF_STAGE_TRAINING);  /* "trip" */
    s->word_place = numbers(&failed, V);
    s->item_place = numbers(&failed, items);
    s->words = numbers(&failed, V);
    s->types = numbers(&failed, types);
    s->single = numbers(&failed, types);
    s->own = numbers(&failed, types);
    s->members = numbers(&failed, sets->offsets[sets->count]);
    s->member_begin = sf_calloc((types < sets->count ? types : sets->count) + 1, sizeof *s->member_begin);
    for (int run = 0; run < SF_IBP_RUNS; run++) s->rows_of[run] = numbers(&failed, words);
    s->text = numbers(&failed, words);
    s->occurrences = numbers(&failed, words);
    s->begin = sf_calloc(types + 1, sizeof *s->begin);
    s->gradient = sf_alloc_aligned(l->size - V * l->shape.dim, sizeof *s->gradient);
    if (failed || !s->member_begin || !s->begin || !s->gradient) {
        sf_ibp_step_free(s);
        return sf_fail_memory(error);
    }
    memset(s->word_place, 0xff, V * sizeof *s->word_place);
    memset(s->item_place, 0xff, items * sizeof *s->item_place);
    *out = s;
    return SAFER_OK;
}

/* Hands out pieces of `base`; with NULL it only counts. */
typedef struct carver {
    float *base;
    size_t at;
} carver;

static void *carve(carver *c, size_t count)
{
    float *piece = c->base ? c->base + c->at : NULL;
    c->at += (count + 15) / 16 * 16;
    return piece;
}

static size_t carve_all(sf_ibp_step *s, float *base)
{
    const sf_ibp_layout *l = &s->layout;
    carver c = {base, 0};
    size_t D = l->shape.dim, Q = l->hull, R = l->row, F = l->features, H = l->shape.hidden, K = l->shape.classes;
    size_t B = s->batch->count, N = s->batch->offsets[B], rows = s->U + 2 * s->S;
    s->vectors = carve(&c, s->W * D);
    s->dvectors = carve(&c, sf_ibp_moves_vectors(s) ? s->W * D : 0);
    s->pre = carve(&c, s->W * Q);
    s->dpre = carve(&c, s->W * Q);
    s->hull = carve(&c, rows * Q);
    s->dhull = carve(&c, rows * Q);
    s->arg_low = carve(&c, s->S * Q);
    s->arg_high = carve(&c, s->S * Q);
    s->rows = s->hull;
    s->drows = s->dhull;
    if (sf_ibp_has_taps(s)) {
        s->centre = carve(&c, s->S * Q);
        s->radius = carve(&c, s->S * Q);
        s->rows = carve(&c, rows * R);
        s->drows = carve(&c, rows * R);
        s->conv_parts = carve(&c, sf_ibp_blocks(s->U) * 2 * R * Q);
        s->conv_size = carve(&c, R * Q);
    }
    s->first_parts = carve(&c, sf_ibp_blocks(s->W) * Q * D);
    s->bias_parts = carve(&c, sf_ibp_blocks(s->W) * Q);
    s->dbias = carve(&c, SF_IBP_RUNS * B * F);
    for (int run = 0; run < SF_IBP_RUNS; run++) {
        s->x[run] = carve(&c, N * F);
        s->arg[run] = carve(&c, l->shape.max_pool ? B * F : 0);
        s->features[run] = carve(&c, B * F);
        s->dfeatures[run] = carve(&c, B * F);
        s->mid[run] = carve(&c, B * F);
        s->before[run] = carve(&c, B * H);
        s->after[run] = carve(&c, B * H);
    }
    s->feature_mask = carve(&c, B * F);
    s->hidden_mask = carve(&c, B * H);
    s->hidden_size = carve(&c, H * F);
    s->dafter = carve(&c, SF_IBP_RUNS * H);
    s->logits = carve(&c, B * K);
    s->worst = carve(&c, B * K);
    s->dlogits = carve(&c, B * K);
    s->pull = carve(&c, s->U);
    s->apart = carve(&c, s->U * SF_IBP_OTHERS);
    return c.at;
}

safer_status sf_ibp_step_room(sf_ibp_step *s, safer_error *error)
{
    size_t need = carve_all(s, NULL);
    if (need > s->capacity) {
        free(s->memory);
        s->capacity = need + need / 8;
        s->memory = sf_alloc_aligned(s->capacity, sizeof *s->memory);
        if (!s->memory) {
            s->capacity = 0;
            return sf_fail_memory(error);
        }
    }
    carve_all(s, s->memory);
    return SAFER_OK;
}

/* ------------------------------------------------------------------ numbering */

static uint32_t place_word(sf_ibp_step *s, uint32_t word)
{
    if (s->word_place[word] == SF_NONE) {
        s->word_place[word] = (uint32_t)s->W;
        s->words[s->W++] = word;
    }
    return s->word_place[word];
}

/* Numbers the batch's items: those with sets from 0 on, the others behind them. */
static void number_items(sf_ibp_step *s)
{
    const sf_ibp_batch *b = s->batch;
    size_t V = s->layout.shape.vocabulary, N = b->offsets[b->count], singles = 0;
    for (size_t i = 0; i < s->U; i++) s->item_place[s->types[i]] = SF_NONE; /* of the step before */
    s->S = 0;
    for (size_t i = 0; i < N; i++) {
        uint32_t item = b->items[i], *place = &s->item_place[item];
        if (*place != SF_NONE) continue;
        *place = (uint32_t)(item < V ? singles : s->S);
        if (item < V)
            s->single[singles++] = item;
        else
            s->types[s->S++] = item;
    }
    s->U = s->S + singles;
    for (size_t i = 0; i < singles; i++) {
        s->types[s->S + i] = s->single[i];
        s->item_place[s->single[i]] += (uint32_t)s->S;
    }
}

/* Lists the words that are needed, and the sets in terms of them. */
static void number_words(sf_ibp_step *s)
{
    size_t V = s->layout.shape.vocabulary, count = 0;
    for (size_t i = 0; i < s->W; i++) s->word_place[s->words[i]] = SF_NONE;
    s->W = 0;
    for (size_t u = 0; u < s->U; u++) {
        if (u >= s->S) {
            s->own[u] = place_word(s, s->types[u]);
            continue;
        }
        size_t set = s->types[u] - V;
        s->own[u] = place_word(s, s->sets->members[s->sets->offsets[set]]);
        for (size_t m = s->sets->offsets[set]; m < s->sets->offsets[set + 1]; m++)
            s->members[count++] = place_word(s, s->sets->members[m]);
        s->member_begin[u + 1] = count;
    }
    if (s->options.triplet > 0)
        for (uint32_t i = 0; i < SF_IBP_OTHERS; i++)
            s->other[i] = place_word(s, V > 1 ? 1 + sf_draw_below(s->others, s->number, i, (uint32_t)(V - 1)) : 0);
}

/* The rows of every position, and where each type occurs. */
static void number_positions(sf_ibp_step *s)
{
    const sf_ibp_batch *b = s->batch;
    size_t sum = 0;
    memset(s->begin, 0, (s->U + 1) * sizeof *s->begin);
    for (size_t t = 0; t < b->count; t++)
        for (size_t i = b->offsets[t]; i < b->offsets[t + 1]; i++) {
            uint32_t type = s->item_place[b->items[i]];
            s->rows_of[SF_VALUE][i] = type;
            s->rows_of[SF_LOW][i] = type < s->S ? (uint32_t)s->U + type : type;
            s->rows_of[SF_HIGH][i] = type < s->S ? (uint32_t)(s->U + s->S) + type : type;
            s->text[i] = (uint32_t)t;
            s->begin[type]++;
        }
    for (size_t u = 0; u < s->U; u++) { /* counts become ends, and filling backwards makes them begins */
        sum += s->begin[u];
        s->begin[u] = sum;
    }
    s->begin[s->U] = sum;
    for (size_t i = sum; i-- > 0;) s->occurrences[--s->begin[s->rows_of[SF_VALUE][i]]] = (uint32_t)i;
}

void sf_ibp_step_number(sf_ibp_step *s)
{
    number_items(s);
    number_words(s);
    number_positions(s);
}
