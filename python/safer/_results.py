"""What certification says, as plain objects."""
from __future__ import annotations

import dataclasses
import importlib
import json
import os
from ctypes import byref, c_double
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union, overload

from . import _structs as c
from ._errors import InvalidError
from ._library import library
from ._model import Traffic

Radius = Union[int, str]  # a number of words, or "all"


def radius_to_c(radius: Radius) -> int:
    if radius == "all":
        return c.ALL
    if isinstance(radius, str) or radius < 0:
        raise InvalidError(f"radius: {radius!r}; a number of words or \"all\"")
    return int(radius)


def radius_from_c(radius: int) -> Radius:
    return "all" if radius == c.ALL else radius


#: What an exact certificate of a model depends on of which only the answers are known.
ASSUMES = ("the model is a function of the text",)

REPORTED: Tuple[Radius, ...] = tuple(radius_from_c(library.safer_reported_radius(k)) for k in range(c.RADII))


@dataclass(frozen=True)
class Certificate:
    """What is known of one text. Classes are named; None stands for no class."""

    id: str
    label: Optional[str]  #: the data's
    prediction: Optional[str]  #: the vote of the smoothed classifier
    abstained: bool  #: that vote was not clear
    base: Optional[str]  #: the base model's own answer for the text as it is
    target: Optional[str]  #: the class that the certificate is about: the label or, without one, the prediction
    words: int  #: in the text
    slots: int  #: those of them that may change
    visible: int  #: those of them that the model can see
    exact: bool  #: all draws were asked, nothing was estimated
    assumes: Tuple[str, ...]  #: exact certificates of a function, program or service: what they depend on
    n: int  #: draws of the certificate; 0 when exact
    counts: Mapping[str, int]  #: votes of every class; exact: weights; ibp: none
    bound: float  #: lower bound on g(target), or on (1 + g(target) - max g)/2 with several classes
    q: float  #: how far any class's probability moves when all words change, rounded up
    certified: bool  #: at the asked radius
    radius: Radius  #: the largest certified one: 0, a number of words, or "all"
    queries: int
    seconds: float
    margins: Mapping[str, float]  #: ibp: by how much at least the target leads each other class, in logits or, of a sum, in what it adds up

    def certified_at(self, radius: Radius) -> bool:
        """Whether it is certified against this many changed words."""
        return radius_to_c(self.radius) >= radius_to_c(radius)


@dataclass(frozen=True)
class Summary:
    """A run in numbers. Shares are between 0 and 1; None where there is nothing to count."""

    texts: int
    labelled: int
    clean_accuracy: Optional[float]  #: of the base model itself
    smoothed_accuracy: Optional[float]  #: of the vote
    certified_accuracy: Optional[float]  #: share certified at the asked radius (unlabelled: for the prediction)
    certified_interval: Optional[Tuple[float, float]]  #: its 95% interval: what another sample of texts might give
    certified_at: Mapping[Radius, float]  #: the same for the radii 1, 2, 5, 10, 20 and "all"
    intervals: Mapping[Radius, Tuple[float, float]]  #: and their 95% intervals
    abstained: int
    exact: int  #: certificates without sampling
    without_slots: int  #: texts in which no word can change
    queries: int
    base_queries: int
    seconds: float
    resumed: int  #: records that were there already
    predict_seconds: Optional[float] = None  #: of `seconds`, spent in the function that was certified
    traffic: Optional[Traffic] = None  #: what it was asked, for a function, program or service


@dataclass(frozen=True)
class Prediction:
    """The smoothed classifier's answer for one text."""

    label: Optional[str]  #: None: the vote was not clear enough to answer
    vote: Optional[str]  #: the class that leads the vote, clear or not
    confidence: float  #: a lower bound, at level delta, on the share of draws that have the label (see Certificate.bound)
    certified: bool  #: at the asked radius; never for an abstention
    radius: Radius  #: how many words may be exchanged without changing the answer
    shares: Mapping[str, float]  #: of the votes, approximately
    exact: bool  #: all draws were asked, nothing was estimated
    assumes: Tuple[str, ...]  #: as in Certificate
    words: int
    slots: int
    queries: int
    seconds: float
    seed: int  #: with it the answer can be repeated

    @property
    def abstained(self) -> bool:
        return self.label is None


