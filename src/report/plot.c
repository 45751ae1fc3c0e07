/* The pictures of a report, as SVG: first points, lines, frame and legend, then one section per
 * picture, in the order of the page, and the table of them. plot.h says how they get their colours;
 * docs/report.md, what each of them shows. */
#include "report/plot.h"

#include "base/memory.h"
#include "report/assets.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* counts.h has the measures. Below a picture there is room for a legend, a line for every two runs. */
enum { WIDTH = SF_PLOT_WIDTH, HEIGHT = SF_PLOT_HEIGHT, LEFT = SF_PLOT_LEFT, TOP = SF_PLOT_TOP };
enum { RIGHT = SF_PLOT_RIGHT, BOTTOM = SF_PLOT_BOTTOM, LEGEND = 20 };
enum { AREA_WIDTH = SF_AREA_WIDTH, AREA_HEIGHT = SF_AREA_HEIGHT };

/* Where a share of the area lies. */
static double at_x(double share) { return LEFT + share * AREA_WIDTH; }
static double at_y(double share) { return TOP + (1 - share) * AREA_HEIGHT; }

static void put_point(sf_writer *out, double x, double y)
{
    sf_put_fixed(out, x, 1);
    sf_put(out, " ");
    sf_put_fixed(out, y, 1);
}

/* <text> at a point; the words are this program's. */
static void put_text(sf_writer *out, double x, double y, const char *class, const char *words)
{
    sf_put(out, "<text x=\"");
    sf_put_fixed(out, x, 1);
    sf_put(out, "\" y=\"");
    sf_put_fixed(out, y, 1);
    sf_putf(out, "\" class=\"%s\">", class);
    sf_put(out, words);
    sf_put(out, "</text>");
}

static void put_line(sf_writer *out, const char *class, double x1, double y1, double x2, double y2)
{
    sf_putf(out, "<path class=\"%s\" d=\"M", class);
    put_point(out, x1, y1);
    sf_put(out, "L");
    put_point(out, x2, y2);
    sf_put(out, "\"/>");
}

static void put_box(sf_writer *out, const char *class, double x, double y, double width, double height)
{
    const double numbers[] = {x, y, width, height};
    static const char *const names[] = {"x", "y", "width", "height"};
    sf_putf(out, "<rect class=\"%s\"", class);
    for (size_t i = 0; i < 4; i++) {
        sf_putf(out, " %s=\"", names[i]);
        sf_put_fixed(out, numbers[i], 1);
        sf_put(out, "\"");
    }
    sf_put(out, "/>");
}

/* ------------------------------------------------------- frame and legend */

static int colour(size_t run) { return (int)(run % SF_PLOT_COLOURS); }
static const char *dashes(size_t run) { return run / SF_PLOT_COLOURS % 2 ? " broken" : ""; }

static size_t legend_lines(size_t runs) { return runs > 1 ? (runs + 1) / 2 : 0; }

