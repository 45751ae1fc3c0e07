/* Numbers: parsing against strtod, printing and one-way arithmetic against exact integers. What is rounded must be
 * rounded to the promised side, and be no further away than one step. */
#define _GNU_SOURCE
#include "support.h"

#include "base/number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

__extension__ typedef unsigned __int128 wide;

static uint64_t random_state = 88172645463325252u;
static uint64_t random64(void) /* xorshift64*; has nothing to do with base/rng */
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * UINT64_C(2685821657736338717);
}
static unsigned random_below(unsigned bound) { return (unsigned)((random64() >> 32) * bound >> 32); }

/* The whole of a string as a number, or -1. */
static int to_double(const char *text, double *out)
{
    const char *end = text + strlen(text);
    return sf_parse_double(text, end, out) == end ? 0 : -1;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---------------------------------------------------------------- parsing */

/* Same value, same place to stop, from a copy that ends where the string does (the
 * sanitizer sees a read beyond). The C locale is in force. */
static void check_parse(const char *text)
{
    size_t length = strlen(text);
    char *exact = malloc(length ? length : 1), *stop;
    assert_non_null(exact);
    memcpy(exact, text, length);
    double expected = strtod(text, &stop), value = 12345;
    const char *end = sf_parse_double(exact, exact + length, &value);
    if (stop == text) {
        if (end || value != 12345) fail_msg("\"%s\" is no number", text);
    } else if (!end || end - exact != stop - text ||
               (isnan(expected) ? !isnan(value) : bits_of(value) != bits_of(expected))) {
        fail_msg("\"%.200s\": %a, not %a; stopped after %td bytes, not %td", text, value, expected,
                 end ? end - exact : -1, stop - text);
    }
    free(exact);
}

static void test_parse_known(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0",
        "+0",
        "1",
        "+1",
        "-1",
        "1.",
        "-.5",
        "+.5",
        ".5",
        ".",
        "-",
        "+",
        "",
        "+-1",
        "--1",
        "-.",
        "1e",
        "1e+",
        "1e-",
        "1E5",
        "1e+5",
        "1e-5",
        "1e05",
        "1.5e3x",
        "e5",
        ".e5",
        "1..2",
        "1.2.3",
        "1,5",
        "1_000",
        "12abc",
        "00012",
        "007.50",
        "nan",
        "NaN",
        "-nan",
        "NAN",
        "inf",
        "INF",
        "-inf",
        "+infinity",
        "Infinity",
        "infinit",
        "in",
        "na",
        "n",
        "i",
        "1e400",
        "-1e400",
        "1e-400",
        "-1e-400",
        "1e308",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "5e-324",
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "3e-324",
        "9007199254740992",
        "9007199254740993",
        "9007199254740994",
        "9007199254740995",
        "18014398509481985",
        "9223372036854775807",
        "18446744073709551615",
        "18446744073709551616",
        "9999999999999999999",
        "99999999999999999999",
        "1e22",
        "1e23",
        "123456789012345e8",
        "0.1",
        "0.2",
        "0.3",
        "0.30000000000000004",
        "1e-22",
        "1e-23",
        "8.5e22",
        "1e10000",
        "1e-10000",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0e99999999999999999999",
        "1e2147483648",
        "1e-2147483649",
        "0.000000000000000000000000000001",
        "100000000000000000000000000000",
        "179769313486231580793728971405301e276",
        "1e5e5",
        "1 2",
        "3\n",
        "-0e5",
        "-0.0e-5",
        "0.000",
        "6.02214076e23",
        "\xef\xbc\x91",
        "٣",
    };
    for (size_t i = 0; i < COUNT(texts); i++) check_parse(texts[i]);

    /* The exact middle of two neighbours needs all its digits, up to 767 of them; a little
     * less and a little more fall to either side. */
    char text[2000];
    for (int i = 0; i < 300; i++) {
        uint64_t exponent = i % 3 ? random_below(2) : random_below(1100);
        double x = from_bits((random64() >> 12) | exponent << 52);
        long double middle = (long double)x + ((long double)nextafter(x, 2) - (long double)x) / 2;
        int length = snprintf(text, sizeof text, "%.1075Lf", middle);
        check_parse(text);
        strcpy(text + length, "00000000000001");
        check_parse(text);
        text[length] = '\0';
        char *last = text + length - 1;
        while (*last == '0') last--;
        --*last;
        check_parse(text);
    }
}

