"""Labels for texts that have none: a model's answers, to train another one from."""
from __future__ import annotations

import math
from ctypes import byref, c_int
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence

from . import _structs as c
from ._answers import Classes
from ._data import Data, Texts, as_list, encode_texts, make_data, rows_of
from ._errors import InvalidError
from ._guard import Guard, ProgressOption
from ._library import call, default_options
from ._model import Model, Predict, as_model
from ._parts import class_names_of

CALL = 256  # texts of a call of a function, at most


@dataclass(frozen=True)
class Labelling:
    """How a model labelled texts."""

    texts: int  #: that it was asked about
    none: int  #: of these, without an answer
    kept: int
    known: int  #: answered texts that came with a label of the model's
    agreed: int  #: of these, answered with that label
    kept_known: int  #: the same of the texts that are kept
    kept_agreed: int
    #: Of the kept texts: the logarithm of how many times the first class is as probable as the second; None: without bound,
    #: as where a model gives no scores.
    least_lead: Optional[float]
    by_difference: bool  #: the scores of a program or service are no probabilities, and a lead is their difference
    seconds: float


def label(predict: Predict, texts: Texts, labels: Optional[Sequence[Any]] = None, *, keep: float = 1.0,
          classes: Optional[Sequence[Any]] = None, batch: Optional[int] = None, ids: Optional[Sequence[Any]] = None,
          threads: int = 0, progress: ProgressOption = None) -> Data:
    """Texts with what a model says of them as their labels, as `safer label` writes them: a model that can be certified
    learns from these too (docs/train.md). How it went is in the result's `labelling`.

    >>> more = safer.label(model, ["A wonderful film.", "A dull film."])
    >>> more.labels
    ['1', '0']

    `predict` is whatever :func:`certify` takes. It is asked about every text once, as it is written. Texts without an
    answer are left out.

    :param texts: texts, or :class:`safer_nlp.Data` or a table
    :param labels: what is known already: it is compared, and not used otherwise
    :param keep: only this share of the answered texts, those whose first class leads the second by most; below 1 it
        needs a :class:`safer_nlp.Model` that gives scores: a function gives labels alone
    :param classes: names of a function's classes, in the order of its scores, as for :func:`certify`
    :param batch: texts that a thread asks about at once, or of a call of a function, at most
    :param ids: names of the texts; default: their numbers from 1
    :param threads: for a :class:`safer_nlp.Model`; 0: all cores
    """
    if batch is not None and batch < 1:
        raise InvalidError(f"batch: {batch} (at least 1)")
    if not 0 <= threads < 2**31:
        raise InvalidError(f"threads: {threads}")
    listed, labels, ids = rows_of(texts, labels, ids)
    listed = as_list(listed, "texts")
    encoded, given = encode_texts(listed), None if labels is None else as_list(labels, "labels")
    id_list = None if ids is None else [str(id_) for id_ in as_list(ids, "ids")]
    model = as_model(predict, classes, _label_names(encoded, given), batch=batch or CALL, cache=False, random=False, declared=False)
    try:
        o, summary = default_options("label", c.LabelOptions), c.LabelSummary()
        o.keep, o.threads = keep, threads
        o.batch = batch or (0 if isinstance(model, Model) else CALL)
        found = (c_int * max(1, len(encoded)))()
        with make_data(encoded, _known(given, model.classes), id_list) as data, model.asking():
            with Guard(progress) as guard:
                o.progress = guard.progress
                call("safer_label", byref(summary), found, model._pointer, data._pointer, byref(o))
            guard.check()
        return _kept(listed, id_list, found, model.classes.names, summary)
    finally:
        if model is not predict:
            model.close()


def _label_names(texts: List[bytes], labels: Optional[List[Any]]) -> List[str]:
    """The labels that there are, in the library's order: a function's classes, where nothing else names them."""
    if labels is None:
        return []
    with make_data(texts, class_names_of(labels, None), None) as data:
        return data.label_names()


def _known(labels: Optional[List[Any]], classes: Classes) -> Optional[List[Optional[str]]]:
    """Labels as the model calls them; None for those that it does not know."""
    if labels is None:
        return None
    numbers = [classes.find(label) for label in labels]
    return [None if number is None else classes.names[number] for number in numbers]


def _kept(texts: List[str], ids: Optional[List[str]], found: Any, names: List[str], summary: c.LabelSummary) -> Data:
    kept = [index for index in range(len(texts)) if found[index] >= 0]
    data = Data([texts[index] for index in kept], [names[found[index]] for index in kept],
                [str(index + 1) if ids is None else ids[index] for index in kept])
    figures = {name: getattr(summary, name) for name, *_ in c.LabelSummary._fields_}
    if math.isinf(summary.least_lead):
        figures["least_lead"] = None
    figures["by_difference"] = bool(summary.by_difference)
    data.labelling = Labelling(**figures)
    return data
