/* Parts of speech, by WordNet. */
#include "lexicon/parts.h"

#include "base/file.h"
#include "base/memory.h"

#include <string.h>

static const struct {
    sf_part part;
    const char *name;
    char letter; /* of an index file */
} files[] = {{SF_NOUN, "noun", 'n'}, {SF_VERB, "verb", 'v'}, {SF_ADJECTIVE, "adj", 'a'}, {SF_ADVERB, "adv", 'r'}};

enum { FILES = sizeof files / sizeof files[0], LONGEST = 64 }; /* letters of a word whose ending is taken off */

void sf_parts_free(sf_parts *parts)
{
    sf_words_free(&parts->forms);
    free(parts->of);
    *parts = (sf_parts){0};
}

static safer_status add(sf_parts *parts, sf_part part, const char *form, size_t length, safer_error *error)
{
    uint32_t id;
    const uint32_t before = parts->forms.count;
    safer_status status = sf_words_add(&parts->forms, form, length, &id, error);
    if (status != SAFER_OK) return status;
    if (sf_grow(&parts->of, &parts->capacity, (size_t)parts->forms.count, sizeof *parts->of))
        return sf_fail_memory(error);
    if (id == before) parts->of[id] = 0;
    parts->of[id] |= (unsigned char)part;
    return SAFER_OK;
}

/* The next field of a line, which blanks end. */
static size_t next_field(const char **field, const char **p, const char *end)
{
    while (*p < end && (**p == ' ' || **p == '\r')) ++*p;
    *field = *p;
    while (*p < end && **p != ' ' && **p != '\r') ++*p;
    return (size_t)(*p - *field);
}

static char letter_of(sf_part part)
{
    for (size_t i = 0; i < FILES; i++)
        if (files[i].part == part) return files[i].letter;
    return 0;
}

/* A line of an index file (wndb(5WN)) begins with a base form and the letter of its part; one of exceptions with a form
 * and its base. Underscores stand for spaces; lines that begin with a space are the licence. */
safer_status sf_parts_parse(sf_parts *parts, sf_part part, int index, const char *bytes, size_t length,
                            const char *name, safer_error *error)
{
    const char *p = bytes, *end = bytes + length;
    for (size_t line = 1; p < end; line++) {
        const char *eol = memchr(p, '\n', (size_t)(end - p)), *form, *second;
        if (!eol) eol = end;
        if (*p != ' ' && eol > p) {
            const size_t form_length = next_field(&form, &p, eol), second_length = next_field(&second, &p, eol);
            if (!form_length || !second_length || (index && (second_length != 1 || *second != letter_of(part))))
                return sf_fail(error, SAFER_INPUT, "%s, line %zu: not a line of WordNet's %s", name, line,
                               index ? "index" : "exceptions");
            safer_status status = add(parts, part, form, form_length, error);
            if (status != SAFER_OK) return status;
        }
        p = eol < end ? eol + 1 : end;
    }
    return SAFER_OK;
}

static safer_status read_file(sf_parts *parts, sf_digest_list *digests, size_t number, int index, const char *folder,
                              safer_error *error)
{
    sf_buffer path = {0};
    sf_file file = {0};
    safer_status status = SAFER_OK;
    if (sf_buffer_format(&path, index ? "%s/index.%s" : "%s/%s.exc", folder, files[number].name)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_file_read(&file, path.bytes, error));
    SF_TRY(sf_digest_list_add(digests, sf_base_name(path.bytes), file.bytes, file.length, error));
    SF_TRY(sf_parts_parse(parts, files[number].part, index, file.bytes, file.length, path.bytes, error));
done:
    sf_file_free(&file);
    sf_buffer_free(&path);
    return status;
}

safer_status sf_parts_read(sf_parts *out, const char *folder, safer_error *error)
{
    sf_parts parts = {0};
    sf_digest_list digests = {0};
    safer_status status = SAFER_OK;
    for (size_t i = 0; i < FILES; i++) {
        SF_TRY(read_file(&parts, &digests, i, 1, folder, error));
        SF_TRY(read_file(&parts, &digests, i, 0, folder, error));
    }
    SF_TRY(sf_digest_list_end(&parts.digest, &digests, error));
    *out = parts;
    parts = (sf_parts){0};
done:
    sf_digest_list_free(&digests);
    sf_parts_free(&parts);
    return status;
}

/* What is known of a form as it stands. */
static unsigned listed(const sf_parts *parts, const char *form, size_t length)
{
    const uint32_t id = sf_words_find(&parts->forms, form, length);
    return id == SF_NONE ? 0 : parts->of[id];
}

unsigned sf_parts_of(const sf_parts *parts, const char *word, size_t length)
{
    static const struct {
        sf_part part;
        const char *ending, *instead;
    } rules[] = {{SF_NOUN, "s", ""},        {SF_NOUN, "ses", "s"},     {SF_NOUN, "xes", "x"},
                 {SF_NOUN, "zes", "z"},     {SF_NOUN, "ches", "ch"},   {SF_NOUN, "shes", "sh"},
                 {SF_NOUN, "men", "man"},   {SF_NOUN, "ies", "y"},     {SF_VERB, "s", ""},
                 {SF_VERB, "ies", "y"},     {SF_VERB, "es", "e"},      {SF_VERB, "es", ""},
                 {SF_VERB, "ed", "e"},      {SF_VERB, "ed", ""},       {SF_VERB, "ing", "e"},
                 {SF_VERB, "ing", ""},      {SF_ADJECTIVE, "er", ""},  {SF_ADJECTIVE, "est", ""},
                 {SF_ADJECTIVE, "er", "e"}, {SF_ADJECTIVE, "est", "e"}};
    char form[LONGEST + 4];
    unsigned found = listed(parts, word, length);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && length <= LONGEST; i++) {
        const size_t ending = strlen(rules[i].ending), instead = strlen(rules[i].instead);
        if (length < ending || memcmp(word + length - ending, rules[i].ending, ending) != 0) continue;
        memcpy(form, word, length - ending);
        memcpy(form + length - ending, rules[i].instead, instead);
        found |= listed(parts, form, length - ending + instead) & (unsigned)rules[i].part;
    }
    return found ? found : (unsigned)SF_NO_PART;
}
