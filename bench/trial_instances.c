/* `trial instances`: made-up lexicons, texts and classifiers. Every instance has a number, from which all of it
 * follows; GROUP of them share a lexicon, which is costly to make. */
#include "trial.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { READ_BACK = 8 /* one in so many instances has an attacked text certified too */ };

typedef struct instance {
    uint64_t number;
    trial_text text;
    trial_table table;
    trial_truth truth;
    safer_certify_options options;
    int label;
} instance;

/* What happened. */
typedef struct counts {
    uint64_t instances, lexicons, records, read_back, draws;
    uint64_t exact, sampled, trivial;   /* trivial: no word can change */
    uint64_t all, some, none;           /* exact: certified against everything, up to a radius, not at all */
    uint64_t attackable, tight, border; /* exact: some attack succeeds; it does at the next radius; by a tie */
    uint64_t kinds[4];
    size_t wrong, shown; /* faults, and those that were shown in full */
} counts;

/* -------------------------------------------------------------------- making */

safer_certify_options trial_certify_options(int exact, trial_random *r)
{
    static const double deltas[] = {.2, .05, .01}, alphas[] = {.2, .05, .001};
    static const uint64_t ns[] = {30, 100, 300, 1000}, n0s[] = {5, 20, 100};
    static const size_t radii[] = {1, 2, 3, 5, SAFER_ALL, SAFER_ALL}, batches[] = {1, 7, 256};
    safer_certify_options o = safer_certify_options_default();
    o.method = exact ? SAFER_METHOD_ADAPTIVE : (safer_method)random_below(r, 3);
    o.n = exact ? TABLE : ns[random_below(r, 4)];
    o.n0 = n0s[random_below(r, 3)];
    o.delta = deltas[random_below(r, 3)];
    o.alpha = alphas[random_below(r, 3)];
    o.radius = radii[random_below(r, 6)];
    o.unlabelled = random_chance(r, 10);
    o.batch = batches[random_below(r, 3)];
    o.seed = random_bits(r) >> 1;
    o.threads = 1;
    return o;
}

safer_model *trial_model(trial_answers *answers)
{
    static const char *const labels[CLASSES] = {"zero", "one", "two", "three", "four"};
    safer_model *model = NULL;
    safer_error error;
    safer_remote_options o = safer_remote_options_default();
    o.labels = labels;
    o.label_count = answers->classes;
    o.cache = answers->salt % 4 == 0;
    o.batch = answers->salt % 3 == 0 ? 5 : 0;
    trial_expect(safer_model_from_callback(&model, trial_answers_callback, answers, &o, &error), &error,
                 "making a model");
    return model;
}

static void instance_make(instance *out, trial_answers *answers, const trial_lexicon *lexicon, uint64_t number,
                          uint64_t seed)
{
    static const size_t sizes[] = {30, 100, 300, 300, 1000, TABLE}, classes[] = {2, 2, 3, 3, 4};
    trial_random r = random_of(seed, 'I', number);
    const int exact = random_chance(&r, 60);
    out->number = number;
    const uint32_t words = 1 + random_below(&r, WORDS);
    trial_text_make(&out->text, lexicon, words < 3 ? words + random_below(&r, 3) : words, sizes[random_below(&r, 6)],
                    &r);
    trial_answers_begin(answers, classes[random_below(&r, 5)], random_bits(&r));
    trial_table_make(&out->table, answers, &out->text, &r);
    out->options = trial_certify_options(exact, &r);
    const uint32_t label = random_below(&r, 20);
    out->label = label < 15 ? out->table.favoured : label < 19 ? -1 : (int)random_below(&r, (uint32_t)answers->classes);
    trial_truth_find(&out->truth, &out->text, &out->table, answers->classes,
                     trial_answer(answers, out->text.bytes, out->text.length), out->text.slots);
    if (!exact && out->truth.draws > 1 && out->truth.draws <= out->options.n) /* it shall not be enumerated */
        out->options.n = out->truth.draws - 1;
}

/* ----------------------------------------------------------------- reporting */

