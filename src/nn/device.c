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

/* The folder of the library or program that this is part of, without its last slash. A program that was found through
 * PATH has no folder in its name. */
static int own_folder(char *out, size_t size)
{
    Dl_info own;
    const char *name = dladdr((void *)&plugin, &own) && own.dli_fname ? own.dli_fname : "";
    if (strchr(name, '/')) {
        if (snprintf(out, size, "%s", name) >= (int)size) return -1;
    } else {
        const ssize_t length = readlink("/proc/self/exe", out, size - 1);
        if (length <= 0) return -1;
        out[length] = 0;
    }
    char *slash = strrchr(out, '/');
    if (slash) *slash = 0;
    return slash ? 0 : -1;
}

/* Where it may be: where SAFER_PLUGINS says, beside this, or where an installed one has it. */
static int find(char *path, size_t size)
{
    static const char *const places[] = {"", "/safer", "/../lib/safer", "/../lib/x86_64-linux-gnu/safer"};
    const char *asked = getenv("SAFER_PLUGINS");
    char folder[4096];
    if (asked) return snprintf(path, size, "%s/" PLUGIN, asked) < (int)size ? access(path, R_OK) : -1;
    if (own_folder(folder, sizeof folder)) return -1;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (snprintf(path, size, "%s%s/" PLUGIN, folder, places[i]) < (int)size && access(path, R_OK) == 0) return 0;
    return -1;
}

static safer_status load(const sf_device_table **out, safer_error *error)
{
    char path[4200];
    const char *asked = getenv("SAFER_PLUGINS");
    if (find(path, sizeof path))
        return asked ? sf_fail(error, SAFER_SYSTEM, "SAFER_PLUGINS is %s, where there is no " PLUGIN, asked)
                     : sf_fail(error, SAFER_SYSTEM, "this safer was built without CUDA: it has no " PLUGIN);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return sf_fail(error, SAFER_SYSTEM, "cannot load the plugin: %s", dlerror());
    sf_device_plugin_function get;
    *(void **)&get = dlsym(library, "sf_device_plugin");
    const sf_device_table *table = get ? get() : NULL;
    if (table && strcmp(table->version, SAFER_VERSION) == 0 && table->size == sizeof *table) {
        *out = table;
        return SAFER_OK;
    }
    if (!table)
        sf_fail(error, SAFER_SYSTEM, "%s is no plugin of safer: it has no sf_device_plugin", path);
    else if (strcmp(table->version, SAFER_VERSION) != 0)
        sf_fail(error, SAFER_SYSTEM, "%s is of safer %s, and this is " SAFER_VERSION ": install those of one build",
                path, table->version);
    else
        sf_fail(error, SAFER_SYSTEM, "%s is of another build of safer " SAFER_VERSION ": install those of one build",
                path);
    dlclose(library);
    return SAFER_SYSTEM;
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

/* -------------------------------------------------------------------- choosing */

safer_status sf_device_parse(sf_device_wish *out, const char *name, safer_error *error)
{
    *out = (sf_device_wish){SF_DEVICE_CUDA, -1};
    if (strcmp(name, "cpu") == 0 || strcmp(name, "auto") == 0) {
        out->kind = *name == 'c' ? SF_DEVICE_CPU : SF_DEVICE_AUTO;
        return SAFER_OK;
    }
    if (strcmp(name, "cuda") == 0) return SAFER_OK;
    if (strncmp(name, "cuda:", 5) == 0 && strspn(name + 5, "0123456789") == strlen(name + 5) && strlen(name) > 5 &&
        strlen(name) < 9) {
        out->number = atoi(name + 5);
        return SAFER_OK;
    }
    return sf_fail(error, SAFER_INVALID, "device: \"%.80s\" is none; cpu, cuda, cuda:N or auto", name);
}

safer_status sf_device_choose(sf_device_choice *out, const char *name, safer_error *error)
{
    sf_device_wish wish;
    int there = 0;
    *out = (sf_device_choice){0};
    safer_status status = sf_device_parse(&wish, name, error);
    if (status != SAFER_OK || wish.kind == SF_DEVICE_CPU) return status;
    const int any = wish.kind == SF_DEVICE_AUTO;
    status = sf_device_load(&out->table, any ? NULL : error);
    if (status == SAFER_OK) status = out->table->count(&there, any ? NULL : error);
    if (any && (status != SAFER_OK || !there)) return SAFER_OK;
    if (status != SAFER_OK) return status;
    if (wish.number >= there || !there)
        return sf_fail(error, SAFER_INVALID, "device: there is no %s; there %s %d", name, there == 1 ? "is" : "are",
                       there);
    out->first = wish.number < 0 ? 0 : wish.number;
    out->count = wish.number < 0 ? there : 1;
    return SAFER_OK;
}
