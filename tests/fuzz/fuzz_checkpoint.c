/* Checkpoints of training, for a course of two parameters that always has the fingerprint 0: what is resumed comes
 * to its end. */
#define _GNU_SOURCE
#include "fuzz_files.h"

#include "train/course.h"

typedef struct trainer {
    sf_course course;
    float parameters[2];
} trainer;

static safer_status start(sf_course *c, safer_error *error)
{
    (void)error;
    c->texts = 5;
    c->parameters = ((trainer *)c)->parameters;
    c->size = c->model_size = 2;
    return SAFER_OK;
}

static safer_status step(sf_course *c, const uint32_t *texts, size_t count, double rate, double *loss,
                         safer_error *error)
{
    (void)rate, (void)error;
    require(count >= 1 && count <= 2);
    for (size_t i = 0; i < count; i++) require(texts[i] < 5);
    for (size_t i = 0; i < c->size; i++) c->parameters[i] += 1;
    *loss += (double)count;
    return SAFER_OK;
}

static safer_status measure(sf_course *c, double *accuracy, safer_error *error)
{
    (void)c, (void)error;
    *accuracy = 0.5;
    return SAFER_OK;
}

static safer_status save(sf_course *c, const char *output, const char *labels, const char *with, safer_error *error)
{
    (void)output, (void)labels, (void)with, (void)error;
    require(c->epoch >= 0 && c->best_epoch <= c->epoch);
    return SAFER_OK;
}

static void free_nothing(sf_course *c) { (void)c; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const sf_course_methods methods = {sizeof(trainer), start, step, measure, save, NULL, NULL, free_nothing};
    static const char *const texts[] = {"a", "b"}, *const labels[] = {"0", "1"};
    static safer_data *train;
    if (!train) require(safer_data_from_texts(&train, texts, NULL, labels, NULL, 2, NULL) == SAFER_OK);
    safer_train_options options = safer_train_options_default();
    safer_train_report report;
    safer_error error = {0};
    fuzz_write("model.checkpoint", data, size);
    options.train = train;
    options.resume = 1;
    options.course.epochs = 3;
    options.course.batch = 2;
    options.course.patience = 0;
    options.course.rate = options.course.warmup = 0.5;
    const safer_status status = sf_course_train(&methods, NULL, fuzz_path("model"), &options, &report, &error);
    require(status == SAFER_OK || (status == SAFER_INPUT && strstr(error.message, "model.checkpoint")));
    return 0;
}
