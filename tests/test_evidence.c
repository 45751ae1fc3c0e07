/* Evidence: what is escaped where, model cards, gates, and the files. Whether the files are what their formats ask for
 * is in test_cli_evidence.py, which has the schemas. */
#define _GNU_SOURCE
#include "support.h"

#include "report/card.h"
#include "report/document.h"
#include "report/facts.h"
#include "text/unicode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static safer_error error;

/* ----------------------------------------------------------------- escaping */

/* &#NN; back to characters. */
static void unescape(sf_buffer *out, const char *text)
{
    while (*text) {
        unsigned code;
        int length = 0;
        if (sscanf(text, "&#%u;%n", &code, &length) != 1 || !length) code = (unsigned char)*text, length = 1;
        assert_int_equal(sf_buffer_add_byte(out, (char)code), 0);
        text += length;
    }
}

static void test_markdown_every_character(void **state)
{
    sf_writer out = {0};
    sf_buffer back = {0};
    (void)state;
    for (uint32_t code = 1; code <= 0x10ffff; code++) {
        char text[8] = "x";
        if (code >= 0xd800 && code <= 0xdfff) continue;
        size_t length = 1 + sf_utf8_encode(code, text + 1);
        text[length++] = 'y';
        text[length] = '\0';
        sf_buffer_clear(&out.out);
        sf_buffer_clear(&back);
        sf_put_markdown(&out, text, 10);
        unescape(&back, out.out.bytes);
        for (const char *p = out.out.bytes; *p; p++) {
            if (strncmp(p, "&#", 2) == 0) p = strchr(p, ';');
            assert_null(strchr("\\`*_{}[]<>#+!|~@:&^$?\r\n\t", *p));
            assert_false(*p == '.' && p[1] == 'y'); /* "www.y" would be a link */
        }
        if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029)
            assert_string_equal(back.bytes, "x y");
        else if ((code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef))
            assert_string_equal(back.bytes, "x\xef\xbf\xbdy");
        else
            assert_string_equal(back.bytes, text);
    }
    sf_buffer_clear(&out.out);
    sf_put_markdown(&out,
                    "\xc3\xa4\xc3\xb6\xff"
                    "0.5 and more",
                    5);
    assert_string_equal(out.out.bytes, "\xc3\xa4\xc3\xb6\xef\xbf\xbd"
                                       "0.\xe2\x80\xa6");
    assert_false(out.failed);
    sf_buffer_free(&back);
    sf_writer_free(&out);
}

static void test_uri(void **state)
{
    sf_writer out = {0};
    (void)state;
    sf_put_uri(&out, "a-b_c.d~9 /:%\xc3\xa9");
    assert_string_equal(out.out.bytes, "a-b_c.d~9%20%2F%3A%25%C3%A9");
    sf_writer_free(&out);
}

static void test_document(void **state)
{
    sf_writer out = {0};
    sf_document d = {.out = &out};
    (void)state;
    sf_document_open(&d, NULL, '{');
    sf_document_open(&d, "empty", '[');
    sf_document_close(&d, ']');
    sf_document_open(&d, "list", '[');
    sf_document_open(&d, NULL, '{');
    sf_document_close(&d, '}');
    sf_document_string(&d, NULL, "\"\xff\n</script>");
    sf_document_real(&d, NULL, 0.1);
    sf_document_close(&d, ']');
    sf_document_count(&d, "count", UINT64_MAX);
    sf_document_bool(&d, "yes", 1);
    sf_document_bool(&d, "no", 0);
    sf_document_close(&d, '}');
    json_t *json = json_loads(out.out.bytes, JSON_REJECT_DUPLICATES, NULL);
    assert_null(json); /* 64 bits are more than jansson reads */
    char *at = strstr(out.out.bytes, "18446744073709551615");
    memmove(at, at + 1, strlen(at)); /* one digit less */
    json = json_loads(out.out.bytes, JSON_REJECT_DUPLICATES, NULL);
    json_t *expected = json_pack("{s:[], s:[{}, s, f], s:I, s:b, s:b}", "empty", "list", "\"\xef\xbf\xbd\n</script>",
                                 0.1, "count", (json_int_t)8446744073709551615, "yes", 1, "no", 0);
    assert_non_null(json);
    assert_true(json_equal(json, expected));
    json_decref(json);
    json_decref(expected);
    sf_writer_free(&out);
}

