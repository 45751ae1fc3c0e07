/* Allocation with overflow checks.
 *
 * Tests replace malloc, calloc and realloc at link time (--wrap) to make any single
 * allocation fail, so nothing here needs a hook. */
#ifndef SF_BASE_MEMORY_H
#define SF_BASE_MEMORY_H

#include <stddef.h>
#include <stdlib.h>

/* count*size bytes, or NULL on overflow or exhaustion. A count of 0 yields a valid
 * pointer. Release with free. */
void *sf_alloc(size_t count, size_t size);
void *sf_calloc(size_t count, size_t size);
void *sf_realloc(void *pointer, size_t count, size_t size);
char *sf_strdup(const char *string);                /* NULL stays NULL */
char *sf_strndup(const char *bytes, size_t length); /* terminated copy */

/* 64-byte aligned, for vectors; contents undefined. Release with free. */
void *sf_alloc_aligned(size_t count, size_t size);

/* Makes room for at least `need` elements in a growing array: doubles *capacity and
 * moves *array. Returns 0, or -1 when memory is out (the array is then unchanged). */
int sf_grow(void *array, size_t *capacity, size_t need, size_t size);

#endif
