/* Rows on their way into a data set: checked, labelled, and copied or remembered by their place.
 *
 * loader.h says how a set is read, and data.h what it holds. */
#include "data/loader.h"

#include "data/header.h"

#include "base/memory.h"
#include "text/unicode.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The largest text: lengths up to here fit the 32-bit offsets of the rooms after us. */
static const size_t longest_text = (size_t)1 << 31;

safer_status sf_loader_start(sf_loader *loader, const char *name, const safer_data_options *options, safer_error *error)
{
    loader->name = name;
    loader->seed = options->seed;
    loader->limit = options->limit;
    loader->repair = options->repair;
    loader->strip_breaks = options->strip_breaks;
    loader->labels_fixed = options->labels_of != NULL;
    loader->labels = options->labels;
    loader->wanted[SF_COLUMN_ID] = options->id_column;
    loader->wanted[SF_COLUMN_LABEL] = options->label_column;
    loader->wanted[SF_COLUMN_TITLE] = options->title_column;
    loader->wanted[SF_COLUMN_TEXT] = options->text_column;
    safer_status status = sf_header_check(options, error);
    if (status == SAFER_OK) status = sf_sample_parse(&loader->sample, options->sample, error);
    if (status != SAFER_OK) return status;
    loader->data = sf_data_new();
    if (!loader->data) return sf_fail_memory(error);
    loader->data->on_disk = options->on_disk;
    const safer_data *known = options->labels_of;
    for (size_t i = 0; known && i < safer_data_label_count(known); i++) {
        const char *label = safer_data_label(known, i);
        uint32_t number;
        status = sf_words_add(&loader->data->labels, label, strlen(label), &number, error);
        if (status != SAFER_OK) return status;
    }
    return SAFER_OK;
}

safer_status sf_loader_finish(sf_loader *loader, const char *expected, safer_data **out, safer_error *error)
{
    safer_status status;
    if (loader->data->count == 0) {
        if (expected) return sf_fail(error, SAFER_INPUT, "%s holds no rows: %s", loader->name, expected);
        return sf_fail(error, SAFER_INPUT, "%s holds no rows", loader->name);
    }
    SF_TRY(sf_data_sort_labels(loader->data, error));
    SF_TRY(sf_data_sample(loader->data, loader->sample, loader->seed, loader->limit, error));
    if (loader->data->on_disk) SF_TRY(sf_data_identify(loader->data, error));
    *out = loader->data;
    loader->data = NULL;
done:
    return status;
}

void sf_loader_free(sf_loader *loader)
{
    safer_data_free(loader->data);
    sf_buffer_free(&loader->repaired);
    sf_buffer_free(&loader->scratch);
    sf_buffer_free(&loader->header);
    sf_window_free(&loader->window);
    free(loader->fields);
    free(loader->spans);
    *loader = (sf_loader){0};
}

/* ----------------------------------------------------------------- errors */

