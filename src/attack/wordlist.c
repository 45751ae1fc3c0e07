/* Words that an attack may put into a text. */
#include "attack/wordlist.h"

#include "base/memory.h"
#include "text/word.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sf_wordlist_free(sf_wordlist *list)
{
    free(list->ranked);
    *list = (sf_wordlist){0};
}

/* A word with what it is ranked by. */
typedef struct entry {
    double value; /* more is earlier */
    uint32_t word;
} entry;

static int compare_entries(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    if (a->value != b->value) return a->value < b->value ? 1 : -1;
    return (a->word > b->word) - (a->word < b->word);
}

/* 1: the text is one word, as texts are read; 0: it is not; -1: memory is out. */
static int is_word(sf_word_reader *reader, sf_span text)
{
    sf_word word;
    sf_word_reader_start(reader, text.bytes, text.length);
    const int more = sf_word_reader_next(reader, &word);
    return more > 0 ? word.begin == 0 && word.end == text.length : more;
}

/* The most frequent words, `most` of them. */
static safer_status choose(entry **out, size_t *count, const sf_wordlist *list, size_t most, safer_error *error)
{
    const safer_lexicon *l = list->lexicon;
    sf_word_reader reader = {0};
    safer_status status = SAFER_OK;
    entry *all = sf_alloc(l->words.count + 1, sizeof *all);
    if (!all) return sf_fail_memory(error);
    *count = 0;
    for (uint32_t w = 0; w < l->words.count; w++) {
        const int one = is_word(&reader, sf_wordlist_word(list, w));
        if (one < 0) status = sf_fail_memory(error);
        if (one > 0) all[(*count)++] = (entry){(double)l->counts[w], w};
    }
    sf_word_reader_free(&reader);
    if (status != SAFER_OK) {
        free(all);
        return status;
    }
    qsort(all, *count, sizeof *all, compare_entries);
    if (*count > most) *count = most;
    *out = all;
    return SAFER_OK;
}

/* scores (count, classes) of the words, each as a text of its own. */
static safer_status score(float *scores, const sf_wordlist *list, const safer_model *model, const entry *words,
                          size_t count, size_t batch, safer_error *error)
{
    safer_status status = SAFER_OK;
    void *scratch = NULL;
    sf_span *texts = sf_alloc(batch, sizeof *texts);
    int *labels = sf_alloc(batch, sizeof *labels);
    if (!texts || !labels) {
        status = sf_fail_memory(error);
        goto done;
    }
    if (model->class->scratch_new) SF_TRY(model->class->scratch_new(model, &scratch, error));
    for (size_t first = 0; first < count; first += batch) {
        const size_t some = count - first < batch ? count - first : batch;
        for (size_t i = 0; i < some; i++) texts[i] = sf_wordlist_word(list, words[first + i].word);
        SF_TRY(sf_model_classify(model, texts, some, labels, scores + first * model->classes, scratch, error));
    }
done:
    if (scratch) model->class->scratch_free(scratch);
    free(texts);
    free(labels);
    return status;
}

safer_status sf_wordlist_make(sf_wordlist *out, const safer_model *model, const safer_lexicon *lexicon, size_t most,
                              size_t batch, safer_error *error)
{
    const size_t classes = model->classes;
    sf_wordlist list = {.lexicon = lexicon};
    safer_status status;
    float *scores = NULL;
    entry *words = NULL, *ranked = NULL;
    SF_TRY(choose(&words, &list.asked, &list, most, error));
    list.tried = list.asked < SF_WORDS_TRIED ? list.asked : SF_WORDS_TRIED;
    scores = sf_calloc(list.asked * classes + 1, sizeof *scores);
    ranked = sf_alloc(list.asked + 1, sizeof *ranked);
    list.ranked = sf_alloc(classes * list.asked + 1, sizeof *list.ranked);
    if (!scores || !ranked || !list.ranked) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(score(scores, &list, model, words, list.asked, batch, error));
    for (size_t c = 0; c < classes; c++) {
        for (size_t i = 0; i < list.asked; i++) { /* equals: the more frequent word first */
            const double share = (double)scores[i * classes + c];
            ranked[i] = (entry){isfinite(share) ? -share : 0, (uint32_t)i};
        }
        qsort(ranked, list.asked, sizeof *ranked, compare_entries);
        for (size_t i = 0; i < list.asked; i++) list.ranked[c * list.asked + i] = words[ranked[i].word].word;
    }
    *out = list;
    list = (sf_wordlist){0};
done:
    sf_wordlist_free(&list);
    free(scores);
    free(words);
    free(ranked);
    return status;
}
