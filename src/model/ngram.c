/* The n-gram classifier: features, decisions, and the fast path for draws. ngram.h defines it and says why draws
 * answer as their texts do; docs/models.md is the user's side. */
#include "model/ngram.h"

#include "base/elementary.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- features */

void sf_ngram_scratch_clear(sf_ngram_scratch *scratch)
{
    free(scratch->hashes);
    free(scratch->states);
    free(scratch->places);
    free(scratch->buckets);
    free(scratch->seen);
    free(scratch->sums);
    sf_word_reader_free(&scratch->reader);
    *scratch = (sf_ngram_scratch){0};
}

uint64_t sf_ngram_word_hash(const char *key, size_t length) { return sf_hash(key, length, 0); }

static int add_token(sf_ngram_scratch *scratch, uint64_t hash, size_t *count)
{
    if (sf_grow(&scratch->hashes, &scratch->hash_capacity, *count + 1, sizeof *scratch->hashes)) return -1;
    scratch->hashes[(*count)++] = hash;
    return 0;
}

/* What a byte between words belongs to: nothing, a number, a mark of its own, or a run of
 * bytes beyond ASCII. */
static int kind_of(char c)
{
    unsigned char byte = (unsigned char)c;
    return byte <= ' ' || byte == 127 ? 0 : byte >= '0' && byte <= '9' ? 1 : byte < 128 ? 2 : 3;
}

/* The tokens between two words. */
static int add_gap(sf_ngram_scratch *scratch, const char *at, const char *end, size_t *count)
{
    while (at < end) {
        const char *begin = at++;
        int kind = kind_of(*begin);
        if (kind == 0) continue;
        while (kind != 2 && at < end && kind_of(*at) == kind) at++;
        if (add_token(scratch, sf_hash(begin, (size_t)(at - begin), 1), count)) return -1;
    }
    return 0;
}

int sf_ngram_read(sf_ngram_scratch *scratch, const char *text, size_t length, size_t *tokens)
{
    sf_word word;
    size_t count = 0, at = 0;
    int more;
    sf_word_reader_start(&scratch->reader, text, length);
    while ((more = sf_word_reader_next(&scratch->reader, &word)) > 0) {
        if (add_gap(scratch, text + at, text + word.begin, &count) ||
            add_token(scratch, sf_ngram_word_hash(word.key, word.key_length), &count))
            return -1;
        at = word.end;
    }
    if (more < 0 || add_gap(scratch, text + at, text + length, &count)) return -1;
    *tokens = count;
    return 0;
}

int sf_ngram_read_slots(sf_ngram_scratch *scratch, const sf_slots *slots, size_t *tokens)
{
    size_t count = 0, at = 0;
    if (sf_grow(&scratch->places, &scratch->place_capacity, slots->slot_count + 1, sizeof *scratch->places)) return -1;
    for (size_t i = 0; i < slots->word_count; i++) {
        const sf_text_word *word = &slots->words[i];
        if (add_gap(scratch, slots->text + at, slots->text + word->begin, &count)) return -1;
        if (word->slot != SF_NONE) scratch->places[word->slot] = (uint32_t)count;
        if (add_token(scratch, sf_ngram_word_hash(slots->keys.bytes + word->key, word->key_length), &count)) return -1;
        at = word->end;
    }
    if (add_gap(scratch, slots->text + at, slots->text + slots->length, &count)) return -1;
    *tokens = count;
    return 0;
}

/* Slots of the set for so many n-grams: at most half full. */
static size_t set_size(size_t ngrams)
{
    size_t slots = 64;
    while (slots < 2 * ngrams) slots *= 2;
    return slots;
}

int sf_ngram_reserve(sf_ngram_scratch *scratch, size_t tokens, int ngrams)
{
    size_t buckets = tokens * (size_t)ngrams, slots = set_size(buckets);
    if (sf_grow(&scratch->hashes, &scratch->hash_capacity, tokens + 1, sizeof *scratch->hashes) ||
        sf_grow(&scratch->states, &scratch->state_capacity, tokens + 1, sizeof *scratch->states) ||
        sf_grow(&scratch->buckets, &scratch->bucket_capacity, buckets + 1, sizeof *scratch->buckets))
        return -1;
    if (slots > scratch->seen_capacity) { /* nothing in it is worth keeping */
        free(scratch->seen);
        scratch->seen = sf_calloc(slots, sizeof *scratch->seen);
        scratch->seen_capacity = scratch->seen ? slots : 0;
        scratch->stamp = 0;
    }
    return scratch->seen ? 0 : -1;
}

/* The state of an n-gram with one word more. Multiplication before the sum makes the
 * order of the tokens count. */
static uint64_t extend(uint64_t state, uint64_t word)
{
    state = (state * UINT64_C(0x9E3779B97F4A7C15) + word) * UINT64_C(0xD6E8FEB86659FD93);
    return state ^ state >> 32;
}

