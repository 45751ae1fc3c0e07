#!/usr/bin/env python3
"""Compares defences, models and data as a person would:
test_cli_compare.py [TEST...] BUILD_DIR. Run by ctest.

What the tables say is recomputed here from the records in the folder.
"""
import copy
import csv
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import cut, is_answered, outward  # noqa: E402
from test_cli import DONE, INPUT, INTERRUPTED, SYSTEM, USAGE, Case, exists, run, write  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent

CONFIG = {
    "title": "Small",
    "data": {"reviews": {"train": "demo/train.tsv", "dev": "demo/dev.tsv", "test": {"data": "demo/test.tsv", "sample": "every:2"},
                         "lexicon": {"table": "synonyms.tsv", "vocab-from": ["demo/train.tsv"], "min-count": 1}}},
    "models": {"ngram": {"arch": "ngram", "bits": 12}, "cnn": {"arch": "cnn", "dim": 8, "filters": 8, "hidden": 8, "epochs": 2}},
    "defenses": {"none": {}, "component": {"kernel": "component", "n": 300}, "topk:3": {"kernel": "topk:3", "method": "hoeffding", "n": 200},
                 "jia": {"defense": "ibp-jia", "epochs": 2}},
    "attacks": {"textfooler": {"limit": 20}, "guess": {"method": "random", "tries": 5}},
    "compare": [{"defenses": ["none", "component"]}, {"models": "cnn", "defenses": ["jia", "topk:3"], "attacks": []}],
}


def make_files():
    build = pathlib.Path(test_cli.program).parent
    subprocess.run([build / "demo-reviews", test_cli.temporary / "demo", "--train", "400", "--dev", "60", "--test", "80"],
                   check=True, capture_output=True)
    shutil.copy(ROOT / "demo/synonyms.tsv", test_cli.temporary / "synonyms.tsv")
    write("small.json", json.dumps(CONFIG))
    done = run("compare", "small.json", "-o", "small", "--quiet")
    if done.code != DONE:
        sys.exit(f"cannot make the common comparison: {done}")


def changed(change):
    """The configuration after a change, as a file of its own."""
    changed.made = getattr(changed, "made", 0) + 1
    config = copy.deepcopy(CONFIG)
    change(config)
    return write(f"changed{changed.made}.json", json.dumps(config))


def records(name):
    lines = [json.loads(line) for line in (test_cli.temporary / name).read_text().splitlines()]
    return lines[0], lines[1:]


def held(name):
    """Of every text of a run, whether it held."""
    config, rows = records(name)
    if config.get("kind") == "attack":
        return [row["outcome"] == "failed" for row in rows]
    return [row["certified"] and row["target"] == row["label"] and is_answered(row) for row in rows]


def table(name):
    with open(test_cli.temporary / name, newline="") as file:
        return list(csv.DictReader(file))


def without_times(text):
    """The tables without the column of seconds."""
    return [line.rsplit(None, 1)[0] if line.startswith("reviews ") else line for line in text.splitlines()]


def mcnemar(a, b):
    n = a + b
    return min(1, sum(math.comb(n, k) for k in range(max(a, b), n + 1)) / 2 ** (n - 1)) if n else 1


