#!/usr/bin/env python3
"""Attacks models and certificates as a person would: test_cli_attack.py [TEST...] BUILD_DIR.
Run by ctest.

What a record claims is looked up again: its words in the lexicon's export, its answer with
the model, asked as safer asks it.
"""
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import UNMET, must, read_run, seal, without_times, xxh64  # noqa: E402
from test_cli import DONE, INPUT, USAGE, Case, lexicon, run, write  # noqa: E402

METHODS = ("textfooler", "genetic", "pwws", "random")
ROOT = pathlib.Path(__file__).resolve().parent.parent
BASE = ("--model", "plain.model", "--lexicon", "k.lex", "--data", "demo/test.tsv")
SMOOTHED = ("--model", "k.model", "--lexicon", "k.lex", "--data", "demo/test.tsv", "--smoothed")
SMALL = ("--population", 10, "--iterations", 4)

# A remote model: "good" or "fine" make it 1. It gives labels, and for texts with
# "mute" none.
PROGRAM = """\
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    labels = [None if "mute" in text else int("good" in text or "fine" in text) for text in request["texts"]]
    print(json.dumps({"id": request["id"], "labels": labels}), flush=True)
"""


def make_files():
    build = pathlib.Path(test_cli.program).parent
    subprocess.run([build / "demo-reviews", test_cli.temporary / "demo", "--train", "500", "--dev", "80", "--test", "60"],
                   check=True, capture_output=True)
    common = ("--data", "demo/train.tsv", "--dev", "demo/dev.tsv", "--bits", 14)
    for name, kernel in (("c", "component"), ("k", "topk:4"), ("r", "representative")):
        must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1,
             "--kernel", kernel, "-o", f"{name}.lex")
        must("train", "--arch", "ngram", *common, "--lexicon", f"{name}.lex", "-o", f"{name}.model")
        must("certify", "--model", f"{name}.model", "--lexicon", f"{name}.lex", "--data", "demo/test.tsv", "-o", f"{name}.jsonl")
    must("train", "--arch", "ngram", *common, "-o", "plain.model")
    write("model.py", PROGRAM)


ESCAPES = {"\\\\": "\\", "\\n": "\n", "\\t": "\t", "\\r": "\r"}


def rows_of(name):
    for line in (test_cli.temporary / name).read_text().splitlines():
        yield [re.sub(r"\\[\\ntr]", lambda found: ESCAPES[found[0]], part) for part in line.split("\t")]


def escaped(text):
    return "".join({plain: code for code, plain in ESCAPES.items()}.get(c, c) for c in text)


def make_liar(source, target):
    """A lexicon whose overlaps are all said to be 1: the layout is in src/lexicon/lexfile.c."""
    image = bytearray((test_cli.temporary / source).read_bytes())
    assert struct.unpack("<Q", image[-8:])[0] == xxh64(bytes(image[:-8])), "this is not how a lexicon is sealed"
    words, = struct.unpack_from("<I", image, 24)
    offset, length = struct.unpack_from("<2Q", image, 48 + 13 * 16)
    assert length == 8 * words
    image[offset:offset + length] = struct.pack(f"<{words}d", *[1.0] * words)
    image[-8:] = struct.pack("<Q", xxh64(bytes(image[:-8])))
    (test_cli.temporary / target).write_bytes(image)


def is_noun(word, nouns):
    """As WordNet's rules for the plural have it."""
    rules = (("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y"))
    return word in nouns or any(word.endswith(end) and word[:-len(end)] + base in nouns for end, base in rules)


class Attack(Case):
    made = 0

    def fresh(self):
        Attack.made += 1
        return f"attack{Attack.made}.jsonl"

    def attacked(self, *arguments):
        """A run: its summary, configuration and records."""
        name = self.fresh()
        summary = json.loads(self.ok(run("attack", *arguments, "-o", name, "--json", "--quiet")))
        return summary, *read_run(name)


