#!/usr/bin/env python3
"""Trains, certifies, verifies and predicts as a person would:
test_cli_certify.py [TEST...] BUILD_DIR. Run by ctest.

Decisions are recomputed here from the records: exact and Hoeffding ones with fractions,
the others by summing or integrating what docs/certify.md says.
"""
import collections
import fractions
import functools
import json
import math
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import UNMET, counts_of, cut, must, reaches, read_run, without_times  # noqa: E402
from test_cli import DONE, INPUT, INTERRUPTED, SYSTEM, USAGE, Case, Result, exists, run, write  # noqa: E402

VERBS = ("train", "certify", "predict", "verify", "sweep")
METHODS = ("adaptive", "binomial", "hoeffding")
RADII = ("1", "2", "5", "10", "20", "all")
ROOT = pathlib.Path(__file__).resolve().parent.parent
WITH_K = ("--model", "k.model", "--lexicon", "k.lex")
WITH_C = ("--model", "c.model", "--lexicon", "c.lex")
WITH_3 = ("--model", "3.model", "--lexicon", "3.lex")


def make_files():
    """The demo's reviews, few of them; three lexicons; a small model for each; three classes."""
    build = pathlib.Path(test_cli.program).parent
    subprocess.run([build / "demo-reviews", test_cli.temporary / "demo", "--train", "500", "--dev", "80", "--test", "100"],
                   check=True, capture_output=True)
    for name, kernel in (("c", "component"), ("k", "topk:4"), ("r", "representative")):
        must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1,
             "--kernel", kernel, "-o", f"{name}.lex")
        must("train", "--arch", "ngram", "--data", "demo/train.tsv", "--dev", "demo/dev.tsv", "--lexicon", f"{name}.lex",
             "--bits", 14, "-o", f"{name}.model")
    words = {"good": "great fine superb", "bad": "awful poor dreadful", "plain": "usual common normal"}
    rows = [(label, f"{word} film number {word_of(i)} {word}") for i in range(60) for label, word in
            zip(("up", "down", "level"), (list(words)[c] if i % 2 else words[list(words)[c]].split()[i % 3] for c in range(3)))]
    write("3.tsv", "".join(f"r{i}\t{label}\t{text}\n" for i, (label, text) in enumerate(rows)))
    write("3.table", "".join(f"{word}\t{others}\n" for word, others in words.items()) + "film\tmovie picture\nnumber\tfigure\n")
    must("lexicon", "import", "--table", "3.table", "--kernel", "topk:3", "-o", "3.lex")
    must("train", "--arch", "ngram", "--data", "3.tsv", "--lexicon", "3.lex", "--bits", 12, "-o", "3.model")


def word_of(number):
    return "".join(chr(ord("a") + number // 26 ** k % 26) for k in range(3))


def certify(*arguments, **more):
    return run("certify", *arguments, **more)


def feed(content, *arguments):
    """Runs safer with something on its standard input."""
    done = subprocess.run([test_cli.program, *map(str, arguments)], input=content, capture_output=True, timeout=300,
                          cwd=test_cli.temporary, env={**os.environ, "LC_ALL": "C.UTF-8"})
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))


def accuracy(records, condition):
    return sum(map(condition, records)) / len(records)


class Verbs(Case):
    """A run of its own name for every test."""
    made = 0

    def fresh(self):
        Verbs.made += 1
        return f"run{Verbs.made}.jsonl"

    def certified(self, *arguments):
        """A run: its summary, configuration and records."""
        name = self.fresh()
        summary = json.loads(self.ok(certify(*arguments, "-o", name, "--json")))
        return summary, *read_run(name)


# --------------------------------------------------------------------- help

class Help(Verbs):
    def test_help(self):
        """help of every verb: stdout, usage, defaults, two examples whose options exist"""
        for verb in VERBS:
            out = self.ok(run(verb, "--help"))
            self.assertTrue(out.startswith(f"Usage: safer {verb} "), out)
            self.assertEqual(out, self.ok(run(verb, "-h")))
            self.assertIn("(default", out)
            text, examples = out.split("\nExamples:\n")
            self.assertGreaterEqual(examples.count(f"  safer {verb} "), 2, examples)
            for option in re.findall(r"(--[a-z][a-z0-9-]*)", examples):
                self.assertRegex(text, rf"\n  {option} ")
            self.assertIn(f"\n  {verb} ", self.ok(run("--help")))

    def test_needed(self):
        """what is needed is asked for: exit 2, named"""
        data = ("--data", "demo/test.tsv")
        for arguments, named in (
                (("train", "-o", "no"), "--data"), (("train", "--arch", "ngram", "-o", "no"), "--data"),
                (("train", "--arch", "ngram", *data), "-o FILE"),
                (("certify", "--model", "c.model", *data), "--lexicon"), (("certify", "--lexicon", "c.lex", *data), "--model"),
                (("certify", *WITH_C), "--data"), (("certify", *WITH_C, *data, "--resume"), "-o FILE"),
                (("predict", "--model", "c.model", "x"), "--lexicon"), (("predict", "--lexicon", "c.lex", "x"), "--model"),
                (("verify",), "too few"), (("verify", "a", "b"), "b"), (("verify", "a", "--model", "c.model"), "--lexicon"),
                (("sweep", "--arch", "ngram"), "--kernels"), (("certify", *WITH_C, *data, "surplus"), "surplus"),
                (("sweep", "--kernels", "component", "--arch", "ngram", "--lexicon", "c.lex", *data, "-o", "no"), "--dev")):
            self.refused(run(*arguments), USAGE, named, f"safer {arguments[0]} --help")
        self.assertFalse(exists("no"))

    def test_values(self):
        """values out of range: exit 2, named, and nothing is written"""
        base = ("certify", *WITH_C, "--data", "demo/test.tsv", "-o", "no")
        for bad in (("--delta", "0"), ("--delta", "1"), ("--delta", "nan"), ("--delta", "-0.1"), ("--alpha", "0"), ("--alpha", "1"),
                    ("--n", "0"), ("--n", "-1"), ("--n", "99999999999"), ("--n0", "-1"), ("--radius", "0"), ("--radius", "some"),
                    ("--radius", "-1"), ("--method", "magic"), ("--require", "1.5"), ("--require", "-0.1"), ("--require", "nan"),
                    ("--batch", "0"), ("--sample", "often"), ("--seed", "18446744073709551615"), ("--seed", "x")):
            self.refused(run(*base, *bad), USAGE, bad[0].strip("-"))
        for bad in (("--arch", "svm"), ("--bits", "3"), ("--ngrams", "0"), ("--seed", "9223372036854775808")):
            self.refused(run("train", "--arch", "ngram", "--data", "demo/train.tsv", "-o", "no", *bad), USAGE, bad[0].strip("-"))
        self.assertFalse(exists("no"))


# ----------------------------------------------------------------- training

