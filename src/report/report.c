/* safer_report: runs in, a page, pictures and tables out. */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/memory.h"
#include "base/options.h"
#include "report/page.h"
#include "report/plot.h"
#include "report/texts.h"
#include "text/unicode.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_NOTES = 1 << 20 }; /* bytes */

void safer_report_options_init(safer_report_options *options, size_t size)
{
    static const safer_report_options defaults = {.texts = 25000};
    sf_options_init(options, size, &defaults, sizeof defaults);
}

static safer_status check(const safer_report_options *o, size_t run_count, safer_error *error)
{
    if (o->title && sf_utf8_valid(o->title, strlen(o->title)) < strlen(o->title))
        return sf_fail(error, SAFER_INVALID, "`title` is not UTF-8");
    if (run_count < 1) return sf_fail(error, SAFER_INVALID, "a report needs a run");
    if (run_count > SF_MOST_RUNS)
        return sf_fail(error, SAFER_INVALID, "%zu runs: a report takes %d", run_count, SF_MOST_RUNS);
    if (o->lexicon_count && !o->data)
        return sf_fail(error, SAFER_INVALID, "`lexicons` without `data`: words are shown in their texts");
    if (o->attack_count && !o->data)
        return sf_fail(error, SAFER_INVALID, "`attacks` without `data`: they are shown in the texts");
    return SAFER_OK;
}

/* Writes a finished file, unless memory ran out on the way. */
static safer_status write_out(const sf_writer *out, const char *path, safer_error *error)
{
    return out->failed ? sf_fail_memory(error) : sf_file_write(path, out->out.bytes, out->out.length, error);
}

static safer_status write_in(const sf_writer *out, const char *folder, const char *name, const char *ending,
                             safer_error *error)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s.%s", folder, name, ending) < 0) return sf_fail_memory(error);
    safer_status status = write_out(out, path, error);
    free(path);
    return status;
}

static safer_status make_folder(const char *path, safer_error *error)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? SAFER_OK : sf_fail_errno(error, "make the folder", path);
}

/* ---------------------------------------------------------------- the files */

static safer_status write_plots(const char *folder, const sf_report_run *runs, size_t count, safer_error *error)
{
    safer_status status;
    sf_writer out = {0};
    SF_TRY(make_folder(folder, error));
    for (const sf_plot *plot = sf_plots; plot->name; plot++) {
        if (!sf_plot_applies(plot, runs, count)) continue;
        sf_buffer_clear(&out.out);
        plot->draw(&out, runs, count, plot->name, 1);
        SF_TRY(write_in(&out, folder, plot->name, "svg", error));
    }
    for (size_t i = 0; i < count; i++) {
        char name[32] = "margin";
        if (!sf_report_run_has_votes(&runs[i])) continue;
        if (count > 1) snprintf(name, sizeof name, "margin-%zu", i + 1);
        sf_buffer_clear(&out.out);
        sf_plot_margin(&out, &runs[i], name, 1);
        SF_TRY(write_in(&out, folder, name, "svg", error));
    }
done:
    sf_writer_free(&out);
    return status;
}

static safer_status write_tables(const char *folder, const sf_report_run *runs, size_t count, safer_error *error)
{
    static const struct {
        const char *name;
        void (*put)(sf_writer *out, const sf_report_run *runs, size_t count);
    } tables[] = {
        {"runs", sf_csv_runs}, {"radii", sf_csv_radii}, {"classes", sf_csv_classes}, {"confusion", sf_csv_confusion}};
    safer_status status;
    sf_writer out = {0};
    char *path = NULL;
    SF_TRY(make_folder(folder, error));
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        sf_buffer_clear(&out.out);
        tables[i].put(&out, runs, count);
        SF_TRY(write_in(&out, folder, tables[i].name, "csv", error));
    }
    if (asprintf(&path, "%s/texts.csv", folder) < 0) {
        path = NULL;
        status = sf_fail_memory(error);
        goto done;
    }
    status = sf_csv_texts(path, runs, count, error);
done:
    free(path);
    sf_writer_free(&out);
    return status;
}

/* What a page says besides the runs themselves. */
typedef struct findings {
    sf_report_attack *attacks;
    size_t attack_count;
    sf_costs *costs; /* of each run */
    sf_paired pairs;
    sf_file notes;
} findings;

static void findings_free(findings *f)
{
    for (size_t a = 0; f->attacks && a < f->attack_count; a++) sf_report_attack_free(&f->attacks[a]);
    free(f->attacks);
    free(f->costs);
    free(f->pairs.pairs);
    sf_file_free(&f->notes);
}

