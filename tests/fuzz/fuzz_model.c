/* Model files of every architecture, and sums of files that are not there: what is opened answers, and the same in
 * any batch; the mean of a bert and itself is made. */
#define _GNU_SOURCE
#include "fuzz_files.h"

#include "model/model.h"
#include "model/sum.h"

static void use(safer_model *model)
{
    static const char *const texts[] = {"", "A good film.\nI liked it \xc3\xa9 \xff", "the film was bad 0123456789"};
    void *scratch = NULL;
    int labels[3], again[3];
    float *scores = malloc(3 * model->classes * sizeof *scores);
    sf_span spans[3];
    require(scores);
    if (model->class->scratch_new) require(model->class->scratch_new(model, &scratch, NULL) == SAFER_OK);
    for (size_t i = 0; i < 3; i++) spans[i] = (sf_span){texts[i], strlen(texts[i])};
    require(sf_model_classify(model, spans, 3, labels, scores, scratch, NULL) == SAFER_OK);
    for (size_t i = 0; i < 3; i++) {
        require(labels[i] >= 0 && (size_t)labels[i] < model->classes);
        require(sf_model_classify(model, &spans[i], 1, &again[i], NULL, scratch, NULL) == SAFER_OK);
        require(again[i] == labels[i]);
    }
    if (scratch) model->class->scratch_free(scratch);
    free(scores);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    safer_model *model = NULL;
    safer_error error = {0};
    const char *path = fuzz_write("model", data, size);
    if (sf_sum_is(path) && size && memmem(data, size, "model", 5)) return 0; /* a sum may name itself; fuzz_sum */
    if (safer_model_open(&model, path, &error) != SAFER_OK) {
        require(error.message[0] && !model && error.status != SAFER_MEMORY);
        return 0;
    }
    use(model);
    const char *with = safer_model_trained_with(model);
    if (with) fuzz_read(with, strlen(with) + 1);
    const char *const both[] = {path, path};
    if (strcmp(safer_model_arch(model), "bert") == 0)
        require(safer_model_average(fuzz_path("mean"), both, 2, &error) != SAFER_MEMORY);
    safer_model_free(model);
    return 0;
}
