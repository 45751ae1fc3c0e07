/* The pairs of synonyms that a person should look at: what vectors and tables get wrong most often. */
#include "base/memory.h"
#include "base/options.h"
#include "lexicon/function_words.h"
#include "lexicon/lexicon.h"
#include "lexicon/vectors.h"
#include "lexicon/wordnet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void safer_audit_options_init(safer_audit_options *options, size_t size)
{
    static const safer_audit_options defaults = {.size = sizeof defaults, .distant = 0.82};
    sf_options_init(options, size, &defaults, sizeof defaults);
}

typedef struct audit {
    const safer_lexicon *lexicon;
    const safer_audit_options *options;
    sf_wordnet wordnet;
    sf_constraints antonyms; /* in the lexicon's numbers */
    safer_doubtful *found;
    size_t count, capacity;
} audit;

static const char *word_of(const safer_lexicon *l, uint32_t x) { return l->words.pool + l->words.offsets[x]; }

static int has_antonyms(const sf_constraints *antonyms, uint32_t a, uint32_t b)
{
    size_t low = 0, high = antonyms->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const uint32_t *pair = antonyms->pairs[middle];
        if (pair[0] < a || (pair[0] == a && pair[1] < b))
            low = middle + 1;
        else
            high = middle;
    }
    return low < antonyms->count && antonyms->pairs[low][0] == a && antonyms->pairs[low][1] == b;
}

/* The vector of a word, or NULL. */
static const float *vector_of(const safer_lexicon *l, uint32_t x)
{
    size_t low = 0, high = l->vector_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (l->vector_words[middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->vector_count && l->vector_words[low] == x ? l->vectors + low * l->vector_dim : NULL;
}

static double similarity_of(const safer_lexicon *l, uint32_t x, uint64_t edge)
{
    if (l->similarity) return (double)l->similarity[edge];
    const float *a = vector_of(l, x), *b = vector_of(l, l->synonyms[edge]);
    return a && b ? sf_vectors_dot(a, b, l->vector_dim) : (double)NAN; /* they were scaled to length 1 */
}

static unsigned doubts_of(const audit *a, uint32_t x, uint32_t y, double similarity)
{
    const char *words[2] = {word_of(a->lexicon, x), word_of(a->lexicon, y)};
    unsigned doubts = 0, parts[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        if (sf_is_function_word(words[i], strlen(words[i]))) doubts |= 1u << SAFER_DOUBT_FUNCTION_WORD;
        if (a->options->wordnet) parts[i] = sf_wordnet_parts(&a->wordnet, words[i], strlen(words[i]));
    }
    if (has_antonyms(&a->antonyms, x, y)) doubts |= 1u << SAFER_DOUBT_ANTONYMS;
    if (parts[0] && parts[1] && !(parts[0] & parts[1])) doubts |= 1u << SAFER_DOUBT_SPEECH;
    if (similarity < a->options->distant) doubts |= 1u << SAFER_DOUBT_DISTANT; /* false for NAN */
    return doubts;
}

/* Whether y counts as a synonym of x. */
static int is_synonym(const safer_lexicon *l, uint32_t x, uint32_t y)
{
    for (uint64_t e = l->synonym_offsets[x]; e < l->synonym_offsets[x + 1]; e++)
        if (l->synonyms[e] == y) return 1;
    return 0;
}

static int by_doubt(const void *left, const void *right)
{
    const safer_doubtful *a = left, *b = right;
    const unsigned worst[2] = {a->doubts & (0u - a->doubts), b->doubts & (0u - b->doubts)}; /* the lowest bit */
    if (worst[0] != worst[1]) return worst[0] < worst[1] ? -1 : 1;
    const double similarity[2] = {isnan(a->similarity) ? 2 : a->similarity, isnan(b->similarity) ? 2 : b->similarity};
    if (similarity[0] != similarity[1]) return similarity[0] < similarity[1] ? -1 : 1;
    if (a->word != b->word) return a->word < b->word ? -1 : 1;
    return a->synonym < b->synonym ? -1 : a->synonym > b->synonym;
}

/* The words of the lexicon as a set of their own, in the same numbers: what constraints are read with. */
static safer_status read_constraints(audit *a, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_words words = {0};
    uint32_t id;
    for (uint32_t x = 0; x < a->lexicon->words.count; x++)
        SF_TRY(sf_words_add(&words, word_of(a->lexicon, x), strlen(word_of(a->lexicon, x)), &id, error));
    if (a->options->wordnet) {
        SF_TRY(sf_wordnet_open(&a->wordnet, a->options->wordnet, error));
        SF_TRY(sf_wordnet_antonyms(&a->antonyms, &a->wordnet, &words, error));
    }
    for (size_t i = 0; i < a->options->antonyms_count; i++)
        SF_TRY(sf_constraints_read(&a->antonyms, a->options->antonyms[i], &words, error));
    sf_constraints_sort(&a->antonyms);
done:
    sf_words_free(&words);
    return status;
}

safer_status safer_lexicon_audit(safer_doubtful **out, size_t *count, const safer_lexicon *l,
                                 const safer_audit_options *given, safer_error *error)
{
    safer_audit_options options = safer_audit_options_default();
    safer_status status = SF_TAKE_OPTIONS(&options, given, safer_audit_options, error);
    if (status != SAFER_OK) return status;
    if (isnan(options.distant)) return sf_fail(error, SAFER_INVALID, "`distant`: not a number");
    audit a = {.lexicon = l, .options = &options};
    SF_TRY(read_constraints(&a, error));
    for (uint32_t x = 0; x < l->words.count; x++)
        for (uint64_t e = l->synonym_offsets[x]; e < l->synonym_offsets[x + 1]; e++) {
            const uint32_t y = l->synonyms[e];
            const double similarity = similarity_of(l, x, e);
            const unsigned doubts = y < x && (!l->directed || is_synonym(l, y, x)) ? 0
                                                                                   : doubts_of(&a, x, y, similarity);
            if (!doubts) continue;
            if (sf_grow(&a.found, &a.capacity, a.count + 1, sizeof *a.found)) {
                status = sf_fail_memory(error);
                goto done;
            }
            a.found[a.count++] = (safer_doubtful){x, y, doubts, similarity};
        }
    if (a.count) qsort(a.found, a.count, sizeof *a.found, by_doubt);
    *out = a.found;
    *count = a.count;
    a.found = NULL;
done:
    free(a.found);
    sf_wordnet_free(&a.wordnet);
    sf_constraints_free(&a.antonyms);
    return status;
}
