/* The bow and cnn classifiers: gradients, look-ups, the fast path, files. Training as a
 * whole is in test_cnn_train.c. */
#define _GNU_SOURCE
#include "base/buffer.h"
#include "base/memory.h"
#include "base/rng.h"
#include "train/cnn_step.h"
#include "nn/layers.h"
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ support */

static sf_cnn_shape make_shape(int convolution, int max_pool, size_t vocabulary, size_t dim, const char *widths,
                               size_t filters, size_t hidden, size_t classes)
{
    sf_cnn_shape s = {.convolution = convolution,
                      .max_pool = max_pool,
                      .vocabulary = vocabulary,
                      .dim = dim,
                      .hidden = hidden,
                      .classes = classes,
                      .max_words = SF_LOOKUP_POSITIONS,
                      .filters = convolution ? filters : dim};
    for (const char *w = convolution ? widths : "1"; *w; w++)
        if (*w != ',') s.widths[s.width_count++] = (size_t)(*w - '0');
    return s;
}

static float *random_parameters(const sf_cnn_layout *l)
{
    float *p = malloc(l->size * sizeof *p);
    assert_non_null(p);
    for (size_t i = 0; i < l->size; i++) p[i] = next_float();
    return p;
}

/* The network as it is defined, by direct loops in double precision. */
static void naive_logits(double *logits, const sf_cnn_layout *l, const double *w, const uint32_t *ids, size_t N)
{
    const sf_cnn_shape *s = &l->shape;
    double *features = calloc(l->features, sizeof *features), *hidden = calloc(s->hidden + 1, sizeof *hidden);
    size_t tap = 0;
    assert_true(features && hidden);
    for (size_t g = 0; g < s->width_count; tap += s->widths[g++])
        for (size_t f = 0; f < s->filters; f++) {
            double pooled = 0;
            for (size_t i = 0; i < N; i++) {
                double x = s->convolution ? w[l->conv_bias + g * s->filters + f] : 0;
                for (size_t t = 0; t < s->widths[g]; t++) {
                    long j = (long)i + (long)t - (long)((s->widths[g] - 1) / 2);
                    if (j < 0 || j >= (long)N) continue;
                    const double *e = w + l->embedding + ids[j] * s->dim;
                    if (!s->convolution) x += e[f];
                    for (size_t d = 0; s->convolution && d < s->dim; d++)
                        x += e[d] * w[l->conv_weight + ((tap + t) * s->filters + f) * s->dim + d];
                }
                if (s->convolution && x < 0) x = 0;
                if (!s->max_pool)
                    pooled += x / (double)N;
                else if (i == 0 || x > pooled)
                    pooled = x;
            }
            features[g * s->filters + f] = pooled;
        }
    for (size_t h = 0; h < s->hidden; h++) {
        hidden[h] = w[l->hidden_bias + h];
        for (size_t p = 0; p < l->features; p++) hidden[h] += features[p] * w[l->hidden_weight + h * l->features + p];
        if (hidden[h] < 0) hidden[h] = 0;
    }
    for (size_t k = 0; k < s->classes; k++) {
        logits[k] = w[l->output_bias + k];
        for (size_t i = 0; i < l->inputs; i++)
            logits[k] += (s->hidden ? hidden : features)[i] * w[l->output_weight + k * l->inputs + i];
    }
    free(features);
    free(hidden);
}

static double naive_loss(const sf_cnn_layout *l, const double *w, const sf_cnn_batch *batch)
{
    double loss = 0, logits[8];
    for (size_t b = 0; b < batch->count; b++) {
        double sum = 0;
        naive_logits(logits, l, w, batch->ids + batch->offsets[b], batch->offsets[b + 1] - batch->offsets[b]);
        for (size_t k = 0; k < l->shape.classes; k++) sum += exp(logits[k]);
        loss += log(sum) - logits[batch->labels[b]];
    }
    return loss;
}

/* ---------------------------------------------------------------- gradients */

/* Texts shorter than any filter, an empty one, repeated words. */
static const uint32_t batch_ids[] = {1, 2, 3, 1, 4, 6, 5, 2, 2, 0, 3, 3, 4, 1, 5, 6};
static const size_t batch_offsets[] = {0, 5, 5, 6, 8, 16};

