/* safer serve: the options of the server, and its life from the first signal to the last. What it answers is the
 * library's business (src/serve). */
#define _GNU_SOURCE
#include "access_log.h"
#include "certify_options.h"
#include "data_options.h"
#include "model_options.h"
#include "notify.h"
#include "verbs.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    OTHER_FILES = 96
}; /* open besides connections: the model's programs and sockets, standard streams, connections
                            * that are being closed */

/* ----------------------------------------------------------------- options */

/* The options as they are typed. */
typedef struct flags {
    const char *second, *lexicon, *auth_env, *auth_file, *access_log;
    int port;
    int terminal; /* it was started at one */
    uint64_t max_body, max_text, max_texts, queue, connections, client_connections;
    cli_model_flags model;
    cli_certify_flags certify;
    cli_access_log log;
    safer_serve_options serve; /* what needs no check is typed into it */
} flags;

#define SEED_NOT_GIVEN UINT64_MAX

static void list(cli_options *options, void *into)
{
    const safer_serve_options o = safer_serve_options_default();
    flags *f = into;
    *f = (flags){.port = o.port,
                 .max_body = o.max_body,
                 .max_text = o.max_text,
                 .max_texts = o.max_texts,
                 .queue = o.queue,
                 .connections = o.connections,
                 .client_connections = o.client_connections,
                 .model = cli_model_default(),
                 .certify = cli_certify_default(),
                 .serve = o};
    f->certify.options.seed = SEED_NOT_GIVEN;
    cli_add_heading(options, "What");
    cli_model_options(options, &f->model);
    cli_add_path(options, "lexicon", &f->lexicon, "FILE", "synonyms and kernel, from safer lexicon");
    cli_add_path(options, "second", &f->second, "MODEL", "a second model, to compare: its answers stand beside");
    cli_add_heading(options, "Where and for whom");
    cli_add_string(options, "host", &f->serve.host, "ADDRESS", "address to listen at (default {default})");
    cli_add_int(options, "port", &f->port, "N", "port; 0 for any that is free (default {default})");
    cli_add_string(options, "auth-env", &f->auth_env, "VAR",
                   "the environment variable with the bearer token that clients must send");
    cli_add_path(options, "auth-file", &f->auth_file, "FILE", "a file with that token in its first line");
    cli_add_flag(options, "without-token", &f->serve.without_token, "let anybody who can reach --host ask");
    cli_add_heading(options, "Certificate");
    cli_certify_options(options, &f->certify, "of the random draws (default: a fresh one, kept secret)");
    cli_add_heading(options, "Limits");
    cli_add_uint(options, "max-body", &f->max_body, "BYTES", "of a request (default {default})");
    cli_add_uint(options, "max-text", &f->max_text, "BYTES", "of a text (default {default})");
    cli_add_uint(options, "max-texts", &f->max_texts, "N", "texts of a request (default {default})");
    cli_add_uint(options, "queue", &f->queue, "N", "texts that wait; more are sent away (default {default})");
    cli_add_uint(options, "connections", &f->connections, "N", "open at a time (default {default})");
    cli_add_uint(options, "client-connections", &f->client_connections, "N",
                 "of them of one address; 0: any (default {default})");
    cli_add_real(options, "client-rate", &f->serve.client_rate, "R",
                 "requests per second of one address; 0: any (default {default})");
    cli_add_real(options, "deadline", &f->serve.deadline, "S",
                 "seconds until a request must be answered (default {default})");
    cli_add_real(options, "patience", &f->serve.patience, "S",
                 "seconds in which a request must come in, and an answer go out (default {default})");
    cli_add_heading(options, "Log");
    cli_add_path(options, "access-log", &f->access_log, "FILE",
                 "file for a line of JSON per request; - is standard error, off is none (default: standard error)");
    cli_add_flag(options, "log-texts", &f->serve.log_texts, "write the texts into the log too");
    cli_remote_options(options, &f->model);
}

static void check_flags(const flags *f)
{
    if (!f->model.path) cli_misuse(&cli_serve, "--model MODEL is needed");
    if (!f->lexicon) cli_misuse(&cli_serve, "--lexicon FILE is needed");
    if (f->port > 65535) cli_misuse(&cli_serve, "--port %d: 0 to 65535", f->port);
    if (f->auth_env && f->auth_file) cli_misuse(&cli_serve, "--auth-env and --auth-file: only one of them");
}

/* The first line of a file; the caller frees it. Or exits. */
static char *read_token(const char *path)
{
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(path, "re");
    ssize_t length = file ? getline(&line, &capacity, file) : -1;
    if (length < 0) {
        cli_complain("cannot read a token from %s: %s", path, file && feof(file) ? "it is empty" : strerror(errno));
        exit(file && feof(file) ? CLI_INPUT : CLI_SYSTEM);
    }
    fclose(file);
    while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) line[--length] = '\0';
    return line;
}

