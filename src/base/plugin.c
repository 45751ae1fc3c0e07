/* Plugins: finding and loading them. */
#define _GNU_SOURCE
#include "base/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the library or program that this is part of, without its last slash. A program that was found through
 * PATH has no folder in its name. */
static int own_folder(char *out, size_t size)
{
    static const char here; /* something that lies in it */
    Dl_info own;
    const char *name = dladdr(&here, &own) && own.dli_fname ? own.dli_fname : "";
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

static int find(char *path, size_t size, const char *file)
{
    static const char *const places[] = {"", "/safer", "/../lib/safer", "/../lib/x86_64-linux-gnu/safer"};
    const char *asked = getenv("SAFER_PLUGINS");
    char folder[4096];
    if (asked) return snprintf(path, size, "%s/%s", asked, file) < (int)size ? access(path, R_OK) : -1;
    if (own_folder(folder, sizeof folder)) return -1;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (snprintf(path, size, "%s%s/%s", folder, places[i], file) < (int)size && access(path, R_OK) == 0) return 0;
    return -1;
}

safer_status sf_plugin_load(const void **table, const sf_plugin *plugin, safer_error *error)
{
    char path[4200];
    const char *asked = getenv("SAFER_PLUGINS");
    if (find(path, sizeof path, plugin->file))
        return asked ? sf_fail(error, SAFER_SYSTEM, "SAFER_PLUGINS is %s, where there is no %s", asked, plugin->file)
                     : sf_fail(error, SAFER_SYSTEM, "this safer was built without %s: it has no %s", plugin->brings,
                               plugin->file);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return sf_fail(error, SAFER_SYSTEM, "cannot load the plugin: %s", dlerror());
    const void *(*get)(void);
    *(void **)&get = dlsym(library, plugin->symbol);
    const sf_plugin_head *head = get ? get() : NULL;
    if (head && strcmp(head->version, SAFER_VERSION) == 0 && head->size == plugin->size) {
        *table = head;
        return SAFER_OK;
    }
    if (!head)
        sf_fail(error, SAFER_SYSTEM, "%s is no plugin of safer: it has no %s", path, plugin->symbol);
    else if (strcmp(head->version, SAFER_VERSION) != 0)
        sf_fail(error, SAFER_SYSTEM, "%s is of safer %s, and this is " SAFER_VERSION ": install those of one build",
                path, head->version);
    else
        sf_fail(error, SAFER_SYSTEM, "%s is of another build of safer " SAFER_VERSION ": install those of one build",
                path);
    dlclose(library);
    return SAFER_SYSTEM;
}
