#!/usr/bin/env python3
"""Writes reports as a person would: test_cli_report.py [TEST...] BUILD_DIR. Run by ctest.

Pages and pictures are read with parsers that know nothing of how they were written, and
their figures recomputed from the records.
"""
import base64
import csv
import gzip
import html.parser
import io
import json
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import cut, is_answered, must, outward, reaches  # noqa: E402
from test_cli import DONE, INPUT, SYSTEM, USAGE, Case, exists, run, write  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
RADII = ("1", "2", "5", "10", "20", "all")
SAMPLES = ("--n", 500, "--n0", 13)  # so few that not all that is certified is answered
PLOTS = ("radius", "accuracy", "queries", "products")
VOID = {"meta", "br", "img", "input", "link"}


def make_files():
    """The demo's reviews, few of them; a lexicon, a model and a run for two kernels."""
    build = pathlib.Path(test_cli.program).parent
    subprocess.run([build / "demo-reviews", test_cli.temporary / "demo", "--train", "300", "--dev", "40", "--test", "120"],
                   check=True, capture_output=True)
    for name, kernel in (("k", "topk:4"), ("c", "component")):
        must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1,
             "--kernel", kernel, "-o", f"{name}.lex")
        must("train", "--arch", "ngram", "--data", "demo/train.tsv", "--dev", "demo/dev.tsv", "--lexicon", f"{name}.lex",
             "--bits", 12, "-o", f"{name}.model")
        must("certify", "--model", f"{name}.model", "--lexicon", f"{name}.lex", "--data", "demo/test.tsv", *SAMPLES, "-o", f"{name}.jsonl")


def report(*arguments, **more):
    return run("report", *arguments, **more)


def read(name):
    return (test_cli.temporary / name).read_text()


def records(name):
    return [json.loads(line) for line in read(name).splitlines()[1:]]


