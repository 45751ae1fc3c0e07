#!/usr/bin/env python3
"""Votes of groups, verb by verb: test_cli_groups.py [TEST...] BUILD_DIR. Run by ctest.

What is certified is recomputed here from the votes: a lead of more than 4R, or of more than 2R where tokens are only put in or
only taken out.
"""
import json
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import must, read_run, seal  # noqa: E402
from test_cli import DONE, INPUT, USAGE, Case, run, write  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
GROUPS = 9
FILES = ("--lexicon", "demo.lex", "--data", "demo/test.tsv")
MODEL = ("--model", "groups.model")


def make_files():
    build = pathlib.Path(test_cli.program).parent
    subprocess.run([build / "demo-reviews", test_cli.temporary / "demo", "--train", "1200", "--dev", "60", "--test", "60"],
                   check=True, capture_output=True)
    for kernel, name in (("representative", "demo"), ("topk:3", "topk")):
        must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1,
             "--kernel", kernel, "-o", f"{name}.lex")
    must("train", "--arch", "ngram", "--data", "demo/train.tsv", "--dev", "demo/dev.tsv", "--lexicon", "demo.lex", "--groups", GROUPS,
         "--bits", 14, "--quiet", "-o", "groups.model")
    for kind in ("any", "insert"):
        must("certify", *MODEL, *FILES, "--groups", GROUPS, "--edits", 2, "--edit-kind", kind, "-o", f"{kind}.jsonl", "--quiet")


def lead_of(record):
    votes = {label: int(weight) for label, weight in record["weights"].items()}
    return votes[record["target"]] - max(v for label, v in votes.items() if label != record["target"])


class Certify(Case):
    def test_encoders(self):
        """an encoder's votes, whose pieces are looked up, are its answers to the groups that sample writes out"""
        write("named.tsv", "".join(line.replace("\t0\t", "\tgood\t").replace("\t1\t", "\tbad\t")
                                   for line in (test_cli.temporary / "demo/test.tsv").read_text().splitlines(keepends=True)[:3]))
        write("nothing.tsv", "zzzq\tzzzr\n")
        must("lexicon", "import", "--table", "nothing.tsv", "--kernel", "representative", "-o", "nothing.lex")
        for name in ("bert", "roberta", "deberta-v3"):
            model = ("--model", ROOT / "tests/golden/encoders" / name, "--arithmetic", "f32")
            must("certify", *model, "--lexicon", "demo.lex", "--data", "named.tsv", "--groups", 7, "-o", f"{name}.jsonl", "--quiet")
            texts = [line.split("\t")[2] for line in (test_cli.temporary / "named.tsv").read_text().splitlines()]
            for record, text in zip(read_run(f"{name}.jsonl")[1], texts):
                groups = [line.split("\t", 2)[2] for line in run("sample", "--lexicon", "demo.lex", "--groups", 7, text).out.splitlines()]
                done = run("predict", *model, "--lexicon", "nothing.lex", "--json", *groups)
                votes = dict.fromkeys(record["weights"], 0)
                for answer in json.loads(done.out)["answers"]:
                    votes[answer["label"]] += 1
                self.assertEqual({label: int(weight) for label, weight in record["weights"].items()}, votes, name)

    def test_records(self):
        """edits follow from the lead, and every group is asked once"""
        for kind, cost in (("any", 4), ("insert", 2)):
            config, records = read_run(f"{kind}.jsonl")
            self.assertEqual((config["method"], config["groups"], config["edits"], config["edit_kind"]), ("groups", GROUPS, 2, kind))
            self.assertFalse({"n", "n0", "delta", "alpha"} & config.keys())
            self.assertEqual({r["total"] for r in records}, {str(GROUPS)})
            for r in records:
                self.assertEqual(r["edits"], sum(lead_of(r) > cost * edits for edits in (1, 2)))
                self.assertEqual(r["radius"], "all" if lead_of(r) > 0 else "0")
                self.assertEqual(r["certified"], r["edits"] == 2)
                self.assertTrue(r["exact"] and r["queries"] <= GROUPS)
            self.assertGreater(len({r["edits"] for r in records}), 1)  # or the above says little

    def test_refusals(self):
        """what does not go with groups, by name"""
        for wrong, said in ((("--groups", 5, "--delete", 0.5), "--delete and --groups"), (("--method", "groups"), "--method groups needs --groups"),
                            (("--groups", 5, "--method", "binomial"), "--groups and --method binomial"), (("--groups", 5, "--n", 9), "--n:"),
                            (("--groups", 5, "--delta", 0.5), "--delta:"), (("--groups", 10001), "--groups 10001"),
                            (("--edits", 2), "--edits needs --delete or --groups")):
            done = run("certify", *MODEL, *FILES, *wrong)
            self.assertEqual(done.code, USAGE, done)
            self.assertIn(said, done.err)
        done = run("certify", *MODEL, "--lexicon", "topk.lex", "--data", "demo/test.tsv", "--groups", 5)
        self.assertEqual(done.code, USAGE, done)
        self.assertIn("representative or component", done.err)

    def test_shards(self):
        """parts put together are the run itself"""
        for part in (1, 2):
            must("certify", *MODEL, *FILES, "--groups", GROUPS, "--edits", 2, "--shard", f"{part}/2", "-o", f"part{part}.jsonl", "--quiet")
        must("merge", "part2.jsonl", "part1.jsonl", "-o", "merged.jsonl")
        strip = lambda records: [{k: v for k, v in r.items() if k not in ("seconds", "check")} for r in records]
        self.assertEqual(strip(read_run("merged.jsonl")[1]), strip(read_run("any.jsonl")[1]))

    def test_threads(self):
        """threads and batches change nothing; another seed does"""
        votes = []
        for number, more in enumerate((("--threads", 1), ("--threads", 3, "--batch", 2), ("--seed", 2))):
            must("certify", *MODEL, *FILES, "--groups", GROUPS, "--edits", 2, *more, "-o", f"threads{number}.jsonl", "--quiet")
            votes.append([r["weights"] for r in read_run(f"threads{number}.jsonl")[1]])
        self.assertEqual(votes[0], votes[1])
        self.assertNotEqual(votes[0], votes[2])


