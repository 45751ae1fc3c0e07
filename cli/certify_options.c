/* The options of a certificate. */
#include "certify_options.h"

#include <stdlib.h>
#include <string.h>

static const char *methods(size_t number) { return safer_method_name((safer_method)number); }

static const char *edit_kinds(size_t number) { return safer_edit_kind_name((safer_edit_kind)number); }

cli_certify_flags cli_certify_default(void)
{
    const safer_certify_options options = safer_certify_options_default();
    return (cli_certify_flags){.method = safer_method_name(options.method),
                               .radius = "all",
                               .deletion = "0",
                               .edit_kind = safer_edit_kind_name(options.edit_kind),
                               .edits = options.edits,
                               .batch = options.batch,
                               .options = options};
}

void cli_test_options(cli_options *options, cli_certify_flags *c)
{
    safer_certify_options *o = &c->options;
    cli_add_choice(options, "method", &c->method, methods, "NAME", "{choices} (default {default})");
    cli_add_uint(options, "n", &o->n, "N", "samples of a certificate; adaptive: at most (default {default})");
    cli_add_uint(options, "n0", &o->n0, "N",
                 "separate samples that choose the prediction, at most (default {default}: as many as n)");
    cli_add_real(options, "delta", &o->delta, "D",
                 "chance, at most, that a text that could be attacked is certified (default {default})");
    cli_add_real(options, "alpha", &o->alpha, "A",
                 "chance, at most, that a prediction is given that does not win among all draws (default {default})");
}

void cli_radius_option(cli_options *options, const char **radius)
{
    cli_add_string(options, "radius", radius, "R",
                   "words the attacker may change: a number or all (default {default})");
}

void cli_edit_options(cli_options *options, cli_certify_flags *c)
{
    cli_add_string(options, "delete", &c->deletion, "P",
                   "draws delete every word, number and mark with this chance, or by length: " CLI_DELETE_HELP);
    cli_add_uint(options, "groups", &c->groups, "G",
                 "no draws: every word, number and mark is in one of G groups, and each group votes");
    cli_add_uint(
        options, "edits", &c->edits, "R",
        "with --delete or --groups: words, numbers and marks the attacker may edit besides (default {default})");
    cli_add_choice(options, "edit-kind", &c->edit_kind, edit_kinds, "KIND",
                   "what an edit may be: {choices} (default {default})");
}

void cli_certify_options(cli_options *options, cli_certify_flags *c, const char *seed_help)
{
    cli_test_options(options, c);
    cli_radius_option(options, &c->radius);
    cli_edit_options(options, c);
    cli_add_uint(options, "seed", &c->options.seed, "N", seed_help);
    cli_add_uint(options, "batch", &c->batch, "N",
                 "draws of a text asked at once (default {default}); results do not depend on it");
}

int cli_deletes(safer_deletion d) { return d.keep || d.chance > 0 || d.groups; }

static safer_status read_deletion(safer_deletion *out, const char *text, uint64_t groups, safer_error *error)
{
    safer_error inner = {0};
    *out = (safer_deletion){0};
    if (safer_deletion_parse(out, text, &inner) != SAFER_OK)
        return cli_error(error, SAFER_INVALID, "`delete` %s", inner.message);
    if (groups && cli_deletes(*out))
        return cli_error(error, SAFER_INVALID, "`delete` and `groups`: groups draw nothing; give one of them");
    if (groups > SAFER_GROUPS)
        return cli_error(error, SAFER_INVALID, "`groups` %llu: from 1 to %d", (unsigned long long)groups, SAFER_GROUPS);
    out->groups = (size_t)groups;
    return SAFER_OK;
}

safer_deletion cli_deletion(const char *text, uint64_t groups, const cli_verb *verb)
{
    safer_deletion deletion;
    safer_error error = {0};
    if (read_deletion(&deletion, text, groups, &error) != SAFER_OK) cli_misuse(verb, "%s", cli_message(&error));
    return deletion;
}

json_t *cli_deletion_json(safer_deletion d) { return d.keep ? json_sprintf("keep:%zu", d.keep) : json_real(d.chance); }

