/* A data set while its rows come in: what every reader hands its rows to.
 *
 * A set on the disk is read twice. The first time, as any other, from beginning to end: everything is checked, and the
 * places of the rows are kept. Later a row alone, from its place (reader.c). Both times the same function takes it
 * apart. */
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
    int labels_fixed;      /* a label that is not there yet is an error */
    const char *labels;    /* as in safer_data_options */
    const char *wanted[4]; /* columns that the caller named, by sf_column; NULL: none */

    /* The row at hand. */
    uint64_t begin;     /* where it is in the file, */
    sf_buffer repaired; /* it, when it had to be repaired, */
    sf_buffer scratch;  /* and what its columns mean */

    /* The file. */
    sf_window window;
    uint64_t content; /* before here there is something else than line ends */
    sf_table_head table;
    sf_buffer header;   /* the first record of CSV or TSV, when it is a header */
    size_t first_words; /* of the first row's text while it may be a column's name; 0: it is none */
    struct sf_field *fields;
    size_t field_count, field_capacity;
    sf_span *spans;
    size_t span_capacity;

    /* A row alone: where it goes, instead of into the set. */
    const sf_place *place;
    sf_buffer *row; /* its id and its text, both terminated, */
    size_t text;    /* where the text begins, */
    size_t added;   /* and whether there was one */
} sf_loader;        /* zero-initialise */

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
 * and more in which every label comes twice at least; or, in CSV and TSV, all that was read of the row are names, and
 * its text has fewer words than every other. */
safer_status sf_loader_check_first(const sf_loader *loader, safer_error *error);

/* ---------------------------------------------------------------- readers */

/* Each reads what begins at *at of the loader's file, in line *line: a row, which it adds, or a header, or a line
 * without meaning. Both move behind it. The files are described beside their readers. */
typedef safer_status (*sf_row_reader)(sf_loader *loader, uint64_t *at, size_t *line, safer_error *error);
safer_status sf_read_tsv(sf_loader *loader, uint64_t *at, size_t *line, safer_error *error);
safer_status sf_read_csv(sf_loader *loader, uint64_t *at, size_t *line, safer_error *error);
safer_status sf_read_jsonl(sf_loader *loader, uint64_t *at, size_t *line, safer_error *error);
safer_status sf_read_fasttext(sf_loader *loader, uint64_t *at, size_t *line, safer_error *error);

/* That of a format, or NULL for folders. */
sf_row_reader sf_row_reader_of(safer_format format);

/* The line at *at without its LF or CRLF; both numbers move on. */
safer_status sf_loader_line(sf_loader *loader, uint64_t *at, size_t *line, sf_span *out, safer_error *error);

/* Whether nothing but line ends follow. */
safer_status sf_loader_only_ends(sf_loader *loader, uint64_t at, int *only, safer_error *error);

/* PATH is a folder with a folder of .txt files for each class. */
safer_status sf_read_folder(sf_loader *loader, const char *path, safer_error *error);

/* The same below PREFIX/ inside an archive (NULL: the whole archive). *files is how many
 * files of any kind there are. */
safer_status sf_read_archive_folder(sf_loader *loader, const char *archive, const char *prefix, size_t *files,
                                    safer_error *error);

/* Length of the byte order mark at the start, 0 or 3. */
size_t sf_mark_length(const char *bytes, size_t length);

#endif
