/* Bounds for whole texts, and for sums of models.
 *
 * A sum (model/sum.h) adds R(w * z) over its members: z is a logit, R rounds to a whole number of
 * 2^-20 and clips at SF_SUM_MOST. Two classes of a member whose logits differ by at least m
 * differ in the sum by at least the following, in these units:
 *
 *   - w * z is rounded in double, by at most 2^-53 of itself; up to SF_SUM_MOST / 4 that is at most
 *     1/32, and R, which then does not clip, is off by at most 1/2. So R(w z_y) - R(w z_c) is a whole
 *     number not below w m - 1 - 1/16. As computed w m is off by at most 1/16, or so far below 0 that
 *     no difference gets there; so floor(w m) - 1 bounds it;
 *   - where the logits are not known to be that small, all that is known is that R clips:
 *     -2 * SF_SUM_MOST.
 *
 * A member that reads the canonical form of this lexicon reads the same text whichever words are
 * exchanged: what it says of the text as it is, is what it says of all. Whole numbers add up
 * exactly, and a sum of lower bounds is one. */
#include "ibp/bounds.h"

#include "base/memory.h"
#include "ibp/network.h"
#include "model/sum.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct sf_ibp_scratch {
    sf_ibp_network_scratch **nets; /* (count): of the members, or of the one model */
    size_t count;
    double *margins; /* (classes): of one member */
    int64_t *totals; /* (classes) */
    uint32_t *ids;   /* of a text's choices */
    size_t *begin;
    size_t id_capacity, begin_capacity;
};

void sf_ibp_scratch_free(sf_ibp_scratch *s)
{
    if (!s) return;
    for (size_t i = 0; s->nets && i < s->count; i++) sf_ibp_network_scratch_free(s->nets[i]);
    free(s->nets);
    free(s->margins);
    free(s->totals);
    free(s->ids);
    free(s->begin);
    free(s);
}

static const sf_sum_model *as_sum(const safer_model *model)
{
    return model->class == &sf_sum_class ? (const sf_sum_model *)model : NULL;
}

static safer_status scratch_new(sf_ibp_scratch **out, const safer_model *model, safer_error *error)
{
    sf_ibp_scratch *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    s->count = as_sum(model) ? as_sum(model)->count : 1;
    s->nets = sf_calloc(s->count, sizeof *s->nets);
    s->margins = sf_alloc(model->classes, sizeof *s->margins);
    s->totals = sf_alloc(model->classes, sizeof *s->totals);
    if (!s->nets || !s->margins || !s->totals) {
        sf_ibp_scratch_free(s);
        return sf_fail_memory(error);
    }
    *out = s;
    return SAFER_OK;
}

/* -------------------------------------------------------------------- check */

/* The proof rests on it: byte by byte. */
static int same_lexicon(const safer_lexicon *a, const safer_lexicon *b)
{
    return a->image.length == b->image.length && memcmp(a->image.bytes, b->image.bytes, a->image.length) == 0;
}

safer_status sf_ibp_check(const safer_model *model, const safer_lexicon *lexicon, safer_error *error)
{
    const sf_sum_model *sum = as_sum(model);
    if (!sum && !sf_cnn_is(model))
        return sf_fail(error, SAFER_INVALID,
                       "`method` ibp looks into the model, which must be bow or cnn, or a sum; this one is %s",
                       model->class->arch);
    for (size_t m = 0; sum && m < sum->count; m++) {
        const sf_sum_member *member = &sum->members[m];
        if (!member->canonical && !sf_cnn_is(member->model))
            return sf_fail(error, SAFER_INVALID,
                           "`method` ibp cannot look into member %zu of the sum: it is %s, and reads the text as it is",
                           m + 1, member->model->class->arch);
        if (member->canonical && !same_lexicon(member->canonical, lexicon))
            return sf_fail(error, SAFER_INVALID,
                           "member %zu of the sum reads texts in the canonical form of another lexicon", m + 1);
    }
    return SAFER_OK;
}

/* -------------------------------------------------------------------- texts */

static size_t words_read(const safer_model *net, const sf_slots *slots)
{
    size_t limit = sf_cnn_net_layout(((const sf_cnn_model *)net)->net)->shape.max_words;
    return slots->word_count < limit ? slots->word_count : limit;
}

static size_t visible_to(const safer_model *net, const sf_slots *slots)
{
    size_t visible = 0, words = words_read(net, slots);
    while (visible < slots->slot_count && slots->slots[visible] < words) visible++;
    return visible;
}

size_t sf_ibp_visible(const safer_model *model, const sf_slots *slots)
{
    const sf_sum_model *sum = as_sum(model);
    size_t most = 0;
    if (!sum) return visible_to(model, slots);
    for (size_t m = 0; m < sum->count; m++) {
        size_t visible = sum->members[m].canonical ? slots->slot_count : visible_to(sum->members[m].model, slots);
        most = visible > most ? visible : most;
    }
    return most;
}

