/* `trial edits`: certificates against words put in, taken out or replaced. Small lexicons, chances and classifiers are
 * made up; every text that an attacker can make by edits and synonyms is tried, with every draw.
 *
 * Tokens are four words and numbers in texts of up to 4 tokens or, where the chance to be deleted depends on the length
 * (keep:1 to keep:7), two in texts of up to 8: so all texts and all draws of them have numbers, by length, then as
 * numbers of base 4 or 2. What a text is drawn to is computed once for all instances of a GROUP. By length the weights
 * of draws are too large for whole numbers: a class then falls when another leads by more than what was rounded. */
#define _GNU_SOURCE
#include "trial.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LETTERS = 4, LONGEST = 8, STRINGS = 511 };

static const char *const letters[LETTERS] = {"good", "fine", "film", "7"}; /* the last is no word */

typedef struct string {
    size_t length;
    int letter[LONGEST];
} string;

/* One lexicon and one chance to be deleted, in eighths, or by length. */
typedef struct world {
    safer_lexicon *lexicon;
    uint32_t eighths, keep;                   /* one of them is 0 */
    int letters, strings, first[LONGEST + 2]; /* first[n]: the number of the first string of n letters */
    size_t longest;
    int synonym[LETTERS][LETTERS];
    uint32_t weight[LETTERS][LETTERS], total[LETTERS];   /* kernels */
    long double drawn[STRINGS][STRINGS], whole[STRINGS]; /* [text][draw], and their sums: below 2^64 with eighths */
} world;

typedef struct instance {
    uint64_t number;
    int text; /* its number */
    size_t classes;
    safer_certify_options options;
    int8_t answer[STRINGS]; /* of every draw; -1: no label */
    char bytes[200];
    size_t length, strays; /* strays: texts that can not be drawn */
    const world *world;
} instance;

typedef struct counts {
    uint64_t instances, exact, sampled, certified, attackable, tight, tried;
    size_t wrong;
} counts;

static string string_of(const world *w, int number)
{
    string s = {0};
    while (number >= w->first[s.length + 1]) s.length++;
    number -= w->first[s.length];
    for (size_t i = s.length; i-- > 0; number /= w->letters) s.letter[i] = number % w->letters;
    return s;
}

/* -------------------------------------------------------------------- worlds */

static void read_kernel(world *w)
{
    uint32_t number[LETTERS];
    for (int x = 0; x < LETTERS; x++) number[x] = safer_lexicon_find(w->lexicon, letters[x], strlen(letters[x]));
    for (int x = 0; x < LETTERS; x++) {
        w->synonym[x][x] = 1;
        w->weight[x][x] = w->total[x] = 1;
        if (number[x] == SAFER_NO_WORD) continue;
        const safer_word word = safer_lexicon_word(w->lexicon, number[x]);
        w->weight[x][x] = 0;
        w->total[x] = word.total;
        for (int y = 0; y < w->letters; y++) {
            for (size_t i = 0; i < word.support_count; i++)
                if (word.support[i] == number[y]) w->weight[x][y] = word.weights[i];
            for (size_t i = 0; i < word.synonym_count; i++) w->synonym[x][y] |= word.synonyms[i] == number[y];
        }
    }
}

/* The chance to be deleted in a text of such a length, *out of what is returned (docs/edits.md). */
static uint64_t chance_of(uint64_t *out, const world *w, size_t length)
{
    const double kept = w->keep / (16 * sqrt((double)(length ? length : 1)));
    *out = w->eighths ? w->eighths : (UINT64_C(1) << 32) - (uint64_t)(0x1p32 * fmin(kept, 0.5));
    return w->eighths ? 8 : UINT64_C(1) << 32;
}

static void draw_everything(world *w)
{
    for (int number = 0; number < w->strings; number++) {
        const string s = string_of(w, number);
        uint64_t out, whole = chance_of(&out, w, s.length);
        long double *weights = w->drawn[number];
        memset(weights, 0, sizeof w->drawn[number]);
        weights[0] = w->whole[number] = 1;
        for (size_t i = 0; i < s.length; i++) {
            long double next[STRINGS] = {0};
            const int x = s.letter[i];
            for (int length = 0; length <= (int)i; length++)
                for (int d = w->first[length]; d < w->first[length + 1]; d++) {
                    next[d] += weights[d] * (long double)(out * w->total[x]);
                    for (int z = 0; z < w->letters; z++)
                        next[w->first[length + 1] + (d - w->first[length]) * w->letters + z] +=
                            weights[d] * (long double)((whole - out) * w->weight[x][z]);
                }
            memcpy(weights, next, sizeof next);
            w->whole[number] *= (long double)(whole * w->total[x]);
        }
    }
}

