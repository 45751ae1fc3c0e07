/* Certificates of texts and of data sets, and their checks. Part of safer.h, which says what holds throughout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAFER_CERTIFY_H
#define SAFER_CERTIFY_H

#include "safer/crew.h"
#include "safer/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum safer_method {
    SAFER_METHOD_ADAPTIVE,  /* samples until decided, valid at any stopping time; enumerates when that is cheaper */
    SAFER_METHOD_BINOMIAL,  /* n samples, Clopper-Pearson */
    SAFER_METHOD_HOEFFDING, /* n samples, the paper's test */
    SAFER_METHOD_IBP,   /* interval bounds of the model itself, not smoothed: bow, cnn, sums. No samples, no delta */
    SAFER_METHOD_GROUPS /* votes of groups of tokens: deletion.groups questions per text. No samples, no delta */
} safer_method;
SAFER_NAMED(safer_method); /* "adaptive", "binomial", "hoeffding", "ibp", "groups" */

/* What an attacker may do to tokens (words, numbers, marks) where draws delete them: docs/edits.md. */
typedef enum safer_edit_kind {
    SAFER_EDITS_ANY,     /* put in, take out or replace by anything */
    SAFER_EDITS_REPLACE, /* replace alone */
    SAFER_EDITS_INSERT,  /* put in alone */
    SAFER_EDITS_DELETE   /* take out alone */
} safer_edit_kind;
SAFER_NAMED(safer_edit_kind); /* "any", "replace", "insert", "delete" */
#define SAFER_EDITS 64        /* edits that can be asked for, at most */

/* The radii every run reports: 1, 2, 5, 10, 20, SAFER_ALL. */
#define SAFER_RADII 6
SAFER_API size_t safer_reported_radius(size_t index);

typedef struct safer_certify_options {
    size_t size;
    safer_method method;
    uint64_t n;      /* samples of a certificate (adaptive: at most); 5000 */
    uint64_t n0;     /* separate samples that choose the prediction, at most; 0: as many as n */
    double delta;    /* the chance that a text that could be attacked gets a certificate is at most delta; it is not the
                      * chance that a given certificate is wrong. 0.01 */
    double alpha;    /* bounds the probability that a class is returned that does not win among all draws; 0.001 */
    int family_wise; /* delta covers the whole data set: each text gets delta / texts */
    size_t radius;   /* what `certified` refers to; SAFER_ALL */
    int unlabelled;  /* certify the prediction, not the label */
    uint64_t seed;   /* 1 */
    int threads;     /* 0: all cores; one per text, or several share one text; results do not depend on it */
    size_t batch;    /* draws of one text asked at once; results do not depend on it; 256 */
    safer_progress progress; /* also how to stop: see safer_progress */
    size_t shard, shards; /* safer_certify: only part `shard` of so many, from 1; zeros: all texts. See safer_merge */
    safer_crew *crew;     /* of safer_certify: processes that share the work; NULL: this one is alone */
    /* Draws delete every token (word, number, mark) so often; zeros: none. Then `certified` refers to so many edits of
     * a kind as well, 1 to SAFER_EDITS (1), beside synonyms in up to `radius` words. docs/edits.md. With the method
     * `groups`, and only then, deletion.groups is how many groups vote; the seed is the key of the hash that sends
     * tokens to groups. docs/groups.md */
    safer_deletion deletion;
    size_t edits;
    safer_edit_kind edit_kind;
} safer_certify_options;

SAFER_OPTIONS(safer_certify_options);

