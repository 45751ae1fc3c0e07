/* Lexicons with any kernel: weights that differ, rows of different sizes, words that never draw themselves. `safer
 * lexicon` makes no such kernel, but opens one: the file is taken apart and put together again as docs/lexicon.md
 * describes it ("The .lex file"). */
#define _GNU_SOURCE
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECTIONS = 19, HEAD = 48, ALIGN = 64 };
enum { KERNEL_ROW = 8, KERNEL_OFFSETS, KERNEL_WORDS, KERNEL_WEIGHTS, KERNEL_TOTALS, OVERLAP, WORST, KERNEL_NAME = 17 };

typedef struct section {
    char *bytes; /* owned */
    size_t length;
} section;

/* ----------------------------------------------------------------- checksum */

static const uint64_t primes[5] = {0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9, 0x85ebca77c2b2ae63,
                                   0x27d4eb2f165667c5};

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

static uint64_t mix(uint64_t lane, uint64_t input) { return rotate(lane + input * primes[1], 31) * primes[0]; }

static uint64_t number_at(const unsigned char *bytes, int length)
{
    uint64_t value = 0;
    for (int i = 0; i < length; i++) value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

/* XXH64 with seed 0, of 32 bytes or more. */
static uint64_t checksum(const void *data, size_t length)
{
    const unsigned char *at = data, *end = at + length;
    uint64_t lane[4] = {primes[0] + primes[1], primes[1], 0, 0 - primes[0]};
    for (; end - at >= 32; at += 32)
        for (int i = 0; i < 4; i++) lane[i] = mix(lane[i], number_at(at + 8 * i, 8));
    uint64_t h = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
    for (int i = 0; i < 4; i++) h = (h ^ mix(0, lane[i])) * primes[0] + primes[3];
    h += length;
    for (; end - at >= 8; at += 8) h = rotate(h ^ mix(0, number_at(at, 8)), 27) * primes[0] + primes[3];
    if (end - at >= 4) {
        h = rotate(h ^ number_at(at, 4) * primes[0], 23) * primes[1] + primes[2];
        at += 4;
    }
    for (; at < end; at++) h = rotate(h ^ *at * primes[4], 11) * primes[0];
    h = (h ^ h >> 33) * primes[1];
    h = (h ^ h >> 29) * primes[2];
    return h ^ h >> 32;
}

/* --------------------------------------------------------------------- file */

static char *file_read(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) trial_stop("%s cannot be read", path);
    *length = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*length);
    if (!bytes || fread(bytes, 1, *length, file) != *length) trial_stop("%s cannot be read", path);
    fclose(file);
    return bytes;
}

static void take_apart(section out[SECTIONS], char head[HEAD], const char *path)
{
    size_t length;
    char *bytes = file_read(path, &length);
    memcpy(head, bytes, HEAD);
    for (size_t i = 0; i < SECTIONS; i++) {
        uint64_t place[2];
        memcpy(place, bytes + HEAD + i * sizeof place, sizeof place);
        out[i] = (section){malloc(place[1] + 1), place[1]};
        if (!out[i].bytes || place[0] + place[1] > length) trial_stop("%s is not as documented", path);
        memcpy(out[i].bytes, bytes + place[0], place[1]);
    }
    free(bytes);
}

static void put_together(const char *path, const section in[SECTIONS], const char head[HEAD])
{
    size_t length = HEAD + SECTIONS * 16;
    uint64_t place[SECTIONS][2];
    for (size_t i = 0; i < SECTIONS; i++) {
        length = (length + ALIGN - 1) / ALIGN * ALIGN;
        place[i][0] = length;
        place[i][1] = in[i].length;
        length += in[i].length;
    }
    length = (length + ALIGN - 1) / ALIGN * ALIGN + 8;
    char *bytes = calloc(length, 1);
    if (!bytes) trial_stop("out of memory");
    const uint64_t whole = length;
    memcpy(bytes, head, HEAD);
    memcpy(bytes + 16, &whole, sizeof whole);
    memcpy(bytes + HEAD, place, sizeof place);
    for (size_t i = 0; i < SECTIONS; i++) memcpy(bytes + place[i][0], in[i].bytes, in[i].length);
    const uint64_t sum = checksum(bytes, length - 8);
    memcpy(bytes + length - 8, &sum, sizeof sum);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, length, file) != length || fclose(file)) trial_stop("%s cannot be written", path);
    free(bytes);
}

