/* Vector files, text and binary. Whatever is accepted has finite numbers and findable
 * words, and the number of threads does not matter. */
#include "fuzz.h"

#include "lexicon/vectors.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_vectors one, two;
    safer_error error;
    safer_status status = sf_vectors_parse(&one, (const char *)data, size, "fuzz", NULL, 1, &error);
    require(sf_vectors_parse(&two, (const char *)data, size, "fuzz", NULL, 2, NULL) == status);
    if (status != SAFER_OK) {
        require(error.message[0]);
        return 0;
    }
    require(one.words.count == two.words.count && one.dim == two.dim && one.dim > 0);
    require(one.words.count + one.duplicates + one.unusable + one.zeros == one.rows);
    for (size_t i = 0; i < one.words.count * one.dim; i++) require(isfinite(one.values[i]));
    require(one.words.count == 0 || memcmp(one.values, two.values, one.words.count * one.dim * sizeof(float)) == 0);
    for (uint32_t i = 0; i < one.words.count; i++)
        require(sf_words_find(&one.words, sf_words_string(&one.words, i), sf_words_length(&one.words, i)) == i);
    sf_vectors_free(&one);
    sf_vectors_free(&two);
    return 0;
}
