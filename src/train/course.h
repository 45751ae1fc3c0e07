/* A course of training: what bow, cnn, charcnn and bert share.
 *
 * Epochs of mini-batches in an order drawn afresh for each; after every epoch the model is
 * measured on dev texts, and the best epoch is kept. All randomness is a function of the
 * seed and of counters, so the whole state of a course is: the trained parameters, Adam's
 * moments, the best parameters so far and a few numbers. That is the checkpoint. It is
 * written beside the output after every epoch, every few minutes and when the course is
 * interrupted; going on from it gives the same file as never having stopped. */
#ifndef SF_TRAIN_COURSE_H
#define SF_TRAIN_COURSE_H

#include "base/progress.h"
#include "train/train.h"

typedef struct sf_course {
    /* Set before it begins. */
    const safer_train_options *options;
    size_t texts;      /* to learn from */
    float *parameters; /* (size): what is trained; borrowed */
    size_t size;
    int falls;            /* the rate rises over the share `warmup` of the steps, then falls to 0 */
    uint64_t fingerprint; /* of everything that decides how it goes: another course's checkpoint is refused */

    /* One step with texts[0..count-1] at this rate: update the parameters, add the loss of
     * each text to *loss. epoch and steps (from 1) below are those of the step. */
    safer_status (*step)(struct sf_course *course, const uint32_t *texts, size_t count, double rate, double *loss,
                         safer_error *error);
    /* The share of dev texts the present parameters get right. */
    safer_status (*measure)(struct sf_course *course, double *accuracy, safer_error *error);
    /* Writes the model file. */
    safer_status (*save)(struct sf_course *course, const char *output, const char *labels, const char *trained_with,
                         safer_error *error);
    /* The parameters were changed from outside; may be NULL. */
    void (*changed)(struct sf_course *course);
    void *context;

    /* The state. */
    uint64_t steps;
    int epoch, best_epoch; /* done, from 1 */
    double best_accuracy;
    double loss, loss_sum; /* mean of the last epoch; of this one so far */

    uint64_t first_step; /* what `steps` was when this run began */
    double seconds;      /* that its epochs took */

    /* Its own. */
    float *means, *variances, *best; /* (size) */
    uint32_t *order;
    char *checkpoint;
    double saved_at;
    char stage[160];
    sf_meter meter;
} sf_course;

/* Runs from the beginning or, with options->resume, from the checkpoint beside `output`. In
 * the end the parameters are those of the best epoch; they are saved, and the checkpoint goes. */
safer_status sf_course_run(sf_course *course, const char *output, safer_error *error);

/* What there is to say of it; times are the caller's. */
safer_train_report sf_course_report(const sf_course *course, uint64_t tokens, size_t parameters);

void sf_course_free(sf_course *course);

/* The texts, labels and lexicon of a split, hashed on from `hash`. */
uint64_t sf_course_hash(const sf_train_split *split, const safer_train_options *options, uint64_t hash);

#endif
