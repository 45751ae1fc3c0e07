/* safer sample */
#include "cli.h"

#include <string.h>

typedef struct printing {
    const char *id;
    json_t *rows; /* with --json */
} printing;

static int print_draw(void *context, uint64_t index, const char *text, size_t length)
{
    printing *p = context;
    if (p->rows)
        return json_array_append_new(p->rows, json_pack("{s:s, s:I, s:s%}", "id", p->id, "sample", (json_int_t)index,
                                                        "text", text, length));
    printf("%s%s\t%llu%s\t", cli_dim(), p->id, (unsigned long long)index, cli_plain());
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\n')
            fputs("\\n", stdout);
        else if (text[i] == '\t')
            fputs("\\t", stdout);
        else if (text[i] == '\r')
            fputs("\\r", stdout);
        else if (text[i] == '\\')
            fputs("\\\\", stdout);
        else
            putchar(text[i]);
    }
    putchar('\n');
    return ferror(stdout);
}

int cli_sample(int argc, char **argv)
{
    static const cli_verb verb = {
        "sample",
        "--lexicon L [--data D | TEXT...]",
        "Prints what the smoothed classifier asks its model about: draws of each text, in order,\n"
        "the very ones that certify uses with the same seed.",
        "  safer sample --lexicon imdb.lex \"A fine film.\"\n"
        "  safer sample --lexicon imdb.lex --data test.tsv --limit 3 --count 100 --stage selection\n",
        0,
        SIZE_MAX};
    const char *lexicon_path = NULL, *stage = "certification";
    uint64_t seed = 1, first = 0, count = 10;
    cli_data d = cli_data_default();
    const cli_option options[] = {
        {"lexicon", CLI_STRING, &lexicon_path, "FILE", "synonyms and kernel, from safer lexicon"},
        CLI_DATA_OPTIONS(d),
        {"count", CLI_UINT, &count, "N", "draws of each text (default 10)"},
        {"first", CLI_UINT, &first, "N", "the number of the first one (default 0)"},
        {"stage", CLI_STRING, &stage, "NAME",
         "certification, or selection: those that choose the prediction (default certification)"},
        {"seed", CLI_UINT, &seed, "N", "of the random draws (default 1)"},
        {0},
    };
    size_t texts = cli_parse(argc, argv, &verb, options);
    if (!lexicon_path) cli_misuse(&verb, "--lexicon FILE is needed");
    if (!texts == !d.path) cli_misuse(&verb, "texts are needed: as arguments, or --data DATA");
    if (strcmp(stage, "certification") != 0 && strcmp(stage, "selection") != 0)
        cli_misuse(&verb, "--stage %s: certification or selection", stage);
    safer_stage which = strcmp(stage, "selection") == 0 ? SAFER_STAGE_SELECTION : SAFER_STAGE_CERTIFICATION;
    safer_error error = {0};
    safer_lexicon *lexicon = cli_lexicon_open(lexicon_path);
    safer_data *data = d.path ? cli_data_load(&d, seed) : NULL;
    printing p = {.rows = cli_settings()->json ? json_array() : NULL};
    int code = CLI_DONE;
    for (size_t i = 0; code == CLI_DONE && i < (data ? safer_data_size(data) : texts); i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i + 1);
        safer_row row = data ? safer_data_row(data, i)
                             : (safer_row){.id = number, .text = argv[i], .text_length = strlen(argv[i])};
        p.id = row.id;
        if (safer_draw(lexicon, row.text, row.text_length, which, seed, first, count, print_draw, &p, &error) !=
            SAFER_OK)
            code = error.status == SAFER_CALLBACK ? CLI_SYSTEM : cli_fail(&error);
    }
    if (p.rows && code == CLI_DONE)
        cli_print_json(p.rows);
    else
        json_decref(p.rows);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    return code;
}
