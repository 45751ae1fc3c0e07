#!/usr/bin/env python3
"""The Python package: test_python.py [TEST...] BUILD_DIR. Run by ctest.

Most tests import python/safer_nlp with the library of BUILD_DIR and need the standard library
alone. Those that want scikit-learn, pandas, mypy or pip look for an interpreter that has
them, this one or Debian's, and are skipped with a line otherwise.
"""
import collections
import contextlib
import ctypes
import datetime
import decimal
import functools
import gc
import hashlib
import io
import json
import math
import os
import pathlib
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import traceback
import unittest
import urllib.request
import unittest.mock
import zipfile

sys.dont_write_bytecode = True
import interface  # noqa: E402
import test_cli  # noqa: E402  (it runs no test by being imported)
from test_cli import run, write  # noqa: E402
from test_convert import make_folder  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python"
EXAMPLE = ROOT / "examples/python_quickstart.py"
TABLE = {"good": ["great", "fine"], "film": ["movie", "picture"], "bad": ["awful", "poor"], "plot": ["story"]}
GOOD, BAD = ("good", "great"), ("bad", "awful")  # "fine" and "poor" fool this model
TEXTS = ["A good film, a great movie.", "A bad film; an awful picture.", "Nothing of note here.", "",
         "Good film, fine film, great film, good story and a fine plot, good picture.",
         "Poor film, bad movie, an awful plot in a bad film with a fine picture, poor story."]
LABELS = ["pos", "neg", "neg", "neg", "pos", "neg"]
SAMPLED = dict(method="binomial", n=200, n0=50)

safer = None  # the package
library = None  # the file it uses
component = topk = None  # lexicons


def vote(text):
    words = re.findall(r"[a-z]+", text.lower())
    return sum(word in GOOD for word in words) - sum(word in BAD for word in words)


def classify(texts):
    return ["pos" if vote(text) > 0 else "neg" for text in texts]


def scores(texts):
    return [[-vote(text), vote(text) - 0.5] for text in texts]


def made_summary(part, whole):
    """The summary of a run of `whole` texts of one label, of which `part` are certified and answered."""
    from safer_nlp import _results, _structs
    one = _structs.ClassSummary(label=b"x", texts=whole, certified=part, certified_answered=part)
    return _results.summarise(_structs.Summary(
        texts=whole, labelled=whole, base_correct=whole - 1, smoothed_correct=part, certified=part, certified_answered=part,
        certificates=part, stable=part, classes=1, by_class=ctypes.pointer(one)))


def temporary(name):
    return test_cli.temporary / name


def prepare(*cases):
    """Loads the package and makes what tests share; of a sanitized build the cases are skipped."""
    global safer, library, component, topk
    build = pathlib.Path(test_cli.program).parent
    library = build / "libsafer.so.0.2"
    cache = (build / "CMakeCache.txt").read_text() if (build / "CMakeCache.txt").is_file() else ""
    if re.search(r"^SAFER_SANITIZE:\w+=\S", cache, re.M):
        for case in cases or (Layout, Lexicons, Answers, Certify, Failures, Models, Tools, Install):
            unittest.skip("a library with sanitizers cannot be loaded into Python")(case)
        return
    os.environ["SAFER_LIBRARY"] = str(library)
    sys.path.insert(0, str(PACKAGE))
    import safer_nlp as package
    safer = package
    write("table.json", json.dumps(TABLE))
    component = safer.Lexicon.import_(temporary("table.json"), kernel="component")
    topk = safer.Lexicon.import_(temporary("table.json"), kernel="topk:2")
    component.save(temporary("c.lex"))
    subprocess.run([build / "demo-reviews", temporary("demo"), "--train", "1500", "--dev", "100", "--test", "40"], check=True,
                   capture_output=True)
    run_ok("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1, "--kernel",
           "topk:4", "-o", "demo.lex")
    run_ok("train", "--arch", "ngram", "--bits", 12, "--data", "demo/train.tsv", "--dev", "demo/dev.tsv", "--lexicon", "demo.lex", "-o",
           "demo.model")


def run_ok(*arguments):
    done = run(*arguments)
    if done.code:
        raise AssertionError(done)
    return done.out


def python_with(*modules):
    """An interpreter that has these modules: this one, or Debian's."""
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3")):
        if os.access(python, os.X_OK):
            command = [python, "-c", "import " + ", ".join(modules)]
            if subprocess.run(command, capture_output=True, cwd=test_cli.temporary).returncode == 0:
                return python
    raise unittest.SkipTest("no Python here has " + ", ".join(modules))


