/* Texts and the words in them, packed for the page. */
#include "report/texts.h"

#include "base/memory.h"
#include "base/progress.h"
#include "draw/slots.h"

/* Ends a block: its JSON, packed, inside an element with this id. */
static void put_block(sf_writer *out, sf_writer *json, const char *kind, int lexicon, size_t block)
{
    sf_putf(out, "<script type=\"text/plain\" id=\"%s", kind);
    if (lexicon >= 0) sf_putf(out, "-%d", lexicon);
    if (block != SIZE_MAX) sf_putf(out, "-%zu", block);
    sf_put(out, "\">");
    sf_put_packed(out, json->out.bytes, json->out.length);
    sf_put(out, "</script>\n");
    if (json->failed) out->failed = 1;
    sf_buffer_clear(&json->out);
}

/* How much of a text is shown: whole characters. */
static size_t shown_length(safer_row row) { return (size_t)sf_clip(row.text, row.text_length, SF_TEXT_BYTES); }

static void put_text(sf_writer *json, safer_row row)
{
    size_t shown = shown_length(row);
    if (shown < row.text_length) sf_put(json, "[");
    sf_put_json(json, row.text, shown);
    if (shown < row.text_length) sf_putf(json, ",%zu]", row.text_length);
}

safer_status sf_report_texts(sf_writer *out, const safer_data *data, size_t count, const safer_progress *progress,
                             safer_error *error)
{
    safer_status status;
    sf_writer json = {0};
    sf_meter meter = {0};
    safer_reader *reader = NULL;
    sf_meter_start(&meter, progress, "writing the texts", count);
    for (size_t i = 0; i < count && !sf_meter_cancelled(&meter); i++) {
        safer_row row;
        SF_TRY(safer_data_read(&row, &reader, data, sf_page_row(safer_data_size(data), i), error));
        sf_put(&json, i % SF_TEXTS_PER_BLOCK ? "," : "[");
        put_text(&json, row);
        if (i + 1 == count || (i + 1) % SF_TEXTS_PER_BLOCK == 0) {
            sf_put(&json, "]");
            put_block(out, &json, "texts", -1, i / SF_TEXTS_PER_BLOCK);
        }
        sf_meter_add(&meter, 1, 0);
    }
    status = sf_meter_finish(&meter, error);
done:
    safer_reader_free(reader);
    sf_writer_free(&json);
    return status;
}

/* ------------------------------------------------------------- the excerpt */

/* The words of a lexicon that the page shows, numbered in the order in which they occur. */
typedef struct excerpt {
    const safer_lexicon *lexicon;
    uint32_t *number; /* of every word of the lexicon, or SF_NONE */
    uint32_t *words;  /* the other way round */
    uint32_t count;
} excerpt;

static uint32_t number_of(excerpt *e, uint32_t word)
{
    if (e->number[word] == SF_NONE) {
        e->words[e->count] = word;
        e->number[word] = e->count++;
    }
    return e->number[word];
}

static void put_slots(sf_writer *json, excerpt *e, const sf_slots *slots, size_t shown)
{
    size_t at = 0;
    const char *between = "";
    sf_put(json, "[");
    for (size_t s = 0; s < slots->slot_count; s++) {
        const sf_text_word *w = &slots->words[slots->slots[s]];
        const size_t begin = sf_slots_origin(slots, w->begin), end = sf_slots_origin(slots, w->end);
        if (end > shown) break;
        sf_putf(json, "%s%zu,%zu,%u", between, sf_utf16_length(slots->given.bytes + at, begin - at),
                sf_utf16_length(slots->given.bytes + begin, end - begin), number_of(e, w->word));
        at = end;
        between = ",";
    }
    sf_put(json, "]");
}

/* The numbers of the first words of a list, which join the excerpt. */
static void put_list(sf_writer *json, excerpt *e, const uint32_t *words, size_t count)
{
    sf_putf(json, "%zu,[", count);
    for (size_t i = 0; i < count && i < SF_LIST_WORDS; i++) sf_putf(json, "%s%u", i ? "," : "", number_of(e, words[i]));
    sf_put(json, "]");
}

