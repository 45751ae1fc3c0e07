/* Fresh draws of texts, for training. */
#include "draw/drawn.h"

#include "base/memory.h"
#include "draw/groups.h"

void sf_drawn_free(sf_drawn *drawn)
{
    sf_slots_free(&drawn->slots);
    sf_sampler_free(&drawn->sampler);
    sf_buffer_free(&drawn->text);
    free(drawn->draws);
    *drawn = (sf_drawn){0};
}

/* Of a text in groups: one of them, by a hash whose key is the sample's own. */
static safer_status draw_group(sf_drawn *drawn, const safer_lexicon *lexicon, sf_stream stream, uint64_t sample,
                               safer_error *error)
{
    const uint32_t counter[4] = {(uint32_t)sample, (uint32_t)(sample >> 32), 0, UINT32_MAX};
    uint32_t block[4];
    sf_philox(block, counter, stream.key);
    const uint64_t key = (uint64_t)block[1] << 32 | block[0];
    const safer_status status = sf_sampler_group(&drawn->sampler, &drawn->slots, lexicon, key, error);
    if (status == SAFER_OK) sf_groups_draw(drawn->draws, &drawn->sampler, 0);
    return status;
}

safer_status sf_drawn_text(sf_drawn *drawn, const safer_lexicon *lexicon, const char *text, size_t length,
                           safer_deletion deletion, uint64_t seed, uint64_t sample, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_buffer_clear(&drawn->text);
    if (!lexicon && !sf_deletes(deletion))
        return sf_buffer_add(&drawn->text, text, length) ? sf_fail_memory(error) : SAFER_OK;
    SF_TRY(sf_slots_read(&drawn->slots, lexicon, text, length, error));
    SF_TRY(sf_slots_split(&drawn->slots, deletion, error));
    SF_TRY(sf_sampler_prepare(&drawn->sampler, &drawn->slots, lexicon, error));
    if (sf_grow(&drawn->draws, &drawn->capacity, drawn->sampler.width + 1, sizeof *drawn->draws))
        return sf_fail_memory(error);
    const sf_stream stream = sf_stream_of(seed, drawn->slots.hash, SF_STAGE_TRAINING);
    if (drawn->slots.groups)
        SF_TRY(draw_group(drawn, lexicon, stream, sample, error));
    else
        sf_sampler_draw(drawn->draws, &drawn->sampler, stream, sample, 1);
    if (sf_slots_render(&drawn->text, &drawn->slots, lexicon, drawn->draws)) return sf_fail_memory(error);
done:
    return status;
}
