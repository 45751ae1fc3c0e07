/* The options of training. Defaults that depend on the architecture are the library's, and are told here;
 * tests/test_cli_options.py holds the two together. */
#include "train_options.h"

#include "model_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *archs(size_t number) { return safer_arch_name((safer_arch)number); }
static const char *sizes(size_t number) { return safer_charcnn_size_name((safer_charcnn_size)number); }

/* Without "default" and "none", which is what happens when nothing is given. */
static const char *pools(size_t number) { return safer_pool_name((safer_pool)(number + 1)); }
static const char *sides(size_t number) { return safer_truncation_side_name((safer_truncation_side)(number + 1)); }
static const char *defenses(size_t number) { return safer_defense_name((safer_defense)(number + 1)); }

cli_train_flags cli_train_default(void) { return (cli_train_flags){.options = safer_train_options_default()}; }

void cli_arch_option(cli_options *options, cli_train_flags *t)
{
    cli_add_choice(options, "arch", &t->arch, archs, "NAME", "{choices}");
}

void cli_arch_missing(const cli_verb *verb)
{
    char names[128];
    cli_choices(names, sizeof names, archs);
    cli_misuse(verb, "--arch %s is needed", names);
}

static void course_options(cli_options *options, cli_train_flags *t)
{
    safer_train_options *o = &t->options;
    cli_add_heading(options, "bow, cnn, charcnn and bert; defaults in this order; and context");
    cli_add_real(options, "dropout", &o->course.dropout, "P",
                 "share of units dropped; of what words are in context (0.2, 0.2, 0.5, 0.1; context 0.5)");
    cli_add_real(options, "rate", &o->course.rate, "R",
                 "learning rate of Adam (0.001; charcnn 0.002; bert 0.00006, its head alone 0.001; context 2)");
    cli_add_real(options, "decay", &o->course.decay, "W",
                 "weight decay (0.0001, 0.0001, 0.1, 0.01; bert's head alone 0.3; context 0.00001)");
    cli_add_real(options, "clip", &o->course.clip, "C", "charcnn, bert: the gradient's length at most, 0 for any (1)");
    cli_add_real(options, "warmup", &o->course.warmup, "S",
                 "charcnn, bert: share of steps in which the rate rises, then it falls (0.1)");
    cli_add_int(options, "batch", &o->course.batch, "N", "texts per step (32, 32, 128, 32)");
    cli_add_int(options, "epochs", &o->course.epochs, "N", "at most (10, 10, 30, 3; bert's head alone 20; context 12)");
    cli_add_int(options, "patience", &o->course.patience, "N",
                "epochs without a better dev accuracy before stopping (3, 3, never, never; 0: never)");
    cli_add_choice(options, "pool", &t->pool, pools, "HOW",
                   "bow, cnn: mean or max over the words (mean); bert: mean or cls (the encoder's)");
    cli_add_choice(options, "precision", &t->precision, cli_precisions, "TYPE",
                   "charcnn, bert, context: products in {choices} ({default})");
    cli_add_string(
        options, "device", &o->device, "NAME",
        "charcnn, bert, the encoder of context: where it computes: cpu, cuda (the first GPU), cuda:N or auto (cpu)");
}

static void word_options(cli_options *options, safer_train_options *o)
{
    cli_add_heading(options, "bow and cnn");
    cli_add_path(options, "vectors", &o->cnn.vectors, "FILE",
                 "pretrained word vectors to start from, or an encoder, which reads every word alone");
    cli_add_int(options, "dim", &o->cnn.dim, "D",
                "length of word vectors that are learned, or an encoder's (default {default})");
    cli_add_string(options, "widths", &o->cnn.widths, "LIST", "cnn: filter widths, as 3 or 3,4,5 (default {default})");
    cli_add_int(options, "filters", &o->cnn.filters, "N", "cnn: filters of each width (default {default})");
    cli_add_int(options, "hidden", &o->cnn.hidden, "N", "units before the output, 0 for none (default {default})");
    cli_add_int(options, "max-words", &o->cnn.max_words, "N",
                "read only the first N words of a text (default {default}: all)");
    cli_add_int(options, "min-count", &o->cnn.min_count, "N",
                "context too: words seen less often are unknown (default {default})");
    cli_add_flag(options, "freeze", &o->cnn.freeze, "do not train the word vectors");
}

