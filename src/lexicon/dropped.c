/* The list of dropped words: kept while a lexicon is made, written at the end. */
#include "lexicon/dropped.h"

#include "base/buffer.h"
#include "base/file.h"
#include "text/unicode.h"
#include "text/word.h"

#include <string.h>

/* Appends a word with tab, line feed, carriage return and backslash escaped, and without a NUL. 0, or -1 when memory
 * is out. */
static int escape(sf_buffer *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        static const char plain[] = "\t\n\r\\", letters[] = "tnr\\";
        const char *at = bytes[i] ? strchr(plain, bytes[i]) : NULL;
        const int failed = at         ? sf_buffer_add_byte(out, '\\') || sf_buffer_add_byte(out, letters[at - plain])
                           : bytes[i] ? sf_buffer_add_byte(out, bytes[i])
                                      : sf_buffer_add(out, "\xef\xbf\xbd", 3);
        if (failed) return -1;
    }
    return 0;
}

safer_status sf_dropped_add(sf_dropped *dropped, const char *word, size_t length, const char *reason,
                            safer_error *error)
{
    sf_buffer valid = {0}, line = {0};
    uint32_t id;
    if (!dropped || !dropped->wanted) return SAFER_OK;
    safer_status status = SAFER_MEMORY;
    if (sf_utf8_repair(&valid, word, length) == 0 && escape(&line, valid.bytes, valid.length) == 0 &&
        sf_buffer_add_byte(&line, '\t') == 0 && sf_buffer_add(&line, reason, strlen(reason)) == 0)
        status = sf_words_add(&dropped->lines, line.bytes, line.length, &id, error);
    else
        status = sf_fail_memory(error);
    sf_buffer_free(&valid);
    sf_buffer_free(&line);
    return status;
}

safer_status sf_dropped_add_entry(sf_dropped *dropped, const char *entry, size_t length, safer_error *error)
{
    if (!dropped || !dropped->wanted) return SAFER_OK;
    if (sf_utf8_valid(entry, length) != length) return sf_dropped_add(dropped, entry, length, "not UTF-8", error);
    sf_word_reader reader = {0};
    sf_word word;
    int words = 0, next;
    sf_word_reader_start(&reader, entry, length);
    while ((next = sf_word_reader_next(&reader, &word)) > 0) words++;
    sf_word_reader_free(&reader);
    if (next < 0) return sf_fail_memory(error);
    return sf_dropped_add(dropped, entry, length, words > 1 ? "phrase" : "no word", error);
}

safer_status sf_dropped_write(const sf_dropped *dropped, const char *path, safer_error *error)
{
    sf_buffer out = {0};
    safer_status status = SAFER_OK;
    for (uint32_t i = 0; i < dropped->lines.count && status == SAFER_OK; i++)
        if (sf_buffer_add(&out, sf_words_string(&dropped->lines, i), sf_words_length(&dropped->lines, i)) ||
            sf_buffer_add_byte(&out, '\n'))
            status = sf_fail_memory(error);
    if (status == SAFER_OK) status = sf_file_write(path, out.length ? out.bytes : "", out.length, error);
    sf_buffer_free(&out);
    return status;
}

void sf_dropped_free(sf_dropped *dropped)
{
    sf_words_free(&dropped->lines);
    *dropped = (sf_dropped){0};
}
