/* Questions to a lexicon: its words, its size, what it means for a data set. */
#include "lexicon/lexicon.h"

#include "base/buffer.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "lexicon/corpus.h"
#include "lexicon/overlap.h"
#include "text/word.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

uint32_t safer_lexicon_find(const safer_lexicon *l, const char *word, size_t length)
{
    sf_folder folder = {0};
    sf_buffer key = {0};
    uint32_t id = SF_NONE;
    int failed = l->folds ? sf_folder_apply(&folder, &l->phi.fold, word, length) : 0;
    if (l->folds && !failed) {
        word = folder.text.bytes;
        length = folder.text.length;
    }
    if (!failed && sf_word_fold(&key, word, length) == 0) /* otherwise errno is ENOMEM */
        id = sf_words_view_find(&l->words, key.bytes ? key.bytes : "", key.length);
    sf_buffer_free(&key);
    sf_folder_free(&folder);
    return id;
}

const safer_fold *safer_lexicon_fold(const safer_lexicon *l) { return l->folds ? &l->phi : NULL; }

safer_word safer_lexicon_word(const safer_lexicon *l, uint32_t x)
{
    uint64_t synonym = l->synonym_offsets[x];
    uint32_t row = l->kernel.row_of[x];
    uint64_t entry = l->kernel.offsets[row];
    return (safer_word){
        .word = l->words.pool + l->words.offsets[x],
        .count = l->counts[x],
        .component = l->component[x],
        .synonym_count = (size_t)(l->synonym_offsets[x + 1] - synonym),
        .synonyms = l->synonyms + synonym,
        .similarity = l->similarity ? l->similarity + synonym : NULL,
        .support_count = (size_t)(l->kernel.offsets[row + 1] - entry),
        .support = l->kernel.ids + entry,
        .weights = l->kernel.weights + entry,
        .total = l->kernel.totals[row],
        .overlap = l->overlap[x],
        .worst = l->worst[x],
    };
}

double safer_lexicon_overlap(const safer_lexicon *l, uint32_t word, uint32_t other)
{
    return sf_overlap(&l->kernel, word, other);
}

safer_lexicon_info safer_lexicon_describe(const safer_lexicon *l)
{
    enum { SHOWN = sizeof((safer_lexicon_info *)0)->largest_components / sizeof(size_t) };
    uint32_t n = l->words.count;
    safer_lexicon_info info = {.words = n,
                               .kernel = l->kernel_name,
                               .provenance = l->provenance,
                               .bytes = l->image.length,
                               .kernel_rows = l->kernel.rows,
                               .directed = l->directed != 0,
                               .kernel_entries = (size_t)l->kernel.offsets[l->kernel.rows]};
    info.pairs = (size_t)l->synonym_offsets[n] / (l->directed ? 1 : 2);
    for (uint32_t x = 0; x < n; x++) info.words_with_synonyms += l->synonym_offsets[x + 1] > l->synonym_offsets[x];
    if (info.words_with_synonyms) info.mean_synonyms = (double)l->synonym_offsets[n] / (double)info.words_with_synonyms;
    for (uint32_t r = 0; r < l->kernel.rows; r++) {
        size_t support = (size_t)(l->kernel.offsets[r + 1] - l->kernel.offsets[r]);
        if (support > info.largest_support) info.largest_support = support;
    }
    uint32_t *sizes = sf_calloc(n, sizeof *sizes); /* without memory the components stay 0 */
    for (uint32_t x = 0; sizes && x < n; x++) sizes[l->component[x]]++;
    for (uint32_t c = 0; sizes && c < n; c++) {
        size_t size = sizes[c];
        if (size < 2) continue;
        info.components++;
        for (int i = 0; i < SHOWN; i++) { /* insert into the falling list */
            if (size <= info.largest_components[i]) continue;
            memmove(info.largest_components + i + 1, info.largest_components + i,
                    (size_t)(SHOWN - 1 - i) * sizeof size);
            info.largest_components[i] = size;
            break;
        }
    }
    free(sizes);
    return info;
}

/* ------------------------------------------------------------------ survey */

