/* Folds: their tables looked at, and applied to texts. text/fold.h has the definition and why it is idempotent;
 * docs/fold.md what it is for. A table may come from anybody: sf_fold_open believes nothing of it. */
#include "text/fold.h"

#include "base/memory.h"
#include "text/unicode.h"

#include <string.h>

enum {
    LIMIT = 0x110000,
    REPLACEMENT = 0xfffd,
    /* Hangul syllables, as Unicode counts them (section 3.12) */
    HANGUL = 0xac00,
    HANGUL_L = 0x1100,
    HANGUL_V = 0x1161,
    HANGUL_T = 0x11a7,
    L_COUNT = 19,
    V_COUNT = 21,
    T_COUNT = 28,
    SYLLABLES = L_COUNT * V_COUNT * T_COUNT,
    ASCII_NONE = 0xff
};

/* ------------------------------------------------------------------ looking up */

/* What is said of a code point. */
static uint32_t properties_of(const sf_fold *f, uint32_t code)
{
    size_t low = 0, high = f->head.ranges;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const uint32_t *range = f->ranges + 3 * middle;
        if (code < range[0])
            high = middle;
        else if (code > range[1])
            low = middle + 1;
        else
            return range[2];
    }
    return 0;
}

/* The number of a code point's image, or SIZE_MAX: it is its own. */
static size_t find_map(const sf_fold *f, uint32_t code)
{
    size_t low = 0, high = f->head.maps;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (f->codes[middle] == code) return middle;
        if (f->codes[middle] < code)
            low = middle + 1;
        else
            high = middle;
    }
    return SIZE_MAX;
}

static int is_syllable(const sf_fold *f, uint32_t code)
{
    return (f->head.steps & SF_FOLD_NFKC) && code - HANGUL < SYLLABLES;
}

/* H of one code point; out has room for three of a syllable, every other image lies in the table. */
static const uint32_t *image_of(size_t *count, uint32_t out[3], const sf_fold *f, uint32_t code)
{
    const size_t map = find_map(f, code);
    out[0] = code;
    *count = 1;
    if (map != SIZE_MAX) {
        *count = f->offsets[map + 1] - f->offsets[map];
        return f->images + f->offsets[map];
    }
    if (is_syllable(f, code)) {
        const uint32_t index = code - HANGUL;
        out[0] = HANGUL_L + index / (V_COUNT * T_COUNT);
        out[1] = HANGUL_V + index / T_COUNT % V_COUNT;
        out[2] = HANGUL_T + index % T_COUNT;
        *count = index % T_COUNT ? 3 : 2;
    } else if (properties_of(f, code) & SF_FOLD_DROPPED) {
        *count = 0;
    }
    return out;
}

static int is_fixed(const sf_fold *f, uint32_t code)
{
    return find_map(f, code) == SIZE_MAX && !is_syllable(f, code) && !(properties_of(f, code) & SF_FOLD_DROPPED);
}

/* The syllable that two neighbours compose, or 0. */
static uint32_t hangul_of(const sf_fold *f, uint32_t first, uint32_t second)
{
    if (!(f->head.steps & SF_FOLD_NFKC)) return 0;
    if (first - HANGUL_L < L_COUNT && second - HANGUL_V < V_COUNT)
        return HANGUL + ((first - HANGUL_L) * V_COUNT + (second - HANGUL_V)) * T_COUNT;
    if (first - HANGUL < SYLLABLES && (first - HANGUL) % T_COUNT == 0 && second - HANGUL_T - 1 < T_COUNT - 1)
        return first + (second - HANGUL_T);
    return 0;
}

