/* safer model convert | average | show */
#define _GNU_SOURCE
#include "verbs.h"

#include <sys/stat.h>

typedef struct request {
    const char *output;
} request;

static void list(cli_options *options, void *into)
{
    request *r = into;
    cli_add_output(options, "output", &r->output, "FILE", "where to write the model (also -o FILE)");
}

static int print_written(const char *output)
{
    struct stat info;
    uint64_t bytes = stat(output, &info) == 0 ? (uint64_t)info.st_size : 0;
    if (cli_settings()->json)
        cli_print_json(json_pack("{s:s, s:I}", "output", output, "bytes", (json_int_t)bytes));
    else
        printf("wrote %s (%s bytes)\n", output, cli_count(bytes));
    return CLI_DONE;
}

static int convert(void *from, char **arguments, size_t count)
{
    const request *r = from;
    safer_error error = {0};
    (void)count;
    if (!r->output) cli_misuse(&cli_model_convert, "-o FILE is needed: where to write the model");
    if (safer_model_convert(r->output, arguments[0], &error) != SAFER_OK) return cli_fail(&error);
    return print_written(r->output);
}

static int average(void *from, char **arguments, size_t count)
{
    const request *r = from;
    safer_error error = {0};
    if (!r->output) cli_misuse(&cli_model_average, "-o FILE is needed: where to write the model");
    if (safer_model_average(r->output, (const char *const *)arguments, count, &error) != SAFER_OK)
        return cli_fail(&error);
    return print_written(r->output);
}

const cli_verb cli_model_convert = {
    .name = "model convert",
    .brief = "the checkpoint of an encoder into one file",
    .usage = "IN -o OUT.safetensors",
    .summary = "Makes one file of the checkpoint of an encoder (BERT, RoBERTa, DeBERTa, ModernBERT and\n"
               "more): weights, tokenizer and labels. IN is a folder as HuggingFace has them (config.json,\n"
               "vocab.txt or tokenizer.json, and safetensors, pytorch_model.bin or ONNX), or an .onnx file\n"
               "beside the rest.",
    .examples = "  safer model convert bert-base-uncased -o bert.safetensors\n"
                "  safer model convert gte-small/onnx/model.onnx -o gte-small.safetensors\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .request_size = sizeof(request),
    .list = list,
    .run = convert,
};

const cli_verb cli_model_average = {
    .name = "model average",
    .brief = "several fine-tuned models into one",
    .usage = "MODEL MODEL... -o OUT.safetensors",
    .summary = "Makes one file of several BERT models that were fine-tuned from the same encoder: the mean of\n"
               "their parameters, which often errs less than each of them.",
    .examples = "  safer model average first.safetensors second.safetensors -o mean.safetensors\n"
                "  safer model average run-*.safetensors -o mean.safetensors\n",
    .min_arguments = 2,
    .max_arguments = SIZE_MAX,
    .request_size = sizeof(request),
    .list = list,
    .run = average,
};

/* -------------------------------------------------------------------- show */

static json_t *model_json(const safer_model *model)
{
    const char *with = safer_model_trained_with(model);
    json_t *labels = json_array(), *trained = with ? cli_json_read(with) : NULL;
    for (size_t k = 0; k < safer_model_class_count(model); k++)
        cli_append(labels, json_string(safer_model_label(model, k)));
    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", safer_model_name(model), "arch", safer_model_arch(model),
                     "sha256", safer_model_sha256(model), "labels", labels, "trained_with",
                     trained ? trained : json_null());
}

static void print_model(const safer_model *model)
{
    const char *with = safer_model_trained_with(model);
    printf("architecture %s\n", safer_model_arch(model));
    printf("labels       ");
    for (size_t k = 0; k < safer_model_class_count(model); k++) {
        printf("%s", k ? ", " : "");
        cli_put(safer_model_label(model, k));
    }
    printf("\ntrained with %s\n", with ? with : "(it does not say)");
    printf("sha256       %s\n", safer_model_sha256(model));
}

static void list_nothing(cli_options *options, void *into)
{
    (void)options;
    (void)into;
}

static int show(void *from, char **arguments, size_t count)
{
    safer_error error = {0};
    safer_model *model = NULL;
    (void)from;
    (void)count;
    if (safer_model_open(&model, arguments[0], &error) != SAFER_OK) return cli_fail(&error);
    if (cli_settings()->json)
        cli_print_json(model_json(model));
    else
        print_model(model);
    safer_model_free(model);
    return CLI_DONE;
}

const cli_verb cli_model_show = {
    .name = "model show",
    .brief = "architecture, labels, SHA-256",
    .usage = "MODEL",
    .summary = "What a model is: its architecture, labels, what it was trained with, and the SHA-256 by which\n"
               "records name it. MODEL is a file, a folder as HuggingFace has them, or a sum of models.",
    .examples = "  safer model show cnn.safetensors\n"
                "  safer model show cnn.safetensors --json\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .list = list_nothing,
    .run = show,
};
