"""What is made of runs: pages, and comparisons."""
from __future__ import annotations

import os
from ctypes import POINTER, byref, c_char_p, c_void_p, cast
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Union

from . import _structs as c
from ._data import Texts, as_list, encode_texts, make_data, rows_of
from ._errors import InvalidError
from ._guard import Guard, ProgressOption
from ._lexicon import Lexicon
from ._library import call, default_options, library, make, optional_bytes, path_bytes, string_array
from ._parts import class_names_of
from ._results import Summary, summarise

Path = Union[str, "os.PathLike[str]"]
Paths = Union[Path, Sequence[Path]]


def _list(paths: Paths) -> List[bytes]:
    return [path_bytes(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]


def report(output: Path, runs: Paths, *, texts: Optional[Texts] = None, labels: Optional[Sequence[Any]] = None,
           ids: Optional[Sequence[Any]] = None, lexicons: "Union[Lexicon, Sequence[Lexicon]]" = (), attacks: Paths = (),
           shown: int = 25000, svg: Optional[Path] = None, csv: Optional[Path] = None, title: Optional[str] = None, notes: Optional[Path] = None,
           progress: ProgressOption = None) -> List[Summary]:
    """Writes an HTML page about finished runs, one file that needs no other, as `safer report` does. Returns their
    summaries. Runs are checked as by :func:`verify`; one that does not hold is an error that names its line.

    :param runs: 1 to 16 files of records
    :param texts: the texts of the runs, which records do not hold: with them the page shows them
    :param lexicons: those of the runs, for their words; they need `texts`
    :param attacks: files of :func:`attack` on the runs' models and these texts
    :param shown: texts, at most
    :param svg: a folder for the plots
    :param csv: a folder for the tables
    :param title: of the page
    :param notes: a file of plain text, shown before the figures
    """
    names, attacked = _list(runs), _list(attacks)
    o = default_options("report", c.ReportOptions)
    opened = [lexicons] if isinstance(lexicons, Lexicon) else list(lexicons)
    pointers = (c_void_p * len(opened))(*(lexicon._pointer for lexicon in opened))
    strings = string_array(attacked)
    o.lexicons, o.lexicon_count = cast(pointers, POINTER(c_void_p)), len(opened)
    o.attacks, o.attack_count = cast(strings, POINTER(c_char_p)), len(attacked)
    if shown < 0:
        raise InvalidError(f"shown: {shown}")
    o.texts, o.svg, o.csv = shown, optional_bytes(svg), optional_bytes(csv)
    o.title, o.notes = None if title is None else title.encode(), optional_bytes(notes)
    rows = None
    if texts is not None:
        listed, labels, ids = rows_of(texts, labels, ids)
        rows = make_data(encode_texts(listed), class_names_of(None if labels is None else as_list(labels, "labels"), None),
                         None if ids is None else as_list(ids, "ids"))
        o.data = rows._pointer
    found = (c.Summary * max(1, len(names)))()
    try:
        with Guard(progress) as guard:
            o.progress = guard.progress
            call("safer_report", found, path_bytes(output), string_array(names), len(names), byref(o))
        guard.check()
        return [summarise(summary) for summary in found[:len(names)]]
    finally:
        for summary in found:
            library.safer_summary_free(byref(summary))
        if rows is not None:
            rows.close()


@dataclass(frozen=True)
class Comparison:
    """Two runs on the same texts, text by text. A text held when it was certified and answered for its own label; of
    attacks: answered rightly before and after."""

    first: int  #: which of the runs, from 0
    second: int
    both: int  #: texts that held in both
    only_first: int
    only_second: int
    neither: int
    p_value: float  #: McNemar's exact test, two-sided, rounded up
    adjusted: float  #: the same after Holm, for all pairs compared at once


def compare(runs: Sequence[Path]) -> List[Comparison]:
    """Compares every two of finished runs, of certificates or of attacks, on the same texts: (0, 1), (0, 2), ..., (1, 2),
    ... . What trains and certifies the runs of a recipe is the program, `safer compare`; this is its test."""
    names = _list(runs)
    if len(names) < 2:
        raise InvalidError(f"runs: {len(names)}; at least two are needed")
    opened: List[int] = []
    found = (c.Comparison * (len(names) * (len(names) - 1) // 2))()
    try:
        for name in names:
            opened.append(make("safer_run_read", name))
        call("safer_compare", found, (c_void_p * len(opened))(*opened), len(opened))
        return [Comparison(*(getattr(pair, name) for name, *_ in c.Comparison._fields_)) for pair in found]
    finally:
        for address in opened:
            library.safer_run_free(address)
