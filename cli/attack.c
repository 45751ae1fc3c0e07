/* safer attack: the verb, its results as a table and as JSON, and the new texts that it shows. What attacks
 * are stands in docs/attack.md. */
#include "attack_options.h"
#include "certify_options.h"
#include "crew.h"
#include "data_options.h"
#include "model_options.h"
#include "results.h"
#include "shard_options.h"
#include "verbs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -------------------------------------------------------------- new texts */

/* Records that are worth showing, in the order of the data. */
typedef struct showing {
    uint64_t left;  /* how many more */
    int violations; /* of the cross-check, else successes */
    json_t *records;
} showing;

static void keep_record(void *context, const char *line)
{
    showing *s = context;
    if (!s->left) return;
    json_t *record = cli_json_read(line);
    const char *outcome = json_string_value(json_object_get(record, "outcome"));
    const int wanted = s->violations ? json_is_object(json_object_get(record, "violation"))
                                     : outcome && strcmp(outcome, "succeeded") == 0;
    if (wanted) {
        s->left--;
        cli_append(s->records, json_incref(record));
    }
    json_decref(record);
}

/* Part of a text, on one line. */
static void print_part(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) putchar((unsigned char)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i]);
}

/* The text attacked, with every exchanged word and what took its place: [-old-]{+new+}. What has no list of changes
 * is shown as it is. */
static void print_diff(const safer_row *row, const json_t *source)
{
    const json_t *changes = json_object_get(source, "changes"), *text = json_object_get(source, "text");
    const char *at = row->text;
    if (!json_array_size(changes)) {
        print_part(json_string_value(text), json_string_length(text));
        printf("\n\n");
        return;
    }
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const json_t *change = json_array_get(changes, i);
        const char *from = json_string_value(json_object_get(change, "from"));
        const char *word = row->text + json_integer_value(json_object_get(change, "byte"));
        print_part(at, (size_t)(word - at));
        const char *to = json_string_value(json_object_get(change, "to"));
        if (*from) printf("%s[-%s-]%s", cli_red(), from, cli_plain());
        if (*to) printf("%s{+%s+}%s", cli_green(), to, cli_plain());
        at = word + strlen(from);
    }
    print_part(at, (size_t)(row->text + row->text_length - at));
    printf("\n\n");
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "none";
}

static void print_shown(const showing *s, const safer_data *data)
{
    safer_reader *reader = NULL;
    safer_error error = {0};
    for (size_t i = 0; i < json_array_size(s->records); i++) {
        const json_t *record = json_array_get(s->records, i), *violation = json_object_get(record, "violation");
        const size_t index = (size_t)json_integer_value(json_object_get(record, "row")) - 1;
        safer_row row;
        if (safer_data_read(&row, &reader, data, index, &error) != SAFER_OK) exit(cli_fail(&error));
        const json_t *source = violation ? violation : record;
        printf("%s", cli_bold());
        cli_put(row.id);
        printf("%s  ", cli_plain());
        cli_put(text_of(record, violation ? "target" : "before"));
        printf(violation ? " no longer wins, by " : " becomes ");
        cli_put(violation ? text_of(violation, "method") : text_of(record, "after"));
        printf("%s", violation && json_is_true(json_object_get(violation, "proved")) ? ", proved" : "");
        printf(", %lld of %lld words changed\n", (long long)json_integer_value(json_object_get(source, "changed")),
               (long long)json_integer_value(json_object_get(record, "words")));
        print_diff(&row, source);
    }
    safer_reader_free(reader);
}

/* ---------------------------------------------------------------- results */

static double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

static json_t *interval_json(size_t part, size_t whole)
{
    double low = 0, high = 1;
    if (whole) safer_interval(part, whole, &low, &high);
    return json_pack("[f, f]", low, high);
}

#define N(x) (json_int_t)(x)

static json_t *rate_json(uint64_t queries, double seconds, size_t resumed)
{
    return seconds > 0 && !resumed ? json_real((double)queries / seconds) : json_null();
}

