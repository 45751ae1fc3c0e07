/* Counter-fitting.
 *
 * With rows of length 1 and distance d(u,v) = 1 - u.v, the gradient of d by u on the
 * sphere is (u.v)u - v. In every step each word v_i takes the mean, over its active
 * constraints, of
 *     repel     +k1 ((v_i.v_j) v_i - v_j)   antonyms j with d < delta
 *     attract   -k2 ((v_i.v_j) v_i - v_j)   synonyms j with d > gamma
 *     preserve  -k3 ((v_i.v_j) v_i - v_j)   neighbours j of the start with d >= d at the start
 * computed from the vectors of the step before, adds it, and is scaled to length 1.
 * Every word gathers its own update, so words can be done in any order. */
#include "lexicon/counterfit.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "lexicon/pairs.h"
#include "lexicon/table.h"
#include "lexicon/vectors.h"
#include "text/word.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------ constraints */

static safer_status find_word(const char *bytes, size_t length, const sf_words *words, sf_buffer *key, uint32_t *id,
                              safer_error *error)
{
    sf_buffer_clear(key);
    int code = sf_word_fold(key, bytes, length);
    if (code == -1) return sf_fail_memory(error);
    *id = code == 0 ? sf_words_find(words, key->bytes, key->length) : SF_NONE;
    return SAFER_OK;
}

safer_status sf_constraints_add(sf_constraints *c, uint32_t a, uint32_t b, safer_error *error)
{
    if (a == SF_NONE || b == SF_NONE || a == b) return SAFER_OK;
    if (sf_grow(&c->pairs, &c->capacity, c->count + 2, sizeof *c->pairs)) return sf_fail_memory(error);
    c->pairs[c->count][0] = c->pairs[c->count + 1][1] = a;
    c->pairs[c->count][1] = c->pairs[c->count + 1][0] = b;
    c->count += 2;
    return SAFER_OK;
}

safer_status sf_constraints_parse(sf_constraints *constraints, const char *bytes, size_t length, const char *name,
                                  const sf_words *words, safer_error *error)
{
    safer_status status = sf_check_encoding(bytes, length, name, error);
    sf_buffer key = {0};
    const char *p = bytes, *end = bytes + length;
    if (status != SAFER_OK) return status;
    if (length >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) p += 3; /* byte-order mark */
    for (size_t line = 1; p < end; line++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p)), *stop = newline ? newline : end;
        sf_span field[2];
        size_t fields = 0;
        for (const char *q = p; q < stop;) {
            while (q < stop && (*q == ' ' || *q == '\t' || *q == '\r')) q++;
            const char *start = q;
            while (q < stop && *q != ' ' && *q != '\t' && *q != '\r') q++;
            if (q > start) {
                if (fields < 2) field[fields] = (sf_span){start, (size_t)(q - start)};
                fields++;
            }
        }
        p = newline ? newline + 1 : end;
        if (fields == 0) continue;
        if (fields != 2) {
            status = sf_fail(error, SAFER_INPUT, "%s, line %zu: %zu word%s where a pair is expected", name, line,
                             fields, fields == 1 ? "" : "s");
            goto done;
        }
        uint32_t a = SF_NONE, b = SF_NONE;
        SF_TRY(sf_check_header(field[0], field[1], line, name, error));
        SF_TRY(find_word(field[0].bytes, field[0].length, words, &key, &a, error));
        SF_TRY(find_word(field[1].bytes, field[1].length, words, &key, &b, error));
        constraints->lines++;
        constraints->unknown += a == SF_NONE || b == SF_NONE;
        SF_TRY(sf_constraints_add(constraints, a, b, error));
    }
done:
    sf_buffer_free(&key);
    return status;
}

safer_status sf_constraints_read(sf_constraints *constraints, const char *path, const sf_words *words,
                                 safer_error *error)
{
    sf_file file = {0};
    safer_status status = sf_file_read(&file, path, error);
    if (status == SAFER_OK) status = sf_constraints_parse(constraints, file.bytes, file.length, path, words, error);
    sf_file_free(&file);
    return status;
}

