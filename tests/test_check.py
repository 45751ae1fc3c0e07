#!/usr/bin/env python3
"""The independent checker against honest runs and forgeries: test_check.py [TEST...] BUILD_DIR. Run by ctest.

Every kind of run that the program makes must hold. Then runs, lexicons and data are forged and sealed anew (a
seal is only a checksum): each lie must be found, with exit status 1 and a message that names file and line.
"""
import hashlib
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import struct
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import cut, must, read_run, seal, xxh64  # noqa: E402
from test_cli import Result, run, write  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHECKER = ROOT / "tools/check-certificates"
LINES = 600  # of the checker, at most
HOLDS, FOUND, USAGE, UNREADABLE = range(4)
EXEC = f"exec:{sys.executable} server.py"

SERVER = '''import json, sys
def classify(texts):
    """A made-up model of three classes that does not answer now and then."""
    found = []
    for text in texts:
        score = text.count("e") - text.count("a")
        found.append(None if text.count("o") % 23 == 22 else ["low", "middle", "high"][(score > 4) + (score > 12)])
    return found
def main():
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"id": request["id"], "labels": classify(request["texts"])}), flush=True)
if __name__ == "__main__":
    main()
'''

# What each run is made with: name -> (lexicon, data, options).
NGRAM = ("--model", "ngram.model")
THREE = ("--model", EXEC, "--labels", "low,middle,high", "--model-name", "made up")
RUNS = {
    "adaptive": ("topk.lex", "test.tsv", NGRAM),
    "component": ("component.lex", "test.tsv", NGRAM),
    "representative": ("representative.lex", "test.tsv", NGRAM),
    "binomial": ("topk.lex", "test.tsv", (*NGRAM, "--method", "binomial", "--n", 600)),
    "hoeffding": ("topk.lex", "test.tsv", (*NGRAM, "--method", "hoeffding", "--n", 3000)),
    "family-wise": ("topk.lex", "test.tsv", (*NGRAM, "--family-wise", "--seed", 7)),
    "radius": ("topk.lex", "test.tsv", (*NGRAM, "--radius", 3, "--delta", 0.2)),
    "unlabelled": ("topk.lex", "test.tsv", (*NGRAM, "--unlabelled")),
    "no labels": ("topk.lex", "plain.jsonl", NGRAM),
    "three": ("topk.lex", "three.tsv", (*THREE, "--n", 400)),
    "three binomial": ("topk.lex", "three.tsv", (*THREE, "--n", 200, "--method", "binomial")),
    "three exact": ("representative.lex", "three.tsv", THREE),
    "three hoeffding": ("topk.lex", "three.tsv", (*THREE, "--n", 200, "--method", "hoeffding")),
    "bow": ("topk.lex", "test.tsv", ("--model", "bow.model", "--method", "ibp")),
    "cnn": ("topk.lex", "test.tsv", ("--model", "cnn.model", "--method", "ibp")),
    "linear": ("topk.lex", "test.tsv", ("--model", "linear.model", "--method", "ibp", "--radius", 2)),
    "short": ("topk.lex", "test.tsv", ("--model", "short.model", "--n", 300)),
    "edits": ("topk.lex", "test.tsv", (*NGRAM, "--delete", 0.6, "--edits", 3, "--edit-kind", "delete")),
    "edits binomial": ("component.lex", "test.tsv", (*NGRAM, "--delete", 0.9, "--edits", 2, "--edit-kind", "insert", "--method", "binomial", "--n", 300)),
    "edits hoeffding": ("topk.lex", "test.tsv", ("--model", "short.model", "--delete", 0.75, "--radius", 3, "--method", "hoeffding", "--n", 300)),
    "edits keep": ("topk.lex", "test.tsv", (*NGRAM, "--delete", "keep:3", "--edits", 3, "--edit-kind", "delete")),
    "edits keep any": ("component.lex", "three.tsv", (*THREE, "--n", 300, "--delete", "keep:1", "--edits", 2, "--method", "binomial")),
    "edits three": ("topk.lex", "three.tsv", (*THREE, "--n", 300, "--delete", 0.5, "--edits", 4)),
    "groups": ("representative.lex", "test.tsv", (*NGRAM, "--groups", 15, "--edits", 3)),
    "groups three": ("component.lex", "three.tsv", (*THREE, "--groups", 8, "--edits", 4, "--edit-kind", "insert", "--seed", 2**63 - 1)),
    "groups folded": ("one.lex", "folded.tsv", ("--model", "short.model", "--groups", 3, "--edit-kind", "delete")),
    "folded": ("folded.lex", "folded.tsv", ("--model", "folded.model", "--n", 400)),
    "three folded": ("folded.lex", "odd.jsonl", (*THREE, "--n", 200)),
}


