/* WordNet's antonyms and parts of speech.
 *
 * A line of a data file (wndb(5WN)) goes on behind the words of a synset with the number of its pointers, three decimal
 * digits, and the pointers: a mark, the offset of a synset, its part of speech, and two hexadecimal digits each for the
 * number of the word here and there. The mark ! leads to antonyms. They lead to synsets of any file, so they are
 * followed when all files were read. A part of speech "s" is an adjective too. */
#include "lexicon/wordnet.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void sf_wordnet_free(sf_wordnet *wordnet)
{
    sf_table_free(&wordnet->table);
    free(wordnet->synsets);
    free(wordnet->words);
    free(wordnet->oppositions);
    free(wordnet->parts);
    *wordnet = (sf_wordnet){0};
}

static unsigned part_of(char type)
{
    switch (type) {
    case 'n': return SF_NOUN;
    case 'v': return SF_VERB;
    case 'a':
    case 's': return SF_ADJECTIVE;
    case 'r': return SF_ADVERB;
    default: return 0;
    }
}

/* Digits of a base, 10 or 16, as a number; 0: it is none. */
static int number(uint64_t *out, sf_span field, unsigned base)
{
    *out = 0;
    for (size_t i = 0; i < field.length; i++) {
        const char c = field.bytes[i];
        const unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                               : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                      : 16;
        if (digit >= base) return 0;
        *out = *out * base + digit;
    }
    return field.length > 0 && field.length <= 12;
}

static int next(sf_span *field, const char **p, const char *end)
{
    while (*p < end && **p == ' ') ++*p;
    const char *begin = *p;
    while (*p < end && **p != ' ') ++*p;
    *field = (sf_span){begin, (size_t)(*p - begin)};
    return field->length > 0;
}

/* Where a synset is: the offset, and the part of speech above it. 0: that is none. */
static uint64_t place_of(sf_span offset, char type)
{
    uint64_t at;
    return number(&at, offset, 10) && part_of(type) ? (uint64_t)part_of(type) << 48 | at : 0;
}

safer_status sf_wordnet_add(sf_wordnet *w, sf_span offset, char type, const uint32_t *ids, size_t count, const char *p,
                            const char *end, safer_error *error)
{
    sf_span field, mark, there, part, numbers;
    uint64_t pointers, pair;
    const uint64_t place = place_of(offset, type);
    if (!place || !next(&field, &p, end) || !number(&pointers, field, 10)) return SAFER_INPUT;
    if (sf_grow(&w->synsets, &w->capacity, w->count + 1, sizeof *w->synsets) ||
        sf_grow(&w->words, &w->word_capacity, w->word_count + count, sizeof *w->words))
        return sf_fail_memory(error);
    w->synsets[w->count++] = (sf_synset){place, w->word_count, count};
    memcpy(w->words + w->word_count, ids, count * sizeof *ids);
    w->word_count += count;
    for (uint64_t i = 0; i < pointers; i++) {
        if (!next(&mark, &p, end) || !next(&there, &p, end) || !next(&part, &p, end) || !next(&numbers, &p, end))
            return SAFER_INPUT;
        if (mark.length != 1 || *mark.bytes != '!') continue;
        const uint64_t to = part.length == 1 ? place_of(there, *part.bytes) : 0;
        if (!to || numbers.length != 4 || !number(&pair, numbers, 16) || (pair >> 8) > count) return SAFER_INPUT;
        if (sf_grow(&w->oppositions, &w->opposition_capacity, w->opposition_count + 1, sizeof *w->oppositions))
            return sf_fail_memory(error);
        w->oppositions[w->opposition_count++] = (sf_opposition){place, to, (unsigned char)(pair >> 8),
                                                                (unsigned char)(pair & 255)};
    }
    return SAFER_OK;
}

static int by_place(const void *left, const void *right)
{
    const sf_synset *a = left, *b = right;
    return (a->place > b->place) - (a->place < b->place);
}

safer_status sf_wordnet_open(sf_wordnet *out, const char *folder, safer_error *error)
{
    sf_wordnet w = {0};
    w.table.wordnet = &w;
    safer_status status = sf_wordnet_read(&w.table, folder, error);
    w.table.wordnet = NULL;
    if (status == SAFER_OK) {
        w.parts = sf_calloc(w.table.words.count + 1, 1);
        if (!w.parts) status = sf_fail_memory(error);
    }
    if (status != SAFER_OK) {
        sf_wordnet_free(&w);
        return status;
    }
    for (size_t i = 0; i < w.count; i++)
        for (size_t k = 0; k < w.synsets[i].count; k++) {
            const uint32_t word = w.words[w.synsets[i].first + k];
            if (word != SF_NONE) w.parts[word] |= (unsigned char)(w.synsets[i].place >> 48);
        }
    if (w.count) qsort(w.synsets, w.count, sizeof *w.synsets, by_place);
    *out = w;
    return SAFER_OK;
}

