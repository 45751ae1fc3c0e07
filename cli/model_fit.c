/* safer model fit */
#include "data_options.h"
#include "model_options.h"
#include "verbs.h"

typedef struct request {
    const char *lexicon, *output;
    cli_model_flags model;
    cli_data data;
    safer_sum_options options;
} request;

static void list(cli_options *options, void *into)
{
    request *r = into;
    *r = (request){.model = cli_model_default(), .data = cli_data_default()};
    safer_sum_options_init(&r->options, sizeof r->options);
    cli_share_labels(&r->model, &r->data);
    cli_model_options(options, &r->model);
    cli_data_options(options, &r->data);
    cli_add_path(options, "lexicon", &r->lexicon, "FILE", "members read texts as it draws them");
    cli_add_flag(options, "bounds", &r->options.bounds, "for certify --method ibp: by what members prove");
    cli_add_uint(options, "seed", &r->options.seed, "N", "of the random draws (default {default})");
    cli_add_output(options, "output", &r->output, "FILE", "where to write the sum (also -o FILE)");
}

static void print_fit(const request *r, const safer_sum_result *fit)
{
    if (cli_settings()->json) {
        json_t *weights = json_array();
        for (size_t m = 0; m < fit->members; m++) cli_append(weights, json_real(fit->weights[m]));
        cli_print_json(json_pack("{s:s, s:o, s:I, s:f, s:f, s:b, s:I}", "output", r->output, "weights", weights,
                                 "texts", (json_int_t)fit->texts, "before", fit->before, "after", fit->after, "bounds",
                                 r->options.bounds, "seed", (json_int_t)r->options.seed));
        return;
    }
    const char *what = r->options.bounds ? "certified" : "right";
    printf("texts    %s\n", cli_count(fit->texts));
    printf("before   %6.2f%%  %s, with the weights given\n", 100 * fit->before, what);
    printf("after    %6.2f%%  %s\n", 100 * fit->after, what);
    for (size_t m = 0; m < fit->members; m++)
        printf("member %zu  weight %.4f%s\n", m + 1, fit->weights[m], fit->weights[m] > 0 ? "" : ", left out");
    printf("wrote %s\n", r->output);
}

static int run(void *from, char **arguments, size_t count)
{
    request *r = from;
    const cli_verb *verb = &cli_model_fit;
    safer_error error = {0};
    safer_sum_result fit;
    (void)arguments;
    (void)count;
    if (!r->model.path) cli_misuse(verb, "--model SUM is needed: a file of JSON");
    if (!r->data.path) cli_misuse(verb, "--data DATA is needed: texts that no member was trained on");
    if (!r->output) cli_misuse(verb, "-o FILE is needed: where to write the sum");
    safer_data *data = cli_data_load(&r->data, r->options.seed);
    safer_lexicon *lexicon = r->lexicon ? cli_lexicon_open(r->lexicon) : NULL;
    safer_model *model = cli_model_open(&r->model, verb, data);
    r->options.threads = cli_settings()->threads;
    r->options.progress = *cli_progress();
    const safer_status status = safer_sum_fit(&fit, r->output, r->model.path, model, data, lexicon, &r->options,
                                              &error);
    cli_progress_clear();
    if (status == SAFER_OK) print_fit(r, &fit);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
    safer_data_free(data);
    return status == SAFER_OK ? CLI_DONE : cli_fail(&error);
}

const cli_verb cli_model_fit = {
    .name = "model fit",
    .brief = "the weights of a sum of models",
    .usage = "--model SUM.json --data DEV -o FITTED.json [options]",
    .summary = "Finds the weights of a sum of models on labelled texts that no member was trained on, and writes\n"
               "the sum with them. A member that does not help is left out.",
    .examples = "  safer model fit --model sum.json --data dev.tsv --lexicon rep.lex -o fitted.json\n"
                "  safer model fit --model sum.json --data dev.tsv --lexicon hard.lex --bounds -o fitted.json\n",
    .request_size = sizeof(request),
    .list = list,
    .run = run,
};
