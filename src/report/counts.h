/* What the pictures need of a run's records, counted as these are read: exact however many there are, in memory that
 * does not depend on their number. */
#ifndef SF_REPORT_COUNTS_H
#define SF_REPORT_COUNTS_H

#include "certify/record.h"

/* A picture: 480 units wide, the plotted area inside a margin for the axes. */
enum { SF_PLOT_WIDTH = 480, SF_PLOT_HEIGHT = 300 };
enum { SF_PLOT_LEFT = 54, SF_PLOT_TOP = 14, SF_PLOT_RIGHT = 12, SF_PLOT_BOTTOM = 48 };
enum { SF_AREA_WIDTH = SF_PLOT_WIDTH - SF_PLOT_LEFT - SF_PLOT_RIGHT };
enum { SF_AREA_HEIGHT = SF_PLOT_HEIGHT - SF_PLOT_TOP - SF_PLOT_BOTTOM };

/* Points are marked in a raster of half units, so that thousands of texts in one place are
 * drawn once. A bit for each kind. */
enum { SF_RASTER_X = 2 * SF_AREA_WIDTH + 1, SF_RASTER_Y = 2 * SF_AREA_HEIGHT + 1 };

enum { SF_BINS = 24, SF_DECADES = 20 }; /* of a histogram; of queries, which are below 10^20 */

typedef struct sf_counts {
    size_t products[SF_BINS];            /* texts by 1 - q, from 0 to 1 */
    size_t queries[SF_DECADES][SF_BINS]; /* texts by the logarithm of their queries, from 0 to 1, 2, ... decades: how
                                            many are drawn depends on all runs of the report */
    uint64_t least_queries, most_queries;
    size_t radii[SAFER_RADII + 1]; /* texts by the largest radius certified: 0, 1, 2 to 4, ... 20 and more, all */
    size_t texts, moved;           /* all of them, and those with q above 0 */
    unsigned char raster[SF_RASTER_Y][SF_RASTER_X]; /* the bound above sf_shown_q: wrong, right, certified */
} sf_counts;                                        /* begin with zeros */

/* The q that a page shows beside the bound of a text: that of all words or, of a run with edits, of what was asked. */
double sf_shown_q(const sf_record *record, const sf_config *config);

void sf_counts_add(sf_counts *counts, const sf_record *record, const sf_config *config);

#endif
