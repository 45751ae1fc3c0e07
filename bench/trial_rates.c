/* `trial rates`: texts on the border.
 *
 * A text has `slots` words xx, each with one synonym yy. xx draws cc with weight K-1 and aa with weight 1, yy draws bb
 * in place of aa: the overlap is (K-1)/K. The model answers class 0 when it sees aa in one of the first `reach` words,
 * class 1 when it sees bb there, and otherwise at random, class k with probability rho_k, anew for every query: it is
 * a model that disagrees with itself, and is declared as such. With q = 1 - ((K-1)/K)^reach,
 *
 *     g(X, 0) = q + (1-q) rho_0,   g(X, k) = (1-q) rho_k,
 *
 * and after `reach` words have changed to yy, class 1 gets the q that class 0 had. rho_0 - rho_1 = q / (1-q) makes that
 * a tie, so the text can be attacked, and g(X, 0) - g(X, 1) is exactly 2 q: a certificate at radius `reach` or beyond
 * is wrong, and nowhere is it more likely. K = 0 stands for a synonym with the same kernel: q = 0, and X itself is
 * a tie. The mass that remains goes to class 1 alone, or evenly to all other classes ("even").
 *
 * An error of a cell is a certificate at radius `reach` or beyond, whatever smaller ones may be right. */
#include "trial.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct border {
    size_t classes, slots, reach;
    uint32_t parts; /* K */
    int even;
    int label; /* 0: certifies class 0; -1: the prediction, which is wrong too where X is a tie of all classes */
} border;

static const border borders[] = {
    {2, 1, 1, 0, 0, 0},  {2, 1, 1, 20, 0, 0}, {2, 1, 1, 5, 0, 0},  {2, 1, 1, 0, 0, -1}, {3, 1, 1, 0, 0, 0},
    {3, 1, 1, 20, 0, 0}, {3, 1, 1, 5, 0, 0},  {3, 1, 1, 0, 1, 0},  {3, 1, 1, 20, 1, 0}, {3, 1, 1, 5, 1, 0},
    {3, 1, 1, 0, 1, -1}, {5, 1, 1, 0, 0, 0},  {5, 1, 1, 20, 0, 0}, {5, 1, 1, 5, 0, 0},  {5, 1, 1, 0, 1, 0},
    {5, 1, 1, 20, 1, 0}, {5, 1, 1, 5, 1, 0},  {2, 6, 1, 50, 0, 0}, {2, 6, 3, 50, 0, 0}, {2, 6, 6, 50, 0, 0},
    {3, 6, 3, 50, 1, 0},
};
enum { BORDERS = sizeof borders / sizeof *borders };

static const struct {
    safer_method method;
    uint64_t n;
} methods[] = {{SAFER_METHOD_ADAPTIVE, 5000},
               {SAFER_METHOD_ADAPTIVE, 300},
               {SAFER_METHOD_BINOMIAL, 1000},
               {SAFER_METHOD_HOEFFDING, 1000}};
enum { METHODS = sizeof methods / sizeof *methods };

static const double levels[] = {.2, .01};
enum { LEVELS = 2 };

/* -------------------------------------------------------------------- model */

typedef struct noisy_model {
    size_t reach, classes;
    double below[CLASSES]; /* class k for random numbers below this; rising */
    double noise;          /* instead: an answer by the text's bytes, and in this share of the queries another one */
    trial_random random;
} noisy_model;

static int noisy_answer(noisy_model *m, const char *text)
{
    const double u = random_unit(&m->random);
    int class = 0;
    for (size_t s = 0; s < m->reach; s++) {
        if (text[3 * s] == 'a') return 0;
        if (text[3 * s] == 'b') return 1;
    }
    while (class + 1 < (int)m->classes && u >= m->below[class]) class ++;
    return class;
}

static int noisy_callback(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    (void)lengths;
    for (size_t i = 0; i < count; i++) labels[i] = noisy_answer(context, texts[i]);
    return 0;
}

static safer_model *model_of(void *context, size_t classes, safer_classify classify, int random)
{
    static const char *const labels[CLASSES] = {"zero", "one", "two", "three", "four"};
    safer_model *model = NULL;
    safer_error error;
    safer_remote_options o = safer_remote_options_default();
    o.labels = labels;
    o.label_count = classes;
    o.random = random;
    trial_expect(safer_model_from_callback(&model, classify, context, &o, &error), &error, "making a model");
    return model;
}

/* ------------------------------------------------------------------ lexicon */