static void world_make(world *w, uint64_t seed, uint64_t number)
{
    static const char *const tables[] = {"good\tfine\n", "good\tfine\nfine\tfilm\n", "good\tfine film\n"};
    static const char *const plain = "film\tpicture\n"; /* of no letter but one */
    static const char *const kernels[] = {"topk:1", "topk:2", "topk:3", "component", "representative"};
    trial_random r = random_of(seed, 'W', number);
    safer_lexicon_free(w->lexicon);
    const int by_length = random_chance(&r, 25);
    *w = (world){.letters = by_length ? 2 : LETTERS, .longest = by_length ? 8 : 4};
    w->lexicon = trial_import(by_length ? random_chance(&r, 50) ? plain : tables[0] : tables[random_below(&r, 3)], NULL,
                              NULL, NULL, random_chance(&r, 30), kernels[random_below(&r, 5)]);
    if (by_length)
        w->keep = 1 + random_below(&r, 7);
    else
        w->eighths = 4 + random_below(&r, 4);
    for (size_t n = 0, strings = 1; n <= w->longest; n++, strings *= (size_t)w->letters)
        w->first[n + 1] = w->first[n] + (int)strings;
    w->strings = w->first[w->longest + 1];
    read_kernel(w);
    draw_everything(w);
}

/* --------------------------------------------------------------------- attacks */

/* The fewest edits of the kind that make `to` of `from` with at most so many synonyms besides; 99: none do. */
static int edits_between(const world *w, string from, string to, safer_edit_kind kind, size_t synonyms)
{
    enum { FAR = 99 };
    const int in = kind == SAFER_EDITS_ANY || kind == SAFER_EDITS_INSERT ? 1 : FAR;
    const int out = kind == SAFER_EDITS_ANY || kind == SAFER_EDITS_DELETE ? 1 : FAR;
    const int other = kind == SAFER_EDITS_ANY || kind == SAFER_EDITS_REPLACE ? 1 : FAR;
    int cost[LONGEST + 1][LONGEST + 1][LONGEST + 1]; /* [of from][of to][synonyms] */
    for (size_t i = 0; i <= from.length; i++)
        for (size_t j = 0; j <= to.length; j++)
            for (size_t k = 0; k <= LONGEST; k++) {
                int best = i || j ? FAR : 0, step;
                if (i && (step = cost[i - 1][j][k] + out) < best) best = step;
                if (j && (step = cost[i][j - 1][k] + in) < best) best = step;
                if (i && j) {
                    const int x = from.letter[i - 1], y = to.letter[j - 1];
                    if ((step = cost[i - 1][j - 1][k] + (x == y ? 0 : other)) < best) best = step;
                    if (k && w->synonym[x][y] && (step = cost[i - 1][j - 1][k - 1]) < best) best = step;
                }
                cost[i][j][k] = best;
            }
    return cost[from.length][to.length][synonyms < LONGEST ? synonyms : LONGEST];
}

/* The weights of the classes among the draws of a text. */
static void count_classes(long double weight[CLASSES], const instance *i, int text)
{
    memset(weight, 0, CLASSES * sizeof *weight);
    for (int d = 0; d < i->world->strings; d++)
        if (i->answer[d] >= 0) weight[i->answer[d]] += i->world->drawn[text][d];
}

/* Whether the class has more weight than all others; `rounded`: or less than so much less. */
static int wins(const long double weight[CLASSES], size_t classes, int class, long double rounded)
{
    for (size_t c = 0; c < classes; c++)
        if ((int)c != class && weight[c] >= weight[class] + rounded) return 0;
    return 1;
}

/* The fewest edits, of the instance's kind and beside its synonyms, that make the class fall; 99: none that was
 * tried. */
