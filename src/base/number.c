/* Numbers as text, and arithmetic that rounds one way. */
#include "base/number.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* --------------------------------------------------------------- parsing */

static int is_digit(const char *p, const char *end) { return p < end && (unsigned)(*p - '0') < 10; }

/* Whether the text begins with a lower-case word, in any case. */
static int begins(const char *p, const char *end, const char *word)
{
    for (; *word; p++, word++)
        if (p >= end || (*p | 0x20) != *word) return 0;
    return 1;
}

/* The digits [p, end), with or without a point, times a power of ten; correctly rounded
 * however many there are. Two doubles and their middle differ within 767 digits, so one
 * digit that is not zero can stand for everything beyond. */
static double convert_slowly(const char *p, const char *end, int64_t exponent)
{
    enum { KEEP = 800 };
    char copy[KEEP + 32];
    int length = 0, fraction = 0, more = 0;
    for (; p < end; p++) {
        if (*p == '.') {
            fraction = 1;
        } else if (length == KEEP) {
            more |= *p != '0';
            exponent += !fraction;
        } else {
            if (length || *p != '0') copy[length++] = *p;
            exponent -= fraction;
        }
    }
    if (length == 0) return 0.0;
    if (more) {
        copy[length++] = '1';
        exponent--;
    }
    if (exponent > 9999) exponent = 9999;
    if (exponent < -9999) exponent = -9999;
    snprintf(copy + length, sizeof copy - (size_t)length, "e%d", (int)exponent);
    return strtod(copy, NULL); /* no point in it, so no locale matters */
}

const char *sf_parse_double(const char *text, const char *end, double *out)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *p = text;
    int negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;

    const char *first = p;
    uint64_t mantissa = 0;
    int64_t fraction = 0, shift = 0;
    for (; is_digit(p, end); p++) mantissa = mantissa * 10 + (unsigned)(*p - '0');
    int64_t digits = p - first;
    if (digits == 1 && mantissa == 0 && begins(p, end, "x")) return NULL;
    if (p < end && *p == '.') {
        const char *point = ++p;
        for (; is_digit(p, end); p++) mantissa = mantissa * 10 + (unsigned)(*p - '0');
        fraction = p - point;
        digits += fraction;
    }
    if (digits == 0) {
        int nan = begins(first, end, "nan"), inf = begins(first, end, "inf");
        if (!nan && !inf) return NULL;
        double word = nan ? (double)NAN : (double)INFINITY;
        *out = negative ? -word : word;
        return first + (begins(first, end, "infinity") ? 8 : 3);
    }
    const char *last = p;
    if (begins(p, end, "e")) {
        const char *q = p + 1;
        int minus = q < end && *q == '-';
        if (q < end && (*q == '-' || *q == '+')) q++;
        if (is_digit(q, end)) {
            for (; is_digit(q, end); q++)
                if (shift < INT64_C(1) << 56) shift = shift * 10 + (*q - '0');
            if (minus) shift = -shift;
            p = q;
        }
    }
    /* Exact when both the mantissa and the power are doubles: one rounding. */
    int64_t exponent = shift - fraction;
    double value;
    if (digits > 19 || mantissa > UINT64_C(1) << 53 || exponent < -22 || exponent > 22) {
        value = convert_slowly(first, last, shift);
    } else {
        value = (double)mantissa;
        value = exponent < 0 ? value / power[-exponent] : value * power[exponent];
    }
    *out = negative ? -value : value;
    return p;
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
    enum { DECIMALS = 1074 }; /* no double in [0,1] has more, and printf gives them all */
    char exact[DECIMALS + 32];
    assert(x >= 0 && x <= 1 && digits >= 0 && digits <= DECIMALS);
    int length = snprintf(exact, sizeof exact, "%.*f", DECIMALS, fabs(x));
    out[0] = exact[0];
    if (digits) { /* the last bytes are the decimals, whatever the locale puts before them */
        out[1] = '.';
        memcpy(out + 2, exact + length - DECIMALS, (size_t)digits);
    }
    out[digits ? digits + 2 : 1] = '\0';
}

/* --------------------------------------------------------------- the shortest form */

/* The first `count` digits of x > 0, rounded to the nearest: x is about 0.DIGITS times ten to the result. What
 * snprintf puts for the point depends on the locale, and is passed over. */
