/* Rows in parallel, records in order, safe to interrupt.
 *
 * Workers take rows as they come free, and so do the helpers of a crew (crew_rows.h); a finished record waits until all
 * before it are written. At most WINDOW rows are between the first whose record is missing and the last that was begun,
 * so memory does not grow with the data. A record is written as one whole line; when that fails, the file is cut back
 * to its last whole line (sealed.h). So at any moment, whatever happens, the file is the configuration followed by the
 * records of the first rows. */
#include "run/rows.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "run/crew_rows.h"
#include "run/difference.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { WINDOW = 1 << 14 };

/* A row that was begun. */
typedef struct waiting {
    char *line; /* NULL: its record is not there yet */
    size_t length;
    json_t *record;
    int rank; /* that does it */
} waiting;

/* One pass over the rows. */
typedef struct pass {
    const sf_rows *rows;
    size_t first;     /* rows before it were done by an earlier run */
    waiting *waiting; /* (WINDOW): of the i-th row at i % WINDOW */
    size_t next;      /* the first record that is not written */
    size_t claimed;   /* the first row that nobody has begun */
    size_t own;       /* rows done by this process */
    sf_sealed_output output;
    pthread_mutex_t lock;
    pthread_cond_t room, ended; /* there is room in the window; all records are written, or something failed */
    atomic_int working;         /* workers that began */
    safer_reader **readers;     /* (threads + 1): of each worker */
    safer_reader *sender;       /* of the thread that sends rows to helpers */
    sf_lead *lead;              /* of a crew */
    sf_meter meter;
    char stage[256];
    safer_status status; /* the first failure, */
    safer_error error;   /* and its message */
} pass;

/* ------------------------------------------------------------ rows and records */

/* Keeps the first failure; nobody starts another row. The lock is held. */
static void keep_failure(pass *p, safer_status status, const safer_error *error)
{
    if (status == SAFER_OK || p->status != SAFER_OK) return;
    p->status = status;
    p->error = *error;
    atomic_store(&p->meter.cancelled, 1);
    pthread_cond_broadcast(&p->room);
    pthread_cond_broadcast(&p->ended);
}

/* Takes the next row for a rank. 0: there is none, or no room at the moment. The lock is held. */
static int claim(pass *p, int rank, size_t *index)
{
    const sf_rows *rows = p->rows;
    if (p->claimed == rows->count || p->claimed - p->next >= WINDOW || sf_meter_cancelled(&p->meter)) return 0;
    *index = sf_shard_row(rows->shard, p->claimed);
    p->waiting[p->claimed++ % WINDOW] = (waiting){.rank = rank};
    return 1;
}

/* Writes the records that have become first in line. The lock is held. */
static safer_status flush_records(pass *p, safer_error *error)
{
    safer_status status = SAFER_OK;
    const size_t before = p->next;
    for (; p->next < p->claimed && p->waiting[p->next % WINDOW].line && status == SAFER_OK; p->next++) {
        waiting *w = &p->waiting[p->next % WINDOW];
        status = sf_sealed_append(&p->output, w->line, w->length, error);
        if (status == SAFER_OK) status = p->rows->add(p->rows->context, w->record, "a record", p->next + 2, error);
        free(w->line);
        json_decref(w->record);
        *w = (waiting){0};
    }
    if (p->next > before) pthread_cond_broadcast(&p->room);
    if (p->next == p->rows->count) pthread_cond_broadcast(&p->ended);
    return status;
}

/* Takes a record, with its line. The lock is held, so that no record may follow one that is missing. */
static safer_status put_record(pass *p, size_t place, const waiting *w, safer_error *error)
{
    safer_status status = SAFER_OK;
    p->waiting[place % WINDOW] = *w;
    if (p->status == SAFER_OK) status = flush_records(p, error);
    keep_failure(p, status, error);
    return status;
}

/* ---------------------------------------------------------------- the workers */

