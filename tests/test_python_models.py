#!/usr/bin/env python3
"""Models of other packages, and asyncio: test_python_models.py [TEST...] BUILD_DIR. Run by ctest.

Stand-ins have the calls of transformers' pipelines and tokenizers and of PyTorch's modules. Where PyTorch is installed a module of
its own is certified, where transformers is, a pipeline that it makes here.
"""
import asyncio
import contextlib
import math
import sys
import threading
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True
import test_cli  # noqa: E402
import test_python as base  # noqa: E402
from test_python import python_with, script, temporary, without_seconds  # noqa: E402

safer = None


def prepare():
    global safer
    base.prepare(Pipelines, Modules, Labels, Async)
    safer = base.safer


class Pipeline:
    """What transformers.TextClassificationPipeline has and does."""

    task = "text-classification"

    def __init__(self, names=("neg", "pos"), limit=512):
        self.calls = []
        self.tokenizer = types.SimpleNamespace(model_max_length=limit)
        self.model = types.SimpleNamespace(config=types.SimpleNamespace(id2label=dict(enumerate(names))))

    def __call__(self, inputs, **parameters):
        assert isinstance(inputs, list), "a list gets a list"
        self.calls.append((len(inputs), parameters))
        names = self.model.config.id2label
        return [{"label": names[int(base.vote(text) > 0)], "score": 0.9} for text in inputs]


class Pipelines(unittest.TestCase):
    def test_pipeline(self):
        """a pipeline is taken as it is, asked in full batches, cut to its limit, with its own names"""
        pipeline = Pipeline()
        results = safer.certify(pipeline, base.TEXTS, base.LABELS, base.topk, **base.SAMPLED)
        same = safer.certify(base.classify, base.TEXTS, base.LABELS, base.topk, **base.SAMPLED)
        self.assertEqual([k.counts for k in results], [k.counts for k in same])
        self.assertEqual(results.config["labels"], ["neg", "pos"])
        self.assertTrue(all(more == dict(batch_size=count, truncation=True, max_length=512) for count, more in pipeline.calls))
        self.assertGreater(max(count for count, _ in pipeline.calls), 200)
        self.assertEqual(safer.Smoothed(Pipeline(), base.component).classes, ("neg", "pos"))
        unlimited = Pipeline(limit=int(1e30))
        safer.certify(unlimited, base.TEXTS[:1], base.LABELS[:1], base.component)
        self.assertEqual(unlimited.calls[0][1]["max_length"], 512)

    def test_names(self):
        """names that are none (LABEL_0) leave the labels of the data; numbers stand for places; classes= counts"""
        plain = Pipeline(("LABEL_0", "LABEL_1"))
        self.assertEqual(safer.certify(plain, base.TEXTS, base.LABELS, base.component).config["labels"], ["neg", "pos"])
        numbers = safer.certify(Pipeline(), base.TEXTS, [int(label == "pos") for label in base.LABELS], base.component)
        self.assertEqual([k.label for k in numbers], base.LABELS)
        with self.assertRaisesRegex(safer.InputError, r"labels\[0\] is 'good', which the model does not know \(it knows: neg, pos\)"):
            safer.certify(Pipeline(), base.TEXTS[:1], ["good"], base.component)

    def test_transformers(self):
        """a pipeline that transformers makes here"""
        done = script(python_with("torch", "transformers", "tokenizers"), TRANSFORMERS, base.ROOT / "tests")
        self.assertEqual((done.returncode, done.stdout.split()[-1:]), (0, ["good"]), done.stderr[-3000:])


