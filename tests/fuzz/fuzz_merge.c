/* Parts of a run: lines of JSON, sealed here, each file ended by a line "%". What is merged reads back, is whole, and
 * is the same in whatever order the parts come; else there is a message. */
#define _GNU_SOURCE
#include "fuzz_files.h"

#include "safer.h"

enum { MOST = 4 };

typedef struct seen {
    size_t lines;
    int is_part;
} seen;

static safer_status see(void *context, json_t *object, uint64_t seal, size_t line, safer_error *error)
{
    seen *s = context;
    (void)seal, (void)error;
    s->lines = line;
    if (line == 1) s->is_part = json_object_get(object, "shard") != NULL;
    return SAFER_OK;
}

/* Writes the files and returns how many there are. */
static size_t split(const char *bytes, size_t size, char paths[MOST][200])
{
    size_t count = 0;
    for (const char *p = bytes, *end = p + size; p < end && count < MOST; count++) {
        char name[8];
        const char *stop = memmem(p, (size_t)(end - p), "\n%\n", 3);
        snprintf(name, sizeof name, "part%zu", count);
        const size_t length = stop ? (size_t)(stop + 1 - p) : (size_t)(end - p);
        snprintf(paths[count], sizeof paths[count], "%s", fuzz_write_sealed(name, p, length));
        p = stop ? stop + 3 : end;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char paths[MOST][200];
    const char *forward[MOST], *backward[MOST];
    size_t records = 0;
    seen s = {0};
    safer_error error = {0};
    sf_file one = {0}, other = {0};
    const size_t count = split((const char *)data, size, paths);
    for (size_t i = 0; i < count; i++) forward[i] = backward[count - 1 - i] = paths[i];
    const char *merged = fuzz_path("merged"), *again = fuzz_path("again");
    const safer_status status = safer_merge(&records, merged, forward, count, NULL, &error);
    require(safer_merge(NULL, again, backward, count, NULL, NULL) == status);
    if (status == SAFER_OK) {
        require(sf_sealed_read(merged, "run", JSON_ALLOW_NUL, see, &s, &error) == SAFER_OK);
        require(s.lines == records + 1 && !s.is_part);
        require(sf_file_load(&one, merged, &error) == SAFER_OK && sf_file_load(&other, again, &error) == SAFER_OK);
        require(one.length == other.length && memcmp(one.bytes, other.bytes, one.length) == 0);
    } else {
        require(status == (count ? SAFER_INPUT : SAFER_INVALID) && error.message[0]);
    }
    sf_file_free(&one);
    sf_file_free(&other);
    fuzz_empty();
    return 0;
}
