/* Remote models: what all transports share. What the file is for stands in remote.h; models in
 * general in docs/design.md. */
#define _GNU_SOURCE
#include "remote/remote.h"

#include "base/feeder.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/progress.h"
#include "remote/cache.h"
#include "remote/probe.h"
#include "text/unicode.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    SHARE = 64,           /* one text of so many is asked again */
    WAITING = 64,         /* texts that may wait for that, */
    CROWDED = 32,         /* and from when on they no longer wait for a request with room */
    PROBED = 16,          /* texts of the data asked twice before a run */
    NAME = 200,           /* bytes of the model's name */
    SHARE_OF_TEXT = 8,    /* questions of a request that one text is counted for, and */
    MOST_IN_FLIGHT = 256, /* the most texts at once */
    CACHE_BYTES = 1 << 28
};

/* A text with its first answer, to be asked again. */
typedef struct question {
    char *text;
    size_t length;
    int answer;
} question;

/* What changes while a model is asked, by any number of threads. */
typedef struct shared {
    pthread_mutex_t lock; /* of the cache and of what waits */
    sf_cache cache;
    question waiting[WAITING];
    size_t waiting_count;
    pthread_cond_t calm; /* nobody probes any more */
    int probing;         /* a thread probes, or identifies */
    atomic_int probed, random;
    sf_digest digest; /* of the answers to the probe set; of the one that identifies, until it is there */
    sf_feeder feeder; /* in front of the transport */
    _Atomic uint64_t asked, cached, again, changed, none;
} shared;

typedef struct remote {
    safer_model base;
    sf_transport transport;
    sf_labels labels;
    int caching;
    shared *shared; /* owned */
} remote;

/* Working memory of one thread. */
typedef struct scratch {
    size_t batch;
    sf_span *request; /* (batch) */
    int *answers;     /* (batch) */
    question riding[WAITING];
    sf_cache seen;    /* texts of a call that are not in the cache, numbered */
    sf_span *unknown; /* (capacity), and their answers; of every text of the call, its number */
    int *found, *number;
    size_t unknown_capacity, found_capacity, number_capacity;
} scratch;

static void scratch_free(void *pointer)
{
    scratch *s = pointer;
    if (!s) return;
    sf_cache_free(&s->seen);
    free(s->request);
    free(s->answers);
    free(s->unknown);
    free(s->found);
    free(s->number);
    free(s);
}

static safer_status scratch_new(const safer_model *model, void **out, safer_error *error)
{
    const remote *r = (const remote *)model;
    scratch *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    s->batch = r->transport.batch;
    s->request = sf_alloc(s->batch, sizeof *s->request);
    s->answers = sf_alloc(s->batch, sizeof *s->answers);
    if (!s->request || !s->answers) {
        scratch_free(s);
        return sf_fail_memory(error);
    }
    *out = s;
    return SAFER_OK;
}

/* ------------------------------------------------------------------ the guard */

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static int is_random(const safer_model *model) { return atomic_load(&((const remote *)model)->shared->random); }

static void set_random(const safer_model *model) { atomic_store(&((const remote *)model)->shared->random, 1); }

/* Whether this text is one of those that are asked again: by its content, so that no
 * order of the texts matters. */
static int is_checked(sf_span text) { return sf_hash(text.bytes, text.length, 1) % SHARE == 0; }

/* A copy of the text waits for a later request; without room it is left out. */
static safer_status remember(const remote *r, sf_span text, int answer, safer_error *error)
{
    char *copy = sf_strndup(text.bytes, text.length);
    if (!copy) return sf_fail_memory(error);
    pthread_mutex_lock(&r->shared->lock);
    if (r->shared->waiting_count < WAITING) {
        r->shared->waiting[r->shared->waiting_count++] = (question){copy, text.length, answer};
        copy = NULL;
    }
    pthread_mutex_unlock(&r->shared->lock);
    free(copy);
    return SAFER_OK;
}

/* Up to `room` waiting texts are added to the next request, when there are at least `least`. */
static size_t take_waiting(question *riding, const remote *r, size_t least, size_t room)
{
    size_t count = 0;
    pthread_mutex_lock(&r->shared->lock);
    if (r->shared->waiting_count >= least)
        while (count < room && r->shared->waiting_count)
            riding[count++] = r->shared->waiting[--r->shared->waiting_count];
    pthread_mutex_unlock(&r->shared->lock);
    return count;
}

