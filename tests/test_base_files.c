/* Files: names, mapping, unpacking, walking through folders and archives, writing whole or not at all, and digests.
 * Packed files are also cut short everywhere, and damaged in every byte where there is a checksum. */
#define _GNU_SOURCE
#include "support.h"

#include "base/buffer.h"
#include "base/digest.h"
#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void check_contents(const sf_file *file, const void *bytes, size_t length)
{
    assert_int_equal(file->length, length);
    if (length) assert_memory_equal(file->bytes, bytes, length);
}

/* Reading PATH gives these bytes. */
static void check_read(const char *path, const void *bytes, size_t length)
{
    safer_error error = {0};
    sf_file file = {0};
    assert_ok(sf_file_read(&file, path, &error));
    check_contents(&file, bytes, length);
    sf_file_free(&file);
    assert_true(file.bytes == NULL && file.length == 0);
}

/* Reading PATH fails; the message is one line, names the file and says this. */
static void check_refused(const char *path, safer_status expected, const char *name, const char *words)
{
    safer_error error;
    sf_file file = {0};
    assert_fails(sf_file_read(&file, path, &error), expected, words);
    assert_non_null(strstr(error.message, name));
    assert_null(strchr(error.message, '\n'));
    assert_true(!file.bytes && !file.heap); /* written on success only */
    assert_int_equal(sf_file_read(&file, path, NULL), expected);
}

/* A path that lives as long as the test (temporary() has 16 slots). */
static char *path_of(const char *name)
{
    static char paths[64][600];
    static unsigned next;
    char *path = paths[next++ % 64];
    snprintf(path, sizeof paths[0], "%s", temporary(name));
    return path;
}

static size_t files_beside(const char *path)
{
    char folder[600];
    snprintf(folder, sizeof folder, "%.*s", (int)(sf_base_name(path) - path), path);
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    size_t count = 0;
    while (readdir(entries)) count++;
    closedir(entries);
    return count;
}

/* ------------------------------------------------------------------ names */

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(sf_base_name("a"), "a");
    assert_string_equal(sf_base_name("/a/b.c"), "b.c");
    assert_string_equal(sf_base_name("a/"), "");
    assert_string_equal(sf_base_name(""), "");

    char path[700];
    const char *plain = write_temporary("split", "x", 1), *colon = write_temporary("split:one", "y", 1);
    size_t length = strlen(plain);
    assert_int_equal(sf_archive_split(plain), 0);
    assert_int_equal(sf_archive_split(colon), 0); /* it exists, colon and all */
    snprintf(path, sizeof path, "%s:member", plain);
    assert_int_equal(sf_archive_split(path), length);
    snprintf(path, sizeof path, "%s:one:two", plain); /* the last colon with a file before it */
    assert_int_equal(sf_archive_split(path), length + 4);
    snprintf(path, sizeof path, "%s:other:two", plain);
    assert_int_equal(sf_archive_split(path), length);
    snprintf(path, sizeof path, "%s:", plain);
    assert_int_equal(sf_archive_split(path), length);
    snprintf(path, sizeof path, "%.*s:member", (int)(sf_base_name(plain) - plain - 1), plain);
    assert_int_equal(sf_archive_split(path), 0); /* a folder is no archive */
    assert_int_equal(sf_archive_split("/no/such:file"), 0);
    assert_int_equal(sf_archive_split(":"), 0);
    assert_int_equal(sf_archive_split(""), 0);
    char *endless = malloc(100000);
    assert_non_null(endless);
    memset(endless, ':', 99999);
    endless[99999] = '\0';
    assert_int_equal(sf_archive_split(endless), 0);
    free(endless);
}

/* ---------------------------------------------------------------- reading */

static void test_load(void **state)
{
    (void)state;
    safer_error error = {0};
    sf_file file = {0};
    sf_file_free(&file); /* all zero: fine */
    assert_ok(sf_file_load(&file, write_temporary("plain", "a\0b", 3), &error));
    check_contents(&file, "a\0b", 3);
    sf_file_free(&file);

    assert_ok(sf_file_load(&file, write_temporary("empty", "", 0), &error));
    assert_int_equal(file.length, 0);
    assert_non_null(file.bytes);
    sf_file_free(&file);
    assert_ok(sf_file_load(&file, "/dev/null", &error));
    assert_int_equal(file.length, 0);
    sf_file_free(&file);
    assert_ok(sf_file_load(&file, "/proc/self/status", &error)); /* says its size is 0 */
    assert_true(file.length > 100);
    sf_file_free(&file);

    const char *missing = temporary("missing"), *folder = temporary("folder");
    mkdir(folder, 0777);
    assert_fails(sf_file_load(&file, missing, &error), SAFER_SYSTEM, "No such file");
    assert_non_null(strstr(error.message, missing));
    assert_fails(sf_file_load(&file, folder, &error), SAFER_INPUT, "folder");
    assert_non_null(strstr(error.message, folder));
    check_refused(missing, SAFER_SYSTEM, missing, "No such file");
    check_refused(folder, SAFER_INPUT, folder, "is a folder");
}

