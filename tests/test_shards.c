/* Parts of runs: which rows they have, what schedulers call them, and how they become one file again. What they are is
 * in run/shard.h, how they are put together at the head of run/merge.c. */
#define _GNU_SOURCE
#include "base/file.h"
#include "run/sealed.h"
#include "run/shard.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static safer_error error;

/* -------------------------------------------------------------------- which rows */

/* Every row is in one part, in its order, and no part has two rows more than another. */
static void test_rows_of_parts(void **state)
{
    (void)state;
    for (size_t texts = 0; texts < 30; texts++)
        for (size_t count = 1; count < 40; count++) {
            size_t all = 0;
            int seen[30] = {0};
            for (size_t number = 1; number <= count; number++) {
                const sf_shard shard = {number, count};
                const size_t size = sf_shard_size(shard, texts);
                assert_true(size == texts / count || size == texts / count + 1);
                all += size;
                for (size_t i = 0; i < size; i++) {
                    const size_t row = sf_shard_row(shard, i);
                    assert_true(row < texts && !seen[row]++ && row % count == number - 1);
                    assert_int_equal(sf_shard_place(shard, row), i);
                }
            }
            assert_int_equal(all, texts);
        }
    const sf_shard whole = {0};
    assert_int_equal(sf_shard_size(whole, 7), 7);
    assert_int_equal(sf_shard_row(whole, 5), 5);
    assert_int_equal(sf_shard_place(whole, 5), 5);
}

static void test_check(void **state)
{
    (void)state;
    static const sf_shard good[] = {{0, 0}, {1, 1}, {3, 3}, {1000000, 1000000}};
    static const sf_shard bad[] = {{0, 1}, {2, 1}, {1, 0}, {1, 1000001}};
    for (size_t i = 0; i < COUNT(good); i++) assert_ok(sf_shard_check(good[i], &error));
    for (size_t i = 0; i < COUNT(bad); i++) assert_fails(sf_shard_check(bad[i], &error), SAFER_INVALID, "shard: ");
}

/* ------------------------------------------------------------------- schedulers */

static const char *const variables[] = {"SLURM_ARRAY_TASK_ID",   "SLURM_ARRAY_TASK_MIN",   "SLURM_ARRAY_TASK_MAX",
                                        "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_COUNT", "JOB_COMPLETION_INDEX"};

