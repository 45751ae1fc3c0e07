/* Training: defaults, checks and the parts that the architectures share.
 *
 * Everything a caller can get wrong is refused here, by name, before any work: the
 * architectures may rely on it. docs/train.md describes them and their options. */
#include "train/train.h"

#include "base/deletion.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/options.h"
#include "draw/groups.h"
#include "model/canonical.h"
#include "model/context_sum.h"
#include "nn/device.h"
#include "train/seeds.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

void safer_train_options_init(safer_train_options *options, size_t size)
{
    static const safer_train_options defaults = {
        .arch = SAFER_ARCH_CNN,
        .seed = 1,
        .seeds = 1,
        .course = {SAFER_DEFAULT, SAFER_DEFAULT, SAFER_DEFAULT, SAFER_DEFAULT, SAFER_DEFAULT, SAFER_DEFAULT,
                   SAFER_DEFAULT, SAFER_DEFAULT, SAFER_POOL_DEFAULT, SAFER_PRECISION_BF16},
        .ngram = {.order = 3, .bits = 22},
        .cnn = {.dim = 100, .widths = "3", .filters = 100, .hidden = 100, .min_count = 2},
        .defense = {.kappa = SAFER_DEFAULT, .ramp = SAFER_DEFAULT, .margin = 10},
        .charcnn = {.characters = 1014},
        .context = {.size = 16},
    };
    sf_options_init(options, size, &defaults, sizeof defaults);
}

size_t sf_train_layers(const safer_train_options *options)
{
    return options->bert.layers == SAFER_ALL_LAYERS ? SIZE_MAX : (size_t)options->bert.layers;
}

/* How a course goes where nothing else was said. */
typedef struct preference {
    double dropout, rate, decay, clip, warmup;
    int batch, epochs, patience;
} preference;

static preference preferred(const safer_train_options *o)
{
    static const preference plain = {0.2, 0.001, 0.0001, 0, 0, 32, 10, 3},
                            charcnn = {0.5, 0.002, 0.1, 1, 0.1, 128, 30, 0},
                            bert = {0.1, 0.00006, 0.01, 1, 0.1, 32, 3, 0},
                            bert_head = {0.1, 0.001, 0.3, 1, 0.1, 32, 20, 0},
                            ibp = {0.2, 0.001, 0.0001, 0.25, 0, 32, 60, 0}, exact = {0, 2, 0.00001, 0, 0, 32, 12, 0},
                            context = {0.5, 2, 0.00001, 0, 0, 32, 12, 0};
    if (o->defense.kind) return o->defense.kind == SAFER_DEFENSE_EXACT ? exact : ibp;
    if (o->arch == SAFER_ARCH_CHARCNN) return charcnn;
    if (o->arch == SAFER_ARCH_CONTEXT) return context;
    if (o->arch == SAFER_ARCH_BERT) return o->bert.layers == 0 ? bert_head : bert;
    return plain;
}

static void prefer(double *value, double preferred_value)
{
    if (*value == SAFER_DEFAULT) *value = preferred_value;
}

static void prefer_whole(int *value, int preferred_value)
{
    if (*value == SAFER_DEFAULT) *value = preferred_value;
}

static safer_train_options resolve(const safer_train_options *options)
{
    safer_train_options o = *options;
    const preference own = preferred(&o);
    const int exact = o.defense.kind == SAFER_DEFENSE_EXACT || o.arch == SAFER_ARCH_CONTEXT;
    prefer(&o.course.dropout, own.dropout);
    prefer(&o.course.rate, own.rate);
    prefer(&o.course.decay, own.decay);
    prefer(&o.course.clip, own.clip);
    prefer(&o.course.warmup, own.warmup);
    prefer_whole(&o.course.batch, own.batch);
    prefer_whole(&o.course.epochs, own.epochs);
    prefer_whole(&o.course.patience, own.patience);
    prefer(&o.defense.kappa, exact ? 1 : 0.8);
    prefer_whole(&o.defense.ramp, exact ? 0 : (int)((int64_t)o.course.epochs * 2 / 3));
    if (!o.course.pool && o.arch != SAFER_ARCH_BERT) o.course.pool = SAFER_POOL_MEAN;
    return o;
}

