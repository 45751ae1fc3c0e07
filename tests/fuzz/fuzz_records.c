/* Records of runs: lines of JSON, sealed here so that what is inside is reached. A run that is read is
 * whole, and all readers agree about it; else there is a message that names the file. */
#define _GNU_SOURCE
#include "fuzz_files.h"

#include "certify/read.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[40];
    sf_run run = {0};
    safer_run *read = NULL;
    safer_error error = {0}, ignored = {0};
    uint64_t seal = 0;
    const int descriptor = memfd_create("records", 0);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    require(file);
    fuzz_seal_lines(file, (const char *)data, size, 1, &seal);
    require(fflush(file) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    const safer_status status = sf_run_load(&run, path, &error), compared = safer_run_read(&read, path, &ignored);
    if (status == SAFER_OK) {
        const sf_shard shard = run.config.shard;
        require(compared == (shard.count ? SAFER_INPUT : SAFER_OK)); /* a part is no run */
        require(shard.count || safer_run_size(read) == run.count);
        require(run.count == run.summary.texts && run.count == sf_shard_size(shard, run.config.texts));
        sf_window window = {.source = &run.source};
        require(sf_run_index(&run, &error) == SAFER_OK);
        for (size_t i = 0; i < run.count; i++) {
            sf_record r;
            json_t *json = NULL;
            require(sf_run_record(&r, &json, &run, i, &window, &error) == SAFER_OK);
            require(r.id && r.target >= 0 && (size_t)r.target < run.config.classes);
            const int edited = !run.config.deletes || r.edits >= run.config.options.edits;
            require(r.certified == (r.radius >= run.config.radius && edited));
            json_decref(json);
        }
        sf_window_free(&window);
    } else {
        require(status == SAFER_INPUT && strstr(error.message, path));
    }
    safer_run_free(read);
    sf_run_free(&run);
    fclose(file);
    return 0;
}
