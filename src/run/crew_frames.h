/* The contents of frames: numbers and strings, one after the other. Nothing is believed that was read. */
#ifndef SF_RUN_CREW_FRAMES_H
#define SF_RUN_CREW_FRAMES_H

#include "base/buffer.h"

#include <stdint.h>

/* Nonzero: memory is out. */
int sf_put_number(sf_buffer *out, uint64_t number);
int sf_put_string(sf_buffer *out, sf_span string);

/* Take from the front; nonzero: there is no more. Strings are borrowed. */
int sf_take_number(uint64_t *out, sf_span *from);
int sf_take_string(sf_span *out, sf_span *from);

#endif
