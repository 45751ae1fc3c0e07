/* Any bytes as a tokenizer.json with a text behind a NUL, or as a text for tokenizers that are known. What is accepted
 * writes a description that reads back with the same ids; a text has the same ids with a used scratch and cut short,
 * and no number is out of range. Where the text may be cut, the pieces of both parts are those of the whole. */
#include "fuzz.h"

#include "text/tokenizer_places.h"

static const char *const known[] = {
    "{\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"fuse_unk\":true,\"vocab\":{\"u\":0,\"a\":1,\"b\":2,\"ab\":3,"
    "\"\xe2\x96\x81\":4,\"\xe2\x96\x81"
    "a\":5,\"ba\":6},\"merges\":[\"a b\",\"\xe2\x96\x81 a\",\"b a\"]},\"normalizer\":{\"type\":\"NFKC\"},"
    "\"pre_tokenizer\":"
    "{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"prepend_scheme\":\"first\",\"split\":false}}",
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\xc4\xa0\":3},\"merges\":[\"a b\"]},"
    "\"pre_tokenizer\":"
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":"
    "\"(?i:'s|'t)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|"
    "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}},{\"type\":\"ByteLevel\",\"use_regex\":false}]},\"added_tokens\":"
    "[{\"id\":4,\"content\":\"<s>\",\"lstrip\":true,\"normalized\":false},{\"id\":5,\"content\":\"x\","
    "\"single_word\":true}]}",
    "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":[[\"u\",0],[\"a\",-1],"
    "[\"b\",-2],[\"ab\","
    "-2.5],[\"<0x41>\",-9],[\"<0xC3>\",-9]]},\"normalizer\":{\"type\":\"Sequence\","
    "\"normalizers\":[{\"type\":\"Strip\"},"
    "{\"type\":\"NFD\"},{\"type\":\"StripAccents\"},{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},"
    "\"content\":\" "
    "\"}]},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"},{\"type\":\"Metaspace\","
    "\"replacement\":\"_\",\"prepend_scheme\":\"first\"}]}}",
    "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"a\":1,\"##b\":2,\"##a\":3}},"
    "\"normalizer\":"
    "{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":\"Sequence\","
    "\"pretokenizers\":[{\"type\":\"BertPreTokenizer\"},"
    "{\"type\":\"Whitespace\"}]}}",
};

static void check_text(const sf_tokenizer *t, const sf_tokenizer *again, const char *text, size_t length)
{
    sf_tokenizer_scratch *scratch = sf_tokenizer_scratch_new(t), *other = sf_tokenizer_scratch_new(again);
    sf_ids all = {0}, ids = {0};
    require(scratch && other);
    require(sf_tokenizer_encode(&all, t, text, length, SIZE_MAX, scratch) == 0);
    for (size_t i = 0; i < all.count; i++) require(all.ids[i] < sf_tokenizer_size(t));
    require(sf_tokenizer_encode(&ids, again, text, length, SIZE_MAX, other) == 0);
    require(ids.count == all.count && (all.count == 0 || memcmp(ids.ids, all.ids, all.count * sizeof *all.ids) == 0));
    for (size_t limit = 0; limit <= all.count; limit += 1 + limit / 2) {
        ids.count = 0;
        require(sf_tokenizer_encode(&ids, t, text, length, limit, scratch) == 0);
        require(ids.count == limit && (limit == 0 || memcmp(ids.ids, all.ids, limit * sizeof *all.ids) == 0));
    }
    sf_ids_free(&all);
    sf_ids_free(&ids);
    sf_tokenizer_scratch_free(scratch);
    sf_tokenizer_scratch_free(other);
}

/* At every place where it is allowed. */
static void check_places(const sf_tokenizer *t, const char *text, size_t length)
{
    sf_tokenizer_scratch *scratch = sf_tokenizer_scratch_new(t);
    sf_places *places = sf_places_new(t);
    sf_ids all = {0}, ids = {0};
    require(scratch && places);
    require(sf_tokenizer_encode(&all, t, text, length, SIZE_MAX, scratch) == 0);
    for (size_t at = 1; at < length && at < 200; at++) {
        if (!sf_places_cut(places, text, length, at, 0, 0)) continue;
        ids.count = 0;
        require(sf_tokenizer_encode(&ids, t, text, at, SIZE_MAX, scratch) == 0);
        require(sf_tokenizer_encode_part(&ids, t, text + at, length - at, SIZE_MAX, sf_places_skips(places), scratch) ==
                0);
        require(ids.count == all.count &&
                (all.count == 0 || memcmp(ids.ids, all.ids, all.count * sizeof *all.ids) == 0));
    }
    sf_ids_free(&all);
    sf_ids_free(&ids);
    sf_places_free(places);
    sf_tokenizer_scratch_free(scratch);
}

/* Reads what a tokenizer writes of itself, and encodes with both. */
static void check_tokenizer(const sf_tokenizer *t, const char *text, size_t length)
{
    safer_error error = {0};
    sf_tokenizer *again = NULL;
    sf_buffer copy = {0};
    const sf_tokenizer_frame frame = sf_tokenizer_get_frame(t);
    for (size_t i = 0; i < frame.before_count; i++) require(frame.before[i] < sf_tokenizer_size(t));
    for (size_t i = 0; i < frame.after_count; i++) require(frame.after[i] < sf_tokenizer_size(t));
    require(sf_tokenizer_text(&copy, t) == 0);
    require(sf_tokenizer_parse(&again, copy.bytes, copy.length, "again", &error) == SAFER_OK);
    require(sf_tokenizer_size(again) == sf_tokenizer_size(t));
    check_text(t, again, text, length);
    if (length < 4000) check_places(t, text, length);
    sf_tokenizer_free(again);
    sf_buffer_free(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    char *bytes = fuzz_copy(data + 1, size - 1);
    const size_t length = size - 1, which = data[0] % 5;
    safer_error error = {0};
    sf_tokenizer *t = NULL;
    if (which < 4) {
        require(sf_tokenizer_parse(&t, known[which], strlen(known[which]), "known", &error) == SAFER_OK);
        check_tokenizer(t, bytes, length);
    } else {
        const char *end = length ? memchr(bytes, 0, length) : NULL;
        const size_t json = end ? (size_t)(end - bytes) : length;
        if (sf_tokenizer_parse(&t, bytes, json, "fuzz", &error) == SAFER_OK)
            check_tokenizer(t, end ? end + 1 : bytes, end ? length - json - 1 : length);
        else
            require(error.status == SAFER_INPUT && error.message[0]);
    }
    sf_tokenizer_free(t);
    free(bytes);
    return 0;
}