static void check_gradients(const sf_cnn_shape *shape)
{
    safer_error error = {0};
    sf_cnn_layout l;
    sf_cnn_layout_make(&l, shape);
    float *w = random_parameters(&l), *gradient = malloc(l.size * sizeof *gradient);
    double *exact = malloc(l.size * sizeof *exact);
    int labels[5];
    sf_cnn_step *step = NULL;
    double loss;
    assert_true(gradient && exact);
    for (size_t i = 0; i < l.size; i++) exact[i] = (double)w[i];
    for (int i = 0; i < 5; i++) labels[i] = (int)next_below((uint32_t)shape->classes);
    sf_cnn_batch batch = {batch_ids, batch_offsets, labels, 5};
    sf_cnn_options options = {.threads = 1, .rate = 0.1};
    assert_ok(sf_cnn_step_new(&step, &l, &options, 5, 16, &error));
    for (int round = 0; round < 2; round++) /* twice: nothing may be left from the step before */
        sf_cnn_step_gradient(&loss, step, w, &batch, 1);
    sf_cnn_step_read(gradient, step);
    assert_true(fabs(loss - naive_loss(&l, exact, &batch)) < 1e-4);
    for (size_t t = 0; t < l.tensor_count; t++) {
        size_t alive = 0;
        for (size_t i = l.tensors[t].offset; i < l.tensors[t].offset + l.tensors[t].count; i++) {
            const double h = 1e-6, at = exact[i];
            exact[i] = at + h;
            double up = naive_loss(&l, exact, &batch);
            exact[i] = at - h;
            double down = naive_loss(&l, exact, &batch);
            exact[i] = at;
            double want = (up - down) / (2 * h) / 5; /* of the mean */
            if (!(fabs(want - (double)gradient[i]) < 1e-5 + 1e-4 * fabs(want)))
                fail_msg("%s[%zu]: gradient %g, differences say %g", l.tensors[t].name, i - l.tensors[t].offset,
                         (double)gradient[i], want);
            alive += want != 0;
        }
        if (!alive) fail_msg("%s: nothing was tested", l.tensors[t].name);
    }
    sf_cnn_step_free(step);
    free(w);
    free(gradient);
    free(exact);
}

static void gradients_match_differences(void **unused)
{
    (void)unused;
    const char *widths[] = {"1", "2", "3", "5", "3,4,5"};
    for (int max_pool = 0; max_pool < 2; max_pool++)
        for (size_t hidden = 0; hidden <= 5; hidden += 5)
            for (size_t classes = 2; classes <= 3; classes++) {
                for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
                    sf_cnn_shape shape = make_shape(1, max_pool, 7, 3, widths[i], 4, hidden, classes);
                    check_gradients(&shape);
                }
                sf_cnn_shape shape = make_shape(0, max_pool, 7, 4, "", 0, hidden, classes);
                check_gradients(&shape);
            }
}

/* With dropout the loss is smooth in a bag of words without a hidden layer. */
static void dropout_is_part_of_the_gradient(void **unused)
{
    (void)unused;
    safer_error error = {0};
    sf_cnn_shape shape = make_shape(0, 0, 7, 8, "", 0, 0, 3);
    sf_cnn_layout l;
    sf_cnn_layout_make(&l, &shape);
    float *w = random_parameters(&l), *gradient = malloc(l.size * sizeof *gradient);
    const int labels[5] = {0, 1, 2, 0, 1};
    sf_cnn_batch batch = {batch_ids, batch_offsets, labels, 5};
    sf_cnn_options options = {.threads = 2, .dropout = 0.5f, .seed = 3};
    sf_cnn_step *step = NULL;
    double loss, up, down, other;
    assert_non_null(gradient);
    assert_ok(sf_cnn_step_new(&step, &l, &options, 5, 16, &error));
    sf_cnn_step_gradient(&loss, step, w, &batch, 9);
    sf_cnn_step_read(gradient, step);
    for (size_t i = 0; i < l.size; i++) {
        const float at = w[i], h = 0x1p-6f;
        w[i] = at + h;
        sf_cnn_step_gradient(&up, step, w, &batch, 9);
        w[i] = at - h;
        sf_cnn_step_gradient(&down, step, w, &batch, 9);
        w[i] = at;
        assert_true(fabs((up - down) / (2 * 0x1p-6) / 5 - (double)gradient[i]) < 1e-4);
    }
    sf_cnn_step_gradient(&other, step, w, &batch, 10); /* other masks */
    assert_true(other != loss);
    sf_cnn_step_free(step);
    free(w);
    free(gradient);

    float x[1000], mask[1000];
    size_t kept = 0;
    for (int i = 0; i < 1000; i++) x[i] = 1;
    sf_dropout_forward(x, mask, x, 0.2f, sf_stream_of(1, 2, SF_STAGE_TRAINING), 1, 0, 1000);
    for (int i = 0; i < 1000; i++) {
        assert_true(x[i] == 0 || x[i] == 1.25f);
        kept += x[i] > 0;
    }
    assert_in_range(kept, 750, 850);
}

