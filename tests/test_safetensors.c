/* safetensors: what is written comes back, what is damaged is refused with a reason. Headers of every kind of damage,
 * any truncation, and all 65,536 halves. */
#include "support.h"

#include "base/memory.h"
#include "nn/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A file with this header (padded by nothing) and so many bytes of data 0, 1, 2, ... */
static sf_file image_of(const char *header, size_t data)
{
    size_t length = strlen(header);
    char *bytes = malloc(8 + length + data + 1);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++) bytes[i] = (char)(unsigned char)((uint64_t)length >> 8 * i);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data; i++) bytes[8 + length + i] = (char)i;
    return (sf_file){.bytes = bytes, .length = 8 + length + data, .heap = bytes};
}

static void refused(const char *header, size_t data, const char *words)
{
    sf_file image = image_of(header, data);
    sf_safetensors *file = NULL;
    safer_error error;
    assert_fails(sf_safetensors_parse(&file, &image, "m.safetensors", &error), SAFER_INPUT, words);
    assert_non_null(strstr(error.message, "m.safetensors"));
    assert_null(file);
    assert_non_null(image.bytes); /* still ours */
    sf_file_free(&image);
}

/* ------------------------------------------------------------- round trip */

static const float numbers[6] = {1, -2.5f, 3e-40f, 0, -0.0f, 1e30f};
static const uint8_t octets[3] = {7, 8, 255};
static const int64_t longs[2] = {-1, INT64_MAX};
static const sf_tensor written[] = {
    {.name = "bytes", .type = SF_U8, .rank = 1, .shape = {3}, .count = 3, .bytes = octets},
    {.name = "nothing", .type = SF_F32, .rank = 2, .shape = {0, 5}, .count = 0, .bytes = numbers},
    {.name = "matrix", .type = SF_F32, .rank = 2, .shape = {2, 3}, .count = 6, .bytes = numbers},
    {.name = "scalar", .type = SF_F32, .rank = 0, .count = 1, .bytes = numbers},
    {.name = "long \"\xc3\xa9\"", .type = SF_I64, .rank = 1, .shape = {2}, .count = 2, .bytes = longs},
};
static const sf_metadata notes[] = {{"arch", "test"}, {"labels", "[\"a\",\"b\\u00e9\"]\n"}};

static void comes_back(void **state)
{
    (void)state;
    safer_error error;
    const char *path = temporary("round.safetensors");
    sf_safetensors *file = NULL, *again = NULL;
    assert_ok(sf_safetensors_write(path, written, 5, notes, 2, &error));
    assert_ok(sf_safetensors_open(&file, path, &error));
    assert_int_equal(sf_safetensors_count(file), 5);
    assert_string_equal(sf_safetensors_name(file), path);
    for (size_t i = 0; i < 5; i++) {
        const sf_tensor *t = sf_safetensors_find(file, written[i].name);
        assert_non_null(t);
        assert_int_equal(t->type, written[i].type);
        assert_int_equal(t->rank, written[i].rank);
        assert_int_equal(t->count, written[i].count);
        for (size_t k = 0; k < t->rank; k++) assert_int_equal(t->shape[k], written[i].shape[k]);
        size_t size = t->type == SF_I64 ? 8 : t->type == SF_F32 ? 4 : 1;
        assert_int_equal((uintptr_t)t->bytes % size, 0);
        assert_memory_equal(t->bytes, written[i].bytes, t->count * size);
    }
    /* Falling element size, and the data at a multiple of 64. */
    assert_string_equal(sf_safetensors_at(file, 0)->name, written[4].name);
    assert_string_equal(sf_safetensors_at(file, 4)->name, "bytes");
    assert_int_equal((uintptr_t)sf_safetensors_at(file, 0)->bytes % 64, 0);
    assert_null(sf_safetensors_find(file, "__metadata__"));
    assert_null(sf_safetensors_find(file, "absent"));
    assert_string_equal(sf_safetensors_metadata(file, "arch"), "test");
    assert_string_equal(sf_safetensors_metadata(file, "labels"), notes[1].value);
    assert_null(sf_safetensors_metadata(file, "absent"));

    assert_ok(sf_safetensors_write(temporary("again.safetensors"), written, 5, notes, 2, &error));
    assert_ok(sf_safetensors_open(&again, temporary("again.safetensors"), &error));
    assert_true(sf_safetensors_hash(file) == sf_safetensors_hash(again));
    sf_safetensors_free(again);
    sf_safetensors_free(file);
    sf_safetensors_free(NULL);
}