TRANSFORMERS = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, transformers, test_transformers, safer_nlp as safer
tokenizer = test_transformers.make_tokenizer(transformers)
torch.manual_seed(1)
config = transformers.BertConfig(vocab_size=len(test_transformers.WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                                 intermediate_size=16, max_position_embeddings=64, num_labels=2, id2label={0: "neg", 1: "pos"})
model = transformers.BertForSequenceClassification(config).eval()
pipeline = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
lexicon = safer.Lexicon.load("c.lex")
texts = ["a fine film", "the dull plot and the film . " * 9]
first, second = (safer.certify(one, texts, None, lexicon, n=50, n0=50) for one in (pipeline, (model, tokenizer)))
assert first.config["labels"] == second.config["labels"] == ["neg", "pos"]
assert [k.prediction for k in first] == [k.prediction for k in second]
print("good")
"""


class Tensor:
    """As much of a tensor as is needed."""

    def __init__(self, rows, device="cpu"):
        self.rows, self.device = rows, device

    def to(self, device):
        return Tensor(self.rows, device)

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        raise RuntimeError("no NumPy")

    def tolist(self):
        return self.rows


class Module:
    """As much of a torch.nn.Module as is needed: words in, logits out, at random while it is trained."""

    def __init__(self, names=None):
        self.training, self.calls = True, []
        if names:
            self.config = types.SimpleNamespace(id2label=dict(enumerate(names)))

    def parameters(self):
        return iter([Tensor([], "cuda:1")])

    def eval(self):
        self.training = False

    def train(self):
        self.training = True

    def __call__(self, input_ids, attention_mask=None):
        assert not self.training and input_ids.device == "cuda:1"
        self.calls.append(len(input_ids.rows))
        return types.SimpleNamespace(logits=Tensor([[-base.vote(text), base.vote(text) - 0.5] for text in input_ids.rows]))


class Tokenizer:
    """As transformers' tokenizers are called; the "ids" are the texts."""

    model_max_length = 128

    def __call__(self, texts, *, padding, truncation, max_length, return_tensors):
        assert (padding, truncation, max_length, return_tensors) == (True, True, 128, "pt")
        return {"input_ids": Tensor(texts), "attention_mask": Tensor(texts)}


class Modules(unittest.TestCase):
    def setUp(self):
        self.modes = []

        @contextlib.contextmanager
        def inference_mode():
            self.modes.append("in")
            yield
            self.modes.append("out")

        patched = unittest.mock.patch.dict(sys.modules, {"torch": types.SimpleNamespace(inference_mode=inference_mode)})
        patched.start()
        self.addCleanup(patched.stop)

    def test_pair(self):
        """module and tokenizer: evaluated without gradients where the module is, in full batches, and left in its mode"""
        module = Module(("neg", "pos"))
        results = safer.certify((module, Tokenizer()), base.TEXTS, base.LABELS, base.topk, **base.SAMPLED)
        same = safer.certify(base.scores, base.TEXTS, base.LABELS, base.topk, **base.SAMPLED)
        self.assertEqual([k.counts for k in results], [k.counts for k in same])
        self.assertTrue(module.training and self.modes.count("in") == self.modes.count("out") == len(module.calls))
        self.assertGreater(max(module.calls), 200)

    def test_own_tokenizer(self):
        """a tokenizer that is a function, a module without a configuration; failures leave the mode as it was"""
        module = Module()
        results = safer.certify((module, Tensor), base.TEXTS, base.LABELS, base.component)
        self.assertEqual(results.config["labels"], ["neg", "pos"])

        def failing(texts):
            raise OverflowError("too long")

        with self.assertRaisesRegex(OverflowError, "too long"):
            safer.certify((module, failing), base.TEXTS, base.LABELS, base.component)
        self.assertTrue(module.training)
        for wrong, words in (((module,), "a tuple of 1"), ((module, "bert"), "of a pair the first is a module")):
            with self.assertRaisesRegex(safer.InvalidError, words):
                safer.certify(wrong, base.TEXTS, base.LABELS, base.component)

    def test_torch(self):
        """a module of PyTorch itself, with dropout that would answer at random"""
        done = script(python_with("torch"), TORCH, base.ROOT / "tests")
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "good"), done.stderr[-3000:])


TORCH = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, test_python as t, safer_nlp as safer

class Bags(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.drop = torch.nn.EmbeddingBag(97, 2), torch.nn.Dropout(0.9)

    def forward(self, ids):
        return self.drop(self.bag(ids))

def tokenize(texts):
    rows = [[1 + sum(map(ord, word)) % 96 for word in text.split()] for text in texts]
    longest = max(1, *map(len, rows))
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])

torch.manual_seed(3)
module = Bags()
with torch.no_grad():
    module.bag.weight[0] = 0
    module.bag.padding_idx = 0