/* -------------------------------------------------------------------- cards */

/* What is read of a card: "name|version|license|url|tag,tag", with "-" for what it lacks, or the error. */
static const char *read_card(const char *text)
{
    static char says[sizeof error.message];
    sf_card card = {0};
    error.message[0] = '\0';
    if (sf_card_parse(&card, text, strlen(text), "card", &error) != SAFER_OK) {
        snprintf(says, sizeof says, "%s", error.message);
    } else {
        const char *const members[] = {card.name, card.version, card.license, card.url};
        size_t length = 0;
        for (size_t i = 0; i < 4; i++)
            length += (size_t)snprintf(says + length, sizeof says - length, "%s|", members[i] ? members[i] : "-");
        for (size_t i = 0; i < json_array_size(card.tags); i++)
            length += (size_t)snprintf(says + length, sizeof says - length, "%s%s", i ? "," : "",
                                       json_string_value(json_array_get(card.tags, i)));
    }
    sf_card_free(&card);
    return says;
}

static void test_cards(void **state)
{
    static const char *const cases[][2] = {
        {"", "-|-|-|-|"},
        {"# Model Card for toxic-bert\n\n# Other\n", "toxic-bert|-|-|-|"},
        {"---\nlicense: apache-2.0\ntags:\n- a\n-  'b c'  \n- \"d#e\" # why\nlanguage:\n- en\n---\n\n## Second\n"
         "# First\n",
         "First|-|apache-2.0|-|a,b c,d#e"},
        {"---\r\nname: \"A: b\"\r\ntags: [x, 'y',, z]\r\nversion: 1.2 # newest\r\nmodel-index:\r\n- name: nested\r\n"
         "  license: nested\r\nurl: https://example.org/a?b\r\n---\r\n# Heading\r\n",
         "A: b|1.2|-|https://example.org/a?b|x,y,z"},
        {"---\nname:\nnames: no\nlicense: # none\n", "-|-|-|-|"},
        {" {\"name\": \"n\", \"tags\": [\"t\"], \"more\": {}}", "n|-|-|-|t"},
        {"{\"name\": 1}", "card: \"name\" is not a string"},
        {"{\"tags\": \"a\"}", "card: \"tags\" is not a list"},
        {"{\"tags\": [\"a\", null]}", "card: a tag is not a string"},
        {"{\"url\": \"javascript:x\"}", "card: \"url\" is not an address of the web: javascript:x"},
        {"{\"url\": \"https://a b\"}", "card: \"url\" is not an address of the web: https://a b"},
        {"# \xff\n", "card: not UTF-8"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_string_equal(read_card(cases[i][0]), cases[i][1]);
    assert_non_null(strstr(read_card("{\n\"name\": }"), "card, line 2: "));
}

/* --------------------------------------------------------------------- runs */

enum { TEXTS = 12 };
static const char sha_a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char sha_b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
static const char sha_c[] = "0123456789abcdeff123456789abcdef0123456789abcdef0123456789abcdef";
static const char nasty[] = "a|`<b>\"&@x](y)";

/* A run as it would be read, with the label of text i being i % 2: those of `held` hold. Of the others the first
 * abstains, the second is answered as another class, the rest are not certified. */
static safer_run *make_run(const char *path, unsigned held)
{
    safer_run *run = calloc(1, sizeof *run);
    size_t others = 0;
    assert_non_null(run);
    run->path = strdup(path);
    run->json = json_pack("{s:{s:s, s:s, s:s, s:s}, s:{s:s, s:s}, s:{s:s, s:s}, s:[s, s], s:f, s:b, s:s, s:s}", "model",
                          "name", nasty, "arch", "cnn", "sha256", sha_a, "arithmetic", "avx2", "lexicon", "name",
                          "words.lex", "sha256", sha_b, "data", "name", "my data.tsv", "sha256", sha_c, "labels", "neg",
                          nasty, "delta", 0.01, "family_wise", 0, "radius", "all", "date", "2026-11-16T10:03:22Z");
    assert_non_null(run->json);
    run->config = (sf_config){.delta = 0.01, .radius = SAFER_ALL, .texts = TEXTS, .classes = 2};
    run->config.labels = json_object_get(run->json, "labels");
    assert_ok(sf_summary_start(&run->certified, &run->config, &error));
    run->texts = calloc(TEXTS, sizeof *run->texts);
    for (int i = 0; i < TEXTS; i++) {
        const int holds = held >> i & 1, nth = holds ? -1 : (int)others++;
        sf_record r = {.label = i % 2,
                       .target = i % 2,
                       .base = i % 2,
                       .prediction = nth == 1 ? 1 - i % 2 : i % 2,
                       .abstained = nth == 0,
                       .certified = holds,
                       .radius = holds ? SAFER_ALL : 0,
                       .words = 3,
                       .slots = 2,
                       .visible = 2};
        char id[64];
        sf_summary_add(&run->certified, &r);
        run->texts[i] = (sf_finished){run->ids.length, holds, r.label, r.abstained ? -1 : r.prediction};
        snprintf(id, sizeof id, "%s%d", nasty, i);
        assert_int_equal(sf_buffer_add(&run->ids, id, strlen(id) + 1), 0);
    }
    run->count = TEXTS;
    return run;
}

static unsigned ones(unsigned x) { return x ? (x & 1) + ones(x >> 1) : 0; }

/* P[Bin(n, 1/2) >= k], exactly. */
static double tail(unsigned k, unsigned n)
{
    double sum = 0, choose = 1;
    for (unsigned i = 0; i <= n; i++) {
        if (i >= k) sum += choose;
        choose = choose * (n - i) / (i + 1);
    }
    return sum / (double)(1u << n);
}

static void test_gates(void **state)
{
    safer_gate gate;
    safer_run *run = make_run("run.jsonl", 0x3ff);
    const safer_summary *s = safer_run_certified(run);
    (void)state;
    safer_gate_accuracy(&gate, s, 0.84);
    assert_string_equal(gate.message, "certified and answered: 83.33% of 12 texts, below the required 84.0%");
    assert_true(!gate.met && gate.part == 10 && gate.whole == 12 && gate.threshold == 0.84);
    safer_gate_accuracy(&gate, s, 10.0 / 12);
    assert_true(gate.met && gate.value == 10.0 / 12);
    assert_ok(safer_gate_recall(&gate, s, nasty, 0.57, &error));
    assert_true(gate.met && gate.kind == SAFER_GATE_RECALL);
    assert_string_equal(gate.message,
                        "certified recall of a|`<b>\"&@x](y): 83.33% of 6 texts, at least the required 57.0%");
    assert_ok(safer_gate_recall(&gate, s, "neg", 1, &error));
    assert_false(gate.met);
    assert_int_equal(safer_gate_recall(&gate, s, "other", 0.5, &error), SAFER_INVALID);
    assert_string_equal(error.message, "the run has no label other");

    run->certified.by_class[0].texts = run->certified.by_class[0].certified_answered = 0;
    assert_ok(safer_gate_recall(&gate, s, "neg", 0, &error));
    assert_string_equal(gate.message, "certified recall of neg: no text has this label");
    assert_false(gate.met);
    run->certified.empty = run->certified.certificates;
    safer_gate_accuracy(&gate, s, 0);
    assert_non_null(strstr(gate.message, "certified and answered: not met, since most certificates are empty"));
    assert_false(gate.met);
    assert_ok(safer_gate_recall(&gate, s, nasty, 0, &error));
    assert_non_null(strstr(gate.message, "&@x](y): not met, since most certificates are empty"));
    assert_false(gate.met);
    safer_run_free(run);
}

static void test_long_names(void **state)
{
    safer_gate gate;
    char label[600];
    safer_run *run = make_run("run.jsonl", 0);
    (void)state;
    for (size_t i = 0; i + 2 < sizeof label; i += 2) memcpy(label + i, "\xc3\xa4", 3);
    free(run->certified.by_class[1].label);
    run->certified.by_class[1].label = strdup(label);
    assert_non_null(run->certified.by_class[1].label);
    for (size_t first = 0; first < 2; first++) { /* one byte more or less before it */
        run->certified.by_class[1].label[0] = 'x';
        run->certified.by_class[1].label[1] = 'y';
        if (first) memmove(run->certified.by_class[1].label, run->certified.by_class[1].label + 1, sizeof label - 2);
        const char *name = run->certified.by_class[1].label;
        assert_ok(safer_gate_recall(&gate, &run->certified, name, 0.5, &error));
        assert_true(strlen(gate.name) >= sizeof gate.name - 2);
        assert_int_equal(sf_utf8_valid(gate.name, strlen(gate.name)), strlen(gate.name));
        assert_int_equal(sf_utf8_valid(gate.message, strlen(gate.message)), strlen(gate.message));
    }
    safer_run_free(run);
}

static void test_not_worse(void **state)
{
    static const unsigned sets[] = {0, 1, 0x1f, 0x0f, 0xff, 0xfe0, 0xfff, 0x555, 0xaaa, 0xc01};
    enum { SETS = sizeof sets / sizeof *sets };
    (void)state;
    for (size_t a = 0; a < SETS; a++)
        for (size_t b = 0; b < SETS; b++) {
            safer_run *run = make_run("x/run.jsonl", sets[a]), *base = make_run("y/base.jsonl", sets[b]);
            const unsigned lost = ones(sets[b] & ~sets[a]), gained = ones(sets[a] & ~sets[b]);
            const double p = tail(lost, lost + gained);
            safer_gate gate;
            char start[100];
            assert_ok(safer_gate_not_worse(&gate, run, base, &error));
            assert_true(gate.value >= p && gate.value <= p * (1 + 1e-11));
            assert_int_equal(gate.met, gate.value > 0.05);
            assert_int_equal(gate.part, lost);
            assert_int_equal(gate.whole, lost + gained);
            snprintf(start, sizeof start, "not worse than base.jsonl: %u certificate%s lost and %u gained, p = ", lost,
                     lost == 1 ? "" : "s", gained);
            assert_int_equal(strncmp(gate.message, start, strlen(start)), 0);
            safer_run_free(run);
            safer_run_free(base);
        }
    assert_true(tail(5, 5) < 0.05 && tail(4, 4) > 0.05);
}

/* A run that claims less is not compared. */
static void test_no_match(void **state)
{
    static const struct {
        const char *part, *member, *value, *says;
    } cases[] = {
        {"data", "sha256", sha_a, "run.jsonl cannot be compared with base.jsonl: they are about different texts"},
        {"lexicon", "sha256", sha_a,
         "run.jsonl cannot be compared with base.jsonl: their lexicons differ, and with them what an attacker may do"},
        {NULL, "radius", "5", "run.jsonl cannot be compared with base.jsonl: their radii differ"},
        {NULL, "labels", "x", "run.jsonl cannot be compared with base.jsonl: their labels differ"},
        {"data", "sha256", NULL, "run.jsonl: run it again; format 1 has no digests"},
    };
    safer_gate gate;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        safer_run *run = make_run("run.jsonl", 1), *base = make_run("base.jsonl", 1);
        json_t *part = cases[i].part ? json_object_get(run->json, cases[i].part) : run->json;
        if (cases[i].value)
            json_object_set_new(part, cases[i].member, json_string(cases[i].value));
        else
            json_object_del(part, cases[i].member);
        assert_true(safer_gate_not_worse(&gate, run, base, &error) != SAFER_OK);
        assert_string_equal(error.message, cases[i].says);
        safer_run_free(run);
        safer_run_free(base);
    }
    safer_run *run = make_run("run.jsonl", 1), *base = make_run("base.jsonl", 1);
    run->config.delta = 0.02;
    assert_true(safer_gate_not_worse(&gate, run, base, &error) != SAFER_OK);
    assert_string_equal(error.message, "run.jsonl cannot be compared with base.jsonl: its delta is larger, and its "
                                       "certificates claim less");
    run->config.delta = 0.01;
    run->config.options.alpha = base->config.options.alpha + 0.1;
    assert_true(safer_gate_not_worse(&gate, run, base, &error) != SAFER_OK);
    assert_string_equal(error.message, "run.jsonl cannot be compared with base.jsonl: its alpha is larger, and its "
                                       "answers claim less");
    run->config.method = SAFER_METHOD_IBP; /* and no delta at all */
    assert_ok(safer_gate_not_worse(&gate, run, base, &error));
    assert_true(safer_gate_not_worse(&gate, base, run, &error) != SAFER_OK);
    run->config.method = SAFER_METHOD_ADAPTIVE;
    run->config.options.alpha = base->config.options.alpha;
    run->count = TEXTS - 1; /* a digest that lies */
    assert_true(safer_gate_not_worse(&gate, run, base, &error) != SAFER_OK);
    run->is_attack = 1;
    assert_true(safer_gate_not_worse(&gate, run, base, &error) != SAFER_OK);
    safer_run_free(run);
    safer_run_free(base);
}

/* -------------------------------------------------------------------- forms */

static json_t *at(const json_t *json, const char *path) /* "a/0/b" */
{
    char copy[200];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *save, *key = strtok_r(copy, "/", &save); key; key = strtok_r(NULL, "/", &save))
        json = json_is_array(json) ? json_array_get(json, (size_t)atoi(key)) : json_object_get(json, key);
    if (!json) fail_msg("nothing at %s", path);
    return (json_t *)json;
}

