#!/usr/bin/env python3
"""SIGHUP, which lets a server read its model and lexicon again: test_cli_serve_reload.py [TEST...] BUILD_DIR.

No request may be lost, and each is answered by the old pair or by the new one, never by a mixture. Run by ctest.
"""
import concurrent.futures
import contextlib
import http.server
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from serving import TEXT, Serve, make_files, wait_until  # noqa: E402
from cli_runs import must  # noqa: E402
from test_cli import DONE, sha256_of, write  # noqa: E402

OWN = ("--model", "own.model", "--lexicon", "own.lex", "--seed", 3)


def children_of(pid):
    """How many processes are its children, by /proc: a small system has no ps."""
    count = 0
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            count += path.read_text(errors="replace").rsplit(")", 1)[1].split()[1] == str(pid)
    return count


def put(which):
    """The pair under the names that the server reads, as mv does it."""
    for kind in ("model", "lex"):
        shutil.copy(test_cli.temporary / f"{which}.{kind}", test_cli.temporary / "new")
        os.replace(test_cli.temporary / "new", test_cli.temporary / f"own.{kind}")


def memory(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


class Service:
    """A model over HTTP: labels all texts as told, on a port that it keeps though it may be away for a while."""

    def __init__(self, label):
        self.label, self.port = label, 0
        self.come()

    def come(self):
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["texts"]
                body = json.dumps({"labels": [service.label] * len(texts)}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def go(self):
        self.server.shutdown()
        self.server.server_close()


class Reload(Serve):
    def reload(self, server, count=1):
        """Asks for it and waits until it is said to be done."""
        before = server.messages().count("safer: reloaded")
        server.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: server.messages().count("safer: reloaded") > before), server.messages())

    def model(self, server):
        value = json.loads(server.get("/v1/model")[1])
        return value["model"]["sha256"], value["lexicon"]["sha256"]

    def answers(self, which):
        """What a server says that was started with this pair."""
        put(which)
        with self.serving(*OWN) as server:
            return server.post("/v1/certify", {"text": TEXT}), self.model(server)

    def test_new_pair(self):
        """after SIGHUP it answers as a server does that was started with the new files"""
        expected = {which: self.answers(which) for which in "kc3"}
        self.assertEqual(len({json.dumps(value) for value in expected.values()}), 3)
        put("k")
        with self.serving(*OWN) as server:
            for which in "kc3ck":
                put(which)
                self.reload(server)
                self.assertEqual((server.post("/v1/certify", {"text": TEXT}), self.model(server)), expected[which])
                self.assertEqual(self.model(server), (sha256_of(f"{which}.model"), sha256_of(f"{which}.lex")))

    def test_refused(self):
        """files that are damaged, missing or of another kind: one line, and the old pair goes on"""
        put("k")
        with self.serving(*OWN) as server:
            before = server.post("/v1/certify", {"text": TEXT}), self.model(server)
            good = {name: (test_cli.temporary / name).read_bytes() for name in ("own.model", "own.lex")}
            for name, content in (("own.lex", b""), ("own.lex", good["own.lex"][:-9]), ("own.lex", good["own.model"]),
                                  ("own.model", good["own.model"][:1000]), ("own.model", b"{}"), ("own.model", None), ("own.lex", None)):
                if content is None:
                    os.remove(test_cli.temporary / name)
                else:
                    write(name, content)
                lines = server.messages().count("\n")
                refusals = server.messages().count("safer: not reloaded, the old model and lexicon stay: ")
                server.process.send_signal(signal.SIGHUP)
                self.assertTrue(wait_until(lambda: server.messages().count("safer: not reloaded") > refusals), server.messages())
                self.assertEqual(server.messages().count("\n"), lines + 1)
                self.assertIn(name, server.messages().splitlines()[-1])
                self.assertEqual((server.post("/v1/certify", {"text": TEXT}), self.model(server)), before)
                server.lines(server.messages().count('{"time"'))
                time.sleep(0.05) # the log of these two
                write(name, good[name])

    def test_under_load(self):
        """200 reloads under load: nothing is lost, every answer is that of one of the two pairs, memory stays flat"""
        for name, lexicon in (("p", "k"), ("q", "c")):  # models whose size shows
            shutil.copy(test_cli.temporary / f"{lexicon}.lex", test_cli.temporary / f"{name}.lex")
            must("train", "--arch", "ngram", "--data", "demo/train.tsv", "--lexicon", f"{name}.lex", "--bits", 21, "-o", f"{name}.model")
        size = (test_cli.temporary / "p.model").stat().st_size
        right = [self.answers(which)[0] for which in "pq"]
        put("p")
        with self.serving(*OWN, "--quiet") as server:
            stop, seen = threading.Event(), []

            def ask():
                while not stop.is_set():
                    try:
                        seen.append(server.post("/v1/certify", {"text": TEXT}))
                    except Exception as error:  # noqa: BLE001
                        seen.append(repr(error))
            threads = [threading.Thread(target=ask) for _ in range(8)]
            for thread in threads:
                thread.start()
            used, first = [], memory(server.process.pid)
            for number in range(200):
                put("qp"[number % 2])
                server.process.send_signal(signal.SIGHUP)
                wanted = sha256_of("own.model")
                self.assertTrue(wait_until(lambda: self.model(server)[0] == wanted), server.messages())
                used.append(memory(server.process.pid))
            stop.set()
            for thread in threads:
                thread.join()
            wrong = [answer for answer in seen if answer not in right]
            self.assertEqual(wrong[:3], [])
            self.assertGreater(len(seen), 100)
            self.assertTrue(all(answer in seen for answer in right))
            self.assertLess(max(used[-50:]), first + 2.5 * size + 4e6, "memory grows")  # for a moment there are both

    def test_in_flight(self):
        """a request that is being worked on ends with the lexicon it began with, and with the program it began with"""
        write("marked.py", "import json, sys, time\nfor line in sys.stdin:\n    request = json.loads(line)\n    time.sleep(0.1)\n"
                           "    print(json.dumps({'id': request['id'], 'labels': ['neg' for text in request['texts']]}), flush=True)\n")
        put("k")
        options = ("--model", f"exec:{sys.executable} marked.py", "--labels", "neg,pos", "--lexicon", "own.lex", "--seed", 3, "--workers", 1,
                   "--method", "binomial", "--n", 640, "--batch", 64)
        with self.serving(*options) as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
            old = server.post("/v1/certify", {"text": TEXT})
            again = pool.submit(server.post, "/v1/certify", {"text": TEXT + " "})
            self.assertTrue(wait_until(lambda: server.gauge("safer_busy_threads") >= 1))
            put("c")
            write("marked.py", (test_cli.temporary / "marked.py").read_text().replace("'neg'", "'pos'").replace("0.1", "0.0"))
            server.process.send_signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: self.model(server)[1] == sha256_of("c.lex")))
            self.assertFalse(again.done(), "it was over before the reload")
            new = server.post("/v1/certify", {"text": TEXT})
            status, answer = again.result()
            self.assertEqual([a["certificates"][0]["prediction"] for a in (old[1], answer, new[1])], ["neg", "neg", "pos"])
            self.assertEqual(answer["certificates"][0]["q"], old[1]["certificates"][0]["q"])
            self.assertNotEqual(answer["certificates"][0]["q"], new[1]["certificates"][0]["q"])
            self.assertTrue(wait_until(lambda: server.messages().count("safer: reloaded: model (remote)") == 1), server.messages())
            self.assertEqual(children_of(server.process.pid), 1, "the old program is still there")

    def test_program_fails(self):
        """a program that does not start any more is refused as well"""
        write("here.py", (test_cli.temporary / "slow.py").read_text())
        with self.serving("--model", f"exec:{sys.executable} here.py 0", "--labels", "neg,pos", "--lexicon", "k.lex") as server:
            os.remove(test_cli.temporary / "here.py")
            server.process.send_signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: "safer: not reloaded" in server.messages()), server.messages())
            self.assertEqual(server.post("/v1/predict", {"text": TEXT})[0], 200)

    def refused(self, server, *words):
        """SIGHUP, and one line that says why the old pair stays."""
        before = server.messages().count("safer: not reloaded, the old model and lexicon stay: ")
        server.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: server.messages().count("safer: not reloaded") > before), server.messages())
        line = [line for line in server.messages().splitlines() if line.startswith("safer: not reloaded")][-1]
        for word in words:
            self.assertIn(word, line)

    def test_service(self):
        """a model over HTTP: asked anew; one that is away, or answers what it may not, is refused, and the old goes on"""
        service = Service("neg")
        options = ("--model", f"http://127.0.0.1:{service.port}/", "--labels", "neg,pos", "--lexicon", "own.lex", "--seed", 3, "--retries", 0,
                   "--timeout", 20, "--n", 20)
        put("k")

        def answer(text=TEXT):
            status, value = server.post("/v1/certify", {"text": text})
            return status, value["certificates"][0]["prediction"] if status == 200 else None

        with self.serving(*options) as server:
            self.assertEqual(answer(), (200, "neg"))
            service.label = "pos"
            put("c")
            self.reload(server)
            self.assertEqual((*answer(), self.model(server)[1]), (200, "pos", sha256_of("c.lex")))
            put("k")
            service.label = "unheard"
            self.refused(server, "unheard")
            service.label = "pos"
            self.assertEqual((*answer(), self.model(server)[1]), (200, "pos", sha256_of("c.lex")))
            service.go()
            self.refused(server, f"127.0.0.1:{service.port}")
            self.assertGreaterEqual(answer()[0], 500)
            service.come()
            self.assertEqual((*answer(), self.model(server)[1]), (200, "pos", sha256_of("c.lex")), "the old pair goes on")
            self.reload(server)
            self.assertEqual((*answer(), self.model(server)[1]), (200, "pos", sha256_of("k.lex")))
            service.go()

    def test_stopped_meanwhile(self):
        """SIGTERM during a reload: what was asked is answered, and it ends without waiting for the new model or lexicon"""
        write("moody.py", "import json, os, sys, time\nanswered = 0\nfor line in sys.stdin:\n    request = json.loads(line)\n"
                          "    while answered == 0 and os.path.exists('silent'): time.sleep(0.02)\n    answered += 1\n"
                          "    if any('slow' in text for text in request['texts']): time.sleep(0.3)\n"
                          "    print(json.dumps({'id': request['id'], 'labels': ['neg' for text in request['texts']]}), flush=True)\n")
        program = ("--model", f"exec:{sys.executable} moody.py", "--labels", "neg,pos", "--workers", 1, "--timeout", 300, "--lexicon", "own.lex",
                   "--n", 1000, "--batch", 100)
        for what in ("program", "lexicon"):
            put("k")
            with contextlib.suppress(OSError):
                os.remove(test_cli.temporary / "silent")
            with self.serving(*(program if what == "program" else OWN)) as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
                children = children_of(server.process.pid)
                if what == "program":
                    write("silent", "")
                else:
                    os.remove(test_cli.temporary / "own.lex")
                    os.mkfifo(test_cli.temporary / "own.lex")
                asked = pool.submit(server.post, "/v1/certify", {"text": "A slow good film."})
                self.assertTrue(wait_until(lambda: server.gauge("safer_busy_threads") >= 1 or asked.done()))
                server.process.send_signal(signal.SIGHUP)
                if what == "program":
                    self.assertTrue(wait_until(lambda: children_of(server.process.pid) > children))
                time.sleep(0.2)
                self.assertEqual(server.get("/healthz")[0], 200)
                self.assertEqual(asked.done(), what == "lexicon")
                began = time.monotonic()
                server.process.terminate()
                self.assertEqual(server.process.wait(30), DONE)
                self.assertEqual(asked.result()[0], 200)
                self.assertLess(time.monotonic() - began, 20)
                self.assertNotIn("reloaded", server.messages())
            with contextlib.suppress(OSError):
                os.remove(test_cli.temporary / "own.lex")

    def test_stopped_at_its_end(self):
        """SIGTERM in the moment in which a reload ends is not lost"""
        put("k")
        for attempt in range(25):
            with self.serving(*OWN) as server:
                server.process.send_signal(signal.SIGHUP)
                self.assertTrue(wait_until(lambda: "reloaded" in server.messages(), pause=0))
                time.sleep(0.00001 * attempt)
                server.process.terminate()
                self.assertEqual(server.process.wait(20), DONE, attempt)

    def test_ends(self):
        """SIGTERM counts though SIGHUP comes all the time; and when the terminal is closed, SIGHUP ends it"""
        put("k")
        with self.serving(*OWN) as server:
            stop = threading.Event()

            def storm():
                while not stop.is_set() and server.process.poll() is None:
                    server.process.send_signal(signal.SIGHUP)
            thread = threading.Thread(target=storm)
            thread.start()
            time.sleep(0.2)
            server.process.terminate()
            self.assertEqual(server.process.wait(20), DONE)
            stop.set()
            thread.join()
        own, terminal = pty.openpty()
        process = subprocess.Popen([test_cli.program, "serve", *map(str, OWN), "--port", "0"], cwd=test_cli.temporary, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=terminal)
        os.close(terminal)
        self.assertIn(b"listening", process.stdout.readline())
        os.close(own)
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(20), DONE)
        process.stdout.close()


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
