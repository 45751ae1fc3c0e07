/* The report: what is escaped where, the pictures, the figures, the files beside it, the errors. How a browser shows it
 * is in test_browser.py. */
#define _GNU_SOURCE
#include "support.h"

#include "base/gzip.h"
#include "run/sealed.h"
#include "report/assets.h"
#include "report/page.h"
#include "report/plot.h"
#include "report/writer.h"
#include "text/unicode.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static safer_error error;

/* ----------------------------------------------------------------- escaping */

/* What a browser makes of escaped text: names back to characters. */
static void unescape_html(sf_buffer *out, const char *text)
{
    static const struct {
        const char *name;
        char byte;
    } names[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
    while (*text) {
        size_t n = 0;
        for (; n < 5 && strncmp(text, names[n].name, strlen(names[n].name)) != 0; n++) {}
        if (n < 5)
            assert_int_equal(sf_buffer_add_byte(out, names[n].byte), 0);
        else
            assert_int_equal(sf_buffer_add_byte(out, *text), 0);
        text += n < 5 ? strlen(names[n].name) : 1;
    }
}

/* Controls, noncharacters: neither HTML nor XML may hold them. */
static int may_stand(uint32_t code)
{
    if (code < 0x20) return code == '\t' || code == '\n' || code == '\r';
    return !(code >= 0x7f && code <= 0x9f) && !(code >= 0xfdd0 && code <= 0xfdef) && (code & 0xffff) != 0xfffe &&
           (code & 0xffff) != 0xffff;
}

/* A character between two letters: bytes in all, 0 for what is no character. */
static size_t surround(char bytes[6], uint32_t code)
{
    if (code >= 0xd800 && code <= 0xdfff) return 0;
    const size_t length = sf_utf8_encode(code, bytes + 1);
    bytes[0] = 'x';
    bytes[length + 1] = 'y';
    return length + 2;
}

static void test_html_every_character(void **state)
{
    sf_writer out = {0};
    sf_buffer back = {0};
    (void)state;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        char bytes[6];
        const size_t length = surround(bytes, code);
        if (!length) continue;
        sf_buffer_clear(&out.out);
        sf_buffer_clear(&back);
        sf_put_html(&out, bytes, length);
        assert_null(strpbrk(out.out.bytes, "<>\"'"));
        assert_int_equal(strlen(out.out.bytes), out.out.length);
        unescape_html(&back, out.out.bytes);
        assert_int_equal(back.bytes[0], 'x');
        assert_int_equal(back.bytes[back.length - 1], 'y');
        if (may_stand(code)) {
            assert_int_equal(back.length, length);
            assert_memory_equal(back.bytes, bytes, length);
        } else {
            assert_string_equal(back.bytes, "x\xef\xbf\xbdy");
        }
    }
    sf_writer_free(&out);
    sf_buffer_free(&back);
}

static void test_html_bad_bytes(void **state)
{
    sf_writer out = {0};
    (void)state;
    sf_put_html(&out, "a\xff<\xc3", 4);
    assert_string_equal(out.out.bytes, "a\xef\xbf\xbd&lt;\xef\xbf\xbd");
    sf_buffer_clear(&out.out);
    sf_put_html(&out, "\0\0</script>", 11);
    assert_string_equal(out.out.bytes, "\xef\xbf\xbd\xef\xbf\xbd&lt;/script&gt;");
    sf_buffer_clear(&out.out);
    sf_put_html_short(&out, "\xc3\xa4\xc3\xb6\xc3\xbc<", 3); /* three characters of two bytes each */
    assert_string_equal(out.out.bytes, "\xc3\xa4\xc3\xb6\xc3\xbc…");
    sf_buffer_clear(&out.out);
    sf_put_html_short(&out, "<b>", 3);
    assert_string_equal(out.out.bytes, "&lt;b&gt;");
    sf_writer_free(&out);
}