def script(python, code, *arguments, **more):
    """Runs Python code that may import safer_nlp; stdout and stderr as text."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
                   **more.pop("env", {})}
    return subprocess.run([python, "-c", code, *map(str, arguments)], cwd=test_cli.temporary, env=environment, capture_output=True,
                          text=True, timeout=300, **more)


def without_seconds(path):
    """The lines of a run, less what differs between two ways to make it: times, what the data is called, and so the seals."""
    lines = pathlib.Path(path).read_text().splitlines()
    lines[0] = re.sub(r'"data":{"name":"[^"]*"', '"data":{', lines[0])
    return [re.sub(r',"(seconds":[^,}]*|date":"[^"]*"),"check":"[0-9a-f]{16}"', "", line) for line in lines]


# --------------------------------------------------------------------- layout

class Layout(unittest.TestCase):
    def test_structures(self):
        """ctypes and the C compiler agree on every size and offset"""
        compiler = os.environ.get("CC") or shutil.which("cc")
        if not compiler:
            self.skipTest("no C compiler")
        from safer_nlp import _structs as c
        expected, lines = [], []
        for structure, name in c.IN_C.items():
            expected.append(ctypes.sizeof(structure))
            lines.append(f"sizeof({name})")
            for field, *_ in structure._fields_:
                expected += [getattr(structure, field).offset, getattr(structure, field).size]
                lines += [f"offsetof({name}, {field})", f"sizeof((({name} *)0)->{field})"]
        for whole, field, element in ((c.LexiconReport, "stages", c.LexiconStage), (c.LexiconReport, "ladder", c.LexiconRung),
                                      (c.Survey, "products", c.SurveyProduct)):
            for part, *_ in element._fields_:
                lines.append(f"offsetof({c.IN_C[whole]}, {field}[1].{part})")
                expected.append(getattr(whole, field).offset + ctypes.sizeof(element) + getattr(element, part).offset)
        for field, element in c.TrainOptions._fields_:
            for part, *_ in element._fields_ if isinstance(element, type) and issubclass(element, ctypes.Structure) else ():
                lines.append(f"offsetof(safer_train_options, {field}.{part})")
                expected.append(getattr(c.TrainOptions, field).offset + getattr(element, part).offset)
        self.assertGreater(len(lines), 250)
        write("layout.c", "#include <safer.h>\n#include <stdio.h>\nint main(void)\n{\n"
              + "".join(f'    printf("%zu\\n", (size_t)({line}));\n' for line in lines) + "    return 0;\n}\n")
        subprocess.run([compiler, "-std=c11", f"-I{ROOT}/include", temporary("layout.c"), "-o", temporary("layout")], check=True)
        found = [int(line) for line in subprocess.run([temporary("layout")], check=True, capture_output=True, text=True).stdout.split()]
        self.assertEqual(dict(zip(lines, expected)), dict(zip(lines, found)))

    def test_fields(self):
        """no member of a structure of safer.h is left out"""
        from safer_nlp import _structs as c
        header = re.sub(r"/\*.*?\*/", "", interface.text(), flags=re.S)
        for structure, name in c.IN_C.items():
            body = re.search(rf"typedef struct {name} {{(.*?)\n}} {name};", header, re.S)[1]
            body = re.sub(r"struct {.*?}", "struct", body, flags=re.S)
            body = re.sub(r"\w+ \(\*(report|log)\)\([^)]*\)", r"int \1", body)
            members = re.findall(r"(\w+)(?:\[[\w +]+\])?(?=\s*[,;])", body)
            self.assertEqual([field for field, *_ in structure._fields_], members, name)
        nested = re.search(r"typedef struct safer_train_options {(.*?)\n} safer_train_options;", header, re.S)[1]
        for body, name in re.findall(r"struct {(.*?)\n    } (\w+);", nested, re.S):
            members = re.findall(r"(\w+)(?=\s*[,;])", body)
            self.assertEqual([field for field, *_ in dict(c.TrainOptions._fields_)[name]._fields_], members, name)

    def test_constants(self):
        """enumerations, constants and the version are those of the header"""
        from safer_nlp import _errors, _library, _structs as c
        header = interface.text()
        self.assertEqual(re.search(r'SAFER_VERSION "(.*?)"', header)[1], safer.__version__)
        statuses = re.findall(r"^    X\((\w+), ", header, re.M)
        names = {"InvalidError": "INVALID", "InputError": "INPUT", "OperatingSystemError": "SYSTEM", "OutOfMemoryError": "MEMORY",
                 "CancelledError": "CANCELLED", "CallbackError": "CALLBACK"}
        self.assertEqual({k: names[error.__name__] for k, error in _errors._BY_STATUS.items()}, dict(enumerate(statuses[1:], 1)))

        for name, value in (("SAFER_DEFAULT", "(-1)"), ("SAFER_NO_WORD", "UINT32_MAX"), ("SAFER_ALL", "SIZE_MAX"), ("SAFER_RADII", "6")):
            self.assertRegex(header, rf"#define {name} {re.escape(value)}")
        self.assertEqual((c.DEFAULT, c.NO_WORD, c.ALL, c.RADII), (-1, 2**32 - 1, 2**64 - 1 if sys.maxsize > 2**32 else 2**32 - 1, 6))
        for name in _library._FUNCTIONS:
            made = re.fullmatch(r"(\w+)_(name|parse|init)", name)  # declared by a macro of the header
            macro = made and f"{dict(name='SAFER_NAMED', parse='SAFER_NAMED', init='SAFER_OPTIONS')[made[2]]}({made[1]});"
            self.assertTrue(re.search(rf"SAFER_API [^;]*\b{name}\(", header) or macro and macro in header, name)


# ------------------------------------------------------------------- lexicons

class Lexicons(unittest.TestCase):
    def test_show(self):
        """a word: synonyms, draws, overlap; any case"""
        word = topk.show("FILM")
        self.assertEqual((word.word, word.synonyms, word.total, word.similarity), ("film", ("movie", "picture"), 2, None))
        self.assertEqual(sum(word.weights), word.total)
        self.assertIn(word.worst, word.synonyms)
        self.assertEqual(word.overlap, min(topk.overlap("film", other) for other in word.synonyms))
        self.assertEqual(component["film"].support, ("film", "movie", "picture"))
        self.assertEqual(component["film"].overlap, 1.0)
        with self.assertRaisesRegex(KeyError, "'camera' is not in the lexicon"):
            topk.show("camera")

    def test_collection(self):
        """len, in, iteration"""
        words = list(component)
        self.assertEqual(len(words), len(component))
        self.assertEqual(component.words, 11)
        self.assertEqual(set(words), set(TABLE) | {word for list_ in TABLE.values() for word in list_})
        self.assertTrue("Movie" in component and "camera" not in component and 7 not in component and "\udc80" not in component)

    def test_files(self):
        """saved and loaded, it is the same; the command line reads it"""
        self.assertEqual(run_ok("lexicon", "export", "c.lex", "--what", "synonyms").splitlines()[0], "good\tgreat fine")
        with safer.Lexicon.load(str(temporary("c.lex"))) as loaded:
            self.assertEqual((loaded.sha256, loaded.kernel, list(loaded)), (component.sha256, "component", list(component)))
            self.assertEqual((loaded.name, component.name), ("c.lex", "memory"))
            self.assertEqual(loaded.info.sha256, hashlib.sha256(temporary("c.lex").read_bytes()).hexdigest())
            other = loaded.with_kernel("representative")
        self.assertEqual((other.kernel, other.words), ("representative", 11))
        self.assertNotEqual(other.sha256, component.sha256)
        self.assertEqual(other.info.provenance["made"], "import")
        self.assertEqual(component.report["pairs"], component.info.pairs)
        self.assertIn("kernel and overlaps", component.report["stages"])

    def test_diff(self):
        """what two lexicons say differently is what `safer lexicon diff` says"""
        write("d1.tsv", "hot\twarm\nwarm\theated\nbig\tlarge\nfilm\tmovie\nmovie\tpicture\n")
        write("d2.tsv", "hot\twarm\nbig\tlarge huge\nthe\ton\npicture\tmovie film\n")
        write("d.ant", "hot warm\n")
        write("d.keep", "film\n")
        tables = temporary("d1.tsv"), temporary("d2.tsv")
        made = [safer.Lexicon.import_(tables[0], kernel="component"), safer.Lexicon.import_(tables[0], directed=True, kernel="component"),
                safer.Lexicon.import_(tables[1], kernel="representative", fold="case", function_words=False),
                safer.Lexicon.import_(tables[1], kernel="component", antonyms=temporary("d.ant"), protect=temporary("d.keep"))]
        for i, lexicon in enumerate(made):
            lexicon.save(temporary(f"d{i}.lex"))
        for i, one in enumerate(made):
            for k, other in enumerate(made):
                done = run("lexicon", "diff", f"d{i}.lex", f"d{k}.lex", "--json")
                said, found = json.loads(done.out), one.diff(other)
                self.assertEqual((done.code, bool(found), said["same"]), (int(i != k), i != k, i == k))
                for name in ("words", "pairs", "cuts", "protected", "kernel", "fold"):
                    mine = {"kernel": found.kernels, "fold": [fold or "none" for fold in found.folds]}.get(name) or getattr(found, name)
                    self.assertEqual(json.loads(json.dumps(mine)), [said["first"][name], said["second"][name]], (i, k, name))
                self.assertEqual(list(found.drawn), said["drawn"])

    def test_audit(self):
        """the doubtful pairs are those of `safer lexicon audit`, in its order"""
        write("audit.tsv", "good\tgreat the\nhot\twarm cold\n")
        write("audit.vec", "good 1 0\ngreat 0.9 0.1\nhot 0 1\nwarm 0.1 1\ncold 1 0.1\nthe 0.5 0.5\n")
        write("audit.ant", "cold hot\n")
        made = safer.Lexicon.import_(temporary("audit.tsv"), vectors=temporary("audit.vec"), function_words=False)
        made.save(temporary("audit.lex"))
        said = json.loads(run_ok("lexicon", "audit", "audit.lex", "--antonyms", "audit.ant", "--distant", "0.9", "--json"))["list"]
        found = made.audit(antonyms=temporary("audit.ant"), distant=0.9)
        self.assertEqual([(pair.word, pair.synonym, list(pair.doubts)) for pair in found],
                         [(pair["word"], pair["synonym"], pair["doubts"]) for pair in said])
        self.assertEqual((found[0].doubts[0], found[1].doubts), ("function word", ("antonyms", "distant")))
        for pair, listed in zip(found, said):
            self.assertAlmostEqual(pair.similarity, listed["similarity"], places=6)
        self.assertEqual(made.audit(distant=0)[0].doubts, ("function word",))
        with self.assertRaises(safer.InvalidError):
            made.audit(distant=float("nan"))
        with self.assertRaisesRegex(safer.OperatingSystemError, "nowhere"):
            made.audit(wordnet="nowhere")

    def test_choose(self):
        """the kernel auto: chosen on labelled data as the program does, the same file"""
        run_ok("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "-o", "auto.lex")
        lexicon = safer.Lexicon.import_(ROOT / "demo/synonyms.tsv", vocab_from=temporary("demo/train.tsv"))
        self.assertEqual(lexicon.sha256, hashlib.sha256(temporary("auto.lex").read_bytes()).hexdigest())
        choice = lexicon.report["kernel_choice"]
        self.assertEqual([trial["kernel"] for trial in choice["trials"]], ["representative", "component"])
        first, other = choice["trials"]
        self.assertEqual((lexicon.kernel, choice["untried"], choice["texts"]), ("representative", None, choice["labelled"]))
        self.assertGreater((other["lost"], first["certified_answered"] / first["texts"]), (other["won"], 0.9))
        self.assertEqual([trial["certified_answered"] for trial in choice["trials"]],
                         [trial["certified_answered"] for trial in lexicon.info.provenance["kernel_choice"]["trials"]])
        again = lexicon.choose(safer.load_data(temporary("demo/train.tsv")), most_texts=200, seed=3)
        self.assertEqual(again.report["kernel_choice"]["texts"], 200)
        self.assertEqual(lexicon.with_kernel("component").info.provenance.get("kernel_choice"), None)
        with self.assertRaisesRegex(safer.InvalidError, "most_texts: 1"):
            lexicon.choose(["a", "b"], ["x", "y"], most_texts=1)

    def test_build(self):
        """from vectors, with data, constraints and progress"""
        write("v.txt", "good 1 0 0\ngreat 0.95 0.1 0\nbad -1 0.2 0\nawful -0.9 0.25 0\nfilm 0 0 1\nmovie 0 0.1 0.9\n")
        write("data.tsv", "1\tpos\tgood great film movie\n2\tneg\tbad awful film movie\n")
        write("syn.txt", "good great\n")
        stages = []
        lexicon = safer.Lexicon.build(temporary("v.txt"), vocab_from=str(temporary("data.tsv")), min_count=1, counterfit=1,
                                      synonyms=[temporary("syn.txt")], all_but_the_top=0, threshold=0.9, metric="cosine", kernel="component",
                                      progress=lambda *report: stages.append(report))
        self.assertEqual(lexicon.show("good").synonyms, ("great",))
        self.assertGreater(lexicon.show("good").similarity[0], 0.9)
        self.assertEqual(lexicon.show("film").count, 2)
        self.assertTrue(stages and all(isinstance(stage, str) for stage, _, _ in stages))
        self.assertEqual(lexicon.report["ladder"], {2: 1.0})
        plain = safer.Lexicon.build(temporary("v.txt"), all_but_the_top=0)
        self.assertEqual((plain.kernel, plain.report["kernel_choice"]["untried"]), ("representative", "there is no data"))
        with self.assertRaises(safer.CancelledError):
            safer.Lexicon.build(temporary("v.txt"), all_but_the_top=0, progress=lambda *report: True)
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            safer.Lexicon.build(temporary("v.txt"), all_but_the_top=0, progress=lambda *report: 1 / 0)

    def test_refused(self):
        """errors of the library are exceptions with its message"""
        for wrong, error, base, words in (
                (lambda: safer.Lexicon.load("nowhere.lex"), safer.OperatingSystemError, OSError, "nowhere.lex"),
                (lambda: safer.Lexicon.load(temporary("table.json")), safer.InputError, ValueError, "table.json"),
                (lambda: component.with_kernel("topk:none"), safer.InvalidError, ValueError, "topk:none"),
                (lambda: safer.Lexicon.build("v.txt", metric="sine"), safer.InvalidError, ValueError, 'metric is "sine"; it must be cosine or dot'),
                (lambda: component.save("/nowhere/x.lex"), safer.OperatingSystemError, OSError, "/nowhere/x.lex")):
            with self.assertRaisesRegex(error, re.escape(words)) as caught:
                wrong()
            self.assertIsInstance(caught.exception, base)
            self.assertIsInstance(caught.exception, safer.Error)

    def test_closing(self):
        """closed twice is nothing, used or pickled after is an error; models are never pickled"""
        lexicon = safer.Lexicon.load(temporary("c.lex"))
        self.assertRaisesRegex(TypeError, "a Model cannot be pickled", pickle.dumps, safer.Model.load(temporary("demo.model")))
        lexicon.close()
        lexicon.close()
        self.assertRaisesRegex(ValueError, "closed", lexicon.show, "good")
        self.assertRaisesRegex(ValueError, "closed", pickle.dumps, lexicon)
        self.assertRaisesRegex(ValueError, "closed", safer.certify, classify, TEXTS, LABELS, lexicon)
        self.assertIn("closed", repr(lexicon))
        self.assertIn("11 words", repr(component))


# -------------------------------------------------------------------- answers

class Tensor:
    """What torch has, as far as it matters."""

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        raise TypeError("bfloat16")

    def tolist(self):
        return self.values


Output = collections.namedtuple("Output", "logits")


class Estimator:
    """What scikit-learn has."""
    classes_ = ["neg", "pos"]

    def predict(self, texts):
        return classify(texts)

    def predict_proba(self, texts):
        return scores(texts)


class Answers(unittest.TestCase):
    def counts(self, predict, **options):
        results = safer.certify(predict, TEXTS, options.pop("labels", LABELS), component, **{**SAMPLED, **options})
        return [(list(k.counts.values()), k.prediction, k.base, k.certified) for k in results]

    def test_kinds(self):
        """labels, positions, scores, pipelines, tensors, estimators: the same certificates"""
        expected = self.counts(classify)
        position = {"neg": 0, "pos": 1}
        kinds = {
            "scores": scores,
            "tuples": lambda texts: tuple(map(tuple, scores(texts))),
            "positions": lambda texts: [position[k] for k in classify(texts)],
            "a generator": lambda texts: (k for k in classify(texts)),
            "a pipeline": lambda texts: [{"label": k, "score": 0.9} for k in classify(texts)],
            "its default names": lambda texts: [{"label": f"LABEL_{position[k]}", "score": 0.9} for k in classify(texts)],
            "all its scores": lambda texts: [sorted(({"label": k, "score": s} for k, s in zip(("neg", "pos"), row)),
                                                    key=lambda entry: -entry["score"]) for row in scores(texts)],
            "a tensor": lambda texts: Tensor(scores(texts)),
            "a list of tensors": lambda texts: [Tensor(row) for row in scores(texts)],
            "a tensor of labels": lambda texts: Tensor([position[k] for k in classify(texts)]),
            "a model's output": lambda texts: Output(Tensor(scores(texts))),
            "an estimator": Estimator(),
            "its method": Estimator().predict_proba,
            "small batches": classify}
        for name, predict in kinds.items():
            options = {"batch": 3} if name == "small batches" else {}
            self.assertEqual(self.counts(predict, **options), expected, name)

    def test_numpy(self):
        """arrays of labels and of scores"""
        python = python_with("numpy")
        done = script(python, """
