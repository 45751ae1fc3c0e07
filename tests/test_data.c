/* Data sets: folders, archives, labels, samples, failing allocations and the real data.
 * The file formats are in test_data_formats.c. */
#define _GNU_SOURCE
#include "test_data.h"

#include "base/buffer.h"
#include "base/rng.h"
#include "data/loader.h"

#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------ folders to be read */

/* A file of a folder or an archive. */
typedef struct entry {
    const char *name, *bytes;
} entry;

/* A file of one entry or of several, packed. */
static const char *pack_file(const char *name, const char *format, const char *filter, const entry *members,
                             size_t count)
{
    archive_member known[16];
    size_t room = 1 << 16;
    assert_true(count <= COUNT(known));
    for (size_t i = 0; i < count; i++) {
        known[i] = (archive_member){members[i].name, members[i].bytes, strlen(members[i].bytes)};
        room += 2 * known[i].length;
    }
    char *packed = malloc(room);
    assert_non_null(packed);
    const char *path = write_temporary(name, packed, pack_archive(packed, room, format, filter, known, count));
    free(packed);
    return path;
}

static const char *inside(const char *archive, const char *name)
{
    static char paths[4][600];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s:%s", archive, name);
    return path;
}

/* A folder of texts as aclImdb has them, and a few things that are not texts. */
static const entry tree[] = {
    {"pos/10_7.txt", "ten<br />line<br/>two<br>three"},
    {"neg/2_1.txt", "no\n"},
    {"pos/2_9.txt", "two < three <b> <br"},
    {"unsup/0_0.txt", "never read"},
    {"pos/notes.md", "not a text"},
    {"pos/.hidden.txt", "not a text"},
    {"pos/deep/0_1.txt", "not a text"},
    {"urls_pos.txt", "not a text"},
    {"neg/10_2.txt", "\xef\xbb\xbf"
                     "after a mark"},
    {"neg/2_10.txt", ""},
};
#define TREE_ROWS \
    {"neg/2_1", "neg", "no\n", 0}, {"neg/2_10", "neg", "", 0}, {"neg/10_2", "neg", "after a mark", 0}, \
        {"pos/2_9", "pos", "two < three <b> <br", 0}, \
    { \
        "pos/10_7", "pos", "ten line two three", 0 \
    }

static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
}

static const char *make_tree(const char *name, const entry *members, size_t count)
{
    const char *root = temporary(name);
    for (size_t i = 0; i < count; i++) {
        char path[1100];
        snprintf(path, sizeof path, "%s/%s", root, members[i].name);
        make_folders(path);
        FILE *file = fopen(path, "wb");
        if (!file || fputs(members[i].bytes, file) < 0 || fclose(file) != 0) abort();
    }
    return root;
}

/* ---------------------------------------------------------------- folders */

static void test_folder(void **state)
{
    (void)state;
    const char *root = make_tree("imdb", tree, COUNT(tree));
    check_file(root, NULL, ROWS(TREE_ROWS));
    check_file(root, OPTIONS(.format = SAFER_FORMAT_FOLDER), ROWS(TREE_ROWS));

    char path[700];
    snprintf(path, sizeof path, "%s/", root);
    check_file(path, NULL, ROWS(TREE_ROWS));
    snprintf(path, sizeof path, "%s/pos/broken", root); /* would not be a text, nor would the next one */
    assert_int_equal(symlink("/nowhere/at/all", path), 0);
    snprintf(path, sizeof path, "%s/pos/.broken.txt", root);
    assert_int_equal(symlink("/nowhere/at/all", path), 0);
    snprintf(path, sizeof path, "%s/pos/pipe.txt", root); /* not a file: must not be waited for */
    assert_int_equal(mkfifo(path, 0600), 0);
    check_file(root, NULL, ROWS(TREE_ROWS));
    check_failure(root, OPTIONS(.format = SAFER_FORMAT_CSV), SAFER_INPUT, "imdb is a folder, not a file");

    /* Numbers by value, zeros and all, then bytes; classes by bytes, labels by value. */
    const entry many[] = {{"9/x10.txt", "e"}, {"9/x9.txt", "c"},   {"9/x010.txt", "d"}, {"10/b.txt", "b"},
                          {"10/B.txt", "a"},  {"9/x10y.txt", "f"}, {"9/xa.txt", "g"}};
    safer_data *data = load(make_tree("many", many, COUNT(many)), NULL);
    check_rows(data,
               ROWS({"10/B", "10", "a", 0}, {"10/b", "10", "b", 0}, {"9/x9", "9", "c", 0}, {"9/x010", "9", "d", 0},
                    {"9/x10", "9", "e", 0}, {"9/x10y", "9", "f", 0}, {"9/xa", "9", "g", 0}));
    check_labels(data, LABELS("9", "10"));
    safer_data_free(data);
}

