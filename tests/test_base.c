/* The small things of src/base: hashing, SHA-256, randomness, word sets, hash tables, buffers, memory and errors.
 * Numbers are in test_base_numbers.c, files in test_base_files.c, threads and progress in
 * test_base_threads.c. */
#define _GNU_SOURCE
#include "support.h"

#include "base/options.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "base/table.h"
#include "base/words.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <time.h>

/* ------------------------------------------------------------------- hash */

/* The published sanity vectors of xxHash (xsum_sanity_check.c) and three strings. */
static void test_hash_published(void **state)
{
    (void)state;
    static const struct {
        size_t length;
        uint64_t seed, hash;
    } vectors[] = {
        {0, 0, 0xef46db3751d8e999},   {0, 2654435761, 0xac75fda2929b17ef},  {1, 0, 0xe934a84adb052768},
        {4, 0, 0x9136a0dca57457ee},   {1, 2654435761, 0x5014607643a9b4c3},  {14, 0, 0x8282dcc4994e35c8},
        {222, 0, 0xb641ae8cb691c174}, {14, 2654435761, 0xc3bd6bf63deb6df0}, {222, 2654435761, 0x20cb8ab7ae10c14a},
    };
    unsigned char bytes[222];
    uint64_t generator = 2654435761;
    for (size_t i = 0; i < sizeof bytes; i++, generator *= UINT64_C(11400714785074694797))
        bytes[i] = (unsigned char)(generator >> 56);
    for (size_t i = 0; i < COUNT(vectors); i++)
        assert_int_equal(sf_hash(bytes, vectors[i].length, vectors[i].seed), vectors[i].hash);
    assert_int_equal(sf_hash("a", 1, 0), 0xd24ec4f1a98c6e5b);
    assert_int_equal(sf_hash("abc", 3, 0), 0x44bc2cf5ad770999);
    assert_int_equal(sf_hash("Nobody inspects the spammish repetition", 39, 0), 0xfbcea83c8a378bf1);
}

/* Every length from 0 to 100, by an implementation written separately (Python, from the
 * specification; it agrees with the vectors above), at every alignment. */
static void test_hash_lengths(void **state)
{
    (void)state;
    static const uint64_t hashes[101] = {
        0xef46db3751d8e999, 0x50ff15a81340970f, 0x65a5674c7145af41, 0x1209e939b0134e28, 0xd182f55058b3bc82,
        0x4ea3c0d6ccb787f9, 0xb3515bc8127f06d4, 0x3cce93e859314d39, 0x151b881b512cd206, 0xd90a28c6d61c123a,
        0xb544eb1da2a23c33, 0xd15cde42188d688f, 0x80d3081b3ffc9392, 0xc2ca35936bc77e13, 0x0d08eb37f3c78c62,
        0x6dba77be5dc4a9dc, 0xd8d9a460c972cdd7, 0xb167199f7e4874bf, 0x0b4457d851f2ae88, 0x7bb3bfa3ec26ecce,
        0x9959668ff0f2a2f0, 0xf3ef83ce2b5a0ea4, 0xd9826010bc557c00, 0xbf0e98aacb9f9d0f, 0x9ebf31d9e1ef5ec7,
        0x19b82785e23e7fdf, 0x2e16f4a4b37ad821, 0x0154c34087d359a2, 0x1c7166c375b56326, 0x687613ef1f7faca5,
        0x6d9dd03acf4645d5, 0x857c6244cd308623, 0x8346043e2a35d673, 0xa5337ed80e3b3e8f, 0x0dd3bf6f465df551,
        0x5bf212109a88c18c, 0x75a28b80edebab40, 0x5112358ef6a375d5, 0xeb5abceaa32ee9ce, 0x732a70d3c3c3d3c0,
        0x73e5c01aafb11e6b, 0xd466f408885c61e4, 0x9eea60c8884bc910, 0xe56dd9b6c69b1a01, 0xda1c75b05d00e24d,
        0x5a57f26ba74edc6b, 0xd6280ed178e3ba3e, 0x7c94ee0b97434f71, 0xe17466003029d7a1, 0xd63d7e9c2e906d29,
        0x24271e4b89bd88fc, 0x39ee3c4e9dc4fad3, 0x1b1f65ab87e2bb8c, 0xe7e71640236b9516, 0x7db5628d6d0a5597,
        0xe4c72e3670fb105a, 0x7ac67b7e850c4472, 0x26631dfb3be2a8e2, 0x6ce301a9f16310b1, 0x3503648bb2c1d65e,
        0xf59570a561efa669, 0x9eb78baca9101f52, 0xff7125e926b993dc, 0x2045fa5294c9c99d, 0x10f796f12c441cff,
        0xd5b98990b5c290ec, 0xeccd48217f56c707, 0x8aa67a26ea27ba60, 0x8c42d780d019357a, 0x57e26783431b5c99,
        0x5c749de0f3a30202, 0x0f9f121d42e21b25, 0xcb0c07c1dc75fc60, 0x2bb875c8ab2289b3, 0x775e19fc0ba2e774,
        0x1994f49b327d34bf, 0xfe2fcaed7d2068d1, 0x15ac3580618eb96d, 0x4ba11fe975d13002, 0xbc23737e57cf77e2,
        0x31050e0da34b9488, 0x02fdf7a9bcef2cfd, 0xc77aff5666374af6, 0x6f23d7dd9db6d214, 0x1f429d71c1dbeccc,
        0xc5fd3ce1cacdf12b, 0x6c02ee42250fc3ba, 0x23a8af6a563b3235, 0x505814dc1b40ce0d, 0x0756646c732af16a,
        0x997d8f5a327b8603, 0x284a70dd1757cb61, 0x445a6f31d706fdb2, 0x142ae34c1bb9d497, 0xfa79d7869ca7c3df,
        0x4b72626caf29d64b, 0xb7b3eadb7f7c527c, 0xacbf62a8f0d4306f, 0xd837321666c39325, 0x18bc2d6aac43e175,
        0xadf004d1d67241a5,
    };
    unsigned char bytes[101 + 8];
    for (size_t shift = 0; shift < 8; shift++) {
        for (size_t i = 0; i < 101; i++) bytes[shift + i] = (unsigned char)(i * i * 37 + 11 * i + 5);
        for (size_t length = 0; length <= 100; length++)
            assert_int_equal(sf_hash(bytes + shift, length, 0), hashes[length]);
    }
    uint64_t all = 0; /* the same with a large seed, folded into one number */
    for (size_t length = 0; length <= 100; length++)
        all = all * UINT64_C(11400714785074694791) + sf_hash(bytes + 7, length, 0x0123456789abcdef);
    assert_int_equal(all, 0xdd5c29cc534845a0);
}