static void set_variables(const char *const *values)
{
    for (size_t i = 0; i < COUNT(variables); i++)
        assert_int_equal(values && values[i] ? setenv(variables[i], values[i], 1) : unsetenv(variables[i]), 0);
}

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text, *values[COUNT(variables)];
        size_t shard, shards;
        const char *message; /* NULL: it is right */
    } cases[] = {
        {"1/1", {0}, 1, 1, NULL},
        {"2/5", {0}, 2, 5, NULL},
        {"1000000/1000000", {0}, 1000000, 1000000, NULL},
        {"2/5", {"1", "1", "3", "1", "3", "0"}, 2, 5, NULL}, /* what is said counts */
        {"", {0}, 0, 0, "is not K/N"},
        {"0/5", {0}, 0, 0, "is not K/N"},
        {"6/5", {0}, 0, 0, "is not K/N"},
        {"1/0", {0}, 0, 0, "is not K/N"},
        {"1/1000001", {0}, 0, 0, "is not K/N"},
        {"1", {0}, 0, 0, "is not K/N"},
        {"1/", {0}, 0, 0, "is not K/N"},
        {"/5", {0}, 0, 0, "is not K/N"},
        {"-1/5", {0}, 0, 0, "is not K/N"},
        {"+1/5", {0}, 0, 0, "is not K/N"},
        {"1 /5", {0}, 0, 0, "is not K/N"},
        {"1/5/7", {0}, 0, 0, "is not K/N"},
        {"1/18446744073709551617", {0}, 0, 0, "is not K/N"},
        {"000000000000000000000000000001/5", {0}, 0, 0, "is not K/N"},
        {"Auto", {0}, 0, 0, "is not K/N"},
        {"auto/0", {0}, 0, 0, "is not K/N"},
        {"auto/x", {0}, 0, 0, "is not K/N"},
        /* Slurm: arrays from 0, from 1, from 5 in steps of 3, of one task */
        {"auto", {"0", "0", "4", "1", "5"}, 1, 5, NULL},
        {"auto", {"4", "0", "4", "1", "5"}, 5, 5, NULL},
        {"auto", {"1", "1", "4", "1", "4"}, 1, 4, NULL},
        {"auto", {"8", "5", "13", "3", "3"}, 2, 3, NULL},
        {"auto", {"8", "5", "11", "3", "3"}, 2, 3, NULL},
        {"auto", {"7", "7", "7", "1", "1"}, 1, 1, NULL},
        {"auto/5", {"3", "3", "5", "2", "2"}, 3, 5, NULL}, /* tasks 3 and 5 of an array of 5, run again */
        {"auto/5", {"5"}, 5, 5, NULL},
        {"auto", {"3", "1", "7", "1", "3"}, 0, 0, "task 3 is not one of 3 from 1 to 7 in steps of 1: say auto/N"},
        {"auto", {"6", "5", "13", "3", "3"}, 0, 0, "task 6 is not one of 3"},
        {"auto", {"1", "2", "3", "1", "2"}, 0, 0, "task 1 is not one of"},
        {"auto", {"4", "2", "3", "1", "2"}, 0, 0, "task 4 is not one of"},
        {"auto", {"1", "1", "3", "0", "3"}, 0, 0, "in steps of 0"},
        {"auto", {"1", "1", "0", "1", "0"}, 0, 0, "task 1 is not one of 0"},
        {"auto", {"0", "0", "1000000", "1", "1000001"}, 0, 0, "shard: 1 of 1000001"},
        {"auto", {"2", NULL, "5", "1", "5"}, 0, 0, "SLURM_ARRAY_TASK_MIN is not set"},
        {"auto", {"2", "1", "5", "1", NULL}, 0, 0, "SLURM_ARRAY_TASK_COUNT is not set"},
        {"auto", {"two", "1", "5", "1", "5"}, 0, 0, "SLURM_ARRAY_TASK_ID: \"two\" is not a whole number"},
        {"auto", {"", "1", "5", "1", "5"}, 0, 0, "SLURM_ARRAY_TASK_ID: \"\" is not a whole number"},
        {"auto", {"-1", "1", "5", "1", "5"}, 0, 0, "\"-1\" is not a whole number"},
        {"auto", {"2", "1", "5", "1", "99999999999999999999"}, 0, 0, "SLURM_ARRAY_TASK_COUNT: "},
        {"auto/5", {"0"}, 0, 0, "auto/5: SLURM_ARRAY_TASK_ID is 0, not from 1 to 5"},
        {"auto/5", {"6"}, 0, 0, "auto/5: SLURM_ARRAY_TASK_ID is 6, not from 1 to 5"},
        {"auto/5", {"x"}, 0, 0, "\"x\" is not a whole number"},
        /* Kubernetes counts from 0, and does not say how far */
        {"auto/5", {NULL, NULL, NULL, NULL, NULL, "0"}, 1, 5, NULL},
        {"auto/5", {NULL, NULL, NULL, NULL, NULL, "4"}, 5, 5, NULL},
        {"auto/5", {NULL, NULL, NULL, NULL, NULL, "5"}, 0, 0, "JOB_COMPLETION_INDEX is 5, not from 0 to 4"},
        {"auto/5", {NULL, NULL, NULL, NULL, NULL, "18446744073709551615"}, 0, 0, "not from 0 to 4"},
        {"auto", {NULL, NULL, NULL, NULL, NULL, "0"}, 0, 0, "say auto/N, with the Job's completions"},
        {"auto", {0}, 0, 0, "neither SLURM_ARRAY_TASK_ID (Slurm) nor JOB_COMPLETION_INDEX (Kubernetes) is set"},
        {"auto/2", {0}, 0, 0, "neither"},
        {"auto", {"1", "1", "3", "1", "3", "0"}, 0, 0, "both SLURM_ARRAY_TASK_ID and JOB_COMPLETION_INDEX are set"},
        {"auto/3", {"1", NULL, NULL, NULL, NULL, "0"}, 0, 0, "both"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t shard = 77, shards = 88;
        set_variables(cases[i].values);
        if (cases[i].message)
            assert_fails(safer_shard_parse(&shard, &shards, cases[i].text, &error), SAFER_INVALID, cases[i].message);
        else
            assert_ok(safer_shard_parse(&shard, &shards, cases[i].text, &error));
        assert_int_equal(shard, cases[i].message ? 77 : cases[i].shard);
        assert_int_equal(shards, cases[i].message ? 88 : cases[i].shards);
    }
    set_variables(NULL);
}

