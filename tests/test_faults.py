#!/usr/bin/env python3
"""Lets every allocation and every call that changes files fail, once in turn, for every verb:
test_faults.py [NAME...] BUILD_DIR. Run by ctest.

Each fault is tried twice: this call alone, and this and all later ones (memory stays short, the disk stays full).
Allowed is the right result, to the byte, with exit status 0; or exit status 4 with one line that says why, and then
an output file is absent, the old one or whole, a run file ends with a whole record and can be resumed to the same
records, and no temporary file stays. Never a signal, and no block or descriptor that is not given back when main
returns (faults.c counts them). docs/faults.md says it for users. (A charcnn is too large to be trained a thousand times
here: tests/test_charcnn_train.c lets its allocations fail.)
"""
import collections
import contextlib
import json
import multiprocessing
import os
import pathlib
import queue
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
import zlib

sys.dont_write_bytecode = True
import faulty  # noqa: E402
from faulty import ALLOCATION, CALL, PROBLEMS, Program  # noqa: E402

DONE, SYSTEM = 0, 4
OLD = b"what was there before\n"
CHUNK = 40  # faults that a worker takes at a time
WORKERS = 2

TEXTS = (("neg", "the film is bad"), ("pos", "the film is good"))
SYNONYMS = "good\tgreat fine\nbad\tpoor\n"
VECTORS = "the film is good bad poor great fine".split()


# ------------------------------------------------------------------- the verbs

Verb = collections.namedtuple("Verb", "name arguments old begun again study")


def verb(name, *arguments, old=(), begun=None, again=None, study=False):
    """`old`: outputs that are there before; `begun`: {file: bytes}; `again`: what is added to finish a run that
    failed, or None where it is simply done again. A `study` is several steps: each failure has a line, tables say what
    failed, and made.json is what was done so far."""
    return Verb(name, tuple(map(str, arguments)), old, begun or {}, again, study)


def make_encoder(folder):
    """A BERT of one layer, as HuggingFace has them."""
    pieces = "[PAD] [UNK] [CLS] [SEP] the film is good bad".split()
    hidden, inner, positions = 8, 8, 16
    shapes = {"embeddings.word_embeddings.weight": (len(pieces), hidden), "embeddings.position_embeddings.weight": (positions, hidden),
              "embeddings.token_type_embeddings.weight": (2, hidden)}
    for part in ("embeddings.LayerNorm", "encoder.layer.0.attention.output.LayerNorm", "encoder.layer.0.output.LayerNorm"):
        shapes |= {f"{part}.weight": (hidden,), f"{part}.bias": (hidden,)}
    for part, outputs, inputs in (("attention.self.query", hidden, hidden), ("attention.self.key", hidden, hidden),
                                  ("attention.self.value", hidden, hidden), ("attention.output.dense", hidden, hidden),
                                  ("intermediate.dense", inner, hidden), ("output.dense", hidden, inner)):
        shapes |= {f"encoder.layer.0.{part}.weight": (outputs, inputs), f"encoder.layer.0.{part}.bias": (outputs,)}
    header, data = {}, b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = struct.pack(f"<{count}f", *((len(data) // 4 + k) % 97 / 640 for k in range(count)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    (folder / "config.json").write_text(json.dumps({
        "model_type": "bert", "vocab_size": len(pieces), "hidden_size": hidden, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": inner, "max_position_embeddings": positions, "type_vocab_size": 2, "hidden_act": "gelu",
        "layer_norm_eps": 1e-12}))