class Train(Verbs):
    base = ("train", "--arch", "ngram", "--data", "demo/train.tsv", "--lexicon", "c.lex", "--bits", 12)

    def test_reports_agree(self):
        """text and JSON report the same, and the model is the same for 1 and 2 threads"""
        report = json.loads(self.ok(run(*self.base, "--threads", 1, "-o", "t1.model", "--json")))
        text = self.ok(run(*self.base, "--threads", 2, "-o", "t2.model"))
        self.assertEqual((test_cli.temporary / "t1.model").read_bytes(), (test_cli.temporary / "t2.model").read_bytes())
        self.assertEqual((report["output"], report["arch"], report["seed"], report["texts"]), ("t1.model", "ngram", 1, 500))
        self.assertTrue(0.5 < report["dev_accuracy"] <= 1 and 1 <= report["best_epoch"] <= report["epochs"], report)
        expected = (f"trained ngram on {report['texts']:,} texts ({report['tokens']:,} words): dev accuracy "
                    f"{100 * report['dev_accuracy']:.2f}% after epoch {report['best_epoch']} of {report['epochs']}, loss {report['loss']:.4f}\n"
                    f"{report['parameters']:,} parameters, ")
        self.assertTrue(text.startswith(expected), (text, expected))
        self.assertIn("seed 1\n2 classes: 0 250, 1 250\nwrote t2.model\n", text)

    def test_seed(self):
        """another seed, another model"""
        self.ok(run(*self.base, "--seed", 1, "-o", "s1.model"))
        self.ok(run(*self.base, "--seed", 2, "-o", "s2.model"))
        self.assertNotEqual((test_cli.temporary / "s1.model").read_bytes(), (test_cli.temporary / "s2.model").read_bytes())

    def test_bad_data(self):
        """no labels, one class, no such file, no such lexicon: refused by name, no model"""
        write("u.jsonl", '{"text": "a good film"}\n{"text": "a bad film"}\n')
        write("one.tsv", "1\tpos\ta good film\n2\tpos\ta fine film\n")
        write("few.tsv", "1\tpos\ta good film\n2\tneg\ta bad film\n")
        self.refused(run("train", "--arch", "ngram", "--data", "u.jsonl", "-o", "no"), INPUT, "row 1", "no label")
        self.refused(run("train", "--arch", "ngram", "--data", "one.tsv", "-o", "no"), INPUT, "\"pos\"", "two classes")
        self.refused(run("train", "--arch", "ngram", "--data", "few.tsv", "-o", "no"), INPUT, "dev")
        self.refused(run("train", "--arch", "ngram", "--data", "nowhere.tsv", "-o", "no"), SYSTEM, "nowhere.tsv")
        self.refused(run("train", "--arch", "ngram", "--data", "demo/train.tsv", "--lexicon", "nowhere.lex", "-o", "no"), SYSTEM,
                     "nowhere.lex")
        self.refused(run("train", "--arch", "ngram", "--data", "demo/train.tsv", "--lexicon", "few.tsv", "-o", "no"), INPUT, "few.tsv")
        self.refused(run("train", "--arch", "ngram", "--data", "demo/train.tsv", "--dev", "few.tsv", "-o", "no"), INPUT, "few.tsv")
        self.refused(run(*self.base, "-o", "nowhere/no"), SYSTEM, "nowhere/no")
        self.refused(run(*self.base, "-o", "/dev/full"), SYSTEM, "/dev/full")
        self.assertFalse(exists("no"))

    def test_file(self):
        """the model file: safetensors, with labels and what it was trained with"""
        header, _ = safetensors("c.model")
        meta = header.pop("__metadata__")
        self.assertEqual((meta["arch"], json.loads(meta["labels"])), ("ngram", ["0", "1"]))
        self.assertEqual(json.loads(meta["trained_with"])["kernel"], "component")
        self.assertTrue(all(tensor["dtype"] == "F32" for tensor in header.values()), header)

    def test_delete(self):
        """--delete: draws without most words, the same for any number of threads; the model says so; no defense has it"""
        small = ("--data", "demo/train.tsv", "--lexicon", "k.lex", "--dim", 8, "--filters", 8, "--hidden", 8, "--epochs", 1, "--limit", 200)
        made = {}
        for name, more in (("one", ("--delete", 0.5, "--threads", 1)), ("three", ("--delete", 0.5, "--threads", 3)), ("none", ())):
            self.ok(run("train", "--arch", "cnn", *small, *more, "-o", f"{name}.cnn", "--quiet"))
            made[name] = (test_cli.temporary / f"{name}.cnn").read_bytes()
        self.assertEqual(made["one"], made["three"])
        self.assertNotEqual(made["one"], made["none"])
        self.assertIn(b'\\"delete\\":0.5', made["one"])
        done = certify("--model", "one.cnn", "--lexicon", "k.lex", "--data", "demo/test.tsv", "--limit", 3)
        self.assertIn("note: the model was trained with --delete 0.5, not 0", done.err)
        self.assertNotIn("note", certify("--model", "one.cnn", "--lexicon", "k.lex", "--data", "demo/test.tsv", "--limit", 3, "--delete", 0.5).err)
        plain = ("--arch", "ngram", "--data", "demo/train.tsv", "--limit", 200)
        self.ok(run("train", *plain, "--bits", 12, "--delete", 0.9, "-o", "plain.ngram", "--quiet"))  # and without a lexicon
        for given, words in ((("--delete", 1), "--delete 1: a chance above 0"), (("--arch", "cnn", "--defense", "ibp-jia", "--lexicon", "k.lex", "--delete", 0.5), "a defense draws nothing")):
            done = run("train", *plain, *given, "-o", "refused.model")
            self.assertEqual(done.code, USAGE, done)
            self.assertIn(words, done.err)

    def test_networks(self):
        """bow and cnn: the same model for 1 and 2 threads; it certifies and verifies"""
        for arch, more in (("bow", ()), ("cnn", ("--filters", 8))):
            for threads in (1, 2):
                self.ok(run("train", "--arch", arch, "--data", "demo/train.tsv", "--dev", "demo/dev.tsv", "--lexicon", "c.lex", "--dim", 8,
                            *more, "--hidden", 8, "--epochs", 1, "--threads", threads, "-o", f"{arch}{threads}"))
                self.assertFalse(exists(f"{arch}{threads}.checkpoint"))
            self.assertEqual((test_cli.temporary / f"{arch}1").read_bytes(), (test_cli.temporary / f"{arch}2").read_bytes(), arch)
            with_it = ("--model", f"{arch}1", "--lexicon", "c.lex", "--data", "demo/test.tsv", "--limit", 20)
            name = self.fresh()
            self.ok(certify(*with_it, "-o", name))
            self.ok(run("verify", name, *with_it))

    def test_encoders(self):
        """encoders of three kinds: a head, layers or all of them are trained; certified from a file and a folder, verified, attacked"""
        for kind, layers in (("roberta", 0), ("deberta-v3", 1), ("modernbert", "all")):
            folder = pathlib.Path(__file__).resolve().parent / "golden/encoders" / kind
            self.ok(run("train", "--arch", "bert", "--encoder", folder, "--train-layers", layers, "--data", "demo/train.tsv", "--dev",
                        "demo/dev.tsv", "--lexicon", "c.lex", "--epochs", 1, "--quiet", "-o", kind))
            with_it = ("--model", kind, "--lexicon", "c.lex", "--data", "demo/test.tsv", "--limit", 10)
            name = self.fresh()
            self.ok(certify(*with_it, "--n", 200, "-o", name))
            self.ok(run("verify", name, *with_it))
            self.ok(run("attack", *with_it, "--against", name))
        self.ok(run("predict", "--model", folder, "--lexicon", "c.lex", "--n", 50, "--seed", 1, "--quiet", "a fine film"))


# ------------------------------------------------------------- certification

