/* Remote models over HTTP: libcurl, connections that stay open, and second tries. The user's side is
 * docs/models.md.
 *
 * One thread of its own does all input and output. A thread that asks puts requests into a queue
 * and sleeps until they are done. A request is in one of three places: it is ready, it is being
 * carried by one of `concurrency` handles, or it waits until it may be tried again; so one that
 * waits keeps no other from going. What is lost on the way (no connection, a reset, half a
 * response, 429, 5xx, a body that is not JSON) is tried again; an answer is taken as it is. */
#define _GNU_SOURCE
#include "remote/remote.h"

#include "base/memory.h"
#include "base/progress.h"
#include "base/rng.h"
#include "remote/http_address.h"
#include "remote/http_profile.h"
#include "remote/queue.h"
#include "text/unicode.h"

#include <assert.h>
#include <curl/curl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum {
    BATCH = 32,         /* texts of a request */
    CONCURRENCY = 8,    /* requests at a time */
    LARGEST = 64 << 20, /* bytes of an answer */
    EXCERPT = 160,      /* bytes of an answer in a message */
    LONGEST_REST_MS = 60000
};
static const double first_pause = 0.25, longest_pause = 30, longest_asked_pause = 60; /* seconds between tries */

typedef struct call call;

typedef struct request {
    sf_link link; /* first: it is queued by it */
    call *call;
    size_t first, count; /* texts of the call */
    sf_buffer body, answer;
    int tries;  /* begun */
    double due; /* seconds: when it may be tried again */
    int too_large, no_memory;
} request;

/* A thread that asks, and sleeps until all requests are done or one has failed for good. */
struct call {
    sf_link link; /* first: it is queued by it when it is given up */
    int given_up;
    int *labels;
    float *scores; /* or NULL */
    request *requests;
    size_t count; /* of requests, and those that are not done */
    size_t open;
    safer_status status;
    safer_error error;
    pthread_cond_t done;
};

typedef struct handle {
    CURL *easy;
    request *request; /* being carried, or NULL */
    char reason[CURL_ERROR_SIZE];
} handle;

typedef struct http {
    sf_http_profile profile;
    sf_http_address address;
    char way[320];              /* " (through the proxy ...)", or "" */
    struct curl_slist *headers; /* with the token: never shown */
    int retries, concurrency;
    CURLM *multi;
    handle *handles; /* (concurrency) */
    pthread_t thread;
    int running;

    pthread_mutex_t lock; /* of what follows, and of calls */
    sf_queue arrived;
    sf_queue given_up; /* calls whose threads were asked to stop */
    int closing;

    sf_queue ready, waiting; /* the thread's own */
    sf_stream jitter;
    uint64_t pauses; /* drawn */
    _Atomic uint64_t sent, sent_again;
} http;

/* --------------------------------------------------------------------- queues */

static void drop_requests_of(sf_queue *q, const call *c)
{
    sf_queue kept = {0};
    for (request *r; (r = sf_queue_pop(q));)
        if (r->call != c) sf_queue_push(&kept, &r->link);
    *q = kept;
}

/* -------------------------------------------------------------------- verdicts */

typedef enum verdict {
    ANSWERED,
    LOST, /* on the way: may be tried again */
    FINAL
} verdict;

/* The start of an answer, as one clean line without secrets. */
static void excerpt(char out[EXCERPT + 8], const http *h, const sf_buffer *answer)
{
    sf_buffer text = {0};
    size_t length = answer->length < 1 << 16 ? answer->length : 1 << 16, used = 0;
    out[0] = '\0';
    if (!length || sf_utf8_repair(&text, answer->bytes, length)) return;
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.bytes[i] <= ' ') text.bytes[i] = ' ';
    sf_secrets_scrub(&h->address.secrets, text.bytes);
    for (const char *p = text.bytes; *p && used < EXCERPT; p++)
        if (*p != ' ' || (used && out[used - 1] != ' ')) out[used++] = *p;
    used = sf_utf8_valid(out, used); /* not within a character */
    memcpy(out + used, used >= EXCERPT - 3 ? "..." : "", used >= EXCERPT - 3 ? 4 : 1);
    sf_buffer_free(&text);
}