/* What was read stays as it was, whatever happens to the file. */
static void test_load_copies(void **state)
{
    (void)state;
    safer_error error = {0};
    sf_file file = {0};
    const char *path = write_temporary("copied", "0123456789", 10);
    assert_ok(sf_file_load(&file, path, &error));
    write_temporary("copied", "other bytes", 11);
    assert_int_equal(truncate(path, 0), 0);
    check_contents(&file, "0123456789", 10);
    sf_file_free(&file);
}

enum { MUCH = 300007 }; /* more than a pipe holds */

typedef struct pipe_job {
    const char *path, *bytes;
    size_t length;
} pipe_job;

static void *feed_pipe(void *argument)
{
    pipe_job *job = argument;
    int fd = open(job->path, O_WRONLY);
    for (size_t at = 0; fd >= 0 && at < job->length;) {
        ssize_t put = write(fd, job->bytes + at, job->length - at < 3001 ? job->length - at : 3001);
        if (put <= 0) break;
        at += (size_t)put;
    }
    if (fd >= 0) close(fd);
    return NULL;
}

static void check_pipe(const char *bytes, size_t length, const char *expected, size_t expected_length)
{
    pipe_job job = {path_of("pipe"), bytes, length};
    pthread_t thread;
    unlink(job.path);
    assert_int_equal(mkfifo(job.path, 0600), 0);
    assert_int_equal(pthread_create(&thread, NULL, feed_pipe, &job), 0);
    check_read(job.path, expected, expected_length);
    pthread_join(thread, NULL);
}

/* ---------------------------------------------------------------- packing */

static const struct {
    const char *format, *filter;
    size_t magic; /* cut below this many bytes it is taken for plain */
} packings[] = {{"raw", "gz", 2},     {"raw", "xz", 6}, {"raw", "zst", 4}, {"raw", "bz2", 10}, {"zip", "none", 4},
                {"tar", "none", 266}, {"tar", "gz", 2}, {"tar", "xz", 6},  {"tar", "zst", 4},  {"tar", "bz2", 10}};

/* Some text that does not compress to nothing. */
static void make_text(char *out, size_t length)
{
    uint32_t x = 1;
    for (size_t i = 0; i < length; i++) {
        x = x * 1664525 + 1013904223;
        out[i] = (char)(i % 60 == 59 ? '\n' : 'a' + (x >> 24) % 26);
    }
}

static char *text, *packed;
enum { PACKED = 2 * MUCH };

static void test_unpack(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 2, 3000, MUCH};
    for (size_t i = 0; i < COUNT(packings); i++)
        for (size_t k = 0; k < COUNT(lengths); k++) {
            archive_member one = {"only.txt", text, lengths[k]};
            size_t used = pack_archive(packed, PACKED, packings[i].format, packings[i].filter, &one, 1);
            const char *path = write_temporary("packed", packed, used);
            check_read(path, text, lengths[k]);
            if (lengths[k] == MUCH) check_pipe(packed, used, text, lengths[k]);
            if (strcmp(packings[i].format, "raw") == 0) continue;
            char inside[700];
            snprintf(inside, sizeof inside, "%s:only.txt", path);
            check_read(inside, text, lengths[k]);
            snprintf(inside, sizeof inside, "%s:other.txt", path);
            check_refused(inside, SAFER_INPUT, path, "no member other.txt (it has: only.txt)");
        }
    check_read(write_temporary("plain", text, MUCH), text, MUCH);
    check_read(write_temporary("plain", "", 0), "", 0);
    check_pipe(text, MUCH, text, MUCH);
    check_pipe("", 0, "", 0);
}

