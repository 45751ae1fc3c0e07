"""The smoothed classifier as an estimator of scikit-learn. Needs scikit-learn; `import safer_nlp` does not.

>>> from safer_nlp.sklearn import SmoothedClassifier
>>> classifier = SmoothedClassifier(lexicon="demo.lex", n=500).fit(texts, labels)
>>> classifier.predict(["A wonderful film."])[0]
'1'
>>> classifier.certify(test_texts, test_labels).summary.texts
40
"""
from __future__ import annotations

import importlib
import os
import secrets
from typing import Any, Dict, List, Optional, Union

from ._answers import is_missing, kind, label_name
from ._certify import certify, draws
from ._data import as_list
from ._errors import InvalidError
from ._guard import ProgressOption
from ._lexicon import Lexicon
from ._parts import need_lexicon
from ._results import Radius, Results

__all__ = ["SmoothedClassifier"]

numpy: Any = importlib.import_module("numpy")
_base: Any = importlib.import_module("sklearn.base")
_multiclass: Any = importlib.import_module("sklearn.utils.multiclass")
_validation: Any = importlib.import_module("sklearn.utils.validation")


def _default_estimator() -> Any:
    vectorizer = importlib.import_module("sklearn.feature_extraction.text").TfidfVectorizer(ngram_range=(1, 2))
    regression = importlib.import_module("sklearn.linear_model").LogisticRegression(max_iter=1000)
    return importlib.import_module("sklearn.pipeline").make_pipeline(vectorizer, regression)


class SmoothedClassifier(_base.ClassifierMixin, _base.BaseEstimator):  # type: ignore[misc]
    """A classifier of texts that answers with the vote of `estimator` over texts with exchanged synonyms, and can certify
    its answers. It works in a Pipeline and in GridSearchCV, and can be cloned and pickled when its estimator can.

    :param estimator: any classifier of texts that scikit-learn can clone; None: TF-IDF of words and pairs of words, and
        logistic regression
    :param lexicon: a :class:`safer_nlp.Lexicon`, or the name of a .lex file
    :param augment: draws of every text that the estimator is fitted on beside the text itself: it will be asked about draws
    :param n: draws of a vote and of a certificate, at most, as in :func:`safer_nlp.certify`; so are `n0`, `delta`, `alpha`,
        `method`, `radius` and `batch`
    :param seed: of all draws. An attacker who knows it could search for texts on which the sample happens to err: None takes
        a fresh one for every call of `predict`, whose answers may then differ in nearly even cases

    `predict` gives the leading class of the vote, clear or not; :meth:`certify` says whether it was, and how many words may
    change. `classes_` are the labels of `fit`, `estimator_` and `lexicon_` what is used.
    """

    def __init__(self, estimator: Any = None, lexicon: "Union[Lexicon, str, os.PathLike[str], None]" = None, *, augment: int = 1,
                 n: int = 1000, n0: Optional[int] = None, delta: float = 0.01, alpha: float = 0.001, method: str = "adaptive",
                 radius: Radius = "all", batch: int = 256, seed: Optional[int] = 1) -> None:
        self.estimator = estimator
        self.lexicon = lexicon
        self.augment = augment
        self.n = n
        self.n0 = n0
        self.delta = delta
        self.alpha = alpha
        self.method = method
        self.radius = radius
        self.batch = batch
        self.seed = seed

    def fit(self, X: Any, y: Any) -> "SmoothedClassifier":
        """Fits the estimator on texts and draws of them."""
        if y is None:
            raise InvalidError("requires y to be passed, but the target y is None")
        texts, labels = _texts(X), numpy.asarray(y)
        _multiclass.check_classification_targets(labels)
        if len(labels) != len(texts):
            raise InvalidError(f"y: {len(labels):,} for {len(texts):,} texts")
        if self.augment < 0:
            raise InvalidError(f"augment: {self.augment}")
        classes = _multiclass.unique_labels(labels)
        if len(classes) < 2:
            raise InvalidError("y: all texts are of one class; at least two are needed")
        opened = Lexicon.load(self.lexicon) if isinstance(self.lexicon, (str, os.PathLike)) else need_lexicon(self.lexicon)
        seed = 2 if self.seed is None else self.seed + 1  # other draws than those that are asked
        drawn = [draws(opened, text, self.augment, seed=seed) for text in texts]
        asked = texts + [found[k] for k in range(self.augment) for found in drawn]
        base = _default_estimator() if self.estimator is None else _base.clone(self.estimator)
        self.estimator_ = base.fit(asked, numpy.concatenate([labels] * (1 + self.augment)))
        self.classes_, self.lexicon_ = classes, opened
        return self

    def predict(self, X: Any) -> Any:
        """The leading class of the vote for each text; the estimator is asked in full batches."""
        _validation.check_is_fitted(self)
        places = {name: k for k, name in enumerate(self._names())}
        return self.classes_[[places[record.prediction or ""] for record in self.certify(X, progress=False)]]

    def certify(self, X: Any, y: Any = None, *, progress: ProgressOption = None, **options: Any) -> Results:
        """Certificates of texts for their labels or, without `y`, for the answers, as :func:`safer_nlp.certify`, whose other
        options (`output`, `model_name`, `ids`, ...) may be given. Labels in them are names."""
        _validation.check_is_fitted(self)
        labels = None if y is None else [None if is_missing(label) else label_name(label) for label in as_list(y, "y")]
        own: Dict[str, Any] = dict(n=self.n, n0=self.n0, delta=self.delta, alpha=self.alpha, method=self.method, radius=self.radius, batch=self.batch,
                   seed=secrets.randbits(63) if self.seed is None else self.seed)
        return certify(self._scores, _texts(X), labels, self.lexicon_, classes=self._names(), progress=progress, **{**own, **options})

    # ---- parts

    def _scores(self, texts: List[str]) -> Any:
        """The estimator's answers as rows of zeros with a one."""
        return numpy.eye(len(self.classes_))[numpy.searchsorted(self.classes_, self.estimator_.predict(texts))]

    def _names(self) -> List[str]:
        return [label_name(label) for label in self.classes_]

    def _more_tags(self) -> Dict[str, Any]:
        return {"X_types": ["string"], "requires_y": True}

    def __sklearn_tags__(self) -> Any:  # from version 1.6 on
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array, tags.target_tags.required = True, False, True
        return tags


def _texts(X: Any) -> List[str]:
    if isinstance(X, str) or getattr(X, "ndim", 1) != 1:
        raise InvalidError("X: a list of texts is needed; of a table choose one column")
    texts = as_list(X, "X")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidError(f"X[{index}]: a str is needed, not {kind(text)}")
    return texts