/* The composite of two neighbours, or 0. */
static uint32_t composite_of(const sf_fold *f, uint32_t first, uint32_t second)
{
    const uint32_t syllable = hangul_of(f, first, second);
    if (syllable) return syllable;
    size_t low = 0, high = f->head.pairs;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const uint32_t *pair = f->pairs + 3 * middle;
        if (pair[0] == first && pair[1] == second) return pair[2];
        if (pair[0] < first || (pair[0] == first && pair[1] < second))
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* -------------------------------------------------------------------- opening */

static int is_code(uint32_t code) { return code < LIMIT && code - 0xd800 >= 0x800; }

/* Points into a table of the right size; 0 otherwise. */
static int point_into(sf_fold *f, const void *table, size_t length)
{
    const uint32_t *at = table;
    if (length < sizeof f->head || length % sizeof *at) return 0;
    memcpy(&f->head, table, sizeof f->head);
    const uint64_t head = sizeof f->head / sizeof *at, maps = f->head.maps, images = f->head.images;
    if (length / sizeof *at != head + 2 * maps + 1 + images + 3 * ((uint64_t)f->head.ranges + f->head.pairs)) return 0;
    f->codes = at + head;
    f->offsets = f->codes + maps;
    f->images = f->offsets + maps + 1;
    f->ranges = f->images + images;
    f->pairs = f->ranges + 3 * (size_t)f->head.ranges;
    return 1;
}

static int maps_are_right(const sf_fold *f)
{
    const uint32_t maps = f->head.maps;
    if (f->offsets[0] != 0 || f->offsets[maps] != f->head.images) return 0;
    for (uint32_t i = 0; i < maps; i++)
        if (!is_code(f->codes[i]) || (i && f->codes[i] <= f->codes[i - 1]) || is_syllable(f, f->codes[i]) ||
            f->offsets[i + 1] < f->offsets[i] || f->offsets[i + 1] > f->head.images)
            return 0;
    return 1;
}

static int ranges_are_right(const sf_fold *f)
{
    enum { KNOWN = SF_FOLD_CLASS | SF_FOLD_DROPPED | SF_FOLD_DIACRITIC | SF_FOLD_LETTER | SF_FOLD_KEEPS };
    for (uint32_t i = 0; i < f->head.ranges; i++) {
        const uint32_t *range = f->ranges + 3 * (size_t)i;
        if (range[0] > range[1] || range[1] >= LIMIT || (i && range[0] <= range[-2]) || (range[2] & ~(uint32_t)KNOWN))
            return 0;
        /* Letters that L, S and R know are letters, and no marks. */
        if (range[0] < 0x80 && range[2] != SF_FOLD_DROPPED) return 0;
    }
    return 1;
}

/* All that H makes, and all that L makes, H leaves alone. */
static int images_are_fixed(const sf_fold *f)
{
    for (uint32_t i = 0; i < f->head.images; i++)
        if (!is_code(f->images[i]) || !is_fixed(f, f->images[i])) return 0;
    for (uint32_t c = 'a'; c <= 'z'; c++)
        if (!is_fixed(f, c)) return 0;
    if (!is_fixed(f, REPLACEMENT)) return 0;
    if (f->head.steps & SF_FOLD_NFKC) {
        for (uint32_t c = 0; c < L_COUNT; c++)
            if (!is_fixed(f, HANGUL_L + c)) return 0;
        for (uint32_t c = 0; c < V_COUNT; c++)
            if (!is_fixed(f, HANGUL_V + c)) return 0;
        for (uint32_t c = 1; c < T_COUNT; c++)
            if (!is_fixed(f, HANGUL_T + c)) return 0;
    }
    return 1;
}

/* H takes every composite apart into what it was made of, so that H . C is the identity. Two neighbours have one
 * composite: what Hangul's arithmetic composes stands in no list. */
static int pairs_are_right(const sf_fold *f)
{
    for (uint32_t i = 0; i < f->head.pairs; i++) {
        const uint32_t *pair = f->pairs + 3 * (size_t)i;
        if (!is_code(pair[0]) || !is_code(pair[1]) || !is_code(pair[2])) return 0;
        if (hangul_of(f, pair[0], pair[1])) return 0;
        if (i && (pair[0] < pair[-3] || (pair[0] == pair[-3] && pair[1] <= pair[-2]))) return 0;
        uint32_t own[3], of_first[3];
        size_t count, first_count;
        const uint32_t *parts = image_of(&count, own, f, pair[2]);
        const uint32_t *first = image_of(&first_count, of_first, f, pair[0]);
        if (count != first_count + 1 || !is_fixed(f, pair[1]) || parts[count - 1] != pair[1] ||
            memcmp(parts, first, first_count * sizeof *parts) != 0)
            return 0;
    }
    return 1;
}

/* What ASCII alone becomes: byte by byte, where no later step can matter. */
static void find_direct(sf_fold *f)
{
    f->direct = !(f->head.steps & (SF_FOLD_LEET | SF_FOLD_SPACED | SF_FOLD_REPEATS));
    for (uint32_t c = 0; c < 0x80; c++) {
        uint32_t own[3];
        size_t count;
        const uint32_t *image = image_of(&count, own, f, c);
        if (count > 1 || (count && image[0] >= 0x80)) f->direct = 0;
        f->ascii[c] = (unsigned char)(count ? image[0] : ASCII_NONE);
    }
    for (uint32_t i = 0; i < f->head.pairs; i++)
        if (f->pairs[3 * (size_t)i + 1] < 0x80) f->direct = 0; /* of two ASCII characters */
}

const char *sf_fold_open(sf_fold *f, const void *table, size_t length)
{
    *f = (sf_fold){0};
    if (!point_into(f, table, length)) return "its fold has the wrong length";
    if (!f->head.steps || f->head.steps & ~(uint32_t)SF_FOLD_ALL) return "its fold has steps that are unknown here";
    if (!maps_are_right(f) || !ranges_are_right(f)) return "its fold is not in order";
    if (!images_are_fixed(f) || !pairs_are_right(f)) return "its fold does not leave alone what it has folded";
    find_direct(f);
    return NULL;
}

/* -------------------------------------------------------------- H, M and O */

void sf_folder_free(sf_folder *folder)
{
    free(folder->codes);
    free(folder->origins);
    free(folder->ends);
    free(folder->marks);
    sf_buffer_free(&folder->text);
    *folder = (sf_folder){0};
}

/* H, then M. *keeps: whether the letter before keeps its diacritics. */
static int add_image(sf_folder *folder, const sf_fold *f, uint32_t code, size_t origin, int *keeps)
{
    uint32_t own[3];
    size_t count;
    const uint32_t *image = image_of(&count, own, f, code);
    if (sf_grow(&folder->codes, &folder->capacity, folder->count + count + 1, sizeof *folder->codes) ||
        sf_grow(&folder->origins, &folder->origin_capacity, folder->count + count + 1, sizeof *folder->origins))
        return -1;
    for (size_t i = 0; i < count; i++) {
        const uint32_t is = image[i] < 0x80 ? 0 : properties_of(f, image[i]);
        if (!(is & (SF_FOLD_CLASS | SF_FOLD_DIACRITIC)))
            *keeps = (is & SF_FOLD_KEEPS) != 0;
        else if ((is & SF_FOLD_DIACRITIC) && !*keeps && (f->head.steps & SF_FOLD_MARKS))
            continue;
        folder->codes[folder->count] = image[i];
        folder->origins[folder->count++] = (uint32_t)origin;
    }
    return 0;
}

static int read_codes(sf_folder *folder, const sf_fold *f, const char *text, size_t length)
{
    const char *p = text, *end = text + length;
    int keeps = 0;
    folder->count = 0;
    while (p < end) {
        uint32_t code;
        size_t step = sf_utf8_decode(p, end, &code);
        if (add_image(folder, f, step ? code : REPLACEMENT, (size_t)(p - text), &keeps)) return -1;
        p += step ? step : 1;
    }
    return 0;
}

/* Sorts a run of marks by class, equals as they stood; in linear time however long it is. */
static int sort_marks(sf_folder *folder, const sf_fold *f, uint32_t *run, size_t count)
{
    enum { SHORT = 16 };
    if (count <= SHORT) {
        for (size_t i = 1; i < count; i++)
            for (size_t k = i;
                 k && (properties_of(f, run[k - 1]) & SF_FOLD_CLASS) > (properties_of(f, run[k]) & SF_FOLD_CLASS);
                 k--) {
                const uint32_t other = run[k];
                run[k] = run[k - 1];
                run[k - 1] = other;
            }
        return 0;
    }
    size_t places[SF_FOLD_CLASS + 2] = {0};
    if (sf_grow(&folder->marks, &folder->mark_capacity, count, sizeof *folder->marks)) return -1;
    for (size_t i = 0; i < count; i++) places[(properties_of(f, run[i]) & SF_FOLD_CLASS) + 1]++;
    for (size_t c = 1; c <= SF_FOLD_CLASS; c++) places[c] += places[c - 1];
    for (size_t i = 0; i < count; i++) folder->marks[places[properties_of(f, run[i]) & SF_FOLD_CLASS]++] = run[i];
    memcpy(run, folder->marks, count * sizeof *run);
    return 0;
}

static int order_marks(sf_folder *folder, const sf_fold *f)
{
    for (size_t i = 0, begin; i < folder->count; i++) {
        for (begin = i; i < folder->count && folder->codes[i] >= 0x80; i++)
            if (!(properties_of(f, folder->codes[i]) & SF_FOLD_CLASS)) break;
        if (i - begin > 1 && sort_marks(folder, f, folder->codes + begin, i - begin)) return -1;
    }
    return 0;
}

/* ------------------------------------------------------------- L, S and R */

static int is_plain_letter(uint32_t code) { return (code | 0x20) - 'a' < 26; }

static int is_any_letter(const sf_fold *f, uint32_t code)
{
    return is_plain_letter(code) || (code >= 0x80 && (properties_of(f, code) & SF_FOLD_LETTER));
}

/* What a character of leetspeak stands for, or 0. */
static uint32_t leet_of(uint32_t code)
{
    static const char from[] = "013457@$", to[] = "oieastas";
    const char *found = code && code < 0x80 ? strchr(from, (int)code) : NULL;
    return found ? (uint32_t)to[found - from] : 0;
}

static void read_leet(sf_folder *folder, const sf_fold *f)
{
    uint32_t *codes = folder->codes;
    for (size_t i = 0, begin; i < folder->count; i++) {
        size_t letters = 0, leet = 0;
        for (begin = i; i < folder->count; i++) {
            if (is_any_letter(f, codes[i]))
                letters++;
            else if (leet_of(codes[i]))
                leet++;
            else if (codes[i] != '\'')
                break;
        }
        for (; letters >= 2 && leet && begin < i; begin++)
            if (leet_of(codes[begin])) codes[begin] = leet_of(codes[begin]);
    }
}

/* Whether a plain letter stands alone here. */
static int is_alone(const sf_folder *folder, const sf_fold *f, size_t i)
{
    if (i >= folder->count || !is_plain_letter(folder->codes[i])) return 0;
    for (int side = 0; side < 2; side++) {
        if (side ? i + 1 == folder->count : i == 0) continue;
        const uint32_t code = folder->codes[side ? i + 1 : i - 1];
        if (is_plain_letter(code) || code - '0' < 10 || code == '@' || code == '$' || code == '\'') return 0;
        if (code >= 0x80 && (properties_of(f, code) & (SF_FOLD_LETTER | SF_FOLD_CLASS | SF_FOLD_DIACRITIC))) return 0;
    }
    return 1;
}

/* A code and where it came from, to a place that is not behind its own. */
static void move(sf_folder *folder, size_t to, size_t from)
{
    folder->codes[to] = folder->codes[from];
    folder->origins[to] = folder->origins[from];
}

static int is_between(uint32_t code) { return code && code < 0x80 && strchr(" .-_*", (int)code) != NULL; }

static void join_spaced(sf_folder *folder, const sf_fold *f)
{
    uint32_t *codes = folder->codes;
    size_t out = 0;
    for (size_t i = 0; i < folder->count;) {
        size_t letters = 0;
        while (is_alone(folder, f, i + 2 * letters)) {
            letters++;
            if (i + 2 * letters >= folder->count || !is_between(codes[i + 2 * letters - 1])) break;
        }
        const size_t step = letters ? 2 * letters - 1 : 1, stride = letters >= 3 ? 2 : 1;
        for (size_t k = 0; k < step; k += stride) move(folder, out++, i + k);
        i += step;
    }
    folder->count = out;
}

static void shorten_repeats(sf_folder *folder)
{
    uint32_t *codes = folder->codes;
    size_t out = 0;
    for (size_t i = 0; i < folder->count; i++) {
        if (out >= 2 && is_plain_letter(codes[i]) && codes[out - 1] == codes[i] && codes[out - 2] == codes[i]) continue;
        move(folder, out++, i);
    }
    folder->count = out;
}

/* -------------------------------------------------------------------------- C */

static int write_text(sf_folder *folder, const sf_fold *f)
{
    uint32_t *codes = folder->codes;
    size_t out = 0;
    for (size_t i = 0; i < folder->count; i++) {
        const uint32_t whole = out ? composite_of(f, codes[out - 1], codes[i]) : 0;
        if (whole)
            codes[out - 1] = whole;
        else
            move(folder, out++, i);
    }
    folder->count = out;
    if (sf_buffer_reserve(&folder->text, 4 * out + 1) ||
        sf_grow(&folder->ends, &folder->end_capacity, out + 1, sizeof *folder->ends))
        return -1;
    char *bytes = folder->text.bytes;
    size_t length = 0;
    for (size_t i = 0; i < out; i++) {
        length += sf_utf8_encode(codes[i], bytes + length);
        folder->ends[i] = (uint32_t)length;
    }
    bytes[length] = '\0';
    folder->text.length = length;
    return 0;
}

/* 1: the text is ASCII that is mapped byte by byte, and none of it goes. 0: it is not. -1: no memory. */
static int fold_ascii(sf_folder *folder, const sf_fold *f, const char *text, size_t length)
{
    if (sf_buffer_reserve(&folder->text, length + 1)) return -1;
    char *out = folder->text.bytes;
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (byte >= 0x80 || f->ascii[byte] == ASCII_NONE) return 0;
        out[i] = (char)f->ascii[byte];
    }
    out[length] = '\0';
    folder->text.length = length;
    return 1;
}

