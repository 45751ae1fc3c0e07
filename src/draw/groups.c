/* The tokens of a text in groups, each of which is read alone. */
#include "draw/groups.h"

#include "base/hash.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

uint32_t sf_group_of(const char *token, size_t length, uint64_t key, size_t groups)
{
    return (uint32_t)(sf_hash(token, length, key) % groups);
}

int sf_group_of_token(uint32_t *out, const sf_slots *slots, const safer_lexicon *l, const sf_token *t, uint64_t key,
                      sf_buffer *form)
{
    if (t->slot == SF_NONE) {
        *out = sf_group_of(slots->text + t->begin, t->end - t->begin, key, slots->groups);
        return 0;
    }
    sf_buffer_clear(form);
    if (sf_slots_render_slot(form, slots, l, t->slot, 0)) return -1;
    *out = sf_group_of(form->bytes, form->length, key, slots->groups);
    return 0;
}

/* Lists the groups with tokens, and one of the others. */
static void list_parts(sf_sampler *sampler)
{
    uint32_t empty = SF_NONE;
    memset(sampler->parts, 0, (sampler->groups + 1) * sizeof *sampler->parts);
    for (size_t t = 0; t < sampler->token_count; t++) sampler->parts[sampler->group[t]] = 1;
    size_t count = 0;
    for (uint32_t g = 0; g < sampler->groups; g++) { /* what is written has been read */
        const int has_tokens = sampler->parts[g] != 0;
        if (!has_tokens && empty == SF_NONE) empty = g;
        if (has_tokens) sampler->parts[count++] = g;
    }
    sampler->part_count = count;
    if (empty != SF_NONE) sampler->parts[sampler->part_count++] = empty;
}

safer_status sf_sampler_group(sf_sampler *sampler, const sf_slots *slots, const safer_lexicon *l, uint64_t key,
                              safer_error *error)
{
    sf_buffer form = {0};
    int failed = 0;
    assert(slots->groups > 0 && sampler->groups == slots->groups && sampler->token_count == slots->token_count);
    if (sf_grow(&sampler->group, &sampler->group_capacity, slots->token_count + 1, sizeof *sampler->group) ||
        sf_grow(&sampler->parts, &sampler->part_capacity, slots->groups + 1, sizeof *sampler->parts))
        return sf_fail_memory(error);
    for (size_t t = 0; t < slots->token_count && !failed; t++)
        failed = sf_group_of_token(&sampler->group[t], slots, l, &slots->tokens[t], key, &form);
    sf_buffer_free(&form);
    if (failed) return sf_fail_memory(error);
    list_parts(sampler);
    return SAFER_OK;
}

void sf_groups_draw(uint32_t *draw, const sf_sampler *sampler, uint32_t group)
{
    memset(draw, 0, sampler->width * sizeof *draw);
    for (size_t t = 0; t < sampler->token_count; t++)
        if (sampler->group[t] == group) draw[sampler->slots + t / 32] |= 1u << t % 32;
}

safer_status sf_groups_check(const safer_lexicon *l, safer_error *error)
{
    for (uint32_t w = 0; l && w < l->words.count; w++)
        if (l->overlap[w] < 1)
            return sf_fail(error, SAFER_INVALID,
                           "`groups`: synonyms of \"%.60s\" would be in other groups; the lexicon needs a kernel that "
                           "treats all synonyms alike, representative or component",
                           l->words.pool + l->words.offsets[w]);
    return SAFER_OK;
}