class Model(Attack):
    def test_records(self):
        """every success is one: synonyms, in place, another answer when the model is asked again"""
        synonyms = self.synonyms("k.lex")
        texts = list(rows_of("demo/test.tsv"))
        for method in METHODS:
            summary, config, records = self.attacked(*BASE, "--method", method, *SMALL)
            self.assertEqual((config["kind"], config["method"], config["smoothed"]), ("attack", method, False))
            won = [r for r in records if r["outcome"] == "succeeded"]
            self.assertGreater(len(won), 3, method)
            self.assertEqual([r["row"] for r in records], list(range(1, len(texts) + 1)))
            for r in won:
                text, shift = texts[r["row"] - 1][2].encode(), 0
                self.assertEqual(len(r["changes"]), r["changed"])
                for change in r["changes"]:
                    old, new = change["from"].encode(), change["to"].encode()
                    at = change["byte"] + shift
                    self.assertEqual(text[at:at + len(old)], old)
                    self.assertIn(change["to"].lower(), synonyms[change["from"].lower()])
                    text = text[:at] + new + text[at + len(old):]
                    shift += len(new) - len(old)
                self.assertEqual(text.decode(), r["text"])
                self.assertNotEqual(r["after"], r["label"])
            # The new texts, certified: "base" is the model's own answer.
            write("new.tsv", "".join(f"{r['id']}\t{r['label']}\t{escaped(r['text'])}\n" for r in won))
            name = self.fresh()
            self.ok(run("certify", "--model", "plain.model", "--lexicon", "k.lex", "--data", "new.tsv", "--n", 1, "-o", name, "--quiet"))
            self.assertEqual([r["base"] for r in read_run(name)[1]], [r["after"] for r in won])
            for r in records:
                self.assertEqual(r["outcome"] == "skipped", r["before"] != r["label"])
                self.assertEqual(r["text"] is None, r["outcome"] != "succeeded")
                self.assertEqual(r["reason"] is None, r["outcome"] == "succeeded")

    def test_summary(self):
        """the summary is what the records say; the table says the same"""
        name = self.fresh()
        summary = json.loads(self.ok(run("attack", *BASE, "-o", name, "--json", "--quiet")))
        _, records = read_run(name)
        skipped = sum(r["outcome"] == "skipped" for r in records)
        won = [r for r in records if r["outcome"] == "succeeded"]
        n, attacked = len(records), len(records) - skipped
        self.assertEqual((summary["examples"], summary["skipped"], summary["attacked"], summary["succeeded"]), (n, skipped, attacked, len(won)))
        self.assertAlmostEqual(summary["clean_accuracy"], attacked / n)
        self.assertAlmostEqual(summary["adversarial_accuracy"], (attacked - len(won)) / n)
        self.assertAlmostEqual(summary["success_rate"], len(won) / attacked)
        low, high = summary["adversarial_interval"]
        self.assertTrue(low < summary["adversarial_accuracy"] < high)
        self.assertAlmostEqual(summary["mean_changed"], sum(r["changed"] for r in won) / len(won))
        self.assertAlmostEqual(summary["mean_changed_share"], sum(r["changed"] / r["words"] for r in won) / len(won))
        self.assertEqual(summary["queries"], sum(r["queries"] for r in records))
        self.assertEqual((summary["seed"], summary["method"], summary["resumed"]), (1, "textfooler", 0))
        table = self.ok(run("attack", *BASE, "--quiet"))
        cut = int(1e4 * summary["adversarial_accuracy"] + 1e-9) / 100
        self.assertIn(f"adversarial  {cut:6.2f}%", table)
        self.assertIn("seed 1", table)
        self.assertNotIn("[-", table)

    def test_the_same(self):
        """threads, batches and resuming change nothing"""
        for more in (("--method", "genetic", *SMALL), ("--method", "textfooler")):
            name, other = self.fresh(), self.fresh()
            self.ok(run("attack", *BASE, *more, "-o", name, "--threads", 1, "--quiet"))
            self.ok(run("attack", *BASE, *more, "-o", other, "--threads", 3, "--batch", 5, "--quiet"))
            self.assertEqual(without_times(name), without_times(other))
            lines = (test_cli.temporary / other).read_text().splitlines(keepends=True)
            write(other, "".join(lines[:20]) + lines[20][:30])
            summary = json.loads(self.ok(run("attack", *BASE, *more, "-o", other, "--resume", "--json", "--quiet")))
            self.assertEqual((summary["resumed"], summary["queries_per_second"]), (19, None))
            self.assertEqual(without_times(name), without_times(other))
            self.refused(run("attack", *BASE, *more, "-o", other, "--quiet"), USAGE, other, "exists")
            self.refused(run("attack", *BASE, *more, "-o", other, "--resume", "--seed", 2, "--quiet"), INPUT, other, "another run")

    def test_limits(self):
        """--radius and --max-queries hold for every record"""
        full, _, _ = self.attacked(*BASE)
        summary, config, records = self.attacked(*BASE, "--radius", 2)
        self.assertEqual(config["radius"], "2")
        self.assertLessEqual(max(r["changed"] for r in records), 2)
        self.assertLess(summary["succeeded"], full["succeeded"])
        summary, config, records = self.attacked(*BASE, "--max-queries", 15)
        self.assertEqual(max(r["queries"] for r in records), 15)
        self.assertEqual(summary["limited"], sum(r["reason"] == "the queries are used up" for r in records))
        self.assertGreater(summary["limited"], 0)

    def test_shown(self):
        """--show, and a terminal: old and new words side by side, coloured there only"""
        out = self.ok(run("attack", *BASE, "--show", 2, "--quiet"))
        self.assertEqual(out.count(" becomes "), 2)
        self.assertRegex(out, r"\[-\w+-\]\{\+\w+\+\}")
        self.assertNotIn("\033", out)
        main, other = pty.openpty()
        child = subprocess.Popen([test_cli.program, "attack", *BASE, "--quiet"], stdout=other, cwd=test_cli.temporary,
                                 env={**os.environ, "NO_COLOR": ""})
        os.close(other)
        seen = b""
        while True:
            try:
                part = os.read(main, 4096)
            except OSError:
                break
            if not part:
                break
            seen += part
        os.close(main)
        self.assertEqual(child.wait(), DONE)
        self.assertEqual(seen.count(b" becomes "), 3)
        self.assertIn(b"\033[31m[-", seen)

    def test_elsewhere(self):
        """a program that gives labels only can be attacked; its silence is no success"""
        write("words.tsv", "good\tfine mute bad\n")
        self.ok(lexicon("import", "--table", "words.tsv", "--kernel", "component", "-o", "words.lex", "--quiet"))
        write("few.tsv", "a\t1\ta good film\nb\t1\tall bad\nc\t0\tnothing here\nd\t1\tgood and mute\n")
        summary, _, records = self.attacked("--model", f"exec:{sys.executable} model.py", "--lexicon", "words.lex", "--data", "few.tsv",
                                            "--workers", 1, "--model-name", "model.py")
        self.assertEqual([r["outcome"] for r in records], ["succeeded", "skipped", "failed", "skipped"])
        self.assertEqual((records[0]["text"], records[0]["after"]), ("a bad film", "0"))
        self.assertEqual((records[3]["before"], records[3]["reason"]), (None, "the classifier gives no answer"))
        self.assertGreater(summary["traffic"]["asked"], 0)

    def test_refused(self):
        """what is missing or impossible is named: exit 2"""
        for arguments, named in ((BASE[2:], "--model"), (BASE[:2] + BASE[4:], "--lexicon"), (BASE[:4], "--data"),
                                 ((*BASE, "--method", "magic"), "magic"), ((*BASE, "--radius", 0), "--radius"), ((*BASE, "--resume"), "-o FILE"),
                                 ((*BASE, "--alpha", 1), "--alpha"), ((*BASE, "--population", 1), "population"), ((*BASE, "--n", 0), "--n"),
                                 ((*BASE, "--against", "k.jsonl", "--method", "pwws"), "--against"),
                                 ((*BASE, "--against", "k.jsonl", "--radius", 2), "--against")):
            self.refused(run("attack", *arguments, "--quiet"), USAGE, named)


