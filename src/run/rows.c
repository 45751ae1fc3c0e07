/* Rows in parallel, records in order, safe to interrupt.
 *
 * Workers take rows as they come free; a finished record waits until all before it are
 * written. A record is written as one whole line; when that fails, the file is cut back to
 * its last whole line (sealed.h). So at any moment, whatever happens, the file is the
 * configuration followed by the records of the first rows. */
#include "run/rows.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "run/difference.h"

#include <pthread.h>
#include <string.h>

/* A record that is done. */
typedef struct waiting {
    char *line;
    size_t length;
    json_t *record;
} waiting;

/* One pass over the rows. */
typedef struct pass {
    const sf_rows *rows;
    size_t first;     /* rows before it were done by an earlier run */
    waiting *waiting; /* of every row; filled while its record waits for those before it */
    size_t next;      /* the first record that is not written */
    sf_sealed_output output;
    pthread_mutex_t lock;
    sf_meter meter;
    char stage[64];
    safer_status status; /* the first failure, */
    safer_error error;   /* and its message */
} pass;

/* ---------------------------------------------------------------- the workers */

/* Keeps the first failure. The lock is held. */
static void keep_failure(pass *p, safer_status status, const safer_error *error)
{
    if (status == SAFER_OK || p->status != SAFER_OK) return;
    p->status = status;
    p->error = *error;
}

/* Writes the records that have become first in line. The lock is held. */
static safer_status flush_records(pass *p, safer_error *error)
{
    safer_status status = SAFER_OK;
    for (; p->next < p->rows->count && p->waiting[p->next].line && status == SAFER_OK; p->next++) {
        waiting *w = &p->waiting[p->next];
        status = sf_sealed_append(&p->output, w->line, w->length, error);
        if (status == SAFER_OK) status = p->rows->add(p->rows->context, w->record, "a record", p->next + 2, error);
        free(w->line);
        json_decref(w->record);
        *w = (waiting){0};
    }
    return status;
}

