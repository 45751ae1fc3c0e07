/* How often draws delete a token. */
#include "base/deletion.h"

#include "base/number.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

uint32_t sf_deletion_of(double p)
{
    assert(p >= 0 && p < 1);
    if (p == 0) return 0;
    const double scaled = nearbyint(p * 0x1p32);
    return scaled < 1 ? 1 : scaled > 0x1p32 - 1 ? UINT32_MAX : (uint32_t)scaled;
}

double sf_deletion_share(uint32_t deletion) { return deletion * 0x1p-32; }

safer_status sf_deletion_check(safer_deletion d, safer_error *error)
{
    if (!(d.chance >= 0 && d.chance < 1))
        return sf_fail(error, SAFER_INVALID, "`deletion`: %g (0, or above 0 and below 1)", d.chance);
    if (d.keep > SAFER_KEEP) return sf_fail(error, SAFER_INVALID, "`deletion`: keep:%zu (1 to %d)", d.keep, SAFER_KEEP);
    if (d.groups > SAFER_GROUPS) return sf_fail(error, SAFER_INVALID, "`groups`: %zu (1 to %d)", d.groups, SAFER_GROUPS);
    if ((d.keep > 0) + (d.chance > 0) + (d.groups > 0) > 1)
        return sf_fail(error, SAFER_INVALID, "`deletion`: a chance, keep or groups, not two of them");
    return SAFER_OK;
}

safer_deletion sf_deletion_round(safer_deletion d)
{
    d.chance = sf_deletion_share(sf_deletion_of(d.chance));
    return d;
}

/* The square root, down, of a number below 2^62. */
static uint64_t root_down(uint64_t x)
{
    uint64_t root = (uint64_t)sqrt((double)x); /* off by one at most */
    while (root * root > x) root--;
    while ((root + 1) * (root + 1) <= x) root++;
    return root;
}

uint32_t sf_deletion_at(safer_deletion d, size_t tokens)
{
    if (!d.keep) return sf_deletion_of(d.chance);
    const uint64_t square = (uint64_t)d.keep * d.keep, length = tokens | !tokens; /* of nothing, as of one */
    if (square / 64 >= length) return UINT32_C(1) << 31;
    return (uint32_t)((UINT64_C(1) << 32) - root_down((uint64_t)(((sf_weight)square << 56) / length)));
}

/* ---------------------------------------------------------------------- names */

safer_status safer_deletion_parse(safer_deletion *out, const char *text, safer_error *error)
{
    double chance = 0;
    uint64_t keep = 0;
    const int keeps = strncmp(text, "keep:", 5) == 0;
    const char *end = keeps ? NULL : sf_parse_double(text, text + strlen(text), &chance);
    if (keeps ? sf_to_uint64(text + 5, &keep) || keep < 1 || keep > SAFER_KEEP
              : !end || *end || !(chance >= 0 && chance < 1))
        return sf_fail(error, SAFER_INVALID,
                       "%.60s: a chance above 0 and below 1, 0: nothing, or keep:K, K from 1 to %d", text, SAFER_KEEP);
    *out = (safer_deletion){.chance = chance, .keep = (size_t)keep};
    return SAFER_OK;
}

const char *sf_deletion_member(safer_deletion d) { return d.groups ? "groups" : "delete"; }

json_t *sf_deletion_json(safer_deletion d)
{
    if (d.groups) return json_integer((json_int_t)d.groups);
    return d.keep ? json_sprintf("keep:%zu", d.keep) : json_real(d.chance);
}

int sf_deletion_read(safer_deletion *out, const json_t *value)
{
    safer_deletion d = {.chance = json_is_real(value) ? json_real_value(value) : 0};
    const char *text = json_string_value(value);
    if (text) { /* written as sf_deletion_json writes it */
        char again[32];
        if (safer_deletion_parse(&d, text, NULL) != SAFER_OK || !d.keep) return -1;
        snprintf(again, sizeof again, "keep:%zu", d.keep);
        if (strcmp(text, again) != 0) return -1;
    } else if (!(d.chance > 0 && d.chance < 1) || sf_deletion_share(sf_deletion_of(d.chance)) != d.chance) {
        return -1;
    }
    *out = d;
    return 0;
}
