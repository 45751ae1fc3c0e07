/* What was tried to choose a kernel or an architecture. */
#include "trials.h"

json_t *cli_trials_json(const safer_choice *c, const char *what)
{
    json_t *trials = json_array();
    for (size_t i = 0; i < c->trial_count; i++) {
        const safer_trial *t = &c->trials[i];
        cli_append(trials, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:f}", what, t->name, "texts",
                                     (json_int_t)t->texts, "certified_answered", (json_int_t)t->certified_answered,
                                     "smoothed_correct", (json_int_t)t->smoothed_correct, "won", (json_int_t)t->won,
                                     "lost", (json_int_t)t->lost, "p_value", t->p_value, "queries",
                                     (json_int_t)t->queries, "seconds", t->seconds));
    }
    return cli_need(json_pack("{s:s?, s:I, s:I, s:I, s:o}", "untried", c->untried, "labelled", (json_int_t)c->labelled,
                              "texts", (json_int_t)c->texts, "held_out", (json_int_t)c->held_out, "trials", trials));
}

/* Why it was taken or not: it is compared with the best of those above it. */
static void print_reason(const safer_choice *c, size_t number)
{
    const safer_trial *t = &c->trials[number];
    if (number == c->best) printf("   chosen");
    if (number == c->best && number > 0) printf(": p %s", cli_p_value(t->p_value));
    if (number != c->best && t->won > t->lost) printf("   p %s", cli_p_value(t->p_value));
    if (t->texts < c->held_out) printf("   ended after %s", cli_texts(t->texts));
    printf("\n");
}

void cli_print_trials(const safer_choice *c, const char *plural, const char *with)
{
    int chance = 0;
    if (!c->trial_count) return;
    printf("%s%s tried on %s, %s%s\n", cli_bold(), plural, cli_texts(c->held_out), with, cli_plain());
    for (size_t i = 0; i < c->trial_count; i++) {
        const safer_trial *t = &c->trials[i];
        printf("  %-15s %6s%% certified and answered, %s queries per text", t->name,
               cli_percent(t->certified_answered, t->texts), cli_mean((double)t->queries / (double)t->texts, 1));
        print_reason(c, i);
        chance |= i != c->best && t->won > t->lost;
    }
    if (chance) printf("  p: how often chance alone makes one so much better than the best above it; chosen at 0.05\n");
    if (c->texts < c->labelled) printf("  of %s labelled texts these were drawn at random\n", cli_count(c->labelled));
}