size_t sf_ngram_features(sf_ngram_scratch *scratch, size_t tokens, int ngrams, int bits)
{
    const uint64_t *hashes = scratch->hashes;
    uint64_t *states = scratch->states;
    size_t count = 0, mask = set_size(tokens * (size_t)ngrams) - 1;
    int shift = 64 - bits;
    if (++scratch->stamp == 0) {
        memset(scratch->seen, 0, scratch->seen_capacity * sizeof *scratch->seen);
        scratch->stamp = 1;
    }
    uint32_t stamp = scratch->stamp;
    for (size_t n = 1; n <= (size_t)ngrams && n <= tokens; n++)
        for (size_t i = 0; i + n <= tokens; i++) {
            states[i] = extend(n == 1 ? 0 : states[i], hashes[i + n - 1]);
            uint32_t bucket = (uint32_t)(states[i] * UINT64_C(0xA0761D6478BD642F) >> shift);
            size_t slot = bucket & mask;
            while (scratch->seen[slot].stamp == stamp && scratch->seen[slot].bucket != bucket) slot = (slot + 1) & mask;
            if (scratch->seen[slot].stamp == stamp) continue;
            scratch->seen[slot].stamp = stamp;
            scratch->seen[slot].bucket = bucket;
            scratch->buckets[count++] = bucket;
        }
    return count;
}

/* --------------------------------------------------------------- decisions */

size_t sf_ngram_outputs(size_t classes) { return classes == 2 ? 1 : classes; }

double sf_ngram_scale(size_t count) { return count ? 16 / sqrt((double)count) : 0; }

enum { AHEAD = 16 }; /* buckets are all over the table: ask for them early */

void sf_ngram_sum(double *sums, const uint32_t *buckets, size_t count, const float *weights, const float *bias,
                  size_t outputs)
{
    double scale = sf_ngram_scale(count);
    if (outputs == 1) {
        double sum = 0;
        for (size_t i = 0; i < count; i++) {
            if (i + AHEAD < count) __builtin_prefetch(&weights[buckets[i + AHEAD]]);
            sum += (double)weights[buckets[i]];
        }
        sums[0] = (double)bias[0] + scale * sum;
        return;
    }
    for (size_t k = 0; k < outputs; k++) sums[k] = 0;
    for (size_t i = 0; i < count; i++) {
        if (i + AHEAD < count) __builtin_prefetch(&weights[buckets[i + AHEAD] * outputs]);
        for (size_t k = 0; k < outputs; k++) sums[k] += (double)weights[buckets[i] * outputs + k];
    }
    for (size_t k = 0; k < outputs; k++) sums[k] = (double)bias[k] + scale * sums[k];
}

int sf_ngram_decide(const double *sums, size_t classes, float *scores)
{
    if (classes == 2) {
        double odds = sf_exp(-fabs(sums[0])), p = 1 / (1 + odds); /* p: of the winner */
        int label = sums[0] > 0;
        if (scores) {
            scores[label] = (float)p;
            scores[!label] = (float)(odds * p);
        }
        return label;
    }
    size_t best = 0;
    double total = 0;
    for (size_t k = 1; k < classes; k++)
        if (sums[k] > sums[best]) best = k;
    if (!scores) return (int)best;
    for (size_t k = 0; k < classes; k++) total += sf_exp(sums[k] - sums[best]);
    for (size_t k = 0; k < classes; k++) scores[k] = (float)(sf_exp(sums[k] - sums[best]) / total);
    return (int)best;
}

/* After the hashes were filled in and room was made. */
static int answer(const sf_ngram *m, sf_ngram_scratch *scratch, size_t tokens, float *scores)
{
    size_t count = sf_ngram_features(scratch, tokens, m->ngrams, m->bits);
    sf_ngram_sum(scratch->sums, scratch->buckets, count, m->weights, m->bias, m->outputs);
    return sf_ngram_decide(scratch->sums, m->base.classes, scores);
}

static safer_status classify(const safer_model *model, const sf_span *texts, size_t count, int *labels, float *scores,
                             void *scratch, safer_error *error)
{
    const sf_ngram *m = (const sf_ngram *)model;
    sf_ngram_scratch *s = scratch;
    for (size_t i = 0; i < count; i++) {
        size_t tokens;
        if (sf_ngram_read(s, texts[i].bytes, texts[i].length, &tokens) || sf_ngram_reserve(s, tokens, m->ngrams))
            return sf_fail_memory(error);
        labels[i] = answer(m, s, tokens, scores ? scores + i * model->classes : NULL);
    }
    return SAFER_OK;
}

/* --------------------------------------------------------------- fast path */

