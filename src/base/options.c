/* Public structs of options that can grow. */
#include "base/options.h"

#include <string.h>

void sf_options_init(void *options, size_t size, const void *defaults, size_t defaults_size)
{
    memset(options, 0, size);
    memcpy(options, defaults, size < defaults_size ? size : defaults_size);
    if (size >= sizeof size) memcpy(options, &size, sizeof size);
}

safer_status sf_options_take(void *own, size_t own_size, size_t least, const void *given, const char *type,
                             safer_error *error)
{
    size_t size;
    if (!given) return SAFER_OK;
    memcpy(&size, given, sizeof size); /* the first member of every struct of options */
    if (size < least || size > own_size)
        return sf_fail(error, SAFER_INVALID, "%s: its size is %zu, but %zu is expected; begin with %s_default()", type,
                       size, own_size, type);
    memcpy(own, given, size);
    memcpy(own, &own_size, sizeof own_size);
    return SAFER_OK;
}
