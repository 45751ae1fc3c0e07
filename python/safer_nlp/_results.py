"""What certification says, as plain objects."""
from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import operator
import os
from ctypes import byref, create_string_buffer
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union, overload

from . import _structs as c
from ._errors import InvalidError
from ._lexicon import Lexicon
from ._library import call, deletion_name, library, path_bytes
from ._model import Traffic
from ._show import html_of, interval, percent, plot_of

Radius = Union[int, str]  # a number of words, or "all"


def radius_to_c(radius: Radius) -> int:
    if radius == "all":
        return c.ALL
    if isinstance(radius, (str, bool)) or not hasattr(radius, "__index__") or radius < 0:
        raise InvalidError(f"radius: {radius!r}; a number of words or \"all\"")
    return operator.index(radius)


def radius_from_c(radius: int) -> Radius:
    return "all" if radius == c.ALL else radius


#: What an exact certificate of a model depends on of which only the answers are known.
ASSUMES = ("the model is a function of the text",)

EDIT_KINDS = ("any", "replace", "insert", "delete")
REPORTED: Tuple[Radius, ...] = tuple(radius_from_c(library.safer_reported_radius(k)) for k in range(c.RADII))


@dataclass(frozen=True)
class Certificate:
    """What is known of one text. Classes are named; None stands for no class."""

    id: str
    label: Optional[str]  #: the data's
    prediction: Optional[str]  #: the vote of the smoothed classifier
    abstained: bool  #: that vote was not clear
    base: Optional[str]  #: the base model's own answer for the text as it is, folded where the lexicon has a fold
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
    margin_at: Mapping[Radius, float] = field(default_factory=dict)  #: ibp, of a model whose words add up: the least of them when so many words change
    edits: Optional[int] = None  #: with `delete`: certified words, numbers and marks that may be edited besides, at most those asked for

    def certified_at(self, radius: Radius) -> bool:
        """Whether it is certified against this many changed words."""
        return radius_to_c(self.radius) >= radius_to_c(radius)


@dataclass(frozen=True)
class ClassSummary:
    """The texts of one label. Recall and precision are what is left of them whatever words are exchanged, in every text:
    of the texts of the label, those certified and answered; and those, of themselves and all texts of other labels that
    are not certified and answered."""

    label: str
    texts: int
    certified: int  #: of these, for this label, answered or not
    certified_answered: int
    certified_recall: Optional[float]
    certified_precision: Optional[float]
    answers: Optional[Mapping[Optional[str], int]]  #: how many were answered each class; None: it abstained. Not of over 1000 classes


@dataclass(frozen=True)
class Summary:
    """A run in numbers. Shares are between 0 and 1; None where there is nothing to count. A text is answered when
    the vote, as it would be deployed, is clear and gives the class that the certificate is about. The headline is
    `certified_answered` or, where certificates are about predictions, `stable`."""

    texts: int
    labelled: int
    clean_accuracy: Optional[float]  #: of the base model itself; this and the next four: of the labelled texts
    smoothed_accuracy: Optional[float]  #: of the vote
    certified_accuracy: Optional[float]  #: certified at the asked radius, answered or not: the paper's figure
    certified_interval: Optional[Tuple[float, float]]  #: its 95% interval: what another sample of texts might give
    certified_at: Mapping[Radius, float]  #: the same for the radii 1, 2, 5, 10, 20 and "all"
    intervals: Mapping[Radius, Tuple[float, float]]  #: and their 95% intervals
    abstained: int
    exact: int  #: texts whose draws were all asked; where `remote`, exact if the model is a function of the text
    without_slots: int  #: texts in which no word can change
    queries: int
    base_queries: int
    seconds: float
    resumed: int  #: records that were there already
    certified_answered: Optional[float]  #: of the labelled texts: right, certified at the asked radius, and answered
    certified_answered_interval: Optional[Tuple[float, float]]
    certified_answered_at: Mapping[Radius, float]
    unlabelled: int  #: texts without a label
    unlabelled_certified: int  #: of these, for their prediction
    stable: Optional[float]  #: of all texts: certified and answered, right or not
    stable_interval: Optional[Tuple[float, float]]
    stable_at: Mapping[Radius, float]
    empty: int  #: certificates of texts in which the model sees no word that can change: they say nothing
    caution: Optional[str]  #: why the figures say little: most certificates are empty
    headline: Tuple[str, int, int]  #: "certified and answered" or "stable", so many texts, of so many
    remote: bool  #: a function, program or service was certified
    classes: Tuple[ClassSummary, ...]
    clean_unfolded_accuracy: Optional[float] = None  #: where the lexicon has a fold: of the base model, texts as they were given
    predict_seconds: Optional[float] = None  #: of `seconds`, spent in the function that was certified
    traffic: Optional[Traffic] = None  #: what it was asked, for a function, program or service
    edit_kind: Optional[str] = None  #: with `delete`: what an edit may be
    certified_edits: Mapping[int, float] = field(default_factory=dict)  #: by edits: certified, beside synonyms
    certified_answered_edits: Mapping[int, float] = field(default_factory=dict)  #: and answered
    stable_edits: Mapping[int, float] = field(default_factory=dict)  #: of all texts, right or not


