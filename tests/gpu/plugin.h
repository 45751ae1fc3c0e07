/* What the tests on a GPU share: the plugin's table, numbers from a seed, and an end with a message. */
#ifndef TESTS_GPU_PLUGIN_H
#define TESTS_GPU_PLUGIN_H

#include "nn/device.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const sf_device_table *table;
static safer_error error;
static uint64_t state = 1;

static void need(int ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static uint32_t bits(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static float noise(void) { return (float)((double)bits() / 2147483648.0 - 1); }

/* Sets the table to that of the plugin. */
static void open_plugin(const char *path)
{
    sf_device_plugin_function get;
    void *plugin = dlopen(path, RTLD_NOW);
    need(plugin != NULL, plugin ? "" : dlerror());
    *(void **)&get = dlsym(plugin, "sf_device_plugin");
    need(get != NULL, "no plugin");
    table = get();
}

#endif
