"""Columns of a table that speaks the Arrow C stream interface (`__arrow_c_stream__`: pyarrow, polars, DuckDB, datasets,
pandas 2.2, ...), read with ctypes alone: no Arrow library is needed.

The interface is https://arrow.apache.org/docs/format/CStreamInterface.html: a capsule holds a stream, whose schema is a
struct of columns and whose items are batches of rows. Buffers of a batch belong to it; what is read is copied before it is
released. Read are strings (utf8, large_utf8, string views), integers, floats, booleans, nulls, and dictionaries of these,
which is what data sets of texts and labels are made of; any other column may be there, but cannot be chosen.
"""
from __future__ import annotations

import ctypes
import struct
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p, string_at
from typing import Any, Callable, Dict, List, Optional, Sequence

from ._errors import InputError


class _Schema(Structure):
    pass


class _Array(Structure):
    pass


class _Stream(Structure):
    pass


_Schema._fields_ = [("format", c_char_p), ("name", c_char_p), ("metadata", c_void_p), ("flags", c_int64), ("n_children", c_int64),
                    ("children", POINTER(POINTER(_Schema))), ("dictionary", POINTER(_Schema)),
                    ("release", CFUNCTYPE(None, POINTER(_Schema))), ("private_data", c_void_p)]
_Array._fields_ = [("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64), ("n_children", c_int64),
                   ("buffers", POINTER(c_void_p)), ("children", POINTER(POINTER(_Array))), ("dictionary", POINTER(_Array)),
                   ("release", CFUNCTYPE(None, POINTER(_Array))), ("private_data", c_void_p)]
_Stream._fields_ = [("get_schema", CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Schema))),
                    ("get_next", CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Array))),
                    ("get_last_error", CFUNCTYPE(c_char_p, POINTER(_Stream))),
                    ("release", CFUNCTYPE(None, POINTER(_Stream))), ("private_data", c_void_p)]

_NUMBERS = {"c": "b", "C": "B", "s": "h", "S": "H", "i": "i", "I": "I", "l": "q", "L": "Q", "f": "f", "g": "d"}

#: Chooses columns: gets their names, returns those that are wanted.
Choose = Callable[[Sequence[str]], Sequence[str]]


def read_stream(table: Any, choose: Choose) -> Dict[str, List[Any]]:
    """The columns that `choose` wants, as lists."""
    capsule = table.__arrow_c_stream__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    stream = ctypes.cast(pointer(capsule, b"arrow_array_stream"), POINTER(_Stream))
    schema = _Schema()
    _check(stream, stream.contents.get_schema(stream, byref(schema)))
    try:
        if schema.format != b"+s":
            raise InputError("the Arrow stream is of single values; a table is needed")
        names = [schema.children[k].contents.name.decode() for k in range(schema.n_children)]
        wanted = list(choose(names))
        columns: Dict[str, List[Any]] = {name: [] for name in wanted}
        while True:
            batch = _Array()
            _check(stream, stream.contents.get_next(stream, byref(batch)))
            if not batch.release:  # the end
                return columns
            try:
                for name in wanted:
                    at = names.index(name)
                    columns[name] += _read(schema.children[at].contents, batch.children[at].contents, batch.offset, batch.length, name)
            finally:
                batch.release(byref(batch))
    finally:
        schema.release(byref(schema))  # the stream itself ends with its capsule


def _check(stream: Any, status: int) -> None:
    if status:
        words = stream.contents.get_last_error(stream)
        raise InputError(f"the Arrow stream failed: {words.decode(errors='replace') if words else f'error {status}'}")


def _read(schema: _Schema, array: _Array, first: int, count: int, name: str) -> List[Any]:
    """Values first, first + 1, ... of a column; None for null."""
    start = array.offset + first
    if schema.dictionary:
        known = _read(schema.dictionary.contents, array.dictionary.contents, 0, array.dictionary.contents.length, name)
        return [None if index is None else known[index] for index in _values(schema.format.decode(), array, start, count, name)]
    return _values(schema.format.decode(), array, start, count, name)


def _values(kind: str, array: _Array, start: int, count: int, name: str) -> List[Any]:
    if kind == "n":
        return [None] * count
    if not count:
        return []
    if kind in _NUMBERS:
        width = struct.calcsize("=" + _NUMBERS[kind])
        bytes_ = string_at(array.buffers[1] + start * width, count * width)
        values: List[Any] = list(struct.unpack(f"={count}{_NUMBERS[kind]}", bytes_))
    elif kind == "b":
        bits = string_at(array.buffers[1], (start + count + 7) // 8)
        values = [bool(bits[k >> 3] >> (k & 7) & 1) for k in range(start, start + count)]
    elif kind in ("u", "U"):
        values = _strings(array, start, count, "i" if kind == "u" else "q")
    elif kind == "vu":
        values = _views(array, start, count)
    else:
        raise InputError(f"column \"{name}\": Arrow's type \"{kind}\" is no text, number or truth value")
    return _without_nulls(array, start, values)


def _without_nulls(array: _Array, start: int, values: List[Any]) -> List[Any]:
    if not array.null_count or not array.buffers[0]:
        return values
    valid = string_at(array.buffers[0], (start + len(values) + 7) // 8)
    return [value if valid[k >> 3] >> (k & 7) & 1 else None for k, value in enumerate(values, start)]


def _strings(array: _Array, start: int, count: int, code: str) -> List[Any]:
    width = struct.calcsize("=" + code)
    ends = struct.unpack(f"={count + 1}{code}", string_at(array.buffers[1] + start * width, (count + 1) * width))
    all_ = string_at(array.buffers[2] + ends[0], ends[-1] - ends[0]) if ends[-1] > ends[0] else b""
    return [_text(all_[begin - ends[0]:end - ends[0]]) for begin, end in zip(ends, ends[1:])]


def _views(array: _Array, start: int, count: int) -> List[Any]:
    """Sixteen bytes each: the length, then the string itself up to 12 bytes, or four of it, a buffer and a place in it."""
    views = string_at(array.buffers[1] + 16 * start, 16 * count)
    found = []
    for at in range(0, len(views), 16):
        length, = struct.unpack_from("=i", views, at)
        if length <= 12:
            found.append(_text(views[at + 4:at + 4 + length]))
        else:
            buffer, place = struct.unpack_from("=ii", views, at + 8)
            found.append(_text(string_at(array.buffers[2 + buffer] + place, length)))
    return found


def _text(bytes_: bytes) -> Optional[str]:
    return bytes_.decode("utf-8", "surrogateescape")  # what is no UTF-8 is named where the texts are taken