static json_t *summary_json(const safer_attack_summary *s, const safer_attack_options *o)
{
    const size_t attacked = s->texts - s->skipped, held = attacked - s->succeeded;
    return json_pack(
        "{s:s, s:b, s:I, s:I, s:I, s:f, s:f, s:o, s:I, s:I, s:f, s:o, s:f, s:f, s:f, s:I,"
        " s:I, s:I, s:I, s:o, s:f, s:I, s:I, s:o, s:I, s:I, s:s?, s:s?, s:f, s:f}",
        "method", safer_attack_method_name(o->method), "smoothed", o->smoothed != 0, "texts", N(s->texts), "examples",
        N(s->texts), "skipped", N(s->skipped), "clean_accuracy", share((double)attacked, (double)s->texts),
        "adversarial_accuracy", share((double)held, (double)s->texts), "adversarial_interval",
        interval_json(held, s->texts), "attacked", N(attacked), "succeeded", N(s->succeeded), "success_rate",
        share((double)s->succeeded, (double)attacked), "success_interval", interval_json(s->succeeded, attacked),
        "mean_changed", share((double)s->changed, (double)s->succeeded), "mean_changed_share",
        share(s->changed_share, (double)s->succeeded), "mean_queries", share((double)s->queries, (double)s->texts),
        "queries", N(s->queries), "checks", N(s->checks), "without_choices", N(s->without_choices), "limited",
        N(s->limited), "queries_per_second", rate_json(s->queries + s->checks, s->seconds, s->resumed), "seconds",
        s->seconds, "seed", N(o->seed), "resumed", N(s->resumed), "delete", cli_deletion_json(o->deletion), "words",
        N(s->words), "groups", N(o->deletion.groups), "same_pos", o->same_pos, "vectors", o->vectors, "min_cosine",
        o->min_cosine, "min_similarity", o->min_similarity);
}

static void print_time(uint64_t queries, uint64_t checks, size_t texts, double seconds, size_t resumed, uint64_t seed)
{
    printf("queries      %s (%.1f per text)", cli_count(queries), share((double)queries, (double)texts));
    if (checks) printf(" and %s to test what was found", cli_count(checks));
    printf("\ntime         %.2f s", seconds);
    if (seconds > 0 && !resumed) printf(", %s queries/s", cli_count((uint64_t)((double)(queries + checks) / seconds)));
    printf(", seed %llu\n", (unsigned long long)seed);
}

static void print_texts(size_t texts, size_t resumed)
{
    printf("texts        %s", cli_count(texts));
    if (resumed) printf(" (%s from an earlier run)", cli_count(resumed));
    printf("\n");
}

/* What replacements must have in common with the words, if anything. */
static void print_likeness(const safer_attack_options *o)
{
    const char *before = "constraints  ";
    if (o->same_pos) printf("%sthe same part of speech", before), before = ", ";
    if (o->min_cosine > 0) printf("%scosine of %s at least", before, cli_real(o->min_cosine)), before = ", ";
    if (o->min_similarity > 0)
        printf("%s15 words around similar by %s at least", before, cli_real(o->min_similarity)), before = ", ";
    if (*before == ',') printf("\n");
}

static void print_summary(const safer_attack_summary *s, const safer_attack_options *o)
{
    const size_t attacked = s->texts - s->skipped, held = attacked - s->succeeded;
    printf("attack       %s on the %s\n", safer_attack_method_name(o->method),
           o->smoothed ? "smoothed classifier" : "model itself");
    print_likeness(o);
    print_texts(s->texts, s->resumed);
    printf("clean        %6s%%  %s answered wrongly already, not attacked\n", cli_percent(attacked, s->texts),
           cli_count(s->skipped));
    printf("%sadversarial  %6s%%%s  still right under attack (95%%: %s)\n", cli_bold(), cli_percent(held, s->texts),
           cli_plain(), cli_interval(held, s->texts));
    printf("succeeded    %6s%%  of the attacks, %s of %s", cli_percent(s->succeeded, attacked), cli_count(s->succeeded),
           cli_count(attacked));
    printf(" (95%%: %s)\n", cli_interval(s->succeeded, attacked));
    if (s->succeeded)
        printf("changed      %s words of a text, %s%%, where it succeeded\n",
               cli_mean((double)s->changed / (double)s->succeeded, 1),
               cli_share(s->changed_share / (double)s->succeeded, 1));
    if (s->without_choices) printf("trivial      %s in which no word can change\n", cli_texts(s->without_choices));
    if (s->limited)
        printf("limited      %s ended because --max-queries were used up\n", cli_some(s->limited, "attack", "attacks"));
    if (s->words) printf("words        %s asked about once, for all texts\n", cli_count(s->words));
    print_time(s->queries, s->checks, s->texts, s->seconds, s->resumed, o->seed);
}