static int edits_to_fall(counts *n, const instance *i, int class, size_t synonyms)
{
    const string from = string_of(i->world, i->text);
    int fewest = 99;
    for (int to = 0; to < i->world->strings; to++) {
        long double weight[CLASSES];
        const int edits = edits_between(i->world, from, string_of(i->world, to), i->options.edit_kind, synonyms);
        if (edits >= fewest) continue;
        count_classes(weight, i, to);
        n->tried++;
        const long double rounded = i->world->keep ? 1e-15L * i->world->whole[to] : 0;
        if (!wins(weight, i->classes, class, rounded)) fewest = edits;
    }
    return fewest;
}

/* ------------------------------------------------------------------- instances */

static int compare_ratio(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (a[0] > b[0]) - (a[0] < b[0]);
}

/* The worst classifier for one attack, exactly or nearly (Neyman and Pearson); or noise. */
static void make_classifier(instance *i, trial_random *r)
{
    static double ranks[STRINGS][2];
    const world *w = i->world;
    const int y = (int)random_below(r, (uint32_t)i->classes), sharp = random_chance(r, 75);
    const uint32_t noise = random_below(r, 60), silent = random_chance(r, 10) ? 10 : 0;
    int to;
    do to = (int)random_below(r, (uint32_t)w->strings);
    while (edits_between(w, string_of(w, i->text), string_of(w, to), i->options.edit_kind, i->options.radius) >
           (int)i->options.edits);
    for (int d = 0; d < w->strings; d++) {
        const double before = (double)w->drawn[i->text][d], after = (double)w->drawn[to][d];
        ranks[d][0] = (before > 0 ? after / before : 1e30) * (1 + 1e-9 * random_unit(r));
        ranks[d][1] = d;
    }
    qsort(ranks, (size_t)w->strings, sizeof *ranks, compare_ratio);
    const long double half = random_chance(r, 60) ? w->whole[to] / 2
                                                  : w->whole[to] * (long double)(.45 + .1 * random_unit(r));
    long double sum = 0;
    for (int k = 0; k < w->strings; k++) {
        const int d = (int)ranks[k][1], fits = sum + w->drawn[to][d] <= half;
        const int other = (y + 1 + (int)random_below(r, (uint32_t)i->classes - 1)) % (int)i->classes;
        if (fits) sum += w->drawn[to][d];
        i->answer[d] = (int8_t)((sharp ? fits : !random_chance(r, noise)) ? y : other);
        if (silent && random_chance(r, silent)) i->answer[d] = -1;
    }
}

/* A text as it may be sent: what stands between tokens does not matter. */
static void write_text(instance *i, trial_random *r)
{
    static const char *const gaps[] = {" ", "  ", "\t", "\n", "\xc2\xa0", " \xe3\x80\x80"};
    const string s = string_of(i->world, i->text);
    char *end = i->bytes;
    for (size_t k = 0; k < s.length; k++) {
        const int glued = k && (s.letter[k] == LETTERS - 1) != (s.letter[k - 1] == LETTERS - 1) && random_chance(r, 30);
        end = stpcpy(stpcpy(end, k && !glued ? gaps[random_below(r, 6)] : ""), letters[s.letter[k]]);
    }
    i->length = (size_t)(end - i->bytes);
    *end = '\0';
}

static void instance_make(instance *i, const world *w, uint64_t number, uint64_t seed)
{
    trial_random r = random_of(seed, 'E', number);
    static const size_t radii[] = {1, 2, SAFER_ALL, SAFER_ALL};
    const int exact = random_chance(&r, 70);
    *i = (instance){.number = number, .world = w, .classes = 2 + random_below(&r, 2)};
    i->options = trial_certify_options(exact, &r);
    i->options.radius = radii[random_below(&r, 4)];
    i->options.unlabelled = 0;
    i->options.deletion = (safer_deletion){.chance = w->eighths / 8.0, .keep = w->keep};
    i->options.edit_kind = (safer_edit_kind)random_below(&r, 4);
    i->options.edits = 1 + random_below(&r, 3);
    const int longer = i->options.edit_kind == SAFER_EDITS_ANY || i->options.edit_kind == SAFER_EDITS_INSERT;
    const size_t most = longer ? w->longest - i->options.edits : w->longest; /* no text of an attacker is longer */
    i->text = (int)random_below(&r, (uint32_t)w->first[most + 1]);
    make_classifier(i, &r);
    write_text(i, &r);
}

