/* The mean of fine-tuned BERT models.
 *
 * Models that were fine-tuned from one encoder lie close together, and the mean of their
 * parameters often errs less than any of them ("model soups", Wortsman et al. 2022), at the
 * cost of one. */
#include "base/json.h"
#include "base/memory.h"
#include "model/bert_names.h"

#include <string.h>

static int is_same(const sf_buffer *a, const sf_buffer *b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->bytes, b->bytes, a->length) == 0);
}

/* Whether the parameters of both mean the same things; if not, what differs. */
static const char *difference(const sf_bert_checkpoint *a, const sf_bert_checkpoint *b, safer_status *status,
                              safer_error *error)
{
    const sf_bert_shape *s = &a->layout.shape, *t = &b->layout.shape;
    const char *what = NULL;
    sf_bert_description ours = {0}, theirs = {0};
    sf_bert_shape same = *t;
    same.tokens = s->tokens;
    same.ending = s->ending;
    *status = sf_bert_describe(&ours, s, a->piecer, "the first", error);
    if (*status == SAFER_OK) *status = sf_bert_describe(&theirs, &same, b->piecer, "another", error);
    if (*status != SAFER_OK) goto done;
    if (s->classes != t->classes || !is_same(&ours.config, &theirs.config))
        what = "shape";
    else if (s->tokens != t->tokens)
        what = "number of tokens";
    else if (s->ending != t->ending)
        what = "truncation side";
    for (size_t k = 0; !what && k < s->classes; k++)
        if (strcmp(a->labels[k], b->labels[k]) != 0) what = "labels";
    if (!what && (!is_same(&ours.vocabulary, &theirs.vocabulary) || !is_same(&ours.tokenizer, &theirs.tokenizer)))
        what = "vocabulary";
done:
    sf_bert_description_free(&ours);
    sf_bert_description_free(&theirs);
    return what;
}

/* Of how two models were trained, what is the same stays: their lexicon, say, but not their seeds. What is no JSON
 * says nothing. */
static safer_status keep_common(char **ours, const char *theirs, safer_error *error)
{
    json_t *a = NULL, *b = NULL, *value;
    const char *name;
    void *next;
    char *text = NULL;
    int failed = *ours && sf_json_parse(&a, *ours, strlen(*ours), 0, NULL) == SAFER_MEMORY;
    if (!failed && theirs) failed = sf_json_parse(&b, theirs, strlen(theirs), 0, NULL) == SAFER_MEMORY;
    json_object_foreach_safe(a, next, name, value) if (!json_equal(value, json_object_get(b, name)))
        json_object_del(a, name);
    if (!failed && json_object_size(a)) failed = !(text = sf_json_text(a));
    json_decref(a);
    json_decref(b);
    if (failed) return sf_fail_memory(error);
    free(*ours);
    *ours = text;
    return SAFER_OK;
}

safer_status safer_model_average(const char *output, const char *const *inputs, size_t count, safer_error *error)
{
    safer_status status;
    sf_bert_checkpoint mean = {0}, next = {0};
    sf_buffer labels = {0};
    double *sums = NULL;
    if (count < 2) return sf_fail(error, SAFER_INVALID, "an average needs at least two models");
    SF_TRY(sf_bert_checkpoint_open(&mean, inputs[0], error));
    if (!(sums = sf_alloc(mean.layout.size, sizeof *sums))) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t j = 0; j < mean.layout.size; j++) sums[j] = (double)mean.parameters[j];
    for (size_t i = 1; i < count; i++) {
        SF_TRY(sf_bert_checkpoint_open(&next, inputs[i], error));
        const char *what = difference(&mean, &next, &status, error);
        if (what)
            status = sf_fail(error, SAFER_INPUT, "%s and %s differ in their %s: their mean has no meaning", inputs[0],
                             inputs[i], what);
        if (status != SAFER_OK) goto done;
        for (size_t j = 0; j < mean.layout.size; j++) sums[j] += (double)next.parameters[j];
        SF_TRY(keep_common(&mean.trained_with, next.trained_with, error));
        sf_bert_checkpoint_free(&next);
        next = (sf_bert_checkpoint){0};
    }
    for (size_t j = 0; j < mean.layout.size; j++) mean.parameters[j] = (float)(sums[j] / (double)count);
    if (mean.labels && sf_bert_labels_json(&labels, mean.labels, mean.layout.shape.classes)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_bert_save(output, &mean.layout, mean.parameters, mean.piecer, labels.bytes, mean.trained_with, error));
done:
    free(sums);
    sf_buffer_free(&labels);
    sf_bert_checkpoint_free(&mean);
    sf_bert_checkpoint_free(&next);
    return status;
}
