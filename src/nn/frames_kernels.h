/* The functions of nn/frames.h for one instruction set: included as nn/simd.h says; no guard. */

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

/* ------------------------------------------------------------- frames of codes */

INLINE void NAME(of_codes_typed)(sf_view out, uint8_t *which, const float *table, const float *bias,
                                 const uint8_t *codes, size_t count, size_t block)
{
    v16 start, zero = {0};
    NAME(load)(&start, bias + block * SF_FRAME_LANES);
    for (size_t p = 0; p < count; p++, codes += SF_FRAME_POOL) {
        v16 sum[SF_FRAME_POOL] = {start, start, start}, x;
        for (size_t t = 0; t < SF_FRAME_TAPS; t++)
            for (size_t j = 0; j < SF_FRAME_POOL; j++) {
                NAME(load)(&x, table + ((size_t)codes[j + t] * SF_FRAME_TAPS + t) * SF_FRAME_LANES);
                sum[j] += x;
            }
        const size_t at = p * out.stride + block * SF_FRAME_LANES;
        v16i more, most, above;
        NAME(above)(&more, &sum[1], &sum[0]);
        x = (v16)((more & (v16i)sum[1]) | (~more & (v16i)sum[0]));
        NAME(above)(&most, &sum[2], &x);
        x = (v16)((most & (v16i)sum[2]) | (~most & (v16i)x));
        if (which) {
            v16i index = (~most & more & 1) | (most & 2);
            NAME(put_which)(which + at, &index);
        }
        NAME(above)(&above, &x, &zero);
        NAME(where)(&x, &above, &x);
        NAME(put)(out, at, &x);
    }
}

TARGET static void NAME(of_codes)(sf_view out, uint8_t *which, const float *table, const float *bias,
                                  const uint8_t *codes, size_t count, size_t block)
{
    /* Constants for the compiler: two loops without questions. */
    if (out.type == SF_F32)
        NAME(of_codes_typed)((sf_view){out.values, out.stride, SF_F32}, which, table, bias, codes, count, block);
    else
        NAME(of_codes_typed)((sf_view){out.values, out.stride, SF_BF16}, which, table, bias, codes, count, block);
}

TARGET static void NAME(of_codes_backward)(float *dtable, float *dbias, float *spread, const float *dout, sf_view out,
                                           const uint8_t *which, const uint32_t *places, const uint32_t *begin,
                                           size_t count, size_t block, size_t kinds)
{
    enum { PAD = SF_FRAME_TAPS - 1 };
    const v16 zero = {0};
    v16 sum;
    /* Of every frame before pooling, with rows of zeros before and behind. */
    for (size_t r = 0; r < PAD; r++) {
        NAME(store)(spread + r * SF_FRAME_LANES, &zero);
        NAME(store)(spread + (PAD + SF_FRAME_POOL * count + r) * SF_FRAME_LANES, &zero);
    }
    NAME(load)(&sum, dbias);
    for (size_t p = 0; p < count; p++) {
        const size_t at = p * out.stride + block * SF_FRAME_LANES;
        v16 d, part;
        v16i bits, index;
        NAME(load)(&d, dout + at);
        NAME(load_bits)(&bits, out, at);
        NAME(load_which)(&index, which + at);
        v16i alive = bits > (v16i)zero;
        NAME(where)(&d, &alive, &d);
        sum += d;
        for (int j = 0; j < SF_FRAME_POOL; j++) {
            v16i here = index == j;
            NAME(where)(&part, &here, &d);
            NAME(store)(spread + (PAD + SF_FRAME_POOL * p + (size_t)j) * SF_FRAME_LANES, &part);
        }
    }
    NAME(store)(dbias, &sum);
    /* A code at place i is tap t of frame i - t. */
    for (size_t c = 1; c < kinds; c++) {
        float *rows = dtable + c * SF_FRAME_TAPS * SF_FRAME_LANES;
        v16 sums[SF_FRAME_TAPS], x;
        if (begin[c] == begin[c + 1]) continue;
        for (size_t t = 0; t < SF_FRAME_TAPS; t++) NAME(load)(&sums[t], rows + t * SF_FRAME_LANES);
        for (uint32_t k = begin[c]; k < begin[c + 1]; k++) {
            const float *last = spread + (PAD + places[k]) * (size_t)SF_FRAME_LANES;
            for (size_t t = 0; t < SF_FRAME_TAPS; t++) {
                NAME(load)(&x, last - t * SF_FRAME_LANES);
                sums[t] += x;
            }
        }
        for (size_t t = 0; t < SF_FRAME_TAPS; t++) NAME(store)(rows + t * SF_FRAME_LANES, &sums[t]);
    }
}

/* -------------------------------------------------------------------- pooling */

INLINE void NAME(pool_typed)(sf_view out, uint8_t *which, sf_view in, size_t count, size_t F)
{
    for (size_t p = 0; p < count; p++)
        for (size_t f = 0; f < F; f += SF_FRAME_LANES) {
            const size_t from = SF_FRAME_POOL * p * in.stride + f, at = p * out.stride + f;
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
    const sf_view out_f32 = {out.values, out.stride, SF_F32}, in_f32 = {in.values, in.stride, SF_F32},
                  out_bf16 = {out.values, out.stride, SF_BF16}, in_bf16 = {in.values, in.stride, SF_BF16};
    if (out.type == SF_F32)
        NAME(pool_typed)(out_f32, which, in_f32, count, F);
    else
        NAME(pool_typed)(out_bf16, which, in_bf16, count, F);
}

TARGET static void NAME(pool_backward)(sf_view din, float *dbias, const float *dout, sf_view out, const uint8_t *which,
                                       size_t count, size_t F)
{
    const v16i zero = {0};
    for (size_t p = 0; p < count; p++)
        for (size_t f = 0; f < F; f += SF_FRAME_LANES) {
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
            for (int j = 0; j < SF_FRAME_POOL; j++) {
                v16i here = index == j;
                NAME(where)(&part, &here, &d);
                NAME(put)(din, (SF_FRAME_POOL * p + (size_t)j) * din.stride + f, &part);
            }
        }
}

TARGET static void NAME(relu_backward)(sf_view din, float *dbias, const float *dout, sf_view out, size_t rows, size_t F)
{
    const v16i zero = {0};
    for (size_t r = 0; r < rows; r++)
        for (size_t f = 0; f < F; f += SF_FRAME_LANES) {
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
