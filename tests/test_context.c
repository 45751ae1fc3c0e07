/* The `context` classifier: its worst case against all substitutions, alone and in sums, with texts as they are spoken
 * and windows that cut them; what it reads; its file. */
#define _GNU_SOURCE
#include "base/number.h"
#include "encoder.h"
#include "ibp/bounds.h"
#include "model/canonical.h"
#include "model/context.h"
#include "model/sum.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const pool[] = {"aa", "bb", "cc", "don't", "o'er", "\xc3\xa9t\xc3\xa9", "gg", "hh", "i", "zz"};
static const char *const upper[] = {"AA", "BB", "CC", "DON'T", "O'ER", "\xc3\x89T\xc3\x89", "GG", "HH", "I", "ZZ"};
static const char *const title[] = {"Aa", "Bb", "Cc", "Don't", "O'er", "\xc3\x89t\xc3\xa9", "Gg", "Hh", "I", "Zz"};
static const char *const mixed[] = {"aA", "bB", "cC", "don\xe2\x80\x99t", "o'eR", "\xc3\xa9T\xc3\xa9", "gG",
                                    "hH", "i",  "zZ"}; /* lower, says the first letter */
static const char *const between[] = {" ", ", ", "-", "1", "'' ", "\xe2\x80\x8b", "\xcc\x81 ", ". "};
enum { POOL = COUNT(pool), IN_LEXICON = 8, GAPS = COUNT(between), SPOKEN = 5 };
static const char *const label_lists[] = {NULL, NULL, "[\"0\",\"1\"]", "[\"0\",\"1\",\"2\"]"};

/* ------------------------------------------------------------------- material */

/* Random synonyms, one-way or not, within two groups of four. linked[a][b]: b may stand for a. */
static safer_lexicon *random_lexicon(int linked[POOL][POOL], int directed, const char *kernel)
{
    safer_error error = {0};
    safer_lexicon *lexicon = NULL;
    sf_buffer table = {0};
    safer_lexicon_options options = safer_lexicon_options_default();
    memset(linked, 0, sizeof(int[POOL][POOL]));
    for (int a = 0; a < IN_LEXICON; a++) {
        const int next = a / 4 * 4 + (a + 1) % 4;
        assert_int_equal(sf_buffer_format(&table, "%s\t%s", pool[a], pool[next]), 0);
        for (int b = 0; b < IN_LEXICON; b++) {
            if (a == b || b / 4 != a / 4 || (b != next && next_below(4))) continue;
            linked[a][b] = 1;
            if (!directed) linked[b][a] = 1;
            if (b != next) assert_int_equal(sf_buffer_format(&table, " %s", pool[b]), 0);
        }
        assert_int_equal(sf_buffer_add_byte(&table, '\n'), 0);
    }
    options.function_words = 0; /* the pool has "don't" */
    options.table = write_temporary("links.tsv", table.bytes, table.length);
    options.directed = directed;
    options.kernel = kernel;
    assert_ok(safer_lexicon_import(&lexicon, &options, NULL, &error));
    assert_ok(safer_lexicon_save(lexicon, temporary("words.lex"), &error));
    sf_buffer_free(&table);
    return lexicon;
}

/* What the numbers of a model are like. */
typedef enum numbers { ANY, TIES, EXTREMES } numbers;

static float number_of(numbers kind)
{
    if (kind == TIES) return (float)next_below(3) - 1;
    return next_float() * (kind == EXTREMES ? ldexpf(1, (int)next_below(180) - 60) : 4);
}

