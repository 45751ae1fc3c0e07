/* Labels for texts that have none (train/label.c), against a model that says what its texts tell it to; and data sets
 * written as TSV (data/write.c), against the reader. */
#include "support.h"

#include "base/file.h"
#include "data/data.h"
#include "model/model.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static safer_error error;

/* ------------------------------------------------------------------- a model */

enum { CLASSES = 3 };

static char *const names[CLASSES] = {"neg", "neutral", "pos"};
static atomic_int calls, fail_at; /* calls so far; the one that fails, 0: none */
static atomic_size_t most;        /* texts of a call */

/* A text holds its three scores; one that begins with '-' gets no label. */
static safer_status classify(const safer_model *model, const sf_span *texts, size_t count, int *labels, float *scores,
                             void *scratch, safer_error *said)
{
    (void)model, (void)scratch;
    if (atomic_fetch_add(&calls, 1) + 1 == atomic_load(&fail_at)) {
        if (said) *said = (safer_error){SAFER_INPUT, "the answer is no answer"};
        return SAFER_INPUT;
    }
    if (count > atomic_load(&most)) atomic_store(&most, count);
    for (size_t i = 0; i < count; i++) {
        char text[200];
        float s[CLASSES];
        snprintf(text, sizeof text, "%.*s", (int)texts[i].length, texts[i].bytes);
        assert_int_equal(sscanf(text + (*text == '-'), "%f %f %f", &s[0], &s[1], &s[2]), CLASSES);
        labels[i] = 0;
        for (int k = 1; k < CLASSES; k++)
            if (s[k] > s[labels[i]]) labels[i] = k;
        if (*text == '-') labels[i] = -1;
        memcpy(scores + i * CLASSES, s, sizeof s);
    }
    return SAFER_OK;
}

static safer_status confirm(const safer_model *model, const sf_span *texts, const int *answers, size_t count,
                            void *scratch, safer_error *said)
{
    (void)model, (void)texts, (void)answers, (void)count, (void)scratch, (void)said;
    return SAFER_OK;
}

static const sf_model_class plain = {.arch = "told", .classify = classify},
                            remote = {.arch = "told", .classify = classify, .confirm = confirm};

static safer_model model_of(const sf_model_class *class)
{
    atomic_store(&calls, 0);
    atomic_store(&most, 0);
    return (safer_model){.class = class, .classes = CLASSES, .labels = (char **)(uintptr_t)names};
}

static safer_data *data_of(const char *const *texts, const char *const *labels, size_t count)
{
    safer_data *data;
    assert_ok(safer_data_from_texts(&data, texts, NULL, labels, NULL, count, &error));
    return data;
}

/* ---------------------------------------------------------------------- labels */

/* Of which the fourth, at 1 as a float, is surest, and the fifth has no label. */
static const char *const told[] = {"0.5 0.3 0.2", "0.2 0.2 0.6", "0 1e-9 1", "0 1e-30 1", "-0 0 1", "0.1 0.8 0.1"};

static void label_told(int *labels, safer_label_summary *summary, const sf_model_class *class, double keep)
{
    const safer_model model = model_of(class);
    safer_label_options o = safer_label_options_default();
    safer_data *data = data_of(told, NULL, COUNT(told));
    o.keep = keep;
    assert_ok(safer_label(summary, labels, &model, data, &o, &error));
    safer_data_free(data);
}

static void test_all(void **state)
{
    (void)state;
    static const int wanted[] = {0, 2, 2, 2, -1, 1};
    int labels[COUNT(told)];
    safer_label_summary s;
    label_told(labels, &s, &plain, 1);
    assert_memory_equal(labels, wanted, sizeof wanted);
    assert_int_equal(s.texts, 6);
    assert_int_equal(s.none, 1);
    assert_int_equal(s.kept, 5);
    assert_int_equal(s.known + s.agreed + s.kept_known + s.kept_agreed, 0);
    assert_false(s.by_difference);
    assert_true(fabs(s.least_lead - log(0.5 / 0.3)) < 1e-6);
}

