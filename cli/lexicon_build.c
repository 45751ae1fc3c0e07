/* safer lexicon build | import: the options become a lexicon, with --kernel auto the kernel is chosen on the data, and
 * the report says what was read, set aside, cut and tried. docs/lexicon.md has the meaning of every step. */
#define _GNU_SOURCE
#include "data_options.h"
#include "lexicon_options.h"
#include "trials.h"
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------ the report */

static json_t *report_json(const safer_lexicon *lexicon, const safer_lexicon_report *r, const safer_choice *choice,
                           const char *output)
{
    safer_lexicon_info info = cli_lexicon_info(lexicon);
    json_t *stages = json_array(), *ladder = json_array(), *sizes = json_array();
    for (size_t i = 0; i < r->stage_count; i++)
        cli_append(stages, json_pack("{s:s, s:f}", "stage", r->stages[i].name, "seconds", r->stages[i].seconds));
    for (size_t i = 0; i < r->ladder_count; i++)
        cli_append(ladder,
                   json_pack("{s:I, s:f}", "k", (json_int_t)r->ladder[i].k, "share_above_half", r->ladder[i].share));
    for (size_t i = 0; i < 10 && info.largest_components[i]; i++)
        cli_append(sizes, json_integer((json_int_t)info.largest_components[i]));
#define N(x) (json_int_t)(x)
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:I, s:o, s:{s:I,s:I,s:I,s:I,s:I}, s:I, s:I, s:I, s:{s:I,s:I,s:I},"
        " s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o?}",
        "output", output, "kernel", info.kernel, "sha256", safer_lexicon_sha256(lexicon), "words", N(info.words),
        "pairs", N(info.pairs), "words_with_synonyms", N(info.words_with_synonyms), "mean_synonyms", info.mean_synonyms,
        "components", N(info.components), "largest_components", sizes, "vectors", "rows", N(r->vector_rows), "dim",
        N(r->vector_dim), "duplicates", N(r->vector_duplicates), "unusable", N(r->vector_unusable), "zeros",
        N(r->vector_zeros), "listed", N(r->listed), "texts", N(r->texts), "tokens", N(r->tokens), "counterfit",
        "attract", N(r->attract), "repel", N(r->repel), "preserved", N(r->preserved), "symmetrised", N(r->symmetrised),
        "table_phrases", N(r->table_phrases), "refused_words", N(r->refused_words), "refused_pairs",
        N(r->refused_pairs), "excluded_pairs", N(r->excluded_pairs), "protected_words", N(r->protected_words),
        "protected_pairs", N(r->protected_pairs), "unknown_edits", N(r->unknown_edits), "stages", stages, "ladder",
        ladder, "suggested_kernel", r->suggested_k ? json_sprintf("topk:%u", (unsigned)r->suggested_k) : NULL);
#undef N
    const safer_fold *fold = safer_lexicon_fold(lexicon);
    if (root && fold)
        cli_set(root, "fold",
                json_pack("{s:s, s:s, s:I, s:I}", "steps", safer_fold_steps(fold), "unicode", safer_fold_unicode(fold),
                          "merged_spellings", (json_int_t)r->merged_spellings, "lost_words",
                          (json_int_t)r->lost_words));
    if (root)
        cli_set(root, "cuts",
                json_pack("{s:I, s:I, s:I, s:I}", "antonyms", (json_int_t)r->antonyms, "parted_antonyms",
                          (json_int_t)r->parted_antonyms, "for_antonyms", (json_int_t)r->cut_for_antonyms, "for_size",
                          (json_int_t)r->cut_for_size));
    if (root)
        cli_set(root, "filters",
                json_pack("{s:I, s:I, s:I, s:I}", "frequent_words", (json_int_t)r->frequent_words, "for_frequency",
                          (json_int_t)r->filtered_for_frequency, "for_speech", (json_int_t)r->filtered_for_speech,
                          "for_rank", (json_int_t)r->filtered_for_rank));
    const int chosen = choice->untried || choice->trial_count; /* else another kernel was asked for */
    if (root) cli_set(root, "kernel_choice", chosen ? cli_trials_json(choice, "kernel") : json_null());
    if (root && r->simlex_pairs)
        cli_set(root, "simlex",
                json_pack("{s:I, s:f, s:f, s:f}", "pairs", (json_int_t)r->simlex_pairs, "before", r->simlex_before,
                          "fitted", r->simlex_fitted, "after", r->simlex_after));
    return root;
}

