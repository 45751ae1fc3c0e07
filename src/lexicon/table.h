/* Synonym tables: JSON, text and WordNet, read into words and one-way pairs. */
#ifndef SF_LEXICON_TABLE_H
#define SF_LEXICON_TABLE_H

#include "base/buffer.h"
#include "base/words.h"
#include "lexicon/dropped.h"
#include "lexicon/pairs.h"
#include "text/fold.h"

typedef struct sf_table {
    sf_words words; /* keys, in order of appearance */
    sf_pair *pairs; /* a -> b as listed; similarity 0 */
    size_t count, capacity;
    size_t phrases;             /* entries that are not one word, left out */
    sf_dropped *dropped;        /* and noted here; may be NULL */
    struct sf_wordnet *wordnet; /* WordNet: what else its files say goes there (lexicon/wordnet.h); may be NULL */
} sf_table;

/* JSON when the first byte that is not blank is '{', otherwise text. */
safer_status sf_table_read(sf_table *table, const char *path, safer_error *error);
safer_status sf_table_parse(sf_table *table, const char *bytes, size_t length, const char *name, safer_error *error);

/* SAFER_INPUT when a file of words begins as UTF-16 or UTF-32 does, which some programs save: read as UTF-8, its words
 * would be others, or none. */
safer_status sf_check_encoding(const char *bytes, size_t length, const char *name, safer_error *error);

/* SAFER_INPUT when the first two words of line 1 of a file of pairs name its columns, as "word" and "synonyms" do: they
 * would become a pair. */
safer_status sf_check_header(sf_span word, sf_span other, size_t line, const char *name, safer_error *error);

/* All words of a synset are synonyms of each other. */
safer_status sf_wordnet_read(sf_table *table, const char *folder, safer_error *error);
safer_status sf_wordnet_parse(sf_table *table, const char *bytes, size_t length, const char *name, safer_error *error);

void sf_table_free(sf_table *table);

/* A list of words, one per line, folded to keys; blank lines are skipped. */
safer_status sf_word_list_read(sf_words *out, const char *path, safer_error *error);
safer_status sf_word_list_parse(sf_words *out, const char *bytes, size_t length, const char *name, safer_error *error);

/* A file with one or two words per line: `single` gets the lone words and `pairs` (ids in
 * `words`) the pairs, both folded (`fold` may be NULL) and looked up in `words`; *unknown counts words that are
 * not there. */
typedef struct sf_edits {
    unsigned char *single; /* a flag per word */
    sf_pair *pairs;
    size_t count, capacity, unknown;
} sf_edits;

safer_status sf_edits_read(sf_edits *out, const char *path, const sf_words *words, const sf_fold *fold,
                           int pairs_allowed, safer_error *error);
safer_status sf_edits_parse(sf_edits *out, const char *bytes, size_t length, const char *name, const sf_words *words,
                            const sf_fold *fold, int pairs_allowed, safer_error *error);
void sf_edits_free(sf_edits *edits);

#endif
