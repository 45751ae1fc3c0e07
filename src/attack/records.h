/* What the records of attacks and of the cross-check have in common, and what those of attacks say. */
#ifndef SF_ATTACK_RECORDS_H
#define SF_ATTACK_RECORDS_H

#include "model/model.h"
#include "run/shard.h"

#include <jansson.h>

/* The configuration, without what distinguishes the two kinds, "attack" and "against". NULL without memory. */
json_t *sf_attack_config(const char *kind, const safer_model *model, const safer_lexicon *lexicon,
                         const safer_data *data, const safer_attack_options *options);

/* What the configuration of an attack says, as far as it is needed. */
typedef struct sf_attack_head {
    int format, smoothed;
    size_t texts;
    sf_shard shard;                    /* which part of an attack it is */
    const char *method;                /* borrowed */
    int same_pos;                      /* what new texts must have in common with the texts: parts of speech, */
    double min_cosine, min_similarity; /* 0: any */
} sf_attack_head;

/* Reads the first line of an attack. A member that is missing, unknown or of another type is an error. */
safer_status sf_attack_config_read(sf_attack_head *out, const json_t *json, const char *path, safer_error *error);

/* A class by its name; null for none. */
json_t *sf_label_json(const safer_model *model, int label);

/* [{"word": from 1, "byte": where it begins in the text attacked, "from": ..., "to": ...}, ...] */
json_t *sf_changes_json(const safer_change *changes, size_t count);

/* The record of one text, without "seconds" and "check". `row` is its place in the data, from 1. NULL
 * without memory. */
json_t *sf_attack_record_json(const safer_attack_result *result, size_t row, const safer_model *model);

/* Why an attack was skipped or failed. A record holds the words. */
typedef enum sf_reason {
    SF_NO_REASON, /* it succeeded */
    SF_NO_ANSWER,
    SF_ALREADY_WRONG,
    SF_QUERIES_USED_UP,
    SF_NO_WORD_CHANGES,
    SF_NOT_BORNE_OUT,
    SF_NOTHING_FOUND,
    SF_OTHER_REASON /* in the record of another version */
} sf_reason;

const char *sf_reason_text(sf_reason reason); /* NULL for no reason and for another one */

/* What the record of an attack says, as far as totals and comparisons need it. */
typedef struct sf_attack_record {
    safer_outcome outcome;
    sf_reason reason;
    size_t words, choices, changed;
    uint64_t queries, checks;
    const char *after;     /* borrowed: the label that the search ended with, or NULL */
    const json_t *changes; /* borrowed: a list of objects with "byte" and "to" (sf_changes_json) */
} sf_attack_record;

/* Reads the record of a line. A member that is missing, unknown or of another type is an error that names
 * file, line and member. */
safer_status sf_attack_record_read(sf_attack_record *out, const json_t *json, int format, const char *path, size_t line,
                                   safer_error *error);

/* Adds the record of an attack to the totals of its run. */
void sf_attack_summary_add(safer_attack_summary *summary, const sf_attack_record *record);

/* Hands a record to the options' function, where there is one. */
safer_status sf_show_record(const safer_attack_options *options, const json_t *record, safer_error *error);

#endif