import json, sys, numpy, safer_nlp as safer
sys.path.insert(0, sys.argv[1])
import test_python as t
lexicon = safer.Lexicon.load(sys.argv[2])
def counts(predict, labels=t.LABELS, **more):
    return [(list(k.counts.values()), k.certified) for k in safer.certify(predict, t.TEXTS, labels, lexicon, **t.SAMPLED, **more)]
expected = counts(t.classify)
numbers = lambda texts: [int(k == "pos") for k in t.classify(texts)]
ones = numpy.array([int(k == "pos") for k in t.LABELS])
assert counts(lambda texts: numpy.array(t.classify(texts))) == expected
assert counts(lambda texts: numpy.array(t.classify(texts), dtype=object), numpy.array(t.LABELS)) == expected
for kind in (numpy.int64, numpy.uint8, numpy.float32, numpy.float64, bool):
    assert counts(lambda texts: numpy.array(numbers(texts), dtype=kind), ones) == expected, kind
    assert counts(lambda texts: list(numpy.array(numbers(texts), dtype=kind)), ones.astype(float)) == expected, kind
for kind in (numpy.float16, numpy.float32, numpy.int32):
    assert counts(lambda texts: (2 * numpy.array(t.scores(texts))).astype(kind)) == expected, kind
    assert counts(lambda texts: list((2 * numpy.array(t.scores(texts))).astype(kind))) == expected, kind
for bad, words in ((numpy.full((6, 2), numpy.nan), "nan as the score"), (numpy.zeros((6, 3)), "3 scores per text; there are 2 classes"),
                   (numpy.zeros((1, 2)), "scores for 1 text, but"), (numpy.zeros((6, 2, 2)), "3 dimensions"),
                   (numpy.full(6, 0.25), "0.25 for text 0")):
    try:
        counts(lambda texts: bad)
        raise SystemExit(f"not refused: {words}")
    except safer.InputError as error:
        assert words in str(error), error
