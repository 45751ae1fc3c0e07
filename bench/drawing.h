/* Draws to pieces, timed: a text is prepared once and drawn many times; checked first against the pieces of the text as
 * it is rendered. */
#ifndef BENCH_DRAWING_H
#define BENCH_DRAWING_H

#include "bench.h"

#include "base/memory.h"
#include "base/progress.h"
#include "draw/sampler.h"
#include "model/pieces.h"

#include <string.h>

enum { DRAWN = 64, DRAWS = 512, LIMIT = 510 };

typedef struct draws_speed {
    double rendered;                              /* bytes per text that are not looked up */
    double prepare, draws, ratio, slots, visible; /* texts per second, draws per second, to rendering; slots per text */
} draws_speed;

static inline draws_speed time_drawing(const sf_piecer *piecer, const safer_data *data, const safer_lexicon *lexicon)
{
    size_t texts = safer_data_size(data) < DRAWN ? safer_data_size(data) : DRAWN, slot_count = 0, visible = 0,
           rendered = 0;
    double preparing = 0, drawing = 0, rendering = 0;
    sf_slots slots = {0};
    sf_sampler sampler = {0};
    sf_pieces_scratch scratch = {0};
    sf_buffer text = {0};
    sf_ids expected = {0};
    uint32_t ids[LIMIT], *draws = NULL;
    size_t capacity = 0;
    sf_lexpieces *words = sf_lexpieces_new(piecer, lexicon, LIMIT);
    check(words != NULL, "out of memory");
    for (size_t i = 0; i < texts; i++) {
        safer_row row = safer_data_row(data, i * (safer_data_size(data) / texts));
        sf_pieces *pieces = NULL;
        check(sf_slots_read(&slots, lexicon, row.text, row.text_length, NULL) == SAFER_OK, "slots");
        check(sf_sampler_prepare(&sampler, &slots, lexicon, NULL) == SAFER_OK, "sampler");
        check(sf_grow(&draws, &capacity, DRAWS * slots.slot_count + 1, sizeof *draws) == 0, "out of memory");
        sf_sampler_draw(draws, &sampler, sf_stream_of(1, slots.hash, SF_STAGE_CERTIFICATION), 0, DRAWS);
        double start = sf_seconds();
        check(sf_pieces_new(&pieces, piecer, lexicon, words, &slots, LIMIT, NULL) == SAFER_OK, "pieces");
        preparing += sf_seconds() - start;
        slot_count += slots.slot_count;
        visible += sf_pieces_visible(pieces);
        rendered += sf_pieces_rendered(pieces);
        for (size_t d = 0; d < DRAWS / 16; d++) {
            start = sf_seconds();
            sf_buffer_clear(&text);
            expected.count = 0;
            check(sf_slots_render(&text, &slots, lexicon, draws + d * slots.slot_count) == 0, "render");
            check(sf_piecer_encode(&expected, piecer, text.bytes, text.length, LIMIT, &scratch.piecer) == 0, "encode");
            rendering += sf_seconds() - start;
            size_t n = sf_pieces_draw(ids, pieces, draws + d * slots.slot_count, &scratch);
            check(n == expected.count && memcmp(ids, expected.ids, n * sizeof *ids) == 0,
                  "a draw is not what is rendered");
        }
        start = sf_seconds();
        for (size_t d = 0; d < DRAWS; d++)
            check(sf_pieces_draw(ids, pieces, draws + d * slots.slot_count, &scratch) <= LIMIT, "draw");
        drawing += sf_seconds() - start;
        sf_pieces_free(pieces);
    }
    free(draws);
    sf_lexpieces_free(words);
    sf_slots_free(&slots);
    sf_sampler_free(&sampler);
    sf_pieces_scratch_free(&scratch);
    sf_buffer_free(&text);
    sf_ids_free(&expected);
    double n = (double)texts;
    return (draws_speed){(double)rendered / n,     n / preparing,          n * DRAWS / drawing,
                         rendering * 16 / drawing, (double)slot_count / n, (double)visible / n};
}

static inline void print_drawing(const draws_speed *d)
{
    printf("drawing    %.0f draws/s of %d pieces, %.1f times rendering and encoding; "
           "%.0f texts/s prepared (%.0f slots, %.0f visible; %.0f bytes rendered)\n",
           d->draws, LIMIT, d->ratio, d->prepare, d->slots, d->visible, d->rendered);
}

#endif
