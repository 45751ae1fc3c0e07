/* Training: defaults, checks and the parts that the architectures share.
 *
 * Everything a caller can get wrong is refused here, by name, before any work: the
 * architectures may rely on it. */
#include "model/train.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

safer_train_options safer_train_options_default(void)
{
    return (safer_train_options){
        .arch = "cnn", .seed = 1,
        .ngrams = 3, .bits = 22,
        .dim = 100, .widths = "3", .filters = 100, .pool = "mean", .hidden = 100,
        .dropout = 0.2, .rate = 0.001, .decay = 0.0001, .batch = 32, .epochs = 10, .patience = 3, .min_count = 2,
    };
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
    const struct { const char *name; int value, low, high; } whole[] = {
        {"threads", o->threads, 0, 4096},        {"ngrams", o->ngrams, 1, 8},
        {"bits", o->bits, 8, 28},                {"dim", o->dim, 1, 4096},
        {"filters", o->filters, 1, 65536},       {"hidden", o->hidden, 0, 65536},
        {"batch", o->batch, 1, 65536},           {"epochs", o->epochs, 1, 100000},
        {"patience", o->patience, 0, 100000},    {"max_words", o->max_words, 0, INT32_MAX},
        {"min_count", o->min_count, 1, INT32_MAX}, {"freeze", o->freeze, 0, 1},
        {"resume", o->resume, 0, 1},
    };
    /* Limits are part of the range unless `open` says otherwise. */
    const struct { const char *name; double value, low, high; int open_low, open_high; } real[] = {
        {"dropout", o->dropout, 0, 1, 0, 1}, {"rate", o->rate, 0, 10, 1, 0}, {"decay", o->decay, 0, 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (whole[i].value < whole[i].low || whole[i].value > whole[i].high)
            return sf_fail(error, SAFER_INVALID, "%s is %d; it must be from %d to %d", whole[i].name, whole[i].value,
                           whole[i].low, whole[i].high);
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) {
        double x = real[i].value; /* written so that NaN fails */
        int good = (real[i].open_low ? x > real[i].low : x >= real[i].low) && (real[i].open_high ? x < real[i].high : x <= real[i].high);
        if (!good)
            return sf_fail(error, SAFER_INVALID, "%s is %g; it must be %s %g and %s %g", real[i].name, x,
                           real[i].open_low ? "above" : "at least", real[i].low, real[i].open_high ? "below" : "at most", real[i].high);
    }
    return SAFER_OK;
}

static safer_status check_strings(const safer_train_options *o, safer_error *error)
{
    if (!o->arch || (strcmp(o->arch, "ngram") != 0 && strcmp(o->arch, "bow") != 0 && strcmp(o->arch, "cnn") != 0))
        return sf_fail(error, SAFER_INVALID, "arch is \"%s\"; it must be ngram, bow or cnn", o->arch ? o->arch : "(none)");
    if (!o->widths || !widths_are_good(o->widths))
        return sf_fail(error, SAFER_INVALID, "widths is \"%s\"; it must be up to %d whole numbers from 1 to %d, as in 3,4,5",
                       o->widths ? o->widths : "(none)", MAX_WIDTHS, MAX_WIDTH);
    if (!o->pool || (strcmp(o->pool, "mean") != 0 && strcmp(o->pool, "max") != 0))
        return sf_fail(error, SAFER_INVALID, "pool is \"%s\"; it must be mean or max", o->pool ? o->pool : "(none)");
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
            return sf_fail(error, SAFER_INPUT, "%s, row %zu (id %s) has no label; label it or leave it out", what, i + 1, row.id);
        if (row.text_length > INT32_MAX)
            return sf_fail(error, SAFER_INPUT, "%s, row %zu (id %s): a text of %zu bytes is too long", what, i + 1, row.id,
                           row.text_length);
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
    for (size_t k = 0; same && k < labels; k++) same = strcmp(safer_data_label(o->train, k), safer_data_label(o->dev, k)) == 0;
    if (!same)
        return sf_fail(error, SAFER_INPUT, "dev does not have train's labels; load it with labels_of = train");
done:
    return status;
}

safer_status safer_train(const char *output, const safer_train_options *options, safer_train_report *report, safer_error *error)
{
    safer_status status;
    safer_train_report unused;
    if (!output || !*output) return sf_fail(error, SAFER_INVALID, "output is not given: the model needs a file name");
    if (!options) return sf_fail(error, SAFER_INVALID, "options are not given");
    SF_TRY(check_strings(options, error));
    SF_TRY(check_numbers(options, error));
    SF_TRY(check_data(options, error));
    if (!report) report = &unused;
    status = (strcmp(options->arch, "ngram") == 0 ? sf_ngram_train : sf_cnn_train)(output, options, report, error);
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
    if (options->lexicon) {
        json_t *name = json_string(options->lexicon->kernel_name);
        kernel = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
        json_decref(name);
        failed = !kernel || sf_buffer_format(&out, "{\"lexicon\":\"%016" PRIx64 "\",\"kernel\":%s,\"seed\":%" PRIu64 "}",
                                             sf_lexicon_hash(options->lexicon), kernel, options->seed);
    } else {
        failed = sf_buffer_format(&out, "{\"lexicon\":null,\"kernel\":null,\"seed\":%" PRIu64 "}", options->seed);
    }
    free(kernel);
    if (failed) sf_buffer_free(&out);
    return out.bytes;
}