def make_files(program, folder, texts=TEXTS):
    """What the verbs read, in `folder`."""
    def must(*arguments):
        code = program.run(folder, *arguments)
        if code != DONE:
            sys.exit(f"cannot make the common files: {arguments}: {code} {(folder / 'stderr').read_text()}")

    (folder / "data.tsv").write_text("".join(f"{i}\t{label}\t{text}\n" for i, (label, text) in enumerate(texts)))
    (folder / "synonyms.tsv").write_text(SYNONYMS)
    (folder / "pairs.txt").write_text("good great\n")
    (folder / "vectors.txt").write_text("".join(f"{word} {' '.join(str((i * 7 + k * 3) % 11 / 10 - .4) for k in range(3))}\n"
                                                for i, word in enumerate(VECTORS)))
    (folder / "compare.json").write_text(json.dumps({
        "title": "a", "data": {"d": {"train": "data.tsv", "dev": "data.tsv", "test": "data.tsv", "lexicon": {"table": "synonyms.tsv"}}},
        "models": {"m": {"arch": "ngram", "bits": 8}}, "defenses": {"s": {"kernel": "topk:2", "n": 20}},
        "attacks": {"textfooler": {"n": 10}}}))
    make_encoder(folder / "encoder")
    lexicon = ("--lexicon", "w.lex", "--threads", "1")
    must("lexicon", "import", "--table", "synonyms.tsv", "--kernel", "topk:2", "-o", "w.lex")
    must("train", "--arch", "ngram", "--bits", "8", "--data", "data.tsv", "--dev", "data.tsv", "-o", "model", *lexicon)
    must("certify", "--model", "model", "--data", "data.tsv", "--n", "30", "-o", "run.jsonl", *lexicon)
    must("attack", "--model", "model", "--data", "data.tsv", "-o", "attack.jsonl", *lexicon)
    for number in (1, 2):
        must("certify", "--model", "model", "--data", "data.tsv", "--n", "30", "--shard", f"{number}/2", "-o", f"part{number}.jsonl", *lexicon)


def verbs(build, files):
    """All that is tried, with inputs of two texts."""
    data = ("--data", files / "data.tsv")
    with_lexicon = ("--lexicon", files / "w.lex", "--threads", 1, "--quiet")
    train = (*data, "--dev", files / "data.tsv", *with_lexicon, "--epochs", 1, "-o", "model")
    small = ("--dim", 2, "--hidden", 2, "--min-count", 1)
    asked = ("--model", files / "model", *data, *with_lexicon)
    remote = ("--model", f"exec:{build / 'tests/answers'}", *data, *with_lexicon, "--workers", 1, "--labels", "neg,pos", "--model-name", "m")
    run_file = (files / "run.jsonl").read_bytes()
    model = {"old": ("model",), "again": ("--resume",)}
    return [
        verb("lexicon build", "lexicon", "build", "--vectors", files / "vectors.txt", "--vocab-from", files / "data.tsv", "--min-count", 1,
             "--synonyms", files / "pairs.txt", "--all-but-the-top", 1, "--counterfit", 1, "--kernel", "topk:2", "--threads", 1,
             "--quiet", "-o", "out.lex", old=("out.lex",)),
        verb("lexicon import", "lexicon", "import", "--table", files / "synonyms.tsv", "--kernel", "component", "-o", "out.lex",
             "--vocab-from", files / "data.tsv", "--min-count", 1, "--quiet", old=("out.lex",)),
        verb("lexicon export", "lexicon", "export", files / "w.lex", "--what", "kernel"),
        verb("lexicon show", "lexicon", "show", files / "w.lex", "good", "--json"),
        verb("lexicon stats", "lexicon", "stats", files / "w.lex", *data, "--json", "--threads", 1),
        verb("lexicon check", "lexicon", "check", files / "w.lex", "--json"),
        verb("train ngram", "train", "--arch", "ngram", "--bits", 8, *train, "--json", **model),
        verb("train bow", "train", "--arch", "bow", *small, *train, **model),
        verb("train cnn", "train", "--arch", "cnn", "--filters", 2, *small, *train, **model),
        verb("train ibp-jia", "train", "--arch", "cnn", "--filters", 2, "--defense", "ibp-jia", *small, *train, **model),
        verb("train bert", "train", "--arch", "bert", "--encoder", files / "encoder", "--train-layers", "all", *train, **model),
        verb("certify", "certify", *asked, "--n", 30, "-o", "out.jsonl", "--json", again=("--resume",)),
        verb("certify --resume", "certify", *asked, "--n", 30, "-o", "out.jsonl", "--resume", begun={"out.jsonl": run_file[:-40]}, again=()),
        verb("certify exec:", "certify", *remote, "--n", 10, "-o", "out.jsonl", again=("--resume",)),
        verb("verify", "verify", files / "run.jsonl", "--json"),
        verb("verify --model", "verify", files / "run.jsonl", *asked),
        verb("certify --shard", "certify", *asked, "--n", 30, "--shard", "2/2", "-o", "out.jsonl", again=("--resume",)),
        verb("verify part", "verify", files / "part2.jsonl", *asked),
        verb("merge", "merge", files / "part2.jsonl", files / "part1.jsonl", "-o", "merged", "--json", old=("merged",)),
        verb("attack", "attack", *asked, "-o", "out.jsonl", "--json", again=("--resume",)),
        verb("attack --smoothed", "attack", *asked, "--smoothed", "--n", 10, "-o", "out.jsonl", again=("--resume",)),
        verb("attack --against", "attack", *asked, "--against", files / "run.jsonl", "-o", "out.jsonl", again=("--resume",)),
        verb("report", "report", files / "run.jsonl", *data, "--lexicon", files / "w.lex", "--attack", files / "attack.jsonl", "-o", "out.html",
             "--svg", "svg", "--csv", "csv", "--json", old=("out.html",)),
        verb("evidence", "evidence", files / "run.jsonl", "--baseline", files / "run.jsonl", "--require", "0", "-o", "out"),
        verb("predict", "predict", "--model", files / "model", *with_lexicon, "--seed", 1, "--n", 30, "the film is good", "--json"),
        verb("predict exec:", "predict", *remote[:2], *with_lexicon, "--workers", 1, "--labels", "neg,pos", "--seed", 1, "--n", 10, "good"),
        verb("label", "label", "--model", files / "model", *data, "--threads", 1, "--keep", 0.5, "-o", "out.tsv", "--json", old=("out.tsv",)),
        verb("label exec:", "label", *remote[:2], *data, "--threads", 1, "--workers", 1, "--labels", "neg,pos", "-o", "out.tsv", old=("out.tsv",)),
        verb("sample", "sample", "--lexicon", files / "w.lex", "--count", 2, "the film is good"),
        verb("model show", "model", "show", files / "model", "--json"),
        verb("model convert", "model", "convert", files / "encoder", "-o", "out.safetensors", "--quiet", old=("out.safetensors",)),
        verb("model average", "model", "average", files / "encoder", files / "encoder", "-o", "out.safetensors", "--quiet",
             old=("out.safetensors",)),
        verb("sweep", "sweep", "--kernels", "topk:2", "--arch", "ngram", "--bits", 8, *data, "--dev", files / "data.tsv", *with_lexicon,
             "--n", 20, "-o", "out", again=(), study=True),
        verb("compare", "compare", files / "compare.json", "-o", "out", "--threads", 1, "--quiet", "--markdown", "out.md", "--csv", "csv",
             old=("out.md",), again=(), study=True),
    ]


