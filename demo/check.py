#!/usr/bin/env python3
"""Checks demo-reviews: check.py PROGRAM SYNONYMS.TSV. Run by ctest."""
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

# SHA-256 of train.tsv, dev.tsv and test.tsv with the default seed: the same on every
# machine. Changing the grammar or the table changes it; print the new one with this script.
EXPECTED = "e43c036de4dc1591a082a30382aaf07cf2d4fc26a0776f43d61cbc2e2b89d63a"

WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
program, table = sys.argv[1:3]
failures = []


def check(condition, message):
    if not condition:
        failures.append(message)


def run(folder, *flags, code=0):
    done = subprocess.run([program, *([str(folder)] if folder else []), *flags], capture_output=True, text=True)
    check(done.returncode == code, f"demo-reviews {' '.join(flags)}: exit {done.returncode}, not {code}: {done.stderr}")
    return done


def contents(folder):
    return [(folder / f"{part}.tsv").read_bytes() for part in ("train", "dev", "test")]


with tempfile.TemporaryDirectory() as name:
    root = pathlib.Path(name)
    run(root / "a/deep/folder")
    files = contents(root / "a/deep/folder")
    digest = hashlib.sha256(b"".join(files)).hexdigest()
    check(digest == EXPECTED, f"other bytes than before: {digest}, not {EXPECTED}")

    run(root / "short", "--train", "30", "--dev", "0", "--test", "7")
    short = contents(root / "short")
    check(files[0].startswith(short[0]) and files[2].startswith(short[2]) and not short[1], "a short file is no prefix")
    run(root / "other", "--seed", "2")
    check(all(a != b for a, b in zip(files, contents(root / "other"))), "another seed gives the same reviews")

    check(run(None, "--help").stdout.startswith("Usage: demo-reviews"), "--help prints no usage")
    run(None, code=2)
    run(root, "--seed", "x", code=2)
    run(root, "--train", code=2)
    run(root, "--colour", code=2)
    run(root / "short/train.tsv/x", code=4)

words = set()
for part, file, rows in zip(("train", "dev", "test"), files, (4000, 500, 1000)):
    lines = file.decode().split("\n")
    check(lines.pop() == "" and len(lines) == rows, f"{part}: not {rows} lines")
    fields = [line.split("\t") for line in lines]
    check(all(len(row) == 3 for row in fields), f"{part}: a line without three fields")
    check(len({row[0] for row in fields}) == rows, f"{part}: an id appears twice")
    check(len({row[2] for row in fields}) == rows, f"{part}: a text appears twice")
    check([row[1] for row in fields].count("1") * 2 == rows, f"{part}: not as many 0 as 1")
    for row in fields:
        text = re.sub(r"\\([\\tnr])", lambda found: "\n", row[2])
        found = WORD.findall(text)
        check(40 <= len(found) <= 120, f"{row[0]}: {len(found)} words")
        check("  " not in text and not re.search(r"[{}<>\[\]|@#\\]", text), f"{row[0]}: grammar marks left over")
        check(not re.search(r"\ba [aeio]\w", text, re.I) or re.search(r"\ba one", text), f"{row[0]}: a before a vowel")
        if part == "train":
            words.update(word.lower() for word in found)

groups = [line.split() for line in pathlib.Path(table).read_text().splitlines()]
missing = [word for group in groups for word in group if word not in words]
check(not missing, f"words of the table that no training review uses: {' '.join(missing)}")
check(len(words) >= 2500, f"only {len(words)} distinct words")

for failure in failures[:20]:
    print("check.py:", failure, file=sys.stderr)
print(f"{len(groups)} groups, {sum(map(len, groups))} words in them, {len(words)} distinct words in train.tsv")
sys.exit(1 if failures else 0)
