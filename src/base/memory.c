/* Allocation with overflow checks. */
#include "base/memory.h"

#include <stdint.h>
#include <string.h>

void *sf_alloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    return malloc(bytes ? bytes : 1);
}

void *sf_calloc(size_t count, size_t size) { return calloc(count ? count : 1, size ? size : 1); }

void *sf_realloc(void *pointer, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    return realloc(pointer, bytes ? bytes : 1);
}

char *sf_strdup(const char *string) { return string ? sf_strndup(string, strlen(string)) : NULL; }

char *sf_strndup(const char *bytes, size_t length)
{
    char *copy = length < SIZE_MAX ? sf_alloc(length + 1, 1) : NULL;
    if (!copy) return NULL;
    if (length) memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

void *sf_alloc_aligned(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - 64) return NULL;
    return aligned_alloc(64, (bytes + 64) & ~(size_t)63);
}

int sf_grow(void *array, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity) return 0;
    size_t target = *capacity < 16 ? 16 : *capacity;
    while (target < need) {
        if (target > SIZE_MAX / 2) return -1;
        target *= 2;
    }
    void *moved, *old;
    memcpy(&old, array, sizeof old);
    moved = sf_realloc(old, target, size);
    if (!moved) return -1;
    memcpy(array, &moved, sizeof moved);
    *capacity = target;
    return 0;
}
