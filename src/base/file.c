/* Reading and atomic writing of whole files. Unpacking is in unpack.c.
 *
 * file.h says what is promised about files that change while they are read, and about writing. */
#define _GNU_SOURCE
#include "base/file.h"

#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

const char *sf_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ------------------------------------------------------------------ limits */

static _Atomic uint64_t max_unpacked; /* 0: not set */

void safer_set_max_unpacked(uint64_t bytes) { atomic_store(&max_unpacked, bytes); }

size_t sf_unpacked_most(size_t packed)
{
    enum { RATIO = 250 };
    const uint64_t set = atomic_load(&max_unpacked), pages = (uint64_t)sysconf(_SC_PHYS_PAGES),
                   half = pages * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
    if (set) return (size_t)set;
    const uint64_t usual = (packed ? UINT64_C(8) : UINT64_C(2)) << 30;
    uint64_t most = half < usual ? half : usual;
    if (packed && packed < most / RATIO && most > UINT64_C(1) << 30)
        most = packed * (uint64_t)RATIO > UINT64_C(1) << 30 ? packed * (uint64_t)RATIO : UINT64_C(1) << 30;
    return (size_t)most;
}

safer_status sf_fail_unpacked(safer_error *error, const char *name, size_t most)
{
    const int small = most < 1000000000;
    return sf_fail(error, SAFER_INPUT,
                   "%s holds more than %.1f %s, the most that is unpacked or read from a pipe; "
                   "`max_unpacked` raises it",
                   name, (double)most / (small ? 1e6 : 1e9), small ? "MB" : "GB");
}

int sf_open(const char *path, int flags)
{
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC, 0666);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/* ----------------------------------------------------------------- reading */

static safer_status read_to_end(sf_file *out, int fd, const char *path, safer_error *error)
{
    sf_buffer buffer = {0};
    const size_t most = sf_unpacked_most(0);
    for (;;) {
        if (buffer.length > most) {
            sf_buffer_free(&buffer);
            return sf_fail_unpacked(error, path, most);
        }
        if (sf_buffer_reserve(&buffer, 1 << 16)) {
            sf_buffer_free(&buffer);
            return sf_fail_memory(error);
        }
        ssize_t got = read(fd, buffer.bytes + buffer.length, buffer.capacity - buffer.length - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            sf_buffer_free(&buffer);
            return sf_fail_errno(error, "read", path);
        }
        if (got == 0) break;
        buffer.length += (size_t)got;
    }
    *out = (sf_file){.bytes = buffer.bytes, .length = buffer.length, .heap = buffer.bytes};
    return SAFER_OK;
}

/* A regular file, whose size is known. It is read and not mapped: a file that somebody cuts off while it is mapped
 * kills the process (SIGBUS), and one that is overwritten changes after it was checked. */
static safer_status read_regular(sf_file *out, int fd, const struct stat *before, const char *path, safer_error *error)
{
    const size_t length = (size_t)before->st_size, most = length + 1; /* one more, to see it grow */
    struct stat after;
    size_t have = 0;
    ssize_t got = 1;
    char *bytes = sf_alloc_aligned(most, 1); /* as the sections of a lexicon are */
    if (!bytes) return sf_fail_memory(error);
    while (have < most && got != 0) {
        got = read(fd, bytes + have, most - have < (1u << 30) ? most - have : 1u << 30);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            free(bytes);
            return sf_fail_errno(error, "read", path);
        }
        have += (size_t)got;
    }
    if (have != length || fstat(fd, &after) != 0 || after.st_size != before->st_size ||
        after.st_mtim.tv_sec != before->st_mtim.tv_sec || after.st_mtim.tv_nsec != before->st_mtim.tv_nsec) {
        free(bytes);
        return sf_fail(error, SAFER_INPUT, "%s was changed while it was read; try again when it is whole", path);
    }
    *out = (sf_file){.bytes = bytes, .length = length, .heap = bytes};
    return SAFER_OK;
}

