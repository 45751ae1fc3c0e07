#!/usr/bin/env python3
"""The Python package beyond certificates: training, attacks, reports, comparisons, servers, records read back:
test_python_runs.py [TEST...] BUILD_DIR. Run by ctest.
"""
import gc
import json
import os
import re
import signal
import sys
import threading
import unittest
import unittest.mock
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
import test_cli  # noqa: E402
import test_python as base  # noqa: E402
from test_convert import make_folder  # noqa: E402
from test_python import run_ok, temporary, without_seconds  # noqa: E402

safer = lexicon = model = test = None
DEMO = ("--model", "demo.model", "--lexicon", "demo.lex", "--data", "demo/test.tsv")


def prepare():
    global safer, lexicon, model, test
    base.prepare(Train, Attacks, Pages, Serve)
    safer = base.safer
    if safer is None:
        return
    lexicon, model = safer.Lexicon.load(temporary("demo.lex")), safer.Model.load(temporary("demo.model"))
    test = safer.load_data(temporary("demo/test.tsv"))
    run_ok("certify", *DEMO, "-o", "run.jsonl")
    run_ok("attack", *DEMO, "-o", "attack.jsonl")


def ask(url, path="/v1/predict", token=None, **body):
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    with urllib.request.urlopen(urllib.request.Request(url + path, json.dumps(body).encode() if body else None, headers), timeout=60) as answer:
        return json.load(answer)


class Train(unittest.TestCase):
    def test_same_file(self):
        """the model that the program trains, byte for byte; how it went is in `training`"""
        train, dev = safer.load_data(temporary("demo/train.tsv")), safer.load_data(temporary("demo/dev.tsv"))
        stages = []
        ours = safer.train(temporary("ours.model"), train, arch="ngram", bits=12, dev=dev, lexicon=lexicon, progress=lambda *k: stages.append(k))
        self.assertEqual(temporary("ours.model").read_bytes(), temporary("demo.model").read_bytes())
        self.assertEqual((ours.arch, ours.training.texts, ours.labels), ("ngram", 1500, ("0", "1")))
        self.assertGreater(ours.training.dev_accuracy, 0.7)
        self.assertIsNone(model.training)
        self.assertTrue(stages)
        listed = safer.train(temporary("listed.model"), train.texts, [int(label) for label in train.labels], arch="ngram", bits=12,
                             dev=(dev.texts, dev.labels), lexicon=lexicon)
        self.assertEqual(listed.sha256, ours.sha256)

    def test_curve(self):
        """bounds of a model whose words add up: the least margin by radius"""
        few = safer.load_data(temporary("demo/train.tsv"), limit=300)
        linear = safer.train(temporary("linear.model"), few, arch="bow", dim=4, hidden=0, epochs=2)
        results = safer.certify(linear, few, lexicon=lexicon, method="ibp", radius=2)
        for r in results:
            self.assertEqual(list(r.margin_at), [1, 2, 5, 10, 20, "all"])
            self.assertEqual([r.certified_at(radius) for radius in r.margin_at], [margin > 0 for margin in r.margin_at.values()])
            self.assertEqual((r.certified, r.margin_at["all"]), (r.margin_at[2] > 0, min(r.margins.values())))
        self.assertGreater(results.summary.certified_at[1], results.summary.certified_at["all"])

    def test_options(self):
        """options reach the training; of every architecture one that can be seen"""
        few = safer.load_data(temporary("demo/train.tsv"), limit=200)
        for arch, options, expected in (("ngram", dict(bits=8, ngrams=1), 2**8 + 1),
                                        ("bow", dict(dim=4, hidden=0, epochs=1, min_count=1000), None),
                                        ("cnn", dict(dim=4, hidden=3, filters=2, widths="2", epochs=1, pool="max"), None)):
            found = safer.train(temporary("options.model"), few, arch=arch, **options)
            self.assertEqual(found.arch, arch)
            if expected:
                self.assertEqual(found.training.parameters, expected)
            else:
                self.assertEqual(found.training.epochs, 1)
        done = json.loads(run_ok("train", "--arch", "bow", "--data", "demo/train.tsv", "--limit", 200, "--defense", "exact", "--hidden", 0, "--dim", 4,
                                 "--epochs", 2, "--kappa", 0.5, "--lexicon", "demo.lex", "-o", "theirs.model", "--json"))
        ours = safer.train(temporary("ours2.model"), few, arch="bow", defense="exact", hidden=0, dim=4, epochs=2, kappa=0.5, lexicon=lexicon)
        self.assertEqual(ours.training.loss, done["loss"])
        self.assertEqual(temporary("ours2.model").read_bytes(), temporary("theirs.model").read_bytes())

    def test_refused(self):
        """what cannot be trained is said in one line"""
        out = temporary("never.model")
        for arguments, options, error, words in (
                ((["a"],), {}, safer.InvalidError, "texts: labels are needed to train"),
                ((["a", "b"], ["x", None]), {}, safer.InputError, "texts: text 2 has no label"),
                ((["a", "b"], ["x", "y"]), dict(dev=(["c"], ["z"])), safer.InputError, "dev: its labels are z, those of the texts x, y"),
                ((["a", "b"], ["x", "x"]), {}, safer.InputError, 'all rows of texts have the label "x"'),
                ((["a", "b"], ["x", "y"]), dict(arch="lstm"), safer.InvalidError, 'arch is "lstm"'),
                ((["a", "b"], ["x", "y"]), dict(arch="bert", train_layers="some"), safer.InvalidError, "train_layers: 'some'"),
                ((["a", "b"], ["x", "y"]), dict(epochs=-3), safer.InvalidError, "epochs")):
            with self.assertRaisesRegex(error, re.escape(words)):
                safer.train(out, *arguments, **options)
        self.assertFalse(out.exists())

    def test_interrupted(self):
        """Ctrl-C ends training, and nothing is written"""
        train = safer.load_data(temporary("demo/train.tsv"))
        with self.assertRaises(KeyboardInterrupt):
            safer.train(temporary("cut.model"), train, arch="cnn", epochs=1000, dim=4, lexicon=lexicon,
                        progress=lambda *report: os.kill(os.getpid(), signal.SIGINT))
        self.assertFalse(temporary("cut.model").exists())

    def test_convert(self):
        """a HuggingFace folder becomes one file; files are averaged"""
        make_folder(temporary("hf"))
        folder = temporary("hf")
        safer.convert(temporary("one.safetensors"), folder)
        run_ok("model", "convert", folder, "-o", "theirs.safetensors")
        self.assertEqual(temporary("one.safetensors").read_bytes(), temporary("theirs.safetensors").read_bytes())
        safer.average(temporary("mean.safetensors"), [temporary("one.safetensors")] * 2)
        run_ok("model", "average", "one.safetensors", "one.safetensors", "-o", "mean2.safetensors")
        self.assertEqual(temporary("mean.safetensors").read_bytes(), temporary("mean2.safetensors").read_bytes())
        with self.assertRaises(safer.Error):
            safer.convert(temporary("none.safetensors"), temporary("demo"))


