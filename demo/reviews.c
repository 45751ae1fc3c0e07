/* demo-reviews: writes train.tsv, dev.tsv and test.tsv, made-up reviews of films and
 * products, so that the demo needs no data from elsewhere.
 *
 * A review is a frame of neutral sentences, opinions that mostly agree with its label,
 * and often a verdict. Words come from the synonym table wherever the grammar names a
 * group, so the texts are rich in words that the lexicon can substitute. The label is
 * the side of the majority, never noise, but more than half of the reviews also say
 * something for the other side: a classifier should get nearly all right, not all.
 *
 * Every choice is a function of (seed, file, row, number of the choice): the same seed
 * gives the same bytes on every machine, and a longer file begins like a shorter one. */
#define _GNU_SOURCE
#include "grammar.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/rng.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { EXIT_USAGE = 2, EXIT_BAD_INPUT = 3, EXIT_SYSTEM = 4 };
enum { SENTENCES = 9, WORDS_MIN = 40, WORDS_MAX = 120 }; /* of a review */
enum { GROUP_WORDS = 32, NAMES = 8, DEPTH = 8, RECENT = 12, TAKEN = 32 };

typedef struct line {
    const char *head, *others;
} line;

/* demo/synonyms.tsv, made into C strings by the build. */
static const line table[] = {
#include "synonyms.inc"
};
enum { GROUPS = sizeof table / sizeof *table };

typedef struct group {
    const char *words[GROUP_WORDS];
    uint32_t count;
    int used; /* some sentence asks for it */
} group;

/* One review in the making. */
typedef struct writer {
    sf_stream stream;
    uint64_t row;
    uint32_t draws;           /* made so far */
    const product *thing;     /* what @ stands for; NULL in a film review */
    const rule *names[NAMES]; /* the [rules] already chosen, */
    sf_buffer values[NAMES];  /* and what they said */
    const char *taken[TAKEN]; /* sentences and connectives: none appears twice */
    uint32_t topics[2];       /* what was blamed and what was praised */
    size_t name_count, taken_count, sentence_count;
    const char *recent[RECENT]; /* the words chosen last, newest first */
    sf_buffer text;
} writer;

static group groups[GROUPS];

static _Noreturn void stop(int code, const char *message, const char *detail)
{
    fprintf(stderr, "demo-reviews: %s%s\n", message, detail);
    exit(code);
}

static void need(int failed)
{
    if (failed) stop(EXIT_SYSTEM, "out of memory", "");
}

/* ---------------------------------------------------------- table and grammar */

static void read_table(void)
{
    for (size_t i = 0; i < GROUPS; i++) {
        group *g = &groups[i];
        g->words[g->count++] = table[i].head;
        char *rest = strdup(table[i].others); /* lives as long as the program */
        need(!rest);
        for (char *word = strtok(rest, " "); word; word = strtok(NULL, " ")) {
            if (g->count == GROUP_WORDS) stop(EXIT_BAD_INPUT, "too many synonyms of ", table[i].head);
            g->words[g->count++] = word;
        }
        if (g->count < 2) stop(EXIT_BAD_INPUT, "no synonym of ", table[i].head);
    }
}

static group *find_group(const char *head, size_t length)
{
    for (size_t i = 0; i < GROUPS; i++)
        if (strlen(table[i].head) == length && memcmp(table[i].head, head, length) == 0) return &groups[i];
    return NULL;
}

static const rule *find_rule(const char *name, size_t length)
{
    for (const rule *r = grammar; r->name; r++)
        if (strlen(r->name) == length && memcmp(r->name, name, length) == 0) return r;
    return NULL;
}

static const rule *rule_of(const char *stem, const char *tail)
{
    char name[64];
    int length = snprintf(name, sizeof name, "%s%s", stem, tail);
    const rule *r = find_rule(name, (size_t)length);
    if (!r) stop(EXIT_BAD_INPUT, "the grammar has no rule ", name);
    return r;
}

