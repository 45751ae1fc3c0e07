/* Synonym tables (JSON, text, WordNet) and word lists. table.h has what they become, docs/lexicon.md the formats, and
 * "From files to a lexicon" in docs/design.md who reads them. */
#include "lexicon/table.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "lexicon/wordnet.h"
#include "text/unicode.h"
#include "text/word.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void sf_table_free(sf_table *table)
{
    sf_words_free(&table->words);
    free(table->pairs);
    *table = (sf_table){0};
}

/* Folds an entry and adds it. SF_NONE, counted, when it is not one word. */
static safer_status add_word(sf_table *table, sf_buffer *key, const char *bytes, size_t length, uint32_t *id,
                             safer_error *error)
{
    sf_buffer_clear(key);
    int folded = sf_word_fold(key, bytes, length);
    int one = folded ? 0 : sf_word_is_one(key->bytes ? key->bytes : "", key->length);
    if (folded == -1 || one < 0) return sf_fail_memory(error);
    *id = SF_NONE;
    if (one) return sf_words_add(&table->words, key->bytes, key->length, id, error);
    table->phrases++;
    return sf_dropped_add_entry(table->dropped, bytes, length, error);
}

static safer_status add_pair(sf_table *table, uint32_t a, uint32_t b, safer_error *error)
{
    if (a == SF_NONE || b == SF_NONE || a == b) return SAFER_OK;
    if (sf_grow(&table->pairs, &table->capacity, table->count + 1, sizeof *table->pairs)) return sf_fail_memory(error);
    table->pairs[table->count++] = (sf_pair){a, b, 0};
    return SAFER_OK;
}

/* ------------------------------------------------------------------- JSON */

static safer_status parse_json(sf_table *table, const char *bytes, size_t length, const char *name, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_buffer key = {0};
    json_error_t where;
    json_t *root, *list, *entry;
    const char *word;
    size_t index;
    status = sf_json_parse(&root, bytes, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    if (status == SAFER_MEMORY) return sf_fail_memory(error);
    if (!root)
        return sf_fail(error, SAFER_INPUT, "%s, line %d, column %d: %s", name, where.line, where.column, where.text);
    json_object_foreach(root, word, list)
    {
        uint32_t head, synonym;
        SF_TRY(add_word(table, &key, word, strlen(word), &head, error));
        if (!json_is_array(list)) {
            status = sf_fail(error, SAFER_INPUT, "%s: the value of \"%s\" is not a list of words", name, word);
            goto done;
        }
        json_array_foreach(list, index, entry)
        {
            if (!json_is_string(entry)) {
                status = sf_fail(error, SAFER_INPUT, "%s: item %zu of \"%s\" is not a word", name, index + 1, word);
                goto done;
            }
            SF_TRY(add_word(table, &key, json_string_value(entry), json_string_length(entry), &synonym, error));
            SF_TRY(add_pair(table, head, synonym, error));
        }
    }
done:
    json_decref(root);
    sf_buffer_free(&key);
    return status;
}

/* ------------------------------------------------------------------- text */

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* The next field of a line, or 0. */
static int next_field(const char **p, const char *end, const char **field, size_t *length)
{
    while (*p < end && is_blank(**p)) (*p)++;
    *field = *p;
    while (*p < end && !is_blank(**p)) (*p)++;
    *length = (size_t)(*p - *field);
    return *length > 0;
}

/* Calls `visit` for every line that is not blank. */
typedef safer_status (*line_visit)(void *context, const char *begin, const char *end, size_t line, safer_error *error);

static safer_status each_line(const char *bytes, size_t length, line_visit visit, void *context, safer_error *error)
{
    const char *p = bytes, *end = bytes + length;
    if (length >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) p += 3; /* byte-order mark */
    for (size_t line = 1; p < end; line++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p)), *stop = newline ? newline : end;
        const char *first = p;
        while (first < stop && is_blank(*first)) first++;
        if (first < stop) {
            safer_status status = visit(context, p, stop, line, error);
            if (status != SAFER_OK) return status;
        }
        p = newline ? newline + 1 : end;
    }
    return SAFER_OK;
}