/* The surest first, also among those whose first score is 1: shares of the answered texts, rounded up. */
static void test_keep(void **state)
{
    (void)state;
    static const struct {
        double keep;
        int labels[COUNT(told)];
    } cases[] = {{0.01, {-1, -1, -1, 2, -1, -1}}, {0.2, {-1, -1, -1, 2, -1, -1}}, {0.21, {-1, -1, 2, 2, -1, -1}},
                 {0.6, {-1, -1, 2, 2, -1, 1}},    {0.8, {-1, 2, 2, 2, -1, 1}},    {0.81, {0, 2, 2, 2, -1, 1}}};
    for (size_t c = 0; c < COUNT(cases); c++)
        for (int far = 0; far < 2; far++) {
            int labels[COUNT(told)];
            safer_label_summary s;
            label_told(labels, &s, far ? &remote : &plain, cases[c].keep);
            assert_memory_equal(labels, cases[c].labels, sizeof labels);
            assert_int_equal(s.none, 1);
        }
}

/* A product that is a little above a whole number in binary is that number. */
static void test_keep_of_a_hundred(void **state)
{
    (void)state;
    const safer_model model = model_of(&plain);
    safer_label_options o = safer_label_options_default();
    const char *texts[100];
    int labels[100];
    safer_label_summary s;
    for (size_t i = 0; i < 100; i++) texts[i] = "0.5 0.25 0.25"; /* all the same */
    safer_data *data = data_of(texts, NULL, 100);
    for (int percent = 1; percent <= 100; percent++) {
        o.keep = (double)percent / 100;
        assert_ok(safer_label(&s, labels, &model, data, &o, &error));
        assert_int_equal(s.kept, percent);
        for (int i = 0; i < 100; i++) assert_int_equal(labels[i], i < percent ? 0 : -1); /* in the order of the data */
    }
    safer_data_free(data);
}

/* Logits of a service: their difference, though the ratio of the second text's is greater. */
static void test_scores_that_are_no_probabilities(void **state)
{
    (void)state;
    static const char *const texts[] = {"8 5 -1", "2 1 0", "0 -6 -2"};
    int labels[3];
    safer_label_summary s;
    safer_label_options o = safer_label_options_default();
    const safer_model model = model_of(&remote);
    safer_data *data = data_of(texts, NULL, 3);
    o.keep = 0.3;
    assert_ok(safer_label(&s, labels, &model, data, &o, &error));
    assert_true(labels[0] == 0 && labels[1] == -1 && labels[2] == -1 && s.by_difference && s.least_lead == 3);
    o.keep = 0.5;
    assert_ok(safer_label(&s, labels, &model, data, &o, &error));
    assert_true(labels[0] == 0 && labels[1] == -1 && labels[2] == 0 && s.least_lead == 2);
    safer_data_free(data);
    static const char *const sums[] = {"4 -2 -1", "0.5 0.25 0.25"}; /* 1 each, but one is negative */
    data = data_of(sums, NULL, 2);
    assert_ok(safer_label(&s, labels, &model, data, &o, &error));
    assert_true(labels[0] == 0 && labels[1] == -1 && s.by_difference && s.least_lead == 5);
    safer_data_free(data);
    static const char *const even[] = {"2 2 1"}; /* a lead of 0, not of -0 */
    data = data_of(even, NULL, 1);
    assert_ok(safer_label(&s, labels, &model, data, NULL, &error));
    assert_true(s.by_difference && s.least_lead == 0 && !signbit(s.least_lead));
    safer_data_free(data);
}

/* A remote model without scores is told from one with them by its first 64 texts; labels can be had. */
static void test_labels_alone(void **state)
{
    (void)state;
    enum { TEXTS = 1000 };
    static const char *texts[TEXTS];
    static int labels[TEXTS];
    safer_label_options o = safer_label_options_default();
    for (size_t i = 0; i < TEXTS; i++) texts[i] = i % 3 ? "0 0 1" : "0 1 0";
    safer_data *data = data_of(texts, NULL, TEXTS);
    safer_model model = model_of(&remote);
    o.keep = 0.5;
    o.threads = 1;
    assert_fails(safer_label(NULL, labels, &model, data, &o, &error), SAFER_INVALID, "`keep`: 0.5 needs scores");
    assert_int_equal(atomic_load(&calls), 1);
    o.keep = 1;
    assert_ok(safer_label(NULL, labels, &model, data, &o, &error));
    for (int i = 0; i < TEXTS; i++) assert_int_equal(labels[i], i % 3 ? 2 : 1);
    o.keep = 0.5;
    model.class = &plain; /* a file that is sure of everything: the first texts */
    assert_ok(safer_label(NULL, labels, &model, data, &o, &error));
    for (int i = 0; i < TEXTS; i++) assert_int_equal(labels[i], i >= TEXTS / 2 ? -1 : i % 3 ? 2 : 1);
    safer_data_free(data);
}