static const char *name_of(const safer_model *model, int label)
{
    return label >= 0 ? model->labels[label] : "no label";
}

/* The text was answered `before`, and now `answer`. */
static safer_status compare(const remote *r, sf_span text, int before, int answer, safer_error *error)
{
    atomic_fetch_add(&r->shared->again, 1);
    if (answer == before) return SAFER_OK;
    atomic_fetch_add(&r->shared->changed, 1);
    atomic_store(&r->shared->random, 1); /* from now on there is no exact claim */
    return sf_fail(
        error, SAFER_INPUT,
        "the model answered \"%s\" and later \"%s\" for the same text (\"%.*s...\"): it is not a function of the "
        "text%s. Say that it is random: then it is certified by sampling alone",
        name_of(&r->base, before), name_of(&r->base, answer), sf_clip(text.bytes, text.length, 60), text.bytes,
        r->base.function ? ", as was declared" : "");
}

/* ------------------------------------------------------------------- requests */

/* Texts of one thread, on their way to the transport. */
typedef struct texts_asked {
    sf_asking asking;
    const sf_span *texts;
    int *labels;
    float *scores; /* may be NULL */
} texts_asked;

/* One request: the texts of several threads. */
static safer_status ask_together(void *self, sf_asking *first, size_t count, safer_error *error)
{
    const remote *r = self;
    const size_t classes = r->base.classes;
    texts_asked *t = (texts_asked *)first;
    if (!first->next) return r->transport.ask(r->transport.self, t->texts, count, t->labels, t->scores, error);
    int scored = 0;
    for (t = (texts_asked *)first; t; t = (texts_asked *)t->asking.next) scored |= t->scores != NULL;
    sf_span *texts = sf_alloc(count, sizeof *texts);
    int *labels = sf_alloc(count, sizeof *labels);
    float *scores = scored ? sf_alloc(count * classes, sizeof *scores) : NULL;
    safer_status status = texts && labels && (scores || !scored) ? SAFER_OK : sf_fail_memory(error);
    size_t at = 0;
    for (t = (texts_asked *)first; t && status == SAFER_OK; at += t->asking.count, t = (texts_asked *)t->asking.next)
        memcpy(texts + at, t->texts, t->asking.count * sizeof *texts);
    if (status == SAFER_OK) status = r->transport.ask(r->transport.self, texts, count, labels, scores, error);
    at = 0;
    for (t = (texts_asked *)first; t && status == SAFER_OK; at += t->asking.count, t = (texts_asked *)t->asking.next) {
        memcpy(t->labels, labels + at, t->asking.count * sizeof *labels);
        if (t->scores) memcpy(t->scores, scores + at * classes, t->asking.count * classes * sizeof *scores);
    }
    free(texts);
    free(labels);
    free(scores);
    return status;
}

static safer_status request(const remote *r, const sf_span *texts, size_t count, int *labels, float *scores,
                            safer_error *error)
{
    texts_asked own = {{.count = count, .error = error}, texts, labels, scores};
    return sf_feeder_ask(&r->shared->feeder, &own.asking);
}

/* A function that one thread calls at a time is called by the thread that asked for the whole work: it may be bound to
 * it, and Ctrl-C finds it there. */
static void host(const safer_model *model, void (*work)(void *context), void *context)
{
    const remote *r = (const remote *)model;
    if (r->transport.concurrency == 1)
        sf_feeder_host(&r->shared->feeder, work, context);
    else
        work(context);
}

/* One request: `count` texts, and behind them those that were added. The answers are in the
 * scratch. */
static safer_status ask_with(const remote *r, const sf_span *texts, size_t count, size_t riding, float *scores,
                             scratch *s, safer_error *error)
{
    if (count) memcpy(s->request, texts, count * sizeof *texts);
    for (size_t i = 0; i < riding; i++) s->request[count + i] = (sf_span){s->riding[i].text, s->riding[i].length};
    safer_status status = request(r, s->request, count + riding, s->answers, scores, error);
    for (size_t i = 0; i < riding; i++) {
        const question *q = &s->riding[i];
        if (status == SAFER_OK)
            status = compare(r, (sf_span){q->text, q->length}, q->answer, s->answers[count + i], error);
        free(q->text);
    }
    return status;
}

