/* A finished run, read back and checked: its configuration, its totals, and of every text whether it held. */
#ifndef SF_REPORT_FINISHED_H
#define SF_REPORT_FINISHED_H

#include "attack/records.h"
#include "base/buffer.h"
#include "certify/summary.h"

/* What is kept of a text. */
typedef struct sf_finished {
    size_t id; /* where it begins in `ids` */
    int held;
    int label, answer; /* of certificates; -1: no label, and a vote that is not clear */
} sf_finished;

struct safer_run {
    char *path;
    int is_attack;
    json_t *json;          /* the configuration */
    sf_config config;      /* of certificates, */
    sf_attack_head attack; /* or of an attack */
    safer_summary certified;
    safer_attack_summary attacked;
    sf_finished *texts; /* (count) */
    size_t count, capacity;
    sf_buffer ids; /* terminated, one after the other */
};

/* Whether a run says by SHA-256 what it is about: format 1 does not. */
safer_status sf_run_identified(const safer_run *run, safer_error *error);

/* Whether a run can be held against a baseline: it is about the same texts and claims no less. */
safer_status sf_run_matches(const safer_run *run, const safer_run *baseline, safer_error *error);

/* Why two runs cannot be compared text by text, from their configurations: " have different radii", to follow their
 * names. NULL: they can. */
const char *sf_runs_differ(const json_t *a, const json_t *b);

/* Holm: the smallest p-value times their number, the next times one less, and never falling. */
safer_status sf_comparisons_adjust(safer_comparison *pairs, size_t count, safer_error *error);

#endif
