/* What the tests of data sets share: rows as they should be, and files that should fail. */
#ifndef TESTS_TEST_DATA_H
#define TESTS_TEST_DATA_H

#include "support.h"

#include <stdio.h>
#include <string.h>

/* What a row should be; a NULL label: none. `length` 0: that of the string. */
typedef struct expected {
    const char *id, *label, *text;
    size_t length;
} expected;

static inline void check_rows(const safer_data *data, const expected *rows, size_t count)
{
    safer_reader *reader = NULL;
    safer_error error;
    assert_int_equal(safer_data_size(data), count);
    for (size_t i = 0; i < count; i++) {
        safer_row row;
        assert_ok(safer_data_read(&row, &reader, data, i, &error));
        size_t length = rows[i].length ? rows[i].length : strlen(rows[i].text);
        assert_string_equal(row.id, rows[i].id);
        assert_int_equal(row.text_length, length);
        assert_memory_equal(row.text, rows[i].text, length);
        assert_int_equal(row.text[length], '\0');
        if (!rows[i].label) {
            assert_int_equal(row.label, -1);
        } else {
            assert_in_range(row.label, 0, safer_data_label_count(data) - 1);
            assert_string_equal(safer_data_label(data, (size_t)row.label), rows[i].label);
        }
    }
    safer_reader_free(reader);
}

static inline void check_labels(const safer_data *data, const char *const *labels, size_t count)
{
    assert_int_equal(safer_data_label_count(data), count);
    for (size_t i = 0; i < count; i++) assert_string_equal(safer_data_label(data, i), labels[i]);
}

static inline safer_data *load(const char *path, const safer_data_options *options)
{
    safer_error error = {0};
    safer_data *data = NULL;
    assert_ok(safer_data_load(&data, path, options, &error));
    return data;
}

/* In memory, and on the disk. */
static inline void check_file(const char *path, const safer_data_options *options, const expected *rows, size_t count)
{
    safer_data_options own = options ? *options : safer_data_options_default();
    char sha256[65];
    for (own.on_disk = 0; own.on_disk < 2; own.on_disk++) {
        safer_data *data = load(path, &own);
        check_rows(data, rows, count);
        if (own.on_disk) assert_string_equal(safer_data_sha256(data), sha256);
        snprintf(sha256, sizeof sha256, "%s", safer_data_sha256(data));
        safer_data_free(data);
    }
}

#define ROWS(...) (const expected[]){__VA_ARGS__}, COUNT(((const expected[]){__VA_ARGS__}))
#define LABELS(...) (const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__}))

/* A file of this name with a literal's bytes (NULs included) has exactly these rows. */
#define reads(name, literal, ...) \
    check_file(write_temporary(name, literal, sizeof(literal) - 1), NULL, ROWS(__VA_ARGS__))

#define reads_with(name, literal, options, ...) \
    check_file(write_temporary(name, literal, sizeof(literal) - 1), options, ROWS(__VA_ARGS__))

static inline void check_failure(const char *path, const safer_data_options *options, safer_status status,
                                 const char *words)
{
    safer_error error;
    safer_data *data = NULL;
    assert_fails(safer_data_load(&data, path, options, &error), status, words);
    assert_null(data); /* written on success only */
    assert_int_equal(error.status, status);
    safer_data_options own = options ? *options : safer_data_options_default();
    own.on_disk = 1;
    assert_int_equal(safer_data_load(&data, path, &own, NULL), status);
}

#define refuses(name, literal, words) \
    check_failure(write_temporary(name, literal, sizeof(literal) - 1), NULL, SAFER_INPUT, words)

#define OPTIONS(...) (&(const safer_data_options){.size = sizeof(safer_data_options), .seed = 1, __VA_ARGS__})

#endif