static void test_members(void **state)
{
    (void)state;
    static const archive_member members[] = {
        {"d/", "", 0}, {"d/a:b.txt", "colon", 5}, {"empty", "", 0}, {"d/c", "deep", 4}};
    static const char *const formats[] = {"tar", "zip"};
    for (size_t i = 0; i < COUNT(formats); i++) {
        char inside[700], name[40];
        snprintf(name, sizeof name, "some:%s", formats[i]); /* a colon in both names */
        size_t used = pack_archive(packed, PACKED, formats[i], "none", members, COUNT(members));
        const char *path = write_temporary(name, packed, used);
        check_refused(path, SAFER_INPUT, path, "holds 3 files; name one as");
        check_refused(path, SAFER_INPUT, "d/a:b.txt, empty, d/c", "MEMBER");
        for (size_t k = 1; k < COUNT(members); k++) {
            snprintf(inside, sizeof inside, "%s:%s", path, members[k].name);
            check_read(inside, members[k].bytes, members[k].length);
        }
        static const char *const others[] = {"", "d", "d/", "D/C", "c", "d/a", "b.txt", "d/c:x"};
        for (size_t k = 0; k < COUNT(others); k++) {
            snprintf(inside, sizeof inside, "%s:%s", path, others[k]);
            check_refused(inside, SAFER_INPUT, path, "has no member");
        }
        used = pack_archive(packed, PACKED, formats[i], "none", members, 1);
        path = write_temporary("only_folder", packed, used);
        check_refused(path, SAFER_INPUT, path, "holds no file");
        used = pack_archive(packed, PACKED, formats[i], "none", members, 0);
        if (strcmp(formats[i], "zip") == 0) {
            path = write_temporary("nothing", packed, used);
            check_refused(path, SAFER_INPUT, path, "holds no file");
        }
    }
    char inside[700];
    const char *path = write_temporary("not_packed", "text", 4);
    snprintf(inside, sizeof inside, "%s:member", path);
    check_refused(inside, SAFER_INPUT, path, "is not an archive, so it has no member member");
    size_t used = pack_archive(packed, PACKED, "raw", "gz", &members[1], 1);
    path = write_temporary("compressed", packed, used);
    snprintf(inside, sizeof inside, "%s:member", path);
    check_refused(inside, SAFER_INPUT, path, "is not an archive, so it has no member member");

    /* Names beyond ASCII, whatever the locale, and with "./" before them or not. */
    static const archive_member named[] = {{"./dir/été 日本.txt", "named", 5}, {"other", "x", 1}};
    for (size_t i = 0; i < COUNT(formats); i++) {
        static const char *const spellings[] = {"dir/été 日本.txt", "./dir/été 日本.txt"};
        used = pack_archive(packed, PACKED, formats[i], "none", named, COUNT(named));
        path = write_temporary("named", packed, used);
        for (size_t k = 0; k < COUNT(spellings); k++) {
            snprintf(inside, sizeof inside, "%s:%s", path, spellings[k]);
            check_read(inside, "named", 5);
        }
    }

    /* Very many members: the message stays one bounded line. */
    enum { MANY = 500 };
    static archive_member many[MANY];
    static char names[MANY][24];
    for (int k = 0; k < MANY; k++) {
        snprintf(names[k], sizeof names[k], "member\n%d", k);
        many[k] = (archive_member){names[k], "x", 1};
    }
    used = pack_archive(packed, PACKED, "zip", "none", many, MANY);
    check_refused(write_temporary("many", packed, used), SAFER_INPUT, "member?0, member?1", "holds 500 files");
    check_refused(write_temporary("many", packed, used), SAFER_INPUT, "many", ", ...");
}

/* Cut anywhere: refused, or (where only the end of an archive is missing) complete. */
static void test_truncated(void **state)
{
    (void)state;
    enum { LENGTH = 2000 };
    for (size_t i = 0; i < COUNT(packings); i++) {
        archive_member one = {"only.txt", text, LENGTH};
        size_t used = pack_archive(packed, PACKED, packings[i].format, packings[i].filter, &one, 1), refused = 0;
        for (size_t cut = 0; cut < used; cut += cut < 700 || used - cut < 700 ? 1 : 13) {
            safer_error error = {0};
            sf_file file = {0};
            char *exact = malloc(cut ? cut : 1);
            assert_non_null(exact);
            memcpy(exact, packed, cut);
            safer_status status = sf_unpack(&file, exact, cut, "CUT", NULL, &error);
            if (status == SAFER_OK && !file.heap) {
                if (cut >= packings[i].magic)
                    fail_msg("%s.%s cut to %zu of %zu is taken for plain", packings[i].format, packings[i].filter, cut,
                             used);
                assert_true(file.bytes == exact && file.length == cut);
            } else if (status == SAFER_OK) {
                if (strcmp(packings[i].filter, "none") != 0)
                    fail_msg("%s.%s cut to %zu of %zu is accepted", packings[i].format, packings[i].filter, cut, used);
                check_contents(&file, text, LENGTH);
            } else {
                assert_int_equal(status, SAFER_INPUT);
                assert_true(strstr(error.message, "cannot unpack CUT: ") == error.message);
                assert_true(strlen(error.message) > strlen("cannot unpack CUT: ") && !strchr(error.message, '\n'));
                refused++;
            }
            sf_file_free(&file);
            free(exact);
        }
        assert_true(refused > 300);
        char name[40];
        snprintf(name, sizeof name, "cut.%s.%s", packings[i].format, packings[i].filter);
        const char *path = write_temporary(name, packed, used / 2);
        check_refused(path, SAFER_INPUT, path, "cannot unpack");
    }
}

/* Any one bit the other way: refused, or it did not matter (a time, a name). Of what is
 * read here only zstd and tar can do without a checksum. */
static void test_damaged(void **state)
{
    (void)state;
    enum { LENGTH = 700 };
    for (size_t i = 0; i < COUNT(packings); i++) {
        const char *format = packings[i].format, *filter = packings[i].filter;
        if (strcmp(filter, "zst") == 0 || (strcmp(format, "tar") == 0 && strcmp(filter, "none") == 0)) continue;
        archive_member one = {"only.txt", text, LENGTH};
        size_t used = pack_archive(packed, PACKED, format, filter, &one, 1), refused = 0;
        for (size_t at = 0; at < used; at++) {
            safer_error error = {0};
            sf_file file = {0};
            char bit = (char)(1 << at % 8);
            packed[at] ^= bit;
            safer_status status = sf_unpack(&file, packed, used, "BAD", NULL, &error);
            packed[at] ^= bit;
            if (status == SAFER_OK && !file.heap)
                assert_true(at < packings[i].magic);
            else if (status == SAFER_OK && (file.length != LENGTH || memcmp(file.bytes, text, LENGTH) != 0))
                fail_msg("%s.%s: byte %zu of %zu is damaged and nobody noticed", format, filter, at, used);
            refused += status != SAFER_OK;
            sf_file_free(&file);
        }
        assert_true(refused > used * 8 / 10);
    }
}

