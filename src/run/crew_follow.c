/* A helper: does the rows that rank 0 sends. */
#include "run/crew_rows.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/progress.h"
#include "run/crew_frames.h"

#include <pthread.h>
#include <string.h>

enum { MOST_PROBES = 64 };

/* A row that waits; its strings lie behind it. */
typedef struct task {
    struct task *next;
    sf_row row;
    char bytes[];
} task;

typedef struct follow {
    const sf_rows *rows;
    sf_crew_part part;
    pthread_mutex_t lock;
    pthread_cond_t changed,
        more;          /* something happened; there are rows, which come too often to look around each time */
    sf_buffer welcome; /* without bytes: none yet */
    task *first, **last;
    int finished;
    uint64_t whole;     /* all records are there */
    uint64_t run, seal; /* of the run */
    atomic_int working; /* workers that began */
    sf_meter meter;
    safer_status status; /* the first failure, */
    safer_error error;   /* and its message */
} follow;

/* Wakes all. The lock is held. */
static void wake(follow *f)
{
    pthread_cond_broadcast(&f->changed);
    pthread_cond_broadcast(&f->more);
}

/* ---------------------------------------------------------------- what comes */

static task *take_task(sf_span contents)
{
    uint64_t index, label;
    sf_span id, text, more;
    if (sf_take_number(&index, &contents) || sf_take_number(&label, &contents) || sf_take_string(&id, &contents) ||
        sf_take_string(&text, &contents) || sf_take_string(&more, &contents) || contents.length || label > INT32_MAX)
        return NULL;
    task *t = malloc(sizeof *t + id.length + text.length + more.length + 2);
    if (!t) return NULL;
    char *bytes = t->bytes + id.length + 1, *behind = bytes + text.length + 1;
    if (id.length) memcpy(t->bytes, id.bytes, id.length);
    if (text.length) memcpy(bytes, text.bytes, text.length);
    if (more.length) memcpy(behind, more.bytes, more.length);
    t->bytes[id.length] = bytes[text.length] = '\0';
    t->next = NULL;
    t->row = (sf_row){(size_t)index, {t->bytes, bytes, text.length, (int)label - 1}, {behind, more.length}};
    return t;
}

static int take_frame(void *context, int from, sf_frame kind, sf_span contents)
{
    follow *f = context;
    int wrong = 0;
    task *t = kind == SF_TASK ? take_task(contents) : NULL;
    (void)from;
    pthread_mutex_lock(&f->lock);
    if (kind == SF_WELCOME)
        wrong = f->welcome.length || !contents.length || sf_buffer_add(&f->welcome, contents.bytes, contents.length);
    else if (kind == SF_FINISH)
        wrong = sf_take_number(&f->whole, &contents) || contents.length || (f->finished = 1, 0);
    else if (t)
        f->last = (*f->last = t, &t->next);
    else
        wrong = -1;
    if (t)
        pthread_cond_signal(&f->more);
    else
        wake(f);
    pthread_mutex_unlock(&f->lock);
    return wrong;
}

/* ------------------------------------------------------------------ the rows */

/* Keeps the first failure. */
static void keep_failure(follow *f, safer_status status, const safer_error *error)
{
    pthread_mutex_lock(&f->lock);
    if (f->status == SAFER_OK || f->status == SAFER_CANCELLED) { /* which may only have followed from this one */
        f->status = status;
        f->error = *error;
    }
    wake(f);
    pthread_mutex_unlock(&f->lock);
}

/* The next row, or NULL when there will be none. */
static task *next_task(follow *f)
{
    pthread_mutex_lock(&f->lock);
    while (!f->first && !f->finished && f->status == SAFER_OK && !sf_meter_cancelled(&f->meter))
        (void)sf_duty_wait(&f->more, &f->lock);
    task *t = f->status == SAFER_OK && !sf_meter_cancelled(&f->meter) ? f->first : NULL;
    if (t && !(f->first = t->next)) f->last = &f->first;
    pthread_mutex_unlock(&f->lock);
    return t;
}

static safer_status do_task(follow *f, const task *t, int worker, safer_error *error)
{
    json_t *record = NULL;
    double seconds = 0;
    size_t length = 0;
    sf_buffer frame = {0};
    char *line = NULL;
    safer_status status;
    SF_TRY(f->rows->work(f->rows->context, &t->row, worker, &record, &seconds, error));
    line = sf_seal(record, seconds, f->seal, &length, NULL);
    if (!line || sf_put_number(&frame, f->run) || sf_put_number(&frame, t->row.index) ||
        sf_put_string(&frame, (sf_span){line, length})) {
        status = sf_fail_memory(error);
        goto done;
    }
    sf_crew_put(f->rows->crew, 0, SF_DONE, (sf_span){frame.bytes, frame.length});
done:
    json_decref(record);
    sf_buffer_free(&frame);
    free(line);
    return status;
}

/* Whether something outside of this process ends the run. */
static safer_status look_around(follow *f, safer_error *error)
{
    const safer_status status = sf_crew_failure(f->rows->crew, NULL, error);
    if (status != SAFER_OK || !(sf_crew_is_over(f->rows->crew) || sf_crew_is_told(f->rows->crew))) return status;
    return sf_fail(error, SAFER_CANCELLED, "rank 0 ended the run");
}

/* The post's: whoever waits need not do so until the next time it looks. */
static void turn(void *context)
{
    follow *f = context;
    safer_error error;
    if (look_around(f, &error) == SAFER_OK) return;
    pthread_mutex_lock(&f->lock);
    wake(f);
    pthread_mutex_unlock(&f->lock);
}

