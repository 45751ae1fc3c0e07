"""Lexicons: which words may stand for which, and what the smoothed classifier draws."""
from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from ctypes import CDLL, byref, cast, POINTER, c_char_p, c_size_t, c_void_p, create_string_buffer, string_at
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _structs as c
from ._answers import label_name
from ._data import Data, DataHandle, Texts, as_list, encode, encode_texts, make_data, rows_of
from ._errors import InvalidError
from ._guard import Guard, ProgressOption
from ._handle import Handle
from ._tables import is_table
from ._library import call, choice, default_options, library, make, optional_bytes, path_bytes, string_array

Path = Union[str, "os.PathLike[str]"]
Paths = Union[Path, Sequence[Path]]
#: Texts whose words count: files, data sets or tables, one or several.
Sources = Union[Path, Data, Sequence[Any], Any]

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")  # letters, with apostrophes between them (docs/lexicon.md)

_DOUBTS = ("function word", "antonyms", "part of speech", "distant")


def _free(memory: Any) -> None:
    """What the library says ends with free()."""
    CDLL(None).free(cast(memory, c_void_p))


@dataclass(frozen=True)
class Word:
    """One word of a lexicon."""

    word: str
    count: int  #: occurrences in the data that the lexicon was built from
    component: int  #: words that synonyms connect have the same number
    synonyms: Tuple[str, ...]  #: what an attacker may put in its place
    similarity: Optional[Tuple[float, ...]]  #: of each synonym, where it is known
    support: Tuple[str, ...]  #: what the smoothed classifier draws in its place
    weights: Tuple[int, ...]  #: support[i] is drawn with probability weights[i] / total
    total: int
    overlap: float  #: what remains of that distribution under the worst synonym, rounded down
    worst: Optional[str]  #: that synonym


@dataclass(frozen=True)
class Doubtful:
    """A pair of synonyms that a person should look at."""

    word: str
    synonym: str
    doubts: Tuple[str, ...]  #: "function word", "antonyms", "part of speech", "distant": all that apply, the worst first
    similarity: Optional[float]  #: where it is known


_Pair = Tuple[str, str]


@dataclass(frozen=True)
class LexiconDiff:
    """What two lexicons say differently; true if there is anything. Of two lists the first is what only the first lexicon has."""

    words: Tuple[Tuple[str, ...], Tuple[str, ...]]
    pairs: Tuple[Tuple[_Pair, ...], Tuple[_Pair, ...]]  #: of synonyms
    cuts: Tuple[Tuple[_Pair, ...], Tuple[_Pair, ...]]  #: pairs that were cut or filtered
    drawn: Tuple[str, ...]  #: words of both that draw from other words
    kernels: Tuple[str, str]
    folds: Tuple[Optional[str], Optional[str]]
    protected: Tuple[Tuple[Any, ...], Tuple[Any, ...]]  #: by each, the same or not: its built-in list, and digests of files

    def __bool__(self) -> bool:
        return (any(only for both in (self.words, self.pairs, self.cuts) for only in both) or bool(self.drawn)
                or any(both[0] != both[1] for both in (self.kernels, self.folds, self.protected)))


@dataclass(frozen=True)
class LexiconInfo:
    """The size of a lexicon and where it comes from."""

    words: int
    pairs: int
    words_with_synonyms: int
    mean_synonyms: float  #: of those
    components: int  #: of at least two words
    largest_components: Tuple[int, ...]
    kernel_rows: int
    kernel_entries: int
    largest_support: int
    kernel: str
    provenance: Mapping[str, Any]  #: how it was made, from which files
    sha256: str  #: of the whole file, as in the records of a run
    bytes: int
    directed: bool  #: some synonyms may count one way only


@dataclass(frozen=True)
class Survey:
    """What a lexicon means for texts. The product of a text's R smallest overlaps is what is left of the smoothing when R
    words change: only texts with a product above one half can be certified against that."""

    texts: int
    tokens: int  #: words in them
    known_tokens: int  #: in the lexicon
    tokens_with_synonyms: int
    without_synonyms: int  #: texts in which no word has one: their certificates would be empty
    quantiles: Mapping[Union[int, str], Tuple[float, ...]]  #: by R: of that product, minimum, 5, 25, 50, 75, 95 %, maximum
    above_half: Mapping[Union[int, str], float]  #: by R: the share of texts with a product above one half
    caution: Optional[str] = None  #: why certificates of these texts would say little, as with a lexicon of another language


