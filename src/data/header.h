/* Which column of a table is which: by the names of its first line, by what the caller said, or by neither. */
#ifndef SF_DATA_HEADER_H
#define SF_DATA_HEADER_H

#include "data/columns.h"
#include "data/loader.h"

/* Looks at the first record of a CSV or TSV file: *is_header, and the columns in loader->table. Without a header and
 * without columns that the caller named, the columns are left to the format. `lone`: the text's name alone, among
 * others that say nothing, makes a header. */
safer_status sf_header_read(sf_loader *loader, const sf_span *fields, size_t count, size_t line, int lone,
                            int *is_header, safer_error *error);

/* Whether the caller named columns. */
int sf_header_wanted(const sf_loader *loader);

/* Whether a record further down is a header again, as in files that were joined: the same bytes, or names of columns
 * where label and text belong. `fields` are as many as the first record had. */
int sf_header_again(const sf_loader *loader, sf_span record, const sf_span *fields);

/* Checks what the caller said of columns and labels: SAFER_INVALID, with the option. */
safer_status sf_header_check(const safer_data_options *options, safer_error *error);

/* The name that the caller gave to a label, or the label itself; empty when others are listed and it is not. */
sf_span sf_label_renamed(const char *map, sf_span label);

/* Notes that a column was found by a name that is not its first. */
safer_status sf_header_note(sf_loader *loader, sf_column column, sf_span name, safer_error *error);

#endif
