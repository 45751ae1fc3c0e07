/* Runs with members changed, sealed as if they had been written so. */
#ifndef TESTS_FORGING_H
#define TESTS_FORGING_H

#include "base/buffer.h"
#include "run/sealed.h"
#include "support.h"

#include <stdio.h>
#include <string.h>

static safer_error error;

/* What to put in place of a member, as "n" or "vote.n": JSON, or NULL to remove it. The member "*" is all those of an
 * object: null removes one. */
typedef struct forgery {
    size_t line;
    const char *member, *value, *words;
} forgery;

typedef struct forging {
    const forgery *forgery;
    sf_buffer out;
    uint64_t seal;
} forging;

static inline void put(json_t *object, const char *member, const char *value)
{
    const char *dot = strchr(member, '.');
    char outer[32] = "";
    if (strcmp(member, "*") == 0) {
        const char *name;
        json_t *all = json_loads(value, 0, NULL), *one;
        assert_non_null(all);
        json_object_foreach(all, name, one) /* what has a name keeps its place */
            if (json_is_null(one)) json_object_del(object, name);
        else json_object_set(object, name, one);
        json_decref(all);
    } else if (dot) {
        snprintf(outer, sizeof outer, "%.*s", (int)(dot - member), member);
        put(json_object_get(object, outer), dot + 1, value);
    } else if (value) {
        json_object_set_new(object, member, json_loads(value, JSON_DECODE_ANY, NULL));
    } else {
        json_object_del(object, member);
    }
}

static inline safer_status forge_line(void *context, json_t *object, uint64_t seal, size_t line, safer_error *e)
{
    forging *f = context;
    const forgery *g = f->forgery;
    size_t length;
    (void)seal;
    (void)e;
    if (line == g->line) put(object, g->member, g->value);
    char *sealed = sf_seal(object, line > 1 ? 0.5 : -1, f->seal, &length, line == 1 ? &f->seal : NULL);
    assert_int_equal(sf_buffer_add(&f->out, sealed, length), 0);
    free(sealed);
    return SAFER_OK;
}

/* The run with one member changed, sealed as if it had been written so. */
static inline const char *forge(const char *path, const forgery *g)
{
    forging f = {.forgery = g};
    assert_ok(sf_sealed_read(path, "run", JSON_ALLOW_NUL, forge_line, &f, &error));
    const char *forged = write_temporary("forged.jsonl", f.out.bytes, f.out.length);
    sf_buffer_free(&f.out);
    return forged;
}

#endif
