/* A `charcnn` that learns, on the CPU or on a device. */
#include "train/charcnn_learner.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "nn/layers.h"
#include "train/charcnn_scale.h"

struct sf_charcnn_learner {
    sf_charcnn_layout layout;
    sf_charcnn_options options;

    /* On the CPU. */
    sf_charcnn_step *step;

    /* On a device. */
    const sf_device_table *table; /* NULL: on the CPU */
    sf_device_convnet_step *device;
    float *masks; /* (2, texts, hidden) of dropout; NULL: none */

    /* Of the step in progress. */
    uint64_t number;
    size_t count;
};

void sf_charcnn_learner_free(sf_charcnn_learner *l)
{
    if (!l) return;
    if (l->device) l->table->convnet_step_free(l->device);
    sf_charcnn_step_free(l->step);
    free(l->masks);
    free(l);
}

static safer_status start_device(sf_charcnn_learner *l, int device, const float *trained, size_t texts,
                                 safer_error *error)
{
    const sf_convnet net = sf_charcnn_convnet(&l->layout);
    sf_device_convnet_training training = {
        .net = &net, .trained = trained, .texts = texts, .smoothing = l->options.smoothing, .clip = l->options.clip};
    for (size_t i = 0; i < SF_CHARCNN_MATRICES; i++) training.shares[i] = sf_charcnn_share(&l->layout, i);
    if (l->options.dropout > 0 && !(l->masks = sf_alloc(2 * texts * l->layout.shape.hidden, sizeof *l->masks)))
        return sf_fail_memory(error);
    const safer_status status = l->table->convnet_step_new(&l->device, device, &training, error);
    if (status == SAFER_MEMORY)
        sf_fail(error, status,
                "cuda:%d has not enough free memory for a step of %zu texts of %zu characters: lower `batch` or "
                "`characters`",
                device, texts, l->layout.shape.characters);
    return status;
}

safer_status sf_charcnn_learner_new(sf_charcnn_learner **out, const sf_device_choice *choice,
                                    const sf_charcnn_layout *layout, const float *trained,
                                    const sf_charcnn_options *options, size_t texts, safer_error *error)
{
    sf_charcnn_learner *l = sf_calloc(1, sizeof *l);
    if (!l) return sf_fail_memory(error);
    l->layout = *layout;
    l->options = *options;
    if (choice->count) l->table = choice->table;
    const safer_status status = l->table ? start_device(l, choice->first, trained, texts, error)
                                         : sf_charcnn_step_new(&l->step, layout, options, texts, error);
    if (status == SAFER_OK)
        *out = l;
    else
        sf_charcnn_learner_free(l);
    return status;
}

/* ---------------------------------------------------------------------- steps */

/* Items are texts. */
static void draw_masks(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_learner *l = context;
    const size_t H = l->layout.shape.hidden;
    const sf_stream stream = sf_charcnn_step_dropout(&l->options);
    (void)worker;
    for (size_t b = begin; b < end; b++)
        for (size_t k = 0; k < 2; k++)
            sf_dropout_mask(l->masks + (k * l->count + b) * H, l->options.dropout, stream, l->number,
                            (uint32_t)(2 * b + k), H);
}

static safer_status step_on_device(double *loss, sf_charcnn_learner *l, const sf_charcnn_batch *batch, double rate,
                                   uint64_t number, safer_error *error)
{
    safer_status status;
    const sf_adam a = sf_adam_at(rate, l->options.decay, number);
    const sf_device_adam adam = {a.beta1, a.beta2, a.correct1, a.correct2, a.epsilon, a.rate, a.decay};
    double own = 0;
    l->number = number;
    l->count = batch->count;
    if (l->masks) sf_parallel(l->options.threads, batch->count, 8, draw_masks, l);
    SF_TRY(l->table->convnet_step_gradient(&own, NULL, l->device, batch->codes, batch->count, batch->labels, l->masks,
                                           error));
    SF_TRY(l->table->convnet_step_update(l->device, &adam, error));
    *loss += own;
done:
    return status;
}

safer_status sf_charcnn_learner_step(double *loss, sf_charcnn_learner *l, const sf_charcnn_batch *batch,
                                     sf_charcnn_state state, double rate, uint64_t number, safer_error *error)
{
    double own;
    if (l->table) return step_on_device(loss, l, batch, rate, number, error);
    sf_charcnn_step_gradient(&own, l->step, state.trained, batch, number);
    sf_charcnn_step_update(l->step, state.trained, state.means, state.variances, rate, number);
    *loss += own;
    return SAFER_OK;
}

/* ----------------------------------------------------------------------- state */

int sf_charcnn_learner_is_away(const sf_charcnn_learner *l) { return l->table != NULL; }

safer_status sf_charcnn_learner_answer(float *logits, sf_charcnn_learner *l, const uint8_t *codes, size_t count,
                                       safer_error *error)
{
    return l->table->convnet_step_answer(logits, l->device, codes, count, error);
}

safer_status sf_charcnn_learner_fetch(sf_charcnn_learner *l, sf_charcnn_state state, safer_error *error)
{
    if (!l->table) return SAFER_OK;
    return l->table->convnet_step_read(state.trained, state.means, state.variances, l->device, error);
}

safer_status sf_charcnn_learner_changed(sf_charcnn_learner *l, sf_charcnn_state state, safer_error *error)
{
    if (!l->table) return SAFER_OK;
    return l->table->convnet_step_write(l->device, state.trained, state.means, state.variances, error);
}