/* What is known of one text. Class numbers are the model's; -1 means none. */
typedef struct safer_certificate {
    const char *id;
    int label;             /* the data's */
    int base;              /* the base model's own answer for the text as it is, folded where the lexicon folds */
    int prediction;        /* the smoothed classifier's; ibp: the base model's */
    int abstained;         /* the vote for the prediction was not clear at level alpha */
    int target;            /* the class that the certificate is about: the label, or the prediction */
    size_t words, slots;   /* in the text, and those of them that may change */
    size_t visible;        /* slots, from the first on, that the model can see before it stops reading */
    int exact;             /* all draws were asked, or all groups: nothing is estimated, if a remote model is a function
                            * of the text */
    uint64_t n;            /* samples of the certificate; 0 when exact */
    const uint64_t *votes; /* of every class; NULL when exact */
    const double *shares;  /* of every class, approximately: votes/n, or the exact shares */
    double bound; /* lower bound on g(target), or on (1 + g(target) - max g)/2 with several classes; ibp: 1 or 0 */
    const double *margins; /* ibp: per class a lower bound on the target's lead, in logits, for all words; else NULL */
    double q[SAFER_RADII]; /* q_X at the reported radii, rounded up */
    int certified_at[SAFER_RADII];
    int certified; /* at the asked radius */
    size_t radius; /* the largest certified one: 0 .. slots - 1, or SAFER_ALL; ibp, unless `additive`: 0 or SAFER_ALL */
    uint64_t
        queries; /* vote_n + n; exact: the enumerated draws, of a remote model twice; groups: those with tokens, and
                       * 1 where any has none */
    double seconds;
    uint64_t vote_n;            /* separate samples that chose the prediction; 0 when exact */
    const uint64_t *vote_votes; /* of every class, in these samples; NULL when exact */

    /* Where draws delete tokens; else zeros. */
    double deletion; /* with which chance, in this text */
    size_t tokens;   /* of the text */
    size_t edits;    /* certified beside synonyms in `radius` words of the options; at most those asked for */
    double q_edits[SAFER_EDITS + 1]; /* q of 0, 1 .. edits of the options, beside these synonyms, rounded up */
    int folded;                      /* the lexicon has a fold: all of the above is about the folded text, base too, */
    int unfolded;                    /* and this is the base model's answer for the text as it was given */
    size_t groups;                   /* that voted: tokens, edits and q_edits are those of groups; 0: none */

    /* ibp, of a model whose words add up (bow without a hidden layer; sums of such and of canonical members). */
    int additive; /* then there is a radius, exact but for rounding errors: one change more can succeed */
    double margin_at[SAFER_RADII]; /* the least lead over any class at the reported radii; else zeros */
} safer_certificate;

/* Certifies one text, for `label` or (label -1) for the prediction. The result's arrays
 * live in `*workspace`, which is made when NULL, reused by further calls of the same
 * thread with the same model, lexicon and options, and ended by
 * safer_workspace_free. A thread that does not round to the nearest (fesetround) is refused. */
typedef struct safer_workspace safer_workspace;
SAFER_API safer_status safer_certify_text(safer_certificate *out, safer_workspace **workspace, const safer_model *model,
                                          const safer_lexicon *lexicon, const char *text, size_t length, int label,
                                          const safer_certify_options *options, safer_error *error);
SAFER_API void safer_workspace_free(safer_workspace *workspace);

/* A certificate of a prediction (label -1) as the JSON object that `safer predict --json` and
 * POST /v1/predict give: the smoothed classifier's answer, or that it abstains, and how far the
 * answer holds; docs/serve.md lists the members. `model` is the one that was certified. *out is one
 * line of UTF-8, without newline, and ends with free(). SAFER_INVALID when the certificate is
 * about another class than the prediction. */
SAFER_API safer_status safer_answer_json(char **out, const safer_certificate *certificate, const safer_model *model,
                                         safer_error *error);

/* A share of texts: part / whole, where there is a whole. */
typedef struct safer_figure {
    const char *name;
    size_t part, whole;
} safer_figure;

/* The texts of one label. */
typedef struct safer_class_summary {
    char *label;
    size_t texts;
    size_t certified, certified_answered; /* of these, as in safer_summary */
    size_t *answers; /* (classes + 1): of these, how many were answered each class; the last: none, it abstained.
                      * NULL where there are more than 1000 classes */
} safer_class_summary;

/* A whole data set in numbers. A text is *answered* when the vote, as it would be deployed, is clear and gives the
 * class that the certificate is about. */
