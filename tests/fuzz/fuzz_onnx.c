/* ONNX: whatever is accepted has weights that can be read from end to end. */
#include "fuzz.h"

#include "model/bert_names.h"
#include "model/onnx.h"

static void use(const sf_onnx *onnx)
{
    static const size_t sizes[] = {4, 2, 2, 8};
    sf_bert_source source = {.name = "fuzz"};
    for (size_t i = 0; i < sf_onnx_count(onnx); i++) {
        const sf_onnx_weight *w = sf_onnx_at(onnx, i);
        const sf_tensor *t = &w->tensor;
        size_t count = 1, bytes = t->count * sizes[t->type];
        for (size_t k = 0; k < t->rank; k++) count *= t->shape[k];
        require(count == t->count && w->name && t->name && (!w->transposed || t->rank == 2));
        fuzz_read(t->bytes, bytes);
        float *values = malloc((t->count + 1) * sizeof *values);
        require(values);
        (void)sf_tensor_floats(values, t, "fuzz", NULL);
        free(values);
        require(sf_bert_source_add(&source, t, w->name, "fuzz", w->transposed, NULL) == SAFER_OK);
    }
    if (sf_bert_source_sort(&source, NULL) == SAFER_OK)
        for (size_t i = 0; i < source.count; i++)
            require(sf_bert_source_find(&source, source.found[i].name) == &source.found[i]);
    sf_bert_source_free(&source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_onnx *onnx = NULL;
    safer_error error = {0};
    sf_file image = fuzz_file(data, size);
    if (sf_onnx_parse(&onnx, &image, "fuzz", &error) != SAFER_OK) {
        require(error.message[0] && error.status == SAFER_INPUT && image.heap);
        sf_file_free(&image);
        return 0;
    }
    use(onnx);
    sf_onnx_free(onnx);
    return 0;
}
