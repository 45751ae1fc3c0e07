/* Which kernel and which architecture suit labelled texts: trials.h has the rule.
 *
 * No kernel is the best everywhere. `representative` gives one reading of a text, exactly, and loses the difference
 * between all words of a component; `component` loses it too, but the model sees many of them in training; `topk:K`
 * keeps more of the meaning and pays with overlaps below 1. N-grams, which are trained in seconds, try them.
 *
 * Nor is an architecture: n-grams win where words alone decide, and need nothing; with vectors that were learned from
 * other texts a network knows words that are rare here. Networks without them lose to n-grams on small data, so they
 * are not tried. */
#include "certify/trials.h"

#include "base/deletion.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "data/data.h"
#include "lexicon/draft.h"
#include "train/train.h"

#include <stdlib.h>

enum { LEAST_TEXTS = 200 };

void safer_choose_options_init(safer_choose_options *options, size_t size)
{
    static const safer_choose_options defaults = {.size = sizeof defaults, .most_texts = 10000, .seed = 1};
    sf_options_init(options, size, &defaults, sizeof defaults);
}

/* --------------------------------------------------------------- kernels */

/* The simplest first: it wins when others are no better. */
static const struct {
    const char *name;
    size_t least_component; /* else it is the same as `component` */
} kernels[] = {{"representative", 0}, {"component", 0}, {"topk:100", 101}, {"topk:250", 251}};

static safer_status try_kernels(sf_trials *t, const safer_lexicon *lexicon, safer_error *error)
{
    safer_status status = SAFER_OK;
    safer_lexicon *other = NULL;
    safer_train_options training = safer_train_options_default();
    const safer_lexicon_info info = safer_lexicon_describe(lexicon);
    if (!info.components) return sf_fail_memory(error); /* for there are synonyms */
    training.arch = SAFER_ARCH_NGRAM;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (info.largest_components[0] < kernels[i].least_component) continue;
        SF_TRY(safer_lexicon_with_kernel(&other, lexicon, kernels[i].name, t->threads, error));
        SF_TRY(sf_trials_add(t, kernels[i].name, other, &training, error));
        safer_lexicon_free(other);
        other = NULL;
    }
done:
    safer_lexicon_free(other);
    return status;
}

static safer_status check(const safer_choose_options *o, const safer_data *data, safer_error *error)
{
    if (o->most_texts < LEAST_TEXTS)
        return sf_fail(error, SAFER_INVALID, "`most_texts`: %zu (at least %d)", o->most_texts, LEAST_TEXTS);
    if (o->threads < 0) return sf_fail(error, SAFER_INVALID, "`threads`: %d", o->threads);
    if (data && data->on_disk) return sf_fail(error, SAFER_INVALID, "`data`: it must be in memory, not `on_disk`");
    return SAFER_OK;
}

safer_status safer_lexicon_choose(safer_lexicon **out, safer_choice *choice, const safer_lexicon *lexicon,
                                  const safer_data *data, const safer_choose_options *given, safer_error *error)
{
    safer_choice own_choice;
    safer_choose_options options = safer_choose_options_default();
    safer_status status = SF_TAKE_OPTIONS(&options, given, safer_choose_options, error);
    if (status == SAFER_OK) status = check(&options, data, error);
    if (status != SAFER_OK) return status;
    if (!choice) choice = &own_choice;
    sf_trials t = {.what = "kernel",
                   .data = data,
                   .seed = options.seed,
                   .threads = options.threads,
                   .progress = &options.progress,
                   .choice = choice};
    json_t *reasons = NULL;
    *choice = (safer_choice){.untried = !data ? "there is no data" : NULL};
    if (lexicon->synonym_offsets[lexicon->words.count] == 0) choice->untried = "no word has a synonym";
    if (!choice->untried) SF_TRY(sf_trials_start(&t, options.most_texts, error));
    if (!choice->untried) {
        SF_TRY(try_kernels(&t, lexicon, error));
        reasons = sf_trials_json(&t);
        if (!reasons) {
            status = sf_fail_memory(error);
            goto done;
        }
    }
    status = sf_lexicon_rework(out, lexicon, choice->untried ? kernels[0].name : choice->trials[choice->best].name,
                               reasons, options.threads, error);
done:
    json_decref(reasons);
    sf_trials_end(&t);
    return status;
}

/* --------------------------------------------------------- architectures */

static const safer_arch archs[] = {SAFER_ARCH_NGRAM, SAFER_ARCH_BOW, SAFER_ARCH_CNN};

static safer_status check_cheap(const safer_train_options *o, safer_error *error)
{
    const struct {
        const char *name;
        int given;
    } options[] = {{"defense", o->defense.kind != SAFER_DEFENSE_NONE},
                   {"encoder", o->bert.encoder != NULL},
                   {"device", o->device != NULL},
                   {"resume", o->resume}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (options[i].given)
            return sf_fail(error, SAFER_INVALID, "`%s` needs `arch`: only ngram, bow and cnn are tried without it",
                           options[i].name);
    return SAFER_OK;
}

/* NULL: there is something to try. */
static const char *reason_not_to_try(const safer_train_options *o)
{
    return !o->lexicon               ? "there is no lexicon"
           : !o->cnn.vectors         ? "there are no word vectors"
           : sf_deletes(o->deletion) ? "draws delete words"
                                     : NULL;
}

safer_status safer_train_choose(const char *output, const safer_train_options *given, safer_choice *choice,
                                safer_train_report *report, safer_error *error)
{
    safer_choice own_choice;
    safer_train_options o = safer_train_options_default();
    const safer_choose_options defaults = safer_choose_options_default();
    safer_status status = SF_TAKE_OPTIONS(&o, given, safer_train_options, error);
    if (status == SAFER_OK) status = check_cheap(&o, error);
    if (status != SAFER_OK) return status;
    if (!choice) choice = &own_choice;
    sf_trials t = {.what = "arch",
                   .data = o.train,
                   .seed = o.seed,
                   .threads = o.threads,
                   .progress = &o.progress,
                   .choice = choice};
    json_t *reasons = NULL;
    char *text = NULL;
    *choice = (safer_choice){.untried = reason_not_to_try(&o)};
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) { /* what is wrong is said before any work */
        o.arch = archs[i];
        SF_TRY(sf_train_check(output, &o, error));
    }
    if (!choice->untried) SF_TRY(sf_trials_start(&t, defaults.most_texts, error));
    for (size_t i = 0; !choice->untried && i < sizeof archs / sizeof archs[0]; i++) {
        o.arch = archs[i];
        SF_TRY(sf_trials_add(&t, safer_arch_name(o.arch), o.lexicon, &o, error));
    }
    o.arch = archs[choice->best];
    if (!choice->untried) {
        reasons = sf_trials_json(&t);
        text = sf_json_text(reasons);
        if (!text) {
            status = sf_fail_memory(error);
            goto done;
        }
    }
    o.arch_choice = text;
    status = safer_train(output, &o, report, error);
done:
    json_decref(reasons);
    free(text);
    sf_trials_end(&t);
    return status;
}