module.train()
lexicon = safer.Lexicon.load("c.lex")
one, two = (safer.certify((module, tokenize), t.TEXTS, t.LABELS, lexicon, n=50, n0=50) for _ in range(2))
assert module.training and [k.counts for k in one] == [k.counts for k in two] and one.summary.exact
print("good")
"""


class Labels(unittest.TestCase):
    def test_model(self):
        """a model: the labels, ids and order that the program writes, by name; a share of them is the surest"""
        model, data = safer.Model.load(temporary("demo.model")), safer.load_data(temporary("demo/test.tsv"))
        for keep, batch, threads in ((1.0, None, 0), (0.4, None, 0), (0.4, 7, 2)):
            found = safer.label(model, data, keep=keep, batch=batch, threads=threads)
            base.run_ok("label", "--model", "demo.model", "--data", "demo/test.tsv", "--keep", keep, "-o", "label.tsv")
            self.assertEqual(found, safer.load_data(temporary("label.tsv")))
            kept = found.labelling
            self.assertEqual((kept.texts, kept.none, kept.kept, kept.known, kept.by_difference), (40, 0, round(40 * keep), 40, False))
            truth = dict(zip(data.ids, data.labels))
            self.assertEqual(kept.kept_agreed, sum(truth[id_] == label for id_, label in zip(found.ids, found.labels)))
            self.assertEqual(kept.agreed, sum(map(str.__eq__, model.classify(data.texts), data.labels)))
        rows = {text: sorted(scores) for text, scores in zip(data.texts, model.scores(data.texts))}
        lead = {text: math.log(row[1] / row[0]) for text, row in rows.items()}
        self.assertAlmostEqual(kept.least_lead, min(lead[text] for text in found.texts), 5)
        self.assertLessEqual(max(lead[text] for text in data.texts if text not in found.texts), kept.least_lead + 1e-9)
        self.assertIsNone(data.labelling)

    def test_function(self):
        """a function, pipeline or pair: its labels, without those that it does not give; no share, for it has no scores"""
        calls = []

        def predict(texts):
            calls.append(len(texts))
            return [None if not text else label for text, label in zip(texts, base.classify(texts))]

        found = safer.label(predict, base.TEXTS, ["pos", "?", None, "neg", "neg", "neg"], classes=["neg", "pos"], ids=list("abcdef"))
        self.assertEqual((found.texts, found.labels, found.ids),
                         ([text for text in base.TEXTS if text], ["pos", "neg", "neg", "pos", "neg"], list("abcef")))
        self.assertEqual((found.labelling.none, found.labelling.known, found.labelling.agreed, found.labelling.least_lead), (1, 3, 2, None))
        self.assertEqual(sum(calls), 6)
        calls.clear()
        safer.label(predict, base.TEXTS * 50, classes=["neg", "pos"], batch=32)
        self.assertEqual((max(calls), sum(calls)), (32, 300))
        self.assertEqual(safer.label(Pipeline(), base.TEXTS).labels, base.classify(base.TEXTS))
        self.assertEqual(safer.label(Pipeline(), iter(base.TEXTS)), safer.label(Pipeline(), base.TEXTS))
        self.assertEqual(safer.label(base.scores, base.TEXTS * 2, ["10", "2"] * 6).labels,
                         [["2", "10"][label == "pos"] for label in base.classify(base.TEXTS * 2)])
        for error, words, arguments, options in (
                (safer.InvalidError, "keep: 0.5 needs scores", (predict, base.TEXTS), dict(keep=0.5, classes=["neg", "pos"])),
                (safer.InvalidError, "keep: 0 ", (Pipeline(), base.TEXTS), dict(keep=0)),
                (safer.InvalidError, "batch: 0", (Pipeline(), base.TEXTS), dict(batch=0)),
                (safer.InvalidError, "threads: -1", (Pipeline(), base.TEXTS), dict(threads=-1)),
                (safer.InvalidError, "classes: none from the labels alone", (predict, base.TEXTS), {}),
                (safer.InvalidError, "texts: there are none", (Pipeline(), []), {}),
                (safer.InputError, "none of the 1 texts", (predict, [""]), dict(classes=["neg", "pos"])),
                (ZeroDivisionError, "division", (lambda texts: 1 // 0, base.TEXTS), dict(classes=["neg", "pos"]))):
            with self.assertRaisesRegex(error, words):
                safer.label(*arguments, **options)

    def test_progress(self):
        """progress is told, and may end it; awaited it is the same"""
        from safer_nlp import aio
        seen = []
        safer.label(base.classify, base.TEXTS, classes=["neg", "pos"], progress=lambda *now: seen.append(now))
        self.assertEqual((seen[0], seen[-1]), (("labelling", 0, 6), ("labelling", 6, 6)))
        with self.assertRaises(safer.CancelledError):
            safer.label(base.classify, base.TEXTS, classes=["neg", "pos"], progress=lambda *now: True)
        self.assertEqual(asyncio.run(aio.label(base.classify, base.TEXTS, classes=["neg", "pos"])),
                         safer.label(base.classify, base.TEXTS, classes=["neg", "pos"]))


class Async(unittest.TestCase):
    def test_certify(self):
        """awaited, the same records; the event loop goes on meanwhile; coroutine functions are asked in it"""
        loops = []

        async def predict(texts):
            await asyncio.sleep(0)
            loops.append(threading.get_ident())
            return base.classify(texts)

        async def main():
            from safer_nlp import aio
            run = asyncio.ensure_future(aio.certify(predict, base.TEXTS, base.LABELS, base.topk, output=temporary("a.jsonl"), model_name="w", **base.SAMPLED))
            beats = 0
            while not run.done():
                beats += 1
                await asyncio.sleep(0)
            plain = await aio.certify(base.classify, base.TEXTS, base.LABELS, base.topk, **base.SAMPLED)
            checked = await aio.verify(temporary("a.jsonl"), predict, base.TEXTS, base.LABELS, base.topk, model_name="w")
            attacked = await aio.attack(predict, base.TEXTS, base.LABELS, base.component)
            against = await aio.attack_against(temporary("a.jsonl"), predict, base.TEXTS, base.LABELS, base.topk, model_name="w")
            page, = await aio.report(temporary("a.html"), temporary("a.jsonl"))
            answer, = await aio.predict(safer.Smoothed(base.classify, base.component, classes=["neg", "pos"]), ["A good film"])
            model = await aio.train(temporary("a.model"), base.TEXTS * 5, base.LABELS * 5, arch="ngram", bits=8)
            return await run, beats, plain, (checked, attacked, against, page, answer, model)

        results, beats, plain, others = asyncio.run(main())
        self.assertEqual([k.counts for k in results], [k.counts for k in plain])
        self.assertGreater(beats, 10)
        self.assertEqual(set(loops), {threading.get_ident()})
        safer.certify(base.classify, base.TEXTS, base.LABELS, base.topk, output=temporary("b.jsonl"), model_name="w", **base.SAMPLED)
        self.assertEqual(without_seconds(temporary("a.jsonl")), without_seconds(temporary("b.jsonl")))
        self.assertEqual((others[0].texts, others[1].summary.texts, others[2].alarm, others[3].texts, others[4].label, others[5].arch),
                         (6, 6, False, 6, "pos", "ngram"))

    def test_cancelled(self):
        """cancelling ends the work, in a coroutine or between two texts; the output can be resumed"""
        async def main(predict, started, **options):
            from safer_nlp import aio
            run = asyncio.ensure_future(aio.certify(predict, base.TEXTS * 50, base.LABELS * 50, base.topk, n=5000, method="binomial", **options))
            while not started:
                await asyncio.sleep(0.001)
            run.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await run

        started = []

        async def never(texts):
            started.append(1)
            await asyncio.sleep(3600)

        def slow(texts):
            started.append(1)
            return base.classify(texts)

        before = threading.active_count()
        asyncio.run(main(never, started))
        started.clear()
        asyncio.run(main(slow, started, output=temporary("cut.jsonl"), model_name="w"))
        self.assertLessEqual(threading.active_count(), before + 1)
        written = len(temporary("cut.jsonl").read_text().splitlines())
        self.assertLess(written, 301)

    def test_raised(self):
        """exceptions arrive unchanged; progress is asked in the thread and may cancel"""
        async def wrong(texts):
            raise LookupError("no such word")

        async def main(**options):
            from safer_nlp import aio
            return await aio.certify(options.pop("predict", base.classify), base.TEXTS, base.LABELS, base.topk, **base.SAMPLED, **options)

        with self.assertRaisesRegex(LookupError, "no such word"):
            asyncio.run(main(predict=wrong))
        threads = set()
        with self.assertRaises(safer.CancelledError):
            asyncio.run(main(progress=lambda *k: threads.add(threading.get_ident()) or True))
        self.assertNotIn(threading.get_ident(), threads)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], prepare)
