/* Made-up lexicons: random relations of a few words, and every kind of kernel. */
#define _GNU_SOURCE
#include "trial.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Words with and without apostrophes, accents and case, of other scripts, and three that may not be exchanged
 * ("a" has no title case of its own, a capital of "ß" does not lead back, nor does that of "ς"). */
const spelling spellings[SPELLINGS] = {
    {{"good", "Good", "GOOD"}, 0},        {{"great", "Great", "GREAT"}, 0},    {{"fine", "Fine", "FINE"}, 0},
    {{"nice", "Nice", "NICE"}, 0},        {{"superb", "Superb", "SUPERB"}, 0}, {{"bad", "Bad", "BAD"}, 0},
    {{"poor", "Poor", "POOR"}, 0},        {{"awful", "Awful", "AWFUL"}, 0},    {{"dull", "Dull", "DULL"}, 0},
    {{"film", "Film", "FILM"}, 0},        {{"movie", "Movie", "MOVIE"}, 0},    {{"picture", "Picture", "PICTURE"}, 0},
    {{"plot", "Plot", "PLOT"}, 0},        {{"story", "Story", "STORY"}, 0},    {{"ab", "Ab", "AB"}, 0},
    {{"don't", "Don't", "DON'T"}, 0},     {{"won't", "Won't", "WON'T"}, 0},    {{"naïve", "Naïve", "NAÏVE"}, 0},
    {{"café", "Café", "CAFÉ"}, 0},        {{"фильм", "Фильм", "ФИЛЬМ"}, 0},    {{"кино", "Кино", "КИНО"}, 0},
    {{"映画", "映画", "映画"}, 1},        {{"電影", "電影", "電影"}, 1},       {{"a", "A", "A"}, 0},
    {{"straße", "Straße", "STRASSE"}, 0}, {{"λόγος", "Λόγος", "ΛΌΓΟΣ"}, 0},
};

static const char *word_of(size_t number) { return spellings[number].written[LOWER]; }

/* ------------------------------------------------------------------- import */

static const char *file_with(const char *name, const char *content)
{
    if (!content || !*content) return NULL;
    const char *path = trial_path(name);
    FILE *file = fopen(path, "w");
    if (!file || fputs(content, file) < 0 || fclose(file)) trial_stop("%s cannot be written", path);
    return path;
}

safer_lexicon *trial_import(const char *table, const char *vectors, const char *exclude, const char *protect,
                            int directed, const char *kernel)
{
    safer_error error;
    safer_lexicon *out = NULL;
    safer_lexicon_options o = safer_lexicon_options_default();
    o.table = file_with("table.tsv", table);
    o.vectors = file_with("vectors.txt", vectors);
    o.exclude = file_with("exclude.txt", exclude);
    o.protect = file_with("protect.txt", protect);
    o.directed = directed;
    o.kernel = kernel;
    o.threads = 1;
    trial_expect(safer_lexicon_import(&out, &o, NULL, &error), &error, "importing a lexicon");
    return out;
}

void trial_lexicon_take(trial_lexicon *out, safer_lexicon *lexicon)
{
    out->lexicon = lexicon;
    out->count = (uint32_t)safer_lexicon_describe(lexicon).words;
    for (size_t i = 0; i < SPELLINGS; i++) {
        const uint32_t x = out->number[i] = safer_lexicon_find(lexicon, word_of(i), strlen(word_of(i)));
        if (x != SAFER_NO_WORD) out->spelled[x] = (uint8_t)i;
    }
}

void trial_lexicon_clear(trial_lexicon *l)
{
    safer_lexicon_free(l->lexicon);
    *l = (trial_lexicon){0};
}

static int write_to(void *file, const char *bytes, size_t length) { return fwrite(bytes, 1, length, file) != length; }

void trial_lexicon_print(FILE *out, const trial_lexicon *l)
{
    fprintf(out, "lexicon: %s\n", l->how);
    for (safer_export what = SAFER_EXPORT_SYNONYMS; what <= SAFER_EXPORT_OVERLAP; what++) {
        fprintf(out, "%s:\n", safer_export_name(what));
        (void)safer_lexicon_export(l->lexicon, what, 0, write_to, out, NULL);
    }
}

/* ------------------------------------------------------------------- kernels */

static void row_add(kernel_row *row, uint32_t word, uint32_t weight)
{
    uint32_t at = row->count;
    for (uint32_t i = 0; i < row->count; i++)
        if (row->words[i] == word) return;
    for (; at > 0 && row->words[at - 1] > word; at--) {
        row->words[at] = row->words[at - 1];
        row->weights[at] = row->weights[at - 1];
    }
    row->words[at] = word;
    row->weights[at] = weight;
    row->count++;
}

static void row_close(kernel_row *row)
{
    row->total = 0;
    for (uint32_t i = 0; i < row->count; i++) row->total += row->weights[i];
}

/* Words that may be drawn for x: those of its component, now and then others that have synonyms. */
static kernel_row row_of_component(const trial_lexicon *l, uint32_t x, uint32_t heaviest, trial_random *r)
{
    kernel_row row = {0};
    const uint32_t component = safer_lexicon_word(l->lexicon, x).component;
    for (uint32_t z = 0; z < l->count; z++) {
        const safer_word w = safer_lexicon_word(l->lexicon, z);
        const int related = w.component == component;
        const int fits = w.synonym_count > 0 && spellings[l->spelled[z]].caseless == spellings[l->spelled[x]].caseless;
        if (related ? random_chance(r, 85) : fits && random_chance(r, 10))
            row_add(&row, z, 1 + random_below(r, heaviest));
    }
    if (!row.count) row_add(&row, x, 1);
    row_close(&row);
    return row;
}

