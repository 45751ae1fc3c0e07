/* The room run: sealed lines, typed members, rows in parallel. A file that was stopped anywhere is resumed or refused,
 * never repaired. */
#define _GNU_SOURCE
#include "base/file.h"
#include "run/difference.h"
#include "run/guard.h"
#include "run/members.h"
#include "run/rows.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static safer_error error;

/* --------------------------------------------------------------------- seals */

static json_t *record_of(int row) { return json_pack("{s:i, s:f, s:s}", "row", row, "x", row / 3.0, "id", "ü,\"}"); }

/* Reals are written with the fewest digits. Lines that have all 17, as the first version wrote them, are read. */
static void test_seal(void **state)
{
    (void)state;
    uint64_t seal = 0, first = 0, again = 0;
    size_t length = 0;
    json_t *config = json_pack("{s:s, s:i}", "safer", "0", "format", 1), *record = record_of(1);
    char *line = sf_seal(config, -1, 0, &length, &first);
    assert_string_equal(line, "{\"safer\":\"0\",\"format\":1,\"check\":\"ce617179a30e4c82\"}\n");
    assert_int_equal(length, strlen(line));
    free(line);
    line = sf_seal(record, 0.25, first, &length, &seal);
    assert_string_equal(line, "{\"row\":1,\"x\":0.3333333333333333,\"id\":\"ü,\\\"}\",\"seconds\":0.25,"
                              "\"check\":\"c9352a9c6638563f\"}\n");
    assert_int_equal(json_object_size(record), 3); /* it is not touched */

    json_t *read = json_loads(line, 0, NULL);
    assert_ok(sf_unseal(read, line, length - 1, first, &again, "f", 2, &error));
    assert_true(again == seal && json_equal(read, record));
    const char *seconds = strstr(line, "0.25,");
    for (size_t i = 0; i < length - 1; i++) { /* no byte can change, but those of "seconds" */
        const int free_to_change = line + i >= seconds && line + i < seconds + 4;
        line[i] ^= 1;
        json_decref(read);
        read = json_loads(line, 0, NULL);
        if (read && !free_to_change)
            assert_fails(sf_unseal(read, line, length - 1, first, &again, "f", 2, &error), SAFER_INPUT,
                         "f, line 2: the check does not match");
        line[i] ^= 1;
    }
    json_decref(read);
    read = json_loads(line, 0, NULL);
    assert_fails(sf_unseal(read, line, length - 1, first + 1, &again, "f", 2, &error), SAFER_INPUT, "check");
    json_decref(read);
    static const char older[] = "{\"row\":1,\"x\":0.33333333333333331,\"id\":\"ü,\\\"}\",\"seconds\":0.25,"
                                "\"check\":\"4b6c0a47a3e304f6\"}";
    read = json_loads(older, 0, NULL);
    assert_ok(sf_unseal(read, older, sizeof older - 1, first, &again, "f", 2, &error));
    assert_true(json_equal(read, record));
    json_decref(read);
    free(line);
    json_decref(config);
    json_decref(record);
}

/* ------------------------------------------------------------------- reading */

typedef struct seen {
    size_t lines, refuse; /* refuse: the line that is an error; 0: none */
    uint64_t seal;
    json_int_t last;
} seen;

static safer_status see(void *context, json_t *object, uint64_t seal, size_t line, safer_error *e)
{
    seen *s = context;
    assert_int_equal(line, s->lines + 1);
    assert_null(json_object_get(object, "check"));
    assert_null(json_object_get(object, "seconds"));
    if (line == s->refuse) return sf_fail(e, SAFER_INPUT, "refused");
    s->lines = line;
    if (line == 1) s->seal = seal;
    s->last = json_integer_value(json_object_get(object, "row"));
    return SAFER_OK;
}

static safer_status read_all(const char *path, seen *s, safer_error *e)
{
    *s = (seen){0};
    return sf_sealed_read(path, "run", 0, see, s, e);
}

/* A configuration and `rows` records, the i-th of them with the row numbers[i]. */
static sf_buffer make_file(const int *numbers, size_t rows)
{
    sf_buffer out = {0};
    uint64_t seal;
    size_t length;
    json_t *config = json_pack("{s:s}", "safer", "0");
    char *line = sf_seal(config, -1, 0, &length, &seal);
    assert_int_equal(sf_buffer_add(&out, line, length), 0);
    free(line);
    json_decref(config);
    for (size_t i = 0; i < rows; i++) {
        json_t *record = record_of(numbers[i]);
        line = sf_seal(record, 1, seal, &length, NULL);
        assert_int_equal(sf_buffer_add(&out, line, length), 0);
        free(line);
        json_decref(record);
    }
    return out;
}