static void begin(sf_writer *out, const char *name, int alone, size_t runs, const char *title, const char *description)
{
    int height = HEIGHT + LEGEND * (int)legend_lines(runs);
    sf_putf(out, "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" ", WIDTH, height);
    if (alone) sf_putf(out, "width=\"%d\" height=\"%d\" ", 2 * WIDTH, 2 * height);
    sf_putf(out, "role=\"img\" aria-labelledby=\"%s-title %s-text\">", name, name);
    sf_putf(out, "<title id=\"%s-title\">%s</title><desc id=\"%s-text\">", name, title, name);
    sf_put(out, description);
    sf_put(out, "</desc>");
    if (!alone) return;
    sf_put(out, "<style>");
    sf_put(out, sf_asset_plot_css);
    sf_put(out, "</style>");
    sf_putf(out, "<rect width=\"%d\" height=\"%d\" fill=\"var(--bg)\"/>", WIDTH, height);
}

/* The legend of the runs for which `has` holds; NULL: of all. */
static void end(sf_writer *out, const sf_report_run *runs, size_t count, int (*has)(const sf_report_run *run))
{
    size_t place = 0;
    for (size_t i = 0; i < count && count > 1; i++) {
        double x = LEFT + (place % 2 ? AREA_WIDTH / 2 : 0), y = HEIGHT + LEGEND * (double)(place / 2) + 10;
        char class[24];
        if (has && !has(&runs[i])) continue;
        place++;
        snprintf(class, sizeof class, "curve r%d%s", colour(i), dashes(i));
        put_line(out, class, x, y, x + 22, y);
        sf_put(out, "<text x=\"");
        sf_put_fixed(out, x + 28, 1);
        sf_put(out, "\" y=\"");
        sf_put_fixed(out, y + 4.5, 1);
        sf_put(out, "\">");
        sf_put_html_short(out, runs[i].name, 22);
        sf_put(out, "</text>");
    }
    sf_put(out, "</svg>\n");
}

/* Horizontal lines with labels at 0, 1/steps, ... of the area; the top is `most` per cent. */
static void put_percent_axis(sf_writer *out, double most, int steps)
{
    for (int i = 0; i <= steps; i++) {
        char label[32];
        double share = (double)i / steps;
        snprintf(label, sizeof label, "%ld%%", lround(most * share));
        put_line(out, i ? "grid" : "axis", LEFT, at_y(share), LEFT + AREA_WIDTH, at_y(share));
        put_text(out, LEFT - 6, at_y(share) + 4.5, "end", label);
    }
}

static void put_x_title(sf_writer *out, const char *words) { put_text(out, at_x(.5), HEIGHT - 8, "mid", words); }

/* ------------------------------------------------------- accuracy by radius */

static void put_whisker(sf_writer *out, const char *class, double x, size_t part, size_t whole)
{
    double low = 0, high = 1;
    if (!whole) return;
    safer_interval(part, whole, &low, &high);
    put_line(out, class, x, at_y(low), x, at_y(high));
}

static double share_of(size_t part, size_t whole) { return whole ? (double)part / (double)whole : 0; }

/* The curve of a run: figures of rising strength at even steps, each with its interval. Runs stand a little apart, so
 * that intervals do not hide one another. */
static void put_curve(sf_writer *out, const safer_figure *at, size_t steps, size_t run, size_t count, size_t places)
{
    const double shift = ((double)run - ((double)count - 1) / 2) * 5;
    char class[24];
    snprintf(class, sizeof class, "whisker r%d", colour(run));
    for (size_t r = 0; r < steps; r++)
        put_whisker(out, class, at_x(((double)r + .5) / (double)places) + shift, at[r].part, at[r].whole);
    for (int points = 0; points < 2; points++) {
        sf_putf(out, "<path class=\"%s r%d%s\" d=\"", points ? "points" : "curve", colour(run),
                points ? "" : dashes(run));
        for (size_t r = 0; r < steps; r++) {
            sf_put(out, points || !r ? "M" : "L");
            put_point(out, at_x(((double)r + .5) / (double)places) + shift, at_y(share_of(at[r].part, at[r].whole)));
            if (points) sf_put(out, "h0");
        }
        sf_put(out, "\"/>");
    }
}

static void draw_radius(sf_writer *out, const sf_report_run *runs, size_t count, const char *name, int alone)
{
    begin(out, name, alone, count, "Certified and answered, by radius",
          "The share of texts certified against 1, 2, 5, 10, 20 or all words changed, and answered, "
          "a line for each run, with 95% intervals.");
    put_percent_axis(out, 100, 5);
    for (size_t r = 0; r < SAFER_RADII; r++) {
        char label[24] = "all";
        if (safer_reported_radius(r) != SAFER_ALL) snprintf(label, sizeof label, "%zu", safer_reported_radius(r));
        put_text(out, at_x(((double)r + .5) / SAFER_RADII), HEIGHT - BOTTOM + 18, "mid", label);
    }
    put_x_title(out, "words that an attacker may change");
    for (size_t i = 0; i < count; i++) {
        safer_figure at[SAFER_RADII];
        for (size_t r = 0; r < SAFER_RADII; r++) at[r] = sf_summary_headline_at(&runs[i].summary, r);
        put_curve(out, at, SAFER_RADII, i, count, SAFER_RADII);
    }
    end(out, runs, count, NULL);
}

/* What is certified at one radius is certified at the smaller ones: equal figures are the same texts. */
static const char *radius_flat(const sf_report_run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sf_summary_headline_at(&runs[i].summary, 0).part !=
            sf_summary_headline_at(&runs[i].summary, SAFER_RADII - 1).part)
            return NULL;
    return "the same texts whether one word may change or all of them";
}

/* -------------------------------------------------------- accuracy by edits */

