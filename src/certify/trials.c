/* Ways to train, tried and compared text by text: trials.h has the rule and its reasons. */
#define _GNU_SOURCE
#include "certify/trials.h"

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/rng.h"
#include "certify/summary.h"
#include "stats/binomial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A class of fewer texts than parts is learned from alone. Training needs ten texts of a class in four parts. */
enum { LEAST_TEXTS = 200, LEAST_OF_A_CLASS = 20 };

/* A way that loses to the best so clearly is not tried further. */
static const double level = 0.05, hopeless = 0.001;

int sf_trial_is_better(double *p, size_t won, size_t lost)
{
    *p = sf_sign_test_above(won, lost);
    return *p <= level;
}

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
static ticket *pick_rows(size_t *count, const sf_trials *t, size_t most)
{
    const size_t rows = safer_data_size(t->data);
    const sf_stream stream = sf_stream_of(t->seed, 0, SF_STAGE_DATA);
    ticket *tickets = sf_alloc(rows + 1, sizeof *tickets);
    size_t labelled = 0;
    for (size_t i = 0; tickets && i < rows; i++)
        if (safer_data_row(t->data, i).label >= 0) tickets[labelled++] = (ticket){sf_draw_unit(stream, i, 0), i};
    t->choice->labelled = *count = labelled;
    if (tickets && labelled > most) {
        qsort(tickets, labelled, sizeof *tickets, by_draw);
        *count = most;
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

/* Deals the rows of each class to the parts in turn. */
static void deal(sf_trials *t, const ticket *tickets, size_t count, size_t *sizes, size_t *dealt)
{
    size_t classes = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        size_t *size = &sizes[safer_data_row(t->data, tickets[i].row).label];
        classes += (*size)++ == 0;
        if (*size > largest) largest = *size;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t label = (size_t)safer_data_row(t->data, tickets[i].row).label;
        const int held_out = sizes[label] >= SF_FOLDS;
        t->rows[i] = tickets[i].row;
        t->part[i] = (unsigned char)(held_out ? dealt[label]++ % SF_FOLDS : SF_FOLDS);
        t->choice->held_out += (size_t)held_out;
    }
    t->choice->texts = count;
    t->choice->untried = classes < 2                  ? "the data has fewer than two classes"
                         : count < LEAST_TEXTS        ? "the data has fewer than 200 labelled texts"
                         : largest < LEAST_OF_A_CLASS ? "no class has 20 texts"
                                                      : NULL;
}

static safer_status make_folder(sf_trials *t, safer_error *error)
{
    const char *temporary = getenv("TMPDIR");
    const int length = snprintf(t->folder, sizeof t->folder, "%s/safer-XXXXXX",
                                temporary && *temporary ? temporary : "/tmp");
    const int fits = length > 0 && (size_t)length + 32 < sizeof t->folder;
    if (fits && mkdtemp(t->folder)) return SAFER_OK;
    *t->folder = '\0';
    return sf_fail(error, SAFER_SYSTEM, "cannot make a folder in %s (TMPDIR): %s",
                   temporary && *temporary ? temporary : "/tmp", fits ? strerror(errno) : "its name is too long");
}

safer_status sf_trials_start(sf_trials *t, size_t most, safer_error *error)
{
    safer_status status = SAFER_OK;
    size_t count = 0, *sizes = NULL;
    const size_t classes = safer_data_label_count(t->data);
    *t->choice = (safer_choice){0};
    ticket *tickets = pick_rows(&count, t, most);
    sizes = sf_calloc(2 * classes + 1, sizeof *sizes);
    t->rows = sf_alloc(count + 1, sizeof *t->rows);
    t->part = sf_alloc(count + 1, 1);
    t->held = sf_alloc(count + 1, 1);
    t->best_held = sf_alloc(count + 1, 1);
    if (!tickets || !sizes || !t->rows || !t->part || !t->held || !t->best_held) {
        status = sf_fail_memory(error);
        goto done;
    }
    deal(t, tickets, count, sizes, sizes + classes);
    if (!t->choice->untried) status = make_folder(t, error);
done:
    free(tickets);
    free(sizes);
    return status;
}

void sf_trials_end(sf_trials *t)
{
    if (*t->folder) rmdir(t->folder);
    free(t->rows);
    free(t->part);
    free(t->held);
    free(t->best_held);
    *t = (sf_trials){0};
}

/* ------------------------------------------------------------ the trials */

/* What is done, and for which of them. */
static int report(void *context, const char *stage, uint64_t done, uint64_t total)
{
    sf_trials *t = context;
    snprintf(t->stage, sizeof t->stage, "%s %s, %zu of %d: %s", t->what, t->name, t->number + 1, SF_FOLDS, stage);
    return t->progress->report(t->progress->context, t->stage, done, total);
}

/* The rows of one part, or of all others. */
static safer_status copy_part(safer_data **out, const sf_trials *t, int others, safer_error *error)
{
    size_t count = 0, *rows = sf_alloc(t->choice->texts, sizeof *rows);
    if (!rows) return sf_fail_memory(error);
    for (size_t i = 0; i < t->choice->texts; i++)
        if ((t->part[i] != t->number) == others) rows[count++] = t->rows[i];
    const safer_status status = copy_rows(out, t->data, rows, count, error);
    free(rows);
    return status;
}

/* Learns from all other parts, certifies this one, and counts. */
static safer_status try_part(safer_trial *trial, sf_trials *t, const safer_lexicon *lexicon,
                             const safer_train_options *given, safer_error *error)
{
    safer_status status;
    char path[SF_TRIALS_PATH + 32];
    safer_data *train = NULL, *held_out = NULL;
    safer_model *model = NULL;
    safer_summary summary = {0};
    safer_train_options training = *given;
    safer_certify_options certifying = safer_certify_options_default();
    snprintf(path, sizeof path, "%s/model.safetensors", t->folder);
    SF_TRY(copy_part(&train, t, 1, error));
    SF_TRY(copy_part(&held_out, t, 0, error));
    training.train = train;
    training.dev = NULL;
    training.seeds = 1;
    training.lexicon = lexicon;
    training.seed = certifying.seed = t->seed;
    training.threads = certifying.threads = t->threads;
    training.progress = certifying.progress = t->progress->report ? (safer_progress){report, t} : (safer_progress){0};
    status = safer_train(path, &training, NULL, error);
    if (status == SAFER_OK) status = safer_model_open(&model, path, error);
    unlink(path); /* it stays mapped */
    if (status != SAFER_OK) goto done;
    SF_TRY(sf_certify_each(&summary, t->held + trial->texts, model, lexicon, held_out, &certifying, error));
    trial->texts += summary.labelled;
    trial->smoothed_correct += summary.smoothed_correct;
    trial->certified_answered += summary.certified_answered;
    trial->queries += summary.queries;
done:
    safer_summary_free(&summary);
    safer_model_free(model);
    safer_data_free(train);
    safer_data_free(held_out);
    return status;
}

/* Against the best so far, on the texts that were certified. */
static void compare(safer_trial *trial, const sf_trials *t)
{
    trial->won = trial->lost = 0;
    for (size_t i = 0; i < trial->texts; i++) {
        trial->won += (size_t)(t->held[i] > t->best_held[i]);
        trial->lost += (size_t)(t->held[i] < t->best_held[i]);
    }
}

safer_status sf_trials_add(sf_trials *t, const char *name, const safer_lexicon *lexicon,
                           const safer_train_options *training, safer_error *error)
{
    safer_status status = SAFER_OK;
    safer_choice *choice = t->choice;
    const int first = choice->trial_count == 0;
    const double start = sf_seconds();
    safer_trial trial = {.p_value = 1};
    snprintf(trial.name, sizeof trial.name, "%s", name);
    t->name = name;
    for (t->number = 0; t->number < SF_FOLDS; t->number++) {
        SF_TRY(try_part(&trial, t, lexicon, training, error));
        if (first) continue;
        compare(&trial, t);
        if (sf_sign_test_above(trial.lost, trial.won) <= hopeless) break;
    }
    const int better = !first && sf_trial_is_better(&trial.p_value, trial.won, trial.lost);
    if (first || better) {
        memcpy(t->best_held, t->held, trial.texts);
        choice->best = choice->trial_count;
    }
    trial.seconds = sf_seconds() - start;
    choice->trials[choice->trial_count++] = trial;
done:
    return status;
}

json_t *sf_trials_json(const sf_trials *t)
{
    const safer_choice *choice = t->choice;
    json_t *trials = json_array(), *out = json_object();
    for (size_t i = 0; i < choice->trial_count; i++) {
        const safer_trial *trial = &choice->trials[i];
        sf_json_push(&trials,
                     json_pack("{s:s, s:I, s:I, s:I, s:I}", t->what, trial->name, "texts", (json_int_t)trial->texts,
                               "certified_answered", (json_int_t)trial->certified_answered, "won",
                               (json_int_t)trial->won, "lost", (json_int_t)trial->lost));
    }
    sf_json_put(&out, "data", json_string(safer_data_name(t->data)));
    sf_json_put(&out, "seed", json_integer((json_int_t)t->seed));
    sf_json_put(&out, "texts", json_integer((json_int_t)choice->texts));
    sf_json_put(&out, "held_out", json_integer((json_int_t)choice->held_out));
    sf_json_put(&out, "trials", trials);
    return out;
}
