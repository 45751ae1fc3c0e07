/* From words and candidate pairs to a finished lexicon: what building and importing share, and the
 * same lexicon with another kernel. docs/lexicon.md says what is computed; docs/design.md has the
 * order of the steps. */
#include "lexicon/draft.h"

#include "base/digest.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "lexicon/cuts.h"
#include "lexicon/filter.h"
#include "lexicon/overlap.h"
#include "lexicon/prune.h"
#include "lexicon/table.h"
#include "text/name.h"
#include "text/word.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void sf_draft_free(sf_draft *draft)
{
    sf_folding_free(&draft->folding);
    sf_dropped_free(&draft->dropped);
    sf_words_free(&draft->vocab);
    sf_inputs_free(&draft->inputs);
    sf_vectors_free(&draft->vectors);
    sf_wordnet_free(&draft->wordnet);
    sf_constraints_free(&draft->antonyms);
    sf_words_free(&draft->words);
    free(draft->counts);
    free(draft->edges);
    free(draft->rows);
    sf_corpus_free(&draft->corpus);
    json_decref(draft->provenance);
    *draft = (sf_draft){0};
}

void sf_draft_time(sf_draft *draft, const char *stage)
{
    safer_lexicon_report *report = draft->report;
    double now = sf_seconds();
    if (report->stage_count < sizeof report->stages / sizeof *report->stages) {
        report->stages[report->stage_count].name = stage;
        report->stages[report->stage_count++].seconds = now - draft->clock;
    }
    draft->clock = now;
}

void sf_draft_report_vectors(sf_draft *draft)
{
    safer_lexicon_report *report = draft->report;
    const sf_vectors *vectors = &draft->vectors;
    report->vector_rows = vectors->rows;
    report->vector_dim = vectors->dim;
    report->vector_duplicates = vectors->duplicates;
    report->vector_unusable = vectors->unusable;
    report->vector_zeros = vectors->zeros;
    report->listed = vectors->words.count;
}

safer_status sf_draft_count(sf_draft *draft, const sf_words *words, safer_error *error)
{
    const safer_lexicon_options *o = draft->options;
    sf_inputs *inputs = &draft->inputs;
    sf_words_view view = sf_words_as_view(words);
    if (!inputs->set_count) return SAFER_OK;
    safer_status status = sf_corpus_of(&draft->corpus, (const safer_data *const *)inputs->sets, inputs->set_count,
                                       &view, sf_folding_fold(&draft->folding), o->threads, &o->progress, error);
    draft->report->texts = draft->corpus.texts;
    draft->report->tokens = draft->corpus.tokens;
    sf_inputs_free_sets(inputs);
    return status;
}

safer_status sf_draft_keep(sf_draft *draft, uint32_t *map, uint32_t x, const char *word, size_t length,
                           safer_error *error)
{
    uint64_t *counts = draft->corpus.counts;
    safer_status status = sf_words_add(&draft->words, word, length, &map[x], error);
    if (status == SAFER_OK && counts) counts[map[x]] = counts[x]; /* numbers here never exceed those there */
    return status;
}

void sf_draft_renumber(sf_draft *draft, const uint32_t *map)
{
    if (!draft->corpus.counts) return;
    sf_corpus_renumber(&draft->corpus, map);
    draft->counts = draft->corpus.counts; /* the first entries are the kept words' */
    draft->corpus.counts = NULL;
}

void safer_lexicon_options_init(safer_lexicon_options *options, size_t size)
{
    static const safer_lexicon_options defaults = {.min_count = 2,
                                                   .counterfit = 20,
                                                   .all_but_the_top = 8,
                                                   .threshold = 0.8,
                                                   .metric = SAFER_METRIC_COSINE,
                                                   .kernel = "auto",
                                                   .function_words = 1};
    sf_options_init(options, size, &defaults, sizeof defaults);
}

/* Labels would be needed to know better, and this room has none. */
static const char *kernel_of(const safer_lexicon_options *o)
{
    return strcmp(o->kernel, "auto") == 0 ? "representative" : o->kernel;
}