static safer_status read_notes(sf_file *notes, const char *path, safer_error *error)
{
    safer_status status = sf_file_load(notes, path, error);
    if (status != SAFER_OK) return status;
    if (notes->length > MOST_NOTES)
        return sf_fail(error, SAFER_INPUT, "%s: notes of more than %d bytes", path, (int)MOST_NOTES);
    const size_t valid = sf_utf8_valid(notes->bytes, notes->length);
    return valid == notes->length ? SAFER_OK : sf_fail(error, SAFER_INPUT, "%s, byte %zu: not UTF-8", path, valid);
}

static safer_status find(findings *f, const sf_report_run *runs, size_t count, size_t texts,
                         const safer_report_options *o, safer_error *error)
{
    safer_status status = SAFER_OK;
    f->attack_count = o->attack_count;
    f->attacks = sf_calloc(o->attack_count + 1, sizeof *f->attacks);
    f->costs = sf_calloc(count, sizeof *f->costs);
    if (!f->attacks || !f->costs) return sf_fail_memory(error);
    if (o->notes) SF_TRY(read_notes(&f->notes, o->notes, error));
    for (size_t a = 0; a < o->attack_count; a++)
        SF_TRY(sf_report_attack_read(&f->attacks[a], o->attacks[a], runs, count, o->data, texts, error));
    for (size_t i = 0; i < count; i++)
        if (runs[i].has_data && runs[i].lexicon >= 0 && sf_report_run_has_votes(&runs[i]))
            SF_TRY(sf_report_costs(&f->costs[i], &runs[i], o->lexicons[runs[i].lexicon], o->data, &o->progress, error));
    SF_TRY(sf_report_pairs(&f->pairs, runs, count, error));
done:
    return status;
}

static safer_status write_page(const char *path, const sf_report_run *runs, size_t count, const safer_report_options *o,
                               safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_writer out = {0};
    findings f = {0};
    sf_page page = {.runs = runs, .run_count = count, .title = o->title};
    const size_t rows = o->data ? sf_page_rows(safer_data_size(o->data)) : 0;
    page.texts = o->texts < rows ? o->texts : rows;
    SF_TRY(find(&f, runs, count, page.texts, o, error));
    page.attacks = f.attacks;
    page.attack_count = f.attack_count;
    page.costs = f.costs;
    page.pairs = &f.pairs;
    page.notes = (sf_span){f.notes.bytes, f.notes.length};
    sf_page_begin(&out, &page);
    if (page.texts) SF_TRY(sf_report_texts(&out, o->data, page.texts, &o->progress, error));
    for (size_t l = 0; l < o->lexicon_count && page.texts; l++)
        SF_TRY(sf_report_words(&out, o->data, page.texts, o->lexicons[l], l, &o->progress, error));
    for (size_t a = 0; a < f.attack_count; a++) sf_report_attack_put(&out, &f.attacks[a], a);
    sf_page_end(&out, &page);
    status = write_out(&out, path, error);
done:
    findings_free(&f);
    sf_writer_free(&out);
    return status;
}

safer_status safer_report(safer_summary *summaries, const char *output, const char *const *paths, size_t count,
                          const safer_report_options *options, safer_error *error)
{
    safer_report_options own = safer_report_options_default();
    const safer_report_options *o = &own;
    safer_status status = SF_TAKE_OPTIONS(&own, options, safer_report_options, error);
    if (status != SAFER_OK) return status;
    sf_report_run *runs = NULL;
    SF_TRY(check(o, count, error));
    runs = sf_calloc(count, sizeof *runs);
    if (!runs) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t i = 0; i < count; i++) SF_TRY(sf_report_run_read(&runs[i], paths[i], error));
    SF_TRY(sf_report_runs_name(runs, count, error));
    SF_TRY(sf_report_runs_match(runs, count, o->data, o->lexicons, o->lexicon_count, error));
    SF_TRY(write_page(output, runs, count, o, error));
    if (o->svg) SF_TRY(write_plots(o->svg, runs, count, error));
    if (o->csv) SF_TRY(write_tables(o->csv, runs, count, error));
    for (size_t i = 0; summaries && i < count; i++) {
        summaries[i] = runs[i].summary;
        runs[i].summary = (safer_summary){0}; /* the caller's now */
    }
done:
    for (size_t i = 0; runs && i < count; i++) sf_report_run_free(&runs[i]);
    free(runs);
    return status;
}
