/* Where two configurations differ, in words. */
#ifndef SF_RUN_DIFFERENCE_H
#define SF_RUN_DIFFERENCE_H

#include <jansson.h>
#include <stddef.h>

/* 0 where both are the same. Else 1, and `out` gets the first difference, as
 *     model.sha256 is "12..." there, "34..." here
 * and of a remote model that its answers to the probe set changed. `name` comes before the members' names, with a
 * point, where it is not NULL. What a file is called does not matter where its digest is given too, nor does the
 * date. */
int sf_difference(char *out, size_t size, const char *name, const json_t *there, const json_t *here);

#endif
