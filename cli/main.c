/* The program: finds the verb and hands over. */
#include "cli.h"

#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} verbs[] = {
    {"lexicon", cli_lexicon, "build, import, export and inspect synonym lexicons"},
    {"train", cli_train, "train a classifier on texts drawn from a lexicon's kernel"},
    {"certify", cli_certify, "prove, text by text, that no substitution changes the answer"},
    {"predict", cli_predict, "the smoothed classifier's answer for a text, with its radius"},
    {"verify", cli_verify, "recompute every decision of a run from its records"},
    {"attack", cli_attack, "look for synonyms that change the answer, and test certificates"},
    {"report", cli_report, "one page about one or more runs: figures, plots, every text"},
    {"serve", cli_serve, "answer over HTTP, for programs and in a browser"},
    {"sample", cli_sample, "the draws of a text, as certify asks about them"},
    {"model", cli_model, "convert a BERT checkpoint, average several models"},
    {"sweep", cli_sweep, "train and certify for several kernels, and compare them"},
};

static void print_help(void)
{
    printf("Usage: safer VERB [options]\n\n"
           "Proves that replacing words by synonyms cannot change what a text classifier says.\n\n"
           "Verbs:\n");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) printf("  %-10s%s\n", verbs[i].name, verbs[i].summary);
    printf("\nsafer VERB --help explains each. safer --version prints the version.\n\n"
           "Examples:\n"
           "  safer lexicon import --table synonyms.tsv --kernel component -o words.lex\n"
           "  safer lexicon stats words.lex --data test.tsv\n\n"
           "Exit status: 0 done, 1 a stated requirement was not met, 2 wrong usage, 3 bad input,\n"
           "4 system failure, 130 interrupted.\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) cli_misuse(NULL, "a verb is needed");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help();
        return cli_finish(CLI_DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("safer %s\n", safer_version());
        return cli_finish(CLI_DONE);
    }
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(argv[1], verbs[i].name) == 0) return cli_finish(verbs[i].run(argc - 2, argv + 2));
        size_t d = cli_distance(argv[1], strlen(argv[1]), verbs[i].name);
        if (d < least) {
            least = d;
            nearest = verbs[i].name;
        }
    }
    if (nearest) cli_misuse(NULL, "there is no verb %s; did you mean %s?", argv[1], nearest);
    cli_misuse(NULL, "there is no verb %s", argv[1]);
}