/* --------------------------------------------------------------- constraints */

/* Of every word of the table its number in `words`, or SF_NONE; NULL without memory. */
static uint32_t *map_words(const sf_wordnet *w, const sf_words *words)
{
    uint32_t *map = sf_alloc((size_t)w->table.words.count + 1, sizeof *map);
    for (uint32_t x = 0; map && x < w->table.words.count; x++)
        map[x] = sf_words_find(words, sf_words_string(&w->table.words, x), sf_words_length(&w->table.words, x));
    return map;
}

safer_status sf_wordnet_synonyms(sf_constraints *out, const sf_wordnet *w, const sf_words *words, safer_error *error)
{
    safer_status status = SAFER_OK;
    uint32_t *map = map_words(w, words);
    if (!map) return sf_fail_memory(error);
    for (size_t i = 0; i < w->table.count && status == SAFER_OK; i++)
        status = sf_constraints_add(out, map[w->table.pairs[i].a], map[w->table.pairs[i].b], error);
    free(map);
    sf_constraints_sort(out);
    return status;
}

static const sf_synset *synset_at(const sf_wordnet *w, uint64_t place)
{
    const sf_synset key = {.place = place};
    return w->count ? bsearch(&key, w->synsets, w->count, sizeof key, by_place) : NULL;
}

safer_status sf_wordnet_antonyms(sf_constraints *out, const sf_wordnet *w, const sf_words *words, safer_error *error)
{
    safer_status status = SAFER_OK;
    uint32_t *map = map_words(w, words);
    if (!map) return sf_fail_memory(error);
    for (size_t i = 0; i < w->opposition_count; i++) {
        const sf_opposition o = w->oppositions[i];
        const sf_synset *from = synset_at(w, o.from), *to = synset_at(w, o.to);
        if (!to || o.target > to->count) continue; /* a folder of which a part is missing */
        for (size_t a = o.source ? o.source - 1 : 0; a < (o.source ? o.source : from->count); a++)
            for (size_t b = o.target ? o.target - 1 : 0; b < (o.target ? o.target : to->count); b++) {
                const uint32_t x = w->words[from->first + a], y = w->words[to->first + b];
                if (x != SF_NONE && y != SF_NONE) SF_TRY(sf_constraints_add(out, map[x], map[y], error));
            }
    }
done:
    free(map);
    sf_constraints_sort(out);
    return status;
}

/* ------------------------------------------------------------ parts of speech */

static unsigned parts_in(const sf_wordnet *w, const char *word, size_t length)
{
    const uint32_t x = sf_words_find(&w->table.words, word, length);
    return x == SF_NONE ? 0 : w->parts[x];
}

unsigned sf_wordnet_parts(const sf_wordnet *w, const char *word, size_t length)
{
    /* The endings that may be detached, and what takes their place (morphy(7WN)). */
    static const struct {
        unsigned part;
        const char *ending, *instead;
    } rules[] = {
        {SF_NOUN, "s", ""},       {SF_NOUN, "ses", "s"},     {SF_NOUN, "xes", "x"},     {SF_NOUN, "zes", "z"},
        {SF_NOUN, "ches", "ch"},  {SF_NOUN, "shes", "sh"},   {SF_NOUN, "men", "man"},   {SF_NOUN, "ies", "y"},
        {SF_VERB, "s", ""},       {SF_VERB, "ies", "y"},     {SF_VERB, "es", "e"},      {SF_VERB, "es", ""},
        {SF_VERB, "ed", "e"},     {SF_VERB, "ed", ""},       {SF_VERB, "ing", "e"},     {SF_VERB, "ing", ""},
        {SF_ADJECTIVE, "er", ""}, {SF_ADJECTIVE, "est", ""}, {SF_ADJECTIVE, "er", "e"}, {SF_ADJECTIVE, "est", "e"},
    };
    char base[64];
    unsigned parts = parts_in(w, word, length);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const size_t ending = strlen(rules[i].ending), instead = strlen(rules[i].instead);
        if (length <= ending || length >= sizeof base || memcmp(word + length - ending, rules[i].ending, ending) != 0)
            continue;
        memcpy(base, word, length - ending);
        memcpy(base + length - ending, rules[i].instead, instead);
        parts |= parts_in(w, base, length - ending + instead) & rules[i].part;
    }
    return parts;
}
