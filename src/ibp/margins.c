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
 * exactly, and a sum of lower bounds is one.
 *
 * A `context` model, or such a member, has no error to take off: its leads are known exactly (context.c), at every
 * number of changed words. Its logits are whole numbers of 2^-30, and what was said of logits holds for them.
 *
 * Where every other member adds up over words (bow without a hidden layer, context), so does their weighted sum: what
 * is left of the target's lead when R words change is what the text has, and the R lowest of what each word can take
 * from it, to the least that one of its synonyms gives, all members together. No attack does more, and one does as
 * much. With L such members and W that real number, less the members' errors and that of computing it, the whole
 * numbers lead by W - L (1 + 1/16) at least; as each term of W is off by 1/16 at most where it underflows, by
 * floor(W) - L - floor(L / 8). */
#include "ibp/bounds.h"

#include "base/memory.h"
#include "base/number.h"
#include "ibp/network.h"
#include "model/canonical.h"
#include "model/sum.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What one network can read: every position's word and its synonyms, in the same order for all networks. */
typedef struct choices {
    uint32_t *ids;
    size_t *begin, words; /* (words + 1) */
    size_t id_capacity, begin_capacity;
} choices;

struct sf_ibp_scratch {
    sf_ibp_network_scratch **nets; /* (count): of the members, or of the one model */
    choices *choices;              /* (count) */
    size_t count;
    double *margins; /* (classes): of one member */
    int64_t *totals; /* (classes) */
    double *values;  /* of every choice, all members together */
    double *drops;   /* of every position, rising; */
    int64_t *falls;  /* of a context model alone */
    double *curve;   /* by the number of changed words */
    size_t value_capacity, drop_capacity, fall_capacity, curve_capacity;
};

void sf_ibp_scratch_free(sf_ibp_scratch *s)
{
    if (!s) return;
    for (size_t i = 0; s->nets && i < s->count; i++) sf_ibp_network_scratch_free(s->nets[i]);
    for (size_t i = 0; s->choices && i < s->count; i++) {
        free(s->choices[i].ids);
        free(s->choices[i].begin);
    }
    free(s->nets);
    free(s->choices);
    free(s->margins);
    free(s->totals);
    free(s->values);
    free(s->drops);
    free(s->falls);
    free(s->curve);
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
    s->choices = sf_calloc(s->count, sizeof *s->choices);
    s->margins = sf_alloc(model->classes, sizeof *s->margins);
    s->totals = sf_alloc(model->classes, sizeof *s->totals);
    if (!s->nets || !s->choices || !s->margins || !s->totals) {
        sf_ibp_scratch_free(s);
        return sf_fail_memory(error);
    }
    *out = s;
    return SAFER_OK;
}

/* -------------------------------------------------------------------- check */

/* Whether it can be looked into. */
static int is_known(const safer_model *model) { return sf_cnn_is(model) || sf_context_is(model); }

/* A model that reads texts with a lexicon of its own, other than this one, sees other substitutions. */
static int reads_otherwise(const safer_model *model, const safer_lexicon *lexicon)
{
    return sf_context_is(model) && !sf_canonical_same(sf_context_lexicon(model), lexicon);
}

safer_status sf_ibp_check(const safer_model *model, const safer_lexicon *lexicon, safer_error *error)
{
    const sf_sum_model *sum = as_sum(model);
    if (!sum && !is_known(model))
        return sf_fail(error, SAFER_INVALID,
                       "`method` ibp looks into the model, which must be bow, cnn or context, or a sum; this one is %s",
                       model->class->arch);
    if (!sum && reads_otherwise(model, lexicon))
        return sf_fail(error, SAFER_INVALID,
                       "bounds of context need the lexicon it was trained with, which is in its file; this is another");
    for (size_t m = 0; sum && m < sum->count; m++) {
        const sf_sum_member *member = &sum->members[m];
        if (!member->canonical && !is_known(member->model))
            return sf_fail(error, SAFER_INVALID,
                           "`method` ibp cannot look into member %zu of the sum: it is %s, and reads the text as it is",
                           m + 1, member->model->class->arch);
        if (member->canonical ? !sf_canonical_same(member->canonical, lexicon)
                              : reads_otherwise(member->model, lexicon))
            return sf_fail(error, SAFER_INVALID,
                           "member %zu of the sum reads texts in the canonical form of another lexicon", m + 1);
    }
    return SAFER_OK;
}

