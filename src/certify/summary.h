/* The totals of a run, counted record by record. */
#ifndef SF_CERTIFY_SUMMARY_H
#define SF_CERTIFY_SUMMARY_H

#include "certify/record.h"

/* Nothing counted yet, of a run with this configuration. Ends with safer_summary_free. */
safer_status sf_summary_start(safer_summary *out, const sf_config *config, safer_error *error);

/* Adds a record of that run. */
void sf_summary_add(safer_summary *summary, const sf_record *record);

/* Whether the deployed vote gives the class that the certificate is about. */
int sf_record_answered(const sf_record *record);

/* Whether a text is certified at the asked radius, for its own label, and answered. */
int sf_record_holds(const sf_record *record);

/* safer_certify without records, of one process; held[i] says of text i of the data what sf_record_holds does. */
safer_status sf_certify_each(safer_summary *out, unsigned char *held, const safer_model *model,
                             const safer_lexicon *lexicon, const safer_data *data, const safer_certify_options *options,
                             safer_error *error);

/* The figure behind a reported radius, in the terms of safer_summary_headline. */
safer_figure sf_summary_headline_at(const safer_summary *summary, size_t radius_number);

/* The same of edits + 1 edits, `edits` below those asked for. */
safer_figure sf_summary_headline_edits(const safer_summary *summary, size_t edits);

/* Whether most certificates are empty. They meet no requirement. */
int sf_summary_is_empty(const safer_summary *summary);

#endif