static safer_status ask_some(const remote *r, const sf_span *texts, size_t count, int *labels, float *scores,
                             scratch *s, safer_error *error)
{
    size_t riding = is_random(&r->base) || scores ? 0 : take_waiting(s->riding, r, 1, s->batch - count);
    safer_status status = ask_with(r, texts, count, riding, scores, s, error);
    if (status != SAFER_OK) return status;
    uint64_t none = 0;
    for (size_t i = 0; i < count; i++) none += s->answers[i] < 0;
    atomic_fetch_add(&r->shared->asked, count);
    if (none) atomic_fetch_add(&r->shared->none, none);
    memcpy(labels, s->answers, count * sizeof *labels);
    for (size_t i = 0; !is_random(&r->base) && status == SAFER_OK && i < count; i++)
        if (is_checked(texts[i])) status = remember(r, texts[i], labels[i], error);
    return status;
}

static safer_status ask_all(const remote *r, const sf_span *texts, size_t count, int *labels, float *scores, scratch *s,
                            safer_error *error)
{
    size_t classes = r->base.classes, riding;
    for (size_t first = 0; first < count; first += s->batch) {
        const size_t some = smaller(count - first, s->batch);
        safer_status status = ask_some(r, texts + first, some, labels + first, scores ? scores + first * classes : NULL,
                                       s, error);
        if (status != SAFER_OK) return status;
    }
    /* Where every request is full they get one of their own, now and then. */
    while (!is_random(&r->base) && !scores &&
           (riding = take_waiting(s->riding, r, CROWDED, smaller(s->batch, WAITING)))) {
        safer_status status = ask_with(r, NULL, 0, riding, NULL, s, error);
        if (status != SAFER_OK) return status;
    }
    return SAFER_OK;
}

/* Numbers the texts that the cache does not know, each once; the others are answered. Returns
 * how many, or SIZE_MAX without memory. */
static size_t look_up(const remote *r, const sf_span *texts, size_t count, int *labels, scratch *s)
{
    size_t unknown = 0;
    int failed = sf_grow(&s->unknown, &s->unknown_capacity, count, sizeof *s->unknown) ||
                 sf_grow(&s->found, &s->found_capacity, count, sizeof *s->found) ||
                 sf_grow(&s->number, &s->number_capacity, count, sizeof *s->number);
    if (failed) return SIZE_MAX;
    sf_cache_clear(&s->seen);
    pthread_mutex_lock(&r->shared->lock);
    for (size_t i = 0; i < count && !failed; i++) {
        const uint64_t hash = sf_cache_hash(texts[i]);
        const sf_cache_entry *known = sf_cache_find(&r->shared->cache, texts[i], hash), *twin;
        s->number[i] = -1;
        if (known) {
            labels[i] = known->answer;
        } else if ((twin = sf_cache_find(&s->seen, texts[i], hash))) {
            s->number[i] = twin->answer;
        } else {
            failed = sf_cache_add(&s->seen, texts[i], hash, (int)unknown);
            s->number[i] = (int)unknown;
            s->unknown[unknown++] = texts[i];
        }
    }
    pthread_mutex_unlock(&r->shared->lock);
    return failed ? SIZE_MAX : unknown;
}

static safer_status classify(const safer_model *model, const sf_span *texts, size_t count, int *labels, float *scores,
                             void *pointer, safer_error *error)
{
    const remote *r = (const remote *)model;
    scratch *s = pointer;
    if (scores || !r->caching || is_random(model)) return ask_all(r, texts, count, labels, scores, s, error);
    size_t unknown = look_up(r, texts, count, labels, s);
    if (unknown == SIZE_MAX) return sf_fail_memory(error);
    atomic_fetch_add(&r->shared->cached, count - unknown);
    safer_status status = ask_all(r, s->unknown, unknown, s->found, NULL, s, error);
    if (status != SAFER_OK) return status;
    int failed = 0;
    pthread_mutex_lock(&r->shared->lock);
    for (size_t i = 0; i < unknown && !failed; i++) {
        const uint64_t hash = sf_cache_hash(s->unknown[i]);
        if (!sf_cache_find(&r->shared->cache, s->unknown[i], hash))
            failed = sf_cache_add(&r->shared->cache, s->unknown[i], hash, s->found[i]);
    }
    pthread_mutex_unlock(&r->shared->lock);
    if (failed) return sf_fail_memory(error);
    for (size_t i = 0; i < count; i++)
        if (s->number[i] >= 0) labels[i] = s->found[s->number[i]];
    return SAFER_OK;
}