/* ------------------------------------------------------------------------ files */

enum { MOST_PARTS = 16 };

/* What a run of so many texts writes, or the part of it. Some records have no "seconds", and one is longer than any
 * buffer. */
static sf_buffer make_run(size_t texts, sf_shard shard, const char *date, int seed)
{
    sf_buffer out = {0};
    uint64_t seal;
    size_t length;
    json_t *config = json_pack("{s:s, s:i, s:{s:s, s:I}, s:f, s:i}", "safer", "0", "format", 2, "data", "name", "d",
                               "texts", (json_int_t)texts, "delta", 0.1, "seed", seed);
    sf_shard_add(&config, shard);
    json_object_set_new(config, "date", json_string(date));
    char *line = sf_seal(config, -1, 0, &length, &seal), *id = malloc(100001);
    assert_non_null(id);
    memset(id, 'x', 100000);
    id[100000] = '\0';
    assert_int_equal(sf_buffer_add(&out, line, length), 0);
    free(line);
    json_decref(config);
    for (size_t i = 0; i < sf_shard_size(shard, texts); i++) {
        const size_t row = sf_shard_row(shard, i);
        json_t *record = json_pack("{s:I, s:s, s:f, s:o}", "row", (json_int_t)row + 1, "id",
                                   row == 3 ? id : ",\"seconds\":1,\"check\":", "x", (double)row / 3, "text",
                                   json_stringn("a\0b", 3));
        line = sf_seal(record, row % 2 ? 0.25 : -1, seal, &length, NULL);
        assert_int_equal(sf_buffer_add(&out, line, length), 0);
        free(line);
        json_decref(record);
    }
    free(id);
    return out;
}

static const char early[] = "2026-11-16T10:03:22Z", late[] = "2026-11-17T09:00:00Z";

/* The parts of a run, in the order of a pack that was turned over; the last of them was begun first. */
typedef struct pack {
    char names[MOST_PARTS][500];
    const char *paths[MOST_PARTS];
    size_t count;
} pack;

static void write_part(pack *p, size_t place, size_t texts, sf_shard shard, int seed)
{
    char name[40];
    sf_buffer part = make_run(texts, shard, shard.number == shard.count ? early : late, seed);
    snprintf(name, sizeof name, "part%zu.jsonl", place);
    snprintf(p->names[place], sizeof p->names[place], "%s", write_temporary(name, part.bytes, part.length));
    p->paths[place] = p->names[place];
    sf_buffer_free(&part);
}

static void make_parts(pack *p, size_t texts, size_t count)
{
    p->count = count;
    for (size_t i = 0; i < count; i++) write_part(p, i, texts, (sf_shard){count - i, count}, 1);
}

static void assert_file(const char *path, const sf_buffer *expected)
{
    sf_file file = {0};
    assert_ok(sf_file_load(&file, path, &error));
    assert_int_equal(file.length, expected->length);
    assert_memory_equal(file.bytes, expected->bytes, file.length);
    sf_file_free(&file);
}