/* ----------------------------------------------------------------- SHA-256 */

/* The vectors of FIPS 180-2 and its short-message tests; every length around a block at once, in pieces and
 * as one piece added byte by byte. */
static void test_sha256(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *hex;
    } vectors[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    safer_error error = {0};
    sf_digest digest, pieces;
    for (size_t i = 0; i < COUNT(vectors); i++) {
        assert_ok(sf_sha256(&digest, vectors[i].bytes, strlen(vectors[i].bytes), &error));
        assert_string_equal(digest.hex, vectors[i].hex);
    }
    sf_sha256_sum sum = {0};
    char thousand[1000];
    memset(thousand, 'a', sizeof thousand);
    for (int i = 0; i < 1000; i++) sf_sha256_add(&sum, thousand, sizeof thousand);
    assert_ok(sf_sha256_end(&digest, &sum, &error));
    assert_string_equal(digest.hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    assert_null(sum.context);
    for (size_t length = 0; length < 200; length++) {
        assert_ok(sf_sha256(&digest, thousand, length, &error));
        for (size_t i = 0; i < length; i++) sf_sha256_add(&sum, thousand + i, 1);
        assert_ok(sf_sha256_end(&pieces, &sum, &error));
        assert_memory_equal(&digest, &pieces, sizeof digest);
    }
}

static void test_sha256_netstrings(void **state)
{
    (void)state;
    safer_error error = {0};
    sf_digest digest, expected;
    sf_sha256_sum sum = {0};
    sf_sha256_netstring(&sum, "", 0);
    sf_sha256_netstring(&sum, "12:a", 4);
    sf_sha256_netstring(&sum, "b\0c", 3);
    assert_ok(sf_sha256_end(&digest, &sum, &error));
    assert_ok(sf_sha256(&expected, "0:,4:12:a,3:b\0c,", 16, &error));
    assert_memory_equal(&digest, &expected, sizeof digest);
    sf_sha256_add(&sum, "dropped", 7);
    assert_ok(sf_sha256_end(NULL, &sum, &error));
    assert_ok(sf_sha256_end(&digest, &sum, &error)); /* of nothing */
    assert_memory_equal(digest.hex, "e3b0c442", 8);
}

/* ------------------------------------------------------------- randomness */

/* The known answers that come with Random123 (kat_vectors). */
static void test_philox(void **state)
{
    (void)state;
    static const uint32_t vectors[][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
         0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
         0x24126ea1},
    };
    for (size_t i = 0; i < COUNT(vectors); i++) {
        uint32_t out[4];
        sf_philox(out, vectors[i], vectors[i] + 4);
        assert_memory_equal(out, vectors[i] + 6, sizeof out);
    }
}

static int compare_keys(const void *a, const void *b) { return memcmp(a, b, sizeof(sf_stream)); }

/* Neighbouring seeds, texts and stages: all keys differ, and so do their first draws. */
static void test_streams_differ(void **state)
{
    (void)state;
    enum { SEEDS = 20, TEXTS = 200, STAGES = 5, ALL = SEEDS * TEXTS * STAGES };
    sf_stream *keys = malloc(ALL * sizeof *keys);
    assert_non_null(keys);
    size_t n = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        for (uint64_t text = 0; text < TEXTS; text++)
            for (int stage = SF_STAGE_SELECTION; stage <= SF_STAGE_DATA; stage++)
                keys[n++] = sf_stream_of(seed, text, (sf_stage)stage);
    assert_int_equal(n, ALL);
    /* Streams must also be unrelated: 16 by 16 cells of the first draws of neighbours. */
    double cells[256] = {0}, chi2 = 0;
    for (size_t i = 0; i + 1 < n; i++)
        cells[16 * sf_draw_below(keys[i], 0, 0, 16) + sf_draw_below(keys[i + 1], 0, 0, 16)] += 1;
    for (size_t i = 0; i < 256; i++) chi2 += (cells[i] - (double)(n - 1) / 256) * (cells[i] - (double)(n - 1) / 256);
    chi2 /= (double)(n - 1) / 256;
    if (chi2 > 255 + 4 * 22.6 || chi2 < 255 - 4 * 22.6) fail_msg("chi2 = %g for 255 degrees of freedom", chi2);
    qsort(keys, n, sizeof *keys, compare_keys);
    for (size_t i = 1; i < n; i++) assert_memory_not_equal(&keys[i - 1], &keys[i], sizeof *keys);
    free(keys);
}