static int leading_digits(char *digits, double x, int count)
{
    char text[48];
    snprintf(text, sizeof text, "%.*e", count - 1, x);
    const char *exponent = strrchr(text, 'e');
    digits[0] = text[0];
    memcpy(digits + 1, exponent - (count - 1), (size_t)count - 1);
    digits[count] = '\0';
    return atoi(exponent + 1) + 1;
}

static int reads_back(const char *digits, int point, double x)
{
    char text[48];
    snprintf(text, sizeof text, "%se%d", digits, point - (int)strlen(digits));
    return strtod(text, NULL) == x; /* no point in it, so no locale matters */
}

/* The next larger number of as many digits; 0 when there is none. */
static int increment(char *digits)
{
    size_t i = strlen(digits);
    while (i > 0 && digits[i - 1] == '9') digits[--i] = '0';
    if (i > 0) digits[i - 1]++;
    return i > 0;
}

/* The fewest digits that read back as x > 0. Where x is normal, a number of at most 15 digits that does is what
 * x gives rounded to 15 digits, and zeros. A power of two has half as much room below it as above it: the
 * nearest number may fail below it, and the next one fit above it. */
static int shortest_digits(char *digits, double x)
{
    int exponent, point = 0;
    const int power = frexp(x, &exponent) == 0.5;
    for (int count = isnormal(x) ? 15 : 1; count <= 17; count++) {
        point = leading_digits(digits, x, count);
        if (reads_back(digits, point, x) || (power && increment(digits) && reads_back(digits, point, x))) break;
    }
    for (size_t length = strlen(digits); length > 1 && digits[length - 1] == '0';) digits[--length] = '\0';
    return point;
}

int sf_format_real(char *out, double x)
{
    char digits[24] = "0";
    if (!isfinite(x)) return -1;
    const int point = x == 0 ? 1 : shortest_digits(digits, fabs(x)), length = (int)strlen(digits);
    if (signbit(x)) *out++ = '-';
    if (point <= -4 || point > 16) /* 1.5e-05 */
        snprintf(out, SF_REAL_SIZE - 1, "%.1s%s%se%+03d", digits, length > 1 ? "." : "", digits + 1, point - 1);
    else if (point <= 0) /* 0.0015 */
        snprintf(out, SF_REAL_SIZE - 1, "0.%.*s%s", -point, "000", digits);
    else if (point < length) /* 1.5 */
        snprintf(out, SF_REAL_SIZE - 1, "%.*s.%s", point, digits, digits + point);
    else /* 150.0 */
        snprintf(out, SF_REAL_SIZE - 1, "%s%.*s.0", digits, point - length, "000000000000000");
    return 0;
}

int sf_compare_doubles(const void *left, const void *right)
{
    double p, q;
    memcpy(&p, left, sizeof p);
    memcpy(&q, right, sizeof q);
    return p < q ? -1 : p > q;
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
    /* fma gives the rounding error of the product; scaled up, so that the error of a tiny
     * product does not vanish. */
    return fma(a * 0x1p600, b, -product * 0x1p600) < 0 ? nextafter(product, 0.0) : product;
}

double sf_complement_up(double x)
{
    double y = 1.0 - x;
    return (1.0 - y) - x > 0 ? nextafter(y, 2.0) : y;
}

/* -------------------------------------------------------- whole numbers */

int sf_weight_multiply(sf_weight *weight, uint64_t factor)
{
    sf_weight product;
    if (__builtin_mul_overflow(*weight, (sf_weight)factor, &product)) return -1;
    *weight = product;
    return 0;
}

/* ------------------------------------------------------------- denormals */

void sf_flush_denormals(fenv_t *before)
{
    fegetenv(before);
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() | _MM_FLUSH_ZERO_ON | 0x0040); /* results, operands */
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | UINT64_C(1) << 24));
#endif
}

void sf_plain_arithmetic(fenv_t *before)
{
    fegetenv(before);
    fesetenv(FE_DFL_ENV);
}

/* -------------------------------------------------------------- rounding */

int sf_rounds_to_nearest(void)
{
    volatile double one = 1, tiny = 0x1p-60; /* at run time */
    return one + tiny == 1 && one - tiny == 1 && -one - tiny == -1;
}