static safer_status check_options(const safer_lexicon_options *o, safer_error *error)
{
    sf_kernel_spec spec;
    if (o->counterfit < 0 || o->counterfit > 100000)
        return sf_fail(error, SAFER_INVALID, "`counterfit`: %d steps (0 to 100000)", o->counterfit);
    if (o->all_but_the_top < 0)
        return sf_fail(error, SAFER_INVALID, "`all_but_the_top`: %d directions", o->all_but_the_top);
    if (!isfinite(o->threshold) || (o->metric == SAFER_METRIC_COSINE && (o->threshold <= 0 || o->threshold > 1)))
        return sf_fail(error, SAFER_INVALID, "`threshold`: %g (above 0, at most 1)", o->threshold);
    if (o->metric != SAFER_METRIC_COSINE && o->metric != SAFER_METRIC_DOT)
        return sf_fail(error, SAFER_INVALID, "`metric`: unknown");
    if (o->max_component == 1)
        return sf_fail(error, SAFER_INVALID, "`max_component`: 1 (0: any size; otherwise at least 2 words)");
    if (!isfinite(o->max_frequency) || o->max_frequency < 0 || o->max_frequency >= 1)
        return sf_fail(error, SAFER_INVALID, "`max_frequency`: %g (0: any; otherwise a share of the words, below 1)",
                       o->max_frequency);
    if (o->max_frequency > 0 && !o->vocab_from_count)
        return sf_fail(error, SAFER_INVALID,
                       "`max_frequency` counts words in the data of `vocab_from`, which is missing");
    if (o->threads < 0) return sf_fail(error, SAFER_INVALID, "`threads`: %d", o->threads);
    if (!o->kernel) return sf_fail(error, SAFER_INVALID, "`kernel`: none given");
    if (sf_kernel_spec_parse(&spec, kernel_of(o), NULL) != SAFER_OK)
        return sf_fail(error, SAFER_INVALID,
                       "`kernel` \"%s\": expected auto, topk:K (K at least 1), component or representative", o->kernel);
    return SAFER_OK;
}

safer_status sf_draft_begin(sf_draft *draft, const safer_lexicon_options *options, safer_lexicon_report *report,
                            safer_error *error)
{
    draft->options = options;
    draft->report = report ? report : &draft->own_report;
    *draft->report = (safer_lexicon_report){0};
    draft->clock = sf_seconds();
    draft->dropped.wanted = options->dropped != NULL;
    draft->folding.dropped = &draft->dropped;
    const safer_status status = check_options(options, error);
    return status == SAFER_OK ? sf_folding_begin(&draft->folding, options->fold, error) : status;
}

/* ------------------------------------------------------------- provenance */

static safer_status add_file(json_t *files, const char *role, const char *path, safer_error *error)
{
    safer_status status = SAFER_OK;
    struct stat info;
    sf_digest digest = {0};
    uint64_t length = 0;
    if (!path) return SAFER_OK;
    char *name = sf_path_name(path);
    /* Only what can be read twice: no pipes, no folders, no members of archives. */
    const int plain = stat(path, &info) == 0 && S_ISREG(info.st_mode);
    if (plain) SF_TRY(sf_file_digest(&digest, &length, path, error));
    json_t *entry = plain ? json_pack("{s:s, s:s, s:I, s:s}", "role", role, "name", name, "bytes", (json_int_t)length,
                                      "sha256", digest.hex)
                          : json_pack("{s:s, s:s}", "role", role, "name", name);
    if (json_array_append_new(files, entry)) status = sf_fail_memory(error);
done:
    free(name);
    return status;
}

static safer_status add_list(json_t *files, const char *role, const char *const *paths, size_t count,
                             safer_error *error)
{
    safer_status status = SAFER_OK;
    for (size_t i = 0; i < count && status == SAFER_OK; i++) status = add_file(files, role, paths[i], error);
    return status;
}

static safer_status add_files(json_t *files, const safer_lexicon_options *o, safer_error *error)
{
    safer_status status;
    SF_TRY(add_file(files, "vectors", o->vectors, error));
    SF_TRY(add_file(files, "table", o->table, error));
    SF_TRY(add_file(files, "wordnet", o->wordnet, error));
    SF_TRY(add_file(files, "vocab", o->vocab, error));
    SF_TRY(add_list(files, "vocab-from", o->vocab_from, o->vocab_from_count, error));
    SF_TRY(add_list(files, "synonyms", o->synonyms, o->synonyms_count, error));
    SF_TRY(add_list(files, "antonyms", o->antonyms, o->antonyms_count, error));
    SF_TRY(add_file(files, "exclude", o->exclude, error));
    SF_TRY(add_file(files, "protect", o->protect, error));
    SF_TRY(add_file(files, "same-pos", o->same_pos, error));
done:
    return status;
}

