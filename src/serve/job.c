/* A request's work: its body read and checked, its texts, the answer or the events that come out, and its end.
 * What a client may ask for is bounded here: by the limits, and by the certificates that the server was started for. */
#include "serve/job.h"

#include "base/json.h"
#include "base/memory.h"
#include "model/model.h"
#include "text/unicode.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { UNREAD_EVENTS = 1 << 16 }; /* bytes that wait for a slow reader */

int sf_fault_set(sf_fault *fault, int status, const char *code, const char *format, ...)
{
    va_list arguments;
    fault->status = status;
    fault->code = code;
    va_start(arguments, format);
    vsnprintf(fault->message, sizeof fault->message, format, arguments);
    va_end(arguments);
    fault->message[sf_utf8_valid(fault->message, strlen(fault->message))] =
        '\0'; /* what it quotes may be cut anywhere */
    return -1;
}

static json_t *fault_value(const sf_fault *fault)
{
    return json_pack("{s:{s:s, s:s}}", "error", "code", fault->code, "message", fault->message);
}

char *sf_fault_json(const sf_fault *fault)
{
    json_t *value = fault_value(fault);
    char *text = sf_json_text(value);
    json_decref(value);
    return text;
}

/* ----------------------------------------------------------------- reading */

/* Quotes what a client sent, clipped, so that the message is UTF-8 and short. */
#define CLIPPED(string) sf_clip(string, strlen(string), 60), string

static int read_label(int *out, const json_t *value, const safer_model *model, sf_fault *fault)
{
    *out = -1;
    if (!value || json_is_null(value)) return 0;
    if (!json_is_string(value)) return sf_fault_set(fault, 400, "bad_request", "a label must be a string or null");
    for (size_t k = 0; k < model->classes; k++)
        if (strlen(model->labels[k]) == json_string_length(value) &&
            strcmp(model->labels[k], json_string_value(value)) == 0)
            *out = (int)k;
    if (*out < 0)
        return sf_fault_set(fault, 400, "bad_request", "the model has no label \"%.*s\"",
                            CLIPPED(json_string_value(value)));
    return 0;
}

static int read_text(sf_job_text *out, const json_t *value, size_t number, size_t most, sf_fault *fault)
{
    if (!json_is_string(value)) return sf_fault_set(fault, 400, "bad_request", "text %zu is not a string", number);
    out->text = json_string_value(value);
    out->length = json_string_length(value);
    if (out->length > most)
        return sf_fault_set(fault, 413, "too_large", "text %zu has %zu bytes; at most %zu are taken", number,
                            out->length, most);
    return 0;
}

/* Whether this kind of request has such a member. */
static int is_member(const sf_route *route, const char *name)
{
    static const char *const terms[] = {"radius", "delta", "n", "model"};
    for (size_t i = 0; route->terms && i < sizeof terms / sizeof *terms; i++)
        if (strcmp(name, terms[i]) == 0) return 1;
    return strcmp(name, "text") == 0 || (route->many && strcmp(name, "texts") == 0) ||
           (route->labels && strcmp(name, "label") == 0) ||
           (route->labels && route->many && strcmp(name, "labels") == 0);
}

/* Only members that this kind of request has. */
static int check_members(const sf_job *job, sf_fault *fault)
{
    const char *name;
    json_t *value;
    const int many = job->route->many;
    json_object_foreach(job->body, name, value)
    {
        if (is_member(job->route, name)) continue;
        return sf_fault_set(fault, 400, "bad_request", "this request has no member \"%.*s\"", CLIPPED(name));
    }
    const json_t *text = json_object_get(job->body, "text"), *texts = json_object_get(job->body, "texts");
    if (!text && !texts)
        return sf_fault_set(fault, 400, "bad_request",
                            many ? "\"text\" or \"texts\" is missing" : "\"text\" is missing");
    if (text && texts) return sf_fault_set(fault, 400, "bad_request", "\"text\" and \"texts\": only one of them");
    if (json_object_get(job->body, text ? "labels" : "label"))
        return sf_fault_set(fault, 400, "bad_request", "\"label\" goes with \"text\", \"labels\" with \"texts\"");
    return 0;
}

