/* The routes: every path that the server knows, and what a request to it may be.
 *
 * One table says all that depends on the path alone: the method, whether the token is needed, which
 * members a body may have. http.c checks a request by it, job.c reads the body by it, metrics.c
 * counts by it. What a route does stands where it is done. */
#ifndef SF_SERVE_ROUTES_H
#define SF_SERVE_ROUTES_H

typedef enum sf_route_id {
    SF_ROUTE_PREDICT,
    SF_ROUTE_CERTIFY,
    SF_ROUTE_STREAM,
    SF_ROUTE_WORDS,
    SF_ROUTE_MODEL,
    SF_ROUTE_HEALTH,
    SF_ROUTE_READY,
    SF_ROUTE_METRICS,
    SF_ROUTE_OPENAPI,
    SF_ROUTE_PAGE,
    SF_ROUTE_STYLE,
    SF_ROUTE_SCRIPT,
    SF_ROUTE_NONE, /* every other path */
    SF_ROUTES
} sf_route_id;

typedef struct sf_route {
    sf_route_id id;
    const char *path; /* "/v1/predict", ...; "other" for SF_ROUTE_NONE */
    int works;        /* it is a POST about texts, and becomes a job; else it is a GET or HEAD, answered at once */
    int guarded;      /* it needs the token, where the server has one */
    int many;         /* it takes "texts" as well as "text" */
    int labels;       /* it takes labels with its texts */
    int terms;        /* it takes a radius, delta and n, and the name of a model */
} sf_route;

extern const sf_route sf_routes[SF_ROUTES]; /* by their id */

/* The route of a path; that of SF_ROUTE_NONE when there is no such path. */
const sf_route *sf_route_find(const char *path);

#endif
