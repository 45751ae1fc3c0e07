/* Weights as PyTorch writes them: the dictionary of a pickle becomes tensors in a zip file's bytes. The form is in
 * torchfile.h. No part of the tree that the pickle became is visited by recursion, so it may refer to itself. */
#include "nn/torchfile.h"

#include "base/memory.h"
#include "base/zip.h"
#include "nn/pickle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_RANK = 8,
    MAX_NAME = 1000,
    SHARED = 16 /* times its bytes: so much may all views of a file claim together */
};
#define MAX_PICKLE ((size_t)64 << 20) /* a tensor takes about 200 bytes */

/* What the pickle may name. Storages are the first. */
enum {
    FLOAT,
    HALF,
    BFLOAT16,
    DOUBLE,
    LONG,
    INT,
    BYTE,
    BOOL,
    STORAGES,
    TENSOR = STORAGES,
    PARAMETER,
    ORDERED_DICT,
    NAMES
};

static const sf_pickle_name names[NAMES] = {
    [FLOAT] = {"torch", "FloatStorage", 0},
    [HALF] = {"torch", "HalfStorage", 0},
    [BFLOAT16] = {"torch", "BFloat16Storage", 0},
    [DOUBLE] = {"torch", "DoubleStorage", 0},
    [LONG] = {"torch", "LongStorage", 0},
    [INT] = {"torch", "IntStorage", 0},
    [BYTE] = {"torch", "ByteStorage", 0},
    [BOOL] = {"torch", "BoolStorage", 0},
    [TENSOR] = {"torch._utils", "_rebuild_tensor_v2", 0},
    [PARAMETER] = {"torch._utils", "_rebuild_parameter", 0},
    [ORDERED_DICT] = {"collections", "OrderedDict", 1},
};

static const struct {
    sf_dtype type;
    size_t size;
} storages[STORAGES] = {
    [FLOAT] = {SF_F32, 4}, [HALF] = {SF_F16, 2}, [BFLOAT16] = {SF_BF16, 2}, [DOUBLE] = {SF_F64, 8},
    [LONG] = {SF_I64, 8},  [INT] = {SF_I32, 4},  [BYTE] = {SF_U8, 1},       [BOOL] = {SF_U8, 1},
};

struct sf_torchfile {
    sf_file image;
    char *name;
    sf_tensor *tensors;
    char **tensor_names; /* owned */
    size_t count, room;
};

/* A file being read. */
typedef struct reader {
    sf_torchfile *file;
    sf_zip zip;
    sf_pickle pickle;
    sf_buffer where, entry; /* for messages; the name of an entry, up to `folder` the same */
    size_t folder;
    uint64_t claimed; /* bytes, by all tensors */
} reader;

static safer_status fail_tensor(const reader *r, const char *tensor, const char *what, safer_error *error)
{
    return sf_fail(error, SAFER_INPUT, "%s: tensor \"%.200s\" %s", r->file->name, tensor, what);
}

/* ------------------------------------------------------------------- tensors */

static int is_text(const sf_pickle_value *value, const char *text)
{
    return value->kind == SF_PICKLE_STRING && value->string.length == strlen(text) &&
           memcmp(value->string.bytes, text, value->string.length) == 0;
}

