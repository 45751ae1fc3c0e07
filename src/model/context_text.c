/* Texts of the `context` classifier: their canonical form, and the contexts of their words. context.h says what these
 * are. Nothing here looks at a word of the text that was given, only at what its slots are drawn as. */
#include "base/memory.h"
#include "model/canonical.h"
#include "model/context.h"

#include <math.h>
#include <string.h>

enum { SIDE_BY_SIDE = 8 /* numbers of a context */ };

void sf_context_text_free(sf_context_text *text)
{
    sf_buffer_free(&text->canonical);
    free(text->ends);
    free(text->pieces);
    free(text->contexts);
    *text = (sf_context_text){0};
}

int sf_context_text_set(sf_context_text *text, const sf_slots *slots, const safer_lexicon *lexicon)
{
    sf_buffer_clear(&text->canonical);
    text->words = slots->word_count;
    text->first = text->count = 0;
    return sf_grow(&text->ends, &text->end_capacity, text->words + 1, sizeof *text->ends) ||
                   sf_canonical_render(&text->canonical, text->ends, slots, lexicon)
               ? -1
               : 0;
}

/* Equal bytes could be cut into words in two ways, for all that is known here: the cuts count too. */
int sf_context_text_same(const sf_context_text *a, const sf_context_text *b)
{
    return a->words == b->words && a->canonical.length == b->canonical.length &&
           (!a->canonical.length || memcmp(a->canonical.bytes, b->canonical.bytes, a->canonical.length) == 0) &&
           (!a->words || memcmp(a->ends, b->ends, a->words * sizeof *a->ends) == 0);
}

void sf_context_reader_free(sf_context_reader *r)
{
    sf_bert_scratch_free(r->bert);
    sf_piecer_scratch_free(&r->piecer);
    sf_ids_free(&r->encoded);
    sf_ids_free(&r->ids);
    free(r->means);
    *r = (sf_context_reader){0};
}

static sf_window window_of(const sf_context_encoder *e) { return sf_bert_window(&e->layout->shape, e->piecer); }

/* The pieces of a text, part by part, and where those of every word begin. -1 without memory. */
static int cut_text(sf_context_text *t, const sf_context_encoder *e, sf_context_reader *r)
{
    const sf_window window = window_of(e);
    const char *bytes = t->canonical.bytes ? t->canonical.bytes : "";
    size_t at = 0;
    r->encoded.count = 0;
    if (sf_grow(&t->pieces, &t->piece_capacity, t->words + 1, sizeof *t->pieces)) return -1;
    for (size_t i = 0; i <= t->words; i++) {
        const size_t end = i < t->words ? t->ends[i] : t->canonical.length,
                     room = window.last ? SIZE_MAX : window.most - r->encoded.count;
        t->pieces[i] = r->encoded.count;
        if (room && sf_piecer_encode_part(&r->encoded, e->piecer, bytes + at, end - at, room, i > 0, &r->piecer))
            return -1;
        at = end;
    }
    return 0;
}

/* What is read of them: the last pieces, where there are too many; and which words have some. */
static void cut_window(sf_context_text *t, const sf_context_encoder *e, sf_context_reader *r)
{
    const size_t most = window_of(e).most, dropped = r->encoded.count > most ? r->encoded.count - most : 0;
    if (dropped) memmove(r->encoded.ids, r->encoded.ids + dropped, most * sizeof *r->encoded.ids);
    r->encoded.count -= dropped;
    for (size_t i = 0; i <= t->words; i++) t->pieces[i] = t->pieces[i] > dropped ? t->pieces[i] - dropped : 0;
    size_t first = 0, last = t->words;
    while (first < last && t->pieces[first + 1] == t->pieces[first]) first++;
    while (last > first && t->pieces[last] == t->pieces[last - 1]) last--;
    t->first = first;
    t->count = last - first;
}

static int push(sf_ids *ids, const uint32_t *more, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sf_ids_push(ids, more[i])) return -1;
    return 0;
}

/* Some numbers of a context side by side, since one sum alone waits for every addition; each in the order of the
 * vector. */
static void project_some(float *out, const float *vector, const float *directions, size_t count,
                         const sf_context_encoder *e)
{
    const size_t H = e->layout->shape.hidden;
    double sums[SIDE_BY_SIDE] = {0};
    for (size_t d = 0; d < H; d++) {
        const double value = (double)vector[d] - (double)e->mean[d];
        for (size_t k = 0; k < SIDE_BY_SIDE; k++) sums[k] += (double)directions[(k < count ? k : 0) * H + d] * value;
    }
    for (size_t k = 0; k < count; k++) out[k] = (float)sums[k];
}

