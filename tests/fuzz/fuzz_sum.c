/* Files of sums: none of their members is there, so whatever is read is refused with a message. */
#define _GNU_SOURCE
#include "fuzz.h"

#include "model/sum.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* A folder of its own: beside a memfd, members named 0, 1 or 2 would be pipes that never end. */
static char folder[] = "/tmp/fuzz-sum-XXXXXX", path[40];

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    safer_model *model = NULL;
    safer_error error = {0};
    if (!path[0]) {
        require(mkdtemp(folder) != NULL && atexit(remove_folder) == 0);
        snprintf(path, sizeof path, "%s/sum", folder);
    }
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    require(file >= 0 && write(file, data, size) == (ssize_t)size);
    const safer_status status = sf_sum_open(&model, path, &error);
    require(status != SAFER_OK && !model && error.message[0]);
    (void)sf_sum_is(path);
    close(file);
    return 0;
}
