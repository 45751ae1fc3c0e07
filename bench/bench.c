/* What the benchmarks share. */
#define _GNU_SOURCE
#include "bench.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/progress.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

void check(int ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
    exit(1);
}

int bench_option(int argc, char **argv, const char *option)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], option) == 0) return 1;
    return 0;
}

void bench_print_json(json_t *object)
{
    check(object && json_dumpf(object, stdout, JSON_INDENT(1)) == 0, "cannot write");
    putchar('\n');
    json_decref(object);
}

void bench_cpu(char *out, size_t size)
{
    FILE *info = fopen("/proc/cpuinfo", "r");
    snprintf(out, size, "unknown");
    for (char line[512]; info && fgets(line, sizeof line, info);)
        if (strncmp(line, "model name", 10) == 0) {
            snprintf(out, size, "%s", strchr(line, ':') + 2);
            out[strcspn(out, "\n")] = '\0';
            break;
        }
    if (info) fclose(info);
}

/* ------------------------------------------------------------- made-up input */

static uint64_t next_state(uint64_t *state)
{
    return *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
}

uint32_t bench_bits(uint64_t *state) { return (uint32_t)(next_state(state) >> 32); }
uint32_t bench_below(uint64_t *state, uint32_t bound) { return (uint32_t)(next_state(state) >> 33) % bound; }
float bench_noise(uint64_t *state) { return (float)(int32_t)bench_bits(state) * 0x1p-31f; }
double bench_unit(uint64_t *state) { return (double)(next_state(state) >> 11) * 0x1p-53; }

uint32_t bench_zipf(uint64_t *state, uint32_t count)
{
    return (uint32_t)exp((double)bench_bits(state) * 0x1p-32 * log((double)count)) - 1;
}

static char folder[] = "/tmp/safer-bench-XXXXXX";

static void remove_folder(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) fprintf(stderr, "could not remove %s\n", folder);
}

const char *bench_path(const char *name)
{
    static char paths[4][64];
    static int next, made;
    if (!made) {
        check(mkdtemp(folder) != NULL, "temporary folder");
        atexit(remove_folder);
        made = 1;
    }
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void bench_spell(char *out, uint32_t word)
{
    static const char syllables[] =
        "ba be bi bo da de di do fa fe fi fo ka ke ki ko la le li lo ma me mi mo na ne ni no ra re ri ro ";
    for (word++; word; word /= 32, out += 2) memcpy(out, syllables + 3 * (word % 32), 2);
    *out = '\0';
}

safer_data *bench_texts(int texts, int words, uint32_t vocabulary, int capitals)
{
    uint64_t state = 1;
    char word[16];
    safer_data *data = NULL;
    safer_error error = {0};
    const char *path = bench_path("data.tsv");
    FILE *file = fopen(path, "w");
    check(file != NULL, "temporary file");
    for (int i = 0; i < texts; i++) {
        fprintf(file, "%d\t%d\t", i, i % 2);
        for (int w = 0; w < words; w++) {
            bench_spell(word, bench_zipf(&state, vocabulary));
            if (capitals && w % 15 == 0) word[0] = (char)toupper((unsigned char)word[0]);
            fprintf(file, w % 15 == 14 ? "%s. " : w % 7 == 6 ? "%s, " : "%s ", word);
        }
        fputc('\n', file);
    }
    fclose(file);
    check(safer_data_load(&data, path, NULL, &error) == SAFER_OK, error.message);
    return data;
}

safer_lexicon *bench_lexicon(const char *table, size_t length)
{
    safer_error error = {0};
    safer_lexicon *lexicon = NULL;
    safer_lexicon_options options = safer_lexicon_options_default();
    options.table = bench_path("table.tsv");
    options.kernel = "component";
    check(sf_file_write(options.table, table, length, &error) == SAFER_OK, error.message);
    check(safer_lexicon_import(&lexicon, &options, NULL, &error) == SAFER_OK, error.message);
    return lexicon;
}

safer_lexicon *bench_group_lexicon(void (*spell)(char *out, uint32_t word), uint32_t words, uint32_t group)
{
    sf_buffer table = {0};
    char word[16];
    int failed = 0;
    for (uint32_t x = 0; 2 * x < words; x++) {
        spell(word, 2 * x);
        failed |= sf_buffer_format(&table, x % group ? " %s" : x ? "\n%s\t" : "%s\t", word);
    }
    check(!failed, "out of memory");
    safer_lexicon *lexicon = bench_lexicon(table.bytes, table.length);
    sf_buffer_free(&table);
    return lexicon;
}

safer_model *bench_cnn(sf_cnn_layout *layout, const sf_words *words, uint64_t *state)
{
    safer_error error = {0};
    safer_model *model = NULL;
    const char *path = bench_path("cnn");
    sf_cnn_shape shape = {.convolution = 1,
                          .vocabulary = words->count + 1u,
                          .dim = BENCH_DIM,
                          .widths = {BENCH_WIDTH},
                          .width_count = 1,
                          .filters = BENCH_FILTERS,
                          .hidden = BENCH_HIDDEN,
                          .classes = BENCH_CLASSES,
                          .max_words = SF_LOOKUP_POSITIONS};
    sf_cnn_layout_make(layout, &shape);
    float *w = sf_alloc(layout->size, sizeof *w), scale[BENCH_FILTERS];
    check(w != NULL, "out of memory");
    for (size_t i = 0; i < layout->size; i++)
        w[i] = bench_noise(state) * (i < shape.vocabulary * BENCH_DIM ? 1.0f : 0.1f);
    check(sf_cnn_scales(scale, layout, w, 0) == 0, "out of memory");
    check(sf_cnn_save(path, layout, w, scale, words, "[\"0\",\"1\"]", "{}", &error) == SAFER_OK, error.message);
    check(safer_model_open(&model, path, &error) == SAFER_OK, error.message);
    free(w);
    return model;
}

void bench_name_word(char out[8], char kind, size_t number)
{
    snprintf(out, 8, "%cx%c%c%c%c", kind, (char)('a' + number / 17576 % 26), (char)('a' + number / 676 % 26),
             (char)('a' + number / 26 % 26), (char)('a' + number % 26));
}

/* -------------------------------------------------------------------- timing */

double bench_best(int rounds, int threads, size_t count, size_t grain, sf_task task, void *context)
{
    double best = 1e9;
    for (int round = 0; round < rounds; round++) {
        const double start = sf_seconds();
        sf_parallel(threads, count, grain, task, context);
        const double took = sf_seconds() - start;
        if (took < best) best = took;
    }
    return best;
}

double bench_processor(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
