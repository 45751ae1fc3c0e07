/* The access log of safer serve: a line per request, to standard error, to a file, or nowhere. */
#ifndef CLI_ACCESS_LOG_H
#define CLI_ACCESS_LOG_H

#include <pthread.h>

typedef struct cli_access_log {
    const char *name; /* of the file; NULL: it is none. Borrowed */
    int fd;           /* -1: there is no log */
    pthread_mutex_t lock;
} cli_access_log;

/* `where`: "-" for standard error, "off", or the name of a file, which is appended to. 0, or -1 with errno. */
int cli_access_log_open(cli_access_log *log, const char *where);
void cli_access_log_close(cli_access_log *log);

/* Opens the file again by its name, since something may have moved it away. Where that fails, -1 with errno, the old
 * one stays. */
int cli_access_log_reopen(cli_access_log *log);

/* For safer_serve_options.log; the context is the log. */
void cli_access_log_write(void *log, const char *line);

#endif
