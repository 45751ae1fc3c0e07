/* The page of a report: all of it that does not come from texts.h. */
#ifndef SF_REPORT_PAGE_H
#define SF_REPORT_PAGE_H

#include "report/runs.h"
#include "report/writer.h"

enum { SF_STATIC_ROWS = 100 }; /* of the table, for readers without JavaScript */

typedef struct sf_page {
    const sf_report_run *runs;
    size_t run_count;
    size_t texts; /* how many are in the page; 0 without data */
} sf_page;

/* Everything before the packed blocks, and everything after them. */
void sf_page_begin(sf_writer *out, const sf_page *page);
void sf_page_end(sf_writer *out, const sf_page *page);

/* The part of the page about classes. */
void sf_page_classes(sf_writer *out, const sf_page *page);

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
