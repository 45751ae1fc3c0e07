/* Any bytes as a vocabulary, as a tokenizer.json and as a text. What is accepted writes a
 * vocabulary that reads back the same; a text has the same pieces in one go, cut short, in
 * parts, and after being read again, and no number is out of range. */
#include "fuzz.h"

#include "base/memory.h"
#include "text/unicode.h"
#include "text/wordpiece_parts.h"

static const char known[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nthe\n##a\n##b\n##1\n1\n.\n[\n]\n日\né\ne\n##e\nᄒ\n##ᅡ\n"
    "ß\nsep\n";
static const char marked[] = "[UNK]\tunk added\n[CLS]\tcls\n[SEP]\tsep added\na\n##a\nb\nab\tadded only normal\n"
                             "B a\tadded only\n1\tadded only word left right\n";

static void encode(sf_ids *out, const sf_wordpiece *w, const char *text, size_t length, size_t limit)
{
    sf_wordpiece_scratch scratch = {0};
    require(sf_wordpiece_encode(out, w, text, length, limit, &scratch) == 0);
    sf_wordpiece_scratch_free(&scratch);
}

static int same(const sf_ids *a, const sf_ids *b, size_t count)
{
    return b->count == count && a->count >= count &&
           (count == 0 || memcmp(a->ids, b->ids, count * sizeof *a->ids) == 0);
}

static void check_text(const sf_wordpiece *w, const sf_wordpiece *again, const char *text, size_t length)
{
    sf_ids all = {0}, other = {0};
    encode(&all, w, text, length, SIZE_MAX);
    for (size_t i = 0; i < all.count; i++) require(all.ids[i] < sf_wordpiece_size(w));
    encode(&other, again, text, length, SIZE_MAX);
    require(same(&all, &other, all.count));
    for (size_t limit = 0; limit <= all.count; limit += 1 + limit / 2) {
        other.count = 0;
        encode(&other, w, text, length, limit);
        require(same(&all, &other, limit));
    }
    other.count = 0;
    size_t begin = 0;
    for (size_t at = 0; at < length;) {
        uint32_t code;
        size_t step = sf_utf8_decode(text + at, text + length, &code), end = at + (step ? step : 1);
        int cuts = step && sf_wordpiece_cuts(w, code);
        if (cuts && at > begin && !sf_wordpiece_joins(w, (unsigned char)text[at - 1], (unsigned char)text[at])) {
            encode(&other, w, text + begin, at - begin, SIZE_MAX);
            begin = at;
        }
        if (cuts && end < length && !sf_wordpiece_joins(w, (unsigned char)text[end - 1], (unsigned char)text[end])) {
            encode(&other, w, text + begin, end - begin, SIZE_MAX);
            begin = end;
        }
        at = end;
    }
    encode(&other, w, text + begin, length - begin, SIZE_MAX);
    require(same(&all, &other, all.count));
    sf_ids_free(&all);
    sf_ids_free(&other);
}

/* Reads what a vocabulary writes of itself, and encodes with both. */
static void check_vocabulary(const sf_wordpiece *w, const char *text, size_t length)
{
    safer_error error = {0};
    sf_wordpiece *again = NULL;
    sf_buffer copy = {0};
    require(sf_wordpiece_vocabulary(&copy, w) == 0);
    require(sf_wordpiece_new(&again, copy.bytes, copy.length, sf_wordpiece_get_options(w), "again", &error) ==
            SAFER_OK);
    require(sf_wordpiece_size(again) == sf_wordpiece_size(w));
    sf_wordpiece_specials a = sf_wordpiece_special(w), b = sf_wordpiece_special(again);
    require(memcmp(&a, &b, sizeof a) == 0 && a.cls < sf_wordpiece_size(w) && a.sep < sf_wordpiece_size(w) &&
            a.unk < sf_wordpiece_size(w));
    check_text(w, again, text, length);
    sf_wordpiece_free(again);
    sf_buffer_free(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    const sf_wordpiece_options options = {data[0] & 1,      data[0] >> 1 & 1,       data[0] >> 2 & 1,
                                          data[0] >> 3 & 1, data[0] & 16 ? 3 : 100, 0};
    const size_t length = size - 1;
    char *text = fuzz_copy(data + 1, length);
    safer_error error = {0};
    sf_wordpiece *w = NULL;
    switch (data[0] >> 5 & 3) {
    case 0: require(sf_wordpiece_new(&w, known, strlen(known), &options, "known", &error) == SAFER_OK); break;
    case 1: require(sf_wordpiece_new(&w, marked, strlen(marked), &options, "marked", &error) == SAFER_OK); break;
    case 2:
        require(sf_wordpiece_new(&w, text, length, &options, "fuzz", &error) == SAFER_OK ||
                error.status == SAFER_INPUT);
        break;
    case 3:
        require(sf_wordpiece_parse(&w, text, length, "fuzz", &error) == SAFER_OK || error.status == SAFER_INPUT);
        break;
    }
    if (w)
        check_vocabulary(w, text, length);
    else
        require(error.message[0]);
    sf_wordpiece_free(w);
    free(text);
    return 0;
}
