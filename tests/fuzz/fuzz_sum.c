/* Files of sums: none of their members is there, so whatever is read is refused with a message. */
#define _GNU_SOURCE
#include "fuzz.h"

#include "model/sum.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[40];
    safer_model *model = NULL;
    safer_error error = {0};
    const int file = memfd_create("sum", 0);
    require(file >= 0 && write(file, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const safer_status status = sf_sum_open(&model, path, &error);
    require(status != SAFER_OK && !model && error.message[0]);
    (void)sf_sum_is(path);
    close(file);
    return 0;
}
