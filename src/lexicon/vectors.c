/* Reading word vectors.
 *
 * A text file is cut into pieces at line ends. One parallel pass counts the lines, so
 * that every piece knows the number of its first line; a second one parses each piece
 * straight into its rows of the matrix. Which words are kept is decided afterwards, in
 * file order, by one thread. docs/lexicon.md lists the formats. */
#include "lexicon/vectors.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/parallel.h"
#include "lexicon/table.h"
#include "text/word.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { PIECE = 1 << 20 };

/* Where a row's word lies in the file. */
typedef struct span {
    size_t begin;
    uint32_t length;
} span;

/* The first fault of a piece; line 0: no fault. */
typedef struct fault {
    size_t line;
    const char *reason;
    size_t found; /* numbers in a ragged row */
} fault;

typedef struct parse {
    const char *bytes;
    size_t length, dim, rows;
    size_t pieces, *starts; /* pieces+1 byte offsets, at line starts */
    size_t *first;          /* pieces+1: number of the first line of each, from 0 */
    float *values;
    span *spans;
    fault *faults; /* one per piece */
} parse;

static const char *line_end(const char *p, const char *end)
{
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    return newline ? newline : end;
}

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && is_blank(*p)) p++;
    return p;
}

static const char *skip_field(const char *p, const char *end)
{
    while (p < end && !is_blank(*p)) p++;
    return p;
}

static size_t count_fields(const char *p, const char *end)
{
    size_t fields = 0;
    for (p = skip_blanks(p, end); p < end; p = skip_blanks(skip_field(p, end), end)) fields++;
    return fields;
}

/* ------------------------------------------------------------ text files */

static void count_lines(void *context, size_t begin, size_t end, int worker)
{
    parse *job = context;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        size_t lines = 0;
        const char *stop = job->bytes + job->starts[i + 1];
        for (const char *p = job->bytes + job->starts[i]; p < stop; lines++) {
            p = line_end(p, stop);
            if (p < stop) p++;
        }
        job->first[i + 1] = lines;
    }
}

/* The usual case, a few digits around a point, without a call: such a mantissa and such a
 * power of ten are doubles, so one division rounds correctly. NULL for anything else. */
static const char *parse_plain(const char *p, const char *end, double *out)
{
    static const double power[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    int negative = p < end && *p == '-';
    uint64_t mantissa = 0;
    p += negative;
    const char *first = p, *point = NULL;
    for (; p < end; p++) {
        unsigned digit = (unsigned)*p - '0';
        if (digit < 10)
            mantissa = mantissa * 10 + digit;
        else if (*p == '.' && !point)
            point = p;
        else
            break;
    }
    ptrdiff_t digits = p - first - (point != NULL);
    if (digits < 1 || digits > 15 || (p < end && !is_blank(*p))) return NULL;
    double value = (double)mantissa;
    if (point) value /= power[p - point - 1];
    *out = negative ? -value : value;
    return p;
}

/* Parses dim numbers from p to the end of the line. NULL, with the reason, on a fault. */
static const char *parse_numbers(const char *p, const char *end, float *row, size_t dim, fault *bad)
{
    for (size_t k = 0; k < dim; k++) {
        double value;
        p = skip_blanks(p, end);
        if (p == end) {
            *bad = (fault){.reason = "ragged", .found = k};
            return NULL;
        }
        const char *stop = parse_plain(p, end, &value);
        if (!stop) stop = sf_parse_double(p, end, &value);
        if (!stop || (stop < end && !is_blank(*stop))) {
            *bad = (fault){.reason = "not a number"};
            return NULL;
        }
        float narrow = (float)value;
        if (!isfinite(narrow)) {
            *bad = (fault){.reason = "NaN, infinity or too large"};
            return NULL;
        }
        row[k] = narrow;
        p = stop;
    }
    return skip_blanks(p, end);
}

/* One line: a word, then dim numbers. A word may hold spaces (GloVe 840B has some): it
 * ends where dim fields are left. */
static void parse_line(parse *job, size_t line, const char *p, const char *end, fault *bad)
{
    float *row = job->values + line * job->dim;
    const char *word = p, *word_end = skip_field(p, end);
    const char *rest = parse_numbers(word_end, end, row, job->dim, bad);
    if (!rest || rest < end) {
        size_t fields = count_fields(p, end);
        double ignored;
        const char *second = skip_blanks(word_end, end), *second_end = skip_field(second, end);
        int phrase = fields > job->dim + 1 && sf_parse_double(second, second_end, &ignored) != second_end;
        if (!phrase) {
            if (fields != job->dim + 1) *bad = (fault){.reason = "ragged", .found = fields ? fields - 1 : 0};
            if (!bad->reason) *bad = (fault){.reason = "no word before the numbers"};
            bad->line = line + 1;
            return;
        }
        for (size_t extra = fields - job->dim - 1; extra; extra--)
            word_end = skip_field(skip_blanks(word_end, end), end);
        *bad = (fault){0};
        rest = parse_numbers(word_end, end, row, job->dim, bad);
        if (!rest || rest < end) {
            if (!bad->reason) *bad = (fault){.reason = "no word before the numbers"};
            bad->line = line + 1;
            return;
        }
    }
    job->spans[line] = (span){(size_t)(word - job->bytes), (uint32_t)(word_end - word)};
}

static void parse_pieces(void *context, size_t begin, size_t end, int worker)
{
    parse *job = context;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        size_t line = job->first[i];
        const char *stop = job->bytes + job->starts[i + 1];
        for (const char *p = job->bytes + job->starts[i]; p < stop && !job->faults[i].line; line++) {
            const char *eol = line_end(p, stop);
            parse_line(job, line, p, eol, &job->faults[i]);
            p = eol < stop ? eol + 1 : stop;
        }
    }
}