safer_status sf_check_encoding(const char *bytes, size_t length, const char *name, safer_error *error)
{
    const int marked = length >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0);
    const int wide = length >= 4 && ((!bytes[0] && !bytes[2]) || (!bytes[1] && !bytes[3])); /* Latin letters */
    if (!marked && !wide) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s is not UTF-8 but UTF-16 or UTF-32, or no text: save it as UTF-8", name);
}

static int is_any(sf_span word, const char *const *names)
{
    for (; *names; names++)
        if (strlen(*names) == word.length && strncasecmp(word.bytes, *names, word.length) == 0) return 1;
    return 0;
}

safer_status sf_check_header(sf_span word, sf_span other, size_t line, const char *name, safer_error *error)
{
    static const char *const words[] = {"word", "words", "headword", "source", "term", "lemma", NULL};
    static const char *const others[] = {"synonym",   "synonyms",    "antonym",     "antonyms",     "target",
                                         "targets",   "neighbor",    "neighbors",   "neighbour",    "neighbours",
                                         "candidate", "candidates",  "replacement", "replacements", "substitute",
                                         "similar",   "substitutes", NULL};
    if (line != 1 || !is_any(word, words) || !is_any(other, others)) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s, line 1: a header (\"%.*s\", \"%.*s\"); remove the line", name,
                   (int)word.length, word.bytes, (int)other.length, other.bytes);
}

typedef struct text_job {
    sf_table *table;
    sf_buffer key;
    const char *name;
} text_job;

static safer_status text_line(void *context, const char *begin, const char *end, size_t line, safer_error *error)
{
    text_job *job = context;
    const char *tab = memchr(begin, '\t', (size_t)(end - begin)), *field;
    size_t length;
    uint32_t head, synonym;
    const char *head_end = tab ? tab : end, *first = head_end;
    while (head_end > begin && is_blank(head_end[-1])) head_end--;
    if (!tab && memchr(begin, ' ', (size_t)(head_end - begin)))
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: no tab between the word and its synonyms", job->name, line);
    if (sf_utf8_valid(begin, (size_t)(end - begin)) != (size_t)(end - begin))
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: not UTF-8", job->name, line);
    safer_status status = SAFER_OK;
    if (next_field(&first, end, &field, &length))
        status = sf_check_header((sf_span){begin, (size_t)(head_end - begin)}, (sf_span){field, length}, line,
                                 job->name, error);
    if (status == SAFER_OK) status = add_word(job->table, &job->key, begin, (size_t)(head_end - begin), &head, error);
    for (const char *p = tab ? tab : end; status == SAFER_OK && next_field(&p, end, &field, &length);) {
        status = add_word(job->table, &job->key, field, length, &synonym, error);
        if (status == SAFER_OK) status = add_pair(job->table, head, synonym, error);
    }
    return status;
}

safer_status sf_table_parse(sf_table *table, const char *bytes, size_t length, const char *name, safer_error *error)
{
    safer_status status = sf_check_encoding(bytes, length, name, error);
    if (status != SAFER_OK) return status;
    size_t i = length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0, start = i;
    while (i < length && (is_blank(bytes[i]) || bytes[i] == '\n')) i++;
    if (i == length) return sf_fail(error, SAFER_INPUT, "%s is empty", name);
    if (bytes[i] == '{') return parse_json(table, bytes + start, length - start, name, error);
    text_job job = {.table = table, .name = name};
    status = each_line(bytes, length, text_line, &job, error);
    sf_buffer_free(&job.key);
    return status;
}

safer_status sf_table_read(sf_table *table, const char *path, safer_error *error)
{
    sf_file file = {0};
    safer_status status = sf_file_read(&file, path, error);
    if (status == SAFER_OK) status = sf_table_parse(table, file.bytes, file.length, path, error);
    sf_file_free(&file);
    return status;
}

/* ---------------------------------------------------------------- WordNet */

/* A line of a data file (wndb(5WN)): offset, file number, type, the number of words in
 * hexadecimal, then word and sense number alternately. Underscores stand for spaces;
 * adjectives may carry a marker such as "(p)". Lines that begin with a space are the
 * licence. */
