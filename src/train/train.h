/* Training: what the architectures share. */
#ifndef SF_TRAIN_TRAIN_H
#define SF_TRAIN_TRAIN_H

#include "lexicon/lexicon.h"

/* One per family; called by safer_train after the options were checked. */
typedef safer_status sf_trainer(const char *output, const safer_train_options *options, safer_train_report *report,
                                safer_error *error);
sf_trainer sf_ngram_train;
sf_trainer sf_cnn_train; /* bow and cnn */
sf_trainer sf_ibp_train; /* these with a defense */
sf_trainer sf_charcnn_train;
sf_trainer sf_bert_train;
sf_trainer sf_context_train;

/* Refuses what safer_train would refuse before any work. */
safer_status sf_train_check(const char *output, const safer_train_options *options, safer_error *error);

/* The option as a number; SIZE_MAX: all. */
size_t sf_train_layers(const safer_train_options *options);

/* Which rows are learned from and which only measured. With options->dev: all rows of
 * both. Without: every 10th row of each class of train (the 10th, 20th, ...) is held out. */
typedef struct sf_train_split {
    const safer_data *fit_data, *dev_data; /* borrowed; the same set without options->dev */
    size_t *fit, *dev;                     /* row numbers, ascending */
    size_t fit_count, dev_count;           /* at least 1 each */
} sf_train_split;

safer_status sf_train_split_make(sf_train_split *out, const safer_train_options *options, safer_error *error);
void sf_train_split_free(sf_train_split *split); /* an all-zero split is fine */

/* JSON for the metadata: the labels of a data set; what a model was trained with (the
 * lexicon's hash in hexadecimal and its kernel, or null; the seed), to be stored under
 * "labels" and "trained_with". Owned by the caller, NULL without memory. */
char *sf_train_labels_json(const safer_data *data);
char *sf_train_provenance_json(const safer_train_options *options);

#endif
