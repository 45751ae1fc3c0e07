#!/usr/bin/env python3
"""Folds as a person uses them: test_cli_fold.py [TEST...] BUILD_DIR. Run by ctest.

A lexicon with a fold, a model trained with it, certificates, their checks and attacks on all of it: spellings that fold
alike get the same record, and what homoglyphs and unseen characters do to a model without a fold they do not do here.
"""
import json
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import must, read_run, seal  # noqa: E402
from test_cli import DONE, INPUT, USAGE, Case, run, write  # noqa: E402
from test_cli_attack import rows_of  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
STANDARD = "nfkc,case,ignorable,marks,lookalikes"
DATA = ("--data", "demo/test.tsv")
FOLDED = ("--model", "folded.model", "--lexicon", "folded.lex", *DATA)
PLAIN = ("--model", "plain.model", "--lexicon", "plain.lex", *DATA)


def make_files():
    build = pathlib.Path(test_cli.program).parent
    subprocess.run([build / "demo-reviews", test_cli.temporary / "demo", "--train", "500", "--dev", "80", "--test", "60"],
                   check=True, capture_output=True)
    for name, fold in (("plain", "none"), ("folded", "standard")):
        must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1,
             "--kernel", "topk:4", "--fold", fold, "-o", f"{name}.lex")
        must("train", "--arch", "ngram", "--data", "demo/train.tsv", "--bits", 14, "--lexicon", f"{name}.lex", "-o", f"{name}.model")
        must("certify", "--model", f"{name}.model", "--lexicon", f"{name}.lex", *DATA, "-o", f"{name}.jsonl")
    write("respelled.tsv", "".join(respell(line) for line in (test_cli.temporary / "demo/test.tsv").read_text().splitlines(True)))


def respell(line):
    """The row with its text spelled otherwise, in ways that the fold undoes."""
    key, label, text = line.split("\t")
    looks = str.maketrans("aceopxyAEOT", "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0391\u0395\u041e\u0422")
    text = re.sub(r"(\\[ntr])|.", lambda m: m[1] or m[0].swapcase(), text, flags=re.S)
    return "\t".join((key, label, re.sub(r"(?<!\\)([A-Za-z])([A-Za-z])", "\\1\u200b\\2\u0301", text).translate(looks)))


