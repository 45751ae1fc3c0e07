#!/usr/bin/env python3
"""--mpi under a real mpirun: test_cli_mpi.py [NAME] BUILD_DIR, the tests whose names contain NAME. Run by ctest; skips, with a line, where there is none.

What goes wrong between ranks is tested without MPI, in test_crew.c; scripts/trial-mpi does all kinds of runs, at length.
"""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
import test_cli_devices  # noqa: E402

build = pathlib.Path(sys.argv[-1]).resolve()
safer = build / "safer"
if not shutil.which("mpirun") or not (build / "libsafer_mpi.so").exists():
    print("skipped: there is no mpirun, or no plugin for MPI (scripts/bootstrap --mpi)")
    sys.exit(0)
environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "SOURCE_DATE_EPOCH": "1"}


SERVER = """
import json, os, sys, time
breaks = os.environ.get("BREAKS") == os.environ["OMPI_COMM_WORLD_RANK"]
if breaks and os.path.exists("broken"):
    sys.exit(5)
for line in sys.stdin:
    request = json.loads(line)
    time.sleep(float(os.environ.get("SLEEPS", 0)) * len(request["texts"]))
    if breaks and request["id"] > 12:
        open("broken", "w").close()
        sys.exit(5)
    changed = os.environ.get("CHANGED") and request["id"] > 0
    labels = ["1" if ("good" in text) != bool(changed and "zebra" in text) else "0" for text in request["texts"]]
    print(json.dumps({"id": request["id"], "labels": labels}), flush=True)
"""


