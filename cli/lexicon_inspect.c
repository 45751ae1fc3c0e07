/* safer lexicon show | stats | export: words of a lexicon, its sizes and what it means for a data set, its tables.
 * What the figures mean stands in docs/lexicon.md. */
#include "data_options.h"
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *word_of(const safer_lexicon *lexicon, uint32_t id) { return safer_lexicon_word(lexicon, id).word; }

/* -------------------------------------------------------------------- show */

/* Synonyms most similar first. */
static const float *sort_similarity;

static int by_similarity(const void *left, const void *right)
{
    size_t p = *(const size_t *)left, q = *(const size_t *)right;
    if (sort_similarity && sort_similarity[p] != sort_similarity[q])
        return sort_similarity[p] > sort_similarity[q] ? -1 : 1;
    return p < q ? -1 : p > q;
}

static size_t *synonym_order(const safer_word *w)
{
    size_t *order = malloc((w->synonym_count + 1) * sizeof *order);
    if (!order) cli_no_memory();
    for (size_t i = 0; i < w->synonym_count; i++) order[i] = i;
    sort_similarity = w->similarity;
    qsort(order, w->synonym_count, sizeof *order, by_similarity);
    return order;
}

static void show_text(const safer_lexicon *lexicon, uint32_t id, size_t limit)
{
    safer_word w = safer_lexicon_word(lexicon, id);
    size_t *order = synonym_order(&w);
    int uniform = 1;
    for (size_t i = 1; i < w.support_count; i++) uniform &= w.weights[i] == w.weights[0];
    printf("%s%s%s  seen %s\n", cli_bold(), w.word, cli_plain(), cli_some(w.count, "time", "times"));
    printf("  synonyms  %zu", w.synonym_count);
    for (size_t i = 0; i < w.synonym_count && i < limit; i++) {
        printf("%s%s", i ? ", " : ": ", word_of(lexicon, w.synonyms[order[i]]));
        if (w.similarity) printf(" %s%.3f%s", cli_dim(), (double)w.similarity[order[i]], cli_plain());
    }
    printf("%s\n  draws     from %zu word%s", w.synonym_count > limit ? ", ..." : "", w.support_count,
           w.support_count == 1 ? "" : "s");
    if (uniform && w.support_count > 1) printf(", 1/%zu each", w.support_count);
    for (size_t i = 0; i < w.support_count && i < limit; i++) {
        printf("%s%s", i ? ", " : ": ", word_of(lexicon, w.support[i]));
        if (!uniform) printf(" %lu/%lu", (unsigned long)w.weights[i], (unsigned long)w.total);
    }
    printf("%s\n  overlap   s = %s", w.support_count > limit ? ", ..." : "", cli_cut(w.overlap, 6));
    if (w.worst != SAFER_NO_WORD) printf(", with the worst synonym: %s", word_of(lexicon, w.worst));
    printf("\n");
    free(order);
}

static json_t *show_json(const safer_lexicon *lexicon, uint32_t id)
{
    safer_word w = safer_lexicon_word(lexicon, id);
    size_t *order = synonym_order(&w);
    json_t *synonyms = json_array(), *support = json_array();
    for (size_t i = 0; i < w.synonym_count; i++) {
        uint32_t other = w.synonyms[order[i]];
        json_t *entry = json_pack("{s:s, s:f}", "word", word_of(lexicon, other), "overlap",
                                  safer_lexicon_overlap(lexicon, id, other));
        if (w.similarity) cli_set(entry, "similarity", json_real((double)w.similarity[order[i]]));
        cli_append(synonyms, entry);
    }
    for (size_t i = 0; i < w.support_count; i++)
        cli_append(support, json_pack("{s:s, s:I, s:f}", "word", word_of(lexicon, w.support[i]), "weight",
                                      (json_int_t)w.weights[i], "probability", (double)w.weights[i] / (double)w.total));
    free(order);
    return json_pack("{s:s, s:I, s:I, s:o, s:I, s:o, s:f, s:s?}", "word", w.word, "count", (json_int_t)w.count,
                     "component", (json_int_t)w.component, "synonyms", synonyms, "total", (json_int_t)w.total, "draws",
                     support, "overlap", w.overlap, "worst",
                     w.worst == SAFER_NO_WORD ? NULL : word_of(lexicon, w.worst));
}

typedef struct show_request {
    int all;
} show_request;

static void list_show(cli_options *options, void *into)
{
    show_request *r = into;
    cli_add_flag(options, "all", &r->all, "list every word, not the first 20");
}

