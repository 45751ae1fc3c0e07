/* Rank 0: hands out rows. */
#include "run/crew_rows.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/progress.h"
#include "run/crew_frames.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    PROBES = 16,          /* texts to try a remote model with, as many as rank 0 does */
    MOST_ROWS = 4096,     /* that a helper has at a time, */
    MOST_BYTES = 1 << 20, /* and that are sent to one before the next has its turn */
    HOSTS = 4             /* whose rates are shown one by one */
};
#define AHEAD 0.05    /* seconds of work that wait at a helper */
#define MEASURED 0.25 /* seconds over which its rate is measured */

typedef struct helper {
    atomic_size_t done;
    size_t has, before; /* rows that it has; `done` when its rate was last measured */
    double rate;        /* rows per second */
    int threads;        /* 0: not ready */
} helper;

struct sf_lead {
    safer_crew *crew;
    uint64_t run; /* its number */
    const sf_rows *rows;
    const sf_lead_pass *pass;
    sf_crew_part part;
    int size, first; /* whose turn is first */
    atomic_int ready;
    int threads; /* of all helpers that are ready */
    double measured;
    sf_buffer frame, more;
    helper *helpers; /* (size); 0 is rank 0 itself */
    double shown;    /* when rates were last computed for a report; 0: not yet, */
    double began;    /* when all were ready and the first report was made; 0: not yet */
    double *rates;   /* (size) */
    size_t *counts;  /* (size): how much was done then */
};

/* ----------------------------------------------------------------- handing out */

/* How many rows a helper should have now. */
static size_t share_of(const sf_lead *l, const helper *h, size_t left)
{
    const size_t threads = (size_t)h->threads;
    const size_t usual = 2 * threads + (size_t)(h->rate * AHEAD),
                 fair = left / (2 * ((size_t)l->threads + (size_t)l->rows->threads)) * threads;
    const size_t share = usual < fair ? usual : fair > threads ? fair : threads;
    return share < MOST_ROWS ? share : MOST_ROWS;
}

static int encode(sf_lead *l, const sf_row *row)
{
    sf_buffer *frame = &l->frame;
    const safer_row *r = &row->row;
    sf_buffer_clear(frame);
    return sf_put_number(frame, row->index) || sf_put_number(frame, (uint64_t)(r->label + 1)) ||
           sf_put_string(frame, (sf_span){r->id, strlen(r->id)}) ||
           sf_put_string(frame, (sf_span){r->text, r->text_length}) || sf_put_string(frame, row->more);
}

static void feed(sf_lead *l, int rank, size_t left)
{
    helper *h = &l->helpers[rank];
    const size_t share = share_of(l, h, left);
    size_t bytes = 0;
    sf_row row;
    while (h->has < share && bytes < MOST_BYTES && l->pass->claim(l->pass->context, rank, &row, &l->more)) {
        if (encode(l, &row)) sf_buffer_clear(&l->frame); /* which the helper will refuse */
        sf_crew_put(l->crew, rank, SF_TASK, (sf_span){l->frame.bytes, l->frame.length});
        bytes += l->frame.length;
        h->has++;
    }
}

static void turn(void *context)
{
    sf_lead *l = context;
    const double now = sf_seconds(), since = now - l->measured;
    for (int i = 1; i < l->size && since > MEASURED; i++) {
        helper *h = &l->helpers[i];
        const size_t done = atomic_load(&h->done);
        h->rate = (double)(done - h->before) / since;
        h->before = done;
    }
    if (since > MEASURED) l->measured = now;
    const size_t left = sf_lead_is_ready(l) ? l->pass->left(l->pass->context) : 0;
    for (int i = 0; i < l->size && left; i++) {
        const int rank = (l->first + i) % l->size;
        if (rank) feed(l, rank, left);
    }
    l->first = (l->first + 1) % l->size;
}

static int take_frame(void *context, int from, sf_frame kind, sf_span contents)
{
    sf_lead *l = context;
    helper *h = &l->helpers[from];
    uint64_t run, number;
    sf_span line;
    if (sf_take_number(&run, &contents) || sf_take_number(&number, &contents)) return -1;
    if (run != l->run) return 0;
    if (kind == SF_READY) {
        if (h->threads || !number || number > 1 << 16 || contents.length) return -1;
        h->threads = (int)number;
        l->threads += h->threads;
        atomic_fetch_add(&l->ready, 1);
        return 0;
    }
    if (kind != SF_DONE || sf_take_string(&line, &contents) || contents.length || !h->has ||
        l->pass->take(l->pass->context, from, (size_t)number, line))
        return -1;
    h->has--;
    atomic_fetch_add(&h->done, 1);
    return 0;
}

/* ------------------------------------------------------------------- the run */