/* ----------------------------------------------------------------- options */

enum { MAX_WIDTH = 100, MAX_WIDTHS = 16 };

/* "3" or "3,4,5": the form only; the architecture reads the numbers. */
static int widths_are_good(const char *text)
{
    for (int items = 1;; items++) {
        int width = 0;
        if (*text < '1' || *text > '9') return 0;
        while (*text >= '0' && *text <= '9' && width <= MAX_WIDTH) width = 10 * width + (*text++ - '0');
        if (width > MAX_WIDTH || items > MAX_WIDTHS) return 0;
        if (*text == '\0') return 1;
        if (*text++ != ',') return 0;
    }
}

static safer_status check_numbers(const safer_train_options *o, safer_error *error)
{
    const struct {
        const char *name;
        int value, low, high;
    } whole[] = {
        {"threads", o->threads, 0, 4096},
        {"ngram.order", o->ngram.order, 1, 8},
        {"bits", o->ngram.bits, 8, 28},
        {"dim", o->cnn.dim, 1, 4096},
        {"filters", o->cnn.filters, 1, 65536},
        {"hidden", o->cnn.hidden, 0, 65536},
        {"batch", o->course.batch, 1, 65536},
        {"epochs", o->course.epochs, 1, 100000},
        {"patience", o->course.patience, 0, 100000},
        {"max_words", o->cnn.max_words, 0, INT32_MAX},
        {"min_count", o->cnn.min_count, 1, INT32_MAX},
        {"freeze", o->cnn.freeze, 0, 1},
        {"resume", o->resume, 0, 1},
        {"characters", o->charcnn.characters, 1, 1 << 20},
        {"tokens", o->bert.tokens, 0, 1 << 20},
        {"bert.layers", o->bert.layers, SAFER_ALL_LAYERS, 9999},
        {"context.size", o->context.size, 1, SF_CONTEXT_LARGEST},
        {"ramp", o->defense.ramp, 0, 100000},
        {"train_vectors", o->defense.train_vectors, 0, 1},
    };
    /* Limits are part of the range unless `open` says otherwise. */
    const struct {
        const char *name;
        double value, low, high;
        int open_low, open_high;
    } real[] = {
        {"dropout", o->course.dropout, 0, 1, 0, 1},    {"rate", o->course.rate, 0, 10, 1, 0},
        {"decay", o->course.decay, 0, 1, 0, 0},        {"clip", o->course.clip, 0, 1e9, 0, 0},
        {"warmup", o->course.warmup, 0, 1, 0, 0},      {"kappa", o->defense.kappa, 0, 1, 0, 0},
        {"triplet", o->defense.triplet, 0, 1e9, 0, 0}, {"margin", o->defense.margin, 0, 1e9, 0, 0},
    };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (whole[i].value < whole[i].low || whole[i].value > whole[i].high)
            return sf_fail(error, SAFER_INVALID, "`%s` is %d; it must be from %d to %d", whole[i].name, whole[i].value,
                           whole[i].low, whole[i].high);
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) {
        double x = real[i].value; /* written so that NaN fails */
        int good = (real[i].open_low ? x > real[i].low : x >= real[i].low) &&
                   (real[i].open_high ? x < real[i].high : x <= real[i].high);
        if (!good)
            return sf_fail(error, SAFER_INVALID, "`%s` is %g; it must be %s %g and %s %g", real[i].name, x,
                           real[i].open_low ? "above" : "at least", real[i].low,
                           real[i].open_high ? "below" : "at most", real[i].high);
    }
    return SAFER_OK;
}

