/* Model cards: Markdown with YAML in front, or JSON. */
#include "fuzz.h"

#include "report/card.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_card card = {0};
    safer_error error = {0};
    char *bytes = fuzz_copy(data, size);
    if (sf_card_parse(&card, bytes, size, "fuzz", &error) == SAFER_OK) {
        const char *const strings[] = {card.name, card.version, card.license, card.url};
        for (size_t i = 0; i < 4; i++)
            if (strings[i]) fuzz_read(strings[i], strlen(strings[i]));
        for (size_t i = 0; i < json_array_size(card.tags); i++) require(json_is_string(json_array_get(card.tags, i)));
        require(!card.url || strncmp(card.url, "http", 4) == 0);
    } else {
        require(error.message[0]);
    }
    sf_card_free(&card);
    free(bytes);
    return 0;
}
