/* Characters as the `tokenizers` library sees them.
 *
 * Its categories are those of Unicode 8: punctuation, marks and format characters that
 * came later are ordinary characters to it. Its decompositions are those of Unicode 9, its
 * small letters those of Unicode 17. utf8proc has one version for all three (15 in its 2.8),
 * so the differences are listed here, for any version up to 17. They were found by comparing
 * every code point (scripts/compare-tokenizer). */
#include "text/wordpiece_parts.h"

#include <utf8proc.h>

typedef struct range {
    uint32_t first, last;
} range;

/* Marks, punctuation and format characters of Unicode 9 to 17. Whatever else lies in these
 * ranges is not one of the three in any version. */
static const range young[] = {
    {0x61d, 0x61d},     {0x7fd, 0x7fd},     {0x890, 0x8e2},     {0x9fd, 0x9fe},     {0xa76, 0xa76},
    {0xafa, 0xaff},     {0xb55, 0xb55},     {0xc04, 0xc3c},     {0xc77, 0xc77},     {0xc84, 0xc84},
    {0xd00, 0xd00},     {0xd3b, 0xd3c},     {0xd81, 0xd81},     {0xeba, 0xeba},     {0xece, 0xece},
    {0x180f, 0x1886},   {0x1abf, 0x1aeb},   {0x1b4e, 0x1b4f},   {0x1b7d, 0x1b7f},   {0x1df6, 0x1dfb},
    {0x2e43, 0x2e5d},   {0xa82c, 0xa82c},   {0xa8c5, 0xa8c5},   {0xa8ff, 0xa8ff},   {0xa9bd, 0xa9bd},
    {0x10d24, 0x10f89}, {0x11070, 0x11074}, {0x110c2, 0x110cd}, {0x111cf, 0x111cf}, {0x1123e, 0x11241},
    {0x1133b, 0x1133b}, {0x113bb, 0x1145e}, {0x11660, 0x1166c}, {0x116b9, 0x116b9}, {0x1182f, 0x11fff},
    {0x12ff1, 0x1612f}, {0x16d6d, 0x16f4f}, {0x16fe2, 0x16fe4}, {0x1cf00, 0x1cf46}, {0x1e000, 0x1e6f5},
    {0x1e944, 0x1e95f},
};

/* Whether the ranges, in rising order, hold the character. */
static int holds(const range *ranges, size_t count, uint32_t code)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (code > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && code >= ranges[low].first;
}

#define HOLDS(ranges, code) holds(ranges, sizeof(ranges) / sizeof *(ranges), code)

static utf8proc_category_t category_of(uint32_t code) { return utf8proc_category((utf8proc_int32_t)code); }

int sf_bert_is_space(uint32_t code)
{
    if (code < 0x80) return code == ' ' || code - '\t' < 5;
    return code == 0x85 || code == 0xa0 || code == 0x1680 || code - 0x2000 < 11 || code == 0x2028 || code == 0x2029 ||
           code == 0x202f || code == 0x205f || code == 0x3000;
}

int sf_bert_is_control(uint32_t code)
{
    if (code < 0x80) return (code < 0x20 && code != '\t' && code != '\n' && code != '\r') || code == 0x7f;
    if (code == 0xfffd) return 1;
    utf8proc_category_t category = category_of(code);
    return (category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO) &&
           !HOLDS(young, code);
}

int sf_bert_is_punctuation(uint32_t code)
{
    if (code < 0x80) return code - '!' < 15 || code - ':' < 7 || code - '[' < 6 || code - '{' < 4;
    if (code == 0x166d || code == 0x111c9) return 1; /* later a symbol, a mark */
    utf8proc_category_t category = category_of(code);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO && !HOLDS(young, code);
}

int sf_bert_is_mark(uint32_t code)
{
    if (code < 0x300) return 0;
    if (code == 0x1734 || code == 0x1171e) return 1; /* later spacing marks */
    return category_of(code) == UTF8PROC_CATEGORY_MN && code != 0x111c9 && !HOLDS(young, code);
}

