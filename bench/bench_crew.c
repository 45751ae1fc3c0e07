/* How many texts rank 0 of a crew hands out per second.
 *
 *   bench_crew [--json] [--ranks N] [--texts N]
 *
 * Of the crew only rank 0 is real. The transport answers for all others (999) at once, with records like that which a
 * run by one process wrote of the same text. So what is measured is all that rank 0 does for a text of another rank:
 * reading it from the data, sending it, taking the record, checking its seal, counting it and writing it. Its own model
 * sleeps, so that it does next to no text itself. */
#define _GNU_SOURCE
#include "base/hash.h"
#include "base/progress.h"
#include "bench.h"
#include "run/crew.h"
#include "run/crew_frames.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <time.h>

static atomic_int slow; /* whether the model sleeps */

static int classify(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    (void)context, (void)texts, (void)lengths;
    if (slow) usleep(50000);
    for (size_t i = 0; i < count; i++) labels[i] = 0;
    return 0;
}

/* ------------------------------------------------------------- all other ranks */

typedef struct message {
    struct message *next;
    int from;
    sf_buffer bytes;
} message;

struct sf_transport {
    int ranks;
    const char *rest; /* of a record, behind its id, as far as it is sealed */
    uint64_t seal;
    message *first, **last;
    atomic_size_t helped;
};

static void put_frame(sf_buffer *out, uint32_t kind, sf_span contents)
{
    check(!sf_buffer_add(out, &kind, sizeof kind) && !sf_put_string(out, contents), "no memory");
}

static message *message_of(sf_transport *t, int from)
{
    message *m = calloc(1, sizeof *m);
    check(m != NULL, "no memory");
    m->from = from;
    *t->last = m;
    t->last = &m->next;
    return m;
}

static safer_status open_all(sf_transport **out, void *context, safer_error *error)
{
    sf_transport *t = *out = context;
    (void)error;
    for (int i = 1; i < t->ranks; i++)
        put_frame(&message_of(t, i)->bytes, SF_HELLO, (sf_span){SAFER_VERSION, strlen(SAFER_VERSION)});
    return SAFER_OK;
}

/* The record of a row, as a helper sends it. */
static void do_task(const sf_transport *t, sf_buffer *out, sf_span contents)
{
    char line[4096];
    uint64_t index, label;
    sf_span id;
    sf_buffer done = {0};
    check(!sf_take_number(&index, &contents) && !sf_take_number(&label, &contents) && !sf_take_string(&id, &contents),
          "a task that makes no sense");
    int length = snprintf(line, sizeof line, "{\"row\":%" PRIu64 ",\"id\":\"%.*s\"%s}", index + 1, (int)id.length,
                          id.bytes, t->rest);
    const uint64_t seal = sf_hash(line, (size_t)length, t->seal);
    length += snprintf(line + length - 1, sizeof line - (size_t)length,
                       ",\"seconds\":0.0001,\"check\":\"%016" PRIx64 "\"}\n", seal) -
              1;
    check(!sf_put_number(&done, 1) && !sf_put_number(&done, index) &&
              !sf_put_string(&done, (sf_span){line, (size_t)length}),
          "no memory");
    put_frame(out, SF_DONE, (sf_span){done.bytes, done.length});
    sf_buffer_free(&done);
}

static void answer(sf_transport *t, int rank, sf_span frames)
{
    const uint64_t ready[] = {1, 1}; /* the first run, one thread */
    sf_buffer out = {0};
    while (frames.length) {
        uint32_t kind;
        sf_span contents;
        memcpy(&kind, frames.bytes, sizeof kind);
        frames = (sf_span){frames.bytes + sizeof kind, frames.length - sizeof kind};
        check(!sf_take_string(&contents, &frames), "a frame that makes no sense");
        if (kind == SF_WELCOME) memcpy(&t->seal, contents.bytes + sizeof(uint64_t), sizeof t->seal);
        if (kind == SF_WELCOME) put_frame(&out, SF_READY, (sf_span){(const char *)ready, sizeof ready});
        if (kind == SF_TASK) do_task(t, &out, contents);
        if (kind == SF_TASK) atomic_fetch_add(&t->helped, 1);
        if (kind == SF_PING) put_frame(&out, SF_PONG, (sf_span){0});
        if (kind == SF_BEAT) put_frame(&out, SF_BEAT, (sf_span){0});
        if (kind == SF_OVER) put_frame(&out, SF_BYE, (sf_span){0});
    }
    if (out.length) message_of(t, rank)->bytes = out;
}

static safer_status send_one(sf_transport *t, int to, char *bytes, size_t length, safer_error *error)
{
    (void)error;
    answer(t, to, (sf_span){bytes, length});
    free(bytes);
    return SAFER_OK;
}

