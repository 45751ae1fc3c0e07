/* What the server counts, for Prometheus. */
#ifndef SF_SERVE_METRICS_H
#define SF_SERVE_METRICS_H

#include "base/buffer.h"
#include "serve/routes.h"

#include <pthread.h>
#include <stdint.h>

enum { SF_STATUSES = 13, SF_TIMES = 14 };

typedef struct sf_metrics {
    pthread_mutex_t lock;
    uint64_t requests[SF_ROUTES][SF_STATUSES];
    uint64_t times[SF_TIMES + 1]; /* of answers to work, by how long they took; the last: longer */
    double seconds;
    uint64_t texts, certified, abstained, exact, queries;
    uint64_t lost; /* connections that ended before their answer was sent */
} sf_metrics;

void sf_metrics_start(sf_metrics *metrics);
void sf_metrics_end(sf_metrics *metrics);

/* A request that was answered, `seconds` after it began. */
void sf_metrics_request(sf_metrics *metrics, const sf_route *route, int status, double seconds);
void sf_metrics_lost(sf_metrics *metrics);
void sf_metrics_text(sf_metrics *metrics, int certified, int abstained, int exact, uint64_t queries);

/* What the workers and the connections know. */
typedef struct sf_gauges {
    size_t waiting, busy, workers, connections;
} sf_gauges;

/* The page. 0, or -1 when memory is out. */
int sf_metrics_print(sf_buffer *out, sf_metrics *metrics, const sf_gauges *gauges);

#endif
