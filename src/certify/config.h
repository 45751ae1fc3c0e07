/* The configuration of a run: the first line of its records. */
#ifndef SF_CERTIFY_CONFIG_H
#define SF_CERTIFY_CONFIG_H

#include "certify/certificate.h"
#include "certify/origin.h"
#include "run/sealed.h"
#include "stats/vote.h"

/* A number, or "all": of answers. Records have a string in both cases. */
json_t *sf_radius_json(size_t radius);
json_t *sf_radius_text(size_t radius);

/* Everything that the records of a run depend on; NULL data: but for the data. NULL without memory. */
json_t *sf_config_json(const safer_model *model, const safer_lexicon *lexicon, const safer_data *data,
                       const safer_certify_options *options);

/* What checking a record needs of it. */
typedef struct sf_config {
    int format;
    safer_method method;
    int deletes;  /* draws delete tokens, or groups of them vote; else there are no edits */
    double delta; /* of one text; like n and n0 of no meaning for ibp and groups */
    uint64_t n, n0;
    size_t radius, texts;
    int unlabelled;
    int remote;   /* the model is remote: some answers may be no label */
    int random;   /* it answers the same text differently */
    int whole;    /* it reads every text to its end: all slots are visible */
    int folded;   /* its lexicon has a fold */
    int additive; /* ibp: there is a margin for every radius; else for all words alone */
    size_t classes;
    const json_t *labels; /* borrowed: array of names */
    safer_certify_options options;
    sf_vote_rule rule; /* by which draws choose a prediction; not in format 1 */
    uint64_t seal;     /* of the configuration, where it was read from a run */
    sf_shard shard;    /* which part of a run it is */
    const char *date;  /* borrowed: when the run was begun; NULL: it does not say */
} sf_config;

/* Reads the first line of a file. It must outlive the configuration. */
safer_status sf_config_read(sf_config *out, const json_t *config, const char *path, safer_error *error);

/* Of every label of the data, the run's class. SAFER_INPUT where it has none. The caller frees it. */
safer_status sf_config_map_labels(int **out, const sf_config *config, const safer_data *data, const char *path,
                                  safer_error *error);

/* The name of a class; "" for -1. */
const char *sf_config_label(const sf_config *config, int label);

#endif
