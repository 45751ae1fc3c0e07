/* Speed of the n-gram classifier on synthetic texts: training, classifying and sampling.
 *
 * Checked first: draws through the fast path get the labels of their rendered texts. Then,
 * with one thread and with all: tokens per second in training and classification, samples per
 * second in the fast path, and the ratio to rendering and classifying each sample in the
 * same run. With --json one object for programs. */
#define _GNU_SOURCE
#include "base/parallel.h"
#include "base/progress.h"
#include "draw/sampler.h"
#include "model/ngram.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXTS = 6000, WORDS = 230, VOCABULARY = 40000, GROUP = 8, DRAWS = 256, SAMPLED = 32, RENDERED = 16 };

static void check(int ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "bench_ngram: %s\n", what);
    exit(1);
}

static char folder[] = "/tmp/safer-bench-XXXXXX";

static const char *path_of(const char *name)
{
    static char paths[4][64];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static uint32_t noise(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static void spell(char *out, uint32_t word) /* six letters */
{
    for (int i = 0; i < 6; i++, word /= 26) out[i] = (char)('a' + word % 26);
    out[6] = '\0';
}

/* Word ranks roughly as in English: the k-th word has a probability of about 1/k. */
static uint32_t zipf(uint64_t *state) { return (uint32_t)exp((double)noise(state) * 0x1p-32 * log(VOCABULARY)) - 1; }

static safer_data *make_data(void)
{
    uint64_t state = 1;
    char word[8];
    safer_data *data = NULL;
    safer_error error = {0};
    safer_data_options options = safer_data_options_default();
    const char *path = path_of("data.tsv");
    FILE *file = fopen(path, "w");
    check(file != NULL, "temporary file");
    for (int i = 0; i < TEXTS; i++) {
        fprintf(file, "%d\t%d\t", i, i % 2);
        for (int w = 0; w < WORDS; w++) {
            uint32_t x = zipf(&state);
            if (x > 100 && noise(&state) % 4 == 0) x = (x & ~1u) | (uint32_t)(i % 2); /* the classes differ a little */
            spell(word, x);
            fprintf(file, w % 15 == 14 ? "%s. " : "%s ", word);
        }
        fputc('\n', file);
    }
    fclose(file);
    options.format = SAFER_FORMAT_TSV;
    check(safer_data_load(&data, path, &options, &error) == SAFER_OK, error.message);
    return data;
}

/* Groups of GROUP words that stand for one another. */
static safer_lexicon *make_lexicon(const char *kernel)
{
    char word[8];
    safer_lexicon_options options = safer_lexicon_options_default();
    safer_lexicon *lexicon = NULL;
    safer_error error = {0};
    const char *path = path_of("table.tsv");
    FILE *file = fopen(path, "w");
    check(file != NULL, "temporary file");
    for (uint32_t x = 0; x < VOCABULARY / 2; x++) { /* about half of the words have synonyms */
        spell(word, 2 * x);
        fprintf(file, x % GROUP ? " %s" : x ? "\n%s\t" : "%s\t", word);
    }
    fclose(file);
    options.table = path;
    options.kernel = kernel;
    check(safer_lexicon_import(&lexicon, &options, NULL, &error) == SAFER_OK, error.message);
    return lexicon;
}

typedef struct job {
    const safer_model *model;
    const safer_data *data;
    const safer_lexicon *lexicon;
    int *labels;  /* one a text, or one a text and draw */
    size_t draws; /* a text */
    int rendered;
} job;

static void classify(void *context, size_t begin, size_t end, int worker)
{
    job *j = context;
    void *scratch = NULL;
    (void)worker;
    check(j->model->class->scratch_new(j->model, &scratch, NULL) == SAFER_OK, "out of memory");
    for (size_t i = begin; i < end; i++) {
        safer_row row = safer_data_row(j->data, i);
        sf_span text = {row.text, row.text_length};
        check(j->model->class->classify(j->model, &text, 1, &j->labels[i], NULL, scratch, NULL) == SAFER_OK,
              "classify");
    }
    j->model->class->scratch_free(scratch);
}

/* Both ways of sampling, over some texts. */
static void sample(void *context, size_t begin, size_t end, int worker)
{
    job *j = context;
    void *scratch = NULL, *prepared = NULL;
    sf_slots slots = {0};
    sf_sampler sampler = {0};
    sf_buffer text = {0};
    uint32_t *draws = malloc(j->draws * WORDS * sizeof *draws);
    (void)worker;
    check(draws && j->model->class->scratch_new(j->model, &scratch, NULL) == SAFER_OK, "out of memory");
    for (size_t i = begin; i < end; i++) {
        safer_row row = safer_data_row(j->data, i);
        int *labels = j->labels + i * DRAWS;
        check(sf_slots_read(&slots, j->lexicon, row.text, row.text_length, NULL) == SAFER_OK, "slots");
        check(sf_sampler_prepare(&sampler, &slots, j->lexicon, NULL) == SAFER_OK, "sampler");
        sf_sampler_draw(draws, &sampler, sf_stream_of(1, slots.hash, SF_STAGE_CERTIFICATION), 0, j->draws);
        if (!j->rendered) {
            check(j->model->class->prepare(j->model, j->lexicon, &slots, &prepared, NULL) == SAFER_OK, "prepare");
            check(j->model->class->sample(j->model, prepared, draws, j->draws, labels, scratch, NULL) == SAFER_OK,
                  "sample");
            j->model->class->release(prepared);
            continue;
        }
        for (size_t d = 0; d < j->draws; d++) {
            sf_buffer_clear(&text);
            check(sf_slots_render(&text, &slots, j->lexicon, draws + d * slots.slot_count) == 0, "render");
            sf_span span = {text.bytes, text.length};
            check(j->model->class->classify(j->model, &span, 1, &labels[d], NULL, scratch, NULL) == SAFER_OK,
                  "classify");
        }
    }
    sf_slots_free(&slots);
    sf_sampler_free(&sampler);
    sf_buffer_free(&text);
    free(draws);
    j->model->class->scratch_free(scratch);
}

/* Seconds, the best of so many rounds. */
static double best_of(int rounds, int threads, size_t count, size_t grain, sf_task task, void *context)
{
    double best = 1e9;
    for (int round = 0; round < rounds; round++) {
        double start = sf_seconds();
        sf_parallel(threads, count, grain, task, context);
        double took = sf_seconds() - start;
        if (took < best) best = took;
    }
    return best;
}

static void agree_first(job j)
{
    int *fast = malloc(SAMPLED * DRAWS * sizeof *fast), *slow = malloc(SAMPLED * DRAWS * sizeof *slow);
    check(fast && slow, "out of memory");
    j.draws = RENDERED;
    j.labels = fast;
    sample(&j, 0, SAMPLED, 0);
    j.labels = slow;
    j.rendered = 1;
    sample(&j, 0, SAMPLED, 0);
    for (int i = 0; i < SAMPLED; i++)
        check(memcmp(fast + i * DRAWS, slow + i * DRAWS, RENDERED * sizeof *fast) == 0,
              "a draw differs from its rendered text");
    free(fast);
    free(slow);
}

static void find_cpu(char *out, size_t size)
{
    FILE *info = fopen("/proc/cpuinfo", "r");
    snprintf(out, size, "unknown");
    for (char line[256]; info && fgets(line, sizeof line, info);)
        if (strncmp(line, "model name", 10) == 0) {
            snprintf(out, size, "%s", strchr(line, ':') + 2);
            out[strcspn(out, "\n")] = '\0';
        }
    if (info) fclose(info);
}

int main(int argc, char **argv)
{
    char cpu[256];
    int json = argc > 1 && strcmp(argv[1], "--json") == 0, cores = sf_threads(0), steps = cores > 1 ? 2 : 1;
    const int threads[2] = {1, cores};
    double training[2] = {0}, accuracy = 0, classifying[2], fast[2], slow[2];
    uint64_t hashes[2] = {0};
    safer_error error = {0};
    check(mkdtemp(folder) != NULL, "temporary folder");
    safer_data *data = make_data();
    safer_lexicon *lexicon = make_lexicon("component");
    safer_model *model = NULL;
    for (int i = 0; i < steps; i++) {
        safer_train_options options = safer_train_options_default();
        safer_train_report report;
        options.arch = SAFER_ARCH_NGRAM;
        options.train = data;
        options.threads = threads[i];
        check(safer_train(path_of("model"), &options, &report, &error) == SAFER_OK, error.message);
        training[i] = report.tokens_per_second;
        accuracy = report.dev_accuracy;
        safer_model_free(model);
        check(safer_model_open(&model, path_of("model"), &error) == SAFER_OK, error.message);
        hashes[i] = safer_model_hash(model);
    }
    check(steps == 1 || hashes[0] == hashes[1], "the model depends on the number of threads");

    job j = {.model = model, .data = data, .lexicon = lexicon, .draws = DRAWS};
    j.labels = malloc((TEXTS > SAMPLED * DRAWS ? TEXTS : SAMPLED * DRAWS) * sizeof *j.labels);
    check(j.labels != NULL, "out of memory");
    agree_first(j);
    for (int i = 0; i < steps; i++) {
        classifying[i] = (double)TEXTS * WORDS / best_of(3, threads[i], TEXTS, 64, classify, &j);
        j.rendered = 0;
        j.draws = DRAWS;
        fast[i] = (double)SAMPLED * DRAWS / best_of(3, threads[i], SAMPLED, 1, sample, &j);
        j.rendered = 1;
        j.draws = RENDERED;
        slow[i] = (double)SAMPLED * RENDERED / best_of(3, threads[i], SAMPLED, 1, sample, &j);
    }
    find_cpu(cpu, sizeof cpu);
    printf(json ? "{\"cpu\": \"%s\", \"words\": %d, \"runs\": [\n" : "%s, texts of %d words\n", cpu, WORDS);
    for (int i = 0; i < steps; i++) {
        if (json)
            printf("{\"threads\": %d, \"train_tokens_s\": %.0f, \"classify_tokens_s\": %.0f, \"samples_s\": %.0f, "
                   "\"rendered_samples_s\": %.0f, \"ratio\": %.2f}%s\n",
                   threads[i], training[i], classifying[i], fast[i], slow[i], fast[i] / slow[i],
                   i + 1 < steps ? "," : "]}");
        else
            printf("%d thread%s  training %.2f M tokens/s, classifying %.1f M tokens/s, sampling %.0f texts/s "
                   "(%.1f times rendering and classifying)\n",
                   threads[i], threads[i] > 1 ? "s" : " ", training[i] * 1e-6, classifying[i] * 1e-6, fast[i],
                   fast[i] / slow[i]);
    }
    if (!json) printf("dev accuracy %.1f%%\n", 100 * accuracy);
    free(j.labels);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
    safer_data_free(data);
    unlink(path_of("data.tsv"));
    unlink(path_of("table.tsv"));
    unlink(path_of("model"));
    rmdir(folder);
    return 0;
}
