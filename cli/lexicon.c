/* safer lexicon: finds the action. */
#include "cli.h"

#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} actions[] = {
    {"build", cli_lexicon_build, "from word vectors"},
    {"import", cli_lexicon_import, "from a table of synonyms or WordNet"},
    {"export", cli_lexicon_export, "synonyms, kernel or overlaps as text or JSON"},
    {"show", cli_lexicon_show, "what the lexicon says of some words"},
    {"stats", cli_lexicon_stats, "sizes, components, and what it means for a data set"},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

int cli_lexicon(int argc, char **argv)
{
    static const cli_verb verb = {.name = "lexicon"};
    if (argc < 1) cli_misuse(&verb, "build, import, export, show or stats is needed");
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "help") == 0) {
        printf("Usage: safer lexicon ACTION [options]\n\nActions:\n");
        for (int i = 0; i < ACTIONS; i++) printf("  %-10s%s\n", actions[i].name, actions[i].summary);
        printf("\nsafer lexicon ACTION --help explains each.\n\nExamples:\n"
               "  safer lexicon import --table synonyms.tsv --kernel component -o words.lex\n"
               "  safer lexicon show words.lex good\n");
        return CLI_DONE;
    }
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (int i = 0; i < ACTIONS; i++) {
        if (strcmp(argv[0], actions[i].name) == 0) return actions[i].run(argc - 1, argv + 1);
        size_t d = cli_distance(argv[0], strlen(argv[0]), actions[i].name);
        if (d < least) {
            least = d;
            nearest = actions[i].name;
        }
    }
    if (nearest) cli_misuse(&verb, "there is no action %s; did you mean %s?", argv[0], nearest);
    cli_misuse(&verb, "there is no action %s", argv[0]);
}
