/* safer fold */
#include "data_options.h"
#include "texts.h"
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    const char *lexicon, *fold;
} request;

static void list(cli_options *options, void *into)
{
    request *r = into;
    cli_add_path(options, "lexicon", &r->lexicon, "FILE", "the lexicon whose fold is meant");
    cli_add_string(options, "fold", &r->fold, "STEPS",
                   "or a fold with these steps, as lexicon build has them (default: standard)");
}

/* What becomes of a folded text. */
typedef struct sink {
    json_t *list; /* NULL: it is printed */
    const char *text;
    size_t length;
} sink;

static int take(void *context, const char *folded, size_t length)
{
    sink *s = context;
    if (!s->list) {
        fwrite(folded, 1, length, stdout);
        putchar('\n');
        return 0;
    }
    json_t *text = json_stringn(s->text, s->length);
    cli_append(s->list,
               json_pack("{s:o, s:o, s:b}", "text", text ? text : json_null(), "folded", json_stringn(folded, length),
                         "changed", length != s->length || memcmp(folded, s->text, length) != 0));
    return 0;
}

static int fold_all(json_t *list, cli_given *texts, const safer_fold *fold)
{
    sink s = {.list = list};
    int more;
    while ((more = cli_next_text(texts, &s.text, &s.length)) != 0) {
        safer_error error = {0};
        if (more < 0) {
            cli_complain("cannot read the standard input: %s", strerror(errno));
            return CLI_SYSTEM;
        }
        if (safer_fold_apply(fold, s.text, s.length, take, &s, &error) != SAFER_OK) return cli_fail(&error);
    }
    return CLI_DONE;
}

static int run(void *from, char **arguments, size_t count)
{
    request *r = from;
    cli_given texts = {.arguments = arguments, .count = count};
    safer_fold *own = NULL;
    safer_lexicon *lexicon = NULL;
    safer_error error = {0};
    if (r->lexicon && r->fold) cli_misuse(&cli_fold, "--lexicon FILE or --fold STEPS, not both");
    if (r->lexicon) lexicon = cli_lexicon_open(r->lexicon);
    if (!lexicon && safer_fold_new(&own, r->fold ? r->fold : "standard", &error) != SAFER_OK) return cli_fail(&error);
    const safer_fold *fold = lexicon ? safer_lexicon_fold(lexicon) : own;
    int code = CLI_DONE;
    if (!fold) {
        cli_complain("%s has no fold: texts are read as they are; make it again with --fold", r->lexicon);
        code = CLI_INPUT;
    } else {
        json_t *answers = cli_settings()->json ? json_array() : NULL;
        code = fold_all(answers, &texts, fold);
        if (code == CLI_DONE && answers)
            cli_print_json(json_pack("{s:s, s:s, s:O}", "steps", safer_fold_steps(fold), "unicode",
                                     safer_fold_unicode(fold), "texts", answers));
        else if (code == CLI_DONE)
            cli_say("folded: %s, Unicode %s", safer_fold_steps(fold), safer_fold_unicode(fold));
        json_decref(answers);
    }
    free(texts.line);
    safer_fold_free(own);
    safer_lexicon_free(lexicon);
    return code;
}

const cli_verb cli_fold = {
    .name = "fold",
    .brief = "what a lexicon's fold makes of a text",
    .usage = "[--lexicon L | --fold STEPS] [TEXT...]",
    .summary = "Prints each TEXT (or each line of standard input) as a lexicon with this fold reads it:\n"
               "all texts that fold alike are one text to the certified classifier.",
    .examples = "  safer fold \"A gre\\u0430t f\\u0131lm\"\n"
                "  safer fold --fold standard,leet,spaced,repeats --json < reviews.txt\n",
    .max_arguments = SIZE_MAX,
    .request_size = sizeof(request),
    .list = list,
    .run = run,
};
