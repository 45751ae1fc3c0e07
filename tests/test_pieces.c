/* Drawn pieces are the pieces of the rendered text: over random texts, lexicons, vocabularies
 * and limits, with words glued to what is around them and special tokens made and unmade by
 * draws. Hidden slots are hidden: over all texts with words exchanged and all their draws. */
#include "assemble.h"

#include "attack/shadow.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "model/kept.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static safer_error error;

/* ------------------------------------------------------------ vocabularies */

static const char plain[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nfine\nbad\nsep\nmask\nun\n##aff\n##able\ndon\nt\n"
    "Good\nBAD\n##good\n##fine\n"
    "##ab\nab\n##un\n1\n##1\n2\n##2\n[\n]\n-\n'\n.\n,\n#\n_\n日\n本\n中\n"
    "ᄒ\n##ᅡ\n##ᆫ\n한\nete\nété\n##e\ne\n##t\n##s\ns\n##d\nd\na\n##a\n##b\nb\nx\n##x\n"
    "\u00a9\n##\u00a9\nzebra\n\u0301\n##\u0301\n"
    "E\n##P\nS\nM\n##A\n##S\n##K\n##E\n";

/* The same with tokens that lie across words, and with such as look at their surroundings. */
static const char crossing[] =
    "d-f\tadded only\noo\tadded only\n'\tadded only\nB.B\tadded only\n] [\tadded only left right\n";
static const char looking[] = "fine\tadded only word\nbad good\tadded only normal\n";

enum { WORDPIECES = 7, TOKENIZERS = 19, VOCABULARIES = WORDPIECES + TOKENIZERS };
static sf_piecer *piecers[VOCABULARIES]; /* BERT's own, and then one of every type */
static const char *const types[TOKENIZERS] = {
    "albert",          "bert-cased",     "bert-uncased",    "bpe-metaspace", "byte-bpe-nfc",
    "byte-bpe-prefix", "byte-bpe",       "byte-normalizer", "cl100k",        "clip",
    "deberta-v3",      "llama",          "o200k",           "unigram-first", "unigram-never",
    "wordlevel",       "wordpiece-cuts", "wordpiece-parts", "xlm-roberta"};

static sf_piecer *open_golden(const char *type)
{
    char path[600];
    sf_file file = {0};
    json_t *root = NULL;
    sf_buffer text = {0};
    sf_tokenizer *t = NULL;
    sf_piecer *p = NULL;
    snprintf(path, sizeof path, SOURCE_DIR "/tests/golden/tokenizers/%s.json", type);
    assert_ok(sf_file_load(&file, path, &error));
    assert_int_equal(sf_json_parse(&root, file.bytes, file.length, JSON_ALLOW_NUL, NULL), SAFER_OK);
    assert_int_equal(sf_json_add(&text, json_object_get(root, "tokenizer")), 0);
    assert_ok(sf_tokenizer_parse(&t, text.bytes, text.length, type, &error));
    assert_ok(sf_piecer_of_tokenizer(&p, t, &error));
    sf_buffer_free(&text);
    json_decref(root);
    sf_file_free(&file);
    return p;
}

static sf_piecer *make_piecer(const char *lines, size_t length, const sf_wordpiece_options *options)
{
    sf_wordpiece *w = NULL;
    sf_piecer *p = NULL;
    assert_ok(sf_wordpiece_new(&w, lines, length, options, "plain", &error));
    assert_ok(sf_piecer_of_wordpiece(&p, w, &error));
    return p;
}

/* The plain vocabulary, its specials marked, with more behind it. */
static sf_piecer *marked(const char *more, const sf_wordpiece_options *options)
{
    static const char *const marks[] = {"pad added", "unk added", "cls added", "sep added", "added"};
    sf_buffer text = {0};
    const char *p = plain;
    for (size_t i = 0; i < COUNT(marks); i++) {
        size_t n = strcspn(p, "\n");
        assert_int_equal(sf_buffer_format(&text, "%.*s\t%s\n", (int)n, p, marks[i]), 0);
        p += n + 1;
    }
    for (size_t n; *p; p += n + 1) { /* without those that are said again */
        char line[64];
        n = strcspn(p, "\n");
        snprintf(line, sizeof line, "%.*s\t", (int)n, p);
        const char *again = strstr(more, line);
        int twice = again && (again == more || again[-1] == '\n');
        assert_int_equal(sf_buffer_format(&text, "%.*s\n", twice ? 0 : (int)n, p), 0);
    }
    assert_int_equal(sf_buffer_add_string(&text, more), 0);
    sf_piecer *w = make_piecer(text.bytes, text.length, options);
    sf_buffer_free(&text);
    return w;
}

static int make_piecers(void **unused)
{
    const sf_wordpiece_options uncased = {1, 1, 1, 1, 100, 0}, cased = {0, 0, 1, 1, 100, 0},
                               untidy = {0, 0, 0, 0, 100, 0}, strict = {1, 1, 1, 1, 5, 0};
    (void)unused;
    piecers[0] = make_piecer(plain, strlen(plain), &uncased);
    piecers[1] = make_piecer(plain, strlen(plain), &cased);
    piecers[2] = make_piecer(plain, strlen(plain), &untidy);
    piecers[3] = make_piecer(plain, strlen(plain), &strict);
    piecers[4] = marked(crossing, &uncased);
    piecers[5] = marked(crossing, &cased);
    piecers[6] = marked(looking, &uncased);
    for (int i = 0; i < TOKENIZERS; i++) piecers[WORDPIECES + i] = open_golden(types[i]);
    return 0;
}

static int free_piecers(void **unused)
{
    (void)unused;
    for (int i = 0; i < VOCABULARIES; i++) sf_piecer_free(piecers[i]);
    return 0;
}

/* --------------------------------------------------------------- lexicons */

enum { CASED = 13, WORDS = 17 };
static const char *const names[WORDS] = {"good",      "fine",  "bad", "sep", "mask", "cls", "cat", "york", "isn't",
                                         "unaffable", "don't", "été", "ab",  "日本", "中",  "한",  "שלום"};

/* Random synonyms and weights, among the first `words` of the cased and the caseless ones. */
static safer_lexicon *make_lexicon(uint32_t words, int directed)
{
    sf_words all = {0};
    sf_pair edges[WORDS * WORDS];
    size_t count = 0;
    uint32_t id;
    sf_graph graph;
    sf_kernel kernel = {0};
    for (uint32_t i = 0; i < WORDS; i++) assert_ok(sf_words_add(&all, names[i], strlen(names[i]), &id, &error));
    for (uint32_t a = 0; a < WORDS; a++)
        for (uint32_t b = 0; b < WORDS; b++)
            if (a != b && (a < CASED) == (b < CASED) && (a >= CASED || (a < words && b < words)) &&
                next_below(words) < 2)
                edges[count++] = (sf_pair){a, b, 0};
    assert_ok(sf_graph_build(&graph, WORDS, edges, count, directed ? SF_DIRECTED : SF_SYMMETRIC, 0, NULL, &error));
    assert_ok(sf_kernel_start(&kernel, WORDS, &error));
    for (uint32_t x = 0; x < WORDS; x++) { /* a word need not draw itself */
        uint32_t ids[WORDS], weights[WORDS], row, only = next_below(3) ? x : SF_NONE;
        size_t n = 0;
        for (uint32_t z = 0; z < WORDS; z++)
            if (z == only || (graph.component[z] == graph.component[x] && next_below(3) == 0)) {
                ids[n] = z;
                weights[n++] = 1 + next_below(3);
            }
        if (n == 0) {
            ids[n] = x;
            weights[n++] = 1;
        }
        assert_ok(sf_kernel_add(&kernel, ids, weights, n, &row, &error));
        kernel.row_of[x] = row;
    }
    return assemble_lexicon(&all, NULL, &graph, &kernel, "random", directed, 0);
}

static uint32_t support(const safer_lexicon *l, uint32_t word, const uint32_t **ids)
{
    uint32_t row = l->kernel.row_of[word];
    *ids = l->kernel.ids + l->kernel.offsets[row];
    return (uint32_t)(l->kernel.offsets[row + 1] - l->kernel.offsets[row]);
}

/* ------------------------------------------------------------------ texts */

static const char *const gaps[] = {
    " ",     " ",        " ",      " ",      ". ",     ", ",     "-",      "'",       "\u2019", " '",
    "[",     "]",        "[",      "]",      "[[",     "]]",     "] [",    " [",      "] ",     "1",
    "1",     "2 ",       "_",      "\u200b", "\u200d", "\u00ad", "\u0301", "\u0308 ", "\x01",   "\v",
    "\xff",  "\xe2\x80", "\ufffd", "\u00a9", "\u2260", "\u00a0", "\u2028", "\n",      "#",      "##",
    "[SEP]", "[MASK",    "SK]",    "\u302e", "\ue000", "\u0378", "👍",      "\u0345",  "½",      "\u2e43",
    "  ",    "   ",      "<mask>", " <s>",   "</s> ",  "|||",    "``",     "''",      "\u2581", " \u0301",
    "<x> ",  " <",       "!",      "!!! ",   "? ",     "'s ",    "'S",     "\r\n",    "\t",     "3,5 ",
    "EMAIL", "|||EMAIL", " \"",    "\" ",    " (",     ") ",     "...",    "\u0600",  "\uff9e", "7th ",
};
static const char *const strangers[] = {"zebra", "I", "x", "E", "語", "中x", "Ete", "ß", "ﬁ", "SEPx", "ς"};

static void add_word(sf_buffer *out, const char *key)
{
    assert_int_equal(sf_word_render(out, key, strlen(key), (sf_case)next_below(3)), 0);
}

static void make_text(sf_buffer *out, uint32_t longest, int tidy)
{
    sf_buffer_clear(out);
    assert_int_equal(sf_buffer_add(out, "", 0), 0);
    for (uint32_t n = next_below(longest + 1); n > 0; n--) {
        if (next_below(8))
            add_word(out, names[next_below(WORDS)]);
        else
            assert_int_equal(sf_buffer_add_string(out, strangers[next_below(tidy ? 4 : COUNT(strangers))]), 0);
        for (uint32_t k = 1 + (tidy ? 0 : next_below(2)); k > 0; k--)
            assert_int_equal(sf_buffer_add_string(out, gaps[next_below(tidy ? 7 : COUNT(gaps))]), 0);
        if (tidy) assert_int_equal(sf_buffer_add_byte(out, ' '), 0);
        if (!tidy && next_below(16) == 0) assert_int_equal(sf_buffer_add_byte(out, (char)next_below(256)), 0);
    }
}

/* ------------------------------------------------------------------ tests */

static sf_lexpieces *table; /* that of the pieces that were prepared last */

static void prepare(sf_pieces **out, const sf_piecer *w, const safer_lexicon *l, const sf_slots *slots,
                    sf_window window)
{
    table = sf_lexpieces_new(w, l, sf_window_reach(window));
    assert_non_null(table);
    assert_ok(sf_pieces_new(out, w, l, table, slots, window, &error));
}

static void release(sf_pieces *pieces)
{
    sf_pieces_free(pieces);
    sf_lexpieces_free(table);
}

/* The same of a text that is split, with draws that delete; counts kept tokens, and those of them that are rendered
 * however they are kept. */
static void check_kept(const sf_piecer *w, const safer_lexicon *l, const sf_slots *slots, size_t limit,
                       size_t counts[2])
{
    sf_kept *kept = NULL;
    sf_pieces_scratch scratch = {0};
    sf_ids expected = {0};
    sf_buffer text = {0};
    const size_t width = sf_slots_width(slots);
    const sf_window window = {limit, (int)next_below(2)};
    uint32_t *ids = sf_alloc(limit + 1, sizeof *ids), *draw = sf_calloc(width + 1, sizeof *draw);
    assert_true(ids && draw);
    table = sf_lexpieces_new(w, l, sf_window_reach(window));
    assert_non_null(table);
    assert_ok(sf_kept_new(&kept, w, l, table, slots, window, &error));
    for (uint32_t round = 0; round < 8; round++) { /* from all that is kept to nothing */
        for (size_t s = 0; s < slots->slot_count; s++) {
            const uint32_t *unused;
            draw[s] = next_below(support(l, slots->words[slots->slots[s]].word, &unused));
        }
        memset(draw + slots->slot_count, 0, (width - slots->slot_count) * sizeof *draw);
        for (size_t t = 0; t < slots->token_count; t++)
            if (next_below(7) >= round) draw[slots->slot_count + t / 32] |= (uint32_t)1 << t % 32;
        sf_buffer_clear(&text);
        assert_int_equal(sf_slots_render(&text, slots, l, draw), 0);
        assert_int_equal(
            sf_piecer_encode(&expected, w, text.length ? text.bytes : "", text.length, window, &scratch.piecer), 0);
        ids[limit] = 0xdeadbeef;
        const size_t n = sf_kept_draw(ids, kept, draw, &scratch);
        if (n != expected.count || (n && memcmp(ids, expected.ids, n * sizeof *ids) != 0))
            fail_msg("\"%s\" drawn as \"%.*s\" has %zu pieces, not %zu, or others", slots->text, (int)text.length,
                     text.length ? text.bytes : "", n, expected.count);
        assert_int_equal(ids[limit], 0xdeadbeef);
    }
    counts[0] += slots->token_count;
    counts[1] += sf_kept_rendered(kept);
    sf_kept_free(kept);
    sf_lexpieces_free(table);
    sf_pieces_scratch_free(&scratch);
    sf_ids_free(&expected);
    sf_buffer_free(&text);
    free(ids);
    free(draw);
}

/* Draws a few times; counts draws that differ from each other. */
static void check_draws(const sf_piecer *w, const safer_lexicon *l, const sf_slots *slots, size_t limit,
                        size_t *different)
{
    sf_pieces *pieces = NULL;
    sf_pieces_scratch scratch = {0};
    sf_ids expected = {0};
    sf_buffer text = {0};
    const sf_window window = {limit, (int)next_below(2)};
    uint32_t *ids = sf_alloc(limit + 1, sizeof *ids), *draws = sf_alloc(slots->slot_count, sizeof *draws);
    uint64_t last = 0;
    assert_true(ids && draws);
    prepare(&pieces, w, l, slots, window);
    assert_true(sf_pieces_visible(pieces) <= slots->slot_count);
    if (window.last) assert_int_equal(sf_pieces_visible(pieces), slots->slot_count);
    for (int round = 0; round < 6; round++) {
        for (size_t s = 0; s < slots->slot_count; s++) {
            const uint32_t *unused;
            draws[s] = next_below(support(l, slots->words[slots->slots[s]].word, &unused));
        }
        sf_buffer_clear(&text);
        assert_int_equal(sf_slots_render(&text, slots, l, draws), 0);
        assert_int_equal(sf_piecer_encode(&expected, w, text.bytes, text.length, window, &scratch.piecer), 0);
        ids[limit] = 0xdeadbeef;
        size_t n = sf_pieces_draw(ids, pieces, draws, &scratch);
        if (n != expected.count || (n && memcmp(ids, expected.ids, n * sizeof *ids) != 0))
            fail_msg("\"%s\" drawn as \"%s\" has %zu pieces, not %zu, or others", slots->text, text.bytes, n,
                     expected.count);
        assert_int_equal(ids[limit], 0xdeadbeef);
        uint64_t hash = sf_hash(ids, n * sizeof *ids, n);
        *different += round && hash != last;
        last = hash;
    }
    release(pieces);
    sf_pieces_scratch_free(&scratch);
    sf_ids_free(&expected);
    sf_buffer_free(&text);
    free(ids);
    free(draws);
}

static void test_draws(void **unused)
{
    sf_buffer text = {0};
    sf_slots slots = {0};
    size_t slot_count = 0, different = 0;
    (void)unused;
    for (int round = 0; round < 300; round++) {
        safer_lexicon *l = make_lexicon(CASED, round % 3 == 0);
        for (int k = 0; k < 40; k++) {
            make_text(&text, 10, k % 8 == 0);
            assert_ok(sf_slots_read(&slots, l, text.bytes, text.length, &error));
            slot_count += slots.slot_count;
            check_draws(piecers[next_below(WORDPIECES)], l, &slots, next_below(3) ? 60 : next_below(20), &different);
        }
        safer_lexicon_free(l);
    }
    assert_true(slot_count > 20000 && different > 20000);
    sf_buffer_free(&text);
    sf_slots_free(&slots);
}

/* The same for tokenizers of every type; where words stand apart, nothing is rendered that need not be. */
static void test_every_type(void **unused)
{
    sf_buffer text = {0};
    sf_slots slots = {0};
    (void)unused;
    for (int type = 0; type < TOKENIZERS; type++) {
        const sf_piecer *piecer = piecers[WORDPIECES + type];
        size_t slot_count = 0, different = 0, bytes = 0, rendered = 0;
        for (int round = 0; round < 40; round++) {
            safer_lexicon *l = make_lexicon(CASED, round % 3 == 0);
            for (int k = 0; k < 60; k++) {
                sf_pieces *pieces = NULL;
                make_text(&text, 10, k % 4 == 0);
                assert_ok(sf_slots_read(&slots, l, text.bytes, text.length, &error));
                slot_count += slots.slot_count;
                check_draws(piecer, l, &slots, next_below(3) ? 80 : 1 + next_below(20), &different);
                if (k % 4) continue;
                prepare(&pieces, piecer, l, &slots, (sf_window){SIZE_MAX / 4, 0});
                bytes += text.length;
                rendered += sf_pieces_rendered(pieces);
                release(pieces);
            }
            safer_lexicon_free(l);
        }
        print_message("%-16s %zu slots, %zu of %zu bytes rendered\n", types[type], slot_count, rendered, bytes);
        assert_true(slot_count > 4000 && different > 3000);
    }
    sf_buffer_free(&text);
    sf_slots_free(&slots);
}

/* Draws that delete, by tokenizers of every type: single characters of all kinds stand alone there. Where tokens are
 * plain, those that can be are looked up. */
static void test_kept(void **unused)
{
    sf_buffer text = {0};
    sf_slots slots = {0};
    (void)unused;
    for (int type = 0; type < VOCABULARIES; type++) {
        size_t all[2] = {0}, tidy[2] = {0};
        for (int round = 0; round < 25; round++) {
            safer_lexicon *l = make_lexicon(CASED, round % 3 == 0);
            for (int k = 0; k < 40; k++) {
                make_text(&text, k % 10 == 9 ? 60 : 10, k % 4 == 0);
                assert_ok(sf_slots_read(&slots, l, text.bytes, text.length, &error));
                assert_ok(sf_slots_split(&slots, SF_SPLIT, &error));
                check_kept(piecers[type], l, &slots, next_below(3) ? 80 : next_below(20), k % 4 ? all : tidy);
            }
            safer_lexicon_free(l);
        }
        const char *name = type < WORDPIECES ? "wordpiece" : types[type - WORDPIECES];
        print_message("%-16s %zu of %zu tokens rendered; plain ones: %zu of %zu\n", name, all[1], all[0], tidy[1],
                      tidy[0]);
        assert_true(all[0] > 5000 && tidy[0] > 1000);
        if (type < 4)
            assert_int_equal(all[1], 0); /* nothing lies across a space */
        else if (type != 6 && strcmp(name, "unigram-never") != 0)
            assert_true(tidy[1] < tidy[0] * 2 / 3);
    }
    sf_buffer_free(&text);
    sf_slots_free(&slots);
}

/* Brackets around slots: draws make special tokens and unmake them. */
static void test_special_tokens(void **unused)
{
    sf_words all = {0};
    uint32_t id, row;
    sf_graph graph;
    sf_kernel kernel = {0};
    static const char *const three[] = {"good", "sep", "mask"};
    (void)unused;
    for (int i = 0; i < 3; i++) assert_ok(sf_words_add(&all, three[i], strlen(three[i]), &id, &error));
    assert_ok(sf_graph_build(&graph, 3, (const sf_pair[]){{0, 1, 0}, {1, 2, 0}}, 2, SF_SYMMETRIC, 0, NULL, &error));
    assert_ok(sf_kernel_start(&kernel, 3, &error));
    assert_ok(sf_kernel_add(&kernel, (const uint32_t[]){0, 1, 2}, (const uint32_t[]){1, 1, 1}, 3, &row, &error));
    for (int i = 0; i < 3; i++) kernel.row_of[i] = row;
    safer_lexicon *l = assemble_lexicon(&all, NULL, &graph, &kernel, "x", 0, 0);

    static const struct {
        const char *text;
        uint32_t draw;
        size_t count, visible; /* at a limit of 3 */
        uint32_t ids[3];
    } cases[] = {
        {"[GOOD]", 0, 3, 1, {26, 5, 27}},
        {"[GOOD]", 1, 1, 1, {3}},
        {"[GOOD]", 2, 1, 1, {4}},
        {"[SEP]", 0, 3, 1, {26, 5, 27}},
        {"[SEP]", 1, 1, 1, {3}},
        {"[Sep]", 1, 3, 1, {26, 8, 27}},
        {"[SEP] x good", 1, 3, 2, {3, 54, 8}},
        {"[SEP] x x good", 0, 3, 1, {26, 5, 27}}, /* at least [SEP] x x */
        {"x [SEP] good", 0, 3, 2, {54, 26, 5}},
        {"x [Sep] good", 2, 3, 1, {54, 26, 9}}, /* [Sep] is never special */
        {"[ SEP ] good", 1, 3, 1, {26, 8, 27}},
        {"[SEP good]", 2, 3, 2, {26, 9, 9}},
        {"good1sep x x good", 0, 3, 2, {5, 23, 17}},
        {"good[SEP good", 0, 3, 2, {5, 26, 5}}, /* slots that share a part count 1 */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        sf_slots slots = {0};
        sf_pieces *pieces = NULL;
        sf_pieces_scratch scratch = {0};
        uint32_t ids[3], draws[4] = {cases[i].draw, cases[i].draw, cases[i].draw, cases[i].draw};
        assert_ok(sf_slots_read(&slots, l, cases[i].text, strlen(cases[i].text), &error));
        prepare(&pieces, piecers[0], l, &slots, (sf_window){3, 0});
        if (sf_pieces_draw(ids, pieces, draws, &scratch) != cases[i].count ||
            memcmp(ids, cases[i].ids, cases[i].count * sizeof *ids) != 0)
            fail_msg("\"%s\" drawn with %u: %u %u %u", cases[i].text, (unsigned)cases[i].draw, (unsigned)ids[0],
                     (unsigned)ids[1], (unsigned)ids[2]);
        if (sf_pieces_visible(pieces) != cases[i].visible)
            fail_msg("\"%s\": %zu visible", cases[i].text, sf_pieces_visible(pieces));
        release(pieces);
        sf_pieces_scratch_free(&scratch);
        sf_slots_free(&slots);
    }
    safer_lexicon_free(l);
}

/* ------------------------------------------------------------- visibility */

enum { SLOTS = 3, LIMITS = 16, DRAWN = WORDS * WORDS * WORDS };

typedef struct survey {
    const sf_piecer *piecer;
    const safer_lexicon *lexicon;
    const sf_slots *slots; /* of X */
    size_t visible[LIMITS];
    uint64_t seen[LIMITS][DRAWN]; /* by the words drawn in the visible slots: what the model sees */
    size_t least[SLOTS];          /* pieces before each slot */
    size_t texts;
} survey;

/* One draw of one text X'. */
static void note_draw(survey *v, const sf_slots *other, const uint32_t *draws)
{
    static sf_buffer text;
    static sf_ids ids;
    sf_piecer_scratch scratch = {0};
    uint32_t drawn[SLOTS] = {0};
    size_t prefix[SLOTS] = {0}, shift = 0;
    for (size_t s = 0; s < v->slots->slot_count; s++) {
        const sf_text_word *w = &other->words[v->slots->slots[s]];
        const uint32_t *choices;
        drawn[s] = w->word;
        if (w->slot != SF_NONE) {
            support(v->lexicon, w->word, &choices);
            drawn[s] = choices[draws[w->slot]];
        }
        prefix[s] =
            w->begin +
            shift; /* where the slot begins in the rendered text: all cased words here render to as many bytes */
        shift += strlen(names[drawn[s]]) - (w->end - w->begin);
    }
    sf_buffer_clear(&text);
    assert_int_equal(sf_slots_render(&text, other, v->lexicon, draws), 0);
    for (size_t limit = 0; limit < LIMITS; limit++) {
        size_t place = 0;
        const sf_window window = {limit, 0};
        assert_int_equal(sf_piecer_encode(&ids, v->piecer, text.bytes, text.length, window, &scratch), 0);
        uint64_t hash = sf_hash(ids.ids ? (const void *)ids.ids : "", ids.count * sizeof *ids.ids, ids.count + 1) | 1;
        for (size_t s = 0; s < v->visible[limit]; s++) place = place * WORDS + drawn[s];
        if (v->seen[limit][place] && v->seen[limit][place] != hash)
            fail_msg("\"%s\", limit %zu: %zu visible slots, but \"%s\" shows more", v->slots->text, limit,
                     v->visible[limit], text.bytes);
        v->seen[limit][place] = hash;
    }
    for (size_t s = 0; s < v->slots->slot_count; s++) {
        const sf_window all = {SIZE_MAX, 0};
        assert_int_equal(sf_piecer_encode(&ids, v->piecer, text.bytes, prefix[s], all, &scratch), 0);
        if (ids.count < v->least[s]) v->least[s] = ids.count;
    }
    v->texts++;
    sf_piecer_scratch_free(&scratch);
    sf_buffer_free(&text);
    sf_ids_free(&ids);
}

/* All draws of the text X' with these words in the slots of X. */
static void note_text(survey *v, const uint32_t *words)
{
    sf_buffer text = {0};
    sf_slots other = {0};
    uint32_t draws[SLOTS] = {0}, most[SLOTS] = {0};
    size_t at = 0;
    for (size_t s = 0; s < v->slots->slot_count; s++) {
        const sf_text_word *w = &v->slots->words[v->slots->slots[s]];
        assert_int_equal(sf_buffer_add(&text, v->slots->text + at, w->begin - at), 0);
        assert_int_equal(sf_word_render(&text, names[words[s]], strlen(names[words[s]]), w->pattern), 0);
        at = w->end;
    }
    assert_int_equal(sf_buffer_add(&text, v->slots->text + at, v->slots->length - at), 0);
    assert_ok(sf_slots_read(&other, v->lexicon, text.bytes, text.length, &error));
    assert_int_equal(other.word_count, v->slots->word_count);
    for (size_t s = 0; s < other.slot_count; s++) {
        const uint32_t *unused;
        most[s] = support(v->lexicon, other.words[other.slots[s]].word, &unused);
    }
    for (;;) {
        size_t s = 0;
        note_draw(v, &other, draws);
        while (s < other.slot_count && ++draws[s] == most[s]) draws[s++] = 0;
        if (s == other.slot_count) break;
    }
    sf_slots_free(&other);
    sf_buffer_free(&text);
}

/* All texts X' of X. */
static void note_texts(survey *v)
{
    const safer_lexicon *l = v->lexicon;
    uint32_t at[SLOTS] = {0}, words[SLOTS] = {0};
    for (;;) {
        size_t s = 0;
        for (size_t i = 0; i < v->slots->slot_count; i++) {
            uint32_t x = v->slots->words[v->slots->slots[i]].word;
            words[i] = at[i] ? l->synonyms[l->synonym_offsets[x] + at[i] - 1] : x;
        }
        note_text(v, words);
        for (; s < v->slots->slot_count; s++) {
            uint32_t x = v->slots->words[v->slots->slots[s]].word;
            if (++at[s] <= l->synonym_offsets[x + 1] - l->synonym_offsets[x]) break;
            at[s] = 0;
        }
        if (s == v->slots->slot_count) break;
    }
}

static void test_visible(void **unused)
{
    static survey v;
    sf_buffer text = {0};
    sf_slots slots = {0};
    size_t hidden = 0, glued_hidden = 0, texts = 0, surveys = 0;
    (void)unused;
    for (int round = 0; round < 120; round++) {
        safer_lexicon *l = make_lexicon(8, round % 3 == 0);
        for (int k = 0; k < 8; k++) {
            const int tidy = k % 2;
            do {
                make_text(&text, 6, tidy);
                assert_ok(sf_slots_read(&slots, l, text.bytes, text.length, &error));
            } while (slots.slot_count == 0 || slots.slot_count > SLOTS);
            memset(&v, 0, sizeof v);
            v = (survey){.piecer = piecers[k % 4 < 2 ? next_below(WORDPIECES) : next_below(VOCABULARIES)],
                         .lexicon = l,
                         .slots = &slots,
                         .least = {SIZE_MAX, SIZE_MAX, SIZE_MAX}};
            const int exact = tidy && k % 4 == 1; /* words apart, and BERT's own: nothing is given away */
            if (exact) v.piecer = piecers[next_below(4)];
            for (size_t limit = 0; limit < LIMITS; limit++) {
                sf_pieces *pieces = NULL;
                prepare(&pieces, v.piecer, l, &slots, (sf_window){limit, 0});
                v.visible[limit] = sf_pieces_visible(pieces);
                hidden += slots.slot_count - v.visible[limit];
                glued_hidden += !tidy && limit ? slots.slot_count - v.visible[limit] : 0;
                release(pieces);
            }
            note_texts(&v);
            texts += v.texts;
            surveys++;
            for (size_t limit = 0; exact && limit < LIMITS; limit++) {
                size_t expected = 0;
                while (expected < slots.slot_count && v.least[expected] < limit) expected++;
                if (v.visible[limit] != expected)
                    fail_msg("\"%s\", limit %zu: %zu visible slots, not %zu", text.bytes, limit, v.visible[limit],
                             expected);
            }
        }
        safer_lexicon_free(l);
    }
    assert_true(surveys == 960 && texts > 20000 && hidden > 5000 && glued_hidden > 1000);
    sf_buffer_free(&text);
    sf_slots_free(&slots);
}

/* Only what can be reached is prepared: a text far beyond the limit costs no more. */
static void test_early_end(void **unused)
{
    safer_lexicon *l = make_lexicon(CASED, 0);
    sf_buffer text = {0};
    sf_slots slots = {0};
    sf_pieces *pieces = NULL;
    sf_pieces_scratch scratch = {0};
    uint32_t ids[8];
    (void)unused;
    for (int i = 0; i < 20000; i++) assert_int_equal(sf_buffer_add_string(&text, "zebra good Bad fine-sep 1mask "), 0);
    assert_ok(sf_slots_read(&slots, l, text.bytes, text.length, &error));
    uint32_t *draws = sf_calloc(slots.slot_count, sizeof *draws);
    assert_non_null(draws);
    prepare(&pieces, piecers[0], l, &slots, (sf_window){8, 0});
    assert_true(sf_pieces_visible(pieces) <= 8);
    assert_int_equal(sf_pieces_draw(ids, pieces, draws, &scratch), 8);
    release(pieces);
    prepare(&pieces, piecers[0], l, &slots, (sf_window){0, 0});
    assert_int_equal(sf_pieces_visible(pieces), 0);
    assert_int_equal(sf_pieces_draw(ids, pieces, draws, &scratch), 0);
    release(pieces);
    assert_ok(sf_slots_read(&slots, l, "", 0, &error));
    prepare(&pieces, piecers[0], l, &slots, (sf_window){8, 0});
    assert_int_equal(sf_pieces_draw(ids, pieces, draws, &scratch), 0);
    release(pieces);
    free(draws);
    sf_pieces_scratch_free(&scratch);
    sf_slots_free(&slots);
    sf_buffer_free(&text);
    safer_lexicon_free(l);
}

typedef struct drawing {
    const safer_lexicon *lexicon;
    const sf_slots *slots, *split;
    const uint32_t *draws;
} drawing;

static safer_status draw_once(void *context, safer_error *e)
{
    const drawing *d = context;
    sf_pieces *pieces = NULL;
    sf_kept *kept = NULL;
    sf_pieces_scratch scratch = {0};
    uint32_t ids[64];
    const sf_window first = {COUNT(ids), 0};
    sf_lexpieces_last *last = sf_lexpieces_last_new();
    sf_lexpieces *own = last ? sf_lexpieces_of(last, piecers[0], d->lexicon, 64) : NULL;
    safer_status status = own ? sf_pieces_new(&pieces, piecers[0], d->lexicon, own, d->slots, first, e)
                              : sf_fail_memory(e);
    if (status == SAFER_OK && sf_pieces_draw(ids, pieces, d->draws, &scratch) == SIZE_MAX) status = SAFER_MEMORY;
    sf_lexpieces *other = sf_lexpieces_new(piecers[4], d->lexicon, 64); /* which renders some of it */
    if (status == SAFER_OK && !other) status = sf_fail_memory(e);
    if (status == SAFER_OK) status = sf_kept_new(&kept, piecers[4], d->lexicon, other, d->split, first, e);
    if (status == SAFER_OK && sf_kept_draw(ids, kept, d->draws, &scratch) == SIZE_MAX) status = SAFER_MEMORY;
    sf_kept_free(kept);
    sf_lexpieces_free(other);
    sf_pieces_free(pieces);
    sf_lexpieces_free(own);
    sf_lexpieces_last_free(last);
    sf_pieces_scratch_free(&scratch);
    return status;
}

static void test_memory(void **unused)
{
    static const char text[] = "zebra Good bad1fine été [sep] \u200bUNAFFABLE\u200bdon't x";
    sf_slots slots = {0}, split = {0};
    uint32_t draws[17] = {0};
    (void)unused;
    safer_lexicon *l = make_lexicon(CASED, 0);
    assert_ok(sf_slots_read(&slots, l, text, strlen(text), &error));
    assert_ok(sf_slots_read(&split, l, text, strlen(text), &error));
    assert_ok(sf_slots_split(&split, SF_SPLIT, &error));
    assert_true(slots.slot_count >= 5 && sf_slots_width(&split) <= COUNT(draws));
    draws[split.slot_count] = UINT32_MAX >> (32 - split.token_count);
    drawing d = {l, &slots, &split, draws};
    check_every_allocation(draw_once, &d);
    sf_slots_free(&split);
    sf_slots_free(&slots);
    safer_lexicon_free(l);
}

/* --------------------------------------------------------------- one table */

enum { SHARED = 40, SHARED_LIMIT = 48 };
static const sf_window shared_window = {SHARED_LIMIT, 0};

/* Texts, a draw of each, and its pieces as they are when it is rendered. */
typedef struct shelf {
    const safer_lexicon *lexicon;
    sf_lexpieces_last *last;
    sf_buffer texts[SHARED];
    sf_slots slots[SHARED];
    uint32_t *draws[SHARED];
    sf_ids expected[SHARED];
    atomic_int wrong;
} shelf;

static void draw_shared(void *context, size_t begin, size_t end, int worker)
{
    shelf *s = context;
    sf_pieces_scratch scratch = {0};
    (void)end;
    (void)worker;
    for (size_t i = 0; i < SHARED; i++) {
        const size_t k = (i * 7 + begin) % SHARED; /* in another order on every thread */
        uint32_t ids[SHARED_LIMIT];
        sf_pieces *pieces = NULL;
        sf_lexpieces *own = sf_lexpieces_of(s->last, piecers[0], s->lexicon, SHARED_LIMIT);
        if (sf_pieces_new(&pieces, piecers[0], s->lexicon, own, &s->slots[k], shared_window, NULL) != SAFER_OK ||
            sf_pieces_draw(ids, pieces, s->draws[k], &scratch) != s->expected[k].count ||
            memcmp(ids, s->expected[k].ids, s->expected[k].count * sizeof *ids) != 0)
            atomic_store(&s->wrong, 1);
        sf_pieces_free(pieces);
        sf_lexpieces_free(own);
    }
    sf_pieces_scratch_free(&scratch);
}

/* Texts of many threads share one table, and each has its own pieces; another lexicon has another table. */
static void test_shared(void **unused)
{
    sf_piecer_scratch scratch = {0};
    sf_buffer text = {0};
    (void)unused;
    for (int round = 0; round < 4; round++) {
        static shelf s;
        safer_lexicon *l = make_lexicon(CASED, round % 2);
        sf_lexpieces_last *last = round ? s.last : sf_lexpieces_last_new();
        memset(&s, 0, sizeof s);
        s.lexicon = l;
        s.last = last;
        for (size_t k = 0; k < SHARED; k++) {
            do {
                make_text(&s.texts[k], 10, k % 2);
                assert_ok(sf_slots_read(&s.slots[k], l, s.texts[k].bytes, s.texts[k].length, &error));
            } while (s.slots[k].slot_count == 0);
            s.draws[k] = sf_alloc(s.slots[k].slot_count, sizeof **s.draws);
            for (size_t i = 0; i < s.slots[k].slot_count; i++) {
                const uint32_t *ids;
                s.draws[k][i] = next_below(support(l, s.slots[k].words[s.slots[k].slots[i]].word, &ids));
            }
            sf_buffer_clear(&text);
            assert_int_equal(sf_slots_render(&text, &s.slots[k], l, s.draws[k]), 0);
            assert_int_equal(
                sf_piecer_encode(&s.expected[k], piecers[0], text.bytes, text.length, shared_window, &scratch), 0);
        }
        sf_parallel(4, 4, 1, draw_shared, &s);
        assert_false(s.wrong);
        for (size_t k = 0; k < SHARED; k++) {
            sf_slots_free(&s.slots[k]);
            sf_buffer_free(&s.texts[k]);
            free(s.draws[k]);
            sf_ids_free(&s.expected[k]);
        }
        safer_lexicon_free(l);
        if (round == 3) sf_lexpieces_last_free(last);
    }
    sf_piecer_scratch_free(&scratch);
    sf_buffer_free(&text);
}

/* The lexicon of a text under attack has the digest of the real one, and a kernel of its own: neither changes what
 * the other's table says, whichever comes first. */
static void test_shadow(void **unused)
{
    sf_buffer text = {0};
    (void)unused;
    for (int round = 0; round < 40; round++) {
        safer_lexicon *l = make_lexicon(CASED, round % 2);
        sf_lexpieces_last *last = sf_lexpieces_last_new();
        sf_shadow shadow = {0};
        sf_slots slots = {0};
        do {
            make_text(&text, 10, 0);
            assert_ok(sf_slots_read(&slots, l, text.bytes, text.length, &error));
        } while (slots.slot_count == 0);
        assert_ok(sf_shadow_make(&shadow, l, &slots, &error));
        for (int turn = 0; turn < 4; turn++) {
            const safer_lexicon *one = turn % 2 == round / 2 % 2 ? l : &shadow.lexicon;
            sf_lexpieces *kept = sf_lexpieces_of(last, piecers[0], one, 48),
                         *fresh = sf_lexpieces_new(piecers[0], one, 48);
            for (uint32_t row = 0; row < one->kernel.rows; row++) {
                const sf_lexletters a = sf_lexpieces_letters(kept, one, row, SF_LOWER),
                                    b = sf_lexpieces_letters(fresh, one, row, SF_LOWER);
                assert_int_equal(sf_lexpieces_least(kept, one, 0, row, SF_LOWER),
                                 sf_lexpieces_least(fresh, one, 0, row, SF_LOWER));
                assert_true(a.begins == b.begins && a.ends == b.ends);
            }
            sf_lexpieces_free(kept);
            sf_lexpieces_free(fresh);
        }
        sf_shadow_free(&shadow);
        sf_slots_free(&slots);
        sf_lexpieces_last_free(last);
        safer_lexicon_free(l);
    }
    sf_buffer_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws),          cmocka_unit_test(test_every_type), cmocka_unit_test(test_kept),
        cmocka_unit_test(test_special_tokens), cmocka_unit_test(test_visible),    cmocka_unit_test(test_early_end),
        cmocka_unit_test(test_memory),         cmocka_unit_test(test_shared),     cmocka_unit_test(test_shadow),
    };
    return cmocka_run_group_tests_name("pieces", tests, make_piecers, free_piecers);
}