static uint32_t alternative_count(const rule *r)
{
    uint32_t count = 0;
    while (r->alternatives[count]) count++;
    return count;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The table has no word twice, and grammar and table know each other's names. */
static void check(void)
{
    static const char *words[GROUPS * GROUP_WORDS];
    size_t count = 0;
    for (size_t i = 0; i < GROUPS; i++)
        for (uint32_t j = 0; j < groups[i].count; j++) {
            const char *word = groups[i].words[j];
            if (strspn(word, "abcdefghijklmnopqrstuvwxyz'") != strlen(word))
                stop(EXIT_BAD_INPUT, "not a lower-case word: ", word);
            words[count++] = word;
        }
    qsort(words, count, sizeof *words, compare_words);
    for (size_t i = 1; i < count; i++)
        if (strcmp(words[i - 1], words[i]) == 0) stop(EXIT_BAD_INPUT, "in two synonym groups: ", words[i]);

    for (const rule *r = grammar; r->name; r++)
        for (const char *const *a = r->alternatives; *a; a++)
            for (const char *at = *a + strcspn(*a, "{<["); *at; at += strcspn(at, "{<[")) {
                const char *name = at + 1 + (at[1] == '^');
                size_t length = strcspn(name, "}>]");
                if (*at == '{') {
                    group *g = find_group(name, length);
                    if (!g) stop(EXIT_BAD_INPUT, "no synonym group for ", at);
                    g->used = 1;
                } else if (!find_rule(name, length)) {
                    stop(EXIT_BAD_INPUT, "no rule for ", at);
                }
                at = name + length;
            }
    for (const product *p = products; p->group; p++) {
        group *g = find_group(p->group, strlen(p->group));
        if (!g) stop(EXIT_BAD_INPUT, "no synonym group for the product ", p->group);
        g->used = 1;
    }
    for (size_t i = 0; i < GROUPS; i++)
        if (!groups[i].used) stop(EXIT_BAD_INPUT, "no sentence uses the synonym group ", table[i].head);
}

/* ------------------------------------------------------------------- expansion */

static uint32_t below(writer *w, uint32_t bound) { return sf_draw_below(w->stream, w->row, w->draws++, bound); }

static int chance(writer *w, uint32_t percent) { return below(w, 100) < percent; }

static int is_recent(const writer *w, const char *word)
{
    for (size_t i = 0; i < RECENT; i++)
        if (w->recent[i] == word) return 1;
    return 0;
}

/* A word of the group, the first ones more often than the last, and none that the
 * review has just used if another can be had. */
static void add_word(writer *w, sf_buffer *out, const group *g, int shout)
{
    const char *word;
    int tries = 0;
    do {
        uint32_t i = below(w, g->count), j = below(w, 3 * g->count);
        word = g->words[i < j ? i : j];
    } while (is_recent(w, word) && ++tries < 4);
    memmove(w->recent + 1, w->recent, sizeof w->recent - sizeof *w->recent);
    w->recent[0] = word;
    if (shout && chance(w, 25)) {
        for (; *word; word++) need(sf_buffer_add_byte(out, *word == '\'' ? '\'' : (char)(*word - 'a' + 'A')));
    } else {
        need(sf_buffer_add_string(out, word));
    }
}

static void expand(writer *w, sf_buffer *out, const char *pattern, int depth);

static void add_rule(writer *w, sf_buffer *out, const rule *r, int depth)
{
    expand(w, out, r->alternatives[below(w, alternative_count(r))], depth);
}

/* What [rule] says in this review. */
static void add_name(writer *w, sf_buffer *out, const rule *r, int depth)
{
    size_t i = 0;
    while (i < w->name_count && w->names[i] != r) i++;
    if (i == NAMES) stop(EXIT_BAD_INPUT, "too many names in one review: ", r->name);
    if (i == w->name_count) {
        w->names[w->name_count++] = r;
        sf_buffer_clear(&w->values[i]);
        add_rule(w, &w->values[i], r, depth);
    }
    need(sf_buffer_add(out, w->values[i].bytes, w->values[i].length));
}

/* `pattern` stands at "#a-b"; returns what follows it. */
static const char *add_number(writer *w, sf_buffer *out, const char *pattern)
{
    char *end;
    unsigned long low = strtoul(pattern + 1, &end, 10), high = strtoul(end + 1, &end, 10);
    need(sf_buffer_format(out, "%lu", low + below(w, (uint32_t)(high - low + 1))));
    return end;
}

static void expand(writer *w, sf_buffer *out, const char *pattern, int depth)
{
    if (depth == DEPTH) stop(EXIT_BAD_INPUT, "the grammar goes round in circles at ", pattern);
    for (;;) {
        size_t plain = strcspn(pattern, "{<[@#");
        need(sf_buffer_add(out, pattern, plain));
        pattern += plain;
        if (!*pattern) return;
        if (*pattern == '#') {
            pattern = add_number(w, out, pattern);
            continue;
        }
        int shout = pattern[1] == '^';
        const char *name = pattern + 1 + shout;
        size_t length = strcspn(name, "}>]");
        switch (*pattern) {
        case '@':
            add_word(w, out, find_group(w->thing->group, strlen(w->thing->group)), 0);
            pattern++;
            continue;
        case '{': add_word(w, out, find_group(name, length), shout); break;
        case '<': add_rule(w, out, find_rule(name, length), depth + 1); break;
        default: add_name(w, out, find_rule(name, length), depth + 1); break;
        }
        pattern = name + length + 1;
    }
}

/* ------------------------------------------------------------------- sentences */

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '\'' || (unsigned char)c >= 0x80;
}

