/* The large files a lexicon is made from. */
#include "lexicon/inputs.h"

#include "base/memory.h"
#include "base/parallel.h"

/* One file each: first the vectors, then the data sets. */
typedef struct loading {
    const safer_lexicon_options *options;
    sf_inputs *inputs;
    safer_status *statuses;
    safer_error *errors;
} loading;

static void load_files(void *context, size_t begin, size_t end, int worker)
{
    loading *job = context;
    const safer_lexicon_options *o = job->options;
    safer_data_options reading = safer_data_options_default();
    (void)worker;
    reading.repair = o->repair;
    if (o->vocab_data) {
        reading.text_column = o->vocab_data->text_column;
        reading.label_column = o->vocab_data->label_column;
        reading.id_column = o->vocab_data->id_column;
        reading.title_column = o->vocab_data->title_column;
    }
    for (size_t i = begin; i < end; i++) {
        if (i > 0)
            job->statuses[i] = safer_data_load(&job->inputs->sets[i - 1], o->vocab_from[i - 1], &reading,
                                               &job->errors[i]);
        else if (o->vectors)
            job->statuses[i] = sf_file_read(&job->inputs->vectors, o->vectors, &job->errors[i]);
    }
}

safer_status sf_inputs_load(sf_inputs *out, const safer_lexicon_options *options, safer_error *error)
{
    safer_status status = SAFER_OK;
    size_t files = 1 + options->vocab_from_count;
    sf_inputs inputs = {.set_count = options->vocab_from_count};
    loading job = {.options = options, .inputs = &inputs};
    inputs.sets = sf_calloc(files, sizeof *inputs.sets);
    job.statuses = sf_calloc(files, sizeof *job.statuses);
    job.errors = sf_calloc(files, sizeof *job.errors);
    if (!inputs.sets || !job.statuses || !job.errors) {
        status = sf_fail_memory(error);
    } else {
        sf_parallel(options->threads, files, 1, load_files, &job);
        for (size_t i = 0; i < files && status == SAFER_OK; i++) {
            status = job.statuses[i];
            if (status != SAFER_OK && error) *error = job.errors[i];
        }
    }
    free(job.statuses);
    free(job.errors);
    if (status == SAFER_OK)
        *out = inputs;
    else
        sf_inputs_free(&inputs);
    return status;
}

void sf_inputs_free_sets(sf_inputs *inputs)
{
    for (size_t i = 0; inputs->sets && i < inputs->set_count; i++) safer_data_free(inputs->sets[i]);
    free(inputs->sets);
    inputs->sets = NULL;
    inputs->set_count = 0;
}

void sf_inputs_free(sf_inputs *inputs)
{
    sf_file_free(&inputs->vectors);
    sf_inputs_free_sets(inputs);
    *inputs = (sf_inputs){0};
}
