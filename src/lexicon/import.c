/* Importing a lexicon from a table of synonyms or WordNet. */
#include "base/memory.h"
#include "base/progress.h"
#include "lexicon/draft.h"
#include "lexicon/inputs.h"
#include "lexicon/table.h"
#include "lexicon/vectors.h"

#include <stdlib.h>
#include <string.h>

/* Keeps the table's words that are listed and frequent enough, and the pairs among them. */
static safer_status select_words(sf_draft *draft, sf_table *table, const sf_words *vocab,
                                 const safer_lexicon_options *o, safer_error *error)
{
    safer_status status = SAFER_OK;
    uint32_t n = table->words.count, id;
    uint32_t *map = sf_alloc(n, sizeof *map);
    size_t kept = 0;
    if (!map) return sf_fail_memory(error);
    for (uint32_t x = 0; x < n; x++) {
        const char *word = sf_words_string(&table->words, x);
        size_t length = sf_words_length(&table->words, x);
        map[x] = SF_NONE;
        if (o->vocab && sf_words_find(vocab, word, length) == SF_NONE) continue;
        if (o->vocab_from_count && draft->corpus.counts[x] < o->min_count) continue;
        SF_TRY(sf_words_add(&draft->words, word, length, &id, error));
        map[x] = id;
        if (draft->corpus.counts) draft->corpus.counts[id] = draft->corpus.counts[x];
    }
    if (o->vocab_from_count) {
        sf_corpus_renumber(&draft->corpus, map);
        draft->counts = draft->corpus.counts;
        draft->corpus.counts = NULL;
    }
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

safer_status safer_lexicon_import(safer_lexicon **out, const safer_lexicon_options *options,
                                  safer_lexicon_report *report, safer_error *error)
{
    safer_status status;
    safer_lexicon_report own;
    sf_words vocab = {0};
    sf_table table = {0};
    sf_vectors vectors = {0};
    sf_draft draft = {0};
    sf_inputs inputs = {0};
    double clock = sf_seconds();
    if (!report) report = &own;
    *report = (safer_lexicon_report){0};
    SF_TRY(sf_draft_check(options, error));
    if (!options->table == !options->wordnet) {
        status = sf_fail(error, SAFER_INVALID, "table or wordnet: one of the two is needed");
        goto done;
    }
    if (options->synonyms_count || options->antonyms_count || options->simlex) {
        status = sf_fail(error, SAFER_INVALID, "synonyms, antonyms and simlex are for building, not for importing");
        goto done;
    }
    SF_TRY(sf_draft_describe(&draft, "import", options, error));

    if (options->vocab) SF_TRY(sf_word_list_read(&vocab, options->vocab, error));
    if (options->table)
        SF_TRY(sf_table_read(&table, options->table, error));
    else
        SF_TRY(sf_wordnet_read(&table, options->wordnet, error));
    report->table_phrases = table.phrases;
    SF_TRY(sf_inputs_load(&inputs, options, error));
    sf_draft_time(report, "load files", &clock);

    SF_TRY(sf_draft_count(&draft, &inputs, &table.words, options, report, error));
    sf_draft_time(report, "count words", &clock);
    SF_TRY(select_words(&draft, &table, &vocab, options, error));

    if (options->vectors) {
        SF_TRY(sf_vectors_parse(&vectors, inputs.vectors.bytes, inputs.vectors.length, options->vectors, &draft.words,
                                options->threads, error));
        sf_vectors_normalise(vectors.values, vectors.words.count, vectors.dim, options->threads);
        sf_draft_report_vectors(report, &vectors);
        draft.dim = vectors.dim;
        draft.rows = sf_calloc(draft.words.count, sizeof *draft.rows);
        if (!draft.rows) {
            status = sf_fail_memory(error);
            goto done;
        }
        for (uint32_t i = 0; i < vectors.words.count; i++) {
            uint32_t x = sf_words_find(&draft.words, sf_words_string(&vectors.words, i),
                                       sf_words_length(&vectors.words, i));
            draft.rows[x] = vectors.values + i * vectors.dim;
        }
        sf_draft_time(report, "parse vectors", &clock);
    }
    SF_TRY(sf_draft_finish(out, &draft, options, report, error));
done:
    sf_inputs_free(&inputs);
    sf_words_free(&vocab);
    sf_table_free(&table);
    sf_draft_free(&draft);
    sf_vectors_free(&vectors);
    return status;
}
