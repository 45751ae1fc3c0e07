/* What the verbs around a certificate share: the model, the flags, the results. */
#define _GNU_SOURCE
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ the model */

cli_model_flags cli_model_default(void) { return (cli_model_flags){.remote = safer_remote_options_default()}; }

/* "neg,pos" in pieces, which live in *copy. */
static void split_labels(safer_remote_options *o, const char *list, char **copy)
{
    const char **names = calloc(strlen(list) + 1, sizeof *names);
    *copy = strdup(list);
    if (!*copy || !names) abort();
    for (char *name = *copy; name; o->label_count++) {
        char *comma = strchr(name, ',');
        if (comma) *comma++ = '\0';
        names[o->label_count] = name;
        name = comma;
    }
    o->labels = names;
}

static void take_labels(safer_remote_options *o, const safer_data *data)
{
    size_t count = safer_data_label_count(data);
    const char **names = calloc(count + 1, sizeof *names);
    if (!names) abort();
    for (size_t k = 0; k < count; k++) names[k] = safer_data_label(data, k);
    o->labels = names;
    o->label_count = count;
}

int cli_is_remote(const char *path)
{
    return strncmp(path, "exec:", 5) == 0 || strncmp(path, "http://", 7) == 0 || strncmp(path, "https://", 8) == 0;
}

safer_status cli_model_try(safer_model **out, cli_model_flags *m, const safer_data *data, safer_error *error)
{
    safer_model *model = NULL;
    safer_remote_options *o = &m->remote;
    if (!cli_is_remote(m->path)) {
        safer_status status = safer_model_open(&model, m->path, error);
        safer_precision precision;
        if (status == SAFER_OK && m->precision) {
            status = safer_precision_parse(&precision, m->precision, error);
            if (status == SAFER_OK) status = safer_model_set_precision(model, precision, error);
        }
        if (status == SAFER_OK)
            *out = model;
        else
            safer_model_free(model);
        return status;
    }
    if (m->precision) return cli_error(error, SAFER_INVALID, "--precision is for model files");
    if (m->cache && strcmp(m->cache, "on") != 0 && strcmp(m->cache, "off") != 0)
        return cli_error(error, SAFER_INVALID, "--cache %s: on or off", m->cache);
    if (m->cache) o->cache = strcmp(m->cache, "on") == 0;
    if (m->profile && safer_profile_parse(&o->profile, m->profile, error) != SAFER_OK) return SAFER_INVALID;
    o->batch = (size_t)m->request_texts;
    o->label_count = 0;
    char *copy = NULL;
    if (m->labels)
        split_labels(o, m->labels, &copy);
    else if (data)
        take_labels(o, data);
    else
        return cli_error(error, SAFER_INVALID, "--labels LIST is needed: the names of the model's classes, as neg,pos");
    const safer_status status = safer_model_connect(out, m->path, o, error); /* which copies the names */
    free((void *)(uintptr_t)o->labels);
    free(copy);
    o->labels = NULL;
    return status;
}

safer_model *cli_model_open(cli_model_flags *m, const cli_verb *verb, const safer_data *data)
{
    safer_error error = {0};
    safer_model *model = NULL;
    safer_status status = cli_model_try(&model, m, data, &error);
    if (status == SAFER_INVALID && strncmp(error.message, "--", 2) == 0) cli_misuse(verb, "%s", error.message);
    if (status != SAFER_OK) exit(cli_fail(&error));
    return model;
}

json_t *cli_traffic_json(const safer_model *model)
{
    safer_traffic t = safer_model_traffic(model);
    if (!t.asked && !t.again) return NULL;
#define N(x) (json_int_t)(x)
    return json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "random", safer_model_is_random(model), "asked",
                     N(t.asked), "cached", N(t.cached), "asked_again", N(t.again), "changed", N(t.changed), "none",
                     N(t.none), "requests", N(t.requests), "retries", N(t.retries), "restarts", N(t.restarts));
#undef N
}

void cli_traffic_print(const safer_model *model)
{
    safer_traffic t = safer_model_traffic(model);
    if (!t.asked && !t.again) return;
    printf("asked        %s texts, %s more a second time", cli_count(t.asked), cli_count(t.again));
    if (t.cached) printf(", %s from the cache", cli_count(t.cached));
    if (t.none) printf("; %s answers were no label", cli_count(t.none));
    if (t.retries) printf("; %s requests again", cli_count(t.retries));
    if (t.restarts) printf("; %s workers started again", cli_count(t.restarts));
    printf("\n");
    if (safer_model_is_random(model))
        printf("random       the model answers the same text differently: certified by sampling alone\n");
}

