/* The table of a fold, made from its specification: forms, case, categories and classes as utf8proc has them,
 * look-alikes as scripts/unicode-lookalikes found them. docs/fold.md says what every step is for.
 *
 * The image of a code point is found by rewriting until nothing changes, so that H leaves alone what it has made; which
 * rule comes first matters: decomposition, then what is not seen, then look-alikes, then case (Greek capital eta looks
 * like H, small eta like n with a tail). */
#include "text/fold.h"

#include "base/memory.h"
#include "text/lookalikes_table.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

enum { LIMIT = 0x110000, MOST = 64, ROUNDS = 16, HANGUL = 0xac00, SYLLABLES = 11172, MARKED = 0x80 };

static const char *const NAMES[] = {"nfkc", "case", "ignorable", "marks", "lookalikes", "leet", "spaced", "repeats"};
enum { STEPS = sizeof NAMES / sizeof *NAMES };

/* --------------------------------------------------------------- specification */

safer_status sf_fold_spec_parse(uint32_t *steps, const char *spec, safer_error *error)
{
    uint32_t found = 0;
    if (strcmp(spec, "none") == 0) {
        *steps = 0;
        return SAFER_OK;
    }
    for (const char *p = spec;; p++) {
        const size_t length = strcspn(p, ",");
        uint32_t step = length == 8 && strncmp(p, "standard", 8) == 0 ? SF_FOLD_STANDARD : 0;
        for (size_t i = 0; i < STEPS; i++)
            if (strlen(NAMES[i]) == length && strncmp(p, NAMES[i], length) == 0) step = 1u << i;
        if (!step)
            return sf_fail(
                error, SAFER_INVALID,
                "`fold`: \"%s\" has a step \"%.*s\" (standard, nfkc, case, ignorable, marks, lookalikes, leet, "
                "spaced, repeats, separated by commas; or none)",
                spec, sf_clip(p, length, 40), p);
        found |= step;
        p += length;
        if (!*p) break;
    }
    if ((found & (SF_FOLD_MARKS | SF_FOLD_LOOKALIKES)) && !(found & SF_FOLD_NFKC))
        return sf_fail(error, SAFER_INVALID, "`fold`: marks and lookalikes need nfkc");
    *steps = found;
    return SAFER_OK;
}

void sf_fold_spec_write(char out[SF_FOLD_SPEC], uint32_t steps)
{
    size_t at = 0;
    out[0] = '\0';
    if (!steps) strcpy(out, "none");
    for (size_t i = 0; i < STEPS; i++)
        if (steps & 1u << i) at += (size_t)snprintf(out + at, SF_FOLD_SPEC - at, "%s%s", at ? "," : "", NAMES[i]);
}

const char *sf_fold_describe(safer_fold *out, const void *table, size_t length)
{
    const char *fault = sf_fold_open(&out->fold, table, length);
    if (fault) return fault;
    const uint32_t version = out->fold.head.unicode;
    snprintf(out->unicode, sizeof out->unicode, "%u.%u.%u", (unsigned)(version >> 16 & 0xffff),
             (unsigned)(version >> 8 & 0xff), (unsigned)(version & 0xff));
    sf_fold_spec_write(out->steps, out->fold.head.steps);
    return NULL;
}

/* ------------------------------------------------------------------ characters */

/* Marks that are written over letters of any script: the blocks of combining diacritics. */
static int is_diacritic(uint32_t c)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return (category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME) &&
           (c - 0x300 < 0x70 || c - 0x1ab0 < 0x50 || c - 0x1dc0 < 0x40 || c - 0x20d0 < 0x30 || c - 0xfe20 < 0x10);
}

/* Default_Ignorable_Code_Point, the places kept for more of them, controls, interlinear annotation. */
static int is_ignorable(uint32_t c)
{
    if (c < 0x80) return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
    return utf8proc_get_property((utf8proc_int32_t)c)->ignorable || (c - 0x80 < 0x20 && c != 0x85) ||
           c - 0x2060 < 0x10 || c - 0xfff0 < 0xc || c - 0xe0000 < 0x1000;
}

/* White space that is neither ASCII nor has a compatibility form, and the blank of Braille. */
static int is_blank(uint32_t c)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return c == 0x85 || c == 0x2800 ||
           (c >= 0x80 &&
            (category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP));
}

