/* A growing string of bytes. */
#include "base/buffer.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int sf_clip(const char *bytes, size_t length, size_t most)
{
    if (length > most) {
        length = most;
        while (length && ((unsigned char)bytes[length] & 0xc0) == 0x80) length--;
    }
    return (int)length;
}

int sf_buffer_reserve(sf_buffer *buffer, size_t more)
{
    if (more > SIZE_MAX - buffer->length - 1) return -1;
    return sf_grow(&buffer->bytes, &buffer->capacity, buffer->length + more + 1, 1);
}

int sf_buffer_add(sf_buffer *buffer, const void *bytes, size_t length)
{
    if (sf_buffer_reserve(buffer, length)) return -1;
    if (length) memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
    buffer->bytes[buffer->length] = '\0';
    return 0;
}

int sf_buffer_add_string(sf_buffer *buffer, const char *string)
{
    return sf_buffer_add(buffer, string, strlen(string));
}

int sf_buffer_add_byte(sf_buffer *buffer, char byte) { return sf_buffer_add(buffer, &byte, 1); }

int sf_buffer_format(sf_buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || sf_buffer_reserve(buffer, (size_t)length)) return -1;
    va_start(arguments, format);
    vsnprintf(buffer->bytes + buffer->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    buffer->length += (size_t)length;
    return 0;
}

void sf_buffer_clear(sf_buffer *buffer)
{
    buffer->length = 0;
    if (buffer->bytes) buffer->bytes[0] = '\0';
}

void sf_buffer_free(sf_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (sf_buffer){0};
}