@contextlib.contextmanager
def _as_files(sources: Optional[Sources]) -> Iterator[Optional[List[Path]]]:
    """The files of texts: data sets and tables are written to such for a while, as memory.jsonl."""
    if sources is None or isinstance(sources, (str, os.PathLike)):
        yield None if sources is None else [sources]
        return
    files: List[Path] = []
    with tempfile.TemporaryDirectory(prefix="safer-") as folder:
        for source in [sources] if isinstance(sources, Data) or is_table(sources) else sources:
            if not isinstance(source, (str, os.PathLike)):
                texts, labels, _ = rows_of(source, None, None)
                path = os.path.join(folder, f"memory{len(files) or ''}.jsonl")
                with open(path, "wb") as file:
                    for text, label in zip(encode_texts(texts), labels or [None] * len(texts)):
                        file.write(json.dumps({"text": text.decode(), "label": label}).encode() + b"\n")
                source = path
            files.append(source)
        yield files


class Lexicon(Handle):
    """Synonyms, and the distribution that substitutes of each word are drawn from.

    Made by :meth:`build`, :meth:`import_` or :meth:`load`. It cannot be changed; any number
    of threads may use one.

    >>> lexicon = safer.Lexicon.load("demo.lex")
    >>> lexicon.show("good").synonyms
    ('great', ...)
    >>> lexicon.changeable("A good film.")
    ['good', 'film']
    """

    _end = "safer_lexicon_free"

    def __init__(self, address: int, report: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(address)
        self._info: Optional[LexiconInfo] = None
        #: What happened while it was made (None for a loaded one): see safer_lexicon_report.
        self.report = report

    # ---- making one

    @classmethod
    def load(cls, path: Path) -> "Lexicon":
        """Opens a .lex file. A damaged one is refused, and so is one that does not mean what it says: overlaps, words and
        kernel are checked again, as `safer lexicon check` does."""
        return cls(make("safer_lexicon_open", path_bytes(path)))

    @classmethod
    def build(cls, vectors: Path, *, vocab: Optional[Path] = None, vocab_from: Optional[Sources] = None,
              min_count: Optional[int] = None, repair: bool = False, synonyms: Optional[Paths] = None,
              antonyms: Optional[Paths] = None, counterfit: Optional[int] = None, all_but_the_top: Optional[int] = None,
              threshold: Optional[float] = None, metric: Optional[str] = None, simlex: Optional[Path] = None,
              exclude: Optional[Path] = None, protect: Optional[Path] = None, kernel: Optional[str] = None,
              fold: Optional[str] = None, dropped: Optional[Path] = None, function_words: bool = True, keep_antonyms: bool = False,
              max_component: int = 0, wordnet: Optional[Path] = None, max_frequency: float = 0, same_pos: Optional[Path] = None,
              nearest: int = 0, threads: int = 0, progress: ProgressOption = None) -> "Lexicon":
        """From word vectors: every pair at least `threshold` similar is a pair of synonyms.

        The options are those of `safer lexicon build`; None stands for its default. English function words are protected
        unless `function_words` is false (`--protect none`).
        The `kernel` is by default "auto": "representative", unless trials on the first of `vocab_from` find one that certifies
        clearly more of its labelled texts (:meth:`choose`).
        `max_frequency`, `same_pos` (a folder with WordNet's index files) and `nearest` leave out pairs, which
        ``export(what="cuts")`` lists; 0 and None leave out none.
        `synonyms` and `antonyms` take one path or several; so does `vocab_from`, which also takes what :func:`load_data`
        returns and tables, such as a DataFrame. `progress` is as in :func:`safer_nlp.certify`."""
        return cls._make("safer_lexicon_build", progress, vectors=vectors, vocab=vocab, vocab_from=vocab_from, min_count=min_count,
                         repair=repair, synonyms=synonyms, antonyms=antonyms, counterfit=counterfit,
                         all_but_the_top=all_but_the_top, threshold=threshold, metric=metric, simlex=simlex, exclude=exclude,
                         protect=protect, kernel=kernel, fold=fold, dropped=dropped, function_words=function_words, keep_antonyms=keep_antonyms,
                         max_component=max_component, wordnet=wordnet, max_frequency=max_frequency, same_pos=same_pos, nearest=nearest,
                         threads=threads)

    @classmethod
    def import_(cls, table: Optional[Path] = None, *, wordnet: Optional[Path] = None, vectors: Optional[Path] = None,
                vocab: Optional[Path] = None, vocab_from: Optional[Sources] = None, min_count: Optional[int] = None,
                repair: bool = False, directed: bool = False, exclude: Optional[Path] = None, protect: Optional[Path] = None,
                kernel: Optional[str] = None, fold: Optional[str] = None, antonyms: Optional[Paths] = None,
                dropped: Optional[Path] = None, function_words: bool = True, keep_antonyms: bool = False, max_component: int = 0,
                max_frequency: float = 0, same_pos: Optional[Path] = None, nearest: int = 0, threads: int = 0, progress: ProgressOption = None) -> "Lexicon":
        """From a table of synonyms (JSON, or lines word<TAB>synonyms) or a folder with WordNet.

        The options are those of `safer lexicon import`; None stands for its default. `vocab_from` takes what it takes in
        :meth:`build`."""
        return cls._make("safer_lexicon_import", progress, table=table, wordnet=wordnet, vectors=vectors, vocab=vocab,
                         vocab_from=vocab_from, min_count=min_count, repair=repair, directed=directed, exclude=exclude,
                         protect=protect, kernel=kernel, fold=fold, dropped=dropped, antonyms=antonyms, function_words=function_words,
                         keep_antonyms=keep_antonyms, max_component=max_component, max_frequency=max_frequency, same_pos=same_pos,
                         nearest=nearest, threads=threads)

    @classmethod
    def _make(cls, function: str, progress: ProgressOption, *, vocab_from: Optional[Sources], **options: Any) -> "Lexicon":
        with _as_files(vocab_from) as files:
            return cls._make_from_files(function, progress, vocab_from=files, **options)

    @classmethod
    def _make_from_files(cls, function: str, progress: ProgressOption, **options: Any) -> "Lexicon":
        o = default_options("lexicon", c.LexiconOptions)
        report = c.LexiconReport()
        kept: List[Any] = []  # what the options point to
        for name, value in options.items():
            if value is None:
                continue
            if name in ("vocab_from", "synonyms", "antonyms"):
                paths = [value] if isinstance(value, (str, os.PathLike)) else list(value)
                strings = string_array([path_bytes(path) for path in paths])
                kept.append(strings)
                setattr(o, name, cast(strings, POINTER(c_char_p)))
                setattr(o, name + "_count", len(paths))
            elif name == "metric":
                o.metric = choice("metric", value)
            elif isinstance(value, (str, os.PathLike)):
                setattr(o, name, path_bytes(value))
            else:
                setattr(o, name, value)
        with Guard(progress) as guard:
            o.progress = guard.progress
            address = make(function, byref(o), byref(report))
        guard.check()
        made = cls(address, _report_dict(report))
        first = o.vocab_from[0] if o.vocab_from_count else None
        if o.kernel != b"auto" or (first and os.path.exists(first) and not os.path.isfile(first) and not os.path.isdir(first)):
            return made  # a pipe cannot be read again: "representative"
        with made:
            if first is None:
                return made._choose(None, None, 1, o.threads, progress)
            reading = default_options("data", c.DataOptions)
            reading.repair = o.repair
            with DataHandle(make("safer_data_load", first, byref(reading))) as data:
                return made._choose(data, None, 1, o.threads, progress)

    def choose(self, texts: Texts, labels: Optional[Sequence[Any]] = None, *, most_texts: Optional[int] = None, seed: int = 1,
               threads: int = 0, progress: ProgressOption = None) -> "Lexicon":
        """The same words and synonyms with the kernel that certifies most, as `safer lexicon build --kernel auto` finds it:
        for each kernel an n-gram classifier learns from nine tenths of the texts and certifies the rest. What was tried is in
        `report["kernel_choice"]`. Give training data, not the texts that will be certified.

        :param texts: texts, or :class:`safer_nlp.Data` or a table, which have their labels with them
        :param labels: a label for each
        :param most_texts: of more so many are used, chosen at random; 10,000"""
        listed, names, _ = rows_of(texts, labels, None)
        encoded = encode_texts(listed)
        strings = None if names is None else [None if name is None else label_name(name) for name in as_list(names, "labels")]
        with make_data(encoded, strings, None) as data:
            return self._choose(data, most_texts, seed, threads, progress)

    def _choose(self, data: Optional[DataHandle], most_texts: Optional[int], seed: int, threads: int, progress: ProgressOption) -> "Lexicon":
        if not 0 <= seed < 2**63:
            raise InvalidError(f"seed: {seed}")
        o = default_options("choose", c.ChooseOptions)
        if most_texts is not None:
            o.most_texts = most_texts
        o.seed, o.threads = seed, threads
        found = c.Choice()
        with Guard(progress) as guard:
            o.progress = guard.progress
            address = make("safer_lexicon_choose", byref(found), self._pointer, None if data is None else data._pointer, byref(o))
        guard.check()
        return Lexicon(address, {**(self.report or {}), "kernel_choice": choice_dict(found, "kernel")})

    def with_kernel(self, kernel: str, *, threads: int = 0) -> "Lexicon":
        """The same words and synonyms with another kernel: "topk:K", "component", "representative"."""
        return Lexicon(make("safer_lexicon_with_kernel", self._pointer, optional_bytes(kernel), threads))

    def save(self, path: Path) -> None:
        """Writes a .lex file, whole or not at all."""
        call("safer_lexicon_save", self._pointer, path_bytes(path))

    def export(self, path: Optional[Path] = None, what: str = "synonyms", *, json: bool = False) -> str:
        """A table of all words, a line for each, or one JSON object: "synonyms", "kernel", "overlap" or "cuts",
        as `safer lexicon export` prints it. Returned and, with a `path`, written."""
        parts: List[bytes] = []
        with Guard() as guard:
            write = c.WRITE(lambda context, at, length: guard.run(lambda: parts.append(string_at(at, length))))
            call("safer_lexicon_export", self._pointer, choice("export", what), json, write, None)
        guard.check()
        table = b"".join(parts).decode()
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(table)
        return table

    def stats(self, texts: Texts, *, threads: int = 0, progress: ProgressOption = None) -> "Survey":
        """What the lexicon means for texts: how many words have synonyms, and how much of the smoothing survives, as
        `safer lexicon stats --data` does."""
        survey = c.Survey()
        listed, _, _ = rows_of(texts, None, None)
        with make_data(encode_texts(listed), None, None) as data:
            with Guard(progress) as guard:
                call("safer_lexicon_survey", byref(survey), self._pointer, data._pointer, threads, byref(guard.progress))
            guard.check()
        caution = create_string_buffer(300)
        library.safer_survey_caution(byref(survey), self._pointer, caution, len(caution))
        return Survey(survey.texts, survey.tokens, survey.known_tokens, survey.tokens_with_synonyms, survey.without_synonyms,
                      {"all" if p.radius == c.ALL else p.radius: tuple(p.quantiles) for p in survey.products},
                      {"all" if p.radius == c.ALL else p.radius: p.above_half for p in survey.products},
                      caution.value.decode() or None)

    def audit(self, *, wordnet: Optional[Path] = None, antonyms: Paths = (), distant: float = 0.82) -> List["Doubtful"]:
        """The pairs of synonyms that a person should look at, those with the worst doubt first, as `safer lexicon audit`.

        :param wordnet: a folder with WordNet, for antonyms and parts of speech
        :param antonyms: files, two words per line
        :param distant: pairs below this similarity are distant
        """
        files = [path_bytes(file) for file in ([antonyms] if isinstance(antonyms, (str, os.PathLike)) else antonyms)]
        o = default_options("audit", c.AuditOptions)
        o.wordnet, o.antonyms, o.antonyms_count, o.distant = optional_bytes(wordnet), string_array(files), len(files), distant
        found, count = POINTER(c.Doubtful)(), c_size_t()
        call("safer_lexicon_audit", byref(found), byref(count), self._pointer, byref(o))
        try:
            return [Doubtful(self._name(pair.word), self._name(pair.synonym),
                             tuple(_DOUBTS[i] for i in range(len(_DOUBTS)) if pair.doubts >> i & 1),
                             None if pair.similarity != pair.similarity else pair.similarity) for pair in found[:count.value]]
        finally:
            _free(found)

    def diff(self, other: "Lexicon") -> LexiconDiff:
        """What this lexicon and another say differently, as `safer lexicon diff`: counts, vectors and names of files are not compared.

        >>> lexicon = safer.Lexicon.load("demo.lex")
        >>> lexicon.diff(lexicon.with_kernel("topk:2")).kernels
        (..., 'topk:2')
        >>> bool(lexicon.diff(lexicon))
        False
        """
        mine, its = ({word: lexicon.show(word) for word in lexicon} for lexicon in (self, other))
        return LexiconDiff(
            words=(tuple(w for w in mine if w not in its), tuple(w for w in its if w not in mine)),
            pairs=(_pairs_of_one(mine, its), _pairs_of_one(its, mine)),
            cuts=(_cuts_of_one(self, other), _cuts_of_one(other, self)),
            drawn=tuple(w for w in mine if w in its and _drawn(mine[w]) != _drawn(its[w])),
            kernels=(self.kernel, other.kernel), folds=(self.folds, other.folds), protected=(_protected(self), _protected(other)))

    # ---- what it is

    @property
    def info(self) -> LexiconInfo:
        if self._info is None:
            i = library.safer_lexicon_describe(self._pointer)
            self._info = LexiconInfo(
                i.words, i.pairs, i.words_with_synonyms, i.mean_synonyms, i.components,
                tuple(size for size in i.largest_components if size), i.kernel_rows, i.kernel_entries, i.largest_support,
                i.kernel.decode(), json.loads(i.provenance or b"{}"), self.sha256, i.bytes, bool(i.directed))
        return self._info

    @property
    def words(self) -> int:
        """How many there are."""
        return self.info.words

    @property
    def kernel(self) -> str:
        return self.info.kernel

    @property
    def folds(self) -> Optional[str]:
        """The steps of its fold, as "nfkc,case"; None: texts are read as they are."""
        address = library.safer_lexicon_fold(self._pointer)
        return library.safer_fold_steps(address).decode() if address else None

    def fold(self, text: str) -> str:
        """The text as whoever has this lexicon reads it: all texts that fold alike are one text. Without a fold, the text itself."""
        address = library.safer_lexicon_fold(self._pointer)
        encoded, found = encode(text, "text"), [text]

        def take(context: Any, at: Optional[int], length: int) -> int:
            found[0] = string_at(at, length).decode() if at and length else ""
            return 0

        if address:
            call("safer_fold_apply", address, encoded, len(encoded), c.WRITE(take), None)
        return found[0]

    @property
    def name(self) -> str:
        """Of its file, without folders; "memory" when it was just made."""
        name: bytes = library.safer_lexicon_name(self._pointer)
        return name.decode()

    @property
    def sha256(self) -> str:
        """Of its file, as sha256sum prints it."""
        digest: bytes = library.safer_lexicon_sha256(self._pointer)
        return digest.decode()

    # ---- words

    def changeable(self, text: str) -> List[str]:
        """The words of a text that may change, as they are written in it (in its folded form, where the lexicon has a fold):
        its slots, in order."""
        read = self.fold(text)
        plain = read if read.isascii() else "".join(k if k.isalpha() or k in "'\u2019" else " " for k in read)
        return [read[m.start():m.end()] for m in _WORD.finditer(plain) if self._changes(m[0].replace("\u2019", "'"))]

    def _changes(self, word: str) -> bool:
        number = self._find(word)
        if number is None:
            return False
        w: c.Word = library.safer_lexicon_word(self._pointer, number)
        return bool(w.synonym_count) or w.support_count != 1 or w.support[0] != number

    def _find(self, word: str) -> Optional[int]:
        try:
            bytes_ = word.encode()
        except UnicodeEncodeError:
            return None
        number: int = library.safer_lexicon_find(self._pointer, bytes_, len(bytes_))
        return None if number == c.NO_WORD else number

    def _number(self, word: str) -> int:
        number = self._find(word)
        if number is None:
            raise KeyError(f"{word!r} is not in the lexicon")
        return number

    def _name(self, number: int) -> str:
        name: bytes = library.safer_lexicon_word(self._pointer, number).word
        return name.decode()

    def show(self, word: str) -> Word:
        """What the lexicon knows of a word, in any case; KeyError when it is not there."""
        w: c.Word = library.safer_lexicon_word(self._pointer, self._number(word))
        return Word(
            w.word.decode(), w.count, w.component,
            tuple(self._name(z) for z in w.synonyms[:w.synonym_count]),
            tuple(w.similarity[:w.synonym_count]) if w.similarity else None,
            tuple(self._name(z) for z in w.support[:w.support_count]),
            tuple(w.weights[:w.support_count]), w.total, w.overlap,
            None if w.worst == c.NO_WORD else self._name(w.worst))

    __getitem__ = show

    def overlap(self, word: str, other: str) -> float:
        """The share that the two words' distributions have in common, rounded down."""
        result: float = library.safer_lexicon_overlap(self._pointer, self._number(word), self._number(other))
        return result

    def __len__(self) -> int:
        return self.words

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self._find(word) is not None

    def __iter__(self) -> Iterator[str]:
        return (self._name(number) for number in range(self.words))

    # ---- copies

    def __copy__(self) -> "Lexicon":
        return self  # it cannot be changed

    def __deepcopy__(self, memo: Any) -> "Lexicon":
        return self

    def __reduce__(self) -> Any:
        """Pickled as the bytes of its file, so that other processes can have it."""
        with tempfile.TemporaryDirectory(prefix="safer-") as folder:
            path = os.path.join(folder, "words.lex")
            self.save(path)
            with open(path, "rb") as file:
                return _from_bytes, (file.read(), self.name)

    def __repr__(self) -> str:
        if not self._finalizer.alive:
            return "<safer_nlp.Lexicon, closed>"
        return f"<safer_nlp.Lexicon of {self.words:,} words, {self.info.pairs:,} pairs, kernel {self.kernel}>"


def _drawn(word: Word) -> Any:
    return word.total, dict(zip(word.support, word.weights))


def _pairs_of_one(mine: Mapping[str, Word], others: Mapping[str, Word]) -> Tuple[_Pair, ...]:
    """The pairs of synonyms that the others lack. A pair that counts both ways is listed once."""
    found, place = [], {word: number for number, word in enumerate(mine)}
    links, theirs = ({(word, y) for word, known in words.items() for y in known.synonyms} for words in (mine, others))
    for word, known in mine.items():
        for y in known.synonyms:
            back = (y, word) in links
            if not (back and place[y] < place[word]) and not ((word, y) in theirs and (not back or (y, word) in theirs)):
                found.append((word, y))
    return tuple(found)


def _cuts(lexicon: Lexicon) -> List[_Pair]:
    return [(pair[0], pair[1]) for kind in ("filters", "cuts") for pair in lexicon.info.provenance.get(kind, {}).get("pairs", ())]


def _cuts_of_one(lexicon: Lexicon, other: Lexicon) -> Tuple[_Pair, ...]:
    known = {frozenset(pair) for pair in _cuts(other)}
    return tuple(pair for pair in _cuts(lexicon) if frozenset(pair) not in known)


def _protected(lexicon: Lexicon) -> Tuple[Any, ...]:
    made = lexicon.info.provenance
    files = [file["sha256"] for file in made.get("files", ()) if file.get("role") == "protect" and "sha256" in file]
    return tuple([made["protected"]] if made.get("protected") is not None else []) + tuple(files)


def _from_bytes(image: bytes, name: str) -> Lexicon:
    """What was pickled: checked as any file is, and under its old name."""
    with tempfile.TemporaryDirectory(prefix="safer-") as folder:
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(image)
        return Lexicon.load(path)  # it stays mapped


def choice_dict(found: c.Choice, what: str) -> Mapping[str, Any]:
    """What was tried; `what`, "kernel" or "arch", is the member with its name."""
    trials = [{what: t.name.decode(), **{name: getattr(t, name) for name, *_ in c.Trial._fields_[1:]}} for t in found.trials[:found.trial_count]]
    return {"untried": found.untried.decode() if found.untried else None, "labelled": found.labelled, "texts": found.texts,
            "held_out": found.held_out, "trials": trials}


def _report_dict(report: c.LexiconReport) -> Mapping[str, Any]:
    known: Dict[str, Any] = {name: getattr(report, name) for name, *_ in c.LexiconReport._fields_}
    known["stages"] = {stage.name.decode(): stage.seconds for stage in report.stages[:known.pop("stage_count")]}
    known["ladder"] = {rung.k: rung.share for rung in report.ladder[:known.pop("ladder_count")]}
    return known
