/* Every kind of encoder against transformers: logits, gradients, and what must not depend on the batch, on threads, or
 * on the form of the file. tests/golden/encoders was made by scripts/golden-encoders.
 *
 *   test_encoders                the folders of tests/golden/encoders
 *   test_encoders FOLDER         all of another folder, perhaps larger ones, and a table of how far they are apart */
#define _GNU_SOURCE
#include "base/memory.h"
#include "model/bert_names.h"
#include "support.h"
#include "train/bert_step.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder = SOURCE_DIR "/tests/golden/encoders";
static int table; /* is printed */

enum { LONGEST = 1024, CLASSES = 3, SLOPES = 8, SLOPES_FROM = 4 };

/* An encoder of the folder, and what is known of it. */
typedef struct golden {
    char path[512], name[64];
    sf_bert_checkpoint checkpoint;
    json_t *json;
    size_t count;  /* of inputs */
    uint32_t *ids; /* of all, one after the other */
    size_t *offsets;
} golden;

static json_t *member(const golden *g, const char *name) { return json_object_get(g->json, name); }

static size_t number(const golden *g, const char *name) { return (size_t)json_integer_value(member(g, name)); }

/* As scripts/golden-encoders makes them. */
static void make_sequence(uint32_t *ids, size_t length, size_t number_of, const golden *g)
{
    const size_t first = number(g, "first"), vocabulary = number(g, "vocabulary");
    uint32_t state = (uint32_t)(number_of * 2654435761u);
    for (size_t i = 0; i < length; i++) {
        state = state * 1664525u + 1013904223u;
        ids[i] = (uint32_t)(first + (state >> 8) % (vocabulary - first));
    }
    ids[0] = (uint32_t)number(g, "begin");
    if (length > 1) ids[length - 1] = (uint32_t)number(g, "end");
}

static void open_golden(golden *g, const char *name)
{
    safer_error error = {0};
    json_error_t problem;
    char path[600];
    snprintf(g->name, sizeof g->name, "%s", name);
    snprintf(g->path, sizeof g->path, "%s/%s", folder, name);
    snprintf(path, sizeof path, "%s/golden.json", g->path);
    g->json = json_load_file(path, 0, &problem);
    if (!g->json) fail_msg("%s: %s", path, problem.text);
    if (sf_bert_checkpoint_open(&g->checkpoint, g->path, &error) != SAFER_OK) fail_msg("%s", error.message);
    const json_t *inputs = member(g, "inputs");
    g->count = json_array_size(inputs);
    g->ids = sf_alloc(g->count * LONGEST, sizeof *g->ids);
    g->offsets = sf_calloc(g->count + 1, sizeof *g->offsets);
    for (size_t i = 0; i < g->count; i++) {
        const size_t length = (size_t)json_integer_value(json_array_get(json_array_get(inputs, i), 0));
        assert_true(length <= LONGEST && length <= g->checkpoint.layout.shape.tokens);
        make_sequence(g->ids + g->offsets[i], length, i, g);
        g->offsets[i + 1] = g->offsets[i] + length;
    }
}

static void close_golden(golden *g)
{
    sf_bert_checkpoint_free(&g->checkpoint);
    json_decref(g->json);
    free(g->ids);
    free(g->offsets);
}

static double expected(const golden *g, size_t input, size_t class)
{
    return json_real_value(json_array_get(json_array_get(json_array_get(member(g, "inputs"), input), 1), class));
}

static void answer(float *logits, const sf_bert_net *net, const sf_bert_batch *batch)
{
    safer_error error = {0};
    sf_bert_scratch *scratch = NULL;
    float *features = sf_alloc_aligned(batch->count * net->layout->shape.hidden, sizeof *features);
    assert_int_equal(sf_bert_scratch_new(&scratch, net, &error), SAFER_OK);
    sf_bert_features(features, net, batch, scratch);
    sf_bert_logits(logits, net, features, batch->count);
    sf_bert_scratch_free(scratch);
    free(features);
}

