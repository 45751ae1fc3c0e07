/* Speed of BERT's tokenizer, and of drawing a text's pieces instead of the text.
 *
 *   bench_wordpiece [--json]                          made-up text and vocabulary
 *   bench_wordpiece [--json] DIR DATA [LEXICON]       a tokenizer as HuggingFace keeps them, and data
 *   bench_wordpiece --ids DIR DATA [LIMIT]            prints the pieces of every text, one line each
 *   bench_wordpiece --normal DIR DATA                 prints the normalized texts
 *
 * Checked first: a plain tokenizer, which looks every beginning of a word up in a table of
 * strings, finds the same pieces in ASCII texts; drawn pieces are those of the rendered
 * text. Then, with one thread: megabytes per second and the ratio to the plain tokenizer;
 * draws per second and the ratio to rendering and encoding each. */
#define _GNU_SOURCE
#include "drawing.h"

#include "base/memory.h"
#include "base/progress.h"

#include <ctype.h>

enum { TEXTS = 2000, WORDS = 230, VOCABULARY = 40000, PIECES = 15000, GROUP = 8, ROUNDS = 5, MOST = 3000 };

/* ------------------------------------------------------------ printed ids */

static int print_texts(const char *mode, const char *directory, const char *file, size_t limit)
{
    safer_error error = {0};
    sf_wordpiece *wordpiece = NULL;
    safer_data *data = NULL;
    sf_wordpiece_scratch scratch = {0};
    sf_ids ids = {0};
    sf_buffer normal = {0};
    check(sf_wordpiece_open(&wordpiece, directory, NULL, &error) == SAFER_OK, error.message);
    check(safer_data_load(&data, file, NULL, &error) == SAFER_OK, error.message);
    for (size_t i = 0; i < safer_data_size(data); i++) {
        safer_row row = safer_data_row(data, i);
        ids.count = 0;
        sf_buffer_clear(&normal);
        if (strcmp(mode, "--normal") == 0) {
            check(sf_wordpiece_normalize(&normal, wordpiece, row.text, row.text_length, &scratch) == 0,
                  "out of memory");
            if (normal.length) fwrite(normal.bytes, 1, normal.length, stdout);
        } else {
            check(sf_wordpiece_encode(&ids, wordpiece, row.text, row.text_length, limit, &scratch) == 0,
                  "out of memory");
            for (size_t k = 0; k < ids.count; k++) printf(k ? " %u" : "%u", (unsigned)ids.ids[k]);
        }
        putchar('\n');
    }
    sf_ids_free(&ids);
    sf_buffer_free(&normal);
    sf_wordpiece_scratch_free(&scratch);
    sf_wordpiece_free(wordpiece);
    safer_data_free(data);
    return 0;
}

/* ---------------------------------------------------------- made-up input */