/* The key is a fixed function: certificates are to be repeated elsewhere. By Python. */
static void test_stream_fixed(void **state)
{
    (void)state;
    sf_stream stream = sf_stream_of(1, 0x0123456789abcdef, SF_STAGE_CERTIFICATION);
    assert_int_equal(stream.key[0], 0x3ab23803);
    assert_int_equal(stream.key[1], 0xb5f580bb);
    /* counter (sample low, sample high, slot, try) = (7, 1, 3, 0) */
    static const uint32_t block[4] = {0xd55c6bb8, 0x373317af, 0x778ef5a9, 0x67af4f92};
    assert_int_equal(sf_draw_below(stream, UINT64_C(0x100000007), 3, 1u << 31), block[0] >> 1);
    double unit = sf_draw_unit(stream, UINT64_C(0x100000007), 3);
    assert_true(unit == ((double)block[0] * 0x1p21 + (double)(block[1] >> 11)) * 0x1p-53);
}

/* The first number of the blocks (sample, slot, 0), (sample, slot, 1), ... that is not
 * rejected. One block in 256 is rejected whole. */
static void test_draw_below_fixed(void **state)
{
    (void)state;
    static const uint32_t bounds[] = {1, 2, 3, 1000, 3u << 30, 0x80000001, UINT32_MAX};
    sf_stream stream = sf_stream_of(5, 6, SF_STAGE_ATTACK);
    size_t second_blocks = 0;
    for (size_t b = 0; b < COUNT(bounds); b++)
        for (uint32_t i = 0; i < 5000; i++) {
            uint64_t sample = (uint64_t)i << (i % 33), spare = (UINT64_C(1) << 32) % bounds[b], x = 0;
            uint32_t tries = 0, block[4];
            do {
                sf_philox(block, (const uint32_t[]){(uint32_t)sample, (uint32_t)(sample >> 32), i, tries / 4},
                          stream.key);
                x = (uint64_t)block[tries % 4] * bounds[b];
                tries++;
            } while (x % (UINT64_C(1) << 32) < spare);
            second_blocks += tries > 4;
            assert_int_equal(sf_draw_below(stream, sample, i, bounds[b]), x >> 32);
        }
    assert_true(second_blocks > 100);
}

/* Pearson's chi-square of draws below `bound`, sorted into `cells` by draw % cells. */
static double chi_square(uint32_t bound, uint32_t cells, size_t draws, int by_slot)
{
    double counts[128] = {0}, chi2 = 0;
    sf_stream stream = sf_stream_of(11, bound, SF_STAGE_CERTIFICATION);
    assert_true(cells <= COUNT(counts));
    for (size_t i = 0; i < draws; i++) {
        uint32_t x = by_slot ? sf_draw_below(stream, 5, (uint32_t)i, bound) : sf_draw_below(stream, i, 5, bound);
        assert_true(x < bound);
        counts[x % cells] += 1;
    }
    double expected = (double)draws / cells; /* bound is a multiple of cells, or far larger */
    for (uint32_t i = 0; i < cells; i++) chi2 += (counts[i] - expected) * (counts[i] - expected) / expected;
    return chi2;
}

/* The draws are fixed, so this passes always or never. Cuts at 1e-5 (chi-square tables):
 * a generator that ignored the rejection would give 3*2^30 a third of each residue as
 * 1/2, 1/4, 1/4. */
static void test_draws_unbiased(void **state)
{
    (void)state;
    static const struct {
        uint32_t bound, cells;
        double cut;
    } cases[] = {
        {2, 2, 19.5},          {3, 3, 23.0},
        {7, 7, 33.1},          {100, 100, 169.0},
        {3u << 30, 3, 23.0},   {3u << 30, 96, 165.0},
        {0xffffffff, 5, 28.5}, {0x80000001, 2, 19.5},
        {5u << 29, 5, 28.5},   {0xc0000001, 64, 124.0},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int by_slot = 0; by_slot < 2; by_slot++) {
            double chi2 = chi_square(cases[i].bound, cases[i].cells, 300000, by_slot);
            if (chi2 > cases[i].cut) fail_msg("bound %u: chi2 = %g > %g", cases[i].bound, chi2, cases[i].cut);
        }
    sf_stream stream = sf_stream_of(1, 2, SF_STAGE_DATA);
    for (uint64_t i = 0; i < 1000; i++) assert_int_equal(sf_draw_below(stream, i, 0, 1), 0);
}