/* Logits of all inputs. The caller frees them. */
static float *logits_of(const golden *g, const sf_bert_checkpoint *c, sf_arithmetic arithmetic)
{
    safer_error error = {0};
    sf_bert_net *net = NULL;
    float *logits = sf_alloc(g->count * CLASSES, sizeof *logits);
    assert_int_equal(c->layout.shape.classes, CLASSES);
    assert_int_equal(sf_bert_net_new(&net, &c->layout, c->parameters, arithmetic, 1, &error), SAFER_OK);
    answer(logits, net, &(sf_bert_batch){g->ids, g->offsets, g->count});
    sf_bert_net_free(net);
    return logits;
}

static double farthest(const golden *g, const float *logits)
{
    double far = 0;
    for (size_t i = 0; i < g->count; i++)
        for (size_t c = 0; c < CLASSES; c++) {
            const double off = fabs((double)logits[i * CLASSES + c] - expected(g, i, c));
            if (!(off <= far)) far = off;
        }
    return far;
}

/* ------------------------------------------------------------------- the names */

static char names[64][64];
static size_t name_count;

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

static int list(void)
{
    DIR *open_folder = opendir(folder);
    if (!open_folder) return -1;
    for (struct dirent *entry; name_count < 64 && (entry = readdir(open_folder));)
        if (entry->d_name[0] != '.' && !strchr(entry->d_name, '.'))
            snprintf(names[name_count++], 64, "%.63s", entry->d_name);
    closedir(open_folder);
    qsort(names, name_count, sizeof names[0], by_name);
    return 0;
}

/* ---------------------------------------------------------------------- logits */

/* f32 to 2e-5; bf16 to 2e-2, or to half more than PyTorch's own bf16 is off where that is more. */
static void logits_agree(void **state)
{
    (void)state;
    if (table) printf("%-20s%12s%12s%12s\n", "logits", "f32", "bf16", "bf16 torch");
    for (size_t n = 0; n < name_count; n++) {
        golden g = {0};
        open_golden(&g, names[n]);
        float *fine = logits_of(&g, &g.checkpoint, sf_arithmetic_fast(SF_F32)),
              *rough = logits_of(&g, &g.checkpoint, sf_arithmetic_fast(SF_BF16));
        const double torch = json_real_value(member(&g, "bf16")), f32 = farthest(&g, fine), bf16 = farthest(&g, rough);
        if (table) printf("%-20s%12.2e%12.2e%12.2e\n", g.name, f32, bf16, torch);
        if (!(f32 <= 2e-5)) fail_msg("%s: logits are off by %g in f32", g.name, f32);
        if (!(bf16 <= fmax(2e-2, 1.5 * torch)))
            fail_msg("%s: logits are off by %g in bf16, those of PyTorch by %g", g.name, bf16, torch);
        free(fine);
        free(rough);
        close_golden(&g);
    }
}

/* From text to logits: the tokenizer, the frame, and what is cut off. */
static void texts_agree(void **state)
{
    (void)state;
    safer_error error = {0};
    for (size_t n = 0; n < name_count; n++) {
        golden g = {0};
        sf_bert_net *net = NULL;
        size_t index;
        const json_t *one;
        sf_ids ids = {0};
        sf_piecer_scratch scratch = {0};
        open_golden(&g, names[n]);
        const sf_bert_checkpoint *c = &g.checkpoint;
        const sf_tokenizer_frame frame = sf_piecer_frame(c->piecer);
        const sf_window window = sf_bert_window(&c->layout.shape, c->piecer);
        assert_int_equal(sf_bert_net_new(&net, &c->layout, c->parameters, sf_arithmetic_fast(SF_F32), 1, &error),
                         SAFER_OK);
        json_array_foreach(member(&g, "texts"), index, one)
        {
            const char *text = json_string_value(json_object_get(one, "text"));
            uint32_t all[LONGEST];
            float logits[CLASSES];
            assert_int_equal(sf_piecer_encode(&ids, c->piecer, text, strlen(text), window, &scratch), 0);
            const size_t count = frame.before_count + ids.count + frame.after_count;
            if (frame.before_count) memcpy(all, frame.before, frame.before_count * sizeof *all);
            if (ids.count) memcpy(all + frame.before_count, ids.ids, ids.count * sizeof *all);
            if (frame.after_count)
                memcpy(all + frame.before_count + ids.count, frame.after, frame.after_count * sizeof *all);
            answer(logits, net, &(sf_bert_batch){all, (size_t[]){0, count}, 1});
            for (size_t k = 0; k < CLASSES; k++) {
                const double wanted = json_real_value(json_array_get(json_object_get(one, "logits"), k));
                if (!(fabs((double)logits[k] - wanted) <= 2e-5))
                    fail_msg("%s: text %zu: logit %zu is %g, not %g", g.name, index, k, (double)logits[k], wanted);
            }
        }
        sf_ids_free(&ids);
        sf_piecer_scratch_free(&scratch);
        sf_bert_net_free(net);
        close_golden(&g);
    }
}

