/* A run over a data set: rows in parallel, records in order, safe to interrupt.
 *
 * Workers take rows as they come free; a finished record waits until all before it are
 * written. A record is written by one write(2) of a whole line; when that fails, the file
 * is cut back to its last whole line. So at any moment, whatever happens, the file is the
 * configuration followed by the records of the first rows. */
#define _GNU_SOURCE
#include "run/rows.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ----------------------------------------------------------- the output file */

typedef struct output {
    int fd; /* -1: none */
    const char *path;
    off_t end;      /* after the last whole line */
    uint64_t check; /* the configuration's, which seeds the records' */
} output;

static safer_status append(output *out, const char *line, size_t length, safer_error *error)
{
    size_t done = 0;
    if (out->fd < 0) return SAFER_OK;
    while (done < length) {
        ssize_t put = write(out->fd, line + done, length - done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            safer_status status = sf_fail_errno(error, "write", out->path);
            if (ftruncate(out->fd, out->end) != 0) { /* a regular file can always shrink; a pipe cannot */
            }
            return status;
        }
        done += (size_t)put;
    }
    out->end += (off_t)length;
    return SAFER_OK;
}

/* Reads the whole lines of an earlier run with the same configuration, counts them, and cuts
 * off what is behind them. */
static safer_status read_earlier(output *out, const sf_rows *rows, size_t *resumed, safer_error *error)
{
    safer_status status;
    sf_file file = {0};
    json_t *object = NULL;
    size_t line = 0;
    const char *p, *end;
    SF_TRY(sf_file_map(&file, out->path, error));
    p = file.bytes;
    end = p + file.length;
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        uint64_t check;
        if (!newline) break; /* half a record: it was being written when the run died */
        line++;
        object = json_loadb(p, (size_t)(newline - p), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        if (!object) {
            status = sf_fail(error, SAFER_INPUT, "%s, line %zu: not JSON; this is not the output of a run", out->path,
                             line);
            goto done;
        }
        SF_TRY(sf_record_unseal(object, p, (size_t)(newline - p), line == 1 ? 0 : out->check, &check, out->path, line,
                                error));
        if (line == 1) {
            out->check = check;
            if (!json_equal(object, rows->config)) {
                status = sf_fail(error, SAFER_INPUT,
                                 "%s belongs to another run: model, lexicon, data or options differ", out->path);
                goto done;
            }
        } else {
            SF_TRY(sf_record_in_place(object, out->path, line, error));
            SF_TRY(rows->add(rows->context, object, out->path, line, error));
            ++*resumed;
        }
        json_decref(object);
        object = NULL;
        p = newline + 1;
        out->end = p - file.bytes;
    }
    if (*resumed > rows->count)
        status = sf_fail(error, SAFER_INPUT, "%s holds more records than there are texts", out->path);
done:
    json_decref(object);
    sf_file_free(&file);
    return status;
}

