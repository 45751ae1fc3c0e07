/* The charcnn classifier: characters, answers against the definition, the fast path, what
 * can be seen, files. */
#define _GNU_SOURCE
#include "test_charcnn.h"

/* --------------------------------------------------------------- characters */

static void characters_have_codes(void **unused)
{
    (void)unused;
    static const char all[] = "abcdefghijklmnopqrstuvwxyz0123456789-,;.!?:'\"/\\|_@#$%^&*~`+=<>()[]{}\n";
    uint8_t codes[80];
    assert_int_equal(strlen(all), SF_CHARCNN_ALPHABET);
    assert_int_equal(sf_charcnn_encode(codes, all, strlen(all), 80), SF_CHARCNN_ALPHABET);
    for (size_t i = 0; i < SF_CHARCNN_ALPHABET; i++) assert_int_equal(codes[i], i + 1);
    for (uint32_t c = 0; c < 128; c++) {
        const char *at = c ? strchr(all, (int)(c >= 'A' && c <= 'Z' ? c + 32 : c)) : NULL;
        assert_int_equal(sf_charcnn_code(c), at ? at - all + 1 : 0);
    }
    assert_int_equal(sf_charcnn_code(0xe9), 0);
    assert_int_equal(sf_charcnn_code(0x212a), sf_charcnn_code('k')); /* the Kelvin sign's lower case */
    assert_int_equal(sf_charcnn_code(0x17f), 0);                     /* but a long s is lower case already */

    /* Characters, not bytes; what is no UTF-8 is blank byte by byte; the limit counts characters. */
    const char text[] = "A\xc3\xa9"
                        "b\xe2\x82"
                        "c\xff"
                        "D\xf0\x9f\x98\x80"
                        "e";
    const uint8_t want[] = {1, 0, 2, 0, 0, 3, 0, 4, 0, 5};
    assert_int_equal(sf_charcnn_encode(codes, text, strlen(text), 80), 10);
    assert_memory_equal(codes, want, 10);
    for (size_t limit = 0; limit <= 10; limit++) {
        assert_int_equal(sf_charcnn_encode(codes, text, strlen(text), limit), limit);
        assert_memory_equal(codes, want, limit);
    }
}

static void layouts_are_the_papers(void **unused)
{
    (void)unused;
    sf_charcnn_layout small = make_layout(1014, 256, 1024, 2), large = make_layout(1014, 1024, 2048, 4);
    assert_int_equal(small.inputs, 8704); /* both in the paper */
    assert_int_equal(large.inputs, 34816);
    assert_int_equal(small.size, (69 * 7 * 256 + 256) + (7 * 256 * 256 + 256) + 4 * (3 * 256 * 256 + 256) +
                                     (8704 * 1024 + 1024) + (1024 * 1024 + 1024) + (2 * 1024 + 2));
    assert_int_equal(make_layout(SF_CHARCNN_SHORTEST, 16, 1, 2).frames[SF_CHARCNN_C], 1);
    assert_int_equal(small.tensor_count, SF_CHARCNN_TENSORS);
}

/* ------------------------------------------------------------------- answers */

typedef struct fixture {
    sf_charcnn_layout layout;
    float *parameters;
    double *exact;
    sf_charcnn_net *net;
    sf_charcnn_scratch *scratch;
} fixture;

static fixture make_fixture(size_t characters, size_t features, size_t hidden, size_t classes, sf_dtype type)
{
    safer_error error = {0};
    fixture x = {.layout = make_layout(characters, features, hidden, classes)};
    x.parameters = random_parameters(&x.layout);
    x.exact = zeros(x.layout.size, sizeof *x.exact);
    for (size_t i = 0; i < x.layout.size; i++) x.exact[i] = (double)x.parameters[i];
    assert_ok(sf_charcnn_net_new(&x.net, &x.layout, sf_arithmetic_fast(type), &error));
    sf_charcnn_net_load(x.net, x.parameters, 2);
    assert_ok(sf_charcnn_scratch_new(x.net, &x.scratch, &error));
    return x;
}

static void free_fixture(fixture *x)
{
    free(x->parameters);
    free(x->exact);
    sf_charcnn_scratch_free(x->scratch);
    sf_charcnn_net_free(x->net);
}

