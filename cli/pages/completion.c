/* Completions for shells: verbs, options, the names of choices, and files. */
#include "pages/pages.h"

#include <stdlib.h>
#include <string.h>

static int takes_file(const cli_option *o)
{
    return o->kind == CLI_PATH || o->kind == CLI_OUTPUT || o->kind == CLI_LIST;
}

/* Of a verb, with those that all have. */
static void *list_all(cli_options *options, const cli_verb *verb)
{
    void *request = cli_list_options(options, verb);
    cli_common_options(options);
    return request;
}

static const char *brief_of(const cli_group *g) { return cli_has_actions(g) ? g->brief : g->verbs[0]->brief; }

typedef void (*verb_printer)(FILE *out, const cli_verb *verb, const cli_options *options);

static void each_verb(FILE *out, verb_printer print)
{
    for (size_t i = 0; i < cli_group_count; i++)
        for (size_t k = 0; cli_groups[i].verbs[k]; k++) {
            cli_options options = {0};
            void *request = list_all(&options, cli_groups[i].verbs[k]);
            print(out, cli_groups[i].verbs[k], &options);
            free(request);
        }
}

static void print_choices(FILE *out, const cli_option *o)
{
    for (size_t i = 0; o->names(i); i++) fprintf(out, "%s%s", i ? " " : "", o->names(i));
}

/* Text for a quoted word of zsh or fish: the quote, and characters that are special there, with `before` in
 * front. */
static void print_quoted(FILE *out, const char *text, const char *special, const char *quote)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs(quote, out);
            continue;
        }
        if (strchr(special, *text)) fputc('\\', out);
        fputc(*text, out);
    }
}

/* ---------------------------------------------------------------------- bash */

/* "--a | --b)" of the options of a sort; nothing where there are none. */
static void print_case(FILE *out, const cli_options *options, int files, const char *what)
{
    int any = 0;
    for (size_t i = 0; i < options->count; i++) {
        const cli_option *o = &options->rows[i];
        if (!o->value || o->kind == CLI_CHOICE || takes_file(o) != files) continue;
        fprintf(out, "%s--%s", any++ ? " | " : "        ", o->name);
        if (strcmp(o->name, "output") == 0) fputs(" | -o", out);
    }
    if (any) fprintf(out, ") kind=%s ;;\n", what);
}

static void print_bash_verb(FILE *out, const cli_verb *verb, const cli_options *options)
{
    fprintf(out, "    '%s')\n        options='", verb->name);
    for (size_t i = 0, any = 0; i < options->count; i++)
        if (options->rows[i].name) fprintf(out, "%s--%s", any++ ? " " : "", options->rows[i].name);
    fputs("'\n        case $prev in\n", out);
    for (size_t i = 0; i < options->count; i++) {
        if (options->rows[i].kind != CLI_CHOICE) continue;
        fprintf(out, "        --%s) kind=choice choices='", options->rows[i].name);
        print_choices(out, &options->rows[i]);
        fputs("' ;;\n", out);
    }
    print_case(out, options, 1, "file");
    print_case(out, options, 0, "value");
    fputs("        esac ;;\n", out);
}

void pages_bash(FILE *out)
{
    fputs("# Completion of safer for bash, made from the program's tables of options.\n"
          "_safer()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]}\n"
          "    local kind='' options='' choices='' IFS=$' \\t\\n'\n"
          "    COMPREPLY=()\n"
          "    if [[ $cur == '=' ]]; then\n        cur=''\n"
          "    elif [[ $prev == '=' ]]; then\n        prev=${COMP_WORDS[COMP_CWORD - 2]}\n    fi\n"
          "    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W '",
          out);
    for (size_t i = 0; i < cli_group_count; i++) fprintf(out, "%s ", cli_groups[i].name);
    fputs("--help --version' -- \"$cur\"))\n        return\n    fi\n    case $verb in\n", out);
    for (size_t i = 0; i < cli_group_count; i++) {
        const cli_group *g = &cli_groups[i];
        if (!cli_has_actions(g)) continue;
        fprintf(out, "    %s)\n        if ((COMP_CWORD == 2)); then\n            COMPREPLY=($(compgen -W '", g->name);
        for (size_t k = 0; g->verbs[k]; k++) fprintf(out, "%s ", cli_action_name(g->verbs[k]));
        fputs("--help' -- \"$cur\"))\n            return\n        fi\n        verb+=\" ${COMP_WORDS[2]}\" ;;\n", out);
    }
    fputs("    esac\n    case $verb in\n", out);
    each_verb(out, print_bash_verb);
    fputs("    esac\n"
          "    if [[ $kind == choice ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$choices\" -- \"$cur\"))\n"
          "    elif [[ $kind == '' && $cur == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
          "    elif [[ $kind != value ]]; then\n"
          "        compopt -o filenames 2>/dev/null\n"
          "        IFS=$'\\n'\n"
          "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
          "    fi\n}\n"
          "complete -F _safer safer\n",
          out);
}

/* ----------------------------------------------------------------------- zsh */

