#!/usr/bin/env python3
"""--device and safer devices: test_cli_devices.py [TEST...] BUILD_DIR. Run by ctest.

A plugin in plain C (mock_plugin.c) stands for a GPU; what it computes is tested by test_device.c.
"""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import must, read_run, without_times  # noqa: E402
from serving import Server  # noqa: E402
from test_cli import DONE, INPUT, SYSTEM, USAGE, Case, exists, run, write  # noqa: E402
from test_convert import make_folder  # noqa: E402

MODEL = ("--model", "bert.safetensors")
FILES = ("--lexicon", "words.lex", "--data", "texts.tsv")
CUDA = ("--device", "cuda")
ARITHMETIC = "bf16 cuda sm_00 mock"


def mock(folder="works", **orders):
    """The environment in which a folder's plugin is found, with orders for the mock."""
    build = pathlib.Path(test_cli.program).parent
    return {"SAFER_PLUGINS": str(build / "mock" / folder), **{f"MOCK_{name.upper()}": str(value) for name, value in orders.items()}}


def train(*arguments, **more):
    return run("train", "--arch", "bert", "--encoder", "encoder", "--train-layers", "all", "--data", "texts.tsv", "--lexicon", "words.lex",
               "--batch", 8, "--epochs", 2, *arguments, **more)


def label_there(case, *model):
    """Labels texts on one GPU and on three that take few at a time, with the same result; returns the arithmetic."""
    base = (*model, "--data", "texts.tsv", *CUDA, "--keep", 0.5, "--json")
    one = json.loads(case.ok(run("label", *base, "-o", "one.tsv", env=mock())))
    case.ok(run("label", *base, "-o", "three.tsv", "--batch", 3, env=mock(devices=3, texts=9)))
    case.assertEqual((one["texts"], one["kept"]), (40, 20))
    case.assertEqual(*((test_cli.temporary / name).read_bytes() for name in ("one.tsv", "three.tsv")))
    return one["model"]["arithmetic"]