/* What cannot be read is said, not left out. */
static void test_folder_links(void **state)
{
    (void)state;
    const entry members[] = {{"pos/1.txt", "a"}, {"neg/1.txt", "b"}};
    const char *root = make_tree("links", members, COUNT(members));
    char path[700];
    snprintf(path, sizeof path, "%s/pos/2.txt", root);
    assert_int_equal(symlink("../neg/1.txt", path), 0);
    check_file(root, NULL, ROWS({"neg/1", "neg", "b", 0}, {"pos/1", "pos", "a", 0}, {"pos/2", "pos", "b", 0}));
    unlink(path);
    assert_int_equal(symlink("/nowhere/at/all", path), 0);
    check_failure(root, NULL, SAFER_INPUT, "links/pos/2.txt is a link to what is not there");
    unlink(path);
    assert_int_equal(symlink("2.txt", path), 0);
    check_failure(root, NULL, SAFER_INPUT, "links/pos/2.txt is a link to what is not there");
    unlink(path);
    snprintf(path, sizeof path, "%s/other", root);
    assert_int_equal(symlink("/nowhere/at/all", path), 0);
    check_failure(root, NULL, SAFER_INPUT, "links/other is a link to what is not there");
    unlink(path);
    if (geteuid() == 0) return; /* root reads everything */
    snprintf(path, sizeof path, "%s/pos/1.txt", root);
    chmod(path, 0);
    check_failure(root, NULL, SAFER_SYSTEM, "links/pos/1.txt: Permission denied");
    chmod(path, 0600);
    snprintf(path, sizeof path, "%s/neg", root);
    chmod(path, 0600); /* names can be read, but not what they are */
    check_failure(root, NULL, SAFER_SYSTEM, "links/neg/1.txt: Permission denied");
    chmod(path, 0700);
}

static void test_folder_errors(void **state)
{
    (void)state;
    const entry acl[] = {{"train/pos/0_9.txt", "a"},
                         {"train/neg/0_1.txt", "b"},
                         {"test/pos/0_8.txt", "c"},
                         {"train/urls_pos.txt", "u"},
                         {"imdb.vocab", "v"}};
    const char *root = make_tree("acl", acl, COUNT(acl));
    char words[2000], path[700];
    snprintf(words, sizeof words, "%s holds train and test folders, not classes; name %s/train or %s/test", root, root,
             root);
    check_failure(root, NULL, SAFER_INPUT, words);
    snprintf(path, sizeof path, "%s/train", root);
    check_file(path, NULL, ROWS({"neg/0_1", "neg", "b", 0}, {"pos/0_9", "pos", "a", 0}));
    snprintf(path, sizeof path, "%s/train/pos", root);
    check_failure(path, NULL, SAFER_INPUT, "train/pos holds no rows: expected files CLASS/NAME.txt below it");

    /* Classes that merely have those names are classes. */
    const entry odd[] = {{"train/a.txt", "locomotive"}, {"test/b.txt", "exam"}};
    check_file(make_tree("odd", odd, COUNT(odd)), NULL,
               ROWS({"test/b", "test", "exam", 0}, {"train/a", "train", "locomotive", 0}));

    const entry bad[] = {{"pos/1.txt", "fine"}, {"pos/2.txt", "caf\xe9"}};
    root = make_tree("bad", bad, COUNT(bad));
    check_failure(root, NULL, SAFER_INPUT, "bad/pos/2.txt: not valid UTF-8 at byte offset 3");
    check_file(root, OPTIONS(.repair = 1), ROWS({"pos/1", "pos", "fine", 0}, {"pos/2", "pos", "caf\xef\xbf\xbd", 0}));

    const entry name[] = {{"p\xff/\xfe.txt", "caf\xe9"}};
    root = make_tree("name", name, COUNT(name));
    check_failure(root, NULL, SAFER_INPUT, "not valid UTF-8 at byte offset 1 of the row (0xFF)");
    check_file(root, OPTIONS(.repair = 1), ROWS({"p\xef\xbf\xbd/\xef\xbf\xbd", "p\xef\xbf\xbd", "caf\xef\xbf\xbd", 0}));

    check_failure(temporary("nowhere"), NULL, SAFER_SYSTEM, "nowhere: No such file");
    check_failure(temporary("nowhere"), OPTIONS(.format = SAFER_FORMAT_FOLDER), SAFER_SYSTEM, "nowhere: No such file");
}

/* -------------------------------------------------- packed files, archives */