typedef struct safer_summary {
    size_t texts, labelled;
    size_t base_correct, smoothed_correct; /* of the labelled */
    size_t certified; /* of the labelled, for their label, at the asked radius, answered or not: the paper's figure */
    size_t certified_at[SAFER_RADII];
    size_t abstained;     /* predictions without a clear vote */
    size_t exact;         /* texts whose draws were enumerated, or bounded: nothing is estimated */
    size_t without_slots; /* texts in which no word can change: certified trivially when right */
    uint64_t queries, base_queries;
    double seconds; /* of this call */
    size_t resumed; /* records that were there already */

    size_t certified_answered; /* of the certified: the headline */
    size_t certified_answered_at[SAFER_RADII];
    size_t unlabelled_certified;           /* of the texts without a label, for their prediction */
    size_t stable, stable_at[SAFER_RADII]; /* of all texts, certified and answered, right or not */
    size_t certificates;                   /* of all texts, for a label or a prediction, at the asked radius */
    size_t empty;          /* of these, of texts in which the model sees no word that can change: they say nothing */
    int about_predictions; /* the option `unlabelled`: certificates are about predictions */
    int remote;            /* the model is remote: what is exact assumes that it is a function of the text */
    size_t classes;
    safer_class_summary *by_class; /* (classes): the labelled texts */

    /* Where draws delete tokens: how many edits were asked for, and what is certified against 1, 2 .. of them beside
     * synonyms in as many words as were asked for. Else 0. */
    size_t edits;
    safer_edit_kind edit_kind;
    size_t certified_edits[SAFER_EDITS], certified_answered_edits[SAFER_EDITS], stable_edits[SAFER_EDITS];
    int folded;              /* the lexicon has a fold: every spelling that folds to the same text is certified, */
    size_t unfolded_correct; /* and base_correct is about folded texts, this about them as they were given */
    size_t words, slots;     /* in all texts, and those of them that have a synonym */
    int additive;            /* ibp, of a model whose words add up: there are radii between 0 and SAFER_ALL */
} safer_summary;

/* Ends what a summary owns. Zeros are accepted, and NULL. */
SAFER_API void safer_summary_free(safer_summary *summary);

/* The figure that stands for a run: "certified and answered", of the labelled texts. Where certificates are about
 * predictions, or no text has a label: "stable", of all texts. */
SAFER_API safer_figure safer_summary_headline(const safer_summary *summary);

/* What is left of the recall and precision of a class, below `classes`, when an attacker changes every text as he
 * likes, within the asked radius. Recall: of the texts of the class, those certified and answered. Precision: those, of
 * themselves and all texts of other labels that are not certified and answered. docs/certify.md has the reasons. */
SAFER_API safer_figure safer_summary_recall(const safer_summary *summary, size_t class_number);
SAFER_API safer_figure safer_summary_precision(const safer_summary *summary, size_t class_number);

/* Whether the figures of a run say little, because most of its certificates are empty, or because fewer than a tenth of
 * the words (of 100 at least) can change. Then `text` gets a sentence that
 * says so, cut to `size` bytes, which belongs before any figure; else "". */
SAFER_API int safer_summary_caution(const safer_summary *summary, char *text, size_t size);

/* Certifies every text and writes `output`: the configuration first, then one record per text in the data's order,
 * each flushed whole. With `resume` an output of the same configuration is continued after its last whole record;
 * without, an existing file is an error. Where a remote model is found to change its answers the run fails, and the
 * output is renamed to OUTPUT.changed: it cannot be continued. `output` may be NULL: no records. `out`, which may be
 * NULL too, ends with safer_summary_free. A helper of a crew (safer/crew.h) gives NULL for `data`, and nothing comes
 * back through `out`. */
SAFER_API safer_status safer_certify(safer_summary *out, const char *output, int resume, const safer_model *model,
                                     const safer_lexicon *lexicon, const safer_data *data,
                                     const safer_certify_options *options, safer_error *error);

