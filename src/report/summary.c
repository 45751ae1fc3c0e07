/* A summary of a run in Markdown, for a pull request.
 *
 * Everything from data stands in <code>, with every sign that Markdown could take for its own as a number: it cannot
 * make tables, links or pictures, nor call a user by name. */
#include "report/facts.h"

#include <string.h>

enum { MOST_LOSSES = 20, MOST_CHARACTERS = 80, MOST_OF_A_LINE = 1000 };

/* A string from data, or one that holds such. */
static void put_code(sf_writer *out, const char *text, size_t most)
{
    sf_put(out, "<code>");
    sf_put_markdown(out, text, most);
    sf_put(out, "</code>");
}

static void put_share(sf_writer *out, size_t part, size_t whole)
{
    double low, high;
    safer_interval(part, whole, &low, &high);
    const uint32_t least = sf_myriads_down(low), most = sf_myriads_up(high);
    sf_put(out, " | ");
    sf_put_percent(out, part, whole);
    sf_putf(out, " | %u.%02u%% to %u.%02u%% | ", least / 100, least % 100, most / 100, most % 100);
    sf_put_count(out, part);
    sf_put(out, " of ");
    sf_put_count(out, whole);
    sf_put(out, " |\n");
}

/* The figures of all texts, or those of classes. */
static void put_metrics(sf_writer *out, const sf_facts *facts, int of_classes)
{
    size_t rows = 0;
    for (size_t i = 0; i < facts->metric_count; i++) {
        const sf_metric *m = &facts->metrics[i];
        if (!m->label != !of_classes) continue;
        if (!rows++) sf_put(out, "| figure | share | 95% interval | texts |\n|---|---:|---|---:|\n");
        sf_putf(out, i ? "| %s" : "| **%s**", m->name); /* the headline */
        if (m->label) {
            sf_put(out, " of ");
            put_code(out, m->label, MOST_CHARACTERS);
        } else if (m->slice) {
            sf_putf(out, ", %s", m->slice);
        }
        put_share(out, m->part, m->whole);
    }
    if (rows) sf_put(out, "\n");
}

static void put_gates(sf_writer *out, const sf_facts *facts)
{
    sf_put(out, "### Requirements\n\n");
    if (!facts->gate_count) sf_put(out, "None was stated.\n");
    for (size_t i = 0; i < facts->gate_count; i++) {
        sf_put(out, facts->gates[i].met ? "- met: " : "- **not met**: ");
        put_code(out, facts->gates[i].message, MOST_OF_A_LINE);
        sf_put(out, "\n");
    }
    sf_put(out, "\n");
}

static void put_losses(sf_writer *out, const sf_facts *facts)
{
    sf_put(out, "### Certificates lost against ");
    put_code(out, facts->before.name, MOST_CHARACTERS);
    sf_put(out, "\n\n");
    put_code(out, facts->compared, MOST_OF_A_LINE);
    sf_put(out, "\n\n");
    if (!facts->loss_count) return;
    sf_put(out, "| row | text | label | now |\n|---:|---|---|---|\n");
    for (size_t i = 0; i < facts->loss_count && i < MOST_LOSSES; i++) {
        const sf_loss *loss = &facts->losses[i];
        sf_putf(out, "| %zu | ", loss->row);
        put_code(out, loss->id, MOST_CHARACTERS);
        sf_put(out, " | ");
        put_code(out, loss->label, MOST_CHARACTERS);
        sf_put(out, " | ");
        put_code(out, loss->reason, MOST_CHARACTERS);
        sf_put(out, " |\n");
    }
    if (facts->loss_count > MOST_LOSSES)
        sf_putf(out, "\nand %zu more: `results.sarif` has all.\n", facts->loss_count - MOST_LOSSES);
    sf_put(out, "\n");
}

static void put_assessment(sf_writer *out, const sf_facts *facts)
{
    const sf_artifact *const artifacts[] = {&facts->file, &facts->model, &facts->lexicon, &facts->data};
    sf_put(out, "### What was assessed\n\n| | |\n|---|---|\n");
    for (size_t i = 0; i < facts->term_count; i++) {
        sf_putf(out, "| %s | ", facts->terms[i].name);
        put_code(out, facts->terms[i].value, MOST_OF_A_LINE);
        sf_put(out, " |\n");
    }
    for (size_t i = 0; i < 4; i++) {
        sf_putf(out, "| %s | ", artifacts[i]->role);
        put_code(out, artifacts[i]->name, MOST_CHARACTERS);
        sf_putf(out, " %s |\n", artifacts[i]->sha256 ? artifacts[i]->sha256 : "(remote)");
    }
    sf_putf(out, "| date | %s |\n| safer | %s |\n\n", facts->date, safer_version());
}

void sf_put_summary(sf_writer *out, const sf_facts *facts)
{
    sf_put(out, "## Certified robustness of ");
    put_code(out, facts->model.name, MOST_CHARACTERS);
    sf_put(out, "\n\n");
    if (facts->caution) {
        sf_put(out, "**Caution**: ");
        put_code(out, facts->caution, MOST_OF_A_LINE);
        sf_put(out, "\n\n");
    }
    put_metrics(out, facts, 0);
    put_metrics(out, facts, 1);
    put_gates(out, facts);
    if (facts->baseline) put_losses(out, facts);
    sf_put(out, "### What is not proven\n\n");
    for (size_t i = 0; i < facts->limit_count; i++) {
        sf_put(out, "- ");
        sf_put_markdown(out, facts->limits[i], MOST_OF_A_LINE);
        sf_put(out, "\n");
    }
    sf_put(out, "- ");
    sf_put_markdown(out, facts->unchecked, MOST_OF_A_LINE);
    sf_put(out, "\n\n");
    put_assessment(out, facts);
}
