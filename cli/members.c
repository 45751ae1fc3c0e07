/* Messages of the library in the words of the command line.
 *
 * The library writes the members of its structs of options between backquotes (include/safer/base.h): `max_texts`.
 * Here they become what was typed: --max-texts. An option has the name of its member, with dashes, but for those
 * below. safer compare reads options from a file, where they are keys: "max-texts".
 * tests/test_messages.py holds every message of the library against the tables of options. */
#define _GNU_SOURCE
#include "verbs.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *member, *option;
} others[] = {
    {"attacks", "attack"},
    {"bert.layers", "train-layers"},
    {"bert.truncation_side", "truncation-side"},
    {"charcnn.size", "size"},
    {"context.size", "context"},
    {"crew", "mpi"},
    {"crew.timeout", "mpi-timeout"},
    {"deletion", "delete"},
    {"lexicons", "lexicon"},
    {"ngram.order", "ngrams"},
    {"precision", "arithmetic"}, /* of a model; in training it has its own name */
    {"remote.batch", "request-texts"},
    {"remote.token", "token-env"},
    {"strip_breaks", "strip-br"},
    {"token", "auth-env"}, /* or auth-file: a token comes by one of the two */
    {"train", "data"},
};

static const cli_verb *running;

void cli_message_for(const cli_verb *verb) { running = verb; }

static int has_option(const cli_verb *verb, const char *name)
{
    cli_options options = {0};
    void *request = cli_list_options(&options, verb);
    cli_common_options(&options);
    const int found = cli_option_named(&options, name, strlen(name)) != NULL;
    free(request);
    return found;
}

static int any_has_option(const char *name)
{
    for (size_t g = 0; g < cli_group_count; g++)
        for (size_t i = 0; cli_groups[g].verbs[i]; i++)
            if (has_option(cli_groups[g].verbs[i], name)) return 1;
    return 0;
}

/* The option of a member, of which the verb's own is preferred; NULL: there is none. */
static const char *option_of(char own[64], const char *member, size_t length)
{
    const char *other = NULL;
    if (length == 0 || length >= 64) return NULL;
    for (size_t i = 0; i < length; i++) own[i] = member[i] == '_' ? '-' : member[i];
    own[length] = '\0';
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strlen(others[i].member) == length && strncmp(others[i].member, member, length) == 0)
            other = others[i].option;
    if (other && running && has_option(running, other)) return other;
    if (running && has_option(running, own)) return own;
    if (other && any_has_option(other)) return other;
    return any_has_option(own) ? own : NULL;
}

/* Appends to a text of `size` bytes; what does not fit is cut. */
static void append(char *out, size_t size, const char *bytes, size_t length)
{
    const size_t used = strlen(out), room = size - 1 - used;
    if (length > room) length = room;
    memcpy(out + used, bytes, length);
    out[used + length] = '\0';
}

/* "cancelled during: certifying" of the library; it does not know who cancelled, nor what is kept. */
static void append_cancelled(char *out, size_t size, const char *message)
{
    static const char cancelled[] = "cancelled";
    const size_t known = strncmp(message, cancelled, sizeof cancelled - 1) == 0 ? sizeof cancelled - 1 : 0;
    if (cli_interrupted())
        snprintf(out, size, "cancelled by %s%s%s", cli_interrupt_name(), known ? "" : ": ", message + known);
    else /* another process of many was */
        snprintf(out, size, "%s", message);
    if (cli_interrupt_advice()) {
        append(out, size, "; ", 2);
        append(out, size, cli_interrupt_advice(), strlen(cli_interrupt_advice()));
    }
}

const char *cli_message(const safer_error *error)
{
    static char out[1200];
    char own[64];
    const char *rest = error->message, *begin, *end;
    const int keys = running == &cli_compare;
    out[0] = '\0';
    if (error->status == SAFER_CANCELLED) {
        append_cancelled(out, sizeof out, error->message);
        return out;
    }
    while ((begin = strchr(rest, '`')) && (end = strchr(begin + 1, '`'))) {
        const char *option = option_of(own, begin + 1, (size_t)(end - begin - 1));
        append(out, sizeof out, rest, (size_t)(begin - rest));
        if (!option) { /* foreign: the second may begin a name */
            append(out, sizeof out, begin, (size_t)(end - begin));
            rest = end;
            continue;
        }
        append(out, sizeof out, keys ? "\"" : "--", keys ? 1 : 2);
        append(out, sizeof out, option, strlen(option));
        if (keys) append(out, sizeof out, "\"", 1);
        if (strcmp(option, "auth-env") == 0) append(out, sizeof out, " or --auth-file", 15);
        rest = end + 1;
    }
    append(out, sizeof out, rest, strlen(rest));
    return out;
}