# ---------------------------------------------------------------- what is right

TIMES = re.compile(rb'("\w*seconds?": ?)[-+.e\d]+|\b\d+(?:\.\d+)? s\b|[\d,]+ \w+/s\b|,\d+\.\d{3},\d+\.\d{3}(?=,\d*,\w*,")'
                   rb'|[ |]+\d+\.\d(?: \|)?$', re.M)
TEMPORARY = re.compile(r"\.safer-[0-9a-f]{6}$|\.part$")


def plain(content):
    """Without what differs from one time to the next."""
    return TIMES.sub(rb"\1", content)


def content(path):
    """Of a large file, its size and a sum."""
    return path.read_bytes() if path.stat().st_size < 1 << 20 else b"%d %d" % (path.stat().st_size, zlib.crc32(path.read_bytes()))


def contents(folder):
    """Files by name, without the outputs."""
    return {str(path.relative_to(folder)): content(path) for path in folder.rglob("*")
            if path.is_file() and path.name not in ("stdout", "stderr", "journal")}


def is_clear(message, study):
    """One line of ours; of a study, one or more."""
    lines = message.split(b"\n")
    return lines[-1] == b"" and (len(lines) == 2 or (study and len(lines) > 2)) and all(line.startswith(b"safer") for line in lines[:-1])


def is_so_far(name, content):
    """Whether a file of a study is whole, though not the last one."""
    if name.endswith("made.json"):
        with contextlib.suppress(ValueError):
            return isinstance(json.loads(content), dict)
    return name.endswith((".md", ".csv")) and content.endswith(b"\n")