static int run_show(void *from, char **arguments, size_t count)
{
    const show_request *r = from;
    int code = CLI_DONE;
    safer_lexicon *lexicon = cli_lexicon_open(arguments[0]);
    json_t *list = json_array();
    for (size_t i = 1; i < count; i++) {
        errno = 0;
        uint32_t id = safer_lexicon_find(lexicon, arguments[i], strlen(arguments[i]));
        if (id == SAFER_NO_WORD && errno == ENOMEM) cli_no_memory();
        if (id == SAFER_NO_WORD) {
            cli_complain("%s is not in %s", arguments[i], arguments[0]);
            code = CLI_INPUT;
        } else if (cli_settings()->json) {
            cli_append(list, show_json(lexicon, id));
        } else {
            show_text(lexicon, id, r->all ? SIZE_MAX : 20);
        }
    }
    if (cli_settings()->json)
        cli_print_json(list);
    else
        json_decref(list);
    safer_lexicon_free(lexicon);
    return code;
}

const cli_verb cli_lexicon_show = {
    .name = "lexicon show",
    .brief = "what the lexicon says of some words",
    .usage = "LEXICON WORD...",
    .summary = "Shows a word's synonyms with their similarity, the set its substitutes are drawn from,\n"
               "and its overlap s: the share of that distribution that survives the worst synonym.",
    .examples = "  safer lexicon show imdb.lex good terrible\n"
                "  safer lexicon show imdb.lex good --all --json\n",
    .min_arguments = 2,
    .max_arguments = SIZE_MAX,
    .request_size = sizeof(show_request),
    .list = list_show,
    .run = run_show,
};

/* ------------------------------------------------------------------- stats */

static json_t *stats_json(const safer_lexicon *lexicon, const safer_data *data, const safer_survey *survey)
{
    const safer_lexicon_info found = cli_lexicon_info(lexicon), *info = &found;
    static const char *const names[7] = {"min", "p5", "p25", "p50", "p75", "p95", "max"};
    char caution[300];
    json_t *sizes = json_array(), *products = json_array(), *provenance = cli_json_read(info->provenance);
    for (size_t i = 0; i < 10 && info->largest_components[i]; i++)
        cli_append(sizes, json_integer((json_int_t)info->largest_components[i]));
#define N(x) (json_int_t)(x)
    json_t *root = json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:I, s:o, s:s, s:I, s:I, s:I, s:I, s:o}", "name",
                             safer_lexicon_name(lexicon), "sha256", safer_lexicon_sha256(lexicon), "words",
                             N(info->words), "pairs", N(info->pairs), "words_with_synonyms",
                             N(info->words_with_synonyms), "mean_synonyms", info->mean_synonyms, "components",
                             N(info->components), "largest_components", sizes, "kernel", info->kernel, "kernel_rows",
                             N(info->kernel_rows), "kernel_entries", N(info->kernel_entries), "largest_support",
                             N(info->largest_support), "bytes", N(info->bytes), "provenance",
                             provenance ? provenance : json_null());
    if (!data) {
        json_decref(products);
        return root;
    }
    for (int r = 0; r < SAFER_SURVEY_RADII; r++) {
        json_t *entry = json_object();
        cli_set(entry, "radius",
                survey->products[r].radius == SIZE_MAX ? json_string("all")
                                                       : json_integer(N(survey->products[r].radius)));
        for (int i = 0; i < 7; i++) cli_set(entry, names[i], json_real(survey->products[r].quantiles[i]));
        cli_set(entry, "share_above_half", json_real(survey->products[r].above_half));
        cli_append(products, entry);
    }
    safer_survey_caution(survey, lexicon, caution, sizeof caution);
    cli_set(root, "data",
            json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:f, s:o}", "name", safer_data_name(data), "sha256",
                      safer_data_sha256(data), "caution", *caution ? json_string(caution) : json_null(), "texts",
                      N(survey->texts), "without_synonyms", N(survey->without_synonyms), "tokens", N(survey->tokens),
                      "known_tokens", N(survey->known_tokens), "tokens_with_synonyms", N(survey->tokens_with_synonyms),
                      "share_with_synonyms",
                      survey->tokens ? (double)survey->tokens_with_synonyms / (double)survey->tokens : 0.0, "products",
                      products));
#undef N
    return root;
}

