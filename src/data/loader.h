/* A data set while its rows come in: what every reader hands its rows to. */
#ifndef SF_DATA_LOADER_H
#define SF_DATA_LOADER_H

#include "data/data.h"

typedef struct sf_loader {
    safer_data *data;
    const char *name; /* the file being read, for messages */
    sf_sample sample;
    uint64_t seed;
    size_t limit;
    int repair, strip_breaks;
    int labels_fixed;   /* a label that is not there yet is an error */
    sf_buffer repaired; /* the row at hand, when it had to be */
} sf_loader;            /* zero-initialise */

/* Checks the options and makes an empty set; `name` must outlive the loader. */
safer_status sf_loader_start(sf_loader *loader, const char *name, const safer_data_options *options,
                             safer_error *error);

/* Sorts labels, samples, and hands the set over. A set without rows is an error, with
 * `expected` (may be NULL) as what should have been there. */
safer_status sf_loader_finish(sf_loader *loader, const char *expected, safer_data **out, safer_error *error);

void sf_loader_free(sf_loader *loader);

/* A SAFER_INPUT error at a line of the file (0: the file as a whole). */
safer_status sf_loader_fail(const sf_loader *loader, size_t line, safer_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* What is said of a header after line 1. */
#define SF_HEADER_INSIDE "a header inside the file, as when files are joined; remove the line"

/* Makes sure that a raw row is UTF-8: fails with its place, or replaces *row by a
 * repaired copy that lives until the next call. Readers call this before they take a
 * row apart, so that the offset in the message counts from the row's beginning. */
safer_status sf_loader_check(sf_loader *loader, sf_span *row, size_t line, safer_error *error);

/* Adds a row of valid UTF-8. An empty id stands for the row's number, an empty label
 * for none. */
safer_status sf_loader_add(sf_loader *loader, sf_span id, sf_span label, sf_span text, size_t line, safer_error *error);

/* Refuses a set of rows whose first has a label that looks like the name of a column: it is the only one of its
 * class, and is called "label" or the like, or is no number where all others, several, are, or stands above twenty rows
 * and more in which every label comes twice at least. */
safer_status sf_loader_check_first(const sf_loader *loader, safer_error *error);

/* ----------------------------------------------------------------- lines */

typedef struct sf_lines {
    const char *at, *end;
    size_t number; /* of the line returned last, from 1 */
} sf_lines;

/* The next line without its LF or CRLF; 0 at the end. */
int sf_lines_next(sf_lines *lines, sf_span *line);

/* The length without the line ends, and so the empty lines, at the end of a file. */
size_t sf_lines_trim(const char *bytes, size_t length);

/* ---------------------------------------------------------------- readers */

/* Each adds the rows of a file to the loader's set. The files are described beside
 * their readers. */
safer_status sf_read_tsv(sf_loader *loader, const char *bytes, size_t length, safer_error *error);
safer_status sf_read_csv(sf_loader *loader, const char *bytes, size_t length, safer_error *error);
safer_status sf_read_jsonl(sf_loader *loader, const char *bytes, size_t length, safer_error *error);
safer_status sf_read_fasttext(sf_loader *loader, const char *bytes, size_t length, safer_error *error);

/* PATH is a folder with a folder of .txt files for each class. */
safer_status sf_read_folder(sf_loader *loader, const char *path, safer_error *error);

/* The same below PREFIX/ inside an archive (NULL: the whole archive). *files is how many
 * files of any kind there are. */
safer_status sf_read_archive_folder(sf_loader *loader, const char *archive, const char *prefix, size_t *files,
                                    safer_error *error);

/* Length of the byte order mark at the start, 0 or 3. */
size_t sf_mark_length(const char *bytes, size_t length);

#endif
