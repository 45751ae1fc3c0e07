/* BERT checkpoints as they are published: a folder with config.json, a vocabulary and
 * weights, which are safetensors or pytorch_model.bin (one file, or shards with an index) or ONNX. How a
 * checkpoint becomes a classifier: docs/design.md, "From a text to BERT's answer". */
#define _GNU_SOURCE
#include "base/hash.h"
#include "base/memory.h"
#include "model/bert_names.h"
#include "model/onnx.h"
#include "nn/torchfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is open while a checkpoint is read. */
typedef struct reader {
    const char *folder;
    json_t *config;
    sf_buffer config_path;
    sf_safetensors **files;
    sf_torchfile **torch;
    size_t file_count, file_capacity, torch_count, torch_capacity;
    sf_onnx *onnx;
    sf_bert_source source;
    sf_digest_list read; /* files of the folder */
} reader;

static void reader_free(reader *r)
{
    sf_bert_source_free(&r->source);
    sf_digest_list_free(&r->read);
    for (size_t i = 0; i < r->file_count; i++) sf_safetensors_free(r->files[i]);
    free(r->files);
    for (size_t i = 0; i < r->torch_count; i++) sf_torchfile_free(r->torch[i]);
    free(r->torch);
    sf_onnx_free(r->onnx);
    json_decref(r->config);
    sf_buffer_free(&r->config_path);
}

/* -------------------------------------------------------------------- paths */

static safer_status join(sf_buffer *out, const char *folder, const char *name, safer_error *error)
{
    size_t length = strlen(folder);
    sf_buffer_clear(out);
    if (sf_buffer_add(out, folder, length) || (length && folder[length - 1] != '/' && sf_buffer_add_byte(out, '/')) ||
        sf_buffer_add_string(out, name))
        return sf_fail_memory(error);
    return SAFER_OK;
}

/* The path of a file in a folder, and whether it is there. So is a link that leads nowhere: opening it says so. */
static safer_status locate(sf_buffer *path, int *found, const char *folder, const char *name, safer_error *error)
{
    safer_status status = join(path, folder, name, error);
    *found = status == SAFER_OK && faccessat(AT_FDCWD, path->bytes, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    return status;
}

static int ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), end = strlen(ending);
    return length > end && strcasecmp(name + length - end, ending) == 0;
}

/* The one file of a folder with this ending; *found is how many there are. No folder is an
 * empty one. */
static safer_status only_one(sf_buffer *path, int *found, const char *folder, const char *ending, safer_error *error)
{
    safer_status status = SAFER_OK;
    DIR *open_folder = opendir(folder);
    *found = 0;
    if (!open_folder) {
        if (errno == ENOMEM) return sf_fail_memory(error);
        return errno == ENOENT || errno == ENOTDIR ? SAFER_OK : sf_fail_errno(error, "open", folder);
    }
    for (struct dirent *entry; status == SAFER_OK && (entry = readdir(open_folder));)
        if (entry->d_name[0] != '.' && ends_with(entry->d_name, ending)) {
            ++*found;
            status = join(path, folder, entry->d_name, error);
        }
    closedir(open_folder);
    return status;
}

/* Notes a file below the folder by its name there; an ONNX file may lie elsewhere. */
static safer_status note(reader *r, const char *path, const sf_file *file, safer_error *error)
{
    const size_t folder = strlen(r->folder);
    const char *name = strncmp(path, r->folder, folder) == 0 ? path + folder : sf_base_name(path);
    return sf_digest_list_add(&r->read, name + strspn(name, "/"), file->bytes, file->length, error);
}

/* A file, noted. A folder from elsewhere may hold a pipe, which would be waited for, and a clone without Git LFS a note
 * in place of each large file. */