def is_part(name, content):
    """Whether it is what was answered before a failure: whole rows."""
    return name.endswith(".answered") and content.endswith(b"\n") and all(line.count(b"\t") == 2 for line in content.splitlines())


class Trial:
    """One verb, what it does without a fault, and what each fault did."""

    def __init__(self, program, folder, a_verb):
        self.program, self.folder, self.verb = program, folder, a_verb
        self.state = program.state
        self.finished = {}
        code = self.go()
        again = self.outcome()
        if code != DONE or self.go() != DONE or self.outcome() != again:
            sys.exit(f"{a_verb.name}: exit {code}, {again[1]}; or another result the second time")
        self.files, self.stderr, self.stdout = again
        self.allocations, self.kinds = self.state.allocations, self.state.kinds()
        self.live, self.descriptors = self.state.live, self.state.files

    def go(self, **faults):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for name in self.verb.old:
            (self.folder / name).write_bytes(OLD)
        for name, content in self.verb.begun.items():
            (self.folder / name).write_bytes(content)
        return self.program.run(self.folder, *self.verb.arguments, **faults)

    def outcome(self):
        return ({name: plain(content) for name, content in contents(self.folder).items()}, (self.folder / "stderr").read_bytes(),
                plain((self.folder / "stdout").read_bytes()))

    def faults(self):
        for later in (0, 1):
            for number in range(self.allocations):
                yield {"fail": ALLOCATION, "number": number, "later": later}
            for number, kind in enumerate(self.kinds):
                for problem in PROBLEMS[kind]:
                    if not (later and problem in (faulty.HALF, 4)):  # EINTR for ever is no disk's
                        yield {"fail": CALL, "number": number, "later": later, "problem": problem}

    def attempt(self, fault):
        """What is wrong after this fault; None when all is well."""
        code = self.go(**fault)
        left = contents(self.folder)
        message = (self.folder / "stderr").read_bytes()
        if code is None:
            return "it did not end"
        if code < 0:
            return f"killed by signal {-code}"
        if not self.state.failed and code != DONE:  # a time with fewer digits may need one allocation less
            return f"without a fault: exit status {code}, {message!r}"
        if code == DONE:
            differs = [name for name in left.keys() | self.files if plain(left.get(name, b"")) != self.files.get(name)
                       and not (self.stuck(fault) and name.endswith(".checkpoint"))]
            if differs or plain((self.folder / "stdout").read_bytes()) != self.stdout:
                return f"exit status 0, but another result: {differs or 'stdout'}"
        elif code != SYSTEM or not is_clear(message, self.verb.study):
            return f"exit status {code}, {message!r}"
        if self.state.returned and (self.state.live > self.live or self.state.files != self.descriptors):
            return f"{self.state.live} blocks and {self.state.files} descriptors are not given back"
        return self.damaged(left, fault) or (self.unfinished(left) if code != DONE else None)

    def stuck(self, fault):
        """Whether a file could not be removed."""
        return fault["fail"] == CALL and (fault["later"] or self.kinds[fault["number"]] == "unlink")

    def damaged(self, left, fault):
        """A file that no fault may leave."""
        persists = fault["fail"] == CALL and fault["later"]
        for name, content in left.items():
            whole = self.files.get(name)
            if TEMPORARY.search(name):
                if not self.stuck(fault):
                    return f"{name} is left"
            elif plain(content) == whole or (name in self.verb.old and content == OLD) or content == self.verb.begun.get(name):
                continue
            elif name.endswith(".jsonl") and whole is not None:
                cut = content if persists else content[:content.rfind(b"\n") + 1]
                lines = plain(content[:content.rfind(b"\n") + 1])
                if not whole.startswith(lines) or len(cut) != len(content):
                    return f"{name} is damaged: {content[-80:]!r}"
            elif not name.endswith(".checkpoint") and not is_part(name, content) and not (self.verb.study and is_so_far(name, content)):
                return f"{name} is damaged: {len(content)} bytes"
        return None

    def unfinished(self, left):
        """The same command again, with what finishes it, makes all of it. Once for each state of the files."""
        if self.verb.again is None:
            return None
        key = tuple(sorted((name, plain(content)) for name, content in left.items() if not TEMPORARY.search(name)))
        if key not in self.finished:
            code = self.program.run(self.folder, *self.verb.arguments, *self.verb.again)
            now = {name: content for name, content in self.outcome()[0].items() if not TEMPORARY.search(name)}
            differs = [name for name in now.keys() | self.files if now.get(name) != self.files.get(name)]
            self.finished[key] = None if code == DONE and not differs else \
                f"done again: exit {code}, {(self.folder / 'stderr').read_bytes()!r}, {[(name, now.get(name, b'')[-200:], self.files.get(name, b'')[-200:]) for name in differs[:1]]}"
        return self.finished[key]