/* ------------------------------------------------------------ asking twice */

static safer_status confirm(const safer_model *model, const sf_span *texts, const int *answers, size_t count,
                            void *pointer, safer_error *error)
{
    safer_status status = SAFER_OK;
    const remote *r = (const remote *)model;
    scratch *s = pointer;
    for (size_t first = 0; first < count; first += s->batch) {
        const size_t some = smaller(count - first, s->batch);
        SF_TRY(request(r, texts + first, some, s->answers, NULL, error));
        for (size_t i = 0; i < some; i++)
            SF_TRY(compare(r, texts[first + i], answers[first + i], s->answers[i], error));
    }
done:
    return status;
}

/* Asks twice: together, and then, the last one first, in requests of 1, 2, 4 ... texts, so that each has other
 * neighbours and another place. answers (count) are the first ones. A change makes the model random; where it was
 * declared a function it is an error. */
static safer_status ask_twice(int *answers, const remote *r, const sf_span *texts, size_t count, safer_error *error)
{
    safer_status status = SAFER_OK, changed = SAFER_OK;
    sf_span some_texts[SF_PROBE_TEXTS];
    int second[SF_PROBE_TEXTS];
    const size_t batch = r->transport.batch;
    safer_error *told = r->base.function ? error : NULL;
    assert(count <= SF_PROBE_TEXTS);
    for (size_t at = 0; at < count; at += batch)
        SF_TRY(request(r, texts + at, smaller(count - at, batch), answers + at, NULL, error));
    atomic_fetch_add(&r->shared->again, count);
    for (size_t left = count, size = 1; left; size *= 2) {
        const size_t some = smaller(smaller(size, batch), left);
        for (size_t i = 0; i < some; i++) some_texts[i] = texts[left - 1 - i];
        SF_TRY(request(r, some_texts, some, second, NULL, error));
        for (size_t i = 0; i < some; i++, left--)
            if (compare(r, some_texts[i], answers[left - 1], second[i], told) != SAFER_OK) changed = SAFER_INPUT;
    }
    if (r->base.function) status = changed;
done:
    return status;
}

/* One thread at a time probes, or identifies; the others wait. */
static safer_status begin_probing(shared *s, safer_error *error)
{
    int cancelled = 0;
    pthread_mutex_lock(&s->lock);
    while (s->probing && !cancelled) cancelled = sf_duty_wait(&s->calm, &s->lock);
    if (!cancelled) s->probing = 1;
    pthread_mutex_unlock(&s->lock);
    return cancelled ? sf_fail(error, SAFER_CANCELLED, "cancelled while the model was asked") : SAFER_OK;
}

static void end_probing(shared *s)
{
    pthread_mutex_lock(&s->lock);
    s->probing = 0;
    pthread_cond_broadcast(&s->calm);
    pthread_mutex_unlock(&s->lock);
}

static safer_status probe(const safer_model *model, const sf_span *texts, size_t count, safer_error *error)
{
    safer_status status = SAFER_OK;
    const remote *r = (const remote *)model;
    shared *s = r->shared;
    int answers[PROBED];
    if (atomic_load(&s->probed) || is_random(model)) return SAFER_OK;
    status = begin_probing(s, error);
    if (status != SAFER_OK) return status;
    if (!atomic_load(&s->probed) && !is_random(model)) {
        status = ask_twice(answers, r, texts, smaller(count, PROBED), error);
        if (status == SAFER_OK) atomic_store(&s->probed, 1);
    }
    end_probing(s);
    return status;
}

static safer_status identify(const safer_model *model, safer_error *error)
{
    safer_status status = SAFER_OK;
    const remote *r = (const remote *)model;
    shared *s = r->shared;
    sf_span texts[SF_PROBE_TEXTS];
    int answers[SF_PROBE_TEXTS];
    for (size_t i = 0; i < SF_PROBE_TEXTS; i++) texts[i] = (sf_span){sf_probe_texts[i], strlen(sf_probe_texts[i])};
    status = begin_probing(s, error);
    if (status != SAFER_OK) return status;
    if (!*s->digest.hex && !is_random(model)) {
        SF_TRY(ask_twice(answers, r, texts, SF_PROBE_TEXTS, error));
        if (!is_random(model)) status = sf_probe_digest(&s->digest, &r->labels, answers, error);
    }
done:
    end_probing(s);
    return status;
}

