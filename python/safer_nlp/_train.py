"""Training of models on draws of texts, or by bounds."""
from __future__ import annotations

import os
from ctypes import Structure, byref
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _structs as c
from ._answers import is_missing, label_name
from ._data import Data, DataHandle, Texts, as_list, encode_texts, make_data, rows_of
from ._errors import InputError, InvalidError
from ._guard import Guard, ProgressOption
from ._lexicon import Lexicon, choice_dict
from ._library import call, choice, default_options, deletion_of, optional_bytes, path_bytes, string_array
from ._model import Model

Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Training:
    """How a model was trained."""

    texts: int
    tokens: int  #: read once each, without draws
    parameters: int
    epochs: int
    best_epoch: int  #: the one that is kept
    loss: float  #: mean of the last epoch
    dev_accuracy: float  #: on draws of the dev texts; with a defense, and of context: the share of them that its bounds certify
    seconds: float
    tokens_per_second: float
    arch_choice: Optional[Mapping[str, Any]] = None  #: of "auto": what was tried, or why nothing was


def train(output: Path, texts: Texts, labels: Optional[Sequence[Any]] = None, *, arch: str = "auto",
          dev: Union[Data, Tuple[Sequence[str], Sequence[Any]], None] = None, lexicon: Optional[Lexicon] = None,
          seed: int = 1, threads: int = 0, resume: bool = False, device: Optional[str] = None, delete: Union[float, str] = 0.0,
          groups: Optional[int] = None, seeds: int = 1,
          dropout: Optional[float] = None, rate: Optional[float] = None, decay: Optional[float] = None, clip: Optional[float] = None,
          warmup: Optional[float] = None, batch: Optional[int] = None, epochs: Optional[int] = None, patience: Optional[int] = None,
          pool: Optional[str] = None, precision: Optional[str] = None, ngrams: Optional[int] = None, bits: Optional[int] = None,
          vectors: Optional[Path] = None, dim: Optional[int] = None, widths: Optional[str] = None, filters: Optional[int] = None,
          hidden: Optional[int] = None, max_words: Optional[int] = None, min_count: Optional[int] = None, freeze: Optional[bool] = None,
          defense: Optional[str] = None, kappa: Optional[float] = None, ramp: Optional[int] = None, train_vectors: Optional[bool] = None,
          triplet: Optional[float] = None, margin: Optional[float] = None, characters: Optional[int] = None, size: Optional[str] = None,
          encoder: Optional[Path] = None, train_layers: Union[int, str, None] = None, tokens: Optional[int] = None,
          truncation_side: Optional[str] = None, context: Optional[int] = None,
          progress: ProgressOption = None) -> Model:
    """Trains a model, writes it to the file `output`, and opens it; what happened is in its `training`.

    With a `lexicon` the texts are drawn from its kernel, again for every mini-batch: a model that will be asked about
    draws should be trained on draws. The options are those of `safer train` (docs/train.md); None stands for the default.

    :param output: the file, written whole or not at all; beside it, while training, a checkpoint, which `resume` continues
    :param texts: texts, or :class:`safer_nlp.Data` or a table, which have their labels with them
    :param labels: a label for each
    :param arch: "ngram", "bow", "cnn", "charcnn", "bert", "context" or "auto": n-grams, or, with `vectors` and a lexicon, what certifies
        most of "ngram", "bow" and "cnn" in a trial on these texts
    :param dev: texts and labels that choose the epoch; default: every 10th text of each class
    :param seeds: above 1: so many models, with the seeds from `seed` on; `output` is then their sum, a file of JSON, with
        weights found on the dev texts, and the models lie beside it
    :param device: for charcnn and bert, and the encoder of context: one of :func:`safer_nlp.devices`
    :param delete: draws delete words, numbers and marks so often, as in :func:`certify`
    :param groups: a draw keeps one of so many groups of words, other ones in every draw, as in :func:`certify`
    :param defense: of bow and cnn: "ibp-jia", "ibp-huang" or "exact", for certificates of the method "ibp"
    :param encoder: of bert and context: what to start from
    :param train_layers: of bert: how many from the top, or "all"
    :param truncation_side: of bert and context: "left" reads the end of texts with too many pieces, "right" their beginning
    :param context: of context: numbers of a word's context
    """
    o = default_options("train", c.TrainOptions)
    if not 0 <= seed < 2**63:
        raise InvalidError(f"seed: {seed}")
    chooses = arch == "auto"
    o.seed, o.threads, o.resume, o.seeds = seed, threads, resume, seeds
    if not chooses:
        o.arch = choice("arch", arch)
    o.device, o.deletion = optional_bytes(device), deletion_of(delete, groups)
    o.lexicon = None if lexicon is None else lexicon._pointer
    _set(o.course, dropout=dropout, rate=rate, decay=decay, clip=clip, warmup=warmup, batch=batch, epochs=epochs, patience=patience,
         pool=None if pool is None else choice("pool", pool), precision=None if precision is None else choice("precision", precision))
    _set(o.ngram, order=ngrams, bits=bits)
    _set(o.cnn, vectors=vectors, dim=dim, widths=widths, filters=filters, hidden=hidden, max_words=max_words, min_count=min_count,
         freeze=freeze)
    _set(o.defense, kind=None if defense is None else choice("defense", defense), kappa=kappa, ramp=ramp, train_vectors=train_vectors,
         triplet=triplet, margin=margin)
    _set(o.charcnn, characters=characters, size=None if size is None else choice("charcnn_size", size))
    _set(o.bert, encoder=encoder, layers=_layers(train_layers), tokens=tokens,
         truncation_side=None if truncation_side is None else choice("truncation_side", truncation_side))
    _set(o.context, size=context)
    report, found = c.TrainReport(), c.Choice()
    with _labelled("texts", texts, labels) as rows:
        held = None if dev is None else _labelled("dev", *((dev, None) if isinstance(dev, Data) else dev))
        try:
            _same_labels(rows, held)
            o.train, o.dev = rows._pointer, None if held is None else held._pointer
            with Guard(progress) as guard:
                o.progress = guard.progress
                if chooses:
                    call("safer_train_choose", path_bytes(output), byref(o), byref(found), byref(report))
                else:
                    call("safer_train", path_bytes(output), byref(o), byref(report))
            guard.check()
        finally:
            if held is not None:
                held.close()
    model = Model.load(output)
    known: Dict[str, Any] = {name: getattr(report, name) for name, *_ in c.TrainReport._fields_}
    model.training = Training(**known, arch_choice=choice_dict(found, "arch") if chooses else None)
    return model


