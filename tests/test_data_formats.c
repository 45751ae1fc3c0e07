/* The file formats of data sets: what they hold, and what is wrong with them. Folders, archives and options are in
 * test_data.c. */
#define _GNU_SOURCE
#include "test_data.h"

#include "base/buffer.h"
#include "data/loader.h"

#include <jansson.h>
#include <locale.h>
#include <stdio.h>

/* -------------------------------------------------------------------- TSV */

static void test_tsv(void **state)
{
    (void)state;
    reads("a.tsv", "x1\t1\tone\nx2\t0\ttwo\n", {"x1", "1", "one", 0}, {"x2", "0", "two", 0});
    reads("crlf.tsv", "x1\t1\tone\r\nx2\t0\ttwo\r\n\r\n\n", {"x1", "1", "one", 0}, {"x2", "0", "two", 0});
    reads("open.tsv", "x1\t1\tone", {"x1", "1", "one", 0});
    reads("mark.tsv", "\xef\xbb\xbfx1\t1\tone\n", {"x1", "1", "one", 0});
    reads("empty.tsv", "\t\t\nb\t\tx\n\tc\t\n", {"1", NULL, "", 0}, {"b", NULL, "x", 0}, {"3", "c", "", 0});
    reads("escapes.tsv", "a\\tb\tl\\\\\t\\\\t\\t\\n\\r\\\\\\\\n|\n", {"a\tb", "l\\", "\\t\t\n\r\\\\n|", 0});
    reads("nul.tsv", "a\tb\tx\0y\0\n", {"a", "b", "x\0y\0", 4});
    reads("wide.tsv",
          "\xc3\xa9\t\xf0\x9f\x98\x80\t\xe2\x80\x9cna\xc3\xafve\xe2\x80\x9d "
          "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80\n",
          {"\xc3\xa9", "\xf0\x9f\x98\x80",
           "\xe2\x80\x9cna\xc3\xafve\xe2\x80\x9d \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80", 0});
    reads("breaks.tsv", "a\tb\tx<br />y\n", {"a", "b", "x<br />y", 0});
    reads_with("breaks.tsv", "a\tb\t<br /><br>x<br/><br / ><b<br>\n", OPTIONS(.strip_breaks = 1),
               {"a", "b", "  x <br / ><b ", 0});
}

static void test_tsv_errors(void **state)
{
    (void)state;
    refuses("e1.tsv", "a\t1\tok\nb\t1\n", "e1.tsv, line 2: 2 columns, but TSV has 3");
    refuses("e2.tsv", "a\t1\tok\nb\t1\tx\ty\n",
            "e2.tsv, line 2: 4 columns, but TSV has 3: id, label, text (a tab inside");
    refuses("e3.tsv", "just words\n", "e3.tsv, line 1: 1 column, but");
    refuses("e4.tsv", "a\t1\tok\n\nb\t1\tok\n", "e4.tsv, line 2: an empty line inside the file");
    refuses("e5.tsv", "a\t1\tok\nb\t1\tC:\\users\n", "e5.tsv, line 2: unknown escape \\u (known: \\\\ \\t \\n \\r)");
    refuses("e6.tsv", "a\t1\tx\\\n", "e6.tsv, line 1: a column ends in a backslash");
    refuses("e7.tsv", "a\t1\\\tx\n", "e7.tsv, line 1: a column ends in a backslash");
    refuses("e8.tsv", "a\t1\t\\\xc3\xa9 \n", "e8.tsv, line 1: unknown escape \\\xc3\xa9 (");
    refuses("e9.tsv", "a\t1\tok\nb\t1\tcaf\xe9\n",
            "e9.tsv, line 2: not valid UTF-8 at byte offset 7 of the row (0xE9)");
    refuses("e10.tsv",
            "\xff"
            "a\t1\tok\n",
            "e10.tsv, line 1: not valid UTF-8 at byte offset 0 of the row (0xFF)");
    refuses("e11.tsv", "a\t1\xed\xa0\x80\tok\n", "e11.tsv, line 1: not valid UTF-8 at byte offset 3");
    refuses("e12.tsv", "a\0b\t1\tok\n", "e12.tsv, line 1: the id holds a NUL");
    refuses("e13.tsv", "ab\t1\t\nab\t1\0\tok\n", "e13.tsv, line 2: the label holds a NUL");
    refuses("e14.tsv", "", "e14.tsv holds no rows");
    refuses("e15.tsv", "\n\r\n\n", "e15.tsv holds no rows");
    refuses("e16.tsv", "\xef\xbb\xbf", "e16.tsv holds no rows");
    reads_with("repair.tsv", "\xff\t1\xc3\tcaf\xe9 \xf0\x9f\x98\nb\t2\tok\n", OPTIONS(.repair = 1),
               {"\xef\xbf\xbd", "1\xef\xbf\xbd", "caf\xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", 0},
               {"b", "2", "ok", 0});
}

/* -------------------------------------------------------------------- CSV */

