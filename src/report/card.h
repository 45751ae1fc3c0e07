/* A model card that the user has: what a bill of materials can say with it.
 *
 * Two forms are read:
 *
 *   - Markdown with YAML in front, between two lines "---", as HuggingFace has it. Of the YAML, members at its
 *     outermost level are read: `name`, `version`, `license`, `url` ("key: value") and `tags` ("[a, b]", or lines
 *     "- a" below it). Without a `name`, the first heading is the name, without "Model Card for" before it.
 *   - JSON: an object with these members, strings but for `tags`, a list of strings.
 *
 * Anything else in them is left alone. Nothing of this is checked: it is the user's word. */
#ifndef SF_REPORT_CARD_H
#define SF_REPORT_CARD_H

#include "base/error.h"

#include <jansson.h>
#include <stddef.h>

typedef struct sf_card {
    const char *name, *version, *license, *url; /* each may be NULL */
    const json_t *tags;                         /* array of strings; may be NULL */
    json_t *own;                                /* private: what the strings live in */
} sf_card;

/* Reads the bytes of a file; errors name `path`. Zero-initialise the card, and free it whether or not this succeeds. */
safer_status sf_card_parse(sf_card *out, const char *bytes, size_t length, const char *path, safer_error *error);
void sf_card_free(sf_card *card);

#endif