/* On every instruction set that there is, and in arithmetic that is the same everywhere. */
static void instruction_sets_agree(void **state)
{
    (void)state;
    for (size_t n = 0; n < name_count; n++) {
        golden g = {0};
        open_golden(&g, names[n]);
        if (g.count > 16) g.count = 16;
        for (sf_isa isa = SF_PORTABLE; isa <= sf_isa_choose(); isa++)
            for (int half = 0; half < 2; half++) {
                float *logits = logits_of(&g, &g.checkpoint,
                                          (sf_arithmetic){.type = half ? SF_BF16 : SF_F32, .isa = isa});
                const double off = farthest(&g, logits), torch = json_real_value(member(&g, "bf16"));
                if (!(off <= (half ? fmax(2e-2, 1.5 * torch) : 2e-5)))
                    fail_msg("%s: logits are off by %g in %s on %s", g.name, off, half ? "bf16" : "f32",
                             sf_isa_name(isa));
                free(logits);
            }
        close_golden(&g);
    }
}

/* A text alone, and with others: the same bits. */
static void batches_do_not_matter(void **state)
{
    (void)state;
    safer_error error = {0};
    for (size_t n = 0; n < name_count; n++) {
        golden g = {0};
        open_golden(&g, names[n]);
        for (int half = 0; half < 2; half++) {
            sf_bert_net *net = NULL;
            const sf_arithmetic arithmetic = sf_arithmetic_fast(half ? SF_BF16 : SF_F32);
            float *logits = logits_of(&g, &g.checkpoint, arithmetic), alone[CLASSES];
            assert_int_equal(
                sf_bert_net_new(&net, &g.checkpoint.layout, g.checkpoint.parameters, arithmetic, 1, &error), SAFER_OK);
            for (size_t i = 0; i < g.count; i += 5) {
                const size_t offsets[2] = {0, g.offsets[i + 1] - g.offsets[i]};
                answer(alone, net, &(sf_bert_batch){g.ids + g.offsets[i], offsets, 1});
                assert_memory_equal(alone, logits + i * CLASSES, sizeof alone);
            }
            sf_bert_net_free(net);
            free(logits);
        }
        close_golden(&g);
    }
}

/* The one-file form keeps every setting. */
static void files_keep_everything(void **state)
{
    (void)state;
    safer_error error = {0};
    char path[64];
    snprintf(path, sizeof path, "/tmp/safer-encoders-%d.safetensors", (int)getpid());
    for (size_t n = 0; n < name_count; n++) {
        golden g = {0};
        sf_bert_checkpoint again;
        open_golden(&g, names[n]);
        const sf_bert_checkpoint *c = &g.checkpoint;
        sf_buffer labels = {0}, ours = {0}, theirs = {0};
        assert_int_equal(sf_bert_labels_json(&labels, c->labels, CLASSES), 0);
        if (sf_bert_save(path, &c->layout, c->parameters, c->piecer, labels.bytes, NULL, &error) != SAFER_OK ||
            sf_bert_checkpoint_open(&again, path, &error) != SAFER_OK)
            fail_msg("%s: %s", g.name, error.message);
        assert_int_equal(sf_bert_shape_write(&ours, &c->layout.shape), 0);
        assert_int_equal(sf_bert_shape_write(&theirs, &again.layout.shape), 0);
        assert_string_equal(ours.bytes, theirs.bytes);
        float *first = logits_of(&g, c, sf_arithmetic_fast(SF_F32)),
              *second = logits_of(&g, &again, sf_arithmetic_fast(SF_F32));
        assert_memory_equal(first, second, g.count * CLASSES * sizeof *first);
        free(first);
        free(second);
        sf_buffer_free(&labels);
        sf_buffer_free(&ours);
        sf_buffer_free(&theirs);
        sf_bert_checkpoint_free(&again);
        close_golden(&g);
        unlink(path);
    }
}

