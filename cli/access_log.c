/* The access log of safer serve. */
#define _GNU_SOURCE
#include "access_log.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int open_file(const char *name)
{
    return open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
}

int cli_access_log_open(cli_access_log *log, const char *where)
{
    const int off = strcmp(where, "off") == 0, standard = strcmp(where, "-") == 0;
    *log = (cli_access_log){.name = off || standard ? NULL : where, .fd = standard ? STDERR_FILENO : -1};
    pthread_mutex_init(&log->lock, NULL);
    if (log->name) log->fd = open_file(log->name);
    return log->name && log->fd < 0 ? -1 : 0;
}

void cli_access_log_close(cli_access_log *log)
{
    if (log->name) close(log->fd);
    pthread_mutex_destroy(&log->lock);
}

int cli_access_log_reopen(cli_access_log *log)
{
    if (!log->name) return 0;
    const int fresh = open_file(log->name);
    if (fresh < 0) return -1;
    pthread_mutex_lock(&log->lock);
    const int old = log->fd;
    log->fd = fresh;
    pthread_mutex_unlock(&log->lock);
    close(old);
    return 0;
}

/* One write per line, so that no other program's line gets into it. What cannot be written is lost: a full disk is no
 * reason to answer nobody. */
void cli_access_log_write(void *context, const char *line)
{
    cli_access_log *log = context;
    struct iovec parts[] = {{(void *)(uintptr_t)line, strlen(line)}, {(void *)(uintptr_t) "\n", 1}};
    pthread_mutex_lock(&log->lock);
    ssize_t written = writev(log->fd, parts, 2);
    (void)written;
    pthread_mutex_unlock(&log->lock);
}