def call(*command, code=0, **more):
    done = subprocess.run([str(word) for word in command], env={**environment, **more}, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def records(path):
    return [line.split(',"seconds"')[0] for line in pathlib.Path(path).read_text().splitlines()]


def mpirun(ranks, verb, *arguments, code=0, **more):
    return call("mpirun", "-n", ranks, "--oversubscribe", safer, verb, *arguments, "--mpi", "--threads", 1, code=code, **more)


def wrapped(ranks, shell, verb, *arguments, code=0, first=(), **more):
    """Where ranks differ: `shell` is what each does before safer, and may look at the number of its rank."""
    script = f'{shell}\nexec "$@"'
    return call("mpirun", "-n", ranks, "--oversubscribe", *first, "sh", "-c", script, "sh", safer, verb, *arguments, "--mpi", "--threads", 1, code=code, **more)


def one_line(done):
    """What safer itself says, beside mpirun: one line."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("safer")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def make_files():
    rows = [f"{k}\t{k % 2}\t{'good great' if k % 2 else 'bad poor'} film number {'good' if k % 3 else 'bad'} day" for k in range(60)]
    pathlib.Path("texts.tsv").write_text("id\tlabel\ttext\n" + "\n".join(rows) + "\n")
    pathlib.Path("zebra.tsv").write_text("id\tlabel\ttext\n" + "\n".join(rows[:30]) + "\n30\t0\tbad zebra film\n")
    pathlib.Path("words.tsv").write_text("good\tgreat\nbad\tpoor\nfilm\tmovie\n")
    pathlib.Path("server.py").write_text(SERVER)
    call(safer, "lexicon", "import", "--table", "words.tsv", "--kernel", "component", "-o", "words.lex")
    call(safer, "train", "--arch", "ngram", "--data", "texts.tsv", "--lexicon", "words.lex", "-o", "m.safetensors")
    test_cli.temporary = pathlib.Path(".").resolve()
    test_cli_devices.make_charcnn("charcnn.safetensors")


def test_same():
    for k, method in enumerate(("adaptive", "binomial", "hoeffding")):
        arguments = (*FILES, "--method", method, "--n", 300)
        call(safer, "certify", *arguments, "-o", "one.jsonl", "--quiet")
        mpirun(2 + k, "certify", *arguments, "-o", "many.jsonl")
        assert records("many.jsonl") == records("one.jsonl"), method
        text = pathlib.Path("many.jsonl").read_text().splitlines(keepends=True)
        pathlib.Path("many.jsonl").write_text("".join(text[:20]))  # as after a kill
        mpirun(4 - k, "certify", *arguments, "-o", "many.jsonl", "--resume")
        assert records("many.jsonl") == records("one.jsonl"), (method, "resumed")
        os.remove("many.jsonl")
        if not k:
            for part in (1, 2, 3):
                mpirun(2, "certify", *arguments, "--shard", f"{part}/3", "-o", f"part{part}.jsonl")
            call(safer, "merge", "part1.jsonl", "part2.jsonl", "part3.jsonl", "-o", "many.jsonl")
            assert records("many.jsonl") == records("one.jsonl"), "parts"
            os.rename("many.jsonl", "run.jsonl")
        os.remove("one.jsonl")


def test_mistakes():
    """What all ranks find in the command line is told once; what one rank alone has differently, by its name, and no file is left."""
    assert "there is no option --mode" in one_line(mpirun(3, "certify", "--mode", "x", code=2))
    assert "--lexicon FILE is needed" in one_line(mpirun(3, "certify", "--model", "m.safetensors", code=2))
    assert "--mpi needs --model" in one_line(mpirun(2, "verify", "run.jsonl", code=2))
    differs = ("certify", *FILES, "--mpi", "--n", 77, "-o", "many.jsonl")
    done = call("mpirun", "--oversubscribe", "-n", 1, safer, "certify", *FILES, "--mpi", "-o", "many.jsonl", ":", "-n", 1, safer, *differs, code=3)
    line = one_line(done)
    assert "rank 1 on " in line and "n is 77 there, 5000 here" in line, line
    assert not os.path.exists("many.jsonl")


def test_verify():
    done = mpirun(3, "verify", "run.jsonl", *FILES, "--json")
    alone = call(safer, "verify", "run.jsonl", *FILES, "--json")
    assert json.loads(done.stdout) == json.loads(alone.stdout), done.stdout
    model = ("--model", f"exec:{sys.executable} server.py", "--labels", "0,1", "--model-name", "s", "--workers", 1)
    files = (*model, "--lexicon", "words.lex", "--data", "zebra.tsv")
    mpirun(2, "certify", *files, "--n", 200, "-o", "zebra.jsonl")
    mpirun(2, "verify", "zebra.jsonl", *files)
    line = one_line(mpirun(2, "verify", "zebra.jsonl", *files, code=3, CHANGED="1"))
    assert re.fullmatch(r'safer: zebra.jsonl, line 32: the model gives another record: "\w+" differs', line), line


def test_devices():
    """Ranks of one machine share its GPUs by their number on it, and leave out one that cannot be used."""
    os.mkdir("plugins")
    for plugin in (build / "libsafer_mpi.so", build / "mock/works/libsafer_cuda.so"):
        os.symlink(plugin, f"plugins/{plugin.name}")
    mock = {"SAFER_PLUGINS": os.path.abspath("plugins"), "MOCK_DEVICES": "3", "MOCK_OLD": "0", "MOCK_TRACE": os.path.abspath("trace.txt")}
    files = ("--model", "charcnn.safetensors", *FILES[2:], "--limit", 6, "--n", 20)
    mpirun(4, "certify", *files, "--device", "cuda", **mock)
    assert sorted(pathlib.Path("trace.txt").read_text().split()) == ["1", "1", "2", "2"]
    os.remove("trace.txt")
    mpirun(2, "certify", *files, "--device", "cuda:2", **mock)
    assert pathlib.Path("trace.txt").read_text().split() == ["2", "2"]


def test_against():
    """The cross-check: helpers need neither the run nor the data; what rank 0 writes is what one process writes."""
    alone = call(safer, "attack", "--against", "run.jsonl", *FILES, "--n", 200, "-o", "one.jsonl", "--json")
    elsewhere = ("attack", "--against", "nowhere.jsonl", *FILES[:-1], "nowhere.tsv", "--n", 200, "--mpi", "--threads", 1)
    here = ("attack", "--against", "run.jsonl", *FILES, "--n", 200, "-o", "many.jsonl", "--json", "--mpi", "--threads", 1)
    done = call("mpirun", "--oversubscribe", "-n", 1, safer, *here, ":", "-n", 2, safer, *elsewhere)
    assert records("many.jsonl") == records("one.jsonl")
    results = [json.loads(each.stdout) for each in (alone, done)]
    for result in results:
        assert result.pop("seconds") > 0 and result.pop("queries_per_second", 1)
    assert results[0] == results[1] and results[0]["certified"] > 0, results
    text = pathlib.Path("many.jsonl").read_text().splitlines(keepends=True)
    pathlib.Path("many.jsonl").write_text("".join(text[:20]))
    mpirun(2, "attack", "--against", "run.jsonl", *FILES, "--n", 200, "-o", "many.jsonl", "--resume")
    assert records("many.jsonl") == records("one.jsonl")
    for part in (1, 2):
        mpirun(2, "attack", "--against", "run.jsonl", *FILES, "--n", 200, "--shard", f"{part}/2", "-o", f"a{part}.jsonl")
    call(safer, "merge", "a1.jsonl", "a2.jsonl", "-o", "merged.jsonl")
    assert records("merged.jsonl") == records("one.jsonl")
    os.remove("many.jsonl")
    differs = list(elsewhere)
    differs[differs.index("--n") + 1] = 77
    line = one_line(call("mpirun", "--oversubscribe", "-n", 1, safer, *here, ":", "-n", 1, safer, *differs, code=3))
    assert "rank 1 on " in line and "n is 77 there, 200 here" in line, line
    assert not os.path.exists("many.jsonl")


def test_full_disk():
    """No room for the file: what is there is whole lines, and can be continued where there is room. Shared memory of MPI is a
    file too, which must not be what has no room."""
    arguments = (*FILES, "--n", 300)
    call(safer, "certify", *arguments, "-o", "alone.jsonl", "--quiet")
    limited = 'trap "" XFSZ; if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then ulimit -f 16; fi'
    done = wrapped(3, limited, "certify", *arguments, "-o", "many.jsonl", code=4, first=("--mca", "btl", "self,tcp"))
    assert one_line(done) == "safer: cannot write many.jsonl: File too large", done.stderr
    left = records("many.jsonl")
    assert 1 < len(left) < 61 and left == records("alone.jsonl")[: len(left)], len(left)
    mpirun(2, "certify", *arguments, "-o", "many.jsonl", "--resume")
    assert records("many.jsonl") == records("alone.jsonl")
    os.remove("many.jsonl")


def test_failing_model():
    """A model that fails on one rank only, in the middle: its rank and host are named, the rest stays."""
    model = ("--model", f"exec:{sys.executable} server.py", "--labels", "0,1", "--model-name", "s", "--workers", 1)
    files = (*model, "--lexicon", "words.lex", "--data", "texts.tsv", "--n", 100)
    for verb, more in (("certify", ()), ("attack", ("--against", "whole.jsonl"))):
        whole = "whole.jsonl" if verb == "certify" else "checked.jsonl"
        mpirun(1, verb, *files, *more, "-o", whole)
        line = one_line(mpirun(3, verb, *files, *more, "-o", "broken.jsonl", code=4, BREAKS="2", SLEEPS="0.0002"))
        assert re.match(r"safer: rank 2 on \S+: exec: the command ended with status 5", line), line
        left = records("broken.jsonl")
        assert left == records(whole)[: len(left)], verb
        os.remove("broken")
        mpirun(2, verb, *files, *more, "-o", "broken.jsonl", "--resume")
        assert records("broken.jsonl") == records(whole), verb
        os.remove("broken.jsonl")


def test_progress():
    """On a terminal rank 0 shows the whole, and what this host does in a second."""
    ours, theirs = os.openpty()
    shown = []

    def read():
        try:
            while True:
                shown.append(os.read(ours, 4096))
        except OSError:
            pass

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    model = ("--model", f"exec:{sys.executable} server.py", "--labels", "0,1", "--model-name", "s", "--workers", 1)
    to_terminal = f'if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then exec 2>{os.ttyname(theirs)}; fi'
    wrapped(3, to_terminal, "certify", *model, "--lexicon", "words.lex", "--data", "texts.tsv", "--n", 100, "-o", "slow.jsonl", SLEEPS="0.01")
    os.close(theirs)
    reader.join(10)
    lines = b"".join(shown).decode().split("\r")
    host = re.escape(socket.gethostname())
    whole = re.compile(rf"certifying(, \d+% certified so far)?, {host} (\d+\.\d)/s  \d+ of 60(  [\d.]+/s)?")
    rates = [float(found[2]) for found in map(whole.search, lines) if found]
    assert rates and max(rates) > 1, lines[-5:]


FILES = ("--model", "m.safetensors", "--lexicon", "words.lex", "--data", "texts.tsv")
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    make_files()
    for test in (test_same, test_mistakes, test_verify, test_devices, test_against, test_full_disk, test_failing_model, test_progress):
        if len(sys.argv) < 3 or sys.argv[1] in test.__name__ or test is test_same:
            test()
    os.chdir("/")
print("ok")