safer_status sf_file_load(sf_file *out, const char *path, safer_error *error)
{
    safer_status status;
    struct stat info;
    int fd = sf_open(path, O_RDONLY);
    if (fd < 0) return sf_fail_errno(error, "open", path);
    if (fstat(fd, &info) != 0)
        status = sf_fail_errno(error, "examine", path);
    else if (S_ISDIR(info.st_mode))
        status = sf_fail(error, SAFER_INPUT, "%s is a folder, not a file", path);
    else if (!S_ISREG(info.st_mode) || info.st_size == 0) /* a pipe, or a file of /proc */
        status = read_to_end(out, fd, path, error);
    else
        status = read_regular(out, fd, &info, path, error);
    close(fd);
    return status;
}

void sf_file_free(sf_file *file)
{
    free(file->heap);
    *file = (sf_file){0};
}

size_t sf_archive_split(const char *path)
{
    if (access(path, F_OK) == 0) return 0;
    for (size_t i = strlen(path); i-- > 1;) {
        char archive[PATH_MAX]; /* what is longer cannot exist */
        struct stat info;
        if (path[i] != ':' || i >= sizeof archive) continue;
        memcpy(archive, path, i);
        archive[i] = '\0';
        if (stat(archive, &info) == 0 && !S_ISDIR(info.st_mode)) return i;
    }
    return 0;
}

safer_status sf_file_read(sf_file *out, const char *path, safer_error *error)
{
    safer_status status;
    sf_file raw = {0}, unpacked = {0};
    char *archive = NULL;
    size_t split = sf_archive_split(path);
    const char *name = path;
    if (split) {
        name = archive = sf_strndup(path, split);
        if (!archive) return sf_fail_memory(error);
    }
    SF_TRY(sf_file_load(&raw, name, error));
    SF_TRY(sf_unpack(&unpacked, raw.bytes, raw.length, name, split ? path + split + 1 : NULL, error));
    if (unpacked.bytes == raw.bytes) { /* plain: hand it over as it is */
        *out = raw;
        raw = (sf_file){0};
    } else {
        *out = unpacked;
    }
done:
    sf_file_free(&raw);
    free(archive);
    return status;
}

/* --------------------------------------------------------------- writing */

static int write_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t put = write(fd, bytes, length < (1u << 30) ? length : 1u << 30);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return -1;
        bytes += put;
        length -= (size_t)put;
    }
    return 0;
}

/* Best effort: some file systems refuse. */
void sf_folder_sync(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s.", (int)(sf_base_name(path) - path), path);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

/* The name that links lead to, whether or not there is a file: a link stays a link. */
static char *follow_links(const char *path)
{
    char *name = sf_strdup(path), link[PATH_MAX];
    for (int hops = 0; name && hops < 40; hops++) {
        ssize_t length = readlink(name, link, sizeof link);
        if (length <= 0) break;
        sf_buffer next = {0};
        size_t folder = link[0] == '/' ? 0 : (size_t)(sf_base_name(name) - name);
        int failed = sf_buffer_add(&next, name, folder) || sf_buffer_add(&next, link, (size_t)length);
        if (failed) sf_buffer_free(&next);
        free(name);
        name = next.bytes;
    }
    return name;
}

/* Names of temporary files: TARGET, this, and six hexadecimal digits. */
static const char mark[] = ".safer-";
enum { DIGITS = 6 };

static int is_temporary(const char *name, const char *target)
{
    const size_t length = strlen(target), marked = length + sizeof mark - 1;
    return strlen(name) == marked + DIGITS && memcmp(name, target, length) == 0 &&
           memcmp(name + length, mark, sizeof mark - 1) == 0 && strspn(name + marked, "0123456789abcdef") == DIGITS;
}

/* Removes what runs that were killed left behind while they wrote `target`. Those who write hold a lock until their
 * file has its own name; it ends with them. */
static void remove_orphans(const char *target)
{
    const char *base = sf_base_name(target);
    const struct dirent *entry;
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%.*s.", (int)(base - target), target) >= (int)sizeof folder) return;
    DIR *open_folder = opendir(folder);
    if (!open_folder) return;
    while ((entry = readdir(open_folder))) {
        struct stat info;
        if (!is_temporary(entry->d_name, base)) continue;
        const int fd = openat(dirfd(open_folder), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0) continue;
        if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
            (void)unlinkat(dirfd(open_folder), entry->d_name, 0);
        close(fd);
    }
    closedir(open_folder);
}

/* Locks a new file. Whether it is still there: before it had its lock, another run may have taken it for an orphan.
 * Where the file system knows no locks nobody gets one, so nothing is removed. */
static int keep_from_removal(int fd)
{
    struct stat info;
    const int locked = flock(fd, LOCK_EX | LOCK_NB);
    if (locked != 0 && errno == EWOULDBLOCK) return 0;
    return locked != 0 || fstat(fd, &info) != 0 || info.st_nlink > 0;
}

/* Makes a new file beside `target`, locked; *name becomes its name. The kernel applies the process's umask
 * (or the folder's default ACL) to `mode`: asking for the umask would change it for a moment, for
 * all threads. Returns the descriptor, or -1 with errno. */
static int make_beside(sf_buffer *name, const char *target, mode_t mode)
{
    for (int tries = 0; tries < 100; tries++) {
        uint32_t random;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) return -1;
        sf_buffer_clear(name);
        if (sf_buffer_format(name, "%s%s%06x", target, mark, random & 0xffffff)) {
            errno = ENOMEM;
            return -1;
        }
        const int fd = open(name->bytes, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST) return -1;
        if (fd >= 0 && keep_from_removal(fd)) return fd;
        if (fd >= 0) close(fd);
    }
    errno = EEXIST;
    return -1;
}