static json_t *against_json(const safer_against_summary *s, json_t *violations, uint64_t seed)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:b, s:I, s:I, s:I, s:o, s:f, s:I, s:I, s:O,"
        " s:o, s:I, s:I, s:I}",
        "texts", N(s->texts), "examples", N(s->texts), "certified", N(s->certified), "exact", N(s->exact), "untouched",
        N(s->untouched), "limited", N(s->limited), "violations", N(s->violations), "violations_exact",
        N(s->violations_exact), "sampled", N(s->sampled), "delta", s->delta, "p_value", s->p_value, "level",
        SAFER_AGAINST_LEVEL, "alarm", s->alarm, "flips", N(s->flips), "queries", N(s->queries), "checks", N(s->checks),
        "queries_per_second", rate_json(s->queries + s->checks, s->seconds, s->resumed), "seconds", s->seconds, "seed",
        N(seed), "resumed", N(s->resumed), "found", violations, "delete", cli_deletion_json(s->deletion),
        "certified_edits", N(s->certified_edits), "words", N(s->words), "groups", N(s->deletion.groups));
}

static void print_against(const safer_against_summary *s, const safer_model *model, uint64_t seed)
{
    const int deletes = cli_deletes(s->deletion);
    print_texts(s->texts, s->resumed);
    printf("certified    %s at radius 1 or more%s, %s of them exactly%s\n", cli_count(s->certified),
           deletes ? " or against edits" : "", cli_count(s->exact),
           s->exact && cli_model_is_remote(model) ? ", if the model is a function of the text" : "");
    if (deletes) printf("edits        %s of them against 1 edit or more\n", cli_count(s->certified_edits));
    if (s->untouched) printf("trivial      %s of them have no word that can change\n", cli_count(s->untouched));
    if (s->limited)
        printf("limited      %s of them had a search end because --max-queries were used up\n", cli_count(s->limited));
    printf("%sviolations   %s%s, %s of exact certificates\n", cli_bold(), cli_count(s->violations), cli_plain(),
           cli_count(s->violations_exact));
    if (s->violations > s->violations_exact)
        printf("chance       %s at most of so many, were all %s sampled texts ones that could be attacked (delta %s)\n",
               cli_p_value(s->p_value), cli_count(s->sampled), cli_real(s->delta));
    printf("flips        %s on which the votes of a search went wrong\n", cli_texts(s->flips));
    print_time(s->queries, s->checks, s->texts, s->seconds, s->resumed, seed);
}

#undef N

/* -------------------------------------------------------------- the verb */

/* What a command line asks for. */
typedef struct request {
    const char *lexicon, *output, *against, *method, *radius, *deletion, *shard;
    uint64_t batch, show, groups;
    int resume;
    cli_model_flags model;
    cli_data data;
    safer_attack_options options;
    cli_crew_flags crew;
} request;

#define NOT_GIVEN UINT64_MAX

static void list(cli_options *options, void *into)
{
    request *r = into;
    *r = (request){.deletion = "0",
                   .model = cli_model_default(),
                   .data = cli_data_default(),
                   .options = safer_attack_options_default(),
                   .show = NOT_GIVEN};
    r->batch = r->options.batch;
    cli_add_heading(options, "What");
    cli_share_labels(&r->model, &r->data);
    cli_model_options(options, &r->model);
    cli_add_path(options, "lexicon", &r->lexicon, "FILE", "the synonyms that may be used; smoothed: also the kernel");
    cli_data_options(options, &r->data);
    cli_add_path(options, "against", &r->against, "RUN",
                 "attack what this run of safer certify certified, with every method");
    cli_add_heading(options, "Attack");
    cli_attack_method_option(options, &r->method);
    cli_add_string(options, "radius", &r->radius, "R", "words that may change: a number or all (default all)");
    cli_search_options(options, &r->options);
    cli_likeness_options(options, &r->options);
    cli_add_flag(options, "smoothed", &r->options.smoothed, "attack the smoothed classifier, not the model itself");
    cli_vote_options(options, &r->options);
    cli_add_string(
        options, "delete", &r->deletion, "P",
        "smoothed: draws delete every word, number and mark with this chance, or by length: " CLI_DELETE_HELP);
    cli_add_uint(options, "groups", &r->groups, "G", "smoothed: votes of G groups in place of draws");
    cli_add_uint(options, "seed", &r->options.seed, "N", "of the random choices and draws (default {default})");
    cli_add_uint(options, "batch", &r->batch, "N",
                 "texts asked at once (default {default}); results do not depend on it");
    cli_add_heading(options, "Results");
    cli_add_output(options, "output", &r->output, "FILE", "write one record per text, JSON Lines (also -o FILE)");
    cli_add_flag(options, "resume", &r->resume, "continue FILE after its last whole record");
    cli_shard_option(options, &r->shard);
    cli_add_uint(options, "show", &r->show, "N", "show the first N new texts (default: 3 on a terminal, else none)");
    cli_remote_options(options, &r->model);
    cli_model_name_option(options, &r->model);
    cli_crew_options(options, &r->crew);
}

