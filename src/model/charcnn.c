/* The `charcnn` classifier: its class. Texts, and draws of a text, become codes, and codes answers. */
#include "model/charcnn_model.h"

#include "base/memory.h"
#include "model/charcnn_answer.h"
#include "model/charcnn_codes.h"

#include <string.h>

/* --------------------------------------------------------------- the model */

static const sf_charcnn_layout *layout_of(const safer_model *base) { return &((const sf_charcnn_model *)base)->layout; }

/* The texts gathered in the scratch. */
static safer_status answer(const safer_model *base, size_t count, int *labels, float *scores,
                           sf_charcnn_scratch *scratch, safer_error *error)
{
    const sf_charcnn_model *model = (const sf_charcnn_model *)base;
    const uint8_t *codes = sf_charcnn_scratch_codes(scratch);
    float *logits = sf_charcnn_scratch_logits(scratch);
    if (!model->device) {
        sf_charcnn_classify_codes(labels, scores, NULL, model->net, codes, sf_charcnn_scratch_lengths(scratch), count,
                                  scratch);
        return SAFER_OK;
    }
    const safer_status status = sf_charcnn_device_answer(logits, model->device, codes, count, error);
    if (status == SAFER_OK) sf_charcnn_classes(labels, scores, logits, count, base->classes);
    return status;
}

static safer_status classify(const safer_model *base, const sf_span *texts, size_t count, int *labels, float *scores,
                             void *scratch, safer_error *error)
{
    const size_t L = layout_of(base)->shape.characters;
    uint8_t *codes = sf_charcnn_scratch_codes(scratch);
    size_t *lengths = sf_charcnn_scratch_lengths(scratch);
    safer_status status = SAFER_OK;
    for (size_t i = 0; i < count && status == SAFER_OK; i += SF_CHARCNN_TOGETHER) {
        size_t n = sf_least(SF_CHARCNN_TOGETHER, count - i);
        for (size_t b = 0; b < n; b++) {
            lengths[b] = sf_charcnn_encode(codes + b * L, texts[i + b].bytes, texts[i + b].length, L);
            memset(codes + b * L + lengths[b], 0, L - lengths[b]);
        }
        status = answer(base, n, labels + i, scores ? scores + i * base->classes : NULL, scratch, error);
    }
    return status;
}

static safer_status scratch_new(const safer_model *model, void **out, safer_error *error)
{
    sf_charcnn_scratch *scratch = NULL;
    const sf_charcnn_net *net = sf_charcnn_net_of(model);
    const safer_status status = net ? sf_charcnn_scratch_new(net, &scratch, error)
                                    : sf_charcnn_scratch_of_device(layout_of(model), &scratch, error);
    if (status == SAFER_OK) *out = scratch;
    return status;
}

static void scratch_free(void *scratch) { sf_charcnn_scratch_free(scratch); }

/* --------------------------------------------------------------- fast path */

/* A text made ready for draws: codes of what stays, and of all words that can be drawn. */
typedef struct prepared {
    size_t slots;   /* of the text: the length of a draw */
    size_t visible; /* of them can be seen */
    uint8_t *fixed; /* codes of everything between the slots, at most L */
    size_t fixed_count;
    size_t *before;  /* (visible): fixed codes before each slot */
    uint32_t *first; /* (visible): where a slot's support begins among the choices */
    uint8_t *codes;  /* of the choices, one after the other */
    uint32_t *begin; /* (choices+1): where each begins there */
} prepared;

static void release(void *pointer)
{
    prepared *p = pointer;
    if (!p) return;
    free(p->fixed);
    free(p->before);
    free(p->first);
    free(p->codes);
    free(p->begin);
    free(p);
}

/* The slots behind the last character that is read, in every draw of this text and of every text with
 * words exchanged for synonyms, cannot be seen. */
static size_t visible(const void *pointer) { return ((const prepared *)pointer)->visible; }

