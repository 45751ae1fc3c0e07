#!/usr/bin/env python3
"""Limits per client and in all: test_cli_serve_limits.py [TEST...] BUILD_DIR.

Clients that hold connections, ask too often, or go away do not keep others waiting. Run by ctest. 127.0.0.2 and others of
127.0.0.0/8 play the clients of other machines: 127.0.0.1 itself is not counted.
"""
import concurrent.futures
import contextlib
import http.client
import json
import resource
import select
import socket
import struct
import sys
import threading
import time

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from serving import JSON, TEXT, Serve, make_files, message, read_all, wait_until  # noqa: E402
from test_cli_certify import WITH_K  # noqa: E402

SILENT = 5000  # connections
SLOW = ("--model", f"exec:{sys.executable} slow.py 0.05", "--labels", "neg,pos", "--lexicon", "k.lex", "--workers", 1, "--method", "binomial",
        "--n", 12800, "--batch", 64)  # some ten seconds for a text


def is_open(sock):
    with contextlib.suppress(ConnectionError):
        return not select.select([sock], [], [], 0)[0] or bool(sock.recv(1000, socket.MSG_PEEK))
    return False


class Limits(Serve):
    def connect(self, server, stack, source="127.0.0.1"):
        return stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 30, (source, 0)))

    def ask(self, server, source, path="/v1/predict", body=b'{"text": "a"}', method="POST"):
        """Status and headers."""
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60, source_address=(source, 0))
        with contextlib.closing(connection):
            connection.request(method, path, body, JSON)
            response = connection.getresponse()
            response.read()
            return response.status, response.headers

    def test_thousands_of_silent_ones(self):
        """thousands of connections that say nothing, as they come and as they stay: others do not wait for them"""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        many = min(SILENT, (hard if hard != resource.RLIM_INFINITY else 1 << 20) - 200)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, many + 100), hard))
        try:
            with self.serving(*WITH_K, "--quiet", "--connections", min(1024, hard - 200)) as server, contextlib.ExitStack() as stack:
                times, stop = [], threading.Event()

                def others():
                    while not stop.is_set():
                        start = time.monotonic()
                        status = server.post("/v1/predict", {"text": TEXT})[0]
                        times.append((status, time.monotonic() - start))
                thread = threading.Thread(target=others)
                thread.start()
                for _ in range(many):
                    self.connect(server, stack)
                wait_until(lambda: server.gauge("safer_connections") <= 1024 + 32)
                time.sleep(1)
                stop.set()
                thread.join()
                self.assertEqual({status for status, _ in times}, {200})
                self.assertLess(max(seconds for _, seconds in times), 8)  # of the 20 for which silence is allowed
                self.assertLess(sorted(seconds for _, seconds in times)[len(times) // 2], 1)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def test_who_gives_way(self):
        """the silent give way to the idle, both to those that ask; a request at work is not touched"""
        with self.serving(*SLOW, "--connections", 6) as server, contextlib.ExitStack() as stack:
            working = self.connect(server, stack)
            working.sendall(message("POST", "/v1/certify/stream", json.dumps({"text": TEXT}).encode()))
            got = b""
            while b"event: start" not in got:
                got += working.recv(10000) or self.fail(got)
            idle = self.connect(server, stack)
            idle.sendall(message("GET", "/healthz"))
            self.assertTrue(idle.recv(1000).startswith(b"HTTP/1.1 200 "))
            silent = [self.connect(server, stack) for _ in range(12)]
            self.assertTrue(wait_until(lambda: sum(map(is_open, silent)) <= 4))
            self.assertTrue(wait_until(lambda: is_open(silent[-1])))
            self.assertFalse(is_open(silent[0]), "the oldest goes first")
            self.assertTrue(is_open(idle), "the silent go before the idle")
            self.assertTrue(is_open(working))

    def test_slow_bodies(self):
        """connections full of requests that never end: after a second they give way"""
        with self.serving(*WITH_K, "--connections", 4) as server, contextlib.ExitStack() as stack:
            for _ in range(4):
                self.connect(server, stack).sendall(message("POST", "/v1/predict", b'{"text": "a"}')[:-3])
            time.sleep(1.5)
            start = time.monotonic()
            self.assertEqual(server.post("/v1/predict", {"text": TEXT})[0], 200)
            self.assertLess(time.monotonic() - start, 8)

    def test_full_of_work(self):
        """where all connections wait for answers, a new one is told when to come back"""
        with self.serving(*SLOW, "--connections", 3) as server, contextlib.ExitStack() as stack:
            for _ in range(3):
                sock = self.connect(server, stack)
                sock.sendall(message("POST", "/v1/certify", json.dumps({"text": TEXT}).encode()))
            time.sleep(0.3)
            status, headers, body = server.request("POST", "/v1/predict", b'{"text": "a"}')
            self.assertEqual((status, json.loads(body)["error"]["code"]), (503, "busy"))
            self.assertEqual((headers["Retry-After"], headers["Connection"]), ("1", "close"))

    def test_connections_of_a_client(self):
        """one address has so many connections; others, and this machine, have theirs"""
        with self.serving(*WITH_K, "--client-connections", 4) as server, contextlib.ExitStack() as stack:
            first = [self.connect(server, stack, "127.0.0.2") for _ in range(10)]
            second = [self.connect(server, stack, "127.0.0.3") for _ in range(4)]
            local = [self.connect(server, stack) for _ in range(10)]
            self.assertTrue(wait_until(lambda: sum(map(is_open, first)) == 4))
            self.assertEqual([sum(map(is_open, sockets)) for sockets in (first, second, local)], [4, 4, 10])
            self.assertEqual(self.ask(server, "127.0.0.2")[0], 200)
        with self.serving(*SLOW, "--client-connections", 2) as server, contextlib.ExitStack() as stack:
            for _ in range(2):
                self.connect(server, stack, "127.0.0.2").sendall(message("POST", "/v1/certify", json.dumps({"text": TEXT}).encode()))
            time.sleep(0.3)
            status, headers = self.ask(server, "127.0.0.2")
            self.assertEqual((status, headers["Retry-After"], headers["Connection"]), (429, "1", "close"))
            self.assertEqual(self.ask(server, "127.0.0.3", "/v1/model", None, "GET")[0], 200)

    def test_rate(self):
        """one address asks so often; more is refused with the time to wait; health is not counted"""
        with self.serving(*WITH_K, "--client-rate", 0.5) as server:
            seen = [self.ask(server, "127.0.0.2") for _ in range(4)]
            self.assertEqual(seen[0][0], 200)
            self.assertIn(429, [status for status, _ in seen])
            refused = next(headers for status, headers in seen if status == 429)
            self.assertIn(int(refused["Retry-After"]), (1, 2))
            self.assertEqual({self.ask(server, "127.0.0.2", "/healthz", None, "GET")[0] for _ in range(5)}, {200})
            self.assertEqual({self.ask(server, "127.0.0.1")[0] for _ in range(5)}, {200})
            self.assertEqual(self.ask(server, "127.0.0.3")[0], 200)
            time.sleep(2.1)
            self.assertEqual(self.ask(server, "127.0.0.2")[0], 200)
            self.assertIn('safer_requests_total{path="/v1/predict",status="429"}', server.get("/metrics")[1].decode())

    def test_gone(self):
        """who goes away while its certificate is computed is noticed at once, by its end or by a reset, and so are those in the queue"""
        with self.serving(*SLOW) as server:
            for reset in (False, True):
                with contextlib.ExitStack() as stack:
                    socks = [self.connect(server, stack) for _ in range(3)]
                    for sock in socks:
                        sock.sendall(message("POST", "/v1/certify", json.dumps({"text": TEXT}).encode()))
                    self.assertTrue(wait_until(lambda: server.gauge("safer_busy_threads") >= 1))
                    if reset:
                        for sock in socks:
                            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                start = time.monotonic()
                self.assertTrue(wait_until(lambda: server.gauge("safer_busy_threads") + server.gauge("safer_waiting_texts") == 0))
                self.assertLess(time.monotonic() - start, 4)
                self.assertTrue(wait_until(lambda: server.gauge("safer_connections") == 1))
            self.assertEqual(server.gauge("safer_lost_total"), 6)
            lost = [line for line in server.lines(6) if line.get("lost")]
            self.assertLessEqual({line["status"] for line in lost}, {499, 0})  # 0: the reset was seen first

    def test_half_closed(self):
        """who has only closed its half still gets the answer, after a line that asks whether it is there; HTTP/1.0 gets none"""
        fast = [value if value != 12800 else 640 for value in SLOW]
        with self.serving(*fast) as server, concurrent.futures.ThreadPoolExecutor(2) as pool:
            def half(version):
                with contextlib.ExitStack() as stack:
                    sock = self.connect(server, stack)
                    sock.sendall(message("POST", "/v1/certify", json.dumps({"text": TEXT}).encode()).replace(b"HTTP/1.1", version))
                    sock.shutdown(socket.SHUT_WR)
                    return read_all(sock)
            newer, older = pool.map(half, (b"HTTP/1.1", b"HTTP/1.0"))
            self.assertTrue(newer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 "), newer[:100])
            self.assertEqual(older[8:13], b" 200 ", older[:100])
            for answer in (newer, older):
                self.assertEqual(len(json.loads(answer[answer.index(b"{"):])["certificates"]), 1)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
