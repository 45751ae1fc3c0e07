/* WordNet's index files and those of exceptions: the first byte says which. */
#include "fuzz.h"

#include "lexicon/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_parts parts = {0};
    safer_error error = {0};
    const sf_part part = size && data[0] & 1 ? SF_VERB : SF_NOUN;
    const int index = size && data[0] & 2;
    if (sf_parts_parse(&parts, part, index, (const char *)data + (size > 0), size - (size > 0), "fuzz", &error) !=
        SAFER_OK)
        require(error.message[0]);
    for (uint32_t i = 0; i < parts.forms.count; i++) {
        const char *form = sf_words_string(&parts.forms, i);
        require(parts.of[i] == part && sf_parts_of(&parts, form, sf_words_length(&parts.forms, i)) & part);
    }
    require(sf_parts_of(&parts, (const char *)data, size) != 0);
    sf_parts_free(&parts);
    return 0;
}
