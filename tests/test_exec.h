/* What the tests of programs as models share: children in Python, threads that ask, and a look at
 * what is left behind. */
#ifndef TESTS_TEST_EXEC_H
#define TESTS_TEST_EXEC_H

#include "support.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/progress.h"
#include "remote/remote.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static safer_error error;

static char *names[] = {(char[]){"neg"}, (char[]){"pos"}, (char[]){"other"}};
static const sf_labels labels = {.names = names, .count = 3};

/* ------------------------------------------------------------------ children */

/* Answers the number of bytes of a text modulo 3. */
#define PYTHON \
    "import json, os, random, signal, sys, time\n" \
    "def answer(request): return {'id': request['id'], 'labels': [len(t.encode()) % 3 for t in request['texts']]}\n" \
    "def say(object): print(json.dumps(object), flush=True)\n"

/* The command that runs a Python program, which begins with the above. The system's Python
 * first: others may be reached through wrappers that take seconds to start. */
static inline const char *python(const char *program)
{
    static char command[600];
    static int number;
    sf_buffer text = {0};
    char name[32];
    snprintf(name, sizeof name, "child%d.py", number++);
    assert_int_equal(sf_buffer_format(&text, "%s%s", PYTHON, program), 0);
    snprintf(command, sizeof command, "PATH=/usr/bin:$PATH exec python3 -S -E %s",
             write_temporary(name, text.bytes, text.length));
    sf_buffer_free(&text);
    return command;
}

static const char *honest(void) { return python("for line in sys.stdin: say(answer(json.loads(line)))\n"); }

/* ---------------------------------------------------------------- the harness */

static inline safer_remote_options defaults(void)
{
    return (safer_remote_options){.workers = 2, .timeout = 30, .retries = 3};
}

static inline sf_transport open_with(const char *command, safer_remote_options options)
{
    sf_transport t;
    assert_ok(sf_exec_open(&t, command, &labels, &options, &error));
    return t;
}

static inline sf_transport open_one(const char *command)
{
    safer_remote_options options = defaults();
    options.workers = 1;
    return open_with(command, options);
}

static inline safer_status ask_strings(sf_transport *t, const char *const *texts, size_t count, int *out)
{
    sf_span spans[8];
    for (size_t i = 0; i < count; i++) spans[i] = (sf_span){texts[i], strlen(texts[i])};
    return t->ask(t->self, spans, count, out, NULL, &error);
}

static inline safer_status ask_one(sf_transport *t, const char *text)
{
    int label;
    return ask_strings(t, &text, 1, &label);
}

static inline safer_traffic traffic_of(sf_transport *t)
{
    safer_traffic traffic = {0};
    t->tell(t->self, &traffic);
    return traffic;
}

static inline int count_fds(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* After every test: no file descriptor and no child, alive or dead, is left. */
static int fds_before;

static inline int note_fds(void **state)
{
    (void)state;
    fds_before = count_fds();
    return 0;
}

static inline int check_nothing_left(void **state)
{
    (void)state;
    if (count_fds() != fds_before) {
        print_error("%d file descriptors, %d before\n", count_fds(), fds_before);
        return -1;
    }
    if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) {
        print_error("there are children left\n");
        return -1;
    }
    return 0;
}

/* A group of threads that ask; every answer is checked. */
typedef struct crowd {
    sf_transport *transport;
    size_t each; /* requests of a thread */
    size_t batch;
    atomic_size_t wrong, failed, done;
    int next;
    safer_error error; /* of one that failed */
    pthread_mutex_t lock;
} crowd;

static inline void *crowd_member(void *argument)
{
    crowd *c = argument;
    char texts[16][64];
    sf_span spans[16];
    int out[16];
    pthread_mutex_lock(&c->lock);
    int self = c->next++;
    pthread_mutex_unlock(&c->lock);
    for (size_t n = 0; n < c->each; n++) {
        safer_error mine = {0};
        for (size_t i = 0; i < c->batch; i++) {
            int length = snprintf(texts[i], sizeof texts[i], "thread %d request %zu %.*s", self, n, (int)(n + i) % 7,
                                  "abcdefg");
            spans[i] = (sf_span){texts[i], (size_t)length};
            out[i] = 77;
        }
        if (c->transport->ask(c->transport->self, spans, c->batch, out, NULL, &mine) != SAFER_OK) {
            pthread_mutex_lock(&c->lock);
            c->error = mine;
            pthread_mutex_unlock(&c->lock);
            atomic_fetch_add(&c->failed, 1);
            break;
        }
        for (size_t i = 0; i < c->batch; i++)
            if (out[i] != (int)(spans[i].length % 3)) atomic_fetch_add(&c->wrong, 1);
        atomic_fetch_add(&c->done, 1);
    }
    return NULL;
}

enum { CROWD = 12 };

static inline void crowd_start(crowd *c, pthread_t threads[CROWD])
{
    pthread_mutex_init(&c->lock, NULL);
    for (int i = 0; i < CROWD; i++) assert_int_equal(pthread_create(&threads[i], NULL, crowd_member, c), 0);
}

static inline void crowd_end(crowd *c, pthread_t threads[CROWD])
{
    for (int i = 0; i < CROWD; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&c->lock);
}

static inline void check_crowd(crowd *c)
{
    if (atomic_load(&c->failed)) fail_msg("%s", c->error.message);
    assert_int_equal(atomic_load(&c->wrong), 0);
    assert_int_equal(atomic_load(&c->done), CROWD * c->each);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, note_fds, check_nothing_left)

#endif
