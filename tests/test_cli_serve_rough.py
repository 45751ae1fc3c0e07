#!/usr/bin/env python3
"""Clients that no good program would be, and the end of the server: test_cli_serve_rough.py [TEST...] BUILD_DIR.

Requests that are slow, cut, ambiguous or made at random must leave the server standing; when it is
told to stop, what was accepted is answered. Run by ctest.
"""
import concurrent.futures
import contextlib
import http.client
import json
import math
import pathlib
import random
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from test_cli import DONE, USAGE  # noqa: E402
from test_cli_certify import WITH_K  # noqa: E402
from serving import TEXT, Serve, Server, events_of, message, read_all, read_response, make_files  # noqa: E402

QUIET = 0.2 # seconds; the server waits for a little longer


# ------------------------------------------------------------ hard to please

class Rough(Serve):
    def test_slow_loris(self):
        """who sends head or body a byte at a time, or nothing, is shut out; others are served meanwhile"""
        with self.serving(*WITH_K, "--patience", 1) as server:
            whole = message("POST", "/v1/predict", b'{"text": "a"}')
            cuts = {"head": 20, "body": len(whole) - 5, "nothing": 0}
            sockets = {name: server.raw() for name in cuts}
            for name, cut in cuts.items():
                sockets[name].sendall(whole[:cut])
            start, open_ones, at = time.monotonic(), set(cuts), dict(cuts)
            while open_ones and time.monotonic() - start < 5:
                for name in list(open_ones):
                    if name != "nothing" and at[name] < len(whole) - 1:
                        with contextlib.suppress(ConnectionError):
                            sockets[name].sendall(whole[at[name]:at[name] + 1] if name == "head" else b"")
                        at[name] += 1
                    if select.select([sockets[name]], [], [], 0)[0]:
                        with contextlib.suppress(ConnectionError):
                            self.assertEqual(sockets[name].recv(1000), b"")
                        open_ones.discard(name)
                self.assertEqual(server.post("/v1/predict", {"text": "a"})[0], 200)
                time.sleep(0.05)
            self.assertEqual(open_ones, set())
            self.assertLess(time.monotonic() - start, 4)
            for sock in sockets.values():
                sock.close()

    def test_slow_reader(self):
        """who does not take an answer away is shut out"""
        with self.serving(*WITH_K, "--patience", 1) as server:
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            sock.connect(("127.0.0.1", server.port))
            body = json.dumps({"text": "good film " * 9000}).encode()
            sock.sendall(message("POST", "/v1/words", body) * 8)
            limit = time.monotonic() + 15
            while time.monotonic() < limit and not any(line.get("lost") for line in server.lines()):
                time.sleep(0.1)
            self.assertTrue(any(line.get("lost") for line in server.lines()), server.lines())
            sock.close()

    def test_pipelining(self):
        """requests that come together are answered in order"""
        with self.serving(*WITH_K, "--seed", 1) as server:
            texts = [TEXT, "good", "bad film", "", TEXT * 20, "fine"]
            expected = [server.post("/v1/certify", {"text": text})[1] for text in texts]
            with server.raw() as sock:
                sock.sendall(b"".join(message("POST", "/v1/certify", json.dumps({"text": text}).encode())
                                      for text in texts) +
                             message("GET", "/healthz") + message("POST", "/v1/certify", b"nonsense") +
                             message("GET", "/healthz"))
                file = sock.makefile("rb")
                for want in expected:
                    status, body = read_response(file)
                    self.assertEqual((status, json.loads(body)), (200, want))
                self.assertEqual([read_response(file)[0] for _ in range(3)], [200, 400, 200])

    def test_smuggling(self):
        """a request that two readers could understand differently is refused, and what follows is not read"""
        head = b"POST /v1/words HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        body, after = b'{"text": "a"}', b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        length = b"Content-Length: %d\r\n" % len(body)
        with self.serving(*WITH_K, "--patience", 5) as server:
            for lines, sent in ((length + b"Content-Length: 3\r\n", body), (b"Content-Length: 3\r\n" + length, body),
                                (length * 2, body),
                                (length + b"Transfer-Encoding: chunked\r\n", chunks),
                                (b"Transfer-Encoding: chunked\r\n" + length, chunks),
                                (b"Host: example.org\r\n" + length, body), (length.replace(b":", b" :"), body),
                                (b"X Y: 1\r\n" + length, body)):
                with self.subTest(lines=lines), server.raw() as sock:
                    sock.sendall(head + lines + b"\r\n" + sent + after)
                    self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", read_all(sock)), [b"400"])
            with server.raw() as sock:
                sock.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
                self.assertTrue(read_all(sock).startswith(b"HTTP/1.1 400 "))
            with server.raw() as sock:
                sock.sendall(head + length + b"\r\n" + body + after)
                sock.shutdown(socket.SHUT_WR)
                self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", read_all(sock)), [b"200", b"200"])

    def test_half_closed(self):
        """who says that nothing more will come is answered all the same"""
        with self.serving("--model", f"exec:{sys.executable} slow.py 0.05", "--labels", "neg,pos", "--lexicon",
                          "k.lex") as server:
            for wait in (0, 0.02, 0.2):
                with server.raw() as sock:
                    sock.sendall(message("POST", "/v1/predict", b'{"text": "good film"}'))
                    time.sleep(wait)
                    sock.shutdown(socket.SHUT_WR)
                    interim = b"HTTP/1.1 100 Continue\r\n\r\n"  # asks whether anybody is there
                    self.assertTrue(read_all(sock).removeprefix(interim).startswith(b"HTTP/1.1 200 "))

    def test_gone(self):
        """clients that go away, in the middle of a request, an answer or a stream, cost nothing but their time"""
        options = ("--model", f"exec:{sys.executable} slow.py 0.02", "--labels", "neg,pos", "--lexicon", "k.lex",
                   "--workers", 2, "--method",
                   "binomial", "--n", 6400, "--batch", 64, "--patience", 1)
        with self.serving(*options) as server:
            body = json.dumps({"text": TEXT}).encode()
            for path in ("/v1/certify/stream", "/v1/predict"):
                for _ in range(3):
                    with server.raw() as sock:
                        sock.sendall(message("POST", path, body))
                        time.sleep(0.1)
                        got, piece = b"", b"?"
                        while path.endswith("stream") and b"event: start" not in got and piece:
                            piece = sock.recv(10000)
                            got += piece
                        self.assertTrue(piece, got)
            with server.raw() as sock:
                sock.sendall(message("POST", "/v1/predict", body)[:-3])
            limit = time.monotonic() + 30
            at_work = lambda: server.gauge("safer_busy_threads") + server.gauge("safer_connections") - 1  # noqa: E731
            while at_work() and time.monotonic() < limit:
                time.sleep(0.2)
            self.assertEqual((server.gauge("safer_busy_threads"), server.gauge("safer_waiting_texts")), (0, 0))
            self.assertEqual(server.gauge("safer_connections"), 1)

    def test_connections(self):
        """more connections than allowed wait until others are gone"""
        with self.serving(*WITH_K, "--connections", 3, "--patience", 2) as server:
            idle = [server.raw() for _ in range(3)]
            start = time.monotonic()
            self.assertEqual(server.get("/healthz")[0], 200)
            self.assertLess(time.monotonic() - start, 10)
            for sock in idle:
                sock.close()

    def test_files(self):
        """as many files may be open as connections need, or it does not start"""
        import resource
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        done = subprocess.run([test_cli.program, "serve", *WITH_K, "--port", "0"], cwd=test_cli.temporary,
                              capture_output=True, text=True, timeout=60,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)))
        self.assertEqual((done.returncode, done.stdout), (USAGE, ""))
        self.assertIn("--connections 1024: at most 104", done.stderr)
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
        try:
            with self.serving(*WITH_K, "--connections", 300) as server:
                limits = pathlib.Path(f"/proc/{server.process.pid}/limits").read_text()
                self.assertRegex(limits, r"Max open files +396 ")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def test_fuzz(self):
        """thousands of requests, each wrong in its own way: it always stands, and its answers are HTTP"""
        good = [message("POST", path, json.dumps(value).encode()) for path, value in (
            ("/v1/predict", {"text": "good film"}), ("/v1/certify", {"texts": ["bad", "good"], "labels": ["1", None]}),
            ("/v1/certify/stream", {"text": "dull"}), ("/v1/words", {"text": "a fine plot"}))]
        good += [message("GET", "/metrics"), message("GET", "/")]
        junk = [b"\0", b"\xff", b"\r\n", b"\r\n\r\n", b"{", b"}", b'"', b"\\u0000", b"[" * 300, b"A" * 3000, b": ",
                b"Content-Length: 5\r\n",
                b"Transfer-Encoding: chunked\r\n", b"-1", b"99999999999999999999", b" HTTP/1.1", b" HTTP/0.9",
                b"Expect: 100-continue\r\n",
                b"Connection: close\r\n", b"%00", b"\t", b"null", b"1e999", b"\\ud800"]

        def mutate(chance):
            data = chance.choice(good)
            for _ in range(chance.randrange(1, 5)):
                at, to = sorted(chance.randrange(len(data) + 1) for _ in range(2))
                kind = chance.randrange(5)
                if kind == 0: data = data[:at] + chance.choice(junk) + data[at:]
                elif kind == 1: data = data[:at] + data[to:]
                elif kind == 2: data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1:]
                elif kind == 3: data = data[:to] + data[at:]
                else: data = data + chance.choice(good)
            return data

        def attack(server, seed, until):
            """How many were sent, and what came back that is not HTTP."""
            sent, wrong, chance_of = 0, [], random.Random(seed)
            while time.monotonic() < until and sent < 1000:
                with contextlib.suppress(ConnectionError, TimeoutError), server.raw(5) as sock:
                    sock.sendall(mutate(chance_of))
                    with contextlib.suppress(OSError):
                        sock.shutdown(socket.SHUT_WR)
                    got = read_all(sock)
                    if got and not got.startswith(b"HTTP/1."):
                        wrong.append(got[:100])
                sent += 1
            return sent, wrong

        with self.serving(*WITH_K, "--n", 64, "--n0", 10, "--patience", 0.2, "--max-body", 20000, "--max-text",
                          5000) as server:
            until = time.monotonic() + 12
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                results = list(pool.map(lambda seed: attack(server, seed, until), range(8)))
            self.assertEqual([wrong for _, wrong in results], [[]] * 8)
            self.assertGreater(sum(sent for sent, _ in results), 300)
            self.assertIsNone(server.process.poll())
            self.assertEqual(server.post("/v1/predict", {"text": "good film"})[0], 200)