static void test_merge(void **state)
{
    (void)state;
    static const size_t texts[] = {0, 1, 4, 13}, counts[] = {1, 2, 3, 5, 7, 16};
    pack p;
    assert_int_equal(unsetenv("SOURCE_DATE_EPOCH"), 0); /* support.c sets it */
    for (size_t t = 0; t < COUNT(texts); t++)
        for (size_t c = 0; c < COUNT(counts); c++) {
            size_t records = 99;
            sf_buffer whole = make_run(texts[t], (sf_shard){0}, early, 1);
            make_parts(&p, texts[t], counts[c]);
            const char *output = temporary("merged.jsonl");
            assert_ok(safer_merge(&records, output, p.paths, p.count, NULL, &error)); /* also over an older one */
            assert_int_equal(records, texts[t]);
            assert_file(output, &whole);
            sf_buffer_free(&whole);
        }
    assert_int_equal(setenv("SOURCE_DATE_EPOCH", "0", 1), 0);
    sf_buffer whole = make_run(13, (sf_shard){0}, "1970-01-01T00:00:00Z", 1);
    assert_ok(safer_merge(NULL, temporary("merged.jsonl"), p.paths, p.count, NULL, &error));
    assert_int_equal(unsetenv("SOURCE_DATE_EPOCH"), 0);
    assert_file(temporary("merged.jsonl"), &whole);
    sf_buffer_free(&whole);
}

/* Whether a merge is refused with this message, and nothing was written. */
static void assert_refused(const pack *p, const char *message)
{
    const char *output = temporary("refused.jsonl");
    assert_fails(safer_merge(NULL, output, p->paths, p->count, NULL, &error), SAFER_INPUT, message);
    assert_int_equal(access(output, F_OK), -1);
}

static void test_belonging(void **state)
{
    (void)state;
    pack p;
    char message[600];
    make_parts(&p, 13, 3);
    write_part(&p, 1, 13, (sf_shard){2, 3}, 7);
    snprintf(message, sizeof message, "%s (here) and %s (there) are not of the same run: seed is 1 there, 7 here",
             p.paths[1], p.paths[2]);
    assert_refused(&p, message);
    write_part(&p, 1, 12, (sf_shard){2, 3}, 1);
    assert_refused(&p, "data.texts is 13 there, 12 here");
    write_part(&p, 1, 13, (sf_shard){2, 4}, 1);
    assert_refused(&p, "is one of 4 parts, ");
    write_part(&p, 1, 13, (sf_shard){3, 3}, 1);
    assert_refused(&p, "are both part 3 of 3");
    write_part(&p, 1, 13, (sf_shard){0}, 1);
    assert_refused(&p, "is a whole run, not a part of one");
    make_parts(&p, 13, 3);
    p.count = 2;
    assert_refused(&p, "1 of 3 parts is missing: 1");
    p.count = 0;
    assert_fails(safer_merge(NULL, temporary("x.jsonl"), p.paths, 0, NULL, &error), SAFER_INVALID, "parts: none");
    p.count = 1;
    write_part(&p, 0, 13, (sf_shard){4, 10}, 1);
    assert_refused(&p, "9 of 10 parts are missing: 1, 2, 3, 5, 6, ...");
}

/* The bytes of a part's file. */
static sf_file load(const char *path)
{
    sf_file file = {0};
    assert_ok(sf_file_load(&file, path, &error));
    return file;
}

