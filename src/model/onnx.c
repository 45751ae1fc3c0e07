/* ONNX files: the protobuf messages, and the names of the weights.
 *
 * Protobuf: a message is a row of fields, each a key (number << 3 | wire type) as a varint
 * and a value: a varint (0), 8 bytes (1), a length and so many bytes (2), or 4 bytes (5).
 * Fields may come in any order; unknown ones are passed over. What is read:
 *
 *   ModelProto      7 graph
 *   GraphProto      1 node, 5 initializer
 *   NodeProto       1 input, 2 output, 4 op_type, 5 attribute, 7 domain
 *   AttributeProto  1 name, 2 f, 3 i
 *   TensorProto     1 dims, 2 data_type, 4 float_data, 8 name, 9 raw_data, 10 double_data,
 *                   14 data_location
 *
 * Names of values become numbers (base/words.h), so that the graph is followed without
 * comparing strings. */
#include "model/onnx.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/words.h"

#include <string.h>

enum { MAX_RANK = 8, INPUTS = 3 };

typedef enum operation { OTHER, ADD, MATMUL, GEMM, IDENTITY } operation;

typedef struct node {
    operation operation;
    uint32_t inputs[INPUTS]; /* SF_NONE beyond input_count */
    size_t input_count;
    uint32_t output;             /* the first */
    int transposed_right, plain; /* Gemm: transB; nothing else is out of the ordinary */
} node;

typedef struct initialiser {
    sf_tensor tensor; /* its name is set at the end: the pool of names moves while it grows */
    uint32_t value;
    int factor; /* the right side of a product as it is: (inputs, outputs) */
} initialiser;

struct sf_onnx {
    sf_file image;
    char *name;
    sf_words values;
    node *nodes;
    initialiser *initialisers;
    sf_onnx_weight *weights;
    void **gathered; /* values that did not lie together in the file */
    size_t node_count, node_capacity, initialiser_count, initialiser_capacity, weight_count, weight_capacity,
        gathered_count, gathered_capacity;
};

/* ------------------------------------------------------------------ protobuf */

typedef struct message {
    const unsigned char *at, *end;
} message;

typedef struct field {
    uint64_t number;
    unsigned wire;
    uint64_t varint; /* wire 0 */
    message bytes;   /* wires 1, 2, 5 */
} field;

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static int read_varint(uint64_t *out, message *m)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (m->at == m->end) return -1;
        unsigned char byte = *m->at++;
        if (shift == 63 && byte > 1) return -1;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return 0;
    }
    return -1;
}

/* The next field: 1, 0 at the end, -1 when the message is damaged. */
static int read_field(field *f, message *m)
{
    uint64_t key, length = 0;
    if (m->at == m->end) return 0;
    if (read_varint(&key, m)) return -1;
    *f = (field){.number = key >> 3, .wire = (unsigned)(key & 7)};
    if (f->number == 0 || f->number >= 1u << 29) return -1;
    switch (f->wire) {
    case VARINT: return read_varint(&f->varint, m) ? -1 : 1;
    case FIXED64: length = 8; break;
    case FIXED32: length = 4; break;
    case BYTES:
        if (read_varint(&length, m)) return -1;
        break;
    default: return -1; /* groups, which ONNX does not have */
    }
    if (length > (size_t)(m->end - m->at)) return -1;
    f->bytes = (message){m->at, m->at + length};
    m->at += length;
    return 1;
}

static size_t size_of(message m) { return (size_t)(m.end - m.at); }

static int is_text(message m, const char *text)
{
    size_t length = strlen(text);
    return size_of(m) == length && (length == 0 || memcmp(m.at, text, length) == 0);
}

static safer_status fail_damaged(const sf_onnx *onnx, message m, safer_error *error)
{
    return sf_fail(error, SAFER_INPUT, "%s is no ONNX file, or damaged, at byte %zu", onnx->name,
                   (size_t)((const char *)m.at - onnx->image.bytes));
}

/* Runs the statement for every field f of the message m, which it consumes. */
#define FOR_FIELDS(f, m) \
    for (int got_; (got_ = read_field(&(f), &(m))) != 0;) \
        if (got_ < 0) \
            return fail_damaged(onnx, (m), error); \
        else

static safer_status number_value(uint32_t *out, sf_onnx *onnx, message name, safer_error *error)
{
    return sf_words_add(&onnx->values, name.at ? (const char *)name.at : "", size_of(name), out, error);
}

/* --------------------------------------------------------------------- nodes */