/* Whatever order they are made in, and whatever was drawn in between. */
static void test_draws_in_any_order(void **state)
{
    (void)state;
    enum { SAMPLES = 50, SLOTS = 40 };
    uint32_t first[SAMPLES][SLOTS];
    sf_stream stream = sf_stream_of(3, 4, SF_STAGE_SELECTION);
    for (uint32_t i = 0; i < SAMPLES; i++)
        for (uint32_t j = 0; j < SLOTS; j++) first[i][j] = sf_draw_below(stream, i, j, 3u << 30);
    for (uint32_t j = SLOTS; j-- > 0;)
        for (uint32_t i = SAMPLES; i-- > 0;) {
            (void)sf_draw_unit(stream, i + 1, j);
            assert_int_equal(sf_draw_below(stream, i, j, 3u << 30), first[i][j]);
        }
    size_t same = 0; /* sample and slot are not confused with one another */
    for (uint32_t i = 0; i < SLOTS; i++)
        for (uint32_t j = 0; j < i; j++) same += first[i][j] == first[j][i];
    assert_int_equal(same, 0);
    /* All 64 bits of the sample count. */
    for (int bit = 0; bit < 64; bit++)
        assert_int_not_equal(sf_draw_below(stream, UINT64_C(1) << bit, 0, UINT32_MAX), first[0][0]);
}

static void test_draw_unit(void **state)
{
    (void)state;
    enum { DRAWS = 200000, CELLS = 64 };
    sf_stream stream = sf_stream_of(9, 9, SF_STAGE_TRAINING);
    double cells[CELLS] = {0}, sum = 0, chi2 = 0;
    unsigned low_bits = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        double x = sf_draw_unit(stream, i, 0);
        assert_true(x >= 0 && x < 1);
        double scaled = x * 0x1p53;
        assert_true(scaled == (double)(uint64_t)scaled); /* 53 bits, no more */
        low_bits |= (unsigned)((uint64_t)scaled & 0xffff);
        cells[(int)(x * CELLS)] += 1;
        sum += x;
    }
    assert_int_equal(low_bits, 0xffff); /* and no fewer */
    for (int i = 0; i < CELLS; i++) chi2 += (cells[i] - DRAWS / CELLS) * (cells[i] - DRAWS / CELLS) / (DRAWS / CELLS);
    if (chi2 > 123.0) fail_msg("chi2 = %g for 63 degrees of freedom", chi2);
    if (sum / DRAWS < 0.497 || sum / DRAWS > 0.503) fail_msg("mean %g", sum / DRAWS);
}

/* ------------------------------------------------------------------ words */

/* The i-th word: any bytes, short ones first, so that many share a beginning. */
static size_t make_word(char *out, uint32_t i)
{
    size_t length = 1 + i % 13;
    for (size_t k = 0; k < 13; k++) out[k] = (char)(k < 4 ? i >> 8 * k : i * 2654435761u >> (k % 4) * 8);
    return length < 4 ? 4 : length;
}

static void test_words(void **state)
{
    (void)state;
    enum { N = 100000 };
    safer_error error = {0};
    sf_words words = {0};
    char word[16];
    uint32_t id;
    assert_int_equal(sf_words_find(&words, "a", 1), SF_NONE); /* nothing in it yet */
    for (uint32_t i = 0; i < N; i++) {
        size_t length = make_word(word, i);
        assert_int_equal(sf_words_find(&words, word, length), SF_NONE);
        assert_ok(sf_words_add(&words, word, length, &id, &error));
        assert_int_equal(id, i);
    }
    assert_int_equal(words.count, N);
    sf_words_view view = sf_words_as_view(&words);
    assert_true(view.slots > view.count && (view.slots & (view.slots - 1)) == 0);
    for (uint32_t i = N; i-- > 0;) {
        size_t length = make_word(word, i);
        assert_int_equal(sf_words_find(&words, word, length), i);
        assert_int_equal(sf_words_view_find(&view, word, length), i);
        assert_ok(sf_words_add(&words, word, length, &id, &error)); /* again: the same number */
        assert_int_equal(id, i);
        assert_int_equal(sf_words_length(&words, i), length);
        assert_memory_equal(sf_words_string(&words, i), word, length);
        assert_int_equal(sf_words_string(&words, i)[length], '\0');
        assert_int_equal(view.offsets[i + 1] - view.offsets[i], length + 1);
    }
    assert_int_equal(words.count, N);
    for (uint32_t i = N; i < N + 1000; i++) {
        size_t length = make_word(word, i);
        assert_int_equal(sf_words_find(&words, word, length), SF_NONE);
        assert_int_equal(sf_words_view_find(&view, word, length), SF_NONE);
    }
    sf_words_free(&words);
    assert_int_equal(words.count, 0);
    sf_words_free(&words);
}

