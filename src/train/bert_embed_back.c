/* The `bert` classifier, on the way back to its embeddings: those of words, positions and types, and the table of
 * distances that disentangled attention reads in every layer. */
#include "train/bert_inside.h"

#include "base/memory.h"
#include "nn/layers.h"
#include "nn/vector.h"

#include <string.h>

/* ------------------------------------------------------------------ distances */

void sf_step_places_free(sf_step_places *p)
{
    sf_view *views[] = {&p->slopes[0], &p->slopes[1], &p->table, &p->factor, &p->turned};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) free(views[i]->values);
    sf_packed_free(&p->relative);
    sf_packed_free(&p->matrix);
}

int sf_step_places_new(sf_step_places *p, const sf_bert_step *s)
{
    const size_t H = s->layout->shape.hidden, rows = sf_bert_relative_rows(&s->layout->shape);
    const sf_dtype type = s->options.type;
    return sf_view_new(&p->slopes[0], rows, H, SF_F32) || sf_view_new(&p->slopes[1], rows, H, SF_F32) ||
           sf_view_new(&p->table, rows, H, SF_F32) || sf_view_new(&p->factor, rows, H, type) ||
           sf_view_new(&p->turned, H, (rows + 31) / 32 * 32, type) ||
           sf_packed_shape(&p->relative, rows, H, type, s->net->isa) ||
           sf_packed_shape(&p->matrix, H, H, type, s->net->isa);
}

void sf_step_places_begin(sf_bert_step *s)
{
    const size_t size = sf_bert_relative_rows(&s->layout->shape) * s->layout->shape.hidden * sizeof(float);
    memset(s->places.slopes[0].values, 0, size);
    memset(s->places.slopes[1].values, 0, size);
    if (s->layer + 1 == s->layout->shape.layers) memset(s->places.table.values, 0, size);
}

/* From the vectors of distances of a layer to the matrix that made them and to the table. Matrices that the pieces use
 * too have their gradient from those already. */
void sf_step_places_layer(sf_bert_step *s)
{
    const sf_bert_shape *shape = &s->layout->shape;
    const sf_bert_layer *l = &s->layout->layers[s->layer];
    const size_t H = shape->hidden, rows = sf_bert_relative_rows(shape);
    const size_t weights[2] = {l->place_key_weight, l->place_query_weight},
                 biases[2] = {l->place_key_bias, l->place_query_bias};
    const int used[2] = {shape->form.place_keys, shape->form.place_queries};
    sf_step_places *p = &s->places;
    sf_pack(&p->relative, s->net->relative, 0, 0, sf_packed_panels(&p->relative));
    for (int which = 0; which < 2; which++) {
        if (!used[which]) continue;
        float *weight = s->gradient + weights[which], *bias = s->gradient + biases[which];
        if (!shape->form.places_shared) memset(bias, 0, H * sizeof *bias);
        for (size_t i = 0; i < rows; i++) {
            const float *row = sf_view_row(p->slopes[which], i);
            sf_add(bias, row, H, s->net->isa);
            sf_view_keep(p->factor, i, row, H, s->net->isa);
        }
        sf_transpose(p->turned, p->factor, rows, H, s->net->isa);
        sf_product((sf_view){weight, H, SF_F32}, p->turned, &p->relative, NULL, SF_LINEAR, shape->form.places_shared,
                   H);
        if (!s->embeddings) continue;
        sf_pack(&p->matrix, (sf_view){s->parameters + weights[which], H, SF_F32}, 0, 0, sf_packed_panels(&p->matrix));
        sf_product(p->table, p->factor, &p->matrix, NULL, SF_LINEAR, 1, rows);
    }
}

