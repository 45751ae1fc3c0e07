/* All that the program can do, as the help, the manual page and completions list it. */
#include "verbs.h"

#include <string.h>

const cli_group cli_groups[] = {
    {.name = "lexicon",
     .brief = "build, import, export and inspect synonym lexicons",
     .examples = "  safer lexicon import --table synonyms.tsv --kernel component -o words.lex\n"
                 "  safer lexicon show words.lex good\n",
     .verbs = {&cli_lexicon_build, &cli_lexicon_import, &cli_lexicon_export, &cli_lexicon_show, &cli_lexicon_stats,
               &cli_lexicon_check, &cli_lexicon_diff, &cli_lexicon_audit}},
    {.name = "train", .verbs = {&cli_train}},
    {.name = "label", .verbs = {&cli_label}},
    {.name = "certify", .verbs = {&cli_certify}},
    {.name = "predict", .verbs = {&cli_predict}},
    {.name = "verify", .verbs = {&cli_verify}},
    {.name = "merge", .verbs = {&cli_merge}},
    {.name = "attack", .verbs = {&cli_attack}},
    {.name = "report", .verbs = {&cli_report}},
    {.name = "evidence", .verbs = {&cli_evidence}},
    {.name = "serve", .verbs = {&cli_serve}},
    {.name = "fold", .verbs = {&cli_fold}},
    {.name = "sample", .verbs = {&cli_sample}},
    {.name = "model",
     .brief = "convert the checkpoint of an encoder, average models, weigh a sum of them, say what one is",
     .examples = "  safer model convert bert-base-uncased -o bert.safetensors\n"
                 "  safer model convert gte-small/onnx/model.onnx -o gte-small.safetensors\n",
     .verbs = {&cli_model_convert, &cli_model_average, &cli_model_fit, &cli_model_show}},
    {.name = "sweep", .verbs = {&cli_sweep}},
    {.name = "compare", .verbs = {&cli_compare}},
    {.name = "devices", .verbs = {&cli_devices}},
};
const size_t cli_group_count = sizeof cli_groups / sizeof *cli_groups;

int cli_has_actions(const cli_group *group) { return group->examples != NULL; }

const char *cli_action_name(const cli_verb *verb)
{
    const char *blank = strchr(verb->name, ' ');
    return blank ? blank + 1 : verb->name;
}