def _set(part: Structure, **values: Any) -> None:
    """What was given; the rest keeps its default."""
    for name, value in values.items():
        if value is not None:
            setattr(part, name, path_bytes(value) if isinstance(value, (str, os.PathLike)) else value)


def _layers(layers: Union[int, str, None]) -> Optional[int]:
    if layers == "all":
        return -1
    if isinstance(layers, str) or layers is not None and layers < 0:
        raise InvalidError(f"train_layers: {layers!r}; a number of layers or \"all\"")
    return layers


def _labelled(name: str, texts: Any, labels: Any) -> DataHandle:
    """The library's copy of texts that all have a label."""
    listed, given, ids = rows_of(texts, labels, None)
    if given is None:
        raise InvalidError(f"{name}: labels are needed to train")
    names = [None if is_missing(label) else label_name(label) for label in as_list(given, "labels")]
    if None in names:
        raise InputError(f"{name}: text {names.index(None) + 1:,} has no label")
    return make_data(encode_texts(listed), names, ids)


def _same_labels(rows: DataHandle, held: Optional[DataHandle]) -> None:
    """A model has the labels of its training texts, and the library compares numbers of labels."""
    if held is not None and held.label_names() != rows.label_names():
        raise InputError(f"dev: its labels are {', '.join(held.label_names()[:20])}, those of the texts "
                         f"{', '.join(rows.label_names()[:20])}; both must have all of them")


def convert(output: Path, source: Path) -> None:
    """Makes one model file of the checkpoint of an encoder: a folder as HuggingFace has them, or an .onnx file with the
    rest beside it, as `safer model convert` does. Without a classifier in it the file can be trained from, not asked."""
    call("safer_model_convert", path_bytes(output), path_bytes(source))


def average(output: Path, models: Sequence[Path]) -> None:
    """Makes one model file of several that were fine-tuned from one encoder: the mean of their parameters, as
    `safer model average` does."""
    names = [path_bytes(model) for model in models]
    call("safer_model_average", path_bytes(output), string_array(names), len(names))


@dataclass(frozen=True)
class SumFit:
    """How the weights of a sum of models were found."""

    weights: List[float]  #: of every member; 0: it does not help, and is left out
    before: float  #: the share of the texts that the sum answers rightly, or certifies, with the weights it had
    after: float  #: and with these


def fit_sum(output: Path, sum: Path, texts: Texts, labels: Optional[Sequence[Any]] = None, *, lexicon: Optional[Lexicon] = None,
            bounds: bool = False, seed: int = 1, threads: int = 0, device: Optional[str] = None,
            progress: ProgressOption = None) -> SumFit:
    """Finds the weights of a sum of models on texts that no member was trained on, and writes it with them to the file
    `output`, as `safer model fit` does.

    :param sum: the file of JSON that names the members
    :param lexicon: members read texts as it draws them
    :param bounds: for certificates of the method "ibp": by what members prove, not by what they answer
    """
    o = default_options("sum", c.SumOptions)
    o.bounds, o.seed, o.threads = bounds, seed, threads
    found = c.SumResult()
    with Model.load(sum, device=device) as model, _labelled("texts", texts, labels) as rows:
        with Guard(progress) as guard:
            o.progress = guard.progress
            call("safer_sum_fit", byref(found), path_bytes(output), path_bytes(sum), model._pointer, rows._pointer,
                 None if lexicon is None else lexicon._pointer, byref(o))
        guard.check()
    return SumFit(list(found.weights[:found.members]), found.before, found.after)