void cli_note_training(const safer_model *model, const safer_lexicon *lexicon)
{
    safer_lexicon_info info = safer_lexicon_describe(lexicon);
    json_t *with = safer_model_trained_with(model) ? json_loads(safer_model_trained_with(model), 0, NULL) : NULL;
    const char *kernel = json_string_value(json_object_get(with, "kernel"));
    const char *hash = json_string_value(json_object_get(with, "lexicon"));
    char ours[17];
    snprintf(ours, sizeof ours, "%016llx", (unsigned long long)info.hash);
    const char *silent[] = {"exec", "http", "sum"}; /* of how these were trained nothing is known here */
    for (size_t i = 0; !hash && i < sizeof silent / sizeof *silent; i++)
        if (strcmp(safer_model_arch(model), silent[i]) == 0) return;
    if (!hash)
        cli_say("note: the model was trained on plain text, without a lexicon");
    else if (kernel && strcmp(kernel, info.kernel) != 0)
        cli_say("note: the model was trained with kernel %s, the lexicon has %s", kernel, info.kernel);
    else if (strcmp(hash, ours) != 0)
        cli_say("note: the model was trained with another lexicon");
    json_decref(with);
}

/* --------------------------------------------------------- flags of a training */

cli_train_flags cli_train_default(void) { return (cli_train_flags){.options = safer_train_options_default()}; }

safer_status cli_train_finish(cli_train_flags *t, safer_error *error)
{
    safer_train_options *o = &t->options;
    safer_status status = SAFER_OK;
    char *end;
    if (t->arch) status = safer_arch_parse(&o->arch, t->arch, error);
    if (status == SAFER_OK && t->pool) status = safer_pool_parse(&o->course.pool, t->pool, error);
    if (status == SAFER_OK && t->precision) status = safer_precision_parse(&o->course.precision, t->precision, error);
    if (status == SAFER_OK && t->defense) status = safer_defense_parse(&o->defense.kind, t->defense, error);
    if (status == SAFER_OK && t->size) status = safer_charcnn_size_parse(&o->charcnn.size, t->size, error);
    if (status != SAFER_OK || !t->layers) return status;
    const unsigned long layers = strtoul(t->layers, &end, 10);
    const int all = strcmp(t->layers, "all") == 0;
    if (!all && (t->layers[0] < '0' || t->layers[0] > '9' || *end || layers > 9999))
        return cli_error(error, SAFER_INVALID, "--train-layers %s: a number from 0 to 9999, or all", t->layers);
    o->bert.layers = all ? SAFER_ALL_LAYERS : (int)layers;
    return SAFER_OK;
}

/* ------------------------------------------------------ flags of a certificate */

cli_certify_flags cli_certify_default(void)
{
    safer_certify_options options = safer_certify_options_default();
    return (cli_certify_flags){.method = "adaptive", .radius = "all", .batch = options.batch, .options = options};
}

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

/* Interval bounds draw nothing: what is said about draws would have no effect. */
static void refuse_draws(const safer_certify_options *o, const cli_verb *verb)
{
    const safer_certify_options usual = cli_certify_default().options;
    const char *given = o->n != usual.n           ? "--n"
                        : o->n0 != usual.n0       ? "--n0"
                        : o->delta != usual.delta ? "--delta"
                        : o->alpha != usual.alpha ? "--alpha"
                        : o->family_wise          ? "--family-wise"
                                                  : NULL;
    if (given) cli_misuse(verb, "%s: --method ibp draws nothing and its certificates cannot err by chance", given);
}

void cli_certify_finish(cli_certify_flags *c, const cli_verb *verb)
{
    safer_certify_options *o = &c->options;
    if (safer_method_parse(&o->method, c->method, NULL) != SAFER_OK)
        cli_misuse(verb, "--method %s: adaptive, binomial, hoeffding or ibp", c->method);
    o->radius = cli_radius(c->radius, verb);
    if (o->n < 1) cli_misuse(verb, "--n %llu: at least 1", (unsigned long long)o->n);
    if (o->n0 < 1) cli_misuse(verb, "--n0 %llu: at least 1", (unsigned long long)o->n0);
    if (o->seed > INT64_MAX)
        cli_misuse(verb, "--seed %llu: at most %lld", (unsigned long long)o->seed, (long long)INT64_MAX);
    if (!(o->delta > 0 && o->delta < 1)) cli_misuse(verb, "--delta %g: above 0 and below 1", o->delta);
    if (!(o->alpha > 0 && o->alpha < 1)) cli_misuse(verb, "--alpha %g: above 0 and below 1", o->alpha);
    if (o->method == SAFER_METHOD_IBP) refuse_draws(o, verb);
    o->batch = (size_t)c->batch;
    o->threads = cli_settings()->threads;
    o->progress = *cli_progress();
}

/* ----------------------------------------------------------------- the results */

