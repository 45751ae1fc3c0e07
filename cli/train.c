/* safer train */
#include "certify_options.h"
#include "data_options.h"
#include "train_options.h"
#include "trials.h"
#include "verbs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char automatic[] = "auto";

typedef struct request {
    const char *lexicon, *output, *dev, *deletion;
    uint64_t groups;
    cli_data data;
    cli_train_flags training;
} request;

static const char *archs(size_t number) { return number ? safer_arch_name((safer_arch)(number - 1)) : automatic; }

static void list(cli_options *options, void *into)
{
    request *r = into;
    *r = (request){.deletion = "0", .data = cli_data_default(), .training = cli_train_default()};
    r->training.arch = automatic;
    cli_add_heading(options, "What");
    cli_add_choice(
        options, "arch", &r->training.arch, archs, "NAME",
        "{choices} (default {default}: ngram, or what does better of ngram, bow and cnn where vectors are given)");
    cli_data_options(options, &r->data);
    cli_add_path(options, "dev", &r->dev, "DATA", "texts to choose the epoch by (default: every 10th of each class)");
    cli_add_path(options, "lexicon", &r->lexicon, "FILE", "draw the texts from its kernel");
    cli_add_string(options, "delete", &r->deletion, "P",
                   "delete every word, number and mark of a draw with this chance, or by length: " CLI_DELETE_HELP);
    cli_add_uint(options, "groups", &r->groups, "G",
                 "keep the words, numbers and marks of one of G groups of a text, other ones in every draw");
    cli_add_uint(options, "seed", &r->training.options.seed, "N", "of everything random (default {default})");
    cli_add_int(
        options, "seeds", &r->training.options.seeds, "N",
        "train N models, with the seeds from --seed on, and write their sum to FILE, NAME.json (default {default})");
    cli_add_output(options, "output", &r->output, "FILE", "where to write the model (also -o FILE)");
    cli_train_options(options, &r->training);
    cli_defense_options(options, &r->training);
    cli_add_flag(options, "resume", &r->training.options.resume, "continue from the checkpoint beside FILE");
}

/* The classes with their texts, and what is strange about them. */
typedef struct class_counts {
    size_t count, *texts; /* texts[k] of class k */
} class_counts;

static class_counts count_classes(const safer_data *data)
{
    class_counts c = {.count = safer_data_label_count(data)};
    c.texts = calloc(c.count + 1, sizeof *c.texts);
    if (!c.texts) cli_no_memory();
    for (size_t i = 0; i < safer_data_size(data); i++) {
        const int label = safer_data_row(data, i).label;
        if (label >= 0) c.texts[label]++;
    }
    return c;
}

/* Several words, or longer than any name. */
static int looks_like_text(const char *label)
{
    size_t blanks = 0;
    for (const char *p = label; *p; p++) blanks += *p == ' ';
    return blanks >= 3 || strlen(label) > 40;
}

static void warn_classes(const class_counts *c, const safer_data *data, int has_dev)
{
    enum { FEW = 10, MOST_NAMED = 5 };
    size_t few = 0, odd = 0;
    const char *first_odd = NULL;
    size_t most = 0;
    for (size_t k = 0; k < c->count; k++)
        if (c->texts[k] > most) most = c->texts[k];
    const int refused = c->count < 2 || (most < FEW && !has_dev); /* by training, with the reason */
    for (size_t k = 0; k < c->count; k++) {
        const char *label = safer_data_label(data, k);
        if (looks_like_text(label) && !odd++) first_odd = label;
        if (!refused && c->texts[k] < FEW && few++ < MOST_NAMED)
            cli_say("warning: the class \"%.60s\" has %s", label, cli_texts(c->texts[k]));
    }
    if (few > MOST_NAMED)
        cli_say("warning: %s fewer than %d texts", cli_some(few - MOST_NAMED, "more class has", "more classes have"),
                FEW);
    if (odd)
        cli_say("warning: \"%.40s%s\" looks like a text, not like a label; --label-column and --text-column name the "
                "columns",
                first_odd, strlen(first_odd) > 40 ? "..." : "");
}

static json_t *classes_json(const class_counts *c, const safer_data *data)
{
    json_t *object = json_object();
    for (size_t k = 0; k < c->count; k++)
        cli_set(object, safer_data_label(data, k), json_integer((json_int_t)c->texts[k]));
    return object;
}