typedef struct prepared {
    size_t tokens, slots;
    uint64_t *hashes;   /* tokens: of the text as it is */
    uint32_t *places;   /* slots: which token */
    size_t *first;      /* slots: where its substitutes begin below */
    uint64_t *supports; /* the hash of everything a slot may draw */

    /* Where draws delete: what is kept has spaces around it, so that each token of the draw is read by itself. */
    size_t width, parts; /* numbers of a draw; tokens that it keeps or deletes */
    uint32_t *begin;     /* (parts + 1): where the hashes of each begin */
    uint32_t *slot;      /* (parts): its slot, or SF_NONE */
} prepared;

static void release(void *pointer)
{
    prepared *p = pointer;
    if (!p) return;
    free(p->hashes);
    free(p->places);
    free(p->first);
    free(p->supports);
    free(p->begin);
    free(p->slot);
    free(p);
}

/* The hashes of every token that a draw may keep, one after the other. -1 without memory. */
static int read_parts(prepared *p, const sf_slots *slots)
{
    sf_ngram_scratch scratch = {0};
    size_t count = 0, w = 0;
    int failed = 0;
    p->parts = slots->token_count;
    p->begin = sf_alloc(p->parts + 1, sizeof *p->begin);
    p->slot = sf_alloc(p->parts, sizeof *p->slot);
    if (!p->begin || !p->slot) return -1;
    for (size_t t = 0; t < p->parts && !failed; t++) {
        const sf_token *token = &slots->tokens[t];
        const sf_text_word *word = w < slots->word_count && slots->words[w].begin == token->begin ? &slots->words[w++]
                                                                                                  : NULL;
        p->begin[t] = (uint32_t)count;
        p->slot[t] = token->slot;
        failed = word ? add_token(&scratch, sf_ngram_word_hash(slots->keys.bytes + word->key, word->key_length), &count)
                      : add_gap(&scratch, slots->text + token->begin, slots->text + token->end, &count);
    }
    p->begin[p->parts] = (uint32_t)count;
    p->tokens = count;
    p->hashes = scratch.hashes; /* taken over */
    return failed;
}

static uint32_t row_of_slot(const safer_lexicon *l, const sf_slots *slots, size_t slot)
{
    return l->kernel.row_of[slots->words[slots->slots[slot]].word];
}

static safer_status prepare(const safer_model *model, const safer_lexicon *l, const sf_slots *slots, void **out,
                            safer_error *error)
{
    (void)model;
    sf_ngram_scratch scratch = {0};
    size_t supports = 0, at = 0;
    for (size_t s = 0; s < slots->slot_count; s++) {
        uint32_t row = row_of_slot(l, slots, s);
        supports += (size_t)(l->kernel.offsets[row + 1] - l->kernel.offsets[row]);
    }
    prepared *p = sf_calloc(1, sizeof *p);
    if (!p) return sf_fail_memory(error);
    p->slots = slots->slot_count;
    p->width = sf_slots_width(slots);
    p->first = sf_alloc(p->slots, sizeof *p->first);
    p->supports = sf_alloc(supports, sizeof *p->supports);
    if (!p->first || !p->supports ||
        (slots->split ? read_parts(p, slots) : sf_ngram_read_slots(&scratch, slots, &p->tokens))) {
        sf_ngram_scratch_clear(&scratch);
        release(p);
        return sf_fail_memory(error);
    }
    if (!slots->split) { /* taken over */
        p->hashes = scratch.hashes;
        p->places = scratch.places;
    }
    for (size_t s = 0; s < p->slots; s++) {
        uint32_t row = row_of_slot(l, slots, s);
        p->first[s] = at;
        for (uint64_t i = l->kernel.offsets[row]; i < l->kernel.offsets[row + 1]; i++) {
            uint32_t begin = l->words.offsets[l->kernel.ids[i]], end = l->words.offsets[l->kernel.ids[i] + 1];
            p->supports[at++] = sf_ngram_word_hash(l->words.pool + begin, end - begin - 1);
        }
    }
    *out = p;
    return SAFER_OK;
}

/* The hashes of what a draw keeps; returns how many. */
static size_t keep_parts(uint64_t *hashes, const prepared *p, const uint32_t *draw)
{
    size_t count = 0;
    for (size_t group = 0; group < p->width - p->slots; group++)
        for (uint32_t bits = draw[p->slots + group]; bits; bits &= bits - 1) {
            const size_t t = 32 * group + (size_t)__builtin_ctz(bits);
            const uint32_t slot = p->slot[t];
            if (slot != SF_NONE) {
                hashes[count++] = p->supports[p->first[slot] + draw[slot]];
                continue;
            }
            for (uint32_t i = p->begin[t]; i < p->begin[t + 1]; i++) hashes[count++] = p->hashes[i];
        }
    return count;
}

