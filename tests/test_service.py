#!/usr/bin/env python3
"""safer serve as a service: systemd's unit, what systemd is told, and nginx in front: test_service.py [TEST...] BUILD_DIR.

The unit is checked by systemd-analyze, and the server runs under its list of system calls, applied here as systemd would; both are
skipped, with a line, where systemd-analyze is not there. So is nginx, which runs with examples/nginx.conf. Run by ctest.
"""
import concurrent.futures
import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import must  # noqa: E402
from serving import JSON, TEXT, Serve, make_files, wait_until  # noqa: E402
from test_cli_certify import WITH_K  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
ANALYZE = shutil.which("systemd-analyze")
NGINX = os.environ.get("SAFER_NGINX") or shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def run(*arguments, **more):
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=120, **more)


# ------------------------------------------------------------------- systemd

def system_calls(allowed, denied):
    """The numbers of what the groups of systemd mean here."""
    groups, name = {}, None
    for line in run(ANALYZE, "syscall-filter").stdout.splitlines():
        word = line.split("#")[0].strip()
        if re.match(r"@\S+$", line):
            name = line.strip()
            groups[name] = []
        elif word and name and line[:1] == " ":
            groups[name].append(word)

    def names(group):
        for word in groups[group]:
            yield from names(word) if word.startswith("@") else [word]
    known = run(os.environ.get("CC") or "cc", "-dM", "-E", "-include", "asm/unistd.h", "-x", "c", "/dev/null").stdout
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)$", known, re.M)}
    wanted = {name for group in allowed for name in names(group)} - {name for group in denied for name in names(group)}
    return sorted(numbers[name] for name in wanted & set(numbers))


def only(numbers):
    """For preexec_fn: from now on another system call kills the process (SIGSYS)."""
    load, equal, give, allow, kill = 0x20, 0x15, 0x06, 0x7fff0000, 0x80000000
    steps = [(load, 0, 0, 0)]
    for number in numbers:
        steps += [(equal, 0, 1, number), (give, 0, 0, allow)]
    steps.append((give, 0, 0, kill))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
    library = ctypes.CDLL(None, use_errno=True)

    def apply():
        if library.prctl(38, 1, 0, 0, 0) or library.prctl(22, 2, program, 0, 0):  # no new privileges; a filter
            raise OSError(ctypes.get_errno(), "prctl")
    apply.keep = code
    return apply


class Systemd(Serve):
    def unit(self):
        return (pathlib.Path(test_cli.program).parent / "safer.service").read_text()

    def setting(self, name):
        return re.findall(rf"(?m)^{name}=(.*)$", self.unit())

    def needs_systemd(self):
        if not ANALYZE:
            self.skipTest("systemd-analyze is not here")

    def test_told(self):
        """systemd is told when it is ready, reloads, and stops; by a socket in a folder and by an abstract one"""
        for name in (str(test_cli.temporary / "notify"), "\0safer-test-%d" % os.getpid()):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
                listener.bind(name)
                listener.settimeout(30)
                with self.serving(*WITH_K, env={"NOTIFY_SOCKET": name.replace("\0", "@")}) as server:
                    self.assertEqual(listener.recv(1000), b"READY=1")
                    server.process.send_signal(signal.SIGHUP)
                    self.assertRegex(listener.recv(1000), rb"^RELOADING=1\nMONOTONIC_USEC=\d+$")
                    self.assertEqual(listener.recv(1000), b"READY=1")
                    server.process.send_signal(signal.SIGTERM)
                    self.assertEqual(listener.recv(1000), b"STOPPING=1")
                    server.process.wait(30)
        for name in ("", "x", "/no/such/socket", "/" + 200 * "x"):
            with self.serving(*WITH_K, env={"NOTIFY_SOCKET": name}) as server:
                self.assertEqual(server.get("/healthz")[0], 200)

    def test_unit(self):
        """systemd accepts the unit, and finds little that the service could do"""
        self.needs_systemd()
        path = test_cli.temporary / "safer.service"
        path.write_text(self.unit().replace(self.setting("ExecStart")[0].split()[0], str(test_cli.program)))
        done = run(ANALYZE, "verify", "--man=no", path)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        done = run(ANALYZE, "security", "--offline=yes", "--threshold=25", path)  # tenths: 100 is all of it
        if "unrecognized option" in done.stderr:
            self.skipTest("systemd-analyze is too old to judge a unit that is not installed")
        self.assertEqual(done.returncode, 0, done.stdout[-300:] + done.stderr)

    def test_system_calls(self):
        """serving, reloading and stopping need no system call that the unit forbids: models of files, and a program"""
        self.needs_systemd()
        allowed, denied = (value.split() for value in self.setting("SystemCallFilter"))
        numbers = system_calls(allowed, [name.lstrip("~") for name in denied])
        self.assertGreater(len(numbers), 150)
        must("train", "--arch", "cnn", "--data", "demo/train.tsv", "--lexicon", "k.lex", "--epochs", 1, "--dim", 8, "-o", "cnn.model")
        program = ("--model", f"exec:{sys.executable} slow.py 0", "--labels", "neg,pos", "--lexicon", "k.lex")
        for files in (WITH_K, ("--model", "cnn.model", "--lexicon", "k.lex"), program):
            with self.serving(*files, "--access-log", "calls.log", preexec_fn=only(numbers)) as server:
                for path in ("/v1/predict", "/v1/certify", "/v1/words"):
                    self.assertEqual(server.post(path, {"text": TEXT})[0], 200)
                self.assertEqual(server.request("POST", "/v1/certify/stream", json.dumps({"text": TEXT}))[0], 200)
                self.assertEqual(server.get("/metrics")[0], 200)
                server.process.send_signal(signal.SIGHUP)
                self.assertTrue(wait_until(lambda: "safer: reloaded" in server.messages()), server.messages())
        # The filter works: without the first of these calls nothing starts.
        done = subprocess.run([test_cli.program, "--version"], capture_output=True, preexec_fn=only(numbers[1:]))
        self.assertEqual(done.returncode, -signal.SIGSYS)


