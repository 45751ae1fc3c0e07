/* Files of torch.save, as tests/torch_files.py makes them (the corpus of the fuzz target) and as PyTorch did
 * (tests/golden/torch, by scripts/golden-torch): values, views, memory that runs out. What is refused, and with which
 * words, is in test_torchfile.py. */
#include "support.h"

#include "nn/torchfile.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CORPUS SOURCE_DIR "/tests/fuzz/corpus/torchfile/"
#define GOLDEN SOURCE_DIR "/tests/golden/torch/"

static sf_torchfile *open_file(const char *path)
{
    safer_error error = {0};
    sf_file image = {0};
    sf_torchfile *file = NULL;
    assert_ok(sf_file_load(&image, path, &error));
    assert_ok(sf_torchfile_parse(&file, &image, path, &error));
    return file;
}

static const sf_tensor *find(const sf_torchfile *file, const char *name)
{
    for (size_t i = 0; i < sf_torchfile_count(file); i++)
        if (strcmp(sf_torchfile_at(file, i)->name, name) == 0) return sf_torchfile_at(file, i);
    fail_msg("%s: there is no tensor %s", sf_torchfile_name(file), name);
    return NULL;
}

/* A tensor of the corpus: of which numbers k the value is k / 8. */
static void check_view(const sf_torchfile *file, const char *name, size_t rank, size_t rows, size_t columns,
                       const int *numbers)
{
    safer_error error = {0};
    const sf_tensor *t = find(file, name);
    float values[24];
    assert_int_equal(t->rank, rank);
    assert_int_equal(t->shape[0], rows);
    if (rank == 2) assert_int_equal(t->shape[1], columns);
    assert_ok(sf_tensor_floats(values, t, "corpus", &error));
    for (size_t i = 0; i < t->count; i++) assert_true(values[i] == (float)numbers[i] / 8);
}

static void test_views(void **state)
{
    (void)state;
    static const char *const names[] = {"views", "short_end", "far", "no_order"};
    static const int rows[] = {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19}, slice[] = {5, 6, 9, 10};
    int whole[24], transposed[24];
    for (int i = 0; i < 24; i++) {
        whole[i] = i;
        transposed[i] = i % 6 * 4 + i / 6;
    }
    for (size_t i = 0; i < 4; i++) {
        char path[400];
        snprintf(path, sizeof path, CORPUS "%s", names[i]);
        sf_torchfile *file = open_file(path);
        assert_int_equal(sf_torchfile_count(file), 6);
        check_view(file, "whole", 2, 6, 4, whole);
        check_view(file, "tied", 2, 6, 4, whole);
        check_view(file, "transposed", 2, 4, 6, transposed);
        check_view(file, "rows", 2, 3, 4, rows);
        check_view(file, "slice", 2, 2, 2, slice);
        check_view(file, "tail", 2, 2, 4, whole + 16);
        assert_true(find(file, "whole")->bytes == find(file, "tied")->bytes);
        assert_false(find(file, "tail")->strided);
        sf_torchfile_free(file);
    }
}

static void test_odd(void **state)
{
    (void)state;
    safer_error error = {0};
    float values[24];
    sf_torchfile *file = open_file(CORPUS "odd");
    const sf_tensor *scalar = find(file, "scalar"), *one = find(file, "one"), *parameter = find(file, "parameter");
    assert_true(scalar->rank == 0 && scalar->count == 1);
    assert_ok(sf_tensor_floats(values, scalar, "odd", &error));
    assert_true(values[0] == 2.5f);
    assert_int_equal(find(file, "empty")->count, 0);
    assert_true(one->type == SF_F16 && !one->strided); /* strides of dimensions of one do not matter */
    assert_true(parameter->count == 24 && find(file, "more")->count == 3);
    sf_torchfile_free(file);
}

