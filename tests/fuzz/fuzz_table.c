/* Synonym tables, JSON and text: accepted words read back as one word. */
#include "lexicon/table.h"
#include "text/word.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_table table = {0};
    safer_error error = {0};
    if (sf_table_parse(&table, (const char *)data, size, "fuzz", &error) != SAFER_OK) assert(error.message[0]);
    for (uint32_t i = 0; i < table.words.count; i++)
        assert(sf_word_is_one(sf_words_string(&table.words, i), sf_words_length(&table.words, i)) == 1);
    for (size_t i = 0; i < table.count; i++)
        assert(table.pairs[i].a < table.words.count && table.pairs[i].b < table.words.count &&
               table.pairs[i].a != table.pairs[i].b);
    sf_table_free(&table);
    return 0;
}