static safer_status check_choices(const safer_train_options *o, safer_error *error)
{
    const int bert = o->arch == SAFER_ARCH_BERT;
    const safer_pool other = bert ? SAFER_POOL_CLS : SAFER_POOL_MAX;
    if (!safer_pool_name(o->course.pool)) return sf_fail(error, SAFER_INVALID, "`pool`: unknown");
    if (!safer_precision_name(o->course.precision)) return sf_fail(error, SAFER_INVALID, "`precision`: unknown");
    if (o->course.precision == SAFER_PRECISION_PORTABLE)
        return sf_fail(error, SAFER_INVALID, "`precision`: training takes bf16 or f32; portable is for answers");
    if (!safer_defense_name(o->defense.kind)) return sf_fail(error, SAFER_INVALID, "`defense`: unknown");
    if (!safer_truncation_side_name(o->bert.truncation_side))
        return sf_fail(error, SAFER_INVALID, "`bert.truncation_side`: unknown");
    if (!safer_charcnn_size_name(o->charcnn.size)) return sf_fail(error, SAFER_INVALID, "`charcnn.size`: unknown");
    if (!o->cnn.widths || !widths_are_good(o->cnn.widths))
        return sf_fail(error, SAFER_INVALID,
                       "`widths` is \"%s\"; it must be up to %d whole numbers from 1 to %d, as in 3,4,5",
                       o->cnn.widths ? o->cnn.widths : "(none)", MAX_WIDTHS, MAX_WIDTH);
    if (o->course.pool != SAFER_POOL_DEFAULT && o->course.pool != SAFER_POOL_MEAN && o->course.pool != other)
        return sf_fail(error, SAFER_INVALID, "`pool` is \"%s\"; it must be mean or %s", safer_pool_name(o->course.pool),
                       safer_pool_name(other));
    if ((bert || o->arch == SAFER_ARCH_CONTEXT) && !o->bert.encoder)
        return sf_fail(error, SAFER_INVALID, "`encoder` is not given: %s starts from a pretrained encoder",
                       safer_arch_name(o->arch));
    return SAFER_OK;
}

/* Whether this can be trained there; whether the device is there is found out by the trainer. */
static safer_status check_device(const safer_train_options *o, safer_error *error)
{
    sf_device_wish wish;
    if (!o->device) return SAFER_OK;
    const safer_status status = sf_device_parse(&wish, o->device, error);
    if (status != SAFER_OK || wish.kind != SF_DEVICE_CUDA) return status;
    if (o->arch != SAFER_ARCH_BERT && o->arch != SAFER_ARCH_CHARCNN && o->arch != SAFER_ARCH_CONTEXT)
        return sf_fail(error, SAFER_INVALID, "`device` is \"%s\", but %s is trained on the CPU alone", o->device,
                       safer_arch_name(o->arch));
    if (o->course.precision == SAFER_PRECISION_F32)
        return sf_fail(error, SAFER_INVALID, "`precision` is \"f32\", which is for the CPU: a GPU computes in bf16");
    return SAFER_OK;
}

