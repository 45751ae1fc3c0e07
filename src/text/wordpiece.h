/* BERT's tokenizer: text to numbers of word pieces.
 *
 * Two steps, as the `tokenizers` library (BertNormalizer, BertPreTokenizer, WordPiece)
 * does them: the text is cleaned (control characters removed, white space unified),
 * ideographs set apart, accents stripped and letters lower-cased where the options say
 * so, and cut at white space and around every punctuation mark: these are the pre-tokens.
 * Each is then covered from the left by the longest pieces of the vocabulary, "##" marking
 * those that continue; a pre-token that cannot be covered, or is longer than `longest`
 * characters, is [UNK].
 *
 * Special tokens written in the text ("[SEP]") are recognised where that library does it. */
#ifndef SF_TEXT_WORDPIECE_H
#define SF_TEXT_WORDPIECE_H

#include "base/buffer.h"
#include "base/digest.h"
#include "base/error.h"
#include "text/ids.h"

#include <stdint.h>

typedef struct sf_wordpiece_options {
    int lower;      /* 1: uncased */
    int accents;    /* 1: strip them */
    int ideographs; /* 1: each is a pre-token of its own */
    int clean;      /* 1: remove control characters, unify white space */
    size_t longest; /* characters of a pre-token; 100 */
    int ending;     /* 1: of texts that are too long the last pieces stay. For who cuts them; not done here */
} sf_wordpiece_options;

typedef struct sf_wordpiece sf_wordpiece;

/* From the vocabulary itself: pieces separated by newlines, numbered from 0; an empty line
 * is a number without a piece. [UNK], [CLS], [SEP], [PAD] and [MASK] are special by their
 * names, unless some line says, behind a tab, what it is; then only what is said counts:
 *
 *   unk cls sep pad   what it stands for
 *   added             it is found in texts, as it stands, before anything else happens
 *   only              it is no piece of words besides
 *   normal word left right   as `tokenizers` has them: found in the cleaned text, only as a
 *                     whole word, swallowing the white space on its left or right
 *   prefix=##         first line only: what marks continuing pieces
 *
 * In such lines \n, \r, \t and \\ are escapes. `name` is for messages. */
safer_status sf_wordpiece_new(sf_wordpiece **out, const char *vocabulary, size_t length,
                              const sf_wordpiece_options *options, const char *name, safer_error *error);
/* From a HuggingFace directory: tokenizer.json, or vocab.txt with special_tokens_map.json and
 * added_tokens.json where they are there. The do_lower_case, strip_accents and
 * tokenize_chinese_chars of a tokenizer_config.json count in both cases, as in transformers.
 * A piece that is listed twice, and a missing [UNK], [CLS] or [SEP], is an error. `read`, which may be NULL,
 * notes the files that were read. */
safer_status sf_wordpiece_open(sf_wordpiece **out, const char *directory, sf_digest_list *read, safer_error *error);
/* From the contents of a tokenizer.json alone. */
safer_status sf_wordpiece_parse(sf_wordpiece **out, const char *json, size_t length, const char *name,
                                safer_error *error);
void sf_wordpiece_free(sf_wordpiece *wordpiece);

size_t sf_wordpiece_size(const sf_wordpiece *wordpiece); /* largest number + 1 */
const sf_wordpiece_options *sf_wordpiece_get_options(const sf_wordpiece *wordpiece);
/* Appends the vocabulary in the form that sf_wordpiece_new reads. -1 without memory. */
int sf_wordpiece_vocabulary(sf_buffer *out, const sf_wordpiece *wordpiece);

typedef struct sf_wordpiece_specials {
    uint32_t cls, sep, unk;
    uint32_t pad; /* 0 when the vocabulary lacks it */
} sf_wordpiece_specials;
sf_wordpiece_specials sf_wordpiece_special(const sf_wordpiece *wordpiece);

/* Working memory of one thread. Zero-initialise. */
typedef struct sf_wordpiece_scratch {
    sf_buffer clean;
    sf_ids points;
} sf_wordpiece_scratch;
void sf_wordpiece_scratch_free(sf_wordpiece_scratch *scratch);

/* Appends the pieces of a text, at most `limit` of them (the rest is not looked at),
 * without [CLS] and [SEP]. Bytes that are not UTF-8 count as U+FFFD. -1 without memory. */
int sf_wordpiece_encode(sf_ids *out, const sf_wordpiece *wordpiece, const char *text, size_t length, size_t limit,
                        sf_wordpiece_scratch *scratch);

/* Appends what a text is turned into before it is cut at white space and punctuation.
 * -1 without memory. */
int sf_wordpiece_normalize(sf_buffer *out, const sf_wordpiece *wordpiece, const char *text, size_t length,
                           sf_wordpiece_scratch *scratch);

/* Whether a character always stands between pre-tokens or is one by itself, whatever is
 * around it: white space, punctuation, ideographs. A text may be cut before and after it
 * and the parts encoded apart, if sf_wordpiece_joins is 0 there. */
int sf_wordpiece_cuts(const sf_wordpiece *wordpiece, uint32_t character);

/* Whether these two bytes, next to each other in a text, can belong to one special token.
 * -1 stands for a byte that is not known. */
int sf_wordpiece_joins(const sf_wordpiece *wordpiece, int before, int after);

#endif
