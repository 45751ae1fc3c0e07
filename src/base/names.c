/* The names of the values of public enums. */
#include "base/buffer.h"
#include "base/error.h"

#include <string.h>

/* "a, b or c" */
static int list_names(sf_buffer *out, const char *const *names, size_t count)
{
    int failed = 0;
    for (size_t i = 0; i < count && !failed; i++)
        failed = sf_buffer_format(out, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", names[i]);
    return failed;
}

static safer_status find_name(size_t *out, const char *name, const char *const *names, size_t count, const char *what,
                              safer_error *error)
{
    for (*out = 0; name && *out < count; ++*out)
        if (strcmp(name, names[*out]) == 0) return SAFER_OK;
    sf_buffer list = {0};
    safer_status status = list_names(&list, names, count)
                              ? sf_fail_memory(error)
                              : sf_fail(error, SAFER_INVALID, "`%s` is \"%.60s\"; it must be %s", what,
                                        name ? name : "(none)", list.bytes);
    sf_buffer_free(&list);
    return status;
}

/* TYPE_name and TYPE_parse, from the names in the order of the values. */
#define NAMED(type, what, ...) \
    static const char *const type##_names[] = {__VA_ARGS__}; \
    const char *type##_name(type value) \
    { \
        const size_t count = sizeof type##_names / sizeof type##_names[0]; \
        return (size_t)value < count ? type##_names[value] : NULL; \
    } \
    safer_status type##_parse(type *out, const char *name, safer_error *error) \
    { \
        size_t value; \
        const size_t count = sizeof type##_names / sizeof type##_names[0]; \
        safer_status status = find_name(&value, name, type##_names, count, what, error); \
        if (status == SAFER_OK) *out = (type)value; \
        return status; \
    } \
    struct safer_error

#define TEXT(name, text) text,
NAMED(safer_status, "status", SAFER_STATUS_MAP(TEXT));
#undef TEXT
NAMED(safer_format, "format", "auto", "tsv", "csv", "jsonl", "fasttext", "folder");
NAMED(safer_metric, "metric", "cosine", "dot");
NAMED(safer_export, "export", "synonyms", "kernel", "overlap", "cuts");
NAMED(safer_doubt, "doubt", "function word", "antonyms", "part of speech", "distant");
NAMED(safer_precision, "precision", "bf16", "f32", "portable");
NAMED(safer_profile, "profile", "json", "kserve", "tei", "openai");
NAMED(safer_arch, "arch", "ngram", "bow", "cnn", "charcnn", "bert", "context");
NAMED(safer_pool, "pool", "default", "mean", "max", "cls");
NAMED(safer_defense, "defense", "none", "ibp-jia", "ibp-huang", "exact");
NAMED(safer_truncation_side, "bert.truncation_side", "default", "left", "right");
NAMED(safer_charcnn_size, "charcnn.size", "small", "large");
NAMED(safer_method, "method", "adaptive", "binomial", "hoeffding", "ibp", "groups");
NAMED(safer_edit_kind, "edit_kind", "any", "replace", "insert", "delete");
NAMED(safer_stage, "stage", "selection", "certification");
NAMED(safer_attack_method, "method", "textfooler", "genetic", "pwws", "random", "homoglyph", "zerowidth", "typo",
      "insert", "delete", "outoflist");
NAMED(safer_gate_kind, "gate", "accuracy", "recall", "not-worse");
NAMED(safer_outcome, "outcome", "failed", "succeeded", "skipped");
