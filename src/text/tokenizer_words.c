/* Vocabularies, and the models that look words up in them: WordPiece and WordLevel. */
#include "base/memory.h"
#include "text/tokenizer_parts.h"

#include <string.h>

enum { MOST_IDS = 16000000 };

uint32_t sf_vocabulary_find(const sf_vocabulary *vocabulary, const char *bytes, size_t length)
{
    const uint32_t at = vocabulary->pieces.count ? sf_words_find(&vocabulary->pieces, bytes, length) : SF_NONE;
    return at == SF_NONE ? SF_NONE : vocabulary->ids[at];
}

safer_status sf_vocabulary_add(sf_vocabulary *vocabulary, const char *bytes, size_t length, uint32_t id,
                               safer_error *error)
{
    uint32_t at;
    if (id >= MOST_IDS)
        return sf_fail(error, SAFER_INPUT, "piece \"%.*s\" has the number %lu; 0 to %d can be read",
                       sf_clip(bytes, length, 80), bytes, (unsigned long)id, MOST_IDS - 1);
    safer_status status = sf_words_add(&vocabulary->pieces, bytes, length, &at, error);
    if (status != SAFER_OK) return status;
    if (sf_grow(&vocabulary->ids, &vocabulary->capacity, vocabulary->pieces.count, sizeof *vocabulary->ids))
        return sf_fail_memory(error);
    vocabulary->ids[at] = id;
    if (id >= vocabulary->size) vocabulary->size = (size_t)id + 1;
    return SAFER_OK;
}

void sf_vocabulary_free(sf_vocabulary *vocabulary)
{
    sf_words_free(&vocabulary->pieces);
    free(vocabulary->ids);
}

/* ------------------------------------------------------------- WordPiece */

static size_t count_characters(const char *bytes, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++) count += ((unsigned char)bytes[i] & 0xc0) != 0x80;
    return count;
}

int sf_wordpieces_encode(sf_ids *out, const sf_wordpieces *model, const char *word, size_t length)
{
    const size_t before = out->count;
    if (length > model->longest && count_characters(word, length) > model->longest) return sf_ids_push(out, model->unk);
    for (size_t at = 0, longest = 0; at < length; at += longest) {
        const uint32_t id = sf_trie_longest(at ? &model->rest : &model->start, word + at, length - at, &longest);
        if (id == SF_NONE) {
            out->count = before;
            return sf_ids_push(out, model->unk);
        }
        if (sf_ids_push(out, id)) return -1;
    }
    return 0;
}

void sf_wordpieces_free(sf_wordpieces *model)
{
    sf_trie_free(&model->start);
    sf_trie_free(&model->rest);
}

/* -------------------------------------------------------- from descriptions */

/* Two pieces with one number. */
static safer_status fail_twice(const sf_vocabulary *v, uint32_t id, const char *key, const char *name,
                               safer_error *error)
{
    const char *other = "?";
    for (uint32_t i = 0; i < v->pieces.count; i++)
        if (v->ids[i] == id) {
            other = sf_words_string(&v->pieces, i);
            break;
        }
    return sf_fail(error, SAFER_INPUT, "%s: pieces \"%.*s\" and \"%.*s\" have the same number %lu", name,
                   sf_clip(other, strlen(other), 80), other, sf_clip(key, strlen(key), 80), key, (unsigned long)id);
}

