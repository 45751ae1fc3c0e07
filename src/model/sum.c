/* A sum of models: its file, its answers and its fast path. sum.h says what it is, ibp/margins.c how it
 * is bounded. */
#include "model/sum.h"

#include "base/elementary.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "model/arithmetic.h"
#include "model/canonical.h"
#include "model/cnn.h"
#include "model/context_sum.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---------------------------------------------------------------- answering */

enum { GROUP = 64 }; /* texts worked on together */

/* A probability below this is as good as none. */
#define LEAST 0x1p-100

typedef struct sum_scratch {
    const sf_sum_model *sum;
    void **members;  /* (members): each one's own */
    int64_t *said;   /* (members, classes) of the last text */
    int64_t *totals; /* (GROUP, classes) */
    float *scores;   /* (GROUP, classes) of one member */
    /* Texts as a canonical member reads them. Draws and attacks ask about one text in many forms, all
     * of which it reads as the same: `said` stays as long as `last` does. */
    sf_buffer *last; /* (members) */
    int *known;      /* (members): whether there is one */
    sf_slots slots;
    sf_buffer rendered;
    uint32_t *draws; /* zeros: every slot has one word to draw */
    size_t draw_capacity;
} sum_scratch;

const int64_t *sf_sum_said(const void *scratch, size_t member)
{
    const sum_scratch *s = scratch;
    return s->said + member * s->sum->base.classes;
}

const void *sf_sum_scratch(const void *scratch, size_t member)
{
    return ((const sum_scratch *)scratch)->members[member];
}

static int64_t whole(double x)
{
    double scaled = x * (double)(1 << SF_SUM_BITS);
    if (!(scaled > -(double)SF_SUM_MOST)) return -SF_SUM_MOST; /* NaN too */
    return scaled < (double)SF_SUM_MOST ? llrint(scaled) : SF_SUM_MOST;
}

static safer_status read_canonical(sf_span *out, const sf_span *texts, size_t count, const safer_lexicon *lexicon,
                                   sum_scratch *s, safer_error *error)
{
    size_t ends[GROUP], begin = 0;
    sf_buffer_clear(&s->rendered);
    for (size_t i = 0; i < count; i++) {
        safer_status status = sf_slots_read(&s->slots, lexicon, texts[i].bytes, texts[i].length, error);
        if (status != SAFER_OK) return status;
        if (sf_grow(&s->draws, &s->draw_capacity, s->slots.slot_count + 1, sizeof *s->draws))
            return sf_fail_memory(error);
        memset(s->draws, 0, s->slots.slot_count * sizeof *s->draws);
        if (sf_slots_render(&s->rendered, &s->slots, lexicon, s->draws)) return sf_fail_memory(error);
        ends[i] = s->rendered.length;
    }
    for (size_t i = 0; i < count; begin = ends[i++]) /* now the bytes stay where they are */
        out[i] = (sf_span){s->rendered.bytes ? s->rendered.bytes + begin : "", ends[i] - begin};
    return SAFER_OK;
}

static int same_text(sf_span a, sf_span b) { return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0; }

/* Reads texts as canonical member m does, and marks those that differ from the one before. */
static safer_status find_new(sf_span *out, int *is_new, sum_scratch *s, size_t m, const sf_span *texts, size_t count,
                             safer_error *error)
{
    safer_status status = read_canonical(out, texts, count, s->sum->members[m].canonical, s, error);
    sf_span before = {s->last[m].bytes ? s->last[m].bytes : "", s->last[m].length};
    if (status != SAFER_OK) return status;
    for (size_t i = 0; i < count; before = out[i++]) is_new[i] = !(i || s->known[m]) || !same_text(out[i], before);
    s->known[m] = 0; /* until all is said */
    return SAFER_OK;
}

/* Whether a model has logits, which its scratch holds after an answer; and that of class k. */
static int has_logits(const safer_model *model) { return sf_cnn_is(model) || sf_context_is(model); }

