/* What tests of training share. */
#define _GNU_SOURCE
#include "training.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ material */

safer_data *make_reviews_with(size_t rows, int rare)
{
    const char *good[] = {"good", "fine", "great", "nice"}, *bad[] = {"bad", "poor", "awful", "dull"};
    const char *other[] = {"film", "movie", "the", "a", "was", "plot", "story", "of", "and", "it"};
    safer_error error = {0};
    safer_data *data = NULL;
    sf_buffer out = {0};
    for (size_t i = 0; i < rows; i++) {
        int label = i % 2 == 0;
        assert_int_equal(sf_buffer_format(&out, "%zu\t%d\t", i, label), 0);
        for (size_t k = 0, words = 3 + next_below(9); k < words; k++) {
            const char *word = k % 3 ? other[next_below(10)] : label ? good[next_below(4)] : bad[next_below(4)];
            char letters[4] = {(char)('a' + next_below(26)), (char)('a' + next_below(26)), (char)('a' + next_below(26)),
                               0};
            assert_int_equal(
                sf_buffer_format(&out, "%s%s", rare && k % 3 == 1 ? letters : word, next_below(5) ? " " : "! "), 0);
        }
        assert_int_equal(sf_buffer_add_byte(&out, '\n'), 0);
    }
    assert_ok(safer_data_load(&data, write_temporary("train.tsv", out.bytes, out.length), NULL, &error));
    sf_buffer_free(&out);
    return data;
}

safer_data *make_reviews(size_t rows) { return make_reviews_with(rows, 0); }

safer_lexicon *make_review_lexicon(const char *kernel)
{
    return import_table("good\tfine great\nfine\tsplendid\nbad\tpoor awful\nfilm\tmovie flick\nplot\tstory\n", kernel);
}

const char *make_review_vectors(void)
{
    static const char text[] =
        "good 1 0 0.5 0.1\nfine 0.9 0.1 0.4 0\nbad -1 0 0.5 0.1\npoor -0.9 0.2 0.5 0\nmovie 0 1 1 0\n";
    static char path[600];
    snprintf(path, sizeof path, "%s", write_temporary("vectors.txt", text, sizeof text - 1));
    return path;
}

/* --------------------------------------------------------- what always holds */

void check_report(const safer_train_report *report, size_t texts, size_t tokens, size_t parameters)
{
    assert_int_equal(report->texts, texts);
    assert_true(report->tokens > tokens && report->parameters > parameters);
    assert_true(report->best_epoch >= 1 && report->best_epoch <= report->epochs);
    assert_true(report->seconds > 0 && report->tokens_per_second > 0);
}

void check_learned(const safer_model *model)
{
    safer_error error = {0};
    const char *texts[] = {"A GOOD film, the story was fine and great", "awful plot, poor movie, dull"};
    const size_t lengths[] = {strlen(texts[0]), strlen(texts[1])};
    int labels[2];
    assert_ok(safer_model_classify(model, texts, lengths, 2, labels, NULL, &error));
    assert_string_equal(safer_model_label(model, (size_t)labels[0]), "1");
    assert_string_equal(safer_model_label(model, (size_t)labels[1]), "0");
}

static int same_models(const char *first, const char *second)
{
    safer_error error = {0};
    safer_model *models[2] = {NULL};
    assert_ok(safer_model_open(&models[0], first, &error));
    assert_ok(safer_model_open(&models[1], second, &error));
    const int same = strcmp(safer_model_sha256(models[0]), safer_model_sha256(models[1])) == 0;
    safer_model_free(models[0]);
    safer_model_free(models[1]);
    return same;
}

void check_threads_do_not_matter(trainer train, const safer_train_options *options)
{
    safer_error error = {0};
    safer_train_options o = *options;
    const char *one = temporary("one"), *more = temporary("more");
    o.threads = 1;
    assert_ok(train(one, &o, NULL, &error));
    for (o.threads = 2; o.threads <= 5; o.threads += 3) {
        assert_ok(train(more, &o, NULL, &error));
        assert_same_file(one, more);
    }
    o.threads = 1;
    o.seed++;
    assert_ok(train(more, &o, NULL, &error));
    assert_false(same_models(one, more));
}

