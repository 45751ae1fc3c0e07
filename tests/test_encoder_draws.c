/* Every kind of encoder with the tokenizer it comes with: what it answers to draws that were looked up is what it
 * answers to the same draws as texts, whether they delete tokens or not. tests/golden/encoders was made by
 * scripts/golden-encoders. */
#define _GNU_SOURCE
#include "assemble.h"

#include "base/memory.h"
#include "draw/slots.h"
#include "model/model.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static const char folder[] = SOURCE_DIR "/tests/golden/encoders";

enum { WORDS = 8, DRAWS = 24 };
static const char *const names[WORDS] = {"film", "movie", "good", "wonderful", "isn't", "plot", "café", "bad"};

static const char *const texts[] = {
    "The film is good, but its plot isn't wonderful. A bad movie!",
    "  GOOD film; \"Bad\" plot (a movie-film) don't... it's good",
    "Film",
    "",
    "good\u00a0bad good\u200bbad caf\u00e9 film's, 7film <mask> good <s> [MASK] plot  film   bad\n\nmovie\u0301 good.",
#define TEN "good good good good good good good good good good "
    TEN TEN TEN TEN "good",
#undef TEN
};

/* Every word draws every word. */
static safer_lexicon *make_lexicon(void)
{
    safer_error error = {0};
    sf_words all = {0};
    sf_pair edges[WORDS];
    uint32_t ids[WORDS], weights[WORDS], id, row;
    sf_graph graph;
    sf_kernel kernel = {0};
    for (uint32_t i = 0; i < WORDS; i++) {
        assert_ok(sf_words_add(&all, names[i], strlen(names[i]), &id, &error));
        ids[i] = i;
        weights[i] = 1;
        edges[i] = (sf_pair){i, (i + 1) % WORDS, 0};
    }
    assert_ok(sf_graph_build(&graph, WORDS, edges, WORDS, SF_SYMMETRIC, 0, NULL, &error));
    assert_ok(sf_kernel_start(&kernel, WORDS, &error));
    assert_ok(sf_kernel_add(&kernel, ids, weights, WORDS, &row, &error));
    for (uint32_t i = 0; i < WORDS; i++) kernel.row_of[i] = row;
    return assemble_lexicon(&all, NULL, &graph, &kernel, "all", 0, 0);
}

static void check_text(const safer_model *model, const safer_lexicon *lexicon, const char *text, int deletes,
                       void *scratch)
{
    safer_error error = {0};
    sf_slots slots = {0};
    void *prepared = NULL;
    int looked_up[DRAWS];
    sf_buffer rendered = {0};
    assert_ok(sf_slots_read(&slots, lexicon, text, strlen(text), &error));
    if (deletes) assert_ok(sf_slots_split(&slots, SF_SPLIT, &error));
    const size_t width = sf_slots_width(&slots);
    uint32_t *draws = sf_calloc(DRAWS * width + 1, sizeof *draws);
    for (size_t i = 0; i < DRAWS * width; i++) draws[i] = i % width < slots.slot_count ? next_below(WORDS) : 0;
    for (size_t i = 0; i < DRAWS; i++)
        for (size_t t = 0; deletes && t < slots.token_count; t++)
            draws[i * width + slots.slot_count + t / 32] |= (uint32_t)(next_below(DRAWS) > i) << t % 32;
    assert_ok(model->class->prepare(model, lexicon, &slots, &prepared, &error));
    assert_ok(model->class->sample(model, prepared, draws, DRAWS, looked_up, scratch, &error));
    for (size_t i = 0; i < DRAWS; i++) {
        int label;
        sf_buffer_clear(&rendered);
        assert_int_equal(sf_buffer_add(&rendered, "", 0), 0);
        assert_int_equal(sf_slots_render(&rendered, &slots, lexicon, draws + i * width), 0);
        const sf_span span = {rendered.bytes, rendered.length};
        assert_ok(model->class->classify(model, &span, 1, &label, NULL, scratch, &error));
        if (label != looked_up[i]) fail_msg("\"%s\" is %d, drawn it is %d", rendered.bytes, label, looked_up[i]);
    }
    model->class->release(prepared);
    sf_buffer_free(&rendered);
    free(draws);
    sf_slots_free(&slots);
}

static void test_draws(void **unused)
{
    safer_error error = {0};
    safer_lexicon *lexicon = make_lexicon();
    DIR *directory = opendir(folder);
    size_t count = 0;
    (void)unused;
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[600];
        safer_model *model = NULL;
        void *scratch = NULL;
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        assert_ok(safer_model_open(&model, path, &error));
        assert_ok(safer_model_set_precision(model, SAFER_PRECISION_F32, &error));
        assert_ok(model->class->scratch_new(model, &scratch, &error));
        assert_true(model->class->deletes);
        for (size_t i = 0; i < 2 * COUNT(texts); i++) check_text(model, lexicon, texts[i / 2], i % 2, scratch);
        model->class->scratch_free(scratch);
        safer_model_free(model);
        count++;
    }
    closedir(directory);
    safer_lexicon_free(lexicon);
    assert_true(count >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_draws)};
    return cmocka_run_group_tests_name("encoder_draws", tests, NULL, NULL);
}