class Smoothed(Attack):
    def wordnet(self, nouns):
        folder = test_cli.temporary / "wn"
        folder.mkdir(exist_ok=True)
        for part in ("noun", "verb", "adj", "adv"):
            (folder / f"{part}.exc").write_text("")
            (folder / f"index.{part}").write_text("")
        (folder / "index.noun").write_text("  1 the licence\n" + "".join(f"{word} n 1 0 1 0 00000001\n" for word in nouns))
        return folder

    def test_constraints(self):
        """part of speech, cosine and similarity make attacks weaker; what they let through keeps them; a file says what they were"""
        words = sorted({word for line in self.ok(lexicon("export", "k.lex", "--what", "synonyms")).splitlines() for word in line.split()})
        nouns = set(words[::2])  # every other word, whatever it is
        vectors = {word: (1 if word in nouns else 0.2, 0 if word in nouns else 1) for word in words}
        write("vectors.txt", "".join(f"{word} {a} {b}\n" for word, (a, b) in vectors.items()))
        loose, _, _ = self.attacked(*BASE, "--method", "textfooler")
        for options, members in ((("--same-pos", self.wordnet(nouns)), ["same_pos"]),
                                 (("--vectors", "vectors.txt", "--min-cosine", 0.9), ["vectors", "min_cosine"]),
                                 (("--vectors", "vectors.txt", "--min-similarity", 0.999), ["vectors", "min_similarity"])):
            summary, config, records = self.attacked(*BASE, "--method", "textfooler", *options)
            self.assertLess(summary["succeeded"], loose["succeeded"])
            self.assertGreater(summary["succeeded"], 0)
            self.assertEqual([name for name in ("same_pos", "vectors", "min_cosine", "min_similarity") if name in config], members)
            for change in [change for record in records for change in record["changes"]]:
                before, after = change["from"].lower(), change["to"].lower()
                if "same_pos" in members:
                    self.assertEqual(is_noun(before, nouns), is_noun(after, nouns))
                if "min_cosine" in members:
                    self.assertEqual(before in nouns, after in nouns)
        out = self.ok(run("attack", *BASE, "--vectors", "vectors.txt", "--min-cosine", 0.9, "--min-similarity", 0.5, "--same-pos", "wn"))
        self.assertIn("constraints  the same part of speech, cosine of 0.9 at least, 15 words around similar by 0.5 at least\n", out)

    def test_constraints_refused(self):
        """one line that names the option or the file"""
        folder = self.wordnet(["film"])
        for options, code, words in ((("--min-cosine", 0.5), USAGE, "--vectors FILE is needed"),
                                     (("--vectors", "vectors.txt"), USAGE, "--vectors needs"),
                                     (("--vectors", "vectors.txt", "--min-cosine", 1.5), USAGE, "--min-cosine 1.5"),
                                     (("--same-pos", "wn", "--method", "typo"), USAGE, "--same-pos: --method typo"),
                                     (("--same-pos", "wn", "--against", "k.jsonl"), USAGE, "--same-pos and --against"),
                                     (("--same-pos", "demo"), test_cli.SYSTEM, "index.noun"),
                                     (("--vectors", "demo/test.tsv", "--min-cosine", 0.5), INPUT, "demo/test.tsv")):
            self.refused(run("attack", *BASE, *options), code, words)
        (folder / "index.verb").write_text("film n 1 0\n")
        self.refused(run("attack", *BASE, "--same-pos", "wn"), INPUT, "index.verb, line 1: not a line of WordNet's index")

    def test_smoothed(self):
        """votes, tested successes; never below certified accuracy; exact kernels cost one query"""
        certified = json.loads(self.ok(run("certify", *SMOOTHED[:-1], "--json", "--quiet")))["certified_accuracy"]
        for method in METHODS:
            summary, config, records = self.attacked(*SMOOTHED, "--method", method, *SMALL, "--n", 100)
            self.assertTrue(config["smoothed"])
            self.assertGreaterEqual(summary["adversarial_accuracy"], certified)
        for name in "cr":
            with_name = ("--model", f"{name}.model", "--lexicon", f"{name}.lex", "--data", "demo/test.tsv", "--smoothed")
            summary, _, records = self.attacked(*with_name, *SMALL, "--method", "genetic")
            self.assertEqual(summary["succeeded"], 0)
            if name == "r":
                self.assertEqual({r["queries"] for r in records}, {1})