static const char *string_at(const json_t *json, const char *path) { return json_string_value(at(json, path)); }

/* Facts about a run that lost three certificates and gained one, with two requirements. */
static sf_facts make_facts(safer_gate gates[2])
{
    sf_facts facts = {.run = make_run("run.jsonl", 0x00f), .baseline = make_run("old.jsonl", 0x071)};
    safer_gate_accuracy(&gates[0], safer_run_certified(facts.run), 0.5);
    assert_ok(safer_gate_not_worse(&gates[1], facts.run, facts.baseline, &error));
    facts.gates = gates;
    facts.gate_count = 2;
    facts.file = (sf_artifact){.name = "run.jsonl", .sha256 = sha_c};
    facts.before = (sf_artifact){.name = "old.jsonl", .sha256 = sha_b};
    facts.not_checked[0] = "one";
    facts.not_checked[1] = "two";
    assert_ok(sf_card_parse(&facts.card, "---\nlicense: mit\ntags: [a]\n---\n# N<\n", 35, "card", &error));
    facts.card_file = (sf_artifact){.name = "my card.md", .sha256 = sha_a};
    assert_ok(sf_facts_collect(&facts, &error));
    return facts;
}

static void free_facts(sf_facts *facts)
{
    safer_run_free((safer_run *)facts->run);
    safer_run_free((safer_run *)facts->baseline);
    sf_facts_free(facts);
}

