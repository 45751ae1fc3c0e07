/* What the pictures need of a run's records. */
#include "report/counts.h"

#include <math.h>

static double clamp(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

static void count_in(size_t bins[SF_BINS], double share)
{
    const int b = (int)(clamp(share) * SF_BINS);
    bins[b < SF_BINS ? b : SF_BINS - 1]++;
}

/* A bit of the raster, in the order of drawing. */
static int kind_of(const sf_record *record)
{
    if (record->certified) return 2;
    return record->label < 0 || record->prediction == record->label;
}

void sf_counts_add(sf_counts *counts, const sf_record *record)
{
    const double decades = record->queries ? log10((double)record->queries) : 0;
    count_in(counts->products, 1 - record->q);
    for (int d = 0; d < SF_DECADES; d++) count_in(counts->queries[d], decades / (d + 1));
    if (record->queries > counts->most_queries) counts->most_queries = record->queries;
    const int x = (int)lround(clamp(record->q) * 2 * SF_AREA_WIDTH),
              y = (int)lround((1 - clamp(record->bound)) * 2 * SF_AREA_HEIGHT);
    counts->raster[y][x] |= (unsigned char)(1 << kind_of(record));
}
