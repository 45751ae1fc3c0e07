/* What a run was made with. */
#include "certify/origin.h"

#include "data/data.h"
#include "model/arithmetic.h"
#include "run/difference.h"
#include "run/sealed.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------- writing */

static json_t *model_json(int format, const safer_model *model)
{
    const int remote = sf_model_is_remote(model), random = sf_model_is_random(model);
    json_t *part = json_object();
    if (format >= 2) sf_member_add(&part, "name", json_string(safer_model_name(model)));
    sf_member_add(&part, "arch", json_string(model->class->arch));
    if (format < 2)
        sf_member_add(&part, "hash", sf_hex_json(model->hash));
    else if (!remote)
        sf_member_add(&part, "sha256", json_string(safer_model_sha256(model)));
    else if (!random)
        sf_member_add(&part, "probe", json_string(sf_model_probe_digest(model)));
    if (!remote) sf_member_add(&part, "arithmetic", json_string(model->arithmetic));
    if (random) sf_member_add(&part, "random", json_true());
    if (format >= 2 && model->function) sf_member_add(&part, "function", json_true());
    return part;
}

/* The part of a file: its name and digest, in format 1 its hash. */
static json_t *file_json(int format, const char *name, const char *sha256, uint64_t hash)
{
    json_t *part = json_object();
    if (format < 2) {
        sf_member_add(&part, "hash", sf_hex_json(hash));
    } else {
        sf_member_add(&part, "name", json_string(name));
        sf_member_add(&part, "sha256", json_string(sha256));
    }
    return part;
}

static json_t *lexicon_json(int format, const safer_lexicon *lexicon)
{
    json_t *part = file_json(format, safer_lexicon_name(lexicon), safer_lexicon_sha256(lexicon),
                             sf_lexicon_hash(lexicon));
    sf_member_add(&part, "kernel", json_string(lexicon->kernel_name));
    if (lexicon->folds && format >= 2) {
        json_t *fold = json_object();
        sf_member_add(&fold, "steps", json_string(lexicon->phi.steps));
        sf_member_add(&fold, "unicode", json_string(lexicon->phi.unicode));
        sf_member_add(&fold, "sha256", json_string(lexicon->fold_sha256.hex));
        sf_member_add(&part, "fold", fold);
    }
    return part;
}

static json_t *data_json(int format, const safer_data *data)
{
    json_t *part = file_json(format, safer_data_name(data), safer_data_sha256(data), sf_data_hash(data));
    sf_member_add(&part, "texts", json_integer((json_int_t)safer_data_size(data)));
    return part;
}

void sf_origin_add(json_t **config, int format, const safer_model *model, const safer_lexicon *lexicon,
                   const safer_data *data)
{
    if (model) sf_member_add(config, "model", model_json(format, model));
    sf_member_add(config, "lexicon", lexicon_json(format, lexicon));
    if (data) sf_member_add(config, "data", data_json(format, data));
    if (!model) return;
    json_t *labels = json_array();
    for (size_t k = 0; k < model->classes; k++) sf_item_add(&labels, json_string(model->labels[k]));
    sf_member_add(config, "labels", labels);
}

/* ------------------------------------------------------------------- reading */

/* The architectures: first those of remote models, then those that see every slot too. */
static const char *const kinds[] = {"exec", "http", "callback", "ngram", "context",
                                    "bow",  "cnn",  "charcnn",  "bert",  "sum"};
enum { REMOTE = 3, WHOLE = 5, KINDS = sizeof kinds / sizeof kinds[0] };