static void test_packed(void **state)
{
    (void)state;
    static const char *const filters[] = {"none", "gz", "xz", "zst", "bz2"};
    static const char tsv[] = "x1\t1\tone\nx2\t0\ttwo\n", csv[] = "text,label\na,1\n", jsonl[] = "{\"text\":\"j\"}\n",
                      fast[] = "__label__f t\n";
    for (size_t i = 0; i < COUNT(filters); i++) {
        char name[64];
        const char *dot = i ? "." : "", *ending = i ? filters[i] : "";
        snprintf(name, sizeof name, "p.tsv%s%s", dot, ending);
        check_file(pack_file(name, "raw", filters[i], (const entry[]){{"data", tsv}}, 1), NULL,
                   ROWS({"x1", "1", "one", 0}, {"x2", "0", "two", 0}));
        snprintf(name, sizeof name, "P.CSV%s%s", dot, ending);
        check_file(pack_file(name, "raw", filters[i], (const entry[]){{"data", csv}}, 1), NULL,
                   ROWS({"1", "1", "a", 0}));
        snprintf(name, sizeof name, "p.jsonl%s%s", dot, ending);
        check_file(pack_file(name, "raw", filters[i], (const entry[]){{"data", jsonl}}, 1), NULL,
                   ROWS({"1", NULL, "j", 0}));
        snprintf(name, sizeof name, "p.txt%s%s", dot, ending);
        check_file(pack_file(name, "raw", filters[i], (const entry[]){{"data", fast}}, 1), NULL,
                   ROWS({"1", "f", "t", 0}));
        snprintf(name, sizeof name, "p%zu", i); /* no ending at all */
        check_file(pack_file(name, "raw", filters[i], (const entry[]){{"data", tsv}}, 1), NULL,
                   ROWS({"x1", "1", "one", 0}, {"x2", "0", "two", 0}));

        const entry members[] = {{"d/a.tsv", tsv}, {"d/b.jsonl", jsonl}, {"d/c", csv}, {"d/e", fast}};
        snprintf(name, sizeof name, "t.tar%s%s", dot, ending);
        const char *tar = pack_file(name, "tar", filters[i], members, COUNT(members));
        check_file(inside(tar, "d/a.tsv"), NULL, ROWS({"x1", "1", "one", 0}, {"x2", "0", "two", 0}));
        check_file(inside(tar, "d/b.jsonl"), NULL, ROWS({"1", NULL, "j", 0}));
        check_file(inside(tar, "d/c"), OPTIONS(.format = SAFER_FORMAT_CSV), ROWS({"1", "1", "a", 0}));
        check_file(inside(tar, "d/e"), NULL, ROWS({"1", "f", "t", 0})); /* neither a folder nor an ending */
        check_failure(inside(tar, "d/c"), NULL, SAFER_INPUT, ":d/c by its name or contents; give format");
        check_failure(inside(tar, "d/none.tsv"), NULL, SAFER_INPUT,
                      "has no member d/none.tsv (it has: d/a.tsv, d/b.jsonl");
        check_failure(inside(tar, "x/none"), NULL, SAFER_INPUT, "has no member x/none");
        check_failure(inside(tar, "d"), NULL, SAFER_INPUT, ":d holds no rows: expected files CLASS/NAME.txt");
        check_failure(tar, NULL, SAFER_INPUT, "holds 4 files; name one as");
        snprintf(name, sizeof name, "one.jsonl.tar%s%s", dot, ending);
        check_file(pack_file(name, "tar", filters[i], members + 1, 1), NULL, ROWS({"1", NULL, "j", 0}));
    }
    const char *zip = pack_file("z.zip", "zip", "none", (const entry[]){{"a.tsv", tsv}, {"b.csv", csv}}, 2);
    check_file(inside(zip, "a.tsv"), NULL, ROWS({"x1", "1", "one", 0}, {"x2", "0", "two", 0}));
    check_file(inside(zip, "b.csv"), NULL, ROWS({"1", "1", "a", 0}));
    check_file(pack_file("z.csv.zip", "zip", "none", (const entry[]){{"b", csv}}, 1), NULL, ROWS({"1", "1", "a", 0}));

    const char *plain = write_temporary("plain.tsv", tsv, sizeof tsv - 1);
    check_failure(inside(plain, "a.tsv"), NULL, SAFER_INPUT, "plain.tsv is not an archive, so it has no member a.tsv");
    check_failure(inside(plain, "a"), NULL, SAFER_INPUT, "plain.tsv is not an archive");
    check_failure(plain, OPTIONS(.format = SAFER_FORMAT_FOLDER), SAFER_INPUT, "plain.tsv is not an archive");
}

