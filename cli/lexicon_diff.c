/* safer lexicon diff: what two lexicons say differently, by words, pairs, kernels, cuts and folds. Words are compared
 * by their spelling, so two lexicons with other numbers for the same words are the same; counts, vectors, similarities
 * and what provenance says of files are not compared, since they make no certificate different. */
#include "data_options.h"
#include "verbs.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 10 };

typedef struct diff_request {
    int all;
} diff_request;

/* What only one of the two has. */
typedef struct side {
    json_t *words, *pairs, *cuts;
    json_t *drawn;     /* words of both that draw otherwise; of the first side alone */
    json_t *protected; /* what was protected, by both or not */
} side;

static json_t *new_list(void) { return cli_need(json_array()); }

static uint32_t find(const safer_lexicon *l, const char *word) { return safer_lexicon_find(l, word, strlen(word)); }

/* Where a number stands in an ascending list; `count`: nowhere. */
static size_t place_in(const uint32_t *ids, size_t count, uint32_t id)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && ids[low] == id ? low : count;
}

static int has_synonym(const safer_lexicon *l, uint32_t x, uint32_t y)
{
    const safer_word word = safer_lexicon_word(l, x);
    return place_in(word.synonyms, word.synonym_count, y) < word.synonym_count;
}

/* The words and pairs of a lexicon that the other lacks. A pair that counts both ways is listed once. */
static void compare_words(side *out, const safer_lexicon *l, const safer_lexicon *other)
{
    const safer_lexicon_info info = cli_lexicon_info(l);
    for (uint32_t x = 0; x < info.words; x++) {
        const safer_word word = safer_lexicon_word(l, x);
        const uint32_t there = find(other, word.word);
        if (there == SAFER_NO_WORD) cli_append(out->words, json_string(word.word));
        for (size_t i = 0; i < word.synonym_count; i++) {
            const uint32_t y = word.synonyms[i];
            if (x > y && has_synonym(l, y, x)) continue;
            const char *synonym = safer_lexicon_word(l, y).word;
            const uint32_t its = find(other, synonym);
            const int both = there != SAFER_NO_WORD && its != SAFER_NO_WORD && has_synonym(other, there, its) &&
                             (!has_synonym(l, y, x) || has_synonym(other, its, there));
            if (!both) cli_append(out->pairs, json_pack("[s, s]", word.word, synonym));
        }
    }
}

/* Whether a word draws from the same distribution in both. */
static int draws_alike(const safer_lexicon *l, uint32_t x, const safer_lexicon *other, uint32_t there)
{
    const safer_word a = safer_lexicon_word(l, x), b = safer_lexicon_word(other, there);
    if (a.support_count != b.support_count || a.total != b.total) return 0;
    for (size_t i = 0; i < a.support_count; i++) {
        const uint32_t z = find(other, safer_lexicon_word(l, a.support[i]).word);
        const size_t k = place_in(b.support, b.support_count, z);
        if (k == b.support_count || a.weights[i] != b.weights[k]) return 0; /* also where it has no such word */
    }
    return 1;
}

static void compare_kernels(side *out, const safer_lexicon *l, const safer_lexicon *other)
{
    const safer_lexicon_info info = cli_lexicon_info(l);
    for (uint32_t x = 0; x < info.words; x++) {
        const char *word = safer_lexicon_word(l, x).word;
        const uint32_t there = find(other, word);
        if (there != SAFER_NO_WORD && !draws_alike(l, x, other, there)) cli_append(out->drawn, json_string(word));
    }
}

/* The pairs of words that were cut or filtered, of one and not of the other; "hot cold" is "cold hot". */
static void compare_cuts(side *out, const json_t *provenance, const json_t *others)
{
    json_t *known = cli_need(json_object());
    size_t i;
    json_t *cut;
    for (int from = 0; from < 4; from++) {
        const json_t *list = json_object_get(from < 2 ? others : provenance, from % 2 ? "cuts" : "filters");
        json_array_foreach(json_object_get(list, "pairs"), i, cut)
        {
            const char *a = json_string_value(json_array_get(cut, 0)), *b = json_string_value(json_array_get(cut, 1));
            if (!a || !b) continue;
            json_t *key = cli_need(strcmp(a, b) < 0 ? json_sprintf("%s %s", a, b) : json_sprintf("%s %s", b, a));
            if (from < 2)
                cli_set(known, json_string_value(key), json_true());
            else if (!json_object_get(known, json_string_value(key)))
                cli_append(out->cuts, json_pack("[s, s]", a, b));
            json_decref(key);
        }
    }
    json_decref(known);
}

/* Which words were protected when it was made, as its provenance has it: the built-in list, and files. */
static json_t *protected_of(const json_t *provenance)
{
    size_t i;
    json_t *list = new_list(), *file, *built_in = json_object_get(provenance, "protected");
    if (built_in) cli_append(list, json_incref(built_in));
    json_array_foreach(json_object_get(provenance, "files"), i, file)
    {
        const char *role = json_string_value(json_object_get(file, "role"));
        json_t *digest = json_object_get(file, "sha256");
        if (role && strcmp(role, "protect") == 0 && digest) cli_append(list, json_incref(digest));
    }
    return list;
}

static const char *fold_of(const safer_lexicon *l)
{
    return safer_lexicon_fold(l) ? safer_fold_steps(safer_lexicon_fold(l)) : "none";
}