static void test_json_every_character(void **state)
{
    sf_writer out = {0};
    (void)state;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        char bytes[6];
        const size_t length = surround(bytes, code);
        if (!length) continue;
        sf_buffer_clear(&out.out);
        sf_put_json(&out, bytes, length);
        assert_null(strpbrk(out.out.bytes, "<>&\n\r")); /* nothing that a script element would end at */
        assert_null(strstr(out.out.bytes, "\xe2\x80\xa8"));
        assert_null(strstr(out.out.bytes, "\xe2\x80\xa9"));
        assert_int_equal(strlen(out.out.bytes), out.out.length);
        json_t *back = json_loadb(out.out.bytes, out.out.length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        assert_non_null(back);
        assert_int_equal(json_string_length(back), length);
        assert_memory_equal(json_string_value(back), bytes, length);
        json_decref(back);
        assert_int_equal(sf_utf16_length(bytes, length), code > 0xffff ? 4 : 3);
    }
    sf_writer_free(&out);
}

static void test_json_bad_bytes(void **state)
{
    static const char bad[] =
        "a\x80\xff\"\\</script><!--\xed\xa0\x80"; /* a surrogate is three bytes that are not UTF-8 */
    sf_writer out = {0};
    (void)state;
    sf_put_json(&out, bad, sizeof bad - 1);
    json_t *back = json_loadb(out.out.bytes, out.out.length, JSON_DECODE_ANY, NULL);
    assert_string_equal(json_string_value(back),
                        "a\xef\xbf\xbd\xef\xbf\xbd\"\\</script><!--\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    assert_int_equal(sf_utf16_length(bad, sizeof bad - 1), 1 + 2 + 2 + 9 + 4 + 3);
    json_decref(back);
    sf_writer_free(&out);
}

/* One field, as RFC 4180 reads it. */
static void read_csv_field(sf_buffer *out, const char *text)
{
    if (*text != '"') {
        assert_null(strpbrk(text, ",\"\r\n"));
        assert_int_equal(sf_buffer_add_string(out, text), 0);
        return;
    }
    for (text++; *text != '"' || text[1] == '"'; text++) {
        assert_true(*text);
        text += *text == '"';
        assert_int_equal(sf_buffer_add_byte(out, *text), 0);
    }
    assert_string_equal(text, "\"");
}

static void test_csv(void **state)
{
    sf_writer out = {0};
    sf_buffer back = {0};
    (void)state;
    for (int a = 1; a < 256; a++)
        for (int b = 0; b < 256; b++) {
            const char field[] = {(char)a, (char)b, b ? (char)a : '\0', '\0'};
            sf_buffer_clear(&out.out);
            sf_buffer_clear(&back);
            sf_put_csv(&out, field);
            read_csv_field(&back, out.out.bytes);
            int formula = strchr("=+-@\t\r", a) != NULL;
            assert_null(strchr("=+-@\t\r", *back.bytes));
            assert_string_equal(back.bytes + formula, field);
            if (formula) assert_int_equal(*back.bytes, '\'');
        }
    sf_buffer_clear(&out.out);
    sf_put_csv(&out, "");
    assert_int_equal(out.out.length, 0);
    sf_writer_free(&out);
    sf_buffer_free(&back);
}

/* Style and script stand inside their elements as they are. */
static void test_assets(void **state)
{
    static const char *const assets[] = {sf_asset_plot_css, sf_asset_report_css, sf_asset_report_js,
                                         sf_asset_explorer_css, sf_asset_explorer_js};
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        assert_true(strlen(assets[i]) > 1000);
        assert_null(strstr(assets[i], "@include"));
        assert_null(strstr(assets[i], "</"));
        assert_null(strstr(assets[i], "<!--"));
        assert_null(strstr(assets[i], "@import"));
        assert_null(strstr(assets[i], "url("));
        assert_null(strstr(assets[i], "innerHTML"));
        for (const char *p = assets[i]; *p; p++) assert_true((unsigned char)*p < 0x80);
    }
}

/* ------------------------------------------------------------------ numbers */

static const char *fixed(double x, int decimals)
{
    static sf_writer out;
    sf_writer_free(&out);
    sf_put_fixed(&out, x, decimals);
    return out.out.bytes;
}

