/* Requests and answers: what docs/serve.md promises, over libmicrohttpd (MHD).
 *
 * One thread of MHD reads and writes; it never waits for work. A request that needs work becomes
 * a job, and its connection is suspended until the job wakes it. */
#define _GNU_SOURCE
#include "serve/server.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/progress.h"
#include "certify/record.h"
#include "report/assets.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { DISCARDED = 8 << 20 }; /* bytes of a refused body that are still read, so that the client reads why */

/* The memory for all clients together is bounded, at so many bodies of the largest size. What is held
 * is counted when it comes in; answers about words are counted in advance, as so many times the
 * request, because they are so much longer. */
enum { HELD_BODIES = 256, WORDS_GROW = 100 };

#define JSON_TYPE "application/json"

typedef struct request {
    safer_server *server;
    struct MHD_Connection *mhd;
    sf_connection *connection;
    const sf_route *route;
    const char *method; /* for the log */
    double start;
    sf_buffer body;
    size_t received, sent, held; /* bytes of bodies; held: of the request's, until a job has it */
    sf_fault fault;              /* status 0: none so far */
    int retry;                   /* seconds; 0: not said */
    int last;                    /* the connection ends with it */
    sf_job *job;
    int status; /* of what was answered; 0: nothing yet */
} request;

/* ----------------------------------------------------------------- answers */