/* One machine can do a part of a run, another the next: part K of N has of every N texts the K-th, from 1. Its records
 * are those of the whole run, in a file that says which part it is. This reads what `--shard` takes: "K/N"; "auto": the
 * place of this task in an array of Slurm; "auto/N": the number of this task in such an array (from 1), or of this pod
 * in an indexed Job of Kubernetes (from 0). SAFER_INVALID says what is wrong. */
SAFER_API safer_status safer_shard_parse(size_t *shard, size_t *shards, const char *text, safer_error *error);

/* Puts the parts of a run, of safer_certify or safer_attack, together: `output` gets the very bytes that one run would
 * have written, but for "seconds", which are the parts', and the date, which is that of the part that was begun first.
 * The parts may come in any order. That they belong together, that none is missing, given twice or unfinished, and
 * every seal is checked; decisions are not (safer_verify). `output` is written whole or not at all, and is none of the
 * parts. Memory does not grow with the number of records. `records`, which may be NULL, gets their number. */
SAFER_API safer_status safer_merge(size_t *records, const char *output, const char *const *parts, size_t count,
                                   const safer_progress *progress, safer_error *error);

/* The draws of a text that a certificate with this seed asks about, `count` of them from
 * number `first` on, in order, one call each. Nonzero from `each` ends it with SAFER_CALLBACK. */
typedef enum safer_stage {
    SAFER_STAGE_SELECTION,    /* the samples, at most n0, that choose the prediction */
    SAFER_STAGE_CERTIFICATION /* the certificate's own */
} safer_stage;
SAFER_NAMED(safer_stage); /* "selection", "certification" */
typedef int (*safer_draw_function)(void *context, uint64_t index, const char *text, size_t length);
SAFER_API safer_status safer_draw(const safer_lexicon *lexicon, const char *text, size_t length, safer_stage stage,
                                  uint64_t seed, uint64_t first, uint64_t count, safer_draw_function each,
                                  void *context, safer_error *error);

/* The same where tokens (words, numbers, marks) are deleted besides. Those that are kept have one space between
 * them. With groups the draws are the texts of the groups, from number 0; there are no others, and `stage` does not
 * matter. */
SAFER_API safer_status safer_draw_deleting(const safer_lexicon *lexicon, const char *text, size_t length,
                                           safer_deletion deletion, safer_stage stage, uint64_t seed, uint64_t first,
                                           uint64_t count, safer_draw_function each, void *context, safer_error *error);

/* Wilson's 95% interval for a share of `part` in `whole` texts: how far a figure of this
 * data set may lie from the one of its source. whole >= 1. */
SAFER_API void safer_interval(size_t part, size_t whole, double *low, double *high);

/* What was found of a run: its totals, the version of its format, at which radius and with which chances of error it
 * claims them, and what was checked and what was not, in phrases: lists that end with NULL. The phrases live for
 * ever. */
#define SAFER_PHRASES 12
typedef struct safer_verification {
    safer_summary summary; /* ends with safer_summary_free */
    int format;
    safer_method method;
    size_t radius;       /* what `certified` refers to */
    double delta, alpha; /* as asked; 0 for ibp and groups, which cannot err by chance */
    int family_wise;     /* delta covers all texts together */
    const char *checked[SAFER_PHRASES], *not_checked[SAFER_PHRASES];
    size_t shard, shards;    /* which part of a run it is, from 1; zeros: a whole run */
    safer_deletion deletion; /* zeros: nothing is deleted, and there are no edits */
    size_t edits;            /* what `certified` refers to besides */
    safer_edit_kind edit_kind;
} safer_verification;

/* Recomputes every decision of a run, or of a part of one, from its records. With the lexicon and the data (both or
 * none) also what the records say of the texts: ids, labels, words, slots, q, and the totals of exact certificates;
 * with the model too (only together with these), all draws and answers. The first record that
 * does not hold is an error that names its line. `out` may be NULL. */