static void test_words_odd(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } odd[] = {{"", 0}, {"\0", 1}, {"\0\0", 2}, {"a", 1}, {"a\0", 2}, {"a\0b", 3}, {"\0a", 2}, {"\xff", 1}, {"A", 1}};
    safer_error error = {0};
    sf_words words = {0};
    uint32_t id;
    for (uint32_t i = 0; i < COUNT(odd); i++) {
        assert_int_equal(sf_words_find(&words, odd[i].bytes, odd[i].length), SF_NONE);
        assert_ok(sf_words_add(&words, odd[i].bytes, odd[i].length, &id, &error));
        assert_int_equal(id, i);
    }
    for (uint32_t i = 0; i < COUNT(odd); i++) {
        assert_int_equal(sf_words_find(&words, odd[i].bytes, odd[i].length), i);
        assert_int_equal(sf_words_length(&words, i), odd[i].length);
    }
    /* The bytes may lie anywhere and need not be terminated. */
    char *exact = malloc(3);
    assert_non_null(exact);
    memcpy(exact, "a\0b", 3);
    assert_int_equal(sf_words_find(&words, exact, 3), 5);
    assert_int_equal(sf_words_find(&words, exact, 1), 3);
    free(exact);
    /* A long one. */
    char *longest = calloc(1 << 20, 1);
    assert_non_null(longest);
    assert_ok(sf_words_add(&words, longest, 1 << 20, &id, &error));
    assert_int_equal(sf_words_find(&words, longest, 1 << 20), id);
    assert_int_equal(sf_words_find(&words, longest, (1 << 20) - 1), SF_NONE);
    free(longest);
    sf_words_free(&words);

    /* Each the beginning of all that came before: those it meets in the table are longer. */
    enum { PREFIXES = 3000 };
    char prefix[PREFIXES];
    memset(prefix, 'a', sizeof prefix);
    for (uint32_t i = 0; i < PREFIXES; i++) {
        assert_ok(sf_words_add(&words, prefix, PREFIXES - i, &id, &error));
        assert_int_equal(id, i);
    }
    for (uint32_t i = 0; i < PREFIXES; i++) assert_int_equal(sf_words_find(&words, prefix, PREFIXES - i), i);
    sf_words_free(&words);
}

/* A view of no words, and one whose table is full (damaged): finding ends. */
static void test_words_view_damaged(void **state)
{
    (void)state;
    sf_words_view none = {0};
    assert_int_equal(sf_words_view_find(&none, "a", 1), SF_NONE);
    const uint32_t offsets[] = {0, 2}, table[] = {0, 0, 0, 0};
    sf_words_view full = {"b", offsets, table, 1, 4};
    assert_int_equal(sf_words_view_find(&full, "a", 1), SF_NONE);
    assert_int_equal(sf_words_view_find(&full, "b", 1), 0);
}

static safer_status add_words(void *context, safer_error *error)
{
    (void)context;
    sf_words words = {0};
    safer_status status = SAFER_OK;
    char word[16];
    uint32_t id, i;
    for (i = 0; i < 300 && status == SAFER_OK; i++) status = sf_words_add(&words, word, make_word(word, i), &id, error);
    if (status != SAFER_OK) i--;
    /* What was there before the failure is still there, and the failed one can be added. */
    for (uint32_t k = 0; k < i; k++)
        if (sf_words_find(&words, word, make_word(word, k)) != k) status = SAFER_INVALID;
    if (i < 300 && (sf_words_add(&words, word, make_word(word, i), &id, error) != SAFER_OK || id != i))
        status = SAFER_INVALID;
    sf_words_free(&words);
    return status;
}

static void test_words_allocations(void **state)
{
    (void)state;
    check_every_allocation(add_words, NULL);
}

/* ------------------------------------------------------------ hash tables */

/* All numbers of a tag are those of the list `tags` (count), in its order. */
static void check_tag(const sf_hashtable *table, const uint32_t *tags, uint32_t count, uint32_t tag)
{
    sf_hashtable_walk walk = sf_hashtable_find(table, tag);
    uint32_t first = SF_NONE;
    for (uint32_t i = 0; i < count; i++) {
        if (tags[i] != tag) continue;
        if (first == SF_NONE) first = i;
        assert_int_equal(sf_hashtable_next(table, &walk), i);
    }
    assert_int_equal(sf_hashtable_next(table, &walk), SF_NONE);
    assert_int_equal(sf_hashtable_first(table, tag), first);
}

/* Random tags against a list of them: from all different to all alike, at every size. */
static void test_table_random(void **state)
{
    (void)state;
    static const uint64_t kinds[] = {1, 2, 7, 100, 1000, UINT64_C(1) << 32};
    enum { N = 1500 };
    uint32_t tags[N];
    sf_hashtable table = {0};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        for (uint32_t i = 0; i < N; i++) {
            tags[i] = (uint32_t)(sf_hash(&i, sizeof i, k) % kinds[k]);
            if (kinds[k] == 100) tags[i] = (uint32_t)-tags[i]; /* the greatest there are */
            assert_int_equal(sf_hashtable_add(&table, tags[i], i), 0);
            assert_int_equal(table.count, i + 1);
            assert_true(2 * table.count <= table.size && (table.size & (table.size - 1)) == 0);
            if (i < 200 || i % 100 == 99)
                for (uint32_t tag = 0; tag < 10; tag++) {
                    check_tag(&table, tags, i + 1, tag);
                    check_tag(&table, tags, i + 1, tags[tag * i / 10]);
                }
        }
        if (k % 2) {
            const size_t size = table.size;
            sf_hashtable_clear(&table);
            assert_int_equal(table.size, size); /* the memory is kept */
        } else {
            sf_hashtable_free(&table);
        }
        assert_int_equal(sf_hashtable_first(&table, tags[0]), SF_NONE);
    }
    sf_hashtable_free(&table);
    sf_hashtable_free(&table);
}

