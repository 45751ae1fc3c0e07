/* Checkpoints of any kind into the one-file form. */
#include "model/bert_names.h"

safer_status safer_model_convert(const char *output, const char *input, safer_error *error)
{
    safer_status status;
    sf_bert_checkpoint c = {0};
    sf_buffer labels = {0};
    SF_TRY(sf_bert_checkpoint_open(&c, input, error));
    if (c.labels && sf_bert_labels_json(&labels, c.labels, c.layout.shape.classes)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_bert_save(output, &c.layout, c.parameters, c.piecer, labels.bytes, c.trained_with, error));
done:
    sf_buffer_free(&labels);
    sf_bert_checkpoint_free(&c);
    return status;
}
