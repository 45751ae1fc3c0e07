/* The table of the routes. */
#include "serve/routes.h"

#include <string.h>

const sf_route sf_routes[SF_ROUTES] = {
    /* id, path, works, guarded, many, labels, terms */
    {SF_ROUTE_PREDICT, "/v1/predict", 1, 1, 1, 0, 1},
    {SF_ROUTE_CERTIFY, "/v1/certify", 1, 1, 1, 1, 1},
    {SF_ROUTE_STREAM, "/v1/certify/stream", 1, 1, 0, 1, 1},
    {SF_ROUTE_WORDS, "/v1/words", 1, 1, 0, 0, 0},
    {SF_ROUTE_MODEL, "/v1/model", 0, 1, 0, 0, 0},
    {SF_ROUTE_HEALTH, "/healthz", 0, 0, 0, 0, 0},
    {SF_ROUTE_READY, "/readyz", 0, 0, 0, 0, 0},
    {SF_ROUTE_METRICS, "/metrics", 0, 1, 0, 0, 0},
    {SF_ROUTE_OPENAPI, "/openapi.json", 0, 0, 0, 0, 0},
    {SF_ROUTE_PAGE, "/", 0, 0, 0, 0, 0},
    {SF_ROUTE_STYLE, "/explorer.css", 0, 0, 0, 0, 0},
    {SF_ROUTE_SCRIPT, "/explorer.js", 0, 0, 0, 0, 0},
    {SF_ROUTE_NONE, "other", 0, 0, 0, 0, 0},
};

const sf_route *sf_route_find(const char *path)
{
    const sf_route *route = sf_routes;
    while (route->id != SF_ROUTE_NONE && strcmp(path, route->path) != 0) route++;
    return route;
}