static void empty_files_are_fine(void **state)
{
    (void)state;
    safer_error error;
    sf_safetensors *file = NULL;
    assert_ok(sf_safetensors_write(temporary("empty"), NULL, 0, NULL, 0, &error));
    assert_ok(sf_safetensors_open(&file, temporary("empty"), &error));
    assert_int_equal(sf_safetensors_count(file), 0);
    assert_null(sf_safetensors_metadata(file, "arch"));
    sf_safetensors_free(file);
}

/* As Python's safetensors 0.4 wrote it: save_file({"b": float32 [1, 2], "a": float16 [3]},
 * metadata={"format": "pt"}); the header is padded to a multiple of 8 with spaces. */
static void python_writes_this(void **state)
{
    (void)state;
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},\"b\":{\"dtype\":\"F32\",\"shape\":[2],"
        "\"data_offsets\":[0,8]},\"a\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[8,10]}}  ";
    sf_file image = image_of(header, 10);
    char *data = image.heap + 8 + strlen(header);
    memcpy(data, (float[]){1, 2}, 8);
    memcpy(data + 8, (uint16_t[]){0x4200}, 2);
    sf_safetensors *file = NULL;
    safer_error error;
    float out[2];
    assert_ok(sf_safetensors_parse(&file, &image, "py", &error));
    assert_null(image.bytes);
    assert_ok(sf_tensor_to_f32(out, sf_safetensors_find(file, "b"), file, &error));
    assert_true(out[0] == 1 && out[1] == 2);
    assert_ok(sf_tensor_to_f32(out, sf_safetensors_find(file, "a"), file, &error));
    assert_true(out[0] == 3);
    assert_string_equal(sf_safetensors_metadata(file, "format"), "pt");
    sf_safetensors_free(file);
}

/* ------------------------------------------------------------------ errors */

