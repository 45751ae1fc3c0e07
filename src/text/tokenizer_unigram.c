/* Unigram: the way through a word whose pieces have the greatest sum of scores.
 *
 * Every beginning is extended by all pieces that follow it in the text; a character without a piece of its own counts
 * as unknown, at 10 below the least score. Of equal sums the way that was found first counts: that whose last piece
 * begins first. Sums are in double, from the left, as in `tokenizers`.
 *
 * Without a pre-tokenizer that cuts, a word is a whole text, and sums go on from word to word: each is rounded to what
 * a double has left beside all that came before. A word's pieces are the same after any sum if at no place of the best
 * way another is nearer to it than that rounding can be: with sums up to 10^6, at most 64 additions and 2^-53 of the
 * sum for each, that is less than 10^-8 for one way, 4 10^-8 for two of them after two sums. (At other places it does
 * not matter which of two ways that are near is kept: the sum is the same but for the rounding.) */
#include "base/memory.h"
#include "base/number.h"
#include "text/tokenizer_parts.h"

#include <math.h>
#include <string.h>

static size_t character_length(const char *p)
{
    const unsigned char byte = (unsigned char)*p;
    return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

#define NEAR 1e-7                   /* ways that are nearer to each other may change places when sums are rounded */
#define IS_NEAR (UINT32_C(1) << 31) /* in an id: there was another way to this place that is near */

static void reach(sf_best *end, double score, size_t begin, uint32_t id)
{
    if (end->begin == SF_NONE)
        *end = (sf_best){score, id, (uint32_t)begin};
    else if (score > end->score)
        *end = (sf_best){score, id | (score - end->score < NEAR ? IS_NEAR : 0), (uint32_t)begin};
    else if (end->score - score < NEAR)
        end->id |= IS_NEAR;
}

/* The best way to every place. Whether all sums are as small as they are to be. */
static int go_forward(sf_best *best, const sf_unigram *u, const char *word, size_t length, double sum)
{
    const sf_trie *trie = &u->trie;
    int small = length <= 64;
    for (size_t i = 0; i <= length; i++) best[i] = (sf_best){0, 0, SF_NONE};
    best[0].score = sum;
    for (size_t at = 0, step; at < length; at += step) {
        const double here = best[at].score;
        uint32_t node = 0;
        int single = 0;
        small &= fabs(here) < SF_UNIGRAM_SUM / 2;
        step = character_length(word + at);
        if (step > length - at) step = length - at;
        for (size_t i = at; i < length && (node = sf_trie_step(trie, node, (unsigned char)word[i])) != SF_NONE; i++) {
            const uint32_t id = trie->nodes[node].value;
            if (id == SF_NONE) continue;
            reach(&best[i + 1], u->scores[id] + here, at, id);
            single |= i + 1 - at == step;
        }
        if (!single) reach(&best[at + step], u->unk_score + here, at, u->unk);
    }
    return small && fabs(best[length].score) < SF_UNIGRAM_SUM / 2;
}

/* A stretch that no piece covers: one of the vocabulary by its name all the same, its bytes, or the unknown. */
static int add_unknown(sf_ids *out, const sf_unigram *u, const char *bytes, size_t length)
{
    const uint32_t id = sf_trie_find(&u->trie, bytes, length);
    int whole = u->byte_fallback && id == SF_NONE;
    for (size_t i = 0; whole && i < length; i++) whole = u->fallback[(unsigned char)bytes[i]] != SF_NONE;
    if (!whole) return sf_ids_push(out, id == SF_NONE ? u->unk : id);
    for (size_t i = 0; i < length; i++)
        if (sf_ids_push(out, u->fallback[(unsigned char)bytes[i]])) return -1;
    return 0;
}

size_t sf_unigram_apart(const sf_unigram *unigram, const char *word, size_t length)
{
    return unigram->signs ? sf_sign_apart(unigram->crosses, word, length) : length;
}

int sf_unigram_encode(sf_ids *out, const sf_unigram *unigram, const char *word, size_t length, double *sum, int *sure,
                      sf_model_scratch *scratch)
{
    if (length >= SF_NONE || sf_grow(&scratch->best, &scratch->best_capacity, length + 1, sizeof *scratch->best))
        return -1;
    sf_best *best = scratch->best;
    *sure = go_forward(best, unigram, word, length, *sum);
    *sum = best[length].score;
    /* Turn the way round: a place then has the piece that begins there, and where that ends. */
    uint32_t at = (uint32_t)length, to = SF_NONE, piece = 0;
    for (;;) {
        const sf_best here = best[at];
        best[at].begin = to;
        best[at].id = piece;
        if (here.begin == SF_NONE) break;
        to = at;
        piece = here.id & ~IS_NEAR;
        if (here.id & IS_NEAR) *sure = 0;
        at = here.begin;
    }
    while (at < length) {
        uint32_t stop = best[at].begin;
        const uint32_t id = best[at].id;
        if (id != unigram->unk) {
            if (sf_ids_push(out, id)) return -1;
        } else {
            *sure = 0;
            while (stop < length && best[stop].id == unigram->unk) stop = best[stop].begin;
            if (add_unknown(out, unigram, word + at, stop - at)) return -1;
        }
        at = stop;
    }
    return 0;
}

/* -------------------------------------------------------- from descriptions */

void sf_unigram_free(sf_unigram *unigram)
{
    sf_trie_free(&unigram->trie);
    free(unigram->scores);
}

/* A score as the library reads it: its JSON reader turns digits into a whole number, rounds that to double and divides
 * by a power of ten, which for 16 and 17 digits can miss the nearest double by one place. Ways of equal length are told
 * apart by such places. The digits are taken to be the fewest that give the number, which all writers of JSON put. */
static double read_as_library(double score)
{
    char text[SF_REAL_SIZE];
    uint64_t digits = 0;
    int exponent = 0, point = 0, said = 0;
    if (sf_format_real(text, score)) return score;
    const char *p = text + (*text == '-');
    for (; *p && *p != 'e'; p++) {
        if (*p == '.') {
            point = 1;
            continue;
        }
        digits = digits * 10 + (uint64_t)(*p - '0');
        exponent -= point;
    }
    if (*p == 'e') {
        const int negative = p[1] == '-';
        for (p += 1 + (p[1] == '-' || p[1] == '+'); *p; p++) said = said * 10 + (*p - '0');
        exponent += negative ? -said : said;
    }
    double power = 1, value = (double)digits;
    if (exponent < -22 || exponent > 22 || digits > UINT64_MAX / 16) return score;
    for (int i = exponent < 0 ? -exponent : exponent; i > 0; i--) power *= 10; /* exact up to 10^22 */
    value = exponent < 0 ? value / power : value * power;
    return *text == '-' ? -value : value;
}

/* One entry of the vocabulary: [piece, score]. */
static safer_status read_entry(sf_span *piece, double *score, const json_t *entry, size_t number, const char *name,
                               safer_error *error)
{
    const json_t *text = json_array_get(entry, 0), *value = json_array_get(entry, 1);
    if (!json_is_string(text) || !json_is_number(value) || json_array_size(entry) != 2)
        return sf_fail(error, SAFER_INPUT, "%s: entry %zu of the vocabulary is not a piece and its score", name,
                       number);
    *piece = (sf_span){json_string_value(text), json_string_length(text)};
    *score = read_as_library(json_number_value(value));
    if (!isfinite(*score) || fabs(*score) > 1e100)
        return sf_fail(error, SAFER_INPUT, "%s: entry %zu of the vocabulary has no usable score", name, number);
    return SAFER_OK;
}

static safer_status read_entries(sf_unigram *out, sf_vocabulary *v, const json_t *list, const char *name,
                                 safer_error *error)
{
    const size_t count = json_array_size(list);
    sf_span *pieces = sf_alloc(count, sizeof *pieces);
    uint32_t *ids = sf_alloc(count, sizeof *ids);
    size_t kept = 0;
    double least = HUGE_VAL;
    safer_status status = SAFER_OK;
    out->scores = sf_alloc(count, sizeof *out->scores);
    if (!pieces || !ids || !out->scores) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        SF_TRY(read_entry(&pieces[kept], &out->scores[i], json_array_get(list, i), i, name, error));
        if (out->scores[i] < least) least = out->scores[i];
        SF_TRY(sf_vocabulary_add(v, pieces[kept].bytes, pieces[kept].length, (uint32_t)i, error));
        ids[kept] = (uint32_t)i;
        sf_sign_note(out->crosses, pieces[kept].bytes, pieces[kept].length);
        kept += pieces[kept].length > 0; /* an empty one is found nowhere */
    }
    out->count = count;
    out->unk_score = least - 10;
    if (sf_trie_build(&out->trie, pieces, ids, kept)) status = sf_fail_memory(error);
done:
    free(pieces);
    free(ids);
    return status;
}

