/* Texts and the words in them, packed for the page.
 *
 * A page may hold 25,000 texts and must still open at once, so nothing of this is read
 * until a text is opened. It is JSON in blocks, each packed by gzip and written in
 * base64 inside a <script> of a type that is not run, with these ids:
 *
 *   texts-B      B = 0, 1, ...: an array of SF_TEXTS_PER_BLOCK texts, each a string or, when it
 *                was cut, [string, bytes of the whole]
 *   slots-L-B    for lexicon L, parallel to texts-B: per text an array [gap, length, word, gap, ...];
 *                a slot begins `gap` units of UTF-16 after the end of the one before it, and
 *                `word` is a number of the excerpt
 *   words-L      the excerpt of lexicon L: {"w": [names], "s": [overlaps]}; words that stand
 *                in a text come first, and these have overlaps, in ten-thousandths, cut
 *   details-L-B  of SF_WORDS_PER_BLOCK words that have an overlap: an array
 *                [worst or -1, synonyms, [first of them], draws, [first of them], total, [weights]];
 *                weights are left out when all are 1
 *
 * What is very long is cut: a text after SF_TEXT_BYTES, a list after SF_LIST_WORDS. */
#ifndef SF_REPORT_TEXTS_H
#define SF_REPORT_TEXTS_H

#include "report/runs.h"
#include "report/writer.h"

enum { SF_TEXTS_PER_BLOCK = 200, SF_WORDS_PER_BLOCK = 500, SF_TEXT_BYTES = 100000, SF_LIST_WORDS = 40 };

/* Writes texts-B for the first `count` rows of those that the page shows. */
safer_status sf_report_texts(sf_writer *out, const safer_data *data, size_t count, const safer_progress *progress,
                             safer_error *error);

/* Writes slots-L-B, words-L and details-L-B. */
safer_status sf_report_words(sf_writer *out, const safer_data *data, size_t count, const safer_lexicon *lexicon,
                             size_t number, const safer_progress *progress, safer_error *error);

#endif
