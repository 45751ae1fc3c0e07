/* Attacks on classifiers and on certificates. Part of safer.h, which says what holds throughout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAFER_ATTACK_H
#define SAFER_ATTACK_H

#include "safer/certify.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a text is searched for words to exchange. All look for any other class than the right
 * one. The first four exchange words for their synonyms in the lexicon only; the next three spell words, any of
 * them, otherwise; the last three put in, take out or replace words, numbers and marks (docs/attack.md). */
typedef enum safer_attack_method {
    SAFER_ATTACK_TEXTFOOLER, /* the most important words first; of each the synonym that hurts most */
    SAFER_ATTACK_GENETIC,    /* a population that mutates and crosses */
    SAFER_ATTACK_PWWS,       /* every word's best synonym, in the order of saliency times gain */
    SAFER_ATTACK_RANDOM,     /* random exchanges: what a search must beat */
    SAFER_ATTACK_HOMOGLYPH,  /* no synonyms: letters of words become characters that look like them */
    SAFER_ATTACK_ZEROWIDTH,  /* characters that are not seen between the letters of words */
    SAFER_ATTACK_TYPO,       /* letters swapped, left out, doubled, or from a key beside theirs */
    SAFER_ATTACK_INSERT,     /* words of the lexicon put in, anywhere */
    SAFER_ATTACK_DELETE,     /* tokens taken out */
    SAFER_ATTACK_OUTOFLIST   /* tokens replaced by any word of the lexicon, synonym or not */
} safer_attack_method;

#define SAFER_ATTACKS 10
/* "textfooler", "genetic", "pwws", "random", "homoglyph", "zerowidth", "typo", "insert", "delete", "outoflist" */
SAFER_NAMED(safer_attack_method);

/* Takes a record of a run, as a line of JSON without newline, "seconds" and "check", when its
 * turn has come: in the order of the data, one at a time, from any thread. */
typedef void (*safer_record_function)(void *context, const char *record);

typedef struct safer_attack_options {
    size_t size;
    safer_attack_method method;
    int smoothed;         /* attack the smoothed classifier, not the model itself */
    uint64_t n;           /* smoothed: draws of a text that vote on it; where a text has no more, all are asked. 200 */
    size_t radius;        /* words that may change, or tokens put in, taken out or replaced; SAFER_ALL */
    uint64_t max_queries; /* texts a search may ask the model about; smoothed: at least n; 0: any number */
    int population;       /* genetic; 60 */
    int iterations;       /* genetic; 40 */
    int tries;            /* random; 100 */
    double alpha;         /* smoothed: a success counts when a test on fresh draws says so at this level; 0.001 */
    uint64_t seed;        /* 1 */
    int threads;          /* 0: all cores, one per text; results do not depend on it */
    size_t batch;         /* texts asked at once, at most; results do not depend on it; 256 */
    safer_record_function each; /* sees every record of this run; may be NULL */
    void *each_context;
    safer_progress progress; /* also how to stop */
    size_t shard, shards;    /* only part `shard` of so many, as in safer_certify_options; zeros: all texts */
    safer_crew *crew;        /* of safer_attack and safer_attack_against: processes that share the work; NULL: alone */
    safer_deletion deletion; /* smoothed: draws delete tokens so often, as in safer_certify_options; zeros: nothing */
    uint64_t words; /* insert, outoflist: words of the lexicon, the most frequent, that are asked about, once; 2000 */

    /* What a word and its replacement must have in common, of the methods that replace words (docs/attack.md). Borrowed
     * for the call, of safer_attack_text for the first call. Not for safer_attack_against. */
    const char *same_pos;  /* a folder with WordNet's index files: the same part of speech; NULL: any */
    const char *vectors;   /* a file of word vectors, for the next two; NULL: none */
    double min_cosine;     /* of the vectors of the two words, 0 to 1; 0: any */
    double min_similarity; /* of the mean vectors of the 15 words around, before and after, 0 to 1; 0: any */
} safer_attack_options;

SAFER_OPTIONS(safer_attack_options);

typedef enum safer_outcome {
    SAFER_OUTCOME_FAILED, /* no such exchange was found */
    SAFER_OUTCOME_SUCCEEDED,
    SAFER_OUTCOME_SKIPPED /* there was nothing to attack: the answer is already wrong */
} safer_outcome;
SAFER_NAMED(safer_outcome); /* "failed", "succeeded", "skipped" */

/* One exchanged word, or one edit. */
typedef struct safer_change {
    size_t word;      /* which of the text's words, from 0; of a number or mark: how many words stand before it */
    size_t begin;     /* where it begins in the text attacked, bytes */
    const char *from; /* as it stands there, terminated; empty: `to` is put in here */
    const char *to;   /* as it stands in the new text, terminated; empty: `from` is taken out */
} safer_change;

