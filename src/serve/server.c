/* Starting and stopping the server, and letting it serve something else. include/safer/serve.h says what is promised;
 * docs/serve.md says it for users. */
#define _GNU_SOURCE
#include "serve/server.h"

#include "base/memory.h"
#include "base/options.h"
#include "certify/certificate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TOKEN_BYTES = 16 };
enum { SPARE = 32 };                   /* connections that were shut, to make room, and are still to be closed */
#define HANDSHAKE_NANOSECONDS 50000000 /* that a client takes to finish one, at most */
#define QUIET_SECONDS 0.25             /* a connection that was silent for so long has nothing under way */

void safer_serve_options_init(safer_serve_options *options, size_t size)
{
    static const safer_serve_options defaults = {.host = "127.0.0.1",
                                                 .port = 8080,
                                                 .max_body = 1 << 20,
                                                 .max_text = 100000,
                                                 .max_texts = 64,
                                                 .queue = 1024,
                                                 .connections = 1024,
                                                 .client_connections = 256,
                                                 .deadline = 30,
                                                 .patience = 20};
    sf_options_init(options, size, &defaults, sizeof defaults);
}

/* ----------------------------------------------------------------- options */

static safer_status check_token(const char *token, safer_error *error)
{
    if (strlen(token) < TOKEN_BYTES)
        return sf_fail(error, SAFER_INVALID, "`token`: a token has at least %d characters", TOKEN_BYTES);
    for (const char *c = token; *c; c++)
        if (*c <= 0x20 || *c >= 0x7f)
            return sf_fail(error, SAFER_INVALID, "`token`: a token has visible ASCII characters only");
    return SAFER_OK;
}

static safer_status check_options(const safer_serve_options *o, safer_error *error)
{
    if (o->max_body < 1 || o->max_body > 1 << 30)
        return sf_fail(error, SAFER_INVALID, "`max_body`: %zu (1 to 1073741824)", o->max_body);
    if (o->max_text < 1 || o->max_text > o->max_body)
        return sf_fail(error, SAFER_INVALID, "`max_text`: %zu (1 to `max_body`)", o->max_text);
    if (o->max_texts < 1 || o->max_texts > o->queue)
        return sf_fail(error, SAFER_INVALID, "`max_texts`: %zu (1 to `queue`)", o->max_texts);
    if (o->queue > 1 << 24) return sf_fail(error, SAFER_INVALID, "`queue`: %zu (at most 16777216)", o->queue);
    if (o->connections < 1 || o->connections > 1 << 20)
        return sf_fail(error, SAFER_INVALID, "`connections`: %zu (1 to 1048576)", o->connections);
    if (!(o->client_rate >= 0 && o->client_rate <= 1e6))
        return sf_fail(error, SAFER_INVALID, "`client_rate`: %g (0 to 1000000)", o->client_rate);
    if (!(o->deadline > 0 && o->deadline <= 86400))
        return sf_fail(error, SAFER_INVALID, "`deadline`: %g (above 0, at most 86400 seconds)", o->deadline);
    if (!(o->patience > 0 && o->patience <= 86400))
        return sf_fail(error, SAFER_INVALID, "`patience`: %g (above 0, at most 86400 seconds)", o->patience);
    return o->token ? check_token(o->token, error) : SAFER_OK;
}

/* ------------------------------------------------------------------ socket */

typedef struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at;
    socklen_t length;
    int loopback;
} address;

static safer_status read_address(address *out, const char *host, uint16_t port, safer_error *error)
{
    *out = (address){0};
    if (strcmp(host, "localhost") == 0) host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &out->at.v4.sin_addr) == 1) {
        out->at.v4.sin_family = AF_INET;
        out->at.v4.sin_port = htons(port);
        out->length = sizeof out->at.v4;
        out->loopback = ntohl(out->at.v4.sin_addr.s_addr) >> 24 == 127;
    } else if (inet_pton(AF_INET6, host, &out->at.v6.sin6_addr) == 1) {
        out->at.v6.sin6_family = AF_INET6;
        out->at.v6.sin6_port = htons(port);
        out->length = sizeof out->at.v6;
        out->loopback = IN6_IS_ADDR_LOOPBACK(&out->at.v6.sin6_addr);
    } else {
        return sf_fail(error, SAFER_INVALID, "`host`: %.60s is not an address, as 127.0.0.1 or ::1", host);
    }
    return SAFER_OK;
}

