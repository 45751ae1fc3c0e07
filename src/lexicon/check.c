/* Whether a lexicon means what it says.
 *
 * A .lex file may come from anybody, with a checksum that fits. What a certificate rests on is
 * therefore not believed but computed again, whenever a lexicon is opened:
 *
 *   1. Every word is found under its own number, and the table of words holds nothing else: a
 *      word that cannot be found would silently be no slot, and its substitutions unseen.
 *   2. Synonyms are other words; where the lexicon is not directed, each counts both ways.
 *   3. Words that may be exchanged, and words that may be drawn, pass the admission rule with one
 *      kind of case: a text with words exchanged then has the same slots in the same places.
 *   4. The overlap of every word is the least s(x, x') over its synonyms, bit for bit what
 *      overlap.c computes from the kernel, and `worst` attains it.
 *   5. A kernel that is called topk:K, component or representative is one, as far as that is known here: its rows
 *      have the sizes, the words and the equal weights that kernel.h says. Which words are nearest, or most
 *      frequent, is the file's word, and so is every other name.
 *
 *   6. With a fold, every word that may be exchanged or drawn is as the fold leaves it, in every case in which it can
 *      stand: a folded text with words exchanged is then a folded text, but for the places that docs/fold.md names.
 *
 * Kernel rows were checked before: ascending, weights of at least 1 that sum to the total. */
#include "lexicon/check.h"

#include "base/memory.h"
#include "lexicon/overlap.h"
#include "text/word.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- words */

static int words_are_found(const safer_lexicon *l)
{
    const sf_words_view *w = &l->words;
    uint32_t used = 0;
    for (uint32_t i = 0; i < w->slots; i++) used += w->table[i] != SF_NONE;
    if (used != w->count) return 0;
    for (uint32_t x = 0; x < w->count; x++) {
        const uint32_t begin = w->offsets[x], length = w->offsets[x + 1] - begin - 1;
        if (memchr(w->pool + begin, '\0', length) || sf_words_view_find(w, w->pool + begin, length) != x) return 0;
    }
    return 1;
}

/* ---------------------------------------------------------------- synonyms */