static safer_status open_output(output *out, const char *path, int resume, const sf_rows *rows, size_t *resumed,
                                safer_error *error)
{
    safer_status status = SAFER_OK;
    struct stat info;
    char *line = NULL;
    size_t length = 0;
    json_t *sealed = NULL;
    *out = (output){.fd = -1, .path = path};
    if (!path) return SAFER_OK;
    out->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (out->fd < 0) return sf_fail_errno(error, "open", path);
    if (flock(out->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        status = sf_fail(error, SAFER_SYSTEM, "%s is being written by another run", path);
        goto done;
    }
    /* Looked at under the lock: another run may have finished it a moment ago. */
    int exists = fstat(out->fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
    if (exists && !resume) {
        status = sf_fail(error, SAFER_INVALID, "%s exists; resume it, remove it or choose another name", path);
        goto done;
    }
    if (exists) {
        SF_TRY(read_earlier(out, rows, resumed, error));
        if (ftruncate(out->fd, out->end) != 0 || lseek(out->fd, out->end, SEEK_SET) < 0) {
            status = sf_fail_errno(error, "continue", path);
            goto done;
        }
    }
    if (out->end == 0) { /* new, or not even its first line was whole */
        sealed = json_deep_copy(rows->config);
        line = sf_record_line(sealed, -1, 0, &length);
        if (!line) {
            status = sf_fail_memory(error);
            goto done;
        }
        SF_TRY(sf_record_unseal(sealed, line, length - 1, 0, &out->check, path, 1, error));
        SF_TRY(append(out, line, length, error));
    }
done:
    free(line);
    json_decref(sealed);
    if (status != SAFER_OK && out->fd >= 0) {
        close(out->fd);
        out->fd = -1;
    }
    return status;
}

/* -------------------------------------------------------------- the workers */

typedef struct pending {
    char *line;
    size_t length;
    json_t *record;
} pending;

typedef struct run {
    const sf_rows *rows;
    size_t first;     /* rows before it were done by an earlier run */
    pending *pending; /* a ring would do; a row's is empty but for the few waiting */
    size_t next;      /* the first record that is not written */
    output *output;
    pthread_mutex_t lock;
    sf_meter meter;
    char stage[64];
    safer_status status; /* the first failure, */
    safer_error error;   /* and its message */
} run;

/* Writes the records that have become first in line. The lock is held. */
static safer_status flush_records(run *r, safer_error *error)
{
    safer_status status = SAFER_OK;
    for (; r->next < r->rows->count && r->pending[r->next].line && status == SAFER_OK; r->next++) {
        pending *p = &r->pending[r->next];
        status = append(r->output, p->line, p->length, error);
        if (status == SAFER_OK) status = r->rows->add(r->rows->context, p->record, "a record", r->next + 2, error);
        free(p->line);
        json_decref(p->record);
        *p = (pending){0};
    }
    return status;
}

static safer_status do_row(run *r, size_t index, int worker, safer_error *error)
{
    pending p = {0};
    double seconds = 0;
    safer_status status = r->rows->work(r->rows->context, index, worker, &p.record, &seconds, error);
    if (status != SAFER_OK) return status;
    p.line = sf_record_line(p.record, seconds, r->output->check, &p.length);
    if (!p.line) {
        json_decref(p.record);
        return sf_fail_memory(error);
    }
    json_object_del(p.record, "seconds"); /* `add` sees records as they are read back */
    json_object_del(p.record, "check");
    pthread_mutex_lock(&r->lock);
    r->pending[index] = p;
    if (r->status == SAFER_OK) status = flush_records(r, error);
    if (worker == 0)
        r->rows->describe(r->rows->context, r->stage, sizeof r->stage); /* the caller's thread alone reads the stage */
    pthread_mutex_unlock(&r->lock);
    return status;
}

static void do_rows(void *context, size_t begin, size_t end, int worker)
{
    run *r = context;
    for (size_t i = begin; i < end; i++) {
        safer_error error = {0};
        if (sf_meter_cancelled(&r->meter)) return;
        safer_status status = do_row(r, r->first + i, worker, &error);
        if (status != SAFER_OK) {
            pthread_mutex_lock(&r->lock);
            if (r->status == SAFER_OK) {
                r->status = status;
                r->error = error;
            }
            pthread_mutex_unlock(&r->lock);
            atomic_store(&r->meter.cancelled, 1); /* nobody starts another row */
            return;
        }
        sf_meter_add(&r->meter, 1, worker);
    }
}

safer_status sf_rows_run(const sf_rows *rows, const char *path, int resume, size_t *resumed, safer_error *error)
{
    safer_status status;
    output file = {.fd = -1};
    run r = {.rows = rows, .output = &file};
    *resumed = 0;
    pthread_mutex_init(&r.lock, NULL);
    r.pending = sf_calloc(rows->count, sizeof *r.pending);
    if (!r.pending) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(open_output(&file, path, resume, rows, resumed, error));
    r.first = r.next = *resumed;
    rows->describe(rows->context, r.stage, sizeof r.stage);
    sf_meter_start(&r.meter, rows->progress, r.stage, rows->count - r.first);
    if (!sf_meter_cancelled(&r.meter)) sf_parallel(rows->threads, rows->count - r.first, 1, do_rows, &r);
    if (r.status != SAFER_OK) {
        status = r.status;
        if (error) *error = r.error;
        goto done;
    }
    SF_TRY(sf_meter_finish(&r.meter, error));
    if (file.fd >= 0 && fsync(file.fd) != 0 && errno != EINVAL && errno != EROFS)
        status = sf_fail_errno(error, "write", path);
done:
    for (size_t i = 0; r.pending && i < rows->count; i++) {
        free(r.pending[i].line);
        json_decref(r.pending[i].record);
    }
    if (file.fd >= 0) close(file.fd);
    free(r.pending);
    pthread_mutex_destroy(&r.lock);
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

int sf_rows_were_random(const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length = file ? getline(&line, &capacity, file) : -1;
    json_t *config = length > 0 ? json_loadb(line, (size_t)length, 0, NULL) : NULL;
    int random = json_is_true(json_object_get(json_object_get(config, "model"), "random"));
    json_decref(config);
    free(line);
    if (file) fclose(file);
    return random;
}
