/* safer label */
#include "data_options.h"
#include "model_options.h"
#include "results.h"
#include "verbs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct request {
    const char *output;
    uint64_t seed, batch;
    cli_model_flags model;
    cli_data data;
    safer_label_options options;
} request;

static void list(cli_options *options, void *into)
{
    request *r = into;
    *r = (request){
        .seed = 1, .model = cli_model_default(), .data = cli_data_default(), .options = safer_label_options_default()};
    cli_share_labels(&r->model, &r->data);
    r->model.asked_once = 1;
    cli_model_options(options, &r->model);
    cli_data_options(options, &r->data);
    cli_add_real(options, "keep", &r->options.keep, "P",
                 "only this share of the texts, those that the model is surest of (default {default})");
    cli_add_output(options, "output", &r->output, "FILE",
                   "where to write the texts with their labels, TSV (also -o FILE)");
    cli_add_uint(options, "seed", &r->seed, "N", "for --sample random:N (default {default})");
    cli_add_uint(options, "batch", &r->batch, "N",
                 "texts that a thread asks about at once, which changes no label (default: what suits the model)");
    cli_remote_options(options, &r->model);
}

/* ----------------------------------------------------------------- results */

/* Of every class, its texts. */
static size_t *count_classes(const int *labels, const safer_model *model, size_t texts)
{
    size_t *counts = calloc(safer_model_class_count(model), sizeof *counts);
    if (!counts) cli_no_memory();
    for (size_t i = 0; i < texts; i++)
        if (labels[i] >= 0) counts[labels[i]]++;
    return counts;
}

static json_t *text_or_null(const char *text) { return text && *text ? json_string(text) : json_null(); }

static json_t *result_json(const request *r, const safer_model *model, const safer_label_summary *s,
                           const size_t *counts)
{
    json_t *classes = json_object(), *traffic = cli_traffic_json(model);
    for (size_t k = 0; k < safer_model_class_count(model); k++)
        cli_set(classes, safer_model_label(model, k), json_integer((json_int_t)counts[k]));
#define N(x) (json_int_t)(x)
    json_t *root = json_pack(
        "{s:s, s:I, s:I, s:I, s:f, s:o, s:b, s:o, s:I, s:I, s:I, s:I, s:f, s:f, s:{s:s, s:o, s:o, s:o}}", "output",
        r->output, "texts", N(s->texts), "none", N(s->none), "kept", N(s->kept), "keep", r->options.keep, "least_lead",
        isfinite(s->least_lead) ? json_real(s->least_lead) : json_null(), "by_difference", s->by_difference, "classes",
        classes, "known", N(s->known), "agreed", N(s->agreed), "kept_known", N(s->kept_known), "kept_agreed",
        N(s->kept_agreed), "seconds", s->seconds, "texts_per_second", (double)s->texts / s->seconds, "model", "arch",
        safer_model_arch(model), "name", text_or_null(safer_model_name(model)), "sha256",
        text_or_null(safer_model_sha256(model)), "arithmetic", text_or_null(safer_model_arithmetic(model)));
#undef N
    if (traffic) cli_set(cli_need(root), "traffic", traffic);
    return root;
}

/* Where texts were left out: what distinguishes the others. */
static void print_lead(const safer_label_summary *s)
{
    const double times = exp(s->least_lead);
    if (s->kept + s->none == s->texts || !isfinite(s->least_lead)) return;
    printf(", with a lead of %s", cli_mean(s->least_lead, 2));
    if (!s->by_difference && times < 1e6) printf(" (%s to 1)", cli_mean(times, 1));
    printf(" or more");
}

static void print_classes(const safer_model *model, const size_t *counts)
{
    enum { MOST = 20 };
    const size_t classes = safer_model_class_count(model);
    printf("classes    ");
    for (size_t k = 0; k < classes && k < MOST; k++) {
        printf("%s", k ? ", " : "");
        cli_put(safer_model_label(model, k));
        printf(" %s", cli_count(counts[k]));
    }
    printf("%s\n", classes > MOST ? ", ..." : "");
}

static void print_results(const request *r, const safer_model *model, const safer_label_summary *s,
                          const size_t *counts)
{
    enum { WIDTH = 11 };
    printf("%-*s%s", WIDTH, "texts", cli_count(s->texts));
    if (s->none) printf(", %s without an answer", cli_count(s->none));
    printf("\n%-*s%s", WIDTH, "kept", cli_count(s->kept));
    print_lead(s);
    printf("\n");
    print_classes(model, counts);
    if (s->known)
        printf("%-*s%s%% of %s that have a label", WIDTH, "agreement", cli_percent(s->agreed, s->known),
               cli_count(s->known));
    if (s->kept_known < s->known && s->kept_known)
        printf(", %s%% of the %s kept", cli_percent(s->kept_agreed, s->kept_known), cli_count(s->kept_known));
    if (s->known) printf("\n");
    printf("%-*s", WIDTH, "model");
    cli_put(safer_model_name(model)[0] ? safer_model_name(model) : safer_model_arch(model));
    if (safer_model_sha256(model)[0]) printf(", SHA-256 %s", safer_model_sha256(model));
    if (safer_model_arithmetic(model)) printf(", %s", safer_model_arithmetic(model));
    printf("\n");
    cli_traffic_print(model, WIDTH);
    printf("%.1f s, %s texts/s\n", s->seconds, cli_count((uint64_t)((double)s->texts / s->seconds)));
    printf("wrote %s\n", r->output);
}

