#!/usr/bin/env python3
"""Kills every verb that writes files, and runs it again: test_kill.py [--kills N] [--seed S] [--verb NAME]... BUILD_DIR.
Run by ctest with a few kills.

A run is killed (SIGKILL) at a random moment, or at a random one of its calls that change files (faults.c; in a write, when
half of it is done), then again, and so on; at last it may finish. After each kill: whole records and finished files that
were there still are, a checkpoint is not older than before, an output that was there before is the old one or the new one, and
no child of the program lives. In the end all files are those of a run that was left alone, to the byte (times aside), and no
other file is there: no temporary one, no checkpoint. What was read has not changed. docs/faults.md says it for users.
"""
import argparse
import collections
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import faulty  # noqa: E402
from test_faults import OLD, TEMPORARY, make_encoder, plain  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
KILLS = 2  # of each verb, in the ordinary test
MOST = 4  # kills of one run before it may finish
PATIENCE = 20  # seconds for children to end, on a machine with other work
NUMBERS = itertools.count()

# `old`: outputs that are there before; `again`: what is added to go on; `large`: too slow for the ordinary test.
Verb = collections.namedtuple("Verb", "name arguments old again large")


def verb(name, *arguments, old=(), again=(), large=False):
    return Verb(name, tuple(map(str, arguments)), old, again, large)


def make_files(safer, build, folder):
    def must(*arguments):
        subprocess.run([*map(str, arguments)], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    must(build / "demo-reviews", folder, "--train", 200, "--dev", 30, "--test", 40)
    for path in folder.glob("*.tsv"):  # labels as tests/answers.c gives them
        path.write_text(re.sub(r"^([^\t]*\t)([01])\t", lambda m: m[1] + ("neg", "pos")[int(m[2])] + "\t", path.read_text(), flags=re.M))
    lines = (folder / "train.tsv").read_text().splitlines(keepends=True)
    (folder / "few.tsv").write_text("".join(lines[:16]))
    words = sorted(set(re.findall("[a-z]+", "".join(lines))))
    (folder / "vectors.txt").write_text("".join(
        f"{word} {' '.join(str((i * k * k + 7 * k) % 101 / 50 - 1) for k in range(1, 31))}\n" for i, word in enumerate(words)))
    (folder / "pairs.txt").write_text("".join(f"{a} {b}\n" for a, b in zip(words[::2], words[1::2])))
    (folder / "compare.json").write_text(json.dumps({
        "title": "a", "data": {"d": {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv", "lexicon": {
            "table": str(ROOT / "demo/synonyms.tsv"), "vocab-from": ["train.tsv"], "min-count": 1}}},
        "models": {"ngram": {"arch": "ngram", "bits": 12}, "bow": {"arch": "bow", "dim": 8, "hidden": 4, "epochs": 2}},
        "defenses": {"s": {"kernel": "topk:2", "n": 50}}, "attacks": {"textfooler": {"n": 10}}}))
    make_encoder(folder / "encoder")
    (folder / "sum.json").write_text('{"arch": "sum", "members": [{"model": "model"}, {"model": "model", "weight": 0.5}]}')
    must(safer, "lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "train.tsv", "--min-count", 1, "--kernel",
         "topk:3", "-o", "w.lex", "--quiet")
    must(safer, "train", "--arch", "ngram", "--data", "train.tsv", "--dev", "dev.tsv", "--lexicon", "w.lex", "--bits", 16, "-o", "model", "--quiet")
    for output, *arguments in (("run.jsonl", "certify", "--n", 200), ("attack.jsonl", "attack")):
        must(safer, *arguments, "--model", "model", "--lexicon", "w.lex", "--data", "test.tsv", "-o", output, "--quiet")
    for number in (1, 2, 3):
        must(safer, "certify", "--n", 200, "--model", "model", "--lexicon", "w.lex", "--data", "test.tsv", "--shard", f"{number}/3", "-o",
             f"part{number}.jsonl", "--quiet")