safer_status sf_draft_describe(sf_draft *draft, const char *made, safer_error *error)
{
    const safer_lexicon_options *o = draft->options;
    json_t *files = json_array();
    safer_status status = add_files(files, o, error);
    if (status != SAFER_OK) {
        json_decref(files);
        return status;
    }
    draft->provenance = json_pack("{s:s, s:s, s:o}", "safer", SAFER_VERSION, "made", made, "files", files);
    if (!draft->provenance) return sf_fail_memory(error);
    if (o->vocab_from_count) sf_json_put(&draft->provenance, "min_count", json_integer((json_int_t)o->min_count));
    if (strcmp(made, "build") == 0) {
        int fitted = o->synonyms_count || o->antonyms_count || o->wordnet;
        sf_json_put(&draft->provenance, "counterfit", json_integer(fitted ? o->counterfit : 0));
        sf_json_put(&draft->provenance, "all_but_the_top", json_integer(o->all_but_the_top));
        sf_json_put(&draft->provenance, "threshold", json_real(o->threshold));
        sf_json_put(&draft->provenance, "metric", json_string(o->metric == SAFER_METRIC_DOT ? "dot" : "cosine"));
    } else {
        sf_json_put(&draft->provenance, "directed", json_boolean(o->directed));
    }
    if (o->function_words) sf_json_put(&draft->provenance, "protected", json_string("English function words"));
    if (!draft->provenance) return sf_fail_memory(error);
    return o->vocab ? sf_word_list_read(&draft->vocab, o->vocab, error) : SAFER_OK;
}

/* -------------------------------------------------------- kernel and ladder */

static const uint32_t LADDER[] = {10, 20, 50, 100, 150, 200, 250, 300, 400, 500, 750, 1000, 1500, 2000};
enum { RUNGS = sizeof LADDER / sizeof *LADDER };

/* The share of texts that each K leaves certifiable. */
static safer_status climb(sf_draft *draft, const sf_graph *graph, const sf_nearest *nearest, size_t largest,
                          double *overlap, uint32_t *worst, int threads, safer_error *error)
{
    safer_status status = SAFER_OK;
    safer_lexicon_report *report = draft->report;
    double *scratch = sf_alloc(sf_corpus_longest(&draft->corpus), sizeof *scratch);
    if (!scratch) return sf_fail_memory(error);
    for (int rung = 0; rung <= RUNGS; rung++) {
        sf_kernel kernel = {0};
        uint32_t k = rung < RUNGS && LADDER[rung] < largest ? LADDER[rung] : (uint32_t)largest;
        sf_kernel_spec spec = {.kind = SF_TOPK, .k = k};
        SF_TRY(sf_kernel_build(&kernel, graph, draft->counts, nearest, spec, error));
        sf_kernel_view view = sf_kernel_as_view(&kernel);
        sf_overlap_all(overlap, worst, &view, graph, threads);
        sf_kernel_free(&kernel);
        double share = sf_corpus_share_above_half(&draft->corpus, overlap, scratch);
        report->ladder[report->ladder_count].k = k;
        report->ladder[report->ladder_count++].share = share;
        if (share >= 0.95 && !report->suggested_k) report->suggested_k = k;
        if (k == largest) break;
    }
done:
    free(scratch);
    return status;
}

static size_t largest_component(const sf_graph *graph)
{
    size_t largest = 0;
    for (uint32_t c = 0; c < graph->components; c++)
        if (sf_graph_component_size(graph, c) > largest) largest = sf_graph_component_size(graph, c);
    return largest;
}

