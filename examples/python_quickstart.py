#!/usr/bin/env python3
"""A tour of the Python package: python_quickstart.py [FOLDER]

A scikit-learn pipeline is trained on made-up reviews (build/demo-reviews writes them),
certified, and turned into a smoothed classifier. Files go to FOLDER (out/quickstart). The
cells, marked # %%, can be run one by one in an editor that knows them. Needs scikit-learn;
with matplotlib it draws.
"""
# %% What is needed
import math
import os
import pathlib
import subprocess
import sys

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import safer_nlp as safer

root = pathlib.Path(__file__).resolve().parent.parent
out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "out/quickstart"
program = pathlib.Path(os.environ.get("SAFER_BUILD", root / "build")) / "demo-reviews"
subprocess.run([program, out, "--train", "2000", "--test", "400"], check=True, capture_output=True)

# %% Texts, and which words may stand for which
train = safer.load_data(out / "train.tsv")
test = safer.load_data(out / "test.tsv", sample="every:2")
lexicon = safer.Lexicon.import_(root / "demo/synonyms.tsv", vocab_from=out / "train.tsv", min_count=1, kernel="topk:5")
print(lexicon)
print("good may become", ", ".join(lexicon.show("good").synonyms))

# %% Your own model, trained on draws of the texts: it will be asked about draws
drawn = [safer.draws(lexicon, text, 1, seed=2)[0] for text in train.texts]
pipeline = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10))
pipeline.fit(train.texts + drawn, train.labels * 2)

# %% Certificates
results = safer.certify(pipeline, test.texts, test.labels, lexicon, ids=test.ids)
print(results)

# %% The same with a kernel that costs nothing at any radius
everything = safer.certify(pipeline, test.texts, test.labels, lexicon.with_kernel("component"))
name, part, whole = everything.summary.headline
print(f"kernel component: {part} of {whole} texts {name}, whatever words are exchanged")

# %% One text: what was asked, and what follows
record = max(results, key=lambda k: k.slots)
text = test.texts[test.ids.index(record.id)]
print(f"{record.slots} of {record.words} words may change; votes {dict(record.counts)}; certified radius {record.radius}")
for other in safer.draws(lexicon, text, 2):
    print("  drawn:", other[:100])

# %% The classifier to deploy: it answers with the vote over draws
smoothed = safer.Smoothed(pipeline, lexicon)
for text in ("A wonderful, moving film with a clever plot.", "The phone arrived broken and the battery is awful."):
    answer = smoothed.predict([text])[0]
    print(f"{answer.label or 'no answer'}  at least {math.floor(1000 * answer.confidence) / 1000:.3f} of the vote, certified radius {answer.radius}: {text}")

# %% Pictures
try:
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    print("no plots: matplotlib is not here")
    sys.exit()

figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4))
for name, run in (("topk:5", results), ("component", everything)):
    shares = run.summary.certified_at
    errors = [[share - run.summary.intervals[r][0] for r, share in shares.items()],
              [run.summary.intervals[r][1] - share for r, share in shares.items()]]
    left.errorbar([str(r) for r in shares], list(shares.values()), yerr=errors, marker="o", capsize=3, label=name)
left.axhline(results.summary.clean_accuracy or 0, color="grey", linestyle=":", label="clean accuracy")
left.set(xlabel="words changed", ylabel="certified accuracy", ylim=(0, 1.02))
left.legend(loc="lower left")
share = {True: [], False: []}
for k in results:
    votes = sum(k.counts.values())
    share[k.certified].append((k.counts[k.target] / votes if votes else 0, k.queries))
for certified, name in ((True, "certified"), (False, "not certified")):
    right.scatter(*zip(*share[certified]), s=8, label=name) if share[certified] else None
right.set(xlabel="share of draws that have the label", ylabel="queries", yscale="log")
right.legend(loc="upper left")
figure.tight_layout()
for kind in ("svg", "png"):
    figure.savefig(out / f"certified.{kind}")
print("wrote", out / "certified.svg", "and", out / "certified.png")
