/* Any bytes as an archive of a folder with one subfolder of texts per class, whole and by the name of a folder in it:
 * loading fails with a message, or gives rows in the order of their ids, each with a class. */
#define _GNU_SOURCE
#include "fuzz_files.h"

#include "safer.h"

static void check(const char *path, int repair)
{
    safer_data *data = NULL;
    safer_error error = {0};
    safer_data_options options = safer_data_options_default();
    options.format = SAFER_FORMAT_FOLDER;
    options.repair = repair;
    if (safer_data_load(&data, path, &options, &error) != SAFER_OK) {
        require(error.status == SAFER_INPUT && error.message[0] && !data);
        return;
    }
    require(safer_data_size(data) > 0);
    for (size_t i = 0; i < safer_data_size(data); i++) {
        safer_row row = safer_data_row(data, i);
        fuzz_read(row.text, row.text_length + 1);
        require(row.id[0] && row.label >= 0 && (size_t)row.label < safer_data_label_count(data));
    }
    safer_data_free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char inside[300];
    const char *path = fuzz_write("archive", data, size);
    check(path, 0);
    check(path, 1);
    snprintf(inside, sizeof inside, "%s:train", path);
    check(inside, 0);
    return 0;
}