/* What a defense needs, and what only a defense can use. */
static safer_status check_defense(const safer_train_options *o, safer_error *error)
{
    const int cnn = o->arch == SAFER_ARCH_CNN, exact = o->defense.kind == SAFER_DEFENSE_EXACT;
    const char *arch = safer_arch_name(o->arch), *defense = safer_defense_name(o->defense.kind);
    if (!o->defense.kind) {
        if (o->defense.triplet > 0)
            return sf_fail(error, SAFER_INVALID, "`triplet` is %g: only training by a defense has that loss",
                           o->defense.triplet);
        if (o->defense.train_vectors)
            return sf_fail(error, SAFER_INVALID,
                           "`train_vectors` is for a defense; otherwise vectors are trained unless `freeze` is set");
        return SAFER_OK;
    }
    if (exact && o->arch != SAFER_ARCH_BOW)
        return sf_fail(error, SAFER_INVALID, "`defense` is \"exact\", which is for bow alone, not %s", arch);
    if (exact && (o->cnn.vectors || o->cnn.freeze || o->defense.train_vectors || o->defense.triplet > 0))
        return sf_fail(
            error, SAFER_INVALID,
            "`defense` is \"exact\": a linear classifier has no use for `vectors`, `freeze`, `train_vectors` "
            "and `triplet`");
    if (!cnn && o->arch != SAFER_ARCH_BOW)
        return sf_fail(error, SAFER_INVALID, "`defense` is \"%s\", which is for bow and cnn, not %s", defense, arch);
    if (!o->lexicon)
        return sf_fail(error, SAFER_INVALID, "`lexicon` is not given: a defense needs to know the synonyms");
    if (!cnn && o->defense.kind != SAFER_DEFENSE_IBP_JIA && o->course.pool != SAFER_POOL_MEAN)
        return sf_fail(error, SAFER_INVALID, "`pool` is \"%s\"; for bow with `defense` \"%s\" it must be mean",
                       safer_pool_name(o->course.pool), defense);
    if (o->cnn.hidden < 1 && !exact)
        return sf_fail(error, SAFER_INVALID, "`hidden` is 0; with a defense it must be at least 1");
    if (cnn && strchr(o->cnn.widths, ','))
        return sf_fail(error, SAFER_INVALID, "`widths` is \"%s\"; with a defense it must be one number", o->cnn.widths);
    if (o->cnn.freeze && o->defense.train_vectors)
        return sf_fail(error, SAFER_INVALID, "`freeze` and `train_vectors` contradict each other");
    if (o->cnn.freeze && o->defense.triplet > 0)
        return sf_fail(error, SAFER_INVALID, "`freeze` and `triplet` contradict each other");
    return SAFER_OK;
}

/* Its worst case is exact because no substitution changes what its encoder reads. */
static safer_status check_context(const safer_train_options *o, safer_error *error)
{
    if (o->arch != SAFER_ARCH_CONTEXT) return SAFER_OK;
    if (!o->lexicon)
        return sf_fail(error, SAFER_INVALID, "`lexicon` is not given: context reads texts in its canonical form");
    if (!sf_canonical_is(o->lexicon))
        return sf_fail(
            error, SAFER_INVALID,
            "`lexicon` has the kernel %s: context needs one with the kernel representative, which gives every "
            "text a canonical form",
            o->lexicon->kernel_name);
    if (o->cnn.max_words) return sf_fail(error, SAFER_INVALID, "`max_words`: context reads all words of a text");
    if (sf_deletes(o->deletion))
        return sf_fail(error, SAFER_INVALID, "`%s`: context reads texts whole",
                       o->deletion.groups ? "groups" : "deletion");
    return SAFER_OK;
}

static safer_status check_deletion(const safer_train_options *o, safer_error *error)
{
    const safer_status status = sf_deletion_check(o->deletion, error);
    if (status != SAFER_OK) return status;
    if (sf_deletes(o->deletion) && o->defense.kind)
        return sf_fail(error, SAFER_INVALID, "`deletion`: a defense draws nothing, and so deletes nothing");
    if (o->deletion.groups && o->lexicon) return sf_groups_check(o->lexicon, error);
    return SAFER_OK;
}

/* What goes into the model file is JSON. */
static safer_status check_provenance(const safer_train_options *o, safer_error *error)
{
    json_t *choice = NULL;
    if (!o->arch_choice) return SAFER_OK;
    safer_status status = sf_json_parse(&choice, o->arch_choice, strlen(o->arch_choice), 0, NULL);
    if (status == SAFER_MEMORY) return sf_fail_memory(error);
    if (!json_is_object(choice)) status = sf_fail(error, SAFER_INVALID, "what was tried is not a JSON object");
    json_decref(choice);
    return status;
}

/* Every row has a label. */
static safer_status check_rows(const safer_data *data, const char *what, safer_error *error)
{
    size_t count = safer_data_size(data);
    if (count == 0) return sf_fail(error, SAFER_INVALID, "`%s` has no rows", what);
    for (size_t i = 0; i < count; i++) {
        safer_row row = safer_data_row(data, i);
        if (row.label < 0)
            return sf_fail(error, SAFER_INPUT, "%s, row %zu (id %s) has no label; label it or leave it out", what,
                           i + 1, row.id);
        if (row.text_length > INT32_MAX)
            return sf_fail(error, SAFER_INPUT, "%s, row %zu (id %s): a text of %zu bytes is too long", what, i + 1,
                           row.id, row.text_length);
    }
    return SAFER_OK;
}