static void test_csv(void **state)
{
    (void)state;
    reads("zhang3.csv", "\"1\",\"Title\",\"He said \"\"no\"\".\\nNext, \\\"\"x\\\"\" \\\\ \\t\"\n2,,bare\n",
          {"1", "1", "Title He said \"no\".\nNext, \\\"x\\\" \\\\ \\t", 0}, {"2", "2", "bare", 0});
    reads("zhang2.csv", "\"2\",\"a\\nb\"\r\n\"1\",\"c\"\r\n\r\n", {"1", "2", "a\nb", 0}, {"2", "1", "c", 0});
    reads("title.csv", "3,Review,\"not a header\"\n", {"1", "3", "Review not a header", 0});
    reads("head.csv", "id,LABEL, Text \nq,pos,\"a, \"\"b\"\"\nc\\n\"\nr,,\n", {"q", "pos", "a, \"b\"\nc\\n", 0},
          {"r", NULL, "", 0});
    reads("head2.csv", "\xef\xbb\xbf\"review\",\"sentiment\"\n\"x\"\"\",positive\n", {"1", "positive", "x\"", 0});
    reads("head3.csv", "extra,Sentence,rating,Title,id\nz,s,5,t,7\nz,s,4,,\n", {"7", "5", "t s", 0},
          {"2", "4", "s", 0});
    reads("head4.csv", "content\nalone\n\"\"\n\nlast", {"1", NULL, "alone", 0}, {"2", NULL, "", 0}, {"3", NULL, "", 0},
          {"4", NULL, "last", 0});
    reads("both.csv", "review,text,class,label\nr,t,c,l\n", {"1", "l", "t", 0}); /* the first name counts */
    reads("bare.csv", "1,say \"no\" 5'6\" a\rb\n", {"1", "1", "say \"no\" 5'6\" a\rb", 0});
    reads("crlf.csv", "text,label\r\n\"a\r\nb\",1\r\nc,2\r\n", {"1", "1", "a\r\nb", 0}, {"2", "2", "c", 0});
    reads_with("repair.csv", "text,label\n\"a\xff\"\"\",1\n", OPTIONS(.repair = 1), {"1", "1", "a\xef\xbf\xbd\"", 0});
}

/* What is in memory of a file ends anywhere: also between a closing quote, a carriage return and a line feed. */
static void test_csv_cut_anywhere(void **state)
{
    (void)state;
    enum { ROWS = 6000, LENGTH = 27 };
    static char content[ROWS * (LENGTH + 1) + 100];
    for (int shift = 0; shift < LENGTH; shift++) {
        int length = snprintf(content, sizeof content, "label,text\r\n0,\"%.*s\"\r\n", shift + 1,
                              "abcdefghijklmnopqrstuvwxyz01");
        for (int i = 0; i < ROWS; i++)
            length += snprintf(content + length, sizeof content - (size_t)length, "%d,\"a, \"\"b\"\" c %09d\"\r\n",
                               i % 2, i);
        safer_data *data = load(write_temporary("cut.csv", content, (size_t)length), NULL);
        assert_int_equal(safer_data_size(data), ROWS + 1);
        for (size_t i = 0; i < ROWS; i++) {
            char text[40];
            snprintf(text, sizeof text, "a, \"b\" c %09d", (int)i);
            assert_string_equal(safer_data_row(data, i + 1).text, text);
        }
        safer_data_free(data);
    }
}

static void test_csv_errors(void **state)
{
    (void)state;
    refuses("e1.csv", "text,label\n\"a\nb\",1\n\"c\",2,3\n", "e1.csv, line 4: 3 columns, but line 1 has 2");
    refuses("e2.csv", "text,label\nx,1\n\ny,2\n", "e2.csv, line 3: 1 column, but line 1 has 2");
    refuses("e3.csv", "text,label\nx,1\n\"y\",\"2\nz,3\n", "e3.csv, line 3: a quote that begins here never ends");
    refuses("e4.csv", "text,label\n\"x\ny\",\"2\nz,3\n", "e4.csv, line 3: a quote that begins here never ends");
    refuses("e5.csv", "text,label\n\"a\nb\"c,1\n", "e5.csv, line 2: column 1 continues after its closing quote");
    refuses("e6.csv", "1,2,3,4\n",
            "e6.csv, line 1: no header with a column \"text\", and 4 columns; without a header CSV is class,text or "
            "class,title,text");
    refuses("e7.csv", "hello\n", "e7.csv, line 1: no header with a column \"text\", and 1 column;");
    refuses("e8.csv", "text,label,TEXT\na,b,c\n", "e8.csv, line 1: the header names the column \"text\" twice");
    refuses("e9.csv", "text,label\n\"a\n\xff\",1\n",
            "e9.csv, line 2: not valid UTF-8 at byte offset 3 of the row (0xFF)");
    refuses("e10.csv", "text,label\n", "e10.csv holds no rows");
    refuses("e11.csv", "text,id\nx,a\0\n", "e11.csv, line 2: the id holds a NUL");
    refuses("e12.csv", "\"", "e12.csv, line 1: a quote that begins here never ends");
}

/* ------------------------------------------------------------------ JSONL */

static void test_jsonl(void **state)
{
    (void)state;
    reads(
        "a.jsonl",
        "{\"text\": \"one\", \"label\": \"pos\", \"id\": \"k\"}\n\n  \r\n{\"label\":-7,\"text\":\"two\",\"id\":42}\r\n",
        {"k", "pos", "one", 0}, {"42", "-7", "two", 0});
    reads("b.ndjson",
          "{\"text\":\"a\",\"label\":true}\n{\"text\":\"b\",\"label\":false}\n{\"text\":\"c\",\"label\":null,\"id\":"
          "null}\n{\"text\":\"\",\"more\":[1.5,{}]}",
          {"1", "true", "a", 0}, {"2", "false", "b", 0}, {"3", NULL, "c", 0}, {"4", NULL, "", 0});
    reads("c.json", "\xef\xbb\xbf{\"text\":\"\\ud83d\\ude00 \\u00e9 \xf0\x9f\x98\x80 a\\u0000b\\n\\t\\\"\"}\n",
          {"1", NULL, "\xf0\x9f\x98\x80 \xc3\xa9 \xf0\x9f\x98\x80 a\0b\n\t\"", 19});
    reads("big.jsonl", "{\"text\":\"a\",\"id\":9223372036854775807,\"label\":\"\"}\n",
          {"9223372036854775807", NULL, "a", 0});
    reads_with("repair.jsonl", "{\"text\":\"caf\xe9\"}\n", OPTIONS(.repair = 1), {"1", NULL, "caf\xef\xbf\xbd", 0});
}

