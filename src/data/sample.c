/* Part of a data set: every Nth row of each class, or N rows at random, then a limit.
 *
 * "Every Nth" counts within each class because files often alternate between classes:
 * every 20th row of such a file would be of one class only. "N at random" gives each
 * row a draw that depends on the seed and the row's number alone and keeps the N
 * smallest, so the choice is the same on every machine. */
#include "data/data.h"

#include "base/memory.h"
#include "base/number.h"
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

safer_status sf_sample_parse(sf_sample *out, const char *text, safer_error *error)
{
    *out = (sf_sample){.kind = SF_SAMPLE_ALL};
    if (!text) return SAFER_OK;
    const char *count = NULL;
    if (strncmp(text, "every:", 6) == 0) {
        out->kind = SF_SAMPLE_EVERY;
        count = text + 6;
    } else if (strncmp(text, "random:", 7) == 0) {
        out->kind = SF_SAMPLE_RANDOM;
        count = text + 7;
    }
    if (!count || sf_to_uint64(count, &out->count) || out->count == 0)
        return sf_fail(error, SAFER_INVALID,
                       "`sample` is \"%s\"; it must be every:N or random:N with a whole number N of at least 1", text);
    return SAFER_OK;
}

/* Rows without a label count as one class more. */
static safer_status keep_every(const safer_data *data, uint64_t step, char *keep, safer_error *error)
{
    size_t classes = (size_t)data->labels.count + 1;
    uint64_t *seen = sf_calloc(classes, sizeof *seen);
    if (!seen) return sf_fail_memory(error);
    for (size_t i = 0; i < data->count; i++) {
        uint32_t label = *sf_data_label_of(data, i);
        size_t class = label == SF_NONE ? classes - 1 : label;
        keep[i] = seen[class]++ % step == 0;
    }
    free(seen);
    return SAFER_OK;
}

typedef struct ticket {
    double draw;
    size_t row;
} ticket;

static int ticket_compare(const void *a, const void *b)
{
    const ticket *x = a, *y = b;
    if (x->draw != y->draw) return x->draw < y->draw ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static safer_status keep_random(const safer_data *data, uint64_t count, uint64_t seed, char *keep, safer_error *error)
{
    sf_stream stream = sf_stream_of(seed, 0, SF_STAGE_DATA);
    ticket *tickets = sf_alloc(data->count, sizeof *tickets);
    if (!tickets) return sf_fail_memory(error);
    for (size_t i = 0; i < data->count; i++) tickets[i] = (ticket){sf_draw_unit(stream, i, 0), i};
    qsort(tickets, data->count, sizeof *tickets, ticket_compare);
    for (size_t i = 0; i < data->count; i++) keep[tickets[i].row] = i < count;
    free(tickets);
    return SAFER_OK;
}

static size_t row_bytes(const sf_row *row) /* id and text lie side by side, both terminated */
{
    return row->text - row->id + row->text_length + 1;
}

/* Keeps the places of the kept rows, in memory of just their size. */
static safer_status pack_places(safer_data *data, const char *keep, size_t limit, safer_error *error)
{
    size_t count = 0;
    for (size_t i = 0; i < data->count && !(limit && count == limit); i++)
        if (keep[i]) data->places[count++] = data->places[i]; /* count <= i */
    sf_place *places = sf_alloc(count, sizeof *places);
    if (!places) return sf_fail_memory(error);
    memcpy(places, data->places, count * sizeof *places);
    free(data->places);
    data->places = places;
    data->count = data->capacity = count;
    return SAFER_OK;
}

/* Copies the kept rows, in their order, to memory of just their size. Rows may lie in
 * the arena in any order: those of an archive were sorted after they were read. */
static safer_status pack(safer_data *data, const char *keep, size_t limit, safer_error *error)
{
    size_t count = 0, used = 0;
    for (size_t i = 0; i < data->count && !(limit && count == limit); i++) {
        if (!keep[i]) continue;
        used += row_bytes(&data->rows[i]);
        data->rows[count++] = data->rows[i]; /* count <= i */
    }
    data->count = count;

    sf_buffer arena = {0};
    sf_row *rows = sf_alloc(count, sizeof *rows);
    if (!rows || sf_buffer_reserve(&arena, used)) {
        free(rows);
        return sf_fail_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        const sf_row *from = &data->rows[i];
        rows[i] = *from;
        rows[i].id = arena.length;
        rows[i].text = arena.length + (from->text - from->id);
        (void)sf_buffer_add(&arena, data->arena.bytes + from->id, row_bytes(from)); /* cannot fail: reserved */
    }
    sf_buffer_free(&data->arena);
    data->arena = arena;
    free(data->rows);
    data->rows = rows;
    data->capacity = count;
    return SAFER_OK;
}

safer_status sf_data_sample(safer_data *data, sf_sample sample, uint64_t seed, size_t limit, safer_error *error)
{
    safer_status status = SAFER_OK;
    if (sample.kind == SF_SAMPLE_ALL && (limit == 0 || limit >= data->count)) return SAFER_OK;
    char *keep = sf_alloc(data->count, 1);
    if (!keep) return sf_fail_memory(error);
    memset(keep, 1, data->count);
    if (sample.kind == SF_SAMPLE_EVERY) SF_TRY(keep_every(data, sample.count, keep, error));
    if (sample.kind == SF_SAMPLE_RANDOM) SF_TRY(keep_random(data, sample.count, seed, keep, error));
    SF_TRY((data->on_disk ? pack_places : pack)(data, keep, limit, error));
done:
    free(keep);
    return status;
}
