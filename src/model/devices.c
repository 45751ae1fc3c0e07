/* What can compute: the CPU and GPUs, described. */
#include "base/parallel.h"
#include "model/arithmetic.h"
#include "nn/device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What the system calls the processor; where it does not say, nothing. */
static void name_processor(char *out, size_t size)
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !*out && fgets(line, sizeof line, file)) {
        const char *colon = strncmp(line, "model name", 10) == 0 ? strstr(line, ": ") : NULL;
        if (colon) snprintf(out, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
    }
    if (file) fclose(file);
}

static void describe_cpu(safer_device *out)
{
    safer_error error;
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    snprintf(out->name, sizeof out->name, "cpu");
    name_processor(out->hardware, sizeof out->hardware);
    out->threads = sf_threads(0);
    if (pages > 0 && bytes > 0) out->memory = (uint64_t)pages * (uint64_t)bytes;
    if (sf_isa_check(&error) != SAFER_OK) {
        snprintf(out->reason, sizeof out->reason, "%s", error.message);
        return;
    }
    snprintf(out->instructions, sizeof out->instructions, "%s", sf_isa_name(sf_isa_choose()));
    snprintf(out->arithmetic, sizeof out->arithmetic, "%s", sf_arithmetic_name(sf_arithmetic_fast(SF_BF16)));
}

static int describe_gpu(safer_device *out, size_t number)
{
    const sf_device_table *table;
    safer_error error = {0};
    sf_device_info info = {0};
    int count = 0;
    safer_status status = sf_device_load(&table, &error);
    if (status == SAFER_OK) status = table->count(&count, &error);
    if (status == SAFER_OK && number >= (size_t)count) return 0;
    if (status != SAFER_OK && number > 0) return 0;
    if (status == SAFER_OK) {
        snprintf(out->name, sizeof out->name, "cuda:%zu", number);
        status = table->describe(&info, (int)number, &error);
    } else {
        snprintf(out->name, sizeof out->name, "cuda");
    }
    if (status != SAFER_OK) snprintf(out->reason, sizeof out->reason, "%s", error.message);
    memcpy(out->hardware, info.name, sizeof info.name);
    memcpy(out->instructions, info.instructions, sizeof info.instructions);
    memcpy(out->driver, info.driver, sizeof info.driver);
    memcpy(out->arithmetic, info.arithmetic, sizeof info.arithmetic);
    out->memory = info.memory;
    out->free_memory = info.free_memory;
    return 1;
}

int safer_device_get(safer_device *out, size_t number)
{
    *out = (safer_device){0};
    if (number) return describe_gpu(out, number - 1);
    describe_cpu(out);
    return 1;
}
