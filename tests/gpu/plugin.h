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

/* The same, but what follows is run too; main says how many failed. */
static int failures __attribute__((unused));
static inline void expect(int ok, const char *name, const char *what)
{
    if (ok) return;
    printf("%s: FAILED: %s\n", name, what);
    failures++;
}

static inline int finish(void)
{
    if (failures)
        printf("%d checks failed\n", failures);
    else
        puts("fine");
    return failures != 0;
}

/* A number for the bits of an array, to compare versions of the plugin. */
static inline unsigned long long bits_of(const void *array, size_t size)
{
    unsigned long long hash = 14695981039346656037ull;
    for (size_t i = 0; i < size; i++) hash = (hash ^ ((const unsigned char *)array)[i]) * 1099511628211ull;
    return hash;
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
