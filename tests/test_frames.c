/* Frames of a convolution over time: the portable functions against the definition, and every
 * instruction set against them, bit for bit. */
#include "nn/frames.h"

#include "training.h"

#include <math.h>
#include <string.h>

enum {
    N = 11, /* pooled frames */
    F = 48,
    BLOCK = 1,
    KINDS = 70,
    LANES = SF_FRAME_LANES,
    TAPS = SF_FRAME_TAPS,
    POOL = SF_FRAME_POOL,
    READ = POOL * N + TAPS - 1,
    TABLE = KINDS * TAPS * LANES
};

typedef struct inputs {
    float table[TABLE], bias[F], dout[N * F], raw[POOL * N * F];
    sf_bf16 raw_bf16[POOL * N * F];
    uint8_t codes[READ];
    uint32_t places[READ], begin[KINDS + 1];
} inputs;

/* Of either type, in the memory of floats. */
typedef struct results {
    float frames[N * F], pooled[N * F], dpooled[POOL * N * F], drelu[N * F];
    uint8_t frame_which[N * F], pooled_which[N * F];
    float pool_bias[F], relu_bias[F], code_bias[LANES], dtable[TABLE];
} results;

static void make_inputs(inputs *x)
{
    for (size_t i = 0; i < TABLE; i++) x->table[i] = next_float();
    for (size_t i = 0; i < F; i++) x->bias[i] = next_float() - 1;
    for (size_t i = 0; i < N * F; i++) x->dout[i] = next_float();
    for (size_t i = 0; i < POOL * N * F; i++) { /* rectified, with zeros of either sign */
        const float value = next_float();
        x->raw[i] = value > 0 ? value : next_below(2) ? 0.0f : -0.0f;
        sf_to_bf16(x->raw_bf16 + i, &(float){value > 0 ? value : 0}, 1, SF_PORTABLE);
    }
    for (size_t i = 0; i < READ; i++) x->codes[i] = (uint8_t)(next_below(5) ? next_below(KINDS) : 0);
    sf_frames_places(x->places, x->begin, x->codes, READ, KINDS);
}

static void compute(results *r, inputs *x, sf_dtype type, sf_isa isa)
{
    static float spread[(POOL * N + 2 * (TAPS - 1)) * LANES];
    const sf_view frames = {r->frames, F, type}, pooled = {r->pooled, F, type},
                  raw = {type == SF_F32 ? (void *)x->raw : x->raw_bf16, F, type};
    memset(r, 0, sizeof *r);
    sf_frames_of_codes(frames, r->frame_which, x->table, x->bias, x->codes, N, BLOCK, isa);
    sf_frames_pool(pooled, r->pooled_which, raw, N, F, isa);
    sf_frames_pool_backward((sf_view){r->dpooled, F, type}, r->pool_bias, x->dout, pooled, r->pooled_which, N, F, isa);
    sf_frames_relu_backward((sf_view){r->drelu, F, type}, r->relu_bias, x->dout, pooled, N, F, isa);
    sf_frames_of_codes_backward(r->dtable, r->code_bias, spread, x->dout, frames, r->frame_which, x->places, x->begin,
                                N, BLOCK, KINDS, isa);
}

/* ---------------------------------------------------------------- definition */

static void check_places(const inputs *x)
{
    size_t at = 0;
    for (size_t c = 0; c < KINDS; c++) {
        assert_int_equal(x->begin[c], at);
        for (uint32_t i = 0; i < READ; i++)
            if (x->codes[i] == c) assert_int_equal(x->places[at++], i);
    }
    assert_int_equal(x->begin[KINDS], READ);
}

/* Where the first of the largest three is. */
static size_t largest(const float three[POOL])
{
    size_t best = 0;
    for (size_t j = 1; j < POOL; j++)
        if (three[j] > three[best]) best = j;
    return best;
}