safer_status sf_loader_fail(const sf_loader *loader, size_t line, safer_error *error, const char *format, ...)
{
    char reason[sizeof error->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (line == 0) return sf_fail(error, SAFER_INPUT, "%s: %s", loader->name, reason);
    return sf_fail(error, SAFER_INPUT, "%s, line %zu: %s", loader->name, line, reason);
}

/* A label that the other set lacks: say which it has. */
static safer_status fail_label(const sf_loader *loader, sf_span label, size_t line, safer_error *error)
{
    const sf_words *labels = &loader->data->labels;
    char known[400] = "none";
    size_t used = 0;
    for (uint32_t i = 0; i < labels->count; i++) { /* they were added in ascending order */
        const char *name = sf_words_string(labels, i);
        int room = sf_clip(name, strlen(name), 60);
        if (used + (size_t)room + 8 > sizeof known) {
            snprintf(known + used, sizeof known - used, ", ...");
            break;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%.*s", i ? ", " : "", room, name);
    }
    return sf_loader_fail(loader, line, error, "unknown label \"%.*s\" (known: %s)",
                          sf_clip(label.bytes, label.length, 80), label.bytes, known);
}

/* ------------------------------------------------------------------- rows */

safer_status sf_loader_check(sf_loader *loader, sf_span *row, size_t line, safer_error *error)
{
    size_t valid = sf_utf8_valid(row->bytes, row->length);
    if (valid == row->length) return SAFER_OK;
    if (!loader->repair)
        return sf_loader_fail(loader, line, error,
                              "not valid UTF-8 at byte offset %zu of the row (0x%02X); convert the file, or ask "
                              "for repair",
                              valid, (unsigned)(unsigned char)row->bytes[valid]);
    sf_buffer_clear(&loader->repaired);
    if (sf_utf8_repair(&loader->repaired, row->bytes, row->length)) return sf_fail_memory(error);
    *row = (sf_span){loader->repaired.bytes, loader->repaired.length};
    return SAFER_OK;
}

/* The length of a line break in HTML at the start of the bytes, or 0. */
static size_t break_length(const char *bytes, size_t length)
{
    static const char *const forms[] = {"<br />", "<br/>", "<br>"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t n = strlen(forms[i]);
        if (length >= n && memcmp(bytes, forms[i], n) == 0) return n;
    }
    return 0;
}

/* Appends the text with a space for every line break. Room is there already: the
 * result is never longer. */
static void add_without_breaks(sf_buffer *arena, sf_span text)
{
    const char *p = text.bytes, *end = p + text.length;
    char *out = arena->bytes + arena->length;
    while (p < end) {
        const char *angle = memchr(p, '<', (size_t)(end - p));
        size_t plain = (size_t)((angle ? angle : end) - p);
        memcpy(out, p, plain);
        out += plain;
        p += plain;
        if (p == end) break;
        size_t skip = break_length(p, (size_t)(end - p));
        *out++ = skip ? ' ' : '<';
        p += skip ? skip : 1;
    }
    arena->length = (size_t)(out - arena->bytes);
}

static safer_status label_number(sf_loader *loader, sf_span label, size_t line, uint32_t *number, safer_error *error)
{
    *number = SF_NONE;
    if (label.length == 0) return SAFER_OK;
    if (memchr(label.bytes, '\0', label.length))
        return sf_loader_fail(loader, line, error, "the label holds a NUL character");
    const sf_span named = sf_label_renamed(loader->labels, label);
    if (!named.length)
        return sf_loader_fail(loader, line, error, "the label \"%.*s\" is not in `labels` %.200s",
                              sf_clip(label.bytes, label.length, 60), label.bytes, loader->labels);
    label = named;
    if (!loader->labels_fixed) return sf_words_add(&loader->data->labels, label.bytes, label.length, number, error);
    *number = sf_words_find(&loader->data->labels, label.bytes, label.length);
    return *number == SF_NONE ? fail_label(loader, label, line, error) : SAFER_OK;
}

/* Puts id and text, both terminated, behind what is in the buffer; *at becomes where the text begins. */
static safer_status put_row(const sf_loader *loader, sf_buffer *out, sf_span id, sf_span text, size_t *at,
                            safer_error *error)
{
    if (sf_buffer_reserve(out, id.length + text.length + 2)) return sf_fail_memory(error);
    (void)sf_buffer_add(out, id.bytes, id.length); /* cannot fail: reserved */
    (void)sf_buffer_add_byte(out, '\0');
    *at = out->length;
    if (loader->strip_breaks)
        add_without_breaks(out, text);
    else
        (void)sf_buffer_add(out, text.bytes, text.length);
    (void)sf_buffer_add_byte(out, '\0');
    return SAFER_OK;
}

/* Keeps where the row is. */
static safer_status add_place(sf_loader *loader, uint32_t label, size_t line, safer_error *error)
{
    safer_data *data = loader->data;
    if (data->count >= UINT32_MAX - 1) return sf_loader_fail(loader, line, error, "more than 2^32 rows");
    if (sf_grow(&data->places, &data->capacity, data->count + 1, sizeof *data->places)) return sf_fail_memory(error);
    data->places[data->count] = (sf_place){loader->begin, (uint32_t)data->count + 1, label};
    data->count++;
    return SAFER_OK;
}

static safer_status add_row(sf_loader *loader, sf_span id, uint32_t label, sf_span text, safer_error *error)
{
    safer_data *data = loader->data;
    sf_row row = {.id = data->arena.length, .label = label};
    if (sf_grow(&data->rows, &data->capacity, data->count + 1, sizeof *data->rows)) return sf_fail_memory(error);
    const safer_status status = put_row(loader, &data->arena, id, text, &row.text, error);
    if (status != SAFER_OK) return status;
    row.text_length = data->arena.length - row.text - 1;
    data->rows[data->count++] = row;
    return SAFER_OK;
}

/* Whether a text has more than so many words. */
static int has_more_words(sf_span text, size_t most)
{
    size_t words = 0;
    int inside = 0;
    for (size_t i = 0; i < text.length && words <= most; i++) {
        const int blank = text.bytes[i] == ' ' || text.bytes[i] == '\t' || text.bytes[i] == '\n';
        words += !blank && !inside;
        inside = !blank;
    }
    return words > most;
}

/* Whether the first row may be a header still: all names, and its text shorter than this one. */
static void watch_first(sf_loader *loader, sf_span id, sf_span label, sf_span text)
{
    if (loader->data->count == 0) {
        const int names = (!id.length || sf_column_words(id)) && sf_column_words(label);
        loader->first_words = names ? sf_column_words(text) : 0;
    } else if (loader->first_words && !has_more_words(text, loader->first_words)) {
        loader->first_words = 0;
    }
}

safer_status sf_loader_add(sf_loader *loader, sf_span id, sf_span label, sf_span text, size_t line, safer_error *error)
{
    char number[24];
    uint32_t label_met;
    if (text.length > longest_text)
        return sf_loader_fail(loader, line, error, "a text of %zu bytes; the longest possible is 2^31", text.length);
    if (!loader->row) watch_first(loader, id, label, text);
    if (id.length == 0) {
        id.bytes = number;
        id.length = (size_t)snprintf(number, sizeof number, "%zu",
                                     loader->place ? (size_t)loader->place->number : loader->data->count + 1);
    } else if (memchr(id.bytes, '\0', id.length)) {
        return sf_loader_fail(loader, line, error, "the id holds a NUL character");
    }
    if (loader->row) {
        loader->added = 1;
        return put_row(loader, loader->row, id, text, &loader->text, error);
    }
    const safer_status status = label_number(loader, label, line, &label_met, error);
    if (status != SAFER_OK) return status;
    return loader->data->on_disk ? add_place(loader, label_met, line, error)
                                 : add_row(loader, id, label_met, text, error);
}

/* Whether every label but the first row's is that of two rows at least. */
static safer_status others_repeat(int *out, const safer_data *data, safer_error *error)
{
    size_t *counts = sf_calloc(data->labels.count, sizeof *counts);
    if (!counts) return sf_fail_memory(error);
    for (size_t i = 0; i < data->count; i++)
        if (*sf_data_label_of(data, i) != SF_NONE) counts[*sf_data_label_of(data, i)]++;
    *out = 1;
    for (size_t k = 0; k < data->labels.count; k++) *out &= counts[k] != 1 || k == *sf_data_label_of(data, 0);
    free(counts);
    return SAFER_OK;
}

safer_status sf_loader_check_first(const sf_loader *loader, safer_error *error)
{
    const safer_data *data = loader->data;
    const uint32_t first = data->count ? *sf_data_label_of(data, 0) : SF_NONE;
    const int table = loader->table.columns > 0, names = table && loader->first_words;
    enum {
        ENOUGH = 3, /* rows with numbers, to say that a name is a strange one among them */
        MANY = 20   /* rows, of which none would have a label of its own */
    };
    if (first == SF_NONE || loader->labels_fixed) return SAFER_OK;
    const sf_span name = {sf_words_string(&data->labels, first), sf_words_length(&data->labels, first)};
    size_t others = 0;
    int numbers = !sf_is_whole_number(name);
    for (size_t i = 1; i < data->count; i++) {
        const uint32_t label = *sf_data_label_of(data, i);
        if (label == first) return SAFER_OK;
        if (label == SF_NONE) continue;
        others++;
        numbers &= sf_is_whole_number(
            (sf_span){sf_words_string(&data->labels, label), sf_words_length(&data->labels, label)});
    }
    numbers &= others >= ENOUGH;
    int alone = 0;
    if (others >= MANY) {
        const safer_status status = others_repeat(&alone, data, error);
        if (status != SAFER_OK) return status;
    }
    if (!names && (!others || !(numbers || alone || sf_column_named(name) == SF_COLUMN_LABEL))) return SAFER_OK;
    return sf_loader_fail(loader, 1, error, "a header? Its label, \"%.*s\", is %s; if it is one, %s",
                          sf_clip(name.bytes, name.length, 60), name.bytes,
                          numbers ? "the only one that is no number" : "that of no other row",
                          table
                              ? "name its columns: `text_column` NAME, `label_column` NAME; if not, put one above it, "
                                "such as text and label"
                              : "remove the line; if not, move it down");
}

/* ------------------------------------------------------------------ lines */

safer_status sf_loader_line(sf_loader *loader, uint64_t *at, size_t *line, sf_span *out, safer_error *error)
{
    int whole = 0;
    const safer_status status = sf_window_line(&loader->window, at, out, &whole, error);
    if (status != SAFER_OK) return status;
    if (!whole) *at += out->length;
    ++*line;
    if (whole && out->length && out->bytes[out->length - 1] == '\r') out->length--;
    return SAFER_OK;
}

safer_status sf_loader_only_ends(sf_loader *loader, uint64_t at, int *only, safer_error *error)
{
    *only = 0;
    while (at >= loader->content) { /* once for a row of line ends, however many calls there are about it */
        sf_span left;
        const safer_status status = sf_window_at(&loader->window, at, 2, &left, error);
        if (status != SAFER_OK) return status;
        const int line_feed = left.length && left.bytes[0] == '\n',
                  both = left.length > 1 && left.bytes[0] == '\r' && left.bytes[1] == '\n';
        if (left.length == 0) {
            *only = 1;
            return SAFER_OK;
        }
        if (!line_feed && !both) {
            loader->content = at + 1;
            return SAFER_OK;
        }
        at += both ? 2 : 1;
    }
    return SAFER_OK;
}

size_t sf_mark_length(const char *bytes, size_t length)
{
    return length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}
