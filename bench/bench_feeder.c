/* How well many texts share the calls of a model that is cheaper by the batch.
 *
 *   bench_feeder FOLDER [--batch N] [--texts N] [--call MILLISECONDS] [--text MICROSECONDS]
 *
 * The model is a function that sleeps for a time per call and a time per text (5 ms and 20 us), as a PyTorch model
 * behind Python would, and then lets the demo's n-gram model answer. FOLDER is the demo's (out/demo): its lexicon,
 * model and test reviews, of which the first 300 are certified with default options. */
#define _GNU_SOURCE
#include "bench.h"

#include <stdatomic.h>
#include <time.h>

typedef struct slow {
    const safer_model *model;
    double call, text; /* seconds */
    _Atomic uint64_t calls, texts;
} slow;

static int classify(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    slow *s = context;
    const double seconds = s->call + s->text * (double)count;
    const struct timespec pause = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&pause, NULL);
    s->calls++;
    s->texts += count;
    return safer_model_classify(s->model, texts, lengths, count, labels, NULL, NULL) != SAFER_OK;
}

static double number_of(int argc, char **argv, const char *option, double otherwise)
{
    for (int i = 2; i + 1 < argc; i++)
        if (strcmp(argv[i], option) == 0) return atof(argv[i + 1]);
    return otherwise;
}

static const char *in_folder(const char *folder, const char *name)
{
    static char paths[4][4096];
    static int next;
    char *path = paths[next++ % 4];
    check(snprintf(path, sizeof paths[0], "%s/%s", folder, name) < (int)sizeof paths[0], "a path that is too long");
    return path;
}

int main(int argc, char **argv)
{
    safer_error error = {0};
    safer_model *inner = NULL, *model = NULL;
    safer_lexicon *lexicon = NULL;
    safer_data *data = NULL;
    safer_summary summary;
    check(argc >= 2, "usage: bench_feeder FOLDER [--batch N] [--texts N] [--call MS] [--text US]");
    safer_data_options chosen = safer_data_options_default();
    chosen.limit = (size_t)number_of(argc, argv, "--texts", 300);
    check(safer_model_open(&inner, in_folder(argv[1], "ngram.safetensors"), &error) == SAFER_OK, error.message);
    check(safer_lexicon_open(&lexicon, in_folder(argv[1], "demo.lex"), &error) == SAFER_OK, error.message);
    check(safer_data_load(&data, in_folder(argv[1], "test.tsv"), &chosen, &error) == SAFER_OK, error.message);
    slow s = {.model = inner,
              .call = 1e-3 * number_of(argc, argv, "--call", 5),
              .text = 1e-6 * number_of(argc, argv, "--text", 20)};
    const char *labels[] = {safer_model_label(inner, 0), safer_model_label(inner, 1)};
    safer_remote_options options = safer_remote_options_default();
    options.labels = labels;
    options.label_count = 2;
    options.batch = (size_t)number_of(argc, argv, "--batch", 256);
    options.model_name = "slow";
    check(safer_model_from_callback(&model, classify, &s, &options, &error) == SAFER_OK, error.message);
    char path[] = "/tmp/bench-feeder-XXXXXX";
    const int fd = mkstemp(path);
    check(fd >= 0 && close(fd) == 0 && unlink(path) == 0, "no temporary file");
    check(safer_certify(&summary, path, 0, model, lexicon, data, NULL, &error) == SAFER_OK, error.message);
    printf("%zu texts in %.2f s; %llu calls of %.1f; %.1f us a question\n", safer_data_size(data), summary.seconds,
           (unsigned long long)s.calls, (double)s.texts / (double)s.calls, 1e6 * summary.seconds / (double)s.texts);
    char command[128];
    snprintf(command, sizeof command, "sed 's/,\"seconds.*//' %s | sed '1s/,\"date.*//' | sha256sum", path);
    fflush(stdout);
    check(system(command) == 0, "no digest");
    unlink(path);
    return 0;
}