/* A model with the encoder of make_encoder, which reads `tokens` at this end, and random numbers for most words. */
static void write_model(const char *path, const safer_lexicon *lexicon, size_t classes, size_t tokens, int ending,
                        numbers kind)
{
    safer_error error = {0};
    static char encoder[600];
    sf_bert_checkpoint start = {0};
    sf_bert_layout layout;
    float *parameters = NULL, mean[16], projection[3 * 16];
    sf_words words = {0};
    uint32_t id;
    if (!*encoder) snprintf(encoder, sizeof encoder, "%s", make_encoder());
    assert_ok(sf_bert_checkpoint_open(&start, encoder, &error));
    assert_ok(sf_bert_encoder_of(&layout, &parameters, &start, tokens, ending, &error));
    for (uint32_t w = 0; w < POOL; w++)
        if (next_below(4)) assert_ok(sf_words_add(&words, pool[w], strlen(pool[w]), &id, &error));
    if (!words.count) assert_ok(sf_words_add(&words, "aa", 2, &id, &error));
    sf_context_parts parts = {.layout = &layout,
                              .encoder = parameters,
                              .piecer = start.piecer,
                              .lexicon = lexicon,
                              .words = &words,
                              .mean = mean,
                              .projection = projection};
    sf_context_layout_make(&parts.sum.layout, classes, words.count + 1, 1 + next_below(3));
    float *learned = malloc(parts.sum.layout.total * sizeof *learned);
    assert_non_null(learned);
    for (size_t i = 0; i < parts.sum.layout.total; i++) learned[i] = number_of(kind);
    for (size_t i = 0; i < COUNT(mean); i++) mean[i] = next_float();
    for (size_t i = 0; i < COUNT(projection); i++) projection[i] = kind == TIES ? 0 : next_float();
    parts.sum.parameters = learned;
    assert_ok(sf_context_save(path, &parts, label_lists[classes], "{}", &error));
    free(learned);
    free(parameters);
    sf_words_free(&words);
    sf_bert_layout_free(&layout);
    sf_bert_checkpoint_free(&start);
}

static safer_model *open_model(const char *path)
{
    safer_error error = {0};
    safer_model *model = NULL;
    assert_ok(safer_model_open(&model, path, &error));
    return model;
}

/* Case c: two or three classes, windows of all sizes at either end. */
static void write_case(const char *path, const safer_lexicon *lexicon, uint32_t c)
{
    write_model(path, lexicon, 2 + c % 2, c % 3 ? 24 : 3 + next_below(8), (int)(c / 2 % 2),
                c % 5 == 4   ? TIES
                : c % 7 == 6 ? EXTREMES
                             : ANY);
}

/* ----------------------------------------------------------------------- texts */

/* A text as it is spoken: words of the pool, each in one of the cases, with something between them. */
typedef struct spoken {
    uint32_t words[SPOKEN], cases[SPOKEN], gaps[SPOKEN];
    size_t count;
} spoken;

static spoken random_spoken(size_t most)
{
    spoken s = {.count = next_below((uint32_t)most + 1)};
    for (size_t i = 0; i < s.count; i++)
        s.words[i] = next_below(POOL), s.cases[i] = next_below(4), s.gaps[i] = next_below(GAPS);
    return s;
}

static size_t write_spoken(char *out, const spoken *s, const uint32_t *words)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < s->count; i++) {
        const int own = words[i] == s->words[i]; /* what takes a word's place is written in its pattern */
        const char *const *form = s->cases[i] == 0   ? pool
                                  : s->cases[i] == 1 ? title
                                  : s->cases[i] == 2 ? upper
                                  : own              ? mixed
                                                     : pool;
        n += (size_t)sprintf(out + n, "%s%s", form[words[i]], between[s->gaps[i]]);
    }
    return n;
}

/* The next text that an attacker can make, and how many words differ; 0 when all were seen. Begin with *way 0. */
static int next_variant(uint32_t *words, size_t *changed, size_t *way, const spoken *s, int linked[POOL][POOL])
{
    size_t ways = 1;
    for (size_t i = 0; i < s->count; i++) ways *= POOL;
    while (*way < ways) {
        size_t rest = (*way)++, i = 0;
        for (*changed = 0; i < s->count; i++, rest /= POOL) {
            words[i] = (uint32_t)(rest % POOL);
            if (words[i] != s->words[i] && !linked[s->words[i]][words[i]]) break;
            *changed += words[i] != s->words[i];
        }
        if (i == s->count) return 1;
    }
    return 0;
}

/* ------------------------------------------------------------- the worst case */

/* By how much the target leads every other class at least, in units, in an answered text. */
static int64_t lead_of(const safer_model *model, const void *scratch, size_t target)
{
    int64_t least = INT64_MAX;
    for (size_t k = 0; k < model->classes; k++) {
        int64_t lead = 0;
        if (k == target) continue;
        if (model->class == &sf_sum_class) {
            for (size_t m = 0; m < ((const sf_sum_model *)model)->count; m++)
                lead += sf_sum_said(scratch, m)[target] - sf_sum_said(scratch, m)[k];
        } else {
            lead = sf_context_said(scratch)[target] - sf_context_said(scratch)[k];
        }
        least = lead < least ? lead : least;
    }
    return least;
}

