/* Pairs of synonyms that the options leave out, one rule after the other: the frequency of words, their parts of
 * speech, and ranks among the pairs that both of these leave.
 *
 * A pair counts both ways, and so does what is left out: the rank is right only where each of the two words is among
 * the nearest of the other, so no word keeps more synonyms than that. In a directed lexicon every direction is a pair
 * of its own, and of a rule that asks for a word, or for the rank, it is the word that is replaced that counts. */
#include "lexicon/filter.h"

#include "base/json.h"
#include "base/memory.h"
#include "lexicon/cuts.h"
#include "lexicon/parts.h"

#include <string.h>

enum { KEPT, FREQUENT, SPEECH, RANK };

static const char *const REASONS[] = {"", "frequency", "part of speech", "rank"};

typedef struct filter {
    sf_draft *draft;
    sf_graph graph;         /* of all pairs, both ways unless the lexicon is directed */
    unsigned char *reason;  /* of each of its edges */
    unsigned char *parts;   /* words: what each can be; NULL: any pair will do */
    char digest[65];        /* of the files that say so */
    size_t found[RANK + 1]; /* pairs, by reason */
} filter;

/* The edge from a to b, or SIZE_MAX. */
static size_t edge_of(const sf_graph *g, uint32_t a, uint32_t b)
{
    size_t low = (size_t)g->offsets[a], end = (size_t)g->offsets[a + 1], high = end;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (g->ids[middle] < b)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && g->ids[low] == b ? low : SIZE_MAX;
}

static int is_frequent(const sf_draft *d, uint32_t x)
{
    const double most = d->options->max_frequency * (double)d->report->tokens;
    return d->options->max_frequency > 0 && d->counts && (double)d->counts[x] > most;
}

static safer_status read_parts(filter *f, safer_error *error)
{
    const sf_words *words = &f->draft->words;
    sf_parts parts = {0};
    safer_status status = sf_parts_read(&parts, f->draft->options->same_pos, error);
    if (status != SAFER_OK) return status;
    f->parts = sf_alloc(words->count, 1);
    for (uint32_t x = 0; f->parts && x < words->count; x++)
        f->parts[x] = (unsigned char)sf_parts_of(&parts, sf_words_string(words, x), sf_words_length(words, x));
    memcpy(f->digest, parts.digest.hex, sizeof f->digest);
    sf_parts_free(&parts);
    return f->parts ? SAFER_OK : sf_fail_memory(error);
}

/* The words that are too frequent and would have had synonyms. */
static safer_status note_frequent(filter *f, safer_error *error)
{
    sf_draft *d = f->draft;
    for (uint32_t x = 0; x < d->words.count; x++) {
        if (f->graph.offsets[x + 1] == f->graph.offsets[x] || !is_frequent(d, x)) continue;
        d->report->frequent_words++;
        const safer_status status = sf_dropped_add(&d->dropped, sf_words_string(&d->words, x),
                                                   sf_words_length(&d->words, x), "frequent", error);
        if (status != SAFER_OK) return status;
    }
    return SAFER_OK;
}

static void judge_words(filter *f)
{
    const sf_graph *g = &f->graph;
    const int both = !f->draft->options->directed;
    for (uint32_t a = 0; a < g->words; a++)
        for (uint64_t e = g->offsets[a]; e < g->offsets[a + 1]; e++) {
            const uint32_t b = g->ids[e];
            if (is_frequent(f->draft, a) || (both && is_frequent(f->draft, b)))
                f->reason[e] = FREQUENT;
            else if (f->parts && !(f->parts[a] & f->parts[b]))
                f->reason[e] = SPEECH;
        }
}

typedef struct ranked {
    double strength;
    size_t edge; /* of one word, so by the number of the other */
} ranked;

static int by_rank(const void *left, const void *right)
{
    const ranked *p = left, *q = right;
    if (p->strength != q->strength) return p->strength > q->strength ? -1 : 1;
    return p->edge < q->edge ? -1 : p->edge > q->edge;
}

/* far (edges): whether the second word is not among the nearest of the first. */
static safer_status rank(filter *f, unsigned char *far, safer_error *error)
{
    const sf_draft *d = f->draft;
    const sf_graph *g = &f->graph;
    const sf_cutting from = {.similar = d->with_similarity, .rows = d->rows, .dim = d->dim};
    size_t longest = 0;
    for (uint32_t a = 0; a < g->words; a++)
        if (g->offsets[a + 1] - g->offsets[a] > longest) longest = (size_t)(g->offsets[a + 1] - g->offsets[a]);
    ranked *list = sf_alloc(longest + 1, sizeof *list);
    if (!list) return sf_fail_memory(error);
    for (uint32_t a = 0; a < g->words; a++) {
        size_t count = 0;
        for (size_t e = (size_t)g->offsets[a]; e < g->offsets[a + 1]; e++)
            if (f->reason[e] == KEPT) list[count++] = (ranked){sf_cut_weigh(g, &from, a, e).strength, e};
        if (count > d->options->nearest) qsort(list, count, sizeof *list, by_rank);
        for (size_t i = d->options->nearest; i < count; i++) far[list[i].edge] = 1;
    }
    free(list);
    return SAFER_OK;
}