@dataclass(frozen=True)
class Verification(Summary):
    """What was found of a run: its numbers, what was checked and what was not."""

    format: int = 0  #: the version of the run's format
    radius: Radius = "all"  #: what `certified` refers to
    delta: float = 0.0  #: as the run was asked for; 0 for interval bounds and groups, which cannot err by chance
    family_wise: bool = False  #: delta covers all texts together
    alpha: float = 0.0  #: as delta, of the answers
    checked: Tuple[str, ...] = ()
    not_checked: Tuple[str, ...] = ()
    shard: Optional[Tuple[int, int]] = None  #: (K, N): it is part K of N; None: it is a whole run
    delete: Union[float, str] = 0.0  #: the chance that a draw deletes a word, number or mark, or "keep:25"
    edits: int = 0  #: what `certified` refers to besides
    groups: Optional[int] = None  #: of words that voted in place of draws; None: there were none


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
    edits: Optional[int] = None  #: with `delete`: how many words, numbers and marks may be edited besides

    @property
    def abstained(self) -> bool:
        return self.label is None


def _share(part: int, whole: int) -> Optional[float]:
    return part / whole if whole else None


def _by_radius(parts: Iterable[int], whole: int) -> Dict[Radius, float]:
    return {radius: part / whole for radius, part in zip(REPORTED, parts)} if whole else {}


def _by_edits(parts: Sequence[int], edits: int, whole: int) -> Dict[int, float]:
    return {i + 1: parts[i] / whole for i in range(edits)} if whole else {}


def _class(s: c.Summary, k: int, names: Sequence[str]) -> ClassSummary:
    entry = s.by_class[k]
    recall, precision = library.safer_summary_recall(byref(s), k), library.safer_summary_precision(byref(s), k)
    answers = dict(zip([*names, None], entry.answers[:len(names) + 1])) if entry.answers else None
    return ClassSummary(names[k], entry.texts, entry.certified, entry.certified_answered, _share(recall.part, recall.whole),
                        _share(precision.part, precision.whole), answers)


@contextlib.contextmanager
def checking() -> Iterator[c.Verification]:
    """The same for what was verified."""
    v = c.Verification()
    try:
        yield v
    finally:
        library.safer_summary_free(byref(v.summary))


@contextlib.contextmanager
def counting() -> Iterator[c.Summary]:
    """A summary for the library to fill in, which ends with the block."""
    s = c.Summary()
    try:
        yield s
    finally:
        library.safer_summary_free(byref(s))


def summarise(s: c.Summary, predict_seconds: Optional[float] = None, traffic: Optional[Traffic] = None) -> Summary:
    caution = create_string_buffer(300)
    library.safer_summary_caution(byref(s), caution, len(caution))
    headline = library.safer_summary_headline(byref(s))
    names = [s.by_class[k].label.decode() for k in range(s.classes)]
    return Summary(
        s.texts, s.labelled, _share(s.base_correct, s.labelled), _share(s.smoothed_correct, s.labelled), _share(s.certified, s.labelled),
        interval(s.certified, s.labelled), _by_radius(s.certified_at, s.labelled),
        {radius: ends for radius, part in zip(REPORTED, s.certified_at) for ends in [interval(part, s.labelled)] if ends},
        s.abstained, s.exact, s.without_slots, s.queries, s.base_queries, s.seconds, s.resumed, _share(s.certified_answered, s.labelled),
        interval(s.certified_answered, s.labelled), _by_radius(s.certified_answered_at, s.labelled), s.texts - s.labelled,
        s.unlabelled_certified, _share(s.stable, s.texts), interval(s.stable, s.texts), _by_radius(s.stable_at, s.texts), s.empty,
        caution.value.decode() or None, (headline.name.decode(), headline.part, headline.whole), bool(s.remote),
        tuple(_class(s, k, names) for k in range(s.classes)), _share(s.unfolded_correct, s.labelled) if s.folded else None, predict_seconds,
        traffic, EDIT_KINDS[s.edit_kind] if s.edits else None,
        _by_edits(s.certified_edits, s.edits, s.labelled), _by_edits(s.certified_answered_edits, s.edits, s.labelled),
        _by_edits(s.stable_edits, s.edits, s.texts))


def verification(v: c.Verification, predict_seconds: Optional[float] = None, traffic: Optional[Traffic] = None) -> Verification:
    s = summarise(v.summary, predict_seconds, traffic)
    phrases = ([phrase.decode() for phrase in found if phrase] for found in (v.checked, v.not_checked))
    return Verification(**{member.name: getattr(s, member.name) for member in dataclasses.fields(s)}, format=v.format,
                        radius=radius_from_c(v.radius), delta=v.delta, family_wise=bool(v.family_wise), alpha=v.alpha, checked=tuple(next(phrases)), not_checked=tuple(next(phrases)),
                        shard=(v.shard, v.shards) if v.shards else None, delete=deletion_name(v.deletion), edits=v.edits,
                        groups=v.deletion.groups or None)