static void test_numbers(void **state)
{
    sf_writer out = {0};
    double back;
    (void)state;
    assert_string_equal(fixed(0, 1), "0.0");
    assert_string_equal(fixed(-0.04, 1), "0.0");
    assert_string_equal(fixed(-12.25, 1), "-12.3");
    assert_string_equal(fixed(1.005, 3), "1.005");
    assert_string_equal(fixed(99.996, 2), "100.00");
    sf_put_count(&out, 0);
    sf_put(&out, " ");
    sf_put_count(&out, 1234567);
    sf_put(&out, " ");
    sf_put_percent(&out, 2, 3);
    sf_put(&out, " ");
    sf_put_percent(&out, 0, 0);
    sf_put(&out, " ");
    sf_put_percent(&out, 99999, 100000);
    sf_put(&out, " ");
    sf_put_interval(&out, 75047, 100000); /* 0.747777... to 0.753140...: the lower end down, the upper up */
    sf_put(&out, " ");
    sf_put_interval(&out, 5, 5);
    assert_string_equal(out.out.bytes, "0 1,234,567 66.66% – 99.99% 74.77 to 75.32 56.55 to 100.00");
    for (int i = 0; i < 1000; i++) {
        double x = i * 0.0123456789;
        sf_buffer_clear(&out.out);
        sf_put_real(&out, x);
        assert_int_equal(sscanf(out.out.bytes, "%lf", &back), 1);
        assert_true(x == back);
    }
    sf_writer_free(&out);
}

/* Against the whole decimal expansion of a double. */
static void check_myriads(double x)
{
    char digits[1200];
    snprintf(digits, sizeof digits, "%.1080f", x);
    uint32_t down = (uint32_t)(digits[0] - '0') * 10000 +
                    (uint32_t)atoi((char[]){digits[2], digits[3], digits[4], digits[5], '\0'});
    uint32_t up = down + (strspn(digits + 6, "0") < strlen(digits + 6));
    if (sf_myriads_down(x) != down || sf_myriads_up(x) != up)
        fail_msg("%.17g: %u and %u, not %u and %u", x, sf_myriads_down(x), sf_myriads_up(x), down, up);
}

static void test_myriads(void **state)
{
    (void)state;
    for (int k = 0; k <= 10000; k++) {
        double x = k / 10000.0;
        check_myriads(x);
        if (k < 10000) check_myriads(nextafter(x, 1));
        if (k > 0) check_myriads(nextafter(x, 0));
    }
    check_myriads(5e-324);
    check_myriads(0.99999999999999989);
}

static void test_locale(void **state)
{
    sf_writer out = {0};
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8")) {
        printf("no locale with a decimal comma is installed\n");
        skip();
    }
    sf_put_real(&out, 0.5);
    sf_put(&out, " ");
    sf_put_fixed(&out, 0.5, 2);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(out.out.bytes, "0.5 0.50");
    sf_writer_free(&out);
}

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = strchr(digits, c);
    assert_true(c && found);
    return (int)(found - digits);
}

static void check_packed(const char *bytes, size_t length)
{
    sf_writer out = {0};
    sf_buffer packed = {0}, back = {0};
    sf_put_packed(&out, bytes, length);
    assert_int_equal(out.out.length % 4, 0);
    for (const char *p = out.out.bytes; *p; p += 4) {
        int padding = (p[2] == '=') + (p[3] == '=');
        unsigned bits = (unsigned)base64_digit(p[0]) << 18 | (unsigned)base64_digit(p[1]) << 12 |
                        (p[2] == '=' ? 0u : (unsigned)base64_digit(p[2]) << 6) |
                        (p[3] == '=' ? 0u : (unsigned)base64_digit(p[3]));
        const char three[] = {(char)(bits >> 16), (char)(bits >> 8), (char)bits};
        assert_int_equal(sf_buffer_add(&packed, three, 3 - (size_t)padding), 0);
    }
    assert_ok(sf_gunzip(&back, packed.bytes, packed.length, "packed", &error));
    assert_int_equal(back.length, length);
    if (length) assert_memory_equal(back.bytes, bytes, length);
    sf_writer_free(&out);
    sf_buffer_free(&packed);
    sf_buffer_free(&back);
}

static void test_packed(void **state)
{
    static char bytes[300000];
    uint32_t x = 1;
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) {
        x = x * 1664525 + 1013904223;
        bytes[i] = (char)(x >> 24); /* does not compress: several buffers are needed */
    }
    for (size_t length = 0; length < 200; length++) check_packed(bytes, length);
    check_packed(bytes, sizeof bytes);
    memset(bytes, 'a', sizeof bytes);
    check_packed(bytes, sizeof bytes);
}