static void print_zsh_verb(FILE *out, const cli_verb *verb, const cli_options *options)
{
    fprintf(out, "    '%s')\n        _arguments -S", verb->name);
    for (size_t i = 0; i < options->count; i++) {
        const cli_option *o = &options->rows[i];
        char help[1024];
        if (!o->name) continue;
        cli_option_help(help, sizeof help, o);
        fprintf(out, " \\\n            '%s--%s%s[", o->kind == CLI_LIST || o->kind == CLI_STRINGS ? "*" : "", o->name,
                o->value ? "=" : "");
        print_quoted(out, help, "\\[]:", "'\\''");
        fputc(']', out);
        if (o->value) {
            fputc(':', out);
            print_quoted(out, o->value, "\\[]:", "'\\''");
            fputc(':', out);
        }
        if (o->kind == CLI_CHOICE) {
            fputc('(', out);
            print_choices(out, o);
            fputc(')', out);
        } else if (takes_file(o)) {
            fputs("_files", out);
        } else if (o->value) {
            fputc(' ', out);
        }
        fputc('\'', out);
        if (strcmp(o->name, "output") == 0) fputs(" '-o+[the same as --output]:file:_files'", out);
    }
    fputs(" '*:file:_files' ;;\n", out);
}

/* "    name:brief" as a word of _describe. */
static void print_described(FILE *out, const char *name, const char *brief)
{
    fprintf(out, "            '%s:", name);
    print_quoted(out, brief, "\\:", "'\\''");
    fputs("'\n", out);
}

void pages_zsh(FILE *out)
{
    fputs("#compdef safer\n# Completion of safer for zsh, made from the program's tables of options.\n"
          "_safer() {\n"
          "    local verb=$words[2]\n    local -a names\n"
          "    if (( CURRENT == 2 )); then\n        names=(\n",
          out);
    for (size_t i = 0; i < cli_group_count; i++) print_described(out, cli_groups[i].name, brief_of(&cli_groups[i]));
    fputs("        )\n        _describe verb names\n        return\n    fi\n    case $verb in\n", out);
    for (size_t i = 0; i < cli_group_count; i++) {
        const cli_group *g = &cli_groups[i];
        if (!cli_has_actions(g)) continue;
        fprintf(out, "    %s)\n        if (( CURRENT == 3 )); then\n            names=(\n", g->name);
        for (size_t k = 0; g->verbs[k]; k++) print_described(out, cli_action_name(g->verbs[k]), g->verbs[k]->brief);
        fputs("            )\n            _describe action names\n            return\n        fi\n"
              "        verb=\"$verb $words[3]\"\n        shift words\n        (( CURRENT-- )) ;;\n",
              out);
    }
    fputs("    esac\n    shift words\n    (( CURRENT-- ))\n    case $verb in\n", out);
    each_verb(out, print_zsh_verb);
    fputs(
        "    esac\n}\nif [[ $funcstack[1] == _safer ]]; then\n    _safer \"$@\"\nelse\n    compdef _safer safer\nfi\n",
        out);
}

/* ---------------------------------------------------------------------- fish */

static void print_fish_text(FILE *out, const char *text)
{
    fputs(" -d '", out);
    print_quoted(out, text, "\\", "\\'");
    fputs("'\n", out);
}

static void print_fish_verb(FILE *out, const cli_verb *verb, const cli_options *options)
{
    for (size_t i = 0; i < options->count; i++) {
        const cli_option *o = &options->rows[i];
        char help[1024];
        if (!o->name) continue;
        cli_option_help(help, sizeof help, o);
        fprintf(out, "complete -c safer -n '__safer_is %s' -l %s", verb->name, o->name);
        if (strcmp(o->name, "output") == 0) fputs(" -s o", out);
        if (o->kind == CLI_CHOICE) {
            fputs(" -x -a '", out);
            print_choices(out, o);
            fputc('\'', out);
        } else if (o->value) {
            fputs(takes_file(o) ? " -r -F" : " -x", out);
        }
        print_fish_text(out, help);
    }
}

void pages_fish(FILE *out)
{
    fputs("# Completion of safer for fish, made from the program's tables of options.\n\n"
          "# Whether the command line begins with these words.\n"
          "function __safer_is\n"
          "    set -l words (commandline -opc)\n"
          "    set words[1] safer\n"
          "    string match -q -- \"safer $argv *\" \"$words \"\n"
          "end\n\n"
          "# Whether so many words are there.\n"
          "function __safer_has\n"
          "    test (count (commandline -opc)) -eq $argv[1]\n"
          "end\n\n"
          "complete -c safer -n '__safer_has 1' -f\n"
          "complete -c safer -n '__safer_has 1' -l help -d 'this text'\n"
          "complete -c safer -n '__safer_has 1' -l version -d 'the version'\n",
          out);
    for (size_t i = 0; i < cli_group_count; i++) {
        const cli_group *g = &cli_groups[i];
        fprintf(out, "complete -c safer -n '__safer_has 1' -a %s", g->name);
        print_fish_text(out, brief_of(g));
        for (size_t k = 0; cli_has_actions(g) && g->verbs[k]; k++) {
            fprintf(out, "complete -c safer -n '__safer_has 2; and __safer_is %s' -f -a %s", g->name,
                    cli_action_name(g->verbs[k]));
            print_fish_text(out, g->verbs[k]->brief);
        }
    }
    each_verb(out, print_fish_verb);
}