static void adam_takes_known_steps(void **unused)
{
    (void)unused;
    /* By hand: the first step is rate * sign(gradient), whatever its size; decay pulls. */
    float p[3] = {1, 1, 1}, mean[3] = {0}, variance[3] = {0};
    const float gradient[3] = {0.5f, -20, 0};
    sf_adam a = sf_adam_at(0.1, 0.5, 1);
    sf_adam_update(p, mean, variance, gradient, &a, 3);
    assert_true(fabsf(p[0] - 0.85f) < 1e-6f && fabsf(p[1] - 1.05f) < 1e-6f && fabsf(p[2] - 0.95f) < 1e-6f);
    /* The second, from PyTorch's formula. */
    a = sf_adam_at(0.1, 0, 2);
    const float second[3] = {0.1f, 0, 0};
    double m = 0.9 * 0.05 + 0.1 * 0.1, v = 0.999 * 0.00025 + 0.001 * 0.01, before = (double)p[0];
    sf_adam_update(p, mean, variance, second, &a, 3);
    assert_true(fabs((double)p[0] - (before - 0.1 * (m / 0.19) / sqrt(v / 0.001999))) < 1e-5);
}

/* ----------------------------------------------------------------- look-ups */

static void lookup_equals_direct_convolution(void **unused)
{
    (void)unused;
    for (size_t T = 1; T <= 6; T++)
        for (size_t N = 0; N < 9; N++) {
            enum { V = 5, D = 7, F = 6 };
            float e[V * D], w[6 * F * D], bias[F], rows[V * 6 * F], inp[9 * D], want[9 * F], out[9 * F];
            uint32_t ids[9];
            for (size_t i = 0; i < V * D; i++) e[i] = next_float();
            for (size_t i = 0; i < T * F * D; i++) w[i] = next_float();
            for (size_t i = 0; i < F; i++) bias[i] = next_float();
            for (size_t v = 0; v < V; v++)
                for (size_t r = 0; r < T * F; r++) {
                    rows[v * T * F + r] = 0;
                    for (size_t d = 0; d < D; d++) rows[v * T * F + r] += e[v * D + d] * w[r * D + d];
                }
            for (size_t i = 0; i < N; i++) memcpy(inp + i * D, e + (ids[i] = next_below(V)) * D, sizeof(float) * D);
            sf_conv_naive_forward(want, inp, w, bias, N, T, F, D);
            sf_conv_forward(out, rows, ids, bias, N, T, F, T * F, F);
            for (size_t i = 0; i < N * F; i++) assert_true(fabsf(out[i] - want[i]) < 1e-5f);
        }
}

static void answers_equal_the_definition(void **unused)
{
    (void)unused;
    const char *widths[] = {"3", "2", "3,4,5", "1,9"};
    safer_error error = {0};
    for (int round = 0; round < 48; round++) {
        sf_cnn_shape shape = make_shape(round % 3 != 0, round % 2, 50, 20, widths[round / 2 % 4], 37,
                                        round % 5 ? 19 : 0, 4);
        sf_cnn_layout l;
        sf_cnn_net *net = NULL;
        sf_cnn_scratch *scratch = NULL;
        sf_cnn_layout_make(&l, &shape);
        float *w = random_parameters(&l), *scale = malloc(l.features * sizeof *scale), got[4];
        double *exact = malloc(l.size * sizeof *exact), logits[4];
        assert_true(scale && exact);
        for (size_t i = 0; i < l.size; i++) exact[i] = (double)w[i];
        assert_int_equal(sf_cnn_scales(scale, &l, w, 2), 0);
        assert_ok(sf_cnn_net_new(&net, &l, w, scale, &error));
        assert_ok(sf_cnn_scratch_new(net, &scratch, &error));
        for (int text = 0; text < 20; text++) {
            uint32_t ids[40];
            size_t N = text < 6 ? (size_t)text : next_below(40);
            int label;
            double spread = 0;
            for (size_t i = 0; i < N; i++) ids[i] = next_below(50);
            naive_logits(logits, &l, exact, ids, N);
            for (int k = 0; k < 4; k++) spread += fabs(logits[k]);
            assert_ok(sf_cnn_classify_ids(&label, got, net, ids, N, scratch, &error));
            const float *have = sf_cnn_scratch_logits(scratch);
            for (int k = 0; k < 4; k++) {
                /* The rounding is a few ten thousandths of a feature's range; the head adds it up. */
                assert_true(fabs((double)have[k] - logits[k]) < 2e-3 * (1 + spread));
                assert_true(
                    fabs((double)got[k] - exp((double)have[k]) / (exp((double)have[0]) + exp((double)have[1]) +
                                                                  exp((double)have[2]) + exp((double)have[3]))) < 1e-5);
                assert_true(have[label] >= have[k]);
            }
        }
        sf_cnn_scratch_free(scratch);
        sf_cnn_net_free(net);
        free(w);
        free(scale);
        free(exact);
    }
}