/* What became of a transfer that brought no response, or not all of it. */
static verdict judge_transfer(const http *h, const handle *carrier, const request *r, CURLcode code, safer_error *error)
{
    const char *shown = h->address.shown, *reason = carrier->reason[0] ? carrier->reason : curl_easy_strerror(code);
    if (r->no_memory || code == CURLE_OUT_OF_MEMORY) {
        sf_fail_memory(error);
        return FINAL;
    }
    if (r->too_large || code == CURLE_FILESIZE_EXCEEDED) {
        sf_fail(error, SAFER_INPUT, "%s: the answer is larger than %d MB", shown, LARGEST >> 20);
        return FINAL;
    }
    sf_fail(error, SAFER_SYSTEM, "%s: %s%s", shown, reason, h->way);
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_SSL_CONNECT_ERROR: /* also a connection that ended during the handshake */
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL: /* bytes that are no HTTP: the address was checked */ return LOST;
    default: return FINAL;
    }
}

static verdict judge_redirect(const http *h, const handle *carrier, long code, safer_error *error)
{
    sf_http_address target = {0};
    const char *url = NULL;
    curl_easy_getinfo(carrier->easy, CURLINFO_REDIRECT_URL, &url);
    int known = url && sf_http_address_read(&target, url, NULL) == SAFER_OK;
    sf_fail(error, SAFER_SYSTEM,
            "%s: answered %ld, a redirect to %s; redirects are not followed, give the address itself", h->address.shown,
            code, known ? target.shown : "another address");
    sf_http_address_free(&target);
    return FINAL;
}

/* Any other response than success. */
static verdict judge_failure(const http *h, const handle *carrier, const request *r, long code, safer_error *error)
{
    char text[EXCERPT + 8];
    if (code >= 300 && code < 400) return judge_redirect(h, carrier, code, error);
    if (sf_http_declined(&h->profile, code, r->answer.bytes, r->answer.length)) {
        size_t classes = h->profile.labels->count;
        int *label = &r->call->labels[r->first];
        *label = SF_NO_LABEL;
        if (r->call->scores) sf_one_hot(r->call->scores + r->first * classes, label, 1, classes);
        return ANSWERED;
    }
    excerpt(text, h, &r->answer);
    sf_fail(error, SAFER_SYSTEM, "%s: answered %ld%s%s%s", h->address.shown, code, text[0] ? ": " : "", text, h->way);
    return code == 408 || code == 429 || code >= 500 ? LOST : FINAL;
}

/* What is wrong with an answer may be said with words of it, cut: then half a secret would be left. So it is said of
 * the answer without secrets. */
static void say_again(const http *h, const request *r, safer_error *reason)
{
    int lost;
    safer_error again = {0};
    sf_buffer clean = {0};
    const call *c = r->call;
    if (sf_buffer_add(&clean, r->answer.bytes, r->answer.length) || sf_buffer_add_byte(&clean, '\0')) {
        sf_fail_memory(reason);
    } else if (strlen(clean.bytes) == r->answer.length) { /* JSON has no NUL */
        sf_secrets_scrub(&h->address.secrets, clean.bytes);
        if (strlen(clean.bytes) < r->answer.length &&
            sf_http_answer(c->labels + r->first, NULL, &lost, &h->profile, clean.bytes, strlen(clean.bytes), r->count,
                           h->address.shown, &again) != SAFER_OK)
            *reason = again;
    }
    sf_buffer_free(&clean);
}

static verdict judge_answer(const http *h, const request *r, safer_error *error)
{
    char text[EXCERPT + 8];
    int lost;
    const call *c = r->call;
    float *scores = c->scores ? c->scores + r->first * h->profile.labels->count : NULL;
    safer_error reason = {0};
    safer_status status = sf_http_answer(c->labels + r->first, scores, &lost, &h->profile, r->answer.bytes,
                                         r->answer.length, r->count, h->address.shown, &reason);
    if (status == SAFER_OK) return ANSWERED;
    excerpt(text, h, &r->answer);
    say_again(h, r, &reason);
    sf_fail(error, status, "%s%s%s", reason.message, text[0] ? "; it begins: " : "", text);
    return lost ? LOST : FINAL;
}

