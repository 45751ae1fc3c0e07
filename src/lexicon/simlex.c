/* Rank correlation with human judgement. */
#include "lexicon/simlex.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "lexicon/vectors.h"
#include "text/word.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 16 };

typedef struct field {
    const char *bytes;
    size_t length;
} field;

static size_t split(const char *p, const char *end, field fields[MAX_COLUMNS])
{
    size_t count = 0;
    while (p < end && count < MAX_COLUMNS) {
        while (p < end && (*p == ' ' || *p == '\t' || *p == '\r')) p++;
        const char *start = p;
        while (p < end && *p != ' ' && *p != '\t' && *p != '\r') p++;
        if (p > start) fields[count++] = (field){start, (size_t)(p - start)};
    }
    return count;
}

static safer_status add_pair(sf_simlex *s, const sf_words *words, const field fields[2], double score, sf_buffer *key,
                             safer_error *error)
{
    uint32_t ids[2];
    for (int i = 0; i < 2; i++) {
        sf_buffer_clear(key);
        if (sf_word_fold(key, fields[i].bytes, fields[i].length) == -1) return sf_fail_memory(error);
        ids[i] = sf_words_find(words, key->bytes ? key->bytes : "", key->length);
        if (ids[i] == SF_NONE) return SAFER_OK;
    }
    if (sf_grow(&s->pairs, &s->pair_capacity, s->count + 1, sizeof *s->pairs) ||
        sf_grow(&s->scores, &s->score_capacity, s->count + 1, sizeof *s->scores))
        return sf_fail_memory(error);
    memcpy(s->pairs[s->count], ids, sizeof ids);
    s->scores[s->count++] = score;
    return SAFER_OK;
}

safer_status sf_simlex_read(sf_simlex *out, const char *path, const sf_words *words, safer_error *error)
{
    sf_file file = {0};
    safer_status status = sf_file_read(&file, path, error);
    if (status == SAFER_OK) status = sf_simlex_parse(out, file.bytes, file.length, path, words, error);
    sf_file_free(&file);
    return status;
}

safer_status sf_simlex_parse(sf_simlex *out, const char *bytes, size_t length, const char *path, const sf_words *words,
                             safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_simlex simlex = {0};
    sf_buffer key = {0};
    size_t column = 2;
    const char *p = bytes, *end = bytes + length;
    for (size_t line = 1; p < end; line++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p)), *stop = newline ? newline : end;
        field fields[MAX_COLUMNS];
        size_t count = split(p, stop, fields);
        double score;
        p = newline ? newline + 1 : end;
        if (count == 0) continue;
        if (line == 1) { /* a header says where the score is */
            int header = 0;
            for (size_t i = 0; i < count; i++)
                if (fields[i].length == 9 && memcmp(fields[i].bytes, "SimLex999", 9) == 0) {
                    column = i;
                    header = 1;
                }
            if (header) continue;
        }
        if (count <= column ||
            sf_parse_double(fields[column].bytes, fields[column].bytes + fields[column].length, &score) !=
                fields[column].bytes + fields[column].length ||
            !isfinite(score)) {
            status = sf_fail(error, SAFER_INPUT, "%s, line %zu: no score in column %zu", path, line, column + 1);
            goto done;
        }
        SF_TRY(add_pair(&simlex, words, fields, score, &key, error));
    }
    if (simlex.count < 2) {
        status = sf_fail(error, SAFER_INPUT, "%s: fewer than two pairs of known words", path);
        goto done;
    }
    *out = simlex;
    simlex = (sf_simlex){0};
done:
    sf_simlex_free(&simlex);
    sf_buffer_free(&key);
    return status;
}

void sf_simlex_free(sf_simlex *simlex)
{
    free(simlex->pairs);
    free(simlex->scores);
    *simlex = (sf_simlex){0};
}

typedef struct ranked {
    double value;
    size_t index;
} ranked;

static int compare_ranked(const void *left, const void *right)
{
    const ranked *p = left, *q = right;
    return p->value < q->value ? -1 : p->value > q->value;
}

/* Replaces values by their ranks; equal values share the mean of theirs. */
static void to_ranks(double *values, ranked *scratch, size_t count)
{
    for (size_t i = 0; i < count; i++) scratch[i] = (ranked){values[i], i};
    qsort(scratch, count, sizeof *scratch, compare_ranked);
    for (size_t i = 0, j; i < count; i = j) {
        for (j = i; j < count && scratch[j].value <= scratch[i].value; j++) continue;
        for (size_t k = i; k < j; k++) values[scratch[k].index] = (double)(i + j - 1) / 2.0;
    }
}

safer_status sf_simlex_correlation(double *rho, const sf_simlex *simlex, const float *values, size_t dim,
                                   safer_error *error)
{
    size_t n = simlex->count;
    double *x = sf_alloc(n, sizeof *x), *y = sf_alloc(n, sizeof *y), mean = (double)(n - 1) / 2.0;
    ranked *scratch = sf_alloc(n, sizeof *scratch);
    safer_status status = SAFER_OK;
    if (!x || !y || !scratch) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t i = 0; i < n; i++) {
        const float *a = values + simlex->pairs[i][0] * dim, *b = values + simlex->pairs[i][1] * dim;
        double lengths = sqrt(sf_vectors_dot(a, a, dim) * sf_vectors_dot(b, b, dim));
        x[i] = lengths > 0 ? sf_vectors_dot(a, b, dim) / lengths : 0;
        y[i] = simlex->scores[i];
    }
    to_ranks(x, scratch, n);
    to_ranks(y, scratch, n);
    double xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < n; i++) {
        xy += (x[i] - mean) * (y[i] - mean);
        xx += (x[i] - mean) * (x[i] - mean);
        yy += (y[i] - mean) * (y[i] - mean);
    }
    *rho = xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
done:
    free(x);
    free(y);
    free(scratch);
    return status;
}