safer_status sf_ngram_sample_scores(const safer_model *model, const void *pointer, const uint32_t *draws, size_t count,
                                    int *labels, float *scores, void *scratch, safer_error *error)
{
    const sf_ngram *m = (const sf_ngram *)model;
    const prepared *p = pointer;
    sf_ngram_scratch *s = scratch;
    if (sf_ngram_reserve(s, p->tokens, m->ngrams)) return sf_fail_memory(error);
    if (p->tokens) memcpy(s->hashes, p->hashes, p->tokens * sizeof *p->hashes);
    for (size_t i = 0; i < count; i++, draws += p->width) {
        if (p->begin) {
            const size_t kept = keep_parts(s->hashes, p, draws);
            labels[i] = answer(m, s, kept, scores ? scores + i * model->classes : NULL);
            continue;
        }
        for (size_t k = 0; k < p->slots; k++) s->hashes[p->places[k]] = p->supports[p->first[k] + draws[k]];
        labels[i] = answer(m, s, p->tokens, scores ? scores + i * model->classes : NULL);
    }
    return SAFER_OK;
}

static safer_status sample(const safer_model *model, const void *pointer, const uint32_t *draws, size_t count,
                           int *labels, void *scratch, safer_error *error)
{
    return sf_ngram_sample_scores(model, pointer, draws, count, labels, NULL, scratch, error);
}

/* ------------------------------------------------------------------ object */

static safer_status scratch_new(const safer_model *model, void **out, safer_error *error)
{
    sf_ngram_scratch *scratch = sf_calloc(1, sizeof *scratch);
    if (!scratch) return sf_fail_memory(error);
    if (sf_grow(&scratch->sums, &scratch->sum_capacity, model->classes, sizeof *scratch->sums)) {
        free(scratch);
        return sf_fail_memory(error);
    }
    *out = scratch;
    return SAFER_OK;
}

static void scratch_free(void *scratch)
{
    if (scratch) sf_ngram_scratch_clear(scratch);
    free(scratch);
}

static void free_model(safer_model *model)
{
    sf_ngram *m = (sf_ngram *)model;
    sf_model_clear(model);
    free(m->weights);
    free(m->bias);
    free(m);
}

static const sf_model_class ngram_class = {
    .arch = "ngram",
    .classify = classify,
    .prepare = prepare,
    .sample = sample,
    .release = release,
    .deletes = 1,
    .scratch_new = scratch_new,
    .scratch_free = scratch_free,
    .free = free_model,
};

safer_status sf_ngram_open(safer_model **out, const sf_safetensors *file, safer_error *error)
{
    safer_status status = SAFER_OK;
    const char *name = sf_safetensors_name(file), *ngrams = sf_safetensors_metadata(file, "ngrams");
    const char *hashing = sf_safetensors_metadata(file, "hashing");
    const sf_tensor *weights, *bias;
    uint64_t longest;
    sf_ngram *m = sf_calloc(1, sizeof *m);
    if (!m) return sf_fail_memory(error);
    m->base.class = &ngram_class;
    SF_TRY(sf_model_read_common(&m->base, file, error));
    if (!ngrams || sf_to_uint64(ngrams, &longest) || longest < 1 || longest > 8) {
        status = sf_fail(error, SAFER_INPUT, "%s: the metadata \"ngrams\" must be a number from 1 to 8", name);
        goto done;
    }
    if (!hashing || strcmp(hashing, SF_NGRAM_HASHING) != 0) {
        status = sf_fail(error, SAFER_INPUT,
                         "%s: its n-grams are hashed in another way than this version does; train it anew", name);
        goto done;
    }
    m->ngrams = (int)longest;
    m->outputs = sf_ngram_outputs(m->base.classes);
    SF_TRY(sf_safetensors_require(&weights, file, "weights", SF_F32, 2, (size_t[]){SIZE_MAX, m->outputs}, error));
    SF_TRY(sf_safetensors_require(&bias, file, "bias", SF_F32, 1, &m->outputs, error));
    size_t buckets = weights->shape[0];
    while (m->bits < 32 && (size_t)1 << m->bits < buckets) m->bits++;
    if (m->bits < 1 || (size_t)1 << m->bits != buckets || m->bits == 32) {
        status = sf_fail(error, SAFER_INPUT,
                         "%s: tensor \"weights\" has %zu rows; it must be a power of two from 2 to 2^31", name,
                         buckets);
        goto done;
    }
    m->weights = sf_alloc_aligned(weights->count, sizeof *m->weights);
    m->bias = sf_alloc(m->outputs, sizeof *m->bias);
    if (!m->weights || !m->bias) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_tensor_to_f32(m->weights, weights, file, error));
    SF_TRY(sf_tensor_to_f32(m->bias, bias, file, error));
    *out = &m->base;
    m = NULL;
done:
    if (m) free_model(&m->base);
    return status;
}