static double logit_of(const safer_model *model, const void *scratch, size_t k)
{
    return sf_cnn_is(model) ? (double)sf_cnn_scratch_logits(scratch)[k]
                            : ldexp((double)sf_context_said(scratch)[k], -SF_CONTEXT_BITS);
}

static double log_of(float score) { return sf_log((double)score > LEAST ? (double)score : LEAST); }

/* Adds what member m says to the totals. */
static safer_status hear(sum_scratch *s, size_t m, const sf_span *texts, size_t count, safer_error *error)
{
    safer_status status = SAFER_OK;
    const sf_sum_member *member = &s->sum->members[m];
    const sf_model_class *class = member->model->class;
    size_t K = s->sum->base.classes, asked = 0, answered = 0;
    int logits = has_logits(member->model), labels[GROUP], is_new[GROUP];
    int64_t *said = s->said + m * K;
    sf_span canonical[GROUP], ask[GROUP];
    for (size_t i = 0; i < count; i++) is_new[i] = 1;
    if (member->canonical) {
        SF_TRY(find_new(canonical, is_new, s, m, texts, count, error));
        texts = canonical;
    }
    for (size_t i = 0; i < count; i++)
        if (is_new[i]) ask[asked++] = texts[i];
    if (!logits && asked) SF_TRY(class->classify(member->model, ask, asked, labels, s->scores, s->members[m], error));
    for (size_t i = 0; i < count; i++) {
        if (is_new[i]) {
            if (logits) SF_TRY(class->classify(member->model, texts + i, 1, labels, NULL, s->members[m], error));
            const float *scores = s->scores + answered * K;
            for (size_t k = 0; k < K; k++)
                said[k] = whole(member->weight *
                                (logits ? logit_of(member->model, s->members[m], k) : log_of(scores[k])));
            answered++;
        }
        for (size_t k = 0; k < K; k++) s->totals[i * K + k] += said[k];
    }
    if (member->canonical) {
        sf_buffer_clear(&s->last[m]);
        s->known[m] = sf_buffer_add(&s->last[m], texts[count - 1].bytes, texts[count - 1].length) == 0;
        if (!s->known[m]) status = sf_fail_memory(error);
    }
done:
    return status;
}

static safer_status classify(const safer_model *base, const sf_span *texts, size_t count, int *labels, float *scores,
                             void *scratch, safer_error *error)
{
    safer_status status = SAFER_OK;
    sum_scratch *s = scratch;
    size_t K = base->classes;
    for (size_t i = 0; i < count; i += GROUP) {
        size_t texts_here = count - i < GROUP ? count - i : GROUP;
        memset(s->totals, 0, texts_here * K * sizeof *s->totals);
        for (size_t m = 0; m < s->sum->count; m++) SF_TRY(hear(s, m, texts + i, texts_here, error));
        for (size_t j = 0; j < texts_here; j++)
            labels[i + j] = sf_model_answer(scores ? scores + (i + j) * K : NULL, s->totals + j * K, K, SF_SUM_BITS);
    }
done:
    return status;
}

static void scratch_free(void *scratch)
{
    sum_scratch *s = scratch;
    for (size_t m = 0; m < s->sum->count; m++) {
        if (s->members && s->members[m]) s->sum->members[m].model->class->scratch_free(s->members[m]);
        if (s->last) sf_buffer_free(&s->last[m]);
    }
    free(s->members);
    free(s->last);
    free(s->known);
    free(s->said);
    free(s->totals);
    free(s->scores);
    sf_slots_free(&s->slots);
    sf_buffer_free(&s->rendered);
    free(s->draws);
    free(s);
}