static verdict judge(const http *h, const handle *carrier, const request *r, CURLcode code, safer_error *error)
{
    long http_code = 0;
    if (code != CURLE_OK) return judge_transfer(h, carrier, r, code, error);
    curl_easy_getinfo(carrier->easy, CURLINFO_RESPONSE_CODE, &http_code);
    if (http_code < 200 || http_code >= 300) return judge_failure(h, carrier, r, http_code, error);
    return judge_answer(h, r, error);
}

/* ------------------------------------------------------------------ the thread */

static void close_request(http *h, request *r)
{
    call *c = r->call;
    pthread_mutex_lock(&h->lock);
    if (--c->open == 0) pthread_cond_signal(&c->done);
    pthread_mutex_unlock(&h->lock);
}

/* The call fails, and nothing more is done for it. */
static void fail_call(http *h, call *c, const safer_error *error)
{
    drop_requests_of(&h->ready, c);
    drop_requests_of(&h->waiting, c);
    for (int i = 0; i < h->concurrency; i++) {
        handle *carrier = &h->handles[i];
        if (!carrier->request || carrier->request->call != c) continue;
        curl_multi_remove_handle(h->multi, carrier->easy);
        carrier->request = NULL;
    }
    pthread_mutex_lock(&h->lock);
    c->status = error->status;
    c->error = *error;
    sf_secrets_scrub(&h->address.secrets, c->error.message);
    c->open = 0;
    pthread_cond_signal(&c->done);
    pthread_mutex_unlock(&h->lock);
}

/* Seconds before the next try: they double, and are spread so that requests which failed
 * together do not come back together. A service may ask for more. */
static double pause_before(http *h, const handle *carrier, int tries)
{
    curl_off_t asked = 0;
    double spread = sf_draw_unit(h->jitter, h->pauses++, 0);
    double pause = fmin(ldexp(first_pause, tries < 10 ? tries - 1 : 9), longest_pause) * (0.5 + 0.5 * spread);
    if (curl_easy_getinfo(carrier->easy, CURLINFO_RETRY_AFTER, &asked) != CURLE_OK || asked <= 0) return pause;
    return fmax(pause, fmin((double)asked, longest_asked_pause) + first_pause * spread);
}

static void end_transfer(http *h, handle *carrier, CURLcode code)
{
    request *r = carrier->request;
    safer_error error = {0}, final = {0};
    verdict v = judge(h, carrier, r, code, &error);
    curl_multi_remove_handle(h->multi, carrier->easy);
    carrier->request = NULL;
    if (v == ANSWERED) {
        close_request(h, r);
    } else if (v == LOST && r->tries <= h->retries) {
        r->due = sf_seconds() + pause_before(h, carrier, r->tries);
        sf_queue_push(&h->waiting, &r->link);
    } else {
        if (r->tries > 1) sf_fail(&final, error.status, "%.900s (tried %d times)", error.message, r->tries);
        fail_call(h, r->call, r->tries > 1 ? &final : &error);
    }
}

static void begin_transfer(http *h, handle *carrier, request *r)
{
    safer_error error = {0};
    sf_buffer_clear(&r->answer);
    r->too_large = r->no_memory = 0;
    carrier->reason[0] = '\0';
    curl_easy_setopt(carrier->easy, CURLOPT_POSTFIELDS, r->body.bytes);
    curl_easy_setopt(carrier->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.length);
    curl_easy_setopt(carrier->easy, CURLOPT_WRITEDATA, r);
    CURLMcode code = curl_multi_add_handle(h->multi, carrier->easy);
    if (code != CURLM_OK) {
        sf_fail(&error, SAFER_SYSTEM, "%s: %s", h->address.shown, curl_multi_strerror(code));
        fail_call(h, r->call, &error);
        return;
    }
    carrier->request = r;
    if (r->tries++) atomic_fetch_add(&h->sent_again, 1);
    atomic_fetch_add(&h->sent, 1);
}

/* What arrived, and whose time has come, is ready; ready ones go as far as handles are free. */
static void begin_transfers(http *h)
{
    double time = sf_seconds();
    sf_queue still = {0};
    for (request *r; (r = sf_queue_pop(&h->waiting));) sf_queue_push(r->due <= time ? &h->ready : &still, &r->link);
    h->waiting = still;
    for (int i = 0; i < h->concurrency && h->ready.first; i++)
        if (!h->handles[i].request) begin_transfer(h, &h->handles[i], sf_queue_pop(&h->ready));
}