static sf_wordpiece *make_wordpiece(void)
{
    sf_wordpiece *wordpiece = NULL;
    safer_error error = {0};
    sf_words pieces = {0};
    sf_buffer text = {0};
    uint32_t id;
    char piece[32];
    int failed = sf_buffer_add_string(&text, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\n,\n");
    for (uint32_t word = 0; word < PIECES; word++) {
        bench_spell(piece, word);
        uint32_t before = pieces.count;
        check(sf_words_add(&pieces, piece, strlen(piece), &id, &error) == SAFER_OK, error.message);
        if (id == before) failed |= sf_buffer_format(&text, "%s\n", piece);
        if (id == before && word < 1100) failed |= sf_buffer_format(&text, "##%s\n", piece);
    }
    const sf_wordpiece_options options = {.lower = 1, .accents = 1, .ideographs = 1, .clean = 1, .longest = 100};
    check(!failed && sf_wordpiece_new(&wordpiece, text.bytes, text.length, &options, "made-up", &error) == SAFER_OK,
          error.message);
    sf_words_free(&pieces);
    sf_buffer_free(&text);
    return wordpiece;
}

/* ------------------------------------------------------- plain tokenizer */

typedef struct plain {
    sf_words words;
    uint32_t *numbers;
    uint32_t unk;
    int lower;
} plain;

static plain make_plain(const sf_wordpiece *wordpiece)
{
    plain p = {.unk = sf_wordpiece_special(wordpiece).unk, .lower = sf_wordpiece_get_options(wordpiece)->lower};
    sf_buffer text = {0};
    size_t capacity = 0;
    uint32_t line = 0, id;
    check(sf_wordpiece_vocabulary(&text, wordpiece) == 0, "out of memory");
    for (char *at = text.bytes, *stop; (stop = strchr(at, '\n')) != NULL; at = stop + 1, line++) {
        size_t length = strcspn(at, "\t\r\n");
        uint32_t before = p.words.count;
        check(sf_words_add(&p.words, at, length, &id, NULL) == SAFER_OK, "out of memory");
        check(sf_grow(&p.numbers, &capacity, p.words.count, sizeof *p.numbers) == 0, "out of memory");
        if (id == before) p.numbers[id] = line;
    }
    sf_buffer_free(&text);
    return p;
}

static void plain_word(sf_ids *out, const plain *p, const char *word, size_t length)
{
    size_t before = out->count;
    char piece[256] = "##";
    for (size_t at = 0, end; at < length && length <= 100; at = end) {
        uint32_t id = SF_NONE;
        for (end = length; end > at; end--) {
            memcpy(piece + 2, word + at, end - at);
            id = at ? sf_words_find(&p->words, piece, end - at + 2) : sf_words_find(&p->words, piece + 2, end);
            if (id != SF_NONE) break;
        }
        if (id == SF_NONE) break;
        out->ids[out->count++] = p->numbers[id];
        if (end == length) return;
    }
    out->count = before;
    out->ids[out->count++] = p->unk;
}

/* Of ASCII text without control characters and special tokens. 0 when it is not that. */
static int plain_encode(sf_ids *out, const plain *p, const char *text, size_t length)
{
    char word[WORDS * 8];
    size_t n = 0;
    check(sf_grow(&out->ids, &out->capacity, out->count + length + 1, sizeof *out->ids) == 0, "out of memory");
    for (size_t i = 0; i <= length; i++) {
        char c = i < length ? text[i] : ' ';
        if (c < ' ' || c == 0x7f || c == '[' || n == sizeof word) return 0;
        int cut = c == ' ' || ispunct((unsigned char)c);
        if (cut && n) plain_word(out, p, word, n);
        if (cut)
            n = 0;
        else
            word[n++] = (char)(p->lower ? tolower((unsigned char)c) : c);
        if (cut && c != ' ') plain_word(out, p, &c, 1);
    }
    return 1;
}

/* ---------------------------------------------------------------- timing */

typedef struct speed {
    double megabytes, tokens, ratio; /* per second, per second, to the plain tokenizer */
} speed;

static speed time_encoding(const sf_wordpiece *wordpiece, const safer_data *data)
{
    size_t texts = safer_data_size(data) < MOST ? safer_data_size(data) : MOST, bytes = 0, compared = 0,
           compared_bytes = 0, tokens = 0;
    double best = 1e9, plain_seconds = 0;
    plain p = make_plain(wordpiece);
    sf_ids ids = {0}, expected = {0};
    sf_wordpiece_scratch scratch = {0};
    for (size_t i = 0; i < texts; i++) {
        safer_row row = safer_data_row(data, i);
        double start = sf_seconds();
        ids.count = expected.count = 0;
        if (!plain_encode(&expected, &p, row.text, row.text_length)) continue;
        plain_seconds += sf_seconds() - start;
        compared++;
        compared_bytes += row.text_length;
        check(sf_wordpiece_encode(&ids, wordpiece, row.text, row.text_length, SIZE_MAX, &scratch) == 0,
              "out of memory");
        check(ids.count == expected.count && memcmp(ids.ids, expected.ids, ids.count * sizeof *ids.ids) == 0,
              "the two tokenizers differ");
    }
    check(compared > texts / 4, "too few texts to compare");
    for (int round = 0; round < ROUNDS; round++) {
        double start = sf_seconds();
        bytes = tokens = 0;
        for (size_t i = 0; i < texts; i++) {
            safer_row row = safer_data_row(data, i);
            ids.count = 0;
            check(sf_wordpiece_encode(&ids, wordpiece, row.text, row.text_length, SIZE_MAX, &scratch) == 0,
                  "out of memory");
            bytes += row.text_length;
            tokens += ids.count;
        }
        double took = sf_seconds() - start;
        if (took < best) best = took;
    }
    free(p.numbers);
    sf_words_free(&p.words);
    sf_ids_free(&ids);
    sf_ids_free(&expected);
    sf_wordpiece_scratch_free(&scratch);
    double rate = (double)bytes / best;
    return (speed){rate / 1e6, (double)tokens / best, rate / ((double)compared_bytes / plain_seconds)};
}

int main(int argc, char **argv)
{
    if (argc >= 4 && (strcmp(argv[1], "--ids") == 0 || strcmp(argv[1], "--normal") == 0))
        return print_texts(argv[1], argv[2], argv[3], argc > 4 ? strtoul(argv[4], NULL, 10) : SIZE_MAX);
    int json = argc > 1 && strcmp(argv[1], "--json") == 0; /* what follows is input */
    safer_error error = {0};
    sf_wordpiece *wordpiece = NULL;
    sf_piecer *piecer = NULL;
    safer_data *data = NULL;
    safer_lexicon *lexicon = NULL;
    char **rest = argv + 1 + json;
    if (rest[0] && rest[1]) {
        check(sf_wordpiece_open(&wordpiece, rest[0], NULL, &error) == SAFER_OK, error.message);
        check(safer_data_load(&data, rest[1], NULL, &error) == SAFER_OK, error.message);
        if (rest[2]) check(safer_lexicon_open(&lexicon, rest[2], &error) == SAFER_OK, error.message);
    } else {
        wordpiece = make_wordpiece();
        data = bench_texts(TEXTS, WORDS, VOCABULARY, 1);
        lexicon = bench_group_lexicon(bench_spell, VOCABULARY, GROUP);
    }
    speed s = time_encoding(wordpiece, data);
    draws_speed d = {0};
    check(sf_piecer_of_wordpiece(&piecer, wordpiece, &error) == SAFER_OK, error.message);
    static const double deletions[] = {0.9, 0.95};
    draws_speed deleting[2] = {{0}};
    if (lexicon) d = time_drawing(piecer, data, lexicon, 0);
    for (int i = 0; lexicon && i < 2; i++) deleting[i] = time_drawing(piecer, data, lexicon, deletions[i]);
    if (json) {
        printf("{\"megabytes_per_second\": %.1f, \"pieces_per_second\": %.0f, \"ratio_to_plain\": %.2f, "
               "\"prepared_texts_per_second\": %.0f, "
               "\"draws_per_second\": %.0f, \"ratio_to_rendering\": %.1f, \"deleting_draws_per_second\": %.0f}\n",
               s.megabytes, s.tokens, s.ratio, d.prepare, d.draws, d.ratio, deleting[0].draws);
    } else {
        printf("encoding   %.1f MB/s, %.1f million pieces/s, %.2f times the plain tokenizer\n", s.megabytes,
               s.tokens / 1e6, s.ratio);
        if (lexicon) print_drawing(&d);
        for (int i = 0; lexicon && i < 2; i++) print_deleting(&deleting[i], deletions[i], &d);
    }
    safer_lexicon_free(lexicon);
    safer_data_free(data);
    sf_piecer_free(piecer);
    return 0;
}
