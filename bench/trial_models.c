/* `trial models`: models that safer trains, on made-up texts.
 *
 * Two kinds of certificates are compared with the truth. Exact ones of the smoothed model: every draw is written out
 * and classified on its own, so that the fast paths of the models, and what they say about slots that they cannot see,
 * are part of the trial. And bounds of the model itself (ibp): every text that an attacker can make is classified; the
 * answer must stay, and the target's lead in logits may never be below the margin. */
#define _GNU_SOURCE
#include "trial.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TEXTS = 40 /* of a model */,
    TRAINING = 150,
    DRAWS = 1000,
    CHARACTERS = 123 /* read by a charcnn: no fewer can be */
};

/* What is trained; a sum has two members, the second canonical. */
static const struct kind {
    const char *name;
    safer_arch arch;
    safer_pool pool;
    const char *widths;
    int hidden, max_words;
    safer_defense defense;
} kinds[] = {
    {"ngram", SAFER_ARCH_NGRAM, SAFER_POOL_DEFAULT, NULL, 0, 0, SAFER_DEFENSE_NONE},
    {"bow", SAFER_ARCH_BOW, SAFER_POOL_MEAN, NULL, 5, 0, SAFER_DEFENSE_NONE},
    {"bow, first 3 words", SAFER_ARCH_BOW, SAFER_POOL_MAX, NULL, 5, 3, SAFER_DEFENSE_NONE},
    {"cnn", SAFER_ARCH_CNN, SAFER_POOL_MEAN, "2", 5, 0, SAFER_DEFENSE_NONE},
    {"cnn, first 3 words", SAFER_ARCH_CNN, SAFER_POOL_MAX, "1,3", 5, 3, SAFER_DEFENSE_NONE},
    {"bow, ibp-jia", SAFER_ARCH_BOW, SAFER_POOL_MEAN, NULL, 5, 0, SAFER_DEFENSE_IBP_JIA},
    {"cnn, ibp-jia", SAFER_ARCH_CNN, SAFER_POOL_MEAN, "2", 5, 0, SAFER_DEFENSE_IBP_JIA},
    {"cnn, ibp-huang", SAFER_ARCH_CNN, SAFER_POOL_MAX, "2", 5, 4, SAFER_DEFENSE_IBP_HUANG},
    {"bow, exact", SAFER_ARCH_BOW, SAFER_POOL_MEAN, NULL, 0, 0, SAFER_DEFENSE_EXACT},
    {"charcnn, first 123 characters", SAFER_ARCH_CHARCNN, SAFER_POOL_DEFAULT, NULL, 0, 0, SAFER_DEFENSE_NONE},
    {"sum of a cnn, ibp-jia, and a canonical ngram", SAFER_ARCH_CNN, SAFER_POOL_MEAN, "2", 5, 0, SAFER_DEFENSE_IBP_JIA},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* What happened to the texts of one kind of model. */
typedef struct outcome {
    uint64_t texts, exact_certified, attackable; /* of the smoothed model, for the target */
    uint64_t bounded, robust, robust_certified;  /* of the model itself: no attack changes the answer; and certified */
    size_t wrong;
} outcome;

typedef struct world {
    trial_lexicon lexicon;
    safer_model *model;
    const struct kind *kind;
    uint64_t number;
    size_t classes;
} world;

/* ------------------------------------------------------------------ training */

static const char *const label_names[] = {"zero", "one", "two"};

/* Texts whose label is a matter of their words. */
static safer_data *training_texts(const trial_lexicon *lexicon, size_t classes, trial_random *r)
{
    static trial_text texts[TRAINING];
    const char *bytes[TRAINING], *labels[TRAINING];
    double score[SPELLINGS];
    safer_data *data = NULL;
    safer_error error;
    for (size_t i = 0; i < SPELLINGS; i++) score[i] = random_unit(r) - .5;
    for (size_t i = 0; i < TRAINING; i++) {
        double sum = 0;
        trial_text_make(&texts[i], lexicon, 2 + random_below(r, WORDS - 1), TABLE, r);
        for (size_t s = 0; s < texts[i].slots; s++) sum += score[lexicon->spelled[texts[i].slot[s].option[0]]];
        bytes[i] = texts[i].bytes;
        labels[i] = label_names[i < classes ? i : sum > 0 ? 0 : sum > -.3 ? 1 : classes - 1];
    }
    trial_expect(safer_data_from_texts(&data, bytes, NULL, labels, NULL, TRAINING, &error), &error,
                 "making a data set");
    return data;
}

/* bow, cnn and sums. */
static int has_bounds(const struct kind *kind) { return kind->arch == SAFER_ARCH_BOW || kind->arch == SAFER_ARCH_CNN; }

static void train(const char *path, const struct kind *kind, const trial_lexicon *lexicon, const safer_data *data,
                  trial_random *r)
{
    safer_train_options o = safer_train_options_default();
    safer_error error;
    o.arch = kind->arch;
    o.train = o.dev = data;
    if (kind->defense != SAFER_DEFENSE_NONE || random_chance(r, 30)) o.lexicon = lexicon->lexicon;
    o.seed = random_bits(r) >> 1;
    o.threads = 1;
    o.ngram.bits = 12;
    o.charcnn.characters = CHARACTERS;
    if (kind->arch == SAFER_ARCH_CHARCNN) o.course.epochs = 2;
    if (has_bounds(kind)) {
        o.course.epochs = 5 + (int)random_below(r, 15);
        o.course.rate = kind->defense == SAFER_DEFENSE_EXACT ? SAFER_DEFAULT : .05;
        o.course.dropout = 0;
        o.course.patience = 0;
        o.course.pool = kind->pool;
        o.cnn.dim = 6;
        o.cnn.filters = 4;
        if (kind->widths) o.cnn.widths = kind->widths;
        o.cnn.hidden = kind->hidden;
        o.cnn.max_words = kind->max_words;
        o.cnn.min_count = 1;
        o.defense.kind = kind->defense;
    }
    trial_expect(safer_train(path, &o, NULL, &error), &error, kind->name);
}

/* The file of a sum; paths in it are relative to it. */
static void write_sum(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) trial_stop("%s cannot be written", path);
    fputs("{\"arch\": \"sum\", \"members\": [{\"model\": \"first.safetensors\"}, "
          "{\"model\": \"second.safetensors\", \"weight\": 0.7, \"canonical\": \"sum.lex\"}]}\n",
          file);
    fclose(file);
}

