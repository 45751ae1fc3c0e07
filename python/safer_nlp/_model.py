"""Models: files of the library, programs and services, and functions of Python."""
from __future__ import annotations

import contextlib
import ctypes
import json
import os
import threading
import time
from array import array
from ctypes import POINTER, byref, c_char_p, c_float, c_int
from dataclasses import dataclass
from typing import Any, Callable, ContextManager, Iterator, List, Mapping, Optional, Protocol, Sequence, Tuple, Union

from . import _structs as c
from ._answers import Classes, kind, label_name
from ._data import as_list, encode, encode_texts, string_arrays
from ._errors import Error, InvalidError
from ._guard import current_guard, reporting
from ._handle import Handle
from ._library import call, choice, default_options, library, make, optional_bytes, path_bytes, string_array
from ._torch import adopt


@dataclass(frozen=True)
class Traffic:
    """What a remote model was asked."""

    asked: int  #: texts sent, without those below
    cached: int  #: answered from the cache
    again: int  #: texts sent to see whether answers stay, among them every text behind an exact certificate once more
    changed: int  #: of those: the answer did not
    none: int  #: answers that were not a label
    requests: int
    retries: int
    restarts: int  #: of programs


@dataclass(frozen=True)
class Device:
    """What can compute."""

    name: str  #: as `Model.load` takes it: "cpu", "cuda:0"; "cuda": no GPU can be used
    hardware: Optional[str]  #: as its maker calls it
    instructions: Optional[str]  #: "avx512-bf16", "sm_90"
    driver: Optional[str]  #: of a GPU: the newest CUDA that it is for
    arithmetic: Optional[str]  #: in which a bert answers there, as records name it
    threads: Optional[int]  #: of the CPU
    memory: Optional[int]  #: bytes
    free_memory: Optional[int]  #: of a GPU
    reason: Optional[str]  #: why it cannot be used; None: it can


def devices() -> List[Device]:
    """The CPU and the GPUs of this machine, or why there are none."""
    found: List[Device] = []
    device = c.Device()
    while library.safer_device_get(byref(device), len(found)):
        values: List[Any] = [getattr(device, name) for name, *_ in c.Device._fields_]
        shown: List[Any] = [(value.decode() if isinstance(value, bytes) else value) or None for value in values]
        found.append(Device(*shown))
    return found


class HasPredict(Protocol):
    """For example a scikit-learn estimator or pipeline."""

    def predict(self, texts: List[str], /) -> Any: ...


class _Answering(Handle):
    """A safer_model of any kind."""

    _end = "safer_model_free"
    classes: Classes
    #: What records call a function, program or service; None: it has no name, and no records of it are written.
    model_name: Optional[str] = None

    @property
    def labels(self) -> Tuple[str, ...]:
        """The names of its classes, in the order of their numbers."""
        return tuple(self.classes.names)

    @property
    def traffic(self) -> Traffic:
        """What it was asked so far; zeros for a model file."""
        t: c.Traffic = library.safer_model_traffic(self._pointer)
        return Traffic(*(getattr(t, name) for name, *_ in c.Traffic._fields_))

    def asking(self) -> ContextManager[None]:
        """A block in which it is asked: checks that no answer gets lost between Python and the library."""
        return contextlib.nullcontext()

    @property
    def is_random(self) -> bool:
        """Whether it is known, by `random=True` or by a test, to answer the same text differently."""
        return bool(library.safer_model_is_random(self._pointer))