class Page(html.parser.HTMLParser):
    """A page as a browser reads it: text outside of scripts, the scripts, and what is left open."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.text, self.scripts, self.tags, self.faults, self.ids, self.rows = [], "", {}, [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag not in VOID:
            self.open.append((tag, attributes))

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")
        else:
            self.open.pop()

    def handle_data(self, words):
        if self.open and self.open[-1][0] == "script":
            self.scripts[self.open[-1][1].get("id")] = words
        elif not self.open or self.open[-1][0] != "style":
            self.text += words
            if any(tag in ("td", "th") for tag, _ in self.open):
                self.rows[-1][-1] += words

    def block(self, name):
        return json.loads(gzip.decompress(base64.b64decode(self.scripts[name])))


class Reports(Case):
    made = 0

    def page(self, *arguments):
        Reports.made += 1
        name = f"page{Reports.made}.html"
        self.ok(report(*arguments, "-o", name))
        page = Page(read(name))
        self.assertEqual((page.faults, page.open), ([], []))
        self.assertEqual(len(page.ids), len(set(page.ids)), "an id is there twice")
        return page


class Figures(Reports):
    def test_help(self):
        """help: usage, defaults, two examples"""
        out = self.ok(report("--help"))
        self.assertTrue(out.startswith("Usage: safer report RUN.jsonl..."), out)
        self.assertIn("(default 25000)", out)
        self.assertGreaterEqual(out.count("  safer report "), 2)

    def test_figures(self):
        """the page's figures are those of certify --json"""
        page = self.page("k.jsonl")
        summary = json.loads(self.ok(run("certify", "--model", "k.model", "--lexicon", "k.lex", "--data", "demo/test.tsv", *SAMPLES,
                                         "-o", "k.jsonl", "--resume", "--json")))
        text = " ".join(page.text.split())
        for figure in (cut(summary["clean_accuracy"]), cut(summary["smoothed_accuracy"]), cut(summary["certified_accuracy"]),
                       cut(summary["certified_answered"]), outward(summary["certified_interval"]),
                       outward(summary["certified_answered_interval"]), f"{summary['abstained']} prediction", f"{summary['queries']:,} queries"):
            self.assertIn(figure, text)
        self.assertLess(summary["certified_answered"], summary["certified_accuracy"])  # else the two could be confused
        for radius in RADII:
            self.assertIn(cut(summary["certified_at"][radius]), text)
            self.assertIn(cut(summary["certified_answered_at"][radius]), text)
        self.assertNotIn("Caution", text)

    def test_classes(self):
        """recall, precision and answers by class are those of certify --json"""
        rows = self.page("k.jsonl").rows
        classes = json.loads(self.ok(run("certify", "--model", "k.model", "--lexicon", "k.lex", "--data", "demo/test.tsv", *SAMPLES,
                                         "-o", "k.jsonl", "--resume", "--json")))["classes"]
        self.assertEqual([entry["label"] for entry in classes], ["0", "1"])
        for number, entry in enumerate(classes):
            answers = [str(n) for n in entry["answers"].values()]
            answers[number] += f" ({entry['certified_answered']})"
            self.assertIn([entry["label"], str(entry["texts"]), f"{cut(entry['certified_recall'])} ({outward(entry['certified_recall_interval'])})",
                           f"{cut(entry['certified_precision'])} ({outward(entry['certified_precision_interval'])})", *answers,
                           str(entry["abstained"])], rows)

    def test_configuration(self):
        """hashes, seed, method and every other member of the configuration are at the foot"""
        config = json.loads(read("k.jsonl").splitlines()[0])
        foot = self.page("k.jsonl").text.split("How it was run")[1]
        for value in (config["model"]["sha256"], config["lexicon"]["sha256"], config["data"]["sha256"], config["method"], "topk:4"):
            self.assertIn(value, foot)
        for name in ("delta_text", "alpha", "seed", "n0", "radii"):
            self.assertIn(name, foot)
        self.assertIn("every record was checked by itself: its decision follows from its counts and its q", foot)  # and no more

    def test_table(self):
        """the script's columns are the records; bounds are cut, q rounded up"""
        page = self.page("k.jsonl")
        data, = json.loads(page.scripts["data"])["runs"]
        for i, record in enumerate(records("k.jsonl")):
            self.assertEqual(data["id"][i], record["id"])
            self.assertEqual(data["labels"][data["label"][i]], record["label"])
            self.assertEqual(data["labels"][data["prediction"][i]], record["prediction"])
            self.assertEqual(data["radius"][i], -1 if record["radius"] == "all" else int(record["radius"]))
            for name in ("words", "slots", "visible", "queries", "n"):
                self.assertEqual(data[name][i], record[name])
            self.assertEqual(data["flags"][i], record["certified"] + 2 * record["abstained"] + 4 * record["exact"] + 8 * is_answered(record))
            self.assertLessEqual(data["bound"][i] / 10000, record["bound"])
            self.assertLess(record["bound"] - data["bound"][i] / 10000, 1e-4)
            self.assertGreaterEqual(data["q"][i] / 10000, record["q"])
            self.assertLess(data["q"][i] / 10000 - record["q"], 1e-4)
        self.assertEqual(sum(1 for tag, _ in page.tags if tag == "tr") - 7, 100)  # and a head and two rows of radii, a head and two of classes, a head

    def test_nothing_from_elsewhere(self):
        """no address but the name of SVG, nothing to load, scripts only with the mark"""
        page = self.page("k.jsonl", "c.jsonl", "--data", "demo/test.tsv", "--lexicon", "k.lex", "--lexicon", "c.lex")
        for tag, attributes in page.tags:
            self.assertNotIn(tag, ("link", "img", "iframe", "object", "embed", "base"))
            self.assertFalse({"src", "style", "onclick", "onload"} & set(attributes), (tag, attributes))
            self.assertFalse(attributes.get("href", "#").strip("#abcdefghijklmnopqrstuvwxyz"))
        policy = next(a["content"] for tag, a in page.tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy")
        self.assertRegex(policy, r"^default-src 'none'; style-src 'nonce-[0-9a-f]{16}'; script-src 'nonce-[0-9a-f]{16}'$")

    def test_same_bytes(self):
        """the same runs give the same bytes"""
        for name in ("a.html", "b.html"):
            self.ok(report("k.jsonl", "--data", "demo/test.tsv", "--lexicon", "k.lex", "-o", name))
        self.assertEqual(read("a.html"), read("b.html"))

    def test_json(self):
        """--json says what was written"""
        out = json.loads(self.ok(report("k.jsonl", "c.jsonl", "-o", "j.html", "--json")))
        self.assertEqual((out["output"], out["bytes"]), ("j.html", (test_cli.temporary / "j.html").stat().st_size))
        self.assertEqual([(r["run"], r["examples"]) for r in out["runs"]], [("k.jsonl", 120), ("c.jsonl", 120)])


class Texts(Reports):
    def test_words(self):
        """texts, slots, synonyms, draws and overlaps in the page are the data's and the lexicon's"""
        page = self.page("k.jsonl", "--data", "demo/test.tsv", "--lexicon", "k.lex")
        rows = [line.split("\t") for line in read("demo/test.tsv").splitlines()]
        texts, slots, words = page.block("texts-0"), page.block("slots-0-0"), page.block("words-0")
        self.assertEqual(texts, [text.replace("\\n", "\n") for _, _, text in rows])
        table = self.shown("k.lex", *words["w"][:len(words["s"])])
        details = [entry for name in sorted((n for n in page.scripts if n and n.startswith("details-0-")), key=lambda n: int(n[10:]))
                   for entry in page.block(name)]
        self.assertEqual(len(details), len(words["s"]))
        for text, triples, record in zip(texts, slots, records("k.jsonl")):
            at = 0
            self.assertEqual(len(triples), 3 * record["slots"])
            for gap, length, word in zip(triples[::3], triples[1::3], triples[2::3]):
                self.assertEqual(text[at + gap:at + gap + length].lower(), words["w"][word])
                at += gap + length
        for number, (worst, synonyms, first, draws, support, *weights) in enumerate(details):
            entry = table[words["w"][number]]
            self.assertEqual(words["w"][worst], entry["worst"])
            self.assertEqual({words["w"][k] for k in first}, {other["word"] if isinstance(other, dict) else other for other in entry["synonyms"]})
            self.assertEqual((synonyms, draws), (len(first), len(support)))
            self.assertEqual(weights, [])
            self.assertEqual(words["s"][number], int(entry["overlap"] * 10000))

    def test_limit(self):
        """--texts limits what is in the page"""
        page = self.page("k.jsonl", "--data", "demo/test.tsv", "--lexicon", "k.lex", "--texts", 7)
        self.assertEqual(len(page.block("texts-0")), 7)
        self.assertEqual(json.loads(page.scripts["data"])["runs"][0]["texts"], 7)
        self.assertNotIn("texts-0", self.page("k.jsonl", "--data", "demo/test.tsv", "--texts", 0).scripts)

    def test_one_of_two(self):
        """a lexicon of one run shows the words of that run alone"""
        page = self.page("k.jsonl", "c.jsonl", "--data", "demo/test.tsv", "--lexicon", "c.lex")
        self.assertEqual([r["lexicon"] for r in json.loads(page.scripts["data"])["runs"]], [-1, 0])


class Files(Reports):
    def test_svg(self):
        """plots are well-formed, have a title and a description, and their ends"""
        self.page("k.jsonl", "c.jsonl", "--svg", "svg")
        for name in (*PLOTS, "margin-1", "margin-2"):
            root = ET.parse(test_cli.temporary / f"svg/{name}.svg").getroot()
            space = {"s": "http://www.w3.org/2000/svg"}
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
            self.assertTrue(root.find("s:title", space).text and root.find("s:desc", space).text, name)
            for path in root.iter("{http://www.w3.org/2000/svg}path"):
                self.assertRegex(path.get("d") or "M0 0", r"^(?:[ML]-?\d+\.\d -?\d+\.\d(?:h0)?)+$|^M0 0$")

    def test_svg_curve(self):
        """the curve's points are the shares"""
        self.page("k.jsonl", "--svg", "curve")
        picture = read("curve/radius.svg")
        line = re.search(r'class="curve r0" d="([^"]*)"', picture)[1]
        heights = [float(y) for _, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", line)]
        found = records("k.jsonl")
        for radius, y in zip(RADII, heights):
            share = sum(reaches(record, radius) and is_answered(record) for record in found) / len(found)
            self.assertAlmostEqual(1 - (y - 14) / 238, share, delta=0.001)

    def test_csv(self):
        """the tables, read by Python's csv, are the records"""
        self.page("k.jsonl", "c.jsonl", "--csv", "tables")
        rows = list(csv.DictReader(io.StringIO(read("tables/texts.csv"), newline="")))
        found = [(name, record) for name in ("k", "c") for record in records(f"{name}.jsonl")]
        self.assertEqual(len(rows), len(found))
        for row, (name, record) in zip(rows, found):
            self.assertEqual((row["run"], row["id"], row["label"], row["radius"]), (name, record["id"], record["label"], str(record["radius"])))
            self.assertEqual((float(row["bound"]), float(row["q"]), int(row["queries"])), (record["bound"], record["q"], record["queries"]))
        for row in csv.DictReader(io.StringIO(read("tables/radii.csv"), newline="")):
            some = records(f"{row['run']}.jsonl")
            self.assertEqual(int(row["certified"]), sum(reaches(record, row["radius"]) for record in some))
            self.assertEqual(int(row["certified_answered"]), sum(reaches(record, row["radius"]) and is_answered(record) for record in some))
            self.assertEqual(row["stable"], row["certified_answered"])
            for name in ("certified", "certified_answered", "stable"):
                self.assertEqual(float(row[f"{name}_share"]), int(row[name]) / 120)
                self.assertTrue(float(row[f"{name}_low"]) <= float(row[f"{name}_share"]) <= float(row[f"{name}_high"]))
        for row in csv.DictReader(io.StringIO(read("tables/classes.csv"), newline="")):
            of_label = [record for record in records(f"{row['run']}.jsonl") if record["label"] == row["label"]]
            held = sum(record["certified"] and is_answered(record) for record in of_label)
            self.assertEqual((int(row["texts"]), int(row["certified_answered"]), float(row["recall"])), (len(of_label), held, held / len(of_label)))
        for row in csv.DictReader(io.StringIO(read("tables/confusion.csv"), newline="")):
            cell = [record for record in records(f"{row['run']}.jsonl") if record["label"] == row["label"] and
                    (record["abstained"] if row["abstained"] == "1" else not record["abstained"] and record["prediction"] == row["answer"])]
            self.assertEqual((int(row["texts"]), int(row["certified_answered"])), (len(cell), sum(r["certified"] and is_answered(r) for r in cell)))
        self.assertEqual([row["run"] for row in csv.DictReader(io.StringIO(read("tables/runs.csv"), newline=""))], ["k", "c"])

    def test_formula(self):
        """ids that a spreadsheet would compute are kept from it"""
        rows = [("=1+2", "1", "A good film."), ("@x", "0", "A bad film."), ("-3", "1", "fine"), ("a,\"b\"", "0", "bad")]
        write("f.jsonl.data", "".join(json.dumps({"id": i, "label": label, "text": text}) + "\n" for i, label, text in rows))
        must("certify", "--model", "k.model", "--lexicon", "k.lex", "--data", "f.jsonl.data", "--format", "jsonl", "-o", "f.jsonl")
        self.page("f.jsonl", "--csv", "f")
        ids = [row["id"] for row in csv.DictReader(io.StringIO(read("f/texts.csv"), newline=""))]
        self.assertEqual(ids, ["'=1+2", "'@x", "'-3", "a,\"b\""])


class Errors(Reports):
    def test_usage(self):
        """what is missing is named"""
        self.refused(report("-o", "x.html"), USAGE, "RUN.jsonl")
        self.refused(report("k.jsonl"), USAGE, "-o FILE")
        self.refused(report("k.jsonl", "--lexicon", "k.lex", "-o", "x.html"), USAGE, "--data")
        self.refused(report("k.jsonl", "k.jsonl", "-o", "x.html"), USAGE, "k.jsonl is given twice")
        self.refused(report(*["k.jsonl"] * 17, "-o", "x.html"), USAGE, "17 runs")
        self.assertFalse(exists("x.html"))

    def test_other_inputs(self):
        """data and lexicon of another run"""
        self.refused(report("k.jsonl", "--data", "demo/dev.tsv", "-o", "x.html"), INPUT, "k.jsonl", "another data set")
        self.refused(report("k.jsonl", "--data", "demo/test.tsv", "--limit", 5, "-o", "x.html"), INPUT, "sample or limit")
        self.refused(report("k.jsonl", "--data", "demo/test.tsv", "--lexicon", "c.lex", "-o", "x.html"), INPUT, "another lexicon")
        self.refused(report("k.jsonl", "c.jsonl", "--data", "demo/dev.tsv", "-o", "x.html"), INPUT, "none of the 2 runs")
        self.assertFalse(exists("x.html"))

    def test_broken_records(self):
        """a changed, missing or moved record is an error that names its line"""
        lines = read("k.jsonl").splitlines(keepends=True)
        changed = re.sub('"radius":(?:"all"|[0-9]+)', '"radius":1', lines[5]) if '"radius":1,' not in lines[5] else lines[5].replace('"radius":1,', '"radius":2,')
        for name, content, part in (("changed", [*lines[:5], changed, *lines[6:]], "line 6"), ("cut", lines[:-1], "119 records of 120"),
                                    ("moved", [lines[0], lines[2], lines[1], *lines[3:]], "line 2"), ("half", [*lines[:3], lines[3][:20]], "line 4"),
                                    ("nothing", [], "is empty"), ("other", ["{}\n"], "line 1")):
            self.refused(report(write(f"{name}.jsonl", "".join(content)), "-o", "x.html"), INPUT, f"{name}.jsonl", part)
        self.assertFalse(exists("x.html"))

    def test_cannot_write(self):
        """a folder that is not there, a file where a folder should be"""
        self.refused(report("k.jsonl", "-o", "no/such/x.html"), SYSTEM, "no/such/x.html")
        self.refused(report("k.jsonl", "-o", "y.html", "--svg", "k.lex"), SYSTEM, "k.lex")

    def test_unlabelled(self):
        """a run without labels has no accuracies"""
        write("u.jsonl.data", "".join(json.dumps({"text": "A good film."}) + "\n" for _ in range(3)))
        must("certify", "--model", "k.model", "--lexicon", "k.lex", "--data", "u.jsonl.data", "--format", "jsonl", "-o", "u.jsonl")
        text = self.page("u.jsonl").text
        self.assertEqual(text.count("no labels"), 2)
        self.assertIn("stable", text)
        self.assertNotIn("Classes", text)

    def test_caution(self):
        """certificates of texts in which no word can change: said before any figure, and for every run of them"""
        write("e.jsonl.data", "".join(json.dumps({"label": "1", "text": text}) + "\n" for text in ("Zut alors.", "Sapristi!", "A good film.")))
        must("certify", "--model", "k.model", "--lexicon", "k.lex", "--data", "e.jsonl.data", "--format", "jsonl", "--unlabelled", "-o", "e.jsonl")
        text = " ".join(self.page("e.jsonl", "k.jsonl").text.split())
        self.assertEqual(text.count("most certificates are empty: in 2 of 3 certified texts"), 1)
        self.assertLess(text.index("most certificates are empty"), text.index("the base model itself"))


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
