/* What the columns of a table are called: in the header of a CSV or TSV file, and as members of JSON Lines.
 *
 * A header must never become a row: its words would be a class of their own. */
#ifndef SF_DATA_COLUMNS_H
#define SF_DATA_COLUMNS_H

#include "base/buffer.h"

typedef enum sf_column { SF_COLUMN_ID, SF_COLUMN_LABEL, SF_COLUMN_TITLE, SF_COLUMN_TEXT } sf_column;

enum { SF_COLUMNS = 4, SF_NO_COLUMN = -1 };

/* The names of a column, ended by NULL. Of several that are there, the first in this list counts. */
const char *const *sf_column_names(sf_column column);

/* Whether a value is this name; spaces around it and its case do not count. */
int sf_column_is(sf_span value, const char *name);

/* The column that a value names, or SF_NO_COLUMN. */
int sf_column_named(sf_span value);

/* How many words a value has when it could be the name of a column: one or two, of letters, digits, '_' and '-', the
 * first a letter; else 0. */
size_t sf_column_words(sf_span value);

/* A whole number without sign: digits alone. */
int sf_is_whole_number(sf_span value);

#endif
