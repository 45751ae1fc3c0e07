/* The grammar of the demo's reviews: named lists of alternatives. It knows nothing of
 * how alternatives are chosen or of the synonym table.
 *
 * Inside an alternative:
 *   {word}   a word of the synonym group with this head; {^word} shouts it now and then
 *   <rule>   an alternative of the rule, chosen anew
 *   [rule]   the same, chosen once a review: names and titles
 *   @        the product under review, by one of its names
 *   #a-b     a number from a to b
 *   xyz|     in front of an opinion: the letters of the topics it is about; a review
 *            does not say opposite things about one topic
 * Anything else stands for itself. Sentences begin in lower case and "a" stands for
 * "an" as well: both are put right when the sentence is written out. */
#ifndef DEMO_GRAMMAR_H
#define DEMO_GRAMMAR_H

typedef struct rule {
    const char *name;
    const char *const *alternatives; /* ends with NULL */
} rule;

extern const rule grammar[]; /* ends with a NULL name */

/* What the product reviews are about: a synonym group, and the pool of sentences that
 * suit it beside the general ones. */
typedef struct product {
    const char *group, *pool;
} product;

extern const product products[]; /* ends with a NULL group */

#endif