static safer_status parse_text(parse *job, size_t skip, const char *name, int threads, safer_error *error)
{
    size_t body = job->length - skip;
    job->pieces = body / PIECE + 1;
    job->starts = sf_calloc(job->pieces + 1, sizeof *job->starts);
    job->first = sf_calloc(job->pieces + 1, sizeof *job->first);
    job->faults = sf_calloc(job->pieces, sizeof *job->faults);
    if (!job->starts || !job->first || !job->faults) return sf_fail_memory(error);
    const char *end = job->bytes + job->length;
    job->starts[0] = skip;
    for (size_t i = 1; i < job->pieces; i++) {
        size_t at = skip + body / job->pieces * i;
        if (at < job->starts[i - 1]) at = job->starts[i - 1];
        const char *eol = line_end(job->bytes + at, end);
        job->starts[i] = (size_t)(eol - job->bytes) + (eol < end);
    }
    job->starts[job->pieces] = job->length;

    sf_parallel(threads, job->pieces, 1, count_lines, job);
    for (size_t i = 0; i < job->pieces; i++) job->first[i + 1] += job->first[i];
    job->rows = job->first[job->pieces];
    job->values = job->dim <= SIZE_MAX / sizeof(float) / (job->rows + 1)
                      ? sf_alloc_aligned(job->rows * job->dim, sizeof *job->values)
                      : NULL;
    job->spans = sf_alloc(job->rows, sizeof *job->spans);
    if (!job->values || !job->spans) return sf_fail_memory(error);
    sf_parallel(threads, job->pieces, 1, parse_pieces, job);

    size_t header_lines = skip ? 1 : 0;
    for (size_t i = 0; i < job->pieces; i++) {
        const fault *f = &job->faults[i];
        if (!f->line) continue;
        if (strcmp(f->reason, "ragged") == 0)
            return sf_fail(error, SAFER_INPUT, "%s, line %zu: %zu number%s where %zu are expected", name,
                           f->line + header_lines, f->found, f->found == 1 ? "" : "s", job->dim);
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: %s", name, f->line + header_lines, f->reason);
    }
    return SAFER_OK;
}

/* ---------------------------------------------------------- binary files */