static safer_status wordnet_line(void *context, const char *begin, const char *end, size_t line, safer_error *error)
{
    text_job *job = context;
    const char *p = begin, *field;
    size_t length, count = 0;
    safer_status status = SAFER_OK;
    uint32_t ids[256];
    const char *type = begin;
    sf_span offset = {begin, 0};
    if (*begin == ' ') return SAFER_OK;
    for (int i = 0; i < 4; i++) {
        if (!next_field(&p, end, &field, &length)) goto malformed;
        if (i == 0) offset = (sf_span){field, length};
        if (i == 2) type = field;
    }
    if (length != 2) goto malformed;
    for (size_t i = 0; i < length; i++) {
        int digit = field[i] >= '0' && field[i] <= '9'   ? field[i] - '0'
                    : field[i] >= 'a' && field[i] <= 'f' ? field[i] - 'a' + 10
                                                         : -1;
        if (digit < 0) goto malformed;
        count = count * 16 + (size_t)digit;
    }
    if (count == 0) goto malformed;
    for (size_t i = 0; i < count && status == SAFER_OK; i++) {
        const char *word, *sense;
        size_t word_length, sense_length;
        if (!next_field(&p, end, &word, &word_length) || !next_field(&p, end, &sense, &sense_length)) goto malformed;
        const char *marker = memchr(word, '(', word_length);
        if (marker && marker > word) word_length = (size_t)(marker - word);
        status = add_word(job->table, &job->key, word, word_length, &ids[i], error);
    }
    for (size_t i = 0; i < count && status == SAFER_OK; i++)
        for (size_t j = 0; j < count && status == SAFER_OK; j++)
            if (i != j) status = add_pair(job->table, ids[i], ids[j], error);
    if (status == SAFER_OK && job->table->wordnet)
        status = sf_wordnet_add(job->table->wordnet, offset, *type, ids, count, p, end, error);
    if (status != SAFER_INPUT) return status;
malformed:
    return sf_fail(error, SAFER_INPUT, "%s, line %zu: not a WordNet synset", job->name, line);
}

safer_status sf_wordnet_parse(sf_table *table, const char *bytes, size_t length, const char *name, safer_error *error)
{
    text_job job = {.table = table, .name = name};
    safer_status status = each_line(bytes, length, wordnet_line, &job, error);
    sf_buffer_free(&job.key);
    return status;
}

safer_status sf_wordnet_read(sf_table *table, const char *folder, safer_error *error)
{
    static const char *const parts[] = {"noun", "verb", "adj", "adv"};
    safer_status status = SAFER_OK;
    sf_buffer path = {0};
    for (int i = 0; i < 4 && status == SAFER_OK; i++) {
        sf_file file = {0};
        sf_buffer_clear(&path);
        if (sf_buffer_format(&path, "%s/data.%s", folder, parts[i])) {
            status = sf_fail_memory(error);
            break;
        }
        status = sf_file_read(&file, path.bytes, error);
        if (status == SAFER_OK) status = sf_check_encoding(file.bytes, file.length, path.bytes, error);
        if (status == SAFER_OK) status = sf_wordnet_parse(table, file.bytes, file.length, path.bytes, error);
        sf_file_free(&file);
    }
    if (status == SAFER_OK && !table->words.count && !table->phrases)
        status = sf_fail(error, SAFER_INPUT, "%s: data.noun, data.verb, data.adj and data.adv hold no words", folder);
    sf_buffer_free(&path);
    return status;
}

/* ------------------------------------------------------------------ lists */

typedef struct list_job {
    sf_words *words;
    sf_buffer key;
} list_job;

static safer_status list_line(void *context, const char *begin, const char *end, size_t line, safer_error *error)
{
    list_job *job = context;
    uint32_t id;
    (void)line;
    while (end > begin && is_blank(end[-1])) end--;
    while (begin < end && is_blank(*begin)) begin++;
    sf_buffer_clear(&job->key);
    int folded = sf_word_fold(&job->key, begin, (size_t)(end - begin));
    if (folded == -1) return sf_fail_memory(error);
    if (folded == -2) return SAFER_OK; /* no word of any text; such lists may be cut anywhere */
    return sf_words_add(job->words, job->key.bytes, job->key.length, &id, error);
}

