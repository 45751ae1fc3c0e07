/* Every kernel of src/cuda against plain loops on the CPU, at sizes with odd ends (those of convolutional networks
 * are in test_frames.cu). Small enough for compute-sanitizer.
 * With --own: without the products of cuBLASLt, in whose own kernels its racecheck sees hazards. */
#include "cuda/attention_back.cuh"
#include "cuda/loss.cuh"
#include "cuda/plain.cuh"
#include "cuda/product.cuh"
#include "cuda/rows_back.cuh"
#include "cuda/widths.cuh"
#include "kernels.cuh"

using namespace sf;

namespace
{

/* ------------------------------------------------------------------------ rows */

void norm_reference(double *out, double *unit, double *scale, const double *x, const float *w, const float *b, int H,
                    double epsilon)
{
    double mean = 0, square = 0;
    for (int i = 0; i < H; i++) mean += x[i] / H;
    for (int i = 0; i < H; i++) square += (x[i] - mean) * (x[i] - mean) / H;
    *scale = 1 / sqrt(square + epsilon);
    for (int i = 0; i < H; i++) {
        unit[i] = (x[i] - mean) * *scale;
        if (out) out[i] = unit[i] * (double)w[i] + (double)b[i];
    }
}

template <int N> void run_rows(int H, int rows)
{
    const std::string name = std::to_string(H) + " numbers";
    const float epsilon = 1e-6f;
    both<bf16> in((size_t)rows * H), out((size_t)rows * H), sums((size_t)rows * H);
    both<float> weight(H), bias(H), words(50 * H), places(40 * H), type(H);
    both<uint32_t> ids(rows);
    both<uint16_t> place(rows);
    fill(in, 2, 0.5f), fill(weight, 0.3f, 1), fill(bias), fill(words), fill(places), fill(type);
    for (int i = 0; i < rows; i++) ids.here[i] = bits() % 50, place.here[i] = (uint16_t)(bits() % 40);
    ids.send(), place.send();
    std::vector<double> expected((size_t)rows * H), unit(H), x(H), sum((size_t)rows * H);
    double scale;
    const unsigned blocks = (unsigned)((rows + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK);
    norm<N><<<blocks, 32 * ROWS_A_BLOCK>>>(out.there, in.there, weight.there, bias.there, H, epsilon, rows);
    for (int r = 0; r < rows; r++) {
        for (int i = 0; i < H; i++) x[i] = (double)value(in.here[(size_t)r * H + i]);
        norm_reference(&expected[(size_t)r * H], unit.data(), &scale, x.data(), weight.here.data(), bias.here.data(), H,
                       (double)epsilon);
    }
    compare("norm, " + name, out, expected, BF16);
    embed<N><<<blocks, 32 * ROWS_A_BLOCK>>>(out.there, sums.there, ids.there, place.there, words.there, places.there,
                                            type.there, weight.there, bias.there, H, epsilon, rows);
    for (int r = 0; r < rows; r++) {
        for (int i = 0; i < H; i++)
            sum[(size_t)r * H + i] = x[i] = (double)words.here[ids.here[r] * H + i] +
                                            (double)places.here[place.here[r] * H + i] + (double)type.here[i];
        norm_reference(&expected[(size_t)r * H], unit.data(), &scale, x.data(), weight.here.data(), bias.here.data(), H,
                       (double)epsilon);
    }
    compare("embed, " + name, out, expected, BF16);
    compare("embed's sums, " + name, sums, sum, BF16);
}

template <int N> void run_rows_back(int H, int rows)
{
    const std::string name = std::to_string(H) + " numbers";
    const float epsilon = 1e-6f;
    both<bf16> in((size_t)rows * H), d((size_t)rows * H), out((size_t)rows * H);
    both<float> weight(H), partial((size_t)SUM_BLOCKS * 3 * H), dweight(H), dbias(H), total(H);
    fill(in, 2, 0.5f), fill(weight, 0.3f, 1), fill(d);
    std::vector<double> dx((size_t)rows * H), dw(H), db(H), dt(H), unit(H), x(H);
    run_norm_back<N>(out.there, partial.there, d.there, in.there, NULL, weight.there, H, epsilon, rows, 0);
    add_partial<<<dim3((unsigned)((H + 255) / 256), 3), 256>>>(dweight.there, dbias.there, total.there, partial.there,
                                                               3, H, 0);
    for (int r = 0; r < rows; r++) {
        double scale, plain = 0, dot = 0;
        for (int i = 0; i < H; i++) x[i] = (double)value(in.here[(size_t)r * H + i]);
        norm_reference(NULL, unit.data(), &scale, x.data(), NULL, NULL, H, (double)epsilon);
        for (int i = 0; i < H; i++) {
            const double g = (double)value(d.here[(size_t)r * H + i]);
            dw[i] += g * unit[i], db[i] += g;
            plain += g * (double)weight.here[i] / H, dot += g * (double)weight.here[i] * unit[i] / H;
        }
        for (int i = 0; i < H; i++)
            dt[i] += dx[(size_t)r * H + i] = scale *
                                             ((double)value(d.here[(size_t)r * H + i]) * (double)weight.here[i] -
                                              plain - unit[i] * dot);
    }
    compare("norm_back, " + name, out, dx, BF16);
    compare("norm_back's weight, " + name, dweight, dw, F32);
    compare("norm_back's bias, " + name, dbias, db, F32);
    compare("norm_back's sum, " + name, total, dt, F32);
    sum_rows<<<dim3((unsigned)((H + 511) / 512), SUM_BLOCKS), 256>>>(partial.there, d.there, H, rows);
    add_partial<<<(unsigned)((H + 255) / 256), 256>>>(total.there, NULL, NULL, partial.there, 1, H, 0);
    compare("sum_rows, " + name, total, db, F32);
}

void test_rows()
{
    const int widths[] = {8, 120, 384, 520, 768, 1024, 2048}, rows[] = {1, 9, 700};
    for (int H : widths)
        for (int r : rows) {
            FOR_WIDTH(H, run_rows, H, r);
            FOR_WIDTH(H, run_rows_back, H, r);
        }
}

/* ------------------------------------------------------------------- attention */

struct attended {
    std::vector<double> context, sums, dqkv;
};

/* Forward and back, of texts one after the other. */
attended attend_reference(const std::vector<bf16> &qkv, const std::vector<bf16> &dcontext,
                          const std::vector<uint32_t> &starts, int H, int heads)
{
    const size_t rows = starts.back();
    const int D = H / heads;
    attended a = {std::vector<double>(rows * H), std::vector<double>(rows * heads), std::vector<double>(rows * 3 * H)};
    auto at = [&](size_t row, int part, int column) {
        return (double)value(qkv[row * 3 * H + (size_t)part * H + column]);
    };
    for (size_t t = 0; t + 1 < starts.size(); t++)
        for (int h = 0; h < heads; h++)
            for (size_t i = starts[t]; i < starts[t + 1]; i++) {
                const size_t from = starts[t], T = starts[t + 1] - from;
                std::vector<double> share(T), dshare(T);
                double sum = 0, along = 0;
                for (size_t j = 0; j < T; j++) {
                    double score = 0;
                    for (int k = h * D; k < (h + 1) * D; k++) score += at(i, 0, k) * at(from + j, 1, k);
                    sum += share[j] = exp(score / sqrt((double)D));
                }
                a.sums[i * heads + h] = log2(sum);
                for (size_t j = 0; j < T; j++) {
                    share[j] /= sum;
                    for (int k = h * D; k < (h + 1) * D; k++) {
                        const double d = (double)value(dcontext[i * H + k]);
                        a.context[i * H + k] += share[j] * at(from + j, 2, k);
                        dshare[j] += d * at(from + j, 2, k);
                        a.dqkv[(from + j) * 3 * H + 2 * H + k] += share[j] * d;
                    }
                    along += dshare[j] * share[j];
                }
                for (size_t j = 0; j < T; j++)
                    for (int k = h * D; k < (h + 1) * D; k++) {
                        const double dscore = share[j] * (dshare[j] - along) / sqrt((double)D);
                        a.dqkv[i * 3 * H + k] += dscore * at(from + j, 1, k);
                        a.dqkv[(from + j) * 3 * H + H + k] += dscore * at(i, 0, k);
                    }
            }
    return a;
}

both<sf_attend_block> *cut(const std::vector<uint32_t> &starts, uint32_t queries)
{
    std::vector<sf_attend_block> made;
    for (size_t t = 0; t + 1 < starts.size(); t++)
        for (uint32_t q = 0; q < starts[t + 1] - starts[t]; q += queries)
            made.push_back({starts[t], starts[t + 1] - starts[t], q});
    both<sf_attend_block> *out = new both<sf_attend_block>(made.size());
    out->here = made;
    out->send();
    return out;
}

template <int D> void run_attention(int heads)
{
    const std::string name = "heads of " + std::to_string(D);
    const int H = D * heads;
    std::vector<uint32_t> starts = {0};
    for (uint32_t length : {1, 2, 63, 64, 65, 128, 130, 300, 17}) starts.push_back(starts.back() + length);
    const size_t rows = starts.back();
    both<bf16> qkv(rows * 3 * H), context(rows * H), dcontext(rows * H), dqkv(rows * 3 * H);
    both<float> sums(rows * heads), deltas(rows * heads);
    fill(qkv, 1.5f), fill(dcontext);
    const attended expected = attend_reference(qkv.here, dcontext.here, starts, H, heads);
    both<sf_attend_block> *blocks = cut(starts, SF_ATTEND_QUERIES), *back_blocks = cut(starts, BACK_ROWS);
    const float scale = 1 / sqrtf((float)D), log2e = 1.4426950408889634f;
    const dim3 grid((unsigned)blocks->size(), (unsigned)heads);
    attend_plain<ATTEND_ALL>
        <<<grid, SF_ATTEND_THREADS>>>(context.there, qkv.there, blocks->there, H, D, scale * log2e, relation());
    compare("attend_plain, " + name, context, expected.context, 2 * BF16);
    if constexpr (D == 32 || D == 64) {
        attend<D, ATTEND_ALL><<<grid, SF_ATTEND_THREADS>>>(context.there, sums.there, qkv.there, blocks->there, H,
                                                           scale * log2e, relation());
        compare("attend, " + name, context, expected.context, 2 * BF16);
        compare("attend's sums, " + name, sums, expected.sums, 1e-4);
        const back k = {qkv.there, dcontext.there, sums.there, deltas.there,  dqkv.there, back_blocks->there,
                        H,         heads,          scale,      scale * log2e, NULL,       0};
        attend_deltas<D>
            <<<(unsigned)((rows + 7) / 8), 256>>>(deltas.there, context.there, dcontext.there, H, heads, (int)rows);
        const dim3 back_grid((unsigned)back_blocks->size(), (unsigned)heads);
        attend_back_queries<D, ATTEND_ALL><<<back_grid, SF_ATTEND_THREADS>>>(k, relation());
        attend_back_keys<D, ATTEND_ALL><<<back_grid, SF_ATTEND_THREADS>>>(k, relation());
        compare("attend_back, " + name, dqkv, expected.dqkv, 4 * BF16);
    }
    delete blocks;
    delete back_blocks;
}

/* --------------------------------------------------------------------- the end */

/* Of one text's vectors: pooled, features and logits, by the head's arrays here. */
struct head_here {
    both<float> pooler, pooler_bias, weight, bias;
    int H, C, mean, pools, relu;
    head_here(int hidden, int classes, int mean_, int pools_, int relu_)
        : pooler((size_t)hidden * hidden), pooler_bias(hidden), weight((size_t)classes * hidden), bias(classes),
          H(hidden), C(classes), mean(mean_), pools(pools_), relu(relu_)
    {
        fill(pooler, 0.2f), fill(pooler_bias), fill(weight), fill(bias);
    }
    head there() const
    {
        const sf_encoder_activation activation = relu ? SF_ENCODER_RELU : SF_ENCODER_TANH;
        const float *p = pools ? pooler.there : NULL;
        return {H, C, mean, p, pooler_bias.there, activation, NULL, NULL, 0, weight.there, bias.there};
    }
};

void test_end(int H, int C, int mean, int pools, int relu)
{
    const std::string name = std::string(mean ? "mean" : "first") + (pools ? relu ? ", relu" : ", tanh" : "");
    const std::vector<uint32_t> lengths = {1, 5, 40};
    const size_t B = lengths.size(), rows = 46;
    head_here h(H, C, mean, pools, relu);
    both<bf16> x(rows * H), d(rows * H);
    both<uint32_t> starts(B + 1);
    both<float> logits(B * C), pooled(B * H), features(B * H), dropped(B * H), slopes(B * H), dlogits(B * C), losses(B),
        masks(B * H), raw(B * H), activated(B * H), dfeatures(B * H), dweight((size_t)C * H), dbias(C),
        dpooler((size_t)H * H), dpooler_bias(H);
    both<int> labels(B);
    fill(x);
    for (size_t t = 0; t < B; t++)
        starts.here[t + 1] = starts.here[t] + lengths[t], labels.here[t] = (int)(t % (size_t)C);
    for (float &m : masks.here) m = bits() % 4 ? 4.0f / 3 : 0;
    starts.send(), labels.send(), masks.send();
    std::vector<double> elogits(B * C), edlogits(B * C), elosses(B), edw((size_t)C * H), edb(C), edp((size_t)H * H),
        edpb(H), ed(rows * H);
    for (size_t t = 0; t < B; t++) {
        std::vector<double> p(H), f(H), l(C), slope(H), dp(H);
        const size_t first = starts.here[t], T = lengths[t];
        for (int c = 0; c < H; c++)
            for (size_t i = 0; i < (mean ? T : 1); i++)
                p[c] += (double)value(x.here[(first + i) * H + c]) / (double)(mean ? T : 1);
        f = p;
        for (int c = 0; pools && c < H; c++) {
            double sum = (double)h.pooler_bias.here[c];
            for (int i = 0; i < H; i++) sum += (double)h.pooler.here[(size_t)c * H + i] * p[i];
            f[c] = relu ? std::max(sum, 0.0) : tanh(sum);
        }
        double all = 0;
        for (int c = 0; c < C; c++) {
            elogits[t * C + c] = l[c] = (double)h.bias.here[c];
            for (int i = 0; i < H; i++) {
                elogits[t * C + c] += (double)h.weight.here[(size_t)c * H + i] * f[i];
                l[c] += (double)h.weight.here[(size_t)c * H + i] * f[i] * (double)masks.here[t * H + i];
            }
            all += exp(l[c]);
        }
        elosses[t] = log(all) - l[labels.here[t]];
        for (int c = 0; c < C; c++) {
            const double g = edlogits[t * C + c] = (exp(l[c]) / all - (c == labels.here[t])) / (double)B;
            edb[c] += g;
            for (int i = 0; i < H; i++) {
                edw[(size_t)c * H + i] += g * f[i] * (double)masks.here[t * H + i];
                slope[i] += g * (double)h.weight.here[(size_t)c * H + i] * (double)masks.here[t * H + i];
            }
        }
        for (int i = 0; pools && i < H; i++) slope[i] *= relu ? f[i] > 0 : 1 - f[i] * f[i];
        for (int i = 0; i < H; i++)
            for (int o = 0; o < H; o++) {
                dp[i] += pools ? slope[o] * (double)h.pooler.here[(size_t)o * H + i] : o == i ? slope[o] : 0;
                edp[(size_t)o * H + i] += slope[o] * p[i];
            }
        for (int i = 0; i < H; i++) edpb[i] += slope[i];
        for (size_t i = 0; i < T; i++)
            for (int c = 0; c < H; c++) ed[(first + i) * H + c] = mean ? dp[c] / (double)T : i ? 0 : dp[c];
    }
    const head there = h.there();
    const ends e = {pooled.there, features.there,  dropped.there, raw.there,    activated.there, NULL,
                    slopes.there, dfeatures.there, dlogits.there, losses.there, masks.there,     labels.there};
    classify<<<(unsigned)B, POOL_THREADS, 2 * H * sizeof(float)>>>(logits.there, x.there, starts.there, there);
    compare("classify, " + name, logits, elogits, F32);
    loss_forward<<<(unsigned)B, POOL_THREADS>>>(e, x.there, starts.there, there, 1.0f / (float)B);
    compare("loss_forward's losses, " + name, losses, elosses, F32);
    compare("loss_forward's slopes, " + name, dlogits, edlogits, F32);
    loss_back<<<(unsigned)B, POOL_THREADS, H * sizeof(float)>>>(d.there, e, starts.there, there);
    compare("loss_back, " + name, d, ed, BF16);
    dense_gradient<<<(unsigned)((C * H + 255) / 256), 256>>>(dweight.there, dbias.there, dlogits.there, dropped.there,
                                                             C, H, (int)B);
    compare("dense_gradient's weight, " + name, dweight, edw, F32);
    compare("dense_gradient's bias, " + name, dbias, edb, F32);
    if (!pools) return;
    dense_gradient<<<(unsigned)(((size_t)H * H + 255) / 256), 256>>>(dpooler.there, dpooler_bias.there, slopes.there,
                                                                     pooled.there, H, H, (int)B);
    compare("dense_gradient's pooler, " + name, dpooler, edp, F32);
    compare("dense_gradient's pooler bias, " + name, dpooler_bias, edpb, F32);
}

/* ------------------------------------------------------------------ the update */

void test_update(double clip)
{
    const size_t N = 100003;
    const adam a = {0.9f, 0.999f, 0.1f, 0.001f, 1e-8f, 1e-3f, 1e-5f};
    both<float> p(N), means(N), variances(N), g(N), scale(1);
    both<bf16> rounded(N);
    both<uint8_t> decays(N);
    both<double> squares(64);
    fill(p), fill(means, 0.1f), fill(variances, 0.1f, 0.2f), fill(g);
    for (size_t i = 0; i < N; i++) decays.here[i] = bits() % 2;
    decays.send();
    double sum = 0;
    for (float x : g.here) sum += (double)x * (double)x;
    const double by = clip > 0 && sqrt(sum) > clip ? clip / sqrt(sum) : 1;
    std::vector<double> em(N), ev(N), ep(N);
    for (size_t i = 0; i < N; i++) {
        const double d = (double)g.here[i] * by;
        em[i] = 0.9 * (double)means.here[i] + 0.1 * d;
        ev[i] = 0.999 * (double)variances.here[i] + 0.001 * d * d;
        ep[i] = (double)p.here[i] -
                (1e-3 * (em[i] / 0.1) / (sqrt(ev[i] / 0.001) + 1e-8) + (decays.here[i] ? 1e-5 * (double)p.here[i] : 0));
    }
    sum_squares<<<64, 256>>>(squares.there, g.there, N);
    clip_scale<<<1, 1>>>(scale.there, squares.there, 64, clip);
    update<<<(unsigned)((N + 255) / 256), 256>>>(p.there, rounded.there, means.there, variances.there, g.there,
                                                 scale.there, decays.there, a, N);
    const std::string name = clip > 0 ? ", clipped" : "";
    compare("clip_scale" + name, scale, {by}, F32);
    compare("update's means" + name, means, em, F32);
    compare("update's variances" + name, variances, ev, F32);
    compare("update" + name, p, ep, F32);
    compare("update, rounded" + name, rounded, ep, BF16);
}

void test_gather()
{
    const int H = 200;
    const std::vector<uint32_t> keys = {3, 0, 7}, starts = {0, 2, 3, 7}, list = {1, 4, 0, 2, 3, 5, 6};
    both<bf16> d(7 * H);
    both<float> out(8 * H);
    both<uint32_t> k(3), s(4), l(7);
    k.here = keys, s.here = starts, l.here = list;
    k.send(), s.send(), l.send(), fill(d);
    std::vector<double> expected(8 * H);
    need(cudaMemset(out.there, 0, 8 * H * sizeof(float)), "clearing memory");
    for (size_t e = 0; e < 3; e++)
        for (uint32_t i = starts[e]; i < starts[e + 1]; i++)
            for (int c = 0; c < H; c++) expected[keys[e] * H + c] += (double)value(d.here[list[i] * H + c]);
    gather_rows<<<3, 128>>>(out.there, k.there, s.there, l.there, d.there, H);
    compare("gather_rows", out, expected, F32);
}

/* -------------------------------------------------------------------- products */

double gelu(double x) { return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
double gelu_slope(double x) { return (gelu(x + 1e-4) - gelu(x - 1e-4)) / 2e-4; }

void test_products(int O, int I, size_t rows)
{
    const std::string name = std::to_string(O) + " by " + std::to_string(I) + ", " + std::to_string(rows) + " rows";
    safer_error error = {};
    cublasLtHandle_t library;
    both<bf16> weight((size_t)O * I), bias(O), in(rows * I), other(rows * O), out(rows * O), raw(rows * O),
        din(rows * I), draw(rows * I), added(rows * I);
    both<float> gradient((size_t)O * I);
    both<char> workspace(PRODUCT_WORKSPACE);
    fill(weight, 0.2f), fill(bias), fill(in), fill(other), fill(draw), fill(added);
    if (cublasLtCreate(&library) != CUBLAS_STATUS_SUCCESS) exit(1);
    auto go = [&](void *to, const bf16 *from, const bf16 *more, product_kind kind, product_options o) {
        product p;
        safer_status status = product_make(&p, library, kind, kind == WEIGHTS ? NULL : weight.there, O, I, o, &error);
        if (status == SAFER_OK) status = product_run(to, from, more, &p, rows, library, workspace.there, 0, &error);
        if (status != SAFER_OK) fprintf(stderr, "test_kernels: %s\n", error.message), exit(1);
    };
    std::vector<double> plain(rows * O), e(rows * O), back(rows * I), eb(rows * I), eg((size_t)O * I);
    for (size_t r = 0; r < rows; r++)
        for (int o = 0; o < O; o++) {
            plain[r * O + o] = (double)value(bias.here[o]);
            for (int i = 0; i < I; i++) {
                const double w = (double)value(weight.here[(size_t)o * I + i]),
                             d = (double)value(other.here[r * O + o]);
                plain[r * O + o] += (double)value(in.here[r * I + i]) * w;
                back[r * I + i] += d * w;
                eg[(size_t)o * I + i] += d * (double)value(in.here[r * I + i]);
            }
        }
    go(out.there, in.there, NULL, FORWARD, {CUBLASLT_EPILOGUE_BIAS, bias.there, NULL, 0});
    compare("product, " + name, out, plain, BF16);
    go(out.there, in.there, other.there, FORWARD, {CUBLASLT_EPILOGUE_BIAS, bias.there, NULL, 1});
    for (size_t i = 0; i < e.size(); i++) e[i] = plain[i] + (double)value(other.here[i]);
    compare("product, added, " + name, out, e, BF16);
    go(out.there, in.there, NULL, FORWARD, {CUBLASLT_EPILOGUE_RELU_BIAS, bias.there, NULL, 0});
    for (size_t i = 0; i < e.size(); i++) e[i] = std::max(plain[i], 0.0);
    compare("product, relu, " + name, out, e, BF16);
    go(out.there, in.there, NULL, FORWARD, {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, bias.there, raw.there, 0});
    for (size_t i = 0; i < e.size(); i++) e[i] = gelu(plain[i]);
    compare("product, gelu, " + name, out, e, 2 * BF16);
    compare("product, what gelu takes, " + name, raw, plain, BF16);
    go(din.there, other.there, NULL, BACK, {CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, 0});
    compare("product back, " + name, din, back, BF16);
    go(din.there, other.there, added.there, BACK, {CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, 1});
    for (size_t i = 0; i < eb.size(); i++) eb[i] = back[i] + (double)value(added.here[i]);
    compare("product back, added, " + name, din, eb, BF16);
    go(din.there, other.there, NULL, BACK, {CUBLASLT_EPILOGUE_DGELU, NULL, draw.there, 0});
    for (size_t i = 0; i < eb.size(); i++) eb[i] = back[i] * gelu_slope((double)value(draw.here[i]));
    compare("product back, gelu, " + name, din, eb, 2 * BF16);
    go(gradient.there, other.there, in.there, WEIGHTS, {CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, 0});
    compare("product of weights, " + name, gradient, eg, 1e-4);
    cublasLtDestroy(library);
}

/* Parts of one piece to many, with pieces between them that are in none. */
void test_parts(int H)
{
    const size_t rows = 400;
    std::vector<span> made;
    both<bf16> x(rows * H);
    fill(x);
    for (uint32_t at = 0, count; at + (count = made.size() == 3 ? 130 : 1 + bits() % 5) <= rows;
         at += count + bits() % 2)
        made.push_back({at, count});
    both<span> parts(made.size());
    both<float> means(made.size() * H);
    std::vector<double> expected(made.size() * H);
    parts.here = made;
    parts.send();
    for (size_t p = 0; p < made.size(); p++)
        for (size_t i = 0; i < made[p].count; i++)
            for (int c = 0; c < H; c++)
                expected[p * H + c] += (double)value(x.here[(made[p].begin + i) * H + c]) / (double)made[p].count;
    mean_spans<<<(unsigned)made.size(), POOL_THREADS>>>(means.there, x.there, parts.there, H);
    compare("mean_spans, " + std::to_string(H), means, expected, F32);
}

} // namespace

int main(int argc, char **argv)
{
    const bool own = argc > 1 && !strcmp(argv[1], "--own");
    test_rows();
    test_gather();
    run_attention<32>(3);
    run_attention<64>(2);
    run_attention<24>(2);
    for (int pools = 0; pools < 3; pools++)
        for (int mean = 0; mean < 2; mean++) test_end(200, 3, mean, pools > 0, pools == 2);
    for (int H : {24, 384, 1032}) test_parts(H);
    test_update(0);
    test_update(1);
    for (int i = 0; i < 2 && !own; i++) test_products(i ? 384 : 96, i ? 96 : 64, i ? 300 : 77);
    if (failures)
        printf("%d comparisons failed\n", failures);
    else
        puts("fine");
    return failures != 0;
}