/* The text of a form; free() it. */
static char *write_form(void (*put)(sf_writer *out, const sf_facts *facts), const sf_facts *facts)
{
    sf_writer out = {0};
    put(&out, facts);
    assert_false(out.failed);
    char *text = strdup(out.out.bytes);
    assert_non_null(text);
    sf_writer_free(&out);
    return text;
}

static json_t *load_form(void (*put)(sf_writer *out, const sf_facts *facts), const sf_facts *facts)
{
    char *text = write_form(put, facts);
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    free(text);
    return json;
}

static void test_json_forms(void **state)
{
    safer_gate gates[2];
    sf_facts facts = make_facts(gates);
    json_t *bom = load_form(sf_put_bom, &facts), *statement = load_form(sf_put_statement, &facts),
           *sarif = load_form(sf_put_sarif, &facts);
    (void)state;
    assert_string_equal(string_at(bom, "serialNumber"), "urn:uuid:01234567-89ab-8def-b123-456789abcdef");
    assert_string_equal(string_at(bom, "metadata/timestamp"), "2026-11-16T10:03:22Z");
    assert_string_equal(string_at(bom, "components/0/name"), "N<");
    assert_string_equal(string_at(bom, "components/0/version"), "aaaaaaaaaaaa");
    assert_string_equal(string_at(bom, "components/0/licenses/0/license/id"), "MIT");
    assert_string_equal(string_at(bom, "components/0/externalReferences/0/url"), "my%20card.md");
    const json_t *metrics = at(bom, "components/0/modelCard/quantitativeAnalysis/performanceMetrics");
    assert_string_equal(string_at(metrics, "0/type"), "certified and answered");
    assert_string_equal(string_at(metrics, "0/value"), "0.3333");                         /* 4 of 12 */
    assert_string_equal(string_at(metrics, "0/confidenceInterval/lowerBound"), "0.1381"); /* 0.13812 to 0.60937 */
    assert_string_equal(string_at(metrics, "0/confidenceInterval/upperBound"), "0.6094");

    assert_string_equal(string_at(statement, "predicate/result"), "FAILED");
    assert_string_equal(string_at(statement, "subject/2/digest/sha256"), sha_a);
    assert_string_equal(string_at(statement, "predicate/saferClaims/0/comparator"), ">=");
    assert_int_equal(json_integer_value(at(statement, "predicate/saferClaims/0/sampleSize")), 12);
    assert_true(json_is_false(at(statement, "predicate/saferClaims/0/passed")));
    assert_string_equal(string_at(statement, "predicate/failedTests/0"), "certified and answered");
    assert_string_equal(string_at(statement, "predicate/passedTests/1"), "not worse than old.jsonl");

    assert_int_equal(json_array_size(at(sarif, "runs/0/results")), 4);
    assert_string_equal(string_at(sarif, "runs/0/results/0/ruleId"), "accuracy");
    assert_string_equal(string_at(sarif, "runs/0/results/1/level"), "note");
    const json_t *place = at(sarif, "runs/0/results/1/locations/0");
    assert_string_equal(string_at(place, "physicalLocation/artifactLocation/uri"), "my%20data.tsv");
    assert_int_equal(json_integer_value(at(place, "physicalLocation/region/startLine")), 5);
    assert_string_equal(string_at(place, "logicalLocations/0/name"), safer_run_id(facts.run, 4));
    json_decref(bom);
    json_decref(statement);
    json_decref(sarif);
    free_facts(&facts);
}

