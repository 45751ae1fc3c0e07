/* WordNet data files. */
#include "lexicon/table.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_table table = {0};
    safer_error error = {0};
    if (sf_wordnet_parse(&table, (const char *)data, size, "fuzz", &error) != SAFER_OK) assert(error.message[0]);
    for (size_t i = 0; i < table.count; i++)
        assert(table.pairs[i].a < table.words.count && table.pairs[i].b < table.words.count &&
               table.pairs[i].a != table.pairs[i].b);
    sf_table_free(&table);
    return 0;
}
