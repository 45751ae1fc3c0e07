/* A model's nets on devices, one for each, and the queue in front of them: what bert, context and charcnn share.
 *
 * Every device has SF_NETS_SLOTS slots: while one computes, the texts of the next are copied. A call is made by the
 * thread whose texts come first (base/feeder.h), on a slot that is free: there are as many slots as calls at once. */
#ifndef SF_MODEL_NETS_H
#define SF_MODEL_NETS_H

#include "base/feeder.h"
#include "nn/device.h"

enum { SF_NETS_SLOTS = 2, SF_NETS_DEVICES = 16 };

typedef struct sf_nets_kind {
    /* Puts a net on a device; *most of a call becomes what memory allows. description: of sf_nets_start. */
    safer_status (*net_new)(void **out, const sf_device_table *table, int device, const void *description, size_t *most,
                            safer_error *error);
    void (*net_free)(const sf_device_table *table, void *net);
    sf_feeder_call ask; /* self: the sf_nets */
    size_t most;        /* questions of a call: pieces, or texts */
    size_t share;       /* of them that one text is counted for: a few draws of it */
} sf_nets_kind;

/* What asks begins with it. */
typedef struct sf_nets {
    const sf_nets_kind *kind;
    const sf_device_table *table;
    int count; /* of devices */
    void *nets[SF_NETS_DEVICES];
    size_t most; /* questions of a call that all have memory for */
    char arithmetic[sizeof((sf_device_info *)0)->arithmetic];
    sf_feeder feeder;
    pthread_mutex_t lock;
    int busy[SF_NETS_SLOTS * SF_NETS_DEVICES];
} sf_nets;

/* Of zeros. The devices must be of one arithmetic. End it also when this fails. */
safer_status sf_nets_start(sf_nets *nets, const sf_nets_kind *kind, const sf_device_choice *choice,
                           const void *description, safer_error *error);
void sf_nets_end(sf_nets *nets);

/* A slot that nobody uses, until it is given back. */
typedef struct sf_nets_slot {
    void *net;
    int slot;   /* of the net */
    int number; /* among all */
} sf_nets_slot;

sf_nets_slot sf_nets_take(sf_nets *nets);
void sf_nets_give(sf_nets *nets, sf_nets_slot slot);

/* How many threads keep them busy. */
int sf_nets_concurrency(const sf_nets *nets);

#endif