/* Every connection is an open file. Were there too few for all, clients could leave none for the model. */
static void allow_files(uint64_t connections)
{
    struct rlimit limit;
    const rlim_t need = connections + OTHER_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need) return;
    if (limit.rlim_max < need)
        cli_misuse(&cli_serve, "--connections %llu: at most %llu, since ulimit -n allows %llu open files",
                   (unsigned long long)connections,
                   (unsigned long long)(limit.rlim_max > OTHER_FILES ? limit.rlim_max - OTHER_FILES : 0),
                   (unsigned long long)limit.rlim_max);
    limit.rlim_cur = need;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Opens the log, or exits. */
static void open_log(flags *f, safer_serve_options *o)
{
    const char *where = f->access_log ? f->access_log : cli_settings()->quiet ? "off" : "-";
    if (cli_access_log_open(&f->log, where)) {
        cli_complain("cannot open --access-log %s: %s", where, strerror(errno));
        exit(CLI_SYSTEM);
    }
    if (f->log.fd < 0) return;
    o->log = cli_access_log_write;
    o->log_context = &f->log;
}

/* The server's options, checked. *token is what their token lies in, where it was read from a file;
 * the caller frees it. */
static safer_serve_options serve_options(flags *f, char **token)
{
    safer_serve_options o = f->serve;
    if (f->certify.options.seed == SEED_NOT_GIVEN && f->certify.groups) /* the classifier depends on it */
        f->certify.options.seed = safer_certify_options_default().seed;
    o.fixed_seed = f->certify.options.seed != SEED_NOT_GIVEN;
    if (!o.fixed_seed) f->certify.options.seed = 0;
    cli_certify_finish(&f->certify, &cli_serve);
    if (f->auth_env && !(o.token = getenv(f->auth_env)))
        cli_misuse(&cli_serve, "--auth-env %s: there is no such variable", f->auth_env);
    if (f->auth_file) o.token = *token = read_token(f->auth_file);
    o.port = (uint16_t)f->port;
    o.max_body = f->max_body;
    o.max_text = f->max_text;
    o.max_texts = f->max_texts;
    o.queue = f->queue;
    o.connections = f->connections;
    o.client_connections = f->client_connections;
    if (f->connections <= 1 << 20) allow_files(f->connections); /* more are refused anyway */
    open_log(f, &o);
    return o;
}

/* ----------------------------------------------------------------- serving */

/* What is served. */
typedef struct pair {
    safer_model *model;
    safer_lexicon *lexicon;
} pair;

static void pair_free(pair *p)
{
    safer_lexicon_free(p->lexicon);
    safer_model_free(p->model);
}

/* With this one a thread says to another, which waits for signals, that it is done. */
enum { DONE = SIGUSR1 };

static sigset_t or_done(const sigset_t *ends)
{
    sigset_t both = *ends;
    sigaddset(&both, DONE);
    return both;
}

