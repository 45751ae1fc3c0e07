/* Training of `charcnn`: what the options of safer_train do not say. */
#ifndef SF_TRAIN_CHARCNN_TRAIN_H
#define SF_TRAIN_CHARCNN_TRAIN_H

#include "train/train.h"

typedef struct sf_charcnn_plan {
    size_t features, hidden; /* small: 256, 1024; large: 1024, 2048 */
    double smoothing;        /* of the labels */
    /* How a training text is changed beside the draws of its slots: */
    double blanked; /* share of its runs between blanks that are blanked */
    double moved;   /* probability to begin anywhere, so that its end may be read */
    int shift;      /* fewer than so many of its first characters are left out */
} sf_charcnn_plan;

/* The plan of sf_charcnn_train (train/train.h) ... */
sf_charcnn_plan sf_charcnn_plan_of(const safer_train_options *options);

/* ... and the same training by another. */
safer_status sf_charcnn_train_plan(const char *output, const safer_train_options *options, const sf_charcnn_plan *plan,
                                   safer_train_report *report, safer_error *error);

#endif
