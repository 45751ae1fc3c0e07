"""Attacks on classifiers, and on certificates."""
from __future__ import annotations

import contextlib
import importlib
import json
import os
from ctypes import byref
from dataclasses import dataclass, fields
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union, overload

from . import _structs as c
from ._data import Texts, rows_of
from ._errors import InputError, InvalidError
from ._guard import Guard, ProgressOption
from ._lexicon import Lexicon
from ._library import call, choice, default_options, deletion_name, deletion_of, library, make, optional_bytes, path_bytes
from ._model import Model, Predict, check_name, is_remote
from ._parts import classes_of, draws_at_once, need_lexicon, prepare, scratch_file, shard_numbers
from ._results import Radius, radius_to_c
from ._show import interval, percent

Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Change:
    """One exchanged word."""

    word: int  #: which of the text's words, from 0
    byte: int  #: where it begins in the text as it was, in UTF-8
    before: str
    after: str


@dataclass(frozen=True)
class Attack:
    """What an attack did to one text."""

    id: str
    label: Optional[str]  #: the data's
    before: Optional[str]  #: the answer for the text as it is
    after: Optional[str]  #: for the new text; as `before` when the attack did not succeed
    outcome: str  #: "succeeded", "failed", or "skipped": it is already answered wrongly
    reason: Optional[str]  #: why it failed or was skipped
    words: int
    choices: int  #: words that have synonyms
    score_before: float  #: the share of the classifier's belief in the right class
    score_after: float  #: the lowest that was found
    changed: int  #: exchanged words of the new text
    changes: Tuple[Change, ...]
    text: Optional[str]  #: the new text; None without success
    queries: int
    checks: int  #: smoothed: texts asked to test a success
    seconds: float


@dataclass(frozen=True)
class AttackSummary:
    """An attack on many texts, in numbers. Shares are between 0 and 1; None where there is nothing to count."""

    texts: int
    skipped: int  #: already answered wrongly
    succeeded: int
    clean_accuracy: Optional[float]
    adversarial_accuracy: Optional[float]  #: of all texts: right before the attack and after it
    adversarial_interval: Optional[Tuple[float, float]]  #: its 95% interval
    success_rate: Optional[float]  #: of the texts that were answered rightly
    mean_changed: Optional[float]  #: words, of the successes
    mean_changed_share: Optional[float]
    without_choices: int  #: texts of which no word has a synonym
    limited: int  #: attacks that ended because `max_queries` were used up
    queries: int
    checks: int
    seconds: float
    resumed: int
    words: int  #: of insert and outoflist: asked about once for all texts, beside `queries`


@dataclass(frozen=True)
class Against:
    """Attacks on the certificates of a run. `alarm`: delta does not explain the violations."""

    texts: int  #: in the run
    certified: int  #: at radius 1 or more, or against 1 edit or more: those were attacked
    exact: int  #: of these, without sampling
    untouched: int  #: certified, but no word has a synonym
    limited: int  #: a search ended because `max_queries` were used up
    violations: int  #: certified texts for which a new text was found that breaks the certificate
    violations_exact: int  #: of these, where the certificate claimed to be exact
    sampled: int  #: texts of the run that were sampled, certified or not
    delta: float
    p_value: float  #: of as many violations of sampled certificates, if delta holds; rounded up
    alarm: bool
    flips: int  #: new texts on which the votes of a search went wrong, before the test on fresh draws
    queries: int
    checks: int
    seconds: float
    resumed: int
    shard: Optional[Tuple[int, int]]  #: (K, N): the part of the run that was attacked; None: all of it
    deletion: Union[float, str]  #: the chance with which the run's draws delete tokens, or "keep:25"; 0: they do not
    groups: Optional[int]  #: of words that vote in place of draws; None: there are none
    certified_edits: int  #: then: texts certified against 1 edit or more
    words: int  #: and words that were asked about once for all texts, beside `queries`


def _summarise(s: c.AttackSummary) -> AttackSummary:
    attacked = s.texts - s.skipped
    held = attacked - s.succeeded
    return AttackSummary(
        s.texts, s.skipped, s.succeeded, attacked / s.texts if s.texts else None, held / s.texts if s.texts else None,
        interval(held, s.texts), s.succeeded / attacked if attacked else None, s.changed / s.succeeded if s.succeeded else None,
        s.changed_share / s.succeeded if s.succeeded else None, s.without_choices, s.limited, s.queries, s.checks, s.seconds, s.resumed, s.words)


_FIELDS = [member.name for member in fields(Attack)]


def _read_record(line: str) -> Attack:
    record: Dict[str, Any] = json.loads(line)
    record["changes"] = tuple(Change(k["word"], k["byte"], k["from"], k["to"]) for k in record["changes"])
    return Attack(**{name: record[name] for name in _FIELDS})