/* Returns how many ended. */
static int end_transfers(http *h)
{
    int left, ended = 0;
    for (CURLMsg *message; (message = curl_multi_info_read(h->multi, &left));) {
        if (message->msg != CURLMSG_DONE) continue;
        handle *carrier = NULL;
        CURLcode code = message->data.result; /* the message ends with the handle's removal */
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &carrier);
        if (carrier->request) end_transfer(h, carrier, code); /* else its call failed in this very round */
        ended++;
    }
    return ended;
}

static int milliseconds_to_rest(const http *h)
{
    double time = sf_seconds(), rest = LONGEST_REST_MS;
    for (const request *r = sf_queue_first(&h->waiting); r; r = sf_queue_after(&r->link))
        rest = fmin(rest, ceil(1000 * fmax(0, r->due - time)));
    return (int)rest;
}

/* libcurl itself is out of order, or out of memory: threads that ask must not sleep forever. */
static void fail_everything(http *h, CURLMcode code)
{
    safer_error error = {0};
    sf_fail(&error, SAFER_SYSTEM, "%s: %s", h->address.shown, curl_multi_strerror(code));
    for (const request *r; (r = sf_queue_first(&h->ready)) || (r = sf_queue_first(&h->waiting));)
        fail_call(h, r->call, &error);
    for (int i = 0; i < h->concurrency; i++)
        if (h->handles[i].request) fail_call(h, h->handles[i].request->call, &error);
}

/* Nothing more is done for calls that were given up. */
static void drop_given_up(http *h)
{
    for (;;) {
        safer_error error = {0};
        pthread_mutex_lock(&h->lock);
        call *c = sf_queue_pop(&h->given_up);
        int open = c && c->open; /* else its thread goes on, and the call with it */
        pthread_mutex_unlock(&h->lock);
        if (!c) return;
        if (!open) continue;
        sf_fail(&error, SAFER_CANCELLED, "cancelled while %s was asked", h->address.shown);
        fail_call(h, c, &error);
    }
}

static int take_arrived(http *h)
{
    pthread_mutex_lock(&h->lock);
    for (request *r; (r = sf_queue_pop(&h->arrived));) sf_queue_push(&h->ready, &r->link);
    int closing = h->closing;
    pthread_mutex_unlock(&h->lock);
    return closing;
}

static void *carry(void *argument)
{
    http *h = argument;
    while (!take_arrived(h)) {
        int running;
        drop_given_up(h);
        begin_transfers(h);
        CURLMcode code = curl_multi_perform(h->multi, &running);
        if (code == CURLM_OK && end_transfers(h)) continue; /* handles came free */
        if (code == CURLM_OK) code = curl_multi_poll(h->multi, NULL, 0, milliseconds_to_rest(h), NULL);
        if (code != CURLM_OK) fail_everything(h, code);
    }
    return NULL;
}

/* ---------------------------------------------------------------------- asking */

static void free_requests(call *c)
{
    for (size_t i = 0; c->requests && i < c->count; i++) {
        sf_buffer_free(&c->requests[i].body);
        sf_buffer_free(&c->requests[i].answer);
    }
    free(c->requests);
}

static safer_status make_requests(call *c, const http *h, const sf_span *texts, size_t count, safer_error *error)
{
    size_t each = h->profile.single ? 1 : count;
    safer_status status = SAFER_OK;
    c->count = c->open = count / each;
    c->requests = sf_calloc(c->count, sizeof *c->requests);
    if (!c->requests) return sf_fail_memory(error);
    for (size_t i = 0; status == SAFER_OK && i < c->count; i++) {
        c->requests[i] = (request){.call = c, .first = i * each, .count = each};
        status = sf_http_body(&c->requests[i].body, &h->profile, texts + i * each, each, error);
    }
    return status;
}

/* Sleeps until the call is done, or gives it up. Under the lock. */
static void wait_for(http *h, call *c)
{
    while (c->open) {
        if (!sf_duty_wait(&c->done, &h->lock) || !c->open || c->given_up) continue;
        c->given_up = 1;
        sf_queue_push(&h->given_up, &c->link);
        curl_multi_wakeup(h->multi);
    }
    sf_queue kept = {0}; /* it may have ended before it was dropped */
    for (call *other; (other = sf_queue_pop(&h->given_up));)
        if (other != c) sf_queue_push(&kept, &other->link);
    h->given_up = kept;
}

