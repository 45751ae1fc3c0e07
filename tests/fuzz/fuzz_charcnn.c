/* charcnn files: what is opened answers, and the same in any batch. */
#include "fuzz.h"

#include "model/model.h"

static void use(safer_model *model)
{
    static const char *const texts[] = {"", "A good film.\nI liked it \xc3\xa9 \xff",
                                        "0123456789 abcdefghijklmnopqrstuvwxyz"};
    void *scratch = NULL;
    int labels[3], again[3];
    float *scores = malloc(3 * model->classes * sizeof *scores);
    sf_span spans[3];
    require(scores && model->class->scratch_new(model, &scratch, NULL) == SAFER_OK);
    for (size_t i = 0; i < 3; i++) spans[i] = (sf_span){texts[i], strlen(texts[i])};
    require(model->class->classify(model, spans, 3, labels, scores, scratch, NULL) == SAFER_OK);
    for (size_t i = 0; i < 3; i++) {
        require(labels[i] >= 0 && (size_t)labels[i] < model->classes);
        require(model->class->classify(model, &spans[i], 1, &again[i], NULL, scratch, NULL) == SAFER_OK);
        require(again[i] == labels[i]);
    }
    model->class->scratch_free(scratch);
    free(scores);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_safetensors *file = NULL;
    safer_model *model = NULL;
    safer_error error = {0};
    sf_file image = fuzz_file(data, size);
    if (sf_safetensors_parse(&file, &image, "fuzz", &error) != SAFER_OK) {
        sf_file_free(&image);
        return 0;
    }
    if (sf_charcnn_open(&model, file, &error) != SAFER_OK) {
        require(error.message[0] && error.status == SAFER_INPUT && !model);
        sf_safetensors_free(file);
        return 0;
    }
    use(model);
    model->class->free(model);
    return 0;
}