/* Tags that all begin their search in the last slot of a small table: the run wraps around. */
static void test_table_wraps(void **state)
{
    (void)state;
    enum { N = 201 };
    uint32_t tags[N], count = 0;
    sf_hashtable table = {0};
    assert_int_equal(sf_hashtable_add(&table, 0, 0), 0);
    const unsigned shift = table.shift;
    const size_t last = table.size - 1;
    tags[count++] = 0;
    for (uint32_t tag = 1; count < N; tag++) {
        sf_hashtable small = {.shift = shift};
        if (sf_hashtable_home(&small, tag) != last) continue;
        for (int twice = 0; twice < 2 && count < N; twice++) {
            assert_int_equal(sf_hashtable_add(&table, tag, count), 0);
            tags[count++] = tag;
        }
        for (uint32_t i = 0; i < count; i++) check_tag(&table, tags, count, tags[i]);
    }
    assert_true(table.shift < shift); /* it has grown meanwhile */
    sf_hashtable_free(&table);
}

/* Keys that are tags, as in a tree: the greatest number and the least tag have their place. */
static void test_table_extremes(void **state)
{
    (void)state;
    sf_hashtable table = {0};
    assert_int_equal(sf_hashtable_first(&table, 0), SF_NONE);
    sf_hashtable_clear(&table);
    assert_int_equal(sf_hashtable_add(&table, 0, 0), 0);
    assert_int_equal(sf_hashtable_add(&table, UINT32_MAX, SF_NONE - 1), 0);
    assert_int_equal(sf_hashtable_first(&table, 0), 0);
    assert_int_equal(sf_hashtable_first(&table, UINT32_MAX), SF_NONE - 1);
    assert_int_equal(sf_hashtable_first(&table, 1), SF_NONE);
    assert_int_equal(sf_hashtable_tag(UINT64_C(0x123456789abcdef0)), 0x12345678);
    sf_hashtable_free(&table);

    sf_hashtable full = {.slots = (uint64_t[]){0}, .size = (size_t)1 << 32, .count = (size_t)1 << 31, .shift = 32};
    assert_int_equal(sf_hashtable_add(&full, 1, 1), -1); /* no tag would find its place in more */
}

static safer_status add_tags(void *context, safer_error *error)
{
    (void)context;
    sf_hashtable table = {0};
    safer_status status = SAFER_OK;
    uint32_t tags[600], i = 0;
    for (; i < COUNT(tags); i++) {
        tags[i] = i / 2;
        if (sf_hashtable_add(&table, tags[i], i) == 0) continue;
        status = sf_fail_memory(error);
        break;
    }
    /* What was there before the failure is still there, and the failed one can be added. */
    for (uint32_t k = 0; k < i; k++) check_tag(&table, tags, i, tags[k]);
    if (i < COUNT(tags)) {
        assert_int_equal(sf_hashtable_add(&table, tags[i], i), 0);
        check_tag(&table, tags, i + 1, tags[i]);
    }
    sf_hashtable_free(&table);
    return status;
}

static void test_table_allocations(void **state)
{
    (void)state;
    check_every_allocation(add_tags, NULL);
}

/* ----------------------------------------------------- buffers and memory */

static void test_buffer(void **state)
{
    (void)state;
    sf_buffer buffer = {0};
    assert_int_equal(sf_buffer_add(&buffer, NULL, 0), 0);
    assert_string_equal(buffer.bytes, "");
    assert_int_equal(sf_buffer_add_string(&buffer, "one"), 0);
    assert_int_equal(sf_buffer_add_byte(&buffer, '\0'), 0);
    assert_int_equal(sf_buffer_format(&buffer, "%d-%s", 22, "three"), 0);
    assert_int_equal(buffer.length, 12);
    assert_memory_equal(buffer.bytes, "one\00022-three", 13);
    const char *same = buffer.bytes;
    sf_buffer_clear(&buffer);
    assert_ptr_equal(buffer.bytes, same);
    assert_int_equal(buffer.length, 0);
    assert_string_equal(buffer.bytes, "");

    char expected[3001 + 16] = "";
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(sf_buffer_format(&buffer, "%03d", i), 0);
        snprintf(expected + 3 * i, 16, "%03d", i);
        assert_string_equal(buffer.bytes, expected);
        assert_true(buffer.capacity > buffer.length);
    }
    /* A format longer than anything before; it must not be cut. */
    sf_buffer_clear(&buffer);
    assert_int_equal(sf_buffer_format(&buffer, "%*d", 100000, 7), 0);
    assert_int_equal(buffer.length, 100000);
    assert_string_equal(buffer.bytes + 99998, " 7");

    assert_int_equal(sf_buffer_reserve(&buffer, SIZE_MAX), -1);
    assert_int_equal(sf_buffer_reserve(&buffer, SIZE_MAX - buffer.length - 1), -1);
    static const char much[1 << 20];
    fail_allocation(0);
    int failed = sf_buffer_add(&buffer, much, sizeof much);
    fail_allocation(-1);
    assert_int_equal(failed, -1);
    assert_int_equal(buffer.length, 100000); /* unchanged */
    assert_string_equal(buffer.bytes + 99998, " 7");
    sf_buffer_free(&buffer);
    assert_null(buffer.bytes);
    sf_buffer_free(&buffer);
}