/* gzip files may be laid end to end, and padded with same; nothing else may follow. */
static void test_gzip_members(void **state)
{
    (void)state;
    archive_member one = {"x", text, 1000}, two = {"x", text + 1000, 2000};
    size_t first = pack_archive(packed, PACKED, "raw", "gz", &one, 1);
    size_t both = first + pack_archive(packed + first, PACKED - first, "raw", "gz", &two, 1);
    check_read(write_temporary("two.gz", packed, both), text, 3000);
    memset(packed + both, 0, 700);
    check_read(write_temporary("two.gz", packed, both + 700), text, 3000);
    packed[both + 600] = 'x';
    check_refused(write_temporary("two.gz", packed, both + 700), SAFER_INPUT, "two.gz", "cannot unpack");
    for (size_t cut = first + 1; cut < both; cut += 11)
        check_refused(write_temporary("two.gz", packed, cut), SAFER_INPUT, "two.gz", "cannot unpack");
    check_read(write_temporary("two.gz", packed, first), text, 1000);
}

/* A magic number and then nonsense is damaged; text that merely looks a little like a
 * magic number is text. */
static void test_magic(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } damaged[] = {{"\x1f\x8b", 2},
                   {"\x1f\x8bnonsense nonsense nonsense", 27},
                   {"\xfd"
                    "7zXZ\0nonsense nonsense",
                    23},
                   {"\x28\xb5\x2f\xfdnonsense nonsense", 21},
                   {"BZh91AY&SYnonsense nonsense nonsense", 36},
                   {"PK\x03\x04nonsense nonsense nonsense nonsense", 39}};
    for (size_t i = 0; i < COUNT(damaged); i++)
        check_refused(write_temporary("damaged", damaged[i].bytes, damaged[i].length), SAFER_INPUT, "damaged",
                      "cannot unpack");

    static const char *const plain[] = {"BZhang wrote this", "BZh", "BZh9 is a level", "PK", "PK\n", "7zXZ", "ustar"};
    for (size_t i = 0; i < COUNT(plain); i++)
        check_read(write_temporary("looks", plain[i], strlen(plain[i])), plain[i], strlen(plain[i]));
    char about_tar[600];
    memset(about_tar, 'x', sizeof about_tar);
    memcpy(about_tar + 257, "ustar", 5);
    check_read(write_temporary("looks", about_tar, sizeof about_tar), about_tar, sizeof about_tar);

    /* A tar whose header is damaged, and one with a file behind it. */
    archive_member one = {"only.txt", text, 3000};
    size_t used = pack_archive(packed, PACKED, "tar", "none", &one, 1);
    packed[10] ^= 1; /* the checksum sees it */
    check_refused(write_temporary("damaged", packed, used), SAFER_INPUT, "damaged", "cannot unpack");
}

/* ---------------------------------------------------------------- walking */

typedef struct walked {
    sf_buffer log;
    int stop_at, calls;
} walked;

static safer_status log_member(void *context, const char *name, const char *bytes, size_t length, safer_error *error)
{
    walked *w = context;
    if (sf_buffer_format(&w->log, "%s=%.*s;", name, (int)length, bytes)) return sf_fail_memory(error);
    return ++w->calls == w->stop_at ? sf_fail(error, SAFER_INVALID, "enough of %s", name) : SAFER_OK;
}

static const archive_member tree[] = {{"z/", "", 0},     {"z/b", "2", 1},   {"a", "1", 1}, {"z/c/", "", 0},
                                      {"z/c/d", "3", 1}, {"zz/b", "no", 2}, {"z/e", "", 0}};

static void check_walk(const char *path, const char *prefix, const char *expected)
{
    safer_error error = {0};
    walked w = {.stop_at = 0};
    sf_buffer_add(&w.log, "", 0);
    assert_ok(sf_archive_walk(path, prefix, log_member, &w, &error));
    assert_string_equal(w.log.bytes, expected);
    sf_buffer_free(&w.log);
}

