/* WordNet data files. */
#include "fuzz.h"

#include "lexicon/wordnet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_table table = {0};
    safer_error error = {0};
    if (sf_wordnet_parse(&table, (const char *)data, size, "fuzz", &error) != SAFER_OK) require(error.message[0]);
    for (size_t i = 0; i < table.count; i++)
        require(table.pairs[i].a < table.words.count && table.pairs[i].b < table.words.count &&
                table.pairs[i].a != table.pairs[i].b);
    sf_table_free(&table);
    sf_wordnet wordnet = {0}; /* with the pointers, which are read for antonyms */
    wordnet.table.wordnet = &wordnet;
    if (sf_wordnet_parse(&wordnet.table, (const char *)data, size, "fuzz", &error) != SAFER_OK)
        require(error.message[0]);
    for (size_t i = 0; i < wordnet.count; i++)
        require(wordnet.synsets[i].first + wordnet.synsets[i].count <= wordnet.word_count);
    sf_wordnet_free(&wordnet);
    return 0;
}