print("fine")
""", ROOT / "tests", temporary("c.lex"))
        self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)

    def test_refused(self):
        """wrong lengths, unknown labels, scores that are no numbers: errors that name them"""
        count = len(TEXTS)
        for answer, words in (
                (["pos"], f"1 answers for {count} texts"), ("pos", "'pos'; a list"), (None, "None; a list"), (7, "7; a list"),
                (["pos"] * (count - 1) + ["odd"], f"'odd' for text {count - 1} of a batch; the classes are: neg, pos"),
                ([2] * count, "2 for text 0"), ([-1] * count, "-1 for text 0"), ([0.3] * count, "0.3 for text 0"),
                ([b"pos"] * count, "b'pos'"), ([[0.1, 0.2, 0.7]] * count, "3 scores for text 0 of a batch; there are 2 classes"),
                ([[0.5, math.nan]] * count, "nan as the score of class \"pos\" for text 0"), ([[0.5, math.inf]] * count, "inf"),
                ([["a", "b"]] * count, "'a' as the score"), ([{"lable": "pos"}] * count, "\"label\" and \"score\""),
                ([{"label": "odd", "score": 1}] * count, "'odd'"), ([{"label": "LABEL_2", "score": 1}] * count, "LABEL_2"),
                ([{"label": "pos", "score": math.nan}] * count, "nan"), ({"label": "pos"}, "a list")):
            with self.assertRaisesRegex(safer.InputError, re.escape(words)):
                self.counts(lambda texts, answer=answer: answer)

    def test_classes(self):
        """classes are the labels in the library's order, or as given, or the estimator's"""
        results = safer.certify(lambda texts: [10] * len(texts), TEXTS, [10, 9, "x", None, 9.0, 10], component)
        self.assertEqual(results.config["labels"], ["9", "10", "x"])
        self.assertEqual([k.label for k in results], ["10", "9", "x", None, "9", "10"])
        results = safer.certify(scores, TEXTS, [1, 0, 0, 0, 1, None], component, classes=("bad", "good"))
        self.assertEqual([k.label for k in results], ["good", "bad", "bad", "bad", "good", None])
        self.assertEqual(safer.certify(Estimator(), TEXTS, None, component).config["labels"], ["neg", "pos"])
        truth = [k == "pos" for k in LABELS]
        self.assertEqual(safer.certify(lambda texts: [vote(text) > 0 for text in texts], TEXTS, truth, component).config["labels"],
                         ["False", "True"])
        with self.assertRaisesRegex(safer.InvalidError, "classes: none from the labels"):
            safer.certify(classify, TEXTS, None, component)
        with self.assertRaisesRegex(safer.InvalidError, "classes: pos from the labels"):
            safer.certify(classify, TEXTS, ["pos"] * len(TEXTS), component)
        with self.assertRaisesRegex(safer.InputError, r"labels\[1\] is 'neg', which the model does not know \(it knows: a, pos\)"):
            safer.certify(classify, TEXTS, LABELS, component, classes=["a", "pos"])
        with self.assertRaisesRegex(safer.InvalidError, "NaN"):
            safer.certify(classify, TEXTS, None, component, classes=["neg", math.nan])

    def test_no_answer(self):
        """None is a vote for no class"""
        def shy(texts):
            return [None if "fine" in text else "pos" for text in texts]
        record = safer.certify(shy, ["A fine film."], ["pos"], component, classes=["neg", "pos"])[0]
        self.assertEqual((record.exact, dict(record.counts), record.base), (True, {"neg": 0, "pos": 6}, None))
        self.assertTrue(record.certified)
        record = safer.certify(shy, ["A fine film."], ["pos"], component, classes=["neg", "pos"], **SAMPLED)[0]
        asked = safer.draws(component, "A fine film.", 200)
        self.assertEqual(dict(record.counts), {"neg": 0, "pos": sum("fine" not in text for text in asked)})


# -------------------------------------------------------------- certification

class Certify(unittest.TestCase):
    def test_recomputed(self):
        """counts are those of predict on the draws that safer.draws lists"""
        sampled = collections.Counter()
        for lexicon in (component, topk):
            for method in ("binomial", "adaptive"):
                results = safer.certify(classify, TEXTS, LABELS, lexicon, method=method, n=300, n0=60, seed=7)
                sampled[method] += sum(not record.exact for record in results)
                for text, record in zip(TEXTS, results):
                    self.assertEqual(record.base, classify([text])[0])
                    if record.exact:
                        continue
                    votes = collections.Counter(classify(safer.draws(lexicon, text, record.n, seed=7)))
                    self.assertEqual({"neg": votes["neg"], "pos": votes["pos"]}, record.counts)
                    vote = record.queries - record.n
                    self.assertTrue(13 <= vote <= 60, vote)
                    chosen = collections.Counter(classify(safer.draws(lexicon, text, vote, stage="selection", seed=7)))
                    self.assertEqual(record.prediction, "pos" if chosen["pos"] > chosen["neg"] else "neg")
                    self.assertEqual(record.abstained, vote == 60)
        self.assertTrue(sampled["binomial"] == 12 and sampled["adaptive"] >= 2, sampled)

    def test_edits(self):
        """with delete, counts are those of the draws that delete; edits are certified, verified and predicted"""
        results = safer.certify(classify, TEXTS, LABELS, component, method="binomial", n=300, n0=60, seed=7, delete=0.5, edits=2, edit_kind="delete",
                                output=temporary("edits.jsonl"), model_name="counting")
        for text, record in zip(TEXTS, results):
            votes = collections.Counter(classify(safer.draws(component, text, 300, seed=7, delete=0.5)))
            self.assertEqual({"neg": votes["neg"], "pos": votes["pos"]}, record.counts)
            self.assertIn(record.edits, (0, 1, 2))
        self.assertEqual((results.config["edits"], results.config["delete"], results.summary.edit_kind), (2, 0.5, "delete"))
        self.assertEqual(results.summary.certified_edits[2], results.summary.certified_accuracy)
        found = safer.verify(temporary("edits.jsonl"), classify, TEXTS, LABELS, component, model_name="counting")
        self.assertEqual((found.delete, found.edits, found.certified_edits), (0.5, 2, results.summary.certified_edits))
        answer, = safer.Smoothed(classify, component, classes=["neg", "pos"], delete=0.5, edits=2, seed=1).predict([TEXTS[0]])
        self.assertIsNotNone(answer.edits)
        self.assertIsNone(safer.certify(classify, TEXTS, LABELS, component)[0].edits)
        kept = safer.certify(classify, TEXTS, LABELS, component, method="binomial", n=300, n0=60, seed=7, delete="keep:2", edit_kind="delete", output=temporary("kept.jsonl"),
                             model_name="counting")
        for text, record in zip(TEXTS, kept):
            votes = collections.Counter(classify(safer.draws(component, text, 300, seed=7, delete="keep:2")))
            self.assertEqual({"neg": votes["neg"], "pos": votes["pos"]}, record.counts)
        self.assertEqual((kept.config["delete"], safer.verify(temporary("kept.jsonl")).delete), ("keep:2", "keep:2"))
        for wrong in (dict(delete="keep:0"), dict(delete="x"), dict(edits=2), dict(edit_kind="insert"), dict(delete=1.0), dict(delete=0.5, edits=0), dict(delete=0.5, edits=65), dict(delete=.5, edit_kind="x")):
            with self.assertRaises(safer.InvalidError):
                safer.certify(classify, TEXTS, LABELS, component, **wrong)

    def test_groups(self):
        """with groups every group has one vote, and the lead says how many edits are certified"""
        results = safer.certify(classify, TEXTS, LABELS, component, groups=5, edits=1, seed=3, output=temporary("groups.jsonl"), model_name="counting")
        for text, record in zip(TEXTS, results):
            votes = collections.Counter(classify(safer.draws(component, text, groups=5, seed=3)))
            self.assertEqual({k: votes[k] for k in ("neg", "pos")}, record.counts)
            rival = "neg" if record.target == "pos" else "pos"
            self.assertEqual(record.edits, int(votes[record.target] - votes[rival] > 4))
            self.assertTrue(record.exact and record.queries <= 5)
        self.assertEqual((results.config["method"], results.config["groups"]), ("groups", 5))
        found = safer.verify(temporary("groups.jsonl"), classify, TEXTS, LABELS, component, model_name="counting")
        self.assertEqual((found.groups, found.delete, found.edits, found.delta), (5, 0.0, 1, 0.0))
        answers = [safer.Smoothed(classify, component, classes=["neg", "pos"], groups=5).predict([TEXTS[0]])[0] for _ in range(2)]
        self.assertEqual((answers[0].shares, answers[0].seed), (answers[1].shares, 1))
        self.assertIsNotNone(answers[0].edits)
        with safer.serve(classify, component, classes=["neg", "pos"], groups=5, edits=2, port=0) as server:
            with urllib.request.urlopen(f"{server.url}/v1/model", timeout=20) as answer:
                told = json.load(answer)
            body = json.dumps({"texts": [TEXTS[0]]}).encode()
            asked = urllib.request.Request(f"{server.url}/v1/predict", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(asked, timeout=20) as answer:
                found, = json.load(answer)["answers"]
        self.assertEqual((told["method"], told["groups"], told["edits"], told["seed"]), ("groups", 5, 2, 1))
        self.assertEqual((found["shares"], found["edits"]), (dict(answers[0].shares), answers[0].edits))
        for wrong in (dict(groups=0), dict(groups=5, delete=0.5), dict(groups=5, method="binomial"), dict(method="groups"), dict(groups=10001)):
            with self.assertRaises(safer.InvalidError):
                safer.certify(classify, TEXTS, LABELS, component, **wrong)
        draws = random.Random(1)
        with self.assertRaisesRegex(safer.Error, "answers at random") as caught:
            safer.certify(lambda texts: [draws.choice(["neg", "pos"]) for _ in texts], TEXTS, LABELS, component, groups=5)
        self.assertNotIn("records in", str(caught.exception))  # of a file that the caller has not named

    def test_named_labels(self):
        """labels of other types are named as they are written"""
        labels = [decimal.Decimal("1.50") if label == "pos" else datetime.date(2026, 11, 18) for label in LABELS]
        results = safer.certify(lambda texts: [decimal.Decimal("1.50") if answer == "pos" else "2026-11-18" for answer in classify(texts)], TEXTS, labels, component)
        self.assertEqual({k.label for k in results}, {"1.50", "2026-11-18"})

    def test_command_line(self):
        """a model file certified here and by `safer certify`: the same records, but for the name of the data"""
        data = safer.load_data(temporary("demo/test.tsv"), sample="every:4")
        self.assertEqual((len(data.texts), len(data.labels), set(data.labels)), (len(data.ids), 10, {"0", "1"}))
        model, lexicon = safer.Model.load(temporary("demo.model")), safer.Lexicon.load(temporary("demo.lex"))
        results = safer.certify(model, data.texts, data.labels, lexicon, ids=data.ids, n=1000, output=temporary("py.jsonl"))
        summary = json.loads(run_ok("certify", "--model", "demo.model", "--lexicon", "demo.lex", "--data", "demo/test.tsv", "--sample",
                                    "every:4", "--n", 1000, "-o", "cli.jsonl", "--json"))
        self.assertEqual(without_seconds(temporary("py.jsonl")), without_seconds(temporary("cli.jsonl")))
        ours = results.summary
        self.assertEqual((ours.texts, ours.clean_accuracy, ours.smoothed_accuracy, ours.certified_accuracy, ours.queries, ours.base_queries),
                         tuple(summary[k] for k in ("examples", "clean_accuracy", "smoothed_accuracy", "certified_accuracy", "queries",
                                                    "base_queries")))
        self.assertEqual({str(k): v for k, v in ours.certified_at.items()}, summary["certified_at"])
        self.assertEqual(list(ours.certified_interval), summary["certified_interval"])
        # asked through Python, text by text or by scores, it answers the same
        for predict in (model.classify, model.scores, lambda texts: model(texts)):
            again = safer.certify(predict, data.texts, data.labels, lexicon, ids=data.ids, n=1000, classes=model.labels)
            for one, other in zip(results, again):
                self.assertEqual((one.counts, one.n, one.radius, one.bound, one.base), (other.counts, other.n, other.radius, other.bound, other.base))

    def test_results(self):
        """a sequence of records with a summary, a table, JSON Lines"""
        results = safer.certify(classify, TEXTS, LABELS, topk, ids=["a", "b", "c", "d", "e", 6], radius=1, model_name="classify")
        self.assertEqual(([k.id for k in results], len(results), results[-1].id), (["a", "b", "c", "d", "e", "6"], 6, "6"))
        self.assertEqual([k.id for k in results[1:3]], ["b", "c"])
        s = results.summary
        self.assertEqual(s.certified_accuracy, sum(k.certified for k in results) / 6)
        self.assertEqual(s.smoothed_accuracy, sum(k.prediction == k.label for k in results) / 6)
        self.assertEqual(s.clean_accuracy, sum(k.base == k.label for k in results) / 6)
        self.assertEqual(s.certified_at, {radius: sum(k.certified_at(radius) for k in results) / 6 for radius in (1, 2, 5, 10, 20, "all")})
        self.assertEqual((s.queries, s.without_slots, s.labelled), (sum(k.queries for k in results), 2, 6))
        self.assertTrue(0 < s.predict_seconds < s.seconds and s.traffic.asked + s.traffic.again >= s.queries)
        for part in ("certified and answered", "at radius 1", f"{int(10000 * s.certified_accuracy) / 100:.2f}%", "all words changed"):
            self.assertIn(part, repr(results))
        answered = [k.certified and not k.abstained and k.prediction == k.label for k in results]
        self.assertEqual((s.certified_answered, s.stable, s.headline), (sum(answered) / 6, sum(answered) / 6, ("certified and answered", sum(answered), 6)))
        for entry in s.classes:
            own = [k for k in results if k.label == entry.label]
            held = sum(a for a, k in zip(answered, results) if k.label == entry.label)
            self.assertEqual((entry.texts, entry.certified, entry.certified_answered), (len(own), sum(k.certified for k in own), held))
            self.assertEqual(entry.certified_recall, held / len(own))
            self.assertEqual(entry.certified_precision, held / (held + 6 - len(own) - (sum(answered) - held)))
            self.assertEqual(entry.answers, {"neg": sum(k.prediction == "neg" and not k.abstained for k in own),
                                             "pos": sum(k.prediction == "pos" and not k.abstained for k in own), None: sum(k.abstained for k in own)})
        self.assertTrue(s.remote)
        with self.assertRaises(Exception):
            results[0].label = "x"
        results.to_json(temporary("results.jsonl"))
        self.assertEqual(safer.verify(temporary("results.jsonl")).certified_accuracy, s.certified_accuracy)
        self.assertIn("6 records hold", run_ok("verify", "results.jsonl"))
        unnamed = safer.certify(classify, TEXTS, LABELS, topk)
        self.assertRaisesRegex(safer.InvalidError, "model_name", unnamed.to_json, temporary("unnamed.jsonl"))

    def test_nothing_is_rounded_up(self):
        """75.047% is printed as 75.04%, and the ends of its interval outward"""
        text = repr(safer.Results(['{"radius": "all"}'], made_summary(75047, 100000)))
        self.assertIn("certified and answered   75.04%  at radius all (95%: 74.77% to 75.32%)", text)
        self.assertIn("clean                    99.99%", text)
        self.assertIn("label x: 100,000 texts, recall 75.04%", text)
        for part, whole, shown in ((29, 100, "29.00"), (57, 100, "57.00"), (2, 3, "66.66"), (0, 7, "0.00"), (7, 7, "100.00"), (19999, 20000, "99.99")):
            self.assertIn(f"{shown}%  at radius", repr(safer.Results(['{"radius": "all"}'], made_summary(part, whole))))

    def test_unlabelled_texts(self):
        """texts without a label are in no accuracy; without any label it is stability"""
        some = safer.certify(classify, TEXTS, [LABELS[0], None, *LABELS[2:]], component)
        self.assertEqual((some.summary.labelled, some.summary.unlabelled, some.summary.unlabelled_certified), (5, 1, some[1].certified))
        self.assertEqual(some.summary.certified_accuracy, sum(k.certified for k in some if k.label) / 5)
        none = safer.certify(classify, TEXTS, None, component, classes=["neg", "pos"]).summary
        self.assertEqual((none.certified_accuracy, none.certified_interval, none.certified_at, none.headline[0]), (None, None, {}, "stable"))
        self.assertIn("stable", repr(safer.certify(classify, TEXTS, None, component, classes=["neg", "pos"])))

    def test_caution(self):
        """a lexicon that does not fit the language is told before any figure"""
        results = safer.certify(classify, ["zut alors", "sapristi", "a good film"], None, component, classes=["neg", "pos"])
        self.assertEqual(results.summary.empty, 2)
        self.assertIn("most certificates are empty: in 2 of 3", results.summary.caution)
        self.assertTrue(repr(results).startswith("caution: most certificates are empty"))
        self.assertIsNone(safer.certify(classify, ["zut alors", "a good film"], None, component, classes=["neg", "pos"]).summary.caution)

    def test_filters(self):
        """pairs that options leave out are counted and listed; a survey says when a lexicon does not fit"""
        table = temporary("filters.tsv")
        table.write_text("good\tgreat fine\nfilm\tmovie\n")
        seen = temporary("filters.seen")
        seen.write_text("1\tx\tgood great great great fine film movie\n")
        lexicon = safer.Lexicon.import_(table, kernel="component", nearest=1, vocab_from=seen, min_count=1, max_frequency=0.4)
        self.assertEqual({key: lexicon.report[key] for key in ("frequent_words", "filtered_for_frequency", "filtered_for_rank")},
                         {"frequent_words": 1, "filtered_for_frequency": 1, "filtered_for_rank": 0})
        self.assertEqual(lexicon.export(what="cuts"), "good\tgreat\tfrequency\n")
        self.assertIsNone(lexicon.stats(["good film"] * 50).caution)
        self.assertIn("only 5 of 100 words", lexicon.stats(["good " + "zut " * 19] * 5).caution)
        words = ["good"] + ["zut"] * 19
        results = safer.certify(classify, [" ".join(words)] * 5, None, lexicon, classes=["neg", "pos"])
        self.assertIn("certificates say little: only 5 of 100 words", results.summary.caution)

    def test_no_texts(self):
        """nothing to certify is refused; nothing to answer is no answers"""
        self.assertRaisesRegex(safer.InvalidError, "texts: there are none", safer.certify, classify, [], [], component)
        self.assertEqual(safer.Smoothed(classify, component, classes=["neg", "pos"]).predict([]), [])

    def test_output(self):
        """output, resume, and what is refused"""
        path, certify = temporary("out.jsonl"), functools.partial(safer.certify, model_name="classify")
        self.assertRaisesRegex(safer.InvalidError, "model_name: a function", safer.certify, classify, TEXTS, LABELS, topk, output=path)
        self.assertFalse(path.exists())
        whole = certify(classify, TEXTS, LABELS, topk, output=path)
        self.assertEqual(len(path.read_text().splitlines()), 7)
        self.assertRaisesRegex(safer.InvalidError, "exists; resume it", certify, classify, TEXTS, LABELS, topk, output=path)
        path.write_text("".join(path.read_text().splitlines(True)[:4]))
        part = certify(classify, TEXTS, LABELS, topk, output=str(path), resume=True)
        self.assertEqual(part.summary.resumed, 3)
        self.assertEqual([k.counts for k in part], [k.counts for k in whole])
        for other in (dict(seed=2), dict(model_name="another")):
            self.assertRaisesRegex(safer.InputError, "another run", certify, classify, TEXTS, LABELS, topk, output=path, resume=True, **other)
        self.assertRaises(safer.InputError, certify, lambda texts: ["pos"] * len(texts), TEXTS, LABELS, topk, output=path, resume=True)
        self.assertRaisesRegex(safer.InvalidError, "resume", certify, classify, TEXTS, LABELS, topk, resume=True)
        self.assertRaises(safer.OperatingSystemError, certify, classify, TEXTS, LABELS, topk, output="/nowhere/x.jsonl")

    def test_options(self):
        """unlabelled, family-wise, methods, threads, and options that are impossible"""
        wrong = [{"pos": "neg", "neg": "pos"}[k] for k in LABELS]
        stable = safer.certify(classify, TEXTS, wrong, component, unlabelled=True).summary
        self.assertEqual((stable.stable, stable.certified_accuracy, stable.headline), (1.0, 0.0, ("stable", 6, 6)))
        self.assertLess(safer.certify(classify, TEXTS, wrong, component).summary.certified_accuracy, 0.5)
        self.assertEqual(safer.certify(classify, TEXTS, LABELS, component, family_wise=True).config["delta_text"], 0.01 / 6)
        self.assertEqual(safer.certify(classify, TEXTS, LABELS, component, method="hoeffding", n=100).config["method"], "hoeffding")
        for bad, words in ((dict(method="magic"), 'method is "magic"'), (dict(radius=-1), "radius: -1"), (dict(radius=1.5), "radius: 1.5"), (dict(groups=True), "groups: True"),
                           (dict(groups="5"), "groups: '5'"), (dict(n=50.0), "n: 50.0"), (dict(threads=2**32 + 1), "threads: 4294967297"),
                           (dict(radius="some"), "radius"),
                           (dict(n=0), "n"), (dict(n=-5), "n: -5"), (dict(delta=2), "delta"), (dict(alpha=0), "alpha"), (dict(batch=0), "batch"),
                           (dict(seed=-1), "seed"), (dict(seed=2**64), "seed"), (dict(ids=[1]), "ids: 1 for 6 texts"),
                           (dict(labels=["pos"]), "labels: 1 for 6 texts"), (dict(texts="abc"), "texts: a list"),
                           (dict(texts=[1] * 6), r"texts\[0\]: a str"), (dict(texts=["\ud800"] * 6), r"texts\[0\]: no valid text"),
                           (dict(lexicon=None), "lexicon"), (dict(predict=3), "predict"), (dict(classes=["a", "a", "b"]), "\"a\" twice"), (dict(cache=True), "cache: only a model"),
                           (dict(function=True, random=True), "function: the model"), (dict(model_name="two\nlines"), "model_name"),
                           (dict(model_name="a\0b"), "model_name"), (dict(model_name=""), "model_name")):
            arguments = {"predict": classify, "texts": TEXTS, "labels": None, "lexicon": component, "classes": ["neg", "pos"], **bad}
            with self.assertRaisesRegex(ValueError, words):
                safer.certify(**arguments)

    def test_cache(self):
        """identical texts are asked once when the model is declared a function"""
        asked = []

        def counting(texts):
            asked.extend(texts)
            return classify(texts)
        plain = safer.certify(counting, TEXTS, LABELS, topk, **SAMPLED)
        often = len(asked)
        asked.clear()
        cached = safer.certify(counting, TEXTS, LABELS, topk, function=True, cache=True, **SAMPLED)
        self.assertEqual([k.counts for k in cached], [k.counts for k in plain])
        self.assertLess(len(asked), often / 2)
        self.assertGreater(cached.summary.traffic.cached, 0)

    def test_random(self):
        """a model that contradicts itself is found out, or said to be random: nothing is exact"""
        turn = iter(range(10**9))

        def moody(texts):
            return ["pos" if next(turn) % 7 else "neg" for _ in texts]
        found = safer.certify(moody, TEXTS, LABELS, component)
        self.assertTrue(found.config["model"]["random"])
        self.assertFalse(any(k.exact for k in found))
        self.assertRaisesRegex(safer.InputError, "as was declared", safer.certify, moody, TEXTS, LABELS, component, function=True)
        said = safer.certify(classify, TEXTS, LABELS, component, random=True)
        self.assertTrue(said.config["model"]["random"] and not any(k.exact for k in said))
        self.assertEqual(said.summary.traffic.again, 0)

    def test_batches(self):
        """no batch is larger than asked for, and few are tiny"""
        sizes = []

        def counting(texts):
            sizes.append(len(texts))
            return classify(texts)
        safer.certify(counting, TEXTS[-1:] * 3, LABELS[-1:] * 3, component, method="binomial", n=2000, batch=100, classes=["neg", "pos"])
        self.assertLessEqual(max(sizes), 100)
        self.assertGreaterEqual(sum(size >= 96 for size in sizes), 60)
        sizes.clear()
        safer.certify(counting, TEXTS, LABELS, component, n=50, batch=1)
        self.assertEqual(set(sizes), {1})

    def test_verify(self):
        """records hold, with predict too; a changed one is named"""
        path, verify = temporary("v.jsonl"), functools.partial(safer.verify, model_name="classify")
        results = safer.certify(classify, TEXTS, LABELS, topk, output=path, model_name="classify")
        self.assertEqual(safer.verify(path).queries, results.summary.queries)
        claim = safer.verify(path)
        self.assertEqual((claim.radius, claim.delta, claim.family_wise, claim.alpha), ("all", 0.01, False, 0.001))
        again = verify(path, classify, TEXTS, LABELS, topk)
        self.assertEqual((again.certified_accuracy, again.texts), (results.summary.certified_accuracy, 6))
        self.assertGreater(again.traffic.asked, 0)
        self.assertRaisesRegex(safer.InputError, "model", verify, path, lambda texts: ["pos"] * len(texts), TEXTS, LABELS, topk)
        self.assertRaisesRegex(safer.InputError, "another", verify, path, classify, TEXTS, LABELS, component)
        self.assertRaisesRegex(safer.InvalidError, "model_name", safer.verify, path, classify, TEXTS, LABELS, topk)
        self.assertRaisesRegex(safer.InvalidError, "texts", verify, path, classify)
        self.assertRaisesRegex(safer.InvalidError, "texts and lexicon", safer.verify, path, None, TEXTS)
        self.assertRaisesRegex(safer.InvalidError, "texts and lexicon", safer.verify, path, lexicon=topk)
        alone, texts = safer.verify(path), safer.verify(path, None, TEXTS, LABELS, topk)
        self.assertEqual((alone.format, texts.format, texts.texts), (2, 2, 6))
        self.assertTrue(set(alone.checked) < set(texts.checked) < set(again.checked))
        for found, words in ((alone, "lexicon and data"), (texts, "need the model"), (again, "who made the run")):
            self.assertTrue(any(words in phrase for phrase in found.not_checked), found.not_checked)
        self.assertRaisesRegex(safer.InputError, "data", safer.verify, path, None, TEXTS[:-1] + ["Other words."], LABELS, topk)
        self.assertRaisesRegex(safer.InputError, "lexicon.sha256", safer.verify, path, None, TEXTS, LABELS, component)
        lines = path.read_text().splitlines(True)
        lines[3] = lines[3].replace('"certified":true', '"certified":false')
        path.write_text("".join(lines))
        self.assertRaisesRegex(safer.InputError, "line 4", safer.verify, path)

    def test_evidence(self):
        """the same files as `safer evidence` writes, and the requirements"""
        for seed in (1, 2):
            run_ok("certify", "--model", "demo.model", "--lexicon", "demo.lex", "--data", "demo/test.tsv", "--seed", seed, "-o", f"ev{seed}.jsonl")
        gates = safer.evidence(temporary("ev2.jsonl"), temporary("ev"), require=0, recall={"1": 0, "0": 1}, not_worse_than=temporary("ev1.jsonl"))
        self.assertEqual([(g.kind, g.met) for g in gates], [("accuracy", True), ("recall", True), ("recall", False), ("not-worse", True)])
        self.assertEqual(gates[2].name, "certified recall of 0")
        self.assertEqual(gates[2].value, gates[2].texts[0] / gates[2].texts[1])
        self.assertIn("below the required 100.0%", gates[2].message)
        names = {path.name for path in pathlib.Path(temporary("ev")).iterdir()}
        self.assertEqual(names, {"bom.cdx.json", "statement.intoto.json", "results.sarif", "junit.xml", "summary.md"})
        self.assertEqual(safer.evidence(temporary("ev1.jsonl"), temporary("ev"), baseline=temporary("ev2.jsonl")), [])
        self.assertRaisesRegex(safer.InvalidError, "no label 7", safer.evidence, temporary("ev1.jsonl"), temporary("none"), recall={"7": 0.5})
        self.assertRaisesRegex(safer.InvalidError, "0 to 1", safer.evidence, temporary("ev1.jsonl"), temporary("none"), require=2)
        self.assertRaises(safer.OperatingSystemError, safer.evidence, temporary("nowhere.jsonl"), temporary("none"))
        self.assertFalse(pathlib.Path(temporary("none")).exists())

    def test_draws(self):
        """draws follow their number, seed and stage, and keep case and punctuation"""
        text = "GOOD film, Great movie!"
        ten = safer.draws(component, text)
        self.assertEqual(len(ten), 10)
        self.assertEqual(safer.draws(component, text, 4, first=6), ten[6:])
        self.assertEqual(safer.draws(component, text, 0), [])
        self.assertNotEqual(safer.draws(component, text, seed=2), ten)
        self.assertNotEqual(safer.draws(component, text, stage="selection"), ten)
        for drawn in safer.draws(component, text, 50):
            self.assertRegex(drawn, r"^(GOOD|GREAT|FINE) (film|movie|picture), (Good|Great|Fine) (film|movie|picture)!$")
        self.assertEqual(safer.draws(component, "a\0b \N{SNOWMAN}", 1), ["a\0b \N{SNOWMAN}"])
        self.assertRaisesRegex(safer.InvalidError, "stage", safer.draws, component, text, stage="attack")
        self.assertRaises(ValueError, safer.draws, component, text, -1)

    def test_pandas(self):
        """to_pandas, where pandas is"""
        done = script(python_with("pandas"), """
