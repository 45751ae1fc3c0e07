/* Words that an attack may put into a text, whatever stands there: the most frequent ones of the lexicon, and of these
 * the ones that speak most against a class when the model reads them alone. They are scored once for all texts. */
#ifndef SF_ATTACK_WORDLIST_H
#define SF_ATTACK_WORDLIST_H

#include "lexicon/lexicon.h"
#include "model/model.h"

enum { SF_WORDS_TRIED = 16 }; /* against one class, at most */

typedef struct sf_wordlist {
    const safer_lexicon *lexicon;
    uint32_t *ranked; /* (classes, asked): numbers in the lexicon, what hurts the class most first */
    size_t tried;     /* in one place: at most SF_WORDS_TRIED */
    size_t asked;     /* words that were scored */
} sf_wordlist;        /* zero-initialise; read by any thread */

/* Scores the `most` most frequent words, `batch` at once. */
safer_status sf_wordlist_make(sf_wordlist *out, const safer_model *model, const safer_lexicon *lexicon, size_t most,
                              size_t batch, safer_error *error);
void sf_wordlist_free(sf_wordlist *list);

/* A word of the lexicon. */
static inline sf_span sf_wordlist_word(const sf_wordlist *list, uint32_t word)
{
    const sf_words_view *words = &list->lexicon->words;
    return (sf_span){words->pool + words->offsets[word], words->offsets[word + 1] - words->offsets[word] - 1};
}

#endif
