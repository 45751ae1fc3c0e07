/* A folder as in aclImdb: one folder per class, one .txt file per text, the same inside an
 * archive. The id is CLASS/NAME without ".txt". Classes come in byte order, files in
 * natural order (2_7 before 10_3), whatever order the disk or the archive has.
 *
 * The texts are byte-exact but for HTML line breaks, which become spaces. The folder
 * `unsup` (reviews without a label), hidden files and all that is not CLASS/NAME.txt
 * are passed over. The user's side is docs/data.md. */
#define _GNU_SOURCE
#include "data/loader.h"

#include "base/file.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ------------------------------------------------------------------ order */

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* Runs of digits by value, other bytes one by one; bytes alone break a tie. */
static int natural_compare(const char *a, const char *b)
{
    const char *p = a, *q = b;
    while (*p && *q) {
        if (is_digit(*p) && is_digit(*q)) {
            p += strspn(p, "0");
            q += strspn(q, "0");
            size_t m = strspn(p, "0123456789"), n = strspn(q, "0123456789");
            int order = m != n ? (m < n ? -1 : 1) : memcmp(p, q, m);
            if (order) return order;
            p += m;
            q += n;
        } else if (*p == *q) {
            p++;
            q++;
        } else {
            return (unsigned char)*p < (unsigned char)*q ? -1 : 1;
        }
    }
    if (*p || *q) return *p ? 1 : -1;
    return strcmp(a, b);
}

/* Ids are CLASS/NAME: the class by bytes, then the name. */
static int id_compare(const char *a, const char *b)
{
    size_t m = strcspn(a, "/"), n = strcspn(b, "/");
    int order = memcmp(a, b, m < n ? m : n);
    if (order) return order;
    if (m != n) return m < n ? -1 : 1;
    return natural_compare(a + m, b + n);
}

/* ------------------------------------------------------------------ names */

static int is_class(const char *name, size_t length)
{
    return length && *name != '.' && !(length == 5 && memcmp(name, "unsup", 5) == 0);
}

/* The length of a text file's name without ".txt", or 0 when it is not one. */
static size_t stem_length(const char *name)
{
    size_t length = strlen(name);
    return length > 4 && *name != '.' && strcmp(name + length - 4, ".txt") == 0 ? length - 4 : 0;
}

static int is_split(const char *name, size_t length)
{
    return (length == 5 && memcmp(name, "train", 5) == 0) || (length == 4 && memcmp(name, "test", 4) == 0);
}

/* `root` holds train/ and test/, each with classes of its own. */
static safer_status fail_split(const char *root, char separator, safer_error *error)
{
    size_t length = strlen(root);
    while (length > 1 && root[length - 1] == '/') length--;
    return sf_fail(error, SAFER_INPUT, "%s holds train and test folders, not classes; name %.*s%ctrain or %.*s%ctest",
                   root, (int)length, root, separator, (int)length, root, separator);
}

/* Adds the text of one file; loader->name is the file's. */
static safer_status add_file(sf_loader *loader, sf_span id, sf_span text, safer_error *error)
{
    safer_status status;
    sf_buffer name = {0};
    size_t mark = sf_mark_length(text.bytes, text.length);
    text.bytes += mark;
    text.length -= mark;
    /* The repaired id must outlive the repair of the text. */
    SF_TRY(sf_loader_check(loader, &id, 0, error));
    if (id.bytes == loader->repaired.bytes) {
        name = loader->repaired;
        loader->repaired = (sf_buffer){0};
    }
    SF_TRY(sf_loader_check(loader, &text, 0, error));
    sf_span label = {id.bytes, (size_t)((const char *)memchr(id.bytes, '/', id.length) - id.bytes)};
    SF_TRY(sf_loader_add(loader, id, label, text, 0, error));
done:
    sf_buffer_free(&name);
    return status;
}

/* ---------------------------------------------------------------- on disk */

/* Ids, terminated, one after the other, and where each begins. */
typedef struct list {
    sf_buffer names;
    size_t *begins;
    size_t count, capacity;
} list;

static safer_status list_add(list *all, const char *class, const char *name, size_t length, safer_error *error)
{
    size_t begin = all->names.length;
    if (sf_grow(&all->begins, &all->capacity, all->count + 1, sizeof *all->begins) ||
        sf_buffer_format(&all->names, "%s/%.*s", class, (int)length, name) || sf_buffer_add_byte(&all->names, '\0'))
        return sf_fail_memory(error);
    all->begins[all->count++] = begin;
    return SAFER_OK;
}