static void set_row(kernel_row *row, uint32_t a, uint32_t weight_a, uint32_t b, uint32_t weight_b)
{
    const int swap = weight_b && b < a;
    *row = (kernel_row){.count = weight_b ? 2 : 1, .total = weight_a + weight_b};
    row->words[swap] = a;
    row->weights[swap] = weight_a;
    if (!weight_b) return;
    row->words[!swap] = b;
    row->weights[!swap] = weight_b;
}

/* The words of the head of this file; K = 0: the same kernel for xx and yy. */
static safer_lexicon *border_lexicon(uint32_t parts)
{
    static const char *const words[] = {"xx", "yy", "cc", "aa", "bb"};
    enum { X, Y, C, A, B };
    kernel_row rows[5];
    uint32_t id[5];
    safer_lexicon *table = trial_import("xx\tyy\ncc\taa bb\n", NULL, NULL, NULL, 0, "component"), *lexicon;
    for (size_t i = 0; i < 5; i++) id[i] = safer_lexicon_find(table, words[i], 2);
    for (size_t i = 0; i < 5; i++) set_row(&rows[id[i]], id[i], 1, 0, 0);
    set_row(&rows[id[X]], id[C], parts ? parts - 1 : 1, id[A], parts ? 1 : 0);
    set_row(&rows[id[Y]], id[C], parts ? parts - 1 : 1, id[B], parts ? 1 : 0);
    lexicon = trial_lexicon_with_rows(table, rows);
    safer_lexicon_free(table);
    return lexicon;
}

static double q_of(const border *b) { return b->parts ? -expm1((double)b->reach * log1p(-1.0 / (double)b->parts)) : 0; }

static noisy_model border_model(const border *b, trial_random random)
{
    const double q = q_of(b), lead = q / (1 - q);
    const size_t rivals = b->even ? b->classes - 1 : 1;
    const double rival = (1 - lead) / (double)(rivals + 1);
    noisy_model m = {.reach = b->reach, .classes = b->classes, .random = random};
    m.below[0] = rival + lead;
    for (size_t k = 1; k < CLASSES; k++) m.below[k] = k <= rivals ? m.below[k - 1] + rival : 1;
    m.below[rivals] = 1; /* whatever the sum was rounded to */
    return m;
}

/* ------------------------------------------------------------- certificates */

/* Certifies many texts on the border; counts the errors. `seen` adds the draws made. */
static trial_rate border_rate(const border *b, size_t method, double level, uint64_t number,
                              const trial_options *options, double *seen)
{
    safer_lexicon *lexicon = border_lexicon(b->parts);
    noisy_model noisy = border_model(b, random_of(options->seed, 'N', number));
    safer_model *model = model_of(&noisy, b->classes, noisy_callback, 1);
    safer_workspace *workspace = NULL;
    safer_certify_options o = safer_certify_options_default();
    trial_rate rate = {.level = level};
    o.method = methods[method].method;
    o.n = methods[method].n;
    o.n0 = b->label < 0 ? 50 : 1;
    o.delta = options->fault == BREAK_DELTA ? 4 * level : level;
    o.threads = 1;
    o.seed = options->seed;
    for (; rate.cases < options->texts; rate.cases++) {
        char text[60];
        size_t length = 0;
        safer_certificate c;
        safer_error error;
        for (size_t s = 0; s < b->slots; s++) length += (size_t)sprintf(text + length, "xx ");
        length += (size_t)sprintf(text + length, "%" PRIu64, number * 1000000000 + rate.cases);
        trial_expect(safer_certify_text(&c, &workspace, model, lexicon, text, length, b->label, &o, &error), &error,
                     "certifying a text");
        if (c.exact) trial_stop("an exact certificate of a model that is declared random");
        if (fabs(c.q[SAFER_RADII - 1] - (b->parts ? -expm1((double)b->slots * log1p(-1.0 / (double)b->parts)) : 0)) >
            1e-9)
            trial_stop("q is %.17g", c.q[SAFER_RADII - 1]);
        rate.errors += c.radius >= b->reach;
        *seen += (double)c.n;
    }
    safer_workspace_free(workspace);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
    return rate;
}

static void print_border(const border *b)
{
    char radius[60] = "";
    if (b->slots > 1) snprintf(radius, sizeof radius, ", radius %zu of %zu", b->reach, b->slots);
    printf("| %zu%s%s | %.4g%s |", b->classes,
           b->classes < 3 ? ""
           : b->even      ? ", even"
                          : ", one rival",
           b->label < 0 ? ", the prediction" : "", q_of(b), radius);
}

