/* What edits cost: under draws that delete tokens, and where groups of tokens vote.
 *
 * Theorem. Draws of a text delete each of its tokens with probability p, independently, and draw those that stay from
 * their kernels, independently. Let X' arise from X by taking out a tokens and putting in b others, anything anywhere;
 * the tokens C that X and X' share may differ by synonyms, C in X and C' in X'. Let kept = 1 - q' be a lower bound on
 * the product of the overlaps p + (1-p) s of the tokens of C. Then for classes y and c, with D(X) = g(X,y) - g(X,c),
 *
 *     D(X') > 0   if   D(X) > 1 + p^(a-b) - 2 p^a kept.
 *
 * Proof. With probability p^a a draw of X deletes all a tokens and is then a draw of C: deletions leave no trace.
 * So g(X,k) = p^a g(C,k) + (1 - p^a) A_k for every class k, where the A_k are probabilities of disjoint events, and
 * D(C) >= (D(X) - (1 - p^a)) / p^a, since A_y - A_c <= 1. A token of C is deleted in C and in C' alike, or drawn from
 * two kernels that share s: draws of C and C' can be made equal with probability kept, so D(C') >= D(C) - 2 q'. Last,
 * D(X') >= p^b D(C') - (1 - p^b). Put together,
 *
 *     D(X') >= p^(b-a) (D(X) - 1 + p^a - 2 p^a q') - 1 + p^b,
 *
 * which is above 0 where D(X) > 1 - p^a + 2 p^a q' + p^(a-b) - p^a. That is the claim.
 *
 * In terms of (1 + D(X))/2 the threshold is 1/2 + q with q = 1/2 + p^(a-b)/2 - p^a kept. R edits of a kind:
 *
 *     deletions    a = R, b = 0      q = 1/2 - p^R (kept - 1/2)
 *     insertions   a = 0, b = R      q = 1/(2 p^R) - 1/2 + q'
 *     replacements a = R, b = R      q = 1 - p^R kept
 *     any          a, b <= R         the same as replacements.
 *
 * For `any`, i insertions, d deletions and r replacements have a = d + r <= R and b = i + r <= R. q rises with b. Its
 * derivative in a is log(p) p^a (p^-b/2 - kept), which is positive where p^b kept > 1/2. So where p^R kept > 1/2 no
 * a, b up to R is worse than a = b = R; elsewhere the q of a = b = R is at least 1/2, and nothing is certified. Fewer
 * than R edits of one kind are covered too: each q rises with R where it is below 1/2 (deletions: where kept > 1/2).
 *
 * By length. Where p depends on the number of tokens (base/deletion.h), X is drawn with p, and X', of L' = L - a + b
 * tokens, with p'. Between the second step and the third C', of m = L - a tokens, goes from p to p'. With
 *
 *     x = (p - p')^2 / (p (1-p)),     t = sqrt((1+x)^m - 1) / 2,
 *
 * that costs D at most 2t: let r be the ratio of the chances that C' keeps certain tokens under p' and under p. The
 * difference of the two D is the mean of (r - 1) h under p, where h, the lead given what is kept, is in [-1, 1]; by
 * Cauchy and Schwarz it is at most the root of the mean of (r - 1)^2. The mean of r is 1; that of r^2 is that of one
 * token to the power of m, and p'^2/p + (1-p')^2/(1-p) = 1 + x. So D(C') >= D(C) - 2q' - 2t, X' is drawn with p', and
 *
 *     q = 1/2 + p^a (p'^-b/2 - kept + t),
 *
 * of which q(R) is the largest over all a and b that R edits can have. All a and b with one difference have one L' and
 * one p', and m is at most min(L, L'), which is taken for all of them. Since (1+x)^m <= 1/(1 - mx) where mx < 1,
 * t <= sqrt(mx/(1 - mx))/2, which is what is used; where mx >= 1 nothing is certified. Replacements do not change the
 * length. For `any` a = b = R remains the worst where p changes slowly: an insertion or deletion in place of a
 * replacement saves about (1-p)/2, and t is less for every token by which the length changes where draws keep a few.
 *
 * Groups. Every token is in one of G groups by a function of its canonical form alone; g(X,y) is the share of groups
 * that answer y when each is read by itself. A token put in or taken out changes what one group shows, a replaced one
 * what two show, a synonym nothing. If m groups change, each of them turns from y to c at worst, and D(X) G falls by 2m
 * at most: D(X') > 0 if D(X) > 2m/G. So q = m/G, with m = R for insertions or deletions alone and 2R for replacements
 * and any edits; q' is 0 (proof/Groups.v: groups_certificate, groups_share). Every D(X) G is a whole number: rounding q
 * up by less than 1/(2G) decides nothing otherwise.
 *
 * Rounding: p is exact. Powers, products and 1 - q' round down, the result up. */
#include "stats/edits.h"

#include "base/number.h"