static void print_classes(const class_counts *c, const safer_data *data)
{
    enum { MOST = 20 };
    printf("%s: ", cli_some(c->count, "class", "classes"));
    for (size_t k = 0; k < c->count && k < MOST; k++) {
        printf("%s", k ? ", " : "");
        cli_put(safer_data_label(data, k));
        printf(" %s", cli_count(c->texts[k]));
    }
    printf("%s\n", c->count > MOST ? ", ..." : "");
}

/* Why this architecture; nothing where it was named. */
static void print_choice(const safer_choice *choice)
{
    if (choice->untried) printf("ngram: %s, so no other architecture was tried\n", choice->untried);
    cli_print_trials(choice, "architectures", "a fifth at a time, after learning from the others");
}

static json_t *choice_json(const safer_choice *choice)
{
    return choice->untried || choice->trial_count ? cli_trials_json(choice, "arch") : json_null();
}

static void print_results(const request *r, const safer_train_report *report, const safer_choice *choice,
                          const class_counts *classes)
{
    const safer_train_options *o = &r->training.options;
    const char *unit = o->arch == SAFER_ARCH_BERT ? "pieces" : o->arch == SAFER_ARCH_CHARCNN ? "characters" : "words";
    const char *arch = safer_arch_name(o->arch);
    cli_progress_clear();
    if (cli_settings()->json) {
        cli_print_json(json_pack("{s:s, s:s, s:I, s:I, s:I, s:i, s:i, s:f, s:f, s:f, s:f, s:I, s:i, s:o, s:o}",
                                 "output", r->output, "arch", arch, "texts", (json_int_t)report->texts, "tokens",
                                 (json_int_t)report->tokens, "parameters", (json_int_t)report->parameters, "epochs",
                                 report->epochs, "best_epoch", report->best_epoch, "loss", report->loss, "dev_accuracy",
                                 report->dev_accuracy, "seconds", report->seconds, "tokens_per_second",
                                 report->tokens_per_second, "seed", (json_int_t)o->seed, "seeds", o->seeds, "classes",
                                 cli_need(classes_json(classes, o->train)), "arch_choice", choice_json(choice)));
        return;
    }
    print_choice(choice);
    const int bounds = o->defense.kind || o->arch == SAFER_ARCH_CONTEXT;
    const char *dev = bounds ? "dev texts certified" : "dev accuracy";
    if (o->seeds > 1)
        printf("trained %s on %s (%s %s) with the seeds %llu to %llu: %s %s %s%%\n"
               "%s parameters, %.1f s, %s %s/s\n",
               arch, cli_texts(report->texts), cli_count(report->tokens), unit, (unsigned long long)o->seed,
               (unsigned long long)(o->seed + (uint64_t)(o->seeds - 1)), dev, o->dev ? "of their sum" : "on average",
               cli_share(report->dev_accuracy, 2), cli_count(report->parameters), report->seconds,
               cli_count((uint64_t)report->tokens_per_second), unit);
    else
        printf("trained %s on %s (%s %s): %s %s%% after epoch %d of %d, loss %.4f\n"
               "%s parameters, %.1f s, %s %s/s, seed %llu\n",
               arch, cli_texts(report->texts), cli_count(report->tokens), unit, dev, cli_share(report->dev_accuracy, 2),
               report->best_epoch, report->epochs, report->loss, cli_count(report->parameters), report->seconds,
               cli_count((uint64_t)report->tokens_per_second), unit, (unsigned long long)o->seed);
    print_classes(classes, o->train);
    printf("wrote %s", r->output);
    if (o->seeds > 1) printf(", a sum of %d models, which lie beside it", o->seeds);
    printf("\n");
}

/* After an encoder: n-grams learn from the same texts in a small part of its time. Where they are better on the dev
 * texts, the user should know. Their model is not kept, and a failure or Ctrl-C here loses nothing. */
static void compare_ngrams(const request *r, const safer_train_report *report)
{
    const safer_train_options *own = &r->training.options;
    safer_train_options o = safer_train_options_default();
    safer_train_report ngrams;
    if (own->arch != SAFER_ARCH_BERT || !own->dev || cli_settings()->quiet) return;
    o.arch = SAFER_ARCH_NGRAM;
    o.train = own->train;
    o.dev = own->dev;
    o.lexicon = own->lexicon;
    o.deletion = own->deletion;
    o.seed = own->seed;
    o.threads = own->threads;
    o.progress = own->progress;
    const safer_status status = safer_train("/dev/null", &o, &ngrams, NULL);
    cli_progress_clear();
    if (status != SAFER_OK || ngrams.dev_accuracy <= report->dev_accuracy) return;
    cli_say("n-grams reach %s%% on dev, which is more: try --arch ngram (%.1f s)%s", cli_share(ngrams.dev_accuracy, 2),
            ngrams.seconds, own->bert.layers == SAFER_ALL_LAYERS ? "" : ", or train more with --train-layers all");
}