/* Makes the temporary file of a regular one, or of one that is to be; `info` is NULL where there is none. */
static safer_status begin_beside(sf_new_file *out, const struct stat *info, safer_error *error)
{
    out->target = follow_links(out->path);
    if (!out->target) return sf_fail_memory(error);
    remove_orphans(out->target);
    out->fd = make_beside(&out->temporary, out->target, info ? 0600 : 0666);
    if (out->fd < 0)
        return errno == ENOMEM ? sf_fail_memory(error) : sf_fail_errno(error, "create a file beside", out->path);
    out->unfinished = 1;
    return info && fchmod(out->fd, info->st_mode & 07777) != 0 ? sf_fail_errno(error, "write", out->path) : SAFER_OK;
}

safer_status sf_new_file_begin(sf_new_file *out, const char *path, safer_error *error)
{
    struct stat info;
    *out = (sf_new_file){.path = path, .fd = -1};
    const int exists = stat(path, &info) == 0;
    if (!exists && errno != ENOENT) return sf_fail_errno(error, "write", path);
    if (exists && S_ISDIR(info.st_mode)) return sf_fail(error, SAFER_INVALID, "cannot write %s: it is a folder", path);
    if (!exists || S_ISREG(info.st_mode)) return begin_beside(out, exists ? &info : NULL, error);
    out->fd = sf_open(path, O_WRONLY);
    return out->fd < 0 ? sf_fail_errno(error, "open", path) : SAFER_OK;
}

safer_status sf_new_file_add(sf_new_file *file, const void *bytes, size_t length, safer_error *error)
{
    return write_all(file->fd, bytes, length) ? sf_fail_errno(error, "write", file->path) : SAFER_OK;
}

safer_status sf_new_file_finish(sf_new_file *file, safer_error *error)
{
    if (!file->unfinished) { /* a device or pipe */
        const int failed = close(file->fd);
        file->fd = -1;
        return failed ? sf_fail_errno(error, "write", file->path) : SAFER_OK;
    }
    if (fsync(file->fd) != 0 ||
        rename(file->temporary.bytes, file->target) != 0) /* before the file is closed, which gives up the lock */
        return sf_fail_errno(error, "write", file->path);
    file->unfinished = 0;
    sf_folder_sync(file->target);
    return SAFER_OK;
}

void sf_new_file_end(sf_new_file *file)
{
    if (file->unfinished) unlink(file->temporary.bytes);
    if (file->fd >= 0) close(file->fd); /* it says nothing new: what was written is on the disk */
    sf_buffer_free(&file->temporary);
    free(file->target);
    *file = (sf_new_file){.fd = -1};
}

safer_status sf_file_write(const char *path, const void *bytes, size_t length, safer_error *error)
{
    safer_status status;
    sf_new_file file;
    SF_TRY(sf_new_file_begin(&file, path, error));
    SF_TRY(sf_new_file_add(&file, bytes, length, error));
    status = sf_new_file_finish(&file, error);
done:
    sf_new_file_end(&file);
    return status;
}
