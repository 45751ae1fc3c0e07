/* charcnn files: what is opened answers, and the same in any batch. */
#include "model/model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(safer_model *model)
{
    static const char *const texts[] = {"", "A good film.\nI liked it \xc3\xa9 \xff",
                                        "0123456789 abcdefghijklmnopqrstuvwxyz"};
    void *scratch = NULL;
    int labels[3], again[3];
    float *scores = malloc(3 * model->classes * sizeof *scores);
    sf_span spans[3];
    if (!scores || model->class->scratch_new(model, &scratch, NULL) != SAFER_OK) abort();
    for (size_t i = 0; i < 3; i++) spans[i] = (sf_span){texts[i], strlen(texts[i])};
    if (model->class->classify(model, spans, 3, labels, scores, scratch, NULL) != SAFER_OK) abort();
    for (size_t i = 0; i < 3; i++) {
        assert(labels[i] >= 0 && (size_t)labels[i] < model->classes);
        if (model->class->classify(model, &spans[i], 1, &again[i], NULL, scratch, NULL) != SAFER_OK) abort();
        assert(again[i] == labels[i]);
    }
    model->class->scratch_free(scratch);
    free(scores);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_safetensors *file = NULL;
    safer_model *model = NULL;
    safer_error error = {0};
    char *bytes = malloc(size + 1);
    if (!bytes) abort();
    if (size) memcpy(bytes, data, size);
    sf_file image = {.bytes = bytes, .length = size, .heap = bytes};
    if (sf_safetensors_parse(&file, &image, "fuzz", &error) != SAFER_OK) {
        free(bytes);
        return 0;
    }
    if (sf_charcnn_open(&model, file, &error) != SAFER_OK) {
        assert(error.message[0] && error.status == SAFER_INPUT && !model);
        sf_safetensors_free(file);
        return 0;
    }
    use(model);
    model->class->free(model);
    return 0;
}
