/* The page of a report, as one HTML file.
 *
 * The code reads in the order in which the page is seen: head, figures, plots, table,
 * configurations; then what the script needs, and the script. All of it can be read without the
 * script, which sorts, filters and opens texts. What comes from data, records or paths goes
 * through writer.h. docs/report.md says what the reader sees; "From runs to a page" in
 * docs/design.md, which files take part. */
#include "report/page.h"

#include "base/hash.h"
#include "base/json.h"
#include "report/assets.h"
#include "report/plot.h"
#include "report/texts.h"

#include <stdio.h>
#include <string.h>

enum { NAME_LENGTH = 60, ID_LENGTH = 120, LABEL_LENGTH = 40, TITLE_LENGTH = 200 }; /* shown, in characters */

/* Only what carries this mark may run or style the page. The author of a text cannot guess it,
 * because it depends on the answers of the model; it is the same for the same runs. */
static uint64_t nonce_of(const sf_page *page)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < page->run_count; i++) hash = sf_hash(&page->runs[i].hash, sizeof page->runs[i].hash, hash);
    return hash;
}

static void put_radius(sf_writer *out, size_t radius)
{
    if (radius == SAFER_ALL)
        sf_put(out, "all");
    else
        sf_put_count(out, radius);
}

static void put_name(sf_writer *out, const sf_report_run *run)
{
    sf_put(out, "<bdi>");
    sf_put_html_short(out, run->name, NAME_LENGTH);
    sf_put(out, "</bdi>");
}

/* The coloured mark of a run. */
static void put_mark(sf_writer *out, size_t run)
{
    sf_putf(out,
            "<svg class=\"mark\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">"
            "<rect class=\"f%zu\" width=\"12\" height=\"12\" rx=\"3\"/></svg> ",
            run % SF_PLOT_COLOURS);
}

void sf_page_name(sf_writer *out, const sf_report_run *run, size_t number)
{
    put_mark(out, number);
    put_name(out, run);
}

/* ------------------------------------------------------------------ figures */

static void put_span(sf_writer *out, const char *class, double from, double to)
{
    sf_putf(out, "<rect class=\"%s\" height=\"6\" x=\"", class);
    sf_put_fixed(out, 100 * from, 2);
    sf_put(out, "\" width=\"");
    sf_put_fixed(out, 100 * (to - from), 2);
    sf_put(out, "\"/>");
}