static void instruction_sets_agree(void **unused)
{
    (void)unused;
    enum { F = 224, SLOTS = 9, COUNT = 23, TAPS = 5 };
    int16_t *table = sf_alloc_aligned(SLOTS * TAPS * F, sizeof *table),
            *fixed = sf_alloc_aligned(COUNT * F, sizeof *fixed);
    const int16_t *rows[SLOTS];
    sf_term terms[COUNT * TAPS];
    float in[100], weight[100 * F], bias[F];
    sf_isa best = sf_isa_choose();
    assert_true(table && fixed);
    for (int i = 0; i < 100; i++) in[i] = next_float();
    for (int i = 0; i < 100 * F; i++) weight[i] = next_float();
    for (int i = 0; i < F; i++) bias[i] = next_float();
    for (size_t taps = 0; taps <= TAPS; taps++)
        for (size_t count = 0; count <= COUNT; count++)
            for (size_t width = 32; width <= F; width += 32) {
                int limit = SF_LOOKUP_LIMIT / (int)(taps + 1); /* the extreme values too */
                for (int i = 0; i < SLOTS * TAPS * F; i++)
                    table[i] = (int16_t)(next_below(4)   ? (int)next_below((uint32_t)(2 * limit)) - limit
                                         : next_below(2) ? limit
                                                         : -limit);
                for (int i = 0; i < COUNT * F; i++)
                    fixed[i] = (int16_t)(next_below(4) ? (int)next_below((uint32_t)(2 * limit)) - limit : limit);
                for (size_t s = 0; s < SLOTS; s++) rows[s] = table + s * TAPS * F;
                for (size_t i = 0; i < COUNT * TAPS; i++) terms[i] = (sf_term){next_below(SLOTS), next_below(TAPS) * F};
                sf_windows w = {fixed, next_below(2) ? F : 0, terms, count, taps};
                uint32_t want[F];
                int16_t top[F];
                float out[F];
                for (int f = 0; f < F; f++) want[f] = (uint32_t)f, top[f] = (int16_t)(f - 100);
                sf_lookup_sum(want, &w, rows, width, SF_PORTABLE);
                sf_lookup_max(top, &w, rows, width, SF_PORTABLE);
                const float *b = next_below(2) ? bias : NULL;
                size_t C = 1 + next_below(100);
                sf_affine(out, in, weight, b, C, width, SF_PORTABLE);
                for (int isa = SF_AVX2; isa <= (int)best; isa++) {
                    uint32_t sums[F];
                    int16_t tops[F];
                    float have[F];
                    for (int f = 0; f < F; f++) sums[f] = (uint32_t)f, tops[f] = (int16_t)(f - 100);
                    sf_lookup_sum(sums, &w, rows, width, (sf_isa)isa);
                    sf_lookup_max(tops, &w, rows, width, (sf_isa)isa);
                    sf_affine(have, in, weight, b, C, width, (sf_isa)isa);
                    assert_memory_equal(sums, want, sizeof want);
                    assert_memory_equal(tops, top, sizeof top);
                    assert_memory_equal(have, out, width * sizeof(float));
                }
            }
    free(table);
    free(fixed);
}

/* ---------------------------------------------------------------- fast path */

