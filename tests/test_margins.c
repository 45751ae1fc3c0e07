/* Bounds of whole texts and of sums of models, against everything an attacker can write; sums
 * against their members; files of sums. */
#define _GNU_SOURCE
#include "model/cnn.h"
#include "model/sum.h"
#include "training.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Weights of this size. */
static float size = 1;

/* ------------------------------------------------------------- words and models */

/* Words of the lexicon and others; the model knows some of either. */
static const char *const pool[] = {"aa", "bb", "cc", "don't", "o'er", "\xc3\xa9t\xc3\xa9", "gg", "hh", "i", "zz"};
static const char *const upper[] = {"AA", "BB", "CC", "DON'T", "O'ER", "\xc3\x89T\xc3\x89", "GG", "HH", "I", "ZZ"};
static const char *const title[] = {"Aa", "Bb", "Cc", "Don't", "O'er", "\xc3\x89t\xc3\xa9", "Gg", "Hh", "I", "Zz"};
static const char *const mixed[] = {"aA", "bB", "cC", "don\xe2\x80\x99t", "o'eR", "\xc3\xa9T\xc3\xa9", "gG",
                                    "hH", "i",  "zZ"}; /* lower, says the first letter */
static const char *const between[] = {" ", ", ", "-", "1", "'' ", "\xe2\x80\x8b", "\xcc\x81 ", ". "};
enum { POOL = sizeof pool / sizeof pool[0], IN_LEXICON = 8, GAPS = sizeof between / sizeof between[0], SPOKEN = 6 };

/* Random synonyms, one-way or not, within groups of `group` words of the pool, most often one
 * component. linked[a][b]: b may stand for a. */