/* A share and its interval as a bar. */
static void put_meter(sf_writer *out, double share, double low, double high)
{
    sf_put(out, "<svg class=\"meter\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    put_span(out, "track", 0, 1);
    put_span(out, "filled", 0, share);
    put_span(out, "between", low, high);
    sf_put(out, "</svg>");
}

static void put_tile(sf_writer *out, const char *class, const char *name, const char *meaning, size_t part,
                     size_t whole)
{
    double low = 0, high = 1;
    if (whole) safer_interval(part, whole, &low, &high);
    sf_putf(out, "<div class=\"tile %s\"><dt>%s</dt><dd><span class=\"big\">", class, name);
    sf_put_percent(out, part, whole);
    sf_put(out, "</span> <span class=\"interval\">95%: ");
    if (whole)
        sf_put_interval(out, part, whole);
    else
        sf_put(out, "no labels");
    sf_putf(out, "</span> <span class=\"soft\">%s</span>", meaning);
    put_meter(out, whole ? (double)part / (double)whole : 0, low, high);
    sf_put(out, "</dd></div>\n");
}

/* The steps of the fold that a run's lexicon has; "" where it has none. */
static const char *fold_of(const sf_report_run *run)
{
    const json_t *fold = json_object_get(json_object_get(run->json, "lexicon"), "fold");
    const char *steps = json_string_value(json_object_get(fold, "steps"));
    return steps ? steps : "";
}

/* What is certified besides synonyms, in a sentence each. */
static void put_beyond(sf_writer *out, const sf_report_run *run)
{
    const safer_summary *s = &run->summary;
    if (s->folded) {
        sf_put(out, "<p>Characters: every spelling that folds to the same text (<bdi>");
        sf_put_html_short(out, fold_of(run), 200);
        sf_put(out, "</bdi>), exactly.</p>\n");
    }
    if (!s->edits) return;
    sf_putf(out, "<p>Edits of words, numbers and marks (%s), beside synonyms: ", safer_edit_kind_name(s->edit_kind));
    for (size_t i = 0; i < s->edits; i++) {
        const safer_figure f = sf_summary_headline_edits(s, i);
        sf_putf(out, "%sat most %zu: ", i ? ", " : "", i + 1);
        sf_put_percent(out, f.part, f.whole);
    }
    sf_putf(out, " %s.</p>\n", safer_summary_headline(s).name);
}

static void put_facts(sf_writer *out, const sf_report_run *run)
{
    const safer_summary *s = &run->summary;
    sf_put(out, "<p class=\"soft\">");
    sf_put_count(out, s->texts);
    sf_put(out, s->texts == 1 ? " text, " : " texts, ");
    if (s->texts > s->labelled) {
        sf_put_count(out, s->texts - s->labelled);
        sf_put(out, " of them without a label, of which ");
        sf_put_count(out, s->unlabelled_certified);
        sf_put(out, " are certified for their prediction, ");
    }
    if (!sf_report_run_has_votes(run)) {
        sf_put_count(out, s->without_slots);
        sf_put(out, " in which no word can change. Certified by interval bounds on the model itself: "
                    "nothing is drawn, so nothing is estimated.");
        if (s->additive)
            sf_put(out, " What words give this model adds up: but for rounding errors, one exchange more than a text "
                        "is certified against changes its answer.");
        sf_put(out, "</p>\n");
        return;
    }
    sf_put_count(out, s->abstained);
    sf_put(out, s->abstained == 1 ? " prediction without a clear vote, " : " predictions without a clear vote, ");
    sf_put_count(out, s->exact);
    sf_putf(out, " texts whose %s were all asked, which leaves no sampling error",
            run->config.method == SAFER_METHOD_GROUPS ? "groups" : "draws");
    sf_put(out, s->remote ? " if the model is a function of the text, " : ", ");
    sf_put_count(out, s->without_slots);
    sf_put(out, " texts in which no word can change, ");
    sf_put_count(out, s->queries);
    sf_put(out, " queries.</p>\n");
}

static void put_figures(sf_writer *out, const sf_report_run *run, size_t number)
{
    const safer_summary *s = &run->summary;
    const safer_figure headline = safer_summary_headline(s);
    char caution[300];
    sf_putf(out, "<article aria-labelledby=\"run-%zu\"><h3 id=\"run-%zu\">", number, number);
    put_mark(out, number);
    put_name(out, run);
    sf_put(out, "</h3>\n");
    if (safer_summary_caution(s, caution, sizeof caution))
        sf_putf(out, "<p class=\"caution\" role=\"note\"><strong>Caution:</strong> %s.</p>\n", caution);
    sf_put(out, "<dl class=\"tiles\">\n");
    put_tile(out, "", "clean", s->folded ? "the base model itself, folded texts" : "the base model itself",
             s->base_correct, s->labelled);
    if (s->folded) put_tile(out, "", "clean, unfolded", "texts as they were given", s->unfolded_correct, s->labelled);
    if (sf_report_run_has_votes(run))
        put_tile(out, "", "smoothed",
                 run->config.method == SAFER_METHOD_GROUPS ? "the vote of the groups" : "the vote over random synonyms",
                 s->smoothed_correct, s->labelled);
    put_tile(out, "first", headline.name,
             s->edits                          ? "at the asked radius and edits"
             : run->config.radius == SAFER_ALL ? "any words changed to synonyms"
                                               : "at the asked radius",
             headline.part, headline.whole);
    if (sf_report_run_has_votes(run) && s->labelled && !s->about_predictions)
        put_tile(out, "", "certified", "answered or not: the paper’s figure", s->certified, s->labelled);
    sf_put(out, "</dl>\n");
    put_beyond(out, run);
    put_facts(out, run);
    sf_put(out, "</article>\n");
}

/* A row of the table by radius: the headline, or what is certified, answered or not. */
static void put_radius_row(sf_writer *out, const sf_page *page, size_t i, int answered)
{
    const safer_summary *s = &page->runs[i].summary;
    sf_put(out, "<tr><th scope=\"row\">");
    sf_page_name(out, &page->runs[i], i);
    sf_putf(out, "</th><td>%s</td>", answered ? safer_summary_headline(s).name : "certified, answered or not");
    for (size_t r = 0; r < SAFER_RADII; r++) {
        const safer_figure f = sf_summary_headline_at(s, r);
        sf_put(out, "<td>");
        sf_put_percent(out, answered ? f.part : s->certified_at[r], f.whole);
        sf_put(out, "</td>");
    }
    sf_put(out, "</tr>\n");
}

static void put_radius_table(sf_writer *out, const sf_page *page)
{
    sf_put(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\""
                " aria-label=\"What is certified by radius, as numbers\">"
                "<table class=\"plain\"><caption>Certified, by words that may change</caption>\n"
                "<thead><tr><th scope=\"col\">run</th><th scope=\"col\">figure</th>");
    for (size_t r = 0; r < SAFER_RADII; r++) {
        sf_put(out, "<th scope=\"col\">");
        put_radius(out, safer_reported_radius(r));
        sf_put(out, "</th>");
    }
    sf_put(out, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < page->run_count; i++) {
        const safer_summary *s = &page->runs[i].summary;
        put_radius_row(out, page, i, 1);
        if (sf_report_run_has_votes(&page->runs[i]) && s->labelled && !s->about_predictions)
            put_radius_row(out, page, i, 0);
    }
    sf_put(out, "</tbody></table></div>\n");
}

/* -------------------------------------------------------------------- plots */

static void put_margin(sf_writer *out, const sf_page *page, size_t i)
{
    char name[32];
    snprintf(name, sizeof name, "margin-%zu", i);
    sf_putf(out, "<figure class=\"margin\" data-run=\"%zu\"><figcaption>Margin of every text", i);
    if (page->run_count > 1) {
        sf_put(out, ": ");
        sf_page_name(out, &page->runs[i], i);
    }
    sf_put(out, "</figcaption>\n");
    sf_plot_margin(out, &page->runs[i], name, 0);
    sf_put(out, "</figure>\n");
}

static const char *flat_of(const sf_plot *plot, const sf_page *page)
{
    return plot->flat ? plot->flat(page->runs, page->run_count) : NULL;
}

static void put_plots(sf_writer *out, const sf_page *page)
{
    sf_put(out, "<section aria-labelledby=\"plots\"><h2 id=\"plots\">Plots</h2>\n<div class=\"plots\">\n");
    for (const sf_plot *plot = sf_plots; plot->name; plot++) {
        if (!sf_plot_applies(plot, page->runs, page->run_count) || flat_of(plot, page)) continue;
        sf_putf(out, "<figure><figcaption>%s</figcaption>\n", plot->title);
        plot->draw(out, page->runs, page->run_count, plot->name, 0);
        sf_put(out, "</figure>\n");
    }
    for (size_t i = 0; i < page->run_count; i++)
        if (sf_report_run_has_votes(&page->runs[i]) && !sf_plot_margin_flat(&page->runs[i])) put_margin(out, page, i);
    sf_put(out, "</div>\n");
    for (const sf_plot *plot = sf_plots; plot->name; plot++)
        if (sf_plot_applies(plot, page->runs, page->run_count) && flat_of(plot, page))
            sf_putf(out, "<p class=\"flat\"><strong>%s</strong>: %s.</p>\n", plot->title, flat_of(plot, page));
    for (size_t i = 0; i < page->run_count; i++) {
        const sf_report_run *run = &page->runs[i];
        if (!sf_report_run_has_votes(run) || !sf_plot_margin_flat(run)) continue;
        sf_put(out, "<p class=\"flat\"><strong>Margin of every text</strong> of ");
        sf_page_name(out, run, i);
        sf_putf(out, ": %s.</p>\n", sf_plot_margin_flat(run));
    }
    sf_put(out, "</section>\n");
}

/* -------------------------------------------------------------------- table */

enum { IN_EDITS = 1, IN_ATTACKS }; /* columns that are there only with runs that delete words, or with attacks */

static const struct {
    const char *key, *meaning;
    int numbers, only;
} columns[] = {
    {"row", "place in the data", 1, 0},
    {"id", "the text's id", 0, 0},
    {"label", "in the data", 0, 0},
    {"prediction", "of the smoothed classifier", 0, 0},
    {"base", "answer of the base model", 0, 0},
    {"words", "in the text", 1, 0},
    {"slots", "words that may change", 1, 0},
    {"bound", "lower bound on the vote, cut", 1, 0},
    {"q", "how far the vote can be moved, rounded up; with edits: by those asked for", 1, 0},
    {"radius", "words an attacker may change without effect", 1, 0},
    {"edits", "edits without effect beside synonyms, of those asked for", 1, IN_EDITS},
    {"certified", "at the asked radius, and edits", 0, 0},
    {"queries", "of the base model", 1, 0},
    {"attack", "what attacks made of it", 0, IN_ATTACKS},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static int has_edits(const sf_page *page)
{
    int found = 0;
    for (size_t i = 0; i < page->run_count; i++) found |= sf_report_run_has_edits(&page->runs[i]);
    return found;
}

static const char *const fates[] = {"–", "held", "fell", "wrong before"}; /* of sf_fate; web/report.js has them too */

static void put_cell(sf_writer *out, const char *string, size_t most)
{
    sf_put(out, "<td><bdi>");
    if (*string)
        sf_put_html_short(out, string, most);
    else
        sf_put(out, "–");
    sf_put(out, "</bdi></td>");
}

static void put_myriads(sf_writer *out, uint32_t n)
{
    sf_putf(out, "<td class=\"n\">%u.%04u</td>", n / 10000, n % 10000);
}

/* Of the first run. */
static void put_row(sf_writer *out, const sf_page *page, size_t k)
{
    const sf_report_run *run = &page->runs[0];
    const sf_record *e = &run->records[k];
    sf_putf(out, "<tr><td class=\"n\">%zu</td>", sf_page_row(run->count, k) + 1);
    put_cell(out, e->id, ID_LENGTH);
    put_cell(out, sf_report_run_label(run, e->label), LABEL_LENGTH);
    put_cell(out, e->abstained ? "abstained" : sf_report_run_label(run, e->prediction), LABEL_LENGTH);
    put_cell(out, sf_report_run_label(run, e->base), LABEL_LENGTH);
    sf_putf(out, "<td class=\"n\">%zu</td><td class=\"n\">%zu</td>", e->words, e->slots);
    if (sf_report_run_has_votes(run)) {
        put_myriads(out, sf_myriads_down(e->bound));
        put_myriads(out, sf_myriads_up(e->q));
    } else {
        sf_put(out, "<td class=\"n\">–</td><td class=\"n\">–</td>");
    }
    sf_put(out, "<td class=\"n\">");
    put_radius(out, e->radius);
    sf_put(out, "</td>");
    if (has_edits(page) && sf_report_run_has_edits(run))
        sf_putf(out, "<td class=\"n\">%zu</td>", e->edits);
    else if (has_edits(page))
        sf_put(out, "<td class=\"n\">–</td>");
    sf_putf(out, "<td>%s</td><td class=\"n\">%llu</td>", e->certified ? "yes" : "no", (unsigned long long)e->queries);
    if (page->attack_count) sf_putf(out, "<td>%s</td>", fates[sf_report_fate(page->attacks, page->attack_count, 0, k)]);
    sf_put(out, "</tr>\n");
}

static void put_table(sf_writer *out, const sf_page *page)
{
    const sf_report_run *run = &page->runs[0];
    size_t shown = run->shown < SF_STATIC_ROWS ? run->shown : SF_STATIC_ROWS;
    sf_put(out, "<section aria-labelledby=\"texts\"><h2 id=\"texts\" tabindex=\"-1\">Texts</h2>\n"
                "<div id=\"controls\" hidden></div>\n<p id=\"shown\" class=\"soft\" role=\"status\">");
    if (shown < run->count || page->run_count > 1) {
        sf_put(out, "The first ");
        sf_put_count(out, shown);
        sf_put(out, " of ");
        sf_put_count(out, run->shown);
        sf_put(out, run->shown < run->count ? " texts of the sample of " : " texts of ");
        put_name(out, run);
        sf_put(out, "; all of them can be seen with JavaScript.");
    }
    for (size_t i = 0; i < page->run_count; i++) {
        const sf_report_run *each = &page->runs[i];
        if (each->shown == each->count) continue;
        sf_put(out, " Of the ");
        sf_put_count(out, each->count);
        sf_put(out, " texts of ");
        put_name(out, each);
        sf_put(out, " this page lists ");
        sf_put_count(out, each->shown);
        sf_put(out, ", spread evenly over them; figures and pictures are about all.");
    }
    sf_put(out,
           "</p>\n<div id=\"window\" class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of texts\">"
           "<table id=\"table\" class=\"plain\">\n<thead><tr>");
    for (size_t c = 0; c < COLUMNS; c++) {
        if (columns[c].only == IN_EDITS && !has_edits(page)) continue;
        if (columns[c].only == IN_ATTACKS && !page->attack_count) continue;
        sf_putf(out, "<th scope=\"col\"%s data-key=\"%s\" title=\"%s\">%s</th>",
                columns[c].numbers ? " class=\"n\"" : "", columns[c].key, columns[c].meaning, columns[c].key);
    }
    sf_put(out, "</tr></thead>\n<tbody>\n");
    for (size_t k = 0; k < shown; k++) put_row(out, page, k);
    sf_put(out, "</tbody></table></div></section>\n");
}

/* ----------------------------------------------------------- configurations */

static void put_value(sf_writer *out, const json_t *value)
{
    char *text = json_is_string(value) ? NULL : sf_json_text(value);
    const char *shown = json_is_string(value) ? json_string_value(value) : text;
    if (!shown)
        out->failed = 1;
    else
        sf_put_html_short(out, shown, 400);
    free(text);
}

/* A member of the configuration, or the members of one that is an object. */
static void put_member(sf_writer *out, const char *outer, const char *key, json_t *value)
{
    const char *inner;
    json_t *each;
    if (json_is_object(value)) {
        json_object_foreach(value, inner, each) put_member(out, key, inner, each);
        return;
    }
    sf_put(out, "<div><dt>");
    if (outer) {
        sf_put_html_short(out, outer, LABEL_LENGTH);
        sf_put(out, " ");
    }
    sf_put_html_short(out, key, LABEL_LENGTH);
    sf_put(out, "</dt><dd><bdi>");
    put_value(out, value);
    sf_put(out, "</bdi></dd></div>\n");
}

static void put_configurations(sf_writer *out, const sf_page *page)
{
    sf_put(out, "<section aria-labelledby=\"runs\"><h2 id=\"runs\">How it was run</h2>\n");
    for (size_t i = 0; i < page->run_count; i++) {
        const char *key;
        json_t *value;
        sf_put(out, "<h3>");
        put_mark(out, i);
        put_name(out, &page->runs[i]);
        sf_put(out, "</h3>\n<dl class=\"config\">\n<div><dt>file</dt><dd><bdi>");
        sf_put_html_short(out, page->runs[i].path, 400);
        sf_put(out, "</bdi></dd></div>\n");
        json_object_foreach(page->runs[i].json, key, value) put_member(out, NULL, key, value);
        sf_put(out, "</dl>\n");
    }
    sf_put(out, "<p class=\"soft\">A certificate is about the smoothed classifier and the lexicon's synonyms, "
                "one word for one word. "
                "The chance that a text that could be attacked gets a certificate is at most <code>delta_text</code>; "
                "it is not the chance that a given certificate is wrong. For texts marked exact that chance is 0; of a "
                "remote model (arch exec, http or callback) this assumes that the model is a function of the text. "
                "A certificate by interval bounds is about the model itself, and is exact; so are votes of groups. "
                "Intervals (Wilson, 95%) say what another sample of such texts might give. "
                "When this page was written every record was checked by itself: its decision follows from its counts "
                "and its q. Whether these are those of text, lexicon and model, <code>safer verify</code> says."
                "</p></section>\n");
}

/* ------------------------------------------------------- for the script */

typedef long long (*number_of)(const sf_record *record);

static long long record_label(const sf_record *e) { return e->label; }
static long long record_prediction(const sf_record *e) { return e->prediction; }
static long long record_base(const sf_record *e) { return e->base; }
static long long record_target(const sf_record *e) { return e->target; }
static long long record_words(const sf_record *e) { return (long long)e->words; }
static long long record_slots(const sf_record *e) { return (long long)e->slots; }
static long long record_visible(const sf_record *e) { return (long long)e->visible; }
static long long record_bound(const sf_record *e) { return sf_myriads_down(e->bound); }
static long long record_q(const sf_record *e) { return sf_myriads_up(e->q); }
static long long record_radius(const sf_record *e) { return e->radius == SAFER_ALL ? -1 : (long long)e->radius; }
static long long record_edits(const sf_record *e) { return (long long)e->edits; }
static long long record_tokens(const sf_record *e) { return (long long)e->tokens; }
static long long record_queries(const sf_record *e) { return (long long)e->queries; }
static long long record_n(const sf_record *e) { return (long long)e->n; }
static long long record_margin(const sf_record *e) { return sf_myriads_below(e->margin); }
static long long record_flags(const sf_record *e)
{
    return e->certified | e->abstained << 1 | e->exact << 2 | sf_record_answered(e) << 3;
}

/* A column of the table as an array. */
static void put_column(sf_writer *out, const sf_report_run *run, const char *name, number_of number)
{
    sf_putf(out, ",\"%s\":[", name);
    for (size_t k = 0; k < run->shown; k++) sf_putf(out, "%s%lld", k ? "," : "", number(&run->records[k]));
    sf_put(out, "]");
}

/* What attacks made of the texts: numbers of sf_fate. */
static void put_fates(sf_writer *out, const sf_page *page, size_t run)
{
    size_t on_it = 0;
    for (size_t a = 0; a < page->attack_count; a++) on_it += page->attacks[a].of_run[run];
    if (!on_it) return;
    sf_put(out, ",\"attack\":[");
    for (size_t k = 0; k < page->runs[run].shown; k++)
        sf_putf(out, "%s%d", k ? "," : "", (int)sf_report_fate(page->attacks, page->attack_count, run, k));
    sf_put(out, "]");
}

static void put_run_data(sf_writer *out, const sf_page *page, size_t number)
{
    const sf_report_run *run = &page->runs[number];
    static const struct {
        const char *name;
        number_of number;
    } numbers[] = {
        {"label", record_label},     {"prediction", record_prediction}, {"base", record_base},
        {"target", record_target},   {"words", record_words},           {"slots", record_slots},
        {"visible", record_visible}, {"bound", record_bound},           {"q", record_q},
        {"radius", record_radius},   {"queries", record_queries},       {"n", record_n},
        {"flags", record_flags},
    };
    sf_put(out, "{\"name\":");
    sf_put_json_short(out, run->name, NAME_LENGTH);
    sf_putf(out, ",\"rows\":%zu,\"texts\":%zu,\"lexicon\":%d,\"remote\":%d,\"labels\":[", run->count,
            run->has_data ? page->texts : 0, run->has_data ? run->lexicon : -1, run->config.remote != 0);
    for (size_t k = 0; k < run->config.classes; k++) {
        if (k) sf_put(out, ",");
        sf_put_json_short(out, sf_report_run_label(run, (int)k), LABEL_LENGTH);
    }
    sf_put(out, "],\"id\":[");
    for (size_t k = 0; k < run->shown; k++) {
        if (k) sf_put(out, ",");
        sf_put_json_short(out, run->records[k].id, ID_LENGTH);
    }
    sf_put(out, "]");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put_column(out, run, numbers[i].name, numbers[i].number);
    if (!sf_report_run_has_votes(run)) put_column(out, run, "margin", record_margin);
    if (sf_report_run_has_edits(run)) {
        sf_putf(out, ",\"editsAsked\":%zu,\"editKind\":\"%s\",\"radiusAsked\":%lld", run->summary.edits,
                safer_edit_kind_name(run->summary.edit_kind),
                run->config.radius == SAFER_ALL ? -1LL : (long long)run->config.radius);
        put_column(out, run, "edits", record_edits);
        put_column(out, run, "tokens", record_tokens);
    }
    put_fates(out, page, number);
    sf_put(out, "}");
}

static void put_data(sf_writer *out, const sf_page *page)
{
    sf_putf(out, "<script type=\"application/json\" id=\"data\">{\"textsPerBlock\":%d,\"wordsPerBlock\":%d,\"runs\":[",
            SF_TEXTS_PER_BLOCK, SF_WORDS_PER_BLOCK);
    for (size_t i = 0; i < page->run_count; i++) {
        if (i) sf_put(out, ",");
        put_run_data(out, page, i);
    }
    sf_put(out, "]}</script>\n");
}

/* --------------------------------------------------------------- the page */

static void put_head(sf_writer *out, const sf_page *page)
{
    unsigned long long nonce = (unsigned long long)nonce_of(page);
    sf_put(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta name=\"color-scheme\" content=\"light dark\">\n");
    sf_putf(out,
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
            "style-src 'nonce-%016llx'; script-src 'nonce-%016llx'\">\n",
            nonce, nonce);
    sf_put(out, page->title ? "<title>" : "<title>safer: ");
    if (page->title) sf_put_html_short(out, page->title, TITLE_LENGTH);
    for (size_t i = 0; i < page->run_count && !page->title; i++) {
        if (i) sf_put(out, ", ");
        sf_put_html_short(out, page->runs[i].name, NAME_LENGTH);
    }
    sf_putf(out, "</title>\n<style nonce=\"%016llx\">\n", nonce);
    sf_put(out, sf_asset_report_css);
    sf_put(out, "</style>\n</head>\n");
}

void sf_page_begin(sf_writer *out, const sf_page *page)
{
    put_head(out, page);
    sf_put(out, "<body>\n<a class=\"skip\" href=\"#texts\">Skip to the texts</a>\n<header><h1>");
    if (page->title)
        sf_put_html_short(out, page->title, TITLE_LENGTH);
    else
        sf_put(out, "Certified robustness");
    sf_put(out,
           "</h1>\n<p>How many texts are classified rightly, and for how many it is proven that no exchange of words "
           "for their synonyms changes the answer. No figure is rounded up.</p></header>\n<main>\n");
    if (page->notes.length) {
        sf_put(out, "<section aria-labelledby=\"notes\"><h2 id=\"notes\">Notes</h2>\n<p class=\"notes\" dir=\"auto\">");
        sf_put_html(out, page->notes.bytes, page->notes.length);
        sf_put(out, "</p></section>\n");
    }
    sf_put(out, "<section aria-labelledby=\"figures\"><h2 id=\"figures\">Figures</h2>\n<div class=\"runs\">\n");
    for (size_t i = 0; i < page->run_count; i++) put_figures(out, &page->runs[i], i);
    sf_put(out, "</div>\n");
    put_radius_table(out, page);
    sf_put(out, "</section>\n");
    sf_page_pairs(out, page);
    sf_page_classes(out, page);
    put_plots(out, page);
    sf_page_costs(out, page);
    sf_page_attacks(out, page);
    put_table(out, page);
    put_configurations(out, page);
    sf_put(out, "</main>\n<footer class=\"soft\">Written by safer " SAFER_VERSION ".</footer>\n");
    put_data(out, page);
}

void sf_page_end(sf_writer *out, const sf_page *page)
{
    sf_putf(out, "<script nonce=\"%016llx\">\n", (unsigned long long)nonce_of(page));
    sf_put(out, sf_asset_report_js);
    sf_put(out, "</script>\n</body>\n</html>\n");
}