/* The values of a storage: in the zip file, as many as the pickle says. */
static safer_status read_storage(sf_span *out, int *kind, uint64_t *count, reader *r, const sf_pickle_value *value,
                                 const char *tensor, safer_error *error)
{
    const sf_pickle_value *id[1], *part[5];
    uint32_t cell = value->first;
    if (value->kind != SF_PICKLE_PERSISTENT) return fail_tensor(r, tensor, "has no storage", error);
    id[0] = sf_pickle_next(&r->pickle, &cell);
    if (sf_pickle_items(part, 5, &r->pickle, id[0]) || !is_text(part[0], "storage") ||
        part[1]->kind != SF_PICKLE_NAME || part[1]->whole >= STORAGES || part[2]->kind != SF_PICKLE_STRING ||
        part[4]->kind != SF_PICKLE_WHOLE || part[4]->whole < 0)
        return fail_tensor(r, tensor, "has a storage of a form that is not read", error);
    *kind = (int)part[1]->whole;
    *count = (uint64_t)part[4]->whole;
    r->entry.length = r->folder;
    if (sf_buffer_add_string(&r->entry, "data/") ||
        sf_buffer_add(&r->entry, part[2]->string.bytes, part[2]->string.length))
        return sf_fail_memory(error);
    const sf_zip_entry *entry = sf_zip_find(&r->zip, r->entry.bytes, r->entry.length);
    if (!entry) return fail_tensor(r, tensor, "lies in a storage that the file does not have", error);
    if (*count > UINT64_MAX / 8 || entry->data.length != *count * storages[*kind].size)
        return sf_fail(error, SAFER_INPUT,
                       "%s: the storage of tensor \"%.200s\" has %zu bytes, not %" PRIu64 " values of %zu",
                       r->file->name, tensor, entry->data.length, *count, storages[*kind].size);
    *out = entry->data;
    return SAFER_OK;
}

/* A tuple of whole numbers, none negative. Returns how many, or -1. */
static int read_numbers(size_t out[MAX_RANK], const reader *r, const sf_pickle_value *tuple)
{
    const sf_pickle_value *item[MAX_RANK];
    if (tuple->kind != SF_PICKLE_TUPLE || tuple->count > MAX_RANK) return -1;
    (void)sf_pickle_items(item, tuple->count, &r->pickle, tuple);
    for (size_t i = 0; i < tuple->count; i++) {
        if (item[i]->kind != SF_PICKLE_WHOLE || item[i]->whole < 0) return -1;
        out[i] = (size_t)item[i]->whole;
    }
    return (int)tuple->count;
}

/* Whether values lie row after row. Strides of dimensions of one, and of empty tensors, do not matter. */
static int is_contiguous(const sf_tensor *t)
{
    size_t expected = 1;
    for (size_t i = t->rank; i-- > 0; expected *= t->shape[i])
        if (t->shape[i] != 1 && t->strides[i] != expected) return 0;
    return 1;
}

/* The count of values; -1 unless all of them lie within a storage of `room` values, and are not more than these. */
static int measure(sf_tensor *t, uint64_t offset, uint64_t room)
{
    uint64_t last = offset, way;
    t->count = 1;
    for (size_t i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(t->count, t->shape[i], &t->count)) return -1;
    if (t->count == 0) return offset <= room ? 0 : -1;
    for (size_t i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow((uint64_t)t->shape[i] - 1, (uint64_t)t->strides[i], &way) ||
            __builtin_add_overflow(last, way, &last))
            return -1;
    return last < room && t->count <= room ? 0 : -1;
}

/* The call that makes a tensor, if need be inside the one that makes a parameter of it. */
static const sf_pickle_value *arguments_of(const reader *r, const sf_pickle_value *value)
{
    const sf_pickle_value *part[3];
    uint32_t cell = value->first;
    if (value->kind == SF_PICKLE_CALL && value->whole == PARAMETER) {
        if (sf_pickle_items(part, 3, &r->pickle, sf_pickle_next(&r->pickle, &cell))) return NULL;
        value = part[0];
        cell = value->first;
    }
    return value->kind == SF_PICKLE_CALL && value->whole == TENSOR ? sf_pickle_next(&r->pickle, &cell) : NULL;
}

