/* What is made of runs: comparisons, gates, pages, evidence. Part of safer.h, which says what holds throughout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAFER_REPORT_H
#define SAFER_REPORT_H

#include "safer/attack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------- comparisons */

/* A finished run of safer_certify or safer_attack, read back: its totals, and of every text
 * whether it held. That is: certified and answered, at the asked radius, for its own label; or answered
 * rightly before and after the attack. Seals and order of the records are checked, and the
 * decisions of certificates. */
typedef struct safer_run safer_run;
SAFER_API safer_status safer_run_read(safer_run **out, const char *path, safer_error *error);
SAFER_API void safer_run_free(safer_run *run);

/* The totals, which belong to the run, with `seconds` 0; NULL for a run of the other kind. */
SAFER_API const safer_summary *safer_run_certified(const safer_run *run);
SAFER_API const safer_attack_summary *safer_run_attacked(const safer_run *run);

SAFER_API size_t safer_run_size(const safer_run *run); /* texts */
SAFER_API int safer_run_held(const safer_run *run, size_t row);
SAFER_API const char *safer_run_id(const safer_run *run, size_t row); /* of the text; NULL beyond the last */

/* Why a text held or did not, of certificates: "certified and answered", "not certified", "abstained" or "answered as
 * another class"; of an attack NULL. */
SAFER_API const char *safer_run_outcome(const safer_run *run, size_t row);

/* Two runs on the same texts, text by text. */
typedef struct safer_comparison {
    size_t first, second;                          /* numbers of the runs */
    size_t both, only_first, only_second, neither; /* texts that held */
    double p_value;  /* McNemar's exact test: two-sided, binomial on the texts that held in one run only; rounded up */
    double adjusted; /* the same after Holm, for all pairs compared at once */
} safer_comparison;

/* Compares every two of `count` runs: out gets count (count - 1) / 2 of them, (0,1), (0,2),
 * ..., (1,2), .... The runs must be of one kind, one radius and one data set. */
SAFER_API safer_status safer_compare(safer_comparison *out, const safer_run *const *runs, size_t count,
                                     safer_error *error);

/* -------------------------------------------------------------------- gates */

/* What is required of a run, as continuous integration does. */
typedef enum safer_gate_kind {
    SAFER_GATE_ACCURACY, /* the headline (safer_summary_headline) is at least so much */
    SAFER_GATE_RECALL,   /* the certified recall of a class is */
    SAFER_GATE_NOT_WORSE /* a paired exact test does not say that fewer texts held than in a baseline */
} safer_gate_kind;
SAFER_NAMED(safer_gate_kind); /* "accuracy", "recall", "not-worse" */

/* A requirement, and whether it is met. Messages round no share up. */
typedef struct safer_gate {
    safer_gate_kind kind;
    int met;
    char name[200];     /* what is required, a few words: "certified recall of toxic" */
    char message[600];  /* one line: what was found, and what was required */
    size_t part, whole; /* texts that count, of so many; not worse: those lost, of those lost or gained */
    double value;       /* part / whole, or 0; not worse: the p-value, rounded up */
    double threshold;   /* value must be at least this; not worse: above it */
} safer_gate;

#define SAFER_NOT_WORSE_LEVEL 0.05 /* of the test: the chance that a run that is no worse fails */

/* A headline of at least `least`, from 0 to 1. Not met, whatever it is, where safer_summary_caution has something to
 * say. */
SAFER_API void safer_gate_accuracy(safer_gate *out, const safer_summary *summary, double least);

/* A certified recall of at least `least`. A class that no text has does not meet it, and a run in which most
 * certificates are empty meets none; SAFER_INVALID when the run has no such label. */
SAFER_API safer_status safer_gate_recall(safer_gate *out, const safer_summary *summary, const char *label, double least,
                                         safer_error *error);

/* McNemar's exact test, one-sided, on the texts that held in one of the runs only. Both are runs of certificates with
 * the same texts, labels, lexicon and radius, and the run's delta per text and its alpha are not larger than the
 * baseline's. */
SAFER_API safer_status safer_gate_not_worse(safer_gate *out, const safer_run *run, const safer_run *baseline,
                                            safer_error *error);

/* ------------------------------------------------------------------ reports */

typedef struct safer_report_options {
    size_t size;
    /* Records hold no texts. With the data of the runs the page shows them, and with the
     * lexicons of the runs their words. Each must belong to at least one of the runs. */
    const safer_data *data;               /* may be NULL */
    const safer_lexicon *const *lexicons; /* need data */
    size_t lexicon_count;
    const char *const *attacks; /* records of attacks on the runs' models and this data; need data */
    size_t attack_count;
    size_t texts;    /* shown, at most; 25000 */
    const char *svg; /* a folder, made when missing: the plots as files. May be NULL */
    const char *csv; /* a folder: runs.csv, radii.csv, classes.csv, confusion.csv, texts.csv. May be NULL */
    safer_progress progress;
    const char *title; /* of the page, instead of "Certified robustness"; NULL: none */
    const char *notes; /* a file of plain text (UTF-8, at most 1 MiB), shown before the figures. May be NULL */
} safer_report_options;

SAFER_OPTIONS(safer_report_options);

/* Writes an HTML page about finished runs, 1 to 16 files of records, to `output`: one file,
 * which needs no other and no network. Runs are checked as safer_verify does from records alone, and one that
 * does not hold is an error that names its line. NULL options mean the defaults;
 * `summaries`, when not NULL, gets one of every run, each of which ends with safer_summary_free. */
SAFER_API safer_status safer_report(safer_summary *summaries, const char *output, const char *const *runs,
                                    size_t run_count, const safer_report_options *options, safer_error *error);

/* ----------------------------------------------------------------- evidence */

/* A certified recall that is required. */
typedef struct safer_recall {
    const char *label;
    double least; /* 0 to 1 */
} safer_recall;

typedef struct safer_evidence_options {
    size_t size;
    /* With these the run is checked as safer_verify does, which says what may be NULL. */
    const safer_model *model;
    const safer_lexicon *lexicon;
    const safer_data *data;
    double require; /* the headline is at least this, 0 to 1; SAFER_DEFAULT: any */
    const safer_recall *recalls;
    size_t recall_count;
    const char *baseline;       /* a run: texts that held in it and do not any more are listed. May be NULL */
    const char *not_worse_than; /* the same, and the run may not be worse. May be NULL; not with baseline */
    const char *model_card;     /* a file of Markdown or JSON, whose name, version, license, tags and link of
                                 * the model are taken over unchecked; docs/evidence.md. May be NULL */
    int threads;                /* 0: all cores */
    safer_progress progress;
} safer_evidence_options;

SAFER_OPTIONS(safer_evidence_options);

/* Checks a run of certificates (format 2) and writes what other programs read about it into `folder`, which is
 * made when missing: safer_evidence_file names the files, docs/evidence.md says what is in them. Each is written whole
 * or not at all, and the same inputs give the same bytes. `gates`, when not NULL, gets the requirements: of the
 * headline, of recalls in their order, of the comparison, as far as the options state them. Requirements that
 * are not met are no error. */
SAFER_API safer_status safer_evidence(safer_gate *gates, const char *folder, const char *run,
                                      const safer_evidence_options *options, safer_error *error);

/* "bom.cdx.json" (CycloneDX), "statement.intoto.json" (in-toto), "results.sarif" (SARIF), "junit.xml" (JUnit),
 * "summary.md" (Markdown); NULL beyond the last. */
SAFER_API const char *safer_evidence_file(size_t number);

#ifdef __cplusplus
}
#endif
#endif