static int read_radius(sf_terms *terms, const json_t *value, sf_fault *fault)
{
    if (!value) return 0;
    if (json_is_string(value) && strcmp(json_string_value(value), "all") == 0)
        terms->radius = SAFER_ALL;
    else if (json_is_integer(value) && json_integer_value(value) > 0)
        terms->radius = (size_t)json_integer_value(value);
    else
        return sf_fault_set(fault, 400, "bad_request", "\"radius\" must be a whole number from 1 on, or \"all\"");
    return 0;
}

/* Nothing that a client asks for costs more, or claims more, than what the server was started with. */
static int read_terms(sf_job *job, const safer_certify_options *most, sf_fault *fault)
{
    const json_t *delta = json_object_get(job->body, "delta"), *n = json_object_get(job->body, "n");
    sf_terms *terms = &job->terms;
    *terms = sf_terms_of(most);
    if (read_radius(terms, json_object_get(job->body, "radius"), fault)) return -1;
    if ((delta || n) && (most->method == SAFER_METHOD_IBP || most->method == SAFER_METHOD_GROUPS))
        return sf_fault_set(fault, 400, "bad_request", "\"%s\": this server's method, %s, draws nothing",
                            delta ? "delta" : "n", safer_method_name(most->method));
    if (delta && !(json_is_number(delta) && json_number_value(delta) > 0 && json_number_value(delta) <= most->delta))
        return sf_fault_set(fault, 400, "bad_request",
                            "\"delta\" must be a number above 0, and at most the server's, %g", most->delta);
    if (delta) terms->delta = json_number_value(delta);
    if (n && !(json_is_integer(n) && json_integer_value(n) > 0 && (uint64_t)json_integer_value(n) <= most->n))
        return sf_fault_set(fault, 400, "bad_request",
                            "\"n\" must be a whole number above 0, and at most the server's, %llu",
                            (unsigned long long)most->n);
    if (n) terms->n = (uint64_t)json_integer_value(n);
    if (terms->n0 > terms->n && n) terms->n0 = terms->n;
    return 0;
}

static int read_choice(sf_job *job, const safer_model *second, sf_fault *fault)
{
    const json_t *value = json_object_get(job->body, "model");
    const char *name = json_string_value(value);
    if (!value) return 0;
    job->second = name && strcmp(name, "second") == 0;
    if (!job->second && !(name && strcmp(name, "first") == 0))
        return sf_fault_set(fault, 400, "bad_request", "\"model\" must be \"first\" or \"second\"");
    if (job->second && !second)
        return sf_fault_set(fault, 400, "bad_request", "\"model\": this server has no second model");
    return 0;
}

static int read_texts(sf_job *job, sf_job_limits limits, sf_fault *fault)
{
    if (!json_is_object(job->body)) return sf_fault_set(fault, 400, "bad_request", "the body must be a JSON object");
    if (check_members(job, fault) || read_terms(job, limits.certify, fault) || read_choice(job, limits.second, fault))
        return -1;
    const safer_model *model = job->second ? limits.second : limits.model;
    const json_t *text = json_object_get(job->body, "text"), *texts = json_object_get(job->body, "texts");
    const json_t *label = json_object_get(job->body, "label"), *labels = json_object_get(job->body, "labels");
    if (!text && !json_is_array(texts))
        return sf_fault_set(fault, 400, "bad_request", "\"texts\" must be a list of strings");
    job->count = text ? 1 : json_array_size(texts);
    if (job->count == 0) return sf_fault_set(fault, 400, "bad_request", "\"texts\" is empty");
    if (job->count > limits.texts)
        return sf_fault_set(fault, 413, "too_large", "%zu texts; at most %zu are taken", job->count, limits.texts);
    if (labels && (!json_is_array(labels) || json_array_size(labels) != job->count))
        return sf_fault_set(fault, 400, "bad_request", "\"labels\" must be a list as long as \"texts\"");
    job->texts = sf_calloc(job->count, sizeof *job->texts);
    if (!job->texts) return sf_fault_set(fault, 500, "failed", "out of memory");
    for (size_t i = 0; i < job->count; i++) {
        if (read_text(&job->texts[i], text ? text : json_array_get(texts, i), i + 1, limits.text, fault) ||
            read_label(&job->texts[i].label, labels ? json_array_get(labels, i) : label, model, fault))
            return -1;
        job->labelled |= job->texts[i].label >= 0;
    }
    return 0;
}

