/* The words that cost a run its certificates. */
#include "report/costs.h"

#include "base/memory.h"
#include "base/number.h"
#include "base/progress.h"
#include "certify/summary.h"
#include "draw/slots.h"
#include "report/page.h"
#include "stats/binomial.h"
#include "stats/edits.h"

#include <stdlib.h>
#include <string.h>

/* A slot that makes q larger. */
typedef struct slot {
    double overlap;
    uint32_t word;
} slot;

typedef struct counting {
    const sf_report_run *run;
    const safer_lexicon *lexicon;
    const safer_data *data;
    safer_reader *reader;
    sf_slots slots;
    slot *list; /* of the text at hand, rising */
    size_t length, capacity;
    const sf_record *record; /* of the text at hand */
    size_t lost;
    size_t *texts, *gains; /* of every word of the lexicon */
    uint32_t *rank;        /* of every word: its place among those chosen, from 0, or SF_NONE */
} counting;

static int by_overlap(const void *a, const void *b)
{
    const slot *x = a, *y = b;
    if (x->overlap < y->overlap || x->overlap > y->overlap) return x->overlap < y->overlap ? -1 : 1;
    return (x->word > y->word) - (x->word < y->word);
}

/* Whether a text would count for the headline of the run, were it certified. */
static int is_lost(const sf_report_run *run, const sf_record *r)
{
    const int all = run->summary.about_predictions || !run->summary.labelled;
    return !r->certified && sf_record_answered(r) && (all || r->label >= 0);
}

/* Reads the text in a place of those shown, if it is lost. */
static safer_status read_lost(counting *c, size_t place, int *lost, safer_error *error)
{
    safer_status status;
    safer_row row;
    c->record = &c->run->records[place];
    c->length = 0;
    *lost = is_lost(c->run, c->record);
    if (!*lost) return SAFER_OK;
    SF_TRY(safer_data_read(&row, &c->reader, c->data, sf_page_row(c->run->count, place), error));
    SF_TRY(sf_slots_read(&c->slots, c->lexicon, row.text, row.text_length, error));
    if (sf_grow(&c->list, &c->capacity, c->slots.slot_count + 1, sizeof *c->list)) return sf_fail_memory(error);
    const uint32_t deletion = sf_deletion_at(c->run->config.options.deletion, c->record->tokens);
    for (size_t s = 0; s < c->slots.slot_count && s < c->record->visible; s++) {
        const uint32_t word = c->slots.words[c->slots.slots[s]].word;
        const double overlap = c->lexicon->overlap[word];
        if (overlap >= 1) continue;
        c->list[c->length++] = (slot){deletion ? sf_deletion_overlap(deletion, overlap) : overlap, word};
    }
    qsort(c->list, c->length, sizeof *c->list, by_overlap);
done:
    return status;
}

/* Whether the text at hand is certified at this product of overlaps. */
static int is_certified(const counting *c, double product)
{
    const sf_config *config = &c->run->config;
    double q = sf_complement_up(product);
    if (config->deletes)
        q = sf_edits_q(config->options.deletion, c->record->tokens, config->options.edit_kind, config->options.edits,
                       q);
    return q < 0.5 && c->record->bound > sf_null_probability(q);
}

/* The same without the slots of a word or, of SF_NONE, of all words with a rank below `below`. At one half nothing is
 * certified, and factors only make it smaller. */
static int is_certified_without(const counting *c, uint32_t word, uint32_t below)
{
    double product = 1;
    size_t taken = 0;
    for (size_t i = 0; i < c->length && taken < c->run->config.radius && product > 0.5; i++) {
        if (word == SF_NONE ? c->rank[c->list[i].word] < below : c->list[i].word == word) continue;
        product = sf_multiply_down(product, c->list[i].overlap);
        taken++;
    }
    return product > 0.5 && is_certified(c, product);
}

/* Counts the text at hand for every word that makes its q; equal words stand side by side. */
static void count_words(counting *c)
{
    for (size_t i = 0; i < c->length && i < c->run->config.radius; i++) {
        const uint32_t word = c->list[i].word;
        if (i && c->list[i - 1].word == word) continue;
        c->texts[word]++;
        c->gains[word] += (size_t)is_certified_without(c, word, 0);
    }
}

/* Puts the words with the largest gains in order: by gain, then by texts, then as in the lexicon. */
static void choose(sf_costs *out, const counting *c)
{
    for (uint32_t w = 0; w < c->lexicon->words.count; w++) {
        const sf_cost new = {.word = w, .texts = c->texts[w], .gain = c->gains[w]};
        size_t at = out->count;
        while (at && (out->words[at - 1].gain < new.gain ||
                      (out->words[at - 1].gain == new.gain && out->words[at - 1].texts < new.texts)))
            at--;
        if (!new.gain || at == SF_COSTS) continue;
        if (out->count < SF_COSTS) out->count++;
        memmove(out->words + at + 1, out->words + at, (out->count - 1 - at) * sizeof *out->words);
        out->words[at] = new;
    }
}

/* Of a lost text, from which word on it is certified; what is certified without some words is without more. */
static void count_together(sf_costs *out, const counting *c)
{
    uint32_t k = 0;
    while (k < out->count && !is_certified_without(c, SF_NONE, k + 1)) k++;
    for (; k < out->count; k++) out->words[k].together++;
}

