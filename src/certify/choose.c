/* Which kernel certifies most of a data set.
 *
 * No kernel is the best everywhere. `representative` gives one reading of a text, exactly, and loses the difference
 * between all words of a component; `component` loses it too, but the model sees many of them in training; `topk:K`
 * keeps more of the meaning and pays with overlaps below 1. So all are tried on texts with labels: an n-gram
 * classifier, which is trained in seconds, learns from nine tenths and certifies the rest.
 *
 * The rows that are held out are certified by models that have not seen them, with the same draws for every kernel.
 * What is found is a choice and no claim: every kernel is sound, and a certificate does not depend on how its kernel
 * was chosen, as long as it was not chosen on the texts that are certified. All that happens is a function of the data,
 * the lexicon and the seed. */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/rng.h"
#include "data/data.h"
#include "lexicon/draft.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAST_TEXTS = 200, HELD_OUT = 10 }; /* every 10th of a class */

/* The simplest first: it wins when others are no better. */
static const char *const kernels[SAFER_KERNEL_TRIALS] = {"representative", "component", "topk:100", "topk:250"};
static const size_t least_component[SAFER_KERNEL_TRIALS] = {0, 0, 101, 251}; /* else it is the same as `component` */

void safer_choose_options_init(safer_choose_options *options, size_t size)
{
    static const safer_choose_options defaults = {.size = sizeof defaults, .most_texts = 10000, .seed = 1};
    sf_options_init(options, size, &defaults, sizeof defaults);
}

typedef struct choosing {
    const safer_lexicon *lexicon;
    const safer_data *data;
    const safer_choose_options *options;
    safer_kernel_choice *choice;
    safer_data *train, *held_out;
    char folder[PATH_MAX]; /* of the models; empty: there is none */
    const char *kernel;    /* which is being tried */
    char stage[256];
} choosing;

/* ------------------------------------------------------------- the texts */

typedef struct ticket {
    double draw;
    size_t row;
} ticket;

static int by_draw(const void *left, const void *right)
{
    const ticket *a = left, *b = right;
    return a->draw != b->draw ? (a->draw < b->draw ? -1 : 1) : (a->row > b->row) - (a->row < b->row);
}

static int by_row(const void *left, const void *right)
{
    const ticket *a = left, *b = right;
    return (a->row > b->row) - (a->row < b->row);
}

/* The labelled rows that are used, in their order; NULL without memory. */
static ticket *pick_rows(size_t *count, choosing *c)
{
    const size_t rows = safer_data_size(c->data);
    const sf_stream stream = sf_stream_of(c->options->seed, 0, SF_STAGE_DATA);
    ticket *tickets = sf_alloc(rows + 1, sizeof *tickets);
    size_t labelled = 0;
    for (size_t i = 0; tickets && i < rows; i++)
        if (*sf_data_label_of(c->data, i) != SF_NONE) tickets[labelled++] = (ticket){sf_draw_unit(stream, i, 0), i};
    c->choice->labelled = *count = labelled;
    if (tickets && labelled > c->options->most_texts) {
        qsort(tickets, labelled, sizeof *tickets, by_draw);
        *count = c->options->most_texts;
        qsort(tickets, *count, sizeof *tickets, by_row);
    }
    return tickets;
}

/* A data set of some rows. */
static safer_status copy_rows(safer_data **out, const safer_data *data, const size_t *rows, size_t count,
                              safer_error *error)
{
    safer_status status;
    const char **texts = sf_alloc(count, sizeof *texts), **labels = sf_alloc(count, sizeof *labels);
    size_t *lengths = sf_alloc(count, sizeof *lengths);
    if (!texts || !labels || !lengths) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        const safer_row row = safer_data_row(data, rows[i]);
        texts[i] = row.text;
        lengths[i] = row.text_length;
        labels[i] = safer_data_label(data, (size_t)row.label);
    }
    status = safer_data_from_texts(out, texts, lengths, labels, NULL, count, error);
done:
    free(texts);
    free(labels);
    free(lengths);
    return status;
}

