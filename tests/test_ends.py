#!/usr/bin/env python3
"""How the program ends: test_ends.py [TEST...] BUILD_DIR. Run by ctest.

Ctrl-C and SIGTERM end every verb within a second, with exit status 130, whatever it waits for: a silent program or
service, a pipe that nobody fills, endless bytes to unpack, or work. What can be resumed then ends as if nothing had
happened. However the program ends, what it has started ends too.
"""
import gzip
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from test_cli import DONE, INTERRUPTED, run, write  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECOND = 1.0
ATTEMPTS = 4  # a machine with other work may need longer now and then; a program that waits for a time-out always does

# A program that answers; with HANG_AT=N it falls silent at request N, as one that nobody and nothing can move.
CHILD = """
import json, os, signal, sys, time
hang = int(os.environ.get("HANG_AT", "0"))
for number, line in enumerate(sys.stdin, 1):
    if number == hang:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open("hung", "w").close()
        while True: time.sleep(1000)
    request = json.loads(line)
    print(json.dumps({"id": request["id"], "labels": ["np"[text.count("o") % 2] for text in request["texts"]]}), flush=True)
"""

LEXICON = ("--lexicon", "words.lex")
NAME = ("--model-name", "m")
DATA = ("--data", "data.tsv")
REMOTE = ("--labels", "n,p", "--workers", "1", "--timeout", "600", *LEXICON)
# Small requests: so many that it falls silent in the middle, however questions meet in them.
EXEC = ("--model", "exec:python3 child.py", *REMOTE, "--request-texts", "4")
SILENT = ("--model", "exec:trap '' TERM INT; touch hung; while :; do sleep 1000; done", *REMOTE)
LABEL = (*DATA, "--workers", "1", "--timeout", "600", "-o", "o.tsv")
DEMO = ("--data", "demo/train.tsv", "--dev", "demo/dev.tsv")
ENDLESS = ("--dim", "64", "--filters", "64", "--epochs", "100000", "--patience", "0", "--threads", "1")
ALWAYS = 100000  # draws, steps or texts: more than the test waits for