static void test_types(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        sf_dtype type;
    } expected[] = {{"Float", SF_F32}, {"Half", SF_F16}, {"BFloat16", SF_BF16}, {"Double", SF_F64},
                    {"Long", SF_I64},  {"Int", SF_I32},  {"Byte", SF_U8},       {"Bool", SF_U8}};
    static const char *const files[] = {CORPUS "every_type", CORPUS "protocol4"};
    for (size_t f = 0; f < 2; f++) {
        sf_torchfile *file = open_file(files[f]);
        assert_int_equal(sf_torchfile_count(file), 8);
        for (size_t i = 0; i < 8; i++) {
            safer_error error = {0};
            float values[4];
            const sf_tensor *t = sf_torchfile_at(file, i);
            assert_string_equal(t->name, expected[i].name);
            assert_int_equal(t->type, expected[i].type);
            if (i < 4) {
                assert_ok(sf_tensor_floats(values, t, "types", &error));
                assert_true(values[0] == 0 && values[1] == 1 && values[2] == 1 && values[3] == 0);
            } else {
                assert_fails(sf_tensor_floats(values, t, "types", &error), SAFER_INPUT, "not floating point");
            }
        }
        sf_torchfile_free(file);
    }
}

/* ------------------------------------------------------------------- PyTorch */

static void check_golden(const char *name, const json_t *tensors)
{
    char path[400];
    const char *key;
    json_t *expected;
    snprintf(path, sizeof path, GOLDEN "%s.bin", name);
    sf_torchfile *file = open_file(path);
    assert_int_equal(sf_torchfile_count(file), json_object_size(tensors));
    json_object_foreach((json_t *)(uintptr_t)tensors, key, expected)
    {
        safer_error error = {0};
        const sf_tensor *t = find(file, key);
        const json_t *shape = json_object_get(expected, "shape"), *values = json_object_get(expected, "values");
        assert_int_equal(t->rank, json_array_size(shape));
        for (size_t i = 0; i < t->rank; i++)
            assert_int_equal(t->shape[i], json_integer_value(json_array_get(shape, i)));
        assert_int_equal(t->count, json_array_size(values));
        if (t->type != SF_F32 && t->type != SF_F16 && t->type != SF_BF16 && t->type != SF_F64) continue;
        float *got = malloc((t->count + 1) * sizeof *got);
        assert_ok(sf_tensor_floats(got, t, path, &error));
        for (size_t i = 0; i < t->count; i++)
            assert_true(got[i] == (float)strtod(json_string_value(json_array_get(values, i)), NULL));
        free(got);
    }
    sf_torchfile_free(file);
}

static void test_golden(void **state)
{
    (void)state;
    safer_error error = {0};
    sf_file image = {0};
    sf_torchfile *none = NULL;
    json_t *values = json_load_file(GOLDEN "values.json", 0, NULL), *tensors;
    const char *name;
    assert_int_equal(json_object_size(values), 5);
    json_object_foreach(values, name, tensors) check_golden(name, tensors);
    json_decref(values);
    assert_ok(sf_file_load(&image, GOLDEN "legacy.bin", &error));
    assert_fails(sf_torchfile_parse(&none, &image, "legacy.bin", &error), SAFER_INPUT, "before version 1.6");
    sf_file_free(&image);
}

/* -------------------------------------------------------------------- memory */

static safer_status try_open(void *context, safer_error *error)
{
    sf_file image = {0};
    sf_torchfile *file = NULL;
    safer_status status = sf_file_load(&image, context, error);
    if (status == SAFER_OK) status = sf_torchfile_parse(&file, &image, "memory", error);
    sf_file_free(&image);
    sf_torchfile_free(file);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    static char views[] = CORPUS "views", ordered[] = CORPUS "protocol5";
    check_every_allocation(try_open, views);
    check_every_allocation(try_open, ordered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_views), cmocka_unit_test(test_odd),
                                       cmocka_unit_test(test_types), cmocka_unit_test(test_golden),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
