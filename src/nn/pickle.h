/* Python's pickles, read as data: nothing is imported, called or built.
 *
 * A pickle is a program for a small machine with a stack and a memo. This reader runs the instructions that a
 * dictionary of tensors consists of, and makes a tree of what they say; every other instruction is refused by its name,
 * and so is every name of a Python object that the caller does not list. "Call f with x" becomes a value that says so,
 * which the caller reads or refuses. Memory is bounded by the length of the pickle: one instruction makes one value at
 * most. */
#ifndef SF_NN_PICKLE_H
#define SF_NN_PICKLE_H

#include "base/buffer.h"
#include "base/error.h"

#include <stdint.h>

typedef enum sf_pickle_kind {
    SF_PICKLE_NONE,
    SF_PICKLE_TRUTH,     /* whole: 0 or 1 */
    SF_PICKLE_WHOLE,     /* whole */
    SF_PICKLE_STRING,    /* string */
    SF_PICKLE_TUPLE,     /* count items */
    SF_PICKLE_DICT,      /* count items: key, value, key, value, ... in the order they were set; keys may come twice */
    SF_PICKLE_NAME,      /* whole: its number in the caller's list */
    SF_PICKLE_CALL,      /* whole: the number of the name that is called; its one item is the tuple of arguments */
    SF_PICKLE_PERSISTENT /* its one item says what lies outside the pickle */
} sf_pickle_kind;

typedef struct sf_pickle_value {
    sf_pickle_kind kind;
    uint32_t count, first, last; /* items: the ends of a chain of cells */
    int64_t whole;
    sf_span string; /* in the pickle's bytes */
} sf_pickle_value;

/* A name that may stand in the pickle. Called without arguments, `dict` makes a dictionary. */
typedef struct sf_pickle_name {
    const char *module, *name;
    int dict;
} sf_pickle_name;

/* Zero-initialise. */
typedef struct sf_pickle {
    sf_pickle_value *values;
    struct sf_pickle_cell {
        uint32_t value, next;
    } * cells;
    size_t value_count, value_capacity, cell_count, cell_capacity;
    uint32_t root; /* what the pickle stands for */
} sf_pickle;

/* `bytes` and the names are borrowed and outlive it; `where` is for messages. */
safer_status sf_pickle_parse(sf_pickle *out, const char *bytes, size_t length, const sf_pickle_name *names,
                             size_t name_count, const char *where, safer_error *error);
void sf_pickle_free(sf_pickle *pickle);

const sf_pickle_value *sf_pickle_root(const sf_pickle *pickle);
/* The items one after the other: begin with value->first; ends, after count items, at SF_PICKLE_END. */
#define SF_PICKLE_END UINT32_MAX
const sf_pickle_value *sf_pickle_next(const sf_pickle *pickle, uint32_t *cell);
/* The items of a tuple of exactly `count`, or -1. */
int sf_pickle_items(const sf_pickle_value **out, size_t count, const sf_pickle *pickle, const sf_pickle_value *tuple);

#endif
