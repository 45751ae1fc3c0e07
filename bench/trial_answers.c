/* Made-up classifiers: tables of texts and their classes, from noise to the worst that the theory allows. */
#include "trial.h"

#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------- table */

static uint64_t hash_of(const char *text, size_t length, uint64_t salt)
{
    uint64_t h = 0xcbf29ce484222325 ^ salt; /* FNV-1a, then mixed */
    for (size_t i = 0; i < length; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3;
    trial_random r = {h};
    h = random_bits(&r);
    return h ? h : 1;
}

void trial_answers_begin(trial_answers *a, size_t classes, uint64_t salt)
{
    a->classes = classes;
    a->salt = salt;
    a->count = 0;
    if (a->keys) memset(a->keys, 0, a->capacity * sizeof *a->keys);
}

void trial_answers_free(trial_answers *a)
{
    free(a->keys);
    free(a->values);
    *a = (trial_answers){0};
}

static size_t place_of(const trial_answers *a, uint64_t key)
{
    size_t at = key & (a->capacity - 1);
    while (a->keys[at] && a->keys[at] != key) at = (at + 1) & (a->capacity - 1);
    return at;
}

static void make_room(trial_answers *a)
{
    if (2 * (a->count + 1) <= a->capacity) return;
    trial_answers more = *a;
    more.capacity = a->capacity ? 2 * a->capacity : 1 << 10;
    more.keys = calloc(more.capacity, sizeof *more.keys);
    more.values = calloc(more.capacity, sizeof *more.values);
    if (!more.keys || !more.values) trial_stop("out of memory");
    for (size_t i = 0; i < a->capacity; i++) {
        if (!a->keys[i]) continue;
        const size_t at = place_of(&more, a->keys[i]);
        more.keys[at] = a->keys[i];
        more.values[at] = a->values[i];
    }
    free(a->keys);
    free(a->values);
    *a = more;
}

/* Enters an answer unless there is one; returns the one that counts. */
static int8_t enter(trial_answers *a, const char *text, size_t length, int8_t answer)
{
    make_room(a);
    const uint64_t key = hash_of(text, length, a->salt);
    const size_t at = place_of(a, key);
    if (a->keys[at]) return a->values[at];
    a->keys[at] = key;
    a->values[at] = answer;
    a->count++;
    return answer;
}

int trial_answer(const trial_answers *a, const char *text, size_t length)
{
    const uint64_t key = hash_of(text, length, a->salt);
    if (a->count) {
        const size_t at = place_of(a, key);
        if (a->keys[at]) return a->values[at];
    }
    return (int)((key >> 8) % a->classes);
}

int trial_answers_callback(void *answers, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    const trial_answers *a = answers;
    for (size_t i = 0; i < count; i++) {
        labels[i] = trial_answer(a, texts[i], lengths[i]);
        if (a->lie && hash_of(texts[i], lengths[i], 1) % (uint64_t)a->lie == 0)
            labels[i] = (labels[i] + 1) % (int)a->classes;
    }
    return 0;
}

/* -------------------------------------------------------------- classifiers */

/* A draw, and how it is ranked. */
typedef struct ranked {
    double key;
    uint32_t draw;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static uint64_t weight_at(const trial_text *t, const size_t *draw, const size_t *attack)
{
    uint64_t weight = 1;
    for (size_t s = 0; s < t->slots; s++) weight *= t->slot[s].weight[attack ? attack[s] : 0][draw[s]];
    return weight;
}

static int other_class(int than, size_t classes, trial_random *r)
{
    return (than + 1 + (int)random_below(r, (uint32_t)classes - 1)) % (int)classes;
}

/* An attack that changes at least one word where one can change, and often few. */
static void choose_attack(size_t attack[WORDS], const trial_text *t, trial_random *r)
{
    const uint32_t eager = random_chance(r, 50) ? 100 : 40;
    size_t changed = 0;
    for (size_t s = 0; s < t->slots; s++) {
        const uint32_t options = (uint32_t)t->slot[s].options;
        attack[s] = options > 1 && random_chance(r, eager) ? 1 + random_below(r, options - 1) : 0;
        changed += attack[s] != 0;
    }
    for (size_t s = 0; s < t->slots && !changed; s++)
        if (t->slot[s].options > 1) changed += attack[s] = 1;
}

/* The worst classifier for one attack (Neyman and Pearson): class y gets the draws that the attack makes least likely
 * compared with the text, until it has half of the attacked text's draws, exactly if that can be. So y leads by as
 * much as it can, and yet does not win after the attack. Now and then it gets a little more or less than half. */
static void make_sharp(trial_table *out, const trial_text *t, size_t classes, trial_random *r)
{
    static ranked ranks[TABLE];
    static uint64_t after[TABLE];
    size_t attack[WORDS] = {0}, draw[WORDS] = {0}, count = 0;
    uint64_t total = 1, sum = 0;
    const int y = out->favoured, rival = other_class(y, classes, r), scattered = classes > 2 && random_chance(r, 30);
    choose_attack(attack, t, r);
    for (size_t s = 0; s < t->slots; s++) total *= t->slot[s].total[attack[s]];
    do {
        const double before = (double)weight_at(t, draw, NULL);
        after[count] = weight_at(t, draw, attack);
        ranks[count].key = (before > 0 ? (double)after[count] / before : 1e30) * (1 + 1e-9 * random_unit(r));
        ranks[count].draw = (uint32_t)count;
        count++;
    } while (next_draw(t, draw));
    qsort(ranks, count, sizeof *ranks, compare_ranked);
    const uint64_t half = random_chance(r, 60) ? total / 2 : (uint64_t)((double)total * (.46 + .08 * random_unit(r)));
    for (size_t i = 0; i < count; i++) {
        const uint32_t z = ranks[i].draw;
        const int fits = sum + after[z] <= half;
        if (fits) sum += after[z];
        out->answer[z] = (int8_t)(fits ? y : scattered ? other_class(y, classes, r) : rival);
    }
    out->how = "sharp";
}

/* A sum of scores of words, cut into classes. */
static void make_linear(trial_table *out, const trial_text *t, size_t classes, trial_random *r)
{
    double score[WORDS][DRAWN];
    size_t draw[WORDS] = {0}, count = 0;
    const double bias = random_unit(r) - .2;
    for (size_t s = 0; s < WORDS; s++)
        for (size_t d = 0; d < DRAWN; d++) score[s][d] = random_unit(r) - .5;
    do {
        double sum = bias;
        for (size_t s = 0; s < t->slots; s++) sum += score[s][draw[s]];
        const int other = (out->favoured + 1 + (sum < -.6)) % (int)classes;
        out->answer[count++] = (int8_t)(sum >= 0 ? out->favoured : other);
    } while (next_draw(t, draw));
    out->how = "linear";
}

/* Noise: the favoured class with some probability, else any. */
static void make_noise(trial_table *out, const trial_text *t, size_t classes, trial_random *r)
{
    static const uint32_t shares[] = {0, 30, 55, 75, 90, 97, 100};
    const uint32_t share = shares[random_below(r, sizeof shares / sizeof *shares)];
    for (size_t i = 0; i < t->draws; i++)
        out->answer[i] = (int8_t)(random_chance(r, share) ? (uint32_t)out->favoured
                                                          : random_below(r, (uint32_t)classes));
    out->how = "noise";
}

/* One slot decides. */
static void make_key_word(trial_table *out, const trial_text *t, size_t classes, trial_random *r)
{
    int8_t by_word[DRAWN];
    size_t draw[WORDS] = {0}, count = 0;
    const size_t decides = t->slots ? random_below(r, (uint32_t)t->slots) : 0;
    for (size_t d = 0; d < DRAWN; d++)
        by_word[d] = (int8_t)(random_chance(r, 70) ? out->favoured : other_class(out->favoured, classes, r));
    do out->answer[count++] = by_word[draw[decides]];
    while (next_draw(t, draw));
    out->how = "key word";
}

void trial_table_make(trial_table *out, trial_answers *a, const trial_text *text, trial_random *r)
{
    static void (*const kinds[])(trial_table *, const trial_text *, size_t, trial_random *) = {
        make_sharp, make_sharp, make_sharp, make_linear, make_noise, make_key_word};
    const uint32_t silent = random_chance(r, 12) ? 10 : 0; /* some answers are no label */
    size_t draw[WORDS] = {0}, count = 0;
    char bytes[600];
    out->favoured = (int)random_below(r, (uint32_t)a->classes);
    kinds[random_below(r, sizeof kinds / sizeof *kinds)](out, text, a->classes, r);
    do {
        const size_t length = trial_text_write(bytes, text, draw, AS_DRAW);
        const int none = silent && random_chance(r, silent);
        out->answer[count] = enter(a, bytes, length, none ? -1 : out->answer[count]);
        count++;
    } while (next_draw(text, draw));
}