static safer_status check_data(const safer_train_options *o, safer_error *error)
{
    safer_status status;
    if (!o->train) return sf_fail(error, SAFER_INVALID, "`train` is not given: there is nothing to learn from");
    SF_TRY(check_rows(o->train, "train", error));
    size_t labels = safer_data_label_count(o->train), count = safer_data_size(o->train), i = 1;
    int first = safer_data_row(o->train, 0).label;
    while (i < count && safer_data_row(o->train, i).label == first) i++;
    if (i == count)
        return sf_fail(error, SAFER_INPUT, "all rows of `train` have the label \"%s\"; at least two classes are needed",
                       safer_data_label(o->train, (size_t)first));
    if (!o->dev) return SAFER_OK;
    SF_TRY(check_rows(o->dev, "dev", error));
    int same = safer_data_label_count(o->dev) == labels;
    for (size_t k = 0; same && k < labels; k++)
        same = strcmp(safer_data_label(o->train, k), safer_data_label(o->dev, k)) == 0;
    if (!same)
        return sf_fail(error, SAFER_INPUT, "`dev` does not have the labels of `train`; load it with `labels_of`");
done:
    return status;
}

/* Puts the numbers that suit the architecture in the place of defaults, and refuses what is wrong. */
static safer_status prepare(safer_train_options *o, const char *output, safer_error *error)
{
    safer_status status;
    if (!output || !*output) return sf_fail(error, SAFER_INVALID, "`output` is not given: the model needs a file name");
    if (!safer_arch_name(o->arch)) return sf_fail(error, SAFER_INVALID, "`arch`: unknown");
    *o = resolve(o);
    SF_TRY(check_choices(o, error));
    SF_TRY(check_device(o, error));
    SF_TRY(check_numbers(o, error));
    SF_TRY(check_defense(o, error));
    SF_TRY(check_deletion(o, error));
    SF_TRY(check_context(o, error));
    SF_TRY(check_provenance(o, error));
    SF_TRY(check_data(o, error));
    SF_TRY(sf_seeds_check(output, o, error));
done:
    return status;
}

safer_status sf_train_check(const char *output, const safer_train_options *options, safer_error *error)
{
    safer_train_options o = *options;
    return prepare(&o, output, error);
}

safer_status safer_train(const char *output, const safer_train_options *options, safer_train_report *report,
                         safer_error *error)
{
    static sf_trainer *const trainers[] = {
        [SAFER_ARCH_NGRAM] = sf_ngram_train, [SAFER_ARCH_BOW] = sf_cnn_train,
        [SAFER_ARCH_CNN] = sf_cnn_train,     [SAFER_ARCH_CHARCNN] = sf_charcnn_train,
        [SAFER_ARCH_BERT] = sf_bert_train,   [SAFER_ARCH_CONTEXT] = sf_context_train};
    safer_train_report unused;
    safer_train_options o = safer_train_options_default();
    safer_status status = SF_TAKE_OPTIONS(&o, options, safer_train_options, error);
    if (status == SAFER_OK) status = prepare(&o, output, error);
    if (status != SAFER_OK) return status;
    if (o.seeds > 1) return sf_seeds_train(output, &o, report ? report : &unused, error);
    return (o.defense.kind ? sf_ibp_train : trainers[o.arch])(output, &o, report ? report : &unused, error);
}

/* ------------------------------------------------------------------ shared */

static size_t *all_rows(size_t count)
{
    size_t *rows = sf_alloc(count, sizeof *rows);
    for (size_t i = 0; rows && i < count; i++) rows[i] = i;
    return rows;
}