/* Asks about all variants: least[R] is the least lead of those with at most R changed words. Each is asked with the
 * scratch that answered the one before and, some, with a fresh one; contexts never differ. Returns how many. */
static size_t ask_all(int64_t *least, const safer_model *model, const spoken *s, int linked[POOL][POOL], size_t target)
{
    safer_error error = {0};
    uint32_t words[SPOKEN];
    char bytes[256];
    size_t way = 0, changed, asked = 0;
    const int sum = model->class == &sf_sum_class;
    void *scratch = NULL;
    sf_buffer first = {0};
    assert_ok(model->class->scratch_new(model, &scratch, &error));
    for (size_t r = 0; r <= SPOKEN; r++) least[r] = INT64_MAX;
    for (; next_variant(words, &changed, &way, s, linked); asked++) {
        const sf_span text = {bytes, write_spoken(bytes, s, words)};
        int label, again;
        assert_ok(sf_model_classify(model, &text, 1, &label, NULL, scratch, &error));
        const int64_t lead = lead_of(model, scratch, target);
        if (lead > 0) assert_int_equal(label, target);
        for (size_t r = changed; r <= SPOKEN; r++) least[r] = lead < least[r] ? lead : least[r];
        if (asked % 7) continue;
        void *fresh = NULL;
        assert_ok(model->class->scratch_new(model, &fresh, &error));
        assert_ok(sf_model_classify(model, &text, 1, &again, NULL, fresh, &error));
        assert_true(again == label && lead_of(model, fresh, target) == lead);
        if (!sum) {
            const sf_contexts found = sf_context_answered(fresh);
            sf_buffer all = {0};
            assert_int_equal(sf_buffer_add(&all, &found.first, 2 * sizeof found.first), 0);
            assert_int_equal(sf_buffer_add(&all, found.values, found.count * found.size * sizeof(float)), 0);
            if (!first.length) assert_int_equal(sf_buffer_add(&first, all.bytes, all.length), 0);
            assert_true(all.length == first.length && memcmp(all.bytes, first.bytes, all.length) == 0);
            sf_buffer_free(&all);
        }
        model->class->scratch_free(fresh);
    }
    model->class->scratch_free(scratch);
    sf_buffer_free(&first);
    return asked;
}

/* The curve that bounds give a text, (slots+1) numbers; the margins (classes). */
static size_t read_curve(double *curve, double *margins, const safer_model *model, const safer_lexicon *lexicon,
                         sf_span text, size_t target)
{
    safer_error error = {0};
    sf_slots slots = {0};
    void *scratch = NULL;
    sf_ibp_scratch *bounds = NULL;
    const double *found;
    int label;
    assert_true(sf_ibp_adds(model));
    assert_ok(sf_ibp_check(model, lexicon, &error));
    assert_ok(sf_slots_read(&slots, lexicon, text.bytes, text.length, &error));
    assert_ok(model->class->scratch_new(model, &scratch, &error));
    assert_ok(sf_model_classify(model, &text, 1, &label, NULL, scratch, &error));
    const size_t visible = sf_ibp_visible(model, &slots);
    assert_int_equal(visible, slots.slot_count);
    assert_ok(sf_ibp_curve(margins, &found, model, lexicon, &slots, target, scratch, &bounds, &error));
    memcpy(curve, found, (visible + 1) * sizeof *curve);
    sf_ibp_scratch_free(bounds);
    model->class->scratch_free(scratch);
    sf_slots_free(&slots);
    return visible;
}

/* Every text that an attacker can write is asked: the curve is the least lead, at every number of changed words, to the
 * last unit; and the certificate's radius is the last at which it is above 0. */
