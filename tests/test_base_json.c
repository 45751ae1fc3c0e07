/* Numbers and values written: the shortest form of reals, strings as jansson writes them, no memory. */
#include "support.h"

#include "base/error.h"
#include "base/json.h"
#include "base/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* -------------------------------------------------------------------- reals */

/* What Python 3.11's repr gives. */
static void test_reals_fixed(void **state)
{
    (void)state;
    static const struct {
        double x;
        const char *text;
    } cases[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1.0, "1.0"},
        {-1.5, "-1.5"},
        {0.68, "0.68"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {2.0 / 3, "0.6666666666666666"},
        {0.01, "0.01"},
        {0.0001, "0.0001"},
        {0.00012345, "0.00012345"},
        {0.00001, "1e-05"},
        {0.000012345, "1.2345e-05"},
        {1e-9, "1e-09"},
        {1e-100, "1e-100"},
        {100000.0, "100000.0"},
        {123456789.125, "123456789.125"},
        {9007199254740993.0, "9007199254740992.0"},
        {1e15, "1000000000000000.0"},
        {9999999999999998.0, "9999999999999998.0"},
        {1e16, "1e+16"},
        {12345678901234567890.0, "1.2345678901234567e+19"},
        {1e22, "1e+22"},
        {1e23, "1e+23"},
        {9.5367431640625e-07, "9.5367431640625e-07"},     /* 2^-20 */
        {5.684341886080802e-14, "5.684341886080802e-14"}, /* 2^-44: the nearest of 16 digits does not read back */
        {9.671406556917033e+24, "9.671406556917033e+24"}, /* 2^83 */
        {5e-324, "5e-324"},
        {4.4e-323, "4.4e-323"},
        {2.225073858507201e-308, "2.225073858507201e-308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_EPSILON, "2.220446049250313e-16"},
    };
    char text[SF_REAL_SIZE];
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(sf_format_real(text, cases[i].x), 0);
        assert_string_equal(text, cases[i].text);
    }
    const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < COUNT(bad); i++) assert_int_equal(sf_format_real(text, bad[i]), -1);
}

/* The digits of a number without zeros at both ends; their count. */
static int significant(char *digits, const char *text)
{
    int count = 0;
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (count || *text != '0')) digits[count++] = *text;
    while (count && digits[count - 1] == '0') count--;
    digits[count] = '\0';
    return count;
}

/* Whether any number of `count` digits reads back as x > 0: if one does, so does the largest that is not above x
 * or the smallest that is above it. Both come from x's exact digits, all 767 of them at most. */
static int fits(double x, int count)
{
    char exact[900], text[64];
    snprintf(exact, sizeof exact, "%.800e", x);
    unsigned long long head = (unsigned long long)(exact[0] - '0');
    for (int i = 1; i < count; i++) head = head * 10 + (unsigned long long)(exact[i + 1] - '0');
    const int exponent = atoi(strchr(exact, 'e') + 1) - (count - 1);
    for (unsigned long long k = 0; k < 2; k++) {
        snprintf(text, sizeof text, "%llue%d", head + k, exponent);
        if (strtod(text, NULL) == x) return 1;
    }
    return 0;
}

static void check_real(double x)
{
    char text[SF_REAL_SIZE], digits[64];
    double back;
    assert_int_equal(sf_format_real(text, x), 0);
    assert_true(strlen(text) < 25 && strpbrk(text, ".e"));
    assert_ptr_equal(sf_parse_double(text, text + strlen(text), &back), text + strlen(text));
    if (memcmp(&back, &x, sizeof x) != 0 || strtod(text, NULL) != x) fail_msg("%s is not %.17g", text, x);
    const int count = significant(digits, text);
    if (count > 1 && fits(fabs(x), count - 1)) fail_msg("%s has more digits than %.17g needs", text, x);
}

