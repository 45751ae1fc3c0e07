/* safer sweep: one model and one certificate for every kernel, as in the paper's table 3. */
#define _GNU_SOURCE
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_KERNELS = 32 };

/* What came out for one kernel. */
typedef struct row {
    char kernel[64];
    safer_train_report training;
    safer_summary dev, test;
    double above_half; /* share of dev texts that can be certified at all */
} row;

typedef struct sweep {
    const char *folder;
    safer_lexicon *lexicon;
    safer_data *train, *dev, *test;
    cli_train_flags training;
    safer_certify_options certify;
} sweep;

static void file_name(char *out, size_t size, const sweep *s, const char *kernel, const char *ending)
{
    char safe[64];
    snprintf(safe, sizeof safe, "%.63s", kernel);
    for (char *c = safe; *c; c++)
        if (*c == ':') *c = '-';
    snprintf(out, size, "%s/%s%s", s->folder, safe, ending);
}

/* Certifies one data set into FOLDER/KERNEL-what.jsonl, going on where an earlier sweep stopped. */
static safer_status certify(safer_summary *out, const sweep *s, const row *r, const char *what,
                            const safer_model *model, const safer_lexicon *lexicon, const safer_data *data,
                            safer_error *error)
{
    char ending[32], path[4096];
    snprintf(ending, sizeof ending, "-%s.jsonl", what);
    file_name(path, sizeof path, s, r->kernel, ending);
    return safer_certify(out, path, 1, model, lexicon, data, &s->certify, error);
}

/* Whether a model that an earlier sweep left is one that this sweep would have made, as far
 * as its file tells: architecture, lexicon, kernel and seed. */
static int is_ours(const safer_model *model, const safer_lexicon *lexicon, const safer_train_options *o)
{
    safer_lexicon_info info = safer_lexicon_describe(lexicon);
    json_t *with = safer_model_trained_with(model) ? json_loads(safer_model_trained_with(model), 0, NULL) : NULL;
    const char *hash = json_string_value(json_object_get(with, "lexicon"));
    char expected[17];
    snprintf(expected, sizeof expected, "%016llx", (unsigned long long)info.hash);
    int ours = strcmp(safer_model_arch(model), safer_arch_name(o->arch)) == 0 && hash && strcmp(hash, expected) == 0 &&
               (uint64_t)json_integer_value(json_object_get(with, "seed")) == o->seed;
    json_decref(with);
    return ours;
}

static safer_status run_kernel(row *r, sweep *s, safer_error *error)
{
    char path[4096];
    safer_lexicon *lexicon = NULL;
    safer_model *model = NULL;
    safer_survey survey;
    file_name(path, sizeof path, s, r->kernel, ".safetensors");
    safer_status status = safer_lexicon_with_kernel(&lexicon, s->lexicon, r->kernel, cli_settings()->threads, error);
    if (status == SAFER_OK)
        status = safer_lexicon_survey(&survey, lexicon, s->dev, cli_settings()->threads, cli_progress(), error);
    if (status == SAFER_OK) r->above_half = survey.products[SAFER_SURVEY_RADII - 1].above_half;
    s->training.options.lexicon = lexicon;
    s->training.options.resume = 1;
    if (status == SAFER_OK && access(path, R_OK) != 0) {
        cli_say("%s: training", r->kernel);
        status = safer_train(path, &s->training.options, &r->training, error);
    }
    if (status == SAFER_OK) status = safer_model_open(&model, path, error);
    if (status == SAFER_OK && s->training.options.course.precision == SAFER_PRECISION_F32)
        status = safer_model_set_precision(model, SAFER_PRECISION_F32, error);
    if (status == SAFER_OK && !is_ours(model, lexicon, &s->training.options)) {
        status = cli_error(error, SAFER_INPUT,
                           "%.800s was made with another architecture, lexicon or seed; choose another folder", path);
    }
    if (status == SAFER_OK) {
        cli_say("%s: certifying", r->kernel);
        status = certify(&r->dev, s, r, "dev", model, lexicon, s->dev, error);
    }
    if (status == SAFER_OK && s->test) status = certify(&r->test, s, r, "test", model, lexicon, s->test, error);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
    return status;
}

