#!/usr/bin/env python3
"""What is said of a run: test_cli_results.py [TEST...] BUILD_DIR. Run by ctest.

Certified and answered, by class, texts without labels, certificates that are empty, and that no figure is rounded up:
on the terminal, with --json, by verify and by lexicon stats.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import UNMET, cut, is_answered, must, outward, read_run  # noqa: E402
from test_cli import SYSTEM, USAGE, Case, run, write  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
WITH_K = ("--model", "k.model", "--lexicon", "k.lex", "--data", "demo/test.tsv", "--n", 300, "--n0", 13)  # few votes are clear
WITH_WORDS = ("--model", "exec:python3 words.py", "--lexicon", "words.lex")

# A model that is a function of the text: its second word is the answer, whatever synonym the first one becomes.
WORDS = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    words = [text.split() for text in request["texts"]]
    print(json.dumps({"id": request["id"], "labels": [w[1] if len(w) == 2 and w[0] in ("good", "fine", "zut") else None for w in words]}), flush=True)
"""


def make_files():
    build = pathlib.Path(test_cli.program).parent
    subprocess.run([build / "demo-reviews", test_cli.temporary / "demo", "--train", "500", "--dev", "40", "--test", "100"],
                   check=True, capture_output=True)
    must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1,
         "--kernel", "topk:4", "-o", "k.lex")
    must("train", "--arch", "ngram", "--data", "demo/train.tsv", "--dev", "demo/dev.tsv", "--lexicon", "k.lex", "--bits", 14, "-o", "k.model")
    write("words.py", WORDS)
    write("table.tsv", "good\tfine\n")
    must("lexicon", "import", "--table", "table.tsv", "--kernel", "component", "-o", "words.lex")


def data(name, *rows):
    """A data set of (label or None, text)."""
    return write(name, "".join(json.dumps({"text": text} if label is None else {"label": label, "text": text}) + "\n" for label, text in rows))


def certify(*arguments):
    return run("certify", *arguments)