static void test_text_forms(void **state)
{
    safer_gate gates[2];
    sf_facts facts = make_facts(gates);
    char *junit = write_form(sf_put_junit, &facts), *summary = write_form(sf_put_summary, &facts);
    (void)state;
    assert_non_null(strstr(junit, "tests=\"3\" failures=\"1\" errors=\"0\""));
    assert_non_null(strstr(junit, "tests=\"3\" failures=\"0\" errors=\"0\" skipped=\"3\""));
    assert_non_null(strstr(junit, "<skipped>text a|`&lt;b&gt;&quot;&amp;@x](y)4 (row 5): certified and answered in "
                                  "old.jsonl, not in run.jsonl: abstained</skipped>"));
    assert_non_null(strstr(summary, "| **certified and answered** | 33.33% | 13.81% to 60.94% | 4 of 12 |"));
    assert_non_null(strstr(summary, "| certified recall of <code>neg</code> | 33.33% |"));
    assert_non_null(strstr(summary, "- **not met**: <code>certified and answered: 33.33% of 12 texts, below"));
    assert_non_null(strstr(summary, "<code>3 lost and 3 gained, of 12 texts</code>"));
    assert_non_null(strstr(summary, " | <code>abstained</code> |"));
    assert_null(strstr(summary, "@x"));
    free(junit);
    gates[1].met = 0; /* the losses count */
    sf_facts worse = make_facts(gates);
    worse.worse = 1;
    junit = write_form(sf_put_junit, &worse);
    assert_non_null(strstr(junit, "tests=\"3\" failures=\"3\" errors=\"0\" time"));
    free(junit);
    free(summary);
    free_facts(&worse);
    free_facts(&facts);
}

