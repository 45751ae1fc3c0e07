#!/usr/bin/env python3
"""Uses build/safer as a person would: test_cli.py [TEST...] BUILD_DIR. Run by ctest.

Prints one line a test and, at the end, cmocka's closing lines, so that `make test` counts
the cases. Everything happens in a temporary folder; only the standard library is needed.
"""
import bz2
import collections
import fractions
import gzip
import hashlib
import io
import json
import lzma
import math
import os
import pathlib
import pty
import random
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
import zipfile

sys.dont_write_bytecode = True
import interface  # noqa: E402

DONE, USAGE, INPUT, SYSTEM, INTERRUPTED = 0, 2, 3, 4, 130
ACTIONS = ("build", "import", "export", "show", "stats", "check", "diff", "audit")
WORDNET = pathlib.Path("/usr/share/wordnet")
ESCAPE = "\033["

program = None  # build/safer; set by run_tests
temporary = None  # the folder that all tests share
Result = collections.namedtuple("Result", "code out err")


# ------------------------------------------------------------------ running

def run(*arguments, env=None, cwd=None, **more):
    """Runs safer; stdout and stderr as text."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", **(env or {})}
    if "NO_COLOR" not in (env or {}):
        environment.pop("NO_COLOR", None)
    more.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run([program, *map(str, arguments)], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          cwd=cwd or temporary,
                          env=environment, timeout=300, **more)
    out = done.stdout if isinstance(done.stdout, bytes) else b""
    return Result(done.returncode, out.decode(), done.stderr.decode(errors="replace"))


def lexicon(*arguments, **more):
    return run("lexicon", *arguments, **more)


def write(name, content):
    """A file in the temporary folder, from text or bytes; returns its name."""
    path = temporary / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


def sha256_of(name):
    return hashlib.sha256((temporary / name).read_bytes()).hexdigest()


def sha256_of_rows(rows):
    """Of data: id, label and text of every row, each with its length."""
    parts = (part.encode() for row in rows for part in row)
    return hashlib.sha256(b"".join(b"%d:%b," % (len(part), part) for part in parts)).hexdigest()


def exists(name):
    return (temporary / name).exists()


def names():
    return sorted(str(path.relative_to(temporary)) for path in temporary.rglob("*"))


def word_of(number):
    """A word of four letters for every number."""
    letters = ""
    for _ in range(4):
        letters += chr(ord("a") + number % 26)
        number //= 26
    return "q" + letters


def numbers_in(text):
    return [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


class Case(unittest.TestCase):
    """What the tests below share."""

    def ok(self, result):
        self.assertEqual((result.code, result.err), (DONE, ""))
        return result.out

    def refused(self, result, code, *parts):
        """One line on stderr that names all parts, nothing on stdout."""
        self.assertEqual(result.code, code, result)
        self.assertEqual(result.out, "")
        self.assertTrue(result.err.startswith("safer"), result.err)
        self.assertEqual((result.err.count("\n"), result.err[-1:]), (1, "\n"), result.err)
        for part in parts:
            self.assertIn(part, result.err)

    def lex(self, action, *arguments):
        """Makes a lexicon with a name of its own; returns the name and the JSON report."""
        Case.made = getattr(Case, "made", 0) + 1
        name = f"made{Case.made}.lex"
        return name, json.loads(self.ok(lexicon(action, *arguments, "-o", name, "--json")))

    def table(self, name, what):
        """An exported table: word -> the columns after it."""
        rows = [line.split("\t") for line in self.ok(lexicon("export", name, "--what", what)).splitlines()]
        self.assertEqual(len(rows), len({row[0] for row in rows}), "a word has two lines")
        return {row[0]: row[1:] for row in rows}

    def synonyms(self, name):
        return {word: set(columns[0].split()) for word, columns in self.table(name, "synonyms").items()}

    def kernel(self, name):
        rows = {}
        for word, (total, draws) in self.table(name, "kernel").items():
            weights = {z: int(w) for z, w in (entry.rsplit(":", 1) for entry in draws.split())}
            self.assertEqual(sum(weights.values()), int(total), f"the weights of {word} do not sum to their total")
            rows[word] = {z: fractions.Fraction(w, int(total)) for z, w in weights.items()}
        return rows

    def shown(self, name, *words):
        return {entry["word"]: entry for entry in json.loads(self.ok(lexicon("show", name, *words, "--json")))}

    def counts(self, name, *words):
        return {word: entry["count"] for word, entry in self.shown(name, *words).items()}

    def stats(self, name, *arguments):
        return json.loads(self.ok(lexicon("stats", name, *arguments, "--json")))


def components(synonyms):
    """word -> the set of words that synonyms lead to."""
    found = {}
    for word in synonyms:
        if word in found:
            continue
        members, queue = {word}, [word]
        while queue:
            for other in synonyms[queue.pop()]:
                if other not in members:
                    members.add(other)
                    queue.append(other)
        for member in members:
            found[member] = members
    return found


# -------------------------------------------------------------- common files

WORDS, DIM = 240, 12
vectors = {}  # of v.txt, as written


def make_files():
    """Vectors in loose clusters, texts made of their words, a table, a lexicon of each."""
    draw = random.Random(7)
    centres = [[draw.gauss(0, 1) for _ in range(DIM)] for _ in range(WORDS // 12)]
    for i in range(WORDS):
        vectors[word_of(i)] = [round(x + draw.gauss(0, 0.55), 4) for x in centres[i % len(centres)]]
    write("v.txt", "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in vectors.items()))
    rows = []
    for i in range(300):
        words = [word_of(min(int(draw.expovariate(0.02)), WORDS - 1)) for _ in range(draw.randrange(5, 40))]
        rows.append(f"r{i}\t{i % 2}\t{' '.join(words).capitalize()}!\n")
    write("data.tsv", "".join(rows))
    write("table.tsv", "good\tgreat fine\nfilm\tmovie picture\nbad\tawful poor\npoor\tpenniless\n")
    write("reviews.tsv", "1\tpos\tA good film, a great movie; GOOD fun.\n2\tneg\tBad picture: awful, awful film\n")
    for arguments in (("build", "--vectors", "v.txt", "--all-but-the-top", 2, "--threshold", 0.75, "--vocab-from",
                       "data.tsv",
                       "--kernel", "topk:8", "-o", "v.lex"),
                      ("import", "--table", "table.tsv", "--kernel", "component", "-o", "t.lex")):
        result = lexicon(*arguments)
        if result.code != DONE:
            sys.exit(f"cannot make the common files: {result}")


# --------------------------------------------------------------------- help

class Help(Case):
    def test_help_of_every_verb(self):
        """help of every verb: stdout, usage, defaults, two examples that begin with it"""
        for action in ACTIONS:
            out = self.ok(lexicon(action, "--help"))
            self.assertTrue(out.startswith(f"Usage: safer lexicon {action} "), out)
            self.assertIn("(default", out)
            examples = out.split("\nExamples:\n")[1]
            self.assertGreaterEqual(examples.count(f"  safer lexicon {action} "), 2, examples)
            self.assertEqual(out, self.ok(lexicon(action, "-h")))

    def test_examples_name_real_options(self):
        """the examples in the help use only options that exist"""
        for action in ACTIONS:
            text, examples = self.ok(lexicon(action, "--help")).split("\nExamples:\n")
            for option in re.findall(r"(--[a-z][a-z0-9-]*)", examples):
                self.assertRegex(text, rf"\n  {option} ")

    def test_help_of_the_program(self):
        """safer --help, safer help, safer lexicon --help: usage, verbs, examples, exit codes"""
        out = self.ok(run("--help"))
        self.assertIn("Usage: safer VERB", out)
        self.assertIn("\n  lexicon ", out)
        self.assertIn("Exit status: 0 done", out)
        self.assertGreaterEqual(out.split("Examples:\n")[1].count("  safer lexicon "), 2)
        self.assertEqual([self.ok(run("help")), self.ok(run("-h"))], [out, out])
        out = self.ok(run("lexicon", "--help"))
        self.assertEqual([self.ok(run("lexicon", "help")), self.ok(run("lexicon", "-h"))], [out, out])
        for action in ACTIONS:
            self.assertIn(f"\n  {action} ", out)
        self.assertEqual(out.split("Examples:\n")[1].count("  safer lexicon "), 2)

    def test_help_wins(self):
        """--help works among other, unfinished arguments"""
        self.assertIn("Usage: safer lexicon build", self.ok(lexicon("build", "--vectors", "nowhere", "--help")))

    def test_version(self):
        """--version prints the name and the version in the header"""
        version = re.search(r'SAFER_VERSION "([^"]+)"', interface.text()).group(1)
        self.assertEqual(self.ok(run("--version")), f"safer {version}\n")


# ------------------------------------------------------------------- misuse

class Misuse(Case):
    def test_unknown_verb(self):
        """an unknown verb: exit 2, named, with what was meant"""
        self.refused(run("lexicn"), USAGE, "lexicn", "did you mean lexicon?", "safer --help")
        self.refused(run("xyzzy"), USAGE, "xyzzy", "safer --help")
        self.assertNotIn("did you mean", run("xyzzy").err)
        self.refused(run(), USAGE, "verb", "safer --help")

    def test_output_is_input(self):
        """a file that is read is not written over: exit 2, named, untouched; neither by another name"""
        content = "".join(f"{i}\t{i % 2}\tgood film\n" for i in range(30)).encode()
        write("in.tsv", content)
        write("pairs.tsv", "good\tfine\n")
        os.link(temporary / "in.tsv", temporary / "linked.tsv")
        for output in ("in.tsv", "./in.tsv", "linked.tsv"):
            self.refused(run("train", "--arch", "ngram", "--data", "in.tsv", "-o", output), USAGE, output, "--data")
        self.refused(run("report", "in.tsv", "-o", "linked.tsv"), USAGE, "linked.tsv", "input")
        self.refused(lexicon("import", "--table", "pairs.tsv", "--vocab-from", "in.tsv", "-o", "in.tsv"), USAGE, "in.tsv", "--vocab-from")
        self.assertEqual((temporary / "in.tsv").read_bytes(), content)
        os.remove(temporary / "linked.tsv")

    def test_unknown_action(self):
        """an unknown action: exit 2, named, with what was meant"""
        self.refused(lexicon("bild"), USAGE, "bild", "did you mean build?", "safer lexicon --help")
        self.refused(lexicon("sho"), USAGE, "sho", "did you mean show?")
        self.refused(lexicon("xyzzy"), USAGE, "xyzzy", "safer lexicon --help")
        self.assertNotIn("did you mean", lexicon("xyzzy").err)
        self.refused(lexicon(), USAGE, "build, import, export, show, stats, check, diff or audit")

    def test_unknown_option(self):
        """an unknown option: exit 2, named, with what was meant"""
        self.refused(lexicon("build", "--thresold", "1"), USAGE, "--thresold", "did you mean --threshold?",
                     "safer lexicon build --help")
        self.refused(lexicon("show", "t.lex", "good", "--jsno"), USAGE, "--jsno", "did you mean --json?")
        self.refused(lexicon("stats", "t.lex", "--colour=red"), USAGE, "--colour")
        self.assertNotIn("did you mean", lexicon("stats", "t.lex", "--colour=red").err)
        self.refused(lexicon("stats", "t.lex", "-x"), USAGE, "-x")
        self.refused(lexicon("stats", "t.lex", "--output", "x"), USAGE, "--output")

    def test_values(self):
        """values missing, not numbers, out of range or not among the choices: exit 2, named"""
        build = ("build", "--vectors", "v.txt", "-o", "no.lex")
        for bad in (("--threshold",), ("--threshold", "abc"), ("--threshold", "0.8x"), ("--threshold", "nan"),
                    ("--threshold", "1e999"),
                    ("--threshold", ""), ("--threshold", " 0.8"), ("--threshold", "0x1"), ("--threshold", "1.5"),
                    ("--threshold", "-0.5"), ("--counterfit", "-1"), ("--counterfit", "1e3"), ("--counterfit", "2.5"),
                    ("--counterfit", "99999999999"), ("--min-count", "-1"), ("--min-count", " 3"),
                    ("--min-count", "+3"),
                    ("--min-count", "99999999999999999999999"), ("--min-count=",), ("--threads", "two"),
                    ("--metric", "euclid"),
                    ("--kernel", "topk"), ("--kernel", "topk:0"), ("--kernel", "topk:x"), ("--kernel", "uniform"),
                    ("--json=yes",)):
            self.refused(lexicon(*build, *bad), USAGE, bad[0].strip("-").split("=")[0])
        self.refused(lexicon("export", "t.lex", "--what", "everything"), USAGE, "--what", "everything")
        self.refused(lexicon("stats", "t.lex", "--data", "reviews.tsv", "--sample", "often"), USAGE, "sample", "often")
        self.refused(lexicon("stats", "t.lex", "--data", "reviews.tsv", "--sample", "every:0"), USAGE, "every:0")
        self.refused(lexicon("stats", "t.lex", "--data", "reviews.tsv", "--format", "xml"), USAGE, "format", "xml")
        self.assertFalse(exists("no.lex"))

    def test_dimensions(self):
        """as many directions to remove as there are: exit 2, named"""
        self.refused(lexicon("build", "--vectors", "v.txt", "--all-but-the-top", DIM, "-o", "no.lex"), USAGE,
                     "all-but-the-top", str(DIM))

    def test_needed(self):
        """what is needed is asked for: exit 2"""
        self.refused(lexicon("build", "--vectors", "v.txt"), USAGE, "-o FILE")
        self.refused(lexicon("import", "--table", "table.tsv"), USAGE, "-o FILE")
        self.refused(lexicon("build", "-o", "no.lex"), USAGE, "--vectors")
        self.refused(lexicon("import", "-o", "no.lex"), USAGE, "--table", "--wordnet")
        self.refused(lexicon("import", "--table", "table.tsv", "--wordnet", ".", "-o", "no.lex"), USAGE, "--table",
                     "--wordnet")
        self.refused(lexicon("export", "t.lex"), USAGE, "--what")
        self.refused(lexicon("show", "t.lex"), USAGE, "WORD")
        self.refused(lexicon("stats"), USAGE, "LEXICON")
        for option in (("--sample", "every:2"), ("--limit", "3"), ("--format", "tsv"), ("--repair",), ("--strip-br",)):
            self.refused(lexicon("stats", "t.lex", *option), USAGE, option[0], "--data")
        self.assertFalse(exists("no.lex"))

    def test_extra_argument(self):
        """an argument too many: exit 2, named"""
        self.refused(lexicon("build", "--vectors", "v.txt", "-o", "no.lex", "surplus"), USAGE, "surplus")
        self.refused(lexicon("stats", "t.lex", "surplus"), USAGE, "surplus")
        self.refused(lexicon("export", "t.lex", "surplus", "--what", "kernel"), USAGE, "surplus")

    def test_one_line(self):
        """arguments with line ends and escape codes still give one plain line"""
        for result in (run("a\nb"), lexicon("a\nb"), lexicon("build", "--a\nb"), lexicon("stats", "t.lex", "a\nb"),
                       lexicon("build", "--vectors", "v.txt", "-o", "x", "--metric", "\033[1m\n")):
            self.refused(result, USAGE)
            self.assertNotIn("\033", result.err)
        self.refused(lexicon("show", "t.lex", "a\nb"), INPUT, "a?b")
        self.refused(lexicon("stats", "a\nb"), SYSTEM, "a?b")

    def test_forms(self):
        """--option=value, -o, --, options anywhere: all the same"""
        self.ok(lexicon("import", "-o", "form1.lex", "--table=table.tsv", "--kernel=component"))
        self.ok(lexicon("import", "--kernel", "component", "--output", "form2.lex", "--table", "table.tsv"))
        self.assertEqual((temporary / "form1.lex").read_bytes(), (temporary / "form2.lex").read_bytes())
        self.assertEqual((temporary / "form1.lex").read_bytes(), (temporary / "t.lex").read_bytes())
        self.assertEqual(self.ok(lexicon("show", "--", "t.lex", "good")), self.ok(lexicon("show", "t.lex", "good")))
        self.refused(lexicon("show", "t.lex", "--", "--json"), INPUT, "--json")


# ---------------------------------------------------------------- bad input

class BadInput(Case):
    def test_missing_file(self):
        """files that are not there: exit 4, named"""
        missing = "nowhere.txt"
        for arguments in (("build", "--vectors", missing), ("import", "--table", missing),
                          ("import", "--wordnet", missing),
                          ("build", "--vectors", "v.txt", "--vocab", missing),
                          ("build", "--vectors", "v.txt", "--vocab-from", missing),
                          ("build", "--vectors", "v.txt", "--synonyms", missing),
                          ("build", "--vectors", "v.txt", "--antonyms", missing),
                          ("build", "--vectors", "v.txt", "--simlex", missing),
                          ("build", "--vectors", "v.txt", "--exclude", missing),
                          ("import", "--table", "table.tsv", "--protect", missing)):
            self.refused(lexicon(*arguments, "-o", "no.lex"), SYSTEM, missing, "No such file")
        for arguments in (("stats", missing), ("show", missing, "good"), ("export", missing, "--what", "kernel"),
                          ("stats", "t.lex", "--data", missing)):
            self.refused(lexicon(*arguments), SYSTEM, missing, "No such file")
        self.assertFalse(exists("no.lex"))

    def test_folder(self):
        """a folder where a file is expected: exit 3, named"""
        (temporary / "folder").mkdir(exist_ok=True)
        for arguments in (("build", "--vectors", "folder", "-o", "no.lex"),
                          ("import", "--table", "folder", "-o", "no.lex"),
                          ("import", "--table", "table.tsv", "--vocab", "folder", "-o", "no.lex"), ("stats", "folder"),
                          ("show", "folder", "good"), ("export", "folder", "--what", "overlap"),
                          ("stats", "t.lex", "--data", "folder")):
            self.refused(lexicon(*arguments), INPUT, "folder")
        self.refused(lexicon("import", "--table", "table.tsv", "-o", "folder"), USAGE, "folder")

    def test_empty_file(self):
        """empty files: exit 3, named; an empty list of exclusions excludes nothing"""
        write("empty", "")
        for arguments in (("build", "--vectors", "empty"), ("import", "--table", "empty"),
                          ("build", "--vectors", "v.txt", "--vocab", "empty"),
                          ("build", "--vectors", "v.txt", "--vocab-from", "empty"),
                          ("build", "--vectors", "v.txt", "--simlex", "empty")):
            self.refused(lexicon(*arguments, "-o", "no.lex"), INPUT, "empty")
        self.refused(lexicon("stats", "empty"), INPUT, "empty")
        self.refused(lexicon("stats", "t.lex", "--data", "empty"), INPUT, "empty")
        name, report = self.lex("import", "--table", "table.tsv", "--exclude", "empty", "--protect", "empty")
        self.assertEqual((report["excluded_pairs"], report["protected_words"], report["pairs"]), (0, 0, 7))

    def test_damaged_lexicon(self):
        """a .lex file with any bit changed, cut or lengthened: exit 3, named, with a reason"""
        good = (temporary / "t.lex").read_bytes()
        damaged = [good[:i] + bytes([good[i] ^ 0x10]) + good[i + 1:] for i in range(0, len(good), len(good) // 60)]
        damaged += [good[:n] for n in (1, 7, 8, 100, 500, len(good) // 2, len(good) - 1)] + [good + b"\0"]
        for bytes_ in damaged:
            write("damaged.lex", bytes_)
            self.refused(lexicon("stats", "damaged.lex"), INPUT, "damaged.lex", "is not a usable lexicon: ")
        for action in (("show", "damaged.lex", "good"), ("export", "damaged.lex", "--what", "synonyms")):
            self.refused(lexicon(*action), INPUT, "damaged.lex")
        self.refused(lexicon("stats", "table.tsv"), INPUT, "table.tsv")

    def test_vectors(self):
        """vectors that are ragged, not numbers or not finite: exit 3, file and line"""
        for line, content in (("line 2", "a 1 2\nb 1\n"), ("line 3", "a 1 2\nb 1 2\nc 1 2 3\n"),
                              ("line 2", "a 1 2\nb 1 nan\n"),
                              ("line 1", "a inf 2\nb 1 2\n"), ("line 2", "a 1 2\nb 1 1e39\n"),
                              ("line 2", "a 1 2\nb 1 two\n"),
                              ("line 3", "2 2\na 1 2\nb 1 x\n"), ("", "3 2\na 1 2\nb 1 2\n"), ("", "word\n"),
                              ("line 2", "2 3\na 1 2\nb 1 2\n")):
            write("bad.vec", content)
            self.refused(lexicon("build", "--vectors", "bad.vec", "--all-but-the-top", 0, "-o", "no.lex"), INPUT,
                         "bad.vec", line)
        binary = b"2 3\n" + b"".join(word + b" " + struct.pack("<3f", *row) for word,
                                     row in ((b"a", (1, 2, 3)), (b"b", (1, 2, math.nan))))
        write("bad.bin", binary)
        self.refused(lexicon("build", "--vectors", "bad.bin", "--all-but-the-top", 0, "-o", "no.lex"), INPUT, "bad.bin",
                     "vector 2")
        write("bad.bin", binary[:-5])
        self.refused(lexicon("build", "--vectors", "bad.bin", "--all-but-the-top", 0, "-o", "no.lex"), INPUT, "bad.bin",
                     "vector 2")
        self.assertFalse(exists("no.lex"))

    def test_tables(self):
        """tables without tab, with bad JSON, lone surrogates, bad UTF-8: exit 3, file and line"""
        for where, content in (("line 2", "good\tgreat\nbad awful\n"), ("line 1", '{"good": ["\\ud800"]}'),
                               ("line 2", '{"good":\n["great",]}'), ("line 1", '{"good": ["great"'),
                               ('"good"', '{"good": "great"}'),
                               ('item 2 of "good"', '{"good": ["great", 3]}'), ("line 1", '{"a": ["b"], "a": ["c"]}'),
                               ("line 2", b"good\tgreat\nbad\taw\xffful\n"), ("line 1", b'{"good": ["\xff"]}')):
            write("bad.table", content)
            self.refused(lexicon("import", "--table", "bad.table", "-o", "no.lex"), INPUT, "bad.table", where)
        self.assertFalse(exists("no.lex"))

    def test_word_files(self):
        """constraints, exclusions and SimLex with the wrong columns: exit 3, file and line"""
        first, second = word_of(0), word_of(1)
        write("bad.pairs", f"{first} {second}\n\n{first}\n")
        build = ("build", "--vectors", "v.txt", "-o", "no.lex")
        self.refused(lexicon(*build, "--synonyms", "bad.pairs"), INPUT, "bad.pairs", "line 3")
        self.refused(lexicon(*build, "--antonyms", "bad.pairs"), INPUT, "bad.pairs", "line 3")
        write("bad.pairs", f"{first}\n{first} {second} {first}\n")
        self.refused(lexicon(*build, "--exclude", "bad.pairs"), INPUT, "bad.pairs", "line 2")
        write("bad.pairs", f"{first}\n{first} {second}\n")
        self.refused(lexicon(*build, "--protect", "bad.pairs"), INPUT, "bad.pairs", "line 2")
        write("bad.pairs", f"{first} {second} high\n")
        self.refused(lexicon(*build, "--simlex", "bad.pairs"), INPUT, "bad.pairs", "line 1")
        self.assertFalse(exists("no.lex"))

    def test_data(self):
        """bad rows of data in every format: exit 3, file and line"""
        for name, line, content in (
                ("bad.tsv", "line 2", b"1\tpos\tfine\n2\tneg\tbad \xff byte\n"),
                ("bad.tsv", "line 2", b"1\tpos\tfine\n2\tneg\n"),
                ("bad.tsv", "line 1", b"1\tpos\tback\\slash\n"), ("bad.tsv", "line 2", b"1\tpos\tok\n\n2\tneg\tok\n"),
                ("bad.tsv", "line 1", b"i\0d\tpos\tok\n"), ("bad.tsv", "line 1", b"1\tp\0s\tok\n"),
                ("bad.csv", "line 3", b'text,label\n"ok",1\n"never ends,1\n'),
                ("bad.csv", "line 2", b"text,label\nonly\n"), ("bad.csv", "line 2", b'text,label\n"a"b,1\n'),
                ("bad.csv", "line 1", b"one,two,three,four\n"), ("bad.csv", "line 2", b"text,label\nb\xff,1\n"),
                ("bad.jsonl", "line 2", b'{"text": "ok"}\n{"text": "cut\n'),
                ("bad.jsonl", "line 1", b'{"text": "\\udc00"}\n'),
                ("bad.jsonl", "line 1", b'{"label": 1}\n'), ("bad.jsonl", "line 1", b'{"text": 3}\n'),
                ("bad.jsonl", "line 1", b"[1]\n"),
                ("bad.jsonl", "line 1", b'{"text": "a", "text": "b"}\n'),
                ("bad.jsonl", "line 1", b'{"text": "a", "label": 1.5}\n'),
                ("bad.jsonl", "line 1", b'{"text": "a\xff"}\n'),
                ("bad.txt", "line 2", b"__label__a ok\n__label__a __label__b two\n"),
                ("bad.txt", "line 1", b"__label__ ok\n")):
            write(name, content)
            self.refused(lexicon("stats", "t.lex", "--data", name), INPUT, name, line)
            self.refused(lexicon("import", "--table", "table.tsv", "--vocab-from", name, "-o", "no.lex"), INPUT, name,
                         line)
        write("riddle.dat", "what is this\n")
        self.refused(lexicon("stats", "t.lex", "--data", "riddle.dat"), INPUT, "riddle.dat", "--format")
        self.assertFalse(exists("no.lex"))

    def test_repair(self):
        """--repair reads what is refused without it"""
        write("latin.tsv", b"1\tpos\tna\xefve good film\n")
        self.refused(lexicon("stats", "t.lex", "--data", "latin.tsv"), INPUT, "latin.tsv", "line 1", "0xEF")
        data = self.stats("t.lex", "--data", "latin.tsv", "--repair")["data"]
        self.assertEqual((data["tokens"], data["known_tokens"]), (4, 2))  # "na", "ve", good, film

    def test_nul_bytes(self):
        """NUL bytes: part of a text, but of no word of a table or a vector file"""
        write("nul.tsv", b"1\tpos\tgood\0film\0\n")
        data = self.stats("t.lex", "--data", "nul.tsv")["data"]
        self.assertEqual((data["tokens"], data["known_tokens"]), (2, 2))
        write("nul.jsonl", '{"text": "good\\u0000film"}\n')
        self.assertEqual(self.stats("t.lex", "--data", "nul.jsonl")["data"]["known_tokens"], 2)
        write("nul.table", b"go\0od\tgreat\nfilm\tmo\0vie picture\n")
        name, report = self.lex("import", "--table", "nul.table")
        self.assertEqual((report["table_phrases"], report["words"], report["pairs"]), (2, 3, 1))
        write("nul.json", '{"go\\u0000od": ["great"]}')
        self.refused(lexicon("import", "--table", "nul.json", "-o", "no.lex"), INPUT, "nul.json")
        write("nul.vec", b"a\0b 1 2\ngood 1 2\nfine 1 2\n")
        name, report = self.lex("build", "--vectors", "nul.vec", "--all-but-the-top", 0)
        self.assertEqual((report["vectors"]["unusable"], report["words"]), (1, 2))

    def test_long_line(self):
        """a line of 10 MB works, in every format of data and as a table"""
        words = 1_000_000
        text = "good film " * words  # 10 MB
        for name, content in (("long.tsv", f"1\tpos\t{text}\n"), ("long.csv", f'text,label\n"{text}",1\n'),
                              ("long.jsonl", json.dumps({"text": text}) + "\n"),
                              ("long.txt", f"__label__pos {text}\n")):
            write(name, content)
            data = self.stats("t.lex", "--data", name)["data"]
            self.assertEqual((data["texts"], data["tokens"], data["known_tokens"]), (1, 2 * words, 2 * words))
            (temporary / name).unlink()
        write("long.table", "good\t" + "great fine " * words + "\n")
        name, report = self.lex("import", "--table", "long.table")
        self.assertEqual((report["words"], report["pairs"]), (3, 2))
        (temporary / "long.table").unlink()

    def test_unknown_word(self):
        """show of a word that is not there: exit 3, named; the others are shown"""
        self.refused(lexicon("show", "t.lex", "sesquipedalian"), INPUT, "sesquipedalian", "t.lex")
        self.refused(lexicon("show", "t.lex", ""), INPUT, "t.lex")
        result = lexicon("show", "t.lex", "good", "sesquipedalian", "film")
        self.assertEqual((result.code, result.err.count("\n")), (INPUT, 1))
        self.assertTrue("good" in result.out and "film" in result.out)
        result = lexicon("show", "t.lex", "good", "sesquipedalian", "--json")
        self.assertEqual((result.code, [entry["word"] for entry in json.loads(result.out)]), (INPUT, ["good"]))

    def test_json_layout(self):
        """--json: indented as Python does it, reals with the fewest digits"""
        for arguments in (("stats", "v.lex"), ("stats", "v.lex", "--data", "data.tsv"), ("show", "v.lex", word_of(1)),
                          ("stats", "t.lex")):
            text = self.ok(lexicon(*arguments, "--json"))
            self.assertEqual(text, json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n")

    def test_nothing_left(self):
        """a vocabulary that leaves nothing: exit 3, and says so"""
        write("other.txt", "zebra\n")
        self.refused(lexicon("build", "--vectors", "v.txt", "--vocab", "other.txt", "-o", "no.lex"), INPUT, "v.txt")
        self.refused(lexicon("import", "--table", "table.tsv", "--vocab", "other.txt", "-o", "no.lex"), INPUT,
                     "no word is left")
        self.refused(lexicon("import", "--table", "table.tsv", "--vocab-from", "reviews.tsv", "--min-count", 99, "-o",
                             "no.lex"), INPUT,
                     "no word is left")


# ----------------------------------------------------------- system failures

class System(Case):
    def test_full_disk(self):
        """stdout on a full disk: exit 4, one line"""
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        for arguments in (("--help",), ("--version",), ("lexicon", "--help"), ("lexicon", "build", "--help"),
                          ("lexicon", "stats", "t.lex"), ("lexicon", "stats", "t.lex", "--json"),
                          ("lexicon", "show", "t.lex", "good"),
                          ("lexicon", "show", "t.lex", "good", "--json"),
                          ("lexicon", "export", "v.lex", "--what", "kernel"),
                          ("lexicon", "export", "v.lex", "--what", "overlap", "--json"),
                          ("lexicon", "import", "--table", "table.tsv", "-o", "full.lex")):
            with open("/dev/full", "wb") as full:
                self.refused(run(*arguments, stdout=full), SYSTEM, "cannot write", "No space left")
        self.refused(lexicon("import", "--table", "table.tsv", "-o", "/dev/full"), SYSTEM, "/dev/full", "No space left")

    def test_half_written(self):
        """a disk that fills while the lexicon is written: exit 4, the old file untouched, nothing beside it"""
        write("half.lex", "old")
        before = names()
        limit = {"restore_signals": False,  # so that a file over the limit is an error, not a signal
                 "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))}
        self.refused(lexicon("import", "--table", "table.tsv", "-o", "half.lex", **limit), SYSTEM, "half.lex",
                     "File too large")
        self.refused(lexicon("import", "--table", "table.tsv", "-o", "fresh.lex", **limit), SYSTEM, "fresh.lex",
                     "File too large")
        self.assertEqual(((temporary / "half.lex").read_bytes(), names()), (b"old", before))

    def test_closed_stdout(self):
        """stdout that is closed: exit 4"""
        def close():
            os.close(1)
        self.refused(lexicon("stats", "t.lex", stdout=None, preexec_fn=close), SYSTEM, "cannot write")

    def test_output_folder_missing(self):
        """-o into a folder that is not there, or below a file: exit 4, nothing written"""
        before = names()
        self.refused(lexicon("import", "--table", "table.tsv", "-o", "absent/x.lex"), SYSTEM, "absent/x.lex")
        self.refused(lexicon("build", "--vectors", "v.txt", "-o", "table.tsv/x.lex"), SYSTEM, "table.tsv/x.lex")
        self.assertEqual(names(), before)

    def test_output_folder_forbidden(self):
        """-o into a folder without permission: exit 4, the old file untouched, nothing beside it"""
        folder, copy = temporary / "forbidden", temporary / "forbidden-safer"
        folder.mkdir()
        (folder / "old.lex").write_bytes(b"old")
        folder.chmod(0o555)
        more = {}
        global program
        before = program
        try:
            if os.geteuid() == 0:  # root may write anywhere: become nobody, with a program that nobody can reach
                temporary.chmod(0o755)
                shutil.copy(program, copy)
                copy.chmod(0o755)
                counts = temporary / "counts"  # where a build that counts branches may leave them
                counts.mkdir()
                counts.chmod(0o777)
                program, more = str(copy), {"user": 65534, "extra_groups": [], "env": {"GCOV_PREFIX": str(counts)}}
                try:
                    if run("--version", **more).code != DONE:
                        self.skipTest("nobody cannot run the program")
                except PermissionError:
                    self.skipTest("root here cannot become nobody")
            for name in ("new.lex", "old.lex"):
                self.refused(lexicon("import", "--table", "table.tsv", "-o", f"forbidden/{name}", **more), SYSTEM,
                             f"forbidden/{name}",
                             "Permission denied")
            self.assertEqual([(path.name, path.read_bytes()) for path in folder.iterdir()], [("old.lex", b"old")])
        finally:
            program = before
            folder.chmod(0o755)
            shutil.rmtree(folder)
            copy.unlink(missing_ok=True)

    def test_output_devices_and_links(self):
        """-o /dev/null works; a link stays a link; an old file is replaced"""
        self.assertIn("wrote /dev/null", self.ok(lexicon("import", "--table", "table.tsv", "-o", "/dev/null")))
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())
        write("target.lex", "old")
        (temporary / "link.lex").symlink_to("target.lex")
        self.ok(lexicon("import", "--table", "table.tsv", "--kernel", "component", "-o", "link.lex"))
        self.assertTrue((temporary / "link.lex").is_symlink())
        self.assertEqual((temporary / "target.lex").read_bytes(), (temporary / "t.lex").read_bytes())

    def interrupted_build(self, signals):
        """A build that is interrupted while its vectors come out of a pipe."""
        pipe = temporary / "pipe"
        os.mkfifo(pipe)
        try:
            child = subprocess.Popen([program, "lexicon", "build", "--vectors", "pipe", "--all-but-the-top", "2", "-o",
                                      "stop.lex"], cwd=temporary,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            with open(pipe, "wb") as feed:  # opens when the build, which has set its handler, does
                feed.write((temporary / "v.txt").read_bytes())
                feed.flush()
                for _ in range(signals):
                    child.send_signal(signal.SIGINT)
                    time.sleep(0.3)
                try:
                    feed.close()
                except BrokenPipeError:
                    pass
            out, err = child.communicate(timeout=120)
            return Result(child.returncode, out.decode(), err.decode())
        finally:
            pipe.unlink()

    def test_interrupt(self):
        """Ctrl-C during a build: exit 130, one line, no output file; the old file stays"""
        result = self.interrupted_build(1)
        self.refused(result, INTERRUPTED, "cancelled")
        self.assertFalse(exists("stop.lex"))
        write("stop.lex", "old")
        before = names()
        self.refused(self.interrupted_build(1), INTERRUPTED, "cancelled")
        self.assertEqual(((temporary / "stop.lex").read_bytes(), names()), (b"old", before))
        (temporary / "stop.lex").unlink()

    def test_max_unpacked(self):
        """--max-unpacked takes 500MB, 20GB, or a number of GB"""
        write("large.tsv.gz", gzip.compress(b"good\tgreat\n" * 200000))  # 2.2 MB

        def limited(size):
            return lexicon("import", "--table", "large.tsv.gz", "--kernel", "component", "--max-unpacked", size, "-o", "large.lex")

        for size in ("1MB", "2MB"):
            self.refused(limited(size), INPUT, f"large.tsv.gz holds more than {size[0]}.0 MB", "--max-unpacked raises it")
        for size in ("3MB", "1GB", "1", "1000000GB", "1000000000MB"):
            self.ok(limited(size))
        for size in ("", "x", "-1", "+1", "1.5GB", "1 GB", "1gb", "1KB", "MB", "0", "0MB", "1000001", "1000000001MB", "99999999999999999999GB"):
            self.refused(limited(size), USAGE, f"--max-unpacked {size}: a size is")

    def test_file_size_limit(self):
        """a limit on the size of files (ulimit -f): exit 4, one line, nothing left behind"""
        before = names()
        result = subprocess.run(["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", program, "lexicon", "import", "--table",
                                 "table.tsv", "-o", "large.lex"], cwd=temporary, capture_output=True,
                                text=True)
        self.refused(Result(result.returncode, result.stdout, result.stderr), SYSTEM, "large.lex", "File too large")
        self.assertEqual(names(), before)

    def test_second_interrupt(self):
        """the second Ctrl-C ends a build that waits for its input, at once"""
        result = self.interrupted_build(2)
        self.assertEqual(result, Result(INTERRUPTED, "", "safer: cancelled by Ctrl-C\n"))
        self.assertFalse(exists("stop.lex"))

    def test_uninterrupted(self):
        """the same build from the same pipe ends well without Ctrl-C"""
        result = self.interrupted_build(0)
        self.assertEqual((result.code, result.err), (DONE, ""))
        (temporary / "stop.lex").unlink()


# ------------------------------------------------------------------ terminals

class Terminal(Case):
    BUILD = ("lexicon", "build", "--vectors", "v.txt", "--vocab-from", "data.tsv", "--all-but-the-top", "2")

    def on_terminal(self, *arguments, stream, env=None):
        """Runs with stdout or stderr on a terminal; returns the code, what the terminal got, the rest."""
        try:
            master, slave = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal to be had here: {error}")
        environment = {**os.environ, "TERM": "xterm", **(env or {})}
        if "NO_COLOR" not in (env or {}):
            environment.pop("NO_COLOR", None)
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: slave}
        child = subprocess.Popen([program, *arguments], cwd=temporary, stdin=subprocess.DEVNULL, env=environment,
                                 **streams)
        os.close(slave)
        seen = b""
        while True:  # all output fits a pipe, so this cannot block the program
            if not select.select([master], [], [], 120)[0]:
                child.kill()
                self.fail("nothing for two minutes")
            try:
                piece = os.read(master, 65536)
            except OSError:  # the program's side is closed
                break
            if not piece:
                break
            seen += piece
        os.close(master)
        out, err = child.communicate(timeout=120)
        return child.returncode, seen.decode(), ((out or b"") + (err or b"")).decode()

    def test_progress(self):
        """progress appears on a terminal and is cleared at the end"""
        code, seen, out = self.on_terminal(*self.BUILD, "-o", "pty.lex", stream="stderr")
        self.assertEqual(code, DONE)
        self.assertIn("wrote pty.lex", out)
        self.assertNotIn(ESCAPE, out)
        self.assertRegex(seen, r"comparing all pairs +[\d,]+ of [\d,]+")
        self.assertRegex(seen, r"counting words +[\d,]+ of 300")
        self.assertTrue(seen.endswith("\r\033[K"), repr(seen[-80:]))
        self.assertNotIn("\n", seen)  # one line, overwritten

    def test_progress_error(self):
        """an error message on a terminal starts on a clean line"""
        (temporary / "pty.folder").mkdir(exist_ok=True)  # found out only when the lexicon is to be written
        code, seen, out = self.on_terminal(*self.BUILD, "-o", "pty.folder", stream="stderr")
        self.assertEqual((code, out), (USAGE, ""))
        self.assertRegex(seen, r"\r\033\[Ksafer: cannot [^\r\n]*pty.folder[^\r\n]*\r\n$")

    def test_quiet(self):
        """--quiet: no progress on a terminal, the same output, errors still told"""
        code, seen, out = self.on_terminal(*self.BUILD, "--quiet", "-o", "pty.lex", stream="stderr")
        self.assertEqual((code, seen), (DONE, ""))
        self.assertIn("wrote pty.lex", out)
        self.assertEqual(self.ok(lexicon("stats", "t.lex", "--quiet")), self.ok(lexicon("stats", "t.lex")))
        self.assertEqual(self.ok(lexicon("stats", "t.lex", "-q")), self.ok(lexicon("stats", "t.lex")))
        self.refused(lexicon("stats", "nowhere.lex", "--quiet"), SYSTEM, "nowhere.lex")

    def test_silent_stderr(self):
        """stderr stays silent when it is no terminal"""
        for arguments in ((*self.BUILD, "-o", "quiet.lex"), ("lexicon", "stats", "v.lex", "--data", "data.tsv"),
                          ("lexicon", "import", "--table", "table.tsv", "--vocab-from", "reviews.tsv", "-o",
                           "quiet.lex")):
            self.assertEqual(run(*arguments).err, "")

    def test_colour(self):
        """emphasis on a terminal only, and not with NO_COLOR"""
        show = ("lexicon", "show", "t.lex", "good")
        code, seen, err = self.on_terminal(*show, stream="stdout")
        self.assertEqual((code, err), (DONE, ""))
        self.assertIn("\033[1mgood\033[0m", seen)
        code, seen, err = self.on_terminal(*show, stream="stdout", env={"NO_COLOR": "1"})
        self.assertEqual((code, seen.replace("\r\n", "\n")), (DONE, self.ok(lexicon(*show[1:]))))
        for arguments in (show, (*self.BUILD, "-o", "plain.lex"), ("lexicon", "stats", "v.lex", "--data", "data.tsv"),
                          ("lexicon", "build", "--help")):
            result = run(*arguments, env={"TERM": "xterm"})
            self.assertEqual(result.code, DONE)
            self.assertNotIn("\033", result.out + result.err)


# ----------------------------------------------------------- text and --json

class Json(Case):
    def test_build(self):
        """build: --json agrees with the text"""
        write("pairs.syn", "".join(f"{word_of(i)} {word_of(i + 20)}\n" for i in range(0, 40, 3)))
        write("pairs.ant", "".join(f"{word_of(i)} {word_of(i + 1)}\n" for i in range(0, 40, 5)))
        write("sim.txt", "".join(f"{word_of(i)} {word_of(i * 7 % WORDS)} {i % 10}\n" for i in range(1, 50)))
        arguments = ("build", "--vectors", "v.txt", "--vocab-from", "data.tsv", "--all-but-the-top", 2, "--threshold",
                     0.75, "--synonyms",
                     "pairs.syn", "--antonyms", "pairs.ant", "--simlex", "sim.txt", "--kernel", "topk:20", "-o",
                     "json.lex")
        text, report = self.ok(lexicon(*arguments)), json.loads(self.ok(lexicon(*arguments, "--json")))
        lines = dict(re.findall(r"^(\S+) {2,}(.*)$", text, re.M))
        self.assertEqual(numbers_in(lines["vectors"]), [report["vectors"]["rows"], report["vectors"]["dim"],
                                                        report["listed"]])
        self.assertEqual((report["vectors"]["rows"], report["vectors"]["dim"]), (WORDS, DIM))
        self.assertEqual(numbers_in(lines["fitted"]), list(report["counterfit"].values()))
        self.assertEqual((report["counterfit"]["attract"], report["counterfit"]["repel"]), (14, 8))
        self.assertEqual(numbers_in(lines["texts"]), [report["texts"], report["tokens"]])
        self.assertEqual(numbers_in(lines["words"])[:2], [report["words"], report["words_with_synonyms"]])
        self.assertEqual(numbers_in(lines["words"])[2], int(10 * report["mean_synonyms"]) / 10)
        self.assertEqual(numbers_in(lines["pairs"]), [report["pairs"]])
        self.assertEqual(numbers_in(lines["components"]), [report["components"], *report["largest_components"]])
        rho = report["simlex"]
        for printed, exact in zip(re.findall(r"-?\d\.\d{3}", lines["SimLex-999"]),
                                  (rho["before"], rho["fitted"], rho["after"])):
            self.assertAlmostEqual(float(printed), exact, delta=0.000501)
        self.assertIn(f"({rho['pairs']} pairs)", lines["SimLex-999"])
        ladder = re.findall(r"^  K (\d+) +([\d.]+)%(.*)$", text, re.M)
        self.assertEqual([int(k) for k, _, _ in ladder], [rung["k"] for rung in report["ladder"]])
        for (k, share, mark), rung in zip(ladder, report["ladder"]):
            self.assertEqual(float(share), int(1000 * rung["share_above_half"] + 1e-9) / 10)
            self.assertEqual("smallest that reaches 95%" in mark, report["suggested_kernel"] == f"topk:{k}")
        self.assertIsNotNone(report["suggested_kernel"])
        self.assertIn(f"wrote json.lex ({(temporary / 'json.lex').stat().st_size:,} bytes, kernel topk:20)", text)
        self.assertEqual((report["output"], report["kernel"]), ("json.lex", "topk:20"))
        self.assertEqual(report["sha256"], sha256_of("json.lex"))
        self.assertEqual([stage["stage"] for stage in report["stages"]] + ["all"],
                         re.findall(r"^(\S.*?) +\d+\.\d\d s$", text, re.M))

    def test_columns(self):
        """the same columns for every verb that reads data; a run is verified with the columns it was made with"""
        rows = [(f"n{i}", i % 2, "a good fine film" if i % 2 else "a bad poor film") for i in range(40)]
        write("col.csv", "Nr,Urteil,Satz\n" + "".join(f"{n},{u},{s}\n" for n, u, s in rows))
        write("col.tsv", "".join(f"{n}\t{'pos' if u else 'neg'}\t{s}\n" for n, u, s in rows))
        columns = ("--text-column", "satz", "--label-column", "2", "--id-column", "Nr", "--labels", "0=neg,1=pos")
        write("col.table", "good\tfine\nbad\tpoor\n")
        self.ok(lexicon("import", "--table", "col.table", "--vocab-from", "col.csv", *columns[:6], "-o", "col.lex"))
        self.refused(lexicon("import", "--table", "col.table", "--id-column", "Nr", "-o", "col.lex"), USAGE, "--vocab-from")
        out = self.ok(run("train", "--arch", "ngram", "--data", "col.csv", *columns, "--lexicon", "col.lex", "-o", "col.model"))
        self.assertIn("2 classes: neg 20, pos 20\n", out)
        data = ("--lexicon", "col.lex", "--data", "col.csv")
        self.ok(run("certify", "--model", "col.model", *data, *columns, "-o", "col.jsonl"))
        self.ok(run("verify", "col.jsonl", "--lexicon", "col.lex", "--data", "col.csv", *columns))
        self.ok(run("verify", "col.jsonl", "--lexicon", "col.lex", "--data", "col.tsv"))
        self.refused(run("verify", "col.jsonl", "--lexicon", "col.lex", "--data", "col.csv", *columns[:4]), INPUT, "data")
        self.ok(run("report", "col.jsonl", "--data", "col.csv", *columns, "--lexicon", "col.lex", "-o", "col.html"))
        self.ok(run("attack", "--model", "col.model", *data, *columns, "-o", "col-attack.jsonl"))
        write("col.py", "import json\nfor line in iter(input, None):\n    asked = json.loads(line)\n"
              "    print(json.dumps({'id': asked['id'], 'labels': ['pos' if 'fine' in t else 'neg' for t in asked['texts']]}), flush=True)\n")
        for names in ("0=neg,1=pos", "neg,pos"):  # other names for the data's labels, or the classes of a remote model
            self.ok(run("certify", "--model", "exec:python3 col.py", "--workers", 1, "--lexicon", "col.lex", "--labels", names,
                        *(("--data", "col.csv", *columns[:6]) if "=" in names else ("--data", "col.tsv")), "--n", 20, "--n0", 5))

    def test_train_warns(self):
        """train says which classes there are, and what is strange about them"""
        def train(name, rows):
            write(name, "text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
            return run("train", "--arch", "ngram", "--data", name, "-o", "warn.model")
        good = [("a good film", "pos"), ("a bad film", "neg")] * 15
        done = train("fine.csv", good)
        self.assertEqual((done.code, done.err), (0, ""))
        self.assertIn("2 classes: neg 15, pos 15\n", done.out)
        done = train("few.csv", good + [("what", "odd")])
        self.assertIn('warning: the class "odd" has 1 text\n', done.err)
        done = train("texts.csv", good + [("pos", "this is a text and no label")] * 10)
        self.assertIn("looks like a text, not like a label; --label-column", done.err)
        done = train("one.csv", [("a good film", "pos")] * 20)
        self.refused(done, INPUT, 'all rows of --data have the label "pos"; at least two classes are needed')
        done = train("ten.csv", [("a good film", "pos"), ("a bad film", "neg")])
        self.refused(done, INPUT, "no class of --data has 10 rows, so none can be held out; give --dev")
        done = train("swapped.csv", [("neg", "this is a text and no label"), ("pos", "this is another text and no label")])
        self.assertEqual(done.code, INPUT)
        self.assertIn("looks like a text, not like a label; --label-column", done.err)

    def test_dropped(self):
        """--dropped names every word that is read and not kept, once, with its reason"""
        write("drop.json", json.dumps({"good": ["great", "first rate", "well-known", "42"], "heart_attack": ["infarction"],
                                       "x": ["y"], "a\tb": ["fine"], "film": ["movie", "First Rate", "first rate"]}))
        write("drop.vocab", "good\ngreat\nfilm\nmovie\nx\ny\n")
        write("drop-from.tsv", "1\tpos\tgood good great great film film x x y y\n")
        text = self.ok(lexicon("import", "--table", "drop.json", "--vocab", "drop.vocab", "--vocab-from", "drop-from.tsv",
                               "--dropped", "drop.out", "-o", "drop.lex"))
        self.assertIn("named in drop.out", text)
        self.assertEqual((temporary / "drop.out").read_text("utf-8").splitlines(), [
            "first rate\tphrase", "well-known\tphrase", "42\tno word", "heart_attack\tphrase", "a\\tb\tphrase",
            "First Rate\tphrase", "infarction\tvocabulary", "fine\tvocabulary", "movie\trare", "x\tcase", "y\tcase"])
        write("drop.vec", b"good 1 2\ngreat 1 2\nzero 0 0\nbad\xff 1 2\n42 3 1\nrare 1 2\nelse 5 1\n")
        write("drop.vocab", "good\ngreat\nzero\n42\nrare\nmissing\n")
        write("drop-from.tsv", "1\tpos\tgood good great great 42 42\n")
        self.ok(lexicon("build", "--vectors", "drop.vec", "--vocab", "drop.vocab", "--vocab-from", "drop-from.tsv",
                        "--all-but-the-top", "0", "--dropped", "drop.out", "-o", "drop.lex"))
        self.assertEqual(sorted((temporary / "drop.out").read_text("utf-8").splitlines()), sorted([
            "zero\tzero vector", "bad\ufffd\tnot UTF-8", "else\tvocabulary", "zero\tno vector", "missing\tno vector",
            "rare\trare", "42\trare"]))
        self.refused(lexicon("import", "--table", "drop.json", "--dropped", "none/x", "-o", "drop.lex"), SYSTEM, "none/x")

    def test_import(self):
        """import: --json agrees with the text"""
        write("odd.tsv", "good\tgreat fine\nhot dog\tsausage\ngreat\tgood\nx\ty\nfilm\tmovie\n")
        write("odd.exclude", "film movie\n")
        write("odd.protect", "fine\n")
        arguments = ("import", "--table", "odd.tsv", "--exclude", "odd.exclude", "--protect", "odd.protect", "-o",
                     "json.lex")
        text, report = self.ok(lexicon(*arguments)), json.loads(self.ok(lexicon(*arguments, "--json")))
        lines = dict(re.findall(r"^(\S+) {2,}(.*)$", text, re.M))
        self.assertEqual((report["table_phrases"], report["refused_words"], report["refused_pairs"],
                          report["excluded_pairs"],
                          report["protected_words"]), (1, 2, 1, 1, 1))
        self.assertEqual(numbers_in(text.split("left out")[1].split("\n")[0]), [1])
        self.assertEqual(numbers_in(lines["refused"]), [2, 1])
        self.assertEqual(numbers_in(lines["excluded"]), [1])
        self.assertEqual(numbers_in(lines["protected"]), [1, report["protected_pairs"]])
        self.assertEqual(numbers_in(lines["pairs"])[:1], [report["pairs"]])
        self.assertEqual((report["pairs"], report["symmetrised"], report["suggested_kernel"], report["ladder"]),
                         (1, 0, None, []))

    def test_stats(self):
        """stats: --json agrees with the text; shares and quantiles are cut, not rounded up"""
        arguments = ("stats", "v.lex", "--data", "data.tsv")
        text, report = self.ok(lexicon(*arguments)), json.loads(self.ok(lexicon(*arguments, "--json")))
        lines = dict(re.findall(r"^(\S+) {2,}(.*)$", text, re.M))
        self.assertEqual(numbers_in(lines["words"]), [report["words"]])
        self.assertEqual(numbers_in(lines["pairs"]), [report["pairs"]])
        self.assertEqual(numbers_in(lines["synonyms"])[0], report["words_with_synonyms"])
        self.assertAlmostEqual(numbers_in(lines["synonyms"])[1], report["mean_synonyms"], delta=0.00501)
        self.assertEqual(numbers_in(lines["components"]), [report["components"], *report["largest_components"]])
        self.assertEqual(lines["kernel"], f"{report['kernel']}: {report['kernel_rows']:,} distributions over at most "
                                          f"{report['largest_support']:,} words")
        self.assertEqual(lines["file"], f"{report['bytes']:,} bytes")
        self.assertEqual(re.findall(r"^sha256 +(.*)$", text, re.M), [report["sha256"], f"{report['data']['sha256']}, of the rows"])
        self.assertEqual((report["name"], report["sha256"]), ("v.lex", sha256_of("v.lex")))
        rows = [line.split("\t") for line in (temporary / "data.tsv").read_text().splitlines()]
        self.assertEqual((report["data"]["name"], report["data"]["sha256"]), ("data.tsv", sha256_of_rows(rows)))
        self.assertEqual(report["bytes"], (temporary / "v.lex").stat().st_size)
        data = report["data"]
        self.assertEqual(numbers_in(lines["texts"])[:2], [data["texts"], data["tokens"]])
        self.assertEqual(numbers_in(lines["texts"])[2:], [10000 * data[name] // data["tokens"] / 100 for name in ("known_tokens",
                                                                                                           "tokens_with_synonyms")])
        rows = [line.split() for line in text.split("above 1/2\n")[1].splitlines()]
        self.assertEqual([row[0] for row in rows], ["5", "10", "20", "all"])
        for row, product in zip(rows, data["products"]):
            self.assertEqual(row[0], str(product["radius"]))
            for printed, name in zip(row[1:8], ("min", "p5", "p25", "p50", "p75", "p95", "max")):
                self.assertLessEqual(fractions.Fraction(printed), fractions.Fraction(product[name]))
                self.assertAlmostEqual(float(printed), product[name], delta=0.0001)
            self.assertEqual(float(row[8].rstrip("%")), int(1000 * product["share_above_half"] + 1e-9) / 10)
        self.assertLess(data["products"][3]["min"], 1)
        self.assertNotIn("data", self.stats("v.lex"))
        self.assertEqual(self.ok(lexicon("stats", "v.lex")), text.split("\ntexts")[0])

    def test_survey(self):
        """stats: the products are those of the exported overlaps and the words of the texts"""
        overlap = {word: fractions.Fraction(columns[0]) for word, columns in self.table("v.lex", "overlap").items()}
        products = {5: [], math.inf: []}
        for line in (temporary / "data.tsv").read_text().splitlines():
            known = sorted(overlap[word] for word in re.findall("[a-z]+",
                                                                line.split("\t")[2].lower()) if word in overlap)
            for radius, values in products.items():
                values.append(math.prod(known[:int(min(radius, len(known)))], start=fractions.Fraction(1)))
        for radius, entry in zip((5, math.inf), (self.stats("v.lex", "--data",
                                                            "data.tsv")["data"]["products"][i] for i in (0, 3))):
            values = sorted(products[radius])
            self.assertEqual(entry["share_above_half"], sum(v > 0.5 for v in values) / len(values))
            for name, level in (("min", 0), ("p50", 0.5), ("max", 1)):
                exact = values[int(level * (len(values) - 1))]
                self.assertLess(abs(fractions.Fraction(entry[name]) - exact), fractions.Fraction(1, 10 ** 12))

    def test_show(self):
        """show: --json agrees with the text; --all lists all; any case is found"""
        synonyms = self.synonyms("v.lex")
        word = max(synonyms, key=lambda w: len(synonyms[w]))
        text, entry = self.ok(lexicon("show", "v.lex", word, "--all")), self.shown("v.lex", word)[word]
        self.assertEqual(text.splitlines()[0], f"{word}  seen {entry['count']:,} times")
        synonyms = text.split("synonyms  ")[1].split("\n")[0]
        self.assertEqual(synonyms,
                         f"{len(entry['synonyms'])}: " + ", ".join(f"{s['word']} {s['similarity']:.3f}" for s in entry["synonyms"]))
        similarities = [s["similarity"] for s in entry["synonyms"]]
        self.assertEqual(similarities, sorted(similarities, reverse=True))
        draws = text.split("draws     ")[1].split("\n")[0]
        count = len(entry["draws"])
        self.assertEqual(draws, f"from {count} words, 1/{count} each: " + ", ".join(d["word"] for d in entry["draws"]))
        printed, worst = re.search(r"s = (\S+), with the worst synonym: (\S+)\n", text).groups()
        self.assertEqual(worst, entry["worst"])
        self.assertLessEqual(fractions.Fraction(printed), fractions.Fraction(entry["overlap"]))
        self.assertAlmostEqual(float(printed), entry["overlap"], delta=1e-6)
        self.assertEqual(entry["overlap"], min(s["overlap"] for s in entry["synonyms"]))
        self.assertEqual(sum(d["weight"] for d in entry["draws"]), entry["total"])
        for draw in entry["draws"]:
            self.assertEqual(draw["probability"], draw["weight"] / entry["total"])
        self.assertEqual(self.shown("t.lex", "GOOD", "Film").keys(), {"good", "film"})

    def test_show_many(self):
        """show: the first 20 of many, all with --all"""
        write("many.tsv", "zero\t" + " ".join(word_of(i) for i in range(30)) + "\n")
        name, _ = self.lex("import", "--table", "many.tsv", "--kernel", "component")
        text, every = self.ok(lexicon("show", name, "zero")), self.ok(lexicon("show", name, "zero", "--all"))
        self.assertTrue(f"{word_of(19)}, ...\n" in text and word_of(20) not in text and "synonyms  30: " in text)
        self.assertTrue(word_of(29) in every and "..." not in every)

    def test_export(self):
        """export: --json holds the same as the text"""
        name, count = "v.lex", len(self.table("v.lex", "overlap"))
        for what in ("synonyms", "kernel", "overlap"):
            table = self.table(name, what)
            read = json.loads(self.ok(lexicon("export", name, "--what", what, "--json")),
                              parse_float=fractions.Fraction)
            self.assertEqual((list(read), len(read)), (list(table), count))
            for word, columns in table.items():
                if what == "synonyms":
                    self.assertEqual(" ".join(read[word]), columns[0])
                elif what == "kernel":
                    self.assertEqual([str(read[word]["total"]),
                                      " ".join(f"{z}:{w}" for z, w in read[word]["weights"].items())], columns)
                else:
                    self.assertEqual(read[word], fractions.Fraction(columns[0]))


# ------------------------------------------------------------------- lexicons

class Lexicons(Case):
    def check_overlaps(self, name):
        """Every printed overlap is at most the exact one, and next to it."""
        kernel, synonyms, overlap = self.kernel(name), self.synonyms(name), self.table(name, "overlap")
        self.assertEqual((set(kernel), set(overlap)), (set(synonyms), set(synonyms)))
        below = 0
        for word, others in synonyms.items():
            shares = [sum(min(p, kernel[other].get(z, 0)) for z, p in kernel[word].items()) for other in others]
            exact, printed = min(shares, default=fractions.Fraction(1)), fractions.Fraction(overlap[word][0])
            self.assertLessEqual(printed, exact, word)
            self.assertLess(exact - printed, fractions.Fraction(1, 10 ** 15), word)
            below += exact < 1
        return below, kernel, synonyms

    def test_export_tables(self):
        """export: a line for every word, weights that sum to the total, exact overlaps"""
        below, kernel, synonyms = self.check_overlaps("v.lex")
        self.assertEqual(len(kernel), self.stats("v.lex")["words"])
        self.assertGreater(below, 20)
        self.assertEqual(sum(map(len, synonyms.values())), 2 * self.stats("v.lex")["pairs"])
        for word, others in synonyms.items():
            self.assertNotIn(word, others)
            for other in others:
                self.assertIn(word, synonyms[other])

    def test_kernel_auto(self):
        """without --kernel: representative, and why nothing was tried; with labels what was tried; a pipe is not read twice"""
        name, report = self.lex("build", "--vectors", "v.txt", "--all-but-the-top", 1, "--threshold", 0.7)
        self.assertEqual((report["kernel"], report["kernel_choice"]["untried"]), ("representative", "there is no data"))
        explicit, report = self.lex("build", "--vectors", "v.txt", "--all-but-the-top", 1, "--threshold", 0.7, "--kernel", "representative")
        self.assertIsNone(report["kernel_choice"])
        self.assertEqual((temporary / name).read_bytes(), (temporary / explicit).read_bytes())
        rows = "".join(f"{n}\t{n % 2}\ta {'good' if n % 2 else 'bad'} film of the {n % 7}th kind\n" for n in range(400))
        write("two.tsv", rows)
        write("pairs.tsv", "good\tgreat\nbad\tawful\n")
        common = ("import", "--table", "pairs.tsv", "--min-count", 0)
        _, report = self.lex(*common, "--vocab-from", "two.tsv")
        self.assertEqual((report["kernel"], report["kernel_choice"]["held_out"], len(report["kernel_choice"]["trials"])), ("representative", 400, 2))
        text = self.ok(lexicon(*common, "--vocab-from", "two.tsv", "-o", "two.lex"))
        self.assertRegex(text, r"kernels tried on 400 texts, a fifth at a time, with n-grams that learned from the others\n  representative +100.00% .* chosen\n")
        _, report = self.lex(*common, "--vocab-from", write("one.tsv", rows.replace("\t0\t", "\t1\t")))
        self.assertEqual(report["kernel_choice"]["untried"], "the data has fewer than two classes")
        os.mkfifo(temporary / "pipe.tsv")
        writer = threading.Thread(target=(temporary / "pipe.tsv").write_text, args=(rows,))
        writer.start()
        _, report = self.lex(*common, "--vocab-from", "pipe.tsv")
        writer.join()
        self.assertIn("pipe", report["kernel_choice"]["untried"])
        self.refused(lexicon("import", "--table", "pairs.tsv", "--kernel", "best", "-o", "x.lex"), USAGE, "expected auto, topk:K")

    def test_arch_auto(self):
        """train without --arch: n-grams, and why; with vectors what was tried, the same for any number of threads, by the rule"""
        pairs, _ = self.lex("import", "--table", write("pairs2.tsv", "good\tgreat\nbad\tawful\n"), "--kernel", "representative")
        rows = "".join(f"{n}\t{n % 3 % 2}\t{'great good'.split()[n % 2] if n % 3 == 1 else 'bad'} {'x' * (n % 5 + 2)} film\n" for n in range(400))
        write("three.tsv", rows)
        write("three.txt", "".join(f"{w} {i % 3} {i % 5} 1\n" for i, w in enumerate(["good", "great", "bad", "awful", "film", *("x" * n for n in range(2, 7))])))
        common = ("--data", "three.tsv", "--epochs", 2, "--json", "-o", "a.st")

        def train(*arguments):
            return json.loads(self.ok(run("train", *common, *arguments)))

        for reason, arguments in (("there is no lexicon", ()), ("there are no word vectors", ("--lexicon", pairs)),
                                  ("draws delete words", ("--lexicon", pairs, "--vectors", "three.txt", "--delete", 0.5))):
            told = train(*arguments)
            self.assertEqual((told["arch"], told["arch_choice"]["untried"]), ("ngram", reason))
        self.assertIsNone(train("--arch", "ngram")["arch_choice"])
        told = train("--lexicon", pairs, "--vectors", "three.txt", "--threads", 1)
        trials, bytes_of_one = told["arch_choice"]["trials"], (temporary / "a.st").read_bytes()
        self.assertEqual([t["arch"] for t in trials], ["ngram", "bow", "cnn"])
        best = trials[0]
        for trial in trials[1:]:
            n, won = trial["won"] + trial["lost"], trial["won"]
            p = sum(math.comb(n, k) for k in range(won, n + 1)) / 2**n
            self.assertAlmostEqual(trial["p_value"], p, places=9)
            best = trial if p <= 0.05 else best
        self.assertEqual(told["arch"], best["arch"])
        again = train("--lexicon", pairs, "--vectors", "three.txt", "--threads", 3)
        self.assertEqual((temporary / "a.st").read_bytes(), bytes_of_one)
        untimed = [[{k: v for k, v in t.items() if k != "seconds"} for t in x["arch_choice"]["trials"]] for x in (told, again)]
        self.assertEqual(untimed[0], untimed[1])
        shown = json.loads(self.ok(run("model", "show", "a.st", "--json")))["trained_with"]["arch_choice"]
        self.assertEqual([t["arch"] for t in shown["trials"]], ["ngram", "bow", "cnn"])
        self.assertEqual(json.loads(self.ok(run("train", "--data", "three.tsv", "--seeds", 2, "--json", "-o", "a.json")))["seeds"], 2)
        for option in (("--defense", "exact"), ("--encoder", "nowhere"), ("--device", "cpu"), ("--resume",)):
            self.refused(run("train", *common, "--lexicon", pairs, *option), USAGE, option[0], "needs --arch")

    def test_diff(self):
        """words, pairs, cuts, kernels, protected words and folds that differ; 0 and 1"""
        one = self.lex("import", "--table", write("d1.tsv", "hot\twarm heated\nbig\tlarge\nthe\ton\n"), "--kernel", "component")[0]
        same = self.lex("import", "--table", write("d2.tsv", "large\tbig\nheated\thot\nwarm\thot\nthe\ton\n"), "--kernel", "component")[0]
        result = lexicon("diff", one, same)  # other numbers for the same words
        self.assertEqual((result.code, result.out), (DONE, "the same words, pairs, kernel, cuts, protected words and fold\n"))
        other = self.lex("import", "--table", write("d3.tsv", "hot\twarm\nbig\thuge\nthe\ton\n"), "--antonyms", write("d3.ant", "hot warm\n"),
                         "--kernel", "representative", "--protect", "none", "--fold", "case")[0]
        result = lexicon("diff", one, other, "--json")
        self.assertEqual(result.code, 1)
        found = json.loads(result.out)
        self.assertEqual((found["same"], found["first"]["words"], found["second"]["words"]), (False, ["heated", "large"], ["huge"]))
        self.assertEqual(found["first"]["pairs"], [["hot", "warm"], ["hot", "heated"], ["big", "large"]])
        self.assertEqual(found["second"]["pairs"], [["big", "huge"], ["the", "on"]])
        self.assertEqual((found["first"]["cuts"], found["second"]["cuts"]), ([], [["hot", "warm"]]))
        self.assertEqual((found["first"]["kernel"], found["second"]["fold"], found["second"]["protected"]), ("component", "case", []))
        self.assertEqual(found["drawn"], ["hot", "warm", "big", "on"])  # "the" draws itself in both
        result = lexicon("diff", one, other)
        for line in ("words       2 only in the first, 1 only in the second", "  - heated", "  + huge", "  + the on", "kernel      component and representative",
                     "drawn       4 words of both from other words", "fold        none and case"):
            self.assertIn(line + "\n", result.out)
        many = self.lex("import", "--table", write("d4.tsv", "".join(f"w{a}{b}\tv{a}{b}\n" for a in "abcde" for b in "abc")))[0]
        self.assertIn("... 20 more (--all)", lexicon("diff", many, one).out)
        self.assertNotIn("more (--all)", lexicon("diff", many, one, "--all").out)

    def test_filters(self):
        """pairs are left out by frequency, part of speech and rank; counted, listed, and said by diff"""
        for part, lines in (("noun", "film n 1\nreel n 1\nmovie n 1\n"), ("verb", "film v 1\n"), ("adj", "warm a 1\n"), ("adv", "")):
            write(f"wnf/index.{part}", lines)
            write(f"wnf/{part}.exc", "")
        write("f.tsv", "film\tmovie reel warm good\ngood\tgreat fine\n")
        write("f.seen", "1\tx\tgood good good film movie reel warm great fine fine\n")
        write("f.vec", "film 1 0\nmovie 0.9 0.1\nreel 0.5 0.5\nwarm 0 1\n")
        common = ("import", "--table", "f.tsv", "--kernel", "component", "--vocab-from", "f.seen", "--min-count", 1)
        plain, said = self.lex(*common)
        self.assertEqual((said["pairs"], said["filters"]), (6, {"frequent_words": 0, "for_frequency": 0, "for_speech": 0, "for_rank": 0}))
        name, said = self.lex(*common, "--max-frequency", 0.2, "--same-pos", "wnf", "--nearest", 1, "--vectors", "f.vec", "--dropped", "f.dropped")
        self.assertEqual((said["pairs"], said["filters"]), (1, {"frequent_words": 1, "for_frequency": 3, "for_speech": 1, "for_rank": 1}))
        self.assertEqual(self.ok(lexicon("export", name, "--what", "cuts")),
                         "film\treel\trank\nfilm\twarm\tpart of speech\nfilm\tgood\tfrequency\ngood\tgreat\tfrequency\ngood\tfine\tfrequency\n")
        self.assertEqual(len(json.loads(self.ok(lexicon("export", name, "--what", "cuts", "--json")))), 5)
        self.assertEqual((temporary / "f.dropped").read_text(), "good\tfrequent\n")
        self.assertEqual(json.loads(self.ok(lexicon("stats", name, "--json")))["provenance"]["filters"]["nearest"], 1)
        text = self.ok(lexicon(*common, "--max-frequency", 0.2, "--same-pos", "wnf", "--nearest", 1, "--vectors", "f.vec", "-o", "f.lex"))
        for line in ("1 word that is too frequent, with 3 pairs", "1 pair of no common part of speech",
                     "1 pair of words that are not among the nearest of each other"):
            self.assertIn(f"filtered    {line}\n", text)
        result = lexicon("diff", plain, name)
        self.assertIn("cuts        0 only in the first, 5 only in the second\n", result.out)
        self.refused(lexicon("import", "--table", "f.tsv", "--max-frequency", 0.1, "-o", "no.lex"), USAGE, "--vocab-from")
        self.refused(lexicon(*common, "--max-frequency", 1, "-o", "no.lex"), USAGE, "--max-frequency 1")
        self.refused(lexicon(*common, "--same-pos", "nowhere", "-o", "no.lex"), SYSTEM, "nowhere/index.noun")

    def test_other_encodings(self):
        """files that are UTF-16, no text, or without any word are told so; a byte-order mark of UTF-8 is none of a word"""
        for name, code in (("le.tsv", "utf-16-le"), ("bom.tsv", "utf-16"), ("four.tsv", "utf-32")):
            write(name, "hot\tcold\n".encode(code))
            write("fine.tsv", "hot\tcold\n")
            self.refused(lexicon("import", "--table", name, "-o", "no.lex"), INPUT, name, "save it as UTF-8")
            for option in ("--antonyms", "--exclude", "--protect", "--vocab"):
                self.refused(lexicon("import", "--table", "fine.tsv", option, name, "-o", "no.lex"), INPUT, name, "save it as UTF-8")
            self.refused(lexicon("build", "--vectors", name, "-o", "no.lex"), INPUT, name, "save it as UTF-8")
        _, said = self.lex("import", "--table", "fine.tsv", "--antonyms", write("mark.txt", "\ufeffhot cold\n"))
        self.assertEqual(said["cuts"]["antonyms"], 1)
        for name, content in (("comma.csv", "good,great\n"), ("list.json", "[[1]]"), ("none.json", "{}")):
            self.refused(lexicon("import", "--table", write(name, content), "-o", "no.lex"), INPUT, name, "no entry is a word")
        for part in ("noun", "verb", "adj", "adv"):
            write(f"wnx/data.{part}", "")
        self.refused(lexicon("import", "--wordnet", "wnx", "-o", "no.lex"), INPUT, "wnx", "hold no words")
        self.refused(lexicon("build", "--vectors", write("ragged.txt", "a 1 2\nb 1\n"), "-o", "no.lex"), INPUT, "1 number where 2 are")
        write("bytes.bin", b"a\0b\n")
        name, _ = self.lex("import", "--table", "fine.tsv")
        self.refused(lexicon("audit", name, "-o", "bytes.bin"), INPUT, "bytes.bin", "no list of pairs")
        self.assertEqual((temporary / "bytes.bin").read_bytes(), b"a\0b\n")  # as it was

    def test_audit(self):
        """doubtful pairs, the worst first; asked about one by one, what is refused goes into a file that --exclude takes"""
        (temporary / "wna").mkdir(exist_ok=True)
        write("wna/data.adj", "00000100 00 a 01 warm 0 001 ! 00000200 a 0101 | x\n00000200 00 a 01 cold 0 001 ! 00000100 a 0101 | y\n")
        write("wna/data.verb", "00000100 29 v 01 run 0 000 | z\n")
        write("wna/data.noun", "00000100 29 n 02 reel 0 film 0 000 | z\n")
        write("wna/data.adv", "")
        write("a.vec", "warm 1 0\ncold 0.99 0.1\nheated 0.9 0.4\nfilm 0.1 1\nmovie 0 1\nthe 0.5 0.5\n")
        write("a.tsv", "warm\tcold heated film\nfilm\tmovie\nthe\tmovie\n")
        common = ("import", "--table", "a.tsv", "--vectors", "a.vec", "--protect", "none")
        name, _ = self.lex(*common)
        found = json.loads(self.ok(lexicon("audit", name, "--wordnet", "wna", "--distant", 0.5, "--json")))
        self.assertEqual([(pair["word"], pair["synonym"], pair["doubts"]) for pair in found["list"]],
                         [("movie", "the", ["function word"]), ("warm", "cold", ["antonyms"]), ("warm", "film", ["part of speech", "distant"])])
        self.assertEqual((found["pairs"], found["doubtful"], found["counts"]["distant"]), (5, 3, 1))
        self.assertAlmostEqual(found["list"][2]["similarity"], 0.1 / math.sqrt(1.01), delta=1e-6)
        self.assertEqual(self.ok(lexicon("audit", name, "--distant", 0.5, "--antonyms", write("a.ant", "cold warm\n"))).splitlines(),
                         ["movie\tthe\t0.7071\tfunction word", "warm\tcold\t0.9949\tantonyms", "warm\tfilm\t0.0995\tdistant"])
        answers = subprocess.run([program, "lexicon", "audit", name, "--wordnet", "wna", "--distant", "0.5", "-o", "refused.txt"], cwd=temporary,
                                 input="y\nwhat\nn\n", capture_output=True, text=True, timeout=60)
        self.assertEqual((answers.returncode, (temporary / "refused.txt").read_text()), (DONE, "warm cold\n"))
        self.assertRegex(answers.stdout, r"kept +1 pair\nrefused +1 pair\n")
        again = subprocess.run([program, "lexicon", "audit", name, "--wordnet", "wna", "--distant", "0.5", "-o", "refused.txt"], cwd=temporary,
                               input="y\nn\n", capture_output=True, text=True, timeout=60)
        self.assertNotIn("warm  cold", again.stderr)
        self.assertEqual((temporary / "refused.txt").read_text(), "warm cold\nwarm film\n")
        fewer, report = self.lex(*common, "--exclude", "refused.txt")
        self.assertEqual((report["excluded_pairs"], self.synonyms(fewer)["warm"]), (2, {"heated"}))
        self.refused(lexicon("audit", name, "-o", "x", "--json"), USAGE, "--json")
        asking = [program, "lexicon", "audit", name, "--wordnet", "wna", "--distant", "0.5", "--quiet", "-o"]
        listed = (temporary / "refused.txt").read_text()
        (temporary / "link.txt").symlink_to("mine.txt")  # what links lead to is written, with the permissions that it has
        write("mine.txt", "one two")
        (temporary / "mine.txt").chmod(0o600)
        subprocess.run([*asking, "link.txt"], cwd=temporary, input="n\nq\n", capture_output=True, text=True, check=True)
        self.assertTrue((temporary / "link.txt").is_symlink())
        self.assertEqual(((temporary / "mine.txt").read_text().splitlines()[0], len((temporary / "mine.txt").read_text().splitlines())), ("one two", 2))
        self.assertEqual((temporary / "mine.txt").stat().st_mode & 0o777, 0o600)
        for path, content, words in (("nul.txt", "one two\0three four\n", "NUL character"), (".", None, "cannot read")):
            if content:
                write(path, content)
            done = subprocess.run([*asking, path], cwd=temporary, input="n\nq\n", capture_output=True, text=True)
            self.assertEqual(done.returncode, INPUT if content else SYSTEM, done.stderr)
            self.assertIn(words, done.stderr)
            if content:
                self.assertEqual((temporary / path).read_text(), content)  # not cut at the character
        os.mkfifo(temporary / "asked.pipe")
        reader = subprocess.Popen(["cat", "asked.pipe"], cwd=temporary, stdout=subprocess.PIPE, text=True)
        subprocess.run([*asking, "asked.pipe"], cwd=temporary, input="n\nq\n", capture_output=True, text=True, check=True, timeout=60)
        self.assertEqual(len(reader.communicate(timeout=60)[0].splitlines()), 1)
        self.assertTrue((temporary / "asked.pipe").is_fifo())  # written to, not replaced
        self.assertEqual((temporary / "refused.txt").read_text(), listed)
        self.refused(lexicon("audit", name, "--wordnet", "nowhere"), SYSTEM, "nowhere/data.noun")

    def test_overlaps_of_all_kernels(self):
        """overlaps recomputed with fractions for topk of many K, component, representative"""
        for kernel in ("topk:1", "topk:3", "topk:7", "topk:30", "component", "representative"):
            name, _ = self.lex("build", "--vectors", "v.txt", "--all-but-the-top", 1, "--threshold", 0.7,
                               "--vocab-from", "data.tsv",
                               "--kernel", kernel)
            below = self.check_overlaps(name)[0]
            self.assertEqual(below > 0, kernel.startswith("topk"), (kernel, below))

    def test_synonyms_and_topk(self):
        """build: synonyms are the pairs at the threshold, topk the nearest in the component"""
        threshold, k = 0.75, 6
        name, _ = self.lex("build", "--vectors", "v.txt", "--all-but-the-top", 0, "--threshold", threshold, "--kernel",
                           f"topk:{k}")
        unit = {word: [x / math.sqrt(sum(y * y for y in row)) for x in row] for word, row in vectors.items()}
        words = list(unit)
        cosine = {a: {b: sum(map(lambda x, y: x * y, unit[a], unit[b])) for b in words} for a in words}
        synonyms, kernel = self.synonyms(name), self.kernel(name)
        for a in words:
            near = {b: c for b, c in cosine[a].items() if b != a}
            self.assertFalse([c for c in near.values() if abs(c - threshold) < 1e-6], "the data has a borderline pair")
            self.assertEqual(synonyms[a], {b for b, c in near.items() if c >= threshold})
        sizes = set()
        for word, members in components(synonyms).items():
            sizes.add(len(members) > k)
            ranked = sorted(members - {word}, key=lambda other: -cosine[word][other])
            expected = {word, *ranked[:k - 1]}
            self.assertEqual(kernel[word], {z: fractions.Fraction(1, len(expected)) for z in expected})
        self.assertEqual(sizes, {False, True})
        for entry in self.shown(name, *words[:20]).values():
            for synonym in entry["synonyms"]:
                self.assertAlmostEqual(synonym["similarity"], cosine[entry["word"]][synonym["word"]], delta=1e-6)

    def test_component_and_representative(self):
        """component: uniform on all; representative: the most frequent, everywhere the same"""
        arguments = ("--vectors", "v.txt", "--all-but-the-top", 2, "--threshold", 0.75, "--vocab-from", "data.tsv")
        name, _ = self.lex("build", *arguments, "--kernel", "component")
        whole = components(self.synonyms(name))
        for word, row in self.kernel(name).items():
            self.assertEqual(row, {z: fractions.Fraction(1, len(whole[word])) for z in whole[word]})
        name, _ = self.lex("build", *arguments, "--kernel", "representative")
        entries = self.shown(name, *whole)
        kernel = self.kernel(name)
        for word, row in kernel.items():
            (chosen, weight), = row.items()
            self.assertEqual((weight, entries[word]["overlap"]), (1, 1))
            self.assertIn(chosen, whole[word])
            self.assertEqual(entries[chosen]["count"], max(entries[z]["count"] for z in whole[word]))
            self.assertEqual([kernel[z] for z in whole[word]], [row] * len(whole[word]))

    def test_graph_distance(self):
        """import without vectors: topk takes the nearest by graph distance, ties by order"""
        write("chain.tsv", "alpha\tbeta\nbeta\tgamma\ngamma\tdelta\ndelta\tepsilon\n")
        name, _ = self.lex("import", "--table", "chain.tsv", "--kernel", "topk:3")
        self.assertEqual({word: set(row) for word, row in self.kernel(name).items()}, {
            "alpha": {"alpha", "beta", "gamma"}, "beta": {"alpha", "beta", "gamma"},
            "gamma": {"beta", "gamma", "delta"},
            "delta": {"gamma", "delta", "epsilon"}, "epsilon": {"gamma", "delta", "epsilon"}})
        beta, gamma = self.shown(name, "beta", "gamma").values()
        self.assertEqual((beta["worst"], gamma["worst"], self.stats(name)["largest_support"]), ("gamma", "beta", 3))
        self.assertLessEqual(fractions.Fraction(beta["overlap"]), fractions.Fraction(2, 3))
        self.assertGreater(math.nextafter(beta["overlap"], 1), fractions.Fraction(2, 3))

    def test_import_ranked_by_vectors(self):
        """import with vectors: topk takes the nearest by cosine"""
        write("star.tsv", "hub\taa bb cc\n")
        write("star.vec", "hub 1 0\naa 0 1\nbb 1 1\ncc 3 1\nother 5 5\n")
        name, report = self.lex("import", "--table", "star.tsv", "--vectors", "star.vec", "--kernel", "topk:2")
        self.assertEqual({word: set(row) for word, row in self.kernel(name).items()},
                         {"hub": {"hub", "cc"}, "aa": {"aa", "bb"}, "bb": {"bb", "cc"}, "cc": {"cc", "hub"}})
        self.assertEqual((report["listed"], report["vectors"]["rows"]), (4, 5))

    def test_round_trip(self):
        """importing the exported synonyms, text or JSON, gives the same synonyms"""
        expected = self.synonyms("v.lex")
        for flags in ((), ("--json",)):
            write("exported", self.ok(lexicon("export", "v.lex", "--what", "synonyms", *flags)))
            name, report = self.lex("import", "--table", "exported", "--kernel", "component")
            self.assertEqual(self.synonyms(name), expected)
            self.assertEqual((report["symmetrised"], report["pairs"]), (0, self.stats("v.lex")["pairs"]))

    def test_directed(self):
        """import: one-way pairs count both ways, or one way with --directed"""
        write("oneway.tsv", "poor\tpenniless bad\nbad\tpoor\n")
        name, report = self.lex("import", "--table", "oneway.tsv", "--kernel", "component")
        self.assertEqual(self.synonyms(name), {"poor": {"penniless", "bad"}, "penniless": {"poor"}, "bad": {"poor"}})
        self.assertEqual((report["symmetrised"], report["pairs"]), (1, 2))
        name, report = self.lex("import", "--table", "oneway.tsv", "--kernel", "component", "--directed")
        self.assertEqual(self.synonyms(name), {"poor": {"penniless", "bad"}, "penniless": set(), "bad": {"poor"}})
        self.assertEqual((report["symmetrised"], report["pairs"]), (0, 3))

    def test_exclude_and_protect(self):
        """--exclude drops words and pairs, --protect keeps words from being substituted"""
        write("exclude.txt", "Penniless\nfilm movie\nunknown\n")
        name, report = self.lex("import", "--table", "table.tsv", "--kernel", "component", "--exclude", "exclude.txt")
        synonyms = self.synonyms(name)
        self.assertEqual((synonyms["penniless"], synonyms["poor"], synonyms["film"], synonyms["movie"]),
                         (set(), {"bad"}, {"picture"}, set()))
        self.assertEqual((report["excluded_pairs"], report["pairs"]), (2, 5))
        self.assertEqual(self.kernel(name)["penniless"], {"penniless": 1})
        write("protect.txt", "GREAT\nbad\n")
        name, report = self.lex("import", "--table", "table.tsv", "--kernel", "component", "--protect", "protect.txt")
        synonyms = self.synonyms(name)
        self.assertEqual((synonyms["great"], synonyms["bad"], synonyms["good"], synonyms["awful"]),
                         (set(), set(), {"fine"}, set()))
        self.assertEqual((report["protected_words"], report["pairs"]), (2, 4))
        self.assertEqual(self.kernel(name)["great"], {"great": 1})
        name, _ = self.lex("import", "--table", "table.tsv", "--directed", "--kernel", "component", "--protect",
                           "protect.txt")
        synonyms = self.synonyms(name)  # one way, a protected word may still replace others
        self.assertEqual((synonyms["good"], synonyms["great"], synonyms["bad"]), ({"great", "fine"}, set(), set()))
        first = next(word for word, others in self.synonyms("v.lex").items() if others)
        write("exclude.txt", first + "\n")
        name, _ = self.lex("build", "--vectors", "v.txt", "--all-but-the-top", 2, "--threshold", 0.75, "--exclude",
                           "exclude.txt")
        self.assertEqual((self.synonyms(name)[first], self.kernel(name)[first]), (set(), {first: 1}))

    def test_vocabulary(self):
        """--vocab, --vocab-from and --min-count decide which words there are"""
        write("vocab.txt", "GOOD\nfine\nfilm\n\nmovie\nelsewhere\n")
        name, _ = self.lex("import", "--table", "table.tsv", "--vocab", "vocab.txt")
        self.assertEqual(self.synonyms(name), {"good": {"fine"}, "fine": {"good"}, "film": {"movie"},
                                               "movie": {"film"}})
        name, report = self.lex("import", "--table", "table.tsv", "--vocab-from", "reviews.tsv", "--min-count", 1)
        self.assertEqual(set(self.synonyms(name)), {"good", "great", "film", "movie", "picture", "bad", "awful"})
        self.assertEqual((report["texts"], report["tokens"]), (2, 13))
        self.assertEqual(self.counts(name, "good", "awful", "great"), {"good": 2, "awful": 2, "great": 1})
        name, _ = self.lex("import", "--table", "table.tsv", "--vocab-from", "reviews.tsv")
        self.assertEqual(set(self.synonyms(name)), {"good", "film", "awful"})
        name, report = self.lex("import", "--table", "table.tsv", "--vocab-from", "reviews.tsv", "--vocab-from",
                                "reviews.tsv")
        self.assertEqual(self.counts(name, "good", "great"), {"good": 4, "great": 2})
        self.assertEqual((report["texts"], report["tokens"]), (4, 26))

    def test_words(self):
        """words with accents, apostrophes, other scripts and emoji around them are counted"""
        write("world.tsv", "naïve\tsimple\ndon't\tcannot\nrock'n'roll\tmusic\nпривет\tздравствуй\n😀\thappy\n映画\t電影\n"
                           "cafe\u0301\tbar\n")
        write("world.data.tsv", "1\t0\tNAÏVE Naïve naïve, simple\n2\t0\tDON'T don’t Don't; 'cannot' cannot'\n"
                                "3\t1\tRock'n'Roll rock’n’roll music42music\n4\t1\tПРИВЕТ, привет! Здравствуй\n"
                                "5\t1\t😀happy😀 happy\u200dhappy 映画 電影\n")
        name, report = self.lex("import", "--table", "world.tsv", "--vocab-from", "world.data.tsv", "--min-count", 1, "--protect", "none")
        counts = self.counts(name, "naïve", "simple", "don't", "cannot", "rock'n'roll", "music", "привет", "здравствуй",
                             "happy", "映画", "電影")
        self.assertEqual(counts, {"naïve": 3, "simple": 1, "don't": 3, "cannot": 2, "rock'n'roll": 2, "music": 2,
                                  "привет": 2,
                                  "здравствуй": 1, "happy": 3, "映画": 1, "電影": 1})
        self.assertEqual(report["table_phrases"], 2)  # the emoji, and the accent that is a character of its own
        synonyms = self.synonyms(name)
        self.assertEqual((synonyms["naïve"], synonyms["don't"], synonyms["привет"], synonyms["映画"], synonyms["happy"]),
                         ({"simple"}, {"cannot"}, {"здравствуй"}, {"電影"}, set()))
        for typed in ("DON’T", "Naïve", "ПРИВЕТ", "ROCK'N'ROLL"):
            self.assertIn("synonyms  1: ", self.ok(lexicon("show", name, typed)))

    def test_refusals(self):
        """words that do not survive a change of case are refused and counted"""
        write("refused.tsv", "a\ti\nλόγος\tλέξη\ngood\t好\nfine\tgood\n")
        name, report = self.lex("import", "--table", "refused.tsv")
        synonyms = self.synonyms(name)
        self.assertEqual((synonyms["a"], synonyms["λόγος"], synonyms["good"]), (set(), set(), {"fine"}))
        self.assertEqual((report["refused_words"], report["refused_pairs"], report["pairs"]),
                         (3, 3, 1))  # a, i, λόγος; good/好

    def test_threads(self):
        """the same bytes for 1, 2 and 5 threads"""
        write("fit.syn", "".join(f"{word_of(i)} {word_of(i + 20)}\n" for i in range(0, 200, 3)))
        write("fit.ant", "".join(f"{word_of(i)} {word_of(i + 1)}\n" for i in range(0, 200, 7)))
        for arguments in (("build", "--vectors", "v.txt", "--synonyms", "fit.syn", "--antonyms", "fit.ant",
                           "--all-but-the-top", 3,
                           "--threshold", 0.6, "--vocab-from", "data.tsv", "--kernel", "topk:9"),
                          ("import", "--table", "exported.tsv", "--vectors", "v.txt", "--vocab-from", "data.tsv",
                           "--kernel", "topk:5")):
            write("exported.tsv", self.ok(lexicon("export", "v.lex", "--what", "synonyms")))
            images = set()
            for threads in (1, 2, 5):
                self.ok(lexicon(*arguments, "--threads", threads, "-o", "threads.lex"))
                images.add((temporary / "threads.lex").read_bytes())
            self.assertEqual(len(images), 1)
        surveys = {self.ok(lexicon("stats", "v.lex", "--data", "data.tsv", "--json", "--threads",
                                   threads)) for threads in (1, 2, 5)}
        self.assertEqual(len(surveys), 1)

    def test_counterfitting(self):
        """constraints move pairs: synonyms closer, antonyms apart; 0 steps move nothing"""
        synonyms = self.synonyms("v.lex")
        first = next(word for word in synonyms if synonyms[word])
        friend, stranger = sorted(synonyms[first])[0], next(word for word in synonyms if word not in synonyms[first] | {first})
        write("apart", f"{first} {friend}\n")
        write("together", f"{first} {stranger}\n")
        arguments = ("--vectors", "v.txt", "--all-but-the-top", 2, "--threshold", 0.75, "--vocab-from", "data.tsv",
                     "--synonyms", "together",
                     "--antonyms", "apart", "--keep-antonyms")
        name, report = self.lex("build", *arguments)
        fitted = self.synonyms(name)
        self.assertTrue(stranger in fitted[first] and friend not in fitted[first])
        self.assertEqual((report["counterfit"]["attract"], report["counterfit"]["repel"]), (1, 1))
        name, _ = self.lex("build", *arguments, "--counterfit", 0)
        self.assertEqual(self.synonyms(name), synonyms)

    def test_metric(self):
        """--metric dot leaves the lengths as all-but-the-top leaves them"""
        name, _ = self.lex("build", "--vectors", "v.txt", "--all-but-the-top", 4, "--threshold", 0.3, "--metric", "dot")
        other, _ = self.lex("build", "--vectors", "v.txt", "--all-but-the-top", 4, "--threshold", 0.3)
        self.assertNotEqual(self.synonyms(name), self.synonyms(other))
        similarity = [s["similarity"] for entry in self.shown(name, *vectors).values() for s in entry["synonyms"]]
        self.assertTrue(similarity and min(similarity) >= 0.3)

    def test_provenance(self):
        """stats --json tells how a lexicon was made, and of which files"""
        made = self.stats("v.lex")["provenance"]
        self.assertEqual((made["made"], made["threshold"], made["all_but_the_top"], made["metric"], made["counterfit"],
                          made["min_count"]),
                         ("build", 0.75, 2, "cosine", 0, 2))
        files = {entry["role"]: entry for entry in made["files"]}
        self.assertEqual((files["vectors"]["name"], files["vectors"]["bytes"]),
                         ("v.txt", (temporary / "v.txt").stat().st_size))
        self.assertEqual(files["vocab-from"]["name"], "data.tsv")
        self.assertEqual(files["vectors"]["sha256"], sha256_of("v.txt"))
        self.assertNotIn(str(temporary), json.dumps(made))


# --------------------------------------------------------------------- inputs

class Inputs(Case):
    def test_compressed(self):
        """gzip, xz and bzip2 are read like the plain file: vectors, tables, data, lists"""
        arguments = ("--all-but-the-top", 2, "--threshold", 0.75)
        expected = self.synonyms(self.lex("build", "--vectors", "v.txt", "--vocab-from", "data.tsv", *arguments)[0])
        for ending, compress in (("gz", gzip.compress), ("xz", lzma.compress), ("bz2", bz2.compress)):
            for name in ("v.txt", "data.tsv", "table.tsv"):
                write(f"{name}.{ending}", compress((temporary / name).read_bytes()))
            name, report = self.lex("build", "--vectors", f"v.txt.{ending}", "--vocab-from", f"data.tsv.{ending}",
                                    *arguments)
            self.assertEqual((self.synonyms(name), report["texts"]), (expected, 300))
            self.assertEqual(self.stats("v.lex", "--data", f"data.tsv.{ending}")["data"],
                             {**self.stats("v.lex", "--data", "data.tsv")["data"], "name": f"data.tsv.{ending}"})
            name, _ = self.lex("import", "--table", f"table.tsv.{ending}", "--kernel", "component")
            self.assertEqual(self.synonyms(name), self.synonyms("t.lex"))
            write("cut." + ending, compress((temporary / "v.txt").read_bytes())[:-20])
            self.refused(lexicon("build", "--vectors", "cut." + ending, "-o", "no.lex"), INPUT, "cut." + ending)

    def test_archives(self):
        """members of zip and tar archives are read as ARCHIVE:MEMBER"""
        vectors_, table = ((temporary / name).read_bytes() for name in ("v.txt", "table.tsv"))
        with zipfile.ZipFile(temporary / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("v.txt", vectors_)
            archive.writestr("inner/table.tsv", table)
        with tarfile.open(temporary / "a.tar.gz", "w:gz") as archive:
            for name, content in (("v.txt", vectors_), ("inner/table.tsv", table)):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        with zipfile.ZipFile(temporary / "one.zip", "w") as archive:
            archive.writestr("anything", table)
        arguments = ("--all-but-the-top", 2, "--threshold", 0.75)
        expected = self.synonyms(self.lex("build", "--vectors", "v.txt", *arguments)[0])
        for archive in ("a.zip", "a.tar.gz"):
            self.assertEqual(self.synonyms(self.lex("build", "--vectors", f"{archive}:v.txt", *arguments)[0]), expected)
            self.assertEqual(self.synonyms(self.lex("import", "--table", f"{archive}:inner/table.tsv")[0]),
                             self.synonyms("t.lex"))
            self.refused(lexicon("build", "--vectors", archive, "-o", "no.lex"), INPUT, archive, "v.txt",
                         "inner/table.tsv")
            self.refused(lexicon("build", "--vectors", f"{archive}:absent", "-o", "no.lex"), INPUT, archive, "absent",
                         "inner/table.tsv")
        self.assertEqual(self.synonyms(self.lex("import", "--table", "one.zip")[0]), self.synonyms("t.lex"))
        self.refused(lexicon("build", "--vectors", "v.txt:v.txt", "-o", "no.lex"), INPUT, "v.txt", "not an archive")

    def test_vector_formats(self):
        """word2vec binary, with and without line ends, and text with a header: the same lexicon"""
        arguments = ("--all-but-the-top", 2, "--threshold", 0.75, "--kernel", "topk:8")
        name, report = self.lex("build", "--vectors", "v.txt", *arguments)
        expected = self.synonyms(name), self.kernel(name)
        header = f"{WORDS} {DIM}\n".encode()
        rows = [(word.encode(), struct.pack(f"<{DIM}f", *row)) for word, row in vectors.items()]
        write("v.bin", header + b"".join(word + b" " + row for word, row in rows))
        write("v.bin2", header + b"".join(word + b" " + row + b"\n" for word, row in rows))
        write("v.head", header + (temporary / "v.txt").read_bytes())
        write("v.tabs", (temporary / "v.txt").read_bytes().replace(b" ", b"\t").replace(b"\n", b"\r\n"))
        for file in ("v.bin", "v.bin2", "v.head", "v.tabs"):
            name, other = self.lex("build", "--vectors", file, *arguments)
            self.assertEqual((self.synonyms(name), self.kernel(name)), expected, file)
            self.assertEqual((other["vectors"], other["listed"]), (report["vectors"], report["listed"]))

    def test_vector_rows_set_aside(self):
        """duplicates, phrases and zero vectors are set aside and counted"""
        write("messy.vec", "Good 9 9\ngood 1 2\nGOOD 5 5\nnew york 1 2\nnothing 0 0\nfine 1 2.1\n")
        name, report = self.lex("build", "--vectors", "messy.vec", "--all-but-the-top", 0)
        self.assertEqual(report["vectors"], {"rows": 6, "dim": 2, "duplicates": 2, "unusable": 1, "zeros": 1})
        self.assertEqual((report["listed"], set(self.synonyms(name))), (2, {"good", "fine"}))
        entry, = self.shown(name, "good")["good"]["synonyms"]
        expected = (1 + 2 * 2.1) / math.sqrt(5 * (1 + 2.1 * 2.1))  # the row that is in lower case counts
        self.assertAlmostEqual(entry["similarity"], expected, delta=1e-6)

    def test_build_with_wordnet(self):
        """WordNet's synonyms pull vectors together, its antonyms push them apart and share no component; without the words of neither"""
        (temporary / "wnb").mkdir(exist_ok=True)
        write("wnb/data.adj", "00000100 00 a 02 warm 0 heated 0 001 ! 00000200 a 0101 | x\n00000200 00 a 01 cold 0 001 ! 00000100 a 0101 | y\n")
        for part in ("noun", "verb", "adv"):
            write("wnb/data." + part, "")
        write("wnb.vec", "warm 1 0 0.1\nheated 0.4 0.9 0\ncold 0.98 0 0.2\nchilly 0.97 0.05 0.2\nzzz 0 0 1\nfilm 0 1 1\n")
        data = write("wnb.tsv", "1\ta\twarm cold chilly film film\n2\tb\twarm cold chilly film heated heated\n")
        common = ("build", "--vectors", "wnb.vec", "--all-but-the-top", 0, "--vocab-from", data, "--threshold", 0.9, "--kernel", "component")
        name, report = self.lex(*common, "--dropped", "wnb.dropped", "--wordnet", "wnb")
        self.assertEqual(report["counterfit"], {"attract": 1, "repel": 1, "preserved": report["counterfit"]["preserved"]})
        self.assertEqual((report["listed"], report["cuts"]["antonyms"]), (5, 1))  # zzz is in neither
        self.assertIn("zzz\trare\n", (temporary / "wnb.dropped").read_text())
        self.assertNotIn("cold", self.synonyms(name).get("warm", ()))
        self.assertIn("heated", self.synonyms(name)["warm"])
        plain, _ = self.lex(*common)
        self.assertIn("cold", self.synonyms(plain)["warm"])
        write("wnb.syn", "warm heated\n")  # the same as pairs: the same lexicon, but for what it says of its files
        write("wnb.ant", "cold warm\n")
        pairs, other = self.lex(*common, "--synonyms", "wnb.syn", "--antonyms", "wnb.ant", "--vocab", write("wnb.words", "warm\nheated\ncold\nchilly\nfilm\n"))
        self.assertEqual((self.synonyms(pairs), other["counterfit"]), (self.synonyms(name), report["counterfit"]))
        self.refused(lexicon("import", "--wordnet", "wnb", "--keep-antonyms", "-o", "no.lex"), USAGE, "--keep-antonyms")
        self.ok(lexicon(*common, "--wordnet", "wnb", "--keep-antonyms", "-o", "kept.lex"))

    def test_wordnet_files(self):
        """WordNet's files: synsets, hexadecimal counts, markers, phrases, the licence"""
        (temporary / "wn").mkdir(exist_ok=True)
        write("wn/data.noun", "  1 This is the licence\n00001740 03 n 03 car 0 Auto 0 motor_car 0 000 | a vehicle\n")
        write("wn/data.verb", "00001740 29 v 02 run 0 operate 0 000 | go\n")
        write("wn/data.adj", "00001740 00 a 02 galore(ip) 0 aplenty 0 000 | many\n")
        write("wn/data.adv", "00001740 02 r 0a a_a 0 bb 0 cc 0 dd 0 ee 0 ff 0 gg 0 hh 0 ii 0 jj 0 000 | ten\n")
        name, report = self.lex("import", "--wordnet", "wn", "--kernel", "component")
        synonyms = self.synonyms(name)
        self.assertEqual((synonyms["car"], synonyms["run"], synonyms["galore"], len(synonyms["bb"])),
                         ({"auto"}, {"operate"}, {"aplenty"}, 8))
        self.assertEqual((report["table_phrases"], report["pairs"]), (2, 39))
        write("wn/data.adv", "00001740 02 r zz bad\n")
        self.refused(lexicon("import", "--wordnet", "wn", "-o", "no.lex"), INPUT, "wn/data.adv", "line 1")
        (temporary / "wn/data.adv").unlink()
        self.refused(lexicon("import", "--wordnet", "wn", "-o", "no.lex"), SYSTEM, "wn/data.adv")

    def test_wordnet(self):
        """WordNet itself, where it is installed"""
        if not (WORDNET / "data.noun").exists():
            self.skipTest(f"WordNet is not in {WORDNET}")
        name, report = self.lex("import", "--wordnet", WORDNET, "--kernel", "component")
        self.assertGreater(report["words"], 50000)
        self.assertGreater(report["pairs"], 50000)
        self.assertLessEqual({"auto", "automobile", "motorcar"}, self.synonyms(name)["car"])
        limited, _ = self.lex("import", "--wordnet", WORDNET, "--vocab-from", "reviews.tsv", "--min-count", 1)
        self.assertIn("movie", self.synonyms(limited)["film"])
        self.assertNotIn("automobile", self.synonyms(limited))

    def test_data_formats(self):
        """TSV, CSV, Zhang's CSV, JSON Lines, fastText and folders hold the same texts"""
        texts = [("pos", "A good film,\nsaid \"Ann\""), ("neg", "bad\tand poor"), ("pos", "fine")]
        files = {
            "f.tsv": "".join("%d\t%s\t%s\n" % (i, label, text.replace("\n", "\\n").replace("\t", "\\t")) for i,
                             (label, text) in enumerate(texts)),
            "f.csv": "id,Sentiment,Review\n" + "".join('%d,%s,"%s"\n' % (i, label, text.replace('"', '""')) for i,
                                                       (label, text) in enumerate(texts)),
            "zhang.csv": "".join('"%d","%s"\n' % (1 + (label == "pos"), text.replace('"', '""').replace("\n", "\\n"))
                                 for label, text in texts),
            "f.jsonl": "".join(json.dumps({"text": text, "label": label}) + "\n" for label, text in texts),
            "f.txt": "".join(f"__label__{label} {text}\n".replace("\n", " ").rstrip() + "\n" for label, text in texts),
        }
        for i, (label, text) in enumerate(texts):
            write(f"f/{label}/{i}.txt", text)
        for name, content in files.items():
            write(name, content)
        expected = {"texts": 3, "tokens": 9, "known_tokens": 5}
        for name in (*files, "f"):
            data = self.stats("t.lex", "--data", name, "--quiet")["data"]
            self.assertEqual({key: data[key] for key in expected}, expected, name)

    def test_line_breaks(self):
        """<br /> is a space in folders, and elsewhere with --strip-br"""
        write("breaks/pos/0.txt", "good<br />film")
        self.assertEqual(self.stats("t.lex", "--data", "breaks")["data"]["tokens"], 2)
        write("breaks.tsv", "1\tpos\tgood<br />film\n")
        self.assertEqual(self.stats("t.lex", "--data", "breaks.tsv")["data"]["tokens"], 3)  # good, br, film
        self.assertEqual(self.stats("t.lex", "--data", "breaks.tsv", "--strip-br")["data"]["tokens"], 2)

    def test_format(self):
        """--format decides where the name does not, and against it"""
        write("plain.dat", "1\tpos\tgood film\n")
        write("looks.csv", "1\tpos\tgood, film\n")
        self.assertEqual(self.stats("t.lex", "--data", "plain.dat")["data"]["known_tokens"], 2)
        self.refused(lexicon("stats", "t.lex", "--data", "plain.dat", "--format", "jsonl"), INPUT, "plain.dat",
                     "line 1")
        self.assertEqual(self.stats("t.lex", "--data", "looks.csv", "--format", "tsv")["data"]["known_tokens"], 2)
        write("some.txt", "good film\n__label__x fine\n")
        self.refused(lexicon("stats", "t.lex", "--data", "some.txt"), INPUT, "some.txt", "--format")
        self.assertEqual(self.stats("t.lex", "--data", "some.txt", "--format", "fasttext")["data"]["known_tokens"], 3)

    def test_samples(self):
        """--sample every:N within each class, random:N by seed, --limit after both"""
        # Text i has 2^i words, so that the number of words says which texts were taken.
        labels = "aaaabbabba"
        write("powers.tsv", "".join(f"{i}\t{label}\t{'good ' * 2 ** i}\n" for i, label in enumerate(labels)))

        def taken(*arguments):
            data = self.stats("t.lex", "--data", "powers.tsv", *arguments)["data"]
            rows = {i for i in range(len(labels)) if data["tokens"] >> i & 1}
            self.assertEqual(data["texts"], len(rows))
            return rows

        everything = set(range(len(labels)))
        self.assertEqual(taken(), everything)
        self.assertEqual(taken("--limit", 0), everything)
        self.assertEqual(taken("--limit", 3), {0, 1, 2})
        self.assertEqual(taken("--limit", 99), everything)
        self.assertEqual(taken("--sample", "every:1"), everything)
        self.assertEqual(taken("--sample", "every:3"), {0, 3, 4, 8})  # of a: 0 and 3, of b: 4 and 8
        self.assertEqual(taken("--sample", "every:2", "--limit", 5), {0, 2, 4, 6, 7})
        draws = [taken("--sample", "random:4", "--seed", seed) for seed in range(8)]
        self.assertEqual({len(draw) for draw in draws}, {4})
        self.assertGreater(len(set(map(frozenset, draws))), 3)
        self.assertEqual(taken("--sample", "random:4"), draws[1])  # the default seed
        self.assertEqual(taken("--sample", "random:99"), everything)
        self.assertEqual(taken("--sample", "random:4", "--limit", 2), set(sorted(draws[1])[:2]))


