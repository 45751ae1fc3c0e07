/* The record of a text: its certificate as a JSON object, and what such an object says.
 *
 * What was decided can be recomputed from what stands in the record: counts, n, q and the
 * configuration; with the method ibp: the margins. docs/certify.md lists the members, run/sealed.h
 * says how a record becomes a line. */
#ifndef SF_CERTIFY_RECORD_H
#define SF_CERTIFY_RECORD_H

#include "certify/config.h"
#include "run/rows.h"

/* The certificate in the workspace as a JSON object, without "seconds" and "check". `row` is
 * the text's place in the data, from 1; 0: it is not of a data set, and the record has no "row". */
json_t *sf_record_json(const safer_certificate *certificate, size_t row, const safer_workspace *workspace);

/* Certifies a row of data, and makes its record. *record, which the caller owns, is NULL without memory. */
safer_status sf_record_row(json_t **record, double *seconds, safer_workspace **workspace, const safer_model *model,
                           const safer_lexicon *lexicon, const sf_row *row, const safer_certify_options *options,
                           safer_error *error);

/* What a record says. Classes are numbers of the configuration's labels, -1 for none. The pointers
 * live as long as the JSON that was read. */
typedef struct sf_record {
    const char *id;
    int label, prediction, base, target;
    int unfolded; /* the answer for the text as it was given; base where the lexicon has no fold */
    int abstained, exact, certified;
    size_t words, slots, visible, radius;
    size_t tokens, edits; /* where draws delete tokens; else 0 */
    uint64_t queries;

    /* The vote that chose the prediction: NULL where exact, in format 1 and in a run by interval bounds. */
    uint64_t vote_n;
    const json_t *vote; /* of every class: a whole number */

    /* The votes of the certificate; zeros in a run by interval bounds. */
    uint64_t n; /* 0 where exact */
    double bound, q, q_at[SAFER_RADII], q_radius, q_next;
    const json_t *q_edits; /* where draws delete tokens, of 0, 1, ... edits: a real number; else NULL */
    const json_t *counts;  /* of every class: a whole number or, where exact, a weight */
    const json_t *total;   /* where exact: the weight of all draws */

    /* Interval bounds; zeros in a run by votes. */
    double margin;         /* the target's least lead over another class, in logits */
    const json_t *margins; /* over every other class: a real number */
    double margin_at[SAFER_RADII], margin_radius, margin_next; /* where words add up: the least, by radius */
} sf_record;

static inline double sf_record_q_edits(const sf_record *r, size_t edits)
{
    return json_real_value(json_array_get(r->q_edits, edits));
}

/* Reads the record of a line. A member that is missing, of another type or out of its range is an
 * error that names file, line and member. */
safer_status sf_record_read(sf_record *out, const json_t *json, const sf_config *config, const char *path, size_t line,
                            safer_error *error);

/* A claim may say less than this program would by so much: a bound lower, q higher. Never more. */
#define SF_TOLERANCE 1e-9

/* Recomputes every decision of a record. */
safer_status sf_record_recheck(const sf_record *record, const sf_config *config, const char *path, size_t line,
                               safer_error *error);

/* Of an exact record: the weight of all draws, 0 or -1 when it is none; and whether its weights are these. */
int sf_record_total(const sf_record *record, sf_weight *total);
int sf_record_has_tally(const sf_record *record, const sf_config *config, const sf_tally *tally);

#endif