/* -------------------------------------------------------------------- a run */

#define HOSTILE "</script><script>alert(1)</script>"

/* Good texts are those with more of good, great and fine in them than of bad. */
static int classify(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    (void)context;
    for (size_t i = 0; i < count; i++) {
        int good = 0;
        for (const char *p = texts[i], *end = p + lengths[i]; p < end; p++)
            good += strncmp(p, "good", 4) == 0 || strncmp(p, "great", 5) == 0 || strncmp(p, "fine", 4) == 0 ? 1
                    : strncmp(p, "bad", 3) == 0                                                             ? -1
                                                                                                            : 0;
        labels[i] = good > 0;
    }
    return 0;
}

/* Texts with all that could break a page, and labels and ids that could too. */
static const char *const texts[] = {"A good film.",
                                    "A bad film.",
                                    ("good " HOSTILE),
                                    "\"great\" 'fine' & <b>bad</b>",
                                    "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d good \xe2\x80\xae film",
                                    "bad\0good",
                                    "=1+2 good",
                                    "",
                                    "film film film film film film film film film good"};
static const char *const names[] = {"<neg>", "pos\"&", "pos\"&", "<neg>", "pos\"&", "<neg>", "pos\"&", NULL, "pos\"&"};
static const char *const ids[] = {"1", "</td><td>", "=cmd|' /C calc'!A0", "\xe2\x80\xaertl", "a,b", "@x", "\"q\"",
                                  "8", "9"};
enum { TEXTS = 9 };

typedef struct files {
    char run[600], page[600], svg[600], csv[600];
    safer_data *data;
    safer_lexicon *lexicon;
    safer_summary summary;
} files;

static files make_run(const char *name, const char *kernel)
{
    files f = {0};
    snprintf(f.run, sizeof f.run, "%s", temporary(name));
    snprintf(f.page, sizeof f.page, "%s", temporary("report.html"));
    snprintf(f.svg, sizeof f.svg, "%s", temporary("svg"));
    snprintf(f.csv, sizeof f.csv, "%s", temporary("csv"));
    static const char table[] = "good\tgreat fine\nfilm\tmovie picture\nmovie\tflick\n";
    const char *const labels[] = {"<neg>", "pos\"&"};
    size_t lengths[TEXTS];
    safer_lexicon_options lo = safer_lexicon_options_default();
    safer_remote_options ro = safer_remote_options_default();
    safer_certify_options co = safer_certify_options_default();
    safer_model *model = NULL;
    for (size_t i = 0; i < TEXTS; i++) lengths[i] = i == 5 ? 8 : strlen(texts[i]);
    lo.table = write_temporary("table.tsv", table, sizeof table - 1);
    lo.kernel = kernel;
    assert_ok(safer_lexicon_import(&f.lexicon, &lo, NULL, &error));
    assert_ok(safer_data_from_texts(&f.data, texts, lengths, names, ids, TEXTS, &error));
    ro.labels = labels;
    ro.label_count = 2;
    ro.model_name = "a function";
    assert_ok(safer_model_from_callback(&model, classify, NULL, &ro, &error));
    co.n = 500;
    assert_ok(safer_certify(&f.summary, f.run, 0, model, f.lexicon, f.data, &co, &error));
    safer_model_free(model);
    return f;
}

static void free_run(files *f)
{
    safer_data_free(f->data);
    safer_lexicon_free(f->lexicon);
    safer_summary_free(&f->summary);
}

static char *read_file(const char *folder, const char *name)
{
    char path[700];
    snprintf(path, sizeof path, "%s%s%s", folder, *name ? "/" : "", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = calloc(1, 1 << 22);
    assert_true(fread(bytes, 1, (1 << 22) - 1, file) > 0);
    fclose(file);
    return bytes;
}

static safer_status report(const files *f, safer_summary *summaries, safer_error *e)
{
    safer_report_options o = safer_report_options_default();
    const safer_lexicon *lexicon = f->lexicon;
    o.data = f->data;
    o.lexicons = &lexicon;
    o.lexicon_count = 1;
    o.svg = f->svg;
    o.csv = f->csv;
    o.title = HOSTILE;
    o.notes = write_temporary("notes.txt", "notes <b>\n& more\n", 17);
    return safer_report(summaries, f->page, (const char *const[]){f->run}, 1, &o, e);
}

static size_t count_of(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *p = text; (p = strstr(p, word)); p += strlen(word)) count++;
    return count;
}

