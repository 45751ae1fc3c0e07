/* A vocabulary, read from its text form: one piece per line, marks behind a tab. The form is
 * described in wordpiece.h, the way from a text to pieces in wordpiece.c and docs/design.md. */
#include "base/memory.h"
#include "base/words.h"
#include "text/unicode.h"
#include "text/wordpiece_parts.h"

#include <string.h>

enum { LONGEST_PIECE = 4096 }; /* bytes */
#define MAX_PIECES UINT32_C(16000000)
#define MAX_NODES (UINT32_C(1) << 24) /* a node and a byte fit into 32 bits */

/* ------------------------------------------------------------------- tree */

static int add_node(sf_tree *tree)
{
    if (tree->nodes >= MAX_NODES || sf_grow(&tree->values, &tree->capacity, tree->nodes + 1, sizeof *tree->values))
        return -1;
    tree->values[tree->nodes++] = SF_NONE;
    return 0;
}

int sf_tree_add(sf_tree *tree, sf_root root, const char *bytes, size_t length, uint32_t value)
{
    uint32_t node = root;
    while (tree->nodes < SF_ROOTS)
        if (add_node(tree)) return -1;
    for (size_t i = 0; i < length; i++) {
        uint32_t next = sf_tree_step(tree, node, (unsigned char)bytes[i]);
        if (next == SF_NONE) {
            next = (uint32_t)tree->nodes;
            if (add_node(tree) || sf_hashtable_add(&tree->edges, sf_tree_edge(node, (unsigned char)bytes[i]), next))
                return -1;
        }
        node = next;
    }
    if (length && tree->values[node] == SF_NONE) tree->values[node] = value;
    return 0;
}

/* ----------------------------------------------------------- short pieces */

static int add_short(sf_shorts *shorts, const char *bytes, size_t length, uint32_t id)
{
    char padded[SF_SHORT + 1] = {0};
    sf_short piece = {.id = id};
    if (sf_grow(&shorts->pieces, &shorts->capacity, shorts->count + 1, sizeof *shorts->pieces)) return -1;
    memcpy(padded, bytes, length);
    padded[SF_SHORT] = (char)length;
    memcpy(piece.key, padded, sizeof piece.key);
    if (sf_hashtable_add(&shorts->table, sf_short_tag(piece.key), (uint32_t)shorts->count)) return -1;
    shorts->pieces[shorts->count++] = piece;
    return 0;
}

/* ------------------------------------------------------------------ lines */

enum mark {
    MARK_UNK = 1,
    MARK_CLS = 2,
    MARK_SEP = 4,
    MARK_PAD = 8,
    MARK_ADDED = 16,
    MARK_ONLY = 32,
    MARK_NORMAL = 64,
    MARK_WORD = 128,
    MARK_LEFT = 256,
    MARK_RIGHT = 512
};

static const struct {
    const char *name;
    unsigned mark;
} marks[] = {
    {"unk", MARK_UNK},       {"cls", MARK_CLS},   {"sep", MARK_SEP},   {"pad", MARK_PAD},     {"added", MARK_ADDED},
    {"normal", MARK_NORMAL}, {"word", MARK_WORD}, {"left", MARK_LEFT}, {"right", MARK_RIGHT}, {"only", MARK_ONLY},
};

/* What is special in a vocabulary without marks. */
static const struct {
    const char *name;
    unsigned marks;
} defaults[] = {
    {"[UNK]", MARK_UNK | MARK_ADDED}, {"[CLS]", MARK_CLS | MARK_ADDED}, {"[SEP]", MARK_SEP | MARK_ADDED},
    {"[PAD]", MARK_PAD | MARK_ADDED}, {"[MASK]", MARK_ADDED},
};

typedef struct reading {
    sf_wordpiece *wordpiece;
    const char *name;
    int marked;       /* some line has marks */
    sf_buffer prefix; /* of continuing pieces */
    sf_buffer plain;  /* the content of a marked line, without escapes */
    sf_words seen;
    uint32_t *lines; /* of each piece seen */
    size_t line_capacity;
    unsigned found; /* which of unk, cls, sep, pad */
} reading;

