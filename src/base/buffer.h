/* A growing string of bytes, always terminated by a NUL that is not counted. */
#ifndef SF_BASE_BUFFER_H
#define SF_BASE_BUFFER_H

#include <stddef.h>

/* Bytes that belong to someone else. */
typedef struct sf_span {
    const char *bytes;
    size_t length;
} sf_span;

/* How many of these bytes a message should quote: at most `most`, whole characters. */
int sf_clip(const char *bytes, size_t length, size_t most);

typedef struct sf_buffer {
    char *bytes; /* NULL until something was added */
    size_t length, capacity;
} sf_buffer;

/* Each returns 0, or -1 when memory is out; the contents are then unchanged. */
int sf_buffer_reserve(sf_buffer *buffer, size_t more);
int sf_buffer_add(sf_buffer *buffer, const void *bytes, size_t length);
int sf_buffer_add_string(sf_buffer *buffer, const char *string);
int sf_buffer_add_byte(sf_buffer *buffer, char byte);
int sf_buffer_format(sf_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

void sf_buffer_clear(sf_buffer *buffer); /* keeps the memory */
void sf_buffer_free(sf_buffer *buffer);

#endif
