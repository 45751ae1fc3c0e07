/* What the `tokenizers` library takes characters for: letters, digits, white space, parts of grapheme clusters. */
#ifndef SF_TEXT_CLASSES_H
#define SF_TEXT_CLASSES_H

#include "text/classes_table.h"

#define SF_CLASS_L (SF_CLASS_LU | SF_CLASS_LL | SF_CLASS_LT | SF_CLASS_LM | SF_CLASS_LO)
#define SF_CLASS_N (SF_CLASS_ND | SF_CLASS_NO)

/* The SF_CLASS_ bits of a character. */
static inline uint32_t sf_class(uint32_t code)
{
    if (code < 0x80) return sf_class_sets[sf_class_ascii[code]];
    size_t low = 0, high = sizeof sf_class_starts / sizeof *sf_class_starts;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (sf_class_starts[middle] >> 8 <= code)
            low = middle;
        else
            high = middle;
    }
    return sf_class_sets[sf_class_starts[low] & 0xff];
}

#endif
