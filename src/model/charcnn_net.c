/* The `charcnn` classifier: its weights in the form that answers, and the dense layers. */
#include "model/charcnn_net.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "model/charcnn_pass.h"
#include "nn/vector.h"

#include <string.h>

/* ------------------------------------------------------------------- memory */

void sf_charcnn_net_free(sf_charcnn_net *net)
{
    if (!net) return;
    free(net->table);
    free(net->bias);
    for (size_t i = 0; i < SF_CHARCNN_CONVS; i++) sf_packed_free(&net->conv[i]);
    for (size_t i = 0; i < 2; i++) {
        for (size_t p = 0; net->hidden[i] && p < net->slices[i] * net->pieces; p++) sf_packed_free(&net->hidden[i][p]);
        free(net->hidden[i]);
    }
    free(net->hidden_bias);
    free(net->output_weight);
    free(net->output_bias);
    for (size_t i = 0; i < SF_CHARCNN_STAGES; i++) free(net->blank[i]);
    sf_charcnn_pass_free(net->blank_pass);
    free(net->blank_codes);
    free(net->blank_out);
    free(net);
}

static int shape_weights(sf_charcnn_net *net)
{
    const sf_charcnn_layout *l = &net->layout;
    const size_t F = l->shape.features, H = l->shape.hidden;
    for (size_t i = 1; i < SF_CHARCNN_CONVS; i++)
        if (sf_packed_shape(&net->conv[i], sf_charcnn_width(i) * F, F, net->type, net->isa)) return -1;
    net->pieces = (H + SF_CHARCNN_PIECE - 1) / SF_CHARCNN_PIECE;
    for (size_t i = 0; i < 2; i++) {
        const size_t inputs = i ? H : l->inputs;
        net->slices[i] = (inputs + SF_CHARCNN_SLICE - 1) / SF_CHARCNN_SLICE;
        if (!(net->hidden[i] = sf_calloc(net->slices[i] * net->pieces, sizeof *net->hidden[i]))) return -1;
        for (size_t k = 0; k < net->slices[i]; k++)
            for (size_t p = 0; p < net->pieces; p++)
                if (sf_packed_shape(&net->hidden[i][k * net->pieces + p],
                                    sf_least(SF_CHARCNN_SLICE, inputs - k * SF_CHARCNN_SLICE),
                                    sf_least(SF_CHARCNN_PIECE, H - p * SF_CHARCNN_PIECE), net->type, net->isa))
                    return -1;
    }
    return 0;
}

safer_status sf_charcnn_net_new(sf_charcnn_net **out, const sf_charcnn_layout *layout, sf_arithmetic arithmetic,
                                safer_error *error)
{
    safer_status status;
    const size_t F = layout->shape.features, H = layout->shape.hidden, K = layout->shape.classes;
    sf_charcnn_net *net = sf_calloc(1, sizeof *net);
    if (!net) return sf_fail_memory(error);
    net->layout = *layout;
    net->type = arithmetic.type;
    net->isa = arithmetic.isa;
    net->table = sf_alloc_aligned(SF_CHARCNN_CODES * SF_CHARCNN_WIDE * F, sizeof *net->table);
    net->bias = sf_alloc_aligned(SF_CHARCNN_CONVS * F, sizeof *net->bias);
    net->hidden_bias = sf_alloc_aligned(2 * H, sizeof *net->hidden_bias);
    net->output_weight = sf_alloc(K * H, sizeof *net->output_weight);
    net->output_bias = sf_alloc(K, sizeof *net->output_bias);
    net->blank_codes = sf_calloc(layout->shape.characters, 1);
    net->blank_out = sf_alloc_aligned(layout->inputs, sf_element(net->type));
    int failed = !net->table || !net->bias || !net->hidden_bias || !net->output_weight || !net->output_bias ||
                 !net->blank_codes || !net->blank_out || shape_weights(net);
    for (size_t i = 0; i < SF_CHARCNN_STAGES; i++)
        if (!(net->blank[i] = sf_alloc_aligned(F, sf_element(net->type)))) failed = 1;
    if (failed) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_charcnn_pass_new(&net->blank_pass, net, 1, 1, error));
    *out = net;
    net = NULL;
done:
    sf_charcnn_net_free(net);
    return status;
}

/* ------------------------------------------------------------------ loading */

typedef struct loading {
    sf_charcnn_net *net;
    const float *parameters;
} loading;