static safer_status load(sf_file *out, reader *r, const char *path, safer_error *error)
{
    static const char pointer[] = "version https://git-lfs.github.com/spec/";
    safer_status status;
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return sf_fail(error, SAFER_INPUT, "%s is not a plain file", path);
    SF_TRY(sf_file_load(out, path, error));
    if (out->length >= sizeof pointer - 1 && memcmp(out->bytes, pointer, sizeof pointer - 1) == 0)
        status = sf_fail(error, SAFER_INPUT, "%s is a pointer of Git LFS, not the file itself: run git lfs pull", path);
    else
        status = note(r, path, out, error);
done:
    return status;
}

static safer_status read_json(json_t **out, reader *r, const char *path, safer_error *error)
{
    safer_status status;
    sf_file file = {0};
    SF_TRY(load(&file, r, path, error));
    SF_TRY(sf_model_json(out, file.bytes, file.length, 0, path, error));
    if (!json_is_object(*out)) status = sf_fail(error, SAFER_INPUT, "%s: not a JSON object", path);
done:
    sf_file_free(&file);
    return status;
}

/* ------------------------------------------------------------ configuration */

/* The shape, except for the head and `tokens`. */
static safer_status read_config(sf_bert_shape *s, reader *r, safer_error *error)
{
    safer_status status;
    SF_TRY(join(&r->config_path, r->folder, "config.json", error));
    SF_TRY(read_json(&r->config, r, r->config_path.bytes, error));
    SF_TRY(sf_bert_config_read(s, &r->source.family, (sf_model_config){r->config, r->config_path.bytes, ""}, error));
done:
    return status;
}

/* At most 512 pieces, fewer when the tokenizer says so. */
static safer_status read_tokens(sf_bert_shape *s, reader *r, safer_error *error)
{
    safer_status status;
    sf_buffer path = {0};
    json_t *json = NULL;
    int found;
    s->tokens = sf_bert_most_tokens(s) < 512 ? sf_bert_most_tokens(s) : 512;
    SF_TRY(locate(&path, &found, r->folder, "tokenizer_config.json", error));
    if (found) SF_TRY(read_json(&json, r, path.bytes, error));
    double most = json_real_value(json_object_get(json, "model_max_length"));
    if (most >= 8 && most < (double)s->tokens) s->tokens = (size_t)most;
done:
    json_decref(json);
    sf_buffer_free(&path);
    return status;
}

/* ------------------------------------------------------------------ weights */

static safer_status add_file(reader *r, const char *path, safer_error *error)
{
    safer_status status;
    sf_file image = {0};
    if (sf_grow(&r->files, &r->file_capacity, r->file_count + 1, sizeof *r->files)) return sf_fail_memory(error);
    SF_TRY(load(&image, r, path, error));
    SF_TRY(sf_safetensors_parse(&r->files[r->file_count], &image, path, error));
    r->file_count++;
    SF_TRY(sf_bert_source_add_file(&r->source, r->files[r->file_count - 1], error));
done:
    sf_file_free(&image);
    return status;
}

static safer_status add_torch(reader *r, const char *path, safer_error *error)
{
    safer_status status;
    sf_file image = {0};
    if (sf_grow(&r->torch, &r->torch_capacity, r->torch_count + 1, sizeof *r->torch)) return sf_fail_memory(error);
    SF_TRY(load(&image, r, path, error));
    SF_TRY(sf_torchfile_parse(&r->torch[r->torch_count], &image, path, error));
    const sf_torchfile *file = r->torch[r->torch_count++];
    for (size_t i = 0; i < sf_torchfile_count(file); i++) {
        const sf_tensor *tensor = sf_torchfile_at(file, i);
        SF_TRY(sf_bert_source_add(&r->source, tensor, tensor->name, sf_torchfile_name(file), 0, error));
    }
done:
    sf_file_free(&image);
    return status;
}

/* A form of weights: the whole, or shards that an index names. */
typedef struct weights_form {
    const char *file, *index, *ending, *what;
    safer_status (*add)(reader *r, const char *path, safer_error *error);
} weights_form;

static const weights_form safetensors_form = {"model.safetensors", "model.safetensors.index.json", ".safetensors",
                                              "safetensors", add_file};
static const weights_form torch_form = {"pytorch_model.bin", "pytorch_model.bin.index.json", ".bin", "PyTorch",
                                        add_torch};

