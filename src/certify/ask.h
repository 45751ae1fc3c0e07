/* Asking a model about the text at hand and its draws.
 *
 * A batch is spread over the workspace's threads in pieces; each answer depends on its draw alone,
 * so neither pieces nor threads can change it. An answer is a class, or SF_NO_LABEL. */
#ifndef SF_CERTIFY_ASK_H
#define SF_CERTIFY_ASK_H

#include "certify/workspace.h"

/* The model's own answer for the text as it is. */
safer_status sf_ask_text(int *answer, safer_workspace *workspace, safer_error *error);

/* The same for a text whose only draw has number 0, and in the same call the answer for that draw,
 * answers[0] of the workspace: a remote model would otherwise be called twice for two texts. Not
 * for texts that the model has prepared. */
safer_status sf_ask_text_and_draw(int *answer, safer_workspace *workspace, safer_error *error);

/* Asks a remote model a second time about the first `count` draws, which it has answered: in other requests, with
 * other neighbours. Another answer is an error (sf_model_confirm). The answers are in another order afterwards. */
safer_status sf_ask_again(safer_workspace *workspace, size_t count, safer_error *error);

/* answers[0 .. count-1] of the workspace for its first `count` draws, at most a batch. */
safer_status sf_ask_draws(safer_workspace *workspace, size_t count, safer_error *error);

#endif
