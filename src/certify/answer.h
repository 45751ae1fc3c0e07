/* A certificate as the answer of the smoothed classifier, in JSON: what safer predict --json and
 * POST /v1/predict give. docs/serve.md lists the members. */
#ifndef SF_CERTIFY_ANSWER_H
#define SF_CERTIFY_ANSWER_H

#include "certify/certificate.h"

#include <jansson.h>

/* safer_answer_json as a value. The certificate must be one of the prediction. NULL without memory. */
json_t *sf_answer_json(const safer_certificate *certificate, const safer_model *model);

#endif