size_t cli_radius_of(const char *text)
{
    char *end;
    if (strcmp(text, "all") == 0) return SAFER_ALL;
    unsigned long radius = strtoul(text, &end, 10);
    return *end || text[0] < '0' || text[0] > '9' ? 0 : radius;
}

size_t cli_radius(const char *text, const cli_verb *verb)
{
    size_t radius = cli_radius_of(text);
    if (radius < 1) cli_misuse(verb, "--radius %s: a number of words from 1, or all", text);
    return radius;
}

void cli_check_seed(uint64_t seed, const cli_verb *verb)
{
    if (seed > INT64_MAX) cli_misuse(verb, "--seed %llu: at most %lld", (unsigned long long)seed, (long long)INT64_MAX);
}

/* Interval bounds and groups draw nothing: what is said about draws would have no effect. */
static safer_status refuse_draws(const safer_certify_options *o, safer_error *error)
{
    const safer_certify_options usual = cli_certify_default().options;
    const char *given = o->n != usual.n                              ? "n"
                        : o->n0 != usual.n0                          ? "n0"
                        : o->delta != usual.delta                    ? "delta"
                        : o->alpha != usual.alpha                    ? "alpha"
                        : o->family_wise                             ? "family_wise"
                        : o->deletion.keep || o->deletion.chance > 0 ? "delete"
                                                                     : NULL;
    if (!given) return SAFER_OK;
    return cli_error(error, SAFER_INVALID, "`%s`: %s draws nothing and its certificates cannot err by chance", given,
                     o->method == SAFER_METHOD_IBP ? "`method` ibp" : "`groups`");
}

safer_status cli_edits_finish(cli_certify_flags *c, safer_error *error)
{
    safer_certify_options *o = &c->options;
    const cli_certify_flags usual = cli_certify_default();
    safer_edit_kind_parse(&o->edit_kind, c->edit_kind, NULL); /* one of its names: it is a choice */
    safer_status status = read_deletion(&o->deletion, c->deletion, c->groups, error);
    if (status != SAFER_OK) return status;
    if (c->groups && strcmp(c->method, usual.method) == 0) o->method = SAFER_METHOD_GROUPS;
    if (c->groups && o->method != SAFER_METHOD_GROUPS)
        return cli_error(error, SAFER_INVALID, "`groups` and `method` %s: votes of groups are a method of their own",
                         c->method);
    if (o->method == SAFER_METHOD_GROUPS && !c->groups)
        return cli_error(error, SAFER_INVALID, "`method` groups needs `groups`, how many vote");
    if (c->edits < 1 || c->edits > SAFER_EDITS)
        return cli_error(error, SAFER_INVALID, "`edits` %llu: from 1 to %d", (unsigned long long)c->edits, SAFER_EDITS);
    if (!cli_deletes(o->deletion) && (c->edits != usual.edits || o->edit_kind != usual.options.edit_kind))
        return cli_error(error, SAFER_INVALID, "`%s` needs `delete` or `groups`: without them no edit can be certified",
                         c->edits != usual.edits ? "edits" : "edit_kind");
    o->edits = (size_t)c->edits;
    return o->method == SAFER_METHOD_IBP || o->method == SAFER_METHOD_GROUPS ? refuse_draws(o, error) : SAFER_OK;
}

void cli_certify_finish(cli_certify_flags *c, const cli_verb *verb)
{
    safer_certify_options *o = &c->options;
    safer_error error = {0};
    safer_method_parse(&o->method, c->method, NULL); /* one of its names: it is a choice */
    o->radius = cli_radius(c->radius, verb);
    if (o->n < 1) cli_misuse(verb, "--n %llu: at least 1", (unsigned long long)o->n);
    cli_check_seed(o->seed, verb);
    if (!(o->delta > 0 && o->delta < 1)) cli_misuse(verb, "--delta %g: above 0 and below 1", o->delta);
    if (!(o->alpha > 0 && o->alpha < 1)) cli_misuse(verb, "--alpha %g: above 0 and below 1", o->alpha);
    if (cli_edits_finish(c, &error) != SAFER_OK) cli_misuse(verb, "%s", cli_message(&error));
    o->batch = (size_t)c->batch;
    o->threads = cli_settings()->threads;
    o->progress = *cli_progress();
}
