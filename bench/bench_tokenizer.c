/* Speed of tokenizers as HuggingFace keeps them.
 *
 *   bench_tokenizer [--json]                        a made-up byte-level BPE and text
 *   bench_tokenizer [--json] TOKENIZER DATA [LEXICON]   a tokenizer.json, or a folder, and data
 *   bench_tokenizer --ids TOKENIZER DATA [LIMIT]    prints the pieces of every text, one line each
 *
 * Checked first: a text has the same pieces with a new scratch as with one that has seen all texts before it. Then,
 * with one thread, megabytes per second of processor time; and draws of a lexicon put together from pieces, against
 * rendering and encoding: whole ones, and such that delete tokens. */
#define _GNU_SOURCE
#include "drawing.h"

#include "base/file.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { TEXTS = 2000, WORDS = 230, VOCABULARY = 40000, ROUNDS = 5, CHECKED = 200, GROUP = 8 };

static sf_tokenizer *open_tokenizer(const char *path)
{
    safer_error error = {0};
    sf_tokenizer *t = NULL;
    sf_file file = {0};
    struct stat about;
    check(stat(path, &about) == 0, "no such tokenizer");
    if (S_ISDIR(about.st_mode)) {
        check(sf_tokenizer_open(&t, path, NULL, NULL, &error) == SAFER_OK, error.message);
    } else {
        check(sf_file_load(&file, path, &error) == SAFER_OK, error.message);
        check(sf_tokenizer_parse(&t, file.bytes, file.length, path, &error) == SAFER_OK, error.message);
        sf_file_free(&file);
    }
    return t;
}

static safer_data *load_data(const char *path)
{
    safer_error error = {0};
    safer_data *data = NULL;
    check(safer_data_load(&data, path, NULL, &error) == SAFER_OK, error.message);
    return data;
}

static void encode(sf_ids *ids, const sf_tokenizer *t, safer_row row, size_t limit, sf_tokenizer_scratch *scratch)
{
    ids->count = 0;
    check(sf_tokenizer_encode(ids, t, row.text, row.text_length, limit, scratch) == 0, "out of memory");
}

static int print_texts(const char *path, const char *file, size_t limit)
{
    sf_tokenizer *t = open_tokenizer(path);
    safer_data *data = load_data(file);
    sf_tokenizer_scratch *scratch = sf_tokenizer_scratch_new(t);
    sf_ids ids = {0};
    check(scratch != NULL, "out of memory");
    for (size_t i = 0; i < safer_data_size(data); i++) {
        encode(&ids, t, safer_data_row(data, i), limit, scratch);
        for (size_t k = 0; k < ids.count; k++) printf(k ? " %u" : "%u", (unsigned)ids.ids[k]);
        putchar('\n');
    }
    sf_ids_free(&ids);
    sf_tokenizer_scratch_free(scratch);
    sf_tokenizer_free(t);
    safer_data_free(data);
    return 0;
}

/* ---------------------------------------------------------- made-up input */

/* Letters, syllables, and syllables behind a space. */
static sf_tokenizer *make_tokenizer(void)
{
    static const char letters[] = "abdefiklmnor.,";
    sf_buffer json = {0}, merges = {0};
    safer_error error = {0};
    sf_tokenizer *t = NULL;
    char word[16];
    int id = 1;
    int failed = sf_buffer_add_string(&json, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\xc4\xa0\":0");
    for (const char *p = letters; *p; p++) failed |= sf_buffer_format(&json, ",\"%c\":%d", *p, id++);
    for (uint32_t i = 0; i < 31; i++) {
        bench_spell(word, i);
        failed |= sf_buffer_format(&json, ",\"%s\":%d,\"\xc4\xa0%s\":%d", word, id, word, id + 1);
        failed |= sf_buffer_format(&merges, "%s\"%c %c\",\"\xc4\xa0 %s\"", i ? "," : "", word[0], word[1], word);
        id += 2;
    }
    failed |= sf_buffer_format(&json, "},\"merges\":[%s]},\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}", merges.bytes);
    check(!failed, "out of memory");
    check(sf_tokenizer_parse(&t, json.bytes, json.length, "made-up", &error) == SAFER_OK, error.message);
    sf_buffer_free(&json);
    sf_buffer_free(&merges);
    return t;
}

