/* A labelled set of texts, from the inside.
 *
 * Ids and texts lie terminated in one arena and rows hold offsets into it, so that a
 * set is three allocations however many rows it has. This room knows files and formats;
 * it may not know what the texts are for. */
#ifndef SF_DATA_DATA_H
#define SF_DATA_DATA_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/words.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sf_row {
    size_t id, text; /* where they begin in the arena */
    size_t text_length;
    uint32_t label; /* SF_NONE when the row has none */
} sf_row;

struct safer_data {
    sf_buffer arena;
    sf_row *rows;
    size_t count, capacity;
    sf_words labels; /* in the order they were met */
    uint32_t *order; /* order[k]: the number in `labels` of the k-th in ascending order */
    char *name;      /* of the file; NULL: from memory */

    /* The one thing that changes behind a const set: computed when it is first asked for. */
    pthread_mutex_t lock;
    sf_digest sha256;
};

/* An empty set; NULL without memory. */
safer_data *sf_data_new(void);

/* Ids, labels and texts as one number, as runs of format 1 name the data they are about. */
uint64_t sf_data_hash(const safer_data *data);

/* Negative, zero or positive: numbers (digits, perhaps after a '-') by value before
 * all others by bytes. Zero only for equal strings. */
int sf_label_compare(const char *a, const char *b);

/* Puts the labels in ascending order and rewrites the rows' labels to positions in it. */
safer_status sf_data_sort_labels(safer_data *data, safer_error *error);

/* ------------------------------------------------------------- sampling */

typedef struct sf_sample {
    enum { SF_SAMPLE_ALL, SF_SAMPLE_EVERY, SF_SAMPLE_RANDOM } kind;
    uint64_t count; /* at least 1, when not ALL */
} sf_sample;

/* "every:N", "random:N" or NULL. */
safer_status sf_sample_parse(sf_sample *out, const char *text, safer_error *error);

/* Drops the rows that the sample, then the limit (0: none), leave out, and what they
 * occupied. Labels stay. After sf_data_sort_labels. */
safer_status sf_data_sample(safer_data *data, sf_sample sample, uint64_t seed, size_t limit, safer_error *error);

/* --------------------------------------------------------------- formats */

/* Which format a file called NAME with these contents has. Never a folder. */
safer_status sf_format_detect(safer_format *out, const char *name, const char *bytes, size_t length,
                              safer_error *error);

/* safer_data_load for a file already in memory; `name` is what messages call it.
 * The options' format is not looked at. */
safer_status sf_data_parse(safer_data **out, safer_format format, const char *bytes, size_t length, const char *name,
                           const safer_data_options *options, safer_error *error);

#endif