/* Unlike strtod: no space before, no hexadecimal, nothing after nan. */
static void test_parse_refused(void **state)
{
    (void)state;
    static const char *const refused[] = {" 1", "\t1", "\n1",  "0x10", "-0x10", "+0X1p3",
                                          "0x", "0xg", "0x.8", " ",    "- 1"};
    for (size_t i = 0; i < COUNT(refused); i++) {
        double value = 12345;
        assert_null(sf_parse_double(refused[i], refused[i] + strlen(refused[i]), &value));
        assert_true(value == 12345);
        assert_int_equal(to_double(refused[i], &value), -1);
    }
    double value;
    const char *text = "nan(1)";
    assert_ptr_equal(sf_parse_double(text, text + 6, &value), text + 3);
    assert_true(isnan(value));
    text = "00x10"; /* a decimal 0, then something else */
    assert_ptr_equal(sf_parse_double(text, text + 5, &value), text + 2);
    /* It stops at the end, not at the end of the number. */
    text = "123.5e7";
    static const double parts[] = {0, 1, 12, 123, 123, 123.5, 123.5, 123.5e7};
    for (size_t n = 1; n < COUNT(parts); n++) {
        assert_ptr_equal(sf_parse_double(text, text + n, &value), text + (n == 6 ? 5 : n));
        assert_true(value == parts[n]);
    }
    assert_null(sf_parse_double(text, text, &value));
    text = "1\0002"; /* a NUL is a byte like others */
    assert_ptr_equal(sf_parse_double(text, text + 3, &value), text + 1);
}

/* A decimal string of one of many shapes. */
static void random_decimal(char *out)
{
    static const char *const exponents[] = {"e", "E", "e+", "e-", "E-"};
    char *p = out;
    unsigned shape = random_below(100);
    unsigned before = shape < 60   ? random_below(8)
                      : shape < 90 ? random_below(25)
                      : shape < 99 ? random_below(60)
                                   : random_below(500);
    unsigned after = shape < 60   ? random_below(8)
                     : shape < 90 ? random_below(25)
                     : shape < 99 ? random_below(60)
                                  : random_below(900);
    if (random_below(3) == 0) *p++ = "+-"[random_below(2)];
    int zeros = random_below(8) == 0; /* long runs of zeros or nines are the hard ones */
    int nines = random_below(8) == 0;
    for (unsigned i = 0; i < before; i++)
        *p++ = (char)(zeros && i > 2 ? '0' : nines ? '9' : (char)('0' + random_below(10)));
    if (random_below(3)) {
        *p++ = '.';
        for (unsigned i = 0; i < after; i++)
            *p++ = (char)(zeros && i + 2 < after ? '0' : nines ? '9' : (char)('0' + random_below(10)));
    }
    if (random_below(2)) {
        unsigned size = random_below(10);
        p += sprintf(p, "%s%u", exponents[random_below(5)],
                     size < 4   ? random_below(25)
                     : size < 9 ? random_below(345)
                                : random_below(2000));
    }
    if (random_below(20) == 0) *p++ = "eE.+-x, \tn"[random_below(10)];
    *p = '\0';
}

static void test_parse_random(void **state)
{
    (void)state;
    char text[2000];
    for (int i = 0; i < 700000; i++) {
        random_decimal(text);
        if (strpbrk(text, "x") && strstr(text, "0x")) continue; /* hexadecimal is tested above */
        check_parse(text);
    }
    /* Every double comes back from 17 digits, and from the shortest odd forms. */
    for (int i = 0; i < 300000; i++) {
        double x = from_bits(random64()), value;
        if (!isfinite(x)) continue;
        if (i % 3 == 0) x = from_bits(random64() & UINT64_C(0x800fffffffffffff)); /* denormal */
        int length = snprintf(text, sizeof text, i % 2 ? "%.17g" : "%.16e", x);
        assert_ptr_equal(sf_parse_double(text, text + length, &value), text + length);
        if (bits_of(value) != bits_of(x)) fail_msg("%s: %a, not %a", text, value, x);
        assert_int_equal(to_double(text, &value), 0);
        assert_true(bits_of(value) == bits_of(x));
    }
}