static enum MHD_Result answer(request *q, int status, const char *type, struct MHD_Response *response)
{
    char seconds[16];
    if (!response) return MHD_NO;
    (void)MHD_add_response_header(response, "Content-Type", type);
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (q->route->id == SF_ROUTE_PAGE)
        (void)MHD_add_response_header(
            response, "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    if (status == 401) (void)MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (status == 405) (void)MHD_add_response_header(response, "Allow", q->route->works ? "POST" : "GET, HEAD");
    if (q->retry) {
        snprintf(seconds, sizeof seconds, "%d", q->retry);
        (void)MHD_add_response_header(response, "Retry-After", seconds);
    }
    if (q->last || atomic_load(&q->server->stopping)) (void)MHD_add_response_header(response, "Connection", "close");
    enum MHD_Result result = MHD_queue_response(q->mhd, (unsigned)status, response);
    MHD_destroy_response(response);
    if (result == MHD_YES) q->status = status;
    return result;
}

/* The body is taken over; NULL: memory was out. */
static enum MHD_Result answer_text(request *q, int status, const char *type, char *body)
{
    static const char none[] = "{\"error\":{\"code\":\"failed\",\"message\":\"out of memory\"}}";
    if (!body)
        return answer(q, 500, JSON_TYPE,
                      MHD_create_response_from_buffer(sizeof none - 1, (void *)(uintptr_t)none,
                                                      MHD_RESPMEM_PERSISTENT));
    q->sent = strlen(body);
    struct MHD_Response *response = MHD_create_response_from_buffer(q->sent, body, MHD_RESPMEM_MUST_FREE);
    if (!response) free(body);
    return answer(q, status, type, response);
}

static enum MHD_Result answer_asset(request *q, const char *type, const char *asset)
{
    q->sent = strlen(asset);
    return answer(q, 200, type,
                  MHD_create_response_from_buffer(q->sent, (void *)(uintptr_t)asset, MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result answer_fault(request *q)
{
    return answer_text(q, q->fault.status, JSON_TYPE, sf_fault_json(&q->fault));
}

/* The second model, or null. */
static json_t *second_json(const safer_model *model)
{
    json_t *labels = json_array();
    for (size_t k = 0; model && k < model->classes; k++) sf_json_push(&labels, json_string(model->labels[k]));
    if (model)
        return json_pack("{s:s, s:s, s:s, s:o}", "name", safer_model_name(model), "arch", model->class->arch, "sha256",
                         safer_model_sha256(model), "labels", labels);
    json_decref(labels);
    return json_null();
}

static char *model_text(safer_server *s)
{
    const safer_certify_options *o = &s->certify;
    json_t *labels = json_array(), *radii = json_array();
    for (size_t r = 0; r < SAFER_RADII; r++) sf_json_push(&radii, sf_radius_json(sf_reported_radii[r]));
    pthread_mutex_lock(&s->lock);
    const safer_model *model = s->served.model;
    const safer_lexicon *lexicon = s->served.lexicon;
    for (size_t k = 0; k < model->classes; k++) sf_json_push(&labels, json_string(model->labels[k]));
    safer_lexicon_info info = safer_lexicon_describe(lexicon);
    json_t *value = json_pack(
        "{s:s, s:{s:s, s:s, s:s}, s:o, s:{s:s, s:s, s:s, s:I}, s:s, s:I, s:I, s:f, s:f, s:o, s:o, s:o, s:b, "
        "s:{s:I, s:I, s:I, s:I, s:f}}",
        "version", SAFER_VERSION, "model", "name", safer_model_name(model), "arch", model->class->arch, "sha256",
        safer_model_sha256(model), "labels", labels, "lexicon", "name", safer_lexicon_name(lexicon), "sha256",
        safer_lexicon_sha256(lexicon), "kernel", info.kernel, "words", (json_int_t)info.words, "method",
        safer_method_name(o->method), "n", (json_int_t)o->n, "n0", (json_int_t)o->n0, "delta", o->delta, "alpha",
        o->alpha, "radius", sf_radius_json(o->radius), "radii", radii, "seed",
        s->options.fixed_seed || o->deletion.groups ? json_integer((json_int_t)o->seed) : json_null(), "token",
        s->token != NULL, "limits", "body", (json_int_t)s->options.max_body, "text", (json_int_t)s->options.max_text,
        "texts", (json_int_t)s->options.max_texts, "queue", (json_int_t)s->options.queue, "deadline",
        s->options.deadline);
    pthread_mutex_unlock(&s->lock);
    sf_json_put(&value, "second", second_json(s->options.second));
    if (sf_deletes(o->deletion)) {
        sf_json_put(&value, sf_deletion_member(o->deletion), sf_deletion_json(o->deletion));
        sf_json_put(&value, "edits", json_integer((json_int_t)o->edits));
        sf_json_put(&value, "edit_kind", json_string(safer_edit_kind_name(o->edit_kind)));
    }
    char *text = sf_json_text(value);
    json_decref(value);
    return text;
}

static enum MHD_Result answer_metrics(request *q)
{
    sf_buffer page = {0};
    sf_gauges gauges = {.connections = sf_connections_count(&q->server->connections)};
    pthread_mutex_lock(&q->server->lock);
    sf_workers_gauge(q->server->served.workers, &gauges);
    if (q->server->served.second) sf_workers_gauge(q->server->served.second, &gauges);
    pthread_mutex_unlock(&q->server->lock);
    if (sf_metrics_print(&page, &q->server->metrics, &gauges)) {
        sf_buffer_free(&page);
        return answer_text(q, 500, "text/plain", NULL);
    }
    return answer_text(q, 200, "text/plain; version=0.0.4; charset=utf-8", page.bytes);
}

/* Whether a request would be taken now. */
static enum MHD_Result answer_ready(request *q)
{
    safer_server *s = q->server;
    pthread_mutex_lock(&s->lock);
    const int full = sf_workers_full(s->served.workers);
    pthread_mutex_unlock(&s->lock);
    const int stopping = atomic_load(&s->stopping), ready = !full && !stopping;
    q->retry = !ready;
    return answer_text(q, ready ? 200 : 503, JSON_TYPE,
                       sf_strdup(ready      ? "{\"status\":\"ready\"}"
                                 : stopping ? "{\"status\":\"stopping\"}"
                                            : "{\"status\":\"full\"}"));
}

static enum MHD_Result answer_known(request *q)
{
    switch (q->route->id) {
    case SF_ROUTE_HEALTH: return answer_text(q, 200, JSON_TYPE, sf_strdup("{\"status\":\"ok\"}"));
    case SF_ROUTE_READY: return answer_ready(q);
    case SF_ROUTE_MODEL: return answer_text(q, 200, JSON_TYPE, model_text(q->server));
    case SF_ROUTE_METRICS: return answer_metrics(q);
    case SF_ROUTE_OPENAPI: return answer_asset(q, JSON_TYPE, sf_asset_openapi_json);
    case SF_ROUTE_STYLE: return answer_asset(q, "text/css", sf_asset_explorer_css);
    case SF_ROUTE_SCRIPT: return answer_asset(q, "text/javascript", sf_asset_explorer_js);
    default: return answer_asset(q, "text/html; charset=utf-8", sf_asset_explorer_html);
    }
}

/* -------------------------------------------------------------------- work */

static void resume(void *mhd) { MHD_resume_connection(mhd); }

/* Takes events away. Position does not matter: a stream is read once. */
static ssize_t read_events(void *context, uint64_t position, char *out, size_t most)
{
    sf_job *job = context;
    ssize_t result = 0;
    (void)position;
    pthread_mutex_lock(&job->lock);
    size_t there = job->events.length - job->sent;
    if (there) {
        if (there > most) there = most;
        memcpy(out, job->events.bytes + job->sent, there);
        job->sent += there;
        job->streamed += there;
        result = (ssize_t)there;
    } else if (job->status) {
        result = job->status == 200 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
    } else {
        job->waiting = 1;
        MHD_suspend_connection(job->wake_context);
    }
    pthread_mutex_unlock(&job->lock);
    return result;
}

static void release_job(void *job) { sf_job_release(job); }

static enum MHD_Result answer_stream(request *q)
{
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_events, q->job,
                                                                      release_job);
    if (!response) return MHD_NO;
    sf_job_hold(q->job);
    return answer(q, 200, "text/event-stream", response);
}

static enum MHD_Result answer_job(request *q)
{
    pthread_mutex_lock(&q->job->lock);
    int status = q->job->status;
    char *body = q->job->answer;
    q->job->answer = NULL;
    pthread_mutex_unlock(&q->job->lock);
    sf_connection_set(&q->server->connections, q->connection, SF_ANSWERED, NULL, q->server->options.patience);
    return answer_text(q, status, JSON_TYPE, body);
}

static int hold(request *q, size_t bytes)
{
    safer_server *s = q->server;
    if (atomic_fetch_add(&s->held, bytes) + bytes <= HELD_BODIES * s->options.max_body) {
        q->held += bytes;
        return 0;
    }
    atomic_fetch_sub(&s->held, bytes);
    q->retry = 1;
    return sf_fault_set(&q->fault, 503, "busy", "there is no room for the request now; try again in 1 s");
}

static void drop_body(request *q)
{
    atomic_fetch_sub(&q->server->held, q->held);
    q->held = 0;
    sf_buffer_free(&q->body);
}

/* Reads the request and gives it to the workers. -1: there is a fault; 1: the connection is suspended until the job
 * wakes it; 0: it is not. */
static int offer_work(request *q)
{
    safer_server *s = q->server;
    const sf_job_limits limits = {.text = s->options.max_text,
                                  .texts = s->options.max_texts,
                                  .certify = &s->certify,
                                  .model = s->served.model,
                                  .second = s->options.second};
    sf_job *job;
    if (sf_job_read(&job, q->route, q->body.bytes, q->body.length, &limits, &q->fault)) return -1;
    job->wake = resume;
    job->wake_context = q->mhd;
    job->account = &s->held;
    job->held = q->held;
    q->held = 0;
    q->job = job;
    sf_buffer_free(&q->body);
    sf_connection_set(&s->connections, q->connection, q->route->id == SF_ROUTE_STREAM ? SF_ANSWERED : SF_WAITING, job,
                      s->options.deadline);
    pthread_mutex_lock(&job->lock);
    int refused = sf_workers_offer(job->second ? s->served.second : s->served.workers, job, &q->retry);
    if (!refused && q->route->id != SF_ROUTE_STREAM && !job->status) {
        job->waiting = 1;
        MHD_suspend_connection(q->mhd);
    }
    const int waits = job->waiting;
    pthread_mutex_unlock(&job->lock);
    if (!refused) return waits;
    sf_connection_set(&s->connections, q->connection, SF_ANSWERED, NULL, s->options.patience);
    return sf_fault_set(&q->fault, 503, "busy", "%zu text%s did not fit into the queue; try again in %d s", job->count,
                        job->count == 1 ? "" : "s", q->retry);
}

/* The whole request is there: it is worked on, and its connection waits. */
static enum MHD_Result begin_work(request *q)
{
    safer_server *s = q->server;
    if (q->route->id == SF_ROUTE_WORDS && hold(q, WORDS_GROW * q->body.length)) return answer_fault(q);
    pthread_mutex_lock(&s->lock);
    const int waits = offer_work(q);
    pthread_mutex_unlock(&s->lock);
    if (waits < 0) return answer_fault(q);
    if (q->route->id == SF_ROUTE_STREAM) return answer_stream(q);
    return waits ? MHD_YES : answer_job(q);
}

/* ---------------------------------------------------------------- requests */

/* Looks at every byte, even when the first ones differ. */
static int same_secret(const char *sent, const char *secret)
{
    size_t length = strlen(sent), expected = strlen(secret);
    unsigned different = length != expected;
    for (size_t i = 0; i < length; i++)
        different |= (unsigned)(unsigned char)sent[i] ^ (unsigned char)secret[i % expected];
    return !different;
}

static int is_allowed(const request *q)
{
    const char *sent = MHD_lookup_connection_value(q->mhd, MHD_HEADER_KIND, "Authorization");
    if (!q->server->token || !q->route->guarded) return 1;
    return sent && strncasecmp(sent, "Bearer ", 7) == 0 && same_secret(sent + 7, q->server->token);
}

static int is_json(const request *q)
{
    const char *type = MHD_lookup_connection_value(q->mhd, MHD_HEADER_KIND, "Content-Type");
    size_t length = sizeof JSON_TYPE - 1;
    return type && strncasecmp(type, JSON_TYPE, length) == 0 &&
           (!type[length] || type[length] == ';' || type[length] == ' ');
}

static int is_too_long(const request *q)
{
    const char *length = MHD_lookup_connection_value(q->mhd, MHD_HEADER_KIND, "Content-Length");
    return length && strtoull(length, NULL, 10) > q->server->options.max_body;
}

static void refuse_too_long(request *q)
{
    sf_fault_set(&q->fault, 413, "too_large", "the body is too long; at most %zu bytes are taken",
                 q->server->options.max_body);
}

/* Where a request has two lengths, or a length and chunks, a proxy that passed it on may have seen its
 * end in another place than we do: what one reads as a body is the other's next request. */
typedef struct framing {
    int hosts, lengths, encodings, odd_names;
} framing;

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    framing *f = context;
    (void)kind;
    (void)value;
    f->hosts += strcasecmp(name, "Host") == 0;
    f->lengths += strcasecmp(name, "Content-Length") == 0;
    f->encodings += strcasecmp(name, "Transfer-Encoding") == 0;
    f->odd_names += name[strcspn(name, " \t")] != '\0';
    return MHD_YES;
}

static int is_ambiguous(const request *q)
{
    framing f = {0};
    MHD_get_connection_values(q->mhd, MHD_HEADER_KIND, count_header, &f);
    return f.hosts > 1 || f.lengths + f.encodings > 1 || f.odd_names;
}

/* Whether a Host header is an address, or localhost. The owner of another name can let it mean this
 * machine after a browser has loaded a page from it (DNS rebinding); the page then counts as ours,
 * and may read what it asks for. */
static int names_this_machine(const char *host)
{
    unsigned char address[16];
    char name[64];
    const char *begin = host + (host[0] == '['), *end = begin + strcspn(begin, begin > host ? "]" : ":"), *rest = end;
    size_t length = (size_t)(end - begin);
    if (begin > host && *rest++ != ']') return 0;
    if (length >= sizeof name || (*rest && *rest != ':')) return 0;
    memcpy(name, begin, length);
    name[length] = '\0';
    if (begin > host) return inet_pton(AF_INET6, name, address) == 1;
    const char *last = length > 10 ? name + length - 10 : "";
    return inet_pton(AF_INET, name, address) == 1 || strcasecmp(name, "localhost") == 0 ||
           strcasecmp(last, ".localhost") == 0;
}

/* Browsers always send a Host; HTTP 1.0 need not. */
static int is_for_us(const request *q)
{
    const char *host = MHD_lookup_connection_value(q->mhd, MHD_HEADER_KIND, "Host");
    return !q->server->local || !host || names_this_machine(host);
}

/* Refuses what the head of a request alone shows to be wrong. */
static void check_head(request *q, const char *method)
{
    const int works = q->route->works;
    int fits = works ? strcmp(method, "POST") == 0 : strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if ((q->last = is_ambiguous(q)))
        sf_fault_set(&q->fault, 400, "bad_request", "where the request ends, or whom it is for, is said twice");
    else if (!is_for_us(q))
        sf_fault_set(&q->fault, 403, "wrong_host", "this server is for localhost; another name needs a token");
    else if (q->route->id == SF_ROUTE_NONE)
        sf_fault_set(&q->fault, 404, "not_found", "there is no such path");
    else if (!fits)
        sf_fault_set(&q->fault, 405, "wrong_method", "this path takes %s", works ? "POST" : "GET");
    else if (!is_allowed(q))
        sf_fault_set(&q->fault, 401, "unauthorized", "a bearer token is needed");
    else if (works && !is_json(q))
        sf_fault_set(&q->fault, 415, "not_json", "the content type must be application/json");
    else if (is_too_long(q))
        refuse_too_long(q);
}

/* A name that a client made up does not get into the log. */
static const char *known_method(const char *method)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(method, known[i]) == 0) return known[i];
    return "other";
}