safer_status sf_word_list_parse(sf_words *out, const char *bytes, size_t length, const char *name, safer_error *error)
{
    list_job job = {.words = out};
    safer_status status = sf_check_encoding(bytes, length, name, error);
    if (status == SAFER_OK) status = each_line(bytes, length, list_line, &job, error);
    if (status == SAFER_OK && out->count == 0) status = sf_fail(error, SAFER_INPUT, "%s holds no words", name);
    sf_buffer_free(&job.key);
    return status;
}

safer_status sf_word_list_read(sf_words *out, const char *path, safer_error *error)
{
    sf_file file = {0};
    safer_status status = sf_file_read(&file, path, error);
    if (status == SAFER_OK) status = sf_word_list_parse(out, file.bytes, file.length, path, error);
    sf_file_free(&file);
    return status;
}

typedef struct edits_job {
    sf_edits *edits;
    const sf_words *words;
    const char *name;
    const sf_fold *fold;
    int pairs_allowed;
    sf_folder folder;
    sf_buffer key;
} edits_job;

static safer_status edits_line(void *context, const char *begin, const char *end, size_t line, safer_error *error)
{
    edits_job *job = context;
    uint32_t ids[2] = {SF_NONE, SF_NONE};
    const char *p = begin, *field;
    size_t length, fields = 0;
    while (next_field(&p, end, &field, &length)) {
        if (fields < 2) {
            const char *word = field;
            size_t word_length = length;
            if (job->fold) {
                if (sf_folder_apply(&job->folder, job->fold, field, length)) return sf_fail_memory(error);
                word = job->folder.text.bytes;
                word_length = job->folder.text.length;
            }
            sf_buffer_clear(&job->key);
            int folded = sf_word_fold(&job->key, word, word_length);
            if (folded == -1) return sf_fail_memory(error);
            if (folded == 0 && word_length) ids[fields] = sf_words_find(job->words, job->key.bytes, job->key.length);
        }
        fields++;
    }
    if (fields > 2 || (fields == 2 && !job->pairs_allowed))
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: %zu word%s where %s expected", job->name, line, fields,
                       fields == 1 ? "" : "s", job->pairs_allowed ? "one or two are" : "one is");
    if (ids[0] == SF_NONE || (fields == 2 && ids[1] == SF_NONE)) {
        job->edits->unknown++;
    } else if (fields == 1) {
        job->edits->single[ids[0]] = 1;
    } else {
        sf_edits *e = job->edits;
        if (sf_grow(&e->pairs, &e->capacity, e->count + 2, sizeof *e->pairs)) return sf_fail_memory(error);
        e->pairs[e->count++] = (sf_pair){ids[0], ids[1], 0};
        e->pairs[e->count++] = (sf_pair){ids[1], ids[0], 0};
    }
    return SAFER_OK;
}

safer_status sf_edits_parse(sf_edits *out, const char *bytes, size_t length, const char *name, const sf_words *words,
                            const sf_fold *fold, int pairs_allowed, safer_error *error)
{
    sf_edits edits = {0};
    edits_job job = {.edits = &edits, .words = words, .name = name, .fold = fold, .pairs_allowed = pairs_allowed};
    safer_status status = sf_check_encoding(bytes, length, name, error);
    if (status != SAFER_OK) return status;
    edits.single = sf_calloc(words->count, 1);
    status = edits.single ? each_line(bytes, length, edits_line, &job, error) : sf_fail_memory(error);
    sf_buffer_free(&job.key);
    sf_folder_free(&job.folder);
    if (status == SAFER_OK)
        *out = edits;
    else
        sf_edits_free(&edits);
    return status;
}

safer_status sf_edits_read(sf_edits *out, const char *path, const sf_words *words, const sf_fold *fold,
                           int pairs_allowed, safer_error *error)
{
    sf_file file = {0};
    safer_status status = sf_file_read(&file, path, error);
    if (status == SAFER_OK)
        status = sf_edits_parse(out, file.bytes, file.length, path, words, fold, pairs_allowed, error);
    sf_file_free(&file);
    return status;
}

void sf_edits_free(sf_edits *edits)
{
    free(edits->single);
    free(edits->pairs);
    *edits = (sf_edits){0};
}
