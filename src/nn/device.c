/* Devices: finding the plugin, and the devices it has. */
#define _GNU_SOURCE
#include "nn/device.h"

#include "base/memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLUGIN "libsafer_cuda.so"

/* Loaded once, never unloaded: CUDA does not survive that. */
static struct {
    pthread_mutex_t lock;
    const sf_device_table *table;
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Where it may be: where SAFER_PLUGINS says, beside the library or program that this is part of, or where an installed
 * one has it. */
static int find(char *path, size_t size)
{
    const char *asked = getenv("SAFER_PLUGINS");
    Dl_info own;
    if (asked) return snprintf(path, size, "%s/" PLUGIN, asked) < (int)size ? 0 : -1;
    if (!dladdr((void *)&plugin, &own) || !own.dli_fname) return -1;
    const char *slash = strrchr(own.dli_fname, '/');
    const int folder = slash ? (int)(slash - own.dli_fname) : 1;
    const char *const places[] = {"", "/safer", "/../lib/safer", "/../lib/x86_64-linux-gnu/safer"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (snprintf(path, size, "%.*s%s/" PLUGIN, folder, slash ? own.dli_fname : ".", places[i]) < (int)size &&
            access(path, R_OK) == 0)
            return 0;
    return -1;
}

static safer_status load(const sf_device_table **out, safer_error *error)
{
    char path[4096];
    if (find(path, sizeof path))
        return sf_fail(error, SAFER_SYSTEM, "this safer was built without CUDA: there is no " PLUGIN " beside it");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return sf_fail(error, SAFER_SYSTEM, "cannot load %s: %s", path, dlerror());
    sf_device_plugin_function get;
    *(void **)&get = dlsym(library, "sf_device_plugin");
    const sf_device_table *table = get ? get() : NULL;
    if (!table || strcmp(table->version, SAFER_VERSION) != 0 || table->size != sizeof *table) {
        sf_fail(error, SAFER_SYSTEM, "%s is of version %s of safer; this is " SAFER_VERSION, path,
                table ? table->version : "none");
        dlclose(library);
        return SAFER_SYSTEM;
    }
    *out = table;
    return SAFER_OK;
}

safer_status sf_device_load(const sf_device_table **out, safer_error *error)
{
    safer_status status = SAFER_OK;
    pthread_mutex_lock(&plugin.lock);
    if (!plugin.table) status = load(&plugin.table, error);
    *out = plugin.table;
    pthread_mutex_unlock(&plugin.lock);
    return status;
}

safer_status sf_device_choose(sf_device_choice *out, const char *name, safer_error *error)
{
    *out = (sf_device_choice){0};
    const int any = strcmp(name, "auto") == 0;
    char *end = NULL;
    if (strcmp(name, "cpu") == 0) return SAFER_OK;
    if (!any && strncmp(name, "cuda", 4) != 0) goto unknown;
    if (!any && name[4] == ':' && name[5] >= '0' && name[5] <= '9') {
        out->first = (int)strtol(name + 5, &end, 10);
        if (*end || out->first > 1023) goto unknown;
        out->count = 1;
    } else if (!any && name[4]) {
        goto unknown;
    }
    int there = 0;
    safer_status status = sf_device_load(&out->table, any ? NULL : error);
    if (status == SAFER_OK) status = out->table->count(&there, any ? NULL : error);
    if (status == SAFER_OK && out->first >= there)
        status = sf_fail(error, SAFER_INVALID, "device: there is no %s; there %s %d", name, there == 1 ? "is" : "are",
                         there);
    if (status == SAFER_OK && !out->count) out->count = there;
    if (status == SAFER_OK && out->count) return SAFER_OK;
    *out = (sf_device_choice){0};
    return any ? SAFER_OK : status;
unknown:
    return sf_fail(error, SAFER_INVALID, "device: \"%.80s\" is none; cpu, cuda, cuda:N or auto", name);
}