static safer_status listen_at(int *out, safer_server *s, const char *host, address *a, safer_error *error)
{
    const int on = 1;
    char name[64];
    int fd = socket(a->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(name, sizeof name, strchr(host, ':') ? "[%.50s]" : "%.50s", host);
    if (fd < 0) return sf_fail_errno(error, "open a socket for", name);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->at.any.sa_family == AF_INET6) (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, &a->at.any, a->length) != 0 || listen(fd, 1024) != 0 || getsockname(fd, &a->at.any, &a->length) != 0) {
        safer_status status = sf_fail(error, SAFER_SYSTEM, "cannot listen at %s, port %d: %s", name,
                                      ntohs(a->at.any.sa_family == AF_INET ? a->at.v4.sin_port : a->at.v6.sin6_port),
                                      strerror(errno));
        close(fd);
        return status;
    }
    s->port = ntohs(a->at.any.sa_family == AF_INET ? a->at.v4.sin_port : a->at.v6.sin6_port);
    snprintf(s->url, sizeof s->url, "http://%s:%d", name, s->port);
    *out = fd;
    return SAFER_OK;
}

/* ------------------------------------------------------------------- start */

/* A remote model must answer before a client is let in; this also finds out whether it answers at
 * random. */
static safer_status probe(const safer_model *model, safer_error *error)
{
    static const char *const texts[] = {"It is good.", "It is bad.", "I do not know what to think of it.",
                                        "This was not what we had hoped for."};
    enum { TEXTS = sizeof texts / sizeof texts[0] };
    sf_span spans[TEXTS];
    for (size_t i = 0; i < TEXTS; i++) spans[i] = (sf_span){texts[i], strlen(texts[i])};
    return sf_model_probe(model, spans, TEXTS, error);
}

/* Fits a signed number in JSON. */
static safer_status fresh_seed(uint64_t *seed, safer_error *error)
{
    if (getrandom(seed, sizeof *seed, 0) != (ssize_t)sizeof *seed)
        return sf_fail_errno(error, "read", "random numbers");
    *seed >>= 1;
    return SAFER_OK;
}

static void served_end(sf_served *served)
{
    sf_workers_end(served->workers);
    sf_workers_end(served->second);
    served->workers = served->second = NULL;
}

static safer_status served_start(sf_served *out, safer_server *s, const safer_model *model,
                                 const safer_lexicon *lexicon, safer_error *error)
{
    safer_status status;
    const safer_model *second = s->options.second;
    *out = (sf_served){.model = model, .lexicon = lexicon};
    SF_TRY(probe(model, error));
    SF_TRY(sf_workers_start(&out->workers, model, lexicon, &s->certify, s->options.queue, &s->metrics, error));
    if (!second) goto done;
    SF_TRY(probe(second, error));
    SF_TRY(sf_workers_start(&out->second, second, lexicon, &s->certify, s->options.queue, &s->metrics, error));
done:
    if (status != SAFER_OK) served_end(out);
    return status;
}

/* With epoll, not poll: there MHD also answers clients that close their half of the connection when
 * they have asked. */
static struct MHD_Daemon *start_daemon(safer_server *s, int fd)
{
    return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, sf_http_handle, s,
                            MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_LIMIT,
                            (unsigned)s->options.connections + SPARE, MHD_OPTION_NOTIFY_COMPLETED, sf_http_completed, s,
                            MHD_OPTION_NOTIFY_CONNECTION, sf_http_connection, s, MHD_OPTION_END);
}

/* Of the last user, who finds everything ended. */
static void server_drop(safer_server *s)
{
    pthread_mutex_lock(&s->lock);
    const int last = --s->users == 0;
    pthread_mutex_unlock(&s->lock);
    if (!last) return;
    sf_metrics_end(&s->metrics);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->reloading);
    free(s->token);
    free(s);
}

/* Ends what was started, in reverse. */
static void server_end(safer_server *s)
{
    if (s->daemon) MHD_stop_daemon(s->daemon);
    served_end(&s->served);
    sf_connections_end(&s->connections);
    server_drop(s);
}