/* Waits until something ends the run; then, when it was not its proper end, stops the others. */
static void oversee(follow *f)
{
    safer_error error = {0};
    safer_status status = SAFER_OK;
    const double start = sf_seconds();
    pthread_mutex_lock(&f->lock);
    while (!f->finished && f->status == SAFER_OK && status == SAFER_OK && !sf_meter_cancelled(&f->meter)) {
        (void)sf_duty_wait(&f->changed, &f->lock);
        if (f->finished) break;
        status = look_around(f, &error);
        if (status == SAFER_OK && !atomic_load(&f->working) && sf_seconds() - start > SF_CREW_START_SECONDS) {
            status = sf_fail(&error, SAFER_SYSTEM, "cannot start a thread");
            (void)sf_crew_report(f->rows->crew, &error, 0);
        }
    }
    const int finished = f->finished, wished = !finished && status == SAFER_OK && sf_meter_cancelled(&f->meter) &&
                                               (f->status == SAFER_OK || f->status == SAFER_CANCELLED);
    if (finished && !f->whole) status = sf_fail(&error, SAFER_CANCELLED, "rank 0 ended the run");
    pthread_mutex_unlock(&f->lock);
    if (wished) {
        status = sf_crew_muster(f->rows->crew, &error);
        if (status == SAFER_OK) status = sf_fail(&error, SAFER_CANCELLED, "cancelled");
    }
    if (status != SAFER_OK) keep_failure(f, status, &error);
    if (!finished) atomic_store(&f->meter.cancelled, 1);
}

static void do_rows(void *context, size_t begin, size_t end, int worker)
{
    follow *f = context;
    task *t;
    (void)end;
    if (begin == 0) {
        oversee(f);
        return;
    }
    atomic_fetch_add(&f->working, 1);
    while ((t = next_task(f))) {
        safer_error error = {0};
        const safer_status status = do_task(f, t, worker, &error);
        free(t);
        if (status == SAFER_OK) continue;
        if (status != SAFER_CANCELLED) (void)sf_crew_report(f->rows->crew, &error, sf_model_is_random(f->rows->model));
        keep_failure(f, status, &error);
    }
}

/* ------------------------------------------------------------------- the run */

/* Waits for the welcome, and whether it is one for us. */
static safer_status join(follow *f, safer_error *error)
{
    safer_status status = SAFER_OK;
    uint64_t count = 0;
    sf_span contents, texts[MOST_PROBES], config;
    json_t *json = NULL;
    pthread_mutex_lock(&f->lock);
    while (!f->welcome.length && status == SAFER_OK && !sf_meter_cancelled(&f->meter)) {
        (void)sf_duty_wait(&f->changed, &f->lock);
        status = look_around(f, error);
    }
    contents = (sf_span){f->welcome.bytes, f->welcome.length};
    pthread_mutex_unlock(&f->lock);
    if (status == SAFER_OK && sf_meter_cancelled(&f->meter)) status = sf_crew_muster(f->rows->crew, error);
    if (status == SAFER_OK && sf_meter_cancelled(&f->meter)) status = sf_fail(error, SAFER_CANCELLED, "cancelled");
    if (status != SAFER_OK) return status;
    int wrong = sf_take_number(&f->run, &contents) || sf_take_number(&f->seal, &contents) ||
                sf_take_number(&count, &contents) || count > MOST_PROBES;
    for (uint64_t i = 0; i < count && !wrong; i++) wrong = sf_take_string(&texts[i], &contents);
    wrong = wrong || sf_take_string(&config, &contents) || contents.length;
    if (!wrong) (void)sf_json_parse(&json, config.bytes, config.length, JSON_REJECT_DUPLICATES, NULL);
    if (!json) return sf_fail(error, SAFER_SYSTEM, "the configuration of rank 0 cannot be read");
    status = f->rows->join(f->rows->context, json, texts, (size_t)count, error);
    json_decref(json);
    return status;
}

static safer_status follow_run(follow *f, safer_error *error)
{
    const sf_rows *rows = f->rows;
    sf_buffer ready = {0};
    safer_status status = join(f, error);
    if (status == SAFER_OK && (sf_put_number(&ready, f->run) || sf_put_number(&ready, (uint64_t)rows->threads)))
        status = sf_fail_memory(error);
    if (status != SAFER_OK) {
        if (status != SAFER_CANCELLED) (void)sf_crew_report(rows->crew, error, 0);
        return status;
    }
    sf_crew_put(rows->crew, 0, SF_READY, (sf_span){ready.bytes, ready.length});
    /* One more than work: the caller's thread oversees. */
    sf_model_parallel(rows->model, rows->threads + 1, (size_t)rows->threads + 1, 1, do_rows, f);
    sf_buffer_free(&ready);
    *error = f->error;
    return f->status;
}

safer_status sf_follow(const sf_rows *rows, safer_error *error)
{
    follow f = {.rows = rows};
    f.part = (sf_crew_part){&f, take_frame, turn};
    f.last = &f.first;
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.changed, NULL);
    pthread_cond_init(&f.more, NULL);
    sf_meter_start(&f.meter, rows->progress, "following rank 0", 0);
    const sf_duty before = sf_duty_change((sf_duty){&f.meter, 0});
    sf_crew_set_part(rows->crew, &f.part);
    safer_error own = {0};
    const safer_status status = follow_run(&f, &own);
    if (status != SAFER_OK && error) *error = own;
    sf_crew_set_part(rows->crew, NULL);
    (void)sf_duty_change(before);
    while (f.first) {
        task *next = f.first->next;
        free(f.first);
        f.first = next;
    }
    sf_buffer_free(&f.welcome);
    pthread_cond_destroy(&f.changed);
    pthread_cond_destroy(&f.more);
    pthread_mutex_destroy(&f.lock);
    return status;
}