#define TENSOR(name, dtype, shape, begin, end) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void headers_are_checked(void **state)
{
    (void)state;
    refused("", 0, "does not begin with {");
    refused(" {}", 0, "does not begin with {");
    refused("[]", 0, "does not begin with {");
    refused("{", 0, "header, byte");
    refused("{} x", 0, "end of file expected");
    refused("{\"a\":{},\"a\":{}}", 0, "duplicate");
    refused("{" TENSOR("a", "U8", "[1]", "0", "1") "," TENSOR("a", "U8", "[1]", "1", "2") "}", 2, "duplicate");
    refused("{\"a\":\"\xff\"}", 0, "header, byte");
    refused("{\"a\":3}", 0, "\"a\" is not an object");
    refused("{\"__metadata__\":3}", 0, "\"__metadata__\" is not an object");
    refused("{\"__metadata__\":{\"k\":3}}", 0, "\"k\" in \"__metadata__\" is not a string");
    refused("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "duplicate");
    refused("{}", 5, "5 bytes after the last tensor");
}

static void tensors_are_checked(void **state)
{
    (void)state;
    refused("{\"a\":{}}", 0, "no \"dtype\"");
    refused("{\"a\":{\"dtype\":3}}", 0, "no \"dtype\"");
    refused("{" TENSOR("a", "F8_E4M3", "[1]", "0", "1") "}", 1, "dtype \"F8_E4M3\"; F32, F16");
    refused("{\"a\":{\"dtype\":\"F32\"}}", 0, "no \"shape\"");
    refused("{" TENSOR("a", "U8", "[-1]", "0", "1") "}", 1, "item 1 of \"shape\"");
    refused("{" TENSOR("a", "U8", "[1,1.0]", "0", "1") "}", 1, "item 2 of \"shape\"");
    refused("{" TENSOR("a", "U8", "[1,1,1,1,1,1,1,1,1]", "0", "1") "}", 1, "9 dimensions; at most 8");
    refused("{" TENSOR("a", "U8", "[4294967296,4294967296]", "0", "0") "}", 0, "overflows");
    refused("{" TENSOR("a", "F64", "[2305843009213693952]", "0", "0") "}", 0, "overflows");
    refused("{" TENSOR("a", "U8", "[99999999999999999999]", "0", "1") "}", 1, "header, byte");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "no \"data_offsets\"");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, "no \"data_offsets\"");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,true]}}", 1, "no \"data_offsets\"");
    refused("{" TENSOR("a", "U8", "[1]", "-1", "0") "}", 1, "lies at -1 to 0, outside the 1 bytes");
    refused("{" TENSOR("a", "U8", "[1]", "1", "0") "}", 1, "outside");
    refused("{" TENSOR("a", "U8", "[2]", "0", "2") "}", 1, "truncated");
    refused("{" TENSOR("a", "U8", "[1]", "9223372036854775806", "9223372036854775807") "}", 1, "outside");
    refused("{" TENSOR("a", "F32", "[2]", "0", "4") "}", 4, "occupies 4 bytes, but 2 values of type F32 are 8");
    refused("{" TENSOR("a", "U8", "[2]", "0", "2") "," TENSOR("b", "U8", "[2]", "1", "3") "}", 3,
            "\"a\" and \"b\" overlap");
    refused("{" TENSOR("a", "U8", "[2]", "0", "2") "," TENSOR("b", "U8", "[2]", "0", "2") "}", 2,
            "\"a\" and \"b\" overlap");
    refused("{" TENSOR("a", "U8", "[1]", "0", "1") "," TENSOR("b", "U8", "[1]", "3", "4") "}", 4,
            "2 bytes before tensor \"b\"");
    refused("{" TENSOR("a", "U8", "[1]", "1", "2") "}", 2, "1 bytes before tensor \"a\"");
    refused("{" TENSOR("a", "U8", "[1]", "0", "1") "}", 2, "1 bytes after the last tensor");
}

static void lengths_are_checked(void **state)
{
    (void)state;
    static const struct {
        uint64_t length;
        const char *words;
    } cases[] = {{3, "header would have 3 bytes"},
                 {UINT64_C(1) << 63, "9223372036854775808"},
                 {UINT64_MAX, "truncated"}};
    safer_error error;
    sf_safetensors *file = NULL;
    for (size_t i = 0; i < 3; i++) {
        char bytes[10] = {[8] = '{', [9] = '}'};
        for (int k = 0; k < 8; k++) bytes[k] = (char)(unsigned char)(cases[i].length >> 8 * k);
        sf_file image = {.bytes = bytes, .length = 10};
        assert_fails(sf_safetensors_parse(&file, &image, "x", &error), SAFER_INPUT, cases[i].words);
    }
    assert_fails(sf_safetensors_open(&file, write_temporary("short", "1234567", 7), &error), SAFER_INPUT,
                 "it has 7 bytes");
    assert_fails(sf_safetensors_open(&file, write_temporary("void", "", 0), &error), SAFER_INPUT, "it has 0 bytes");
    assert_fails(sf_safetensors_open(&file, temporary("absent"), &error), SAFER_SYSTEM, "absent");
}

static void any_truncation_is_refused(void **state)
{
    (void)state;
    safer_error error;
    const char *path = temporary("whole.safetensors");
    sf_file whole = {0};
    sf_safetensors *file = NULL;
    assert_ok(sf_safetensors_write(path, written, 5, notes, 2, &error));
    assert_ok(sf_file_load(&whole, path, &error));
    for (size_t length = 0; length < whole.length; length++) {
        char *copy = malloc(length + 1); /* so that the sanitizer sees a byte too far */
        assert_non_null(copy);
        memcpy(copy, whole.bytes, length);
        sf_file cut = {.bytes = copy, .length = length};
        if (sf_safetensors_parse(&file, &cut, "cut", &error) != SAFER_INPUT)
            fail_msg("%zu bytes were accepted", length);
        free(copy);
    }
    sf_file_free(&whole);
}