static void test_agreement(void **state)
{
    (void)state;
    static const char *const labels[] = {"neg", "neutral", NULL, "pos", "pos", "?"};
    int found[COUNT(told)];
    safer_label_summary s;
    safer_label_options o = safer_label_options_default();
    const safer_model model = model_of(&plain);
    safer_data *data = data_of(told, labels, COUNT(told));
    o.keep = 0.8;
    assert_ok(safer_label(&s, found, &model, data, &o, &error));
    assert_true(s.known == 3 && s.agreed == 2 && s.kept_known == 2 && s.kept_agreed == 1);
    safer_data_free(data);
}

static void test_threads_and_batches(void **state)
{
    (void)state;
    enum { TEXTS = 3000 };
    static char room[TEXTS][60];
    static const char *texts[TEXTS];
    static int first[TEXTS], labels[TEXTS];
    safer_label_options o = safer_label_options_default();
    safer_model model = model_of(&plain);
    for (size_t i = 0; i < TEXTS; i++) {
        const double a = (double)next_below(50), b = (double)next_below(50), c = 1 + (double)next_below(50);
        snprintf(room[i], sizeof *room, "%.9f %.9f %.9f", a / (a + b + c), b / (a + b + c), c / (a + b + c));
        texts[i] = room[i];
    }
    safer_data *data = data_of(texts, NULL, TEXTS);
    o.keep = 0.37;
    o.threads = 1;
    assert_ok(safer_label(NULL, first, &model, data, &o, &error));
    static const size_t batches[] = {0, 1, 7, 5000};
    for (int threads = 1; threads <= 5; threads++)
        for (size_t b = 0; b < COUNT(batches); b++) {
            model = model_of(b % 2 ? &remote : &plain); /* of which the first texts are asked alone */
            o.threads = threads;
            o.batch = batches[b];
            assert_ok(safer_label(NULL, labels, &model, data, &o, &error));
            assert_memory_equal(labels, first, sizeof labels);
            assert_true(atomic_load(&most) <= (batches[b] ? batches[b] : 64));
            if (batches[b] == 5000) /* each thread has its share */
                assert_int_equal(atomic_load(&most), (TEXTS - 64 + threads - 1) / threads);
        }
    safer_data_free(data);
}

static void test_failures(void **state)
{
    (void)state;
    static const char *const silent[] = {"-0 0 1", "-1 0 0"};
    int labels[COUNT(told)] = {7, 7, 7, 7, 7, 7};
    safer_label_options o = safer_label_options_default();
    safer_model model = model_of(&plain);
    safer_data *data = data_of(told, NULL, COUNT(told)), *none = data_of(silent, NULL, 2);
    static const double keeps[] = {0, -0.5, 1.001, (double)NAN};
    for (size_t k = 0; k < COUNT(keeps); k++) {
        o.keep = keeps[k];
        assert_fails(safer_label(NULL, labels, &model, data, &o, &error), SAFER_INVALID, "`keep`");
    }
    o = safer_label_options_default();
    o.threads = -1;
    assert_fails(safer_label(NULL, labels, &model, data, &o, &error), SAFER_INVALID, "`threads`");
    o = safer_label_options_default();
    o.batch = (1 << 20) + 1;
    assert_fails(safer_label(NULL, labels, &model, data, &o, &error), SAFER_INVALID, "`batch`");
    o = safer_label_options_default();
    o.size--;
    assert_fails(safer_label(NULL, labels, &model, data, &o, &error), SAFER_INVALID, "safer_label_options");
    assert_fails(safer_label(NULL, labels, &model, none, NULL, &error), SAFER_INPUT, "none of the 2 texts");
    o = safer_label_options_default();
    o.batch = 1;
    for (o.threads = 1; o.threads <= 2; o.threads++) {
        atomic_store(&calls, 0);
        atomic_store(&fail_at, 3);
        assert_fails(safer_label(NULL, labels, &model, data, &o, &error), SAFER_INPUT, "the answer is no answer");
        if (o.threads > 1) continue;
        assert_int_equal(atomic_load(&calls), 3); /* nobody asks any more */
        static const int answered[COUNT(told)] = {0, 2, -1, -1, -1, -1};
        assert_memory_equal(labels, answered, sizeof answered); /* and what was answered is there */
    }
    atomic_store(&fail_at, 0);
    stopper stop = {.when = "labelling", .at = 0};
    o.progress = (safer_progress){stop_run, &stop};
    atomic_store(&calls, 0);
    assert_fails(safer_label(NULL, labels, &model, data, &o, &error), SAFER_CANCELLED, "labelling");
    assert_int_equal(atomic_load(&calls), 0);
    for (size_t i = 0; i < COUNT(told); i++) assert_int_equal(labels[i], -1);
    safer_data_free(data);
    safer_data_free(none);
}

