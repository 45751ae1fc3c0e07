/* Building a lexicon from word vectors. */
#include "base/memory.h"
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

/* The rank correlation with SimLex-999, when asked for. */
static safer_status correlate(double *rho, size_t *pairs, const safer_lexicon_options *o, const sf_words *words,
                              const float *values, size_t dim, safer_error *error)
{
    sf_simlex simlex = {0};
    if (!o->simlex) return SAFER_OK;
    safer_status status = sf_simlex_read(&simlex, o->simlex, words, error);
    if (status == SAFER_OK) status = sf_simlex_correlation(rho, &simlex, values, dim, error);
    *pairs = simlex.count;
    sf_simlex_free(&simlex);
    return status;
}

/* Counter-fitting, on every listed word: rare ones hold the constraints together. */
static safer_status fit(sf_vectors *v, const safer_lexicon_options *o, safer_lexicon_report *report, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_constraints synonyms = {0}, antonyms = {0};
    for (size_t i = 0; i < o->synonyms_count; i++)
        SF_TRY(sf_constraints_read(&synonyms, o->synonyms[i], &v->words, error));
    for (size_t i = 0; i < o->antonyms_count; i++)
        SF_TRY(sf_constraints_read(&antonyms, o->antonyms[i], &v->words, error));
    sf_constraints_sort(&synonyms);
    sf_constraints_sort(&antonyms);
    report->attract = synonyms.count / 2;
    report->repel = antonyms.count / 2;
    if (o->counterfit && (synonyms.count || antonyms.count)) {
        sf_counterfit_options fitting = sf_counterfit_options_default();
        fitting.steps = o->counterfit;
        SF_TRY(sf_counterfit(v->values, v->words.count, v->dim, &synonyms, &antonyms, &fitting, o->threads,
                             &o->progress, &report->preserved, error));
    }
done:
    sf_constraints_free(&synonyms);
    sf_constraints_free(&antonyms);
    return status;
}

/* Keeps the words that are words, and frequent enough, in the draft; moves their vectors
 * to the front. */
static safer_status select_words(sf_draft *draft, sf_vectors *v, const safer_lexicon_options *o, safer_error *error)
{
    safer_status status = SAFER_OK;
    uint32_t n = v->words.count, id;
    uint32_t *map = sf_alloc(n, sizeof *map);
    if (!map) goto no_memory;
    for (uint32_t x = 0; x < n; x++) {
        const char *word = sf_words_string(&v->words, x);
        size_t length = sf_words_length(&v->words, x);
        map[x] = SF_NONE;
        if (o->vocab_from_count && draft->corpus.counts[x] < o->min_count) continue;
        int one = sf_word_is_one(word, length);
        if (one < 0) goto no_memory;
        if (!one) continue;
        SF_TRY(sf_words_add(&draft->words, word, length, &id, error));
        map[x] = id;
        memmove(v->values + id * v->dim, v->values + x * v->dim, v->dim * sizeof *v->values);
        if (draft->corpus.counts) draft->corpus.counts[id] = draft->corpus.counts[x];
    }
    if (o->vocab_from_count) {
        sf_corpus_renumber(&draft->corpus, map);
        draft->counts = draft->corpus.counts; /* the first entries are the kept words' */
        draft->corpus.counts = NULL;
    }
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

safer_status safer_lexicon_build(safer_lexicon **out, const safer_lexicon_options *options,
                                 safer_lexicon_report *report, safer_error *error)
{
    safer_status status;
    safer_lexicon_report own;
    sf_words vocab = {0};
    sf_vectors vectors = {0};
    sf_draft draft = {.with_similarity = 1};
    sf_pairs pairs = {0};
    sf_inputs inputs = {0};
    double clock = sf_seconds();
    if (!report) report = &own;
    *report = (safer_lexicon_report){0};
    SF_TRY(sf_draft_check(options, error));
    if (!options->vectors) {
        status = sf_fail(error, SAFER_INVALID, "vectors: a file of word vectors is needed");
        goto done;
    }
    if (options->table || options->wordnet || options->directed) {
        status = sf_fail(error, SAFER_INVALID, "table, wordnet and directed are for importing, not for building");
        goto done;
    }
    SF_TRY(sf_draft_describe(&draft, "build", options, error));

    if (options->vocab) SF_TRY(sf_word_list_read(&vocab, options->vocab, error));
    SF_TRY(sf_inputs_load(&inputs, options, error));
    sf_draft_time(report, "load files", &clock);
    SF_TRY(sf_vectors_parse(&vectors, inputs.vectors.bytes, inputs.vectors.length, options->vectors,
                            options->vocab ? &vocab : NULL, options->threads, error));
    sf_file_free(&inputs.vectors);
    sf_draft_report_vectors(report, &vectors);
    sf_draft_time(report, "parse vectors", &clock);
    if (vectors.words.count == 0) {
        status = sf_fail(error, SAFER_INPUT, "%s: no word of the vocabulary has a vector", options->vectors);
        goto done;
    }

    SF_TRY(sf_draft_count(&draft, &inputs, &vectors.words, options, report, error));
    sf_inputs_free(&inputs);
    sf_draft_time(report, "count words", &clock);
    size_t *known = &report->simlex_pairs;
    sf_vectors_normalise(vectors.values, vectors.words.count, vectors.dim, options->threads);
    SF_TRY(correlate(&report->simlex_before, known, options, &vectors.words, vectors.values, vectors.dim, error));
    SF_TRY(fit(&vectors, options, report, error));
    SF_TRY(correlate(&report->simlex_fitted, known, options, &vectors.words, vectors.values, vectors.dim, error));
    sf_draft_time(report, "counter-fitting", &clock);
    SF_TRY(select_words(&draft, &vectors, options, error));
    SF_TRY(sf_all_but_the_top(vectors.values, draft.words.count, vectors.dim, (size_t)options->all_but_the_top,
                              options->threads, error));
    if (options->metric == SAFER_COSINE)
        sf_vectors_normalise(vectors.values, draft.words.count, vectors.dim, options->threads);
    SF_TRY(correlate(&report->simlex_after, known, options, &draft.words, vectors.values, vectors.dim, error));
    sf_draft_time(report, "all-but-the-top", &clock);
    SF_TRY(sf_pairs_find(&pairs, vectors.values, draft.words.count, vectors.dim, options->threshold, options->threads,
                         &options->progress, "comparing all pairs", error));
    draft.edges = pairs.items;
    draft.edge_count = pairs.count;
    sf_draft_time(report, "all pairs", &clock);
    SF_TRY(sf_draft_finish(out, &draft, options, report, error));
done:
    sf_inputs_free(&inputs);
    sf_words_free(&vocab);
    sf_draft_free(&draft);
    sf_vectors_free(&vectors);
    return status;
}