static void test_read(void **state)
{
    (void)state;
    seen s;
    static const int rows[] = {1, 2, 3}, moved[] = {1, 3, 2}, repeated[] = {1, 1, 2}, missing[] = {2, 3};
    sf_buffer file = make_file(rows, 3);
    const char *path = write_temporary("read.jsonl", file.bytes, file.length);
    assert_ok(read_all(path, &s, &error));
    assert_true(s.lines == 4 && s.last == 3);
    s = (seen){.refuse = 3};
    assert_fails(sf_sealed_read(path, "run", 0, see, &s, &error), SAFER_INPUT, "refused");
    assert_int_equal(s.lines, 2);

    path = write_temporary("cut.jsonl", file.bytes, file.length - 1);
    assert_fails(read_all(path, &s, &error), SAFER_INPUT, "cut.jsonl, line 4: the record is cut; resume the run");
    path = write_temporary("nothing.jsonl", "", 0);
    assert_fails(read_all(path, &s, &error), SAFER_INPUT, "nothing.jsonl is empty");
    path = write_temporary("words.jsonl", "hello\n", 6);
    assert_fails(read_all(path, &s, &error), SAFER_INPUT, "words.jsonl, line 1: not JSON");
    path = write_temporary("list.jsonl", "[1,\"check\":2]\n[]\n", 17);
    assert_fails(read_all(path, &s, &error), SAFER_INPUT, "list.jsonl, line 1");
    assert_fails(read_all(temporary("absent.jsonl"), &s, &error), SAFER_SYSTEM, "absent.jsonl");
    sf_buffer_free(&file);

    const struct {
        const int *rows;
        size_t count;
        const char *words;
    } misplaced[] = {{moved, 3, "line 3: the record of row 3 stands here"},
                     {repeated, 3, "line 3: the record of row 1 stands here"},
                     {missing, 2, "line 2: the record of row 2 stands here"}};
    for (size_t i = 0; i < COUNT(misplaced); i++) {
        file = make_file(misplaced[i].rows, misplaced[i].count);
        path = write_temporary("misplaced.jsonl", file.bytes, file.length);
        assert_fails(read_all(path, &s, &error), SAFER_INPUT, misplaced[i].words);
        sf_buffer_free(&file);
    }
}

/* ------------------------------------------------------------------- writing */

static void append(sf_sealed_output *out, int row)
{
    size_t length;
    json_t *record = record_of(row);
    char *line = sf_seal(record, 0, out->seal, &length, NULL);
    assert_ok(sf_sealed_append(out, line, length, &error));
    free(line);
    json_decref(record);
}

/* Members that no seal covers are refused, wherever they are put. */
static void test_tail(void **state)
{
    static const char *const tails[] = {",\"seconds\":0.25,\"note\":1,\"check\":\"%s\"}",
                                        ",\"seconds\":0.25,\"check\":\"%s\",\"note\":1}",
                                        ",\"check\":\"%s\",\"seconds\":0.25}",
                                        ",\"seconds\":\"0.25\",\"check\":\"%s\"}",
                                        ",\"seconds\":0.25, \"check\":\"%s\"}",
                                        ",\"seconds\":0.25,\"check\":\"%s\" }",
                                        ",\"seconds\":0.25,\"check\":\"%s\"}"};
    json_t *record = record_of(1);
    uint64_t seal, again;
    size_t length;
    char *line = sf_seal(record, 0.25, 7, &length, &seal), digits[17];
    const size_t body = (size_t)(strstr(line, ",\"seconds\"") - line);
    (void)state;
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)seal);
    for (size_t i = 0; i < COUNT(tails); i++) {
        char forged[400];
        memcpy(forged, line, body);
        const size_t whole = body + (size_t)snprintf(forged + body, sizeof forged - body, tails[i], digits);
        json_t *read = json_loads(forged, 0, NULL);
        assert_non_null(read);
        if (i + 1 < COUNT(tails))
            assert_fails(sf_unseal(read, forged, whole, 7, &again, "f", 2, &error), SAFER_INPUT, "does not match");
        else
            assert_ok(sf_unseal(read, forged, whole, 7, &again, "f", 2, &error));
        json_decref(read);
    }
    free(line);
    json_decref(record);
}

