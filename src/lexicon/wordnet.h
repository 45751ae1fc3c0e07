/* What WordNet says of words beside their synonyms: antonyms and parts of speech. */
#ifndef SF_LEXICON_WORDNET_H
#define SF_LEXICON_WORDNET_H

#include "lexicon/counterfit.h"
#include "lexicon/parts.h"
#include "lexicon/table.h"

typedef struct sf_synset {
    uint64_t place; /* its part of speech and its offset in that file */
    size_t first;   /* of its words, in `words` */
    size_t count;
} sf_synset;

/* A pointer to antonyms: from a word of a synset to one of another, by their numbers there from 1; 0: all of them. */
typedef struct sf_opposition {
    uint64_t from, to; /* places */
    unsigned char source, target;
} sf_opposition;

typedef struct sf_wordnet {
    sf_table table; /* words and synonyms */
    sf_synset *synsets;
    size_t count, capacity;
    uint32_t *words; /* of all synsets, one after the other; SF_NONE: a phrase */
    size_t word_count, word_capacity;
    sf_opposition *oppositions;
    size_t opposition_count, opposition_capacity;
    unsigned char *parts; /* of every word of the table */
} sf_wordnet;             /* zero-initialise */

/* Reads a folder with data.noun, data.verb, data.adj and data.adv. */
safer_status sf_wordnet_open(sf_wordnet *out, const char *folder, safer_error *error);
void sf_wordnet_free(sf_wordnet *wordnet);

/* Takes a synset in, by a line of a file: its words, and from `p` on the pointers. SAFER_INPUT without a message when
 * the line is malformed. Called by sf_wordnet_parse for a table that belongs to a wordnet. */
safer_status sf_wordnet_add(sf_wordnet *wordnet, sf_span offset, char type, const uint32_t *ids, size_t count,
                            const char *p, const char *end, safer_error *error);

/* Adds its synonyms or antonyms, of those whose words are both in `words`, in their numbers; sorts all. */
safer_status sf_wordnet_synonyms(sf_constraints *out, const sf_wordnet *wordnet, const sf_words *words,
                                 safer_error *error);
safer_status sf_wordnet_antonyms(sf_constraints *out, const sf_wordnet *wordnet, const sf_words *words,
                                 safer_error *error);

/* The parts of speech of a word (SF_NOUN, ...), also of an inflected one, by the endings of WordNet's own rules
 * (morphy(7WN)); 0: it is not there. */
unsigned sf_wordnet_parts(const sf_wordnet *wordnet, const char *word, size_t length);

#endif