SAFER_API safer_status safer_verify(safer_verification *out, const char *path, const safer_model *model,
                                    const safer_lexicon *lexicon, const safer_data *data, int threads,
                                    const safer_progress *progress, safer_error *error);

/* The same, but the model, which must be given, is asked by all ranks of a crew. On a helper `path` and `data` are not
 * looked at, and `out` is not written. */
SAFER_API safer_status safer_verify_crew(safer_verification *out, const char *path, const safer_model *model,
                                         const safer_lexicon *lexicon, const safer_data *data, int threads,
                                         safer_crew *crew, const safer_progress *progress, safer_error *error);

/* Ways to train a classifier, tried on the same labelled texts: which kernel suits a lexicon, which architecture the
 * texts. The texts of each class are dealt to five parts. For each part a model learns from the other four and
 * certifies it: every text is certified once, by a model that has not seen it. Text by text a way is compared with
 * the best before it, and taken instead of it if it is better by more than chance (McNemar's exact test, one-sided, at
 * 5%). */
#define SAFER_TRIALS 4

/* One way that was tried. */
typedef struct safer_trial {
    char name[16];           /* of the kernel, of the architecture */
    size_t texts;            /* that were certified: after a part in which it is clearly worse (p 0.001) no more are */
    size_t smoothed_correct; /* of these */
    size_t certified_answered; /* of these, as in safer_summary, for any number of words */
    size_t won, lost; /* texts certified and answered by it alone, and by the best one before it alone; 0, 0 of the
                       * first */
    double p_value;   /* the chance of winning so many or more if both were equally good, rounded up; 1 of the first */
    uint64_t queries;
    double seconds; /* training included */
} safer_trial;

/* What was tried, and what came of it. */
typedef struct safer_choice {
    const char *untried;    /* why nothing was tried, and the first way was taken (static); NULL: it was */
    size_t labelled;        /* texts of the data that have a label */
    size_t texts, held_out; /* of these, used, and held out in one part: all but those of classes of fewer than five */
    size_t trial_count, best;
    safer_trial trials[SAFER_TRIALS];
} safer_choice;

typedef struct safer_choose_options {
    size_t size;
    size_t most_texts; /* of more labelled texts so many are used, chosen at random; 10000, at least 200 */
    uint64_t seed;     /* of that choice, the training and the draws; 1 */
    int threads;       /* 0: all cores; the result does not depend on it */
    safer_progress progress;
} safer_choose_options;

SAFER_OPTIONS(safer_choose_options);

/* The same words and synonyms with a kernel that was found by trials with n-gram classifiers: "representative",
 * "component" and, where a component has more words than that, "topk:100" and "topk:250", in this order. The lexicon's
 * provenance says so ("kernel_choice"). Give training data: what is chosen on test data looks too good on them. Where
 * nothing can be tried (`data` is NULL, has fewer than two classes or 200 labelled texts, or no class with 20; no word
 * has a synonym) it is "representative". Models are kept in a temporary folder ($TMPDIR, or /tmp) meanwhile. `choice`
 * may be NULL. */
SAFER_API safer_status safer_lexicon_choose(safer_lexicon **out, safer_choice *choice, const safer_lexicon *lexicon,
                                            const safer_data *data, const safer_choose_options *options,
                                            safer_error *error);

/* safer_train with an architecture that was found by trials on options->train: "ngram", then, with pretrained vectors
 * (cnn.vectors), "bow" and "cnn". Then it is trained on all of these texts, with options->dev if given; options->arch
 * is not looked at. What cheap architectures have no use for (encoder, device, defense, resuming) is refused. Where
 * nothing can be tried (as above; there are no vectors, or no lexicon; draws delete) it is "ngram". The model's
 * provenance has what was tried ("arch_choice"). `choice` and `report` may be NULL. */
SAFER_API safer_status safer_train_choose(const char *output, const safer_train_options *options, safer_choice *choice,
                                          safer_train_report *report, safer_error *error);

#ifdef __cplusplus
}
#endif
#endif