static void the_curve_is_the_worst_case(void **unused)
{
    (void)unused;
    safer_error error = {0};
    size_t asked = 0, certified = 0, partly = 0;
    for (uint32_t c = 0; c < 60; c++) {
        int linked[POOL][POOL];
        safer_lexicon *lexicon = random_lexicon(linked, (int)(c / 3 % 2), "representative");
        safer_workspace *workspace = NULL;
        safer_certify_options options = safer_certify_options_default();
        write_case(temporary("one.model"), lexicon, c);
        safer_model *model = open_model(temporary("one.model"));
        options.method = SAFER_METHOD_IBP;
        for (int t = 0; t < 12; t++) {
            const spoken s = random_spoken(4);
            char bytes[256];
            const sf_span text = {bytes, write_spoken(bytes, &s, s.words)};
            const size_t target = next_below((uint32_t)model->classes);
            int64_t least[SPOKEN + 1];
            double curve[SPOKEN + 1], margins[3], lowest = HUGE_VAL;
            asked += ask_all(least, model, &s, linked, target);
            const size_t visible = read_curve(curve, margins, model, lexicon, text, target);
            for (size_t r = 0; r <= visible; r++)
                if (ldexp(curve[r], SF_CONTEXT_BITS) != (double)least[r])
                    fail_msg("case %u: \"%s\" leads by %.17g at %zu, not by %lld", c, bytes,
                             ldexp(curve[r], SF_CONTEXT_BITS), r, (long long)least[r]);
            for (size_t k = 0; k < model->classes; k++)
                if (k != target) lowest = fmin(lowest, margins[k]);
            assert_true(lowest == curve[visible] && margins[target] == 0);
            safer_certificate found;
            assert_ok(safer_certify_text(&found, &workspace, model, lexicon, bytes, text.length, (int)target, &options,
                                         &error));
            size_t radius = 0;
            while (radius < visible && least[radius + 1] > 0) radius++;
            assert_true(found.additive && found.exact && found.target == (int)target && found.visible == visible);
            assert_int_equal(found.radius, least[visible] > 0 ? SAFER_ALL : radius);
            certified += found.radius == SAFER_ALL;
            partly += found.radius > 0 && found.radius < SAFER_ALL;
        }
        safer_workspace_free(workspace);
        safer_model_free(model);
        safer_lexicon_free(lexicon);
    }
    printf("%zu texts asked, %zu certified, %zu for some changes\n", asked, certified, partly);
    assert_true(asked > 5000 && certified > 100 && partly > 10);
}

/* A sum with members of every kind that adds up. Weights differ by orders of size. Returns how many are no canonical
 * ones. */
static size_t write_sum(const char *path, const safer_lexicon *lexicon, uint32_t c)
{
    safer_error error = {0};
    sf_buffer text = {0};
    const size_t members = 1 + c % 3;
    size_t others = 0;
    assert_ok(safer_lexicon_save(lexicon, temporary("words.lex"), &error));
    assert_int_equal(sf_buffer_format(&text, "{\"arch\": \"sum\", \"members\": ["), 0);
    for (size_t m = 0; m < members; m++) {
        char name[32];
        const int canonical = m > 0 && (m + c) % 3 == 0; /* one reads the canonical form itself: nothing changes it */
        snprintf(name, sizeof name, "member%zu", m);
        write_case(temporary(name), lexicon, c % 2 + 2 * next_below(50));
        assert_int_equal(sf_buffer_format(&text, "%s{\"model\": \"%s\", \"weight\": %.17g%s}", m ? ", " : "", name,
                                          pow(10, 2 * (double)next_float()),
                                          canonical ? ", \"canonical\": \"words.lex\"" : ""),
                         0);
        others += !canonical;
    }
    assert_int_equal(sf_buffer_format(&text, "]}"), 0);
    snprintf((char *)(uintptr_t)path, 600, "%s", write_temporary("sum.json", text.bytes, text.length));
    sf_buffer_free(&text);
    return others;
}

/* In a sum the curve is never above the truth, and below it by the units that ibp/margins.c takes off: for each member
 * that is no canonical one a little more than 1, rounding down, and as much as those members' roundings may be off. */
static void sums_are_never_above_the_truth(void **unused)
{
    (void)unused;
    size_t asked = 0, near = 0, seen = 0;
    for (uint32_t c = 0; c < 40; c++) {
        int linked[POOL][POOL];
        char path[600];
        safer_lexicon *lexicon = random_lexicon(linked, (int)(c / 3 % 2), "representative");
        const size_t others = write_sum(path, lexicon, c);
        safer_model *model = open_model(path);
        for (int t = 0; t < 8; t++) {
            const spoken s = random_spoken(4);
            char bytes[256];
            const sf_span text = {bytes, write_spoken(bytes, &s, s.words)};
            const size_t target = next_below((uint32_t)model->classes);
            int64_t least[SPOKEN + 1];
            double curve[SPOKEN + 1], margins[3];
            asked += ask_all(least, model, &s, linked, target);
            const size_t visible = read_curve(curve, margins, model, lexicon, text, target);
            for (size_t r = 0; r <= visible; r++) {
                const double units = ldexp(curve[r], SF_SUM_BITS);
                if (units > (double)least[r])
                    fail_msg("case %u: \"%s\" leads by %.17g at %zu, not by %lld", c, bytes, units, r,
                             (long long)least[r]);
                near += units > (double)least[r] - 3 * (double)others - 2;
                seen++;
            }
        }
        safer_model_free(model);
        safer_lexicon_free(lexicon);
    }
    printf("%zu texts asked, %zu of %zu numbers within the units taken off\n", asked, near, seen);
    assert_true(asked > 2000 && near > seen * 3 / 4); /* the rest: numbers so great that doubles are coarser */
}

