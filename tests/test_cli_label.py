#!/usr/bin/env python3
"""safer label as a person uses it: test_cli_label.py [TEST...] BUILD_DIR. Run by ctest.

Texts without labels, in every form that they come in, get those of a model file, a sum or a program; what is written is
read back here by its definition and by the program, and learned from.
"""
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import must, read_run  # noqa: E402
from test_cli import DONE, INPUT, INTERRUPTED, SYSTEM, USAGE, Case, exists, names, run, write  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}

# A program that answers in the way that its argument says; the length of a text is all that counts.
CHILD = """
import json, sys, time
how = sys.argv[1]
for line in sys.stdin:
    request = json.loads(line)
    texts = request["texts"]
    if how == "labels": answer = {"labels": [["neg", "pos"][len(text) % 2] for text in texts]}
    if how == "none": answer = {"labels": [None if len(text) % 3 == 0 else ["neg", "pos"][len(text) % 2] for text in texts]}
    if how == "mute": answer = {"labels": [None for text in texts]}
    if how == "scores": answer = {"scores": [[len(text) / 4000, 1 - len(text) / 4000] for text in texts]}
    if how == "logits": answer = {"scores": [[len(text), -50] for text in texts]}
    if how == "dies":
        with open("answered", "a+") as file:
            file.seek(0)
            if len(file.read()) == 3: sys.exit("no more")
            file.write("x")
        answer = {"labels": [["neg", "pos"][len(text) % 2] for text in texts]}
    if how == "slow": open("asked", "w").close(); time.sleep(0.2); answer = {"labels": ["pos" for text in texts]}
    print(json.dumps({"id": request["id"], **answer}), flush=True)
"""


def make_files():
    build = pathlib.Path(test_cli.program).parent
    subprocess.run([build / "demo-reviews", test_cli.temporary / "demo", "--train", "600", "--dev", "80", "--test", "200"],
                   check=True, capture_output=True)
    must("train", "--arch", "ngram", "--data", "demo/train.tsv", "--bits", 14, "-o", "teacher.model")
    must("train", "--arch", "bow", "--data", "demo/train.tsv", "--epochs", 3, "--dim", 10, "-o", "bow.model")
    write("sum.json", json.dumps({"arch": "sum", "members": [{"model": "teacher.model", "weight": 3}, {"model": "bow.model"}]}))
    write("child.py", CHILD)
    write("texts.tsv", "".join(f"{key}\t\t{text}" for key, _, text in rows_of("demo/test.tsv", False)))


def rows_of(name, decode=True):
    """The rows of a TSV file without header, by its definition."""
    rows = [line.split("\t") for line in (test_cli.temporary / name).read_bytes().decode().splitlines(True)]
    if not decode:
        return rows
    def plain(column):
        out, at = "", 0
        while at < len(column):
            step = 2 if column[at] == "\\" else 1
            out += {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}[column[at + 1]] if step == 2 else column[at]
            at += step
        return out
    return [tuple(map(plain, row[:-1] + [row[-1].removesuffix("\n")])) for row in rows]


def label(*arguments, **more):
    return run("label", *arguments, **more)


def child(how):
    return ("--model", f"exec:{sys.executable} child.py {how}", "--labels", "neg,pos", "--workers", 2)