/* A packed file that was cut off must not pass for a shorter data set. */
static void test_truncated(void **state)
{
    (void)state;
    static const char *const filters[] = {"gz", "xz", "zst", "bz2"};
    sf_buffer text = {0};
    for (unsigned i = 0; i < 20000; i++)
        assert_int_equal(sf_buffer_format(&text, "%u\t%u\t%x\n", i, i % 7, i * 2654435761u), 0);
    for (size_t i = 0; i < COUNT(filters); i++) {
        char name[64], bytes[1 << 15];
        snprintf(name, sizeof name, "cut.tsv.%s", filters[i]);
        const char *path = pack_file(name, "raw", filters[i], (const entry[]){{"data", text.bytes}}, 1);
        safer_data *data = load(path, NULL);
        assert_int_equal(safer_data_size(data), 20000);
        safer_data_free(data);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        assert_int_equal(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
        fclose(file);
        check_failure(write_temporary(name, bytes, sizeof bytes), NULL, SAFER_INPUT, "cannot unpack");
        check_failure(pack_file(name, "raw", filters[i], (const entry[]){{"data", ""}}, 1), NULL, SAFER_INPUT,
                      "holds no rows");
    }
    sf_buffer_free(&text);
}

static void test_archive_folder(void **state)
{
    (void)state;
    entry members[COUNT(tree) + 1];
    char names[COUNT(tree)][64];
    for (size_t i = 0; i < COUNT(tree); i++) {
        snprintf(names[i], sizeof names[i], "aclImdb/train/%s", tree[i].name);
        members[i] = (entry){names[i], tree[i].bytes};
    }
    members[COUNT(tree)] = (entry){"aclImdb/test/pos/0_1.txt", "of the other part"};
    const char *archives[] = {pack_file("acl.tar.gz", "tar", "gz", members, COUNT(members)),
                              pack_file("acl.zip", "zip", "none", members, COUNT(members))};
    for (size_t i = 0; i < COUNT(archives); i++) {
        check_file(inside(archives[i], "aclImdb/train"), NULL, ROWS(TREE_ROWS));
        check_file(inside(archives[i], "aclImdb/train/"), NULL, ROWS(TREE_ROWS));
        check_file(inside(archives[i], "aclImdb/test"), OPTIONS(.format = SAFER_FORMAT_FOLDER),
                   ROWS({"pos/0_1", "pos", "of the other part", 0}));
        char words[2000], *root = strdup(inside(archives[i], "aclImdb"));
        snprintf(words, sizeof words, "%s holds train and test folders, not classes; name %s/train or %s/test", root,
                 root, root);
        check_failure(root, NULL, SAFER_INPUT, words);
        free(root);
        check_failure(archives[i], OPTIONS(.format = SAFER_FORMAT_FOLDER), SAFER_INPUT,
                      "holds no rows: expected files CLASS/NAME.txt");
    }
    /* What was sorted after reading is sampled right. */
    check_file(inside(archives[0], "aclImdb/train"), OPTIONS(.sample = "every:2"),
               ROWS({"neg/2_1", "neg", "no\n", 0}, {"neg/10_2", "neg", "after a mark", 0},
                    {"pos/2_9", "pos", "two < three <b> <br", 0}));
    check_file(inside(archives[0], "aclImdb/train"), OPTIONS(.limit = 4),
               ROWS({"neg/2_1", "neg", "no\n", 0}, {"neg/2_10", "neg", "", 0}, {"neg/10_2", "neg", "after a mark", 0},
                    {"pos/2_9", "pos", "two < three <b> <br", 0}));
    /* Added to an archive again, a file replaces the one before. */
    const entry twice[] = {{"a/1.txt", "old"}, {"a/2.txt", "other"}, {"a/1.txt", "new"}};
    check_file(pack_file("twice.tar", "tar", "none", twice, COUNT(twice)), OPTIONS(.format = SAFER_FORMAT_FOLDER),
               ROWS({"a/1", "a", "new", 0}, {"a/2", "a", "other", 0}));
    const char *whole = pack_file("whole.tar", "tar", "none", tree, COUNT(tree));
    check_file(whole, OPTIONS(.format = SAFER_FORMAT_FOLDER), ROWS(TREE_ROWS));
    const entry split[] = {{"./train/pos/0_1.txt", "a"}};
    check_failure(pack_file("split.tar", "tar", "none", split, 1), OPTIONS(.format = SAFER_FORMAT_FOLDER), SAFER_INPUT,
                  "split.tar:train or ");
    const entry bad[] = {{"d/pos/1.txt", "caf\xe9"}};
    check_failure(inside(pack_file("bad.tar", "tar", "none", bad, 1), "d"), NULL, SAFER_INPUT,
                  "bad.tar:d/pos/1.txt: not valid UTF-8 at byte offset 3");
}

static void test_pipe(void **state)
{
    (void)state;
    int ends[2];
    char path[64];
    static const char tsv[] = "a\tb\tc\n";
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], tsv, sizeof tsv - 1), sizeof tsv - 1);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    safer_data *data = load(path, OPTIONS(.on_disk = 1));
    check_rows(data, ROWS({"a", "b", "c", 0})); /* what cannot be read twice is kept */
    safer_data_free(data);
    close(ends[0]);
}

/* ---------------------------------------------------------------- on the disk */

enum { LINES = 20000 }; /* more than one block of the file */

/* Rows of about 30 bytes, with the letter in each. */
static const char *write_lines(const char *name, char letter)
{
    char *text = malloc(LINES * 40);
    size_t length = 0;
    for (int i = 0; i < LINES; i++)
        length += (size_t)sprintf(text + length, "%d\t%d\ttext %06d of the %c\n", i, i % 3, i, letter);
    const char *path = write_temporary(name, text, length);
    free(text);
    return path;
}

/* In any order, also of a sample, a row is that of memory. */
static void test_on_disk(void **state)
{
    static const char *const samples[] = {NULL, "every:7", "random:500"};
    safer_error error;
    (void)state;
    const char *path = write_lines("rows.tsv", 'a');
    for (size_t s = 0; s < COUNT(samples); s++) {
        safer_data_options options = safer_data_options_default();
        options.sample = samples[s];
        options.limit = s ? 400 : 0;
        safer_data *memory = load(path, &options);
        options.on_disk = 1;
        safer_data *disk = load(path, &options);
        safer_reader *reader = NULL;
        const size_t count = safer_data_size(memory);
        assert_int_equal(safer_data_size(disk), count);
        assert_string_equal(safer_data_sha256(disk), safer_data_sha256(memory));
        for (size_t i = 0; i < count; i++) {
            const size_t k = i * 7919 % count; /* a prime: every row once, far from the one before */
            const safer_row there = safer_data_row(memory, k);
            safer_row row;
            assert_ok(safer_data_read(&row, &reader, disk, k, &error));
            assert_string_equal(row.id, there.id);
            assert_string_equal(row.text, there.text);
            assert_int_equal(row.label, there.label);
        }
        safer_reader_free(reader);
        safer_data_free(disk);
        safer_data_free(memory);
    }
}