static const char *probe_digest(const safer_model *model) { return ((const remote *)model)->shared->digest.hex; }

/* ---------------------------------------------------------------------- model */

static void shared_free(shared *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->waiting_count; i++) free(s->waiting[i].text);
    sf_cache_free(&s->cache);
    sf_feeder_end(&s->feeder);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->calm);
    free(s);
}

static void model_free(safer_model *model)
{
    remote *r = (remote *)model;
    if (r->transport.free) r->transport.free(r->transport.self);
    shared_free(r->shared);
    sf_model_clear(model);
    free(r);
}

#define REMOTE_CLASS(name, hosted) \
    { \
        .arch = name, .classify = classify, .scratch_new = scratch_new, .scratch_free = scratch_free, \
        .free = model_free, .probe = probe, .is_random = is_random, .set_random = set_random, .confirm = confirm, \
        .identify = identify, .probe_digest = probe_digest, .host = hosted \
    }
static const sf_model_class classes[] = {REMOTE_CLASS("exec", NULL), REMOTE_CLASS("http", NULL),
                                         REMOTE_CLASS("callback", host)};
#undef REMOTE_CLASS
enum { CLASSES = sizeof classes / sizeof classes[0] };

static const sf_model_class *class_of(const char *arch)
{
    size_t i = 0;
    while (i + 1 < CLASSES && strcmp(classes[i].arch, arch) != 0) i++;
    return &classes[i];
}

void safer_remote_options_init(safer_remote_options *options, size_t size)
{
    static const safer_remote_options defaults = {
        .timeout = 60, .retries = 5, .cache = SAFER_DEFAULT, .concurrency = SAFER_DEFAULT};
    sf_options_init(options, size, &defaults, sizeof defaults);
}

/* What the model is declared to be, and called. */
static safer_status check_declared(const safer_remote_options *o, safer_error *error)
{
    const char *name = o->model_name;
    if (o->function && o->random)
        return sf_fail(error, SAFER_INVALID, "`function`: the model cannot be a function of the text and `random`");
    if (o->cache != SAFER_DEFAULT && o->cache && !o->function)
        return sf_fail(
            error, SAFER_INVALID,
            "`cache`: only a model that is declared a function of the text may be asked once about identical "
            "texts (`function`)");
    if (!name) return SAFER_OK;
    const size_t length = strlen(name);
    int plain = length > 0 && length <= NAME && sf_utf8_valid(name, length) == length;
    for (const char *c = name; plain && *c; c++) plain = (unsigned char)*c >= ' ' && *c != 127;
    return plain ? SAFER_OK
                 : sf_fail(error, SAFER_INVALID,
                           "`model_name`: 1 to %d bytes of UTF-8 without line ends and other control characters", NAME);
}

safer_status sf_remote_check(const safer_remote_options *o, safer_error *error)
{
    if (o->label_count < 2)
        return sf_fail(error, SAFER_INVALID, "`labels`: %zu; at least two names are needed", o->label_count);
    for (size_t i = 0; i < o->label_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(o->labels[i], o->labels[j]) == 0)
                return sf_fail(error, SAFER_INVALID, "`labels`: \"%.80s\" twice", o->labels[i]);
    if (!safer_profile_name(o->profile)) return sf_fail(error, SAFER_INVALID, "`profile`: unknown");
    if (o->batch > 1 << 20) return sf_fail(error, SAFER_INVALID, "`remote.batch`: %zu (at most 1048576)", o->batch);
    if (!(o->timeout > 0 && o->timeout <= 1e6))
        return sf_fail(error, SAFER_INVALID, "`timeout`: %g (above 0, at most 1000000 seconds)", o->timeout);
    if (o->retries < 0 || o->retries > 1000)
        return sf_fail(error, SAFER_INVALID, "`retries`: %d (0 to 1000)", o->retries);
    if (o->workers < 0 || o->workers > 1000)
        return sf_fail(error, SAFER_INVALID, "`workers`: %d (0 to 1000)", o->workers);
    if (o->concurrency != SAFER_DEFAULT && (o->concurrency < 1 || o->concurrency > 1000))
        return sf_fail(error, SAFER_INVALID, "`concurrency`: %d (1 to 1000)", o->concurrency);
    return check_declared(o, error);
}

static int is_whole_number(const char *text)
{
    if (*text == '-') text++;
    return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 19;
}

