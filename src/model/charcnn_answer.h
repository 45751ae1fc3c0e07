/* The `charcnn` classifier: from codes to classes.
 *
 * For the files of charcnn here and in training. */
#ifndef SF_MODEL_CHARCNN_ANSWER_H
#define SF_MODEL_CHARCNN_ANSWER_H

#include "model/charcnn_net.h"

/* Texts are answered so many at a time: more at once gain nothing. */
enum { SF_CHARCNN_TOGETHER = 128 };

/* Working memory of one thread. */
typedef struct sf_charcnn_scratch sf_charcnn_scratch;
safer_status sf_charcnn_scratch_new(const sf_charcnn_net *net, sf_charcnn_scratch **out, safer_error *error);
/* The same where a device answers (charcnn_device.h): codes, lengths and logits alone. */
safer_status sf_charcnn_scratch_of_device(const sf_charcnn_layout *layout, sf_charcnn_scratch **out,
                                          safer_error *error);
void sf_charcnn_scratch_free(sf_charcnn_scratch *scratch);

/* (texts, classes) of the last answers, for texts or for codes; of the last SF_CHARCNN_TOGETHER at most. */
float *sf_charcnn_scratch_logits(const sf_charcnn_scratch *scratch);

/* The class of every text, and its probabilities unless they are NULL, from logits (count, classes). */
void sf_charcnn_classes(int *labels, float *probabilities, const float *logits, size_t count, size_t classes);

/* The classes of texts given as codes (count, L) and lengths; probabilities (count,
 * classes) and logits (count, classes) may be NULL. */
void sf_charcnn_classify_codes(int *labels, float *probabilities, float *logits, const sf_charcnn_net *net,
                               const uint8_t *codes, const size_t *lengths, size_t count, sf_charcnn_scratch *scratch);

/* Memory for the codes (SF_CHARCNN_TOGETHER, L) and lengths of texts to ask about. */
uint8_t *sf_charcnn_scratch_codes(sf_charcnn_scratch *scratch);
size_t *sf_charcnn_scratch_lengths(sf_charcnn_scratch *scratch);

#endif