def prepare():
    build = pathlib.Path(test_cli.program).parent
    subprocess.run([build / "demo-reviews", test_cli.temporary / "demo", "--train", "400", "--dev", "60", "--test", "80"],
                   check=True, capture_output=True)
    shutil.copy(ROOT / "demo/synonyms.tsv", test_cli.temporary / "synonyms.tsv")
    write("child.py", CHILD)
    write("table.tsv", "good\tfine great\nbad\tpoor awful\nfilm\tmovie picture\nlong\tlengthy\nplot\tstory\n")
    rows = ["A good film with a long plot.", "A bad film.", "Good plot, good picture, fine movie, lengthy story!", "The plot was bad."]
    write("data.tsv", "".join(f"r{i}\t{'np'[i % 2]}\t{text * (1 + i % 3)}\n" for i, text in enumerate(rows * 3)))
    write("vectors.txt", "".join(f"{test_cli.word_of(i)} {' '.join(str((i * k * k + 7 * k) % 101 / 50 - 1) for k in range(1, 51))}\n" for i in range(2000)))
    write("pairs.txt", "".join(f"{test_cli.word_of(i)} {test_cli.word_of(i + 1)}\n" for i in range(0, 2000, 2)))
    write("big.json", json.dumps({
        "title": "Big",
        "data": {"reviews": {"train": "demo/train.tsv", "dev": "demo/dev.tsv", "test": {"data": "demo/test.tsv"},
                             "lexicon": {"table": "synonyms.tsv", "vocab-from": ["demo/train.tsv"], "min-count": 1}}},
        "models": {"cnn": {"arch": "cnn", "dim": 64, "filters": 64, "epochs": 100000, "patience": 0}},
        "defenses": {"component": {"kernel": "component", "n": 300}}, "attacks": {},
        "compare": [{"models": "cnn", "defenses": ["component"], "attacks": []}]}))
    for arguments in (("lexicon", "import", "--table", "table.tsv", "--kernel", "component", "-o", "words.lex"),
                      ("lexicon", "import", "--table", "synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1, "--kernel", "topk:100", "-o", "demo.lex"),
                      ("train", "--arch", "cnn", *DEMO, "--lexicon", "demo.lex", "--dim", 8, "--filters", 8, "--epochs", 1, "-o", "cnn.safetensors"),
                      ("certify", *EXEC, *NAME, *DATA, "--n", 300, "--n0", 30, "-o", "whole.jsonl")):
        done = run(*arguments, "--quiet")
        assert done.code == DONE, (arguments, done.err)


# ---------------------------------------------------------- what is waited for

class Hung:
    """A child that says when it has fallen silent."""

    def __enter__(self):
        self.path = test_cli.temporary / "hung"
        self.path.unlink(missing_ok=True)
        return self

    def ready(self, child):
        return self.path.exists()

    def __exit__(self, *_):
        self.path.unlink(missing_ok=True)


class Busy:
    """Work: some of it has been done."""

    def __enter__(self):
        return self

    def ready(self, child):
        try:
            fields = pathlib.Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return False
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") > 0.3

    def __exit__(self, *_):
        pass


class Pipe:
    """A pipe that has a writer, who writes nothing, or the same bytes again and again."""

    def __init__(self, content=b""):
        self.content, self.end = content, None

    def __enter__(self):
        self.path = test_cli.temporary / "pipe"
        os.mkfifo(self.path)
        return self

    def ready(self, child):
        try:
            self.end = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody has opened it yet
            return False
        if self.content:
            threading.Thread(target=self.feed, args=(os.dup(self.end),), daemon=True).start()
            time.sleep(0.2)
        return True

    def feed(self, end):
        try:
            while select.select([], [end], [], 60)[1]:
                os.write(end, self.content)
        except OSError:
            pass
        os.close(end)

    def __exit__(self, *_):
        if self.end is not None:
            os.close(self.end)
        self.path.unlink()


class Alone:
    """A pipe whose other end nobody opens: the program sleeps in open()."""

    def __enter__(self):
        self.path, self.before, self.same = test_cli.temporary / "pipe", None, 0
        os.mkfifo(self.path)
        return self

    def ready(self, child):
        try:
            fields = pathlib.Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return False
        now = fields[0], fields[11], fields[12]
        self.same = self.same + 1 if now == self.before and now[0] == "S" else 0
        self.before = now
        return self.same > 30

    def __exit__(self, *_):
        self.path.unlink()


class Service:
    """A service that says nothing, or sends its visitors away with `answer`. Ready when it has had enough of them."""

    def __init__(self, answer=None, enough=1):
        self.answer, self.enough = answer, enough

    def __enter__(self):
        self.visitors = []
        self.listener = socket.create_server(("127.0.0.1", PORT), backlog=64)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()
        return self

    def accept(self, listener):
        try:
            while True:
                visitor, _ = listener.accept()
                self.visitors.append(visitor)
                if self.answer is not None:
                    visitor.recv(1 << 16)
                    visitor.sendall(self.answer)
                    visitor.close()
        except OSError:
            pass

    def ready(self, child):
        return len(self.visitors) >= self.enough

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for visitor in self.visitors:
            visitor.close()


with socket.create_server(("127.0.0.1", 0)) as free:
    PORT = free.getsockname()[1]
HTTP = ("--model", f"http://127.0.0.1:{PORT}/", *REMOTE, "--retries", "1000")
OVERLOADED = b"HTTP/1.1 503 Busy\r\nRetry-After: 30\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

# What runs, what it waits for then, and more of its environment.
CASES = {
    "certify, silent program": (("certify", *SILENT, *NAME, *DATA, "-o", "o.jsonl"), Hung()),
    "certify, silent in the middle": (("certify", *EXEC, *NAME, *DATA, "--n", ALWAYS, "-o", "o.jsonl"), Hung(), {"HANG_AT": "40"}),
    "certify, few texts": (("certify", *EXEC, *NAME, *DATA, "--limit", "1", "--n", ALWAYS, "--method", "hoeffding", "-o", "o.jsonl"), Hung(), {"HANG_AT": "40"}),
    "certify, silent service": (("certify", *HTTP, *NAME, *DATA, "-o", "o.jsonl"), Service()),
    "certify, service that hangs up": (("certify", *HTTP, *NAME, *DATA, "-o", "o.jsonl"), Service(b"", 2)),
    "certify, service that asks for patience": (("certify", *HTTP, *NAME, *DATA, "-o", "o.jsonl"), Service(OVERLOADED)),
    "certify, work": (("certify", "--model", "cnn.safetensors", "--lexicon", "demo.lex", "--data", "demo/test.tsv", "--n", 100 * ALWAYS,
                       "--method", "hoeffding", "-o", "o.jsonl"), Busy()),
    "verify, silent program": (("verify", "whole.jsonl", *EXEC, *NAME, *DATA), Hung(), {"HANG_AT": "40"}),
    "verify, silent service": (("verify", "whole.jsonl", *HTTP, *NAME, *DATA), Service()),
    "verify, run": (("verify", "pipe"), Pipe()),
    "attack, silent program": (("attack", *EXEC, *NAME, *DATA, "-o", "o.jsonl"), Hung(), {"HANG_AT": "30"}),
    "attack, silent at once": (("attack", *SILENT, *NAME, *DATA, "-o", "o.jsonl"), Hung()),
    "attack, certificates": (("attack", "--against", "whole.jsonl", *EXEC, *NAME, *DATA, "-o", "o.jsonl"), Hung(), {"HANG_AT": "30"}),
    "attack, service that hangs up": (("attack", *HTTP, *NAME, *DATA, "-o", "o.jsonl"), Service(b"", 2)),
    "attack, work": (("attack", "--model", "cnn.safetensors", "--lexicon", "demo.lex", "--data", "demo/test.tsv", "--smoothed", "--n", ALWAYS,
                      "-o", "o.jsonl"), Busy()),
    "predict, silent program": (("predict", *SILENT, "A good film."), Hung()),
    "predict, silent service": (("predict", *HTTP, "A good film."), Service()),
    "label, silent program": (("label", *LABEL, "--model", "exec:python3 child.py", "--labels", "n,p", "--request-texts", "1"), Hung(), {"HANG_AT": "4"}),
    "label, data": (("label", "--model", "cnn.safetensors", "--data", "pipe", "--format", "tsv", "-o", "o.tsv"), Pipe()),
    "label, output that nobody reads": (("label", "--model", "cnn.safetensors", *DATA, "-o", "pipe"), Alone()),
    "serve, silent program": (("serve", *SILENT, "--port", "0"), Hung()),
    "serve, silent service": (("serve", *HTTP, "--port", "0"), Service()),
    "lexicon build, vectors": (("lexicon", "build", "--vectors", "pipe", "-o", "o.lex"), Pipe()),
    "lexicon build, counter-fitting": (("lexicon", "build", "--vectors", "vectors.txt", "--synonyms", "pairs.txt", "--counterfit", ALWAYS,
                                        "--all-but-the-top", "0", "-o", "o.lex"), Busy()),
    "lexicon build, unpacking": (("lexicon", "build", "--vectors", "pipe", "-o", "o.lex"), Pipe(gzip.compress(bytes(1 << 22)))),
    "lexicon import": (("lexicon", "import", "--table", "pipe", "-o", "o.lex"), Pipe()),
    "lexicon export": (("lexicon", "export", "pipe", "--what", "synonyms"), Pipe()),
    "lexicon show": (("lexicon", "show", "pipe", "good"), Pipe()),
    "lexicon stats": (("lexicon", "stats", "pipe"), Pipe()),
    "lexicon check": (("lexicon", "check", "pipe"), Pipe()),
    "lexicon diff": (("lexicon", "diff", "pipe", "words.lex"), Pipe()),
    "lexicon audit": (("lexicon", "audit", "pipe"), Pipe()),
    "train, data": (("train", "--arch", "ngram", "--data", "pipe", "-o", "o.safetensors"), Pipe()),
    "train, unpacking": (("train", "--arch", "ngram", "--data", "pipe", "--format", "tsv", "-o", "o.safetensors"), Pipe(gzip.compress(bytes(1 << 22)))),
    "train, cnn": (("train", "--arch", "cnn", *DEMO, "--lexicon", "demo.lex", *ENDLESS, "-o", "o.safetensors"), Busy()),
    "train, bounds": (("train", "--arch", "cnn", "--defense", "ibp-jia", *DEMO, "--lexicon", "demo.lex", *ENDLESS, "-o", "o.safetensors"), Busy()),
    "train, charcnn": (("train", "--arch", "charcnn", *DEMO, "--lexicon", "demo.lex", "--epochs", "100000", "--patience", "0", "-o", "o.safetensors"), Busy()),
    "report": (("report", "pipe", "-o", "o.html"), Pipe()),
    "report, data": (("report", "whole.jsonl", "--data", "pipe", *LEXICON, "-o", "o.html"), Pipe()),
    "evidence": (("evidence", "pipe", "-o", "evidence"), Pipe()),
    "sample": (("sample", *LEXICON, "--data", "pipe"), Pipe()),
    "fold": (("fold", "--lexicon", "pipe", "A good film."), Pipe()),
    "model convert": (("model", "convert", "pipe", "-o", "o.safetensors"), Pipe()),
    "model average": (("model", "average", "pipe", "pipe", "-o", "o.safetensors"), Pipe()),
    "model show": (("model", "show", "pipe"), Pipe()),
    "sweep": (("sweep", "--kernels", "component", "--arch", "cnn", "--lexicon", "demo.lex", *DEMO, *ENDLESS, "-o", "swept"), Busy()),
    "compare": (("compare", "big.json", "-o", "compared"), Busy()),
    "compare, configuration": (("compare", "pipe", "-o", "compared"), Pipe()),
    "certify, output that nobody reads": (("certify", *EXEC, *NAME, *DATA, "--n", 300, "-o", "pipe"), Alone()),
    "lexicon import, output that nobody reads": (("lexicon", "import", "--table", "table.tsv", "-o", "pipe"), Alone()),
    "report, output that nobody reads": (("report", "whole.jsonl", "-o", "pipe"), Alone()),
    "lexicon import, input that nobody writes": (("lexicon", "import", "--table", "pipe", "-o", "o.lex"), Alone()),
}


def remove(name):
    path = test_cli.temporary / name
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def start(arguments, more={}):
    return subprocess.Popen([test_cli.program, *map(str, arguments)], cwd=test_cli.temporary, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env={**os.environ, "LC_ALL": "C.UTF-8", **more})


def wait_until(ready, child):
    patience = time.time() + 60
    while not ready(child):
        if child.poll() is not None or time.time() > patience:
            child.kill()
            return False
        time.sleep(0.01)
    return True


def stop(arguments, where, how, more={}):
    """Runs it, sends the signal when it waits; the status, the seconds it took to end, and its messages."""
    for name in ("o.jsonl", "o.tsv", "o.lex", "o.html", "o.safetensors", "swept", "compared", "evidence"):
        remove(name)
    with where:
        child = start(arguments, more)
        if not wait_until(where.ready, child):
            return "(ended too early)", 0, child.communicate()[1].decode()
        began = time.monotonic()
        child.send_signal(how)
        try:
            child.wait(timeout=20)
        except subprocess.TimeoutExpired:
            child.kill()
        seconds = time.monotonic() - began
        return child.returncode, seconds, child.communicate()[1].decode()


class Signals(unittest.TestCase):
    def stopped(self, how):
        wrong = []
        for name, (arguments, where, *more) in CASES.items():
            for _ in range(ATTEMPTS):
                code, seconds, err = stop(arguments, where, how, *more)
                if code != INTERRUPTED or err.count("\n") > 4 or seconds < SECOND:
                    break
            if code != INTERRUPTED or err.count("\n") > 4 or seconds >= SECOND:
                wrong.append(f"{name}: status {code}, {seconds:.2f} s: {err}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_interrupt(self):
        """Ctrl-C: every verb ends within a second, with 130"""
        self.stopped(signal.SIGINT)

    def test_terminate(self):
        """SIGTERM: the same"""
        self.stopped(signal.SIGTERM)

    def test_all_verbs(self):
        """there is a case for every verb that may last; devices does not, merge has its own in test_cli_shards"""
        verbs = [line.split()[0] for line in run("--help").out.split("Verbs:\n")[1].split("\n\n")[0].splitlines()]
        self.assertGreater(len(verbs), 10)
        self.assertEqual(set(verbs) - {arguments[0] for arguments, *_ in CASES.values()}, {"devices", "merge"})

    def test_second(self):
        """the second signal ends it at once, without a word"""
        with Hung() as where:
            child = start(("certify", *SILENT, *NAME, *DATA))
            self.assertTrue(wait_until(where.ready, child))
            for _ in range(2):
                child.send_signal(signal.SIGTERM)
            self.assertEqual(child.wait(timeout=20), INTERRUPTED)
            child.communicate()


def records(name):
    return [{key: value for key, value in json.loads(line).items() if key not in ("seconds", "check")}
            for line in (test_cli.temporary / name).read_text().splitlines()[1:]]


class Resumed(unittest.TestCase):
    def test_certify(self):
        """certify --resume after a silence: the same records"""
        base = ("certify", *EXEC, *NAME, *DATA, "--n", 300, "--n0", 30, "-o", "o.jsonl")
        for how, at in ((signal.SIGINT, "30"), (signal.SIGTERM, "45")):
            code, _, err = stop(base, Hung(), how, {"HANG_AT": at})
            self.assertEqual(code, INTERRUPTED, err)
            self.assertIn("--resume", err)
            before = len(records("o.jsonl"))
            done = run(*base, "--resume", "--json")
            self.assertEqual((done.code, json.loads(done.out)["resumed"]), (DONE, before), done.err)
            self.assertEqual(records("o.jsonl"), records("whole.jsonl"))

    def test_attack(self):
        """attack --resume: the same records"""
        base = ("attack", *EXEC, *NAME, *DATA, "-o", "o.jsonl")
        self.assertEqual(run(*base).code, DONE)
        whole = records("o.jsonl")
        code, _, err = stop(base, Hung(), signal.SIGTERM, {"HANG_AT": "30"})
        self.assertEqual(code, INTERRUPTED, err)
        done = run(*base, "--resume")
        self.assertEqual((done.code, records("o.jsonl")), (DONE, whole), done.err)

    def test_train(self):
        """train --resume: the same model"""
        base = ("train", "--arch", "cnn", *DEMO, "--lexicon", "demo.lex", "--dim", "64", "--filters", "64", "--epochs", "80", "--patience", "0",
                "--threads", "1", "-o")
        self.assertEqual(run(*base, "unbroken.safetensors").code, DONE)
        code, _, err = stop((*base, "o.safetensors"), Busy(), signal.SIGTERM)
        self.assertEqual(code, INTERRUPTED, err)
        done = run(*base, "o.safetensors", "--resume")
        self.assertEqual(done.code, DONE, done.err)
        self.assertEqual(*((test_cli.temporary / name).read_bytes() for name in ("o.safetensors", "unbroken.safetensors")))


# --------------------------------------------------------------------- children

# A command that starts others: in the background, in a pipeline, out of reach of SIGTERM. Each writes its number.
FAMILY = ("exec:echo $$ >> pids; (trap '' TERM HUP; echo $(sh -c 'echo $PPID') >> pids; sleep 1000 & echo $! >> pids; wait) & "
          "sleep 1000 | sh -c 'echo $$ >> pids; cat > /dev/null'; wait")


def alive(pid):
    """Whether a process runs: one that only waits to be collected does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Children(unittest.TestCase):
    def children(self, least):
        """Their numbers, once there are so many."""
        path, patience = test_cli.temporary / "pids", time.time() + 30
        while time.time() < patience:
            found = [int(pid) for pid in path.read_text().split()] if path.exists() else []
            if len(found) >= least:
                return found
            time.sleep(0.01)
        self.fail("no children")

    def gone(self, pids, when):
        patience = time.time() + 10
        began = time.monotonic()
        while any(map(alive, pids)) and time.time() < patience:
            time.sleep(0.01)
        left = [pid for pid in pids if alive(pid)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], when)
        return time.monotonic() - began

    def ended(self, how, arguments, least=4, wait=0.0):
        remove("pids")
        child = start(arguments)
        pids = self.children(least)
        time.sleep(wait)
        child.send_signal(how)
        child.communicate(timeout=60)
        return self.gone(pids, how)

    def test_family(self):
        """kill -9, a crash, Ctrl-C, SIGTERM and SIGHUP: neither the command nor what it started lives a second later"""
        base = ("--model", FAMILY, *REMOTE)
        for verb in (("certify", *base, *NAME, *DATA), ("predict", *base, "A good film.")):
            for how in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                seconds = min(self.ended(how, verb) for _ in range(2))
                self.assertLess(seconds, SECOND, (verb[0], how))

    def test_moments(self):
        """kill -9 at any moment, from the start of the first child on"""
        base = ("certify", "--model", "exec:echo $$ >> pids; python3 child.py", *REMOTE, *NAME, *DATA, "--workers", "3", "--n", ALWAYS)
        for k in range(12):
            self.ended(signal.SIGKILL, base, least=1, wait=0.02 * k)

    def test_unborn(self):
        """kill -9 while a child is being started"""
        for k in range(20):
            remove("pids")
            child = start(("certify", "--model", "exec:echo $$ >> pids; sleep 1000", *REMOTE, *NAME, *DATA, "--workers", "4"))
            time.sleep(0.002 * k)
            child.kill()
            child.communicate()
            time.sleep(0.2)
            path = test_cli.temporary / "pids"
            self.gone([int(pid) for pid in path.read_text().split()] if path.exists() else [], k)

    def test_signals_of_children(self):
        """what the program ignores, its children do not: a limit on the size of files ends them"""
        run("certify", "--model", "exec:grep SigIgn /proc/self/status > state; exit 3", *REMOTE, *NAME, *DATA, "--retries", "0")
        ignored = int((test_cli.temporary / "state").read_text().split()[1], 16)
        self.assertFalse(ignored >> (signal.SIGXFSZ - 1) & 1 or ignored >> (signal.SIGPIPE - 1) & 1, hex(ignored))

    def test_streams(self):
        """a command has its three streams and no other file of ours"""
        run("certify", "--model", "exec:ls -l /proc/self/fd > fds; exit 3", *REMOTE, *NAME, *DATA, "--retries", "0")
        numbers = {line.split()[-3] for line in (test_cli.temporary / "fds").read_text().splitlines() if "->" in line}
        self.assertEqual(numbers - {"0", "1", "2", "3"}, set())  # 3 is the folder that ls reads


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], prepare)
