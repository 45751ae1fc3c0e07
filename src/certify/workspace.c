/* What one thread needs to certify text after text. */
#include "certify/workspace.h"

#include "base/memory.h"
#include "base/number.h"
#include "base/options.h"
#include "base/parallel.h"
#include "certify/evidence.h"
#include "draw/groups.h"
#include "run/shard.h"
#include "stats/edits.h"
#include "stats/special.h"

#include <stdlib.h>

/* ----------------------------------------------------------------- options */

void safer_certify_options_init(safer_certify_options *options, size_t size)
{
    static const safer_certify_options defaults = {.method = SAFER_METHOD_ADAPTIVE,
                                                   .n = 5000,
                                                   .delta = 0.01,
                                                   .alpha = 0.001,
                                                   .radius = SAFER_ALL,
                                                   .seed = 1,
                                                   .batch = 256,
                                                   .edits = 1};
    sf_options_init(options, size, &defaults, sizeof defaults);
}

static safer_status check_deletion(const safer_certify_options *o, const safer_lexicon *lexicon, safer_error *error)
{
    const safer_status status = sf_deletion_check(o->deletion, error);
    const int groups = o->method == SAFER_METHOD_GROUPS;
    if (status != SAFER_OK) return status;
    if (groups && !o->deletion.groups)
        return sf_fail(error, SAFER_INVALID, "`groups`: the method groups needs their number, 1 to %d", SAFER_GROUPS);
    if (o->deletion.groups && !groups)
        return sf_fail(error, SAFER_INVALID, "`groups`: only the method groups has any, %s has none",
                       safer_method_name(o->method));
    if (o->edits < 1 || o->edits > SAFER_EDITS)
        return sf_fail(error, SAFER_INVALID, "`edits`: %zu (1 to %d)", o->edits, SAFER_EDITS);
    if (!safer_edit_kind_name(o->edit_kind)) return sf_fail(error, SAFER_INVALID, "`edit_kind`: unknown");
    if (sf_deletes(o->deletion) && o->method == SAFER_METHOD_IBP)
        return sf_fail(error, SAFER_INVALID, "`deletion`: the method ibp draws nothing, and so deletes nothing");
    return groups ? sf_groups_check(lexicon, error) : SAFER_OK;
}

safer_status sf_certify_check(const safer_certify_options *o, const safer_model *model, const safer_lexicon *lexicon,
                              safer_error *error)
{
    if (o->method != SAFER_METHOD_ADAPTIVE && o->method != SAFER_METHOD_BINOMIAL &&
        o->method != SAFER_METHOD_HOEFFDING && o->method != SAFER_METHOD_IBP && o->method != SAFER_METHOD_GROUPS)
        return sf_fail(error, SAFER_INVALID, "`method`: unknown");
    if (o->n < 1 || o->n > SF_SAMPLES_MAX)
        return sf_fail(error, SAFER_INVALID, "`n`: %llu (1 to 999999999)", (unsigned long long)o->n);
    if (o->n0 > SF_SAMPLES_MAX)
        return sf_fail(error, SAFER_INVALID, "`n0`: %llu (0 to 999999999)", (unsigned long long)o->n0);
    if (!(o->delta > 0 && o->delta < 1))
        return sf_fail(error, SAFER_INVALID, "`delta`: %g (above 0, below 1)", o->delta);
    if (!(o->alpha > 0 && o->alpha < 1))
        return sf_fail(error, SAFER_INVALID, "`alpha`: %g (above 0, below 1)", o->alpha);
    if (o->radius < 1) return sf_fail(error, SAFER_INVALID, "`radius`: at least 1, or all");
    if (o->threads < 0) return sf_fail(error, SAFER_INVALID, "`threads`: %d", o->threads);
    if (o->batch < 1 || o->batch > 1 << 20)
        return sf_fail(error, SAFER_INVALID, "`batch`: %zu (1 to 1048576)", o->batch);
    const safer_status status = check_deletion(o, lexicon, error);
    return status == SAFER_OK && o->method == SAFER_METHOD_IBP && model ? sf_ibp_check(model, lexicon, error) : status;
}

safer_status sf_certify_take(safer_certify_options *own, const safer_certify_options *given, const safer_model *model,
                             const safer_lexicon *lexicon, safer_error *error)
{
    safer_status status;
    SF_TRY(SF_TAKE_OPTIONS(own, given, safer_certify_options, error));
    SF_TRY(sf_certify_check(own, model, lexicon, error));
    SF_TRY(sf_shard_check((sf_shard){own->shard, own->shards}, error));
    if (!own->n0) own->n0 = own->n;
    own->deletion = sf_deletion_round(own->deletion);
done:
    return status;
}

/* --------------------------------------------------------------- workspace */

void safer_workspace_free(safer_workspace *w)
{
    if (!w) return;
    sf_slots_free(&w->slots);
    sf_sampler_free(&w->sampler);
    sf_eprocess_free(w->process);
    sf_tally_free(&w->tally);
    for (size_t i = 0; w->texts && i < w->options.batch; i++) sf_buffer_free(&w->texts[i]);
    for (int i = 0; w->scratch && i < w->threads; i++)
        if (w->scratch[i]) w->model->class->scratch_free(w->scratch[i]);
    free(w->scratch);
    free(w->texts);
    free(w->spans);
    free(w->votes);
    free(w->selection);
    free(w->shares);
    free(w->overlaps);
    free(w->draws);
    free(w->answers);
    free(w->margins);
    sf_ibp_scratch_free(w->ibp);
    free(w);
}

