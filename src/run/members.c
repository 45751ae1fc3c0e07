/* Members of a line, by name and type. */
#include "run/members.h"

#include <string.h>

void sf_member_refuse(sf_members *m, const char *name, const char *must)
{
    if (m->wrong) return;
    m->wrong = name;
    m->must = must;
}

const json_t *sf_member_any(sf_members *m, const char *name)
{
    if (m->wrong) return NULL;
    const json_t *value = json_object_get(m->object, name);
    if (!value) sf_member_refuse(m, name, NULL);
    return value;
}

/* The member where `fits`; what it must be is said by the one that asks. */
static const json_t *take(sf_members *m, const char *name, int (*fits)(const json_t *value), const char *must)
{
    const json_t *value = sf_member_any(m, name);
    if (!value || fits(value)) return value;
    sf_member_refuse(m, name, must);
    return NULL;
}

static int is_integer(const json_t *value) { return json_is_integer(value); }
static int is_number(const json_t *value) { return json_is_number(value); }
static int is_flag(const json_t *value) { return json_is_boolean(value); }
static int is_string(const json_t *value) { return json_is_string(value); }
static int is_object(const json_t *value) { return json_is_object(value); }
static int is_array(const json_t *value) { return json_is_array(value); }

json_int_t sf_member_integer(sf_members *m, const char *name, json_int_t least)
{
    const json_t *value = take(m, name, is_integer, "a whole number");
    if (!value) return 0;
    if (json_integer_value(value) >= least) return json_integer_value(value);
    sf_member_refuse(m, name, least > 0 ? "a whole number above 0" : "a whole number, not below 0");
    return 0;
}

uint64_t sf_member_count(sf_members *m, const char *name) { return (uint64_t)sf_member_integer(m, name, 0); }

double sf_member_number(sf_members *m, const char *name)
{
    const json_t *value = take(m, name, is_number, "a number");
    return value ? json_number_value(value) : 0;
}

int sf_member_flag(sf_members *m, const char *name)
{
    const json_t *value = take(m, name, is_flag, "true or false");
    return value ? json_is_true(value) : 0;
}

const char *sf_member_string(sf_members *m, const char *name)
{
    return json_string_value(take(m, name, is_string, "a string"));
}

const json_t *sf_member_object(sf_members *m, const char *name) { return take(m, name, is_object, "an object"); }
const json_t *sf_member_array(sf_members *m, const char *name) { return take(m, name, is_array, "a list"); }

size_t sf_member_radius(sf_members *m, const char *name)
{
    const json_t *value = sf_member_any(m, name);
    if (!value) return 0;
    if (json_is_string(value) && strcmp(json_string_value(value), "all") == 0) return SAFER_ALL;
    if (json_is_integer(value) && json_integer_value(value) >= 0) return (size_t)json_integer_value(value);
    sf_member_refuse(m, name, "a number of words or \"all\"");
    return 0;
}

safer_status sf_members_check(const sf_members *m, const char *what, const char *path, size_t line, safer_error *error)
{
    if (!m->wrong) return SAFER_OK;
    if (!m->must)
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: not %s: \"%s\" is missing", path, line, what, m->wrong);
    return sf_fail(error, SAFER_INPUT, "%s, line %zu: not %s: \"%s\" must be %s", path, line, what, m->wrong, m->must);
}