class Against(Attack):
    def check(self, name, run_name, *more):
        return run("attack", "--against", run_name, "--model", f"{name}.model", "--lexicon", f"{name}.lex", "--data", "demo/test.tsv",
                   *SMALL, "--quiet", *more)

    def test_sound(self):
        """sound certificates of every kernel survive all methods: exit 0"""
        for name in "ckr":
            output = self.fresh()
            summary = json.loads(self.ok(self.check(name, f"{name}.jsonl", "--json", "-o", output)))
            certified = sum(r["radius"] != "0" for r in read_run(f"{name}.jsonl")[1])
            self.assertEqual((summary["certified"], summary["violations"], summary["alarm"]), (certified, 0, False))
            self.assertGreater(certified, 40)
            self.assertEqual(summary["exact"], certified if name == "r" else summary["exact"])
            _, records = read_run(output)
            self.assertEqual(sum("margins" in r for r in records), certified)
            for r in records:
                self.assertEqual(set(r.get("margins", {})) - set(METHODS), set())
            self.assertIn("violations   0,", self.ok(self.check(name, f"{name}.jsonl")))

    def lie(self, name):
        """A run of a lexicon under which nothing is safe, changed to say that no exchange of words matters."""
        config, records = read_run(name)
        for r in records:
            if r["bound"] > 0.5 and r["target"] is not None:
                r.update(q=0.0, q_at=[0.0] * 6, q_radius=0.0, q_next=0.0, radius="all", certified=True)
        write(name, seal(config, records))

    def test_broken(self):
        """a run that lies about its overlaps is found out: exit 1, with the new texts"""
        self.ok(lexicon("import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1, "--kernel",
                        "topk:1", "-o", "one.lex", "--quiet"))
        with_it = ("--model", "plain.model", "--lexicon", "one.lex", "--data", "demo/test.tsv")
        for method, exact in (("adaptive", True), ("binomial", False)):
            name, output = self.fresh(), self.fresh()
            self.ok(run("certify", *with_it, "--method", method, "--n", 500, "-o", name, "--quiet"))
            self.lie(name)
            self.ok(run("verify", name, "--quiet"))  # which believes q, without the lexicon
            self.refused(run("verify", name, *with_it, "--quiet"), INPUT, "line")
            result = run("attack", "--against", name, *with_it, *SMALL, "--json", "--quiet", "-o", output)
            self.assertEqual(result.code, UNMET, result)
            self.assertRegex(result.err, r"^safer: [\d,]+ certificates are broken, which delta does not explain\n$")
            summary = json.loads(result.out)
            self.assertTrue(summary["alarm"])
            self.assertEqual(summary["violations"], len(summary["found"]))
            self.assertEqual(summary["violations_exact"], summary["violations"] if exact else 0)
            found = [r["violation"] for r in read_run(output)[1] if r["violation"]]
            self.assertEqual(len(found), summary["violations"])
            for v in found:
                self.assertTrue(v["proved"] or v["p_value"] <= 1e-6)
            table = run("attack", "--against", name, *with_it, *SMALL, "--quiet")
            self.assertEqual(table.code, UNMET)
            self.assertEqual(table.out.count("no longer wins"), 3)
            believed = f"slots, q, votes and answers of {name}: safer verify with the same model, lexicon and data checks them"
            self.assertEqual(table.out.splitlines()[-1], "not checked: " + believed)
            self.assertEqual(json.loads(result.out)["not_checked"], [believed])

    def test_lying_lexicon(self):
        """a lexicon that lies about its overlaps is not opened: exit 3"""
        make_liar("k.lex", "liar.lex")
        for verb in ("certify", "attack"):
            self.refused(run(verb, "--model", "k.model", "--lexicon", "liar.lex", "--data", "demo/test.tsv", "--quiet"), INPUT, "liar.lex",
                         "its overlaps are not those of its kernel")

    def test_another_run(self):
        """records that were edited, or of another model, lexicon or data: exit 3"""
        self.refused(self.check("k", "c.jsonl"), INPUT, "c.jsonl", "belongs to another")
        self.refused(self.check("k", "k.jsonl", "--limit", 10), INPUT, "belongs to another")
        write("edited.jsonl", (test_cli.temporary / "k.jsonl").read_text().replace('"radius":"1"', '"radius":"2"', 1))
        if (test_cli.temporary / "edited.jsonl").read_text() != (test_cli.temporary / "k.jsonl").read_text():
            self.refused(self.check("k", "edited.jsonl"), INPUT, "edited.jsonl", "line")
        self.refused(self.check("k", "nowhere.jsonl"), 4, "nowhere.jsonl")


