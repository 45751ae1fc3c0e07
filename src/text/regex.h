/* The regular expressions of tokenizers: a small part of Oniguruma's language, with its meaning.
 *
 *   a  \n \r \t \f \v  \u2581  \x20        characters
 *   .  \s \S \d \D \w \W  \p{L} \P{Lu} \p{^N}  [a-z\p{L}]  [^\s]       sets of them
 *   ? * + {n} {n,} {n,m}                   of one character or set; behind them ? is lazy, + possessive (not behind {})
 *   (...) (?:...) (?i:...) a|b             groups, of which only ? may follow
 *   (?=...) (?!...)                        looking ahead
 *
 * Everything else is refused by name, and so is an expression that can match nothing: splitting at it has no sense.
 * A match is the leftmost, and there the first by Oniguruma's order of trying. Since groups are not repeated, the
 * program of an expression is passed forwards only; what failed at a place is not tried there again once a text turns
 * out to be slow, so the time is at most that of the program times the text times its longest run. */
#ifndef SF_TEXT_REGEX_H
#define SF_TEXT_REGEX_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sf_regex sf_regex;

/* `what` begins messages ("tokenizer.json: Split"). The caller frees *out. */
safer_status sf_regex_new(sf_regex **out, const char *pattern, size_t length, const char *what, safer_error *error);
/* These bytes and nothing else; at least one. */
safer_status sf_regex_literal(sf_regex **out, const char *bytes, size_t length, safer_error *error);
void sf_regex_free(sf_regex *regex);

/* Whether a match, or what it looks at ahead of it, can have these two characters in a row. Where it cannot, matches on
 * both sides of the place between them are those of the two texts by themselves. */
int sf_regex_crosses(const sf_regex *regex, uint32_t before, uint32_t after);
int sf_regex_holds(const sf_regex *regex, uint32_t code); /* whether a match can have this character in it */

/* Whether there is a match that begins at this character, whatever stands before and behind it, if none that began
 * before it takes it. */
typedef enum sf_regex_start { SF_REGEX_NEVER, SF_REGEX_PERHAPS, SF_REGEX_ALWAYS } sf_regex_start;
sf_regex_start sf_regex_starts(const sf_regex *regex, uint32_t code);

/* Memory of one search through one text; zero-initialise before the text, free behind it. */
typedef struct sf_regex_memo {
    uint64_t *failed; /* where what failed: (instructions * (length + 1)) bits, or NULL */
    size_t steps;
    int out_of_memory;
} sf_regex_memo;
void sf_regex_memo_free(sf_regex_memo *memo);

/* The first match at or behind `from` in valid UTF-8: 1, and *begin and *end; 0 when there is none; -1 without
 * memory. */
int sf_regex_find(const sf_regex *regex, const char *text, size_t length, size_t from, size_t *begin, size_t *end,
                  sf_regex_memo *memo);

#endif
