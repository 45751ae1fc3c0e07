/* The public interface as a whole: every function that takes options refuses a struct that was not begun with its
 * _default, or comes from a newer header, and writes nothing; every enum has names that are read back. */
#define _GNU_SOURCE
#include "support.h"

#include <string.h>
#include <unistd.h>

static safer_error error;

/* What the functions need besides options. */
static safer_lexicon *lexicon;
static safer_data *data;
static safer_model *model;
static const char *run;    /* a finished one */
static const char *output; /* which nothing writes */

static int first_class(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    (void)context, (void)texts, (void)lengths;
    memset(labels, 0, count * sizeof *labels);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    static const char *const labels[] = {"0", "1"}, *const texts[] = {"a good film", "a bad film"};
    safer_remote_options remote = safer_remote_options_default();
    safer_certify_options certify = safer_certify_options_default();
    remote.labels = labels;
    remote.label_count = 2;
    remote.model_name = "a function";
    certify.n = certify.n0 = 20;
    lexicon = import_table("good\tfine great\nbad\tpoor\n", "component");
    assert_ok(safer_data_from_texts(&data, texts, NULL, labels, NULL, 2, &error));
    assert_ok(safer_model_from_callback(&model, first_class, NULL, &remote, &error));
    run = temporary("run.jsonl");
    output = temporary("output");
    assert_ok(safer_certify(NULL, run, 0, model, lexicon, data, &certify, &error));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    safer_model_free(model);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    return 0;
}

/* ------------------------------------------------------------------- options */

/* The call succeeds with options `o` as they are, is refused with any other size of theirs, and then leaves `out` as
 * it is and writes no file. */
