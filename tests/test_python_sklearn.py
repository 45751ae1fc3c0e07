#!/usr/bin/env python3
"""The estimator of scikit-learn: test_python_sklearn.py [TEST...] BUILD_DIR. Run by ctest.

scikit-learn's own checks are for tables of numbers. They are run on a subclass that writes every row of numbers as a text,
one word per column, so that they reach fit, predict and everything that an estimator promises; nothing is left out of them.
"""
import pickle
import sys
import unittest

sys.dont_write_bytecode = True
import test_cli  # noqa: E402
import test_python as base  # noqa: E402
from test_python import python_with, script, temporary  # noqa: E402

safer = None


def prepare():
    global safer
    base.prepare(Estimator)
    safer = base.safer


HEAD = """
import sys, unittest, warnings
warnings.simplefilter("error", FutureWarning)
import numpy, safer_nlp as safer
from safer_nlp.sklearn import SmoothedClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
train, test = safer.load_data("demo/train.tsv", limit=300), safer.load_data("demo/test.tsv")
lexicon = safer.Lexicon.load("demo.lex")
"""

CHECKS = HEAD + """
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

class Numbers(SmoothedClassifier):
    def words(self, X):
        cut = [numpy.searchsorted(cuts, column) for cuts, column in zip(self.cuts_, X.T)]
        letters = "abcdefghijklmnopqrstuvwxyz"
        return [" ".join("w" + letters[k // 26 % 26] + letters[k % 26] + letters[place] for k, place in enumerate(row)) for row in zip(*cut)]

    def fit(self, X, y):
        X, y = self._validate_data(X, y)
        self.cuts_ = [numpy.quantile(column, numpy.linspace(0.05, 0.95, 19)) for column in X.T]
        return super().fit(self.words(X), y)

    def predict(self, X):
        check_is_fitted(self)
        return super().predict(self.words(self._validate_data(X, reset=False)))

    def _more_tags(self):
        return {"X_types": ["2darray"]}

checked = []
words = make_pipeline(CountVectorizer(token_pattern=r"\\S+"), LogisticRegression())
for estimator, check in check_estimator(Numbers(words, lexicon, n=50), generate_only=True):
    try:
        check(estimator)
    except unittest.SkipTest as reason:  # what a check itself needs, as pandas, may not be here
        assert "is not installed" in str(reason), reason
    checked.append(check)
print(len(checked))
"""

USES = HEAD + """
import copy, joblib, pickle
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
classifier = SmoothedClassifier(lexicon=lexicon, n=200)
assert classifier.fit(train.texts, train.labels) is classifier
assert classifier.classes_.tolist() == ["0", "1"]
results = classifier.certify(test.texts, test.labels)
answers = classifier.predict(numpy.array(test.texts, object))
assert answers.tolist() == [k.prediction for k in results]
assert classifier.score(test.texts, test.labels) == numpy.mean(answers == numpy.array(test.labels)) > 0.6
assert results.summary.smoothed_accuracy is not None and results.texts == test.texts
unlabelled = classifier.certify(test.texts[:5])
assert [k.target for k in unlabelled] == [k.prediction for k in unlabelled]

again = pickle.loads(pickle.dumps(classifier))
assert again.lexicon_.sha256 == lexicon.sha256 and again.lexicon_.name == "demo.lex" and again.lexicon is again.lexicon_
assert again.predict(test.texts).tolist() == answers.tolist()
fresh = clone(classifier)
assert fresh.lexicon is lexicon and not hasattr(fresh, "estimator_") and copy.deepcopy(lexicon) is lexicon
joblib.dump(classifier, "c.joblib")
assert joblib.load("c.joblib").predict(test.texts).tolist() == answers.tolist()

numbers = [int(label) * 10 for label in train.labels]
pipeline = Pipeline([("smoothed", SmoothedClassifier(make_pipeline(CountVectorizer(), LogisticRegression()), "demo.lex", n=50))])
pipeline.fit(train.texts, numbers)
assert set(pipeline.predict(test.texts).tolist()) == {0, 10}
search = GridSearchCV(SmoothedClassifier(make_pipeline(CountVectorizer(), LogisticRegression()), lexicon, n=50),
                      {"augment": [0, 2], "estimator__logisticregression__C": [0.1, 1.0]}, cv=2, n_jobs=2, error_score="raise")
search.fit(train.texts[:100], numbers[:100])
assert set(search.best_params_) == {"augment", "estimator__logisticregression__C"} and len(search.cv_results_["params"]) == 4
assert cross_val_score(SmoothedClassifier(lexicon=lexicon, n=50), train.texts[:100], train.labels[:100], cv=2).min() > 0.3


plain, drawn = (SmoothedClassifier(make_pipeline(CountVectorizer(), LogisticRegression()), lexicon, augment=k).fit(train.texts, train.labels) for k in (0, 1))
words = [len(k.estimator_[0].vocabulary_) for k in (plain, drawn)]
assert words[1] > words[0], words  # synonyms that no text has
secret = SmoothedClassifier(lexicon=lexicon, n=50, seed=None).fit(train.texts, train.labels)
assert len({secret.certify(test.texts[:2]).config["seed"] for _ in range(3)}) == 3

def refused(words, function):
    try:
        function()
    except safer.Error as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
refused("lexicon: a safer_nlp.Lexicon is needed, not None", lambda: SmoothedClassifier().fit(["a", "b"], [0, 1]))
refused("X: a list of texts is needed", lambda: classifier.fit([["a"], ["b"]] and numpy.array([["a"], ["b"]]), [0, 1]))
refused("X[1]: a str is needed, not an int", lambda: classifier.fit(["a", 7], [0, 1]))
refused("y: all texts are of one class", lambda: classifier.fit(["a", "b"], [1, 1]))
refused("y: 1 for 2 texts", lambda: classifier.fit(["a", "b"], [1]))
refused("augment: -1", lambda: clone(classifier).set_params(augment=-1).fit(["a", "b"], [0, 1]))
print("good")
"""


class Estimator(unittest.TestCase):
    def test_checks(self):
        """scikit-learn's own checks pass, all of them"""
        done = script(python_with("sklearn"), CHECKS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr[-3000:])
        self.assertGreater(int(done.stdout.split()[-1]), 35)

    def test_uses(self):
        """fit, predict, score, certify; clone, pickle, joblib, Pipeline, GridSearchCV with processes; what is refused"""
        done = script(python_with("sklearn"), USES)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "good"), done.stderr[-3000:])

    def test_pickled_lexicon(self):
        """a lexicon is pickled as its file, checked when it is read back, and never changes by being copied"""
        again = pickle.loads(pickle.dumps(base.component))
        self.assertEqual((again.sha256, again.name, list(again)), (base.component.sha256, "memory", list(base.component)))
        image = pickle.dumps(base.component)
        at = image.index(b"SAFERLEX") + 200
        with self.assertRaises(safer.InputError):
            pickle.loads(image[:at] + bytes([image[at] ^ 1]) + image[at + 1:])
        self.assertEqual(pickle.loads(pickle.dumps(safer.Lexicon.load(temporary("demo.lex")))).name, "demo.lex")

    def test_without(self):
        """without scikit-learn the package works, and only this module does not"""
        done = script(sys.executable, "import sys\nsys.modules['sklearn'] = None\nimport safer_nlp\nprint(safer_nlp.__version__)\n"
                      "try:\n    import safer_nlp.sklearn\nexcept ImportError as error:\n    print('no', error.name or error)\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no ", done.stdout)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], prepare)
