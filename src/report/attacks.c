/* What attacks made of the texts. */
#include "report/attacks.h"

#include "attack/records.h"
#include "certify/origin.h"
#include "report/texts.h"

#include <stdio.h>
#include <string.h>

typedef struct reading {
    const char *path;
    const sf_report_run *runs;
    size_t run_count;
    const safer_data *data;
    safer_reader *reader;
    size_t count; /* texts in the page, */
    size_t place; /* and how many of them were met */
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
    sf_put(&r->json, "{\"name\":");
    sf_put_json_short(&r->json, head.method, 60);
    sf_putf(&r->json, ",\"smoothed\":%s,\"runs\":[", head.smoothed ? "true" : "false");
    for (size_t i = 0; i < r->run_count; i++)
        if (sf_origin_is_same(config, r->runs[i].json, "model")) sf_putf(&r->json, "%s%zu", found++ ? "," : "", i);
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

static safer_status read_record(reading *r, const json_t *record, size_t line, safer_error *error)
{
    sf_attack_record a;
    json_t *change;
    size_t at;
    const size_t row = line - 2;
    safer_status status = sf_attack_record_read(&a, record, r->format, r->path, line, error);
    if (status != SAFER_OK) return status;
    if (row >= safer_data_size(r->data))
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: there are fewer texts", r->path, line);
    if (r->place == r->count || row != sf_page_row(safer_data_size(r->data), r->place)) return SAFER_OK;
    sf_putf(&r->json, "%s[%zu,%d,", r->place ? "," : "", r->place, (int)a.outcome);
    r->place++;
    if (a.after)
        sf_put_json_short(&r->json, a.after, 40);
    else
        sf_put(&r->json, "null");
    sf_put(&r->json, ",[");
    size_t start = r->json.out.length;
    safer_row text;
    status = safer_data_read(&text, &r->reader, r->data, row, error);
    if (status != SAFER_OK) return status;
    json_array_foreach(a.changes, at, change)
    {
        if (a.outcome != SAFER_OUTCOME_SUCCEEDED) break; /* a search that failed has changed nothing */
        if (put_change(r, text, change, r->json.out.length > start ? "," : ""))
            return r->json.failed ? sf_fail_memory(error)
                                  : sf_fail(error, SAFER_INPUT, "%s, line %zu: a change of a word that is not there",
                                            r->path, line);
    }
    sf_put(&r->json, "]]");
    return SAFER_OK;
}

static safer_status read_line(void *context, json_t *object, uint64_t seal, size_t line, safer_error *error)
{
    (void)seal;
    return line == 1 ? read_config(context, object, error) : read_record(context, object, line, error);
}

safer_status sf_report_attack(sf_writer *out, const char *path, size_t number, const sf_report_run *runs,
                              size_t run_count, const safer_data *data, size_t count, safer_error *error)
{
    safer_status status;
    reading r = {.path = path, .runs = runs, .run_count = run_count, .data = data, .count = count};
    SF_TRY(sf_sealed_read(path, "attack", JSON_ALLOW_NUL, read_line, &r, error));
    sf_put(&r.json, "]}");
    sf_putf(out, "<script type=\"text/plain\" id=\"attacks-%zu\">", number);
    sf_put_packed(out, r.json.out.bytes, r.json.out.length);
    sf_put(out, "</script>\n");
    if (r.json.failed) out->failed = 1;
done:
    sf_writer_free(&r.json);
    safer_reader_free(r.reader);
    return status;
}