/* Every 10th row of each class is held out, the others are learned from. */
static safer_status split(choosing *c, safer_error *error)
{
    safer_status status = SAFER_OK;
    size_t count = 0, train = 0, held_out = 0, classes = safer_data_label_count(c->data), met = 0;
    ticket *tickets = pick_rows(&count, c);
    size_t *rows = sf_alloc(2 * count + 1, sizeof *rows), *seen = sf_calloc(classes + 1, sizeof *seen);
    if (!tickets || !rows || !seen) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t label = (size_t)safer_data_row(c->data, tickets[i].row).label;
        met += seen[label] == 0;
        if (++seen[label] % HELD_OUT == 0)
            rows[count + held_out++] = tickets[i].row;
        else
            rows[train++] = tickets[i].row;
    }
    c->choice->untried = met < 2               ? "the data has fewer than two classes"
                         : count < LEAST_TEXTS ? "the data has fewer than 200 labelled texts"
                         : !held_out           ? "no class has ten texts"
                                               : NULL;
    if (c->choice->untried) goto done;
    c->choice->trained = train;
    c->choice->held_out = held_out;
    SF_TRY(copy_rows(&c->train, c->data, rows, train, error));
    SF_TRY(copy_rows(&c->held_out, c->data, rows + count, held_out, error));
done:
    free(tickets);
    free(rows);
    free(seen);
    return status;
}

/* ------------------------------------------------------------ the trials */

/* What is done, and for which kernel. */
static int report(void *context, const char *stage, uint64_t done, uint64_t total)
{
    choosing *c = context;
    snprintf(c->stage, sizeof c->stage, "kernel %s: %s", c->kernel, stage);
    return c->options->progress.report(c->options->progress.context, c->stage, done, total);
}

static safer_progress progress_of(choosing *c)
{
    return c->options->progress.report ? (safer_progress){report, c} : (safer_progress){0};
}

static safer_status make_folder(choosing *c, safer_error *error)
{
    const char *temporary = getenv("TMPDIR");
    const int length = snprintf(c->folder, sizeof c->folder, "%s/safer-XXXXXX",
                                temporary && *temporary ? temporary : "/tmp");
    const int fits = length > 0 && (size_t)length + 32 < sizeof c->folder;
    if (fits && mkdtemp(c->folder)) return SAFER_OK;
    *c->folder = '\0';
    return sf_fail(error, SAFER_SYSTEM, "cannot make a folder in %s (TMPDIR): %s",
                   temporary && *temporary ? temporary : "/tmp", fits ? strerror(errno) : "its name is too long");
}

/* Trains with one kernel, certifies what is held out, and counts. */
static safer_status try_kernel(safer_kernel_trial *trial, choosing *c, const char *path, safer_error *error)
{
    safer_status status;
    safer_lexicon *lexicon = NULL;
    safer_model *model = NULL;
    safer_summary summary = {0};
    safer_train_options training = safer_train_options_default();
    safer_certify_options certifying = safer_certify_options_default();
    const double start = sf_seconds();
    SF_TRY(safer_lexicon_with_kernel(&lexicon, c->lexicon, c->kernel, c->options->threads, error));
    training.arch = SAFER_ARCH_NGRAM;
    training.train = c->train;
    training.lexicon = lexicon;
    training.seed = certifying.seed = c->options->seed;
    training.threads = certifying.threads = c->options->threads;
    training.progress = certifying.progress = progress_of(c);
    SF_TRY(safer_train(path, &training, NULL, error));
    SF_TRY(safer_model_open(&model, path, error));
    SF_TRY(safer_certify(&summary, NULL, 0, model, lexicon, c->held_out, &certifying, error));
    snprintf(trial->kernel, sizeof trial->kernel, "%s", c->kernel);
    trial->smoothed_correct = summary.smoothed_correct;
    trial->certified_answered = summary.certified_answered;
    trial->queries = summary.queries;
    trial->seconds = sf_seconds() - start;
done:
    safer_summary_free(&summary);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
    return status;
}

