/* The `charcnn` classifier on devices: how its texts get there. */
#include "model/charcnn_device.h"

#include "base/memory.h"
#include "model/nets.h"

#include <string.h>

struct sf_charcnn_device {
    sf_nets nets; /* first */
    size_t characters, classes;
};

typedef struct texts_asked {
    sf_asking asking;
    const uint8_t *codes;
    float *logits;
} texts_asked;

static safer_status call_device(sf_charcnn_device *d, float *logits, const uint8_t *codes, size_t count,
                                safer_error *error)
{
    const sf_nets_slot slot = sf_nets_take(&d->nets);
    const safer_status status = d->nets.table->convnet_answer(logits, slot.net, slot.slot, codes, count, error);
    sf_nets_give(&d->nets, slot);
    return status;
}

/* The texts of several threads in one call. */
static safer_status ask_together(void *self, sf_asking *first, size_t count, safer_error *error)
{
    sf_charcnn_device *d = self;
    const size_t L = d->characters, K = d->classes;
    texts_asked *t = (texts_asked *)first;
    if (!first->next) return call_device(d, t->logits, t->codes, count, error);
    uint8_t *codes = sf_alloc(count, L);
    float *logits = sf_alloc(count * K, sizeof *logits);
    safer_status status = codes && logits ? SAFER_OK : sf_fail_memory(error);
    size_t at = 0;
    for (sf_asking *a = first; a && status == SAFER_OK; a = a->next) {
        memcpy(codes + at * L, ((texts_asked *)a)->codes, a->count * L);
        at += a->count;
    }
    if (status == SAFER_OK) status = call_device(d, logits, codes, count, error);
    at = 0;
    for (sf_asking *a = first; a && status == SAFER_OK; a = a->next) {
        memcpy(((texts_asked *)a)->logits, logits + at * K, a->count * K * sizeof *logits);
        at += a->count;
    }
    free(codes);
    free(logits);
    return status;
}

safer_status sf_charcnn_device_answer(float *logits, sf_charcnn_device *d, const uint8_t *codes, size_t count,
                                      safer_error *error)
{
    safer_status status = SAFER_OK;
    for (size_t first = 0; first < count && status == SAFER_OK; first += d->nets.most) {
        texts_asked own = {{.count = sf_least(count - first, d->nets.most), .error = error},
                           codes + first * d->characters,
                           logits + first * d->classes};
        status = sf_feeder_ask(&d->nets.feeder, &own.asking);
    }
    return status;
}

const char *sf_charcnn_device_arithmetic(const sf_charcnn_device *d) { return d->nets.arithmetic; }
int sf_charcnn_device_concurrency(const sf_charcnn_device *d) { return sf_nets_concurrency(&d->nets); }

/* What a net is made from. */
typedef struct description {
    sf_convnet shape;
    const float *parameters;
} description;

static safer_status net_new(void **out, const sf_device_table *table, int device, const void *from, size_t *texts,
                            safer_error *error)
{
    const description *d = from;
    sf_device_convnet *net = NULL;
    const safer_status status = table->convnet_new(&net, device, &d->shape, d->parameters, SF_NETS_SLOTS, texts, error);
    *out = net;
    return status;
}

static void net_free(const sf_device_table *table, void *net) { table->convnet_free(net); }

void sf_charcnn_device_free(sf_charcnn_device *d)
{
    if (!d) return;
    sf_nets_end(&d->nets);
    free(d);
}

safer_status sf_charcnn_device_new(sf_charcnn_device **out, const sf_device_choice *choice,
                                   const sf_charcnn_layout *layout, const float *parameters, safer_error *error)
{
    static const sf_nets_kind kind = {net_new, net_free, ask_together, .most = 1 << 10, .share = 1 << 5};
    const description from = {sf_charcnn_convnet(layout), parameters};
    sf_charcnn_device *d = sf_calloc(1, sizeof *d);
    if (!d) return sf_fail_memory(error);
    d->characters = layout->shape.characters;
    d->classes = layout->shape.classes;
    const safer_status status = sf_nets_start(&d->nets, &kind, choice, &from, error);
    if (status == SAFER_OK)
        *out = d;
    else
        sf_charcnn_device_free(d);
    return status;
}
