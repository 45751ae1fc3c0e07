/* Training: defaults, checks and the parts that the architectures share.
 *
 * Everything a caller can get wrong is refused here, by name, before any work: the
 * architectures may rely on it. docs/train.md describes them and their options. */
#include "train/train.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

safer_train_options safer_train_options_default(void)
{
    return (safer_train_options){
        .arch = "cnn",
        .seed = 1,
        .ngrams = 3,
        .bits = 22,
        .dropout = SAFER_DEFAULT,
        .rate = SAFER_DEFAULT,
        .decay = SAFER_DEFAULT,
        .clip = SAFER_DEFAULT,
        .warmup = SAFER_DEFAULT,
        .batch = SAFER_DEFAULT,
        .epochs = SAFER_DEFAULT,
        .patience = SAFER_DEFAULT,
        .dim = 100,
        .widths = "3",
        .filters = 100,
        .hidden = 100,
        .min_count = 2,
        .kappa = SAFER_DEFAULT,
        .ramp = SAFER_DEFAULT,
        .margin = 10,
        .characters = 1014,
        .size = "small",
        .train_layers = "0",
        .precision = "bf16",
    };
}

size_t sf_train_layers(const safer_train_options *options)
{
    const char *layers = options->train_layers;
    return layers && strcmp(layers, "all") == 0 ? SIZE_MAX : layers ? (size_t)strtoul(layers, NULL, 10) : 0;
}

/* What the architecture prefers, where nothing else was said. */
static safer_train_options resolve(const safer_train_options *options)
{
    static const struct {
        const char *arch;
        double dropout, rate, decay, clip, warmup;
        int batch, epochs, patience;
    } own[] = {
        {"charcnn", 0.5, 0.002, 0.1, 1, 0.1, 128, 30, 0}, {"bert", 0.1, 0.00006, 0.01, 1, 0.1, 32, 3, 0},
        {"ibp", 0.2, 0.001, 0.0001, 0.25, 0, 32, 60, 0},  {"exact", 0, 2, 0.00001, 0, 0, 32, 12, 0},
        {NULL, 0.2, 0.001, 0.0001, 0, 0, 32, 10, 3},
    };
    safer_train_options o = *options;
    int i = 0, exact = o.defense && strcmp(o.defense, "exact") == 0;
    while (own[i].arch && strcmp(own[i].arch, exact ? "exact" : o.defense ? "ibp" : o.arch) != 0) i++;
    struct {
        double *value, preferred;
    } real[] = {{&o.dropout, own[i].dropout},
                {&o.rate, own[i].rate},
                {&o.decay, own[i].decay},
                {&o.clip, own[i].clip},
                {&o.warmup, own[i].warmup}};
    struct {
        int *value, preferred;
    } whole[] = {{&o.batch, own[i].batch}, {&o.epochs, own[i].epochs}, {&o.patience, own[i].patience}};
    if (strcmp(o.arch, "bert") == 0 && sf_train_layers(&o) == 0) real[1].preferred = 0.001; /* the head alone */
    for (size_t k = 0; k < sizeof real / sizeof real[0]; k++)
        if (*real[k].value == SAFER_DEFAULT) *real[k].value = real[k].preferred;
    for (size_t k = 0; k < sizeof whole / sizeof whole[0]; k++)
        if (*whole[k].value == SAFER_DEFAULT) *whole[k].value = whole[k].preferred;
    if (o.kappa == SAFER_DEFAULT) o.kappa = exact ? 1 : 0.8;
    if (o.ramp == SAFER_DEFAULT) o.ramp = exact ? 0 : (int)((int64_t)o.epochs * 2 / 3);
    if (!o.pool && strcmp(o.arch, "bert") != 0) o.pool = "mean";
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
        {"ngrams", o->ngrams, 1, 8},
        {"bits", o->bits, 8, 28},
        {"dim", o->dim, 1, 4096},
        {"filters", o->filters, 1, 65536},
        {"hidden", o->hidden, 0, 65536},
        {"batch", o->batch, 1, 65536},
        {"epochs", o->epochs, 1, 100000},
        {"patience", o->patience, 0, 100000},
        {"max_words", o->max_words, 0, INT32_MAX},
        {"min_count", o->min_count, 1, INT32_MAX},
        {"freeze", o->freeze, 0, 1},
        {"resume", o->resume, 0, 1},
        {"characters", o->characters, 1, 1 << 20},
        {"tokens", o->tokens, 0, 1 << 20},
        {"ramp", o->ramp, 0, 100000},
        {"train_vectors", o->train_vectors, 0, 1},
    };
    /* Limits are part of the range unless `open` says otherwise. */
    const struct {
        const char *name;
        double value, low, high;
        int open_low, open_high;
    } real[] = {
        {"dropout", o->dropout, 0, 1, 0, 1},   {"rate", o->rate, 0, 10, 1, 0},      {"decay", o->decay, 0, 1, 0, 0},
        {"clip", o->clip, 0, 1e9, 0, 0},       {"warmup", o->warmup, 0, 1, 0, 0},   {"kappa", o->kappa, 0, 1, 0, 0},
        {"triplet", o->triplet, 0, 1e9, 0, 0}, {"margin", o->margin, 0, 1e9, 0, 0},
    };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (whole[i].value < whole[i].low || whole[i].value > whole[i].high)
            return sf_fail(error, SAFER_INVALID, "%s is %d; it must be from %d to %d", whole[i].name, whole[i].value,
                           whole[i].low, whole[i].high);
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) {
        double x = real[i].value; /* written so that NaN fails */
        int good = (real[i].open_low ? x > real[i].low : x >= real[i].low) &&
                   (real[i].open_high ? x < real[i].high : x <= real[i].high);
        if (!good)
            return sf_fail(error, SAFER_INVALID, "%s is %g; it must be %s %g and %s %g", real[i].name, x,
                           real[i].open_low ? "above" : "at least", real[i].low,
                           real[i].open_high ? "below" : "at most", real[i].high);
    }
    return SAFER_OK;
}