#include <assert.h>
#include <math.h>

/* 1 - x, down, for x in [0, 1]: exact where x >= 1/2. */
static double complement_down(double x)
{
    const double y = 1 - x;
    return 1 - y < x ? nextafter(y, 0) : y; /* for y >= 1/2 the subtraction is exact; else y is */
}

double sf_deletion_overlap(uint32_t deletion, double overlap)
{
    assert(overlap >= 0 && overlap <= 1);
    if (overlap == 1) return 1;
    /* 1 - (1-p)(1-s), with both factors up: 1 - p is exact. */
    const double lost = (1 - sf_deletion_share(deletion)) * sf_complement_up(overlap);
    return complement_down(fmin(nextafter(lost, 1), 1));
}

static double up(double x) { return nextafter(x, (double)INFINITY); }

/* t of m tokens, up; 1, which is too much, where mx is not below 1. */
static double changed_rate(double p, double other, size_t tokens)
{
    const double apart = fabs(p - other); /* exact: fractions of 2^32 */
    if (apart == 0) return 0;
    const double mx = up((double)tokens * up(up(apart * apart) / sf_multiply_down(p, 1 - p)));
    return mx < 1 ? fmin(up(0.5 * up(sqrt(up(mx / complement_down(mx))))), 1) : 1;
}

static double power_down(double p, size_t n)
{
    double power = 1;
    for (size_t i = 0; i < n; i++) power = sf_multiply_down(power, p);
    return power;
}

static double power_up(double p, size_t n)
{
    double power = 1;
    for (size_t i = 0; i < n; i++) power = up(power * p);
    return power;
}

/* The largest q of a and b up to these, for texts that become longer by b - a = `more` tokens. */
static double worst_of(safer_deletion deletion, size_t tokens, size_t most_a, size_t most_b, long more, double kept)
{
    const size_t other = (size_t)((long)tokens + more);
    const double p = sf_deletion_share(sf_deletion_at(deletion, tokens)),
                 next = sf_deletion_share(sf_deletion_at(deletion, other)),
                 t = changed_rate(p, next, tokens < other ? tokens : other);
    size_t a = more < 0 ? (size_t)-more : 0, b = more > 0 ? (size_t)more : 0;
    double worst = 0, low = power_down(p, a), high = power_up(p, a), power = power_down(next, b);
    for (; a <= most_a && b <= most_b && a <= tokens; a++, b++) {
        const double inside = up(up(up(0.5 / power) - kept) + t);
        worst = fmax(worst, inside < 0 ? up(0.5 - sf_multiply_down(low, -inside)) : up(0.5 + up(high * inside)));
        low = sf_multiply_down(low, p);
        high = up(high * p);
        power = sf_multiply_down(power, next);
    }
    return fmin(worst, 1);
}

static double q_by_length(safer_deletion deletion, size_t tokens, safer_edit_kind kind, size_t edits, double q)
{
    const size_t most_a = kind == SAFER_EDITS_INSERT ? 0 : edits, most_b = kind == SAFER_EDITS_DELETE ? 0 : edits;
    const long shorter = (long)(most_a < tokens ? most_a : tokens);
    double worst = q;
    for (long more = -shorter; more <= (long)most_b; more++)
        worst = fmax(worst, worst_of(deletion, tokens, most_a, most_b, more, complement_down(q)));
    return worst;
}

double sf_edits_q(safer_deletion deletion, size_t tokens, safer_edit_kind kind, size_t edits, double q)
{
    assert(sf_deletes(deletion) && q >= 0 && q <= 1);
    if (edits == 0) return q;
    if (deletion.groups) {
        const int two = kind == SAFER_EDITS_ANY || kind == SAFER_EDITS_REPLACE;
        return fmin(nextafter((double)(two ? 2 * edits : edits) / (double)deletion.groups, 2) + q, 1);
    }
    if (deletion.keep && kind != SAFER_EDITS_REPLACE) return q_by_length(deletion, tokens, kind, edits, q);
    const double power = power_down(sf_deletion_share(sf_deletion_at(deletion, tokens)), edits),
                 kept = complement_down(q);
    switch (kind) {
    case SAFER_EDITS_DELETE: /* at q' >= 1/2 nothing is certified: then q' itself, which is more than enough */
        return kept <= 0.5 ? q : nextafter(0.5 - sf_multiply_down(power, kept - 0.5), 1); /* kept - 1/2 is exact */
    case SAFER_EDITS_INSERT: { /* each step up, so is the sum */
        if (power < 0.25) return 1;
        const double inserted = nextafter(nextafter(0.5 / power, 2) - 0.5, 2);
        return fmin(nextafter(inserted + q, 3), 1);
    }
    case SAFER_EDITS_REPLACE:
    case SAFER_EDITS_ANY: break;
    }
    return sf_complement_up(sf_multiply_down(power, kept));
}