void check_stopped_runs_are_resumed(trainer train, const safer_train_options *options, size_t texts,
                                    const stop_point *stops, size_t count)
{
    safer_error error = {0};
    safer_train_options o = *options;
    const char *whole = temporary("whole"), *parts = temporary("parts"), *checkpoint = temporary("parts.checkpoint");
    safer_train_report straight, resumed;
    stopper s = {0};
    o.progress = (safer_progress){stop_run, &s};
    assert_ok(train(whole, &o, &straight, &error));
    assert_non_null(strstr(s.last, "epoch"));
    assert_non_null(strstr(s.last, "loss "));
    assert_true(fabs(strtod(strstr(s.last, "loss ") + 5, NULL) - straight.loss) < 0.001);
    assert_non_null(strstr(s.last, "dev "));
    assert_int_equal(s.total, (size_t)o.course.epochs * texts);
    o.resume = 1; /* where there is nothing to resume, it begins */
    for (size_t i = 0; i < count; i++) {
        s.when = stops[i].stage;
        s.at = stops[i].texts;
        s.slow = s.at > 0;
        assert_fails(train(parts, &o, NULL, &error), SAFER_CANCELLED, "epoch");
        assert_int_not_equal(access(parts, F_OK), 0);
        assert_int_equal(access(checkpoint, F_OK) == 0, stops[i].checkpoint);
    }
    s = (stopper){0};
    assert_ok(train(parts, &o, &resumed, &error));
    assert_same_file(whole, parts);
    assert_int_not_equal(access(checkpoint, F_OK), 0);
    assert_int_equal(resumed.texts, texts);
    assert_int_equal(resumed.epochs, straight.epochs);
    assert_true(resumed.loss == straight.loss && resumed.dev_accuracy == straight.dev_accuracy);
    unlink(parts);
}

void check_other_options_are_refused(trainer train, const safer_train_options *options, const char *stage,
                                     const safer_train_options *others, size_t count)
{
    safer_error error = {0};
    safer_train_options o = *options;
    const char *output = temporary("other"), *checkpoint = temporary("other.checkpoint"), *whole = temporary("whole");
    stopper s = {.when = stage};
    assert_ok(train(whole, &o, NULL, &error));
    o.progress = (safer_progress){stop_run, &s};
    assert_fails(train(output, &o, NULL, &error), SAFER_CANCELLED, "epoch");
    o.progress = (safer_progress){0};
    for (size_t i = 0; i < count; i++) {
        safer_train_options other = others[i];
        other.resume = 1;
        assert_fails(train(output, &other, NULL, &error), SAFER_INPUT, "other options");
    }
    o.resume = 1;
    assert_int_equal(truncate(checkpoint, 1000), 0);
    assert_fails(train(output, &o, NULL, &error), SAFER_INPUT, "other.checkpoint");
    o.resume = 0;
    assert_ok(train(output, &o, NULL, &error));
    assert_same_file(whole, output);
    unlink(output);
}

typedef struct job {
    trainer train;
    const safer_train_options *options;
    char output[600];
} job;

static safer_status train_once(void *context, safer_error *error)
{
    const job *j = context;
    return j->train(j->output, j->options, NULL, error);
}

void check_training_memory(trainer train, const safer_train_options *options, int may_finish)
{
    job j = {.train = train, .options = options};
    snprintf(j.output, sizeof j.output, "%s", temporary("memory"));
    if (!may_finish) {
        check_every_allocation(train_once, &j);
        return;
    }
    int happened;
    size_t refused = 0;
    for (long n = 0; n == 0 || happened; n++) {
        safer_error error = {0};
        fail_allocation(n);
        safer_status status = train_once(&j, &error);
        happened = allocation_failed();
        fail_allocation(-1);
        if (status != SAFER_MEMORY) assert_ok(status);
        refused += status == SAFER_MEMORY;
        assert_true(happened || status == SAFER_OK);
    }
    assert_true(refused > 0);
}

