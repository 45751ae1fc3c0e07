"""Texts with labels: from files, and into the library."""
from __future__ import annotations

import ctypes
import hashlib
import os
from ctypes import byref, c_size_t
from typing import Any, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _structs as c
from ._answers import kind
from ._errors import InputError, InvalidError
from ._handle import Handle
from ._library import choice, default_options, library, make, optional_bytes, path_bytes, string_array
from ._tables import Column, is_binary_file, is_table, read_table


class _Rows(NamedTuple):
    texts: List[str]
    labels: List[Optional[str]]  #: None for a row without one
    ids: List[str]


class Data(_Rows):
    """A data set, in the order of its file: texts, labels (None for a row without one) and ids."""

    #: Of its file, without folders; "memory" when it was made of lists.
    name = "memory"
    #: How a model labelled it: a :class:`safer_nlp.Labelling` of what :func:`safer_nlp.label` returns, else None.
    labelling: Any = None

    @property
    def sha256(self) -> str:
        """Over every row in order, as in the records of a run (docs/data.md)."""
        digest = hashlib.sha256()
        for text, label, id_ in zip(self.texts, self.labels, self.ids):
            for part in (id_.encode(), (label or "").encode(), text.encode()):
                digest.update(b"%d:%b," % (len(part), part))
        return digest.hexdigest()


#: What functions take as texts: a list of them, or a data set or table with its labels and ids.
Texts = Union[Sequence[str], Data, Any]


def rows_of(texts: Any, labels: Optional[Sequence[Any]], ids: Optional[Sequence[Any]]) -> "Tuple[Any, Optional[Sequence[Any]], Optional[Sequence[Any]]]":
    """Texts, labels and ids, of which a data set has its own; those that are given besides count."""
    if is_table(texts):
        texts = load_data(texts)
    if isinstance(texts, Data):
        return texts.texts, texts.labels if labels is None else labels, texts.ids if ids is None else ids
    return texts, labels, ids


class DataHandle(Handle):
    """A safer_data."""

    _end = "safer_data_free"

    def label_names(self) -> List[str]:
        """In ascending order: numbers by value first, then words."""
        pointer = self._pointer
        return [library.safer_data_label(pointer, k).decode() for k in range(library.safer_data_label_count(pointer))]


def load_data(source: Any, *, format: Optional[str] = None, sample: Optional[str] = None, limit: int = 0, seed: int = 1,
              repair: bool = False, strip_breaks: bool = False, text_column: Column = None, label_column: Column = None,
              id_column: Column = None, title_column: Column = None, labels: Optional[Mapping[Any, Any]] = None) -> Data:
    """Reads a data set: a file, as `safer certify --data` does (TSV, CSV, JSON Lines, fastText or a folder with one folder per
    class, plain, compressed or ARCHIVE:MEMBER), or a table.

    A table is a DataFrame of pandas or polars, a data set of HuggingFace's `datasets`, whatever has `__arrow_c_stream__`, a dict
    of columns, or the name of a .parquet, .arrow or .feather file, which pyarrow or polars reads. Its columns are known by the
    names that they have in files (docs/data.md), in any case, or chosen here. Functions that take texts take a table too.

    :param sample: of a file: "every:N" of each class, or "random:N"
    :param limit: of a file: only the first so many texts
    :param text_column: a name, or a number from 1; so are `label_column`, `id_column` and `title_column`, whose
        text comes before the text
    :param labels: {label: its name here}; a label that is not there is an error
    """
    columns = dict(text=text_column, label=label_column, id=id_column, title=title_column)
    if is_table(source) or is_binary_file(source):
        if format or sample or limit or repair or strip_breaks:
            raise InvalidError("format, sample, limit, repair and strip_breaks are for files of text; a table can be cut before")
        return Data(*read_table(source, columns, labels))
    if not isinstance(source, (str, os.PathLike)):
        raise InvalidError(f"source: a file or a table is needed, not {kind(source)}")
    o = default_options("data", c.DataOptions)
    o.format, o.sample, o.limit, o.seed = choice("format", format or "auto"), optional_bytes(sample), limit, seed
    o.repair, o.strip_breaks = repair, strip_breaks
    for name, column in columns.items():
        setattr(o, name + "_column", optional_bytes(None if column is None else str(column)))
    if labels is not None:
        if any(set(str(part)) & set(",=") for entry in labels.items() for part in entry):
            raise InvalidError("labels: in the labels of a file no comma and no equals sign may stand")
        o.labels = ",".join(f"{label}={name}" for label, name in labels.items()).encode()
    with DataHandle(make("safer_data_load", path_bytes(source), byref(o))) as data:
        names, pointer = data.label_names(), data._pointer
        result = Data([], [], [])
        result.name = library.safer_data_name(pointer).decode()
        for index in range(library.safer_data_size(pointer)):
            row: c.Row = library.safer_data_row(pointer, index)
            result.texts.append(ctypes.string_at(row.text, row.text_length).decode() if row.text_length else "")
            result.labels.append(names[row.label] if row.label >= 0 else None)
            result.ids.append(row.id.decode())
    return result


def as_list(values: Any, name: str) -> List[Any]:
    """A list of any sequence, NumPy array, pandas column or tensor."""
    if isinstance(values, (set, frozenset)):
        raise InvalidError(f"{name}: a list is needed; a set has no order")
    if isinstance(values, (str, bytes, dict)):
        raise InvalidError(f"{name}: a list is needed, not {kind(values)}")
    if hasattr(values, "tolist"):
        values = values.tolist()
    if not isinstance(values, Iterable):
        raise InvalidError(f"{name}: a list is needed, not {kind(values)}")
    return list(values)


def encode_texts(texts: Any) -> List[bytes]:
    encoded = []
    for index, text in enumerate(as_list(texts, "texts")):
        if not isinstance(text, str):
            raise InvalidError(f"texts[{index}]: a str is needed, not {kind(text)}")
        encoded.append(encode(text, f"texts[{index}]"))
    return encoded


def encode(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name}: no valid text at character {error.start} ({error.reason})") from None


def string_arrays(encoded: Sequence[bytes]) -> "Tuple[ctypes.Array[ctypes.c_char_p], ctypes.Array[c_size_t]]":
    """The strings and their lengths, for C."""
    return string_array(encoded), (c_size_t * len(encoded))(*map(len, encoded))


def make_data(texts: Sequence[bytes], labels: Optional[Sequence[Optional[str]]], ids: Optional[Sequence[Any]]) -> DataHandle:
    """The library's copy of texts, names of labels and ids."""
    if not texts:
        raise InvalidError("texts: there are none")
    for name, values in (("labels", labels), ("ids", ids)):
        if values is not None and len(values) != len(texts):
            raise InvalidError(f"{name}: {len(values):,} for {len(texts):,} texts")
    strings, lengths = string_arrays(texts)
    names = None if labels is None else string_array([None if label is None else encode(label, "labels") for label in labels])
    numbers = None if ids is None else string_array([encode(str(id_), "ids") for id_ in ids])
    return DataHandle(make("safer_data_from_texts", strings, lengths, names, numbers, len(texts)))