static void test_grow(void **state)
{
    (void)state;
    uint64_t *array = NULL;
    size_t capacity = 0, grown = 0;
    for (size_t i = 0; i < 100000; i++) {
        size_t before = capacity;
        assert_int_equal(sf_grow(&array, &capacity, i + 1, sizeof *array), 0);
        assert_true(capacity > i && capacity >= before);
        grown += capacity != before;
        array[i] = i * i;
    }
    assert_true(grown < 20); /* doubling, not creeping */
    for (size_t i = 0; i < 100000; i++) assert_int_equal(array[i], i * i);
    uint64_t *same = array;
    size_t before = capacity;
    assert_int_equal(sf_grow(&array, &capacity, SIZE_MAX, sizeof *array), -1);
    assert_int_equal(sf_grow(&array, &capacity, SIZE_MAX / 4, sizeof *array), -1);
    fail_allocation(0);
    int failed = sf_grow(&array, &capacity, capacity + 1, sizeof *array);
    fail_allocation(-1);
    assert_int_equal(failed, -1);
    assert_ptr_equal(array, same);
    assert_int_equal(capacity, before);
    free(array);
}

static void test_memory(void **state)
{
    (void)state;
    assert_null(sf_alloc(SIZE_MAX / 2, 3));
    assert_null(sf_realloc(NULL, SIZE_MAX / 2, 3));
    assert_null(sf_alloc_aligned(SIZE_MAX / 2, 3));
    assert_null(sf_alloc_aligned(SIZE_MAX - 3, 1));
    assert_null(sf_strndup("a", SIZE_MAX));
    assert_null(sf_strdup(NULL));
    void *nothing[] = {sf_alloc(0, 8), sf_calloc(0, 8), sf_calloc(8, 0), sf_realloc(NULL, 0, 8),
                       sf_alloc_aligned(0, 8)};
    for (size_t i = 0; i < COUNT(nothing); i++) {
        assert_non_null(nothing[i]);
        free(nothing[i]);
    }
    for (size_t n = 1; n < 300; n++) {
        char *aligned = sf_alloc_aligned(n, 1);
        assert_non_null(aligned);
        assert_int_equal((uintptr_t)aligned % 64, 0);
        memset(aligned, 1, n); /* the sanitizer watches */
        free(aligned);
    }
    char *copy = sf_strndup("a\0bc", 3);
    assert_memory_equal(copy, "a\0b", 4);
    free(copy);
    char *zero = sf_calloc(100, 10);
    for (int i = 0; i < 1000; i++) assert_int_equal(zero[i], 0);
    free(zero);
}

/* ----------------------------------------------------------------- errors */

static void test_status_texts(void **state)
{
    (void)state;
    static const char *const texts[] = {
#define X(name, text) text,
        SAFER_STATUS_MAP(X)
#undef X
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        assert_string_equal(safer_status_name((safer_status)i), texts[i]);
        assert_true(texts[i][0] != '\0' && !strchr(texts[i], '\n'));
        for (size_t k = 0; k < i; k++) assert_string_not_equal(texts[i], texts[k]);
    }
    assert_int_equal(SAFER_OK, 0);
    assert_null(safer_status_name((safer_status)COUNT(texts)));
}

static void test_names(void **state)
{
    (void)state;
    safer_error error;
    safer_method method = SAFER_METHOD_IBP;
    safer_attack_method search;
    assert_int_equal(safer_method_parse(&method, "binomial", &error), SAFER_OK);
    assert_int_equal(method, SAFER_METHOD_BINOMIAL);
    assert_fails(safer_method_parse(&method, "Binomial", &error), SAFER_INVALID,
                 "`method` is \"Binomial\"; it must be adaptive, binomial, hoeffding, ibp or groups");
    assert_fails(safer_method_parse(&method, "", &error), SAFER_INVALID, "`method` is \"\"");
    assert_fails(safer_method_parse(&method, NULL, &error), SAFER_INVALID, "(none)");
    assert_int_equal(method, SAFER_METHOD_BINOMIAL); /* written on success only */
    assert_null(safer_method_name((safer_method)(SAFER_METHOD_GROUPS + 1)));
    assert_null(safer_method_name((safer_method)-1));
    for (int i = 0; i < SAFER_ATTACKS; i++) {
        assert_int_equal(safer_attack_method_parse(&search, safer_attack_method_name((safer_attack_method)i), &error),
                         0);
        assert_int_equal(search, i);
    }
    assert_null(safer_attack_method_name((safer_attack_method)SAFER_ATTACKS));
}

/* A struct of options as three versions of a header have it. */
typedef struct older {
    size_t size;
    int first;
} older;
typedef struct current {
    size_t size;
    int first, second;
} current;
typedef struct newer {
    size_t size;
    int first, second, third, fourth;
} newer;

