/* Texts per second through exec:COMMAND beside what a bare pipe moves.
 *
 * 250-word texts, 64 per request, to as many children as there are cores. The child is
 * examples/exec_server --fixed 1, which finds the texts in each line and answers. The
 * reference, in turns with it, moves lines of the same bytes to as many children that only
 * read them. Both are given by the best of several short rounds: on a busy machine some run
 * undisturbed. First the answers are checked, with texts that need escapes. The child is
 * looked for beside the build's bench folder, or given with --child PATH; with --json one
 * object for programs. */
#define _GNU_SOURCE
#include "base/buffer.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "remote/remote.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORDS = 250,
    BATCH = 64,
    TEXTS = 1024,
    REQUESTS = 1024,
    ROUNDS = 7,
    PIPE_BYTES = 1 << 20,
    READ_BYTES = 1 << 18,
    MAX_WORKERS = 64
};

static void check(int ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "bench_exec: %s\n", what);
    exit(1);
}

typedef struct fixture {
    sf_transport transport;
    sf_buffer bytes;
    sf_span texts[TEXTS];
    sf_buffer line; /* a request's, as the child gets it */
    int workers;
    int pipes[MAX_WORKERS]; /* to the children that only read */
} fixture;

/* Words of 3 to 7 letters, now and then a quote or the end of a line. */
static void make_texts(fixture *x)
{
    size_t starts[TEXTS + 1];
    uint64_t state = 1;
    for (size_t i = 0; i < TEXTS; i++) {
        starts[i] = x->bytes.length;
        for (int w = 0; w < WORDS; w++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
            check(sf_buffer_format(&x->bytes, "%.*s%c", 3 + (int)(state >> 60) % 5, &"stories"[(state >> 50) % 3],
                                   w % 100 == 60   ? '\n'
                                   : w % 100 == 30 ? '"'
                                                   : ' ') == 0,
                  "out of memory");
        }
    }
    starts[TEXTS] = x->bytes.length;
    for (size_t i = 0; i < TEXTS; i++) x->texts[i] = (sf_span){x->bytes.bytes + starts[i], starts[i + 1] - starts[i]};
}

static void make_line(fixture *x)
{
    sf_buffer_add_string(&x->line, "{\"id\":1000,\"texts\":[");
    for (size_t i = 0; i < BATCH; i++) {
        sf_buffer_add_string(&x->line, i ? ",\"" : "\"");
        for (size_t k = 0; k < x->texts[i].length; k++) {
            char c = x->texts[i].bytes[k];
            if (c == '"') sf_buffer_add_byte(&x->line, '\\');
            sf_buffer_add_string(&x->line, c == '\n' ? "\\n" : (char[]){c, '\0'});
        }
        sf_buffer_add_byte(&x->line, '"');
    }
    check(sf_buffer_add_string(&x->line, "]}\n") == 0, "out of memory");
}

static void ask(void *context, size_t begin, size_t end, int worker)
{
    fixture *x = context;
    safer_error error = {0};
    int labels[BATCH];
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        memset(labels, 0, sizeof labels);
        check(x->transport.ask(x->transport.self, x->texts + i * BATCH % TEXTS, BATCH, labels, NULL, &error) ==
                  SAFER_OK,
              error.message);
        for (size_t k = 0; k < BATCH; k++) check(labels[k] == 1, "a wrong answer");
    }
}

static void push(void *context, size_t begin, size_t end, int worker)
{
    fixture *x = context;
    for (size_t i = begin; i < end; i++)
        for (size_t done = 0; done < x->line.length;) {
            ssize_t put = write(x->pipes[worker], x->line.bytes + done, x->line.length - done);
            check(put > 0, "cannot write");
            done += (size_t)put;
        }
}