# ------------------------------------------------------------------- the workers

def describe(a_verb, trial, fault):
    what = "allocation" if fault["fail"] == ALLOCATION else f"call ({trial.kinds[fault['number']]}, {os.strerror(abs(fault['problem']))})"
    return f"{a_verb.name}: {what} {fault['number']}{' and all later ones' if fault['later'] else ''}"


def work(build, folder, number, tasks, results, wanted):
    """Takes verbs' faults by the chunk; sends what it found."""
    program = Program(build, folder / f"server{number}")
    trials = {}
    while True:
        try:
            index, first = tasks.get_nowait()
        except queue.Empty:
            break
        a_verb = wanted[index]
        if index not in trials:
            trials[index] = Trial(program, folder / f"work{number}", a_verb)
        trial, found = trials[index], []
        faults = list(trial.faults())[first:first + CHUNK]
        begun = time.process_time(), time.monotonic()
        for fault in faults:
            wrong = trial.attempt(fault)
            if wrong:
                found.append(f"{describe(a_verb, trial, fault)}: {wrong}")
        results.put((index, len(faults), found, time.monotonic() - begun[1]))
    results.put(None)
    program.close()


# -------------------------------------------------------------------- the service

ROUTES = (("POST", "/v1/predict", {"text": "the film is good"}), ("POST", "/v1/certify", {"text": "the film is good"}),
          ("POST", "/v1/certify/stream", {"text": "the film is good"}), ("POST", "/v1/words", {"text": "the film is good"}),
          ("GET", "/v1/model", None), ("GET", "/healthz", None), ("GET", "/metrics", None), ("GET", "/openapi.json", None),
          ("GET", "/", None), ("GET", "/explorer.css", None), ("GET", "/explorer.js", None))


class Service:
    """A server that is asked to fail while it answers."""

    def __init__(self, build, folder, files):
        folder.mkdir()
        self.state = faulty.State(folder / "state")
        self.log = open(folder / "log", "w+b")
        self.process = subprocess.Popen(
            [build / "safer", "serve", "--model", files / "model", "--lexicon", files / "w.lex", "--n", "20", "--seed", "1", "--threads", "1",
             "--port", "0", "--json"], stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL,
            env={**os.environ, "LD_PRELOAD": str(faulty.module_of(build)), "FAULTS_STATE": str(folder / "state")})
        said = b""
        while not said.endswith(b"}\n"):
            line = self.process.stdout.readline()
            assert line, "the server did not start"
            said += line
        self.port = json.loads(said)["port"]
        self.found, self.allocations, self.faults = [], 0, 0

    def ask(self, method, path, body):
        """All bytes of the answer; none when there was no answer."""
        data = json.dumps(body).encode() if body else b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
                                   f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
                parts = []
                while part := connection.recv(1 << 16):
                    parts.append(part)
                return b"".join(parts)
        return b""

    @staticmethod
    def wrong(answer, right):
        """Why an answer is neither the right one nor a whole refusal; None where it is."""
        head, _, body = answer.partition(b"\r\n\r\n")
        code = head[9:12]
        if not answer:
            return None  # the connection was closed: nothing was said
        if b"chunked" in head:  # a stream: what came is a part of the right one, or it ends by saying that it failed
            events = re.findall(rb"event: (\w+)", body)
            if body.endswith(b"0\r\n\r\n") and events[-1:] not in ([b"result"], [b"error"]):
                return f"the stream ends with {events[-1:]}"
            return None
        size = re.search(rb"(?i)content-length: (\d+)", head)
        if size and int(size[1]) != len(body):
            return None  # cut, which a client sees
        if code == b"200":
            return None if unstable(body) == right else f"200 with another answer: {body[:200]!r}"
        try:
            return None if code in (b"500", b"503") and json.loads(body)["error"] else f"{code} {body[:200]!r}"
        except (ValueError, KeyError):
            return f"{code} with {body[:200]!r}"

    def try_route(self, method, path, body):
        right = unstable(self.ask(method, path, body).partition(b"\r\n\r\n")[2])
        for later in (0, 1):
            for number in range(100000):
                self.state.set(allocations=0, failed=0, number=number, later=later, fail=ALLOCATION)
                answer = self.ask(method, path, body)
                self.state.set(fail=0)
                if not self.state.failed:
                    break
                self.faults += 1
                wrong = self.wrong(answer, right) if self.process.poll() is None else f"the server ended: {self.process.returncode}"
                if wrong:
                    self.found.append(f"serve {path}: allocation {number}{' and all later ones' if later else ''}: {wrong}")
                if self.process.poll() is not None:
                    return
            self.allocations += 0 if later else number

    def try_all(self):
        for _ in range(3):
            for route in ROUTES:
                self.ask(*route)
        live = self.state.live
        for route in ROUTES:
            if self.process.poll() is None:
                self.try_route(*route)
        for route in ROUTES:
            if self.process.poll() is None and not self.ask(*route).startswith(b"HTTP/1.1 200"):
                self.found.append(f"serve {route[1]}: no right answer after the faults")
        time.sleep(0.2)
        if self.state.live > live + 4:  # what is kept for reuse may be a little more
            self.found.append(f"serve: {self.state.live - live} blocks are not given back after {self.faults} faults")
        self.process.terminate()
        code = self.process.wait(60)
        if code not in (DONE, 130):
            self.found.append(f"serve: exit {code} at the end")
        self.process.stdout.close()
        self.log.close()


