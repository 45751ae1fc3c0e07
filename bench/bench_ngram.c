/* Speed of the n-gram classifier on synthetic texts: training, classifying and sampling.
 *
 * Checked first: draws through the fast path get the labels of their rendered texts. Then,
 * with one thread and with all: tokens per second in training and classification, samples per
 * second in the fast path, and the ratio to rendering and classifying each sample in the
 * same run. With --json one object for programs. */
#define _GNU_SOURCE
#include "bench.h"

#include "draw/sampler.h"
#include "model/ngram.h"

enum { TEXTS = 6000, WORDS = 230, VOCABULARY = 40000, GROUP = 8, DRAWS = 256, SAMPLED = 32, RENDERED = 16 };

static void spell(char *out, uint32_t word) /* six letters */
{
    for (int i = 0; i < 6; i++, word /= 26) out[i] = (char)('a' + word % 26);
    out[6] = '\0';
}

static safer_data *make_data(void)
{
    uint64_t state = 1;
    char word[8];
    safer_data *data = NULL;
    safer_error error = {0};
    safer_data_options options = safer_data_options_default();
    const char *path = bench_path("data.tsv");
    FILE *file = fopen(path, "w");
    check(file != NULL, "temporary file");
    for (int i = 0; i < TEXTS; i++) {
        fprintf(file, "%d\t%d\t", i, i % 2);
        for (int w = 0; w < WORDS; w++) {
            uint32_t x = bench_zipf(&state, VOCABULARY);
            if (x > 100 && bench_bits(&state) % 4 == 0)
                x = (x & ~1u) | (uint32_t)(i % 2); /* the classes differ a little */
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

typedef struct job {
    const safer_model *model;
    const safer_data *data;
    const safer_lexicon *lexicon;
    int *labels;  /* one per text, or one per text and draw */
    size_t draws; /* per text */
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

int main(int argc, char **argv)
{
    char cpu[256];
    int json = bench_option(argc, argv, "--json"), cores = sf_threads(0), steps = cores > 1 ? 2 : 1;
    const int threads[2] = {1, cores};
    double training[2] = {0}, accuracy = 0, classifying[2], fast[2], slow[2];
    char digests[2][65];
    safer_error error = {0};
    safer_data *data = make_data();
    safer_lexicon *lexicon = bench_group_lexicon(spell, VOCABULARY, GROUP);
    safer_model *model = NULL;
    for (int i = 0; i < steps; i++) {
        safer_train_options options = safer_train_options_default();
        safer_train_report report;
        options.arch = SAFER_ARCH_NGRAM;
        options.train = data;
        options.threads = threads[i];
        check(safer_train(bench_path("model"), &options, &report, &error) == SAFER_OK, error.message);
        training[i] = report.tokens_per_second;
        accuracy = report.dev_accuracy;
        safer_model_free(model);
        check(safer_model_open(&model, bench_path("model"), &error) == SAFER_OK, error.message);
        snprintf(digests[i], sizeof digests[i], "%s", safer_model_sha256(model));
    }
    check(steps == 1 || strcmp(digests[0], digests[1]) == 0, "the model depends on the number of threads");

    job j = {.model = model, .data = data, .lexicon = lexicon, .draws = DRAWS};
    j.labels = malloc((TEXTS > SAMPLED * DRAWS ? TEXTS : SAMPLED * DRAWS) * sizeof *j.labels);
    check(j.labels != NULL, "out of memory");
    agree_first(j);
    for (int i = 0; i < steps; i++) {
        classifying[i] = (double)TEXTS * WORDS / bench_best(3, threads[i], TEXTS, 64, classify, &j);
        j.rendered = 0;
        j.draws = DRAWS;
        fast[i] = (double)SAMPLED * DRAWS / bench_best(3, threads[i], SAMPLED, 1, sample, &j);
        j.rendered = 1;
        j.draws = RENDERED;
        slow[i] = (double)SAMPLED * RENDERED / bench_best(3, threads[i], SAMPLED, 1, sample, &j);
    }
    bench_cpu(cpu, sizeof cpu);
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
    return 0;
}
