/* Rows of a data set, one at a time: of a set in memory where they are, of one on the disk read again. */
#include "base/memory.h"
#include "data/loader.h"

#include <assert.h>

struct safer_reader {
    sf_loader loader;
    sf_buffer row;
};

void safer_reader_free(safer_reader *reader)
{
    if (!reader) return;
    reader->loader.data = NULL; /* it is the caller's */
    sf_loader_free(&reader->loader);
    sf_buffer_free(&reader->row);
    free(reader);
}

/* Makes the reader of a set, or turns it to another one. */
static safer_status turn_to(safer_reader **reader, const safer_data *data, safer_error *error)
{
    if (*reader && (*reader)->loader.data == data) return SAFER_OK;
    safer_reader_free(*reader);
    *reader = sf_calloc(1, sizeof **reader);
    if (!*reader) return sf_fail_memory(error);
    (*reader)->loader = (sf_loader){.data = (safer_data *)(uintptr_t)data, /* which it only reads */
                                    .name = data->path,
                                    .repair = data->repair,
                                    .strip_breaks = data->strip_breaks,
                                    .window = {.source = &data->source},
                                    .table = data->table,
                                    .row = &(*reader)->row};
    for (size_t c = 0; c < sizeof data->wanted / sizeof *data->wanted; c++)
        (*reader)->loader.wanted[c] = data->wanted[c];
    return SAFER_OK;
}

safer_status safer_data_read(safer_row *out, safer_reader **reader, const safer_data *data, size_t index,
                             safer_error *error)
{
    safer_status status;
    assert(index < data->count);
    if (!data->on_disk) {
        *out = safer_data_row(data, index);
        return SAFER_OK;
    }
    SF_TRY(turn_to(reader, data, error));
    sf_loader *loader = &(*reader)->loader;
    const sf_place *place = loader->place = &data->places[index];
    uint64_t at = place->begin;
    size_t line = 2; /* any but that of a header */
    sf_buffer_clear(loader->row);
    loader->added = 0;
    SF_TRY(sf_row_reader_of(data->format)(loader, &at, &line, error));
    assert(loader->added); /* the same bytes were a row before */
    *out = (safer_row){.id = loader->row->bytes,
                       .text = loader->row->bytes + loader->text,
                       .text_length = loader->row->length - loader->text - 1,
                       .label = place->label == SF_NONE ? -1 : (int)place->label};
done:
    return status;
}
