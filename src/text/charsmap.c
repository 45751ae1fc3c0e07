/* sentencepiece's table of characters, as the `tokenizers` library applies it.
 *
 * It goes by grapheme clusters. One of fewer than 6 bytes that begins with a string of the table becomes what the
 * shortest such string becomes, the rest of it is lost; otherwise each of its characters is looked up by itself.
 *
 * Since longer clusters are taken apart, only rules that make clusters of two or more characters in 5 bytes matter:
 * flags and conjuncts of Indic consonants (rules GB12, GB13 and GB9c) need 6 and are left out. */
#include "text/charsmap.h"

#include "base/memory.h"
#include "text/classes.h"
#include "text/unicode.h"

#include <string.h>

enum { WHOLE = 6 }; /* clusters below so many bytes are looked up as a whole */

struct sf_charsmap {
    uint32_t *units;
    size_t count;
    char *strings; /* terminated */
    size_t length;
    const char *ascii[128]; /* what each of them becomes by itself, or NULL */
};

static uint32_t label_of(uint32_t unit) { return unit & 0x800000ff; }
static uint32_t way_of(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

/* What the shortest string of the table that the bytes begin with becomes, or NULL. */
static const char *look_up(const sf_charsmap *map, const char *bytes, size_t length)
{
    size_t at = way_of(map->units[0]);
    for (size_t i = 0; i < length && bytes[i]; i++) {
        at ^= (unsigned char)bytes[i];
        const uint32_t unit = map->units[at];
        if (label_of(unit) != (unsigned char)bytes[i]) return NULL;
        at ^= way_of(unit);
        if (unit & 0x100) return map->strings + (map->units[at] & 0x7fffffff);
    }
    return NULL;
}

/* Checks the children of the places on the list, which grows by them. */
static safer_status check_units(const sf_charsmap *map, const char *name, safer_error *error)
{
    safer_status status = SAFER_OK;
    unsigned char *seen = sf_calloc(map->count, 1);
    uint32_t *todo = sf_alloc(map->count, sizeof *todo);
    size_t count = 0;
    if (!seen || !todo) {
        status = sf_fail_memory(error);
        goto done;
    }
    todo[count++] = way_of(map->units[0]);
    if ((todo[0] | 0xff) < map->count) seen[todo[0]] = 1;
    for (size_t i = 0; i < count; i++) {
        if ((todo[i] | 0xff) >= map->count) {
            status = sf_fail(error, SAFER_INPUT, "%s: the table of characters leads beyond its end", name);
            goto done;
        }
        for (uint32_t byte = 1; byte < 256; byte++) {
            const uint32_t unit = map->units[todo[i] ^ byte], next = (todo[i] ^ byte) ^ way_of(unit);
            if (label_of(unit) != byte) continue;
            if ((next | 0xff) >= map->count) {
                status = sf_fail(error, SAFER_INPUT, "%s: the table of characters leads beyond its end", name);
                goto done;
            }
            const size_t value = map->units[next] & 0x7fffffff;
            if (unit & 0x100 && (value > map->length || ((unsigned char)map->strings[value] & 0xc0) == 0x80)) {
                status = sf_fail(error, SAFER_INPUT, "%s: the table of characters has a value beyond its strings",
                                 name);
                goto done;
            }
            if (!seen[next]) {
                seen[next] = 1;
                todo[count++] = next;
            }
        }
    }
done:
    free(seen);
    free(todo);
    return status;
}

static uint32_t read_number(const char *bytes)
{
    uint32_t value = 0;
    for (int i = 3; i >= 0; i--) value = value << 8 | (unsigned char)bytes[i];
    return value;
}

safer_status sf_charsmap_new(sf_charsmap **out, const char *bytes, size_t length, const char *name, safer_error *error)
{
    safer_status status = SAFER_OK;
    const size_t size = length >= 4 ? read_number(bytes) : 0;
    if (length < 4 || size % 4 || size < 1024 || size > length - 4)
        return sf_fail(error, SAFER_INPUT, "%s: the table of characters is cut off", name);
    const char *strings = bytes + 4 + size;
    sf_charsmap *map = sf_calloc(1, sizeof *map);
    if (!map) return sf_fail_memory(error);
    map->count = size / 4;
    map->length = length - 4 - size;
    map->units = sf_alloc(map->count, sizeof *map->units);
    map->strings = sf_strndup(strings, map->length);
    if (!map->units || !map->strings) {
        status = sf_fail_memory(error);
        goto done;
    }
    if (sf_utf8_valid(strings, map->length) != map->length) {
        status = sf_fail(error, SAFER_INPUT, "%s: the table of characters has strings that are not UTF-8", name);
        goto done;
    }
    for (size_t i = 0; i < map->count; i++) map->units[i] = read_number(bytes + 4 + 4 * i);
    SF_TRY(check_units(map, name, error));
    for (int c = 0; c < 128; c++) map->ascii[c] = look_up(map, &(char){(char)c}, 1);
    *out = map;
    map = NULL;
done:
    sf_charsmap_free(map);
    return status;
}

void sf_charsmap_free(sf_charsmap *map)
{
    if (!map) return;
    free(map->units);
    free(map->strings);
    free(map);
}

/* --------------------------------------------------------------- clusters */

/* How Hangul joins: 1 leading, 2 vowel, 3 trailing, 4 leading and vowel, 5 all three. */
static int hangul_of(uint32_t code)
{
    if ((code >= 0x1100 && code <= 0x115f) || (code >= 0xa960 && code <= 0xa97c)) return 1;
    if ((code >= 0x1160 && code <= 0x11a7) || (code >= 0xd7b0 && code <= 0xd7c6)) return 2;
    if ((code >= 0x11a8 && code <= 0x11ff) || (code >= 0xd7cb && code <= 0xd7fb)) return 3;
    if (code >= 0xac00 && code <= 0xd7a3) return (code - 0xac00) % 28 ? 5 : 4;
    return 0;
}

/* What came before, as far as it matters. */
typedef struct cluster {
    uint32_t code, class;
    int picture; /* 1: a pictograph and then only what extends it; 2: and then a joiner */
} cluster;

static int joins(const cluster *before, uint32_t code, uint32_t class)
{
    if (before->code == '\r' && code == '\n') return 1;
    if ((before->class | class) & SF_CLASS_CONTROL) return 0;
    const int left = hangul_of(before->code), right = hangul_of(code);
    if (left == 1 && (right == 1 || right == 2 || right >= 4)) return 1;
    if ((left == 2 || left == 4) && (right == 2 || right == 3)) return 1;
    if ((left == 3 || left == 5) && right == 3) return 1;
    if (code == 0x200d || class & (SF_CLASS_EXTEND | SF_CLASS_SPACING)) return 1;
    if (before->class & SF_CLASS_PREPEND) return 1;
    return before->picture == 2 && class & SF_CLASS_PICTURE;
}

/* The length of the grapheme cluster at p. */
static size_t cluster_length(const char *p, const char *end)
{
    cluster before = {0};
    const char *at = p;
    while (at < end) {
        uint32_t code = 0;
        const size_t step = sf_utf8_decode(at, end, &code);
        const uint32_t class = sf_class(code);
        if (at > p && !joins(&before, code, class)) break;
        int picture = 0;
        if (class & SF_CLASS_PICTURE)
            picture = 1;
        else if (before.picture == 1 && code == 0x200d)
            picture = 2;
        else if (before.picture && class & SF_CLASS_EXTEND)
            picture = 1;
        before = (cluster){code, class, picture};
        at += step ? step : 1;
    }
    return (size_t)(at - p);
}

/* ---------------------------------------------------------------- applied */

/* Where the output stems from, as long as that is asked for: the library counts characters, and takes those that come
 * instead of others in turn. What is removed at the very beginning it forgets to count; what is removed behind one that
 * came in addition makes that one stem from the next character. */
typedef struct origin {
    size_t heads;    /* characters of the input that stem from the first one of the text */
    size_t consumed; /* characters of the input that are accounted for */
    size_t head;     /* bytes of the output that stem from them */
    size_t added;    /* bytes of the last character of the output if it came in addition, else 0 */
    int any;         /* there is output */
} origin;

static size_t count_characters(const char *bytes, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++) count += ((unsigned char)bytes[i] & 0xc0) != 0x80;
    return count;
}