safer_status safer_lexicon_survey(safer_survey *out, const safer_lexicon *l, const safer_data *data, int threads,
                                  const safer_progress *progress, safer_error *error)
{
    static const size_t radii[SAFER_SURVEY_RADII] = {5, 10, 20, SIZE_MAX};
    static const double levels[7] = {0, .05, .25, .5, .75, .95, 1};
    safer_status status;
    sf_corpus corpus = {0};
    double *scratch = NULL, *products = NULL; /* products: (radius, text) */
    safer_survey survey = {0};
    SF_TRY(sf_corpus_of(&corpus, &data, 1, &l->words, sf_lexicon_fold(l), threads, progress, error));
    scratch = sf_alloc(sf_corpus_longest(&corpus), sizeof *scratch);
    products = sf_alloc(SAFER_SURVEY_RADII * (corpus.texts ? corpus.texts : 1), sizeof *products);
    if (!scratch || !products) {
        status = sf_fail_memory(error);
        goto done;
    }
    survey.texts = corpus.texts;
    survey.tokens = corpus.tokens;
    survey.known_tokens = (size_t)corpus.offsets[corpus.texts];
    for (size_t t = 0; t < corpus.texts; t++) {
        double of_text[SAFER_SURVEY_RADII];
        size_t count = 0, before = survey.tokens_with_synonyms;
        for (uint64_t i = corpus.offsets[t]; i < corpus.offsets[t + 1]; i++) {
            uint32_t x = corpus.ids[i];
            survey.tokens_with_synonyms += l->synonym_offsets[x + 1] > l->synonym_offsets[x];
            if (l->overlap[x] < 1.0) scratch[count++] = l->overlap[x];
        }
        survey.without_synonyms += survey.tokens_with_synonyms == before;
        sf_overlap_products(of_text, radii, SAFER_SURVEY_RADII, scratch, count);
        for (int r = 0; r < SAFER_SURVEY_RADII; r++) products[(size_t)r * corpus.texts + t] = of_text[r];
    }
    for (int r = 0; r < SAFER_SURVEY_RADII && corpus.texts; r++) {
        double *p = products + (size_t)r * corpus.texts;
        size_t above = 0;
        survey.products[r].radius = radii[r];
        for (size_t t = 0; t < corpus.texts; t++) above += p[t] > 0.5;
        survey.products[r].above_half = (double)above / (double)corpus.texts;
        qsort(p, corpus.texts, sizeof *p, sf_compare_doubles);
        for (int i = 0; i < 7; i++)
            survey.products[r].quantiles[i] = p[(size_t)(levels[i] * (double)(corpus.texts - 1))];
    }
    *out = survey;
done:
    sf_corpus_free(&corpus);
    free(scratch);
    free(products);
    return status;
}

/* ------------------------------------------------------------------ export */

static int add_line(sf_buffer *line, const safer_lexicon *l, uint32_t x, safer_export what)
{
    safer_word w = safer_lexicon_word(l, x);
    int failed = sf_buffer_add_string(line, w.word) | sf_buffer_add_byte(line, '\t');
    if (what == SAFER_EXPORT_SYNONYMS) {
        for (size_t i = 0; i < w.synonym_count && !failed; i++)
            failed = sf_buffer_format(line, "%s%s", i ? " " : "", l->words.pool + l->words.offsets[w.synonyms[i]]);
    } else if (what == SAFER_EXPORT_KERNEL) {
        failed |= sf_buffer_format(line, "%lu\t", (unsigned long)w.total);
        for (size_t i = 0; i < w.support_count && !failed; i++)
            failed = sf_buffer_format(line, "%s%s:%lu", i ? " " : "", l->words.pool + l->words.offsets[w.support[i]],
                                      (unsigned long)w.weights[i]);
    } else {
        char digits[32];
        sf_format_down(digits, w.overlap, 20);
        failed |= sf_buffer_add_string(line, digits);
    }
    return failed | sf_buffer_add_byte(line, '\n');
}

