/* The tokens of a text in groups, each of which is read alone.
 *
 * Every token has a canonical form: a slot's word the first item of its support in the pattern of the text, any other
 * token itself. The group of a token is a hash of the canonical form alone, so that an edit changes the group that it
 * takes a token from and the one that it puts a token in, and no other. Where all overlaps of a lexicon are 1, synonyms
 * have the same support, so the same canonical form, and change no group at all. docs/groups.md */
#ifndef SF_DRAW_GROUPS_H
#define SF_DRAW_GROUPS_H

#include "draw/sampler.h"

/* The group of a canonical form, 0 .. groups-1. */
uint32_t sf_group_of(const char *token, size_t length, uint64_t key, size_t groups);

/* The group of one token of a text that was split into groups; -1: no memory. `form` is working memory. */
int sf_group_of_token(uint32_t *out, const sf_slots *slots, const safer_lexicon *lexicon, const sf_token *token,
                      uint64_t key, sf_buffer *form);

/* Prepares a sampler of a text that was split into groups (sf_slots_split): finds the group of every token. Then draw
 * number d of draw/enumerate.h has the tokens of the group sampler->parts[d]: first those that have any, rising; then,
 * where there are such, one without tokens, which stands for them all: its weight is their number, that of the others
 * 1. */
safer_status sf_sampler_group(sf_sampler *sampler, const sf_slots *slots, const safer_lexicon *lexicon, uint64_t key,
                              safer_error *error);

/* draw (width): the tokens of a group. */
void sf_groups_draw(uint32_t *draw, const sf_sampler *sampler, uint32_t group);

/* SAFER_INVALID where a word of the lexicon has an overlap below 1: a synonym may then have another canonical form.
 * NULL is fine. */
safer_status sf_groups_check(const safer_lexicon *lexicon, safer_error *error);

#endif