/* ------------------------------------------------------------------ what is read */

/* An answer does not depend on the texts beside it, nor on what was asked before; nor does an empty text fail, or one
 * with more words than the encoder reads. */
static void answers_depend_on_the_text_alone(void **unused)
{
    (void)unused;
    safer_error error = {0};
    int linked[POOL][POOL];
    safer_lexicon *lexicon = random_lexicon(linked, 0, "representative");
    enum { TEXTS = 40 };
    char bytes[TEXTS][400];
    for (int ending = 0; ending < 2; ending++) {
        sf_span texts[TEXTS];
        int labels[TEXTS], one;
        float scores[TEXTS * 3], own[3];
        void *scratch = NULL;
        write_model(temporary("m"), lexicon, 3, 9, ending, ANY);
        safer_model *model = open_model(temporary("m"));
        assert_string_equal(safer_model_arch(model), "context");
        for (size_t i = 0; i < TEXTS; i++) {
            const spoken s = random_spoken(SPOKEN);
            size_t n = i % 4 == 1 ? (size_t)sprintf(bytes[i], "%s", bytes[i - 1]) : write_spoken(bytes[i], &s, s.words);
            if (i % 5 == 2)
                n += (size_t)sprintf(bytes[i] + n, " zz bb aa aa bb cc gg hh zz aa bb cc %s", i % 2 ? "!!" : "");
            texts[i] = (sf_span){bytes[i], i ? n : 0}; /* the first is empty */
        }
        assert_ok(model->class->scratch_new(model, &scratch, &error));
        assert_ok(sf_model_classify(model, texts, TEXTS, labels, scores, scratch, &error));
        for (size_t i = TEXTS; i-- > 0;) {
            assert_ok(sf_model_classify(model, &texts[i], 1, &one, own, scratch, &error));
            assert_int_equal(one, labels[i]);
            assert_memory_equal(own, scores + 3 * i, sizeof own);
            assert_true(fabsf(own[0] + own[1] + own[2] - 1) < 1e-5f);
        }
        assert_true(sf_context_answered(scratch).words == 0); /* the first */
        const sf_context_sum *sum = sf_context_sum_of(model);
        for (size_t k = 0; k < 3; k++) assert_true(sf_context_said(scratch)[k] == sf_context_bias(sum, k));
        model->class->scratch_free(scratch);
        safer_model_free(model);
    }
    safer_lexicon_free(lexicon);
}

/* What a word gives is computed in plain arithmetic when it is bounded too, whatever the thread does. */
static void bounds_are_in_plain_arithmetic(void **unused)
{
    (void)unused;
    int linked[POOL][POOL];
    safer_lexicon *lexicon = random_lexicon(linked, 0, "representative");
    write_model(temporary("m"), lexicon, 2, 24, 0, EXTREMES);
    safer_model *model = open_model(temporary("m"));
    const sf_span text = {"aa bb, cc gg", 12};
    double plain[SPOKEN + 1], flushed[SPOKEN + 1], margins[2];
    fenv_t before;
    const size_t visible = read_curve(plain, margins, model, lexicon, text, 1);
    sf_flush_denormals(&before);
    fesetround(FE_UPWARD);
    assert_int_equal(read_curve(flushed, margins, model, lexicon, text, 1), visible);
    fesetenv(&before);
    assert_memory_equal(plain, flushed, (visible + 1) * sizeof *plain);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
}

