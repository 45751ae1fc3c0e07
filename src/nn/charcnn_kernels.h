/* The row kernels of charcnn.h for one instruction set: included by charcnn_rows.c with
 * NAME(x), the function's name there, and TARGET, the attribute that selects the set. */

#define INLINE TARGET static inline __attribute__((always_inline))

INLINE void NAME(load)(v16 *out, const float *x) { *out = *(const v16_any *)x; }
INLINE void NAME(store)(float *out, const v16 *x) { *(v16_any *)out = *x; }

/* where mask ? x : 0 */
INLINE void NAME(where)(v16 *out, const v16i *mask, const v16 *x) { *out = (v16)(*mask & (v16i)*x); }

/* Rounded to nearest, ties to even, for all but NaN. */
INLINE void NAME(store_bf16)(sf_bf16 *out, const v16 *x)
{
    v16u bits = (v16u)*x;
    bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    *(v16h_any *)out = __builtin_convertvector(bits, v16h);
}

/* Bit patterns that compare as the numbers do, as long as these are not negative. */
INLINE void NAME(load_bits)(v16i *out, sf_view view, size_t at)
{
    if (view.type == SF_F32)
        *out = *(const v16i_any *)((const float *)view.values + at);
    else
        *out = __builtin_convertvector(*(const v16s_any *)((const sf_bf16 *)view.values + at), v16i);
}

INLINE void NAME(put)(sf_view view, size_t at, const v16 *x)
{
    if (view.type == SF_F32)
        NAME(store)((float *)view.values + at, x);
    else
        NAME(store_bf16)((sf_bf16 *)view.values + at, x);
}

INLINE void NAME(put_bits)(sf_view view, size_t at, const v16i *x)
{
    if (view.type == SF_F32)
        *(v16i_any *)((float *)view.values + at) = *x;
    else
        *(v16h_any *)((sf_bf16 *)view.values + at) = __builtin_convertvector((v16u)*x, v16h);
}

INLINE void NAME(put_which)(uint8_t *out, const v16i *x) { *(v16b_any *)out = __builtin_convertvector((v16u)*x, v16b); }

INLINE void NAME(load_which)(v16i *out, const uint8_t *x)
{
    *out = __builtin_convertvector(*(const v16b_any *)x, v16i);
}

/* ---------------------------------------------------------- first convolution */

INLINE void NAME(first_typed)(sf_view out, uint8_t *which, const float *table, const float *bias, const uint8_t *codes,
                              size_t count, size_t block)
{
    v16 start, zero = {0};
    NAME(load)(&start, bias + block * SF_CHARCNN_LANES);
    for (size_t p = 0; p < count; p++, codes += SF_CHARCNN_POOL) {
        v16 sum[SF_CHARCNN_POOL] = {start, start, start}, x;
        for (size_t t = 0; t < SF_CHARCNN_WIDE; t++)
            for (size_t j = 0; j < SF_CHARCNN_POOL; j++) {
                NAME(load)(&x, table + ((size_t)codes[j + t] * SF_CHARCNN_WIDE + t) * SF_CHARCNN_LANES);
                sum[j] += x;
            }
        const size_t at = p * out.stride + block * SF_CHARCNN_LANES;
        v16i more = sum[1] > sum[0], most;
        x = (v16)((more & (v16i)sum[1]) | (~more & (v16i)sum[0]));
        most = sum[2] > x;
        x = (v16)((most & (v16i)sum[2]) | (~most & (v16i)x));
        if (which) {
            v16i index = (~most & more & 1) | (most & 2);
            NAME(put_which)(which + at, &index);
        }
        v16i above = x > zero;
        NAME(where)(&x, &above, &x);
        NAME(put)(out, at, &x);
    }
}

TARGET static void NAME(first)(sf_view out, uint8_t *which, const float *table, const float *bias, const uint8_t *codes,
                               size_t count, size_t block)
{
    /* Constants for the compiler: two loops without questions. */
    if (out.type == SF_F32)
        NAME(first_typed)((sf_view){out.values, out.stride, SF_F32}, which, table, bias, codes, count, block);
    else
        NAME(first_typed)((sf_view){out.values, out.stride, SF_BF16}, which, table, bias, codes, count, block);
}