/* ------------------------------------------------------------------ settings */

/* A folder like a golden one but for some keys of config.json; NULL takes one away. */
static const char *changed(const char *name, const char *changes)
{
    static char path[64];
    static const char *const files[] = {"model.safetensors", "tokenizer.json", "tokenizer_config.json"};
    char from[600], to[200];
    json_error_t problem;
    const char *key;
    json_t *value;
    snprintf(path, sizeof path, "/tmp/safer-encoders-%d", (int)getpid());
    (void)mkdir(path, 0700);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(from, sizeof from, "%s/%s/%s", folder, name, files[i]);
        snprintf(to, sizeof to, "%s/%s", path, files[i]);
        unlink(to);
        assert_int_equal(symlink(from, to), 0);
    }
    snprintf(from, sizeof from, "%s/%s/config.json", folder, name);
    snprintf(to, sizeof to, "%s/config.json", path);
    json_t *config = json_load_file(from, 0, &problem), *list = json_loads(changes, 0, &problem);
    assert_true(config && list);
    json_object_foreach(list, key, value)
    {
        if (json_is_null(value))
            json_object_del(config, key);
        else
            json_object_set(config, key, value);
    }
    assert_int_equal(json_dump_file(config, to, 0), 0);
    json_decref(config);
    json_decref(list);
    return path;
}

static void remove_changed(void)
{
    static const char *const files[] = {"model.safetensors", "tokenizer.json", "tokenizer_config.json", "config.json"};
    char path[200];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "/tmp/safer-encoders-%d/%s", (int)getpid(), files[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "/tmp/safer-encoders-%d", (int)getpid());
    rmdir(path);
}