static void check_frames(const results *r, const inputs *x)
{
    static double dtable[TABLE];
    double dbias[LANES] = {0};
    memset(dtable, 0, sizeof dtable);
    for (size_t p = 0; p < N; p++)
        for (size_t f = 0; f < F; f++) {
            const size_t l = f - BLOCK * LANES;
            float sums[POOL];
            if (f < BLOCK * LANES || l >= LANES) { /* of another block */
                assert_true(r->frames[p * F + f] == 0);
                continue;
            }
            for (size_t j = 0; j < POOL; j++) {
                sums[j] = x->bias[f];
                for (size_t t = 0; t < TAPS; t++)
                    sums[j] += x->table[(x->codes[POOL * p + j + t] * (size_t)TAPS + t) * LANES + l];
            }
            const size_t which = largest(sums);
            assert_int_equal(r->frame_which[p * F + f], which);
            assert_true(r->frames[p * F + f] == (sums[which] > 0 ? sums[which] : 0));
            if (!(sums[which] > 0)) continue;
            dbias[l] += (double)x->dout[p * F + f];
            for (size_t t = 0; t < TAPS; t++) {
                const size_t code = x->codes[POOL * p + which + t];
                if (code) dtable[(code * TAPS + t) * LANES + l] += (double)x->dout[p * F + f];
            }
        }
    double most = 0;
    for (size_t i = 0; i < TABLE; i++) {
        most = fmax(most, fabs(dtable[i]));
        assert_true(fabs(dtable[i] - (double)r->dtable[i]) < 1e-5);
    }
    assert_true(most > 0.5);
    for (size_t l = 0; l < LANES; l++) assert_true(fabs(dbias[l] - (double)r->code_bias[l]) < 1e-5);
}

static void check_pooling(const results *r, const inputs *x)
{
    double dbias[F] = {0};
    for (size_t p = 0; p < N; p++)
        for (size_t f = 0; f < F; f++) {
            const float three[POOL] = {x->raw[POOL * p * F + f], x->raw[(POOL * p + 1) * F + f],
                                       x->raw[(POOL * p + 2) * F + f]};
            const float top = three[largest(three)], d = top > 0 ? x->dout[p * F + f] : 0;
            assert_true(r->pooled[p * F + f] == top);
            if (top > 0) assert_int_equal(r->pooled_which[p * F + f], largest(three));
            assert_true(r->drelu[p * F + f] == d);
            for (size_t j = 0; j < POOL; j++)
                assert_true(r->dpooled[(POOL * p + j) * F + f] == (top > 0 && j == largest(three) ? d : 0));
            dbias[f] += (double)d;
        }
    for (size_t f = 0; f < F; f++) {
        assert_true(fabs(dbias[f] - (double)r->pool_bias[f]) < 1e-5);
        assert_true(fabs(dbias[f] - (double)r->relu_bias[f]) < 1e-5);
    }
}

static void functions_equal_the_definition(void **unused)
{
    (void)unused;
    static inputs x;
    static results exact, rounded;
    static sf_bf16 want[N * F];
    for (int round = 0; round < 20; round++) {
        make_inputs(&x);
        check_places(&x);
        compute(&exact, &x, SF_F32, SF_PORTABLE);
        check_frames(&exact, &x);
        check_pooling(&exact, &x);
        compute(&rounded, &x, SF_BF16, SF_PORTABLE); /* bf16 is f32, rounded as products round */
        sf_to_bf16(want, exact.frames, N * F, SF_PORTABLE);
        assert_memory_equal(rounded.frames, want, sizeof want);
    }
}

static void instruction_sets_agree(void **unused)
{
    (void)unused;
    static inputs x;
    static results portable, other;
    static const sf_dtype types[] = {SF_F32, SF_BF16};
    const sf_isa best = sf_isa_choose();
    for (int round = 0; round < 20; round++)
        for (size_t t = 0; t < COUNT(types); t++) {
            make_inputs(&x);
            compute(&portable, &x, types[t], SF_PORTABLE);
            for (int isa = SF_AVX2; isa <= (int)best && isa <= SF_AVX512; isa++) {
                compute(&other, &x, types[t], (sf_isa)isa);
                assert_memory_equal(&other, &portable, sizeof other);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_equal_the_definition),
        cmocka_unit_test(instruction_sets_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
