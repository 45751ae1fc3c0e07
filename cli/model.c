/* safer model convert | average */
#define _GNU_SOURCE
#include "cli.h"

#include <string.h>
#include <sys/stat.h>

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

static int convert(int argc, char **argv)
{
    static const cli_verb verb = {
        "model convert",
        "IN -o OUT.safetensors",
        "Makes one file of a BERT or DistilBERT checkpoint: weights, vocabulary and labels. IN is a\n"
        "folder as HuggingFace has them (config.json, vocab.txt or tokenizer.json, and safetensors or\n"
        "ONNX), or an .onnx file beside the rest.",
        "  safer model convert bert-base-uncased -o bert.safetensors\n"
        "  safer model convert gte-small/onnx/model.onnx -o gte-small.safetensors\n",
        1,
        1};
    const char *output = NULL;
    const cli_option options[] = {
        {"output", CLI_STRING, &output, "FILE", "where to write the model (also -o FILE)"},
        {0},
    };
    safer_error error = {0};
    cli_parse(argc, argv, &verb, options);
    if (!output) cli_misuse(&verb, "-o FILE is needed: where to write the model");
    if (safer_model_convert(output, argv[0], &error) != SAFER_OK) return cli_fail(&error);
    return print_written(output);
}

static int average(int argc, char **argv)
{
    static const cli_verb verb = {
        "model average",
        "MODEL MODEL... -o OUT.safetensors",
        "Makes one file of several BERT models that were fine-tuned from the same encoder: the mean of\n"
        "their parameters, which often errs less than each of them.",
        "  safer model average first.safetensors second.safetensors -o mean.safetensors\n"
        "  safer model average run-*.safetensors -o mean.safetensors\n",
        2,
        SIZE_MAX};
    const char *output = NULL;
    const cli_option options[] = {
        {"output", CLI_STRING, &output, "FILE", "where to write the model (also -o FILE)"},
        {0},
    };
    safer_error error = {0};
    size_t count = cli_parse(argc, argv, &verb, options);
    if (!output) cli_misuse(&verb, "-o FILE is needed: where to write the model");
    if (safer_model_average(output, (const char *const *)argv, count, &error) != SAFER_OK) return cli_fail(&error);
    return print_written(output);
}

int cli_model(int argc, char **argv)
{
    static const cli_verb verb = {.name = "model"};
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } actions[] = {{"convert", convert}, {"average", average}};
    if (argc < 1) cli_misuse(&verb, "convert or average is needed");
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "help") == 0) {
        printf("Usage: safer model ACTION [options]\n\nActions:\n"
               "  convert   a BERT checkpoint into one file\n"
               "  average   several fine-tuned models into one\n"
               "\nsafer model ACTION --help explains each.\n\nExamples:\n"
               "  safer model convert bert-base-uncased -o bert.safetensors\n"
               "  safer model convert gte-small/onnx/model.onnx -o gte-small.safetensors\n");
        return CLI_DONE;
    }
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(argv[0], actions[i].name) == 0) return actions[i].run(argc - 1, argv + 1);
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (cli_distance(argv[0], strlen(argv[0]), actions[i].name) != SIZE_MAX)
            cli_misuse(&verb, "there is no action %s; did you mean %s?", argv[0], actions[i].name);
    cli_misuse(&verb, "there is no action %s", argv[0]);
}
