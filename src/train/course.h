/* A course of training: what bow, cnn, charcnn and bert share.
 *
 * Epochs of mini-batches, in a new random order for each; after every epoch the model is
 * measured on dev texts, and the best epoch is kept. All randomness is a function of the
 * seed and of counters, so the whole state of a course is: the trained parameters, Adam's
 * moments, the best parameters so far and a few numbers. That is the checkpoint. It is
 * written beside the output after every epoch, every few minutes and when the course is
 * interrupted; a run resumed from it gives the same file as one that never stopped.
 *
 * An architecture has a trainer, a struct of its own that begins with an sf_course, and methods: how
 * to start, take a step, measure and save. */
#ifndef SF_TRAIN_COURSE_H
#define SF_TRAIN_COURSE_H

#include "base/progress.h"
#include "train/train.h"

typedef struct sf_course sf_course;

typedef struct sf_course_methods {
    size_t size; /* bytes of the trainer, which begins as zeros behind its course */
    /* Reads the texts, makes the network, and sets what the course must know of them. */
    safer_status (*start)(sf_course *course, safer_error *error);
    /* One step with texts[0..count-1] at this rate: updates the parameters, adds the loss of each
     * text to *loss and what was read to course->read. epoch and steps (from 1) are the step's. */
    safer_status (*step)(sf_course *course, const uint32_t *texts, size_t count, double rate, double *loss,
                         safer_error *error);
    /* The share of dev texts the present parameters get right. */
    safer_status (*measure)(sf_course *course, double *accuracy, safer_error *error);
    /* Writes the model file. */
    safer_status (*save)(sf_course *course, const char *output, const char *labels, const char *trained_with,
                         safer_error *error);
    /* A trainer whose state is not in the arrays of the course, all NULL else: brings parameters, means and variances
     * there up to date; takes over those that were read from a checkpoint. */
    safer_status (*fetch)(sf_course *course, safer_error *error);
    safer_status (*changed)(sf_course *course, safer_error *error);
    /* Frees what the trainer owns, however far it came. */
    void (*free)(sf_course *course);
} sf_course_methods;

struct sf_course {
    const sf_course_methods *methods;
    const safer_train_options *options;
    const void *plan; /* what this trainer needs besides the options, or NULL */

    /* Set by `start`. */
    size_t texts;      /* to learn from */
    float *parameters; /* (size): what is trained; borrowed */
    size_t size;
    size_t model_size;    /* parameters of the whole model */
    uint64_t tokens;      /* words, characters or pieces of the texts; 0: report those that were read */
    int falls;            /* the rate rises over the share `warmup` of the steps, then falls to 0 */
    uint64_t fingerprint; /* of everything that decides how it goes: another course's checkpoint is refused, */
    const char *other;    /* what else than options or data it may be of, for that message; or NULL */

    /* The state. */
    uint64_t steps;
    int epoch, best_epoch; /* done, from 1 */
    double best_accuracy;
    double loss, loss_sum; /* mean of the last epoch; of this one so far */

    /* Of this run, which may have resumed an earlier one. */
    uint64_t read;  /* tokens */
    double seconds; /* that its epochs took */

    /* Its own. */
    float *means, *variances, *best; /* (size) */
    uint32_t *order;
    char *checkpoint;
    double saved_at;
    char stage[160];
    sf_meter meter;
};

/* Trains: starts, runs from the first step or, with options->resume, from the checkpoint beside
 * `output`, and reports. In the end the parameters are those of the best epoch; they are saved, and
 * the checkpoint is removed. */
safer_status sf_course_train(const sf_course_methods *methods, const void *plan, const char *output,
                             const safer_train_options *options, safer_train_report *report, safer_error *error);

/* Of the numbers that decide how a course goes, the first parameters (size), the seed, the texts and labels of the
 * split, and the lexicon. */
uint64_t sf_course_fingerprint(const double *numbers, size_t count, const float *parameters, size_t size,
                               const sf_train_split *split, const safer_train_options *options);

#endif
