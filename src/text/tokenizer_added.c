/* Added tokens: found before anything else happens, or in the normalized text. */
#include "base/memory.h"
#include "text/classes.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"
#include "text/wordpiece_parts.h"

#include <string.h>

/* The character before `at` in valid UTF-8, and where it begins. */
static uint32_t character_before(const char *text, size_t at, size_t *begin)
{
    uint32_t code = 0;
    size_t p = at - 1;
    while (p > 0 && ((unsigned char)text[p] & 0xc0) == 0x80) p--;
    sf_utf8_decode(text + p, text + at, &code);
    *begin = p;
    return code;
}

static int is_word(uint32_t code) { return (sf_class(code) & SF_CLASS_RUST_WORD) != 0; }

/* Whether a match counts where it stands; grows it over the white space that belongs to it. */
static int accept(sf_added_match *m, const sf_added_token *token, const char *text, size_t length, size_t from)
{
    uint32_t code;
    size_t begin;
    if (token->single) {
        if (m->begin && is_word(character_before(text, m->begin, &begin))) return 0;
        if (m->end < length && sf_utf8_decode(text + m->end, text + length, &code) && is_word(code)) return 0;
    }
    if (token->left)
        while (m->begin > from && sf_bert_is_space(character_before(text, m->begin, &begin))) m->begin = begin;
    if (token->right)
        for (size_t step; m->end < length && (step = sf_utf8_decode(text + m->end, text + length, &code)) != 0 &&
                          sf_bert_is_space(code);)
            m->end += step;
    m->id = token->id;
    return 1;
}

int sf_added_find(sf_added_match *out, const sf_added_set *set, const sf_added_token *tokens, const char *text,
                  size_t length, size_t from, size_t *at)
{
    while (set->any && *at < length) {
        size_t longest;
        if (set->trie.root[(unsigned char)text[*at]] == SF_NONE) {
            ++*at;
            continue;
        }
        const uint32_t token = sf_trie_longest(&set->trie, text + *at, length - *at, &longest);
        if (token == SF_NONE) {
            ++*at;
            continue;
        }
        *out = (sf_added_match){.begin = *at, .end = *at + longest};
        *at += longest;
        if (!accept(out, &tokens[token], text, length, from)) continue;
        if (*at < out->end) *at = out->end;
        return 1;
    }
    return 0;
}

/* -------------------------------------------------------- from descriptions */

typedef struct draft {
    const char *content; /* borrowed */
    size_t length;
    char *normal; /* owned; what it is in the normalized text, or NULL */
    size_t normal_length;
    int normalized;
    sf_added_token token;
} draft;

/* What a token is in the normalized text. */
static safer_status normalize_token(draft *d, const sf_tokenizer *t, const char *name, safer_error *error)
{
    sf_buffer buffers[2] = {{0}, {0}};
    sf_ids points = {0};
    sf_passage p = {d->content, d->length, 0};
    safer_status status = SAFER_OK;
    int failed = 0;
    for (size_t i = 0; !failed && i < t->normal_count; i++)
        failed = sf_normal_apply(&t->normals[i], &p, sf_tokenizer_other(buffers, p.bytes), &points);
    if (failed || !(d->normal = sf_strndup(p.bytes, p.length)))
        status = sf_fail_memory(error);
    else if (p.length == 0)
        status = sf_fail(error, SAFER_INPUT, "%s: nothing is left of the added token \"%.*s\" when it is normalized",
                         name, sf_clip(d->content, d->length, 80), d->content);
    d->normal_length = p.length;
    sf_buffer_free(&buffers[0]);
    sf_buffer_free(&buffers[1]);
    sf_ids_free(&points);
    return status;
}

