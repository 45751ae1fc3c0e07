#!/usr/bin/env python3
"""Remote models, as users have them: test_cli_remote.py [TEST...] BUILD_DIR. Run by ctest.

One model, a function of the text (http_server.py), is asked through a program and through
every profile of a service, with faults and without: the records are always the same, and
their counts are those of the draws that safer sample prints.
"""
import base64
import collections
import hashlib
import http.server
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse

sys.dont_write_bytecode = True
import http_server  # noqa: E402
import test_cli  # noqa: E402  (it runs no test by being imported)
from test_cli import DONE, INPUT, SYSTEM, USAGE, run, write  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
LABELS = ["neg", "pos"]
MODEL = http_server.Model(LABELS)
TOKEN = "s3cret-Token-93"
CHANGED = "the model's answers to the probe set changed"

# A program that answers as the service does; its arguments make it misbehave.
CHILD = f"""
import json, os, random, sys
sys.path.insert(0, {str(HERE)!r})
import http_server
LABELS = {LABELS!r}
model, how = http_server.Model(LABELS), sys.argv[1] if len(sys.argv) > 1 else ""
open(f"pids/{{os.getpid()}}", "w").close()
for line in sys.stdin:
    request = json.loads(line)
    labels = [model.label(text) for text in request["texts"]]
    if how == "random": labels = [random.choice([label, "neg", "pos"]) for label in labels]
    if how == "late":  # a draw, asked again, is answered otherwise
        past = open("asked").read().splitlines() if os.path.exists("asked") else []
        labels = [LABELS[label == "neg"] if "awful" in text and json.dumps(text) in past else label for text, label in zip(request["texts"], labels)]
        with open("asked", "a") as file: print(*map(json.dumps, request["texts"]), sep="\\n", file=file)
    if how == "other": labels = [LABELS[label == "neg"] for label in labels]
    if how == "place":  # in texts that are not those of place.tsv
        labels = [LABELS[i % 2] if "film" not in text and "Review" in text else label for i, (text, label) in enumerate(zip(request["texts"], labels))]
    if how == "log": print(json.dumps(request["texts"]), file=open("asked", "a"))
    if how == "unknown": labels[0] = "splendid"
    if how == "few": labels.pop()
    if how == "complain": print("cannot open the weights", file=sys.stderr); sys.exit(3)
    if how == "mute": continue
    if how == "garbage": print("Loading model...")
    if how == "none": labels = [None if len(text) % 3 == 0 else label for text, label in zip(request["texts"], labels)]
    answer = {{"id": request["id"], "labels": labels}}
    if how == "scores": answer = {{"id": request["id"], "scores": [model.scores(text) for text in request["texts"]]}}
    if how == "nan": answer = {{"id": request["id"], "scores": [[float("nan"), 1] for _ in labels]}}
    print(json.dumps(answer), flush=True)
"""

PROFILES = {
    "json": ["/json"],
    "scores": ["/scores", "--answer", "/scores"],
    "one": ["/one", "--request", '{"text": {{text}}}', "--answer", "/result/label"],
    "pipeline": ["/pipeline", "--request", '{"inputs": {{texts}}}'],
    "kserve": ["/v2/models/m/infer", "--profile", "kserve"],
    "kserve scores": ["/v2/models/scores/infer", "--profile", "kserve"],
    "tei": ["/predict", "--profile", "tei"],
    "openai": ["/v1/chat/completions", "--profile", "openai", "--name", "any"],
}

service = None
reference = None


def prepare():
    global service, reference
    words = "good\tfine great\nbad\tpoor awful\nfilm\tmovie picture\nlong\tlengthy\nplot\tstory\n"
    write("table.tsv", words)
    rows = ["A good film with a long plot.", "A bad film.", "Good plot, good picture, fine movie, lengthy story!", "",
            "The plot was bad and the film was long, but a great picture.", "Nothing of the kind."]
    write("data.tsv", "".join(f"r{i}\t{LABELS[i % 2]}\t{text * (1 + i % 3)}\n" for i, text in enumerate(rows * 2)))
    write("child.py", CHILD)
    (test_cli.temporary / "pids").mkdir()
    done = run("lexicon", "import", "--table", "table.tsv", "--kernel", "component", "-o", "words.lex")
    assert done.code == DONE, done.err
    service = http_server.Service(LABELS)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    reference = certify("reference", "exec:python3 child.py")[0]


