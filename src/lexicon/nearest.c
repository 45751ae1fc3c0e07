/* Every word's component, nearest first.
 *
 * A candidate is one 64-bit key that sorts as wanted: rank in the high half (similarity
 * turned around, or graph distance), id in the low half. */
#include "lexicon/nearest.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "lexicon/vectors.h"

#include <string.h>

typedef struct scratch {
    uint64_t *keys;     /* largest component */
    uint32_t *queue;    /* largest component */
    uint32_t *distance; /* words; valid where mark[x] is the current word + 1 */
    uint32_t *mark;     /* words */
} scratch;

typedef struct ranking {
    const sf_graph *graph;
    const float *const *rows;
    size_t dim;
    const uint32_t *todo; /* the words to rank */
    sf_nearest *out;
    scratch *scratch; /* one per worker */
    sf_meter meter;
} ranking;

/* Falling similarity as a rising unsigned number. */
static uint64_t rank_of(float similarity)
{
    uint32_t bits;
    similarity += 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &similarity, sizeof bits);
    bits = bits >> 31 ? ~bits : bits | 0x80000000u; /* rises with the number */
    return ~bits;
}

static int compare_keys(const void *left, const void *right)
{
    uint64_t p, q;
    memcpy(&p, left, sizeof p);
    memcpy(&q, right, sizeof q);
    return p < q ? -1 : p > q;
}

/* Moves the `want` smallest keys to the front (quickselect). Keys are distinct. */
static void select_smallest(uint64_t *keys, size_t count, size_t want)
{
    size_t low = 0, high = count;
    while (want > low && want < high && high - low > 1) {
        uint64_t a = keys[low], b = keys[low + (high - low) / 2], c = keys[high - 1];
        uint64_t pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b); /* median of three */
        size_t i = low, j = high;
        for (;;) { /* below the pivot to the left, the rest to the right */
            while (i < j && keys[i] < pivot) i++;
            while (i < j && keys[j - 1] >= pivot) j--;
            if (i >= j) break;
            uint64_t swap = keys[i];
            keys[i++] = keys[--j];
            keys[j] = swap;
        }
        if (i == low) { /* the pivot is the smallest: set it aside and continue */
            for (size_t k = low; k < high; k++)
                if (keys[k] == pivot) {
                    keys[k] = keys[low];
                    keys[low] = pivot;
                    break;
                }
            low++;
        } else if (want < i) {
            high = i;
        } else {
            low = i;
        }
    }
}

/* Graph distances from x, within its component: of all words, or of so many that the `want`
 * nearest are among them. Returns how many, x included; they are in the queue. */
static size_t measure_distances(const sf_graph *g, scratch *s, uint32_t x, size_t want)
{
    size_t head = 0, tail = 0;
    uint32_t level = 0;
    s->mark[x] = x + 1;
    s->distance[x] = 0;
    s->queue[tail++] = x;
    while (head < tail) {
        uint32_t at = s->queue[head++];
        if (s->distance[at] > level && tail > want) break; /* all words up to this distance are in the queue */
        level = s->distance[at];
        for (uint64_t e = g->offsets[at]; e < g->offsets[at + 1]; e++) {
            uint32_t next = g->ids[e];
            if (s->mark[next] == x + 1) continue;
            s->mark[next] = x + 1;
            s->distance[next] = level + 1;
            s->queue[tail++] = next;
        }
    }
    return tail;
}

/* The keys of all members but x by distance alone, or at least of the `want` nearest. In a
 * directed graph some members cannot be reached: they come last. */
static size_t key_distances(const sf_graph *g, scratch *s, uint32_t x, size_t want)
{
    const uint32_t *members = g->members + g->member_offsets[g->component[x]];
    size_t size = sf_graph_component_size(g, g->component[x]), reached = measure_distances(g, s, x, want), count = 0;
    for (size_t i = 1; i < reached; i++) s->keys[count++] = (uint64_t)s->distance[s->queue[i]] << 32 | s->queue[i];
    if (count >= want) return count;
    for (size_t m = 0; m < size; m++)
        if (s->mark[members[m]] != x + 1) s->keys[count++] = (uint64_t)UINT32_MAX << 32 | members[m];
    return count;
}