/* The date is the only member of the first line that no seal covers, and only in its one form. */
static void test_date(void **state)
{
    static const char *const tails[] = {",\"date\":\"2026-11-16T10:03:22\",\"check\":\"%s\"}",
                                        ",\"date\":\"2026-11-16T10:03:22Z \",\"check\":\"%s\"}",
                                        ",\"date\":\"2026-11-16 10:03:22Z\",\"check\":\"%s\"}",
                                        ",\"date\":\"x026-11-16T10:03:22Z\",\"check\":\"%s\"}",
                                        ",\"date\":20261116,\"check\":\"%s\"}",
                                        ",\"check\":\"%s\",\"date\":\"2026-11-16T10:03:22Z\"}",
                                        ",\"date\":\"2026-11-16T10:03:22Z\",\"note\":1,\"check\":\"%s\"}",
                                        ",\"seconds\":0.5,\"check\":\"%s\"}",
                                        ",\"date\":\"2026-11-16T10:03:22Z\",\"seconds\":0.5,\"check\":\"%s\"}",
                                        ",\"date\":\"2031-01-02T03:04:05Z\",\"check\":\"%s\"}",
                                        ",\"check\":\"%s\"}"};
    const size_t right = COUNT(tails) - 2; /* the last two */
    json_t *config = json_pack("{s:s, s:s, s:i}", "safer", "0", "date", "2026-11-16T10:03:22Z", "format", 2);
    uint64_t seal, again;
    size_t length;
    char *line = sf_seal(config, -1, 0, &length, &seal), digits[17];
    (void)state;
    assert_non_null(strstr(line, "{\"safer\":\"0\",\"format\":2,\"date\":\"2026-11-16T10:03:22Z\",\"check\":\""));
    const size_t body = (size_t)(strstr(line, ",\"date\"") - line);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)seal);
    for (size_t i = 0; i < COUNT(tails); i++) {
        char forged[400];
        memcpy(forged, line, body);
        const size_t whole = body + (size_t)snprintf(forged + body, sizeof forged - body, tails[i], digits);
        json_t *read = json_loads(forged, 0, NULL);
        assert_non_null(read);
        if (i < right) {
            assert_fails(sf_unseal(read, forged, whole, 0, &again, "f", 1, &error), SAFER_INPUT, "does not match");
        } else {
            assert_ok(sf_unseal(read, forged, whole, 0, &again, "f", 1, &error));
            assert_int_equal(json_object_get(read, "date") != NULL, i == right);
            assert_null(json_object_get(read, "check"));
        }
        if (strstr(tails[i], "date")) /* which has no place in a record */
            assert_fails(sf_unseal(read, forged, whole, 0, &again, "f", 2, &error), SAFER_INPUT, "does not match");
        json_decref(read);
    }
    free(line);
    json_decref(config);
}

/* The date of a new file is SOURCE_DATE_EPOCH, where it is set. */
static void test_date_of_file(void **state)
{
    json_t *config = json_pack("{s:s}", "safer", "0");
    const char *path = temporary("dated.jsonl");
    sf_sealed_output out;
    (void)state;
    setenv("SOURCE_DATE_EPOCH", "0", 1);
    assert_ok(sf_sealed_open(&out, path, 0, config, see, &(seen){0}, &error));
    sf_sealed_close(&out);
    json_t *read = sf_sealed_config(path);
    assert_string_equal(json_string_value(json_object_get(read, "date")), "1970-01-01T00:00:00Z");
    json_decref(read);
    unlink(path);
    static const char *const refused[] = {"yesterday", "-1", "253402300800"}; /* the last is of the year 10000 */
    for (size_t i = 0; i < COUNT(refused); i++) {
        setenv("SOURCE_DATE_EPOCH", refused[i], 1);
        assert_fails(sf_sealed_open(&out, path, 0, config, see, &(seen){0}, &error), SAFER_INVALID,
                     "SOURCE_DATE_EPOCH");
        sf_sealed_close(&out);
        unlink(path);
    }
    unsetenv("SOURCE_DATE_EPOCH");
    assert_ok(sf_sealed_open(&out, path, 0, config, see, &(seen){0}, &error));
    sf_sealed_close(&out);
    read = sf_sealed_config(path);
    assert_true(strcmp(json_string_value(json_object_get(read, "date")), "2026") > 0);
    json_decref(read);
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
    json_decref(config);
}

/* A file that is not a run is left as it was, with whole lines or without. */
static void test_foreign_file(void **state)
{
    static const char *const texts[] = {"precious notes", "{\"safer\":\"1\"", "precious\nnotes\n", "x"};
    json_t *config = json_pack("{s:s}", "safer", "0");
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        sf_sealed_output out;
        seen s = {0};
        const char *path = write_temporary("notes.txt", texts[i], strlen(texts[i]));
        assert_fails(sf_sealed_open(&out, path, 1, config, see, &s, &error), SAFER_INPUT, "not the output of a run");
        sf_sealed_close(&out);
        assert_same_file(path, write_temporary("same.txt", texts[i], strlen(texts[i])));
    }
    json_decref(config);
}

