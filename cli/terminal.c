/* Messages and the progress line. What comes from elsewhere (arguments, files, services) is made harmless here, and
 * here alone, before a terminal sees it: SECURITY.md says what is promised. */
#define _GNU_SOURCE
#include "crew.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The length of a text's first character in UTF-8; 0 for a byte that belongs to none. */
static size_t character_length(const unsigned char *c)
{
    const unsigned char least = c[0] == 0xe0 ? 0xa0 : c[0] == 0xf0 ? 0x90 : 0x80; /* no longer form than needed, */
    const unsigned char most = c[0] == 0xed ? 0x9f : c[0] == 0xf4 ? 0x8f : 0xbf;  /* no surrogates, to U+10FFFF */
    if (c[0] < 0x80) return 1;
    if (c[0] < 0xc2 || c[0] > 0xf4 || c[1] < least || c[1] > most) return 0;
    if (c[0] < 0xe0) return 2;
    if ((c[2] & 0xc0) != 0x80) return 0;
    if (c[0] < 0xf0) return 3;
    return (c[3] & 0xc0) == 0x80 ? 4 : 0;
}

/* Whether a character would end the line or command a terminal, or turn the order of what is read: U+0000..1F, 7F..9F,
 * 61C, 200E..F, 2028..E and 2066..9. */
static int is_command(const unsigned char *c)
{
    if (c[0] < 0x20 || c[0] == 0x7f) return 1;
    if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f) return 1;
    if (c[0] == 0xd8 && c[1] == 0x9c) return 1;
    if (c[0] != 0xe2) return 0;
    if (c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae))) return 1;
    return c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9;
}

/* The bytes of a text's first character, and what is shown for them: `length` bytes at the result. A byte that is no
 * UTF-8 is not shown either: the terminal may take 0x80..9f for commands. */
static const char *shown(const char *text, size_t *taken, size_t *length)
{
    const unsigned char *c = (const unsigned char *)text;
    *length = character_length(c);
    *taken = *length ? *length : 1;
    if (*length && !is_command(c)) return text;
    *length = 1;
    return "?";
}

void cli_put(const char *text)
{
    for (size_t taken, length; *text; text += taken) {
        const char *put = shown(text, &taken, &length);
        fwrite(put, 1, length, stdout);
    }
}

void cli_clean(char *text)
{
    char *out = text;
    for (size_t taken, length; *text; text += taken, out += length) {
        const char *put = shown(text, &taken, &length);
        memmove(out, put, length);
    }
    *out = '\0';
}

/* The '@' that ends a user and password at the beginning of an address, or NULL. After a colon comes a port or a
 * password; a password is no number, and may hold what else ends a host. */
static char *users_end(char *at)
{
    const size_t word = strcspn(at, " \"'<>"), host = strcspn(at, "/\\?# \"'<>");
    char *end = memrchr(at, '@', host), *colon = *at == '[' ? NULL : memchr(at, ':', host);
    if (!end && colon && colon + 1 + strspn(colon + 1, "0123456789") < at + host) end = memrchr(at, '@', word);
    return end;
}

/* The length of what begins an address, well written or not: //, :/, http: or https:, and more slashes. 0: none. */
static size_t address_begin(const char *at)
{
    const size_t length = strncmp(at, "//", 2) == 0 || strncmp(at, ":/", 2) == 0 ? 2
                          : strncasecmp(at, "http:", 5) == 0                     ? 5
                          : strncasecmp(at, "https:", 6) == 0                    ? 6
                                                                                 : 0;
    return length ? length + strspn(at + length, "/\\") : 0;
}

/* An argument that was meant as an address may hold a password: what stands before the host is not shown. (The library
 * does the same in its own messages.) */
static void hide_users(char *text)
{
    for (char *at = text; *at;) {
        const size_t begin = address_begin(at);
        at += begin ? begin : 1;
        char *end = begin ? users_end(at) : NULL;
        if (!end) continue;
        const size_t length = (size_t)(end - at), stars = length < 3 ? length : 3;
        memset(at, '*', stars);
        memmove(at + stars, end, strlen(end) + 1);
    }
}

