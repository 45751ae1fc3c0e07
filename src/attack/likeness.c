/* What a new text must have in common with the text it replaces. */
#include "attack/likeness.h"

#include "base/digest.h"
#include "base/file.h"
#include "base/memory.h"
#include "lexicon/parts.h"
#include "lexicon/vectors.h"
#include "run/members.h"

#include <math.h>
#include <string.h>

int sf_likeness_asked(const safer_attack_options *o)
{
    return o->same_pos || o->vectors || o->min_cosine != 0 || o->min_similarity != 0;
}

safer_status sf_likeness_check(const safer_attack_options *o, safer_error *error)
{
    if (!(o->min_cosine >= 0 && o->min_cosine <= 1))
        return sf_fail(error, SAFER_INVALID, "`min_cosine`: %g (0 to 1)", o->min_cosine);
    if (!(o->min_similarity >= 0 && o->min_similarity <= 1))
        return sf_fail(error, SAFER_INVALID, "`min_similarity`: %g (0 to 1)", o->min_similarity);
    const int needed = o->min_cosine > 0 || o->min_similarity > 0;
    if (needed && !o->vectors)
        return sf_fail(error, SAFER_INVALID, "`vectors`: `min_cosine` and `min_similarity` need them");
    if (!needed && o->vectors)
        return sf_fail(error, SAFER_INVALID, "`vectors`: only `min_cosine` and `min_similarity` use them");
    const int replaces = o->method <= SAFER_ATTACK_RANDOM || o->method == SAFER_ATTACK_OUTOFLIST;
    if (sf_likeness_asked(o) && !replaces)
        return sf_fail(error, SAFER_INVALID, "`same_pos`, `min_cosine` and `min_similarity`: %s does not replace words",
                       safer_attack_method_name(o->method));
    return SAFER_OK;
}

void sf_likeness_free(sf_likeness *likeness)
{
    free(likeness->parts);
    free(likeness->vectors);
    *likeness = (sf_likeness){0};
}

static sf_span word_of(const safer_lexicon *l, uint32_t word)
{
    return (sf_span){l->words.pool + l->words.offsets[word], l->words.offsets[word + 1] - l->words.offsets[word] - 1};
}

static safer_status read_parts(sf_likeness *out, const char *folder, safer_error *error)
{
    const safer_lexicon *l = out->lexicon;
    sf_parts parts = {0};
    safer_status status = sf_parts_read(&parts, folder, error);
    if (status != SAFER_OK) return status;
    out->parts = sf_alloc(l->words.count + 1, sizeof *out->parts);
    for (uint32_t w = 0; out->parts && w < l->words.count; w++) {
        const sf_span word = word_of(l, w);
        out->parts[w] = (unsigned char)sf_parts_of(&parts, word.bytes, word.length);
    }
    out->parts_digest = parts.digest;
    sf_parts_free(&parts);
    return out->parts ? SAFER_OK : sf_fail_memory(error);
}

/* Of the file's vectors those of the lexicon's words, in its order. */
static safer_status take_vectors(sf_likeness *out, const sf_vectors *all, safer_error *error)
{
    const safer_lexicon *l = out->lexicon;
    out->dim = all->dim;
    if (out->dim > SIZE_MAX / sizeof *out->vectors / ((size_t)l->words.count + 1)) return sf_fail_memory(error);
    out->vectors = sf_calloc((size_t)l->words.count * out->dim + 1, sizeof *out->vectors);
    if (!out->vectors) return sf_fail_memory(error);
    for (uint32_t w = 0; w < l->words.count; w++) {
        const sf_span word = word_of(l, w);
        const uint32_t row = sf_words_find(&all->words, word.bytes, word.length);
        if (row == SF_NONE) continue;
        memcpy(out->vectors + w * out->dim, all->values + row * out->dim, out->dim * sizeof *out->vectors);
    }
    return SAFER_OK;
}