static void test_jsonl_errors(void **state)
{
    (void)state;
#define GOOD "{\"text\":\"ok\"}\n"
    refuses("e1.jsonl", GOOD "{\"text\":\"a\\ud800b\"}\n", "e1.jsonl, line 2: not valid JSON at byte offset ");
    refuses("e1.jsonl", GOOD "{\"text\":\"a\\udc00\\ud800b\"}\n", "e1.jsonl, line 2: not valid JSON at byte offset ");
    refuses("e2.jsonl", GOOD "{\"text\":\"a\"\n", "e2.jsonl, line 2: not valid JSON at byte offset 11: ");
    refuses("e3.jsonl", GOOD "{\"text\":\"a\"} {}\n", "e3.jsonl, line 2: not valid JSON");
    refuses("e4.jsonl", GOOD "{\"label\":\"a\"}\n",
            "e4.jsonl, line 2: no \"text\" in the object, which has label: text_column NAME says which");
    refuses("e20.jsonl", "{}\n", "e20.jsonl, line 1: no \"text\" in the object, which has no members");
    refuses("e5.jsonl", GOOD "\n{\"text\":5}\n", "e5.jsonl, line 3: \"text\" is an integer; it must be a string");
    refuses("e6.jsonl", "{\"text\":null}\n", "e6.jsonl, line 1: \"text\" is null; it must be a string");
    refuses("e7.jsonl", "{\"text\":\"a\",\"label\":1.0}\n",
            "line 1: \"label\" is a real number; it must be a string, an integer or a boolean");
    refuses("e8.jsonl", "{\"text\":\"a\",\"label\":[1]}\n", "line 1: \"label\" is a list;");
    refuses("e9.jsonl", "{\"text\":\"a\",\"id\":true}\n",
            "line 1: \"id\" is a boolean; it must be a string or an integer");
    refuses("e10.jsonl", "{\"text\":\"a\",\"id\":{}}\n", "line 1: \"id\" is an object;");
    refuses("e11.jsonl", "[{\"text\":\"a\"}]\n", "e11.jsonl, line 1: a list; JSON Lines holds one object per line");
    refuses("e12.jsonl", "\"text\"\n", "e12.jsonl, line 1: a string; JSON Lines");
    refuses("e13.jsonl", "{\"text\":\"a\",\"text\":\"b\"}\n",
            "e13.jsonl, line 1: not valid JSON at byte offset 18: duplicate");
    refuses("e14.jsonl", GOOD "{\"text\":\"caf\xe9\"}\n",
            "e14.jsonl, line 2: not valid UTF-8 at byte offset 12 of the row (0xE9)");
    refuses("e15.jsonl", "{\"text\":\"a\",\"id\":\"x\\u0000\"}\n", "e15.jsonl, line 1: the id holds a NUL");
    refuses("e16.jsonl", "{\"text\":\"a\",\"label\":\"\\u0000\"}\n", "e16.jsonl, line 1: the label holds a NUL");
    refuses("e17.jsonl", " \n\t\r\n", "e17.jsonl holds no rows");
    refuses("e18.jsonl", "{\"text\":\"a\",\"id\":92233720368547758070}\n", "e18.jsonl, line 1: not valid JSON");
    /* Repairing bytes does not make a half character out of an escape whole. */
    check_failure(write_temporary("e19.jsonl", "{\"text\":\"\\udfff\"}", 17), OPTIONS(.repair = 1), SAFER_INPUT,
                  "e19.jsonl, line 1: not valid JSON");
#undef GOOD
}

/* ---------------------------------------------------------------- headers */

/* `first`, then ten rows of each of two classes. */
static const char *above_twenty(const char *name, const char *first, const char *row)
{
    char content[2000];
    size_t length = (size_t)snprintf(content, sizeof content, "%s\n", first);
    for (int i = 0; i < 20; i++)
        length += (size_t)snprintf(content + length, sizeof content - length, row, i, i % 2 ? "good" : "bad");
    return write_temporary(name, content, length);
}