static void print_stats(const safer_lexicon *lexicon, const safer_data *data, const safer_survey *survey)
{
    const safer_lexicon_info found = cli_lexicon_info(lexicon), *info = &found;
    char caution[300];
    if (survey && safer_survey_caution(survey, lexicon, caution, sizeof caution))
        printf("%scaution: %s%s\n\n", cli_red(), caution, cli_plain());
    printf("words        %s\n", cli_count(info->words));
    printf("pairs        %s\n", cli_count(info->pairs));
    printf("synonyms     %s some, %s on average\n", cli_some(info->words_with_synonyms, "word has", "words have"),
           cli_mean(info->mean_synonyms, 2));
    printf("components   %s; the largest:", cli_count(info->components));
    for (size_t i = 0; i < 10 && info->largest_components[i]; i++) printf(" %zu", info->largest_components[i]);
    printf("\nkernel       %s: %s over at most %s\n", info->kernel,
           cli_some(info->kernel_rows, "distribution", "distributions"),
           cli_some(info->largest_support, "word", "words"));
    printf("file         %s\n", cli_some(info->bytes, "byte", "bytes"));
    printf("sha256       %s\n", safer_lexicon_sha256(lexicon));
    if (!data) return;
    printf("\ntexts        %s with %s: %s%% in the lexicon, %s%% with synonyms\n", cli_count(survey->texts),
           cli_some(survey->tokens, "word", "words"), cli_percent(survey->known_tokens, survey->tokens),
           cli_percent(survey->tokens_with_synonyms, survey->tokens));
    printf("sha256       %s, of the rows\n", safer_data_sha256(data));
    printf("\n%sproduct of the R smallest overlaps of a text%s\n", cli_bold(), cli_plain());
    printf("  %-5s %8s %8s %8s %8s %8s %8s %8s   %s\n", "R", "min", "5%", "25%", "median", "75%", "95%", "max",
           "above 1/2");
    for (int r = 0; r < SAFER_SURVEY_RADII; r++) {
        char radius[24] = "all";
        if (survey->products[r].radius != SIZE_MAX) snprintf(radius, sizeof radius, "%zu", survey->products[r].radius);
        printf("  %-5s", radius);
        for (int i = 0; i < 7; i++) printf(" %8s", cli_cut(survey->products[r].quantiles[i], 4));
        printf("   %5s%%\n", cli_share(survey->products[r].above_half, 1));
    }
}

typedef struct stats_request {
    uint64_t seed;
    cli_data data;
} stats_request;

static void list_stats(cli_options *options, void *into)
{
    stats_request *r = into;
    *r = (stats_request){.seed = 1, .data = cli_data_default()};
    cli_data_options(options, &r->data);
    cli_add_uint(options, "seed", &r->seed, "N", "for --sample random:N (default {default})");
}

