/* A JSON document, written in order and indented. */
#include "report/document.h"

#include <string.h>

/* What stands before a member: a comma, a new line, its name. */
static void begin(sf_document *document, const char *name)
{
    sf_writer *out = document->out;
    if (document->depth) {
        sf_put(out, document->filled ? ",\n" : "\n");
        for (int i = 0; i < document->depth; i++) sf_put(out, "  ");
    }
    document->filled = 1;
    if (name) sf_putf(out, "\"%s\": ", name);
}

void sf_document_open(sf_document *document, const char *name, char bracket)
{
    begin(document, name);
    sf_putf(document->out, "%c", bracket);
    document->depth++;
    document->filled = 0;
}

void sf_document_close(sf_document *document, char bracket)
{
    document->depth--;
    if (document->filled) {
        sf_put(document->out, "\n");
        for (int i = 0; i < document->depth; i++) sf_put(document->out, "  ");
    }
    sf_putf(document->out, "%c%s", bracket, document->depth ? "" : "\n");
    document->filled = 1;
}

void sf_document_string(sf_document *document, const char *name, const char *value)
{
    begin(document, name);
    sf_put_json(document->out, value, strlen(value));
}

void sf_document_count(sf_document *document, const char *name, uint64_t value)
{
    begin(document, name);
    sf_putf(document->out, "%llu", (unsigned long long)value);
}

void sf_document_real(sf_document *document, const char *name, double value)
{
    begin(document, name);
    sf_put_real(document->out, value);
}

void sf_document_bool(sf_document *document, const char *name, int value)
{
    begin(document, name);
    sf_put(document->out, value ? "true" : "false");
}