/* The words of a header are never a class, in any format. */
static void test_headers(void **state)
{
    (void)state;
    reads("h1.tsv", "id\tlabel\ttext\na\tpos\tx\n", {"a", "pos", "x", 0});
    reads("h2.tsv", "\xef\xbb\xbfIDX\t Class \tSentence\r\na\tpos\tx\n", {"a", "pos", "x", 0});
    reads("h3.tsv", "\tlabel\treview\na\t1\tx\n", {"a", "1", "x", 0});
    reads("h4.tsv", "text\tlabel\tid\nx\tpos\ta\n", {"a", "pos", "x", 0});
    reads("h5.tsv", "sentence\tLabel\nx\\ty\tpos\n", {"1", "pos", "x\ty", 0});
    reads("h11.tsv", "Class\tTitle\tother\tBody\n1\tt\\n\to\tb\n2\t\to\tc\n", {"1", "1", "t\n b", 0},
          {"2", "2", "c", 0});
    reads("h12.tsv", "guid\tlabel\tsentence\na\tpos\tx\n", {"a", "pos", "x", 0});
    refuses("h13.tsv", "text\tlabel\nx\tpos\ny\tneg\tz\n", "h13.tsv, line 3: 3 columns, but line 1 has 2");
    refuses("h6.tsv", "guid\tlabel\tsentence1\na\tpos\tx\n",
            "h6.tsv, line 1: a header? Its label, \"label\", is that of no other row");
    refuses("h7.tsv", "number\tgold\tphrase\na\t0\tx\nb\t1\ty\nc\t1\tz\n",
            "h7.tsv, line 1: a header? Its label, \"gold\", is the only one that is no number");
    check_failure(above_twenty("h20.tsv", "qid\tgold\tquery", "%d\t%s\ta film\n"), NULL, SAFER_INPUT,
                  "h20.tsv, line 1: a header? Its label, \"gold\", is that of no other row");
    check_failure(above_twenty("h20.jsonl", "{\"text\": \"query\", \"label\": \"gold\"}",
                               "{\"text\": \"film %d\", \"label\": \"%s\"}\n"),
                  NULL, SAFER_INPUT, "h20.jsonl, line 1: a header? Its label, \"gold\", is that of no other row");
    reads("h8.tsv", "a\tlabel\tx\nb\tlabel\ty\n", {"a", "label", "x", 0}, {"b", "label", "y", 0});
    reads("h9.tsv", "a\tclass\ttext of a row\n", {"a", "class", "text of a row", 0});
    reads("h10.tsv", "a\t1\ttext\nb\t2\tlabel\n", {"a", "1", "text", 0}, {"b", "2", "label", 0});

    reads("h1.csv", "Class Index,Title,Description\n3,t,d\n", {"1", "3", "t d", 0});
    reads("h2.csv", "tweet,stance\n\"so, yes\",favor\n", {"1", "favor", "so, yes", 0});
    reads("h3.csv", "sentence,LABEL\nx,0\n", {"1", "0", "x", 0});
    refuses("h4.csv", "gold,phrase\n1,x\n",
            "h4.csv, line 1: without a header that names the text's column (text, review, sentence, ...) the first "
            "column is a class number; \"gold\" is none");
    refuses("h5.csv", "1,x\nA long sentence,pos\n", "h5.csv, line 2: without a header");

    reads("h5.jsonl", "{\"Sentence\":\"x\",\"LABEL\":1}\n", {"1", "1", "x", 0});
    reads("h1.jsonl", "{\"tweet\":\"x\",\"stance\":\"favor\",\"idx\":5}\n", {"5", "favor", "x", 0});
    reads("h2.jsonl", "{\"title\":\"t\",\"description\":\"d\",\"class_index\":3}\n{\"title\":null,\"text\":\"e\"}\n",
          {"1", "3", "t d", 0}, {"2", NULL, "e", 0});
    reads("h3.jsonl", "{\"review\":\"r\",\"text\":\"t\",\"class\":\"c\",\"label\":\"l\"}\n", {"1", "l", "t", 0});
    refuses("h4.jsonl", "{\"text\":\"a\",\"title\":5}\n",
            "h4.jsonl, line 1: \"title\" is an integer; it must be a string");

    refuses("h1.txt", "label text\n__label__a x\n", "cannot tell the format of");
    check_failure(write_temporary("h2.txt", "label text\n__label__a x\n", 24), OPTIONS(.format = SAFER_FORMAT_FASTTEXT),
                  SAFER_INPUT, "line 1: a header, but");
    refuses("h3.txt", "__label__label text\n__label__a x\n", "h3.txt, line 1: a header? Its label, \"label\"");
}

#define refuses_with(name, content, options, message) \
    check_failure(write_temporary(name, content, sizeof content - 1), options, SAFER_INPUT, message)

/* Nor in a file of few rows, whose header has names that are not known; what only might be one is a row. */
static void test_short_headers(void **state)
{
    (void)state;
    const safer_data_options *numbers = OPTIONS(.text_column = "2", .label_column = "1");
    refuses("s1.tsv", "Nr\tUrteil\tSatz\n", "s1.tsv, line 1: a header? Its label, \"Urteil\", is that of no other row");
    refuses("s2.tsv", "Nr\tUrteil\tSatz\n1\tgut\tein guter Film\n", "line 1: a header? Its label, \"Urteil\"");
    refuses("s3.tsv", "\turteil\treview text\n1\t0\tnot a good film\n2\t1\ta good film\n", "line 1: a header?");
    refuses_with("s4.csv", "Urteil,Satz\n", numbers, "s4.csv, line 1: a header? Its label, \"Urteil\"");
    refuses_with("s5.csv", "Urteil,Satz\ngut,ein Film\nschlecht,kein Film\n", numbers,
                 "if it is one, name its columns: text_column NAME, label_column NAME; if not, put one above it");
    reads_with("s6.csv", "Urteil,Satz\ngut,ein Film\n", OPTIONS(.text_column = "Satz", .label_column = "urteil"),
               {"1", "gut", "ein Film", 0});
    reads_with("s7.csv", "label,text\ngut,film\nschlecht,kein Film\n", numbers, {"1", "gut", "film", 0},
               {"2", "schlecht", "kein Film", 0});
    reads("s8.tsv", "r1\tgut\tfilm\nr2\tschlecht\tkrimi\n", {"r1", "gut", "film", 0}, {"r2", "schlecht", "krimi", 0});
    reads("s9.tsv", "r1\tgut\tfilm\nr2\tgut\tkein guter Krimi\n", {"r1", "gut", "film", 0},
          {"r2", "gut", "kein guter Krimi", 0});
    reads("s10.tsv", "1\tgut\tfilm\n", {"1", "gut", "film", 0});
    reads("s11.tsv", "r1\tgut\tfilm!\nr2\tschlecht\tkein guter Krimi\n", {"r1", "gut", "film!", 0},
          {"r2", "schlecht", "kein guter Krimi", 0});
}

