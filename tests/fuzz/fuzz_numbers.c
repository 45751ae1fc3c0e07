/* Any bytes as numbers: nothing beyond the end is read, and what is accepted is what strtod
 * makes of it, to the last bit and to the same place. What is refused strtod refuses too,
 * save space before a number and hexadecimal. */
#define _GNU_SOURCE
#include "fuzz.h"

#include "base/number.h"

#include <locale.h>
#include <math.h>

static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static void check_double(const char *exact, const char *terminated, size_t size)
{
    static locale_t c;
    if (!c) c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    require(c);
    char *stop;
    double value = 12345, expected = strtod_l(terminated, &stop, c);
    const char *end = sf_parse_double(exact, exact + size, &value);
    const char *digits = terminated + (*terminated == '-' || *terminated == '+');
    int hexadecimal = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    if (hexadecimal || is_space(terminated[0]) || stop == terminated) {
        require(!end && value == 12345);
        return;
    }
    require(end);
    if (isnan(expected)) { /* "nan(...)" is read up to the bracket */
        require(isnan(value) && !signbit(value) == !signbit(expected) && end - exact == digits - terminated + 3);
        return;
    }
    require(end - exact == stop - terminated && memcmp(&value, &expected, sizeof value) == 0);
}

static void check_integer(const char *terminated)
{
    uint64_t value = 77;
    size_t digits = strspn(terminated, "0123456789"), zeros = strspn(terminated, "0");
    int whole = digits > 0 && terminated[digits] == '\0';
    int fits = digits - zeros < 20 || (digits - zeros == 20 && strcmp(terminated + zeros, "18446744073709551615") <= 0);
    require((sf_to_uint64(terminated, &value) == 0) == (whole && fits));
    if (whole && fits) {
        char back[32];
        snprintf(back, sizeof back, "%llu", (unsigned long long)value);
        require(strcmp(back, digits == zeros ? "0" : terminated + zeros) == 0);
    } else {
        require(value == 77);
    }
}

__extension__ typedef unsigned __int128 wide;

/* Eight bytes as a double in [0, 1]: printed with d digits it is the integer part of
 * 10^d x, exactly. One-way products and complements are on their side of the plain ones. */
static void check_format(const uint8_t *data)
{
    double x;
    char text[32], expected[32];
    uint64_t bits, power = 1;
    memcpy(&x, data, sizeof x);
    memcpy(&bits, data, sizeof bits);
    if (!(x >= 0 && x <= 1) || signbit(x)) return;
    int digits = 1 + data[0] % 18, exponent = (int)(bits >> 52), shift = exponent ? 1075 - exponent : 1074;
    for (int i = 0; i < digits; i++) power *= 10;
    wide scaled = (wide)((bits & (UINT64_MAX >> 12)) | (uint64_t)(exponent != 0) << 52) * power;
    uint64_t cut = shift < 128 ? (uint64_t)(scaled >> shift) : 0;
    snprintf(expected, sizeof expected, "%d.%0*llu", (int)(cut / power), digits, (unsigned long long)(cut % power));
    sf_format_down(text, x, digits);
    require(strcmp(text, expected) == 0);
    require(sf_complement_up(x) >= 1 - x && sf_multiply_down(x, x) <= x * x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *exact = fuzz_copy(data, size), *terminated = malloc(size + 1);
    require(terminated);
    if (size) memcpy(terminated, data, size);
    terminated[size] = '\0';
    check_double(exact, terminated, size);
    check_integer(terminated);
    if (size >= 8) check_format(data);
    free(exact);
    free(terminated);
    return 0;
}