static const char *const vocabulary[] = {"good",  "fine", "great", "nice",    "bad",    "poor",
                                         "awful", "film", "movie", "picture", "a",      "the",
                                         "was",   "plot", "story", "tale",    "acting", "it's"};
enum { WORDS = sizeof vocabulary / sizeof vocabulary[0] };

/* "fantastic", "dreadful" and "flick" are in the lexicon but not in the model. */
static const char table[] =
    "good\tfine great fantastic\nfine\tnice\nbad\tpoor awful\nawful\tdreadful\nfilm\tmovie\nmovie\tpicture flick\n"
    "plot\tstory\nstory\ttale\n";

static safer_lexicon *make_lexicon(const char *kernel) { return import_table(table, kernel); }

static const char *save_random_model(const sf_cnn_shape *shape, const char *name)
{
    safer_error error = {0};
    sf_cnn_layout l;
    sf_words words = {0};
    uint32_t id;
    const char *path = temporary(name);
    sf_cnn_layout_make(&l, shape);
    float *w = random_parameters(&l), *scale = malloc(l.features * sizeof *scale);
    assert_non_null(scale);
    for (size_t i = 0; i + 1 < shape->vocabulary; i++)
        assert_ok(sf_words_add(&words, vocabulary[i], strlen(vocabulary[i]), &id, &error));
    assert_int_equal(sf_cnn_scales(scale, &l, w, 1), 0);
    assert_ok(sf_cnn_save(path, &l, w, scale, &words,
                          shape->classes == 2 ? "[\"a\",\"b\"]" : "[\"0\",\"1\",\"2\",\"3\",\"4\"]", "{}", &error));
    free(w);
    free(scale);
    sf_words_free(&words);
    return path;
}

static void random_text(sf_buffer *out, size_t words)
{
    const char *others[] = {"Zebra", " 12 ", "Fantastic", "flick's", "\xc3\x89t\xc3\xa9", "DREADFUL"};
    sf_buffer_clear(out);
    assert_int_equal(sf_buffer_add_string(out, ""), 0);
    for (size_t i = 0; i < words; i++) {
        const char *word = next_below(5) ? vocabulary[next_below(WORDS)] : others[next_below(6)];
        assert_int_equal(sf_word_render(out, word, strlen(word), (sf_case)next_below(3)), 0);
        assert_int_equal(sf_buffer_add_string(out, next_below(4) ? " " : ", "), 0);
    }
}

static const float *logits_of(const void *scratch) { return sf_cnn_scratch_logits(scratch); }

static void check_fast_path(const char *path, const safer_lexicon *lexicon, size_t words, uint32_t deletion)
{
    enum { DRAWS = 12, MOST = 8 };
    const char *isas[] = {"portable", "avx2", "avx512"};
    safer_error error = {0};
    sf_buffer text = {0};
    sf_slots slots = {0};
    float first[DRAWS * MOST], scores[DRAWS * MOST];
    random_text(&text, words);
    assert_ok(sf_slots_read(&slots, lexicon, text.bytes, text.length, &error));
    assert_ok(sf_slots_split(&slots, (safer_deletion){.chance = sf_deletion_share(deletion)}, &error));
    const size_t width = sf_slots_width(&slots);
    uint32_t *draws = calloc(DRAWS * width + 1, sizeof *draws);
    assert_non_null(draws);
    for (size_t d = 0; d < DRAWS; d++) {
        for (size_t s = 0; s < slots.slot_count; s++)
            draws[d * width + s] = next_below(
                (uint32_t)safer_lexicon_word(lexicon, slots.words[slots.slots[s]].word).support_count);
        for (size_t t = 0; deletion && t < slots.token_count; t++)
            draws[d * width + slots.slot_count + t / 32] |= (uint32_t)(next_below(3) == 0) << t % 32;
    }
    for (int isa = 0; isa < 3; isa++) {
        safer_model *model = NULL;
        setenv("SAFER_ISA", isas[isa], 1);
        assert_ok(safer_model_open(&model, path, &error));
        assert_true(model->classes <= MOST);
        check_draws(model, lexicon, &slots, draws, DRAWS, logits_of, isa ? scores : first);
        if (isa) assert_memory_equal(first, scores, DRAWS * model->classes * sizeof *scores);
        safer_model_free(model);
    }
    unsetenv("SAFER_ISA");
    free(draws);
    sf_slots_free(&slots);
    sf_buffer_free(&text);
}