/* Kernel, overlaps and the finished object for a graph. */
static safer_status complete(safer_lexicon **out, sf_draft *draft, const sf_graph *graph, const char *kernel_name,
                             int directed, sf_span fold, int threads, const safer_progress *progress,
                             safer_error *error)
{
    safer_status status;
    sf_kernel_spec spec;
    sf_nearest nearest = {0};
    sf_kernel kernel = {0};
    uint32_t n = graph->words, *worst = sf_alloc(n, sizeof *worst);
    double *overlap = sf_alloc(n, sizeof *overlap);
    char *provenance = NULL;
    draft->clock = sf_seconds();
    if (!worst || !overlap) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_kernel_spec_parse(&spec, kernel_name, error));
    size_t largest = largest_component(graph), limit = 0, floor = SIZE_MAX;
    if (spec.kind == SF_TOPK && spec.k < largest) limit = floor = spec.k;
    for (int i = 0; draft->corpus.texts && i < RUNGS && LADDER[i] < largest; i++) {
        if (LADDER[i] < floor) floor = LADDER[i];
        if (LADDER[i] > limit) limit = LADDER[i];
    }
    if (limit) {
        SF_TRY(sf_nearest_build(&nearest, graph, draft->rows, draft->dim, floor, limit, threads, progress, error));
        sf_draft_time(draft, "rank neighbours");
    }
    if (draft->corpus.texts) {
        SF_TRY(climb(draft, graph, &nearest, largest, overlap, worst, threads, error));
        sf_draft_time(draft, "ladder of K");
    }
    SF_TRY(sf_kernel_build(&kernel, graph, draft->counts, &nearest, spec, error));
    sf_kernel_view view = sf_kernel_as_view(&kernel);
    sf_overlap_all(overlap, worst, &view, graph, threads);
    provenance = sf_json_text(draft->provenance);
    if (!provenance) {
        status = sf_fail_memory(error);
        goto done;
    }
    sf_lexicon_parts parts = {.words = &draft->words,
                              .counts = draft->counts,
                              .graph = graph,
                              .kernel = &kernel,
                              .overlap = overlap,
                              .worst = worst,
                              .rows = draft->rows,
                              .dim = draft->dim,
                              .directed = directed,
                              .kernel_name = kernel_name,
                              .provenance = provenance,
                              .fold = fold};
    SF_TRY(sf_lexicon_assemble(out, &parts, error));
    sf_draft_time(draft, "kernel and overlaps");
done:
    sf_nearest_free(&nearest);
    sf_kernel_free(&kernel);
    free(worst);
    free(overlap);
    free(provenance);
    return status;
}

/* Notes the words that pairs have and that cannot be written in every case pattern. */
static safer_status note_refused(sf_draft *draft, safer_error *error)
{
    const sf_words *words = &draft->words;
    for (size_t i = 0; draft->dropped.wanted && i < 2 * draft->edge_count; i++) {
        const uint32_t x = i % 2 ? draft->edges[i / 2].b : draft->edges[i / 2].a;
        const sf_admission admission = sf_word_admit(sf_words_string(words, x), sf_words_length(words, x));
        if (admission == SF_ADMISSION_NO_MEMORY) return sf_fail_memory(error);
        if (admission != SF_REFUSED) continue;
        const safer_status status = sf_dropped_add(&draft->dropped, sf_words_string(words, x),
                                                   sf_words_length(words, x), "case", error);
        if (status != SAFER_OK) return status;
    }
    return SAFER_OK;
}

/* What provenance and report say about the fold. */
static safer_status describe_fold(sf_draft *draft, safer_error *error)
{
    if (!sf_folding_fold(&draft->folding)) return SAFER_OK;
    json_t *fold = sf_folding_json(&draft->folding, &draft->words, &draft->report->merged_spellings);
    draft->report->lost_words = draft->folding.lost;
    sf_json_put(&draft->provenance, "fold", fold);
    return draft->provenance ? SAFER_OK : sf_fail_memory(error);
}

/* How many words of the data it has: other data of which it has much less may be of another language. */
static safer_status describe_coverage(sf_draft *draft, safer_error *error)
{
    uint64_t known = 0;
    if (!draft->counts) return SAFER_OK;
    for (uint32_t x = 0; x < draft->words.count; x++) known += draft->counts[x];
    sf_json_put(&draft->provenance, "coverage",
                json_pack("{s:I, s:I}", "words", (json_int_t)draft->report->tokens, "known", (json_int_t)known));
    return draft->provenance ? SAFER_OK : sf_fail_memory(error);
}

