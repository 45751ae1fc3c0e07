/* Python's pickles, read as data.
 *
 * The instructions are those of protocols 2 to 5 (Python's Lib/pickletools.py describes them all) that the pickler
 * writes for dictionaries, tuples, strings, whole numbers, names of objects, calls and persistent ids. Numbers are
 * little-endian. Memo entries come in order, as every pickler writes them, so an index can ask for no memory. */
#include "nn/pickle.h"

#include "base/memory.h"

#include <string.h>

enum opcode {
    MARK = '(',
    STOP = '.',
    BININT = 'J',
    BININT1 = 'K',
    BININT2 = 'M',
    NONE = 'N',
    BINPERSID = 'Q',
    REDUCE = 'R',
    BINUNICODE = 'X',
    BUILD = 'b',
    GLOBAL = 'c',
    BINGET = 'h',
    LONG_BINGET = 'j',
    BINPUT = 'q',
    LONG_BINPUT = 'r',
    SETITEM = 's',
    TUPLE = 't',
    SETITEMS = 'u',
    EMPTY_DICT = '}',
    EMPTY_TUPLE = ')',
    PROTO = 0x80,
    TUPLE1 = 0x85,
    TUPLE2 = 0x86,
    TUPLE3 = 0x87,
    NEWTRUE = 0x88,
    NEWFALSE = 0x89,
    LONG1 = 0x8a,
    SHORT_BINUNICODE = 0x8c,
    STACK_GLOBAL = 0x93,
    MEMOIZE = 0x94,
    FRAME = 0x95
};