/* There are too many connections or requests: the client, or all, must come back later. */
static void refuse_too_many(request *q, int status)
{
    if (status == 429)
        sf_fault_set(&q->fault, 429, "too_many",
                     "too many requests or connections from your address; try again in %d s", q->retry);
    else
        sf_fault_set(&q->fault, 503, "busy", "there are too many connections now; try again in %d s", q->retry);
}

static enum MHD_Result begin(safer_server *s, struct MHD_Connection *mhd, const char *url, const char *method,
                             const char *version, void **out)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    sf_connection *connection = info ? info->socket_context : NULL;
    const sf_route *route = sf_route_find(url);
    int retry = 0;
    const int refused = sf_connection_begin(&s->connections, connection, s->options.patience,
                                            route->id != SF_ROUTE_HEALTH && route->id != SF_ROUTE_READY,
                                            strcmp(version, "HTTP/1.1") == 0, &retry);
    if (refused < 0) return MHD_NO;
    request *q = sf_calloc(1, sizeof *q);
    if (!q) {
        sf_connection_set(&s->connections, connection, SF_IDLE, NULL, s->options.patience);
        return MHD_NO;
    }
    q->server = s;
    q->mhd = mhd;
    q->connection = connection;
    q->route = route;
    q->start = sf_seconds();
    q->method = known_method(method);
    *out = q;
    q->retry = retry;
    check_head(q, method);
    if (refused && !q->fault.status) refuse_too_many(q, refused);
    q->last |= connection->refused != 0;
    /* A client that asks first whether to send the body is answered at once. */
    const char *expect = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Expect");
    return q->fault.status && expect ? answer_fault(q) : MHD_YES;
}