static safer_status read_attribute(node *n, const sf_onnx *onnx, message m, safer_error *error)
{
    field f;
    message name = {0};
    uint64_t whole = 0;
    float real = 1;
    FOR_FIELDS(f, m)
    {
        if (f.number == 1 && f.wire == BYTES) name = f.bytes;
        if (f.number == 2 && f.wire == FIXED32) memcpy(&real, f.bytes.at, 4);
        if (f.number == 3 && f.wire == VARINT) whole = f.varint;
    }
    if (is_text(name, "transB")) n->transposed_right = whole != 0;
    if (is_text(name, "transA") && whole != 0) n->plain = 0;
    if ((is_text(name, "alpha") || is_text(name, "beta")) && !(real == 1)) n->plain = 0;
    return SAFER_OK;
}

static operation find_operation(message type)
{
    static const char *const names[] = {[ADD] = "Add", [MATMUL] = "MatMul", [GEMM] = "Gemm", [IDENTITY] = "Identity"};
    for (operation o = ADD; o <= IDENTITY; o++)
        if (is_text(type, names[o])) return o;
    return OTHER;
}

/* Quantised weights are another function: rounding them back would not restore it. */
static safer_status check_operation(const sf_onnx *onnx, message type, safer_error *error)
{
    static const char *const names[] = {"DynamicQuantizeLinear", "DequantizeLinear", "MatMulInteger", "QLinearMatMul",
                                        "MatMulNBits"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_text(type, names[i]))
            return sf_fail(error, SAFER_INPUT,
                           "%s: the model is quantised (it has the operation %s); export it in floating point",
                           onnx->name, names[i]);
    return SAFER_OK;
}

static safer_status read_node(sf_onnx *onnx, message m, safer_error *error)
{
    safer_status status;
    field f;
    node n = {.inputs = {SF_NONE, SF_NONE, SF_NONE}, .output = SF_NONE, .plain = 1};
    message type = {0}, domain = {0}, output = {0}, inputs[INPUTS] = {{0}};
    size_t outputs = 0;
    FOR_FIELDS(f, m)
    {
        if (f.wire != BYTES) continue;
        if (f.number == 1 && n.input_count++ < INPUTS) inputs[n.input_count - 1] = f.bytes;
        if (f.number == 2 && outputs++ == 0) output = f.bytes;
        if (f.number == 4) type = f.bytes;
        if (f.number == 7) domain = f.bytes;
        if (f.number == 5) SF_TRY(read_attribute(&n, onnx, f.bytes, error));
    }
    SF_TRY(check_operation(onnx, type, error));
    n.operation = find_operation(type);
    if (n.operation == OTHER || outputs == 0 || !(is_text(domain, "") || is_text(domain, "ai.onnx"))) return SAFER_OK;
    for (size_t i = 0; i < n.input_count && i < INPUTS; i++) SF_TRY(number_value(&n.inputs[i], onnx, inputs[i], error));
    SF_TRY(number_value(&n.output, onnx, output, error));
    if (sf_grow(&onnx->nodes, &onnx->node_capacity, onnx->node_count + 1, sizeof *onnx->nodes))
        return sf_fail_memory(error);
    onnx->nodes[onnx->node_count++] = n;
done:
    return status;
}

/* -------------------------------------------------------------- initialisers */

/* The types that become floats, and where else than in raw_data their values may lie. */
static const struct {
    uint64_t code, field;
    sf_dtype type;
    size_t size;
} types[] = {{1, 4, SF_F32, 4}, {10, 0, SF_F16, 2}, {11, 10, SF_F64, 8}, {16, 0, SF_BF16, 2}};

/* What TensorProto says, before anything is believed. */
typedef struct draft {
    message fields; /* all of it */
    message name, raw;
    int has_raw;
    uint64_t type, location;
    size_t rank, shape[MAX_RANK];
} draft;

static safer_status add_dimension(draft *d, const sf_onnx *onnx, uint64_t size, safer_error *error)
{
    if (d->rank == MAX_RANK || size > INT64_MAX)
        return sf_fail(error, SAFER_INPUT, "%s: an initialiser has more than %d dimensions, or a negative one",
                       onnx->name, MAX_RANK);
    d->shape[d->rank++] = (size_t)size;
    return SAFER_OK;
}

static safer_status read_dimensions(draft *d, const sf_onnx *onnx, message m, safer_error *error)
{
    safer_status status = SAFER_OK;
    while (m.at < m.end && status == SAFER_OK) {
        uint64_t size;
        status = read_varint(&size, &m) ? fail_damaged(onnx, m, error) : add_dimension(d, onnx, size, error);
    }
    return status;
}

