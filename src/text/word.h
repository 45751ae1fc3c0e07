/* Words in a text: where they are, what they are, how they are written.
 *
 * A word is a maximal run of Unicode letters in which a single apostrophe (' or U+2019)
 * may stand between two letters. Its key is the lower-cased form with a plain
 * apostrophe; its case pattern says how it is written. Everything between words belongs
 * to the text and is never touched.
 *
 * Words begin and end with a letter, so whatever replaces a word cannot join its
 * surroundings: a text with words exchanged has its words in the same places. */
#ifndef SF_TEXT_WORD_H
#define SF_TEXT_WORD_H

#include "base/buffer.h"

#include <stddef.h>

/* Mixed case ("iPhone", "McCoy") counts as SF_LOWER or SF_TITLE by its first letter,
 * and so does a single capital: "I" is SF_TITLE. */
typedef enum sf_case { SF_LOWER, SF_TITLE, SF_UPPER } sf_case;

typedef struct sf_word {
    size_t begin, end; /* bytes of the text */
    const char *key;   /* valid until the next call */
    size_t key_length;
    sf_case pattern;
} sf_word;

/* Walks through a text. Bytes that are not UTF-8 are not letters. */
typedef struct sf_word_reader {
    const char *text;
    size_t length, at;
    sf_buffer key; /* scratch: one reader can be pointed at text after text */
} sf_word_reader;

/* Points a reader (zero-initialised once) at a text. */
void sf_word_reader_start(sf_word_reader *reader, const char *text, size_t length);

/* 1: *word is the next word. 0: no word is left. -1: memory is out. */
int sf_word_reader_next(sf_word_reader *reader, sf_word *word);

void sf_word_reader_free(sf_word_reader *reader);

/* Appends the key written in the pattern. 0, or -1 when memory is out. */
int sf_word_render(sf_buffer *out, const char *key, size_t length, sf_case pattern);

/* Appends the lower-cased form of any string, with plain apostrophes: the key it would
 * have if it is a word. 0, -1 when memory is out, -2 when it is not UTF-8. */
int sf_word_fold(sf_buffer *out, const char *bytes, size_t length);

/* Whether the key reads as exactly one word. -1 when memory is out. */
int sf_word_is_one(const char *key, size_t length);

/* May this key take another word's place? It must come back from reading what is
 * rendered: the same single word, the same pattern, for every pattern. This refuses
 * phrases, digits, single letters ("A" is both title and upper), final sigma (its capital
 * is that of σ) and decomposed accents. Letters whose capital takes two (ß, ﬁ) are refused
 * too, since libraries disagree on them. Words of scripts without case have one pattern
 * only, and may be exchanged only among themselves. */
typedef enum sf_admission { SF_REFUSED, SF_CASED, SF_CASELESS, SF_ADMISSION_NO_MEMORY } sf_admission;

sf_admission sf_word_admit(const char *key, size_t length);

#endif