static void test_walk(void **state)
{
    (void)state;
    safer_error error;
    static const struct {
        const char *format, *filter;
    } kinds[] = {{"tar", "none"}, {"tar", "gz"}, {"tar", "xz"}, {"zip", "none"}};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        size_t used = pack_archive(packed, PACKED, kinds[i].format, kinds[i].filter, tree, COUNT(tree));
        const char *path = write_temporary("tree", packed, used);
        check_walk(path, NULL, "z/b=2;a=1;z/c/d=3;zz/b=no;z/e=;");
        check_walk(path, "", "z/b=2;a=1;z/c/d=3;zz/b=no;z/e=;");
        check_walk(path, "z", "b=2;c/d=3;e=;");
        check_walk(path, "z/", "b=2;c/d=3;e=;");
        check_walk(path, "z/c", "d=3;");
        check_walk(path, "a", ""); /* a file, nothing below it */
        check_walk(path, "y", "");
        walked w = {.stop_at = 2};
        assert_fails(sf_archive_walk(path, NULL, log_member, &w, &error), SAFER_INVALID, "enough of a");
        assert_int_equal(w.calls, 2);
        sf_buffer_free(&w.log);

        path = write_temporary("tree_cut", packed, used / 3);
        assert_fails(sf_archive_walk(path, NULL, log_member, &w, &error), SAFER_INPUT, "cannot unpack");
        assert_non_null(strstr(error.message, path));
        sf_buffer_free(&w.log);
    }
    walked w = {.stop_at = 0};
    const char *path = write_temporary("plain", "text", 4);
    assert_fails(sf_archive_walk(path, NULL, log_member, &w, &error), SAFER_INPUT, "not an archive");
    size_t used = pack_archive(packed, PACKED, "raw", "gz", &tree[1], 1);
    path = write_temporary("plain.gz", packed, used);
    assert_fails(sf_archive_walk(path, NULL, log_member, &w, &error), SAFER_INPUT, "not an archive");
    path = write_temporary("damaged.gz", "\x1f\x8bnonsense", 10);
    assert_fails(sf_archive_walk(path, NULL, log_member, &w, &error), SAFER_INPUT, "cannot unpack");
    assert_fails(sf_archive_walk("/no/such.tar", NULL, log_member, &w, &error), SAFER_SYSTEM, "/no/such.tar");
    assert_int_equal(w.calls, 0);
}

/* ---------------------------------------------------------------- writing */

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    return info.st_mode;
}

/* In the place of the C library's: the umask belongs to the whole process, so nothing else may be
 * made while it is changed, not even for a moment. */
static int umask_calls;

mode_t umask(mode_t mask)
{
    umask_calls++;
    return (mode_t)syscall(SYS_umask, mask);
}

/* The second member of a name must not be hidden behind the first, nor the first behind the second. */
static void test_members_twice(void **state)
{
    (void)state;
    static const archive_member twice[] = {{"a.txt", "first", 5}, {"b.txt", "other", 5}, {"./a.txt", "second", 6}};
    safer_error error = {0};
    walked w = {0};
    char inside[700];
    const char *path = write_temporary("twice.zip", packed,
                                       pack_archive(packed, PACKED, "zip", "none", twice, COUNT(twice)));
    snprintf(inside, sizeof inside, "%s:a.txt", path);
    check_refused(inside, SAFER_INPUT, path, "holds two members a.txt");
    assert_fails(sf_archive_walk(path, NULL, log_member, &w, &error), SAFER_INPUT, "twice.zip holds two members a.txt");
    sf_buffer_free(&w.log);
    snprintf(inside, sizeof inside, "%s:b.txt", path);
    check_read(inside, "other", 5);
    path = write_temporary("twice.tar", packed, pack_archive(packed, PACKED, "tar", "none", twice, COUNT(twice)));
    snprintf(inside, sizeof inside, "%s:a.txt", path); /* added to: what unpacking it would leave */
    check_read(inside, "second", 6);
}

static void check_write(const char *path, const char *bytes, size_t length)
{
    safer_error error = {0};
    const int calls = umask_calls;
    assert_ok(sf_file_write(path, bytes, length, &error));
    assert_int_equal(umask_calls, calls);
    check_read(path, bytes, length);
}

static void test_write(void **state)
{
    (void)state;
    const char *path = path_of("out"), *other = path_of("other");
    write_temporary("other", "untouched", 9);
    mode_t mask = umask(027);
    size_t before = files_beside(path);
    check_write(path, "first", 5);
    umask(mask);
    assert_int_equal(mode_of(path) & 07777, 0640); /* as open() would have made it */
    assert_true(umask_calls >= 2);                 /* these two, by this program */
    assert_int_equal(files_beside(path), before + 1);
    assert_int_equal(chmod(path, 0604), 0);
    check_write(path, "", 0);
    check_write(path, text, MUCH);
    check_write(path, "a\0b", 3);
    assert_int_equal(mode_of(path) & 07777, 0604); /* kept, */
    umask(077);
    check_write(path, "a\0b", 3); /* whatever the umask is, */
    assert_int_equal(chmod(path, 0677), 0);
    check_write(path, "a\0b", 3);
    umask(mask);
    assert_int_equal(mode_of(path) & 07777, 0677); /* and whatever the mode is */
    assert_int_equal(files_beside(path), before + 1);
    check_read(other, "untouched", 9);

    /* A reader that has the old file open keeps the old contents. */
    safer_error error = {0};
    sf_file old = {0};
    assert_ok(sf_file_load(&old, path, &error));
    check_write(path, "new", 3);
    check_contents(&old, "a\0b", 3);
    sf_file_free(&old);

    /* A name without a folder. */
    char *here = getcwd(NULL, 0), *folder = path_of("cwd");
    assert_non_null(here);
    mkdir(folder, 0777);
    assert_int_equal(chdir(folder), 0);
    safer_status status = sf_file_write("bare", "x", 1, &error);
    assert_int_equal(chdir(here), 0);
    free(here);
    assert_ok(status);
    check_read(path_of("cwd/bare"), "x", 1);
}

