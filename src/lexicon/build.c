/* Building a lexicon from word vectors; docs/lexicon.md says what each step is for. */
#include "base/memory.h"
#include "base/options.h"
#include "base/progress.h"
#include "lexicon/allbutthetop.h"
#include "lexicon/counterfit.h"
#include "lexicon/draft.h"
#include "lexicon/inputs.h"
#include "lexicon/simlex.h"
#include "lexicon/table.h"
#include "lexicon/vectors.h"
#include "text/word.h"

#include <stdlib.h>
#include <string.h>

static safer_status check(const safer_lexicon_options *o, safer_error *error)
{
    if (!o->vectors) return sf_fail(error, SAFER_INVALID, "`vectors`: a file of word vectors is needed");
    if (o->table || o->directed)
        return sf_fail(error, SAFER_INVALID, "`table` and `directed` are for importing, not for building");
    return SAFER_OK;
}

/* With WordNet and data: vectors of words that neither has are left out. No constraint would move them, and comparing
 * them all with each other takes minutes where the file has hundreds of thousands. */
static safer_status leave_out(sf_draft *draft, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_vectors *v = &draft->vectors;
    sf_words kept = {0};
    uint32_t *map = sf_alloc(v->words.count, sizeof *map);
    if (!map) return sf_fail_memory(error);
    for (uint32_t x = 0; x < v->words.count; x++) {
        const char *word = sf_words_string(&v->words, x);
        const size_t length = sf_words_length(&v->words, x);
        map[x] = SF_NONE;
        if (!draft->corpus.counts[x] && sf_words_find(&draft->wordnet.table.words, word, length) == SF_NONE) {
            SF_TRY(sf_dropped_add(&draft->dropped, word, length, "rare", error));
            continue;
        }
        SF_TRY(sf_words_add(&kept, word, length, &map[x], error));
        memmove(v->values + map[x] * v->dim, v->values + x * v->dim, v->dim * sizeof *v->values);
        draft->corpus.counts[map[x]] = draft->corpus.counts[x];
    }
    sf_corpus_renumber(&draft->corpus, map);
    sf_words_free(&v->words);
    v->words = kept;
    kept = (sf_words){0};
    draft->report->listed = v->words.count;
    if (!v->words.count)
        status = sf_fail(error, SAFER_INPUT, "%s: no word of the data has a vector", draft->options->vectors);
done:
    sf_words_free(&kept);
    free(map);
    return status;
}

/* Vectors of the words that are listed, and how often these occur. */
static safer_status read_vectors(sf_draft *draft, safer_error *error)
{
    safer_status status;
    const safer_lexicon_options *o = draft->options;
    sf_inputs *inputs = &draft->inputs;
    sf_vectors *v = &draft->vectors;
    SF_TRY(sf_inputs_load(inputs, o, error));
    sf_draft_time(draft, "load files");
    SF_TRY(sf_vectors_parse_noting(v, inputs->vectors.bytes, inputs->vectors.length, o->vectors,
                                   o->vocab ? &draft->vocab : NULL, &draft->dropped, o->threads, error));
    sf_file_free(&inputs->vectors);
    for (uint32_t x = 0; draft->dropped.wanted && x < draft->vocab.count; x++) {
        const char *word = sf_words_string(&draft->vocab, x);
        if (sf_words_find(&v->words, word, strlen(word)) == SF_NONE)
            SF_TRY(sf_dropped_add(&draft->dropped, word, strlen(word), "no vector", error));
    }
    SF_TRY(sf_folding_vectors(&draft->folding, v, error));
    sf_draft_report_vectors(draft);
    sf_draft_time(draft, "parse vectors");
    if (v->words.count == 0)
        return sf_fail(error, SAFER_INPUT, "%s: no word of the vocabulary has a vector", o->vectors);
    SF_TRY(sf_draft_count(draft, &v->words, error));
    sf_draft_time(draft, "count words");
    if (!o->wordnet) goto done;
    SF_TRY(sf_wordnet_open(&draft->wordnet, o->wordnet, error));
    if (o->vocab_from_count && o->min_count) SF_TRY(leave_out(draft, error));
    sf_draft_time(draft, "read WordNet");
done:
    return status;
}

/* The rank correlation with SimLex-999, when asked for. */
static safer_status correlate(double *rho, sf_draft *draft, const sf_words *words, safer_error *error)
{
    const char *path = draft->options->simlex;
    sf_simlex simlex = {0};
    if (!path) return SAFER_OK;
    safer_status status = sf_simlex_read(&simlex, path, words, error);
    if (status == SAFER_OK)
        status = sf_simlex_correlation(rho, &simlex, draft->vectors.values, draft->vectors.dim, error);
    draft->report->simlex_pairs = simlex.count;
    sf_simlex_free(&simlex);
    return status;
}

