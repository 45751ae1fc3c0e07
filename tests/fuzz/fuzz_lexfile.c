/* The .lex file, with the length and the checksum put right so that the checks behind
 * them are reached. Whatever is accepted can be walked through from end to end. */
#include "fuzz.h"

#include "base/hash.h"
#include "lexicon/lexicon.h"

static int read_line(void *context, const char *bytes, size_t length)
{
    (void)context;
    fuzz_read(bytes, length);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    safer_lexicon *lexicon = NULL;
    safer_error error = {0};
    if (size < 32) return 0;
    char *bytes = aligned_alloc(64, (size + 63) & ~(size_t)63);
    require(bytes);
    memcpy(bytes, data, size);
    uint64_t length = size;
    memcpy(bytes + 16, &length, 8);
    uint64_t checksum = sf_hash(bytes, size - 8, 0);
    memcpy(bytes + size - 8, &checksum, 8);
    sf_file image = {.bytes = bytes, .length = size};
    if (sf_lexicon_from_image(&lexicon, &image, "fuzz", &error) != SAFER_OK) {
        require(error.message[0]);
        free(bytes);
        return 0;
    }
    safer_lexicon_info info = safer_lexicon_describe(lexicon);
    fuzz_read(info.kernel, strlen(info.kernel) + 1);
    fuzz_read(info.provenance, strlen(info.provenance) + 1);
    for (uint32_t x = 0; x < info.words; x++) {
        safer_word w = safer_lexicon_word(lexicon, x);
        uint64_t total = 0;
        for (size_t i = 0; i < w.synonym_count; i++) {
            const char *synonym = safer_lexicon_word(lexicon, w.synonyms[i]).word;
            fuzz_read(synonym, strlen(synonym) + 1);
        }
        for (size_t i = 0; i < w.support_count; i++) total += w.weights[i];
        require(total == w.total && w.overlap >= 0 && w.overlap <= 1);
        uint32_t found = safer_lexicon_find(lexicon, w.word, strlen(w.word));
        require(found < info.words || found == SAFER_NO_WORD);
    }
    safer_status exported = safer_lexicon_export(lexicon, SAFER_EXPORT_CUTS, 0, read_line, NULL, &error);
    require(exported == SAFER_OK || exported == SAFER_INPUT);
    char caution[300];
    const safer_survey survey = {.texts = 100, .tokens = 10000, .known_tokens = 100, .tokens_with_synonyms = 5000};
    if (safer_survey_caution(&survey, lexicon, caution, sizeof caution)) require(caution[0]);
    safer_lexicon *other = NULL;
    if (safer_lexicon_with_kernel(&other, lexicon, "topk:2", 1, NULL) == SAFER_OK) safer_lexicon_free(other);
    lexicon->image = (sf_file){0};
    safer_lexicon_free(lexicon);
    free(bytes);
    return 0;
}
