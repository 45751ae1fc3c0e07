/* Word lists, edits (--exclude, --protect) and SimLex tables: the three small line formats
 * around a lexicon, all fed the same bytes. */
#include "fuzz.h"

#include "lexicon/simlex.h"
#include "lexicon/table.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const known[] = {"a", "b", "good", "bad", "na\xc3\xafve"};
    const char *bytes = (const char *)data;
    sf_words words = {0}, list = {0};
    safer_error error = {0};
    uint32_t id;
    for (int i = 0; i < 5; i++) require(sf_words_add(&words, known[i], strlen(known[i]), &id, NULL) == SAFER_OK);
    if (sf_word_list_parse(&list, bytes, size, "fuzz", &error) != SAFER_OK) require(error.message[0]);
    for (uint32_t i = 0; i < list.count; i++)
        require(sf_words_find(&list, sf_words_string(&list, i), sf_words_length(&list, i)) == i);
    for (int pairs = 0; pairs < 2; pairs++) {
        sf_edits edits = {0};
        if (sf_edits_parse(&edits, bytes, size, "fuzz", &words, NULL, pairs, &error) != SAFER_OK) continue;
        require(pairs || edits.count == 0);
        for (size_t i = 0; i < edits.count; i++) require(edits.pairs[i].a < 5 && edits.pairs[i].b < 5);
        sf_edits_free(&edits);
    }
    sf_simlex simlex = {0};
    if (sf_simlex_parse(&simlex, bytes, size, "fuzz", &words, &error) == SAFER_OK) {
        const float rows[10] = {1, 0, 0, 1, 1, 1, -1, 1, 0.5f, 0.25f};
        double rho;
        require(simlex.count >= 2);
        require(sf_simlex_correlation(&rho, &simlex, rows, 2, NULL) == SAFER_OK && fabs(rho) < 1.0000001);
        sf_simlex_free(&simlex);
    }
    sf_words_free(&words);
    sf_words_free(&list);
    return 0;
}
