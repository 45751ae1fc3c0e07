/* What one thread needs to certify text after text: options, working memory, and the text at hand.
 *
 * Nothing is allocated while a text is sampled. One workspace per thread. */
#ifndef SF_CERTIFY_WORKSPACE_H
#define SF_CERTIFY_WORKSPACE_H

#include "draw/sampler.h"
#include "ibp/bounds.h"
#include "model/model.h"
#include "stats/eprocess.h"
#include "stats/exact.h"
#include "stats/vote.h"

/* SAFER_INVALID, with the field's name, when an option is out of range, or when the method
 * cannot certify this model with this lexicon (NULL, both: any). */
safer_status sf_certify_check(const safer_certify_options *options, const safer_model *model,
                              const safer_lexicon *lexicon, safer_error *error);

/* Sees a certificate as it grows: when the text was read (words, slots, visible and q are known); not
 * of exact certificates, after every batch of the draws that choose the prediction but the last
 * (vote_n and vote_votes are those so far) and when it was chosen, which may happen twice; after
 * every batch of the certificate's own draws (n and votes are those so far; an exact one has no
 * votes yet); and after every batch of groups, whose answers are those of the workspace's last
 * batch, n groups having been asked. Nonzero ends it with SAFER_CANCELLED. */
typedef enum sf_moment { SF_TEXT_READ, SF_VOTE_ASKED, SF_PREDICTION_CHOSEN, SF_BATCH_ASKED, SF_GROUPS_ASKED } sf_moment;

typedef struct sf_watch {
    int (*look)(void *context, sf_moment moment, const safer_certificate *so_far, safer_workspace *workspace);
    void *context;
} sf_watch;

/* What may differ from one text to the next within a workspace: how much is claimed, and by how many draws. n0 is not
 * 0. */
typedef struct sf_terms {
    size_t radius;
    double delta;
    uint64_t n, n0;
} sf_terms;

sf_terms sf_terms_of(const safer_certify_options *options);

/* The state of one thread. */
struct safer_workspace {
    const safer_model *model;
    const safer_lexicon *lexicon;
    safer_certify_options options; /* delta is the text's own; n0 is never 0 */
    int fixed_vote;                /* choose the prediction by exactly n0 draws and a sign test (stats/select.h) */
    int threads;                   /* that share a batch */
    void **scratch;                /* the model's, one per thread */

    /* The text at hand. */
    sf_span text; /* borrowed */
    sf_slots slots;
    int split;      /* draws keep some of its tokens: there are edits */
    void *prepared; /* by the model's fast path; NULL without one */
    size_t visible; /* slots the model can ever see: the others leave the product */
    sf_sampler sampler;
    double *overlaps; /* slots; those of the visible ones first, rising */
    size_t overlap_capacity;
    sf_watch watch; /* look may be NULL */

    /* A batch. */
    uint32_t *draws; /* (batch, slots) */
    size_t draw_capacity;
    sf_buffer *texts; /* batch: rendered, for models without a fast path */
    sf_span *spans;   /* batch */
    int *answers;     /* batch */

    /* Evidence and results. */
    sf_vote_rule vote_rule;
    sf_vote vote; /* its counts are `selection` */
    sf_eprocess *process;
    sf_tally tally;
    uint64_t *votes, *selection; /* classes: of the certificate's samples, and of those that chose the prediction */
    double *shares;              /* classes */
    double q_radius, q_next;     /* q at the certified radius and at the next */
    double *margins;             /* classes: ibp */
    int additive;                /* ibp: a margin for every radius; else for all words alone */
    double margin_radius, margin_next; /* at the certified radius and at the next */
    sf_ibp_scratch *ibp;
};

/* *own, the defaults, = the given options, checked as above, and with n0 for 0 as many as n. */
safer_status sf_certify_take(safer_certify_options *own, const safer_certify_options *given, const safer_model *model,
                             const safer_lexicon *lexicon, safer_error *error);

/* What safer_certify_text makes when it is given none. End it with safer_workspace_free. */
safer_status sf_workspace_new(safer_workspace **out, const safer_model *model, const safer_lexicon *lexicon,
                              const safer_certify_options *options, safer_error *error);

/* The terms of the texts that follow: within what sf_certify_check allows. On failure the old ones stay. */
safer_status sf_workspace_settle(safer_workspace *workspace, sf_terms terms, safer_error *error);

/* Takes in the next text, valid UTF-8 that must outlive its certificate: its words and slots. */
safer_status sf_workspace_read(safer_workspace *workspace, const char *text, size_t length, safer_error *error);

/* Makes the text that was read ready to be drawn and asked about: room for a batch, the sampler,
 * the model's preparation, the visible slots and their overlaps. */
safer_status sf_workspace_prepare(safer_workspace *workspace, safer_error *error);

/* Ends the text at hand, after success and failure alike. */
void sf_workspace_release(safer_workspace *workspace);

/* Shows a certificate to the one who watches, if any, who may end it. */
safer_status sf_workspace_show(safer_workspace *workspace, sf_moment moment, const safer_certificate *so_far,
                               safer_error *error);

#endif
