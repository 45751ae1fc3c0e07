/* Components that antonyms do not share, and that are no larger than asked for.
 *
 * Pairs are joined from the strongest to the weakest, as Kruskal's algorithm does. A pair whose words are in two
 * components is cut when the two together would hold antonyms, or more words than allowed; otherwise the two become
 * one. A pair within one component stays.
 *
 * Why the result is right: both reasons hold for every larger set once they hold for a set, so two components that were
 * kept apart never become one later, and no chain of pairs that stay leads around a cut. In the end no component holds
 * antonyms or too many words, and every pair that was cut would have changed that, given the stronger pairs.
 *
 * Strength is the similarity, where pairs have one. Imported pairs have the cosine of their vectors where both words
 * have one; weaker than all of these are the others, in the order of the share of synonyms that the two words have in
 * common. Equally strong pairs are taken by the numbers of their words, so the result depends on nothing else. */
#include "lexicon/cuts.h"

#include "base/json.h"
#include "base/memory.h"
#include "lexicon/vectors.h"

#include <math.h>

typedef struct parting {
    const sf_constraints *antonyms; /* sorted */
    size_t most;                    /* words of a component */
    uint32_t *parent;               /* words: union-find, */
    uint32_t *size;                 /* of each root its words, */
    uint32_t *next;                 /* and of each word the next one of its component, around */
} parting;

static uint32_t root_of(const parting *p, uint32_t x)
{
    while (p->parent[x] != x) {
        p->parent[x] = p->parent[p->parent[x]]; /* halve the path */
        x = p->parent[x];
    }
    return x;
}

