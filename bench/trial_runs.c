/* Runs of the trial: a made-up data set certified into a file. Every record is read with a JSON library and compared
 * with the truth, weights digit by digit; the file is verified with and without the model. */
#define _GNU_SOURCE
#include "trial.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXTS = 20, ATTACKED = 10 /* one in so many runs is attacked */ };

typedef struct made_up_run {
    uint64_t number, seed;
    const trial_lexicon *lexicon;
    trial_answers answers;
    trial_text text[TEXTS];
    trial_truth truth[TEXTS];
    int label[TEXTS];
    safer_certify_options options;
    safer_model *model;
    safer_data *data;
} made_up_run;

/* -------------------------------------------------------------------- making */

static void run_make(made_up_run *out, const trial_options *options)
{
    static trial_table table;
    trial_random r = random_of(options->seed, 'R', out->number);
    const char *texts[TEXTS], *labels[TEXTS];
    size_t lengths[TEXTS];
    safer_error error;
    trial_answers_begin(&out->answers, 2 + random_below(&r, 3), random_bits(&r));
    out->answers.lie = options->fault == BREAK_ANSWER ? 200 : 0;
    for (size_t i = 0; i < TEXTS; i++) {
        trial_text_make(&out->text[i], out->lexicon, 1 + random_below(&r, WORDS), 200, &r);
        trial_table_make(&table, &out->answers, &out->text[i], &r);
        out->label[i] = random_chance(&r, 85) ? table.favoured : -1;
        trial_truth_find(&out->truth[i], &out->text[i], &table, out->answers.classes, 0, out->text[i].slots);
    }
    out->options = trial_certify_options(random_chance(&r, 50), &r);
    out->options.family_wise = random_chance(&r, 20);
    out->options.threads = 1 + (int)random_below(&r, 2);
    out->model = trial_model(&out->answers);
    for (size_t i = 0; i < TEXTS; i++) { /* another text's draws may be this text, so only now */
        out->truth[i].base = trial_answer(&out->answers, out->text[i].bytes, out->text[i].length);
        texts[i] = out->text[i].bytes;
        lengths[i] = out->text[i].length;
        labels[i] = out->label[i] < 0 ? NULL : safer_model_label(out->model, (size_t)out->label[i]);
    }
    trial_expect(safer_data_from_texts(&out->data, texts, lengths, labels, NULL, TEXTS, &error), &error,
                 "making a data set");
}

/* ------------------------------------------------------------------- reading */

static int class_of(const json_t *name, const safer_model *model)
{
    for (size_t k = 0; json_is_string(name) && k < safer_model_class_count(model); k++)
        if (strcmp(json_string_value(name), safer_model_label(model, k)) == 0) return (int)k;
    return json_is_null(name) ? -1 : -2;
}

static size_t radius_of(const json_t *radius)
{
    const char *text = json_string_value(radius);
    if (!text) return (size_t)json_integer_value(radius);
    return strcmp(text, "all") == 0 ? SAFER_ALL : (size_t)strtoull(text, NULL, 10);
}

static size_t count_of(const json_t *record, const char *name)
{
    return (size_t)json_integer_value(json_object_get(record, name));
}

static int is_true(const json_t *record, const char *name) { return json_is_true(json_object_get(record, name)); }

/* Votes and weights, of every class. */
typedef struct numbers {
    uint64_t votes[CLASSES];
    double shares[CLASSES];
} numbers;

static const char *read_numbers(numbers *out, const json_t *record, const trial_truth *t, const safer_model *model)
{
    const int exact = is_true(record, "exact");
    const json_t *counts = json_object_get(record, "counts"), *total = json_object_get(record, "total");
    for (size_t k = 0; k < t->classes; k++) {
        const json_t *count = json_object_get(counts, safer_model_label(model, k));
        if (!exact) {
            out->votes[k] = (uint64_t)json_integer_value(count);
            continue;
        }
        char digits[30];
        snprintf(digits, sizeof digits, "%" PRIu64, t->weight[k]);
        if (!json_is_string(count) || strcmp(json_string_value(count), digits) != 0)
            return "a weight is not the true one";
        out->shares[k] = (double)t->weight[k] / (double)t->total;
    }
    char digits[30];
    snprintf(digits, sizeof digits, "%" PRIu64, t->total);
    if (exact && (!json_is_string(total) || strcmp(json_string_value(total), digits) != 0))
        return "the total is not the true one";
    return NULL;
}

/* The record as a certificate; its arrays are in `n`. */
static safer_certificate certificate_of(const json_t *record, const safer_model *model, const numbers *n)
{
    safer_certificate c = {.label = class_of(json_object_get(record, "label"), model),
                           .base = class_of(json_object_get(record, "base"), model),
                           .prediction = class_of(json_object_get(record, "prediction"), model),
                           .abstained = is_true(record, "abstained"),
                           .target = class_of(json_object_get(record, "target"), model),
                           .words = count_of(record, "words"),
                           .slots = count_of(record, "slots"),
                           .visible = count_of(record, "visible"),
                           .exact = is_true(record, "exact"),
                           .n = count_of(record, "n"),
                           .votes = n->votes,
                           .shares = n->shares,
                           .bound = json_real_value(json_object_get(record, "bound")),
                           .certified = is_true(record, "certified"),
                           .radius = radius_of(json_object_get(record, "radius"))};
    for (size_t r = 0; r < SAFER_RADII; r++) {
        c.q[r] = json_real_value(json_array_get(json_object_get(record, "q_at"), r));
        c.certified_at[r] = c.radius >= safer_reported_radius(r);
    }
    return c;
}

