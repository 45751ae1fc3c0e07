#!/usr/bin/env python3
"""Runs and what verify says of them: test_cli_verify.py [TEST...] BUILD_DIR. Run by ctest."""
import json
import pathlib
import re
import resource
import shutil
import sys

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import must, read_run, seal, without_times  # noqa: E402
from test_cli import DONE, INPUT, USAGE, Case, run, write  # noqa: E402

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden/format1"

# The runs of format 1 that are kept (golden/format1/README.md): name -> (model, data).
NGRAM, SERVER = ("--model", "ngram.safetensors"), ("--model", "exec:python3 server.py", "--labels", "low,middle,high")
KEPT = {
    "adaptive": (NGRAM, "texts.tsv"),
    "enumerated": (NGRAM, "texts.tsv"),
    "unlabelled": (NGRAM, "texts.tsv"),
    "binomial": (NGRAM, "texts.tsv"),
    "hoeffding": (NGRAM, "texts.tsv"),
    "ibp": (("--model", "bow.safetensors"), "texts.tsv"),
    "cnn": (("--model", "cnn.safetensors"), "texts.tsv"),
    "exec": (SERVER, "three.tsv"),
    "hoeffding3": (SERVER, "three.tsv"),
    "random": (None, "three.tsv"),
}


# The same runs in today's format: name -> (lexicon, data, options).
FILES = ("--lexicon", "words.lex")
NAMED = (*SERVER, "--model-name", "server")
TODAY = {
    "adaptive": (NGRAM, "texts.tsv", ("--n", 200)),
    "enumerated": (NGRAM, "texts.tsv", ("--n", 100000)),
    "unlabelled": (NGRAM, "texts.tsv", ("--n", 300, "--unlabelled", "--family-wise", "--radius", 2, "--seed", 2**63 - 1)),
    "binomial": (NGRAM, "texts.tsv", ("--n", 150, "--n0", 60, "--method", "binomial")),
    "hoeffding": (NGRAM, "texts.tsv", ("--n", 400, "--method", "hoeffding")),
    "ibp": (("--model", "bow.safetensors"), "texts.tsv", ("--method", "ibp")),
    "cnn": (("--model", "cnn.safetensors"), "texts.tsv", ("--n", 300)),
    "exec": (NAMED, "three.tsv", ("--n", 400)),
    "function": ((*NAMED, "--function"), "three.tsv", ("--n", 400)),
    "hoeffding3": (NAMED, "three.tsv", ("--n", 400, "--n0", 50, "--method", "hoeffding")),
    "random": ((*NAMED, "--random"), "three.tsv", ("--n", 80)),
}

# Members of a configuration and of a record, in order, by kind.
HEAD = ["safer", "format", "model", "lexicon", "data", "labels", "method"]
DRAWS = ["n", "n0", "delta", "delta_text", "family_wise", "alpha"]
BEGIN = ["row", "id", "label", "prediction", "abstained", "base", "target", "words", "slots", "visible", "exact"]
BOUND = ["bound", "q", "q_at", "q_radius", "q_next"]
END = ["certified", "radius", "queries", "seconds", "check"]


def make_files():
    shutil.copytree(GOLDEN, test_cli.temporary / "format1")
    for name in ("words.lex", "texts.tsv", "three.tsv", "server.py", "ngram.safetensors", "bow.safetensors", "cnn.safetensors"):
        shutil.copy(GOLDEN / name, test_cli.temporary)
    for name, (model, data, options) in TODAY.items():
        must("certify", *model, *FILES, "--data", data, *options, "-o", f"{name}.jsonl", "--quiet")


def kept(*arguments):
    """safer among the kept runs."""
    return run(*arguments, cwd=test_cli.temporary / "format1")


def forge(name, line, change, into="forged.jsonl"):
    """A run with one line changed, and sealed as if it had been written so."""
    config, records = read_run(name)
    change([config, *records][line - 1])
    return write(into, seal(config, records))


def put(**members):
    return lambda entry: entry.update(members)


