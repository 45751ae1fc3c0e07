/* The `charcnn` classifier: codes of characters. */
#include "model/charcnn_codes.h"

#include "text/unicode.h"

/* In the paper's order. */
static const uint8_t alphabet[128] = {
    ['a'] = 1,  ['b'] = 2,   ['c'] = 3,  ['d'] = 4,  ['e'] = 5,  ['f'] = 6,   ['g'] = 7,  ['h'] = 8,   ['i'] = 9,
    ['j'] = 10, ['k'] = 11,  ['l'] = 12, ['m'] = 13, ['n'] = 14, ['o'] = 15,  ['p'] = 16, ['q'] = 17,  ['r'] = 18,
    ['s'] = 19, ['t'] = 20,  ['u'] = 21, ['v'] = 22, ['w'] = 23, ['x'] = 24,  ['y'] = 25, ['z'] = 26,  ['0'] = 27,
    ['1'] = 28, ['2'] = 29,  ['3'] = 30, ['4'] = 31, ['5'] = 32, ['6'] = 33,  ['7'] = 34, ['8'] = 35,  ['9'] = 36,
    ['-'] = 37, [','] = 38,  [';'] = 39, ['.'] = 40, ['!'] = 41, ['?'] = 42,  [':'] = 43, ['\''] = 44, ['"'] = 45,
    ['/'] = 46, ['\\'] = 47, ['|'] = 48, ['_'] = 49, ['@'] = 50, ['#'] = 51,  ['$'] = 52, ['%'] = 53,  ['^'] = 54,
    ['&'] = 55, ['*'] = 56,  ['~'] = 57, ['`'] = 58, ['+'] = 59, ['='] = 60,  ['<'] = 61, ['>'] = 62,  ['('] = 63,
    [')'] = 64, ['['] = 65,  [']'] = 66, ['{'] = 67, ['}'] = 68, ['\n'] = 69,
};

uint8_t sf_charcnn_code(uint32_t character)
{
    character = sf_lower(character);
    return character < 128 ? alphabet[character] : 0;
}

size_t sf_charcnn_encode(uint8_t *codes, const char *text, size_t length, size_t limit)
{
    const char *p = text, *end = text + length;
    size_t count = 0;
    for (; p < end && count < limit; count++) {
        uint32_t character;
        size_t step = sf_utf8_decode(p, end, &character);
        codes[count] = step ? sf_charcnn_code(character) : 0;
        p += step ? step : 1;
    }
    return count;
}

size_t sf_charcnn_characters(const char *text, size_t length)
{
    const char *p = text, *end = text + length;
    size_t count = 0;
    for (; p < end; count++) {
        uint32_t character;
        size_t step = sf_utf8_decode(p, end, &character);
        p += step ? step : 1;
    }
    return count;
}