/* The fewest characters of a word that a row draws. */
static size_t shortest_of_row(const safer_lexicon *lexicon, uint32_t row)
{
    const sf_kernel_view *kernel = &lexicon->kernel;
    size_t least = SIZE_MAX;
    for (uint64_t k = kernel->offsets[row]; k < kernel->offsets[row + 1]; k++) {
        uint32_t at = lexicon->words.offsets[kernel->ids[k]], end = lexicon->words.offsets[kernel->ids[k] + 1] - 1;
        least = sf_least(least, sf_charcnn_characters(lexicon->words.pool + at, end - at));
    }
    return least;
}

/* The fewest characters of what the word, or a synonym in its place, can become. Every
 * case pattern has as many. shortest: of the kernel rows met already, else 0. */
static size_t shortest_of_word(uint32_t *shortest, const safer_lexicon *lexicon, uint32_t word)
{
    size_t least = SIZE_MAX;
    for (uint64_t k = lexicon->synonym_offsets[word];; k++) {
        int last = k == lexicon->synonym_offsets[word + 1];
        uint32_t row = lexicon->kernel.row_of[last ? word : lexicon->synonyms[k]];
        if (!shortest[row]) shortest[row] = (uint32_t)shortest_of_row(lexicon, row);
        least = sf_least(least, shortest[row]);
        if (last) return least;
    }
}

/* Counts the slots that can be seen and lists the codes of what stays between them. */
static safer_status place_slots(prepared *p, const safer_lexicon *lexicon, const sf_slots *slots, size_t L,
                                safer_error *error)
{
    size_t at = 0, earliest = 0; /* the least characters before `at`, over all draws and exchanges */
    uint32_t *shortest = sf_calloc(lexicon->kernel.rows, sizeof *shortest);
    p->fixed = sf_alloc(L, 1);
    p->before = sf_alloc(p->slots, sizeof *p->before);
    p->first = sf_alloc(p->slots, sizeof *p->first);
    if (!shortest || !p->fixed || !p->before || !p->first) {
        free(shortest);
        return sf_fail_memory(error);
    }
    for (size_t s = 0; earliest < L; s++) {
        const sf_text_word *w = s < p->slots ? &slots->words[slots->slots[s]] : NULL;
        size_t end = w ? w->begin : slots->length, left = L - earliest;
        size_t count = sf_charcnn_encode(p->fixed + p->fixed_count, slots->text + at, end - at, left);
        p->fixed_count += count;
        earliest += count;
        if (!w || earliest >= L) break;
        p->before[s] = p->fixed_count;
        earliest += shortest_of_word(shortest, lexicon, w->word);
        p->visible++;
        at = w->end;
    }
    free(shortest);
    return SAFER_OK;
}

/* Encodes the support of a kernel row, written in a pattern. */
static int encode_support(prepared *p, size_t *choices, size_t *begin_capacity, size_t *code_capacity,
                          const safer_lexicon *lexicon, uint32_t row, sf_case pattern, sf_buffer *surface)
{
    const sf_kernel_view *kernel = &lexicon->kernel;
    for (uint64_t k = kernel->offsets[row]; k < kernel->offsets[row + 1]; k++) {
        uint32_t at = lexicon->words.offsets[kernel->ids[k]], end = lexicon->words.offsets[kernel->ids[k] + 1] - 1;
        size_t from = p->begin[*choices];
        sf_buffer_clear(surface);
        if (sf_word_render(surface, lexicon->words.pool + at, end - at, pattern) ||
            sf_grow(&p->codes, code_capacity, from + surface->length, 1) ||
            sf_grow(&p->begin, begin_capacity, *choices + 2, sizeof *p->begin))
            return -1;
        p->begin[++*choices] = (uint32_t)(from + sf_charcnn_encode(p->codes + from, surface->bytes, surface->length,
                                                                   SIZE_MAX));
    }
    return 0;
}

