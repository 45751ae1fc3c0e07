/* What the tests share. */
#define _GNU_SOURCE
#include "support.h"

#include "base/file.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int says(const safer_error *error, const char *words)
{
    char plain[sizeof error->message];
    size_t length = 0;
    for (const char *c = error->message; *c; c++)
        if (*c != '`') plain[length++] = *c;
    plain[length] = '\0';
    return strstr(error->message, words) || strstr(plain, words);
}

/* ---------------------------------------------------- failing allocations */

static atomic_long countdown = -1;
static atomic_int failed;

static int fails_now(void)
{
    if (atomic_load(&countdown) < 0) return 0;
    if (atomic_fetch_sub(&countdown, 1) != 0) return 0;
    atomic_store(&failed, 1);
    return 1;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size) { return fails_now() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return fails_now() ? NULL : __real_calloc(count, size); }
void *__wrap_realloc(void *pointer, size_t size) { return fails_now() ? NULL : __real_realloc(pointer, size); }
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails_now() ? NULL : __real_aligned_alloc(alignment, size);
}

void fail_allocation(long n)
{
    atomic_store(&failed, 0);
    atomic_store(&countdown, n);
}

int allocation_failed(void) { return atomic_load(&failed); }

void check_every_allocation(safer_status (*operation)(void *context, safer_error *error), void *context)
{
    long n = 0;
    for (;; n++) {
        safer_error error = {0};
        fail_allocation(n);
        safer_status status = operation(context, &error);
        int happened = allocation_failed();
        fail_allocation(-1);
        if (!happened) {
            if (status != SAFER_OK) fail_msg("without a failing allocation: %s", error.message);
            break;
        }
        if (status != SAFER_MEMORY)
            fail_msg("allocation %ld failed, but: %s (%s)", n, safer_status_name(status), error.message);
    }
    assert_true(n > 0);
}

/* --------------------------------------------------------- temporary files */

static char folder[64];

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) fprintf(stderr, "could not remove %s\n", folder);
}

const char *temporary(const char *name)
{
    static char paths[16][512];
    static unsigned next;
    if (!folder[0]) {
        strcpy(folder, "/tmp/safer-test-XXXXXX");
        if (!mkdtemp(folder)) abort();
        atexit(remove_folder);
    }
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *write_temporary(const char *name, const void *bytes, size_t length)
{
    const char *path = temporary(name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, length, file) != length || fclose(file) != 0) abort();
    return path;
}

safer_lexicon *import_table(const char *table, const char *kernel)
{
    safer_error error = {0};
    safer_lexicon *lexicon = NULL;
    safer_lexicon_options options = safer_lexicon_options_default();
    options.table = write_temporary("table.tsv", table, strlen(table));
    options.kernel = kernel;
    assert_ok(safer_lexicon_import(&lexicon, &options, NULL, &error));
    return lexicon;
}

const char *shared_data(const char *name)
{
    static char paths[16][1024];
    static unsigned next;
    const char *root = getenv("SAFER_SHARED");
    char *path = paths[next++ % 16];
    if (root)
        snprintf(path, sizeof paths[0], "%s/%s", root, name);
    else
        snprintf(path, sizeof paths[0], "%s/../shared/data/%s", SOURCE_DIR, name);
    if (access(path, R_OK) == 0) return path;
    printf("skipped: %s is not there\n", path);
    return NULL;
}

void assert_same_file(const char *left, const char *right)
{
    safer_error error = {0};
    sf_file a = {0}, b = {0};
    assert_ok(sf_file_load(&a, left, &error));
    assert_ok(sf_file_load(&b, right, &error));
    assert_int_equal(a.length, b.length);
    assert_memory_equal(a.bytes, b.bytes, a.length);
    sf_file_free(&a);
    sf_file_free(&b);
}

/* ------------------------------------------------------------ random numbers */

static uint64_t random_state = 7;

uint32_t next_below(uint32_t bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % bound);
}

void next_seed(uint64_t seed) { random_state = seed; }

float next_float(void) { return (float)next_below(1 << 20) * 0x1p-19f - 1; }

/* ----------------------------------------------------------------- archives */

size_t pack_archive(char *out, size_t room, const char *format, const char *filter, const archive_member *members,
                    size_t count)
{
    size_t used = 0;
    struct archive *archive = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    assert_non_null(archive);
    int code = strcmp(format, "raw") == 0   ? archive_write_set_format_raw(archive)
               : strcmp(format, "tar") == 0 ? archive_write_set_format_ustar(archive)
                                            : archive_write_set_format_zip(archive);
    assert_int_equal(code, ARCHIVE_OK);
    code = strcmp(filter, "gz") == 0    ? archive_write_add_filter_gzip(archive)
           : strcmp(filter, "xz") == 0  ? archive_write_add_filter_xz(archive)
           : strcmp(filter, "zst") == 0 ? archive_write_add_filter_zstd(archive)
           : strcmp(filter, "bz2") == 0 ? archive_write_add_filter_bzip2(archive)
                                        : archive_write_add_filter_none(archive);
    assert_int_equal(code, ARCHIVE_OK);
    archive_write_set_bytes_in_last_block(archive, 1);
    assert_int_equal(archive_write_open_memory(archive, out, room, &used), ARCHIVE_OK);
    for (size_t i = 0; i < count; i++) {
        int is_folder = members[i].name[strlen(members[i].name) - 1] == '/';
        archive_entry_clear(entry);
        archive_entry_set_pathname(entry, members[i].name);
        archive_entry_set_filetype(entry, is_folder ? AE_IFDIR : AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_size(entry, (la_int64_t)members[i].length);
        assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
        if (members[i].length)
            assert_int_equal(archive_write_data(archive, members[i].bytes, members[i].length), members[i].length);
    }
    assert_int_equal(archive_write_close(archive), ARCHIVE_OK);
    archive_write_free(archive);
    archive_entry_free(entry);
    return used;
}

/* ------------------------------------------------------------------ stopping */

/* The clock of progress, which may hurry: by 0.11 seconds whenever it is looked at. */
static atomic_int clock_hurries;
static atomic_long clock_ahead; /* in units of 0.11 seconds */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    const int result = __real_clock_gettime(clock, now);
    if (clock != CLOCK_MONOTONIC) return result;
    const long ahead = 110000000L * (atomic_fetch_add(&clock_ahead, atomic_load(&clock_hurries)));
    now->tv_sec += (now->tv_nsec + ahead) / 1000000000;
    now->tv_nsec = (now->tv_nsec + ahead) % 1000000000;
    return result;
}

int stop_run(void *context, const char *stage, uint64_t done, uint64_t total)
{
    stopper *s = context;
    atomic_store(&clock_hurries, s->slow);
    snprintf(s->last, sizeof s->last, "%s", stage);
    s->done = done;
    s->total = total;
    return (s->when && strstr(stage, s->when) != NULL) || (s->at && done >= s->at);
}

sf_digest digest_for(uint64_t number)
{
    sf_digest digest = {0};
    assert_int_equal(sf_sha256(&digest, &number, sizeof number, NULL), SAFER_OK);
    return digest;
}

/* Every run of a test has the same date, so that files can be compared. */
__attribute__((constructor)) static void fix_date(void) { setenv("SOURCE_DATE_EPOCH", "1700000000", 1); }
