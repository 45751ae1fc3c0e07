/* What comes out of a text, as JSON. */
#include "serve/answer.h"

#include "base/json.h"
#include "base/progress.h"
#include "certify/answer.h"
#include "certify/record.h"
#include "draw/enumerate.h"

#include <string.h>

static json_t *label_json(const safer_model *model, int label)
{
    return label >= 0 && (size_t)label < model->classes ? json_string(model->labels[label]) : json_null();
}

static json_t *votes_json(const safer_model *model, const uint64_t *votes)
{
    json_t *object = json_object();
    for (size_t k = 0; k < model->classes; k++)
        sf_json_put(&object, model->labels[k], json_integer((json_int_t)votes[k]));
    return object;
}

/* --------------------------------------------------------------- streaming */

enum { FREE_EVENTS = 64 };
#define EVENT_SECONDS 0.05 /* between events, once there were so many: a bound takes time to compute */

typedef struct watching {
    sf_job *job;
    int events;
    double last;
} watching;

static void tell_start(sf_job *job, const safer_certificate *c, const safer_workspace *w)
{
    json_t *q_at = json_array();
    for (size_t r = 0; r < SAFER_RADII; r++) json_array_append_new(q_at, json_real(c->q[r]));
    json_t *data = json_pack("{s:I, s:I, s:I, s:o, s:s, s:f, s:I}", "words", (json_int_t)c->words, "slots",
                             (json_int_t)c->slots, "visible", (json_int_t)c->visible, "q_at", q_at, "method",
                             safer_method_name(w->options.method), "delta", w->options.delta, "n",
                             (json_int_t)w->options.n);
    json_t *q_edits = w->split ? json_array() : NULL;
    for (size_t i = 0; w->split && i <= w->options.edits; i++) sf_json_push(&q_edits, json_real(c->q_edits[i]));
    if (w->split) sf_json_put(&data, "q_edits", q_edits);
    sf_job_emit(job, "start", data, 0);
}

/* What the groups that were asked last read, and what each of them answers. */
static void tell_groups(sf_job *job, const safer_certificate *c, const safer_workspace *w)
{
    const uint64_t batch = w->options.batch, first = (c->n - 1) / batch * batch;
    sf_buffer text = {0};
    json_t *votes = json_array();
    for (size_t i = 0; i < c->n - first; i++) {
        const uint32_t *draw = w->draws + i * w->sampler.width;
        sf_buffer_clear(&text);
        const int failed = sf_slots_render(&text, &w->slots, w->lexicon, draw);
        sf_json_push(&votes, failed
                                 ? NULL
                                 : json_pack("{s:I, s:I, s:o, s:s#}", "group", (json_int_t)w->sampler.parts[first + i],
                                             "count", (json_int_t)sf_enumerate_weight(&w->sampler, w->visible, draw),
                                             "label", label_json(w->model, w->answers[i]), "text",
                                             text.length ? text.bytes : "", (int)text.length));
    }
    sf_buffer_free(&text);
    sf_job_emit(job, "groups", votes ? json_pack("{s:o}", "votes", votes) : NULL, 0);
}

static void tell_prediction(sf_job *job, const safer_certificate *c, const safer_workspace *w)
{
    sf_job_emit(job, "prediction",
                json_pack("{s:o, s:o, s:b, s:{s:I, s:o}}", "label",
                          label_json(w->model, c->abstained ? SF_NO_LABEL : c->prediction), "leading",
                          label_json(w->model, c->prediction), "abstained", c->abstained, "vote", "n",
                          (json_int_t)c->vote_n, "counts", votes_json(w->model, c->vote_votes)),
                0);
}

static void tell_progress(watching *self, const safer_certificate *c, safer_workspace *w)
{
    double bound = 0, now = sf_seconds();
    size_t radius = 0;
    if (self->events++ >= FREE_EVENTS && now - self->last < EVENT_SECONDS) return;
    self->last = now;
    json_t *data = json_pack("{s:I, s:o}", "n", (json_int_t)c->n, "target", label_json(w->model, c->target));
    int claim = sf_certificate_claims(w, c, &bound, &radius);
    if (!c->exact) sf_json_put(&data, "counts", votes_json(w->model, c->votes));
    sf_json_put(&data, "claim", json_boolean(claim));
    sf_json_put(&data, "bound", claim ? json_real(bound) : json_null());
    sf_json_put(&data, "radius", claim ? sf_radius_json(radius) : json_null());
    sf_job_emit(self->job, "progress", data, 0);
}