/* What is not understood: one line, with the key and the file. */
static void settings_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *changes, *words;
    } bad[] = {
        {"roberta", "{\"model_type\": \"roberta-prelayernorm\"}", "\"roberta-prelayernorm\"; bert, distilbert"},
        {"roberta", "{\"position_embedding_type\": \"relative_key\"}", "\"relative_key\"; absolute is supported"},
        {"roberta", "{\"is_decoder\": true}", "decoder"},
        {"roberta", "{\"add_cross_attention\": true}", "\"add_cross_attention\""},
        {"roberta", "{\"quantization_config\": {\"bits\": 4}}", "\"quantization_config\""},
        {"roberta", "{\"pad_token_id\": 65}", "\"pad_token_id\" must be a whole number from 0 to 64"},
        {"roberta", "{\"pad_token_id\": 64}", "less than 3 positions"},
        {"roberta", "{\"hidden_act\": \"quick_gelu\"}", "\"quick_gelu\"; gelu"},
        {"roberta", "{\"num_hidden_layers\": 4}", "no tensor \"encoder.layer.3.attention.self.query.weight\""},
        {"electra", "{\"embedding_size\": 32}", "the shape of tensor \"electra.embeddings.word_embeddings.weight\""},
        {"electra", "{\"embedding_size\": 0}", "\"embedding_size\""},
        {"albert", "{\"num_hidden_groups\": 2}", "\"num_hidden_groups\" is 2; 1 is supported"},
        {"albert", "{\"inner_group_num\": 3}", "\"inner_group_num\" is 3; 1 is supported"},
        {"mpnet", "{\"relative_attention_num_buckets\": 16}", "\"relative_attention_num_buckets\""},
        {"mpnet", "{\"num_hidden_layers\": 4}", "no tensor \"encoder.layer.3.attention.attn.q.weight\""},
        {"deberta-v3", "{\"relative_attention\": false}", "\"relative_attention\""},
        {"deberta-v3", "{\"conv_kernel_size\": 3}", "\"conv_kernel_size\" is 3"},
        {"deberta-v3", "{\"pos_att_type\": [\"p2p\"]}", "\"pos_att_type\" is \"p2p\""},
        {"deberta-v3", "{\"pos_att_type\": null}", "\"pos_att_type\" is \"\""},
        {"deberta-v3", "{\"position_buckets\": 1000}", "\"position_buckets\" is 1000"},
        {"deberta-v3", "{\"norm_rel_ebd\": \"batch_norm\"}", "\"norm_rel_ebd\" is \"batch_norm\"; none"},
        {"deberta-v3", "{\"attention_head_size\": 4}", "\"attention_head_size\" is 4"},
        {"deberta-v3", "{\"pooler_hidden_size\": 16}", "\"pooler_hidden_size\" is 16"},
        {"deberta-v3", "{\"pooler_hidden_act\": \"mish\"}", "\"pooler_hidden_act\" is \"mish\""},
        {"deberta-v3", "{\"share_att_key\": 1}", "\"share_att_key\" must be true or false"},
        {"deberta-v3", "{\"share_att_key\": false}",
         "no tensor \"encoder.layer.0.attention.self.pos_key_proj.weight\""},
        {"modernbert", "{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}}", "\"rope_scaling\" is set"},
        {"modernbert", "{\"rope_parameters\": {}}", "no \"full_attention\""},
        {"modernbert",
         "{\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"yarn\"}, \"sliding_attention\": {}}}",
         "\"rope_type\" in \"full_attention\" of \"rope_parameters\" is \"yarn\"; default"},
        {"modernbert", "{\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 0}, \"sliding_attention\": {}}}",
         "\"rope_theta\" in \"full_attention\" of \"rope_parameters\" must be"},
        {"modernbert", "{\"layer_types\": [\"full_attention\"]}", "\"layer_types\" must be a list of 4 names"},
        {"modernbert", "{\"layer_types\": [1, 2, 3, 4]}", "entry 0 of \"layer_types\""},
        {"modernbert", "{\"local_attention\": 1}", "need a window"},
        {"modernbert", "{\"classifier_pooling\": \"max\"}", "\"classifier_pooling\" is \"max\"; cls is supported"},
        {"modernbert", "{\"classifier_activation\": \"mish\"}", "\"classifier_activation\" is \"mish\""},
        {"modernbert", "{\"norm_bias\": true}", "no tensor \"embeddings.norm.bias\""},
        {"modernbert", "{\"mlp_bias\": true}", "no tensor \"layers.0.mlp.Wi.bias\""},
        {"modernbert", "{\"num_attention_heads\": 32}", "heads of an even size"},
        {"modernbert", "{\"num_hidden_layers\": 257}", "\"num_hidden_layers\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        safer_error error = {0};
        sf_bert_checkpoint c;
        const safer_status status = sf_bert_checkpoint_open(&c, changed(bad[i].name, bad[i].changes), &error);
        if (status != SAFER_INPUT || !strstr(error.message, bad[i].words) || strchr(error.message, '\n'))
            fail_msg("%s %s: \"%s\"", bad[i].name, bad[i].changes, status == SAFER_OK ? "accepted" : error.message);
    }
    remove_changed();
}