static int has_checkpoint(const request *r)
{
    char path[4096];
    if (r->training.options.seeds > 1) return 1; /* and whole models */
    return snprintf(path, sizeof path, "%s.checkpoint", r->output) < (int)sizeof path && access(path, F_OK) == 0;
}

static int run(void *from, char **arguments, size_t count)
{
    request *r = from;
    safer_train_options *o = &r->training.options;
    safer_error error = {0};
    safer_train_report report;
    safer_choice choice = {0};
    int code = CLI_DONE;
    (void)arguments, (void)count;
    const int chooses = strcmp(r->training.arch, automatic) == 0;
    if (chooses) r->training.arch = NULL; /* no architecture's name */
    if (!r->data.path) cli_misuse(&cli_train, "--data DATA is needed");
    cli_check_seed(o->seed, &cli_train);
    o->deletion = cli_deletion(r->deletion, r->groups, &cli_train);
    if (!r->output) cli_misuse(&cli_train, "-o FILE is needed: where to write the model");
    o->threads = cli_settings()->threads;
    o->progress = *cli_progress();
    if (cli_train_finish(&r->training, &error) != SAFER_OK) return cli_fail(&error);
    cli_train_check_uses(&r->training, chooses, &cli_train);
    if (chooses) o->arch = SAFER_ARCH_NGRAM; /* until something else is found */
    if (o->arch != SAFER_ARCH_NGRAM) cli_interrupt_again(CLI_RESUME);
    safer_lexicon *lexicon = r->lexicon ? cli_lexicon_open(r->lexicon) : NULL;
    safer_data *train = cli_data_load(&r->data, o->seed), *dev = NULL;
    if (r->dev) {
        cli_data beside = cli_data_beside(&r->data, r->dev, train);
        dev = cli_data_load(&beside, o->seed);
    }
    o->train = train;
    o->dev = dev;
    o->lexicon = lexicon;
    class_counts classes = count_classes(train);
    warn_classes(&classes, train, dev != NULL);
    cli_fit_say(lexicon, train, 0);
    if ((chooses ? safer_train_choose(r->output, o, &choice, &report, &error)
                 : safer_train(r->output, o, &report, &error)) == SAFER_OK) {
        if (choice.trial_count) safer_arch_parse(&o->arch, choice.trials[choice.best].name, NULL);
        print_results(r, &report, &choice, &classes);
        compare_ngrams(r, &report);
    } else {
        code = cli_fail(&error);
    }
    if (code == CLI_SYSTEM && has_checkpoint(r))
        cli_say(o->arch == SAFER_ARCH_CONTEXT ? "continue with --resume"
                                              : "continue with --resume, on another --device if need be");
    free(classes.texts);
    safer_data_free(train);
    safer_data_free(dev);
    safer_lexicon_free(lexicon);
    return code;
}

const cli_verb cli_train = {
    .name = "train",
    .brief = "train a classifier on texts drawn from a lexicon's kernel",
    .usage = "--data D [--lexicon L] [--arch auto|ngram|bow|cnn|charcnn|bert|context] [options] -o MODEL",
    .summary = "Trains a classifier. With a lexicon, on texts drawn afresh from its kernel, which is\n"
               "what the smoothed classifier will ask; without, on the texts as they are. With --defense,\n"
               "on the texts as they are and on bounds of the worst that their synonyms can do; context too.",
    .examples = "  safer train --data train.tsv --lexicon imdb.lex -o ngram.safetensors\n"
                "  safer train --data train.tsv --lexicon imdb.lex --vectors glove.6B.100d.txt -o best.safetensors\n"
                "  safer train --arch cnn --data train.tsv --dev dev.tsv --lexicon imdb.lex \\\n"
                "      --vectors glove.6B.100d.txt --epochs 10 -o cnn.safetensors\n"
                "  safer train --arch bert --encoder gte-small.safetensors --train-layers all --data train.tsv \\\n"
                "      --lexicon imdb.lex -o bert.safetensors\n"
                "  safer train --arch cnn --defense ibp-jia --data train.tsv --dev dev.tsv --lexicon imdb.lex \\\n"
                "      --vectors glove.6B.100d.txt -o ibp.safetensors\n"
                "  safer train --arch context --encoder bert.safetensors --data train.tsv --dev dev.tsv \\\n"
                "      --lexicon rep.lex -o context.safetensors\n",
    .request_size = sizeof(request),
    .list = list,
    .run = run,
};