static void put(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* A part that was cut anywhere is not finished; one that lost or gained bytes elsewhere is not believed. */
static void test_damaged(void **state)
{
    (void)state;
    pack p;
    make_parts(&p, 9, 3);
    sf_file part = load(p.paths[1]); /* part 2 of 3: rows 2, 5 and 8 */
    char message[600], *copy = malloc(part.length + 200);
    const char *newline = memchr(part.bytes, '\n', part.length);
    const size_t first = (size_t)(newline - part.bytes);
    assert_non_null(copy);
    assert_true(first > 0 && newline != NULL);
    for (size_t keep = 1; keep < part.length; keep += keep < first + 4 || keep + 4 > part.length ? 1 : 7) {
        put(p.paths[1], part.bytes, keep);
        if (keep <= first)
            assert_refused(&p, "line 1: the configuration is cut; run its part again with resume");
        else
            assert_refused(&p, "1 of 3 parts is not finished: ");
    }
    put(p.paths[1], part.bytes, first + 1);
    snprintf(message, sizeof message, "1 of 3 parts is not finished: %s (0 of 3 records); run again with resume",
             p.paths[1]);
    assert_refused(&p, message);
    memcpy(copy, part.bytes, part.length);
    memset(copy + part.length, 0, 100);
    put(p.paths[1], copy, part.length + 100);
    assert_refused(&p, "(3 of 3 records); run again with resume"); /* zeros, as after a power cut */
    for (size_t i = 0; i < part.length; i += 3) {
        memcpy(copy, part.bytes, part.length);
        copy[i] ^= 1;
        put(p.paths[1], copy, part.length);
        const safer_status status = safer_merge(NULL, temporary("seconds.jsonl"), p.paths, p.count, NULL, &error);
        assert_true(status == SAFER_OK || status == SAFER_INPUT);
        if (status != SAFER_OK) assert_non_null(strstr(error.message, p.paths[1]));
    }
    memcpy(copy, part.bytes, part.length); /* a record twice */
    const char *last = memrchr(part.bytes, '\n', part.length ? part.length - 1 : 0);
    const size_t length = part.length - (size_t)(last + 1 - part.bytes);
    memcpy(copy + part.length, last + 1, length);
    put(p.paths[1], copy, part.length + length);
    assert_refused(&p, ": its records are 4, the texts of its part 3");
    memcpy(copy, part.bytes, first + 1); /* in the place of another */
    for (int i = 0; i < 3; i++) memcpy(copy + first + 1 + (size_t)i * length, last + 1, length);
    put(p.paths[1], copy, first + 1 + 3 * length);
    assert_refused(&p, "line 2: the record of row 8 stands here");
    free(copy);
    sf_file_free(&part);
}

/* Names that are no parts. */
static void test_no_parts(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *message;
        size_t length;
    } cases[] = {{"", "is empty", 0},
                 {"\xfd"
                  "7zXZ\0\n",
                  "is not the output of a run; what is packed must be unpacked first", 7},
                 {"\n{}\n", "is not the output of a run", 4},
                 {"\0\0", "is not the output of a run", 2},
                 {"{\n", "line 1: not JSON", 2},
                 {"{}\n", "line 1: the check does not match", 3}};
    pack p;
    char name[500];
    make_parts(&p, 4, 2);
    snprintf(name, sizeof name, "%s", p.paths[0]);
    for (size_t i = 0; i < COUNT(cases); i++) {
        put(name, cases[i].bytes, cases[i].length);
        assert_refused(&p, cases[i].message);
    }
    assert_int_equal(unlink(name), 0);
    assert_fails(safer_merge(NULL, temporary("x.jsonl"), p.paths, 2, NULL, &error), SAFER_SYSTEM, name);
    assert_int_equal(mkdir(name, 0777), 0);
    assert_refused(&p, "is a folder, not a part of a run");
    assert_int_equal(rmdir(name), 0);
    assert_int_equal(mkfifo(name, 0600), 0);
    assert_refused(&p, "is a device or pipe, not a part of a run"); /* and it does not wait */
    assert_int_equal(unlink(name), 0);
}

/* A "shard" that is none, in the file of a part. */
static void test_shard_of_config(void **state)
{
    (void)state;
    static const char *const bad[] = {"null",  "1",       "[]",        "[1]",     "[1,2,3]",     "[0,2]",
                                      "[3,2]", "[1.0,2]", "[\"1\",2]", "[-1,-1]", "[1,1000001]", "{}"};
    sf_shard shard;
    for (size_t i = 0; i < COUNT(bad); i++) {
        json_t *config = json_pack("{s:o}", "shard", json_loads(bad[i], JSON_DECODE_ANY, NULL));
        assert_fails(sf_shard_read(&shard, config, "f", &error), SAFER_INPUT, "f, line 1: \"shard\" must be [K,N]");
        json_decref(config);
    }
    json_t *config = json_pack("{s:[i, i]}", "shard", 2, 3);
    assert_ok(sf_shard_read(&shard, config, "f", &error));
    assert_true(shard.number == 2 && shard.count == 3);
    assert_fails(sf_shard_need_whole(shard, "f", &error), SAFER_INPUT, "f is part 2 of 3: put all parts together");
    json_decref(config);
    config = json_object();
    assert_ok(sf_shard_read(&shard, config, "f", &error));
    assert_true(shard.number == 0 && shard.count == 0);
    assert_ok(sf_shard_need_whole(shard, "f", &error));
    json_decref(config);
}

