/* The program: finds the verb and runs it. */
#include "crew.h"
#include "verbs.h"

#include <signal.h>
#include <string.h>

/* "help VERB": the same as "VERB --help". The words are moved, so that the verb is found as always. */
static void turn_help(int argc, char **argv)
{
    static char option[] = "--help";
    if (argc < 3 || strcmp(argv[1], "help") != 0) return;
    for (int i = 1; i + 1 < argc; i++) argv[i] = argv[i + 1];
    argv[argc - 1] = option;
}

static int is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

static void print_help(void)
{
    printf("Usage: safer VERB [options]\n\n"
           "Makes a text classifier answer by a vote over texts with exchanged synonyms (smoothing), and\n"
           "proves, text by text, that replacing words by synonyms cannot change that answer.\n\n"
           "Verbs:\n");
    for (size_t i = 0; i < cli_group_count; i++) {
        const cli_group *g = &cli_groups[i];
        printf("  %-10s%s\n", g->name, cli_has_actions(g) ? g->brief : g->verbs[0]->brief);
    }
    printf("\nsafer help VERB, or safer VERB --help, explains each. safer --version prints the version.\n\n"
           "Examples:\n"
           "  safer lexicon import --table synonyms.tsv --kernel component -o words.lex\n"
           "  safer lexicon stats words.lex --data test.tsv\n\n"
           "Exit status: 0 done, 1 a stated requirement was not met, 2 wrong usage, 3 bad input,\n"
           "4 system failure, 130 interrupted.\n");
}

static void print_actions(const cli_group *group)
{
    printf("Usage: safer %s ACTION [options]\n\nActions:\n", group->name);
    for (size_t i = 0; group->verbs[i]; i++)
        printf("  %-10s%s\n", cli_action_name(group->verbs[i]), group->verbs[i]->brief);
    printf("\nsafer %s ACTION --help explains each.\n\nExamples:\n%s", group->name, group->examples);
}

/* The name that was most likely meant so far. */
typedef struct guess {
    const char *name;
    size_t distance;
} guess;

static void consider(guess *g, const char *typed, const char *name)
{
    const size_t distance = cli_distance(typed, strlen(typed), name);
    if (distance < g->distance) *g = (guess){name, distance};
}

/* "build, import or export is needed" */
static _Noreturn void action_missing(const cli_group *group, const cli_verb *named)
{
    char names[256] = "";
    size_t length = 0;
    for (size_t i = 0; group->verbs[i] && length < sizeof names; i++) {
        const char *before = i == 0 ? "" : group->verbs[i + 1] ? ", " : " or ";
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", before,
                                   cli_action_name(group->verbs[i]));
    }
    cli_misuse(named, "%s is needed", names);
}

static int run_group(const cli_group *group, int argc, char **argv)
{
    if (!cli_has_actions(group)) return cli_run(group->verbs[0], argc, argv);
    const cli_verb named = {.name = group->name};
    guess meant = {NULL, SIZE_MAX};
    if (argc < 1) action_missing(group, &named);
    if (is_help(argv[0])) {
        print_actions(group);
        return CLI_DONE;
    }
    for (size_t i = 0; group->verbs[i]; i++) {
        const char *action = cli_action_name(group->verbs[i]);
        if (strcmp(argv[0], action) == 0) return cli_run(group->verbs[i], argc - 1, argv + 1);
        consider(&meant, argv[0], action);
    }
    if (meant.name) cli_misuse(&named, "there is no action %s; did you mean %s?", argv[0], meant.name);
    cli_misuse(&named, "there is no action %s", argv[0]);
}

int main(int argc, char **argv)
{
    guess meant = {NULL, SIZE_MAX};
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is an error of the write, with a message */
    cli_interrupt_start();
    cli_crew_expect(argc, argv);
    if (argc < 2) cli_misuse(NULL, "a verb is needed");
    turn_help(argc, argv);
    if (is_help(argv[1])) {
        print_help();
        return cli_finish(CLI_DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("safer %s\n", safer_version());
        return cli_finish(CLI_DONE);
    }
    for (size_t i = 0; i < cli_group_count; i++) {
        const cli_group *group = &cli_groups[i];
        if (strcmp(argv[1], group->name) == 0) return cli_finish(run_group(group, argc - 2, argv + 2));
        consider(&meant, argv[1], group->name);
    }
    if (meant.name) cli_misuse(NULL, "there is no verb %s; did you mean %s?", argv[1], meant.name);
    cli_misuse(NULL, "there is no verb %s", argv[1]);
}
