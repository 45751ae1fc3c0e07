/* Evidence: what is escaped where, model cards, gates, and the files. Whether the files are what their formats ask for
 * is in test_cli_evidence.py, which has the schemas. */
#define _GNU_SOURCE
#include "support.h"

#include "report/card.h"
#include "report/document.h"
#include "text/unicode.h"

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
            assert_null(strchr("\\`*_{}[]<>()#+!|~@:&^$?\r\n\t", *p));
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
    static char says[400];
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
        {"---\nlicense: apache-2.0\ntags:\n- a\n-  'b c'  \n- \"d#e\" # why\nlanguage:\n- en\n---\n\n## Second\n# First\n",
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_markdown_every_character),
        cmocka_unit_test(test_uri),
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_cards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
