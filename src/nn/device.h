/* Devices: processors beside the CPU, each behind a plugin.
 *
 * A plugin (base/plugin.h) is loaded when a device is asked for. Its function is sf_device_plugin.
 *
 * What a device computes is a function of the text: a text's numbers have the same bits alone and in every batch, at
 * every place of it. Their name (`arithmetic`) is written into records. */
#ifndef SF_NN_DEVICE_H
#define SF_NN_DEVICE_H

#include "base/error.h"
#include "nn/convnet.h"
#include "nn/encoder.h"

typedef struct sf_device_info {
    char name[256];        /* as its maker calls it */
    char instructions[32]; /* "sm_90" */
    char driver[64];       /* "CUDA 13.0": the newest that it is for */
    char arithmetic[352];  /* of the bits of its answers: all that decides them, its name too */
    uint64_t memory, free_memory;
} sf_device_info;

typedef struct sf_device_net sf_device_net;   /* an encoder on a device */
typedef struct sf_device_step sf_device_step; /* one that is trained there */

typedef struct sf_device_convnet sf_device_convnet; /* the same of a convolutional network */
typedef struct sf_device_convnet_step sf_device_convnet_step;

/* A part of a text: pieces begin .. begin+count-1, counted from the first of the batch, at least one. */
typedef struct sf_device_part {
    size_t begin, count;
    float *mean; /* (hidden): gets the mean of their vectors */
} sf_device_part;

/* How an encoder is trained. Its parameters lie in one array, into which its description points. */
typedef struct sf_device_training {
    const sf_encoder *encoder;
    const float *parameters;
    size_t size;           /* of all parameters */
    size_t start;          /* those from here on are trained, */
    size_t layer;          /* which are the layers from here on; */
    int embeddings;        /* and all that comes before them, when `start` is 0 */
    const uint8_t *decays; /* (size): 1 where weights decay */
    size_t texts, rows;    /* of a batch, at most: texts, pieces */
    double clip;           /* of the gradient's length; 0: none */
} sf_device_training;

/* How a convolutional network is trained. What is trained are its parameters, standardised, and gains. */
typedef struct sf_device_convnet_training {
    const sf_convnet *net;
    const float *trained;               /* (net->trained) */
    double shares[SF_CONVNET_MATRICES]; /* of standardised weights: their mean square when the gain is 1 */
    size_t texts;                       /* of a batch, at most */
    float smoothing;                    /* of the labels: this share is spread over all classes */
    double clip;                        /* of the gradient's length; 0: none */
} sf_device_convnet_training;

/* Adam's numbers of one step. */
typedef struct sf_device_adam {
    float beta1, beta2, correct1, correct2, epsilon, rate, decay;
} sf_device_adam;

/* All functions may be called by any threads, but only one at a time with the same net and slot. */
typedef struct sf_device_table {
    const char *version; /* SAFER_VERSION of its build */
    size_t size;         /* of this struct */

    /* How many devices there are; when there are none because something is missing, an error that says what. */
    safer_status (*count)(int *count, safer_error *error);
    /* Of a device that cannot be used, an error that says why; name, instructions and driver are set where known. */
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

    /* The means of the last layer's vectors, behind the norm at the end where there is one, over parts of these texts:
     * at least one part, and no piece is in two. The encoder may be one without classes. */
    safer_status (*means)(const sf_device_part *parts, size_t part_count, sf_device_net *net, int slot,
                          const uint32_t *ids, const size_t *offsets, size_t count, safer_error *error);

    /* Training. The state is parameters (size), means and variances (size - start); a step starts with the parameters
     * it is given and zeros. */
    safer_status (*step_new)(sf_device_step **out, int device, const sf_device_training *training, safer_error *error);
    void (*step_free)(sf_device_step *step);
    safer_status (*step_write)(sf_device_step *step, const float *parameters, const float *means,
                               const float *variances, safer_error *error);
    safer_status (*step_read)(float *parameters, float *means, float *variances, sf_device_step *step,
                              safer_error *error);
    /* *loss gets the sum over the batch's texts; the gradient is that of its mean. masks (count, hidden) of dropout, or
     * NULL. `gradient` (size) may be NULL: for tests. */
    safer_status (*step_gradient)(double *loss, float *gradient, sf_device_step *step, const uint32_t *ids,
                                  const size_t *offsets, size_t count, const int *labels, const float *masks,
                                  safer_error *error);
    safer_status (*step_update)(sf_device_step *step, const sf_device_adam *adam, safer_error *error);
    safer_status (*step_answer)(float *logits, sf_device_step *step, const uint32_t *ids, const size_t *offsets,
                                size_t count, safer_error *error);

    /* The same of a convolutional network. Texts are codes (count, characters), blanks (0) at the end. *texts of a call
     * is set to as many as memory allows, at most what it was. */
    safer_status (*convnet_new)(sf_device_convnet **out, int device, const sf_convnet *net, const float *parameters,
                                int slots, size_t *texts, safer_error *error);
    void (*convnet_free)(sf_device_convnet *net);
    safer_status (*convnet_answer)(float *logits, sf_device_convnet *net, int slot, const uint8_t *codes, size_t count,
                                   safer_error *error);

    /* Its training: everything that is trained, means and variances are (trained) each. The gradient is not clipped
     * yet; masks (2, count, hidden) of dropout after either dense layer, or NULL. */
    safer_status (*convnet_step_new)(sf_device_convnet_step **out, int device,
                                     const sf_device_convnet_training *training, safer_error *error);
    void (*convnet_step_free)(sf_device_convnet_step *step);
    safer_status (*convnet_step_write)(sf_device_convnet_step *step, const float *trained, const float *means,
                                       const float *variances, safer_error *error);
    safer_status (*convnet_step_read)(float *trained, float *means, float *variances, sf_device_convnet_step *step,
                                      safer_error *error);
    safer_status (*convnet_step_gradient)(double *loss, float *gradient, sf_device_convnet_step *step,
                                          const uint8_t *codes, size_t count, const int *labels, const float *masks,
                                          safer_error *error);
    safer_status (*convnet_step_update)(sf_device_convnet_step *step, const sf_device_adam *adam, safer_error *error);
    safer_status (*convnet_step_answer)(float *logits, sf_device_convnet_step *step, const uint8_t *codes, size_t count,
                                        safer_error *error);
} sf_device_table;

/* The plugin's table, loaded when it is first asked for. */
safer_status sf_device_load(const sf_device_table **out, safer_error *error);

/* What was asked for: "cpu", "cuda" (all GPUs there are), "cuda:N", or "auto": all there are, or the CPU. */
typedef enum sf_device_kind { SF_DEVICE_CPU, SF_DEVICE_CUDA, SF_DEVICE_AUTO } sf_device_kind;

typedef struct sf_device_wish {
    sf_device_kind kind;
    int number; /* of a GPU; -1: all */
} sf_device_wish;

safer_status sf_device_parse(sf_device_wish *out, const char *name, safer_error *error);

/* Devices `first` .. first + count - 1 of the table; none (count 0): the CPU. */
typedef struct sf_device_choice {
    const sf_device_table *table;
    int first, count;
} sf_device_choice;

safer_status sf_device_choose(sf_device_choice *out, const char *name, safer_error *error);

/* What a plugin defines, under the name "sf_device_plugin". */
typedef const sf_device_table *(*sf_device_plugin_function)(void);

#endif
