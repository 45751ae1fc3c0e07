/* Unicode's normal forms, with the tables of the `tokenizers` library. */
#ifndef SF_TEXT_FORMS_H
#define SF_TEXT_FORMS_H

#include "base/buffer.h"
#include "text/ids.h"

typedef enum sf_form { SF_FORM_NFC, SF_FORM_NFD, SF_FORM_NFKC, SF_FORM_NFKD } sf_form;

/* Whether the text certainly is in the form. */
int sf_form_holds(sf_form form, const char *text, size_t length);

/* Appends the form of valid UTF-8. `points` is working memory. -1 without memory. */
int sf_form_apply(sf_buffer *out, sf_form form, const char *text, size_t length, sf_ids *points);

/* Puts runs of marks into canonical order: by class, and as they came within a class. -1 without memory. */
int sf_form_order(sf_ids *points);

#endif
