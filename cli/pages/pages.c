/* safer-pages: writes, while safer is built, its manual page and its completions for shells.
 *
 *     safer-pages man TEMPLATE OUTPUT
 *     safer-pages bash|zsh|fish OUTPUT
 */
#define _GNU_SOURCE
#include "pages/pages.h"

#include <stdlib.h>
#include <string.h>

static void print_bash(FILE *out, const char *unused) { (void)unused, pages_bash(out); }
static void print_zsh(FILE *out, const char *unused) { (void)unused, pages_zsh(out); }
static void print_fish(FILE *out, const char *unused) { (void)unused, pages_fish(out); }

static void print_manual(FILE *out, const char *template)
{
    safer_error error = {0};
    char *text = NULL;
    size_t capacity = 0;
    FILE *file = fopen(template, "re");
    if (!file || getdelim(&text, &capacity, '\0', file) < 0) {
        cli_complain("cannot read %s", template);
        exit(CLI_SYSTEM);
    }
    fclose(file);
    if (pages_manual(out, text, &error) != SAFER_OK) {
        cli_complain("%s: %s", template, error.message);
        exit(CLI_INPUT);
    }
    free(text);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int words;
        void (*print)(FILE *out, const char *template);
    } pages[] = {{"man", 4, print_manual}, {"bash", 3, print_bash}, {"zsh", 3, print_zsh}, {"fish", 3, print_fish}};
    safer_error error = {0};
    for (size_t i = 0; argc > 1 && i < sizeof pages / sizeof *pages; i++) {
        if (strcmp(argv[1], pages[i].name) != 0 || argc != pages[i].words) continue;
        char *text = NULL;
        size_t length = 0;
        FILE *out = open_memstream(&text, &length);
        if (!out) abort();
        pages[i].print(out, argv[2]);
        if (fclose(out) != 0) abort();
        const safer_status status = cli_write_file(argv[argc - 1], text, length, &error);
        free(text);
        return status == SAFER_OK ? CLI_DONE : cli_fail(&error);
    }
    cli_complain("usage: safer-pages man TEMPLATE OUTPUT | bash OUTPUT | zsh OUTPUT | fish OUTPUT");
    return CLI_USAGE;
}
