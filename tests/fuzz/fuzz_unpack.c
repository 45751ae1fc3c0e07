/* Any bytes as a packed file or archive: unpacking fails with a message that names the
 * file, or gives contents that are the same when unpacked again. Bytes that are not
 * packed come back as they are. */
#include "fuzz.h"

#include "base/file.h"

static void check(const char *bytes, size_t size, const char *member)
{
    sf_file first = {0}, second = {0};
    safer_error error = {0}, same_error = {0};
    safer_status status = sf_unpack(&first, bytes, size, "file", member, &error);
    require(sf_unpack(&second, bytes, size, "file", member, &same_error) == status);
    if (status == SAFER_OK) {
        require(first.length == second.length);
        require(first.length == 0 || memcmp(first.bytes, second.bytes, first.length) == 0);
        require(first.heap || (first.bytes == bytes && first.length == size));
    } else {
        require(status == SAFER_INPUT && strstr(error.message, "file"));
        require(!first.heap && !second.heap);
    }
    sf_file_free(&first);
    sf_file_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check((const char *)data, size, NULL);
    check((const char *)data, size, "a.tsv");
    return 0;
}
