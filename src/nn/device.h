/* Devices: processors beside the CPU, each behind a plugin.
 *
 * A plugin is a shared library, libsafer_NAME.so, that is loaded when a device is asked for, so that neither the program
 * nor the library needs what the device needs. It has one function, sf_device_plugin, which gives a table. Plugin and
 * library are built together: a plugin of another version is refused.
 *
 * What a device computes is a function of the text: a text's numbers have the same bits alone and in every batch, at
 * every place of it. Their name (`arithmetic`) is written into records. */
#ifndef SF_NN_DEVICE_H
#define SF_NN_DEVICE_H

#include "base/error.h"
#include "nn/encoder.h"

typedef struct sf_device_info {
    char name[256];       /* as its maker calls it */
    char arithmetic[128]; /* of the bits of its answers */
    uint64_t memory, free_memory;
} sf_device_info;

typedef struct sf_device_net sf_device_net; /* an encoder on a device */

/* All functions may be called by any threads, but only one at a time with the same net and slot. */
typedef struct sf_device_table {
    const char *version; /* SAFER_VERSION of its build */
    size_t size;         /* of this struct */

    /* How many devices there are; when there are none because something is missing, an error that says what. */
    safer_status (*count)(int *count, safer_error *error);
    safer_status (*describe)(sf_device_info *out, int device, safer_error *error);

    /* An encoder's weights, copied to a device; the parameters are read during the call only. `slots` answers can be
     * under way at once, each of up to *rows pieces, which is set to as many as memory allows, at most what it was. */
    safer_status (*net_new)(sf_device_net **out, int device, const sf_encoder *encoder, int slots, size_t *rows,
                            safer_error *error);
    void (*net_free)(sf_device_net *net);

    /* logits (count, classes) of texts: pieces ids[offsets[i]] .. ids[offsets[i+1]-1] are text i, at least one,
     * at most encoder.tokens; offsets[count] - offsets[0] is at most *rows of net_new. */
    safer_status (*answer)(float *logits, sf_device_net *net, int slot, const uint32_t *ids, const size_t *offsets,
                           size_t count, safer_error *error);
} sf_device_table;

/* What a plugin defines, under the name "sf_device_plugin". */
typedef const sf_device_table *(*sf_device_plugin_function)(void);

#endif
