/* The functions of vector.h for one instruction set: included by vector.c with NAME(x), the
 * function's name there, TARGET, the attribute that selects the set, and on vectors
 * MADD(a, b, c), a * b + c, and, where the set has better than what is here: CLAMP(x, low,
 * high) (NaN stays), TOTAL(x), and with LARGEST a function `largest` of its own. */

#define INLINE TARGET static inline __attribute__((always_inline))

INLINE void NAME(load)(v16 *out, const float *x) { *out = *(const v16_any *)x; }
INLINE void NAME(store)(float *out, const v16 *x) { *(v16_any *)out = *x; }

/* where mask ? a : b */
INLINE void NAME(choose)(v16 *out, const v16i *mask, const v16 *a, const v16 *b)
{
    *out = (v16)((*mask & (v16i)*a) | (~*mask & (v16i)*b));
}

INLINE void NAME(clamp)(v16 *x, float low, float high)
{
    v16 l = (v16){0} + low, h = (v16){0} + high;
#ifdef CLAMP
    *x = CLAMP(*x, l, h);
#else
    v16i below = *x<l, above = *x> h;
    NAME(choose)(x, &below, &l, x);
    NAME(choose)(x, &above, &h, x);
#endif
}

/* e^x, with an error of 2 units in the last place; at most e^88, and 0 below -60, so that no
 * product of a few such is a number without a leading 1, which are slow. NaN stays. */
INLINE void NAME(exp16)(v16 *x)
{
    v16 y = *x, zero = {0};
    v16i tiny = y < -60.0f;
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
        v16i below = y < zero;
        NAME(choose)(x, &below, &zero, &y);
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
    }
}

/* The lanes added up, always in the same order. */
INLINE float NAME(total)(const v16 *x)
{
#ifdef TOTAL
    return TOTAL(*x);
#endif
    float a[16];
    NAME(store)(a, x);
    for (int width = 8; width; width /= 2)
        for (int i = 0; i < width; i++) a[i] += a[i + width];
    return a[0];
}

INLINE void NAME(activate_as)(float *out, const float *x, sf_activation activation, int rough, size_t N)
{
    size_t i = 0;
    v16 v;
    for (; i + 16 <= N; i += 16) {
        NAME(load)(&v, x + i);
        NAME(activate16)(&v, activation, rough);
        NAME(store)(out + i, &v);
    }
    if (i < N) {
        float rest[16] = {0};
        memcpy(rest, x + i, (N - i) * sizeof *x);
        NAME(load)(&v, rest);
        NAME(activate16)(&v, activation, rough);
        NAME(store)(rest, &v);
        memcpy(out + i, rest, (N - i) * sizeof *out);
    }
}

TARGET static void NAME(activate)(float *out, const float *x, sf_activation activation, int rough, size_t N)
{ /* so that the compiler makes a loop of each */
    if (activation == SF_GELU && rough)
        NAME(activate_as)(out, x, SF_GELU, 1, N);
    else if (activation == SF_GELU)
        NAME(activate_as)(out, x, SF_GELU, 0, N);
    else if (activation == SF_GELU_TANH)
        NAME(activate_as)(out, x, SF_GELU_TANH, 0, N);
    else if (activation == SF_RELU)
        NAME(activate_as)(out, x, SF_RELU, 0, N);
    else if (out != x)
        memcpy(out, x, N * sizeof *out);
}

INLINE void NAME(slope_as)(float *dinp, const float *dout, const float *x, sf_activation activation, int rough,
                           size_t N)
{
    size_t i = 0;
    v16 v, d;
    for (; i + 16 <= N; i += 16) {
        NAME(load)(&v, x + i);
        NAME(load)(&d, dout + i);
        NAME(slope16)(&d, &v, activation, rough);
        NAME(store)(dinp + i, &d);
    }
    if (i < N) {
        float rest[16] = {0}, slope[16] = {0};
        memcpy(rest, x + i, (N - i) * sizeof *x);
        memcpy(slope, dout + i, (N - i) * sizeof *dout);
        NAME(load)(&v, rest);
        NAME(load)(&d, slope);
        NAME(slope16)(&d, &v, activation, rough);
        NAME(store)(slope, &d);
        memcpy(dinp + i, slope, (N - i) * sizeof *dinp);
    }
}

TARGET static void NAME(activate_backward)(float *dinp, const float *dout, const float *x, sf_activation activation,
                                           int rough, size_t N)
{
    if (activation == SF_GELU && rough)
        NAME(slope_as)(dinp, dout, x, SF_GELU, 1, N);
    else if (activation == SF_GELU)
        NAME(slope_as)(dinp, dout, x, SF_GELU, 0, N);
    else if (activation == SF_GELU_TANH)
        NAME(slope_as)(dinp, dout, x, SF_GELU_TANH, 0, N);
    else if (activation == SF_RELU)
        NAME(slope_as)(dinp, dout, x, SF_RELU, 0, N);
    else if (dinp != dout)
        memcpy(dinp, dout, N * sizeof *dinp);
}

