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
 * Where p depends on the length of the text, X and X' must have the same p: then all of the above holds as it stands.
 * Replacements do not change the length. Insertions, deletions and both make a length from L - R to L + R of L; p is
 * one on bins of lengths (base/deletion.h), so q is 1, and nothing is certified, where R edits may leave the bin of L.
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

double sf_edits_q(safer_deletion deletion, size_t tokens, safer_edit_kind kind, size_t edits, double q)
{
    assert(sf_deletes(deletion) && q >= 0 && q <= 1);
    if (edits == 0) return q;
    if (deletion.groups) {
        const int two = kind == SAFER_EDITS_ANY || kind == SAFER_EDITS_REPLACE;
        return fmin(nextafter((double)(two ? 2 * edits : edits) / (double)deletion.groups, 2) + q, 1);
    }
    if (edits > sf_deletion_room(deletion, kind, tokens)) return 1;
    const double p = sf_deletion_share(sf_deletion_at(deletion, tokens));
    double power = 1;
    for (size_t i = 0; i < edits; i++) power = sf_multiply_down(power, p);
    const double kept = complement_down(q);
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