/* The answer to a draw, whose tokens have one space between them. */
static int answer(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    instance *i = context;
    for (size_t k = 0; k < count; k++) {
        int number = 0, length = 0, known = 1;
        const char *at = texts[k], *end = at + lengths[k];
        while (at < end && known) {
            int x = 0;
            while (x < i->world->letters &&
                   ((size_t)(end - at) < strlen(letters[x]) || memcmp(at, letters[x], strlen(letters[x]))))
                x++;
            known = x < i->world->letters && ++length <= (int)i->world->longest;
            if (known) {
                number = number * i->world->letters + x;
                at += strlen(letters[x]);
                if (at < end) known = *at++ == ' ' && at < end;
            }
        }
        const int base = lengths[k] == i->length && memcmp(texts[k], i->bytes, i->length) == 0;
        labels[k] = known ? i->answer[i->world->first[length] + number] : 0;
        i->strays += !known && !base;
    }
    return 0;
}

/* -------------------------------------------------------------------- comparing */

/* By length: the worst of all numbers of tokens that the edits can take out and put in. */
static double worst_of(const instance *i, size_t length, size_t edits, double q)
{
    const safer_edit_kind kind = i->options.edit_kind;
    const size_t out = kind == SAFER_EDITS_INSERT ? 0 : edits < length ? edits : length;
    const size_t in = kind == SAFER_EDITS_DELETE ? 0 : edits;
    double worst = q;
    for (size_t a = 0; a <= out; a++)
        for (size_t b = 0; b <= in; b++) {
            uint64_t own, other;
            const double whole = (double)chance_of(&own, i->world, length), p = (double)own / whole;
            chance_of(&other, i->world, length - a + b);
            const double next = (double)other / whole, shared = (double)(b > a ? length : length - a + b);
            const double mx = shared * (p - next) * (p - next) / (p * (1 - p)), t = sqrt(mx / (1 - mx)) / 2;
            worst = fmax(worst, .5 + pow(p, (double)a) * (.5 / pow(next, (double)b) - 1 + q + fmin(t, 1)));
        }
    return fmin(worst, 1);
}

/* q of the edits, from the definition. */
static double q_of(const instance *i, size_t edits)
{
    const world *w = i->world;
    const string s = string_of(w, i->text);
    uint64_t out, whole = chance_of(&out, w, s.length);
    double kept[LONGEST], product = 1, p = (double)out / (double)whole, power = pow(p, (double)edits);
    for (size_t k = 0; k < s.length; k++) {
        double least = 1;
        for (int y = 0; y < w->letters; y++) {
            double shared = 0;
            for (int z = 0; z < w->letters; z++)
                shared += fmin((double)w->weight[s.letter[k]][z] / w->total[s.letter[k]],
                               (double)w->weight[y][z] / w->total[y]);
            if (w->synonym[s.letter[k]][y]) least = fmin(least, shared);
        }
        kept[k] = p + (1 - p) * least;
    }
    for (size_t k = 0; k < s.length; k++) /* the smallest first */
        for (size_t m = k + 1; m < s.length; m++)
            if (kept[m] < kept[k]) {
                const double swap = kept[k];
                kept[k] = kept[m];
                kept[m] = swap;
            }
    for (size_t k = 0; k < s.length && k < i->options.radius; k++) product *= kept[k];
    const double q = 1 - product;
    if (!edits) return q;
    if (w->keep && i->options.edit_kind != SAFER_EDITS_REPLACE) return worst_of(i, s.length, edits, q);
    if (i->options.edit_kind == SAFER_EDITS_DELETE) return fmax(q, .5 - power * (.5 - q));
    return i->options.edit_kind == SAFER_EDITS_INSERT ? fmin(1, .5 / power - .5 + q) : 1 - power * product;
}