/* Longer than any buffer: the number is read whole. */
static void test_parse_long(void **state)
{
    (void)state;
    enum { N = 5000 };
    static char text[N + 64];
    for (int i = 0; i < 300; i++) {
        size_t zeros = random_below(N - 1500), digits = 1 + random_below(1400);
        char *p = text + sprintf(text, "0.");
        memset(p, '0', zeros);
        p += zeros;
        for (size_t k = 0; k < digits; k++) *p++ = (char)('0' + random_below(10));
        sprintf(p, "e%zu", zeros - (zeros < 300 ? 0 : random_below(300)));
        check_parse(text);
        p = text + sprintf(text, "%u", 1 + random_below(9));
        for (size_t k = 0; k < digits; k++) *p++ = (char)('0' + random_below(10));
        memset(p, '0', zeros);
        p += zeros;
        sprintf(p, "e-%zu", zeros + random_below(1500));
        check_parse(text);
    }
    /* The middle of 1 and the next double, then a 1 very far away: up, not to even. */
    double value;
    char *p = text + sprintf(text, "1.00000000000000011102230246251565404236316680908203125");
    memset(p, '0', 4000);
    p[4000] = '\0';
    assert_int_equal(to_double(text, &value), 0);
    assert_true(value == 1);
    strcpy(p + 4000, "1");
    assert_int_equal(to_double(text, &value), 0);
    assert_true(value == 0x1.0000000000001p0);
    /* An exponent that the leading zeros undo. */
    memset(text, '0', 3000);
    memcpy(text, "0.", 2);
    strcpy(text + 3000, "25e2999"); /* 2998 zeros after the point */
    assert_int_equal(to_double(text, &value), 0);
    assert_true(value == 2.5);
    memset(text, '0', 3000);
    strcpy(text + 3000, "7");
    assert_int_equal(to_double(text, &value), 0);
    assert_true(value == 7);
}

static void test_to_numbers(void **state)
{
    (void)state;
    static const char *const not_whole[] = {"",    "1 ", " 1",   "1x",  "1e",   "1e+",
                                            "--1", ".",  "0x10", "1,5", "nan ", "inf1"};
    double value;
    for (size_t i = 0; i < COUNT(not_whole); i++) assert_int_equal(to_double(not_whole[i], &value), -1);
    assert_int_equal(to_double("-2.5e1", &value), 0);
    assert_true(value == -25);
    assert_int_equal(to_double("inf", &value), 0);
    assert_true(isinf(value));

    static const char *const not_integers[] = {"",
                                               "-1",
                                               "+1",
                                               " 1",
                                               "1 ",
                                               "1.",
                                               "0x1",
                                               "18446744073709551616",
                                               "a",
                                               "99999999999999999999",
                                               "184467440737095516150"};
    uint64_t integer = 5;
    for (size_t i = 0; i < COUNT(not_integers); i++) assert_int_equal(sf_to_uint64(not_integers[i], &integer), -1);
    assert_int_equal(integer, 5); /* written on success only */
    assert_int_equal(sf_to_uint64("18446744073709551615", &integer), 0);
    assert_true(integer == UINT64_MAX);
    assert_int_equal(sf_to_uint64("0000", &integer), 0);
    assert_true(integer == 0);
    assert_int_equal(sf_to_uint64("00000000000000000000000042", &integer), 0);
    assert_true(integer == 42);
}

/* ---------------------------------------------------------------- locales */

static void check_in_locale(void)
{
    double value;
    char text[16];
    assert_int_equal(to_double("1234.5", &value), 0);
    assert_true(value == 1234.5);
    assert_int_equal(to_double("0.1000000000000000055511151231257827021181583404541015625", &value), 0);
    assert_true(value == 0.1);
    assert_int_equal(to_double("1.5e300", &value), 0);
    assert_true(value == 1.5e300);
    assert_int_equal(to_double("1,5", &value), -1);
    assert_int_equal(to_double("1,5e300", &value), -1);
    assert_int_equal(to_double("nan", &value), 0);
    sf_format_down(text, 0.9876, 3);
    assert_string_equal(text, "0.987");
    sf_format_down(text, 1, 2);
    assert_string_equal(text, "1.00");
}

/* With a decimal comma, and with a decimal sign of two bytes (as in Pashto). Locales are
 * rarely installed where tests run; localedef can make small ones. */