/* Cut after any byte, a file is resumed after its last whole line. */
static void test_resume(void **state)
{
    (void)state;
    sf_sealed_output out;
    json_t *config = json_pack("{s:s}", "safer", "0");
    const char *path = temporary("resume.jsonl");
    seen s = {0};
    assert_ok(sf_sealed_open(&out, path, 0, config, see, &s, &error));
    for (int row = 1; row <= 3; row++) append(&out, row);
    sf_sealed_output second;
    assert_fails(sf_sealed_open(&second, path, 1, config, see, &s, &error), SAFER_SYSTEM,
                 "is being written by another run");
    sf_sealed_close(&second);
    assert_ok(sf_sealed_sync(&out, &error));
    sf_sealed_close(&out);
    assert_int_equal(s.lines, 0);
    assert_fails(sf_sealed_open(&out, path, 0, config, see, &s, &error), SAFER_INVALID, "exists; resume it");
    sf_sealed_close(&out);

    sf_file whole = {0};
    assert_ok(sf_file_load(&whole, path, &error));
    for (size_t length = 1; length <= whole.length; length++) {
        size_t lines = 0;
        for (size_t i = 0; i < length; i++) lines += whole.bytes[i] == '\n';
        const char *cut = write_temporary("resumed.jsonl", whole.bytes, length);
        s = (seen){0};
        assert_ok(sf_sealed_open(&out, cut, 1, config, see, &s, &error));
        assert_int_equal(s.lines, lines);
        for (int row = lines ? (int)lines : 1; row <= 3; row++) append(&out, row);
        sf_sealed_close(&out);
        assert_same_file(cut, path);
    }
    s = (seen){.refuse = 2};
    const char *refused = write_temporary("refused.jsonl", whole.bytes, whole.length - 1);
    assert_fails(sf_sealed_open(&out, refused, 1, config, see, &s, &error), SAFER_INPUT, "refused");
    sf_sealed_close(&out);
    struct stat info;
    assert_int_equal(stat(refused, &info), 0);
    assert_int_equal(info.st_size, whole.length - 1); /* what is refused is left as it was */
    sf_file_free(&whole);
    assert_ok(sf_sealed_open(&out, NULL, 0, config, see, &s, &error));
    append(&out, 1);
    assert_ok(sf_sealed_sync(&out, &error));
    sf_sealed_close(&out);
    assert_fails(sf_sealed_open(&out, "/dev/full", 0, config, see, &s, &error), SAFER_SYSTEM, "/dev/full");
    sf_sealed_close(&out);
    json_decref(config);
}

/* Where a power cut lost the end of a file, zeros stand there: it is damaged, and resumed after its last whole line.
 * What follows zeros in the first line is not ours. */
static void test_power_cut(void **state)
{
    (void)state;
    sf_sealed_output out;
    json_t *config = json_pack("{s:s}", "safer", "0");
    char path[500];
    seen s = {0};
    snprintf(path, sizeof path, "%s", temporary("power.jsonl"));
    assert_ok(sf_sealed_open(&out, path, 0, config, see, &s, &error));
    for (int row = 1; row <= 3; row++) append(&out, row);
    sf_sealed_close(&out);
    sf_file whole = {0};
    assert_ok(sf_file_load(&whole, path, &error));
    const size_t first = strcspn(whole.bytes, "\n") + 1;
    char *bytes = malloc(whole.length);
    for (size_t at = 0; at < whole.length; at++) {
        size_t lines = 0;
        memset(bytes, 0, whole.length);
        memcpy(bytes, whole.bytes, at);
        for (size_t i = 0; i < at; i++) lines += bytes[i] == '\n';
        const char *cut = write_temporary("lost.jsonl", bytes, lines ? whole.length : first);
        assert_fails(read_all(cut, &s, &error), SAFER_INPUT, "the record is damaged, as after a power cut; resume the");
        s = (seen){0};
        assert_ok(sf_sealed_open(&out, cut, 1, config, see, &s, &error));
        assert_int_equal(s.lines, lines);
        for (int row = lines ? (int)lines : 1; row <= 3; row++) append(&out, row);
        sf_sealed_close(&out);
        assert_same_file(cut, path);
    }
    memcpy(bytes, whole.bytes, first);
    bytes[0] = bytes[1] = '\0';
    const char *foreign = write_temporary("foreign.jsonl", bytes, first - 1);
    assert_fails(sf_sealed_open(&out, foreign, 1, config, see, &s, &error), SAFER_INPUT, "not the output of a run");
    sf_sealed_close(&out);
    free(bytes);
    sf_file_free(&whole);
    json_decref(config);
}

/* What is no regular file has nothing to resume, and nothing to sync. */
static void test_device(void **state)
{
    (void)state;
    sf_sealed_output out;
    json_t *config = json_pack("{s:s}", "safer", "0");
    for (int resume = 0; resume < 2; resume++) {
        seen s = {0};
        assert_ok(sf_sealed_open(&out, "/dev/null", resume, config, see, &s, &error));
        append(&out, 1);
        assert_ok(sf_sealed_sync(&out, &error));
        assert_true(s.lines == 0 && out.syncer == NULL);
        sf_sealed_close(&out);
    }
    json_decref(config);
}

