/* A labelled set of texts, from the inside.
 *
 * In memory, ids and texts lie terminated in one arena and rows hold offsets into it, so that a
 * set is three allocations however many rows it has. On the disk, ids and texts stay in their file, and 16 bytes
 * per row say where (sf_place); a reader takes a row apart again when it is asked for. This room knows files and
 * formats; it may not know what the texts are for. */
#ifndef SF_DATA_DATA_H
#define SF_DATA_DATA_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/source.h"
#include "base/words.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sf_row {
    size_t id, text; /* where they begin in the arena */
    size_t text_length;
    uint32_t label; /* SF_NONE when the row has none */
} sf_row;

/* Where a row of a set on the disk is. */
typedef struct sf_place {
    uint64_t begin;  /* in the file */
    uint32_t number; /* of the row there, from 1: its id when it has none */
    uint32_t label;  /* SF_NONE when the row has none */
} sf_place;

/* What the first record says of a CSV or TSV file: header.c. */
typedef struct sf_table_head {
    size_t columns;             /* of every record; 0: it was not read yet */
    size_t line;                /* where it is */
    int id, label, title, text; /* their columns */
    int zhang;                  /* CSV without header */
    char separator;             /* of CSV: ',' (or 0), ';' or a tab */
} sf_table_head;

struct safer_data {
    sf_buffer arena;
    sf_row *rows; /* of a set in memory, or */
    sf_place *places;
    size_t count, capacity;
    sf_words labels; /* in the order they were met */
    uint32_t *order; /* order[k]: the number in `labels` of the k-th in ascending order */
    char *name;      /* of the file; NULL: from memory */
    sf_buffer note;  /* what was guessed: safer_data_note */

    /* Of a set on the disk: how its rows are read. */
    int on_disk;
    char *path;
    sf_source source;
    safer_format format;
    sf_table_head table;
    char *wanted[4]; /* what the caller says of columns, by sf_column; NULL: nothing */
    int repair, strip_breaks;

    /* The one thing that changes behind a const set: computed when it is first asked for. */
    pthread_mutex_t lock;
    sf_digest sha256;
    uint64_t hash;
};

/* The number of a row's label in the order in which labels were met or, when they were sorted, in that order. */
static inline uint32_t *sf_data_label_of(const safer_data *data, size_t row)
{
    return data->on_disk ? &data->places[row].label : &data->rows[row].label;
}

/* Computes what names the data: the digest and the hash below. Done before, it does nothing. */
safer_status sf_data_identify(const safer_data *data, safer_error *error);

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
