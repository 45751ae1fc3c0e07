"""Certifying texts, answering as the smoothed classifier, and checking runs."""
from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
from ctypes import byref, c_int, c_void_p
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _structs as c
from ._answers import Classes
from ._data import Texts, as_list, encode, encode_texts, make_data, rows_of
from ._errors import Error, InvalidError
from ._guard import Guard, ProgressOption
from ._lexicon import Lexicon
from ._library import call, choice, deletion_of, library, path_bytes
from ._model import FunctionModel, Model, Predict, as_model, check_name, is_remote
from ._parts import (certify_options, class_names_of, classes_of, draws_at_once, header_of, need_lexicon, prepare, scratch_file, shard_numbers,
                     summary_of, traffic_of)
from ._results import ASSUMES, Prediction, Radius, Results, Verification, checking, counting, radius_from_c, verification


def certify(predict: Predict, texts: Texts, labels: Optional[Sequence[Any]] = None, lexicon: Optional[Lexicon] = None, *,
            n: int = 5000, n0: Optional[int] = None, delta: float = 0.01, alpha: float = 0.001, method: str = "adaptive",
            radius: Radius = "all", seed: int = 1, batch: int = 256, classes: Optional[Sequence[Any]] = None,
            random: bool = False, function: bool = False, cache: bool = False, progress: ProgressOption = None,
            output: "Union[str, os.PathLike[str], None]" = None, resume: bool = False, unlabelled: bool = False,
            family_wise: bool = False, ids: Optional[Sequence[Any]] = None, model_name: Optional[str] = None,
            threads: int = 0, shard: Union[str, Tuple[int, int], None] = None, delete: Union[float, str] = 0.0, edits: int = 1,
            edit_kind: str = "any", groups: Optional[int] = None) -> Results:
    """Certifies a classifier: for every text, whether any exchange of words for their synonyms
    could change what the smoothed classifier says.

    `predict` is a function that takes a list of at most `batch` texts, drawn from many reviews, and returns their labels
    (None: no answer) or a row of scores for each; an object with such a method named predict,
    as a scikit-learn pipeline; a HuggingFace pipeline; a pair of a PyTorch module and its tokenizer; or a
    :class:`safer_nlp.Model`. Its answer
    should be a function of the text alone, which is tested on a share of the texts, and on every
    text behind an exact certificate; such a certificate assumes it. For a model
    that answers at random say `random=True`: then nothing is claimed without sampling.

    :param texts: what to certify: texts, or a :class:`safer_nlp.Data`, which has its labels and ids with it
    :param labels: their true labels; where a label, or all of them, is None, the prediction is certified
    :param lexicon: the synonyms
    :param n: draws of a certificate, at most
    :param n0: separate draws that choose the prediction, at most; None: as many as n
    :param delta: the chance that a text that could be attacked gets a certificate is at most delta; it is not the chance
        that a given certificate is wrong
    :param alpha: the probability of a prediction that does not win among all draws is at most alpha; what is not
        clear at this level abstains
    :param method: "adaptive", "binomial" or "hoeffding"; for a :class:`safer_nlp.Model` of architecture
        bow or cnn, or a sum, also "ibp": interval bounds of the model itself, without smoothing or draws
    :param radius: what `certified` refers to: a number of changed words, or "all"
    :param seed: of the draws
    :param classes: names of the model's classes, in the order of its scores; default: those of a
        scikit-learn model, else the labels, numbers by value first, then words
    :param function: declares that the answer is a function of the text alone; another answer for the same text is an error
    :param cache: ask identical texts once; needs `function=True`
    :param progress: True: a bar on stderr, or tqdm in a notebook; None: when it can be seen; a function of (stage,
        done, total) that returns something true to cancel
    :param output: a file for the records (JSON Lines), as `safer certify -o` writes; needs `model_name`
    :param resume: continue that file
    :param unlabelled: certify the prediction, not the label
    :param family_wise: delta is shared by all texts
    :param ids: names of the texts; default: their numbers from 1
    :param model_name: what records call the model. `resume` and `verify` refuse a run of another name, or of a model
        that answers a fixed set of texts in another way
    :param threads: for a safer_nlp.Model; 0: all cores. A function is called by the calling thread only
    :param shard: only a part of the texts: (K, N) or "K/N", of every N texts the K-th, from 1; "auto" and "auto/N": as
        `safer certify --shard` takes them from Slurm or Kubernetes. All machines get all texts; :func:`merge` puts
        their outputs together
    :param delete: draws delete every word, number and mark with this chance, or by length: "keep:25" keeps 25 of 256
                   on average, and 50 of 1,024; then `certified` refers to edits as well
    :param groups: no draws: every word, number and mark is in one of so many groups, each group votes, and the certificate is exact;
                   `seed` is then the key of the hash that sends words to groups. For models that are dear to ask
    :param edits: with `delete` or `groups`: words, numbers and marks that may be edited besides, at most
    :param edit_kind: what an edit may be: "any", "replace", "insert" or "delete"

    Exceptions of `predict` are passed on unchanged. Ctrl-C stops between two texts, or inside
    `predict` at once; an `output` can be resumed.
    """
    lexicon = need_lexicon(lexicon)
    listed, labels, ids = rows_of(texts, labels, ids)
    o = certify_options(n=n, n0=n0, delta=delta, alpha=alpha, method=method, radius=radius, seed=seed, threads=threads, delete=delete,
                 edits=edits, edit_kind=edit_kind, groups=groups)
    o.unlabelled, o.family_wise = unlabelled, family_wise
    o.shard, o.shards = shard_numbers(shard)
    if resume and output is None:
        raise InvalidError("resume: there is no output to continue")
    with contextlib.nullcontext(os.fspath(output)) if output is not None else scratch_file() as path:
        model, data = prepare(predict, listed, labels, ids, classes, batch=batch, cache=cache, random=random, declared=function,
                               model_name=model_name)
        try:
            if output is not None:
                check_name(model, "to write records")
            o.batch = draws_at_once(model, batch)
            with counting() as summary, data, model.asking():
                with Guard(progress) as guard:
                    o.progress = guard.progress
                    call("safer_certify", byref(summary), path_bytes(path), resume, model._pointer, lexicon._pointer, data._pointer, byref(o))
                guard.check()
                with open(path, encoding="utf-8") as file:
                    return Results(file, summary_of(summary, model), not is_remote(model) or model.model_name is not None,
                                   None if shard is not None else as_list(listed, "texts"), lexicon)
        finally:
            if model is not predict:
                model.close()


