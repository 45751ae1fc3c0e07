/* Where a text may be cut before it is encoded by a tokenizer (tokenizer.h), whatever words are drawn into it.
 * tokenizer_places.c has the reasons. */
#ifndef SF_TEXT_TOKENIZER_PLACES_H
#define SF_TEXT_TOKENIZER_PLACES_H

#include "text/tokenizer.h"

/* Which letters words can begin or end with: bit 0 to 25 a to z, 26 to 51 A to Z, 52 any other. 0: there is no word. */
typedef uint64_t sf_letters;
enum { SF_LETTER_OTHER = 52 };

static inline sf_letters sf_letter(unsigned char byte)
{
    if (byte >= 'a' && byte <= 'z') return (sf_letters)1 << (byte - 'a');
    if (byte >= 'A' && byte <= 'Z') return (sf_letters)1 << (byte - 'A' + 26);
    return (sf_letters)1 << SF_LETTER_OTHER;
}

typedef struct sf_places sf_places;

/* For a tokenizer, of which nothing is kept. NULL without memory. */
sf_places *sf_places_new(const sf_tokenizer *tokenizer);
void sf_places_free(sf_places *places); /* NULL is fine */

/* How many prefixes a part that begins at such a place does not get (sf_tokenizer_encode_part). */
size_t sf_places_skips(const sf_places *places);

/* Whether the text may be cut before byte `at`, which is there, of what lies between two words. At 0 a word that ends
 * with one of these letters stands before it; where it is the last byte, one that begins with one of these follows it,
 * or the text ends. */
int sf_places_cut(const sf_places *places, const char *text, size_t length, size_t at, sf_letters before,
                  sf_letters after);

/* Of a text whose tokens stand between single spaces: whether it may be cut in front of the space before a token
 * (`begins`) and of the one behind it (`ends`), for all that this token has to say: it may, where `ends` of the one and
 * `begins` of the next hold. */
typedef struct sf_edges {
    int begins, ends;
} sf_edges;
sf_edges sf_places_edges(const sf_places *places, const char *token, size_t length); /* of one byte at least */
sf_edges sf_places_word_edges(const sf_places *places, sf_letters begins, sf_letters ends);

#endif
