/* Feeds every file of the given corpus folders to a fuzz target: the ordinary tests run
 * this where libFuzzer would run the target. An empty corpus is a failure. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <dirent.h>

static int replay(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) return -1;
    uint8_t *bytes = NULL;
    size_t size = 0, got;
    do {
        uint8_t *moved = realloc(bytes, size + 65536);
        require(moved);
        bytes = moved;
        got = fread(bytes + size, 1, 65536, file);
        size += got;
    } while (got);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    return 0;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **entries;
        int n = scandir(argv[i], &entries, NULL, alphasort);
        for (int j = 0; j < n; j++) {
            if (entries[j]->d_name[0] != '.' && replay(argv[i], entries[j]->d_name) == 0) count++;
            free(entries[j]);
        }
        if (n >= 0) free(entries);
    }
    printf("%d inputs replayed\n", count);
    return count ? 0 : 1;
}