class Results(Case):
    def test_answered(self):
        """the headline is what is certified and answered; the paper's figure stands beside it"""
        text = self.ok(certify(*WITH_K, "-o", "k.jsonl"))
        summary = json.loads(self.ok(certify(*WITH_K, "-o", "k.jsonl", "--resume", "--json")))
        _, records = read_run("k.jsonl")
        certified = [r for r in records if r["certified"]]
        answered = [r for r in certified if is_answered(r)]
        self.assertTrue(0 < len(answered) < len(certified))  # else the two could be confused
        self.assertEqual((summary["certified_answered"], summary["certified_accuracy"]), (len(answered) / 100, len(certified) / 100))
        self.assertEqual((summary["stable"], summary["texts"], summary["examples"]), (len(answered) / 100, 100, 100))
        self.assertIn(f"certified and answered   {cut(len(answered) / 100)}  at the asked radius "
                      f"(95%: {outward(summary['certified_answered_interval'])})\n", text)
        self.assertIn(f"certified                {cut(len(certified) / 100)}  answered or not: the paper's figure\n", text)
        self.assertEqual(self.ok(run("verify", "k.jsonl")).splitlines()[0], f"100 records hold; {cut(len(answered) / 100)} certified and answered")
        verified = json.loads(self.ok(run("verify", "k.jsonl", "--json")))
        self.assertEqual([verified[k] for k in ("certified_answered", "certified_accuracy", "caution")],
                         [len(answered) / 100, len(certified) / 100, None])

    def test_classes(self):
        """recall, precision and answers of every class, from the records, on the terminal and in JSON"""
        text = self.ok(certify(*WITH_K, "-o", "classes.jsonl"))
        summary = json.loads(self.ok(certify(*WITH_K, "-o", "classes.jsonl", "--resume", "--json")))
        _, records = read_run("classes.jsonl")
        held = [r for r in records if r["certified"] and is_answered(r)]
        self.assertEqual([entry["label"] for entry in summary["classes"]], ["0", "1"])
        for number, entry in enumerate(summary["classes"]):
            own = [r for r in records if r["label"] == entry["label"]]
            safe = [r for r in held if r["label"] == entry["label"]]
            others = len(records) - len(own) - (len(held) - len(safe))  # of other labels, not certified and answered
            self.assertEqual((entry["texts"], entry["certified"], entry["certified_answered"]),
                             (len(own), sum(r["certified"] for r in own), len(safe)))
            self.assertEqual((entry["certified_recall"], entry["certified_precision"]), (len(safe) / len(own), len(safe) / (len(safe) + others)))
            answers = {label: sum(r["prediction"] == label and not r["abstained"] for r in own) for label in ("0", "1")}
            self.assertEqual((entry["answers"], entry["abstained"]), (answers, sum(r["abstained"] for r in own)))
            cells = [str(answers["0"]), str(answers["1"]), str(entry["abstained"])]
            cells[number] += rf" \({len(safe)}\)"
            self.assertRegex(text, rf"\n  {entry['label']} +{len(own)} +{cut(entry['certified_recall'])} +{cut(entry['certified_precision'])} +"
                             + " +".join(cells) + "\n")

    def test_many_classes(self):
        """a table of a few classes has no answers, one of very many is left to --json"""
        for count, rows, answers in ((3, 3, True), (12, 12, False), (30, 0, False)):
            labels = [f"c{i:02}" for i in range(count)]
            name = data("many.jsonl", *((label, f"good {label}") for label in labels))
            text = self.ok(certify(*WITH_WORDS, "--data", name))
            self.assertEqual(len(re.findall(r"\n  c\d\d .* 100\.00% +100\.00%", text)), rows, text)
            self.assertEqual("abstained" in text.split("words changed")[1].split("\n\n")[1], answers)
            self.assertEqual("30 classes: --json has" in text, count == 30)
            classes = json.loads(self.ok(certify(*WITH_WORDS, "--data", name, "--json")))["classes"]
            self.assertEqual([entry["label"] for entry in classes], labels)
            self.assertEqual(classes[1]["answers"], {label: int(label == "c01") for label in labels})

    def test_hostile_labels(self):
        """labels with controls, of any length and script keep the table a table"""
        rows = [(label, f"good {label}") for label in ("x" * 500, "\u00e9" * 40, "\u3042\u3044", "a\u001bb")]
        text = self.ok(certify(*WITH_WORDS, "--data", data("hostile.jsonl", *rows), "--labels", ",".join(label for label, _ in rows)))
        self.assertIn("a?b", text)
        self.assertNotIn("\x1b", text)
        self.assertIn("x" * 14 + " ", text)
        self.assertNotIn("x" * 15, text)

    def test_turned_order(self):
        """what turns the order of a line, or ends it, is not printed: in tables, answers and messages"""
        turning = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u009b"
        names = f"a{turning[:8]}", f"b{turning[8:]}"
        rows = [(label, f"good {label}") for label in names]
        labels = ("--labels", ",".join(names))
        for text in (self.ok(certify(*WITH_WORDS, "--data", data("turned.jsonl", *rows), *labels)),
                     self.ok(run("predict", *WITH_WORDS, *labels, "--quiet", *(text for _, text in rows))),
                     run("certify", *WITH_WORDS, "--data", f"none{turning}").err):
            self.assertFalse(set(turning) & set(text), ascii(text))
            self.assertIn("?", text)

    def test_stray_bytes(self):
        """a byte that is no UTF-8 may be a command to a terminal: none is printed; characters are"""
        stray = [b"\x9b31m", b"\x80\x9f", b"\xe2\x9b", b"\xc2", b"\xc0\x9b", b"\xe0\x82\x9b", b"\xf0\x80\x82\x9b", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
                 b"\xf8\x88\x80\x80\x80", b"\xff"]
        kept = "\u00e9 \u0800 \u3042 \ud7ff \U00010000 \U0010ffff"
        for bytes_ in stray:
            for arguments in (("certify", *WITH_WORDS, "--data"), ("certify", *WITH_WORDS, "--n"), ("lexicon",)):
                done = run(*arguments, f"none{os.fsdecode(bytes_)}={kept}")
                self.assertIn(done.code, (USAGE, SYSTEM), done.err)
                self.assertNotIn("\ufffd", done.err)
                self.assertIn("none?", done.err)
                self.assertIn("=" + kept, done.err)

    def test_one_text(self):
        """one is no plural"""
        text = self.ok(certify(*WITH_WORDS, "--data", data("one.jsonl", ("up", "good up")), "--labels", "up,down", "--require", "0"))
        self.assertNotRegex(text, r"\b1 texts")
        self.assertIn("of 1 text,", text)

    def test_answers(self):
        """the columns of answers say so"""
        lines = self.ok(certify(*WITH_WORDS, "--data", data("said.jsonl", ("up", "good up"), ("down", "good down")))).splitlines()
        at = next(i for i, line in enumerate(lines) if line.startswith("  label "))
        first = re.search(r"precision +\S+", lines[at]).end()
        self.assertEqual((lines[at - 1].strip(), len(lines[at - 1])), ("answered as", first))

    def test_nothing_is_rounded_up(self):
        """2 of 3 is 66.66%; lower ends of intervals are cut and upper ones rounded up"""
        name = data("thirds.jsonl", ("up", "good up"), ("up", "good down"), ("down", "good down"))
        text = self.ok(certify(*WITH_WORDS, "--data", name))
        for line in ("clean                    66.66%  ", "smoothed                 66.66%  ",
                     "certified and answered   66.66%  at the asked radius (95%: 20.76 to 93.86)"):
            self.assertIn(line, text)
        self.assertNotIn("66.67", text)
        self.assertRegex(text, r"\n  down +1 +100\.00% +50\.00% ")
        self.assertRegex(text, r"\n  up +2 +50\.00% +100\.00% ")
        result = certify(*WITH_WORDS, "--data", name, "--require", 0.66667)
        self.assertEqual((result.code, result.err), (UNMET, "safer: certified and answered: 66.66% of 3 texts, below the required 66.667%\n"))

    def test_unlabelled(self):
        """texts without a label are in no accuracy; certificates of predictions are about stability"""
        name = data("some.jsonl", ("up", "good up"), ("up", "good down"), (None, "good up"), (None, "good down"), (None, "good up"))
        summary = json.loads(self.ok(certify(*WITH_WORDS, "--data", name, "--labels", "up,down", "--json")))
        self.assertEqual([summary[k] for k in ("texts", "labelled", "unlabelled", "unlabelled_certified", "certified_accuracy",
                                               "certified_answered", "stable")], [5, 2, 3, 3, 0.5, 0.5, 0.8])
        text = self.ok(certify(*WITH_WORDS, "--data", name, "--labels", "up,down"))
        self.assertIn("\nwithout a label         3 of these, 3 certified for their prediction, in none of the figures below\n", text)
        self.assertIn("certified and answered   50.00%", text)
        wrong = ("--data", name, "--labels", "up,down", "--unlabelled")
        text = self.ok(certify(*WITH_WORDS, *wrong))
        self.assertIn("\nstable                  100.00%  at the asked radius", text)
        self.assertNotRegex(text, r"\ncertified")
        summary = json.loads(self.ok(certify(*WITH_WORDS, *wrong, "--json")))
        self.assertEqual((summary["stable"], summary["certified_accuracy"], summary["stable_at"]["all"]), (1, 0.5, 1))
        bare = ("--data", data("bare.jsonl", (None, "good up"), (None, "good down")), "--labels", "up,down")
        summary = json.loads(self.ok(certify(*WITH_WORDS, *bare, "--json", "--require", 1)))
        self.assertEqual((summary["certified_accuracy"], summary["certified_interval"], summary["certified_at"]["1"], summary["clean_accuracy"]),
                         (None, None, None, None))
        text = self.ok(certify(*WITH_WORDS, *bare))
        self.assertIn("stable", text)
        self.assertNotRegex(text, r"\n(clean|smoothed|certified)|recall")

    def test_caution(self):
        """when most certificates are empty, that is said before any figure, and no requirement is met"""
        rows = [("up", "zut up"), ("up", "zut up"), ("up", "good up"), ("down", "zut up")]
        name, said = data("french.jsonl", *rows), "most certificates are empty: in 2 of 3 certified texts the model reads no word that has a synonym"
        base = (*WITH_WORDS, "--data", name)
        text = self.ok(certify(*base, "-o", "french.run", "--model-name", "words") if "--model-name" in self.ok(certify("--help"))
                       else certify(*base, "-o", "french.run"))
        self.assertTrue(text.startswith(f"caution: {said}; the lexicon may not fit the language\n\ntexts "), text)
        summary = json.loads(self.ok(certify(*base, "--json")))
        self.assertEqual((summary["caution"], summary["empty"], next(iter(summary))), (f"{said}; the lexicon may not fit the language", 2, "caution"))
        for share in (0, 0.75):
            result = certify(*base, "--require", share, "--quiet")
            self.assertEqual(result.code, UNMET)
            self.assertTrue(result.err.startswith(f"safer: certified and answered: not met, since {said}"), result.err)
        self.assertTrue(self.ok(run("verify", "french.run")).startswith(f"caution: {said}"))
        self.assertIn(said, json.loads(self.ok(run("verify", "french.run", "--json")))["caution"])
        half = data("half.jsonl", *rows[1:])  # one of two
        self.ok(certify(*WITH_WORDS, "--data", half, "--require", 0.5))
        self.assertNotIn("caution", self.ok(certify(*WITH_WORDS, "--data", half)))

    def test_stats_caution(self):
        """lexicon stats says so too, before any figure"""
        name, said = data("french.jsonl", ("up", "zut up"), ("up", "zut"), ("up", "good up")), "in 2 of 3 texts no word has a synonym"
        text = self.ok(run("lexicon", "stats", "words.lex", "--data", name))
        self.assertTrue(text.startswith("caution: most certificates would be empty: " + said), text)
        found = json.loads(self.ok(run("lexicon", "stats", "words.lex", "--data", name, "--json")))["data"]
        self.assertEqual(found["without_synonyms"], 2)
        self.assertIn(said, found["caution"])
        fits = data("fits.jsonl", ("up", "zut up"), ("up", "good up"))
        self.assertNotIn("caution", self.ok(run("lexicon", "stats", "words.lex", "--data", fits)))
        self.assertIsNone(json.loads(self.ok(run("lexicon", "stats", "words.lex", "--data", fits, "--json")))["data"]["caution"])

    def test_few_words(self):
        """when fewer than a tenth of the words can change, that is said before any figure too; requirements still stand"""
        rows = [("down", "good up")] + [("up", "good " + " ".join(["zut"] * 9 + ["alors"]))] * 10
        name, said = data("german.jsonl", *rows), "only 11 of 112 words of these texts have a synonym; the lexicon may not fit the language"
        text = self.ok(certify(*WITH_WORDS, "--data", name, "--unlabelled"))
        self.assertTrue(text.startswith(f"caution: certificates say little: {said}\n"), text)
        summary = json.loads(self.ok(certify(*WITH_WORDS, "--data", name, "--unlabelled", "--json", "--require", 0)))
        self.assertIn(said, summary["caution"])
        found = json.loads(self.ok(run("lexicon", "stats", "words.lex", "--data", name, "--json")))["data"]
        self.assertIn(said, found["caution"])
        self.assertIn(said, run("train", "--arch", "ngram", "--data", data("two.jsonl", *rows), "--lexicon", "words.lex", "-o", "few.model").err)
        short = data("short.jsonl", *rows[:9])  # of fewer than 100 words shares are chance
        self.assertNotIn("caution", self.ok(certify(*WITH_WORDS, "--data", short, "--unlabelled")))

    def test_other_language(self):
        """a lexicon remembers how much it had of the data it was made from, and tells data of which it has much less"""
        english = "good fine nice bad poor weak film story actor scene"
        write("language.tsv", "good\tfine nice\nbad\tpoor weak\nfilm\tstory actor scene\n")
        made = data("english.jsonl", *[("up", english + " zut")] * 1000)  # 11,000 words
        must("lexicon", "import", "--table", "language.tsv", "--vocab-from", made, "--kernel", "component", "-o", "language.lex")
        said = "the lexicon has 60.0% of the words of these texts, and 90.9% of those it was made from: they may be of another language"
        other = data("other.jsonl", *[("up", "good fine film der die"), ("down", "good fine film der die")] * 20)
        text = self.ok(run("lexicon", "stats", "language.lex", "--data", other))
        self.assertTrue(text.startswith(f"caution: {said}\n"), text)
        self.assertIn(said, json.loads(self.ok(run("lexicon", "stats", "language.lex", "--data", other, "--json")))["data"]["caution"])
        result = certify("--model", "exec:python3 words.py", "--lexicon", "language.lex", "--data", other, "--unlabelled")
        self.assertEqual((result.code, result.err), (0, f"safer: caution: {said}\n"))
        self.assertNotIn("caution", result.out)
        result = certify("--model", "exec:python3 words.py", "--lexicon", "language.lex", "--data", other, "--unlabelled", "--json", "--quiet")
        self.assertEqual((result.err, json.loads(result.out)["caution"]), ("", said))
        near = data("near.jsonl", *[("up", "good fine film der"), ("down", "good fine film der")] * 20)  # three quarters of its words
        self.assertNotIn("caution", self.ok(run("lexicon", "stats", "language.lex", "--data", near)))
        result = certify("--model", "exec:python3 words.py", "--lexicon", "language.lex", "--data", near, "--unlabelled")
        self.assertEqual(result.err, "")
        small = data("small.jsonl", *[("up", english + " zut")] * 900)  # 9,900 words are too few to compare with
        must("lexicon", "import", "--table", "language.tsv", "--vocab-from", small, "--kernel", "component", "-o", "small.lex")
        self.assertNotIn("caution", self.ok(run("lexicon", "stats", "small.lex", "--data", other)))

    def test_exact(self):
        """what is exact of a remote model comes with its assumption; of a model file it does not"""
        name = data("exact.jsonl", ("up", "good up"), ("down", "good down"))
        self.assertIn("\nexact                   2 texts whose draws were all asked: no sampling error, if the model is a function of the text\n",
                      self.ok(certify(*WITH_WORDS, "--data", name)))
        text = self.ok(certify(*WITH_K[:4], "--data", data("file.jsonl", ("1", "A good film."), ("0", "A dull film."))))
        self.assertIn("no sampling error\n", text)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