safer_status sf_draft_finish(safer_lexicon **out, sf_draft *draft, safer_error *error)
{
    safer_status status;
    const safer_lexicon_options *o = draft->options;
    safer_lexicon_report *report = draft->report;
    sf_graph graph = {0};
    size_t added = 0;
    if (draft->words.count == 0)
        return sf_fail(error, SAFER_INPUT, "no word is left: check the vocabulary, the data and `min_count`");
    SF_TRY(note_refused(draft, error));
    SF_TRY(sf_draft_prune(draft, error));
    SF_TRY(sf_draft_filter(draft, error));
    SF_TRY(sf_draft_cut(draft, error));
    SF_TRY(sf_graph_build(&graph, draft->words.count, draft->edges, draft->edge_count,
                          o->directed ? SF_DIRECTED : SF_SYMMETRIC, draft->with_similarity, &added, error));
    report->words = draft->words.count;
    report->symmetrised = draft->with_similarity ? 0 : added; /* computed pairs come one way by nature */
    report->pairs = (size_t)graph.offsets[graph.words] / (o->directed ? 1 : 2);
    SF_TRY(describe_fold(draft, error));
    SF_TRY(describe_coverage(draft, error));
    SF_TRY(complete(out, draft, &graph, kernel_of(o), o->directed,
                    (sf_span){draft->folding.table.bytes, draft->folding.table.length}, o->threads, &o->progress,
                    error));
    if (o->dropped) status = sf_dropped_write(&draft->dropped, o->dropped, error);
done:
    sf_graph_free(&graph);
    return status;
}

/* ------------------------------------------------- another kernel, same words */

safer_status sf_lexicon_rework(safer_lexicon **out, const safer_lexicon *l, const char *kernel, json_t *choice,
                               int threads, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_draft draft = {.with_similarity = l->similarity != NULL, .dim = l->vector_dim};
    sf_graph graph = {0};
    uint32_t n = l->words.count, id;
    size_t edges = (size_t)l->synonym_offsets[n];
    json_error_t ignored;
    draft.report = &draft.own_report;
    for (uint32_t x = 0; x < n; x++) {
        const char *word = l->words.pool + l->words.offsets[x];
        SF_TRY(sf_words_add(&draft.words, word, strlen(word), &id, error));
        if (id != x) {
            status = sf_fail(error, SAFER_INPUT, "the lexicon holds \"%s\" twice", word);
            goto done;
        }
    }
    draft.counts = sf_alloc(n, sizeof *draft.counts);
    draft.edges = sf_alloc(edges, sizeof *draft.edges);
    draft.rows = sf_calloc(n, sizeof *draft.rows);
    if (sf_json_parse(&draft.provenance, l->provenance, strlen(l->provenance), 0, &ignored) == SAFER_INPUT)
        draft.provenance = json_object();
    json_object_del(draft.provenance, "kernel_choice"); /* which was about the kernel before */
    if (choice) sf_json_put(&draft.provenance, "kernel_choice", json_incref(choice));
    if (!draft.counts || !draft.edges || !draft.rows || !draft.provenance) {
        status = sf_fail_memory(error);
        goto done;
    }
    memcpy(draft.counts, l->counts, n * sizeof *draft.counts);
    for (uint32_t x = 0; x < n; x++)
        for (uint64_t e = l->synonym_offsets[x]; e < l->synonym_offsets[x + 1]; e++)
            draft.edges[draft.edge_count++] = (sf_pair){x, l->synonyms[e], l->similarity ? l->similarity[e] : 0};
    for (size_t i = 0; i < l->vector_count; i++) draft.rows[l->vector_words[i]] = l->vectors + i * l->vector_dim;
    if (!l->vector_count) {
        free(draft.rows);
        draft.rows = NULL;
    }
    SF_TRY(sf_graph_build(&graph, n, draft.edges, draft.edge_count, SF_DIRECTED, draft.with_similarity, NULL, error));
    SF_TRY(complete(out, &draft, &graph, kernel, l->directed, l->fold_table, threads, NULL, error));
done:
    sf_graph_free(&graph);
    sf_draft_free(&draft);
    return status;
}

safer_status safer_lexicon_with_kernel(safer_lexicon **out, const safer_lexicon *l, const char *kernel, int threads,
                                       safer_error *error)
{
    return sf_lexicon_rework(out, l, kernel, NULL, threads, error);
}