static void test_locales(void **state)
{
    (void)state;
    static const struct {
        const char *installed, *made, *point;
    } locales[] = {{"de_DE.UTF-8", "comma.UTF-8", "<U002C>"}, {"ps_AF.UTF-8", "momayyez.UTF-8", "<U066B>"}};
    for (size_t i = 0; i < COUNT(locales); i++) {
        if (!setlocale(LC_NUMERIC, locales[i].installed)) {
            char source[200], command[1500];
            const char *folder = temporary("locales");
            int length = snprintf(source, sizeof source,
                                  "LC_NUMERIC\ndecimal_point \"%s\"\nthousands_sep \"\"\ngrouping -1\nEND LC_NUMERIC\n",
                                  locales[i].point);
            mkdir(folder, 0777);
            snprintf(command, sizeof command, "localedef -c -i '%s' -f UTF-8 '%s/%s' >/dev/null 2>&1",
                     write_temporary("locale", source, (size_t)length), folder, locales[i].made);
            int code = system(command); /* 1: made, and it complains of what is not in it */
            setenv("LOCPATH", folder, 1);
            const char *set = code == -1 ? NULL : setlocale(LC_NUMERIC, locales[i].made);
            unsetenv("LOCPATH");
            if (!set) {
                printf("skipped: no locale %s, and no localedef to make one\n", locales[i].installed);
                continue;
            }
        }
        char point[16];
        snprintf(point, sizeof point, "%.1f", 0.5);
        assert_string_not_equal(point, "0.5");
        check_in_locale();
        setlocale(LC_NUMERIC, "C");
    }
}

static int back_to_c(void **state)
{
    (void)state;
    return setlocale(LC_ALL, "C") ? 0 : -1;
}

/* --------------------------------------------------------------- printing */

/* x = mantissa / 2^shift for x in [0, 1]. */
static uint64_t split(double x, int *shift)
{
    uint64_t bits = bits_of(x), mantissa = bits & (UINT64_MAX >> 12);
    int exponent = (int)(bits >> 52 & 0x7ff);
    *shift = exponent ? 1075 - exponent : 1074;
    return exponent ? mantissa | UINT64_C(1) << 52 : mantissa;
}

static void check_format(double x, int digits)
{
    char text[64], expected[64];
    uint64_t power = 1;
    int shift;
    for (int i = 0; i < digits; i++) power *= 10;
    wide scaled = (wide)split(x, &shift) * power; /* below 2^53 * 10^18 < 2^113 */
    uint64_t cut = shift < 128 ? (uint64_t)(scaled >> shift) : 0;
    if (digits)
        snprintf(expected, sizeof expected, "%d.%0*llu", (int)(cut / power), digits, (unsigned long long)(cut % power));
    else
        snprintf(expected, sizeof expected, "%d", (int)cut);
    memset(text, 'Z', sizeof text);
    sf_format_down(text, x, digits);
    if (strcmp(text, expected) != 0) fail_msg("%a with %d digits: %s, not %s", x, digits, text, expected);
    assert_int_equal(text[digits + 3], 'Z'); /* and no byte more than digits + 3 */
}

static void test_format_down(void **state)
{
    (void)state;
    static const double special[] = {0,       1,     0.5,    0.1,    0.2,    0.3,       0.7,       0.25,
                                     0.99,    0.999, 0.9999, 0.01,   0.95,   0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp-1,
                                     0x1p-53, 1e-18, 1e-17,  1e-300, 0.8735, 0.9135};
    for (int digits = 0; digits <= 18; digits++) {
        for (size_t i = 0; i < COUNT(special); i++) check_format(special[i], digits);
        for (int i = 0; i < 1000; i++) {
            check_format((double)(random64() >> 11) * 0x1p-53, digits);
            check_format(ldexp((double)(random64() >> 11), -53 - (int)random_below(80)), digits);
            /* Just at, below and above short decimals: where rounding would go up. */
            double near = (double)random_below(10001) / 10000;
            check_format(near, digits);
            check_format(nextafter(near, 0), digits);
            if (near < 1) check_format(nextafter(near, 1), digits);
        }
    }
    char text[1080];
    sf_format_down(text, -0.0, 3);
    assert_string_equal(text, "0.000");
    sf_format_down(text, 0x1p-1074, 1074); /* all there is: 5^1074 */
    assert_int_equal(strlen(text), 1076);
    assert_string_equal(text + 1070, "265625");
}

/* ------------------------------------------------------ one-way arithmetic */

/* Whether m * 2^-shift * d <= n, exactly; m below 2^54. */
static int ratio_at_most(uint64_t m, int shift, uint64_t d, uint64_t n)
{
    wide product = (wide)m * d; /* below 2^118 */
    if (shift <= 0) return product << -shift <= n;
    return (product + (((wide)1 << shift) - 1)) >> shift <= n;
}

