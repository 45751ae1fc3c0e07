/* The data set as an object: rows, labels and their order. */
#include "data/data.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/options.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void safer_data_options_init(safer_data_options *options, size_t size)
{
    static const safer_data_options defaults = {.seed = 1};
    sf_options_init(options, size, &defaults, sizeof defaults);
}

safer_data *sf_data_new(void)
{
    safer_data *data = sf_calloc(1, sizeof *data);
    if (data && pthread_mutex_init(&data->lock, NULL) != 0) {
        free(data);
        return NULL;
    }
    return data;
}

void safer_data_free(safer_data *data)
{
    if (!data) return;
    pthread_mutex_destroy(&data->lock);
    free(data->name);
    sf_buffer_free(&data->arena);
    free(data->rows);
    free(data->places);
    sf_source_close(&data->source);
    free(data->path);
    sf_buffer_free(&data->note);
    for (size_t c = 0; c < sizeof data->wanted / sizeof *data->wanted; c++) free(data->wanted[c]);
    sf_words_free(&data->labels);
    free(data->order);
    free(data);
}

size_t safer_data_size(const safer_data *data) { return data->count; }

safer_row safer_data_row(const safer_data *data, size_t index)
{
    assert(index < data->count && !data->on_disk);
    const sf_row *row = &data->rows[index];
    return (safer_row){
        .id = data->arena.bytes + row->id,
        .text = data->arena.bytes + row->text,
        .text_length = row->text_length,
        .label = row->label == SF_NONE ? -1 : (int)row->label,
    };
}

size_t safer_data_label_count(const safer_data *data) { return data->labels.count; }

const char *safer_data_label(const safer_data *data, size_t label)
{
    assert(label < data->labels.count);
    return sf_words_string(&data->labels, data->order[label]);
}

/* ------------------------------------------------------------ label order */

/* A label that is a whole number. It may have any number of digits, so it is compared
 * as text: leading zeros off, then the longer is the larger. */
typedef struct number {
    int negative;
    const char *digits; /* without leading zeros; empty for 0 */
    size_t length;
} number;

static int number_of(const char *label, number *out)
{
    const char *digits = label + (*label == '-');
    size_t length = strspn(digits, "0123456789");
    if (length == 0 || digits[length]) return 0;
    size_t zeros = strspn(digits, "0");
    *out = (number){*label == '-', digits + zeros, length - zeros};
    return 1;
}

static int number_compare(const number *a, const number *b)
{
    if (a->negative != b->negative) return a->negative ? -1 : 1;
    int larger = a->length != b->length ? (a->length > b->length ? 1 : -1) : memcmp(a->digits, b->digits, a->length);
    return a->negative ? -larger : larger;
}

int sf_label_compare(const char *a, const char *b)
{
    number x, y;
    int a_number = number_of(a, &x), b_number = number_of(b, &y);
    if (a_number != b_number) return a_number ? -1 : 1;
    if (a_number) {
        int order = number_compare(&x, &y);
        if (order) return order;
    }
    return strcmp(a, b); /* also distinguishes "1" from "01" */
}

typedef struct named {
    const char *name;
    uint32_t number;
} named;

static int named_compare(const void *a, const void *b)
{
    return sf_label_compare(((const named *)a)->name, ((const named *)b)->name);
}

safer_status sf_data_sort_labels(safer_data *data, safer_error *error)
{
    safer_status status = SAFER_OK;
    uint32_t count = data->labels.count;
    named *sorted = sf_alloc(count, sizeof *sorted);
    uint32_t *order = sf_alloc(count, sizeof *order), *position = sf_alloc(count, sizeof *position);
    if (!sorted || !order || !position) {
        free(order);
        status = sf_fail_memory(error);
        goto done;
    }
    for (uint32_t i = 0; i < count; i++) sorted[i] = (named){sf_words_string(&data->labels, i), i};
    qsort(sorted, count, sizeof *sorted, named_compare);
    for (uint32_t k = 0; k < count; k++) {
        order[k] = sorted[k].number;
        position[sorted[k].number] = k;
    }
    for (size_t i = 0; i < data->count; i++) {
        uint32_t *label = sf_data_label_of(data, i);
        if (*label != SF_NONE) *label = position[*label];
    }
    free(data->order);
    data->order = order;
done:
    free(sorted);
    free(position);
    return status;
}

/* ---------------------------------------------------------------- identity */

/* Every row in order: for the digest its id, its label (empty without one) and its text, each as a netstring. */
static safer_status identify(sf_digest *digest, uint64_t *hash, const safer_data *data, safer_error *error)
{
    safer_status status = SAFER_OK;
    safer_reader *reader = NULL;
    sf_sha256_sum sum = {0};
    *hash = 0;
    for (size_t i = 0; i < data->count; i++) {
        safer_row row;
        SF_TRY(safer_data_read(&row, &reader, data, i, error));
        const char *label = row.label >= 0 ? safer_data_label(data, (size_t)row.label) : "";
        sf_sha256_netstring(&sum, row.id, strlen(row.id));
        sf_sha256_netstring(&sum, label, strlen(label));
        sf_sha256_netstring(&sum, row.text, row.text_length);
        *hash = sf_hash(row.id, strlen(row.id), *hash);
        if (row.label >= 0) *hash = sf_hash(label, strlen(label), *hash ^ 1);
        *hash = sf_hash(row.text, row.text_length, *hash ^ 2);
    }
done:
    safer_reader_free(reader);
    if (status == SAFER_OK) return sf_sha256_end(digest, &sum, error);
    (void)sf_sha256_end(NULL, &sum, NULL);
    return status;
}

safer_status sf_data_identify(const safer_data *data, safer_error *error)
{
    safer_data *own = (safer_data *)(uintptr_t)data;
    safer_status status = SAFER_OK;
    sf_digest digest = {0};
    pthread_mutex_lock(&own->lock);
    if (!own->sha256.hex[0]) status = identify(&digest, &own->hash, data, error);
    if (status == SAFER_OK && digest.hex[0]) own->sha256 = digest;
    pthread_mutex_unlock(&own->lock);
    return status;
}

uint64_t sf_data_hash(const safer_data *data)
{
    (void)sf_data_identify(data, NULL);
    return data->hash;
}

const char *safer_data_sha256(const safer_data *data)
{
    return sf_data_identify(data, NULL) == SAFER_OK ? data->sha256.hex : NULL;
}

const char *safer_data_note(const safer_data *data) { return data->note.length ? data->note.bytes : NULL; }

const char *safer_data_name(const safer_data *data) { return data->name ? data->name : "memory"; }