static void world_make(world *w, uint64_t number, uint64_t seed)
{
    trial_random r = random_of(seed, 'M', number);
    safer_error error;
    w->number = number;
    w->kind = &kinds[number % KINDS];
    w->classes = 2 + random_below(&r, 2);
    const int sum = w->kind == &kinds[KINDS - 1];
    trial_lexicon_make(&w->lexicon, seed ^ 0x4d, number);
    if (sum) {
        safer_lexicon *representative = NULL;
        trial_expect(safer_lexicon_with_kernel(&representative, w->lexicon.lexicon, "representative", 1, &error),
                     &error, "changing a kernel");
        safer_lexicon_free(w->lexicon.lexicon);
        trial_lexicon_take(&w->lexicon, representative);
        trial_expect(safer_lexicon_save(representative, trial_path("sum.lex"), &error), &error, "saving a lexicon");
    }
    safer_data *data = training_texts(&w->lexicon, w->classes, &r);
    const char *path = trial_path("first.safetensors");
    train(path, w->kind, &w->lexicon, data, &r);
    if (sum) {
        train(trial_path("second.safetensors"), &kinds[0], &w->lexicon, data, &r);
        write_sum(path = trial_path("sum.json"));
    }
    trial_expect(safer_model_open(&w->model, path, &error), &error, "opening a model");
    safer_data_free(data);
}

static void world_clear(world *w)
{
    safer_model_free(w->model);
    trial_lexicon_clear(&w->lexicon);
    *w = (world){0};
}

/* ------------------------------------------------------------------- answers */

/* Everything written out and classified: all draws, or all attacks. */
typedef struct answers {
    char bytes[TABLE][600];
    const char *texts[TABLE];
    size_t lengths[TABLE], count;
    int labels[TABLE];
    float scores[TABLE * CLASSES];
} answers;

static void classify_all(answers *a, const trial_text *text, const safer_model *model, int which)
{
    size_t number[WORDS] = {0};
    safer_error error;
    a->count = 0;
    do {
        a->texts[a->count] = a->bytes[a->count];
        a->lengths[a->count] = trial_text_write(a->bytes[a->count], text, number, which);
        a->count++;
    } while (which == AS_DRAW ? next_draw(text, number) : next_attack(text, number));
    trial_expect(safer_model_classify(model, a->texts, a->lengths, a->count, a->labels, a->scores, &error), &error,
                 "classifying");
}