static safer_status scratch_new(const safer_model *model, void **out, safer_error *error)
{
    safer_status status = SAFER_OK;
    const sf_sum_model *sum = (const sf_sum_model *)model;
    size_t K = model->classes;
    sum_scratch *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    s->sum = sum;
    s->members = sf_calloc(sum->count, sizeof *s->members);
    s->last = sf_calloc(sum->count, sizeof *s->last);
    s->known = sf_calloc(sum->count, sizeof *s->known);
    s->said = sf_alloc(sum->count * K, sizeof *s->said);
    s->totals = sf_alloc(GROUP * K, sizeof *s->totals);
    s->scores = sf_alloc(GROUP * K, sizeof *s->scores);
    if (!s->members || !s->last || !s->known || !s->said || !s->totals || !s->scores) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t m = 0; m < sum->count; m++) {
        const safer_model *member = sum->members[m].model;
        if (member->class->scratch_new) SF_TRY(member->class->scratch_new(member, &s->members[m], error));
    }
    *out = s;
    s = NULL;
done:
    if (s) scratch_free(s);
    return status;
}

static void model_free(safer_model *model)
{
    sf_sum_model *sum = (sf_sum_model *)model;
    for (size_t m = 0; m < sum->count; m++) {
        safer_model_free(sum->members[m].model);
        safer_lexicon_free(sum->members[m].canonical);
    }
    free(sum->members);
    sf_model_clear(model);
    free(sum);
}

/* The sum itself computes with whole numbers: its bits are those of its members, and it keeps busy the devices that
 * they are on. */
static void take_members(sf_sum_model *sum)
{
    safer_model *base = &sum->base;
    base->arithmetic = SF_PORTABLE_NAME;
    base->concurrency = base->calls = 0;
    for (size_t m = 0; m < sum->count; m++) { /* those that have a choice have made the same */
        const safer_model *member = sum->members[m].model;
        if (!sf_arithmetic_same(member->arithmetic, SF_PORTABLE_NAME)) base->arithmetic = member->arithmetic;
        if (member->concurrency > base->concurrency) base->concurrency = member->concurrency;
        if (member->calls > base->calls) base->calls = member->calls;
    }
}

/* Of the members that have a choice; one of them has, unless it is what all are anyway. */
static safer_status set_precision(safer_model *model, safer_precision precision, safer_error *error)
{
    sf_sum_model *sum = (sf_sum_model *)model;
    int chosen = precision == SAFER_PRECISION_PORTABLE;
    for (size_t m = 0; m < sum->count; m++) {
        safer_model *member = sum->members[m].model;
        if (!member->class->set_precision) continue;
        safer_status status = member->class->set_precision(member, precision, error);
        if (status != SAFER_OK) return status;
        chosen = 1;
    }
    take_members(sum);
    return chosen ? SAFER_OK
                  : sf_fail(error, SAFER_INVALID, "`precision`: all members of this sum are always portable");
}

/* Whether all members that have a choice compute in the same place. */
static int is_together(const sf_sum_model *sum)
{
    const char *name = NULL;
    for (size_t m = 0; m < sum->count; m++) {
        const safer_model *member = sum->members[m].model;
        if (!member->class->set_device) continue;
        if (name && !sf_arithmetic_same(name, member->arithmetic)) return 0;
        name = member->arithmetic;
    }
    return 1;
}

/* Its members that can: the others go on on the CPU. All must be of one arithmetic, since records name one: where a
 * device cannot have one of them, which "auto" allows and anything else calls an error, it has none. */
static safer_status set_device(safer_model *model, const char *device, safer_error *error)
{
    sf_sum_model *sum = (sf_sum_model *)model;
    safer_status status = SAFER_OK;
    for (size_t i = 0; i < sum->count && status == SAFER_OK; i++) {
        safer_model *member = sum->members[i].model;
        if (member->class->set_device) status = member->class->set_device(member, device, error);
    }
    if ((status != SAFER_OK || strcmp(device, "auto") == 0) && !is_together(sum)) {
        const safer_status back = set_precision(model, SAFER_PRECISION_BF16, status == SAFER_OK ? error : NULL);
        return status == SAFER_OK ? back : status;
    }
    take_members(sum);
    return status;
}