class Edits(Attack):
    """Words put in, taken out, replaced by any word; and certificates against them."""

    EDITS = ("insert", "delete", "outoflist")
    DELETING = ("--model", "d.model", "--lexicon", "r.lex", "--data", "demo/test.tsv")

    @classmethod
    def setUpClass(cls):
        must("train", "--arch", "ngram", "--data", "demo/train.tsv", "--dev", "demo/dev.tsv", "--bits", 14, "--lexicon", "r.lex", "--delete",
             0.8, "-o", "d.model")
        must("certify", *cls.DELETING, "--delete", 0.8, "--edits", 2, "-o", "d.jsonl")

    def test_records(self):
        """every success is one: within the radius, in place, and another answer when the model is asked again"""
        texts = list(rows_of("demo/test.tsv"))
        for method in self.EDITS:
            summary, config, records = self.attacked(*BASE, "--method", method, "--radius", 2, "--words", 500)
            self.assertEqual((config["method"], config.get("words")), (method, None if method == "delete" else 500))
            self.assertEqual(summary["words"], 0 if method == "delete" else 500)
            won = [r for r in records if r["outcome"] == "succeeded"]
            self.assertGreater(len(won), 3, method)
            for r in won:
                self.assertTrue(1 <= r["changed"] <= 2 and r["changed"] == len(r["changes"]))
                text, words = texts[r["row"] - 1][2], r["text"]
                for change in r["changes"]:
                    self.assertEqual((not change["from"], not change["to"]), (method == "insert", method == "delete"))
                    at = change["byte"]
                    self.assertEqual(text.encode()[at:at + len(change["from"].encode())], change["from"].encode())
                    self.assertIn(change["to"], words)
                tokens = [len(re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)*|\d+|\S", t)) for t in (text, words)]
                self.assertEqual(tokens[1] - tokens[0], {"insert": 1, "delete": -1, "outoflist": 0}[method] * r["changed"])
            write("new.tsv", "".join(f"{r['id']}\t{r['label']}\t{escaped(r['text'])}\n" for r in won))
            name = self.fresh()
            self.ok(run("certify", "--model", "plain.model", "--lexicon", "k.lex", "--data", "new.tsv", "--n", 1, "-o", name, "--quiet"))
            self.assertEqual([r["base"] for r in read_run(name)[1]], [r["after"] for r in won])

    def test_the_same(self):
        """threads, batches and shards change nothing; a limit is kept"""
        for more in (BASE, (*self.DELETING, "--smoothed", "--delete", 0.8, "--limit", 12)):
            for method in self.EDITS:
                first = self.attacked(*more, "--method", method, "--radius", 2)
                second = self.attacked(*more, "--method", method, "--radius", 2, "--threads", 3, "--batch", 17)
                self.assertEqual(self.timeless(first[2]), self.timeless(second[2]))
                parts = []
                for k in (1, 2):
                    parts.append(self.fresh())
                    self.ok(run("attack", *more, "--method", method, "--radius", 2, "--shard", f"{k}/2", "-o", parts[-1], "--quiet"))
                merged = self.fresh()
                self.ok(run("merge", *parts, "-o", merged, "--quiet"))
                self.assertEqual(self.timeless(read_run(merged)[1]), self.timeless(first[2]))
                limited = self.attacked(*more, "--method", method, "--max-queries", 450)[2]
                self.assertTrue(all(r["queries"] <= 450 for r in limited))

    def test_refused(self):
        """misuse names the option: exit 2"""
        self.refused(run("attack", *BASE, "--delete", 0.5), USAGE, "--delete", "--smoothed")
        self.refused(run("attack", *BASE, "--smoothed", "--delete", 1), USAGE, "--delete 1")
        self.refused(run("attack", *BASE, "--words", 0), USAGE, "--words 0")
        self.refused(run("attack", *self.DELETING, "--against", "d.jsonl", "--delete", 0.5), USAGE, "--against")

    @staticmethod
    def timeless(records):
        return [{k: v for k, v in r.items() if k not in ("seconds", "check")} for r in records]

    def against(self, name, *more):
        return run("attack", "--against", name, *self.DELETING, *SMALL, "--n", 100, "--json", "--quiet", *more)

    def test_sound(self):
        """certificates against edits survive all methods: exit 0"""
        output = self.fresh()
        summary = json.loads(self.ok(self.against("d.jsonl", "-o", output)))
        certified = [r for r in read_run("d.jsonl")[1] if r["edits"]]
        self.assertGreater(len(certified), 10)
        self.assertEqual((summary["certified_edits"], summary["violations"], summary["alarm"]), (len(certified), 0, False))
        config, records = read_run(output)
        self.assertEqual((config["edit_kind"], config["edit_radius"]), ("any", "all"))
        self.assertEqual([r["edits"] for r in records], [r["edits"] for r in read_run("d.jsonl")[1]])
        for r in records:
            self.assertEqual(set(self.EDITS) <= set(r.get("margins", {})), r["edits"] > 0)

    def test_forged(self):
        """a run that claims too many edits is found out: exit 1, with texts that lie within what it claims"""
        config, records = read_run("d.jsonl")
        own = ("row", "id", "label", "words", "slots", "visible", "tokens", "seconds", "check")
        donor = {r["target"]: r for r in records if r["edits"] == 2 and not r["exact"]}
        self.assertTrue(donor)
        forged = [{**donor[r["target"]], **{k: r[k] for k in own if k in r}} if r["edits"] < 2 and r["target"] in donor else r for r in records]
        name, output = self.fresh(), self.fresh()
        write(name, seal(config, forged))
        result = self.against(name, "-o", output)
        self.assertEqual(result.code, UNMET, result)
        summary = json.loads(result.out)
        found = [r for r in read_run(output)[1] if r["violation"]]
        self.assertTrue(summary["alarm"] and len(found) == summary["violations"] > 3, summary)
        texts = list(rows_of("demo/test.tsv"))
        for r in found:
            self.assertLess(records[r["row"] - 1]["edits"], 2)
            self.assertTrue(r["violation"]["proved"] or r["violation"]["p_value"] <= 1e-6)
            self.assertLessEqual(r["violation"]["changed"], 2)
            self.assertNotEqual(r["violation"]["text"], texts[r["row"] - 1][2])


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