/* The same as a member of one JSON object. */
static int add_member(sf_buffer *line, const safer_lexicon *l, uint32_t x, safer_export what)
{
    safer_word w = safer_lexicon_word(l, x);
    json_t *key = json_string(w.word), *value = NULL;
    if (what == SAFER_EXPORT_SYNONYMS) {
        value = json_array();
        for (size_t i = 0; i < w.synonym_count; i++)
            sf_json_push(&value, json_string(l->words.pool + l->words.offsets[w.synonyms[i]]));
    } else if (what == SAFER_EXPORT_KERNEL) {
        json_t *weights = json_object();
        for (size_t i = 0; i < w.support_count; i++)
            sf_json_put(&weights, l->words.pool + l->words.offsets[w.support[i]], json_integer(w.weights[i]));
        value = json_pack("{s:I, s:o}", "total", (json_int_t)w.total, "weights", weights);
    }
    char *name = sf_json_text(key), *text = sf_json_text(value);
    char digits[32];
    sf_format_down(digits, w.overlap, 20);
    int failed = !name || (what != SAFER_EXPORT_OVERLAP && !text) ||
                 sf_buffer_format(line, "%s\n%s: %s", x ? "," : "{", name, text ? text : digits);
    free(name);
    free(text);
    json_decref(key);
    json_decref(value);
    return failed;
}

/* The pairs that were cut or filtered, as provenance lists them; a line or an element each, `before` elements after
 * others. */
static int add_cuts(sf_buffer *out, const json_t *pairs, int json, size_t before)
{
    const json_t *entry;
    size_t index;
    int failed = 0;
    json_array_foreach(pairs, index, entry)
    {
        const char *text[3];
        for (size_t k = 0; k < 3; k++) text[k] = json_string_value(json_array_get(entry, k));
        const json_t *similarity = json_array_get(entry, 3);
        if (!text[0] || !text[1] || !text[2] || (similarity && !json_is_real(similarity))) return -2;
        if (json) {
            json_t *object = json_pack("{s:s, s:s, s:s}", "word", text[0], "other", text[1], "reason", text[2]);
            if (similarity) sf_json_put(&object, "similarity", json_real(json_real_value(similarity)));
            failed |= sf_buffer_add_string(out, before + index ? ",\n" : "\n") | sf_json_add(out, object);
            json_decref(object);
        } else {
            failed |= sf_buffer_format(out, "%s\t%s\t%s", text[0], text[1], text[2]);
            if (similarity) failed |= sf_buffer_add_byte(out, '\t') | sf_json_add(out, similarity);
            failed |= sf_buffer_add_byte(out, '\n');
        }
    }
    return failed;
}

static safer_status export_cuts(const safer_lexicon *l, int json, safer_write write, void *context, safer_error *error)
{
    sf_buffer out = {0};
    json_t *provenance = NULL;
    safer_status status = sf_json_parse(&provenance, l->provenance, strlen(l->provenance), 0, NULL);
    int failed = status == SAFER_MEMORY || (json && sf_buffer_add_string(&out, "["));
    const json_t *filtered = json_object_get(json_object_get(provenance, "filters"), "pairs");
    const json_t *cuts = json_object_get(json_object_get(provenance, "cuts"), "pairs");
    if (!failed) failed = add_cuts(&out, filtered, json, 0);
    if (!failed) failed = add_cuts(&out, cuts, json, json_array_size(filtered));
    if (!failed && json) failed = sf_buffer_add_string(&out, "\n]\n");
    if (failed == -2)
        status = sf_fail(error, SAFER_INPUT, "the lexicon does not list its cuts as it should");
    else if (failed)
        status = sf_fail_memory(error);
    else if (out.length && write(context, out.bytes, out.length))
        status = sf_fail(error, SAFER_SYSTEM, "writing the export failed");
    else
        status = SAFER_OK;
    json_decref(provenance);
    sf_buffer_free(&out);
    return status;
}

safer_status safer_lexicon_export(const safer_lexicon *l, safer_export what, int json, safer_write write, void *context,
                                  safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_buffer line = {0};
    if (!safer_export_name(what)) return sf_fail(error, SAFER_INVALID, "export: unknown");
    if (what == SAFER_EXPORT_CUTS) return export_cuts(l, json, write, context, error);
    for (uint32_t x = 0; x < l->words.count && status == SAFER_OK; x++) {
        int failed = json ? add_member(&line, l, x, what) : add_line(&line, l, x, what);
        int last = x + 1 == l->words.count;
        if (json && last) failed |= sf_buffer_add_string(&line, "\n}\n");
        if (failed)
            status = sf_fail_memory(error);
        else if (line.length > 1 << 16 || last) {
            if (write(context, line.bytes, line.length))
                status = sf_fail(error, SAFER_SYSTEM, "writing the export failed");
            sf_buffer_clear(&line);
        }
    }
    sf_buffer_free(&line);
    return status;
}
