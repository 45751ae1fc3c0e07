/* What the records of attacks and of the cross-check have in common. */
#ifndef SF_ATTACK_RECORDS_H
#define SF_ATTACK_RECORDS_H

#include "model/model.h"

#include <jansson.h>

/* The configuration, less what tells the two apart. NULL without memory. */
json_t *sf_attack_config(const safer_model *model, const safer_lexicon *lexicon, const safer_data *data,
                         const safer_attack_options *options);

/* A class by its name; null for none. */
json_t *sf_label_json(const safer_model *model, int label);

/* [{"word": from 1, "byte": where it begins in the text attacked, "from": ..., "to": ...}, ...] */
json_t *sf_changes_json(const safer_change *changes, size_t count);

/* Adds the record of an attack to the totals of its run. */
safer_status sf_attack_summary_add(safer_attack_summary *summary, const json_t *record, const char *name, size_t line,
                                   safer_error *error);

/* Hands a record to whoever asked to see them. */
safer_status sf_show_record(const safer_attack_options *options, const json_t *record, safer_error *error);

#endif