void cli_train_options(cli_options *options, cli_train_flags *t)
{
    safer_train_options *o = &t->options;
    cli_add_heading(options, "ngram");
    cli_add_int(options, "ngrams", &o->ngram.order, "N", "longest n-gram (default {default})");
    cli_add_int(options, "bits", &o->ngram.bits, "B", "2^B hashed features (default {default})");
    course_options(options, t);
    word_options(options, o);
    cli_add_heading(options, "charcnn");
    cli_add_int(options, "characters", &o->charcnn.characters, "N", "read of a text (default {default})");
    cli_add_choice(options, "size", &t->size, sizes, "SIZE", "{choices} (default {default})");
    cli_add_heading(options, "bert and context");
    cli_add_path(options, "encoder", &o->bert.encoder, "MODEL",
                 "what to start from: a converted encoder, a HuggingFace folder, a trained model");
    cli_add_string(options, "train-layers", &t->layers, "N|all",
                   "bert: train so many layers from the top (default 0: the head alone)");
    cli_add_int(options, "tokens", &o->bert.tokens, "N",
                "word pieces read of a text (default: what the encoder takes, at most 512)");
    cli_add_choice(options, "truncation-side", &t->truncation_side, sides, "SIDE",
                   "what is cut off of longer texts: {choices} (default: the encoder's)");
    cli_add_int(options, "context", &o->context.size, "K", "context: numbers of a word's context (default {default})");
}

void cli_defense_options(cli_options *options, cli_train_flags *t)
{
    safer_train_options *o = &t->options;
    cli_add_heading(options, "bow and cnn, trained by interval bounds");
    cli_add_choice(options, "defense", &t->defense, defenses, "NAME",
                   "ibp-jia or ibp-huang: 60 epochs, clip 0.25; exact: bow without a hidden layer, 12 epochs, rate 2");
    cli_add_real(options, "kappa", &o->defense.kappa, "K",
                 "weight of the worst case in the loss, in the end; context 1 (default 0.8; exact 1)");
    cli_add_int(options, "ramp", &o->defense.ramp, "N",
                "epochs in which it and the intervals grow (default: two thirds of all; exact 0)");
    cli_add_flag(options, "train-vectors", &o->defense.train_vectors,
                 "let classification train the pretrained word vectors too");
    cli_add_real(options, "triplet", &o->defense.triplet, "W",
                 "weight of a loss on the word vectors that pulls synonyms together (default {default})");
    cli_add_real(options, "margin", &o->defense.margin, "A",
                 "how far apart that wants other words (default {default})");
}

safer_status cli_train_finish(cli_train_flags *t, safer_error *error)
{
    safer_train_options *o = &t->options;
    safer_status status = SAFER_OK;
    char *end;
    if (t->arch) status = safer_arch_parse(&o->arch, t->arch, error);
    if (status == SAFER_OK && t->pool) status = safer_pool_parse(&o->course.pool, t->pool, error);
    if (status == SAFER_OK && t->precision) status = safer_precision_parse(&o->course.precision, t->precision, error);
    if (status == SAFER_OK && t->defense) status = safer_defense_parse(&o->defense.kind, t->defense, error);
    if (status == SAFER_OK && t->truncation_side)
        status = safer_truncation_side_parse(&o->bert.truncation_side, t->truncation_side, error);
    if (status == SAFER_OK && t->size) status = safer_charcnn_size_parse(&o->charcnn.size, t->size, error);
    if (status != SAFER_OK || !t->layers) return status;
    const unsigned long layers = strtoul(t->layers, &end, 10);
    const int all = strcmp(t->layers, "all") == 0;
    if (!all && (t->layers[0] < '0' || t->layers[0] > '9' || *end || layers > 9999))
        return cli_error(error, SAFER_INVALID, "--train-layers %s: a number from 0 to 9999, or all", t->layers);
    o->bert.layers = all ? SAFER_ALL_LAYERS : (int)layers;
    return SAFER_OK;
}

enum {
    NGRAM = 1 << SAFER_ARCH_NGRAM,
    CNN = 1 << SAFER_ARCH_CNN,
    WORDS = CNN | 1 << SAFER_ARCH_BOW,
    CHARCNN = 1 << SAFER_ARCH_CHARCNN,
    BERT = 1 << SAFER_ARCH_BERT,
    CONTEXT = 1 << SAFER_ARCH_CONTEXT,
    DEFENDED = 1 << (SAFER_ARCH_CONTEXT + 1) /* bow and cnn with --defense */
};