static safer_status check_strings(const safer_train_options *o, safer_error *error)
{
    int bert = strcmp(o->arch, "bert") == 0;
    if (!o->widths || !widths_are_good(o->widths))
        return sf_fail(error, SAFER_INVALID,
                       "widths is \"%s\"; it must be up to %d whole numbers from 1 to %d, as in 3,4,5",
                       o->widths ? o->widths : "(none)", MAX_WIDTHS, MAX_WIDTH);
    if (o->pool && strcmp(o->pool, "mean") != 0 && strcmp(o->pool, bert ? "cls" : "max") != 0)
        return sf_fail(error, SAFER_INVALID, "pool is \"%s\"; it must be mean or %s", o->pool, bert ? "cls" : "max");
    if (!o->size || (strcmp(o->size, "small") != 0 && strcmp(o->size, "large") != 0))
        return sf_fail(error, SAFER_INVALID, "size is \"%s\"; it must be small or large", o->size ? o->size : "(none)");
    if (!o->precision || (strcmp(o->precision, "bf16") != 0 && strcmp(o->precision, "f32") != 0))
        return sf_fail(error, SAFER_INVALID, "precision is \"%s\"; it must be bf16 or f32",
                       o->precision ? o->precision : "(none)");
    if (!o->train_layers ||
        (strcmp(o->train_layers, "all") != 0 && strspn(o->train_layers, "0123456789") != strlen(o->train_layers)) ||
        !*o->train_layers || strlen(o->train_layers) > 4)
        return sf_fail(error, SAFER_INVALID, "train_layers is \"%s\"; it must be a number from 0 to 9999 or all",
                       o->train_layers ? o->train_layers : "(none)");
    if (bert && !o->encoder)
        return sf_fail(error, SAFER_INVALID, "encoder is not given: bert starts from a pretrained encoder");
    return SAFER_OK;
}

/* What a defense needs, and what only a defense can use. */
static safer_status check_defense(const safer_train_options *o, safer_error *error)
{
    int cnn = strcmp(o->arch, "cnn") == 0, exact = o->defense && strcmp(o->defense, "exact") == 0;
    if (!o->defense) {
        if (o->triplet > 0)
            return sf_fail(error, SAFER_INVALID, "triplet is %g: only training by a defense has that loss", o->triplet);
        if (o->train_vectors)
            return sf_fail(error, SAFER_INVALID,
                           "train_vectors is for a defense; otherwise vectors are trained unless freeze is set");
        return SAFER_OK;
    }
    if (!exact && strcmp(o->defense, "ibp-jia") != 0 && strcmp(o->defense, "ibp-huang") != 0)
        return sf_fail(error, SAFER_INVALID, "defense is \"%s\"; it must be ibp-jia, ibp-huang or exact", o->defense);
    if (exact && strcmp(o->arch, "bow") != 0)
        return sf_fail(error, SAFER_INVALID, "defense is \"exact\", which is for bow alone, not %s", o->arch);
    if (exact && (o->vectors || o->freeze || o->train_vectors || o->triplet > 0))
        return sf_fail(
            error, SAFER_INVALID,
            "defense is \"exact\": a linear classifier has no use for vectors, freeze, train_vectors and triplet");
    if (!cnn && strcmp(o->arch, "bow") != 0)
        return sf_fail(error, SAFER_INVALID, "defense is \"%s\", which is for bow and cnn, not %s", o->defense,
                       o->arch);
    if (!o->lexicon) return sf_fail(error, SAFER_INVALID, "lexicon is not given: a defense needs to know the synonyms");
    if (!cnn && strcmp(o->defense, "ibp-jia") != 0 && strcmp(o->pool, "mean") != 0)
        return sf_fail(error, SAFER_INVALID, "pool is \"%s\"; for bow with defense \"%s\" it must be mean", o->pool,
                       o->defense);
    if (o->hidden < 1 && !exact)
        return sf_fail(error, SAFER_INVALID, "hidden is 0; with a defense it must be at least 1");
    if (cnn && strchr(o->widths, ','))
        return sf_fail(error, SAFER_INVALID, "widths is \"%s\"; with a defense it must be one number", o->widths);
    if (o->freeze && o->train_vectors)
        return sf_fail(error, SAFER_INVALID, "freeze and train_vectors contradict each other");
    if (o->freeze && o->triplet > 0) return sf_fail(error, SAFER_INVALID, "freeze and triplet contradict each other");
    return SAFER_OK;
}

