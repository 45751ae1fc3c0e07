#!/usr/bin/env python3
"""Interval bounds as a person would use them: test_cli_ibp.py [TEST...] BUILD_DIR. Run by ctest.

What is certified is put to the test: every text that can be made of a certified one by
exchanging words for synonyms is classified by the model itself.
"""
import csv
import itertools
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import must, read_run  # noqa: E402
from test_cli import DONE, INPUT, USAGE, Case, exists, run, write  # noqa: E402

SYNONYMS = {"good": ["great", "fine"], "bad": ["awful", "poor"], "film": ["movie"], "plot": ["story", "unheard"]}
GOOD, BAD = ("good", "great", "fine"), ("bad", "awful", "poor")
OTHER = ("film", "movie", "plot", "story", "the", "was", "of", "it", "zest")
KINDS = [(defense, arch) for defense in ("ibp-jia", "ibp-huang") for arch in ("cnn", "bow")] + [("exact", "bow")]
ENCODER = pathlib.Path(__file__).resolve().parent / "golden/encoders/roberta"
SMALL = ("--dim", 8, "--hidden", 8, "--epochs", 8, "--rate", 0.01, "--batch", 8, "--min-count", 1)


def make_rows(name, count, start):
    """Texts whose class is that of their good or bad words; some have both, and one in eleven lies."""
    lines = []
    for i in range(start, start + count):
        good = i % 2 == 0
        words = [(GOOD if good else BAD)[i // 2 % 3]] + [OTHER[(i * 7 + 3 * k) % len(OTHER)] for k in range(i % 5)]
        if i % 7 == 0:
            words.append((BAD if good else GOOD)[i % 3])
        lines.append(f"r{i}\t{'pos' if good != (i % 11 == 0) else 'neg'}\t{' '.join(words).capitalize()}.\n")
    write(name, "".join(lines))


def make_files():
    make_rows("train.tsv", 300, 0)
    make_rows("test.tsv", 60, 1000)
    write("table.tsv", "".join(f"{word}\t{' '.join(others)}\n" for word, others in SYNONYMS.items()))
    must("lexicon", "import", "--table", "table.tsv", "--kernel", "representative", "-o", "s.lex")
    for defense, arch in KINDS:
        filters = ("--filters", 8) if arch == "cnn" else ()
        must("train", "--defense", defense, "--arch", arch, "--data", "train.tsv", "--lexicon", "s.lex", *SMALL, *filters,
             "-o", f"{defense}-{arch}.model")
    must("train", "--arch", "ngram", "--data", "train.tsv", "--lexicon", "s.lex", "--bits", 10, "-o", "n.model")
    must("train", "--arch", "context", "--encoder", ENCODER, "--context", 4, "--epochs", 6, "--data", "train.tsv", "--lexicon", "s.lex",
         "--min-count", 1, "-o", "context.model")
    write("sum.json", json.dumps({"arch": "sum", "members": [{"model": "exact-bow.model", "weight": 0.5}, {"model": "ibp-jia-cnn.model"},
                                                             {"model": "n.model", "weight": 0.2, "canonical": "s.lex"}]}))


def sets():
    """Every word and what it may become, itself first."""
    neighbours = {}
    for word, others in SYNONYMS.items():
        for other in others:
            neighbours.setdefault(word, set()).add(other)
            neighbours.setdefault(other, set()).add(word)
    return {word: [word, *sorted(others)] for word, others in neighbours.items()}


def variants(text):
    """Every text that an attacker can make of this one: what takes a word's place is written as it is."""
    parts, choices = re.split(r"([A-Za-z]+)", text), sets()
    words = parts[1::2]
    for choice in itertools.product(*(choices.get(word.lower(), [word.lower()]) for word in words)):
        made = [other.capitalize() if own[0].isupper() else other for own, other in zip(words, choice)]
        yield "".join(part for both in zip(parts[::2], [*made, ""]) for part in both)


class Bounds(Case):
    def rows(self):
        return [line.split("\t") for line in (test_cli.temporary / "test.tsv").read_text().splitlines()]

    def test_exchanged_text_that_folds(self):
        """a word exchanged in front of a combining mark folds to another text, which no certificate speaks of: no attack counts it"""
        write("fold.tsv", "at\tme\n")
        must("lexicon", "import", "--table", "fold.tsv", "--protect", "none", "--fold", "nfkc,case,ignorable", "--kernel", "representative", "-o", "fold.lex")
        write("fold-train.tsv", "".join(f"a{i}\tc0\tat zest me\nb{i}\tc1\todd m\u00e9\n" for i in range(20)))
        must("train", "--arch", "context", "--encoder", ENCODER, "--context", 2, "--epochs", 3, "--min-count", 1, "--data", "fold-train.tsv",
             "--lexicon", "fold.lex", "-o", "fold.model")
        write("fold-test.tsv", "x\tc0\tat\u0301\ny\tc0\tat\n")
        model = ("--model", "fold.model", "--lexicon", "fold.lex", "--data", "fold-test.tsv")
        must("certify", "--method", "ibp", *model, "-o", "fold.jsonl")
        write("mark.txt", "me\u0301\n")
        answered = run("predict", "--model", "fold.model", "--lexicon", "fold.lex", "--method", "ibp", "mark.txt")
        self.assertIn("c1", answered.out)
        attacked = run("attack", "--against", "fold.jsonl", *model, "--json")
        out = attacked.out + attacked.err
        self.assertEqual(attacked.code, DONE, out)
        found = json.loads(attacked.out)
        self.assertEqual((found["texts"], found["violations"]), (2, 0), out)

    def certify(self, model, output, *more):
        return run("certify", "--method", "ibp", "--model", model, "--lexicon", "s.lex", "--data", "test.tsv", "-o", output, *more)

    def classify(self, model, texts):
        """The model's own answers: clean accuracy is a matter of the data, so records tell them."""
        write("ask.tsv", "".join(f"{i}\tpos\t{text}\n" for i, text in enumerate(texts)))
        if exists("ask.jsonl"):
            os.unlink(test_cli.temporary / "ask.jsonl")
        self.assertEqual(run("certify", "--method", "ibp", "--model", model, "--lexicon", "s.lex", "--data", "ask.tsv",
                             "-o", "ask.jsonl").code, DONE)
        return [record["base"] for record in read_run("ask.jsonl")[1]]

    def test_attacked(self):
        """attack --against attacks the model itself, and finds nothing"""
        model = "ibp-jia-bow.model"
        self.assertEqual(self.certify(model, "bounds.jsonl").code, DONE)
        done = run("attack", "--against", "bounds.jsonl", "--model", model, "--lexicon", "s.lex", "--data", "test.tsv", "--json")
        self.assertEqual(done.code, DONE, done.err)
        found = json.loads(done.out)
        certified = [r for r in read_run("bounds.jsonl")[1] if r["certified"]]
        self.assertEqual((found["certified"], found["exact"], found["sampled"], found["violations"], found["limited"]),
                         (len(certified), len(certified), 0, 0, 0))
        self.assertGreater(found["queries"], len(certified))

    def test_report(self):
        """a report of bounds has no votes: margins instead, and only the plots that apply"""
        model = "ibp-jia-cnn.model"
        self.assertEqual(self.certify(model, "shown.jsonl").code, DONE)
        self.ok(run("certify", "--model", model, "--lexicon", "s.lex", "--data", "test.tsv", "-o", "votes.jsonl"))
        self.ok(run("report", "shown.jsonl", "--data", "test.tsv", "--lexicon", "s.lex", "-o", "shown.html", "--svg", "plots", "--csv", "tables"))
        self.assertEqual(sorted(os.listdir(test_cli.temporary / "plots")), ["accuracy.svg", "radii.svg", "radius.svg"])
        page = (test_cli.temporary / "shown.html").read_text()
        found = read_run("shown.jsonl")[1]
        certified = sum(record["certified"] for record in found) * 10000 // len(found)
        self.assertTrue(0 < certified < 10000)
        self.assertIn(f">{certified // 100}.{certified % 100:02}%<", page)
        self.assertNotIn("<dt>smoothed</dt>", page)
        data, = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])["runs"]
        with open(test_cli.temporary / "tables/texts.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        for record, row, shown in zip(found, rows, data["margin"], strict=True):
            margin = min(record["margins"].values())
            self.assertEqual((row["bound"], row["q"], float(row["margin"])), ("", "", margin))
            self.assertTrue(0 <= margin - shown / 10000 < 1e-4 + 1e-12, (margin, shown))
        self.ok(run("report", "shown.jsonl", "votes.jsonl", "-o", "both.html", "--svg", "both"))
        self.assertEqual(sorted(os.listdir(test_cli.temporary / "both")),
                         ["accuracy.svg", "margin-2.svg", "products.svg", "queries.svg", "radii.svg", "radius.svg"])
        both = (test_cli.temporary / "both/queries.svg").read_text()
        self.assertIn('class="curve r1"', both)
        self.assertNotIn('class="curve r0"', both)

    def test_exhaustive(self):
        """every certified text keeps its answer under every substitution"""
        for model, arch in [(f"{defense}-{arch}.model", arch) for defense, arch in KINDS] + [("sum.json", "sum"), ("context.model", "context")]:
            done = self.certify(model, f"{model}.jsonl", "--json")
            self.assertEqual(done.code, DONE, done)
            summary = json.loads(done.out)
            config, found = read_run(f"{model}.jsonl")
            self.assertEqual((config["method"], config["model"]["arch"]), ("ibp", arch))
            self.assertFalse({"n", "n0", "delta", "alpha", "seed"} & set(config))
            self.assertEqual(summary["queries"], 0)
            self.assertGreater(summary["certified_accuracy"], 0.5, model)
            self.assertEqual(summary["certified_accuracy"], sum(r["certified"] for r in found) / len(found))
            texts, answers = [], []
            for row, record in zip(self.rows(), found):
                adds = config.get("additive", False)
                self.assertEqual(adds, model in ("exact-bow.model", "context.model"))
                self.assertTrue(adds or record["radius"] == ("all" if record["certified"] else "0"))
                self.assertEqual(record["certified"], all(m > 0 for m in record["margins"].values()))
                self.assertEqual(record["target"], row[1])
                self.assertTrue(record["exact"] and record["queries"] == 0 and record["prediction"] == record["base"])
                if record["certified"]:
                    made = list(variants(row[2]))
                    texts += made
                    answers += [row[1]] * len(made)
            self.assertGreater(len(texts), 200)
            self.assertLess(summary["certified_accuracy"], 1)
            self.assertEqual(self.classify(model, texts), answers)

    def test_context(self):
        """words in context: certified, verified, attacked, answered and summed up as other models that add up"""
        with_model = ("--model", "context.model", "--lexicon", "s.lex", "--data", "test.tsv")
        self.assertEqual(self.certify("context.model", "context.jsonl", "--radius", 2).code, DONE)
        config, found = read_run("context.jsonl")
        self.assertTrue(config["additive"] and config["model"]["arithmetic"])
        self.assertTrue(all(r["slots"] == r["visible"] for r in found))
        self.ok(run("verify", "context.jsonl"))
        self.assertIn("the model gives the same again", self.ok(run("verify", "context.jsonl", *with_model)))
        attacked = run("attack", "--against", "context.jsonl", *with_model, "--json")
        self.assertEqual(json.loads(attacked.out)["violations"], 0)
        write("with-context.json", json.dumps({"arch": "sum", "members": [{"model": "context.model", "weight": 2}, {"model": "exact-bow.model"},
                                                                          {"model": "n.model", "weight": 0.2, "canonical": "s.lex"}]}))
        self.ok(run("model", "fit", "--model", "with-context.json", "--data", "train.tsv", "--lexicon", "s.lex", "--bounds", "-o", "fitted-context.json"))
        self.ok(self.certify("with-context.json", "with-context.jsonl"))
        self.assertTrue(read_run("with-context.jsonl")[0]["additive"])
        self.assertIn("its own: the exact worst case", self.ok(run("model", "show", "context.model")))
        must("lexicon", "import", "--table", "table.tsv", "--kernel", "component", "-o", "component.lex")
        done = run("certify", "--method", "ibp", "--model", "context.model", "--lexicon", "component.lex", "--data", "test.tsv", "-o", "none.jsonl")
        self.assertEqual(done.code, USAGE)
        self.assertIn("bounds of context need the lexicon it was trained with", done.err)
        train = ("train", "--arch", "context", "--data", "train.tsv", "-o", "none.model", "--encoder", ENCODER)
        for words, more in (("--lexicon is not given", ()), ("needs one with the kernel representative", ("--lexicon", "component.lex")),
                            ("--context is 0; it must be from 1 to 256", ("--lexicon", "s.lex", "--context", 0)),
                            ("which is for the CPU: a GPU computes in bf16", ("--lexicon", "s.lex", "--device", "cuda", "--precision", "f32"))):
            done = run(*train, *more)
            self.assertEqual(done.code, USAGE, done)
            self.assertIn(words, done.err)
        self.assertFalse(exists("none.model"))

    def test_curve(self):
        """where words add up there is a radius: within it no exchange changes the answer, one more does"""
        model = "plain-bow.model"  # not made robust: it has more texts in between
        must("train", "--arch", "bow", "--data", "train.tsv", "--dim", 8, "--hidden", 0, "--epochs", 8, "--rate", 0.01, "--batch", 8,
             "--min-count", 1, "-o", model)
        done = self.certify(model, "curve.jsonl", "--radius", 1, "--json")
        self.assertEqual(done.code, DONE, done)
        summary, (config, found) = json.loads(done.out), read_run("curve.jsonl")
        self.assertTrue(config["additive"])
        texts, answers = [], []
        for row, record in zip(self.rows(), found):
            radius = math.inf if record["radius"] == "all" else int(record["radius"])
            words, made = re.findall(r"[A-Za-z]+", row[2]), []
            for text in variants(row[2]):
                changes = sum(a.lower() != b.lower() for a, b in zip(words, re.findall(r"[A-Za-z]+", text)))
                made.append((text, changes))
            texts += [text for text, _ in made]
            answers += [(record, changes, radius) for _, changes in made]
            self.assertEqual(record["certified"], radius >= 1)
            self.assertEqual([record["margin_at"][0], record["margin_at"][-1]],
                             [max(record["margin_at"]), min(record["margins"].values())])
        self.assertEqual(len(texts), len(answers))
        fell = {}
        for label, (record, changes, radius) in zip(self.classify(model, texts), answers):
            if changes <= radius and radius > 0:
                self.assertEqual(label, record["target"])
            if changes == radius + 1 and label != record["target"]:
                fell[record["id"]] = True
        between = [r for r in found if r["radius"] not in ("0", "all")]
        self.assertTrue(between)
        self.assertEqual([r["id"] for r in between if r["id"] not in fell], [])
        self.assertEqual(summary["certified_at"]["1"], sum(r["certified"] for r in found) / len(found))
        self.assertGreater(summary["certified_at"]["1"], summary["certified_at"]["all"])
        table = self.certify(model, "shown-curve.jsonl", "--radius", 1).out
        self.assertIn("at the asked radius", table)
        self.assertRegex(table, r"\n +1 +\d+\.\d\d% +\d+\.\d\d%\n")
        self.assertIn("claimed: at most 1 word changed, by interval bounds\n", run("verify", "curve.jsonl").out)
        text = between[0]["id"]
        asked = next(row[2] for row in self.rows() if row[0] == text)
        answer, = json.loads(run("predict", "--method", "ibp", "--model", model, "--lexicon", "s.lex", "--json", asked).out)["answers"]
        target = between[0]["target"] == between[0]["prediction"]
        self.assertTrue(target and str(answer["radius"]) == between[0]["radius"], answer)
        attacked = run("attack", "--against", "curve.jsonl", "--model", model, "--lexicon", "s.lex", "--data", "test.tsv", "--json")
        self.assertEqual(json.loads(attacked.out)["violations"], 0)
        self.ok(run("report", "curve.jsonl", "-o", "curve.html"))
        self.assertIn("What words give this model adds up", (test_cli.temporary / "curve.html").read_text())

    def test_table(self):
        """what is printed speaks of no votes, and an existing file stays"""
        done = self.certify("ibp-jia-cnn.model", "t.jsonl")
        self.assertRegex(done.out, r"\Atexts +60\nclean +\d+\.\d\d%  the model itself\ncertified and answered +\d+\.\d\d%  whatever words")
        self.assertNotIn("smoothed", done.out)
        self.assertEqual(self.certify("ibp-jia-cnn.model", "t.jsonl").code, USAGE)

    def test_verify(self):
        """verify holds records to their margins, and with the model the margins themselves"""
        model = "ibp-jia-bow.model"
        self.certify(model, "v.jsonl")
        with_model = ("--model", model, "--lexicon", "s.lex", "--data", "test.tsv")
        self.assertEqual(run("verify", "v.jsonl").code, DONE)
        self.assertEqual(run("verify", "v.jsonl", *with_model).code, DONE)
        other = run("verify", "v.jsonl", "--model", "ibp-huang-bow.model", *with_model[2:])
        self.assertEqual(other.code, INPUT, other)
        text = (test_cli.temporary / "v.jsonl").read_text()
        write("edited.jsonl", text.replace('"certified":true', '"certified":false', 1))
        self.assertIn("the check does not match", run("verify", "edited.jsonl").err)

    def test_resume(self):
        """a run that was cut is resumed and has the same records"""
        self.certify("ibp-huang-cnn.model", "whole.jsonl")
        text = (test_cli.temporary / "whole.jsonl").read_text()
        write("part.jsonl", "".join(text.splitlines(keepends=True)[:30]) + '{"row":3')
        done = self.certify("ibp-huang-cnn.model", "part.jsonl", "--resume", "--json")
        self.assertEqual((done.code, json.loads(done.out)["resumed"]), (DONE, 29))
        plain = re.compile(r',"seconds":[^,]*')
        self.assertEqual(plain.sub("", (test_cli.temporary / "part.jsonl").read_text()), plain.sub("", text))

    def test_other_ways(self):
        """the model files are ordinary ones: sampling and predict work"""
        common = ("--model", "ibp-jia-cnn.model", "--lexicon", "s.lex")
        done = run("certify", *common, "--data", "test.tsv", "--json")
        self.assertEqual(done.code, DONE, done)
        self.assertGreater(json.loads(done.out)["certified_accuracy"], 0.5)
        done = run("predict", "--method", "ibp", *common, "--json", "A good film.", "The awful plot was poor.")
        self.assertEqual(done.code, DONE, done)
        self.assertIn("pos", done.out)
        self.assertEqual(run("certify", *common, "--method", "ibp", "--data", "test.tsv", "--require", 1).code, 1)

    def test_sum(self):
        """a sum of models is predicted, certified by draws, attacked, verified; and refused where it cannot be bounded"""
        common = ("--model", "sum.json", "--lexicon", "s.lex")
        done = run("predict", *common, "--json", "A good film.", "The awful plot was poor.")
        self.assertEqual((done.code, done.err), (DONE, ""), done)
        self.assertEqual([answer["label"] for answer in json.loads(done.out)["answers"]], ["pos", "neg"])
        done = run("certify", *common, "--data", "test.tsv", "--json")
        self.assertEqual(done.code, DONE, done)
        self.assertGreater(json.loads(done.out)["certified_accuracy"], 0.5)
        self.ok(self.certify("sum.json", "of-sum.jsonl"))
        self.ok(run("verify", "of-sum.jsonl", *common, "--data", "test.tsv"))
        done = run("attack", "--against", "of-sum.jsonl", *common, "--data", "test.tsv", "--json")
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(json.loads(done.out)["violations"], 0)
        must("lexicon", "import", "--table", "table.tsv", "--kernel", "component", "-o", "other.lex")
        done = run("certify", "--method", "ibp", "--model", "sum.json", "--lexicon", "other.lex", "--data", "test.tsv", "-o", "none.jsonl")
        self.assertEqual(done.code, USAGE, done)
        self.assertIn("member 3 of the sum reads texts in the canonical form of another lexicon", done.err)
        write("plain.json", json.dumps({"arch": "sum", "members": [{"model": "exact-bow.model"}, {"model": "n.model"}]}))
        done = self.certify("plain.json", "none.jsonl")
        self.assertEqual(done.code, USAGE, done)
        self.assertIn("cannot look into member 2 of the sum: it is ngram", done.err)
        write("broken.json", '{"arch": "sum", "members": [{"model": "gone.model"}]}')
        done = self.certify("broken.json", "none.jsonl")
        self.assertEqual(len(done.err.splitlines()), 1, done)
        self.assertIn("gone.model", done.err)
        self.assertFalse(exists("none.jsonl"))

    def test_fitted_sum(self):
        """weights of a sum that are found on texts: the program says what certify counts then, for any number of threads"""
        write("poor.json", json.dumps({"arch": "sum", "members": [{"model": "exact-bow.model", "weight": 0.01}, {"model": "ibp-jia-cnn.model"},
                                                                  {"model": "ibp-huang-bow.model", "weight": 3},
                                                                  {"model": "n.model", "weight": 0.01, "canonical": "s.lex"}]}))

        def told(*arguments):
            done = run(*arguments)
            self.assertEqual(done.code, DONE, done)
            return json.loads(done.out)

        fit = ["model", "fit", "--model", "poor.json", "--data", "train.tsv", "--lexicon", "s.lex", "--bounds", "--json"]
        found = told(*fit, "--threads", 1, "-o", "fitted.json")
        self.assertEqual(told(*fit, "--threads", 3, "-o", "again.json")["weights"], found["weights"])
        self.assertEqual(len(found["weights"]), 4)
        members = json.loads((test_cli.temporary / "fitted.json").read_text())["members"]
        self.assertEqual([m["weight"] for m in members], [w for w in found["weights"] if w > 0])
        self.assertGreaterEqual(found["after"], found["before"])
        for name, share in (("poor.json", found["before"]), ("fitted.json", found["after"])):
            certified = told("certify", "--method", "ibp", "--model", name, "--lexicon", "s.lex", "--data", "train.tsv", "--json")
            self.assertAlmostEqual(certified["certified_accuracy"], share, places=9)
        found = told("model", "fit", "--model", "poor.json", "--data", "train.tsv", "--json", "-o", "plain.json")
        clean = told("certify", "--method", "ibp", "--model", "plain.json", "--lexicon", "s.lex", "--data", "train.tsv", "--json")
        self.assertAlmostEqual(clean["clean_accuracy"], found["after"], places=9)
        (test_cli.temporary / "elsewhere").mkdir()
        told(*fit, "-o", "elsewhere/fitted.json")
        self.assertEqual(told("certify", "--method", "ibp", "--model", "elsewhere/fitted.json", "--lexicon", "s.lex", "--data", "train.tsv",
                              "--json")["certified_accuracy"], certified["certified_accuracy"])
        for words, arguments in (("is no sum of models", ("--model", "n.model", "-o", "x.json")),
                                 ("need a lexicon", ("--model", "poor.json", "--bounds", "-o", "x.json"))):
            done = run("model", "fit", "--data", "train.tsv", *arguments)
            self.assertEqual(done.code, USAGE, done)
            self.assertIn(words, done.err)

    def test_seeds(self):
        """several seeds at once: the models of one by one, a sum whose weights certify most of dev, and what is there is kept"""
        def told(*arguments):
            done = run(*arguments)
            self.assertEqual(done.code, DONE, done)
            return json.loads(done.out)

        def bytes_of(*names):
            return [(test_cli.temporary / name).read_bytes() for name in names]

        (test_cli.temporary / "seeds").mkdir()
        make_rows("dev.tsv", 60, 2000)
        names = [f"seeds/all.{seed}.safetensors" for seed in (7, 8, 9)]
        bow = ["train", "--arch", "bow", "--data", "train.tsv", "--dev", "dev.tsv", "--lexicon", "s.lex", *SMALL, "--json"]
        for options, method in ((["--defense", "ibp-jia"], ["--method", "ibp"]), ([], [])):
            train = [*bow, *options]
            found = told(*train, "--seed", 7, "--seeds", 3, "-o", "seeds/all.json")
            self.assertEqual((found["seed"], found["seeds"], found["texts"]), (7, 3, 300))
            members = json.loads(bytes_of("seeds/all.json")[0])["members"]
            self.assertLessEqual({m["model"] for m in members}, {name.split("/")[1] for name in names})
            certified = told("certify", *method, "--model", "seeds/all.json", "--lexicon", "s.lex", "--data", "dev.tsv", "--json")
            self.assertAlmostEqual(certified["certified_accuracy"], found["dev_accuracy"], places=9)
            for seed, name in zip((7, 8, 9), names):  # each is what training it alone gives
                told(*train, "--seed", seed, "-o", "alone.model")
                self.assertEqual(bytes_of("alone.model"), bytes_of(name))
            before = bytes_of("seeds/all.json", *names)
            (test_cli.temporary / names[1]).unlink()
            (test_cli.temporary / "seeds/all.json").unlink()
            kept = (test_cli.temporary / names[0]).stat().st_mtime_ns
            told(*train, "--seed", 7, "--seeds", 3, "--resume", "--threads", 3, "-o", "seeds/all.json")
            self.assertEqual(bytes_of("seeds/all.json", *names), before)
            self.assertEqual((test_cli.temporary / names[0]).stat().st_mtime_ns, kept)
        done = run(*bow, "--defense", "ibp-huang", "--seed", 7, "--seeds", 3, "--resume", "-o", "seeds/all.json")
        self.assertEqual((done.code, len(done.err.splitlines())), (INPUT, 1), done)
        self.assertIn("all.7.safetensors: another model", done.err)
        equal = told("train", "--arch", "ngram", "--bits", 10, "--data", "train.tsv", "--seeds", 2, "--json", "-o", "seeds/n.json")
        self.assertEqual([m["weight"] for m in json.loads(bytes_of("seeds/n.json")[0])["members"]], [1, 1])
        self.assertEqual(equal["texts"], 300)
        for words, arguments in (("--seeds is 0; it must be from 1 to 64", ("--seeds", 0, "-o", "x.json")),
                                 ("whose name ends with .json", ("--seeds", 2, "-o", "x.safetensors"))):
            done = run(*bow, *arguments)
            self.assertEqual((done.code, len(done.err.splitlines())), (USAGE, 1), done)
            self.assertIn(words, done.err)

    def test_misuse(self):
        """wrong options and models: one line that names them, and no file"""
        done = self.certify("n.model", "none.jsonl")
        self.assertEqual(done.code, USAGE)
        self.assertIn("bow, cnn or context, or a sum; this one is ngram", done.err)
        for option in (("--n", 100), ("--n0", 10), ("--delta", 0.1), ("--alpha", 0.1), ("--family-wise",)):
            done = self.certify("ibp-jia-cnn.model", "none.jsonl", *option)
            self.assertEqual(done.code, USAGE, done)
            self.assertIn(f"{option[0]}: --method ibp draws nothing", done.err)
        self.assertFalse(exists("none.jsonl"))
        train = ("train", "--data", "train.tsv", "-o", "none.model")
        for words, arguments in (("ibp-jia, ibp-huang or exact", ("--arch", "cnn", "--defense", "fgsm", "--lexicon", "s.lex")),
                                 ("lexicon", ("--arch", "cnn", "--defense", "ibp-jia")),
                                 ("not ngram", ("--arch", "ngram", "--defense", "ibp-jia", "--lexicon", "s.lex")),
                                 ("triplet", ("--arch", "cnn", "--triplet", 1)),
                                 ("kappa", ("--arch", "cnn", "--defense", "ibp-jia", "--lexicon", "s.lex", "--kappa", 2))):
            done = run(*train, *arguments)
            self.assertEqual(done.code, USAGE, done)
            self.assertEqual(len(done.err.splitlines()), 1, done)
            self.assertIn(words, done.err)
        done = run("sweep", "--kernels", "component", "--arch", "bow", "--lexicon", "s.lex", "--data", "train.tsv", "--dev", "test.tsv",
                   "--method", "ibp", "-o", "sweep")
        self.assertEqual(done.code, USAGE)
        self.assertIn("--method ibp", done.err)

    def test_interrupted_training(self):
        """a training that was stopped is resumed and writes the same file, on any number of threads"""
        arguments = ["train", "--defense", "ibp-jia", "--arch", "cnn", "--data", "train.tsv", "--lexicon", "s.lex", *SMALL, "--triplet", "0.1"]
        must(*arguments, "--threads", 1, "-o", "whole.model")
        slow = [test_cli.program, *map(str, arguments), "--threads", "2", "-o", "parts.model"]
        process = subprocess.Popen(slow, cwd=test_cli.temporary, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3000):
            if exists("parts.model.checkpoint") or process.poll() is not None:
                break
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        must(*arguments, "--threads", 2, "--resume", "-o", "parts.model")
        self.assertEqual((test_cli.temporary / "parts.model").read_bytes(), (test_cli.temporary / "whole.model").read_bytes())


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