/* "bow, cnn and context": the architectures of a set. */
static void name_uses(char *out, size_t size, int set)
{
    int left = 0;
    size_t length = 0;
    for (int k = 0; safer_arch_name((safer_arch)k); k++) left += set >> k & 1;
    out[0] = '\0';
    for (int k = 0; safer_arch_name((safer_arch)k); k++) {
        if (!(set >> k & 1)) continue;
        left--;
        length += (size_t)snprintf(out + length, size - length, "%s%s", safer_arch_name((safer_arch)k),
                                   left > 1 ? ", "
                                   : left   ? " and "
                                            : "");
    }
}

/* Whoever gives an option expects something of it. */
void cli_train_check_uses(const cli_train_flags *t, int automatic, const cli_verb *verb)
{
    const safer_train_options *o = &t->options, d = safer_train_options_default();
    const int learned = WORDS | CHARCNN | BERT | CONTEXT, encoded = BERT | CONTEXT;
    const struct {
        const char *name;
        int uses, given; /* what has a use for it; whether it is not the default */
    } rows[] = {
        {"ngrams", NGRAM, o->ngram.order != d.ngram.order},
        {"bits", NGRAM, o->ngram.bits != d.ngram.bits},
        {"dropout", learned, o->course.dropout != d.course.dropout},
        {"rate", learned, o->course.rate != d.course.rate},
        {"decay", learned, o->course.decay != d.course.decay},
        {"clip", CHARCNN | BERT | DEFENDED, o->course.clip != d.course.clip},
        {"warmup", CHARCNN | BERT, o->course.warmup != d.course.warmup},
        {"batch", learned, o->course.batch != d.course.batch},
        {"epochs", learned | NGRAM, o->course.epochs != d.course.epochs},
        {"patience", learned, o->course.patience != d.course.patience},
        {"pool", WORDS | BERT, o->course.pool != d.course.pool},
        {"precision", CHARCNN | encoded, o->course.precision != d.course.precision},
        {"vectors", WORDS, o->cnn.vectors != d.cnn.vectors},
        {"dim", WORDS, o->cnn.dim != d.cnn.dim},
        {"widths", CNN, strcmp(o->cnn.widths, d.cnn.widths) != 0},
        {"filters", CNN, o->cnn.filters != d.cnn.filters},
        {"hidden", WORDS, o->cnn.hidden != d.cnn.hidden},
        {"max-words", WORDS, o->cnn.max_words != d.cnn.max_words},
        {"min-count", WORDS | CONTEXT, o->cnn.min_count != d.cnn.min_count},
        {"freeze", WORDS, o->cnn.freeze != d.cnn.freeze},
        {"characters", CHARCNN, o->charcnn.characters != d.charcnn.characters},
        {"size", CHARCNN, o->charcnn.size != d.charcnn.size},
        {"encoder", encoded, o->bert.encoder != d.bert.encoder},
        {"train-layers", BERT, o->bert.layers != d.bert.layers},
        {"tokens", encoded, o->bert.tokens != d.bert.tokens},
        {"truncation-side", encoded, o->bert.truncation_side != d.bert.truncation_side},
        {"context", CONTEXT, o->context.size != d.context.size},
        {"kappa", CONTEXT | DEFENDED, o->defense.kappa != d.defense.kappa},
        {"ramp", DEFENDED, o->defense.ramp != d.defense.ramp},
        {"margin", DEFENDED, o->defense.margin != d.defense.margin},
    };
    const int own = (automatic ? NGRAM | WORDS : 1 << o->arch) | (o->defense.kind ? DEFENDED : 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char uses[128];
        if (!rows[i].given || rows[i].uses & own) continue;
        name_uses(uses, sizeof uses, rows[i].uses);
        const char *joint = rows[i].uses & DEFENDED && *uses ? ", and for " : "",
                   *defended = rows[i].uses & DEFENDED ? "training with --defense" : "";
        if (automatic) cli_misuse(verb, "--%s is for %s%s%s: it needs --arch", rows[i].name, uses, joint, defended);
        cli_misuse(verb, "--%s is for %s%s%s, not for %s", rows[i].name, uses, joint, defended,
                   safer_arch_name(o->arch));
    }
}