static double share(size_t part, size_t whole) { return whole ? (double)part / (double)whole : 0.0; }

static json_t *results_json(const safer_summary *s)
{
    return json_pack("{s:I, s:f, s:f, s:f}", "examples", (json_int_t)s->texts, "clean_accuracy",
                     share(s->base_correct, s->labelled), "smoothed_accuracy", share(s->smoothed_correct, s->labelled),
                     "certified_accuracy", share(s->certified, s->texts));
}

static void print_rows(const row *rows, size_t count, size_t best, int with_test)
{
    printf("%s  %-16s %12s %10s %10s", cli_bold(), "kernel", "certifiable", "smoothed", "certified");
    if (with_test) printf("   %10s %10s", "smoothed", "certified");
    printf("%s\n  %-16s %12s %10s %10s", cli_plain(), "", "dev", "dev", "dev");
    if (with_test) printf("   %10s %10s", "test", "test");
    printf("\n");
    for (size_t i = 0; i < count; i++) {
        const row *r = &rows[i];
        printf("%s %-16s %11.1f%% %9.2f%% %9s%%", i == best ? "*" : " ", r->kernel, 100 * r->above_half,
               100 * share(r->dev.smoothed_correct, r->dev.labelled), cli_percent(r->dev.certified, r->dev.texts));
        if (with_test)
            printf("   %9.2f%% %9s%%", 100 * share(r->test.smoothed_correct, r->test.labelled),
                   cli_percent(r->test.certified, r->test.texts));
        printf("\n");
    }
    printf("\n* chosen on the dev texts; test figures of the others are for comparison only\n");
}