static safer_status read_tensor(sf_tensor *t, reader *r, const sf_pickle_value *value, const char *tensor,
                                safer_error *error)
{
    safer_status status;
    const sf_pickle_value *arguments = arguments_of(r, value), *part[7];
    sf_span data = {0};
    uint64_t room = 0, bytes;
    int kind = 0, rank;
    if (!arguments)
        return fail_tensor(r, tensor, "is none: torch.save(model.state_dict(), FILE) writes what is read", error);
    const size_t count = arguments->count == 7 ? 7 : 6; /* the last may say that the values are conjugated */
    if (sf_pickle_items(part, count, &r->pickle, arguments) || part[1]->kind != SF_PICKLE_WHOLE || part[1]->whole < 0 ||
        (count == 7 && part[6]->kind != SF_PICKLE_NONE && !(part[6]->kind == SF_PICKLE_DICT && part[6]->count == 0)))
        return fail_tensor(r, tensor, "is of a form that is not read", error);
    SF_TRY(read_storage(&data, &kind, &room, r, part[0], tensor, error));
    if ((rank = read_numbers(t->shape, r, part[2])) < 0 || read_numbers(t->strides, r, part[3]) != rank)
        return fail_tensor(r, tensor, "has a size or strides that are not read: up to 8 numbers, none negative", error);
    t->name = tensor;
    t->type = storages[kind].type;
    t->rank = (size_t)rank;
    if (measure(t, (uint64_t)part[1]->whole, room))
        return fail_tensor(r, tensor, "lies outside its storage, or has more values than it", error);
    t->strided = t->count && !is_contiguous(t);
    t->bytes = data.bytes + (t->count ? (size_t)part[1]->whole * storages[kind].size : 0);
    if (__builtin_mul_overflow((uint64_t)t->count, (uint64_t)storages[kind].size, &bytes) ||
        __builtin_add_overflow(r->claimed, bytes, &r->claimed) || r->claimed / SHARED > r->file->image.length)
        return fail_tensor(r, tensor, "and those before it are more than the file's bytes, many times over: not read",
                           error);
done:
    return status;
}

/* -------------------------------------------------------------------- a file */

static safer_status read_name(char **out, const reader *r, const sf_pickle_value *key, safer_error *error)
{
    const sf_span s = key->string;
    int good = key->kind == SF_PICKLE_STRING && s.length && s.length <= MAX_NAME;
    for (size_t i = 0; good && i < s.length; i++) good = (unsigned char)s.bytes[i] >= ' ' && s.bytes[i] != 127;
    if (!good)
        return sf_fail(error, SAFER_INPUT, "%s: a tensor's name is no text of 1 to %d bytes", r->file->name, MAX_NAME);
    return (*out = sf_strndup(s.bytes, s.length)) ? SAFER_OK : sf_fail_memory(error);
}

