/* Asking the model again, by all processes of a crew.
 *
 * It is a run without a file: helpers make the records of their texts once more, and rank 0, which alone has the run's,
 * compares them as they come in order. */
#include "certify/verify_crew.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "certify/certificate.h"
#include "certify/origin.h"
#include "run/rows.h"

#include <stdio.h>
#include <string.h>

typedef struct again {
    const safer_model *model;
    const safer_lexicon *lexicon;
    const sf_verify_crew *of; /* NULL on a helper */
    safer_certify_options options;
    safer_workspace **workspaces; /* one per worker */
    sf_window window;             /* of the run */
} again;

static safer_status ask_row(void *context, const sf_row *row, int worker, json_t **record, double *seconds,
                            safer_error *error)
{
    again *a = context;
    return sf_record_row(record, seconds, &a->workspaces[worker], a->model, a->lexicon, row, &a->options, error);
}

/* The first member that is not the same, or NULL. */
static const char *different(json_t *there, const json_t *here)
{
    const char *name;
    json_t *value;
    json_object_foreach(there, name, value) if (!json_equal(value, json_object_get(here, name))) return name;
    return NULL;
}

static safer_status compare_record(void *context, const json_t *record, const char *name, size_t line,
                                   safer_error *error)
{
    again *a = context;
    const sf_run *run = a->of->run;
    sf_record read;
    json_t *there = NULL, *here = NULL;
    safer_status status;
    char *text = sf_json_text(record); /* numbers as a file has them */
    (void)name;
    if (text) (void)sf_json_parse(&here, text, strlen(text), 0, NULL);
    if (!here) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_run_record(&read, &there, run, line - 2, &a->window, error));
    const char *member = different(there, here);
    if (member)
        status = sf_fail(error, SAFER_INPUT, "%s, line %zu: the model gives another record: \"%s\" differs", run->path,
                         line, member);
done:
    json_decref(there);
    json_decref(here);
    free(text);
    return status;
}

static void describe(void *context, char *stage, size_t size)
{
    (void)context;
    snprintf(stage, size, "asking again");
}

/* On a helper: whether the run was made with its model and lexicon, and how to ask. */
static safer_status join_run(void *context, const json_t *theirs, const sf_span *texts, size_t count,
                             safer_error *error)
{
    again *a = context;
    safer_status status;
    sf_config config;
    SF_TRY(sf_certify_follow(a->model, theirs, texts, count, error));
    SF_TRY(sf_origin_check(theirs, a->model, a->lexicon, NULL, "the run", error));
    SF_TRY(sf_config_read(&config, theirs, "the configuration of rank 0", error));
    a->options = config.options;
    a->options.delta = config.delta; /* of one text */
    a->options.threads = 1;
done:
    return status;
}

safer_status sf_verify_again(safer_crew *crew, const sf_verify_crew *of, const safer_model *model,
                             const safer_lexicon *lexicon, int threads, const safer_progress *progress,
                             safer_error *error)
{
    again a = {.model = model, .lexicon = lexicon, .of = of};
    size_t resumed;
    const int workers = model->concurrency ? model->concurrency : sf_threads(threads);
    if (of && of->run->config.format != SF_FORMAT)
        return sf_fail(error, SAFER_INVALID,
                       "`crew`: %s is of format %d, which only one process alone asks again about", of->run->path,
                       of->run->config.format);
    if (of) {
        a.options = of->run->config.options;
        a.options.delta = of->run->config.delta;
        a.options.threads = 1;
        a.window.source = &of->run->source;
    }
    a.workspaces = sf_calloc((size_t)workers + 1, sizeof *a.workspaces);
    if (!a.workspaces) return sf_fail_memory(error);
    const sf_rows rows = {.count = of ? of->run->count : 0,
                          .shard = of ? of->run->config.shard : (sf_shard){0},
                          .model = model,
                          .threads = workers,
                          .config = of ? of->run->config_json : NULL,
                          .progress = progress,
                          .context = &a,
                          .data = of ? of->data : NULL,
                          .classes = of ? of->classes : NULL,
                          .work = ask_row,
                          .add = compare_record,
                          .describe = describe,
                          .crew = crew,
                          .join = join_run};
    const safer_status status = sf_rows_run(&rows, NULL, 0, &resumed, error);
    for (int i = 0; i <= workers; i++) safer_workspace_free(a.workspaces[i]);
    free(a.workspaces);
    sf_window_free(&a.window);
    return status;
}
