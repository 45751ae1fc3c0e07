/* Requirements on a run. */
#define _GNU_SOURCE
#include "gates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LOST = 5 }; /* printed; --json has all */

cli_gates cli_gates_default(void) { return (cli_gates){.require = (double)NAN}; }

void cli_gates_options(cli_options *options, cli_gates *gates)
{
    cli_add_real(options, "require", &gates->require, "ACC",
                 "exit 1 when less than ACC (0 to 1) is certified and answered");
    cli_add_strings(options, "require-recall", &gates->recall_words, "LABEL=X",
                    "exit 1 when less than X of the texts with this label is; may be given several times");
    cli_add_path(options, "not-worse-than", &gates->not_worse_than, "RUN",
                 "exit 1 when a paired exact test says that fewer texts hold than in this run");
}

/* LABEL=X, at the last '='. */
static safer_recall read_recall(const char *word, const cli_verb *verb)
{
    const char *equals = strrchr(word, '=');
    double least = -1;
    if (!equals || equals == word) cli_misuse(verb, "--require-recall %s: LABEL=X is expected", word);
    if (!cli_read_real(equals + 1, &least) || least < 0 || least > 1)
        cli_misuse(verb, "--require-recall %s: X is a share from 0 to 1", word);
    char *label = strndup(word, (size_t)(equals - word));
    if (!label) cli_no_memory();
    return (safer_recall){label, least};
}

void cli_gates_finish(cli_gates *gates, const cli_verb *verb)
{
    const size_t count = gates->recall_words.count;
    if (gates->require < 0 || gates->require > 1) cli_misuse(verb, "--require %g: a share from 0 to 1", gates->require);
    gates->recalls = calloc(count + 1, sizeof *gates->recalls);
    if (!gates->recalls) cli_no_memory();
    for (size_t i = 0; i < count; i++) gates->recalls[i] = read_recall(gates->recall_words.items[i], verb);
}

void cli_gates_check_labels(const cli_gates *gates, const safer_model *model, const cli_verb *verb)
{
    const size_t labels = safer_model_class_count(model);
    for (size_t i = 0; i < gates->recall_words.count; i++) {
        size_t k = 0;
        while (k < labels && strcmp(safer_model_label(model, k), gates->recalls[i].label) != 0) k++;
        if (k == labels)
            cli_misuse(verb, "--require-recall %s: the model has no label %s", gates->recall_words.items[i],
                       gates->recalls[i].label);
    }
}

const char *cli_gates_given(const cli_gates *gates)
{
    if (!isnan(gates->require)) return "--require";
    if (gates->recall_words.count) return "--require-recall";
    return gates->not_worse_than ? "--not-worse-than" : NULL;
}

void cli_gates_free(cli_gates *gates)
{
    for (size_t i = 0; gates->recalls && i < gates->recall_words.count; i++) free((char *)gates->recalls[i].label);
    free(gates->recalls);
    free(gates->recall_words.items);
}

/* ----------------------------------------------------------------- verdicts */

void cli_verdict_reserve(cli_verdict *verdict, const cli_gates *gates)
{
    verdict->gates = calloc(gates->recall_words.count + 2, sizeof *verdict->gates);
    if (!verdict->gates) cli_no_memory();
    verdict->count = gates->recall_words.count;
    if (!isnan(gates->require)) verdict->count++;
    if (gates->not_worse_than) verdict->count++;
}

safer_status cli_verdict_reach(cli_verdict *verdict, const cli_gates *gates, const safer_summary *summary,
                               const char *output, safer_error *error)
{
    safer_status status = SAFER_OK;
    cli_verdict_reserve(verdict, gates);
    safer_gate *next = verdict->gates;
    if (!isnan(gates->require)) safer_gate_accuracy(next++, summary, gates->require);
    for (size_t i = 0; i < gates->recall_words.count && status == SAFER_OK; i++)
        status = safer_gate_recall(next++, summary, gates->recalls[i].label, gates->recalls[i].least, error);
    if (!gates->not_worse_than) return status;
    if (status == SAFER_OK) status = safer_run_read(&verdict->run, output, error);
    if (status == SAFER_OK) status = safer_gate_not_worse(next, verdict->run, verdict->baseline, error);
    return status;
}

/* Whether a text held in the baseline and does not in the run (gained: the other way round). */
static int is_lost(const cli_verdict *v, size_t row)
{
    return safer_run_held(v->baseline, row) && !safer_run_held(v->run, row);
}

static int is_gained(const cli_verdict *v, size_t row)
{
    return !safer_run_held(v->baseline, row) && safer_run_held(v->run, row);
}

void cli_verdict_add_json(json_t *result, const cli_verdict *v)
{
    json_t *gates = json_array(), *lost = json_array();
    size_t gained = 0;
    for (size_t i = 0; i < v->count; i++) {
        const safer_gate *g = &v->gates[i];
        cli_append(gates, json_pack("{s:s, s:s, s:b, s:f, s:f, s:I, s:I, s:s}", "gate", safer_gate_kind_name(g->kind),
                                    "name", g->name, "met", g->met, "value", g->value, "threshold", g->threshold,
                                    "part", (json_int_t)g->part, "whole", (json_int_t)g->whole, "message", g->message));
    }
    if (v->count) cli_set(result, "gates", json_incref(gates));
    for (size_t i = 0; v->baseline && i < safer_run_size(v->run); i++) {
        gained += (size_t)is_gained(v, i);
        if (is_lost(v, i))
            cli_append(lost, json_pack("{s:I, s:s, s:s}", "row", (json_int_t)(i + 1), "id", safer_run_id(v->run, i),
                                       "now", safer_run_outcome(v->run, i)));
    }
    if (v->baseline) {
        cli_set(result, "lost", json_incref(lost));
        cli_set(result, "gained", json_integer((json_int_t)gained));
    }
    json_decref(gates);
    json_decref(lost);
}

void cli_verdict_print(const cli_verdict *v)
{
    size_t lost = 0;
    for (size_t i = 0; i < v->count; i++) {
        if (!v->gates[i].met) continue;
        printf("%s%-9s%s", cli_green(), "met", cli_plain());
        cli_put(v->gates[i].message);
        printf("\n");
    }
    for (size_t i = 0; v->baseline && i < safer_run_size(v->run); i++) {
        if (!is_lost(v, i) || lost++ >= MOST_LOST) continue;
        printf("%-9stext ", "lost");
        cli_put(safer_run_id(v->run, i));
        printf(" (row %zu): %s\n", i + 1, safer_run_outcome(v->run, i));
    }
    if (lost > MOST_LOST) printf("%-9s%zu more; --json lists all\n", "lost", lost - MOST_LOST);
}

int cli_verdict_code(const cli_verdict *v)
{
    int code = CLI_DONE;
    for (size_t i = 0; i < v->count; i++) {
        if (v->gates[i].met) continue;
        cli_complain("%s", v->gates[i].message);
        code = CLI_UNMET;
    }
    return code;
}

void cli_verdict_free(cli_verdict *v)
{
    free(v->gates);
    safer_run_free(v->run);
    safer_run_free(v->baseline);
    *v = (cli_verdict){0};
}
