/* The words of a text and what the lexicon makes of them. */
#include "serve/answer.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "draw/groups.h"
#include "report/writer.h"
#include "stats/edits.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED = 100, LISTED_IN_ALL = 20000 }; /* of synonyms, and of draws; in all lists together */
enum { FOLDED = 2000 };                       /* places that a fold changed */

/* A word of a list, with what the list is ordered by. */
typedef struct entry {
    uint32_t word;
    double weight;
    double similarity; /* below -1: not known */
} entry;

static int compare_entries(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
    return a->word < b->word ? -1 : a->word > b->word;
}

static const char *name_of(const safer_lexicon *lexicon, uint32_t word)
{
    return safer_lexicon_word(lexicon, word).word;
}

/* How many of so many are listed, when `left` still may. */
static size_t take_listed(size_t count, size_t *left)
{
    size_t listed = count < LISTED ? count : LISTED;
    if (listed > *left) listed = *left;
    *left -= listed;
    return listed;
}

static json_t *synonyms_json(const safer_lexicon *lexicon, uint32_t id, const safer_word *word, size_t listed)
{
    json_t *list = json_array();
    entry *entries = sf_alloc(word->synonym_count, sizeof *entries);
    if (!entries) {
        json_decref(list);
        return NULL;
    }
    for (size_t i = 0; i < word->synonym_count; i++) {
        double similarity = word->similarity ? (double)word->similarity[i] : -2.0;
        entries[i] = (entry){word->synonyms[i], similarity, similarity};
    }
    qsort(entries, word->synonym_count, sizeof *entries, compare_entries);
    for (size_t i = 0; i < listed; i++)
        sf_json_push(&list, json_pack("{s:s, s:f, s:o}", "word", name_of(lexicon, entries[i].word), "overlap",
                                      safer_lexicon_overlap(lexicon, id, entries[i].word), "similarity",
                                      word->similarity ? json_real(entries[i].similarity) : json_null()));
    free(entries);
    return list;
}

static json_t *draws_json(const safer_lexicon *lexicon, const safer_word *word, size_t listed)
{
    json_t *list = json_array();
    entry *entries = sf_alloc(word->support_count, sizeof *entries);
    if (!entries) {
        json_decref(list);
        return NULL;
    }
    for (size_t i = 0; i < word->support_count; i++)
        entries[i] = (entry){.word = word->support[i], .weight = (double)word->weights[i]};
    qsort(entries, word->support_count, sizeof *entries, compare_entries);
    for (size_t i = 0; i < listed; i++)
        sf_json_push(&list, json_pack("{s:s, s:f}", "word", name_of(lexicon, entries[i].word), "share",
                                      entries[i].weight / (double)word->total));
    free(entries);
    return list;
}

static json_t *entry_json(const safer_lexicon *lexicon, uint32_t id, size_t *left)
{
    safer_word word = safer_lexicon_word(lexicon, id);
    const size_t synonyms = take_listed(word.synonym_count, left), draws = take_listed(word.support_count, left);
    return json_pack("{s:f, s:o, s:I, s:o, s:I, s:o}", "overlap", word.overlap, "worst",
                     word.worst == SAFER_NO_WORD ? json_null() : json_string(name_of(lexicon, word.worst)),
                     "synonym_count", (json_int_t)word.synonym_count, "synonyms",
                     synonyms_json(lexicon, id, &word, synonyms), "draw_count", (json_int_t)word.support_count, "draws",
                     draws_json(lexicon, &word, draws));
}

/* Where a word stands in the text that was given, whatever the lexicon's fold made of it. */
typedef struct place {
    size_t begin, end; /* in bytes, */
    size_t from, to;   /* and in units of UTF-16 */
} place;

static json_t *word_json(const sf_slots *slots, const sf_text_word *w, place at, const safer_lexicon *lexicon)
{
    static const char *const patterns[] = {[SF_LOWER] = "lower", [SF_TITLE] = "title", [SF_UPPER] = "upper"};
    int slot = w->slot != SF_NONE;
    return json_pack("{s:s#, s:[I, I], s:[I, I], s:s, s:o, s:f}", "key", slots->keys.bytes + w->key, (int)w->key_length,
                     "utf16", (json_int_t)at.from, (json_int_t)at.to, "bytes", (json_int_t)at.begin, (json_int_t)at.end,
                     "pattern", patterns[w->pattern], "slot", slot ? json_integer(w->slot) : json_null(), "overlap",
                     slot ? safer_lexicon_word(lexicon, w->word).overlap : 1.0);
}

/* What the fold made of the text: where it differs, in order, neighbouring places as one. */
typedef struct folding {
    const sf_slots *slots;
    json_t *places;
    size_t count;    /* of places, listed or not */
    size_t end;      /* in the given text, of the last place, */
    place last;      /* and all of it, */
    sf_span instead; /* with what stands there */
    size_t utf16;    /* of the given text, up to the last place's end */
} folding;

static void put_place(folding *f)
{
    const sf_slots *s = f->slots;
    if (!f->count || f->count > FOLDED) return;
    f->last.from = f->utf16 + sf_utf16_length(s->given.bytes + f->end, f->last.begin - f->end);
    f->last.to = f->last.from + sf_utf16_length(s->given.bytes + f->last.begin, f->last.end - f->last.begin);
    f->utf16 = f->last.to;
    f->end = f->last.end;
    sf_json_push(&f->places,
                 json_pack("{s:[I, I], s:[I, I], s:o}", "utf16", (json_int_t)f->last.from, (json_int_t)f->last.to,
                           "bytes", (json_int_t)f->last.begin, (json_int_t)f->last.end, "to",
                           json_stringn(f->instead.bytes, f->instead.length)));
}