class Fold(Case):
    def test_verb(self):
        """fold shows what a text becomes, by a lexicon or by steps"""
        done = run("fold", "--lexicon", "folded.lex", "GR\u0415\u0410T f\u0456lm", "")
        self.assertEqual((done.code, done.out), (DONE, "great film\n\n"), done)
        done = run("fold", "--fold", "case,repeats,leet", "--json", "M0VIE soooo")
        found = json.loads(done.out)
        self.assertEqual(found["steps"], "case,leet,repeats")
        self.assertEqual(found["texts"], [{"text": "M0VIE soooo", "folded": "movie soo", "changed": True}])
        self.assertEqual(run("fold", "caf\u00e9").out, "cafe\n")
        for arguments, code, words in ((("--fold", "best"), USAGE, 'a step "best"'), (("--fold", "marks"), USAGE, "need nfkc"),
                                       (("--lexicon", "plain.lex", "x"), INPUT, "has no fold"),
                                       (("--lexicon", "folded.lex", "--fold", "case"), USAGE, "not both")):
            done = run("fold", *arguments)
            self.assertEqual((done.code, words in done.err), (code, True), done)

    def test_lexicon(self):
        """build and import fold words, list what they merge, and store the fold"""
        write("table.tsv", "na\u00efve\tsimple\ncafe\tbar\ncaf\u00e9\tbistro\n\u00bd\thalf\n")
        done = run("lexicon", "import", "--table", "table.tsv", "--kernel", "component", "--fold", "standard", "-o", "small.lex", "--json")
        found = json.loads(done.out)
        self.assertEqual(found["fold"], {"steps": STANDARD, "unicode": found["fold"]["unicode"], "merged_spellings": 2, "lost_words": 0})
        stats = json.loads(run("lexicon", "stats", "small.lex", "--json").out)
        self.assertEqual(stats["provenance"]["fold"]["spellings"], {"naive": ["na\u00efve"], "cafe": ["caf\u00e9"]})
        shown = json.loads(run("lexicon", "show", "small.lex", "CAF\u00c9", "--json").out)
        self.assertEqual(sorted(s["word"] for s in shown[0]["synonyms"]), ["bar", "bistro"])
        self.assertEqual(run("lexicon", "check", "small.lex").code, DONE)
        done = run("lexicon", "import", "--table", "table.tsv", "--fold", "upper", "-o", "never.lex")
        self.assertEqual((done.code, "fold: " in done.err), (USAGE, True), done)
        write("guarded.txt", "CAF\u00c9\n")
        done = run("lexicon", "import", "--table", "table.tsv", "--fold", "standard", "--protect", "guarded.txt", "-o", "guarded.lex", "--json")
        self.assertEqual(json.loads(done.out)["protected_words"], 1)

    def test_without(self):
        """a lexicon without a fold is what it was: version 1, and the same bytes"""
        run("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1,
            "--kernel", "topk:4", "-o", "again.lex")
        plain, again, folded = ((test_cli.temporary / name).read_bytes() for name in ("plain.lex", "again.lex", "folded.lex"))
        self.assertEqual(plain, again)
        self.assertEqual((plain[8], folded[8]), (1, 2))
        self.assertNotIn("fold", read_run("plain.jsonl")[0]["lexicon"])
        self.assertNotIn("unfolded", read_run("plain.jsonl")[1][0])

    def test_spellings(self):
        """texts that fold alike have the same records"""
        done = run("certify", "--model", "folded.model", "--lexicon", "folded.lex", "--data", "respelled.tsv", "-o", "respelled.jsonl", "--json")
        self.assertEqual(done.code, DONE, done)
        config, records = read_run("folded.jsonl")
        other = read_run("respelled.jsonl")[1]
        names = ("seconds", "check", "unfolded")
        strip = lambda r: {k: v for k, v in r.items() if k not in names}  # noqa: E731
        self.assertEqual([*map(strip, records)], [*map(strip, other)])
        self.assertNotEqual([r["unfolded"] for r in records], [r["unfolded"] for r in other])
        self.assertEqual(config["lexicon"]["fold"]["steps"], STANDARD)
        summary = json.loads(done.out)
        self.assertTrue(summary["folded"])
        self.assertLess(summary["clean_unfolded_accuracy"], summary["clean_accuracy"])
        answers = [json.loads(run("predict", "--model", "folded.model", "--lexicon", "folded.lex", "--seed", 1, "--json", text).out)["answers"]
                   for text in ("A wonderful film", "\u0410 w\u043enderful f\u200bilm")]
        self.assertEqual(answers[0], answers[1])

    def test_checked(self):
        """verify and check-certificates follow; another fold is refused"""
        self.assertEqual(run("verify", "folded.jsonl", "--lexicon", "folded.lex", *DATA, "--model", "folded.model").code, DONE)
        checker = [sys.executable, ROOT / "tools/check-certificates", "folded.jsonl", "--lexicon", "folded.lex", *DATA]
        done = subprocess.run(checker, cwd=test_cli.temporary, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done)
        must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1,
             "--kernel", "topk:4", "--fold", "nfkc,case", "-o", "other.lex")
        for arguments in (("verify", "folded.jsonl", "--lexicon", "other.lex", *DATA),
                          ("certify", "--model", "folded.model", "--lexicon", "other.lex", *DATA, "-o", "folded.jsonl", "--resume")):
            done = run(*arguments)
            self.assertEqual((done.code, "lexicon" in done.err), (INPUT, True), done)

    def test_attacks(self):
        """homoglyphs and unseen characters hurt a model, and not a folded one"""
        for method in ("homoglyph", "zerowidth", "typo"):
            for smoothed in ((), ("--smoothed", "--n", 50)):
                done = run("attack", "--method", method, *PLAIN, *smoothed, "-o", f"{method}.jsonl", "--json", "--quiet")
                self.assertEqual(done.code, DONE, done)
                plain = json.loads(done.out)
                self.check_records(method, method)
                (test_cli.temporary / f"{method}.jsonl").unlink()
                folded = json.loads(run("attack", "--method", method, *FOLDED, *smoothed, "--json", "--quiet").out)
                self.assertGreater(plain["succeeded"], 0 if smoothed and method == "typo" else 3)
                if method != "typo":
                    self.assertEqual(folded["succeeded"], 0)

    def check_records(self, name, method):
        """The new text is the old one with the changes, and looks like it."""
        rows = [text for _, _, text in rows_of("demo/test.tsv")]
        for record, text in zip(read_run(f"{name}.jsonl")[1], rows):
            if record["outcome"] != "succeeded":
                continue
            old, new, at = text.encode(), b"", 0
            for change in record["changes"]:
                self.assertEqual(old[change["byte"]:change["byte"] + len(change["from"].encode())].decode(), change["from"])
                self.assertNotEqual(change["from"], change["to"])
                new += old[at:change["byte"]] + change["to"].encode()
                at = change["byte"] + len(change["from"].encode())
            self.assertEqual((new + old[at:]).decode(), record["text"])
            self.assertEqual(len(record["changes"]), record["changed"])
            if method != "typo":
                folded = json.loads(run("fold", "--lexicon", "folded.lex", "--json", record["text"], text).out)["texts"]
                self.assertEqual(folded[0]["folded"], folded[1]["folded"])

    def test_edits(self):
        """edits are counted in tokens of the folded text, and the results say so"""
        label = next(iter(rows_of("demo/test.tsv")))[1]
        write("tokens.tsv", f"1\t{label}\t\u00bd film \ufdfa\n2\t{label}\tmo7ie f\u200bilm\n")
        inputs = ("--lexicon", "folded.lex", "--data", "tokens.tsv")
        self.assertEqual(run("certify", "--model", "folded.model", *inputs, "--delete", 0.75, "-o", "tokens.jsonl").code, DONE)
        self.assertEqual([r["tokens"] for r in read_run("tokens.jsonl")[1]], [8, 4])
        for lexicon, saying in (("plain", False), ("folded", True)):
            done = run("certify", "--model", f"{lexicon}.model", "--lexicon", f"{lexicon}.lex", "--data", "tokens.tsv", "--delete", 0.75)
            self.assertEqual((done.code, "as the folded text has them" in done.out), (DONE, saying), done)

    def test_unfolded(self):
        """where the fold leaves a text as it is, the answers to both are one: a forged record is refused"""
        label = next(iter(rows_of("demo/test.tsv")))[1]
        write("as_is.tsv", f"1\t{label}\tgood film\n2\t{label}\tGood film\n")
        inputs = ("--lexicon", "folded.lex", "--data", "as_is.tsv")
        must("certify", "--model", "folded.model", *inputs, "-o", "as_is.jsonl")
        config, records = read_run("as_is.jsonl")
        for row, code in ((1, DONE), (0, INPUT)):  # the model alone could tell of the second text
            other = next(name for name in config["labels"] if name != records[row]["base"])
            write("forged.jsonl", seal(config, [{**r, "unfolded": other} if i == row else r for i, r in enumerate(records)]))
            done = run("verify", "forged.jsonl", *inputs)
            self.assertEqual((done.code, "unfolded is not base" in done.err), (code, code == INPUT), done)
            done = subprocess.run([sys.executable, ROOT / "tools/check-certificates", "forged.jsonl", *inputs],
                                  cwd=test_cli.temporary, capture_output=True, text=True)
            self.assertEqual((done.returncode, "unfolded is not base" in done.stdout), (int(code == INPUT), code == INPUT), done)

    def test_budget(self):
        """a search asks no more than it may"""
        for smoothed, most in (((), 7), (("--smoothed", "--n", 20), 90)):
            done = run("attack", "--method", "zerowidth", *PLAIN, *smoothed, "--max-queries", most, "--radius", 2, "-o", "limited.jsonl", "--json")
            self.assertEqual(done.code, DONE, done)
            for record in read_run("limited.jsonl")[1]:
                self.assertLessEqual(record["queries"], most)
                self.assertLessEqual(record["changed"], 2)
            (test_cli.temporary / "limited.jsonl").unlink()

    def test_table(self):
        """the table of look-alikes is what ICU of the same Unicode says"""
        table = (ROOT / "src/text/lookalikes_table.h").read_text()
        done = subprocess.run([ROOT / "scripts/unicode-lookalikes"], capture_output=True, text=True, timeout=300)
        if done.returncode == 4:
            self.skipTest(done.stderr.strip())
        version = re.search('#define SF_LOOKALIKES_UNICODE "(.*)"', done.stdout)[1]
        if f'"{version}"' not in table:
            self.skipTest(f"this ICU has Unicode {version}")
        self.assertEqual(done.stdout, table)

    def test_against(self):
        """the cross-check spells words otherwise too, and finds nothing"""
        done = run("attack", "--against", "folded.jsonl", *FOLDED, "-o", "against.jsonl", "--json", "--iterations", 3, "--population", 6)
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(json.loads(done.out)["violations"], 0)
        tried = [r["margins"] for r in read_run("against.jsonl")[1] if r.get("margins")]
        self.assertTrue(tried and all({"homoglyph", "zerowidth", "typo"} <= {*m} for m in tried), tried[:1])
        self.assertTrue(all(m["homoglyph"] is not None and m["typo"] is None for m in tried), tried[:3])


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