import sys, safer_nlp as safer
sys.path.insert(0, sys.argv[1])
import test_python as t
import pandas
frame = pandas.DataFrame({"text": t.TEXTS, "label": t.LABELS})
results = safer.certify(t.classify, frame.text, frame.label, safer.Lexicon.load(sys.argv[2]))
table = results.to_pandas()
assert list(table.id) == ["1", "2", "3", "4", "5", "6"] and table.certified.mean() == results.summary.certified_accuracy
print("fine")
""", ROOT / "tests", temporary("c.lex"))
        self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)


# ------------------------------------------------------------ things go wrong

class Trouble(Exception):
    pass


class Failures(unittest.TestCase):
    def after(self, calls, action):
        """A predict that does something else in the end."""
        left = [calls]

        def predict(texts):
            left[0] -= 1
            if left[0] < 0:
                action()
            return classify(texts)
        return predict

    def caught(self, action):
        """What it raises, and the names of the functions in the traceback."""
        try:
            action()
        except BaseException as error:
            return error, [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        self.fail("nothing was raised")

    def test_exception(self):
        """an exception of predict comes out as itself, with its traceback and cause"""
        trouble = Trouble("no such word")
        cause = KeyError("cause")

        def break_down():
            raise trouble from cause
        for ask in (lambda predict: safer.certify(predict, TEXTS, LABELS, component),
                    lambda predict: safer.Smoothed(predict, component, classes=["neg", "pos"]).predict(TEXTS)):
            for calls in (0, 1, 5):
                trouble.__traceback__ = None
                caught, frames = self.caught(lambda: ask(self.after(calls, break_down)))
                self.assertIs(caught, trouble)
                self.assertIs(caught.__cause__, cause)
                self.assertIsNone(caught.__context__)
                self.assertIn("break_down", frames)
        with self.assertRaises(SystemExit):
            safer.certify(self.after(2, lambda: sys.exit(3)), TEXTS, LABELS, component)

    def test_smoothed_recovers(self):
        """after an exception the same Smoothed still answers"""
        broken = [True]

        def predict(texts):
            if broken[0]:
                raise Trouble
            return classify(texts)
        smoothed = safer.Smoothed(predict, component, classes=["neg", "pos"])
        for _ in range(3):
            broken[0] = True
            self.assertRaises(Trouble, smoothed.predict, TEXTS)
            broken[0] = False
            self.assertEqual(smoothed(TEXTS[:2]), ["pos", "neg"])

    def test_interrupt_inside(self):
        """Ctrl-C inside predict stops at once; the file can be resumed; handlers are as before"""
        before = signal.getsignal(signal.SIGINT)
        path = temporary("int.jsonl")

        def interrupted():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        start = time.monotonic()
        caught, frames = self.caught(lambda: safer.certify(self.after(4, interrupted), TEXTS, LABELS, topk, output=path, model_name="it", **SAMPLED))
        self.assertIs(type(caught), KeyboardInterrupt)
        self.assertLess(time.monotonic() - start, 30)
        self.assertIn("interrupted", frames)
        self.assertIs(signal.getsignal(signal.SIGINT), before)
        whole = safer.certify(classify, TEXTS, LABELS, topk, output=path, resume=True, model_name="it", **SAMPLED)
        self.assertEqual([k.counts for k in whole], [k.counts for k in safer.certify(classify, TEXTS, LABELS, topk, **SAMPLED)])

    def test_interrupt_outside(self):
        """signals at any moment of a run: KeyboardInterrupt or what the handler raises, never lost"""
        model, lexicon = safer.Model.load(temporary("demo.model")), safer.Lexicon.load(temporary("demo.lex"))
        data = safer.load_data(temporary("demo/test.tsv"))

        def alarm(number, frame):
            raise Trouble("time is up")
        old = signal.signal(signal.SIGALRM, alarm)
        unraisable = []
        hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
        try:
            for k, (error, number) in enumerate(((Trouble, signal.SIGALRM), (KeyboardInterrupt, signal.SIGINT)) * 10):
                # a long run: one of C alone, one that calls Python all the time
                predict = model if k % 4 < 2 else classify
                timer = threading.Timer(0.02 + 0.007 * k, os.kill, (os.getpid(), number))
                try:
                    with self.assertRaises(error):
                        timer.start()
                        safer.certify(predict, data.texts * 50, None, lexicon if predict is model else component, method="binomial", n=20000,
                                      classes=None if predict is model else ["neg", "pos"])
                finally:
                    timer.join()
        finally:
            sys.unraisablehook = hook
            signal.signal(signal.SIGALRM, old)
        self.assertEqual(unraisable, [])

    def test_interrupt_program(self):
        """a script stopped by Ctrl-C ends as Python scripts do"""
        code = """
