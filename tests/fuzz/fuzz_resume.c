/* Files that a run, an attack or a cross-check is to continue: the first byte says which, the lines behind it are
 * records, which follow the right configuration and are sealed. What is accepted is finished, and reads back. */
#define _GNU_SOURCE
#include "fuzz_files.h"

#include "safer.h"

enum { CERTIFY, ATTACK, AGAINST, KINDS };
static safer_data *texts;
static safer_lexicon *lexicon;
static safer_model *model;
static struct {
    char *line; /* the configuration */
    size_t length;
    uint64_t seal;
} configs[KINDS];

static int classify(void *context, const char *const *asked, const size_t *lengths, size_t count, int *labels)
{
    (void)context;
    for (size_t i = 0; i < count; i++) labels[i] = lengths[i] && memmem(asked[i], lengths[i], "goo", 3) != NULL;
    return 0;
}

static safer_status work(int kind, const char *path, int resume, safer_error *error)
{
    safer_certify_options c = safer_certify_options_default();
    safer_attack_options a = safer_attack_options_default();
    safer_summary summary = {0};
    safer_attack_summary attacked;
    safer_against_summary against;
    c.n = 50;
    c.threads = a.threads = 1;
    a.n = 20;
    if (kind == ATTACK) return safer_attack(&attacked, path, resume, model, lexicon, texts, &a, error);
    if (kind == AGAINST)
        return safer_attack_against(&against, fuzz_path("run"), path, resume, model, lexicon, texts, &a, error);
    safer_status status = safer_certify(&summary, path, resume, model, lexicon, texts, &c, error);
    safer_summary_free(&summary);
    return status;
}

static void take_config(int kind, const char *path)
{
    safer_error error = {0};
    size_t room = 0;
    if (work(kind, path, 0, &error) != SAFER_OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    FILE *file = fopen(path, "rb");
    require(file);
    const ssize_t length = getline(&configs[kind].line, &room, file);
    require(length > 20 && fclose(file) == 0);
    configs[kind].length = (size_t)length;
    configs[kind].seal = strtoull(configs[kind].line + length - 19, NULL, 16); /* 16 digits, "}, newline */
}

static void start(void)
{
    static const char *const words[] = {"a good film", "a bad film"}, *const labels[] = {"1", "0"};
    static const char table[] = "good\tgreat fine\nbad\tawful poor\nfilm\tmovie\n";
    static const char *const names[] = {"0", "1"};
    safer_lexicon_options options = safer_lexicon_options_default();
    safer_remote_options remote = safer_remote_options_default();
    options.table = fuzz_write("table.tsv", table, sizeof table - 1);
    options.kernel = "topk:2";
    remote.labels = names;
    remote.label_count = 2;
    remote.model_name = "fuzz";
    require(safer_data_from_texts(&texts, words, NULL, labels, NULL, 2, NULL) == SAFER_OK);
    require(safer_lexicon_import(&lexicon, &options, NULL, NULL) == SAFER_OK);
    require(safer_model_from_callback(&model, classify, NULL, &remote, NULL) == SAFER_OK);
    take_config(CERTIFY, fuzz_path("run"));
    take_config(ATTACK, fuzz_path("attack"));
    take_config(AGAINST, fuzz_path("against"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    if (!model) start();
    const int kind = data[0] % KINDS;
    safer_error error = {0};
    safer_run *run = NULL;
    const char *path = fuzz_path("resumed");
    FILE *file = fopen(path, "wb");
    require(file && fwrite(configs[kind].line, 1, configs[kind].length, file) == configs[kind].length);
    uint64_t seal = configs[kind].seal;
    fuzz_seal_lines(file, (const char *)data + 1, size - 1, 2, &seal);
    require(fclose(file) == 0);
    const safer_status status = work(kind, path, 1, &error);
    require(status == SAFER_OK || (status == SAFER_INPUT && strstr(error.message, path)));
    if (status == SAFER_OK && kind != AGAINST) {
        require(safer_run_read(&run, path, &error) == SAFER_OK && safer_run_size(run) == 2);
        safer_run_free(run);
    }
    return 0;
}
