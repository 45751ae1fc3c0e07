"""What certifying, attacking, verifying and serving have in common: options, the model behind `predict`, the data."""
from __future__ import annotations

import contextlib
import ctypes
import json
import os
import tempfile
from ctypes import byref
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import _structs as c
from ._answers import Classes, is_missing, kind, label_name
from ._data import DataHandle, as_list, encode, encode_texts, make_data
from ._errors import InputError, InvalidError
from ._lexicon import Lexicon
from ._library import call, choice, default_options, deletion_of
from ._model import FunctionModel, Model, Predict, Traffic, as_model
from ._results import Radius, Summary, radius_to_c, summarise


@contextlib.contextmanager
def scratch_file() -> Iterator[str]:
    """The name of an empty file; in memory where the system has such, because the library waits
    until a file has reached the disk."""
    try:
        descriptor = os.memfd_create("safer")
    except (AttributeError, OSError):
        descriptor = -1
    path = f"/proc/self/fd/{descriptor}"
    try:
        if descriptor >= 0 and os.path.exists(path):
            yield path
        else:
            with tempfile.TemporaryDirectory(prefix="safer-") as folder:
                yield os.path.join(folder, "run.jsonl")
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def need_lexicon(lexicon: Optional[Lexicon]) -> Lexicon:
    if isinstance(lexicon, (str, os.PathLike)):
        raise InvalidError(f"lexicon: open the file first: safer_nlp.Lexicon.load({os.fspath(lexicon)!r})")
    if not isinstance(lexicon, Lexicon):
        raise InvalidError(f"lexicon: a safer_nlp.Lexicon is needed, not {kind(lexicon)}")
    return lexicon


def certify_options(*, n: int, n0: Optional[int], delta: float, alpha: float, method: str, radius: Radius, seed: int, threads: int,
             delete: Union[float, str], edits: int, edit_kind: str, groups: Optional[int]) -> c.CertifyOptions:
    """The library checks ranges; here is what ctypes would cut to fit."""
    o = default_options("certify", c.CertifyOptions)
    n0 = n0 or 0  # as many as n
    for name, value in (("n", n), ("n0", n0), ("seed", seed), ("threads", threads), ("edits", edits), ("groups", 1 if groups is None else groups)):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise InvalidError(f"{name}: {value!r}; a whole number is needed")
        if value < 0 or value >= (2**31 if name == "threads" else 2**63):
            raise InvalidError(f"{name}: {value}")
    o.method, o.n, o.n0, o.delta, o.alpha = choice("method", "groups" if groups is not None and method == "adaptive" else method), n, n0, delta, alpha
    o.radius, o.seed, o.threads = radius_to_c(radius), seed, threads
    o.deletion, o.edits, o.edit_kind = deletion_of(delete, groups), edits, choice("edit_kind", edit_kind)
    if not (o.deletion.chance or o.deletion.keep or o.deletion.groups) and (edits != 1 or edit_kind != "any"):
        raise InvalidError("edits: without delete or groups no edit can be certified")
    return o


def shard_numbers(shard: Union[str, Tuple[int, int], None]) -> Tuple[int, int]:
    """(K, N); zeros for all texts."""
    if shard is None:
        return 0, 0
    text = shard if isinstance(shard, str) else "/".join(map(str, shard))
    number, count = ctypes.c_size_t(), ctypes.c_size_t()
    call("safer_shard_parse", byref(number), byref(count), encode(text, "shard"))
    return number.value, count.value


def draws_at_once(model: Union[Model, FunctionModel], batch: int) -> int:
    """Texts that are asked again are added to a request; this leaves room for them, so that no
    request must be split."""
    if batch < 1:
        raise InvalidError(f"batch: {batch} (at least 1)")
    if isinstance(model, Model) or model.is_random:
        return batch
    return batch - 4 if batch >= 64 else max(1, batch - 1)


def prepare(predict: Predict, texts: Sequence[str], labels: Optional[Sequence[Any]], ids: Optional[Sequence[Any]],
            classes: Optional[Sequence[Any]], *, batch: int, cache: bool, random: bool,
            declared: bool, model_name: Optional[str]) -> Tuple[Union[Model, FunctionModel], DataHandle]:
    """The model behind `predict`, and the library's copy of the data."""
    encoded, listed = encode_texts(texts), None if labels is None else as_list(labels, "labels")
    id_list, called = None if ids is None else as_list(ids, "ids"), class_names_of(listed, None)
    data = make_data(encoded, called, id_list)
    model = as_model(predict, classes, data.label_names(), batch=batch, cache=cache, random=random, declared=declared, model_name=model_name)
    names = class_names_of(listed, model.classes)
    if names != called:  # numbers that stood for positions
        data.close()
        data = make_data(encoded, names, id_list)
    return model, data


def class_names_of(labels: Optional[Sequence[Any]], classes: Optional[Classes]) -> Optional[List[Optional[str]]]:
    """The classes that labels mean, by name or position; without `classes`, what they are called."""
    if labels is None or classes is None:
        return None if labels is None else [None if is_missing(label) else label_name(label) for label in labels]
    return [_class_of(label, index, classes) for index, label in enumerate(labels)]


def _class_of(label: Any, index: int, classes: Classes) -> Optional[str]:
    if is_missing(label):
        return None
    found = classes.find(label)
    if found is None:
        raise InputError(f"labels[{index}] is {label!r}, which the model does not know (it knows: {classes.describe()})")
    return classes.names[found]


def header_of(path: "Union[str, os.PathLike[str]]") -> Dict[str, Any]:
    """The first line of a run; nothing where there is none: the library reports what is wrong with it."""
    try:
        with open(path, encoding="utf-8") as file:
            header = json.loads(file.readline())
    except (OSError, ValueError):
        return {}
    return header if isinstance(header, dict) else {}


def classes_of(path: "Union[str, os.PathLike[str]]") -> Optional[List[str]]:
    """The classes that the first line of a run names."""
    names = header_of(path).get("labels")
    return [str(name) for name in names] if isinstance(names, list) else None


def summary_of(summary: c.Summary, model: Union[Model, FunctionModel]) -> Summary:
    return summarise(summary, *traffic_of(model))


def traffic_of(model: Union[Model, FunctionModel]) -> Tuple[Optional[float], Optional[Traffic]]:
    """Seconds in the function that was asked, and what it was asked."""
    if isinstance(model, FunctionModel):
        return model.seconds, model.traffic
    return None, model.traffic if model.arch in ("exec", "http") else None