static safer_status open_folder(DIR **out, const char *path, safer_error *error)
{
    *out = opendir(path);
    if (*out) return SAFER_OK;
    return errno == ENOMEM ? sf_fail_memory(error) : sf_fail_errno(error, "open the folder", path);
}

/* An entry that should be a text or a class, but nobody can say what it is. */
static safer_status fail_entry(const char *path, const struct dirent *entry, safer_error *error)
{
    const int reason = errno; /* of next_entry */
    sf_buffer name = {0};
    safer_status status;
    if (sf_buffer_format(&name, "%s/%s", path, entry->d_name)) return sf_fail_memory(error);
    errno = reason;
    if (reason == ENOENT || reason == ELOOP)
        status = sf_fail(error, SAFER_INPUT, "%s is a link to what is not there; mend or remove it", name.bytes);
    else
        status = sf_fail_errno(error, "examine", name.bytes);
    sf_buffer_free(&name);
    return status;
}

/* The next entry and its kind (S_IFDIR, S_IFREG, ...), with *entry NULL at the end. A
 * link counts as what it points to; of one that points nowhere the kind is 0. */
static safer_status next_entry(DIR *folder, const char *path, struct dirent **entry, mode_t *kind, safer_error *error)
{
    struct stat info;
    for (;;) {
        errno = 0;
        *entry = readdir(folder);
        if (!*entry) return errno ? sf_fail_errno(error, "read the folder", path) : SAFER_OK;
        if ((*entry)->d_name[0] == '.') continue;
        *kind = fstatat(dirfd(folder), (*entry)->d_name, &info, 0) == 0 ? info.st_mode & S_IFMT : 0;
        return SAFER_OK;
    }
}

/* Lists the texts of one class folder; *folders counts the folders inside it. */
static safer_status list_class(list *all, const char *path, const char *class, size_t *folders, safer_error *error)
{
    safer_status status;
    DIR *folder = NULL;
    struct dirent *entry;
    mode_t kind = 0;
    *folders = 0;
    SF_TRY(open_folder(&folder, path, error));
    for (;;) {
        SF_TRY(next_entry(folder, path, &entry, &kind, error));
        if (!entry) break;
        size_t length = stem_length(entry->d_name);
        if (!kind && length) {
            status = fail_entry(path, entry, error);
            goto done;
        }
        if (kind == S_IFDIR) ++*folders;
        if (kind == S_IFREG && length) SF_TRY(list_add(all, class, entry->d_name, length, error));
    }
done:
    if (folder) closedir(folder);
    return status;
}

static safer_status list_all(list *all, const char *path, safer_error *error)
{
    safer_status status;
    DIR *folder = NULL;
    struct dirent *entry;
    mode_t kind = 0;
    sf_buffer inner = {0};
    SF_TRY(open_folder(&folder, path, error));
    for (;;) {
        SF_TRY(next_entry(folder, path, &entry, &kind, error));
        if (!entry) break;
        size_t length = strlen(entry->d_name), folders;
        if (!kind && is_class(entry->d_name, length)) {
            status = fail_entry(path, entry, error);
            goto done;
        }
        if (kind != S_IFDIR || !is_class(entry->d_name, length)) continue;
        sf_buffer_clear(&inner);
        if (sf_buffer_format(&inner, "%s/%s", path, entry->d_name)) {
            status = sf_fail_memory(error);
            goto done;
        }
        SF_TRY(list_class(all, inner.bytes, entry->d_name, &folders, error));
        if (folders && is_split(entry->d_name, length)) {
            status = fail_split(path, '/', error);
            goto done;
        }
    }
done:
    if (folder) closedir(folder);
    sf_buffer_free(&inner);
    return status;
}

static int pointer_compare(const void *a, const void *b)
{
    return id_compare(*(const char *const *)a, *(const char *const *)b);
}

