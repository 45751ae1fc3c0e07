#!/usr/bin/env python3
"""The Python package and what people have and want: tables of pandas, Arrow and datasets in, DataFrames, HTML and plots
out, bars in notebooks: test_python_data.py [TEST...] BUILD_DIR. Run by ctest.

Arrow is tested without an Arrow library: a producer in ctypes makes streams as the interface describes them.
"""
import ctypes
import html
import io
import json
import re
import struct
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True
import test_cli  # noqa: E402
import test_python as base  # noqa: E402
from test_python import python_with, run_ok, script, temporary  # noqa: E402

safer = lexicon = model = test = None
ROWS = {"id": ["a", "b"], "label": [1, 0], "text": ["A good film.", "A bad film."]}


def prepare():
    global safer, lexicon, model, test
    base.prepare(Tables, Arrow, Shown)
    safer = base.safer
    if safer is None:
        return
    lexicon, model = safer.Lexicon.load(temporary("demo.lex")), safer.Model.load(temporary("demo.model"))
    test = safer.load_data(temporary("demo/test.tsv"))
    run_ok("certify", "--model", "demo.model", "--lexicon", "demo.lex", "--data", "demo/test.tsv", "-o", "run.jsonl")


# --------------------------------------------------------------- a producer of Arrow streams