static void requirements_are_named(void **state)
{
    (void)state;
    safer_error error;
    const char *path = temporary("require.safetensors");
    const sf_tensor *t = NULL;
    sf_safetensors *file = NULL;
    assert_ok(sf_safetensors_write(path, written, 5, NULL, 0, &error));
    assert_ok(sf_safetensors_open(&file, path, &error));
    assert_ok(sf_safetensors_require(&t, file, "matrix", SF_F32, 2, (size_t[]){2, 3}, &error));
    assert_ok(sf_safetensors_require(&t, file, "matrix", SF_F32, 2, (size_t[]){SIZE_MAX, 3}, &error));
    assert_ok(sf_safetensors_require(&t, file, "scalar", SF_F32, 0, NULL, &error));
    assert_fails(sf_safetensors_require(&t, file, "none", SF_F32, 0, NULL, &error), SAFER_INPUT,
                 "there is no tensor \"none\"");
    assert_fails(sf_safetensors_require(&t, file, "matrix", SF_F16, 2, (size_t[]){2, 3}, &error), SAFER_INPUT,
                 "tensor \"matrix\" is F32 [2, 3], not F16 [2, 3]");
    assert_fails(sf_safetensors_require(&t, file, "matrix", SF_F32, 2, (size_t[]){SIZE_MAX, 4}, &error), SAFER_INPUT,
                 "is F32 [2, 3], not F32 [*, 4]");
    assert_fails(sf_safetensors_require(&t, file, "scalar", SF_F32, 1, (size_t[]){1}, &error), SAFER_INPUT,
                 "F32 [], not F32 [1]");
    assert_non_null(strstr(error.message, path));
    sf_safetensors_free(file);

    /* A tensor that another program left unaligned can be copied, but not pointed at. */
    sf_file image = image_of("{" TENSOR("a", "U8", "[1]", "0", "1") "," TENSOR("b", "F32", "[1]", "1", "5") "}  ", 5);
    float value = 1;
    size_t offset = image.length - 4;
    memcpy(image.heap + offset, &value, 4);
    int aligned = (uintptr_t)(image.bytes + offset) % 4 == 0;
    assert_ok(sf_safetensors_parse(&file, &image, "u", &error));
    value = 0;
    assert_ok(sf_tensor_to_f32(&value, sf_safetensors_find(file, "b"), file, &error));
    assert_true(value == 1);
    assert_false(aligned);
    assert_fails(sf_safetensors_require(&t, file, "b", SF_F32, 1, (size_t[]){1}, &error), SAFER_INPUT, "not aligned");
    sf_safetensors_free(file);
}

/* --------------------------------------------------------------- numbers */

/* One value of the given type, read back as a float. */
static safer_status convert(float *out, sf_dtype type, const void *value, safer_error *error)
{
    sf_safetensors *file = NULL;
    const sf_tensor t = {.name = "t", .type = type, .rank = 1, .shape = {1}, .count = 1, .bytes = value};
    safer_status status = sf_safetensors_write(temporary("one"), &t, 1, NULL, 0, error);
    if (status == SAFER_OK) status = sf_safetensors_open(&file, temporary("one"), error);
    if (status == SAFER_OK) status = sf_tensor_to_f32(out, sf_safetensors_find(file, "t"), file, error);
    sf_safetensors_free(file);
    return status;
}

static void half_precision_is_exact(void **state)
{
    (void)state;
    static uint16_t halves[65536];
    static float out[65536];
    safer_error error;
    size_t count = 0;
    for (uint32_t h = 0; h < 65536; h++)
        if ((h >> 10 & 31) != 31) halves[count++] = (uint16_t)h; /* all finite ones */
    sf_tensor t = {.name = "h", .type = SF_F16, .rank = 1, .shape = {count}, .count = count, .bytes = halves};
    sf_safetensors *file = NULL;
    assert_ok(sf_safetensors_write(temporary("half"), &t, 1, NULL, 0, &error));
    assert_ok(sf_safetensors_open(&file, temporary("half"), &error));
    assert_ok(sf_tensor_to_f32(out, sf_safetensors_at(file, 0), file, &error));
    sf_safetensors_free(file);
    for (size_t i = 0; i < count; i++) { /* the definition */
        int exponent = halves[i] >> 10 & 31, fraction = halves[i] & 1023;
        double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
        if (halves[i] & 0x8000) value = -value;
        assert_true((double)out[i] == value && !signbit(out[i]) == !signbit(value));
    }
    static const struct {
        uint16_t bits;
        float value;
    } table[] = {{0x0001, 0x1p-24f},        {0x03ff, 0x1.ff8p-15f}, {0x0400, 0x1p-14f}, {0x3c00, 1},
                 {0x3555, 0.333251953125f}, {0x7bff, 65504},        {0xc000, -2}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        float value;
        assert_ok(convert(&value, SF_F16, &table[i].bits, &error));
        assert_true(value == table[i].value);
    }
}

