/* The votes of the text at hand: a number of samples, samples until a vote is clear or all is decided, or
 * every draw.
 *
 * The order in which a model is asked is fixed: draws by number, a batch at a time. Batches never
 * change what is counted. All that may take long is watched (certify/workspace.h). */
#ifndef SF_CERTIFY_VOTES_H
#define SF_CERTIFY_VOTES_H

#include "base/rng.h"
#include "certify/workspace.h"

/* votes (classes) = those of samples 0 .. n-1 of the stage's stream. `watched` gets n and votes as
 * they grow and is shown after every batch but the last; NULL: nobody watches. */
safer_status sf_votes_sample(uint64_t *votes, safer_workspace *workspace, sf_stage stage, uint64_t n,
                             safer_certificate *watched, safer_error *error);

/* Samples the selection's stream, from where the workspace's vote stands, until that is done (stats/vote.h):
 * c->vote_n and c->vote_votes become those at the sample that ended it. */
safer_status sf_votes_until_clear(safer_certificate *c, safer_workspace *workspace, safer_error *error);

/* Samples the certificate's stream until every reported radius and the asked one are decided for
 * c->target (c->q is known). c->n and c->votes become those at the sample that decided. */
safer_status sf_votes_until_decided(safer_certificate *c, safer_workspace *workspace, safer_error *error);

/* How many distinct draws the text has, where asking each once is allowed and cheaper than
 * sampling; else 0. */
uint64_t sf_votes_enumerable(const safer_workspace *workspace);

/* The workspace's tally = the votes of all `draws` draws, with their weights. `known`: the answers
 * are there already (sf_ask_text_and_draw). */
safer_status sf_votes_enumerate(safer_workspace *workspace, uint64_t draws, int known, const safer_certificate *watched,
                                safer_error *error);

#endif
