/* What tests of training share: texts, synonyms and vectors to learn from, and a training for
 * check_every_allocation. */
#ifndef TESTS_TRAINING_H
#define TESTS_TRAINING_H

#include "base/buffer.h"
#include "support.h"

static uint64_t state = 7;

static inline uint32_t below(uint32_t bound)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)((state >> 33) % bound);
}

/* Texts whose class is that of their good or bad words, among others; with `rare` half of
 * the others are words of three random letters. */
static inline safer_data *make_data_with(size_t rows, int rare)
{
    const char *good[] = {"good", "fine", "great", "nice"}, *bad[] = {"bad", "poor", "awful", "dull"};
    const char *other[] = {"film", "movie", "the", "a", "was", "plot", "story", "of", "and", "it"};
    safer_error error = {0};
    safer_data *data = NULL;
    sf_buffer out = {0};
    for (size_t i = 0; i < rows; i++) {
        int label = i % 2 == 0;
        assert_int_equal(sf_buffer_format(&out, "%zu\t%d\t", i, label), 0);
        for (size_t k = 0, words = 3 + below(9); k < words; k++) {
            const char *word = k % 3 ? other[below(10)] : label ? good[below(4)] : bad[below(4)];
            char random[4] = {(char)('a' + below(26)), (char)('a' + below(26)), (char)('a' + below(26)), 0};
            assert_int_equal(sf_buffer_format(&out, "%s%s", rare && k % 3 == 1 ? random : word, below(5) ? " " : "! "),
                             0);
        }
        assert_int_equal(sf_buffer_add_byte(&out, '\n'), 0);
    }
    assert_ok(safer_data_load(&data, write_temporary("train.tsv", out.bytes, out.length), NULL, &error));
    sf_buffer_free(&out);
    return data;
}

static inline safer_data *make_data(size_t rows) { return make_data_with(rows, 0); }

static inline safer_lexicon *make_lexicon(const char *kernel)
{
    return import_table("good\tfine great\nfine\tsplendid\nbad\tpoor awful\nfilm\tmovie flick\nplot\tstory\n", kernel);
}

static inline const char *make_vectors(void)
{
    static const char text[] =
        "good 1 0 0.5 0.1\nfine 0.9 0.1 0.4 0\nbad -1 0 0.5 0.1\npoor -0.9 0.2 0.5 0\nmovie 0 1 1 0\n";
    return write_temporary("vectors.txt", text, sizeof text - 1);
}

typedef struct job {
    safer_train_options options;
    const char *output;
} job;

static inline safer_status train_once(void *context, safer_error *error)
{
    job *j = context;
    return safer_train(j->output, &j->options, NULL, error);
}

#endif