/* Counter-fitting, on every listed word: rare ones hold the constraints together. */
static safer_status fit(sf_draft *draft, safer_error *error)
{
    safer_status status = SAFER_OK;
    const safer_lexicon_options *o = draft->options;
    sf_vectors *v = &draft->vectors;
    sf_constraints synonyms = {0}, *antonyms = &draft->antonyms;
    for (size_t i = 0; i < o->synonyms_count; i++)
        SF_TRY(sf_constraints_read(&synonyms, o->synonyms[i], &v->words, error));
    for (size_t i = 0; i < o->antonyms_count; i++)
        SF_TRY(sf_constraints_read(antonyms, o->antonyms[i], &v->words, error));
    SF_TRY(sf_wordnet_synonyms(&synonyms, &draft->wordnet, &v->words, error));
    SF_TRY(sf_wordnet_antonyms(antonyms, &draft->wordnet, &v->words, error));
    draft->report->attract = synonyms.count / 2;
    draft->report->repel = antonyms->count / 2;
    if (o->counterfit && (synonyms.count || antonyms->count)) {
        sf_counterfit_options fitting = sf_counterfit_options_default();
        fitting.steps = o->counterfit;
        SF_TRY(sf_counterfit(v->values, v->words.count, v->dim, &synonyms, antonyms, &fitting, o->threads, &o->progress,
                             &draft->report->preserved, error));
    }
done:
    sf_constraints_free(&synonyms);
    return status;
}

/* Keeps the words that are words, and frequent enough, in the draft; moves their vectors
 * to the front. */
static safer_status select_words(sf_draft *draft, safer_error *error)
{
    safer_status status = SAFER_OK;
    const safer_lexicon_options *o = draft->options;
    sf_vectors *v = &draft->vectors;
    uint32_t n = v->words.count;
    uint32_t *map = sf_alloc(n, sizeof *map);
    if (!map) goto no_memory;
    for (uint32_t x = 0; x < n; x++) {
        const char *word = sf_words_string(&v->words, x);
        size_t length = sf_words_length(&v->words, x);
        map[x] = SF_NONE;
        if (o->vocab_from_count && draft->corpus.counts[x] < o->min_count) {
            SF_TRY(sf_dropped_add(&draft->dropped, word, length, "rare", error));
            continue;
        }
        int one = sf_word_is_one(word, length);
        if (one < 0) goto no_memory;
        if (!one) {
            SF_TRY(sf_dropped_add_entry(&draft->dropped, word, length, error));
            continue;
        }
        SF_TRY(sf_draft_keep(draft, map, x, word, length, error));
        memmove(v->values + map[x] * v->dim, v->values + x * v->dim, v->dim * sizeof *v->values);
    }
    sf_draft_renumber(draft, map);
    sf_constraints_renumber(&draft->antonyms, map);
    draft->rows = sf_alloc(draft->words.count, sizeof *draft->rows);
    if (!draft->rows) goto no_memory;
    for (uint32_t x = 0; x < draft->words.count; x++) draft->rows[x] = v->values + x * v->dim;
    draft->dim = v->dim;
    goto done;
no_memory:
    status = sf_fail_memory(error);
done:
    free(map);
    return status;
}

/* From vectors as they were read to those that are compared. */
static safer_status refine(sf_draft *draft, safer_error *error)
{
    safer_status status;
    const safer_lexicon_options *o = draft->options;
    safer_lexicon_report *report = draft->report;
    sf_vectors *v = &draft->vectors;
    sf_vectors_normalise(v->values, v->words.count, v->dim, o->threads);
    SF_TRY(correlate(&report->simlex_before, draft, &v->words, error));
    SF_TRY(fit(draft, error));
    SF_TRY(correlate(&report->simlex_fitted, draft, &v->words, error));
    sf_draft_time(draft, "counter-fitting");
    SF_TRY(select_words(draft, error));
    SF_TRY(sf_all_but_the_top(v->values, draft->words.count, v->dim, (size_t)o->all_but_the_top, o->threads, error));
    if (o->metric == SAFER_METRIC_COSINE) sf_vectors_normalise(v->values, draft->words.count, v->dim, o->threads);
    SF_TRY(correlate(&report->simlex_after, draft, &draft->words, error));
    sf_draft_time(draft, "all-but-the-top");
done:
    return status;
}

/* Every pair of words that is close enough becomes an edge. */
static safer_status join(sf_draft *draft, safer_error *error)
{
    const safer_lexicon_options *o = draft->options;
    sf_pairs pairs = {0};
    safer_status status = sf_pairs_find(&pairs, draft->vectors.values, draft->words.count, draft->dim, o->threshold,
                                        o->threads, &o->progress, "comparing all pairs", error);
    draft->edges = pairs.items;
    draft->edge_count = pairs.count;
    sf_draft_time(draft, "all pairs");
    return status;
}

safer_status safer_lexicon_build(safer_lexicon **out, const safer_lexicon_options *given, safer_lexicon_report *report,
                                 safer_error *error)
{
    safer_lexicon_options own = safer_lexicon_options_default();
    const safer_lexicon_options *options = &own;
    safer_status status = SF_TAKE_OPTIONS(&own, given, safer_lexicon_options, error);
    if (status != SAFER_OK) return status;
    sf_draft draft = {.with_similarity = 1};
    SF_TRY(sf_draft_begin(&draft, options, report, error));
    SF_TRY(check(options, error));
    SF_TRY(sf_draft_describe(&draft, "build", error));
    SF_TRY(read_vectors(&draft, error));
    SF_TRY(refine(&draft, error));
    SF_TRY(join(&draft, error));
    SF_TRY(sf_draft_finish(out, &draft, error));
done:
    sf_draft_free(&draft);
    return status;
}