/* Each file that the index names, once. */
static safer_status add_shards(reader *r, const weights_form *form, const char *index, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_buffer path = {0};
    json_t *json = NULL, *map, *value, *seen = json_object();
    const char *tensor;
    if (!seen) return sf_fail_memory(error);
    SF_TRY(read_json(&json, r, index, error));
    map = json_object_get(json, "weight_map");
    if (!json_is_object(map)) {
        status = sf_fail(error, SAFER_INPUT, "%s: there is no \"weight_map\" (an object)", index);
        goto done;
    }
    json_object_foreach(map, tensor, value)
    {
        const char *name = json_string_value(value);
        if (!name || strchr(name, '/') || !ends_with(name, form->ending)) {
            status = sf_fail(error, SAFER_INPUT, "%s: tensor \"%.200s\" is not in a %s file of the same folder", index,
                             tensor, form->what);
            goto done;
        }
        if (json_object_get(seen, name)) continue;
        if (json_object_set_new(seen, name, json_true())) {
            status = sf_fail_memory(error);
            goto done;
        }
        SF_TRY(join(&path, r->folder, name, error));
        SF_TRY(form->add(r, path.bytes, error));
    }
done:
    json_decref(json);
    json_decref(seen);
    sf_buffer_free(&path);
    return status;
}

static safer_status add_onnx(reader *r, const char *path, safer_error *error)
{
    safer_status status;
    sf_file image = {0};
    SF_TRY(load(&image, r, path, error));
    SF_TRY(sf_onnx_parse(&r->onnx, &image, path, error));
    r->source.onnx = 1;
    for (size_t i = 0; i < sf_onnx_count(r->onnx); i++) {
        const sf_onnx_weight *w = sf_onnx_at(r->onnx, i);
        SF_TRY(sf_bert_source_add(&r->source, &w->tensor, w->name, sf_onnx_name(r->onnx), w->transposed, error));
    }
done:
    sf_file_free(&image);
    return status;
}

static safer_status fail_weights(const reader *r, int safetensors, int onnx, safer_error *error)
{
    if (safetensors > 1)
        return sf_fail(error, SAFER_INPUT, "%s: %d safetensors files, none of them model.safetensors", r->folder,
                       safetensors);
    if (onnx > 1)
        return sf_fail(error, SAFER_INPUT, "%s: %d ONNX files, none of them model.onnx; name one of them", r->folder,
                       onnx);
    return sf_fail(error, SAFER_INPUT, "%s: there is no model.safetensors, no pytorch_model.bin and no ONNX file",
                   r->folder);
}

/* Weights of this form, if they are there: *found. */
static safer_status add_form(reader *r, const weights_form *form, int *found, safer_error *error)
{
    safer_status status;
    sf_buffer path = {0};
    SF_TRY(locate(&path, found, r->folder, form->file, error));
    if (*found) {
        SF_TRY(form->add(r, path.bytes, error));
        goto done;
    }
    SF_TRY(locate(&path, found, r->folder, form->index, error));
    if (*found) SF_TRY(add_shards(r, form, path.bytes, error));
done:
    sf_buffer_free(&path);
    return status;
}

/* The weights of a folder: the first of these that is there. What was exported comes last. */
static safer_status add_weights(reader *r, safer_error *error)
{
    safer_status status;
    sf_buffer path = {0}, below = {0};
    int found, safetensors, onnx;
    SF_TRY(add_form(r, &safetensors_form, &found, error));
    if (found) goto done;
    SF_TRY(only_one(&path, &safetensors, r->folder, ".safetensors", error));
    if (safetensors == 1) {
        SF_TRY(add_file(r, path.bytes, error));
        goto done;
    }
    SF_TRY(add_form(r, &torch_form, &found, error));
    if (found) goto done;
    SF_TRY(locate(&path, &found, r->folder, "onnx/model.onnx", error));
    if (!found) SF_TRY(locate(&path, &found, r->folder, "model.onnx", error));
    onnx = found;
    if (!onnx) SF_TRY(only_one(&path, &onnx, r->folder, ".onnx", error));
    if (!onnx) {
        SF_TRY(join(&below, r->folder, "onnx", error));
        SF_TRY(only_one(&path, &onnx, below.bytes, ".onnx", error));
    }
    status = onnx == 1 ? add_onnx(r, path.bytes, error) : fail_weights(r, safetensors, onnx, error);
done:
    sf_buffer_free(&path);
    sf_buffer_free(&below);
    return status;
}