/* Older ways to say the same, and defaults. */
static void settings_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *name, *changes;
    } same[] = {
        {"deberta-v3", "{\"pos_att_type\": \"c2p|p2c\", \"pooler_hidden_act\": null, \"pooler_hidden_size\": null, "
                       "\"max_relative_positions\": null, \"type_vocab_size\": null}"},
        {"deberta-v2", "{\"position_buckets\": null, \"norm_rel_ebd\": null, \"share_att_key\": null, "
                       "\"position_biased_input\": null, \"layer_norm_eps\": null, \"conv_kernel_size\": 0}"},
        {"modernbert", "{\"rope_parameters\": null, \"layer_types\": null, \"global_rope_theta\": 160000.0, "
                       "\"local_rope_theta\": 10000, \"position_embedding_type\": \"absolute\"}"},
        {"modernbert", "{\"rope_parameters\": null, \"layer_types\": null, \"global_attn_every_n_layers\": null, "
                       "\"attention_bias\": null, \"mlp_bias\": null, \"norm_bias\": null, \"norm_eps\": null}"},
        {"albert", "{\"num_hidden_groups\": null, \"inner_group_num\": null, \"hidden_act\": \"gelu_pytorch_tanh\"}"},
        {"roberta", "{\"pad_token_id\": null, \"architectures\": null}"},
        {"mpnet", "{\"relative_attention_num_buckets\": null, \"pad_token_id\": 5}"},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        safer_error error = {0};
        sf_bert_checkpoint c;
        golden g = {0};
        open_golden(&g, same[i].name);
        if (sf_bert_checkpoint_open(&c, changed(same[i].name, same[i].changes), &error) != SAFER_OK)
            fail_msg("%s %s: %s", same[i].name, same[i].changes, error.message);
        float *logits = logits_of(&g, &c, sf_arithmetic_fast(SF_F32));
        if (!(farthest(&g, logits) <= 2e-5)) fail_msg("%s %s: other logits", same[i].name, same[i].changes);
        free(logits);
        sf_bert_checkpoint_free(&c);
        close_golden(&g);
    }
    remove_changed();
}

/* The piece that positions are counted from does not count, wherever it stands. */
static void padding_does_not_count(void **state)
{
    (void)state;
    safer_error error = {0};
    golden g = {0};
    sf_bert_net *net = NULL;
    float one[CLASSES], other[CLASSES];
    open_golden(&g, "roberta");
    const sf_bert_layout *l = &g.checkpoint.layout;
    float *p = g.checkpoint.parameters;
    assert_int_equal(sf_bert_net_new(&net, l, p, sf_arithmetic_fast(SF_F32), 1, &error), SAFER_OK);
    const uint32_t ids[5] = {0, 7, 1, 9, 2}; /* 1: <pad> */
    answer(one, net, &(sf_bert_batch){ids, (size_t[]){0, 5}, 1});
    for (size_t place = 0; place < l->shape.positions; place++) {
        const int used = place >= 1 && place <= 5; /* <pad> at 1, the others at 2, 3, 4, 5 */
        p[l->positions + place * l->shape.hidden] += 1;
        answer(other, net, &(sf_bert_batch){ids, (size_t[]){0, 5}, 1});
        assert_int_equal(memcmp(one, other, sizeof one) != 0, used);
        p[l->positions + place * l->shape.hidden] -= 1;
        answer(one, net, &(sf_bert_batch){ids, (size_t[]){0, 5}, 1});
    }
    sf_bert_net_free(net);
    close_golden(&g);
}

/* -------------------------------------------------------------------- gradients */

/* The golden numbers of a parameter: its name here, the length of its gradient, its product with sin(1), sin(2), ... */
static void canonical(char out[96], const char *name)
{
    static const char own[] = "classifier.dense.";
    assert_int_equal(sf_bert_canonical(out, name), 0);
    if (strncmp(out, own, sizeof own - 1) == 0) {
        char rest[96];
        snprintf(rest, sizeof rest, "%s", out + sizeof own - 1);
        snprintf(out, 96, "pooler.dense.%.80s", rest);
    }
}

static const sf_bert_tensor *tensor_of(const sf_bert_layout *l, const char *name)
{
    for (size_t i = 0; i < l->tensor_count; i++)
        if (strcmp(l->tensors[i].name, name) == 0) return &l->tensors[i];
    fail_msg("there is no tensor %s", name);
    return NULL;
}

/* How far one is off, as a part of its length; where that is next to nothing (keys have biases that change no
 * answer), of a thousandth of the whole gradient's. */