class Verify(Case):
    def test_honest(self):
        """a run holds by itself, with its texts, and when the model is asked again"""
        for more in ((), FILES, (*FILES, *MODEL)):
            done = run("verify", "any.jsonl", *more)
            self.assertEqual(done.code, DONE, done)
            self.assertIn("put in, taken out or replaced, by votes of 9 groups", done.out)
        found = json.loads(run("verify", "insert.jsonl", "--json").out)
        self.assertEqual((found["groups"], found["edits"], found["edit_kind"], found["delta"]), (GROUPS, 2, "insert", 0))

    def forged(self, change, said, more=(), config=None):
        head, records = read_run("any.jsonl")
        at = next(i for i, r in enumerate(records) if 0 < lead_of(r) and r["edits"] < 2)
        change(records[at])
        write("forged.jsonl", seal({**head, **(config or {})}, records))
        done = run("verify", "forged.jsonl", *more)
        self.assertEqual(done.code, INPUT, done)
        self.assertIn(said, done.err)

    def test_forged(self):
        """what does not follow from the votes, the number of groups, the texts or the model is refused"""
        nothing = lambda r: None
        self.forged(lambda r: r.update(edits=r["edits"] + 1), "the edits are not certified")
        self.forged(lambda r: r.update(edits=2, certified=True), "the edits are not certified")
        self.forged(lambda r: r.update(certified=True), "certified does not follow")
        self.forged(lambda r: r.update(q_edits=[0.0, 0.0, 0.0]), "q_edits does not follow from the number of groups")
        self.forged(lambda r: r.update(total="10", weights={**r["weights"], r["target"]: str(int(r["weights"][r["target"]]) + 1)}),
                    "the total is not the number of groups")
        self.forged(lambda r: r.update(queries=GROUPS + 1), "queries are not those of groups")
        self.forged(lambda r: r.update(exact=False), "")
        self.forged(lambda r: r.update(q=0.1, q_at=[0.1] * 6, q_radius=0.1, q_next=0.1), "q is not 0")
        self.forged(nothing, "q_edits does not follow", config={"edit_kind": "delete"})
        self.forged(nothing, "the total is not", config={"groups": 10})
        self.forged(nothing, "groups", config={"groups": 0})
        self.forged(nothing, "\"n\" is missing", config={"method": "adaptive"})
        self.forged(lambda r: r.update(tokens=r["tokens"] + 1), "the number of tokens", FILES)
        self.forged(lambda r: r.update(queries=r["queries"] - 1), "queries are not the number", FILES)

        def all_votes(r):  # a certificate that its votes would grant, but the model did not give them
            r.update(weights={k: str(GROUPS * (k == r["target"])) for k in r["weights"]}, bound=1.0, edits=2, certified=True,
                     prediction=r["target"], abstained=False, radius="all")
        self.forged(all_votes, "weights", (*FILES, *MODEL))