static int compare_constraints(const void *left, const void *right)
{
    const uint32_t *p = left, *q = right;
    if (p[0] != q[0]) return p[0] < q[0] ? -1 : 1;
    return p[1] < q[1] ? -1 : p[1] > q[1];
}

void sf_constraints_sort(sf_constraints *constraints)
{
    size_t kept = 0;
    if (!constraints->count) return;
    qsort(constraints->pairs, constraints->count, sizeof *constraints->pairs, compare_constraints);
    for (size_t i = 0; i < constraints->count; i++) {
        if (kept && compare_constraints(constraints->pairs[kept - 1], constraints->pairs[i]) == 0) continue;
        memmove(constraints->pairs[kept++], constraints->pairs[i], sizeof *constraints->pairs);
    }
    constraints->count = kept;
}

void sf_constraints_renumber(sf_constraints *constraints, const uint32_t *map)
{
    size_t kept = 0;
    for (size_t i = 0; i < constraints->count; i++) {
        const uint32_t a = map[constraints->pairs[i][0]], b = map[constraints->pairs[i][1]];
        if (a == SF_NONE || b == SF_NONE) continue;
        constraints->pairs[kept][0] = a;
        constraints->pairs[kept++][1] = b;
    }
    constraints->count = kept;
}

void sf_constraints_free(sf_constraints *constraints)
{
    free(constraints->pairs);
    *constraints = (sf_constraints){0};
}

static int is_constraint(const sf_constraints *constraints, uint32_t a, uint32_t b)
{
    const uint32_t key[2] = {a, b};
    return constraints->count && bsearch(key, constraints->pairs, constraints->count, sizeof *constraints->pairs,
                                         compare_constraints) != NULL;
}

/* ---------------------------------------------------------------- fitting */

typedef enum pull { REPEL, ATTRACT, PRESERVE } pull;

/* One constraint as its first word sees it. */
typedef struct tie {
    uint32_t other;
    pull kind;
    double distance; /* beyond (attract, preserve) or below (repel) which it is active */
} tie;

typedef struct fit {
    const sf_counterfit_options *options;
    const float *old;
    float *new;
    size_t dim;
    const size_t *first; /* count+1: where each word's ties begin */
    const tie *ties;
    double *scratch; /* dim numbers per worker */
} fit;

static void fit_words(void *context, size_t begin, size_t end, int worker)
{
    fit *job = context;
    const sf_counterfit_options *o = job->options;
    size_t dim = job->dim;
    double *update = job->scratch + (size_t)worker * dim;
    for (size_t i = begin; i < end; i++) {
        const float *v = job->old + i * dim;
        float *moved = job->new + i *dim;
        size_t active = 0;
        double own = 0; /* the update's multiple of v itself */
        memset(update, 0, dim * sizeof *update);
        for (size_t t = job->first[i]; t < job->first[i + 1]; t++) {
            const tie *c = &job->ties[t];
            const float *u = job->old + (size_t)c->other * dim;
            double cosine = sf_vectors_dot(v, u, dim), distance = 1.0 - cosine, weight;
            if (c->kind == REPEL) {
                if (!(distance < c->distance)) continue;
                weight = o->repel;
            } else if (c->kind == ATTRACT) {
                if (!(distance > c->distance)) continue;
                weight = -o->attract;
            } else {
                if (!(distance >= c->distance)) continue;
                weight = -o->preserve;
            }
            active++;
            own += weight * cosine;
            for (size_t k = 0; k < dim; k++) update[k] -= weight * (double)u[k];
        }
        if (!active) {
            memcpy(moved, v, dim * sizeof *v);
            continue;
        }
        double square = 0;
        for (size_t k = 0; k < dim; k++) {
            update[k] = (double)v[k] + (update[k] + own * (double)v[k]) / (double)active;
            square += update[k] * update[k];
        }
        double length = sqrt(square);
        if (!(length > 1e-20)) length = 1;
        for (size_t k = 0; k < dim; k++) moved[k] = (float)(update[k] / length);
    }
}

sf_counterfit_options sf_counterfit_options_default(void)
{
    return (sf_counterfit_options){.repel = 0.1,
                                   .attract = 0.1,
                                   .preserve = 0.1,
                                   .antonym_distance = 1.0,
                                   .synonym_distance = 0.0,
                                   .radius = 0.2,
                                   .steps = 20};
}