static void answers_equal_the_definition(void **unused)
{
    (void)unused;
    const struct {
        size_t L, F, H, K;
    } shapes[] = {{123, 16, 5, 2}, {124, 32, 40, 3},  {149, 16, 130, 2}, {150, 48, 7, 5}, {151, 16, 9, 2},
                  {152, 16, 9, 2}, {230, 32, 129, 4}, {600, 64, 140, 2}}; /* the last: more inputs than one slice */
    for (int type = 0; type < 2; type++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            enum { TEXTS = 24 };
            const size_t L = shapes[s].L, K = shapes[s].K;
            fixture x = make_fixture(L, shapes[s].F, shapes[s].H, K, type ? SF_BF16 : SF_F32);
            uint8_t *codes = zeros(TEXTS * L, 1);
            size_t lengths[TEXTS];
            int labels[TEXTS];
            float logits[TEXTS * 5], scores[TEXTS * 5];
            for (size_t i = 0; i < TEXTS; i++) random_codes(codes + i * L, lengths[i] = some_length(i, L), L);
            sf_charcnn_classify_codes(labels, scores, logits, x.net, codes, lengths, TEXTS, x.scratch);
            double worst = 0, spread = 0;
            for (size_t i = 0; i < TEXTS; i++) {
                double want[5], sum = 0;
                naive_logits(want, &x.layout, x.exact, codes + i * L, NULL);
                for (size_t k = 0; k < K; k++) {
                    worst = fmax(worst, fabs(want[k] - (double)logits[i * K + k]));
                    spread = fmax(spread, fabs(want[k]));
                    sum += (double)scores[i * K + k];
                    assert_true(logits[i * K + k] <= logits[i * K + (size_t)labels[i]]);
                }
                assert_true(fabs(sum - 1) < 1e-5);
            }
            if (!(worst < (type ? 0.03 : 2e-5) * (spread + 0.1)))
                fail_msg("L %zu, %s: off by %g of %g", L, type ? "bf16" : "f32", worst, spread);
            free(codes);
            free_fixture(&x);
        }
}

/* Whatever shares the batch, whatever ran before, however lengths are given. */
static void answers_depend_on_the_text_alone(void **unused)
{
    (void)unused;
    enum { TEXTS = 150, K = 3 };
    for (int type = 0; type < 2; type++) {
        const size_t L = 170;
        fixture x = make_fixture(L, 32, 20, K, type ? SF_BF16 : SF_F32);
        uint8_t *codes = zeros(TEXTS * L, 1), *other = zeros(TEXTS * L, 1);
        size_t lengths[TEXTS], other_lengths[TEXTS];
        int labels[TEXTS];
        float together[TEXTS * K], alone[K], shuffled[TEXTS * K];
        for (size_t i = 0; i < TEXTS; i++) random_codes(codes + i * L, lengths[i] = some_length(i, L), L);
        sf_charcnn_classify_codes(labels, NULL, together, x.net, codes, lengths, TEXTS, x.scratch);
        for (size_t i = 0; i < TEXTS; i++) { /* backwards, and blanks at the end may be counted or not */
            memcpy(other + i * L, codes + (TEXTS - 1 - i) * L, L);
            size_t n = lengths[TEXTS - 1 - i];
            other_lengths[i] = i % 2 ? L : n;
        }
        sf_charcnn_classify_codes(labels, NULL, shuffled, x.net, other, other_lengths, TEXTS, x.scratch);
        for (size_t i = 0; i < TEXTS; i++) {
            sf_charcnn_classify_codes(labels, NULL, alone, x.net, codes + i * L, lengths + i, 1, x.scratch);
            assert_memory_equal(alone, together + i * K, sizeof alone);
            /* f32 products depend on their number of rows, and that on the length. */
            if (type || other_lengths[TEXTS - 1 - i] == lengths[i])
                assert_memory_equal(alone, shuffled + (TEXTS - 1 - i) * K, sizeof alone);
        }
        free(codes);
        free(other);
        free_fixture(&x);
    }
}

/* ---------------------------------------------------------------- fast path */

static void random_text(sf_buffer *out, size_t words)
{
    const char *all[] = {"good",
                         "fine",
                         "great",
                         "nice",
                         "bad",
                         "poor",
                         "film",
                         "movie",
                         "caf\xc3\xa9",
                         "wi\305\277e",
                         "it's",
                         "or",
                         "nine",
                         "zebra",
                         "the",
                         "of",
                         "\xc3\xa9t\xc3\xa9",
                         "\xe4\xb8\xad"};
    /* Between words, also nothing but digits, symbols, zero-width and broken bytes. */
    const char *gaps[] = {
        " ", " ", " ", ", ", "7", "_", "\xe2\x80\x8b", "\xff", "\xe2\x82", "\n", " \xf0\x9f\x98\x80 ", "\xc3"};
    sf_buffer_clear(out);
    assert_int_equal(sf_buffer_add_string(out, next_below(2) ? "" : gaps[next_below(12)]), 0);
    for (size_t i = 0; i < words; i++) {
        const char *word = all[next_below(18)];
        assert_int_equal(sf_word_render(out, word, strlen(word), (sf_case)next_below(3)), 0);
        assert_int_equal(sf_buffer_add_string(out, gaps[next_below(12)]), 0);
    }
}

