/* Tiny lexicons, texts and data sets: so small that everything about them can be enumerated. What they hold
 * depends on a number alone, not on what was made before. */
#ifndef TESTS_TINY_H
#define TESTS_TINY_H

#include "assemble.h"
#include "base/file.h"
#include "base/rng.h"

#include <stdio.h>
#include <string.h>

/* A number below `bound` that depends on the other two alone. */
static inline uint32_t tiny_below(uint64_t sample, uint32_t slot, uint32_t bound)
{
    return sf_draw_below(sf_stream_of(29, 0, SF_STAGE_DATA), sample, slot, bound);
}

enum { WORDS = 6, LONGEST = 4, CLASSES = 5 };
static const char *const names[WORDS] = {"aa", "bb", "cc", "dd", "ee", "ff"};

static char label_names[CLASSES][2] = {"0", "1", "2", "3", "4"};
__attribute__((unused)) static char *label_list[CLASSES] = {label_names[0], label_names[1], label_names[2],
                                                            label_names[3], label_names[4]};

/* --------------------------------------------------- small random lexicons */

static const char *const kinds[] = {"topk:1", "topk:2", "topk:3", "component", "representative", "weighted"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static inline void weighted_kernel(sf_kernel *kernel, uint32_t seed)
{
    safer_error error = {0};
    assert_ok(sf_kernel_start(kernel, WORDS, &error));
    for (uint32_t x = 0; x < WORDS; x++) {
        uint32_t ids[WORDS], weights[WORDS], row;
        size_t n = 0;
        for (uint32_t z = 0; z < WORDS; z++)
            if (z == x || tiny_below(seed, 200 + x * WORDS + z, 2)) {
                ids[n] = z;
                weights[n++] = 1 + tiny_below(seed, 300 + x * WORDS + z, 4);
            }
        assert_ok(sf_kernel_add(kernel, ids, weights, n, &row, &error));
        kernel->row_of[x] = row;
    }
}

/* Random synonyms and a random kernel. `lying`: every overlap is said to be 1. */
static inline safer_lexicon *make_tiny_lexicon(uint32_t seed, const char *kind, int lying, int directed)
{
    safer_error error = {0};
    sf_words words = {0};
    sf_pair edges[WORDS * WORDS];
    size_t count = 0;
    uint32_t id;
    uint64_t counts[WORDS];
    sf_graph graph;
    sf_kernel kernel = {0};
    sf_nearest nearest = {0};
    for (int i = 0; i < WORDS; i++) assert_ok(sf_words_add(&words, names[i], 2, &id, &error));
    for (uint32_t a = 0; a < WORDS; a++)
        for (uint32_t b = a + 1; b < WORDS; b++)
            if (tiny_below(seed, a * WORDS + b, 5) < 2) edges[count++] = (sf_pair){a, b, 0};
    assert_ok(sf_graph_build(&graph, WORDS, edges, count, directed ? SF_DIRECTED : SF_SYMMETRIC, 0, NULL, &error));
    for (uint32_t i = 0; i < WORDS; i++) counts[i] = tiny_below(seed, 100 + i, 5);
    if (strcmp(kind, "weighted") == 0) {
        weighted_kernel(&kernel, seed);
    } else {
        sf_kernel_spec spec;
        assert_ok(sf_kernel_spec_parse(&spec, kind, &error));
        if (spec.kind == SF_TOPK)
            assert_ok(sf_nearest_build(&nearest, &graph, NULL, 0, spec.k, spec.k, 1, NULL, &error));
        assert_ok(sf_kernel_build(&kernel, &graph, counts, &nearest, spec, &error));
    }
    sf_nearest_free(&nearest);
    return assemble_lexicon(&words, counts, &graph, &kernel, kind, directed, lying);
}

/* ------------------------------------------------------------ texts and data */

static inline size_t write_text(char *out, const uint32_t *text, size_t length)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) n += (size_t)sprintf(out + n, "%s%s", i ? " " : "", names[text[i]]);
    return n;
}

static inline safer_data *make_tiny_data(uint32_t count)
{
    safer_error error = {0};
    char *text = malloc(200 * count);
    size_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        n += (size_t)sprintf(text + n, "id%u\t%u\t", i, tiny_below(i, 1, 2));
        size_t words = 1 + tiny_below(i, 2, 9);
        for (uint32_t k = 0; k < words; k++)
            n += (size_t)sprintf(text + n, "%s ", i % 50 == 7 ? "zz" : names[tiny_below(i, 10 + k, WORDS)]);
        text[n++] = '\n';
    }
    safer_data *data = NULL;
    assert_ok(safer_data_load(&data, write_temporary("run.tsv", text, n), NULL, &error));
    free(text);
    return data;
}

/* Two texts, for tests in which every allocation fails once. */
static inline safer_data *make_two_texts(void)
{
    safer_error error = {0};
    safer_data *data = NULL;
    assert_ok(safer_data_load(&data, write_temporary("m.tsv", "1\t0\taa bb cc dd\n2\t1\tff ee\n", 26), NULL, &error));
    return data;
}

/* The records of a run without their times. */
static inline char *records_of(const char *path)
{
    safer_error error = {0};
    sf_file file = {0};
    assert_ok(sf_file_load(&file, path, &error));
    char *text = malloc(file.length + 1), *out = text;
    for (size_t i = 0; i < file.length; i++) {
        if (strncmp(file.bytes + i, "\"seconds\":", 10) == 0)
            while (file.bytes[i] != ',') i++;
        *out++ = file.bytes[i];
    }
    *out = '\0';
    sf_file_free(&file);
    return text;
}

#endif