int sf_job_read(sf_job **out, const sf_route *route, const char *body, size_t length, const sf_job_limits *limits,
                sf_fault *fault)
{
    json_error_t wrong;
    sf_job *job = sf_calloc(1, sizeof *job);
    if (!job) return sf_fault_set(fault, 500, "failed", "out of memory");
    job->route = route;
    job->references = 1;
    pthread_mutex_init(&job->lock, NULL);
    const safer_status status = sf_json_parse(&job->body, body ? body : "", length,
                                              JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &wrong);
    if (status == SAFER_MEMORY)
        sf_fault_set(fault, 500, "failed", "out of memory");
    else if (status != SAFER_OK)
        sf_fault_set(fault, 400, "bad_json", "the body is not JSON at byte %d: %s", wrong.position, wrong.text);
    if (!job->body || read_texts(job, *limits, fault)) {
        sf_job_release(job);
        return -1;
    }
    *out = job;
    return 0;
}

/* ---------------------------------------------------------------- its life */

void sf_job_hold(sf_job *job)
{
    pthread_mutex_lock(&job->lock);
    job->references++;
    pthread_mutex_unlock(&job->lock);
}

void sf_job_release(sf_job *job)
{
    if (!job) return;
    pthread_mutex_lock(&job->lock);
    int left = --job->references;
    pthread_mutex_unlock(&job->lock);
    if (left) return;
    for (size_t i = 0; job->texts && i < job->count; i++) json_decref(job->texts[i].answer);
    free(job->texts);
    json_decref(job->body);
    free(job->answer);
    sf_buffer_free(&job->events);
    if (job->account) atomic_fetch_sub(job->account, job->held);
    pthread_mutex_destroy(&job->lock);
    free(job);
}

/* The lock is held. */
static void wake(sf_job *job)
{
    if (!job->waiting) return;
    job->waiting = 0;
    job->wake(job->wake_context);
}

void sf_job_finish(sf_job *job, char *answer)
{
    sf_fault fault;
    if (!answer) {
        sf_fault_set(&fault, 500, "failed", "out of memory");
        sf_job_fail(job, &fault, NULL);
        return;
    }
    pthread_mutex_lock(&job->lock);
    if (job->status)
        free(answer);
    else {
        job->status = 200;
        job->answer = answer;
        if (job->account) {
            const size_t length = strlen(answer);
            job->held += length;
            atomic_fetch_add(job->account, length);
        }
        wake(job);
    }
    pthread_mutex_unlock(&job->lock);
}

/* For the log, which is UTF-8. The lock is held. */
static void note(sf_job *job, const char *detail)
{
    if (!detail) return;
    snprintf(job->detail, sizeof job->detail, "%s", detail);
    job->detail[sf_utf8_valid(job->detail, strlen(job->detail))] = '\0';
}

void sf_job_fail(sf_job *job, const sf_fault *fault, const char *detail)
{
    atomic_store(&job->cancelled, 1);
    if (job->route->id == SF_ROUTE_STREAM) {
        pthread_mutex_lock(&job->lock);
        if (!job->status) note(job, detail);
        pthread_mutex_unlock(&job->lock);
        sf_job_emit(job, "error", fault_value(fault), 1);
        return;
    }
    char *answer = sf_fault_json(fault);
    pthread_mutex_lock(&job->lock);
    if (job->status)
        free(answer);
    else {
        job->status = fault->status;
        job->answer = answer; /* without memory there is a status and no body */
        note(job, detail);
        wake(job);
    }
    pthread_mutex_unlock(&job->lock);
}

void sf_job_emit(sf_job *job, const char *event, json_t *data, int last)
{
    char *text = sf_json_text(data);
    json_decref(data);
    pthread_mutex_lock(&job->lock);
    if (!job->status && (last || job->events.length - job->sent < UNREAD_EVENTS)) {
        if (job->sent) { /* a reader may never catch up: what it has taken is not kept */
            job->events.length -= job->sent;
            memmove(job->events.bytes, job->events.bytes + job->sent, job->events.length);
            job->sent = 0;
        }
        /* Without memory the stream is cut, which a client sees: its last chunk is missing. */
        int failed = !text || sf_buffer_reserve(&job->events, strlen(event) + strlen(text) + 20) ||
                     sf_buffer_format(&job->events, "event: %s\ndata: %s\n\n", event, text);
        if (last || failed) job->status = failed ? 500 : 200;
        wake(job);
    }
    pthread_mutex_unlock(&job->lock);
    free(text);
}