static safer_status copy_labels(remote *r, const safer_remote_options *o, safer_error *error)
{
    r->labels.numbers = 1;
    r->base.labels = sf_calloc(o->label_count, sizeof *r->base.labels);
    if (!r->base.labels) return sf_fail_memory(error);
    for (size_t k = 0; k < o->label_count; k++) {
        if (!(r->base.labels[k] = sf_strdup(o->labels[k]))) return sf_fail_memory(error);
        r->base.classes = k + 1;
        r->labels.numbers &= is_whole_number(o->labels[k]);
    }
    r->labels.names = r->base.labels;
    r->labels.count = o->label_count;
    return SAFER_OK;
}

/* A model without its transport yet: labels have a lasting place. */
static safer_status remote_new(remote **out, const safer_remote_options *o, safer_error *error)
{
    safer_status status = sf_remote_check(o, error);
    if (status != SAFER_OK) return status;
    remote *r = sf_calloc(1, sizeof *r);
    if (!r) return sf_fail_memory(error);
    r->base.class = &classes[0];
    r->shared = sf_calloc(1, sizeof *r->shared);
    if (!r->shared) {
        model_free(&r->base);
        return sf_fail_memory(error);
    }
    pthread_mutex_init(&r->shared->lock, NULL);
    pthread_cond_init(&r->shared->calm, NULL);
    sf_feeder_start(&r->shared->feeder, ask_together, r, 1, 1); /* as large as the transport takes them: complete() */
    r->shared->cache.limit = CACHE_BYTES;
    r->base.function = o->function;
    if (o->model_name && !(r->base.name = sf_strdup(o->model_name))) status = sf_fail_memory(error);
    if (status == SAFER_OK) status = copy_labels(r, o, error);
    if (status == SAFER_OK)
        *out = r;
    else
        model_free(&r->base);
    return status;
}

/* The part of an http address that holds no secret: without user and password, and without
 * what follows the path. */
static uint64_t hash_address(const char *address, uint64_t seed)
{
    const char *host = strncmp(address, "http", 4) == 0 ? strstr(address, "://") : NULL;
    if (!host) return sf_hash(address, strlen(address), seed);
    host += 3;
    const size_t authority = strcspn(host, "/?#"), length = strcspn(host, "?#");
    const char *at = memrchr(host, '@', authority);
    const char *begin = at ? at + 1 : host;
    return sf_hash(begin, (size_t)(host + length - begin), sf_hash(address, (size_t)(host - address), seed));
}

/* What the model is, in records: where it is asked and how, never with what secret. */
static uint64_t identity(const char *address, const safer_remote_options *o)
{
    const char *profile = o->profile == SAFER_PROFILE_JSON ? NULL : safer_profile_name(o->profile);
    const char *parts[] = {profile, o->request, o->answer, o->name};
    uint64_t hash = hash_address(address, 0);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i]) hash = sf_hash(parts[i], strlen(parts[i]), hash ^ i);
    for (size_t k = 0; k < o->label_count; k++) hash = sf_hash(o->labels[k], strlen(o->labels[k]), hash ^ 5);
    return hash;
}

/* How many texts are worked on at once, so that their draws fill requests: a text asks 16 and more at a time, and
 * while some wait for a request others gather for the next. */
static int in_flight(const sf_transport *t)
{
    const size_t each = t->batch / SHARE_OF_TEXT, all = (each ? each : 1) * (size_t)t->concurrency;
    return (int)smaller(all, MOST_IN_FLIGHT);
}

static void complete(remote *r, const char *address, const safer_remote_options *o)
{
    r->base.class = class_of(r->transport.arch);
    r->base.hash = identity(address, o);
    if (o->random) set_random(&r->base);
    r->base.concurrency = in_flight(&r->transport);
    r->base.calls = r->transport.concurrency;
    r->shared->feeder.most = r->transport.batch;
    r->shared->feeder.calls = r->transport.concurrency;
    r->caching = o->function && (o->cache == SAFER_DEFAULT ? strcmp(r->transport.arch, "http") == 0 : o->cache != 0);
}

