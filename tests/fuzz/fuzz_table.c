/* Synonym tables, JSON and text: accepted words read back as one word. */
#include "fuzz.h"

#include "lexicon/table.h"
#include "text/word.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_table table = {0};
    safer_error error = {0};
    if (sf_table_parse(&table, (const char *)data, size, "fuzz", &error) != SAFER_OK) require(error.message[0]);
    for (uint32_t i = 0; i < table.words.count; i++)
        require(sf_word_is_one(sf_words_string(&table.words, i), sf_words_length(&table.words, i)) == 1);
    for (size_t i = 0; i < table.count; i++)
        require(table.pairs[i].a < table.words.count && table.pairs[i].b < table.words.count &&
                table.pairs[i].a != table.pairs[i].b);
    sf_table_free(&table);
    return 0;
}
