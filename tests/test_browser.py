#!/usr/bin/env python3
"""The report and the explorer in a real browser: test_browser.py [TEST...] BUILD_DIR. Run by ctest.

Makes pages in BUILD_DIR/browser, of a demo run, of 25,000 texts, and of texts that try to
break a page, starts servers, and hands all to tests/browser/main.mjs. Needs Chromium, node and npm,
and two npm packages, which it installs into BUILD_DIR/browser; `make test-browser` installs
the former. What is missing is said, and the tests are skipped, unless SAFER_BROWSER=required.
"""
import atexit
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from cli_runs import cut, is_answered, xxh64  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
build = pathlib.Path(sys.argv[-1]).resolve()
folder = build / "browser"


def skip(reason):
    print(f"skipped: {reason}")
    if os.environ.get("SAFER_BROWSER") == "required":
        sys.exit("the browser tests are required")
    print("[  SKIPPED ] 1 test(s).")
    sys.exit(0)


def safer(*arguments):
    done = subprocess.run([build / "safer", *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=900)
    if done.returncode:
        sys.exit(f"safer {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def reviews(name, *flags):
    subprocess.run([build / "demo-reviews", folder / name, *flags], check=True, capture_output=True)


def unescape(text):
    return re.sub(r"\\([\\tnr])", lambda found: {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}[found[1]], text)


def rows_of(path):
    return [(id, label, unescape(text)) for id, label, text in
            (line.split("\t") for line in (folder / path).read_text().splitlines())]


def records_of(path):
    return [json.loads(line) for line in (folder / path).read_text().splitlines()[1:]]


def certify(model, lexicon, data, output, *more):
    """A run, made once a build folder and program."""
    if not (folder / output).exists():
        safer("certify", "--model", model, "--lexicon", lexicon, "--data", data, "-o", output, *more)


def sealed(records):
    """Lines of JSON, each with its seal."""
    lines, seed = [], 0
    for k, record in enumerate(records):
        text = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
        check = xxh64(text.encode(), seed)
        seed = seed if k else check
        free = '"seconds":0.5' if k else '"date":"2026-01-01T00:00:00Z"'  # which no seal covers
        lines.append(text[:-1] + f',{free},"check":"{check:016x}"}}\n')
    return "".join(lines)


# ---------------------------------------------------------------------- pages

def make_attack():
    """An attack as safer attack writes it: the first text is changed in its first slot, the second holds."""
    config = json.loads((folder / "topk.jsonl").read_text().splitlines()[0])
    text = rows_of("demo/test.tsv")[0][2]
    word = next(w for w in re.finditer(r"[^\W\d_]+", text) if synonyms(w[0]))
    change = {"word": 1, "byte": len(text[:word.start()].encode()), "from": word[0], "to": "<b>replaced</b>"}
    head = {"safer": config["safer"], "kind": "attack", "format": 2, **{m: config[m] for m in ("model", "lexicon", "data", "labels")}, "smoothed": False,
            "n": 200, "radius": "all", "max_queries": 0, "population": 60, "iterations": 40, "tries": 100, "alpha": 0.001, "seed": 1, "method": "textfooler"}

    def record(row, outcome, **more):
        return {"row": row, "id": str(row), "label": "1", "before": "1", "after": None, "outcome": outcome, "reason": None, "words": 9, "choices": 3,
                "score_before": 0.5, "score_after": 0.5, "changed": 0, "changes": [], "text": None, "queries": 1, "checks": 0, **more}
    (folder / "attack.jsonl").write_text(sealed([head, record(1, "succeeded", after="0", changed=1, changes=[change], text="changed"),
                                                 record(2, "failed"), record(3, "skipped")]))
    return {"from": word[0], "diff": text[:word.end()] + " <b>replaced</b>" + text[word.end():]}


def make_demo():
    """Two runs with two lexicons; what the page must say of them."""
    facts = []
    reviews("demo", "--train", "2000", "--dev", "100", "--test", "400")
    rows = rows_of("demo/test.tsv")
    for name, kernel in (("topk", "topk:4"), ("component", "component")):
        safer("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1,
              "--kernel", kernel, "-o", f"{name}.lex")
        safer("train", "--arch", "ngram", "--data", "demo/train.tsv", "--dev", "demo/dev.tsv", "--lexicon", f"{name}.lex",
              "--bits", 14, "-o", f"{name}.model")
        certify(f"{name}.model", f"{name}.lex", "demo/test.tsv", f"{name}.jsonl", "--n", 1000)
        records = records_of(f"{name}.jsonl")
        held = [r["certified"] and is_answered(r) for r in records]
        share = lambda condition: sum(map(condition, records)) / len(records)
        figures = [cut(sum(held) / len(held)), cut(share(lambda r: r["certified"])), cut(share(lambda r: r["base"] == r["label"])),
                   cut(share(lambda r: r["prediction"] == r["label"])), f"{len(records):,} texts"]
        word = "battery"
        text = rows[0][2]
        point = next(r for r in records if 0 < r["q"] < 0.9 and 0.55 < r["bound"] < 0.95) if kernel != "component" else records[0]
        first = next(w for w in re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)*", text) if synonyms(w))
        facts.append({
            "name": name, "texts": len(records), "figures": figures, "id": rows[7][0], "word": word,
            "withWord": sum(word in text.lower() for _, _, text in rows), "certified": sum(r["certified"] for r in records),
            "firstText": text, "firstSlots": records[0]["slots"], "firstWord": first, "firstSynonyms": synonyms(first),
            "point": {"q": point["q"], "bound": point["bound"], "shownQ": f"{math.ceil(point['q'] * 1e4 - 1e-9) / 1e4:.4f}"},
        })
    facts[0]["attack"] = make_attack()
    safer("report", "topk.jsonl", "component.jsonl", "--data", "demo/test.tsv", "--lexicon", "topk.lex", "--lexicon", "component.lex",
          "--attack", "attack.jsonl", "-o", "demo.html")
    safer("report", "topk.jsonl", "-o", "bare.html")
    safer("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1, "--kernel", "topk:4",
          "--fold", "standard", "-o", "fold.lex")
    safer("train", "--arch", "ngram", "--data", "demo/train.tsv", "--dev", "demo/dev.tsv", "--lexicon", "fold.lex", "--bits", 14, "--delete", 0.8,
          "-o", "edits.model")
    certify("edits.model", "fold.lex", "demo/test.tsv", "edits.jsonl", "--n", 1000, "--delete", 0.8, "--edits", 2)
    (folder / "notes.txt").write_text("Notes & <b>more</b>\n" + "long" * 100 + "\n")
    safer("report", "topk.jsonl", "edits.jsonl", "--data", "demo/test.tsv", "--lexicon", "topk.lex", "--lexicon", "fold.lex", "--attack", "attack.jsonl",
          "--title", "Edits & <i>folds</i>", "--notes", "notes.txt", "-o", "edits.html")
    safer("train", "--arch", "ngram", "--data", "demo/train.tsv", "--lexicon", "component.lex", "--bits", 14, "--groups", 9, "-o", "groups.model")
    certify("groups.model", "component.lex", "demo/test.tsv", "groups.jsonl", "--groups", 9, "--edits", 2)
    safer("report", "groups.jsonl", "--data", "demo/test.tsv", "--lexicon", "component.lex", "-o", "groups.html")
    edits = [r["edits"] for r in records_of("edits.jsonl")]
    facts[0]["edits"] = {"first": next(i for i, n in enumerate(edits) if n == 1), "certified": sum(n >= 1 for n in edits)}
    certify("topk.model", "topk.lex", "demo/test.tsv", "few.jsonl", "--n", 1000, "--n0", 13)  # not all that is certified is answered
    safer("report", "few.jsonl", "-o", "few.html")
    held = [r["certified"] and is_answered(r) for r in records_of("few.jsonl")]
    certified = [r["certified"] for r in records_of("few.jsonl")]
    facts[0]["few"] = {"certified": sum(certified), "answered": sum(held), "first": next(i for i, k in enumerate(certified) if k and not held[i])}
    safer("train", "--arch", "bow", "--defense", "ibp-jia", "--data", "demo/train.tsv", "--lexicon", "component.lex", "--dim", 8,
          "--hidden", 8, "--epochs", 2, "-o", "bounds.model")
    certify("bounds.model", "component.lex", "demo/test.tsv", "bounds.jsonl", "--method", "ibp")
    safer("report", "bounds.jsonl", "component.jsonl", "--data", "demo/test.tsv", "--lexicon", "component.lex", "-o", "bounds.html")
    return facts


def synonyms(word):
    """Of a word of the demo's table: those of its line."""
    table = [line.split() for line in (ROOT / "demo/synonyms.tsv").read_text().splitlines()]
    groups = [group for group in table if word.lower() in group]
    return sorted({other for group in groups for other in (group[1:] if group[0] == word.lower() else group[:1])})


def make_large():
    """25,000 reviews with their texts and words."""
    reviews("large", "--train", "10", "--dev", "10", "--test", "25000")
    certify("topk.model", "topk.lex", "large/test.tsv", "large.jsonl", "--n", 60, "--n0", 10)
    safer("report", "large.jsonl", "--data", "large/test.tsv", "--lexicon", "topk.lex", "-o", "large.html")
    word = "disappointing"
    return {"bytes": (folder / "large.html").stat().st_size, "word": word,
            "withWord": sum(word in text.lower() for _, _, text in rows_of("large/test.tsv"))}


HOSTILE = [
    ("plain", "A good film."),
    ("</td></tr></table><script>window.broken=1</script>", "<script>window.broken=2</script> A good film"),
    ("\"><img src=x onerror=window.broken=3>", "</script><img src=x onerror=\"window.broken=4\"> bad film"),
    ("'\" onmouseover='window.broken=5'", "'good' \"film\" `${window.broken=6}` &lt;b&gt; &amp; <!--<script> bad"),
    ("\u202eabc", "שלום good \u202e film العربية bad"),
    ("u2028", "good\u2028film\u2029bad"),
    ("nul", "good\0film\x01\x1b[31m bad\x7f"),
    ("emoji", "😀🎉 good 𝒳 film 👩‍👩‍👧 bad"),
    ("long", "x" * 1000000 + " good film"),
    ("long too", "good film " + "ä" * 500000),
    ("i" * 1000000, "good"),
    ("]]>", "]]> good <![CDATA[ film"),
    ("empty", ""),
]
LABELS = ["<b onclick=window.broken=7>\"neg\"</b>", "</script>'pos'&"]
WORDS = {"good", "great", "film", "movie", "bad", "awful"}


def controls(text):
    return re.sub("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", "\ufffd", text)


def make_hostile():
    """Ids, labels and texts that would break a page that believed them."""
    train = [{"label": LABELS[i % 2], "text": ("a bad film " if i % 2 == 0 else "a good film ") * (1 + i % 3)} for i in range(40)]
    rows = [{"id": id, "label": LABELS[i % 2], "text": text} for i, (id, text) in enumerate(HOSTILE)]
    for name, content in (("hostile-train.jsonl", train), ("hostile-data.jsonl", rows)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in content))
    (folder / "hostile.table").write_text("good\tgreat\nfilm\tmovie\nbad\tawful\n")
    safer("lexicon", "import", "--table", "hostile.table", "--kernel", "component", "-o", "hostile.lex")
    safer("train", "--arch", "ngram", "--data", "hostile-train.jsonl", "--lexicon", "hostile.lex", "--bits", 10, "-o", "hostile.model")
    certify("hostile.model", "hostile.lex", "hostile-data.jsonl", "<hostile>&'\".jsonl")
    safer("report", "<hostile>&'\".jsonl", "--data", "hostile-data.jsonl", "--lexicon", "hostile.lex", "-o", "hostile.html")
    facts = []
    for id, text in HOSTILE:
        shown = text.encode()[:100000].decode(errors="ignore")
        slots = [word.lower() for word in re.findall(r"[^\W\d_]+", shown) if word.lower() in WORDS]
        facts.append({"id": controls(id if len(id) <= 120 else id[:120] + "…"), "units": len(shown.encode("utf-16-le")) // 2,
                      "start": controls(shown[:20]), "slots": slots})
    return facts


# ------------------------------------------------------------------ servers

# A model that takes its time: 64 of 100 texts are pos, and which is a matter of the text alone.
SLOW = """
import hashlib, json, sys, time
for line in sys.stdin:
    request = json.loads(line)
    time.sleep(0.02)
    labels = ["pos" if hashlib.md5(text.encode()).digest()[0] < 164 else "neg" for text in request["texts"]]
    print(json.dumps({"id": request["id"], "labels": labels}), flush=True)
"""
TOKEN = "correct-horse-battery-staple"


def make_explorer():
    """What the explorer's tests type, and what they must see."""
    rows = rows_of("demo/test.tsv")
    for _, _, text in rows:
        first = next((w for w in re.finditer(r"[^\W\d_]+", text) if synonyms(w[0])), None)
        if first and first.start() == 0 and first[0].istitle() and 20 < sum(bool(synonyms(w)) for w in re.findall(r"[^\W\d_]+", text)):
            break
    synonym = synonyms(first[0])[0]
    hostile = [text for _, text in HOSTILE if text and len(text) < 1000 and "\0" not in text] + ["good " * 400 + "x" * 90000]
    certain = sorted(records_of("edits.jsonl"), key=lambda r: -r["bound"])[:2]  # of certificates that begin with Certified
    edits = [text for id, _, text in rows if any(r["id"] == id and r["radius"] == "all" and not r["abstained"] for r in certain)]
    return {"text": text, "edits": edits[:1], "word": first[0], "synonym": synonym, "changed": synonym.capitalize() + text[first.end():], "labels": LABELS,
            "hostile": [{"text": text, "slots": [w.lower() for w in re.findall(r"[^\W\d_]+", text) if w.lower() in WORDS]} for text in hostile]}


def stop(server):
    server.terminate()
    server.wait()


def serve(name, *arguments):
    """Starts a server, until this program ends: where it is."""
    server = subprocess.Popen([build / "safer", "serve", "--port", "0", "--json", "--seed", "1", *map(str, arguments)], cwd=folder,
                              stdout=subprocess.PIPE, stderr=open(folder / f"{name}.log", "w"), text=True)
    atexit.register(stop, server)
    said = ""
    while not said.rstrip().endswith("}"):
        line = server.stdout.readline()
        if not line:
            sys.exit(f"safer serve did not start: {(folder / f'{name}.log').read_text()}")
        said += line
    return {"url": json.loads(said)["url"], "pid": server.pid}


def start_servers():
    (folder / "slow.py").write_text(SLOW)
    (folder / "token").write_text(TOKEN + "\n")
    return {
        "plain": serve("plain", "--model", "topk.model", "--lexicon", "topk.lex", "--max-text", 3000),
        "slow": serve("slow", "--model", f"exec:exec {sys.executable} slow.py", "--labels", "neg,pos", "--lexicon", "component.lex", "--batch", 4, "--n0", 300),
        "bounds": serve("bounds", "--method", "ibp", "--model", "bounds.model", "--lexicon", "component.lex"),
        "edits": serve("edits", "--model", "edits.model", "--lexicon", "fold.lex", "--delete", 0.8, "--edits", 1, "--edit-kind", "delete"),
        "kept": serve("kept", "--model", "edits.model", "--lexicon", "fold.lex", "--delete", "keep:9"),
        "groups": serve("groups", "--model", "groups.model", "--lexicon", "component.lex", "--groups", 9, "--edits", 2),
        "second": serve("second", "--model", "topk.model", "--second", "component.model", "--lexicon", "topk.lex"),
        "hostile": serve("hostile", "--model", "hostile.model", "--lexicon", "hostile.lex"),
        "token": {**serve("token", "--model", "topk.model", "--lexicon", "topk.lex", "--auth-file", "token"), "token": TOKEN},
    }


# ------------------------------------------------------------------ the browser

def find_chromium():
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def install_packages():
    for source in (ROOT / "tests/browser").iterdir():
        shutil.copy(source, folder)
    wanted = json.loads((folder / "package.json").read_text())["dependencies"]
    for name, version in wanted.items():
        package = folder / "node_modules" / name / "package.json"
        if not package.exists() or json.loads(package.read_text())["version"] != version:
            break
    else:
        return
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--fetch-retries=1"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        fault = " ".join(re.findall(r"npm (?:error|ERR!) (.*)", done.stderr)[:2]) if done.returncode else None
    except subprocess.TimeoutExpired:
        fault = "no answer in five minutes"
    if fault is not None:
        skip(f"npm cannot install {' and '.join(wanted)}: {fault}")


def main():
    if "SAFER_SANITIZE:STRING=\n" not in (build / "CMakeCache.txt").read_text():
        skip("a program with sanitizers is tested without the browser")
    chromium = find_chromium()
    for name, found in (("chromium", chromium), ("node", shutil.which("node")), ("npm", shutil.which("npm"))):
        if not found:
            skip(f"{name} is not there; make test-browser installs it")
    folder.mkdir(exist_ok=True)
    install_packages()
    for run in folder.glob("*.jsonl"):
        if run.stat().st_mtime < (build / "safer").stat().st_mtime:
            run.unlink()
    facts = {"demo": make_demo(), "large": make_large(), "hostile": make_hostile(), "explorer": make_explorer(), "servers": start_servers()}
    (folder / "facts.json").write_text(json.dumps(facts))
    sys.stdout.flush()
    done = subprocess.run(["node", "main.mjs", folder, *sys.argv[1:-1]], cwd=folder, env={**os.environ, "CHROMIUM": chromium}, timeout=1500)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