/* Those that are refused, by the names that Python has for them. */
static const struct {
    unsigned char code;
    const char *name;
} refused[] = {
    {'0', "POP"},
    {'1', "POP_MARK"},
    {'2', "DUP"},
    {'F', "FLOAT"},
    {'G', "BINFLOAT"},
    {'I', "INT"},
    {'L', "LONG"},
    {'P', "PERSID"},
    {'S', "STRING"},
    {'T', "BINSTRING"},
    {'U', "SHORT_BINSTRING"},
    {'V', "UNICODE"},
    {'B', "BINBYTES"},
    {'C', "SHORT_BINBYTES"},
    {'a', "APPEND"},
    {'d', "DICT"},
    {'e', "APPENDS"},
    {'g', "GET"},
    {'i', "INST"},
    {'l', "LIST"},
    {'o', "OBJ"},
    {'p', "PUT"},
    {']', "EMPTY_LIST"},
    {0x81, "NEWOBJ"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x8b, "LONG4"},
    {0x8d, "BINUNICODE8"},
    {0x8e, "BINBYTES8"},
    {0x8f, "EMPTY_SET"},
    {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},
    {0x92, "NEWOBJ_EX"},
    {0x96, "BYTEARRAY8"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
};

#define MARKED UINT32_MAX /* on the stack: a mark */

typedef struct machine {
    sf_pickle tree;
    const unsigned char *bytes;
    size_t length, at, began; /* `began`: the present instruction */
    const sf_pickle_name *names;
    size_t name_count;
    uint32_t *stack, *memo; /* numbers of values */
    size_t depth, stack_capacity, memo_count, memo_capacity;
    const char *where;
    int stopped;
} machine;

static safer_status fail_at(const machine *m, const char *what, safer_error *error)
{
    return sf_fail(error, SAFER_INPUT, "%s, byte %zu: %s", m->where, m->began, what);
}

static safer_status fail_damaged(const machine *m, safer_error *error)
{
    return fail_at(m, "the pickle is damaged", error);
}

/* -------------------------------------------------------------------- values */

static safer_status push(machine *m, uint32_t value, safer_error *error)
{
    if (sf_grow(&m->stack, &m->stack_capacity, m->depth + 1, sizeof *m->stack)) return sf_fail_memory(error);
    m->stack[m->depth++] = value;
    return SAFER_OK;
}

static safer_status push_new(machine *m, sf_pickle_value value, safer_error *error)
{
    sf_pickle *t = &m->tree;
    if (sf_grow(&t->values, &t->value_capacity, t->value_count + 1, sizeof *t->values)) return sf_fail_memory(error);
    t->values[t->value_count] = value;
    return push(m, (uint32_t)t->value_count++, error);
}

/* Behind the items that the value has. */
static safer_status add_item(machine *m, sf_pickle_value *value, uint32_t item, safer_error *error)
{
    sf_pickle *t = &m->tree;
    if (sf_grow(&t->cells, &t->cell_capacity, t->cell_count + 1, sizeof *t->cells)) return sf_fail_memory(error);
    const uint32_t cell = (uint32_t)t->cell_count++;
    t->cells[cell] = (struct sf_pickle_cell){item, SF_PICKLE_END};
    if (value->count++)
        t->cells[value->last].next = cell;
    else
        value->first = cell;
    value->last = cell;
    return SAFER_OK;
}

static sf_pickle_value none_yet(sf_pickle_kind kind)
{
    return (sf_pickle_value){.kind = kind, .first = SF_PICKLE_END, .last = SF_PICKLE_END};
}

/* The value `below` the top of the stack, or NULL when there is none. It lives until the next new one. */
static sf_pickle_value *peek(const machine *m, size_t below)
{
    if (below >= m->depth || m->stack[m->depth - 1 - below] == MARKED) return NULL;
    return &m->tree.values[m->stack[m->depth - 1 - below]];
}

/* How many values lie above the last mark. -1: there is none. */
static int above_mark(const machine *m, size_t *count)
{
    for (*count = 0; *count < m->depth; ++*count)
        if (m->stack[m->depth - 1 - *count] == MARKED) return 0;
    return -1;
}

/* The top values become a new one with these items; `marks` more are dropped below them. */
static safer_status gather(machine *m, sf_pickle_value value, size_t count, size_t marks, safer_error *error)
{
    safer_status status = SAFER_OK;
    for (size_t i = 0; i < count; i++)
        if (!peek(m, i)) return fail_damaged(m, error);
    for (size_t i = 0; i < count; i++) SF_TRY(add_item(m, &value, m->stack[m->depth - count + i], error));
    m->depth -= count + marks;
    status = push_new(m, value, error);
done:
    return status;
}

/* The top values, key and value in turn, become the last items of the dictionary below them and a mark, if any. */
static safer_status set_items(machine *m, size_t count, size_t marks, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_pickle_value *dict = peek(m, count + marks);
    if (!dict || dict->kind != SF_PICKLE_DICT || count % 2) return fail_damaged(m, error);
    for (size_t i = 0; i < count; i++)
        if (!peek(m, i)) return fail_damaged(m, error);
    for (size_t i = 0; i < count; i++) SF_TRY(add_item(m, dict, m->stack[m->depth - count + i], error));
    m->depth -= count + marks;
done:
    return status;
}

/* --------------------------------------------------------------------- bytes */

static int read_number(machine *m, uint64_t *out, size_t bytes)
{
    if (m->length - m->at < bytes) return -1;
    *out = 0;
    for (size_t i = bytes; i-- > 0;) *out = *out << 8 | m->bytes[m->at + i];
    m->at += bytes;
    return 0;
}

static int read_span(machine *m, sf_span *out, size_t length_bytes)
{
    uint64_t length;
    if (read_number(m, &length, length_bytes) || length > m->length - m->at) return -1;
    *out = (sf_span){(const char *)m->bytes + m->at, (size_t)length};
    m->at += (size_t)length;
    return 0;
}

/* Up to the next newline, which is passed. */
static int read_line(machine *m, sf_span *out)
{
    const unsigned char *from = m->bytes + m->at, *end = memchr(from, '\n', m->length - m->at);
    if (!end) return -1;
    *out = (sf_span){(const char *)from, (size_t)(end - from)};
    m->at += out->length + 1;
    return 0;
}

static safer_status push_whole(machine *m, int64_t whole, safer_error *error)
{
    return push_new(m, (sf_pickle_value){.kind = SF_PICKLE_WHOLE, .whole = whole}, error);
}

static safer_status read_whole(machine *m, size_t bytes, safer_error *error)
{
    uint64_t value;
    if (read_number(m, &value, bytes)) return fail_damaged(m, error);
    return push_whole(m, bytes == 4 ? (int64_t)(int32_t)(uint32_t)value : (int64_t)value, error);
}

/* LONG1: a length, and so many bytes of two's complement. */
static safer_status read_long(machine *m, safer_error *error)
{
    uint64_t length, value = 0;
    if (read_number(m, &length, 1)) return fail_damaged(m, error);
    if (length > 8) return fail_at(m, "a number has more than 64 bits: not read", error);
    if (read_number(m, &value, (size_t)length)) return fail_damaged(m, error);
    if (length && length < 8 && value >> (8 * length - 1)) value |= UINT64_MAX << 8 * length;
    int64_t whole;
    memcpy(&whole, &value, sizeof whole);
    return push_whole(m, whole, error);
}

static safer_status read_string(machine *m, size_t length_bytes, safer_error *error)
{
    sf_pickle_value value = {.kind = SF_PICKLE_STRING};
    return read_span(m, &value.string, length_bytes) ? fail_damaged(m, error) : push_new(m, value, error);
}

/* --------------------------------------------------------------------- names */

static int is_text(sf_span span, const char *text)
{
    return span.length == strlen(text) && memcmp(span.bytes, text, span.length) == 0;
}

/* A name as it may stand in a message. */
static const char *plain_name(char out[84], sf_span name)
{
    const size_t length = name.length < 80 ? name.length : 80;
    for (size_t i = 0; i < length; i++) out[i] = name.bytes[i] > ' ' && name.bytes[i] <= '~' ? name.bytes[i] : '?';
    memcpy(out + length, length < name.length ? "..." : "", length < name.length ? 4 : 1);
    return out;
}

static safer_status push_name(machine *m, sf_span module, sf_span name, safer_error *error)
{
    char first[84], second[84];
    for (size_t i = 0; i < m->name_count; i++)
        if (is_text(module, m->names[i].module) && is_text(name, m->names[i].name))
            return push_new(m, (sf_pickle_value){.kind = SF_PICKLE_NAME, .whole = (int64_t)i}, error);
    return sf_fail(
        error, SAFER_INPUT,
        "%s, byte %zu: the pickle calls %s.%s: not read; weights are read from dictionaries of tensors alone, "
        "and nothing is executed",
        m->where, m->began, plain_name(first, module), plain_name(second, name));
}

static safer_status read_global(machine *m, safer_error *error)
{
    sf_span module, name;
    return read_line(m, &module) || read_line(m, &name) ? fail_damaged(m, error) : push_name(m, module, name, error);
}

static safer_status stack_global(machine *m, safer_error *error)
{
    const sf_pickle_value *module = peek(m, 1), *name = peek(m, 0);
    if (!module || !name || module->kind != SF_PICKLE_STRING || name->kind != SF_PICKLE_STRING)
        return fail_damaged(m, error);
    m->depth -= 2;
    return push_name(m, module->string, name->string, error);
}

static safer_status reduce(machine *m, safer_error *error)
{
    const sf_pickle_value *function = peek(m, 1), *arguments = peek(m, 0);
    if (!function || !arguments || function->kind != SF_PICKLE_NAME || arguments->kind != SF_PICKLE_TUPLE)
        return fail_damaged(m, error);
    const int64_t name = function->whole;
    if (m->names[name].dict) {
        if (arguments->count) return fail_at(m, "a dictionary is made of arguments: not read", error);
        m->depth -= 2;
        return push_new(m, none_yet(SF_PICKLE_DICT), error);
    }
    sf_pickle_value call = none_yet(SF_PICKLE_CALL);
    call.whole = name;
    const uint32_t tuple = m->stack[--m->depth];
    m->stack[m->depth - 1] = tuple; /* in the function's place */
    return gather(m, call, 1, 0, error);
}

/* A dictionary's own attributes (PyTorch keeps versions of modules there): known to be data, and not needed. */
static safer_status build(machine *m, safer_error *error)
{
    const sf_pickle_value *object = peek(m, 1), *state = peek(m, 0);
    if (!object || !state) return fail_damaged(m, error);
    if (object->kind != SF_PICKLE_DICT || state->kind != SF_PICKLE_DICT)
        return fail_at(m, "an object is given a state: not read", error);
    m->depth--;
    return SAFER_OK;
}

/* ---------------------------------------------------------------------- memo */

static safer_status put(machine *m, uint64_t index, safer_error *error)
{
    if (index != m->memo_count || !peek(m, 0)) return fail_at(m, "the memo is not filled in order: not read", error);
    if (sf_grow(&m->memo, &m->memo_capacity, m->memo_count + 1, sizeof *m->memo)) return sf_fail_memory(error);
    m->memo[m->memo_count++] = m->stack[m->depth - 1];
    return SAFER_OK;
}

static safer_status memo(machine *m, int get, size_t bytes, safer_error *error)
{
    uint64_t index;
    if (read_number(m, &index, bytes)) return fail_damaged(m, error);
    if (!get) return put(m, index, error);
    return index < m->memo_count ? push(m, m->memo[index], error) : fail_damaged(m, error);
}

/* --------------------------------------------------------------- instructions */

static safer_status fail_opcode(const machine *m, unsigned char code, safer_error *error)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i].code == code)
            return sf_fail(error, SAFER_INPUT,
                           "%s, byte %zu: the instruction %s: not read; no dictionary of tensors has it", m->where,
                           m->began, refused[i].name);
    return sf_fail(error, SAFER_INPUT, "%s, byte %zu: the pickle is damaged (there is no instruction 0x%02x)", m->where,
                   m->began, code);
}