static int run_stats(void *from, char **arguments, size_t count)
{
    stats_request *r = from;
    const safer_data_options *o = &r->data.options;
    (void)count;
    if (!r->data.path && (r->data.format || o->sample || r->data.limit || o->repair || o->strip_breaks))
        cli_misuse(&cli_lexicon_stats,
                   "--format, --sample, --limit, --repair and --strip-br choose or change texts: --data is needed");
    safer_lexicon *lexicon = cli_lexicon_open(arguments[0]);
    safer_error error = {0};
    safer_survey survey;
    safer_data *data = r->data.path ? cli_data_load(&r->data, r->seed) : NULL;
    safer_status status = SAFER_OK;
    if (data) status = safer_lexicon_survey(&survey, lexicon, data, cli_settings()->threads, cli_progress(), &error);
    int code = CLI_DONE;
    if (status != SAFER_OK) {
        code = cli_fail(&error);
    } else {
        cli_progress_clear();
        if (cli_settings()->json)
            cli_print_json(stats_json(lexicon, data, &survey));
        else
            print_stats(lexicon, data, &survey);
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    return code;
}

const cli_verb cli_lexicon_stats = {
    .name = "lexicon stats",
    .brief = "sizes, components, and what it means for a data set",
    .usage = "LEXICON [--data DATA]",
    .summary = "Sizes of a lexicon and its components; with data, how many words have synonyms and\n"
               "how much of the smoothing survives: the product of the smallest overlaps of a text.\n"
               "Only texts with a product above 1/2 can be certified against that many changes.",
    .examples = "  safer lexicon stats imdb.lex --data imdb_test.tsv.xz\n"
                "  safer lexicon stats imdb.lex --data test.csv --sample every:20 --json\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .request_size = sizeof(stats_request),
    .list = list_stats,
    .run = run_stats,
};

/* ------------------------------------------------------------------- check */

static void list_check(cli_options *options, void *into)
{
    (void)options;
    (void)into;
}

/* Opening a lexicon does all of it: what is left is to say so. */
static int run_check(void *from, char **arguments, size_t count)
{
    (void)from;
    (void)count;
    safer_lexicon *lexicon = cli_lexicon_open(arguments[0]);
    const safer_lexicon_info info = cli_lexicon_info(lexicon);
    if (cli_settings()->json) {
        cli_print_json(json_pack("{s:s, s:s, s:b, s:I, s:b, s:I, s:I, s:s, s:s}", "lexicon", arguments[0], "sha256",
                                 safer_lexicon_sha256(lexicon), "holds", 1, "words", (json_int_t)info.words, "directed",
                                 info.directed, "pairs", (json_int_t)info.pairs, "kernel_rows",
                                 (json_int_t)info.kernel_rows, "kernel", info.kernel, "provenance", info.provenance));
    } else {
        printf("file         whole: nothing before, between or behind its sections\n");
        printf("sha256       %s\n", safer_lexicon_sha256(lexicon));
        printf("words        %s, each found under its own number\n", cli_count(info.words));
        printf("synonyms     %s%s; the words they exchange read back in every case\n",
               cli_some(info.pairs, "pair", "pairs"), info.directed ? ", directed" : "");
        printf("kernel       ");
        cli_put(info.kernel);
        printf(": %s their totals\n",
               cli_some(info.kernel_rows, "distribution, whose weights sum to", "distributions, whose weights sum to"));
        printf("overlaps     %s, computed again: the same\n", cli_count(info.words));
        if (safer_lexicon_fold(lexicon))
            printf("fold         %s: idempotent, and the words that are exchanged are as it leaves them\n",
                   safer_fold_steps(safer_lexicon_fold(lexicon)));
        printf("not checked: which words are nearest or most frequent, and provenance; whether synonyms are right\n");
    }
    safer_lexicon_free(lexicon);
    return CLI_DONE;
}

const cli_verb cli_lexicon_check = {
    .name = "lexicon check",
    .brief = "compute again what certificates rest on",
    .usage = "LEXICON",
    .summary = "Checks all that a certificate rests on, as every verb does that opens a lexicon: the file has\n"
               "no bytes to spare, every word is found, words that are exchanged or drawn read back, weights\n"
               "sum to their totals, every overlap is the one that the kernel gives, and a kernel called topk:K,\n"
               "component or representative has rows of that kind. Exits 3, with the reason, when anything is\n"
               "wrong. The last line says what was not checked.",
    .examples = "  safer lexicon check imdb.lex\n"
                "  safer lexicon check imdb.lex --json\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .list = list_check,
    .run = run_check,
};

/* ------------------------------------------------------------------ export */

static int write_stdout(void *context, const char *bytes, size_t length)
{
    (void)context;
    return fwrite(bytes, 1, length, stdout) != length;
}

typedef struct export_request {
    const char *what;
} export_request;

static const char *tables(size_t number) { return safer_export_name((safer_export)number); }

static void list_export(cli_options *options, void *into)
{
    export_request *r = into;
    cli_add_choice(options, "what", &r->what, tables, "TABLE",
                   "synonyms: word<TAB>w1 w2 ...; kernel: word<TAB>total<TAB>z1:weight ...; overlap: word<TAB>s; "
                   "cuts: word<TAB>word<TAB>reason<TAB>similarity");
}

static int run_export(void *from, char **arguments, size_t count)
{
    const export_request *r = from;
    char names[128];
    safer_export table;
    safer_error error = {0};
    int code = CLI_DONE;
    (void)count;
    cli_choices(names, sizeof names, tables);
    if (!r->what) cli_misuse(&cli_lexicon_export, "--what %s is needed", names);
    if (safer_export_parse(&table, r->what, &error) != SAFER_OK) return cli_fail(&error);
    safer_lexicon *lexicon = cli_lexicon_open(arguments[0]);
    safer_status status = safer_lexicon_export(lexicon, table, cli_settings()->json, write_stdout, NULL, &error);
    if (status != SAFER_OK && !ferror(stdout)) code = cli_fail(&error); /* else cli_finish tells */
    safer_lexicon_free(lexicon);
    return code;
}

const cli_verb cli_lexicon_export = {
    .name = "lexicon export",
    .brief = "synonyms, kernel, overlaps or cuts as text or JSON",
    .usage = "LEXICON --what synonyms|kernel|overlap|cuts",
    .summary = "Prints a table with a line for every word: its synonyms, the distribution its\n"
               "substitutes are drawn from (whole-number weights), or its overlap s (cut, not rounded); or the\n"
               "pairs that were cut, to keep antonyms apart or components small, when the lexicon was made.",
    .examples = "  safer lexicon export imdb.lex --what synonyms > synonyms.tsv\n"
                "  safer lexicon export imdb.lex --what kernel --json > kernel.json\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .request_size = sizeof(export_request),
    .list = list_export,
    .run = run_export,
};