static safer_status do_row(pass *p, size_t index, int worker, safer_error *error)
{
    waiting w = {0};
    double seconds = 0;
    safer_status status = p->rows->work(p->rows->context, index, worker, &w.record, &seconds, error);
    if (status != SAFER_OK) return status;
    w.line = sf_seal(w.record, seconds, p->output.seal, &w.length, NULL);
    if (!w.line) {
        json_decref(w.record);
        return sf_fail_memory(error);
    }
    pthread_mutex_lock(&p->lock);
    p->waiting[index] = w;
    if (p->status == SAFER_OK) status = flush_records(p, error);
    keep_failure(p, status, error); /* before the lock is given back: no record may follow one that is missing */
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* For a report: the thread that makes it is the only one that reads and writes the stage. */
static void describe(void *context)
{
    pass *p = context;
    pthread_mutex_lock(&p->lock);
    p->rows->describe(p->rows->context, p->stage, sizeof p->stage);
    pthread_mutex_unlock(&p->lock);
}

static void do_rows(void *context, size_t begin, size_t end, int worker)
{
    pass *p = context;
    for (size_t i = begin; i < end; i++) {
        safer_error error = {0};
        if (sf_meter_cancelled(&p->meter)) return;
        safer_status status = do_row(p, p->first + i, worker, &error);
        if (status != SAFER_OK) {
            pthread_mutex_lock(&p->lock);
            keep_failure(p, status, &error);
            pthread_mutex_unlock(&p->lock);
            atomic_store(&p->meter.cancelled, 1); /* nobody starts another row */
            return;
        }
        sf_meter_add(&p->meter, 1, sf_duty_now().worker);
    }
}

/* ------------------------------------------------------------------ the pass */

/* Whether an earlier run had this configuration. */
static safer_status check_config(const pass *p, const json_t *earlier, safer_error *error)
{
    char difference[256];
    const json_int_t format = json_integer_value(json_object_get(earlier, "format")),
                     own = json_integer_value(json_object_get(p->rows->config, "format"));
    if (format < own)
        return sf_fail(error, SAFER_INPUT,
                       "%s is of format %lld, which can be verified but not continued: begin another file",
                       p->output.path, (long long)format);
    if (!sf_difference(difference, sizeof difference, NULL, earlier, p->rows->config)) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s belongs to another run: %s", p->output.path, difference);
}

/* Takes a line of an earlier run with the same configuration. */
static safer_status take_earlier(void *context, json_t *object, uint64_t seal, size_t line, safer_error *error)
{
    pass *p = context;
    const sf_rows *rows = p->rows;
    (void)seal;
    if (line > 1) {
        safer_status status = SAFER_OK;
        if (rows->recheck) status = rows->recheck(rows->context, object, p->output.path, line, error);
        p->first++;
        return status == SAFER_OK ? rows->add(rows->context, object, p->output.path, line, error) : status;
    }
    return check_config(p, object, error);
}

static safer_status do_all(pass *p, const char *path, int resume, safer_error *error)
{
    safer_status status;
    const sf_rows *rows = p->rows;
    SF_TRY(sf_sealed_open(&p->output, path, resume, rows->config, take_earlier, p, error));
    if (p->first > rows->count) {
        status = sf_fail(error, SAFER_INPUT, "%s holds more records than there are texts", path);
        goto done;
    }
    p->next = p->first;
    rows->describe(rows->context, p->stage, sizeof p->stage);
    sf_meter_start(&p->meter, rows->progress, p->stage, rows->count - p->first);
    p->meter.describe = describe;
    p->meter.context = p;
    const sf_duty before = sf_duty_change((sf_duty){&p->meter, 0});
    if (!sf_meter_cancelled(&p->meter))
        sf_model_parallel(rows->model, rows->threads, rows->count - p->first, 1, do_rows, p);
    (void)sf_duty_change(before);
    if (p->status != SAFER_OK) {
        status = p->status;
        if (error) *error = p->error;
        goto done;
    }
    SF_TRY(sf_meter_finish(&p->meter, error));
    status = sf_sealed_sync(&p->output, error);
done:
    return status;
}

safer_status sf_rows_run(const sf_rows *rows, const char *path, int resume, size_t *resumed, safer_error *error)
{
    pass p = {.rows = rows, .output = {.fd = -1}};
    p.waiting = sf_calloc(rows->count, sizeof *p.waiting);
    if (!p.waiting) return sf_fail_memory(error);
    pthread_mutex_init(&p.lock, NULL);
    safer_status status = do_all(&p, path, resume, error);
    *resumed = p.first;
    for (size_t i = 0; i < rows->count; i++) {
        free(p.waiting[i].line);
        json_decref(p.waiting[i].record);
    }
    free(p.waiting);
    sf_sealed_close(&p.output);
    pthread_mutex_destroy(&p.lock);
    return status;
}

/* ------------------------------------------------------- before a run begins */

safer_status sf_map_labels(int **out, const safer_model *model, const safer_data *data, safer_error *error)
{
    size_t count = safer_data_label_count(data);
    int *classes = sf_alloc(count, sizeof *classes);
    if (!classes) return sf_fail_memory(error);
    for (size_t i = 0; i < count; i++) {
        classes[i] = -1;
        for (size_t k = 0; k < model->classes; k++)
            if (strcmp(safer_data_label(data, i), model->labels[k]) == 0) classes[i] = (int)k;
        if (classes[i] < 0) {
            sf_buffer known = {0};
            for (size_t k = 0; k < model->classes && known.length < 200; k++)
                (void)sf_buffer_format(&known, "%s%s", k ? ", " : "", model->labels[k]);
            sf_fail(error, SAFER_INPUT, "the data has the label \"%s\", which the model does not know (it knows: %s)",
                    safer_data_label(data, i), known.bytes ? known.bytes : "none");
            sf_buffer_free(&known);
            free(classes);
            return SAFER_INPUT;
        }
    }
    *out = classes;
    return SAFER_OK;
}
