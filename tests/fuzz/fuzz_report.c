/* Files of records as verify, report and evidence see them: a run and, behind a line "--", a second file, which is
 * taken as an attack on it and as an earlier run. Both are sealed here. The data is always the same. */
#define _GNU_SOURCE
#include "fuzz_files.h"

#include "safer.h"

static safer_data *texts;

/* The set that the corpus is about. */
static void make_data(void)
{
    static const char *const words[] = {"a good film", "a bad film", "good good", "bad, bad film"},
                             *const labels[] = {"1", "0", "1", "0"}, *const ids[] = {"a", "b", "c", "d"};
    require(safer_data_from_texts(&texts, words, NULL, labels, ids, 4, NULL) == SAFER_OK);
}

static void must(safer_status status, const safer_error *error)
{
    require(status == SAFER_OK || ((status == SAFER_INPUT || status == SAFER_INVALID) && error->message[0]));
}

static void report(const char *run, const char *const *attack)
{
    safer_report_options options = safer_report_options_default();
    safer_error error = {0};
    options.csv = fuzz_path("csv");
    must(safer_report(NULL, "/dev/null", &run, 1, &options, &error), &error);
    options.csv = NULL;
    options.data = texts;
    options.attacks = attack;
    options.attack_count = *attack ? 1 : 0;
    must(safer_report(NULL, "/dev/null", &run, 1, &options, &error), &error);
}

static void evidence(const char *run, const char *before)
{
    safer_evidence_options options = safer_evidence_options_default();
    safer_error error = {0};
    options.not_worse_than = before;
    options.threads = 1;
    must(safer_evidence(NULL, fuzz_path("evidence"), run, &options, &error), &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data, *cut = size ? memmem(bytes, size, "\n--\n", 4) : NULL;
    const size_t length = cut ? (size_t)(cut - bytes) + 1 : size;
    safer_verification checked = {0};
    safer_error error = {0};
    if (!texts) make_data();
    const char *run = fuzz_write_sealed("run", bytes, length),
               *other = cut ? fuzz_write_sealed("other", cut + 4, size - length - 3) : NULL;
    const safer_status status = safer_verify(&checked, run, NULL, NULL, NULL, 1, NULL, &error);
    must(status, &error);
    safer_summary_free(&checked.summary);
    must(safer_verify(&checked, run, NULL, NULL, texts, 1, NULL, &error), &error);
    safer_summary_free(&checked.summary);
    report(run, &other);
    evidence(run, other);
    return 0;
}
