#!/usr/bin/env python3
"""Any text classifier of HuggingFace transformers, for `safer` to ask: whatever AutoModelForSequenceClassification opens.

    safer certify --model 'exec:python3 exec_transformers.py FOLDER' --workers 1 --labels negative,positive \\
                  --lexicon L --data D --model-name NAME -o OUT.jsonl

FOLDER is what save_pretrained wrote. One worker is enough: it uses all cores, or the GPU when there is one. Encoders that
safer reads itself (`safer certify --model FOLDER` says so) are answered much faster without this program.

    --numbers           answer with class numbers, not with the names of the model's id2label
    --label NAME        of a model with several labels for a text, this one: the classes are NAME and no-NAME
    --threshold T       of a model with one number for a text: the classes are "above" (greater than T) and "below"
    --max-length N      pieces read of a text (default: what the tokenizer says, at most 512)
    --batch PIECES      pieces in a batch, padding included (default: 65536 on a GPU, 4096 without)
    --fixed             one shape for each length: slower for few texts, but the bits of an answer are the same in every batch
    --device D          cpu, cuda, cuda:1 (default: the GPU when there is one)
    --dtype T           float32 (default), float16, bfloat16

Texts of a request are sorted by length, and each batch is padded to the next multiple of 32 pieces of its longest text, so
that little is computed for nothing. Without --fixed the shape of a batch can change the last bits of a score, and an answer
in nearly even cases; safer notices when the same text gets two answers.
"""
import argparse
import json
import os
import sys

STEP = 32  # lengths are rounded up to a multiple of it


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], usage="exec_transformers.py FOLDER [options]")
    parser.add_argument("folder")
    parser.add_argument("--numbers", action="store_true")
    parser.add_argument("--label")
    parser.add_argument("--threshold", type=float)
    parser.add_argument("--max-length", type=int)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--device")
    parser.add_argument("--dtype", default="float32", choices=("float32", "float16", "bfloat16"))
    return parser.parse_args()


def fail(message):
    sys.exit(f"exec_transformers.py: {message}")


class Classifier:
    def __init__(self, o):
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # standard output is for answers alone
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        self.torch, self.options = torch, o
        self.device = torch.device(o.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.tokenizer = AutoTokenizer.from_pretrained(o.folder)
        self.model = AutoModelForSequenceClassification.from_pretrained(o.folder, dtype=getattr(torch, o.dtype))
        self.model = self.model.to(self.device).eval()
        if self.tokenizer.pad_token is None:  # GPT-2 and its kind
            self.tokenizer.pad_token = self.tokenizer.eos_token or self.tokenizer.unk_token
        self.model.config.pad_token_id = self.tokenizer.pad_token_id
        self.max_length = o.max_length or min(self.tokenizer.model_max_length, 512)
        self.pieces = o.batch or (65536 if self.device.type == "cuda" else 4096)
        self.choose_answer(self.model.config)

    def choose_answer(self, config):
        """self.answer: from a row of logits to what is told."""
        o, names = self.options, {int(i): name for i, name in config.id2label.items()}
        self.answer = lambda row: int(row.argmax()) if o.numbers else names[int(row.argmax())]
        if o.threshold is not None:
            if config.num_labels != 1:
                fail(f"--threshold is for one number per text; this model has {config.num_labels}")
            self.answer = lambda row: "above" if float(row[0]) > o.threshold else "below"
        elif o.label is not None:
            numbers = [i for i, name in names.items() if name == o.label]
            if len(numbers) != 1:
                fail(f"there is no label {o.label!r}; there are {', '.join(names.values())}")
            self.answer = lambda row: o.label if float(row[numbers[0]]) > 0 else f"no-{o.label}"  # a probability above 1/2
        elif config.num_labels == 1:
            fail("this model gives one number per text (regression): say with --threshold T where the classes part")
        elif config.problem_type == "multi_label_classification":
            fail(f"this model gives a text several labels: choose one with --label, of {', '.join(names.values())}")

    def batches(self, lengths):
        """Texts of about one length together: (numbers of texts, padded length)."""
        batch, width = [], 0
        for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
            padded = max(STEP, -(-lengths[i] // STEP) * STEP)
            if batch and ((len(batch) + 1) * padded > self.pieces or (self.options.fixed and padded != width)):
                yield batch, width
                batch = []
            batch.append(i)
            width = padded
        if batch:
            yield batch, width

    def logits(self, rows, width):
        torch, count = self.torch, len(rows)
        if self.options.fixed:
            rows = rows + [rows[0]] * (max(1, self.pieces // width) - count)
        width = min(width, max(self.max_length, max(len(row["input_ids"]) for row in rows)))
        inputs = self.tokenizer.pad(rows, padding="max_length", max_length=width, return_tensors="pt").to(self.device)
        with torch.inference_mode():
            return self.model(**inputs).logits[:count].float().cpu()

    def classify(self, texts):
        encoded = self.tokenizer(texts, truncation=True, max_length=self.max_length)
        rows = [{name: encoded[name][i] for name in encoded} for i in range(len(texts))]
        answers = [None] * len(texts)
        for batch, width in self.batches([len(row["input_ids"]) for row in rows]):
            for i, row in zip(batch, self.logits([rows[i] for i in batch], width)):
                answers[i] = self.answer(row)
        return answers


def main():
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print goes to standard error
    classifier = Classifier(options())
    for line in sys.stdin.buffer:
        request = json.loads(line)
        print(json.dumps({"id": request["id"], "labels": classifier.classify(request["texts"])}), file=out, flush=True)


if __name__ == "__main__":
    main()