safer_status sf_workspace_new(safer_workspace **out, const safer_model *model, const safer_lexicon *lexicon,
                              const safer_certify_options *given, safer_error *error)
{
    safer_status status;
    safer_workspace *w = NULL;
    safer_certify_options own = safer_certify_options_default();
    const safer_certify_options *options = &own;
    SF_TRY(sf_certify_take(&own, given, model, lexicon, error));
    w = sf_calloc(1, sizeof *w);
    if (!w) return sf_fail_memory(error);
    w->model = model;
    w->lexicon = lexicon;
    w->options = *options;
    w->additive = options->method == SAFER_METHOD_IBP && sf_ibp_adds(model);
    w->votes = sf_calloc(model->classes, sizeof *w->votes);
    w->selection = sf_calloc(model->classes, sizeof *w->selection);
    w->shares = sf_calloc(model->classes, sizeof *w->shares);
    w->answers = sf_alloc(options->batch, sizeof *w->answers);
    w->texts = sf_calloc(options->batch, sizeof *w->texts);
    w->spans = sf_alloc(options->batch, sizeof *w->spans);
    w->threads = sf_threads(options->threads);
    if (model->calls && w->threads > model->calls) w->threads = model->calls;
    w->scratch = sf_calloc((size_t)w->threads, sizeof *w->scratch);
    w->margins = sf_calloc(model->classes, sizeof *w->margins);
    if (!w->margins || !w->votes || !w->selection || !w->shares || !w->answers || !w->texts || !w->spans ||
        !w->scratch) {
        status = sf_fail_memory(error);
        goto done;
    }
    w->vote_rule = sf_vote_rule_of(model->classes, options->alpha, options->n0);
    sf_eprocess_options process = sf_evidence_process(options->delta, model->classes, options->n);
    SF_TRY(sf_eprocess_new(&w->process, &process, error));
    SF_TRY(sf_tally_new(&w->tally, model->classes, error));
    for (int i = 0; model->class->scratch_new && i < w->threads; i++)
        SF_TRY(model->class->scratch_new(model, &w->scratch[i], error));
    *out = w;
    w = NULL;
done:
    safer_workspace_free(w);
    return status;
}

sf_terms sf_terms_of(const safer_certify_options *o)
{
    return (sf_terms){.radius = o->radius, .delta = o->delta, .n = o->n, .n0 = o->n0 ? o->n0 : o->n};
}

safer_status sf_workspace_settle(safer_workspace *w, sf_terms terms, safer_error *error)
{
    safer_certify_options *o = &w->options;
    if (terms.n != o->n || terms.delta != o->delta) { /* the process depends on both */
        sf_eprocess *process = NULL;
        const sf_eprocess_options how = sf_evidence_process(terms.delta, w->model->classes, terms.n);
        const safer_status status = sf_eprocess_new(&process, &how, error);
        if (status != SAFER_OK) return status;
        sf_eprocess_free(w->process);
        w->process = process;
    }
    if (terms.n0 != o->n0) w->vote_rule = sf_vote_rule_of(w->model->classes, o->alpha, terms.n0);
    o->radius = terms.radius;
    o->delta = terms.delta;
    o->n = terms.n;
    o->n0 = terms.n0;
    return SAFER_OK;
}

/* ------------------------------------------------------- the text at hand */

safer_status sf_workspace_read(safer_workspace *w, const char *text, size_t length, safer_error *error)
{
    safer_status status;
    SF_TRY(sf_slots_read(&w->slots, w->lexicon, text, length, error));
    SF_TRY(sf_slots_split(&w->slots, w->options.deletion, error));
    w->text = (sf_span){w->slots.text, w->slots.length};
    w->split = w->slots.split;
done:
    return status;
}

static safer_status make_room(safer_workspace *w, safer_error *error)
{
    const size_t slots = w->slots.slot_count, width = sf_slots_width(&w->slots);
    if (width && w->options.batch > SIZE_MAX / sizeof *w->draws / width) return sf_fail_memory(error);
    if (sf_grow(&w->overlaps, &w->overlap_capacity, slots + 1, sizeof *w->overlaps) ||
        sf_grow(&w->draws, &w->draw_capacity, w->options.batch * width + 1, sizeof *w->draws))
        return sf_fail_memory(error);
    return SAFER_OK;
}

safer_status sf_workspace_prepare(safer_workspace *w, safer_error *error)
{
    safer_status status;
    const sf_model_class *class = w->model->class;
    SF_TRY(make_room(w, error));
    SF_TRY(sf_sampler_prepare(&w->sampler, &w->slots, w->lexicon, error));
    if (w->slots.groups) SF_TRY(sf_sampler_group(&w->sampler, &w->slots, w->lexicon, w->options.seed, error));
    if (class->prepare && (class->deletes || !w->split))
        SF_TRY(class->prepare(w->model, w->lexicon, &w->slots, &w->prepared, error));
    /* Where tokens are deleted, what stands behind them moves up: then every slot can be seen. */
    w->visible = w->prepared && class->visible && !w->split ? class->visible(w->prepared) : w->slots.slot_count;
    sf_slots_overlaps(w->overlaps, &w->slots, w->lexicon); /* those of the visible slots come first */
    for (size_t s = 0; w->slots.deletion && s < w->visible; s++)
        w->overlaps[s] = sf_deletion_overlap(w->slots.deletion, w->overlaps[s]);
    qsort(w->overlaps, w->visible, sizeof *w->overlaps, sf_compare_doubles);
done:
    return status;
}

void sf_workspace_release(safer_workspace *w)
{
    if (w->prepared) w->model->class->release(w->prepared);
    w->prepared = NULL;
    w->text = (sf_span){0};
}

safer_status sf_workspace_show(safer_workspace *w, sf_moment moment, const safer_certificate *so_far,
                               safer_error *error)
{
    if (!w->watch.look || !w->watch.look(w->watch.context, moment, so_far, w)) return SAFER_OK;
    return sf_fail(error, SAFER_CANCELLED, "cancelled");
}