static safer_status protocol(machine *m, safer_error *error)
{
    uint64_t version;
    if (m->began != 0 || read_number(m, &version, 1)) return fail_damaged(m, error);
    return version >= 2 && version <= 5 ? SAFER_OK : fail_at(m, "only protocols 2 to 5 are read", error);
}

/* A frame is a hint for readers of streams. */
static safer_status frame(machine *m, safer_error *error)
{
    uint64_t length;
    return read_number(m, &length, 8) || length > m->length - m->at ? fail_damaged(m, error) : SAFER_OK;
}

static safer_status with_marked(machine *m, int dict, safer_error *error)
{
    size_t count;
    if (above_mark(m, &count)) return fail_damaged(m, error);
    return dict ? set_items(m, count, 1, error) : gather(m, none_yet(SF_PICKLE_TUPLE), count, 1, error);
}

static safer_status run_one(machine *m, unsigned char code, safer_error *error)
{
    switch ((enum opcode)code) {
    case PROTO: return protocol(m, error);
    case FRAME: return frame(m, error);
    case STOP: m->stopped = 1; return SAFER_OK;
    case MARK: return push(m, MARKED, error);
    case NONE: return push_new(m, (sf_pickle_value){.kind = SF_PICKLE_NONE}, error);
    case NEWTRUE: return push_new(m, (sf_pickle_value){.kind = SF_PICKLE_TRUTH, .whole = 1}, error);
    case NEWFALSE: return push_new(m, (sf_pickle_value){.kind = SF_PICKLE_TRUTH}, error);
    case BININT: return read_whole(m, 4, error);
    case BININT1: return read_whole(m, 1, error);
    case BININT2: return read_whole(m, 2, error);
    case LONG1: return read_long(m, error);
    case BINUNICODE: return read_string(m, 4, error);
    case SHORT_BINUNICODE: return read_string(m, 1, error);
    case GLOBAL: return read_global(m, error);
    case STACK_GLOBAL: return stack_global(m, error);
    case REDUCE: return reduce(m, error);
    case BUILD: return build(m, error);
    case BINPERSID: return gather(m, none_yet(SF_PICKLE_PERSISTENT), 1, 0, error);
    case EMPTY_DICT: return push_new(m, none_yet(SF_PICKLE_DICT), error);
    case EMPTY_TUPLE: return push_new(m, none_yet(SF_PICKLE_TUPLE), error);
    case TUPLE1: return gather(m, none_yet(SF_PICKLE_TUPLE), 1, 0, error);
    case TUPLE2: return gather(m, none_yet(SF_PICKLE_TUPLE), 2, 0, error);
    case TUPLE3: return gather(m, none_yet(SF_PICKLE_TUPLE), 3, 0, error);
    case TUPLE: return with_marked(m, 0, error);
    case SETITEM: return set_items(m, 2, 0, error);
    case SETITEMS: return with_marked(m, 1, error);
    case BINPUT: return memo(m, 0, 1, error);
    case LONG_BINPUT: return memo(m, 0, 4, error);
    case MEMOIZE: return put(m, m->memo_count, error);
    case BINGET: return memo(m, 1, 1, error);
    case LONG_BINGET: return memo(m, 1, 4, error);
    }
    return fail_opcode(m, code, error);
}

