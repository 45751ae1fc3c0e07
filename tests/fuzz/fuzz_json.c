/* Any bytes as JSON: our reader accepts what jansson's does, with the same values, but for NUL bytes, and what is
 * written is read again. */
#include "fuzz.h"

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t flags[] = {0, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, JSON_DECODE_ANY,
                                   JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL};
    char *bytes = fuzz_copy(data, size);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        json_error_t problem, theirs;
        json_t *ours, *again, *expected = json_loadb(bytes, size, flags[i], &theirs);
        const safer_status status = sf_json_parse(&ours, bytes, size, flags[i], &problem);
        require((status == SAFER_OK) == (ours != NULL) && (expected || !ours));
        require(ours || !expected || memchr(bytes, '\0', size)); /* jansson takes a NUL byte for the end, in places */
        require(ours || problem.text[0]);
        require(!ours || json_equal(ours, expected));
        sf_buffer text = {0};
        if (ours && sf_json_add(&text, ours) == 0) {
            require(sf_json_parse(&again, text.bytes, text.length, flags[i], NULL) == SAFER_OK &&
                    json_equal(ours, again));
            json_decref(again);
        }
        sf_buffer_free(&text);
        json_decref(ours);
        json_decref(expected);
    }
    free(bytes);
    return 0;
}