# ------------------------------------------------------------------ stopping

class Stopping(Serve):
    def hammer(self, port, stop, results):
        """Asks again and again; counts what was sent whole and what was answered. A connection that was used and then
        silent for QUIET seconds may be closed, as HTTP allows; on a busy machine this thread may be so slow."""
        body = message("POST", "/v1/predict", json.dumps({"text": TEXT}).encode())
        while not stop.is_set():
            try:
                sock = socket.create_connection(("127.0.0.1", port), timeout=30)
            except OSError:
                return # nobody listens any more
            before = math.inf # when it asked here last
            with sock, sock.makefile("rb") as file:
                while not stop.is_set():
                    was_silent = time.monotonic() - before > QUIET
                    before = time.monotonic()
                    try:
                        sock.sendall(body)
                    except OSError:
                        break
                    try:
                        first = file.readline()
                        if not first:
                            results.append("silent" if was_silent else "closed")
                            break
                        headers = http.client.parse_headers(file)
                        content = file.read(int(headers["Content-Length"]))
                        results.append(int(first.split()[1]) if len(content) == int(headers["Content-Length"])
                                       else "cut")
                        if headers["Connection"] == "close":
                            break
                    except OSError:
                        results.append("silent" if was_silent else "reset")
                        break

    def test_loses_nothing(self):
        """SIGTERM under load: what was accepted is answered"""
        for _ in range(3):
            server = Server(*WITH_K, "--quiet", "--n", 400)
            stop, results = threading.Event(), []
            threads = [threading.Thread(target=self.hammer, args=(server.port, stop, results)) for _ in range(16)]
            for thread in threads:
                thread.start()
            time.sleep(0.7)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(30), DONE)
            stop.set()
            for thread in threads:
                thread.join()
            self.assertGreater(results.count(200), 50)
            self.assertEqual(set(results) - {"silent"}, {200})
            server.stop()
            server.log.close()

    def test_finishes(self):
        """it ends when the slow request and the stream at work are answered, not before, and takes no new ones"""
        options = ("--model", f"exec:{sys.executable} slow.py 0.05", "--labels", "neg,pos", "--lexicon", "k.lex",
                   "--workers", 2, "--method",
                   "binomial", "--n", 1280, "--batch", 64)
        for how in (signal.SIGTERM, signal.SIGINT):
            server = Server(*options)
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                answer = pool.submit(server.post, "/v1/certify", {"text": TEXT})
                stream = pool.submit(server.request, "POST", "/v1/certify/stream", json.dumps({"text": TEXT}))
                time.sleep(0.4)
                server.process.send_signal(how)
                time.sleep(0.2)
                with self.assertRaises(OSError):
                    server.raw(1).close()
                self.assertEqual(answer.result()[0], 200)
                self.assertEqual(events_of(stream.result()[2])[-1][0], "result")
            self.assertEqual(server.process.wait(20), DONE)
            self.assertIn("stopping", server.messages())
            server.stop()
            server.log.close()

    def test_asked_at_the_end(self):
        """connections that were silent and ask just when it ends: answered or closed, and it ends well"""
        for attempt in range(8):
            with self.serving(*WITH_K) as server, contextlib.ExitStack() as stack:
                socks = [stack.enter_context(server.raw()) for _ in range(40)]
                for sock in socks:
                    sock.sendall(message("GET", "/healthz"))
                    sock.recv(1000)
                time.sleep(0.3)
                server.process.send_signal(signal.SIGTERM)
                for sock in socks:
                    with contextlib.suppress(ConnectionError):
                        sock.sendall(message("POST", "/v1/certify", json.dumps({"text": TEXT}).encode()))
                    time.sleep(0.0002 * attempt)
                for sock in socks:
                    got = read_all(sock)
                    self.assertTrue(not got or got.startswith(b"HTTP/1.1 200 "), got[:100])
                server.process.wait(20)

    def test_at_once(self):
        """a second signal ends it at once"""
        options = ("--model", f"exec:{sys.executable} slow.py 0.5", "--labels", "neg,pos", "--lexicon", "k.lex",
                   "--workers", 1)
        server = Server(*options)
        with server.raw() as sock:
            sock.sendall(message("POST", "/v1/predict", json.dumps({"text": TEXT}).encode()))
            time.sleep(0.3)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            self.assertIsNone(server.process.poll())
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(5), 130)
        server.stop()
        server.log.close()


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