/* ------------------------------------------------------------------ timing */

static void compare_scratches(const sf_tokenizer *t, const safer_data *data)
{
    sf_tokenizer_scratch *used = sf_tokenizer_scratch_new(t);
    sf_ids a = {0}, b = {0};
    check(used != NULL, "out of memory");
    for (size_t i = 0; i < safer_data_size(data) && i < CHECKED; i++) {
        sf_tokenizer_scratch *fresh = sf_tokenizer_scratch_new(t);
        check(fresh != NULL, "out of memory");
        encode(&a, t, safer_data_row(data, i), SIZE_MAX, used);
        encode(&b, t, safer_data_row(data, i), SIZE_MAX, fresh);
        check(a.count == b.count && (a.count == 0 || memcmp(a.ids, b.ids, a.count * sizeof *a.ids) == 0),
              "the same pieces with a new scratch");
        sf_tokenizer_scratch_free(fresh);
    }
    sf_ids_free(&a);
    sf_ids_free(&b);
    sf_tokenizer_scratch_free(used);
}

/* The one that is named, or a made-up one where everything is; NULL: none. */
static safer_lexicon *open_lexicon(char **rest)
{
    safer_error error = {0};
    safer_lexicon *lexicon = NULL;
    if (!rest[0] || !rest[1]) return bench_group_lexicon(bench_spell, VOCABULARY, GROUP);
    if (rest[2]) check(safer_lexicon_open(&lexicon, rest[2], &error) == SAFER_OK, error.message);
    return lexicon;
}

int main(int argc, char **argv)
{
    if (argc >= 4 && strcmp(argv[1], "--ids") == 0)
        return print_texts(argv[2], argv[3], argc > 4 ? strtoul(argv[4], NULL, 10) : SIZE_MAX);
    const int json = argc > 1 && strcmp(argv[1], "--json") == 0;
    char **rest = argv + 1 + json;
    sf_tokenizer *t = rest[0] && rest[1] ? open_tokenizer(rest[0]) : make_tokenizer();
    safer_data *data = rest[0] && rest[1] ? load_data(rest[1]) : bench_texts(TEXTS, WORDS, VOCABULARY, 0);
    sf_tokenizer_scratch *scratch = sf_tokenizer_scratch_new(t);
    sf_ids ids = {0};
    double best = 1e30, bytes = 0, pieces = 0;
    check(scratch != NULL, "out of memory");
    compare_scratches(t, data);
    for (int round = 0; round < ROUNDS; round++) {
        const clock_t begin = clock();
        bytes = pieces = 0;
        for (size_t i = 0; i < safer_data_size(data); i++) {
            const safer_row row = safer_data_row(data, i);
            encode(&ids, t, row, SIZE_MAX, scratch);
            bytes += (double)row.text_length;
            pieces += (double)ids.count;
        }
        const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
        if (seconds < best) best = seconds;
    }
    static const double deletions[] = {0.9, 0.95};
    draws_speed d = {0}, deleting[2] = {{0}};
    safer_lexicon *lexicon = open_lexicon(rest);
    sf_piecer *piecer = NULL;
    sf_ids_free(&ids);
    sf_tokenizer_scratch_free(scratch);
    check(sf_piecer_of_tokenizer(&piecer, t, NULL) == SAFER_OK, "out of memory");
    if (lexicon) d = time_drawing(piecer, data, lexicon, 0);
    for (int i = 0; lexicon && i < 2; i++) deleting[i] = time_drawing(piecer, data, lexicon, deletions[i]);
    if (json)
        printf("{\"megabytes_per_second\": %.1f, \"pieces_per_second\": %.0f, \"draws_per_second\": %.0f, "
               "\"ratio_to_rendering\": %.1f, \"deleting_draws_per_second\": %.0f}\n",
               bytes / 1e6 / best, pieces / best, d.draws, d.ratio, deleting[0].draws);
    else
        printf("encoding   %.1f MB/s, %.1f million pieces/s\n", bytes / 1e6 / best, pieces / best / 1e6);
    if (lexicon && !json) print_drawing(&d);
    for (int i = 0; lexicon && !json && i < 2; i++) print_deleting(&deleting[i], deletions[i], &d);
    sf_piecer_free(piecer);
    safer_lexicon_free(lexicon);
    safer_data_free(data);
    return 0;
}