static void test_page(void **state)
{
    files f = make_run("page.jsonl", "topk:2");
    safer_summary again;
    safer_verification verified;
    (void)state;
    assert_ok(report(&f, &again, &error));
    assert_ok(safer_verify(&verified, f.run, NULL, NULL, NULL, 1, NULL, &error));
    verified.summary.seconds = 0;
    assert_memory_equal(&again, &verified.summary, offsetof(safer_summary, by_class));
    assert_int_equal(again.certified, f.summary.certified);
    char *page = read_file(f.page, ""), share[32];
    const safer_figure headline = safer_summary_headline(&again);
    snprintf(share, sizeof share, ">%zu.%02zu%%<", headline.part * 100 / headline.whole,
             headline.part * 10000 / headline.whole % 100);
    assert_non_null(strstr(page, share));
    assert_non_null(strstr(page, "certified and answered"));
    assert_non_null(strstr(page, "if the model is a function of the text"));
    assert_true(again.empty > again.certificates / 2); /* of these few texts: said before any figure */
    assert_int_equal(count_of(page, "class=\"caution\""), 1);
    assert_true(strstr(page, "class=\"caution\"") < strstr(page, "class=\"big\""));
    assert_null(strstr(page, "<script>alert"));
    assert_null(strstr(page, HOSTILE));
    assert_null(strstr(page, "<neg>"));
    assert_null(strstr(page, "</td><td>\""));
    assert_non_null(strstr(page, "&lt;neg&gt;"));
    assert_non_null(strstr(page, "\\u003cneg\\u003e"));
    assert_int_equal(count_of(page, "<script"), count_of(page, "</script>"));
    assert_int_equal(count_of(page, "<script nonce="), 1);
    assert_int_equal(count_of(page, "http:"), count_of(page, "<figure") + 1); /* the name of SVG, and in the script */
    assert_int_equal(count_of(page, "<figure") + count_of(page, "<p class=\"flat\">"), 6);
    assert_true(count_of(page, "<figure") < 6);
    assert_non_null(strstr(page, "<h1>&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;</h1>"));
    assert_non_null(strstr(page, ">notes &lt;b&gt;\n&amp; more\n</p>"));
    assert_int_equal(sf_utf8_valid(page, strlen(page)), strlen(page));
    free(page);
    safer_summary_free(&again);
    safer_summary_free(&verified.summary);
    free_run(&f);
}

/* Names that are open, innermost last. */
static void check_svg(const char *text)
{
    const char *open[20];
    size_t depth = 0;
    assert_int_equal(strncmp(text, "<svg ", 5), 0);
    for (const char *p = strchr(text, '<'); p; p = strchr(p, '<')) {
        const char *end = strchr(p, '>');
        assert_non_null(end);
        if (p[1] == '/') {
            assert_true(depth > 0);
            depth--;
            size_t length = (size_t)(end - p) - 2;
            assert_int_equal(strncmp(open[depth], p + 2, length), 0);
            assert_non_null(strchr(" >", open[depth][length]));
        } else if (end[-1] != '/') {
            assert_true(depth < 20);
            open[depth++] = p + 1;
        }
        int quotes = 0;
        for (const char *q = p; q < end; q++) quotes += *q == '"';
        assert_int_equal(quotes % 2, 0);
        p = end;
    }
    assert_int_equal(depth, 0);
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
}

static void test_svg(void **state)
{
    files f = make_run("<text> & \"run\".jsonl", "topk:2");
    static const char *const plots[] = {"radius.svg",  "accuracy.svg", "radii.svg",
                                        "queries.svg", "products.svg", "margin.svg"};
    (void)state;
    assert_ok(report(&f, NULL, &error));
    for (size_t i = 0; i < 5; i++) {
        char *text = read_file(f.svg, plots[i]);
        check_svg(text);
        free(text);
    }
    free_run(&f);
}