/* White space at the end does not belong to a piece. */
static size_t trim(const char *bytes, size_t length)
{
    while (length) {
        size_t begin = length;
        uint32_t code = 0;
        while (begin > 0 && length - begin < 3 && ((unsigned char)bytes[--begin] & 0xc0) == 0x80) {}
        if (sf_utf8_decode(bytes + begin, bytes + length, &code) != length - begin || !sf_bert_is_space(code)) break;
        length = begin;
    }
    return length;
}

static int unescape(sf_buffer *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char byte = bytes[i];
        if (byte == '\\' && i + 1 < length) {
            byte = bytes[++i];
            byte = byte == 'n' ? '\n' : byte == 'r' ? '\r' : byte == 't' ? '\t' : byte;
        }
        if (sf_buffer_add_byte(out, byte)) return -1;
    }
    return 0;
}

/* Reads the marks behind the tab. */
static safer_status read_marks(unsigned *out, reading *r, const char *bytes, size_t length, size_t line,
                               safer_error *error)
{
    const char *p = bytes, *end = bytes + length;
    *out = 0;
    while (p < end) {
        const char *stop = memchr(p, ' ', (size_t)(end - p));
        size_t n = (size_t)((stop ? stop : end) - p), i = 0;
        if (n >= 7 && memcmp(p, "prefix=", 7) == 0 && line == 1) { /* the pieces that follow are read by it */
            sf_buffer_clear(&r->prefix);
            if (unescape(&r->prefix, p + 7, n - 7)) return sf_fail_memory(error);
        } else {
            while (i < sizeof marks / sizeof *marks && (strlen(marks[i].name) != n || memcmp(marks[i].name, p, n) != 0))
                i++;
            if (i == sizeof marks / sizeof *marks)
                return sf_fail(error, SAFER_INPUT, "%s: line %zu: \"%.*s\" behind a tab; a piece holds no tab", r->name,
                               line, n < 40 ? (int)n : 40, p);
            *out |= marks[i].mark;
        }
        p += n + (stop != NULL);
    }
    return SAFER_OK;
}

/* Cuts a line into the piece and its marks. */
static safer_status read_line(sf_span *piece, unsigned *found, reading *r, const char *bytes, size_t length,
                              size_t line, safer_error *error)
{
    const char *tab;
    length = trim(bytes, length);
    *piece = (sf_span){bytes, length};
    *found = 0;
    if (length > LONGEST_PIECE)
        return sf_fail(error, SAFER_INPUT,
                       "%s: line %zu has %zu bytes, too many for a piece of a word (is this a vocabulary?)", r->name,
                       line, length);
    if (sf_utf8_valid(bytes, length) != length)
        return sf_fail(error, SAFER_INPUT, "%s: line %zu is not valid UTF-8", r->name, line);
    if (length && memchr(bytes, '\0', length))
        return sf_fail(error, SAFER_INPUT, "%s: line %zu holds a NUL byte", r->name, line);
    if (length && (tab = memchr(bytes, '\t', length)) != NULL) {
        safer_status status = read_marks(found, r, tab + 1, (size_t)(bytes + length - tab - 1), line, error);
        if (status != SAFER_OK) return status;
        sf_buffer_clear(&r->plain);
        if (unescape(&r->plain, bytes, (size_t)(tab - bytes))) return sf_fail_memory(error);
        *piece = (sf_span){r->plain.bytes ? r->plain.bytes : "", r->plain.length};
        return SAFER_OK;
    }
    for (size_t i = 0; !r->marked && i < sizeof defaults / sizeof *defaults; i++)
        if (strlen(defaults[i].name) == length && memcmp(defaults[i].name, bytes, length) == 0)
            *found = defaults[i].marks;
    return SAFER_OK;
}

/* ----------------------------------------------------------------- pieces */

static safer_status plant(reading *r, sf_root root, const char *bytes, size_t length, uint32_t value,
                          safer_error *error)
{
    sf_tree *tree = &r->wordpiece->tree;
    if (sf_tree_add(tree, root, bytes, length, value) == 0) return SAFER_OK;
    if (tree->nodes < MAX_NODES) return sf_fail_memory(error);
    return sf_fail(error, SAFER_INPUT, "%s is too large: its pieces have more than %u different beginnings", r->name,
                   (unsigned)MAX_NODES);
}

static void note_pairs(sf_wordpiece *w, const char *bytes, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++) {
        unsigned char first = (unsigned char)bytes[i], last = (unsigned char)bytes[i + 1];
        w->joined[first][last / 32] |= 1u << last % 32;
        w->inner_first[first] = w->inner_last[last] = 1;
    }
}

