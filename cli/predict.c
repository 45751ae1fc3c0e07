/* safer predict */
#define _GNU_SOURCE
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static json_t *answer_json(const safer_model *model, const safer_certificate *c)
{
    json_t *shares = json_object();
    for (size_t k = 0; k < safer_model_class_count(model); k++)
        json_object_set_new(shares, safer_model_label(model, k), json_real(c->shares[k]));
    return json_pack("{s:o, s:s, s:b, s:o, s:f, s:b, s:o, s:b, s:I, s:I}", "label",
                     c->abstained ? json_null() : json_string(safer_model_label(model, (size_t)c->prediction)),
                     "leading", safer_model_label(model, (size_t)c->prediction), "abstained", c->abstained, "shares",
                     shares, "bound", c->bound, "certified", c->certified && !c->abstained, "radius",
                     c->abstained             ? json_integer(0)
                     : c->radius == SAFER_ALL ? json_string("all")
                                              : json_integer((json_int_t)c->radius),
                     "exact", c->exact, "slots", (json_int_t)c->slots, "queries", (json_int_t)c->queries);
}

static void print_answer(const safer_model *model, const safer_certificate *c)
{
    const char *label = safer_model_label(model, (size_t)c->prediction);
    if (c->abstained)
        printf("abstained  (%s leads, but not clearly)", label);
    else
        printf("%s%s%s", cli_bold(), label, cli_plain());
    if (c->abstained)
        printf("  not certified");
    else if (c->slots == 0)
        printf("  no word of this text has synonyms");
    else if (c->radius == SAFER_ALL)
        printf("  certified against any substitution in its %zu word%s with synonyms", c->slots,
               c->slots == 1 ? "" : "s");
    else if (c->radius)
        printf("  certified against %zu changed word%s of %zu", c->radius, c->radius == 1 ? "" : "s", c->slots);
    else
        printf("  not certified");
    printf("  %s(bound %s, %s%s quer%s)%s\n", cli_dim(), cli_cut(c->bound, 4), c->exact ? "exact, " : "",
           cli_count(c->queries), c->queries == 1 ? "y" : "ies", cli_plain());
}

int cli_predict(int argc, char **argv)
{
    static const cli_verb verb = {
        "predict",
        "--model M --lexicon L [TEXT...]",
        "The smoothed classifier's answer for each TEXT (or each line of standard input), or an\n"
        "abstention when the vote is not clear, and how many words an attacker may change\n"
        "without changing it. The seed is fresh unless --seed is given.",
        "  safer predict --model cnn.safetensors --lexicon imdb.lex \"A fine film.\"\n"
        "  safer predict --model cnn.safetensors --lexicon imdb.lex --json < reviews.txt\n",
        0,
        SIZE_MAX};
    const char *lexicon_path = NULL;
    cli_model_flags m = cli_model_default();
    cli_certify_flags c = cli_certify_default();
    /* A known seed would let an attacker search for sampling errors. */
    if (getrandom(&c.options.seed, sizeof c.options.seed, 0) != (ssize_t)sizeof c.options.seed) {
        cli_complain("cannot get random numbers: %s", strerror(errno));
        return CLI_SYSTEM;
    }
    c.options.seed >>= 1; /* fits a signed number in JSON */
    const cli_option options[] = {
        CLI_MODEL_OPTIONS(m),
        {"lexicon", CLI_STRING, &lexicon_path, "FILE", "synonyms and kernel, from safer lexicon"},
        CLI_TEST_OPTIONS(c),
        {"radius", CLI_STRING, &c.radius, "R", "words the attacker may change: a number or all (default all)"},
        {"seed", CLI_UINT, &c.options.seed, "N", "of the random draws (default: a fresh one)"},
        {"batch", CLI_UINT, &c.batch, "N", "draws asked at once (default 256); results do not depend on it"},
        CLI_REMOTE_OPTIONS(m),
        {0},
    };
    size_t count = cli_parse(argc, argv, &verb, options);
    if (!m.path) cli_misuse(&verb, "--model MODEL is needed");
    if (!lexicon_path) cli_misuse(&verb, "--lexicon FILE is needed");
    cli_certify_finish(&c, &verb);
    c.options.unlabelled = 1;
    signal(SIGINT, SIG_DFL); /* nothing to clean up: Ctrl-C ends it at once */
    safer_error error = {0};
    safer_model *model = cli_model_open(&m, &verb, NULL);
    safer_lexicon *lexicon = cli_lexicon_open(lexicon_path);
    cli_note_training(model, lexicon);
    safer_workspace *workspace = NULL;
    json_t *list = json_array();
    char *line = NULL;
    size_t capacity = 0;
    int code = CLI_DONE;
    for (size_t i = 0; code == CLI_DONE; i++) {
        const char *text;
        size_t length;
        if (count) {
            if (i >= count) break;
            text = argv[i];
            length = strlen(text);
        } else {
            ssize_t got = getline(&line, &capacity, stdin);
            if (got < 0 && ferror(stdin)) {
                cli_complain("cannot read the standard input: %s", strerror(errno));
                code = CLI_SYSTEM;
            }
            if (got < 0) break;
            if (got && line[got - 1] == '\n') got--;
            text = line;
            length = (size_t)got;
        }
        safer_certificate certificate;
        if (safer_certify_text(&certificate, &workspace, model, lexicon, text, length, -1, &c.options, &error) !=
            SAFER_OK) {
            if (error.status == SAFER_INPUT) {
                safer_error named = {.status = error.status};
                snprintf(named.message, sizeof named.message, "text %zu: %.400s", i + 1, error.message);
                error = named;
            }
            code = cli_fail(&error);
        } else if (cli_settings()->json)
            json_array_append_new(list, answer_json(model, &certificate));
        else {
            print_answer(model, &certificate);
            fflush(stdout); /* whoever feeds the lines may be waiting */
        }
    }
    if (cli_settings()->json && code == CLI_DONE)
        cli_print_json(json_pack("{s:I, s:o}", "seed", (json_int_t)c.options.seed, "answers", list));
    else
        json_decref(list);
    if (!cli_settings()->json && code == CLI_DONE) cli_say("seed %llu", (unsigned long long)c.options.seed);
    free(line);
    safer_workspace_free(workspace);
    safer_lexicon_free(lexicon);
    safer_model_free(model);
    return code;
}
