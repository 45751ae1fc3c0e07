/* ONNX: whatever is accepted has weights that can be read from end to end. */
#include "model/bert_names.h"
#include "model/onnx.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const sf_onnx *onnx)
{
    static const size_t sizes[] = {4, 2, 2, 8};
    sf_bert_source source = {.name = "fuzz"};
    for (size_t i = 0; i < sf_onnx_count(onnx); i++) {
        const sf_onnx_weight *w = sf_onnx_at(onnx, i);
        const sf_tensor *t = &w->tensor;
        size_t count = 1, bytes = t->count * sizes[t->type];
        unsigned char sum = 0;
        for (size_t k = 0; k < t->rank; k++) count *= t->shape[k];
        assert(count == t->count && w->name && t->name && (!w->transposed || t->rank == 2));
        for (size_t k = 0; k < bytes; k++) sum = (unsigned char)(sum + ((const unsigned char *)t->bytes)[k]);
        assert(bytes || !sum);
        float *values = malloc((t->count + 1) * sizeof *values);
        if (!values) abort();
        (void)sf_tensor_floats(values, t, "fuzz", NULL);
        free(values);
        if (sf_bert_source_add(&source, t, w->name, "fuzz", w->transposed, NULL) != SAFER_OK) abort();
    }
    if (sf_bert_source_sort(&source, NULL) == SAFER_OK)
        for (size_t i = 0; i < source.count; i++)
            assert(sf_bert_source_find(&source, source.found[i].name) == &source.found[i]);
    sf_bert_source_free(&source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_onnx *onnx = NULL;
    safer_error error = {0};
    char *bytes = malloc(size + !size);
    if (!bytes) abort();
    if (size) memcpy(bytes, data, size);
    sf_file image = {.bytes = bytes, .length = size, .heap = bytes};
    if (sf_onnx_parse(&onnx, &image, "fuzz", &error) != SAFER_OK) {
        assert(error.message[0] && error.status == SAFER_INPUT && image.heap == bytes);
        free(bytes);
        return 0;
    }
    use(onnx);
    sf_onnx_free(onnx);
    return 0;
}