def certify(name, model, *more, code=DONE, **options):
    """A run: its records without what names the model, and the result."""
    path = test_cli.temporary / f"{name}.jsonl"
    if "--resume" not in more:
        path.unlink(missing_ok=True)
    if "--model-name" not in more:
        more += "--model-name", "the model"
    done = run("certify", "--model", model, "--lexicon", "words.lex", "--data", "data.tsv", "--n", 300, "--n0", 30, "--workers", 2, "--json",
               "-o", path.name, *more, **options)
    assert done.code == code, (done.code, done.err)
    return (records(path) if code == DONE else None), done


def verify(run_name, model, *more, name="the model"):
    return run("verify", f"{run_name}.jsonl", "--model", model, "--model-name", name, "--lexicon", "words.lex", "--data", "data.tsv", *more)


def records(path):
    config, *rows = map(json.loads, path.read_text().splitlines())
    return [{key: value for key, value in row.items() if key not in ("seconds", "check")} for row in rows]


def address(path, **query):
    text = "&".join(f"{name}={value}" for name, value in query.items())
    return f"http://127.0.0.1:{service.server_address[1]}{path}" + (f"?{text}" if text else "")


class Exec(unittest.TestCase):
    def test_counts(self):
        """the counts of every record are those of the draws, asked directly"""
        rows, _ = certify("binomial", "exec:python3 child.py", "--method", "binomial")
        drawn = run("sample", "--lexicon", "words.lex", "--data", "data.tsv", "--count", 300, "--json")
        chosen = run("sample", "--lexicon", "words.lex", "--data", "data.tsv", "--count", 30, "--stage", "selection", "--json")
        votes, elected = (collections.defaultdict(collections.Counter) for _ in range(2))
        for out, into in ((drawn, votes), (chosen, elected)):
            self.assertEqual(out.code, DONE, out.err)
            for draw in json.loads(out.out):
                into[draw["id"]][MODEL.label(draw["text"])] += 1
        for row in rows:
            self.assertEqual(row["counts"], {label: votes[row["id"]][label] for label in LABELS})
            self.assertEqual(row["prediction"], max(LABELS, key=lambda label: elected[row["id"]][label]))

    def test_ways(self):
        """scores for labels, any number of workers and texts a request, the cache: the same records"""
        self.assertTrue(any(row["exact"] for row in reference) and not all(row["exact"] for row in reference))
        for more in (["--workers", 1], ["--workers", 5, "--request-texts", 3], ["--function"], ["--function", "--cache", "on"], ["--batch", 7]):
            self.assertEqual(certify("ways", "exec:python3 child.py", *more)[0], reference, more)
        self.assertEqual(certify("ways", "exec:python3 child.py scores")[0], reference)

    def test_killed(self):
        """workers that are killed again and again change nothing"""
        going, killed = threading.Event(), []

        def kill():
            while not going.wait(0.05):
                for file in (test_cli.temporary / "pids").iterdir():
                    file.unlink(missing_ok=True)
                    try:
                        os.kill(int(file.name), signal.SIGKILL)
                        killed.append(file.name)
                    except ProcessLookupError:
                        pass

        thread = threading.Thread(target=kill)
        thread.start()
        try:
            # Each worker lives about as long as a Python needs to start: slow, but it must come through.
            rows, done = certify("killed", "exec:sleep 0.1; python3 child.py", "--retries", 1000, "--request-texts", 64)
        finally:
            going.set()
            thread.join()
        self.assertEqual(rows, reference)
        self.assertGreater(len(killed), 0)
        self.assertGreater(json.loads(done.out)["traffic"]["restarts"], 0)

    def test_none(self):
        """answers that are no label count for no class, and the run can be verified"""
        rows, done = certify("none", "exec:python3 child.py none", "--method", "hoeffding")
        self.assertTrue(any(sum(row["counts"].values()) < row["n"] for row in rows))
        self.assertTrue(any(row["base"] is None for row in rows))
        self.assertGreater(json.loads(done.out)["traffic"]["none"], 0)
        again = verify("none", "exec:python3 child.py none")
        self.assertEqual(again.code, DONE, again.err)

    def test_random(self):
        """a model that disagrees with itself is found out, and only sampled"""
        _, done = certify("random", "exec:python3 child.py random")
        self.assertTrue(json.loads(done.out)["traffic"]["random"])
        lines = (test_cli.temporary / "random.jsonl").read_text().splitlines()
        self.assertTrue(json.loads(lines[0])["model"]["random"])
        self.assertNotIn("probe", json.loads(lines[0])["model"])
        self.assertFalse(any(json.loads(line)["exact"] for line in lines[1:]))
        _, done = certify("random", "exec:python3 child.py random", "--function", code=INPUT)
        self.assertIn("not a function of the text, as was declared", done.err)
        rows, _ = certify("said", "exec:python3 child.py", "--random")
        self.assertFalse(any(row["exact"] for row in rows))

    def test_changed(self):
        """records of a model that was seen to change its answers are put aside, and never completed by --resume"""
        aside = test_cli.temporary / "late.jsonl.changed"
        for declared in ((), ("--function",)):  # the change is seen in the run, and before it
            lines = (test_cli.temporary / "reference.jsonl").read_text().splitlines(keepends=True)
            path = test_cli.temporary / write("late.jsonl", "".join(lines[:4]))
            if declared:
                certify("late", "exec:python3 child.py", *declared)
                path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
            (test_cli.temporary / "asked").unlink(missing_ok=True)
            for turn in range(3):
                how = "random" if declared else "late"
                _, done = certify("late", f"exec:python3 child.py {how}", "--resume", "--workers", 1, *declared, code=INPUT)
                self.assertIn("late.jsonl.changed", done.err)
                self.assertIn("the model changed its answers", done.err.replace("The", "the"))
                self.assertEqual("not a function of the text" in done.err, turn == 0, done.err)
                self.assertEqual((path.exists(), aside.exists()), (False, True))
            self.assertGreaterEqual(len(aside.read_text().splitlines()), 4)
            rows, _ = certify("late", "exec:python3 child.py", "--resume", "--random")  # nothing is kept of the others
            self.assertEqual(len(rows), len(reference))
            rows, _ = certify("late", "exec:python3 child.py")  # anew
            self.assertEqual(rows, reference)
        aside.unlink()
        # Somebody else's records stay where they are.
        certify("late", "exec:python3 child.py")
        before = path.read_text()
        for more in (["--resume", "--model-name", "another"], ["--resume", "--random"]):
            certify("late", "exec:python3 child.py random", *more, code=INPUT)
        done = run("certify", "--model", "exec:python3 child.py random", "--lexicon", "words.lex", "--data", "data.tsv", "-o", "late.jsonl",
                   "--model-name", "the model")
        self.assertEqual(done.code, USAGE, done.err)
        self.assertEqual((path.read_text(), aside.exists()), (before, False))

    def test_messages(self):
        """what goes wrong is said in one line that names it"""
        cases = {
            "unknown": (INPUT, r'"splendid" is not one of the labels \(neg, pos\)'), "few": (INPUT, r"labels: \d+, texts: \d+"),
            "complain": (SYSTEM, "status 3.*cannot open the weights"), "mute": (SYSTEM, "time"), "garbage": (INPUT, "JSON"),
            "nan": (INPUT, "JSON|finite"),
        }
        for how, (code, words) in cases.items():
            _, done = certify("messages", f"exec:python3 child.py {how}", "--timeout", 2 if how == "mute" else 60, "--retries", 1, code=code)
            self.assertRegex(done.err, words, how)
            self.assertEqual(done.err.count("\n"), 1, how)
        for arguments, words in ((["--model", "exec:cat", "--arithmetic", "f32"], "--arithmetic"), (["--model", "exec:"], "command"),
                                 (["--model", "exec:cat", "--cache", "maybe"], "on or off"), (["--model", "exec:cat", "--cache", "on"], "cache: only a model"),
                                 (["--model", "exec:cat", "--function", "--random"], "function: the model"),
                                 (["--model", "exec:cat", "--model-name", ""], "--model-name")):
            done = run("certify", *arguments, "--lexicon", "words.lex", "--data", "data.tsv")
            self.assertEqual(done.code, USAGE, done.err)
            self.assertIn(words, done.err)
        done = run("predict", "--model", "exec:cat", "--lexicon", "words.lex", "text")
        self.assertEqual(done.code, USAGE)
        self.assertIn("--labels", done.err)

    def test_interrupted(self):
        """Ctrl-C reaches safer alone; the run can be resumed"""
        (test_cli.temporary / "stop.jsonl").unlink(missing_ok=True)
        command = [test_cli.program, "certify", "--model", "exec:sleep 1; exec python3 child.py", "--lexicon", "words.lex", "--data",
                   "data.tsv", "--n", "300", "--n0", "30", "--workers", "2", "-o", "stop.jsonl", "--model-name", "the model"]
        process = subprocess.Popen(command, cwd=test_cli.temporary, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        rows, _ = certify("stop", "exec:sleep 1; exec python3 child.py", "--resume")
        self.assertEqual(rows, reference)

    def test_predict(self):
        """predict asks it too"""
        done = run("predict", "--model", "exec:python3 child.py", "--labels", "neg,pos", "--lexicon", "words.lex", "--seed", 1, "--json", "A bad film.")
        self.assertEqual(done.code, DONE, done.err)
        answer = json.loads(done.out)["answers"][0]
        self.assertEqual((answer["exact"], answer["assumes"], answer["queries"]), (True, ["the model is a function of the text"], 2 * 9))
        done = run("predict", "--model", "exec:python3 child.py", "--labels", "neg,pos", "--lexicon", "words.lex", "--seed", 1, "A bad film.")
        self.assertIn("exact if the model is a function of the text, 18 queries", done.out)


class Identity(unittest.TestCase):
    def test_name(self):
        """records of a remote model need its name, and a file has its own"""
        base = ("--lexicon", "words.lex", "--data", "data.tsv", "--n", 300, "--n0", 30)
        for verb in ("certify", "attack"):
            options = base if verb == "certify" else base[:4]
            done = run(verb, "--model", "exec:python3 child.py", *options, "-o", "nameless.jsonl")
            self.assertEqual(done.code, USAGE, done.err)
            self.assertIn("-o FILE needs --model-name NAME", done.err)
            self.assertFalse((test_cli.temporary / "nameless.jsonl").exists())
            self.assertEqual(run(verb, "--model", "exec:python3 child.py", *options).code, DONE)
            for option in (["--model-name", "x"], ["--function"]):
                done = run(verb, "--model", "file.safetensors", *options, *option)
                self.assertEqual((done.code, option[0] + " is for remote models" in done.err), (USAGE, True), done.err)
        certify("named", "exec:python3 child.py", "--model-name", "Stimmung 2")
        config = json.loads((test_cli.temporary / "named.jsonl").read_text().splitlines()[0])
        self.assertEqual(config["model"]["name"], "Stimmung 2")
        self.assertEqual(verify("named", "exec:python3 child.py", name="Stimmung 2").code, DONE)
        done = verify("named", "exec:python3 child.py", name="another")
        self.assertEqual(done.code, INPUT, done.err)
        done = run("verify", "named.jsonl", "--model", "exec:python3 child.py", *base[:4])
        self.assertEqual((done.code, "--model-name" in done.err), (USAGE, True), done.err)
        done = run("attack", "--model", "exec:python3 child.py", *base[:4], "--against", "named.jsonl")
        self.assertEqual((done.code, "--model-name" in done.err), (USAGE, True), done.err)

    def test_probe(self):
        """the probe set is that of docs/models.md, asked twice, and its digest what the rule there says"""
        page = (HERE.parent / "docs/models.md").read_text()
        texts = json.loads(re.search(r"```\n(\[.*?\])\n```", page, re.S).group(1))
        (test_cli.temporary / "asked").unlink(missing_ok=True)
        certify("probed", "exec:python3 child.py log", "--workers", 1)
        asked = [json.loads(line) for line in (test_cli.temporary / "asked").read_text().splitlines()]
        self.assertIn(texts, asked)
        for text in texts:
            self.assertEqual(sum(request.count(text) for request in asked), 2, text)
        digest = hashlib.sha256("".join(f"{len(label)}:{label}," for label in map(MODEL.label, texts)).encode()).hexdigest()
        config = json.loads((test_cli.temporary / "probed.jsonl").read_text().splitlines()[0])
        self.assertEqual(config["model"]["probe"], digest)
        self.assertNotIn("random", config["model"])

    def test_changed(self):
        """another model behind the same name neither continues nor confirms a run"""
        certify("changed", "exec:python3 child.py")
        path = test_cli.temporary / "changed.jsonl"
        path.write_text("".join(path.read_text().splitlines(True)[:5]))
        before = path.read_text()
        _, done = certify("changed", "exec:python3 child.py other", "--resume", code=INPUT)
        self.assertRegex(done.err, CHANGED)
        self.assertEqual(path.read_text(), before)
        self.assertEqual(certify("changed", "exec:exec python3 child.py", "--resume")[0], reference)  # another address, the same answers
        self.assertRegex(verify("changed", "exec:python3 child.py other").err, CHANGED)
        self.assertEqual(verify("changed", "exec:exec python3 child.py").code, DONE)

    def test_not_a_function(self):
        """a model that answers by the place in a request gets no exact certificate"""
        write("place.tsv", "a\tneg\tReview: a good film.\nb\tpos\tReview: a bad film.\n")
        for more in ([], ["--function"]):
            done = run("certify", "--model", "exec:python3 child.py place", "--lexicon", "words.lex", "--data", "place.tsv", "--workers", 1,
                       "--json", *more)
            self.assertEqual(done.code, INPUT, done.out)
            self.assertIn("for the same text", done.err)
        rows = json.loads(run("certify", "--model", "exec:python3 child.py place", "--lexicon", "words.lex", "--data", "place.tsv",
                              "--workers", 1, "--random", "--json").out)
        self.assertEqual(rows["exact"], 0)


class Http(unittest.TestCase):
    def test_profiles(self):
        """every profile gives the records of the program, and the cache spares texts of a declared function"""
        for name, (path, *more) in PROFILES.items():
            for declared in ([], ["--function"]):
                with self.subTest(name):
                    rows, done = certify("profile", address(path), *more, *declared)
                    self.assertEqual(rows, reference)
                    traffic = json.loads(done.out)["traffic"]
                    self.assertEqual(traffic["cached"] > 0, bool(declared))
                    self.assertFalse(traffic["random"])

    def test_noise(self):
        """a model with noise that nobody has noticed: as many false certificates as delta allows"""
        class Noisy(http_server.Model):
            chance = random.Random(11)

            def label(self, text):  # half of all draws are pos: nothing can be certified truly
                return "pos" if "film" in text or self.chance.random() < 0.25 else "neg"

        whole, certified, texts = service.model, 0, 100
        service.model = Noisy(LABELS)
        try:
            for i in range(texts):
                done = run("predict", "--model", address("/json"), "--labels", "neg,pos", "--lexicon", "words.lex", "--seed", i, "--method",
                           "binomial", "--n", 100, "--n0", 30, "--delta", 0.05, "--json", f"The film number {i}.")
                # The guard may notice it, since it asks some texts again: then there is no answer.
                self.assertIn(done.code, (DONE, INPUT), done.err)
                answer = json.loads(done.out)["answers"][0] if done.code == DONE else {"bound": 0}
                certified += answer["bound"] > 0.5
        finally:
            service.model = whole
        self.assertLessEqual(certified, 15)  # 5 or fewer are to be expected; with kept answers it would be nearly all

    def test_faults(self):
        """with every fifth request failing in every way the records are the same"""
        for path, *more in (PROFILES["json"], PROFILES["kserve"], PROFILES["tei"], PROFILES["openai"]):
            service.clear()
            faulty = address(path, fault="503,reset,malformed,half,slow", share=0.2, delay=0.05)
            rows, done = certify("faults", faulty, "--retries", 12, "--cache", "off", "--timeout", 20, *more)
            self.assertEqual(rows, reference, path)
            self.assertGreater(service.stats["faults"], 0)
            self.assertGreater(json.loads(done.out)["traffic"]["retries"], 0)

    def test_permanent(self):
        """a fault that stays ends the run with a message"""
        for fault, words in (("503", "503"), ("404", "404"), ("malformed", "JSON"), ("unknown", "maybe"), ("reset", "127.0.0.1")):
            _, done = certify("permanent", address("/json", fault=fault), "--retries", 1, code=INPUT if fault in ("unknown", "malformed") else SYSTEM)
            self.assertRegex(done.err, words)
            self.assertEqual(done.err.count("\n"), 1, done.err)

    def test_resumed(self):
        """a service that breaks down in the middle costs nothing that was done before"""
        broken = test_cli.temporary / "broken.jsonl"

        class Breaking(http_server.Model):
            def label(self, text):
                if broken.exists() and broken.read_bytes().count(b"\n") > 3:
                    raise BrokenPipeError
                return super().label(text)

        whole = service.model
        service.model = Breaking(LABELS)
        try:
            _, done = certify("broken", address("/json"), "--retries", 1, "--concurrency", 1, "--cache", "off", code=SYSTEM)
        finally:
            service.model = whole
        before = records(broken)
        self.assertTrue(0 < len(before) < len(reference), len(before))
        rows, done = certify("broken", address("/json"), "--concurrency", 1, "--cache", "off", "--resume")
        self.assertEqual(json.loads(done.out)["resumed"], len(before))
        self.assertEqual(rows, reference)

    def test_secret(self):
        """a token gets through and appears nowhere"""
        guarded = http_server.Service(LABELS, token=TOKEN)
        threading.Thread(target=guarded.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{guarded.server_address[1]}/json"
        rows, done = certify("secret", place, "--token-env", "THE_TOKEN", env={"THE_TOKEN": TOKEN})
        self.assertEqual(rows, reference)
        written = done.out + done.err + (test_cli.temporary / "secret.jsonl").read_text()
        _, refused = certify("refused", place, "--token-env", "THE_TOKEN", code=SYSTEM, env={"THE_TOKEN": TOKEN + "x"})
        written += refused.err
        self.assertNotIn(TOKEN, written)
        _, missing = certify("missing", place, "--token-env", "NO_SUCH_VARIABLE", code=USAGE)
        self.assertIn("NO_SUCH_VARIABLE", missing.err)


# ----------------------------------------------------------------- credentials

USER, PASSWORD = "someone-long", 'p@ss+w"rd/93?~'


class Echo(http.server.BaseHTTPRequestHandler):
    """Says all that it was told, in every form, as an error or as an answer; the first requests it answers well."""
    good, status, form = 0, 401, "error"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        told = self.headers.get("Authorization", "")
        secret = told.split(" ", 1)[-1]
        decoded = base64.b64decode(secret + "==", validate=False).decode(errors="replace") if told.startswith("Basic") else secret
        texts = [told, decoded, urllib.parse.quote(decoded, safe=""), json.dumps(decoded), decoded.split(":", 1)[-1],
                 base64.b64encode(decoded.split(":", 1)[-1].encode()).decode()]
        Echo.good -= 1
        if Echo.good >= 0:
            status, answer = 200, {"labels": [MODEL.label(text) for text in request["texts"]]}
        elif Echo.form == "label":  # long: a message cuts it
            status, answer = 200, {"labels": ["x" * 50 + text for text in texts] * len(request["texts"])}
        else:
            status, answer = Echo.status, {"error": texts}
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def forms_of(secret):
    """In what forms a secret must appear nowhere, and pieces of it."""
    encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
    found = {secret, urllib.parse.quote(secret, safe=""), urllib.parse.quote(secret, safe="").lower(), json.dumps(secret)[1:-1], encoded,
             encoded.replace("+", "-").replace("/", "_")}
    return found | {form[:8] for form in found if len(form) > 8}


class Credentials(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.echo = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
        threading.Thread(target=cls.echo.serve_forever, daemon=True).start()
        cls.host = f"127.0.0.1:{cls.echo.server_address[1]}"
        cls.signed = f"http://{USER}:{urllib.parse.quote(PASSWORD, safe='')}@{cls.host}/json"

    @classmethod
    def tearDownClass(cls):
        cls.echo.shutdown()
        cls.echo.server_close()

    def nothing_in(self, told, *secrets):
        for secret in secrets:
            for form in forms_of(secret):
                self.assertNotIn(form, told)

    def test_messages(self):
        """a password or token that a service repeats, in whatever form: not in a message"""
        for ways, secrets in (((self.signed,), (PASSWORD, USER, f"{USER}:{PASSWORD}")),
                              ((f"http://{self.host}/json", "--token-env", "THE_TOKEN"), (TOKEN,))):
            for status, form in ((401, "error"), (500, "error"), (200, "label")):
                Echo.good, Echo.status, Echo.form = 0, status, form
                done = run("certify", "--model", *ways, "--lexicon", "words.lex", "--data", "data.tsv", "--retries", "0", "--json", env={"THE_TOKEN": TOKEN})
                self.assertIn(done.code, (INPUT, SYSTEM), done.err)
                self.assertIn(self.host, done.err)
                self.assertIn("***", done.err)
                self.nothing_in(done.err + done.out, *secrets)

    def test_files(self):
        """nor in records, reports and evidence"""
        folder = test_cli.temporary / "kept"
        folder.mkdir()
        Echo.good = 10 ** 9
        rows, done = certify("kept/run", self.signed, "-o", "kept/run.jsonl")
        self.assertEqual(rows, reference)
        told = done.out + done.err
        for verb in (("report", "kept/run.jsonl", "--data", "data.tsv", "--lexicon", "words.lex", "-o", "kept/report.html", "--csv", "kept/tables"),
                     ("evidence", "kept/run.jsonl", "--json", "-o", "kept/evidence"), ("verify", "kept/run.jsonl", "--json"),
                     ("verify", "kept/run.jsonl", "--model", self.signed, "--model-name", "the model", "--lexicon", "words.lex", "--data", "data.tsv"),
                     ("attack", "--model", self.signed, "--model-name", "the model", "--lexicon", "words.lex", "--data", "data.tsv", "-o", "kept/attack.jsonl"),
                     ("predict", "--model", self.signed, "--labels", "neg,pos", "--lexicon", "words.lex", "--json", "A good film.")):
            done = run(*verb)
            self.assertEqual(done.code, DONE, (verb, done.err))
            told += done.out + done.err
        files = [path for path in folder.rglob("*") if path.is_file()]
        self.assertGreater(len(files), 5)
        told += "".join(path.read_bytes().decode(errors="replace") for path in files)
        self.nothing_in(told, PASSWORD, USER, f"{USER}:{PASSWORD}")

    def test_misuse(self):
        """an address in the wrong place, or misspelt: the password is not repeated"""
        wrong = self.signed.replace("http://", "HTTP://")
        for begin in ("http:/", "http:", "https:\\\\", "HTTP:///", "http//", "ftp:/"):
            misspelt = begin + self.signed.removeprefix("http://")
            for arguments in ((misspelt,), ("verify", misspelt), ("certify", "--n", misspelt, "--lexicon", "words.lex")):
                done = run(*arguments)
                self.assertNotIn(done.code, (DONE, -signal.SIGSEGV), arguments)
                self.assertIn("***@127", done.err)
                self.nothing_in(done.err + done.out, PASSWORD)
        base = ("--lexicon", "words.lex", "--data", "data.tsv")
        for arguments in (("certify", "--model", wrong, *base), ("certify", self.signed, *base), (self.signed,), ("verify", self.signed),
                          ("lexicon", self.signed), ("certify", "--model", "exec:cat", "--lexicon", self.signed, "--data", "data.tsv"),
                          ("certify", "--model", self.signed.replace("127.0.0.1", "127.0.0.1 "), *base),
                          ("train", "--arch", "ngram", "--data", self.signed, "-o", "x.safetensors"), ("certify", "--n", self.signed, *base)):
            done = run(*arguments)
            self.assertNotIn(done.code, (DONE, -signal.SIGSEGV), arguments)
            self.nothing_in(done.err + done.out, PASSWORD)

    def test_insecure(self):
        """over http:// to another machine a token or password must be allowed"""
        base = ("--lexicon", "words.lex", "--data", "data.tsv", "--retries", "0", "--timeout", "0.2")
        for model in (("http://192.0.2.1/", "--token-env", "THE_TOKEN"), (f"http://{USER}:{TOKEN}@192.0.2.1/",)):
            done = run("certify", "--model", *model, *base, env={"THE_TOKEN": TOKEN})
            self.assertEqual(done.code, USAGE, done.err)
            self.assertIn("--insecure-token", done.err)
            self.nothing_in(done.err, TOKEN)
            done = run("certify", "--model", *model, *base, "--insecure-token", env={"THE_TOKEN": TOKEN})
            self.assertEqual(done.code, SYSTEM, done.err)
            self.nothing_in(done.err, TOKEN)

    def test_proxy(self):
        """a proxy is named where something fails, without its password; this machine is asked without it"""
        secret = "pr0xy-Word-17"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]  # nobody listens there any more, soon
        environment = {"http_proxy": f"http://{USER}:{secret}@127.0.0.1:{port}", "no_proxy": "", "NO_PROXY": ""}
        base = ("--lexicon", "words.lex", "--data", "data.tsv", "--retries", "0")
        done = run("certify", "--model", "http://model.example.org/", *base, env=environment)
        self.assertEqual(done.code, SYSTEM, done.err)
        self.assertIn(f"through the proxy 127.0.0.1:{port} from http_proxy", done.err)
        self.nothing_in(done.err, secret, USER)
        Echo.good = 10 ** 9
        self.assertEqual(certify("near", self.signed, env=environment)[0], reference)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], prepare)