class Label(Case):
    def labelled(self, *arguments, output="out.tsv"):
        """The summary, and the rows that were written, without the header that a first row alone of its class needs."""
        summary = json.loads(self.ok(run("label", *arguments, "-o", output, "--json", "--quiet")))
        rows = rows_of(output)
        if rows[0] == ("id", "label", "text"):
            rows = rows[1:]
        self.assertEqual((summary["output"], summary["kept"]), (output, len(rows)))
        self.assertEqual(summary["classes"], {name: sum(row[1] == name for row in rows) for name in summary["classes"]})
        self.assertGreater(summary["texts_per_second"], 0)
        self.ok(run("label", "--model", "teacher.model", "--data", output, "-o", "read.tsv", "--json"))  # the program reads the same
        read = [row for row in rows_of("read.tsv") if row != ("id", "label", "text")]
        self.assertEqual([(key, text) for key, _, text in read], [(key, text) for key, _, text in rows])
        return summary, rows

    def test_file(self):
        """a model file: every text, with what certify says of the model itself; what was known is compared, not used"""
        plain, rows = self.labelled("--model", "teacher.model", "--data", "texts.tsv")
        given = rows_of("demo/test.tsv")
        self.assertEqual([(key, text) for key, _, text in rows], [(key, text) for key, _, text in given])
        self.assertEqual((plain["texts"], plain["kept"], plain["none"], plain["known"], plain["agreed"]), (200, 200, 0, 0, 0))
        self.assertEqual(plain["model"]["sha256"], test_cli.sha256_of("teacher.model"))
        self.assertEqual((plain["model"]["arch"], plain["model"]["name"]), ("ngram", "teacher.model"))
        must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--kernel", "component", "-o", "words.lex")
        must("certify", "--model", "teacher.model", "--lexicon", "words.lex", "--data", "demo/test.tsv", "--n", 10, "-o", "run.jsonl")
        self.assertEqual([(r["id"], r["base"]) for r in read_run("run.jsonl")[1]], [row[:2] for row in rows])
        known, again = self.labelled("--model", "teacher.model", "--data", "demo/test.tsv")
        self.assertEqual(again, rows)
        right = sum(row[1] == other[1] for row, other in zip(rows, given))
        self.assertEqual((known["known"], known["agreed"], known["kept_known"], known["kept_agreed"]), (200, right, 200, right))
        self.assertGreater(right, 140)
        self.assertLess(right, 200)

    def test_words(self):
        """the summary for people"""
        out = self.ok(label("--model", "teacher.model", "--data", "demo/test.tsv", "--keep", 0.5, "-o", "words.tsv"))
        self.assertRegex(out, r"^texts +200\nkept +100, with a lead of \d+\.\d\d \(\d+\.\d to 1\) or more\nclasses +0 \d+, 1 \d+\n"
                              r"agreement +\d\d\.\d\d% of 200 that have a label, \d+\.\d\d% of the 100 kept\n"
                              r"model +teacher\.model, SHA-256 [0-9a-f]{64}, portable\n\d+\.\d s, [\d,]+ texts/s\nwrote words\.tsv\n$")
        out = self.ok(label(*child("none"), "--data", "texts.tsv", "-o", "words.tsv"))
        self.assertRegex(out, r"^texts +200, \d+ without an answer\nkept +\d+\nclasses +neg \d+, pos \d+\nmodel +exec\nasked +200 texts")
        self.assertNotIn("agreement", out)

    def test_keep(self):
        """a share: the surest, exactly so many, in the order of the data, and those of a smaller share among them"""
        _, every = self.labelled(*child("scores"), "--data", "texts.tsv")
        lead = {key: abs(1 - len(text) / 2000) for key, _, text in every}
        before = set()
        for keep in (0.005, 0.1, 0.33, 0.5, 0.755, 0.95, 1):
            summary, rows = self.labelled(*child("scores"), "--data", "texts.tsv", "--keep", keep)
            self.assertEqual((summary["kept"], summary["keep"], summary["by_difference"]), (math.ceil(round(keep * 200, 6)), keep, False))
            self.assertEqual(rows, [row for row in every if row in rows])
            kept = {row[0] for row in rows}
            left = [lead[key] for key in lead if key not in kept]
            least = min(lead[key] for key in kept)
            self.assertTrue(all(other <= least for other in left), (least, left))
            self.assertAlmostEqual(summary["least_lead"], math.log((1 + least) / (1 - least)), 4)
            self.assertLessEqual(before, kept)
            before = kept
        summary, rows = self.labelled(*child("logits"), "--data", "texts.tsv", "--keep", 0.1)
        longest = sorted(every, key=lambda row: -len(row[2]))[:20]
        self.assertEqual({row[0] for row in rows}, {row[0] for row in longest})
        self.assertEqual((summary["by_difference"], summary["least_lead"]), (True, 50 + len(longest[-1][2])))

    def test_ties(self):
        """of equal leads the first texts"""
        write("same.tsv", "".join(f"{i}\t\tA wonderful film.\n" for i in range(10)) + "10\t\tfine\n")
        _, rows = self.labelled("--model", "teacher.model", "--data", "same.tsv", "--limit", 10, "--keep", 0.35, output="ties.tsv")
        self.assertEqual([row[0] for row in rows], ["0", "1", "2", "3"])

    def test_sum(self):
        """a sum of models, and the same bytes for any number of threads and texts at once"""
        first, _ = self.labelled("--model", "sum.json", "--data", "texts.tsv", "--keep", 0.6, "--threads", 1)
        whole = (test_cli.temporary / "out.tsv").read_bytes()
        self.assertEqual(first["model"]["arch"], "sum")
        for threads, batch in ((2, None), (5, 1), (1, 7), (2, 1000)):
            self.labelled("--model", "sum.json", "--data", "texts.tsv", "--keep", 0.6, "--threads", threads, *(("--batch", batch) if batch else ()),
                          output="again.tsv")
            self.assertEqual((test_cli.temporary / "again.tsv").read_bytes(), whole)

    def test_labels_alone(self):
        """a program without scores: its labels, none left out but what it does not answer; no share of it"""
        summary, rows = self.labelled(*child("none"), "--data", "texts.tsv")
        given = [(key, text) for key, _, text in rows_of("texts.tsv")]
        self.assertEqual([(key, text) for key, _, text in rows], [row for row in given if len(row[1]) % 3])
        self.assertTrue(all(row[1] == ["neg", "pos"][len(row[2]) % 2] for row in rows))
        self.assertEqual((summary["texts"], summary["none"], summary["least_lead"]), (200, 200 - len(rows), None))
        self.assertEqual((summary["traffic"]["asked"], summary["traffic"]["none"]), (200, 200 - len(rows)))
        self.assertEqual(summary["model"], {"arch": "exec", "name": None, "sha256": None, "arithmetic": None})
        write("kept.tsv", "what was there\n")
        self.refused(label(*child("labels"), "--data", "texts.tsv", "--keep", 0.5, "-o", "kept.tsv"), USAGE, "--keep", "needs scores")
        for option in (("--cache", "on"), ("--function",), ("--random",)):
            self.refused(label(*child("labels"), "--data", "texts.tsv", *option, "-o", "kept.tsv"), USAGE, "there is no option " + option[0])
        self.refused(label(*child("mute"), "--data", "texts.tsv", "-o", "kept.tsv"), INPUT, "none of the 200 texts")
        self.assertEqual((test_cli.temporary / "kept.tsv").read_text(), "what was there\n")

    def test_forms(self):
        """texts without labels in every format: a column that is missing, empty or '?', lines of text, one folder"""
        texts = ["A wonderful film.", "tab\there, line\nfeed, return\r and \\n", "caf\u00e9 \u200b\U0001f600", "\"quoted\", \\", " spaces "]
        want = [(str(i + 1), text) for i, text in enumerate(texts)]
        escaped = ["".join(ESCAPES.get(letter, letter) for letter in text) for text in texts]
        def quoted(text):
            return '"' + text.replace('"', '""') + '"'
        files = {"header.tsv": "text\n" + "".join(f"{text}\n" for text in escaped),
                 "title.tsv": "text\tid\ttitle\n" + "".join(f"{text}\t{i + 1}\t\n" for i, text in enumerate(escaped)),
                 "asked.tsv": "".join(f"{i + 1}\t?\t{text}\n" for i, text in enumerate(escaped)),
                 "text.csv": "review\n" + "".join(quoted(text) + "\n" for text in texts),
                 "other.csv": "id,label,text\n" + "".join(f"{i + 1},,{quoted(text)}\n" for i, text in enumerate(texts)),
                 "lines.jsonl": "".join(json.dumps({"text": text}) + "\n" for text in texts)}
        for name, content in files.items():
            write(name, content)
            summary, rows = self.labelled("--model", "teacher.model", "--data", name)
            if rows[0] == ("id", "label", "text"):
                rows = rows[1:]
            self.assertEqual([(key, text) for key, _, text in rows], want, name)
            self.assertEqual(summary["known"], 0)
        write("plain.txt", "A wonderful film.\nA dull film, all in all.\n")
        _, rows = self.labelled("--model", "teacher.model", "--data", "plain.txt", "--format", "fasttext")
        self.assertEqual([row[2] for row in rows if row[0] in "12"], ["A wonderful film.", "A dull film, all in all."])
        for i in range(3):
            write(f"unsup/{i}_0.txt", f"A wonderful film, number {i}.")
        (test_cli.temporary / "all").mkdir()
        (test_cli.temporary / "all/texts").symlink_to("../unsup")
        _, rows = self.labelled("--model", "teacher.model", "--data", "all")
        self.assertEqual([row[0] for row in rows if row[0] != "id"], ["texts/0_0", "texts/1_0", "texts/2_0"])
        title = write("titled.csv", "title,body,score\nFine,I liked it.,1\nDull,I slept all along.,0\n")
        _, rows = self.labelled("--model", "teacher.model", "--data", title, "--label-column", "score", "--limit", 2)
        self.assertEqual([row[2] for row in rows if row[0] in "12"], ["Fine I liked it.", "Dull I slept all along."])

    def test_joined(self):
        """behind the training data, as the manual says: the rows of both"""
        self.labelled("--model", "teacher.model", "--data", "texts.tsv", "--keep", 0.8, output="labelled.tsv")
        folder = test_cli.temporary
        (folder / "more.tsv").write_bytes((folder / "demo/train.tsv").read_bytes() + (folder / "labelled.tsv").read_bytes())
        report = json.loads(self.ok(run("train", "--arch", "ngram", "--bits", 14, "--data", "more.tsv", "--dev", "demo/dev.tsv", "-o", "student.model", "--json")))
        self.assertEqual(report["texts"], 760)

    def test_sample(self):
        """rows are chosen as in other verbs"""
        _, rows = self.labelled("--model", "teacher.model", "--data", "demo/test.tsv", "--sample", "random:20", "--seed", 5, "--limit", 15)
        must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--kernel", "component", "-o", "s.lex")
        sampled = self.ok(run("sample", "--lexicon", "s.lex", "--data", "demo/test.tsv", "--sample", "random:20", "--seed", 5, "--limit", 15, "--count", 1))
        self.assertEqual([row[0] for row in rows], [line.split("\t")[0] for line in sampled.splitlines()])

    def test_refused(self):
        """options that are missing or wrong, files that cannot be: one line, and nothing is written"""
        base = ("--model", "teacher.model", "--data", "texts.tsv")
        before = names()
        for arguments, code, words in (((*base[2:], "-o", "x.tsv"), USAGE, "--model"), ((*base[:2], "-o", "x.tsv"), USAGE, "--data"),
                                       (base, USAGE, "-o FILE"), ((*base, "-o", "x.tsv", "--keep", "0"), USAGE, "--keep 0"),
                                       ((*base, "-o", "x.tsv", "--keep", "1.01"), USAGE, "--keep 1.01"),
                                       ((*base, "-o", "x.tsv", "--keep", "most"), USAGE, "--keep"),
                                       ((*base, "-o", "x.tsv", "--batch", 2000000), USAGE, "--batch"),
                                       ((*base, "-o", "x.csv"), USAGE, "x.csv would be read as another format"),
                                       ((*base, "-o", "x.txt"), USAGE, "x.txt"), ((*base, "-o", "texts.tsv"), USAGE, "that is the file of --data"),
                                       ((*base, "-o", "nowhere/x.tsv"), SYSTEM, "nowhere/x.tsv"),
                                       (("--model", "none.model", *base[2:], "-o", "demo"), USAGE, "--output: it is a folder"),  # before anything is read
                                       (("--model", "none.model", *base[2:], "-o", "x.tsv"), SYSTEM, "none.model"),
                                       ((*base[:2], "--data", "none.tsv", "-o", "x.tsv"), SYSTEM, "none.tsv"),
                                       (("--model", "exec:cat", *base[2:], "-o", "x.tsv"), USAGE, "--labels LIST is needed")):
            self.refused(label(*arguments), code, words)
        write("empty.tsv", "id\tlabel\ttext\n")
        self.refused(label(*base[:2], "--data", "empty.tsv", "-o", "x.tsv"), INPUT, "no rows")
        (test_cli.temporary / "empty.tsv").unlink()
        self.assertEqual(names(), before)

    def test_full_disk(self):
        """a disk that is full: exit 4, and what was there stays"""
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        base = ("--model", "teacher.model", "--data", "texts.tsv")
        self.refused(label(*base, "-o", "/dev/full"), SYSTEM, "/dev/full", "No space left")
        write("kept.tsv", "what was there\n")
        self.refused(run("label", *base, "-o", "kept.tsv", preexec_fn=small_files), SYSTEM, "kept.tsv")
        self.assertEqual((test_cli.temporary / "kept.tsv").read_text(), "what was there\n")
        self.assertEqual([name for name in names() if name.startswith("kept.tsv")], ["kept.tsv"])
        with open("/dev/full", "wb") as full:
            self.refused(label(*base, "-o", "kept.tsv", stdout=full), SYSTEM, "cannot write")

    def test_part(self):
        """a program that is no more: one line, and the texts that it answered are beside the output; an older file stays"""
        write("older.tsv", "what was there\n")
        done = label(*child("dies"), "--data", "texts.tsv", "--workers", 1, "--request-texts", 4, "--batch", 4, "--threads", 1, "--retries", 0, "-o", "older.tsv")
        self.assertNotIn(done.code, (DONE, USAGE), done)
        self.assertEqual(len(done.err.splitlines()), 1, done.err)
        self.assertIn("; older.tsv.answered has the 12 texts that were answered before", done.err)
        self.assertEqual((test_cli.temporary / "older.tsv").read_text(), "what was there\n")
        given = [(key, text) for key, _, text in rows_of("texts.tsv")]
        self.assertEqual(rows_of("older.tsv.answered"), [(key, ["neg", "pos"][len(text) % 2], text) for key, text in given[:12]])
        (test_cli.temporary / "answered").unlink()
        done = label(*child("dies"), "--data", "older.tsv.answered", "--workers", 1, "--request-texts", 1, "--batch", 1, "--threads", 1, "--retries", 0, "-o", "older.tsv")
        self.assertIn("; older.tsv.answered.2 has the 3 texts that were answered before", done.err)
        self.assertEqual((len(rows_of("older.tsv.answered")), len(rows_of("older.tsv.answered.2"))), (12, 3), "earlier answers stay")
        done = label(*child("dies"), "--data", "texts.tsv", "--retries", 0, "-o", "none.tsv")
        self.assertFalse(exists("none.tsv") or exists("none.tsv.answered"), done)

    def test_interrupt(self):
        """Ctrl-C or SIGTERM: exit 130, what was answered lies beside the output, and an older file stays"""
        write("older.tsv", "what was there\n")
        before = names()
        for how in (signal.SIGINT, signal.SIGTERM):
            for output in ("older.tsv", "new.tsv"):
                command = [test_cli.program, "label", *map(str, child("slow")), "--request-texts", "1", "--data", "texts.tsv", "-o", output]
                started = subprocess.Popen(command, cwd=test_cli.temporary, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
                patience = time.time() + 60
                while time.time() < patience and not exists("asked"):
                    time.sleep(0.01)
                self.assertIsNone(started.poll())
                started.send_signal(how)
                out, err = started.communicate(timeout=30)
                self.assertEqual((started.returncode, out), (INTERRUPTED, b""), err)
                self.assertIn(b"cancelled", err)
                (test_cli.temporary / "asked").unlink()
                part = test_cli.temporary / f"{output}.answered"
                self.assertEqual(part.exists(), b".answered has the" in err, err)
                part.unlink(missing_ok=True)
        self.assertEqual(names(), before)
        self.assertEqual((test_cli.temporary / "older.tsv").read_text(), "what was there\n")

    def test_quiet(self):
        """what was guessed of columns is said, but not with --quiet"""
        write("tweets.csv", "tweet\nA good film\nA bad film\n")
        done = label("--model", "teacher.model", "--data", "tweets.csv", "-o", "t.tsv")
        self.assertEqual((done.code, done.err), (DONE, 'safer: tweets.csv: taken by their names: text from "tweet"\n'))
        self.assertEqual(label("--model", "teacher.model", "--data", "tweets.csv", "-o", "t.tsv", "--quiet").err, "")
        self.assertTrue(exists("t.tsv"))


def small_files():
    """In the child: no file of it may grow above 4096 bytes."""
    import resource
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