int cli_sweep(int argc, char **argv)
{
    static const cli_verb verb = {
        "sweep",
        "--kernels LIST --arch A --lexicon L --data TRAIN --dev DEV [--test TEST] -o FOLDER",
        "Trains and certifies a model for each kernel and prints a table: the share of texts that\n"
        "can be certified at all, the smoothed classifier's accuracy and its certified accuracy.\n"
        "The kernel is chosen on the dev texts; the test texts are looked at once for each. Models\n"
        "and records stay in FOLDER, and a sweep that was stopped goes on from there.",
        "  safer sweep --kernels topk:20,topk:100,component,representative --arch ngram --lexicon imdb.lex \\\n"
        "      --data train.tsv --dev dev.tsv --test test.tsv -o sweep\n"
        "  safer sweep --kernels topk:250,component --arch cnn --lexicon imdb.lex --data train.tsv --dev dev.tsv \\\n"
        "      --vectors glove.txt --method hoeffding -o sweep --json\n",
        0,
        0};
    const char *kernels = NULL, *lexicon_path = NULL, *dev_path = NULL, *test_path = NULL, *dev_sample = NULL,
               *test_sample = NULL;
    sweep s = {.training = cli_train_default()};
    cli_data d = cli_data_default();
    cli_certify_flags c = cli_certify_default();
    safer_train_options *o = &s.training.options;
    const cli_option options[] = {
        {NULL, CLI_HEADING, NULL, NULL, "What"},
        {"kernels", CLI_STRING, &kernels, "LIST",
         "kernels, with commas between: topk:20,topk:100,component,representative"},
        {"arch", CLI_STRING, &s.training.arch, "NAME", "ngram, bow, cnn, charcnn or bert"},
        {"lexicon", CLI_STRING, &lexicon_path, "FILE", "words and synonyms; its own kernel does not matter"},
        CLI_DATA_OPTIONS(d),
        {"dev", CLI_STRING, &dev_path, "DATA", "texts to choose the epoch and the kernel by"},
        {"dev-sample", CLI_STRING, &dev_sample, "HOW", "every:N or random:N of the dev texts, for certification too"},
        {"test", CLI_STRING, &test_path, "DATA", "texts for the final figures"},
        {"test-sample", CLI_STRING, &test_sample, "HOW", "every:N or random:N of the test texts"},
        {"output", CLI_STRING, &s.folder, "FOLDER", "for models and records (also -o FOLDER)"},
        {NULL, CLI_HEADING, NULL, NULL, "Certificate"},
        {"method", CLI_STRING, &c.method, "NAME", "adaptive, binomial or hoeffding (default adaptive)"},
        {"n", CLI_UINT, &c.options.n, "N", "samples of a certificate; adaptive: at most (default 5000)"},
        {"delta", CLI_REAL, &c.options.delta, "D", "error probability of a certificate (default 0.01)"},
        {"radius", CLI_STRING, &c.radius, "R", "words the attacker may change: a number or all (default all)"},
        {"seed", CLI_UINT, &o->seed, "N", "of everything random (default 1)"},
        CLI_TRAIN_OPTIONS(s.training),
        {0},
    };
    cli_parse(argc, argv, &verb, options);
    if (!kernels) cli_misuse(&verb, "--kernels LIST is needed");
    if (!s.training.arch) cli_misuse(&verb, "--arch ngram, bow, cnn, charcnn or bert is needed");
    if (!lexicon_path) cli_misuse(&verb, "--lexicon FILE is needed");
    if (!d.path) cli_misuse(&verb, "--data DATA is needed: the texts to train on");
    if (!dev_path) cli_misuse(&verb, "--dev DATA is needed: kernels are not chosen on test data");
    if (!s.folder) cli_misuse(&verb, "-o FOLDER is needed: where models and records go");
    c.options.seed = o->seed; /* checked with the rest */
    cli_certify_finish(&c, &verb);
    if (c.options.method == SAFER_METHOD_IBP) cli_misuse(&verb, "--method ibp: a kernel makes no difference to it");
    s.certify = c.options;
    o->threads = cli_settings()->threads;
    o->progress = *cli_progress();

    static row rows[MAX_KERNELS];
    size_t count = 0;
    for (const char *p = kernels; *p;) {
        size_t length = strcspn(p, ",");
        if (count == MAX_KERNELS || length == 0 || length >= sizeof rows[0].kernel)
            cli_misuse(&verb, "--kernels %s: a list of at most %d kernels", kernels, MAX_KERNELS);
        memcpy(rows[count++].kernel, p, length);
        p += length + (p[length] == ',');
    }
    safer_error error = {0};
    if (cli_train_finish(&s.training, &error) != SAFER_OK) return cli_fail(&error);
    if (cli_make_folder(s.folder, &error) != SAFER_OK) return cli_fail(&error);
    s.lexicon = cli_lexicon_open(lexicon_path);
    s.train = cli_data_load(&d, o->seed);
    cli_data more = cli_data_default();
    more.options.repair = d.options.repair;
    more.options.strip_breaks = d.options.strip_breaks;
    more.options.labels_of = s.train;
    more.path = dev_path;
    more.options.sample = dev_sample;
    s.dev = cli_data_load(&more, o->seed);
    more.path = test_path;
    more.options.sample = test_sample;
    s.test = test_path ? cli_data_load(&more, o->seed) : NULL;
    o->train = s.train;
    o->dev = s.dev;

    int code = CLI_DONE;
    size_t best = 0;
    for (size_t i = 0; i < count && code == CLI_DONE; i++) {
        if (run_kernel(&rows[i], &s, &error) != SAFER_OK) code = cli_fail(&error);
        if (share(rows[i].dev.certified, rows[i].dev.texts) > share(rows[best].dev.certified, rows[best].dev.texts))
            best = i;
    }
    if (code == CLI_DONE) {
        cli_progress_clear();
        if (cli_settings()->json) {
            json_t *list = json_array();
            for (size_t i = 0; i < count; i++) {
                json_t *entry = json_pack("{s:s, s:f, s:o}", "kernel", rows[i].kernel, "certifiable",
                                          rows[i].above_half, "dev", results_json(&rows[i].dev));
                if (s.test) json_object_set_new(entry, "test", results_json(&rows[i].test));
                json_array_append_new(list, entry);
            }
            cli_print_json(json_pack("{s:s, s:s, s:I, s:o}", "arch", s.training.arch, "chosen", rows[best].kernel,
                                     "seed", (json_int_t)o->seed, "kernels", list));
        } else {
            print_rows(rows, count, best, s.test != NULL);
        }
    }
    safer_data_free(s.train);
    safer_data_free(s.dev);
    safer_data_free(s.test);
    safer_lexicon_free(s.lexicon);
    return code;
}