static void other_precisions(void **state)
{
    (void)state;
    static const struct {
        uint16_t bits;
        float value;
    } brain[] = {{0x3f80, 1},           {0xc000, -2},    {0x0001, 0x1p-133f},
                 {0x7f7f, 0x1.fep127f}, {0x8000, -0.0f}, {0x4049, 3.140625f}};
    static const double wide[] = {0.1, -1e-50, 0x1.fffffefffffffp127};
    safer_error error;
    float value;
    for (size_t i = 0; i < sizeof brain / sizeof brain[0]; i++) {
        assert_ok(convert(&value, SF_BF16, &brain[i].bits, &error));
        assert_true(value == brain[i].value && !signbit(value) == !signbit(brain[i].value));
    }
    for (size_t i = 0; i < 3; i++) {
        assert_ok(convert(&value, SF_F64, &wide[i], &error));
        assert_true(value == (float)wide[i]);
    }
    assert_fails(convert(&value, SF_F16, &(uint16_t){0x7c00}, &error), SAFER_INPUT,
                 "value 0 of tensor \"t\" is not a finite number");
    assert_fails(convert(&value, SF_F16, &(uint16_t){0x7e00}, &error), SAFER_INPUT, "finite");
    assert_fails(convert(&value, SF_BF16, &(uint16_t){0x7fc0}, &error), SAFER_INPUT, "finite");
    assert_fails(convert(&value, SF_F32, &(float){(float)NAN}, &error), SAFER_INPUT, "finite");
    assert_fails(convert(&value, SF_F32, &(float){-(float)INFINITY}, &error), SAFER_INPUT, "finite");
    assert_fails(convert(&value, SF_F64, &(double){1e39}, &error), SAFER_INPUT, "finite");
    assert_fails(convert(&value, SF_F64, &(double){(double)NAN}, &error), SAFER_INPUT, "finite");
    assert_fails(convert(&value, SF_I32, &(int32_t){3}, &error), SAFER_INPUT, "type I32, not floating point");
    assert_fails(convert(&value, SF_U32, &(uint32_t){3}, &error), SAFER_INPUT, "type U32, not floating point");
}

/* ------------------------------------------------------------- allocation */

static safer_status write_and_read(void *context, safer_error *error)
{
    const char *path = context;
    const sf_tensor *t;
    sf_safetensors *file = NULL;
    safer_status status = sf_safetensors_write(path, written, 5, notes, 2, error);
    if (status == SAFER_OK) status = sf_safetensors_open(&file, path, error);
    if (status == SAFER_OK &&
        sf_safetensors_require(&t, file, "matrix", SF_F16, 1, (size_t[]){1}, error) == SAFER_MEMORY)
        status = SAFER_MEMORY;
    sf_safetensors_free(file);
    return status;
}

static void out_of_memory(void **state)
{
    (void)state;
    static char path[512];
    snprintf(path, sizeof path, "%s", temporary("memory.safetensors"));
    check_every_allocation(write_and_read, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(empty_files_are_fine),
        cmocka_unit_test(python_writes_this),
        cmocka_unit_test(headers_are_checked),
        cmocka_unit_test(tensors_are_checked),
        cmocka_unit_test(lengths_are_checked),
        cmocka_unit_test(any_truncation_is_refused),
        cmocka_unit_test(requirements_are_named),
        cmocka_unit_test(half_precision_is_exact),
        cmocka_unit_test(other_precisions),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
