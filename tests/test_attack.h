/* What the tests of attacks share: a model that is any function of the text. */
#ifndef TESTS_TEST_ATTACK_H
#define TESTS_TEST_ATTACK_H

#include "attack/attack.h"
#include "base/hash.h"
#include "base/memory.h"
#include "tiny.h"

#include <math.h>
#include <stdatomic.h>
#include <unistd.h>

static safer_error error;

enum { EXCHANGES = SAFER_ATTACK_HOMOGLYPH }; /* the methods that exchange words for synonyms; the others spell them */

/* ------------------------------------------- a model that is any function */

/* Scores are a hash of the text, or a sum of what each word says. */
typedef struct any_model {
    safer_model base;
    uint64_t salt;
    uint32_t bias; /* of 1024: class 0 gets this much more */
    int additive;
    int silent;          /* of 16 texts, so many get no answer */
    atomic_ullong asked; /* texts */
} any_model;

static inline float word_score(const any_model *m, const char *bytes, size_t length, uint64_t c)
{
    return (float)(sf_hash(bytes, length, m->salt * 31 + c) % 1024) / 1024.0f;
}

static inline int any_answer(const any_model *m, const char *bytes, size_t length, float *scores)
{
    float all[CLASSES], sum = 0;
    int best = 0;
    for (size_t c = 0; c < m->base.classes; c++) {
        all[c] = c == 0 ? (float)m->bias / 1024.0f : 0;
        if (!m->additive) all[c] += word_score(m, bytes, length, c);
        for (size_t i = 0; m->additive && i + 2 <= length; i += 3) all[c] += word_score(m, bytes + i, 2, c);
        sum += all[c];
        if (all[c] > all[best]) best = (int)c;
    }
    for (size_t c = 0; scores && c < m->base.classes; c++) scores[c] = all[c] / sum;
    return m->silent && (int)(sf_hash(bytes, length, m->salt + 99) % 16) < m->silent ? SF_NO_LABEL : best;
}

static inline safer_status any_classify(const safer_model *model, const sf_span *texts, size_t count, int *labels,
                                        float *scores, void *scratch, safer_error *e)
{
    any_model *m = (any_model *)(uintptr_t)model;
    (void)scratch, (void)e;
    atomic_fetch_add(&m->asked, count);
    for (size_t i = 0; i < count; i++)
        labels[i] = any_answer(m, texts[i].bytes, texts[i].length, scores ? scores + i * model->classes : NULL);
    return SAFER_OK;
}

/* The same with a fast path, which renders by the lexicon that it was prepared with. */
typedef struct fast {
    const sf_slots *slots;
    const safer_lexicon *lexicon;
} fast;

static inline safer_status fast_prepare(const safer_model *model, const safer_lexicon *lexicon, const sf_slots *slots,
                                        void **out, safer_error *e)
{
    (void)model;
    fast *f = sf_alloc(1, sizeof *f);
    if (!f) return sf_fail_memory(e);
    *f = (fast){slots, lexicon};
    *out = f;
    return SAFER_OK;
}

static inline safer_status fast_sample(const safer_model *model, const void *prepared, const uint32_t *draws,
                                       size_t count, int *labels, void *scratch, safer_error *e)
{
    const fast *f = prepared;
    any_model *m = (any_model *)(uintptr_t)model;
    (void)scratch;
    atomic_fetch_add(&m->asked, count);
    for (size_t i = 0; i < count; i++) {
        sf_buffer text = {0};
        if (sf_slots_render(&text, f->slots, f->lexicon, draws + i * sf_slots_width(f->slots))) {
            sf_buffer_free(&text);
            return sf_fail_memory(e);
        }
        labels[i] = any_answer(m, text.bytes ? text.bytes : "", text.length, NULL);
        sf_buffer_free(&text);
    }
    return SAFER_OK;
}

static const sf_model_class any_class = {.arch = "bow", .classify = any_classify};
static const sf_model_class fast_class = {.arch = "bow",
                                          .classify = any_classify,
                                          .prepare = fast_prepare,
                                          .sample = fast_sample,
                                          .deletes = 1,
                                          .release = free};

static inline void make_model(any_model *m, uint64_t salt, size_t classes, uint32_t bias)
{
    *m = (any_model){.base = {.class = &any_class,
                              .classes = classes,
                              .labels = label_list,
                              .hash = salt,
                              .sha256 = digest_for(salt),
                              .arithmetic = "portable"},
                     .salt = salt,
                     .bias = bias};
}

/* ------------------------------------------------ what an attack may run out of memory with */

typedef struct world {
    safer_lexicon *lexicon;
    safer_data *data;
    any_model model;
    safer_attack_method method;
    int smoothed;
} world;

static inline void make_world(world *w)
{
    *w = (world){.lexicon = make_tiny_lexicon(4, "topk:2", 1, 0), .data = make_two_texts()};
    make_model(&w->model, 4, 2, 0);
    w->model.additive = 1;
}

static inline void free_world(world *w)
{
    safer_data_free(w->data);
    safer_lexicon_free(w->lexicon);
}

#endif
