/* The options of making a lexicon: by `lexicon build`, or by `lexicon import`. */
#include "lexicon_options.h"

#include "data_options.h"

#include <stdlib.h>
#include <string.h>

static const char *metrics(size_t number) { return safer_metric_name((safer_metric)number); }

cli_lexicon_flags cli_lexicon_default(void)
{
    return (cli_lexicon_flags){.min_count = UINT64_MAX,
                               .counterfit = -1,
                               .options = safer_lexicon_options_default(),
                               .columns = safer_data_options_default()};
}

void cli_lexicon_flags_free(cli_lexicon_flags *a)
{
    free(a->vocab_from.items);
    free(a->synonyms.items);
    free(a->antonyms.items);
    free(a->protect.items);
}

static void vocabulary_options(cli_options *options, cli_lexicon_flags *a)
{
    cli_add_path(options, "vocab", &a->options.vocab, "FILE", "use only the words of this list, one per line");
    cli_add_list(options, "vocab-from", &a->vocab_from, "DATA", "keep only words seen in this data (repeatable)");
    cli_add_uint(options, "min-count", &a->min_count, "N", "... at least N times (default {default})")
        ->usual = &a->options.min_count;
    cli_column_options(options, &a->columns);
    cli_add_flag(options, "repair", &a->options.repair, "replace invalid UTF-8 in that data instead of refusing it");
}

static void edit_options(cli_options *options, cli_lexicon_flags *a)
{
    cli_add_path(options, "exclude", &a->options.exclude, "FILE",
                 "words that take part in nothing, or pairs that are no synonyms");
    cli_add_list(options, "protect", &a->protect, "FILE",
                 "words that are never substituted, beside English function words; none: not these (repeatable)");
    cli_add_flag(options, "keep-antonyms", &a->options.keep_antonyms,
                 "antonyms may share a component: no pair is cut to keep them apart");
    cli_add_uint(options, "max-component", &a->max_component, "N",
                 "cut the weakest pairs so that no component has more than N words (default: any number)");
}

static void filter_options(cli_options *options, cli_lexicon_flags *a)
{
    cli_add_real(
        options, "max-frequency", &a->options.max_frequency, "S",
        "leave out pairs of words that are more than this share of all words of --vocab-from (default: any share)");
    cli_add_path(options, "same-pos", &a->options.same_pos, "FOLDER",
                 "leave out pairs that can be no common part of speech, by WordNet's index files in FOLDER");
    cli_add_uint(options, "nearest", &a->nearest, "N",
                 "leave out pairs whose words are not among the N nearest of each other (default: any number)");
}

void cli_kernel_option(cli_options *options, cli_lexicon_flags *a)
{
    cli_add_string(options, "kernel", &a->options.kernel, "NAME",
                   "topk:K, component or representative; auto: representative, unless trials on the first "
                   "--vocab-from DATA find one that certifies clearly more of its labelled texts (default {default})");
}

void cli_build_options(cli_options *options, cli_lexicon_flags *a)
{
    safer_lexicon_options *o = &a->options;
    a->building = 1;
    cli_add_heading(options, "Words");
    cli_add_path(options, "vectors", &o->vectors, "FILE", "word vectors: GloVe text or word2vec binary");
    vocabulary_options(options, a);
    cli_add_heading(options, "Vectors");
    cli_add_path(
        options, "wordnet", &o->wordnet, "FOLDER",
        "WordNet's synonyms and antonyms as such pairs: the folder with data.noun, data.verb, data.adj, data.adv");
    cli_add_list(options, "synonyms", &a->synonyms, "FILE", "pairs to pull together (repeatable)");
    cli_add_list(options, "antonyms", &a->antonyms, "FILE", "pairs to push and keep apart (repeatable)");
    cli_add_int(options, "counterfit", &a->counterfit, "STEPS",
                "steps of counter-fitting with those pairs (default {default})")
        ->usual = &o->counterfit;
    cli_add_int(options, "all-but-the-top", &o->all_but_the_top, "D",
                "common directions to remove (default {default})");
    cli_add_path(options, "simlex", &o->simlex, "FILE", "report the rank correlation with SimLex-999");
    cli_add_heading(options, "Synonyms");
    cli_add_real(options, "threshold", &o->threshold, "T", "similarity that makes synonyms (default {default})");
    cli_add_choice(options, "metric", &a->metric, metrics, "NAME",
                   "cosine, or dot without rescaling (default {default})");
    filter_options(options, a);
    edit_options(options, a);
    cli_add_heading(options, "Smoothing");
}