#ifndef LARGEST
INLINE float NAME(largest)(const float *x, size_t N)
{
    size_t i = 0;
    v16 v, most = (v16){0} - FLT_MAX;
    float lanes[16], top = -FLT_MAX;
    for (; i + 16 <= N; i += 16) {
        NAME(load)(&v, x + i);
        v16i above = v > most;
        NAME(choose)(&most, &above, &v, &most);
    }
    NAME(store)(lanes, &most);
    for (int l = 0; l < 16; l++) top = lanes[l] > top ? lanes[l] : top;
    for (; i < N; i++) top = x[i] > top ? x[i] : top;
    return top;
}
#endif

/* x = e^(scale * (x - top)); returns the sum. */
INLINE float NAME(exponentials)(float *x, float top, float scale, size_t N)
{
    size_t i;
    v16 v, sum = {0};
    float lanes[16];
    for (i = 0; i + 16 <= N; i += 16) {
        NAME(load)(&v, x + i);
        v = (v - top) * scale;
        NAME(exp16)(&v);
        sum += v;
        NAME(store)(x + i, &v);
    }
    if (i < N) {
        memset(lanes, 0, sizeof lanes);
        memcpy(lanes, x + i, (N - i) * sizeof *x);
        NAME(load)(&v, lanes);
        v = (v - top) * scale;
        NAME(exp16)(&v);
        NAME(store)(lanes, &v);
        memset(lanes + (N - i), 0, (16 - (N - i)) * sizeof *lanes);
        memcpy(x + i, lanes, (N - i) * sizeof *x);
        NAME(load)(&v, lanes);
        sum += v;
    }
    return NAME(total)(&sum);
}

TARGET static void NAME(scale)(float *x, float factor, size_t N)
{
    for (size_t i = 0; i < N; i++) x[i] *= factor;
}

TARGET static void NAME(softmax_row)(float *x, float scale, size_t N)
{
    NAME(scale)(x, 1.0f / NAME(exponentials)(x, NAME(largest)(x, N), scale, N), N);
}

TARGET static float NAME(exp_row)(sf_bf16 *out, float *x, float scale, size_t N, sf_isa isa)
{
    float sum = NAME(exponentials)(x, NAME(largest)(x, N), scale, N);
    sf_to_bf16(out, x, N, isa);
    return sum;
}

TARGET static void NAME(softmax_row_backward)(float *dx, const float *dp, const float *p, float scale, size_t N)
{
    size_t i = 0;
    v16 a, b, sum = {0};
    for (; i + 16 <= N; i += 16) {
        NAME(load)(&a, dp + i);
        NAME(load)(&b, p + i);
        sum += a * b;
    }
    float dot = NAME(total)(&sum);
    for (; i < N; i++) dot += dp[i] * p[i];
    for (i = 0; i < N; i++) dx[i] = scale * p[i] * (dp[i] - dot);
}

/* Mean and 1/sqrt(variance + epsilon) of a row. */
INLINE void NAME(moments)(float *mean, float *rate, const float *x, float epsilon, size_t N)
{
    size_t i = 0;
    v16 v, sum = {0};
    for (; i + 16 <= N; i += 16) {
        NAME(load)(&v, x + i);
        sum += v;
    }
    float m = NAME(total)(&sum);
    for (; i < N; i++) m += x[i];
    m /= (float)N;
    sum = (v16){0};
    for (i = 0; i + 16 <= N; i += 16) {
        NAME(load)(&v, x + i);
        v -= m;
        sum += v * v;
    }
    float variance = NAME(total)(&sum);
    for (; i < N; i++) variance += (x[i] - m) * (x[i] - m);
    *mean = m;
    *rate = 1.0f / sqrtf(variance / (float)N + epsilon);
}

TARGET static void NAME(norm_row)(float *out, const float *x, const float *weight, const float *bias, float epsilon,
                                  size_t N)
{
    float mean, rate;
    NAME(moments)(&mean, &rate, x, epsilon, N);
    for (size_t i = 0; i < N; i++) out[i] = (x[i] - mean) * rate * weight[i] + bias[i];
}

TARGET static void NAME(norm_row_backward)(float *dx, float *dweight, float *dbias, const float *dout, const float *x,
                                           const float *weight, float epsilon, size_t N)
{
    float mean, rate;
    size_t i = 0;
    v16 d, w, v, sum = {0}, product = {0};
    NAME(moments)(&mean, &rate, x, epsilon, N);
    for (; i + 16 <= N; i += 16) {
        NAME(load)(&d, dout + i);
        NAME(load)(&w, weight + i);
        NAME(load)(&v, x + i);
        sum += d * w;
        product += d * w * ((v - mean) * rate);
    }
    float s = NAME(total)(&sum), p = NAME(total)(&product);
    for (; i < N; i++) {
        s += dout[i] * weight[i];
        p += dout[i] * weight[i] * ((x[i] - mean) * rate);
    }
    s /= (float)N;
    p /= (float)N;
    for (i = 0; i < N; i++) {
        float normal = (x[i] - mean) * rate, slope = dout[i];
        dweight[i] += slope * normal;
        dbias[i] += slope;
        dx[i] = rate * (slope * weight[i] - s - normal * p);
    }
}

TARGET static void NAME(add)(float *out, const float *x, size_t N)
{
    for (size_t i = 0; i < N; i++) out[i] += x[i];
}

#undef INLINE
