/* What evidence states about a run: collected once, then written in every form that other programs read.
 *
 * The terms of the assessment are those of ISO/IEC 24029-2:2023: the domain of the perturbation, the property,
 * whether it is shown deterministically or statistically, completely or not, with a closed or a glass box, and in
 * which arithmetic. Shares are counts of texts, and a form that writes one as a number cuts it. */
#ifndef SF_REPORT_FACTS_H
#define SF_REPORT_FACTS_H

#include "report/card.h"
#include "report/finished.h"
#include "report/writer.h"

/* A file or data set that the evidence is about. */
typedef struct sf_artifact {
    const char *name;      /* without directories */
    const char *uri;       /* the same as a relative reference */
    const char *sha256;    /* 64 hex digits; NULL: a remote model has none */
    const char *digest_of; /* of what, in a few words */
    const char *role;      /* "run", "model", "lexicon", "data", "baseline" */
} sf_artifact;

/* A term and what it is here. */
typedef struct sf_term {
    const char *name, *value;
} sf_term;

/* A share of texts. */
typedef struct sf_metric {
    const char *name;
    const char *slice;  /* "class toxic", "at most 5 words changed"; NULL: of all texts, at the asked radius */
    const char *label;  /* of a class; else NULL */
    size_t part, whole; /* whole >= 1 */
} sf_metric;

/* A text that held in the baseline and does not hold in the run. */
typedef struct sf_loss {
    size_t row; /* in the data, from 1 */
    const char *id, *label;
    const char *name;    /* "text ID" */
    const char *reason;  /* what it is now, a few words: "abstained", "answered as neg", "not certified" */
    const char *message; /* all of it, one line */
} sf_loss;

enum { SF_MOST_TERMS = 15, SF_MOST_LIMITS = 9 }; /* a sampled run with a fold and edits has all of them */

typedef struct sf_facts {
    const safer_run *run, *baseline;        /* baseline: may be NULL */
    const char *date;                       /* of the run, "2026-11-16T10:03:22Z" */
    const char *arch;                       /* of the model */
    const char *probe;                      /* digest of a remote model's answers to the probe texts; NULL: none */
    sf_artifact file, model, lexicon, data; /* file: the run's own */
    sf_artifact before, card_file;          /* the baseline's file and the card's; name NULL: none */
    sf_term terms[SF_MOST_TERMS];
    size_t term_count;
    const char *limits[SF_MOST_LIMITS]; /* what is not proven, one sentence each */
    size_t limit_count;
    const char *caution;                                             /* why the figures say little; NULL: they do not */
    const char *checked[SAFER_PHRASES], *not_checked[SAFER_PHRASES]; /* of the run: phrases, up to NULL */
    const char *unchecked;                                           /* "Not checked: ", and the latter */
    sf_metric *metrics;
    size_t metric_count, metric_capacity;
    const safer_gate *gates; /* borrowed */
    size_t gate_count;
    sf_loss *losses;
    size_t loss_count, loss_capacity;
    const char *compared; /* how many certificates were lost and gained, one line */
    int worse;            /* a gate says that the run is worse than the baseline */
    sf_card card;

    char **strings; /* private: what is composed here */
    size_t string_count, string_capacity;
    int failed; /* private: memory ran out */
} sf_facts;

/* Fills in what follows from `run` and `baseline`, which are set already, as are the two files, the gates, the card and
 * what was checked. The facts are freed whether or not this succeeds. A run of format 1 is refused: it has no
 * digests. */
safer_status sf_facts_collect(sf_facts *facts, safer_error *error);
void sf_facts_free(sf_facts *facts);

/* The forms, each a whole file. */
void sf_put_bom(sf_writer *out, const sf_facts *facts);       /* CycloneDX 1.6, JSON */
void sf_put_statement(sf_writer *out, const sf_facts *facts); /* in-toto Statement v1 */
void sf_put_sarif(sf_writer *out, const sf_facts *facts);     /* SARIF 2.1.0 */
void sf_put_junit(sf_writer *out, const sf_facts *facts);     /* JUnit XML */
void sf_put_summary(sf_writer *out, const sf_facts *facts);   /* Markdown, for a pull request */

#endif