static void draw(uint32_t *draws, const sf_slots *slots, const safer_lexicon *lexicon)
{
    for (size_t s = 0; s < slots->slot_count; s++)
        draws[s] = next_below((uint32_t)safer_lexicon_word(lexicon, slots->words[slots->slots[s]].word).support_count);
}

enum { DRAWS = 12 };

static const float *logits_of(const void *scratch) { return sf_charcnn_scratch_logits(scratch); }

static void check_fast_path(const safer_model *model, const safer_lexicon *lexicon, size_t words)
{
    safer_error error = {0};
    sf_buffer text = {0};
    sf_slots slots = {0};
    float scores[DRAWS * 3];
    random_text(&text, words);
    assert_ok(sf_slots_read(&slots, lexicon, text.bytes, text.length, &error));
    uint32_t *draws = zeros(DRAWS * slots.slot_count, sizeof *draws);
    for (size_t d = 0; d < DRAWS; d++) draw(draws + d * slots.slot_count, &slots, lexicon);
    check_draws(model, lexicon, &slots, draws, DRAWS, logits_of, scores);
    sf_buffer_free(&text);
    sf_slots_free(&slots);
    free(draws);
}

static void draws_equal_rendered_texts(void **unused)
{
    (void)unused;
    safer_error error = {0};
    const char *kernels[] = {"topk:2", "component", "representative", "odd"};
    const size_t words[] = {0, 1, 2, 5, 12, 25, 60, 200};
    for (int k = 0; k < 4; k++) {
        safer_lexicon *lexicon = make_word_lexicon(kernels[k]);
        for (int round = 0; round < 6; round++) {
            sf_charcnn_layout l = make_layout(123 + next_below(60), 16, 20, 2 + (size_t)round % 2);
            safer_model *model = NULL;
            assert_ok(open_model(&model, save_random_model(&l, "random.safetensors"), &error));
            for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
                for (int again = 0; again < 3; again++) check_fast_path(model, lexicon, words[i]);
            if (round >= 4) {
                const safer_precision precision = round == 4 ? SAFER_PRECISION_PORTABLE : SAFER_PRECISION_F32;
                assert_ok(sf_charcnn_set_precision(model, precision, &error));
                assert_string_equal(model->arithmetic, sf_arithmetic_name(sf_arithmetic_of(precision)));
                for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) check_fast_path(model, lexicon, words[i]);
            }
            model->class->free(model);
        }
        safer_lexicon_free(lexicon);
    }
}

/* --------------------------------------------------------------- truncation */

/* Where slot s begins, in characters, with the least that slots before it can become: by
 * trying every synonym and every draw. */
static size_t earliest(const sf_slots *slots, const safer_lexicon *lexicon, size_t s)
{
    uint8_t codes[4096];
    size_t at = 0, sum = 0;
    for (size_t i = 0; i <= s; i++) {
        const sf_text_word *w = &slots->words[slots->slots[i]];
        sum += sf_charcnn_encode(codes, slots->text + at, w->begin - at, sizeof codes);
        at = w->end;
        if (i == s) break;
        safer_word word = safer_lexicon_word(lexicon, w->word);
        size_t least = SIZE_MAX;
        for (size_t k = 0; k <= word.synonym_count; k++) {
            safer_word other = safer_lexicon_word(lexicon, k ? word.synonyms[k - 1] : w->word);
            for (size_t d = 0; d < other.support_count; d++) {
                const char *drawn = safer_lexicon_word(lexicon, other.support[d]).word;
                sf_buffer surface = {0};
                assert_int_equal(sf_word_render(&surface, drawn, strlen(drawn), w->pattern), 0);
                size_t n = sf_charcnn_encode(codes, surface.bytes, surface.length, sizeof codes);
                if (n < least) least = n;
                sf_buffer_free(&surface);
            }
        }
        sum += least;
    }
    return sum;
}

static void slots_behind_the_end_are_not_visible(void **unused)
{
    (void)unused;
    safer_error error = {0};
    const char *kernels[] = {"topk:2", "component", "representative", "topk:1", "odd"};
    size_t all = 0, some = 0;
    for (int k = 0; k < 5; k++) {
        safer_lexicon *lexicon = make_word_lexicon(kernels[k]);
        for (int round = 0; round < 40; round++) {
            sf_charcnn_layout l = make_layout(123 + next_below(10), 16, 4, 2);
            safer_model *model = NULL;
            sf_buffer text = {0};
            sf_slots slots = {0};
            void *prepared = NULL;
            assert_ok(open_model(&model, save_random_model(&l, "visible.safetensors"), &error));
            random_text(&text, 10 + next_below(40));
            assert_ok(sf_slots_read(&slots, lexicon, text.bytes, text.length, &error));
            assert_ok(model->class->prepare(model, lexicon, &slots, &prepared, &error));
            size_t visible = model->class->visible(prepared), want = 0;
            while (want < slots.slot_count && earliest(&slots, lexicon, want) < l.shape.characters) want++;
            assert_int_equal(visible, want);
            all += visible == slots.slot_count;
            some += visible < slots.slot_count;
            model->class->release(prepared);
            model->class->free(model);
            sf_buffer_free(&text);
            sf_slots_free(&slots);
        }
        safer_lexicon_free(lexicon);
    }
    assert_true(all > 20 && some > 20);
}