/* ------------------------------------------------------------------ kernels */

fraction kernel_overlap(const kernel_row *a, const kernel_row *b)
{
    fraction s = {0, (wide)a->total * b->total};
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < b->count; j++) {
            if (a->words[i] != b->words[j]) continue;
            const wide left = (wide)a->weights[i] * b->total, right = (wide)b->weights[j] * a->total;
            s.up += left < right ? left : right;
        }
    return s;
}

/* The largest double that is not above the fraction. */
static double rounded_down(fraction a)
{
    double d = (double)fraction_value(a);
    while (fraction_against(a, d) < 0) d = nextafter(d, 0);
    return d;
}

static void replace(section *s, const void *bytes, size_t length)
{
    free(s->bytes);
    *s = (section){malloc(length + 1), length};
    if (!s->bytes) trial_stop("out of memory");
    memcpy(s->bytes, bytes, length);
}

static void append(section *s, const void *bytes, size_t length)
{
    s->bytes = realloc(s->bytes, s->length + length + 1);
    if (!s->bytes) trial_stop("out of memory");
    memcpy(s->bytes + s->length, bytes, length);
    s->length += length;
}

static void put_rows(section s[SECTIONS], const kernel_row *rows, uint32_t count)
{
    uint64_t offset = 0;
    for (size_t i = KERNEL_ROW; i <= KERNEL_TOTALS; i++) s[i].length = 0;
    append(&s[KERNEL_OFFSETS], &offset, sizeof offset);
    for (uint32_t x = 0; x < count; x++) {
        append(&s[KERNEL_ROW], &x, sizeof x);
        append(&s[KERNEL_WORDS], rows[x].words, rows[x].count * sizeof *rows[x].words);
        append(&s[KERNEL_WEIGHTS], rows[x].weights, rows[x].count * sizeof *rows[x].weights);
        append(&s[KERNEL_TOTALS], &rows[x].total, sizeof rows[x].total);
        offset += rows[x].count;
        append(&s[KERNEL_OFFSETS], &offset, sizeof offset);
    }
}

static void put_overlaps(section s[SECTIONS], const safer_lexicon *lexicon, const kernel_row *rows, uint32_t count)
{
    s[OVERLAP].length = s[WORST].length = 0;
    for (uint32_t x = 0; x < count; x++) {
        const safer_word w = safer_lexicon_word(lexicon, x);
        double least = 1;
        uint32_t worst = SAFER_NO_WORD;
        for (size_t i = 0; i < w.synonym_count; i++) {
            const double overlap = rounded_down(kernel_overlap(&rows[x], &rows[w.synonyms[i]]));
            if (worst != SAFER_NO_WORD && overlap >= least) continue;
            least = overlap;
            worst = w.synonyms[i];
        }
        append(&s[OVERLAP], &least, sizeof least);
        append(&s[WORST], &worst, sizeof worst);
    }
}

safer_lexicon *trial_lexicon_with_rows(const safer_lexicon *lexicon, const kernel_row *rows)
{
    section s[SECTIONS];
    char head[HEAD];
    safer_error error;
    safer_lexicon *out = NULL;
    const char *path = trial_path("rows.lex");
    const uint32_t count = (uint32_t)safer_lexicon_describe(lexicon).words;
    trial_expect(safer_lexicon_save(lexicon, path, &error), &error, "saving a lexicon");
    take_apart(s, head, path);
    put_rows(s, rows, count);
    put_overlaps(s, lexicon, rows, count);
    replace(&s[KERNEL_NAME], "any", 4);
    memcpy(head + 28, &count, sizeof count); /* as many rows as words */
    put_together(path, s, head);
    for (size_t i = 0; i < SECTIONS; i++) free(s[i].bytes);
    trial_expect(safer_lexicon_open(&out, path, &error), &error, "opening a lexicon made by hand");
    unlink(path); /* it stays mapped */
    return out;
}