/* Puts the welcome into l->frame. */
static safer_status put_welcome(sf_lead *l, uint64_t seal, safer_error *error)
{
    safer_status status = SAFER_OK;
    safer_reader *reader = NULL;
    const sf_rows *rows = l->rows;
    const size_t probes = !sf_model_is_remote(rows->model) ? 0 : rows->count < PROBES ? rows->count : PROBES;
    char *config = sf_json_text(rows->config);
    int failed = !config || sf_put_number(&l->frame, l->run) || sf_put_number(&l->frame, seal) ||
                 sf_put_number(&l->frame, probes);
    for (size_t i = 0; i < probes && !failed; i++) {
        sf_row row;
        SF_TRY(sf_rows_read(rows, &reader, i, &row, error));
        failed = sf_put_string(&l->frame, (sf_span){row.row.text, row.row.text_length});
    }
    failed = failed || sf_put_string(&l->frame, (sf_span){config, strlen(config)});
    if (failed) status = sf_fail_memory(error);
done:
    safer_reader_free(reader);
    free(config);
    return status;
}

safer_status sf_lead_new(sf_lead **out, const sf_rows *rows, uint64_t seal, const sf_lead_pass *pass,
                         safer_error *error)
{
    sf_lead *l = sf_calloc(1, sizeof *l);
    if (!l) return sf_fail_memory(error);
    const int size = safer_crew_size(rows->crew);
    *l = (sf_lead){.crew = rows->crew, .rows = rows, .pass = pass, .size = size, .measured = sf_seconds()};
    l->run = sf_crew_next_run(l->crew);
    l->part = (sf_crew_part){l, take_frame, turn};
    l->helpers = sf_calloc((size_t)size, sizeof *l->helpers);
    l->rates = sf_calloc((size_t)size, sizeof *l->rates);
    l->counts = sf_calloc((size_t)size, sizeof *l->counts);
    const safer_status status = !l->helpers || !l->rates || !l->counts ? sf_fail_memory(error)
                                                                       : put_welcome(l, seal, error);
    if (status != SAFER_OK) {
        sf_buffer_free(&l->frame);
        sf_buffer_free(&l->more);
        free(l->helpers);
        free(l->rates);
        free(l->counts);
        free(l);
        return status;
    }
    sf_crew_put(l->crew, SF_ALL_RANKS, SF_WELCOME, (sf_span){l->frame.bytes, l->frame.length});
    sf_crew_set_part(l->crew, &l->part);
    *out = l;
    return SAFER_OK;
}

int sf_lead_is_ready(sf_lead *l) { return atomic_load(&l->ready) == l->size - 1; }

void sf_lead_free(sf_lead *l, int whole)
{
    const uint64_t number = whole != 0;
    if (!l) return;
    sf_crew_set_part(l->crew, NULL);
    sf_crew_put(l->crew, SF_ALL_RANKS, SF_FINISH, (sf_span){(const char *)&number, sizeof number});
    sf_buffer_free(&l->frame);
    sf_buffer_free(&l->more);
    free(l->helpers);
    free(l->rates);
    free(l->counts);
    free(l);
}

/* ------------------------------------------------------------------ its rates */

/* The first rank on the same host. */
static int first_of_host(const sf_lead *l, int rank)
{
    int i = 0;
    while (strcmp(safer_crew_host(l->crew, i), safer_crew_host(l->crew, rank)) != 0) i++;
    return i;
}

/* Every second: l->rates of the first rank of each host becomes that of the host, of all others 0. */
static void measure(sf_lead *l, size_t own)
{
    const double now = sf_seconds(), since = now - (l->shown > 0 ? l->shown : l->began);
    if (since < 1) return;
    for (int i = 0; i < l->size; i++) l->rates[i] = 0;
    for (int i = 0; i < l->size; i++) {
        const size_t done = i ? atomic_load(&l->helpers[i].done) : own;
        l->rates[first_of_host(l, i)] += (double)(done - l->counts[i]) / since;
        l->counts[i] = done;
    }
    l->shown = now;
}

void sf_lead_describe(sf_lead *l, size_t own, char *stage, size_t size)
{
    int hosts = 0, least = 0, most = 0;
    size_t length = strlen(stage);
    if (!sf_lead_is_ready(l)) return;
    if (!(l->began > 0)) l->began = sf_seconds();
    measure(l, own);
    if (!(l->shown > 0)) return;
    for (int i = 0; i < l->size; i++) {
        if (first_of_host(l, i) != i) continue;
        hosts++;
        if (l->rates[i] < l->rates[least]) least = i;
        if (l->rates[i] > l->rates[most]) most = i;
    }
    for (int i = 0; i < l->size && hosts <= HOSTS && length < size; i++)
        if (first_of_host(l, i) == i)
            length += (size_t)snprintf(stage + length, size - length, ", %.40s %.1f/s", safer_crew_host(l->crew, i),
                                       l->rates[i]);
    if (hosts > HOSTS && length < size)
        snprintf(stage + length, size - length, ", %d hosts, from %.40s %.1f/s to %.40s %.1f/s", hosts,
                 safer_crew_host(l->crew, least), l->rates[least], safer_crew_host(l->crew, most), l->rates[most]);
}
