/* The worst case of a `context` model (model/context_sum.h), exactly.
 *
 * Theorem. Let X be a text of N words and X' any text that exchanges words of X for synonyms of the model's lexicon;
 * where the lexicon folds, X is folded, and X' is one that the fold leaves as it is (docs/fold.md says which are not).
 * Let v_c(x, i) be the whole number that sf_context_word gives class c for word x in the place of word i of X, and b_c
 * that of its bias. Then what the program adds up for class c when it is asked about X' is
 *
 *     T_c(X') = b_c + v_c(x'_1, 1) + ... + v_c(x'_N, N),
 *
 * without any error, and so the least lead of class y over class c, over all X' with at most R words exchanged, is
 *
 *     T_y(X) - T_c(X) + the sum of the R lowest of d_i,
 *     d_i = the least of w(x, i) - w(x_i, i) over x in {x_i} and the synonyms of x_i,
 *     w(x, i) = v_y(x, i) - v_c(x, i).
 *
 * Proof. The lexicon's kernel gives a word and its synonyms one and the same draw (sf_canonical_is, looked at when the
 * model is opened), and the admission rule makes X' have its words in the places of X, in the same patterns of case
 * (text/word.h; opening a lexicon checks it). So word i of X' is drawn and written as word i of X is: the canonical
 * forms, and where words end in them, are equal byte by byte. Contexts are a function of these alone, of one program,
 * whose bits depend on nothing else (model/bert_net.c); so is N. v_c(x, i) is a function of x, the context of word i, N
 * and the model's parameters, computed by one function in one order, here and there (sf_context_word). That is the
 * first claim, since whole numbers are added without error (context_sum.h says why they do not overflow). The number
 * that word i adds to the lead therefore depends on x'_i alone, and an attacker chooses every x'_i freely: to change a
 * set of words lowers the lead by the sum of their d_i at most, and by as much at least, and of all sets of at most R
 * words the one with the R lowest d_i, none of which is above 0, gives the least sum. QED
 *
 * An answer is the class with the greatest T, the first of equals; a lead above 0 over every other class is therefore a
 * certificate. Leads of two classes are below 2^53 units: as doubles they are exact too. */
#include "ibp/network.h"

#include "base/number.h"

#include <assert.h>
#include <math.h>

int64_t sf_ibp_context_lead(int64_t *least, int64_t *drops, const sf_context_sum *sum, sf_contexts contexts,
                            const sf_ibp_choices *text, size_t y, size_t c)
{
    fenv_t before;
    int64_t lead, lowest;
    assert(contexts.words == text->count);
    sf_plain_arithmetic(&before); /* as where the model answers */
    lead = lowest = sf_context_bias_lead(sum, y, c);
    for (size_t i = 0; i < text->count; i++) {
        const size_t first = text->begin[i];
        const int64_t own = sf_context_word_lead(sum, text->ids[first], contexts, i, y, c);
        int64_t worst = own;
        for (size_t j = first + 1; j < text->begin[i + 1]; j++) {
            const int64_t other = sf_context_word_lead(sum, text->ids[j], contexts, i, y, c);
            worst = other < worst ? other : worst;
        }
        lead += own;
        lowest += worst;
        if (drops) drops[i] = worst - own;
    }
    fesetenv(&before);
    *least = lowest;
    return lead;
}

double sf_ibp_context_extent(const sf_context_sum *sum, sf_contexts contexts, const sf_ibp_choices *text)
{
    fenv_t before;
    int64_t extent = 0;
    sf_plain_arithmetic(&before);
    for (size_t o = 0; o < sum->layout.shape.outputs; o++) {
        int64_t most = llabs(sf_context_bias(sum, o));
        for (size_t i = 0; i < text->count; i++) {
            int64_t largest = 0;
            for (size_t j = text->begin[i]; j < text->begin[i + 1]; j++) {
                const int64_t size = llabs(sf_context_word(sum, text->ids[j], contexts, i, o));
                largest = size > largest ? size : largest;
            }
            most += largest;
        }
        extent = most > extent ? most : extent;
    }
    fesetenv(&before);
    return ldexp((double)extent, -SF_CONTEXT_BITS);
}

sf_ibp_lead sf_ibp_context_values(double *values, const sf_context_sum *sum, sf_contexts contexts,
                                  const sf_ibp_choices *text, size_t y, size_t c, double factor)
{
    fenv_t before;
    sf_plain_arithmetic(&before);
    for (size_t i = 0; i < text->count; i++)
        for (size_t j = text->begin[i]; j < text->begin[i + 1]; j++)
            values[j] += factor *
                         ldexp((double)sf_context_word_lead(sum, text->ids[j], contexts, i, y, c), -SF_CONTEXT_BITS);
    const double bias = ldexp((double)sf_context_bias_lead(sum, y, c), -SF_CONTEXT_BITS);
    fesetenv(&before);
    return (sf_ibp_lead){.bias = factor * bias, .size = 2 * sf_ibp_context_extent(sum, contexts, text)};
}
