/* The `charcnn` classifier: texts on their way through the convolutions. */
#include "model/charcnn_pass.h"

#include "base/memory.h"

#include <assert.h>
#include <string.h>

void sf_charcnn_pass_free(sf_charcnn_pass *pass)
{
    if (!pass) return;
    free(pass->extents);
    for (size_t i = 0; i < SF_CHARCNN_C; i++) free(pass->frames[i]);
    for (size_t i = 0; i < (pass->keep ? 3u : 2u); i++) free(pass->between[i]);
    free(pass->raw);
    for (size_t i = 0; i < SF_CHARCNN_STAGES; i++) free(pass->which[i]);
    free(pass);
}

/* Rows of F elements. Cleared, so that rows at the end that are never computed are numbers. */
static void *new_rows(int *failed, size_t texts, size_t frames, size_t row)
{
    size_t count;
    int too_many = __builtin_mul_overflow(texts, frames, &count) || __builtin_mul_overflow(count, row, &count);
    void *rows = too_many ? NULL : sf_alloc_aligned(count, 1);
    if (rows)
        memset(rows, 0, count);
    else
        *failed = 1;
    return rows;
}

safer_status sf_charcnn_pass_new(sf_charcnn_pass **out, const sf_charcnn_net *net, size_t texts, int keep,
                                 safer_error *error)
{
    const size_t *frames = net->layout.frames, F = net->layout.shape.features, row = F * sf_element(net->type);
    int failed = 0;
    sf_charcnn_pass *pass = sf_calloc(1, sizeof *pass);
    if (!pass) return sf_fail_memory(error);
    pass->capacity = texts;
    pass->keep = keep;
    pass->extents = sf_calloc(texts, sizeof *pass->extents);
    pass->raw = new_rows(&failed, texts, frames[SF_CHARCNN_A], row);
    for (size_t i = 0; i < SF_CHARCNN_C; i++) pass->frames[i] = new_rows(&failed, texts, frames[i], row);
    for (size_t i = 0; i < 3; i++)
        pass->between[i] = keep || i < 2 ? new_rows(&failed, texts, frames[SF_CHARCNN_B], row) : pass->between[0];
    for (size_t i = 0; keep && i < SF_CHARCNN_STAGES; i++) pass->which[i] = new_rows(&failed, texts, frames[i], F);
    if (failed || !pass->extents) {
        sf_charcnn_pass_free(pass);
        return sf_fail_memory(error);
    }
    *out = pass;
    return SAFER_OK;
}

static size_t thirds(size_t n) { return (n + SF_CHARCNN_POOL - 1) / SF_CHARCNN_POOL; }

static void place_texts(sf_charcnn_pass *pass, const sf_charcnn_layout *l, const size_t *lengths, size_t count)
{
    const size_t wide = SF_CHARCNN_WIDE - 1, narrow = (SF_CHARCNN_CONVS - 2) * (SF_CHARCNN_NARROW - 1);
    pass->count = count;
    memset(pass->total, 0, sizeof pass->total);
    for (size_t b = 0; b < count; b++) {
        sf_charcnn_extent *e = &pass->extents[b];
        size_t used = lengths[b];
        for (size_t i = 0; i < SF_CHARCNN_STAGES; i++) e->used[i] = used = sf_least(thirds(used), l->frames[i]);
        e->rows[SF_CHARCNN_A] = used ? SF_CHARCNN_POOL * e->used[SF_CHARCNN_B] + wide : 0;
        e->rows[SF_CHARCNN_B] = used ? SF_CHARCNN_POOL * e->used[SF_CHARCNN_C] + narrow : 0;
        for (size_t i = 0; i < SF_CHARCNN_C; i++) {
            e->used[i] = sf_least(e->used[i], e->rows[i]); /* pooling may drop a rest */
            e->first[i] = pass->total[i];
            pass->total[i] += e->rows[i];
        }
    }
}

/* Copies the blank frame to rows from..to-1. */
static void fill_blank(void *rows, const void *blank, size_t from, size_t to, size_t size)
{
    for (size_t r = from; r < to; r++) memcpy((char *)rows + r * size, blank, size);
}

static void close_stage(sf_charcnn_pass *pass, const sf_charcnn_net *net, size_t stage, int define)
{
    const size_t size = net->layout.shape.features * sf_element(net->type);
    if (define) memcpy(net->blank[stage], pass->frames[stage], size);
    for (size_t b = 0; b < pass->count; b++) {
        const sf_charcnn_extent *e = &pass->extents[b];
        fill_blank(pass->frames[stage], net->blank[stage], e->first[stage] + e->used[stage],
                   e->first[stage] + e->rows[stage], size);
    }
}