static safer_status ask(void *self, const sf_span *texts, size_t count, int *labels, float *scores, safer_error *error)
{
    http *h = self;
    call c = {.labels = labels, .scores = scores};
    assert(count > 0);
    safer_status status = make_requests(&c, h, texts, count, error);
    if (status == SAFER_OK) {
        pthread_cond_init(&c.done, NULL);
        pthread_mutex_lock(&h->lock);
        for (size_t i = 0; i < c.count; i++)
            sf_queue_push(&h->arrived, &c.requests[i].link); /* all at once: so the thread can drop all at once */
        curl_multi_wakeup(h->multi);
        wait_for(h, &c);
        pthread_mutex_unlock(&h->lock);
        pthread_cond_destroy(&c.done);
        status = c.status;
        if (status != SAFER_OK && error) *error = c.error;
    }
    free_requests(&c);
    return status;
}

static void tell(void *self, safer_traffic *traffic)
{
    http *h = self;
    traffic->requests += atomic_load(&h->sent);
    traffic->retries += atomic_load(&h->sent_again);
}

/* ------------------------------------------------------- opening and closing */

static void http_free(void *self)
{
    http *h = self;
    if (!h) return;
    if (h->running) {
        pthread_mutex_lock(&h->lock);
        h->closing = 1;
        curl_multi_wakeup(h->multi);
        pthread_mutex_unlock(&h->lock);
        pthread_join(h->thread, NULL);
    }
    for (int i = 0; h->handles && i < h->concurrency; i++)
        curl_easy_cleanup(h->handles[i].easy); /* none carries anything */
    if (h->multi) curl_multi_cleanup(h->multi);
    curl_slist_free_all(h->headers);
    free(h->handles);
    sf_http_profile_free(&h->profile);
    sf_http_address_free(&h->address);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

static size_t receive(char *bytes, size_t size, size_t count, void *context)
{
    request *r = context;
    size_t length = size * count;
    if (length > LARGEST - r->answer.length)
        r->too_large = 1;
    else if (sf_buffer_add(&r->answer, bytes, length))
        r->no_memory = 1;
    return r->too_large || r->no_memory ? 0 : length;
}

static int add_header(http *h, const char *header)
{
    struct curl_slist *more = curl_slist_append(h->headers, header);
    if (!more) return -1;
    h->headers = more;
    return 0;
}

/* The token goes into a header and among the secrets, and nowhere else. */
static safer_status read_token(http *h, const char *variable, safer_error *error)
{
    sf_buffer header = {0};
    const char *token = getenv(variable);
    if (!token || !*token)
        return sf_fail(error, SAFER_INVALID, "`remote.token`: the environment variable \"%.80s\" is %s", variable,
                       token ? "empty" : "not set");
    for (const char *c = token; *c; c++)
        if (*c <= ' ' || *c > '~')
            return sf_fail(
                error, SAFER_INVALID,
                "`remote.token`: the value of \"%.80s\" holds spaces, line ends or other bytes that no token has",
                variable);
    if (h->address.has_user)
        return sf_fail(error, SAFER_INVALID,
                       "`remote.token`: the address names a user already; sign in one way or the other");
    safer_status status = sf_secrets_add(&h->address.secrets, token, error);
    if (status == SAFER_OK &&
        (sf_buffer_format(&header, "Authorization: Bearer %s", token) || add_header(h, header.bytes)))
        status = sf_fail_memory(error);
    sf_buffer_free(&header);
    return status;
}

static safer_status make_headers(http *h, const char *token, safer_error *error)
{
    /* Without the last one libcurl waits for permission to send a large body. */
    if (add_header(h, "Content-Type: application/json") || add_header(h, "Accept: application/json") ||
        add_header(h, "Expect:"))
        return sf_fail_memory(error);
    return token ? read_token(h, token, error) : SAFER_OK;
}

/* Who listens on the way would have the token or the password. */
static safer_status check_way(const http *h, const safer_remote_options *options, safer_error *error)
{
    const char *secret = options->token ? "token" : "password";
    if (h->address.secure || h->address.loopback || options->insecure_token) return SAFER_OK;
    if (!options->token && !h->address.has_user) return SAFER_OK;
    return sf_fail(error, SAFER_INVALID,
                   "`insecure_token`: the %s would travel to %s without encryption; use https://, or allow it", secret,
                   h->address.shown);
}

/* Certificates and host names are always checked: that is libcurl's default, and there is no
 * switch. A file of other authorities is named as for the program curl. */
static CURLcode set_authorities(CURL *easy)
{
    const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
    const char *const preset[] = {info->cainfo, info->capath};
    const char *file = sf_http_authorities(preset, sf_http_usual_authorities);
    return file ? curl_easy_setopt(easy, CURLOPT_CAINFO, file) : CURLE_OK;
}

static safer_status make_handle(http *h, handle *out, const char *address, double timeout, safer_error *error)
{
    CURL *easy = out->easy = curl_easy_init();
    if (!easy) return sf_fail_memory(error);
    CURLcode code = curl_easy_setopt(easy, CURLOPT_URL, address);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    if (!code) code = curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_USERAGENT, "safer/" SAFER_VERSION);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_POST, 1L);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_HTTPHEADER, h->headers);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L); /* a token is for one host */
    if (!code) code = curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)ceil(1000 * timeout));
    if (!code) code = curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)LARGEST);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, out->reason);
    if (!code) code = curl_easy_setopt(easy, CURLOPT_PRIVATE, out);
    if (!code) code = set_authorities(easy);
    if (!code && h->address.loopback) code = curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    return code ? sf_fail(error, SAFER_SYSTEM, "%s: %s", h->address.shown, curl_easy_strerror(code)) : SAFER_OK;
}