/* Goes through the lost texts: once to count words, once for those chosen together. */
static safer_status walk(counting *c, sf_costs *chosen, const safer_progress *progress, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_meter meter = {0};
    sf_meter_start(&meter, progress, chosen ? "protecting words together" : "looking for words that cost certificates",
                   c->run->shown);
    for (size_t k = 0; k < c->run->shown && !sf_meter_cancelled(&meter); k++) {
        int lost;
        SF_TRY(read_lost(c, k, &lost, error));
        if (lost && chosen)
            count_together(chosen, c);
        else if (lost)
            count_words(c);
        c->lost += (size_t)(lost && !chosen);
        sf_meter_add(&meter, 1, 0);
    }
    status = sf_meter_finish(&meter, error);
done:
    return status;
}

safer_status sf_report_costs(sf_costs *out, const sf_report_run *run, const safer_lexicon *lexicon,
                             const safer_data *data, const safer_progress *progress, safer_error *error)
{
    safer_status status = SAFER_OK;
    const size_t words = lexicon->words.count;
    counting c = {.run = run, .lexicon = lexicon, .data = data};
    *out = (sf_costs){.lexicon = lexicon};
    c.texts = sf_calloc(words + 1, sizeof *c.texts);
    c.gains = sf_calloc(words + 1, sizeof *c.gains);
    c.rank = sf_alloc(words + 1, sizeof *c.rank);
    if (!c.texts || !c.gains || !c.rank) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(walk(&c, NULL, progress, error));
    choose(out, &c);
    out->lost = c.lost;
    for (size_t w = 0; w < words; w++) c.rank[w] = SF_NONE;
    for (uint32_t k = 0; k < out->count; k++) c.rank[out->words[k].word] = k;
    if (out->count) SF_TRY(walk(&c, out, progress, error));
done:
    safer_reader_free(c.reader);
    sf_slots_free(&c.slots);
    free(c.list);
    free(c.texts);
    free(c.gains);
    free(c.rank);
    return status;
}

/* ----------------------------------------------------------------- the page */

static void put_word(sf_writer *out, const sf_costs *costs, const sf_cost *cost)
{
    const safer_word word = safer_lexicon_word(costs->lexicon, cost->word);
    sf_put(out, "<tr><th scope=\"row\"><bdi>");
    sf_put_html_short(out, word.word, 40);
    sf_put(out, "</bdi></th><td>");
    sf_put_fixed(out, sf_myriads_down(word.overlap) / 1e4, 4);
    sf_put(out, "</td><td><bdi>");
    if (word.worst != SAFER_NO_WORD) sf_put_html_short(out, safer_lexicon_word(costs->lexicon, word.worst).word, 40);
    sf_put(out, "</bdi></td>");
    for (int i = 0; i < 3; i++) {
        sf_put(out, i ? "<td>+" : "<td>");
        sf_put_count(out, i == 0 ? cost->texts : i == 1 ? cost->gain : cost->together);
        sf_put(out, "</td>");
    }
    sf_put(out, "</tr>\n");
}

static void put_costs(sf_writer *out, const sf_report_run *run, size_t number, const sf_costs *costs)
{
    sf_put(out, "<h3>");
    sf_page_name(out, run, number);
    sf_put(out, "</h3>\n<p>");
    sf_put_count(out, costs->lost);
    sf_putf(out, costs->lost == 1 ? " text is" : " texts are");
    sf_put(out, " answered clearly, and as the certificate would say, but not certified");
    if (run->shown < run->count) sf_put(out, ", of those that this page lists");
    sf_put(out, costs->count ? ".</p>\n" : "; no word alone keeps any of them from it.</p>\n");
    if (!costs->count) return;
    sf_put(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Words that cost certificates\">"
                "<table class=\"plain classes\"><thead><tr><th scope=\"col\">word</th><th scope=\"col\">overlap</th>"
                "<th scope=\"col\">worst synonym</th><th scope=\"col\">stands in</th>"
                "<th scope=\"col\">certified without it</th><th scope=\"col\">and those above</th></tr></thead>\n"
                "<tbody>\n");
    for (size_t i = 0; i < costs->count; i++) put_word(out, costs, &costs->words[i]);
    sf_put(out, "</tbody></table></div>\n");
}

void sf_page_costs(sf_writer *out, const sf_page *page)
{
    size_t shown = 0;
    for (size_t i = 0; i < page->run_count; i++) shown += page->costs[i].lexicon && page->costs[i].lost;
    if (!shown) return;
    sf_put(
        out,
        "<section aria-labelledby=\"costs\"><h2 id=\"costs\">Words that cost certificates</h2>\n"
        "<p class=\"soft\">Certified without it: with the same votes, how many more texts would be certified against "
        "an attacker who may not exchange this word, wherever it stands (its overlap counts as 1); then without it "
        "and all words above it. “Stands in” counts the texts that are not certified in which it makes q larger. "
        "Protecting a word in the lexicon has this effect, and the word is no longer drawn either, so that a new "
        "run can gain more or less.</p>\n");
    for (size_t i = 0; i < page->run_count; i++)
        if (page->costs[i].lexicon && page->costs[i].lost) put_costs(out, &page->runs[i], i, &page->costs[i]);
    sf_put(out, "</section>\n");
}
