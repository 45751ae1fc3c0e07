/* Made-up texts: words of the lexicon and others, in every case, with all sorts of things between them. */
#define _GNU_SOURCE
#include "trial.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What stands between words; none of it belongs to a word. */
static const char *const gaps[] = {" ",  " ",  ", ", ". ", "! ",  "-",  "\n", "  ", " 42 ", "/",
                                   "… ", " '", "' ", "\t", " 😀 ", " (", ") ", "; ", "7",    "_"};
static const char *const ends[] = {"", "", "", ".", "!", " ", "'", "...", "9", "\n"};
static const char *const strangers[] = {"xyzzy", "Zork", "QUUX", "x", "I", "été", "ß"};
enum { GAPS = sizeof gaps / sizeof *gaps, ENDS = sizeof ends / sizeof *ends };
enum { STRANGERS = sizeof strangers / sizeof *strangers };

/* --------------------------------------------------------------------- slots */

static size_t draw_number(trial_slot *s, uint32_t word)
{
    size_t at = 0;
    while (at < s->drawn && s->draw[at] != word) at++;
    return at;
}

static int compare_words(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static kernel_row row_of(const safer_lexicon *lexicon, uint32_t x)
{
    const safer_word w = safer_lexicon_word(lexicon, x);
    kernel_row row = {(uint32_t)w.support_count, w.total, {0}, {0}};
    if (w.support_count > DRAWN) trial_stop("%s draws from too many words", w.word);
    memcpy(row.words, w.support, w.support_count * sizeof *row.words);
    memcpy(row.weights, w.weights, w.support_count * sizeof *row.weights);
    return row;
}

/* What can happen to word x: returns 0 when it is no slot, -1 when there is too much. */
static int slot_make(trial_slot *s, const safer_lexicon *lexicon, uint32_t x)
{
    const safer_word w = safer_lexicon_word(lexicon, x);
    if (!w.synonym_count && w.support_count == 1 && w.support[0] == x) return 0;
    if (w.synonym_count >= OPTIONS) return -1;
    const kernel_row own = row_of(lexicon, x);
    *s = (trial_slot){.options = w.synonym_count + 1, .overlap = {1, 1}, .support = w.support_count};
    for (size_t o = 0; o < s->options; o++) {
        const kernel_row row = row_of(lexicon, s->option[o] = o ? w.synonyms[o - 1] : x);
        const fraction overlap = kernel_overlap(&own, &row);
        s->total[o] = row.total;
        if (fraction_compare(overlap, s->overlap) < 0) s->overlap = overlap;
        for (uint32_t i = 0; i < row.count; i++)
            if (draw_number(s, row.words[i]) == s->drawn) {
                if (s->drawn == DRAWN) return -1;
                s->draw[s->drawn++] = row.words[i];
            }
    }
    qsort(s->draw, s->drawn, sizeof *s->draw, compare_words);
    for (size_t o = 0; o < s->options; o++) {
        const kernel_row row = row_of(lexicon, s->option[o]);
        for (uint32_t i = 0; i < row.count; i++) s->weight[o][draw_number(s, row.words[i])] = row.weights[i];
    }
    return 1;
}

/* --------------------------------------------------------------------- words */

/* Writes a word of the lexicon in a random case; mixed case counts as lower or title case by its first letter. */
static int write_word(char out[40], size_t spelled, trial_random *r)
{
    const int pattern = random_chance(r, 60) ? LOWER : (int)random_below(r, PATTERNS);
    strcpy(out, spellings[spelled].written[pattern]);
    if (pattern != UPPER && strlen(out) > 2 && islower((unsigned char)out[1]) && random_chance(r, 10))
        out[1] = (char)toupper((unsigned char)out[1]);
    char *apostrophe = strchr(out, '\'');
    if (apostrophe && random_chance(r, 40)) { /* the curly one, of three bytes */
        memmove(apostrophe + 3, apostrophe + 1, strlen(apostrophe));
        memcpy(apostrophe, "\xe2\x80\x99", 3);
    }
    return pattern;
}

/* Appends a word; returns 0 when the text would become too large to be enumerated. */
static int add_word(trial_text *t, size_t draws, trial_random *r)
{
    const size_t word = t->words;
    trial_slot *s = &t->slot[t->slots];
    t->pattern[word] = LOWER;
    if (random_chance(r, 12)) {
        strcpy(t->written[word], strangers[random_below(r, STRANGERS)]);
        t->words++;
        return 1;
    }
    uint32_t x = random_below(r, t->lexicon->count);
    if (!safer_lexicon_word(t->lexicon->lexicon, x).synonym_count) x = random_below(r, t->lexicon->count);
    t->pattern[word] = write_word(t->written[word], t->lexicon->spelled[x], r);
    const int is_slot = slot_make(s, t->lexicon->lexicon, x);
    if (is_slot < 0) return 0;
    t->words++;
    if (!is_slot) return 1;
    const size_t more = s->drawn > s->options ? s->drawn : s->options;
    if (t->largest * more > draws) {
        t->words--;
        return 0;
    }
    t->largest *= more;
    t->draws *= s->drawn;
    t->options *= s->options;
    s->word = word;
    t->slots++;
    return 1;
}

void trial_text_make(trial_text *out, const trial_lexicon *lexicon, size_t words, size_t draws, trial_random *r)
{
    *out = (trial_text){.lexicon = lexicon, .options = 1, .draws = 1, .largest = 1};
    for (int tries = 0; out->words < words && tries < 20; tries++) (void)add_word(out, draws, r);
    for (size_t i = 0; i <= out->words; i++)
        out->gap[i] = i == 0 || i == out->words ? ends[random_below(r, ENDS)] : gaps[random_below(r, GAPS)];
    trial_text_begin(out, out->gap[0]);
}

void trial_text_begin(trial_text *text, const char *gap)
{
    const size_t as_it_is[WORDS] = {0};
    text->gap[0] = gap;
    text->length = trial_text_write(text->bytes, text, as_it_is, AS_ATTACK);
}

size_t trial_text_write(char out[600], const trial_text *text, const size_t *number, int which)
{
    char *end = stpcpy(out, text->gap[0]);
    for (size_t i = 0, s = 0; i < text->words; i++) {
        const trial_slot *slot = s < text->slots && text->slot[s].word == i ? &text->slot[s] : NULL;
        const char *word = text->written[i];
        if (slot && (which == AS_DRAW || number[s])) {
            const uint32_t x = which == AS_DRAW ? slot->draw[number[s]] : slot->option[number[s]];
            word = spellings[text->lexicon->spelled[x]].written[text->pattern[i]];
        }
        s += slot != NULL;
        end = stpcpy(stpcpy(end, word), text->gap[i + 1]);
    }
    return (size_t)(end - out);
}

int next_draw(const trial_text *text, size_t *number)
{
    for (size_t s = 0; s < text->slots; s++) {
        if (++number[s] < text->slot[s].drawn) return 1;
        number[s] = 0;
    }
    return 0;
}

int next_attack(const trial_text *text, size_t *number)
{
    for (size_t s = 0; s < text->slots; s++) {
        if (++number[s] < text->slot[s].options) return 1;
        number[s] = 0;
    }
    return 0;
}

void attack_numbers(size_t number[WORDS], const trial_text *text, size_t attack)
{
    for (size_t s = 0; s < text->slots; s++) {
        number[s] = attack % text->slot[s].options;
        attack /= text->slot[s].options;
    }
}