TARGET static void NAME(first_backward)(float *dtable, float *dbias, float *spread, const float *dout, sf_view out,
                                        const uint8_t *which, const uint32_t *places, const uint32_t *begin,
                                        size_t count, size_t block)
{
    enum { PAD = SF_CHARCNN_WIDE - 1 };
    const v16 zero = {0};
    v16 sum;
    /* Of every frame before pooling, with rows of zeros before and behind. */
    for (size_t r = 0; r < PAD; r++) {
        NAME(store)(spread + r * SF_CHARCNN_LANES, &zero);
        NAME(store)(spread + (PAD + SF_CHARCNN_POOL * count + r) * SF_CHARCNN_LANES, &zero);
    }
    NAME(load)(&sum, dbias);
    for (size_t p = 0; p < count; p++) {
        const size_t at = p * out.stride + block * SF_CHARCNN_LANES;
        v16 d, part;
        v16i bits, index;
        NAME(load)(&d, dout + at);
        NAME(load_bits)(&bits, out, at);
        NAME(load_which)(&index, which + at);
        v16i alive = bits > (v16i)zero;
        NAME(where)(&d, &alive, &d);
        sum += d;
        for (int j = 0; j < SF_CHARCNN_POOL; j++) {
            v16i here = index == j;
            NAME(where)(&part, &here, &d);
            NAME(store)(spread + (PAD + SF_CHARCNN_POOL * p + (size_t)j) * SF_CHARCNN_LANES, &part);
        }
    }
    NAME(store)(dbias, &sum);
    /* A character at place i is tap t of frame i - t. */
    for (size_t c = 1; c < SF_CHARCNN_CODES; c++) {
        float *rows = dtable + c * SF_CHARCNN_WIDE * SF_CHARCNN_LANES;
        v16 sums[SF_CHARCNN_WIDE], x;
        if (begin[c] == begin[c + 1]) continue;
        for (size_t t = 0; t < SF_CHARCNN_WIDE; t++) NAME(load)(&sums[t], rows + t * SF_CHARCNN_LANES);
        for (uint32_t k = begin[c]; k < begin[c + 1]; k++) {
            const float *last = spread + (PAD + places[k]) * (size_t)SF_CHARCNN_LANES;
            for (size_t t = 0; t < SF_CHARCNN_WIDE; t++) {
                NAME(load)(&x, last - t * SF_CHARCNN_LANES);
                sums[t] += x;
            }
        }
        for (size_t t = 0; t < SF_CHARCNN_WIDE; t++) NAME(store)(rows + t * SF_CHARCNN_LANES, &sums[t]);
    }
}

/* -------------------------------------------------------------------- pooling */

INLINE void NAME(pool_typed)(sf_view out, uint8_t *which, sf_view in, size_t count, size_t F)
{
    for (size_t p = 0; p < count; p++)
        for (size_t f = 0; f < F; f += SF_CHARCNN_LANES) {
            const size_t from = SF_CHARCNN_POOL * p * in.stride + f, at = p * out.stride + f;
            v16i x, y, z;
            NAME(load_bits)(&x, in, from);
            NAME(load_bits)(&y, in, from + in.stride);
            NAME(load_bits)(&z, in, from + 2 * in.stride);
            v16i more = y > x;
            x = (more & y) | (~more & x);
            v16i most = z > x;
            x = (most & z) | (~most & x);
            NAME(put_bits)(out, at, &x);
            if (which) {
                v16i index = (~most & more & 1) | (most & 2);
                NAME(put_which)(which + at, &index);
            }
        }
}

TARGET static void NAME(pool)(sf_view out, uint8_t *which, sf_view in, size_t count, size_t F)
{
    if (out.type == SF_F32) NAME(pool_typed)
    ((sf_view){out.values, out.stride, SF_F32}, which, (sf_view){in.values, in.stride, SF_F32}, count, F);
    else NAME(pool_typed)((sf_view){out.values, out.stride, SF_BF16}, which, (sf_view){in.values, in.stride, SF_BF16},
                          count, F);
}

TARGET static void NAME(pool_backward)(sf_view din, float *dbias, const float *dout, sf_view out, const uint8_t *which,
                                       size_t count, size_t F)
{
    const v16i zero = {0};
    for (size_t p = 0; p < count; p++)
        for (size_t f = 0; f < F; f += SF_CHARCNN_LANES) {
            const size_t at = p * out.stride + f;
            v16 d, part, sum;
            v16i bits, index;
            NAME(load)(&d, dout + at);
            NAME(load)(&sum, dbias + f);
            NAME(load_bits)(&bits, out, at);
            NAME(load_which)(&index, which + at);
            v16i alive = bits > zero;
            NAME(where)(&d, &alive, &d);
            sum += d;
            NAME(store)(dbias + f, &sum);
            for (int j = 0; j < SF_CHARCNN_POOL; j++) {
                v16i here = index == j;
                NAME(where)(&part, &here, &d);
                NAME(put)(din, (SF_CHARCNN_POOL * p + (size_t)j) * din.stride + f, &part);
            }
        }
}

TARGET static void NAME(relu_backward)(sf_view din, float *dbias, const float *dout, sf_view out, size_t rows, size_t F)
{
    const v16i zero = {0};
    for (size_t r = 0; r < rows; r++)
        for (size_t f = 0; f < F; f += SF_CHARCNN_LANES) {
            const size_t at = r * out.stride + f;
            v16 d, sum;
            v16i bits;
            NAME(load)(&d, dout + at);
            NAME(load)(&sum, dbias + f);
            NAME(load_bits)(&bits, out, at);
            v16i alive = bits > zero;
            NAME(where)(&d, &alive, &d);
            sum += d;
            NAME(store)(dbias + f, &sum);
            NAME(put)(din, r * din.stride + f, &d);
        }
}

#undef INLINE
