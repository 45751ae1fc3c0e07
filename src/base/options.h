/* Public structs of options: each begins with its size, so that it can grow.
 *
 * A caller compiled with an older header has a shorter struct; the members it lacks keep their
 * defaults. A longer struct comes from a newer header than this library's and is refused, because
 * what it asks for may not be here. */
#ifndef SF_BASE_OPTIONS_H
#define SF_BASE_OPTIONS_H

#include "base/error.h"

#include <stddef.h>

/* What TYPE_init does: the defaults into the caller's struct of `size` bytes, its size included. */
void sf_options_init(void *options, size_t size, const void *defaults, size_t defaults_size);

/* Takes over what a caller gave into `own`, which holds the defaults: NULL leaves them. `least` is
 * the size that the struct had in its first version, `type` its name in messages. */
safer_status sf_options_take(void *own, size_t own_size, size_t least, const void *given, const char *type,
                             safer_error *error);

/* The same for a struct that has not grown since its first version. */
#define SF_TAKE_OPTIONS(own, given, type, error) sf_options_take(own, sizeof(type), sizeof(type), given, #type, error)

#endif