def verbs(build, files):
    lexicon, test = ("--lexicon", files / "w.lex"), ("--data", files / "test.tsv")
    learn = ("--data", files / "train.tsv", "--dev", files / "dev.tsv", *lexicon)
    few = ("--data", files / "few.tsv", "--dev", files / "few.tsv", *lexicon)
    small = ("--dim", 16, "--hidden", 8, "--epochs", 4)
    model = {"old": ("out",), "again": ("--resume",)}
    asked = ("--model", files / "model", *lexicon, *test)
    remote = ("--model", f"exec:{build / 'tests/answers'}", *lexicon, *test, "--workers", 2, "--labels", "neg,pos", "--model-name", "m")
    return [
        verb("lexicon build", "lexicon", "build", "--vectors", files / "vectors.txt", "--vocab-from", files / "train.tsv", "--min-count", 1,
             "--synonyms", files / "pairs.txt", "--counterfit", 5, "--kernel", "topk:3", "-o", "out.lex", old=("out.lex",)),
        verb("lexicon import", "lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", files / "train.tsv", "--min-count", 1,
             "--kernel", "component", "-o", "out.lex", old=("out.lex",)),
        verb("train ngram", "train", "--arch", "ngram", "--bits", 16, *learn, "-o", "out", **model),
        verb("train bow", "train", "--arch", "bow", *small, *learn, "-o", "out", **model),
        verb("train cnn", "train", "--arch", "cnn", "--filters", 8, *small, *learn, "-o", "out", **model),
        verb("train charcnn", "train", "--arch", "charcnn", "--characters", 128, "--batch", 8, "--epochs", 2, *few, "-o", "out", large=True, **model),
        verb("train bert", "train", "--arch", "bert", "--encoder", files / "encoder", "--train-layers", "all", *learn, "-o", "out", **model),
        verb("train ibp-jia", "train", "--arch", "cnn", "--defense", "ibp-jia", "--filters", 8, *small, *learn, "-o", "out", **model),
        verb("train ibp-huang", "train", "--arch", "cnn", "--defense", "ibp-huang", "--filters", 8, *small, *learn, "-o", "out", **model),
        verb("train exact", "train", "--arch", "bow", "--defense", "exact", *small, "--hidden", 0, *learn, "-o", "out", **model),
        verb("label", "label", "--model", files / "model", "--data", files / "train.tsv", "--keep", 0.5, "-o", "out.tsv", old=("out.tsv",)),
        verb("certify", "certify", *asked, "--method", "hoeffding", "--n", 2000, "-o", "out.jsonl", again=("--resume",)),
        verb("certify exec:", "certify", *remote, "--n", 50, "-o", "out.jsonl", again=("--resume",)),
        verb("verify exec:", "verify", files / "exec.jsonl", *remote),
        verb("certify --shard", "certify", *asked, "--method", "hoeffding", "--n", 2000, "--shard", "2/3", "-o", "out.jsonl", again=("--resume",)),
        verb("merge", "merge", *(files / f"part{number}.jsonl" for number in (3, 1, 2)), "-o", "merged", old=("merged",)),
        verb("attack", "attack", *asked, "-o", "out.jsonl", again=("--resume",)),
        verb("attack --smoothed", "attack", *asked, "--smoothed", "--n", 50, "-o", "out.jsonl", again=("--resume",)),
        verb("attack --against", "attack", *asked, "--against", files / "run.jsonl", "-o", "out.jsonl", again=("--resume",)),
        verb("report", "report", files / "run.jsonl", *test, *lexicon, "--attack", files / "attack.jsonl", "-o", "out.html", "--svg", "svg",
             "--csv", "csv", old=("out.html",)),
        verb("evidence", "evidence", files / "run.jsonl", "--baseline", files / "run.jsonl", "--require", 0, "-o", "out"),
        verb("model convert", "model", "convert", files / "encoder", "-o", "out", old=("out",)),
        verb("model average", "model", "average", files / "encoder", files / "encoder", "-o", "out", old=("out",)),
        verb("model fit", "model", "fit", "--model", files / "sum.json", *test, "-o", "out.json", old=("out.json",)),
        verb("lexicon audit", "lexicon", "audit", files / "w.lex", "-o", "out"),
        verb("sweep", "sweep", "--kernels", "topk:2,topk:3", "--arch", "ngram", "--bits", 14, *learn, "--n", 50, "-o", "out"),
        verb("compare", "compare", files / "compare.json", "-o", "out", "--markdown", "out.md", "--csv", "csv", old=("out.md",)),
    ]