/* Notes that so many characters became these bytes. */
static void note(origin *o, size_t old, const char *bytes, size_t length)
{
    if (o->consumed > o->heads) return;
    size_t made = 0;
    for (size_t i = 0; i < length; i++) {
        if (((unsigned char)bytes[i] & 0xc0) != 0x80) {
            o->added = 0;
            if (made++ < old) o->consumed++;
        }
        if (made > old) o->added++;
        o->any = 1;
        o->head += o->consumed - 1 < o->heads;
    }
    if (made >= old || !o->any) return;
    if (o->consumed == o->heads) o->head -= o->added;
    o->added = 0;
    o->consumed += old - made;
}

static int add_string(sf_buffer *out, origin *o, size_t old, const char *bytes, size_t length)
{
    note(o, old, bytes, length);
    return sf_buffer_add(out, bytes, length);
}

static int add_cluster(sf_buffer *out, const sf_charsmap *map, const char *p, size_t length, origin *o)
{
    const char *becomes = length < WHOLE ? look_up(map, p, length) : NULL;
    if (becomes) return add_string(out, o, count_characters(p, length), becomes, strlen(becomes));
    for (const char *at = p, *end = p + length; at < end;) {
        uint32_t code;
        const size_t step = sf_utf8_decode(at, end, &code);
        becomes = look_up(map, at, step);
        if (becomes ? add_string(out, o, 1, becomes, strlen(becomes)) : add_string(out, o, 1, at, step)) return -1;
        at += step;
    }
    return 0;
}

