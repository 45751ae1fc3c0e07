#!/usr/bin/env python3
"""certify --mpi under a real mpirun: test_cli_mpi.py BUILD_DIR. Run by ctest; skips, with a line, where there is none.

What goes wrong between ranks is tested without MPI, in test_crew.c.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

build = pathlib.Path(sys.argv[-1]).resolve()
safer = build / "safer"
if not shutil.which("mpirun") or not (build / "libsafer_mpi.so").exists():
    print("skipped: there is no mpirun, or no plugin for MPI (scripts/bootstrap --mpi)")
    sys.exit(0)
environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "SOURCE_DATE_EPOCH": "1"}


def call(*command, code=0):
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def records(path):
    return [line.split(',"seconds"')[0] for line in pathlib.Path(path).read_text().splitlines()]


def mpirun(ranks, *arguments, code=0):
    return call("mpirun", "-n", ranks, "--oversubscribe", safer, "certify", *arguments, "--mpi", "--threads", 1, code=code)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    rows = [f"{k}\t{k % 2}\t{'good great' if k % 2 else 'bad poor'} film number {'good' if k % 3 else 'bad'} day" for k in range(60)]
    pathlib.Path("texts.tsv").write_text("id\tlabel\ttext\n" + "\n".join(rows) + "\n")
    pathlib.Path("words.tsv").write_text("good\tgreat\nbad\tpoor\nfilm\tmovie\n")
    call(safer, "lexicon", "import", "--table", "words.tsv", "--kernel", "component", "-o", "words.lex")
    call(safer, "train", "--arch", "ngram", "--data", "texts.tsv", "--lexicon", "words.lex", "-o", "m.safetensors")
    files = ("--model", "m.safetensors", "--lexicon", "words.lex", "--data", "texts.tsv")
    for method in ("adaptive", "binomial", "hoeffding"):
        arguments = (*files, "--method", method, "--n", 300)
        call(safer, "certify", *arguments, "-o", "one.jsonl", "--quiet")
        for ranks in (2, 3):
            mpirun(ranks, *arguments, "-o", "many.jsonl")
            assert records("many.jsonl") == records("one.jsonl"), (method, ranks)
            text = pathlib.Path("many.jsonl").read_text().splitlines(keepends=True)
            pathlib.Path("many.jsonl").write_text("".join(text[:20]))  # as after a kill
            mpirun(5 - ranks, *arguments, "-o", "many.jsonl", "--resume")
            assert records("many.jsonl") == records("one.jsonl"), (method, ranks, "resumed")
            os.remove("many.jsonl")
        os.remove("one.jsonl")
    differs = ("certify", *files, "--mpi", "--n", 77)
    done = call("mpirun", "--oversubscribe", "-n", 1, safer, "certify", *files, "--mpi", ":", "-n", 1, safer, *differs, code=3)
    lines = [line for line in done.stderr.splitlines() if line.startswith("safer:")]
    assert len(lines) == 1 and "rank 1 on " in lines[0] and "n is 77 there, 5000 here" in lines[0], done.stderr
print("ok")