/* ------------------------------------------------------------------ all of it */

static int answer_good(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    (void)context, (void)lengths;
    for (size_t i = 0; i < count; i++) labels[i] = strstr(texts[i], "good") || strstr(texts[i], "great");
    return 0;
}

/* A run of four texts that never were a file. */
static const char *certify_texts(const char *name, uint64_t seed)
{
    static const char *const texts[] = {"good", "bad", "great film", "a film"}, *const labels[] = {"b", "a", "b", "b"};
    static const char table[] = "good\tgreat\nfilm\tmovie\n";
    safer_lexicon_options lexicon_options = safer_lexicon_options_default();
    safer_remote_options remote = safer_remote_options_default();
    safer_certify_options options = safer_certify_options_default();
    safer_lexicon *lexicon;
    safer_data *data;
    safer_model *model;
    const char *path = temporary(name);
    lexicon_options.table = write_temporary("table.tsv", table, sizeof table - 1);
    lexicon_options.kernel = "component";
    remote.labels = (const char *const[]){"a", "b"};
    remote.label_count = 2;
    remote.model_name = "good";
    options.seed = seed;
    assert_ok(safer_lexicon_import(&lexicon, &lexicon_options, NULL, &error));
    assert_ok(safer_data_from_texts(&data, texts, NULL, labels, NULL, 4, &error));
    assert_ok(safer_model_from_callback(&model, answer_good, NULL, &remote, &error));
    assert_ok(safer_certify(NULL, path, 0, model, lexicon, data, &options, &error));
    safer_model_free(model);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    return path;
}

