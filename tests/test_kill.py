#!/usr/bin/env python3
"""Kills a certification run at random moments, at least 50 times, and resumes it.

Nothing may be lost and nothing done twice: the records must equal those of a run that
was left alone, for several thread counts and batch sizes, times aside.

    python3 tests/test_kill.py [--kills 50] [--seed 5] BUILD_DIR
"""
import argparse
import json
import os
import random
import signal
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("--kills", type=int, default=50)
parser.add_argument("--seed", type=int, default=5)
parser.add_argument("build")
options = parser.parse_args()
build = os.path.abspath(options.build)
safer = os.path.join(build, "safer")
source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
random.seed(options.seed)


def run(*arguments):
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)


def records(path):
    """The lines of a run without their times; every line must be whole."""
    lines = []
    with open(path) as file:
        for line in file:
            assert line.endswith("\n"), "a cut line"
            record = json.loads(line)
            record.pop("date", None)
            record.pop("seconds", None)
            lines.append(json.dumps(record))
    return lines


with tempfile.TemporaryDirectory() as folder:
    def path(name):
        return os.path.join(folder, name)

    run(os.path.join(build, "demo-reviews"), folder, "--train", "1500", "--dev", "100", "--test", "200")
    run(safer, "lexicon", "import", "--table", os.path.join(source, "demo/synonyms.tsv"), "--vocab-from", path("train.tsv"),
        "--min-count", "1", "--kernel", "topk:3", "-o", path("demo.lex"))
    run(safer, "train", "--arch", "ngram", "--data", path("train.tsv"), "--dev", path("dev.tsv"), "--lexicon", path("demo.lex"),
        "--bits", "18", "-o", path("model"))
    base = [safer, "certify", "--model", path("model"), "--lexicon", path("demo.lex"), "--data", path("test.tsv"), "--quiet",
            "--method", "hoeffding", "--n", "2000"]
    start = time.time()
    run(*base, "-o", path("whole.jsonl"), "--threads", "2")
    lasted = time.time() - start
    expected = records(path("whole.jsonl"))
    assert len(expected) == 201
    for threads, batch in ((1, 256), (5, 64), (2, 1000)):
        run(*base, "-o", path(f"t{threads}.jsonl"), "--threads", str(threads), "--batch", str(batch))
        assert records(path(f"t{threads}.jsonl")) == expected, f"{threads} threads, batches of {batch}: other records"

    kills = rounds = 0
    while kills < options.kills:
        rounds += 1
        out = path(f"killed{rounds}.jsonl")
        while True:
            command = base + ["-o", out, "--resume", "--threads", str(random.choice((1, 2, 5))), "--batch", str(random.choice((16, 256)))]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            try:
                process.wait(timeout=random.uniform(0, lasted / 4))
                assert process.returncode == 0, f"exit {process.returncode}"
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
        assert records(out) == expected, f"round {rounds}: other records after {kills} kills"
        run(safer, "verify", out)
    print(f"{kills} kills in {rounds} runs: nothing lost, nothing twice")
    print("[  PASSED  ] 1 test(s).")
