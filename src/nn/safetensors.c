/* Model files: reading, checking and writing safetensors.
 *
 * Nothing of the header is believed before it is checked. The tensors are sorted by where
 * they begin; each must begin where the one before it ends and the last must end with the
 * file. That one walk finds gaps, overlaps, offsets outside and every truncation. */
#include "nn/safetensors.h"

#include "base/buffer.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are read in place: little-endian machines only");

enum { MAX_RANK = 8, ALIGNMENT = 64, PREFIX = 8 };
#define MAX_HEADER UINT64_C(100000000) /* as the reference implementation has it */

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [SF_F32] = {"F32", 4}, [SF_F16] = {"F16", 2}, [SF_BF16] = {"BF16", 2}, [SF_F64] = {"F64", 8},
    [SF_I64] = {"I64", 8}, [SF_I32] = {"I32", 4}, [SF_U32] = {"U32", 4},   [SF_U8] = {"U8", 1},
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

typedef struct entry {
    sf_tensor tensor;
    uint64_t begin, end; /* counted from the end of the header */
} entry;

struct sf_safetensors {
    sf_file image;
    char *name;
    json_t *header; /* owns the tensors' names and the metadata */
    entry *entries; /* in the order of the file */
    size_t count;
    uint64_t hash;
};

/* ------------------------------------------------------------- one tensor */

typedef struct where { /* for messages */
    const char *file, *tensor;
} where;

static safer_status read_dtype(sf_dtype *out, const json_t *value, where at, safer_error *error)
{
    const char *name = json_string_value(value);
    if (!name) return sf_fail(error, SAFER_INPUT, "%s: tensor \"%s\" has no \"dtype\" (a string)", at.file, at.tensor);
    for (int i = 0; i < DTYPES; i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            *out = (sf_dtype)i;
            return SAFER_OK;
        }
    return sf_fail(error, SAFER_INPUT,
                   "%s: tensor \"%s\" has the dtype \"%.40s\"; F32, F16, BF16, F64, I64, I32, U32 and U8 can be read",
                   at.file, at.tensor, name);
}

static safer_status read_shape(sf_tensor *tensor, const json_t *value, where at, safer_error *error)
{
    if (!json_is_array(value))
        return sf_fail(error, SAFER_INPUT, "%s: tensor \"%s\" has no \"shape\" (a list of numbers)", at.file,
                       at.tensor);
    tensor->rank = json_array_size(value);
    if (tensor->rank > MAX_RANK)
        return sf_fail(error, SAFER_INPUT, "%s: tensor \"%s\" has %zu dimensions; at most %d can be read", at.file,
                       at.tensor, tensor->rank, MAX_RANK);
    tensor->count = 1;
    for (size_t i = 0; i < tensor->rank; i++) {
        const json_t *item = json_array_get(value, i);
        if (!json_is_integer(item) || json_integer_value(item) < 0)
            return sf_fail(error, SAFER_INPUT,
                           "%s: tensor \"%s\": item %zu of \"shape\" is not a whole number of at least 0", at.file,
                           at.tensor, i + 1);
        tensor->shape[i] = (size_t)json_integer_value(item);
        if (__builtin_mul_overflow(tensor->count, tensor->shape[i], &tensor->count))
            return sf_fail(error, SAFER_INPUT, "%s: the shape of tensor \"%s\" is too large: its product overflows",
                           at.file, at.tensor);
    }
    return SAFER_OK;
}

static safer_status read_offsets(entry *e, const json_t *value, uint64_t data_length, where at, safer_error *error)
{
    uint64_t bytes;
    if (!json_is_array(value) || json_array_size(value) != 2 || !json_is_integer(json_array_get(value, 0)) ||
        !json_is_integer(json_array_get(value, 1)))
        return sf_fail(error, SAFER_INPUT, "%s: tensor \"%s\" has no \"data_offsets\" (two whole numbers)", at.file,
                       at.tensor);
    json_int_t begin = json_integer_value(json_array_get(value, 0)), end = json_integer_value(json_array_get(value, 1));
    if (begin < 0 || end < begin || (uint64_t)end > data_length)
        return sf_fail(error, SAFER_INPUT,
                       "%s: tensor \"%s\" lies at %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT
                       ", outside the %" PRIu64 " bytes of data (is the file truncated?)",
                       at.file, at.tensor, begin, end, data_length);
    e->begin = (uint64_t)begin;
    e->end = (uint64_t)end;
    if (__builtin_mul_overflow(e->tensor.count, dtypes[e->tensor.type].size, &bytes))
        return sf_fail(error, SAFER_INPUT, "%s: the shape of tensor \"%s\" is too large: its product overflows",
                       at.file, at.tensor);
    if (bytes != e->end - e->begin)
        return sf_fail(error, SAFER_INPUT,
                       "%s: tensor \"%s\" occupies %" PRIu64 " bytes, but %zu values of type %s are %" PRIu64, at.file,
                       at.tensor, e->end - e->begin, e->tensor.count, dtypes[e->tensor.type].name, bytes);
    return SAFER_OK;
}