class Format1(Case):
    def test_verify(self):
        """runs of format 1 verify: alone, with lexicon and data, and with the model too"""
        for name, (model, data) in KEPT.items():
            files = ("--lexicon", "words.lex", "--data", data)
            for arguments, words in (((), ""), (files, ", and are those of these texts")):
                out = self.ok(kept("verify", f"{name}.jsonl", *arguments))
                self.assertIn(f"7 records hold{words}; ", out, name)
                self.assertIn("what format 1 lacks: SHA-256 digests, the votes behind predictions, names, a date", out.splitlines()[-1])
            if model:
                out = self.ok(kept("verify", f"{name}.jsonl", *model, *files))
                self.assertIn("the model gives the same again", out, name)
            found = json.loads(self.ok(kept("verify", f"{name}.jsonl", "--json")))
            self.assertEqual((found["verified"], found["format"], found["asked_again"], found["records"]), (True, 1, False, 7))

    def test_attacks(self):
        """attacks of format 1 are read by reports"""
        self.ok(kept("report", "adaptive.jsonl", "--attack", "attack.jsonl", "--data", "texts.tsv", "--lexicon", "words.lex", "-o", "page.html"))

    def test_against(self):
        """certificates of format 1 can be attacked"""
        self.ok(kept("attack", *NGRAM, "--lexicon", "words.lex", "--data", "texts.tsv", "--against", "adaptive.jsonl", "--quiet", "-o", "again.jsonl"))

    def test_not_continued(self):
        """format 1 is not continued, and the file stays as it was"""
        path = test_cli.temporary / "format1/adaptive.jsonl"
        before = path.read_bytes()
        self.refused(kept("certify", *NGRAM, "--lexicon", "words.lex", "--data", "texts.tsv", "--n", 200, "--resume", "-o", "adaptive.jsonl"), INPUT,
                     "adaptive.jsonl is of format 1, which can be verified but not continued")
        self.refused(kept("attack", *NGRAM, "--lexicon", "words.lex", "--data", "texts.tsv", "--resume", "-o", "attack.jsonl"), INPUT, "of format 1")
        self.assertEqual(path.read_bytes(), before)

    def test_refused(self):
        """another lexicon, other data, another model"""
        must("lexicon", "import", "--table", "format1/words.tsv", "--kernel", "component", "-o", "format1/other.lex")
        for files, words in ((("--lexicon", "other.lex", "--data", "texts.tsv"), "belongs to another lexicon: lexicon.hash is "),
                             (("--lexicon", "words.lex", "--data", "three.tsv"), "belongs to another data set, or to other rows of it: data.hash is ")):
            self.refused(kept("verify", "adaptive.jsonl", *files), INPUT, words)
            self.refused(kept("verify", "adaptive.jsonl", *NGRAM, *files), INPUT, words)
        self.refused(kept("verify", "adaptive.jsonl", "--model", "cnn.safetensors", "--lexicon", "words.lex", "--data", "texts.tsv"), INPUT,
                     'belongs to another model: model.arch is "ngram" there, "cnn" here')