static int look(void *context, sf_moment moment, const safer_certificate *c, safer_workspace *w)
{
    watching *self = context;
    if (atomic_load(&self->job->cancelled)) return 1;
    if (self->job->route->id != SF_ROUTE_STREAM) return 0;
    if (moment == SF_TEXT_READ)
        tell_start(self->job, c, w);
    else if (moment == SF_PREDICTION_CHOSEN)
        tell_prediction(self->job, c, w);
    else if (moment == SF_BATCH_ASKED)
        tell_progress(self, c, w);
    else if (moment == SF_GROUPS_ASKED)
        tell_groups(self->job, c, w);
    return 0;
}

/* ------------------------------------------------------------------ a text */

static void fail(sf_job *job, const safer_error *error)
{
    sf_fault fault;
    if (error->status == SAFER_CANCELLED) return; /* what cancelled it has ended the job */
    /* What exactly failed may name addresses and files: that is for the log. */
    sf_fault_set(&fault, 500, "failed", error->status == SAFER_MEMORY ? "out of memory" : "the model failed");
    sf_job_fail(job, &fault, error->message);
}

int sf_answer_text(safer_certificate *out, sf_job *job, size_t index, safer_workspace *workspace)
{
    const safer_model *model = workspace->model;
    const safer_lexicon *lexicon = workspace->lexicon;
    sf_job_text *t = &job->texts[index];
    safer_error error = {0};
    watching self = {.job = job};
    if (job->route->id == SF_ROUTE_WORDS) {
        t->answer = sf_words_json(t->text, t->length, lexicon, &workspace->options, &error);
        if (!t->answer) fail(job, &error);
        return 0;
    }
    safer_status status = sf_workspace_settle(workspace, job->terms, &error);
    if (status != SAFER_OK) {
        fail(job, &error);
        return 0;
    }
    workspace->watch = (sf_watch){look, &self};
    status = safer_certify_text(out, &workspace, model, lexicon, t->text, t->length, t->label, &workspace->options,
                                &error);
    workspace->watch = (sf_watch){0};
    if (status != SAFER_OK) {
        fail(job, &error);
        return 0;
    }
    atomic_fetch_add(&job->queries, out->queries);
    if (job->route->id == SF_ROUTE_PREDICT)
        t->answer = sf_answer_json(out, model);
    else if (job->route->id == SF_ROUTE_CERTIFY)
        t->answer = sf_record_json(out, 0, workspace);
    else
        t->answer = json_pack("{s:o, s:o}", "certificate", sf_record_json(out, 0, workspace), "answer",
                              job->labelled ? json_null() : sf_answer_json(out, model));
    error.status = SAFER_MEMORY;
    if (!t->answer) fail(job, &error);
    return 1;
}

/* As JSON it is many times as large as written: it is not kept until the client has taken it away. */
static json_t *take_answer(sf_job_text *text)
{
    json_t *answer = text->answer;
    text->answer = NULL;
    return answer;
}

void sf_answer_whole(sf_job *job)
{
    if (atomic_load(&job->cancelled)) return;
    if (job->route->id == SF_ROUTE_STREAM) {
        sf_job_emit(job, "result", take_answer(&job->texts[0]), 1);
        return;
    }
    if (job->route->id == SF_ROUTE_WORDS) {
        json_t *words = take_answer(&job->texts[0]);
        sf_job_finish(job, sf_json_text(words));
        json_decref(words);
        return;
    }
    json_t *list = json_array(),
           *whole = json_pack("{s:o}", job->route->id == SF_ROUTE_PREDICT ? "answers" : "certificates", list);
    for (size_t i = 0; i < job->count; i++) json_array_append_new(list, take_answer(&job->texts[i]));
    sf_job_finish(job, json_array_size(list) == job->count ? sf_json_text(whole) : NULL);
    json_decref(whole);
}
