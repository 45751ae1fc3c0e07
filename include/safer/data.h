/* Sets of labelled texts. Part of safer.h, which says what holds throughout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAFER_DATA_H
#define SAFER_DATA_H

#include "safer/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A labelled set of texts, in file order: in memory, or in its file. */
typedef struct safer_data safer_data;

typedef enum safer_format {
    SAFER_FORMAT_AUTO, /* detected from the name and the content */
    SAFER_FORMAT_TSV,
    SAFER_FORMAT_CSV,
    SAFER_FORMAT_JSONL,
    SAFER_FORMAT_FASTTEXT,
    SAFER_FORMAT_FOLDER /* of one folder per class */
} safer_format;
SAFER_NAMED(safer_format); /* "auto", "tsv", ... */

typedef struct safer_data_options {
    size_t size;
    safer_format format;
    const char *sample;          /* "every:N": every Nth of each class; "random:N": N rows; NULL: all */
    size_t limit;                /* keep the first `limit` rows after sampling; 0: all */
    uint64_t seed;               /* for random:N */
    int repair;                  /* invalid UTF-8 becomes U+FFFD instead of an error */
    int strip_breaks;            /* "<br />" becomes a space (folders of IMDB reviews always do) */
    const safer_data *labels_of; /* use this set's labels; a label it lacks is an error. May be NULL */
    int on_disk; /* leave the texts of a plain file where they are: 16 bytes of memory per row. The file must stay as
                    it is; rows are read by safer_data_read. What is packed, a pipe or a folder is in memory anyway */

    /* The columns of CSV and TSV by name, in any case, or by number from 1 on, the members of JSON Lines by name. NULL:
     * by their usual names (docs/data.md), and without a header as the format has them. The title is put before the
     * text. */
    const char *text_column, *label_column, *id_column, *title_column;
    const char *labels; /* other names for labels, "0=neg,1=pos"; a label that is not listed is an error. May be NULL */
} safer_data_options;

/* One text. `label` indexes the label names, or is -1 when the row has none. */
typedef struct safer_row {
    const char *id;     /* terminated; the row's number from 1 when the file has no ids */
    const char *text;   /* terminated, but may hold NUL bytes: use text_length */
    size_t text_length; /* bytes */
    int label;
} safer_row;

SAFER_OPTIONS(safer_data_options);

/* Reads PATH: a file (plain, gz, xz, zst, bz2), `ARCHIVE:MEMBER` inside a tar or
 * zip archive, or a folder (or archive folder) with one subfolder of .txt files per
 * class. NULL options mean the defaults. */
SAFER_API safer_status safer_data_load(safer_data **out, const char *path, const safer_data_options *options,
                                       safer_error *error);
/* From memory: `count` texts of lengths[i] bytes (NULL: terminated ones), with names of labels
 * and ids (either list, or single entries, may be NULL). All of it is copied. */
SAFER_API safer_status safer_data_from_texts(safer_data **out, const char *const *texts, const size_t *lengths,
                                             const char *const *labels, const char *const *ids, size_t count,
                                             safer_error *error);
SAFER_API void safer_data_free(safer_data *data);

SAFER_API size_t safer_data_size(const safer_data *data);
SAFER_API safer_row safer_data_row(const safer_data *data, size_t index); /* not with `on_disk` */

/* A row of any set. It lives until the next call with this reader, which is made (*reader is NULL) by the first. A
 * thread needs one of its own. A file that is not what it was when it was loaded is SAFER_INPUT. */
typedef struct safer_reader safer_reader;
SAFER_API safer_status safer_data_read(safer_row *out, safer_reader **reader, const safer_data *data, size_t index,
                                       safer_error *error);
SAFER_API void safer_reader_free(safer_reader *reader); /* NULL is fine */

/* Writes the rows that have a name in `labels` (one for each row; NULL: it is left out) to the file `path`, whole or
 * not at all, as TSV with these labels: id, label, text. safer_data_load reads back the same bytes. A header is only
 * written where a first row would be taken for one, or for the beginning of another kind of file. SAFER_INVALID: the
 * file's name is one of another format, or of a folder, or no row has a label. */
SAFER_API safer_status safer_data_write(const char *path, const safer_data *data, const char *const *labels,
                                        safer_error *error);

/* Whether that would refuse the name, or could not write into the folder: to be asked before long work. */
SAFER_API safer_status safer_data_write_check(const char *path, safer_error *error);

/* The most bytes that any compressed file or archive may become, or that are read from a pipe or device; 0, as it
 * is in the beginning: 8 GiB (a pipe: 2 GiB) or half of the machine's memory, whichever is less, and, above 1 GiB,
 * 250 times the compressed size. For all threads. */
SAFER_API void safer_set_max_unpacked(uint64_t bytes);

/* Label names, in ascending order: numbers by value first, then words by bytes. */
SAFER_API size_t safer_data_label_count(const safer_data *data);
SAFER_API const char *safer_data_label(const safer_data *data, size_t label);

/* What was guessed when the file was read, in one line: columns that were found by other names than text, label, id and
 * title. NULL: nothing was. It lives as long as the data. */
SAFER_API const char *safer_data_note(const safer_data *data);

/* What records call the data: the last part of the path, of ARCHIVE:MEMBER those of both, "memory" without a
 * file; and the SHA-256 over the rows in order (docs/data.md), 64 lower-case digits. It is computed when it is
 * first asked for, by any thread; NULL when libcrypto cannot. Both live as long as the data. */
SAFER_API const char *safer_data_name(const safer_data *data);
SAFER_API const char *safer_data_sha256(const safer_data *data);

/* Whether an input is still what it was: the SHA-256 of a file, of all that is in a folder with its names, or of the
 * archive of ARCHIVE:MEMBER and the member's name. `out` gets 64 digits and a NUL. */
SAFER_API safer_status safer_path_sha256(char *out, const char *path, safer_error *error);

#ifdef __cplusplus
}
#endif
#endif