static safer_status read_entry(entry *e, const json_t *value, const char *data, uint64_t data_length, where at,
                               safer_error *error)
{
    safer_status status;
    if (!json_is_object(value))
        return sf_fail(error, SAFER_INPUT, "%s: the header's \"%s\" is not an object", at.file, at.tensor);
    e->tensor.name = at.tensor;
    SF_TRY(read_dtype(&e->tensor.type, json_object_get(value, "dtype"), at, error));
    SF_TRY(read_shape(&e->tensor, json_object_get(value, "shape"), at, error));
    SF_TRY(read_offsets(e, json_object_get(value, "data_offsets"), data_length, at, error));
    e->tensor.bytes = data + e->begin;
done:
    return status;
}

static safer_status check_metadata(const json_t *value, const char *file, safer_error *error)
{
    const char *key;
    json_t *item;
    if (!json_is_object(value)) return sf_fail(error, SAFER_INPUT, "%s: \"__metadata__\" is not an object", file);
    json_object_foreach((json_t *)(uintptr_t)value, key, item) if (!json_is_string(item)) return sf_fail(
        error, SAFER_INPUT, "%s: the value of \"%s\" in \"__metadata__\" is not a string", file, key);
    return SAFER_OK;
}

/* ---------------------------------------------------------------- a file */

static int by_place(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return strcmp(x->tensor.name, y->tensor.name);
}

static safer_status check_layout(const sf_safetensors *file, uint64_t data_length, safer_error *error)
{
    uint64_t at = 0;
    for (size_t i = 0; i < file->count; at = file->entries[i++].end) {
        const entry *e = &file->entries[i];
        if (e->begin < at)
            return sf_fail(error, SAFER_INPUT, "%s: tensors \"%s\" and \"%s\" overlap", file->name,
                           file->entries[i - 1].tensor.name, e->tensor.name);
        if (e->begin > at)
            return sf_fail(error, SAFER_INPUT, "%s: %" PRIu64 " bytes before tensor \"%s\" belong to none", file->name,
                           e->begin - at, e->tensor.name);
    }
    if (at != data_length)
        return sf_fail(error, SAFER_INPUT, "%s: %" PRIu64 " bytes after the last tensor belong to none", file->name,
                       data_length - at);
    return SAFER_OK;
}

static safer_status parse_header(sf_safetensors *file, const char *bytes, size_t length, safer_error *error)
{
    safer_status status = SAFER_OK;
    json_error_t problem;
    const char *key;
    json_t *value;
    if (length < PREFIX)
        return sf_fail(error, SAFER_INPUT, "%s is no safetensors file: it has %zu bytes", file->name, length);
    uint64_t header = 0;
    for (int i = PREFIX; i-- > 0;) header = header << 8 | (unsigned char)bytes[i];
    if (header > MAX_HEADER || header > length - PREFIX)
        return sf_fail(error, SAFER_INPUT,
                       "%s is no safetensors file, or truncated: its header would have %" PRIu64
                       " bytes, the file has %zu",
                       file->name, header, length);
    if (header == 0 || bytes[PREFIX] != '{')
        return sf_fail(error, SAFER_INPUT, "%s is no safetensors file: its header does not begin with {", file->name);
    status = sf_json_parse(&file->header, bytes + PREFIX, (size_t)header, JSON_REJECT_DUPLICATES, &problem);
    if (status == SAFER_MEMORY) return sf_fail_memory(error);
    if (status != SAFER_OK)
        return sf_fail(error, SAFER_INPUT, "%s: header, byte %d: %s", file->name, problem.position, problem.text);
    const char *data = bytes + PREFIX + header;
    uint64_t data_length = length - PREFIX - header;
    file->entries = sf_calloc(json_object_size(file->header), sizeof *file->entries);
    if (!file->entries) return sf_fail_memory(error);
    json_object_foreach(file->header, key, value)
    {
        if (strcmp(key, "__metadata__") == 0)
            SF_TRY(check_metadata(value, file->name, error));
        else
            SF_TRY(
                read_entry(&file->entries[file->count++], value, data, data_length, (where){file->name, key}, error));
    }
    qsort(file->entries, file->count, sizeof *file->entries, by_place);
    SF_TRY(check_layout(file, data_length, error));
done:
    return status;
}