/* Is "an" said before this? By sound: an hour, a unit, an 8, a useful one. */
static int takes_an(const char *next)
{
    static const char *const consonant[] = {"unif", "unio", "uniq", "unit", "univ", "use",
                                            "usu",  "util", "eu",   "one",  "once"};
    char start[8] = "";
    for (size_t i = 0; i + 1 < sizeof start && next[i]; i++)
        start[i] = (char)(next[i] >= 'A' && next[i] <= 'Z' ? next[i] - 'A' + 'a' : next[i]);
    for (size_t i = 0; i < sizeof consonant / sizeof *consonant; i++)
        if (strncmp(start, consonant[i], strlen(consonant[i])) == 0) return 0;
    return strchr("aeiou8", *start) != NULL || strncmp(start, "hour", 4) == 0 || strncmp(start, "honest", 6) == 0;
}

/* Appends the sentence with "a" and "an" put right and a capital in front. */
static void add_sentence(sf_buffer *out, const sf_buffer *sentence)
{
    const char *text = sentence->bytes;
    int capital = 1;
    for (size_t i = 0; text[i]; i++) {
        char c = text[i];
        if (capital && c >= 'a' && c <= 'z') c = (char)(c - 'a' + 'A');
        if (c != '"') capital = 0;
        need(sf_buffer_add_byte(out, c));
        int alone = (i == 0 || !is_letter(text[i - 1])) && (c == 'a' || c == 'A');
        size_t skip = alone && text[i + 1] == 'n' && text[i + 2] == ' ' ? 1 : 0;
        if (!alone || text[i + 1 + skip] != ' ') continue;
        if (takes_an(text + i + 2 + skip)) need(sf_buffer_add_byte(out, 'n'));
        i += skip;
    }
}

/* The topics in front of an opinion, a bit a letter; moves `pattern` past them. */
static uint32_t topics_of(const char **pattern)
{
    uint32_t topics = 0;
    size_t count = strcspn(*pattern, "|");
    if ((*pattern)[count] != '|') return 0;
    for (size_t i = 0; i < count; i++) topics |= 1u << ((*pattern)[i] - 'a');
    *pattern += count + 1;
    return topics;
}

/* An alternative of the pool that this review has not used. An opinion (side 0 or 1; -1
 * for other sentences) must not share a topic with one of the other side. NULL when none
 * comes up: the draft is then given up. */
static const char *pick(writer *w, const rule *pool, int side)
{
    for (int tries = 0; tries < 50; tries++) {
        const char *pattern = pool->alternatives[below(w, alternative_count(pool))], *start = pattern;
        uint32_t topics = topics_of(&pattern);
        size_t i = 0;
        while (i < w->taken_count && w->taken[i] != start) i++;
        if (i < w->taken_count || i == TAKEN || (side >= 0 && topics & w->topics[!side])) continue;
        w->taken[w->taken_count++] = start;
        if (side >= 0) w->topics[side] |= topics;
        return pattern;
    }
    return NULL;
}

static void write_sentence(writer *w, const rule *pool, const rule *connective, int side)
{
    const char *joint = connective ? pick(w, connective, -1) : NULL, *pattern = pick(w, pool, side);
    w->sentence_count += pattern ? 1 : SENTENCES + 1;
    if (!pattern) return;
    sf_buffer sentence = {0};
    if (joint) expand(w, &sentence, joint, 0);
    expand(w, &sentence, pattern, 0);
    if (w->text.length && w->text.bytes[w->text.length - 1] != '\n') need(sf_buffer_add_byte(&w->text, ' '));
    add_sentence(&w->text, &sentence);
    sf_buffer_free(&sentence);
}