static safer_status add_added(reading *r, sf_span piece, uint32_t id, unsigned found, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_wordpiece *w = r->wordpiece;
    sf_wordpiece_scratch scratch = {0};
    sf_buffer normal = {0};
    uint32_t index = (uint32_t)w->added_count;
    sf_root root = found & MARK_NORMAL ? SF_ROOT_NORMAL : SF_ROOT_RAW;
    if (sf_grow(&w->added, &w->added_capacity, w->added_count + 1, sizeof *w->added)) return sf_fail_memory(error);
    w->added[w->added_count++] = (sf_added){id, (found & MARK_WORD) != 0, (found & MARK_LEFT) != 0,
                                            (found & MARK_RIGHT) != 0};
    if (root == SF_ROOT_NORMAL) {
        if (sf_wordpiece_normalize(&normal, w, piece.bytes, piece.length, &scratch)) status = sf_fail_memory(error);
        piece = (sf_span){normal.bytes ? normal.bytes : "", normal.length};
        w->has_normal = 1;
    }
    if (status == SAFER_OK && piece.length) {
        status = plant(r, root, piece.bytes, piece.length, index, error);
        w->starts[root - SF_ROOT_RAW][(unsigned char)piece.bytes[0]] = 1;
        if (root == SF_ROOT_RAW) note_pairs(w, piece.bytes, piece.length);
        w->whole |= root == SF_ROOT_NORMAL || found & MARK_WORD;
    }
    sf_buffer_free(&normal);
    sf_wordpiece_scratch_free(&scratch);
    return status;
}

/* Whether a pre-token can begin like this: punctuation is always a pre-token of its own. */
static int can_start(sf_span piece)
{
    uint32_t code = 0;
    size_t step = sf_utf8_decode(piece.bytes, piece.bytes + piece.length, &code);
    return step == piece.length || !sf_bert_is_punctuation(code);
}

static safer_status add_piece(reading *r, sf_span piece, uint32_t id, unsigned found, safer_error *error)
{
    sf_wordpiece *w = r->wordpiece;
    const size_t mark = r->prefix.length;
    uint32_t ordinal, before = r->seen.count;
    safer_status status = sf_words_add(&r->seen, piece.bytes, piece.length, &ordinal, error);
    if (status != SAFER_OK) return status;
    if (ordinal != before)
        return sf_fail(error, SAFER_INPUT, "%s: line %zu repeats \"%.80s\" of line %zu", r->name, (size_t)id + 1,
                       sf_words_string(&r->seen, ordinal), (size_t)r->lines[ordinal] + 1);
    if (sf_grow(&r->lines, &r->line_capacity, (size_t)ordinal + 1, sizeof *r->lines)) return sf_fail_memory(error);
    r->lines[ordinal] = id;

    if (!(found & MARK_ONLY) && can_start(piece)) {
        SF_TRY(plant(r, SF_ROOT_START, piece.bytes, piece.length, id, error));
        if (piece.length <= SF_SHORT && add_short(&w->shorts, piece.bytes, piece.length, id)) {
            status = sf_fail_memory(error);
            goto done;
        }
    }
    if (!(found & MARK_ONLY) && piece.length >= mark && (mark == 0 || memcmp(piece.bytes, r->prefix.bytes, mark) == 0))
        SF_TRY(plant(r, SF_ROOT_CONTINUE, piece.bytes + mark, piece.length - mark, id, error));
    if (found & MARK_ADDED) SF_TRY(add_added(r, piece, id, found, error));
    if (found & MARK_UNK) w->specials.unk = id;
    if (found & MARK_CLS) w->specials.cls = id;
    if (found & MARK_SEP) w->specials.sep = id;
    if (found & MARK_PAD) w->specials.pad = id;
    r->found |= found;
done:
    return status;
}