static void read_model(sf_origin *out, sf_members *m)
{
    sf_members model = sf_members_enter(m, "model");
    if (m->format >= 2) (void)sf_member_string(&model, "name");
    const char *arch = sf_member_string(&model, "arch");
    size_t kind = 0;
    while (kind < KINDS && !(arch && strcmp(arch, kinds[kind]) == 0)) kind++;
    out->remote = kind < REMOTE;
    out->whole = kind < WHOLE;
    if (kind == KINDS)
        sf_member_refuse(&model, "arch", "one of ngram, bow, cnn, charcnn, bert, context, sum, exec, http, callback");
    const json_t *random = out->remote ? sf_member_optional(&model, "random") : NULL;
    if (random && !json_is_true(random)) sf_member_refuse(&model, "random", "true, or missing");
    out->random = random != NULL;
    if (m->format < 2) {
        (void)sf_member_string(&model, "hash");
        const json_t *arithmetic = sf_member_optional(&model, "arithmetic");
        if (arithmetic && !json_is_string(arithmetic)) sf_member_refuse(&model, "arithmetic", "a string");
    } else if (out->remote) {
        const json_t *function = sf_member_optional(&model, "function");
        if (function && (random || !json_is_true(function)))
            sf_member_refuse(&model, "function", "true, or missing, as where the model is random");
        if (!random) (void)sf_member_digest(&model, "probe");
    } else {
        (void)sf_member_digest(&model, "sha256");
        (void)sf_member_string(&model, "arithmetic");
    }
    sf_members_leave(m, &model);
}

/* The part of a file: its name and digest, in format 1 its hash. */
static sf_members enter_file(sf_members *m, const char *name)
{
    sf_members file = sf_members_enter(m, name);
    if (m->format < 2) {
        (void)sf_member_string(&file, "hash");
    } else {
        (void)sf_member_string(&file, "name");
        (void)sf_member_digest(&file, "sha256");
    }
    return file;
}

static void read_labels(sf_origin *out, sf_members *m)
{
    static const char must[] = "a list of two names or more, all different";
    out->labels = sf_member_array(m, "labels");
    out->classes = json_array_size(out->labels);
    if (out->classes < 2) sf_member_refuse(m, "labels", must);
    for (size_t k = 0; k < out->classes && !m->wrong; k++) {
        const json_t *label = json_array_get(out->labels, k);
        if (!sf_is_string(label)) sf_member_refuse(m, "labels", must);
        for (size_t i = 0; i < k; i++)
            if (json_equal(label, json_array_get(out->labels, i))) sf_member_refuse(m, "labels", must);
    }
}

sf_origin sf_origin_read(sf_members *m)
{
    sf_origin out = {0};
    read_model(&out, m);
    sf_members lexicon = enter_file(m, "lexicon");
    (void)sf_member_string(&lexicon, "kernel");
    out.folded = m->format >= 2 && sf_member_optional(&lexicon, "fold") != NULL;
    if (out.folded) {
        sf_members fold = sf_members_enter(&lexicon, "fold");
        (void)sf_member_string(&fold, "steps");
        (void)sf_member_string(&fold, "unicode");
        (void)sf_member_digest(&fold, "sha256");
        sf_members_leave(&lexicon, &fold);
    }
    sf_members_leave(m, &lexicon);
    sf_members data = enter_file(m, "data");
    out.texts = (size_t)sf_member_count(&data, "texts");
    sf_members_leave(m, &data);
    read_labels(&out, m);
    return out;
}

/* ----------------------------------------------------------------- comparing */

static int is_of_device(const char *arithmetic) { return strstr(arithmetic, " cuda ") != NULL; }

/* Of the same model: whether it gives the same bits here, under whatever name. If not, says what to do about it. */
static safer_status check_arithmetic(const char *theirs, const char *ours, const char *path, safer_error *error)
{
    if (sf_arithmetic_same(theirs, ours)) return SAFER_OK;
    if (!theirs) theirs = SF_PORTABLE_NAME; /* as format 1 means it */
    const size_t kind = strcspn(theirs, " ");
    const int device = is_of_device(ours);
    char advice[96];
    if (strcmp(theirs, SF_FORMER_AMX_NAME) == 0)
        snprintf(advice, sizeof advice, "safer before 0.2.0 computed so: certify again");
    else if (is_of_device(theirs) && !device)
        snprintf(advice, sizeof advice, "give `device` cuda, on a machine with such a GPU");
    else if (device && !is_of_device(theirs))
        snprintf(advice, sizeof advice, "leave out `device`, and give `precision` %.*s", (int)kind, theirs);
    else if (strncmp(theirs, ours, kind) != 0 || strcspn(ours, " ") != kind)
        snprintf(advice, sizeof advice, "give `precision` %.*s", (int)kind, theirs);
    else
        snprintf(advice, sizeof advice, "use a machine that computes so, or certify with `precision` portable");
    return sf_fail(error, SAFER_INPUT,
                   "%s was made with this model, but in the arithmetic \"%s\"; here it is \"%s\", whose last bits may "
                   "differ: %s",
                   path, theirs, ours, advice);
}

