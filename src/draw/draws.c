/* The draws of a text, as the certifier asks about them. */
#include "draw/groups.h"

#include "base/memory.h"
#include "text/unicode.h"

#include <stdlib.h>

/* The stage whose stream a public stage names; -1: no such stage. */
static int stream_stage(sf_stage *out, safer_stage stage)
{
    switch (stage) {
    case SAFER_STAGE_SELECTION: *out = SF_STAGE_SELECTION; return 0;
    case SAFER_STAGE_CERTIFICATION: *out = SF_STAGE_CERTIFICATION; return 0;
    }
    return -1;
}

safer_status safer_draw(const safer_lexicon *lexicon, const char *text, size_t length, safer_stage stage, uint64_t seed,
                        uint64_t first, uint64_t count, safer_draw_function each, void *context, safer_error *error)
{
    return safer_draw_deleting(lexicon, text, length, (safer_deletion){0}, stage, seed, first, count, each, context,
                               error);
}

safer_status safer_draw_deleting(const safer_lexicon *lexicon, const char *text, size_t length, safer_deletion deletion,
                                 safer_stage stage, uint64_t seed, uint64_t first, uint64_t count,
                                 safer_draw_function each, void *context, safer_error *error)
{
    safer_status status;
    sf_slots slots = {0};
    sf_sampler sampler = {0};
    sf_buffer drawn = {0};
    uint32_t *draw = NULL;
    sf_stage own;
    size_t valid = sf_utf8_valid(text, length);
    if (valid < length) return sf_fail(error, SAFER_INPUT, "the text is not valid UTF-8 at byte %zu", valid);
    if (count > UINT64_MAX - first) return sf_fail(error, SAFER_INVALID, "count: more draws than there are numbers");
    if (stream_stage(&own, stage)) return sf_fail(error, SAFER_INVALID, "stage: unknown");
    SF_TRY(sf_deletion_check(deletion, error));
    if (deletion.groups) SF_TRY(sf_groups_check(lexicon, error));
    SF_TRY(sf_slots_read(&slots, lexicon, text, length, error));
    SF_TRY(sf_slots_split(&slots, deletion, error));
    SF_TRY(sf_sampler_prepare(&sampler, &slots, lexicon, error));
    if (deletion.groups) SF_TRY(sf_sampler_group(&sampler, &slots, lexicon, seed, error));
    const sf_stream stream = sf_stream_of(seed, slots.hash, own);
    draw = sf_alloc(sampler.width, sizeof *draw);
    if (!draw) {
        status = sf_fail_memory(error);
        goto done;
    }
    if (deletion.groups && first >= deletion.groups) count = 0;
    if (deletion.groups && count > deletion.groups - first) count = deletion.groups - first;
    for (uint64_t i = first; i - first < count; i++) {
        if (deletion.groups)
            sf_groups_draw(draw, &sampler, (uint32_t)i);
        else
            sf_sampler_draw(draw, &sampler, stream, i, 1);
        sf_buffer_clear(&drawn);
        if (sf_slots_render(&drawn, &slots, lexicon, draw)) {
            status = sf_fail_memory(error);
            goto done;
        }
        if (each(context, i, drawn.bytes ? drawn.bytes : "", drawn.length)) {
            status = sf_fail(error, SAFER_CALLBACK, "the function that takes draws reported failure");
            goto done;
        }
    }
done:
    free(draw);
    sf_buffer_free(&drawn);
    sf_sampler_free(&sampler);
    sf_slots_free(&slots);
    return status;
}