/* CSV as spreadsheets write it where the comma is in numbers, and with tabs. */
static void test_separators(void **state)
{
    (void)state;
    reads("c1.csv", "tweet;stance\r\n\"so; yes, \"\"no\"\"\";favor\r\n1,5 \t;against\r\n",
          {"1", "favor", "so; yes, \"no\"", 0}, {"2", "against", "1,5 \t", 0});
    reads("c2.csv", "\xef\xbb\xbf\"label\";\"Text\"\n0;\"a\nb\"\n", {"1", "0", "a\nb", 0});
    reads("c3.csv", "\"id\"\t\"label\"\t\"text\"\n\"7\"\tp\t\"a, b\"\n", {"7", "p", "a, b", 0});
    reads_with("c4.csv", "Nr;Satz\n1;a\n", OPTIONS(.text_column = "satz"), {"1", NULL, "a", 0});
    reads_with("c5.csv", "0;a b\n1;c, d\n", OPTIONS(.text_column = "2", .label_column = "1"), {"1", "0", "a b", 0},
               {"2", "1", "c, d", 0});
    reads("c6.csv", "text\na; b\n", {"1", NULL, "a; b", 0});
    reads_with("c7.csv", "one; two\na; b\n", OPTIONS(.text_column = "1"), {"1", NULL, "one; two", 0},
               {"2", NULL, "a; b", 0});
    refuses("c8.csv", "label;text\n0;a;b\n", "c8.csv, line 2: 3 columns, but line 1 has 2");
    refuses("c9.csv", "gold;phrase\n0;a\n", "c9.csv, line 1: no header with a column \"text\", and 1 column;");
    refuses("c1.tsv", "\"id\"\t\"label\"\t\"text\"\n1\tp\ta good film\n",
            "c1.tsv, line 1: a header in quotes, which TSV does not have: format csv reads it");
}

/* Columns that the caller names, by name or by number; labels by other names. */
static void test_named_columns(void **state)
{
    (void)state;
    const safer_data_options *german = OPTIONS(.text_column = "WORT", .label_column = "Urteil");
    reads_with("n1.csv", "nr,Urteil,Wort\n5,ja,gut\n", german, {"1", "ja", "gut", 0});
    reads_with("n1.tsv", "Wort\tnr\tUrteil\ngut\t5\tja\n", german, {"1", "ja", "gut", 0});
    reads_with("n1.jsonl", "{\"wort\":\"gut\",\"Urteil\":\"ja\",\"text\":3}\n", german, {"1", "ja", "gut", 0});
    const safer_data_options *numbers = OPTIONS(.text_column = "3", .label_column = "1", .id_column = "4",
                                                .title_column = "2", .labels = "0=neg,1=pos");
    reads_with("n2.csv", "0,t,a b,x\n1,,c,y\n", numbers, {"x", "neg", "t a b", 0}, {"y", "pos", "c", 0});
    reads_with("n2.tsv", "label\tother\ttext\tid\n0\tt\ta b\tx\n1\t\tc\ty\n", numbers, {"x", "neg", "t a b", 0},
               {"y", "pos", "c", 0});
    reads_with("n3.csv", "title,label,text\nA,1,B\n", OPTIONS(.text_column = "title"), {"1", "1", "A", 0});
    refuses_with("n4.csv", "text,label\nx,1\n", german,
                 "n4.csv, line 1: no column \"Urteil\" for label_column; the line has text, label");
    refuses_with("n5.csv", "text,label\nx,1\n", OPTIONS(.text_column = "3"),
                 "n5.csv, line 1: no column 3 for text_column: the line has 2 columns");
    refuses_with("n6.jsonl", "{\"text\":\"x\"}\n", german,
                 "n6.jsonl, line 1: no \"WORT\" in the object, which has text");
    refuses_with("n7.csv", "a,b\nx,1\n", OPTIONS(.label_column = "b"), "n7.csv, line 1: which column is the text?");
    refuses_with("n8.tsv", "a\t2\tx\n", OPTIONS(.labels = "0=neg"), "line 1: the label \"2\" is not in labels 0=neg");
    refuses_with("n9.txt", "__label__a x\n", OPTIONS(.text_column = "1"), "n9.txt: fastText has no columns to name");
    const char *any = write_temporary("n10.csv", "text,label\nx,1\n", 15);
    check_failure(any, OPTIONS(.text_column = ""), SAFER_INVALID, "text_column: a name or a number");
    check_failure(any, OPTIONS(.text_column = "a", .id_column = "a"), SAFER_INVALID, "are both \"a\"");
    check_failure(any, OPTIONS(.labels = ""), SAFER_INVALID, "labels: none given");
    check_failure(any, OPTIONS(.labels = "0=a,1"), SAFER_INVALID, "\"1\" is no LABEL=NAME");
    check_failure(any, OPTIONS(.labels = "0=a,0=b"), SAFER_INVALID, "\"0\" is there twice");
}