/* The first constraint of word x, or where it would stand. */
static size_t first_of(const sf_constraints *antonyms, uint32_t x)
{
    size_t low = 0, high = antonyms->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (antonyms->pairs[middle][0] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether a word of component a has an antonym in component b. Walks around the smaller one. */
static int has_antonyms(const parting *p, uint32_t a, uint32_t b)
{
    if (!p->antonyms->count) return 0;
    const uint32_t small = p->size[a] <= p->size[b] ? a : b, large = small == a ? b : a;
    uint32_t x = small;
    do {
        for (size_t i = first_of(p->antonyms, x); i < p->antonyms->count && p->antonyms->pairs[i][0] == x; i++)
            if (root_of(p, p->antonyms->pairs[i][1]) == large) return 1;
        x = p->next[x];
    } while (x != small);
    return 0;
}

static void join(parting *p, uint32_t a, uint32_t b)
{
    const uint32_t root = p->size[a] >= p->size[b] ? a : b, other = root == a ? b : a, after = p->next[root];
    p->parent[other] = root;
    p->size[root] += p->size[other];
    p->next[root] = p->next[other]; /* two circles become one */
    p->next[other] = after;
}

/* The share of words that both are or have as synonyms. */
static double common_share(const sf_graph *g, uint32_t a, uint32_t b)
{
    uint64_t i = g->offsets[a], j = g->offsets[b], common = 2; /* a and b are in both sets */
    const uint64_t all = g->offsets[a + 1] - i + g->offsets[b + 1] - j + 2;
    while (i < g->offsets[a + 1] && j < g->offsets[b + 1]) {
        common += g->ids[i] == g->ids[j];
        const int forward = g->ids[i] <= g->ids[j];
        j += g->ids[j] <= g->ids[i];
        i += (uint64_t)forward;
    }
    return (double)common / (double)(all - common);
}

static int by_strength(const void *left, const void *right)
{
    const sf_cut *p = left, *q = right;
    if (p->strength != q->strength) return p->strength > q->strength ? -1 : 1;
    return sf_pair_compare(&p->pair, &q->pair);
}

sf_cut sf_cut_weigh(const sf_graph *g, const sf_cutting *from, uint32_t a, uint64_t e)
{
    sf_cut c = {.pair = {a, g->ids[e], 0}};
    const int vectors = from->rows && from->rows[a] && from->rows[c.pair.b];
    if (from->similar)
        c.pair.similarity = g->similarity[e];
    else if (vectors)
        c.pair.similarity = (float)sf_vectors_dot(from->rows[a], from->rows[c.pair.b], from->dim);
    c.strength = from->similar || vectors ? (double)c.pair.similarity
                                          : common_share(g, a, c.pair.b) - 3; /* below every cosine */
    return c;
}

/* Every pair once, strongest first; NULL without memory. */
static sf_cut *list_pairs(size_t *count, const sf_graph *g, const sf_cutting *from)
{
    sf_cut *list = sf_alloc((size_t)g->offsets[g->words] / 2 + 1, sizeof *list);
    *count = 0;
    for (uint32_t a = 0; list && a < g->words; a++)
        for (uint64_t e = g->offsets[a]; e < g->offsets[a + 1]; e++)
            if (g->ids[e] > a) list[(*count)++] = sf_cut_weigh(g, from, a, e);
    if (list && *count) qsort(list, *count, sizeof *list, by_strength);
    return list;
}

safer_status sf_cuts_find(sf_cuts *out, const sf_cutting *from, safer_error *error)
{
    safer_status status;
    const uint32_t words = from->words;
    const sf_constraints *antonyms = from->antonyms;
    sf_graph graph = {0};
    sf_cuts cuts = {0};
    size_t pairs = 0;
    parting p = {.antonyms = antonyms, .most = from->most ? from->most : SIZE_MAX};
    SF_TRY(sf_graph_build(&graph, words, from->edges, from->count, SF_SYMMETRIC, from->similar, NULL, error));
    p.parent = sf_alloc(words, sizeof *p.parent);
    p.size = sf_alloc(words, sizeof *p.size);
    p.next = sf_alloc(words, sizeof *p.next);
    cuts.items = list_pairs(&pairs, &graph, from);
    if (!p.parent || !p.size || !p.next || !cuts.items) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (uint32_t x = 0; x < words; x++) {
        p.parent[x] = p.next[x] = x;
        p.size[x] = 1;
    }
    for (size_t i = 0; i < antonyms->count; i++)
        cuts.parted += antonyms->pairs[i][0] < antonyms->pairs[i][1] &&
                       graph.component[antonyms->pairs[i][0]] == graph.component[antonyms->pairs[i][1]];
    for (size_t i = 0; i < pairs; i++) {
        sf_cut c = cuts.items[i];
        const uint32_t a = root_of(&p, c.pair.a), b = root_of(&p, c.pair.b);
        if (a == b) continue;
        const int antonymous = has_antonyms(&p, a, b);
        c.for_size = !antonymous && (size_t)p.size[a] + p.size[b] > p.most;
        cuts.for_size += (size_t)c.for_size;
        if (antonymous || c.for_size)
            cuts.items[cuts.count++] = c; /* never ahead of i */
        else
            join(&p, a, b);
    }
    *out = cuts;
    cuts.items = NULL;
done:
    sf_graph_free(&graph);
    free(p.parent);
    free(p.size);
    free(p.next);
    free(cuts.items);
    return status;
}

/* ------------------------------------------------------------ of a draft */

static int by_words(const void *left, const void *right)
{
    return sf_pair_compare(&((const sf_cut *)left)->pair, &((const sf_cut *)right)->pair);
}

/* Drops the edges, in either direction, whose words were cut apart. Sorts the cuts by words. */
static void drop(sf_draft *draft, sf_cuts *cuts)
{
    size_t kept = 0;
    if (!cuts->count) return;
    qsort(cuts->items, cuts->count, sizeof *cuts->items, by_words);
    for (size_t i = 0; i < draft->edge_count; i++) {
        const sf_pair e = draft->edges[i];
        const sf_cut key = {.pair = {e.a < e.b ? e.a : e.b, e.a < e.b ? e.b : e.a, 0}};
        if (!bsearch(&key, cuts->items, cuts->count, sizeof key, by_words)) draft->edges[kept++] = e;
    }
    draft->edge_count = kept;
}

/* What provenance says of them: the options, and every pair with its reason. */
static json_t *describe(const sf_draft *draft, const sf_cuts *cuts)
{
    json_t *list = json_array(), *out = json_object();
    for (size_t i = 0; i < cuts->count; i++) {
        const sf_cut *c = &cuts->items[i];
        json_t *entry = json_pack("[s, s, s]", sf_words_string(&draft->words, c->pair.a),
                                  sf_words_string(&draft->words, c->pair.b), c->for_size ? "size" : "antonyms");
        /* Four decimals say which is weaker; more would be noise. */
        if (c->strength >= -2) sf_json_push(&entry, json_real(trunc((double)c->pair.similarity * 1e4) / 1e4));
        sf_json_push(&list, entry);
    }
    if (draft->options->max_component)
        sf_json_put(&out, "max_component", json_integer((json_int_t)draft->options->max_component));
    sf_json_put(&out, "antonyms", json_integer((json_int_t)draft->report->antonyms));
    sf_json_put(&out, "parted_antonyms", json_integer((json_int_t)cuts->parted));
    sf_json_put(&out, "for_antonyms", json_integer((json_int_t)(cuts->count - cuts->for_size)));
    sf_json_put(&out, "for_size", json_integer((json_int_t)cuts->for_size));
    sf_json_put(&out, "pairs", list);
    return out;
}

safer_status sf_draft_cut(sf_draft *draft, safer_error *error)
{
    safer_status status;
    const safer_lexicon_options *o = draft->options;
    const sf_constraints none = {0};
    const sf_cutting from = {.words = draft->words.count,
                             .edges = draft->edges,
                             .count = draft->edge_count,
                             .similar = draft->with_similarity,
                             .rows = draft->rows,
                             .dim = draft->dim,
                             .antonyms = o->keep_antonyms ? &none : &draft->antonyms,
                             .most = o->max_component};
    sf_cuts cuts = {0};
    if (!from.antonyms->count && !from.most) return SAFER_OK;
    draft->report->antonyms = from.antonyms->count / 2;
    SF_TRY(sf_cuts_find(&cuts, &from, error));
    draft->report->parted_antonyms = cuts.parted;
    draft->report->cut_for_size = cuts.for_size;
    draft->report->cut_for_antonyms = cuts.count - cuts.for_size;
    sf_json_put(&draft->provenance, "cuts", describe(draft, &cuts));
    if (!draft->provenance) status = sf_fail_memory(error);
    drop(draft, &cuts);
done:
    free(cuts.items);
    return status;
}