/* ----------------------------------------------------------------- comparing */

static void report(outcome *out, const world *w, const trial_text *text, uint64_t seed, const char *wrong)
{
    if (out->wrong++ == 0) {
        printf("WRONG: model %" PRIu64 " (%s), seed %" PRIu64 ", \"%s\": %s\n", w->number, w->kind->name, seed,
               text->bytes, wrong);
        trial_lexicon_print(stdout, &w->lexicon);
    }
}

static safer_certificate certify(const world *w, const trial_text *text, int label, const safer_certify_options *o,
                                 safer_workspace **workspace)
{
    safer_certificate c;
    safer_error error;
    trial_expect(safer_certify_text(&c, workspace, w->model, w->lexicon.lexicon, text->bytes, text->length, label, o,
                                    &error),
                 &error, "certifying a text");
    return c;
}

static size_t characters_of(const char *text)
{
    size_t count = 0;
    for (; *text; text++) count += (*text & 0xc0) != 0x80;
    return count;
}

/* The fewest characters that any attack and any draw puts into a slot. */
static size_t shortest_of(const trial_text *text, const trial_slot *s)
{
    size_t least = SIZE_MAX;
    for (size_t d = 0; d < s->drawn; d++) {
        const size_t count = characters_of(spellings[text->lexicon->spelled[s->draw[d]]].written[LOWER]);
        if (count < least) least = count;
    }
    return least;
}

/* The slots that some draw of some attacked text brings before the end of what is read. */
static size_t slots_in_characters(const trial_text *text)
{
    size_t visible = 0, at = 0;
    for (size_t i = 0, s = 0; i < text->words; i++) {
        at += characters_of(text->gap[i]);
        if (s == text->slots || text->slot[s].word != i) {
            at += characters_of(text->written[i]);
            continue;
        }
        visible += at < CHARACTERS;
        at += shortest_of(text, &text->slot[s++]);
    }
    return visible;
}

static size_t visible_slots(const trial_text *text, const struct kind *kind)
{
    size_t visible = 0;
    if (kind->arch == SAFER_ARCH_CHARCNN) return slots_in_characters(text);
    while (visible < text->slots && (!kind->max_words || text->slot[visible].word < (size_t)kind->max_words)) visible++;
    return visible;
}

/* The smoothed model, all draws enumerated. */
static void try_smoothed(outcome *out, const world *w, const trial_text *text, int label, const trial_options *options,
                         answers *a)
{
    static trial_table table;
    static trial_truth truth;
    safer_workspace *workspace = NULL;
    safer_certify_options o = safer_certify_options_default();
    safer_error error;
    const char *bytes = text->bytes;
    int base;
    o.n = TABLE;
    o.threads = 1;
    classify_all(a, text, w->model, AS_DRAW);
    for (size_t i = 0; i < a->count; i++) table.answer[i] = (int8_t)a->labels[i];
    trial_expect(safer_model_classify(w->model, &bytes, &text->length, 1, &base, NULL, &error), &error, "classifying");
    trial_truth_find(&truth, text, &table, w->classes, base, visible_slots(text, w->kind));
    safer_certificate c = certify(w, text, label, &o, &workspace);
    trial_break_claim(&c, options->fault, &truth, &o);
    const char *wrong = trial_claim_check(&c, &truth, &o);
    if (wrong) report(out, w, text, options->seed, wrong);
    out->exact_certified += c.radius > 0;
    out->attackable += truth.falls[c.target] != SIZE_MAX;
    safer_workspace_free(workspace);
}

