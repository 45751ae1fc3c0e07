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

double sf_shown_q(const sf_record *record, const sf_config *config)
{
    return record->q_edits ? sf_record_q_edits(record, config->options.edits) : record->q;
}

/* How many of the reported radii a radius reaches. */
static size_t rung_of(size_t radius)
{
    size_t rung = 0;
    while (rung < SAFER_RADII && radius >= safer_reported_radius(rung)) rung++;
    return rung;
}

static void count_queries(sf_counts *counts, uint64_t queries)
{
    const double decades = queries ? log10((double)queries) : 0;
    for (int d = 0; d < SF_DECADES; d++) count_in(counts->queries[d], decades / (d + 1));
    if (!counts->texts || queries < counts->least_queries) counts->least_queries = queries;
    if (queries > counts->most_queries) counts->most_queries = queries;
}

void sf_counts_add(sf_counts *counts, const sf_record *record, const sf_config *config)
{
    count_queries(counts, record->queries);
    count_in(counts->products, 1 - record->q);
    counts->radii[rung_of(record->radius)]++;
    counts->moved += record->q > 0;
    counts->texts++;
    const int x = (int)lround(clamp(sf_shown_q(record, config)) * 2 * SF_AREA_WIDTH),
              y = (int)lround((1 - clamp(record->bound)) * 2 * SF_AREA_HEIGHT);
    counts->raster[y][x] |= (unsigned char)(1 << kind_of(record));
}
