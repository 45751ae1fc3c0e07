/* Functions on vectors of 16 lanes that all kernels share, for one instruction set: included with
 * NAME, TARGET and AVX512 as nn/simd.h says; no guard. */

#undef INLINE
#undef MADD

#define INLINE TARGET static inline __attribute__((always_inline))

/* a * b + c, rounded once where the set fuses the two. */
#if AVX512
#define MADD(a, b, c) ((v16)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#else
#define MADD(a, b, c) ((a) * (b) + (c))
#endif

INLINE void NAME(load)(v16 *out, const float *x) { *out = *(const v16_any *)x; }
INLINE void NAME(store)(float *out, const v16 *x) { *(v16_any *)out = *x; }

/* where a > b. (What is longer than a register compilers compare number by number: so in parts.) */
INLINE void NAME(above)(v16i *out, const v16 *a, const v16 *b)
{
#if AVX512
    *out = *a > *b;
#else
    const union {
        v16 all;
        PART parts[sizeof(v16) / sizeof(PART)];
    } x = {*a}, y = {*b};
    union {
        v16i all;
        PARTI parts[sizeof(v16) / sizeof(PART)];
    } z;
    for (size_t i = 0; i < sizeof z.parts / sizeof z.parts[0]; i++) z.parts[i] = x.parts[i] > y.parts[i];
    *out = z.all;
#endif
}

/* where mask ? a : b */
INLINE void NAME(choose)(v16 *out, const v16i *mask, const v16 *a, const v16 *b)
{
    *out = (v16)((*mask & (v16i)*a) | (~*mask & (v16i)*b));
}

/* where mask ? x : 0 */
INLINE void NAME(where)(v16 *out, const v16i *mask, const v16 *x) { *out = (v16)(*mask & (v16i)*x); }

/* x between low and high; NaN stays. */
INLINE void NAME(clamp)(v16 *x, float low, float high)
{
    const v16 l = (v16){0} + low, h = (v16){0} + high;
#if AVX512
    *x = (v16)_mm512_min_ps((__m512)h, _mm512_max_ps((__m512)l, (__m512)*x));
#else
    v16i below, above;
    NAME(above)(&below, &l, x);
    NAME(above)(&above, x, &h);
    NAME(choose)(x, &below, &l, x);
    NAME(choose)(x, &above, &h, x);
#endif
}
