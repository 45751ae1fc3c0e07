/* First in, first out: a list of things that begin with an sf_link. A thing is in one queue at a
 * time; the queue owns nothing, allocates nothing and cannot fail. Not for several threads at once:
 * its owner has the lock, or is the only thread that uses it. */
#ifndef SF_REMOTE_QUEUE_H
#define SF_REMOTE_QUEUE_H

#include <stddef.h>

typedef struct sf_link {
    struct sf_link *next; /* NULL behind the last */
} sf_link;

typedef struct sf_queue {
    sf_link *first, *last;
} sf_queue; /* zero-initialise */

/* Puts a thing last. */
static inline void sf_queue_push(sf_queue *queue, sf_link *link)
{
    link->next = NULL;
    if (queue->last)
        queue->last->next = link;
    else
        queue->first = link;
    queue->last = link;
}

/* The first thing, left where it is, and the one behind a thing; NULL when there is no such thing. */
static inline void *sf_queue_first(const sf_queue *queue) { return queue->first; }
static inline void *sf_queue_after(const sf_link *link) { return link->next; }

/* Takes the first thing out; NULL when the queue is empty. */
static inline void *sf_queue_pop(sf_queue *queue)
{
    sf_link *link = queue->first;
    if (!link) return NULL;
    queue->first = link->next;
    if (!queue->first) queue->last = NULL;
    return link;
}

#endif
