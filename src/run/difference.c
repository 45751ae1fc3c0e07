/* Where two configurations differ, in words. */
#include "run/difference.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The values of one member; NULL: there is none. */
static void put_values(char *out, size_t size, const char *name, const json_t *there, const json_t *here)
{
    char *a = there ? sf_json_text(there) : NULL, *b = here ? sf_json_text(here) : NULL;
    snprintf(out, size, "%s is %.80s there, %.80s here", name, a ? a : "missing", b ? b : "missing");
    free(a);
    free(b);
}

static int is_passed_over(const char *name, const json_t *there, const json_t *here)
{
    if (strcmp(name, "date") == 0) return 1;
    return strcmp(name, "name") == 0 && json_object_get(there, "sha256") && json_object_get(here, "sha256");
}

int sf_difference(char *out, size_t size, const char *name, const json_t *there, const json_t *here)
{
    const json_t *sides[] = {here, there};
    const char *member;
    json_t *value;
    if (!json_is_object(there) || !json_is_object(here)) {
        if (there && here && json_equal(there, here)) return 0;
        put_values(out, size, name ? name : "it", there, here);
        return 1;
    }
    for (size_t i = 0; i < 2; i++) /* those of one side, then what only the other has */
        json_object_foreach((json_t *)sides[i], member, value)
        {
            char path[64];
            snprintf(path, sizeof path, "%s%s%s", name ? name : "", name ? "." : "", member);
            if (is_passed_over(member, there, here)) continue;
            if (sf_difference(out, size, path, json_object_get(there, member), json_object_get(here, member))) return 1;
        }
    return 0;
}