class Attacks(unittest.TestCase):
    def test_same_records(self):
        """the records and figures of the program; read back they are the same"""
        ours = safer.attack(model, test, lexicon=lexicon, output=temporary("ours.jsonl"))
        self.assertEqual(without_seconds(temporary("ours.jsonl")), without_seconds(temporary("attack.jsonl")))
        printed = json.loads(run_ok("attack", *DEMO, "--json"))
        for name in ("texts", "skipped", "succeeded", "clean_accuracy", "adversarial_accuracy", "success_rate", "mean_changed", "queries"):
            self.assertEqual(getattr(ours.summary, name), printed[name], name)
        self.assertEqual(list(ours.summary.adversarial_interval), printed["adversarial_interval"])
        loaded = safer.Attacks.load(temporary("ours.jsonl"))
        self.assertEqual((list(loaded), loaded.config), (list(ours), ours.config))
        self.assertEqual((loaded.summary.succeeded, loaded.summary.mean_changed), (ours.summary.succeeded, ours.summary.mean_changed))
        won = next(k for k in ours if k.outcome == "succeeded")
        text = test.texts[test.ids.index(won.id)].encode()
        for change in won.changes:
            self.assertEqual(text[change.byte:].decode()[:len(change.before)], change.before)
            self.assertIn(change.after.lower(), lexicon.show(change.before).synonyms)
        self.assertEqual(model.classify([won.text]), [won.after])
        self.assertNotEqual(won.after, won.label)
        self.assertIn("textfooler", repr(ours))

    def test_constraints(self):
        """part of speech and similarity leave a weaker attack; wrong files are errors"""
        folder, part = temporary("wn"), {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
        folder.mkdir()
        for name, letter in part.items():
            (folder / f"index.{name}").write_text("".join(f"{word} {letter} 1 0\n" for word in ("good", "fine")) if name == "adj" else "")
            (folder / f"{name}.exc").write_text("")
        texts, labels, table = ["A good film.", *base.TEXTS], ["pos", *base.LABELS], base.component
        self.assertEqual(safer.attack(base.classify, texts, labels, table, same_pos=folder)[0].outcome, "succeeded")  # "fine" fools it
        (folder / "index.adj").write_text("good a 1 0\n")
        self.assertEqual(safer.attack(base.classify, texts, labels, table, same_pos=folder)[0].outcome, "failed")
        vectors = temporary("constraints.txt")
        for other, outcome in ("0.9 0.1", "succeeded"), ("0.1 0.9", "failed"):
            vectors.write_text(f"good 1 0\nfine {other}\n")
            for limit in "min_cosine", "min_similarity":
                self.assertEqual(safer.attack(base.classify, texts, labels, table, vectors=vectors, **{limit: 0.8})[0].outcome, outcome)
        with self.assertRaisesRegex(safer.InvalidError, "min_cosine: 2"):
            safer.attack(base.classify, texts, labels, table, vectors=vectors, min_cosine=2)
        with self.assertRaisesRegex(safer.Error, "index.noun"):
            safer.attack(base.classify, texts, labels, table, same_pos=temporary("nowhere"))

    def test_function(self):
        """a function is attacked, and its smoothed classifier; a name is needed to write"""
        table = base.component
        found = safer.attack(base.classify, ["A good film.", *base.TEXTS], ["pos", *base.LABELS], table)
        self.assertEqual(found[0].outcome, "succeeded")  # "fine" fools it
        self.assertEqual(base.classify([found[0].text]), ["neg"])
        with self.assertRaisesRegex(safer.InvalidError, "model_name"):
            found.to_json(temporary("f.jsonl"))
        smoothed = safer.attack(base.classify, base.TEXTS, base.LABELS, table, smoothed=True, n=50, method="random", model_name="words")
        self.assertEqual(smoothed.summary.succeeded, 0)  # the kernel is a component's: every text of it has one vote
        smoothed.to_json(temporary("f.jsonl"))
        self.assertEqual(list(safer.Attacks.load(temporary("f.jsonl"))), list(smoothed))
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            safer.attack(lambda texts: 1 / 0, base.TEXTS, base.LABELS, table)
        with self.assertRaisesRegex(safer.InvalidError, 'attack method is "love"|method is "love"'):
            safer.attack(base.classify, base.TEXTS, base.LABELS, table, method="love")

    def test_against(self):
        """certificates hold against all attacks; a forged run is refused, a lying model raises the alarm"""
        held = safer.attack_against(temporary("run.jsonl"), model, test, lexicon=lexicon)
        printed = json.loads(run_ok("attack", "--against", "run.jsonl", *DEMO, "--json"))
        for name in ("texts", "certified", "violations", "flips", "queries", "checks", "alarm", "p_value"):
            self.assertEqual(getattr(held, name), printed[name], name)
        self.assertEqual((held.alarm, held.shard), (False, None))
        honest = safer.certify(base.classify, base.TEXTS, base.LABELS, base.component, output=temporary("honest.jsonl"), model_name="words")
        self.assertGreater(honest.summary.exact, 0)
        with self.assertRaisesRegex(safer.InputError, "another model|differ|not the run's"):
            safer.attack_against(temporary("honest.jsonl"), lambda texts: ["neg" for _ in texts], base.TEXTS, base.LABELS, base.component,
                                 model_name="words")
        with self.assertRaisesRegex(safer.InvalidError, "model_name"):
            safer.attack_against(temporary("honest.jsonl"), base.classify, base.TEXTS, base.LABELS, base.component)


class Pages(unittest.TestCase):
    def test_report(self):
        """the page that the program writes, its figures, plots and tables"""
        found, = safer.report(temporary("ours.html"), temporary("run.jsonl"), texts=test, lexicons=lexicon, attacks=[temporary("attack.jsonl")],
                              svg=temporary("svg"), csv=temporary("csv"))
        run_ok("report", temporary("run.jsonl"), "--data", "demo/test.tsv", "--lexicon", "demo.lex", "--attack", temporary("attack.jsonl"), "-o", "theirs.html")
        self.assertEqual(temporary("ours.html").read_text(), temporary("theirs.html").read_text())
        self.assertEqual(found.headline, safer.Results.load(temporary("run.jsonl")).summary.headline)
        self.assertTrue(list(temporary("svg").glob("*.svg")) and temporary("csv/texts.csv").is_file())
        with self.assertRaisesRegex(safer.Error, "data"):
            safer.report(temporary("none.html"), temporary("run.jsonl"), texts=["another text"], labels=["1"])
        with self.assertRaisesRegex(safer.InvalidError, "run"):
            safer.report(temporary("none.html"), [])
        self.assertFalse(temporary("none.html").exists())

    def test_compare(self):
        """every two runs, as the library counts; attacks too, but not both kinds"""
        other = safer.certify(model, test, lexicon=lexicon, n=20, n0=20, output=temporary("few.jsonl"))
        first = safer.Results.load(temporary("run.jsonl"))
        pair, = safer.compare([temporary("run.jsonl"), temporary("few.jsonl")])

        def held(results):
            return [k.certified and not k.abstained and k.prediction == k.label for k in results]

        both = list(zip(held(first), held(other)))
        self.assertEqual((pair.both, pair.only_first, pair.only_second, pair.neither),
                         tuple(both.count(k) for k in ((True, True), (True, False), (False, True), (False, False))))
        self.assertGreater(pair.only_first, pair.only_second)
        self.assertLessEqual(pair.p_value, 2 * 0.5 ** pair.only_first * 2 ** pair.only_second * 2)
        three = safer.compare([temporary("run.jsonl"), temporary("few.jsonl"), temporary("run.jsonl")])
        self.assertEqual([(k.first, k.second) for k in three], [(0, 1), (0, 2), (1, 2)])
        self.assertEqual((three[1].only_first, three[1].p_value), (0, 1.0))
        for runs, error in (([temporary("run.jsonl"), temporary("attack.jsonl")], safer.Error), ([temporary("run.jsonl")], safer.InvalidError),
                            ([temporary("run.jsonl"), "nowhere.jsonl"], safer.OperatingSystemError)):
            with self.assertRaises(error):
                safer.compare(runs)

    def test_loaded(self):
        """records read back: the same certificates and figures; what does not hold is refused"""
        made = safer.certify(model, test, lexicon=lexicon, output=temporary("made.jsonl"))
        loaded = safer.Results.load(temporary("made.jsonl"))
        self.assertEqual((list(loaded), loaded.config), (list(made), made.config))
        for name in ("headline", "certified_answered_at", "intervals", "classes", "abstained", "queries", "clean_accuracy"):
            self.assertEqual(getattr(loaded.summary, name), getattr(made.summary, name), name)
        loaded.to_json(temporary("again.jsonl"))
        self.assertEqual(temporary("again.jsonl").read_bytes(), temporary("made.jsonl").read_bytes())
        forged = temporary("made.jsonl").read_text().replace('"certified":false', '"certified":true', 1)
        self.assertNotEqual(forged, temporary("made.jsonl").read_text())
        temporary("forged.jsonl").write_text(forged)
        with self.assertRaisesRegex(safer.InputError, "forged.jsonl"):
            safer.Results.load(temporary("forged.jsonl"))
        with self.assertRaisesRegex(safer.InputError, "a run of certificates, not of attacks"):
            safer.Attacks.load(temporary("made.jsonl"))
        with self.assertRaises(safer.InputError):
            safer.Results.load(temporary("attack.jsonl"))

    def test_lexicon(self):
        """export and stats are those of the program"""
        for what in ("synonyms", "kernel", "overlap"):
            self.assertEqual(lexicon.export(what=what), run_ok("lexicon", "export", "demo.lex", "--what", what))
        self.assertEqual(json.loads(lexicon.export(json=True)), json.loads(run_ok("lexicon", "export", "demo.lex", "--what", "synonyms", "--json")))
        lexicon.export(temporary("table.tsv"))
        self.assertEqual(temporary("table.tsv").read_text(), lexicon.export())
        with self.assertRaisesRegex(safer.InvalidError, "it must be synonyms, kernel, overlap"):
            lexicon.export(what="words")
        ours, theirs = lexicon.stats(test), json.loads(run_ok("lexicon", "stats", "demo.lex", "--data", "demo/test.tsv", "--json"))
        self.assertIn(ours.tokens_with_synonyms, base.test_cli.numbers_in(json.dumps(theirs)))
        self.assertEqual((ours.texts, list(ours.above_half)), (40, [5, 10, 20, "all"]))
        self.assertTrue(0 < ours.above_half["all"] <= ours.above_half[5] <= 1)


class Serve(unittest.TestCase):
    def test_served(self):
        """a server for the length of a block: answers as Smoothed does, another model on the way, log and token"""
        lines, token = [], "0123456789abcdef"
        with safer.serve(model, lexicon, port=0, seed=7, n=500, token=token, log=lines.append, log_texts=True) as server:
            self.assertRegex(repr(server), rf"<safer_nlp.Server at http://127.0.0.1:{server.port}>")
            answer = ask(server.url, text=test.texts[0], token=token)["answers"][0]
            mine, = safer.Smoothed(model, lexicon, seed=7, n=500).predict(test.texts[:1])
            self.assertEqual((answer["label"], answer["radius"], answer["queries"]), (mine.label, mine.radius, mine.queries))
            with self.assertRaises(urllib.error.HTTPError) as refused:
                ask(server.url, text="a film", token="another, which is wrong")
            self.assertEqual(refused.exception.code, 401)
            refused.exception.close()
            other = safer.Model.load(temporary("demo.model"))
            server.reload(other, lexicon.with_kernel("component"))
            del other
            gc.collect()  # the server keeps what it uses
            self.assertEqual(ask(server.url, text=test.texts[0], token=token)["answers"][0]["radius"], "all")
            url = server.url
        self.assertEqual([json.loads(line)["status"] for line in lines], [200, 401, 200])
        self.assertEqual(repr(server), "<safer_nlp.Server, stopped>")
        server.stop()
        with self.assertRaises(urllib.error.URLError):
            ask(url, text="a film")
        with self.assertRaisesRegex(ValueError, "this Server is closed"):
            server.url

    def test_function(self):
        """a function is served, from the server's threads; what it raises reaches threading.excepthook and no client"""
        threads, failing = set(), []

        def predict(texts):
            threads.add(threading.get_ident())
            if failing:
                raise OverflowError("secret text")
            return base.classify(texts)

        with safer.serve(predict, base.component, port=0, classes=["neg", "pos"]) as server:
            answer = ask(server.url, text="A good film")["answers"][0]
            self.assertEqual((answer["label"], answer["assumes"]), ("pos", ["the model is a function of the text"]))
            failing.append(True)
            with unittest.mock.patch("threading.excepthook") as reported:
                with self.assertRaises(urllib.error.HTTPError) as failed:
                    ask(server.url, text="A bad film")
            self.assertGreaterEqual(failed.exception.code, 500)
            self.assertNotIn(b"secret", failed.exception.read())
            failed.exception.close()
            self.assertIs(reported.call_args[0][0].exc_type, OverflowError)
            failing.clear()
            self.assertEqual(ask(server.url, text="A bad film")["answers"][0]["label"], "neg")
        self.assertGreater(len(threads), 1)

    def test_interrupted(self):
        """what happens in the function while the server starts is raised there, Ctrl-C too"""
        def predict(texts):
            os.kill(os.getpid(), signal.SIGINT)
            return base.classify(texts)

        with self.assertRaises(KeyboardInterrupt):
            safer.serve(predict, base.component, port=0, classes=["neg", "pos"])
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            safer.serve(lambda texts: 1 / 0, base.component, port=0, classes=["neg", "pos"])

    def test_refused(self):
        """an address for everybody needs a token; ports and limits have ranges; a busy port is named"""
        for options, words in ((dict(host="0.0.0.0"), "token"), (dict(port=70000), "port: 70000"), (dict(queue=-1), "queue: -1"),
                               (dict(token="short"), "16")):
            with self.assertRaisesRegex(safer.InvalidError, words):
                safer.serve(model, lexicon, **{"port": 0, **options})
        with safer.serve(model, lexicon, port=0) as server:
            with self.assertRaisesRegex(safer.OperatingSystemError, str(server.port)):
                safer.serve(model, lexicon, port=server.port)

    def test_exit(self):
        """a server that nobody stopped ends with the program"""
        done = base.script(sys.executable, "import sys, safer_nlp as safer\n"
                           "server = safer.serve(safer.Model.load('demo.model'), safer.Lexicon.load('demo.lex'), port=0)\nprint(server.url)\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("http://127.0.0.1:", done.stdout)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], prepare)