def merge(output: "Union[str, os.PathLike[str]]", parts: "Sequence[Union[str, os.PathLike[str]]]", *, progress: ProgressOption = None) -> int:
    """Puts the outputs of :func:`certify` with `shard` together, in any order: `output` gets the very bytes that one run
    would have written, but for the seconds and the date. That the parts are of one run, that none is missing, given
    twice or unfinished, and every seal is checked. Returns the number of records."""
    names = [path_bytes(part) for part in parts]
    records = ctypes.c_size_t()
    with Guard(progress) as guard:
        call("safer_merge", byref(records), path_bytes(output), (ctypes.c_char_p * len(names))(*names), len(names), byref(guard.progress))
    guard.check()
    return records.value


def verify(path: "Union[str, os.PathLike[str]]", predict: Optional[Predict] = None, texts: Optional[Texts] = None,
           labels: Optional[Sequence[Any]] = None, lexicon: Optional[Lexicon] = None, *, ids: Optional[Sequence[Any]] = None,
           batch: int = 256, function: bool = False, cache: bool = False, model_name: Optional[str] = None,
           progress: ProgressOption = None, threads: int = 0) -> Verification:
    """Recomputes every decision of a run from its records. With `texts`, `labels` and `lexicon` as in
    :func:`certify` also what the records say of the texts: words, slots, q and the totals of exact certificates.
    With `predict` too, and the run's `model_name`, all draws are made and asked again. The first record that
    does not hold raises an InputError that names its line; what was not checked is in the result."""
    listed, labels, ids = rows_of(texts, labels, ids)
    if predict is None:
        return _verify_texts(path, listed, labels, lexicon, ids, progress, threads)
    if texts is None:
        raise InvalidError("texts: needed to ask the model again")
    lexicon = need_lexicon(lexicon)
    model, data = prepare(predict, listed, labels, ids, None if isinstance(predict, Model) else classes_of(path), batch=batch, cache=cache,
                           random=False, declared=function, model_name=model_name)
    try:
        if header_of(path).get("format") != 1:  # which has no names
            check_name(model, "to be compared with that of the run")
        with checking() as found, data, model.asking():
            with Guard(progress) as guard:
                call("safer_verify", byref(found), path_bytes(path), model._pointer, lexicon._pointer, data._pointer, threads,
                     byref(guard.progress))
            guard.check()
            return verification(found, *traffic_of(model))
    finally:
        if model is not predict:
            model.close()


def _verify_texts(path: "Union[str, os.PathLike[str]]", texts: Optional[Sequence[str]], labels: Optional[Sequence[Any]],
                  lexicon: Optional[Lexicon], ids: Optional[Sequence[Any]], progress: ProgressOption, threads: int) -> Verification:
    """Without the model: the records by themselves or, where they are given, with the texts and the lexicon."""
    if (texts is None) != (lexicon is None):
        raise InvalidError("texts and lexicon: both or none are needed to check the texts")
    rows = None
    if texts is not None:
        names = class_names_of(None if labels is None else as_list(labels, "labels"), Classes(classes_of(path) or []))
        rows = make_data(encode_texts(texts), names, None if ids is None else as_list(ids, "ids"))
    try:
        with checking() as found:
            with Guard(progress) as guard:
                call("safer_verify", byref(found), path_bytes(path), None, None if lexicon is None else lexicon._pointer,
                     None if rows is None else rows._pointer, threads, byref(guard.progress))
            guard.check()
            return verification(found)
    finally:
        if rows is not None:
            rows.close()