static const char *check_claim(const instance *i, const safer_certificate *c)
{
    long double weight[CLASSES], rival = 0;
    count_classes(weight, i, i->text);
    if (i->strays) return "a draw that can not be";
    if (c->tokens != string_of(i->world, i->text).length) return "the number of tokens";
    if (c->edits > i->options.edits) return "more edits than were asked for";
    if (c->certified != (c->radius >= i->options.radius && c->edits >= i->options.edits))
        return "certified is not what radius and edits say";
    for (size_t e = 0; e <= i->options.edits; e++)
        if (c->q_edits[e] < q_of(i, e) - 1e-15 || c->q_edits[e] > q_of(i, e) + 1e-9) return "q of the edits";
    if (!c->exact) return NULL;
    for (size_t k = 0; k < i->classes; k++) {
        if (fabs(c->shares[k] - (double)(weight[k] / i->world->whole[i->text])) > 1e-12)
            return "a share is not the true one";
        if ((int)k != c->target && weight[k] > rival) rival = weight[k];
    }
    const double lead = (double)((weight[c->target] - rival) / i->world->whole[i->text]);
    if (c->edits < i->options.edits && lead > 2 * q_of(i, c->edits + 1) + 1e-9) return "more edits should be certified";
    return NULL;
}

static void try_instance(counts *n, trial_tally *tally, instance *i, const trial_options *options)
{
    static const char *const labels[] = {"zero", "one", "two"};
    safer_workspace *workspace = NULL;
    safer_certificate c;
    safer_error error;
    safer_model *model = NULL;
    safer_remote_options o = safer_remote_options_default();
    o.labels = labels;
    o.label_count = i->classes;
    o.model_name = "made up";
    o.function = 1;
    trial_expect(safer_model_from_callback(&model, answer, i, &o, &error), &error, "making a model");
    trial_expect(safer_certify_text(&c, &workspace, model, i->world->lexicon, i->bytes, i->length, -1, &i->options,
                                    &error),
                 &error, "certifying a text");
    if (options->fault == BREAK_EDITS && c.radius && c.edits < i->options.edits) {
        c.edits++;
        c.certified = c.radius >= i->options.radius && c.edits >= i->options.edits;
    }
    const char *wrong = check_claim(i, &c);
    const int fall = edits_to_fall(n, i, c.target, i->options.radius);
    const int broken = c.edits > 0 && fall <= (int)c.edits;
    if (c.exact && broken && !wrong) wrong = "CERTIFIED, BUT AN EDIT SUCCEEDS";
    n->exact += c.exact != 0;
    n->sampled += !c.exact;
    n->certified += c.edits > 0;
    n->attackable += fall <= (int)i->options.edits;
    n->tight += c.exact && c.edits < i->options.edits && fall == (int)c.edits + 1;
    if (!c.exact && fall <= (int)i->options.edits)
        trial_tally_add(tally, "can be edited: certified", i->options.delta, broken);
    if (wrong && n->wrong++ < 10)
        printf(
            "WRONG: instance %" PRIu64 ": %s\nagain: trial edits --seed %" PRIu64 " --first %" PRIu64
            " --instances 1\ntext \"%s\", %s, %zu of %zu edits, deletion %g or keep:%zu, falls with %d, bound %.17g\n",
            i->number, wrong, options->seed, i->number, i->bytes, safer_edit_kind_name(i->options.edit_kind), c.edits,
            i->options.edits, i->options.deletion.chance, i->options.deletion.keep, fall, c.bound);
    safer_workspace_free(workspace);
    safer_model_free(model);
}

size_t trial_edits(const trial_options *options)
{
    static world w;
    static instance i;
    static trial_tally tally;
    counts n = {0};
    const double start = trial_seconds();
    printf("trial edits: safer %s, seed %" PRIu64 ", instances %" PRIu64 " to %" PRIu64 "\n", safer_version(),
           options->seed, options->first, options->first + options->instances - 1);
    for (; n.instances < options->instances; n.instances++) {
        const uint64_t number = options->first + n.instances;
        if (!w.lexicon || number % GROUP == 0) world_make(&w, options->seed, number / GROUP);
        instance_make(&i, &w, number, options->seed);
        try_instance(&n, &tally, &i, options);
        trial_progress("edits", n.instances + 1, options->instances, start);
    }
    printf("exact %" PRIu64 ", sampled %" PRIu64 "; %" PRIu64 " certified against at least one edit, %" PRIu64
           " can be attacked with those asked for\n%" PRIu64
           " exact ones fall at the first number of edits that is not certified; %" PRIu64 " attacks tried\n",
           n.exact, n.sampled, n.certified, n.attackable, n.tight, n.tried);
    n.wrong += trial_tally_print(&tally);
    printf("%" PRIu64 " instances: %zu wrong\n", n.instances, n.wrong);
    safer_lexicon_free(w.lexicon);
    w.lexicon = NULL;
    return n.wrong;
}