#define assert_refused(type, o, out, call) \
    do { \
        const size_t sizes_[] = {0, sizeof(size_t), sizeof(type) - 1, sizeof(type) + 1, 2 * sizeof(type), SIZE_MAX}; \
        unsigned char before_[sizeof(out)]; \
        for (size_t i_ = 0; i_ < COUNT(sizes_); i_++) { \
            (o).size = sizes_[i_]; \
            memset(&(out), 0, sizeof(out)); \
            memset(before_, 0, sizeof before_); \
            assert_fails(call, SAFER_INVALID, #type ": its size is "); \
            assert_memory_equal(&(out), before_, sizeof before_); \
            assert_int_not_equal(access(output, F_OK), 0); \
        } \
        (o).size = sizeof(type); \
    } while (0)

static void data_sets(void **unused)
{
    (void)unused;
    safer_data *made = NULL;
    safer_data_options o = safer_data_options_default();
    const char *path = write_temporary("data.tsv", "1\t0\ta\n2\t1\tb\n", 12);
    assert_refused(safer_data_options, o, made, safer_data_load(&made, path, &o, &error));
    assert_ok(safer_data_load(&made, path, &o, &error));
    safer_data_free(made);
}

static void lexicons(void **unused)
{
    (void)unused;
    safer_lexicon *made = NULL;
    safer_lexicon_options o = safer_lexicon_options_default();
    o.vectors = write_temporary("vectors.txt", "good 1 0\nfine 1 0.1\nbad -1 0\n", 29);
    o.all_but_the_top = 0;
    assert_refused(safer_lexicon_options, o, made, safer_lexicon_build(&made, &o, NULL, &error));
    assert_ok(safer_lexicon_build(&made, &o, NULL, &error));
    safer_lexicon_free(made);
    o = safer_lexicon_options_default();
    o.table = write_temporary("table.tsv", "good\tfine\n", 10);
    assert_refused(safer_lexicon_options, o, made, safer_lexicon_import(&made, &o, NULL, &error));
    assert_ok(safer_lexicon_import(&made, &o, NULL, &error));
    safer_lexicon_free(made);
}

static void models(void **unused)
{
    (void)unused;
    static const char *const labels[] = {"0", "1"};
    safer_model *made = NULL;
    safer_remote_options o = safer_remote_options_default();
    o.labels = labels;
    o.label_count = 2;
    o.workers = 1;
    assert_refused(safer_remote_options, o, made, safer_model_connect(&made, "exec:cat", &o, &error));
    assert_ok(safer_model_connect(&made, "exec:cat", &o, &error));
    safer_model_free(made);
    assert_refused(safer_remote_options, o, made, safer_model_from_callback(&made, first_class, NULL, &o, &error));
    assert_ok(safer_model_from_callback(&made, first_class, NULL, &o, &error));
    safer_model_free(made);
}

static void training(void **unused)
{
    (void)unused;
    safer_train_report report;
    safer_train_options o = safer_train_options_default();
    o.arch = SAFER_ARCH_NGRAM;
    o.train = o.dev = data;
    o.ngram.bits = 10;
    assert_refused(safer_train_options, o, report, safer_train(output, &o, &report, &error));
    assert_ok(safer_train(output, &o, &report, &error));
    unlink(output);
}

static void certification(void **unused)
{
    (void)unused;
    safer_summary summary;
    safer_certificate certificate;
    safer_workspace *workspace = NULL;
    safer_certify_options o = safer_certify_options_default();
    o.n = o.n0 = 20;
    assert_refused(safer_certify_options, o, summary,
                   safer_certify(&summary, output, 0, model, lexicon, data, &o, &error));
    assert_ok(safer_certify(&summary, output, 0, model, lexicon, data, &o, &error));
    safer_summary_free(&summary);
    unlink(output);
    assert_refused(safer_certify_options, o, certificate,
                   safer_certify_text(&certificate, &workspace, model, lexicon, "good", 4, 0, &o, &error));
    assert_null(workspace);
    assert_ok(safer_certify_text(&certificate, &workspace, model, lexicon, "good", 4, 0, &o, &error));
    safer_workspace_free(workspace);
}

static void attacks(void **unused)
{
    (void)unused;
    safer_attack_summary summary;
    safer_against_summary against;
    safer_attack_result result;
    safer_attacker *attacker = NULL;
    safer_attack_options o = safer_attack_options_default();
    o.method = SAFER_ATTACK_RANDOM; /* a model without scores will do */
    o.n = 20;
    assert_refused(safer_attack_options, o, summary,
                   safer_attack(&summary, output, 0, model, lexicon, data, &o, &error));
    assert_refused(safer_attack_options, o, result,
                   safer_attack_text(&result, &attacker, model, lexicon, "good", 4, 0, &o, &error));
    assert_null(attacker);
    assert_refused(safer_attack_options, o, against,
                   safer_attack_against(&against, run, output, 0, model, lexicon, data, &o, &error));
    assert_ok(safer_attack(&summary, output, 0, model, lexicon, data, &o, &error));
    unlink(output);
    assert_ok(safer_attack_text(&result, &attacker, model, lexicon, "good", 4, 0, &o, &error));
    safer_attacker_free(attacker);
    assert_ok(safer_attack_against(&against, run, output, 0, model, lexicon, data, &o, &error));
    unlink(output);
}

static void reports(void **unused)
{
    (void)unused;
    safer_summary summary;
    safer_report_options o = safer_report_options_default();
    assert_refused(safer_report_options, o, summary, safer_report(&summary, output, &run, 1, &o, &error));
    assert_ok(safer_report(&summary, output, &run, 1, &o, &error));
    safer_summary_free(&summary);
    unlink(output);
}

static void servers(void **unused)
{
    (void)unused;
    safer_server *server = NULL;
    safer_serve_options o = safer_serve_options_default();
    safer_certify_options c = safer_certify_options_default();
    o.port = 0;
    assert_refused(safer_serve_options, o, server, safer_server_start(&server, model, lexicon, &c, &o, &error));
    assert_refused(safer_certify_options, c, server, safer_server_start(&server, model, lexicon, &c, &o, &error));
    assert_ok(safer_server_start(&server, model, lexicon, &c, &o, &error));
    safer_server_stop(server);
}

/* --------------------------------------------------------------------- names */

/* Every value has a name of its own, which is read back; beyond the last there is none; other names are refused with
 * a message that lists all, and leave the value as it is. */
#define assert_named(type, count) \
    do { \
        type read_ = (type)0; \
        for (int i_ = 0; i_ < (count); i_++) { \
            const char *name_ = type##_name((type)i_); \
            assert_non_null(name_); \
            assert_true(name_[0] != '\0'); \
            assert_ok(type##_parse(&read_, name_, &error)); \
            assert_int_equal(read_, i_); \
            assert_fails(type##_parse(&read_, "no such name", &error), SAFER_INVALID, name_); \
            assert_int_equal(read_, i_); \
        } \
        assert_null(type##_name((type)(count))); \
        assert_null(type##_name((type)-1)); \
        assert_fails(type##_parse(&read_, "", &error), SAFER_INVALID, ""); \
        assert_int_equal(read_, (count)-1); \
    } while (0)

static void names(void **unused)
{
    (void)unused;
    assert_named(safer_status, 7);
    assert_named(safer_format, 6);
    assert_named(safer_metric, 2);
    assert_named(safer_export, 4);
    assert_named(safer_precision, 3);
    assert_named(safer_profile, 4);
    assert_named(safer_arch, 6);
    assert_named(safer_pool, 4);
    assert_named(safer_defense, 4);
    assert_named(safer_charcnn_size, 2);
    assert_named(safer_method, 5);
    assert_named(safer_stage, 2);
    assert_named(safer_attack_method, SAFER_ATTACKS);
    assert_named(safer_outcome, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_sets), cmocka_unit_test(lexicons),      cmocka_unit_test(models),
        cmocka_unit_test(training),  cmocka_unit_test(certification), cmocka_unit_test(attacks),
        cmocka_unit_test(reports),   cmocka_unit_test(servers),       cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
