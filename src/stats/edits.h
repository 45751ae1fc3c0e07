/* What edits cost under draws that delete tokens, or where groups of them vote: words, numbers and marks put in, taken
 * out or replaced by anything.
 *
 * Draws delete every token of a text with probability p, independently. Everything that is then certified is a
 * threshold on (1 + g(y) - max g(c))/2, as without deletion: 1/2 + q. Here is the q of R edits; edits.c has the
 * theorem. Pure functions; any number of threads. */
#ifndef SF_STATS_EDITS_H
#define SF_STATS_EDITS_H

#include "base/deletion.h"

#include <stddef.h>
#include <stdint.h>

/* The overlap of a token under deletion, p + (1 - p) s, rounded down; s is that of its word, `deletion` is p as the
 * sampler uses it, a fraction of 2^32 (base/deletion.h). */
double sf_deletion_overlap(uint32_t deletion, double overlap);

/* q of `edits` edits of a kind in a text of so many tokens beside synonyms that cost `q`, from 0 to 1 (groups: 0):
 * rounded up, at most 1. Nothing can be certified at 1/2 or more. With 0 edits it is q itself. It rises with q and with
 * the number of edits. */
double sf_edits_q(safer_deletion deletion, size_t tokens, safer_edit_kind kind, size_t edits, double q);

#endif