# ---------------------------------------------------------------- the runner

class OneLineResult(unittest.TestResult):
    """One line a test, on stdout; what went wrong below it."""

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()
        self.bad = len(self.failures) + len(self.errors)

    def stopTest(self, test):
        super().stopTest(test)
        name = test.shortDescription() or str(test)
        skipped = self.skipped and self.skipped[-1][0] is test
        failed = len(self.failures) + len(self.errors) > self.bad
        verdict = "FAILED " if failed else "skipped" if skipped else "ok     "
        print(f"{verdict} {name}" + (f" ({self.skipped[-1][1]})" if skipped else f" ({time.monotonic() - self.began:.2f} s)"), flush=True)
        for problems in (self.failures, self.errors):
            if failed and problems and problems[-1][0] is test:
                print(problems[-1][1], flush=True)


def run_tests(module, prepare):
    """Runs the tests of a module, or those named before the build folder; exits."""
    global program, temporary
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} [TEST...] BUILD_DIR")
    program = str(pathlib.Path(sys.argv[-1]).resolve() / "safer")
    if not os.access(program, os.X_OK):
        sys.exit(f"{program} is not there: build first")
    loader = unittest.TestLoader()
    if len(sys.argv) > 2:
        loader.testNamePatterns = [f"*{name}*" for name in sys.argv[1:-1]]
    suite, result = loader.loadTestsFromModule(module), OneLineResult()
    with tempfile.TemporaryDirectory(prefix="safer-test-") as folder:
        temporary = pathlib.Path(folder)
        prepare()
        suite.run(result)
    failed = len({str(test) for test, _ in result.failures + result.errors})
    passed = max(0, result.testsRun - failed - len(result.skipped))  # a class that is skipped never ran
    print(f"[  PASSED  ] {passed} test(s).")
    if result.skipped:
        print(f"[  SKIPPED ] {len(result.skipped)} test(s).")
    if failed:
        print(f"[  FAILED  ] {failed} test(s).")
    sys.exit(0 if (result.testsRun or result.skipped) and not failed else 1)


if __name__ == "__main__":
    run_tests(sys.modules["__main__"], make_files)