/* A row that differs a little from another. */
static kernel_row row_near(const kernel_row *from, trial_random *r)
{
    kernel_row row = *from;
    for (uint32_t changes = random_below(r, 3); changes > 0; changes--) {
        const uint32_t at = random_below(r, row.count), weight = row.weights[at];
        if (random_chance(r, 30) && row.count > 1) { /* it is no longer drawn */
            row.count--;
            for (uint32_t i = at; i < row.count; i++) {
                row.words[i] = row.words[i + 1];
                row.weights[i] = row.weights[i + 1];
            }
        } else {
            row.weights[at] = random_chance(r, 50) && weight > 1 ? weight - 1 : weight + 1 + random_below(r, 3);
        }
    }
    row_close(&row);
    return row;
}

static uint32_t first_of_component(const trial_lexicon *l, uint32_t x)
{
    uint32_t z = 0;
    while (safer_lexicon_word(l->lexicon, z).component != safer_lexicon_word(l->lexicon, x).component) z++;
    return z;
}

/* Whether a word is in a component of its own: then it draws itself. */
static int is_alone(const trial_lexicon *l, uint32_t x)
{
    const uint32_t component = safer_lexicon_word(l->lexicon, x).component;
    for (uint32_t z = 0; z < l->count; z++)
        if (z != x && safer_lexicon_word(l->lexicon, z).component == component) return 0;
    return 1;
}

/* The same words with rows of any weights: nearly alike within a component, all alike, or anything. */
static void use_any_kernel(trial_lexicon *l, trial_random *r)
{
    static kernel_row rows[SPELLINGS];
    kernel_row base[SPELLINGS] = {0};
    const uint32_t style = random_below(r, 6), heaviest = random_chance(r, 25) ? 4 : 60;
    for (uint32_t x = 0; x < l->count; x++) {
        const uint32_t first = first_of_component(l, x);
        if (is_alone(l, x)) {
            rows[x] = (kernel_row){0};
            row_add(&rows[x], x, 1);
            row_close(&rows[x]);
            continue;
        }
        if (!base[first].count || style == 3) base[first] = row_of_component(l, x, heaviest, r);
        rows[x] = style == 2 || style == 3 ? base[first] : row_near(&base[first], r);
    }
    safer_lexicon *any = trial_lexicon_with_rows(l->lexicon, rows);
    safer_lexicon_free(l->lexicon);
    trial_lexicon_take(l, any);
    l->kind = "any";
}

/* ----------------------------------------------------------------- relations */

typedef struct draft {
    char table[2000], vectors[4000], exclude[200], protect[100];
} draft;

static void draft_make(draft *d, const uint8_t *chosen, uint32_t count, trial_random *r)
{
    size_t t = 0, v = 0;
    const uint32_t near = 2 + random_below(r, count), most = 1 + random_below(r, 3);
    const int lonely = random_chance(r, 30);
    *d = (draft){0};
    for (uint32_t i = 0; i < count; i++) {
        t += (size_t)sprintf(d->table + t, "%s\t", word_of(chosen[i]));
        for (uint32_t k = lonely ? random_below(r, most + 1) : 1 + random_below(r, most); k > 0; k--) {
            const uint32_t other = (i + 1 + random_below(r, near)) % count;
            if (other != i) t += (size_t)sprintf(d->table + t, "%s ", word_of(chosen[other]));
        }
        t += (size_t)sprintf(d->table + t, "\n");
        v += (size_t)sprintf(d->vectors + v, "%s %.3f %.3f %.3f\n", word_of(chosen[i]), random_unit(r) - .5,
                             random_unit(r) - .5, .01 + random_unit(r));
    }
    if (random_chance(r, 70)) d->vectors[0] = '\0';
    if (random_chance(r, 15)) sprintf(d->exclude, "%s %s\n", word_of(chosen[0]), word_of(chosen[1]));
    if (random_chance(r, 15)) sprintf(d->protect, "%s\n", word_of(chosen[random_below(r, count)]));
}

/* A few different spellings, in random order. */
static uint32_t choose_words(uint8_t *chosen, trial_random *r)
{
    const uint32_t count = 4 + random_below(r, 10);
    uint8_t all[SPELLINGS];
    for (uint32_t i = 0; i < SPELLINGS; i++) all[i] = (uint8_t)i;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = i + random_below(r, SPELLINGS - i);
        chosen[i] = all[at];
        all[at] = all[i];
    }
    return count;
}

void trial_lexicon_make(trial_lexicon *out, uint64_t seed, uint64_t number)
{
    trial_random r = random_of(seed, 'L', number);
    uint8_t chosen[SPELLINGS];
    draft d;
    char kernel[20] = "component";
    const uint32_t count = choose_words(chosen, &r), kind = random_below(&r, 24);
    const int directed = random_chance(&r, 30);
    draft_make(&d, chosen, count, &r);
    out->kind = kind < 8 ? "topk" : kind < 11 ? "component" : kind < 13 ? "representative" : "any";
    if (kind < 8)
        sprintf(kernel, "topk:%u", 1 + random_below(&r, 8));
    else if (kind < 13)
        sprintf(kernel, "%s", out->kind);
    trial_lexicon_take(out, trial_import(d.table, d.vectors, d.exclude, d.protect, directed, kernel));
    if (kind >= 13) use_any_kernel(out, &r);
    snprintf(out->how, sizeof out->how, "number %" PRIu64 ", %u words, kernel %s%s%s%s%s", number, count,
             kind < 13 ? kernel : "of any weights", directed ? ", directed" : "",
             *d.vectors ? ", ranked by vectors" : "", *d.exclude ? ", with exclusions" : "",
             *d.protect ? ", with a protected word" : "");
}