/* Of all sizes, near 1, short decimals, every power of two and its neighbours. */
static void test_reals_random(void **state)
{
    (void)state;
    next_seed(16);
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = (uint64_t)next_below(UINT32_MAX) << 32 | next_below(UINT32_MAX);
        double x;
        memcpy(&x, &bits, sizeof x);
        if (isfinite(x)) check_real(x);
        check_real((double)bits / 0x1p64);
        check_real((double)next_below(100000) / 1e5);
    }
    for (int e = -1074; e < 1024; e++) {
        const double x = ldexp(1, e);
        check_real(x);
        check_real(-nextafter(x, 0));
        check_real(nextafter(x, 2 * x));
    }
}

static void test_reals_locale(void **state)
{
    (void)state;
    char text[SF_REAL_SIZE];
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "ps_AF.UTF-8")) skip();
    assert_int_equal(sf_format_real(text, 0.68), 0);
    setlocale(LC_ALL, "C");
    assert_string_equal(text, "0.68");
}

/* ------------------------------------------------------------------- values */

/* The same bytes as jansson's where no real is in the value. */
static void check_same(json_t *value)
{
    char *ours = sf_json_text(value), *theirs = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    assert_non_null(ours);
    assert_string_equal(ours, theirs);
    free(ours);
    free(theirs);
    json_decref(value);
}

static size_t encode(char *out, uint32_t c)
{
    if (c < 0x80) return (size_t)sprintf(out, "%c", (int)c);
    if (c < 0x800) return (size_t)sprintf(out, "%c%c", (int)(0xC0 | c >> 6), (int)(0x80 | (c & 63)));
    if (c < 0x10000)
        return (size_t)sprintf(out, "%c%c%c", (int)(0xE0 | c >> 12), (int)(0x80 | (c >> 6 & 63)),
                               (int)(0x80 | (c & 63)));
    return (size_t)sprintf(out, "%c%c%c%c", (int)(0xF0 | c >> 18), (int)(0x80 | (c >> 12 & 63)),
                           (int)(0x80 | (c >> 6 & 63)), (int)(0x80 | (c & 63)));
}

static void test_strings(void **state)
{
    (void)state;
    char bytes[64];
    for (uint32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 37) { /* alone, and behind what is copied in blocks */
        if (c >= 0xD800 && c < 0xE000) continue;
        memset(bytes, 'x', 40);
        size_t length = encode(bytes + 40, c);
        check_same(json_stringn(bytes + 40, length));
        check_same(json_stringn(bytes, 40 + length));
    }
    check_same(json_string(""));
    check_same(json_pack("{s:i}", "a \"name\" \\ with\n\b\f\r\t\x01\x1f\x7f and \xc3\xa9", 1));
}

static void test_values(void **state)
{
    (void)state;
    check_same(
        json_pack("{s:[], s:{}, s:n, s:b, s:b, s:[i,[i],{s:s}]}", "z", "a", "m", "t", 1, "f", 0, "l", 1, 2, "k", "v"));
    check_same(json_integer(INT64_MIN));
    check_same(json_integer(INT64_MAX));
    check_same(json_integer(0));
    json_t *value = json_pack("{s:f, s:[f,f], s:i}", "share", 0.68, "q", 1.0, 1e-9, "n", 1);
    char *text = sf_json_text(value);
    assert_string_equal(text, "{\"share\":0.68,\"q\":[1.0,1e-09],\"n\":1}");
    free(text);
    json_decref(value);
    assert_null(sf_json_text(NULL));
}

static safer_status write_value(void *value, safer_error *error)
{
    char *text = sf_json_text(value);
    if (!text) return sf_fail_memory(error);
    const int whole = text[0] == '{' && text[strlen(text) - 1] == '}' && strlen(text) > 3000;
    free(text);
    assert_true(whole);
    return SAFER_OK;
}

static void test_allocations(void **state)
{
    (void)state;
    json_t *value = json_object();
    for (int i = 0; i < 100; i++) {
        char key[32];
        snprintf(key, sizeof key, "member %d", i);
        json_object_set_new(value, key, json_pack("[f, s, i]", i / 7.0, "text \"with\" quotes", i));
    }
    check_every_allocation(write_value, value);
    json_decref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reals_fixed), cmocka_unit_test(test_reals_random), cmocka_unit_test(test_reals_locale),
        cmocka_unit_test(test_strings),     cmocka_unit_test(test_values),       cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests_name("base_json", tests, NULL, NULL);
}
