/* safer sweep: one model and one certificate for every kernel, as in the paper's table 3.
 *
 * A recipe of safer compare: the command line becomes a configuration with the data sets "dev" and "test", which
 * differ in the texts that are certified, one model, and one defence per kernel. What is in the folder, how a
 * sweep is resumed and what is refused is therefore the same as there. */
#define _GNU_SOURCE
#include "compare/compare.h"
#include "results.h"
#include "verbs.h"

#include <string.h>

enum { MOST_KERNELS = 32 };

typedef struct request {
    const char *kernels, *lexicon, *dev, *dev_sample, *test, *test_sample, *folder;
    cli_data data;
    cli_certify_flags certify;
    cli_train_flags training;
} request;

/* ----------------------------------------------------------------- options */

static const char *sampling_methods(size_t number) /* all but interval bounds, to which a kernel makes no difference */
{
    return number < SAFER_METHOD_IBP ? safer_method_name((safer_method)number) : NULL;
}

static void list(cli_options *options, void *into)
{
    request *r = into;
    safer_certify_options *o = &r->certify.options;
    *r = (request){.data = cli_data_default(), .certify = cli_certify_default(), .training = cli_train_default()};
    cli_add_heading(options, "What");
    cli_add_string(options, "kernels", &r->kernels, "LIST",
                   "kernels, with commas between: topk:20,topk:100,component,representative");
    cli_arch_option(options, &r->training);
    cli_add_path(options, "lexicon", &r->lexicon, "FILE", "words and synonyms; its own kernel does not matter");
    cli_data_options(options, &r->data);
    cli_add_path(options, "dev", &r->dev, "DATA", "texts to choose the epoch and the kernel by");
    cli_add_string(options, "dev-sample", &r->dev_sample, "HOW",
                   "every:N or random:N of the dev texts, for certification too");
    cli_add_path(options, "test", &r->test, "DATA", "texts for the final figures");
    cli_add_string(options, "test-sample", &r->test_sample, "HOW", "every:N or random:N of the test texts");
    cli_add_output(options, "output", &r->folder, "FOLDER", "for lexicons, models and records (also -o FOLDER)");
    cli_add_heading(options, "Certificate");
    cli_add_choice(options, "method", &r->certify.method, sampling_methods, "NAME", "{choices} (default {default})");
    cli_add_uint(options, "n", &o->n, "N", "samples of a certificate; adaptive: at most (default {default})");
    cli_add_real(options, "delta", &o->delta, "D",
                 "chance, at most, that a text that could be attacked is certified (default {default})");
    cli_radius_option(options, &r->certify.radius);
    cli_add_uint(options, "seed", &r->training.options.seed, "N", "of everything random (default {default})");
    cli_train_options(options, &r->training);
}

static void check_request(request *r)
{
    const cli_verb *verb = &cli_sweep;
    if (!r->kernels) cli_misuse(verb, "--kernels LIST is needed");
    if (!r->training.arch) cli_arch_missing(verb);
    if (!r->lexicon) cli_misuse(verb, "--lexicon FILE is needed");
    if (!r->data.path) cli_misuse(verb, "--data DATA is needed: the texts to train on");
    if (!r->dev) cli_misuse(verb, "--dev DATA is needed: kernels are not chosen on test data");
    if (!r->folder) cli_misuse(verb, "-o FOLDER is needed: where models and records go");
    r->certify.options.seed = r->training.options.seed; /* checked with the rest */
    cli_certify_finish(&r->certify, verb);
}

/* ----------------------------------------------------------- configuration */

/* A path of the command line: a $ in front is nothing special there. */
static json_t *path_json(const char *path) { return json_sprintf("%s%s", path[0] == '$' ? "./" : "", path); }

/* The value of an option, or NULL when it is the usual one. */
static json_t *value_json(const cli_option *now, const cli_option *usual)
{
    const char *text;
    switch (now->kind) {
    case CLI_FLAG: return *(int *)now->target ? json_true() : NULL;
    case CLI_INT:
        return *(int *)now->target == *(int *)usual->target ? NULL : cli_need(json_integer(*(int *)now->target));
    case CLI_UINT:
        return *(uint64_t *)now->target == *(uint64_t *)usual->target
                   ? NULL
                   : cli_need(json_integer((json_int_t) * (uint64_t *)now->target));
    case CLI_REAL:
        return *(double *)now->target == *(double *)usual->target ? NULL : cli_need(json_real(*(double *)now->target));
    case CLI_STRING:
    case CLI_CHOICE:
    case CLI_PATH:
    case CLI_OUTPUT:
        text = *(const char **)now->target;
        if (!text || text == *(const char **)usual->target) return NULL;
        return cli_need(now->kind == CLI_PATH ? path_json(text) : json_string(text));
    case CLI_LIST:
    case CLI_STRINGS:
    case CLI_VALUE:
    case CLI_HEADING: break;
    }
    return NULL;
}