static safer_status read_draft(draft *d, const sf_onnx *onnx, message m, safer_error *error)
{
    safer_status status = SAFER_OK;
    field f;
    d->fields = m;
    FOR_FIELDS(f, m)
    {
        if (f.number == 1 && f.wire == VARINT) SF_TRY(add_dimension(d, onnx, f.varint, error));
        if (f.number == 1 && f.wire == BYTES) SF_TRY(read_dimensions(d, onnx, f.bytes, error));
        if (f.number == 2 && f.wire == VARINT) d->type = f.varint;
        if (f.number == 8 && f.wire == BYTES) d->name = f.bytes;
        if (f.number == 9 && f.wire == BYTES) {
            d->raw = f.bytes;
            d->has_raw = 1;
        }
        if (f.number == 14 && f.wire == VARINT) d->location = f.varint;
    }
done:
    return status;
}

/* The values of a repeated field: as they lie in the file, or, when they do not lie
 * together (several packed pieces, or one field a value), copied. */
static safer_status gather(message *out, sf_onnx *onnx, message m, uint64_t number, safer_error *error)
{
    field f;
    message again = m;
    size_t pieces = 0, total = 0;
    FOR_FIELDS(f, m)
    if (f.number == number && f.wire != VARINT) {
        *out = f.bytes;
        total += size_of(f.bytes);
        pieces++;
    }
    if (pieces < 2) return SAFER_OK;
    if (sf_grow(&onnx->gathered, &onnx->gathered_capacity, onnx->gathered_count + 1, sizeof *onnx->gathered))
        return sf_fail_memory(error);
    unsigned char *copy = sf_alloc(total, 1);
    if (!copy) return sf_fail_memory(error);
    onnx->gathered[onnx->gathered_count++] = copy;
    *out = (message){copy, copy + total};
    FOR_FIELDS(f, again)
    if (f.number == number && f.wire != VARINT) {
        if (size_of(f.bytes)) memcpy(copy, f.bytes.at, size_of(f.bytes));
        copy += size_of(f.bytes);
    }
    return SAFER_OK;
}

static safer_status add_initialiser(sf_onnx *onnx, const draft *d, size_t kind, safer_error *error)
{
    safer_status status = SAFER_OK;
    initialiser new = {.tensor = {.type = types[kind].type, .rank = d->rank, .count = 1}};
    sf_tensor *t = &new.tensor;
    message values = d->raw;
    size_t bytes;
    SF_TRY(number_value(&new.value, onnx, d->name, error));
    const char *name = sf_words_string(&onnx->values, new.value);
    if (d->location != 0)
        return sf_fail(error, SAFER_INPUT,
                       "%s: the values of initialiser \"%.200s\" are in another file; export the model as one file",
                       onnx->name, name);
    if (!d->has_raw) SF_TRY(gather(&values, onnx, d->fields, types[kind].field, error));
    for (size_t i = 0; i < d->rank; i++) {
        t->shape[i] = d->shape[i];
        if (__builtin_mul_overflow(t->count, t->shape[i], &t->count))
            return sf_fail(error, SAFER_INPUT, "%s: the shape of initialiser \"%.200s\" is too large", onnx->name,
                           name);
    }
    if (__builtin_mul_overflow(t->count, types[kind].size, &bytes) || bytes != size_of(values))
        return sf_fail(error, SAFER_INPUT, "%s: initialiser \"%.200s\" has %zu bytes, but %zu values", onnx->name, name,
                       size_of(values), t->count);
    t->bytes = values.at;
    if (sf_grow(&onnx->initialisers, &onnx->initialiser_capacity, onnx->initialiser_count + 1,
                sizeof *onnx->initialisers))
        return sf_fail_memory(error);
    onnx->initialisers[onnx->initialiser_count++] = new;
done:
    return status;
}

static safer_status read_initialiser(sf_onnx *onnx, message m, safer_error *error)
{
    draft d = {0};
    safer_status status = read_draft(&d, onnx, m, error);
    for (size_t i = 0; i < sizeof types / sizeof *types && status == SAFER_OK; i++)
        if (types[i].code == d.type) return add_initialiser(onnx, &d, i, error);
    return status; /* of whole numbers: shapes, positions */
}

/* ------------------------------------------------------------------- weights */

static safer_status add_weight(sf_onnx *onnx, const initialiser *i, const char *name, int transposed,
                               safer_error *error)
{
    if (sf_grow(&onnx->weights, &onnx->weight_capacity, onnx->weight_count + 1, sizeof *onnx->weights))
        return sf_fail_memory(error);
    onnx->weights[onnx->weight_count++] = (sf_onnx_weight){i->tensor, name, transposed};
    return SAFER_OK;
}