class Model(_Answering):
    """A model of the library's own: a file, a HuggingFace folder, a program, a service.

    It can be passed wherever a `predict` function is expected. Any number of threads may use
    one at the same time.

    >>> model = safer.Model.load("ngram.safetensors")
    >>> model.classify(["A wonderful film."])
    ['1']
    """

    #: How it was trained: a :class:`safer_nlp.Training` of the model that :func:`safer_nlp.train` returns, else None.
    training: Any = None

    def __init__(self, address: int, model_name: Optional[str] = None) -> None:
        super().__init__(address)
        self.model_name = model_name
        count: int = library.safer_model_class_count(address)
        self.classes = Classes([library.safer_model_label(address, k).decode() for k in range(count)])

    @classmethod
    def load(cls, path: "Union[str, os.PathLike[str]]", *, precision: Optional[str] = None,
             device: Optional[str] = None) -> "Model":
        """Opens a model file, a folder with a classifier of the kind of BERT as HuggingFace has
        them (docs/models.md lists which), or a sum of models (a file of JSON). `precision` is "bf16", "f32" or "portable", which has
        the same bits on every machine: for bert, charcnn, context and sums with such members. The others are
        always portable. `device` is where a bert, charcnn or context is computed, one of `safer_nlp.devices()`: "cpu",
        "cuda" (all GPUs), "cuda:0" or "auto"; a GPU has an arithmetic of its own, so it goes without `precision`."""
        if precision is not None and device not in (None, "cpu"):
            raise InvalidError("precision is for the CPU: a device has its own")
        name = os.fsdecode(path)
        if name.endswith(".py") and os.path.exists(name):
            raise InvalidError(f"{name} is a program, not a model file; to ask it: safer_nlp.Model.connect('exec:python3 {name}', labels); "
                               "a function of Python is given itself")
        model = cls(make("safer_model_open", path_bytes(path)))
        if precision is not None:
            call("safer_model_set_precision", model._pointer, choice("precision", precision))
        if device is not None:
            call("safer_model_set_device", model._pointer, device.encode())
        return model

    @classmethod
    def connect(cls, address: str, labels: Sequence[Any], *, batch: int = 0, timeout: float = 60, retries: int = 5,
                cache: Optional[bool] = None, random: bool = False, function: bool = False, model_name: Optional[str] = None,
                workers: int = 0, concurrency: Optional[int] = None, profile: Optional[str] = None, request: Optional[str] = None,
                answer: Optional[str] = None, name: Optional[str] = None, token: Optional[str] = None,
                insecure_token: bool = False) -> "Model":
        """A program ("exec:COMMAND") or a service ("http://..."). `labels` are the names of its
        classes; `token` names the environment variable that holds a bearer token, which goes over http:// to another
        machine only with `insecure_token`. The others
        are the options of `safer certify`; None stands for the default. `model_name` is needed where
        records are written, or compared with those of a run."""
        options, _kept = _remote_options([label_name(label) for label in as_list(labels, "labels")], model_name)
        options.function = function
        options.batch, options.timeout, options.retries, options.random, options.workers = batch, timeout, retries, random, workers
        if cache is not None:
            options.cache = cache
        if concurrency is not None:
            options.concurrency = concurrency
        options.profile = choice("profile", profile or "json")
        options.request, options.answer = map(optional_bytes, (request, answer))
        options.name, options.token, options.insecure_token = optional_bytes(name), optional_bytes(token), insecure_token
        return cls(make("safer_model_connect", address.encode(), byref(options)), model_name)

    @property
    def arch(self) -> str:
        """"ngram", "bow", "cnn", "charcnn", "bert", "context", "sum", "exec", "http"."""
        arch: bytes = library.safer_model_arch(self._pointer)
        return arch.decode()

    @property
    def name(self) -> str:
        """Of its file or folder, without the folders above it; as in the records of a run."""
        name: bytes = library.safer_model_name(self._pointer)
        return name.decode()

    @property
    def sha256(self) -> str:
        """Of its file, as sha256sum prints it; of a folder or sum, as docs/models.md says; "" of a remote model."""
        digest: bytes = library.safer_model_sha256(self._pointer)
        return digest.decode()

    @property
    def trained_with(self) -> Optional[Mapping[str, Any]]:
        """The digests and kernel of the lexicon that it was trained with; None without one."""
        text: Optional[bytes] = library.safer_model_trained_with(self._pointer)
        known: Optional[Mapping[str, Any]] = json.loads(text) if text else None
        return known

    def classify(self, texts: Sequence[str]) -> List[Optional[str]]:
        """The class of each text; None where the model gave no answer."""
        numbers, _ = self._ask(texts, False)
        names = self.classes.names
        return [names[number] if number >= 0 else None for number in numbers]

    __call__ = classify

    def scores(self, texts: Sequence[str]) -> List[List[float]]:
        """A row for each text with a number for each of `labels`."""
        _, scores = self._ask(texts, True)
        classes = len(self.classes.names)
        return [scores[at:at + classes] for at in range(0, len(scores), classes)]

    def _ask(self, texts: Sequence[str], with_scores: bool) -> Tuple[List[int], List[float]]:
        encoded = encode_texts(texts)
        if not encoded:
            return [], []
        labels = (c_int * len(encoded))()
        scores = (c_float * (len(encoded) * len(self.classes.names)))() if with_scores else None
        call("safer_model_classify", self._pointer, *string_arrays(encoded), len(encoded), labels, scores)
        return list(labels), list(scores) if scores is not None else []

    def __repr__(self) -> str:
        if not self._finalizer.alive:
            return "<safer_nlp.Model, closed>"
        return f"<safer_nlp.Model {self.arch}, classes {self.classes.describe()}>"


#: What can be certified: a function of a list of texts, an object with such a method named predict, a HuggingFace pipeline, a
#: pair of a PyTorch module and its tokenizer, or a Model.
Predict = Union[Callable[[List[str]], Any], HasPredict, Model, Tuple[Any, Any]]


# --------------------------------------------------------- functions of Python