/* Many runs: names in the legend are escaped, and colours begin again with broken lines. */
static void test_many_runs(void **state)
{
    files f = make_run("many.jsonl", "component");
    const char *paths[17];
    char storage[17][600];
    (void)state;
    char *run = read_file(f.run, "");
    for (size_t i = 0; i < 17; i++) {
        char name[64];
        snprintf(name, sizeof name, "<r & %zu>.jsonl", i);
        snprintf(storage[i], sizeof storage[i], "%s", write_temporary(name, run, strlen(run)));
        paths[i] = storage[i];
    }
    safer_report_options o = safer_report_options_default();
    o.svg = f.svg;
    assert_ok(safer_report(NULL, f.page, paths, 16, &o, &error));
    char *plot = read_file(f.svg, "radius.svg"), *page = read_file(f.page, "");
    check_svg(plot);
    assert_int_equal(count_of(plot, "&lt;r &amp; "), 16);
    assert_int_equal(count_of(plot, "class=\"curve r3 broken\""), 2); /* a line and its legend */
    assert_int_equal(count_of(page, "<article"), 16);
    assert_null(strstr(page, "id=\"texts-0\"")); /* no data: figures only */
    free(plot);
    free(page);
    free(run);
    assert_fails(safer_report(NULL, f.page, paths, 17, NULL, &error), SAFER_INVALID, "17 runs");
    paths[1] = paths[0];
    assert_fails(safer_report(NULL, f.page, paths, 2, NULL, &error), SAFER_INVALID, "is given twice");
    free_run(&f);
}

static void test_csv_files(void **state)
{
    files f = make_run("csv.jsonl", "topk:2");
    (void)state;
    assert_ok(report(&f, NULL, &error));
    char *rows = read_file(f.csv, "texts.csv"), *runs = read_file(f.csv, "runs.csv"),
         *radii = read_file(f.csv, "radii.csv"), *classes = read_file(f.csv, "classes.csv"),
         *confusion = read_file(f.csv, "confusion.csv"), line[100];
    const safer_summary *s = &f.summary;
    assert_int_equal(count_of(rows, "\r\n"), TEXTS + 1);
    assert_non_null(strstr(rows, ",3,'=cmd|' /C calc'!A0,\"pos\"\"&\","));
    assert_non_null(strstr(rows, ",6,'@x,<neg>,"));
    assert_non_null(strstr(rows, ",5,\"a,b\","));
    assert_int_equal(count_of(runs, "\r\n"), 2);
    assert_int_equal(count_of(radii, "\r\n"), SAFER_RADII + 1);
    snprintf(line, sizeof line, "\r\ncsv,all,%d,%zu,%zu,", TEXTS, s->labelled,
             s->certified_answered_at[SAFER_RADII - 1]);
    assert_non_null(strstr(radii, line));
    assert_int_equal(count_of(classes, "\r\n"), 3);
    snprintf(line, sizeof line, "\r\ncsv,<neg>,%zu,%zu,%zu,", s->by_class[0].texts, s->by_class[0].certified,
             s->by_class[0].certified_answered);
    assert_non_null(strstr(classes, line));
    assert_int_equal(count_of(confusion, "\r\n"), 7); /* two labels, answered each of them or none */
    snprintf(line, sizeof line, "\r\ncsv,<neg>,<neg>,0,%zu,%zu\r\n", s->by_class[0].answers[0],
             s->by_class[0].certified_answered);
    assert_non_null(strstr(confusion, line));
    free(classes);
    free(confusion);
    free(rows);
    free(runs);
    free(radii);
    free_run(&f);
}

/* ------------------------------------------------------------------- errors */

