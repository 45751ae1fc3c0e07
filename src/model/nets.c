/* A model's nets on devices, and the queue in front of them. */
#include "model/nets.h"

#include <string.h>

enum { MOST_IN_FLIGHT = 256 };

static safer_status make_nets(sf_nets *n, int first, const void *description, safer_error *error)
{
    safer_status status = SAFER_OK;
    for (int i = 0; i < n->count; i++) {
        sf_device_info info;
        size_t most = n->kind->most;
        SF_TRY(n->table->describe(&info, first + i, error));
        if (i == 0) memcpy(n->arithmetic, info.arithmetic, sizeof info.arithmetic);
        if (strcmp(n->arithmetic, info.arithmetic) != 0) {
            status = sf_fail(
                error, SAFER_INVALID,
                "`device`: cuda:%d computes in \"%s\" and cuda:%d in \"%s\", whose bits may differ: choose one", first,
                n->arithmetic, first + i, info.arithmetic);
            goto done;
        }
        status = n->kind->net_new(&n->nets[i], n->table, first + i, description, &most, error);
        if (status == SAFER_MEMORY)
            sf_fail(error, status, "cuda:%d has not enough free memory for this model: %.1f of %.1f GB are free",
                    first + i, (double)info.free_memory * 1e-9, (double)info.memory * 1e-9);
        if (status != SAFER_OK) goto done;
        if (most < n->most) n->most = most;
    }
done:
    return status;
}

safer_status sf_nets_start(sf_nets *n, const sf_nets_kind *kind, const sf_device_choice *choice,
                           const void *description, safer_error *error)
{
    n->kind = kind;
    n->table = choice->table;
    n->count = choice->count < SF_NETS_DEVICES ? choice->count : SF_NETS_DEVICES;
    n->most = kind->most;
    pthread_mutex_init(&n->lock, NULL);
    sf_feeder_start(&n->feeder, kind->ask, n, 1, SF_NETS_SLOTS * n->count);
    const safer_status status = make_nets(n, choice->first, description, error);
    n->feeder.most = n->most;
    return status;
}

void sf_nets_end(sf_nets *n)
{
    for (int i = 0; i < n->count; i++)
        if (n->nets[i]) n->kind->net_free(n->table, n->nets[i]);
    sf_feeder_end(&n->feeder);
    pthread_mutex_destroy(&n->lock);
}

/* First those of idle devices. */
sf_nets_slot sf_nets_take(sf_nets *n)
{
    int slot = 0;
    pthread_mutex_lock(&n->lock);
    while (n->busy[slot]) slot++;
    n->busy[slot] = 1;
    pthread_mutex_unlock(&n->lock);
    return (sf_nets_slot){n->nets[slot % n->count], slot / n->count, slot};
}

void sf_nets_give(sf_nets *n, sf_nets_slot slot)
{
    pthread_mutex_lock(&n->lock);
    n->busy[slot.number] = 0;
    pthread_mutex_unlock(&n->lock);
}

int sf_nets_concurrency(const sf_nets *n)
{
    const size_t texts = 2 * (size_t)n->count * SF_NETS_SLOTS * (n->most / n->kind->share);
    return texts < MOST_IN_FLIGHT ? (int)texts : MOST_IN_FLIGHT;
}