/* Gathers all constraints word by word: antonyms, synonyms that are not antonyms,
 * preserved pairs that are not antonyms. */
static safer_status collect_ties(size_t **first_out, tie **ties_out, const float *values, size_t count, size_t dim,
                                 const sf_constraints *synonyms, const sf_constraints *antonyms, const sf_pairs *near,
                                 const sf_counterfit_options *o, safer_error *error)
{
    size_t *first = sf_calloc(count + 2, sizeof *first);
    tie *ties = sf_alloc(synonyms->count + antonyms->count + 2 * near->count, sizeof *ties);
    if (!first || !ties) {
        free(first);
        free(ties);
        return sf_fail_memory(error);
    }
    /* Twice through the constraints: count each word's, then put them in place. */
    for (int place = 0; place < 2; place++) {
        size_t *slot = first + 1; /* while placing, slot[w] walks through w's range */
#define TIE(word, ...) (place ? (void)(ties[slot[word]++] = (tie){__VA_ARGS__}) : (void)slot[(word) + 1]++)
        for (size_t i = 0; i < antonyms->count; i++)
            TIE(antonyms->pairs[i][0], antonyms->pairs[i][1], REPEL, o->antonym_distance);
        for (size_t i = 0; i < synonyms->count; i++)
            if (!is_constraint(antonyms, synonyms->pairs[i][0], synonyms->pairs[i][1]))
                TIE(synonyms->pairs[i][0], synonyms->pairs[i][1], ATTRACT, o->synonym_distance);
        for (size_t i = 0; i < near->count; i++) {
            uint32_t a = near->items[i].a, b = near->items[i].b;
            if (is_constraint(antonyms, a, b)) continue;
            /* In full precision: a pair that has not moved must compare as not having moved. */
            double distance = 1.0 - sf_vectors_dot(values + a * dim, values + b * dim, dim);
            TIE(a, b, PRESERVE, distance);
            TIE(b, a, PRESERVE, distance);
        }
#undef TIE
        if (!place)
            for (size_t w = 0; w < count; w++) slot[w + 1] += slot[w];
    }
    /* After placing, slot[w] = first[w+1] is the end of w's range, as it should be. */
    *first_out = first;
    *ties_out = ties;
    return SAFER_OK;
}

safer_status sf_counterfit(float *values, size_t count, size_t dim, const sf_constraints *synonyms,
                           const sf_constraints *antonyms, const sf_counterfit_options *options, int threads,
                           const safer_progress *progress, size_t *preserved, safer_error *error)
{
    safer_status status;
    sf_pairs near = {0};
    size_t *first = NULL;
    tie *ties = NULL;
    float *other = NULL;
    double *scratch = NULL;
    threads = sf_threads(threads);
    SF_TRY(sf_pairs_find(&near, values, count, dim, 1.0 - options->radius, threads, progress,
                         "counter-fitting: neighbourhoods", error));
    *preserved = near.count;
    SF_TRY(collect_ties(&first, &ties, values, count, dim, synonyms, antonyms, &near, options, error));
    other = sf_alloc_aligned(count * dim, sizeof *other);
    scratch = sf_alloc((size_t)threads * dim, sizeof *scratch);
    if (!other || !scratch) {
        status = sf_fail_memory(error);
        goto done;
    }
    fit job = {.options = options, .dim = dim, .first = first, .ties = ties, .scratch = scratch};
    float *from = values, *to = other;
    sf_meter meter;
    sf_meter_start(&meter, progress, "counter-fitting", (uint64_t)options->steps);
    for (int step = 0; step < options->steps; step++) {
        job.old = from;
        job.new = to;
        sf_parallel(threads, count, 256, fit_words, &job);
        float *swap = from;
        from = to;
        to = swap;
        if (sf_meter_add(&meter, 1, 0)) break;
    }
    if (from != values) memcpy(values, from, count * dim * sizeof *values);
    status = sf_meter_finish(&meter, error);
done:
    free(near.items);
    free(first);
    free(ties);
    free(other);
    free(scratch);
    return status;
}