class Certify(Verbs):
    def test_summary(self):
        """table and JSON agree, have all members, and follow from the records"""
        base = (*WITH_K, "--data", "demo/test.tsv", "--n", 500)
        summary, config, records = self.certified(*base)
        self.assertLessEqual({"examples", "clean_accuracy", "smoothed_accuracy", "certified_accuracy", "certified_at", "abstained", "queries",
                              "base_queries", "seconds", "seed"}, set(summary))
        self.assertEqual(tuple(summary["certified_at"]), RADII)
        ids = [line.split("\t")[0] for line in (test_cli.temporary / "demo/test.tsv").read_text().splitlines()]
        self.assertEqual([record["id"] for record in records], ids)
        self.assertEqual([record["row"] for record in records], list(range(1, len(ids) + 1)))
        self.assertEqual((summary["examples"], config["data"]["texts"]), (len(ids), len(ids)))
        for radius in RADII:
            self.assertEqual(summary["certified_at"][radius], accuracy(records, lambda r: reaches(r, radius)), radius)
        self.assertEqual(summary["certified_accuracy"], accuracy(records, lambda r: r["certified"]))
        self.assertEqual(summary["clean_accuracy"], accuracy(records, lambda r: r["base"] == r["label"]))
        self.assertEqual(summary["smoothed_accuracy"], accuracy(records, lambda r: r["prediction"] == r["label"]))
        self.assertEqual(summary["abstained"], sum(r["abstained"] for r in records))
        self.assertEqual(summary["queries"], sum(r["queries"] for r in records))
        self.assertEqual((summary["base_queries"], summary["seed"], summary["resumed"]), (len(ids), 1, 0))
        self.assertAlmostEqual(summary["queries_per_second"] * summary["seconds"] / summary["queries"], 1)
        self.assertTrue(0 < summary["certified_at"]["all"] < summary["certified_at"]["1"] <= 1, "the kernel is not of the interesting kind")
        text = self.ok(certify(*base))
        for word, value in (("clean", "clean_accuracy"), ("smoothed", "smoothed_accuracy"), ("certified", "certified_accuracy"),
                            ("certified and answered", "certified_answered")):
            self.assertRegex(text, rf"\n{word} +{cut(summary[value])}  ")
        for radius in RADII:
            self.assertRegex(text, rf"\n +{radius} +{cut(summary['certified_answered_at'][radius])} +{cut(summary['certified_at'][radius])}\n")
        self.assertRegex(text, rf"\nqueries +{summary['queries']:,} ")
        self.assertIn("seed 1\n", text)

    def test_independence(self):
        """records do not depend on threads and batches, but on the seed"""
        base = (*WITH_K, "--data", "demo/test.tsv", "--n", 300, "--limit", 40)
        names = [self.fresh() for _ in range(4)]
        for name, more in zip(names, (("--threads", 1), ("--threads", 2), ("--batch", 7), ("--seed", 2))):
            self.ok(certify(*base, *more, "-o", name))
        runs = [without_times(name) for name in names]
        self.assertEqual([runs[1], runs[2]], [runs[0], runs[0]])
        self.assertNotEqual(runs[3][1:], runs[0][1:])

    def test_methods_agree(self):
        """clear texts: all methods certify the same ones"""
        found = {}
        for method in METHODS:
            summary, config, records = self.certified(*WITH_C, "--data", "demo/test.tsv", "--method", method, "--n", 400, "--limit", 60)
            self.assertEqual(config["method"], method)
            found[method] = {r["id"]: r["certified"] for r in records}
            for r in records:
                if not r["exact"]:
                    self.assertTrue(13 <= r["queries"] - r["n"] <= 400, r)
                    self.assertLessEqual(r["n"], 400)
                    if method != "adaptive":
                        self.assertEqual(r["n"], 400)
            clear = {r["id"] for r in records if not r["exact"] and max(r["counts"].values()) == r["n"]}
            found.setdefault("clear", clear)
            found["clear"] &= clear
        self.assertGreater(len(found["clear"]), 20)
        for name in found["clear"]:
            self.assertEqual(len({found[method][name] for method in METHODS}), 1, name)

    def test_radius(self):
        """--radius 2 and 3: certified means that radius or more, and agrees with the run for all"""
        base = (*WITH_K, "--data", "demo/test.tsv", "--method", "binomial", "--n", 400)
        whole, _, others = self.certified(*base)
        for radius in (2, 3):
            summary, config, records = self.certified(*base, "--radius", radius)
            self.assertEqual(config["radius"], str(radius))
            self.assertEqual([r["certified"] for r in records], [reaches(r, radius) for r in records])
            self.assertEqual([r["radius"] for r in records], [r["radius"] for r in others])
            self.assertGreaterEqual(summary["certified_accuracy"], whole["certified_accuracy"])
            if radius == 2:
                self.assertEqual(summary["certified_accuracy"], whole["certified_at"]["2"])
                self.assertGreater(summary["certified_accuracy"], whole["certified_accuracy"])

    def q_by_length(self, keep, tokens, a, b):
        """docs/edits.md, by length"""
        p, other = (max(0.5, 1 - keep / (16 * n**0.5)) for n in (tokens, tokens - a + b))
        mx = min(tokens, tokens - a + b) * (p - other)**2 / (p * (1 - p))
        return 0.5 + p**a * (other**-b / 2 - 1 + (mx / (1 - mx))**0.5 / 2)

    def test_keep(self):
        """--delete keep:K: the chance follows from the length, and what its change costs is in q_edits; trained, resumed, in parts, verified, predicted"""
        base = (*WITH_C, "--data", "demo/test.tsv", "--limit", 30, "--n", 300, "--delete", "keep:4", "--edits", 2)
        must("train", "--arch", "ngram", "--data", "demo/train.tsv", "--dev", "demo/dev.tsv", "--lexicon", "c.lex", "--delete", "keep:4", "--bits", 14,
             "-o", "keep.ngram", "--quiet")
        base = ("--model", "keep.ngram", *base[2:])
        for kind in ("any", "replace", "insert", "delete"):
            summary, config, records = self.certified(*base, "--edit-kind", kind)
            self.assertEqual((config["delete"], summary["edits"]), ("keep:4", 2))
            for r in records:
                for edits in (1, 2):
                    in_, out = range(1 + edits * (kind != "delete")), range(1 + edits * (kind != "insert"))
                    worst = max(self.q_by_length(4, r["tokens"], a, b) for a in out for b in in_ if kind != "replace" or a == b)
                    self.assertAlmostEqual(r["q_edits"][edits], min(1, worst), delta=1e-8)  # p is a fraction of 2^32
            if kind in ("delete", "any"):
                self.assertGreater(summary["certified_edits"]["1"], 0)
        self.ok(certify(*base, "-o", "whole.jsonl"))
        files = ("--lexicon", "c.lex", "--data", "demo/test.tsv", "--limit", 30)
        for more in ((), files, ("--model", "keep.ngram", *files)):
            said = json.loads(self.ok(run("verify", "whole.jsonl", *more, "--json")))
            self.assertEqual((said["delete"], said["edits"]), ("keep:4", 2))
        for part in (1, 2):
            self.ok(certify(*base, "--shard", f"{part}/2", "-o", f"keep-{part}.jsonl"))
        self.ok(run("merge", "keep-1.jsonl", "keep-2.jsonl", "-o", "merged.jsonl"))
        self.assertEqual(without_times("merged.jsonl"), without_times("whole.jsonl"))
        self.assertNotIn("note", certify(*base, "-o", "again.jsonl").err)
        self.assertIn("note: the model was trained with --delete keep:4, not 0.5", certify(*base[:-4], "--delete", 0.5, "-o", "other.jsonl").err)
        found = json.loads(self.ok(run("attack", "--model", "keep.ngram", *files, "--against", "whole.jsonl", "--n", 100, "--words", 20, "--max-queries", 3000, "--json", "--quiet")))
        self.assertEqual((found["delete"], found["violations"]), ("keep:4", 0))
        other = certify(*base[:-4], "--delete", "keep:5", "--edits", 2, "-o", "whole.jsonl", "--resume")
        self.assertIn("delete is \"keep:4\" there, \"keep:5\" here", other.err)
        answer = json.loads(self.ok(run("predict", "--model", "keep.ngram", "--lexicon", "c.lex", "--delete", "keep:4", "--edit-kind", "delete", "--seed", 1, "--json",
                                        "A wonderful film, and a great story that I liked a lot.")))
        self.assertIn("edits", json.dumps(answer))
        for wrong in ("keep:0", "keep:", "keep:1.5", "keep", "keep:1000001", "x"):
            done = certify(*base[:-4], "--delete", wrong, "-o", "wrong.jsonl")
            self.assertEqual(done.code, USAGE, done)
            self.assertIn(f"--delete {wrong}: a chance above 0 and below 1, 0: nothing, or keep:K", done.err)

    def test_edits(self):
        """--delete and --edits: curves, records, verify in its three forms, resuming, parts; what is refused"""
        base = (*WITH_C, "--data", "demo/test.tsv", "--limit", 30, "--n", 300, "--delete", 0.5)
        must("train", "--arch", "ngram", "--data", "demo/train.tsv", "--dev", "demo/dev.tsv", "--lexicon", "c.lex", "--delete", 0.5, "--bits", 14,
             "-o", "deleting.model")
        base = ("--model", "deleting.model", *base[2:])
        for method in METHODS:
            summary, config, records = self.certified(*base, "--edits", 3, "--edit-kind", "delete", "--method", method)
            name = f"run{Verbs.made}.jsonl"
            self.assertEqual((config["delete"], config["edits"], config["edit_kind"]), (0.5, 3, "delete"))
            self.assertEqual((summary["edits"], summary["edit_kind"]), (3, "delete"))
            right = [r for r in records if r["target"] == r["label"]]
            for edits in (1, 2, 3):
                self.assertEqual(summary["certified_edits"][str(edits)], sum(r["edits"] >= edits for r in right) / 30)
            self.assertEqual(summary["certified_accuracy"], summary["certified_edits"]["3"])
            self.assertGreater(summary["certified_edits"]["1"], 0)
            for r in records:  # the kernel has q = 0: 1 - p^R/2 is what must be exceeded
                self.assertEqual(r["visible"], r["slots"])
                for edits, q in enumerate(r["q_edits"]):
                    self.assertAlmostEqual(q, 0.5 - 0.5 * 0.5**edits, delta=1e-12)
            checks = ("--lexicon", "c.lex", "--data", "demo/test.tsv", "--limit", 30)
            for more in ((), checks, ("--model", "deleting.model", *checks)):
                said = json.loads(self.ok(run("verify", name, *more, "--json")))
                self.assertEqual((said["delete"], said["edits"], said["edit_kind"]), (0.5, 3, "delete"))
        asked = (*base, "--edits", 2, "--seed", 9)
        whole, parts = self.fresh(), [self.fresh(), self.fresh()]
        self.ok(certify(*asked, "-o", whole, "--quiet"))
        lines = (test_cli.temporary / whole).read_text().splitlines(keepends=True)
        write("half.jsonl", "".join(lines[:11]))
        self.ok(certify(*asked, "-o", "half.jsonl", "--resume", "--quiet"))
        self.assertEqual(without_times("half.jsonl"), without_times(whole))
        for number, part in enumerate(parts, 1):
            self.ok(certify(*asked, "--shard", f"{number}/2", "-o", part, "--quiet"))
        self.ok(run("merge", *parts, "-o", "merged.jsonl", "--quiet"))
        self.assertEqual(without_times("merged.jsonl"), without_times(whole))
        other = certify(*base, "--edits", 3, "--seed", 9, "-o", "half.jsonl", "--resume")
        self.assertEqual(other.code, INPUT)
        self.assertIn("edits is 2 there, 3 here", other.err)
        for given, words in ((("--edits", 2), "--edits needs --delete"), (("--edit-kind", "insert"), "--edit-kind needs --delete"),
                             (("--delete", 1), "--delete 1"), (("--delete", -0.5), "--delete -0.5"), (("--delete", 0.5, "--edits", 0), "--edits 0"),
                             (("--delete", 0.5, "--edits", 65), "--edits 65"), (("--delete", 0.5, "--method", "ibp"), "ibp draws nothing")):
            done = certify(*WITH_C, "--data", "demo/test.tsv", *given)
            self.assertEqual((done.code, done.err.count("\n")), (USAGE, 1), done)
            self.assertIn(words, done.err)
        answer = json.loads(self.ok(run("predict", *base[:4], "--delete", 0.5, "--edit-kind", "delete", "--edits", 2, "--seed", 1, "--json",
                                        "A wonderful film.")))["answers"][0]
        self.assertEqual((answer["tokens"], answer["exact"]), (4, True))

    def test_require(self):
        """--require: exit 0 when reached, 1 with one line when not; results are printed either way"""
        base = (*WITH_C, "--data", "demo/test.tsv", "--limit", 40, "--json")
        reached = json.loads(self.ok(certify(*base)))["certified_answered"]
        self.assertTrue(0 < reached < 1, reached)
        self.ok(certify(*base, "--require", 0))
        self.ok(certify(*base, "--require", repr(reached)))
        for share in (repr(reached + 1e-9), "1"):
            result = certify(*base, "--require", share, "--quiet")
            self.assertEqual((result.code, result.err.count("\n")), (UNMET, 1))
            self.assertIn("below the required", result.err)
            self.assertEqual(json.loads(result.out)["certified_answered"], reached)

    def test_unlabelled(self):
        """--unlabelled certifies the prediction; so do texts without labels"""
        data = ("--data", "demo/test.tsv", "--limit", 40)
        _, config, records = self.certified(*WITH_C, *data, "--unlabelled")
        self.assertTrue(config["unlabelled"])
        self.assertTrue(all(r["target"] == r["prediction"] for r in records))
        self.assertTrue(any(r["target"] != r["label"] and r["certified"] for r in records), "no text is predicted wrongly")
        _, _, labelled = self.certified(*WITH_C, *data)
        self.assertTrue(all(r["target"] == r["label"] for r in labelled))
        rows = [line.split("\t") for line in (test_cli.temporary / "demo/test.tsv").read_text().splitlines()[:40]]
        write("none.jsonl", "".join(json.dumps({"id": row[0], "text": row[2]}) + "\n" for row in rows))
        summary, _, bare = self.certified(*WITH_C, "--data", "none.jsonl")
        self.assertEqual([(r["label"], r["target"], r["certified"]) for r in bare], [(None, r["target"], r["certified"]) for r in records])
        self.assertEqual(summary["labelled"], 0)
        self.assertNotIn("clean ", self.ok(certify(*WITH_C, "--data", "none.jsonl")))

    def test_family_wise(self):
        """--family-wise: every text gets delta / N, and needs more votes"""
        data = ("--data", "demo/test.tsv", "--limit", 50)
        _, config, records = self.certified(*WITH_C, *data, "--family-wise")
        self.assertEqual((config["family_wise"], config["delta"], config["delta_text"]), (True, 0.01, 0.01 / 50))
        _, _, others = self.certified(*WITH_C, *data)
        pairs = [(r["n"], o["n"]) for r, o in zip(records, others) if r["certified"] and o["certified"] and not r["exact"]]
        self.assertTrue(pairs and all(mine > other for mine, other in pairs), pairs)

    def test_part(self):
        """--sample every:N of each class, random:N and --limit"""
        labels = collections.Counter(r["label"] for r in self.certified(*WITH_C, "--data", "demo/test.tsv", "--sample", "every:10")[2])
        rows = [line.split("\t")[1] for line in (test_cli.temporary / "demo/test.tsv").read_text().splitlines()]
        self.assertEqual(labels, {label: count // 10 for label, count in collections.Counter(rows).items()})
        self.assertEqual(self.certified(*WITH_C, "--data", "demo/test.tsv", "--sample", "random:7")[0]["examples"], 7)
        self.assertEqual(self.certified(*WITH_C, "--data", "demo/test.tsv", "--limit", 3)[0]["examples"], 3)

    def test_representative(self):
        """representative: one query a text, all certificates exact"""
        summary, _, records = self.certified("--model", "r.model", "--lexicon", "r.lex", "--data", "demo/test.tsv")
        self.assertEqual((summary["queries"], summary["exact"]), (len(records), len(records)))
        self.assertEqual(summary["certified_accuracy"], summary["smoothed_accuracy"])

    def test_small_texts(self):
        """empty texts and texts without a known word: no slots, certified when right"""
        write("small.jsonl", "".join(json.dumps({"id": i, "label": label, "text": text}) + "\n" for i, (label, text) in enumerate(
            (label, text) for text in ("", "   ", "Qwertzuiop 42!", "\U0001F600") for label in "01")))
        summary, _, records = self.certified(*WITH_C, "--data", "small.jsonl")
        self.assertEqual(summary["without_slots"], 8)
        for r in records:
            self.assertEqual((r["slots"], r["exact"], r["queries"], r["q"], r["base"]), (0, True, 1, 0, r["prediction"]))
            self.assertEqual((r["certified"], r["radius"]), (True, "all") if r["label"] == r["prediction"] else (False, "0"))
        self.assertRegex(self.ok(certify(*WITH_C, "--data", "small.jsonl")), r"\ntrivial +8 texts")

    def test_notes(self):
        """a model trained with another kernel, lexicon or none: a note on stderr, exit 0"""
        base = ("--data", "demo/test.tsv", "--limit", 3)
        self.ok(run("train", "--arch", "ngram", "--data", "demo/train.tsv", "--bits", 12, "-o", "plain.model"))
        for model, lexicon, parts in (("c.model", "k.lex", ("component", "topk:4")), ("plain.model", "k.lex", ("without a lexicon",))):
            result = certify("--model", model, "--lexicon", lexicon, *base)
            self.assertEqual((result.code, result.err.count("\n")), (DONE, 1), result)
            for part in ("safer: note: ", *parts):
                self.assertIn(part, result.err)
            self.ok(certify("--model", model, "--lexicon", lexicon, *base, "--quiet"))

    def test_labels(self):
        """a label that the model does not know: exit 3, both are named; no file"""
        write("odd.tsv", "1\t1\tA good film.\n2\tmaybe\tA bad film.\n")
        self.refused(certify(*WITH_C, "--data", "odd.tsv", "-o", "odd.jsonl"), INPUT, "\"maybe\"", "0, 1", "--labels 0=NAME")
        self.assertFalse(exists("odd.jsonl"))

    def test_bad_models(self):
        """not finite, cut, of no known architecture, no model at all: exit 3, one line with the name"""
        header, bytes_ = safetensors("c.model")
        start = 8 + struct.unpack("<Q", bytes_[:8])[0]
        name, tensor = next((n, t) for n, t in header.items() if n == "weights")
        at = start + tensor["data_offsets"][0]
        write("nan.model", bytes_[:at] + struct.pack("<f", math.nan) + bytes_[at + 4:])
        write("cut.model", bytes_[:len(bytes_) // 2])
        write("short.model", bytes_[:7])
        write("arch.model", bytes_.replace(b'"ngram"', b'"ngrum"', 1))
        write("labels.model", bytes_.replace(b"labels", b"lavels", 1))
        self.assertNotEqual((test_cli.temporary / "arch.model").read_bytes(), bytes_)
        for model in ("nan", "cut", "short", "arch", "labels"):
            for verb in (("certify", "--data", "demo/test.tsv"), ("predict", "x")):
                self.refused(run(*verb, "--model", f"{model}.model", "--lexicon", "c.lex"), INPUT, f"{model}.model")
        self.refused(certify("--model", "c.lex", "--lexicon", "c.lex", "--data", "demo/test.tsv"), INPUT, "c.lex")
        self.refused(certify("--model", "c.model", "--lexicon", "c.model", "--data", "demo/test.tsv"), INPUT, "c.model")
        self.refused(certify("--model", "nowhere", "--lexicon", "c.lex", "--data", "demo/test.tsv"), SYSTEM, "nowhere")

    def test_full_disk(self):
        """a disk that is full, for the records and for the table: exit 4"""
        base = (*WITH_C, "--data", "demo/test.tsv", "--limit", 5)
        self.refused(certify(*base, "-o", "/dev/full"), SYSTEM, "/dev/full")
        with open("/dev/full", "wb") as full:
            self.refused(certify(*base, stdout=full), SYSTEM, "cannot write")
        self.refused(certify(*base, "-o", "nowhere/run.jsonl"), SYSTEM, "nowhere/run.jsonl")


class Resume(Verbs):
    base = (*WITH_K, "--data", "demo/test.tsv", "--method", "binomial", "--n", 300, "--limit", 40)

    def test_existing(self):
        """an output that is there: exit 2 without --resume, untouched; exit 3 when it is another run's"""
        name = self.fresh()
        self.ok(certify(*self.base, "-o", name))
        before = (test_cli.temporary / name).read_bytes()
        self.refused(certify(*self.base, "-o", name), USAGE, name, "exists")
        for more in (("--seed", 2), ("--n", 301), ("--delta", 0.02), ("--limit", 39), ("--radius", 2), ("--unlabelled",),
                     ("--model", "c.model")):
            result = certify(*self.base, *more, "-o", name, "--resume", "--quiet")
            self.refused(result, INPUT, name, "another run")
        write("letter.txt", "Dear file,\n")
        self.refused(certify(*self.base, "-o", "letter.txt", "--resume"), INPUT, "letter.txt", "line 1")
        summary = json.loads(self.ok(certify(*self.base, "-o", name, "--resume", "--json")))
        self.assertEqual((summary["resumed"], summary["examples"], summary["queries_per_second"]), (40, 40, None))
        self.assertNotIn("queries/s", self.ok(certify(*self.base, "-o", name, "--resume")))
        self.assertEqual((test_cli.temporary / name).read_bytes(), before)
        self.assertEqual((test_cli.temporary / "letter.txt").read_text(), "Dear file,\n")

    def test_cut(self):
        """a file cut anywhere is continued: whole records stay, the rest is done again"""
        name, whole = self.fresh(), self.fresh()
        self.ok(certify(*self.base, "-o", whole))
        expected, content = without_times(whole), (test_cli.temporary / whole).read_bytes()
        ends = [i for i, byte in enumerate(content) if byte == 10]
        for keep in (0, 5, ends[0], ends[0] + 1, ends[7] + 1, ends[7] + 50, len(content) - 1):
            write(name, content[:keep])
            summary = json.loads(self.ok(certify(*self.base, "-o", name, "--resume", "--json")))
            self.assertEqual(summary["resumed"], max(0, content[:keep].count(b"\n") - 1))
            self.assertEqual(without_times(name), expected, keep)

    def test_moved_lines(self):
        """a run whose lines were moved is not continued"""
        name = self.fresh()
        self.ok(certify(*self.base, "-o", name))
        lines = (test_cli.temporary / name).read_text().splitlines(True)
        write(name, "".join([lines[0], lines[2], lines[1]]))
        self.refused(certify(*self.base, "-o", name, "--resume"), INPUT, name, "line 2", "row 2")

    def test_interrupt(self):
        """Ctrl-C or SIGTERM: exit 130, whole records, and --resume ends as if nothing had happened"""
        base = (*WITH_K, "--data", "demo/test.tsv", "--method", "hoeffding", "--n", 20000, "--limit", 60, "--threads", 2)
        whole = self.fresh()
        self.ok(certify(*base, "-o", whole))
        for how in (signal.SIGINT, signal.SIGTERM):
            self.interrupt(base, whole, how)

    def interrupt(self, base, whole, how):
        name = self.fresh()
        child = subprocess.Popen([test_cli.program, "certify", *map(str, base), "-o", name], cwd=test_cli.temporary,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        path, patience = test_cli.temporary / name, time.time() + 60
        while time.time() < patience and not (path.exists() and path.read_bytes().count(b"\n") >= 4):
            time.sleep(0.005)
        child.send_signal(how)
        out, err = child.communicate(timeout=60)
        self.assertEqual((child.returncode, out), (INTERRUPTED, b""), err)
        self.assertIn(b"--resume", err)
        content = path.read_bytes()
        self.assertTrue(content.endswith(b"\n"))
        self.assertTrue(4 <= content.count(b"\n") < 61, content.count(b"\n"))
        self.refused(run("verify", name), INPUT, name, "resume")
        summary = json.loads(self.ok(certify(*base, "-o", name, "--resume", "--json")))
        self.assertEqual(summary["resumed"], content.count(b"\n") - 1)
        self.assertEqual(without_times(name), without_times(whole))


# ----------------------------------------------------------------- recomputing

@functools.lru_cache(maxsize=None)
def log_e(k, n, p0):
    """log of E(k,n): with theta = sin(phi)^2 the prior is uniform in phi, so E is a mean."""
    low, steps = math.asin(math.sqrt(p0)), 4000
    width = (math.pi / 2 - low) / steps
    logs = []
    for i in range(steps):
        theta = math.sin(low + (i + 0.5) * width) ** 2
        logs.append(k * math.log(theta / p0) + ((n - k) * math.log((1 - theta) / (1 - p0)) if n > k else 0))
    most = max(logs)
    return most + math.log(sum(math.exp(x - most) for x in logs) / steps)


def upper_tail(k, n, p):
    """P[Bin(n,p) >= k]"""
    return math.fsum(math.exp(math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * math.log(p) +
                              (n - i) * math.log1p(-p)) for i in range(k, n + 1))


def lower_bound(k, n, delta):
    """Clopper and Pearson's, by bisection"""
    low, high = 0.0, 1.0
    for _ in range(60 if k else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if upper_tail(k, n, middle) <= delta else (low, middle)
    return low


class Recompute(Verbs):
    def decisions(self, records):
        """(record, q, whether it is certified there), for the reported radii and the last certified one"""
        for r in records:
            for radius, q in zip(RADII, r["q_at"]):
                yield r, q, reaches(r, radius)
            if r["radius"] != "0":
                yield r, r["q_radius"], True
            if r["radius"] != "all":
                yield r, r["q_next"], False

    def votes(self, r):
        counts = counts_of(r)
        return counts[r["target"]], max(count for name, count in counts.items() if name != r["target"])

    def test_exact(self):
        """exact records: certified where the margin exceeds 2q, in fractions"""
        seen = set()
        for arguments in ((*WITH_3, "--data", "3.tsv"), ("--model", "r.model", "--lexicon", "r.lex", "--data", "demo/test.tsv"),
                          (*WITH_3, "--data", "3.tsv", "--unlabelled")):
            _, _, records = self.certified(*arguments)
            exact = [r for r in records if r["exact"]]
            for r in exact:
                total = int(r["total"])
                self.assertEqual(sum(counts_of(r).values()), total)
                self.assertNotIn("n", r)
            for r, q, certified in self.decisions(exact):
                k, rival = self.votes(r)
                margin = fractions.Fraction(k - rival, int(r["total"]))
                self.assertEqual(certified, margin > 2 * fractions.Fraction(q), r)
                seen.add((certified, q > 0))
                self.assertLessEqual(fractions.Fraction(r["bound"]), (1 + margin) / 2)
        self.assertEqual(len(seen), 4, seen)

    def test_overlaps(self):
        """q of a record is one minus the product of the smallest overlaps of its words, rounded up (exported ones are cut at 20 decimals)"""
        _, _, records = self.certified(*WITH_3, "--data", "3.tsv", "--limit", 12)
        overlaps = {word: fractions.Fraction(columns[0]) for word, columns in self.table("3.lex", "overlap").items()}
        texts = [line.split("\t")[2] for line in (test_cli.temporary / "3.tsv").read_text().splitlines()]
        for r, text in zip(records, texts):
            slots = sorted(overlaps[word] for word in text.split() if word in overlaps)
            self.assertEqual(r["slots"], len(slots))
            for radius, q in zip(RADII, r["q_at"]):
                product = math.prod(slots[:None if radius == "all" else int(radius)], start=fractions.Fraction(1))
                self.assertTrue(-1e-18 < fractions.Fraction(q) - (1 - product) < 1e-12, (text, radius, q))

    def test_hoeffding(self):
        """Hoeffding: (k - rival)/n - 2q above the paper's slack, two and three classes"""
        seen = set()
        for arguments, classes in (((*WITH_K, "--data", "demo/test.tsv"), 2), ((*WITH_3, "--data", "3.tsv"), 3)):
            _, config, records = self.certified(*arguments, "--method", "hoeffding", "--n", 300)
            slack = 2 * math.sqrt((math.log(1 / config["delta_text"]) + math.log(classes)) / 600)
            for r, q, certified in self.decisions(records):
                k, rival = self.votes(r)
                self.assertFalse(r["exact"])
                over = fractions.Fraction(k - rival, 300) - 2 * fractions.Fraction(q) - fractions.Fraction(slack)
                if abs(over) > 1e-12:
                    self.assertEqual(certified, over > 0, r)
                seen.add(certified)
        self.assertEqual(seen, {True, False})

    def test_binomial(self):
        """binomial: the bound is Clopper and Pearson's, certified above 1/2 + q"""
        _, config, records = self.certified(*WITH_K, "--data", "demo/test.tsv", "--method", "binomial", "--n", 200)
        bounds = {k: lower_bound(k, 200, config["delta_text"]) for k in {self.votes(r)[0] for r in records}}
        for r, q, certified in self.decisions(records):
            expected = bounds[self.votes(r)[0]]
            self.assertTrue(abs(r["bound"] - expected) < 1e-9, (r, expected))
            if abs(r["bound"] - 0.5 - q) > 1e-12:
                self.assertEqual(certified, r["bound"] > 0.5 + q, r)

    def test_adaptive(self):
        """adaptive, two classes: E of the record's counts reaches 1/delta exactly where it is certified"""
        seen = collections.Counter()
        _, config, records = self.certified(*WITH_K, "--data", "demo/test.tsv", "--n", 600, "--limit", 50)
        target = math.log(1 / config["delta_text"])
        for r, q, certified in self.decisions([r for r in records if not r["exact"]]):
            k = self.votes(r)[0]
            if 0.5 + q >= 1:
                self.assertFalse(certified)
                continue
            value = log_e(k, r["n"], 0.5 + q)
            if abs(value - target) > 1e-5:
                self.assertEqual(certified, value > target, (r, q, value))
            seen[certified] += 1
        self.assertTrue(min(seen[True], seen[False]) > 20, seen)


# -------------------------------------------------------------------- verify

class Verify(Verbs):
    def test_accepts(self):
        """verify accepts runs of every method, without and with the model"""
        for method in METHODS:
            name = self.fresh()
            base = (*WITH_K, "--data", "demo/test.tsv", "--limit", 30)
            self.ok(certify(*base, "--method", method, "--n", 300, "-o", name))
            self.assertRegex(self.ok(run("verify", name)), r"\A30 records hold; \d+\.\d\d% certified and answered\nclaimed: .*\nnot checked: .*\n\Z")
            self.assertIn("the model gives the same again", self.ok(run("verify", name, *base)))
            report = json.loads(self.ok(run("verify", name, *base, "--json")))
            self.assertEqual((report["verified"], report["asked_again"], report["records"]), (True, True, 30))
            self.refused(run("verify", name, *WITH_K, "--data", "demo/test.tsv"), INPUT, name, "another")
            self.refused(run("verify", name, "--model", "c.model", "--lexicon", "k.lex", "--data", "demo/test.tsv", "--limit", 30), INPUT,
                         name, "another")

    def test_random_sample(self):
        """a run on random:N is verified with the same --sample and --seed"""
        name, base = self.fresh(), (*WITH_C, "--data", "demo/test.tsv", "--sample", "random:12", "--seed", 5)
        self.ok(certify(*base, "-o", name))
        self.ok(run("verify", name, *base))
        self.refused(run("verify", name, *base[:-1], 6), INPUT, "another")

    def test_refuses(self):
        """verify refuses an edited count, bound, decision, q, id or configuration; moved, repeated, lost and cut lines"""
        name, edited = self.fresh(), self.fresh()
        self.ok(certify(*WITH_K, "--data", "demo/test.tsv", "--limit", 12, "--n", 300, "-o", name))
        lines = (test_cli.temporary / name).read_text().splitlines(True)

        def one(number, pattern, change):
            text, count = re.subn(pattern, change, lines[number], count=1)
            self.assertEqual((count, text != lines[number]), (1, True), pattern)
            return [*lines[:number], text, *lines[number + 1:]]

        def flip(match):
            return match[1] + ("false" if match[2] == "true" else "true")

        changes = {
            "count": one(3, r'("(?:counts|weights)":\{"0":"?)(\d+)', lambda m: m[1] + str(int(m[2]) + 1)),
            "bound": one(3, r'("bound":)[\d.e-]+', r"\g<1>0.87654321"),
            "decision": one(4, r'("certified":)(true|false)', flip),
            "radius": one(5, r'("radius":)"(all|\d+)"', lambda m: m[1] + ('"0"' if m[2] == "all" else '"all"')),
            "q": one(3, r'("q":)[\d.e-]+', r"\g<1>0.123"), "id": one(6, r'("id":")', r"\g<1>x"),
            "delta": one(0, r'("delta":)[\d.e-]+', r"\g<1>0.5"), "seed": one(0, r'("seed":)\d+', r"\g<1>9"),
            "space": one(2, r'("bound":)', r"\g<1> "), "check": one(2, r'("check":"[0-9a-f]{15})[0-9a-f]', r"\g<1>g"),
            "last line deleted": lines[:-1], "line deleted": lines[:4] + lines[5:],
            "lines swapped": [*lines[:4], lines[5], lines[4], *lines[6:]],
            "line repeated": [*lines[:5], lines[4], *lines[6:]], "line added": [*lines, lines[-1]],
            "cut": [*lines[:-1], lines[-1][:-1]], "no configuration": lines[1:], "empty": [],
            "empty line": [*lines[:3], "\n", *lines[3:]], "not JSON": [*lines[:3], "{]\n", *lines[4:]],
        }
        for what, content in changes.items():
            write(edited, "".join(content))
            result = run("verify", edited)
            self.assertEqual(result.code, INPUT, f"{what}: {result}")
            self.refused(result, INPUT, edited)
        write(edited, re.sub(r'"seconds":[\d.e-]+', '"seconds":0.5', "".join(lines)))  # the one thing that may differ
        self.ok(run("verify", edited))
        self.refused(run("verify", "nowhere.jsonl"), SYSTEM, "nowhere.jsonl")
        self.refused(run("verify", "demo/test.tsv"), INPUT, "demo/test.tsv")


# ------------------------------------------------------------------- predict

class Predict(Verbs):
    good, bad = "A wonderful, brilliant and moving film. I loved it!", "A dull, boring and awful film. I hated it!"

    def predict(self, *arguments):
        return run("predict", *WITH_C, *arguments)

    def test_arguments_and_lines(self):
        """texts as arguments and as lines give the same answers; text and JSON agree"""
        report = json.loads(self.ok(self.predict("--json", "--seed", 3, self.good, self.bad)))
        self.assertEqual(report["seed"], 3)
        good, bad = report["answers"]
        self.assertEqual((good["label"], bad["label"]), ("1", "0"))
        for answer in report["answers"]:
            self.assertLessEqual({"label", "abstained", "shares", "bound", "certified", "radius", "exact", "slots", "queries"}, set(answer))
            self.assertAlmostEqual(sum(answer["shares"].values()), 1)
        for lines in (f"{self.good}\n{self.bad}\n", f"{self.good}\n{self.bad}"):
            self.assertEqual(json.loads(self.ok(feed(lines.encode(), "predict", *WITH_C, "--json", "--seed", 3))), report)
        text = self.predict("--seed", 3, self.good, self.bad)
        self.assertEqual([line.split()[0] for line in text.out.splitlines()], ["1", "0"])
        self.assertEqual((text.code, text.err), (DONE, "safer: seed 3\n"))
        self.assertEqual(self.predict("--seed", 3, "--quiet", self.good, self.bad), Result(DONE, text.out, ""))
        self.assertEqual(json.loads(self.ok(feed(b"", "predict", *WITH_C, "--json", "--seed", 3)))["answers"], [])

    def test_seeds(self):
        """the seed is fresh unless given, and shown"""
        seeds = {json.loads(self.ok(self.predict("--json", self.good)))["seed"] for _ in range(3)}
        self.assertEqual(len(seeds), 3)
        seed = seeds.pop()
        one, two = (self.ok(self.predict("--json", "--seed", seed, self.good)) for _ in range(2))
        self.assertEqual(one, two)

    def test_same_as_certify(self):
        """predict says what certify --unlabelled says of the same text and seed"""
        _, _, records = self.certified(*WITH_K, "--data", "demo/test.tsv", "--limit", 8, "--unlabelled", "--n", 400)
        texts = [line.split("\t")[2] for line in (test_cli.temporary / "demo/test.tsv").read_text().splitlines()[:8]]
        self.assertNotIn("\\", "".join(texts))
        answers = json.loads(self.ok(run("predict", *WITH_K, "--seed", 1, "--n", 400, "--json", *texts)))["answers"]
        for r, answer in zip(records, answers):
            self.assertEqual((answer["leading"], answer["abstained"], answer["bound"], answer["queries"]),
                             (r["prediction"], r["abstained"], r["bound"], r["queries"]))
            self.assertEqual(str(answer["radius"]), "0" if r["abstained"] else r["radius"])

    def test_abstention(self):
        """one vote is never clear at level 1e-9: abstained, no label, nothing certified"""
        base = ("predict", *WITH_C, "--n0", 1, "--alpha", "1e-9", "--n", 20, "--seed", 1)
        answer = json.loads(self.ok(run(*base, "--json", self.good)))["answers"][0]
        self.assertEqual((answer["label"], answer["abstained"], answer["certified"], answer["radius"]), (None, True, False, 0))
        self.assertEqual(answer["leading"], "1")
        self.assertRegex(run(*base, self.good).out, r"\Aabstained  \(1 leads with 1 of 1 draw, but not clearly\)  not certified")

    def test_clear_vote(self):
        """a unanimous vote ends with the draw that makes it clear; --n0 ends it before, and 0 is --n"""
        unanimous = 0
        for n0, most in ((None, 400), (0, 400), (13, 13), (12, 12), (5, 5)):
            with_n0 = () if n0 is None else ("--n0", n0)
            _, config, records = self.certified(*WITH_C, "--data", "demo/test.tsv", "--method", "binomial", "--n", 400, "--limit", 60, *with_n0)
            self.assertEqual(config["n0"], most)
            for r in records:
                vote = r["queries"] - r["n"]
                self.assertTrue(vote <= most and (vote >= 13 or r["abstained"]), r)
                if max(r["counts"].values()) == r["n"]: # so is the vote
                    unanimous += 1
                    self.assertEqual((vote, r["abstained"]), (min(most, 13), most < 13), r)
        self.assertGreater(unanimous, 50)

    def test_odd_texts(self):
        """empty text, a zero byte, no known word: answered; invalid UTF-8: exit 3, which text and byte"""
        answers = json.loads(self.ok(feed(b"\nA good\0film\nQwertz\n", "predict", *WITH_C, "--json", "--seed", 1)))["answers"]
        self.assertEqual([answer["slots"] for answer in answers], [0, 2, 0])
        self.assertIn("no word of this text has synonyms", self.predict("--seed", 1, "").out)
        result = feed(b"A good film\nbad \xff\xfe\n", "predict", *WITH_C, "--json")
        self.refused(result, INPUT, "text 2", "UTF-8", "byte 4")
        self.refused(run("predict", *WITH_C, os.fsdecode(b"bad \xc3")), INPUT, "text 1", "UTF-8")

    def test_interrupt(self):
        """Ctrl-C ends a predict that waits for a line; answers so far have been printed"""
        child = subprocess.Popen([test_cli.program, "predict", *WITH_C], cwd=test_cli.temporary, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        child.stdin.write(self.good.encode() + b"\n")
        child.stdin.flush()
        self.assertTrue(child.stdout.readline().startswith(b"1 "))
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(timeout=60), INTERRUPTED)
        child.stdin.close()
        child.stdout.close()


# --------------------------------------------------------------------- sweep

class Sweep(Verbs):
    def test_sweep(self):
        """sweep: a model and records for each kernel; the best on dev is chosen; it is resumed where it stopped"""
        base = ("sweep", "--kernels", "topk:2,component,representative", "--arch", "ngram", "--lexicon", "c.lex", "--data", "demo/train.tsv",
                "--dev", "demo/dev.tsv", "--test", "demo/test.tsv", "--dev-sample", "every:4", "--test-sample", "every:5", "--n", 200,
                "--bits", 12, "-o", "sweep")
        first = run(*base, "--json")
        self.assertEqual(first.code, DONE, first)
        report = json.loads(first.out)
        self.assertEqual([entry["kernel"] for entry in report["kernels"]], ["topk:2", "component", "representative"])
        best = max(entry["dev"]["certified_accuracy"] for entry in report["kernels"])
        self.assertEqual(report["chosen"], next(e["kernel"] for e in report["kernels"] if e["dev"]["certified_accuracy"] == best))
        for kernel in ("topk-2", "component", "representative"):
            for file in (f"dev.ngram.{kernel}.safetensors", f"dev.ngram.{kernel}.jsonl", f"test.ngram.{kernel}.jsonl", f"dev.{kernel}.lex"):
                self.assertTrue(exists(f"sweep/{file}"), file)
            self.assertFalse(exists(f"sweep/test.ngram.{kernel}.safetensors"), "one model serves both data sets")
            self.ok(run("verify", f"sweep/test.ngram.{kernel}.jsonl"))
        for entry in report["kernels"]:
            kernel = entry["kernel"].replace(":", "-")
            self.agrees_with_verbs(entry, kernel)
        (test_cli.temporary / "sweep/test.ngram.component.jsonl").unlink()
        again = run(*base, "--json", "--quiet")
        self.assertEqual((again.code, again.err, json.loads(again.out)), (DONE, "", report))
        table = self.ok(run(*base, "--quiet"))
        self.assertRegex(table, rf"\n\* {report['chosen']} ")
        self.assertEqual(table.count("\n  topk:2 ") + table.count("\n* topk:2 "), 1)

    def agrees_with_verbs(self, entry, kernel):
        """the figures of a kernel are those of certify and lexicon stats with the same options"""
        lex, model = f"sweep/dev.{kernel}.lex", f"sweep/dev.ngram.{kernel}.safetensors"
        for data, sample in (("dev", "every:4"), ("test", "every:5")):
            alone = json.loads(self.ok(run("certify", "--model", model, "--lexicon", lex, "--data", f"demo/{data}.tsv", "--sample", sample,
                                           "--n", 200, "--json")))
            self.assertEqual(entry[data], {key: alone[key] for key in entry[data]})
        survey = json.loads(self.ok(run("lexicon", "stats", lex, "--data", "demo/dev.tsv", "--sample", "every:4", "--json")))
        self.assertEqual(entry["certifiable"], survey["data"]["products"][-1]["share_above_half"])

    def test_other_training(self):
        """models that were trained with other options or texts are not used again: refused, with what differs; nothing is lost"""
        base = ("sweep", "--kernels", "component", "--arch", "cnn", "--lexicon", "c.lex", "--data", "demo/train.tsv", "--dev", "demo/dev.tsv",
                "--dim", 4, "--filters", 4, "--hidden", 0, "--n", 50, "--quiet", "-o", "sweep4")
        model = test_cli.temporary / "sweep4/dev.cnn.component.safetensors"
        table = self.ok(run(*base, "--epochs", 1))
        before = model.read_bytes()
        self.ok(run("train", "--arch", "cnn", "--lexicon", "sweep4/dev.component.lex", *base[7:11], "--dim", 4, "--filters", 4, "--hidden", 0,
                    "--epochs", 1, "-o", "alone.model"))
        self.assertEqual((test_cli.temporary / "alone.model").read_bytes() == before, True, "the model of safer train")
        for more, what in ((("--epochs", 2), "options.epochs"), (("--epochs", 1, "--rate", 0.1), "options.rate"), ((), "options.epochs"),
                           (("--epochs", 1, "--limit", 100), "train")):
            self.refused(run(*base, *more), INPUT, "sweep4/dev.cnn.component.safetensors", f"another {what};")
            self.assertEqual(model.read_bytes(), before)
        self.assertEqual(self.ok(run(*base, "--epochs", 1)), table)
        for path in model.parent.glob("dev.cnn.component.*"):
            path.unlink()
        self.ok(run(*base, "--epochs", 2))
        self.assertNotEqual(model.read_bytes(), before)

    def test_interrupted(self):
        """a sweep that was interrupted while it trained, then while it certified, resumes to the same table and models"""
        base = ("sweep", "--kernels", "topk:2,component", "--arch", "cnn", "--lexicon", "c.lex", "--data", "demo/train.tsv", "--dev", "demo/dev.tsv",
                "--test", "demo/test.tsv", "--dim", 8, "--filters", 8, "--hidden", 0, "--epochs", 40, "--patience", 0,
                "--method", "hoeffding", "--n", 3000, "--threads", 1)
        whole = self.ok(run(*base, "--quiet", "-o", "whole"))
        for file in ("dev.cnn.topk-2.safetensors.checkpoint", "test.cnn.topk-2.jsonl"):
            child = subprocess.Popen([test_cli.program, *map(str, base), "--quiet", "-o", "parts"], cwd=test_cli.temporary,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while not exists(f"parts/{file}") and child.poll() is None:
                time.sleep(0.005)
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=120)
            self.assertEqual(child.returncode, INTERRUPTED, file)
        self.assertEqual(self.ok(run(*base, "--quiet", "-o", "parts")), whole)
        for path in (test_cli.temporary / "whole").iterdir():
            if path.suffix in (".safetensors", ".lex"):
                self.assertEqual((test_cli.temporary / "parts" / path.name).read_bytes(), path.read_bytes(), path.name)

    def test_another_folder(self):
        """a folder with models of another seed or lexicon: exit 3, the file is named"""
        base = ("sweep", "--kernels", "component", "--arch", "ngram", "--lexicon", "c.lex", "--data", "demo/train.tsv", "--dev",
                "demo/dev.tsv", "--dev-sample", "every:8", "--bits", 10, "-o", "sweep3", "--quiet")
        self.ok(run(*base))
        for more, file in ((("--seed", 2), "dev.ngram.component.safetensors"), (("--lexicon", "3.lex"), "dev.component.lex")):
            self.refused(run(*base, *more), INPUT, f"sweep3/{file}", "another folder")

    def test_refused(self):
        """a kernel that does not exist: exit 2, named"""
        result = run("sweep", "--kernels", "magic", "--arch", "ngram", "--lexicon", "c.lex", "--data", "demo/train.tsv", "--dev",
                     "demo/dev.tsv", "-o", "sweep2", "--quiet")
        self.refused(result, USAGE, "magic")


def safetensors(name):
    """The header and all bytes of a model file."""
    content = (test_cli.temporary / name).read_bytes()
    return json.loads(content[8:8 + struct.unpack("<Q", content[:8])[0]]), content


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
