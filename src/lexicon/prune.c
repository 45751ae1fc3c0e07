/* Which pairs of a draft may not be exchanged: docs/lexicon.md, "Which words and pairs are kept". */
#include "lexicon/prune.h"

#include "base/memory.h"
#include "lexicon/function_words.h"
#include "lexicon/table.h"
#include "text/word.h"

#include <string.h>

enum { UNSEEN = 255 };

/* 1: admitted alike. 0: not. -1: no memory. admission (words): of those seen so far. */
static int is_admitted(unsigned char *admission, sf_draft *draft, sf_pair e)
{
    const uint32_t ends[2] = {e.a, e.b};
    for (int k = 0; k < 2; k++) {
        if (admission[ends[k]] != UNSEEN) continue;
        const sf_admission a = sf_word_admit(sf_words_string(&draft->words, ends[k]),
                                             sf_words_length(&draft->words, ends[k]));
        if (a == SF_ADMISSION_NO_MEMORY) return -1;
        admission[ends[k]] = (unsigned char)a;
        draft->report->refused_words += a == SF_REFUSED;
    }
    return admission[e.a] != SF_REFUSED && admission[e.a] == admission[e.b];
}

static int is_excluded(const sf_edits *exclude, sf_pair e)
{
    if (!exclude->single) return 0; /* no such file */
    return exclude->single[e.a] || exclude->single[e.b] ||
           (exclude->count && bsearch(&e, exclude->pairs, exclude->count, sizeof e, sf_pair_compare));
}

/* Which words are protected: those of the list that is built in, and those of the file. */
static safer_status read_protected(sf_edits *out, sf_draft *draft, safer_error *error)
{
    safer_status status = SAFER_OK;
    const safer_lexicon_options *o = draft->options;
    const sf_fold *fold = sf_folding_fold(&draft->folding);
    sf_edits function_words = {0};
    if (o->protect) SF_TRY(sf_edits_read(out, o->protect, &draft->words, fold, 0, error));
    draft->report->unknown_edits += out->unknown;
    if (!o->function_words) return SAFER_OK;
    SF_TRY(sf_edits_parse(&function_words, sf_function_words, strlen(sf_function_words), "function words",
                          &draft->words, fold, 0, error));
    for (uint32_t x = 0; out->single && x < draft->words.count; x++) function_words.single[x] |= out->single[x];
    sf_edits_free(out);
    *out = function_words;
done:
    return status;
}

safer_status sf_draft_prune(sf_draft *draft, safer_error *error)
{
    const safer_lexicon_options *o = draft->options;
    safer_lexicon_report *report = draft->report;
    safer_status status = SAFER_OK;
    const uint32_t n = draft->words.count;
    unsigned char *admission = sf_alloc(n, 1);
    sf_edits exclude = {0}, protect = {0};
    size_t kept = 0;
    if (!admission) {
        status = sf_fail_memory(error);
        goto done;
    }
    memset(admission, UNSEEN, n);
    if (o->exclude)
        SF_TRY(sf_edits_read(&exclude, o->exclude, &draft->words, sf_folding_fold(&draft->folding), 1, error));
    if (exclude.count) qsort(exclude.pairs, exclude.count, sizeof *exclude.pairs, sf_pair_compare);
    report->unknown_edits = exclude.unknown;
    SF_TRY(read_protected(&protect, draft, error));

    for (size_t i = 0; i < draft->edge_count; i++) {
        const sf_pair e = draft->edges[i];
        const int admitted = is_admitted(admission, draft, e);
        if (admitted < 0) {
            status = sf_fail_memory(error);
            goto done;
        }
        /* With one-way synonyms a protected word may still replace others. */
        const int guarded = protect.single && (protect.single[e.a] || (!o->directed && protect.single[e.b]));
        if (!admitted)
            report->refused_pairs++;
        else if (is_excluded(&exclude, e))
            report->excluded_pairs++;
        else if (guarded)
            report->protected_pairs++;
        else
            draft->edges[kept++] = e;
    }
    for (uint32_t x = 0; protect.single && x < n; x++) report->protected_words += protect.single[x];
    draft->edge_count = kept;
done:
    free(admission);
    sf_edits_free(&exclude);
    sf_edits_free(&protect);
    return status;
}