safer_status sf_pickle_parse(sf_pickle *out, const char *bytes, size_t length, const sf_pickle_name *names,
                             size_t name_count, const char *where, safer_error *error)
{
    safer_status status = SAFER_OK;
    machine m = {.bytes = (const unsigned char *)bytes, .length = length, .names = names, .name_count = name_count};
    m.where = where;
    if (length == 0 || m.bytes[0] != PROTO) {
        status = fail_at(&m, "no pickle of protocol 2 or later begins here", error);
        goto done;
    }
    if (length >= UINT32_MAX) {
        status = fail_at(&m, "a pickle of 4 GiB: not read", error);
        goto done;
    }
    while (!m.stopped) {
        m.began = m.at;
        if (m.at == m.length) {
            status = fail_at(&m, "the pickle is truncated", error);
            goto done;
        }
        SF_TRY(run_one(&m, m.bytes[m.at++], error));
    }
    if (m.depth != 1 || !peek(&m, 0) || m.at != m.length) {
        status = fail_damaged(&m, error);
        goto done;
    }
    m.tree.root = m.stack[0];
    *out = m.tree;
    m.tree = (sf_pickle){0};
done:
    free(m.stack);
    free(m.memo);
    sf_pickle_free(&m.tree);
    return status;
}

void sf_pickle_free(sf_pickle *pickle)
{
    free(pickle->values);
    free(pickle->cells);
    *pickle = (sf_pickle){0};
}

/* ------------------------------------------------------------------- reading */

const sf_pickle_value *sf_pickle_root(const sf_pickle *pickle) { return &pickle->values[pickle->root]; }

const sf_pickle_value *sf_pickle_next(const sf_pickle *pickle, uint32_t *cell)
{
    const struct sf_pickle_cell *at = &pickle->cells[*cell];
    *cell = at->next;
    return &pickle->values[at->value];
}

int sf_pickle_items(const sf_pickle_value **out, size_t count, const sf_pickle *pickle, const sf_pickle_value *tuple)
{
    if (tuple->kind != SF_PICKLE_TUPLE || tuple->count != count) return -1;
    uint32_t cell = tuple->first;
    for (size_t i = 0; i < count; i++) out[i] = sf_pickle_next(pickle, &cell);
    return 0;
}
