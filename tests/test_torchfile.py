#!/usr/bin/env python3
"""Weights of PyTorch in HuggingFace folders: test_torchfile.py [TEST...] BUILD_DIR. Run by ctest.

Files are made without PyTorch (torch_files.py). A folder with pytorch_model.bin must become the same model file as one with
model.safetensors; what is hostile is refused with one line, and nothing of it is executed.
"""
import pathlib
import json
import sys
import unittest

sys.dont_write_bytecode = True
import test_cli  # noqa: E402
import torch_files  # noqa: E402
from test_cli import DONE, INPUT, run, write  # noqa: E402
from test_convert import count, make_folder  # noqa: E402
from torch_files import Storage, Tensor, torch_save  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent


def prepare():
    global tensors
    tensors = make_folder("plain")
    assert run("model", "convert", "plain", "-o", "plain.safetensors").code == DONE


def stored(kind="Float", views=False):
    """The encoder's tensors as PyTorch would have them; with views, matrices lie transposed, and vectors in one storage."""
    vectors = [(name, values) for name, (shape, values) in tensors.items() if len(shape) == 1]
    together = Storage(kind, [value for _, values in vectors for value in values])
    out, at = {}, 0
    for name, (shape, values) in tensors.items():
        if views and len(shape) == 1:
            out[name] = Tensor(together, shape, at)
            at += len(values)
        elif views:
            rows, columns = shape
            flipped = [values[i * columns + k] for k in range(columns) for i in range(rows)]
            out[name] = Tensor(Storage(kind, flipped), shape, 0, (1, rows))
        else:
            out[name] = Tensor(Storage(kind, values), shape)
    return out


def folder(name, files):
    """A copy of the plain folder with these in place of its weights."""
    plain = test_cli.temporary / "plain"
    for part in ("config.json", "vocab.txt"):
        write(f"{name}/{part}", (plain / part).read_bytes())
    for file, contents in files.items():
        write(f"{name}/{file}", contents)
    return name


class Torch(unittest.TestCase):
    def same(self, name):
        result = run("model", "convert", name, "-o", f"{name}.safetensors")
        self.assertEqual(result.code, DONE, result.err)
        self.assertEqual((test_cli.temporary / f"{name}.safetensors").read_bytes(),
                         (test_cli.temporary / "plain.safetensors").read_bytes(), name)

    def refused(self, name, words):
        result = run("model", "convert", name, "-o", "none.safetensors")
        self.assertEqual((result.code, result.out), (INPUT, ""), result.err)
        self.assertEqual(len(result.err.splitlines()), 1, result.err)
        self.assertIn(words, result.err)
        return result.err

    def test_same_model(self):
        """every type and form gives the model that safetensors give"""
        for kind in ("Float", "Half", "BFloat16", "Double"):
            for views in (False, True):
                for protocol in (2, 4):
                    name = f"as-{kind}-{views}-{protocol}"
                    folder(name, {"pytorch_model.bin": torch_save(stored(kind, views), protocol)})
                    self.same(name)

    def test_shards(self):
        names = list(stored())
        parts = {f"pytorch_model-0000{i + 1}-of-00003.bin": names[i::3] for i in range(3)}
        weights = stored(views=True)
        files = {file: torch_save({name: weights[name] for name in part}) for file, part in parts.items()}
        index = {"metadata": {"total_size": 1}, "weight_map": {name: file for file, part in parts.items() for name in part}}
        self.same(folder("shards", {**files, "pytorch_model.bin.index.json": json.dumps(index)}))
        for number, path in enumerate(("../plain/model.safetensors", "/etc/passwd", "../x.bin", "sub/x.bin", "x.safetensors", "..", "", 7, None)):
            other = {"weight_map": dict(index["weight_map"], **{names[0]: path})}
            name = folder(f"outside{number}", {**files, "pytorch_model.bin.index.json": json.dumps(other)})
            self.refused(name, f'tensor "{names[0]}" is not in a PyTorch file of the same folder')
        self.refused(folder("no-map", {"pytorch_model.bin.index.json": "{}"}), 'there is no "weight_map"')
        twice = {**files, "pytorch_model-00002-of-00003.bin": files["pytorch_model-00001-of-00003.bin"]}
        self.refused(folder("twice", {**twice, "pytorch_model.bin.index.json": json.dumps(index)}), "are both the model's")

    def test_golden(self):
        """folders that PyTorch and transformers wrote: whole, in shards, and the same weights as safetensors"""
        golden = ROOT / "tests/golden/torch"
        for name, source, wanted in (("golden-safe", "bert", "model.safetensors"), ("golden-bin", "bert", "pytorch_model.bin"),
                                     ("golden-shards", "bert-shards", "pytorch_model*")):
            for path in [golden / source / "config.json", golden / source / "vocab.txt", *(golden / source).glob(wanted)]:
                write(f"{name}/{path.name}", path.read_bytes())
            result = run("model", "convert", name, "-o", f"{name}.safetensors")
            self.assertEqual(result.code, DONE, result.err)
            self.assertEqual((test_cli.temporary / f"{name}.safetensors").read_bytes(),
                             (test_cli.temporary / "golden-safe.safetensors").read_bytes(), name)

    def test_preference(self):
        """safetensors first, then pytorch_model.bin, then ONNX"""
        plain = (test_cli.temporary / "plain/model.safetensors").read_bytes()
        self.same(folder("both", {"model.safetensors": plain, "pytorch_model.bin": b"x"}))
        self.same(folder("onnx", {"pytorch_model.bin": torch_save(stored()), "model.onnx": b"x"}))

    def test_hostile(self):
        """one line that says what is wrong, and nothing is executed"""
        for name, (contents, words) in torch_files.hostile().items():
            message = self.refused(folder("hostile", {"pytorch_model.bin": contents}), words)
            self.assertTrue(message.isprintable() or message.rstrip("\n").isprintable(), (name, message))

    def test_claims(self):
        """many views of one storage cannot ask for memory that the file does not have"""
        self.refused(folder("claims", {"pytorch_model.bin": torch_files.claims()}), "more than the file's bytes")

    def test_truncated(self):
        """a file cut off anywhere is refused"""
        whole = torch_save(stored(views=True))
        for length in range(0, len(whole), max(1, len(whole) // 40)):
            self.refused(folder("cut", {"pytorch_model.bin": whole[:length]}), "pytorch_model.bin")

    def test_corpus(self):
        """the fuzz target's corpus is what torch_files.py writes"""
        corpus = ROOT / "tests/fuzz/corpus/torchfile"
        for name, contents in torch_files.good().items():
            self.assertEqual((corpus / name).read_bytes(), contents, name)
        self.assertEqual(count((2, 3)), 6)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], prepare)
