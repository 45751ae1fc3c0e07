/* The page of a report: all of it that does not come from texts.h. */
#ifndef SF_REPORT_PAGE_H
#define SF_REPORT_PAGE_H

#include "report/attacks.h"
#include "report/costs.h"
#include "report/runs.h"
#include "report/writer.h"

enum { SF_STATIC_ROWS = 100 }; /* of the table, for readers without JavaScript */

/* Every two runs that can be compared. */
typedef struct sf_paired {
    safer_comparison *pairs;
    size_t count;
    size_t left_out;        /* pairs that cannot be, */
    const char *difference; /* and why the first of them cannot: sf_runs_differ */
} sf_paired;

typedef struct sf_page {
    const sf_report_run *runs;
    size_t run_count;
    size_t texts;      /* how many are in the page; 0 without data */
    const char *title; /* NULL: "Certified robustness" */
    sf_span notes;     /* plain text; empty: none */
    const sf_report_attack *attacks;
    size_t attack_count;
    const sf_costs *costs; /* of each run; its `lexicon` is NULL where nothing is known */
    const sf_paired *pairs;
} sf_page;

/* Everything before the packed blocks, and everything after them. */
void sf_page_begin(sf_writer *out, const sf_page *page);
void sf_page_end(sf_writer *out, const sf_page *page);

/* Parts of the page that are in files of their own. Each is left out where there is nothing to show. */
void sf_page_classes(sf_writer *out, const sf_page *page);
void sf_page_attacks(sf_writer *out, const sf_page *page);
void sf_page_costs(sf_writer *out, const sf_page *page);
void sf_page_pairs(sf_writer *out, const sf_page *page);

/* The coloured mark of a run, and its name. */
void sf_page_name(sf_writer *out, const sf_report_run *run, size_t number);

/* Compares all runs; `pairs` is the caller's, also after an error. */
safer_status sf_report_pairs(sf_paired *out, const sf_report_run *runs, size_t count, safer_error *error);

/* The tables as CSV: figures of the runs, their curves, their classes, how these were answered. */
void sf_csv_runs(sf_writer *out, const sf_report_run *runs, size_t count);
void sf_csv_radii(sf_writer *out, const sf_report_run *runs, size_t count);
void sf_csv_classes(sf_writer *out, const sf_report_run *runs, size_t count);
void sf_csv_confusion(sf_writer *out, const sf_report_run *runs, size_t count);

/* The same of every text, into a file: the runs are read again for it, and must be what they were. */
safer_status sf_csv_texts(const char *path, const sf_report_run *runs, size_t count, safer_error *error);

/* ",part/whole,low,high", empty fields of nothing. */
void sf_csv_share(sf_writer *out, size_t part, size_t whole);

#endif