class FunctionModel(_Answering):
    """A safer_model that asks a function. Threads take turns."""

    #: Whether threads of the library may call it, as those of a server do.
    from_any_thread = False

    def __init__(self, function: Callable[[List[str]], Any], classes: Sequence[str], *, batch: int, cache: bool, random: bool,
                 declared: bool, model_name: Optional[str]) -> None:
        self.classes = Classes(classes)
        self.model_name = model_name
        self.seconds = 0.0  # spent in the function
        self._answered = 0
        self._turn = threading.Lock()
        self._function = function
        self._callback = c.CLASSIFY(self._on_texts)
        options, _kept = _remote_options(classes, model_name)
        options.batch, options.cache, options.random, options.function, options.concurrency = batch, cache, random, declared, 1
        super().__init__(make("safer_model_from_callback", self._callback, None, byref(options)))

    def _on_texts(self, context: Any, texts: Any, lengths: Any, count: int, labels: int) -> int:
        guard = current_guard()
        if guard is not None:
            return guard.run(self._answer, texts, lengths, count, labels)
        if not self.from_any_thread:
            return 1
        with reporting() as failed:  # a thread of a server: signals are handled by the main thread
            self._answer(texts, lengths, count, labels)
        return int(bool(failed))

    def _answer(self, texts: Any, lengths: Any, count: int, labels: int) -> None:
        strings = [bytes_.decode() for bytes_ in map(ctypes.string_at, texts[:count], lengths[:count])]
        start = time.perf_counter()
        answers = self._function(strings)
        self.seconds += time.perf_counter() - start
        numbers = array("i", self.classes.read(answers, count))
        ctypes.memmove(labels, numbers.buffer_info()[0], count * numbers.itemsize)
        self._answered += count

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        with self._turn:
            before = self._lost()
            yield
            if self._lost() != before:
                raise Error("answers of predict got lost (was an exception raised in its thread from outside?); "
                            "the results would be worthless")

    def _lost(self) -> int:
        traffic: c.Traffic = library.safer_model_traffic(self._pointer)
        lost: int = traffic.asked + traffic.again - self._answered
        return lost


def as_model(predict: Predict, classes: Optional[Sequence[Any]], labels: Sequence[str], *, batch: int, cache: bool, random: bool,
             declared: bool, model_name: Optional[str] = None) -> Union[Model, FunctionModel]:
    """The model behind `predict`. Without `classes` they are the estimator's own, or `labels`."""
    if isinstance(predict, Model):
        if model_name is not None:
            raise InvalidError("model_name: a model file has its own; that of a program or service is given to Model.connect")
        if declared:
            raise InvalidError("function: a model file is one; a program or service is declared one by Model.connect")
        if classes is not None and [label_name(k) for k in as_list(classes, "classes")] != predict.classes.names:
            raise InvalidError(f"classes: the model has its own ({predict.classes.describe()})")
        return predict
    if isinstance(predict, (str, os.PathLike)):
        raise InvalidError(f"predict: open the file first: safer_nlp.Model.load({os.fspath(predict)!r})")
    predict = adopt(predict)
    function = predict if callable(predict) else getattr(predict, "predict", None)
    if not callable(function):
        raise InvalidError(f"predict: a function of a list of texts, or an object with one named predict, not {kind(predict)}")
    if batch < 1:
        raise InvalidError(f"batch: {batch} (at least 1)")
    names = class_names(predict, classes, labels)
    if len(names) < 2:
        raise InvalidError(f"classes: {', '.join(names) or 'none'} from the labels alone; "
                           "give the names of all classes of the model, as in classes=[\"neg\", \"pos\"]")
    return FunctionModel(function, names, batch=batch, cache=cache, random=random, declared=declared, model_name=model_name)


def class_names(predict: Predict, classes: Optional[Sequence[Any]], labels: Sequence[str]) -> List[str]:
    if classes is not None:
        return [label_name(k) for k in as_list(classes, "classes")]
    configured = getattr(predict, "class_names", None)  # of a model of transformers
    if isinstance(configured, list):
        return configured
    owner = predict if hasattr(predict, "classes_") else getattr(predict, "__self__", None)
    own = getattr(owner, "classes_", None)  # scikit-learn: in the order of its scores
    if own is not None and getattr(own, "ndim", 1) == 1 and len(own) >= 2:
        return [label_name(k) for k in as_list(own, "classes_")]
    return list(labels)


#: Results are made of the library's records, which have a name; where nobody gave one, they are not given away.
UNNAMED = "unnamed"


def is_remote(model: Union[Model, FunctionModel]) -> bool:
    """Whether only its answers are known."""
    return isinstance(model, FunctionModel) or model.arch in ("exec", "http")


def check_name(model: Union[Model, FunctionModel], why: str) -> None:
    if is_remote(model) and model.model_name is None:
        raise InvalidError(f"model_name: a function, program or service needs a name {why}")


def _remote_options(labels: Sequence[str], model_name: Optional[str]) -> "Tuple[c.RemoteOptions, Any]":
    """Options with these labels and this name, and what must live as long as they are used."""
    options = default_options("remote", c.RemoteOptions)
    strings = string_array([encode(label, "classes") for label in labels])
    options.labels, options.label_count = ctypes.cast(strings, POINTER(c_char_p)), len(labels)
    options.model_name = encode(UNNAMED if model_name is None else model_name, "model_name")
    if model_name is not None and "\0" in model_name:
        raise InvalidError("model_name: it holds a NUL character")
    return options, strings
