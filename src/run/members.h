/* Members of a line, by name and type.
 *
 * Lines come from files that anybody may have written. Each function takes a member of the type that it
 * names; the first that is missing or of another type is remembered, and all that follow it give zeros. So
 * a record is taken apart straight down and asked about once, at the end. */
#ifndef SF_RUN_MEMBERS_H
#define SF_RUN_MEMBERS_H

#include "base/error.h"

#include <jansson.h>
#include <stdint.h>

typedef struct sf_members {
    const json_t *object;
    const char *wrong; /* the first member that is not as it must be, or NULL, */
    const char *must;  /* and what it must be; NULL: it is missing */
} sf_members;          /* begin with the object and zeros */

/* A whole number of at least `least`, which is 0, 1 or INT64_MIN; a count is at least 0. */
json_int_t sf_member_integer(sf_members *members, const char *name, json_int_t least);
uint64_t sf_member_count(sf_members *members, const char *name);

double sf_member_number(sf_members *members, const char *name); /* whole or real */
int sf_member_flag(sf_members *members, const char *name);      /* true or false */

/* Borrowed from the object; NULL only when something is wrong. */
const char *sf_member_string(sf_members *members, const char *name);
const json_t *sf_member_object(sf_members *members, const char *name);
const json_t *sf_member_array(sf_members *members, const char *name);

/* A member of any type; the caller says what it must be where it finds it otherwise. */
const json_t *sf_member_any(sf_members *members, const char *name);
void sf_member_refuse(sf_members *members, const char *name, const char *must);

/* A number of words, or "all": SAFER_ALL. */
size_t sf_member_radius(sf_members *members, const char *name);

/* SAFER_INPUT when something is wrong: "PATH, line 7: not a record: "n" must be a whole number". `what` is
 * "a record". */
safer_status sf_members_check(const sf_members *members, const char *what, const char *path, size_t line,
                              safer_error *error);

#endif
