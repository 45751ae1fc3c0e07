/* A JSON document, written in order and indented, from strings that nobody vouches for. */
#ifndef SF_REPORT_DOCUMENT_H
#define SF_REPORT_DOCUMENT_H

#include "report/writer.h"

/* Where the next member goes. */
typedef struct sf_document {
    sf_writer *out;
    int depth;  /* of open objects and lists */
    int filled; /* the innermost has a member already */
} sf_document;

/* Each writes a member of the innermost object, or (name NULL) of the innermost list or the document itself.
 * Names are this program's own. A string that is not UTF-8 gets U+FFFD in the place of what is not. */
void sf_document_open(sf_document *document, const char *name, char bracket); /* '{' or '[' */
void sf_document_close(sf_document *document, char bracket);                  /* '}' or ']' */
void sf_document_string(sf_document *document, const char *name, const char *value);
void sf_document_count(sf_document *document, const char *name, uint64_t value);
void sf_document_real(sf_document *document, const char *name, double value);
void sf_document_bool(sf_document *document, const char *name, int value);

#endif