int sf_folder_apply(sf_folder *folder, const sf_fold *f, const char *text, size_t length)
{
    sf_buffer_clear(&folder->text);
    folder->given = length;
    folder->direct = f->direct ? fold_ascii(folder, f, text, length) : 0;
    if (folder->direct) return folder->direct < 0 ? -1 : 0;
    if (read_codes(folder, f, text, length) || order_marks(folder, f)) return -1;
    if (f->head.steps & SF_FOLD_LEET) read_leet(folder, f);
    if (f->head.steps & SF_FOLD_SPACED) join_spaced(folder, f);
    if (f->head.steps & SF_FOLD_REPEATS) shorten_repeats(folder);
    return write_text(folder, f);
}

int sf_folder_keeps(sf_folder *folder, const sf_fold *f, const char *text, size_t length)
{
    if (sf_folder_apply(folder, f, text, length)) return -1;
    return folder->text.length == length && (!length || memcmp(folder->text.bytes, text, length) == 0);
}

size_t sf_folder_origin(const sf_folder *folder, size_t byte)
{
    size_t low = 0, high = folder->count;
    if (folder->direct) return byte;
    while (low < high) { /* the first code that ends behind it */
        const size_t middle = (low + high) / 2;
        if (folder->ends[middle] > byte)
            high = middle;
        else
            low = middle + 1;
    }
    return low < folder->count ? folder->origins[low] : folder->given;
}