def make_charcnn(name, characters=123, features=16, hidden=8):
    """A small charcnn of random weights, as model/charcnn_file.c writes them."""
    frames = ((characters - 6) // 3 - 6) // 3
    inputs = (frames - 8) // 3 * features
    shapes = {"conv.0.weight": (69, 7, features), "conv.0.bias": (features,), "dense.0.weight": (inputs, hidden), "dense.0.bias": (hidden,),
              "dense.1.weight": (hidden, hidden), "dense.1.bias": (hidden,), "output.weight": (2, hidden), "output.bias": (2,)}
    for k in range(1, 6):
        shapes |= {f"conv.{k}.weight": (7 if k == 1 else 3, features, features), f"conv.{k}.bias": (features,)}
    chance, header, data = random.Random(1), {}, b""
    header["__metadata__"] = {"arch": "charcnn", "labels": '["0","1"]', "trained_with": "{}",
                              "config": json.dumps({"characters": characters, "features": features, "hidden": hidden})}
    for tensor, shape in shapes.items():
        count = 1
        for side in shape:
            count *= side
        width = (12 / (7 if tensor == "conv.0.weight" else count // shape[-1] or 1)) ** 0.5
        header[tensor] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *(width * (chance.random() - 0.5) for _ in range(count)))
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    (test_cli.temporary / name).write_bytes(struct.pack("<Q", len(head)) + head + data)


def make_files():
    make_folder("encoder")
    make_charcnn("charcnn.safetensors")
    rows = [f"{k}\t{k % 2}\t{'good great' if k % 2 else 'bad poor'} text {'good' if k % 3 else 'bad'}" for k in range(40)]
    write("texts.tsv", "id\tlabel\ttext\n" + "\n".join(rows) + "\n")
    write("words.tsv", "good\tgreat\nbad\tpoor\n")
    must("lexicon", "import", "--table", "words.tsv", "--kernel", "component", "-o", "words.lex")
    done = train("-o", "bert.safetensors")
    if done.code != DONE:
        sys.exit(f"cannot make the common files: {done}")


class Devices(Case):
    def test_list(self):
        """the CPU, and GPUs or why there are none, for people and for programs"""
        environment = mock(devices=2, old=1)
        lines = self.ok(run("devices", env=environment)).splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["cpu", "cuda:0", "cuda:1"])
        self.assertIn(f"{os.cpu_count():,} thread" if len(os.sched_getaffinity(0)) == os.cpu_count() else "thread", lines[0])
        self.assertEqual(lines[1], "cuda:0   Mock, sm_00, 0.5 of 1.0 GB free, driver for mock 1.0")
        self.assertEqual(lines[2], "cuda:1   Mock, sm_00; cannot be used: Mock has compute capability 0.0; 8.0 is needed")
        cpu, first, second = json.loads(self.ok(run("devices", "--json", env=environment)))["devices"]
        self.assertTrue(cpu["arithmetic"].startswith("bf16 ") and cpu["instructions"] and cpu["memory"] > 0 and cpu["reason"] is None)
        self.assertEqual(first, {"name": "cuda:0", "hardware": "Mock", "instructions": "sm_00", "threads": None, "memory": 10**9,
                                 "free_memory": 5 * 10**8, "driver": "mock 1.0", "arithmetic": ARITHMETIC, "reason": None})
        self.assertEqual((second["name"], second["free_memory"]), ("cuda:1", None))
        self.assertIn("8.0 is needed", second["reason"])

    def test_none(self):
        """without a driver, without a plugin, with one of another version: what is missing is said, and the CPU is listed"""
        for environment, words in ((mock(devices=0), "there is no NVIDIA driver"), (mock("old"), "is of safer 0.0.9"),
                                   (mock("other"), "another build"), (mock("nameless"), "no plugin of safer"),
                                   ({"SAFER_PLUGINS": "/nowhere"}, "SAFER_PLUGINS is /nowhere")):
            out = self.ok(run("devices", env=environment))
            self.assertIn("cpu  ", out)
            self.assertRegex(out, f"(?m)^cuda +cannot be used: .*{words}")
            self.refused(run("predict", *MODEL, "--lexicon", "words.lex", *CUDA, "good", env=environment), SYSTEM, words)
            self.ok(run("predict", *MODEL, "--lexicon", "words.lex", "--device", "auto", "--quiet", "good", env=environment))
        self.refused(run("devices", "cuda"), USAGE, "cuda")

    def test_other_encoders(self):
        """encoders of other forms are handed to a plugin too: this one refuses them, and then auto is the CPU"""
        for kind in ("roberta", "modernbert", "deberta-v3"):
            golden = pathlib.Path(__file__).resolve().parent / "golden/encoders" / kind
            question = ("predict", "--model", golden, "--lexicon", "words.lex", "--quiet", "good")
            self.refused(run(*question, *CUDA, env=mock()), INPUT, "the mock takes encoders of the form of BERT")
            out = self.ok(run(*question, "--device", "auto", env=mock()))
            self.assertEqual(out, self.ok(run(*question)))
            lessons = ("train", "--arch", "bert", "--encoder", golden, "--train-layers", "all", *FILES, "--quiet")
            self.refused(run(*lessons, *CUDA, "-o", "other.safetensors", env=mock()), INPUT, "the mock takes encoders of the form of BERT")

    def test_mistakes(self):
        """names, models and options that do not go with a device"""
        for arguments, words in ((("--device", "gpu"), '"gpu" is none; cpu, cuda, cuda:N or auto'), (("--device", "cuda:7"), "there is no cuda:7"),
                                 ((*CUDA, "--arithmetic", "f32"), "--arithmetic is for the CPU")):
            self.refused(run("predict", *MODEL, "--lexicon", "words.lex", *arguments, "good", env=mock()), USAGE, words)
        self.ok(run("predict", *MODEL, "--lexicon", "words.lex", "--device", "cpu", "--arithmetic", "f32", "--quiet", "good", env=mock()))
        self.refused(run("predict", "--model", "exec:cat", "--labels", "0,1", "--lexicon", "words.lex", *CUDA, "good", env=mock()), USAGE,
                     "--device is for model files")


class Answers(Case):
    def test_certify_and_verify(self):
        """a record names the device's arithmetic, and is verified there alone; which threads and GPUs there are does not matter"""
        self.ok(run("certify", *MODEL, *FILES, *CUDA, "--n", 60, "-o", "cuda.jsonl", env=mock()))
        self.ok(run("certify", *MODEL, *FILES, *CUDA, "--n", 60, "--threads", 1, "-o", "three.jsonl", env=mock(devices=3, rows=64)))
        self.ok(run("certify", *MODEL, *FILES, "--n", 60, "-o", "cpu.jsonl"))
        self.assertEqual(read_run("cuda.jsonl")[0]["model"]["arithmetic"], ARITHMETIC)
        self.assertEqual(without_times("cuda.jsonl"), without_times("three.jsonl"))
        self.assertIn("40 records hold", self.ok(run("verify", "cuda.jsonl", *MODEL, *FILES, *CUDA, env=mock())))
        self.refused(run("verify", "cuda.jsonl", *MODEL, *FILES), INPUT, f'in the arithmetic "{ARITHMETIC}"', "give --device cuda")
        ours = read_run("cpu.jsonl")[0]["model"]["arithmetic"]
        self.refused(run("verify", "cpu.jsonl", *MODEL, *FILES, *CUDA, env=mock()), INPUT, f'"{ours}"; here it is "{ARITHMETIC}"',
                     "leave out --device, and give --arithmetic bf16")

    def test_failing(self):
        """a GPU that fails in the middle ends the run with one line; --resume goes on"""
        self.ok(run("certify", *MODEL, *FILES, *CUDA, "--n", 60, "-o", "whole.jsonl", env=mock()))
        failing = run("certify", *MODEL, *FILES, *CUDA, "--n", 60, "--threads", 1, "-o", "failed.jsonl", "--quiet", env=mock(fail=2))
        self.refused(failing, SYSTEM, "fell off the bus")
        self.ok(run("certify", *MODEL, *FILES, *CUDA, "--n", 60, "-o", "failed.jsonl", "--resume", env=mock()))
        self.assertEqual(without_times("whole.jsonl"), without_times("failed.jsonl"))

    def test_other_verbs(self):
        """predict, attack, label and serve take a device too"""
        answers = json.loads(self.ok(run("predict", *MODEL, "--lexicon", "words.lex", *CUDA, "--n", 60, "--json", "good great", env=mock())))
        self.assertEqual(len(answers["answers"]), 1)
        self.ok(run("attack", *MODEL, *FILES, *CUDA, "-o", "attack.jsonl", env=mock()))
        self.assertEqual(read_run("attack.jsonl")[0]["model"]["arithmetic"], ARITHMETIC)
        self.assertEqual(label_there(self, *MODEL), ARITHMETIC)
        server = Server(*MODEL, "--lexicon", "words.lex", *CUDA, "--n", 60, env=mock())
        try:
            status, answer = server.post("/v1/predict", {"texts": ["good great", "bad poor"]})[:2]
            self.assertEqual((status, len(answer["answers"])), (200, 2))
        finally:
            server.stop()

    def test_memory(self):
        """too little memory is one line"""
        self.refused(run("predict", *MODEL, "--lexicon", "words.lex", *CUDA, "good", env=mock(rows=2)), SYSTEM, "cuda:0 has not enough free memory")


class CharCNN(Case):
    """charcnn goes the same way as bert"""
    model = ("--model", "charcnn.safetensors")

    def test_certify_and_verify(self):
        """the same records whatever the threads, GPUs and batches; they are verified there alone"""
        self.ok(run("certify", *self.model, *FILES, *CUDA, "--quiet", "--n", 60, "-o", "charcnn-cuda.jsonl", env=mock()))
        self.ok(run("certify", *self.model, *FILES, *CUDA, "--quiet", "--n", 60, "--threads", 1, "-o", "charcnn-three.jsonl", env=mock(devices=3, texts=9)))
        self.assertEqual(read_run("charcnn-cuda.jsonl")[0]["model"]["arithmetic"], ARITHMETIC)
        self.assertEqual(without_times("charcnn-cuda.jsonl"), without_times("charcnn-three.jsonl"))
        self.assertIn("40 records hold", self.ok(run("verify", "charcnn-cuda.jsonl", *self.model, *FILES, *CUDA, env=mock())))
        self.refused(run("verify", "charcnn-cuda.jsonl", *self.model, *FILES), INPUT, f'in the arithmetic "{ARITHMETIC}"', "give --device cuda")

    def test_other_verbs(self):
        """predict, attack, label and serve ask it there; too little memory is one line"""
        self.ok(run("predict", *self.model, "--lexicon", "words.lex", *CUDA, "--n", 60, "--quiet", "good great", env=mock()))
        self.ok(run("attack", *self.model, *FILES, *CUDA, "-o", "charcnn-attack.jsonl", env=mock()))
        self.assertEqual(read_run("charcnn-attack.jsonl")[0]["model"]["arithmetic"], ARITHMETIC)
        self.assertEqual(label_there(self, *self.model), ARITHMETIC)
        server = Server(*self.model, "--lexicon", "words.lex", *CUDA, "--n", 60, env=mock())
        try:
            status, answer = server.post("/v1/predict", {"texts": ["good great", "bad poor"]})[:2]
            self.assertEqual((status, len(answer["answers"])), (200, 2))
        finally:
            server.stop()
        self.refused(run("predict", *self.model, "--lexicon", "words.lex", *CUDA, "good", env=mock(texts=0)), SYSTEM,
                     "cuda:0 has not enough free memory")

    def test_train(self):
        """trains there; stopped by a failure it keeps its checkpoint and goes on to the same file"""
        def learn(*arguments, **orders):
            return run("train", "--arch", "charcnn", "--data", "few.tsv", "--dev", "few.tsv", "--characters", 123, "--batch", 4, "--epochs", 2, *CUDA, *arguments,
                       env=mock(**orders))
        write("few.tsv", "id\tlabel\ttext\n" + "".join(f"{k}\t{k % 2}\t{'good' if k % 2 else 'bad'} text {k}\n" for k in range(8)))
        self.ok(learn("-o", "charcnn-there.safetensors", "--quiet"))
        failed = learn("-o", "charcnn-stopped.safetensors", fail=3)
        self.assertEqual(failed.code, SYSTEM)
        self.assertIn("continue with --resume", failed.err)
        self.ok(learn("-o", "charcnn-stopped.safetensors", "--resume", "--quiet"))
        whole, again = ((test_cli.temporary / name).read_bytes() for name in ("charcnn-there.safetensors", "charcnn-stopped.safetensors"))
        self.assertTrue(whole == again)
        self.refused(learn("-o", "charcnn-refused.safetensors", "--quiet", texts=3), SYSTEM, "a step of 4 texts of 123 characters: lower --batch or --characters")


class Context(Case):
    """the encoder of context goes the same way as bert, alone and in sums"""
    encoder = pathlib.Path(__file__).resolve().parent / "golden/encoders/bert"
    model = ("--model", "context.safetensors")
    files = ("--lexicon", "rep.lex", "--data", "texts.tsv")

    @classmethod
    def learn(cls, *arguments, **more):
        return run("train", "--arch", "context", "--encoder", cls.encoder, "--context", 4, "--epochs", 3, "--min-count", 1, *cls.files, *arguments, **more)

    @classmethod
    def setUpClass(cls):
        must("lexicon", "import", "--table", "words.tsv", "--kernel", "representative", "-o", "rep.lex")
        done = cls.learn("-o", "context.safetensors", "--quiet")
        if done.code != DONE:
            sys.exit(f"cannot train: {done}")
        write("with-context.json", json.dumps({"arch": "sum", "members": [{"model": "context.safetensors"},
                                                                          {"model": "charcnn.safetensors", "canonical": "rep.lex"}]}))

    def test_certify_and_verify(self):
        """the same records whatever the threads, GPUs and batches, by bounds and by draws; they are verified there alone"""
        for number, how in enumerate((("--method", "ibp"), ("--n", 60))):
            one, three, cpu = (f"context-{name}-{number}.jsonl" for name in ("cuda", "three", "cpu"))
            self.ok(run("certify", *self.model, *self.files, *CUDA, *how, "--quiet", "-o", one, env=mock()))
            self.ok(run("certify", *self.model, *self.files, *CUDA, *how, "--quiet", "--threads", 1, "-o", three, env=mock(devices=3, rows=64)))
            self.ok(run("certify", *self.model, *self.files, *how, "--quiet", "-o", cpu))
            self.assertEqual(read_run(one)[0]["model"]["arithmetic"], ARITHMETIC)
            self.assertEqual(without_times(one), without_times(three))
            if "ibp" in how:
                self.assertNotEqual(read_run(one)[1][0]["margins"], read_run(cpu)[1][0]["margins"])
            self.assertIn("40 records hold", self.ok(run("verify", one, *self.model, *self.files, *CUDA, env=mock())))
            self.refused(run("verify", one, *self.model, *self.files), INPUT, f'in the arithmetic "{ARITHMETIC}"', "give --device cuda")
            self.refused(run("verify", cpu, *self.model, *self.files, *CUDA, env=mock()), INPUT, f'here it is "{ARITHMETIC}"', "leave out --device")
            self.refused(run("certify", *self.model, *self.files, *how, "--resume", "-o", one), INPUT, ARITHMETIC)

    def test_failing(self):
        """a GPU that fails in the middle ends the run with one line; --resume goes on; too little memory is one line"""
        bounds = ("certify", "--method", "ibp", *self.model, *self.files, *CUDA, "--quiet")
        self.ok(run(*bounds, "-o", "context-whole.jsonl", env=mock()))
        self.refused(run(*bounds, "--threads", 1, "-o", "context-failed.jsonl", env=mock(fail=2, rows=64)), SYSTEM, "computing means: it fell off the bus")
        self.ok(run(*bounds, "-o", "context-failed.jsonl", "--resume", env=mock()))
        self.assertEqual(without_times("context-whole.jsonl"), without_times("context-failed.jsonl"))
        self.refused(run("predict", *self.model, "--lexicon", "rep.lex", *CUDA, "good", env=mock(rows=2)), SYSTEM, "cuda:0 has not enough free memory")

    def test_other_verbs(self):
        """predict, attack and serve ask it there"""
        bounds = (*self.model, "--lexicon", "rep.lex", *CUDA, "--method", "ibp")
        self.ok(run("predict", *bounds, "--quiet", "good great", env=mock()))
        self.ok(run("attack", *self.model, *self.files, *CUDA, "-o", "context-attack.jsonl", env=mock()))
        self.assertEqual(read_run("context-attack.jsonl")[0]["model"]["arithmetic"], ARITHMETIC)
        server = Server(*bounds, env=mock())
        try:
            status, answer = server.post("/v1/predict", {"texts": ["good great", "bad poor"]})[:2]
            self.assertEqual((status, len(answer["answers"])), (200, 2))
        finally:
            server.stop()

    def test_sums(self):
        """a sum with it is computed there; auto puts all members where each of them can be"""
        sum_of = ("--model", "with-context.json", *self.files, "--method", "ibp", "--quiet")
        write("only-context.json", json.dumps({"arch": "sum", "members": [{"model": "context.safetensors", "weight": 2}]}))
        self.ok(run("certify", *sum_of, *CUDA, "-o", "sum-cuda.jsonl", env=mock()))
        self.assertEqual(read_run("sum-cuda.jsonl")[0]["model"]["arithmetic"], ARITHMETIC)
        self.assertIn("40 records hold", self.ok(run("verify", "sum-cuda.jsonl", *sum_of[:6], *CUDA, env=mock())))
        self.refused(run("verify", "sum-cuda.jsonl", *sum_of[:6]), INPUT, "give --device cuda")
        self.ok(run("certify", *sum_of, "--device", "auto", "-o", "sum-auto.jsonl", env=mock(hidden=64)))  # charcnn cannot be there
        self.ok(run("certify", *sum_of, "-o", "sum-cpu.jsonl"))
        self.assertEqual(without_times("sum-auto.jsonl"), without_times("sum-cpu.jsonl"))
        self.ok(run("certify", "--model", "only-context.json", *sum_of[2:], "--device", "auto", "-o", "sum-one.jsonl", env=mock(hidden=64)))
        self.assertEqual(read_run("sum-one.jsonl")[0]["model"]["arithmetic"], ARITHMETIC)

    def test_train(self):
        """the encoder reads the texts there, to the same file whatever the threads and batches; a failure leaves nothing behind"""
        self.ok(self.learn(*CUDA, "-o", "context-there.safetensors", "--quiet", env=mock()))
        self.ok(self.learn(*CUDA, "-o", "context-again.safetensors", "--quiet", "--threads", 1, env=mock(rows=64, devices=2)))
        there, again, here = ((test_cli.temporary / f"{name}.safetensors").read_bytes() for name in ("context-there", "context-again", "context"))
        self.assertTrue(there == again != here)
        failed = self.learn(*CUDA, "-o", "context-none.safetensors", "--quiet", env=mock(fail=2, rows=64))
        self.refused(failed, SYSTEM, "fell off the bus")
        self.assertFalse(exists("context-none.safetensors"))
        self.assertNotIn("--resume", failed.err)  # there is nothing to resume
        for arguments, orders, words, code in ((("--precision", "f32"), {}, "a GPU computes in bf16", USAGE), (("--device", "x"), {}, '"x" is none', USAGE),
                                               ((), {"head": 64}, "heads of another size", INPUT),
                                               ((), {"rows": 2}, "cuda:0 has not enough free memory", SYSTEM)):
            self.refused(self.learn(*CUDA, *arguments, "-o", "context-none.safetensors", "--quiet", env=mock(**orders)), code, words)


class Training(Case):
    def test_train(self):
        """trains there; stopped by a failure it keeps its checkpoint, says so, and goes on to the same file"""
        self.ok(train(*CUDA, "-o", "there.safetensors", env=mock()))
        failed = train(*CUDA, "-o", "stopped.safetensors", env=mock(fail=8))
        self.assertEqual(failed.code, SYSTEM)
        self.assertIn("fell off the bus", failed.err)
        self.assertIn("continue with --resume", failed.err)
        self.assertFalse(exists("stopped.safetensors"))
        self.ok(train(*CUDA, "-o", "stopped.safetensors", "--resume", env=mock()))
        whole, again = ((test_cli.temporary / name).read_bytes() for name in ("there.safetensors", "stopped.safetensors"))
        self.assertTrue(whole == again)

    def test_refused(self):
        """what cannot be trained there, and what does not fit"""
        for arguments, orders, words in (((*CUDA, "--precision", "f32"), {}, "a GPU computes in bf16"), (("--device", "x"), {}, '"x" is none')):
            self.refused(train(*arguments, "-o", "refused.safetensors", env=mock(**orders)), USAGE, words)
        self.refused(train(*CUDA, "-o", "refused.safetensors", env=mock(rows=20)), SYSTEM, "a step of 8 texts of up to 8 pieces: lower --batch or --tokens")
        self.refused(run("train", "--arch", "ngram", "--data", "texts.tsv", *CUDA, "-o", "refused.safetensors", env=mock()), USAGE,
                     "ngram is trained on the CPU alone")

    def test_compare(self):
        """a study trains and asks its models on the device it names"""
        write("study.json", json.dumps({
            "data": {"small": {"train": "texts.tsv", "test": "texts.tsv", "lexicon": {"table": "words.tsv"}}},
            "models": {"bert": {"arch": "bert", "encoder": "encoder", "epochs": 1, "device": "cuda"}},
            "defenses": {"component": {"kernel": "component", "n": 60}}, "attacks": {}}))
        self.ok(run("compare", "study.json", "-o", "study", "--quiet", env=mock()))
        run_file, = (test_cli.temporary / "study").glob("*.jsonl")
        self.assertEqual(read_run(f"study/{run_file.name}")[0]["model"]["arithmetic"], ARITHMETIC)


class Script(Case):
    def test_without_a_gpu(self):
        """scripts/test-gpu says what is missing, and what it does not know"""
        build = pathlib.Path(test_cli.program).parent
        found = json.loads(self.ok(run("devices", "--json", env={"SAFER_PLUGINS": str(build)})))["devices"]
        if found[1]["reason"] is None:
            self.skipTest("there is a GPU here")
        script = pathlib.Path(__file__).resolve().parent.parent / "scripts/test-gpu"
        for arguments, code, words in ((("--no-build", "--build", str(build)), 3, "test-gpu: there is no "), (("--fast",), 2, "no option --fast"),
                                       (("--build",), 2, "--build needs a folder"), (("--help",), 0, "Usage: scripts/test-gpu")):
            done = subprocess.run([script, *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, code, done)
            self.assertIn(words, done.stdout + done.stderr)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
