/* What is attacked: a text, the words that may stand in its slots, and one question: what does
 * the classifier say when these words stand there?
 *
 * The classifier is the model itself, or the smoothed one. An attack sees no more of it than
 * the answers below, and cannot distinguish the two. Everything asked is remembered for as long
 * as the text is the same: nothing is asked twice, and nothing counts twice. */
#ifndef SF_ATTACK_VICTIM_H
#define SF_ATTACK_VICTIM_H

#include "attack/likeness.h"
#include "attack/shadow.h"
#include "base/table.h"
#include "draw/sampler.h"
#include "model/model.h"
#include "stats/exact.h"

#define SF_REMOVED UINT32_MAX /* a choice: the word is taken out. Never part of an adversarial text */

typedef struct sf_victim_options {
    int smoothed;
    uint64_t n;              /* draws that vote on a text; texts with no more draws are enumerated */
    safer_deletion deletion; /* smoothed: draws delete tokens so often; zeros: none. Groups: n is their number, */
    uint64_t key;            /* and this the key of their hash */
    uint64_t max_queries;    /* 0: any number */
    uint64_t seed;
    size_t batch;
    int ties_lose;               /* the target must win strictly, as a certificate says it does */
    const sf_likeness *likeness; /* what replacements must have in common with the words; NULL: nothing */
} sf_victim_options;

/* What is said of one text. */
typedef struct sf_answer {
    int label;     /* the winner, or SF_NO_LABEL */
    int exact;     /* it cannot be otherwise: no draw decided it */
    int refuted;   /* fresh draws did not confirm it */
    int rival;     /* the strongest class but the target */
    double score;  /* the target's */
    double margin; /* the target's less the rival's */
    double top;    /* the winner's */
} sf_answer;

/* A word that may stand in a slot. */
typedef struct sf_item {
    uint32_t word;       /* in the lexicon */
    uint32_t row;        /* of the kernel: words with the same row are the same to the smoothed classifier */
    sf_draw_rule rule;   /* smoothed only, */
    const uint32_t *map; /* with the shadow's index of each draw */
} sf_item;

/* What was asked, and the answer. */
typedef struct sf_memory {
    uint32_t *keys;       /* (count, slots): choices, or kernel rows when smoothed */
    int *labels;          /* (count) */
    unsigned char *flags; /* (count): EXACT, REFUTED in victim.c */
    float *scores;        /* (count, classes) */
    sf_hashtable table;   /* of their numbers; a random model's answers are not looked up */
    size_t count, slots;
    size_t key_capacity, label_capacity, flag_capacity, score_capacity;
} sf_memory;

typedef struct sf_victim {
    const safer_model *model;
    const safer_lexicon *lexicon;
    sf_victim_options options;
    void *scratch; /* the model's */

    sf_slots slots;
    uint32_t *first; /* (slots+1): where a slot's items begin; the first is the text's own word */
    sf_item *items;
    size_t first_capacity, item_capacity;
    size_t visible;     /* slots that a change can matter in */
    uint32_t *token_of; /* (slots): the token of each, where draws delete, or groups vote */
    size_t token_capacity;
    int target; /* the class to keep from winning; -1: not known yet */

    sf_shadow shadow; /* smoothed: one preparation for all texts in reach */
    void *prepared;
    sf_sampler sampler;
    sf_tally tally;
    uint64_t *votes;          /* (classes) */
    uint32_t *draws, *mapped; /* (batch, width) */
    size_t draw_capacity, mapped_capacity;

    sf_memory memory;
    sf_buffer *texts;  /* (batch) rendered */
    sf_span *spans;    /* (batch) */
    int *labels;       /* (batch) */
    uint32_t *waiting; /* (batch): memories that these texts answer */
    float *scores;     /* (batch, classes) */
    uint32_t *numbers; /* of the texts of a call */
    size_t number_capacity;
    sf_buffer check_text;
    sf_slots check_slots;

    uint64_t queries; /* of this text, by the search, */
    uint64_t checks;  /* and by sf_victim_confirm */
    int exhausted;    /* an answer was refused because max_queries were used up */
} sf_victim;

safer_status sf_victim_new(sf_victim **out, const safer_model *model, const safer_lexicon *lexicon,
                           const sf_victim_options *options, safer_error *error);
void sf_victim_free(sf_victim *victim); /* NULL is fine */

/* The next text, which must outlive it. Nothing is asked yet. */
safer_status sf_victim_read(sf_victim *victim, const char *text, size_t length, safer_error *error);

/* Makes a text that was read ready to be drawn: splits it into tokens where the classifier's draws delete them, or
 * groups of them vote, and prepares a sampler. */
safer_status sf_victim_draw(const sf_victim *victim, sf_slots *slots, sf_sampler *sampler, safer_error *error);

/* Whether the model is prepared for texts, or asked about each draw as a text. */
static inline int sf_victim_prepares(const sf_victim *v)
{
    return v->model->class->prepare && (v->model->class->deletes || !sf_deletes(v->options.deletion));
}

/* How many words may stand in a slot, its own included. */
static inline uint32_t sf_victim_choices(const sf_victim *v, size_t slot)
{
    return v->first[slot + 1] - v->first[slot];
}

/* Answers about `count` texts: choices (count, slots), 0 for the text's own word. They come in
 * order; *answered is less than count when max_queries do not suffice. */
safer_status sf_victim_ask(sf_answer *answers, size_t *answered, sf_victim *victim, const uint32_t *choices,
                           size_t count, safer_error *error);

/* An answer of the model itself, with its scores (classes), about the class that must not win. */
sf_answer sf_victim_answer(int label, const float *scores, size_t classes, int target);

/* Of the texts of the last call, number i was not confirmed by fresh draws. */
void sf_victim_refute(sf_victim *victim, size_t i);

/* The answer about the first text that was asked about, for the target as it is now; and what
 * was said of a class. */
sf_answer sf_victim_start(const sf_victim *victim);
double sf_victim_start_score(const sf_victim *victim, int label);

/* Appends the text with these words in it. 0, or -1 when memory is out. */
int sf_victim_render(sf_buffer *out, const sf_victim *victim, const uint32_t *choices);

/* *folds: whether the text that these choices make is one that the lexicon's fold changes. */
safer_status sf_victim_folds(int *folds, sf_victim *victim, const uint32_t *choices, safer_error *error);

/* Smoothed: what fresh draws say, made as the deployed classifier would make them for the
 * rendered text. */
typedef struct sf_finding {
    int beaten;     /* the target does not win */
    int exact;      /* by enumeration, else a test rejects that it wins */
    uint64_t draws; /* looked at */
    double p_value; /* of the test, not corrected for the looks; 0 or 1 when exact */
} sf_finding;

/* Tests whether `rival`, chosen beforehand, beats the target. `level` is for all `looks`
 * together, at n, 4n, 16n ... draws. */
safer_status sf_victim_confirm(sf_finding *out, sf_victim *victim, const uint32_t *choices, int rival, double level,
                               int looks, safer_error *error);

/* The votes of one text in reach of the attack, as float shares; see smoothed.c. *cost is what
 * it takes to know, and nothing is asked when scores is NULL. */
safer_status sf_victim_vote(float *scores, int *label, int *exact, uint64_t *cost, sf_victim *victim,
                            const uint32_t *choices, safer_error *error);

#endif
