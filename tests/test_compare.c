/* Tests of comparisons: runs read back, pairs counted, p-values against exhaustive enumeration. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXTS = 24 };

static safer_error error;
static safer_data *data, *fewer;
static safer_lexicon *lexicon;

/* A model that is right on some texts only: bit i of `right` is text i, which ends with its number. */
static int answer(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    const uint32_t right = *(const uint32_t *)context;
    (void)lengths;
    for (size_t i = 0; i < count; i++) {
        const char *last = strrchr(texts[i], ' '); /* texts of the probe set may have one word */
        const int number = last ? atoi(last + 1) % 32 : 0, label = number % 2;
        labels[i] = (right >> number & 1) ? label : 1 - label;
    }
    return 0;
}

static const char *certify(const char *name, uint32_t right, const safer_data *texts, size_t radius)
{
    static const char *const labels[] = {"a", "b"};
    safer_remote_options remote = safer_remote_options_default();
    safer_certify_options options = safer_certify_options_default();
    safer_model *model;
    const char *path = temporary(name);
    remote.labels = labels;
    remote.label_count = 2;
    remote.model_name = "a function";
    options.radius = radius;
    remove(path);
    assert_ok(safer_model_from_callback(&model, answer, &right, &remote, &error));
    assert_ok(safer_certify(NULL, path, 0, model, lexicon, texts, &options, &error));
    safer_model_free(model);
    return path;
}

static const char *attack(const char *name, uint32_t right, uint64_t *succeeded)
{
    static const char *const labels[] = {"a", "b"};
    safer_remote_options remote = safer_remote_options_default();
    safer_attack_options options = safer_attack_options_default();
    safer_model *model;
    safer_attack_summary summary;
    const char *path = temporary(name);
    remote.labels = labels;
    remote.label_count = 2;
    remote.model_name = "a function";
    assert_ok(safer_model_from_callback(&model, answer, &right, &remote, &error));
    assert_ok(safer_attack(&summary, path, 0, model, lexicon, data, &options, &error));
    safer_model_free(model);
    *succeeded = summary.succeeded;
    return path;
}

static int set_up(void **state)
{
    static const char table[] = "good\tgreat\n";
    char texts[TEXTS][32];
    const char *pointers[TEXTS], *labels[TEXTS];
    safer_lexicon_options options = safer_lexicon_options_default();
    (void)state;
    for (int i = 0; i < TEXTS; i++) {
        snprintf(texts[i], sizeof texts[i], "a good text %d", i);
        pointers[i] = texts[i];
        labels[i] = i % 2 ? "b" : "a";
    }
    assert_ok(safer_data_from_texts(&data, pointers, NULL, labels, NULL, TEXTS, &error));
    assert_ok(safer_data_from_texts(&fewer, pointers, NULL, labels, NULL, TEXTS - 1, &error));
    options.table = write_temporary("table.tsv", table, sizeof table - 1);
    options.kernel = "representative";
    assert_ok(safer_lexicon_import(&lexicon, &options, NULL, &error));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    safer_data_free(data);
    safer_data_free(fewer);
    safer_lexicon_free(lexicon);
    return 0;
}

/* ------------------------------------------------------------------ p-values */

/* Every way in which `a + b` disagreements could have fallen: the share of ways at least as uneven. */
static double exhaustive(unsigned a, unsigned b)
{
    const unsigned n = a + b, seen = a > b ? a - b : b - a;
    uint64_t as_uneven = 0;
    for (uint32_t ways = 0; ways < UINT32_C(1) << n; ways++) {
        const unsigned first = (unsigned)__builtin_popcount(ways), second = n - first;
        as_uneven += (first > second ? first - second : second - first) >= seen;
    }
    return (double)as_uneven / (double)(UINT64_C(1) << n);
}

static void test_mcnemar(void **state)
{
    (void)state;
    for (unsigned a = 0; a <= 7; a++)
        for (unsigned b = 0; b <= 7; b++) {
            safer_run *runs[2];
            safer_comparison c;
            /* Both hold on texts 0 to 3; a texts on the first alone, the next b on the second alone. */
            const uint32_t first = 0xf | ((1u << a) - 1) << 4, second = 0xf | ((1u << b) - 1) << (4 + a);
            assert_ok(safer_run_read(&runs[0], certify("first.jsonl", first, data, SAFER_ALL), &error));
            assert_ok(safer_run_read(&runs[1], certify("second.jsonl", second, data, SAFER_ALL), &error));
            assert_ok(safer_compare(&c, (const safer_run *const *)runs, 2, &error));
            assert_true(c.first == 0 && c.second == 1 && c.both == 4 && c.only_first == a && c.only_second == b &&
                        c.neither == TEXTS - 4 - a - b);
            const double p = exhaustive(a, b);
            if (!(c.p_value >= p && c.p_value <= p * (1 + 1e-9)))
                fail_msg("%u, %u: %.17g, not %.17g", a, b, c.p_value, p);
            assert_true(c.adjusted == c.p_value);
            for (size_t i = 0; i < TEXTS; i++) assert_int_equal(safer_run_held(runs[0], i), first >> i & 1);
            assert_int_equal(safer_run_certified(runs[0])->certified, 4 + a);
            assert_null(safer_run_attacked(runs[0]));
            safer_run_free(runs[0]);
            safer_run_free(runs[1]);
        }
}