/* What the graph says of its values, by their numbers. */
typedef struct graph {
    uint32_t *initialiser; /* the initialiser that a value is, or SF_NONE */
    uint32_t *bias;        /* the value ("LAYER.bias") added to a value, or SF_NONE */
    uint32_t *weight;      /* "LAYER.weight" of such a bias, or SF_NONE: a number in onnx->values */
    uint32_t *named;       /* the initialiser that has got this name, or SF_NONE; for these numbers too */
} graph;

static initialiser *initialiser_of(const sf_onnx *onnx, const graph *g, uint32_t value)
{
    uint32_t index = value == SF_NONE ? SF_NONE : g->initialiser[value];
    return index == SF_NONE ? NULL : &onnx->initialisers[index];
}

static int is_bias(const sf_onnx *onnx, const graph *g, uint32_t value)
{
    const initialiser *i = initialiser_of(onnx, g, value);
    return i && i->tensor.rank == 1 && g->weight[value] != SF_NONE;
}

static void note_bias(graph *g, uint32_t value, uint32_t bias)
{
    g->bias[value] = g->bias[value] == SF_NONE || g->bias[value] == bias ? bias : SF_NONE; /* two: neither */
}

/* The right side of a product with a bias gets the bias's name. */
static safer_status name_factor(sf_onnx *onnx, const graph *g, const node *n, safer_error *error)
{
    initialiser *right = n->input_count >= 2 ? initialiser_of(onnx, g, n->inputs[1]) : NULL;
    uint32_t bias = n->operation == GEMM ? n->inputs[2] : g->bias[n->output];
    int transposed = n->operation == MATMUL || !n->transposed_right;
    if (!right || right->tensor.rank != 2 || !n->plain) return SAFER_OK;
    right->factor = transposed;
    if (bias == SF_NONE || !is_bias(onnx, g, bias)) return SAFER_OK;
    uint32_t weight = g->weight[bias], number = g->initialiser[right->value];
    if (g->named[weight] == number) return SAFER_OK; /* a layer that is used twice */
    g->named[weight] = number;
    return add_weight(onnx, right, sf_words_string(&onnx->values, weight), transposed, error);
}

static safer_status name_all(sf_onnx *onnx, graph *g, safer_error *error)
{
    safer_status status = SAFER_OK;
    for (size_t i = 0; i < onnx->node_count; i++) {
        const node *n = &onnx->nodes[i];
        if (n->operation != ADD || n->input_count != 2) continue;
        for (int side = 0; side < 2; side++)
            if (is_bias(onnx, g, n->inputs[side])) note_bias(g, n->inputs[!side], n->inputs[side]);
    }
    for (size_t i = 0; i < onnx->node_count; i++)
        if (onnx->nodes[i].operation == MATMUL || onnx->nodes[i].operation == GEMM)
            SF_TRY(name_factor(onnx, g, &onnx->nodes[i], error));
    /* Exporters store equal tensors once and hand them on by name. */
    for (size_t i = 0; i < onnx->node_count; i++) {
        const node *n = &onnx->nodes[i];
        const initialiser *same = n->operation == IDENTITY && n->input_count == 1
                                      ? initialiser_of(onnx, g, n->inputs[0])
                                      : NULL;
        if (same) SF_TRY(add_weight(onnx, same, sf_words_string(&onnx->values, n->output), 0, error));
    }
    for (size_t i = 0; i < onnx->initialiser_count; i++) {
        const initialiser *own = &onnx->initialisers[i];
        if (g->named[own->value] == SF_NONE) SF_TRY(add_weight(onnx, own, own->tensor.name, own->factor, error));
    }
done:
    return status;
}

/* The number of "LAYER.weight" for every value that is called "LAYER.bias". */
static safer_status name_weights(uint32_t **out, sf_onnx *onnx, safer_error *error)
{
    safer_status status = SAFER_OK;
    uint32_t count = onnx->values.count;
    sf_buffer name = {0};
    uint32_t *weights = sf_alloc(count, sizeof *weights);
    if (!weights) return sf_fail_memory(error);
    for (uint32_t i = 0; i < count; i++) {
        const char *bias = sf_words_string(&onnx->values, i);
        size_t length = sf_words_length(&onnx->values, i);
        weights[i] = SF_NONE;
        if (length < 5 || memcmp(bias + length - 5, ".bias", 5) != 0) continue;
        sf_buffer_clear(&name);
        if (sf_buffer_add(&name, bias, length - 5) || sf_buffer_add_string(&name, ".weight")) {
            status = sf_fail_memory(error);
            goto done;
        }
        SF_TRY(sf_words_add(&onnx->values, name.bytes, name.length, &weights[i], error));
    }
    *out = weights;
    weights = NULL;
done:
    free(weights);
    sf_buffer_free(&name);
    return status;
}