static void draw_edits(sf_writer *out, const sf_report_run *runs, size_t count, const char *name, int alone)
{
    size_t most = 1;
    for (size_t i = 0; i < count; i++)
        if (runs[i].summary.edits > most) most = runs[i].summary.edits;
    begin(out, name, alone, count, "Certified and answered, by edits",
          "The share of texts certified against 1, 2 and more edits of words, numbers and marks beside synonyms, "
          "and answered, a line for each run, with 95% intervals.");
    put_percent_axis(out, 100, 5);
    for (size_t r = 0; r < most; r += 1 + most / 16) {
        char label[24];
        snprintf(label, sizeof label, "%zu", r + 1);
        put_text(out, at_x(((double)r + .5) / (double)most), HEIGHT - BOTTOM + 18, "mid", label);
    }
    put_x_title(out, "edits, beside synonyms in as many words as were asked for");
    for (size_t i = 0; i < count; i++) {
        safer_figure at[SAFER_EDITS];
        if (!sf_report_run_has_edits(&runs[i])) continue;
        for (size_t r = 0; r < runs[i].summary.edits; r++) at[r] = sf_summary_headline_edits(&runs[i].summary, r);
        put_curve(out, at, runs[i].summary.edits, i, count, most);
    }
    end(out, runs, count, sf_report_run_has_edits);
}

static const char *edits_flat(const sf_report_run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (runs[i].summary.edits > 1) return NULL;
    return "one edit was asked for; the figures have what is certified against it";
}

/* -------------------------------------------------------- radii of the texts */

static void draw_radii(sf_writer *out, const sf_report_run *runs, size_t count, const char *name, int alone)
{
    static const char *const labels[] = {"0", "1", "2–4", "5–9", "10–19", "20+", "all"};
    const double group = (double)AREA_WIDTH / (SAFER_RADII + 1), bar = fmin(30, group * .84 / (double)count);
    begin(out, name, alone, count, "Largest certified radius",
          "How many texts have which largest radius: 0, 1, 2 to 4, 5 to 9, 10 to 19, 20 and more, or all words; "
          "a bar for each run.");
    put_percent_axis(out, 100, 5);
    for (size_t r = 0; r <= SAFER_RADII; r++) {
        const double middle = LEFT + ((double)r + .5) * group;
        put_text(out, middle, HEIGHT - BOTTOM + 18, "mid", labels[r]);
        for (size_t i = 0; i < count; i++) {
            const double height = share_of(runs[i].counts->radii[r], runs[i].count) * AREA_HEIGHT;
            char class[24];
            snprintf(class, sizeof class, "f%d", colour(i));
            put_box(out, class, middle + ((double)i - (double)count / 2) * bar + 1, TOP + AREA_HEIGHT - height,
                    fmax(1, bar - 2), height);
        }
    }
    put_x_title(out, "words that may change in a text, at most, without effect");
    end(out, runs, count, NULL);
}

static const char *radii_flat(const sf_report_run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t r = 1; r < SAFER_RADII; r++)
            if (runs[i].counts->radii[r]) return NULL;
    return "all words or none: no text is certified against some of its changes alone";
}

/* ------------------------------------------------- clean, smoothed, certified */

/* A share above its bar: cut, so that it never says more than there is. */
static void put_value(sf_writer *out, double x, size_t part, size_t whole)
{
    double low, high;
    char words[16];
    safer_interval(part, whole, &low, &high);
    snprintf(words, sizeof words, "%zu.%zu", part * 100 / whole, part * 1000 / whole % 10);
    put_text(out, x, at_y(high) - 4, "value mid", words);
}

/* What the headlines of the runs are called, where they are of one kind. */
static const char *headline_of(const sf_report_run *runs, size_t count)
{
    const char *name = safer_summary_headline(&runs[0].summary).name;
    for (size_t i = 1; i < count; i++)
        if (strcmp(safer_summary_headline(&runs[i].summary).name, name) != 0) return "answered, or stable";
    return name;
}

static void draw_accuracy(sf_writer *out, const sf_report_run *runs, size_t count, const char *name, int alone)
{
    const char *const groups[] = {"clean", "smoothed", headline_of(runs, count)};
    double group = (double)AREA_WIDTH / 3, bar = fmin(44, group * .8 / (double)count);
    begin(out, name, alone, count, "Clean, smoothed, certified and answered",
          "Three groups of bars, one bar per run: the base model, the smoothed classifier, "
          "and the texts certified at the asked radius and answered, with 95% intervals.");
    put_percent_axis(out, 100, 5);
    for (size_t g = 0; g < 3; g++) {
        double middle = LEFT + ((double)g + .5) * group;
        put_text(out, middle, HEIGHT - BOTTOM + 18, "mid", groups[g]);
        for (size_t i = 0; i < count; i++) {
            const safer_summary *s = &runs[i].summary;
            const safer_figure figures[] = {{groups[0], s->base_correct, s->labelled},
                                            {groups[1], s->smoothed_correct, s->labelled},
                                            safer_summary_headline(s)},
                               f = figures[g];
            double x = middle + ((double)i - (double)count / 2) * bar, height = share_of(f.part, f.whole) * AREA_HEIGHT;
            char class[24];
            snprintf(class, sizeof class, "f%d", colour(i));
            if (!f.whole || (g == 1 && !sf_report_run_has_votes(&runs[i]))) continue;
            put_box(out, class, x + 1, TOP + AREA_HEIGHT - height, bar - 2, height);
            put_whisker(out, "bar-whisker", x + bar / 2, f.part, f.whole);
            if (count < 3) put_value(out, x + bar / 2, f.part, f.whole);
        }
    }
    put_x_title(out, "of the texts with a label (stable: of all texts)");
    end(out, runs, count, NULL);
}

