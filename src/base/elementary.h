/* Elementary functions whose results have the same bits on every machine.
 *
 * The C library's exp or log may give another last bit on another processor (glibc has a version
 * with fused multiplication and one without, and takes what the processor has), with another
 * version or another libc. What is written to a record, and what an answer is made of, is therefore
 * computed with these. They consist of +, -, *, / and sqrt in double precision, which IEEE 754
 * defines to the last bit, in a fixed order, and nothing is fused (-ffp-contract=off).
 *
 * Errors are in units in the last place of the result ("ulp"), where that is a normal number: at
 * most those stated, and tests/test_base_elementary.c measures less. NaN gives NaN. No errno, no
 * exceptions to rely on, any thread; the thread rounds to the nearest. */
#ifndef SF_BASE_ELEMENTARY_H
#define SF_BASE_ELEMENTARY_H

double sf_exp(double x);   /* e^x, 1 ulp */
double sf_expm1(double x); /* e^x - 1, 3 ulp */
double sf_log(double x);   /* 1 ulp; 0 gives -INFINITY, below NaN */
double sf_log1p(double x); /* log(1 + x), 1 ulp; -1 gives -INFINITY, below NaN */
double sf_asin(double x);  /* 3 ulp, for x from 0 to 1 (assert) */
double sf_tanh(double x);  /* 3 ulp */

/* Both to within 1e-15, for x from 0 to 2^20 (assert). */
void sf_sin_cos(double *sine, double *cosine, double x);

#endif