/* What is wrong with the bounds, given the answers to every attacked text. */
static const char *check_bounds(const safer_certificate *c, const answers *a, size_t classes)
{
    int certified = 1;
    for (size_t k = 0; k < classes; k++) {
        if ((int)k == c->target) continue;
        certified &= c->margins[k] > 0;
        for (size_t i = 0; i < a->count; i++) {
            const float *scores = a->scores + i * classes;
            if (scores[k] < 1e-30F || scores[c->target] < 1e-30F) continue; /* too small for a logarithm */
            const double lead = log((double)scores[c->target]) - log((double)scores[k]);
            if (c->margins[k] > lead + 1e-4 * (1 + fabs(lead))) return "a lead is below its margin";
        }
    }
    if (certified != (c->radius == SAFER_ALL) || (c->radius && c->radius != SAFER_ALL && !c->additive) ||
        c->certified != certified)
        return "the decision does not follow from the margins";
    for (size_t i = 0; certified && i < a->count; i++)
        if (a->labels[i] != c->target) return "CERTIFIED BY BOUNDS, BUT AN ATTACK SUCCEEDS";
    return NULL;
}

/* The model itself. */
static void try_bounds(outcome *out, const world *w, const trial_text *text, int label, const trial_options *options,
                       answers *a)
{
    safer_workspace *workspace = NULL;
    safer_certify_options o = safer_certify_options_default();
    double margins[CLASSES];
    o.method = SAFER_METHOD_IBP;
    o.threads = 1;
    classify_all(a, text, w->model, AS_ATTACK);
    safer_certificate c = certify(w, text, label, &o, &workspace);
    int robust = 1, certified = 1;
    for (size_t i = 0; i < a->count; i++) robust &= a->labels[i] == c.target;
    if (options->fault == BREAK_MARGIN) {
        for (size_t k = 0; k < w->classes; k++) {
            margins[k] = c.margins[k] + .05;
            certified &= (int)k == c.target || margins[k] > 0;
        }
        c.margins = margins;
        c.certified = certified;
        c.radius = certified ? SAFER_ALL : 0;
    }
    const char *wrong = check_bounds(&c, a, w->classes);
    if (!wrong && (c.base != a->labels[0] || c.prediction != c.base || !c.exact))
        wrong = "the answer to the text itself";
    if (!wrong && c.visible != visible_slots(text, w->kind)) wrong = "the number of visible slots";
    if (wrong) report(out, w, text, options->seed, wrong);
    out->bounded++;
    out->robust += (uint64_t)robust;
    out->robust_certified += c.radius == SAFER_ALL;
    safer_workspace_free(workspace);
}

static void try_model(outcome out[KINDS], uint64_t number, const trial_options *options)
{
    static const char dots[] = "....................................................................................."
                               "....................................";
    static trial_text text;
    static answers a;
    world w = {0};
    world_make(&w, number, options->seed);
    outcome *o = &out[w.kind - kinds];
    for (uint64_t i = 0; i < TEXTS; i++) {
        trial_random r = random_of(options->seed, 'T', number * TEXTS + i);
        trial_text_make(&text, &w.lexicon, 1 + random_below(&r, WORDS), DRAWS, &r);
        if (w.kind->arch == SAFER_ARCH_CHARCNN) trial_text_begin(&text, dots + random_below(&r, sizeof dots));
        const int label = random_chance(&r, 70) ? -1 : (int)random_below(&r, (uint32_t)w.classes);
        try_smoothed(o, &w, &text, label, options, &a);
        if (has_bounds(w.kind)) try_bounds(o, &w, &text, label, options, &a);
        o->texts++;
    }
    world_clear(&w);
}

size_t trial_models(const trial_options *options)
{
    static outcome out[KINDS];
    const double start = trial_seconds();
    const uint64_t models = (options->instances + TEXTS - 1) / TEXTS;
    size_t wrong = 0;
    printf("trial models: safer %s, seed %" PRIu64 ", %" PRIu64 " models with %d texts each\n", safer_version(),
           options->seed, models, TEXTS);
    for (uint64_t m = 0; m < models; m++) {
        try_model(out, m, options);
        trial_progress("models", m + 1, models, start);
    }
    printf("| | texts | smoothed: certified | can be attacked | bounds: texts | no attack succeeds | certified |\n"
           "|---|---|---|---|---|---|---|\n");
    for (size_t k = 0; k < KINDS; k++) {
        const outcome *o = &out[k];
        printf("| %s | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " |\n",
               kinds[k].name, o->texts, o->exact_certified, o->attackable, o->bounded, o->robust, o->robust_certified);
        wrong += o->wrong;
    }
    printf("%" PRIu64 " texts of %" PRIu64 " models: %zu wrong (%.0f s, seed %" PRIu64 ")\n", models * TEXTS, models,
           wrong, trial_seconds() - start, options->seed);
    return wrong;
}