/* --------------------------------------------------------------------- head */

/* sentence-transformers says how the vectors of a text become one. Where nothing does, it is the mean: [CLS] and the
 * pooler of a pretrained encoder were trained to tell whether two sentences follow each other, if at all. */
static safer_status read_pooling(sf_bert_shape *s, reader *r, safer_error *error)
{
    safer_status status;
    sf_buffer path = {0};
    json_t *json = NULL;
    const char *mode = NULL, *key;
    json_t *value;
    int found, modes = 0;
    s->pool = SF_POOL_MEAN;
    SF_TRY(locate(&path, &found, r->folder, "1_Pooling/config.json", error));
    if (!found) goto done;
    SF_TRY(read_json(&json, r, path.bytes, error));
    json_object_foreach(json, key, value) if (strncmp(key, "pooling_mode", 12) == 0)
    {
        if (json_is_string(value))
            mode = json_string_value(value);
        else if (json_is_true(value))
            mode = key;
        else
            continue;
        modes++;
    }
    if (modes == 1 && (strcmp(mode, "mean") == 0 || strcmp(mode, "pooling_mode_mean_tokens") == 0))
        s->pool = SF_POOL_MEAN;
    else if (modes == 1 && (strcmp(mode, "cls") == 0 || strcmp(mode, "pooling_mode_cls_token") == 0))
        s->pool = SF_POOL_CLS;
    else
        status = sf_fail(error, SAFER_INPUT,
                         "%s: pooling by %s%.80s%s; the mean over all pieces or the vector of [CLS] is supported",
                         path.bytes, modes == 1 ? "\"" : "",
                         modes == 1 ? mode
                         : modes    ? "several modes"
                                    : "none",
                         modes == 1 ? "\"" : "");
done:
    json_decref(json);
    sf_buffer_free(&path);
    return status;
}

static safer_status read_head(sf_bert_shape *s, reader *r, safer_error *error)
{
    if (!sf_bert_source_find(&r->source, "classifier.weight")) return read_pooling(s, r, error);
    return sf_bert_config_head(s, &r->source, (sf_model_config){r->config, r->config_path.bytes, ""}, error);
}

/* id2label is {"0": name, ...}. Without it, the names are those HuggingFace gives. */
static safer_status read_label(char **out, const json_t *names, size_t i, const char *file, safer_error *error)
{
    char text[40];
    snprintf(text, sizeof text, "%s%zu", names ? "" : "LABEL_", i);
    const char *name = names ? json_string_value(json_object_get(names, text)) : text;
    if (!name) return sf_fail(error, SAFER_INPUT, "%s: there is no label \"%s\" in \"id2label\"", file, text);
    return (*out = sf_strdup(name)) ? SAFER_OK : sf_fail_memory(error);
}

static safer_status read_labels(sf_bert_checkpoint *c, const reader *r, safer_error *error)
{
    const json_t *names = json_object_get(r->config, "id2label");
    const char *file = r->config_path.bytes;
    size_t classes = c->layout.shape.classes;
    safer_status status = SAFER_OK;
    if (json_is_null(names)) names = NULL;
    if (names && json_object_size(names) != classes)
        return sf_fail(error, SAFER_INPUT, "%s: \"id2label\" names %zu labels, but the classifier has %zu classes",
                       file, json_object_size(names), classes);
    if (!(c->labels = sf_calloc(classes, sizeof *c->labels))) return sf_fail_memory(error);
    for (size_t i = 0; i < classes; i++) {
        SF_TRY(read_label(&c->labels[i], names, i, file, error));
        for (size_t j = 0; j < i; j++)
            if (strcmp(c->labels[i], c->labels[j]) == 0)
                return sf_fail(error, SAFER_INPUT, "%s: the label \"%.200s\" occurs twice in \"id2label\"", file,
                               c->labels[i]);
    }
done:
    return status;
}

