/* Certificates without sampling.
 *
 * If Z runs over all draws of Pi_X with weights w(Z), integers whose sum is W, then
 * g(X,c) = W_c / W exactly, and the condition g(y) - g(c) > 2q becomes
 *     W_y - W_c > 2q W.
 * q is a double, that is m 2^-e with an integer m < 2^53, so both sides are integers over a
 * power of two: m W has at most 181 bits and is computed whole, shifted down, and compared.
 * An integer exceeds x exactly when it exceeds floor(x), so nothing is lost by the shift.
 * The only rounding on the whole path is that of q itself, upwards, by the caller.
 *
 * The smallest margin is against the class with the largest weight. Answers that are no
 * label count in W only. Overflow is reported, never wrapped: the caller samples instead. */
#include "stats/exact.h"

#include "base/memory.h"

#include <assert.h>
#include <math.h>

/* ------------------------------------------------------------------- tally */

safer_status sf_tally_new(sf_tally *out, size_t classes, safer_error *error)
{
    assert(classes >= 2);
    sf_weight *votes = sf_calloc(classes, sizeof *votes);
    if (!votes) return sf_fail_memory(error);
    *out = (sf_tally){classes, 0, votes};
    return SAFER_OK;
}

void sf_tally_clear(sf_tally *tally)
{
    tally->total = 0;
    for (size_t c = 0; c < tally->classes; c++) tally->votes[c] = 0;
}

void sf_tally_free(sf_tally *tally)
{
    free(tally->votes);
    *tally = (sf_tally){0};
}

int sf_tally_add(sf_tally *tally, int vote, sf_weight weight)
{
    assert(vote >= -1 && (vote < 0 || (size_t)vote < tally->classes));
    sf_weight total;
    if (__builtin_add_overflow(tally->total, weight, &total)) return -1;
    tally->total = total;
    if (vote >= 0) tally->votes[vote] += weight; /* at most the total */
    return 0;
}

static sf_weight strongest_rival(const sf_tally *tally, size_t y)
{
    sf_weight most = 0;
    for (size_t c = 0; c < tally->classes; c++)
        if (c != y && tally->votes[c] > most) most = tally->votes[c];
    return most;
}

/* floor(2q * w), exactly, for 0 <= 2q < 1. */
static sf_weight floor_of_share(double q, sf_weight w)
{
    if (q <= 0) return 0;
    int exponent;
    uint64_t m = (uint64_t)ldexp(frexp(q, &exponent), 53); /* 2q = m 2^(exponent-52) */
    int shift = 52 - exponent;                             /* at least 53, since q < 1/2 */
    sf_weight low = (sf_weight)m * (uint64_t)w;
    sf_weight top = (sf_weight)m * (uint64_t)(w >> 64) + (low >> 64); /* m w = top 2^64 + low mod 2^64 */
    if (shift >= 64 + 128) return 0;
    if (shift >= 64) return top >> (shift - 64);
    return top << (64 - shift) | (uint64_t)low >> shift;
}

int sf_tally_certifies(const sf_tally *tally, size_t y, double q)
{
    assert(y < tally->classes);
    assert(q >= 0);
    sf_weight own = tally->votes[y], rival = strongest_rival(tally, y);
    if (own <= rival || q >= 0.5) return 0; /* a margin above 1 does not exist */
    return own - rival > floor_of_share(q, tally->total);
}

double sf_tally_bound(const sf_tally *tally, size_t y)
{
    assert(y < tally->classes);
    if (tally->total == 0) return 0;
    /* 1 - ((total - own) + rival) / (2 total), cut to 62 bits: what is lost up, the whole down. */
    sf_weight others = tally->total - tally->votes[y], rival = strongest_rival(tally, y);
    int cut = 0;
    while (tally->total >> cut >> 62) cut++;
    uint64_t whole = (uint64_t)(tally->total >> cut), lost = (uint64_t)(others >> cut) + (uint64_t)(rival >> cut);
    if (cut > 0) lost = lost + 2 < 2 * whole ? lost + 2 : 2 * whole;
    return sf_ratio_down(2 * whole - lost, 2 * whole);
}
