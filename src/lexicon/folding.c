/* Words of a lexicon, folded before anything is counted or compared: the lexicon must find them in folded texts. */
#include "lexicon/folding.h"

#include "base/json.h"
#include "base/memory.h"
#include "text/word.h"

#include <string.h>

safer_status sf_folding_begin(sf_folding *f, const char *spec, safer_error *error)
{
    uint32_t steps = 0;
    if (spec && sf_fold_spec_parse(&steps, spec, error) != SAFER_OK) return SAFER_INVALID;
    if (!steps) return SAFER_OK;
    f->spellings = json_object();
    if (!f->spellings) return sf_fail_memory(error);
    safer_status status = sf_fold_build(&f->table, steps, error);
    if (status == SAFER_OK) (void)sf_fold_open(&f->fold, f->table.bytes, f->table.length); /* as it was built */
    return status;
}

void sf_folding_free(sf_folding *f)
{
    sf_buffer_free(&f->table);
    json_decref(f->spellings);
    *f = (sf_folding){0};
}

/* Notes that `word` has become another. */
static int note_spelling(sf_folding *f, const char *folded, const char *word)
{
    json_t *list = json_object_get(f->spellings, folded);
    if (!list) {
        list = json_array();
        if (!list || json_object_set_new(f->spellings, folded, list)) return -1;
    }
    return json_array_append_new(list, json_string(word));
}

/* The word's folded key in `key`. 1: it is one word. 0: it is not. -1: no memory. */
static int fold_word(sf_buffer *key, sf_folder *folder, const sf_fold *fold, const char *word, size_t length)
{
    sf_buffer_clear(key);
    if (sf_folder_apply(folder, fold, word, length)) return -1;
    if (!folder->text.length) return 0;
    const int code = sf_word_fold(key, folder->text.bytes, folder->text.length);
    if (code) return code == -1 ? -1 : 0;
    const int one = sf_word_is_one(key->bytes, key->length);
    if (one <= 0) return one;
    /* Lower case by other rules than the fold's: what is read from folded texts must be the key. */
    return sf_folder_keeps(folder, fold, key->bytes, key->length);
}

/* Replaces the words by their folded keys: map[old] is the new number or SF_NONE, own[old] whether the spelling is the
 * key itself. Numbers never rise. What is no word at all, which vectors may have, stays as it is. */
static safer_status fold_words(sf_folding *f, sf_words *words, uint32_t *map, unsigned char *own, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_words folded = {0};
    sf_folder folder = {0};
    sf_buffer key = {0};
    for (uint32_t x = 0; x < words->count; x++) {
        const char *word = sf_words_string(words, x);
        const size_t length = sf_words_length(words, x);
        const int was = sf_word_is_one(word, length),
                  one = was > 0 ? fold_word(&key, &folder, &f->fold, word, length) : 0;
        if (was < 0 || one < 0) goto no_memory;
        map[x] = SF_NONE;
        f->lost += was && !one;
        if (was && !one) SF_TRY(sf_dropped_add(f->dropped, word, length, "fold", error));
        if (!one) continue;
        own[x] = key.length == length && memcmp(key.bytes, word, length) == 0;
        SF_TRY(sf_words_add(&folded, key.bytes, key.length, &map[x], error));
        if (!own[x] && note_spelling(f, key.bytes, word)) goto no_memory;
    }
    sf_words_free(words);
    *words = folded;
    folded = (sf_words){0};
    goto done;
no_memory:
    status = sf_fail_memory(error);
done:
    sf_words_free(&folded);
    sf_folder_free(&folder);
    sf_buffer_free(&key);
    return status;
}

safer_status sf_folding_vectors(sf_folding *f, sf_vectors *v, safer_error *error)
{
    safer_status status;
    const uint32_t before = v->words.count;
    if (!f->table.length) return SAFER_OK;
    uint32_t *map = sf_alloc(before, sizeof *map);
    unsigned char *own = sf_calloc(before, 1), *has = sf_calloc(before, 1);
    if (!map || !own || !has) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(fold_words(f, &v->words, map, own, error));
    for (uint32_t x = 0; x < before; x++) {
        if (map[x] == SF_NONE || (has[map[x]] && !own[x])) continue;
        has[map[x]] = 1;
        memmove(v->values + map[x] * v->dim, v->values + x * v->dim, v->dim * sizeof *v->values);
    }
done:
    free(map);
    free(own);
    free(has);
    return status;
}

safer_status sf_folding_table(sf_folding *f, sf_table *table, safer_error *error)
{
    safer_status status;
    size_t kept = 0;
    if (!f->table.length) return SAFER_OK;
    uint32_t *map = sf_alloc(table->words.count, sizeof *map);
    unsigned char *own = sf_calloc(table->words.count, 1);
    if (!map || !own) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(fold_words(f, &table->words, map, own, error));
    for (size_t i = 0; i < table->count; i++) {
        const uint32_t a = map[table->pairs[i].a], b = map[table->pairs[i].b];
        if (a != SF_NONE && b != SF_NONE && a != b) table->pairs[kept++] = (sf_pair){a, b, 0};
    }
    table->count = kept;
done:
    free(map);
    free(own);
    return status;
}

/* "15.0.0" */
static json_t *version_json(uint32_t version)
{
    return json_sprintf("%u.%u.%u", (unsigned)(version >> 16), (unsigned)(version >> 8 & 0xff),
                        (unsigned)(version & 0xff));
}

json_t *sf_folding_json(const sf_folding *f, const sf_words *words, size_t *merged)
{
    char steps[SF_FOLD_SPEC];
    json_t *spellings = json_object(), *out = json_object(), *list;
    const char *word;
    *merged = 0;
    json_object_foreach(f->spellings, word, list)
    {
        if (sf_words_find(words, word, strlen(word)) == SF_NONE) continue;
        *merged += json_array_size(list);
        sf_json_put(&spellings, word, json_deep_copy(list));
    }
    sf_fold_spec_write(steps, f->fold.head.steps);
    sf_json_put(&out, "steps", json_string(steps));
    sf_json_put(&out, "unicode", version_json(f->fold.head.unicode));
    if (f->fold.head.lookalikes) sf_json_put(&out, "lookalikes", version_json(f->fold.head.lookalikes));
    sf_json_put(&out, "lost", json_integer((json_int_t)f->lost));
    sf_json_put(&out, "spellings", spellings);
    return out;
}
