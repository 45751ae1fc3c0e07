/* Activations of 16 numbers and their slopes, for one instruction set: included as nn/simd.h says,
 * by the kernels of nn/vector.c and between the tile instructions of nn/product_amx.c; no guard. */

/* e^x, with an error of 2 units in the last place; at most e^88, and 0 below -60, so that no
 * product of a few such is a number without a leading 1, which are slow. NaN stays. */
INLINE void NAME(exp16)(v16 *x)
{
    v16 y = *x, zero = {0};
    const v16 least = zero - 60.0f;
    v16i tiny;
    NAME(above)(&tiny, &least, &y);
    NAME(clamp)(&y, -60.0f, 88.0f);
    static const float c[] = {1.0f,         1.00000004f,    0.499999915f,  0.166664208f,
                              0.041668358f, 0.00837477152f, 0.00138294206f};
    v16 n = (y * 1.44269504f + 12582912.0f) - 12582912.0f; /* to the nearest whole number */
    v16 r = (y - n * 0.693359375f) + n * 2.12194440e-4f, p = zero + c[6];
    for (int i = 5; i >= 0; i--) p = MADD(p, r, zero + c[i]);
    v16i power = __builtin_convertvector(n, v16i);
    p *= (v16)((power + 127) << 23);
    NAME(choose)(x, &tiny, &zero, &p);
}

/* Phi(x) - 1/2 for the normal distribution's Phi: a polynomial in x^2, fitted on [-5, 5] and
 * constant outside. */
INLINE void NAME(phi16)(v16 *out, const v16 *x)
{
    static const float c[] = {0.141363785f,   -0.0702962726f,  0.0515205003f,  -0.0404427834f, 0.031442523f,
                              -0.0232674442f, 0.016400205f,    -0.0111676678f, 0.00641532987f, -0.00268163998f,
                              0.00171751715f, -0.00161493127f, 0.000610849354f};
    v16 y = *x, zero = {0};
    NAME(clamp)(&y, -5.0f, 5.0f);
    v16 t = y * y * 0.08f - 1.0f, p = zero + c[12];
    for (int i = 11; i >= 0; i--) p = MADD(p, t, zero + c[i]);
    *out = y * p;
}

/* A rough Phi(x) - 1/2, and the slope of x Phi(x) less 1/2: fitted on [-4, 4]. */
INLINE void NAME(rough16)(v16 *out, const v16 *x, int slope)
{
    static const float phi[] = {0.175942674f,   -0.0843425468f,  0.0561960638f,
                                -0.0367237963f, 0.0210601743f,   -0.0125236623f,
                                0.00872168504f, -0.00334397447f, 0.0f};
    static const float dphi[] = {0.183249339f,   -0.11336977f,  0.11462158f,    -0.117478274f, 0.0996429771f,
                                 -0.0643976927f, 0.0472796001f, -0.0410006978f, 0.01659308f};
    const float *c = slope ? dphi : phi;
    v16 y = *x, zero = {0};
    NAME(clamp)(&y, -4.0f, 4.0f);
    v16 t = MADD(y, y * 0.125f, zero - 1.0f), p = zero + c[slope ? 8 : 7];
    for (int i = slope ? 7 : 6; i >= 0; i--) p = MADD(p, t, zero + c[i]);
    *out = y * p;
}

/* tanh(x) = 1 - 2/(e^2x + 1) */
INLINE void NAME(tanh16)(v16 *x)
{
    v16 e = *x * 2.0f;
    NAME(clamp)(&e, -40.0f, 40.0f);
    NAME(exp16)(&e);
    *x = 1.0f - 2.0f / (e + 1.0f);
}

#define TANH_SCALE 0.797884561f /* sqrt(2/pi) */
#define TANH_CUBE 0.044715f

INLINE void NAME(activate16)(v16 *x, sf_activation activation, int rough)
{
    v16 y = *x, zero = {0};
    if (activation == SF_GELU) {
        if (rough)
            NAME(rough16)(&y, x, 0);
        else
            NAME(phi16)(&y, x);
        *x = MADD(*x, y, *x * 0.5f);
    } else if (activation == SF_GELU_TANH) {
        y = TANH_SCALE * (y + TANH_CUBE * y * y * y);
        NAME(tanh16)(&y);
        *x = 0.5f * *x * (1.0f + y);
    } else if (activation == SF_RELU) {
        v16i below;
        NAME(above)(&below, &zero, &y);
        NAME(choose)(x, &below, &zero, &y);
    } else if (activation == SF_SILU) {
        y = zero - y;
        NAME(exp16)(&y);
        *x = *x / (y + 1.0f);
    }
}

/* *d *= activation'(x) */
INLINE void NAME(slope16)(v16 *d, const v16 *x, sf_activation activation, int rough)
{
    v16 y = *x, p, zero = {0};
    if (activation == SF_GELU && rough) {
        NAME(rough16)(&y, x, 1);
        *d = MADD(*d, y, *d * 0.5f);
    } else if (activation == SF_GELU) {
        p = y * y * -0.5f;
        NAME(exp16)(&p);
        p = y * p * 0.398942280f;
        NAME(phi16)(&y, x);
        *d *= 0.5f + y + p;
    } else if (activation == SF_GELU_TANH) {
        p = TANH_SCALE * (y + TANH_CUBE * y * y * y);
        NAME(tanh16)(&p);
        *d *= 0.5f * (1.0f + p) + 0.5f * y * (1.0f - p * p) * TANH_SCALE * (1.0f + 3.0f * TANH_CUBE * y * y);
    } else if (activation == SF_RELU) {
        v16i below = y <= zero;
        NAME(choose)(d, &below, &zero, d);
    } else if (activation == SF_SILU) {
        p = zero - y;
        NAME(exp16)(&p);
        p = 1.0f / (p + 1.0f);
        *d *= p * (1.0f + y * (1.0f - p));
    }
}

#undef TANH_SCALE
#undef TANH_CUBE
