/* safer model convert | average | show */
#define _GNU_SOURCE
#include "verbs.h"

#include <errno.h>
#include <ftw.h>
#include <string.h>
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
        printf("wrote %s (%s)\n", output, cli_some(bytes, "byte", "bytes"));
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

static uint64_t total; /* nftw passes nothing on */

static int add_size(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)path, (void)place;
    if (kind == FTW_F) total += (uint64_t)info->st_size;
    return 0;
}

/* Of a file, or of all files of a folder; or exits. */
static uint64_t bytes_of(const char *path)
{
    total = 0;
    if (nftw(path, add_size, 8, FTW_PHYS) == 0) return total;
    fprintf(stderr, "safer: %s: its size cannot be found out: %s\n", path, strerror(errno));
    exit(CLI_SYSTEM);
}

static json_t *model_json(const safer_model *model, const char *path)
{
    const char *with = safer_model_trained_with(model);
    json_t *labels = json_array(), *trained = with ? cli_json_read(with) : NULL;
    for (size_t k = 0; k < safer_model_class_count(model); k++)
        cli_append(labels, json_string(safer_model_label(model, k)));
    return json_pack("{s:s, s:s, s:s, s:o, s:I, s:s, s:o}", "name", safer_model_name(model), "arch",
                     safer_model_arch(model), "sha256", safer_model_sha256(model), "labels", labels, "bytes",
                     (json_int_t)bytes_of(path), "arithmetic", safer_model_arithmetic(model), "trained_with",
                     trained ? trained : json_null());
}

/* What the model says of its training: on which lexicon, against what, with which deletion. */
static void print_training(const safer_model *model)
{
    json_t *with = safer_model_trained_with(model) ? cli_json_read(safer_model_trained_with(model)) : NULL;
    const json_t *deletion = json_object_get(with, "delete"), *seed = json_object_get(with, "seed");
    const char *digest = json_string_value(json_object_get(with, "lexicon_sha256"));
    const char *kernel = json_string_value(json_object_get(with, "kernel"));
    const char *defense = json_string_value(json_object_get(with, "defense"));
    if (!json_is_object(with)) {
        printf("training     (it does not say)\n");
    } else {
        printf("lexicon      ");
        cli_put(digest ? digest : json_is_null(json_object_get(with, "lexicon")) ? "none: plain text" : "(older)");
        printf("\nkernel       ");
        cli_put(kernel ? kernel : "none");
        printf("\ndefense      ");
        const int context = strcmp(safer_model_arch(model), "context") == 0;
        cli_put(defense ? defense : context ? "its own: the exact worst case" : "none");
        printf("\ndeletion     ");
        const json_t *groups = json_object_get(with, "groups");
        if (json_is_integer(groups))
            printf("all but one of %s", cli_some((uint64_t)json_integer_value(groups), "group", "groups"));
        else if (json_is_string(deletion))
            cli_put(json_string_value(deletion));
        else
            printf("%s", json_is_number(deletion) ? cli_real(json_number_value(deletion)) : "none");
        printf("\n");
        if (json_is_integer(seed)) printf("seed         %lld\n", (long long)json_integer_value(seed));
    }
    json_decref(with);
}

static void print_model(const safer_model *model, const char *path)
{
    printf("architecture %s\n", safer_model_arch(model));
    printf("labels       ");
    for (size_t k = 0; k < safer_model_class_count(model); k++) {
        printf("%s", k ? ", " : "");
        cli_put(safer_model_label(model, k));
    }
    printf("\nsize         %s\n", cli_some(bytes_of(path), "byte", "bytes"));
    printf("arithmetic   %s, on this machine\n", safer_model_arithmetic(model));
    print_training(model);
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
        cli_print_json(model_json(model, arguments[0]));
    else
        print_model(model, arguments[0]);
    safer_model_free(model);
    return CLI_DONE;
}

const cli_verb cli_model_show = {
    .name = "model show",
    .brief = "architecture, labels, size, what it was trained on, SHA-256",
    .usage = "MODEL",
    .summary = "What a model is: its architecture, labels and size, how it computes here, which lexicon (by its\n"
               "SHA-256), kernel, defense and deletion it was trained with, and the SHA-256 by which records\n"
               "name it. MODEL is a file, a folder as HuggingFace has them, or a sum of models.",
    .examples = "  safer model show cnn.safetensors\n"
                "  safer model show cnn.safetensors --json\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .list = list_nothing,
    .run = show,
};