def unstable(body):
    """Without what differs from one time to the next: times, and the figures of /metrics."""
    return b"" if body.startswith(b"# HELP") else re.sub(rb'"(seconds|uptime|uptime_seconds|time|date)": ?"?[-+.:\w]+"?', b"", body)


def main():
    build = pathlib.Path(sys.argv[-1]).resolve()
    if faulty.module_of(build) is None:
        print("skipped: this build has a sanitizer, which has an allocator of its own")
        return 0
    with faulty.fast_folder() as name:
        folder = pathlib.Path(name)
        files = folder / "files"
        files.mkdir()
        program = Program(build, folder / "first")
        make_files(program, files)
        names = sys.argv[1:-1]  # all, or these, or all but those with a "-" in front
        wanted = [v for v in verbs(build, files) if not names or v.name in names or (names[0][0] == "-" and "-" + v.name not in names)]
        tasks, results = multiprocessing.Queue(), multiprocessing.Queue()
        counts = []
        for index, a_verb in enumerate(wanted):
            trial = Trial(program, folder / "work", a_verb)
            counts.append((trial.allocations, len(trial.kinds)))
            for first in range(0, len(list(trial.faults())), CHUNK):
                tasks.put((index, first))
        program.close()
        time.sleep(0.1)  # so that the queue is filled
        workers = [multiprocessing.Process(target=work, args=(build, folder, i, tasks, results, wanted)) for i in range(WORKERS)]
        for worker in workers:
            worker.start()
        service = Service(build, folder / "service", files) if not names or names[0][0] == "-" or "serve" in names else None
        if service:
            service.try_all()
        left, done, seconds, found = WORKERS, collections.Counter(), collections.Counter(), []
        while left:
            result = results.get()
            if result is None:
                left -= 1
                continue
            done[result[0]] += result[1]
            found += result[2]
            for line in result[2]:
                print(line, flush=True)
            seconds[result[0]] += result[3]
        for worker in workers:
            worker.join()
    for index, a_verb in enumerate(wanted):
        print(f"{a_verb.name:20} {counts[index][0]:6} allocations {counts[index][1]:4} calls {done[index]:6} faults {seconds[index]:6.1f} s")
    if service:
        print(f"{'serve':20} {service.allocations:6} allocations of {len(ROUTES)} routes {service.faults:6} faults")
        found += service.found
        for line in service.found:
            print(line)
    print(f"{len(wanted)} verbs, {sum(a for a, _ in counts)} allocations, {sum(c for _, c in counts)} calls, "
          f"{sum(done.values())} faults: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
