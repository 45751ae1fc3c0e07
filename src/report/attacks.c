/* What attacks made of the texts. */
#include "report/attacks.h"

#include "attack/records.h"
#include "base/memory.h"
#include "certify/origin.h"
#include "report/page.h"
#include "report/texts.h"

#include <stdio.h>
#include <string.h>

typedef struct reading {
    sf_report_attack *attack;
    const char *path;
    const sf_report_run *runs;
    size_t run_count;
    const safer_data *data;
    safer_reader *reader;
    size_t count; /* texts in the page */
    size_t place; /* of those shown, in the page or not: how many were met */
    int format;
    sf_writer json;
} reading;

static safer_status read_config(reading *r, const json_t *config, safer_error *error)
{
    sf_attack_head head;
    size_t found = 0;
    safer_status status = sf_attack_config_read(&head, config, r->path, error);
    if (status == SAFER_OK) status = sf_shard_need_whole(head.shard, r->path, error);
    if (status != SAFER_OK) return status;
    if (!sf_origin_has_data(config, r->data))
        return sf_fail(error, SAFER_INPUT, "%s attacked another data set, sample or limit", r->path);
    r->format = head.format;
    r->attack->smoothed = head.smoothed;
    r->attack->texts = head.texts;
    const int constrained = head.same_pos || head.min_cosine > 0 || head.min_similarity > 0;
    snprintf(r->attack->method, sizeof r->attack->method, "%.40s%s", head.method, constrained ? ", constrained" : "");
    sf_put(&r->json, "{\"name\":");
    sf_put_json_short(&r->json, r->attack->method, 60);
    sf_putf(&r->json, ",\"smoothed\":%s,\"runs\":[", head.smoothed ? "true" : "false");
    for (size_t i = 0; i < r->run_count; i++) {
        if (!r->runs[i].has_data || !sf_origin_is_same(config, r->runs[i].json, "model")) continue;
        sf_putf(&r->json, "%s%zu", found++ ? "," : "", i);
        r->attack->of_run[i] = 1;
    }
    sf_put(&r->json, "],\"rows\":[");
    return found ? SAFER_OK : sf_fail(error, SAFER_INPUT, "%s attacked the model of none of the runs", r->path);
}

/* A change as ",at,length,to"; -1 when the word does not stand where it says. */
static int put_change(reading *r, safer_row row, const json_t *change, const char *between)
{
    const json_int_t byte = json_integer_value(json_object_get(change, "byte"));
    const json_t *to = json_object_get(change, "to"), *from = json_object_get(change, "from");
    const size_t length = json_string_length(from);
    if ((size_t)byte > row.text_length || length > row.text_length - (size_t)byte ||
        memcmp(row.text + byte, json_string_value(from), length) != 0)
        return -1;
    if ((size_t)byte + length > SF_TEXT_BYTES) return 0; /* not in the page */
    sf_putf(&r->json, "%s%zu,%zu,", between, sf_utf16_length(row.text, (size_t)byte),
            sf_utf16_length(row.text + byte, length));
    sf_put_json(&r->json, json_string_value(to), json_string_length(to));
    return 0;
}

/* A text that is in the page: what was made of it. */
static safer_status put_record(reading *r, const sf_attack_record *a, size_t row, size_t line, safer_error *error)
{
    json_t *change;
    size_t at;
    safer_row text;
    safer_status status = safer_data_read(&text, &r->reader, r->data, row, error);
    if (status != SAFER_OK) return status;
    sf_putf(&r->json, "%s[%zu,%d,", r->place ? "," : "", r->place, (int)a->outcome);
    if (a->after)
        sf_put_json_short(&r->json, a->after, 40);
    else
        sf_put(&r->json, "null");
    sf_put(&r->json, ",[");
    size_t start = r->json.out.length;
    json_array_foreach(a->changes, at, change)
    {
        if (a->outcome != SAFER_OUTCOME_SUCCEEDED) break; /* a search that failed has changed nothing */
        if (put_change(r, text, change, r->json.out.length > start ? "," : ""))
            return r->json.failed ? sf_fail_memory(error)
                                  : sf_fail(error, SAFER_INPUT, "%s, line %zu: a change of a word that is not there",
                                            r->path, line);
    }
    sf_put(&r->json, "]]");
    return SAFER_OK;
}

static safer_status read_record(reading *r, const json_t *record, size_t line, safer_error *error)
{
    sf_attack_record a;
    const size_t row = line - 2, texts = safer_data_size(r->data);
    safer_status status;
    SF_TRY(sf_attack_record_read(&a, record, r->format, r->path, line, error));
    if (row >= texts) return sf_fail(error, SAFER_INPUT, "%s, line %zu: there are fewer texts", r->path, line);
    sf_attack_summary_add(&r->attack->summary, &a);
    if (r->place == sf_page_rows(texts) || row != sf_page_row(texts, r->place)) return SAFER_OK;
    if (r->place < r->count) SF_TRY(put_record(r, &a, row, line, error));
    r->attack->outcomes[r->place++] = (unsigned char)(a.outcome + 1);
done:
    return status;
}

static safer_status read_line(void *context, json_t *object, uint64_t seal, size_t line, safer_error *error)
{
    (void)seal;
    return line == 1 ? read_config(context, object, error) : read_record(context, object, line, error);
}

