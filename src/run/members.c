/* Members of a line, by name and type. */
#include "run/members.h"

#include "base/number.h"

#include <assert.h>
#include <string.h>

void sf_member_add(json_t **object, const char *name, json_t *value)
{
    if (json_object_set_new(*object, name, value) == 0) return;
    json_decref(*object);
    *object = NULL;
}

void sf_item_add(json_t **array, json_t *value)
{
    if (json_array_append_new(*array, value) == 0) return;
    json_decref(*array);
    *array = NULL;
}

/* ------------------------------------------------------------------- reading */

/* What a member that nobody took must be. */
static const char unknown[] = "";

void sf_member_refuse(sf_members *m, const char *name, const char *must)
{
    if (m->wrong) return;
    m->wrong = name;
    m->must = must;
}

int sf_is_string(const json_t *value)
{
    return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value);
}

const json_t *sf_member_optional(sf_members *m, const char *name)
{
    if (m->wrong) return NULL;
    const json_t *value = json_object_get(m->object, name);
    assert(m->count < SF_MEMBERS_MOST);
    m->taken[m->count++] = name;
    m->found += value != NULL;
    return value;
}

const json_t *sf_member_any(sf_members *m, const char *name)
{
    const json_t *value = sf_member_optional(m, name);
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
static int is_real(const json_t *value) { return json_is_real(value); }
static int is_flag(const json_t *value) { return json_is_boolean(value); }
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

double sf_member_real(sf_members *m, const char *name)
{
    const json_t *value = m->format < 2 ? take(m, name, is_number, "a number")
                                        : take(m, name, is_real, "a real number");
    return value ? json_number_value(value) : 0;
}

int sf_member_flag(sf_members *m, const char *name)
{
    const json_t *value = take(m, name, is_flag, "true or false");
    return value ? json_is_true(value) : 0;
}

const char *sf_member_string(sf_members *m, const char *name)
{
    return json_string_value(take(m, name, sf_is_string, "a string"));
}

const json_t *sf_member_object(sf_members *m, const char *name) { return take(m, name, is_object, "an object"); }
const json_t *sf_member_array(sf_members *m, const char *name) { return take(m, name, is_array, "a list"); }

/* A number of words in its only spelling: no sign, no leading zero. */
static int read_words(const char *text, uint64_t *words)
{
    return text && (text[0] != '0' || text[1] == '\0') && sf_to_uint64(text, words) == 0 && *words < SAFER_ALL ? 0 : -1;
}

size_t sf_member_radius(sf_members *m, const char *name)
{
    const json_t *value = sf_member_any(m, name);
    const char *text = json_string_value(value);
    uint64_t words = 0;
    if (!value) return 0;
    if (text && strcmp(text, "all") == 0) return SAFER_ALL;
    if (m->format >= 2 && read_words(text, &words) == 0) return (size_t)words;
    if (m->format < 2 && json_is_integer(value) && json_integer_value(value) >= 0)
        return (size_t)json_integer_value(value);
    sf_member_refuse(m, name,
                     m->format < 2 ? "a number of words or \"all\"" : "a string: a number of words or \"all\"");
    return 0;
}

const char *sf_member_digest(sf_members *m, const char *name)
{
    const char *digest = sf_member_string(m, name);
    if (digest && (strlen(digest) != 64 || strspn(digest, "0123456789abcdef") != 64))
        sf_member_refuse(m, name, "64 hexadecimal digits");
    return digest;
}

/* -------------------------------------------------------------- whole objects */

/* Refuses a member that nobody took. */
static void refuse_unknown(sf_members *m)
{
    const char *name;
    const json_t *value;
    if (m->wrong || json_object_size(m->object) == m->found) return;
    json_object_foreach((json_t *)m->object, name, value)
    {
        size_t i = 0;
        while (i < m->count && strcmp(m->taken[i], name) != 0) i++;
        if (i == m->count) sf_member_refuse(m, name, unknown);
    }
}

sf_members sf_members_enter(sf_members *m, const char *name)
{
    return (sf_members){.object = sf_member_object(m, name), .format = m->format, .within = name};
}

void sf_members_leave(sf_members *m, sf_members *inner)
{
    refuse_unknown(inner);
    if (m->wrong || !inner->wrong) return;
    sf_member_refuse(m, inner->wrong, inner->must);
    m->inside = inner->within;
}

safer_status sf_members_check(sf_members *m, const char *what, const char *path, size_t line, safer_error *error)
{
    refuse_unknown(m);
    if (!m->wrong) return SAFER_OK;
    const char *inside = m->inside ? m->inside : "", *dot = m->inside ? "." : "";
    if (!m->must || m->must == unknown)
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: not %s: \"%s%s%s\" is %s", path, line, what, inside, dot,
                       m->wrong, m->must ? "unknown" : "missing");
    return sf_fail(error, SAFER_INPUT, "%s, line %zu: not %s: \"%s%s%s\" must be %s", path, line, what, inside, dot,
                   m->wrong, m->must);
}