static safer_status do_row(pass *p, size_t index, int worker, safer_error *error)
{
    waiting w = {0};
    double seconds = 0;
    sf_row row;
    safer_status status = sf_rows_read(p->rows, &p->readers[worker], index, &row, error);
    if (status == SAFER_OK) status = p->rows->work(p->rows->context, &row, worker, &w.record, &seconds, error);
    if (status != SAFER_OK) return status;
    w.line = sf_seal(w.record, seconds, p->output.seal, &w.length, NULL);
    if (!w.line) {
        json_decref(w.record);
        return sf_fail_memory(error);
    }
    pthread_mutex_lock(&p->lock);
    status = put_record(p, sf_shard_place(p->rows->shard, index), &w, error);
    p->own++;
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* Waits for a row; 0: there are no more. */
static int next_row(pass *p, size_t *index)
{
    pthread_mutex_lock(&p->lock);
    int taken;
    while (!(taken = claim(p, 0, index)) && p->claimed < p->rows->count && !sf_meter_cancelled(&p->meter))
        (void)sf_duty_wait(&p->room, &p->lock);
    pthread_mutex_unlock(&p->lock);
    return taken;
}

/* For a report: the thread that makes it is the only one that reads and writes the stage. */
static void describe(void *context)
{
    pass *p = context;
    pthread_mutex_lock(&p->lock);
    p->rows->describe(p->rows->context, p->stage, sizeof p->stage);
    const size_t own = p->own;
    pthread_mutex_unlock(&p->lock);
    if (p->lead) sf_lead_describe(p->lead, own, p->stage, sizeof p->stage);
}

static void work(pass *p, int worker)
{
    size_t index;
    atomic_fetch_add(&p->working, 1);
    while (next_row(p, &index)) {
        safer_error error = {0};
        safer_status status = do_row(p, index, worker, &error);
        if (status != SAFER_OK) {
            pthread_mutex_lock(&p->lock);
            keep_failure(p, status, &error);
            pthread_mutex_unlock(&p->lock);
            return;
        }
        sf_meter_add(&p->meter, 1, sf_duty_now().worker);
    }
}

static void do_rows(void *context, size_t begin, size_t end, int worker)
{
    (void)begin, (void)end; /* a worker each */
    work(context, worker);
}

/* -------------------------------------------------------------------- a crew */

static size_t count_left(void *context)
{
    pass *p = context;
    pthread_mutex_lock(&p->lock);
    const size_t left = sf_meter_cancelled(&p->meter) ? 0 : p->rows->count - p->claimed;
    pthread_mutex_unlock(&p->lock);
    return left;
}

static int claim_for(void *context, int rank, sf_row *row, sf_buffer *more)
{
    pass *p = context;
    safer_error error = {0};
    size_t index = 0;
    pthread_mutex_lock(&p->lock);
    const int taken = claim(p, rank, &index);
    pthread_mutex_unlock(&p->lock);
    if (!taken) return 0;
    sf_buffer_clear(more);
    safer_status status = sf_rows_read(p->rows, &p->sender, index, row, &error);
    if (status == SAFER_OK && p->rows->attach) status = p->rows->attach(p->rows->context, index, more, &error);
    row->more = (sf_span){more->bytes, more->length};
    if (status == SAFER_OK) return 1;
    pthread_mutex_lock(&p->lock);
    keep_failure(p, status, &error);
    pthread_mutex_unlock(&p->lock);
    return 0;
}

/* A record that a helper made and sealed. */
static int take_record(void *context, int rank, size_t index, sf_span line)
{
    pass *p = context;
    safer_error error = {0};
    waiting w = {.length = line.length, .rank = rank};
    uint64_t seal;
    const size_t place = sf_shard_place(p->rows->shard, index);
    if (line.length < 2 || line.bytes[line.length - 1] != '\n') return -1;
    (void)sf_json_parse(&w.record, line.bytes, line.length - 1, JSON_REJECT_DUPLICATES, NULL);
    w.line = w.record ? malloc(line.length) : NULL;
    int wrong = !w.line || sf_unseal(w.record, line.bytes, line.length - 1, p->output.seal, &seal, "a record",
                                     place + 2, NULL) != SAFER_OK;
    pthread_mutex_lock(&p->lock);
    const waiting *there = &p->waiting[place % WINDOW];
    wrong = wrong || place < p->next || place >= p->claimed || sf_shard_row(p->rows->shard, place) != index ||
            there->rank != rank || there->line;
    if (!wrong) {
        memcpy(w.line, line.bytes, line.length);
        (void)put_record(p, place, &w, &error);
    }
    pthread_mutex_unlock(&p->lock);
    if (!wrong) {
        sf_meter_add(&p->meter, 1, 1);
        return 0;
    }
    free(w.line);
    json_decref(w.record);
    return -1;
}

/* A failure of the crew: it replaces the wish to stop, which may only have followed from it. The lock is held. */
static void keep_lost(pass *p, safer_status status, const safer_error *error)
{
    if (p->status == SAFER_CANCELLED && status != SAFER_OK) p->status = SAFER_OK;
    keep_failure(p, status, error);
}

/* Waits until all helpers are ready (with `ready`), or all records are written, or it shall stop. The caller's thread
 * of a crew's rank 0 does only this, so that a rank that is lost is noticed, and told of, while the others work. */
static void wait_for_end(pass *p, int ready)
{
    safer_status status = SAFER_OK;
    safer_error error = {0};
    int random = 0;
    const double start = sf_seconds();
    pthread_mutex_lock(&p->lock);
    while ((ready ? !sf_lead_is_ready(p->lead) : p->next < p->rows->count) && !sf_meter_cancelled(&p->meter)) {
        (void)sf_duty_wait(&p->ended, &p->lock);
        status = sf_crew_failure(p->rows->crew, &random, &error);
        if (status == SAFER_OK && !ready && !atomic_load(&p->working) && sf_seconds() - start > SF_CREW_START_SECONDS)
            status = sf_fail(&error, SAFER_SYSTEM, "cannot start a thread");
        keep_failure(p, status, &error);
    }
    const int wished = sf_meter_cancelled(&p->meter) && (p->status == SAFER_OK || p->status == SAFER_CANCELLED);
    pthread_mutex_unlock(&p->lock);
    if (wished) {
        status = sf_crew_muster(p->rows->crew, &error);
        pthread_mutex_lock(&p->lock);
        keep_lost(p, status, &error);
        pthread_mutex_unlock(&p->lock);
    }
    if (random) sf_model_set_random(p->rows->model);
}

static void lead_rows(void *context, size_t begin, size_t end, int worker)
{
    (void)end;
    if (begin > 0)
        work(context, worker);
    else
        wait_for_end(context, 0);
}

static safer_status do_crew(pass *p, safer_error *error)
{
    const sf_rows *rows = p->rows;
    const sf_lead_pass own = {p, count_left, claim_for, take_record};
    safer_status status = sf_lead_new(&p->lead, rows, p->output.seal, &own, error);
    if (status != SAFER_OK) return status;
    wait_for_end(p, 1);
    if (!sf_lead_is_ready(p->lead) && p->next == 0) sf_sealed_forget(&p->output); /* they cannot work together */
    if (!sf_meter_cancelled(&p->meter) && p->next < rows->count)
        sf_model_parallel(rows->model, rows->threads + 1, (size_t)rows->threads + 1, 1, lead_rows, p);
    p->meter.describe = NULL; /* the lead ends before the last report */
    sf_lead_free(p->lead, p->next == rows->count && p->status == SAFER_OK);
    p->lead = NULL;
    return SAFER_OK; /* what failed is kept */
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
    p->next = p->claimed = p->first;
    rows->describe(rows->context, p->stage, sizeof p->stage);
    const size_t left = rows->count - p->first, threads = (size_t)rows->threads;
    sf_meter_start(&p->meter, rows->progress, p->stage, left);
    p->meter.describe = describe;
    p->meter.context = p;
    const sf_duty before = sf_duty_change((sf_duty){&p->meter, 0});
    if (rows->crew)
        status = do_crew(p, error);
    else if (!sf_meter_cancelled(&p->meter))
        sf_model_parallel(rows->model, rows->threads, left < threads ? left : threads, 1, do_rows, p);
    (void)sf_duty_change(before);
    if (p->status != SAFER_OK) {
        status = p->status;
        if (error) *error = p->error;
    }
    SF_TRY(status);
    SF_TRY(sf_meter_finish(&p->meter, error));
    status = sf_sealed_sync(&p->output, error);
done:
    return status;
}

safer_status sf_rows_run(const sf_rows *rows, const char *path, int resume, size_t *resumed, safer_error *error)
{
    if (rows->crew && safer_crew_rank(rows->crew) > 0) return sf_follow(rows, error);
    pass p = {.rows = rows, .output = {.fd = -1}};
    p.waiting = sf_calloc(WINDOW, sizeof *p.waiting);
    p.readers = sf_calloc((size_t)rows->threads + 1, sizeof *p.readers);
    if (!p.waiting || !p.readers) {
        free(p.waiting);
        free(p.readers);
        return sf_fail_memory(error);
    }
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.room, NULL);
    pthread_cond_init(&p.ended, NULL);
    safer_status status = do_all(&p, path, resume, error);
    *resumed = p.first;
    for (size_t i = 0; i < WINDOW; i++) {
        free(p.waiting[i].line);
        json_decref(p.waiting[i].record);
    }
    free(p.waiting);
    for (int i = 0; i <= rows->threads; i++) safer_reader_free(p.readers[i]);
    free(p.readers);
    safer_reader_free(p.sender);
    sf_sealed_close(&p.output);
    pthread_cond_destroy(&p.room);
    pthread_cond_destroy(&p.ended);
    pthread_mutex_destroy(&p.lock);
    return status;
}

/* ------------------------------------------------------------ rows of the data */

safer_status sf_rows_read(const sf_rows *rows, safer_reader **reader, size_t index, sf_row *out, safer_error *error)
{
    out->index = index;
    out->more = (sf_span){0};
    const safer_status status = safer_data_read(&out->row, reader, rows->data, index, error);
    if (status != SAFER_OK) return status;
    const int label = out->row.label;
    out->row.label = label >= 0 && rows->classes ? rows->classes[label] : -1;
    return SAFER_OK;
}
