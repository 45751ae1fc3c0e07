"""A server to test, and what its clients need: requests as bytes, responses and streams read back."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time

import test_cli
import test_cli_certify
from test_cli import DONE, Case, write

TOKEN = "correct-horse-battery-staple"
JSON = {"Content-Type": "application/json"}
TEXT = "The boring film is not bad but I loved the dull fine plot."

# A model that takes its time: as many seconds for every batch as its argument says. Its labels may follow.
SLOW = """
import json, sys, time
neg, pos = sys.argv[2:] or ("neg", "pos")
for line in sys.stdin:
    request = json.loads(line)
    time.sleep(float(sys.argv[1]))
    labels = [neg if "bad" in text else pos for text in request["texts"]]
    print(json.dumps({"id": request["id"], "labels": labels}), flush=True)
"""


def make_files():
    test_cli_certify.make_files()
    write("slow.py", SLOW)


def texts_of(name, most=None):
    """(label, text) of a TSV file."""
    rows = [line.split("\t") for line in (test_cli.temporary / name).read_text().split("\n")[:-1]]
    plain = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r"}
    return [(row[1], re.sub(r"\\[\\tnr]", lambda found: plain[found[0]], row[2])) for row in rows][:most]


class Server:
    """A server on a port of its own."""

    def __init__(self, *arguments, env=None, preexec_fn=None):
        self.log = open(test_cli.temporary / "serve.log", "w+b")
        self.process = subprocess.Popen([test_cli.program, "serve", *map(str, arguments), "--port", "0", "--json"],
                                        cwd=test_cli.temporary,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log,
                                        env={**os.environ, **(env or {})}, preexec_fn=preexec_fn)
        said = b""
        while not said.endswith(b"}\n"):
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"it did not start: {self.process.wait()} {self.messages()}")
            said += line
        self.url, self.port = (json.loads(said)[key] for key in ("url", "port"))

    def messages(self):
        self.log.seek(0)
        return self.log.read().decode()

    def lines(self, count=0):
        """The access log, once it has so many lines: they are written when an answer is gone."""
        limit = time.monotonic() + 10
        while self.messages().count("\n{") + self.messages().startswith("{") < count and time.monotonic() < limit:
            time.sleep(0.02)
        return [json.loads(line) for line in self.messages().splitlines() if line.startswith("{")]

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(60)
        self.process.stdout.close()
        return code

    def raw(self, timeout=30):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def request(self, method, path, body=None, headers=JSON, timeout=60):
        """Status, headers and body as bytes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def post(self, path, value, **more):
        status, headers, body = self.request("POST", path, json.dumps(value).encode(), **more)
        return status, json.loads(body)

    def get(self, path, **more):
        status, headers, body = self.request("GET", path, **more)
        return status, body

    def gauge(self, name):
        return float(re.search(rf"(?m)^{re.escape(name)} (\S+)$", self.get("/metrics")[1].decode())[1])


def wait_until(condition, seconds=30, pause=0.02):
    """Whether it is met by then."""
    limit = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < limit:
        time.sleep(pause)
    return met


def message(method, path, body=b"", *lines):
    """A request as bytes."""
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json",
            f"Content-Length: {len(body)}", *lines]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def read_response(file):
    """Status and body of the next response with a length; (None, b"") at the end."""
    first = file.readline()
    if not first:
        return None, b""
    headers = http.client.parse_headers(file)
    return int(first.split()[1]), file.read(int(headers["Content-Length"]))


def read_all(connection):
    """What comes until the other side closes, or resets."""
    got = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            got += piece
    return got


def events_of(body):
    """(event, data) of a stream."""
    pairs = []
    for block in body.decode().split("\n\n")[:-1]:
        event, data = block.split("\n")
        pairs.append((event.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return pairs


class Serve(Case):
    @contextlib.contextmanager
    def serving(self, *arguments, code=DONE, **more):
        """A server that is stopped at the end, and must then have ended well."""
        server = Server(*arguments, **more)
        try:
            yield server
            self.assertEqual(server.stop(), code, server.messages())
            self.assertNotIn("ERROR: ", server.messages())
            self.assertNotIn("runtime error", server.messages())
        finally:
            server.process.kill()
            server.stop()
            server.log.close()

    def error(self, answer, status, code):
        self.assertEqual((answer[0], answer[1]["error"]["code"]), (status, code), answer)
        self.assertTrue(answer[1]["error"]["message"])
        self.assertEqual(set(answer[1]), {"error"})