/* A file that changes after it was loaded is noticed by what it holds, whatever its time says. */
static void test_changed(void **state)
{
    safer_error error;
    safer_row row;
    safer_reader *reader = NULL;
    safer_data_options options = safer_data_options_default();
    struct stat before;
    (void)state;
    options.on_disk = 1;
    const char *path = write_lines("changed.tsv", 'a');
    safer_data *data = load(path, &options);
    assert_int_equal(stat(path, &before), 0);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, -3, SEEK_END), 0);
    assert_int_equal(fputc('b', file), 'b');
    assert_int_equal(fclose(file), 0);
    const struct timespec times[] = {before.st_atim, before.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_ok(safer_data_read(&row, &reader, data, 0, &error));
    assert_fails(safer_data_read(&row, &reader, data, LINES - 1, &error), SAFER_INPUT, "was changed while it was read");
    assert_non_null(strstr(error.message, path));
    assert_int_equal(truncate(path, 100), 0);
    safer_reader_free(reader);
    reader = NULL;
    assert_fails(safer_data_read(&row, &reader, data, 0, &error), SAFER_INPUT, "was changed while it was read");
    safer_reader_free(reader);
    safer_data_free(data);

    path = write_lines("replaced.tsv", 'a'); /* another file of that name is not ours */
    data = load(path, &options);
    assert_int_equal(rename(write_lines("other.tsv", 'b'), path), 0);
    reader = NULL;
    assert_ok(safer_data_read(&row, &reader, data, LINES - 1, &error));
    assert_int_equal(row.text[row.text_length - 1], 'a');
    safer_reader_free(reader);
    safer_data_free(data);
}

/* ----------------------------------------------------------------- labels */

static void test_labels(void **state)
{
    (void)state;
    /* In ascending order; where two have one value ("01" and "1"), bytes decide. */
    static const char *const order[] = {
        "-99999999999999999999999", "-10", "-9",  "-0",  "0",   "00",  "01",  "1",   "2",       "10",
        "99999999999999999999999",  "-",   "--1", "1.5", "10a", "Pos", "neg", "pos", "\xc3\xa9"};
    for (size_t i = 0; i < COUNT(order); i++) {
        for (size_t j = 0; j < COUNT(order); j++) {
            int sign = sf_label_compare(order[i], order[j]);
            assert_int_equal((sign > 0) - (sign < 0), (i > j) - (i < j));
        }
    }

    static const char text[] = "a\tpos\tx\nb\t10\tx\nc\t9\tx\nd\t\tx\ne\t-1\tx\nf\tneg\tx\ng\t9\tx\n";
    safer_data *data = load(write_temporary("labels.tsv", text, sizeof text - 1), NULL);
    check_labels(data, LABELS("-1", "9", "10", "neg", "pos"));
    const int labels[] = {4, 2, 1, -1, 0, 3, 1};
    for (size_t i = 0; i < COUNT(labels); i++) assert_int_equal(safer_data_row(data, i).label, labels[i]);

    /* Another set's labels are the mapping, whether or not they occur. */
    const safer_data_options *options = OPTIONS(.labels_of = data);
    static const char other[] = "a\tpos\tx\nb\t\tx\nc\t9\tx\n";
    safer_data *mapped = load(write_temporary("other.tsv", other, sizeof other - 1), options);
    check_labels(mapped, LABELS("-1", "9", "10", "neg", "pos"));
    assert_int_equal(safer_data_row(mapped, 0).label, 4);
    assert_int_equal(safer_data_row(mapped, 1).label, -1);
    assert_int_equal(safer_data_row(mapped, 2).label, 1);
    static const char strange[] = "a\tpos\tx\nb\tneutral\tx\n";
    check_failure(write_temporary("strange.tsv", strange, sizeof strange - 1), options, SAFER_INPUT,
                  "strange.tsv, line 2: unknown label \"neutral\" (known: -1, 9, 10, neg, pos)");
    safer_data_free(data);
    check_labels(mapped, LABELS("-1", "9", "10", "neg", "pos")); /* its own, not borrowed */
    safer_data_free(mapped);

    safer_data *none = load(write_temporary("none.tsv", "a\t\tx\n", 5), NULL);
    check_labels(none, NULL, 0);
    check_failure(write_temporary("strange.tsv", strange, sizeof strange - 1), OPTIONS(.labels_of = none), SAFER_INPUT,
                  "line 1: unknown label \"pos\" (known: none)");
    safer_data_free(none);

    /* Many long labels: the message names some and stays whole. */
    sf_buffer many = {0};
    for (int i = 0; i < 100; i++) assert_int_equal(sf_buffer_format(&many, "%d\t%0100d\tx\n", i, i), 0);
    safer_data *wide = load(write_temporary("wide.tsv", many.bytes, many.length), NULL);
    check_failure(write_temporary("strange.tsv", strange, sizeof strange - 1), OPTIONS(.labels_of = wide), SAFER_INPUT,
                  ", ...)");
    safer_data_free(wide);
    sf_buffer_free(&many);
}