static void test_config(void **state)
{
    (void)state;
    static const int rows[] = {1, 1};
    sf_buffer file = make_file(rows, 2);
    const size_t first = strcspn(file.bytes, "\n") + 1;
    json_t *config = sf_sealed_config(write_temporary("config.jsonl", file.bytes, file.length));
    assert_string_equal(json_string_value(json_object_get(config, "safer")), "0"); /* the rest is not looked at */
    json_decref(config);
    assert_null(sf_sealed_config(write_temporary("config.jsonl", file.bytes, first - 1)));
    file.bytes[first - 3] ^= 1;
    assert_null(sf_sealed_config(write_temporary("config.jsonl", file.bytes, file.length)));
    assert_null(sf_sealed_config(temporary("absent.jsonl")));
    assert_null(sf_sealed_config("/dev/null"));
    const char *pipe_path = temporary("pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_null(sf_sealed_config(pipe_path)); /* and it does not wait */
    unlink(pipe_path);
    sf_buffer_free(&file);
}

/* ------------------------------------------------------------------- members */

static void take_all(sf_members *m)
{
    assert_true(sf_member_integer(m, "below", INT64_MIN) <= 0);
    (void)sf_member_integer(m, "one", 1);
    (void)sf_member_count(m, "count");
    (void)sf_member_real(m, "number");
    (void)sf_member_flag(m, "flag");
    (void)sf_member_string(m, "string");
    (void)sf_member_object(m, "object");
    (void)sf_member_array(m, "array");
    (void)sf_member_radius(m, "radius");
    (void)sf_member_any(m, "any");
}

static void test_members(void **state)
{
    (void)state;
    static const struct {
        const char *member, *value, *words; /* value NULL: removed; words NULL: fine */
    } cases[] = {
        {"below", "0", NULL},
        {"below", "0.5", "\"below\" must be a whole number"},
        {"one", "1", NULL},
        {"one", "0", "\"one\" must be a whole number above 0"},
        {"count", "-1", "\"count\" must be a whole number, not below 0"},
        {"count", "1.0", "\"count\" must be a whole number"},
        {"count", NULL, "\"count\" is missing"},
        {"number", "3", NULL},
        {"number", "\"3\"", "\"number\" must be a number"},
        {"flag", "false", NULL},
        {"flag", "0", "\"flag\" must be true or false"},
        {"string", "null", "\"string\" must be a string"},
        {"object", "[]", "\"object\" must be an object"},
        {"array", "{}", "\"array\" must be a list"},
        {"radius", "\"all\"", NULL},
        {"radius", "0", NULL},
        {"radius", "-1", "\"radius\" must be a number of words or \"all\""},
        {"radius", "\"al\"", "\"radius\" must be a number of words or \"all\""},
        {"radius", "2.0", "\"radius\" must be a number of words or \"all\""},
        {"any", "null", NULL},
        {"any", NULL, "\"any\" is missing"},
    };
    json_t *right = json_loads("{\"below\":-5,\"one\":7,\"count\":3,\"number\":0.5,\"flag\":true,\"string\":\"s\","
                               "\"object\":{},\"array\":[1],\"radius\":12,\"any\":1}",
                               0, NULL);
    sf_members m = {.object = right};
    assert_true(sf_member_integer(&m, "below", INT64_MIN) == -5 && sf_member_integer(&m, "one", 1) == 7);
    assert_true(sf_member_count(&m, "count") == 3 && sf_member_real(&m, "number") == 0.5);
    assert_true(sf_member_flag(&m, "flag") == 1 && strcmp(sf_member_string(&m, "string"), "s") == 0);
    assert_true(sf_member_radius(&m, "radius") == 12 && json_array_size(sf_member_array(&m, "array")) == 1);
    assert_true(sf_member_object(&m, "object") && sf_member_any(&m, "any"));
    assert_ok(sf_members_check(&m, "a record", "f", 7, &error));
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *copy = json_deep_copy(right);
        if (cases[i].value)
            json_object_set_new(copy, cases[i].member, json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
        else
            json_object_del(copy, cases[i].member);
        m = (sf_members){.object = copy};
        take_all(&m);
        if (cases[i].words) {
            assert_fails(sf_members_check(&m, "a record", "f", 7, &error), SAFER_INPUT, cases[i].words);
            assert_non_null(strstr(error.message, "f, line 7: not a record: "));
        } else {
            assert_ok(sf_members_check(&m, "a record", "f", 7, &error));
        }
        json_decref(copy);
    }
    m = (sf_members){.object = right}; /* the first is told, and after it nothing is taken */
    sf_member_refuse(&m, "first", "x");
    sf_member_refuse(&m, "second", "y");
    assert_true(sf_member_count(&m, "count") == 0 && sf_member_string(&m, "string") == NULL);
    assert_fails(sf_members_check(&m, "a record", "f", 7, &error), SAFER_INPUT, "\"first\" must be x");
    json_decref(right);
}

/* Since format 2 every member has one type, and in no object is there one that nobody asks for. */
static void test_strict_members(void **state)
{
    static const char digest[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const struct {
        const char *json, *words; /* NULL: fine */
    } cases[] = {
        {"{\"real\":0.5,\"radius\":\"12\",\"inner\":{\"n\":1}}", NULL},
        {"{\"real\":0.5,\"radius\":\"all\",\"inner\":{\"n\":1},\"extra\":1}", "\"extra\" is unknown"},
        {"{\"real\":0.5,\"radius\":\"0\",\"inner\":{\"n\":1,\"m\":2}}", "\"inner.m\" is unknown"},
        {"{\"real\":0.5,\"radius\":\"0\",\"inner\":{}}", "\"inner.n\" is missing"},
        {"{\"real\":0.5,\"radius\":\"0\",\"inner\":{\"n\":1.0}}", "\"inner.n\" must be a whole number"},
        {"{\"real\":0.5,\"radius\":\"0\",\"inner\":1}", "\"inner\" must be an object"},
        {"{\"real\":1,\"radius\":\"0\",\"inner\":{\"n\":1}}", "\"real\" must be a real number"},
        {"{\"real\":1.0,\"radius\":0,\"inner\":{\"n\":1}}", "\"radius\" must be a string: a number of words"},
        {"{\"real\":1.0,\"radius\":\"00\",\"inner\":{\"n\":1}}", "\"radius\" must be a string"},
        {"{\"real\":1.0,\"radius\":\"+1\",\"inner\":{\"n\":1}}", "\"radius\" must be a string"},
        {"{\"real\":1.0,\"radius\":\"\",\"inner\":{\"n\":1}}", "\"radius\" must be a string"},
        {"{\"real\":1.0,\"radius\":\"18446744073709551615\",\"inner\":{\"n\":1}}", "\"radius\" must be a string"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *object = json_loads(cases[i].json, 0, NULL);
        sf_members m = {.object = object, .format = 2};
        (void)sf_member_real(&m, "real");
        (void)sf_member_radius(&m, "radius");
        (void)sf_member_optional(&m, "absent");
        sf_members inner = sf_members_enter(&m, "inner");
        (void)sf_member_count(&inner, "n");
        sf_members_leave(&m, &inner);
        if (cases[i].words)
            assert_fails(sf_members_check(&m, "a record", "f", 7, &error), SAFER_INPUT, cases[i].words);
        else
            assert_ok(sf_members_check(&m, "a record", "f", 7, &error));
        json_decref(object);
    }
    for (size_t i = 0; i < 4; i++) { /* right, too short, with an upper-case digit, with a NUL behind it */
        json_t *object = json_pack("{s:s#}", "d", digest, i == 1 ? 63 : 64);
        if (i == 2) json_object_set_new(object, "d", json_sprintf("A%s", digest + 1));
        if (i == 3) json_object_set_new(object, "d", json_stringn(digest, 65));
        sf_members m = {.object = object, .format = 2};
        (void)sf_member_digest(&m, "d");
        assert_int_equal(sf_members_check(&m, "a record", "f", 1, &error), i ? SAFER_INPUT : SAFER_OK);
        json_decref(object);
    }
}

static void test_difference(void **state)
{
    static const struct {
        const char *there, *here, *words; /* NULL: none */
    } cases[] = {
        {"{\"a\":1,\"date\":\"x\"}", "{\"a\":1}", NULL},
        {"{\"a\":1,\"m\":{\"name\":\"x\",\"sha256\":\"1\"}}", "{\"a\":1,\"m\":{\"name\":\"y\",\"sha256\":\"1\"}}",
         NULL},
        {"{\"m\":{\"name\":\"x\",\"probe\":\"1\"}}", "{\"m\":{\"name\":\"y\",\"probe\":\"1\"}}",
         "m.name is \"x\" there, \"y\" here"},
        {"{\"a\":1,\"b\":[1,2]}", "{\"a\":1,\"b\":[1]}", "b is [1,2] there, [1] here"},
        {"{\"a\":0.25}", "{\"a\":0.25,\"seed\":3}", "seed is missing there, 3 here"},
        {"{\"a\":0.25,\"seed\":3}", "{\"a\":0.25}", "seed is 3 there, missing here"},
        {"{\"m\":{\"x\":1}}", "{\"m\":2}", "m is {\"x\":1} there, 2 here"},
        {"{\"a\":1,\"m\":{\"x\":1}}", "{\"a\":1}", "m is {\"x\":1} there, missing here"},
        {"{\"m\":{\"name\":\"x\",\"sha256\":\"1\"}}", "{\"m\":{\"name\":\"y\"}}", "m.name is \"x\" there, \"y\" here"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *there = json_loads(cases[i].there, 0, NULL), *here = json_loads(cases[i].here, 0, NULL);
        char out[256] = "";
        assert_int_equal(sf_difference(out, sizeof out, NULL, there, here), cases[i].words != NULL);
        assert_string_equal(out, cases[i].words ? cases[i].words : "");
        json_decref(there);
        json_decref(here);
    }
}

/* ---------------------------------------------------------------------- rows */

enum { ROWS = 300, THREADS = 8 };

typedef struct counting {
    size_t added, refuse; /* refuse: how many records are taken before one is an error */
} counting;

static safer_data *make_data(void)
{
    const char *texts[ROWS];
    safer_data *data = NULL;
    for (size_t i = 0; i < ROWS; i++) texts[i] = "";
    assert_ok(safer_data_from_texts(&data, texts, NULL, NULL, NULL, ROWS, &error));
    return data;
}

static safer_status make_record(void *context, const sf_row *row, int worker, json_t **record, double *seconds,
                                safer_error *e)
{
    (void)context;
    (void)worker;
    (void)e;
    for (volatile size_t i = 0; i < row->index * 7919 % 3000; i++) { /* rows take more time and less */
    }
    *record = record_of((int)row->index + 1);
    *seconds = 0.5;
    return SAFER_OK;
}

static safer_status add_record(void *context, const json_t *record, const char *name, size_t line, safer_error *e)
{
    counting *c = context;
    assert_int_equal(json_integer_value(json_object_get(record, "row")), c->added + 1);
    assert_int_equal(line, c->added + 2);
    if (c->added == c->refuse) return sf_fail(e, SAFER_INPUT, "%s: refused", name);
    c->added++;
    return SAFER_OK;
}

static void name_stage(void *context, char *stage, size_t size) { snprintf(stage, size, "%p", context); }

/* Records come in order, and none after one that failed, whatever the threads do. */
static void test_rows(void **state)
{
    (void)state;
    json_t *config = json_pack("{s:s}", "safer", "0"), *other = json_pack("{s:s}", "safer", "1");
    const char *path = temporary("rows.jsonl");
    counting c = {.refuse = ROWS};
    safer_data *data = make_data();
    size_t resumed = 7;
    sf_rows rows = {.count = ROWS,
                    .threads = THREADS,
                    .config = config,
                    .context = &c,
                    .data = data,
                    .work = make_record,
                    .add = add_record,
                    .describe = name_stage};
    seen s;
    assert_ok(sf_rows_run(&rows, path, 0, &resumed, &error));
    assert_true(resumed == 0 && c.added == ROWS);
    assert_ok(read_all(path, &s, &error));
    assert_int_equal(s.lines, ROWS + 1);
    for (size_t refuse = 0; refuse < 100; refuse++) {
        unlink(path);
        c = (counting){.refuse = refuse};
        assert_fails(sf_rows_run(&rows, path, 0, &resumed, &error), SAFER_INPUT, "refused");
        assert_ok(read_all(path, &s, &error));
        assert_int_equal(s.lines, refuse + 2); /* it was written before it was refused */
    }
    c = (counting){.refuse = ROWS};
    assert_ok(sf_rows_run(&rows, path, 1, &resumed, &error));
    assert_true(resumed == 100 && c.added == ROWS);
    c = (counting){.refuse = ROWS};
    rows.count = ROWS - 1;
    assert_fails(sf_rows_run(&rows, path, 1, &resumed, &error), SAFER_INPUT, "holds more records than there are texts");
    rows.config = other;
    assert_fails(sf_rows_run(&rows, path, 1, &resumed, &error), SAFER_INPUT,
                 "belongs to another run: safer is \"0\" there, \"1\" here");
    json_object_set_new(other, "format", json_integer(2));
    assert_fails(sf_rows_run(&rows, path, 1, &resumed, &error), SAFER_INPUT, "can be verified but not continued");
    json_decref(config);
    json_decref(other);
    safer_data_free(data);
}

/* Cancelled before the first row, or between two: whole records, and the rest when it is resumed. Whoever wants no
 * message gets the status. */
static int stop_at(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)stage, (void)total;
    return done >= *(uint64_t *)context;
}

static void test_rows_cancelled(void **state)
{
    (void)state;
    json_t *config = json_pack("{s:s}", "safer", "0");
    const char *path = temporary("cancelled.jsonl");
    counting c = {.refuse = ROWS};
    uint64_t at = 0;
    const safer_progress progress = {stop_at, &at};
    safer_data *data = make_data();
    size_t resumed;
    sf_rows rows = {.count = ROWS,
                    .threads = 1,
                    .config = config,
                    .progress = &progress,
                    .context = &c,
                    .data = data,
                    .work = make_record,
                    .add = add_record,
                    .describe = name_stage};
    seen s;
    assert_fails(sf_rows_run(&rows, path, 0, &resumed, &error), SAFER_CANCELLED, "cancelled during");
    assert_ok(read_all(path, &s, &error));
    assert_int_equal(s.lines, 1);
    at = ROWS; /* the last report comes when all is done */
    assert_int_equal(sf_rows_run(&rows, path, 1, &resumed, NULL), SAFER_CANCELLED);
    assert_ok(read_all(path, &s, &error));
    assert_int_equal(s.lines, ROWS + 1);
    rows.progress = NULL;
    c = (counting){.refuse = ROWS};
    assert_ok(sf_rows_run(&rows, path, 1, &resumed, &error));
    assert_int_equal(resumed, ROWS);
    unlink(path);
    c = (counting){.refuse = 3};
    assert_int_equal(sf_rows_run(&rows, path, 0, &resumed, NULL), SAFER_INPUT);
    json_decref(config);
    safer_data_free(data);
}

/* The message names the first few of many labels. */
static void test_labels(void **state)
{
    (void)state;
    char names[100][20], *labels[100];
    const char *const texts[] = {"one", "two"}, *const known[] = {"label99", "label7"},
                      *const other[] = {"label7", "x"};
    const safer_model model = {.classes = COUNT(labels), .labels = labels};
    safer_data *data = NULL;
    int *classes = NULL;
    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "label%d", i);
        labels[i] = names[i];
    }
    assert_ok(safer_data_from_texts(&data, texts, NULL, known, NULL, 2, &error));
    assert_ok(sf_map_labels(&classes, &model, data, &error));
    for (size_t i = 0; i < 2; i++) assert_string_equal(names[classes[i]], safer_data_label(data, i));
    free(classes);
    safer_data_free(data);
    assert_ok(safer_data_from_texts(&data, texts, NULL, other, NULL, 2, &error));
    assert_fails(sf_map_labels(&classes, &model, data, &error), SAFER_INPUT,
                 "the data has the label \"x\", which the model does not know (it knows: label0, label1, ");
    assert_null(strstr(error.message, "label50"));
    safer_data_free(data);
}

/* --------------------------------------------------------------------- guard */

static int found_random;

static int is_random(const safer_model *model)
{
    (void)model;
    return found_random;
}

static safer_status confirm(const safer_model *model, const sf_span *texts, const int *answers, size_t count,
                            void *scratch, safer_error *e)
{
    (void)model, (void)texts, (void)answers, (void)count, (void)scratch, (void)e;
    return SAFER_OK;
}

/* Records of a model that changed its answers are renamed; those that are not this run's stay as they are. */
static void test_guard(void **state)
{
    static const sf_model_class class = {.arch = "exec", .is_random = is_random, .confirm = confirm};
    const safer_model model = {.class = &class, .name = "m"}, other = {.class = &class, .name = "other"},
                      nameless = {.class = &class};
    json_t *config = json_pack("{s:s, s:{s:s}}", "safer", "0", "model", "name", "m");
    char path[500], changed[520];
    sf_sealed_output out;
    sf_guard guard;
    (void)state;
    snprintf(path, sizeof path, "%s", temporary("guarded.jsonl"));
    snprintf(changed, sizeof changed, "%s.changed", path);
    const safer_model *const models[] = {&other, &nameless, &model, &model, &model, &model};
    enum { OTHER, NAMELESS, LOCKED, IN_THE_WAY, SILENT, RENAMED };
    for (int i = OTHER; i <= RENAMED; i++) {
        found_random = 0;
        assert_ok(sf_guard_begin(&guard, path, 0, models[i], &error));
        assert_true(guard.on);
        assert_ok(sf_sealed_open(&out, path, 0, config, see, &(seen){0}, &error));
        if (i != LOCKED) sf_sealed_close(&out);
        strcpy(error.message, "failed");
        sf_guard_end(&guard, &error); /* for another reason */
        assert_string_equal(error.message, "failed");
        found_random = 1;
        if (i == IN_THE_WAY) assert_int_equal(mkdir(changed, 0777), 0);
        sf_guard_end(&guard, i == SILENT ? NULL : &error);
        if (i == IN_THE_WAY) assert_int_equal(rmdir(changed), 0);
        assert_int_equal(access(path, F_OK), i < SILENT ? 0 : -1);
        assert_int_equal(access(changed, F_OK), i < SILENT ? -1 : 0);
        assert_true((strstr(error.message, "do not continue the records in ") != NULL) == (i == IN_THE_WAY));
        assert_true((strstr(error.message, "the records so far are now in ") != NULL) == (i == RENAMED));
        if (i == LOCKED) sf_sealed_close(&out);
        unlink(path);
        if (i != RENAMED) unlink(changed);
    }
    found_random = 0;
    assert_fails(sf_guard_begin(&guard, path, 1, &model, &error), SAFER_INPUT, "the model changed its answers while");
    found_random = 1;
    assert_ok(sf_guard_begin(&guard, path, 1, &model, &error)); /* it is declared to be so */
    assert_false(guard.on);
    json_decref(config);
}

static void test_difference_of_values(void **state)
{
    (void)state;
    char out[100];
    json_t *one = json_integer(1), *two = json_integer(2), *object = json_object();
    assert_int_equal(sf_difference(out, sizeof out, NULL, one, two), 1);
    assert_string_equal(out, "it is 1 there, 2 here");
    assert_int_equal(sf_difference(out, sizeof out, "x", object, two), 1);
    assert_int_equal(sf_difference(out, sizeof out, "x", NULL, two), 1);
    assert_int_equal(sf_difference(out, sizeof out, NULL, one, one), 0);
    json_decref(one);
    json_decref(two);
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seal),           cmocka_unit_test(test_tail),
        cmocka_unit_test(test_date),           cmocka_unit_test(test_date_of_file),
        cmocka_unit_test(test_foreign_file),   cmocka_unit_test(test_read),
        cmocka_unit_test(test_resume),         cmocka_unit_test(test_config),
        cmocka_unit_test(test_members),        cmocka_unit_test(test_strict_members),
        cmocka_unit_test(test_difference),     cmocka_unit_test(test_rows),
        cmocka_unit_test(test_rows_cancelled), cmocka_unit_test(test_difference_of_values),
        cmocka_unit_test(test_power_cut),      cmocka_unit_test(test_device),
        cmocka_unit_test(test_labels),         cmocka_unit_test(test_guard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
