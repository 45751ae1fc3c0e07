/* Records of runs: lines of JSON, sealed here so that what is inside is reached. A run that is read is
 * whole, and all readers agree about it; else there is a message that names the file. */
#define _GNU_SOURCE
#include "fuzz.h"

#include "certify/read.h"

#include <sys/mman.h>
#include <unistd.h>

/* Writes a line as a run would, in its place; one that is no object as it is. */
static void put_line(FILE *file, const char *bytes, size_t length, size_t line, uint64_t *seal)
{
    json_t *object = json_loadb(bytes, length, 0, NULL);
    char *sealed = NULL;
    if (json_object_size(object)) {
        if (line > 1) json_object_set_new(object, "row", json_integer((json_int_t)line - 1));
        sealed = sf_seal(object, line > 1 ? 0 : -1, *seal, &length, line > 1 ? NULL : seal);
    }
    fwrite(sealed ? sealed : bytes, 1, length, file);
    free(sealed);
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[40];
    sf_run run = {0};
    safer_run *read = NULL;
    safer_error error = {0}, ignored = {0};
    uint64_t seal = 0;
    size_t line = 0;
    const int descriptor = memfd_create("records", 0);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    require(file);
    for (const char *p = (const char *)data, *end = p + size, *next; p < end; p = next) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        next = newline ? newline + 1 : end;
        put_line(file, p, (size_t)(next - p), ++line, &seal);
    }
    require(fflush(file) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    const safer_status status = sf_run_load(&run, path, &error), compared = safer_run_read(&read, path, &ignored);
    if (status == SAFER_OK) {
        require(compared == SAFER_OK && safer_run_size(read) == run.count);
        require(run.count == run.summary.texts && run.count == run.config.texts);
        for (size_t i = 0; i < run.count; i++) {
            sf_record r;
            json_t *json = NULL;
            require(sf_run_record(&r, &json, &run, i, &error) == SAFER_OK);
            require(r.id && r.target >= 0 && (size_t)r.target < run.config.classes);
            require(r.certified == (r.radius >= run.config.radius));
            json_decref(json);
        }
    } else {
        require(status == SAFER_INPUT && strstr(error.message, path));
    }
    safer_run_free(read);
    sf_run_free(&run);
    fclose(file);
    return 0;
}