static int compare_ids(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int is_synonym(const safer_lexicon *l, uint32_t x, uint32_t of)
{
    const uint64_t first = l->synonym_offsets[of], count = l->synonym_offsets[of + 1] - first;
    return count && bsearch(&x, l->synonyms + first, (size_t)count, sizeof x, compare_ids);
}

static int synonyms_are_right(const safer_lexicon *l)
{
    for (uint32_t x = 0; x < l->words.count; x++)
        for (uint64_t e = l->synonym_offsets[x]; e < l->synonym_offsets[x + 1]; e++) {
            const uint32_t y = l->synonyms[e];
            if (y == x || l->component[y] != l->component[x]) return 0;
            if (!l->directed && !is_synonym(l, x, y)) return 0;
        }
    return 1;
}

/* --------------------------------------------------------------- admission */

enum { UNSEEN = 255 };

/* The admission of a word, looked up once. */
static sf_admission admission_of(unsigned char *known, const safer_lexicon *l, uint32_t x)
{
    if (known[x] == UNSEEN) {
        const uint32_t begin = l->words.offsets[x];
        known[x] = (unsigned char)sf_word_admit(l->words.pool + begin, l->words.offsets[x + 1] - begin - 1);
    }
    return (sf_admission)known[x];
}

static int all_admitted(unsigned char *known, const safer_lexicon *l, const uint32_t *ids, uint64_t count,
                        sf_admission as)
{
    for (uint64_t i = 0; i < count; i++)
        if (admission_of(known, l, ids[i]) != as) return 0;
    return 1;
}

/* A word without synonyms that draws itself alone is never exchanged, whatever it is. rows (kernel rows, all UNSEEN):
 * how all words of a row are admitted, looked at once, since thousands may share it. */
static int words_are_admitted(unsigned char *known, unsigned char *rows, const safer_lexicon *l)
{
    const sf_kernel_view *k = &l->kernel;
    for (uint32_t x = 0; x < l->words.count; x++) {
        const uint64_t synonyms = l->synonym_offsets[x], count = l->synonym_offsets[x + 1] - synonyms;
        const uint32_t row = k->row_of[x];
        const uint64_t begin = k->offsets[row], draws = k->offsets[row + 1] - begin;
        if (!count && draws == 1 && k->ids[begin] == x) continue;
        const sf_admission as = admission_of(known, l, x);
        if (as == SF_REFUSED || as == SF_ADMISSION_NO_MEMORY ||
            !all_admitted(known, l, l->synonyms + synonyms, count, as))
            return 0;
        if (rows[row] == UNSEEN && all_admitted(known, l, k->ids + begin, draws, as)) rows[row] = (unsigned char)as;
        if (rows[row] != as) return 0;
    }
    return 1;
}

/* -------------------------------------------------------------------- fold */

/* 1: the fold leaves the word as it is, in every case. 0: it does not. -1: no memory. */
static int word_is_folded(sf_folder *folder, sf_buffer *surface, const safer_lexicon *l, uint32_t x)
{
    const uint32_t begin = l->words.offsets[x], length = l->words.offsets[x + 1] - begin - 1;
    const int cases = l->phi.fold.head.steps & SF_FOLD_CASE ? SF_LOWER : SF_UPPER;
    for (int pattern = SF_LOWER; pattern <= cases; pattern++) {
        sf_buffer_clear(surface);
        if (sf_word_render(surface, l->words.pool + begin, length, (sf_case)pattern)) return -1;
        const int kept = sf_folder_keeps(folder, &l->phi.fold, surface->bytes, surface->length);
        if (kept <= 0) return kept;
    }
    return 1;
}

/* What is exchanged is drawn or a synonym of a word that has synonyms; known: how all such words were admitted. */
static int words_are_folded(const unsigned char *known, const safer_lexicon *l)
{
    sf_folder folder = {0};
    sf_buffer surface = {0};
    int good = 1;
    for (uint32_t x = 0; l->folds && good == 1 && x < l->words.count; x++)
        if (known[x] != UNSEEN) good = word_is_folded(&folder, &surface, l, x);
    sf_folder_free(&folder);
    sf_buffer_free(&surface);
    return good;
}

/* ---------------------------------------------------------------- overlaps */

static int overlaps_are_right(const safer_lexicon *l)
{
    for (uint32_t x = 0; x < l->words.count; x++) {
        double least = 1.0;
        uint32_t worst = SF_NONE;
        for (uint64_t e = l->synonym_offsets[x]; e < l->synonym_offsets[x + 1]; e++) {
            const double s = sf_overlap(&l->kernel, x, l->synonyms[e]);
            if (worst == SF_NONE || s < least) {
                least = s;
                worst = l->synonyms[e];
            }
        }
        if (l->overlap[x] != least || l->worst[x] != worst) return 0;
    }
    return 1;
}

/* --------------------------------------------------------------- the kernel */

/* Whether all words of a row are of one component and have one weight. */
static int row_is_even(const safer_lexicon *l, uint32_t row, uint32_t component)
{
    const sf_kernel_view *k = &l->kernel;
    const uint64_t begin = k->offsets[row];
    for (uint64_t i = begin; i < k->offsets[row + 1]; i++)
        if (l->component[k->ids[i]] != component || k->weights[i] != k->weights[begin]) return 0;
    return 1;
}

/* sizes and first (words, all 0): of each component its number of words, and the first one drawn, from 1. rows (kernel
 * rows, all 0): the component of a row that is even, from 1. */
static int kernel_is_named(uint32_t *sizes, uint32_t *first, uint32_t *rows, const safer_lexicon *l)
{
    const sf_kernel_view *k = &l->kernel;
    sf_kernel_spec spec;
    if (sf_kernel_spec_parse(&spec, l->kernel_name, NULL) != SAFER_OK) return 1; /* a name that promises nothing */
    for (uint32_t x = 0; x < l->words.count; x++) sizes[l->component[x]]++;
    for (uint32_t x = 0; x < l->words.count; x++) {
        const uint32_t own = l->component[x], row = k->row_of[x], size = sizes[own];
        const uint32_t *ids = k->ids + k->offsets[row];
        const uint64_t count = k->offsets[row + 1] - k->offsets[row];
        const uint64_t most = spec.kind == SF_TOPK ? spec.k : spec.kind == SF_REPRESENTATIVE ? 1 : size;
        if (count != (most < size ? most : size)) return 0;
        if (!rows[row] && row_is_even(l, row, own)) rows[row] = own + 1;
        if (rows[row] != own + 1) return 0;
        if (!first[own]) first[own] = ids[0] + 1;
        if (spec.kind == SF_REPRESENTATIVE ? first[own] != ids[0] + 1
                                           : !bsearch(&x, ids, (size_t)count, sizeof x, compare_ids))
            return 0;
    }
    return 1;
}

safer_status sf_lexicon_check(const char **fault, const safer_lexicon *l, safer_error *error)
{
    const size_t n = l->words.count, rows = l->kernel.rows;
    safer_status status = SAFER_OK;
    unsigned char *known = sf_alloc(n + rows, 1);
    uint32_t *sizes = sf_calloc(2 * n + rows, sizeof *sizes);
    int folded = 1;
    *fault = NULL;
    if (!known || !sizes) {
        status = sf_fail_memory(error);
        goto done;
    }
    memset(known, UNSEEN, n + rows);
    if (!words_are_found(l))
        *fault = "a word cannot be found in it";
    else if (!synonyms_are_right(l))
        *fault = "its synonyms contradict each other";
    else if (!words_are_admitted(known, known + n, l))
        *fault = "it exchanges words that do not read back";
    else if ((folded = words_are_folded(known, l)) != 1)
        *fault = "it exchanges words that its fold would change";
    else if (!overlaps_are_right(l))
        *fault = "its overlaps are not those of its kernel";
    else if (!kernel_is_named(sizes, sizes + n, sizes + 2 * n, l))
        *fault = "its kernel is not what its name says";
    if (*fault && (folded < 0 || memchr(known, SF_ADMISSION_NO_MEMORY, n))) status = sf_fail_memory(error);
done:
    free(known);
    free(sizes);
    return status;
}
