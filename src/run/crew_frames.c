/* The contents of frames. */
#include "run/crew_frames.h"

#include <string.h>

int sf_put_number(sf_buffer *out, uint64_t number) { return sf_buffer_add(out, &number, sizeof number); }

int sf_put_string(sf_buffer *out, sf_span string)
{
    return sf_put_number(out, string.length) || (string.length && sf_buffer_add(out, string.bytes, string.length));
}

int sf_take_number(uint64_t *out, sf_span *from)
{
    if (from->length < sizeof *out) return -1;
    memcpy(out, from->bytes, sizeof *out);
    *from = (sf_span){from->bytes + sizeof *out, from->length - sizeof *out};
    return 0;
}

int sf_take_string(sf_span *out, sf_span *from)
{
    uint64_t length;
    if (sf_take_number(&length, from) || length > from->length) return -1;
    *out = (sf_span){from->bytes, (size_t)length};
    *from = (sf_span){from->bytes + length, from->length - (size_t)length};
    return 0;
}