/* What a table's targets hold, but for what they hold anyway: `usual` is the same table with the defaults. */
static json_t *given_json(const cli_options *now, const cli_options *usual)
{
    json_t *object = json_object();
    for (size_t i = 0; i < now->count; i++) {
        json_t *value = value_json(&now->rows[i], &usual->rows[i]);
        if (value) cli_set(object, now->rows[i].name, value);
    }
    return object;
}

static json_t *data_json(cli_data *d)
{
    cli_data defaults = cli_data_default();
    cli_options now = {0}, usual = {0};
    cli_data_options(&now, d);
    cli_data_options(&usual, &defaults);
    return given_json(&now, &usual);
}

static json_t *model_json(cli_train_flags *training)
{
    cli_train_flags defaults = cli_train_default();
    cli_options now = {0}, usual = {0};
    cli_arch_option(&now, training);
    cli_arch_option(&usual, &defaults);
    cli_train_options(&now, training);
    cli_train_options(&usual, &defaults);
    return given_json(&now, &usual);
}

static json_t *defense_json(cli_certify_flags *certify, const char *kernel)
{
    cli_certify_flags defaults = cli_certify_default();
    cli_options now = {0}, usual = {0};
    cli_test_options(&now, certify);
    cli_test_options(&usual, &defaults);
    json_t *defense = given_json(&now, &usual);
    cli_set(defense, "kernel", json_string(kernel));
    return defense;
}

/* One defence per kernel of the list. */
static json_t *defenses_json(request *r)
{
    json_t *defenses = json_object();
    for (const char *p = r->kernels; *p || !json_object_size(defenses);) {
        const size_t length = strcspn(p, ",");
        char kernel[64];
        if (json_object_size(defenses) == MOST_KERNELS || length == 0 || length >= sizeof kernel)
            cli_misuse(&cli_sweep, "--kernels %s: a list of at most %d kernels", r->kernels, MOST_KERNELS);
        snprintf(kernel, sizeof kernel, "%.*s", (int)length, p);
        if (json_object_get(defenses, kernel))
            cli_misuse(&cli_sweep, "--kernels %s: %s is named twice", r->kernels, kernel);
        cli_set(defenses, kernel, defense_json(&r->certify, kernel));
        p += length + (p[length] == ',');
    }
    return defenses;
}

static cli_data dev_data(const request *r)
{
    cli_data dev = cli_data_beside(&r->data, r->dev, NULL);
    dev.options.sample = r->dev_sample;
    return dev;
}

static json_t *configuration(request *r)
{
    cli_data dev = dev_data(r), test = cli_data_beside(&r->data, r->test, NULL);
    test.options.sample = r->test_sample;
    json_t *data = json_object(), *chosen_by = data_json(&dev);
    cli_set(data, "dev",
            json_pack("{s:o, s:O, s:O, s:o}", "train", data_json(&r->data), "dev", chosen_by, "test", chosen_by,
                      "lexicon", path_json(r->lexicon)));
    if (r->test)
        cli_set(data, "test",
                json_pack("{s:o, s:O, s:o, s:o}", "train", data_json(&r->data), "dev", chosen_by, "test",
                          data_json(&test), "lexicon", path_json(r->lexicon)));
    json_decref(chosen_by);
    return json_pack("{s:I, s:s, s:o, s:{s:o}, s:o}", "seed", (json_int_t)r->training.options.seed, "radius",
                     r->certify.radius, "data", data, "models", r->training.arch, model_json(&r->training), "defenses",
                     defenses_json(r));
}

/* ----------------------------------------------------------------- results */

/* What came out for one kernel; results of both data sets lie in the cells of the configuration. */
typedef struct row {
    const char *kernel;
    double above_half; /* share of dev texts that can be certified at all */
    const safer_summary *dev, *test;
} row;

static json_t *results_json(const safer_summary *s)
{
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "texts", (json_int_t)s->texts, "examples", (json_int_t)s->texts,
                     "clean_accuracy", cli_figure_json(s->base_correct, s->labelled), "smoothed_accuracy",
                     cli_figure_json(s->smoothed_correct, s->labelled), "certified_answered",
                     cli_figure_json(s->certified_answered, s->labelled), "certified_accuracy",
                     cli_figure_json(s->certified, s->labelled));
}

static void print_json(const request *r, const row *rows, size_t count, size_t best)
{
    json_t *kernels = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *entry = json_pack("{s:s, s:f, s:o}", "kernel", rows[i].kernel, "certifiable", rows[i].above_half, "dev",
                                  results_json(rows[i].dev));
        if (rows[i].test) cli_set(entry, "test", results_json(rows[i].test));
        cli_append(kernels, entry);
    }
    cli_print_json(json_pack("{s:s, s:s, s:I, s:o}", "arch", r->training.arch, "chosen", rows[best].kernel, "seed",
                             (json_int_t)r->training.options.seed, "kernels", kernels));
}

static void print_figures(const safer_summary *s)
{
    printf(" %9s%% %22s%% %9s%%", cli_percent(s->smoothed_correct, s->labelled),
           cli_percent(s->certified_answered, s->labelled), cli_percent(s->certified, s->labelled));
}