/* The packed matrix number `index` and its place among the parameters; NULL after the last. */
static sf_packed *matrix_at(sf_view *source, const loading *job, size_t index)
{
    sf_charcnn_net *net = job->net;
    const sf_charcnn_layout *l = &net->layout;
    const size_t convs = SF_CHARCNN_CONVS - 1, H = l->shape.hidden;
    size_t offset, stride;
    sf_packed *packed;
    if (index < convs) {
        packed = &net->conv[index + 1];
        offset = l->conv_weight[index + 1];
        stride = l->shape.features;
    } else {
        const size_t first = net->slices[0] * net->pieces, layer = index - convs >= first;
        index -= convs + (layer ? first : 0);
        if (layer && index >= net->slices[1] * net->pieces) return NULL;
        packed = &net->hidden[layer][index];
        offset = l->hidden_weight[layer] + index / net->pieces * SF_CHARCNN_SLICE * H +
                 index % net->pieces * SF_CHARCNN_PIECE;
        stride = H;
    }
    *source = (sf_view){(void *)(uintptr_t)(job->parameters + offset), stride, SF_F32};
    return packed;
}

/* Items are panels of all matrices, one after the other. */
static void load_panels(void *context, size_t begin, size_t end, int worker)
{
    const loading *job = context;
    sf_view source;
    sf_packed *packed;
    size_t first = 0;
    (void)worker;
    for (size_t i = 0; first < end && (packed = matrix_at(&source, job, i)); i++) {
        size_t panels = sf_packed_panels(packed), from = begin > first ? begin - first : 0,
               to = sf_least(panels, end - first);
        if (from < to) sf_pack(packed, source, 0, from, to - from);
        first += panels;
    }
}

static void load_table(sf_charcnn_net *net, const float *parameters)
{
    const size_t F = net->layout.shape.features, row = SF_CHARCNN_WIDE * SF_CHARCNN_LANES;
    const float *weight = parameters + net->layout.conv_weight[0];
    for (size_t block = 0; block < F / SF_CHARCNN_LANES; block++) {
        float *table = net->table + block * SF_CHARCNN_CODES * row;
        memset(table, 0, row * sizeof *table); /* blank */
        for (size_t i = 0; i < SF_CHARCNN_ALPHABET * SF_CHARCNN_WIDE; i++)
            memcpy(table + row + i * SF_CHARCNN_LANES, weight + i * F + block * SF_CHARCNN_LANES,
                   SF_CHARCNN_LANES * sizeof *table);
    }
}

void sf_charcnn_net_load(sf_charcnn_net *net, const float *parameters, int threads)
{
    const sf_charcnn_layout *l = &net->layout;
    const size_t F = l->shape.features, H = l->shape.hidden, K = l->shape.classes;
    loading job = {net, parameters};
    sf_view source;
    const sf_packed *packed;
    size_t panels = 0;
    for (size_t i = 0; (packed = matrix_at(&source, &job, i)); i++) panels += sf_packed_panels(packed);
    sf_parallel(threads, panels, 1, load_panels, &job);
    load_table(net, parameters);
    for (size_t i = 0; i < SF_CHARCNN_CONVS; i++)
        memcpy(net->bias + i * F, parameters + l->conv_bias[i], F * sizeof *net->bias);
    for (size_t i = 0; i < 2; i++)
        memcpy(net->hidden_bias + i * H, parameters + l->hidden_bias[i], H * sizeof *net->hidden_bias);
    memcpy(net->output_weight, parameters + l->output_weight, K * H * sizeof *net->output_weight);
    memcpy(net->output_bias, parameters + l->output_bias, K * sizeof *net->output_bias);
    sf_charcnn_pass_blanks(net);
}

/* ------------------------------------------------------------- dense layers */

void sf_charcnn_dense(float *out, sf_view in, const sf_charcnn_net *net, size_t layer, size_t first, size_t last,
                      size_t count)
{
    const size_t H = net->layout.shape.hidden;
    for (size_t p = first; p < last; p++) {
        const size_t at = p * SF_CHARCNN_PIECE, width = sf_least(SF_CHARCNN_PIECE, H - at);
        for (size_t k = 0; k < net->slices[layer]; k++)
            sf_product((sf_view){out + at, H, SF_F32}, sf_view_at(in, 0, k * SF_CHARCNN_SLICE),
                       &net->hidden[layer][k * net->pieces + p], k ? NULL : net->hidden_bias + layer * H + at,
                       SF_LINEAR, k > 0, count);
        for (size_t i = 0; i < count; i++) sf_activate(out + i * H + at, out + i * H + at, SF_RELU, width, net->isa);
    }
}