static enum MHD_Result take_body(request *q, const char *bytes, size_t *size)
{
    size_t length = *size, most = q->server->options.max_body;
    *size = 0;
    q->received += length;
    if (q->received > most && !q->fault.status) refuse_too_long(q);
    if (q->received > most && q->received - most > DISCARDED) return MHD_NO;
    if (!q->fault.status && q->route->works && !hold(q, length) && sf_buffer_add(&q->body, bytes, length))
        sf_fault_set(&q->fault, 500, "failed", "out of memory");
    if (q->fault.status) drop_body(q);
    return MHD_YES;
}

enum MHD_Result sf_http_handle(void *server, struct MHD_Connection *mhd, const char *url, const char *method,
                               const char *version, const char *upload, size_t *upload_size, void **context)
{
    request *q = *context;
    if (!q) return begin(server, mhd, url, method, version, context);
    if (*upload_size) return take_body(q, upload, upload_size);
    if (q->job) return answer_job(q); /* it was woken */
    sf_connection_set(&q->server->connections, q->connection, SF_ANSWERED, NULL, q->server->options.patience);
    if (q->fault.status) return answer_fault(q);
    return q->route->works ? begin_work(q) : answer_known(q);
}

/* --------------------------------------------------------------------- log */

static json_t *client_json(const request *q)
{
    char name[64] = "";
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(q->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    socklen_t length = address && address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                                 : sizeof(struct sockaddr_in);
    if (address && getnameinfo(address, length, name, sizeof name, NULL, 0, NI_NUMERICHOST) != 0) name[0] = '\0';
    return json_string(name);
}

/* Nothing that a client wrote is in the log, unless the operator wants the texts in it. */
static void write_log(const request *q, double seconds, int lost)
{
    const safer_server *s = q->server;
    struct timespec now;
    struct tm parts;
    char time[40];
    if (!s->options.log) return;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    size_t length = strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(time + length, sizeof time - length, ".%03ldZ", now.tv_nsec / 1000000);
    json_t *line = json_pack("{s:s, s:o, s:s, s:s, s:i, s:I, s:f}", "time", time, "client", client_json(q), "method",
                             q->method, "path", q->route->path, "status", q->status, "body", (json_int_t)q->received,
                             "seconds", (double)(int64_t)(seconds * 1e6) / 1e6);
    if (lost) json_object_set_new(line, "lost", json_true());
    size_t sent = q->sent;
    if (q->job) {
        json_object_set_new(line, "texts", json_integer((json_int_t)q->job->count));
        json_object_set_new(line, "queries", json_integer((json_int_t)atomic_load(&q->job->queries)));
        pthread_mutex_lock(&q->job->lock);
        sent += q->job->streamed;
        if (q->job->detail[0]) json_object_set_new(line, "error", json_string(q->job->detail));
        pthread_mutex_unlock(&q->job->lock);
        json_t *texts = s->options.log_texts ? json_array() : NULL;
        for (size_t i = 0; texts && i < q->job->count; i++)
            json_array_append_new(texts, json_stringn(q->job->texts[i].text, q->job->texts[i].length));
        if (texts) json_object_set_new(line, "content", texts);
    }
    json_object_set_new(line, "sent", json_integer((json_int_t)sent));
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(7)) : NULL;
    if (text) s->options.log(s->options.log_context, text);
    json_decref(line);
    free(text);
}

