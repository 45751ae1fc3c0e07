/* Loading a data set: which reader a path needs, and the way through it. */
#define _GNU_SOURCE
#include "data/header.h"

#include "base/options.h"
#include "base/file.h"
#include "base/memory.h"
#include "text/name.h"

#include <string.h>
#include <sys/stat.h>

/* -------------------------------------------------------------- detection */

/* Whether the first `length` bytes of the name end in `ending`, in any case. */
static int has_ending(const char *name, size_t length, const char *ending)
{
    size_t n = strlen(ending);
    if (length < n) return 0;
    for (size_t i = 0; i < n; i++) {
        char c = name[length - n + i];
        if (c >= 'A' && c <= 'Z') c = (char)(c | 0x20);
        if (c != ending[i]) return 0;
    }
    return 1;
}

/* What begins files of columns that HuggingFace and pandas write, which Python reads and this library does not. The
 * byte behind the name, a control character, tells them from a label of such a name. */
static const char *columnar(const char *bytes, size_t length)
{
    if (length > 4 && memcmp(bytes, "PAR1\x15", 5) == 0) return "Parquet";
    return length > 6 && memcmp(bytes, "ARROW1\0", 7) == 0 ? "Arrow" : NULL;
}

/* What the name says. *is_text: it ends like fastText's files, and like any text's. */
static safer_format format_by_name(const char *name, int *is_text)
{
    static const char *const packed[] = {".gz", ".xz", ".zst", ".bz2", ".zip", ".tar"};
    size_t length = strlen(name), before;
    do {
        before = length;
        for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
            if (has_ending(name, length, packed[i])) length -= strlen(packed[i]);
    } while (length < before);

    *is_text = has_ending(name, length, ".txt") || has_ending(name, length, ".ft");
    if (has_ending(name, length, ".tsv")) return SAFER_FORMAT_TSV;
    if (has_ending(name, length, ".csv")) return SAFER_FORMAT_CSV;
    if (has_ending(name, length, ".jsonl") || has_ending(name, length, ".ndjson") || has_ending(name, length, ".json"))
        return SAFER_FORMAT_JSONL;
    return SAFER_FORMAT_AUTO;
}

safer_status sf_format_detect(safer_format *out, const char *name, const char *bytes, size_t length, safer_error *error)
{
    int is_text;
    safer_format format = format_by_name(name, &is_text);
    const char *columns = columnar(bytes, length);
    if (columns)
        return sf_fail(error, SAFER_INPUT,
                       "%s is a file of %s, which is read from Python alone (docs/python.md): save it as CSV or JSONL",
                       name, columns);
    if (format == SAFER_FORMAT_AUTO) {
        size_t mark = sf_mark_length(bytes, length), tabs = 0;
        const char *p = bytes + mark, *end = bytes + length;
        while (p < end && (*p == ' ' || *p == '\n' || *p == '\r')) p++;
        for (const char *c = p; c < end && *c != '\n'; c++) tabs += *c == '\t';
        if (end - p >= 9 && memcmp(p, "__label__", 9) == 0)
            format = SAFER_FORMAT_FASTTEXT;
        else if (!is_text && p < end && *p == '{')
            format = SAFER_FORMAT_JSONL;
        else if (!is_text && tabs == 2)
            format = SAFER_FORMAT_TSV;
    }
    if (format == SAFER_FORMAT_AUTO)
        return sf_fail(error, SAFER_INPUT,
                       "cannot tell the format of %s by its name or contents; give `format` tsv, csv, jsonl, "
                       "fasttext or folder",
                       name);
    *out = format;
    return SAFER_OK;
}

/* ---------------------------------------------------------------- reading */

sf_row_reader sf_row_reader_of(safer_format format)
{
    switch (format) {
    case SAFER_FORMAT_TSV: return sf_read_tsv;
    case SAFER_FORMAT_CSV: return sf_read_csv;
    case SAFER_FORMAT_JSONL: return sf_read_jsonl;
    case SAFER_FORMAT_FASTTEXT: return sf_read_fasttext;
    case SAFER_FORMAT_AUTO:
    case SAFER_FORMAT_FOLDER: break;
    }
    return NULL;
}

/* Reads all rows of the set's source. */
static safer_status read_rows(sf_loader *loader, safer_format format, safer_error *error)
{
    safer_status status;
    sf_span start;
    const sf_source *source = &loader->data->source;
    const sf_row_reader read = sf_row_reader_of(format);
    size_t line = 1;
    if (source->length == 0) return SAFER_OK; /* no rows, whatever the format */
    if (!read) return sf_fail(error, SAFER_INVALID, "%s: a folder cannot be read as a file", loader->name);
    if (format == SAFER_FORMAT_FASTTEXT && sf_header_wanted(loader))
        return sf_loader_fail(loader, 0, error, "fastText has no columns to name");
    loader->window = (sf_window){.source = source};
    SF_TRY(sf_window_at(&loader->window, 0, 3, &start, error));
    for (uint64_t at = sf_mark_length(start.bytes, start.length); at < source->length;) {
        loader->begin = at;
        SF_TRY(read(loader, &at, &line, error));
    }
    if (!loader->header.length && !loader->table.zhang) SF_TRY(sf_loader_check_first(loader, error));
    status = sf_source_check(source, error);
done:
    return status;
}

safer_status sf_data_parse(safer_data **out, safer_format format, const char *bytes, size_t length, const char *name,
                           const safer_data_options *options, safer_error *error)
{
    safer_status status;
    sf_loader loader = {0};
    SF_TRY(sf_loader_start(&loader, name, options, error));
    loader.data->source = (sf_source){.path = name, .length = length, .file = {.bytes = bytes, .length = length}};
    SF_TRY(read_rows(&loader, format, error));
    SF_TRY(sf_loader_finish(&loader, NULL, out, error));
done:
    sf_loader_free(&loader);
    return status;
}

