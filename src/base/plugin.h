/* Plugins: shared libraries, libsafer_NAME.so, that are loaded when what they bring is asked for, so that neither the
 * program nor the library needs what they need.
 *
 * A plugin has one function, which gives a table: a struct that begins as sf_plugin_head does. Plugin and library are
 * built together: one of another version is refused. */
#ifndef SF_BASE_PLUGIN_H
#define SF_BASE_PLUGIN_H

#include "base/error.h"

typedef struct sf_plugin_head {
    const char *version; /* SAFER_VERSION of its build */
    size_t size;         /* of the table */
} sf_plugin_head;

/* Which plugin, and what the caller takes for its table. */
typedef struct sf_plugin {
    const char *file;   /* "libsafer_cuda.so" */
    const char *symbol; /* the name of its function */
    const char *brings; /* "CUDA": of a library that has no such plugin */
    size_t size;        /* of the table */
} sf_plugin;

/* Loads it: from the folder that SAFER_PLUGINS names; else from beside the library or program that this is part of, or
 * where an installed one has it. It is never unloaded; *table lives for ever. */
safer_status sf_plugin_load(const void **table, const sf_plugin *plugin, safer_error *error);

#endif
