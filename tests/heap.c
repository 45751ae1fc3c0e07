/* What a server has allocated and not freed: a module that scripts/soak-serve preloads into it, since the memory that
 * the system counts also rises and falls with what the allocator keeps.
 *
 * The number is written into the file HEAP_FILE, 8 bytes, ten times a second. With an address sanitizer it is the
 * sanitizer's count, else that of glibc (malloc_info). With HEAP_LEAK, so many bytes are allocated for every answer and
 * kept, where LeakSanitizer cannot see a leak: to show that soak-serve does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

/* The sizes of all heaps stand behind those of each, at the end of the page. */
static size_t last_size(const char *page, const char *element)
{
    const char *at = NULL;
    for (const char *next = page; (next = strstr(next, element)); next++) at = next;
    at = at ? strstr(at, "size=\"") : NULL;
    return at ? (size_t)strtoull(at + 6, NULL, 10) : 0;
}

static size_t in_use(void)
{
    char *page = NULL;
    size_t length = 0;
    if (__sanitizer_get_current_allocated_bytes) return __sanitizer_get_current_allocated_bytes();
    FILE *out = open_memstream(&page, &length);
    if (!out) return 0;
    malloc_info(0, out);
    fclose(out);
    const size_t used = last_size(page, "<system type=\"current\"") + last_size(page, "<total type=\"mmap\"") -
                        last_size(page, "<total type=\"fast\"") - last_size(page, "<total type=\"rest\"");
    free(page);
    return used;
}

static void *report(void *path)
{
    sigset_t all;
    sigfillset(&all); /* signals are for the others */
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (;;) {
        const int64_t used = (int64_t)in_use();
        if (pwrite(fd, &used, sizeof used, 0) != sizeof used) return NULL;
        usleep(100000);
    }
}

__attribute__((constructor)) static void start(void)
{
    pthread_t thread;
    if (getenv("HEAP_FILE")) pthread_create(&thread, NULL, report, getenv("HEAP_FILE"));
}

/* --------------------------------------------------------------------- a leak */

typedef struct kept {
    struct kept *next;
} kept;

static kept *all_kept;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum MHD_Result MHD_queue_response(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response)
{
    static enum MHD_Result (*queue)(struct MHD_Connection *, unsigned, struct MHD_Response *);
    const char *leak = getenv("HEAP_LEAK");
    pthread_mutex_lock(&lock);
    if (!queue) *(void **)&queue = dlsym(RTLD_NEXT, "MHD_queue_response");
    kept *block = leak ? calloc(1, sizeof *block + strtoull(leak, NULL, 10)) : NULL;
    if (block) {
        block->next = all_kept;
        all_kept = block;
    }
    pthread_mutex_unlock(&lock);
    return queue(connection, status, response);
}