static safer_status try_all(choosing *c, safer_error *error)
{
    safer_status status;
    safer_kernel_choice *choice = c->choice;
    const safer_lexicon_info info = safer_lexicon_describe(c->lexicon);
    char path[PATH_MAX + 32];
    if (!info.components) return sf_fail_memory(error); /* for there are synonyms */
    SF_TRY(make_folder(c, error));
    snprintf(path, sizeof path, "%s/model.safetensors", c->folder);
    for (int i = 0; i < SAFER_KERNEL_TRIALS; i++) {
        if (info.largest_components[0] < least_component[i]) continue;
        c->kernel = kernels[i];
        status = try_kernel(&choice->trials[choice->trial_count], c, path, error);
        unlink(path);
        if (status != SAFER_OK) goto done;
        const size_t found = choice->trials[choice->trial_count].certified_answered;
        if (found > choice->trials[choice->best].certified_answered) choice->best = choice->trial_count;
        choice->trial_count++;
    }
done:
    if (*c->folder) rmdir(c->folder);
    return status;
}

/* What provenance says of it: counts alone, no times. */
static json_t *describe(const choosing *c)
{
    const safer_kernel_choice *choice = c->choice;
    json_t *trials = json_array(), *out = json_object();
    for (size_t i = 0; i < choice->trial_count; i++)
        sf_json_push(&trials, json_pack("{s:s, s:I}", "kernel", choice->trials[i].kernel, "certified_answered",
                                        (json_int_t)choice->trials[i].certified_answered));
    sf_json_put(&out, "data", json_string(safer_data_name(c->data)));
    sf_json_put(&out, "seed", json_integer((json_int_t)c->options->seed));
    sf_json_put(&out, "trained", json_integer((json_int_t)choice->trained));
    sf_json_put(&out, "held_out", json_integer((json_int_t)choice->held_out));
    sf_json_put(&out, "trials", trials);
    return out;
}

static safer_status check(const safer_choose_options *o, const safer_data *data, safer_error *error)
{
    if (o->most_texts < LEAST_TEXTS)
        return sf_fail(error, SAFER_INVALID, "`most_texts`: %zu (at least %d)", o->most_texts, LEAST_TEXTS);
    if (o->threads < 0) return sf_fail(error, SAFER_INVALID, "`threads`: %d", o->threads);
    if (data && data->on_disk) return sf_fail(error, SAFER_INVALID, "`data`: it must be in memory, not `on_disk`");
    return SAFER_OK;
}

safer_status safer_lexicon_choose(safer_lexicon **out, safer_kernel_choice *choice, const safer_lexicon *lexicon,
                                  const safer_data *data, const safer_choose_options *given, safer_error *error)
{
    safer_kernel_choice own_choice;
    safer_choose_options options = safer_choose_options_default();
    safer_status status = SF_TAKE_OPTIONS(&options, given, safer_choose_options, error);
    if (status == SAFER_OK) status = check(&options, data, error);
    if (status != SAFER_OK) return status;
    choosing c = {.lexicon = lexicon, .data = data, .options = &options, .choice = choice ? choice : &own_choice};
    json_t *reasons = NULL;
    *c.choice = (safer_kernel_choice){.untried = !data ? "there is no data" : NULL};
    if (lexicon->synonym_offsets[lexicon->words.count] == 0) c.choice->untried = "no word has a synonym";
    if (!c.choice->untried) SF_TRY(split(&c, error));
    if (c.choice->untried) {
        SF_TRY(sf_lexicon_rework(out, lexicon, kernels[0], NULL, options.threads, error));
        goto done;
    }
    SF_TRY(try_all(&c, error));
    reasons = describe(&c);
    if (!reasons) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_lexicon_rework(out, lexicon, c.choice->trials[c.choice->best].kernel, reasons, options.threads, error));
done:
    json_decref(reasons);
    safer_data_free(c.train);
    safer_data_free(c.held_out);
    return status;
}
