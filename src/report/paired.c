/* The runs of a report compared with each other, text by text: what `safer compare` says of them (compare.c has the
 * test). Runs about different texts, radii or edits are left out, and said to be. */
#include "report/page.h"

#include "base/memory.h"
#include "report/finished.h"
#include "stats/binomial.h"

static safer_comparison compare(const sf_report_run *runs, size_t first, size_t second)
{
    safer_comparison c = {.first = first, .second = second};
    for (size_t row = 0; row < runs[first].count; row++) {
        const int a = sf_report_run_held(&runs[first], row), b = sf_report_run_held(&runs[second], row);
        c.both += (size_t)(a && b);
        c.only_first += (size_t)(a && !b);
        c.only_second += (size_t)(!a && b);
        c.neither += (size_t)(!a && !b);
    }
    c.p_value = sf_sign_test(c.only_first, c.only_second);
    return c;
}

/* Why two runs cannot be compared; NULL: they can. Where no text has a label, none can hold. */
static const char *difference_of(const sf_report_run *a, const sf_report_run *b)
{
    const char *difference = sf_runs_differ(a->json, b->json);
    if (difference) return difference;
    return a->count == b->count && a->summary.labelled && b->summary.labelled ? NULL : " have no labels";
}

safer_status sf_report_pairs(sf_paired *out, const sf_report_run *runs, size_t count, safer_error *error)
{
    *out = (sf_paired){.pairs = sf_alloc(count * count, sizeof *out->pairs)};
    if (!out->pairs) return sf_fail_memory(error);
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++) {
            const char *difference = difference_of(&runs[i], &runs[k]);
            if (!difference) {
                out->pairs[out->count++] = compare(runs, i, k);
                continue;
            }
            if (!out->left_out++) out->difference = difference;
        }
    return out->count ? sf_comparisons_adjust(out->pairs, out->count, error) : SAFER_OK;
}

/* ----------------------------------------------------------------- the page */

/* Rounded up. */
static void put_p(sf_writer *out, double p)
{
    const uint32_t n = sf_myriads_up(p);
    sf_put(out, "<td>");
    if (p < 1e-4)
        sf_put(out, "below 0.0001");
    else
        sf_putf(out, "%u.%04u", n / 10000, n % 10000);
    sf_put(out, "</td>");
}

static void put_pair(sf_writer *out, const sf_page *page, const safer_comparison *c)
{
    const size_t numbers[] = {c->both, c->only_first, c->only_second, c->neither};
    sf_put(out, "<tr><th scope=\"row\">");
    sf_page_name(out, &page->runs[c->first], c->first);
    sf_put(out, "</th><td>");
    sf_page_name(out, &page->runs[c->second], c->second);
    sf_put(out, "</td>");
    for (size_t i = 0; i < 4; i++) {
        sf_put(out, "<td>");
        sf_put_count(out, numbers[i]);
        sf_put(out, "</td>");
    }
    put_p(out, c->p_value);
    put_p(out, c->adjusted);
    sf_put(out, "</tr>\n");
}

void sf_page_pairs(sf_writer *out, const sf_page *page)
{
    const sf_paired *p = page->pairs;
    if (page->run_count < 2) return;
    sf_put(out, "<section aria-labelledby=\"pairs\"><h2 id=\"pairs\">Runs compared</h2>\n<p class=\"soft\">");
    if (p->count)
        sf_put(out,
               "Of the texts that are certified for their label and answered, at the asked radius: those of both "
               "runs, of one alone, of neither. p: McNemar’s exact test, two-sided: how often two equally good runs "
               "would differ so much or more. Then p after Holm, for all pairs together. Rounded up. ");
    if (p->left_out) {
        sf_put_count(out, p->left_out);
        sf_putf(out,
                p->left_out == 1 ? " pair of runs is not compared: they%s."
                                 : " pairs of runs are not compared: those of the first%s.",
                p->difference);
    }
    sf_put(out, "</p>\n");
    if (p->count) {
        sf_put(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Runs compared\">"
                    "<table class=\"plain classes\"><thead><tr><th scope=\"col\">run</th><th scope=\"col\">and run</th>"
                    "<th scope=\"col\">both</th><th scope=\"col\">first alone</th><th scope=\"col\">second alone</th>"
                    "<th scope=\"col\">neither</th><th scope=\"col\">p</th><th scope=\"col\">p, all pairs</th></tr>"
                    "</thead>\n<tbody>\n");
        for (size_t i = 0; i < p->count; i++) put_pair(out, page, &p->pairs[i]);
        sf_put(out, "</tbody></table></div>\n");
    }
    sf_put(out, "</section>\n");
}