static void test_errors(void **state)
{
    files f = make_run("errors.jsonl", "topk:2"), other = make_run("other.jsonl", "component");
    safer_report_options o = safer_report_options_default();
    safer_data *data = NULL;
    const safer_lexicon *lexicon = other.lexicon;
    (void)state;
    assert_fails(safer_report(NULL, f.page, (const char *const[]){f.run}, 0, NULL, &error), SAFER_INVALID,
                 "needs a run");
    const char *missing = temporary("missing.jsonl");
    assert_fails(safer_report(NULL, f.page, &missing, 1, NULL, &error), SAFER_SYSTEM, "missing.jsonl");

    o.lexicons = &lexicon;
    o.lexicon_count = 1;
    assert_fails(safer_report(NULL, f.page, (const char *const[]){f.run}, 1, &o, &error), SAFER_INVALID,
                 "lexicons without data");
    o.data = f.data;
    assert_fails(safer_report(NULL, f.page, (const char *const[]){f.run}, 1, &o, &error), SAFER_INPUT,
                 "another lexicon");
    const char *both[] = {f.run, other.run};
    assert_ok(safer_report(NULL, f.page, both, 2, &o, &error)); /* it belongs to one of them */
    o.lexicon_count = 0;
    assert_ok(safer_data_from_texts(&data, texts, NULL, names, ids, 3, &error));
    o.data = data;
    assert_fails(safer_report(NULL, f.page, (const char *const[]){f.run}, 1, &o, &error), SAFER_INPUT,
                 "another data set");
    assert_fails(safer_report(NULL, f.page, both, 2, &o, &error), SAFER_INPUT, "none of the 2 runs");

    char *run = read_file(f.run, ""), *certified = strstr(run, "\"certified\":true");
    assert_non_null(certified);
    size_t line = 1;
    for (const char *p = run; p < certified; p++) line += *p == '\n';
    memcpy(certified, "\"certified\":false ", 16);
    char where[32];
    snprintf(where, sizeof where, "line %zu", line);
    const char *broken = write_temporary("broken.jsonl", run, strlen(run));
    assert_fails(safer_report(NULL, f.page, &broken, 1, NULL, &error), SAFER_INPUT, where);
    free(run);

    o = safer_report_options_default();
    o.svg = f.run; /* a file, not a folder */
    assert_fails(safer_report(NULL, f.page, (const char *const[]){f.run}, 1, &o, &error), SAFER_SYSTEM, "errors.jsonl");
    safer_data_free(data);
    free_run(&f);
    free_run(&other);
}

static int stop_at_once(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)context;
    (void)stage;
    (void)done;
    (void)total;
    return 1;
}

static void test_cancelled(void **state)
{
    files f = make_run("cancelled.jsonl", "topk:2");
    safer_report_options o = safer_report_options_default();
    (void)state;
    o.data = f.data;
    o.progress.report = stop_at_once;
    assert_fails(safer_report(NULL, f.page, (const char *const[]){f.run}, 1, &o, &error), SAFER_CANCELLED, "");
    free_run(&f);
}

/* Seals an attack's lines as a run's are. */
static void write_attack(const char *path, json_t *config, json_t *const *records, size_t count)
{
    FILE *file = fopen(path, "wb");
    size_t length;
    uint64_t check;
    assert_non_null(file);
    char *line = sf_seal(config, -1, 0, &length, &check);
    fwrite(line, 1, length, file);
    free(line);
    for (size_t i = 0; i < count; i++) {
        line = sf_seal(records[i], 0.5, check, &length, NULL);
        fwrite(line, 1, length, file);
        free(line);
        json_decref(records[i]);
    }
    fclose(file);
    json_decref(config);
}

/* The configuration of an attack on the run's model and data, or on other ones. */
static json_t *attack_config(const files *f, const char *model, const char *data)
{
    char *run = read_file(f->run, "");
    json_t *of_run = json_loadb(run, strcspn(run, "\n"), 0, NULL);
    json_t *config = json_pack(
        "{s:s, s:s, s:i, s:O, s:O, s:O, s:O, s:b, s:i, s:s, s:i, s:i, s:i, s:i, s:f, s:i, s:s, s:O}", "safer", "0",
        "kind", "attack", "format", 2, "model", json_object_get(of_run, "model"), "lexicon",
        json_object_get(of_run, "lexicon"), "data", json_object_get(of_run, "data"), "labels",
        json_object_get(of_run, "labels"), "smoothed", 0, "n", 10, "radius", "all", "max_queries", 0, "population", 1,
        "iterations", 1, "tries", 1, "alpha", 0.01, "seed", 1, "method", "</script>fooler", "date",
        json_object_get(of_run, "date"));
    assert_non_null(config);
    if (model) json_object_set_new(json_object_get(config, "model"), "name", json_string(model));
    if (data) json_object_set_new(json_object_get(config, "data"), "sha256", json_string(data));
    json_decref(of_run);
    free(run);
    return config;
}