/* A share, its upper limit, and a mark when it is too high. */
static size_t print_rate(const trial_rate *rate)
{
    const int wrong = trial_rate_is_wrong(rate);
    printf(" %.4f (%.4f)%s |", (double)rate->errors / (double)rate->cases,
           binomial_upper(rate->errors, rate->cases, .001), wrong ? " WRONG" : "");
    fflush(stdout);
    return (size_t)wrong;
}

static size_t try_borders(const trial_options *options, uint64_t *done, uint64_t total, double start)
{
    size_t wrong = 0;
    for (size_t l = 0; l < LEVELS; l++) {
        double seen[METHODS] = {0};
        printf("\nTexts on the border that received a certificate, delta = %g: share (99.9%% upper limit)\n\n"
               "| classes | q |",
               levels[l]);
        for (size_t m = 0; m < METHODS; m++)
            printf(" %s, n = %" PRIu64 " |", safer_method_name(methods[m].method), methods[m].n);
        printf("\n|---|---|---|---|---|---|\n");
        for (size_t b = 0; b < BORDERS; b++) {
            print_border(&borders[b]);
            for (size_t m = 0; m < METHODS; m++) {
                const uint64_t number = (l * BORDERS + b) * METHODS + m;
                const trial_rate rate = border_rate(&borders[b], m, levels[l], number, options, &seen[m]);
                wrong += print_rate(&rate);
                trial_progress("rates", ++*done, total, start);
            }
            printf("\n");
        }
        printf("| mean number of draws | |");
        for (size_t m = 0; m < METHODS; m++) printf(" %.0f |", seen[m] / (double)(options->texts * BORDERS));
        printf("\n");
    }
    return wrong;
}

/* -------------------------------------------------------------------- votes */

/* Classes with these probabilities (the rest is no label); `winners` of them have the most. */
typedef struct contest {
    const char *name;
    size_t classes;
    double p[CLASSES];
} contest;

static const contest contests[] = {
    {"2, tied", 2, {.5, .5}},
    {"3, all tied", 3, {1 / 3., 1 / 3., 1 / 3.}},
    {"3, two tied, the third never", 3, {.5, 0, .5}},
    {"3, two tied, the third 0.2", 3, {.4, .2, .4}},
    {"5, all tied", 5, {.2, .2, .2, .2, .2}},
    {"5, three tied", 5, {.3, .05, .3, .05, .3}},
    {"5, two tied, the others never", 5, {0, .5, 0, 0, .5}},
    {"2, tied, half of the answers no label", 2, {.25, .25}},
    {"2, 0.51 to 0.49", 2, {.51, .49}},
    {"5, 0.22 to 0.195 each", 5, {.195, .195, .22, .195, .195}},
};
enum { CONTESTS = sizeof contests / sizeof *contests };

static int contest_callback(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    noisy_model *m = context;
    (void)texts, (void)lengths;
    for (size_t i = 0; i < count; i++) {
        const double u = random_unit(&m->random);
        labels[i] = 0;
        while (labels[i] < (int)m->classes && u >= m->below[labels[i]]) labels[i]++;
        if (labels[i] == (int)m->classes) labels[i] = -1;
    }
    return 0;
}

/* The class that is ahead of all others, or -1. */
static int winner_of(const contest *c)
{
    for (size_t k = 0; k < c->classes; k++) {
        int wins = 1;
        for (size_t other = 0; other < c->classes; other++) wins &= other == k || c->p[k] > c->p[other];
        if (wins) return (int)k;
    }
    return -1;
}

static trial_rate contest_rate(const contest *c, uint64_t n0, double level, uint64_t number,
                               const trial_options *options, uint64_t *answered)
{
    safer_lexicon *lexicon = border_lexicon(20);
    noisy_model noisy = {.classes = c->classes, .random = random_of(options->seed, 'V', number)};
    safer_model *model = model_of(&noisy, c->classes, contest_callback, 1);
    safer_workspace *workspace = NULL;
    safer_certify_options o = safer_certify_options_default();
    trial_rate rate = {.level = level};
    double sum = 0;
    for (size_t k = 0; k < c->classes; k++) noisy.below[k] = sum += c->p[k];
    if (sum > 1 - 1e-9) noisy.below[c->classes - 1] = 1;
    o.method = SAFER_METHOD_BINOMIAL; /* the certificate does not matter here: one draw */
    o.n = 1;
    o.n0 = n0;
    o.alpha = options->fault == BREAK_DELTA ? 4 * level : level;
    o.threads = 1;
    for (; rate.cases < options->texts; rate.cases++) {
        char text[40];
        safer_certificate out;
        safer_error error;
        const size_t length = (size_t)sprintf(text, "xx %" PRIu64, number * 1000000000 + rate.cases);
        trial_expect(safer_certify_text(&out, &workspace, model, lexicon, text, length, -1, &o, &error), &error,
                     "voting");
        *answered += !out.abstained;
        rate.errors += !out.abstained && out.prediction != winner_of(c);
    }
    safer_workspace_free(workspace);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
    return rate;
}