static void print_words(char sign, const json_t *list, int all)
{
    size_t i;
    const json_t *entry;
    json_array_foreach(list, i, entry)
    {
        if (!all && i == SHOWN) {
            printf("  %c ... %s more (--all)\n", sign, cli_count(json_array_size(list) - i));
            return;
        }
        printf("  %c ", sign);
        cli_put(json_string_value(json_is_array(entry) ? json_array_get(entry, 0) : entry));
        if (json_is_array(entry)) {
            printf(" ");
            cli_put(json_string_value(json_array_get(entry, 1)));
        }
        printf("\n");
    }
}

static void print_lists(const char *name, const json_t *first, const json_t *second, int all)
{
    if (!json_array_size(first) && !json_array_size(second)) return;
    printf("%-11s %s only in the first, %s only in the second\n", name, cli_count(json_array_size(first)),
           cli_count(json_array_size(second)));
    print_words('-', first, all);
    print_words('+', second, all);
}

static json_t *side_json(const safer_lexicon *l, const side *s)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:O, s:O, s:O, s:O}", "name", safer_lexicon_name(l), "sha256",
                     safer_lexicon_sha256(l), "kernel", cli_lexicon_info(l).kernel, "fold", fold_of(l), "words",
                     s->words, "pairs", s->pairs, "cuts", s->cuts, "protected", s->protected);
}

static int is_different(const safer_lexicon *const l[2], const side s[2])
{
    int differ = strcmp(cli_lexicon_info(l[0]).kernel, cli_lexicon_info(l[1]).kernel) != 0 ||
                 strcmp(fold_of(l[0]), fold_of(l[1])) != 0 || json_array_size(s[0].drawn) > 0 ||
                 !json_equal(s[0].protected, s[1].protected);
    for (int i = 0; i < 2; i++)
        differ = differ || json_array_size(s[i].words) || json_array_size(s[i].pairs) || json_array_size(s[i].cuts);
    return differ;
}

static void print_diff(const safer_lexicon *const l[2], const side s[2], int all)
{
    const char *kernels[2] = {cli_lexicon_info(l[0]).kernel, cli_lexicon_info(l[1]).kernel};
    print_lists("words", s[0].words, s[1].words, all);
    print_lists("pairs", s[0].pairs, s[1].pairs, all);
    print_lists("cuts", s[0].cuts, s[1].cuts, all);
    if (!json_equal(s[0].protected, s[1].protected)) print_lists("protected", s[0].protected, s[1].protected, all);
    if (strcmp(kernels[0], kernels[1]) != 0) printf("kernel      %s and %s\n", kernels[0], kernels[1]);
    if (json_array_size(s[0].drawn))
        printf("drawn       %s of both from other words\n", cli_some(json_array_size(s[0].drawn), "word", "words"));
    print_words('*', s[0].drawn, all);
    if (strcmp(fold_of(l[0]), fold_of(l[1])) != 0) printf("fold        %s and %s\n", fold_of(l[0]), fold_of(l[1]));
}

static int run_diff(void *from, char **arguments, size_t count)
{
    const diff_request *r = from;
    (void)count;
    safer_lexicon *opened[2] = {cli_lexicon_open(arguments[0]), cli_lexicon_open(arguments[1])};
    const safer_lexicon *const l[2] = {opened[0], opened[1]};
    side s[2];
    json_t *provenance[2];
    for (int i = 0; i < 2; i++) {
        provenance[i] = cli_json_read(cli_lexicon_info(l[i]).provenance);
        s[i] = (side){new_list(), new_list(), new_list(), new_list(), protected_of(provenance[i])};
    }
    for (int i = 0; i < 2; i++) {
        compare_words(&s[i], l[i], l[1 - i]);
        compare_cuts(&s[i], provenance[i], provenance[1 - i]);
    }
    compare_kernels(&s[0], l[0], l[1]);
    const int differ = is_different(l, s);
    if (cli_settings()->json)
        cli_print_json(json_pack("{s:b, s:O, s:o, s:o}", "same", !differ, "drawn", s[0].drawn, "first",
                                 side_json(l[0], &s[0]), "second", side_json(l[1], &s[1])));
    else if (!differ)
        printf("the same words, pairs, kernel, cuts, protected words and fold\n");
    else
        print_diff(l, s, r->all);
    for (int i = 0; i < 2; i++) {
        json_decref(s[i].words), json_decref(s[i].pairs), json_decref(s[i].cuts), json_decref(s[i].drawn);
        json_decref(s[i].protected), json_decref(provenance[i]);
        safer_lexicon_free(opened[i]);
    }
    return differ ? CLI_UNMET : CLI_DONE;
}

static void list_diff(cli_options *options, void *into)
{
    diff_request *r = into;
    cli_add_flag(options, "all", &r->all, "list all that differs, not ten of each kind");
}

const cli_verb cli_lexicon_diff = {
    .name = "lexicon diff",
    .brief = "what two lexicons say differently",
    .usage = "LEXICON LEXICON",
    .summary = "Compares two lexicons: words and pairs of synonyms that only one has (- the first, + the second),\n"
               "pairs that were cut in only one, kernels, words that draw otherwise (*), folds. Counts, vectors and\n"
               "what they say of the files they were made from are not compared. Exits 0 when nothing differs, 1\n"
               "when something does.",
    .examples = "  safer lexicon diff before.lex after.lex\n"
                "  safer lexicon diff before.lex after.lex --json\n",
    .min_arguments = 2,
    .max_arguments = 2,
    .request_size = sizeof(diff_request),
    .list = list_diff,
    .run = run_diff,
};
