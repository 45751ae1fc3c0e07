/* The pictures of a report, as SVG.
 *
 * Colours come from web/plot.css, by class: run 0, run 1, ... have classes r0, r1, ..., in
 * every picture the same. A picture that stands alone in a file carries that style sheet
 * with it; inside a page the page has it. */
#ifndef SF_REPORT_PLOT_H
#define SF_REPORT_PLOT_H

#include "report/runs.h"
#include "report/writer.h"

enum { SF_PLOT_COLOURS = 8 }; /* runs beyond them begin again, with broken lines */

typedef struct sf_plot {
    const char *name;  /* of the file, without .svg, and of the picture in the page */
    const char *title; /* above it */
    void (*draw)(sf_writer *out, const sf_report_run *runs, size_t count, const char *name, int alone);
    int (*has)(const sf_report_run *run); /* it shows only runs for which this holds; NULL: all */
    /* Where it would say nothing: one sentence that says as much, without its stop. Else NULL. */
    const char *(*flat)(const sf_report_run *runs, size_t count);
} sf_plot;

/* Those that show all runs together; the last has no name. */
extern const sf_plot sf_plots[];

/* Whether there is something to draw. */
int sf_plot_applies(const sf_plot *plot, const sf_report_run *runs, size_t count);

/* Every text of one run with votes as a point: the bound on its vote above q. The same sentence of it. */
const char *sf_plot_margin_flat(const sf_report_run *run);
void sf_plot_margin(sf_writer *out, const sf_report_run *run, const char *name, int alone);

#endif