class Format2(Case):
    def test_members(self):
        """every kind of run has its members, in their order, of one type, and dates and names"""
        for name, (model, data, options) in TODAY.items():
            config, records = read_run(f"{name}.jsonl")
            drawn = name != "ibp"
            self.assertEqual(list(config), [*HEAD, *(DRAWS if drawn else []), "radius", "radii", "unlabelled", *(["seed"] if drawn else []), "date", "check"], name)
            self.assertEqual(config["format"], 2)
            self.assertRegex(config["date"], r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")
            self.assertEqual(config["radii"], ["1", "2", "5", "10", "20", "all"])
            self.assertEqual((list(config["lexicon"]), config["lexicon"]["name"]), (["name", "sha256", "kernel"], "words.lex"))
            self.assertEqual((list(config["data"]), config["data"]["name"], config["data"]["texts"]), (["name", "sha256", "texts"], data, 7))
            self.assertEqual(list(config["model"]), {"exec": ["name", "arch", "probe"], "hoeffding3": ["name", "arch", "probe"],
                                                     "function": ["name", "arch", "probe", "function"], "random": ["name", "arch", "random"]}
                             .get(name, ["name", "arch", "sha256", "arithmetic"]))
            for record in records:
                remote = name in ("exec", "function", "hoeffding3", "random")
                middle = ["margins"] if not drawn else ["weights", "total", *BOUND, *(["assumes"] if remote else [])] if record["exact"] \
                    else ["vote", "n", "counts", *BOUND]
                self.assertEqual(list(record), [*BEGIN, *middle, *END], name)
                self.assertIsInstance(record["radius"], str)
                for member in BOUND[:1] + BOUND[1:2] + BOUND[3:] if drawn else ():
                    self.assertIsInstance(record[member], float)

    def test_numbers(self):
        """a real number never looks like a whole one, and has no digit too many"""
        for line in (test_cli.temporary / "adaptive.jsonl").read_text().splitlines():
            for member, text in re.findall(r'"(delta|delta_text|alpha|bound|q|q_radius|q_next|seconds)":([^,}]*)', line):
                self.assertRegex(text, r"[.e]")
                self.assertEqual(text, repr(float(text)), member)

    def test_date(self):
        """the date is SOURCE_DATE_EPOCH where it is set; it changes no seal"""
        for name, seconds, date in (("early.jsonl", "0", "1970-01-01T00:00:00Z"), ("late.jsonl", "1763287402", "2025-11-16T10:03:22Z")):
            result = run("certify", *NGRAM, *FILES, "--data", "texts.tsv", "--n", 200, "-o", name, "--quiet", env={"SOURCE_DATE_EPOCH": seconds})
            self.assertEqual(result.code, DONE, result)
            self.assertEqual(read_run(name)[0]["date"], date)
        self.assertEqual(without_times("early.jsonl"), without_times("late.jsonl"))
        self.refused(run("certify", *NGRAM, *FILES, "--data", "texts.tsv", "-o", "never.jsonl", "--quiet", env={"SOURCE_DATE_EPOCH": "soon"}), USAGE,
                     "SOURCE_DATE_EPOCH")

    def test_resume(self):
        """a resumed run is the whole one; another one is refused by what differs"""
        whole = (test_cli.temporary / "adaptive.jsonl").read_text().splitlines(True)
        arguments = ("--lexicon", "words.lex", "--data", "texts.tsv", "--resume", "-o", "part.jsonl", "--quiet")
        for cut in (0, 40, len(whole[0]) - 30, len(whole[0]) - 1, len(whole[0]) + 20):  # within the first line, too
            write("part.jsonl", "".join(whole)[:cut])
            self.assertEqual(run("certify", *NGRAM, *arguments, "--n", 200).code, DONE, cut)
            self.assertEqual(without_times("part.jsonl"), without_times("adaptive.jsonl"))
        shutil.copy(test_cli.temporary / "words.lex", test_cli.temporary / "renamed.lex")
        write("part.jsonl", "".join(whole[:4]))
        self.assertEqual(run("certify", *NGRAM, *("renamed.lex" if a == "words.lex" else a for a in arguments), "--n", 200).code, DONE)
        for changed, words in ((("--n", 201), "n is 200 there, 201 here"), (("--n", 200, "--seed", 3), "seed is 1 there, 3 here"),
                               (("--n", 200, "--alpha", 0.01), "alpha is 0.001 there, 0.01 here"),
                               (("--n", 200, "--unlabelled"), "unlabelled is false there, true here"),
                               (("--n", 200, "--limit", 3), "data.sha256 is ")):
            self.refused(run("certify", *NGRAM, *arguments, *changed), INPUT, "part.jsonl belongs to another run: " + words)
        self.refused(run("certify", "--model", "cnn.safetensors", *arguments, "--n", 200), INPUT, 'model.arch is "ngram" there, "cnn" here')
        forge("part.jsonl", 1, put(safer="0.1.0"), "part.jsonl")
        self.refused(run("certify", *NGRAM, *arguments, "--n", 200), INPUT, 'safer is "0.1.0" there, ')

    def test_remote_resume(self):
        """a remote model that answers otherwise, or has another name, is refused"""
        shutil.copy(test_cli.temporary / "exec.jsonl", test_cli.temporary / "part.jsonl")
        write("other.py", (GOLDEN / "server.py").read_text().replace("> 42", "> 20"))
        base = ("--labels", "low,middle,high", *FILES, "--data", "three.tsv", "--quiet")
        for model, name, words in (("exec:python3 other.py", "server", "the model's answers to the probe set changed, model.probe is "), ("exec:python3 server.py", "another", "model.name is ")):
            self.refused(run("certify", "--model", model, "--model-name", name, *base, "--n", 400, "--resume", "-o", "part.jsonl"), INPUT, words)
            self.refused(run("verify", "exec.jsonl", "--model", model, "--model-name", name, *base), INPUT, "belongs to another model: ", words)


class Verify(Case):
    def test_forms(self):
        """three forms; each says what it did not check, on the terminal and in JSON"""
        for name, (model, data, _) in TODAY.items():
            files = (*FILES, "--data", data)
            forms = {"alone": (), "texts": files, **({"model": (*model, *files)} if name != "random" else {})}
            checked = []
            for form, arguments in forms.items():
                lines = self.ok(run("verify", f"{name}.jsonl", *arguments)).splitlines()
                words = {"alone": "7 records hold; ", "texts": "7 records hold, and are those of these texts; ",
                         "model": "7 records hold, and the model gives the same again; "}[form]
                self.assertIn(words, lines[-3])
                found = json.loads(self.ok(run("verify", f"{name}.jsonl", *arguments, "--json")))
                self.assertEqual((found["verified"], found["format"], found["asked_again"], found["records"]), (True, 2, form == "model", 7))
                self.assertEqual(lines[-1], "not checked: " + "; ".join(found["not_checked"]))
                self.assertEqual(checked, found["checked"][:len(checked)])
                checked = found["checked"]
                unchecked = " ".join(found["not_checked"])
                self.assertEqual("need lexicon and data" in unchecked, form == "alone")
                self.assertEqual("need the model" in unchecked, form != "model" and name != "random")
                self.assertEqual("function of the text" in unchecked, name in ("exec", "function", "hoeffding3"))
                self.assertIn("who made the run", unchecked)
                self.assertNotIn("format 1", unchecked)
        self.refused(run("verify", "random.jsonl", *TODAY["random"][0][:-1], *FILES, "--data", "three.tsv"), USAGE, "cannot be asked again")

    def test_claim(self):
        """a share says little without the radius and the chances of error that it is claimed with"""
        many = "claimed: any number of words changed"
        for name, line, radius, delta, family, alpha in (
                ("adaptive", f"{many}; delta 0.01 for each text, alpha 0.001", "all", 0.01, False, 0.001), ("ibp", f"{many}, by interval bounds", "all", 0, False, 0),
                ("unlabelled", "claimed: at most 2 words changed; delta 0.01 for all texts together, alpha 0.001", "2", 0.01, True, 0.001)):
            self.assertIn(f"\n{line}\n", self.ok(run("verify", f"{name}.jsonl")))
            found = json.loads(self.ok(run("verify", f"{name}.jsonl", "--json")))
            self.assertEqual([found[m] for m in ("radius", "delta", "family_wise", "alpha")], [radius, delta, family, alpha])

    def test_usage(self):
        """half of what a form needs is refused"""
        self.refused(run("verify", "adaptive.jsonl", *FILES), USAGE, "--lexicon and --data: both or none")
        self.refused(run("verify", "adaptive.jsonl", "--data", "texts.tsv"), USAGE, "--lexicon and --data: both or none")
        self.refused(run("verify", "adaptive.jsonl", *NGRAM), USAGE, "--model needs --lexicon and --data")
        self.refused(run("verify", "exec.jsonl", *SERVER, *FILES, "--data", "three.tsv"), USAGE, "--model-name")

    def test_renamed(self):
        """digests name files, not their names"""
        for old, new in (("words.lex", "w"), ("texts.tsv", "t.tsv"), ("ngram.safetensors", "n")):
            shutil.copy(test_cli.temporary / old, test_cli.temporary / new)
        self.ok(run("verify", "adaptive.jsonl", "--model", "n", "--lexicon", "w", "--data", "t.tsv"))

    def test_texts(self):
        """what records say of their texts is found by lexicon and data, without the model"""
        files = (*FILES, "--data", "texts.tsv")
        def q(factor):
            def change(r):
                r["q_at"] = [min(1.0, value * factor) for value in r["q_at"]]
                r["q"] = r["q_at"][-1]
                r["q_radius"], r["q_next"] = r["q_radius"] * factor, min(1.0, r["q_next"] * factor)
            return change

        def heavier(r):
            r.update(total=str(2 * int(r["total"])), weights={label: str(2 * int(weight)) for label, weight in r["weights"].items()})
        for name, line, change, words in (
                ("adaptive", 2, put(id="uno"), "the id is not that of the data"),
                ("unlabelled", 3, put(label="1"), "the label is not that of the data"),
                ("adaptive", 4, put(words=18), "the number of words is not that of the text"),
                ("adaptive", 4, put(slots=9, visible=9), "the number of slots is not that of the text"),
                ("ibp", 4, put(words=18), "the number of words is not that of the text"),
                ("ibp", 4, put(slots=9), "the number of slots is not that of the text"),
                ("ibp", 4, put(visible=99), "more slots are visible than there are"),
                ("binomial", 5, q(0.5), "q_at does not follow from the overlaps"),
                ("enumerated", 2, heavier, "the total is not that of all draws"),
                ("enumerated", 2, put(queries=11), "queries are not the number of draws"),
                ("cnn", 8, put(visible=2), "")):
            forged = forge(f"{name}.jsonl", line, change)
            self.refused(run("verify", forged, *files), INPUT, f"forged.jsonl, line {line}: {words}")
        # what each of them hides from a reader of the records alone
        for name, line, change in (("adaptive", 2, put(id="uno")), ("adaptive", 4, put(words=18)), ("enumerated", 2, heavier)):
            self.ok(run("verify", forge(f"{name}.jsonl", line, change)))

    def test_kinds(self):
        """an architecture that there is not, and a file's model without an answer"""
        for name, arch in (("cnn", "all"), ("exec", "bash"), ("adaptive", ""), ("format1/cnn", "all")):
            self.refused(run("verify", forge(f"{name}.jsonl", 1, lambda c: c["model"].update(arch=arch))), INPUT, '"model.arch" must be one of ngram, bow')
        for name in ("adaptive", "ibp", "format1/cnn"):
            self.refused(run("verify", forge(f"{name}.jsonl", 2, put(base=None))), INPUT, 'forged.jsonl, line 2: not a record: "base" must be one of the labels')
        self.ok(run("verify", forge("hoeffding3.jsonl", 2, put(base=None))))

    def test_visible(self):
        """a slot that is said to be invisible costs nothing: a model that reads every text to its end has none"""
        def unseen(r):
            r.update(visible=0, q=0.0, q_at=[0.0] * 6, q_radius=0.0, q_next=0.0)
            if r["bound"] > 0.5:
                r.update(radius="all", certified=True)
        for name in ("adaptive", "exec", "random"):
            line = next(i for i, r in enumerate(read_run(f"{name}.jsonl")[1], 2) if not r["exact"] and r["q"] > 0)
            forged = forge(f"{name}.jsonl", line, unseen)
            for files in ((), (*FILES, "--data", TODAY[name][1])):
                self.refused(run("verify", forged, *files), INPUT, f"forged.jsonl, line {line}: a model of this kind sees every slot")

    def test_coverage(self):
        """rows left out, repeated or exchanged are found, whoever seals them"""
        config, records = read_run("adaptive.jsonl")
        files = (*FILES, "--data", "texts.tsv")

        def renumbered(rows):
            return [{**row, "row": i + 1} for i, row in enumerate(rows)]
        for rows, texts in ((records[:-1], 7), (records + records[:1], 7), (renumbered(records[1:] + records[:1]), 7), (renumbered(records[:-1]), 6),
                            (renumbered(records[:3] + records[2:-1]), 7)):
            write("forged.jsonl", seal({**config, "data": {**config["data"], "texts": texts}}, rows))
            self.assertEqual(run("verify", "forged.jsonl", *files).code, INPUT)

    def test_digests(self):
        """another lexicon, other data, another model: named, with both digests"""
        must("lexicon", "import", "--table", "format1/words.tsv", "--kernel", "component", "-o", "other.lex")
        write("changed.tsv", (GOLDEN / "texts.tsv").read_text().replace("wonderful", "excellent"))
        for arguments, words in ((("--lexicon", "other.lex", "--data", "texts.tsv"), "another lexicon: lexicon.sha256 is "),
                                 ((*FILES, "--data", "changed.tsv"), "another data set, or to other rows of it: data.sha256 is "),
                                 (("--model", "cnn.safetensors", *FILES, "--data", "texts.tsv"), "another model: model.arch is ")):
            self.refused(run("verify", "adaptive.jsonl", *arguments), INPUT, "adaptive.jsonl belongs to " + words)
        forged = forge("adaptive.jsonl", 1, lambda c: c["lexicon"].update(kernel="topk:5"))
        self.refused(run("verify", forged, *FILES, "--data", "texts.tsv"), INPUT, 'lexicon.kernel is "topk:5" there, "topk:4" here')

    def test_answers(self):
        """what only the model knows is found with it: counts, votes, base answers, visible slots, margins"""
        everything = {name: (*model, *FILES, "--data", data) for name, (model, data, _) in TODAY.items()}

        def other_base(r):
            r["base"] = "0" if r["base"] == "1" else "1"

        def fewer_margins(r):
            r["margins"] = {label: margin - 1e-6 for label, margin in r["margins"].items()}

        def slightly_fewer(r):
            r["margins"] = {label: margin - 1e-10 for label, margin in r["margins"].items()}
        for name, line, change, words in (("hoeffding", 4, other_base, '"base" differs'), ("exec", 2, put(base=None), '"base" differs'),
                                          ("ibp", 4, fewer_margins, '"margins" differs')):
            forged = forge(f"{name}.jsonl", line, change)
            self.ok(run("verify", forged))
            self.ok(run("verify", forged, *everything[name][-4:]))
            self.refused(run("verify", forged, *everything[name]), INPUT, f"line {line}: the model gives another record: {words}")
        self.ok(run("verify", forge("ibp.jsonl", 4, slightly_fewer), *everything["ibp"]))

    def test_one_sided(self):
        """a bound lower by 1e-9, q higher by 1e-9 is fine; higher, or lower, is not"""
        def bound(change):
            return lambda r: r.update(bound=r["bound"] + change)

        def q(change):
            def move(r):
                r["q_at"] = [value + change if value else value for value in r["q_at"]]
                r["q"] = r["q_at"][-1]
                for member in ("q_radius", "q_next"):
                    r[member] += change if r[member] else 0
            return move
        for name in ("adaptive", "binomial", "hoeffding", "hoeffding3", "exec", "enumerated"):
            lines = [i + 2 for i, r in enumerate(read_run(f"{name}.jsonl")[1]) if r["bound"] > 0.6]
            for line in lines:
                self.ok(run("verify", forge(f"{name}.jsonl", line, bound(-1e-10))))
                for change in (-1e-8, 1e-10, 1e-8):
                    self.refused(run("verify", forge(f"{name}.jsonl", line, bound(change))), INPUT, "the bound does not follow from the counts")
            self.assertTrue(lines)
        files = (*FILES, "--data", "texts.tsv")
        line = next(i + 2 for i, r in enumerate(read_run("binomial.jsonl")[1]) if r["q"] > 0)
        self.ok(run("verify", forge("binomial.jsonl", line, q(1e-10)), *files))
        for change in (-1e-10, 1e-8):
            self.refused(run("verify", forge("binomial.jsonl", line, q(change)), *files), INPUT, "does not follow from the overlaps")

    def test_arithmetic(self):
        """the same model in another arithmetic is not another model"""
        must("train", "--arch", "charcnn", "--data", "texts.tsv", "--dev", "texts.tsv", "--size", "small", "--characters", 123, "--epochs", 1, "--batch", 2, "-o", "char.model", "--quiet")
        base = ("--model", "char.model", *FILES, "--data", "texts.tsv", "--limit", 2, "--quiet")
        must("certify", *base, "--arithmetic", "portable", "--n", 20, "-o", "portable.jsonl")
        must("certify", *base, "--n", 20, "-o", "fast.jsonl")
        self.assertEqual(read_run("portable.jsonl")[0]["model"]["arithmetic"], "portable")
        self.ok(run("verify", "portable.jsonl", *base, "--arithmetic", "portable"))
        self.refused(run("verify", "portable.jsonl", *base), INPUT, "was made with this model", 'the arithmetic "portable"', "give --arithmetic portable")
        ours = read_run("fast.jsonl")[0]["model"]["arithmetic"]
        theirs = "bf16 avx512" if ours != "bf16 avx512" else "bf16 amx 2"
        forge("fast.jsonl", 1, lambda c: c["model"].update(arithmetic=theirs), "elsewhere.jsonl")
        self.refused(run("verify", "elsewhere.jsonl", *base), INPUT, f'"{theirs}"; here it is "{ours}"', "certify with --arithmetic portable")
        forge("fast.jsonl", 1, lambda c: c["model"].update(arithmetic="bf16 amx"), "before.jsonl")  # the bits of 0.1.0, which no machine has any more
        self.refused(run("verify", "before.jsonl", *base), INPUT, '"bf16 amx"; here it is', "safer before 0.2.0 computed so: certify again")
        self.refused(run("certify", *base, "--n", 20, "-o", "before.jsonl", "--resume"), INPUT, f'model.arithmetic is "bf16 amx" there, "{ours}" here')

    def test_memory(self):
        """memory does not grow with the number of records: 6,000 of them, of 4 KB each when they are kept as JSON"""
        def limited(name):
            return run("verify", name, "--threads", 1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (16 << 20, 16 << 20)))
        if limited("adaptive.jsonl").code != DONE:
            self.skipTest("this build needs more memory in any case")
        config, records = read_run("adaptive.jsonl")
        rows = [record for record in records if not record["exact"]]
        write("many.jsonl", seal({**config, "data": {**config["data"], "texts": 6000}}, [{**rows[i % len(rows)], "row": i + 1} for i in range(6000)]))
        self.assertIn("6,000 records hold", self.ok(limited("many.jsonl")))


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
