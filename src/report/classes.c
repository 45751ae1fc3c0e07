/* The classes of a run, on the page and as CSV: what is left of recall and precision, and what was answered. */
#include "report/page.h"

enum { MOST_COLUMNS = 20, LABEL_LENGTH = 40 }; /* answers beside each other on the page, characters of a label */

static void put_label(sf_writer *out, const char *label)
{
    sf_put(out, "<bdi>");
    sf_put_html_short(out, label, LABEL_LENGTH);
    sf_put(out, "</bdi>");
}

static void put_share(sf_writer *out, safer_figure f)
{
    sf_put(out, "<td>");
    sf_put_percent(out, f.part, f.whole);
    if (f.whole) {
        sf_put(out, " <span class=\"soft\">(");
        sf_put_interval(out, f.part, f.whole);
        sf_put(out, ")</span>");
    }
    sf_put(out, "</td>");
}

static void put_answers(sf_writer *out, const safer_class_summary *c, size_t number, size_t classes)
{
    for (size_t k = 0; k <= classes; k++) {
        sf_put(out, k == number ? "<td class=\"good\">" : "<td>");
        sf_put_count(out, c->answers[k]);
        if (k == number) {
            sf_put(out, " (");
            sf_put_count(out, c->certified_answered);
            sf_put(out, ")");
        }
        sf_put(out, "</td>");
    }
}

static void put_table(sf_writer *out, const sf_report_run *run)
{
    const safer_summary *s = &run->summary;
    const int with_answers = s->classes <= MOST_COLUMNS;
    sf_put(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Classes\">"
                "<table class=\"plain classes\"><caption>");
    put_label(out, run->name);
    sf_put(out, "</caption>\n<thead><tr><th scope=\"col\">label</th><th scope=\"col\">texts</th>"
                "<th scope=\"col\">certified recall (95%)</th><th scope=\"col\">certified precision (95%)</th>");
    for (size_t k = 0; with_answers && k < s->classes; k++) {
        sf_put(out, "<th scope=\"col\">answered ");
        put_label(out, s->by_class[k].label);
        sf_put(out, "</th>");
    }
    sf_putf(out, "%s</tr></thead>\n<tbody>\n", with_answers ? "<th scope=\"col\">abstained</th>" : "");
    for (size_t k = 0; k < s->classes; k++) {
        sf_put(out, "<tr><th scope=\"row\">");
        put_label(out, s->by_class[k].label);
        sf_put(out, "</th><td>");
        sf_put_count(out, s->by_class[k].texts);
        sf_put(out, "</td>");
        put_share(out, safer_summary_recall(s, k));
        put_share(out, safer_summary_precision(s, k));
        if (with_answers) put_answers(out, &s->by_class[k], k, s->classes);
        sf_put(out, "</tr>\n");
    }
    sf_put(out, "</tbody></table></div>\n");
}

void sf_page_classes(sf_writer *out, const sf_page *page)
{
    size_t labelled = 0;
    for (size_t i = 0; i < page->run_count; i++) labelled += page->runs[i].summary.labelled;
    if (!labelled) return;
    sf_put(out,
           "<section aria-labelledby=\"classes\"><h2 id=\"classes\">Classes</h2>\n"
           "<p class=\"soft\">Certified recall and precision are what is left of them, at least, when an attacker "
           "exchanges words in every text, within the asked radius. Recall: of the texts of a label, those that "
           "are certified and answered. Precision: those, of themselves and all texts of other labels that are not "
           "certified and answered. Then how often each label was answered to the texts as they are; in brackets: "
           "of these, certified.</p>\n");
    for (size_t i = 0; i < page->run_count; i++)
        if (page->runs[i].summary.labelled) put_table(out, &page->runs[i]);
    sf_put(out, "</section>\n");
}

/* ---------------------------------------------------------------------- CSV */

void sf_csv_classes(sf_writer *out, const sf_report_run *runs, size_t count)
{
    sf_put(out, "run,label,texts,certified,certified_answered,recall,recall_low,recall_high,precision,precision_low,"
                "precision_high\r\n");
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < runs[i].summary.classes; k++) {
            const safer_summary *s = &runs[i].summary;
            const safer_class_summary *c = &s->by_class[k];
            const safer_figure recall = safer_summary_recall(s, k), precision = safer_summary_precision(s, k);
            sf_put_csv(out, runs[i].name);
            sf_put(out, ",");
            sf_put_csv(out, c->label);
            sf_putf(out, ",%zu,%zu,%zu", c->texts, c->certified, c->certified_answered);
            sf_csv_share(out, recall.part, recall.whole);
            sf_csv_share(out, precision.part, precision.whole);
            sf_put(out, "\r\n");
        }
}

void sf_csv_confusion(sf_writer *out, const sf_report_run *runs, size_t count)
{
    sf_put(out, "run,label,answer,abstained,texts,certified_answered\r\n");
    for (size_t i = 0; i < count; i++) {
        const safer_summary *s = &runs[i].summary;
        for (size_t k = 0; k < s->classes; k++)
            for (size_t a = 0; s->by_class[k].answers && a <= s->classes; a++) {
                sf_put_csv(out, runs[i].name);
                sf_put(out, ",");
                sf_put_csv(out, s->by_class[k].label);
                sf_put(out, ",");
                sf_put_csv(out, a < s->classes ? s->by_class[a].label : "");
                sf_putf(out, ",%d,%zu,%zu\r\n", a == s->classes, s->by_class[k].answers[a],
                        a == k ? s->by_class[k].certified_answered : 0);
            }
    }
}