/* What was read and is not there, or has no synonyms. */
static void print_set_aside(const safer_lexicon_report *r, const char *dropped)
{
    if (r->table_phrases)
        printf("left out    %s not one word: a slot of a text is one word, and so are its synonyms\n",
               cli_some(r->table_phrases, "entry that is", "entries that are"));
    if (r->refused_words)
        printf("refused     %s not survive a change of case, with %s\n",
               cli_some(r->refused_words, "word that does", "words that do"),
               cli_some(r->refused_pairs, "pair", "pairs"));
    if (r->excluded_pairs) printf("excluded    %s\n", cli_some(r->excluded_pairs, "pair", "pairs"));
    if (r->unknown_edits)
        printf("unknown     %s words that are not here\n",
               cli_some(r->unknown_edits, "line of --exclude and --protect names",
                        "lines of --exclude and --protect name"));
    if (r->protected_words)
        printf("protected   %s, without %s\n", cli_some(r->protected_words, "word", "words"),
               cli_some(r->protected_pairs, "pair", "pairs"));
    if (r->filtered_for_frequency)
        printf("filtered    %s, with %s\n",
               cli_some(r->frequent_words, "word that is too frequent", "words that are too frequent"),
               cli_some(r->filtered_for_frequency, "pair", "pairs"));
    if (r->filtered_for_speech)
        printf("filtered    %s of no common part of speech\n", cli_some(r->filtered_for_speech, "pair", "pairs"));
    if (r->filtered_for_rank)
        printf("filtered    %s not among the nearest of each other\n",
               cli_some(r->filtered_for_rank, "pair of words that are", "pairs of words that are"));
    if (r->cut_for_antonyms)
        printf("cut         %s, so that %s no component\n", cli_some(r->cut_for_antonyms, "pair", "pairs"),
               cli_some(r->parted_antonyms, "pair of antonyms shares", "pairs of antonyms share"));
    if (r->cut_for_size)
        printf("cut         %s, so that no component is larger\n", cli_some(r->cut_for_size, "pair", "pairs"));
    if (dropped) printf("dropped     named in %s, with the reasons\n", dropped);
}

static void print_choice(const safer_choice *c)
{
    if (c->untried) printf("kernel      representative: %s, so no other was tried\n", c->untried);
    if (!c->trial_count) return;
    printf("\n");
    cli_print_trials(c, "kernels", "a fifth at a time, with n-grams that learned from the others");
}