static void table_back(sf_bert_step *s)
{
    const sf_bert_layout *l = s->layout;
    const size_t H = l->shape.hidden;
    float *g = s->gradient;
    for (size_t i = 0; i < sf_bert_relative_rows(&l->shape); i++) {
        float *d = sf_view_row(s->places.table, i);
        if (l->shape.form.places_normed)
            sf_norm_row_backward(d, g + l->relative_norm_weight, g + l->relative_norm_bias, d,
                                 s->parameters + l->relative + i * H, s->parameters + l->relative_norm_weight,
                                 l->shape.epsilon, H, s->net->isa);
        sf_add(g + l->relative + i * H, d, H, s->net->isa);
    }
}

/* ----------------------------------------------------------------- embeddings */

/* d (the width that is normed) = the gradient before the norm of the embeddings. */
static void norm_back(sf_bert_step *s, float *d, const float *x, size_t width, float *spare)
{
    const sf_bert_layout *l = s->layout;
    sf_norm_row_backward(d, s->gradient + l->norm_weight, l->norm_bias == SIZE_MAX ? spare : s->gradient + l->norm_bias,
                         d, x, s->parameters + l->norm_weight, l->shape.epsilon, width, s->net->isa);
}

/* The gradient of the sum of a piece's embeddings, in `out` (width), from that of the first layer's input, d (hidden).
 * `sum` (width) is that sum, before the projection. */
static void project_back(sf_bert_step *s, float *out, float *d, size_t i, const float *sum)
{
    const sf_bert_layout *l = s->layout;
    const size_t H = l->shape.hidden, E = sf_bert_width(&l->shape), room = H > E ? H : E;
    const float *weight = s->parameters + l->projection_weight, *kept = sf_view_row(s->embedded, i);
    float *g = s->gradient, *spare = s->room + room, *normed = s->room + 2 * room;
    if (l->shape.form.projected_first) {
        norm_back(s, d, kept, H, spare);
        sf_linear_backward(out, g + l->projection_weight, NULL, d, sum, weight, 1, E, H);
        return;
    }
    const sf_view from = {(float *)kept, E, SF_F32}, to = {normed, E, SF_F32};
    sf_norm_rows(to, to, from, s->parameters + l->norm_weight, sf_bert_shift(s->net, l->norm_bias), l->shape.epsilon, 1,
                 E, s->net->isa);
    sf_linear_backward(out, g + l->projection_weight, g + l->projection_bias, d, normed, weight, 1, E, H);
    norm_back(s, out, kept, E, spare);
}

static void piece_back(sf_bert_step *s, size_t i, size_t position)
{
    const sf_bert_layout *l = s->layout;
    const size_t H = l->shape.hidden, E = sf_bert_width(&l->shape), room = H > E ? H : E;
    const sf_isa isa = s->net->isa;
    const float *p = s->parameters;
    float *g = s->gradient, *d = sf_view_row(s->d, i), *sum = s->room + 3 * room;
    const size_t word = l->words + s->batch->ids[i] * E, place = l->positions + position * E;
    const int placed = l->positions != SIZE_MAX;
    if (l->shape.form.width) {
        memcpy(sum, p + word, E * sizeof *sum);
        if (placed) sf_add(sum, p + place, E, isa);
        if (l->types != SIZE_MAX) sf_add(sum, p + l->types, E, isa);
        project_back(s, s->room, d, i, sum);
        d = s->room;
    } else {
        norm_back(s, d, sf_view_row(s->embedded, i), H, s->room + room);
    }
    sf_add(g + word, d, E, isa);
    if (placed) sf_add(g + place, d, E, isa);
    if (l->types != SIZE_MAX) sf_add(g + l->types, d, E, isa);
}

void sf_step_embeddings(sf_bert_step *s)
{
    for (size_t t = 0; t < s->batch->count; t++) {
        size_t seen = 0;
        for (size_t i = s->batch->offsets[t]; i < s->batch->offsets[t + 1]; i++)
            piece_back(s, i, sf_bert_place(&s->layout->shape, s->batch->ids[i], &seen));
    }
    if (s->layout->shape.form.relative == SF_RELATIVE_PARTS) table_back(s);
}
