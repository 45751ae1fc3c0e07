/* Draws to pieces, timed: a text is prepared once and drawn many times; checked first against the pieces of the text as
 * it is rendered. */
#ifndef BENCH_DRAWING_H
#define BENCH_DRAWING_H

#include "bench.h"

#include "base/memory.h"
#include "draw/sampler.h"
#include "model/kept.h"

#include <string.h>

enum { DRAWN = 64, DRAWS = 512, LIMIT = 510 };

typedef struct draws_speed {
    double rendered; /* bytes per text that are not looked up; of draws that delete, tokens */
    double prepare, draws, ratio, slots, visible; /* texts per second, draws per second, to rendering; slots per text */
} draws_speed;

/* A text that is prepared: for draws that delete tokens, or for others. */
typedef struct drawn_text {
    sf_pieces *pieces;
    sf_kept *kept;
} drawn_text;

static inline size_t draw_pieces(uint32_t *ids, const drawn_text *t, const uint32_t *draw, sf_pieces_scratch *scratch)
{
    return t->kept ? sf_kept_draw(ids, t->kept, draw, scratch) : sf_pieces_draw(ids, t->pieces, draw, scratch);
}

/* `deletion`: how often draws delete a token; 0: never. */
static inline draws_speed time_drawing(const sf_piecer *piecer, const safer_data *data, const safer_lexicon *lexicon,
                                       double deletion)
{
    size_t texts = safer_data_size(data) < DRAWN ? safer_data_size(data) : DRAWN, slot_count = 0, visible = 0,
           rendered = 0;
    double preparing = 0, drawing = 0, rendering = 0;
    sf_slots slots = {0};
    sf_sampler sampler = {0};
    sf_pieces_scratch scratch = {0};
    sf_buffer text = {0};
    sf_ids expected = {0};
    const sf_window window = {LIMIT, 0};
    uint32_t ids[LIMIT], *draws = NULL;
    size_t capacity = 0;
    sf_lexpieces *words = sf_lexpieces_new(piecer, lexicon, LIMIT);
    check(words != NULL, "out of memory");
    for (size_t i = 0; i < texts; i++) {
        safer_row row = safer_data_row(data, i * (safer_data_size(data) / texts));
        drawn_text own = {NULL, NULL};
        check(sf_slots_read(&slots, lexicon, row.text, row.text_length, NULL) == SAFER_OK, "slots");
        check(sf_slots_split(&slots, (safer_deletion){.chance = deletion}, NULL) == SAFER_OK, "tokens");
        const size_t width = sf_slots_width(&slots);
        check(sf_sampler_prepare(&sampler, &slots, lexicon, NULL) == SAFER_OK, "sampler");
        check(sf_grow(&draws, &capacity, DRAWS * width + 1, sizeof *draws) == 0, "out of memory");
        sf_sampler_draw(draws, &sampler, sf_stream_of(1, slots.hash, SF_STAGE_CERTIFICATION), 0, DRAWS);
        double start = bench_processor();
        check((deletion > 0 ? sf_kept_new(&own.kept, piecer, lexicon, words, &slots, window, NULL)
                            : sf_pieces_new(&own.pieces, piecer, lexicon, words, &slots, window, NULL)) == SAFER_OK,
              "pieces");
        preparing += bench_processor() - start;
        slot_count += slots.slot_count;
        visible += own.pieces ? sf_pieces_visible(own.pieces) : slots.slot_count;
        rendered += own.pieces ? sf_pieces_rendered(own.pieces) : sf_kept_rendered(own.kept);
        for (int timed = 0; timed < 2; timed++) { /* checked, and then once more against the clock */
            start = bench_processor();
            for (size_t d = 0; d < DRAWS / 16; d++) {
                sf_buffer_clear(&text);
                check(sf_slots_render(&text, &slots, lexicon, draws + d * width) == 0, "render");
                check(sf_piecer_encode(&expected, piecer, text.length ? text.bytes : "", text.length, window,
                                       &scratch.piecer) == 0,
                      "encode");
                if (timed) continue;
                const size_t n = draw_pieces(ids, &own, draws + d * width, &scratch);
                check(n == expected.count && (n == 0 || memcmp(ids, expected.ids, n * sizeof *ids) == 0),
                      "a draw is not what is rendered");
            }
            if (timed) rendering += bench_processor() - start;
        }
        start = bench_processor();
        for (size_t d = 0; d < DRAWS; d++) check(draw_pieces(ids, &own, draws + d * width, &scratch) <= LIMIT, "draw");
        drawing += bench_processor() - start;
        sf_pieces_free(own.pieces);
        sf_kept_free(own.kept);
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

/* Draws that delete, beside those that do not. */
static inline void print_deleting(const draws_speed *d, double deletion, const draws_speed *whole)
{
    printf("deleting   %.2f of the tokens: %.0f draws/s, %.1f times those without, %.1f times rendering and encoding; "
           "%.0f texts/s prepared (%.0f tokens rendered)\n",
           deletion, d->draws, d->draws / whole->draws, d->ratio, d->prepare, d->rendered);
}

static inline void print_drawing(const draws_speed *d)
{
    printf("drawing    %.0f draws/s of %d pieces, %.1f times rendering and encoding; "
           "%.0f texts/s prepared (%.0f slots, %.0f visible; %.0f bytes rendered)\n",
           d->draws, LIMIT, d->ratio, d->prepare, d->slots, d->visible, d->rendered);
}

#endif