safer_status safer_server_start(safer_server **out, const safer_model *model, const safer_lexicon *lexicon,
                                const safer_certify_options *certify, const safer_serve_options *given,
                                safer_error *error)
{
    address where;
    int fd = -1;
    safer_certify_options own_certify = safer_certify_options_default();
    safer_serve_options own = safer_serve_options_default();
    const safer_serve_options *options = &own;
    safer_status status = SF_TAKE_OPTIONS(&own, given, safer_serve_options, error);
    if (status == SAFER_OK) status = check_options(options, error);
    if (status == SAFER_OK) status = sf_certify_take(&own_certify, certify, model, lexicon, error);
    if (status == SAFER_OK && options->second) status = sf_certify_check(&own_certify, options->second, lexicon, error);
    if (status == SAFER_OK) status = read_address(&where, options->host, options->port, error);
    if (status != SAFER_OK) return status;
    if (!where.loopback && !options->token && !options->without_token)
        return sf_fail(
            error, SAFER_INVALID,
            "`host`: %.60s can be reached by others, and there is no token; give `token`, or `without_token`",
            options->host);
    safer_server *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->reloading, NULL);
    s->users = 1;
    s->options = own;
    s->certify = own_certify;
    s->local = where.loopback && !options->token;
    s->certify.unlabelled = s->certify.family_wise = 0;
    sf_metrics_start(&s->metrics);
    SF_TRY(sf_connections_start(&s->connections,
                                (sf_connection_limits){.all = options->connections,
                                                       .client = options->client_connections,
                                                       .rate = options->client_rate,
                                                       .patience = options->patience},
                                error));
    if (options->token && !(s->token = sf_strdup(options->token))) {
        status = sf_fail_memory(error);
        goto done;
    }
    if (!options->fixed_seed && !s->certify.deletion.groups) SF_TRY(fresh_seed(&s->certify.seed, error));
    SF_TRY(served_start(&s->served, s, model, lexicon, error));
    SF_TRY(listen_at(&fd, s, options->host, &where, error));
    s->daemon = start_daemon(s, fd);
    if (!s->daemon) {
        close(fd);
        status = sf_fail(error, SAFER_SYSTEM, "cannot start the server at %s", s->url);
        goto done;
    }
    *out = s;
    s = NULL;
done:
    if (s) server_end(s);
    return status;
}

const char *safer_server_url(const safer_server *server) { return server->url; }
uint16_t safer_server_port(const safer_server *server) { return server->port; }

/* ------------------------------------------------------------------ reload */

/* Serves *pair from now on, which becomes the old one; unless the server stops. */
static safer_status exchange(safer_server *s, sf_served *pair, safer_error *error)
{
    safer_status status = SAFER_OK;
    pthread_mutex_lock(&s->lock);
    if (atomic_load(&s->stopping)) {
        status = sf_fail(error, SAFER_CANCELLED, "the server stops");
    } else {
        const sf_served old = s->served;
        s->served = *pair;
        *pair = old;
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

safer_status safer_server_reload(safer_server *s, const safer_model *model, const safer_lexicon *lexicon,
                                 safer_error *error)
{
    sf_served pair;
    pthread_mutex_lock(&s->lock);
    s->users++;
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_lock(&s->reloading);
    safer_status status = sf_certify_check(&s->certify, model, lexicon, error);
    if (status == SAFER_OK && s->options.second)
        status = sf_certify_check(&s->certify, s->options.second, lexicon, error);
    if (status == SAFER_OK) status = served_start(&pair, s, model, lexicon, error);
    if (status == SAFER_OK) {
        status = exchange(s, &pair, error);
        served_end(&pair); /* the old ones, to which nobody gives anything any more; or those not needed */
    }
    pthread_mutex_unlock(&s->reloading);
    server_drop(s);
    return status;
}

/* -------------------------------------------------------------------- stop */

/* From now on the system drops what would begin a connection (a SYN without an ACK), and nothing else: a
 * handshake under way is finished. Without that, whoever connects between the last accept and the
 * closing of the socket has sent a request that nobody reads. */
static void begin_no_more(int fd)
{
    enum { FLAGS = 13, SYN = 0x02, ACK = 0x10 };
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS),      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN | ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog filter = {.len = sizeof steps / sizeof *steps, .filter = steps};
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0)
        nanosleep(&(struct timespec){.tv_nsec = HANDSHAKE_NANOSECONDS}, NULL);
}

/* Takes the connections that the system has accepted and MHD has not: their clients may have asked
 * already. After that no more are accepted. The socket stays open, since MHD's thread may still be
 * looking at it. */
static void take_the_last(safer_server *s, int fd)
{
    begin_no_more(fd);
    size_t opened = sf_connections_opened(&s->connections);
    for (;; opened++) {
        address from = {.length = sizeof from.at};
        int last = accept4(fd, &from.at.any, &from.length, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (last < 0) break;
        if (MHD_add_connection(s->daemon, last, &from.at.any, from.length) != MHD_YES) break; /* it has closed it */
    }
    shutdown(fd, SHUT_RDWR);
    sf_connections_await(&s->connections, opened);
}

void safer_server_stop(safer_server *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->lock);  /* after which no reload changes what is served */
    atomic_store(&s->stopping, 1); /* from now on every connection ends with its next answer */
    pthread_mutex_unlock(&s->lock);
    int fd = MHD_quiesce_daemon(s->daemon);
    if (fd >= 0) take_the_last(s, fd);
    sf_connections_drain(&s->connections, QUIET_SECONDS); /* MHD may only end when nobody waits for work */
    server_end(s);
    if (fd >= 0) close(fd);
}