/* ------------------------------------------------------------ distributions */

/* The outline of a histogram, or what is inside; `most` is the share at the top of the area. */
static void put_outline(sf_writer *out, const char *class, const size_t bins[SF_BINS], size_t texts, double most)
{
    sf_putf(out, "<path class=\"%s\" d=\"M", class);
    put_point(out, at_x(0), at_y(0));
    for (int b = 0; b < SF_BINS; b++) {
        double y = at_y(share_of(bins[b], texts) / most);
        sf_put(out, "L");
        put_point(out, at_x((double)b / SF_BINS), y);
        sf_put(out, "L");
        put_point(out, at_x((double)(b + 1) / SF_BINS), y);
    }
    sf_put(out, "L");
    put_point(out, at_x(1), at_y(0));
    sf_put(out, "\"/>");
}

/* Draws the bins of every run with votes. */
static void put_histogram(sf_writer *out, const sf_report_run *runs, size_t count,
                          const size_t *(*bins_of)(const sf_counts *counts, int decades), int decades)
{
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        if (!sf_report_run_has_votes(&runs[i])) continue;
        const size_t *bins = bins_of(runs[i].counts, decades);
        for (int b = 0; b < SF_BINS; b++) most = fmax(most, share_of(bins[b], runs[i].count));
    }
    most = most <= .1 ? .1 : most <= .25 ? .25 : most <= .5 ? .5 : 1;
    put_percent_axis(out, 100 * most, 5);
    for (size_t i = 0; i < count; i++) {
        char class[24];
        if (!sf_report_run_has_votes(&runs[i])) continue;
        const size_t *bins = bins_of(runs[i].counts, decades);
        snprintf(class, sizeof class, "area f%d", colour(i));
        put_outline(out, class, bins, runs[i].count, most);
        snprintf(class, sizeof class, "curve r%d%s", colour(i), dashes(i));
        put_outline(out, class, bins, runs[i].count, most);
    }
}

static const size_t *bins_of_queries(const sf_counts *counts, int decades) { return counts->queries[decades - 1]; }

static const size_t *bins_of_products(const sf_counts *counts, int decades)
{
    (void)decades;
    return counts->products;
}

static void draw_queries(sf_writer *out, const sf_report_run *runs, size_t count, const char *name, int alone)
{
    uint64_t most = 10;
    int decades = 1;
    for (size_t i = 0; i < count; i++)
        if (runs[i].counts->most_queries > most) most = runs[i].counts->most_queries;
    for (double power = 10; power < (double)most && decades < SF_DECADES; power *= 10) decades++;
    begin(out, name, alone, count, "Queries per text",
          "How many texts took how many queries of the base model, on a logarithmic scale, a line for each run.");
    put_histogram(out, runs, count, bins_of_queries, decades);
    for (int d = 0; d <= decades; d++) {
        static const char *const powers[] = {"1", "10", "100", "1,000", "10,000", "100,000", "1 million"};
        put_text(out, at_x((double)d / decades), HEIGHT - BOTTOM + 18, d == decades ? "end" : "mid",
                 d < 7 ? powers[d] : "");
    }
    put_x_title(out, "queries of the base model, votes and certificate");
    end(out, runs, count, sf_report_run_has_votes);
}

static void put_unit_axis(sf_writer *out)
{
    static const char *const labels[] = {"0", "0.25", "0.5", "0.75", "1"};
    for (int i = 0; i < 5; i++) put_text(out, at_x(i / 4.0), HEIGHT - BOTTOM + 18, i == 4 ? "end" : "mid", labels[i]);
}

