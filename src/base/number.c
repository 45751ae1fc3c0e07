/* Numbers as text, and arithmetic that rounds one way. */
#define _GNU_SOURCE
#include "base/number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- parsing */

/* Anything unusual: many digits, large exponents, nan, inf. `length` bytes at most. */
static const char *parse_slowly(const char *text, size_t length, double *out)
{
    char copy[512];
    if (length >= sizeof copy) length = sizeof copy - 1;
    memcpy(copy, text, length);
    copy[length] = '\0';
    const char *digits = copy + (copy[0] == '-' || copy[0] == '+');
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) return NULL;
    if (copy[0] == ' ' || (copy[0] >= '\t' && copy[0] <= '\r')) return NULL;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0) return NULL;
    char *stop;
    *out = strtod_l(copy, &stop, c);
    freelocale(c);
    return stop == copy ? NULL : text + (stop - copy);
}

const char *sf_parse_double(const char *text, const char *end, double *out)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *p = text;
    int negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;

    uint64_t mantissa = 0;
    int digits = 0, exponent = 0;
    for (; p < end && (unsigned)(*p - '0') < 10; p++, digits++) mantissa = mantissa * 10 + (unsigned)(*p - '0');
    if (p < end && *p == '.') {
        const char *point = ++p;
        for (; p < end && (unsigned)(*p - '0') < 10; p++) mantissa = mantissa * 10 + (unsigned)(*p - '0');
        exponent = -(int)(p - point < 1000 ? p - point : 1000);
        digits += -exponent;
    }
    if (digits == 0 || digits > 19) return parse_slowly(text, (size_t)(end - text), out);
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        int minus = q < end && *q == '-', value = 0;
        if (q < end && (*q == '-' || *q == '+')) q++;
        if (q < end && (unsigned)(*q - '0') < 10) {
            for (; q < end && (unsigned)(*q - '0') < 10; q++)
                if (value < 10000) value = value * 10 + (*q - '0');
            exponent += minus ? -value : value;
            p = q;
        }
    }
    /* Exact when both the mantissa and the power are doubles: one rounding. */
    if (mantissa > UINT64_C(1) << 53 || exponent < -22 || exponent > 22)
        return parse_slowly(text, (size_t)(end - text), out);
    double value = (double)mantissa;
    value = exponent < 0 ? value / power[-exponent] : value * power[exponent];
    *out = negative ? -value : value;
    return p;
}

int sf_to_double(const char *text, double *out)
{
    const char *end = text + strlen(text);
    return *text && sf_parse_double(text, end, out) == end ? 0 : -1;
}

int sf_to_uint64(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    if (!*text) return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return -1;
    }
    *out = value;
    return 0;
}

void sf_format_down(char *out, double x, int digits)
{
    char exact[1100]; /* a double in [0,1] has at most 1074 decimals, and printf gives them all */
    int length = snprintf(exact, sizeof exact, "%.1074f", x);
    for (int i = 0; i < length; i++)
        if (exact[i] == ',') exact[i] = '.';
    size_t keep = (size_t)digits + 2;
    memcpy(out, exact, keep);
    out[digits ? keep : 1] = '\0';
}

/* ---------------------------------------------------- one-way arithmetic */

__extension__ typedef unsigned __int128 wide;

double sf_ratio_down(uint64_t numerator, uint64_t denominator)
{
    if (numerator == 0) return 0.0;
    /* Shift the numerator so that the quotient has 53 or 54 bits, divide in integers
     * (which cuts), and cut to 53: the result is a double and at most the ratio. */
    int shift = 53 - (63 - __builtin_clzll(numerator)) + (63 - __builtin_clzll(denominator));
    wide n = shift >= 0 ? (wide)numerator << shift : (wide)numerator;
    wide d = shift >= 0 ? (wide)denominator : (wide)denominator << -shift;
    uint64_t quotient = (uint64_t)(n / d);
    while (quotient >> 53) {
        quotient >>= 1;
        shift--;
    }
    return ldexp((double)quotient, -shift);
}

double sf_multiply_down(double a, double b)
{
    double product = a * b;
    /* fma gives the rounding error of the product exactly. */
    return fma(a, b, -product) < 0 ? nextafter(product, 0.0) : product;
}

double sf_complement_up(double x)
{
    double y = 1.0 - x;
    return (1.0 - y) - x > 0 ? nextafter(y, 2.0) : y;
}