/* Numbers that do not fit are cut, not wrapped; what is no number is the least. */
static void numbers_are_cut(void **unused)
{
    (void)unused;
    sf_context_sum sum;
    float p[32] = {0};
    const float contexts[2] = {1, FLT_MAX};
    sf_context_layout_make(&sum.layout, 3, 2, 1);
    assert_true(sum.layout.total <= COUNT(p) && sum.layout.shape.outputs == 3);
    sum.parameters = p;
    p[sum.layout.words] = FLT_MAX, p[sum.layout.words + 1] = -FLT_MAX, p[sum.layout.words + 2] = 0.75f;
    p[sum.layout.bias] = FLT_MAX, p[sum.layout.bias + 1] = (float)NAN;
    const sf_contexts one = {contexts, 0, 2, 1, 3};
    const int64_t third = llrint(0x1p50 / 3);
    assert_true(sf_context_word(&sum, 0, one, 2, 0) == third && sf_context_word(&sum, 0, one, 2, 1) == -third);
    assert_true(sf_context_word(&sum, 0, one, 0, 2) == (int64_t)(0.75 * 0x1p30 / 3));
    assert_true(sf_context_bias(&sum, 0) == INT64_C(1) << 50 && sf_context_bias(&sum, 1) == -(INT64_C(1) << 50));
    p[sum.layout.common + 2] = FLT_MAX, p[sum.layout.each + 2] = FLT_MAX;
    assert_true(sf_context_word(&sum, 0, one, 1, 2) == third);                        /* FLT_MAX twice, times FLT_MAX */
    assert_true(sf_context_word(&sum, 0, one, 2, 2) == (int64_t)(0.75 * 0x1p30 / 3)); /* it has no context */
    assert_true(sf_context_word_lead(&sum, 0, one, 2, 0, 1) == 2 * third);
}

/* The form is what drawing gives, and its words end where they do. */
static void the_form_is_what_is_drawn(void **unused)
{
    (void)unused;
    safer_error error = {0};
    int linked[POOL][POOL];
    safer_lexicon *lexicon = random_lexicon(linked, 0, "representative"),
                  *other = random_lexicon(linked, 0, "component");
    sf_slots slots = {0}, again = {0};
    const uint32_t draws[SPOKEN] = {0};
    assert_true(sf_canonical_is(lexicon) && !sf_canonical_is(other));
    assert_true(sf_canonical_same(lexicon, lexicon) && !sf_canonical_same(lexicon, other));
    for (int t = 0; t < 300; t++) {
        const spoken s = random_spoken(SPOKEN);
        char bytes[256];
        sf_buffer drawn = {0}, form = {0};
        size_t ends[SPOKEN + 1];
        assert_ok(sf_slots_read(&slots, lexicon, bytes, write_spoken(bytes, &s, s.words), &error));
        assert_int_equal(sf_slots_render(&drawn, &slots, lexicon, draws), 0);
        assert_int_equal(sf_buffer_add(&form, "before", 6), 0);
        assert_int_equal(sf_canonical_render(&form, ends, &slots, lexicon), 0);
        assert_true(form.length == drawn.length + 6 && memcmp(form.bytes + 6, drawn.bytes, drawn.length) == 0);
        assert_ok(sf_slots_read(&again, lexicon, drawn.bytes, drawn.length, &error));
        assert_int_equal(again.word_count, slots.word_count);
        for (size_t i = 0; i < slots.word_count; i++) assert_int_equal(again.words[i].end, ends[i]);
        sf_buffer_free(&drawn);
        sf_buffer_free(&form);
    }
    sf_slots_free(&slots);
    sf_slots_free(&again);
    safer_lexicon_free(lexicon);
    safer_lexicon_free(other);
}

/* --------------------------------------------------------------------- the file */

static void other_lexicons_are_refused(void **unused)
{
    (void)unused;
    safer_error error = {0};
    int linked[POOL][POOL];
    safer_lexicon *lexicon = random_lexicon(linked, 0, "representative"),
                  *other = random_lexicon(linked, 1, "representative");
    write_model(temporary("m"), lexicon, 2, 24, 0, ANY);
    safer_model *model = open_model(temporary("m"));
    assert_ok(sf_ibp_check(model, lexicon, &error));
    assert_fails(sf_ibp_check(model, other, &error), SAFER_INVALID,
                 "bounds of context need the lexicon it was trained with");
    static const char members[] = "{\"arch\": \"sum\", \"members\": [{\"model\": \"m\"}]}";
    const char *sum_path = write_temporary("sum.json", members, strlen(members));
    safer_model *sum = open_model(sum_path);
    assert_ok(sf_ibp_check(sum, lexicon, &error));
    assert_fails(sf_ibp_check(sum, other, &error), SAFER_INVALID,
                 "member 1 of the sum reads texts in the canonical form");
    safer_model_free(sum);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
    safer_lexicon_free(other);
}