static safer_lexicon *random_lexicon(int linked[POOL][POOL], int directed, int group, const char *kernel)
{
    safer_error error = {0};
    safer_lexicon *lexicon = NULL;
    sf_buffer table = {0};
    safer_lexicon_options options = safer_lexicon_options_default();
    memset(linked, 0, sizeof(int[POOL][POOL]));
    for (int a = 0; a < IN_LEXICON; a++) {
        const int next = a / group * group + (a + 1) % group;
        if (directed && a % group == (int)next_below(4))
            continue; /* a word without synonyms, which others may become */
        assert_int_equal(sf_buffer_format(&table, "%s\t%s", pool[a], pool[next]), 0);
        for (int b = 0; b < IN_LEXICON; b++) {
            if (a == b || b / group != a / group || (b != next && next_below(6))) continue;
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
    sf_buffer_free(&table);
    return lexicon;
}

/* A model file with a random network, which knows every other word and reads `max_words`. */
static void write_model(const char *path, uint32_t c, size_t classes, size_t max_words)
{
    safer_error error = {0};
    sf_words words = {0};
    sf_cnn_layout layout;
    sf_cnn_shape shape = {.convolution = (int)(c % 2),
                          .max_pool = (int)(c / 2 % 2),
                          .dim = 2 + c % 5,
                          .hidden = c / 4 % 2 ? 6 : 0,
                          .classes = classes,
                          .width_count = 1,
                          .widths = {1}};
    static float parameters[4000], scale[200];
    uint32_t id;
    for (uint32_t w = 0; w < POOL; w++)
        if ((w + c) % 3) assert_ok(sf_words_add(&words, pool[w], strlen(pool[w]), &id, &error));
    shape.filters = shape.convolution ? 5 : shape.dim;
    if (shape.convolution) shape.width_count = 2, shape.widths[0] = 3, shape.widths[1] = 2;
    shape.vocabulary = words.count + 1;
    shape.max_words = max_words;
    sf_cnn_layout_make(&layout, &shape);
    assert_true(layout.size <= 4000 && layout.features <= 200);
    for (size_t i = 0; i < layout.size; i++) parameters[i] = next_float() * size;
    assert_int_equal(sf_cnn_scales(scale, &layout, parameters, 1), 0);
    const char *labels[] = {NULL, NULL, "[\"0\",\"1\"]", "[\"0\",\"1\",\"2\"]", "[\"0\",\"1\",\"2\",\"3\"]"};
    assert_ok(sf_cnn_save(path, &layout, parameters, scale, &words, labels[classes], "{}", &error));
    sf_words_free(&words);
}

static safer_model *open_model(const char *path)
{
    safer_error error = {0};
    safer_model *model = NULL;
    assert_ok(safer_model_open(&model, path, &error));
    return model;
}

static safer_model *random_model(uint32_t c, size_t max_words)
{
    const char *path = temporary("random.model");
    write_model(path, c, 2 + c % 3, max_words);
    return open_model(path);
}

/* A sum of random members: every third reads the canonical text. Weights differ by orders of size. */
static safer_model *random_sum(uint32_t c, const safer_lexicon *lexicon, double heavy)
{
    safer_error error = {0};
    sf_buffer text = {0};
    const size_t members = 1 + c % 4;
    assert_ok(safer_lexicon_save(lexicon, temporary("words.lex"), &error));
    assert_int_equal(sf_buffer_format(&text, "{\"arch\": \"sum\", \"members\": ["), 0);
    for (size_t m = 0; m < members; m++) {
        char name[32];
        const int canonical = (m + c) % 3 == 0;
        snprintf(name, sizeof name, "member%zu", m);
        write_model(temporary(name), next_below(1000), 2 + c % 3, next_below(4) ? 1000 : 1 + next_below(4));
        assert_int_equal(sf_buffer_format(&text, "%s{\"model\": \"%s\", \"weight\": %.17g%s}", m ? ", " : "", name,
                                          heavy * pow(10, (double)next_float()),
                                          canonical ? ", \"canonical\": \"words.lex\"" : ""),
                         0);
    }
    assert_int_equal(sf_buffer_format(&text, "]}"), 0);
    const char *path = write_temporary("sum.json", text.bytes, text.length);
    sf_buffer_free(&text);
    return open_model(path);
}

/* -------------------------------------------------------------------- texts */

/* A text as it is spoken: words of the pool, each in one of the cases, with something between them. */
typedef struct spoken {
    uint32_t words[SPOKEN], cases[SPOKEN], gaps[SPOKEN];
    size_t count;
} spoken;

static size_t write_spoken(char *out, const spoken *s, const uint32_t *words)
{
    size_t n = 0;
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

/* The members' whole numbers of the last answer: by how much class `target` leads class k. */
static int64_t lead(const safer_model *model, const void *scratch, size_t target, size_t k)
{
    int64_t sum = 0;
    for (size_t m = 0; m < ((const sf_sum_model *)model)->count; m++) {
        const int64_t *said = sf_sum_said(scratch, m);
        sum += said[target] - said[k];
    }
    return sum;
}

/* A text as a canonical member reads it. */
static void read_canonical(sf_buffer *out, const sf_span *text, const safer_lexicon *lexicon)
{
    safer_error error = {0};
    sf_slots slots = {0};
    const uint32_t draws[SPOKEN] = {0};
    assert_ok(sf_slots_read(&slots, lexicon, text->bytes, text->length, &error));
    sf_buffer_clear(out);
    assert_int_equal(sf_slots_render(out, &slots, lexicon, draws), 0);
    sf_slots_free(&slots);
}

/* Everything an attacker can make of the text, asked of the model as anyone would: the label stays
 * when the text is certified, no sum leads by less than its margin says, and the canonical text is the
 * same to the byte. */
static size_t ask_all(const safer_model *model, const safer_lexicon *lexicon, const spoken *s, int linked[POOL][POOL],
                      const safer_certificate *found)
{
    safer_error error = {0};
    uint32_t words[SPOKEN];
    char bytes[256];
    void *scratch;
    sf_buffer first = {0}, canonical = {0};
    const int sum = model->class == &sf_sum_class;
    const sf_span whole = {bytes, write_spoken(bytes, s, s->words)};
    size_t asked = 0, ways = 1;
    read_canonical(&first, &whole, lexicon);
    assert_ok(model->class->scratch_new(model, &scratch, &error));
    for (size_t i = 0; i < s->count; i++) ways *= POOL;
    for (size_t way = 0; way < ways; way++) {
        size_t rest = way, i = 0;
        for (; i < s->count; i++, rest /= POOL) {
            words[i] = (uint32_t)(rest % POOL);
            if (words[i] != s->words[i] && !linked[s->words[i]][words[i]]) break;
        }
        if (i < s->count) continue;
        int label;
        const sf_span text = {bytes, write_spoken(bytes, s, words)};
        assert_ok(model->class->classify(model, &text, 1, &label, NULL, scratch, &error));
        if (found->radius == SAFER_ALL && label != found->target)
            fail_msg("certified %d, but \"%s\" is %d", found->target, bytes, label);
        read_canonical(&canonical, &text, lexicon);
        if (sum && (canonical.length != first.length ||
                    memcmp(canonical.bytes ? canonical.bytes : "", first.bytes ? first.bytes : "", first.length)))
            fail_msg("\"%s\" reads as \"%s\", not as \"%s\"", bytes, canonical.bytes, first.bytes);
        for (size_t k = 0; sum && k < model->classes; k++)
            if ((double)lead(model, scratch, (size_t)found->target, k) < ldexp(found->margins[k], SF_SUM_BITS))
                fail_msg("\"%s\": class %d leads %zu by less than %.17g", bytes, found->target, k, found->margins[k]);
        asked++;
    }
    model->class->scratch_free(scratch);
    sf_buffer_free(&first);
    sf_buffer_free(&canonical);
    return asked;
}

/* From the bytes of a text to the certificate: cases, unknown words, words outside the model's
 * vocabulary, glued and repeated ones, one-way synonyms, words behind what is read. Adds up the
 * texts certified and those asked. */
static void check_texts(size_t *certified, size_t *asked, const safer_model *model, const safer_lexicon *lexicon,
                        int linked[POOL][POOL], uint32_t texts, uint32_t longest, size_t radius)
{
    safer_error error = {0};
    safer_workspace *workspace = NULL;
    safer_certify_options options = safer_certify_options_default();
    options.method = SAFER_METHOD_IBP;
    options.radius = radius; /* bounds speak of all words whatever is asked, unless they add up: test_curve.c */
    for (uint32_t t = 0; t < texts; t++) {
        spoken s = {.count = next_below(longest + 1)};
        char text[256];
        safer_certificate found;
        for (size_t i = 0; i < s.count; i++)
            s.words[i] = next_below(POOL), s.cases[i] = next_below(4), s.gaps[i] = next_below(GAPS);
        const size_t length = write_spoken(text, &s, s.words);
        assert_ok(
            safer_certify_text(&found, &workspace, model, lexicon, text, length, t % 3 ? -1 : 0, &options, &error));
        assert_true(found.words == s.count && found.queries == 0);
        assert_true(found.certified == (found.radius >= (found.additive ? radius : SAFER_ALL)));
        assert_true(found.margins[found.target] == 0);
        if (found.radius != SAFER_ALL && model->class != &sf_sum_class) continue;
        *certified += found.radius == SAFER_ALL;
        *asked += ask_all(model, lexicon, &s, linked, &found);
    }
    safer_workspace_free(workspace);
}

static void no_text_violates_a_certificate(void **unused)
{
    (void)unused;
    size_t certified = 0, asked = 0;
    for (uint32_t c = 0; c < 300; c++) {
        int linked[POOL][POOL];
        safer_lexicon *lexicon = random_lexicon(linked, (int)(c / 2 % 2), IN_LEXICON, "component");
        safer_model *model = random_model(c, c % 3 ? 1000 : 1 + c % 4);
        check_texts(&certified, &asked, model, lexicon, linked, 12, 4, c % 5 ? SAFER_ALL : 1 + c % 3);
        safer_model_free(model);
        safer_lexicon_free(lexicon);
    }
    printf("%zu certificates, %zu texts asked\n", certified, asked);
    assert_true(certified > 300 && asked > 10 * certified);
}

/* --------------------------------------------------------------------- sums */

/* Weights from so small that a member says a few units, where rounding is all there is, to so
 * great that it says the most it can. */
static void no_text_violates_a_sum(void **unused)
{
    (void)unused;
    const struct {
        double weight;
        float size;
        size_t certified;
    } kinds[] = {
        /* logits grow with the second to fourth power of `size` */
        {1, 1, 200},   {0x1p-20, 1, 50}, {0x1p-19, 1, 50},   {0x1p-17, 1, 100},  {1e5, 1, 200},
        {1, 1e4f, 50}, {1e5, 1e4f, 5},   {1e-30, 1e12f, 50}, {1e-301, 1e12f, 0},
    };
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        size_t certified = 0, asked = 0;
        size = kinds[kind].size;
        for (uint32_t c = 0; c < 32; c++) {
            int linked[POOL][POOL];
            safer_lexicon *lexicon = random_lexicon(linked, (int)(c / 2 % 2), 4, "representative");
            safer_model *model = random_sum(c, lexicon, kinds[kind].weight);
            check_texts(&certified, &asked, model, lexicon, linked, 30, 3, SAFER_ALL);
            safer_model_free(model);
            safer_lexicon_free(lexicon);
        }
        printf("weights of %g, networks of %g: %zu certificates, %zu texts asked\n", kinds[kind].weight, (double)size,
               certified, asked);
        assert_true(asked > 2000 && certified >= kinds[kind].certified);
    }
    size = 1;
}

/* Output weights whose products could underflow by more than any whole number holds: the filters they
 * belong to are never on, and the margin is far below what the logits can be. */
static void vast_errors_certify_nothing(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_model *model = NULL;
    safer_workspace *workspace = NULL;
    safer_certificate found;
    safer_certify_options options = safer_certify_options_default();
    options.method = SAFER_METHOD_IBP;
    sf_words words = {0};
    uint32_t id;
    sf_cnn_layout layout;
    sf_cnn_shape shape = {.convolution = 1,
                          .dim = 1,
                          .classes = 2,
                          .vocabulary = 3,
                          .width_count = 16,
                          .filters = 40000,
                          .max_words = 1000};
    for (size_t i = 0; i < shape.width_count; i++) shape.widths[i] = 1;
    assert_ok(sf_words_add(&words, "aa", 2, &id, &error));
    assert_ok(sf_words_add(&words, "bb", 2, &id, &error));
    sf_cnn_layout_make(&layout, &shape);
    float *p = calloc(layout.size, sizeof *p), *scale = calloc(layout.features, sizeof *scale);
    p[layout.embedding + 1] = 1, p[layout.embedding + 2] = -1, p[layout.conv_weight] = 1;
    for (size_t i = 1; i < layout.inputs; i++)
        p[layout.output_weight + i] = p[layout.output_weight + layout.inputs + i] = FLT_MAX;
    p[layout.output_weight] = 10, p[layout.output_weight + layout.inputs] = -10, p[layout.output_bias + 1] = 5;
    assert_int_equal(sf_cnn_scales(scale, &layout, p, 1), 0);
    assert_ok(sf_cnn_save(temporary("vast"), &layout, p, scale, &words, "[\"0\",\"1\"]", "{}", &error));
    safer_lexicon *lexicon = import_table("aa\tbb\n", "representative");
    const char text[] = "{\"arch\": \"sum\", \"members\": [{\"model\": \"vast\", \"weight\": 1000000}]}",
               *texts[] = {"aa", "bb"};
    const size_t lengths[] = {2, 2};
    int labels[2];
    assert_ok(safer_model_open(&model, write_temporary("sum.json", text, sizeof text - 1), &error));
    assert_ok(safer_model_classify(model, texts, lengths, 2, labels, NULL, &error));
    assert_true(labels[0] == 0 && labels[1] == 1);
    assert_ok(safer_certify_text(&found, &workspace, model, lexicon, "aa", 2, -1, &options, &error));
    assert_true(!found.certified && found.margins[1] < 0);
    safer_workspace_free(workspace);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
    sf_words_free(&words);
    free(p);
    free(scale);
}

/* What the words of the texts below become: of four linked words, the same one. */
static void a_sum_says_what_its_members_say(void **unused)
{
    (void)unused;
    safer_error error = {0};
    int linked[POOL][POOL], label[3], one;
    float scores[3][3];
    safer_lexicon *lexicon = random_lexicon(linked, 0, 4, "representative");
    const char *texts[] = {"aa Bb, CC don't", "Bb aa, DON'T cc", "été zz o'er"};
    size_t lengths[3], n = 0;
    for (size_t i = 0; i < 3; i++) lengths[i] = strlen(texts[i]);
    assert_ok(safer_lexicon_save(lexicon, temporary("words.lex"), &error));
    write_model(temporary("plain"), 5, 3, 1000);
    write_model(temporary("other"), 6, 3, 1000);
    const char sum_text[] =
        "{\"arch\": \"sum\", \"members\": [{\"model\": \"plain\", \"weight\": 0.5}, {\"model\": \"plain\"},"
        " {\"canonical\": \"words.lex\", \"model\": \"other\", \"weight\": 3}]}";
    safer_model *sum = open_model(write_temporary("sum.json", sum_text, sizeof sum_text - 1));
    safer_model *plain = open_model(temporary("plain")), *other = open_model(temporary("other"));
    assert_string_equal(safer_model_arch(sum), "sum");
    assert_ok(safer_model_classify(sum, texts, lengths, 3, label, &scores[0][0], &error));
    void *scratch, *plain_scratch, *other_scratch;
    assert_ok(sum->class->scratch_new(sum, &scratch, &error));
    assert_ok(plain->class->scratch_new(plain, &plain_scratch, &error));
    assert_ok(other->class->scratch_new(other, &other_scratch, &error));
    for (size_t i = 0; i < 3; i++) {
        double totals[3], odds = 0;
        int64_t canonical[3];
        const sf_span text = {texts[i], lengths[i]};
        assert_ok(sum->class->classify(sum, &text, 1, &one, NULL, scratch, &error));
        assert_ok(plain->class->classify(plain, &text, 1, &one, NULL, plain_scratch, &error));
        const float *logits = sf_cnn_scratch_logits(plain_scratch);
        for (size_t k = 0; k < 3; k++) {
            assert_int_equal(sf_sum_said(scratch, 0)[k], llrint((double)logits[k] * 0.5 * 0x1p20));
            assert_int_equal(sf_sum_said(scratch, 1)[k], llrint((double)logits[k] * 0x1p20));
            totals[k] = ldexp(
                (double)(sf_sum_said(scratch, 0)[k] + sf_sum_said(scratch, 1)[k] + sf_sum_said(scratch, 2)[k]), -20);
            odds += exp(totals[k]);
        }
        for (size_t k = 0; k < 3; k++) assert_true(fabs((double)scores[i][k] - exp(totals[k]) / odds) < 1e-6);
        /* Any one of the four words may stand for the others: one of them explains what was said. */
        n = 0;
        memcpy(canonical, sf_sum_said(scratch, 2), sizeof canonical);
        for (int w = 0; w < 16; w++) {
            char read[80];
            const int a = w / 4, b = 4 + w % 4;
            if (i < 2)
                snprintf(read, sizeof read, "%s %s, %s %s", pool[a], pool[a], pool[a], pool[a]);
            else
                snprintf(read, sizeof read, "%s zz %s", pool[b], pool[b]);
            const sf_span span = {read, strlen(read)};
            int same = 1;
            assert_ok(other->class->classify(other, &span, 1, &one, NULL, other_scratch, &error));
            for (size_t k = 0; k < 3; k++)
                same &= canonical[k] == llrint((double)sf_cnn_scratch_logits(other_scratch)[k] * 3 * 0x1p20);
            n += (size_t)same;
        }
        assert_true(n >= 4 && n < 16);
        for (size_t k = 1; k < 3; k++) assert_true(totals[label[i]] >= totals[k] && totals[label[i]] >= totals[0]);
    }
    /* Of equal sums the first wins: a weight this small leaves nothing. */
    const char even[] = "{\"arch\": \"sum\", \"members\": [{\"model\": \"plain\", \"weight\": 1e-30}]}";
    safer_model *tie = open_model(write_temporary("tie.json", even, sizeof even - 1));
    assert_ok(safer_model_classify(tie, texts, lengths, 3, label, NULL, &error));
    assert_true(label[0] == 0 && label[1] == 0 && label[2] == 0);
    safer_model_free(tie);
    sum->class->scratch_free(scratch);
    plain->class->scratch_free(plain_scratch);
    other->class->scratch_free(other_scratch);
    safer_model_free(sum);
    safer_model_free(plain);
    safer_model_free(other);
    safer_lexicon_free(lexicon);
}

/* Writes the file "ngram": a model that answers with probabilities. */
static void train_ngram(const safer_lexicon *lexicon)
{
    safer_error error = {0};
    safer_data *data = make_reviews(200);
    safer_train_options options = safer_train_options_default();
    options.arch = SAFER_ARCH_NGRAM;
    options.train = data;
    options.lexicon = lexicon;
    options.course.epochs = 2;
    assert_ok(safer_train(temporary("ngram"), &options, NULL, &error));
    safer_data_free(data);
}

/* A member that answers with probabilities; many texts at once are answered as one by one. */
static void members_may_be_of_any_kind(void **unused)
{
    (void)unused;
    safer_error error = {0};
    enum { TEXTS = 150 };
    const char *texts[TEXTS];
    char bytes[TEXTS][60];
    size_t lengths[TEXTS];
    int labels[TEXTS], one;
    float scores[TEXTS][2], single[2], member[2];
    safer_lexicon *lexicon = make_review_lexicon("representative");
    assert_ok(safer_lexicon_save(lexicon, temporary("words.lex"), &error));
    train_ngram(lexicon);
    const char text[] =
        "{\"arch\": \"sum\", \"members\": [{\"model\": \"ngram\", \"weight\": 2, \"canonical\": \"words.lex\"}]}";
    safer_model *sum = open_model(write_temporary("sum.json", text, sizeof text - 1)),
                *ngram = open_model(temporary("ngram"));
    for (size_t i = 0; i < TEXTS; i++) {
        texts[i] = bytes[i];
        lengths[i] = (size_t)snprintf(bytes[i], sizeof bytes[i], "%s a %s, and %s", i % 3 ? "good" : "bad",
                                      i % 5 ? "movie" : "plot", i % 7 ? "fine" : "poor");
    }
    assert_ok(safer_model_classify(sum, texts, lengths, TEXTS, labels, &scores[0][0], &error));
    for (size_t i = 0; i < TEXTS; i++) {
        assert_ok(safer_model_classify(sum, &texts[i], &lengths[i], 1, &one, single, &error));
        assert_int_equal(one, labels[i]);
        assert_memory_equal(single, scores[i], sizeof single);
    }
    /* Of words that stand for themselves: the odds are those of the member, squared. */
    const char *plain = "the was";
    const size_t length = strlen(plain);
    assert_ok(safer_model_classify(sum, &plain, &length, 1, &one, single, &error));
    assert_ok(safer_model_classify(ngram, &plain, &length, 1, &one, member, &error));
    assert_true(fabs(log((double)single[0] / (double)single[1]) - 2 * log((double)member[0] / (double)member[1])) <
                1e-4);
    assert_fails(safer_model_set_precision(sum, SAFER_PRECISION_F32, &error), SAFER_INVALID,
                 "all members of this sum are always portable");
    assert_ok(safer_model_set_precision(sum, SAFER_PRECISION_PORTABLE, &error));
    assert_string_equal(sum->arithmetic, "portable");
    safer_model_free(ngram);
    safer_model_free(sum);
    safer_lexicon_free(lexicon);
}

/* The bounds speak of this lexicon's synonyms, and of members that can be looked into. */
static void what_cannot_be_bounded_is_refused(void **unused)
{
    (void)unused;
    safer_error error = {0};
    int linked[POOL][POOL];
    safer_workspace *workspace = NULL;
    safer_certificate found;
    safer_certify_options options = safer_certify_options_default();
    options.method = SAFER_METHOD_IBP;
    safer_lexicon *lexicon = random_lexicon(linked, 0, 4, "representative"),
                  *other = random_lexicon(linked, 0, 2, "representative");
    safer_model *sum = random_sum(3, lexicon, 1); /* its first member is canonical */
    assert_fails(safer_certify_text(&found, &workspace, sum, other, "aa", 2, 0, &options, &error), SAFER_INVALID,
                 "member 1 of the sum reads");
    safer_model_free(sum);
    train_ngram(NULL);
    const char text[] = "{\"arch\": \"sum\", \"members\": [{\"model\": \"ngram\"}]}";
    sum = open_model(write_temporary("sum.json", text, sizeof text - 1));
    assert_fails(safer_certify_text(&found, &workspace, sum, lexicon, "aa", 2, 0, &options, &error), SAFER_INVALID,
                 "member 1 of the sum: it is ngram");
    safer_model_free(sum);
    safer_lexicon_free(lexicon);
    safer_lexicon_free(other);
}

/* -------------------------------------------------------------------- files */

static void bad_sums_are_refused(void **unused)
{
    (void)unused;
    safer_error error = {0};
    int linked[POOL][POOL];
    safer_model *model = NULL;
    safer_lexicon *lexicon = random_lexicon(linked, 0, 4, "component"), *own = random_lexicon(linked, 0, 4, "topk:1");
    assert_ok(safer_lexicon_save(lexicon, temporary("component.lex"), &error));
    assert_ok(safer_lexicon_save(own, temporary("own.lex"), &error)); /* one draw a word, but each its own */
    write_model(temporary("two"), 0, 2, 1000);
    write_model(temporary("three"), 1, 3, 1000);
    const struct {
        const char *text, *words;
    } bad[] = {
        {"{", "no JSON, line 1"},
        {" \n{}", "a model in JSON is a sum"},
        {"{\"arch\": \"cnn\"}", "a model in JSON is a sum"},
        {"{\"arch\": \"sum\"}", "list of 1 to 64"},
        {"{\"arch\": \"sum\", \"members\": []}", "list of 1 to 64"},
        {"{\"arch\": \"sum\", \"member\": []}", "there is no \"member\""},
        {"{\"arch\": \"sum\", \"arch\": \"sum\"}", "duplicate"},
        {"{\"arch\": \"sum\", \"members\": [1]}", "member 1 is not an object"},
        {"{\"arch\": \"sum\", \"members\": [{}]}", "member 1: \"model\" must be"},
        {"{\"arch\": \"sum\", \"members\": [{\"model\": 2}]}", "\"model\" must be"},
        {"{\"arch\": \"sum\", \"members\": [{\"model\": \"two\", \"wieght\": 2}]}", "there is no \"wieght\""},
        {"{\"arch\": \"sum\", \"members\": [{\"model\": \"two\", \"weight\": 0}]}", "\"weight\" must be"},
        {"{\"arch\": \"sum\", \"members\": [{\"model\": \"two\", \"weight\": -1}]}", "\"weight\" must be"},
        {"{\"arch\": \"sum\", \"members\": [{\"model\": \"two\", \"weight\": \"1\"}]}", "\"weight\" must be"},
        {"{\"arch\": \"sum\", \"members\": [{\"model\": \"two\", \"weight\": 1e7}]}", "\"weight\" must be"},
        {"{\"arch\": \"sum\", \"members\": [{\"model\": \"two\", \"canonical\": 1}]}", "\"canonical\" must be"},
        {"{\"arch\": \"sum\", \"members\": [{\"model\": \"two\", \"canonical\": \"component.lex\"}]}",
         "needs a lexicon with the kernel representative"},
        {"{\"arch\": \"sum\", \"members\": [{\"model\": \"two\", \"canonical\": \"own.lex\"}]}",
         "needs a lexicon with the kernel representative"},
        {"{\"arch\": \"sum\", \"members\": [{\"model\": \"two\", \"canonical\": \"two\"}]}", "two"},
        {"{\"arch\": \"sum\", \"members\": [{\"model\": \"two\"}, {\"model\": \"three\"}]}", "member 2: its labels"},
        {"{\"arch\": \"sum\", \"members\": [{\"model\": \"sum.json\"}]}", "a sum cannot be"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        const char *path = write_temporary("sum.json", bad[i].text, strlen(bad[i].text));
        assert_fails(safer_model_open(&model, path, &error), SAFER_INPUT, bad[i].words);
    }
    const char absent[] = "{\"arch\": \"sum\", \"members\": [{\"model\": \"absent\"}]}";
    assert_fails(safer_model_open(&model, write_temporary("sum.json", absent, sizeof absent - 1), &error), SAFER_SYSTEM,
                 "/absent");
    assert_fails(safer_model_open(&model, temporary("none.json"), &error), SAFER_SYSTEM, "none.json");
    safer_lexicon_free(lexicon);
    safer_lexicon_free(own);
}

/* The hash names everything that decides an answer. */
static void hashes_tell_sums_apart(void **unused)
{
    (void)unused;
    int linked[POOL][POOL];
    safer_error error = {0};
    char seen[6][65];
    safer_lexicon *four = random_lexicon(linked, 0, 4, "representative"),
                  *two = random_lexicon(linked, 0, 2, "representative");
    assert_ok(safer_lexicon_save(four, temporary("four.lex"), &error));
    assert_ok(safer_lexicon_save(two, temporary("two.lex"), &error));
    write_model(temporary("a"), 0, 2, 1000);
    write_model(temporary("b"), 1, 2, 1000);
    const char *members[] = {"{\"model\": \"a\"}",
                             "{\"model\": \"b\"}",
                             "{\"model\": \"a\", \"weight\": 2}",
                             "{\"model\": \"a\", \"canonical\": \"four.lex\"}",
                             "{\"model\": \"a\", \"canonical\": \"two.lex\"}",
                             "{\"model\": \"a\"}, {\"model\": \"b\"}"};
    for (size_t i = 0; i < COUNT(members); i++) {
        char text[200];
        const int length = snprintf(text, sizeof text, "{\"arch\": \"sum\", \"members\": [%s]}", members[i]);
        safer_model *model = open_model(write_temporary("sum.json", text, (size_t)length));
        snprintf(seen[i], sizeof seen[i], "%s", safer_model_sha256(model));
        for (size_t j = 0; j < i; j++) assert_string_not_equal(seen[j], seen[i]);
        safer_model_free(model);
    }
    safer_lexicon_free(four);
    safer_lexicon_free(two);
}

/* The bytes of the file, then the digests of the members, each with that of its lexicon behind it. */
static void the_digest_of_a_sum(void **state)
{
    (void)state;
    int linked[POOL][POOL];
    safer_error error = {0};
    safer_lexicon *lexicon = random_lexicon(linked, 0, 4, "representative");
    assert_ok(safer_lexicon_save(lexicon, temporary("four.lex"), &error));
    static const char text[] = "{\"arch\": \"sum\", \"members\": [{\"model\": \"a\", \"canonical\": \"four.lex\"}, "
                               "{\"model\": \"b\"}]}";
    char digests[2][65];
    for (uint32_t round = 0; round < 2; round++) { /* the same file, another member */
        write_model(temporary("a"), 0, 2, 1000);
        write_model(temporary("b"), 1 + round, 2, 1000);
        safer_model *members[2] = {open_model(temporary("a")), open_model(temporary("b"))};
        safer_model *model = open_model(write_temporary("sum.json", text, sizeof text - 1));
        sf_sha256_sum sum = {0};
        sf_digest expected;
        sf_sha256_add(&sum, text, sizeof text - 1);
        sf_sha256_add(&sum, members[0]->sha256.bytes, 32);
        sf_sha256_add(&sum, lexicon->sha256.bytes, 32);
        sf_sha256_add(&sum, members[1]->sha256.bytes, 32);
        assert_ok(sf_sha256_end(&expected, &sum, &error));
        assert_string_equal(safer_model_sha256(model), expected.hex);
        assert_string_equal(safer_model_name(model), "sum.json");
        memcpy(digests[round], expected.hex, sizeof digests[round]);
        safer_model_free(model);
        safer_model_free(members[0]);
        safer_model_free(members[1]);
    }
    assert_string_not_equal(digests[0], digests[1]);
    safer_lexicon_free(lexicon);
}

static safer_status open_and_certify(void *lexicon, safer_error *error)
{
    safer_model *model = NULL;
    safer_workspace *workspace = NULL;
    safer_certificate found;
    safer_certify_options options = safer_certify_options_default();
    options.method = SAFER_METHOD_IBP;
    safer_status status = safer_model_open(&model, temporary("sum.json"), error);
    if (status == SAFER_OK)
        status = safer_certify_text(&found, &workspace, model, lexicon, "aa bb cc", 8, 0, &options, error);
    safer_workspace_free(workspace);
    safer_model_free(model);
    return status;
}

static void memory_may_run_out(void **unused)
{
    (void)unused;
    int linked[POOL][POOL];
    safer_lexicon *lexicon = random_lexicon(linked, 0, 4, "representative");
    safer_model_free(random_sum(3, lexicon, 1));
    check_every_allocation(open_and_certify, lexicon);
    safer_lexicon_free(lexicon);
}

/* An answer that failed half-way leaves nothing behind that a later one could take for its own. */
static void failures_are_forgotten(void **unused)
{
    (void)unused;
    safer_error error = {0};
    int linked[POOL][POOL], labels[2], failures = 0;
    int64_t first[2];
    static char longer[3000];
    safer_lexicon *lexicon = random_lexicon(linked, 0, 4, "representative");
    for (size_t i = 0; i + 1 < sizeof longer; i++) longer[i] = i % 3 == 2 ? ' ' : 'z';
    assert_ok(safer_lexicon_save(lexicon, temporary("words.lex"), &error));
    write_model(temporary("member"), 5, 2, 100000);
    const char text[] = "{\"arch\": \"sum\", \"members\": [{\"model\": \"member\", \"canonical\": \"words.lex\"}]}";
    safer_model *sum = open_model(write_temporary("sum.json", text, sizeof text - 1));
    const sf_span before = {"aa", 2}, both[] = {{"gg hh", 5}, {longer, sizeof longer - 1}};
    for (long n = 0; n < 30; n++) {
        void *scratch;
        assert_ok(sum->class->scratch_new(sum, &scratch, &error));
        assert_ok(sum->class->classify(sum, &before, 1, labels, NULL, scratch, &error));
        memcpy(first, sf_sum_said(scratch, 0), sizeof first);
        fail_allocation(n);
        failures += sum->class->classify(sum, both, 2, labels, NULL, scratch, &error) == SAFER_MEMORY;
        fail_allocation(-1);
        assert_ok(sum->class->classify(sum, &before, 1, labels, NULL, scratch, &error));
        assert_memory_equal(first, sf_sum_said(scratch, 0), sizeof first);
        sum->class->scratch_free(scratch);
    }
    assert_true(failures > 3);
    safer_model_free(sum);
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_text_violates_a_certificate),
        cmocka_unit_test(no_text_violates_a_sum),
        cmocka_unit_test(vast_errors_certify_nothing),
        cmocka_unit_test(a_sum_says_what_its_members_say),
        cmocka_unit_test(members_may_be_of_any_kind),
        cmocka_unit_test(what_cannot_be_bounded_is_refused),
        cmocka_unit_test(bad_sums_are_refused),
        cmocka_unit_test(hashes_tell_sums_apart),
        cmocka_unit_test(the_digest_of_a_sum),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(failures_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