/* The margins of one network. */
static safer_status bound_net(double *margins, double *extent, const safer_model *base, const safer_lexicon *lexicon,
                              const sf_slots *slots, size_t target, sf_ibp_scratch *s, sf_ibp_network_scratch **net,
                              safer_error *error)
{
    const sf_cnn_model *model = (const sf_cnn_model *)base;
    size_t words = words_read(base, slots), count = 0;
    if (sf_grow(&s->begin, &s->begin_capacity, words + 1, sizeof *s->begin)) return sf_fail_memory(error);
    for (size_t i = 0; i < words; i++) {
        const sf_text_word *w = &slots->words[i];
        uint64_t first = w->word == SF_NONE ? 0 : lexicon->synonym_offsets[w->word];
        uint64_t end = w->word == SF_NONE ? 0 : lexicon->synonym_offsets[w->word + 1];
        if (sf_grow(&s->ids, &s->id_capacity, count + 1 + (size_t)(end - first), sizeof *s->ids))
            return sf_fail_memory(error);
        s->begin[i] = count;
        s->ids[count++] = sf_cnn_number(model, slots->keys.bytes + w->key, w->key_length);
        for (; first < end; first++) { /* a synonym that the model does not know is read as the unknown word */
            uint32_t at = lexicon->words.offsets[lexicon->synonyms[first]],
                     stop = lexicon->words.offsets[lexicon->synonyms[first] + 1];
            s->ids[count++] = sf_cnn_number(model, lexicon->words.pool + at, stop - at - 1);
        }
    }
    s->begin[words] = count;
    sf_ibp_choices text = {s->ids, s->begin, words};
    return sf_ibp_network_margins(margins, extent, model->net, &text, target, net, error);
}

/* What the whole numbers of two classes differ by at least, when their logits do by `margin` and are
 * no further from 0 than `extent`. */
static int64_t least_lead(double weight, double margin, double extent)
{
    const double unit = 1 << SF_SUM_BITS;
    const double lead = floor(weight * margin * unit) -
                        1; /* margins have no floor of their own: the errors taken off may be vast */
    const int clips = extent == DBL_MAX || weight * extent * unit > (double)(SF_SUM_MOST / 4);
    return clips || !(lead > -2 * (double)SF_SUM_MOST) ? -2 * SF_SUM_MOST : (int64_t)lead;
}

safer_status sf_ibp_margins(double *margins, const safer_model *model, const safer_lexicon *lexicon,
                            const sf_slots *slots, size_t target, const void *answered, sf_ibp_scratch **scratch,
                            safer_error *error)
{
    safer_status status = SAFER_OK;
    const sf_sum_model *sum = as_sum(model);
    if (!*scratch) SF_TRY(scratch_new(scratch, model, error));
    sf_ibp_scratch *s = *scratch;
    if (!sum) return bound_net(margins, NULL, model, lexicon, slots, target, s, &s->nets[0], error);
    for (size_t k = 0; k < model->classes; k++) s->totals[k] = 0;
    for (size_t m = 0; m < sum->count; m++) {
        const sf_sum_member *member = &sum->members[m];
        const int64_t *said = sf_sum_said(answered, m);
        double extent = 0;
        if (!member->canonical)
            SF_TRY(bound_net(s->margins, &extent, member->model, lexicon, slots, target, s, &s->nets[m], error));
        for (size_t k = 0; k < model->classes; k++)
            if (k != target)
                s->totals[k] += member->canonical ? said[target] - said[k]
                                                  : least_lead(member->weight, s->margins[k], extent);
    }
    for (size_t k = 0; k < model->classes; k++)
        margins[k] = ldexp((double)s->totals[k], -SF_SUM_BITS); /* keeps its sign */
done:
    return status;
}

safer_status sf_ibp_member_margins(double *margins, const safer_model *model, const safer_lexicon *lexicon,
                                   const sf_slots *slots, size_t target, const void *answered, sf_ibp_scratch **scratch,
                                   safer_error *error)
{
    safer_status status = SAFER_OK;
    const sf_sum_model *sum = as_sum(model);
    if (!*scratch) SF_TRY(scratch_new(scratch, model, error));
    sf_ibp_scratch *s = *scratch;
    for (size_t m = 0; m < sum->count; m++, margins += model->classes) {
        const sf_sum_member *member = &sum->members[m];
        const int64_t *said = sf_sum_said(answered, m);
        if (!member->canonical)
            SF_TRY(bound_net(margins, NULL, member->model, lexicon, slots, target, s, &s->nets[m], error));
        for (size_t k = 0; member->canonical && k < model->classes; k++)
            margins[k] = ldexp((double)(said[target] - said[k]), -SF_SUM_BITS) / member->weight;
    }
done:
    return status;
}

int sf_ibp_certifies(const double *margins, size_t classes, size_t target)
{
    for (size_t c = 0; c < classes; c++)
        if (c != target && !(margins[c] > 0)) return 0;
    return 1;
}
