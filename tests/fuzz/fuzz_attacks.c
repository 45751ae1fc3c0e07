/* Records of attacks: lines of JSON, sealed here so that what is inside is reached. What is read keeps its promises;
 * the rest has a message that names the file. */
#define _GNU_SOURCE
#include "fuzz_files.h"

#include "safer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    safer_run *run = NULL;
    safer_error error = {0};
    const char *path = fuzz_write_sealed("attack", (const char *)data, size);
    if (safer_run_read(&run, path, &error) != SAFER_OK) {
        require(error.status == SAFER_INPUT && strstr(error.message, path) && !run);
        return 0;
    }
    const safer_attack_summary *attacked = safer_run_attacked(run);
    require(!attacked != !safer_run_certified(run));
    if (attacked) require(attacked->texts == safer_run_size(run));
    if (attacked) require(attacked->succeeded + attacked->skipped <= attacked->texts);
    for (size_t i = 0; i < safer_run_size(run); i++) {
        const char *id = safer_run_id(run, i), *outcome = safer_run_outcome(run, i);
        fuzz_read(id, strlen(id) + 1);
        if (outcome) fuzz_read(outcome, strlen(outcome) + 1);
    }
    safer_run_free(run);
    return 0;
}