static void print_text(const char *what, const char *text)
{
    printf("%s: \"", what);
    for (; *text; text++) printf(*text == '\n' ? "\\n" : *text == '\t' ? "\\t" : "%c", *text);
    printf("\"\n");
}

/* All that is needed to see the fault again. */
static void print_instance(const instance *i, const safer_certificate *c, uint64_t seed)
{
    const trial_truth *t = &i->truth;
    const safer_certify_options *o = &i->options;
    printf("again: trial instances --seed %" PRIu64 " --first %" PRIu64 " --instances 1\n", seed, i->number);
    trial_lexicon_print(stdout, i->text.lexicon);
    print_text("text", i->text.bytes);
    printf("classifier: %s for class %d, %zu classes; label %d\n", i->table.how, i->table.favoured, t->classes,
           i->label);
    printf("options: %s, n %" PRIu64 ", n0 %" PRIu64
           ", delta %g, alpha %g, radius %ld, unlabelled %d, batch %zu, seed %" PRIu64 "\n",
           safer_method_name(o->method), o->n, o->n0, o->delta, o->alpha, (long)o->radius, o->unlabelled, o->batch,
           o->seed);
    printf("certificate: words %zu, slots %zu, visible %zu, exact %d, base %d, prediction %d%s, target %d, n %" PRIu64
           ", bound %.17g, "
           "radius %ld, certified %d\n",
           c->words, c->slots, c->visible, c->exact, c->base, c->prediction, c->abstained ? " (abstained)" : "",
           c->target, c->n, c->bound, (long)c->radius, c->certified);
    printf("truth: words %zu, slots %zu, visible %zu, draws %" PRIu64 ", base %d, total %" PRIu64 "\n", t->words,
           t->slots, t->visible, t->draws, t->base, t->total);
    for (size_t k = 0; k < t->classes; k++) {
        size_t number[WORDS] = {0};
        char bytes[600];
        attack_numbers(number, &i->text, t->falls_at[k]);
        trial_text_write(bytes, &i->text, number, AS_ATTACK);
        printf("class %zu: weight %" PRIu64 ", said to be %.17g; changes that make it fall: %ld\n", k, t->weight[k],
               c->shares ? c->shares[k] : 0, (long)t->falls[k]);
        if (t->falls[k] != SIZE_MAX) print_text("  then it is", bytes);
    }
    for (size_t k = 1; k <= t->slots; k++)
        printf("%zu changed: shares move by %.17Lg at most, q should be %.17Lg\n", k, fraction_value(t->moved[k]),
               1 - fraction_value(t->kept[k]));
    for (size_t r = 0; r < SAFER_RADII; r++) printf("q[%zu] = %.17g\n", r, c->q[r]);
}

static void report_wrong(counts *n, const instance *i, const safer_certificate *c, const char *wrong, uint64_t seed)
{
    if (n->wrong++ < 10 || !n->shown) printf("WRONG: instance %" PRIu64 ": %s\n", i->number, wrong);
    if (!n->shown++) print_instance(i, c, seed);
    fflush(stdout);
}

/* ------------------------------------------------------------------ comparing */

static void count_exact(counts *n, const safer_certificate *c, const trial_truth *t)
{
    const size_t falls = t->falls[c->target];
    n->exact++;
    n->all += c->radius == SAFER_ALL;
    n->some += c->radius && c->radius != SAFER_ALL;
    n->none += !c->radius;
    n->attackable += falls != SIZE_MAX;
    if (c->radius != SAFER_ALL && trial_wins(t, 0, c->target) && falls == c->radius + 1) {
        const uint64_t *weight = t->shares + t->falls_at[c->target] * CLASSES;
        uint64_t rival = 0;
        for (size_t k = 0; k < t->classes; k++)
            if ((int)k != c->target && weight[k] > rival) rival = weight[k];
        n->tight++;
        n->border += rival == weight[c->target];
    }
}

/* Certifies a text that an attacker could send: it must be read as the attacker wrote it, and the class that was
 * certified must win. */