class Others(Case):
    def test_predict(self):
        """one text: the same vote whenever it is asked, and the edits that it withstands"""
        text = (test_cli.temporary / "demo/test.tsv").read_text().splitlines()[3].split("\t")[2]
        answers = [json.loads(run("predict", *MODEL, "--lexicon", "demo.lex", "--groups", GROUPS, "--edits", 2, "--json", text).out) for _ in range(2)]
        strip = lambda found: json.dumps(found).split('"seconds"')[0]
        self.assertEqual(strip(answers[0]), strip(answers[1]))
        found, = answers[0]["answers"]
        self.assertIn("edits", found)
        self.assertTrue(found["exact"])

    def test_sample(self):
        """the texts of the groups have every token once"""
        done = run("sample", "--lexicon", "demo.lex", "--groups", 4, "--json", "zz yy, 10 yy xx.")
        texts = [entry["text"] for entry in json.loads(done.out)]
        self.assertEqual(len(texts), 4)
        self.assertEqual(sorted(" ".join(texts).split()), sorted("zz yy , 10 yy xx .".split()))
        self.assertEqual(run("sample", "--lexicon", "topk.lex", "--groups", 4, "good").code, USAGE)

    def test_report(self):
        """a page with the curve over edits, and evidence that is deterministic"""
        must("report", "any.jsonl", "-o", "page.html")
        page = (test_cli.temporary / "page.html").read_text()
        self.assertIn("texts whose groups were all asked", page)
        self.assertIn("Certified and answered, by edits", page)
        self.assertNotIn("one edit was asked for", page)
        must("certify", *MODEL, *FILES, "--groups", GROUPS, "-o", "one.jsonl", "--quiet")
        must("report", "one.jsonl", "-o", "one.html")
        self.assertIn("one edit was asked for", (test_cli.temporary / "one.html").read_text())
        must("evidence", "any.jsonl", "-o", "evidence")
        terms = (test_cli.temporary / "evidence/bom.cdx.json").read_text()
        for term in ("a vote of groups of words", "deterministic", "safer:groups"):
            self.assertIn(term, terms)

    def test_attacks(self):
        """attacks find nothing against an honest run, and what a forged one claims too much"""
        done = run("attack", *MODEL, *FILES, "--against", "any.jsonl", "--json", "--words", 200)
        found = json.loads(done.out)
        self.assertEqual((done.code, found["violations"], found["alarm"], found["groups"]), (DONE, 0, False, GROUPS), done)
        self.assertGreater(found["certified_edits"], 5)
        done = run("attack", *MODEL, *FILES, "--smoothed", "--groups", GROUPS, "--method", "insert", "--radius", 4, "--limit", 20, "--json", "--words", 200)
        self.assertEqual(done.code, DONE, done)
        self.assertGreater(json.loads(done.out)["succeeded"], 0)

    def test_forged_attack(self):
        """a run that claims too many edits is found out"""
        head, records = read_run("any.jsonl")
        for r in records:  # the votes of the target are made up, so that each record by itself holds
            r.update(weights={k: str(GROUPS * (k == r["target"])) for k in r["weights"]}, bound=1.0, edits=2, certified=True,
                     prediction=r["target"], abstained=False, radius="all")
        write("invented.jsonl", seal(head, records))
        self.assertEqual(run("verify", "invented.jsonl").code, DONE)
        done = run("attack", *MODEL, *FILES, "--against", "invented.jsonl", "--json", "--words", 200)
        found = json.loads(done.out)
        self.assertGreater(found["violations_exact"], 0)
        self.assertTrue(found["alarm"])

    def test_train(self):
        """every architecture that learns from draws learns from groups, and says so"""
        for arch, more in (("cnn", ("--dim", 8, "--filters", 8)), ("bow", ("--dim", 8, "--hidden", 8))):
            must("train", "--arch", arch, "--data", "demo/train.tsv", "--limit", 200, "--lexicon", "demo.lex", "--groups", 5, "--epochs", 1, *more,
                 "--quiet", "-o", f"{arch}.model")
            done = run("certify", "--model", f"{arch}.model", *FILES, "--limit", 20, "--groups", 6, "-o", f"{arch}.jsonl")
            self.assertEqual(done.code, DONE, done)
            self.assertIn("trained with --groups 5, not 6", done.err)
            self.assertEqual(run("verify", f"{arch}.jsonl", *FILES, "--limit", 20, "--model", f"{arch}.model").code, DONE)
        done = run("train", "--arch", "ngram", "--data", "demo/train.tsv", "--lexicon", "topk.lex", "--groups", 5, "-o", "x.model")
        self.assertIn("representative or component", done.err)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