safer_status sf_safetensors_parse(sf_safetensors **out, sf_file *image, const char *name, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_safetensors *file = sf_calloc(1, sizeof *file);
    if (!file || !(file->name = sf_strdup(name))) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(parse_header(file, image->bytes, image->length, error));
    file->hash = sf_hash(image->bytes, image->length, 0);
    file->image = *image;
    *image = (sf_file){0};
    *out = file;
    file = NULL;
done:
    sf_safetensors_free(file);
    return status;
}

safer_status sf_safetensors_open(sf_safetensors **out, const char *path, safer_error *error)
{
    sf_file image = {0};
    safer_status status = sf_file_load(&image, path, error);
    if (status == SAFER_OK) status = sf_safetensors_parse(out, &image, path, error);
    sf_file_free(&image);
    return status;
}

void sf_safetensors_free(sf_safetensors *file)
{
    if (!file) return;
    free(file->entries);
    json_decref(file->header);
    sf_file_free(&file->image);
    free(file->name);
    free(file);
}

size_t sf_safetensors_count(const sf_safetensors *file) { return file->count; }
const sf_tensor *sf_safetensors_at(const sf_safetensors *file, size_t index) { return &file->entries[index].tensor; }
uint64_t sf_safetensors_hash(const sf_safetensors *file) { return file->hash; }
safer_status sf_safetensors_sha256(sf_digest *out, const sf_safetensors *file, safer_error *error)
{
    return sf_sha256(out, file->image.bytes, file->image.length, error);
}

const char *sf_safetensors_name(const sf_safetensors *file) { return file->name; }

const sf_tensor *sf_safetensors_find(const sf_safetensors *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->entries[i].tensor.name, name) == 0) return &file->entries[i].tensor;
    return NULL;
}

const char *sf_safetensors_metadata(const sf_safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

/* ------------------------------------------------------------ using tensors */

static int shape_fits(const sf_tensor *tensor, size_t rank, const size_t *shape)
{
    if (tensor->rank != rank) return 0;
    for (size_t i = 0; i < rank; i++)
        if (shape[i] != SIZE_MAX && shape[i] != tensor->shape[i]) return 0;
    return 1;
}

/* "F32 [3, *]" */
static int describe(sf_buffer *out, sf_dtype type, size_t rank, const size_t *shape)
{
    if (sf_buffer_format(out, "%s [", dtypes[type].name)) return -1;
    for (size_t i = 0; i < rank; i++) {
        if (i && sf_buffer_add_string(out, ", ")) return -1;
        if (shape[i] == SIZE_MAX ? sf_buffer_add_byte(out, '*') : sf_buffer_format(out, "%zu", shape[i])) return -1;
    }
    return sf_buffer_add_byte(out, ']');
}

safer_status sf_safetensors_require(const sf_tensor **out, const sf_safetensors *file, const char *name, sf_dtype type,
                                    size_t rank, const size_t *shape, safer_error *error)
{
    const sf_tensor *tensor = sf_safetensors_find(file, name);
    if (!tensor) return sf_fail(error, SAFER_INPUT, "%s: there is no tensor \"%s\"", file->name, name);
    if (tensor->type != type || !shape_fits(tensor, rank, shape)) {
        sf_buffer found = {0}, wanted = {0};
        safer_status status = describe(&found, tensor->type, tensor->rank, tensor->shape) ||
                                      describe(&wanted, type, rank, shape)
                                  ? sf_fail_memory(error)
                                  : sf_fail(error, SAFER_INPUT, "%s: tensor \"%s\" is %s, not %s", file->name, name,
                                            found.bytes, wanted.bytes);
        sf_buffer_free(&found);
        sf_buffer_free(&wanted);
        return status;
    }
    if ((uintptr_t)tensor->bytes % dtypes[type].size)
        return sf_fail(error, SAFER_INPUT,
                       "%s: tensor \"%s\" is not aligned to its %zu-byte elements; write the file again", file->name,
                       name, dtypes[type].size);
    *out = tensor;
    return SAFER_OK;
}

/* Half precision has 1 sign, 5 exponent (bias 15) and 10 fraction bits. */
static float from_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023, bits;
    float value;
    if (exponent == 0) { /* zero, or fraction * 2^-24: exact in single precision */
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    bits = sign | (exponent == 31 ? 255u : exponent + 127 - 15) << 23 | fraction << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float value_at(const sf_tensor *tensor, size_t index)
{
    const char *bytes = tensor->bytes;
    uint16_t half;
    uint32_t bits;
    float single = 0;
    double wide;
    switch (tensor->type) {
    case SF_F32: memcpy(&single, bytes + 4 * index, 4); break;
    case SF_F16:
        memcpy(&half, bytes + 2 * index, 2);
        single = from_f16(half);
        break;
    case SF_BF16: /* the upper half of a single */
        memcpy(&half, bytes + 2 * index, 2);
        bits = (uint32_t)half << 16;
        memcpy(&single, &bits, 4);
        break;
    case SF_F64: /* beyond single precision is an infinity, which the caller refuses */
        memcpy(&wide, bytes + 8 * index, 8);
        single = fabs(wide) < 0x1.ffffffp127 ? (float)wide : (float)INFINITY;
        break;
    case SF_I64:
    case SF_I32:
    case SF_U32:
    case SF_U8: break;
    }
    return single;
}

/* Where the value lies that is the index-th row after row. */
static size_t place_of(const sf_tensor *tensor, size_t index)
{
    size_t place = 0;
    for (size_t i = tensor->rank; i-- > 0; index /= tensor->shape[i])
        place += index % tensor->shape[i] * tensor->strides[i];
    return place;
}

safer_status sf_tensor_floats(float *out, const sf_tensor *tensor, const char *file, safer_error *error)
{
    if (tensor->type != SF_F32 && tensor->type != SF_F16 && tensor->type != SF_BF16 && tensor->type != SF_F64)
        return sf_fail(error, SAFER_INPUT, "%s: tensor \"%s\" is of type %s, not floating point", file, tensor->name,
                       dtypes[tensor->type].name);
    for (size_t i = 0; i < tensor->count; i++) {
        out[i] = value_at(tensor, tensor->strided ? place_of(tensor, i) : i);
        if (!isfinite(out[i]))
            return sf_fail(error, SAFER_INPUT, "%s: value %zu of tensor \"%s\" is not a finite number", file, i,
                           tensor->name);
    }
    return SAFER_OK;
}

safer_status sf_tensor_to_f32(float *out, const sf_tensor *tensor, const sf_safetensors *file, safer_error *error)
{
    return sf_tensor_floats(out, tensor, file->name, error);
}

/* ---------------------------------------------------------------- writing */

static json_t *tensor_json(const sf_tensor *tensor, uint64_t begin, uint64_t end)
{
    json_t *shape = json_array();
    if (!shape) return NULL;
    for (size_t i = 0; i < tensor->rank; i++)
        if (json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i]))) {
            json_decref(shape);
            return NULL;
        }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtypes[tensor->type].name, "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)end);
}