/* -------------------------------------------------------------- sampling */

/* n rows; classes 0 1 0 1 ..., each fifth without a label. */
static const char *write_sampled(size_t n)
{
    sf_buffer text = {0};
    for (size_t i = 0; i < n; i++) {
        const char *label = i % 5 == 4 ? "" : i % 2 ? "1" : "0";
        assert_int_equal(sf_buffer_format(&text, "r%zu\t%s\ttext %zu\n", i, label, i), 0);
    }
    const char *path = write_temporary("sampled.tsv", text.bytes, text.length);
    sf_buffer_free(&text);
    return path;
}

static size_t row_number(const safer_data *data, size_t i)
{
    safer_row row = safer_data_row(data, i);
    size_t number = strtoul(row.id + 1, NULL, 10);
    char text[32];
    snprintf(text, sizeof text, "text %zu", number);
    assert_string_equal(row.text, text);
    assert_int_equal(row.label, number % 5 == 4 ? -1 : (int)(number % 2));
    return number;
}

static void test_every(void **state)
{
    (void)state;
    enum { ROWS_IN = 103 };
    const char *path = write_sampled(ROWS_IN);
    for (uint64_t step = 1; step < 12; step++) {
        char sample[32];
        snprintf(sample, sizeof sample, "every:%u", (unsigned)step);
        safer_data *data = load(path, OPTIONS(.sample = sample));
        uint64_t seen[3] = {0};
        size_t kept = 0;
        for (size_t i = 0; i < ROWS_IN; i++)
            if (seen[i % 5 == 4 ? 2 : i % 2]++ % step == 0) assert_int_equal(row_number(data, kept++), i);
        assert_int_equal(safer_data_size(data), kept);
        check_labels(data, LABELS("0", "1"));
        safer_data_free(data);
    }
    /* The limit comes after the sample; labels of dropped rows stay. */
    safer_data *data = load(path, OPTIONS(.sample = "every:10", .limit = 1));
    assert_int_equal(safer_data_size(data), 1);
    assert_int_equal(row_number(data, 0), 0);
    check_labels(data, LABELS("0", "1"));
    safer_data_free(data);
    data = load(path, OPTIONS(.limit = 3));
    assert_int_equal(safer_data_size(data), 3);
    for (size_t i = 0; i < 3; i++) assert_int_equal(row_number(data, i), i);
    safer_data_free(data);
    data = load(path, OPTIONS(.limit = 1000, .sample = "every:18446744073709551615"));
    assert_int_equal(safer_data_size(data), 3);
    safer_data_free(data);
}

static void test_random(void **state)
{
    (void)state;
    enum { ROWS_IN = 103 };
    const char *path = write_sampled(ROWS_IN);
    static const size_t sizes[] = {1, 2, 50, 102, 103, 104, 1000000};
    for (uint64_t seed = 0; seed < 5; seed++) {
        sf_stream stream = sf_stream_of(seed, 0, SF_STAGE_DATA);
        for (size_t s = 0; s < COUNT(sizes); s++) {
            char sample[32];
            snprintf(sample, sizeof sample, "random:%zu", sizes[s]);
            safer_data *data = load(
                path, &(safer_data_options){.size = sizeof(safer_data_options), .sample = sample, .seed = seed});
            size_t kept = 0;
            for (size_t i = 0; i < ROWS_IN; i++) { /* kept when fewer than N rows draw less */
                double draw = sf_draw_unit(stream, i, 0);
                size_t rank = 0;
                for (size_t j = 0; j < ROWS_IN; j++) rank += sf_draw_unit(stream, j, 0) < draw;
                if (rank < sizes[s]) assert_int_equal(row_number(data, kept++), i);
            }
            assert_int_equal(safer_data_size(data), kept);
            assert_int_equal(kept, sizes[s] < ROWS_IN ? sizes[s] : ROWS_IN);
            safer_data_free(data);
        }
    }
    safer_data *one = load(path,
                           &(safer_data_options){.size = sizeof(safer_data_options), .sample = "random:20", .seed = 1});
    safer_data *two = load(path,
                           &(safer_data_options){.size = sizeof(safer_data_options), .sample = "random:20", .seed = 2});
    int differ = 0;
    for (size_t i = 0; i < 20; i++) differ |= row_number(one, i) != row_number(two, i);
    assert_true(differ);
    safer_data_free(one);
    safer_data_free(two);
}

static void test_bad_samples(void **state)
{
    (void)state;
    static const char *const samples[] = {"",
                                          "every",
                                          "every:",
                                          "every:0",
                                          "every:-1",
                                          "every:1x",
                                          "every: 3",
                                          "random:0",
                                          "random:",
                                          "random:1.5",
                                          "first:3",
                                          "Every:3",
                                          "every:18446744073709551616"};
    for (size_t i = 0; i < COUNT(samples); i++) {
        char words[100];
        snprintf(words, sizeof words, "sample is \"%s\"; it must be every:N or random:N", samples[i]);
        check_failure("/nowhere", OPTIONS(.sample = samples[i]), SAFER_INVALID, words); /* before any reading */
    }
}

