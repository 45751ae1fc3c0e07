#!/usr/bin/env python3
"""examples/exec_transformers.py with models that transformers makes here: test_transformers.py BUILD_DIR. Run by ctest.

Without PyTorch and transformers it says so and is skipped.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/exec_transformers.py"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "fine", "dull", "film", "plot", "##s", ".", "and", "the"]
TEXTS = ["a fine film", "", "the plot and the film . " * 9, "dull films", "fine " * 60, "a dull plot .", "unknown", "a fine film"]


def ask(folder, *arguments, texts=TEXTS, requests=1):
    lines = "".join(json.dumps({"id": i, "texts": texts}) + "\n" for i in range(requests))
    got = subprocess.run([sys.executable, EXAMPLE, folder, *arguments], input=lines, capture_output=True, text=True, timeout=600)
    return got, [json.loads(line) for line in got.stdout.splitlines()]


def make_tokenizer(transformers):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    t = Tokenizer(models.WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=t, model_max_length=64, pad_token="[PAD]", unk_token="[UNK]",
                                                cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")


class Transformers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import torch
        import transformers

        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        torch.manual_seed(3)
        tokenizer = make_tokenizer(transformers)
        common = dict(vocab_size=len(WORDS), pad_token_id=0)
        small = dict(common, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48, max_position_embeddings=64,
                     initializer_range=0.7)
        names = {0: "bad", 1: "fair", 2: "good"}
        models = {"bert": transformers.BertConfig(**small, id2label=names),
                  "several": transformers.BertConfig(**small, id2label=names, problem_type="multi_label_classification"),
                  "regression": transformers.BertConfig(**small, num_labels=1),
                  "gpt2": transformers.GPT2Config(**common, n_embd=32, n_layer=2, n_head=2, n_positions=64, id2label=names,
                                                  initializer_range=0.7)}
        cls.models = {}
        for name, config in models.items():
            model = transformers.AutoModelForSequenceClassification.from_config(config).eval()
            model.save_pretrained(cls.folder / name)
            tokenizer.save_pretrained(cls.folder / name)
            cls.models[name] = model, tokenizer

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def logits(self, name):
        """Each text alone, without padding."""
        import torch

        model, tokenizer = self.models[name]
        rows = [tokenizer(text, truncation=True, max_length=64, return_tensors="pt") for text in TEXTS]
        with torch.inference_mode():
            return [model(**row).logits[0].tolist() for row in rows]

    def test_answers(self):
        for name in ("bert", "gpt2"):
            expected = [max(range(3), key=row.__getitem__) for row in self.logits(name)]
            for arguments in ([], ["--batch", "64"], ["--fixed", "--batch", "256"], ["--device", "cpu"]):
                got, answers = ask(self.folder / name, "--numbers", *arguments, requests=2)
                self.assertEqual(got.returncode, 0, got.stderr)
                self.assertEqual(answers, [{"id": i, "labels": expected} for i in range(2)], (name, arguments))
        names = ["bad", "fair", "good"]
        got, answers = ask(self.folder / "bert")
        self.assertEqual(answers[0]["labels"], [names[max(range(3), key=row.__getitem__)] for row in self.logits("bert")])

    def test_several_labels(self):
        got, answers = ask(self.folder / "several")
        self.assertNotEqual(got.returncode, 0)
        self.assertIn("choose one with --label, of bad, fair, good", got.stderr)
        got, answers = ask(self.folder / "several", "--label", "fair")
        self.assertEqual(answers[0]["labels"], ["fair" if row[1] > 0 else "no-fair" for row in self.logits("several")], got.stderr)
        self.assertIn("there is no label 'x'", ask(self.folder / "several", "--label", "x")[0].stderr)

    def test_regression(self):
        self.assertIn("--threshold", ask(self.folder / "regression")[0].stderr)
        rows = [row[0] for row in self.logits("regression")]
        middle = (sorted(rows)[3] + sorted(rows)[4]) / 2
        got, answers = ask(self.folder / "regression", "--threshold", str(middle))
        self.assertEqual(answers[0]["labels"], ["above" if row > middle else "below" for row in rows], got.stderr)


def main():
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as problem:
        print(f"skipped: examples/exec_transformers.py needs PyTorch and transformers: {problem}")
        return
    unittest.main(argv=[sys.argv[0]], verbosity=1)


if __name__ == "__main__":
    main()