/* Every row has a label. */
static safer_status check_rows(const safer_data *data, const char *what, safer_error *error)
{
    size_t count = safer_data_size(data);
    if (count == 0) return sf_fail(error, SAFER_INVALID, "%s has no rows", what);
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
    if (!o->train) return sf_fail(error, SAFER_INVALID, "train is not given: there is nothing to learn from");
    SF_TRY(check_rows(o->train, "train", error));
    size_t labels = safer_data_label_count(o->train), count = safer_data_size(o->train), i = 1;
    int first = safer_data_row(o->train, 0).label;
    while (i < count && safer_data_row(o->train, i).label == first) i++;
    if (i == count)
        return sf_fail(error, SAFER_INPUT, "all rows of train have the label \"%s\"; at least two classes are needed",
                       safer_data_label(o->train, (size_t)first));
    if (!o->dev) return SAFER_OK;
    SF_TRY(check_rows(o->dev, "dev", error));
    int same = safer_data_label_count(o->dev) == labels;
    for (size_t k = 0; same && k < labels; k++)
        same = strcmp(safer_data_label(o->train, k), safer_data_label(o->dev, k)) == 0;
    if (!same) return sf_fail(error, SAFER_INPUT, "dev does not have train's labels; load it with labels_of = train");
done:
    return status;
}

static sf_trainer *find_trainer(const char *arch)
{
    static const struct {
        const char *arch;
        sf_trainer *train;
    } trainers[] = {{"ngram", sf_ngram_train},
                    {"bow", sf_cnn_train},
                    {"cnn", sf_cnn_train},
                    {"charcnn", sf_charcnn_train},
                    {"bert", sf_bert_train}};
    for (size_t i = 0; arch && i < sizeof trainers / sizeof trainers[0]; i++)
        if (strcmp(arch, trainers[i].arch) == 0) return trainers[i].train;
    return NULL;
}

safer_status safer_train(const char *output, const safer_train_options *options, safer_train_report *report,
                         safer_error *error)
{
    safer_status status;
    safer_train_report unused;
    if (!output || !*output) return sf_fail(error, SAFER_INVALID, "output is not given: the model needs a file name");
    if (!options) return sf_fail(error, SAFER_INVALID, "options are not given");
    sf_trainer *train = find_trainer(options->arch);
    if (!train)
        return sf_fail(error, SAFER_INVALID, "arch is \"%s\"; it must be ngram, bow, cnn, charcnn or bert",
                       options->arch ? options->arch : "(none)");
    safer_train_options resolved = resolve(options);
    SF_TRY(check_strings(&resolved, error));
    SF_TRY(check_numbers(&resolved, error));
    SF_TRY(check_defense(&resolved, error));
    SF_TRY(check_data(&resolved, error));
    if (resolved.defense) train = sf_ibp_train;
    status = train(output, &resolved, report ? report : &unused, error);
done:
    return status;
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
        return sf_fail(error, SAFER_INPUT, "no class of train has 10 rows, so none can be held out; give dev");
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
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
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
    char *kernel = NULL;
    int failed;
    if (options->defense) { /* no kernel: it learned from the synonyms */
        failed = sf_buffer_format(&out,
                                  "{\"lexicon\":\"%016" PRIx64 "\",\"kernel\":null,\"seed\":%" PRIu64
                                  ",\"defense\":\"%s\"}",
                                  sf_lexicon_hash(options->lexicon), options->seed, options->defense);
    } else if (options->lexicon) {
        json_t *name = json_string(options->lexicon->kernel_name);
        kernel = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
        json_decref(name);
        failed = !kernel ||
                 sf_buffer_format(&out, "{\"lexicon\":\"%016" PRIx64 "\",\"kernel\":%s,\"seed\":%" PRIu64 "}",
                                  sf_lexicon_hash(options->lexicon), kernel, options->seed);
    } else {
        failed = sf_buffer_format(&out, "{\"lexicon\":null,\"kernel\":null,\"seed\":%" PRIu64 "}", options->seed);
    }
    free(kernel);
    if (failed) sf_buffer_free(&out);
    return out.bytes;
}
