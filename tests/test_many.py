#!/usr/bin/env python3
"""Memory does not grow with the number of texts: test_many.py BUILD_DIR. Run by ctest.

Runs of 20,000 and of 60,000 texts are certified, and verified with their texts, in one thread. The peak of the second may
exceed that of the first by little more than what a text may cost: 16 bytes of a place in the file, and 8 of a place in
the run. A report about 120,000 texts lists 100,000 of them, and needs less memory than the records of all would. Then a
file of texts changes while it is in use.
"""
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import faulty  # noqa: E402

FEW, MANY, LISTED, REPORTED = 20_000, 60_000, 100_000, 120_000
MORE = 5 << 20  # bytes: texts, or records, of the difference are three times as much
REPORT = 56 << 20  # bytes for a report; the records of all texts would be 70 MB
WORDS = ("good", "great", "fine", "bad", "poor", "awful", "film", "story")
FILLER = " ".join(["nothing in this sentence has a synonym"] * 6)


def write_texts(path, count, filler=FILLER):
    with open(path, "w", encoding="utf-8") as out:
        for i in range(count):
            out.write(f"{i}\t{i % 2}\tthe {WORDS[i % 8]} {WORDS[i // 8 % 8]} {WORDS[i // 64 % 8]} {filler}\n")


def peak(program, *arguments):
    """The most memory that was resident, in bytes."""
    code = "import os,resource,subprocess,sys; c=subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL).returncode; " \
           "print(c, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", code, program, *map(str, arguments)], stdout=subprocess.PIPE, check=True, timeout=600)
    status, kilobytes = map(int, done.stdout.split())
    assert status == 0, f"{arguments}: status {status}"
    return kilobytes * 1024


def certify(program, folder, data, run):
    return peak(program, "certify", "--model", folder / "m.safetensors", "--lexicon", folder / "l.lex", "--data", data, "--method",
                "binomial", "--n", 2, "--n0", 2, "--threads", 1, "--quiet", "-o", run)


def check_growth(program, folder):
    """Peaks of certify and verify, for few texts and for many."""
    peaks = {"certify": [], "verify": []}
    for count in (FEW, MANY):
        data, run = folder / f"{count}.tsv", folder / f"{count}.jsonl"
        write_texts(data, count)
        peaks["certify"].append(certify(program, folder, data, run))
        peaks["verify"].append(peak(program, "verify", run, "--lexicon", folder / "l.lex", "--data", data, "--threads", 1, "--quiet"))
    for verb, (few, many) in peaks.items():
        print(f"{verb}: {few >> 10} KB for {FEW} texts, {many >> 10} KB for {MANY}", flush=True)
    return sum(many - few > MORE for few, many in peaks.values())


def check_report(program, folder):
    """The peak of a report that lists a part of the texts, and says so."""
    data, run, page = folder / "short.tsv", folder / "short.jsonl", folder / "page.html"
    write_texts(data, REPORTED, "")
    certify(program, folder, data, run)
    most = peak(program, "report", run, "--quiet", "-o", page)
    said = f"Of the {REPORTED:,} texts of <bdi>short</bdi> this page lists {LISTED:,}, spread evenly over them"
    print(f"report: {most >> 10} KB for {REPORTED} texts", flush=True)
    return (most > REPORT) + (said not in page.read_text(encoding="utf-8"))


def check_change(program, folder):
    """A file that changes behind a run ends it with one line that names it."""
    data, run = folder / f"{MANY}.tsv", folder / "changed.jsonl"
    child = subprocess.Popen([program, "certify", "--model", folder / "m.safetensors", "--lexicon", folder / "l.lex", "--data", data,
                              "--n", "100", "--threads", "1", "--quiet", "-o", run], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until = time.monotonic() + 300
    while not (run.exists() and run.stat().st_size > 10000) and time.monotonic() < until:  # all texts were read once
        time.sleep(0.01)
    with open(data, "r+b") as file:
        file.seek(-20, 2)
        file.write(b"X")
    message = child.communicate(timeout=600)[1].decode()
    right = child.returncode == 3 and message.count("\n") == 1 and f"{data} was changed while it was read" in message
    if not right:
        print(f"a file that changes: status {child.returncode}, {message!r}")
    return 0 if right else 1


def main():
    build = pathlib.Path(sys.argv[-1]).resolve()
    if faulty.module_of(build) is None:
        print("skipped: a sanitizer keeps what was freed")
        return 0
    with tempfile.TemporaryDirectory(prefix="safer-many-") as name:
        folder, program = pathlib.Path(name), build / "safer"
        (folder / "s.tsv").write_text("good\tgreat fine\nbad\tpoor awful\nfilm\tstory\n")
        write_texts(folder / "train.tsv", 400)
        peak(program, "lexicon", "import", "--table", folder / "s.tsv", "--vocab-from", folder / "train.tsv", "--min-count", 1,
             "--kernel", "topk:2", "--quiet", "-o", folder / "l.lex")
        peak(program, "train", "--arch", "ngram", "--bits", 12, "--epochs", 1, "--data", folder / "train.tsv", "--dev", folder / "train.tsv",
             "--lexicon", folder / "l.lex", "--quiet", "-o", folder / "m.safetensors")
        found = check_growth(program, folder) + check_report(program, folder) + check_change(program, folder)
    print(f"{found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
