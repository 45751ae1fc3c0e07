/* A model card that the user has. */
#include "report/card.h"

#include "base/json.h"
#include "text/unicode.h"

#include <string.h>

/* ----------------------------------------------------------------- Markdown */

/* The next line of a text: from *at on, without its end. 0 behind the last. */
static int next_line(const char **at, const char *end, const char **line, size_t *length)
{
    if (*at >= end) return 0;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    *line = *at;
    *length = (size_t)((stop ? stop : end) - *at);
    *at = stop ? stop + 1 : end;
    while (*length && ((*line)[*length - 1] == '\r' || (*line)[*length - 1] == ' ')) --*length;
    return 1;
}

static int starts_with(const char *line, size_t length, const char *prefix)
{
    return length >= strlen(prefix) && memcmp(line, prefix, strlen(prefix)) == 0;
}

/* What is read of the YAML and of the headings. */
typedef struct markdown {
    json_t *card; /* an object with `tags` */
    int in_tags;  /* the lines before opened the list of tags */
    int failed;   /* memory ran out */
} markdown;

/* Takes a scalar of YAML as the member `name`, or (NULL) as a tag: without blanks around it, its quotes, or a
 * comment behind it. Nothing is taken where nothing is left. */
static void take(markdown *m, const char *name, const char *from, size_t length)
{
    while (length && *from == ' ') from++, length--;
    const char *quote = length >= 2 && (*from == '"' || *from == '\'') ? memchr(from + 1, *from, length - 1) : NULL;
    if (quote) {
        from++;
        length = (size_t)(quote - from);
    } else {
        for (size_t i = 0; i < length; i++)
            if (from[i] == '#' && (i == 0 || from[i - 1] == ' ')) length = i;
        while (length && from[length - 1] == ' ') length--;
    }
    if (!length) return;
    json_t *value = json_stringn(from, length), *tags = json_object_get(m->card, "tags");
    if (name ? json_object_set_new(m->card, name, value) : json_array_append_new(tags, value)) m->failed = 1;
}

/* "[a, b]" */
static void take_inline(markdown *m, const char *from, size_t length)
{
    const char *end = memchr(from, ']', length), *p = from + 1;
    if (!end) end = from + length;
    while (p < end) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        if (!comma) comma = end;
        take(m, NULL, p, (size_t)(comma - p));
        p = comma + 1;
    }
}

/* A line of the YAML. */
static void take_line(markdown *m, const char *line, size_t length)
{
    static const char *const scalars[] = {"name:", "version:", "license:", "url:"};
    static const char *const names[] = {"name", "version", "license", "url"};
    size_t blanks = 0;
    while (blanks < length && line[blanks] == ' ') blanks++;
    if (starts_with(line + blanks, length - blanks, "- ")) {
        if (m->in_tags) take(m, NULL, line + blanks + 2, length - blanks - 2);
        return;
    }
    if (blanks) return;
    m->in_tags = starts_with(line, length, "tags:");
    if (starts_with(line, length, "tags: [")) take_inline(m, line + 6, length - 6);
    for (size_t i = 0; i < 4; i++) {
        const size_t key = strlen(scalars[i]);
        if (starts_with(line, length, scalars[i])) take(m, names[i], line + key, length - key);
    }
}

/* The first heading of the text behind the YAML. */
static void take_heading(markdown *m, const char *at, const char *end)
{
    static const char *const usual = "Model Card for ";
    const char *line;
    size_t length;
    while (next_line(&at, end, &line, &length)) {
        if (!starts_with(line, length, "# ")) continue;
        line += 2, length -= 2;
        if (starts_with(line, length, usual)) line += strlen(usual), length -= strlen(usual);
        take(m, "name", line, length);
        return;
    }
}

static safer_status read_markdown(json_t **out, const char *bytes, size_t length, const char *path, safer_error *error)
{
    const char *at = bytes, *end = bytes + length, *line;
    size_t width;
    markdown m = {.card = json_pack("{s:[]}", "tags")};
    if (sf_utf8_valid(bytes, length) < length) {
        json_decref(m.card);
        return sf_fail(error, SAFER_INPUT, "%s: not UTF-8", path);
    }
    if (next_line(&at, end, &line, &width) && width == 3 && memcmp(line, "---", 3) == 0) {
        while (next_line(&at, end, &line, &width) && !(width == 3 && memcmp(line, "---", 3) == 0))
            take_line(&m, line, width);
    } else {
        at = bytes;
    }
    if (!json_object_get(m.card, "name")) take_heading(&m, at, end);
    *out = m.card;
    return m.card && !m.failed ? SAFER_OK : sf_fail_memory(error);
}

static safer_status read_json(json_t **out, const char *bytes, size_t length, const char *path, safer_error *error)
{
    json_error_t fault;
    const safer_status status = sf_json_parse(out, bytes, length, JSON_REJECT_DUPLICATES, &fault);
    if (status == SAFER_MEMORY) return sf_fail_memory(error);
    return *out ? SAFER_OK : sf_fail(error, SAFER_INPUT, "%s, line %d: %s", path, fault.line, fault.text);
}

/* ------------------------------------------------------------------ reading */

/* An address of the web that may stand in a document as it is. */
static int is_address(const char *url)
{
    size_t length = strcspn(url, " <>\"{}|\\^`");
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)url[i] <= 0x20 || (unsigned char)url[i] >= 0x7f) return 0;
    return url[length] == '\0' && (strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0);
}

static safer_status take_strings(sf_card *card, const char *path, safer_error *error)
{
    const struct {
        const char *name;
        const char **to;
    } members[] = {
        {"name", &card->name}, {"version", &card->version}, {"license", &card->license}, {"url", &card->url}};
    for (size_t i = 0; i < 4; i++) {
        const json_t *value = json_object_get(card->own, members[i].name);
        *members[i].to = json_string_value(value);
        if (value && !*members[i].to)
            return sf_fail(error, SAFER_INPUT, "%s: \"%s\" is not a string", path, members[i].name);
    }
    if (card->url && !is_address(card->url))
        return sf_fail(error, SAFER_INPUT, "%s: \"url\" is not an address of the web: %s", path, card->url);
    return SAFER_OK;
}

static safer_status take_tags(sf_card *card, const char *path, safer_error *error)
{
    const json_t *tags = json_object_get(card->own, "tags"), *tag;
    size_t i;
    if (tags && !json_is_array(tags)) return sf_fail(error, SAFER_INPUT, "%s: \"tags\" is not a list", path);
    json_array_foreach(tags, i, tag) if (!json_is_string(tag)) return sf_fail(error, SAFER_INPUT,
                                                                              "%s: a tag is not a string", path);
    card->tags = tags;
    return SAFER_OK;
}

safer_status sf_card_parse(sf_card *out, const char *bytes, size_t length, const char *path, safer_error *error)
{
    safer_status status;
    size_t blanks = 0;
    while (blanks < length && strchr(" \t\r\n", bytes[blanks])) blanks++;
    const int is_json = blanks < length && bytes[blanks] == '{';
    SF_TRY((is_json ? read_json : read_markdown)(&out->own, bytes, length, path, error));
    SF_TRY(take_strings(out, path, error));
    SF_TRY(take_tags(out, path, error));
done:
    return status;
}

void sf_card_free(sf_card *card)
{
    json_decref(card->own);
    *card = (sf_card){0};
}