safer_status sf_unigram_read(sf_unigram *out, sf_vocabulary *vocabulary, const json_t *model, const char *name,
                             safer_error *error)
{
    const json_t *list = json_object_get(model, "vocab"), *unk = json_object_get(model, "unk_id");
    safer_status status = SAFER_OK;
    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > INT32_MAX)
        return sf_fail(error, SAFER_INPUT, "%s: the Unigram model has no vocabulary", name);
    if (!json_is_integer(unk) || json_integer_value(unk) < 0 ||
        (uint64_t)json_integer_value(unk) >= json_array_size(list))
        return sf_fail(error, SAFER_INPUT, "%s: unk_id of the Unigram model is not a number of its vocabulary", name);
    out->unk = (uint32_t)json_integer_value(unk);
    SF_TRY(sf_json_flag(&out->byte_fallback, model, "byte_fallback", 0, name, error));
    SF_TRY(read_entries(out, vocabulary, list, name, error));
    const json_t *name_of_unk = json_array_get(json_array_get(list, out->unk), 0);
    out->signs = sf_trie_find(&out->trie, "\xe2\x96\x81", 3) != SF_NONE &&
                 strncmp(json_string_value(name_of_unk), "\xe2\x96\x81", 3) != 0;
    for (unsigned i = 0; i < 256; i++) {
        char code[8];
        snprintf(code, sizeof code, "<0x%02X>", i);
        out->fallback[i] = sf_vocabulary_find(vocabulary, code, strlen(code));
    }
done:
    return status;
}
