/* Whether a lexicon fits the texts. One of another language has some of their words all the same, names and words that
 * are spelled alike, so that a certificate is seldom empty and still says little.
 *
 * What can be seen: hardly any word has a synonym. Or the lexicon, which remembers what share of the words it was made
 * from it has, has much less of these. docs/lexicon.md, "A lexicon that does not fit", has what was measured. */
#include "lexicon/lexicon.h"

#include "base/json.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum {
    LEAST_WORDS = 100,      /* of texts: shares of fewer are chance */
    LEAST_MADE_FROM = 10000 /* of the data the lexicon was made from: in less every other word is rare */
};

int sf_few_words(size_t changeable, size_t words) { return words >= LEAST_WORDS && changeable * 10 < words; }

/* The words that the lexicon was made from, and how many of these it has; 0 where it does not say. */
static uint64_t made_from(const safer_lexicon *l, uint64_t *known)
{
    json_t *provenance = NULL;
    *known = 0;
    if (sf_json_parse(&provenance, l->provenance, strlen(l->provenance), 0, NULL) != SAFER_OK) return 0;
    const json_t *coverage = json_object_get(provenance, "coverage");
    const json_int_t words = json_integer_value(json_object_get(coverage, "words")),
                     had = json_integer_value(json_object_get(coverage, "known"));
    json_decref(provenance);
    if (words <= 0 || had < 0 || had > words) return 0;
    *known = (uint64_t)had;
    return (uint64_t)words;
}

int safer_survey_caution(const safer_survey *s, const safer_lexicon *l, char *text, size_t size)
{
    uint64_t known;
    snprintf(text, size, "%s", "");
    if (s->without_synonyms > s->texts - s->without_synonyms) {
        snprintf(
            text, size,
            "most certificates would be empty: in %zu of %zu text%s no word has a synonym; the lexicon may not fit "
            "the language",
            s->without_synonyms, s->texts, s->texts == 1 ? "" : "s");
        return 1;
    }
    if (sf_few_words(s->tokens_with_synonyms, s->tokens)) {
        snprintf(text, size,
                 "certificates would say little: only %zu of %zu words of these texts have a synonym; the lexicon may "
                 "not fit the language",
                 s->tokens_with_synonyms, s->tokens);
        return 1;
    }
    const uint64_t words = made_from(l, &known);
    if (words < LEAST_MADE_FROM || s->tokens < LEAST_WORDS) return 0;
    const double here = (double)s->known_tokens / (double)s->tokens, there = (double)known / (double)words;
    if (here >= 0.75 * there) return 0;
    snprintf(text, size,
             "the lexicon has %.1f%% of the words of these texts, and %.1f%% of those it was made from: they may be of "
             "another language",
             100 * here, 100 * there);
    return 2;
}
