#!/usr/bin/env python3
"""Runs and what verify says of them: test_cli_verify.py [TEST...] BUILD_DIR. Run by ctest."""
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from test_cli import Case, run  # noqa: E402

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden/format1"

# The runs of format 1 that are kept (golden/format1/README.md): name -> (model, data).
NGRAM, SERVER = ("--model", "ngram.safetensors"), ("--model", "exec:python3 server.py", "--labels", "low,middle,high")
KEPT = {
    "adaptive": (NGRAM, "texts.tsv"),
    "enumerated": (NGRAM, "texts.tsv"),
    "unlabelled": (NGRAM, "texts.tsv"),
    "binomial": (NGRAM, "texts.tsv"),
    "hoeffding": (NGRAM, "texts.tsv"),
    "ibp": (("--model", "bow.safetensors"), "texts.tsv"),
    "cnn": (("--model", "cnn.safetensors"), "texts.tsv"),
    "exec": (SERVER, "three.tsv"),
    "hoeffding3": (SERVER, "three.tsv"),
    "random": (None, "three.tsv"),
}


def make_files():
    shutil.copytree(GOLDEN, test_cli.temporary / "format1")


def kept(*arguments):
    """safer among the kept runs."""
    return run(*arguments, cwd=test_cli.temporary / "format1")


class VerifyTests(Case):
    def test_format_1(self):
        """runs of format 1 verify, with the model too"""
        for name, (model, data) in KEPT.items():
            self.assertIn("7 records hold", self.ok(kept("verify", f"{name}.jsonl")), name)
            if model:
                out = self.ok(kept("verify", f"{name}.jsonl", *model, "--lexicon", "words.lex", "--data", data))
                self.assertIn("the model gives the same again", out, name)

    def test_format_1_attacks(self):
        """attacks of format 1 are read by reports"""
        self.ok(kept("report", "adaptive.jsonl", "--attack", "attack.jsonl", "--data", "texts.tsv", "-o", "page.html"))


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