def check_all_there(safer, cases):
    """There is a case for everything that has an option --output."""
    def listed(*words):
        out = subprocess.run([safer, *words, "--help"], check=True, capture_output=True, text=True).stdout
        part = re.search(r"^(?:Verbs|Actions):\n((?:  .*\n)+)", out, re.M)
        if part:
            for line in part[1].splitlines():
                yield from listed(*words, line.split()[0])
        elif "--output" in out:
            yield words

    missing = [words for words in listed() if not any(case.arguments[:len(words)] == words for case in cases)]
    assert not missing, f"no kills of {missing}"


# -------------------------------------------------------------------- the files

def contents(folder):
    """Files by name; text without its times."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            is_text = path.suffix in (".jsonl", ".json", ".md", ".csv", ".html", ".xml", ".sarif", ".svg")
            found[str(path.relative_to(folder))] = plain(content) if is_text else content
    return found


def steps_of(checkpoint):
    """How many steps of training it has seen."""
    length, = struct.unpack_from("<Q", checkpoint)
    begin = json.loads(checkpoint[8:8 + length])["state"]["data_offsets"][0]
    return struct.unpack_from("<d", checkpoint, 8 + length + begin)[0]


def done_in(made):
    """The files that a comparison has finished."""
    return {name for name, entry in json.loads(made).items() if entry["done"]}


def whole_lines(content):
    return content[:content.rfind(b"\n") + 1]


def children_of(mark):
    """Processes that have it in their environment; those that only wait to be collected have none."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if mark in pathlib.Path("/proc", entry, "environ").read_bytes():
                    yield int(entry)
            except OSError:
                pass