/* What an attack did to one text. Class numbers are the model's; -1 means none. */
typedef struct safer_attack_result {
    const char *id;
    int label;  /* the data's */
    int target; /* the class that must not be answered any more: the label, or (without one) the answer */
    int before; /* the answer for the text as it is */
    int after;  /* for the new text; as `before` when the attack did not succeed */
    double score_before, score_after; /* the target's share of the classifier's belief; after: lowest that was found */
    safer_outcome outcome;
    const char *reason;    /* why it failed or was skipped, a few words; NULL on success */
    size_t words, choices; /* of the text, and those of them that have synonyms */
    size_t changed;        /* words exchanged in the new text; 0 without success */
    const safer_change *changes;
    const char *text; /* the new text; NULL without success */
    size_t text_length;
    uint64_t queries; /* texts the model was asked about by the search */
    uint64_t checks;  /* and by the tests of its successes (smoothed) */
    double seconds;
} safer_attack_result;

/* Attacks one text, whose label is `label`, or (label -1) whose label is what is answered. The
 * result's pointers live in `*attacker`, which is made when NULL, reused by further calls of
 * the same thread with the same model, lexicon and options, and ended by safer_attacker_free.
 * Random choices depend on the seed and the text alone. */
typedef struct safer_attacker safer_attacker;
SAFER_API safer_status safer_attack_text(safer_attack_result *out, safer_attacker **attacker, const safer_model *model,
                                         const safer_lexicon *lexicon, const char *text, size_t length, int label,
                                         const safer_attack_options *options, safer_error *error);
SAFER_API void safer_attacker_free(safer_attacker *attacker);

/* A whole data set. */
typedef struct safer_attack_summary {
    size_t texts;
    size_t skipped;         /* already answered wrongly */
    size_t succeeded;       /* of those that were not */
    size_t without_choices; /* texts of which nothing can change */
    size_t limited;         /* attacks that ended because max_queries were used up */
    uint64_t changed;       /* words, over all successes */
    double changed_share;   /* sum over all successes of the share of the text's words */
    uint64_t queries, checks;
    double seconds; /* of this call */
    size_t resumed; /* records that were there already */
    size_t words;   /* insert, outoflist: words that the model was asked about once for all texts, beside `queries` */
} safer_attack_summary;

/* Attacks every text and writes `output`, as safer_certify does: the configuration, then one
 * record per text, with the new text and its exchanged words. `output` may be NULL. A helper
 * of a crew gives NULL for `data`, and nothing comes back through `out`. */
SAFER_API safer_status safer_attack(safer_attack_summary *out, const char *output, int resume, const safer_model *model,
                                    const safer_lexicon *lexicon, const safer_data *data,
                                    const safer_attack_options *options, safer_error *error);

/* The cross-check: attacks on what a run of safer_certify certified. */
typedef struct safer_against_summary {
    size_t texts;            /* in the run */
    size_t certified;        /* at radius 1 or more, or against 1 edit or more: those are attacked */
    size_t exact;            /* of these, without sampling */
    size_t untouched;        /* certified, but nothing can change */
    size_t limited;          /* certified, but a search ended because max_queries were used up */
    size_t violations;       /* certified texts for which a new text was found that breaks the certificate */
    size_t violations_exact; /* of these, where the certificate claimed to be exact */
    size_t sampled;          /* texts of the run that were sampled, certified or not */
    double delta;            /* of a text of the run */
    double p_value;          /* of as many violations of sampled certificates, if delta holds; rounded up */
    int alarm;    /* delta does not explain the violations: any exact one, or p_value below SAFER_AGAINST_LEVEL */
    size_t flips; /* new texts on which the votes of a search went wrong, before the test on fresh draws */
    uint64_t queries, checks;
    double seconds;
    size_t resumed;
    size_t shard, shards;    /* the part of the run that was attacked; zeros: all of it */
    safer_deletion deletion; /* of the run's draws; zeros: they delete nothing */
    size_t certified_edits;  /* then: texts that are certified against 1 edit or more */
    size_t words;            /* and words that the model was asked about once for all texts, beside `queries` */
} safer_against_summary;

#define SAFER_AGAINST_LEVEL 0.001  /* of the alarm */
#define SAFER_VIOLATION_LEVEL 1e-6 /* of the test that makes a new text a violation, all methods together */

/* Attacks every certified text of the run `against` with every method, within its certified
 * radius, on what was certified: the smoothed classifier or, by interval bounds, the model itself.
 * The run's seals and decisions are checked first, and that model, lexicon and data are its own.
 * The best new text of each method is tested with fresh draws, as it would be when deployed; a violation
 * is one for which a test at level 1e-6 rejects that the certified class wins, or enumeration (for
 * the model itself: its answer) shows that it does not. Where draws of the run delete, edits are attacked as well, and
 * everything at once: edits, synonyms in what stays, and spellings that the fold covers. The options method, smoothed,
 * deletion, alpha and radius are ignored. Against a part of a run its texts are attacked, and `shard` is 0. `output`
 * may be NULL: no records. A helper of a crew gives NULL for `data`; it needs no run, and nothing comes back
 * through `out`. */
SAFER_API safer_status safer_attack_against(safer_against_summary *out, const char *against, const char *output,
                                            int resume, const safer_model *model, const safer_lexicon *lexicon,
                                            const safer_data *data, const safer_attack_options *options,
                                            safer_error *error);

#ifdef __cplusplus
}
#endif
#endif
