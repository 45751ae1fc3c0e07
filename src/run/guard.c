/* Records, and a remote model that is found to change its answers. */
#define _GNU_SOURCE
#include "run/guard.h"

#include "base/buffer.h"
#include "run/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static safer_status name_changed(sf_buffer *out, const char *path, safer_error *error)
{
    return sf_buffer_format(out, "%s.changed", path) ? sf_fail_memory(error) : SAFER_OK;
}

safer_status sf_guard_begin(sf_guard *out, const char *path, int resume, const safer_model *model, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_buffer changed = {0};
    *out = (sf_guard){.path = path, .model = model};
    if (!path || !sf_model_is_remote(model)) return SAFER_OK;
    json_t *config = sf_sealed_config(path);
    if (resume && json_is_true(json_object_get(json_object_get(config, "model"), "random"))) sf_model_set_random(model);
    if (sf_model_is_random(model)) goto done;
    out->on = resume || !config;
    SF_TRY(name_changed(&changed, path, error));
    if (resume && access(path, F_OK) != 0 && access(changed.bytes, F_OK) == 0)
        status = sf_fail(error, SAFER_INPUT,
                         "%s: the model changed its answers while these records were made, so they cannot be "
                         "continued. Declare it random; or, if it was mended, remove that file",
                         changed.bytes);
done:
    json_decref(config);
    sf_buffer_free(&changed);
    return status;
}

/* Whether the file holds records of the model under its name. */
static int is_of(const char *path, const safer_model *model)
{
    json_t *config = sf_sealed_config(path);
    const char *name = json_string_value(json_object_get(json_object_get(config, "model"), "name"));
    const int is = name && model->name && strcmp(name, model->name) == 0;
    json_decref(config);
    return is;
}

void sf_guard_end(const sf_guard *guard, safer_error *error)
{
    sf_buffer changed = {0};
    if (!guard->on || !sf_model_is_random(guard->model)) return;
    if (strncmp(guard->path, "/proc/self/fd/", 14) == 0) return; /* a file without a name: nobody can continue it */
    const int fd = open(guard->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    const int busy = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0 && !busy && is_of(guard->path, guard->model) &&
        name_changed(&changed, guard->path, error) == SAFER_OK) {
        const int failed = rename(guard->path, changed.bytes) != 0;
        const size_t said = error ? strlen(error->message) : 0;
        if (error)
            snprintf(error->message + said, sizeof error->message - said,
                     failed ? ". The model changed its answers: do not continue the records in %s"
                            : ". The model changed its answers: the records so far are now in %s; begin anew",
                     failed ? guard->path : changed.bytes);
    }
    if (fd >= 0) close(fd);
    sf_buffer_free(&changed);
}