static void test_write_links(void **state)
{
    (void)state;
    mkdir(path_of("links"), 0777);
    mkdir(path_of("links/far"), 0777);
    const char *target = write_temporary("links/target", "old", 3), *link = path_of("links/link");
    assert_int_equal(symlink(target, link), 0);
    assert_int_equal(chmod(target, 0600), 0);
    check_write(link, "new", 3);
    assert_true(S_ISLNK(mode_of(link))); /* a link stays a link */
    assert_true(S_ISREG(mode_of(target)));
    assert_int_equal(mode_of(target) & 07777, 0600);
    check_read(target, "new", 3);

    /* Relative, through another one, to a file that is not there yet. */
    link = path_of("links/chain");
    assert_int_equal(symlink("far/next", link), 0);
    assert_int_equal(symlink("../there", path_of("links/far/next")), 0);
    check_write(link, "made", 4);
    assert_true(S_ISLNK(mode_of(link)));
    assert_true(S_ISLNK(mode_of(path_of("links/far/next"))));
    check_read(path_of("links/there"), "made", 4);
    check_write(link, "again", 5);
    check_read(path_of("links/there"), "again", 5);

    safer_error error;
    link = path_of("links/loop");
    assert_int_equal(symlink("loop", link), 0);
    assert_fails(sf_file_write(link, "x", 1, &error), SAFER_SYSTEM, link);
    assert_true(S_ISLNK(mode_of(link)));
    size_t count = files_beside(link);
    link = path_of("links/nowhere");
    assert_int_equal(symlink("no/such/folder/file", link), 0);
    assert_fails(sf_file_write(link, "x", 1, &error), SAFER_SYSTEM, link);
    assert_int_equal(files_beside(link), count + 1);
}

static void test_write_refused(void **state)
{
    (void)state;
    safer_error error;
    const char *folder = path_of("folder");
    mkdir(folder, 0777);
    assert_fails(sf_file_write(folder, "x", 1, &error), SAFER_INVALID, folder);
    assert_fails(sf_file_write("/no/such/file", "x", 1, &error), SAFER_SYSTEM, "/no/such/file");
    const char *file = write_temporary("a_file", "x", 1);
    char below[700];
    snprintf(below, sizeof below, "%s/below", file);
    assert_fails(sf_file_write(below, "x", 1, &error), SAFER_SYSTEM, below);
    assert_fails(sf_file_write("", "x", 1, &error), SAFER_SYSTEM, "cannot");
}

static void test_write_devices(void **state)
{
    (void)state;
    safer_error error = {0};
    assert_ok(sf_file_write("/dev/null", text, MUCH, &error));
    assert_true(S_ISCHR(mode_of("/dev/null"))); /* not replaced */
    if (access("/dev/full", W_OK) == 0) {
        assert_fails(sf_file_write("/dev/full", "x", 1, &error), SAFER_SYSTEM, "cannot write /dev/full: No space left");
        assert_true(S_ISCHR(mode_of("/dev/full")));
    } else {
        printf("skipped: there is no /dev/full\n");
    }
}

/* Nothing unpacks to more than is allowed, in any form, nor does a device without end. */
static void test_unpacked_limit(void **state)
{
    (void)state;
    enum { LIMIT = 1 << 16, BOMB = 3 << 16 };
    static const char *const kinds[][2] = {{"raw", "gz"},   {"raw", "xz"}, {"raw", "zst"}, {"raw", "bz2"},
                                           {"zip", "none"}, {"tar", "gz"}, {"tar", "xz"}};
    char *same = malloc(BOMB);
    assert_non_null(same);
    memset(same, 'x', BOMB);
    const archive_member one = {"bomb", same, BOMB}, two[] = {{"a", same, LIMIT * 2 / 3}, {"b", same, LIMIT * 2 / 3}};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        safer_set_max_unpacked(LIMIT);
        size_t used = pack_archive(packed, PACKED, kinds[i][0], kinds[i][1], &one, 1);
        const char *path = write_temporary("bomb", packed, used);
        check_refused(path, SAFER_INPUT, "bomb", "holds more than");
        safer_set_max_unpacked(0);
        check_read(path, same, BOMB);
    }
    safer_set_max_unpacked(LIMIT);
    check_refused("/dev/zero", SAFER_INPUT, "/dev/zero", "holds more than");
    safer_error error;
    walked w = {.stop_at = 0};
    const size_t used = pack_archive(packed, PACKED, "zip", "none", two, 2);
    const char *path = write_temporary("two.zip", packed, used);
    assert_fails(sf_archive_walk(path, NULL, log_member, &w, &error), SAFER_INPUT, "two.zip holds more than");
    assert_int_equal(w.calls, 1);
    safer_set_max_unpacked(0);
    assert_ok(sf_archive_walk(path, NULL, log_member, &w, &error));
    sf_buffer_free(&w.log);
    assert_int_equal(sf_unpacked_most(1), sf_unpacked_most(1000)); /* below 1 GiB the ratio does not matter */
    assert_true(sf_unpacked_most(0) >= sf_unpacked_most(1));
    free(same);
}