class Compare(Case):
    def test_figures(self):
        """every figure of the JSON follows from the records in the folder"""
        result = json.loads(self.ok(run("compare", "small.json", "-o", "small", "--json", "--quiet")))
        self.assertEqual([(c["model"], c["defense"]) for c in result["cells"]],
                         [("ngram", "none"), ("ngram", "component"), ("cnn", "none"), ("cnn", "component"), ("cnn", "jia"), ("cnn", "topk:3")])
        for cell in result["cells"]:
            self.assertIsNone(cell["error"])
            if cell["records"]:
                config, rows = records(cell["records"])
                n = len(rows)
                self.assertEqual((cell["examples"], n), (40, 40))
                self.assertAlmostEqual(cell["certified_accuracy"], sum(row["certified"] for row in rows) / n)
                self.assertAlmostEqual(cell["certified_answered"], sum(held(cell["records"])) / n)
                self.assertAlmostEqual(cell["clean_accuracy"], sum(row["base"] == row["label"] for row in rows) / n)
                self.assertAlmostEqual(cell["queries_per_text"], sum(row["queries"] for row in rows) / n)
                low, high = cell["certified_interval"]
                self.assertTrue(low <= cell["certified_accuracy"] <= high)
                if cell["defense"] == "jia":
                    self.assertEqual((config["method"], cell["smoothed_accuracy"]), ("ibp", None))
                else:
                    self.assertAlmostEqual(cell["smoothed_accuracy"], sum(row["prediction"] == row["label"] for row in rows) / n)
                self.ok(run("verify", cell["records"]))
            else:
                self.assertEqual((cell["defense"], cell["certified_accuracy"]), ("none", None))
            for name, attack in cell["attacks"].items():
                config, rows = records(attack["records"])
                self.assertEqual(config["smoothed"], cell["defense"] == "component")
                self.assertEqual((config["method"], len(rows)), ("textfooler", 20) if name == "textfooler" else ("random", 40))
                self.assertEqual(attack["examples"], len(rows))
                self.assertAlmostEqual(attack["adversarial_accuracy"], sum(held(attack["records"])) / len(rows))
        self.assertEqual([list(c["attacks"]) for c in result["cells"]], [["textfooler", "guess"]] * 4 + [[]] * 2)

    def test_pairs(self):
        """every pair is counted text by text; p-values are exact, and adjusted after Holm"""
        result = json.loads(self.ok(run("compare", "small.json", "-o", "small", "--json", "--quiet")))
        cells = {(c["model"], c["defense"]): c for c in result["cells"]}
        families = {}
        for pair in result["pairs"]:
            names = [(cells[tuple(pair[which])]["attacks"][pair["attack"]] if pair["attack"] else cells[tuple(pair[which])])["records"]
                     for which in ("first", "second")]
            a, b = map(held, names)
            counts = [sum(x == want and y == other for x, y in zip(a, b)) for want, other in ((True, True), (True, False), (False, True), (False, False))]
            self.assertEqual([pair[key] for key in ("both", "only_first", "only_second", "neither")], counts)
            self.assertAlmostEqual(pair["p_value"], mcnemar(counts[1], counts[2]), delta=1e-12)
            families.setdefault(pair["attack"], []).append(pair)
        self.assertEqual({key: len(pairs) for key, pairs in families.items()}, {None: 6, "textfooler": 6, "guess": 6})
        for pairs in families.values():
            least = 0
            for i, pair in enumerate(sorted(pairs, key=lambda p: p["p_value"])):
                least = max(least, min(1, pair["p_value"] * (len(pairs) - i)))
                self.assertAlmostEqual(pair["p_holm"], least, delta=1e-12)
        self.assertTrue(any(pair["p_value"] < 0.01 for pair in result["pairs"]), "nothing to see here")

    def test_exports(self):
        """text, Markdown, CSV and JSON say the same"""
        text = self.ok(run("compare", "small.json", "-o", "small", "--quiet", "--markdown", "small.md", "--csv", "tables"))
        result = json.loads(self.ok(run("compare", "small.json", "-o", "small", "--json", "--quiet")))
        rows = [line.split() for line in text.splitlines() if line.startswith("reviews ")]
        lines = [[field.strip() for field in line.split("|")[1:-1]] for line in (test_cli.temporary / "small.md").read_text().splitlines()
                 if line.startswith("| reviews ")]
        self.assertEqual([" ".join(line).split() for line in lines], rows)
        self.assertEqual((test_cli.temporary / "small.md").read_text().splitlines()[0], "# Small")
        tables = {name: table(f"tables/{name}.csv") for name in ("cells", "pairs")}
        self.assertEqual([len(tables[name]) for name in ("cells", "pairs")], [6, 18])
        for row, cell in zip(tables["cells"], result["cells"]):
            self.assertEqual(float(row["certified_answered"]) if row["certified_answered"] else None, cell["certified_answered"])
            for name in ("clean", "smoothed", "certified"):
                self.assertEqual(float(row[name]) if row[name] else None, cell[f"{name}_accuracy"])
                self.assertEqual([float(row[f"{name}_{end}"]) for end in ("low", "high")] if row[name] else None, cell[f"{name}_interval"])
            for name in CONFIG["attacks"]:
                self.assertEqual(float(row[name]) if row[name] else None, cell["attacks"].get(name, {}).get("adversarial_accuracy"))
            self.assertEqual(row["error"], "")
        for row, pair in zip(tables["pairs"], result["pairs"]):
            self.assertEqual((row["attack"] or None, float(row["p"]), float(row["p_holm"]), int(row["only_first"])),
                             (pair["attack"], pair["p_value"], pair["p_holm"], pair["only_first"]))
        for row, cell in zip(rows, result["cells"]):
            if cell["certified_accuracy"] is not None:
                self.assertEqual(row[6] + "%", cut(cell["certified_answered"]))
                self.assertEqual(" ".join(row[7:10]), outward(cell["certified_answered_interval"]))
                self.assertEqual(row[10] + "%", cut(cell["certified_accuracy"]))

    def test_unwritable(self):
        """tables that cannot be written are still printed"""
        done = run("compare", "small.json", "-o", "small", "--quiet", "--markdown", "no/such/folder/table.md")
        self.assertEqual((done.code, done.out), (SYSTEM, self.ok(run("compare", "small.json", "-o", "small", "--quiet"))))
        self.assertIn("no/such/folder/table.md", done.err)

    def test_report(self):
        """the records can be reported with the lexicon that lies beside them"""
        self.ok(run("report", "small/reviews.ngram.component.jsonl", "small/reviews.cnn.component.jsonl", "--data", "demo/test.tsv", "--sample",
                    "every:2", "--lexicon", "small/reviews.component.lex", "--attack", "small/reviews.cnn.component.guess.jsonl", "-o", "r.html"))
        self.ok(run("verify", "small/reviews.cnn.topk-3.jsonl", "--model", "small/reviews.cnn.topk-3.safetensors", "--lexicon",
                    "small/reviews.topk-3.lex", "--data", "demo/test.tsv", "--sample", "every:2"))

    def test_nothing_twice(self):
        """a finished comparison touches no file, says nothing and needs neither models nor time"""
        def state():
            return {path.name: path.stat().st_mtime_ns for path in (test_cli.temporary / "small").iterdir()}
        first, before = self.ok(run("compare", "small.json", "-o", "small", "--quiet")), state()
        again = run("compare", "small.json", "-o", "small")
        self.assertEqual((again.code, again.err, again.out), (DONE, "", first))
        self.assertEqual(state(), before)

    def test_interrupted(self):
        """killed at any moment, or stopped by Ctrl-C, and started again: the same tables and records"""
        expected = without_times(self.ok(run("compare", "small.json", "-o", "small", "--quiet")))
        kills = 0
        for attempt in range(1000):
            child = subprocess.Popen([test_cli.program, "compare", "small.json", "-o", "killed", "--threads", "1"], cwd=test_cli.temporary,
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                out = child.communicate(timeout=0.03 + 0.02 * attempt)[0]
            except subprocess.TimeoutExpired:
                child.send_signal((signal.SIGKILL, signal.SIGINT)[attempt % 2])
                child.communicate()
                self.assertIn(child.returncode, (-signal.SIGKILL, -signal.SIGINT, INTERRUPTED, DONE))  # SIGINT: before main began
                kills += 1
                continue
            self.assertEqual(child.returncode, DONE)
            break
        self.assertGreater(kills, 2)
        self.assertEqual(without_times(out.decode()), expected)
        for path in (test_cli.temporary / "small").glob("*.jsonl"):
            rows = [[{key: row[key] for key in row if key not in ("seconds", "check")} for row in records(name)[1]]
                    for name in (f"small/{path.name}", f"killed/{path.name}")]
            self.assertEqual(rows[0], rows[1], path.name)
        self.assertEqual((test_cli.temporary / "small/reviews.cnn.component.safetensors").read_bytes(),
                         (test_cli.temporary / "killed/reviews.cnn.component.safetensors").read_bytes())

    def test_unnoted(self):
        """a model that was written just before a kill is not trained again; its checkpoint goes"""
        shutil.copytree(test_cli.temporary / "small", test_cli.temporary / "unnoted")
        path = test_cli.temporary / "unnoted/made.json"
        made = json.loads(path.read_text())
        made["reviews.cnn.jia.safetensors"]["done"] = False
        path.write_text(json.dumps(made))
        before = (test_cli.temporary / "unnoted/reviews.cnn.jia.safetensors").stat().st_mtime_ns
        write("unnoted/reviews.cnn.jia.safetensors.checkpoint", b"not removed yet")
        done = run("compare", "small.json", "-o", "unnoted")
        self.assertEqual((done.code, done.err), (DONE, ""))
        self.assertFalse((test_cli.temporary / "unnoted/reviews.cnn.jia.safetensors.checkpoint").exists())
        self.assertEqual((test_cli.temporary / "unnoted/reviews.cnn.jia.safetensors").stat().st_mtime_ns, before)
        path.write_text("[]")
        self.refused(run("compare", "small.json", "-o", "unnoted"), INPUT, "made.json", "damaged")

    def test_more_cells(self):
        """a larger configuration uses what is there, and models that are trained in the same way are trained once"""
        shutil.copytree(test_cli.temporary / "small", test_cli.temporary / "more")
        name = changed(lambda c: (c["defenses"].update({"again": {"kernel": "component", "method": "binomial", "n": 100}}),
                                  c["compare"].append({"models": "cnn", "defenses": "again", "attacks": []})))
        done = run("compare", name, "-o", "more")
        self.assertEqual((done.code, done.err), (DONE, "safer: [7/7] reviews cnn again: certifying\n"))
        self.assertFalse(exists("more/reviews.cnn.again.safetensors"))

    def test_other_inputs(self):
        """files that were made with something else are refused by name, and nothing is overwritten"""
        before = (test_cli.temporary / "small/reviews.cnn.jia.safetensors").read_bytes()
        for change, *parts in ((lambda c: c["defenses"]["jia"].update(epochs=3), "reviews.cnn.jia.safetensors", "another options.epochs"),
                               (lambda c: c["defenses"]["topk:3"].update(n=100), "reviews.cnn.topk-3.jsonl", "another n"),
                               (lambda c: c["data"]["reviews"]["lexicon"].update({"min-count": 2}), "reviews.lex", "another min-count"),
                               (lambda c: c["attacks"]["guess"].update(tries=6), "reviews.ngram.none.guess.jsonl", "another tries"),
                               (lambda c: c["data"]["reviews"].update(test="demo/test.tsv"), "reviews.cnn.topk-3.jsonl", "another data")):
            done = run("compare", changed(change), "-o", "small", "--quiet")
            self.assertEqual(done.code, INPUT, done)
            for part in parts:
                self.assertIn(part, done.err)
        self.assertEqual((test_cli.temporary / "small/reviews.cnn.jia.safetensors").read_bytes(), before)
        write("foreign/reviews.lex", "not ours")
        done = run("compare", "small.json", "-o", "foreign", "--quiet")
        self.assertEqual((done.code, done.err.count("is not from this command")), (INPUT, 6))

    def test_format(self):
        """the format of a data set is the one that is asked for, whatever its name says; another is refused"""
        shutil.copytree(test_cli.temporary / "small", test_cli.temporary / "named")
        shutil.copy(test_cli.temporary / "demo/test.tsv", test_cli.temporary / "demo/test.csv")
        texts = {"data": "demo/test.csv", "sample": "every:2", "format": "tsv"}
        done = run("compare", changed(lambda c: c["data"]["reviews"].update(test=texts)), "-o", "named")
        self.assertEqual((done.code, done.err), (DONE, ""), "the same texts: nothing is done again")
        done = run("compare", changed(lambda c: c["data"]["reviews"].update(test={**texts, "format": "xml"})), "-o", "named")
        self.refused(done, INPUT, 'data.reviews.test.format is "xml": tsv, csv, jsonl, fasttext or folder')

    def test_other_version(self):
        """what another version made is not mixed with what this one makes"""
        shutil.copytree(test_cli.temporary / "small", test_cli.temporary / "older")
        path = test_cli.temporary / "older/made.json"
        made = json.loads(path.read_text())
        for file in ("reviews.cnn.jia.safetensors", "reviews.cnn.topk-3.jsonl"):
            made[file]["safer"] = "0.0.1"
        path.write_text(json.dumps(made))
        done = run("compare", "small.json", "-o", "older", "--quiet")
        self.assertEqual((done.code, re.findall(r"older/(\S+) was made with another version of safer", done.err)),
                         (INPUT, ["reviews.cnn.jia.safetensors", "reviews.cnn.topk-3.jsonl"]), done)

    def test_changed_file(self):
        """an input with the same name and other content is noticed"""
        write("own.tsv", (test_cli.temporary / "synonyms.tsv").read_bytes())
        name = changed(lambda c: (c["data"]["reviews"]["lexicon"].update(table="own.tsv"), c.update(compare=[{"models": "ngram", "defenses": "component", "attacks": []}])))
        self.ok(run("compare", name, "-o", "own", "--quiet"))
        self.ok(run("compare", name, "-o", "own", "--quiet"))
        write("own.tsv", "good\tgreat\n")
        done = run("compare", name, "-o", "own", "--quiet")
        self.assertEqual((done.code, "reviews.lex was made with another table" in done.err), (INPUT, True), done)

    def test_changed_model(self):
        """a finished file that is not what was written is refused: no row is made of two models"""
        shutil.copytree(test_cli.temporary / "small", test_cli.temporary / "damaged")
        model = test_cli.temporary / "damaged/reviews.cnn.jia.safetensors"
        content = bytearray(model.read_bytes())
        content[-1] ^= 1
        model.write_bytes(content)
        done = run("compare", "small.json", "-o", "damaged", "--quiet")
        self.assertEqual((done.code, "reviews.cnn.jia.safetensors is not what was written there" in done.err), (INPUT, True), done)

    def test_failed_cell(self):
        """a cell that fails is named with its reason, in every form; the others go on; the exit status tells"""
        name = changed(lambda c: c.update(compare=[{"models": ["ngram", "cnn"], "defenses": ["jia", "component"], "attacks": []}]))
        done = run("compare", name, "-o", "failing", "--csv", "failing-tables", "--markdown", "failing.md")
        reason = 'reviews ngram jia: "defense" is "ibp-jia", which is for bow and cnn, not ngram'
        self.assertEqual(done.code, USAGE)
        self.assertIn(f"safer: [1/4] {reason}\n", done.err)
        self.assertIn(f"\nfailed: {reason}\n", done.out)
        self.assertIn(f"\nfailed: {reason}\n", (test_cli.temporary / "failing.md").read_text())
        rows = table("failing-tables/cells.csv")
        self.assertEqual([bool(row["error"]) for row in rows], [True, False, False, False])
        result = json.loads(run("compare", name, "-o", "failing", "--json", "--quiet").out)
        self.assertEqual([cell["error"] is None for cell in result["cells"]], [False, True, True, True])
        self.assertEqual([cell["certified_accuracy"] is None for cell in result["cells"]], [True, False, False, False])
        self.assertEqual(len(result["pairs"]), 3)
        missing = changed(lambda c: c["data"].update(lost={**c["data"]["reviews"], "test": "lost.tsv"}))
        done = run("compare", missing, "-o", "failing2", "--quiet")
        self.assertEqual((done.code, done.err.count("lost.tsv"), done.out.count("\nfailed: lost ")), (SYSTEM, 6, 6))

    def test_ready_models(self):
        """a model file, one with options, and a program: certified and attacked as they are"""
        server = pathlib.Path(test_cli.program).parent / "examples/exec_server"
        def change(c):
            c["models"] = {"file": "small/reviews.ngram.component.safetensors", "same": {"model": "small/reviews.ngram.component.safetensors"},
                           "program": {"model": f"exec:{server}", "workers": 1}}
            c["defenses"] = {"none": {}, "component": {"kernel": "component", "n": 200}, "jia": {"defense": "ibp-jia"}}
            c["attacks"] = {"guess": {"method": "random", "tries": 3, "limit": 10}}
            c["compare"] = [{"models": ["file", "same"]}, {"models": "program", "defenses": "component"}]
            del c["data"]["reviews"]["train"], c["data"]["reviews"]["dev"]
        name = changed(change)
        done = run("compare", name, "-o", "ready", "--json", "--quiet")
        cells = json.loads(done.out)["cells"]
        self.assertEqual(done.code, USAGE)
        self.assertEqual([cell["error"] is None for cell in cells], [True, True, False] * 2 + [True])
        self.assertIn("a ready model cannot be trained by ibp-jia", done.err)
        self.assertEqual(cells[1]["certified_accuracy"], cells[4]["certified_accuracy"])
        self.assertEqual([path.name for path in (test_cli.temporary / "ready").glob("*.safetensors")], [])
        pair = next(p for p in json.loads(done.out)["pairs"] if p["first"] == ["file", "component"] and p["second"] == ["same", "component"])
        self.assertEqual((pair["only_first"], pair["only_second"], pair["p_value"]), (0, 0, 1))
        self.assertEqual(records("ready/reviews.program.component.jsonl")[0]["model"]["arch"], "exec")

    def test_sum(self):
        """of a sum of models the members count, not only the file that names them"""
        model = test_cli.temporary / "member.safetensors"
        shutil.copy(test_cli.temporary / "small/reviews.ngram.component.safetensors", model)
        write("sum.json", json.dumps({"arch": "sum", "members": [{"model": "member.safetensors"}]}))
        name = changed(lambda c: c.update(models={"sum": "sum.json"}, compare=[{"models": "sum", "defenses": "component", "attacks": []}]))
        self.ok(run("compare", name, "-o", "sums", "--quiet"))
        self.assertEqual(records("sums/reviews.sum.component.jsonl")[0]["model"]["arch"], "sum")
        self.ok(run("compare", name, "-o", "sums", "--quiet"))
        shutil.copy(test_cli.temporary / "small/reviews.cnn.none.safetensors", model)
        done = run("compare", name, "-o", "sums", "--quiet")
        self.assertEqual(done.code, INPUT, done)
        self.assertIn("reviews.sum.component.jsonl was made with another", done.err)

    def test_more_patience(self):
        """a program that failed may be asked with other patience, and the run is resumed; asked for something else it may not"""
        write("moody.py", 'import json, os, sys\nfor line in sys.stdin:\n    r = json.loads(line)\n'
                          '    if any("film" in t for t in r["texts"]) and not os.path.exists("well"): sys.exit(3)\n'
                          '    print(json.dumps({"id": r["id"], "labels": ["1" if "good" in t else "0" for t in r["texts"]]}), flush=True)\n')
        def config(**more):
            return changed(lambda c: c.update(models={"p": {"model": f"exec:{sys.executable} moody.py", **more}}, attacks={},
                                              compare=[{"defenses": "component"}]))
        self.assertEqual(run("compare", config(workers=1, retries=0), "-o", "moody", "--quiet").code, SYSTEM)
        write("well", "")
        self.ok(run("compare", config(workers=2, retries=3, timeout=100), "-o", "moody", "--quiet"))
        done = run("compare", config(random=True), "-o", "moody", "--quiet")
        self.assertEqual((done.code, "made with another model.random" in done.err), (INPUT, True), done)

    def test_paths(self):
        """paths are relative to the configuration, or begin with a variable"""
        config = copy.deepcopy(CONFIG)
        config["compare"] = [{"models": "ngram", "defenses": "component", "attacks": []}]
        text = json.dumps(config)
        write("inner/config.json", text.replace('"demo/', '"../demo/').replace('"synonyms.tsv"', '"../synonyms.tsv"'))
        self.ok(run("compare", "inner/config.json", "-o", "paths", "--quiet"))
        write("inner/variable.json", text.replace('"demo/', '"$DEMO/').replace('"synonyms.tsv"', '"$TABLE"'))
        self.ok(run("compare", "inner/variable.json", "-o", "paths", "--quiet", env={"DEMO": "demo", "TABLE": "synonyms.tsv"}))
        self.refused(run("compare", "inner/variable.json", "-o", "paths", env={"DEMO": "demo"}), INPUT, "data.reviews.lexicon.table", "$TABLE is not set")

    def test_many_attacks(self):
        """a table with more attacks than any combination asks for"""
        names = [f"a{i}" for i in range(40)]
        name = changed(lambda c: c.update(attacks={attack: {"method": "random", "tries": 1, "limit": 2} for attack in names},
                                          compare=[{"models": "ngram", "defenses": "none", "attacks": names[-16:]}]))
        out = self.ok(run("compare", name, "-o", "many", "--quiet", "--markdown", "many.md"))
        head = ["data", "model", "defense", "texts", "clean", *names[-16:], "seconds"]
        self.assertEqual([line.split() for line in out.splitlines()][2], head)
        self.assertIn("| " + " | ".join(head) + " |\n|---|---|---" + "|---:" * (len(head) - 3) + "|\n", (test_cli.temporary / "many.md").read_text())
        self.refused(run("compare", changed(lambda c: c.update(attacks={attack: {"method": "random"} for attack in names})), "-o", "many"), INPUT, "16")

    def test_radius(self):
        """the radius is that of all certificates and attacks"""
        name = changed(lambda c: c.update(radius=2, compare=[{"models": "cnn", "defenses": ["topk:3", "component"], "attacks": "guess"}]))
        self.ok(run("compare", name, "-o", "radius", "--quiet"))
        for file in (test_cli.temporary / "radius").glob("*.jsonl"):
            self.assertEqual(records(f"radius/{file.name}")[0]["radius"], "2")

    def test_edits(self):
        """draws that delete words, and votes of groups: trained, certified and attacked so; only the same edits are compared"""
        defenses = {"smoothing": {"kernel": "representative", "n": 200}, "delete": {"kernel": "representative", "delete": 0.8, "n": 400},
                    "keep": {"kernel": "component", "delete": "keep:90", "n": 400, "edits": 2, "edit-kind": "replace"},
                    "groups": {"kernel": "representative", "groups": 9}, "votes": {"kernel": "component", "method": "groups", "groups": 7, "edits": 1}}
        attacks = {"takes-out": {"method": "delete", "limit": 5, "n": 50}, "others": {"method": "outoflist", "limit": 3, "n": 50, "words": 4}}
        def change(c):
            c["models"]["ready"] = "small/reviews.ngram.component.safetensors"
            c.update(defenses=copy.deepcopy(defenses), attacks=copy.deepcopy(attacks), seed=7, compare=[{"models": "ngram"}, {"models": "ready", "defenses": "groups", "attacks": []}])
        name = changed(change)
        text = self.ok(run("compare", name, "-o", "edits", "--quiet", "--csv", "edit-tables"))
        result = json.loads(self.ok(run("compare", name, "-o", "edits", "--quiet", "--json")))
        cells = {(c["model"], c["defense"]): c for c in result["cells"]}
        self.assertEqual([(c["edits"], c["edit_kind"]) for c in result["cells"]],
                         [(None, None), (1, "any"), (2, "replace"), (1, "any"), (1, "any"), (1, "any")])
        for (model, defense), cell in cells.items():
            config, rows = records(cell["records"])
            asked = defenses[defense]
            self.assertEqual(config["seed"], 7)
            self.assertEqual((config.get("groups"), config.get("edits"), config.get("edit_kind")), (asked.get("groups"), cell["edits"], cell["edit_kind"]))
            self.assertAlmostEqual(config["delete"], 0.8) if defense == "delete" else self.assertEqual(config.get("delete"), asked.get("delete"))
            by_edits = cell["certified_answered_edits"]
            if cell["edits"]:
                self.assertEqual(by_edits[-1], cell["certified_answered"])
                self.assertEqual(by_edits, [sum(row["edits"] > i and is_answered(row) and row["target"] == row["label"] for row in rows) / len(rows)
                                            for i in range(cell["edits"])])
            self.ok(run("verify", cell["records"]))
            for attack in cell["attacks"].values():
                config, _ = records(attack["records"])
                self.assertEqual((config["smoothed"], config.get("groups")), (True, asked.get("groups")))
                self.assertEqual("delete" in config, "delete" in asked)
        trained = {json.loads(self.ok(run("model", "show", path, "--json")))["trained_with"].get("groups")
                   for path in (test_cli.temporary / "edits").glob("*.safetensors")}
        self.assertEqual(trained, {None, 9, 7})
        pairs = [(pair["first"][1], pair["second"][1], pair["edits"], pair["edit_kind"]) for pair in result["pairs"] if not pair["attack"]]
        self.assertEqual([pair[:2] for pair in pairs], [("delete", "groups"), ("delete", "votes"), ("delete", "groups"), ("groups", "votes"), ("groups", "groups"), ("votes", "groups")])
        self.assertEqual({pair[2:] for pair in pairs}, {(1, "any")})
        self.assertEqual({(pair["edits"], pair["edit_kind"]) for pair in result["pairs"] if pair["attack"]}, {(None, None)})
        self.assertEqual([(row["edits"], row["edit_kind"]) for row in table("edit-tables/cells.csv")],
                         [("", ""), ("1", "any"), ("2", "replace"), ("1", "any"), ("1", "any"), ("1", "any")])
        self.assertEqual([row["edits"] for row in table("edit-tables/pairs.csv") if not row["attack"]], ["1"] * 6)
        self.assertRegex(text, r"texts +edits +clean")
        self.assertRegex(text, r"\nreviews  ngram  keep +40  2 replace ")
        self.assertEqual(text.count("certified and answered, 1 edit "), 6)
        self.assertIn("\nedits: words", text)
        self.assertNotIn("\nedits: words", self.ok(run("compare", "small.json", "-o", "small", "--quiet")))
        for say, part in (({"groups": 11}, "reviews.ngram.groups.safetensors was made with another options.groups"),
                          ({"edits": 2}, "reviews.ngram.groups.jsonl was made with another edits"),
                          ({"edit-kind": "insert"}, "reviews.ngram.groups.jsonl was made with another edit-kind")):
            done = run("compare", changed(lambda c: (change(c), c["defenses"]["groups"].update(say))), "-o", "edits", "--quiet")
            self.assertEqual((done.code, part in done.err), (INPUT, True), done)
        done = run("compare", changed(lambda c: (change(c), c["attacks"]["others"].update(words=5))), "-o", "edits", "--quiet")
        self.assertEqual((done.code, "ngram.groups.others.jsonl was made with another words" in done.err), (INPUT, True), done)
        done = run("compare", changed(lambda c: c.update(attacks={}, defenses={"groups": {"kernel": "topk:3", "groups": 9}}, compare=[{"models": "ngram"}])),
                   "-o", "split", "--quiet")
        self.assertEqual((done.code, '"groups": synonyms of' in done.err), (USAGE, True), done)

    def test_fold(self):
        """a lexicon with a fold: what is certified besides is in the records"""
        name = changed(lambda c: (c["data"]["reviews"]["lexicon"].update(fold="standard"),
                                  c.update(attacks={}, compare=[{"models": "ngram", "defenses": "component"}])))
        cell = json.loads(self.ok(run("compare", name, "-o", "folded", "--quiet", "--json")))["cells"][0]
        self.assertEqual((records(cell["records"])[0]["lexicon"]["fold"]["steps"] != "", cell["error"]), (True, None))

    def test_two_at_once(self):
        """a folder that another comparison is using is refused"""
        import fcntl
        descriptor = os.open(test_cli.temporary / "small", os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self.refused(run("compare", "small.json", "-o", "small"), SYSTEM, "small", "another comparison")
        finally:
            os.close(descriptor)

    def test_refused(self):
        """what is wrong with a configuration is said in one line with key and place, before anything is done"""
        def at(*path):
            def change(c, value):
                for key in path[:-1]:
                    c = c[key]
                c[path[-1]] = value
            return change
        for path, value, *parts in (
                (("models", "cnn", "epoch"), 3, "models.cnn", 'no key "epoch"', 'did you mean "epochs"'),
                (("model",), {}, "the configuration", '"model"', '"models"'),
                (("models", "cnn", "epochs"), "3", "models.cnn.epochs", "whole number"),
                (("models", "cnn", "rate"), "fast", "models.cnn.rate", "a number"),
                (("models", "cnn", "freeze"), 1, "models.cnn.freeze", "true or false"),
                (("models", "cnn", "vectors"), 1, "models.cnn.vectors", "a path"),
                (("models", "cnn"), {"bits": 3}, "models.cnn", '"arch"'),
                (("models", "a.b"), {"arch": "ngram"}, "models", '"a.b"'),
                (("defenses", "topk-3"), {}, '"topk:3" and "topk-3"'),
                (("defenses", "component", "method"), "magic", "defenses.component.method", "magic"),
                (("defenses", "component", "method"), "ibp", "defenses.component", "interval bounds"),
                (("defenses", "jia", "kernel"), "component", "defenses.jia", "interval bounds"),
                (("defenses", "none", "method"), "hoeffding", "defenses.none", '"kernel"'),
                (("defenses", "component", "edits"), 2, 'defenses.component: "edits" needs "delete" or "groups"'),
                (("defenses", "component", "edit-kind"), "delete", 'defenses.component: "edit-kind" needs "delete"'),
                (("defenses", "component", "edit-kind"), "swap", "defenses.component.edit-kind", "any, replace"),
                (("defenses", "component", "delete"), 1.5, 'defenses.component: "delete" 1.5: a chance above 0'),
                (("defenses", "component", "delete"), True, "defenses.component.delete: a string is expected"),
                (("defenses", "component", "groups"), 0.5, "defenses.component.groups", "whole number"),
                (("defenses", "component", "groups"), 10001, 'defenses.component: "groups" 10001'),
                (("defenses", "component", "groups"), 9, 'defenses.component: "n": "groups" draws nothing'),
                (("defenses", "topk:3", "groups"), 9, 'defenses.topk:3: "groups" and "method" hoeffding'),
                (("defenses", "none", "groups"), 9, 'defenses.none: "kernel" is missing: representative'),
                (("defenses", "none", "delete"), 0.5, 'defenses.none: "kernel" is missing'),
                (("defenses", "jia", "delete"), 0.5, 'defenses.jia: "delete": "method" ibp draws nothing'),
                (("defenses", "jia"), {"kernel": "component", "method": "groups"}, 'defenses.jia: "method" groups needs "groups"'),
                (("attacks", "guess", "delete"), 0.5, 'attacks.guess has no key "delete"'),
                (("attacks", "guess", "method"), "guess", "attacks.guess", "textfooler"),
                (("attacks", "guess", "smoothed"), True, "attacks.guess", '"smoothed"'),
                (("data", "reviews", "test"), {"sample": "every:2"}, "data.reviews.test", '"data"'),
                (("data", "reviews", "lexicon"), {"threshold": 0.9}, "data.reviews.lexicon", '"vectors"'),
                (("data", "reviews", "lexicon", "vocab-from"), [1], "data.reviews.lexicon.vocab-from", "path"),
                (("compare", 0, "models"), ["cnn", "rnn"], "compare[0].models", '"rnn"'),
                (("compare", 1, "defenses"), ["component"], "reviews cnn component", "twice"),
                (("compare", 0, "attacks"), [], "reviews ngram none", "neither"),
                (("compare", 0, "attacks"), ["guess", "guess"], "compare[0].attacks", '"guess"', "twice"),
                (("compare",), {}, "compare", "list"),
                (("compare",), [], "nothing to compare"),
                (("radius",), 0, "radius"),
                (("seed",), -1, "seed"),
                (("defenses",), ["none"], "defenses", "object")):
            name = changed(lambda c: at(*path)(c, value))
            with self.subTest(path=path):
                self.refused(run("compare", name, "-o", "refused"), INPUT, name, *parts)
        for key in ("data", "models", "defenses"):
            self.refused(run("compare", changed(lambda c: c.pop(key)), "-o", "refused"), INPUT, f'"{key}" is missing')
        self.refused(run("compare", changed(lambda c: c["data"]["reviews"].pop("train")), "-o", "refused"), INPUT, "data.reviews", '"train"')
        self.refused(run("compare", changed(lambda c: c["data"]["reviews"].pop("lexicon")), "-o", "refused"), INPUT, "data.reviews", '"lexicon"')
        self.refused(run("compare", write("broken.json", '{"data": {},\n "models": }'), "-o", "refused"), INPUT, "broken.json", "line 2")
        self.refused(run("compare", "absent.json", "-o", "refused"), INPUT, "absent.json")
        self.refused(run("compare", "small.json"), USAGE, "-o FOLDER")
        self.assertFalse(exists("refused"))

    def test_unlabelled(self):
        """texts without labels cannot be compared"""
        write("bare.jsonl", '{"text": "a good film"}\n')
        done = run("compare", changed(lambda c: c["data"]["reviews"].update(test="bare.jsonl")), "-o", "bare", "--quiet")
        self.assertEqual((done.code, done.err.count("bare.jsonl, text 1 has no label")), (INPUT, 6))

    def test_paper(self):
        """the configurations of the paper's tables are read; without their data every cell says so"""
        for name, cells in (("tables", 17), ("attacks", 7)):
            done = run("compare", ROOT / f"scripts/paper/{name}.json", "-o", f"paper-{name}", "--quiet", env={"DATA": "absent", "ENCODER": "absent"})
            self.assertEqual((done.code, done.err.count("absent/")), (SYSTEM, cells), done)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
