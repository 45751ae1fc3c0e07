#!/usr/bin/env python3
"""Questions of many clients in the requests of one model: test_cli_serve_batches.py [TEST...] BUILD_DIR. Run by ctest.

A text alone asks in requests of its own; of many clients their questions meet. No answer depends on it, and neither
SIGHUP nor SIGTERM loses a question that waits.
"""
import concurrent.futures
import contextlib
import http.client
import json
import signal
import sys
import threading

sys.dont_write_bytecode = True
import http_server  # noqa: E402
import test_cli  # noqa: E402  (it runs no test by being imported)
from serving import JSON, TEXT, Serve, make_files, wait_until  # noqa: E402
from test_cli import write  # noqa: E402

CLIENTS = 16
DRAWS = ("--labels", "neg,pos", "--lexicon", "k.lex", "--seed", 3, "--method", "binomial", "--n", 64, "--n0", 16, "--batch", 8)

# Answers after a while, and writes down how many texts each request had.
COUNTING = """
import json, sys, time
with open("sizes.txt", "a") as sizes:
    for line in sys.stdin:
        request = json.loads(line)
        print(len(request["texts"]), file=sizes, flush=True)
        time.sleep(0.01)
        labels = ["neg" if "bad" in text else "pos" for text in request["texts"]]
        print(json.dumps({"id": request["id"], "labels": labels}), flush=True)
"""


@contextlib.contextmanager
def service():
    server = http_server.Service(["neg", "pos"])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_address[1]}/json?fault=slow&delay=0.01"
    finally:
        server.shutdown()
        server.server_close()


def own_text(number):
    return f"Number {number}: {TEXT}"


def ask(server, number):
    status, answer = server.post("/v1/certify", {"text": own_text(number)})
    return status, answer.get("certificates")


def sizes():
    return [int(line) for line in (test_cli.temporary / "sizes.txt").read_text().split()]


class Batches(Serve):
    def compare(self, server, count):
        """Answers of clients who come one by one and all at once, and what `count` says of both."""
        alone = [ask(server, i) for i in range(CLIENTS)]
        first = count()
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            together = list(pool.map(lambda i: ask(server, i), range(CLIENTS)))
        second = count()
        self.assertEqual([status for status, _ in alone], [200] * CLIENTS)
        self.assertEqual(together, alone)
        return first, [after - before for after, before in zip(second, first)]

    def check(self, alone, together):
        """(requests, texts) of clients who came one by one, and all at once"""
        self.assertLessEqual(abs(together[1] - alone[1]), alone[1] // 4)  # the guard asks some again
        self.assertLessEqual(alone[1] / alone[0], 16, "a text alone asks in requests of its own")
        self.assertLess(together[0], alone[0] / 2, "questions of several clients share requests")

    def test_program(self):
        """clients of a program share its requests"""
        write("counting.py", COUNTING)
        write("sizes.txt", "")
        with self.serving("--model", f"exec:{sys.executable} counting.py", "--workers", 1, *DRAWS) as server:
            alone, together = self.compare(server, lambda: [len(sizes()), sum(sizes())])
        self.check(alone, together)
        self.assertLessEqual(max(sizes()), 64)

    def test_service(self):
        """clients of a service share its requests"""
        with service() as (behind, address):
            with self.serving("--model", address, "--concurrency", 1, *DRAWS) as server:
                alone, together = self.compare(server, lambda: [behind.stats["requests"], behind.stats["texts"]])
        self.check(alone, together)

    def in_flight(self, server, how):
        """Answers of clients of whom some wait in the queue of the model when a signal comes."""
        connections = []
        for i in range(CLIENTS):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.request("POST", "/v1/certify", json.dumps({"text": own_text(i)}).encode(), JSON)
            connections.append(connection)
        server.process.send_signal(how)
        answers = []
        for connection in connections:
            response = connection.getresponse()
            answers.append((response.status, json.loads(response.read()).get("certificates")))
            connection.close()
        return answers

    def test_signals(self):
        """a reload and the end lose no question that waits"""
        write("counting.py", COUNTING)
        with self.serving("--model", f"exec:{sys.executable} counting.py", "--workers", 1, *DRAWS) as server:
            expected = [ask(server, i) for i in range(CLIENTS)]
            self.assertEqual(self.in_flight(server, signal.SIGHUP), expected)
            self.assertTrue(wait_until(lambda: "safer: reloaded" in server.messages()), server.messages())
            self.assertEqual(self.in_flight(server, signal.SIGTERM), expected)
            server.process.wait(60)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
