/* What the fuzz targets of the data formats share.
 *
 * Whatever the bytes: reading them either fails with a message that names the file, or
 * gives a set that keeps every promise of safer.h, that is the same when read again,
 * and that comes back unharmed from the TSV it is written to. */
#ifndef TESTS_FUZZ_DATA_H
#define TESTS_FUZZ_DATA_H

#include "fuzz.h"

#include "base/buffer.h"
#include "data/data.h"
#include "text/unicode.h"

static void check_promises(const safer_data *data)
{
    size_t labels = safer_data_label_count(data);
    require(safer_data_size(data) > 0);
    for (size_t i = 1; i < labels; i++)
        require(sf_label_compare(safer_data_label(data, i - 1), safer_data_label(data, i)) < 0);
    for (size_t i = 0; i < safer_data_size(data); i++) {
        safer_row row = safer_data_row(data, i);
        require(row.id[0] && sf_utf8_valid(row.id, strlen(row.id)) == strlen(row.id));
        require(sf_utf8_valid(row.text, row.text_length) == row.text_length);
        require(row.text[row.text_length] == '\0');
        require(row.label >= -1 && row.label < (int)labels);
        if (row.label >= 0) require(safer_data_label(data, (size_t)row.label)[0]);
    }
}

static void check_same(const safer_data *a, const safer_data *b)
{
    require(safer_data_size(a) == safer_data_size(b));
    require(safer_data_label_count(a) == safer_data_label_count(b));
    for (size_t i = 0; i < safer_data_label_count(a); i++)
        require(strcmp(safer_data_label(a, i), safer_data_label(b, i)) == 0);
    for (size_t i = 0; i < safer_data_size(a); i++) {
        safer_row x = safer_data_row(a, i), y = safer_data_row(b, i);
        require(strcmp(x.id, y.id) == 0 && x.label == y.label && x.text_length == y.text_length);
        require(memcmp(x.text, y.text, x.text_length) == 0);
    }
}

static void add_column(sf_buffer *out, const char *bytes, size_t length, char after)
{
    for (size_t i = 0; i < length; i++) {
        const char *escape = bytes[i] == '\t'   ? "\\t"
                             : bytes[i] == '\n' ? "\\n"
                             : bytes[i] == '\r' ? "\\r"
                             : bytes[i] == '\\' ? "\\\\"
                                                : NULL;
        require((escape ? sf_buffer_add_string(out, escape) : sf_buffer_add_byte(out, bytes[i])) == 0);
    }
    require(sf_buffer_add_byte(out, after) == 0);
}

static void check_round_trip(const safer_data *data)
{
    sf_buffer tsv = {0};
    safer_data *again = NULL;
    safer_data_options options = safer_data_options_default();
    for (size_t i = 0; i < safer_data_size(data); i++) {
        safer_row row = safer_data_row(data, i);
        const char *label = row.label < 0 ? "" : safer_data_label(data, (size_t)row.label);
        add_column(&tsv, row.id, strlen(row.id), '\t');
        add_column(&tsv, label, strlen(label), '\t');
        add_column(&tsv, row.text, row.text_length, '\n');
    }
    /* An id may begin with what would be a mark at the start of the file, and the first row may look like a header:
     * write both, and say which labels there are. */
    sf_buffer file = {0};
    require(sf_buffer_add_string(&file, "\xef\xbb\xbfid\tlabel\ttext\n") == 0 &&
            sf_buffer_add(&file, tsv.bytes, tsv.length) == 0);
    options.labels_of = data;
    require(sf_data_parse(&again, SAFER_FORMAT_TSV, file.bytes, file.length, "again", &options, NULL) == SAFER_OK);
    check_same(data, again);
    safer_data_free(again);
    sf_buffer_free(&tsv);
    sf_buffer_free(&file);
}

static int check_format(safer_format format, const uint8_t *bytes, size_t size)
{
    for (int repair = 0; repair < 2; repair++) {
        safer_data *data = NULL, *again = NULL, *sample = NULL;
        safer_error error = {0}, same_error = {0};
        safer_data_options options = safer_data_options_default();
        options.repair = repair;
        safer_status status = sf_data_parse(&data, format, (const char *)bytes, size, "file", &options, &error);
        require(sf_data_parse(&again, format, (const char *)bytes, size, "file", &options, &same_error) == status);
        if (status == SAFER_OK) {
            check_promises(data);
            check_same(data, again);
            check_round_trip(data);
            options.sample = "every:2";
            options.strip_breaks = 1;
            options.labels_of = data;
            require(sf_data_parse(&sample, format, (const char *)bytes, size, "file", &options, NULL) == SAFER_OK);
            check_promises(sample);
            require(strcmp(safer_data_row(sample, 0).id, safer_data_row(data, 0).id) == 0);
        } else {
            require(status == SAFER_INPUT && !data && !again);
            require(strncmp(error.message, "file", 4) == 0 && strcmp(error.message, same_error.message) == 0);
            const char *what = strstr(error.message, ": "); /* the rest may quote the file */
            require(!repair || !what || strncmp(what, ": not valid UTF-8 at byte", 25) != 0);
        }
        safer_data_free(data);
        safer_data_free(again);
        safer_data_free(sample);
    }
    return 0;
}

#endif