/* ---------------------------------------------------------------------- the output */

/* The output is none of the parts, by whatever name. A folder is none. */
static void test_output(void **state)
{
    (void)state;
    pack p;
    char link_name[520];
    make_parts(&p, 4, 2);
    sf_file before = load(p.paths[1]);
    const sf_buffer same = {.bytes = (char *)before.bytes, .length = before.length};
    snprintf(link_name, sizeof link_name, "%s.link", p.paths[1]);
    assert_int_equal(link(p.paths[1], link_name), 0);
    assert_fails(safer_merge(NULL, p.paths[1], p.paths, 2, NULL, &error), SAFER_INVALID, "is one of the parts");
    assert_fails(safer_merge(NULL, link_name, p.paths, 2, NULL, &error), SAFER_INVALID, "is one of the parts");
    assert_file(p.paths[1], &same);
    sf_file_free(&before);
    assert_int_equal(unlink(link_name), 0);
    assert_int_equal(mkdir(link_name, 0777), 0);
    assert_fails(safer_merge(NULL, link_name, p.paths, 2, NULL, &error), SAFER_INVALID, "it is a folder");
    assert_int_equal(rmdir(link_name), 0);
    assert_ok(safer_merge(NULL, "/dev/null", p.paths, 2, NULL, &error));
    make_parts(&p, 2000, 2);
    assert_fails(safer_merge(NULL, "/dev/full", p.paths, 2, NULL, &error), SAFER_SYSTEM, "/dev/full");
    assert_int_equal(setenv("SOURCE_DATE_EPOCH", "x", 1), 0);
    assert_fails(safer_merge(NULL, "/dev/null", p.paths, 2, NULL, &error), SAFER_INVALID, "SOURCE_DATE_EPOCH");
    assert_int_equal(unsetenv("SOURCE_DATE_EPOCH"), 0);
}

static int stop_at(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    return strcmp(stage, context) == 0;
}

/* Who is asked to stop leaves nothing, and what was there. */
static void test_cancelled(void **state)
{
    (void)state;
    static const char *const stages[] = {"reading the parts", "merging"};
    pack p;
    make_parts(&p, 9, 3);
    for (size_t i = 0; i < COUNT(stages); i++) {
        const safer_progress progress = {.report = stop_at, .context = (void *)stages[i]};
        const char *output = write_temporary("old.jsonl", "old", 3);
        assert_fails(safer_merge(NULL, output, p.paths, 3, &progress, &error), SAFER_CANCELLED, "cancelled");
        assert_file(output, &(sf_buffer){.bytes = "old", .length = 3});
    }
}

static safer_status merge_all(void *context, safer_error *e)
{
    const pack *p = context;
    return safer_merge(NULL, temporary("merged.jsonl"), p->paths, p->count, NULL, e);
}

static safer_status refuse_all(void *context, safer_error *e)
{
    const pack *p = context;
    safer_status status = safer_merge(NULL, temporary("merged.jsonl"), p->paths, p->count, NULL, e);
    return status == SAFER_INPUT ? SAFER_OK : status;
}

static void test_memory(void **state)
{
    (void)state;
    pack p;
    make_parts(&p, 5, 3);
    check_every_allocation(merge_all, &p);
    p.count = 2;
    check_every_allocation(refuse_all, &p); /* one is missing */
    p.count = 3;
    sf_file part = load(p.paths[1]);
    put(p.paths[1], part.bytes, part.length - 1);
    sf_file_free(&part);
    check_every_allocation(refuse_all, &p); /* one is not finished */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_parts), cmocka_unit_test(test_check),           cmocka_unit_test(test_parse),
        cmocka_unit_test(test_merge),         cmocka_unit_test(test_belonging),       cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_no_parts),      cmocka_unit_test(test_shard_of_config), cmocka_unit_test(test_output),
        cmocka_unit_test(test_cancelled),     cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