/* What replacements must have in common with the words. */
static void check_likeness(const request *r)
{
    const cli_verb *verb = &cli_attack;
    const safer_attack_options *o = &r->options;
    const char *given = o->same_pos              ? "--same-pos"
                        : o->vectors             ? "--vectors"
                        : o->min_cosine != 0     ? "--min-cosine"
                        : o->min_similarity != 0 ? "--min-similarity"
                                                 : NULL;
    if (!given) return;
    if (r->against) cli_misuse(verb, "%s and --against: certificates are attacked with everything they allow", given);
    if (o->method > SAFER_ATTACK_RANDOM && o->method != SAFER_ATTACK_OUTOFLIST)
        cli_misuse(verb, "%s: --method %s does not replace words", given, safer_attack_method_name(o->method));
    if (!(o->min_cosine >= 0 && o->min_cosine <= 1))
        cli_misuse(verb, "--min-cosine %g: above 0, 1 at most", o->min_cosine);
    if (!(o->min_similarity >= 0 && o->min_similarity <= 1))
        cli_misuse(verb, "--min-similarity %g: above 0, 1 at most", o->min_similarity);
    const int needed = o->min_cosine > 0 || o->min_similarity > 0;
    if (needed && !o->vectors) cli_misuse(verb, "--vectors FILE is needed for --min-cosine and --min-similarity");
    if (!needed && o->vectors) cli_misuse(verb, "--vectors needs --min-cosine or --min-similarity");
}

static void check_request(request *r)
{
    const cli_verb *verb = &cli_attack;
    safer_attack_options *o = &r->options;
    if (!r->model.path) cli_misuse(verb, "--model MODEL is needed");
    if (!r->lexicon) cli_misuse(verb, "--lexicon FILE is needed");
    if (!r->data.path) cli_misuse(verb, "--data DATA is needed");
    if (r->resume && !r->output) cli_misuse(verb, "--resume needs -o FILE");
    if (r->output) cli_interrupt_again(CLI_RESUME);
    if (r->output) cli_model_need_name(&r->model, verb);
    if (r->crew.mpi) cli_model_need_labels(&r->model, verb);
    if (r->against && r->method) cli_misuse(verb, "--method and --against: the cross-check uses all methods");
    if (r->against && r->radius) cli_misuse(verb, "--radius and --against: the radius is that of each certificate");
    if (r->method) safer_attack_method_parse(&o->method, r->method, NULL); /* one of its names: it is a choice */
    if (r->radius) o->radius = cli_radius(r->radius, verb);
    cli_shard_finish(r->shard, &o->shard, &o->shards, verb);
    cli_check_seed(o->seed, verb);
    if (o->max_queries > INT64_MAX)
        cli_misuse(verb, "--max-queries %llu: too many", (unsigned long long)o->max_queries);
    if (o->n < 1) cli_misuse(verb, "--n %llu: at least 1", (unsigned long long)o->n);
    o->deletion = cli_deletion(r->deletion, r->groups, verb);
    const int deletes = cli_deletes(o->deletion);
    const char *given = r->groups ? "--groups" : "--delete";
    if (deletes && r->against) cli_misuse(verb, "%s and --against: the draws are those of the run", given);
    if (deletes && !o->smoothed) cli_misuse(verb, "%s needs --smoothed: only the smoothed classifier has them", given);
    if (o->words < 1) cli_misuse(verb, "--words 0: at least 1");
    if (!(o->alpha > 0 && o->alpha < 1)) cli_misuse(verb, "--alpha %g: above 0 and below 1", o->alpha);
    check_likeness(r);
    o->batch = (size_t)r->batch;
    o->threads = cli_settings()->threads;
    o->progress = *cli_progress();
}