/* Children that read and do nothing. Before there are threads: a plain fork will do. */
static void start_readers(fixture *x)
{
    static char bytes[READ_BYTES];
    for (int i = 0; i < x->workers; i++) {
        int ends[2];
        check(pipe2(ends, O_CLOEXEC) == 0, "cannot make a pipe");
        fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
        pid_t pid = fork();
        check(pid >= 0, "cannot fork");
        if (pid == 0) {
            for (int k = 0; k < i; k++) close(x->pipes[k]);
            close(ends[1]);
            while (read(ends[0], bytes, sizeof bytes) > 0) {}
            _exit(0);
        }
        close(ends[0]);
        x->pipes[i] = ends[1];
    }
}

static double seconds(int threads, sf_task task, fixture *x)
{
    double start = sf_seconds();
    sf_parallel(threads, REQUESTS, 1, task, x);
    return sf_seconds() - start;
}

/* BUILD/examples/exec_server for BUILD/bench/bench_exec */
static const char *find_child(char path[512])
{
    ssize_t length = readlink("/proc/self/exe", path, 400);
    check(length > 0, "cannot find itself");
    path[length] = '\0';
    for (int i = 0; i < 2; i++) *strrchr(path, '/') = '\0';
    return strcat(path, "/examples/exec_server");
}

static void find_cpu(char *name, size_t size)
{
    char line[512];
    FILE *info = fopen("/proc/cpuinfo", "r");
    snprintf(name, size, "unknown");
    while (info && fgets(line, sizeof line, info))
        if (strncmp(line, "model name", 10) == 0) {
            snprintf(name, size, "%s", strchr(line, ':') + 2);
            name[strcspn(name, "\n")] = '\0';
            break;
        }
    if (info) fclose(info);
}

int main(int argc, char **argv)
{
    static fixture x;
    char path[512], command[600], cpu[256];
    char *names[] = {(char[]){"0"}, (char[]){"1"}};
    sf_labels labels = {.names = names, .count = 2, .numbers = 1};
    safer_remote_options options = {.timeout = 60, .retries = 0, .batch = BATCH};
    safer_error error = {0};
    int json = 0;
    double ours = 1e9, bare = 1e9;
    const char *child = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) json = 1;
        if (strcmp(argv[i], "--child") == 0 && i + 1 < argc) child = argv[++i];
    }
    if (!child) child = find_child(path);
    x.workers = sf_cores() < MAX_WORKERS ? sf_cores() : MAX_WORKERS;
    make_texts(&x);
    make_line(&x);
    start_readers(&x);
    snprintf(command, sizeof command, "exec '%s' --fixed 1", child);
    options.workers = x.workers;
    check(sf_exec_open(&x.transport, command, &labels, &options, &error) == SAFER_OK, error.message);
    ask(&x, 0, TEXTS / BATCH, 0);

    for (int i = 0; i < ROUNDS; i++) {
        double t = seconds(x.transport.concurrency, ask, &x);
        if (t < ours) ours = t;
        t = seconds(x.workers, push, &x);
        if (t < bare) bare = t;
    }
    x.transport.free(x.transport.self);
    for (int i = 0; i < x.workers; i++) close(x.pipes[i]);
    while (wait(NULL) > 0) {}
    double megabytes = 1e-6 * REQUESTS * (double)x.line.length, rate = (double)REQUESTS * BATCH / ours;
    find_cpu(cpu, sizeof cpu);
    if (json)
        printf(
            "{\"cpu\": \"%s\", \"workers\": %d, \"batch\": %d, \"bytes_per_text\": %zu, \"texts_s\": %.0f, \"mb_s\": %.0f, "
            "\"bare_mb_s\": %.0f, \"ratio\": %.3f}\n",
            cpu, x.workers, BATCH, x.line.length / BATCH, rate, megabytes / ours, megabytes / bare, bare / ours);
    else
        printf(
            "%s, %d workers, %d texts of %d words (%zu bytes) per request\nexec %.0f texts/s, %.0f MB/s; bare pipe %.0f texts/s, %.0f MB/s; "
            "ratio %.2f\n",
            cpu, x.workers, BATCH, WORDS, x.line.length / BATCH, rate, megabytes / ours,
            (double)REQUESTS * BATCH / bare, megabytes / bare, bare / ours);
    sf_buffer_free(&x.bytes);
    sf_buffer_free(&x.line);
    return 0;
}