static size_t try_votes(const trial_options *options, uint64_t *done, uint64_t total, double start)
{
    static const uint64_t n0s[] = {100, 1000};
    size_t wrong = 0;
    printf("\nVotes that answered a class that is not the only winner: share (99.9%% upper limit)\n\n| classes |");
    for (size_t l = 0; l < LEVELS; l++)
        for (size_t n = 0; n < 2; n++) printf(" alpha = %g, n0 = %" PRIu64 " |", levels[l], n0s[n]);
    printf("\n|---|---|---|---|---|\n");
    for (size_t c = 0; c < CONTESTS; c++) {
        uint64_t answered = 0;
        printf("| %s |", contests[c].name);
        for (size_t l = 0; l < LEVELS; l++)
            for (size_t n = 0; n < 2; n++) {
                const uint64_t number = (c * LEVELS + l) * 2 + n;
                const trial_rate rate = contest_rate(&contests[c], n0s[n], levels[l], number, options, &answered);
                wrong += print_rate(&rate);
                trial_progress("rates", ++*done, total, start);
            }
        printf("\n");
    }
    return wrong;
}

/* ----------------------------------------------- noise that is not declared */

/* An answer by the text's bytes; in some of the queries another one. */
static int undeclared_callback(void *context, const char *const *texts, const size_t *lengths, size_t count,
                               int *labels)
{
    noisy_model *m = context;
    for (size_t i = 0; i < count; i++) {
        trial_random r = random_of(lengths[i], (unsigned char)texts[i][0], (unsigned char)texts[i][lengths[i] / 2]);
        labels[i] = (int)random_below(&r, 2);
        if (random_unit(&m->random) < m->noise) labels[i] = 1 - labels[i];
    }
    return 0;
}

/* What becomes of models that are random and do not say so: it is for the reader, nothing is asserted. */
static void try_undeclared(const trial_options *options)
{
    static const double noises[] = {.5, .1, .01, .001};
    const uint64_t models = options->texts / 20 + 1;
    safer_lexicon *lexicon = trial_import("ant\tbee cat dog eel fox gnu hen ibis jay\n", NULL, NULL, NULL, 0,
                                          "component");
    static const char text[] = "ant bee";
    printf("\nModels that answer at random and do not say so; texts of 100 draws, all of them enumerated\n\n"
           "| share of answers that are changed | refused, or found to be random | exact |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof noises / sizeof *noises; i++) {
        uint64_t found = 0, exact = 0;
        for (uint64_t number = 0; number < models; number++) {
            noisy_model noisy = {.classes = 2, .noise = noises[i], .random = random_of(options->seed, 'U' + i, number)};
            safer_model *model = model_of(&noisy, 2, undeclared_callback, 0);
            safer_workspace *workspace = NULL;
            safer_certificate c;
            const safer_status status = safer_certify_text(&c, &workspace, model, lexicon, text, sizeof text - 1, 0,
                                                           NULL, NULL);
            if (status == SAFER_OK && c.exact)
                exact++;
            else
                found++;
            safer_workspace_free(workspace);
            safer_model_free(model);
        }
        printf("| %g | %" PRIu64 " | %" PRIu64 " |\n", noises[i], found, exact);
    }
    safer_lexicon_free(lexicon);
}

size_t trial_rates(const trial_options *options)
{
    const double start = trial_seconds();
    const uint64_t total = LEVELS * (BORDERS * METHODS + 2 * CONTESTS);
    uint64_t done = 0;
    printf("trial rates: safer %s, seed %" PRIu64 ", %" PRIu64 " texts per cell\n", safer_version(), options->seed,
           options->texts);
    size_t wrong = try_borders(options, &done, total, start);
    wrong += try_votes(options, &done, total, start);
    try_undeclared(options);
    printf("\n%" PRIu64 " cells of %" PRIu64 " texts: %zu too high (chance below 1e-6); %.0f s, seed %" PRIu64 "\n",
           done, options->texts, wrong, trial_seconds() - start, options->seed);
    return wrong;
}