_FIELDS = [member.name for member in dataclasses.fields(Certificate)]


def _read_record(line: str) -> Certificate:
    record: Dict[str, Any] = json.loads(line)
    record["assumes"] = tuple(record.get("assumes", ()))
    if "margins" in record:  # bounds: nothing was drawn
        record.update(n=0, counts={}, bound=float(record["certified"]), q=0.0)
        record["margin_at"] = dict(zip(REPORTED, record.get("margin_at", ())))
    else:
        votes = record.get("counts") or record["weights"]
        record.update(margins={}, margin_at={}, n=record.get("n", 0), counts={name: int(count) for name, count in votes.items()})
    if record["radius"] != "all":
        record["radius"] = int(record["radius"])
    return Certificate(**{name: record.get(name) if name == "edits" else record[name] for name in _FIELDS})


class Results(Sequence[Certificate]):
    """The certificates of a run, in the order of the texts, with a `summary`."""

    def __init__(self, lines: Iterable[str], summary: Summary, named: bool = True, texts: Optional[Sequence[str]] = None,
                 lexicon: Optional[Lexicon] = None) -> None:
        self._named = named  # its records may be written
        #: What was certified, and with which synonyms; None for records that were loaded: they hold neither.
        self.texts, self.lexicon = texts, lexicon
        self._lines = [line.rstrip("\n") for line in lines]
        #: What the run depends on: versions, hashes, seed, options.
        self.config: Mapping[str, Any] = json.loads(self._lines[0])
        self.summary = summary
        self._certificates = [_read_record(line) for line in self._lines[1:]]

    @classmethod
    def load(cls, path: "Union[str, os.PathLike[str]]") -> "Results":
        """Reads the records that :func:`safer_nlp.certify` or `safer certify -o` wrote. Every decision is computed again,
        as by :func:`safer_nlp.verify`; a record that does not hold is an InputError that names its line."""
        with checking() as found:
            call("safer_verify", byref(found), path_bytes(path), None, None, None, 0, None)
            with open(path, encoding="utf-8") as file:
                return cls(file, summarise(found.summary))

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

    def to_pandas(self, texts: Optional[Sequence[str]] = None, lexicon: Optional[Lexicon] = None) -> Any:
        """A pandas.DataFrame with a row for each text. Needs pandas.

        Where the texts are known (those of :func:`certify` are; of loaded records they are given here), the column `text` has
        them, and with the lexicon `changeable` has the words of each that may change. Of a part of a run (`shard`) and of records
        that begin elsewhere they belong to other rows: then give none."""
        pandas = importlib.import_module("pandas")
        frame = pandas.DataFrame([{name: getattr(record, name) for name in _FIELDS} for record in self], columns=_FIELDS)
        known, words = self.texts if texts is None else list(texts), self.lexicon if lexicon is None else lexicon
        if known is not None:
            if len(known) != len(self):
                raise InvalidError(f"texts: {len(known):,} for {len(self):,} records")
            frame["text"] = known
            if words is not None:
                frame["changeable"] = [words.changeable(text) for text in known]
        return frame

    def _repr_html_(self) -> str:
        """The figures of the report, for notebooks."""
        return html_of(self.summary, str(self.config["radius"]))

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draws what is certified and answered (or stable) by radius, with 95% intervals, and returns the axes. Needs
        matplotlib; `style` goes to its `errorbar`."""
        return plot_of(self.summary, ax, style)

    def __repr__(self) -> str:
        s = self.summary
        name, part, whole = s.headline
        low, high = interval(part, whole) or (0.0, 1.0)

        def line(title: str, share: Optional[float], meaning: str) -> str:
            return f"{title:22}  {percent(share):>7}  {meaning}"

        lines = [f"caution: {s.caution}"] if s.caution else []
        lines += [f"{'texts':22}  {s.texts:6,}",
                  *([line("clean, unfolded", s.clean_unfolded_accuracy, "the base model itself, texts as they were given")]
                    if s.clean_unfolded_accuracy is not None else []),
                  line("clean", s.clean_accuracy, "the base model itself"),
                  line("smoothed", s.smoothed_accuracy, "the smoothed classifier"),
                  line(name, _share(part, whole), f"at radius {self.config['radius']} (95%: {percent(low)} to {percent(high, up=True)})")]
        if name != "stable":
            lines.append(line("certified", s.certified_accuracy, "answered or not: the paper's figure"))
        lines += [f"  {radius!s:>5} words changed   {percent(share):>7}"
                  for radius, share in (s.stable_at if name == "stable" else s.certified_answered_at).items()]
        lines += [f"  label {k.label}: {k.texts:,} texts, recall {percent(k.certified_recall)}, precision {percent(k.certified_precision)}"
                  for k in s.classes if s.labelled and len(s.classes) <= 20]
        lines.append(f"{'queries':22}  {s.queries:6,}, {s.seconds:.1f} s")
        return "\n".join(lines)
