/* What the server counts, for Prometheus. */
#define _GNU_SOURCE
#include "serve/metrics.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const int statuses[SF_STATUSES] = {200, 400, 401, 403, 404, 405, 413,
                                          415, 429, 500, 503, 504, 0 /* any other */};
static const double times[SF_TIMES] = {.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30};

void sf_metrics_start(sf_metrics *m)
{
    memset(m, 0, sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
}

void sf_metrics_end(sf_metrics *m) { pthread_mutex_destroy(&m->lock); }

void sf_metrics_request(sf_metrics *m, const sf_route *route, int status, double seconds)
{
    size_t s = 0, t = 0;
    while (s + 1 < SF_STATUSES && statuses[s] != status) s++;
    while (t < SF_TIMES && seconds > times[t]) t++;
    pthread_mutex_lock(&m->lock);
    m->requests[route->id][s]++;
    if (route->works) {
        m->times[t]++;
        m->seconds += seconds;
    }
    pthread_mutex_unlock(&m->lock);
}

void sf_metrics_lost(sf_metrics *m)
{
    pthread_mutex_lock(&m->lock);
    m->lost++;
    pthread_mutex_unlock(&m->lock);
}

void sf_metrics_text(sf_metrics *m, int certified, int abstained, int exact, uint64_t queries)
{
    pthread_mutex_lock(&m->lock);
    m->texts++;
    m->certified += (uint64_t)(certified != 0);
    m->abstained += (uint64_t)(abstained != 0);
    m->exact += (uint64_t)(exact != 0);
    m->queries += queries;
    pthread_mutex_unlock(&m->lock);
}

/* Bytes of memory in use, or 0. */
static uint64_t resident(void)
{
    unsigned long long total = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%llu %llu", &total, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int print_value(sf_buffer *out, const char *name, const char *kind, const char *help, uint64_t value)
{
    return sf_buffer_format(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, kind, name,
                            (unsigned long long)value);
}

static int print_requests(sf_buffer *out, const sf_metrics *m)
{
    int failed = sf_buffer_add_string(
        out, "# HELP safer_requests_total Requests answered.\n# TYPE safer_requests_total counter\n");
    for (int r = 0; r < SF_ROUTES; r++)
        for (int s = 0; s < SF_STATUSES; s++)
            if (m->requests[r][s])
                failed |= sf_buffer_format(out, "safer_requests_total{path=\"%s\",status=\"%d\"} %llu\n",
                                           sf_routes[r].path, statuses[s], (unsigned long long)m->requests[r][s]);
    return failed;
}

static int print_times(sf_buffer *out, const sf_metrics *m)
{
    uint64_t sum = 0;
    int failed = sf_buffer_add_string(out, "# HELP safer_request_seconds Time to answer requests about texts.\n"
                                           "# TYPE safer_request_seconds histogram\n");
    for (int t = 0; t < SF_TIMES; t++) {
        sum += m->times[t];
        failed |= sf_buffer_format(out, "safer_request_seconds_bucket{le=\"%g\"} %llu\n", times[t],
                                   (unsigned long long)sum);
    }
    sum += m->times[SF_TIMES];
    return failed | sf_buffer_format(out,
                                     "safer_request_seconds_bucket{le=\"+Inf\"} %llu\nsafer_request_seconds_sum %.6f\n"
                                     "safer_request_seconds_count %llu\n",
                                     (unsigned long long)sum, m->seconds, (unsigned long long)sum);
}

int sf_metrics_print(sf_buffer *out, sf_metrics *metrics, const sf_gauges *g)
{
    pthread_mutex_lock(&metrics->lock);
    const sf_metrics m = *metrics;
    pthread_mutex_unlock(&metrics->lock);
    int failed = print_requests(out, &m) | print_times(out, &m);
    failed |= print_value(out, "safer_texts_total", "counter", "Texts certified or predicted.", m.texts);
    failed |= print_value(out, "safer_certified_total", "counter", "Texts certified at the asked radius.", m.certified);
    failed |= print_value(out, "safer_abstained_total", "counter", "Predictions without a clear vote.", m.abstained);
    failed |= print_value(out, "safer_exact_total", "counter", "Certificates without sampling.", m.exact);
    failed |= print_value(out, "safer_queries_total", "counter", "Times the model was asked.", m.queries);
    failed |= print_value(out, "safer_lost_total", "counter", "Connections that ended before their answer was sent.",
                          m.lost);
    failed |= print_value(out, "safer_waiting_texts", "gauge", "Texts that wait for a thread.", g->waiting);
    failed |= print_value(out, "safer_busy_threads", "gauge", "Threads that work on a text.", g->busy);
    failed |= print_value(out, "safer_threads", "gauge", "Threads that work on texts.", g->workers);
    failed |= print_value(out, "safer_connections", "gauge", "Open connections.", g->connections);
    failed |= print_value(out, "process_resident_memory_bytes", "gauge", "Memory in use.", resident());
    return failed ? -1 : 0;
}