void sf_http_completed(void *server, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode how)
{
    request *q = *context;
    safer_server *s = server;
    (void)mhd;
    if (!q) return;
    *context = NULL;
    sf_connection_set(&s->connections, q->connection, SF_IDLE, NULL, s->options.patience);
    double seconds = sf_seconds() - q->start;
    int lost = how != MHD_REQUEST_TERMINATED_COMPLETED_OK || !q->status;
    if (lost)
        sf_metrics_lost(&s->metrics);
    else
        sf_metrics_request(&s->metrics, q->route, q->status, seconds);
    write_log(q, seconds, lost);
    if (q->job) {
        pthread_mutex_lock(&q->job->lock);
        q->job->waiting = 0;
        pthread_mutex_unlock(&q->job->lock);
        atomic_store(&q->job->cancelled, 1);
        sf_job_release(q->job);
    }
    drop_body(q);
    free(q);
}

void sf_http_connection(void *server, struct MHD_Connection *mhd, void **connection,
                        enum MHD_ConnectionNotificationCode what)
{
    safer_server *s = server;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        const union MHD_ConnectionInfo *from = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        *connection = info ? sf_connection_open(&s->connections, info->connect_fd, from ? from->client_addr : NULL,
                                                s->options.patience)
                           : NULL;
        if (info && !*connection) shutdown(info->connect_fd, SHUT_RDWR); /* nobody would watch it */
    } else {
        sf_connection_close(&s->connections, *connection);
        *connection = NULL;
    }
}
