/* Devices: the plugin, and the devices it has. */
#include "nn/device.h"

#include "base/plugin.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    const sf_device_table *table; /* NULL: not loaded yet */
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

safer_status sf_device_load(const sf_device_table **out, safer_error *error)
{
    static const sf_plugin cuda = {"libsafer_cuda.so", "sf_device_plugin", "CUDA", sizeof(sf_device_table)};
    safer_status status = SAFER_OK;
    pthread_mutex_lock(&plugin.lock);
    const void *table = plugin.table;
    if (!table) status = sf_plugin_load(&table, &cuda, error);
    plugin.table = table;
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
    return sf_fail(error, SAFER_INVALID, "`device`: \"%.80s\" is none; cpu, cuda, cuda:N or auto", name);
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
        return sf_fail(error, SAFER_INVALID, "`device`: there is no %s; there %s %d", name, there == 1 ? "is" : "are",
                       there);
    out->first = wish.number < 0 ? 0 : wish.number;
    out->count = wish.number < 0 ? there : 1;
    return SAFER_OK;
}
