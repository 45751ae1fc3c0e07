/* Byte-pair encoding: symbols of a word, merged in the order of the merges' ranks.
 *
 * At every moment the pair with the lowest rank is merged, of equal ones the leftmost. Candidates lie in a heap; one
 * whose symbols have changed meanwhile is dropped when it comes up, so a word of n symbols takes n log n steps. */
#include "base/memory.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

#include <string.h>

static const char sign[] = "\xe2\x96\x81"; /* U+2581, which stands for a space */

/* ----------------------------------------------------------------- merges */

static size_t home_of(uint32_t left, uint32_t right, size_t size)
{
    const uint64_t key = (uint64_t)left << 32 | right;
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (size - 1);
}

/* The merge of two symbols, or the free slot where it would be. */
static sf_merge *slot_of(const sf_bpe *bpe, uint32_t left, uint32_t right)
{
    for (size_t at = home_of(left, right, bpe->size);; at = (at + 1) & (bpe->size - 1)) {
        sf_merge *m = &bpe->merges[at];
        if (m->rank == SF_NONE || (m->left == left && m->right == right)) return m;
    }
}

static int push_candidate(sf_model_scratch *s, const sf_bpe *bpe, uint32_t place)
{
    const uint32_t next = s->symbols[place].next;
    if (next == SF_NONE) return 0;
    const uint32_t left = s->symbols[place].id, right = s->symbols[next].id;
    const sf_merge *m = slot_of(bpe, left, right);
    if (m->rank == SF_NONE) return 0;
    if (sf_grow(&s->heap, &s->heap_capacity, s->heap_count + 1, sizeof *s->heap)) return -1;
    const sf_candidate c = {(uint64_t)m->rank << 32 | place, left, right};
    size_t at = s->heap_count++;
    for (; at > 0 && s->heap[(at - 1) / 2].order > c.order; at = (at - 1) / 2) s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = c;
    return 0;
}

static sf_candidate pop_candidate(sf_model_scratch *s)
{
    const sf_candidate top = s->heap[0], last = s->heap[--s->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < s->heap_count; at = child) {
        if (child + 1 < s->heap_count && s->heap[child + 1].order < s->heap[child].order) child++;
        if (s->heap[child].order >= last.order) break;
        s->heap[at] = s->heap[child];
    }
    s->heap[at] = last;
    return top;
}

