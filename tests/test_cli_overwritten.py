#!/usr/bin/env python3
"""Files that are cut off or overwritten while they are used: test_cli_overwritten.py [TEST...] BUILD_DIR.

What was read is a copy, so the verb goes on with it as if nothing had happened. Run by ctest.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import without_times  # noqa: E402
from serving import TEXT, Serve, make_files  # noqa: E402
from test_cli import DONE, INPUT, exists, run, write  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent


def cut_off(name):
    os.truncate(test_cli.temporary / name, 0)


def overwrite(name):
    """The same length, other bytes, in place: as cp does."""
    path = test_cli.temporary / name
    with open(path, "r+b") as file:
        file.write(os.urandom(path.stat().st_size))


def put_back(name, content):
    """In place too."""
    (test_cli.temporary / name).write_bytes(content)


class Overwritten(Serve):
    def copies(self, *names):
        for name in names:
            shutil.copy(test_cli.temporary / name, test_cli.temporary / f"own-{os.path.basename(name)}")
        return [f"own-{os.path.basename(name)}" for name in names]

    def running(self, *arguments, until, damage, between=None):
        """Runs safer, does the damage once `until` says so, and returns the exit code and messages."""
        process = subprocess.Popen([test_cli.program, *map(str, arguments)], cwd=test_cli.temporary, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        limit = time.monotonic() + 120
        while not until() and process.poll() is None and time.monotonic() < limit:
            time.sleep(0.01)
        self.assertIsNone(process.poll(), "it was over before the files were damaged")
        damage()
        if between:
            between()
        messages = process.communicate(timeout=300)[1].decode()
        return process.returncode, messages

    def begun(self, run_name, records=2):
        path = test_cli.temporary / run_name
        return lambda: path.exists() and path.read_bytes().count(b"\n") > records

    def check_run(self, code, messages, data, damaged, whole):
        """Texts that were not in memory yet cannot be read any more: then the run ends before the first of them."""
        made, expected = without_times(damaged), without_times(whole)
        if code == DONE:
            self.assertEqual((messages, made), ("", expected))
        else:
            self.assertEqual((code, messages), (INPUT, f"safer: {data} was changed while it was read; try again when it is whole\n"))
            self.assertEqual(made, expected[:len(made)])

    def test_serve(self):
        """a server answers as before when its model and its lexicon are cut off, overwritten, or removed"""
        for damage in (cut_off, overwrite, lambda name: os.remove(test_cli.temporary / name)):
            names = self.copies("k.model", "k.lex")
            with self.serving("--model", names[0], "--lexicon", names[1], "--seed", 5) as server:
                before = [server.post(path, {"text": TEXT}) for path in ("/v1/certify", "/v1/words")]
                for name in names:
                    damage(name)
                self.assertEqual([server.post(path, {"text": TEXT}) for path in ("/v1/certify", "/v1/words")], before)

    def test_certify(self):
        """a run has the same records when model, lexicon and data are damaged on its way, or says that the data is"""
        for number, damage in enumerate((cut_off, overwrite)):
            names = self.copies("k.model", "k.lex", "demo/test.tsv")
            files = ("--model", names[0], "--lexicon", names[1], "--data", names[2], "--method", "hoeffding", "--n", 20000, "--limit", 30, "--threads", 1)
            self.ok(run("certify", *files, "-o", f"whole{number}.jsonl", "--quiet"))
            code, messages = self.running("certify", *files, "-o", f"damaged{number}.jsonl", "--quiet",
                                          until=self.begun(f"damaged{number}.jsonl"), damage=lambda: [damage(name) for name in names])
            self.check_run(code, messages, names[2], f"damaged{number}.jsonl", f"whole{number}.jsonl")

    def test_certify_remote(self):
        """the same with a program as the model"""
        names = self.copies("k.lex", "demo/test.tsv")
        files = ("--model", f"exec:{sys.executable} slow.py 0.02 0 1", "--labels", "0,1", "--lexicon", names[0], "--data", names[1], "--limit", 10,
                 "--n", 200, "--cache", "off", "--model-name", "slow")
        self.ok(run("certify", *files, "-o", "remote.jsonl", "--quiet"))
        code, messages = self.running("certify", *files, "-o", "remote-damaged.jsonl", "--quiet",
                                      until=self.begun("remote-damaged.jsonl", 0), damage=lambda: [cut_off(name) for name in names])
        self.check_run(code, messages, names[1], "remote-damaged.jsonl", "remote.jsonl")

    def test_train(self):
        """training makes the same model when data and lexicon are cut off after the first epoch"""
        names = self.copies("demo/train.tsv", "demo/dev.tsv", "k.lex")
        files = ("train", "--arch", "cnn", "--data", names[0], "--dev", names[1], "--lexicon", names[2], "--epochs", 6, "--patience", 0, "--threads", 1)
        self.ok(run(*files, "-o", "whole.cnn", "--quiet"))
        code, messages = self.running(*files, "-o", "damaged.cnn", "--quiet", until=lambda: exists("damaged.cnn.checkpoint"),
                                      damage=lambda: [cut_off(name) for name in names])
        self.assertEqual((code, messages), (DONE, ""))
        self.assertEqual(test_cli.sha256_of("damaged.cnn"), test_cli.sha256_of("whole.cnn"))

    def test_vectors(self):
        """a lexicon is built from the vectors that were read, though they are cut off while a data set is still coming"""
        words = sorted({word for line in (ROOT / "demo/synonyms.tsv").read_text().splitlines() for word in line.replace("\t", " ").split()
                        if word.isalpha()})[:300]
        vectors = "".join(f"{word} {i % 7} {i % 5 + 1} {i % 3}\n" for i, word in enumerate(words))
        data = "".join(f"r{i}\tpos\t{word} film\n" for i, word in enumerate(words))
        write("vectors.txt", vectors)
        write("vectors.tsv", data)
        options = ("lexicon", "build", "--vectors", "vectors.txt", "--min-count", 1, "--threads", 2, "--all-but-the-top", 0)
        self.ok(run(*options, "--vocab-from", "vectors.tsv", "-o", "whole.lex", "--quiet"))
        pipe = test_cli.temporary / "slow.tsv"
        os.mkfifo(pipe)
        writer = open(os.open(pipe, os.O_RDWR), "w")
        code, messages = self.running(*options, "--vocab-from", "slow.tsv", "-o", "damaged.lex", "--quiet",
                                      until=iter([False] * 50 + [True]).__next__, damage=lambda: cut_off("vectors.txt"),
                                      between=lambda: (writer.write(data), writer.close()))
        self.assertEqual((code, messages), (DONE, ""))
        self.assertEqual(self.synonyms("damaged.lex"), self.synonyms("whole.lex"))

    def test_while_it_is_read(self):
        """a file that somebody writes to all the time: the answer, or one line; never a signal"""
        name, = self.copies("k.lex")
        content, stop = (test_cli.temporary / name).read_bytes(), threading.Event()

        def scribble():
            while not stop.is_set():
                cut_off(name)
                put_back(name, content)
        writer = threading.Thread(target=scribble)
        writer.start()
        try:
            seen = [run("lexicon", "stats", name) for _ in range(60)]
        finally:
            stop.set()
            writer.join()
        for result in seen:
            if result.code != DONE:
                self.refused(result, INPUT, name)
        self.assertTrue(any(result.code == INPUT for result in seen), "it was never caught in the act")


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