static safer_status label_once(void *context, safer_error *said)
{
    const safer_model model = model_of(&plain);
    safer_label_options o = safer_label_options_default();
    int labels[COUNT(told)];
    o.threads = 1;
    o.keep = 0.5;
    return safer_label(NULL, labels, &model, context, &o, said);
}

static void test_memory(void **state)
{
    (void)state;
    safer_data *data = data_of(told, NULL, COUNT(told));
    check_every_allocation(label_once, data);
    safer_data_free(data);
}

/* --------------------------------------------------------------------- writing */

/* The data set of a file, which must have these rows. */
static void assert_rows(const char *path, const char *const *ids, const sf_span *texts, const char *const *labels,
                        size_t count)
{
    safer_data *data;
    size_t row = 0;
    assert_ok(safer_data_load(&data, path, NULL, &error));
    for (size_t i = 0; i < count; i++) {
        if (!labels[i]) continue;
        const safer_row r = safer_data_row(data, row++);
        assert_string_equal(r.id, ids[i]);
        assert_string_equal(safer_data_label(data, (size_t)r.label), labels[i]);
        assert_int_equal(r.text_length, texts[i].length);
        assert_memory_equal(r.text, texts[i].bytes, r.text_length);
    }
    assert_int_equal(safer_data_size(data), row);
    safer_data_free(data);
}

/* Writes rows and reads them back; `header` is whether a line must stand above them. */
static void check_rows(const char *const *ids, const sf_span *texts, const char *const *labels, size_t count,
                       int header)
{
    const char *path = temporary("rows.tsv"), *bytes[64];
    size_t lengths[64];
    safer_data *data;
    sf_file file;
    assert_true(count <= COUNT(bytes));
    for (size_t i = 0; i < count; i++) {
        bytes[i] = texts[i].bytes;
        lengths[i] = texts[i].length;
    }
    assert_ok(safer_data_from_texts(&data, bytes, lengths, NULL, ids, count, &error));
    assert_ok(safer_data_write(path, data, labels, &error));
    assert_rows(path, ids, texts, labels, count);
    assert_ok(sf_file_load(&file, path, &error));
    assert_int_equal(file.length > 14 && memcmp(file.bytes, "id\tlabel\ttext\n", 14) == 0, header);
    sf_file_free(&file);
    safer_data_free(data);
}

#define SPAN(text) \
    { \
        text, sizeof text - 1 \
    }

static void test_write_awkward(void **state)
{
    (void)state;
    static const char *const ids[] = {"1", "a\tb", "c\\n", "\"quoted\"", "\xef\xbb\xbf", " ", "e\r", "\xc3\xa9"};
    static const sf_span texts[] = {SPAN("plain"),
                                    SPAN("tab\tline\nreturn\rback\\slash\\t"),
                                    SPAN(""),
                                    SPAN("\\"),
                                    SPAN("\n\n\t\t\r\r"),
                                    SPAN("nul\0inside"),
                                    SPAN("\"review\""),
                                    SPAN("\xf0\x9f\x98\x80 \xe2\x80\xa8")};
    static const char *const labels[] = {"pos", "a\tb\\", "pos", "a\tb\\", "pos", "new\nline", NULL, "pos"};
    check_rows(ids, texts, labels, COUNT(ids), 0);
}