/* The number that `tokenizers` gives the token: its place in the vocabulary, or the next that is free. */
static safer_status number_token(draft *d, sf_tokenizer *t, const json_t *id, uint32_t *next, const char *name,
                                 safer_error *error)
{
    uint32_t number = sf_vocabulary_find(&t->added_names, d->content, d->length);
    if (number == SF_NONE) number = sf_vocabulary_find(&t->vocabulary, d->content, d->length);
    if (number == SF_NONE) number = (*next)++;
    if (!json_is_integer(id) || json_integer_value(id) != number)
        return sf_fail(
            error, SAFER_INPUT,
            "%s: the added token \"%.*s\" does not have the number %lu, which is its place behind the vocabulary", name,
            sf_clip(d->content, d->length, 80), d->content, (unsigned long)number);
    d->token.id = number;
    if (number >= t->size) t->size = (size_t)number + 1;
    return sf_vocabulary_add(&t->added_names, d->content, d->length, number, error);
}

static safer_status read_token(draft *d, sf_tokenizer *t, const json_t *entry, uint32_t *next, const char *name,
                               safer_error *error)
{
    safer_status status = SAFER_OK;
    SF_TRY(sf_json_string(&d->content, &d->length, entry, "content", name, error));
    if (d->length == 0) goto done; /* it is ignored */
    SF_TRY(sf_json_flag(&d->token.single, entry, "single_word", 0, name, error));
    SF_TRY(sf_json_flag(&d->token.left, entry, "lstrip", 0, name, error));
    SF_TRY(sf_json_flag(&d->token.right, entry, "rstrip", 0, name, error));
    SF_TRY(sf_json_flag(&d->normalized, entry, "normalized", 1, name, error));
    SF_TRY(number_token(d, t, json_object_get(entry, "id"), next, name, error));
    if (d->normalized) SF_TRY(normalize_token(d, t, name, error));
done:
    return status;
}

/* The trie of those that are found in the normalized text, or of the others. */
static int build_set(sf_added_set *out, const draft *drafts, size_t count, int normalized)
{
    sf_span *strings = sf_alloc(count, sizeof *strings);
    uint32_t *places = sf_alloc(count, sizeof *places);
    size_t n = 0;
    int failed = !strings || !places;
    for (uint32_t i = 0; !failed && i < count; i++) {
        const draft *d = &drafts[i];
        if (d->length == 0 || d->normalized != normalized) continue;
        strings[n] = normalized ? (sf_span){d->normal, d->normal_length} : (sf_span){d->content, d->length};
        places[n++] = i;
    }
    failed = failed || sf_trie_build(&out->trie, strings, places, n);
    out->any = n > 0;
    free(strings);
    free(places);
    return failed ? -1 : 0;
}

safer_status sf_tokenizer_read_added(sf_tokenizer *t, const json_t *list, const char *name, safer_error *error)
{
    const size_t count = json_array_size(list);
    draft *drafts = sf_calloc(count, sizeof *drafts);
    uint32_t next = t->kind == SF_MODEL_UNIGRAM ? (uint32_t)t->unigram.count : t->vocabulary.pieces.count;
    safer_status status = SAFER_OK;
    t->added = sf_calloc(count, sizeof *t->added);
    if (!drafts || !t->added) {
        status = sf_fail_memory(error);
        goto done;
    }
    if (list && !json_is_null(list) && !json_is_array(list)) {
        status = sf_fail(error, SAFER_INPUT, "%s: added_tokens is not a list", name);
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        SF_TRY(read_token(&drafts[i], t, json_array_get(list, i), &next, name, error));
        t->added[i] = drafts[i].token;
        /* One that comes again replaces the first. */
        for (size_t k = 0; k < i && drafts[i].length; k++)
            if (drafts[k].length && drafts[k].token.id == drafts[i].token.id) drafts[k].length = 0;
    }
    if (build_set(&t->raw, drafts, count, 0) || build_set(&t->normal, drafts, count, 1)) status = sf_fail_memory(error);
done:
    for (size_t i = 0; drafts && i < count; i++) free(drafts[i].normal);
    free(drafts);
    return status;
}
