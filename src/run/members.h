/* Members of a line, by name and type.
 *
 * Lines come from files that anybody may have written. Each function takes a member of the type that it
 * names; the first that is missing or of another type is remembered, and all that follow it give zeros. So
 * a record is taken apart straight down and asked about once, at the end, where members that nobody took
 * are refused too. */
#ifndef SF_RUN_MEMBERS_H
#define SF_RUN_MEMBERS_H

#include "base/error.h"

#include <jansson.h>
#include <stdint.h>

/* ------------------------------------------------------------------- writing */

/* Adds a member or an item, whose value it takes. Where memory is out, *object becomes NULL and stays so: a line
 * is whole, or is not. */
void sf_member_add(json_t **object, const char *name, json_t *value);
void sf_item_add(json_t **array, json_t *value);

/* ------------------------------------------------------------------- reading */

enum { SF_MEMBERS_MOST = 32 }; /* of one object */

typedef struct sf_members {
    const json_t *object;
    int format;         /* of the file; since 2, whole and real numbers are told apart, and a radius is a string */
    const char *within; /* the member that the object is, or NULL for a line */
    const char *taken[SF_MEMBERS_MOST];
    size_t count, found;        /* how many were asked for, and how many of these are there */
    const char *wrong, *inside; /* the first member that is not as it must be, or NULL, the object that it is in, */
    const char *must;           /* and what it must be; NULL: it is missing */
} sf_members;                   /* begin with the object, the format and zeros */

/* A whole number of at least `least`, which is 0, 1 or INT64_MIN; a count is at least 0. */
json_int_t sf_member_integer(sf_members *members, const char *name, json_int_t least);
uint64_t sf_member_count(sf_members *members, const char *name);

double sf_member_real(sf_members *members, const char *name); /* in format 1: or a whole number */
int sf_member_flag(sf_members *members, const char *name);    /* true or false */

/* Borrowed from the object; NULL only when something is wrong. */
const char *sf_member_string(sf_members *members, const char *name);
const json_t *sf_member_object(sf_members *members, const char *name);
const json_t *sf_member_array(sf_members *members, const char *name);

/* A member of any type; the caller says what it must be where it finds it otherwise. An optional one may be
 * missing: NULL. */
const json_t *sf_member_any(sf_members *members, const char *name);
const json_t *sf_member_optional(sf_members *members, const char *name);
int sf_is_string(const json_t *value); /* without a NUL inside, behind which nobody would look */
void sf_member_refuse(sf_members *members, const char *name, const char *must);

/* A number of words, or "all": SAFER_ALL. */
size_t sf_member_radius(sf_members *members, const char *name);

/* 64 hexadecimal digits. */
const char *sf_member_digest(sf_members *members, const char *name);

/* The members of an object inside; leave it when all are taken. */
sf_members sf_members_enter(sf_members *members, const char *name);
void sf_members_leave(sf_members *members, sf_members *inner);

/* SAFER_INPUT when something is wrong: "PATH, line 7: not a record: "n" must be a whole number". `what` is
 * "a record". */
safer_status sf_members_check(sf_members *members, const char *what, const char *path, size_t line, safer_error *error);

#endif
