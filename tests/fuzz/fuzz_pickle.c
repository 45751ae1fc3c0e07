/* Pickles of dictionaries of tensors. What is accepted is a tree whose items all are values of it; nothing the pickle
 * says is believed, so not even a damaged one asks for more memory than a few times its length. */
#include "fuzz.h"

#include "nn/pickle.h"

static const sf_pickle_name names[] = {{"collections", "OrderedDict", 1},
                                       {"torch", "FloatStorage", 0},
                                       {"torch._utils", "_rebuild_tensor_v2", 0}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_pickle pickle = {0};
    safer_error error = {0};
    char *bytes = fuzz_copy(data, size);
    if (sf_pickle_parse(&pickle, bytes, size, names, 3, "fuzz", &error) != SAFER_OK) {
        require(error.message[0] && error.status == SAFER_INPUT && !pickle.values);
        free(bytes);
        return 0;
    }
    require(pickle.value_count <= size && pickle.cell_count <= size && sf_pickle_root(&pickle));
    for (size_t i = 0; i < pickle.value_count; i++) {
        const sf_pickle_value *v = &pickle.values[i];
        uint32_t cell = v->first, count = 0;
        if (v->kind == SF_PICKLE_STRING) fuzz_read(v->string.bytes, v->string.length);
        if (v->kind == SF_PICKLE_NAME || v->kind == SF_PICKLE_CALL) require(v->whole >= 0 && v->whole < 3);
        if (v->kind < SF_PICKLE_TUPLE || v->kind == SF_PICKLE_NAME) continue;
        for (; cell != SF_PICKLE_END; count++) {
            const sf_pickle_value *item = sf_pickle_next(&pickle, &cell);
            require(item >= pickle.values && item < pickle.values + pickle.value_count);
        }
        require(count == v->count);
    }
    sf_pickle_free(&pickle);
    free(bytes);
    return 0;
}
