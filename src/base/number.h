/* Numbers as text, the same under every locale; arithmetic that rounds one way; whole numbers that
 * report an overflow. */
#ifndef SF_BASE_NUMBER_H
#define SF_BASE_NUMBER_H

#include <fenv.h>
#include <stddef.h>
#include <stdint.h>

/* Parses a decimal number at the start of [text, end); returns where it stops, or NULL
 * without a number. Accepts what strtod does in the C locale, but no leading space, no
 * hexadecimal and nothing in brackets after "nan"; "nan", "inf" and "infinity" are
 * numbers. Correctly rounded to double, however long. */
const char *sf_parse_double(const char *text, const char *end, double *out);

/* The whole of a terminated string as a number. Returns 0, or -1 when it is not one. */
int sf_to_uint64(const char *text, uint64_t *out);

/* Writes x with `digits` decimals, cut, never rounded up: the printed value is at most
 * the true one. For x in [0, 1] and up to 1074 digits; `out` needs digits + 3 bytes. */
void sf_format_down(char *out, double x, int digits);

/* Writes the fewest digits that read back as x, the nearest of equally many, and always a point or an exponent:
 * 0.68, 1.0, 1e-09, as Python's repr. Returns 0, or -1 when x is not finite. `out` needs SF_REAL_SIZE bytes. */
enum { SF_REAL_SIZE = 48 };
int sf_format_real(char *out, double x);

/* For qsort: rising doubles. */
int sf_compare_doubles(const void *left, const void *right);

/* The largest double that is at most numerator/denominator. denominator > 0. */
double sf_ratio_down(uint64_t numerator, uint64_t denominator);

/* a*b and 1-x rounded towards the named side, for a, b, x in [0, 1]. */
double sf_multiply_down(double a, double b);
double sf_complement_up(double x);

/* A product of whole-number weights, or a sum of such products. */
__extension__ typedef unsigned __int128 sf_weight;

/* *weight times factor. Returns 0, or -1, *weight unchanged, when it overflows. */
int sf_weight_multiply(sf_weight *weight, uint64_t factor);

/* From here on this thread, and workers it calls (base/parallel.h), take denormal numbers for
 * 0, where the processor can: each of them costs a hundred ordinary operations. `before` is
 * what fesetenv takes to end it. For training, never for bounds. */
void sf_flush_denormals(fenv_t *before);

/* The opposite: from here on, rounding to the nearest and denormal numbers as they are, whatever a
 * library in this process has set (one built with -ffast-math may flush them in every thread). */
void sf_plain_arithmetic(fenv_t *before);

/* Whether this thread's arithmetic rounds to the nearest, by trying: fegetround looks at a register
 * that the arithmetic need not use. */
int sf_rounds_to_nearest(void);

#endif
