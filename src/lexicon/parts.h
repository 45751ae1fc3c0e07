/* Parts of speech, by WordNet: what a word can be in some sentence, not what it is in this one.
 *
 * WordNet's index files list base forms, its exception files irregular ones; regular endings are taken off by the rules
 * of morphy(7WN). What none of them explains, function words above all, has a part of its own: no part. */
#ifndef SF_LEXICON_PARTS_H
#define SF_LEXICON_PARTS_H

#include "base/digest.h"
#include "base/words.h"

typedef enum sf_part { SF_NOUN = 1, SF_VERB = 2, SF_ADJECTIVE = 4, SF_ADVERB = 8, SF_NO_PART = 16 } sf_part;

typedef struct sf_parts {
    sf_words forms;    /* base forms and irregular ones, in lower case */
    unsigned char *of; /* (forms): a sum of sf_part */
    size_t capacity;
    sf_digest digest; /* of the files */
} sf_parts;           /* zero-initialise */

/* Reads index.* and *.exc of a folder (Debian: /usr/share/wordnet, of wordnet-base). */
safer_status sf_parts_read(sf_parts *out, const char *folder, safer_error *error);

/* Adds what one of these files says: an index file, or one of exceptions. `name` is for messages. */
safer_status sf_parts_parse(sf_parts *parts, sf_part part, int index, const char *bytes, size_t length,
                            const char *name, safer_error *error);
void sf_parts_free(sf_parts *parts);

/* What the word, in lower case, can be: a sum of sf_part, never 0. */
unsigned sf_parts_of(const sf_parts *parts, const char *word, size_t length);

#endif
