/* The program: finds the verb and hands over. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} verbs[] = {
    {"lexicon", cli_lexicon, "build, import, export and inspect synonym lexicons"},
};

static void print_help(void)
{
    printf("Usage: safer VERB [options]\n\n"
           "Proves that replacing words by synonyms cannot change what a text classifier says.\n\n"
           "Verbs:\n");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) printf("  %-10s%s\n", verbs[i].name, verbs[i].summary);
    printf("\nsafer VERB --help explains each. safer --version prints the version.\n\n"
           "Exit status: 0 done, 1 a stated requirement was not met, 2 wrong usage, 3 bad input,\n"
           "4 system failure, 130 interrupted.\n");
}

/* What was printed must have arrived: a full disk is an error. */
static int finish(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "safer: cannot write the output: %s\n", strerror(errno));
        return CLI_SYSTEM;
    }
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        if (argc < 2) {
            fprintf(stderr, "safer: a verb is needed; see safer --help\n");
            return CLI_USAGE;
        }
        print_help();
        return finish(CLI_DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("safer %s\n", safer_version());
        return finish(CLI_DONE);
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(argv[1], verbs[i].name) == 0) return finish(verbs[i].run(argc - 2, argv + 2));
    fprintf(stderr, "safer: there is no verb %s; see safer --help\n", argv[1]);
    return CLI_USAGE;
}