class Trial:
    """One verb: what it writes when it is left alone, and what kills did."""

    def __init__(self, build, folder, case, seed):
        self.build, self.folder, self.case = build, folder / "work", case
        self.chance = random.Random(f"{seed} {case.name}")
        self.module = faulty.module_of(build)
        self.state = faulty.State(folder / "state")
        self.environment = {**os.environ, "LC_ALL": "C.UTF-8", "SOURCE_DATE_EPOCH": "1700000000"}
        self.kills = self.at_calls = self.runs = self.orphans = 0
        self.found = {"lost": [], "damaged": []}
        self.begin()
        begun = time.monotonic()
        code, message = self.go(())
        self.lasted, self.calls = time.monotonic() - begun, self.state.calls
        assert code == 0, f"{case.name}: exit {code}, {message}"
        self.whole = contents(self.folder)

    def begin(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for name in self.case.old:
            (self.folder / name).write_bytes(OLD)
        self.before, self.done = dict.fromkeys(self.case.old, OLD), set()

    def go(self, more, seconds=None, call=None):
        """Runs it; killed after so many seconds, or at this call. Exit status and message; None when it was killed."""
        mark = f"SAFER_KILL_MARK={os.getpid()}.{next(NUMBERS)}."
        faults = {"LD_PRELOAD": str(self.module), "FAULTS_STATE": str(self.folder.parent / "state")} if self.module and seconds is None else {}
        self.state.set(**dict.fromkeys(faulty.FIELDS, 0))
        if call is not None:
            self.state.set(fail=faulty.CALL, number=call, problem=faulty.KILL)
        name, value = mark.split("=")
        with open(self.folder.parent / "stderr", "w+b") as messages:
            process = subprocess.Popen([self.build / "safer", *self.case.arguments, *more, "--quiet"], cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=messages, env={**self.environment, **faults, name: value})
            try:
                process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            messages.seek(0)
            message = messages.read().decode()
        patience = time.monotonic() + PATIENCE
        while (living := list(children_of(mark.encode()))) and time.monotonic() < patience:
            time.sleep(0.01)
        if living:
            self.found["damaged"].append(f"children live on: {living}")
            for child in living:
                os.kill(child, signal.SIGKILL)
        return (None if process.returncode == -signal.SIGKILL else process.returncode), message

    def look(self):
        """What the last kill did to the files."""
        now = contents(self.folder)
        for name, content in now.items():
            earlier, whole = self.before.get(name), self.whole.get(name)
            if TEMPORARY.search(name):
                self.orphans += 1
            elif name.endswith(".checkpoint"):
                if earlier and steps_of(content) < steps_of(earlier):
                    self.found["lost"].append(f"{name}: a checkpoint of {steps_of(earlier)} steps became one of {steps_of(content)}")
            elif whole is not None and name.endswith(".jsonl"):
                if not whole.startswith(whole_lines(content)):
                    self.found["damaged"].append(f"{name}: other records")
                if not whole_lines(content).startswith(whole_lines(earlier or b"")):
                    self.found["lost"].append(f"{name}: {earlier.count(10)} records became {content.count(10)}")
            elif name.endswith("made.json"):
                done = done_in((self.folder / name).read_bytes())
                if not self.done <= done:
                    self.found["lost"].append(f"{name}: {self.done - done} are no longer done")
                self.done = done
            elif content != whole and not (name in self.case.old and content == OLD):
                self.found["damaged"].append(f"{name}: {len(content)} bytes")
            elif earlier == whole and content != whole:
                self.found["lost"].append(f"{name}: the finished file is gone")
        for name in self.before.keys() - now.keys():
            if not TEMPORARY.search(name) and not (name.endswith(".checkpoint") and now.get(name[:-len(".checkpoint")]) is not None):
                self.found["lost"].append(f"{name} is gone")
        self.before = now

    def again(self):
        return (*self.case.again, "--threads", str(self.chance.choice((1, 2, 5))))

    def round(self):
        """One run, killed a few times, then left alone."""
        self.begin()
        self.runs += 1
        for _ in range(self.chance.randint(1, MOST)):
            by_call = self.module and self.chance.random() < 0.5
            where = {"call": self.chance.randrange(self.calls)} if by_call else {"seconds": self.chance.uniform(0, self.lasted)}
            code, message = self.go(self.again(), **where)
            if code is None:
                self.kills += 1
                self.at_calls += bool(by_call)
                self.look()
            elif code == 0:
                break
            else:
                self.found["damaged"].append(f"exit {code} after a kill: {message}")
                return
        else:
            code, message = self.go(self.again())
            if code != 0:
                self.found["damaged"].append(f"exit {code} in the end: {message}")
                return
        now = contents(self.folder)
        for name in sorted(now.keys() | self.whole):
            if now.get(name) != self.whole.get(name):
                what = "is left" if name not in self.whole else "is missing" if name not in now else "differs"
                self.found["lost" if name not in now else "damaged"].append(f"{name} {what} in the end")


def digests(folder):
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=0, help="in all, spread over the verbs")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--verb", action="append", default=[])
    parser.add_argument("build")
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    safer = build / "safer"
    with tempfile.TemporaryDirectory(prefix="safer-kill-") as name:
        files = pathlib.Path(name) / "files"
        files.mkdir()
        make_files(safer, build, files)
        cases = verbs(build, files)
        check_all_there(safer, cases)
        exec_run = next(case for case in cases if case.name == "certify exec:")
        subprocess.run([safer, *exec_run.arguments, "--quiet"], cwd=files, check=True, stdout=subprocess.DEVNULL)
        (files / "out.jsonl").rename(files / "exec.jsonl")
        untouched = digests(files)
        cases = [case for case in cases if (case.name in options.verb if options.verb else options.kills or not case.large)]
        trials = []
        print(f"{'verb':<18} kills  at a call  runs  temporary files  lost  damaged  seconds")
        for case in cases:
            begun = time.monotonic()
            trial = Trial(build, pathlib.Path(name), case, options.seed)
            trials.append(trial)
            share = -(-options.kills // len(cases)) if options.kills else KILLS
            while trial.kills < share and not any(trial.found.values()):
                trial.round()
            lost, damaged = trial.found.values()
            print(f"{case.name:<18} {trial.kills:5}  {trial.at_calls:9}  {trial.runs:4}  {trial.orphans:15}  {len(lost):4}  {len(damaged):7}"
                  f"  {time.monotonic() - begun:7.1f}", flush=True)
            for finding in lost + damaged:
                print(f"  {finding}")
        if digests(files) != untouched:
            sys.exit("what was read has changed")
    lost, damaged = (sum(len(trial.found[what]) for trial in trials) for what in ("lost", "damaged"))
    print(f"{sum(t.kills for t in trials)} kills of {len(trials)} verbs in {sum(t.runs for t in trials)} runs, {sum(t.at_calls for t in trials)} "
          f"at a call that changes files: {lost} lost, {damaged} damaged")
    if lost or damaged:
        sys.exit(1)
    print("[  PASSED  ] 1 test(s).")


main()