def draws(lexicon: Lexicon, text: str, count: int = 10, *, first: int = 0, stage: str = "certification", seed: int = 1, delete: Union[float, str] = 0.0) -> List[str]:
    """The draws of a text that a certificate with this seed asks about, from number `first` on.
    `stage` is "certification", or "selection" for those that choose the prediction. `delete` is that of :func:`certify`."""
    number = choice("stage", stage)
    if count < 0 or first < 0 or seed < 0:
        raise InvalidError("count, first and seed must not be negative")
    found: List[str] = []
    encoded = encode(text, "text")

    def add(address: Optional[int], length: int) -> None:
        found.append(ctypes.string_at(address, length).decode() if address and length else "")

    with Guard() as guard:
        each = c.DRAW(lambda context, index, address, length: guard.run(add, address, length))
        call("safer_draw_deleting", lexicon._pointer, encoded, len(encoded), deletion_of(delete), number, seed, first, count, each, None)
    guard.check()
    if len(found) != count:
        raise Error(f"{len(found)} draws came of {count}")
    return found


class Smoothed:
    """The smoothed classifier: asks `predict` about random draws of a text, and answers with
    their vote, a confidence and a certified radius.

    Options are those of :func:`certify`. Each call of :meth:`predict` takes a fresh seed from
    the system unless `seed` is given: an attacker who knows the seed could search for texts on
    which the sample happens to err. Where `groups` vote nothing is drawn, and the seed is 1 unless given. Any number of threads may use one; with a function of
    Python they take turns.

    >>> smoothed = safer.Smoothed(pipeline, lexicon)
    >>> answer, = smoothed.predict(["A wonderful film."])
    >>> answer.label, answer.confidence, answer.radius
    ('1', ..., 'all')
    """

    def __init__(self, predict: Predict, lexicon: Lexicon, *, classes: Optional[Sequence[Any]] = None, n: int = 5000,
                 n0: Optional[int] = None, delta: float = 0.01, alpha: float = 0.001, method: str = "adaptive", radius: Radius = "all",
                 seed: Optional[int] = None, batch: int = 256, random: bool = False, function: bool = False, cache: bool = False,
                 threads: int = 0, delete: Union[float, str] = 0.0, edits: int = 1, edit_kind: str = "any",
                 groups: Optional[int] = None) -> None:
        self.lexicon = need_lexicon(lexicon)
        self._options: Dict[str, Any] = dict(n=n, n0=n0, delta=delta, alpha=alpha, method=method, radius=radius, threads=threads, delete=delete,
                                             edits=edits, edit_kind=edit_kind, groups=groups)
        self._seed = 1 if seed is None and groups is not None else seed  # the classifier depends on it
        self._model = as_model(predict, classes, [], batch=batch, cache=cache, random=random, declared=function)
        self._batch = draws_at_once(self._model, batch)
        certify_options(seed=seed or 0, **self._options)  # refuses what is impossible now

    @property
    def classes(self) -> Tuple[str, ...]:
        return self._model.labels

    def predict(self, texts: Sequence[str]) -> List[Prediction]:
        """The answer for each text."""
        seed = secrets.randbits(63) if self._seed is None else self._seed
        o = certify_options(seed=seed, **self._options)
        o.batch = self._batch
        if isinstance(self._model, FunctionModel):
            o.threads = 1  # the function is called by this thread
        encoded = encode_texts(texts)
        certificate, workspace = c.Certificate(), c_void_p()
        found = []
        try:
            with self._model.asking():
                with Guard() as guard:
                    for text in encoded:
                        call("safer_certify_text", byref(certificate), byref(workspace), self._model._pointer, self.lexicon._pointer,
                             text, len(text), c_int(-1), byref(o))
                        guard.check()
                        found.append(self._prediction(certificate, seed))
                guard.check()
        finally:
            library.safer_workspace_free(workspace)
        return found

    def __call__(self, texts: Sequence[str]) -> List[Optional[str]]:
        """The labels alone; None for an abstention."""
        return [answer.label for answer in self.predict(texts)]

    def _prediction(self, k: c.Certificate, seed: int) -> Prediction:
        names = self._model.classes.names
        vote = names[k.prediction] if k.prediction >= 0 else None
        label = None if k.abstained else vote
        return Prediction(label, vote, k.bound, bool(k.certified) and label is not None,
                          0 if label is None else radius_from_c(k.radius), dict(zip(names, k.shares[:len(names)])), bool(k.exact),
                          ASSUMES if k.exact and is_remote(self._model) else (), k.words, k.slots, k.queries, k.seconds, seed,
                          (0 if label is None else k.edits) if k.deletion or k.groups else None)

    def __repr__(self) -> str:
        return f"<safer_nlp.Smoothed, classes {self._model.classes.describe()}, {self.lexicon!r}>"