/* Bytes begin to end of the given text became those from `from` to `to` of the folded one. */
static void compare_bytes(folding *f, size_t begin, size_t end, size_t from, size_t to)
{
    const sf_slots *s = f->slots;
    if (end - begin == to - from && memcmp(s->given.bytes + begin, s->text + from, to - from) == 0) return;
    if (f->count && f->last.end == begin) {
        f->last.end = end;
        f->instead.length += to - from;
        return;
    }
    put_place(f);
    f->count++;
    f->last = (place){.begin = begin, .end = end};
    f->instead = (sf_span){s->text + from, to - from};
}

static int begins_character(char byte) { return ((unsigned char)byte & 0xc0) != 0x80; }

/* Null where the lexicon has no fold. */
static json_t *fold_json(const sf_slots *s, const safer_lexicon *lexicon)
{
    const safer_fold *fold = safer_lexicon_fold(lexicon);
    folding f = {.slots = s, .places = json_array()};
    if (!fold) {
        json_decref(f.places);
        return json_null();
    }
    size_t begin = 0, from = 0; /* up to here both are compared */
    for (size_t i = 0; i <= s->length; i++) {
        if (i < s->length && !begins_character(s->text[i])) continue;
        const size_t origin = i < s->length ? sf_slots_origin(s, i) : s->given.length;
        if (origin <= begin && i < s->length) continue; /* of the same character, or one that was moved */
        compare_bytes(&f, begin, origin, from, i);
        begin = origin;
        from = i;
    }
    put_place(&f);
    return json_pack("{s:s, s:s, s:o, s:I, s:o}", "steps", safer_fold_steps(fold), "unicode", safer_fold_unicode(fold),
                     "text", json_stringn(s->text, s->length), "place_count", (json_int_t)f.count, "places", f.places);
}

/* q at the reported radii, rounded up, as a certificate has it for a model that reads everything. */
static json_t *q_json(const sf_slots *slots, const safer_lexicon *lexicon)
{
    json_t *list = json_array();
    double *overlaps = sf_alloc(slots->slot_count, sizeof *overlaps);
    if (!overlaps) {
        json_decref(list);
        return NULL;
    }
    size_t count = sf_slots_overlaps(overlaps, slots, lexicon);
    for (size_t s = 0; slots->deletion && s < count; s++)
        overlaps[s] = sf_deletion_overlap(slots->deletion, overlaps[s]);
    qsort(overlaps, count, sizeof *overlaps, sf_compare_doubles);
    for (size_t r = 0; r < SAFER_RADII; r++)
        sf_json_push(&list, json_real(sf_q_at(overlaps, count, sf_reported_radii[r])));
    free(overlaps);
    return list;
}

/* Where a piece of the folded text stands in the given one, of which `at` is the last that was looked at. */
static place place_of(const sf_slots *slots, const char *given, place at, size_t begin, size_t end)
{
    const size_t from = sf_slots_origin(slots, begin), to = sf_slots_origin(slots, end);
    place next = {.begin = from, .end = to};
    next.from = at.to + sf_utf16_length(given + at.end, from - at.end);
    next.to = next.from + sf_utf16_length(given + from, to - from);
    return next;
}

/* All tokens in their order, each with its group. */
static json_t *tokens_json(const sf_slots *slots, const char *given, const safer_lexicon *lexicon, uint64_t key)
{
    json_t *list = json_array();
    sf_buffer form = {0};
    place at = {0};
    for (size_t t = 0; t < slots->token_count; t++) {
        const sf_token *token = &slots->tokens[t];
        uint32_t group = 0;
        at = place_of(slots, given, at, token->begin, token->end);
        const int failed = sf_group_of_token(&group, slots, lexicon, token, key, &form);
        sf_json_push(&list, failed ? NULL
                                   : json_pack("{s:[I, I], s:I}", "utf16", (json_int_t)at.from, (json_int_t)at.to,
                                               "group", (json_int_t)group));
    }
    sf_buffer_free(&form);
    return list;
}

json_t *sf_words_json(const char *text, size_t length, const safer_lexicon *lexicon,
                      const safer_certify_options *options, safer_error *error)
{
    sf_slots slots = {0};
    json_t *words = json_array(), *entries = json_object(), *result = NULL;
    size_t left = LISTED_IN_ALL;
    place at = {0};
    if (sf_slots_read(&slots, lexicon, text, length, error) != SAFER_OK ||
        sf_slots_split(&slots, options->deletion, error) != SAFER_OK)
        goto done;
    for (size_t i = 0; i < slots.word_count; i++) {
        const sf_text_word *w = &slots.words[i];
        const char *key = slots.keys.bytes + w->key;
        at = place_of(&slots, text, at, w->begin, w->end);
        sf_json_push(&words, word_json(&slots, w, at, lexicon));
        if (w->slot != SF_NONE && !json_object_get(entries, key))
            sf_json_put(&entries, key, entry_json(lexicon, w->word, &left));
    }
    if (words && entries)
        result = json_pack("{s:O, s:O, s:I, s:o, s:o}", "words", words, "lexicon", entries, "slots",
                           (json_int_t)slots.slot_count, "q_at", q_json(&slots, lexicon), "fold",
                           fold_json(&slots, lexicon));
    if (slots.groups) sf_json_put(&result, "tokens", tokens_json(&slots, text, lexicon, options->seed));
    if (!result) sf_fail_memory(error);
done:
    json_decref(words);
    json_decref(entries);
    sf_slots_free(&slots);
    return result;
}