static void test_options_grow(void **state)
{
    (void)state;
    static const current defaults = {.first = 1, .second = 2};
    safer_error error;
    older old;
    newer new;
    current own = defaults;
    sf_options_init(&old, sizeof old, &defaults, sizeof defaults);
    assert_true(old.size == sizeof old && old.first == 1);
    old.first = 7;
    assert_int_equal(sf_options_take(&own, sizeof own, sizeof(older), &old, "options", &error), SAFER_OK);
    assert_true(own.size == sizeof own && own.first == 7 && own.second == 2); /* what it lacks keeps its default */

    sf_options_init(&new, sizeof new, &defaults, sizeof defaults);
    assert_true(new.size == sizeof new &&new.second == 2 && new.third == 0 && new.fourth == 0);
    assert_fails(sf_options_take(&own, sizeof own, sizeof(older), &new, "safer_x_options", &error), SAFER_INVALID,
                 "begin with safer_x_options_default()");
    old.size = 0; /* never begun */
    assert_fails(sf_options_take(&own, sizeof own, sizeof(older), &old, "safer_x_options", &error), SAFER_INVALID,
                 "safer_x_options: its size is 0");
    assert_int_equal(own.first, 7); /* nothing was taken over */
    assert_int_equal(sf_options_take(&own, sizeof own, sizeof(older), NULL, "options", &error), SAFER_OK);
}

static void test_version(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", SAFER_VERSION_MAJOR, SAFER_VERSION_MINOR, SAFER_VERSION_PATCH);
    assert_string_equal(safer_version(), SAFER_VERSION);
    assert_string_equal(text, SAFER_VERSION);
    assert_int_equal(safer_version_number(), SAFER_VERSION_NUMBER);
    safer_error error;
    assert_int_equal(safer_version_check(SAFER_VERSION_NUMBER, &error), SAFER_OK);
    assert_fails(safer_version_check(SAFER_VERSION_NUMBER + 1, &error), SAFER_INVALID, "the program was made for");
    const int before = SAFER_VERSION_MAJOR ? 9900 : SAFER_VERSION_NUMBER - 100; /* a minor version below 1.0 */
    assert_fails(safer_version_check(before, &error), SAFER_INVALID, "version 0.");
    snprintf(text, sizeof text, "version %d.", SAFER_VERSION_MAJOR + 1);
    assert_fails(safer_version_check(SAFER_VERSION_NUMBER + 10000, &error), SAFER_INVALID, text);
}

static void test_messages(void **state)
{
    (void)state;
    safer_error error;
    assert_int_equal(sf_fail(NULL, SAFER_INPUT, "%s", "nobody listens"), SAFER_INPUT);
    assert_int_equal(sf_fail_memory(NULL), SAFER_MEMORY);
    assert_int_equal(sf_fail(&error, SAFER_INVALID, "%d of %s", 3, "x"), SAFER_INVALID);
    assert_int_equal(error.status, SAFER_INVALID);
    assert_string_equal(error.message, "3 of x");

    /* One line, whatever bytes a name has. */
    char name[256];
    for (int i = 1; i < 256; i++) name[i - 1] = (char)i;
    name[255] = '\0';
    sf_fail(&error, SAFER_INPUT, "cannot read %s", name);
    assert_int_equal(strlen(error.message), strlen("cannot read ") + 255);
    for (const char *c = error.message; *c; c++) assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);

    errno = ENOENT;
    assert_int_equal(sf_fail_errno(&error, "open", "a\nb"), SAFER_SYSTEM);
    assert_string_equal(error.message, "cannot open a?b: No such file or directory");
    char endless[3000];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    errno = ENAMETOOLONG;
    assert_int_equal(sf_fail_errno(&error, "open", endless), SAFER_SYSTEM);
    assert_string_equal(strchr(error.message, ':'), ": File name too long");

    /* Too long: cut, terminated, and not in the middle of a character. */
    for (int lead = 0; lead < 4; lead++) {
        char text[2 * sizeof error.message];
        memset(text, 'x', (size_t)lead);
        for (size_t i = (size_t)lead; i + 4 < sizeof text; i += 4) memcpy(text + i, "\xf0\x9f\x98\x80", 5);
        memset(&error, 1, sizeof error);
        sf_fail(&error, SAFER_INPUT, "%s", text);
        size_t length = strlen(error.message);
        assert_in_range(length, sizeof error.message - 8, sizeof error.message - 1);
        assert_int_equal((length - (size_t)lead) % 4, 0);
        assert_memory_equal(error.message, text, length);
    }
    char plain[3000];
    memset(plain, 'x', sizeof plain - 1);
    plain[sizeof plain - 1] = '\0';
    sf_fail(&error, SAFER_INPUT, "%s", plain);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash_published),
        cmocka_unit_test(test_hash_lengths),
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_sha256_netstrings),
        cmocka_unit_test(test_philox),
        cmocka_unit_test(test_streams_differ),
        cmocka_unit_test(test_stream_fixed),
        cmocka_unit_test(test_draw_below_fixed),
        cmocka_unit_test(test_draws_unbiased),
        cmocka_unit_test(test_draws_in_any_order),
        cmocka_unit_test(test_draw_unit),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_words_odd),
        cmocka_unit_test(test_words_view_damaged),
        cmocka_unit_test(test_words_allocations),
        cmocka_unit_test(test_table_random),
        cmocka_unit_test(test_table_wraps),
        cmocka_unit_test(test_table_extremes),
        cmocka_unit_test(test_table_allocations),
        cmocka_unit_test(test_buffer),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_status_texts),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_options_grow),
        cmocka_unit_test(test_messages),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