static int merge_all(sf_model_scratch *s, const sf_bpe *bpe)
{
    s->heap_count = 0;
    for (uint32_t i = 0; i + 1 < s->symbol_count; i++)
        if (push_candidate(s, bpe, i)) return -1;
    while (s->heap_count) {
        const sf_candidate c = pop_candidate(s);
        const uint32_t place = (uint32_t)c.order;
        sf_symbol *left = &s->symbols[place];
        if (left->length == 0 || left->next == SF_NONE) continue;
        sf_symbol *right = &s->symbols[left->next];
        if (left->id != c.left || right->id != c.right) continue;
        left->id = slot_of(bpe, c.left, c.right)->id;
        left->length += right->length;
        right->length = 0;
        left->next = right->next;
        if (left->next != SF_NONE) s->symbols[left->next].previous = place;
        if (left->previous != SF_NONE && push_candidate(s, bpe, left->previous)) return -1;
        if (push_candidate(s, bpe, place)) return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- symbols */

static int push_symbol(sf_model_scratch *s, uint32_t id)
{
    if (sf_grow(&s->symbols, &s->symbol_capacity, s->symbol_count + 1, sizeof *s->symbols)) return -1;
    const uint32_t at = (uint32_t)s->symbol_count++;
    s->symbols[at] = (sf_symbol){id, 1, at ? at - 1 : SF_NONE, SF_NONE};
    if (at) s->symbols[at - 1].next = at;
    return 0;
}

/* The pieces <0x..> of a symbol, if all are there: 1, 0, or -1 without memory. */
static int push_fallback(sf_model_scratch *s, const sf_bpe *bpe, const char *bytes, size_t length)
{
    if (!bpe->byte_fallback) return 0;
    for (size_t i = 0; i < length; i++)
        if (bpe->fallback[(unsigned char)bytes[i]] == SF_NONE) return 0;
    for (size_t i = 0; i < length; i++)
        if (push_symbol(s, bpe->fallback[(unsigned char)bytes[i]])) return -1;
    return 1;
}

/* A symbol as it is spelled. *unknown: an unknown one is waiting for its piece. */
static int add_symbol(sf_model_scratch *s, const sf_bpe *bpe, uint32_t id, const char *bytes, size_t length,
                      int *unknown)
{
    if (id != SF_NONE) {
        if (*unknown && push_symbol(s, bpe->unk)) return -1;
        *unknown = 0;
        return push_symbol(s, id);
    }
    const int found = push_fallback(s, bpe, bytes, length);
    if (found) return found < 0 ? -1 : 0;
    if (bpe->unk == SF_NONE) return 0; /* it is left out */
    if (*unknown && !bpe->fuse_unk && push_symbol(s, bpe->unk)) return -1;
    *unknown = 1;
    return 0;
}

/* The character at p as the vocabulary has it, with the prefix and suffix that belong to it. */
static int add_character(sf_model_scratch *s, const sf_bpe *bpe, const sf_vocabulary *v, const char *p, size_t step,
                         int first, int last, int *unknown)
{
    const char *prefix = first ? NULL : bpe->prefix, *suffix = last ? bpe->suffix : NULL;
    if (!prefix && !suffix) return add_symbol(s, bpe, sf_vocabulary_find(v, p, step), p, step, unknown);
    sf_buffer *b = &s->spelled;
    sf_buffer_clear(b);
    if ((prefix && sf_buffer_add_string(b, prefix)) || sf_buffer_add(b, p, step) ||
        (suffix && sf_buffer_add_string(b, suffix)))
        return -1;
    return add_symbol(s, bpe, sf_vocabulary_find(v, b->bytes, b->length), b->bytes, b->length, unknown);
}

static int add_all(sf_model_scratch *s, const sf_bpe *bpe, const sf_vocabulary *v, const char *word, size_t length)
{
    const char *end = word + length;
    int unknown = 0;
    const int plain = bpe->byte_level && !bpe->prefix && !bpe->suffix;
    s->symbol_count = 0;
    for (const char *p = word; p < end;) {
        char spelled[2];
        uint32_t code;
        if (bpe->byte_level) {
            const unsigned char byte = (unsigned char)*p++;
            const size_t step = plain && bpe->bytes[byte] != SF_NONE ? 0 : sf_byte_spelled(byte, spelled);
            if (plain ? add_symbol(s, bpe, bpe->bytes[byte], spelled, step, &unknown)
                      : add_character(s, bpe, v, spelled, step, p == word + 1, p == end, &unknown))
                return -1;
            continue;
        }
        const size_t step = sf_utf8_decode(p, end, &code), used = step ? step : 1;
        if (add_character(s, bpe, v, p, used, p == word, p + used == end, &unknown)) return -1;
        p += used;
    }
    return unknown ? push_symbol(s, bpe->unk) : 0;
}

/* The piece that a whole word is, where merges are to be ignored then. */
static uint32_t find_whole(const sf_bpe *bpe, const sf_vocabulary *v, const char *word, size_t length, sf_buffer *b)
{
    if (!bpe->byte_level) return sf_vocabulary_find(v, word, length);
    sf_buffer_clear(b);
    for (size_t i = 0; i < length; i++) {
        char spelled[2];
        if (sf_buffer_add(b, spelled, sf_byte_spelled((unsigned char)word[i], spelled))) return SF_NONE - 1;
    }
    return sf_vocabulary_find(v, b->bytes, b->length);
}

int sf_bpe_encode(sf_ids *out, const sf_bpe *bpe, const sf_vocabulary *vocabulary, const char *word, size_t length,
                  sf_model_scratch *scratch)
{
    if (bpe->ignore_merges) {
        const uint32_t id = find_whole(bpe, vocabulary, word, length, &scratch->spelled);
        if (id == SF_NONE - 1) return -1;
        if (id != SF_NONE) return sf_ids_push(out, id);
    }
    if (length >= SF_NONE || add_all(scratch, bpe, vocabulary, word, length) || merge_all(scratch, bpe)) return -1;
    for (uint32_t i = 0; i < scratch->symbol_count; i = scratch->symbols[i].next)
        if (sf_ids_push(out, scratch->symbols[i].id)) return -1;
    return 0;
}

size_t sf_sign_apart(const unsigned char crosses[256], const char *word, size_t length)
{
    for (const char *p = word, *end = word + length; ++p < end;) {
        p = memchr(p, sign[0], (size_t)(end - p));
        if (!p || end - p < 3) break;
        if (memcmp(p, sign, 3) == 0 && !crosses[(unsigned char)p[-1]]) return (size_t)(p - word);
    }
    return length;
}

void sf_sign_note(unsigned char crosses[256], const char *piece, size_t length)
{
    for (size_t i = 1; i + 3 <= length; i++)
        if (memcmp(piece + i, sign, 3) == 0) crosses[(unsigned char)piece[i - 1]] = 1;
}

size_t sf_bpe_apart(const sf_bpe *bpe, const char *word, size_t length)
{
    return bpe->signs && !bpe->byte_level ? sf_sign_apart(bpe->crosses, word, length) : length;
}

/* -------------------------------------------------------- from descriptions */

void sf_bpe_free(sf_bpe *bpe)
{
    free(bpe->merges);
    free(bpe->prefix);
    free(bpe->suffix);
}

/* The two sides of a merge: ["a", "b"], or "a b". */
static safer_status split_merge(sf_span sides[2], const json_t *merge, size_t number, const char *name,
                                safer_error *error)
{
    if (json_is_array(merge) && json_array_size(merge) == 2) {
        for (size_t i = 0; i < 2; i++) {
            const json_t *side = json_array_get(merge, i);
            sides[i] = (sf_span){json_string_value(side), json_string_length(side)};
        }
        if (sides[0].bytes && sides[1].bytes) return SAFER_OK;
    }
    if (json_is_string(merge)) {
        const char *text = json_string_value(merge);
        const size_t length = json_string_length(merge);
        const char *space = memchr(text, ' ', length);
        const char *behind = space ? space + 1 : NULL;
        if (space && !memchr(behind, ' ', length - (size_t)(behind - text))) {
            sides[0] = (sf_span){text, (size_t)(space - text)};
            sides[1] = (sf_span){behind, length - (size_t)(behind - text)};
            return SAFER_OK;
        }
    }
    return sf_fail(error, SAFER_INPUT, "%s: merge %zu is not two pieces", name, number + 1);
}

static safer_status need_piece(uint32_t *id, const sf_vocabulary *v, sf_span piece, size_t number, const char *name,
                               safer_error *error)
{
    *id = sf_vocabulary_find(v, piece.bytes, piece.length);
    if (*id != SF_NONE) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s: merge %zu needs the piece \"%.*s\", which is not in the vocabulary", name,
                   number + 1, sf_clip(piece.bytes, piece.length, 80), piece.bytes);
}

static safer_status read_merge(sf_bpe *bpe, const sf_vocabulary *v, const json_t *merge, size_t number, sf_buffer *both,
                               const char *name, safer_error *error)
{
    sf_span sides[2] = {{NULL, 0}, {NULL, 0}};
    uint32_t left, right, id;
    const size_t skip = bpe->prefix ? strlen(bpe->prefix) : 0;
    safer_status status = SAFER_OK;
    SF_TRY(split_merge(sides, merge, number, name, error));
    SF_TRY(need_piece(&left, v, sides[0], number, name, error));
    SF_TRY(need_piece(&right, v, sides[1], number, name, error));
    if (sides[1].length < skip || (skip && memcmp(sides[1].bytes, bpe->prefix, skip) != 0)) {
        status = sf_fail(error, SAFER_INPUT, "%s: the second piece of merge %zu lacks the prefix", name, number + 1);
        goto done;
    }
    sf_buffer_clear(both);
    if (sf_buffer_add(both, sides[0].bytes, sides[0].length) ||
        sf_buffer_add(both, sides[1].bytes + skip, sides[1].length - skip)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(need_piece(&id, v, (sf_span){both->length ? both->bytes : "", both->length}, number, name, error));
    *slot_of(bpe, left, right) = (sf_merge){left, right, (uint32_t)number, id};
    if (both->length) sf_sign_note(bpe->crosses, both->bytes, both->length);
done:
    return status;
}

static safer_status read_merges(sf_bpe *bpe, const sf_vocabulary *v, const json_t *model, const char *name,
                                safer_error *error)
{
    const json_t *list = json_object_get(model, "merges"), *merge;
    const size_t count = json_array_size(list);
    sf_buffer both = {0};
    size_t i;
    safer_status status = SAFER_OK;
    if (!json_is_array(list) || count >= SF_NONE / 4)
        return sf_fail(error, SAFER_INPUT, "%s: the BPE model has no list of merges", name);
    for (bpe->size = 2; bpe->size < 2 * count + 2;) bpe->size *= 2;
    if (!(bpe->merges = sf_alloc(bpe->size, sizeof *bpe->merges))) return sf_fail_memory(error);
    for (i = 0; i < bpe->size; i++) bpe->merges[i].rank = SF_NONE;
    json_array_foreach(list, i, merge) SF_TRY(read_merge(bpe, v, merge, i, &both, name, error));
done:
    sf_buffer_free(&both);
    return status;
}

/* An optional string; NULL when it is missing, null or empty. */
static safer_status read_affix(char **out, const json_t *model, const char *key, const char *name, safer_error *error)
{
    const json_t *value = json_object_get(model, key);
    const char *text;
    size_t length;
    if (!value || json_is_null(value)) return SAFER_OK;
    safer_status status = sf_json_string(&text, &length, model, key, name, error);
    if (status != SAFER_OK || length == 0) return status;
    if (memchr(text, 0, length)) return sf_fail(error, SAFER_INPUT, "%s: %s holds a NUL", name, key);
    return (*out = sf_strndup(text, length)) ? SAFER_OK : sf_fail_memory(error);
}

static safer_status read_unk(uint32_t *unk, const sf_vocabulary *v, const json_t *model, const char *name,
                             safer_error *error)
{
    const json_t *value = json_object_get(model, "unk_token");
    const char *text;
    size_t length;
    *unk = SF_NONE;
    if (!value || json_is_null(value)) return SAFER_OK;
    safer_status status = sf_json_string(&text, &length, model, "unk_token", name, error);
    if (status != SAFER_OK) return status;
    *unk = sf_vocabulary_find(v, text, length);
    if (*unk != SF_NONE) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s: unk_token \"%.*s\" is not in the vocabulary", name,
                   sf_clip(text, length, 80), text);
}

safer_status sf_bpe_read(sf_bpe *out, sf_vocabulary *vocabulary, const json_t *model, const char *name,
                         safer_error *error)
{
    const json_t *dropout = json_object_get(model, "dropout");
    safer_status status = SAFER_OK;
    if (dropout && !json_is_null(dropout) && !(json_is_number(dropout) && json_number_value(dropout) == 0))
        return sf_fail(error, SAFER_INPUT, "%s: a BPE model with dropout has different pieces every time", name);
    SF_TRY(sf_json_flag(&out->fuse_unk, model, "fuse_unk", 0, name, error));
    SF_TRY(sf_json_flag(&out->byte_fallback, model, "byte_fallback", 0, name, error));
    SF_TRY(sf_json_flag(&out->ignore_merges, model, "ignore_merges", 0, name, error));
    SF_TRY(read_affix(&out->prefix, model, "continuing_subword_prefix", name, error));
    SF_TRY(read_affix(&out->suffix, model, "end_of_word_suffix", name, error));
    SF_TRY(read_unk(&out->unk, vocabulary, model, name, error));
    SF_TRY(read_merges(out, vocabulary, model, name, error));
    out->signs = !out->ignore_merges && !out->prefix && !out->suffix &&
                 sf_vocabulary_find(vocabulary, sign, 3) != SF_NONE;
    for (unsigned i = 0; i < 256; i++) {
        char spelled[2], code[8];
        const size_t length = sf_byte_spelled((unsigned char)i, spelled);
        out->bytes[i] = sf_vocabulary_find(vocabulary, spelled, length);
        snprintf(code, sizeof code, "<0x%02X>", i);
        out->fallback[i] = sf_vocabulary_find(vocabulary, code, strlen(code));
    }
done:
    return status;
}