static void check_ratio(uint64_t n, uint64_t d)
{
    double r = sf_ratio_down(n, d);
    if (n == 0) {
        assert_true(r == 0 && !signbit(r));
        return;
    }
    int exponent;
    uint64_t m = (uint64_t)ldexp(frexp(r, &exponent), 53);
    int shift = 53 - exponent;
    /* It is at most the ratio, and the next double is more. */
    if (!ratio_at_most(m, shift, d, n) || ratio_at_most(m + 1, shift, d, n))
        fail_msg("%llu / %llu: %a", (unsigned long long)n, (unsigned long long)d, r);
}

static void test_ratio_down(void **state)
{
    (void)state;
    static const uint64_t edges[] = {0,
                                     1,
                                     2,
                                     3,
                                     5,
                                     7,
                                     10,
                                     100,
                                     1000003,
                                     UINT32_MAX,
                                     (UINT64_C(1) << 32),
                                     (UINT64_C(1) << 52) - 1,
                                     UINT64_C(1) << 52,
                                     (UINT64_C(1) << 53) - 1,
                                     UINT64_C(1) << 53,
                                     (UINT64_C(1) << 53) + 1,
                                     (UINT64_C(1) << 54) - 1,
                                     (UINT64_C(1) << 54) + 1,
                                     (UINT64_C(1) << 63) - 1,
                                     UINT64_C(1) << 63,
                                     (UINT64_C(1) << 63) + 1,
                                     UINT64_MAX - 1,
                                     UINT64_MAX};
    for (size_t i = 0; i < COUNT(edges); i++)
        for (size_t k = 1; k < COUNT(edges); k++) check_ratio(edges[i], edges[k]);
    for (uint64_t d = 1; d <= 400; d++)
        for (uint64_t n = 0; n <= d; n++) check_ratio(n, d);
    for (int i = 0; i < 500000; i++) {
        uint64_t n = random64() >> random_below(64), d = random64() >> random_below(64);
        check_ratio(n, d ? d : 1);
    }
    assert_true(sf_ratio_down(3, 3) == 1);
    assert_true(sf_ratio_down(1, 4) == 0.25);
    assert_true(sf_ratio_down(UINT64_MAX, UINT64_MAX) == 1);
}

/* Whether r <= a*b, exactly; all in [0, 1]. */
static int at_most_product(double r, double a, double b)
{
    int ra, rb, rr;
    wide exact = (wide)split(a, &ra) * split(b, &rb); /* over 2^(ra+rb) */
    wide m = split(r, &rr);
    int up = ra + rb - rr; /* r is m * 2^up over the same */
    assert_true(up >= 0 || m == 0);
    return m <= (up < 128 ? exact >> up : 0);
}

static void check_product(double a, double b)
{
    double r = sf_multiply_down(a, b);
    if (!(r >= 0 && r <= 1) || !at_most_product(r, a, b) || (r < 1 && at_most_product(nextafter(r, 2), a, b)))
        fail_msg("%a * %a: %a", a, b, r);
}

/* The reference itself, where the answer is plain. */
static void test_product_reference(void **state)
{
    (void)state;
    assert_true(at_most_product(0.25, 0.5, 0.5));
    assert_false(at_most_product(nextafter(0.25, 1), 0.5, 0.5));
    assert_true(at_most_product(1, 1, 1));
    assert_true(at_most_product(0x1p-1074, 0x1p-537, 0x1p-537));
    assert_false(at_most_product(0x1p-1074, 0x1p-537, 0x1.fffffffffffffp-538));
    assert_false(at_most_product(0x1p-1074, 0x1p-1074, 0x1p-1074));
    assert_false(at_most_product(1, 0x1p-1074, 1));
}

static double random_unit(int smallest)
{
    switch (random_below(6)) {
    case 0: return (double)random_below(101) / 100;
    case 1: return nextafter(1, 0) - (double)random_below(1000) * 0x1p-53;
    case 2: return (double)(random64() >> 11) * 0x1p-53;
    case 3: return (double)random_below(1000) / 1000;
    default: return ldexp((double)((random64() >> 11) | 1), -53 - (int)random_below((unsigned)smallest));
    }
}

