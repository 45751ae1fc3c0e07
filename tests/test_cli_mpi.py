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
    assert code is None or done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
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
        deletion = ((), ("--delete", "keep:3", "--edits", 2), ("--delete", 0.8))[k]
        arguments = (*FILES, "--method", method, "--n", 300, *deletion)
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


def comparison(more=(), **changed):
    """A configuration of compare, with models that are trained, and one that is ready."""
    config = {"data": {"t": {"train": "texts.tsv", "test": "texts.tsv", "lexicon": {"table": "words.tsv", "vocab-from": "texts.tsv"}}},
              "models": {"ngram": {"arch": "ngram", "bits": 12}, **dict(more)},
              "defenses": {"none": {}, "smoothing": {"kernel": "component", "n": 200}, "sampled": {"kernel": "topk:2", "n": 150, "method": "binomial"},
                           "groups": {"kernel": "component", "groups": 5}, "delete": {"kernel": "component", "delete": 0.5, "n": 100}},
              "attacks": {"textfooler": {"limit": 40}}}
    pathlib.Path("compare.json").write_text(json.dumps({**config, **changed}))


def made(folder):
    """What a comparison made, but for seconds and dates."""
    found = {}
    for path in sorted(pathlib.Path(folder).iterdir()):
        found[path.name] = records(path) if path.suffix == ".jsonl" else path.read_bytes() if path.name != "made.json" else None
    return found


def without_seconds(value):
    if isinstance(value, dict):
        return {key: without_seconds(each) for key, each in value.items() if "seconds" not in key and key != "folder"}
    return [without_seconds(each) for each in value] if isinstance(value, list) else value


def test_compare():
    """Certificates and attacks of a comparison, shared: the files and figures of one process."""
    comparison()
    alone = call(safer, "compare", "compare.json", "-o", "alone", "--json")
    done = mpirun(3, "compare", "compare.json", "-o", "crew", "--json")
    assert made("crew") == made("alone")
    figures = [without_seconds(json.loads(text)) for text in (alone.stdout, done.stdout.replace("crew/", "alone/"))]
    assert figures[0] == figures[1] and figures[0]["cells"], figures
    for name in ("t.ngram.sampled.jsonl", "t.ngram.none.textfooler.jsonl"):  # as after a kill
        path = pathlib.Path("crew") / name
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:9]))
    state = json.loads(pathlib.Path("crew/made.json").read_text())
    for name in ("t.ngram.sampled.jsonl", "t.ngram.none.textfooler.jsonl"):
        state[name]["done"] = False
    pathlib.Path("crew/made.json").write_text(json.dumps(state))
    mpirun(2, "compare", "compare.json", "-o", "crew", "--quiet")
    assert made("crew") == made("alone")
    line = one_line(mpirun(2, "compare", "nowhere.json", "-o", "crew", code=3))
    assert "nowhere.json" in line, line


def test_compare_faults():
    """A cell that fails by itself does not end the others; a rank that cannot do its share, or is killed, does, and is named."""
    server = {"model": f"exec:{sys.executable} server.py", "model-name": "s", "workers": 1}
    smoothing = {"smoothing": {"kernel": "component", "n": 200}}
    comparison(more={"served": server}, attacks={}, defenses=smoothing)
    done = mpirun(2, "compare", "compare.json", "-o", "part", code=2)
    assert done.stderr.count('models.served: "labels" are needed with --mpi') == 1 and "ngram" in done.stdout, done.stderr
    pathlib.Path("other.tsv").write_text("id\tlabel\ttext\n1\tneither\tgood film\n2\tneither\tbad film\n")
    data = {"other": {"test": "other.tsv", "lexicon": "words.lex"}, "t": {"test": "texts.tsv", "lexicon": "words.lex"}}
    ready = {"ready": {"model": "m.safetensors"}}
    comparison(data=data, models=ready, defenses=smoothing, attacks={})
    done = mpirun(3, "compare", "compare.json", "-o", "labels", "--json", "--quiet", code=3)
    assert 'the label "neither", which the model does not know' in one_line(done), done.stderr
    assert len(records("labels/t.ready.smoothing.jsonl")) == 61
    away = "if [ $OMPI_COMM_WORLD_RANK = 2 ]; then mkdir -p away && cd away && cp ../compare.json .; fi"
    comparison()
    line = one_line(wrapped(3, away, "compare", "compare.json", "-o", "common", "--quiet", code=4))
    assert re.search(r"rank 2 on \S+: cannot open common/t.lex: No such file or directory; with --mpi all ranks must see the folder", line), line
    server["labels"] = "0,1"
    comparison(models={"served": server}, attacks={}, defenses=smoothing)
    line = one_line(mpirun(3, "compare", "compare.json", "-o", "broken-model", "--quiet", code=4, BREAKS="2", SLEEPS="0.0002"))
    assert re.match(r"safer: \[1/1\] t served smoothing: rank 2 on \S+: exec: the command ended with status 5", line), line
    os.remove("broken")
    killed = wrapped(3, 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then (sleep 3; kill -9 $$) & fi', "compare", "compare.json", "-o", "broken-model",
                     "--quiet", code=None, SLEEPS="0.05")
    assert killed.returncode, killed
    assert re.match(r"safer: rank 1 on \S+ is lost: .*; the same command resumes from here", one_line(killed)), killed.stderr
    mpirun(2, "compare", "compare.json", "-o", "broken-model", "--quiet")
    mpirun(1, "compare", "compare.json", "-o", "whole-model", "--quiet")
    assert made("broken-model") == made("whole-model")


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
    for test in (test_same, test_mistakes, test_verify, test_devices, test_against, test_compare, test_compare_faults, test_full_disk, test_failing_model, test_progress):
        if len(sys.argv) < 3 or sys.argv[1] in test.__name__ or test is test_same:
            test()
    os.chdir("/")
print("ok")
