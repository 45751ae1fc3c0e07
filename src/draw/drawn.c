/* Fresh draws of texts, for training. */
#include "draw/drawn.h"

#include "base/memory.h"

void sf_drawn_free(sf_drawn *drawn)
{
    sf_slots_free(&drawn->slots);
    sf_sampler_free(&drawn->sampler);
    sf_buffer_free(&drawn->text);
    free(drawn->draws);
    *drawn = (sf_drawn){0};
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
    sf_sampler_draw(drawn->draws, &drawn->sampler, sf_stream_of(seed, drawn->slots.hash, SF_STAGE_TRAINING), sample, 1);
    if (sf_slots_render(&drawn->text, &drawn->slots, lexicon, drawn->draws)) return sf_fail_memory(error);
done:
    return status;
}
