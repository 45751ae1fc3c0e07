/* safer serve */
#define _GNU_SOURCE
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { OTHER_FILES = 64 }; /* that are open besides connections: the model's programs and sockets, standard streams */

static void log_line(void *context, const char *line)
{
    (void)context;
    fprintf(stderr, "%s\n", line);
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
static void allow_files(uint64_t connections, const cli_verb *verb)
{
    struct rlimit limit;
    const rlim_t need = connections + OTHER_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need) return;
    if (limit.rlim_max < need)
        cli_misuse(verb, "--connections %llu: at most %llu, since ulimit -n allows %llu open files",
                   (unsigned long long)connections,
                   (unsigned long long)(limit.rlim_max > OTHER_FILES ? limit.rlim_max - OTHER_FILES : 0),
                   (unsigned long long)limit.rlim_max);
    limit.rlim_cur = need;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int cli_serve(int argc, char **argv)
{
    static const cli_verb verb = {
        "serve",
        "--model M --lexicon L [options]",
        "Answers over HTTP: labels of the smoothed classifier and their certificates, for programs and,\n"
        "in a browser, for people. Listens on this machine alone unless --host says otherwise. Stops\n"
        "on Ctrl-C or SIGTERM when all that was asked is answered.",
        "  safer serve --model cnn.safetensors --lexicon imdb.lex\n"
        "  SAFER_TOKEN=... safer serve --model cnn.safetensors --lexicon imdb.lex --host 0.0.0.0 --auth-env SAFER_TOKEN\n",
        0,
        0};
    const char *lexicon_path = NULL, *auth_env = NULL, *auth_file = NULL;
    cli_model_flags m = cli_model_default();
    cli_certify_flags c = cli_certify_default();
    safer_serve_options o = safer_serve_options_default();
    int port = o.port;
    uint64_t max_body = o.max_body, max_text = o.max_text, max_texts = o.max_texts, queue = o.queue,
             connections = o.connections;
    c.options.seed = UINT64_MAX; /* not given */
    const cli_option options[] = {
        {NULL, CLI_HEADING, NULL, NULL, "What"},
        CLI_MODEL_OPTIONS(m),
        {"lexicon", CLI_STRING, &lexicon_path, "FILE", "synonyms and kernel, from safer lexicon"},
        {NULL, CLI_HEADING, NULL, NULL, "Where and for whom"},
        {"host", CLI_STRING, &o.host, "ADDRESS", "address to listen at (default 127.0.0.1)"},
        {"port", CLI_INT, &port, "N", "port; 0 for any that is free (default 8080)"},
        {"auth-env", CLI_STRING, &auth_env, "VAR",
         "the environment variable with the bearer token that clients must send"},
        {"auth-file", CLI_STRING, &auth_file, "FILE", "a file with that token in its first line"},
        {"without-token", CLI_FLAG, &o.without_token, NULL, "let anybody who can reach --host ask"},
        {NULL, CLI_HEADING, NULL, NULL, "Certificate"},
        CLI_TEST_OPTIONS(c),
        {"radius", CLI_STRING, &c.radius, "R", "words the attacker may change: a number or all (default all)"},
        {"seed", CLI_UINT, &c.options.seed, "N", "of the random draws (default: a fresh one, kept secret)"},
        {"batch", CLI_UINT, &c.batch, "N", "draws asked at once (default 256); results do not depend on it"},
        {NULL, CLI_HEADING, NULL, NULL, "Limits"},
        {"max-body", CLI_UINT, &max_body, "BYTES", "of a request (default 1048576)"},
        {"max-text", CLI_UINT, &max_text, "BYTES", "of a text (default 100000)"},
        {"max-texts", CLI_UINT, &max_texts, "N", "texts of a request (default 64)"},
        {"queue", CLI_UINT, &queue, "N", "texts that wait; more are sent away (default 1024)"},
        {"connections", CLI_UINT, &connections, "N", "open at a time (default 1024)"},
        {"deadline", CLI_REAL, &o.deadline, "S", "seconds until a request must be answered (default 30)"},
        {"patience", CLI_REAL, &o.patience, "S",
         "seconds in which a request must come in, and an answer go out (default 20)"},
        {"log-texts", CLI_FLAG, &o.log_texts, NULL, "write the texts into the log too"},
        CLI_REMOTE_OPTIONS(m),
        {0},
    };
    cli_parse(argc, argv, &verb, options);
    if (!m.path) cli_misuse(&verb, "--model MODEL is needed");
    if (!lexicon_path) cli_misuse(&verb, "--lexicon FILE is needed");
    if (port > 65535) cli_misuse(&verb, "--port %d: 0 to 65535", port);
    if (auth_env && auth_file) cli_misuse(&verb, "--auth-env and --auth-file: only one of them");
    o.fixed_seed = c.options.seed != UINT64_MAX;
    if (!o.fixed_seed) c.options.seed = 0;
    cli_certify_finish(&c, &verb);
    if (auth_env && !(o.token = getenv(auth_env)))
        cli_misuse(&verb, "--auth-env %s: there is no such variable", auth_env);
    char *token = auth_file ? read_token(auth_file) : NULL;
    if (token) o.token = token;
    o.certify = c.options;
    o.port = (uint16_t)port;
    o.max_body = max_body;
    o.max_text = max_text;
    o.max_texts = max_texts;
    o.queue = queue;
    o.connections = connections;
    if (connections <= 1 << 20) allow_files(connections, &verb); /* more are refused anyway */
    if (!cli_settings()->quiet) o.log = log_line;

    /* Signals come to this thread alone, when it waits for them. */
    sigset_t ends;
    int received;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN); /* whoever read the log may be gone */

    safer_error error = {0};
    safer_server *server = NULL;
    safer_model *model = cli_model_open(&m, &verb, NULL);
    safer_lexicon *lexicon = cli_lexicon_open(lexicon_path);
    cli_note_training(model, lexicon);
    int code = CLI_DONE;
    if (safer_server_start(&server, model, lexicon, &o, &error) != SAFER_OK) {
        code = cli_fail(&error);
    } else {
        if (cli_settings()->json)
            cli_print_json(
                json_pack("{s:s, s:i}", "url", safer_server_url(server), "port", (int)safer_server_port(server)));
        else
            printf("listening on %s\n", safer_server_url(server));
        code = cli_finish(CLI_DONE);
        if (code == CLI_DONE) sigwait(&ends, &received);
        cli_say("stopping; again to stop at once");
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        pthread_sigmask(SIG_UNBLOCK, &ends, NULL);
        safer_server_stop(server);
    }
    free(token);
    safer_lexicon_free(lexicon);
    safer_model_free(model);
    return code;
}
