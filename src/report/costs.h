/* The words that cost a run its certificates, and what each of them costs alone.
 *
 * A text is lost when its vote is clear and for the class that the certificate is about, but it is not certified as
 * was asked. Take a word that an attacker may not exchange, wherever it stands, while everything else stays: model,
 * lexicon, draws, votes, delta. Its slots then leave the product of overlaps, so that q becomes
 *
 *   1 - (product of the R smallest overlaps of the other visible slots),   and with edits as stats/edits.h has it,
 *
 * and a lost text whose recorded bound is above 1/2 + q would be certified: this is a certificate of the same smoothed
 * classifier against that weaker attacker, with the same delta, because the bound holds whatever q it is compared with.
 * The number of such texts is the gain of the word. Protecting it in a lexicon has this effect on q, and besides the
 * word is no longer drawn, so that votes change too: what a new run gains can be more or less.
 *
 * Products round down, q up. The texts looked at are those that the page lists. */
#ifndef SF_REPORT_COSTS_H
#define SF_REPORT_COSTS_H

#include "report/runs.h"

enum { SF_COSTS = 20 }; /* words that are shown, at most */

typedef struct sf_cost {
    uint32_t word;   /* of the lexicon */
    size_t texts;    /* lost ones in which it is one of the slots that make q */
    size_t gain;     /* of these, certified without it */
    size_t together; /* lost ones that are certified without it and all words before it */
} sf_cost;

typedef struct sf_costs {
    const safer_lexicon *lexicon;
    size_t lost; /* texts */
    sf_cost words[SF_COSTS];
    size_t count; /* those with the largest gains, above 0, falling */
} sf_costs;

/* Of a run with votes that has data and a lexicon, these two. */
safer_status sf_report_costs(sf_costs *out, const sf_report_run *run, const safer_lexicon *lexicon,
                             const safer_data *data, const safer_progress *progress, safer_error *error);

#endif