class Producer:
    """A table of columns (format, values[, dictionary]) in batches, as an ArrowArrayStream in a capsule. `released` counts what the
    reader gave back."""

    def __init__(self, columns, batches=1, offset=0, error=None):
        from safer_nlp import _arrow
        self.a, self.columns, self.error = _arrow, columns, error
        self.names, self.schema = list(columns), None
        rows = len(next(iter(columns.values()))[1]) if columns else 0
        cuts = [rows * k // batches for k in range(batches + 1)]
        self.left, self.offset = list(zip(cuts, cuts[1:])), offset
        self.kept, self.released = [], {"schema": 0, "batches": 0}

    def keep(self, thing):
        self.kept.append(thing)
        return thing

    def buffer(self, bytes_):
        return ctypes.addressof(self.keep(ctypes.create_string_buffer(bytes(bytes_) or b"\0")))

    def fill_schema(self, out, kind, name=b"", children=(), dictionary=None, release="schema"):
        out.format, out.name, out.n_children = self.keep(kind.encode()), self.keep(name), len(children)
        out.children = self.keep((ctypes.POINTER(self.a._Schema) * max(1, len(children)))(*map(ctypes.pointer, children)))
        if dictionary is not None:
            out.dictionary = ctypes.pointer(dictionary)
        out.release = self.keep(type(out.release)(lambda _: self.count(release)))

    def count(self, what):
        self.released[what] += 1

    def make_schema(self, _, out):
        children = []
        for name, (kind, _values, *known) in self.columns.items():
            child, dictionary = self.keep(self.a._Schema()), None
            if known:
                dictionary = self.keep(self.a._Schema())
                self.fill_schema(dictionary, "u")
            self.fill_schema(child, kind, name.encode(), dictionary=dictionary)
            children.append(child)
        self.fill_schema(out.contents, "+s", children=children)
        return 0

    def array(self, kind, values, offset, known=None):
        """Values behind `offset` others that are none of the column's."""
        values = [None] * offset + list(values)
        made = self.keep(self.a._Array())
        made.length, made.offset, made.null_count = len(values) - offset, offset, -1
        bits = bytearray((len(values) + 7) // 8)
        for k, value in enumerate(values):
            bits[k >> 3] |= (value is not None) << (k & 7)
        data = [self.buffer(bits)] if None in values else [None]
        if kind == "n":
            data = []
        elif kind == "b":
            packed = bytearray((len(values) + 7) // 8)
            for k, value in enumerate(values):
                packed[k >> 3] |= bool(value) << (k & 7)
            data.append(self.buffer(packed))
        elif kind in "uU":
            parts = [b"" if value is None else value if isinstance(value, bytes) else value.encode() for value in values]
            ends = [sum(map(len, parts[:k])) for k in range(len(parts) + 1)]
            data += [self.buffer(struct.pack(f"={len(ends)}{'i' if kind == 'u' else 'q'}", *ends)), self.buffer(b"".join(parts))]
        elif kind == "vu":
            views, long = b"", b""
            for value in values:
                text = (value or "").encode()
                if len(text) <= 12:
                    views += struct.pack("=i12s", len(text), text)
                else:
                    views += struct.pack("=i4sii", len(text), text[:4], 0, len(long))
                    long += text
            data += [self.buffer(views), self.buffer(long), self.buffer(struct.pack("=q", len(long)))]
        else:
            code = self.a._NUMBERS.get(kind, "i")
            data.append(self.buffer(struct.pack(f"={len(values)}{code}", *(value or 0 for value in values))))
        made.n_buffers = len(data)
        made.buffers = self.keep((ctypes.c_void_p * max(1, len(data)))(*data))
        if known:
            made.dictionary = ctypes.pointer(self.array("u", known, 0))
        return made

    def make_batch(self, _, out):
        if self.error:
            return 5
        if not self.left:
            out.contents.release = type(out.contents.release)(0)
            return 0
        begin, end = self.left.pop(0)
        children = [self.array(kind, values[begin:end], self.offset, *known) for kind, values, *known in self.columns.values()]
        batch = out.contents
        batch.length, batch.offset, batch.n_children = end - begin, 0, len(children)
        batch.children = self.keep((ctypes.POINTER(self.a._Array) * len(children))(*map(ctypes.pointer, children)))
        batch.release = self.keep(type(batch.release)(lambda _: self.count("batches")))
        return 0

    def __arrow_c_stream__(self, requested_schema=None):
        stream, fields = self.keep(self.a._Stream()), dict(self.a._Stream._fields_)
        stream.get_schema = self.keep(fields["get_schema"](self.make_schema))
        stream.get_next = self.keep(fields["get_next"](self.make_batch))
        words = self.error.encode() if self.error else None
        stream.get_last_error = self.keep(fields["get_last_error"](lambda _: ctypes.cast(ctypes.c_char_p(words), ctypes.c_void_p).value))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(stream), b"arrow_array_stream", None)


class Arrow(unittest.TestCase):
    def read(self, columns, **more):
        table = Producer(columns, **more)
        table.schema = True  # as tables have, and single columns have not
        data = safer.load_data(table)
        self.assertEqual((table.released["schema"], table.left), (1, []))
        return data

    def test_types(self):
        """strings in three layouts, numbers, truth values, nulls, dictionaries; columns that are not wanted may be anything"""
        long = "A sentence that is longer than twelve bytes, \u00fc."
        for kind in ("u", "U", "vu"):
            data = self.read({"Text": (kind, ["short", long, "", "\U0001f600 x"]), "label": ("l", [3, None, -1, 2**40])})
            self.assertEqual((data.texts, data.labels, data.ids), (["short", long, "", "\U0001f600 x"], ["3", None, "-1", str(2**40)], list("1234")))
        texts = ("u", ["a", "b", "c"])
        for kind, values, names in (("c", [-1, 2, 3], ["-1", "2", "3"]), ("C", [255, 0, 1], ["255", "0", "1"]), ("S", [65535, 1, 2], ["65535", "1", "2"]),
                                    ("I", [2**32 - 1, 0, None], [str(2**32 - 1), "0", None]), ("b", [True, None, False], ["True", None, "False"]),
                                    ("g", [1.0, None, 0.5], ["1", None, "0.5"]), ("n", [None] * 3, [None] * 3), ("vu", ["x", None, "y"], ["x", None, "y"])):
            self.assertEqual(self.read({"text": texts, "label": (kind, values)}).labels, names, kind)
        data = self.read({"text": texts, "label": ("c", [1, 0, None], ["neg", "pos"]), "stamp": ("tsu:", [1, 2, 3]), "id": ("u", ["x", "y", None])})
        self.assertEqual((data.labels, data.ids), (["pos", "neg", None], ["x", "y", "3"]))

    def test_batches(self):
        """several batches, arrays that begin elsewhere; each batch is released"""
        texts = [f"text {k}" for k in range(100)]
        table = Producer({"text": ("u", texts), "label": ("i", [k % 3 if k % 7 else None for k in range(100)])}, batches=7, offset=13)
        table.schema = True
        data = safer.load_data(table)
        self.assertEqual((data.texts, data.labels), (texts, [str(k % 3) if k % 7 else None for k in range(100)]))
        self.assertEqual(table.released, {"schema": 1, "batches": 7})

    def test_refused(self):
        """what is no text, streams that fail, bytes that are no UTF-8"""
        with self.assertRaisesRegex(safer.InputError, 'column "text": Arrow\'s type "tsu:"'):
            self.read({"text": ("tsu:", [1, 2])})
        with self.assertRaisesRegex(safer.InputError, "the Arrow stream failed: the disk is gone"):
            self.read({"text": ("u", ["a"])}, error="the disk is gone")
        with self.assertRaisesRegex(safer.InputError, "there are words, n: choose one with text_column"):
            self.read({"words": ("u", ["a"]), "n": ("i", [1])})
        data = self.read({"text": ("u", [b"fine", b"\xff\xfe"])})
        with self.assertRaisesRegex(safer.InputError, r"texts\[1\]: no valid text at character 0"):
            safer.certify(base.classify, data, lexicon=base.component, classes=["neg", "pos"])


class Tables(unittest.TestCase):
    def test_names(self):
        """columns are known by the names that files have"""
        from safer_nlp import _tables
        source = (base.ROOT / "src/data/columns.c").read_text()
        for role, names in _tables.NAMES.items():
            listed = re.search(rf"\[SF_COLUMN_{role.upper()}\] = {{(.*?)}}", source, re.S)[1]
            self.assertEqual(tuple(re.findall(r'"([^"]+)"', listed)), tuple(names), role)

    def test_columns(self):
        """guessed as in files, or chosen by name or number; titles come first; labels get names"""
        table = {"Class Index": [3, 4.0, None], "Title": ["One", None, ""], "Description": ["first", "second", "third"]}
        data = safer.load_data(table)
        self.assertEqual(data, (["One first", "second", "third"], ["3", "4", None], ["1", "2", "3"]))
        lines = "".join(json.dumps({name: column[row] for name, column in {**table, "Class Index": [3, 4, None]}.items()}) + "\n" for row in range(3))
        base.write("same.jsonl", lines.replace("Class Index", "class index").replace("Title", "title").replace("Description", "description"))
        self.assertEqual(safer.load_data(temporary("same.jsonl")).sha256, data.sha256)
        other = {"body": ["x", "y"], "text": ["p", "q"], "who": [7, 8], "y": ["a", "b"]}
        self.assertEqual(safer.load_data(other, text_column="body", label_column="y", id_column=3), (["x", "y"], ["a", "b"], ["7", "8"]))
        self.assertEqual(safer.load_data(other, title_column="body").texts, ["x p", "y q"])
        self.assertEqual(safer.load_data(ROWS, labels={0: "neg", 1: "pos"}).labels, ["pos", "neg"])
        for wrong, error, words in ((dict(text_column="z"), safer.InvalidError, "text_column: there is no column 'z'; there are id, label, text"),
                                    (dict(label_column=4), safer.InvalidError, "label_column: there is no column 4"),
                                    (dict(text_column="label"), safer.InputError, 'column "label", row 1: the value is an int; a str is needed'),
                                    (dict(labels={1: "pos"}), safer.InputError, "row 2: the label '0' is not among"),
                                    (dict(limit=3), safer.InvalidError, "are for files of text")):
            with self.assertRaisesRegex(error, re.escape(words)):
                safer.load_data(ROWS, **wrong)
        with self.assertRaisesRegex(safer.InputError, "different lengths"):
            safer.load_data({"text": ["a"], "label": []})
        with self.assertRaisesRegex(safer.InvalidError, "a file or a table is needed, not an int"):
            safer.load_data(7)
        path = temporary("urteile.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write("Nr,Urteil,Satz\n7,1,A good film\n8,0,A bad film\n")
        columns = dict(text_column="satz", label_column=2, id_column="Nr")
        self.assertEqual(safer.load_data(path, labels={0: "neg", 1: "pos"}, **columns),
                         (["A good film", "A bad film"], ["pos", "neg"], ["7", "8"]))
        with self.assertRaisesRegex(safer.InputError, "the label \"1\" is not in labels 0=neg"):
            safer.load_data(path, labels={0: "neg"}, **columns)
        with self.assertRaisesRegex(safer.InvalidError, "no comma and no equals sign"):
            safer.load_data(path, labels={0: "a,b"}, **columns)

    def test_everywhere(self):
        """functions that take texts take a table, as the lists that are in it"""
        rows = {"text": base.TEXTS, "label": base.LABELS}
        listed = safer.certify(base.classify, base.TEXTS, base.LABELS, base.component)
        tabled = safer.certify(base.classify, rows, lexicon=base.component)
        self.assertEqual([k.counts for k in tabled], [k.counts for k in listed])
        self.assertEqual(safer.attack(base.classify, rows, lexicon=base.component).summary.texts, 6)
        self.assertEqual(base.component.stats(rows).texts, 6)

    def test_datasets(self):
        """a data set of HuggingFace, by what it has (a stand-in: column_names and columns by name); a dictionary of them is refused"""
        class Dataset:
            column_names = ["text", "label"]

            def __getitem__(self, name):
                return {"text": ["x", "y"], "label": [0, 1]}[name]

        self.assertEqual(safer.load_data(Dataset()), (["x", "y"], ["0", "1"], ["1", "2"]))
        several = types.SimpleNamespace(column_names={"train": ["text"], "test": ["text"]})
        with self.assertRaisesRegex(safer.InvalidError, r"several data sets \(train, test\); choose one"):
            safer.load_data(several)

    def test_parquet(self):
        """Parquet is read by pyarrow or polars, whichever is there; without, a line says so"""
        asked = []
        reader = types.SimpleNamespace(read_parquet=lambda path: asked.append(path) or ROWS, read_ipc=lambda path: ROWS)
        with unittest.mock.patch.dict(sys.modules, {"pyarrow": None, "pyarrow.parquet": None, "pyarrow.feather": None, "polars": reader}):
            self.assertEqual(safer.load_data("x/reviews.parquet").labels, ["1", "0"])
            self.assertEqual(safer.load_data("x/reviews.arrow").labels, ["1", "0"])
        self.assertEqual(asked, ["x/reviews.parquet"])
        with unittest.mock.patch.dict(sys.modules, {"pyarrow": None, "pyarrow.parquet": None, "polars": None}):
            with self.assertRaisesRegex(safer.InvalidError, "reviews.parquet: Parquet and Arrow are read by pyarrow or polars"):
                safer.load_data("reviews.parquet")

    def test_pandas(self):
        """pandas: frames in, also with NaN; series as texts; frames out with texts and words"""
        done = script(python_with("pandas"), PANDAS, base.ROOT)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "good"), done.stderr)


    def test_missing_values(self):
        """in lists as in tables: None, NaN and what pandas has for them are no label, and no text"""
        na = type("NAType", (), {"__repr__": lambda self: "<NA>"})()
        for nothing in (None, float("nan"), na):
            with self.subTest(nothing=nothing):
                results = safer.certify(model, test.texts[:2], [test.labels[0], nothing], lexicon, n=20)
                self.assertEqual([k.label for k in results], [test.labels[0], None])
                self.assertEqual(safer.load_data({"text": ["a", "b"], "label": ["x", nothing]}).labels, ["x", None])
                with self.assertRaisesRegex(safer.InputError, "texts: text 2 has no label"):
                    safer.train(temporary("missing.model"), ["a", "b"], ["x", nothing])
                with self.assertRaisesRegex(safer.InvalidError, re.escape(f"texts[1]: a str is needed, not {nothing!r}")):
                    safer.certify(model, ["a", nothing], None, lexicon)
                with self.assertRaisesRegex(safer.InputError, 'column "text", row 2: the value is missing'):
                    safer.load_data({"text": ["a", nothing]})

    def test_other_things(self):
        """what is no list of texts, no model and no lexicon is refused with what is needed"""
        for texts, words in (({"a", "b"}, "texts: a list is needed; a set has no order"), ("a", "texts: a list is needed, not a str"),
                             ([1], "texts[0]: a str is needed, not an int"), ([b"a"], "texts[0]: a str is needed, not a bytes"),
                             ([], "texts: there are none"), (7, "texts: a list is needed, not an int")):
            with self.subTest(texts=texts), self.assertRaisesRegex(safer.InvalidError, re.escape(words)):
                safer.certify(model, texts, None, lexicon)
        with self.assertRaisesRegex(safer.InvalidError, re.escape("predict: open the file first: safer_nlp.Model.load('m.safetensors')")):
            safer.certify("m.safetensors", ["a"], None, lexicon)
        with self.assertRaisesRegex(safer.InvalidError, re.escape("lexicon: open the file first: safer_nlp.Lexicon.load('words.lex')")):
            safer.certify(model, ["a"], None, "words.lex")
        self.assertEqual(repr(model.classes), f"Classes({list(model.labels)})")

    def test_vocabulary(self):
        """the words of a lexicon are counted in files, data sets and tables alike"""
        def words(source):
            made = safer.Lexicon.import_(temporary("table.json"), vocab_from=source, min_count=1)
            return {word: made.show(word).count for word in ("good", "film") if word in made}

        table = {"text": ["A good film.", "Film, film, film!"], "label": [1, None]}
        once = words(table)
        self.assertEqual(once, {"good": 1, "film": 4})
        self.assertEqual(words(safer.load_data(table)), once)
        path = temporary("vocabulary.csv")
        path.write_text('text,label\nA good film.,1\n"Film, film, film!",\n')
        self.assertEqual(words(path), once)
        self.assertEqual(words([path, table, safer.load_data(table)]), {"good": 3, "film": 12})
        made = safer.Lexicon.import_(temporary("table.json"), vocab_from=table, min_count=1)
        self.assertNotIn(tempfile.gettempdir(), json.dumps(made.info.provenance))
        with self.assertRaisesRegex(safer.InputError, "no column is called text"):
            words({"satz": ["Ein Film."]})


PANDAS = """
import sys, pandas, safer_nlp as safer
frame = pandas.read_csv(sys.argv[1] + "/demo/synonyms.tsv", sep="\\t", header=None, names=["review", "Label"]).head(4)
frame["Label"] = [1.0, float("nan"), 0.0, 1.0]
data = safer.load_data(frame)
assert data.labels == ["1", None, "0", "1"], data
lexicon, model = safer.Lexicon.load("demo.lex"), safer.Model.load("demo.model")
test = safer.load_data("demo/test.tsv")
frame = pandas.DataFrame({"text": test.texts, "label": test.labels, "id": test.ids})
results = safer.certify(model, frame, lexicon=lexicon)
same = safer.certify(model, frame["text"], frame["label"], lexicon, ids=frame["id"])
assert [k.counts for k in results] == [k.counts for k in same]
made = results.to_pandas()
assert list(made["text"]) == test.texts and list(made["id"]) == test.ids
assert [len(words) for words in made["changeable"]] == list(made["slots"]), made
loaded = safer.Results.load("run.jsonl")
assert "text" not in loaded.to_pandas() and "changeable" not in loaded.to_pandas(test.texts)
assert list(loaded.to_pandas(test.texts, lexicon)["changeable"]) == list(made["changeable"])
try:
    loaded.to_pandas(test.texts[1:])
except safer.InvalidError as error:
    assert "texts: 39 for 40 records" in str(error), error
else:
    raise AssertionError("texts of another number")
attacks = safer.attack(model, frame, lexicon=lexicon).to_pandas()
assert set(attacks["outcome"]) <= {"succeeded", "failed", "skipped"} and len(attacks) == 40
print("good")
"""


class Shown(unittest.TestCase):
    def test_changeable(self):
        """the words that may change are as many as the slots that the library counts, whatever the text"""
        texts = ["Good film\u2019s FILM, film-good goodfilm film's 'film' film_good film2good", "\u00dcber film \u01c5film \u0646film film\u0301 \u4e2dfilm",
                 "don't film'n'good film'' ''good", "", *test.texts]
        for lexicon_ in (base.component, lexicon, base.component.with_kernel("representative")):
            results = safer.certify(lambda asked: [0] * len(asked), texts, None, lexicon_, classes=["a", "b"], n=10, n0=10)
            self.assertEqual([len(lexicon_.changeable(text)) for text in texts], [k.slots for k in results])
        self.assertEqual(base.component.changeable("A Good, old FILM."), ["Good", "FILM"])
        folded = safer.Lexicon.import_(temporary("table.json"), kernel="component", fold="standard")
        self.assertEqual(folded.changeable("A \uff27ood f\u200bilm"), ["good", "film"])

    def test_html(self):
        """the figures of a notebook are those of the report; foreign labels are escaped"""
        results = safer.Results.load(temporary("run.jsonl"))
        safer.report(temporary("page.html"), temporary("run.jsonl"))
        page, ours = temporary("page.html").read_text(), results._repr_html_()

        def figures(text):
            return re.findall(r"\d+\.\d\d(?=%| to)|(?<= to )\d+\.\d\d", html.unescape(re.sub(r"<[^>]+>", " ", text)))

        theirs = figures(page)
        mine = figures(ours)
        self.assertGreater(len(mine), 20)
        self.assertEqual([k for k in mine if k not in theirs], [])
        for name in ("certified and answered", "clean", "smoothed", "certified recall"):
            self.assertIn(name, ours)
        evil = safer.certify(lambda texts: ["<b>"] * len(texts), ["A good film."], ["<b>"], base.component, classes=["<b>", "x"])
        self.assertNotIn("<b>", evil._repr_html_())
        self.assertIn("&lt;b&gt;", evil._repr_html_())

    def test_plot(self):
        """what is drawn: the headline by radius, between its interval's ends"""
        ax = unittest.mock.Mock()
        results = safer.Results.load(temporary("run.jsonl"))
        self.assertIs(results.plot(ax, color="red"), ax)
        (radii, shares), options = ax.errorbar.call_args
        self.assertEqual((radii, shares), (["1", "2", "5", "10", "20", "all"], list(results.summary.certified_answered_at.values())))
        low, high = results.summary.certified_answered_interval
        self.assertAlmostEqual(shares[-1] - options["yerr"][0][-1], low)
        self.assertAlmostEqual(shares[-1] + options["yerr"][1][-1], high)
        self.assertEqual(options["color"], "red")
        done = script(python_with("matplotlib"), "import matplotlib\nmatplotlib.use('Agg')\nimport safer_nlp as safer\n"
                      "ax = safer.Results.load('run.jsonl').plot()\nax.figure.savefig('p.png')\nprint(ax.get_ylabel())\n",
                      env={"MPLCONFIGDIR": str(temporary("mpl"))})
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "certified and answered"), done.stderr)
        self.assertTrue(temporary("p.png").read_bytes().startswith(b"\x89PNG"))

    def test_notebook_bar(self):
        """in a notebook progress is shown without being asked for: by tqdm where it is installed, else by the bar of terminals"""
        from safer_nlp import _guard
        bars = []

        class Tqdm:
            def __init__(self, **options):
                self.options, self.n, self.closed = options, 0, False
                bars.append(self)

            def set_description(self, words, refresh):
                self.words = words

            def update(self, more):
                self.n += more

            def close(self):
                self.closed = True

        notebook = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=object()))
        with unittest.mock.patch.dict(sys.modules, {"IPython": notebook, "tqdm": types.ModuleType("tqdm"), "ipywidgets": None,
                                                    "tqdm.std": types.SimpleNamespace(tqdm=Tqdm)}):
            safer.certify(model, test, lexicon=lexicon)
            self.assertTrue(bars and all(bar.closed and not bar.options["leave"] for bar in bars))
            self.assertTrue(any(bar.n == 40 == bar.options["total"] for bar in bars), [vars(bar) for bar in bars])
        with unittest.mock.patch.dict(sys.modules, {"IPython": notebook, "tqdm": None, "tqdm.std": None}), \
                unittest.mock.patch("sys.stderr", io.StringIO()) as stream:
            self.assertIsInstance(_guard._notebook_bar(), _guard.Bar)
            safer.certify(model, test, lexicon=lexicon)
            self.assertIn("40/40", stream.getvalue())
        terminal = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace())
        with unittest.mock.patch.dict(sys.modules, {"IPython": terminal}):
            self.assertFalse(_guard._in_notebook())


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], prepare)