/* Whether the file is still there after its neighbour was written. */
static int outlives_a_write(const char *target, const char *name, int locked)
{
    char path[700];
    snprintf(path, sizeof path, "%s%s", target, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    if (locked) assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    check_write(target, "new", 3);
    const int stays = access(path, F_OK) == 0;
    close(fd);
    unlink(path);
    return stays;
}

/* What a killed run left is removed; what somebody writes, or is not ours, stays. */
static void test_write_orphans(void **state)
{
    (void)state;
    const char *target = path_of("finished");
    assert_false(outlives_a_write(target, ".safer-0a1b2c", 0));
    assert_true(outlives_a_write(target, ".safer-0a1b2c", 1));
    assert_true(outlives_a_write(target, ".safer-0a1b2", 0));
    assert_true(outlives_a_write(target, ".safer-0a1b2C", 0));
    assert_true(outlives_a_write(target, "2.safer-0a1b2c", 0));
    char folder[700];
    snprintf(folder, sizeof folder, "%s.safer-0a1b2c", target);
    assert_int_equal(mkdir(folder, 0700), 0);
    check_write(target, "newer", 5);
    assert_int_equal(rmdir(folder), 0);
}

/* Several runs write the same file: none takes another's temporary file for an orphan. */
static void test_write_together(void **state)
{
    (void)state;
    enum { RUNS = 4, TIMES = 50 };
    const char *target = path_of("together");
    pid_t runs[RUNS];
    for (int i = 0; i < RUNS; i++) {
        runs[i] = fork();
        assert_true(runs[i] >= 0);
        if (runs[i] > 0) continue;
        for (int k = 0; k < TIMES; k++)
            if (sf_file_write(target, "whole", 5, NULL) != SAFER_OK) _exit(1);
        _exit(0);
    }
    for (int i = 0; i < RUNS; i++) {
        int ended;
        assert_int_equal(waitpid(runs[i], &ended, 0), runs[i]);
        assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    }
    check_write(target, "whole", 5);
}

/* The disk is full after 10,000 bytes: the old file stays as it was. */
static void test_write_fails(void **state)
{
    (void)state;
    const char *path = write_temporary("precious", "precious", 8), *fresh = path_of("fresh");
    size_t before = files_beside(path);
    safer_error errors[2] = {{0}, {0}};
    struct rlimit limit, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 10000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    safer_status status[2] = {sf_file_write(path, text, MUCH, &errors[0]),
                              sf_file_write(fresh, text, MUCH, &errors[1])};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, handler);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(status[i], SAFER_SYSTEM);
        assert_non_null(strstr(errors[i].message, i ? fresh : path));
        assert_non_null(strstr(errors[i].message, "cannot write"));
    }
    check_read(path, "precious", 8);
    assert_int_not_equal(access(fresh, F_OK), 0);
    assert_int_equal(files_beside(path), before); /* nothing left behind */
    check_write(path, text, MUCH);                /* and now it works */
}

/* ------------------------------------------------------------ allocations */

static safer_status read_once(void *context, safer_error *error)
{
    sf_file file = {0};
    safer_status status = sf_file_read(&file, context, error);
    if (status == SAFER_OK && (file.length != 3000 || memcmp(file.bytes, text, 3000) != 0)) status = SAFER_INVALID;
    sf_file_free(&file);
    return status;
}

static safer_status read_empty(void *context, safer_error *error)
{
    sf_file file = {0};
    safer_status status = sf_file_read(&file, context, error);
    sf_file_free(&file);
    return status;
}

static safer_status walk_once(void *context, safer_error *error)
{
    walked w = {.stop_at = 0};
    safer_status status = sf_archive_walk(context, NULL, log_member, &w, error);
    sf_buffer_free(&w.log);
    return status;
}