static void put_detail(sf_writer *json, excerpt *e, uint32_t id)
{
    safer_word word = safer_lexicon_word(e->lexicon, id);
    if (word.worst == SAFER_NO_WORD)
        sf_put(json, "[-1,");
    else
        sf_putf(json, "[%u,", number_of(e, word.worst));
    put_list(json, e, word.synonyms, word.synonym_count);
    sf_put(json, ",");
    put_list(json, e, word.support, word.support_count);
    if (word.total != word.support_count) {
        sf_putf(json, ",%u,[", word.total);
        for (size_t i = 0; i < word.support_count && i < SF_LIST_WORDS; i++)
            sf_putf(json, "%s%u", i ? "," : "", word.weights[i]);
        sf_put(json, "]");
    }
    sf_put(json, "]");
}

static void put_excerpt(sf_writer *out, sf_writer *json, excerpt *e, int lexicon)
{
    uint32_t in_texts = e->count; /* the details bring in more, which have names only */
    for (uint32_t i = 0; i < in_texts; i++) {
        sf_put(json, i % SF_WORDS_PER_BLOCK ? "," : "[");
        put_detail(json, e, e->words[i]);
        if (i + 1 == in_texts || (i + 1) % SF_WORDS_PER_BLOCK == 0) {
            sf_put(json, "]");
            put_block(out, json, "details", lexicon, i / SF_WORDS_PER_BLOCK);
        }
    }
    sf_put(json, "{\"w\":[");
    for (uint32_t i = 0; i < e->count; i++) {
        if (i) sf_put(json, ",");
        sf_put_json_short(json, safer_lexicon_word(e->lexicon, e->words[i]).word, 100);
    }
    sf_put(json, "],\"s\":[");
    for (uint32_t i = 0; i < in_texts; i++)
        sf_putf(json, "%s%u", i ? "," : "", sf_myriads_down(safer_lexicon_word(e->lexicon, e->words[i]).overlap));
    sf_put(json, "]}");
    put_block(out, json, "words", lexicon, SIZE_MAX);
}

safer_status sf_report_words(sf_writer *out, const safer_data *data, size_t count, const safer_lexicon *lexicon,
                             size_t number, const safer_progress *progress, safer_error *error)
{
    safer_status status = SAFER_OK;
    size_t words = lexicon->words.count;
    excerpt e = {.lexicon = lexicon,
                 .number = sf_alloc(words, sizeof *e.number),
                 .words = sf_alloc(words, sizeof *e.words)};
    sf_writer json = {0};
    safer_reader *reader = NULL;
    sf_slots slots = {0};
    sf_meter meter = {0};
    if (!e.number || !e.words) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t i = 0; i < words; i++) e.number[i] = SF_NONE;
    sf_meter_start(&meter, progress, "writing their words", count);
    for (size_t i = 0; i < count && !sf_meter_cancelled(&meter); i++) {
        safer_row row;
        SF_TRY(safer_data_read(&row, &reader, data, sf_page_row(safer_data_size(data), i), error));
        SF_TRY(sf_slots_read(&slots, lexicon, row.text, row.text_length, error));
        sf_put(&json, i % SF_TEXTS_PER_BLOCK ? "," : "[");
        put_slots(&json, &e, &slots, shown_length(row));
        if (i + 1 == count || (i + 1) % SF_TEXTS_PER_BLOCK == 0) {
            sf_put(&json, "]");
            put_block(out, &json, "slots", (int)number, i / SF_TEXTS_PER_BLOCK);
        }
        sf_meter_add(&meter, 1, 0);
    }
    SF_TRY(sf_meter_finish(&meter, error));
    put_excerpt(out, &json, &e, (int)number);
done:
    safer_reader_free(reader);
    sf_slots_free(&slots);
    sf_writer_free(&json);
    free(e.number);
    free(e.words);
    return status;
}
