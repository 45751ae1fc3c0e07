/* What all methods share: where the search stands, a batch of texts to ask about, what came of
 * it. A method is a function that moves through the choices until it has won or has nothing
 * left to try. */
#ifndef SF_ATTACK_SEARCH_H
#define SF_ATTACK_SEARCH_H

#include "attack/victim.h"
#include "base/rng.h"

typedef struct sf_search {
    sf_victim *victim;
    const safer_attack_options *options;
    int claimed;        /* a certificate is attacked: a text that folds to another one is none that it speaks of */
    int cross_check;    /* everything that is found goes through the test on fresh draws */
    double level;       /* of those tests, all of a text together */
    int looks;          /* of each */
    unsigned confirmed; /* how many tests there were */
    size_t flips;       /* texts on which the votes went wrong */

    size_t slots, radius;
    uint32_t *open; /* the slots that have a choice and may matter */
    size_t open_count, open_capacity;
    int matters;      /* some change can change the answer: else all new texts are the same to the classifier */
    sf_stream stream; /* of the method's own choices */
    sf_answer start;  /* about the text as it is */

    uint32_t *batch;    /* (count, slots): what to ask about next */
    sf_answer *answers; /* (answered) */
    size_t count, answered;
    size_t batch_capacity, answer_capacity;

    uint32_t *before, *after; /* (words): of the text and of a new one, in the lexicon, where they must be alike */
    size_t before_capacity, after_capacity;

    uint32_t *best; /* (slots): the changed text with the lowest margin so far, */
    sf_answer best_answer;
    int has_best;
    size_t best_capacity;
    int won;            /* and it is adversarial */
    sf_finding finding; /* of the test that said so */
    int stopped;        /* max_queries were used up */
} sf_search;            /* zero-initialise; reused from text to text */

void sf_search_free(sf_search *search);

/* Begins with the text that the victim has read and the class to keep from winning (-1: the
 * answer, whatever it is). Asks one question, whose answer is `start`; none when stopped. */
safer_status sf_search_begin(sf_search *search, sf_victim *victim, const safer_attack_options *options, int target,
                             safer_error *error);

/* Forgets what a method found, so that another can begin at the same text. */
void sf_search_again(sf_search *search);

/* Adds a text to ask about, a copy of `choices`; NULL without memory. The pointer is good until
 * the next one is added. */
uint32_t *sf_search_add(sf_search *search, const uint32_t *choices);

/* Whether the text with these choices, none of them SF_REMOVED, is alike enough. */
int sf_search_alike(sf_search *search, const uint32_t *choices);

/* The text that was added last is written. Whether it stays: it is taken back when it is not alike enough. */
int sf_search_settle(sf_search *search);

/* What the i-th answer is about. */
static inline const uint32_t *sf_search_row(const sf_search *search, size_t i)
{
    return search->batch + i * search->slots;
}

/* Asks about the batch and empties it, but for the answers; keeps track of the best. */
safer_status sf_search_ask(sf_search *search, safer_error *error);

/* Which of the answers about `first` .. answered-1 to take as the adversarial text. */
typedef enum sf_pick {
    SF_LOWEST, /* the lowest score of the target */
    SF_FIRST
} sf_pick;

/* Looks for an answer that is wrong; tests it where votes are only a sample. Then won. */
safer_status sf_search_harvest(sf_search *search, sf_pick pick, safer_error *error);

/* Tests the best text, whatever its votes were; all-zero without one. */
safer_status sf_search_test(sf_search *search, const uint32_t *choices, int rival, safer_error *error);

size_t sf_search_changed(const sf_search *search, const uint32_t *choices);

/* How much the target loses when the word of each open slot is taken out (plus what the new
 * class gains, when the answer changes): (open_count). *complete: all could be asked. */
safer_status sf_search_importance(double *importance, int *complete, sf_search *search, int with_gain,
                                  safer_error *error);

/* A ranking: numbers 0 .. count-1 by falling value, equals by number. */
typedef struct sf_ranked {
    double value;
    size_t number;
} sf_ranked;
void sf_rank(sf_ranked *ranked, size_t count);

typedef safer_status (*sf_attack_function)(sf_search *search, safer_error *error);
safer_status sf_attack_textfooler(sf_search *search, safer_error *error);
safer_status sf_attack_genetic(sf_search *search, safer_error *error);
safer_status sf_attack_pwws(sf_search *search, safer_error *error);
safer_status sf_attack_random(sf_search *search, safer_error *error);
extern const sf_attack_function sf_attack_functions[SAFER_ATTACKS];

#endif