/* The header with its length before it, padded with spaces. -1 without memory. */
static int write_header(sf_buffer *out, const json_t *header)
{
    if (sf_buffer_add(out, "        ", PREFIX) || sf_json_add(out, header)) return -1;
    while (out->length % ALIGNMENT)
        if (sf_buffer_add_byte(out, ' ')) return -1;
    uint64_t length = out->length - PREFIX;
    for (int i = 0; i < PREFIX; i++) out->bytes[i] = (char)(unsigned char)(length >> 8 * i);
    return 0;
}

safer_status sf_safetensors_write(const char *path, const sf_tensor *tensors, size_t count, const sf_metadata *metadata,
                                  size_t metadata_count, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_buffer bytes = {0};
    uint64_t at = 0;
    json_t *header = json_object(), *strings = json_object();
    int failed = !header || !strings;
    for (size_t i = 0; i < metadata_count && !failed; i++)
        failed = json_object_set_new(strings, metadata[i].key, json_string(metadata[i].value));
    failed = failed || (metadata_count && json_object_set(header, "__metadata__", strings));
    for (size_t size = 8; size && !failed; size /= 2)
        for (size_t i = 0; i < count && !failed; i++) {
            size_t length = tensors[i].count * dtypes[tensors[i].type].size;
            if (dtypes[tensors[i].type].size != size) continue;
            assert(!json_object_get(header, tensors[i].name));
            failed = json_object_set_new(header, tensors[i].name, tensor_json(&tensors[i], at, at + length));
            at += length;
        }
    failed = failed || write_header(&bytes, header) || sf_buffer_reserve(&bytes, at);
    for (size_t size = 8; size && !failed; size /= 2)
        for (size_t i = 0; i < count && !failed; i++)
            if (dtypes[tensors[i].type].size == size)
                failed = sf_buffer_add(&bytes, tensors[i].bytes, tensors[i].count * size);
    status = failed ? sf_fail_memory(error) : sf_file_write(path, bytes.bytes, bytes.length, error);
    json_decref(header);
    json_decref(strings);
    sf_buffer_free(&bytes);
    return status;
}