/* First rows that the reader, without a header above them, refuses, takes for one, or does not read as they are. */
static void test_write_first_rows(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        sf_span text;
        const char *label, *rest; /* the label of all other rows */
        int header;
    } cases[] = {{"x", SPAN("it was a long evening"), "pos", "pos", 0}, /* nothing */
                 {"x", SPAN("it was a long evening"), "pos", "neg", 1}, /* its label is that of no other row */
                 {"x", SPAN("fine"), "pos", "neg", 1},
                 {"x", SPAN("fine"), "label", "label", 1},
                 {"id", SPAN("text"), "pos", "pos", 1},
                 {"x", SPAN("\"Review\""), "pos", "pos", 1},
                 {"\xef\xbb\xbfx", SPAN("it was"), "pos", "pos", 1}};
    char room[25][24];
    for (size_t c = 0; c < COUNT(cases); c++)
        for (size_t count = 1; count <= 25; count += 24) {
            const char *ids[25] = {cases[c].id}, *labels[25] = {cases[c].label};
            sf_span texts[25] = {cases[c].text};
            for (size_t i = 1; i < count; i++) {
                snprintf(room[i], sizeof *room, "row %zu of them all", i);
                ids[i] = room[i];
                texts[i] = (sf_span){room[i], strlen(room[i])};
                labels[i] = cases[c].rest;
            }
            check_rows(ids, texts, labels, count, count == 1 || cases[c].header);
        }
}

/* First rows that make a file one of another kind, where its name does not say what it is or nobody asks for it. */
static void test_write_other_kinds(void **state)
{
    (void)state;
    static const char *const names_of[] = {"kind.tsv", "kind"}, *const first[] = {"{",          "\n {}",
                                                                                  "__label__x", "BZh91AY&SYx",
                                                                                  "PAR1\x15",   "PK\x03\x04",
                                                                                  "plain"};
    static const sf_span texts[] = {SPAN("it was a long evening"), SPAN("a short one")};
    static const char *const labels[] = {"pos", "pos"};
    for (size_t n = 0; n < COUNT(names_of); n++)
        for (size_t i = 0; i < COUNT(first); i++) {
            const char *ids[] = {first[i], "other"}, *bytes[] = {texts[0].bytes, texts[1].bytes};
            safer_data *data;
            assert_ok(safer_data_from_texts(&data, bytes, NULL, NULL, ids, 2, &error));
            assert_ok(safer_data_write(temporary(names_of[n]), data, labels, &error));
            assert_rows(temporary(names_of[n]), ids, texts, labels, 2);
            safer_data_free(data);
        }
}

/* More than is written at once. */
static void test_write_much(void **state)
{
    (void)state;
    enum { MUCH = 3 << 19 };
    static char room[3][MUCH];
    static const char *const ids[] = {"a", "b", "c"}, *const labels[] = {"pos", "neg", "pos"};
    sf_span texts[3];
    for (size_t i = 0; i < 3; i++) {
        memset(room[i], 'x' + (int)i, MUCH);
        texts[i] = (sf_span){room[i], MUCH - i};
    }
    check_rows(ids, texts, labels, 3, 0);
}

static void test_write_random(void **state)
{
    (void)state;
    static const char *const pieces[] = {"\t",   "\n",    "\r",       "\\", "\\n", "\"", "id",
                                         "text", "label", "\xc3\xa9", " ",  "a",   ",",  "#"};
    enum { ROWS = 40 };
    for (int turn = 0; turn < 300; turn++) {
        static char room[ROWS][2][64];
        const char *ids[ROWS], *labels[ROWS], *lines[ROWS];
        for (size_t i = 0; i < ROWS; i++) {
            for (int side = 0; side < 2; side++) {
                strcpy(room[i][side], side ? "" : "x");
                for (uint32_t n = next_below(8); n; n--) strcat(room[i][side], pieces[next_below(COUNT(pieces))]);
            }
            ids[i] = room[i][0];
            lines[i] = room[i][1];
            labels[i] = next_below(4) ? next_below(2) ? "pos" : "n\teg" : NULL;
        }
        safer_data *data, *back;
        labels[ROWS - 1] = "pos";
        assert_ok(safer_data_from_texts(&data, lines, NULL, NULL, ids, ROWS, &error));
        assert_ok(safer_data_write(temporary("random.tsv"), data, labels, &error));
        assert_ok(safer_data_load(&back, temporary("random.tsv"), NULL, &error));
        size_t row = 0;
        for (size_t i = 0; i < ROWS; i++) {
            if (!labels[i]) continue;
            const safer_row r = safer_data_row(back, row++);
            assert_string_equal(r.id, ids[i]);
            assert_string_equal(r.text, lines[i]);
            assert_string_equal(safer_data_label(back, (size_t)r.label), labels[i]);
        }
        assert_int_equal(row, safer_data_size(back));
        safer_data_free(data);
        safer_data_free(back);
    }
}

