/* safer lexicon audit: the doubtful pairs of a lexicon first, as a table, or asked about one by one. What a person does
 * not accept goes into a file that `lexicon build` and `import` take as --exclude. */
#define _GNU_SOURCE
#include "data_options.h"
#include "verbs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct audit_request {
    cli_list antonyms;
    const char *output;
    safer_audit_options options;
} audit_request;

static void list_audit(cli_options *options, void *into)
{
    audit_request *r = into;
    r->options = safer_audit_options_default();
    cli_add_path(options, "wordnet", &r->options.wordnet, "FOLDER",
                 "WordNet, for antonyms and parts of speech: the folder with data.noun, data.verb, data.adj, data.adv");
    cli_add_list(options, "antonyms", &r->antonyms, "FILE", "pairs of antonyms, two words per line (repeatable)");
    cli_add_real(options, "distant", &r->options.distant, "S",
                 "pairs less similar than S are doubtful, where similarity is known (default {default})");
    cli_add_output(
        options, "output", &r->output, "FILE",
        "ask about each pair, y or n, and add those that are refused to this file, for --exclude (also -o FILE)");
}

/* "antonyms, distant" */
static void put_doubts(FILE *to, unsigned doubts)
{
    const char *between = "";
    for (unsigned d = 0; safer_doubt_name((safer_doubt)d); d++) {
        if (!(doubts >> d & 1)) continue;
        fprintf(to, "%s%s", between, safer_doubt_name((safer_doubt)d));
        between = ", ";
    }
}

static json_t *pair_json(const safer_lexicon *l, const safer_doubtful *p)
{
    json_t *doubts = cli_need(json_array());
    for (unsigned d = 0; safer_doubt_name((safer_doubt)d); d++)
        if (p->doubts >> d & 1) cli_append(doubts, json_string(safer_doubt_name((safer_doubt)d)));
    return json_pack("{s:s, s:s, s:o, s:o}", "word", safer_lexicon_word(l, p->word).word, "synonym",
                     safer_lexicon_word(l, p->synonym).word, "doubts", doubts, "similarity",
                     isnan(p->similarity) ? json_null() : json_real(p->similarity));
}

/* How many pairs have each doubt, of all pairs. */
static json_t *counts_json(const safer_doubtful *pairs, size_t count)
{
    json_t *counts = cli_need(json_object());
    for (unsigned d = 0; safer_doubt_name((safer_doubt)d); d++) {
        json_int_t found = 0;
        for (size_t i = 0; i < count; i++) found += pairs[i].doubts >> d & 1;
        cli_set(counts, safer_doubt_name((safer_doubt)d), json_integer(found));
    }
    return counts;
}

static void print_json(const safer_lexicon *l, const safer_doubtful *pairs, size_t count)
{
    json_t *list = cli_need(json_array());
    for (size_t i = 0; i < count; i++) cli_append(list, pair_json(l, &pairs[i]));
    cli_print_json(json_pack("{s:s, s:s, s:I, s:I, s:o, s:o}", "lexicon", safer_lexicon_name(l), "sha256",
                             safer_lexicon_sha256(l), "pairs", (json_int_t)cli_lexicon_info(l).pairs, "doubtful",
                             (json_int_t)count, "counts", counts_json(pairs, count), "list", list));
}

static void print_table(const safer_lexicon *l, const safer_doubtful *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cli_put(safer_lexicon_word(l, pairs[i].word).word);
        printf("\t");
        cli_put(safer_lexicon_word(l, pairs[i].synonym).word);
        printf("\t%s\t", isnan(pairs[i].similarity) ? "" : cli_cut(fmax(pairs[i].similarity, 0), 4));
        put_doubts(stdout, pairs[i].doubts);
        printf("\n");
    }
}

/* ------------------------------------------------------------- one by one */

/* What a file holds, "" when there is none or it is a device; free() it. What cannot be read whole would be lost when
 * it is written again. */
static safer_status read_whole(char **out, const char *path, safer_error *error)
{
    struct stat info = {0};
    size_t room = 1;
    *out = calloc(1, 1);
    if (!*out) cli_no_memory();
    const int found = stat(path, &info) == 0, missing = !found && errno == ENOENT;
    if (missing || (found && !S_ISDIR(info.st_mode) && (!S_ISREG(info.st_mode) || info.st_size == 0))) return SAFER_OK;
    FILE *file = found ? fopen(path, "re") : NULL;
    const ssize_t length = file ? getdelim(out, &room, '\0', file) : -1;
    const int reason = errno;
    if (file) fclose(file);
    if (length < 0) return cli_error(error, SAFER_SYSTEM, "cannot read %s: %s", path, strerror(reason));
    if ((*out)[length - 1] == '\0')
        return cli_error(error, SAFER_INPUT, "%s holds a NUL character, so it is no list of pairs", path);
    return SAFER_OK;
}