int sf_bert_is_ideograph(uint32_t code)
{
    static const range ideographs[] = {
        {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
        {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f},
    };
    return code >= 0x3400 && HOLDS(ideographs, code);
}

int sf_bert_is_word(uint32_t code)
{
    static const range circled[] = {{0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
    switch (category_of(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return 1;
    default: return code == 0x200c || code == 0x200d || HOLDS(circled, code);
    }
}

unsigned sf_bert_combining(uint32_t code)
{
    /* Marks of Unicode 10 and later, which it does not move. */
    static const range unmoved[] = {
        {0x7fd, 0x7fd},     {0x897, 0x8d3},     {0x9fe, 0x9fe},     {0xc3c, 0xc3c},     {0xd3b, 0xd3c},
        {0xeba, 0xeba},     {0x1715, 0x1715},   {0x1abf, 0x1aeb},   {0x1df6, 0x1dfa},   {0xa82c, 0xa82c},
        {0x10d24, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x113ce, 0x113d0}, {0x1145e, 0x1145e},
        {0x11839, 0x11a99}, {0x11d42, 0x11f42}, {0x1612f, 0x1612f}, {0x16ff0, 0x16ff1}, {0x1e08f, 0x1e6f5},
    };
    if (code < 0x300) return 0;
    int class = utf8proc_get_property((utf8proc_int32_t)code)->combining_class;
    return class && HOLDS(unmoved, code) ? 0 : (unsigned)class;
}

int sf_bert_undivided(uint32_t code)
{
    /* Of Unicode 10 and later. */
    static const range undivided[] = {
        {0x105c9, 0x105c9}, {0x105e4, 0x105e4}, {0x11383, 0x113c8},
        {0x11938, 0x11938}, {0x16121, 0x16128}, {0x16d68, 0x16d6a},
    };
    return code >= 0x105c9 && HOLDS(undivided, code);
}

size_t sf_bert_decompose(uint32_t out[SF_BERT_DECOMPOSED], uint32_t code)
{
    utf8proc_int32_t points[SF_BERT_DECOMPOSED];
    int boundary = 0;
    out[0] = code;
    if (code < 0xc0 || sf_bert_undivided(code)) return 1;
    utf8proc_ssize_t count = utf8proc_decompose_char((utf8proc_int32_t)code, points, SF_BERT_DECOMPOSED,
                                                     UTF8PROC_DECOMPOSE, &boundary);
    if (count < 1 || count > SF_BERT_DECOMPOSED) return 1;
    for (utf8proc_ssize_t i = 0; i < count; i++) out[i] = (uint32_t)points[i];
    return (size_t)count;
}

size_t sf_bert_lower(uint32_t out[SF_BERT_LOWERED], uint32_t code)
{
    /* Letters of Unicode 16 and 17. */
    static const struct {
        uint32_t first, last, small;
    } young_letters[] = {
        {0x1c89, 0x1c89, 0x1c8a},    {0xa7cb, 0xa7cb, 0x264},     {0xa7cc, 0xa7cc, 0xa7cd}, {0xa7ce, 0xa7ce, 0xa7cf},
        {0xa7d2, 0xa7d2, 0xa7d3},    {0xa7d4, 0xa7d4, 0xa7d5},    {0xa7da, 0xa7da, 0xa7db}, {0xa7dc, 0xa7dc, 0x19b},
        {0x10d50, 0x10d65, 0x10d70}, {0x16ea0, 0x16eb8, 0x16ebb},
    };
    if (code < 0x80) {
        out[0] = code - 'A' < 26 ? code | 0x20 : code;
        return 1;
    }
    if (code == 0x130) { /* the one letter whose small form takes two characters */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
    if (out[0] == code && code >= 0x1c89)
        for (size_t i = 0; i < sizeof young_letters / sizeof *young_letters; i++)
            if (code >= young_letters[i].first && code <= young_letters[i].last)
                out[0] = young_letters[i].small + (code - young_letters[i].first);
    return 1;
}