void check_draws(const safer_model *model, const safer_lexicon *lexicon, const sf_slots *slots, const uint32_t *draws,
                 size_t count, logits_function logits, float *scores)
{
    safer_error error = {0};
    const sf_model_class *class = model->class;
    void *prepared = NULL, *scratch = NULL, *other = NULL;
    sf_buffer *rendered = calloc(count, sizeof *rendered);
    sf_span *spans = calloc(count, sizeof *spans);
    int *labels = calloc(count, sizeof *labels), *sampled = calloc(count, sizeof *sampled), label, one;
    float *alone = calloc(model->classes, sizeof *alone);
    assert_true(rendered && spans && labels && sampled && alone);
    assert_ok(class->scratch_new(model, &scratch, &error));
    assert_ok(class->scratch_new(model, &other, &error));
    assert_ok(class->prepare(model, lexicon, slots, &prepared, &error));
    for (size_t d = 0; d < count; d++) {
        assert_int_equal(sf_slots_render(&rendered[d], slots, lexicon, draws + d * sf_slots_width(slots)), 0);
        spans[d] = (sf_span){rendered[d].bytes ? rendered[d].bytes : "", rendered[d].length};
    }
    assert_ok(class->classify(model, spans, count, labels, scores, other, &error));
    assert_ok(class->sample(model, prepared, draws, count, sampled, scratch, &error));
    assert_memory_equal(labels, sampled, count * sizeof *labels);
    for (size_t d = 0; d < count; d++) {
        assert_ok(class->classify(model, &spans[d], 1, &label, alone, other, &error));
        assert_ok(class->sample(model, prepared, draws + d * sf_slots_width(slots), 1, &one, scratch, &error));
        assert_int_equal(label, labels[d]);
        assert_int_equal(one, labels[d]);
        if (scores) assert_memory_equal(alone, scores + d * model->classes, model->classes * sizeof *alone);
        if (logits) assert_memory_equal(logits(scratch), logits(other), model->classes * sizeof(float));
        sf_buffer_free(&rendered[d]);
    }
    class->release(prepared);
    class->scratch_free(scratch);
    class->scratch_free(other);
    free(rendered);
    free(spans);
    free(labels);
    free(sampled);
    free(alone);
}

safer_status use_model(const safer_model *model, const safer_lexicon *lexicon, safer_error *error)
{
    safer_status status;
    sf_slots slots = {0};
    void *prepared = NULL, *scratch = NULL;
    const char *text = "The film was good, a great story";
    size_t length = strlen(text);
    const uint32_t draws[8] = {0};
    int label;
    SF_TRY(sf_slots_read(&slots, lexicon, text, length, error));
    SF_TRY(model->class->prepare(model, lexicon, &slots, &prepared, error));
    SF_TRY(model->class->scratch_new(model, &scratch, error));
    SF_TRY(model->class->sample(model, prepared, draws, 1, &label, scratch, error));
    SF_TRY(safer_model_classify(model, &text, &length, 1, &label, NULL, error));
done:
    if (prepared) model->class->release(prepared);
    if (scratch) model->class->scratch_free(scratch);
    sf_slots_free(&slots);
    return status;
}

const char *spoil(const char *path, const char *name, spoiling how, const char *value)
{
    safer_error error = {0};
    static const char *const keys[] = {"arch", "config", "labels", "trained_with", "vocabulary", "tokenizer"};
    sf_safetensors *file = NULL;
    sf_tensor tensors[64];
    sf_metadata metadata[COUNT(keys)];
    float *copy = NULL;
    size_t count = 0, found = 0, described = 0;
    const char *out = temporary("spoiled.safetensors");
    assert_ok(sf_safetensors_open(&file, path, &error));
    assert_true(sf_safetensors_count(file) <= COUNT(tensors));
    for (size_t i = 0; i < sf_safetensors_count(file); i++) {
        sf_tensor t = *sf_safetensors_at(file, i);
        if (strcmp(t.name, name) == 0) {
            found++;
            if (how == LEFT_OUT) continue;
            copy = malloc(t.count * sizeof *copy);
            assert_non_null(copy);
            memcpy(copy, t.bytes, t.count * (t.type == SF_U8 ? 1 : sizeof *copy));
            if (how == SHORTENED) t.rank = 1, t.shape[0] = --t.count;
            if (how == NOT_A_NUMBER) copy[t.count / 2] = (float)NAN;
            if (how == NEGATIVE) copy[0] = -1;
            if (how == UNENDED) ((char *)copy)[t.count - 1] = 'x';
            t.bytes = copy;
        }
        tensors[count++] = t;
    }
    for (size_t i = 0; i < COUNT(keys); i++) {
        const int here = how == METADATA && strcmp(keys[i], name) == 0;
        const char *own = here ? value : sf_safetensors_metadata(file, keys[i]);
        if (own) metadata[described++] = (sf_metadata){keys[i], own};
        found += (size_t)here;
    }
    assert_int_equal(found, 1);
    assert_ok(sf_safetensors_write(out, tensors, count, metadata, described, &error));
    sf_safetensors_free(file);
    free(copy);
    return out;
}
