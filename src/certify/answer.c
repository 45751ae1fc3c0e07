/* A certificate as the answer of the smoothed classifier. */
#include "certify/answer.h"

#include "base/json.h"
#include "certify/record.h"

json_t *sf_answer_json(const safer_certificate *c, const safer_model *model)
{
    const char *leading = model->labels[c->prediction];
    json_t *shares = json_object();
    for (size_t k = 0; k < model->classes; k++) json_object_set_new(shares, model->labels[k], json_real(c->shares[k]));
    if (json_object_size(shares) != model->classes) {
        json_decref(shares);
        return NULL;
    }
    /* A certificate says nothing of an answer that is not given. */
    json_t *answer = json_pack("{s:o, s:s, s:b, s:f, s:o, s:f, s:b, s:o, s:b, s:I, s:I, s:I}", "label",
                               c->abstained ? json_null() : json_string(leading), "leading", leading, "abstained",
                               c->abstained, "confidence", c->shares[c->prediction], "shares", shares, "bound",
                               c->bound, "certified", c->certified && !c->abstained, "radius",
                               sf_radius_json(c->abstained ? 0 : c->radius), "exact", c->exact, "words",
                               (json_int_t)c->words, "slots", (json_int_t)c->slots, "queries", (json_int_t)c->queries);
    if (c->deletion > 0 || c->groups) { /* what is put in, taken out or replaced */
        sf_json_put(&answer, "tokens", json_integer((json_int_t)c->tokens));
        sf_json_put(&answer, "edits", json_integer(c->abstained ? 0 : (json_int_t)c->edits));
    }
    const int assumes = c->exact && sf_model_is_remote(model);
    if (answer && assumes && json_object_set_new(answer, "assumes", json_pack("[s]", SF_ASSUMES_FUNCTION)) != 0) {
        json_decref(answer);
        return NULL;
    }
    return answer;
}

safer_status safer_answer_json(char **out, const safer_certificate *certificate, const safer_model *model,
                               safer_error *error)
{
    if (certificate->prediction < 0 || (size_t)certificate->prediction >= model->classes)
        return sf_fail(error, SAFER_INVALID, "certificate: its prediction is no class of the model");
    if (certificate->target != certificate->prediction)
        return sf_fail(error, SAFER_INVALID, "certificate: it is about another class than the prediction");
    json_t *value = sf_answer_json(certificate, model);
    char *text = sf_json_text(value);
    json_decref(value);
    if (!text) return sf_fail_memory(error);
    *out = text;
    return SAFER_OK;
}