static void bad_files_are_refused(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_model *model = NULL;
    int linked[POOL][POOL];
    static const spoiling ways[] = {LEFT_OUT, SHORTENED, NOT_A_NUMBER};
    static const char *const floats[] = {"context.mean",
                                         "context.projection",
                                         "context.bias",
                                         "context.words",
                                         "context.common",
                                         "context.each",
                                         "embeddings.word_embeddings.weight"};
    safer_lexicon *lexicon = random_lexicon(linked, 0, "representative"),
                  *other = random_lexicon(linked, 0, "component");
    char path[600];
    snprintf(path, sizeof path, "%s", temporary("good.safetensors"));
    write_model(path, lexicon, 3, 24, 1, ANY);
    safer_model_free(open_model(spoil(path, "trained_with", METADATA, "{}"))); /* a copy is as good */
    for (size_t i = 0; i < COUNT(floats); i++)
        for (size_t how = 0; how < COUNT(ways); how++)
            assert_fails(safer_model_open(&model, spoil(path, floats[i], ways[how], NULL), &error), SAFER_INPUT,
                         floats[i] + (strncmp(floats[i], "embeddings.", 11) == 0 ? 11 : 0));
    assert_fails(safer_model_open(&model, spoil(path, "context.vocabulary", LEFT_OUT, NULL), &error), SAFER_INPUT,
                 "context.vocabulary");
    assert_fails(safer_model_open(&model, spoil(path, "context.vocabulary", UNENDED, NULL), &error), SAFER_INPUT,
                 "context.vocabulary");
    assert_fails(safer_model_open(&model, spoil(path, "context.lexicon", LEFT_OUT, NULL), &error), SAFER_INPUT,
                 "context.lexicon");
    assert_fails(safer_model_open(&model, spoil(path, "context.lexicon", SHORTENED, NULL), &error), SAFER_INPUT,
                 "context.lexicon\" is not a usable lexicon");
    assert_fails(safer_model_open(&model, spoil(path, "context.lexicon", UNENDED, NULL), &error), SAFER_INPUT,
                 "the checksum does not match");
    assert_fails(safer_model_open(&model, spoil(path, "labels", METADATA, "[\"a\",\"b\"]"), &error), SAFER_INPUT,
                 "context.each");
    assert_fails(safer_model_open(&model, spoil(path, "config", METADATA, "{}"), &error), SAFER_INPUT, "config");
    write_model(path, other, 2, 24, 0, ANY);
    assert_fails(safer_model_open(&model, path, &error), SAFER_INPUT,
                 "context.lexicon\" needs the kernel representative; it has component");
    safer_lexicon_free(lexicon);
    safer_lexicon_free(other);
}

typedef struct use {
    const char *path;
    const safer_lexicon *lexicon;
} use;

static safer_status open_and_use(void *context, safer_error *error)
{
    const use *u = context;
    safer_status status;
    safer_model *model = NULL;
    safer_workspace *workspace = NULL;
    safer_certificate found;
    safer_certify_options options = safer_certify_options_default();
    options.method = SAFER_METHOD_IBP;
    options.threads = 1;
    SF_TRY(safer_model_open(&model, u->path, error));
    SF_TRY(safer_certify_text(&found, &workspace, model, u->lexicon, "Aa bb, cc don't", 15, 1, &options, error));
done:
    safer_workspace_free(workspace);
    safer_model_free(model);
    return status;
}

static void memory_may_run_out(void **unused)
{
    (void)unused;
    int linked[POOL][POOL];
    safer_lexicon *lexicon = random_lexicon(linked, 0, "representative");
    char path[600];
    snprintf(path, sizeof path, "%s", temporary("m"));
    write_model(path, lexicon, 3, 24, 1, ANY);
    use u = {path, lexicon};
    check_every_allocation(open_and_use, &u);
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_curve_is_the_worst_case),
        cmocka_unit_test(sums_are_never_above_the_truth),
        cmocka_unit_test(answers_depend_on_the_text_alone),
        cmocka_unit_test(bounds_are_in_plain_arithmetic),
        cmocka_unit_test(numbers_are_cut),
        cmocka_unit_test(the_form_is_what_is_drawn),
        cmocka_unit_test(other_lexicons_are_refused),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
