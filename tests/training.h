/* What tests of training share: reviews, synonyms and vectors to learn from, and what holds of every training: threads
 * do not matter, stopped runs are resumed, other options are refused, memory may run out, draws answer as texts do. */
#ifndef TESTS_TRAINING_H
#define TESTS_TRAINING_H

#include "draw/slots.h"
#include "model/model.h"
#include "support.h"

/* Texts whose class is that of their good or bad words, among others; with `rare` half of
 * the others are words of three random letters. */
safer_data *make_reviews_with(size_t rows, int rare);
safer_data *make_reviews(size_t rows);

/* Synonyms of some of their words; "splendid" and "flick" are in no review. */
safer_lexicon *make_review_lexicon(const char *kernel);

/* The path of vectors of four numbers for five of their words. The string is static. */
const char *make_review_vectors(void);

/* safer_train, or a function that trains as it does in a smaller way. The report may be NULL. */
typedef safer_status (*trainer)(const char *output, const safer_train_options *options, safer_train_report *report,
                                safer_error *error);

/* So many texts were learned from, more than so many tokens and parameters; one of the epochs is kept; there are
 * times. */
void check_report(const safer_train_report *report, size_t texts, size_t tokens, size_t parameters);

/* The model knows good reviews from bad ones. */
void check_learned(const safer_model *model);

/* 1, 2 and 5 threads write the same file; another seed makes another model. */
void check_threads_do_not_matter(trainer train, const safer_train_options *options);

/* Where a run is stopped. */
typedef struct stop_point {
    const char *stage; /* when this is told; or (NULL) */
    uint64_t texts;    /* when so many have been learned from */
    int checkpoint;    /* whether there is a checkpoint then */
} stop_point;

/* A run stopped at each of these points and resumed writes what an undisturbed one writes, and reports it; until it
 * has ended there is no model, and afterwards no checkpoint. `texts`: those that are learned from. */
void check_stopped_runs_are_resumed(trainer train, const safer_train_options *options, size_t texts,
                                    const stop_point *stops, size_t count);

/* A checkpoint left behind at `stage` serves its own run alone: with each of the other options, and when it is cut
 * short, resuming fails; a fresh start does not look at it. */
void check_other_options_are_refused(trainer train, const safer_train_options *options, const char *stage,
                                     const safer_train_options *others, size_t count);

/* Every allocation of a training fails once, and so does the training; with `may_finish` it may also do without. */
void check_training_memory(trainer train, const safer_train_options *options, int may_finish);

/* Draws from a text are answered as the texts are that they stand for, all at once and one by one: the same labels and,
 * where `logits` finds those of the last text in a scratch, the same logits. `scores`, when not NULL, gets those of the
 * texts, (count, classes). */
typedef const float *(*logits_function)(const void *scratch);
void check_draws(const safer_model *model, const safer_lexicon *lexicon, const sf_slots *slots, const uint32_t *draws,
                 size_t count, logits_function logits, float *scores);

/* What can be wrong with a model file. */
typedef enum spoiling {
    LEFT_OUT,     /* the tensor is */
    SHORTENED,    /* by one number, and has one dimension */
    NOT_A_NUMBER, /* is one of its numbers */
    NEGATIVE,     /* is its first */
    UNENDED,      /* its last byte is a letter */
    METADATA      /* the value of a key is another */
} spoiling;

/* Copies a model file with one tensor, or one value of its metadata, spoiled. Returns the path of the copy. */
const char *spoil(const char *path, const char *name, spoiling how, const char *value);

/* Prepares a text, samples one draw of it and classifies it, for check_every_allocation. */
safer_status use_model(const safer_model *model, const safer_lexicon *lexicon, safer_error *error);

#endif