# --------------------------------------------------------------------- nginx

def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Proxy(Serve):
    @contextlib.contextmanager
    def proxied(self, *arguments, change=()):
        """A server, and the port of an nginx in front of it that has examples/nginx.conf."""
        if not NGINX:
            self.skipTest("nginx is not here (scripts/bootstrap --service)")
        folder = test_cli.temporary / "nginx"
        folder.mkdir(exist_ok=True)
        made = run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=safer.example", "-addext",
                   "subjectAltName=DNS:safer.example", "-keyout", folder / "safer.key", "-out", folder / "safer.crt")
        self.assertEqual(made.returncode, 0, made.stderr)
        with self.serving(*arguments) as server:
            port, text = free_port(), (ROOT / "examples/nginx.conf").read_text()
            for old, new in (("listen 8443", f"listen 127.0.0.1:{port}"), ("127.0.0.1:8080", f"127.0.0.1:{server.port}"), *change):
                self.assertIn(old, text)
                text = text.replace(old, new)
            (folder / "safer.conf").write_text(text)
            temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
            (folder / "main.conf").write_text(f"daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
                                              f"events {{}}\nhttp {{\naccess_log off;\n{temporary}include {folder}/safer.conf;\n}}\n")
            nginx = subprocess.Popen([NGINX, "-e", folder / "error.log", "-p", folder, "-c", folder / "main.conf"], stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT)
            try:
                def listens():
                    if nginx.poll() is not None:
                        self.fail(nginx.stdout.read().decode() + (folder / "error.log").read_text())
                    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                        return True
                self.assertTrue(wait_until(listens))
                yield server, port
            finally:
                nginx.terminate()
                nginx.communicate()

    def connect(self, port):
        trusted = ssl.create_default_context(cafile=test_cli.temporary / "nginx/safer.crt")
        sock = socket.create_connection(("127.0.0.1", port), 60)
        return trusted.wrap_socket(sock, server_hostname="safer.example")

    def ask(self, port, method, path, body=None):
        connection = http.client.HTTPConnection("safer.example", port, timeout=60)
        connection.sock = self.connect(port)
        with contextlib.closing(connection):
            connection.request(method, path, body, JSON)
            response = connection.getresponse()
            return response.status, response.read()

    def test_answers(self):
        """by TLS, under another name: the same answers; the page; no metrics; what is too long is refused"""
        with self.proxied(*WITH_K, "--seed", 7) as (server, port):
            for path in ("/v1/predict", "/v1/certify", "/v1/words"):
                body = json.dumps({"text": TEXT})
                self.assertEqual(self.ask(port, "POST", path, body), server.request("POST", path, body)[::2])
            self.assertEqual(self.ask(port, "GET", "/")[0], 200)
            self.assertEqual(self.ask(port, "GET", "/metrics")[0], 404)
            self.assertEqual(self.ask(port, "POST", "/v1/predict", json.dumps({"text": "x" * 1100000}))[0], 413)

    def test_many(self):
        """more than the rate allows is refused with 429 by the proxy, and nothing else goes wrong"""
        with self.proxied(*WITH_K, change=[("rate=20r/s", "rate=1r/s"), ("burst=40", "burst=3")]) as (server, port):
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                seen = list(pool.map(lambda _: self.ask(port, "POST", "/v1/predict", json.dumps({"text": TEXT}))[0], range(24)))
            self.assertEqual(set(seen), {200, 429})

    def test_stream(self):
        """a stream arrives as it grows; and when its client goes away, or that of a certificate, the work ends"""
        slow = ("--model", f"exec:{sys.executable} slow.py 0.05", "--labels", "neg,pos", "--lexicon", "k.lex", "--workers", 1, "--method", "binomial",
                "--n", 12800, "--batch", 64)
        with self.proxied(*slow) as (server, port):
            for path, expected in (("/v1/certify/stream", b"event: start"), ("/v1/certify", b"")):
                with self.connect(port) as sock:
                    body = json.dumps({"text": TEXT}).encode()
                    sock.sendall(b"POST %s HTTP/1.1\r\nHost: safer.example\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" %
                                 (path.encode(), len(body), body))
                    got = b""
                    while expected not in got:
                        got += sock.recv(10000) or self.fail(got)
                    self.assertTrue(wait_until(lambda: server.gauge("safer_busy_threads") >= 1))
                start = time.monotonic()
                self.assertTrue(wait_until(lambda: server.gauge("safer_busy_threads") == 0, 8), "the work goes on for nobody")
                self.assertLess(time.monotonic() - start, 8)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