/* --------------------------------------------------------------------- reviews */

/* What an opinion is about. */
typedef enum scope { PART, WHOLE, CONTRAST } scope;

/* An opinion for (1) or against (0), joined to the one before it (-1: none). */
static void write_opinion(writer *w, int side, int before, scope about)
{
    static const char *const tails[] = {"", ".whole", ".contrast"};
    const char *domain = w->thing ? "item" : "film", *sign = side ? "+" : "-";
    char stem[32];
    snprintf(stem, sizeof stem, "%s%s", domain, tails[about]);
    if (about == PART && w->thing && chance(w, 50)) snprintf(stem, sizeof stem, "%s", w->thing->pool);
    const rule *connective = NULL;
    if (before >= 0 && before != side && chance(w, 75))
        connective = chance(w, 60) ? rule_of("but", "") : rule_of("but", sign);
    else if (before == side && about == PART && chance(w, 15))
        connective = rule_of("and", "");
    write_sentence(w, rule_of(stem, sign), connective, side);
}

/* How many opinions agree with the label and how many do not: some reviews are clear,
 * some have a reservation, some are close. The shares are set so that logistic regression
 * on words and pairs of words gets about 94% right, and 98% once synonyms are one word. */
static void weigh(writer *w, int *with, int *against)
{
    uint32_t kind = below(w, 100);
    if (kind < 42) {
        *with = 2 + (int)below(w, 3);
        *against = 0;
    } else if (kind < 62) {
        *with = 2 + (int)below(w, 3);
        *against = 1;
    } else {
        *with = 2 + (int)below(w, 2);
        *against = *with - 1;
    }
}

static void write_draft(writer *w, int label)
{
    int with, against;
    sf_buffer_clear(&w->text);
    w->name_count = w->taken_count = w->sentence_count = 0;
    w->topics[0] = w->topics[1] = 0;
    memset(w->recent, 0, sizeof w->recent);
    w->thing = NULL;
    if (chance(w, 50)) {
        uint32_t count = 0;
        while (products[count].group) count++;
        w->thing = &products[below(w, count)];
    }
    const char *domain = w->thing ? "item" : "film";
    weigh(w, &with, &against);
    int close = against && against == with - 1;

    if (chance(w, 85)) write_sentence(w, rule_of(domain, ".open"), NULL, -1);
    uint32_t frame = below(w, 4);
    for (uint32_t i = 0; i < frame; i++) write_sentence(w, rule_of(domain, w->thing ? ".frame" : ".plot"), NULL, -1);
    if (w->text.length && chance(w, 8)) need(sf_buffer_add_byte(&w->text, '\n')); /* a paragraph ends */

    int before = -1;
    while (with + against > 0) {
        int side = below(w, (uint32_t)(with + against)) < (uint32_t)with;
        if (side)
            with--;
        else
            against--;
        int opinion = side ? label : !label;
        uint32_t kind = below(w, 100);
        write_opinion(w, opinion, before, !side || kind < 65 ? PART : kind < 80 ? WHOLE : CONTRAST);
        before = opinion;
    }
    if (chance(w, close ? 42 : 55)) write_sentence(w, rule_of(domain, label ? ".end+" : ".end-"), NULL, -1);
}

static size_t count_words(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        if (is_letter(*text) && !is_letter(text[1])) count++;
    return count;
}

static void write_review(writer *w, uint64_t row, int label)
{
    w->row = row;
    w->draws = 2; /* the first two belong to the row itself */
    size_t words;
    do {
        write_draft(w, label);
        words = count_words(w->text.bytes);
    } while (words < WORDS_MIN || words > WORDS_MAX || w->sentence_count < 3 || w->sentence_count > SENTENCES);
}

static void add_escaped(sf_buffer *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '\\': need(sf_buffer_add_string(out, "\\\\")); break;
        case '\t': need(sf_buffer_add_string(out, "\\t")); break;
        case '\n': need(sf_buffer_add_string(out, "\\n")); break;
        case '\r': need(sf_buffer_add_string(out, "\\r")); break;
        default: need(sf_buffer_add_byte(out, *text));
        }
    }
}