static safer_status write_once(void *context, safer_error *error)
{
    safer_status status = sf_file_write(context, "after", 5, error);
    char there[8]; /* looked at without an allocation, which might be the one that fails */
    const int fd = open(context, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read(fd, there, sizeof there);
    if (fd >= 0) close(fd);
    const int after = length == 5 && memcmp(there, "after", 5) == 0,
              old = length == 6 && memcmp(there, "before", 6) == 0;
    return (status == SAFER_OK ? after : old) ? status : SAFER_INVALID;
}

static void test_allocations(void **state)
{
    (void)state;
    static const char *const names[] = {"raw", "tar", "zip"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char inside[700];
        archive_member two[] = {{"other", "x", 1}, {"only.txt", text, 3000}};
        size_t used = pack_archive(packed, PACKED, names[i], i == 2 ? "none" : "gz", two + 1, 1);
        check_every_allocation(read_once, (void *)(uintptr_t)write_temporary(names[i], packed, used));
        if (i == 0) continue;
        used = pack_archive(packed, PACKED, names[i], "none", two, 2);
        snprintf(inside, sizeof inside, "%s:only.txt", write_temporary(names[i], packed, used));
        check_every_allocation(read_once, inside);
        used = pack_archive(packed, PACKED, names[i], "none", tree, COUNT(tree));
        check_every_allocation(walk_once, (void *)(uintptr_t)write_temporary(names[i], packed, used));
    }
    check_every_allocation(read_empty, (void *)(uintptr_t)write_temporary("empty", "", 0));
    archive_member nothing = {"nothing", "", 0};
    size_t used = pack_archive(packed, PACKED, "raw", "xz", &nothing, 1);
    check_every_allocation(read_empty, (void *)(uintptr_t)write_temporary("empty", packed, used));

    char *target = path_of("rewritten"), *link = path_of("rewritten_link");
    size_t before = files_beside(target);
    write_temporary("rewritten", "before", 6);
    check_every_allocation(write_once, target);
    write_temporary("rewritten", "before", 6);
    assert_int_equal(symlink("rewritten", link), 0);
    check_every_allocation(write_once, link);
    assert_int_equal(files_beside(target), before + 2);
}

/* ----------------------------------------------------------------- digests */

static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

static void test_path_digests(void **state)
{
    (void)state;
    safer_error error = {0};
    char folder[512], one[65], other[65], before[65], after[65];
    assert_int_equal(mkdir(temporary("digest"), 0777), 0);
    assert_ok(safer_path_sha256(one, write_temporary("digest/one.txt", "abc", 3), &error));
    assert_string_equal(one, abc);
    assert_ok(safer_path_sha256(other, write_temporary("digest/two.txt", "abd", 3), &error));
    assert_string_not_equal(one, other);
    snprintf(folder, sizeof folder, "%s", temporary("digest/one.txt"));
    *strrchr(folder, '/') = '\0';
    assert_ok(safer_path_sha256(before, folder, &error));
    sf_digest_list list = {0}; /* the same as a list, in any order; a file that is read twice counts once */
    sf_digest digest;
    assert_ok(sf_digest_list_add(&list, "two.txt", "abd", 3, &error));
    assert_ok(sf_digest_list_add(&list, "one.txt", "abc", 3, &error));
    assert_ok(sf_digest_list_add(&list, "two.txt", "abd", 3, &error));
    assert_fails(sf_digest_list_add(&list, "one.txt", "abx", 3, &error), SAFER_INPUT,
                 "one.txt was changed while it was read");
    assert_ok(sf_digest_list_end(&digest, &list, &error));
    assert_string_equal(digest.hex, before);
    sf_digest_list_free(&list);
    write_temporary("digest/two.txt", "abx", 3); /* what is in a folder counts, */
    assert_ok(safer_path_sha256(after, folder, &error));
    assert_string_not_equal(before, after);
    rename(temporary("digest/two.txt"), temporary("digest/three.txt")); /* and what it is called there */
    assert_ok(safer_path_sha256(before, folder, &error));
    assert_string_not_equal(before, after);
    assert_fails(safer_path_sha256(one, temporary("digest/nothing"), &error), SAFER_SYSTEM, "nothing");
}

/* "a" NUL and the digest of "abc", "b" NUL and that of nothing. */
static void test_digest_list(void **state)
{
    (void)state;
    safer_error error = {0};
    sf_digest_list list = {0};
    sf_digest found, part, expected;
    sf_sha256_sum sum = {0};
    assert_ok(sf_digest_list_add(&list, "b", NULL, 0, &error));
    assert_ok(sf_digest_list_add(&list, "a", "abc", 3, &error));
    assert_ok(sf_digest_list_end(&found, &list, &error));
    assert_ok(sf_sha256(&part, "abc", 3, &error));
    sf_sha256_add(&sum, "a", 2);
    sf_sha256_add(&sum, part.bytes, 32);
    assert_ok(sf_sha256(&part, "", 0, &error));
    sf_sha256_add(&sum, "b", 2);
    sf_sha256_add(&sum, part.bytes, 32);
    assert_ok(sf_sha256_end(&expected, &sum, &error));
    assert_string_equal(found.hex, expected.hex);
    sf_digest_list_free(&list);
    assert_ok(sf_digest_list_add(NULL, "a", "abc", 3, &error));
}

static safer_status digest_all(void *folder, safer_error *error)
{
    char hex[65];
    return safer_path_sha256(hex, folder, error);
}

static void test_digest_allocations(void **state)
{
    (void)state;
    char folder[512];
    snprintf(folder, sizeof folder, "%s", temporary("digest/one.txt"));
    *strrchr(folder, '/') = '\0';
    check_every_allocation(digest_all, folder);
}

static int make_room(void **state)
{
    (void)state;
    text = malloc(MUCH);
    packed = malloc(PACKED);
    if (!text || !packed) return -1;
    make_text(text, MUCH);
    return 0;
}

static int free_room(void **state)
{
    (void)state;
    free(text);
    free(packed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_load_copies),
        cmocka_unit_test(test_unpack),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_members_twice),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_gzip_members),
        cmocka_unit_test(test_magic),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_write_links),
        cmocka_unit_test(test_write_refused),
        cmocka_unit_test(test_write_devices),
        cmocka_unit_test(test_write_orphans),
        cmocka_unit_test(test_write_together),
        cmocka_unit_test(test_unpacked_limit),
        cmocka_unit_test(test_write_fails),
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_path_digests),
        cmocka_unit_test(test_digest_list),
        cmocka_unit_test(test_digest_allocations),
    };
    return cmocka_run_group_tests_name("base: files", tests, make_room, free_room);
}