class Attacks(Sequence[Attack]):
    """What an attack did to each text, in their order, with a `summary`."""

    def __init__(self, lines: Iterable[str], summary: AttackSummary, named: bool = True) -> None:
        self._named = named
        self._lines = [line.rstrip("\n") for line in lines]
        #: What the run depends on: versions, hashes, seed, options.
        self.config: Mapping[str, Any] = json.loads(self._lines[0])
        self.summary = summary
        self._attacks = [_read_record(line) for line in self._lines[1:]]

    @classmethod
    def load(cls, path: Path) -> "Attacks":
        """Reads the records that :func:`safer_nlp.attack` or `safer attack -o` wrote; seals and order are checked."""
        address = make("safer_run_read", path_bytes(path))
        try:
            found = library.safer_run_attacked(address)
            if not found:
                raise InputError(f"{os.fspath(path)}: a run of certificates, not of attacks; Results.load reads it")
            with open(path, encoding="utf-8") as file:
                return cls(file, _summarise(found.contents))
        finally:
            library.safer_run_free(address)

    @overload
    def __getitem__(self, index: int) -> Attack: ...

    @overload
    def __getitem__(self, index: slice) -> List[Attack]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Attack, List[Attack]]:
        return self._attacks[index]

    def __len__(self) -> int:
        return len(self._attacks)

    def to_json(self, path: Path) -> None:
        """Writes the records as JSON Lines, as `safer attack -o` does. An existing file is overwritten. For a function,
        program or service :func:`attack` must have been given a `model_name`."""
        if not self._named:
            raise InvalidError("model_name: attack with one to write the records: they say which model was asked")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in self._lines)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row for each text. Needs pandas."""
        pandas = importlib.import_module("pandas")
        return pandas.DataFrame([{name: getattr(record, name) for name in _FIELDS} for record in self], columns=_FIELDS)

    def __repr__(self) -> str:
        s = self.summary
        low, high = s.adversarial_interval or (0.0, 1.0)
        return "\n".join([
            f"{'texts':22}  {s.texts:6,}",
            f"{'clean':22}  {percent(s.clean_accuracy):>7}  right before the attack",
            f"{'adversarial':22}  {percent(s.adversarial_accuracy):>7}  and after it ({self.config['method']}; "
            f"95%: {percent(low)} to {percent(high, up=True)})",
            f"{'succeeded':22}  {s.succeeded:6,}  of {s.texts - s.skipped:,}",
            f"{'queries':22}  {s.queries:6,}, {s.seconds:.1f} s"])


def _options(*, method: str, smoothed: bool, n: int, radius: Radius, max_queries: int, population: int, iterations: int, tries: int,
             alpha: float, seed: int, threads: int, shard: Union[str, Tuple[int, int], None], delete: Union[float, str], words: int,
             groups: Optional[int] = None, same_pos: Optional[Path] = None, vectors: Optional[Path] = None, min_cosine: float = 0,
             min_similarity: float = 0) -> c.AttackOptions:
    o = default_options("attack", c.AttackOptions)
    for name, value in (("n", n), ("max_queries", max_queries), ("seed", seed), ("threads", threads), ("words", words)):
        if value < 0 or value >= 2**63:
            raise InvalidError(f"{name}: {value}")
    o.method, o.smoothed, o.n, o.radius, o.max_queries = choice("attack_method", method), smoothed, n, radius_to_c(radius), max_queries
    o.population, o.iterations, o.tries, o.alpha, o.seed, o.threads = population, iterations, tries, alpha, seed, threads
    o.shard, o.shards = shard_numbers(shard)
    o.deletion, o.words = deletion_of(delete, groups), words
    o.same_pos, o.vectors, o.min_cosine, o.min_similarity = optional_bytes(same_pos), optional_bytes(vectors), min_cosine, min_similarity
    return o


def attack(predict: Predict, texts: Texts, labels: Optional[Sequence[Any]] = None, lexicon: Optional[Lexicon] = None, *,
           method: str = "textfooler", smoothed: bool = False, n: int = 200, radius: Radius = "all", max_queries: int = 0,
           population: int = 60, iterations: int = 40, tries: int = 100, alpha: float = 0.001, seed: int = 1, batch: int = 256,
           delete: Union[float, str] = 0, groups: Optional[int] = None, words: int = 2000, same_pos: Optional[Path] = None,
           vectors: Optional[Path] = None, min_cosine: float = 0, min_similarity: float = 0, classes: Optional[Sequence[Any]] = None, random: bool = False,
           function: bool = False, cache: bool = False,
           output: Optional[Path] = None, resume: bool = False, ids: Optional[Sequence[Any]] = None, model_name: Optional[str] = None,
           threads: int = 0, shard: Union[str, Tuple[int, int], None] = None, progress: ProgressOption = None) -> Attacks:
    """Looks, text by text, for words to exchange for synonyms, to spell otherwise, to put in, to take out or to replace so
    that the answer becomes wrong.

    `predict`, `texts`, `labels`, `lexicon` and the options that are not named here are those of :func:`certify`.

    :param method: "textfooler", "genetic", "pwws", "random", of spellings "homoglyph", "zerowidth" and "typo", or of edits
        "insert", "delete" and "outoflist"
    :param smoothed: attack the smoothed classifier, not the model itself
    :param n: smoothed: draws that vote on a new text
    :param radius: words that may change, or edits: a number, or "all"
    :param groups: smoothed: so many groups of words vote in place of draws; `seed` is then that of the certificates
    :param delete: smoothed: the chance with which draws delete every word, number and mark, or "keep:25", by length; 0: they do not
    :param words: of insert and outoflist: words of the lexicon that are tried, the most frequent
    :param same_pos: of textfooler, genetic, pwws, random and outoflist, as the next three: a folder with WordNet's index files; words are
        replaced only by the same part of speech
    :param vectors: a file of word vectors, for:
    :param min_cosine: of the vectors of a word and its replacement, at least; 0: any
    :param min_similarity: of the mean vectors of the 15 words around a replacement, before and after, at least; 0: any
    :param max_queries: texts that a search may ask about; smoothed: at least n; 0: any number
    :param population: of genetic
    :param iterations: of genetic
    :param tries: of random
    :param alpha: smoothed: a success counts when a test on fresh draws says so at this level
    """
    lexicon = need_lexicon(lexicon)
    o = _options(method=method, smoothed=smoothed, n=n, radius=radius, max_queries=max_queries, population=population,
                 iterations=iterations, tries=tries, alpha=alpha, seed=seed, threads=threads, shard=shard, delete=delete,
                 groups=groups, words=words, same_pos=same_pos, vectors=vectors, min_cosine=min_cosine, min_similarity=min_similarity)
    if resume and output is None:
        raise InvalidError("resume: there is no output to continue")
    listed, labels, ids = rows_of(texts, labels, ids)
    summary = c.AttackSummary()
    with contextlib.nullcontext(os.fspath(output)) if output is not None else scratch_file() as path:
        model, data = prepare(predict, listed, labels, ids, classes, batch=batch, cache=cache, random=random, declared=function,
                              model_name=model_name)
        try:
            if output is not None:
                check_name(model, "to write records")
            o.batch = draws_at_once(model, batch)
            with data, model.asking():
                with Guard(progress) as guard:
                    o.progress = guard.progress
                    call("safer_attack", byref(summary), path_bytes(path), resume, model._pointer, lexicon._pointer, data._pointer, byref(o))
                guard.check()
                with open(path, encoding="utf-8") as file:
                    return Attacks(file, _summarise(summary), named=not is_remote(model) or model.model_name is not None)
        finally:
            if model is not predict:
                model.close()


def attack_against(run: Path, predict: Predict, texts: Texts, labels: Optional[Sequence[Any]] = None, lexicon: Optional[Lexicon] = None, *,
                   n: int = 200, max_queries: int = 0, population: int = 60, iterations: int = 40, tries: int = 100, seed: int = 1,
                   batch: int = 256, words: int = 2000, function: bool = False, cache: bool = False, output: Optional[Path] = None,
                   resume: bool = False, ids: Optional[Sequence[Any]] = None, model_name: Optional[str] = None, threads: int = 0,
                   shard: Union[str, Tuple[int, int], None] = None, progress: ProgressOption = None) -> Against:
    """Attacks every certified text of a run that :func:`certify` wrote, with every method, within its certified radius and edits:
    the cross-check of certificates, as `safer attack --against`. Model, texts, lexicon and `model_name` are the run's own;
    the options are those of :func:`attack`."""
    lexicon = need_lexicon(lexicon)
    o = _options(method="textfooler", smoothed=True, n=n, radius="all", max_queries=max_queries, population=population,
                 iterations=iterations, tries=tries, alpha=0.001, seed=seed, threads=threads, shard=shard, delete=0, words=words)
    if resume and output is None:
        raise InvalidError("resume: there is no output to continue")
    listed, labels, ids = rows_of(texts, labels, ids)
    found = c.AgainstSummary()
    model, data = prepare(predict, listed, labels, ids, None if isinstance(predict, Model) else classes_of(run), batch=batch, cache=cache,
                          random=False, declared=function, model_name=model_name)
    try:
        check_name(model, "to be compared with that of the run")
        o.batch = draws_at_once(model, batch)
        with data, model.asking():
            with Guard(progress) as guard:
                o.progress = guard.progress
                call("safer_attack_against", byref(found), path_bytes(run), optional_bytes(output), resume, model._pointer, lexicon._pointer,
                     data._pointer, byref(o))
            guard.check()
    finally:
        if model is not predict:
            model.close()
    known = {member.name: getattr(found, member.name) for member in fields(Against) if member.name != "groups"}
    known.update(deletion=deletion_name(found.deletion), groups=found.deletion.groups or None, alarm=bool(found.alarm),
                 shard=(found.shard, found.shards) if found.shards else None)
    return Against(**known)