static void print_report(const safer_lexicon *lexicon, const safer_lexicon_report *r, const safer_choice *choice,
                         const char *output, const char *dropped)
{
    safer_lexicon_info info = cli_lexicon_info(lexicon);
    double seconds = 0;
    if (r->vector_rows)
        printf("vectors     %s of %s; %s listed%s", cli_some(r->vector_rows, "row", "rows"),
               cli_some(r->vector_dim, "number", "numbers"), cli_count(r->listed),
               r->vector_duplicates + r->vector_unusable + r->vector_zeros ? "" : "\n");
    if (r->vector_duplicates + r->vector_unusable + r->vector_zeros)
        printf("; set aside: %s, %s or not UTF-8, %s\n", cli_some(r->vector_duplicates, "duplicate", "duplicates"),
               cli_some(r->vector_unusable, "phrase", "phrases"),
               cli_some(r->vector_zeros, "zero vector", "zero vectors"));
    if (r->attract + r->repel)
        printf("fitted      pairs: %s of synonyms, %s of antonyms, %s preserved\n", cli_count(r->attract),
               cli_count(r->repel), cli_count(r->preserved));
    if (r->simlex_pairs)
        printf("SimLex-999  rank correlation %.3f as read, %.3f counter-fitted, %.3f in the end (%s)\n",
               r->simlex_before, r->simlex_fitted, r->simlex_after, cli_some(r->simlex_pairs, "pair", "pairs"));
    if (r->texts) printf("texts       %s with %s\n", cli_count(r->texts), cli_some(r->tokens, "word", "words"));
    printf("words       %s, of which %s synonyms (%s on average)\n", cli_count(info.words),
           cli_some(info.words_with_synonyms, "has", "have"), cli_mean(info.mean_synonyms, 1));
    printf("pairs       %s", cli_count(r->pairs));
    if (r->symmetrised)
        printf("; %s both ways",
               cli_some(r->symmetrised, "was listed one way only and counts", "were listed one way only and count"));
    printf("\n");
    print_set_aside(r, dropped);
    const safer_fold *fold = safer_lexicon_fold(lexicon);
    if (fold)
        printf("folded      %s (Unicode %s): %s merged with words of the lexicon, %s lost\n", safer_fold_steps(fold),
               safer_fold_unicode(fold), cli_some(r->merged_spellings, "spelling", "spellings"),
               cli_some(r->lost_words, "word", "words"));
    printf("components  %s; the largest:", cli_count(info.components));
    for (size_t i = 0; i < 10 && info.largest_components[i]; i++) printf(" %zu", info.largest_components[i]);
    printf("\n");
    if (r->ladder_count) {
        printf("\n%stexts whose product of overlaps exceeds 1/2, for topk:K%s\n", cli_bold(), cli_plain());
        for (size_t i = 0; i < r->ladder_count; i++) {
            printf("  K %-6u %6s%%%s\n", (unsigned)r->ladder[i].k, cli_share(r->ladder[i].share, 1),
                   r->ladder[i].k == r->suggested_k ? "   smallest that reaches 95%" : "");
        }
        if (!r->suggested_k) printf("  no K of this ladder reaches 95%%\n");
    }
    print_choice(choice);
    printf("\n");
    for (size_t i = 0; i < r->stage_count; i++) {
        printf("%s%-20s %7.2f s%s\n", cli_dim(), r->stages[i].name, r->stages[i].seconds, cli_plain());
        seconds += r->stages[i].seconds;
    }
    double tried = 0;
    for (size_t i = 0; i < choice->trial_count; i++) tried += choice->trials[i].seconds;
    if (choice->trial_count) printf("%s%-20s %7.2f s%s\n", cli_dim(), "kernels tried", tried, cli_plain());
    seconds += tried;
    printf("%s%-20s %7.2f s%s\n\nwrote %s (%s, kernel %s)\n", cli_dim(), "all", seconds, cli_plain(), output,
           cli_some(info.bytes, "byte", "bytes"), info.kernel);
}

/* ---------------------------------------------------------------- the verbs */

typedef struct request {
    const char *output;
    cli_lexicon_flags flags;
} request;

/* An output that cannot be written is better known before the work than after. */
static int check_output(const char *path)
{
    char folder[4096];
    struct stat info;
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    if (length + 2 > sizeof folder || (stat(path, &info) == 0 && !S_ISREG(info.st_mode)))
        return 0; /* writing will tell */
    memcpy(folder, path, length);
    memcpy(folder + length, ".", 2);
    if (access(folder, W_OK) == 0) return 0;
    cli_complain("cannot write %s: %s", path, strerror(errno));
    return -1;
}

static void list_rest(cli_options *options, request *r)
{
    cli_kernel_option(options, &r->flags);
    cli_fold_option(options, &r->flags);
    cli_add_heading(options, "Output");
    cli_add_output(options, "output", &r->output, "FILE", "where to write the lexicon (also -o FILE)");
    cli_add_output(options, "dropped", &r->flags.options.dropped, "FILE",
                   "name the words that were read and dropped, and why: word<TAB>reason");
}

static void list_build(cli_options *options, void *into)
{
    request *r = into;
    r->flags = cli_lexicon_default();
    cli_build_options(options, &r->flags);
    list_rest(options, r);
}

static void list_import(cli_options *options, void *into)
{
    request *r = into;
    r->flags = cli_lexicon_default();
    cli_import_options(options, &r->flags);
    list_rest(options, r);
}