/* What was guessed is said, and nothing where nothing was. */
static void test_notes(void **state)
{
    (void)state;
    static const struct {
        const char *name, *content, *column, *note;
    } cases[] = {
        {"o1.csv", "tweet,stance\nx,1\n", NULL, "taken by their names: label from \"stance\", text from \"tweet\""},
        {"o2.csv", "text,label\nx,1\n", NULL, NULL},
        {"o3.tsv", "sentence\tlabel\nx\t1\n", NULL, "taken by their names: text from \"sentence\""},
        {"o4.jsonl", "{\"review\":\"x\"}\n{\"review\":\"y\"}\n", NULL, "taken by their names: text from \"review\""},
        {"o5.csv", "x,a\ny,b\n", "2", "no header: line 1 is a row, with the label \"a\""},
        {"o6.tsv", "a\tb\tc\n", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        safer_data *data;
        safer_error error;
        const char *path = write_temporary(cases[i].name, cases[i].content, strlen(cases[i].content));
        const safer_data_options *o = OPTIONS(.text_column = cases[i].column ? "1" : NULL,
                                              .label_column = cases[i].column);
        assert_ok(safer_data_load(&data, path, o, &error));
        if (cases[i].note)
            assert_string_equal(safer_data_note(data), cases[i].note);
        else
            assert_null(safer_data_note(data));
        safer_data_free(data);
    }
}

/* As `cat a.csv b.csv` makes it. */
static void test_headers_inside(void **state)
{
    (void)state;
    refuses("i1.csv", "text,label\nx,pos\ny,neg\ntext,label\nz,pos\n", "i1.csv, line 4: a header inside the file");
    refuses("i2.csv", "text,label\nx,pos\n\xef\xbb\xbftext,label\nz,pos\n", "i2.csv, line 3: a header inside the file");
    refuses("i3.csv", "id,\"review\",rating\r\n1,\"x\ny\",2\r\nid,\"review\",rating\r\n1,z,2\r\n",
            "i3.csv, line 4: a header");
    refuses("i4.csv", "review,label\nx,pos\nText,Class\nz,pos\n", "i4.csv, line 3: a header");
    refuses("i5.csv", "text,other\nx,1\ntext,other\n", "i5.csv, line 3: a header");
    reads("i6.csv", "text\nx\ntext\n", {"1", NULL, "x", 0}, {"2", NULL, "text", 0});
    reads("i7.csv", "label,text\npos,label\npos,text\n", {"1", "pos", "label", 0}, {"2", "pos", "text", 0});
    refuses("i1.tsv", "id\tlabel\ttext\n1\tpos\tx\nid\tlabel\ttext\n1\tneg\ty\n",
            "i1.tsv, line 3: a header inside the file");
    refuses("i2.tsv", "1\tpos\tx\n\xef\xbb\xbfid\tlabel\ttext\n1\tneg\ty\n",
            "i2.tsv, line 2: a header inside the file");
    reads("i3.tsv", "1\tpos\tx\n2\tneg\ttext\nlabel\tneg\treview\n", {"1", "pos", "x", 0}, {"2", "neg", "text", 0},
          {"label", "neg", "review", 0});
}

/* --------------------------------------------------------------- fastText */

static void test_fasttext(void **state)
{
    (void)state;
    reads("a.txt",
          "__label__1 good film\n__label__0\tbad  film \r\n\nno label __label__x\n__label__2\n __label__3  two "
          "spaces\n \t\n",
          {"1", "1", "good film", 0}, {"2", "0", "bad  film ", 0}, {"3", NULL, "no label __label__x", 0},
          {"4", "2", "", 0}, {"5", "3", " two spaces", 0});
    reads("a.ft", "\xef\xbb\xbf__label__\xc3\xa9 x", {"1", "\xc3\xa9", "x", 0});
    reads_with("plain.txt", "only a text\\n\n", OPTIONS(.format = SAFER_FORMAT_FASTTEXT),
               {"1", NULL, "only a text\\n", 0});
    refuses("e1.ft", "__label__a x\n__label__a __label__b x\n",
            "e1.ft, line 2: more than one label (__label__a and __label__b); a row has one");
    refuses("e2.ft", "__label__a x\n__label__ x\n", "e2.ft, line 2: __label__ without a name");
    refuses("e3.ft", "__label__a x\n__label__b \xc0\x80\n",
            "e3.ft, line 2: not valid UTF-8 at byte offset 11 of the row (0xC0)");
}

/* ---------------------------------------------------------------- detection */

static void test_detection(void **state)
{
    (void)state;
    reads("noending", "\n {\"text\":\"j\"}\n", {"1", NULL, "j", 0});
    reads("noending", "__label__1 x\n", {"1", "1", "x", 0});
    reads("noending",
          "\xef\xbb\xbf"
          "a\t1\tx\n",
          {"a", "1", "x", 0});
    reads("ratings.dat", "a\t1\tx\n", {"a", "1", "x", 0});
    refuses("noending", "1,x\n", "noending by its name or contents; give format tsv, csv, jsonl, fasttext or folder");
    refuses("t.parquet", "PAR1\025\004", "t.parquet is a file of Parquet, which is read from Python alone");
    reads("named.tsv", "PAR1\t1\tx\n", {"PAR1", "1", "x", 0});
    refuses("noending", "a\tb\n", "cannot tell the format of ");
    refuses("noending", "a\tb\tc\td\n", "cannot tell the format of ");
    refuses("words.txt", "a\tb\tc\n", "words.txt by its name or contents; give format");
    refuses("words.txt", "{\"text\":\"j\"}\n", "words.txt by its name or contents; give format");
    refuses("nothing", "", "nothing holds no rows");
    reads_with("words.txt", "a\tb\tc\n", OPTIONS(.format = SAFER_FORMAT_TSV), {"a", "b", "c", 0});
    reads_with("odd.csv", "{\"text\":\"j\"}\n", OPTIONS(.format = SAFER_FORMAT_JSONL),
               {"1", NULL, "j", 0}); /* the option wins */
    check_failure("/dev/null", OPTIONS(.format = (safer_format)6), SAFER_INVALID, "format: unknown");
    check_failure("/dev/null", NULL, SAFER_INPUT, "/dev/null holds no rows");

    safer_data_options defaults = safer_data_options_default();
    assert_int_equal(defaults.format, SAFER_FORMAT_AUTO);
    assert_null(defaults.sample);
    assert_null(defaults.labels_of);
    assert_int_equal(defaults.limit, 0);
    assert_int_equal(defaults.seed, 1);
    assert_int_equal(defaults.repair, 0);
    assert_int_equal(defaults.strip_breaks, 0);
    safer_data_free(NULL);
}

/* For those who have the bytes already. */
static void test_parse(void **state)
{
    (void)state;
    safer_error error = {0};
    safer_data_options options = safer_data_options_default();
    safer_data *data = NULL;
    assert_ok(sf_data_parse(&data, SAFER_FORMAT_CSV, "1,x\n", 4, "bytes", &options, &error));
    check_rows(data, ROWS({"1", "1", "x", 0}));
    safer_data_free(data);
    data = NULL;
    assert_fails(sf_data_parse(&data, SAFER_FORMAT_TSV, NULL, 0, "bytes", &options, &error), SAFER_INPUT,
                 "bytes holds no rows");
    assert_fails(sf_data_parse(&data, SAFER_FORMAT_FOLDER, "x", 1, "bytes", &options, &error), SAFER_INVALID,
                 "bytes: a folder cannot be read as a file");
    assert_null(data);
}

/* -------------------------------------------------------------- extremes */

static int add_json_string(sf_buffer *out, const char *bytes, size_t length)
{
    json_t *string = json_stringn(bytes, length);
    char *dump = json_dumps(string, JSON_ENCODE_ANY);
    int failed = !dump || sf_buffer_add_string(out, dump);
    free(dump);
    json_decref(string);
    return failed;
}

static int add_escaped(sf_buffer *out, const char *bytes, size_t length, const char *from, const char *const *to)
{
    for (size_t i = 0; i < length; i++) {
        const char *found = bytes[i] ? strchr(from, bytes[i]) : NULL;
        if (found ? sf_buffer_add_string(out, to[found - from]) : sf_buffer_add_byte(out, bytes[i])) return -1;
    }
    return 0;
}

/* Texts that every format must carry through unharmed. */
static void test_round_trip(void **state)
{
    (void)state;
    static const expected rows[] = {
        {"plain", "0", "just words", 0},
        {"tab\tid", "1", "tab\there\nline\r\nreturn\rback\\slash\\n\\t\\", 0},
        {"quote\"d", "a,b", "\"quoted\", with \"\" and , and '", 0},
        {" spaces ", " x ", "  around  ", 0},
        {"e", "\xc3\xa9", "\xf0\x9f\x98\x80 \xe2\x80\xa8 \xc2\x85 \xef\xbb\xbf \xef\xbf\xbf", 0},
        {"n", "0", "nul \0 inside \0", 15},
        {"z", "0", "", 0},
        {"c", "0", "\x01\x02\x1f\x7f{}[]__label__x", 0},
    };
    static const char *const tsv_to[] = {"\\\\", "\\t", "\\n", "\\r"}, *const csv_to[] = {"\"\""};
    sf_buffer tsv = {0}, csv = {0}, jsonl = {0};
    assert_int_equal(sf_buffer_add_string(&csv, "id,text,label\r\n"), 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const expected *row = &rows[i];
        size_t length = row->length ? row->length : strlen(row->text);
        int failed = add_escaped(&tsv, row->id, strlen(row->id), "\\\t\n\r", tsv_to) ||
                     sf_buffer_add_byte(&tsv, '\t') ||
                     add_escaped(&tsv, row->label, strlen(row->label), "\\\t\n\r", tsv_to) ||
                     sf_buffer_add_byte(&tsv, '\t') || add_escaped(&tsv, row->text, length, "\\\t\n\r", tsv_to) ||
                     sf_buffer_add_byte(&tsv, '\n');
        failed |= sf_buffer_add_byte(&csv, '"') || add_escaped(&csv, row->id, strlen(row->id), "\"", csv_to) ||
                  sf_buffer_add_string(&csv, "\",\"") || add_escaped(&csv, row->text, length, "\"", csv_to) ||
                  sf_buffer_add_string(&csv, "\",\"") ||
                  add_escaped(&csv, row->label, strlen(row->label), "\"", csv_to) ||
                  sf_buffer_add_string(&csv, "\"\r\n");
        failed |= sf_buffer_add_string(&jsonl, "{\"id\":") || add_json_string(&jsonl, row->id, strlen(row->id)) ||
                  sf_buffer_add_string(&jsonl, ",\"text\":") || add_json_string(&jsonl, row->text, length) ||
                  sf_buffer_add_string(&jsonl, ",\"label\":") ||
                  add_json_string(&jsonl, row->label, strlen(row->label)) || sf_buffer_add_string(&jsonl, "}\n");
        assert_int_equal(failed, 0);
    }
    check_file(write_temporary("trip.tsv", tsv.bytes, tsv.length), NULL, rows, COUNT(rows));
    check_file(write_temporary("trip.csv", csv.bytes, csv.length), NULL, rows, COUNT(rows));
    check_file(write_temporary("trip.jsonl", jsonl.bytes, jsonl.length), NULL, rows, COUNT(rows));
    sf_buffer_free(&tsv);
    sf_buffer_free(&csv);
    sf_buffer_free(&jsonl);
}

static void test_long_lines(void **state)
{
    (void)state;
    enum { LONG = 10000000, MANY = 1000000 };
    char *text = malloc(LONG + 1);
    assert_non_null(text);
    for (size_t i = 0; i < LONG; i++) text[i] = (char)('a' + i % 26);
    text[LONG] = '\0';
    static const struct {
        const char *name, *before, *after;
    } files[] = {{"long.tsv", "i\tx\t", "\ni\tx\tshort\n"},
                 {"long.csv", "id,label,text\ni,x,\"", "\"\ni,x,short\n"},
                 {"long.jsonl", "{\"id\":\"i\",\"label\":\"x\",\"text\":\"",
                  "\"}\n{\"id\":\"i\",\"label\":\"x\",\"text\":\"short\"}"}};
    for (size_t i = 0; i < COUNT(files); i++) {
        sf_buffer file = {0};
        assert_int_equal(sf_buffer_add_string(&file, files[i].before) || sf_buffer_add(&file, text, LONG) ||
                             sf_buffer_add_string(&file, files[i].after),
                         0);
        check_file(write_temporary(files[i].name, file.bytes, file.length), NULL,
                   ROWS({"i", "x", text, LONG}, {"i", "x", "short", 0}));
        sf_buffer_free(&file);
    }
    free(text);
    /* A million lines that are no rows must not take a million squared steps. */
    char *lines = malloc(MANY);
    assert_non_null(lines);
    memset(lines, '\n', MANY);
    memcpy(lines, "a\tb\tc", 5);
    check_file(write_temporary("lines.tsv", lines, MANY), NULL, ROWS({"a", "b", "c", 0}));
    memcpy(lines, "text\nx", 6);
    lines[MANY - 1] = 'y';
    safer_data *data = load(write_temporary("lines.csv", lines, MANY), NULL);
    assert_int_equal(safer_data_size(data), MANY - 6); /* x, the empty ones and y */
    safer_data_free(data);
    free(lines);
}

/* The length alone decides; no memory of that size is touched. */
static void test_longest_text(void **state)
{
    (void)state;
    safer_error error = {0};
    safer_data_options options = safer_data_options_default();
    sf_loader loader = {0};
    const sf_span id = {"i", 1}, label = {"l", 1};
    assert_ok(sf_loader_start(&loader, "huge.tsv", &options, &error));
    assert_fails(sf_loader_add(&loader, id, label, (sf_span){"x", ((size_t)1 << 31) + 1}, 7, &error), SAFER_INPUT,
                 "huge.tsv, line 7: a text of 2147483649 bytes; the longest possible is 2^31");
    assert_ok(sf_loader_add(&loader, id, label, (sf_span){"x", 1}, 8, &error));
    assert_int_equal(loader.data->count, 1);
    sf_loader_free(&loader);
}

/* Turkish lower-cases I to a dotless i and writes decimals with a comma. */
static void test_locale(void **state)
{
    (void)state;
    char folder[600], command[1400];
    snprintf(folder, sizeof folder, "%s", temporary("locale"));
    snprintf(command, sizeof command, "mkdir -p '%s' && localedef -i tr_TR -f UTF-8 '%s/tr_TR.UTF-8' >/dev/null 2>&1",
             folder, folder);
    int made = system(command) == 0;
    setenv("LOCPATH", folder, 1);
    if (!made || !setlocale(LC_ALL, "tr_TR.UTF-8")) {
        unsetenv("LOCPATH");
        printf("skipped: no Turkish locale here\n");
        skip();
    }
    char half[8];
    snprintf(half, sizeof half, "%.1f", 0.5);
    assert_string_equal(half, "0,5"); /* the locale is really in force */
    reads("T.CSV", "ID,TITLE,TEXT,SENTIMENT\n7,t,x,-1\n", {"7", "-1", "t x", 0});
    reads("I.JSONL", "{\"text\":\"a\",\"label\":1234567,\"score\":0.5}\n", {"1", "1234567", "a", 0});
    reads("T.TSV", "a\t10\tx\nb\t9\tx\n", {"a", "10", "x", 0}, {"b", "9", "x", 0});
    reads_with("s.tsv", "a\t1\tx\nb\t1\ty\n", OPTIONS(.sample = "every:1000"), {"a", "1", "x", 0});
    assert_non_null(setlocale(LC_ALL, "C"));
    unsetenv("LOCPATH");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tsv),
        cmocka_unit_test(test_tsv_errors),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_csv_cut_anywhere),
        cmocka_unit_test(test_csv_errors),
        cmocka_unit_test(test_jsonl),
        cmocka_unit_test(test_jsonl_errors),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_short_headers),
        cmocka_unit_test(test_separators),
        cmocka_unit_test(test_named_columns),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_headers_inside),
        cmocka_unit_test(test_fasttext),
        cmocka_unit_test(test_detection),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_longest_text),
        cmocka_unit_test(test_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
