/* Whether a lexicon means what it says: everything that a certificate rests on, computed again. */
#ifndef SF_LEXICON_CHECK_H
#define SF_LEXICON_CHECK_H

#include "lexicon/lexicon.h"

/* For a lexicon whose indices are known to be in range (lexfile.c, step 7). *fault gets what is wrong,
 * a few words, or NULL. SAFER_MEMORY when memory is out, else SAFER_OK. */
safer_status sf_lexicon_check(const char **fault, const safer_lexicon *lexicon, safer_error *error);

#endif