const char *cli_interval(size_t part, size_t whole)
{
    static char text[48];
    double low = 0, high = 1;
    if (whole) safer_interval(part, whole, &low, &high);
    snprintf(text, sizeof text, "95%%: %.2f to %.2f", 100 * low, 100 * high);
    return text;
}

static double share(size_t part, size_t whole) { return whole ? (double)part / (double)whole : 0.0; }

json_t *cli_summary_json(const safer_summary *s, uint64_t seed)
{
    json_t *at = json_object();
    for (size_t r = 0; r < SAFER_RADII; r++) {
        char name[24] = "all";
        size_t radius = safer_reported_radius(r);
        if (radius != SAFER_ALL) snprintf(name, sizeof name, "%zu", radius);
        json_object_set_new(at, name, json_real(share(s->certified_at[r], s->texts)));
    }
    double low = 0, high = 1;
    if (s->texts) safer_interval(s->certified, s->texts, &low, &high);
#define N(x) (json_int_t)(x)
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:[f, f], s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:f, s:I, s:I}",
                     "examples", N(s->texts), "labelled", N(s->labelled), "clean_accuracy",
                     share(s->base_correct, s->labelled), "smoothed_accuracy", share(s->smoothed_correct, s->labelled),
                     "certified_accuracy", share(s->certified, s->texts), "certified_interval", low, high,
                     "certified_at", at, "abstained", N(s->abstained), "exact", N(s->exact), "without_slots",
                     N(s->without_slots), "queries", N(s->queries), "base_queries", N(s->base_queries),
                     "queries_per_second",
                     s->seconds > 0 && !s->resumed ? json_real((double)s->queries / s->seconds) : json_null(),
                     "seconds", s->seconds, "seed", N(seed), "resumed", N(s->resumed));
#undef N
}

/* Bounds: no smoothing, no draws, and one radius. */
static void print_bounds(const safer_summary *s)
{
    printf("texts        %s", cli_count(s->texts));
    if (s->resumed) printf(" (%s from an earlier run)", cli_count(s->resumed));
    if (s->labelled) printf("\nclean        %6.2f%%  the model itself", 100 * share(s->base_correct, s->labelled));
    printf("\n%scertified    %6s%%%s  whatever words are exchanged (%s)\n\n", cli_bold(),
           cli_percent(s->certified, s->texts), cli_plain(), cli_interval(s->certified, s->texts));
    if (s->without_slots) printf("trivial      %s texts in which no word can change\n", cli_count(s->without_slots));
    printf("time         %.2f s", s->seconds);
    if (s->seconds > 0 && !s->resumed) printf(", %s texts/s", cli_count((uint64_t)((double)s->texts / s->seconds)));
    printf(", no draws\n");
}

void cli_summary_print(const safer_summary *s, const safer_certify_options *options)
{
    if (options->method == SAFER_METHOD_IBP) {
        print_bounds(s);
        return;
    }
    printf("texts        %s", cli_count(s->texts));
    if (s->resumed) printf(" (%s from an earlier run)", cli_count(s->resumed));
    if (s->labelled)
        printf("\nclean        %6.2f%%  the base model itself\nsmoothed     %6.2f%%  the smoothed classifier",
               100 * share(s->base_correct, s->labelled), 100 * share(s->smoothed_correct, s->labelled));
    printf("\n%scertified    %6s%%%s  at the asked radius (%s)\n\n%s  words changed   certified%s\n", cli_bold(),
           cli_percent(s->certified, s->texts), cli_plain(), cli_interval(s->certified, s->texts), cli_bold(),
           cli_plain());
    for (size_t r = 0; r < SAFER_RADII; r++) {
        size_t radius = safer_reported_radius(r);
        char name[24] = "all";
        if (radius != SAFER_ALL) snprintf(name, sizeof name, "%zu", radius);
        printf("  %13s   %8s%%\n", name, cli_percent(s->certified_at[r], s->texts));
    }
    printf("\nabstained    %s prediction%s without a clear vote\n", cli_count(s->abstained),
           s->abstained == 1 ? "" : "s");
    if (s->exact) printf("exact        %s certificates without sampling error\n", cli_count(s->exact));
    if (s->without_slots) printf("trivial      %s texts in which no word can change\n", cli_count(s->without_slots));
    printf("queries      %s (%.1f a text) and %s of the base model\n", cli_count(s->queries),
           s->texts ? (double)s->queries / (double)s->texts : 0.0, cli_count(s->base_queries));
    printf("time         %.2f s", s->seconds);
    if (s->seconds > 0 && !s->resumed) printf(", %s queries/s", cli_count((uint64_t)((double)s->queries / s->seconds)));
    printf(", seed %llu\n", (unsigned long long)options->seed);
}
