/* The tables of a report as CSV. */
#include "report/page.h"

#include "base/file.h"

#include <stdio.h>

static void put_radius(sf_writer *out, size_t radius)
{
    if (radius == SAFER_ALL)
        sf_put(out, "all");
    else
        sf_putf(out, "%zu", radius);
}

void sf_csv_share(sf_writer *out, size_t part, size_t whole)
{
    double low, high;
    if (!whole) {
        sf_put(out, ",,,");
        return;
    }
    safer_interval(part, whole, &low, &high);
    const double numbers[] = {(double)part / (double)whole, low, high};
    for (size_t i = 0; i < 3; i++) {
        sf_put(out, ",");
        sf_put_real(out, numbers[i]);
    }
}

void sf_csv_runs(sf_writer *out, const sf_report_run *runs, size_t count)
{
    sf_put(out, "run,file,method,texts,labelled,clean,clean_low,clean_high,smoothed,smoothed_low,smoothed_high,"
                "certified_answered,certified_answered_low,certified_answered_high,certified,certified_low,"
                "certified_high,stable,stable_low,stable_high,unlabelled_certified,abstained,exact,without_slots,"
                "empty,queries\r\n");
    for (size_t i = 0; i < count; i++) {
        const safer_summary *s = &runs[i].summary;
        sf_put_csv(out, runs[i].name);
        sf_put(out, ",");
        sf_put_csv(out, runs[i].path);
        sf_putf(out, ",%s,%zu,%zu", json_string_value(json_object_get(runs[i].json, "method")), s->texts, s->labelled);
        sf_csv_share(out, s->base_correct, s->labelled);
        sf_csv_share(out, s->smoothed_correct, sf_report_run_has_votes(&runs[i]) ? s->labelled : 0);
        sf_csv_share(out, s->certified_answered, s->labelled);
        sf_csv_share(out, s->certified, s->labelled);
        sf_csv_share(out, s->stable, s->texts);
        sf_putf(out, ",%zu,%zu,%zu,%zu,%zu,%llu\r\n", s->unlabelled_certified, s->abstained, s->exact, s->without_slots,
                s->empty, (unsigned long long)s->queries);
    }
}

void sf_csv_radii(sf_writer *out, const sf_report_run *runs, size_t count)
{
    sf_put(out, "run,radius,texts,labelled,certified_answered,certified_answered_share,certified_answered_low,"
                "certified_answered_high,certified,certified_share,certified_low,certified_high,stable,stable_share,"
                "stable_low,stable_high\r\n");
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < SAFER_RADII; r++) {
            const safer_summary *s = &runs[i].summary;
            const size_t parts[] = {s->certified_answered_at[r], s->certified_at[r], s->stable_at[r]};
            sf_put_csv(out, runs[i].name);
            sf_put(out, ",");
            put_radius(out, safer_reported_radius(r));
            sf_putf(out, ",%zu,%zu", s->texts, s->labelled);
            for (size_t k = 0; k < 3; k++) {
                sf_putf(out, ",%zu", parts[k]);
                sf_csv_share(out, parts[k], k < 2 ? s->labelled : s->texts);
            }
            sf_put(out, "\r\n");
        }
}

/* "bound,q," and an empty margin, or the other way round. */
static void put_evidence(sf_writer *out, const sf_report_run *run, const sf_record *e)
{
    if (sf_report_run_has_votes(run)) {
        sf_put_real(out, e->bound);
        sf_put(out, ",");
        sf_put_real(out, e->q);
        sf_put(out, ",,");
    } else {
        sf_put(out, ",,");
        sf_put_real(out, e->margin);
        sf_put(out, ",");
    }
}

/* The table of all texts, while it is written. */
typedef struct table {
    const sf_report_run *run; /* that is being read */
    sf_new_file file;
    sf_writer out;
} table;

/* Hands over what was put together, when it is worth it. */
static safer_status flush(table *t, size_t least, safer_error *error)
{
    if (t->out.failed) return sf_fail_memory(error);
    if (t->out.out.length < least) return SAFER_OK;
    const safer_status status = sf_new_file_add(&t->file, t->out.out.bytes, t->out.out.length, error);
    sf_buffer_clear(&t->out.out);
    return status;
}

static safer_status check_config(void *context, json_t *json, const sf_config *config, safer_error *error)
{
    const table *t = context;
    (void)json;
    return config->seal == t->run->config.seal
               ? SAFER_OK
               : sf_fail(error, SAFER_INPUT, "%s was changed while it was read", t->run->path);
}

static safer_status put_text(void *context, json_t *json, const sf_record *e, size_t line, safer_error *error)
{
    enum { OUTPUT = 1 << 16 };
    table *t = context;
    const int classes[] = {e->label, e->prediction, e->base, e->target};
    (void)json;
    sf_put_csv(&t->out, t->run->name);
    sf_putf(&t->out, ",%zu,", line - 1);
    sf_put_csv(&t->out, e->id);
    for (size_t c = 0; c < 4; c++) {
        sf_put(&t->out, ",");
        sf_put_csv(&t->out, sf_report_run_label(t->run, classes[c]));
    }
    sf_putf(&t->out, ",%d,%zu,%zu,%zu,%d,%llu,", e->abstained, e->words, e->slots, e->visible, e->exact,
            (unsigned long long)e->n);
    put_evidence(&t->out, t->run, e);
    put_radius(&t->out, e->radius);
    sf_putf(&t->out, ",%d,%llu\r\n", e->certified, (unsigned long long)e->queries);
    return flush(t, OUTPUT, error);
}

safer_status sf_csv_texts(const char *path, const sf_report_run *runs, size_t count, safer_error *error)
{
    safer_status status;
    table t = {0};
    SF_TRY(sf_new_file_begin(&t.file, path, error));
    sf_put(&t.out,
           "run,row,id,label,prediction,base,target,abstained,words,slots,visible,exact,n,bound,q,margin,radius,"
           "certified,queries\r\n");
    for (size_t i = 0; i < count; i++) {
        safer_summary summary = {0};
        t.run = &runs[i];
        SF_TRY(sf_run_walk(&summary, runs[i].path, &(sf_run_visitor){check_config, put_text, &t}, error));
        safer_summary_free(&summary);
    }
    SF_TRY(flush(&t, 0, error));
    status = sf_new_file_finish(&t.file, error);
done:
    sf_new_file_end(&t.file);
    sf_writer_free(&t.out);
    return status;
}
