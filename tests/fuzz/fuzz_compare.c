/* Configurations of compare, and made.json in its folder: both are given the same bytes. */
#define _GNU_SOURCE
#include "fuzz_files.h"

#include "compare/compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cmp_config config;
    cmp_folder folder;
    safer_error error = {0};
    int done;
    const char *path = fuzz_write("config.json", data, size);
    if (cmp_config_read(&config, path, &error) == SAFER_OK)
        for (size_t i = 0; i < config.cell_count; i++) fuzz_read(config.cells[i].name, strlen(config.cells[i].name));
    else
        require(error.message[0] && (error.status == SAFER_INPUT || error.status == SAFER_INVALID));
    cmp_config_free(&config);
    fuzz_write("made.json", data, size);
    fuzz_path("");
    json_t *with = json_object();
    require(with);
    if (cmp_folder_open(&folder, fuzz_folder, &error) == SAFER_OK) {
        (void)cmp_folder_find(&folder, with);
        (void)cmp_folder_seconds(&folder, "a.lex");
        (void)cmp_folder_begin(&folder, "a.lex", with, &done, &error);
    } else {
        require(error.message[0] && error.status == SAFER_INPUT);
    }
    cmp_folder_close(&folder);
    json_decref(with);
    return 0;
}