safer_status sf_report_attack_read(sf_report_attack *attack, const char *path, const sf_report_run *runs,
                                   size_t run_count, const safer_data *data, size_t count, safer_error *error)
{
    safer_status status;
    reading r = {.attack = attack, .path = path, .runs = runs, .run_count = run_count, .data = data, .count = count};
    attack->path = path;
    attack->outcomes = sf_calloc(sf_page_rows(safer_data_size(data)) + 1, 1);
    if (!attack->outcomes) return sf_fail_memory(error);
    SF_TRY(sf_sealed_read(path, "attack", JSON_ALLOW_NUL, read_line, &r, error));
    sf_put(&r.json, "]}");
done:
    attack->packed = r.json;
    safer_reader_free(r.reader);
    return status;
}

void sf_report_attack_free(sf_report_attack *attack)
{
    sf_writer_free(&attack->packed);
    free(attack->outcomes);
    *attack = (sf_report_attack){0};
}

void sf_report_attack_put(sf_writer *out, const sf_report_attack *attack, size_t number)
{
    sf_putf(out, "<script type=\"text/plain\" id=\"attacks-%zu\">", number);
    sf_put_packed(out, attack->packed.out.bytes, attack->packed.out.length);
    sf_put(out, "</script>\n");
    if (attack->packed.failed) out->failed = 1;
}

sf_fate sf_report_fate(const sf_report_attack *attacks, size_t count, size_t run, size_t place)
{
    sf_fate fate = SF_NOT_ATTACKED;
    for (size_t a = 0; a < count; a++) {
        const int outcome = attacks[a].of_run[run] ? attacks[a].outcomes[place] : 0;
        if (outcome == SAFER_OUTCOME_SUCCEEDED + 1) return SF_FELL;
        if (outcome == SAFER_OUTCOME_SKIPPED + 1) fate = SF_WRONG_BEFORE;
        if (outcome == SAFER_OUTCOME_FAILED + 1 && fate == SF_NOT_ATTACKED) fate = SF_HELD;
    }
    return fate;
}

/* ----------------------------------------------------------------- the page */

static void put_figure(sf_writer *out, size_t part, size_t whole)
{
    sf_put(out, "<td>");
    sf_put_percent(out, part, whole);
    if (whole) {
        sf_put(out, " <span class=\"soft\">(");
        sf_put_interval(out, part, whole);
        sf_put(out, ")</span>");
    }
    sf_put(out, "</td>");
}

/* An attack beside what was certified for a run of its model. */
static void put_attack(sf_writer *out, const sf_page *page, const sf_report_attack *a, size_t run)
{
    const safer_attack_summary *s = &a->summary;
    const safer_figure headline = safer_summary_headline(&page->runs[run].summary);
    const size_t tried = s->texts - s->skipped;
    sf_put(out, "<tr><th scope=\"row\"><bdi>");
    sf_put_html_short(out, a->method, 60);
    sf_putf(out, "</bdi> on the %s</th><td>", a->smoothed ? "smoothed classifier" : "base model");
    sf_page_name(out, &page->runs[run], run);
    sf_put(out, "</td><td>");
    sf_put_count(out, s->texts);
    if (s->texts < a->texts) {
        sf_put(out, " of ");
        sf_put_count(out, a->texts);
    }
    sf_put(out, "</td>");
    put_figure(out, tried, s->texts);
    put_figure(out, tried - s->succeeded, s->texts);
    put_figure(out, headline.part, headline.whole);
    sf_put(out, "<td>");
    if (s->succeeded)
        sf_put_fixed(out, (double)s->changed / (double)s->succeeded, 1);
    else
        sf_put(out, "–");
    sf_put(out, "</td><td>");
    sf_put_fixed(out, s->texts ? (double)s->queries / (double)s->texts : 0, 1);
    sf_put(out, "</td></tr>\n");
}

void sf_page_attacks(sf_writer *out, const sf_page *page)
{
    if (!page->attack_count) return;
    sf_put(out,
           "<section aria-labelledby=\"attacks\"><h2 id=\"attacks\">Attacks</h2>\n"
           "<p class=\"soft\">Adversarial accuracy: texts that are answered rightly, and for which the attack found "
           "nothing that changes the answer. A better attack may find more, so it is at least what is certified of the "
           "same classifier. A certificate is about the smoothed classifier; the base model may fall where it "
           "holds.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Attacks\">"
           "<table class=\"plain classes\"><thead><tr><th scope=\"col\">attack</th><th scope=\"col\">model of run</th>"
           "<th scope=\"col\">texts</th><th scope=\"col\">before (95%)</th>"
           "<th scope=\"col\">adversarial accuracy (95%)</th><th scope=\"col\">certified and answered (95%)</th>"
           "<th scope=\"col\">words changed</th><th scope=\"col\">queries per text</th></tr></thead>\n<tbody>\n");
    for (size_t a = 0; a < page->attack_count; a++)
        for (size_t i = 0; i < page->run_count; i++)
            if (page->attacks[a].of_run[i]) put_attack(out, page, &page->attacks[a], i);
    sf_put(out, "</tbody></table></div></section>\n");
}
