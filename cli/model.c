/* safer model convert */
#define _GNU_SOURCE
#include "cli.h"

#include <string.h>
#include <sys/stat.h>

static int convert(int argc, char **argv)
{
    static const cli_verb verb = {
        "model convert", "IN -o OUT.safetensors",
        "Makes one file of a BERT or DistilBERT checkpoint: weights, vocabulary and labels. IN is a\n"
        "folder as HuggingFace has them (config.json, vocab.txt or tokenizer.json, and safetensors or\n"
        "ONNX), or an .onnx file beside the rest.",
        "  safer model convert bert-base-uncased -o bert.safetensors\n"
        "  safer model convert gte-small/onnx/model.onnx -o gte-small.safetensors\n",
        1, 1};
    const char *output = NULL;
    const cli_option options[] = {
        {"output", CLI_STRING, &output, "FILE", "where to write the model (also -o FILE)"},
        {0},
    };
    safer_error error = {0};
    struct stat info;
    cli_parse(argc, argv, &verb, options);
    if (!output) cli_misuse(&verb, "-o FILE is needed: where to write the model");
    if (safer_model_convert(output, argv[0], &error) != SAFER_OK) return cli_fail(&error);
    uint64_t bytes = stat(output, &info) == 0 ? (uint64_t)info.st_size : 0;
    if (cli_settings()->json) cli_print_json(json_pack("{s:s, s:I}", "output", output, "bytes", (json_int_t)bytes));
    else printf("wrote %s (%s bytes)\n", output, cli_count(bytes));
    return CLI_DONE;
}

int cli_model(int argc, char **argv)
{
    static const cli_verb verb = {.name = "model"};
    if (argc < 1) cli_misuse(&verb, "convert is needed");
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "help") == 0) {
        printf("Usage: safer model ACTION [options]\n\nActions:\n"
               "  convert   a BERT checkpoint into one file\n"
               "\nsafer model ACTION --help explains each.\n\nExamples:\n"
               "  safer model convert bert-base-uncased -o bert.safetensors\n"
               "  safer model convert gte-small/onnx/model.onnx -o gte-small.safetensors\n");
        return CLI_DONE;
    }
    if (strcmp(argv[0], "convert") == 0) return convert(argc - 1, argv + 1);
    if (cli_distance(argv[0], strlen(argv[0]), "convert") != SIZE_MAX)
        cli_misuse(&verb, "there is no action %s; did you mean convert?", argv[0]);
    cli_misuse(&verb, "there is no action %s", argv[0]);
}
