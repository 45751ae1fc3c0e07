/* safer certify | verify */
#include "cli.h"

#include <math.h>
#include <stdlib.h>

int cli_certify(int argc, char **argv)
{
    static const cli_verb verb = {
        "certify",
        "--model M --lexicon L --data D [options] [-o OUT.jsonl]",
        "Certifies every text: whether any replacement of words by their synonyms could change\n"
        "the smoothed classifier's answer (with --method ibp: the model's own). Prints accuracies\n"
        "and certified accuracy by radius; -o writes a record for every text, from which safer\n"
        "verify can recompute all decisions.",
        "  safer certify --model cnn.safetensors --lexicon imdb.lex --data test.tsv -o run.jsonl\n"
        "  safer certify --model cnn.safetensors --lexicon imdb.lex --data test.tsv --sample every:20 \\\n"
        "      --method hoeffding --n 5000 --require 0.81\n"
        "  safer certify --method ibp --model ibp.safetensors --lexicon imdb.lex --data test.tsv\n",
        0,
        0};
    const char *lexicon_path = NULL, *output = NULL;
    cli_model_flags m = cli_model_default();
    double require = (double)NAN;
    int resume = 0;
    cli_data d = cli_data_default();
    cli_certify_flags c = cli_certify_default();
    const cli_option options[] = {
        {NULL, CLI_HEADING, NULL, NULL, "What"},
        CLI_MODEL_OPTIONS(m),
        {"lexicon", CLI_STRING, &lexicon_path, "FILE", "synonyms and kernel, from safer lexicon"},
        CLI_DATA_OPTIONS(d),
        {NULL, CLI_HEADING, NULL, NULL, "Certificate"},
        CLI_CERTIFY_OPTIONS(c),
        {"family-wise", CLI_FLAG, &c.options.family_wise, NULL, "delta covers all texts together: each gets delta/N"},
        {"unlabelled", CLI_FLAG, &c.options.unlabelled, NULL, "certify the prediction, not the label"},
        {NULL, CLI_HEADING, NULL, NULL, "Results"},
        {"output", CLI_STRING, &output, "FILE", "write a record a text, JSON Lines (also -o FILE)"},
        {"resume", CLI_FLAG, &resume, NULL, "continue FILE after its last whole record"},
        {"require", CLI_REAL, &require, "ACC", "exit 1 when certified accuracy is below ACC (0 to 1)"},
        CLI_REMOTE_OPTIONS(m),
        {0},
    };
    cli_parse(argc, argv, &verb, options);
    if (!m.path) cli_misuse(&verb, "--model MODEL is needed");
    if (!lexicon_path) cli_misuse(&verb, "--lexicon FILE is needed");
    if (!d.path) cli_misuse(&verb, "--data DATA is needed");
    if (resume && !output) cli_misuse(&verb, "--resume needs -o FILE");
    if (require < 0 || require > 1) cli_misuse(&verb, "--require %g: a share from 0 to 1", require);
    cli_certify_finish(&c, &verb);

    safer_error error = {0};
    safer_summary summary;
    safer_lexicon *lexicon = cli_lexicon_open(lexicon_path);
    safer_data *data = cli_data_load(&d, c.options.seed);
    safer_model *model = cli_model_open(&m, &verb, data);
    cli_note_training(model, lexicon);
    int code = CLI_DONE;
    if (safer_certify(&summary, output, resume, model, lexicon, data, &c.options, &error) != SAFER_OK) {
        code = cli_fail(&error);
        if (code == CLI_INTERRUPTED && output) cli_say("continue with --resume");
    } else {
        double accuracy = summary.texts ? (double)summary.certified / (double)summary.texts : 0;
        cli_progress_clear();
        if (cli_settings()->json) {
            json_t *result = cli_summary_json(&summary, c.options.seed), *traffic = cli_traffic_json(model);
            if (traffic) json_object_set_new(result, "traffic", traffic);
            cli_print_json(result);
        } else {
            cli_summary_print(&summary, &c.options);
            cli_traffic_print(model);
        }
        if (accuracy < require) {
            cli_complain("certified accuracy %s is below the required %g", cli_cut(accuracy, 4), require);
            code = CLI_UNMET;
        }
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    safer_model_free(model);
    return code;
}

int cli_verify(int argc, char **argv)
{
    static const cli_verb verb = {
        "verify",
        "RUN.jsonl [--model M --lexicon L --data D]",
        "Recomputes every decision of a run from its records. With the model, the lexicon and\n"
        "the data it also draws and asks everything again.",
        "  safer verify run.jsonl\n"
        "  safer verify run.jsonl --model cnn.safetensors --lexicon imdb.lex --data test.tsv\n",
        1,
        1};
    const char *lexicon_path = NULL;
    cli_model_flags m = cli_model_default();
    uint64_t seed = 1;
    cli_data d = cli_data_default();
    const cli_option options[] = {
        CLI_MODEL_OPTIONS(m),  {"lexicon", CLI_STRING, &lexicon_path, "FILE", "the lexicon of the run"},
        CLI_DATA_OPTIONS(d),   {"seed", CLI_UINT, &seed, "N", "for --sample random:N (default 1)"},
        CLI_REMOTE_OPTIONS(m), {0},
    };
    cli_parse(argc, argv, &verb, options);
    if ((m.path || lexicon_path || d.path) && !(m.path && lexicon_path && d.path))
        cli_misuse(&verb, "--model, --lexicon and --data: all three or none");
    safer_error error = {0};
    safer_summary summary;
    safer_lexicon *lexicon = lexicon_path ? cli_lexicon_open(lexicon_path) : NULL;
    safer_data *data = d.path ? cli_data_load(&d, seed) : NULL;
    safer_model *model = m.path ? cli_model_open(&m, &verb, data) : NULL;
    int code = CLI_DONE;
    if (safer_verify(&summary, argv[0], model, lexicon, data, cli_settings()->threads, cli_progress(), &error) !=
        SAFER_OK) {
        code = cli_fail(&error);
    } else {
        cli_progress_clear();
        if (cli_settings()->json)
            cli_print_json(json_pack("{s:b, s:b, s:I, s:f}", "verified", 1, "asked_again", model != NULL, "records",
                                     (json_int_t)summary.texts, "certified_accuracy",
                                     summary.texts ? (double)summary.certified / (double)summary.texts : 0.0));
        else
            printf("%s records hold%s; %s%% certified\n", cli_count(summary.texts),
                   model ? ", and the model gives the same again" : "", cli_percent(summary.certified, summary.texts));
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    safer_model_free(model);
    return code;
}