static double slopes_off(const golden *g, const float *gradient)
{
    const sf_bert_layout *l = &g->checkpoint.layout;
    const json_t *values;
    const char *name;
    double far = 0, total = 0;
    size_t known = 0;
    json_object_foreach(member(g, "gradients"), name, values)
        total += pow(json_real_value(json_array_get(values, 0)), 2);
    json_object_foreach(member(g, "gradients"), name, values)
    {
        char ours[96];
        canonical(ours, name);
        const sf_bert_tensor *t = tensor_of(l, ours);
        const double norm = json_real_value(json_array_get(values, 0)),
                     product = json_real_value(json_array_get(values, 1));
        double squares = 0, own = 0;
        for (size_t i = 0; i < t->count; i++) {
            const double x = (double)gradient[t->offset + i];
            squares += x * x;
            own += x * sin((double)(i + 1));
        }
        const double off = fmax(fabs(sqrt(squares) - norm), fabs(own - product)) / (norm + 1e-3 * sqrt(total));
        if (!(off <= 1e-4)) fail_msg("%s: the gradient of %s is off by %g of %g", g->name, name, off, norm);
        far = fmax(far, off);
        known++;
    }
    assert_int_equal(known, l->tensor_count);
    return far;
}

/* A trainer of a golden encoder; the caller frees it. */
static sf_bert_step *step_of(const golden *g, const sf_bert_options *options)
{
    sf_bert_step *step = NULL;
    safer_error error = {0};
    const size_t pieces = g->offsets[SLOPES_FROM + SLOPES] - g->offsets[SLOPES_FROM];
    assert_int_equal(sf_bert_step_new(&step, &g->checkpoint.layout, g->checkpoint.parameters, options, SLOPES, pieces,
                                      &error),
                     SAFER_OK);
    return step;
}

/* The mean loss over the golden inputs; their gradient is then in the trainer. */
static double slope(sf_bert_step *step, const golden *g)
{
    size_t offsets[SLOPES + 1];
    int labels[SLOPES];
    for (size_t i = 0; i <= SLOPES; i++) offsets[i] = g->offsets[SLOPES_FROM + i] - g->offsets[SLOPES_FROM];
    for (int i = 0; i < SLOPES; i++) labels[i] = i % CLASSES;
    const sf_bert_batch batch = {g->ids + g->offsets[SLOPES_FROM], offsets, SLOPES};
    return sf_bert_step_gradient(step, &batch, labels, 1) / SLOPES;
}

static void gradients_agree(void **state)
{
    (void)state;
    if (table) printf("%-20s%12s\n", "gradients", "f32");
    for (size_t n = 0; n < name_count; n++) {
        golden g = {0};
        open_golden(&g, names[n]);
        const sf_bert_layout *l = &g.checkpoint.layout;
        float *first = NULL;
        for (int threads = 1; threads <= 3; threads += 2) {
            const sf_bert_options options = {.layers = SIZE_MAX, .type = SF_F32, .threads = threads, .seed = 1};
            sf_bert_step *step = step_of(&g, &options);
            assert_true(fabs(slope(step, &g) - json_real_value(member(&g, "loss"))) < 1e-5);
            (void)slope(step, &g); /* a second time: nothing is left of the first */
            const float *gradient = sf_bert_step_read(step);
            if (threads == 1) {
                const double off = slopes_off(&g, gradient);
                if (table) printf("%-20s%12.2e\n", g.name, off);
                first = sf_alloc(l->size, sizeof *first);
                memcpy(first, gradient, l->size * sizeof *first);
            } else {
                assert_memory_equal(first, gradient, l->size * sizeof *first);
            }
            sf_bert_step_free(step);
        }
        free(first);
        close_golden(&g);
    }
}

/* Trained in part: what is trained has the gradient that it has when all is, and the rest none. */
static void parts_are_trained(void **state)
{
    (void)state;
    for (size_t n = 0; n < name_count; n++) {
        golden g = {0};
        open_golden(&g, names[n]);
        const sf_bert_layout *l = &g.checkpoint.layout;
        float *all = NULL;
        const size_t layers[] = {SIZE_MAX, l->shape.layers, 1, 0};
        for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
            const sf_bert_options options = {.layers = layers[i], .type = SF_F32, .threads = 1, .seed = 1};
            sf_bert_step *step = step_of(&g, &options);
            (void)slope(step, &g);
            const float *gradient = sf_bert_step_read(step);
            if (!all) {
                all = sf_alloc(l->size, sizeof *all);
                memcpy(all, gradient, l->size * sizeof *all);
            }
            const size_t start = sf_bert_trained_of(l, &options).start;
            assert_memory_equal(all + start, gradient + start, (l->size - start) * sizeof *all);
            sf_bert_step_free(step);
        }
        free(all);
        close_golden(&g);
    }
}