/* -------------------------------------------------------------------- files */

static void files_come_back(void **unused)
{
    (void)unused;
    safer_error error = {0};
    sf_charcnn_layout l = make_layout(140, 32, 9, 2);
    float *w = random_parameters(&l);
    char path[600];
    safer_model *model = NULL;
    snprintf(path, sizeof path, "%s", temporary("file.safetensors"));
    assert_ok(sf_charcnn_save(path, &l, w, "[\"no\",\"yes\"]", "{\"lexicon\":null}", &error));
    assert_ok(open_model(&model, path, &error));
    const sf_charcnn_net *inside = sf_charcnn_net_of(model);
    assert_memory_equal(&inside->layout.shape, &l.shape, sizeof l.shape);
    assert_string_equal(safer_model_label(model, 1), "yes");
    assert_string_equal(safer_model_trained_with(model), "{\"lexicon\":null}");
    sf_charcnn_net *net = NULL;
    assert_ok(sf_charcnn_net_new(&net, &l, sf_arithmetic_fast(SF_BF16), &error));
    sf_charcnn_net_load(net, w, 1);
    for (size_t i = 1; i < SF_CHARCNN_CONVS; i++)
        assert_memory_equal(net->conv[i].values, inside->conv[i].values, net->conv[i].capacity);
    assert_memory_equal(net->table, inside->table, SF_CHARCNN_CODES * 7 * 32 * sizeof(float));
    assert_memory_equal(net->blank[2], inside->blank[2], 32 * sizeof(sf_bf16));
    sf_charcnn_net_free(net);
    model->class->free(model);
    free(w);
}

static void bad_files_are_refused(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_model *model = NULL;
    static const spoiling ways[] = {LEFT_OUT, SHORTENED, NOT_A_NUMBER};
    sf_charcnn_layout l = make_layout(150, 16, 7, 3);
    char path[600];
    snprintf(path, sizeof path, "%s", save_random_model(&l, "good.safetensors"));
    for (size_t i = 0; i < l.tensor_count; i++)
        for (size_t how = 0; how < COUNT(ways); how++)
            assert_fails(open_model(&model, spoil(path, l.tensors[i].name, ways[how], NULL), &error), SAFER_INPUT,
                         l.tensors[i].name);
    const struct {
        const char *config, *says;
    } configs[] = {
        {"[]", "config"},
        {"{", "config"},
        {"{\"features\":16,\"hidden\":7}", "characters"},
        {"{\"characters\":122,\"features\":16,\"hidden\":7}", "characters"},
        {"{\"characters\":70000,\"features\":16,\"hidden\":7}", "characters"},
        {"{\"characters\":150,\"features\":17,\"hidden\":7}", "features"},
        {"{\"characters\":150,\"features\":0,\"hidden\":7}", "features"},
        {"{\"characters\":150,\"features\":\"16\",\"hidden\":7}", "features"},
        {"{\"characters\":150,\"features\":16,\"hidden\":0}", "hidden"},
        {"{\"characters\":150,\"features\":16,\"hidden\":7.5}", "hidden"},
        {"{\"characters\":150,\"features\":32,\"hidden\":7}", "conv.0.weight"},
        {"{\"characters\":65536,\"features\":65536,\"hidden\":65536}", "conv.0.weight"},
        {"{\"characters\":180,\"features\":16,\"hidden\":7}", "dense.0.weight"},
        {"{\"characters\":150,\"features\":16,\"hidden\":8}", "dense.0.weight"},
    };
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        assert_fails(open_model(&model, spoil(path, "config", METADATA, configs[i].config), &error), SAFER_INPUT,
                     configs[i].says);
    assert_fails(open_model(&model, spoil(path, "labels", METADATA, "[\"a\",\"b\"]"), &error), SAFER_INPUT,
                 "output.weight");
    assert_fails(open_model(&model, spoil(path, "labels", METADATA, "[]"), &error), SAFER_INPUT, "labels");
    assert_null(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_have_codes),
        cmocka_unit_test(layouts_are_the_papers),
        cmocka_unit_test(answers_equal_the_definition),
        cmocka_unit_test(answers_depend_on_the_text_alone),
        cmocka_unit_test(draws_equal_rendered_texts),
        cmocka_unit_test(slots_behind_the_end_are_not_visible),
        cmocka_unit_test(files_come_back),
        cmocka_unit_test(bad_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
