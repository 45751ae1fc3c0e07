/* The tables of a report as CSV. */
#include "report/page.h"

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

void sf_csv_texts(sf_writer *out, const sf_report_run *runs, size_t count)
{
    sf_put(out, "run,row,id,label,prediction,base,target,abstained,words,slots,visible,exact,n,bound,q,margin,radius,"
                "certified,queries\r\n");
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < runs[i].count; k++) {
            const sf_record *e = &runs[i].records[k];
            const int classes[] = {e->label, e->prediction, e->base, e->target};
            sf_put_csv(out, runs[i].name);
            sf_putf(out, ",%zu,", k + 1);
            sf_put_csv(out, e->id);
            for (size_t c = 0; c < 4; c++) {
                sf_put(out, ",");
                sf_put_csv(out, sf_report_run_label(&runs[i], classes[c]));
            }
            sf_putf(out, ",%d,%zu,%zu,%zu,%d,%llu,", e->abstained, e->words, e->slots, e->visible, e->exact,
                    (unsigned long long)e->n);
            put_evidence(out, &runs[i], e);
            put_radius(out, e->radius);
            sf_putf(out, ",%d,%llu\r\n", e->certified, (unsigned long long)e->queries);
        }
}
