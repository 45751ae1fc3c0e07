/* safer predict */
#define _GNU_SOURCE
#include "certify_options.h"
#include "data_options.h"
#include "model_options.h"
#include "results.h"
#include "texts.h"
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ----------------------------------------------------------------- answers */

/* How far an answer holds. */
static void print_reach(const safer_certificate *c, const safer_certify_options *options)
{
    char edits[80];
    const int deletes = c->deletion > 0 || c->groups;
    if (c->abstained || (c->radius == 0 && c->slots > 0) || (deletes && c->radius == 0))
        printf("  not certified");
    else if (c->slots == 0)
        printf("  no word of this text has synonyms");
    else if (c->radius == SAFER_ALL)
        printf("  certified against any substitution in its %zu word%s with synonyms", c->slots,
               c->slots == 1 ? "" : "s");
    else
        printf("  certified against %zu changed word%s of %zu", c->radius, c->radius == 1 ? "" : "s", c->slots);
    if (deletes && !c->abstained && c->edits > 0)
        printf(", %s %s besides", c->slots ? "and" : "certified against",
               cli_edits(edits, options->edit_kind, c->edits));
}

static void print_answer(const safer_model *model, const safer_certificate *c, const safer_certify_options *options)
{
    const char *label = safer_model_label(model, (size_t)c->prediction);
    printf("%s", c->abstained ? "abstained  (" : cli_bold());
    cli_put(label);
    if (c->abstained && c->exact)
        printf(" leads, but another class equals it)");
    else if (c->abstained)
        printf(" leads with %s of %s draw%s, but not clearly)", cli_count(c->vote_votes[c->prediction]),
               cli_count(c->vote_n), c->vote_n == 1 ? "" : "s");
    else
        printf("%s", cli_plain());
    print_reach(c, options);
    const char *const exact = !c->exact                    ? ""
                              : cli_model_is_remote(model) ? "exact if the model is a function of the text, "
                                                           : "exact, ";
    printf("  %s(bound %s, %s%s quer%s)%s\n", cli_dim(), cli_cut(c->bound, 4), exact, cli_count(c->queries),
           c->queries == 1 ? "y" : "ies", cli_plain());
}

/* Prints the answer, or (--json) adds it to the list. */
static safer_status give_answer(json_t *list, const safer_certificate *c, const safer_model *model,
                                const safer_certify_options *options, safer_error *error)
{
    if (!cli_settings()->json) {
        print_answer(model, c, options);
        fflush(stdout); /* the program that writes the lines may wait for it */
        return SAFER_OK;
    }
    char *text = NULL;
    safer_status status = safer_answer_json(&text, c, model, error);
    if (status == SAFER_OK) cli_append(list, cli_json_read(text));
    free(text);
    return status;
}

static int predict_all(json_t *list, cli_given *t, const safer_model *model, const safer_lexicon *lexicon,
                       const safer_certify_options *options)
{
    safer_workspace *workspace = NULL;
    const char *text;
    size_t length;
    int more, code = CLI_DONE;
    while (code == CLI_DONE && (more = cli_next_text(t, &text, &length)) != 0) {
        safer_certificate certificate;
        safer_error error = {0}, named;
        if (more < 0) {
            cli_complain("cannot read the standard input: %s", strerror(errno));
            code = CLI_SYSTEM;
        } else if (safer_certify_text(&certificate, &workspace, model, lexicon, text, length, -1, options, &error) !=
                   SAFER_OK) {
            if (error.status == SAFER_INPUT) {
                cli_error(&named, error.status, "text %zu: %.400s", t->next, error.message);
                error = named;
            }
            code = cli_fail(&error);
        } else if (give_answer(list, &certificate, model, options, &error) != SAFER_OK) {
            code = cli_fail(&error);
        }
    }
    safer_workspace_free(workspace);
    return code;
}

/* -------------------------------------------------------------------- verb */

typedef struct request {
    const char *lexicon;
    cli_model_flags model;
    cli_certify_flags certify;
} request;

#define SEED_NOT_GIVEN UINT64_MAX

static void list(cli_options *options, void *into)
{
    request *r = into;
    *r = (request){.model = cli_model_default(), .certify = cli_certify_default()};
    r->certify.options.seed = SEED_NOT_GIVEN;
    cli_model_options(options, &r->model);
    cli_add_path(options, "lexicon", &r->lexicon, "FILE", "synonyms and kernel, from safer lexicon");
    cli_certify_options(options, &r->certify, "of the random draws (default: a fresh one; of groups: 1)");
    cli_remote_options(options, &r->model);
}

/* A known seed would let an attacker search for sampling errors. */
static int choose_seed(uint64_t *seed)
{
    if (getrandom(seed, sizeof *seed, 0) != (ssize_t)sizeof *seed) {
        cli_complain("cannot get random numbers: %s", strerror(errno));
        return CLI_SYSTEM;
    }
    *seed >>= 1; /* fits a signed number in JSON */
    return CLI_DONE;
}

static int run(void *from, char **arguments, size_t count)
{
    request *r = from;
    safer_certify_options *o = &r->certify.options;
    cli_given t = {.arguments = arguments, .count = count};
    if (!r->model.path) cli_misuse(&cli_predict, "--model MODEL is needed");
    if (!r->lexicon) cli_misuse(&cli_predict, "--lexicon FILE is needed");
    if (o->seed == SEED_NOT_GIVEN && r->certify.groups) o->seed = safer_certify_options_default().seed;
    if (o->seed == SEED_NOT_GIVEN && choose_seed(&o->seed) != CLI_DONE) return CLI_SYSTEM;
    cli_certify_finish(&r->certify, &cli_predict);
    o->unlabelled = 1;
    cli_interrupt_grace(0); /* nothing to bring to an end */
    safer_model *model = cli_model_open(&r->model, &cli_predict, NULL);
    safer_lexicon *lexicon = cli_lexicon_open(r->lexicon);
    cli_note_training(model, lexicon, r->certify.options.deletion);
    json_t *answers = json_array();
    int code = predict_all(answers, &t, model, lexicon, o);
    if (code == CLI_DONE && cli_settings()->json)
        cli_print_json(json_pack("{s:I, s:O}", "seed", (json_int_t)o->seed, "answers", answers));
    else if (code == CLI_DONE)
        cli_say("seed %llu", (unsigned long long)o->seed);
    json_decref(answers);
    free(t.line);
    safer_lexicon_free(lexicon);
    safer_model_free(model);
    return code;
}

const cli_verb cli_predict = {
    .name = "predict",
    .brief = "the smoothed classifier's answer for a text, with its radius",
    .usage = "--model M --lexicon L [TEXT...]",
    .summary = "The smoothed classifier's answer for each TEXT (or each line of standard input), or an\n"
               "abstention when the vote is not clear, and how many words an attacker may change\n"
               "without changing it. The seed is fresh unless --seed is given.",
    .examples = "  safer predict --model cnn.safetensors --lexicon imdb.lex \"A fine film.\"\n"
                "  safer predict --model cnn.safetensors --lexicon imdb.lex --json < reviews.txt\n",
    .max_arguments = SIZE_MAX,
    .request_size = sizeof(request),
    .list = list,
    .run = run,
};