/* ----------------------------------------------------- failing allocations */

typedef struct attempt {
    const char *path;
    const safer_data_options *options;
} attempt;

static safer_status try_load(void *context, safer_error *error)
{
    const attempt *a = context;
    safer_data *data = NULL;
    safer_status status = safer_data_load(&data, a->path, a->options, error);
    if (status != SAFER_OK) assert_null(data);
    safer_data_free(data);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    safer_data *known = load(write_temporary("known.tsv", "a\t0\tx\nb\t1\tx\n", 12), NULL);
    const safer_data_options *every[] = {
        OPTIONS(.repair = 1),
        OPTIONS(.sample = "every:2", .repair = 1),
        OPTIONS(.sample = "random:2", .repair = 1, .limit = 1),
        OPTIONS(.labels_of = known, .repair = 1),
        OPTIONS(.sample = "random:2", .repair = 1, .on_disk = 1),
    };
    static const struct {
        const char *name, *bytes;
    } files[] = {
        {"m.tsv", "a\\t\t0\tb\\n\xff\nb\t1\tc\nc\t\td\n"},
        {"m.csv", "text,label,title\n\"a\"\"\xff\",1,t\nb,0,t\nc,1,\n"},
        {"m.jsonl", "{\"text\":\"a\xff\",\"label\":0,\"id\":7}\n{\"text\":\"a\",\"label\":\"1\"}\n{\"text\":\"b\"}\n"},
        {"m.ft", "__label__0 a\xff\n__label__1 b\nc\n"},
    };
    for (size_t i = 0; i < COUNT(every); i++) {
        for (size_t j = 0; j < COUNT(files); j++) {
            attempt a = {write_temporary(files[j].name, files[j].bytes, strlen(files[j].bytes)), every[i]};
            check_every_allocation(try_load, &a);
        }
        const entry texts[] = {{"0/\xff.txt", "a\xff"}, {"1/a.txt", "b"}, {"1/b.txt", ""}};
        attempt a = {make_tree("memory", texts, COUNT(texts)), every[i]};
        check_every_allocation(try_load, &a);
    }
    safer_data_free(known);
    const char *archive = pack_file("memory.tar.gz", "tar", "gz", tree, COUNT(tree));
    attempt packed[] = {
        {pack_file("m.tsv.xz", "raw", "xz", (const entry[]){{"data", "a\t0\tx\nb\t1\ty\n"}}, 1), NULL},
        {archive, OPTIONS(.format = SAFER_FORMAT_FOLDER, .limit = 2)},
        {inside(archive, "pos/notes.md"), OPTIONS(.format = SAFER_FORMAT_FASTTEXT)},
        {inside(pack_file("deep.zip", "zip", "none", (const entry[]){{"d/pos/1.txt", "x"}}, 1), "d"), NULL},
    };
    for (size_t i = 0; i < COUNT(packed); i++) check_every_allocation(try_load, &packed[i]);
}

/* Some failures of jansson's own allocations look like syntax errors to us: then the
 * load may blame the file, but must neither crash, leak, nor lose a row. */
static void test_memory_of_jansson(void **state)
{
    (void)state;
    static const char json[] = "{\"text\":\"a\",\"label\":0,\"id\":\"k\"}\n{\"text\":\"b\",\"x\":[{}]}\n";
    const char *path = write_temporary("m.jsonl", json, sizeof json - 1);
    json_malloc_t usual_malloc;
    json_free_t usual_free;
    json_get_alloc_funcs(&usual_malloc, &usual_free);
    json_set_alloc_funcs(malloc, free);
    long n = 0;
    for (int happened = 1; happened; n++) {
        safer_error error = {0};
        safer_data *data = NULL;
        fail_allocation(n);
        safer_status status = safer_data_load(&data, path, NULL, &error);
        happened = allocation_failed();
        fail_allocation(-1);
        if (status == SAFER_OK)
            check_rows(data, ROWS({"k", "0", "a", 0}, {"2", NULL, "b", 0}));
        else if (status != SAFER_MEMORY && status != SAFER_INPUT)
            fail_msg("allocation %ld: %s", n, error.message);
        if (!happened) assert_int_equal(status, SAFER_OK);
        safer_data_free(data);
    }
    json_set_alloc_funcs(usual_malloc, usual_free);
    assert_true(n > 20);
}

/* -------------------------------------------------------------- real data */

static void count_labels(const safer_data *data, size_t *counts, size_t labels)
{
    assert_int_equal(safer_data_label_count(data), labels);
    for (size_t i = 0; i < labels; i++) counts[i] = 0;
    for (size_t i = 0; i < safer_data_size(data); i++) {
        int label = safer_data_row(data, i).label;
        assert_in_range(label, 0, labels - 1);
        counts[label]++;
    }
}