/* Training in bf16 goes the same way, roughly. */
static void rough_gradients_agree(void **state)
{
    (void)state;
    for (size_t n = 0; n < name_count; n++) {
        golden g = {0};
        open_golden(&g, names[n]);
        const sf_bert_layout *l = &g.checkpoint.layout;
        float *fine = sf_alloc(l->size, sizeof *fine);
        for (int half = 0; half < 2; half++) {
            const sf_bert_options options = {
                .layers = SIZE_MAX, .type = half ? SF_BF16 : SF_F32, .threads = 1, .seed = 1};
            sf_bert_step *step = step_of(&g, &options);
            (void)slope(step, &g);
            if (!half) memcpy(fine, sf_bert_step_read(step), l->size * sizeof *fine);
            double along = 0, ours = 0, theirs = 0;
            for (size_t i = 0; half && i < l->size; i++) {
                const double x = (double)sf_bert_step_read(step)[i], y = (double)fine[i];
                along += x * y, ours += x * x, theirs += y * y;
            }
            if (half && !(along >= 0.98 * sqrt(ours * theirs)))
                fail_msg("%s: the gradient in bf16 has a cosine of %g", g.name, along / sqrt(ours * theirs));
            sf_bert_step_free(step);
        }
        free(fine);
        close_golden(&g);
    }
}

/* -------------------------------------------------------------------- memory */

static safer_status make_all(void *context, safer_error *error)
{
    safer_status status;
    const golden *g = context;
    const sf_bert_layout *from = &g->checkpoint.layout;
    sf_bert_layout l = {0};
    sf_bert_net *net = NULL;
    sf_bert_scratch *scratch = NULL;
    sf_bert_step *step = NULL;
    const sf_bert_options options = {.layers = SIZE_MAX, .type = SF_BF16, .threads = 1, .seed = 1};
    if (sf_bert_layout_make(&l, &from->shape)) return sf_fail_memory(error);
    SF_TRY(sf_bert_net_new(&net, &l, g->checkpoint.parameters, sf_arithmetic_fast(SF_BF16), 1, error));
    SF_TRY(sf_bert_scratch_new(&scratch, net, error));
    SF_TRY(sf_bert_step_new(&step, &l, g->checkpoint.parameters, &options, 2, 40, error));
done:
    sf_bert_step_free(step);
    sf_bert_scratch_free(scratch);
    sf_bert_net_free(net);
    sf_bert_layout_free(&l);
    return status;
}

/* Without memory: a clean error. */
static void memory_runs_out(void **state)
{
    (void)state;
    static const char *const some[] = {"albert", "mpnet", "deberta-v3", "modernbert"};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        golden g = {0};
        open_golden(&g, some[i]);
        check_every_allocation(make_all, &g);
        close_golden(&g);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) folder = argv[1], table = 1;
    if (list() || !name_count) {
        fprintf(stderr, "%s: no encoders\n", folder);
        return 1;
    }
    const struct CMUnitTest compared[] = {
        cmocka_unit_test(logits_agree),
        cmocka_unit_test(gradients_agree),
        cmocka_unit_test(texts_agree),
        cmocka_unit_test(batches_do_not_matter),
    };
    if (table) return cmocka_run_group_tests_name("encoders", compared, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_agree),
        cmocka_unit_test(gradients_agree),
        cmocka_unit_test(texts_agree),
        cmocka_unit_test(batches_do_not_matter),
        cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(files_keep_everything),
        cmocka_unit_test(settings_are_refused),
        cmocka_unit_test(settings_are_understood),
        cmocka_unit_test(padding_does_not_count),
        cmocka_unit_test(parts_are_trained),
        cmocka_unit_test(rough_gradients_agree),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests_name("encoders", tests, NULL, NULL);
}