safer_status sf_vocabulary_read(sf_vocabulary *out, const json_t *model, const char *name, safer_error *error)
{
    json_t *object = json_object_get(model, "vocab"), *value;
    const char *key;
    unsigned char *used = NULL;
    size_t capacity = 0, size = 0;
    safer_status status = SAFER_OK;
    if (!json_is_object(object) || json_object_size(object) == 0)
        return sf_fail(error, SAFER_INPUT, "%s: the model has no vocabulary", name);
    json_object_foreach(object, key, value)
    {
        const json_int_t id = json_integer_value(value);
        if (!json_is_integer(value) || id < 0 || id >= MOST_IDS) {
            status = sf_fail(error, SAFER_INPUT, "%s: piece \"%.*s\" has no number from 0 to %d", name,
                             sf_clip(key, strlen(key), 80), key, MOST_IDS - 1);
            goto done;
        }
        if ((size_t)id >= size) {
            if (sf_grow(&used, &capacity, (size_t)id + 1, 1)) {
                status = sf_fail_memory(error);
                goto done;
            }
            memset(used + size, 0, (size_t)id + 1 - size);
            size = (size_t)id + 1;
        }
        if (used[id]) {
            status = fail_twice(out, (uint32_t)id, key, name, error);
            goto done;
        }
        used[id] = 1;
        SF_TRY(sf_vocabulary_add(out, key, strlen(key), (uint32_t)id, error));
    }
done:
    free(used);
    return status;
}

static safer_status need_unk(uint32_t *unk, const sf_vocabulary *v, const json_t *model, const char *name,
                             safer_error *error)
{
    const char *text;
    size_t length;
    safer_status status = sf_json_string(&text, &length, model, "unk_token", name, error);
    if (status != SAFER_OK) return status;
    *unk = sf_vocabulary_find(v, text, length);
    if (*unk != SF_NONE) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s: unk_token \"%.*s\" is not in the vocabulary", name,
                   sf_clip(text, length, 80), text);
}

static safer_status build_tries(sf_wordpieces *out, const sf_vocabulary *v, const char *prefix, size_t skip,
                                safer_error *error)
{
    const size_t count = v->pieces.count;
    sf_span *start = sf_alloc(count, sizeof *start), *rest = sf_alloc(count, sizeof *rest);
    uint32_t *start_ids = sf_alloc(count, sizeof *start_ids), *rest_ids = sf_alloc(count, sizeof *rest_ids);
    size_t starts = 0, rests = 0;
    int failed = !start || !rest || !start_ids || !rest_ids;
    for (uint32_t i = 0; !failed && i < count; i++) {
        const char *piece = sf_words_string(&v->pieces, i);
        const size_t length = sf_words_length(&v->pieces, i);
        if (length == 0) continue;
        start[starts] = (sf_span){piece, length};
        start_ids[starts++] = v->ids[i];
        if (length <= skip || memcmp(piece, prefix, skip) != 0) continue;
        rest[rests] = (sf_span){piece + skip, length - skip};
        rest_ids[rests++] = v->ids[i];
    }
    failed = failed || sf_trie_build(&out->start, start, start_ids, starts) ||
             sf_trie_build(&out->rest, rest, rest_ids, rests);
    free(start);
    free(rest);
    free(start_ids);
    free(rest_ids);
    return failed ? sf_fail_memory(error) : SAFER_OK;
}

safer_status sf_wordpieces_read(sf_wordpieces *out, sf_vocabulary *vocabulary, const json_t *model, const char *name,
                                safer_error *error)
{
    const json_t *longest = json_object_get(model, "max_input_chars_per_word");
    const char *prefix = "##";
    size_t length = 2;
    safer_status status = SAFER_OK;
    if (json_object_get(model, "continuing_subword_prefix"))
        SF_TRY(sf_json_string(&prefix, &length, model, "continuing_subword_prefix", name, error));
    if (longest && (!json_is_integer(longest) || json_integer_value(longest) < 0)) {
        status = sf_fail(error, SAFER_INPUT, "%s: max_input_chars_per_word is not a number", name);
        goto done;
    }
    out->longest = longest ? (size_t)json_integer_value(longest) : 100;
    SF_TRY(need_unk(&out->unk, vocabulary, model, name, error));
    SF_TRY(build_tries(out, vocabulary, prefix, length, error));
done:
    return status;
}

safer_status sf_wordlevel_read(uint32_t *unk, sf_vocabulary *vocabulary, const json_t *model, const char *name,
                               safer_error *error)
{
    return need_unk(unk, vocabulary, model, name, error);
}