static void print_table(const row *rows, size_t count, size_t best)
{
    static const char heads[] = " %10s %23s %10s";
    const int with_test = rows[0].test != NULL;
    printf("%s  %-16s %12s", cli_bold(), "kernel", "certifiable");
    for (int i = 0; i <= with_test; i++) printf(heads, "smoothed", "certified and answered", "certified");
    printf("%s\n  %-16s %12s", cli_plain(), "", "dev");
    for (int i = 0; i <= with_test; i++) printf(heads, i ? "test" : "dev", i ? "test" : "dev", i ? "test" : "dev");
    printf("\n");
    for (size_t i = 0; i < count; i++) {
        printf("%s %-16s %11s%%", i == best ? "*" : " ", rows[i].kernel, cli_share(rows[i].above_half, 1));
        print_figures(rows[i].dev);
        if (with_test) print_figures(rows[i].test);
        printf("\n");
    }
    printf("\n* chosen on the dev texts; test figures of the others are for comparison only\n");
}

/* The share of dev texts that a kernel, whose lexicon the study left in the folder, makes certifiable. */
static safer_status survey_kernel(row *r, const cmp_folder *folder, const safer_data *dev, safer_error *error)
{
    char kernel[80], file[128], path[4096];
    safer_lexicon *lexicon = NULL;
    safer_survey survey;
    cmp_file_name(kernel, sizeof kernel, r->kernel);
    snprintf(file, sizeof file, "dev.%s.lex", kernel);
    cmp_folder_file(path, sizeof path, folder, file);
    safer_status status = safer_lexicon_open(&lexicon, path, error);
    if (status == SAFER_OK)
        status = safer_lexicon_survey(&survey, lexicon, dev, cli_settings()->threads, cli_progress(), error);
    if (status == SAFER_OK) r->above_half = survey.products[SAFER_SURVEY_RADII - 1].above_half;
    safer_lexicon_free(lexicon);
    return status;
}

/* Cells come in the order of data and, in it, kernels: first all of dev, then all of test. */
static safer_status give_results(const request *r, const cmp_config *config, const cmp_folder *folder,
                                 safer_error *error)
{
    row rows[MOST_KERNELS] = {0};
    const size_t count = config->cell_count / (r->test ? 2 : 1);
    size_t best = 0;
    cli_data dev_flags = dev_data(r);
    safer_data *dev = NULL;
    safer_status status = cli_data_try(&dev, &dev_flags, config->seed, error);
    for (size_t i = 0; i < count && status == SAFER_OK; i++) {
        rows[i].kernel = config->cells[i].defense;
        rows[i].dev = safer_run_certified(config->cells[i].certified);
        if (r->test) rows[i].test = safer_run_certified(config->cells[count + i].certified);
        status = survey_kernel(&rows[i], folder, dev, error);
        if (rows[i].dev->certified_answered > rows[best].dev->certified_answered) best = i; /* of the same texts */
    }
    safer_data_free(dev);
    if (status != SAFER_OK) return status;
    cli_progress_clear();
    if (cli_settings()->json)
        print_json(r, rows, count, best);
    else
        print_table(rows, count, best);
    return SAFER_OK;
}

/* -------------------------------------------------------------------- verb */

static int run(void *from, char **arguments, size_t count)
{
    request *r = from;
    safer_error error = {0};
    cmp_config config;
    cmp_folder folder = {.lock = -1};
    int code = CLI_DONE;
    (void)arguments, (void)count;
    check_request(r);
    safer_status status = cmp_config_take(&config, "safer sweep", configuration(r), &error);
    if (status == SAFER_OK) status = cmp_folder_open(&folder, r->folder, &error);
    if (status == SAFER_OK) code = cmp_study_run(&config, &folder, 1, NULL);
    if (status == SAFER_OK && code == CLI_DONE) status = give_results(r, &config, &folder, &error);
    if (status != SAFER_OK) code = cli_fail(&error);
    cmp_folder_close(&folder);
    cmp_config_free(&config);
    return code;
}

const cli_verb cli_sweep = {
    .name = "sweep",
    .brief = "train and certify for several kernels, and compare them",
    .usage = "--kernels LIST --arch A --lexicon L --data TRAIN --dev DEV [--test TEST] -o FOLDER",
    .summary = "Trains and certifies a model for each kernel and prints a table: the share of texts that\n"
               "can be certified at all, the smoothed classifier's accuracy and its certified accuracy.\n"
               "The kernel is chosen on the dev texts; the test texts are looked at once for each. Models\n"
               "and records stay in FOLDER; the same command again does only what is missing.",
    .examples =
        "  safer sweep --kernels topk:20,topk:100,component,representative --arch ngram --lexicon imdb.lex \\\n"
        "      --data train.tsv --dev dev.tsv --test test.tsv -o sweep\n"
        "  safer sweep --kernels topk:250,component --arch cnn --lexicon imdb.lex --data train.tsv --dev dev.tsv \\\n"
        "      --vectors glove.txt --method hoeffding -o sweep --json\n",
    .request_size = sizeof(request),
    .list = list,
    .run = run,
};