static json_t *attack_record(int row, const char *outcome, int byte, const char *to)
{
    json_t *record = json_pack(
        "{s:i, s:s, s:n, s:s, s:s, s:s, s:n, s:i, s:i, s:f, s:f, s:i, s:[{s:i, s:i, s:s, s:s}], s:n,"
        " s:i, s:i}",
        "row", row, "id", "x", "label", "before", "<neg>", "after", "<neg>", "outcome", outcome, "reason", "words", 9,
        "choices", 1, "score_before", 0.5, "score_after", 0.5, "changed", 1, "changes", "word", 1, "byte", byte, "from",
        "good", "to", to, "text", "queries", 1, "checks", 0);
    assert_non_null(record);
    return record;
}

static void test_attacks(void **state)
{
    files f = make_run("attacked.jsonl", "topk:2");
    const char *path = temporary("attack.jsonl");
    safer_report_options o = safer_report_options_default();
    (void)state;
    o.attacks = &path;
    o.attack_count = 1;
    assert_fails(safer_report(NULL, f.page, (const char *const[]){f.run}, 1, &o, &error), SAFER_INVALID,
                 "attacks without data");
    o.data = f.data;
    write_attack(path, attack_config(&f, NULL, NULL),
                 (json_t *[]){attack_record(1, "succeeded", 2, "<i>great"), attack_record(2, "failed", 2, "x")}, 2);
    assert_ok(safer_report(NULL, f.page, (const char *const[]){f.run}, 1, &o, &error));
    char *page = read_file(f.page, "");
    assert_non_null(strstr(page, "<script type=\"text/plain\" id=\"attacks-0\">"));
    assert_non_null(strstr(page, "&lt;/script&gt;fooler</bdi> on the base model"));
    assert_non_null(strstr(page, "<td>2 of 9</td>")); /* it is not finished */
    assert_non_null(strstr(page, "\"attack\":[2,1,0,0,0,0,0,0,0]"));
    free(page);
    write_attack(path, attack_config(&f, NULL, NULL), (json_t *[]){attack_record(1, "succeeded", 1, "great")}, 1);
    assert_fails(safer_report(NULL, f.page, (const char *const[]){f.run}, 1, &o, &error), SAFER_INPUT,
                 "line 2: a change of a word that is not there");
    write_attack(path, attack_config(&f, NULL, NULL), (json_t *[]){attack_record(2, "failed", 2, "great")}, 1);
    assert_fails(safer_report(NULL, f.page, (const char *const[]){f.run}, 1, &o, &error), SAFER_INPUT,
                 "line 2: the record of row 2");
    write_attack(path, attack_config(&f, NULL, NULL), (json_t *[]){attack_record(1, "won", 2, "great")}, 1);
    assert_fails(safer_report(NULL, f.page, (const char *const[]){f.run}, 1, &o, &error), SAFER_INPUT,
                 "line 2: not the record of an attack");
    write_attack(path, attack_config(&f, "00", NULL), NULL, 0);
    assert_fails(safer_report(NULL, f.page, (const char *const[]){f.run}, 1, &o, &error), SAFER_INPUT,
                 "the model of none of the runs");
    write_attack(path, attack_config(&f, NULL, "0000000000000000000000000000000000000000000000000000000000000000"),
                 NULL, 0);
    assert_fails(safer_report(NULL, f.page, (const char *const[]){f.run}, 1, &o, &error), SAFER_INPUT,
                 "attacked another data set");
    o.attacks = (const char *const[]){f.run};
    assert_fails(safer_report(NULL, f.page, (const char *const[]){f.run}, 1, &o, &error), SAFER_INPUT,
                 "not the configuration of an attack");
    free_run(&f);
}

static safer_status report_again(void *context, safer_error *e) { return report(context, NULL, e); }

static void test_memory(void **state)
{
    files f = make_run("memory.jsonl", "topk:2");
    (void)state;
    check_every_allocation(report_again, &f);
    free_run(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_html_every_character),
        cmocka_unit_test(test_html_bad_bytes),
        cmocka_unit_test(test_json_every_character),
        cmocka_unit_test(test_json_bad_bytes),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_assets),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_myriads),
        cmocka_unit_test(test_locale),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_svg),
        cmocka_unit_test(test_many_runs),
        cmocka_unit_test(test_csv_files),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_attacks),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