static safer_status receive_one(sf_transport *t, int *from, char **bytes, size_t *length, safer_error *error)
{
    message *m = t->first;
    (void)error;
    *bytes = NULL;
    if (!m) return SAFER_OK;
    *from = m->from;
    *bytes = m->bytes.bytes;
    *length = m->bytes.length;
    if (!(t->first = m->next)) t->last = &t->first;
    free(m);
    return SAFER_OK;
}

static int rank_of(const sf_transport *t) { return t->ranks * 0; }
static int count_of(const sf_transport *t) { return t->ranks; }
static int sending(sf_transport *t) { return t->ranks * 0; }

static const char *host_of(const sf_transport *t, int rank)
{
    (void)t;
    return rank < 500 ? "ant" : "bee";
}

static void close_all(sf_transport *t, int together) { check(together || !t, "the crew failed"); }
static void abort_all(sf_transport *t, int code) { check(!t && !code, "the crew failed"); }

static const sf_transport_table table = {SAFER_VERSION, sizeof table, open_all, rank_of,   count_of, host_of,
                                         send_one,      receive_one,  sending,  close_all, abort_all};

/* ------------------------------------------------------------------- the runs */

typedef struct runs {
    safer_model *model;
    safer_lexicon *lexicon;
    sf_transport transport;
} runs;

static safer_data *make_data(size_t texts)
{
    const char *path = bench_path("data.tsv");
    safer_data *data = NULL;
    safer_error error = {0};
    FILE *file = fopen(path, "w");
    check(file != NULL, "no file for the data");
    for (size_t i = 0; i < texts; i++)
        fprintf(file, "%zu\tno\tA short text without any word that could be replaced\n", i);
    check(fclose(file) == 0 && safer_data_load(&data, path, NULL, &error) == SAFER_OK, error.message);
    return data;
}

/* Certifies; returns seconds. */
static double certify(runs *r, size_t texts, safer_crew *crew)
{
    safer_data *data = make_data(texts);
    safer_error error = {0};
    safer_certify_options options = safer_certify_options_default();
    options.threads = 1;
    options.crew = crew;
    unlink(bench_path("run.jsonl"));
    const double start = sf_seconds();
    check(safer_certify(NULL, bench_path("run.jsonl"), 0, r->model, r->lexicon, data, &options, &error) == SAFER_OK,
          error.message);
    const double seconds = sf_seconds() - start;
    safer_data_free(data);
    return seconds;
}

/* What records have behind their id. */
static void learn_record(runs *r)
{
    static char line[4096];
    certify(r, 1, NULL);
    FILE *file = fopen(bench_path("run.jsonl"), "r");
    check(file && fgets(line, sizeof line, file) && fgets(line, sizeof line, file), "no record");
    fclose(file);
    char *id = strstr(line, "\"id\":\""), *end = strstr(line, ",\"seconds\"");
    check(id && end && (id = strchr(id + 6, '"')), "a record without an id");
    *end = '\0';
    r->transport.rest = id + 1;
}

static long number_of(int argc, char **argv, const char *option, long otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], option) == 0) return atol(argv[i + 1]);
    return otherwise;
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    static const char *const labels[] = {"no", "yes"};
    const size_t texts = (size_t)number_of(argc, argv, "--texts", 300000);
    safer_error error = {0};
    safer_crew *crew = NULL;
    runs r = {.transport = {.ranks = (int)number_of(argc, argv, "--ranks", 1000)}};
    r.transport.last = &r.transport.first;
    r.lexicon = bench_lexicon("good\tgreat\n", 11);
    safer_remote_options options = safer_remote_options_default();
    options.labels = labels;
    options.label_count = 2;
    options.batch = 1;
    options.model_name = "sleeper";
    check(safer_model_from_callback(&r.model, classify, NULL, &options, &error) == SAFER_OK, error.message);
    learn_record(&r);
    check(sf_crew_new(&crew, &table, &r.transport, 60, NULL, NULL, &error) == SAFER_OK, error.message);
    slow = 1;
    const double start = cpu_seconds(), wall = certify(&r, texts, crew), own = cpu_seconds() - start;
    safer_crew_leave(crew, 0);
    const double helped = (double)r.transport.helped;
    if (bench_option(argc, argv, "--json"))
        bench_print_json(json_pack("{s:i, s:f, s:f, s:f}", "ranks", r.transport.ranks, "texts", helped, "seconds", wall,
                                   "processor_seconds", own));
    else
        printf("rank 0 of %d handed out %.0f texts and wrote their records in %.2f s (%.2f s of processor time): "
               "%.0f texts/s, %.0f per second of processor time\n",
               r.transport.ranks, helped, wall, own, helped / wall, helped / own);
    safer_model_free(r.model);
    safer_lexicon_free(r.lexicon);
    return 0;
}
