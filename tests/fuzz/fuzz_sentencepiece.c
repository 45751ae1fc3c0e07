/* Any bytes as a sentencepiece model of one of the types. What is accepted encodes its own bytes, with numbers in
 * range, and writes a description that is read again. */
#include "fuzz.h"

#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {"xlm-roberta", "camembert", "deberta-v2", "albert"};
    if (size < 1) return 0;
    char *bytes = fuzz_copy(data + 1, size - 1);
    const size_t length = size - 1;
    safer_error error = {0};
    sf_tokenizer *t = NULL, *again = NULL;
    if (sf_tokenizer_parse_sentencepiece(&t, bytes, length, types[data[0] % 4], "fuzz", &error) == SAFER_OK) {
        sf_buffer copy = {0};
        sf_ids ids = {0};
        sf_tokenizer_scratch *scratch = sf_tokenizer_scratch_new(t);
        require(scratch && sf_tokenizer_encode(&ids, t, bytes, length, SIZE_MAX, scratch) == 0);
        for (size_t i = 0; i < ids.count; i++) require(ids.ids[i] < sf_tokenizer_size(t));
        require(sf_tokenizer_text(&copy, t) == 0);
        require(sf_tokenizer_parse(&again, copy.bytes, copy.length, "again", &error) == SAFER_OK);
        require(sf_tokenizer_size(again) == sf_tokenizer_size(t));
        sf_ids_free(&ids);
        sf_buffer_free(&copy);
        sf_tokenizer_scratch_free(scratch);
    } else {
        require(error.status == SAFER_INPUT && error.message[0]);
    }
    sf_tokenizer_free(t);
    sf_tokenizer_free(again);
    free(bytes);
    return 0;
}