safer_status sf_origin_check(const json_t *config, const safer_model *model, const safer_lexicon *lexicon,
                             const safer_data *data, const char *path, safer_error *error)
{
    static const struct {
        const char *member, *name;
    } parts[] = {{"model", "model"},
                 {"lexicon", "lexicon"},
                 {"data", "data set, or to other rows of it"},
                 {"labels", "list of labels"}};
    static const char other_arithmetic[] = "model.arithmetic "; /* which comes after the digest */
    char difference[256];
    safer_status status = SAFER_OK;
    const int format = (int)json_integer_value(json_object_get(config, "format"));
    json_t *expected = json_object();
    sf_origin_add(&expected, format, model, lexicon, data);
    if (!expected) return sf_fail_memory(error);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && status == SAFER_OK; i++) {
        const json_t *there = json_object_get(config, parts[i].member),
                     *here = json_object_get(expected, parts[i].member);
        if (!here || !sf_difference(difference, sizeof difference, parts[i].member, there, here)) continue;
        if (strncmp(difference, other_arithmetic, strlen(other_arithmetic)) == 0)
            status = check_arithmetic(json_string_value(json_object_get(there, "arithmetic")), model->arithmetic, path,
                                      error);
        else
            status = sf_fail(error, SAFER_INPUT, "%s belongs to another %s: %s", path, parts[i].name, difference);
    }
    json_decref(expected);
    return status;
}

const char *sf_origin_digest(const json_t *config, const char *part)
{
    const json_t *of = json_object_get(config, part);
    const char *sha256 = json_string_value(json_object_get(of, "sha256")),
               *other = json_string_value(json_object_get(of, sha256 ? "sha256" : "hash"));
    return other ? other : "";
}

int sf_origin_is_same(const json_t *one, const json_t *other, const char *part)
{
    char difference[256];
    const char *a = sf_origin_digest(one, part), *b = sf_origin_digest(other, part);
    if (*a || *b) return strcmp(a, b) == 0;
    return !sf_difference(difference, sizeof difference, part, json_object_get(one, part),
                          json_object_get(other, part));
}

safer_status sf_origin_follow(json_t **own, const json_t *theirs, safer_error *error)
{
    static const char *const of_data[] = {"data", "delta_text"};
    char difference[256];
    for (size_t i = 0; i < 2; i++) {
        json_t *member = json_object_get(theirs, of_data[i]);
        if (member && *own) sf_member_add(own, of_data[i], json_incref(member));
    }
    if (!*own) return sf_fail_memory(error);
    if (!sf_difference(difference, sizeof difference, NULL, *own, theirs)) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "its configuration is not that of rank 0: %s", difference);
}

/* Whether the digest that a configuration has for a part is this one, or in format 1 this hash. */
static int has(const json_t *config, const char *part, const char *sha256, uint64_t hash)
{
    char digits[17];
    const char *there = sf_origin_digest(config, part);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash);
    const char *here = strlen(there) == 64 ? sha256 : digits;
    return here && strcmp(there, here) == 0;
}

int sf_origin_has_lexicon(const json_t *config, const safer_lexicon *lexicon)
{
    return has(config, "lexicon", safer_lexicon_sha256(lexicon), sf_lexicon_hash(lexicon));
}

int sf_origin_has_data(const json_t *config, const safer_data *data)
{
    return has(config, "data", safer_data_sha256(data), sf_data_hash(data));
}