/* What a character looks like, or 0. */
static uint32_t lookalike_of(uint32_t c, uint32_t steps)
{
    size_t low = 0, high = sizeof sf_lookalikes / sizeof *sf_lookalikes;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const uint32_t entry = sf_lookalikes[middle];
        if (entry >> 8 == c) return (entry & MARKED) && !(steps & SF_FOLD_MARKS) ? 0 : entry & (MARKED - 1);
        if (entry >> 8 < c)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

uint32_t sf_fold_lookalike(unsigned char plain, size_t k)
{
    if ((plain | 0x20u) - 'a' >= 26) return 0;
    for (size_t i = 0; i < sizeof sf_lookalikes / sizeof *sf_lookalikes; i++)
        if ((sf_lookalikes[i] & 0xff) == plain && k-- == 0) return sf_lookalikes[i] >> 8;
    return 0;
}

static int is_latin(uint32_t c)
{
    for (size_t i = 0; i < sizeof sf_latin / sizeof *sf_latin; i++)
        if (c >= sf_latin[i][0] && c <= sf_latin[i][1]) return 1;
    return 0;
}

/* ---------------------------------------------------------------------- images */

static size_t decompose(uint32_t *out, uint32_t c, int options)
{
    utf8proc_int32_t parts[MOST];
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char((utf8proc_int32_t)c, parts, MOST, (utf8proc_option_t)options,
                                                           &boundary);
    if (count < 0 || count > MOST) {
        out[0] = c;
        return 1;
    }
    for (utf8proc_ssize_t i = 0; i < count; i++) out[i] = (uint32_t)parts[i];
    return (size_t)count;
}

/* One rule applied to one code point: the first that changes it. out has room for MOST. */
static size_t rewrite(uint32_t *out, uint32_t c, uint32_t steps)
{
    size_t count = 1;
    out[0] = c;
    if (steps & SF_FOLD_NFKC) {
        count = decompose(out, c, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
        if (count != 1 || out[0] != c) return count;
        if (is_blank(c)) {
            out[0] = ' ';
            return 1;
        }
    }
    if ((steps & SF_FOLD_IGNORABLE) && is_ignorable(c)) return 0;
    /* A mark stays one (the iota below would become a letter): else the order in which marks stand would matter. */
    if (utf8proc_get_property((utf8proc_int32_t)c)->combining_class) return 1;
    if ((steps & SF_FOLD_LOOKALIKES) && c >= 0x80 && (out[0] = lookalike_of(c, steps)) != 0) return 1;
    out[0] = c;
    if (steps & SF_FOLD_CASE) count = decompose(out, c, UTF8PROC_CASEFOLD);
    return count;
}

/* The image of a code point: rewritten until nothing changes. out has room for MOST. 0 when it comes to no rest. */
static int find_image(uint32_t *out, size_t *count, uint32_t c, uint32_t steps)
{
    out[0] = c;
    *count = 1;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t next[MOST], part[MOST];
        size_t made = 0;
        for (size_t i = 0; i < *count; i++) {
            const size_t parts = rewrite(part, out[i], steps);
            if (parts > MOST - made) return 0;
            memcpy(next + made, part, parts * sizeof *part);
            made += parts;
        }
        const int same = made == *count && (!made || memcmp(next, out, made * sizeof *out) == 0);
        memcpy(out, next, made * sizeof *out);
        *count = made;
        if (same) return 1;
    }
    return 0;
}

static uint32_t properties_of(uint32_t c, uint32_t steps, int dropped)
{
    if (c < 0x80) return dropped ? SF_FOLD_DROPPED : 0;
    const utf8proc_property_t *is = utf8proc_get_property((utf8proc_int32_t)c);
    uint32_t found = dropped ? SF_FOLD_DROPPED : 0;
    if (steps & SF_FOLD_NFKC) found |= (uint32_t)is->combining_class & SF_FOLD_CLASS;
    if ((steps & SF_FOLD_MARKS) && is_diacritic(c)) found |= SF_FOLD_DIACRITIC;
    if (is->category >= UTF8PROC_CATEGORY_LU && is->category <= UTF8PROC_CATEGORY_LO) {
        found |= SF_FOLD_LETTER;
        if ((steps & SF_FOLD_MARKS) && !is_latin(c)) found |= SF_FOLD_KEEPS;
    }
    return found;
}

/* ----------------------------------------------------------------------- table */

typedef struct draft {
    uint32_t steps;
    uint32_t *codes, *offsets, *images, *ranges, *pairs;
    size_t maps, image_count, range_count, pair_count;
    size_t code_capacity, offset_capacity, image_capacity, range_capacity, pair_capacity;
} draft;

static int add_map(draft *d, uint32_t c, const uint32_t *image, size_t count)
{
    if (sf_grow(&d->codes, &d->code_capacity, d->maps + 1, sizeof *d->codes) ||
        sf_grow(&d->offsets, &d->offset_capacity, d->maps + 2, sizeof *d->offsets) ||
        sf_grow(&d->images, &d->image_capacity, d->image_count + count, sizeof *d->images))
        return -1;
    d->codes[d->maps] = c;
    d->offsets[d->maps++] = (uint32_t)d->image_count;
    memcpy(d->images + d->image_count, image, count * sizeof *image);
    d->image_count += count;
    d->offsets[d->maps] = (uint32_t)d->image_count;
    return 0;
}

static int add_properties(draft *d, uint32_t c, uint32_t properties)
{
    uint32_t *last = d->range_count ? d->ranges + 3 * (d->range_count - 1) : NULL;
    if (!properties) return 0;
    if (last && last[1] + 1 == c && last[2] == properties) {
        last[1] = c;
        return 0;
    }
    if (sf_grow(&d->ranges, &d->range_capacity, 3 * (d->range_count + 1), sizeof *d->ranges)) return -1;
    last = d->ranges + 3 * d->range_count++;
    last[0] = last[1] = c;
    last[2] = properties;
    return 0;
}

static safer_status add_images(draft *d, safer_error *error)
{
    if (sf_grow(&d->offsets, &d->offset_capacity, 1, sizeof *d->offsets)) return sf_fail_memory(error);
    d->offsets[0] = 0;
    for (uint32_t c = 0; c < LIMIT; c++) {
        uint32_t image[MOST];
        size_t count = 1;
        if (c - 0xd800 < 0x800) continue;
        const int syllable = (d->steps & SF_FOLD_NFKC) && c - HANGUL < SYLLABLES;
        image[0] = c;
        if (!syllable && !find_image(image, &count, c, d->steps))
            return sf_fail(error, SAFER_INVALID, "`fold`: U+%04X comes to no rest under these steps", (unsigned)c);
        const int changed = count != 1 || image[0] != c;
        if ((changed && count && add_map(d, c, image, count)) ||
            add_properties(d, c, properties_of(c, d->steps, !count)))
            return sf_fail_memory(error);
    }
    return SAFER_OK;
}

/* The composites that are not excluded, in two parts: the last mark, and what composes of all before it. */
static int find_pair(uint32_t pair[3], uint32_t c)
{
    uint32_t parts[MOST];
    utf8proc_int32_t whole[MOST];
    const size_t count = decompose(parts, c, UTF8PROC_DECOMPOSE);
    if (count < 2) return 0;
    const utf8proc_option_t compose = (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (size_t i = 0; i < count; i++) whole[i] = (utf8proc_int32_t)parts[i];
    if (utf8proc_normalize_utf32(whole, (utf8proc_ssize_t)count, compose) != 1 || (uint32_t)whole[0] != c) return 0;
    for (size_t i = 0; i < count; i++) whole[i] = (utf8proc_int32_t)parts[i];
    if (utf8proc_normalize_utf32(whole, (utf8proc_ssize_t)count - 1, compose) != 1) return 0;
    pair[0] = (uint32_t)whole[0];
    pair[1] = parts[count - 1];
    pair[2] = c;
    return 1;
}

/* Whether C may make the composite: H takes it apart into the two, and M leaves the second where it is. */
static int is_usable(const uint32_t pair[3], uint32_t steps)
{
    uint32_t first[MOST], second[MOST], whole[MOST];
    size_t first_count, second_count, count;
    if (!find_image(first, &first_count, pair[0], steps) || !find_image(second, &second_count, pair[1], steps) ||
        !find_image(whole, &count, pair[2], steps))
        return 0;
    if (!first_count || second_count != 1 || second[0] != pair[1] || count != first_count + 1 ||
        whole[count - 1] != pair[1] || memcmp(whole, first, first_count * sizeof *first) != 0)
        return 0;
    return !(properties_of(pair[1], steps, 0) & SF_FOLD_DIACRITIC) ||
           (properties_of(first[0], steps, 0) & SF_FOLD_KEEPS);
}

static int compare_pairs(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    if (a[0] != b[0]) return a[0] < b[0] ? -1 : 1;
    return (a[1] > b[1]) - (a[1] < b[1]);
}

static safer_status add_pairs(draft *d, safer_error *error)
{
    for (uint32_t c = 0x80; (d->steps & SF_FOLD_NFKC) && c < LIMIT; c++) {
        uint32_t pair[3];
        if (c - 0xd800 < 0x800 || c - HANGUL < SYLLABLES || !find_pair(pair, c) || !is_usable(pair, d->steps)) continue;
        if (sf_grow(&d->pairs, &d->pair_capacity, 3 * (d->pair_count + 1), sizeof *d->pairs))
            return sf_fail_memory(error);
        memcpy(d->pairs + 3 * d->pair_count++, pair, sizeof pair);
    }
    if (d->pair_count) qsort(d->pairs, d->pair_count, 3 * sizeof *d->pairs, compare_pairs);
    return SAFER_OK;
}

/* "15.0.0" as a number. */
static uint32_t version_of(const char *text)
{
    unsigned major = 0, minor = 0, update = 0;
    sscanf(text, "%u.%u.%u", &major, &minor, &update);
    return major << 16 | minor << 8 | update;
}

safer_status sf_fold_build(sf_buffer *table, uint32_t steps, safer_error *error)
{
    safer_status status;
    draft d = {.steps = steps};
    sf_fold fold;
    const size_t begin = table->length;
    SF_TRY(add_images(&d, error));
    SF_TRY(add_pairs(&d, error));
    const sf_fold_head head = {.steps = steps,
                               .unicode = version_of(utf8proc_unicode_version()),
                               .lookalikes = steps & SF_FOLD_LOOKALIKES ? version_of(SF_LOOKALIKES_UNICODE) : 0,
                               .maps = (uint32_t)d.maps,
                               .images = (uint32_t)d.image_count,
                               .ranges = (uint32_t)d.range_count,
                               .pairs = (uint32_t)d.pair_count};
    if (sf_buffer_add(table, &head, sizeof head) || sf_buffer_add(table, d.codes, d.maps * sizeof *d.codes) ||
        sf_buffer_add(table, d.offsets, (d.maps + 1) * sizeof *d.offsets) ||
        sf_buffer_add(table, d.images, d.image_count * sizeof *d.images) ||
        sf_buffer_add(table, d.ranges, 3 * d.range_count * sizeof *d.ranges) ||
        sf_buffer_add(table, d.pairs, 3 * d.pair_count * sizeof *d.pairs)) {
        status = sf_fail_memory(error);
        goto done;
    }
    const char *fault = sf_fold_open(&fold, table->bytes + begin, table->length - begin);
    if (fault)
        status = sf_fail(error, SAFER_INVALID, "`fold`: %s (characters of Unicode %s)", fault,
                         utf8proc_unicode_version());
done:
    free(d.codes);
    free(d.offsets);
    free(d.images);
    free(d.ranges);
    free(d.pairs);
    return status;
}

/* -------------------------------------------------------------------- interface */

safer_status safer_fold_new(safer_fold **out, const char *steps, safer_error *error)
{
    safer_status status;
    uint32_t parsed = 0;
    safer_fold *fold = sf_calloc(1, sizeof *fold);
    if (!fold) return sf_fail_memory(error);
    SF_TRY(sf_fold_spec_parse(&parsed, steps, error));
    if (!parsed) {
        status = sf_fail(error, SAFER_INVALID, "`fold`: none");
        goto done;
    }
    SF_TRY(sf_fold_build(&fold->table, parsed, error));
    (void)sf_fold_describe(fold, fold->table.bytes, fold->table.length); /* as it was built */
    *out = fold;
    fold = NULL;
done:
    safer_fold_free(fold);
    return status;
}

void safer_fold_free(safer_fold *fold)
{
    if (!fold) return;
    sf_buffer_free(&fold->table);
    free(fold);
}

const char *safer_fold_steps(const safer_fold *fold) { return fold->steps; }
const char *safer_fold_unicode(const safer_fold *fold) { return fold->unicode; }

safer_status safer_fold_apply(const safer_fold *fold, const char *text, size_t length, safer_write write, void *context,
                              safer_error *error)
{
    sf_folder folder = {0};
    safer_status status = SAFER_OK;
    if (sf_folder_apply(&folder, &fold->fold, text, length))
        status = sf_fail_memory(error);
    else if (write(context, folder.text.bytes, folder.text.length))
        status = sf_fail(error, SAFER_CALLBACK, "the function that takes a folded text reported failure");
    sf_folder_free(&folder);
    return status;
}