typedef struct request {
    char run[300], baseline[300], card[300], folder[300];
} request;

static safer_status write_evidence(void *context, safer_error *e)
{
    const request *r = context;
    safer_evidence_options options = safer_evidence_options_default();
    safer_gate gates[3];
    options.require = 0.5;
    options.recalls = &(safer_recall){"b", 0.9};
    options.recall_count = 1;
    options.not_worse_than = r->baseline;
    options.model_card = r->card;
    safer_status status = safer_evidence(gates, r->folder, r->run, &options, e);
    if (status != SAFER_OK) return status;
    assert_true(gates[0].kind == SAFER_GATE_ACCURACY && gates[0].met);
    assert_true(gates[1].kind == SAFER_GATE_RECALL && !gates[1].met);
    assert_true(gates[2].kind == SAFER_GATE_NOT_WORSE && gates[2].met);
    return SAFER_OK;
}

static void test_memory(void **state)
{
    static const char card[] = "---\ntags: [a]\n---\n# N\n";
    request r;
    (void)state;
    snprintf(r.run, sizeof r.run, "%s", certify_texts("run.jsonl", 1));
    snprintf(r.baseline, sizeof r.baseline, "%s", certify_texts("base.jsonl", 2));
    snprintf(r.card, sizeof r.card, "%s", write_temporary("card.md", card, sizeof card - 1));
    snprintf(r.folder, sizeof r.folder, "%s", temporary("evidence"));
    assert_ok(write_evidence(&r, &error));
    check_every_allocation(write_evidence, &r);
}

static void test_options(void **state)
{
    safer_evidence_options options = {0};
    (void)state;
    assert_int_equal(safer_evidence(NULL, "x", "y", &options, &error), SAFER_INVALID);
    options = safer_evidence_options_default();
    options.require = 1.5;
    assert_int_equal(safer_evidence(NULL, "x", "y", &options, &error), SAFER_INVALID);
    options.require = (double)NAN;
    assert_int_equal(safer_evidence(NULL, "x", "y", &options, &error), SAFER_INVALID);
    options.require = 0;
    options.recalls = &(safer_recall){"b", -1};
    options.recall_count = 1;
    assert_int_equal(safer_evidence(NULL, "x", "y", &options, &error), SAFER_INVALID);
    assert_string_equal(error.message, "recall of b: a share from 0 to 1");
    options.recall_count = 0;
    options.baseline = options.not_worse_than = "z";
    assert_int_equal(safer_evidence(NULL, "x", "y", &options, &error), SAFER_INVALID);
    assert_string_equal(error.message, "`baseline` and `not_worse_than`: one of them");
    assert_string_equal(safer_evidence_file(4), "summary.md");
    assert_null(safer_evidence_file(5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_markdown_every_character),
        cmocka_unit_test(test_uri),
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_cards),
        cmocka_unit_test(test_gates),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_not_worse),
        cmocka_unit_test(test_no_match),
        cmocka_unit_test(test_json_forms),
        cmocka_unit_test(test_text_forms),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