/* A word's context is a function of its own vector, computed in a fixed order. One that is not finite is none: no file
 * holds such numbers, but a network can make them. */
static void project(float *out, const float *vector, const sf_context_encoder *e)
{
    int finite = 1;
    for (size_t k = 0; k < e->size; k += SIDE_BY_SIDE)
        project_some(out + k, vector, e->projection + k * e->layout->shape.hidden, sf_least(e->size - k, SIDE_BY_SIDE),
                     e);
    for (size_t k = 0; k < e->size; k++) finite &= isfinite(out[k]) != 0;
    if (!finite) memset(out, 0, e->size * sizeof *out);
}

/* Words between two that have pieces may have none themselves. */
static int set_contexts(sf_context_text *t, const float *means, const sf_context_encoder *e)
{
    const size_t H = e->layout->shape.hidden;
    if (sf_grow(&t->contexts, &t->context_capacity, t->count * e->size + 1, sizeof *t->contexts)) return -1;
    for (size_t i = 0; i < t->count; i++) {
        float *own = t->contexts + i * e->size;
        if (t->pieces[t->first + i + 1] == t->pieces[t->first + i])
            memset(own, 0, e->size * sizeof *own);
        else
            project(own, means + i * H, e);
    }
    return 0;
}

/* Puts the texts that have something to encode one behind the other; returns how many, SIZE_MAX without memory. */
static size_t gather(size_t *offsets, sf_bert_parts *parts, sf_context_text *const *texts, size_t count,
                     const sf_context_encoder *e, sf_context_reader *r)
{
    const sf_tokenizer_frame frame = sf_piecer_frame(e->piecer);
    size_t gathered = 0;
    r->ids.count = 0;
    for (size_t i = 0; i < count; i++) {
        sf_context_text *t = texts[i];
        if (cut_text(t, e, r)) return SIZE_MAX;
        cut_window(t, e, r);
        if (!t->count) continue;
        if (push(&r->ids, frame.before, frame.before_count) || push(&r->ids, r->encoded.ids, r->encoded.count) ||
            push(&r->ids, frame.after, frame.after_count))
            return SIZE_MAX;
        for (size_t w = 0; w <= t->words; w++) t->pieces[w] += frame.before_count;
        parts[gathered] = (sf_bert_parts){.begin = t->pieces + t->first, .count = t->count};
        offsets[++gathered] = r->ids.count;
    }
    return gathered;
}

/* The means of all words of the texts gathered. */
static safer_status read_means(const sf_context_encoder *e, const sf_bert_batch *batch, const sf_bert_parts *parts,
                               sf_context_reader *r, safer_error *error)
{
    if (e->device) return sf_bert_device_part_means(e->device, batch, parts, error);
    if (!r->bert) {
        const safer_status status = sf_bert_scratch_new(&r->bert, e->net, error);
        if (status != SAFER_OK) return status;
    }
    sf_bert_part_means(e->net, batch, parts, r->bert);
    return SAFER_OK;
}

safer_status sf_context_encode(sf_context_text *const *texts, size_t count, const sf_context_encoder *e,
                               sf_context_reader *r, safer_error *error)
{
    const size_t H = e->layout->shape.hidden;
    size_t offsets[SF_CONTEXT_GROUP + 1] = {0}, words = 0;
    sf_bert_parts parts[SF_CONTEXT_GROUP];
    const size_t gathered = gather(offsets, parts, texts, count, e, r);
    if (gathered == SIZE_MAX) return sf_fail_memory(error);
    for (size_t i = 0; i < gathered; i++) words += parts[i].count;
    if (sf_grow(&r->means, &r->mean_capacity, words * H + 1, sizeof *r->means)) return sf_fail_memory(error);
    for (size_t i = 0, at = 0; i < gathered; at += parts[i++].count) parts[i].means = r->means + at * H;
    const safer_status status = read_means(e, &(sf_bert_batch){r->ids.ids, offsets, gathered}, parts, r, error);
    if (status != SAFER_OK) return status;
    const float *means = r->means;
    for (size_t i = 0; e->projection && i < count; means += texts[i++]->count * H)
        if (set_contexts(texts[i], means, e)) return sf_fail_memory(error);
    return SAFER_OK;
}