static void convolve(const sf_charcnn_net *net, void *out, const void *in, size_t convolution, size_t rows)
{
    const size_t F = net->layout.shape.features;
    const sf_view to = {out, F, net->type}, from = {(void *)(uintptr_t)in, F, net->type};
    sf_product(to, from, &net->conv[convolution], net->bias + convolution * F, SF_RELU, 0, rows);
}

static void run_pass(sf_charcnn_pass *pass, void *out, const sf_charcnn_net *net, const uint8_t *codes,
                     const size_t *lengths, size_t count, int define)
{
    const sf_charcnn_layout *l = &net->layout;
    const size_t F = l->shape.features, size = sf_element(net->type), inputs = l->inputs;
    const size_t *frames = l->frames;
    const sf_view a = {pass->frames[SF_CHARCNN_A], F, net->type}, b = {pass->frames[SF_CHARCNN_B], F, net->type};
    const sf_view raw = {pass->raw, F, net->type}, c = {out, F, net->type};
    uint8_t *const *which = pass->which;
    assert(count <= pass->capacity);
    place_texts(pass, l, lengths, count);
    for (size_t block = 0; block < F / SF_CHARCNN_LANES; block++) /* its table stays in the first-level cache */
        for (size_t i = 0; i < count; i++) {
            const sf_charcnn_extent *e = &pass->extents[i];
            sf_frames_of_codes(sf_view_at(a, e->first[SF_CHARCNN_A], 0),
                               which[0] ? which[0] + e->first[SF_CHARCNN_A] * F : NULL,
                               net->table + block * SF_CHARCNN_CODES * SF_CHARCNN_WIDE * SF_CHARCNN_LANES, net->bias,
                               codes + i * l->shape.characters, e->used[SF_CHARCNN_A], block, net->isa);
        }
    close_stage(pass, net, SF_CHARCNN_A, define);
    if (pass->total[SF_CHARCNN_A])
        convolve(net, pass->raw, pass->frames[SF_CHARCNN_A], 1, pass->total[SF_CHARCNN_A] - (SF_CHARCNN_WIDE - 1));
    for (size_t i = 0; i < count; i++) {
        const sf_charcnn_extent *e = &pass->extents[i];
        sf_frames_pool(sf_view_at(b, e->first[SF_CHARCNN_B], 0),
                       which[1] ? which[1] + e->first[SF_CHARCNN_B] * F : NULL,
                       sf_view_at(raw, e->first[SF_CHARCNN_A], 0), e->used[SF_CHARCNN_B], F, net->isa);
    }
    close_stage(pass, net, SF_CHARCNN_B, define);
    for (size_t i = 2; pass->total[SF_CHARCNN_B] && i < SF_CHARCNN_CONVS; i++)
        convolve(net, i < 5 ? pass->between[i - 2] : pass->raw,
                 i > 2 ? pass->between[i - 3] : pass->frames[SF_CHARCNN_B], i,
                 pass->total[SF_CHARCNN_B] - (i - 1) * (SF_CHARCNN_NARROW - 1));
    for (size_t i = 0; i < count; i++) {
        const sf_charcnn_extent *e = &pass->extents[i];
        const size_t row = i * frames[SF_CHARCNN_C];
        sf_frames_pool(sf_view_at(c, row, 0), which[2] ? which[2] + row * F : NULL,
                       sf_view_at(raw, e->first[SF_CHARCNN_B], 0), e->used[SF_CHARCNN_C], F, net->isa);
        if (define) memcpy(net->blank[SF_CHARCNN_C], out, F * size);
        fill_blank((char *)out + i * inputs * size, net->blank[SF_CHARCNN_C], e->used[SF_CHARCNN_C],
                   frames[SF_CHARCNN_C], F * size);
    }
}

void sf_charcnn_pass_blanks(sf_charcnn_net *net)
{
    const size_t one = 1; /* a text of one character, and that a blank: its frames are all alike */
    run_pass(net->blank_pass, net->blank_out, net, net->blank_codes, &one, 1, 1);
}

void sf_charcnn_pass_run(sf_charcnn_pass *pass, void *out, const sf_charcnn_net *net, const uint8_t *codes,
                         const size_t *lengths, size_t count)
{
    run_pass(pass, out, net, codes, lengths, count, 0);
}