static void draws_equal_rendered_texts(void **unused)
{
    (void)unused;
    const char *kernels[] = {"topk:2", "component", "representative"}, *widths[] = {"3", "1", "2", "3,4,5", "8"};
    const size_t lengths[] = {0, 1, 2, 3, 7, 30, 200};
    for (int k = 0; k < 3; k++) {
        safer_lexicon *lexicon = make_lexicon(kernels[k]);
        for (int round = 0; round < 24; round++) {
            sf_cnn_shape shape = make_shape(round % 6 != 0, round % 2, WORDS + 1, 9, widths[round % 5],
                                            1 + next_below(70), round % 3 ? 21 : 0, 5);
            if (round % 7 == 3) shape.max_words = 1 + next_below(20);
            const char *path = save_random_model(&shape, "random.safetensors");
            for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
                check_fast_path(path, lexicon, lengths[i], (uint32_t)(round % 4) << 30);
        }
        safer_lexicon_free(lexicon);
    }
}

static void texts_without_words_or_slots(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_lexicon *lexicon = make_lexicon("component");
    const char *texts[] = {"", "... 123 !!", "the the the a", "good"};
    for (int pool = 0; pool < 2; pool++)
        for (int convolution = 0; convolution < 2; convolution++) {
            sf_cnn_shape shape = make_shape(convolution, pool, WORDS + 1, 6, "3", 8, 7, 5);
            safer_model *model = NULL;
            assert_ok(safer_model_open(&model, save_random_model(&shape, "words.safetensors"), &error));
            for (int i = 0; i < 4; i++) {
                sf_slots slots = {0};
                void *prepared = NULL, *scratch = NULL;
                int label, drawn;
                float scores[5], sum = 0;
                size_t length = strlen(texts[i]);
                const uint32_t zero[1] = {0};
                assert_ok(sf_slots_read(&slots, lexicon, texts[i], length, &error));
                assert_int_equal(slots.slot_count, i == 3);
                assert_ok(model->class->scratch_new(model, &scratch, &error));
                assert_ok(model->class->prepare(model, lexicon, &slots, &prepared, &error));
                assert_ok(model->class->sample(model, prepared, zero, 1, &drawn, scratch, &error));
                assert_ok(safer_model_classify(model, &texts[i], &length, 1, &label, scores, &error));
                if (i < 3) assert_int_equal(label, drawn);
                for (int k = 0; k < 5; k++) sum += scores[k];
                assert_true(fabsf(sum - 1) < 1e-5f);
                model->class->release(prepared);
                model->class->scratch_free(scratch);
                sf_slots_free(&slots);
            }
            safer_model_free(model);
        }
    safer_lexicon_free(lexicon);
}

/* -------------------------------------------------------------------- files */

static void files_come_back(void **unused)
{
    (void)unused;
    safer_error error = {0};
    sf_cnn_shape shape = make_shape(1, 1, WORDS + 1, 6, "2,5", 8, 7, 5);
    shape.max_words = 77;
    safer_model *model = NULL;
    assert_ok(safer_model_open(&model, save_random_model(&shape, "back.safetensors"), &error));
    assert_string_equal(safer_model_arch(model), "cnn");
    assert_int_equal(safer_model_class_count(model), 5);
    assert_string_equal(safer_model_label(model, 3), "3");
    assert_string_equal(safer_model_trained_with(model), "{}");
    const sf_cnn_model *inside = (const sf_cnn_model *)model;
    assert_int_equal(inside->words.count, WORDS);
    assert_string_equal(sf_words_string(&inside->words, 3), "nice");
    safer_model_free(model);
}

