/* What the benchmarks share: options, checks, made-up input, timing, and how results are printed. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "base/parallel.h"
#include "base/words.h"
#include "model/cnn.h"
#include "safer.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ends the program, with its name and `what`, unless `ok`. */
void check(int ok, const char *what);

/* Whether an option stands on the command line: "--json" asks for one object for programs. */
int bench_option(int argc, char **argv, const char *option);

/* Prints the object and frees it. */
void bench_print_json(json_t *object);

/* The name of the processor, or "unknown". */
void bench_cpu(char *out, size_t size);

/* ------------------------------------------------------------- made-up input */

/* Pseudo-random numbers, fast and the same everywhere: 32 bits; below `bound`; from -1 to 1; from 0 to 1. */
uint32_t bench_bits(uint64_t *state);
uint32_t bench_below(uint64_t *state, uint32_t bound);
float bench_noise(uint64_t *state);
double bench_unit(uint64_t *state);

/* A word's rank below `count`, roughly as in English: the k-th has a probability of about 1/k. */
uint32_t bench_zipf(uint64_t *state, uint32_t count);

/* Writes a made-up word: two letters and more, and common words are short. */
void bench_spell(char *out, uint32_t word);

/* So many texts of so many such words, with commas and full stops, of two classes; with capitals or not. */
safer_data *bench_texts(int texts, int words, uint32_t vocabulary, int capitals);

/* A path in a temporary folder that is removed at the end. The string is static per call slot (4). */
const char *bench_path(const char *name);

/* The lexicon of a table of synonyms, kernel "component". */
safer_lexicon *bench_lexicon(const char *table, size_t length);

/* Groups of `group` of the words that spell() writes for 0, 2, 4, ..., below `words`: synonyms of one another. */
safer_lexicon *bench_group_lexicon(void (*spell)(char *out, uint32_t word), uint32_t words, uint32_t group);

/* The CNN that is measured: word vectors of 100, 100 filters of width 3, mean pool, 100 hidden units, 2 classes. */
enum { BENCH_DIM = 100, BENCH_FILTERS = 100, BENCH_WIDTH = 3, BENCH_HIDDEN = 100, BENCH_CLASSES = 2 };

/* It with random weights. */
safer_model *bench_cnn(sf_cnn_layout *layout, const sf_words *words, uint64_t *state);

/* A word of letters for each number; the first letter says of which kind. */
void bench_name_word(char out[8], char kind, size_t number);

/* -------------------------------------------------------------------- timing */

/* Seconds that this thread has had a processor: what others do on the machine counts little. */
double bench_processor(void);

/* Seconds that sf_parallel takes, the best of so many rounds, which should be short: on a busy machine some of them run
 * undisturbed. */
double bench_best(int rounds, int threads, size_t count, size_t grain, sf_task task, void *context);

#endif
