/* Several models that differ in their seed alone, and their sum. */
#ifndef SF_TRAIN_SEEDS_H
#define SF_TRAIN_SEEDS_H

#include "train/train.h"

/* The number of seeds, and whether `output` can name their sum. */
safer_status sf_seeds_check(const char *output, const safer_train_options *options, safer_error *error);

/* safer_train for options->seeds > 1, after all was checked. */
safer_status sf_seeds_train(const char *output, const safer_train_options *options, safer_train_report *report,
                            safer_error *error);

#endif
