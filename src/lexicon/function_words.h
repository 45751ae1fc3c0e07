/* English function words: a text's grammar, not what it speaks of. Vectors that were learned from contexts make
 * synonyms of them ("not" and "they", "the" and "on"), and no attack that a reader would not notice exchanges them. */
#ifndef SF_LEXICON_FUNCTION_WORDS_H
#define SF_LEXICON_FUNCTION_WORDS_H

#include <stddef.h>

/* All of them, as a list with one word per line. */
extern const char sf_function_words[];

/* Whether a key is one of them. */
int sf_is_function_word(const char *key, size_t length);

#endif