static void test_write_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"one of them", "text"}, *const none[2] = {NULL, NULL},
                             *const pos[] = {"pos", "pos"}, *const empty[] = {"pos", ""},
                             *const broken[] = {"pos", "\xff"}, *const header[] = {"pos", "Label"};
    static const char *const others[] = {"a.csv", "a.jsonl", "a.json", "a.txt", "a.CSV", "a.csv.gz"};
    safer_data *data = data_of(texts, NULL, 2);
    const char *path = write_temporary("kept.tsv", "what was there\n", 15), *same = temporary("same.tsv");
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_fails(safer_data_write(temporary(others[i]), data, pos, &error), SAFER_INVALID, "another format");
        assert_fails(safer_data_write_check(others[i], &error), SAFER_INVALID, "`output`");
    }
    assert_fails(safer_data_write(path, data, none, &error), SAFER_INVALID, "no row has one");
    assert_fails(safer_data_write(path, data, empty, &error), SAFER_INVALID, "without a name");
    assert_fails(safer_data_write(path, data, broken, &error), SAFER_INVALID, "UTF-8");
    assert_fails(safer_data_write(path, data, header, &error), SAFER_INPUT, "would be read as a header");
    assert_fails(safer_data_write("/nowhere/a.tsv", data, pos, &error), SAFER_SYSTEM, "/nowhere/a.tsv");
    assert_fails(safer_data_write_check("/nowhere/a.tsv", &error), SAFER_SYSTEM, "/nowhere/a.tsv");
    assert_fails(safer_data_write_check("", &error), SAFER_INVALID, "a name is needed");
    assert_fails(safer_data_write_check(".", &error), SAFER_INVALID, "a folder");
    assert_ok(safer_data_write_check("a.tsv", &error));
    assert_ok(safer_data_write_check(path, &error));
    assert_int_equal(access(temporary("a.csv"), F_OK), -1);
    write_temporary("same.tsv", "what was there\n", 15);
    assert_same_file(path, same);
    safer_data_free(data);
}

static safer_status write_once(void *context, safer_error *said)
{
    static const char *const labels[] = {"pos", NULL, "neg", "pos", NULL, NULL};
    return safer_data_write(temporary("memory.tsv"), context, labels, said);
}

static void test_write_memory(void **state)
{
    (void)state;
    safer_data *data = data_of(told, NULL, COUNT(told));
    check_every_allocation(write_once, data);
    safer_data_free(data);
}

/* Texts that stay on the disk are labelled and written as those in memory are. */
static void test_on_disk(void **state)
{
    (void)state;
    static const char rows[] = "id\ttext\ttitle\n7\t0.5 0.3 0.2\t\n8\t\\n0.1 0.8 0.1\t\n9\t0 0 1\t\n";
    const char *path = write_temporary("disk.tsv", rows, sizeof rows - 1), *labels[3];
    safer_data_options options = safer_data_options_default();
    const safer_model model = model_of(&plain);
    safer_data *data;
    int found[3];
    options.on_disk = 1;
    assert_ok(safer_data_load(&data, path, &options, &error));
    assert_ok(safer_label(NULL, found, &model, data, NULL, &error));
    for (int i = 0; i < 3; i++) labels[i] = names[found[i]];
    assert_ok(safer_data_write(temporary("written.tsv"), data, labels, &error));
    static const char wanted[] = "id\tlabel\ttext\n7\tneg\t0.5 0.3 0.2\n8\tneutral\t\\n0.1 0.8 0.1\n9\tpos\t0 0 1\n";
    assert_same_file(temporary("written.tsv"), write_temporary("wanted.tsv", wanted, sizeof wanted - 1));
    safer_data_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_keep_of_a_hundred),
        cmocka_unit_test(test_scores_that_are_no_probabilities),
        cmocka_unit_test(test_labels_alone),
        cmocka_unit_test(test_agreement),
        cmocka_unit_test(test_threads_and_batches),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_write_awkward),
        cmocka_unit_test(test_write_first_rows),
        cmocka_unit_test(test_write_other_kinds),
        cmocka_unit_test(test_write_much),
        cmocka_unit_test(test_write_random),
        cmocka_unit_test(test_write_refused),
        cmocka_unit_test(test_write_memory),
        cmocka_unit_test(test_on_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
