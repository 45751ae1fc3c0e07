/* WordNet data files. */
#include "fuzz.h"

#include "lexicon/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_table table = {0};
    safer_error error = {0};
    if (sf_wordnet_parse(&table, (const char *)data, size, "fuzz", &error) != SAFER_OK) require(error.message[0]);
    for (size_t i = 0; i < table.count; i++)
        require(table.pairs[i].a < table.words.count && table.pairs[i].b < table.words.count &&
                table.pairs[i].a != table.pairs[i].b);
    sf_table_free(&table);
    return 0;
}