/* Rows come in pairs, one of each label, in either order. */
static void write_file(const char *folder, const char *part, uint64_t seed, uint64_t rows)
{
    writer w = {.stream = sf_stream_of(seed, sf_hash(part, strlen(part), 0), SF_STAGE_DATA)};
    sf_buffer out = {0}, path = {0};
    safer_error error = {0};
    for (uint64_t row = 0; row < rows; row++) {
        int label = (int)((row & 1) ^ sf_draw_below(w.stream, row / 2 * 2, 0, 2));
        write_review(&w, row, label);
        need(sf_buffer_format(&out, "%s-%05llu\t%d\t", part, (unsigned long long)(row + 1), label));
        add_escaped(&out, w.text.bytes);
        need(sf_buffer_add_byte(&out, '\n'));
    }
    need(sf_buffer_format(&path, "%s/%s.tsv", folder, part));
    if (sf_file_write(path.bytes, out.bytes ? out.bytes : "", out.length, &error) != SAFER_OK)
        stop(EXIT_SYSTEM, error.message, "");
    fprintf(stderr, "%s: %llu reviews\n", path.bytes, (unsigned long long)rows);
    for (size_t i = 0; i < NAMES; i++) sf_buffer_free(&w.values[i]);
    sf_buffer_free(&w.text);
    sf_buffer_free(&out);
    sf_buffer_free(&path);
}

/* ------------------------------------------------------------------------ main */

static void make_folders(const char *path)
{
    char *copy = strdup(path);
    need(!copy);
    for (char *at = copy + 1;; at++) {
        char c = *at;
        if (c && c != '/') continue;
        *at = '\0';
        if (mkdir(copy, 0777) && errno != EEXIST) {
            fprintf(stderr, "demo-reviews: cannot make %s: %s\n", copy, strerror(errno));
            exit(EXIT_SYSTEM);
        }
        if (!c) break;
        *at = c;
    }
    free(copy);
}

static const char help[] = "Usage: demo-reviews OUTDIR [--seed N] [--train N] [--dev N] [--test N]\n"
                           "\n"
                           "Writes made-up film and product reviews, label 1 for praise and 0 for blame, to\n"
                           "OUTDIR/train.tsv, OUTDIR/dev.tsv and OUTDIR/test.tsv (id, label, text).\n"
                           "\n"
                           "  --seed N    another seed, other reviews; the same seed, the same bytes (default 1)\n"
                           "  --train N   reviews in train.tsv (default 4000)\n"
                           "  --dev N     reviews in dev.tsv (default 500)\n"
                           "  --test N    reviews in test.tsv (default 1000)\n"
                           "\n"
                           "Examples:\n"
                           "  demo-reviews out/demo\n"
                           "  demo-reviews /tmp/small --seed 7 --train 200 --dev 20 --test 50\n";

int main(int argc, char **argv)
{
    enum { SEED, TRAIN, DEV, TEST, NUMBERS };
    static const char *const flags[NUMBERS] = {"--seed", "--train", "--dev", "--test"};
    uint64_t numbers[NUMBERS] = {1, 4000, 500, 1000};
    const char *folder = NULL;

    for (int i = 1; i < argc; i++) {
        int flag = 0;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(help, stdout);
            return 0;
        }
        while (flag < NUMBERS && strcmp(argv[i], flags[flag]) != 0) flag++;
        if (flag < NUMBERS) {
            if (i + 1 == argc || sf_to_uint64(argv[i + 1], &numbers[flag]))
                stop(EXIT_USAGE, "a whole number is wanted after ", flags[flag]);
            i++;
        } else if (argv[i][0] == '-') {
            stop(EXIT_USAGE, "no such option (see --help): ", argv[i]);
        } else if (folder) {
            stop(EXIT_USAGE, "one OUTDIR only, remove ", argv[i]);
        } else {
            folder = argv[i];
        }
    }
    if (!folder || !*folder) stop(EXIT_USAGE, "name the folder to write to, e.g. demo-reviews out/demo", "");

    read_table();
    check();
    make_folders(folder);
    write_file(folder, "train", numbers[SEED], numbers[TRAIN]);
    write_file(folder, "dev", numbers[SEED], numbers[DEV]);
    write_file(folder, "test", numbers[SEED], numbers[TEST]);
    return 0;
}