/* -------------------------------------------------------------------- verb */

/* Writes the texts that have a class, with its name. */
static safer_status write_labels(const char *output, const int *labels, const safer_model *model,
                                 const safer_data *data, safer_error *error)
{
    const size_t texts = safer_data_size(data);
    const char **names = calloc(texts, sizeof *names);
    if (!names) cli_no_memory();
    for (size_t i = 0; i < texts; i++)
        if (labels[i] >= 0) names[i] = safer_model_label(model, (size_t)labels[i]);
    const safer_status status = safer_data_write(output, data, names, error);
    free(names);
    return status;
}

/* OUT.answered, or OUT.answered.2 and so on where files of such names are there: they hold other answers. */
static int free_name(char *path, size_t size, const char *output)
{
    int length = snprintf(path, size, "%s.answered", output);
    for (int k = 2; length < (int)size && access(path, F_OK) == 0; k++)
        length = snprintf(path, size, "%s.answered.%d", output, k);
    return length < (int)size;
}

/* What was answered before it failed is not lost: answers may have cost money. The message says where it is. */
static void save_part(safer_error *error, const request *r, const int *labels, const safer_model *model,
                      const safer_data *data)
{
    char path[4096];
    size_t answered = 0;
    for (size_t i = 0; i < safer_data_size(data); i++) answered += labels[i] >= 0;
    if (!answered || !free_name(path, sizeof path, r->output)) return;
    if (write_labels(path, labels, model, data, NULL) != SAFER_OK) return; /* one failure is enough */
    const size_t length = strlen(error->message);
    snprintf(error->message + length, sizeof error->message - length, "; %.300s has the %s answered before", path,
             cli_some(answered, "text that was", "texts that were"));
}

static int label_all(request *r, const safer_model *model, const safer_data *data)
{
    safer_error error = {0};
    safer_label_summary summary;
    int *labels = calloc(safer_data_size(data), sizeof *labels);
    if (!labels) cli_no_memory();
    const safer_status asked = safer_label(&summary, labels, model, data, &r->options, &error);
    safer_status status = asked;
    if (status == SAFER_OK) status = write_labels(r->output, labels, model, data, &error);
    cli_progress_clear();
    if (status == SAFER_OK) {
        size_t *counts = count_classes(labels, model, summary.texts);
        if (cli_settings()->json)
            cli_print_json(result_json(r, model, &summary, counts));
        else
            print_results(r, model, &summary, counts);
        free(counts);
    }
    if (asked != SAFER_OK && asked != SAFER_INVALID) save_part(&error, r, labels, model, data);
    free(labels);
    return status == SAFER_OK ? CLI_DONE : cli_fail(&error);
}

static int run(void *from, char **arguments, size_t count)
{
    request *r = from;
    safer_error error = {0};
    (void)arguments, (void)count;
    if (!r->model.path) cli_misuse(&cli_label, "--model MODEL is needed: the one that gives the labels");
    if (!r->data.path) cli_misuse(&cli_label, "--data DATA is needed: the texts");
    if (!r->output) cli_misuse(&cli_label, "-o FILE is needed: where to write the texts with their labels");
    if (!(r->options.keep > 0 && r->options.keep <= 1)) /* before anything is read */
        cli_misuse(&cli_label, "--keep %s: above 0, at most 1", cli_real(r->options.keep));
    const safer_status status = safer_data_write_check(r->output, &error);
    if (status == SAFER_INVALID) cli_misuse(&cli_label, "%s", cli_message(&error));
    if (status != SAFER_OK) return cli_fail(&error);
    r->options.threads = cli_settings()->threads;
    r->options.batch = r->batch;
    r->options.progress = *cli_progress();
    safer_data *data = cli_data_open(&r->data, r->seed);
    /* One label, or none, is no set of classes: texts may all be in one folder, or have a '?'. */
    safer_model *model = cli_model_open(&r->model, &cli_label, safer_data_label_count(data) > 1 ? data : NULL);
    const int code = label_all(r, model, data);
    safer_data_free(data);
    safer_model_free(model);
    return code;
}

const cli_verb cli_label = {
    .name = "label",
    .brief = "a model's answers as labels of texts that have none, to train from",
    .usage = "--model M --data D [--keep P] [options] -o OUT.tsv",
    .summary = "Asks a model about every text as it is written, and writes the texts with its answers as labels.\n"
               "A model that can be certified then learns from them too: append the file to the training data.\n"
               "The data needs no labels; where it has some, it is said how many agree.",
    .examples = "  safer label --model teacher.json --data unlabelled.tsv --keep 0.8 -o labelled.tsv\n"
                "  safer label --model exec:./ask.py --labels neg,pos --data unlabelled.jsonl -o labelled.tsv\n",
    .request_size = sizeof(request),
    .list = list,
    .run = run,
};
