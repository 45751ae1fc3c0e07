/* The name of a file. */
#include "text/name.h"

#include "base/file.h"
#include "base/memory.h"
#include "text/unicode.h"

#include <string.h>

/* The last part of path[0..length), without the slashes behind it. */
static int add_last_part(sf_buffer *out, const char *path, size_t length)
{
    while (length > 1 && path[length - 1] == '/') length--;
    size_t begin = length;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    if (begin == length) begin = 0; /* "/" has no other name */
    return sf_utf8_repair(out, path + begin, length - begin);
}

static int is_control(char byte) { return (unsigned char)byte < ' ' || byte == 127; }

char *sf_path_name(const char *path)
{
    sf_buffer raw = {0}, name = {0};
    const size_t archive = sf_archive_split(path), length = strlen(path);
    int failed = add_last_part(&raw, path, archive ? archive : length);
    if (archive) {
        const char *member = path + archive + 1;
        failed = failed || sf_buffer_add_byte(&raw, ':') || add_last_part(&raw, member, strlen(member));
    }
    for (size_t i = 0; i < raw.length && !failed; i++)
        failed = is_control(raw.bytes[i]) ? sf_buffer_add(&name, "\xef\xbf\xbd", 3)
                                          : sf_buffer_add_byte(&name, raw.bytes[i]);
    failed = failed || sf_buffer_add_string(&name, "");
    sf_buffer_free(&raw);
    if (failed) sf_buffer_free(&name);
    return name.bytes;
}