static int attack(request *r, const safer_model *model, const safer_lexicon *lexicon, const safer_data *data,
                  showing *s)
{
    safer_error error = {0};
    safer_attack_summary summary;
    if (safer_attack(&summary, r->output, r->resume, model, lexicon, data, &r->options, &error) != SAFER_OK) {
        return cli_fail(&error);
    }
    if (cli_crew_helps()) return CLI_DONE;
    cli_progress_clear();
    if (cli_settings()->json) {
        json_t *result = summary_json(&summary, &r->options), *traffic = cli_traffic_json(model);
        cli_shard_add_json(result, r->options.shard, r->options.shards);
        if (traffic) cli_set(result, "traffic", traffic);
        cli_print_json(result);
    } else {
        print_shown(s, data);
        cli_shard_print(r->options.shard, r->options.shards, 13);
        print_summary(&summary, &r->options);
        cli_traffic_print(model, 13);
    }
    return CLI_DONE;
}

/* What is taken from the records of the run, of which only seals and decisions were checked. */
#define BELIEVED "slots, q, votes and answers of %s: safer verify with the same model, lexicon and data checks them"

static int cross_check(request *r, const safer_model *model, const safer_lexicon *lexicon, const safer_data *data,
                       showing *s)
{
    safer_error error = {0};
    safer_against_summary summary;
    if (safer_attack_against(&summary, r->against, r->output, r->resume, model, lexicon, data, &r->options, &error) !=
        SAFER_OK) {
        return cli_fail(&error);
    }
    if (cli_crew_helps()) return CLI_DONE;
    cli_progress_clear();
    if (cli_settings()->json) {
        json_t *result = against_json(&summary, s->records, r->options.seed);
        cli_shard_add_json(result, summary.shard, summary.shards);
        cli_set(result, "not_checked", json_pack("[o]", json_sprintf(BELIEVED, r->against)));
        cli_print_json(result);
    } else {
        print_shown(s, data);
        cli_shard_print(summary.shard, summary.shards, 13);
        print_against(&summary, model, r->options.seed);
        cli_traffic_print(model, 13);
        printf("not checked: " BELIEVED "\n", r->against);
    }
    if (!summary.alarm) return CLI_DONE;
    cli_complain("%s certificate%s broken, which delta does not explain", cli_count(summary.violations),
                 summary.violations == 1 ? " is" : "s are");
    return CLI_UNMET;
}

/* How many new texts are shown. */
static uint64_t shown_texts(const request *r)
{
    if (r->show != NOT_GIVEN) return r->show;
    if (r->against && cli_settings()->json) return UINT64_MAX;
    return isatty(STDOUT_FILENO) || r->against ? 3 : 0;
}

static int run(void *from, char **arguments, size_t count)
{
    request *r = from;
    safer_attack_options *o = &r->options;
    (void)arguments, (void)count;
    o->crew = cli_crew_join(&r->crew, &cli_attack);
    check_request(r);
    showing shown = {.violations = r->against != NULL, .records = json_array(), .left = shown_texts(r)};
    o->each = keep_record;
    o->each_context = &shown;
    safer_lexicon *lexicon = cli_lexicon_open(r->lexicon);
    safer_data *data = cli_crew_helps() ? NULL : cli_data_open(&r->data, o->seed);
    safer_model *model = cli_model_open(&r->model, &cli_attack, data);
    if (o->smoothed) cli_note_training(model, lexicon, o->deletion);
    const int code = r->against ? cross_check(r, model, lexicon, data, &shown)
                                : attack(r, model, lexicon, data, &shown);
    json_decref(shown.records);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    safer_model_free(model);
    return code;
}

const cli_verb cli_attack = {
    .name = "attack",
    .brief = "look for words that change the answer, and test certificates",
    .usage = "--model M --lexicon L --data D [options] [-o OUT.jsonl]",
    .summary = "Looks, text by text, for words to exchange for synonyms, to spell otherwise, to put in, to\n"
               "take out or to replace so that the answer becomes wrong.\n"
               "Texts that are answered wrongly already are skipped. With --against it attacks what a run of\n"
               "safer certify certified, with every method, and exits 1 when certificates turn out wrong.",
    .examples =
        "  safer attack --model cnn.safetensors --lexicon imdb.lex --data test.tsv -o attack.jsonl\n"
        "  safer attack --model cnn.safetensors --lexicon imdb.lex --data test.tsv --method genetic --smoothed\n"
        "  safer attack --against run.jsonl --model cnn.safetensors --lexicon imdb.lex --data test.tsv\n",
    .request_size = sizeof(request),
    .list = list,
    .run = run,
};