/* ----------------------------------------------------------------- comparing */

static const char *check_record(const made_up_run *run, size_t row, const json_t *record, trial_break fault,
                                trial_tally *tally)
{
    numbers n = {0};
    const trial_truth *t = &run->truth[row];
    safer_certify_options o = run->options;
    const char *wrong = read_numbers(&n, record, t, run->model);
    if (wrong) return wrong;
    safer_certificate c = certificate_of(record, run->model, &n);
    if (count_of(record, "row") != row + 1) return "a record is not in its place";
    if (c.label != run->label[row]) return "the label is not the data's";
    if (c.target != (c.label >= 0 && !o.unlabelled ? c.label : c.prediction)) return "the target is another class";
    for (size_t k = 0; !c.exact && k < t->classes; k++) n.shares[k] = (double)n.votes[k] / (double)c.n;
    if (o.family_wise) o.delta /= TEXTS;
    trial_break_claim(&c, fault, t, &o);
    wrong = trial_claim_check(&c, t, &o);
    if (!wrong && !c.exact && !o.family_wise) trial_tally_claim(tally, &c, t, &o);
    return wrong;
}

static size_t check_records(const made_up_run *run, const char *path, trial_break fault, trial_tally *tally,
                            size_t *wrong)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0, row = 0;
    if (!file || getline(&line, &capacity, file) < 0) trial_stop("%s cannot be read", path);
    for (; getline(&line, &capacity, file) > 0; row++) {
        json_t *record = json_loads(line, 0, NULL);
        const char *fails = !record ? "it is not JSON" : row >= TEXTS ? "there are too many" : NULL;
        if (!fails) fails = check_record(run, row, record, fault, tally);
        if (fails && (*wrong)++ < 10)
            printf("WRONG: record %zu with lexicon %" PRIu64 ": %s\n%sagain: trial instances --seed %" PRIu64
                   " --first %" PRIu64 " --instances 1\n",
                   row + 1, run->number, fails, line, run->seed, run->number * GROUP);
        json_decref(record);
    }
    free(line);
    fclose(file);
    return row;
}

/* Changes the last digit of the last bound, as a hand could. */
static void damage(const char *path)
{
    FILE *file = fopen(path, "r+");
    char bytes[1 << 16];
    const size_t length = file ? fread(bytes, 1, sizeof bytes - 1, file) : 0;
    bytes[length] = '\0';
    char *digit = strstr(bytes, "\"radius\":");
    for (char *next = digit; next; next = strstr(next + 1, "\"radius\":")) digit = next;
    while (digit && *digit && (*digit < '0' || *digit > '9')) digit++;
    if (digit && *digit) *digit = *digit == '9' ? '8' : (char)(*digit + 1);
    rewind(file);
    if (fwrite(bytes, 1, length, file) != length || fclose(file)) trial_stop("%s cannot be changed", path);
}

static void verify(const made_up_run *run, const char *path, size_t *wrong)
{
    safer_error error;
    for (int with_model = 0; with_model < 2; with_model++) {
        const safer_status status = safer_verify(NULL, path, with_model ? run->model : NULL,
                                                 with_model ? run->lexicon->lexicon : NULL,
                                                 with_model ? run->data : NULL, 1, NULL, &error);
        if (status != SAFER_OK && (*wrong)++ < 10)
            printf("WRONG: the run with lexicon %" PRIu64 " does not verify%s: %s\n", run->number,
                   with_model ? " with its model" : "", error.message);
    }
}

/* Searches for texts that break the certificates. Whatever it finds, it must not break an exact one. */
static void attack(const made_up_run *run, const char *path, size_t *wrong)
{
    safer_against_summary summary;
    safer_attack_options o = safer_attack_options_default();
    safer_error error;
    o.population = o.iterations = 4;
    o.threads = 1;
    trial_expect(safer_attack_against(&summary, path, NULL, 0, run->model, run->lexicon->lexicon, run->data, &o,
                                      &error),
                 &error, "attacking a run");
    if (summary.violations_exact && (*wrong)++ < 10)
        printf("WRONG: attacks break %zu exact certificates of the run with lexicon %" PRIu64 "\n",
               summary.violations_exact, run->number);
}

size_t trial_run(const trial_lexicon *lexicon, uint64_t number, const trial_options *options, trial_tally *tally,
                 size_t *wrong)
{
    static made_up_run run;
    safer_summary summary;
    safer_error error;
    const char *path = trial_path("run.jsonl");
    run.number = number;
    run.seed = options->seed;
    run.lexicon = lexicon;
    run_make(&run, options);
    unlink(path);
    trial_expect(safer_certify(&summary, path, 0, run.model, lexicon->lexicon, run.data, &run.options, &error), &error,
                 "certifying a data set");
    const size_t records = check_records(&run, path, options->fault, tally, wrong);
    if (records != TEXTS && (*wrong)++ < 10) printf("WRONG: %zu records for %d texts\n", records, TEXTS);
    if (options->fault == BREAK_RECORD) damage(path);
    verify(&run, path, wrong);
    if (number % ATTACKED == 0 && options->fault == BREAK_NONE) attack(&run, path, wrong);
    safer_data_free(run.data);
    safer_model_free(run.model);
    return records;
}