static safer_status parse_binary(parse *job, size_t skip, const char *name, safer_error *error)
{
    size_t row_bytes = job->dim * sizeof(float);
    /* A row is at least one byte of word, a space and its numbers. */
    if (job->rows > (job->length - skip) / (row_bytes + 2) + 1)
        return sf_fail(error, SAFER_INPUT, "%s: truncated: its header promises %zu vectors of %zu numbers", name,
                       job->rows, job->dim);
    job->values = sf_alloc_aligned(job->rows * job->dim, sizeof *job->values);
    job->spans = sf_alloc(job->rows, sizeof *job->spans);
    if (!job->values || !job->spans) return sf_fail_memory(error);
    const char *p = job->bytes + skip, *end = job->bytes + job->length;
    for (size_t i = 0; i < job->rows; i++) {
        if (p < end && *p == '\n') p++; /* some writers end rows with a newline */
        const char *space = memchr(p, ' ', (size_t)(end - p));
        if (!space || (size_t)(end - space - 1) < row_bytes || space - p > UINT32_MAX)
            return sf_fail(error, SAFER_INPUT, "%s: truncated at vector %zu of %zu", name, i + 1, job->rows);
        job->spans[i] = (span){(size_t)(p - job->bytes), (uint32_t)(space - p)};
        float *row = job->values + i * job->dim;
        memcpy(row, space + 1, row_bytes);
        for (size_t k = 0; k < job->dim; k++)
            if (!isfinite(row[k])) return sf_fail(error, SAFER_INPUT, "%s, vector %zu: NaN or infinity", name, i + 1);
        p = space + 1 + row_bytes;
    }
    return SAFER_OK;
}

/* A first line of exactly two whole numbers is a header. Returns the length of the line
 * with its end, or 0. */
static size_t parse_header(const char *bytes, size_t length, size_t *count, size_t *dim)
{
    const char *end = bytes + length, *p = bytes;
    size_t numbers[2];
    for (int i = 0; i < 2; i++) {
        const char *start = p;
        size_t value = 0;
        for (; p < end && *p >= '0' && *p <= '9' && value < SIZE_MAX / 100; p++)
            value = value * 10 + (size_t)(*p - '0');
        if (p == start) return 0;
        numbers[i] = value;
        const char *gap = p;
        while (p < end && is_blank(*p)) p++;
        if (i == 0 && p == gap) return 0;
    }
    if (p == end || *p != '\n') return 0;
    *count = numbers[0];
    *dim = numbers[1];
    return (size_t)(p - bytes) + 1;
}

/* After a header: is the first row no text? Text has no control characters, and after
 * its first word the first line has only what numbers are written with. */
static int looks_binary(const char *bytes, size_t length, size_t dim)
{
    const char *end = bytes + length, *space = memchr(bytes, ' ', length);
    if (!space) return 0;
    const char *p = space + 1;
    if (dim < (size_t)(end - p) / 4) end = p + 4 * dim;
    for (int first_line = 1; p < end; p++) {
        if (*p == '\n') first_line = 0;
        if (*p == '\t' || *p == '\r' || *p == '\n') continue;
        if ((unsigned char)*p < ' ' || *p == 0x7f) return 1;
        if (first_line && !strchr("0123456789+-.eE nNaAiIfFtTyY", *p)) return 1;
    }
    return 0;
}

/* ---------------------------------------------------- choosing the words */

static int is_zero(const float *row, size_t dim)
{
    for (size_t k = 0; k < dim; k++)
        if (row[k] != 0.0f) return 0;
    return 1;
}

/* Moves the wanted rows to the front and numbers their words in file order. */
static safer_status choose(sf_vectors *out, parse *job, const sf_words *keep, sf_dropped *dropped, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_buffer key = {0};
    unsigned char *folded = NULL; /* of each kept word: was its row's form not lower case? */
    size_t folded_capacity = 0;
    for (size_t i = 0; i < job->rows; i++) {
        const char *word = job->bytes + job->spans[i].begin;
        size_t length = job->spans[i].length;
        const float *row = job->values + i * job->dim;
        sf_buffer_clear(&key);
        int code = sf_word_fold(&key, word, length);
        if (code == -1) goto no_memory;
        if (code == -2 || length == 0 || memchr(word, ' ', length) || memchr(word, '\t', length) ||
            memchr(word, '\0', length)) {
            out->unusable++;
            SF_TRY(sf_dropped_add_entry(dropped, word, length, error));
            continue;
        }
        if (is_zero(row, job->dim)) {
            out->zeros++;
            SF_TRY(sf_dropped_add(dropped, word, length, "zero vector", error));
            continue;
        }
        if (keep && sf_words_find(keep, key.bytes, key.length) == SF_NONE) {
            SF_TRY(sf_dropped_add(dropped, word, length, "vocabulary", error));
            continue;
        }
        int differs = key.length != length || memcmp(key.bytes, word, length) != 0;
        uint32_t id, before = out->words.count;
        SF_TRY(sf_words_add(&out->words, key.bytes, key.length, &id, error));
        if (id < before) {
            out->duplicates++;
            if (differs || !folded[id]) continue; /* "The" never replaces "the" */
        }
        if (sf_grow(&folded, &folded_capacity, (size_t)id + 1, 1)) goto no_memory;
        folded[id] = (unsigned char)differs;
        memmove(job->values + (size_t)id * job->dim, row, job->dim * sizeof *row);
    }
    goto done;
no_memory:
    status = sf_fail_memory(error);
done:
    sf_buffer_free(&key);
    free(folded);
    return status;
}