/* From now on these signals are waited for. Call it before there are other threads: they inherit it. */
static void hold_signals(sigset_t *ends)
{
    sigset_t all;
    sigemptyset(ends);
    sigaddset(ends, SIGINT);
    sigaddset(ends, SIGTERM);
    all = or_done(ends);
    sigaddset(&all, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    signal(SIGPIPE, SIG_IGN); /* what reads the log may have ended */
}

/* Until the server runs, a signal ends the program: a model that is asked at the start may be silent. */
static void *end_at_signal(void *ends)
{
    const sigset_t both = or_done(ends);
    int received;
    sigwait(&both, &received);
    if (received != DONE) _exit(CLI_INTERRUPTED);
    return NULL;
}

/* A remote model has no digest. */
static const char *describe(const char *sha256) { return *sha256 ? sha256 : "(remote)"; }

/* Answers what was asked; the next signal ends the program at once. */
static void stop(safer_server *server, const sigset_t *ends)
{
    cli_notify("STOPPING=1");
    cli_say("stopping; again to stop at once");
    cli_interrupt_grace(0);
    pthread_sigmask(SIG_UNBLOCK, ends, NULL);
    safer_server_stop(server);
}

/* A server that reloads, while another thread waits for a signal. */
typedef struct reloading {
    safer_server *server;
    const sigset_t *ends;
    atomic_int ending; /* the other thread has taken the server over, and will end the program */
} reloading;

/* A new model may be large, or silent: who wants the server to end does not wait for it. */
static void *stop_at_signal(void *argument)
{
    reloading *r = argument;
    const sigset_t both = or_done(r->ends);
    int received;
    sigwait(&both, &received);
    if (received == DONE) return NULL;
    atomic_store(&r->ending, 1);
    stop(r->server, r->ends); /* takes far longer than the way from the look at `ending` into safer_server_reload */
    _exit(CLI_DONE);          /* the other thread may be anywhere */
}

/* Opens the files again, or connects again, and serves what is there now. */
static safer_status exchange(reloading *r, flags *f, pair *served, safer_error *error)
{
    pair fresh = {0};
    safer_status status = cli_model_try(&fresh.model, &f->model, NULL, error);
    if (status == SAFER_OK) status = safer_lexicon_open(&fresh.lexicon, f->lexicon, error);
    if (status == SAFER_OK)
        status = atomic_load(&r->ending) ? SAFER_CANCELLED
                                         : safer_server_reload(r->server, fresh.model, fresh.lexicon, error);
    pair_free(status == SAFER_OK ? served : &fresh);
    malloc_trim(0); /* a model is large, and its memory would stay ours */
    if (status == SAFER_OK) *served = fresh;
    return status;
}

/* Reloads, or says why not and goes on with the old, unless a signal ends the program meanwhile. */
static void reload(safer_server *server, flags *f, pair *served, const sigset_t *ends)
{
    reloading r = {.server = server, .ends = ends};
    safer_error error = {0};
    pthread_t thread;
    const int watched = pthread_create(&thread, NULL, stop_at_signal, &r) == 0;
    const safer_status status = exchange(&r, f, served, &error);
    if (status == SAFER_OK) {
        cli_note_training(served->model, served->lexicon, f->certify.options.deletion);
        cli_say("reloaded: model %s, lexicon %s", describe(safer_model_sha256(served->model)),
                describe(safer_lexicon_sha256(served->lexicon)));
    } else if (status != SAFER_CANCELLED) {
        cli_complain("not reloaded, the old model and lexicon stay: %s", cli_message(&error));
    }
    if (!watched) return;
    pthread_kill(thread, DONE);
    pthread_join(thread, NULL); /* which has taken no signal, or ends the program */
}

/* Waits for a signal that ends the server. SIGHUP reloads what it serves, unless it came because the terminal is
 * gone. */
static void wait_for_end(safer_server *server, flags *f, pair *served, const sigset_t *ends)
{
    const struct timespec at_once = {0};
    sigset_t all = *ends;
    sigaddset(&all, SIGHUP);
    for (;;) {
        int received = 0;
        sigwait(&all, &received);
        if (received != SIGHUP || sigtimedwait(ends, NULL, &at_once) > 0) return;
        if (f->terminal && !isatty(STDERR_FILENO)) return;
        if (cli_access_log_reopen(&f->log))
            cli_complain("cannot open --access-log %s: %s", f->access_log, strerror(errno));
        cli_notify("RELOADING=1");
        reload(server, f, served, ends);
        cli_notify("READY=1");
    }
}

/* Says where the server listens, and ends it when a signal comes. */
static int serve_until_signal(safer_server *server, flags *f, pair *served, const sigset_t *ends)
{
    if (cli_settings()->json)
        cli_print_json(
            json_pack("{s:s, s:i}", "url", safer_server_url(server), "port", (int)safer_server_port(server)));
    else
        printf("listening on %s\n", safer_server_url(server));
    int code = cli_finish(CLI_DONE);
    if (geteuid() == 0)
        cli_say("warning: running as root, which nothing here needs; docs/serve.md has a service for systemd");
    cli_notify("READY=1");
    if (code == CLI_DONE) wait_for_end(server, f, served, ends);
    stop(server, ends);
    return code;
}

/* By the same options as the first; or NULL. */
static safer_model *open_second(const flags *f)
{
    cli_model_flags m = f->model;
    m.path = f->second;
    return m.path ? cli_model_open(&m, &cli_serve, NULL) : NULL;
}

static int run(void *from, char **arguments, size_t count)
{
    flags *f = from;
    char *token = NULL;
    int watched;
    pthread_t watch;
    sigset_t ends;
    safer_error error = {0};
    safer_server *server = NULL;
    (void)arguments, (void)count;
    check_flags(f);
    f->terminal = isatty(STDERR_FILENO);
    safer_serve_options options = serve_options(f, &token);
    hold_signals(&ends);
    watched = pthread_create(&watch, NULL, end_at_signal, &ends) == 0;
    pair served = {.model = cli_model_open(&f->model, &cli_serve, NULL), .lexicon = cli_lexicon_open(f->lexicon)};
    cli_note_training(served.model, served.lexicon, f->certify.options.deletion);
    safer_model *second = open_second(f);
    options.second = second;
    int started = safer_server_start(&server, served.model, served.lexicon, &f->certify.options, &options, &error) ==
                  SAFER_OK;
    if (watched) {
        pthread_kill(watch, DONE);
        pthread_join(watch, NULL);
    }
    int code = started ? serve_until_signal(server, f, &served, &ends) : cli_fail(&error);
    free(token);
    pair_free(&served);
    safer_model_free(second);
    cli_access_log_close(&f->log);
    return code;
}

const cli_verb cli_serve = {
    .name = "serve",
    .brief = "answer over HTTP, for programs and in a browser",
    .usage = "--model M --lexicon L [options]",
    .summary = "Answers over HTTP: labels of the smoothed classifier and their certificates, for programs and,\n"
               "in a browser, for people. Listens on this machine alone unless --host says otherwise. Stops\n"
               "on Ctrl-C or SIGTERM when all that was asked is answered; on SIGHUP it reads model and lexicon again.",
    .examples = "  safer serve --model cnn.safetensors --lexicon imdb.lex\n"
                "  SAFER_TOKEN=... safer serve --model cnn.safetensors --lexicon imdb.lex \\\n"
                "      --host 0.0.0.0 --auth-env SAFER_TOKEN\n",
    .request_size = sizeof(flags),
    .list = list,
    .run = run,
};