static safer_status read_all(reading *r, const char *text, size_t length, safer_error *error)
{
    safer_status status;
    const char *p = text, *end = text + length;
    for (size_t id = 0; p < end; id++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        sf_span piece;
        unsigned found;
        if (id >= MAX_PIECES)
            return sf_fail(error, SAFER_INPUT, "%s has more than %u lines", r->name, (unsigned)MAX_PIECES);
        status = read_line(&piece, &found, r, p, (size_t)((stop ? stop : end) - p), id + 1, error);
        if (status == SAFER_OK && piece.length) status = add_piece(r, piece, (uint32_t)id, found, error);
        if (status != SAFER_OK) return status;
        r->wordpiece->size = id + 1;
        p = stop ? stop + 1 : end;
    }
    static const struct {
        unsigned mark;
        const char *name;
    } needed[] = {{MARK_UNK, "[UNK]"}, {MARK_CLS, "[CLS]"}, {MARK_SEP, "[SEP]"}};
    if (r->wordpiece->size == 0)
        return sf_fail(error, SAFER_INPUT, "%s is empty; a vocabulary has one piece per line", r->name);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!(r->found & needed[i].mark))
            return sf_fail(error, SAFER_INPUT, "%s has no %s among its %zu pieces (is this a vocabulary of BERT's?)",
                           r->name, needed[i].name, r->wordpiece->size);
    return SAFER_OK;
}

/* What every byte is, when it is read in ASCII text. */
static void classify_bytes(sf_wordpiece *w)
{
    for (unsigned c = 0; c < 256; c++) {
        if (c >= 0x80)
            w->classes[c] = SF_BYTE_HIGH;
        else if (w->options.clean && sf_bert_is_control(c))
            w->classes[c] = SF_BYTE_REMOVED;
        else if (sf_bert_is_space(c))
            w->classes[c] = SF_BYTE_SPACE;
        else if (sf_bert_is_punctuation(c))
            w->classes[c] = SF_BYTE_ALONE;
        else
            w->classes[c] = SF_BYTE_WORD;
        if (c < 0x80) w->lowered[c] = (uint8_t)(w->options.lower && c - 'A' < 26 ? c | 0x20 : c);
    }
}

safer_status sf_wordpiece_new(sf_wordpiece **out, const char *vocabulary, size_t length,
                              const sf_wordpiece_options *options, const char *name, safer_error *error)
{
    safer_status status = SAFER_OK;
    reading r = {.name = name, .marked = length && memchr(vocabulary, '\t', length) != NULL};
    sf_wordpiece *w = sf_calloc(1, sizeof *w);
    if (!w) return sf_fail_memory(error);
    r.wordpiece = w;
    w->options = *options;
    classify_bytes(w);
    if (sf_buffer_add(&w->vocabulary, vocabulary, length) || sf_buffer_add_string(&r.prefix, "##") ||
        sf_tree_add(&w->tree, SF_ROOT_START, "", 0, 0)) /* its roots are there, even if empty */
        status = sf_fail_memory(error);
    if (status == SAFER_OK) status = read_all(&r, vocabulary, length, error);
    sf_buffer_free(&r.prefix);
    sf_buffer_free(&r.plain);
    sf_words_free(&r.seen);
    free(r.lines);
    if (status == SAFER_OK)
        *out = w;
    else
        sf_wordpiece_free(w);
    return status;
}

void sf_wordpiece_free(sf_wordpiece *wordpiece)
{
    if (!wordpiece) return;
    sf_buffer_free(&wordpiece->vocabulary);
    sf_hashtable_free(&wordpiece->tree.edges);
    free(wordpiece->tree.values);
    sf_hashtable_free(&wordpiece->shorts.table);
    free(wordpiece->shorts.pieces);
    free(wordpiece->added);
    free(wordpiece);
}

size_t sf_wordpiece_size(const sf_wordpiece *wordpiece) { return wordpiece->size; }

const sf_wordpiece_options *sf_wordpiece_get_options(const sf_wordpiece *wordpiece) { return &wordpiece->options; }

int sf_wordpiece_vocabulary(sf_buffer *out, const sf_wordpiece *wordpiece)
{
    return sf_buffer_add(out, wordpiece->vocabulary.bytes, wordpiece->vocabulary.length);
}

sf_wordpiece_specials sf_wordpiece_special(const sf_wordpiece *wordpiece) { return wordpiece->specials; }

int sf_wordpiece_joins(const sf_wordpiece *w, int before, int after)
{
    if (w->whole) return 1;
    if (before < 0) return after < 0 ? w->added_count > 0 : w->inner_last[after];
    return after < 0 ? w->inner_first[before] : (int)(w->joined[before][after / 32] >> after % 32 & 1);
}