/* "safer VERB: message" on stderr. Arguments may hold any bytes: the line stays one. */
static void print_line(const char *verb, const char *format, va_list arguments)
{
    char message[1200];
    vsnprintf(message, sizeof message, format, arguments);
    cli_clean(message);
    hide_users(message);
    cli_progress_clear();
    fprintf(stderr, "safer%s%s: %s", verb ? " " : "", verb ? verb : "", message);
}

void cli_say(const char *format, ...)
{
    va_list arguments;
    if (cli_settings()->quiet || cli_crew_helps()) return;
    va_start(arguments, format);
    print_line(NULL, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

void cli_complain(const char *format, ...)
{
    va_list arguments;
    if (cli_crew_helps()) return;
    va_start(arguments, format);
    print_line(NULL, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

void cli_misuse(const cli_verb *verb, const char *format, ...)
{
    va_list arguments;
    if (cli_crew_helps()) { /* rank 0, with the same command line, says it too */
        safer_error error = {.status = SAFER_INVALID};
        va_start(arguments, format);
        vsnprintf(error.message, sizeof error.message, format, arguments);
        va_end(arguments);
        exit(cli_fail(&error));
    }
    cli_crew_let_first();
    va_start(arguments, format);
    print_line(verb ? verb->name : NULL, format, arguments);
    va_end(arguments);
    fprintf(stderr, " (see safer %s%s--help)\n", verb ? verb->name : "", verb ? " " : "");
    exit(CLI_USAGE);
}

void cli_no_memory(void)
{
    cli_complain("out of memory");
    exit(CLI_SYSTEM);
}

int cli_finish(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    cli_complain("cannot write the output: %s", strerror(errno));
    return CLI_SYSTEM;
}

safer_status cli_error(safer_error *error, safer_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    error->status = status;
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return status;
}

int cli_code(safer_status status)
{
    switch (status) {
    case SAFER_OK: return CLI_DONE;
    case SAFER_INVALID: return CLI_USAGE;
    case SAFER_INPUT: return CLI_INPUT;
    case SAFER_CANCELLED: return CLI_INTERRUPTED;
    case SAFER_SYSTEM:
    case SAFER_CALLBACK:
    case SAFER_MEMORY: return CLI_SYSTEM;
    }
    return CLI_SYSTEM;
}

int cli_fail(const safer_error *error)
{
    if (cli_crew_told(error)) return cli_crew_helps() ? CLI_DONE : cli_code(error->status);
    cli_crew_let_first();
    cli_complain("%s", cli_message(error));
    return cli_code(error->status);
}

/* --------------------------------------------------------------- progress */

typedef struct line {
    const char *stage;
    double start, said;
    uint64_t first; /* done when the stage began: a resumed run has a head start */
    int shown;
} line;

enum { LOG_SECONDS = 60 }; /* between lines where stderr is no terminal */

static line current;

double cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void format_time(char out[16], double seconds)
{
    if (seconds < 100)
        snprintf(out, 16, "%.0f s", seconds);
    else if (seconds < 6000)
        snprintf(out, 16, "%.0f min", seconds / 60);
    else
        snprintf(out, 16, "%.1f h", seconds < 3.6e7 ? seconds / 3600 : 9999.0);
}

static int show_progress(void *context, const char *stage, uint64_t done, uint64_t total)
{
    line *l = context;
    if (cli_interrupted()) return 1;
    if (cli_settings()->quiet || cli_crew_helps()) return 0;
    double t = cli_now();
    int terminal = isatty(STDERR_FILENO);
    if (!l->stage || strcmp(l->stage, stage) != 0 || done < l->first) {
        l->stage = stage;
        l->start = l->said = t;
        l->first = done;
    }
    if (t - l->start < 0.2) l->first = done; /* what is there at once was done before */
    if (!terminal && t - l->said < LOG_SECONDS) return 0;
    l->said = t;
    double elapsed = t - l->start, rate = elapsed > 0 ? (double)(done - l->first) / elapsed : 0;
    char left[16] = "";
    if (total && rate > 0 && done < total) format_time(left, (double)(total - done) / rate);
    fprintf(stderr, "%s%s", terminal ? "\r\033[K" : "", stage);
    if (total) fprintf(stderr, "  %s of %s", cli_count(done), cli_count(total));
    if (rate > 0 && elapsed > 0.5) fprintf(stderr, "  %.*f/s", rate < 100 ? 1 : 0, rate);
    if (left[0] && elapsed > 0.5) fprintf(stderr, "  %s left", left);
    if (!terminal) fputc('\n', stderr);
    fflush(stderr);
    l->shown = terminal;
    return 0;
}

void cli_progress_clear(void)
{
    if (current.shown) fputs("\r\033[K", stderr);
    current = (line){0};
}

const safer_progress *cli_progress(void)
{
    static const safer_progress progress = {show_progress, &current};
    cli_interrupt_grace(1);
    return &progress;
}

/* ----------------------------------------------------------------- output */

static int is_coloured(void)
{
    const char *no = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no && *no);
}

const char *cli_bold(void) { return is_coloured() ? "\033[1m" : ""; }
const char *cli_dim(void) { return is_coloured() ? "\033[2m" : ""; }
const char *cli_red(void) { return is_coloured() ? "\033[31m" : ""; }
const char *cli_green(void) { return is_coloured() ? "\033[32m" : ""; }
const char *cli_plain(void) { return is_coloured() ? "\033[0m" : ""; }

/* ------------------------------------------------------------------ files */

safer_status cli_make_folder(const char *path, safer_error *error)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return SAFER_OK;
    return cli_error(error, SAFER_SYSTEM, "cannot make the folder %s: %s", path, strerror(errno));
}

/* Whether a file is on the disk; a device or pipe is as far as it goes. */
static int is_synced(int fd) { return fsync(fd) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP; }

/* Writes all of it, and until it is on the disk, with the permissions of the file that was there, if any. */
static int write_whole(const char *path, const char *bytes, size_t length, const struct stat *before)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return -1;
    int failed = before && fchmod(fd, before->st_mode & 07777) != 0;
    for (size_t done = 0; done < length && !failed;) {
        const ssize_t put = write(fd, bytes + done, length - done);
        failed = put == 0 || (put < 0 && errno != EINTR);
        done += put > 0 ? (size_t)put : 0;
    }
    failed = failed || !is_synced(fd);
    const int reason = errno;
    if (close(fd) != 0 && !failed) return -1;
    errno = reason;
    return failed ? -1 : 0;
}

/* A new name is on the disk when its folder is. Some file systems cannot, which is their business. */
static void sync_folder_of(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

/* Beside the name that links lead to, and in its place. 0, or -1 with errno. */
static int replace(const char *path, const char *bytes, size_t length, const struct stat *before)
{
    char part[PATH_MAX + 8];
    char *target = before ? realpath(path, NULL) : strdup(path);
    int failed = !target || snprintf(part, sizeof part, "%s.part", target) >= (int)sizeof part;
    if (target && failed) errno = ENAMETOOLONG;
    if (!failed) failed = write_whole(part, bytes, length, before) != 0 || rename(part, target) != 0;
    const int reason = errno;
    if (target && !failed) sync_folder_of(target);
    if (target && failed && reason != ENAMETOOLONG) unlink(part);
    free(target);
    errno = reason;
    return failed ? -1 : 0;
}

safer_status cli_write_file(const char *path, const char *bytes, size_t length, safer_error *error)
{
    struct stat info;
    const int exists = stat(path, &info) == 0, direct = exists && !S_ISREG(info.st_mode);
    if ((direct ? write_whole(path, bytes, length, NULL) : replace(path, bytes, length, exists ? &info : NULL)) == 0)
        return SAFER_OK;
    return cli_error(error, SAFER_SYSTEM, "cannot write %.800s: %s", path, strerror(errno));
}
