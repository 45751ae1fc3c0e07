/* The kernels of convolutional networks against plain loops on the CPU, at sizes with odd ends. Small enough for
 * compute-sanitizer. With --own: without the products of cuBLASLt, in whose own kernels its racecheck sees hazards. */
#include "cuda/frames_back.cuh"
#include "cuda/product.cuh"
#include "cuda/standard.cuh"
#include "kernels.cuh"

using namespace sf;

namespace
{

unsigned blocks_of(size_t count) { return (unsigned)((count + 255) / 256); }

std::vector<double> values(const both<bf16> &x)
{
    std::vector<double> out(x.size());
    for (size_t i = 0; i < x.size(); i++) out[i] = (double)value(x.here[i]);
    return out;
}

/* ------------------------------------------------------- the first convolution */

void test_codes(int F, int L, int texts)
{
    const std::string name = std::to_string(F) + " features, " + std::to_string(texts) + " texts";
    const int frames = (L - TAPS + 1) / POOL, total = texts * frames;
    const size_t weights = (size_t)(CODES - 1) * TAPS * F, numbers = (size_t)total * F;
    both<uint8_t> codes((size_t)texts * L), which(numbers);
    both<float> weight(weights), bias(F), dweight(weights), dbias(F), partial((size_t)TABLE_BLOCKS * TABLE_ROWS * F);
    both<bf16> out(numbers), d(numbers);
    for (uint8_t &c : codes.here) c = (uint8_t)(bits() % CODES);
    codes.send(), fill(weight), fill(bias), fill(d);
    frames_of_codes<<<frame_grid(F, total), FRAME_THREADS>>>(out.there, which.there, codes.there, weight.there,
                                                             bias.there, F, L, frames, total);
    std::vector<double> e(numbers), edw(weights), edb(F), largest_of(numbers), found(numbers);
    for (int at = 0; at < total; at++)
        for (int f = 0; f < F; f++) {
            const uint8_t *read = &codes.here[(size_t)(at / frames) * L + POOL * (at % frames)];
            double sum[POOL], most = -1e300;
            int index = 0;
            for (int j = 0; j < POOL; j++) {
                sum[j] = (double)bias.here[f];
                for (int t = 0; t < TAPS; t++)
                    if (read[j + t]) sum[j] += (double)weight.here[((read[j + t] - 1) * TAPS + t) * (size_t)F + f];
                if (sum[j] > most) most = sum[j], index = j;
            }
            const size_t i = (size_t)at * F + f;
            e[i] = std::max(most, 0.0);
            largest_of[i] = most;
            const double g = most > 0 ? (double)value(d.here[i]) : 0;
            edb[f] += g;
            for (int t = 0; t < TAPS; t++)
                if (read[index + t]) edw[((read[index + t] - 1) * TAPS + t) * (size_t)F + f] += g;
        }
    compare("frames of codes, " + name, out, e, BF16);
    which.get();
    both<float> chosen(numbers); /* the sum of the one that was chosen: of equal ones any is right here */
    for (int at = 0; at < total; at++)
        for (int f = 0; f < F; f++) {
            const size_t i = (size_t)at * F + f;
            const uint8_t *read = &codes.here[(size_t)(at / frames) * L + POOL * (at % frames) + which.here[i] % POOL];
            chosen.here[i] = bias.here[f];
            for (int t = 0; t < TAPS; t++)
                if (read[t]) chosen.here[i] += weight.here[((read[t] - 1) * TAPS + t) * (size_t)F + f];
        }
    chosen.send();
    compare("which of three, " + name, chosen, largest_of, F32);
    const int blocks = std::min(texts, (int)TABLE_BLOCKS);
    need(cudaFuncSetAttribute(table_back, cudaFuncAttributeMaxDynamicSharedMemorySize, TABLE_BYTES), "shared memory");
    table_back<<<dim3((unsigned)((F + TABLE_LANES - 1) / TABLE_LANES), (unsigned)blocks), TABLE_LANES, TABLE_BYTES>>>(
        partial.there, d.there, out.there, which.there, codes.there, F, L, frames, texts);
    add_tables<<<blocks_of(weights + F), 256>>>(dweight.there, dbias.there, partial.there, F, blocks);
    compare("the gradient of its weights, " + name, dweight, edw, 1e-4);
    compare("the gradient of its bias, " + name, dbias, edb, 1e-4);
}

/* ---------------------------------------------------------------------- maxima */

void test_pool(int F, int rows, int frames, int texts)
{
    const std::string name = std::to_string(F) + " features, " + std::to_string(rows) + " rows";
    const size_t total = (size_t)texts * frames * F, all = (size_t)texts * rows * F;
    both<bf16> raw(all), out(total), dout(total), d(all);
    for (bf16 &v : raw.here) v = bf16(std::max(0.0f, std::round(4 * noise()) / 4)); /* often equal, often 0 */
    raw.send(), fill(dout);
    pool_frames<<<blocks_of(total / 8), 256>>>(out.there, raw.there, F, frames, rows, total);
    const size_t threads = (size_t)texts * ((rows + POOL - 1) / POOL) * (F / 2);
    pool_back<<<blocks_of(threads), 256>>>(d.there, dout.there, raw.there, F, frames, rows, threads);
    std::vector<double> e(total), ed(all), er(all), x = values(raw);
    for (int t = 0; t < texts; t++)
        for (int p = 0; p < frames; p++)
            for (int f = 0; f < F; f++) {
                const size_t from = ((size_t)t * rows + POOL * p) * F + f, to = ((size_t)t * frames + p) * F + f;
                size_t best = from;
                for (int j = 1; j < POOL; j++)
                    if (x[from + (size_t)j * F] > x[best]) best = from + (size_t)j * F;
                e[to] = x[best];
                if (x[best] > 0) ed[best] = (double)value(dout.here[to]);
            }
    compare("maxima, " + name, out, e, 0);
    compare("maxima back, " + name, d, ed, 0);
    fill(d);
    er = values(d);
    for (size_t i = 0; i < all; i++)
        if (x[i] <= 0) er[i] = 0;
    frames_relu_back<<<blocks_of(all), 256>>>(d.there, raw.there, all);
    compare("relu back, " + name, d, er, 0);
}

/* --------------------------------------------------------------------- the end */

void test_end(int H, int C, int texts, float smoothing, bool masked)
{
    const std::string name = std::to_string(H) + " by " + std::to_string(C) + (masked ? ", dropout" : "");
    const size_t N = (size_t)texts * H;
    both<bf16> relu(N), d(N), dropped(N);
    both<float> weight((size_t)C * H), bias(C), masks(N), last(N), dlogits((size_t)texts * C), losses(texts),
        logits((size_t)texts * C);
    both<int> labels(texts);
    fill(weight, 0.3f), fill(bias);
    for (bf16 &v : relu.here) v = bf16(std::max(0.0f, noise()));
    for (float &v : masks.here) v = bits() % 4 ? 4 / 3.0f : 0.0f;
    for (int &v : labels.here) v = (int)(bits() % C);
    relu.send(), masks.send(), labels.send();
    const float share = 1 / (float)texts;
    const convnet_end end = {
        weight.there, bias.there,    H,           C, smoothing, share, labels.there, masked ? masks.there : NULL,
        last.there,   dlogits.there, losses.there};
    output_layer<<<(unsigned)texts, OUTPUT_THREADS>>>(logits.there, relu.there, weight.there, bias.there, H, C);
    convnet_loss<<<(unsigned)texts, POOL_THREADS>>>(d.there, relu.there, end);
    std::vector<double> el((size_t)texts * C), elosses(texts), edl((size_t)texts * C), ed(N), elast(N),
        r = values(relu), edropped(N), eback(N);
    for (int t = 0; t < texts; t++) {
        std::vector<double> z(C);
        double sum = 0;
        for (int c = 0; c < C; c++) {
            el[t * C + c] = z[c] = (double)bias.here[c];
            for (int h = 0; h < H; h++) {
                const size_t i = (size_t)t * H + h;
                const double mask = masked ? (double)masks.here[i] : 1, w = (double)weight.here[(size_t)c * H + h];
                elast[i] = r[i] * mask;
                z[c] += elast[i] * w;
                el[t * C + c] += r[i] * w;
            }
            sum += exp(z[c]);
        }
        for (int c = 0; c < C; c++) {
            const double wanted = (c == labels.here[t] ? 1 - (double)smoothing : 0) + (double)smoothing / C,
                         p = exp(z[c]) / sum;
            elosses[t] -= wanted * log(p);
            edl[t * C + c] = (p - wanted) / texts;
        }
        for (int h = 0; h < H; h++) {
            const size_t i = (size_t)t * H + h;
            const double mask = masked ? (double)masks.here[i] : 1;
            for (int c = 0; c < C; c++)
                if (r[i] > 0) ed[i] += edl[t * C + c] * (double)weight.here[(size_t)c * H + h] * mask;
        }
    }
    compare("logits, " + name, logits, el, F32);
    compare("losses, " + name, losses, elosses, F32);
    compare("their gradient, " + name, dlogits, edl, 1e-4);
    compare("the layer after dropout, " + name, last, elast, F32);
    compare("the gradient of the layer, " + name, d, ed, BF16);
    fill(d);
    for (size_t i = 0; i < N; i++) {
        edropped[i] = r[i] * (double)masks.here[i];
        eback[i] = r[i] > 0 ? (double)value(d.here[i]) * (masked ? (double)masks.here[i] : 1) : 0;
    }
    drop<<<blocks_of(N), 256>>>(dropped.there, relu.there, masks.there, N);
    drop_back<<<blocks_of(N), 256>>>(d.there, relu.there, masked ? masks.there : NULL, N);
    compare("dropout, " + name, dropped, edropped, BF16);
    compare("dropout back, " + name, d, eback, BF16);
}

/* ---------------------------------------------------------- standardised weights */

void test_standard()
{
    const int inputs[STANDARDS] = {7 * 16, 3 * 16, 300, 129, 128, 1, 500},
              outputs[STANDARDS] = {16, 16, 40, 260, 300, 8, 24};
    size_t weights = 0, gains = 0;
    for (int k = 0; k < STANDARDS; k++) weights += (size_t)inputs[k] * outputs[k], gains += outputs[k];
    both<float> v(weights + gains), gradient(weights + gains), numbers(5 * gains), sums(8 * gains), products(8 * gains);
    both<double> spread(gains);
    both<bf16> rounded(weights);
    fill(v, 1, 0.3f), fill(gradient);
    standards all = {};
    std::vector<double> e(weights), eg(weights + gains);
    size_t at = 0, gain = 0;
    for (int k = 0; k < STANDARDS; k++) {
        standard *m = &all.m[k];
        const int I = inputs[k], O = outputs[k];
        *m = {at,   weights + gain,      I,    O,    0.5 / I, sums.there + 8 * gain, products.there + 8 * gain, NULL,
              NULL, spread.there + gain, NULL, NULL, NULL};
        float **const places[] = {&m->mean, &m->scale, &m->a, &m->b, &m->c};
        for (int i = 0; i < 5; i++) *places[i] = numbers.there + i * gains + gain;
        for (int o = 0; o < O; o++) {
            double mean = 0, square = 0, plain = 0, along = 0;
            auto x = [&](int i) { return (double)v.here[at + (size_t)i * O + o]; };
            auto g = [&](int i) { return (double)gradient.here[at + (size_t)i * O + o]; };
            for (int i = 0; i < I; i++) mean += x(i) / I;
            for (int i = 0; i < I; i++) square += (x(i) - mean) * (x(i) - mean) / I;
            const double wide = sqrt(std::max(square, 1e-12)),
                         scale = (double)v.here[weights + gain + o] * sqrt(m->share) / wide;
            for (int i = 0; i < I; i++) plain += g(i) / I, along += g(i) * (x(i) - mean) / wide / I;
            eg[weights + gain + o] = I * along * sqrt(m->share);
            for (int i = 0; i < I; i++) {
                e[at + (size_t)i * O + o] = (x(i) - mean) * scale;
                eg[at + (size_t)i * O + o] = scale * (g(i) - plain - (x(i) - mean) / wide * along);
            }
        }
        at += (size_t)I * O, gain += O;
    }
    /* The matrix of one row has no spread: what is left of it is rounding. */
    const size_t lonely = all.m[5].offset;
    const dim3 grid(2, 4, STANDARDS), columns(2, 1, STANDARDS);
    standard_sums<<<grid, 256>>>(all, v.there, v.there);
    standard_numbers<<<columns, 256>>>(all, v.there);
    standard_write<<<grid, 256>>>(rounded.there, all, v.there);
    standard_sums<<<grid, 256>>>(all, gradient.there, v.there);
    standard_numbers_back<<<columns, 256>>>(gradient.there, all, v.there);
    standard_write_back<<<grid, 256>>>(gradient.there, all, v.there);
    need(cudaDeviceSynchronize(), "standardising");
    rounded.get(), gradient.get();
    for (int i = 0; i < 8; i++) {
        e[lonely + i] = (double)value(rounded.here[lonely + i]);
        eg[lonely + i] = (double)gradient.here[lonely + i];
        eg[all.m[5].gains + i] = (double)gradient.here[all.m[5].gains + i];
    }
    compare("standardised weights", rounded, e, BF16);
    compare("their gradient, and that of gains", gradient, eg, 1e-4);
    for (int width : {3, 7}) {
        const int F = 48;
        both<bf16> weight((size_t)width * F * F), turned((size_t)width * F * F);
        fill(weight);
        turn_taps<<<blocks_of(weight.size()), 256>>>(turned.there, weight.there, F, width);
        std::vector<double> et(weight.size());
        for (int c = 0; c < F; c++)
            for (int t = 0; t < width; t++)
                for (int o = 0; o < F; o++)
                    et[((size_t)c * width + t) * F + o] = (double)value(
                        weight.here[((size_t)(width - 1 - t) * F + c) * F + o]);
        compare("taps reversed, width " + std::to_string(width), turned, et, 0);
    }
}

/* ------------------------------------------------------------- sliding products */

/* A convolution of `rows` rows, the rows behind them being zeros, and its two ways back. */
void test_sliding(int F, int W, size_t rows)
{
    const std::string name = std::to_string(F) + " features, width " + std::to_string(W) + ", " + std::to_string(rows) +
                             " rows";
    const size_t pad = 16, N = (rows + pad) * F, size = (size_t)W * F * F;
    safer_error error = {};
    cublasLtHandle_t library;
    both<bf16> in(N), weight(size), bias(F), out(N), d(N), din(N);
    both<float> parts(W * size), gradient(size);
    both<char> workspace(PRODUCT_WORKSPACE);
    fill(in), fill(weight, 0.1f), fill(bias), fill(d);
    for (size_t i = rows * F; i < N; i++) d.here[i] = bf16(0.0f);
    d.send();
    if (cublasLtCreate(&library) != CUBLAS_STATUS_SUCCESS) exit(1);
    auto go = [&](void *to, const bf16 *from, const bf16 *other, product_kind kind, const bf16 *by, int outputs,
                  int inputs, product_options o) {
        product p;
        safer_status status = product_make(&p, library, kind, by, outputs, inputs, o, &error);
        if (status == SAFER_OK) status = product_run(to, from, other, &p, rows, library, workspace.there, 0, &error);
        if (status != SAFER_OK) fprintf(stderr, "test_frames: %s\n", error.message), exit(1);
    };
    std::vector<double> x = values(in), w = values(weight), g = values(d), e(rows * F), et(rows * F), eg(size);
    for (size_t r = 0; r < rows; r++)
        for (int o = 0; o < F; o++) {
            double sum = (double)value(bias.here[o]), turned = 0;
            for (int k = 0; k < W * F; k++) {
                sum += x[r * F + k] * w[(size_t)k * F + o];        /* (W * F, F) */
                turned += g[r * F + k] * w[(size_t)o * W * F + k]; /* (F, W * F) */
                eg[(size_t)k * F + o] += x[r * F + k] * g[r * F + o];
            }
            e[r * F + o] = std::max(sum, 0.0);
            et[r * F + o] = turned;
        }
    go(out.there, in.there, NULL, BACK, weight.there, W * F, F, {CUBLASLT_EPILOGUE_RELU_BIAS, bias.there, NULL, 0, W});
    compare("sliding product, relu, " + name, out, e, BF16);
    go(din.there, d.there, NULL, FORWARD, weight.there, F, W * F, {CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, 0, W});
    compare("sliding product, turned, " + name, din, et, BF16);
    go(parts.there, in.there, d.there, WEIGHTS, NULL, W * F, F, {CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, 0, W});
    add_parts<<<blocks_of(size), 256>>>(gradient.there, parts.there, W, size);
    compare("sliding product of weights, " + name, gradient, eg, 1e-4);
    cublasLtDestroy(library);
}

} // namespace

int main(int argc, char **argv)
{
    const bool own = argc > 1 && !strcmp(argv[1], "--own");
    test_codes(16, 123, 1);
    test_codes(48, 140, 60);
    test_pool(16, 11, 1, 3);
    test_pool(48, 33, 11, 5);
    test_pool(32, 36, 10, 4);
    for (int masked = 0; masked < 2; masked++) test_end(40, 2 + 5 * masked, 9, 0.1f * (float)masked, masked);
    test_standard();
    for (int i = 0; i < 4 && !own; i++) test_sliding(i / 2 ? 64 : 16, i % 2 ? 7 : 3, i ? 100 + 29 * i : 5);
    if (failures)
        printf("%d comparisons failed\n", failures);
    else
        puts("fine");
    return failures != 0;
}