static const sf_cnn_net *net_of(const safer_model *model) { return ((const sf_cnn_model *)model)->net; }

/* Of one that is no sum. */
static int adds(const safer_model *model)
{
    return sf_context_is(model) || (sf_cnn_is(model) && sf_ibp_network_adds(net_of(model)));
}

int sf_ibp_adds(const safer_model *model)
{
    const sf_sum_model *sum = as_sum(model);
    if (!sum) return adds(model);
    for (size_t m = 0; m < sum->count; m++)
        if (!sum->members[m].canonical && !adds(sum->members[m].model)) return 0;
    return 1;
}

/* -------------------------------------------------------------------- texts */

static size_t words_read(const safer_model *model, const sf_slots *slots)
{
    size_t limit = sf_context_is(model) ? SIZE_MAX : sf_cnn_net_layout(net_of(model))->shape.max_words;
    return slots->word_count < limit ? slots->word_count : limit;
}

static size_t visible_to(const safer_model *model, const sf_slots *slots)
{
    size_t visible = 0, words = words_read(model, slots);
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

static uint32_t number_of(const safer_model *model, const char *key, size_t length)
{
    return sf_context_is(model) ? sf_context_number(model, key, length)
                                : sf_cnn_number((const sf_cnn_model *)model, key, length);
}

static safer_status read_choices(choices *s, const safer_model *model, const safer_lexicon *lexicon,
                                 const sf_slots *slots, safer_error *error)
{
    size_t count = 0;
    s->words = words_read(model, slots);
    if (sf_grow(&s->begin, &s->begin_capacity, s->words + 1, sizeof *s->begin)) return sf_fail_memory(error);
    for (size_t i = 0; i < s->words; i++) {
        const sf_text_word *w = &slots->words[i];
        uint64_t first = w->word == SF_NONE ? 0 : lexicon->synonym_offsets[w->word];
        uint64_t end = w->word == SF_NONE ? 0 : lexicon->synonym_offsets[w->word + 1];
        if (sf_grow(&s->ids, &s->id_capacity, count + 1 + (size_t)(end - first), sizeof *s->ids))
            return sf_fail_memory(error);
        s->begin[i] = count;
        s->ids[count++] = number_of(model, slots->keys.bytes + w->key, w->key_length);
        for (; first < end; first++) { /* a synonym that the model does not know is read as the unknown word */
            uint32_t at = lexicon->words.offsets[lexicon->synonyms[first]],
                     stop = lexicon->words.offsets[lexicon->synonyms[first] + 1];
            s->ids[count++] = number_of(model, lexicon->words.pool + at, stop - at - 1);
        }
    }
    s->begin[s->words] = count;
    return SAFER_OK;
}

static sf_ibp_choices text_of(const choices *c) { return (sf_ibp_choices){c->ids, c->begin, c->words}; }

static double in_units(int64_t lead) { return ldexp((double)lead, -SF_CONTEXT_BITS); }

/* The margins of one network, the model itself or this member; `answered` is its own scratch. */
static safer_status bound_net(double *margins, double *extent, const safer_model *model, const safer_lexicon *lexicon,
                              const sf_slots *slots, size_t target, const void *answered, sf_ibp_scratch *s,
                              size_t member, safer_error *error)
{
    const safer_status status = read_choices(&s->choices[member], model, lexicon, slots, error);
    if (status != SAFER_OK) return status;
    const sf_ibp_choices text = text_of(&s->choices[member]);
    if (sf_context_is(model)) {
        const sf_context_sum *sum = sf_context_sum_of(model);
        const sf_contexts contexts = sf_context_answered(answered);
        int64_t least = 0;
        for (size_t k = 0; k < model->classes; k++) {
            if (k != target) (void)sf_ibp_context_lead(&least, NULL, sum, contexts, &text, target, k);
            margins[k] = k == target ? 0 : in_units(least);
        }
        if (extent) *extent = sf_ibp_context_extent(sum, contexts, &text);
        return SAFER_OK;
    }
    return sf_ibp_network_margins(margins, extent, net_of(model), &text, target, &s->nets[member], error);
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
    if (!sum) return bound_net(margins, NULL, model, lexicon, slots, target, answered, s, 0, error);
    for (size_t k = 0; k < model->classes; k++) s->totals[k] = 0;
    for (size_t m = 0; m < sum->count; m++) {
        const sf_sum_member *member = &sum->members[m];
        const int64_t *said = sf_sum_said(answered, m);
        double extent = 0;
        if (!member->canonical)
            SF_TRY(bound_net(s->margins, &extent, member->model, lexicon, slots, target, sf_sum_scratch(answered, m), s,
                             m, error));
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
            SF_TRY(bound_net(margins, NULL, member->model, lexicon, slots, target, sf_sum_scratch(answered, m), s, m,
                             error));
        for (size_t k = 0; member->canonical && k < model->classes; k++)
            margins[k] = ldexp((double)(said[target] - said[k]), -SF_SUM_BITS) / member->weight;
    }
done:
    return status;
}

/* -------------------------------------------------------------------- curve */

/* The target's lead over one class, by how many words change. */
typedef struct fall {
    double lead;   /* with none changed, less all errors */
    int64_t said;  /* a sum: what canonical members add, in its units */
    int64_t terms; /* a sum: its other members; -1: this is no sum */
} fall;

/* Room for a text that all members have read. */
static int make_room(sf_ibp_scratch *s, size_t visible)
{
    size_t values = 0, words = 0;
    for (size_t m = 0; m < s->count; m++) {
        const choices *c = &s->choices[m];
        if (!c->begin) continue; /* canonical */
        values = c->begin[c->words] > values ? c->begin[c->words] : values;
        words = c->words > words ? c->words : words;
    }
    return sf_grow(&s->values, &s->value_capacity, values + 1, sizeof *s->values) ||
           sf_grow(&s->drops, &s->drop_capacity, words + visible + 1, sizeof *s->drops) ||
           sf_grow(&s->falls, &s->fall_capacity, words + 1, sizeof *s->falls) ||
           sf_grow(&s->curve, &s->curve_capacity, visible + 1, sizeof *s->curve);
}

/* The longest text that a member has read; NULL where all are canonical. */
static const choices *longest(const sf_ibp_scratch *s)
{
    const choices *found = NULL;
    for (size_t m = 0; m < s->count; m++)
        if (s->choices[m].begin && (!found || s->choices[m].words > found->words)) found = &s->choices[m];
    return found;
}

/* What every choice gives the target over a class, and what the sum of these leaves out. 0, or -1 when nothing can be
 * said: numbers so great that floats may overflow, or the whole numbers of a sum clip. */
static int add_members(fall *f, sf_ibp_scratch *s, const safer_model *model, size_t target, size_t class,
                       const void *answered)
{
    const sf_sum_model *sum = as_sum(model);
    const choices *most = longest(s);
    double size = 0;
    *f = (fall){.terms = sum ? 0 : -1};
    for (size_t j = 0; most && j < most->begin[most->words]; j++) s->values[j] = 0;
    for (size_t m = 0; m < s->count; m++) {
        if (sum && sum->members[m].canonical) {
            const int64_t *said = sf_sum_said(answered, m);
            f->said += said[target] - said[class];
            continue;
        }
        const double weight = sum ? sum->members[m].weight : 1, unit = 1 << SF_SUM_BITS;
        const sf_ibp_choices text = text_of(&s->choices[m]);
        const safer_model *member = sum ? sum->members[m].model : model;
        const sf_ibp_lead lead = sf_context_is(member)
                                     ? sf_ibp_context_values(s->values, sf_context_sum_of(member),
                                                             sf_context_answered(sf_sum_scratch(answered, m)), &text,
                                                             target, class, weight)
                                     : sf_ibp_network_lead(s->values, net_of(member), &text, target, class, weight,
                                                           s->nets[m]);
        if (lead.size == DBL_MAX || (sum && weight * lead.size * unit > (double)(SF_SUM_MOST / 4))) return -1;
        f->lead += lead.bias - lead.error;
        size += weight * lead.size + lead.error;
        if (sum) f->terms++;
    }
    /* Every number met here is a sum of at most k terms, of three for each word: its own, the least, the difference. */
    const double k = 3 * (most ? (double)most->words : 0) + 3 * (double)SF_SUM_MEMBERS + 0x1p20;
    f->lead -= sf_ibp_gamma(k, 0x1p-53) * 4 * size;
    return 0;
}

/* Adds what the words of the text give, and sorts by how much each can fall. */
static size_t sort_drops(fall *f, sf_ibp_scratch *s)
{
    const choices *text = longest(s);
    const size_t words = text ? text->words : 0;
    for (size_t i = 0; i < words; i++) {
        const double own = s->values[text->begin[i]];
        double least = own;
        for (size_t j = text->begin[i]; j < text->begin[i + 1]; j++)
            least = s->values[j] < least ? s->values[j] : least;
        f->lead += own;
        s->drops[i] = least - own;
    }
    qsort(s->drops, words, sizeof *s->drops, sf_compare_doubles);
    return words;
}

/* What is left of the lead: of a sum, in whole numbers. */
static double left_of(const fall *f, double drop)
{
    if (f->terms < 0) return nextafter(f->lead + drop, -DBL_MAX);
    const double least = -2 * (double)SF_SUM_MOST * (double)f->terms, lead = floor(ldexp(f->lead + drop, SF_SUM_BITS));
    const int64_t whole = (lead > least ? (int64_t)lead : (int64_t)least) - f->terms - f->terms / 8;
    return ldexp((double)((f->terms ? whole : 0) + f->said), -SF_SUM_BITS);
}

static int compare_falls(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* The curve of a context model alone, in whole numbers from its beginning to its end. */
static void draw_exactly(sf_ibp_scratch *s, const safer_model *model, size_t visible, size_t target,
                         const void *answered)
{
    const sf_ibp_choices text = text_of(&s->choices[0]);
    for (size_t c = 0; c < model->classes; c++) {
        int64_t least, lead;
        if (c == target) continue;
        lead = sf_ibp_context_lead(&least, s->falls, sf_context_sum_of(model), sf_context_answered(answered), &text,
                                   target, c);
        qsort(s->falls, text.count, sizeof *s->falls, compare_falls);
        for (size_t r = 0; r <= visible; r++) {
            if (r) lead += s->falls[r - 1]; /* a slot is a word */
            s->curve[r] = fmin(s->curve[r], in_units(lead));
        }
    }
}

safer_status sf_ibp_curve(double *margins, const double **curve, const safer_model *model, const safer_lexicon *lexicon,
                          const sf_slots *slots, size_t target, const void *answered, sf_ibp_scratch **scratch,
                          safer_error *error)
{
    const size_t visible = sf_ibp_visible(model, slots);
    const safer_status status = sf_ibp_margins(margins, model, lexicon, slots, target, answered, scratch, error);
    if (status != SAFER_OK) return status;
    sf_ibp_scratch *s = *scratch;
    if (make_room(s, visible)) return sf_fail_memory(error);
    for (size_t r = 0; r <= visible; r++) s->curve[r] = HUGE_VAL;
    *curve = s->curve;
    if (sf_context_is(model)) {
        draw_exactly(s, model, visible, target, answered);
        return SAFER_OK;
    }
    for (size_t c = 0; c < model->classes; c++) {
        fall f;
        double drop = 0, left = margins[c]; /* which holds at every radius */
        if (c == target) continue;
        const int known = add_members(&f, s, model, target, c, answered) == 0;
        const size_t words = known ? sort_drops(&f, s) : 0;
        for (size_t r = 0; r <= visible; r++) {
            if (r && r <= words) drop += s->drops[r - 1];
            left = known ? fmax(margins[c], left_of(&f, drop)) : margins[c];
            s->curve[r] = fmin(s->curve[r], left);
        }
        margins[c] = left;
    }
    return SAFER_OK;
}

int sf_ibp_certifies(const double *margins, size_t classes, size_t target)
{
    for (size_t c = 0; c < classes; c++)
        if (c != target && !(margins[c] > 0)) return 0;
    return 1;
}