static void test_multiply_down(void **state)
{
    (void)state;
    static const double special[] = {0,
                                     1,
                                     0.5,
                                     0.1,
                                     0x1.fffffffffffffp-1,
                                     0x1p-1074,
                                     0x1p-1022,
                                     0x1p-537,
                                     0x1p-538,
                                     0x1.8p-537,
                                     0x1p-1000,
                                     0x1.fffffffffffffp-1023,
                                     0x1.8p-1074 * 2,
                                     1.0 / 3.0,
                                     2.0 / 3.0,
                                     0x1.5p-540,
                                     0x1.0000000000001p-512,
                                     0.99};
    for (size_t i = 0; i < COUNT(special); i++)
        for (size_t k = 0; k < COUNT(special); k++) check_product(special[i], special[k]);
    for (int i = 0; i < 400000; i++) {
        check_product(random_unit(60), random_unit(60));
        check_product(random_unit(1022), random_unit(1022)); /* into the denormals and below */
        check_product(ldexp(random_unit(2), -480 - (int)random_below(60)),
                      ldexp(random_unit(2), -480 - (int)random_below(60)));
    }
    /* A product of many overlaps stays below the exact one all the way down to 0. */
    double product = 1;
    for (int i = 0; i < 20000; i++) {
        double factor = random_unit(1), next = sf_multiply_down(product, factor);
        assert_true(next <= product && at_most_product(next, product, factor));
        product = next > 0 ? next : 1;
    }
}

/* Whether y >= 1 - x, exactly: in units of 2^-110, where only one of them can have a rest. */
static int at_least_complement(double y, double x)
{
    int sy, sx;
    wide my = split(y, &sy), mx = split(x, &sx), one = (wide)1 << 110;
    wide wy = sy <= 110 ? my << (110 - sy) : sy - 110 < 128 ? my >> (sy - 110) : 0;
    wide wx = sx <= 110 ? mx << (110 - sx) : sx - 110 < 128 ? mx >> (sx - 110) : 0;
    return wy + wx >= one;
}

static void check_complement(double x)
{
    double y = sf_complement_up(x);
    if (!(y >= 0 && y <= 1) || !at_least_complement(y, x) || (y > 0 && at_least_complement(nextafter(y, 0), x)))
        fail_msg("1 - %a: %a", x, y);
}

static void test_complement_up(void **state)
{
    (void)state;
    assert_true(sf_complement_up(0) == 1 && sf_complement_up(1) == 0 && sf_complement_up(0.25) == 0.75);
    static const double special[] = {0x1p-1074,
                                     0x1p-1022,
                                     0x1p-54,
                                     0x1p-53,
                                     0x1.8p-53,
                                     0x1.0000000000001p-53,
                                     0x1p-52,
                                     0.1,
                                     0.3,
                                     0.5,
                                     0x1.fffffffffffffp-2,
                                     0x1.0000000000001p-1,
                                     0x1.fffffffffffffp-1,
                                     1e-300,
                                     1e-17,
                                     1e-16};
    for (size_t i = 0; i < COUNT(special); i++) check_complement(special[i]);
    for (int i = 0; i < 1000000; i++) check_complement(random_unit(i % 2 ? 120 : 10));
}

/* ------------------------------------------------------------ whole numbers */

static void test_weight_multiply(void **state)
{
    (void)state;
    sf_weight weight = 1;
    for (int i = 0; i < 4; i++) assert_int_equal(sf_weight_multiply(&weight, UINT32_MAX), 0);
    assert_true(weight == (sf_weight)UINT32_MAX * UINT32_MAX * UINT32_MAX * UINT32_MAX);
    const sf_weight before = weight;
    assert_int_equal(sf_weight_multiply(&weight, UINT32_MAX), -1);
    assert_true(weight == before);
    assert_int_equal(sf_weight_multiply(&weight, 1), 0);
    assert_true(weight == before);
    weight = (sf_weight)1 << 64; /* 2^128 - 2^64 is the largest multiple that fits */
    assert_int_equal(sf_weight_multiply(&weight, UINT64_MAX), 0);
    assert_true(weight == ~(sf_weight)0 - UINT64_MAX);
    assert_int_equal(sf_weight_multiply(&weight, 2), -1);
    assert_int_equal(sf_weight_multiply(&weight, 0), 0);
    assert_true(weight == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_known),       cmocka_unit_test(test_parse_refused),
        cmocka_unit_test(test_parse_random),      cmocka_unit_test(test_parse_long),
        cmocka_unit_test(test_to_numbers),        cmocka_unit_test_teardown(test_locales, back_to_c),
        cmocka_unit_test(test_format_down),       cmocka_unit_test(test_ratio_down),
        cmocka_unit_test(test_product_reference), cmocka_unit_test(test_multiply_down),
        cmocka_unit_test(test_complement_up),     cmocka_unit_test(test_weight_multiply),
    };
    return cmocka_run_group_tests_name("base: numbers", tests, NULL, NULL);
}