safer_status sf_vectors_parse(sf_vectors *out, const char *bytes, size_t length, const char *name, const sf_words *keep,
                              int threads, safer_error *error)
{
    return sf_vectors_parse_noting(out, bytes, length, name, keep, NULL, threads, error);
}

safer_status sf_vectors_parse_noting(sf_vectors *out, const char *bytes, size_t length, const char *name,
                                     const sf_words *keep, sf_dropped *dropped, int threads, safer_error *error)
{
    safer_status status = SAFER_OK;
    parse job = {.bytes = bytes, .length = length};
    size_t header_count = 0, header_dim = 0;
    size_t header = parse_header(bytes, length, &header_count, &header_dim);
    *out = (sf_vectors){0};

    if (header && looks_binary(bytes + header, length - header, header_dim)) {
        job.rows = header_count;
        job.dim = header_dim;
        if (job.dim == 0 || job.dim > 1 << 20) {
            status = sf_fail(error, SAFER_INPUT, "%s: a header with dimension %zu", name, job.dim);
            goto done;
        }
        SF_TRY(parse_binary(&job, header, name, error));
    } else {
        SF_TRY(sf_check_encoding(bytes, length, name, error));
        const char *first = bytes + header;
        size_t fields = length > header ? count_fields(first, line_end(first, bytes + length)) : 0;
        if (header && length > header && header_dim + 1 != fields) {
            if (header_dim != 1) { /* "7 3" may be a word and its one number */
                status = sf_fail(error, SAFER_INPUT, "%s, line 2: %zu numbers where the header says %zu", name,
                                 fields ? fields - 1 : 0, header_dim);
                goto done;
            }
        }
        if (fields < 2) {
            status = sf_fail(error, SAFER_INPUT,
                             "%s holds no word vectors: expected a word and its numbers on each line", name);
            goto done;
        }
        job.dim = fields - 1;
        SF_TRY(parse_text(&job, header, name, threads, error));
        if (header && job.rows != header_count) {
            status = sf_fail(error, SAFER_INPUT, "%s: truncated: its header promises %zu vectors, it holds %zu", name,
                             header_count, job.rows);
            goto done;
        }
    }
    SF_TRY(choose(out, &job, keep, dropped, error));
    out->dim = job.dim;
    out->rows = job.rows;
    out->values = job.values;
    job.values = NULL;
done:
    free(job.starts);
    free(job.first);
    free(job.faults);
    free(job.spans);
    free(job.values);
    if (status != SAFER_OK) sf_vectors_free(out);
    return status;
}

void sf_vectors_free(sf_vectors *vectors)
{
    sf_words_free(&vectors->words);
    free(vectors->values);
    *vectors = (sf_vectors){0};
}

/* ------------------------------------------------------------ arithmetic */

double sf_vectors_dot(const float *a, const float *b, size_t dim)
{
    /* Eight running sums: an order that a compiler can vectorise without changing it. */
    double sum[8] = {0};
    size_t k = 0;
    for (; k + 8 <= dim; k += 8)
        for (size_t j = 0; j < 8; j++) sum[j] += (double)a[k + j] * (double)b[k + j];
    for (; k < dim; k++) sum[k % 8] += (double)a[k] * (double)b[k];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

typedef struct normalise {
    float *values;
    size_t dim;
} normalise;

static void normalise_rows(void *context, size_t begin, size_t end, int worker)
{
    normalise *job = context;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        float *row = job->values + i * job->dim;
        double length = sqrt(sf_vectors_dot(row, row, job->dim));
        if (length < 1e-20) continue;
        for (size_t k = 0; k < job->dim; k++) row[k] = (float)((double)row[k] / length);
    }
}

void sf_vectors_normalise(float *values, size_t count, size_t dim, int threads)
{
    normalise job = {values, dim};
    sf_parallel(threads, count, 1024, normalise_rows, &job);
}