/* With --kernel auto: puts the kernel that suits the first data set in the place of the one it has. */
static safer_status choose(safer_lexicon **lexicon, safer_choice *choice, const cli_lexicon_flags *flags,
                           safer_error *error)
{
    const safer_lexicon_options *o = &flags->options;
    safer_choose_options options = safer_choose_options_default();
    safer_lexicon *chosen = NULL;
    safer_data *data = NULL;
    struct stat info;
    *choice = (safer_choice){0};
    if (strcmp(o->kernel, "auto") != 0) return SAFER_OK;
    if (o->vocab_from_count && stat(o->vocab_from[0], &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        choice->untried = "the data is a pipe, which cannot be read again"; /* the kernel is representative */
        return SAFER_OK;
    }
    options.threads = o->threads;
    options.progress = o->progress;
    safer_data_options reading = flags->columns;
    reading.repair = o->repair;
    safer_status status = SAFER_OK;
    if (o->vocab_from_count) status = safer_data_load(&data, o->vocab_from[0], &reading, error);
    if (status == SAFER_OK) status = safer_lexicon_choose(&chosen, choice, *lexicon, data, &options, error);
    if (status == SAFER_OK) {
        safer_lexicon_free(*lexicon);
        *lexicon = chosen;
    }
    safer_data_free(data);
    return status;
}

typedef safer_status (*maker)(safer_lexicon **out, const safer_lexicon_options *options, safer_lexicon_report *report,
                              safer_error *error);

static int make(const cli_verb *verb, request *r, maker make_lexicon)
{
    safer_error error = {0};
    safer_lexicon *lexicon = NULL;
    safer_lexicon_report report;
    safer_choice choice;
    int code = CLI_DONE;
    if (!r->output) cli_misuse(verb, "-o FILE is needed: where to write the lexicon");
    if (cli_lexicon_finish(&r->flags, &error) != SAFER_OK) cli_misuse(verb, "%s", cli_message(&error));
    if (check_output(r->output) || (r->flags.options.dropped && check_output(r->flags.options.dropped)))
        return CLI_SYSTEM;
    safer_status status = make_lexicon(&lexicon, &r->flags.options, &report, &error);
    if (status == SAFER_OK) status = choose(&lexicon, &choice, &r->flags, &error);
    if (status == SAFER_OK) status = safer_lexicon_save(lexicon, r->output, &error);
    if (status != SAFER_OK) {
        code = cli_fail(&error);
    } else {
        cli_progress_clear();
        if (cli_settings()->json)
            cli_print_json(report_json(lexicon, &report, &choice, r->output));
        else
            print_report(lexicon, &report, &choice, r->output, r->flags.options.dropped);
    }
    safer_lexicon_free(lexicon);
    cli_lexicon_flags_free(&r->flags);
    return code;
}

static int run_build(void *from, char **arguments, size_t count)
{
    request *r = from;
    (void)arguments, (void)count;
    if (!r->flags.options.vectors) cli_misuse(&cli_lexicon_build, "--vectors FILE is needed");
    return make(&cli_lexicon_build, r, safer_lexicon_build);
}

static int run_import(void *from, char **arguments, size_t count)
{
    request *r = from;
    (void)arguments, (void)count;
    if (!r->flags.options.table == !r->flags.options.wordnet)
        cli_misuse(&cli_lexicon_import, "--table FILE or --wordnet FOLDER is needed, not both");
    return make(&cli_lexicon_import, r, safer_lexicon_import);
}

const cli_verb cli_lexicon_build = {
    .name = "lexicon build",
    .brief = "from word vectors",
    .usage = "--vectors FILE [options] -o OUT.lex",
    .summary = "Builds a lexicon from word vectors: counter-fits them, removes what all words share,\n"
               "and takes as synonyms all pairs at least as similar as the threshold. Files may be\n"
               "compressed (gz, xz, zst, bz2) or ARCHIVE:MEMBER of a tar or zip archive.",
    .examples = "  safer lexicon build --vectors glove.6B.zip:glove.6B.100d.txt --vocab-from imdb.tsv -o imdb.lex\n"
                "  safer lexicon build --vectors vectors.txt --synonyms ppdb.txt --antonyms wordnet.txt \\\n"
                "      --vocab-from train.tsv --vocab-from test.tsv --kernel topk:250 -o imdb.lex\n",
    .request_size = sizeof(request),
    .list = list_build,
    .run = run_build,
};

const cli_verb cli_lexicon_import = {
    .name = "lexicon import",
    .brief = "from a table of synonyms or WordNet",
    .usage = "--table FILE | --wordnet FOLDER [options] -o OUT.lex",
    .summary = "Makes a lexicon from a table of synonyms: JSON {\"word\": [\"synonym\", ...]} or text\n"
               "lines word<TAB>synonym synonym ...; or from WordNet 3.0's files, where the words of a\n"
               "synset are synonyms. Pairs listed one way count both ways unless --directed is given.",
    .examples = "  safer lexicon import --table synonyms.json --vocab-from train.tsv --kernel component -o words.lex\n"
                "  safer lexicon import --wordnet /usr/share/wordnet --vocab-from train.tsv -o wordnet.lex\n",
    .request_size = sizeof(request),
    .list = list_import,
    .run = run_import,
};