static const char *read_back(const instance *i, const safer_certificate *c, const safer_model *model,
                             safer_workspace **workspace, trial_random *r)
{
    const trial_truth *t = &i->truth;
    const size_t attack = random_below(r, (uint32_t)i->text.options);
    size_t number[WORDS] = {0}, changed = 0;
    char bytes[600];
    safer_certificate other;
    safer_error error;
    attack_numbers(number, &i->text, attack);
    for (size_t s = 0; s < i->text.slots; s++) changed += number[s] != 0;
    const int must_win = c->exact && c->radius && changed <= changes_of(t, c->radius);
    const int target = c->target;
    const size_t length = trial_text_write(bytes, &i->text, number, AS_ATTACK);
    trial_expect(safer_certify_text(&other, workspace, model, i->text.lexicon->lexicon, bytes, length, -1, &i->options,
                                    &error),
                 &error, "certifying an attacked text");
    if (!other.exact) return NULL;
    for (size_t k = 0; k < t->classes; k++)
        if (fabs(other.shares[k] - (double)t->shares[attack * CLASSES + k] / (double)t->totals[attack]) > 1e-12)
            return "an attacked text is not read as it was written";
    if (must_win && (other.prediction != target || other.abstained))
        return "the certified class does not win after an attack";
    return NULL;
}

static void try_instance(counts *n, trial_tally *tally, instance *i, trial_answers *answers,
                         const trial_options *options)
{
    safer_workspace *workspace = NULL;
    safer_certificate c;
    safer_error error;
    safer_model *model = trial_model(answers);
    trial_random r = random_of(options->seed, 'B', i->number);
    trial_expect(safer_certify_text(&c, &workspace, model, i->text.lexicon->lexicon, i->text.bytes, i->text.length,
                                    i->label, &i->options, &error),
                 &error, "certifying a text");
    trial_break_claim(&c, options->fault, &i->truth, &i->options);
    const char *wrong = trial_claim_check(&c, &i->truth, &i->options);
    if (wrong) report_wrong(n, i, &c, wrong, options->seed);
    n->trivial += !c.slots;
    if (c.exact) {
        count_exact(n, &c, &i->truth);
    } else {
        n->sampled++;
        trial_tally_claim(tally, &c, &i->truth, &i->options);
    }
    if (c.exact && random_below(&r, READ_BACK) == 0) {
        n->read_back++;
        wrong = read_back(i, &c, model, &workspace, &r);
        if (wrong) report_wrong(n, i, &c, wrong, options->seed);
    }
    safer_workspace_free(workspace);
    safer_model_free(model);
}

/* -------------------------------------------------------------------- drawing */

enum { DRAWS = 2000, FEW = 60 };

typedef struct drawing {
    const trial_text *text;
    char written[FEW][600];
    uint64_t count[FEW], stray;
} drawing;

static int count_draw(void *context, uint64_t index, const char *text, size_t length)
{
    drawing *d = context;
    (void)index;
    for (size_t i = 0; i < d->text->draws; i++)
        if (strlen(d->written[i]) == length && memcmp(d->written[i], text, length) == 0) return d->count[i]++, 0;
    d->stray++;
    return 0;
}

/* Whether the draws of a text have the distribution that its kernels say, jointly. */
static void try_draws(counts *n, const trial_lexicon *lexicon, uint64_t number, const trial_options *options)
{
    static drawing d;
    static trial_text text;
    trial_random r = random_of(options->seed, 'D', number);
    size_t draw[WORDS] = {0}, at = 0;
    safer_error error;
    trial_text_make(&text, lexicon, 3, FEW, &r);
    d = (drawing){.text = &text};
    do trial_text_write(d.written[at++], &text, draw, AS_DRAW);
    while (next_draw(&text, draw));
    trial_expect(safer_draw(lexicon->lexicon, text.bytes, text.length, (safer_stage)random_below(&r, 2),
                            random_bits(&r) >> 1, random_below(&r, 1000), DRAWS, count_draw, &d, &error),
                 &error, "drawing");
    n->draws += DRAWS;
    int wrong = d.stray > 0;
    at = 0;
    do {
        double p = 1;
        for (size_t s = 0; s < text.slots; s++) {
            const size_t option = options->fault == BREAK_DRAW && text.slot[s].options > 1;
            p *= (double)text.slot[s].weight[option][draw[s]] / text.slot[s].total[option];
        }
        const double chance = binomial_tail(d.count[at], DRAWS, p),
                     other = 1 - binomial_tail(d.count[at] + 1, DRAWS, p);
        wrong |= chance < 1e-11 || other < 1e-11;
        at++;
    } while (next_draw(&text, draw));
    if (!wrong) return;
    if (n->wrong++ < 10) printf("WRONG: the draws of \"%s\" with lexicon %" PRIu64 "\n", text.bytes, number);
    if (!n->shown++) trial_lexicon_print(stdout, lexicon);
}

