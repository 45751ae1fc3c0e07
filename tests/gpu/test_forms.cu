/* What encoders have that BERT has not (nn/encoder.h), kernel by kernel against loops in double precision: kinds of
 * attention, rotary positions, gates, products with places, heads with a norm. Small enough for compute-sanitizer.
 * With --own: without the products of cuBLASLt, in whose own kernels its racecheck sees hazards. */
#include "cuda/attention_back.cuh"
#include "cuda/heads.cuh"
#include "cuda/loss.cuh"
#include "cuda/plain.cuh"
#include "cuda/relative.cuh"
#include "cuda/rotary.cuh"
#include "cuda/rows_back.cuh"
#include "cuda/widths.cuh"
#include "kernels.cuh"

using namespace sf;

namespace
{

const float LOG2E = 1.4426950408889634f;

/* ------------------------------------------------------------------- attention */

enum { TOKENS = 300, COLUMNS = 96, BUCKETS = 40 };

/* Texts, what distances mean to them, and what attention makes of them. */
struct case_of {
    int kind, H, heads, window;
    float scale;
    std::vector<uint32_t> starts;
    both<bf16> qkv, dcontext, keys, queries;
    both<float> table; /* (BUCKETS, heads) */
    std::vector<int32_t> buckets;
    case_of(int kind_, int D, int heads_, size_t rows)
        : kind(kind_), H(D * heads_), heads(heads_), window(37), scale(0.8f / sqrtf((float)D)), starts({0}),
          qkv(rows * 3 * H), dcontext(rows * H), keys(rows * heads_ * COLUMNS), queries(rows * heads_ * COLUMNS),
          table((size_t)BUCKETS * heads_), buckets(2 * TOKENS - 1)
    {
        fill(qkv, 1.5f), fill(dcontext), fill(keys, 2), fill(queries, 2), fill(table, 2);
        const int most = kind == ATTEND_BIASED ? BUCKETS : COLUMNS;
        for (int i = 0; i < 2 * TOKENS - 1; i++) { /* near ones have their own, far ones share some */
            const int far = i - TOKENS + 1, size = abs(far) < 12 ? abs(far) : 12 + (abs(far) - 12) / 9;
            buckets[i] = std::min(most - 1, std::max(0, most / 2 + (far < 0 ? -size : size)));
        }
    }
    int bucket(int far) const { return buckets[far + TOKENS - 1]; }
};

struct attended {
    std::vector<double> context, sums, dqkv, dkeys, dqueries, dtable;
};

/* Of head h: what query i makes of keys. */
struct line {
    std::vector<double> share, slope;
};

line line_of(const case_of &c, size_t from, size_t T, size_t i, int h, double *log_sum)
{
    const int D = c.H / c.heads;
    line l = {std::vector<double>(T), std::vector<double>(T)};
    double sum = 0, along = 0;
    auto at = [&](size_t row, int part, int k) { return (double)value(c.qkv.here[row * 3 * c.H + part * c.H + k]); };
    for (size_t j = 0; j < T; j++) {
        const int far = (int)j - (int)(i - from), bucket = c.bucket(far);
        double score = 0;
        for (int k = h * D; k < (h + 1) * D; k++) {
            score += at(i, 0, k) * at(from + j, 1, k);
            l.slope[j] += (double)value(c.dcontext.here[i * c.H + k]) * at(from + j, 2, k);
        }
        if (c.kind == ATTEND_PARTS)
            score += (double)value(c.keys.here[(i * c.heads + h) * COLUMNS + bucket]) +
                     (double)value(c.queries.here[((from + j) * c.heads + h) * COLUMNS + bucket]);
        score *= (double)c.scale;
        if (c.kind == ATTEND_BIASED) score += (double)c.table.here[bucket * c.heads + h];
        sum += l.share[j] = c.kind == ATTEND_LOCAL && abs(far) > c.window ? 0 : exp(score);
    }
    for (size_t j = 0; j < T; j++) along += (l.share[j] /= sum) * l.slope[j];
    for (size_t j = 0; j < T; j++) l.slope[j] = l.share[j] * (l.slope[j] - along); /* now of scores */
    *log_sum = log2(sum);
    return l;
}

attended attend_reference(const case_of &c)
{
    const size_t rows = c.starts.back();
    const int D = c.H / c.heads;
    attended a = {std::vector<double>(rows * c.H),
                  std::vector<double>(rows * c.heads),
                  std::vector<double>(rows * 3 * c.H),
                  std::vector<double>(rows * c.heads * COLUMNS),
                  std::vector<double>(rows * c.heads * COLUMNS),
                  std::vector<double>((size_t)BUCKETS * c.heads)};
    for (size_t t = 0; t + 1 < c.starts.size(); t++)
        for (int h = 0; h < c.heads; h++)
            for (size_t i = c.starts[t]; i < c.starts[t + 1]; i++) {
                const size_t from = c.starts[t], T = c.starts[t + 1] - from;
                const line l = line_of(c, from, T, i, h, &a.sums[i * c.heads + h]);
                for (size_t j = 0; j < T; j++) {
                    const int bucket = c.bucket((int)j - (int)(i - from));
                    const size_t key = from + j;
                    for (int k = h * D; k < (h + 1) * D; k++) {
                        const double d = l.slope[j] * (double)c.scale;
                        a.context[i * c.H + k] += l.share[j] * (double)value(c.qkv.here[(key * 3 + 2) * c.H + k]);
                        a.dqkv[(key * 3 + 2) * c.H + k] += l.share[j] * (double)value(c.dcontext.here[i * c.H + k]);
                        a.dqkv[i * 3 * c.H + k] += d * (double)value(c.qkv.here[(key * 3 + 1) * c.H + k]);
                        a.dqkv[(key * 3 + 1) * c.H + k] += d * (double)value(c.qkv.here[i * 3 * c.H + k]);
                    }
                    if (c.kind == ATTEND_BIASED) a.dtable[bucket * c.heads + h] += l.slope[j];
                    if (c.kind != ATTEND_PARTS) continue;
                    a.dkeys[(i * c.heads + h) * COLUMNS + bucket] += l.slope[j];
                    a.dqueries[(key * c.heads + h) * COLUMNS + bucket] += l.slope[j];
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

template <int D, int KIND> void run_attention(int heads)
{
    static const char *const names[] = {"all", "local", "biased", "parts"};
    const std::string name = std::string(names[KIND]) + ", heads of " + std::to_string(D);
    std::vector<uint32_t> starts = {0};
    for (int length : {1, 2, 63, 64, 65, 128, 130, (int)TOKENS, 17}) starts.push_back(starts.back() + (uint32_t)length);
    const size_t rows = starts.back(), reach = reach_of(TOKENS), tiles = (TOKENS + 63) / 64,
                 slots = tiles * 256 * heads;
    case_of c(KIND, D, heads, rows);
    c.starts = starts;
    const int H = c.H;
    both<bf16> context(rows * H), dqkv(rows * 3 * H), dkeys(rows * heads * COLUMNS), dqueries(rows * heads * COLUMNS);
    both<float> sums(rows * heads), deltas(rows * heads), bias(2 * reach * heads), shares(SUM_SHARES * slots),
        all(slots), dtable((size_t)BUCKETS * heads);
    both<int32_t> buckets(2 * reach);
    const int low = KIND == ATTEND_PARTS ? 24 : 0; /* as if as many columns before these were not there */
    int32_t *stretched = stretch_buckets(c.buckets.data(), TOKENS, 0);
    buckets.here.assign(stretched, stretched + 2 * reach);
    for (int32_t &bucket : buckets.here) bucket += low;
    free(stretched);
    buckets.send();
    const attended expected = attend_reference(c);
    both<sf_attend_block> *blocks = cut(starts, SF_ATTEND_QUERIES), *back_blocks = cut(starts, BACK_ROWS);
    both<float> diagonals(back_blocks->size() * heads * tiles * 128);
    if (KIND == ATTEND_BIASED) /* the buckets of PARTS are more than its table has rows */
        spread_bias<<<dim3((unsigned)(2 * reach + 255) / 256, (unsigned)heads), 256>>>(bias.there, c.table.there,
                                                                                       buckets.there, (int)reach,
                                                                                       heads);
    for (auto *x : {&dkeys, &dqueries}) need(cudaMemset(x->there, 0, x->size() * sizeof(bf16)), "clearing memory");
    need(cudaMemset(all.there, 0, slots * sizeof(float)), "clearing memory");
    const int width = (int)tiles * SF_ATTEND_KEYS;
    both<bf16> shares_by(rows * heads * (size_t)width), dscores(rows * heads * (size_t)width);
    const relation r = {c.window, (int)reach,   bias.there,      buckets.there, COLUMNS,
                        0,        c.keys.there, c.queries.there, dkeys.there,   dqueries.there,
                        low,      NULL,         shares_by.there, dscores.there, width};
    const dim3 grid((unsigned)blocks->size(), (unsigned)heads);
    attend_plain<KIND>
        <<<grid, SF_ATTEND_THREADS>>>(context.there, c.qkv.there, blocks->there, H, D, c.scale * LOG2E, r);
    compare("attend_plain, " + name, context, expected.context, 2 * BF16);
    if constexpr (D == 32 || D == 64) {
        attend<D, KIND>
            <<<grid, SF_ATTEND_THREADS>>>(context.there, sums.there, c.qkv.there, blocks->there, H, c.scale * LOG2E, r);
        compare("attend, " + name, context, expected.context, 2 * BF16);
        compare("attend's sums, " + name, sums, expected.sums, 1e-4);
        const back k = {
            c.qkv.there, c.dcontext.there, sums.there,      deltas.there,    dqkv.there, back_blocks->there, H,
            heads,       c.scale,          c.scale * LOG2E, diagonals.there, (int)tiles};
        attend_deltas<D>
            <<<(unsigned)((rows + 7) / 8), 256>>>(deltas.there, context.there, c.dcontext.there, H, heads, (int)rows);
        const dim3 back_grid((unsigned)back_blocks->size(), (unsigned)heads);
        attend_back_queries<D, KIND><<<back_grid, SF_ATTEND_THREADS>>>(k, r);
        if constexpr (KIND == ATTEND_PARTS)
            attend_back_written<D><<<back_grid, SF_ATTEND_THREADS>>>(k, r);
        else
            attend_back_keys<D, KIND><<<back_grid, SF_ATTEND_THREADS>>>(k, r);
        compare("attend_back, " + name, dqkv, expected.dqkv, 4 * BF16);
        if (KIND == ATTEND_BIASED) {
            add_diagonals<<<dim3((unsigned)heads, 2 * (unsigned)tiles, SUM_SHARES), 128>>>(
                shares.there, diagonals.there, back_blocks->there, (int)back_blocks->size(), (int)tiles);
            add_shares<<<(unsigned)(slots + 255) / 256, 256>>>(all.there, shares.there, slots);
            gather_bias<<<dim3(BUCKETS, (unsigned)heads), 128>>>(dtable.there, all.there, buckets.there, (int)reach,
                                                                 heads, (int)tiles * 256);
            compare("gather_bias, " + name, dtable, expected.dtable, 4 * BF16);
        }
        if (KIND == ATTEND_PARTS) {
            compare("attend_back's keys of places, " + name, dkeys, expected.dkeys, 4 * BF16);
            compare("attend_back's queries of places, " + name, dqueries, expected.dqueries, 4 * BF16);
        }
    }
    delete blocks;
    delete back_blocks;
}

template <int D> void test_attention(int heads)
{
    run_attention<D, ATTEND_LOCAL>(heads);
    run_attention<D, ATTEND_BIASED>(heads);
    run_attention<D, ATTEND_PARTS>(heads);
}

/* ---------------------------------------------------------------------- rotary */

void test_turn(int D, int heads)
{
    const int H = D * heads, half = D / 2;
    std::vector<uint32_t> starts = {0, 1, 131, 200};
    const size_t rows = starts.back();
    both<bf16> qkv(rows * 3 * H);
    both<float> turns(130 * (size_t)D);
    fill(qkv);
    for (size_t i = 0; i < 130; i++)
        for (int k = 0; k < half; k++) {
            const double angle = (double)i / pow(100, (double)k / half);
            turns.here[i * D + k] = (float)cos(angle), turns.here[i * D + half + k] = (float)sin(angle);
        }
    turns.send();
    both<sf_attend_block> *blocks = cut(starts, SF_ATTEND_QUERIES);
    std::vector<double> expected(rows * 3 * H), before(rows * 3 * H);
    for (size_t i = 0; i < before.size(); i++) expected[i] = before[i] = (double)value(qkv.here[i]);
    for (size_t t = 0; t + 1 < starts.size(); t++)
        for (size_t i = starts[t]; i < starts[t + 1]; i++)
            for (int h = 0; h < 2 * heads; h++)
                for (int k = 0; k < half; k++) {
                    const float *turn = &turns.here[(i - starts[t]) * D];
                    const size_t at = i * 3 * H + h * D + k;
                    const double c = (double)turn[k], s = (double)turn[half + k];
                    expected[at] = before[at] * c - before[at + half] * s;
                    expected[at + half] = before[at + half] * c + before[at] * s;
                }
    run_turn(qkv.there, blocks->there, blocks->size(), turns.there, H, D, TURN, 0);
    compare("turn, heads of " + std::to_string(D), qkv, expected, BF16);
    run_turn(qkv.there, blocks->there, blocks->size(), turns.there, H, D, TURN_BACK, 0);
    compare("turn back, heads of " + std::to_string(D), qkv, before, 3 * BF16);
    delete blocks;
}

/* Attention that turns queries and keys itself gives the bits of attention after all are turned, and leaves them as
 * they are. The longest text has as many pieces as the table of turns has rows. */
template <int D, int KIND> void test_turned(int heads)
{
    enum { TURNS = 323 };
    const std::string name = std::string(KIND == ATTEND_LOCAL ? "local" : "all") + ", heads of " + std::to_string(D);
    const int H = D * heads;
    std::vector<uint32_t> starts = {0};
    for (int length : {1, 2, 63, 64, 65, 127, 128, 129, 192, 256, 257, (int)TURNS})
        starts.push_back(starts.back() + (uint32_t)length);
    const size_t rows = starts.back();
    both<bf16> qkv(rows * 3 * H), context(rows * H), found(rows * H);
    both<float> turns(TURNS * (size_t)D);
    fill(qkv), fill(turns);
    both<sf_attend_block> *blocks = cut(starts, SF_ATTEND_QUERIES);
    relation r = {};
    r.window = 37;
    r.turns = turns.there;
    const dim3 grid((unsigned)blocks->size(), (unsigned)heads);
    attend<D, KIND, true><<<grid, SF_ATTEND_THREADS>>>(found.there, NULL, qkv.there, blocks->there, H, 0.2f, r);
    std::vector<double> expected(context.size()), before(qkv.size());
    for (size_t i = 0; i < before.size(); i++) before[i] = (double)value(qkv.here[i]);
    compare("attend turns nothing in memory, " + name, qkv, before, 0);
    run_turn(qkv.there, blocks->there, blocks->size(), turns.there, H, D, TURN, 0);
    attend<D, KIND><<<grid, SF_ATTEND_THREADS>>>(context.there, NULL, qkv.there, blocks->there, H, 0.2f, r);
    need(cudaDeviceSynchronize(), "attend");
    context.get();
    for (size_t i = 0; i < expected.size(); i++) expected[i] = (double)value(context.here[i]);
    compare("attend turns queries and keys, " + name, found, expected, 0);
    delete blocks;
}

/* ----------------------------------------------------------------- activations */

double active(double x, int kind)
{
    switch (kind) {
    case SF_ENCODER_TANH: return tanh(x);
    case SF_ENCODER_RELU: return std::max(x, 0.0);
    case SF_ENCODER_GELU: return 0.5 * x * (1 + erf(x / sqrt(2.0)));
    case SF_ENCODER_GELU_TANH: return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    default: return x / (1 + exp(-x));
    }
}

double active_slope(double x, int kind)
{
    if (kind == SF_ENCODER_RELU) return x > 0;
    return (active(x + 1e-5, kind) - active(x - 1e-5, kind)) / 2e-5;
}

void test_activate(int kind, int gated)
{
    const std::string name = std::string(gated ? "gated, " : "") + std::to_string(kind);
    const size_t rows = 37, F = 72, G = gated ? 2 * F : F;
    both<bf16> raw(rows * G), out(rows * F), d(rows * F), draw(rows * G);
    fill(raw, 4), fill(d);
    std::vector<double> expected(rows * F), slope(rows * G);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < F; i++) {
            const double x = (double)value(raw.here[r * G + i]), g = (double)value(d.here[r * F + i]);
            const double gate = gated ? (double)value(raw.here[r * G + F + i]) : 1;
            expected[r * F + i] = active(x, kind) * gate;
            slope[r * G + i] = g * gate * active_slope(x, kind);
            if (gated) slope[r * G + F + i] = g * active(x, kind);
        }
    const sf_encoder_activation a = (sf_encoder_activation)kind;
    run_activate(out.there, raw.there, a, gated, F, rows, 0);
    compare("activate, " + name, out, expected, BF16);
    run_activate_back(draw.there, d.there, raw.there, a, gated, F, rows, 0);
    compare("activate_back, " + name, draw, slope, BF16);
}

/* ------------------------------------------------------------------------ rows */

template <int N> void run_rows(int H, int rows)
{
    const std::string name = std::to_string(H) + " numbers";
    both<bf16> in((size_t)rows * H), d((size_t)rows * H), rest((size_t)rows * H), out((size_t)rows * H),
        sums((size_t)rows * H);
    both<float> weight(H), words(50 * H), partial((size_t)SUM_BLOCKS * 3 * H), dweight(H);
    both<uint32_t> ids(rows);
    fill(in, 2, 0.5f), fill(d), fill(rest), fill(weight, 0.3f, 1), fill(words), fill(dweight);
    for (int i = 0; i < rows; i++) ids.here[i] = bits() % 50;
    ids.send();
    const float epsilon = 1e-6f;
    const unsigned blocks = (unsigned)((rows + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK);
    std::vector<double> normed((size_t)rows * H), dx((size_t)rows * H), sum((size_t)rows * H), dw(H);
    for (int i = 0; i < H; i++) dw[i] = (double)dweight.here[i];
    for (int r = 0; r < rows; r++) {
        double mean = 0, square = 0, plain = 0, dot = 0;
        const size_t at = (size_t)r * H;
        for (int i = 0; i < H; i++) mean += (double)value(in.here[at + i]) / H;
        for (int i = 0; i < H; i++) square += pow((double)value(in.here[at + i]) - mean, 2) / H;
        const double scale = 1 / sqrt(square + (double)epsilon);
        auto unit = [&](int i) { return ((double)value(in.here[at + i]) - mean) * scale; };
        for (int i = 0; i < H; i++) {
            const double g = (double)value(d.here[at + i]) * (double)weight.here[i];
            plain += g / H, dot += g * unit(i) / H;
            normed[at + i] = unit(i) * (double)weight.here[i];
            dw[i] += (double)value(d.here[at + i]) * unit(i);
            sum[at + i] = (double)words.here[ids.here[r] * H + i];
        }
        for (int i = 0; i < H; i++)
            dx[at + i] = (double)value(rest.here[at + i]) +
                         scale * ((double)value(d.here[at + i]) * (double)weight.here[i] - plain - unit(i) * dot);
    }
    norm<N><<<blocks, 32 * ROWS_A_BLOCK>>>(out.there, in.there, weight.there, NULL, H, epsilon, rows);
    compare("norm without bias, " + name, out, normed, BF16);
    embed<N><<<blocks, 32 * ROWS_A_BLOCK>>>(NULL, sums.there, ids.there, NULL, words.there, NULL, NULL, NULL, NULL, H,
                                            epsilon, rows);
    compare("embed's sums alone, " + name, sums, sum, BF16);
    run_norm_back<N>(rest.there, partial.there, d.there, in.there, rest.there, weight.there, H, epsilon, rows, 0);
    compare("norm_back with a rest, " + name, rest, dx, BF16);
    add_partial<<<dim3((unsigned)((H + 255) / 256), 3), 256>>>(dweight.there, NULL, NULL, partial.there, 3, H, 1);
    compare("norm_back's weight, added, " + name, dweight, dw, F32);
}

/* --------------------------------------------------------------------- the end */

void test_end(int H, int C, int kind, int mean)
{
    const std::string name = std::string(mean ? "mean, " : "first, ") + std::to_string(kind);
    const std::vector<uint32_t> lengths = {1, 5, 40};
    const size_t B = lengths.size(), rows = 46;
    const float epsilon = 1e-5f;
    both<float> pooler((size_t)H * H), norm_weight(H), norm_bias(H), weight((size_t)C * H), bias(C), logits(B * C),
        pooled(B * H), features(B * H), dropped(B * H), raw(B * H), act(B * H), unit(B * H), slopes(B * H),
        dfeatures(B * H), dlogits(B * C), losses(B), dpooler((size_t)H * H), dnorm(H), dnorm_bias(H);
    both<bf16> x(rows * H), d(rows * H);
    both<uint32_t> starts(B + 1);
    both<int> labels(B);
    fill(pooler, 0.2f), fill(norm_weight, 0.3f, 1), fill(norm_bias), fill(weight), fill(bias), fill(x);
    for (size_t t = 0; t < B; t++)
        starts.here[t + 1] = starts.here[t] + lengths[t], labels.here[t] = (int)(t % (size_t)C);
    starts.send(), labels.send();
    std::vector<double> elogits(B * C), ed(rows * H), edp((size_t)H * H), edn(H), edb(H);
    for (size_t t = 0; t < B; t++) {
        std::vector<double> p(H), z(H), a(H), u(H), f(H), slope(H), dp(H);
        const size_t first = starts.here[t], T = lengths[t], used = mean ? T : 1;
        for (int c = 0; c < H; c++)
            for (size_t i = 0; i < used; i++) p[c] += (double)value(x.here[(first + i) * H + c]) / (double)used;
        double middle = 0, square = 0, all = 0, plain = 0, dot = 0;
        for (int c = 0; c < H; c++) {
            for (int i = 0; i < H; i++) z[c] += (double)pooler.here[(size_t)c * H + i] * p[i];
            middle += (a[c] = active(z[c], kind)) / H;
        }
        for (int c = 0; c < H; c++) square += pow(a[c] - middle, 2) / H;
        const double scale = 1 / sqrt(square + (double)epsilon);
        for (int c = 0; c < H; c++) {
            u[c] = (a[c] - middle) * scale;
            f[c] = u[c] * (double)norm_weight.here[c] + (double)norm_bias.here[c];
        }
        for (int c = 0; c < C; c++) {
            elogits[t * C + c] = (double)bias.here[c];
            for (int i = 0; i < H; i++) elogits[t * C + c] += (double)weight.here[(size_t)c * H + i] * f[i];
            all += exp(elogits[t * C + c]);
        }
        for (int c = 0; c < C; c++) {
            const double g = (exp(elogits[t * C + c]) / all - (c == labels.here[t])) / (double)B;
            for (int i = 0; i < H; i++) slope[i] += g * (double)weight.here[(size_t)c * H + i];
        }
        for (int i = 0; i < H; i++) {
            edn[i] += slope[i] * u[i], edb[i] += slope[i];
            slope[i] *= (double)norm_weight.here[i];
            plain += slope[i] / H, dot += slope[i] * u[i] / H;
        }
        for (int i = 0; i < H; i++) slope[i] = scale * (slope[i] - plain - u[i] * dot) * active_slope(z[i], kind);
        for (int i = 0; i < H; i++)
            for (int o = 0; o < H; o++) {
                dp[i] += slope[o] * (double)pooler.here[(size_t)o * H + i];
                edp[(size_t)o * H + i] += slope[o] * p[i];
            }
        for (size_t i = 0; i < used; i++)
            for (int c = 0; c < H; c++) ed[(first + i) * H + c] = dp[c] / (double)used;
    }
    const head h = {H,
                    C,
                    mean,
                    pooler.there,
                    NULL,
                    (sf_encoder_activation)kind,
                    norm_weight.there,
                    norm_bias.there,
                    epsilon,
                    weight.there,
                    bias.there};
    const ends e = {pooled.there, features.there,  dropped.there, raw.there,    act.there, unit.there,
                    slopes.there, dfeatures.there, dlogits.there, losses.there, NULL,      labels.there};
    classify<<<(unsigned)B, POOL_THREADS, 2 * H * sizeof(float)>>>(logits.there, x.there, starts.there, h);
    compare("classify with a norm, " + name, logits, elogits, 2 * F32);
    loss_forward<<<(unsigned)B, POOL_THREADS>>>(e, x.there, starts.there, h, 1.0f / (float)B);
    loss_back<<<(unsigned)B, POOL_THREADS, H * sizeof(float)>>>(d.there, e, starts.there, h);
    compare("loss_back with a norm, " + name, d, ed, BF16);
    dense_gradient<<<(unsigned)(((size_t)H * H + 255) / 256), 256>>>(dpooler.there, NULL, slopes.there, pooled.there, H,
                                                                     H, (int)B);
    compare("dense_gradient without bias, " + name, dpooler, edp, 1e-4);
    norm_gradient<<<(unsigned)(H + 255) / 256, 256>>>(dnorm.there, dnorm_bias.there, dfeatures.there, unit.there, H,
                                                      (int)B);
    compare("norm_gradient's weight, " + name, dnorm, edn, 1e-4);
    compare("norm_gradient's bias, " + name, dnorm_bias, edb, 1e-4);
}

/* -------------------------------------------------------------------- products */

void test_heads(int D, int count, int columns, size_t rows)
{
    const std::string name = std::to_string(count) + " heads of " + std::to_string(D) + ", " + std::to_string(rows) +
                             " rows";
    const int H = D * count;
    const float scale = 0.3f;
    safer_error error = {};
    cublasLtHandle_t library;
    both<bf16> scores(rows * count * columns), vectors(rows * 3 * H), table((size_t)columns * H);
    both<float> gradient((size_t)columns * H);
    both<char> workspace(PRODUCT_WORKSPACE);
    fill(vectors), fill(table), fill(gradient);
    if (cublasLtCreate(&library) != CUBLAS_STATUS_SUCCESS) exit(1);
    auto go = [&](heads_kind kind, void *to, bf16 *from) {
        heads h;
        safer_status status = heads_make(&h, library, kind, H, count, columns + 64, scale, &error);
        if (status == SAFER_OK)
            status = heads_run(&h, scores.there, from, to, rows, columns, library, workspace.there, 0, &error);
        if (status != SAFER_OK) fprintf(stderr, "test_forms: %s\n", error.message), failures++;
    };
    std::vector<double> es(rows * count * columns), ev(rows * 3 * H), et((size_t)columns * H);
    for (size_t r = 0; r < rows; r++)
        for (int h = 0; h < count; h++)
            for (int c = 0; c < columns; c++)
                for (int k = h * D; k < (h + 1) * D; k++)
                    es[(r * count + h) * columns + c] += (double)value(vectors.here[r * 3 * H + H + k]) *
                                                         (double)value(table.here[(size_t)c * H + k]);
    go(HEADS_SCORES, table.there, vectors.there + H);
    compare("heads, scores, " + name, scores, es, BF16);
    fill(scores);
    for (size_t i = 0; i < ev.size(); i++) ev[i] = (double)value(vectors.here[i]);
    for (size_t i = 0; i < et.size(); i++) et[i] = (double)gradient.here[i];
    for (size_t r = 0; r < rows; r++)
        for (int h = 0; h < count; h++)
            for (int c = 0; c < columns; c++)
                for (int k = h * D; k < (h + 1) * D; k++) {
                    const double s = (double)scale * (double)value(scores.here[(r * count + h) * columns + c]);
                    ev[r * 3 * H + H + k] += s * (double)value(table.here[(size_t)c * H + k]);
                    et[(size_t)c * H + k] += s * (double)value(vectors.here[r * 3 * H + H + k]);
                }
    go(HEADS_TABLE, gradient.there, vectors.there + H);
    compare("heads, table, added, " + name, gradient, et, 1e-4);
    go(HEADS_VECTORS, table.there, vectors.there + H);
    /* cuBLASLt may round a product before it adds to it: two roundings. 1.99 halves of a last place were seen. */
    compare("heads, vectors, " + name, vectors, ev, 2 * BF16);
    cublasLtDestroy(library);
}

} // namespace

int main(int argc, char **argv)
{
    const bool own = argc > 1 && !strcmp(argv[1], "--own");
    test_attention<32>(3);
    test_attention<64>(2);
    test_attention<24>(2);
    test_attention<8>(2);
    test_turn(64, 3), test_turn(24, 2), test_turn(8, 4);
    test_turned<64, ATTEND_ALL>(2), test_turned<64, ATTEND_LOCAL>(2);
    test_turned<32, ATTEND_ALL>(3), test_turned<32, ATTEND_LOCAL>(3);
    for (int gated = 0; gated < 2; gated++)
        for (int kind = SF_ENCODER_RELU; kind <= SF_ENCODER_SILU; kind++) test_activate(kind, gated);
    for (int H : {8, 384, 768, 2048})
        for (int rows : {1, 300}) FOR_WIDTH(H, run_rows, H, rows);
    for (int kind = SF_ENCODER_TANH; kind <= SF_ENCODER_SILU; kind++) test_end(200, 3, kind, kind % 2);
    for (int i = 0; i < 3 && !own; i++) test_heads(i == 2 ? 8 : 64, 3, i ? 96 : 512, i ? 77 : 300);
    if (failures)
        printf("%d comparisons failed\n", failures);
    else
        puts("fine");
    return failures != 0;
}