void cli_import_options(cli_options *options, cli_lexicon_flags *a)
{
    safer_lexicon_options *o = &a->options;
    cli_add_heading(options, "Words and synonyms");
    cli_add_path(options, "table", &o->table, "FILE", "the synonyms, JSON or text");
    cli_add_path(options, "wordnet", &o->wordnet, "FOLDER", "the folder with data.noun, data.verb, data.adj, data.adv");
    cli_add_flag(options, "directed", &o->directed, "one-way synonyms stay one-way");
    cli_add_list(options, "antonyms", &a->antonyms, "FILE", "pairs to keep apart (repeatable)");
    vocabulary_options(options, a);
    filter_options(options, a);
    edit_options(options, a);
    cli_add_heading(options, "Smoothing");
    cli_add_path(options, "vectors", &o->vectors, "FILE",
                 "rank neighbours, and pairs to cut, by these vectors (default: by the graph)");
}

void cli_fold_option(cli_options *options, cli_lexicon_flags *a)
{
    cli_add_heading(options, "Characters");
    cli_add_string(options, "fold", &a->options.fold, "STEPS",
                   "spellings that make no difference: standard, or nfkc,case,ignorable,marks,lookalikes, "
                   "and leet,spaced,repeats (default: none)");
}

/* Of the values of --protect, "none" is about the list that is built in, the other a file. */
static safer_status take_protected(cli_lexicon_flags *a, safer_error *error)
{
    for (size_t i = 0; i < a->protect.count; i++) {
        const char *value = a->protect.items[i];
        if (strcmp(value, "none") == 0)
            a->options.function_words = 0;
        else if (a->options.protect)
            return cli_error(error, SAFER_INVALID, "--protect %s and %s: one file, and none, at most",
                             a->options.protect, value);
        else
            a->options.protect = value;
    }
    return SAFER_OK;
}

safer_status cli_lexicon_finish(cli_lexicon_flags *a, safer_error *error)
{
    safer_lexicon_options *o = &a->options;
    if (a->metric && safer_metric_parse(&o->metric, a->metric, error) != SAFER_OK) return SAFER_INVALID;
    if (a->min_count != UINT64_MAX && !a->vocab_from.count)
        return cli_error(error, SAFER_INVALID, "--min-count counts words in --vocab-from DATA, which is missing");
    if (!(o->max_frequency >= 0 && o->max_frequency < 1))
        return cli_error(error, SAFER_INVALID, "--max-frequency %g: a share of the words, below 1", o->max_frequency);
    if (o->max_frequency > 0 && !a->vocab_from.count)
        return cli_error(error, SAFER_INVALID, "--max-frequency counts words in --vocab-from DATA, which is missing");
    if (o->repair && !a->vocab_from.count)
        return cli_error(error, SAFER_INVALID, "--repair is about --vocab-from DATA, which is missing");
    if (a->counterfit > 0 && !a->synonyms.count && !a->antonyms.count && !o->wordnet)
        return cli_error(error, SAFER_INVALID,
                         "--counterfit needs pairs: --wordnet FOLDER, --synonyms FILE or --antonyms FILE");
    if (o->keep_antonyms && !a->antonyms.count && !(o->wordnet && a->building))
        return cli_error(error, SAFER_INVALID, "--keep-antonyms is about --antonyms FILE, which is missing");
    if (a->max_component == 1 || a->max_component > UINT32_MAX)
        return cli_error(error, SAFER_INVALID, "--max-component %llu: at least 2 words, at most %lu",
                         (unsigned long long)a->max_component, (unsigned long)UINT32_MAX);
    if (take_protected(a, error) != SAFER_OK) return SAFER_INVALID;
    o->max_component = a->max_component;
    o->nearest = a->nearest;
    if (a->min_count != UINT64_MAX) o->min_count = a->min_count;
    if (a->counterfit >= 0) o->counterfit = a->counterfit;
    const safer_data_options *c = &a->columns;
    if ((c->text_column || c->label_column || c->id_column || c->title_column) && !a->vocab_from.count)
        return cli_error(error, SAFER_INVALID, "columns are those of --vocab-from DATA, which is missing");
    o->vocab_data = c;
    o->vocab_from = a->vocab_from.items;
    o->vocab_from_count = a->vocab_from.count;
    o->synonyms = a->synonyms.items;
    o->synonyms_count = a->synonyms.count;
    o->antonyms = a->antonyms.items;
    o->antonyms_count = a->antonyms.count;
    o->threads = cli_settings()->threads;
    o->progress = *cli_progress();
    return SAFER_OK;
}
