#!/usr/bin/env python3
"""HuggingFace folders of every kind, through the program: test_cli_encoders.py [TEST...] BUILD_DIR. Run by ctest.

tests/golden/encoders was made by scripts/golden-encoders: tiny encoders with random weights, each with a tokenizer of the
kind that its models have. That ids and logits are those of transformers is tested by test_encoders.c; here a folder is
what --model and --encoder name, as a user does it.
"""
import json
import pathlib
import random
import sys
import unittest

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from test_cli import DONE, INPUT, run, write  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests/golden/encoders"
KINDS = ("roberta", "xlm-roberta", "modernbert", "deberta-v3")
SAME = {"good": "great fine", "bad": "awful poor", "film": "movie picture", "plot": "story"}


def prepare():
    write("e.tsv", "".join(f"{word}\t{others}\n" for word, others in SAME.items()))
    assert run("lexicon", "import", "--table", "e.tsv", "--kernel", "topk:100", "-o", "e.lex").code == DONE
    chance = random.Random(1)
    rows = []
    for i in range(60):
        words = [chance.choice(("good", "great", "fine") if i % 2 else ("bad", "awful", "poor")) for _ in range(4)]
        rows.append(f"{i}\t{i % 2}\tA {words[0]} film, isn't it? {words[1].title()} plot; \"{words[2]}\" {words[3]}!\n")
    write("e-train.tsv", "".join(rows))
    named = "".join(row.replace("\t1\t", "\tgood\t").replace("\t0\t", "\tbad\t") for row in rows[:12])
    write("e-named.tsv", named + "empty\tfair\t\n") # the labels of the golden models
    write("e-test.tsv", "".join(rows[:12]) + "empty\t0\t\nodd\t1\t  GOOD\u200bfilm caf\u00e9  \u6771\u4eac <s> [MASK] bad\u0301 \n")


def records(path):
    """What a run says, less what differs from run to run."""
    lines = [json.loads(line) for line in (test_cli.temporary / path).read_text().splitlines()]
    for line in lines:
        for key in ("seconds", "date", "check"):
            line.pop(key, None)
    return lines[1:]


class Folders(unittest.TestCase):
    def labels(self, kind):
        """The golden texts, each with its label."""
        config = json.loads((GOLDEN / kind / "config.json").read_text())
        names = config.get("id2label") or {str(i): f"LABEL_{i}" for i in range(99)}
        for one in json.loads((GOLDEN / kind / "golden.json").read_text())["texts"]:
            first, second = sorted(one["logits"], reverse=True)[:2]
            if first - second > 1e-3:
                yield one["text"], names[str(one["logits"].index(first))]

    def test_predict(self):
        """predict gives every golden text the label that transformers gives it"""
        write("none.tsv", "qqqq\twwww\n")
        self.assertEqual(run("lexicon", "import", "--table", "none.tsv", "--kernel", "topk:100", "-o", "none.lex").code, DONE)
        for kind in KINDS:
            pairs = [(text, label) for text, label in self.labels(kind) if "\n" not in text and not text.startswith("-")]
            self.assertGreater(len(pairs), 10)
            result = run("predict", "--model", GOLDEN / kind, "--lexicon", "none.lex", "--precision", "f32", "--n", "20", "--json",
                         "--quiet", *(text for text, _ in pairs))
            self.assertEqual(result.code, DONE, result.err)
            answers = json.loads(result.out)["answers"]
            self.assertEqual([answer["label"] for answer in answers], [label for _, label in pairs], kind)

    def test_certify(self):
        """certify and verify a folder; its one-file form has the same records; for one and for three threads"""
        for kind in KINDS:
            texts = ("--lexicon", "e.lex", "--data", "e-named.tsv")
            result = run("certify", "--model", GOLDEN / kind, *texts, "--n", "60", "--threads", "1", "--quiet", "-o", f"{kind}.jsonl")
            self.assertEqual(result.code, DONE, result.err)
            self.assertEqual(run("verify", f"{kind}.jsonl", "--model", GOLDEN / kind, *texts, "--quiet").code, DONE)
            self.assertEqual(run("model", "convert", GOLDEN / kind, "-o", f"{kind}.safetensors", "--quiet").code, DONE)
            result = run("certify", "--model", f"{kind}.safetensors", *texts, "--n", "60", "--threads", "3", "--quiet", "-o", f"{kind}-one.jsonl")
            self.assertEqual(result.code, DONE, result.err)
            self.assertEqual(records(f"{kind}.jsonl"), records(f"{kind}-one.jsonl"))
            self.assertTrue(any(record["slots"] > 4 for record in records(f"{kind}.jsonl")))

    def test_train(self):
        """train a head, certify, verify and attack, from three kinds"""
        for kind in KINDS[:3]:
            result = run("train", "--arch", "bert", "--encoder", GOLDEN / kind, "--data", "e-train.tsv", "--lexicon", "e.lex",
                         "--epochs", "2", "--seed", "1", "--json", "--quiet", "-o", f"{kind}-head.safetensors")
            self.assertEqual(result.code, DONE, result.err)
            texts = ("--model", f"{kind}-head.safetensors", "--lexicon", "e.lex", "--data", "e-test.tsv")
            self.assertEqual(run("certify", *texts, "--n", "60", "--quiet", "-o", f"{kind}-head.jsonl").code, DONE)
            self.assertEqual(run("verify", f"{kind}-head.jsonl", *texts, "--quiet").code, DONE)
            result = run("attack", *texts, "--against", f"{kind}-head.jsonl", "--quiet", "-o", f"{kind}-attack.jsonl")
            self.assertEqual(result.code, DONE, result.err)

    def test_missing(self):
        """a folder without its tokenizer, or with one that has too many pieces: one line"""
        for kind in KINDS:
            folder = test_cli.temporary / f"without-{kind}"
            folder.mkdir()
            for name in ("config.json", "model.safetensors"):
                (folder / name).write_bytes((GOLDEN / kind / name).read_bytes())
            result = run("predict", "--model", folder, "--lexicon", "e.lex", "good")
            self.assertEqual((result.code, result.err.count("\n")), (INPUT, 1), result.err)
            self.assertIn("has no tokenizer: neither tokenizer.json, nor", result.err)
            tokenizer = json.loads((GOLDEN / kind / "tokenizer.json").read_text())
            size = json.loads((folder / "config.json").read_text())["vocab_size"]
            tokenizer["added_tokens"].append({"id": size + 7, "content": "<more>", "normalized": False})
            model = tokenizer["model"]
            if isinstance(model["vocab"], list):
                model["vocab"] += [[f"more{i}", -9.5] for i in range(size + 8 - len(model["vocab"]))]
                tokenizer["added_tokens"].pop()
            else:
                model["vocab"]["<more>"] = size + 7
            (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
            result = run("predict", "--model", folder, "--lexicon", "e.lex", "good")
            self.assertEqual((result.code, result.err.count("\n")), (INPUT, 1), result.err)
            self.assertIn(f"pieces, but the embedding of the model has {size} rows only", result.err)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], prepare)
