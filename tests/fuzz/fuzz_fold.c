/* A table of a fold, then a text: whatever opens is applied, and a second time changes nothing. */
#include "fuzz.h"

#include "base/memory.h"
#include "text/fold.h"
#include "text/unicode.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t numbers = 0;
    if (size < sizeof numbers) return 0;
    memcpy(&numbers, data, sizeof numbers); /* of the table */
    data += sizeof numbers;
    size -= sizeof numbers;
    const size_t length = numbers <= size / 4 ? 4 * (size_t)numbers : size;
    uint32_t *table = malloc(length + 1); /* aligned, and not a byte more than it says */
    require(table);
    if (length) memcpy(table, data, length);
    sf_fold fold;
    sf_folder once = {0}, again = {0};
    if (!sf_fold_open(&fold, table, length)) {
        const char *text = (const char *)data + length;
        require(sf_folder_apply(&once, &fold, text, size - length) == 0);
        require(sf_utf8_valid(once.text.bytes, once.text.length) == once.text.length);
        require(sf_folder_keeps(&again, &fold, once.text.bytes, once.text.length) == 1);
        size_t last = 0;
        for (size_t i = 0; i <= once.text.length; i++) {
            const size_t origin = sf_folder_origin(&once, i);
            require(origin >= last && origin <= size - length);
            last = origin;
        }
    }
    sf_folder_free(&once);
    sf_folder_free(&again);
    free(table);
    return 0;
}