const sf_model_class sf_sum_class = {.arch = "sum",
                                     .classify = classify,
                                     .scratch_new = scratch_new,
                                     .scratch_free = scratch_free,
                                     .free = model_free,
                                     .set_precision = set_precision,
                                     .set_device = set_device};

/* ------------------------------------------------------------------ opening */

/* The path of a file named in the file `from`, to be freed; NULL when memory is out. */
static char *resolve(const char *from, const char *name)
{
    size_t folder = *name == '/' ? 0 : (size_t)(sf_base_name(from) - from), length = strlen(name);
    char *path = sf_alloc(folder + length + 1, 1);
    if (!path) return NULL;
    memcpy(path, from, folder);
    memcpy(path + folder, name, length + 1);
    return path;
}

static safer_status check_keys(const json_t *object, const char *const *known, const char *place, safer_error *error)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0) i++;
        if (!known[i])
            return sf_fail(error, SAFER_INPUT, "%s: there is no \"%.*s\" here", place, sf_clip(key, strlen(key), 40),
                           key);
    }
    return SAFER_OK;
}

static safer_status open_canonical(sf_sum_member *member, const char *path, const char *place, safer_error *error)
{
    safer_status status = safer_lexicon_open(&member->canonical, path, error);
    if (status == SAFER_OK && !sf_canonical_is(member->canonical))
        status = sf_fail(error, SAFER_INPUT,
                         "%s: \"canonical\" needs a lexicon with the kernel representative; %s has %s", place, path,
                         member->canonical->kernel_name);
    return status;
}

/* Members say the same labels, in the same order. */
static safer_status check_labels(const sf_sum_model *sum, const safer_model *model, const char *place,
                                 safer_error *error)
{
    int same = model->classes == sum->base.classes;
    for (size_t k = 0; same && k < model->classes; k++) same = strcmp(model->labels[k], sum->base.labels[k]) == 0;
    return same ? SAFER_OK : sf_fail(error, SAFER_INPUT, "%s: its labels are not those of member 1", place);
}

static safer_status take_labels(safer_model *out, const safer_model *from, safer_error *error)
{
    out->labels = sf_calloc(from->classes, sizeof *out->labels);
    if (!out->labels) return sf_fail_memory(error);
    for (; out->classes < from->classes; out->classes++)
        if (!(out->labels[out->classes] = sf_strdup(from->labels[out->classes]))) return sf_fail_memory(error);
    return SAFER_OK;
}

static safer_status open_member(sf_sum_model *sum, size_t m, const json_t *entry, const char *path, safer_error *error)
{
    static const char *const keys[] = {"model", "weight", "canonical", NULL};
    safer_status status;
    sf_sum_member *member = &sum->members[m];
    const json_t *weight = json_object_get(entry, "weight"), *canonical = json_object_get(entry, "canonical");
    const char *name = json_string_value(json_object_get(entry, "model"));
    char place[300], *file = NULL, *lexicon = NULL;
    snprintf(place, sizeof place, "%.*s: member %zu", sf_clip(path, strlen(path), 200), path, m + 1);
    if (!json_is_object(entry)) return sf_fail(error, SAFER_INPUT, "%s is not an object", place);
    status = check_keys(entry, keys, place, error);
    if (status != SAFER_OK) return status;
    if (!name) return sf_fail(error, SAFER_INPUT, "%s: \"model\" must be the name of a file", place);
    if (canonical && !json_is_string(canonical))
        return sf_fail(error, SAFER_INPUT, "%s: \"canonical\" must be the name of a lexicon", place);
    member->weight = weight ? json_real_value(weight) : 1;
    if (!(member->weight > 0 && member->weight <= 1e6))
        return sf_fail(error, SAFER_INPUT, "%s: \"weight\" must be above 0, at most 1e6", place);
    if (!(file = resolve(path, name)) || (canonical && !(lexicon = resolve(path, json_string_value(canonical))))) {
        status = sf_fail_memory(error);
        goto done;
    }
    if (sf_sum_is(file)) {
        status = sf_fail(error, SAFER_INPUT, "%s: a sum cannot be a member of a sum", place);
        goto done;
    }
    SF_TRY(safer_model_open(&member->model, file, error));
    if (lexicon) SF_TRY(open_canonical(member, lexicon, place, error));
    SF_TRY(m == 0 ? take_labels(&sum->base, member->model, error) : check_labels(sum, member->model, place, error));
    uint64_t parts[] = {sum->base.hash, member->model->hash, 0,
                        member->canonical ? sf_lexicon_hash(member->canonical) : 0};
    memcpy(&parts[2], &member->weight, sizeof parts[2]);
    sum->base.hash = sf_hash(parts, sizeof parts, 0);
done:
    free(file);
    free(lexicon);
    return status;
}