static void rank_words(void *context, size_t begin, size_t end, int worker)
{
    ranking *job = context;
    const sf_graph *g = job->graph;
    scratch *s = &job->scratch[worker];
    for (size_t t = begin; t < end; t++) {
        uint32_t x = job->todo[t];
        if (sf_meter_cancelled(&job->meter)) return;
        const uint32_t *members = g->members + g->member_offsets[g->component[x]];
        size_t size = sf_graph_component_size(g, g->component[x]), with_vector = 0, without = 0;
        const float *row = job->rows ? job->rows[x] : NULL;
        uint32_t *out = job->out->ids + job->out->offsets[x];
        size_t want = (size_t)(job->out->offsets[x + 1] - job->out->offsets[x]) - 1;
        int measured = 0;
        if (!row) without = key_distances(g, s, x, want);
        for (size_t m = 0; row && m < size; m++) {
            uint32_t z = members[m];
            if (z == x) continue;
            if (job->rows[z]) {
                float similarity = (float)sf_vectors_dot(row, job->rows[z], job->dim);
                s->keys[with_vector++] = rank_of(similarity) << 32 | z;
            } else {
                if (!measured) measure_distances(g, s, x, size);
                measured = 1;
                uint64_t distance = s->mark[z] == x + 1 ? s->distance[z] : UINT32_MAX;
                s->keys[size - 1 - ++without] = distance << 32 | z;
            }
        }
        size_t first = want < with_vector ? want : with_vector, second = want - first;
        *out++ = x;
        select_smallest(s->keys, with_vector, first);
        qsort(s->keys, first, sizeof *s->keys, compare_keys);
        for (size_t k = 0; k < first; k++) *out++ = (uint32_t)s->keys[k];
        if (second) {
            uint64_t *keys = s->keys + with_vector;
            select_smallest(keys, without, second);
            qsort(keys, second, sizeof *keys, compare_keys);
            for (size_t k = 0; k < second; k++) *out++ = (uint32_t)keys[k];
        }
        sf_meter_add(&job->meter, 1, worker);
    }
}

safer_status sf_nearest_build(sf_nearest *out, const sf_graph *graph, const float *const *rows, size_t dim,
                              size_t floor, size_t limit, int threads, const safer_progress *progress,
                              safer_error *error)
{
    safer_status status = SAFER_OK;
    uint32_t n = graph->words, *todo = NULL;
    size_t count = 0, largest = 1;
    sf_nearest nearest = {0};
    ranking job = {.graph = graph, .rows = rows, .dim = dim, .out = &nearest};
    threads = sf_threads(threads);
    nearest.offsets = sf_calloc((size_t)n + 1, sizeof *nearest.offsets);
    todo = sf_alloc(n, sizeof *todo);
    job.scratch = sf_calloc((size_t)threads, sizeof *job.scratch);
    if (!nearest.offsets || !todo || !job.scratch) goto no_memory;
    for (uint32_t x = 0; x < n; x++) {
        size_t size = sf_graph_component_size(graph, graph->component[x]);
        size_t length = size > floor && limit ? (size < limit ? size : limit) : 0;
        nearest.offsets[x + 1] = nearest.offsets[x] + length;
        if (length) todo[count++] = x;
        if (length && size > largest) largest = size;
    }
    job.todo = todo;
    nearest.ids = sf_alloc(nearest.offsets[n], sizeof *nearest.ids);
    if (!nearest.ids) goto no_memory;
    for (int i = 0; count && i < threads; i++) {
        scratch *s = &job.scratch[i];
        s->keys = sf_alloc(largest, sizeof *s->keys);
        s->queue = sf_alloc(largest, sizeof *s->queue);
        s->distance = sf_alloc(n, sizeof *s->distance);
        s->mark = sf_calloc(n, sizeof *s->mark);
        if (!s->keys || !s->queue || !s->distance || !s->mark) goto no_memory;
    }
    sf_meter_start(&job.meter, progress, "ranking neighbours", count);
    sf_parallel(threads, count, 16, rank_words, &job);
    SF_TRY(sf_meter_finish(&job.meter, error));
    *out = nearest;
    nearest = (sf_nearest){0};
    goto done;
no_memory:
    status = sf_fail_memory(error);
done:
    for (int i = 0; job.scratch && i < threads; i++) {
        free(job.scratch[i].keys);
        free(job.scratch[i].queue);
        free(job.scratch[i].distance);
        free(job.scratch[i].mark);
    }
    free(job.scratch);
    free(todo);
    sf_nearest_free(&nearest);
    return status;
}

void sf_nearest_free(sf_nearest *nearest)
{
    free(nearest->offsets);
    free(nearest->ids);
    *nearest = (sf_nearest){0};
}
