/* A data set written as TSV, so that read_tsv.c reads back the same ids, labels and texts.
 *
 * There is no header, so that such a file can be put behind another one. The reader takes a first row for a header, or
 * the file for one of another kind, when it looks like that, so there, and there alone, a header stands above it. */
#include "data/data.h"

#include "base/file.h"
#include "base/memory.h"
#include "data/header.h"
#include "text/unicode.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char header[] = "id\tlabel\ttext\n";

enum { BLOCK = 1 << 20 }; /* bytes written at once */

static sf_span span_of(const char *string) { return (sf_span){string, strlen(string)}; }

static int add_column(sf_buffer *out, sf_span column, char end)
{
    const char *p = column.bytes, *stop = p + column.length;
    int failed = sf_buffer_reserve(out, column.length + 1);
    for (const char *plain = p; !failed; plain = p) {
        while (p < stop && *p != '\t' && *p != '\n' && *p != '\r' && *p != '\\') p++;
        failed = sf_buffer_add(out, plain, (size_t)(p - plain));
        if (failed || p == stop) break;
        const char letter = *p == '\t' ? 't' : *p == '\n' ? 'n' : *p == '\r' ? 'r' : '\\';
        failed = sf_buffer_add_byte(out, '\\') || sf_buffer_add_byte(out, letter);
        p++;
    }
    return failed || sf_buffer_add_byte(out, end);
}

/* Whether a column of a first row would be taken for the name of one, also in quotes. */
static int names_column(sf_span column)
{
    if (sf_column_named(column) != SF_NO_COLUMN) return 1;
    return column.length > 2 && column.bytes[0] == '"' && column.bytes[column.length - 1] == '"' &&
           sf_column_named((sf_span){column.bytes + 1, column.length - 2}) != SF_NO_COLUMN;
}

/* Whether a file of this name that begins with these bytes would be read as something else: unpacked, or as another
 * format. */
static int is_misread(const char *path, const sf_buffer *begin)
{
    safer_format format;
    return sf_mark_length(begin->bytes, begin->length) || sf_is_packed(begin->bytes, begin->length) ||
           sf_format_detect(&format, path, begin->bytes, begin->length, NULL) != SAFER_OK || format != SAFER_FORMAT_TSV;
}

static safer_status add_row(sf_buffer *out, const safer_row *row, const char *label, safer_error *error)
{
    const sf_span text = {row->text, row->text_length}, name = span_of(label);
    if (!name.length) return sf_fail(error, SAFER_INVALID, "`labels`: a label without a name is none in a file");
    if (sf_utf8_valid(label, name.length) != name.length)
        return sf_fail(error, SAFER_INVALID, "`labels`: a label is not valid UTF-8");
    if (sf_column_named(name) == SF_COLUMN_LABEL && sf_column_named(text) == SF_COLUMN_TEXT)
        return sf_fail(
            error, SAFER_INPUT,
            "the text \"%.*s\" with the label \"%.60s\" (id %.60s) would be read as a header inside the file",
            sf_clip(text.bytes, text.length, 60), text.bytes, label, row->id);
    return add_column(out, span_of(row->id), '\t') || add_column(out, name, '\t') || add_column(out, text, '\n')
               ? sf_fail_memory(error)
               : SAFER_OK;
}

/* Whether the file needs a header: its first row, without one, may be refused as one (sf_loader_check_first), be taken
 * for one, or make the file be read as something else. */
static safer_status needs_header(int *needs, const char *path, const safer_data *data, const char *const *labels,
                                 size_t first, safer_error *error)
{
    safer_status status;
    safer_reader *reader = NULL;
    safer_row row;
    sf_buffer line = {0};
    int alone = 1;
    SF_TRY(safer_data_read(&row, &reader, data, first, error));
    SF_TRY(add_row(&line, &row, labels[first], error));
    for (size_t i = first + 1; alone && i < data->count; i++)
        alone = !labels[i] || strcmp(labels[i], labels[first]) != 0;
    *needs = alone || names_column(span_of(row.id)) || names_column(span_of(labels[first])) ||
             names_column((sf_span){row.text, row.text_length}) || is_misread(path, &line);
done:
    sf_buffer_free(&line);
    safer_reader_free(reader);
    return status;
}

static safer_status write_rows(sf_new_file *file, const safer_data *data, const char *const *labels, size_t first,
                               sf_buffer *out, safer_error *error)
{
    safer_status status = SAFER_OK;
    safer_reader *reader = NULL;
    for (size_t i = first; i < data->count; i++) {
        safer_row row;
        if (!labels[i]) continue;
        SF_TRY(safer_data_read(&row, &reader, data, i, error));
        SF_TRY(add_row(out, &row, labels[i], error));
        if (out->length < BLOCK) continue;
        SF_TRY(sf_new_file_add(file, out->bytes, out->length, error));
        sf_buffer_clear(out);
    }
    status = sf_new_file_add(file, out->bytes, out->length, error);
done:
    safer_reader_free(reader);
    return status;
}

safer_status safer_data_write_check(const char *path, safer_error *error)
{
    safer_format format;
    struct stat info;
    const safer_status status = sf_format_detect(&format, path, header, sizeof header - 1, error);
    if (status != SAFER_OK || format != SAFER_FORMAT_TSV)
        return sf_fail(
            error, SAFER_INVALID,
            "`output`: TSV is written, but %s would be read as another format; give a name that ends in .tsv", path);
    const int exists = stat(path, &info) == 0;
    if (!*path || (exists && S_ISDIR(info.st_mode)))
        return sf_fail(error, SAFER_INVALID, "`output`: %s", *path ? "it is a folder" : "a name is needed");
    if (exists && !S_ISREG(info.st_mode)) return SAFER_OK; /* writing will tell */
    const size_t length = (size_t)(sf_base_name(path) - path);
    char *folder = length ? sf_strndup(path, length) : sf_strdup(".");
    if (!folder) return sf_fail_memory(error);
    const safer_status allowed = access(folder, W_OK) == 0 ? SAFER_OK : sf_fail_errno(error, "write", path);
    free(folder);
    return allowed;
}

safer_status safer_data_write(const char *path, const safer_data *data, const char *const *labels, safer_error *error)
{
    safer_status status;
    sf_new_file file = {.fd = -1};
    sf_buffer out = {0};
    size_t first = 0;
    int needs = 0;
    while (first < data->count && !labels[first]) first++;
    if (first == data->count)
        return sf_fail(error, SAFER_INVALID, "`labels`: no row has one, so there is none to write");
    SF_TRY(safer_data_write_check(path, error));
    SF_TRY(needs_header(&needs, path, data, labels, first, error));
    if (needs && sf_buffer_add_string(&out, header)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_new_file_begin(&file, path, error));
    SF_TRY(write_rows(&file, data, labels, first, &out, error));
    status = sf_new_file_finish(&file, error);
done:
    sf_new_file_end(&file);
    sf_buffer_free(&out);
    return status;
}
