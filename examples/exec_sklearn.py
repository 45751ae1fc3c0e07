#!/usr/bin/env python3
"""A scikit-learn classifier that `safer` can ask: TF-IDF and logistic regression.

    exec_sklearn.py train DATA.tsv MODEL.pkl     DATA: id <TAB> label <TAB> text; .xz and .gz too
    exec_sklearn.py serve MODEL.pkl

    safer certify --model 'exec:python3 exec_sklearn.py serve MODEL.pkl' --labels 0,1 \\
                  --lexicon L --data D --model-name NAME -o OUT.jsonl

`serve` reads requests from standard input, one JSON object per line, and answers each with a
line: {"id":7,"texts":["a fine film","dull"]} -> {"id":7,"labels":["1","0"]}. To serve a model
of your own, change `predict` and leave the rest. Nothing but answers may go to standard
output; messages and warnings belong on standard error, and safer shows them when this
program fails.
"""
import gzip
import json
import lzma
import pickle
import re
import sys


def read_tsv(path):
    """Labels and texts. A tab, newline or backslash in a text is written \\t, \\n, \\\\."""
    escapes = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}
    opener = {".xz": lzma.open, ".gz": gzip.open}.get(path[-3:], open)
    labels, texts = [], []
    with opener(path, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            _, label, text = line.rstrip("\n").split("\t")
            labels.append(label)
            texts.append(re.sub(r"\\([tnr\\])", lambda match: escapes[match[1]], text))
    return labels, texts


def train(data, path):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    labels, texts = read_tsv(data)
    model = make_pipeline(TfidfVectorizer(min_df=2, sublinear_tf=True), LogisticRegression(C=10, max_iter=1000))
    model.fit(texts, labels)
    with open(path, "wb") as file:
        pickle.dump(model, file)
    print(f"{len(texts)} texts, accuracy on them {model.score(texts, labels):.3f}", file=sys.stderr)


def serve(path):
    with open(path, "rb") as file:
        model = pickle.load(file)  # a pickle is a program: open only those you trust

    def predict(texts):
        return model.predict(texts).tolist()

    for line in sys.stdin.buffer:
        request = json.loads(line)
        reply = {"id": request["id"], "labels": predict(request["texts"])}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "train":
        train(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 3 and sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        sys.exit(__doc__)
