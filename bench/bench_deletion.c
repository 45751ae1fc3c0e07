/* Draws that delete tokens against the fast paths of those that do not: cnn and n-grams on made-up texts of 230 words.
 * (bench_wordpiece and bench_tokenizer have the same for the pieces of BERT and its kin.)
 *
 * Checked first: draws through the fast path get the labels of their rendered texts. Then, with one thread and of its
 * processor time alone: samples per second with nothing deleted and with deletion, drawing them included, the ratio of
 * the two, and the ratio to rendering and classifying in the same run. With --json one object for programs. */
#define _GNU_SOURCE
#include "bench.h"

#include "base/memory.h"
#include "draw/sampler.h"

enum { TEXTS = 2000, WORDS = 230, VOCABULARY = 20000, GROUP = 8, DRAWN = 24, DRAWS = 512, RENDERED = 32, SPELLED = 32 };

typedef struct speed {
    double looked_up, rendered; /* samples per second */
    double kept;                /* tokens per sample; without deletion, words */
} speed;

typedef struct text {
    sf_slots slots;
    sf_sampler sampler;
    uint32_t *draws; /* (DRAWS, width) */
    size_t width, capacity;
} text;

static void read_text(text *t, const safer_lexicon *lexicon, safer_row row, double deletion)
{
    check(sf_slots_read(&t->slots, lexicon, row.text, row.text_length, NULL) == SAFER_OK, "slots");
    check(sf_slots_split(&t->slots, (safer_deletion){.chance = deletion}, NULL) == SAFER_OK, "tokens");
    check(sf_sampler_prepare(&t->sampler, &t->slots, lexicon, NULL) == SAFER_OK, "sampler");
    t->width = sf_slots_width(&t->slots);
    check(sf_grow(&t->draws, &t->capacity, DRAWS * t->width + 1, sizeof *t->draws) == 0, "out of memory");
}

static void draw(text *t, size_t count)
{
    sf_sampler_draw(t->draws, &t->sampler, sf_stream_of(1, t->slots.hash, SF_STAGE_CERTIFICATION), 0, count);
}

static void classify_rendered(int *labels, const safer_model *model, const safer_lexicon *lexicon, const text *t,
                              sf_buffer *rendered, void *scratch)
{
    for (size_t d = 0; d < RENDERED; d++) {
        sf_buffer_clear(rendered);
        check(sf_slots_render(rendered, &t->slots, lexicon, t->draws + d * t->width) == 0, "render");
        const sf_span span = {rendered->length ? rendered->bytes : "", rendered->length};
        check(model->class->classify(model, &span, 1, &labels[d], NULL, scratch, NULL) == SAFER_OK, "classify");
    }
}

/* `deletion`: how often draws delete a token; 0: never. */
static speed measure(const safer_model *model, const safer_data *data, const safer_lexicon *lexicon, double deletion)
{
    static text t;
    static int labels[DRAWS], expected[RENDERED];
    double fast = 0, slow = 0, tokens = 0;
    void *scratch = NULL, *prepared = NULL;
    sf_buffer rendered = {0};
    check(model->class->scratch_new(model, &scratch, NULL) == SAFER_OK, "out of memory");
    for (size_t i = 0; i < DRAWN; i++) {
        read_text(&t, lexicon, safer_data_row(data, i), deletion);
        check(model->class->prepare(model, lexicon, &t.slots, &prepared, NULL) == SAFER_OK, "prepare");
        double start = bench_processor();
        draw(&t, DRAWS);
        check(model->class->sample(model, prepared, t.draws, DRAWS, labels, scratch, NULL) == SAFER_OK, "sample");
        fast += bench_processor() - start;
        start = bench_processor();
        draw(&t, RENDERED);
        classify_rendered(expected, model, lexicon, &t, &rendered, scratch);
        slow += bench_processor() - start;
        check(memcmp(labels, expected, sizeof expected) == 0, "a draw differs from its rendered text");
        tokens += deletion > 0 ? (double)t.slots.token_count * (1 - deletion) : (double)t.slots.word_count;
        model->class->release(prepared);
    }
    model->class->scratch_free(scratch);
    sf_buffer_free(&rendered);
    return (speed){(double)(DRAWN * DRAWS) / fast, (double)(DRAWN * RENDERED) / slow, tokens / DRAWN};
}

static safer_model *train_ngram(const safer_data *data)
{
    safer_error error = {0};
    safer_model *model = NULL;
    safer_train_options options = safer_train_options_default();
    safer_train_report report;
    options.arch = SAFER_ARCH_NGRAM;
    options.train = data;
    check(safer_train(bench_path("model"), &options, &report, &error) == SAFER_OK, error.message);
    check(safer_model_open(&model, bench_path("model"), &error) == SAFER_OK, error.message);
    return model;
}

static safer_model *make_cnn(void)
{
    sf_words words = {0};
    sf_cnn_layout layout;
    uint64_t state = 1;
    for (uint32_t i = 0; i < VOCABULARY; i++) {
        char word[SPELLED];
        uint32_t id;
        bench_spell(word, i);
        check(sf_words_add(&words, word, strlen(word), &id, NULL) == SAFER_OK, "out of memory");
    }
    safer_model *model = bench_cnn(&layout, &words, &state);
    sf_words_free(&words);
    return model;
}

int main(int argc, char **argv)
{
    static const double deletions[] = {0, 0.9, 0.95};
    static const char *const names[] = {"cnn", "ngram"};
    char cpu[256];
    const int json = bench_option(argc, argv, "--json");
    safer_data *data = bench_texts(TEXTS, WORDS, VOCABULARY, 0);
    safer_lexicon *lexicon = bench_group_lexicon(bench_spell, VOCABULARY, GROUP);
    safer_model *models[] = {make_cnn(), train_ngram(data)};
    json_t *object = json_object();
    bench_cpu(cpu, sizeof cpu);
    if (!json) printf("%s, one thread, processor time; texts of %d words\n", cpu, WORDS);
    for (int m = 0; m < 2; m++) {
        speed s[3];
        for (int i = 0; i < 3; i++) {
            s[i] = measure(models[m], data, lexicon, deletions[i]);
            if (!json)
                printf("%-6s deleting %.2f: %8.0f samples/s of %3.0f words, %5.1f times those without, %5.1f times "
                       "rendering and classifying\n",
                       names[m], deletions[i], s[i].looked_up, s[i].kept, s[i].looked_up / s[0].looked_up,
                       s[i].looked_up / s[i].rendered);
        }
        json_object_set_new(object, names[m],
                            json_pack("{s:f, s:f, s:f}", "samples_per_second", s[0].looked_up,
                                      "deleting_samples_per_second", s[1].looked_up, "ratio_to_rendering",
                                      s[1].looked_up / s[1].rendered));
        safer_model_free(models[m]);
    }
    if (json)
        bench_print_json(object);
    else
        json_decref(object);
    safer_lexicon_free(lexicon);
    safer_data_free(data);
    return 0;
}
