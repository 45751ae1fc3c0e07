/* Importing a lexicon from a table of synonyms or WordNet; docs/lexicon.md says what is read. */
#include "base/memory.h"
#include "base/options.h"
#include "base/progress.h"
#include "lexicon/draft.h"
#include "lexicon/inputs.h"
#include "lexicon/table.h"
#include "lexicon/vectors.h"

#include <stdlib.h>
#include <string.h>

static safer_status check(const safer_lexicon_options *o, safer_error *error)
{
    if (!o->table == !o->wordnet)
        return sf_fail(error, SAFER_INVALID, "`table` or `wordnet`: one of the two is needed");
    if (o->synonyms_count || o->simlex)
        return sf_fail(error, SAFER_INVALID, "`synonyms` and `simlex` are for building, not for importing");
    return SAFER_OK;
}

/* Keeps the table's words that are listed and frequent enough, and the pairs among them. */
static safer_status select_words(sf_draft *draft, sf_table *table, safer_error *error)
{
    safer_status status = SAFER_OK;
    const safer_lexicon_options *o = draft->options;
    uint32_t n = table->words.count;
    uint32_t *map = sf_alloc(n, sizeof *map);
    size_t kept = 0;
    if (!map) return sf_fail_memory(error);
    for (uint32_t x = 0; x < n; x++) {
        const char *word = sf_words_string(&table->words, x);
        size_t length = sf_words_length(&table->words, x);
        map[x] = SF_NONE;
        const char *reason = o->vocab && sf_words_find(&draft->vocab, word, length) == SF_NONE ? "vocabulary"
                             : o->vocab_from_count && draft->corpus.counts[x] < o->min_count   ? "rare"
                                                                                               : NULL;
        if (reason) {
            SF_TRY(sf_dropped_add(&draft->dropped, word, length, reason, error));
            continue;
        }
        SF_TRY(sf_draft_keep(draft, map, x, word, length, error));
    }
    sf_draft_renumber(draft, map);
    for (size_t i = 0; i < table->count; i++) {
        sf_pair p = table->pairs[i];
        if (map[p.a] != SF_NONE && map[p.b] != SF_NONE) table->pairs[kept++] = (sf_pair){map[p.a], map[p.b], 0};
    }
    draft->edges = table->pairs;
    draft->edge_count = kept;
    table->pairs = NULL;
done:
    free(map);
    return status;
}

/* Vectors only rank the synonyms: words without one come last. */
static safer_status read_vectors(sf_draft *draft, safer_error *error)
{
    const safer_lexicon_options *o = draft->options;
    sf_vectors *v = &draft->vectors;
    safer_status status = sf_vectors_parse(v, draft->inputs.vectors.bytes, draft->inputs.vectors.length, o->vectors,
                                           &draft->words, o->threads, error);
    if (status != SAFER_OK) return status;
    sf_vectors_normalise(v->values, v->words.count, v->dim, o->threads);
    sf_draft_report_vectors(draft);
    draft->dim = v->dim;
    draft->rows = sf_calloc(draft->words.count, sizeof *draft->rows);
    if (!draft->rows) return sf_fail_memory(error);
    for (uint32_t i = 0; i < v->words.count; i++) {
        uint32_t x = sf_words_find(&draft->words, sf_words_string(&v->words, i), sf_words_length(&v->words, i));
        draft->rows[x] = v->values + i * v->dim;
    }
    sf_draft_time(draft, "parse vectors");
    return SAFER_OK;
}

/* Antonyms keep components apart. */
static safer_status read_antonyms(sf_draft *draft, safer_error *error)
{
    safer_status status = SAFER_OK;
    const safer_lexicon_options *o = draft->options;
    for (size_t i = 0; i < o->antonyms_count && status == SAFER_OK; i++)
        status = sf_constraints_read(&draft->antonyms, o->antonyms[i], &draft->words, error);
    sf_constraints_sort(&draft->antonyms);
    return status;
}

safer_status safer_lexicon_import(safer_lexicon **out, const safer_lexicon_options *given, safer_lexicon_report *report,
                                  safer_error *error)
{
    safer_lexicon_options own = safer_lexicon_options_default();
    const safer_lexicon_options *options = &own;
    safer_status status = SF_TAKE_OPTIONS(&own, given, safer_lexicon_options, error);
    if (status != SAFER_OK) return status;
    sf_table table = {0};
    sf_draft draft = {0};
    SF_TRY(sf_draft_begin(&draft, options, report, error));
    SF_TRY(check(options, error));
    SF_TRY(sf_draft_describe(&draft, "import", error));
    table.dropped = &draft.dropped;
    if (options->table)
        SF_TRY(sf_table_read(&table, options->table, error));
    else
        SF_TRY(sf_wordnet_read(&table, options->wordnet, error));
    draft.report->table_phrases = table.phrases;
    if (!table.words.count) {
        status = sf_fail(error, SAFER_INPUT, "%s: no entry is a word; a line is a word, a tab, and its synonyms",
                         options->table ? options->table : options->wordnet);
        goto done;
    }
    SF_TRY(sf_folding_table(&draft.folding, &table, error));
    SF_TRY(sf_inputs_load(&draft.inputs, options, error));
    sf_draft_time(&draft, "load files");
    SF_TRY(sf_draft_count(&draft, &table.words, error));
    sf_draft_time(&draft, "count words");
    SF_TRY(select_words(&draft, &table, error));
    SF_TRY(read_antonyms(&draft, error));
    if (options->vectors) SF_TRY(read_vectors(&draft, error));
    SF_TRY(sf_draft_finish(out, &draft, error));
done:
    sf_table_free(&table);
    sf_draft_free(&draft);
    return status;
}