/* ------------------------------------------------------------------ the trial */

static void add_kind(counts *n, const trial_lexicon *lexicon)
{
    static const char *const kinds[] = {"topk", "component", "representative", "any"};
    n->lexicons++;
    for (size_t k = 0; k < 4; k++) n->kinds[k] += strcmp(kinds[k], lexicon->kind) == 0;
}

static double percent(uint64_t part, uint64_t whole) { return whole ? 100.0 * (double)part / (double)whole : 0; }

static void print_counts(const counts *n)
{
    printf("lexicons    %" PRIu64 ": topk %" PRIu64 ", component %" PRIu64 ", representative %" PRIu64
           ", any weights %" PRIu64 "\n",
           n->lexicons, n->kinds[0], n->kinds[1], n->kinds[2], n->kinds[3]);
    printf("exact       %" PRIu64 ": %.1f%% certified against all changes, %.1f%% up to a radius, %.1f%% not at all\n",
           n->exact, percent(n->all, n->exact), percent(n->some, n->exact), percent(n->none, n->exact));
    printf("            %.1f%% can be attacked; %.1f%% win and fall at the first radius that is not certified, ",
           percent(n->attackable, n->exact), percent(n->tight, n->exact));
    printf("%.1f%% by a tie\n", percent(n->border, n->exact));
    printf("sampled     %" PRIu64 ";  texts without slots %" PRIu64 ";  attacked texts certified too %" PRIu64
           ";  draws compared %" PRIu64 "\n",
           n->sampled, n->trivial, n->read_back, n->draws);
    printf("records     %" PRIu64 " written, compared, and verified with and without the model\n", n->records);
}

size_t trial_instances(const trial_options *options)
{
    static instance i;
    static trial_tally tally;
    trial_lexicon lexicon = {0};
    trial_answers answers = {.lie = options->fault == BREAK_ANSWER ? 200 : 0};
    counts n = {0};
    const double start = trial_seconds();
    printf("trial instances: safer %s, seed %" PRIu64 ", instances %" PRIu64 " to %" PRIu64 "\n", safer_version(),
           options->seed, options->first, (options->first + options->instances - 1));
    for (; n.instances < options->instances; n.instances++) {
        const uint64_t number = options->first + n.instances;
        if (!lexicon.lexicon || number % GROUP == 0) {
            trial_lexicon_clear(&lexicon);
            trial_lexicon_make(&lexicon, options->seed, number / GROUP);
            add_kind(&n, &lexicon);
            try_draws(&n, &lexicon, number / GROUP, options);
            n.records += trial_run(&lexicon, number / GROUP, options, &tally, &n.wrong);
        }
        instance_make(&i, &answers, &lexicon, number, options->seed);
        try_instance(&n, &tally, &i, &answers, options);
        trial_progress("instances", n.instances + 1, options->instances, start);
    }
    print_counts(&n);
    n.wrong += trial_tally_print(&tally);
    printf("%" PRIu64 " instances and %" PRIu64 " records: %zu wrong (%.0f s, %.0f instances per second, seed %" PRIu64
           ")\n",
           n.instances, n.records, n.wrong, trial_seconds() - start, (double)n.instances / (trial_seconds() - start),
           options->seed);
    trial_lexicon_clear(&lexicon);
    trial_answers_free(&answers);
    trial_truth_free(&i.truth);
    return n.wrong;
}
