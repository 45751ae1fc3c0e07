/* Files of torch.save: whatever is accepted can be read from end to end, views and all, and twice gives the same. */
#include "fuzz.h"

#include "nn/torchfile.h"

static void use(const sf_torchfile *file, size_t size)
{
    size_t claimed = 0;
    for (size_t i = 0; i < sf_torchfile_count(file); i++) {
        const sf_tensor *t = sf_torchfile_at(file, i);
        size_t count = 1;
        for (size_t k = 0; k < t->rank; k++) count *= t->shape[k];
        require(count == t->count && t->name[0]);
        require((claimed += t->count) <= 17 * size); /* no file can ask for much more memory than it has */
        for (size_t k = 0; k < i; k++) require(strcmp(t->name, sf_torchfile_at(file, k)->name) != 0);
        float *values = malloc((t->count + 1) * sizeof *values);
        require(values);
        (void)sf_tensor_floats(values, t, sf_torchfile_name(file), NULL);
        free(values);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_torchfile *file = NULL;
    safer_error error = {0};
    sf_file image = fuzz_file(data, size);
    if (sf_torchfile_parse(&file, &image, "fuzz", &error) != SAFER_OK) {
        require(error.message[0] && error.status == SAFER_INPUT && image.heap);
        sf_file_free(&image);
        return 0;
    }
    use(file, size);
    sf_torchfile_free(file);
    return 0;
}
