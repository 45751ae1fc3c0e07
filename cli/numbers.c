/* Numbers for people. What is claimed is never rounded to the side that claims more: shares, bounds and lower ends are
 * cut; upper ends and p-values are rounded up. So nothing here is left to printf, which rounds to the nearest. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DECIMALS = 1080, /* of which every double has fewer */
    TEXT_SIZE = 64
};

/* One of 8 texts in turn. */
static char *next_text(void)
{
    static char texts[8][TEXT_SIZE];
    static unsigned next;
    return texts[next++ % 8];
}

const char *cli_count(uint64_t n)
{
    char digits[24], *out = next_text();
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

const char *cli_some(uint64_t n, const char *one, const char *many)
{
    char *out = next_text();
    snprintf(out, TEXT_SIZE, "%s %s", cli_count(n), n == 1 ? one : many);
    return out;
}

const char *cli_texts(uint64_t n) { return cli_some(n, "text", "texts"); }

/* Adds one to the last digit; the text has room for one more. */
static void add_one(char *digits)
{
    char *c = digits + strlen(digits) - 1;
    for (; c >= digits; c--) {
        if (*c == '.') continue;
        if (*c != '9') {
            ++*c;
            return;
        }
        *c = '0';
    }
    memmove(digits + 1, digits, strlen(digits) + 1);
    *digits = '1';
}

/* A decimal fraction, not negative, times 100 where it becomes a percentage, with so many decimals: cut, or rounded up.
 * The fraction has room for two digits more. */
static const char *place(char *fraction, int percent, int decimals, int up)
{
    char *out = next_text(), *point = strchr(fraction, '.'), *rest;
    for (int i = 0; percent && i < 2; i++, point++) {
        point[0] = point[1];
        point[1] = '.';
    }
    while (fraction[0] == '0' && fraction[1] != '.') fraction++;
    rest = point + 1 + decimals;
    const int exact = strspn(rest, "0") == strlen(rest);
    *(decimals ? rest : point) = '\0';
    if (up && !exact) add_one(fraction);
    snprintf(out, 64, "%.63s", fraction);
    return out;
}

/* x as it is, to the last bit, which is not negative. */
static const char *place_exactly(double x, int percent, int decimals, int up)
{
    char digits[DECIMALS + 330];
    snprintf(digits, sizeof digits, "%.*f", DECIMALS, fabs(x));
    return place(digits, percent, decimals, up);
}

const char *cli_cut(double x, int decimals) { return place_exactly(x, 0, decimals, 0); }
const char *cli_up(double x, int decimals) { return place_exactly(x, 0, decimals, 1); }

/* The shortest decimal that reads back to x, which is not negative: 0.29, though the double is a little less. */
static const char *place_shortest(double x, int percent, int decimals)
{
    char digits[64] = "";
    for (int d = 2; d <= 30; d++) {
        snprintf(digits, sizeof digits, "%.*f", d, x);
        if (strtod(digits, NULL) >= x && strtod(digits, NULL) <= x) break;
    }
    strcat(digits, "0000");
    return place(digits, percent, decimals, 0);
}

const char *cli_share(double share, int decimals) { return place_shortest(share, 1, decimals); }
const char *cli_mean(double x, int decimals) { return place_shortest(x, 0, decimals); }

const char *cli_percent(size_t part, size_t whole)
{
    char *out = next_text();
    uint64_t hundredths = whole ? (uint64_t)part * 10000 / whole : 0;
    snprintf(out, 64, "%llu.%02llu", (unsigned long long)(hundredths / 100), (unsigned long long)(hundredths % 100));
    return out;
}

const char *cli_interval(size_t part, size_t whole)
{
    char *out = next_text();
    double low = 0, high = 1;
    if (whole) safer_interval(part, whole, &low, &high);
    snprintf(out, 64, "%.20s to %.20s", place_exactly(low, 1, 2, 0), place_exactly(high, 1, 2, 1));
    return out;
}

const char *cli_p_value(double p)
{
    if (p >= 0.0001 || p <= 0) return cli_up(p, 4);
    char *out = next_text();
    snprintf(out, 64, "%.1e", p);
    /* Half a step more, and a little, is nearest to the next. */
    if (strtod(out, NULL) < p) snprintf(out, 64, "%.1e", p + 0.06 * pow(10, floor(log10(p))));
    return out;
}

const char *cli_real(double x)
{
    char *out = next_text();
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, 64, "%.*g", digits, x);
        if (strtod(out, NULL) >= x && strtod(out, NULL) <= x) break;
    }
    return out;
}
