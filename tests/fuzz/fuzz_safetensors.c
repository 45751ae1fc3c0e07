/* safetensors: whatever is accepted can be read from end to end. */
#include "fuzz.h"

#include "nn/safetensors.h"

static void use(const sf_safetensors *file)
{
    for (size_t i = 0; i < sf_safetensors_count(file); i++) {
        const sf_tensor *t = sf_safetensors_at(file, i), *found;
        static const size_t sizes[] = {4, 2, 2, 8, 8, 4, 4, 1};
        size_t count = 1, bytes = t->count * sizes[t->type];
        for (size_t k = 0; k < t->rank; k++) count *= t->shape[k];
        require(count == t->count && sf_safetensors_find(file, t->name) == t);
        fuzz_read(t->bytes, bytes);
        float *values = malloc((t->count + 1) * sizeof *values);
        require(values);
        (void)sf_tensor_to_f32(values, t, file, NULL);
        free(values);
        if (sf_safetensors_require(&found, file, t->name, t->type, t->rank, t->shape, NULL) == SAFER_OK)
            require(found == t);
    }
    const char *arch = sf_safetensors_metadata(file, "arch");
    if (arch) fuzz_read(arch, strlen(arch) + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_safetensors *file = NULL;
    safer_error error = {0};
    sf_file image = fuzz_file(data, size);
    if (sf_safetensors_parse(&file, &image, "fuzz", &error) != SAFER_OK) {
        require(error.message[0] && error.status == SAFER_INPUT && image.heap);
        sf_file_free(&image);
        return 0;
    }
    use(file);
    sf_safetensors_free(file);
    return 0;
}