import sys, safer_nlp as safer
sys.path.insert(0, sys.argv[1])
import test_python as t
print("ready", flush=True)
safer.certify(t.classify, t.TEXTS * 1000, t.LABELS * 1000, safer.Lexicon.load(sys.argv[2]), method="binomial", n=10000)
"""
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        child = subprocess.Popen([sys.executable, "-c", code, ROOT / "tests", temporary("c.lex")], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, env=environment)
        self.assertEqual(child.stdout.readline(), "ready\n")
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
        self.assertEqual(child.returncode, -signal.SIGINT, errors)
        self.assertEqual((errors.count("Traceback"), errors.strip().splitlines()[-1]), (1, "KeyboardInterrupt"), errors)

    def test_progress(self):
        """a progress function is called, may cancel, may raise; the bar writes one line and removes it"""
        reports = []
        safer.certify(classify, TEXTS * 20, LABELS * 20, component, progress=lambda *report: reports.append(report))
        self.assertEqual(reports[-1][1:], (120, 120))
        self.assertIn("certifying", reports[0][0])
        self.assertRaises(safer.CancelledError, safer.certify, classify, TEXTS, LABELS, component, progress=lambda *report: "stop")
        self.assertRaises(ZeroDivisionError, safer.certify, classify, TEXTS, LABELS, component, progress=lambda *report: 1 / 0)
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            safer.certify(classify, TEXTS, LABELS, component, progress=True)
            self.assertRegex(errors.getvalue(), r"^\rcertifying.*100% \|#{24}\| 6/6")
            self.assertTrue(errors.getvalue().endswith(" \r"))
        with contextlib.redirect_stderr(io.StringIO()) as errors:  # no terminal, no bar
            safer.certify(classify, TEXTS, LABELS, component)
        self.assertEqual(errors.getvalue(), "")
        from safer_nlp._guard import Bar
        stream = io.StringIO()
        bar = Bar(stream)
        with unittest.mock.patch("time.monotonic", side_effect=[100.0, 110.0, 120.0]):
            bar("certifying", 0, 100)
            bar("certifying, 50.0% certified so far", 25, 100)
            bar("certifying, 50.0% certified so far", 50, 100)
        self.assertIn("25% |######                  | 25/100, 2.50/s, 0:30 left", stream.getvalue())

    def test_lost(self):
        """an answer that ctypes swallows does not become a certificate"""
        from safer_nlp import _guard
        real = _guard.Guard.run
        calls = []

        def forgetful(guard, function, *arguments):
            calls.append(function)
            return real(guard, function, *arguments) if len(calls) != 5 else 0
        with unittest.mock.patch.object(_guard.Guard, "run", forgetful):
            with self.assertRaisesRegex(safer.Error, "without an answer|got lost"):
                safer.certify(lambda texts: ["pos"] * len(texts), TEXTS, LABELS, component)

    def test_threads(self):
        """several threads at once: the same results; an exception reaches its own thread only"""
        expected = [k.counts for k in safer.certify(classify, TEXTS, LABELS, topk)]
        smoothed = safer.Smoothed(classify, topk, classes=["neg", "pos"], seed=3)
        labels = smoothed(TEXTS)
        wrong, lock = [], threading.Lock()

        def work(number):
            try:
                for _ in range(5):
                    if number % 3 == 0:
                        good = [k.counts for k in safer.certify(classify, TEXTS, LABELS, topk)] == expected
                    elif number % 3 == 1:
                        good = smoothed(TEXTS) == labels
                    else:
                        try:
                            safer.certify(lambda texts: 1 / 0, TEXTS, LABELS, topk)
                            good = False
                        except ZeroDivisionError:
                            good = True
                    if not good:
                        raise AssertionError(number)
            except BaseException as error:
                with lock:
                    wrong.append(error)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(wrong, [])

    def test_memory(self):
        """10,000 calls leave nothing behind"""
        def resident():
            return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def call(times):
            for k in range(times):
                smoothed.predict(TEXTS[:1])
                safer.draws(component, TEXTS[0], 2)
                component.show("good")
                if k % 4 == 0:
                    safer.certify(classify, TEXTS[:1], LABELS[:1], component, classes=["neg", "pos"])
                    try:
                        safer.certify(lambda texts: None, TEXTS[:1], LABELS[:1], component, classes=["neg", "pos"])
                    except safer.InputError:
                        pass
                    safer.Lexicon.load(temporary("c.lex")).show("good")
        if not os.path.exists("/proc/self/statm"):
            self.skipTest("no /proc")
        smoothed = safer.Smoothed(classify, component, classes=["neg", "pos"], n=20, n0=10, function=True, cache=True)
        call(500)
        for _ in range(4):  # what is lost is lost in every round; Python 3.14 takes one to settle
            before = resident()
            call(3000)  # of each; 100 bytes lost in one of them would show
            gc.collect()
            grown = resident() - before
            if grown < 1 << 19:
                break
        self.assertLess(grown, 1 << 19)


# --------------------------------------------------------------------- models

class Models(unittest.TestCase):
    def test_program(self):
        """a program where a model file is expected: how to ask it"""
        write("x.py", "print(1)\n")
        with self.assertRaisesRegex(safer.InvalidError, "x.py is a program, .*Model.connect\\('exec:python3 .*x.py', labels\\)"):
            safer.Model.load(temporary("x.py"))
        with self.assertRaisesRegex(safer.OperatingSystemError, "nowhere.py"):
            safer.Model.load("nowhere.py")

    def test_file(self):
        """a model file: labels, classes, scores"""
        data = safer.load_data(temporary("demo/test.tsv"), limit=10)
        with safer.Model.load(temporary("demo.model")) as model:
            self.assertEqual((model.arch, model.labels, model.is_random), ("ngram", ("0", "1"), False))
            self.assertEqual(model.trained_with["kernel"], "topk:4")
            self.assertEqual((model.name, model.sha256), ("demo.model", hashlib.sha256(temporary("demo.model").read_bytes()).hexdigest()))
            shown = json.loads(run_ok("model", "show", "demo.model", "--json"))
            self.assertEqual(shown, {"name": model.name, "arch": "ngram", "sha256": model.sha256, "labels": ["0", "1"],
                                     "bytes": temporary("demo.model").stat().st_size, "arithmetic": "portable",
                                     "trained_with": model.trained_with})
            for words in (model.sha256, "ngram", "0, 1", "topk:4"):
                self.assertIn(words, run_ok("model", "show", "demo.model"))
            self.assertEqual(model.traffic.asked, 0)
            rows = model.scores(data.texts)
            self.assertEqual(model.classify(data.texts), [model.labels[row.index(max(row))] for row in rows])
            self.assertTrue(all(abs(sum(row) - 1) < 1e-5 for row in rows))
            self.assertEqual((model.classify([]), model.scores([])), ([], []))
            self.assertGreater(sum(a == b for a, b in zip(model(data.texts), data.labels)), 6)
            self.assertIn("ngram", repr(model))
        self.assertRaisesRegex(ValueError, "closed", model.classify, ["x"])
        self.assertRaises(safer.Error, safer.Model.load, temporary("demo.model"), precision="f64")
        self.assertRaisesRegex(safer.InvalidError, "always portable", safer.Model.load, temporary("demo.model"), precision="f32")
        with safer.Model.load(temporary("demo.model"), precision="portable") as model:
            self.assertEqual(model.scores(data.texts), rows)
        self.assertRaises(safer.OperatingSystemError, safer.Model.load, "nowhere.model")
        self.assertRaisesRegex(safer.InvalidError, "neither exec", safer.Model.connect, "ftp://x", ["a", "b"])
        with safer.Model.load(temporary("demo.model")) as model:
            self.assertRaisesRegex(safer.InvalidError, "has its own", safer.certify, model, ["x"], ["0"], component, classes=["a", "b"])
            self.assertRaisesRegex(safer.InvalidError, "model_name", safer.certify, model, ["x"], ["0"], component, model_name="mine")
            self.assertRaisesRegex(safer.InvalidError, "function", safer.certify, model, ["x"], ["0"], component, function=True)

    def test_devices(self):
        """what can compute is listed, and a model computes where it is told to (a plugin in plain C stands for a GPU)"""
        make_folder("encoder")
        write("few.tsv", "id\tlabel\ttext\n" + "".join(f"{k}\t{k % 2}\t{'good' if k % 2 else 'poor'} text\n" for k in range(40)))
        run_ok("train", "--arch", "bert", "--encoder", "encoder", "--data", "few.tsv", "--epochs", 1, "-o", "bert.model")
        self.assertRaisesRegex(safer.InvalidError, "device has its own", safer.Model.load, temporary("bert.model"), precision="f32", device="cuda")
        self.assertRaisesRegex(safer.InvalidError, "none; cpu, cuda", safer.Model.load, temporary("bert.model"), device="gpu")
        with unittest.mock.patch.dict(os.environ, SAFER_PLUGINS="/nowhere"):
            cpu, none = safer.devices()
            self.assertEqual((cpu.name, cpu.reason, none.name, none.memory), ("cpu", None, "cuda", None))
            self.assertIn("SAFER_PLUGINS is /nowhere", none.reason)
            self.assertRaisesRegex(safer.OperatingSystemError, "SAFER_PLUGINS", safer.Model.load, temporary("bert.model"), device="cuda")
        with unittest.mock.patch.dict(os.environ, SAFER_PLUGINS=str(library.parent / "mock/works")):
            self.assertEqual([(d.name, d.hardware, d.arithmetic) for d in safer.devices()[1:]], [("cuda:0", "Mock", "bf16 cuda sm_00 mock")])
            texts = ["good text", "poor", ""]
            with safer.Model.load(temporary("bert.model"), device="cuda") as there, \
                    safer.Model.load(temporary("bert.model"), precision="f32", device="cpu") as here:
                for ours, theirs in zip(there.scores(texts), here.scores(texts)):
                    self.assertTrue(all(abs(a - b) < 1e-4 for a, b in zip(ours, theirs)))
                results = safer.certify(there, texts, ["1", "0", "0"], component, n=100)
                self.assertEqual(len(results), 3)

    def test_program(self):
        """a program asked through the library gives the certificates of the function itself"""
        write("server.py", "import json, sys\nsys.dont_write_bytecode = True\nsys.path.insert(0, sys.argv[1])\nimport test_python\n"
              "for line in sys.stdin:\n    request = json.loads(line)\n"
              "    print(json.dumps({'id': request['id'], 'labels': test_python.classify(request['texts'])}), flush=True)\n")
        command = f"exec:{sys.executable} {temporary('server.py')} {ROOT / 'tests'}"
        with safer.Model.connect(command, ["neg", "pos"], workers=1) as model:
            self.assertEqual((model.arch, model.classify(TEXTS)), ("exec", classify(TEXTS)))
            for lexicon in (component, topk):
                there = safer.certify(model, TEXTS, LABELS, lexicon)
                here = safer.certify(classify, TEXTS, LABELS, lexicon)
                self.assertEqual([(k.counts, k.n, k.radius, k.prediction) for k in there], [(k.counts, k.n, k.radius, k.prediction) for k in here])
            self.assertGreater(there.summary.traffic.asked, 0)
            self.assertRaisesRegex(safer.InvalidError, "model_name", safer.certify, model, TEXTS, LABELS, topk, output=temporary("p.jsonl"))
        with safer.Model.connect(command, ["neg", "pos"], workers=1, model_name="server", function=True, cache=True) as model:
            safer.certify(model, TEXTS, LABELS, topk, output=temporary("p.jsonl"))
            self.assertEqual(safer.verify(temporary("p.jsonl"), model, TEXTS, LABELS, topk).texts, 6)
            with open(temporary("p.jsonl"), encoding="utf-8") as file:
                config = json.loads(file.readline())["model"]
            self.assertEqual((config["name"], config["function"], len(config["probe"]), model.model_name), ("server", True, 64, "server"))

    def test_smoothed(self):
        """label, confidence, radius; a fresh seed each time unless given"""
        smoothed = safer.Smoothed(classify, component, classes=["neg", "pos"], seed=5)
        answers = smoothed.predict(TEXTS)
        self.assertEqual(answers[0].label, "pos")
        self.assertTrue(answers[0].certified and answers[0].radius == "all" and answers[0].exact and answers[0].confidence > 0.5)
        self.assertEqual(answers[0].assumes, ("the model is a function of the text",))
        self.assertEqual([answer.assumes for answer in safer.Smoothed(classify, topk, classes=["neg", "pos"], n=20, n0=10).predict(TEXTS)
                          if not answer.exact], [()] * 2)
        records = safer.certify(classify, TEXTS, None, component, classes=["neg", "pos"], seed=5)
        for answer, record in zip(answers, records):
            self.assertEqual((answer.vote, answer.abstained, answer.confidence, answer.queries, answer.slots, answer.seed),
                             (record.prediction, record.abstained, record.bound, record.queries, record.slots, 5))
        self.assertEqual([answer.label for answer in smoothed.predict(TEXTS)], [answer.label for answer in answers])
        self.assertEqual(smoothed.classes, ("neg", "pos"))
        fresh = safer.Smoothed(Estimator(), component)
        self.assertNotEqual(fresh.predict(TEXTS[:1])[0].seed, fresh.predict(TEXTS[:1])[0].seed)
        for model in (safer.Model.load(temporary("demo.model")),):
            native = safer.Smoothed(model, safer.Lexicon.load(temporary("demo.lex")))  # it keeps the lexicon alive
            self.assertEqual(native.predict(["A wonderful film."])[0].label, "1")

    def test_abstention(self):
        """an even vote is no answer, and nothing is certified"""
        smoothed = safer.Smoothed(lambda texts: ["pos" if "great" in text else "neg" for text in texts], component.with_kernel("topk:2"),
                                  classes=["neg", "pos"], random=True, seed=1)
        answer, = smoothed.predict(["A good film."])
        self.assertEqual((answer.label, answer.abstained, answer.certified, answer.radius), (None, True, False, 0))
        self.assertIn(answer.vote, ("neg", "pos"))
        self.assertEqual(smoothed(["A good film."]), [None])
        self.assertRaisesRegex(safer.InvalidError, "classes", safer.Smoothed, classify, component)
        self.assertRaisesRegex(safer.InvalidError, "lexicon", safer.Smoothed, classify, "c.lex")

    def test_data(self):
        """data sets are read as the program reads them"""
        write("d.jsonl", '{"text": "a\\u0000b", "label": 1, "id": "x"}\n{"text": "", "label": 10}\n{"text": "c"}\n')
        data = safer.load_data(temporary("d.jsonl"))
        self.assertEqual(data, (["a\0b", "", "c"], ["1", "10", None], ["x", "2", "3"]))
        shown = json.loads(run_ok("lexicon", "stats", "c.lex", "--data", "d.jsonl", "--json"))["data"]
        self.assertEqual((data.name, data.sha256), ("d.jsonl", shown["sha256"]))
        self.assertEqual(safer.Data(*data).name, "memory")
        film = safer.Data(["A fine film.", "Été"], ["pos", None], ["1", "2"]) # the example of docs/data.md
        self.assertIn(film.sha256, (ROOT / "docs/data.md").read_text())
        self.assertRaises(safer.OperatingSystemError, safer.load_data, "nowhere.tsv")
        self.assertRaisesRegex(safer.InvalidError, "sample", safer.load_data, temporary("d.jsonl"), sample="some")


# ---------------------------------------------------------------------- tools

SKLEARN = """
import json, sys, safer_nlp as safer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
train, test = safer.load_data("demo/train.tsv"), safer.load_data("demo/test.tsv")
lexicon = safer.Lexicon.load("demo.lex")
pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10)).fit(train.texts, train.labels)
results = safer.certify(pipeline, test.texts, test.labels, lexicon, n=400, method="binomial", n0=50)
for text, record in zip(test.texts[:5], results):
    votes = list(pipeline.predict(safer.draws(lexicon, text, 400)))
    assert record.counts == {k: votes.count(k) for k in ("0", "1")}, record