/* Signals are for the program's own threads. A connection that ends while TLS writes to it
 * would raise SIGPIPE. */
static int start_thread(http *h)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    h->running = pthread_create(&h->thread, NULL, carry, h) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return h->running ? 0 : -1;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void begin_curl(void) { (void)curl_global_init(CURL_GLOBAL_DEFAULT); }

static safer_status make_multi(http *h, const char *address, double timeout, safer_error *error)
{
    h->multi = curl_multi_init();
    h->handles = sf_calloc((size_t)h->concurrency, sizeof *h->handles);
    if (!h->multi || !h->handles) return sf_fail_memory(error);
    curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)h->concurrency);
    for (int i = 0; i < h->concurrency; i++) {
        safer_status status = make_handle(h, &h->handles[i], address, timeout, error);
        if (status != SAFER_OK) return status;
    }
    return SAFER_OK;
}

safer_status sf_http_open(sf_transport *out, const char *address, const sf_labels *labels,
                          const safer_remote_options *options, safer_error *error)
{
    safer_status status;
    pthread_once(&once, begin_curl);
    http *h = sf_calloc(1, sizeof *h);
    if (!h) return sf_fail_memory(error);
    pthread_mutex_init(&h->lock, NULL);
    h->retries = options->retries;
    h->concurrency = options->concurrency > 0 ? options->concurrency : CONCURRENCY;
    h->jitter = sf_stream_of((uint64_t)(1e9 * sf_seconds()), (uint64_t)(uintptr_t)h, SF_STAGE_SELECTION);
    SF_TRY(sf_http_profile_open(&h->profile, labels, options, error));
    SF_TRY(sf_http_address_read(&h->address, address, error));
    if (h->address.proxy) snprintf(h->way, sizeof h->way, " (through the proxy %s)", h->address.proxy);
    SF_TRY(make_headers(h, options->token, error));
    SF_TRY(check_way(h, options, error));
    SF_TRY(make_multi(h, address, options->timeout, error));
    if (start_thread(h)) {
        status = sf_fail(error, SAFER_SYSTEM, "cannot start a thread for %s", h->address.shown);
        goto done;
    }
    *out = (sf_transport){.arch = "http",
                          .self = h,
                          .ask = ask,
                          .free = http_free,
                          .tell = tell,
                          .batch = options->batch ? options->batch : BATCH,
                          .concurrency = h->concurrency};
    h = NULL;
done:
    http_free(h);
    return status;
}