static safer_status judge_ranks(filter *f, safer_error *error)
{
    const sf_graph *g = &f->graph;
    const int both = !f->draft->options->directed;
    unsigned char *far = sf_calloc((size_t)g->offsets[g->words] + 1, 1);
    if (!far) return sf_fail_memory(error);
    const safer_status status = rank(f, far, error);
    for (uint32_t a = 0; status == SAFER_OK && a < g->words; a++)
        for (size_t e = (size_t)g->offsets[a]; e < g->offsets[a + 1]; e++)
            if (f->reason[e] == KEPT && (far[e] || (both && far[edge_of(g, g->ids[e], a)]))) f->reason[e] = RANK;
    free(far);
    return status;
}

/* What provenance says of them: the options, and every pair with its reason. */
static json_t *describe(filter *f)
{
    const sf_draft *d = f->draft;
    const sf_graph *g = &f->graph;
    const safer_lexicon_options *o = d->options;
    json_t *list = json_array(), *out = json_object();
    for (uint32_t a = 0; a < g->words; a++)
        for (uint64_t e = g->offsets[a]; e < g->offsets[a + 1]; e++) {
            if (f->reason[e] == KEPT || (!o->directed && g->ids[e] < a)) continue;
            f->found[f->reason[e]]++;
            sf_json_push(&list, json_pack("[s, s, s]", sf_words_string(&d->words, a),
                                          sf_words_string(&d->words, g->ids[e]), REASONS[f->reason[e]]));
        }
    if (o->max_frequency > 0) sf_json_put(&out, "max_frequency", json_real(o->max_frequency));
    if (o->same_pos) sf_json_put(&out, "same_pos", json_string(f->digest));
    if (o->nearest) sf_json_put(&out, "nearest", json_integer((json_int_t)o->nearest));
    sf_json_put(&out, "frequent_words", json_integer((json_int_t)d->report->frequent_words));
    sf_json_put(&out, "for_frequency", json_integer((json_int_t)f->found[FREQUENT]));
    sf_json_put(&out, "for_speech", json_integer((json_int_t)f->found[SPEECH]));
    sf_json_put(&out, "for_rank", json_integer((json_int_t)f->found[RANK]));
    sf_json_put(&out, "pairs", list);
    return out;
}

static void drop(filter *f)
{
    sf_draft *d = f->draft;
    size_t kept = 0;
    for (size_t i = 0; i < d->edge_count; i++) {
        const size_t e = edge_of(&f->graph, d->edges[i].a, d->edges[i].b); /* none: a word with itself */
        if (e == SIZE_MAX || f->reason[e] == KEPT) d->edges[kept++] = d->edges[i];
    }
    d->edge_count = kept;
}

safer_status sf_draft_filter(sf_draft *draft, safer_error *error)
{
    const safer_lexicon_options *o = draft->options;
    safer_lexicon_report *report = draft->report;
    safer_status status;
    filter f = {.draft = draft};
    if (!(o->max_frequency > 0) && !o->same_pos && !o->nearest) return SAFER_OK;
    SF_TRY(sf_graph_build(&f.graph, draft->words.count, draft->edges, draft->edge_count,
                          o->directed ? SF_DIRECTED : SF_SYMMETRIC, draft->with_similarity, NULL, error));
    f.reason = sf_calloc((size_t)f.graph.offsets[f.graph.words] + 1, 1);
    if (!f.reason) {
        status = sf_fail_memory(error);
        goto done;
    }
    if (o->same_pos) SF_TRY(read_parts(&f, error));
    SF_TRY(note_frequent(&f, error));
    judge_words(&f);
    if (o->nearest) SF_TRY(judge_ranks(&f, error));
    sf_json_put(&draft->provenance, "filters", describe(&f));
    if (!draft->provenance) status = sf_fail_memory(error);
    report->filtered_for_frequency = f.found[FREQUENT];
    report->filtered_for_speech = f.found[SPEECH];
    report->filtered_for_rank = f.found[RANK];
    drop(&f);
done:
    sf_graph_free(&f.graph);
    free(f.reason);
    free(f.parts);
    return status;
}