/* What the members are goes into the digest, behind the bytes of the file that names them. */
static void add_members(sf_sha256_sum *digest, const sf_sum_model *sum)
{
    for (size_t m = 0; m < sum->count; m++) {
        const sf_sum_member *member = &sum->members[m];
        sf_sha256_add(digest, member->model->sha256.bytes, sizeof member->model->sha256.bytes);
        if (member->canonical)
            sf_sha256_add(digest, member->canonical->sha256.bytes, sizeof member->canonical->sha256.bytes);
    }
}

static safer_status read_json(json_t **out, sf_sha256_sum *digest, const char *path, safer_error *error)
{
    sf_file file = {0};
    safer_status status = sf_file_load(&file, path, error);
    if (status == SAFER_OK) sf_sha256_add(digest, file.bytes, file.length);
    if (status == SAFER_OK) status = sf_model_json(out, file.bytes, file.length, JSON_REJECT_DUPLICATES, path, error);
    sf_file_free(&file);
    return status;
}

int sf_sum_is(const char *path)
{
    char head[8 + 1] = {0}; /* terminated, whatever is read */
    struct stat info;
    FILE *file = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rb") : NULL;
    if (!file) return 0;
    size_t length = fread(head, 1, sizeof head - 1, file);
    fclose(file);
    return !memchr(head, 0, length) && head[strspn(head, " \t\r\n")] == '{';
}

safer_status sf_sum_open(safer_model **out, const char *path, safer_error *error)
{
    static const char *const keys[] = {"arch", "members", NULL};
    safer_status status;
    json_t *root = NULL;
    sf_sha256_sum digest = {0};
    sf_sum_model *sum = sf_calloc(1, sizeof *sum);
    if (!sum) return sf_fail_memory(error);
    sum->base.class = &sf_sum_class;
    sum->base.group = GROUP;
    SF_TRY(read_json(&root, &digest, path, error));
    const char *arch = json_string_value(json_object_get(root, "arch"));
    const json_t *members = json_object_get(root, "members");
    size_t count = json_array_size(members);
    if (!arch || strcmp(arch, "sum") != 0) {
        status = sf_fail(error, SAFER_INPUT,
                         "%s: a model in JSON is a sum of models: {\"arch\": \"sum\", \"members\": [...]}", path);
        goto done;
    }
    SF_TRY(check_keys(root, keys, path, error));
    if (count < 1 || count > SF_SUM_MEMBERS) {
        status = sf_fail(error, SAFER_INPUT, "%s: \"members\" must be a list of 1 to %d models", path, SF_SUM_MEMBERS);
        goto done;
    }
    sum->members = sf_calloc(count, sizeof *sum->members);
    if (!sum->members) {
        status = sf_fail_memory(error);
        goto done;
    }
    sum->count = count;
    for (size_t m = 0; m < count; m++) SF_TRY(open_member(sum, m, json_array_get(members, m), path, error));
    add_members(&digest, sum);
    SF_TRY(sf_sha256_end(&sum->base.sha256, &digest, error));
    take_members(sum);
    *out = &sum->base;
    sum = NULL;
done:
    sf_sha256_end(NULL, &digest, NULL);
    json_decref(root);
    if (sum) model_free(&sum->base);
    return status;
}