/* Reads PATH as a folder when it is one, on disk or in an archive; `sure` when the
 * caller said so. *taken: it was. A member of an archive that is not named like a data
 * file is looked for as a folder first: most such names are, and then the archive is
 * gone through only once. */
static safer_status try_folder(sf_loader *loader, const char *path, int sure, int *taken, safer_error *error)
{
    struct stat info;
    const int on_disk = loader->data->on_disk;
    *taken = 1;
    loader->data->on_disk = 0; /* the files of a folder are in memory */
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return sf_read_folder(loader, path, error);

    size_t split = sf_archive_split(path), files = 0;
    int is_text = 0;
    if (!sure && (!split || format_by_name(path + split + 1, &is_text) != SAFER_FORMAT_AUTO || is_text)) {
        *taken = 0;
        loader->data->on_disk = on_disk;
        return SAFER_OK;
    }
    char *archive = sf_strndup(path, split ? split : strlen(path));
    if (!archive) return sf_fail_memory(error);
    safer_status status = sf_read_archive_folder(loader, archive, split ? path + split + 1 : NULL, &files, error);
    free(archive);
    *taken = sure || files > 0;
    if (!*taken) loader->data->on_disk = on_disk;
    return status;
}

/* Tells the format by the name and by the first line that says something. */
static safer_status detect(safer_format *format, const sf_source *source, safer_error *error)
{
    safer_status status;
    sf_window window = {.source = source};
    sf_span start = {"", 0};
    size_t blank;
    do {
        SF_TRY(sf_window_at(&window, 0, 2 * start.length + 1, &start, error));
        for (blank = 0; blank < start.length && memchr(" \n\r\xef\xbb\xbf", start.bytes[blank], 6);) blank++;
    } while (start.length < source->length && !memchr(start.bytes + blank, '\n', start.length - blank));
    status = sf_format_detect(format, source->path, start.bytes, start.length, error);
done:
    sf_window_free(&window);
    return status;
}

static safer_status read_file(sf_loader *loader, const char *path, safer_format format, safer_error *error)
{
    safer_status status;
    safer_data *data = loader->data;
    if (!(data->path = sf_strdup(path))) return sf_fail_memory(error);
    SF_TRY(sf_source_open(&data->source, data->path, 1, error));
    if (format == SAFER_FORMAT_AUTO && data->source.length) SF_TRY(detect(&format, &data->source, error));
    data->format = format;
    data->repair = loader->repair;
    data->strip_breaks = loader->strip_breaks;
    for (size_t c = 0; c < sizeof data->wanted / sizeof *data->wanted; c++)
        if (loader->wanted[c] && !(data->wanted[c] = sf_strdup(loader->wanted[c]))) return sf_fail_memory(error);
    if (!data->source.hashes) data->on_disk = 0; /* it was unpacked, or came from a pipe */
    SF_TRY(read_rows(loader, format, error));
    data->table = loader->table;
    if (!data->on_disk) sf_source_close(&data->source);
done:
    return status;
}

safer_status safer_data_load(safer_data **out, const char *path, const safer_data_options *options, safer_error *error)
{
    safer_data_options own = safer_data_options_default();
    sf_loader loader = {0};
    int taken = 0;
    safer_status status = SF_TAKE_OPTIONS(&own, options, safer_data_options, error);
    if (status != SAFER_OK) return status;
    const safer_format format = own.format;
    if (!safer_format_name(format)) return sf_fail(error, SAFER_INVALID, "`format`: unknown");
    SF_TRY(sf_loader_start(&loader, path, &own, error));
    if (format == SAFER_FORMAT_AUTO || format == SAFER_FORMAT_FOLDER)
        SF_TRY(try_folder(&loader, path, format == SAFER_FORMAT_FOLDER, &taken, error));
    if (taken && sf_header_wanted(&loader)) {
        status = sf_loader_fail(&loader, 0, error, "a folder has no columns to name");
        goto done;
    }
    if (!taken) SF_TRY(read_file(&loader, path, format, error));
    if (!(loader.data->name = sf_path_name(path))) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_loader_finish(&loader, taken ? "expected files CLASS/NAME.txt below it" : NULL, out, error));
done:
    sf_loader_free(&loader);
    return status;
}

/* ------------------------------------------------------------ from memory */

static sf_span span_of(const char *const *list, size_t i)
{
    return list && list[i] ? (sf_span){list[i], strlen(list[i])} : (sf_span){"", 0};
}

safer_status safer_data_from_texts(safer_data **out, const char *const *texts, const size_t *lengths,
                                   const char *const *labels, const char *const *ids, size_t count, safer_error *error)
{
    safer_status status;
    sf_loader loader = {0};
    const safer_data_options options = safer_data_options_default();
    SF_TRY(sf_loader_start(&loader, "the texts", &options, error));
    for (size_t i = 0; i < count; i++) {
        sf_span text = {texts[i], lengths ? lengths[i] : strlen(texts[i])}, label = span_of(labels, i),
                id = span_of(ids, i);
        SF_TRY(sf_loader_check(&loader, &text, i + 1, error));
        SF_TRY(sf_loader_check(&loader, &label, i + 1, error));
        SF_TRY(sf_loader_check(&loader, &id, i + 1, error));
        SF_TRY(sf_loader_add(&loader, id, label, text, i + 1, error));
    }
    SF_TRY(sf_loader_finish(&loader, NULL, out, error));
done:
    sf_loader_free(&loader);
    return status;
}
