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
import math
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
PLOTS = ("radius", "accuracy", "radii", "queries", "products")
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


class Findings(Reports):
    def test_title_and_notes(self):
        """a title and notes, as text; what cannot be notes is refused"""
        write("notes.txt", "First <b>line</b>\n\nand a second & last.\n")
        page = self.page("k.jsonl", "--title", "Reviews <i>&amp;</i>", "--notes", "notes.txt")
        self.assertIn("Reviews <i>&amp;</i>", page.text)
        self.assertIn("First <b>line</b>\n\nand a second & last.\n", page.text)
        self.assertNotIn("Certified robustness", page.text)
        (test_cli.temporary / "latin").write_bytes(b"caf\xe9\n")
        self.refused(report("k.jsonl", "--notes", "latin", "-o", "x.html"), INPUT, "latin, byte 3: not UTF-8")
        write("long", "x" * ((1 << 20) + 1))
        self.refused(report("k.jsonl", "--notes", "long", "-o", "x.html"), INPUT, "long: notes of more than 1048576 bytes")
        self.refused(report("k.jsonl", "--notes", "nowhere", "-o", "x.html"), SYSTEM, "nowhere")
        self.assertFalse(exists("x.html"))

    def test_flat(self):
        """a plot that says nothing is a line; its file is written all the same"""
        page = self.page("c.jsonl", "--svg", "flat")
        text = " ".join(page.text.split())
        for line in ("by radius: the same texts whether one word may change or all of them.", "Largest certified radius: all words or none",
                     "Product of overlaps: 1 for every text", "Margin of every text of c: q is 0"):
            self.assertIn(line, text)
        self.assertEqual(sum(tag == "figure" for tag, _ in page.tags), 2)  # accuracy, queries
        self.assertTrue(all(exists(f"flat/{name}.svg") for name in (*PLOTS, "margin")))
        self.assertEqual(sum(tag == "figure" for tag, _ in self.page("k.jsonl").tags), 6)
        self.assertNotIn("Runs compared", text)

    def test_radii(self):
        """bars of the largest radii are the shares of the texts"""
        self.page("k.jsonl", "--svg", "radii")
        heights = [float(h) for h in re.findall(r'class="f0"[^>]* height="([^"]*)"', read("radii/radii.svg"))]
        radius = [float("inf") if r["radius"] == "all" else int(r["radius"]) for r in records("k.jsonl")]
        ends = (0, 1, 2, 5, 10, 20, float("inf"), float("nan"))
        counts = [sum(low <= r and not r >= high for r in radius) for low, high in zip(ends, ends[1:])]
        self.assertEqual((len(heights), sum(counts)), (7, 120))
        for height, count in zip(heights, counts):
            self.assertAlmostEqual(height / 238, count / 120, delta=0.001)

    def test_pairs(self):
        """two runs compared: the counts of their records, and McNemar's exact test"""
        held = [[r["certified"] and is_answered(r) for r in records(f"{name}.jsonl")] for name in "kc"]
        both, first, second = (sum((a, b) == pair for a, b in zip(*held)) for pair in ((True, True), (True, False), (False, True)))
        p = min(1.0, 2 * sum(math.comb(first + second, k) for k in range(min(first, second) + 1)) / 2 ** (first + second))
        row = next(row for row in self.page("k.jsonl", "c.jsonl").rows if row and row[-1].startswith(("0.", "1.", "below")))
        self.assertEqual([cell.strip() for cell in row[:6]], ["k", "c", str(both), str(first), str(second), str(120 - both - first - second)])
        self.assertEqual(row[6], row[7])  # one pair: nothing to adjust
        self.assertTrue(p < 1e-4 if row[6] == "below 0.0001" else p <= float(row[6]) < p + 2e-4, (p, row))
        must("certify", "--model", "k.model", "--lexicon", "k.lex", "--data", "demo/test.tsv", *SAMPLES, "--radius", 2, "-o", "two.jsonl")
        text = " ".join(self.page("k.jsonl", "two.jsonl").text.split())
        self.assertIn("1 pair of runs is not compared: they have different radii.", text)

    def test_costs(self):
        """words that cost certificates: what is certified without each, from overlaps and bounds alone"""
        page = self.page("k.jsonl", "--data", "demo/test.tsv", "--lexicon", "k.lex")
        slots, words = page.block("slots-0-0"), page.block("words-0")
        overlap = {name: entry["overlap"] for name, entry in self.shown("k.lex", *words["w"][:len(words["s"])]).items()}
        lost = [([words["w"][word] for word in triples[2::3]][:record["visible"]], record["bound"]) for triples, record in zip(slots, records("k.jsonl"))
                if not record["certified"] and is_answered(record)]

        def certified_without(gone):
            return sum(bound > 1.5 - math.prod(overlap[w] for w in text if w not in gone) + 1e-9 for text, bound in lost)

        gains = {word: certified_without({word}) for word in overlap}
        rows = [row for row in page.rows if len(row) == 6 and row[-1].startswith("+")]
        self.assertTrue(rows and len(rows) == min(20, sum(gain > 0 for gain in gains.values())))
        self.assertEqual([int(row[4]) for row in rows], sorted(gains.values(), reverse=True)[:len(rows)])
        for k, row in enumerate(rows):
            self.assertEqual(int(row[4]), gains[row[0]], row)
            self.assertEqual(int(row[3]), sum(row[0] in text for text, _ in lost))
            self.assertEqual(int(row[5]), certified_without({other[0] for other in rows[:k + 1]}))
        self.assertIn(f"{len(lost)} texts are answered clearly", page.text)
        self.assertNotIn("Words that cost", self.page("c.jsonl", "--data", "demo/test.tsv").text)  # no lexicon

    def test_costs_radius(self):
        """the same at a radius: only the smallest overlaps count"""
        must("certify", "--model", "k.model", "--lexicon", "k.lex", "--data", "demo/test.tsv", *SAMPLES, "--radius", 3, "-o", "three.jsonl")
        page = self.page("three.jsonl", "--data", "demo/test.tsv", "--lexicon", "k.lex")
        slots, words = page.block("slots-0-0"), page.block("words-0")
        overlap = {name: entry["overlap"] for name, entry in self.shown("k.lex", *words["w"][:len(words["s"])]).items()}
        gains = dict.fromkeys(overlap, 0)
        for triples, record in zip(slots, records("three.jsonl")):
            text = [words["w"][word] for word in triples[2::3]][:record["visible"]]
            for word in set(text) if not record["certified"] and is_answered(record) else ():
                gains[word] += record["bound"] > 1.5 - math.prod(sorted(overlap[w] for w in text if w != word)[:3]) + 1e-9
        rows = [row for row in page.rows if len(row) == 6 and row[-1].startswith("+")]
        self.assertEqual([int(row[4]) for row in rows], sorted((gain for gain in gains.values() if gain), reverse=True)[:20])
        self.assertTrue(all(int(row[4]) == gains[row[0]] for row in rows))

    def test_attacks(self):
        """attacks beside certificates: the figures of attack --json, and what became of every text"""
        attack = ("attack", "--method", "textfooler", "--model", "k.model", "--lexicon", "k.lex", "--data", "demo/test.tsv")
        said = json.loads(self.ok(run(*attack, "-o", "attack.jsonl", "--json")))
        page = self.page("k.jsonl", "c.jsonl", "--data", "demo/test.tsv", "--attack", "attack.jsonl")
        row = next(row for row in page.rows if row and row[0].startswith("textfooler"))
        held = sum(r["certified"] and is_answered(r) for r in records("k.jsonl"))
        self.assertEqual([row[0], row[1].strip(), row[2]], ["textfooler on the base model", "k", "120"])
        self.assertTrue(row[3].startswith(cut(said["clean_accuracy"])) and outward(said["adversarial_interval"]) in row[4], row)
        self.assertTrue(row[4].startswith(cut(said["adversarial_accuracy"])) and row[5].startswith(cut(held / 120)), row)
        first, second = json.loads(page.scripts["data"])["runs"]
        self.assertEqual(first["attack"], [{"failed": 1, "succeeded": 2, "skipped": 3}[r["outcome"]] for r in records("attack.jsonl")])
        self.assertNotIn("attack", second)
        self.assertEqual([row[-1] for row in page.rows if row[1:2] == [records("k.jsonl")[0]["id"]]],
                         [{1: "held", 2: "fell", 3: "wrong before"}[first["attack"][0]]])

    def test_edits_and_folds(self):
        """runs that delete words, of a lexicon that folds: curve, columns and sentences"""
        must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1, "--kernel", "component",
             "--fold", "standard", "-o", "e.lex")
        must("certify", "--model", "c.model", "--lexicon", "e.lex", "--data", "demo/test.tsv", *SAMPLES, "--delete", 0.8, "--edits", 3,
             "--edit-kind", "delete", "-o", "edits.jsonl")
        page = self.page("edits.jsonl", "k.jsonl", "--data", "demo/test.tsv", "--lexicon", "e.lex", "--svg", "edits")
        text = " ".join(page.text.split())
        self.assertIn("every spelling that folds to the same text (nfkc,case,ignorable,marks,lookalikes), exactly", text)
        self.assertIn("1 pair of runs is not compared: they are about different edits.", text)
        found = records("edits.jsonl")
        line = re.search(r'class="curve r0" d="([^"]*)"', read("edits/edits.svg"))[1]
        heights = [float(y) for _, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", line)]
        self.assertEqual(len(heights), 3)
        for edits, y in enumerate(heights, 1):
            share = sum(r["edits"] >= edits and r["radius"] == "all" and is_answered(r) for r in found) / 120
            self.assertAlmostEqual(1 - (y - 14) / 238, share, delta=0.001)
            self.assertIn(f"at most {edits}: {cut(share)}", text)
        self.assertTrue(any(r["edits"] for r in found))
        run_of_edits, other = json.loads(page.scripts["data"])["runs"]
        self.assertEqual((run_of_edits["edits"], run_of_edits["tokens"]), ([r["edits"] for r in found], [r["tokens"] for r in found]))
        self.assertEqual((run_of_edits["editsAsked"], run_of_edits["editKind"], run_of_edits["radiusAsked"]), (3, "delete", -1))
        for shown, r in zip(run_of_edits["q"], found):  # what was asked, not synonyms alone
            self.assertTrue(r["q_edits"][3] <= shown / 10000 < r["q_edits"][3] + 1e-4)
        self.assertNotIn("edits", other)
        self.assertIn([str(found[0]["edits"])], [row[10:11] for row in page.rows if row[1:2] == [found[0]["id"]]])


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
        for name, content, part in (("changed", [*lines[:5], changed, *lines[6:]], "line 6"), ("cut", lines[:-1], "119 of 120 records"),
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
        certified = sum(record["certified"] for record in records("e.jsonl"))
        self.assertEqual(text.count(f"most certificates are empty: in 2 of {certified} certified texts"), 1)
        self.assertLess(text.index("most certificates are empty"), text.index("the base model itself"))


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