int sf_charsmap_apply(sf_buffer *out, const sf_charsmap *map, const char *text, size_t length, size_t *head)
{
    const char *p = text, *end = text + length, *plain = text;
    origin o = {.heads = count_characters(text, *head < length ? *head : length)};
    while (p < end) {
        const unsigned char byte = (unsigned char)*p;
        /* Between ASCII characters every one is a cluster, but for "\r\n". */
        const int alone = byte < 0x80 && (p + 1 == end || (!(p[1] & 0x80) && byte != '\r'));
        if (alone && !map->ascii[byte]) {
            p++;
            continue;
        }
        if (plain < p && add_string(out, &o, (size_t)(p - plain), plain, (size_t)(p - plain))) return -1;
        const size_t step = alone ? 1 : cluster_length(p, end);
        if (add_cluster(out, map, p, step, &o)) return -1;
        p += step;
        plain = p;
    }
    if (plain < p && add_string(out, &o, (size_t)(p - plain), plain, (size_t)(p - plain))) return -1;
    *head = o.head;
    return 0;
}

/* ------------------------------------------------------------- what can be */

void sf_charsmap_ascii(const char **out, const sf_charsmap *map, unsigned char character)
{
    *out = map->ascii[character & 0x7f];
}

int sf_charsmap_continues(const sf_charsmap *map, unsigned char character)
{
    const uint32_t unit = map->units[way_of(map->units[0]) ^ character];
    return label_of(unit) == character && !(unit & 0x100);
}

/* Whether a string of the table begins with these bytes, or they with one. */
static int begins(const sf_charsmap *map, const char *bytes, size_t length)
{
    size_t at = way_of(map->units[0]);
    for (size_t i = 0; i < length; i++) {
        at ^= (unsigned char)bytes[i];
        const uint32_t unit = map->units[at];
        if (label_of(unit) != (unsigned char)bytes[i]) return 0;
        if (unit & 0x100) return 1;
        at ^= way_of(unit);
    }
    return 1;
}

int sf_charsmap_prepends(const sf_charsmap *map)
{
    const size_t ranges = sizeof sf_class_starts / sizeof *sf_class_starts;
    for (size_t i = 0; i < ranges; i++) {
        const uint32_t end = i + 1 < ranges ? sf_class_starts[i + 1] >> 8 : 0x110000;
        if (!(sf_class_sets[sf_class_starts[i] & 0xff] & SF_CLASS_PREPEND)) continue;
        for (uint32_t code = sf_class_starts[i] >> 8; code < end; code++) {
            char bytes[4];
            if (begins(map, bytes, sf_utf8_encode(code, bytes))) return 1;
        }
    }
    return 0;
}