static safer_status hold_out(sf_train_split *split, const safer_data *data, safer_error *error)
{
    size_t count = safer_data_size(data);
    size_t *seen = sf_calloc(safer_data_label_count(data), sizeof *seen);
    split->fit = sf_alloc(count, sizeof *split->fit);
    split->dev = sf_alloc(count, sizeof *split->dev);
    if (!seen || !split->fit || !split->dev) {
        free(seen);
        return sf_fail_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        if (++seen[safer_data_row(data, i).label] % 10 == 0)
            split->dev[split->dev_count++] = i;
        else
            split->fit[split->fit_count++] = i;
    }
    free(seen);
    if (split->dev_count == 0)
        return sf_fail(error, SAFER_INPUT, "no class of `train` has 10 rows, so none can be held out; give `dev`");
    return SAFER_OK;
}

safer_status sf_train_split_make(sf_train_split *out, const safer_train_options *options, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_train_split split = {.fit_data = options->train, .dev_data = options->dev ? options->dev : options->train};
    if (!options->dev) {
        SF_TRY(hold_out(&split, options->train, error));
    } else {
        split.fit_count = safer_data_size(options->train);
        split.dev_count = safer_data_size(options->dev);
        split.fit = all_rows(split.fit_count);
        split.dev = all_rows(split.dev_count);
        if (!split.fit || !split.dev) {
            status = sf_fail_memory(error);
            goto done;
        }
    }
    *out = split;
    split = (sf_train_split){0};
done:
    sf_train_split_free(&split);
    return status;
}

void sf_train_split_free(sf_train_split *split)
{
    free(split->fit);
    free(split->dev);
    *split = (sf_train_split){0};
}

static char *dump_and_drop(json_t *value)
{
    char *text = sf_json_text(value);
    json_decref(value);
    return text;
}

char *sf_train_labels_json(const safer_data *data)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < safer_data_label_count(data); i++)
        if (json_array_append_new(list, json_string(safer_data_label(data, i)))) {
            json_decref(list);
            list = NULL;
        }
    return dump_and_drop(list);
}

/* Seeds have 64 bits, one more than jansson's numbers: the object is put together here. */
char *sf_train_provenance_json(const safer_train_options *options)
{
    sf_buffer out = {0};
    char lexicon[160] = "", deletion[80] = "", share[SF_REAL_SIZE], *kernel = NULL;
    const safer_deletion d = options->deletion;
    int failed;
    if (options->lexicon) /* the shorter one is for version 0.1.0 */
        snprintf(lexicon, sizeof lexicon, "\"lexicon\":\"%016" PRIx64 "\",\"lexicon_sha256\":\"%s\"",
                 sf_lexicon_hash(options->lexicon), options->lexicon->sha256.hex);
    if (d.groups) snprintf(deletion, sizeof deletion, ",\"groups\":%zu", d.groups);
    if (d.keep) snprintf(deletion, sizeof deletion, ",\"delete\":\"keep:%zu\"", d.keep);
    if (d.chance > 0 && sf_format_real(share, d.chance) == 0)
        snprintf(deletion, sizeof deletion, ",\"delete\":%s", share);
    if (options->defense.kind) { /* no kernel: it learned from the synonyms */
        failed = sf_buffer_format(&out, "{%s,\"kernel\":null,\"seed\":%" PRIu64 ",\"defense\":\"%s\"", lexicon,
                                  options->seed, safer_defense_name(options->defense.kind));
    } else if (options->lexicon) {
        json_t *name = json_string(options->lexicon->kernel_name);
        kernel = sf_json_text(name);
        json_decref(name);
        failed = !kernel || sf_buffer_format(&out, "{%s,\"kernel\":%s,\"seed\":%" PRIu64 "%s", lexicon, kernel,
                                             options->seed, deletion);
    } else {
        failed = sf_buffer_format(&out, "{\"lexicon\":null,\"kernel\":null,\"seed\":%" PRIu64 "%s", options->seed,
                                  deletion);
    }
    if (!failed && options->arch_choice) failed = sf_buffer_format(&out, ",\"arch_choice\":%s", options->arch_choice);
    free(kernel);
    if (failed || sf_buffer_format(&out, "}")) sf_buffer_free(&out);
    return out.bytes;
}