safer_status safer_model_connect(safer_model **out, const char *address, const safer_remote_options *given,
                                 safer_error *error)
{
    safer_remote_options own = safer_remote_options_default();
    const safer_remote_options *options = &own;
    safer_status status = SF_TAKE_OPTIONS(&own, given, safer_remote_options, error);
    if (status != SAFER_OK) return status;
    remote *r = NULL;
    SF_TRY(remote_new(&r, options, error));
    if (strcmp(address, "exec:") == 0) {
        status = sf_fail(error, SAFER_INVALID, "exec: needs a command behind it");
        goto done;
    }
    if (strncmp(address, "exec:", 5) == 0) {
        SF_TRY(sf_exec_open(&r->transport, address + 5, &r->labels, options, error));
    } else if (strncmp(address, "http://", 7) == 0 || strncmp(address, "https://", 8) == 0) {
        SF_TRY(sf_http_open(&r->transport, address, &r->labels, options, error));
    } else {
        status = sf_fail(error, SAFER_INVALID, "\"%.*s...\" is neither exec:COMMAND nor an http:// or https:// address",
                         sf_clip(address, strcspn(address, ":/?@"), 40), address); /* no more: there may be secrets */
        goto done;
    }
    complete(r, address, options);
    *out = &r->base;
    r = NULL;
done:
    if (r) model_free(&r->base);
    return status;
}

/* ------------------------------------------------------------------- callback */

typedef struct caller {
    safer_classify classify;
    void *context;
    size_t classes;
} caller;

static safer_status ask_caller(void *self, const sf_span *texts, size_t count, int *labels, float *scores,
                               safer_error *error)
{
    caller *c = self;
    const char **strings = sf_alloc(count, sizeof *strings);
    size_t *lengths = sf_alloc(count, sizeof *lengths);
    safer_status status = strings && lengths ? SAFER_OK : sf_fail_memory(error);
    for (size_t i = 0; status == SAFER_OK && i < count; i++) {
        strings[i] = texts[i].bytes;
        lengths[i] = texts[i].length;
        labels[i] = INT_MIN; /* not a class: what the function leaves out is noticed below */
    }
    if (status == SAFER_OK) {
        if (c->classify(c->context, strings, lengths, count, labels))
            status = sf_fail(error, SAFER_CALLBACK, "the function that classifies reported failure");
    }
    for (size_t i = 0; status == SAFER_OK && i < count; i++)
        if (labels[i] == INT_MIN)
            status = sf_fail(error, SAFER_INPUT, "the function that classifies left a text without an answer");
        else if (labels[i] < -1 || (labels[i] >= 0 && (size_t)labels[i] >= c->classes))
            status = sf_fail(error, SAFER_INPUT, "the function that classifies returned class %d; there are %zu",
                             labels[i], c->classes);
    if (status == SAFER_OK && scores) sf_one_hot(scores, labels, count, c->classes);
    free(strings);
    free(lengths);
    return status;
}

safer_status safer_model_from_callback(safer_model **out, safer_classify function, void *context,
                                       const safer_remote_options *given, safer_error *error)
{
    remote *r = NULL;
    safer_remote_options own = safer_remote_options_default();
    const safer_remote_options *options = &own;
    safer_status status = SF_TAKE_OPTIONS(&own, given, safer_remote_options, error);
    if (status == SAFER_OK) status = remote_new(&r, options, error);
    if (status != SAFER_OK) return status;
    caller *c = sf_calloc(1, sizeof *c);
    if (!c) {
        model_free(&r->base);
        return sf_fail_memory(error);
    }
    int threads = options->concurrency == SAFER_DEFAULT ? 1 : options->concurrency;
    *c = (caller){.classify = function, .context = context, .classes = options->label_count};
    r->transport = (sf_transport){.arch = "callback",
                                  .self = c,
                                  .ask = ask_caller,
                                  .free = free,
                                  .batch = options->batch ? options->batch : 256,
                                  .concurrency = threads};
    complete(r, "callback", options);
    *out = &r->base;
    return SAFER_OK;
}

/* ---------------------------------------------------------------------- facts */

safer_traffic safer_model_traffic(const safer_model *model)
{
    const remote *r = (const remote *)model;
    safer_traffic traffic = {0};
    if (!sf_model_is_remote(model)) return traffic;
    const shared *now = r->shared;
    traffic = (safer_traffic){
        .asked = now->asked, .cached = now->cached, .again = now->again, .changed = now->changed, .none = now->none};
    if (r->transport.tell) r->transport.tell(r->transport.self, &traffic);
    return traffic;
}

int safer_model_is_random(const safer_model *model) { return sf_model_is_random(model); }