static safer_status read_vectors(sf_likeness *out, const char *path, int threads, safer_error *error)
{
    const safer_lexicon *l = out->lexicon;
    sf_vectors all = {0};
    sf_words keep = {0};
    sf_file file = {0};
    uint64_t length;
    uint32_t id;
    safer_status status = SAFER_OK;
    for (uint32_t w = 0; w < l->words.count; w++) {
        const sf_span word = word_of(l, w);
        SF_TRY(sf_words_add(&keep, word.bytes, word.length, &id, error));
    }
    SF_TRY(sf_file_digest(&out->vectors_digest, &length, path, error));
    SF_TRY(sf_file_read(&file, path, error));
    SF_TRY(sf_vectors_parse(&all, file.bytes, file.length, path, &keep, threads, error));
    if (!all.words.count) {
        status = sf_fail(error, SAFER_INPUT, "%s has a vector for no word of the lexicon", path);
        goto done;
    }
    sf_vectors_normalise(all.values, all.words.count, all.dim, threads);
    SF_TRY(take_vectors(out, &all, error));
done:
    sf_file_free(&file);
    sf_words_free(&keep);
    sf_vectors_free(&all);
    return status;
}

safer_status sf_likeness_make(sf_likeness *out, const safer_lexicon *lexicon, const safer_attack_options *o,
                              safer_error *error)
{
    sf_likeness likeness = {.lexicon = lexicon, .min_cosine = o->min_cosine, .min_similarity = o->min_similarity};
    safer_status status = SAFER_OK;
    if (o->same_pos) SF_TRY(read_parts(&likeness, o->same_pos, error));
    if (o->vectors) SF_TRY(read_vectors(&likeness, o->vectors, o->threads, error));
    *out = likeness;
    likeness = (sf_likeness){0};
done:
    sf_likeness_free(&likeness);
    return status;
}

void sf_likeness_add(json_t **config, const sf_likeness *l)
{
    if (l->parts) sf_member_add(config, "same_pos", json_string(l->parts_digest.hex));
    if (l->vectors) sf_member_add(config, "vectors", json_string(l->vectors_digest.hex));
    if (l->min_cosine > 0) sf_member_add(config, "min_cosine", json_real(l->min_cosine));
    if (l->min_similarity > 0) sf_member_add(config, "min_similarity", json_real(l->min_similarity));
}

int sf_likeness_words(const sf_likeness *l, uint32_t from, uint32_t to)
{
    if (l->parts && !(l->parts[from] & l->parts[to])) return 0;
    if (!(l->min_cosine > 0)) return 1;
    return sf_vectors_dot(l->vectors + from * l->dim, l->vectors + to * l->dim, l->dim) >= l->min_cosine;
}

/* The sum of a coordinate over words begin .. end-1. */
static double sum(const sf_likeness *l, const uint32_t *words, size_t begin, size_t end, size_t k)
{
    double total = 0;
    for (size_t i = begin; i < end; i++)
        if (words[i] != SF_NONE) total += (double)l->vectors[words[i] * l->dim + k];
    return total;
}

/* Sums have the direction of means. */
static int window_is_alike(const sf_likeness *l, const uint32_t *before, const uint32_t *after, size_t begin,
                           size_t end)
{
    double product = 0, old = 0, new = 0;
    for (size_t k = 0; k < l->dim; k++) {
        const double a = sum(l, before, begin, end, k), b = sum(l, after, begin, end, k);
        product += a * b;
        old += a * a;
        new += b *b;
    }
    return old > 0 && new > 0 && product >= l->min_similarity *sqrt(old) * sqrt(new);
}

int sf_likeness_texts(const sf_likeness *l, const uint32_t *before, const uint32_t *after, size_t count)
{
    const size_t width = count < SF_WINDOW ? count : SF_WINDOW;
    for (size_t i = 0; l->min_similarity > 0 && i < count; i++) {
        if (before[i] == after[i]) continue;
        size_t begin = i < SF_WINDOW / 2 ? 0 : i - SF_WINDOW / 2;
        if (begin > count - width) begin = count - width;
        if (!window_is_alike(l, before, after, begin, begin + width)) return 0;
    }
    return 1;
}