/* Lists what each slot can become. Slots with the same kernel row and pattern share. */
static safer_status encode_choices(prepared *p, const safer_lexicon *lexicon, const sf_slots *slots, safer_error *error)
{
    safer_status status = SAFER_OK;
    const sf_kernel_view *kernel = &lexicon->kernel;
    size_t choices = 0, begin_capacity = 0, code_capacity = 0;
    sf_buffer surface = {0};
    uint32_t *known = sf_alloc((size_t)kernel->rows * (SF_UPPER + 1), sizeof *known);
    if (!known || sf_grow(&p->begin, &begin_capacity, 1, sizeof *p->begin)) {
        status = sf_fail_memory(error);
        goto done;
    }
    memset(known, 0xff, (size_t)kernel->rows * (SF_UPPER + 1) * sizeof *known);
    p->begin[0] = 0;
    for (size_t s = 0; s < p->visible; s++) {
        const sf_text_word *w = &slots->words[slots->slots[s]];
        uint32_t row = kernel->row_of[w->word], *place = &known[(size_t)row * (SF_UPPER + 1) + w->pattern];
        if (*place == SF_NONE) {
            *place = (uint32_t)choices;
            if (encode_support(p, &choices, &begin_capacity, &code_capacity, lexicon, row, w->pattern, &surface)) {
                status = sf_fail_memory(error);
                goto done;
            }
        }
        p->first[s] = *place;
    }
done:
    free(known);
    sf_buffer_free(&surface);
    return status;
}

static safer_status prepare(const safer_model *base, const safer_lexicon *lexicon, const sf_slots *slots, void **out,
                            safer_error *error)
{
    safer_status status;
    prepared *p = sf_calloc(1, sizeof *p);
    if (!p) return sf_fail_memory(error);
    p->slots = slots->slot_count;
    SF_TRY(place_slots(p, lexicon, slots, layout_of(base)->shape.characters, error));
    SF_TRY(encode_choices(p, lexicon, slots, error));
    *out = p;
    p = NULL;
done:
    release(p);
    return status;
}

/* The codes of a draw; returns how many there are. */
static size_t assemble(uint8_t *codes, const prepared *p, const uint32_t *draw, size_t L)
{
    size_t count = 0, from = 0;
    for (size_t s = 0; s < p->visible && count < L; s++) {
        const uint32_t choice = p->first[s] + draw[s];
        size_t part = sf_least(p->before[s] - from, L - count);
        memcpy(codes + count, p->fixed + from, part);
        from = p->before[s];
        count += part;
        part = sf_least(p->begin[choice + 1] - p->begin[choice], L - count);
        memcpy(codes + count, p->codes + p->begin[choice], part);
        count += part;
    }
    size_t rest = sf_least(p->fixed_count - from, L - count);
    memcpy(codes + count, p->fixed + from, rest);
    count += rest;
    memset(codes + count, 0, L - count);
    return count;
}

static safer_status sample(const safer_model *base, const void *pointer, const uint32_t *draws, size_t count,
                           int *labels, void *scratch, safer_error *error)
{
    const size_t L = layout_of(base)->shape.characters;
    const prepared *p = pointer;
    uint8_t *codes = sf_charcnn_scratch_codes(scratch);
    size_t *lengths = sf_charcnn_scratch_lengths(scratch);
    safer_status status = SAFER_OK;
    for (size_t i = 0; i < count && status == SAFER_OK; i += SF_CHARCNN_TOGETHER) {
        size_t n = sf_least(SF_CHARCNN_TOGETHER, count - i);
        for (size_t b = 0; b < n; b++) lengths[b] = assemble(codes + b * L, p, draws + (i + b) * p->slots, L);
        status = answer(base, n, labels + i, NULL, scratch, error);
    }
    return status;
}

/* ------------------------------------------------------------------- class */

void sf_charcnn_model_free(sf_charcnn_model *model)
{
    if (!model) return;
    sf_charcnn_net_free(model->net);
    sf_charcnn_device_free(model->device);
    sf_safetensors_free(model->file);
    sf_model_clear(&model->base);
    free(model);
}

const sf_charcnn_net *sf_charcnn_net_of(const safer_model *model) { return ((const sf_charcnn_model *)model)->net; }

static void model_free(safer_model *model) { sf_charcnn_model_free((sf_charcnn_model *)model); }

const sf_model_class sf_charcnn_class = {
    .arch = "charcnn",
    .classify = classify,
    .prepare = prepare,
    .sample = sample,
    .release = release,
    .visible = visible,
    .scratch_new = scratch_new,
    .scratch_free = scratch_free,
    .free = model_free,
    .set_precision = sf_charcnn_set_precision,
    .set_device = sf_charcnn_set_device,
};