/* Whether a line of the text is this one. */
static int has_line(const char *text, const char *line)
{
    const size_t length = strlen(line);
    for (const char *p = text; (p = strstr(p, line)); p += length)
        if ((p == text || p[-1] == '\n') && (p[length] == '\n' || !p[length])) return 1;
    return 0;
}

/* 'y', 'n' or 'q', which the end of the input is too. */
static int ask(const safer_lexicon *l, const safer_doubtful *p, size_t number, size_t count)
{
    char *line = NULL;
    size_t room = 0;
    int answer = 0;
    while (!answer) {
        fprintf(stderr, "%zu of %zu  %s  %s  (", number, count, safer_lexicon_word(l, p->word).word,
                safer_lexicon_word(l, p->synonym).word);
        put_doubts(stderr, p->doubts);
        fprintf(stderr, ")  keep? y, n, q to stop: ");
        if (getline(&line, &room, stdin) < 0)
            answer = 'q';
        else if (*line && strchr("ynq", *line))
            answer = *line;
    }
    free(line);
    return answer;
}

static safer_status ask_about_all(const char *path, const safer_lexicon *l, const safer_doubtful *pairs, size_t count,
                                  safer_error *error)
{
    char *before = NULL, *text = NULL;
    size_t length = 0, kept = 0, refused = 0, i;
    int answer = 0;
    safer_status status = read_whole(&before, path, error);
    if (status != SAFER_OK) {
        free(before);
        return status;
    }
    FILE *out = open_memstream(&text, &length);
    if (!out) cli_no_memory();
    fprintf(out, "%s%s", before, *before && before[strlen(before) - 1] != '\n' ? "\n" : "");
    for (i = 0; i < count && answer != 'q'; i++) {
        char *line;
        if (asprintf(&line, "%s %s", safer_lexicon_word(l, pairs[i].word).word,
                     safer_lexicon_word(l, pairs[i].synonym).word) < 0)
            cli_no_memory();
        answer = has_line(before, line) ? 0 /* refused in an earlier pass */ : ask(l, &pairs[i], i + 1, count);
        if (answer == 'n') fprintf(out, "%s\n", line);
        kept += answer == 'y';
        refused += answer == 'n';
        free(line);
    }
    if (fclose(out)) cli_no_memory();
    status = cli_write_file(path, text, length, error);
    if (status == SAFER_OK) {
        printf("kept        %s\n", cli_some(kept, "pair", "pairs"));
        printf("refused     %s\n", cli_some(refused, "pair", "pairs"));
        printf("wrote %s; make the lexicon again with --exclude %s\n", path, path);
    }
    free(before);
    free(text);
    return status;
}

static int run_audit(void *from, char **arguments, size_t count)
{
    audit_request *r = from;
    safer_error error = {0};
    safer_doubtful *pairs = NULL;
    size_t found = 0;
    int code = CLI_DONE;
    (void)count;
    if (r->output && cli_settings()->json) cli_misuse(&cli_lexicon_audit, "--json and -o FILE: one of the two");
    safer_lexicon *lexicon = cli_lexicon_open(arguments[0]);
    r->options.antonyms = r->antonyms.items;
    r->options.antonyms_count = r->antonyms.count;
    safer_status status = safer_lexicon_audit(&pairs, &found, lexicon, &r->options, &error);
    if (status == SAFER_OK && r->output) {
        status = ask_about_all(r->output, lexicon, pairs, found, &error);
    } else if (status == SAFER_OK) {
        (cli_settings()->json ? print_json : print_table)(lexicon, pairs, found);
    }
    if (status != SAFER_OK) code = cli_fail(&error);
    free(pairs);
    free(r->antonyms.items);
    safer_lexicon_free(lexicon);
    return code;
}

const cli_verb cli_lexicon_audit = {
    .name = "lexicon audit",
    .brief = "the doubtful pairs first, to accept or exclude",
    .usage = "LEXICON [options]",
    .summary = "Lists the pairs of synonyms that a person should look at, the worst doubt first: with a function\n"
               "word, antonyms, of no common part of speech (WordNet's), distant; per line both words, their\n"
               "similarity and the doubts, with tabs between. With -o FILE it asks about each, y or n, and adds\n"
               "the pairs that are refused to the file, which lexicon build and import take as --exclude; a\n"
               "second pass does not ask about those again.",
    .examples = "  safer lexicon audit imdb.lex --wordnet /usr/share/wordnet > doubtful.tsv\n"
                "  safer lexicon audit imdb.lex --wordnet /usr/share/wordnet -o exclude.txt\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .request_size = sizeof(audit_request),
    .list = list_audit,
    .run = run_audit,
};