static int by_name(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

static safer_status check_names(const sf_torchfile *file, safer_error *error)
{
    safer_status status = SAFER_OK;
    const char **sorted = sf_calloc(file->count, sizeof *sorted);
    if (!sorted) return sf_fail_memory(error);
    for (size_t i = 0; i < file->count; i++) sorted[i] = file->tensor_names[i];
    qsort(sorted, file->count, sizeof *sorted, by_name);
    for (size_t i = 1; i < file->count && status == SAFER_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = sf_fail(error, SAFER_INPUT, "%s: tensor \"%.200s\" is there twice", file->name, sorted[i]);
    free(sorted);
    return status;
}

static safer_status read_tensors(reader *r, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_torchfile *f = r->file;
    const sf_pickle_value *root = sf_pickle_root(&r->pickle);
    if (root->kind != SF_PICKLE_DICT)
        return sf_fail(error, SAFER_INPUT,
                       "%s holds no dictionary of tensors: torch.save(model.state_dict(), FILE) writes what is read",
                       f->name);
    f->tensors = sf_calloc(root->count / 2, sizeof *f->tensors);
    f->tensor_names = sf_calloc(root->count / 2, sizeof *f->tensor_names);
    if (!f->tensors || !f->tensor_names) return sf_fail_memory(error);
    f->room = root->count / 2;
    for (uint32_t cell = root->first; cell != SF_PICKLE_END; f->count++) {
        const sf_pickle_value *key = sf_pickle_next(&r->pickle, &cell), *value = sf_pickle_next(&r->pickle, &cell);
        SF_TRY(read_name(&f->tensor_names[f->count], r, key, error));
        SF_TRY(read_tensor(&f->tensors[f->count], r, value, f->tensor_names[f->count], error));
    }
    SF_TRY(check_names(f, error));
done:
    return status;
}

/* The pickle, and the folder that all entries lie in. */
static const sf_zip_entry *find_pickle(const reader *r)
{
    static const char ending[] = "/data.pkl";
    const size_t length = sizeof ending - 1;
    for (size_t i = 0; i < r->zip.count; i++) {
        const sf_span name = r->zip.entries[i].name;
        const char *slash = name.length ? memchr(name.bytes, '/', name.length) : NULL;
        if (slash && name.length - (size_t)(slash - name.bytes) == length && memcmp(slash, ending, length) == 0)
            return &r->zip.entries[i];
    }
    return NULL;
}

static safer_status check_byteorder(reader *r, safer_error *error)
{
    r->entry.length = r->folder;
    if (sf_buffer_add_string(&r->entry, "byteorder")) return sf_fail_memory(error);
    const sf_zip_entry *order = sf_zip_find(&r->zip, r->entry.bytes, r->entry.length);
    if (order && !(order->data.length == 6 && memcmp(order->data.bytes, "little", 6) == 0))
        return sf_fail(error, SAFER_INPUT, "%s: the values are not little-endian: not read", r->file->name);
    return SAFER_OK;
}

/* Why this is no file of the present form. */
static safer_status fail_form(const sf_torchfile *f, const char *bytes, size_t length, safer_error *error)
{
    static const char before[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
    if (length >= sizeof before - 1 && memcmp(bytes, before, sizeof before - 1) == 0)
        return sf_fail(
            error, SAFER_INPUT,
            "%s has the form that PyTorch wrote before version 1.6, which is not read; convert it in Python: "
            "torch.save(torch.load(FILE, weights_only=True), FILE)",
            f->name);
    return sf_fail(error, SAFER_INPUT, "%s is no file of torch.save: it does not begin as a zip file", f->name);
}

static safer_status parse(sf_torchfile *f, safer_error *error)
{
    safer_status status;
    reader r = {.file = f};
    const char *bytes = f->image.bytes;
    if (!sf_is_zip(bytes, f->image.length)) return fail_form(f, bytes, f->image.length, error);
    SF_TRY(sf_zip_open(&r.zip, bytes, f->image.length, f->name, error));
    const sf_zip_entry *pickle = find_pickle(&r);
    if (!pickle || pickle->data.length > MAX_PICKLE) {
        status = sf_fail(error, SAFER_INPUT,
                         pickle ? "%s: data.pkl is longer than %zu bytes: not read"
                                : "%s is no file of torch.save: there is no FOLDER/data.pkl in it",
                         f->name, MAX_PICKLE);
        goto done;
    }
    if (sf_buffer_add(&r.entry, pickle->name.bytes, pickle->name.length - strlen("data.pkl")) ||
        sf_buffer_format(&r.where, "%s: data.pkl", f->name)) {
        status = sf_fail_memory(error);
        goto done;
    }
    r.folder = r.entry.length;
    SF_TRY(check_byteorder(&r, error));
    SF_TRY(sf_pickle_parse(&r.pickle, pickle->data.bytes, pickle->data.length, names, NAMES, r.where.bytes, error));
    SF_TRY(read_tensors(&r, error));
done:
    sf_pickle_free(&r.pickle);
    sf_zip_free(&r.zip);
    sf_buffer_free(&r.where);
    sf_buffer_free(&r.entry);
    return status;
}

safer_status sf_torchfile_parse(sf_torchfile **out, sf_file *image, const char *name, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_torchfile *file = sf_calloc(1, sizeof *file);
    if (!file || !(file->name = sf_strdup(name))) {
        status = sf_fail_memory(error);
        goto done;
    }
    file->image = *image;
    status = parse(file, error);
    if (status != SAFER_OK) {
        file->image = (sf_file){0}; /* stays the caller's */
        goto done;
    }
    *image = (sf_file){0};
    *out = file;
    file = NULL;
done:
    sf_torchfile_free(file);
    return status;
}

void sf_torchfile_free(sf_torchfile *file)
{
    if (!file) return;
    for (size_t i = 0; i < file->room; i++) free(file->tensor_names[i]);
    free(file->tensor_names);
    free(file->tensors);
    sf_file_free(&file->image);
    free(file->name);
    free(file);
}

size_t sf_torchfile_count(const sf_torchfile *file) { return file->count; }
const sf_tensor *sf_torchfile_at(const sf_torchfile *file, size_t index) { return &file->tensors[index]; }
const char *sf_torchfile_name(const sf_torchfile *file) { return file->name; }