/* --------------------------------------------------------------- checkpoints */

/* For runs of format 1: over what was read, not over the files. */
static safer_status hash(sf_bert_checkpoint *c, const char *path, safer_error *error)
{
    safer_status status;
    sf_bert_description text = {0};
    sf_buffer labels = {0};
    SF_TRY(sf_bert_describe(&text, &c->layout.shape, c->piecer, path, error));
    if (sf_bert_labels_json(&labels, c->labels, c->layout.shape.classes)) {
        status = sf_fail_memory(error);
        goto done;
    }
    c->hash = sf_hash(c->parameters, c->layout.size * sizeof *c->parameters, 0);
    const sf_buffer *texts[] = {&text.config, &text.vocabulary, &text.tokenizer, &labels};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i]->length) c->hash = sf_hash(texts[i]->bytes, texts[i]->length, c->hash);
done:
    sf_bert_description_free(&text);
    sf_buffer_free(&labels);
    return status;
}

/* The weights are in an ONNX file, or in the folder when that is NULL. */
static safer_status open_parts(sf_bert_checkpoint *out, const char *folder, const char *onnx, safer_error *error)
{
    safer_status status;
    reader r = {.folder = folder, .source = {.name = onnx ? onnx : folder}};
    sf_bert_checkpoint c = {0};
    sf_bert_shape shape = {0};
    SF_TRY(read_config(&shape, &r, error));
    SF_TRY(read_tokens(&shape, &r, error));
    SF_TRY(sf_bert_tokenizer_open(&c.piecer, &shape, folder, json_string_value(json_object_get(r.config, "model_type")),
                                  &r.read, error));
    SF_TRY(onnx ? add_onnx(&r, onnx, error) : add_weights(&r, error));
    SF_TRY(sf_bert_source_sort(&r.source, error));
    SF_TRY(read_head(&shape, &r, error));
    if (sf_bert_layout_make(&c.layout, &shape)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_bert_source_check(&r.source, &c.layout, error));
    if (shape.classes) SF_TRY(read_labels(&c, &r, error));
    SF_TRY(sf_bert_source_load(&c.parameters, &r.source, &c.layout, error));
    SF_TRY(hash(&c, folder, error));
    SF_TRY(sf_digest_list_end(&c.sha256, &r.read, error));
    *out = c;
    c = (sf_bert_checkpoint){0};
done:
    sf_bert_checkpoint_free(&c);
    reader_free(&r);
    return status;
}

safer_status sf_bert_directory_open(sf_bert_checkpoint *out, const char *path, safer_error *error)
{
    return open_parts(out, path, NULL, error);
}

safer_status sf_bert_onnx_open(sf_bert_checkpoint *out, const char *path, safer_error *error)
{
    safer_status status;
    sf_buffer folder = {0}, config = {0};
    int found;
    size_t length = (size_t)(sf_base_name(path) - path);
    if (sf_buffer_add(&folder, path, length) || (length == 0 && sf_buffer_add_string(&folder, "./"))) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(locate(&config, &found, folder.bytes, "config.json", error));
    if (!found) { /* Optimum keeps the weights in onnx/, the rest above it */
        size_t beside = folder.length;
        if (sf_buffer_add_string(&folder, "../")) {
            status = sf_fail_memory(error);
            goto done;
        }
        SF_TRY(locate(&config, &found, folder.bytes, "config.json", error));
        if (!found) folder.bytes[folder.length = beside] = '\0'; /* the message names the nearer one */
    }
    SF_TRY(open_parts(out, folder.bytes, path, error));
done:
    sf_buffer_free(&folder);
    sf_buffer_free(&config);
    return status;
}