static void test_imdb(void **state)
{
    (void)state;
    const char *path = shared_data("imdb_test.tsv.xz");
    if (!path) skip();
    size_t counts[2], breaks = 0;
    safer_data *data = load(path, NULL), *again = load(path, NULL), *stripped = load(path, OPTIONS(.strip_breaks = 1));
    assert_int_equal(safer_data_size(data), 25000);
    check_labels(data, LABELS("0", "1"));
    count_labels(data, counts, 2);
    assert_int_equal(counts[0], 12500);
    assert_int_equal(counts[1], 12500);
    for (size_t i = 0; i < 25000; i++) { /* two loads agree, and the id's folder is the label */
        safer_row a = safer_data_row(data, i), b = safer_data_row(again, i), c = safer_data_row(stripped, i);
        assert_string_equal(a.id, b.id);
        assert_int_equal(a.text_length, b.text_length);
        assert_memory_equal(a.text, b.text, a.text_length);
        assert_int_equal(a.label, strncmp(a.id, "pos/", 4) == 0);
        breaks += strstr(a.text, "<br />") != NULL;
        assert_null(strstr(c.text, "<br />"));
    }
    assert_true(breaks > 10000);
    safer_data_free(again);
    safer_data_free(stripped);

    safer_data *sample = load(path, OPTIONS(.sample = "every:20", .labels_of = data));
    count_labels(sample, counts, 2);
    assert_int_equal(counts[0], 625);
    assert_int_equal(counts[1], 625);
    assert_string_equal(safer_data_row(sample, 0).id, safer_data_row(data, 0).id);
    safer_data_free(sample);
    sample = load(path, OPTIONS(.sample = "random:1000"));
    assert_int_equal(safer_data_size(sample), 1000);
    count_labels(sample, counts, 2);
    assert_in_range(counts[0], 400, 600); /* 500 expected, standard deviation 15 */
    safer_data_free(sample);
    safer_data_free(data);
}

static void test_other_sets(void **state)
{
    (void)state;
    const char *amazon = shared_data("amazon5_test.tsv.xz"), *sst = shared_data("sst2_sent_dev.tsv.xz");
    if (!amazon || !sst) skip();
    size_t counts[5];
    safer_data *data = load(amazon, NULL);
    assert_int_equal(safer_data_size(data), 5000);
    check_labels(data, LABELS("1", "2", "3", "4", "5"));
    count_labels(data, counts, 5);
    for (size_t i = 0; i < 5; i++) assert_int_equal(counts[i], 1000);
    safer_data_free(data);
    data = load(sst, NULL);
    assert_int_equal(safer_data_size(data), 872);
    assert_string_equal(safer_data_row(data, 0).text, "one long string of cliches .");
    safer_data_free(data);
}

/* ----------------------------------------------------------------- identity */

/* The example of docs/data.md: netstrings of id, label and text. */
static const char example[] = "ca981dc701607d38ea3e37f247532ddfd7601f386db8a2aeb2694f41e05ed9f1";

static void *ask_digest(void *data) { return (void *)(uintptr_t)safer_data_sha256(data); }

static void test_identity(void **state)
{
    (void)state;
    static const char rows[] = "1\tpos\tA fine film.\n2\t\tÉté\n";
    safer_error error = {0};
    safer_data *data = load(write_temporary("some rows.tsv", rows, sizeof rows - 1), NULL), *memory = NULL;
    pthread_t threads[8];
    void *answers[8];
    for (size_t i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, ask_digest, data), 0);
    for (size_t i = 0; i < 8; i++) pthread_join(threads[i], &answers[i]);
    for (size_t i = 0; i < 8; i++) assert_string_equal((const char *)answers[i], example);
    assert_string_equal(safer_data_name(data), "some rows.tsv");
    safer_data_free(data);

    const char *texts[] = {"A fine film.", "Été"}, *labels[] = {"pos", NULL}, *swapped[] = {NULL, "pos"};
    assert_ok(safer_data_from_texts(&memory, texts, NULL, labels, NULL, 2, &error));
    assert_string_equal(safer_data_sha256(memory), example); /* ids are the numbers of rows */
    assert_string_equal(safer_data_name(memory), "memory");
    safer_data_free(memory);
    assert_ok(safer_data_from_texts(&memory, texts, NULL, swapped, NULL, 2, &error));
    assert_string_not_equal(safer_data_sha256(memory), example);
    safer_data_free(memory);

    const char *archive = pack_file("set.tar", "tar", "none", (const entry[]){{"inside/rows.tsv", rows}}, 1);
    data = load(inside(archive, "inside/rows.tsv"), NULL);
    assert_string_equal(safer_data_name(data), "set.tar:rows.tsv");
    assert_string_equal(safer_data_sha256(data), example);
    safer_data_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity),       cmocka_unit_test(test_folder),
        cmocka_unit_test(test_folder_links),   cmocka_unit_test(test_folder_errors),
        cmocka_unit_test(test_packed),         cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_archive_folder), cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_on_disk),        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_labels),         cmocka_unit_test(test_every),
        cmocka_unit_test(test_random),         cmocka_unit_test(test_bad_samples),
        cmocka_unit_test(test_memory),         cmocka_unit_test(test_memory_of_jansson),
        cmocka_unit_test(test_imdb),           cmocka_unit_test(test_other_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