static void draw_products(sf_writer *out, const sf_report_run *runs, size_t count, const char *name, int alone)
{
    begin(out, name, alone, count, "Product of overlaps",
          "How the texts spread over the product of all their overlaps, one minus q. "
          "Texts left of one half cannot be certified against all words changed.");
    put_histogram(out, runs, count, bins_of_products, 0);
    put_unit_axis(out);
    put_line(out, "limit", at_x(.5), TOP, at_x(.5), TOP + AREA_HEIGHT);
    put_x_title(out, "1 − q; certifiable against all changes right of 0.5");
    end(out, runs, count, sf_report_run_has_votes);
}

static const char *queries_flat(const sf_report_run *runs, size_t count)
{
    uint64_t first = 0;
    for (size_t i = 0, found = 0; i < count; i++) {
        const sf_counts *c = runs[i].counts;
        if (!sf_report_run_has_votes(&runs[i]) || !c->texts) continue;
        if (c->least_queries != c->most_queries || (found && c->most_queries != first)) return NULL;
        first = c->most_queries;
        found = 1;
    }
    return first == 1 ? "one for every text" : "the same for every text; the figures have their sum";
}

static const char *products_flat(const sf_report_run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sf_report_run_has_votes(&runs[i]) && runs[i].counts->moved) return NULL;
    return "1 for every text: exchanged words change nothing of what is drawn, and q is 0";
}

const sf_plot sf_plots[] = {
    {"radius", "Certified and answered, by radius", draw_radius, NULL, radius_flat},
    {"edits", "Certified and answered, by edits", draw_edits, sf_report_run_has_edits, edits_flat},
    {"accuracy", "Clean, smoothed, certified and answered", draw_accuracy, NULL, NULL},
    {"radii", "Largest certified radius", draw_radii, NULL, radii_flat},
    {"queries", "Queries per text", draw_queries, sf_report_run_has_votes, queries_flat},
    {"products", "Product of overlaps", draw_products, sf_report_run_has_votes, products_flat},
    {0},
};

int sf_plot_applies(const sf_plot *plot, const sf_report_run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!plot->has || plot->has(&runs[i])) return 1;
    return 0;
}

/* ------------------------------------------------------- margin against q */

static const char *const kinds[] = {"bad", "weak", "good"}; /* drawn in this order */

static void put_points(sf_writer *out, const sf_counts *counts)
{
    for (int kind = 0; kind < 3; kind++) {
        sf_putf(out, "<path class=\"points %s\" d=\"", kinds[kind]);
        for (int y = 0; y < SF_RASTER_Y; y++)
            for (int x = 0; x < SF_RASTER_X; x++) {
                if (!(counts->raster[y][x] >> kind & 1)) continue;
                sf_put(out, "M");
                put_point(out, LEFT + x / 2.0, TOP + y / 2.0);
                sf_put(out, "h0");
            }
        sf_put(out, "\"/>");
    }
}

const char *sf_plot_margin_flat(const sf_report_run *run)
{
    return run->counts->moved || sf_report_run_has_edits(run)
               ? NULL
               : "q is 0, so that every text is certified whose bound is above one half; the table has the bounds";
}

void sf_plot_margin(sf_writer *out, const sf_report_run *run, const char *name, int alone)
{
    static const char *const words[] = {"wrong", "right, not certified", "certified"};
    begin(
        out, name, alone, 2, "Margin of every text", /* room for one line of legend */
        sf_report_run_has_edits(run)
            ? "Every text as a point: to the right q for the edits and synonyms that were asked for, upwards the bound "
              "on the vote for its class. Texts above the broken line are certified against these."
            : "Every text as a point: to the right q for all words, upwards the bound on the vote for its class. "
              "Texts above the broken line are certified against all changes.");
    sf_put(out, "<path class=\"zone\" d=\"M");
    put_point(out, at_x(0), at_y(.5));
    sf_put(out, "L");
    put_point(out, at_x(.5), at_y(1));
    sf_put(out, "L");
    put_point(out, at_x(0), at_y(1));
    sf_put(out, "\"/>");
    put_percent_axis(out, 100, 4);
    put_unit_axis(out);
    put_line(out, "limit", at_x(0), at_y(.5), at_x(.5), at_y(1));
    put_points(out, run->counts);
    put_x_title(out, "q: how far an attacker can move the vote");
    for (int kind = 0; kind < 3; kind++) {
        static const double places[] = {.76, .26, 0};
        double x = at_x(places[kind]), y = HEIGHT + 10;
        sf_putf(out, "<path class=\"points %s\" d=\"M", kinds[kind]);
        put_point(out, x + 8, y);
        sf_put(out, "h0\"/>");
        put_text(out, x + 18, y + 4.5, "", words[kind]);
    }
    sf_put(out, "</svg>\n");
}