static safer_status find_weights(sf_onnx *onnx, safer_error *error)
{
    safer_status status;
    graph g = {0};
    size_t count = onnx->values.count; /* of the values in the graph; names of weights follow */
    SF_TRY(name_weights(&g.weight, onnx, error));
    g.initialiser = sf_alloc(count, sizeof *g.initialiser);
    g.bias = sf_alloc(count, sizeof *g.bias);
    g.named = sf_alloc(onnx->values.count, sizeof *g.named);
    if (!g.initialiser || !g.bias || !g.named) {
        status = sf_fail_memory(error);
        goto done;
    }
    memset(g.initialiser, 0xff, count * sizeof *g.initialiser);
    memset(g.bias, 0xff, count * sizeof *g.bias);
    memset(g.named, 0xff, onnx->values.count * sizeof *g.named);
    for (size_t i = 0; i < onnx->initialiser_count; i++) {
        initialiser *own = &onnx->initialisers[i];
        own->tensor.name = sf_words_string(&onnx->values, own->value);
        if (g.initialiser[own->value] != SF_NONE) {
            status = sf_fail(error, SAFER_INPUT, "%s: two initialisers are called \"%.200s\"", onnx->name,
                             own->tensor.name);
            goto done;
        }
        g.initialiser[own->value] = (uint32_t)i;
    }
    SF_TRY(name_all(onnx, &g, error));
done:
    free(g.weight);
    free(g.initialiser);
    free(g.bias);
    free(g.named);
    return status;
}

/* -------------------------------------------------------------------- a file */

static safer_status read_graph(sf_onnx *onnx, message m, safer_error *error)
{
    safer_status status = SAFER_OK;
    field f;
    FOR_FIELDS(f, m)
    {
        if (f.number == 1 && f.wire == BYTES) SF_TRY(read_node(onnx, f.bytes, error));
        if (f.number == 5 && f.wire == BYTES) SF_TRY(read_initialiser(onnx, f.bytes, error));
    }
done:
    return status;
}

static safer_status read_model(sf_onnx *onnx, message m, safer_error *error)
{
    safer_status status = SAFER_OK;
    field f;
    int graphs = 0;
    FOR_FIELDS(f, m)
    if (f.number == 7 && f.wire == BYTES) {
        SF_TRY(read_graph(onnx, f.bytes, error));
        graphs++;
    }
    if (graphs == 0) return sf_fail(error, SAFER_INPUT, "%s is no ONNX file: it has no graph", onnx->name);
    SF_TRY(find_weights(onnx, error));
done:
    return status;
}

safer_status sf_onnx_parse(sf_onnx **out, sf_file *image, const char *name, safer_error *error)
{
    safer_status status;
    sf_onnx *onnx = sf_calloc(1, sizeof *onnx);
    if (!onnx || !(onnx->name = sf_strdup(name))) {
        status = sf_fail_memory(error);
        goto done;
    }
    onnx->image = *image;
    const unsigned char *bytes = (const unsigned char *)image->bytes;
    status = read_model(onnx, (message){bytes, bytes ? bytes + image->length : bytes}, error);
    if (status != SAFER_OK) {
        onnx->image = (sf_file){0}; /* the caller's */
        goto done;
    }
    *image = (sf_file){0};
    *out = onnx;
    onnx = NULL;
done:
    sf_onnx_free(onnx);
    return status;
}

void sf_onnx_free(sf_onnx *onnx)
{
    if (!onnx) return;
    for (size_t i = 0; i < onnx->gathered_count; i++) free(onnx->gathered[i]);
    free(onnx->gathered);
    free(onnx->nodes);
    free(onnx->initialisers);
    free(onnx->weights);
    sf_words_free(&onnx->values);
    sf_file_free(&onnx->image);
    free(onnx->name);
    free(onnx);
}

size_t sf_onnx_count(const sf_onnx *onnx) { return onnx->weight_count; }
const sf_onnx_weight *sf_onnx_at(const sf_onnx *onnx, size_t index) { return &onnx->weights[index]; }
const char *sf_onnx_name(const sf_onnx *onnx) { return onnx->name; }