def interval(part: int, whole: int) -> Tuple[float, float]:
    low, high = c_double(), c_double()
    library.safer_interval(part, whole, byref(low), byref(high))
    return low.value, high.value


def summarise(s: c.Summary, predict_seconds: Optional[float] = None, traffic: Optional[Traffic] = None) -> Summary:
    def share(part: int, whole: int) -> Optional[float]:
        return part / whole if whole else None

    at = dict(zip(REPORTED, s.certified_at)) if s.texts else {}
    return Summary(
        s.texts, s.labelled, share(s.base_correct, s.labelled), share(s.smoothed_correct, s.labelled), share(s.certified, s.texts),
        interval(s.certified, s.texts) if s.texts else None, {radius: part / s.texts for radius, part in at.items()},
        {radius: interval(part, s.texts) for radius, part in at.items()}, s.abstained, s.exact, s.without_slots, s.queries,
        s.base_queries, s.seconds, s.resumed, predict_seconds, traffic)


_FIELDS = [field.name for field in dataclasses.fields(Certificate)]


def _read_record(line: str) -> Certificate:
    record: Dict[str, Any] = json.loads(line)
    record["assumes"] = tuple(record.get("assumes", ()))
    if "margins" in record:  # bounds: nothing was drawn
        record.update(n=0, counts={}, bound=float(record["radius"] == "all"), q=0.0)
    else:
        record.update(margins={}, counts={name: int(votes) for name, votes in record["counts"].items()})
    return Certificate(**{name: record[name] for name in _FIELDS})


class Results(Sequence[Certificate]):
    """The certificates of a run, in the order of the texts, with a `summary`."""

    def __init__(self, lines: Iterable[str], summary: Summary, named: bool = True) -> None:
        self._named = named  # its records may be written
        self._lines = [line.rstrip("\n") for line in lines]
        #: What the run depends on: versions, hashes, seed, options.
        self.config: Mapping[str, Any] = json.loads(self._lines[0])
        self.summary = summary
        self._certificates = [_read_record(line) for line in self._lines[1:]]

    @overload
    def __getitem__(self, index: int) -> Certificate: ...

    @overload
    def __getitem__(self, index: slice) -> List[Certificate]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Certificate, List[Certificate]]:
        return self._certificates[index]

    def __len__(self) -> int:
        return len(self._certificates)

    def to_json(self, path: "Union[str, os.PathLike[str]]") -> None:
        """Writes the records as JSON Lines, as `safer certify -o` does; `safer verify` reads them.
        An existing file is overwritten. For a function, program or service :func:`certify` must
        have been given a `model_name`."""
        if not self._named:
            raise InvalidError("model_name: certify with one to write the records: they say which model was asked")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in self._lines)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row for each text. Needs pandas."""
        pandas = importlib.import_module("pandas")
        return pandas.DataFrame([{name: getattr(record, name) for name in _FIELDS} for record in self], columns=_FIELDS)

    def __repr__(self) -> str:
        s = self.summary

        def percent(share: Optional[float]) -> str:
            return "      -" if share is None else f"{100 * share:6.2f}%"

        low, high = s.certified_interval or (0.0, 1.0)
        lines = [f"texts       {s.texts:6,}",
                 f"clean       {percent(s.clean_accuracy)}  the base model itself",
                 f"smoothed    {percent(s.smoothed_accuracy)}  the smoothed classifier",
                 f"certified   {percent(s.certified_accuracy)}  at radius {self.config['radius']} (95%: {100 * low:.2f} to {100 * high:.2f})"]
        lines += [f"  {radius!s:>5} words changed {percent(share)}" for radius, share in s.certified_at.items()]
        lines.append(f"queries     {s.queries:6,}, {s.seconds:.1f} s")
        return "\n".join(lines)