safer_status sf_read_folder(sf_loader *loader, const char *path, safer_error *error)
{
    safer_status status;
    list all = {0};
    sf_buffer file_name = {0};
    sf_file file = {0};
    const char **ids = NULL, *name = loader->name;
    loader->strip_breaks = 1;
    SF_TRY(list_all(&all, path, error));
    ids = sf_alloc(all.count, sizeof *ids);
    if (!ids) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t i = 0; i < all.count; i++) ids[i] = all.names.bytes + all.begins[i];
    qsort(ids, all.count, sizeof *ids, pointer_compare);
    for (size_t i = 0; i < all.count; i++) {
        sf_buffer_clear(&file_name);
        if (sf_buffer_format(&file_name, "%s/%s.txt", path, ids[i])) {
            status = sf_fail_memory(error);
            goto done;
        }
        loader->name = file_name.bytes;
        /* Mapped, not unpacked: a text that happens to look compressed is still a text. */
        SF_TRY(sf_file_load(&file, file_name.bytes, error));
        SF_TRY(add_file(loader, (sf_span){ids[i], strlen(ids[i])}, (sf_span){file.bytes, file.length}, error));
        sf_file_free(&file);
    }
done:
    loader->name = name;
    sf_file_free(&file);
    sf_buffer_free(&file_name);
    sf_buffer_free(&all.names);
    free(all.begins);
    free(ids);
    return status;
}

/* ----------------------------------------------------------- in an archive */

typedef struct visitor {
    sf_loader *loader;
    const char *root;  /* what the user called the folder */
    int whole_archive; /* so that what is inside comes after a ':' */
    size_t files;
    sf_buffer file_name;
} visitor;

static safer_status visit(void *context, const char *name, const char *bytes, size_t length, safer_error *error)
{
    visitor *v = context;
    v->files++;
    while (strncmp(name, "./", 2) == 0) name += 2;
    size_t class_length = strcspn(name, "/");
    const char *file = name + class_length + (name[class_length] == '/');
    char separator = v->whole_archive ? ':' : '/';
    if (is_split(name, class_length) && strchr(file, '/')) return fail_split(v->root, separator, error);
    size_t stem = strchr(file, '/') ? 0 : stem_length(file);
    if (file == name + class_length || stem == 0 || !is_class(name, class_length)) return SAFER_OK;

    const char *outer = v->loader->name;
    sf_buffer_clear(&v->file_name);
    if (sf_buffer_format(&v->file_name, "%s%c%s", v->root, separator, name)) return sf_fail_memory(error);
    v->loader->name = v->file_name.bytes;
    sf_span id = {name, (size_t)(file - name) + stem};
    safer_status status = add_file(v->loader, id, (sf_span){bytes, length}, error);
    v->loader->name = outer;
    return status;
}

/* A row beside its id, for sorting. */
typedef struct keyed {
    const char *id;
    sf_row row;
} keyed;

static int keyed_compare(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    int order = id_compare(x->id, y->id);
    if (order) return order;
    return x->row.id < y->row.id ? -1 : x->row.id > y->row.id; /* the same name twice: archive order */
}

/* Also drops all but the last of files with the same name: a tar archive may have been
 * added to, and that is what unpacking it would leave. (Repaired names may agree though
 * the files' own do not; then all stay.) */
static safer_status sort_rows(safer_data *data, int repair, safer_error *error)
{
    keyed *sorted = sf_alloc(data->count, sizeof *sorted);
    if (!sorted) return sf_fail_memory(error);
    for (size_t i = 0; i < data->count; i++) sorted[i] = (keyed){data->arena.bytes + data->rows[i].id, data->rows[i]};
    qsort(sorted, data->count, sizeof *sorted, keyed_compare);
    size_t kept = 0;
    for (size_t i = 0; i < data->count; i++) {
        int replaced = !repair && i + 1 < data->count && strcmp(sorted[i].id, sorted[i + 1].id) == 0;
        if (!replaced) data->rows[kept++] = sorted[i].row;
    }
    data->count = kept;
    free(sorted);
    return SAFER_OK;
}

safer_status sf_read_archive_folder(sf_loader *loader, const char *archive, const char *prefix, size_t *files,
                                    safer_error *error)
{
    safer_status status;
    int strip_breaks = loader->strip_breaks;
    visitor v = {.loader = loader, .root = loader->name, .whole_archive = !prefix};
    loader->strip_breaks = 1;
    SF_TRY(sf_archive_walk(archive, prefix, visit, &v, error));
    SF_TRY(sort_rows(loader->data, loader->repair, error));
    *files = v.files;
done:
    loader->strip_breaks = strip_breaks; /* no files: it may turn out to be something else */
    sf_buffer_free(&v.file_name);
    return status;
}