outside = [1 - results.summary.predict_seconds / results.summary.seconds]
for other in (pipeline.predict_proba, lambda texts: pipeline.decision_function(texts) > 0):
    again = safer.certify(other, test.texts, test.labels, lexicon, n=400, method="binomial", n0=50, classes=["0", "1"])
    assert [k.counts for k in again] == [k.counts for k in results]
    outside.append(1 - again.summary.predict_seconds / again.summary.seconds)
s = results.summary
print(json.dumps([s.clean_accuracy, s.certified_accuracy, min(outside)]))
"""


class Tools(unittest.TestCase):
    def test_sklearn(self):
        """scikit-learn: a pipeline, its scores, counts recomputed; most time is spent in predict"""
        done = script(python_with("sklearn"), SKLEARN)
        self.assertEqual(done.returncode, 0, done.stderr)
        clean, certified, outside = json.loads(done.stdout)
        self.assertGreater(clean, 0.6)
        self.assertGreater(certified, 0)
        self.assertLess(outside, 0.25)  # these texts are short; docs/models.md has figures for real ones

    def test_example(self):
        """examples/python_quickstart.py runs"""
        python = python_with("sklearn")
        done = subprocess.run([python, EXAMPLE, temporary("quickstart")], cwd=test_cli.temporary, capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
                                   "SAFER_BUILD": str(library.parent), "MPLCONFIGDIR": str(temporary("mpl"))})
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("certified", "all words changed", "certified radius"):
            self.assertIn(words, done.stdout)
        if "no plots" not in done.stdout:
            self.assertTrue(temporary("quickstart/certified.svg").stat().st_size > 1000)

    def test_mypy(self):
        """mypy --strict finds nothing"""
        for command in ([shutil.which("mypy")], [sys.executable, "-m", "mypy"], ["/usr/bin/python3", "-m", "mypy"]):
            if command[0] and os.path.exists(command[0]) and subprocess.run([*command, "--version"], capture_output=True).returncode == 0:
                done = subprocess.run([*command, "--strict", f"--cache-dir={temporary('mypy')}", PACKAGE / "safer_nlp"], capture_output=True,
                                      text=True, cwd=test_cli.temporary)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                write("typed.py", "import safer_nlp as safer\n\n\ndef f(lexicon: safer.Lexicon) -> float | None:\n"
                      "    r = safer.certify(lambda texts: [1 for _ in texts], ['a'], [1], lexicon)\n"
                      "    x: str = r[0].id\n    y: list[safer.Certificate] = r[:1]\n    del x, y\n    return r.summary.certified_accuracy\n")
                done = subprocess.run([*command, "--strict", f"--cache-dir={temporary('mypy')}", temporary("typed.py")], capture_output=True,
                                      text=True, cwd=test_cli.temporary, env={**os.environ, "MYPYPATH": str(PACKAGE)})
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                return
        self.skipTest("mypy is not here")

    def test_documented(self):
        """everything public has a docstring, and __all__ is sorted and complete"""
        self.assertEqual(safer.__all__, sorted(safer.__all__))
        for name in safer.__all__:
            value = getattr(safer, name)
            if not name.startswith("_") and name != "Predict":
                self.assertTrue(value.__doc__ and not value.__doc__.startswith(name + "("), name)
            for part, member in vars(value).items() if isinstance(value, type) else ():
                if not part.startswith("_") and callable(member) and value.__module__.startswith("safer_nlp"):
                    self.assertTrue(member.__doc__, f"{name}.{part}")

    def test_library_search(self):
        """which library: named, beside the package, of the checkout; wrong ones are refused"""
        show = "import safer_nlp._library as l; print(l.find_library())"
        self.assertEqual(script(sys.executable, show).stdout.strip(), str(library))
        copy = temporary("copy")
        shutil.copytree(PACKAGE, copy / "python", ignore=shutil.ignore_patterns("__pycache__"))
        environment = {"PYTHONPATH": str(copy / "python"), "SAFER_LIBRARY": ""}
        (copy / "include").mkdir()
        (copy / "build").mkdir()
        (copy / "include/safer.h").write_text("")
        shutil.copy(library, copy / "build/libsafer.so.0.2")
        self.assertEqual(script(sys.executable, show, env=environment).stdout.strip(), str(copy / "build/libsafer.so.0.2"))
        shutil.copy(library, copy / "python/safer_nlp/libsafer.so.0.2")
        self.assertEqual(script(sys.executable, show, env=environment).stdout.strip(), str(copy / "python/safer_nlp/libsafer.so.0.2"))
        (copy / "python/safer_nlp/libsafer.so.0.2").write_bytes(b"no library")
        done = script(sys.executable, show, env=environment)
        self.assertIn("ImportError: ", done.stderr)
        self.assertIn("cannot be loaded", done.stderr)
        shutil.copy(library, copy / "python/safer_nlp/libsafer.so.0.2")
        needed = safer.__version__.rsplit(".", 1)[0] + ".99"
        (copy / "python/safer_nlp/_version.py").write_text(f'__version__ = "{needed}"\n')
        self.assertIn(f"has version {safer.__version__}; this package needs {needed}", script(sys.executable, show, env=environment).stderr)
        done = script(sys.executable, show, env={"SAFER_LIBRARY": "/lib/x86_64-linux-gnu/libc.so.6" if os.path.exists(
            "/lib/x86_64-linux-gnu/libc.so.6") else str(library)})
        if done.returncode:
            self.assertIn("is not the library this package needs", done.stderr)


# -------------------------------------------------------------------- install

USE = """
import os, sys, safer_nlp as safer
assert not safer.__file__.startswith(sys.argv[2]), safer.__file__
lexicon = safer.Lexicon.load(sys.argv[1])
from safer_nlp import _library
results = safer.certify(lambda texts: ["neg" if "bad" in text else "pos" for text in texts], ["A bad film."], ["pos"], lexicon, classes=["neg", "pos"])
print(_library.find_library(), len(results), os.path.exists(os.path.join(os.path.dirname(safer.__file__), "py.typed")))
"""


class Install(unittest.TestCase):
    """pip installs the package without a network."""

    def pip(self, python, *arguments, source=PACKAGE, env=None, good=True):
        environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1",
                       "SAFER_LIBRARY": str(library), **(env or {})}
        environment.pop("PYTHONPATH", None)
        done = subprocess.run([python, "-m", "pip", "install", "--no-index", *map(str, arguments), str(source)], capture_output=True, text=True,
                              env=environment, cwd=test_cli.temporary, timeout=300)
        if good:
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def use(self, python, path=None):
        environment = {k: v for k, v in os.environ.items() if k not in ("SAFER_LIBRARY", "PYTHONPATH")}
        done = subprocess.run([python, "-c", USE, temporary("c.lex"), PACKAGE], capture_output=True, text=True, cwd=test_cli.temporary,
                              env={**environment, **({"PYTHONPATH": str(path)} if path else {})})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def need_pip(self):
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode:
            self.skipTest("pip is not here")

    def test_target(self):
        """pip install --target, with the library inside"""
        self.need_pip()
        self.pip(sys.executable, "--target", temporary("target"))
        found, count, typed = self.use(sys.executable, temporary("target"))
        self.assertEqual((found, count, typed), (str(temporary("target/safer_nlp/libsafer.so.0.2")), "1", "True"))
        self.assertTrue(list(temporary("target").glob("safer_nlp-*.dist-info/RECORD")))
        self.assertFalse(list((PACKAGE / "safer_nlp").glob("*.so*")) or (PACKAGE / "build").exists(), "the source folder was written to")

    def test_venv(self):
        """pip install into a virtual environment, and out of it again"""
        if subprocess.run([sys.executable, "-c", "import venv, ensurepip"], capture_output=True).returncode:
            self.skipTest("venv is not here")
        subprocess.run([sys.executable, "-m", "venv", temporary("venv")], check=True, capture_output=True)
        python = temporary("venv/bin/python")
        self.pip(python)
        self.assertIn("venv", self.use(python)[0])
        listed = subprocess.run([python, "-m", "pip", "list", "--disable-pip-version-check"], capture_output=True, text=True).stdout
        self.assertRegex(listed, rf"(?m)^safer[_-]nlp +{re.escape(safer.__version__)}$")
        subprocess.run([python, "-m", "pip", "uninstall", "-y", "safer_nlp"], check=True, capture_output=True)
        self.assertFalse(list(temporary("venv").glob("lib/*/site-packages/safer*")))

    def test_copy(self):
        """from a copy of this folder alone: with a named library; without one, a clear error"""
        self.need_pip()
        copy = temporary("alone/python")
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        self.pip(sys.executable, "--target", temporary("target2"), source=copy)
        self.assertEqual(self.use(sys.executable, temporary("target2"))[1], "1")
        for env, words in (({"SAFER_LIBRARY": ""}, "no C sources beside it"), ({"SAFER_LIBRARY": "/nowhere.so"}, "/nowhere.so cannot be used")):
            done = self.pip(sys.executable, "--target", temporary("target3"), source=copy, env=env, good=False)
            if done.returncode == 0 and not env["SAFER_LIBRARY"]:
                continue  # this system has the library installed
            self.assertIn(words, done.stdout + done.stderr)

    def test_archives(self):
        """the same wheel every time; a source archive that builds one; an editable one"""
        os.environ["SAFER_LIBRARY"] = str(library)
        build = "import sys; sys.path.insert(0, {!r}); import _backend; print(getattr(_backend, {!r})(sys.argv[1]))"
        for folder in ("w1", "w2", "w3", "s", "e"):
            temporary(folder).mkdir()
        names = [script(sys.executable, build.format(str(PACKAGE), "build_wheel"), temporary(folder)).stdout.strip() for folder in ("w1", "w2")]
        self.assertRegex(names[0], rf"^safer_nlp-{re.escape(safer.__version__)}-py3-none-linux_\w+\.whl$")
        one, two = (temporary(folder) / names[0] for folder in ("w1", "w2"))
        self.assertEqual(one.read_bytes(), two.read_bytes())
        with zipfile.ZipFile(one) as wheel:
            modules = {f"safer_nlp/{path.name}" for path in (PACKAGE / "safer_nlp").glob("*.py")}
            self.assertLess(modules | {"safer_nlp/py.typed", "safer_nlp/libsafer.so.0.2"}, set(wheel.namelist()))  # the rest: test_packages.py
        archive = script(sys.executable, build.format(str(PACKAGE), "build_sdist"), temporary("s")).stdout.strip()
        with tarfile.open(temporary("s") / archive) as sources:
            sources.extractall(temporary("s"))
        unpacked = temporary("s") / archive.replace(".tar.gz", "")
        script(sys.executable, build.format(str(unpacked), "build_wheel"), temporary("w3"))
        self.assertEqual((temporary("w3") / names[0]).read_bytes(), one.read_bytes())
        editable = script(sys.executable, build.format(str(PACKAGE), "build_editable"), temporary("e")).stdout.strip()
        with zipfile.ZipFile(temporary("e") / editable) as wheel:
            self.assertEqual(wheel.read("__editable__.safer_nlp.pth").decode().strip(), str(PACKAGE))


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], prepare)
