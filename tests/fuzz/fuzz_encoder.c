/* Folders of HuggingFace: the input holds the files one after the other, each behind a line "== NAME". What is
 * opened answers; its tokenizer has no number out of range. */
#define _GNU_SOURCE
#include "fuzz_files.h"

#include "model/model.h"
#include "text/wordpiece.h"

static const char *const names[] = {"config.json",
                                    "tokenizer.json",
                                    "tokenizer_config.json",
                                    "vocab.txt",
                                    "special_tokens_map.json",
                                    "added_tokens.json",
                                    "model.safetensors.index.json",
                                    "one.safetensors",
                                    "two.safetensors",
                                    "model.safetensors",
                                    "model.onnx",
                                    "pytorch_model.bin",
                                    "pytorch_model.bin.index.json",
                                    "one.bin",
                                    "two.bin"};
enum { NAMES = sizeof names / sizeof names[0] };

static const char *next_mark(const char *p, const char *end)
{
    for (; (p = memmem(p, (size_t)(end - p), "== ", 3)); p++)
        if (p[-1] == '\n') return p;
    return end;
}

/* Writes what lies behind its mark; names that are not known are left out. */
static void write_files(const char *bytes, size_t size)
{
    const char *end = bytes + size, *p = size > 3 && memcmp(bytes, "== ", 3) == 0 ? bytes : end;
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        if (!newline) break;
        const char *begin = newline + 1, *stop = begin < end ? next_mark(begin, end) : end;
        for (int i = 0; i < NAMES; i++)
            if ((size_t)(newline - p) == strlen(names[i]) + 3 && memcmp(p + 3, names[i], strlen(names[i])) == 0)
                fuzz_write(names[i], begin, (size_t)(stop - begin));
        p = stop;
    }
}

static void use(const safer_model *model)
{
    static const char text[] = "A good film.\nI liked it \xc3\xa9 \xff [SEP] the film";
    const sf_span span = {text, sizeof text - 1};
    void *scratch = NULL;
    int label;
    if (model->class->scratch_new) require(model->class->scratch_new(model, &scratch, NULL) == SAFER_OK);
    require(sf_model_classify(model, &span, 1, &label, NULL, scratch, NULL) == SAFER_OK);
    require(label >= 0 && (size_t)label < model->classes);
    if (scratch) model->class->scratch_free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    safer_model *model = NULL;
    sf_wordpiece *wordpiece = NULL;
    safer_error error = {0};
    fuzz_path("");
    fuzz_empty();
    char *bytes = fuzz_copy(data, size);
    write_files(bytes, size);
    free(bytes);
    if (safer_model_open(&model, fuzz_folder, &error) == SAFER_OK)
        use(model);
    else
        require(error.message[0] && error.status != SAFER_MEMORY && !model);
    if (sf_wordpiece_open(&wordpiece, fuzz_folder, NULL, &error) == SAFER_OK)
        require(sf_wordpiece_special(wordpiece).cls < sf_wordpiece_size(wordpiece));
    else
        require(error.message[0] && error.status != SAFER_MEMORY && !wordpiece);
    sf_wordpiece_free(wordpiece);
    safer_model_free(model);
    return 0;
}