static void bad_files_are_refused(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_model *model = NULL;
    sf_cnn_shape shape = make_shape(1, 0, WORDS + 1, 6, "3", 8, 7, 5);
    char path[600];
    snprintf(path, sizeof path, "%s", save_random_model(&shape, "good.safetensors"));
    static const spoiling ways[] = {LEFT_OUT, SHORTENED, NOT_A_NUMBER};
    const char *names[] = {"embedding.weight", "conv.0.weight", "conv.0.bias", "hidden.weight",
                           "hidden.bias",      "output.weight", "output.bias", "lookup.scale"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t how = 0; how < COUNT(ways); how++)
            assert_fails(safer_model_open(&model, spoil(path, names[i], ways[how], NULL), &error), SAFER_INPUT,
                         names[i]);
    assert_fails(safer_model_open(&model, spoil(path, "lookup.scale", NEGATIVE, NULL), &error), SAFER_INPUT,
                 "lookup.scale");
    assert_fails(safer_model_open(&model, spoil(path, "vocabulary", LEFT_OUT, NULL), &error), SAFER_INPUT,
                 "vocabulary");
    assert_fails(safer_model_open(&model, spoil(path, "vocabulary", UNENDED, NULL), &error), SAFER_INPUT, "vocabulary");
    const struct {
        const char *config, *says;
    } configs[] = {
        {"[]", "config"},
        {"{", "config"},
        {"{\"dim\":0,\"widths\":[3],\"filters\":8,\"pool\":\"mean\",\"hidden\":7,\"max_words\":0}", "dim"},
        {"{\"dim\":6,\"widths\":[],\"filters\":8,\"pool\":\"mean\",\"hidden\":7,\"max_words\":0}", "widths"},
        {"{\"dim\":6,\"widths\":[2.5],\"filters\":8,\"pool\":\"mean\",\"hidden\":7,\"max_words\":0}", "widths"},
        {"{\"dim\":6,\"widths\":[\"3\"],\"filters\":8,\"pool\":\"mean\",\"hidden\":7,\"max_words\":0}", "widths"},
        {"{\"dim\":6,\"widths\":[101],\"filters\":8,\"pool\":\"mean\",\"hidden\":7,\"max_words\":0}", "widths"},
        {"{\"dim\":6,\"widths\":[3],\"filters\":\"8\",\"pool\":\"mean\",\"hidden\":7,\"max_words\":0}", "filters"},
        {"{\"dim\":6,\"widths\":[3],\"filters\":8,\"pool\":\"sum\",\"hidden\":7,\"max_words\":0}", "pool"},
        {"{\"dim\":6,\"widths\":[3],\"filters\":8,\"pool\":\"mean\",\"hidden\":-1,\"max_words\":0}", "hidden"},
        {"{\"dim\":6,\"widths\":[3],\"filters\":8,\"pool\":\"mean\",\"hidden\":7}", "max_words"},
        {"{\"dim\":7,\"widths\":[3],\"filters\":8,\"pool\":\"mean\",\"hidden\":7,\"max_words\":0}", "embedding.weight"},
        {"{\"dim\":6,\"widths\":[4],\"filters\":8,\"pool\":\"mean\",\"hidden\":7,\"max_words\":0}", "conv.0.weight"},
        {"{\"dim\":6,\"widths\":[3,3],\"filters\":8,\"pool\":\"mean\",\"hidden\":7,\"max_words\":0}", "conv.1.weight"},
        {"{\"dim\":4096,\"widths\":[100],\"filters\":65536,\"pool\":\"mean\",\"hidden\":65536,\"max_words\":0}",
         "embedding.weight"},
    };
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        assert_fails(safer_model_open(&model, spoil(path, "config", METADATA, configs[i].config), &error), SAFER_INPUT,
                     configs[i].says);
    assert_fails(safer_model_open(&model, spoil(path, "labels", METADATA, "[\"a\",\"b\"]"), &error), SAFER_INPUT,
                 "output.weight");
    assert_null(model);
}

static safer_status open_and_use(void *context, safer_error *error)
{
    safer_model *model = NULL;
    safer_status status = safer_model_open(&model, ((void **)context)[0], error);
    if (status == SAFER_OK) status = use_model(model, ((void **)context)[1], error);
    safer_model_free(model);
    return status;
}

static void memory_may_run_out(void **unused)
{
    (void)unused;
    sf_cnn_shape shape = make_shape(1, 0, WORDS + 1, 6, "3,4", 8, 7, 5);
    char path[600];
    safer_lexicon *lexicon = make_lexicon("component");
    snprintf(path, sizeof path, "%s", save_random_model(&shape, "memory.safetensors"));
    void *context[2] = {path, lexicon};
    check_every_allocation(open_and_use, context);
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_differences),
        cmocka_unit_test(dropout_is_part_of_the_gradient),
        cmocka_unit_test(adam_takes_known_steps),
        cmocka_unit_test(lookup_equals_direct_convolution),
        cmocka_unit_test(answers_equal_the_definition),
        cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(draws_equal_rendered_texts),
        cmocka_unit_test(texts_without_words_or_slots),
        cmocka_unit_test(files_come_back),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
