/* Pairs for counter-fitting: both directions, sorted, inside the vocabulary. */
#include "fuzz.h"

#include "lexicon/counterfit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const known[] = {"a", "b", "good", "bad", "na\xc3\xafve"};
    sf_words words = {0};
    sf_constraints constraints = {0};
    safer_error error = {0};
    uint32_t id;
    for (int i = 0; i < 5; i++) require(sf_words_add(&words, known[i], strlen(known[i]), &id, NULL) == SAFER_OK);
    if (sf_constraints_parse(&constraints, (const char *)data, size, "fuzz", &words, &error) != SAFER_OK)
        require(error.message[0]);
    sf_constraints_sort(&constraints);
    require(constraints.count % 2 == 0);
    for (size_t i = 0; i < constraints.count; i++) {
        uint32_t a = constraints.pairs[i][0], b = constraints.pairs[i][1];
        int reversed = 0;
        require(a < 5 && b < 5 && a != b);
        for (size_t j = 0; j < constraints.count; j++)
            reversed |= constraints.pairs[j][0] == b && constraints.pairs[j][1] == a;
        require(reversed);
    }
    sf_constraints_free(&constraints);
    sf_words_free(&words);
    return 0;
}