static void test_holm(void **state)
{
    static const uint32_t right[] = {0xffffff, 0xfff000, 0xff0000, 0x00000f};
    enum { RUNS = 4, PAIRS = 6 };
    safer_run *runs[RUNS];
    safer_comparison c[PAIRS];
    (void)state;
    for (size_t i = 0; i < RUNS; i++)
        assert_ok(safer_run_read(&runs[i], certify("holm.jsonl", right[i], data, SAFER_ALL), &error));
    assert_ok(safer_compare(c, (const safer_run *const *)runs, RUNS, &error));
    size_t at = 0;
    for (size_t i = 0; i < RUNS; i++)
        for (size_t k = i + 1; k < RUNS; k++, at++) assert_true(c[at].first == i && c[at].second == k);
    for (size_t i = 0; i < PAIRS; i++) { /* by the definition: the largest of (m - rank) p over all p up to this one */
        double expected = 0;
        for (size_t k = 0; k < PAIRS; k++) {
            int rank = 0;
            for (size_t m = 0; m < PAIRS; m++) rank += c[m].p_value < c[k].p_value;
            if (c[k].p_value <= c[i].p_value) expected = fmax(expected, fmin(1, (PAIRS - rank) * c[k].p_value));
        }
        assert_true(c[i].adjusted == expected && c[i].adjusted >= c[i].p_value);
    }
    for (size_t i = 0; i < RUNS; i++) safer_run_free(runs[i]);
    assert_ok(safer_compare(NULL, (const safer_run *const *)runs, 1, &error)); /* nothing to compare is fine */
}

/* ------------------------------------------------------------ what is refused */

static void test_attacks(void **state)
{
    safer_run *run, *certified;
    uint64_t succeeded;
    (void)state;
    const uint32_t right = 0xffffff & ~(1u << 3 | 1u << 5);
    assert_ok(safer_run_read(&run, attack("attack.jsonl", right, &succeeded), &error));
    assert_int_equal(safer_run_size(run), TEXTS);
    assert_int_equal(succeeded, 0); /* synonyms mean nothing to this model */
    for (size_t i = 0; i < TEXTS; i++) assert_int_equal(safer_run_held(run, i), i != 3 && i != 5);
    assert_null(safer_run_certified(run));
    assert_int_equal(safer_run_attacked(run)->skipped, 2);
    assert_ok(safer_run_read(&certified, certify("certified.jsonl", right, data, SAFER_ALL), &error));
    const safer_run *runs[] = {run, certified};
    safer_comparison c;
    assert_fails(safer_compare(&c, runs, 2, &error), SAFER_INVALID, "certificates and attacks");
    safer_run_free(run);
    safer_run_free(certified);
}

static void test_refused(void **state)
{
    safer_run *all, *other, *near;
    safer_comparison c;
    (void)state;
    assert_ok(safer_run_read(&all, certify("all.jsonl", 1, data, SAFER_ALL), &error));
    assert_ok(safer_run_read(&other, certify("other.jsonl", 1, fewer, SAFER_ALL), &error));
    assert_ok(safer_run_read(&near, certify("near.jsonl", 1, data, 2), &error));
    const safer_run *texts[] = {all, other}, *radii[] = {all, near};
    assert_fails(safer_compare(&c, texts, 2, &error), SAFER_INVALID, "runs 1 and 2 are about different texts");
    assert_fails(safer_compare(&c, radii, 2, &error), SAFER_INVALID, "different radii");
    safer_run_free(all);
    safer_run_free(other);
    safer_run_free(near);

    /* Changed, cut and unfinished files. */
    const char *path = temporary("all.jsonl");
    char bytes[32768];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(length > 1000 && length < sizeof bytes && bytes[length - 1] == '\n');
    assert_fails(safer_run_read(&all, write_temporary("cut.jsonl", bytes, length - 5), &error), SAFER_INPUT, "cut");
    size_t last = length - 1;
    while (bytes[last - 1] != '\n') last--;
    assert_fails(safer_run_read(&all, write_temporary("short.jsonl", bytes, last), &error), SAFER_INPUT,
                 "holds 23 of 24 records");
    char *word = strstr(strchr(bytes, '\n'), "true");
    assert_non_null(word);
    memcpy(word, "null", 4);
    assert_fails(safer_run_read(&all, write_temporary("changed.jsonl", bytes, length), &error), SAFER_INPUT, "changed");
    assert_fails(safer_run_read(&all, write_temporary("empty.jsonl", "", 0), &error), SAFER_INPUT, "empty");
    assert_fails(safer_run_read(&all, temporary("missing.jsonl"), &error), SAFER_SYSTEM, "missing.jsonl");
}

static safer_status read_and_compare(void *context, safer_error *e)
{
    safer_run *run = NULL;
    safer_comparison c[1];
    safer_status status = safer_run_read(&run, context, e);
    if (status == SAFER_OK) {
        const safer_run *runs[] = {run, run};
        status = safer_compare(c, runs, 2, e);
    }
    safer_run_free(run);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    check_every_allocation(read_and_compare, (void *)(uintptr_t)certify("memory.jsonl", 77, data, SAFER_ALL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mcnemar), cmocka_unit_test(test_holm),   cmocka_unit_test(test_attacks),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
