/* safer train */
#include "cli.h"

#include <string.h>

int cli_train(int argc, char **argv)
{
    static const cli_verb verb = {
        "train",
        "--arch ngram|bow|cnn|charcnn|bert --data D [--lexicon L] [options] -o MODEL",
        "Trains a classifier. With a lexicon, on texts drawn afresh from its kernel, which is\n"
        "what the smoothed classifier will ask; without, on the texts as they are. With --defense,\n"
        "on the texts as they are and on bounds of the worst that their synonyms can do.",
        "  safer train --arch ngram --data train.tsv --lexicon imdb.lex -o ngram.safetensors\n"
        "  safer train --arch cnn --data train.tsv --dev dev.tsv --lexicon imdb.lex \\\n"
        "      --vectors glove.6B.100d.txt --epochs 10 -o cnn.safetensors\n"
        "  safer train --arch bert --encoder gte-small.safetensors --train-layers all --data train.tsv \\\n"
        "      --lexicon imdb.lex -o bert.safetensors\n"
        "  safer train --arch cnn --defense ibp-jia --data train.tsv --dev dev.tsv --lexicon imdb.lex \\\n"
        "      --vectors glove.6B.100d.txt -o ibp.safetensors\n",
        0,
        0};
    const char *lexicon_path = NULL, *output = NULL, *dev_path = NULL;
    cli_data d = cli_data_default();
    cli_train_flags t = cli_train_default();
    safer_train_options *o = &t.options;
    const cli_option options[] = {
        {NULL, CLI_HEADING, NULL, NULL, "What"},
        {"arch", CLI_STRING, &t.arch, "NAME", "ngram, bow, cnn, charcnn or bert"},
        CLI_DATA_OPTIONS(d),
        {"dev", CLI_PATH, &dev_path, "DATA", "texts to choose the epoch by (default: every 10th of each class)"},
        {"lexicon", CLI_PATH, &lexicon_path, "FILE", "draw the texts from its kernel"},
        {"seed", CLI_UINT, &o->seed, "N", "of everything random (default 1)"},
        {"output", CLI_STRING, &output, "FILE", "where to write the model (also -o FILE)"},
        CLI_TRAIN_OPTIONS(t),
        CLI_DEFENSE_OPTIONS(t),
        {"resume", CLI_FLAG, &o->resume, NULL, "continue from the checkpoint beside FILE"},
        {0},
    };
    cli_parse(argc, argv, &verb, options);
    if (!t.arch) cli_misuse(&verb, "--arch ngram, bow, cnn, charcnn or bert is needed");
    if (!d.path) cli_misuse(&verb, "--data DATA is needed");
    if (o->seed > INT64_MAX)
        cli_misuse(&verb, "--seed %llu: at most %lld", (unsigned long long)o->seed, (long long)INT64_MAX);
    if (!output) cli_misuse(&verb, "-o FILE is needed: where to write the model");
    o->threads = cli_settings()->threads;
    o->progress = *cli_progress();

    safer_error error = {0};
    safer_train_report report;
    if (cli_train_finish(&t, &error) != SAFER_OK) return cli_fail(&error);
    safer_lexicon *lexicon = lexicon_path ? cli_lexicon_open(lexicon_path) : NULL;
    safer_data *train = cli_data_load(&d, o->seed), *dev = NULL;
    if (dev_path) {
        cli_data dev_data = cli_data_default();
        dev_data.path = dev_path;
        dev_data.options.repair = d.options.repair;
        dev_data.options.strip_breaks = d.options.strip_breaks;
        dev_data.options.labels_of = train;
        dev = cli_data_load(&dev_data, o->seed);
    }
    o->train = train;
    o->dev = dev;
    o->lexicon = lexicon;
    const char *unit = o->arch == SAFER_ARCH_BERT ? "pieces" : o->arch == SAFER_ARCH_CHARCNN ? "characters" : "words";
    int code = CLI_DONE;
    if (safer_train(output, o, &report, &error) != SAFER_OK) {
        code = cli_fail(&error);
        if (code == CLI_INTERRUPTED && o->arch != SAFER_ARCH_NGRAM) cli_say("continue with --resume");
    } else {
        cli_progress_clear();
        if (cli_settings()->json)
            cli_print_json(json_pack("{s:s, s:s, s:I, s:I, s:I, s:i, s:i, s:f, s:f, s:f, s:f, s:I}", "output", output,
                                     "arch", t.arch, "texts", (json_int_t)report.texts, "tokens",
                                     (json_int_t)report.tokens, "parameters", (json_int_t)report.parameters, "epochs",
                                     report.epochs, "best_epoch", report.best_epoch, "loss", report.loss,
                                     "dev_accuracy", report.dev_accuracy, "seconds", report.seconds,
                                     "tokens_per_second", report.tokens_per_second, "seed", (json_int_t)o->seed));
        else
            printf("trained %s on %s texts (%s %s): %s %.2f%% after epoch %d of %d, loss %.4f\n"
                   "%s parameters, %.1f s, %s %s/s, seed %llu\nwrote %s\n",
                   t.arch, cli_count(report.texts), cli_count(report.tokens), unit,
                   o->defense.kind ? "dev texts certified" : "dev accuracy", 100 * report.dev_accuracy,
                   report.best_epoch, report.epochs, report.loss, cli_count(report.parameters), report.seconds,
                   cli_count((uint64_t)report.tokens_per_second), unit, (unsigned long long)o->seed, output);
    }
    safer_data_free(train);
    safer_data_free(dev);
    safer_lexicon_free(lexicon);
    return code;
}