def make_files():
    build = pathlib.Path(test_cli.program).parent
    subprocess.run([build / "demo-reviews", test_cli.temporary / "demo"], check=True, capture_output=True)
    rows = (test_cli.temporary / "demo/test.tsv").read_text().splitlines()[:50]
    rows += ["empty\t1\t", "tab\t0\tA boring\\tfilm \\\\ BORING Film\\nand a Boring wasn\u2019t na\u00efve \u00a3 42\u00b2 \u6620\u753b."]
    rows += ["short\t1\tA wonderful film."]
    write("test.tsv", "".join(row + "\n" for row in rows))
    write("plain.jsonl", "".join(json.dumps({"text": row.split("\t")[2]}) + "\n" for row in rows[:20]))
    write("server.py", SERVER)
    names = {}
    exec(SERVER, names)
    texts = [row.split("\t") for row in rows[-3:] + rows[:37]]
    write("three.tsv", "".join(f"{key}\t{label or 'low'}\t{text}\n" for (key, _, text), label
                               in zip(texts, names["classify"]([text for *_, text in texts]))))
    for kernel, name in (("topk:5", "topk"), ("component", "component"), ("representative", "representative")):
        must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1, "--kernel", kernel,
             "-o", f"{name}.lex")
    must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1, "--kernel", "topk:5",
         "--fold", "standard,leet,spaced,repeats", "-o", "folded.lex")
    must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1, "--kernel", "representative",
         "--fold", "standard,leet,spaced,repeats", "-o", "one.lex")
    odd = ("\u0410 f\u0456lm th\u200bat w\u0430s b o r i n g", "G\u0301O\u0323\u0301OD m0vi3, soooo w\u043enderful!", "\ud55c\uad6d \u1112\u1161\u11ab \u304b\u3099")
    write("folded.tsv", "".join(f"{row}\n" for row in rows[:20]) + "".join(f"odd{i}\t1\t{text}\n" for i, text in enumerate(odd)))
    write("odd.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in odd))
    must("train", "--arch", "ngram", "--data", "demo/train.tsv", "--lexicon", "folded.lex", "--quiet", "--bits", 14, "-o", "folded.model")
    common = ("--data", "demo/train.tsv", "--lexicon", "topk.lex", "--quiet")
    must("train", "--arch", "ngram", *common, "--bits", 14, "-o", "ngram.model")
    small = ("--dim", 8, "--hidden", 8, "--epochs", 1)
    must("train", "--arch", "bow", "--defense", "ibp-jia", *common, *small, "-o", "bow.model")
    must("train", "--arch", "cnn", "--defense", "ibp-jia", *common, *small, "--filters", 8, "-o", "cnn.model")
    must("train", "--arch", "bow", *common, "--dim", 8, "--hidden", 0, "--epochs", 2, "-o", "linear.model")
    must("train", "--arch", "cnn", *common, "--dim", 8, "--filters", 8, "--epochs", 1, "--max-words", 20, "-o", "short.model")
    for name, (lexicon, data, options) in RUNS.items():
        must("certify", "--lexicon", lexicon, "--data", data, *options, "-o", f"{name}.jsonl", "--quiet")


def check(name, lexicon, data, *more):
    done = subprocess.run([sys.executable, CHECKER, name, "--lexicon", lexicon, "--data", data, *map(str, more)], cwd=test_cli.temporary,
                          capture_output=True, text=True, timeout=300)
    return Result(done.returncode, done.stdout, done.stderr)


def section(image, number):
    """Where a section of a .lex file lies."""
    return struct.unpack_from("<2Q", image, 48 + 16 * (number - 1))


def resealed(image):
    return bytes(image[:-8]) + struct.pack("<Q", xxh64(bytes(image[:-8])))


def module():
    loader = importlib.machinery.SourceFileLoader("check_certificates", str(CHECKER))
    made = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_certificates", loader))
    loader.exec_module(made)
    return made


# Forgeries of records: name -> (run, which record, what is changed, words of the message).
def which(test):
    return lambda records: next(i for i, r in enumerate(records) if test(r))


def between(r):
    return r["radius"] not in ("0", "all")


def put(**members):
    return lambda r: r.update(members)


def move_votes(r):
    """Votes of another class become the target's."""
    other = next(k for k, v in r["counts"].items() if k != r["target"] and v)
    r["counts"][r["target"]] += r["counts"].pop(other)
    r["counts"][other] = 0


sampled_win = which(lambda r: not r["exact"] and r["certified"] and r["n"])
sampled_loss = which(lambda r: not r["exact"] and r["radius"] == "0" and r["n"])
limited = which(lambda r: r["radius"] not in ("0", "all"))
answered = which(lambda r: not r["exact"] and not r["abstained"])
costly = which(lambda r: r["q_at"][0] > 0)
RECORDS = {
    "certified": ("adaptive", sampled_loss, put(certified=True), '"certified" does not follow'),
    "not certified": ("adaptive", sampled_win, put(certified=False), '"certified" does not follow'),
    "radius all": ("adaptive", limited, lambda r: r.update(radius="all", certified=True, q_radius=r["q"], q_next=r["q"]), "do not certify"),
    "radius": ("adaptive", limited, lambda r: r.update(radius=str(int(r["radius"]) + 1)), "do not certify"),
    "radius less": ("component", sampled_win, put(radius="0", certified=False), "certify a larger radius"),
    "radius beyond": ("component", sampled_win, put(radius="3", certified=False), "an overlap below 1"),
    "radius of a loss": ("adaptive", sampled_loss, put(radius="all", certified=True), "do not certify"),
    "bound": ("adaptive", sampled_win, lambda r: r.update(bound=r["bound"] + 1e-12), "more than the counts grant"),
    "bound less": ("adaptive", sampled_win, lambda r: r.update(bound=r["bound"] - 1e-8), "they grant more"),
    "bound of a loss": ("adaptive", sampled_loss, put(bound=0.75), "more than the counts grant"),
    "binomial bound": ("binomial", sampled_win, lambda r: r.update(bound=r["bound"] + 1e-11), "more than the counts grant"),
    "binomial radius": ("binomial", sampled_loss, put(radius="1"), "do not certify"),
    "hoeffding bound": ("hoeffding", sampled_win, lambda r: r.update(bound=r["bound"] + 1e-14), "does not follow from the counts"),
    "hoeffding radius": ("hoeffding", which(lambda r: r["radius"] == "0"), put(radius="all", certified=True), "do not certify"),
    "exact bound": ("representative", which(lambda r: r["bound"] < 1), put(bound=1.0), "does not follow from the counts"),
    "exact weights": ("representative", which(lambda r: r["bound"] == 0), lambda r: r["weights"].update({k: "1" if k == r["target"] else "0" for k in r["weights"]}), "bound"),
    "exact total": ("representative", which(lambda r: r["slots"] > 2), lambda r: r.update(total="2", weights={k: "2" if v == "1" else v for k, v in r["weights"].items()}), "a total of 1"),
    "exact abstention": ("representative", which(lambda r: True), put(abstained=True), "from the weights"),
    "asked once": ("three exact", which(lambda r: True), put(queries=1), "2 queries and a total of 1"),
    "nothing assumed": ("three exact", which(lambda r: True), lambda r: r.pop("assumes"), '"assumes" is missing'),
    "less assumed": ("three exact", which(lambda r: True), put(assumes=[]), '"assumes" cannot be []'),
    "assumed of nothing": ("three exact", which(lambda r: True), put(assumes=None), '"assumes" cannot be null'),
    "assumed of a file": ("representative", which(lambda r: True), put(assumes=["the model is a function of the text"]), '"assumes" is unknown'),
    "prediction": ("adaptive", answered, lambda r: r.update(prediction="10"[int(r["prediction"])]), "has most votes"),
    "abstained": ("adaptive", answered, put(abstained=True), "abstained does not follow from the vote"),
    "answered": ("adaptive", answered, lambda r: r["vote"]["counts"].update({k: v - (k == r["prediction"]) for k, v in r["vote"]["counts"].items()}) or r["vote"].update(n=r["vote"]["n"] - 1) or r.update(queries=r["queries"] - 1), "abstained does not follow from the vote"),
    "no vote": ("adaptive", answered, lambda r: r["vote"].update(n=0, counts={k: 0 for k in r["counts"]}) or r.update(abstained=True), "the vote does not add up"),
    "vote of more": ("adaptive", answered, lambda r: r["vote"].update(n=r["vote"]["n"] + 1), "the vote does not add up"),
    "vote with more": ("adaptive", answered, lambda r: r["vote"].update(draws=1), '"draws" is unknown'),
    "vote for a stranger": ("adaptive", answered, lambda r: r["vote"]["counts"].update(x=1), "not a number for every label"),
    "three radius": ("three", which(lambda r: not r["exact"] and r["radius"] == "0"), put(radius="1"), "do not certify"),
    "three bound": ("three", sampled_win, lambda r: r.update(bound=r["bound"] + 1e-11), "more than the counts grant"),
    "three exactly": ("three", which(lambda r: not r["exact"]), put(exact=True), '"weights" is missing'),
    "counts": ("adaptive", which(lambda r: not r["exact"] and sum(v > 0 for v in r["counts"].values()) > 1), move_votes, "they grant more"),
    "counts that do not add up": ("adaptive", sampled_win, lambda r: r["counts"].update({r["target"]: r["n"] + 1}), "do not add up"),
    "n": ("adaptive", sampled_win, lambda r: r.update(n=r["n"] + 1), "do not add up"),
    "queries": ("adaptive", sampled_win, put(queries=1), "n or queries"),
    "q": ("adaptive", costly, put(q=0.0), "q is 0.0"),
    "q_at": ("adaptive", costly, lambda r: r["q_at"].__setitem__(0, r["q_at"][0] - 1e-12), "q_at is"),
    "q_at more": ("adaptive", costly, lambda r: r["q_at"].__setitem__(0, r["q_at"][0] + 1e-8), "q_at is"),
    "q_at falls": ("adaptive", which(lambda r: r["q_at"][:2] == [0.0, 0.0]), lambda r: r["q_at"].__setitem__(0, 1e-10), "q falls"),
    "q_radius": ("adaptive", limited, lambda r: r.update(q_radius=r["q_radius"] / 2), "q_radius is"),
    "q_next": ("adaptive", limited, lambda r: r.update(q_next=r["q_radius"]), "q_next is"),
    "edits": ("edits", which(lambda r: 0 < r["edits"] < 3), lambda r: r.update(edits=r["edits"] + 1), "do not certify '1' against"),
    "fewer edits": ("edits", which(lambda r: r["edits"] and r["label"] == "1"), lambda r: r.update(edits=r["edits"] - 1, certified=False), "more edits are"),
    "edits keep": ("edits keep", which(lambda r: r["edits"] < 3), lambda r: r.update(edits=r["edits"] + 1), "do not certify '"),
    "rate": ("edits keep", which(lambda r: r["q_edits"][1] > r["q_edits"][0]), lambda r: r["q_edits"].__setitem__(1, r["q_edits"][1] - 1e-6), "q_edits is"),
    "too many edits": ("edits", which(lambda r: True), put(edits=4), "against 4 edits"),
    "certified edits": ("edits", which(lambda r: r["radius"] == "all" and r["edits"] < 3), put(certified=True), '"certified" does not follow'),
    "q_edits": ("edits", costly, lambda r: r["q_edits"].__setitem__(2, r["q_edits"][2] - 1e-12), "q_edits is"),
    "q_edits more": ("edits binomial", which(lambda r: True), lambda r: r["q_edits"].__setitem__(1, r["q_edits"][1] + 1e-8), "q_edits is"),
    "q_edits fewer": ("edits", costly, lambda r: r["q_edits"].pop(), "q_edits is"),
    "tokens": ("edits", costly, lambda r: r.update(tokens=r["tokens"] + 1), "tokens"),
    "visible under deletion": ("edits hoeffding", costly, put(visible=0), "sees all of them"),
    "edits without deletion": ("adaptive", sampled_win, put(edits=1), '"edits" is unknown'),
    "edits of groups": ("groups", which(lambda r: r["edits"] < 3), lambda r: r.update(edits=r["edits"] + 1), "against"),
    "fewer edits of groups": ("groups", which(lambda r: r["edits"]), lambda r: r.update(edits=r["edits"] - 1), "more edits are"),
    "cheaper edits of groups": ("groups", which(lambda r: True), lambda r: r.update(q_edits=[q / 2 for q in r["q_edits"]]), "q_edits is"),
    "more groups": ("groups", which(lambda r: True), lambda r: r.update(total="16", weights={k: str(int(v) + (k == r["target"])) for k, v in r["weights"].items()}), "a total of 15"),
    "groups asked twice": ("groups three", which(lambda r: True), lambda r: r.update(queries=2 * r["queries"]), "an exact record of this text has"),
    "sampled groups": ("groups", which(lambda r: True), put(exact=False), '"exact" cannot be false'),
    "tokens of groups": ("groups folded", which(lambda r: True), lambda r: r.update(tokens=r["tokens"] + 1), "tokens"),
    "no tie of groups": ("groups", which(lambda r: not r["abstained"]), put(abstained=True), "from the weights"),
    "words": ("adaptive", sampled_win, lambda r: r.update(words=r["words"] + 1), "words and"),
    "slots": ("adaptive", sampled_win, lambda r: r.update(slots=r["slots"] - 1, visible=r["visible"] - 1), "slots, but the text has"),
    "visible": ("adaptive", costly, put(visible=0), "sees all of them"),
    "id": ("adaptive", sampled_win, put(id="test-99999"), "test-99999"),
    "label": ("adaptive", sampled_win, lambda r: r.update(label="10"[int(r["label"])]), "of the data has"),
    "target": ("adaptive", sampled_loss, lambda r: r.update(target="10"[int(r["target"])]), "not the class to certify"),
    "target of a prediction": ("unlabelled", sampled_win, lambda r: r.update(prediction="10"[int(r["prediction"])]), "not the class to certify"),
    "unknown class": ("adaptive", sampled_win, put(base="2"), "that is no label"),
    "no answer of a file": ("adaptive", sampled_win, put(base=None), '"base" cannot be null'),
    "unknown member": ("adaptive", sampled_win, put(answered=True), '"answered" is unknown'),
    "date of a record": ("adaptive", sampled_win, put(date="2026-01-01T00:00:00Z"), '"date" is unknown'),
    "missing member": ("adaptive", sampled_win, lambda r: r.pop("q_next"), '"q_next" is missing'),
    "a number for a string": ("adaptive", limited, lambda r: r.update(radius=int(r["radius"])), '"radius" cannot be'),
    "a whole number for a real one": ("component", sampled_win, put(q=0), '"q" cannot be 0'),
    "a string for a number": ("adaptive", sampled_win, put(bound="1"), '"bound" cannot be "1"'),
    "margins": ("bow", which(lambda r: not r["certified"]), put(certified=True, radius="all"), "the margins say"),
    "better margins": ("bow", which(lambda r: not r["certified"] and r["base"] != r["target"]),
                       lambda r: r.update(certified=True, radius="all", margins={k: 1.0 for k in r["margins"]}), "contradict the margins"),
    "margin of the next": ("linear", which(between), lambda r: r.update(margin_next=r["margin_radius"]), "the margins say"),
    "margin of the radius": ("linear", which(between), lambda r: r.update(margin_radius=r["margin_next"]), "the margins say"),
    "a radius more": ("linear", which(lambda r: r["radius"] in ("1", "4", "9")), lambda r: r.update(radius=str(int(r["radius"]) + 1)), "the margins say"),
    "a radius fewer": ("linear", which(lambda r: r["radius"] in ("1", "2", "5")), lambda r: r.update(radius=str(int(r["radius"]) - 1)), "the margins say"),
    "margins that rise": ("linear", which(between), lambda r: r["margin_at"].reverse(), "the margins say"),
    "the last margin": ("linear", which(between), lambda r: r["margin_at"].append(r["margin_at"].pop() - 1.0), "the margins say"),
    "another decision": ("linear", which(between), lambda r: r.update(certified=not r["certified"]), "the margins say"),
    "no curve": ("linear", which(between), lambda r: r.pop("margin_at"), '"margin_at" is missing'),
}


class Honest(unittest.TestCase):
    def test_runs(self):
        """every kind of run holds, with the program's own figures"""
        for name, (lexicon, data, _) in RUNS.items():
            with self.subTest(name):
                done = check(f"{name}.jsonl", lexicon, data)
                self.assertEqual((done.code, done.err), (HOLDS, ""), done)
                result = run("verify", f"{name}.jsonl", "--json")
                self.assertEqual(result.code, 0, result)
                config, records = read_run(f"{name}.jsonl")
                held = [r for r in records if r["radius"] == "all"]
                of = [r for r in records if r["label"] is not None] or records
                stable = config["unlabelled"] or of[0]["label"] is None  # right or not, and not said to be right
                self.assertEqual([name in done.out for name in ("certified and answered", "stable")], [not stable, stable])
                answers = [r for r in held if not r["abstained"] and r["prediction"] == r["target"]]
                shares = [f"{part * 10000 // len(of) / 100:.2f}%" for part in (len(answers), len(held))]
                self.assertIn(shares, [line.split()[1:] for line in done.out.splitlines() if line.split()[0] == "all"])
                self.assertIn("\nnot checked: the model's answers", done.out)
        self.assertIn("where the model stops reading, in", check("short.jsonl", "topk.lex", "test.tsv").out)
        self.assertIn("; the margins;", check("bow.jsonl", "topk.lex", "test.tsv").out)

    def test_kinds(self):
        """the honest runs have what the checker looks at: radii between, losses, costly words, unseen slots, no answers"""
        records = {name: read_run(f"{name}.jsonl")[1] for name in RUNS}
        for choose in (limited, sampled_win, sampled_loss, costly):
            choose(records["adaptive"])
        which(lambda r: r["exact"] and r["slots"])(records["adaptive"])
        which(lambda r: r["visible"] < r["slots"])(records["short"])
        which(lambda r: not r["exact"] and sum(r["counts"].values()) < r["n"])(records["three"])

    def test_one(self):
        """a run of one text: 1 record, 1 text; and 1 fault"""
        must("certify", *THREE, "--lexicon", "topk.lex", "--data", "three.tsv", "--limit", 1, "--n", 50, "-o", "one.jsonl", "--quiet")
        done = check("one.jsonl", "topk.lex", "three.tsv", "--limit", 1)
        self.assertEqual(done.code, HOLDS, done)
        self.assertTrue(done.out.startswith("1 record holds\n"), done.out)
        self.assertIn("\nnot checked: the model's answers for 1 text;", done.out)
        lines = (test_cli.temporary / "three.tsv").read_text().splitlines(keepends=True)
        write("altered.tsv", lines[0].replace("\n", " !\n") + "".join(lines[1:]))
        done = check("one.jsonl", "topk.lex", "altered.tsv", "--limit", 1)
        self.assertEqual((done.code, done.out.count("\n")), (FOUND, 2), done)
        self.assertTrue(done.out.endswith("\n1 fault: the run does not hold\n"), done.out)

    def test_long(self):
        """a text with more draws than Python likes to write out: 2^32 ways or more for each of 600 tokens"""
        write("long.tsv", "a\t1\t" + "A good film. " * 150 + "\n")
        must("certify", *NGRAM, "--lexicon", "topk.lex", "--data", "long.tsv", "--delete", 0.9, "--n", 50, "-o", "long.jsonl", "--quiet")
        done = check("long.jsonl", "topk.lex", "long.tsv")
        self.assertEqual((done.code, done.err), (HOLDS, ""), done)

    def test_model(self):
        """with the model, the draws are made and asked again: the same counts; with another model, other counts"""
        for model in (EXEC, "server:classify"):
            done = check("three.jsonl", "topk.lex", "three.tsv", "--model", model, "--texts", 12)
            self.assertEqual((done.code, done.err), (HOLDS, ""), done)
            self.assertIn("the model's answers for 28 texts", done.out)
        for name, lexicon in (("edits three", "topk.lex"), ("groups three", "component.lex")):
            done = check(f"{name}.jsonl", lexicon, "three.tsv", "--model", "server:classify", "--texts", 12)
            self.assertEqual((done.code, done.err), (HOLDS, ""), done)
        write("other.py", SERVER.replace("score > 4", "score > 5"))
        done = check("three.jsonl", "topk.lex", "three.tsv", "--model", "other:classify", "--texts", 12)
        self.assertEqual(done.code, FOUND)
        self.assertRegex(done.out, r"three.jsonl, line \d+: the model gives the counts")

    def test_numbers(self):
        """an answer that is a number: a name where all names are whole numbers, else the number of a class"""
        write("mixed.tsv", "".join(f"{i}\t{['1', 'pos'][i % 2]}\tA good film, number {'e' * i}.\n" for i in range(6)))
        write("counting.py", SERVER.replace('["low", "middle", "high"][(score > 4) + (score > 12)]', "int(score > 4)"))
        must("certify", "--model", EXEC.replace("server.py", "counting.py"), "--model-name", "numbers", "--labels", "1,pos", "--lexicon", "topk.lex",
             "--data", "mixed.tsv", "-o", "mixed.jsonl", "--quiet")
        done = check("mixed.jsonl", "topk.lex", "mixed.tsv", "--model", "counting:classify")
        self.assertEqual((done.code, done.err), (HOLDS, ""), done)

    def test_claim(self):
        """beside the shares stands what they are claimed with, in the words of safer verify"""
        for name in ("adaptive", "radius", "family-wise", "bow", "three"):
            lexicon, data, _ = RUNS[name]
            said = re.search("^claimed: .*$", run("verify", f"{name}.jsonl").out, re.M)
            self.assertIn("\n" + said[0] + "\n", check(f"{name}.jsonl", lexicon, data).out)

    def test_part(self):
        """rows chosen by --sample every:N and --limit, and packed data"""
        (test_cli.temporary / "packed.tsv.xz").write_bytes(__import__("lzma").compress((test_cli.temporary / "test.tsv").read_bytes()))
        must("certify", "--lexicon", "topk.lex", "--data", "test.tsv", *NGRAM, "--sample", "every:3", "--limit", 10, "-o", "part.jsonl", "--quiet")
        done = check("part.jsonl", "topk.lex", "packed.tsv.xz", "--sample", "every:3", "--limit", 10)
        self.assertEqual((done.code, done.err), (HOLDS, ""), done)
        self.assertEqual(check("part.jsonl", "topk.lex", "packed.tsv.xz", "--limit", 10).code, FOUND)

    def test_draws(self):
        """the draws are those of safer sample, with any seed, stage and number"""
        own = module()
        texts = ["A wonderful film.", "The BORING plot wasn\u2019t a Good movie: dull, DULL, Dull; bad phone & fine story.",
                 "\u6620\u753b Stra\u00dfe na\u00efve \u03a3\u039f\u03a6\u039f\u03a3 good\u0301 iPhone I \u00b2film", ""]
        for name in ("topk.lex", "component.lex"):
            lexicon = own.Lexicon(str(test_cli.temporary / name))
            for stage, number in (("selection", 1), ("certification", 2)):
                for seed, first in ((1, 0), (0, 7), (2**63 - 1, 2**32 - 2)):
                    share = {0: 0, 7: 0.5}.get(first, 0.9 if stage == "selection" else "keep:2")
                    done = run("sample", "--lexicon", name, "--seed", seed, "--stage", stage, "--first", first, "--count", 4, "--delete", share, "--json", *texts)
                    self.assertEqual(done.code, 0, done)
                    drawn = [entry["text"] for entry in json.loads(done.out)]
                    mine = []
                    for text in texts:
                        key = own.stream(seed, own.xxh64(text.encode()), number)
                        rule = {"delete": share if type(share) is str else round(share * 2**32) / 2**32} if share else {}
                        mine += [own.Text(text, lexicon, rule).draw(key, i) for i in range(first, first + 4)]
                    self.assertEqual(mine, drawn)
        for seed in (0, 1, 2**63 - 1):
            done = run("sample", "--lexicon", "component.lex", "--seed", seed, "--groups", 5, "--json", *texts)
            self.assertEqual(done.code, 0, done)
            mine = [own.Text(text, lexicon, {"groups": 5, "seed": seed}) for text in texts]
            mine = [text.written([0] * len(text.slots), text.parts.get(group, [])) for text in mine for group in range(5)]
            self.assertEqual(mine, [entry["text"] for entry in json.loads(done.out)])

    def test_vectors(self):
        """the test vectors of docs/check.md"""
        own, page = module(), (ROOT / "docs/check.md").read_text()
        self.assertEqual(f"{own.xxh64(b''):016x} {own.xxh64(b'abc'):016x}", "ef46db3751d8e999 44bc2cf5ad770999")
        self.assertEqual(own.philox((0, 0, 0, 0), (0, 0)), (0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8))
        key = own.stream(1, own.xxh64(b"A fine film."), 2)
        self.assertIn(f"{own.xxh64(b'A fine film.'):016x}", page)
        half, most = own.Fraction(1, 2), own.Fraction(3, 4)
        for value in (own.mixture(half, 10, 10), own.mixture(most, 90, 100), own.bets(half, 10, 0, 0), own.bets(most, 90, 6, 4),
                      own.binomial_tail(most, 90, 100)):
            self.assertIn(f"{value:.40f}"[:16], page)
        for first, second in re.findall(r"^\| (\d+), (\d+) \| ", page, re.M):
            value = re.search(rf"^\| {first}, {second} \| ([0-9.]+)", page, re.M)[1]
            for factor, clear in ((1, True), (1 + 1e-10, False)):  # (K-1)/alpha is just reached, and just missed
                self.assertEqual(own.is_clear(int(first), int(second), 2, 1 / own.Fraction(value) / own.Fraction(factor))[0], clear)
        self.assertIn(f"{key[0]:08x} {key[1]:08x}", page)
        self.assertIn(" ".join(f"{word:08x}" for word in own.philox((0, 0, 0, 0), key)), page)

    def test_size(self):
        """the checker stays small and needs nothing but Python's own library"""
        lines = CHECKER.read_text().splitlines()
        self.assertLessEqual(len(lines), LINES)
        self.assertLessEqual(max(map(len, lines)), 120)
        used = set(re.findall(r"^(?:import|from) (\w+)", CHECKER.read_text(), re.M))
        self.assertLessEqual(used, set(sys.stdlib_module_names) if hasattr(sys, "stdlib_module_names") else used)


class Forged(unittest.TestCase):
    def found(self, done, *parts):
        self.assertEqual((done.code, done.err), (FOUND, ""), done)
        for part in parts:
            self.assertIn(part, done.out)

    def test_records(self):
        """a changed member of a record, sealed anew"""
        for name, (source, choose, change, words) in RECORDS.items():
            with self.subTest(name):
                config, records = read_run(f"{source}.jsonl")
                at = choose(records)
                change(records[at])
                write("forged.jsonl", seal(config, records))
                lexicon, data, _ = RUNS[source]
                done = check("forged.jsonl", lexicon, data)
                self.found(done, words)
                self.assertTrue(all(line.startswith(f"forged.jsonl, line {at + 2}: ") for line in done.out.splitlines()[:-1]), done.out)

    def test_seals(self):
        """a changed byte without a new seal; members outside of the seal"""
        lines = (test_cli.temporary / "adaptive.jsonl").read_text().splitlines(keepends=True)
        for old, new in (('"abstained":false', '"abstained":true'), (',"check"', ',"extra":1,"check"'), (',"seconds"', ',"date":"2026-01-01T00:00:00Z","seconds"')):
            write("forged.jsonl", "".join([*lines[:4], lines[4].replace(old, new), *lines[5:]]))
            self.found(check("forged.jsonl", "topk.lex", "test.tsv"), "forged.jsonl, line 5: the seal does not match")
        write("forged.jsonl", "".join([lines[0].replace('"n0":5000', '"n0":5001'), *lines[1:]]))
        self.found(check("forged.jsonl", "topk.lex", "test.tsv"), "forged.jsonl, line 1: the seal does not match")

    def test_large_counts(self):
        """counts of ten digits are refused, not computed with for ever"""
        config, records = read_run("adaptive.jsonl")
        at = next(i for i, r in enumerate(records) if not r["exact"])
        for n0, words in ((5000, "the vote does not add up"), (10**10, '"n0" cannot be')):
            vote = {"n": 10**10, "counts": {label: 10**10 // 2 for label in records[at]["vote"]["counts"]}}
            write("forged.jsonl", seal({**config, "n0": n0}, [{**r, "vote": vote} if i == at else r for i, r in enumerate(records)]))
            self.found(check("forged.jsonl", "topk.lex", "test.tsv"), words)

    def test_rows(self):
        """rows swapped, missing, doubled, at the end and inside, with and without new numbers"""
        config, records = read_run("adaptive.jsonl")
        forms = {"swapped": [*records[:3], records[4], records[3], *records[5:]], "missing": records[:6] + records[7:],
                 "doubled": records[:8] + records[7:], "cut": records[:-1], "longer": records + records[-1:]}
        for name, rows in forms.items():
            for renumber in (False, True):
                with self.subTest(f"{name} {renumber}"):
                    rows = [{**r, "row": i} if renumber else r for i, r in enumerate(rows, 1)]
                    write("forged.jsonl", seal(config, rows))
                    expected = {"swapped": "line 5: ", "missing": "line 8: ", "doubled": "line 10: ", "cut": f"{len(records) - 1} records of {len(records)}",
                                "longer": f"line {len(records) + 2}: "}[name]
                    self.found(check("forged.jsonl", "topk.lex", "test.tsv"), expected)

    def test_config(self):
        """a changed configuration"""
        def changed(source, words, **members):
            config, records = read_run(f"{source}.jsonl")
            write("forged.jsonl", seal({**config, **members}, records))
            self.found(check("forged.jsonl", *RUNS[source][:2]), "forged.jsonl, line", words)
        changed("adaptive", "line 1: delta_text does not follow", delta=0.001)
        changed("adaptive", "more than the counts grant", delta=0.001, delta_text=0.001)
        changed("adaptive", "they grant more", delta=0.02, delta_text=0.02)
        changed("family-wise", "line 1: delta_text does not follow", family_wise=False)
        changed("adaptive", "bound", method="hoeffding")
        changed("adaptive", "\"alpha\" cannot be 1.5", alpha=1.5)
        changed("adaptive", "exceeds n0", n0=5)
        changed("adaptive", "abstained does not follow", alpha=1e-300)
        changed("adaptive", '"certified" does not follow', radius="1")
        changed("adaptive", '"radius" cannot be "0"', radius="0")
        changed("adaptive", "not the class to certify", unlabelled=True)
        changed("adaptive", '"radii" cannot be', radii=["1", "2", "3", "4", "5", "all"])
        changed("adaptive", '"radii" cannot be null', radii=None)
        changed("adaptive", '"format" cannot be 2.0', format=2.0)
        changed("adaptive", '"seed" cannot be 18446744073709551616', seed=2**64)
        changed("adaptive", '"proof" is unknown', proof="sound")
        changed("adaptive", '"seconds" is unknown', seconds=1.0)
        config, _ = read_run("adaptive.jsonl")
        changed("adaptive", "line 1: this lexicon is another", lexicon={**config["lexicon"], "sha256": "0" * 64})
        changed("adaptive", "line 1: this lexicon is another", lexicon={**config["lexicon"], "kernel": "topk:9"})
        changed("adaptive", "line 1: these data are others", data={**config["data"], "sha256": "0" * 64})
        changed("adaptive", "line 1: these data are others", data={**config["data"], "texts": 52})
        changed("adaptive", '"hash" is unknown', data={**config["data"], "hash": "0" * 16})
        changed("adaptive", '"arithmetic" is missing', model={k: v for k, v in config["model"].items() if k != "arithmetic"})
        for arch in ("all", "", "ngram ", "exec|http"):
            changed("short", '"arch" cannot be', model={**read_run("short.jsonl")[0]["model"], "arch": arch})
        changed("adaptive", '"random" is unknown', model={**config["model"], "random": True})
        changed("three", "do not add up", model=config["model"])
        changed("three", '"probe" is missing', model={"name": "made up", "arch": "exec"})
        changed("three", '"random" cannot be false', model={"name": "made up", "arch": "exec", "random": False})
        changed("groups", "q_edits is", groups=16)
        changed("groups", '"groups" cannot be 0', groups=0)
        changed("groups", '"groups" cannot be 15.0', groups=15.0)
        changed("groups", "q_edits is", edit_kind="insert")
        changed("groups three", "an exact record of this text has", seed=1)
        changed("groups", '"n" is missing', method="adaptive")
        changed("groups", '"n" is unknown', n=100)
        changed("three exact", "is never exact", model={"name": "made up", "arch": "exec", "random": True})

    def forge_lexicon(self, change, *parts):
        """A lexicon changed in its bytes, its checksum new, and a run whose configuration names it."""
        image = bytearray((test_cli.temporary / "topk.lex").read_bytes())
        change(image)
        write("forged.lex", resealed(image))
        config, records = read_run("adaptive.jsonl")
        config["lexicon"]["sha256"] = hashlib.sha256(resealed(image)).hexdigest()
        write("forged.jsonl", seal(config, records))
        self.found(check("forged.jsonl", "forged.lex", "test.tsv"), *parts)

    def test_lexicon(self):
        """overlaps, weights, totals, synonyms and words forged, with a checksum that fits"""
        def overlap(image):
            at, size = section(image, 14)
            values = struct.unpack_from(f"<{size // 8}d", image, at)
            struct.pack_into("<d", image, at + 8 * next(i for i, s in enumerate(values) if s < 1), 1.0)

        def weight(image, with_total=False):
            offsets, weights, totals = (section(image, number)[0] for number in (10, 12, 13))
            row = next(r for r in range(struct.unpack_from("<I", image, 28)[0])
                       if struct.unpack_from("<Q", image, offsets + 8 * r + 8)[0] - struct.unpack_from("<Q", image, offsets + 8 * r)[0] == 5)
            struct.pack_into("<I", image, weights + 4 * struct.unpack_from("<Q", image, offsets + 8 * row)[0], 9)
            if with_total:
                struct.pack_into("<I", image, totals + 4 * row, 13)

        def synonym(image):
            """one pair is listed one way only: another word takes its place"""
            at, size = section(image, 6)
            first, = struct.unpack_from("<I", image, at)
            struct.pack_into("<I", image, at, first + 1 if size > 4 else first)

        def spelling(image):
            at, _ = section(image, 1)
            image[at] = ord("0")

        self.forge_lexicon(overlap, "forged.lex, word ", "but the kernel gives")
        self.forge_lexicon(weight, "forged.lex, kernel row ", "sum to 5")
        self.forge_lexicon(lambda image: weight(image, True), "forged.lex, word ", "but the kernel gives")
        self.forge_lexicon(synonym, "forged.lex, word ")
        self.forge_lexicon(spelling, "forged.lex, word ", "do not read back")
        self.found(check("adaptive.jsonl", "component.lex", "test.tsv"), "adaptive.jsonl, line 1: this lexicon is another")

    def test_data(self):
        """a changed text, label or order, with and without the hash of the data forged"""
        lines = (test_cli.temporary / "test.tsv").read_text().splitlines(keepends=True)
        own, (config, records) = module(), read_run("adaptive.jsonl")
        words = lines[2].split(" ")
        for changed in (" ".join(words[:-2]) + "\n", lines[2].replace("\t1\t", "\t0\t") if "\t1\t" in lines[2] else lines[2].replace("\t0\t", "\t1\t")):
            write("forged.tsv", "".join([*lines[:2], changed, *lines[3:]]))
            self.found(check("adaptive.jsonl", "topk.lex", "forged.tsv"), "adaptive.jsonl, line 1: these data are others", "adaptive.jsonl, line 4: ")
            rows = own.load_data(str(test_cli.temporary / "forged.tsv"), 1, 0)
            config["data"]["sha256"] = own.digest_of_data(rows)
            write("forged.jsonl", seal(config, records))
            self.found(check("forged.jsonl", "topk.lex", "forged.tsv"), "forged.jsonl, line 4: ")

    def test_unreadable(self):
        """what cannot be read is exit status 3, what was not asked rightly 2; nothing is printed as a result"""
        whole = (test_cli.temporary / "adaptive.jsonl").read_bytes()
        write("cut.jsonl", whole[:-9])
        write("none.jsonl", b"")
        write("text.jsonl", b"certified\n")
        write("later.jsonl", seal({"format": 3}, []))
        write("cut.lex", (test_cli.temporary / "topk.lex").read_bytes()[:-9])
        write("damaged.lex", (test_cli.temporary / "topk.lex").read_bytes().replace(b"boring", b"borinG", 1))
        hidden = bytearray((test_cli.temporary / "topk.lex").read_bytes())
        at, size = section(hidden, 5)
        struct.pack_into("<Q", hidden, at + 16, 0)  # the synonyms of a word vanish: offsets that fall
        write("hidden.lex", resealed(hidden))
        write("bad.tsv", "1\tpos\tC:\\path\n")
        for arguments in (("cut.jsonl", "topk.lex", "test.tsv"), ("none.jsonl", "topk.lex", "test.tsv"), ("text.jsonl", "topk.lex", "test.tsv"),
                          ("later.jsonl", "topk.lex", "test.tsv"), ("adaptive.jsonl", "cut.lex", "test.tsv"), ("adaptive.jsonl", "damaged.lex", "test.tsv"),
                          ("adaptive.jsonl", "hidden.lex", "test.tsv"),
                          ("adaptive.jsonl", "topk.lex", "bad.tsv"), ("adaptive.jsonl", "absent.lex", "test.tsv"),
                          ("adaptive.jsonl", "topk.lex", "test.tsv", "--model", "exec:true"), ("adaptive.jsonl", "topk.lex", "test.tsv", "--model", "absent:f")):
            done = check(*arguments)
            self.assertEqual((done.code, done.out), (UNREADABLE, ""), (arguments, done))
            self.assertEqual(done.err.count("\n"), 1, done)
        self.assertEqual(check("adaptive.jsonl", "topk.lex", "test.tsv", "--sample", "some").code, USAGE)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
