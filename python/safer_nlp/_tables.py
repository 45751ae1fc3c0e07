"""Tables of other packages as data sets: pandas, polars, pyarrow, HuggingFace's datasets, dicts of columns, and files of
Parquet or Arrow, which one of these packages reads."""
from __future__ import annotations

import importlib
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from ._answers import is_missing, kind, label_name
from ._arrow import read_stream
from ._errors import InputError, InvalidError

#: What columns are called, as in files (src/data/columns.c); of several that are there the first of a list counts.
NAMES: Dict[str, Sequence[str]] = {
    "id": ("id", "idx"),
    "label": ("label", "labels", "class", "class index", "class_index", "sentiment", "rating", "category", "stance", "polarity", "target"),
    "title": ("title",),
    "text": ("text", "review", "sentence", "content", "tweet", "comment", "message", "description", "document", "body")}

_BINARY = (".parquet", ".arrow", ".feather")
Column = Union[str, int, None]


def is_table(source: Any) -> bool:
    """Whether it has columns with names. Single columns may have an Arrow stream too."""
    return isinstance(source, Mapping) or hasattr(source, "column_names") or hasattr(source, "columns") \
        or hasattr(source, "__arrow_c_stream__") and hasattr(source, "schema")


def is_binary_file(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike)) and os.fspath(source).endswith(_BINARY)


def read_table(source: Any, columns: Mapping[str, Column], labels: Optional[Mapping[Any, Any]]) -> "tuple[List[str], List[Optional[str]], List[str]]":
    """Texts, labels and ids. `columns` gives names or numbers (from 1) of the columns "text", "label", "id" and "title"."""
    chosen: Dict[str, str] = {}

    def choose(names: Sequence[str]) -> Sequence[str]:
        chosen.update(_choose(list(names), columns))
        return list(dict.fromkeys(chosen.values()))

    table = _columns(_open(source) if is_binary_file(source) else source, choose)
    found = {role: table[name] for role, name in chosen.items()}
    texts = [_string(value, chosen["text"], row) for row, value in enumerate(found["text"], 1)]
    if "title" in found:
        titles = ["" if is_missing(value) else _string(value, chosen["title"], row) for row, value in enumerate(found["title"], 1)]
        texts = [f"{title} {text}" if title else text for title, text in zip(titles, texts)]
    named = [None if is_missing(value) else label_name(value) for value in found.get("label", [None] * len(texts))]
    ids = [str(row) if is_missing(value) else label_name(value) for row, value in enumerate(found.get("id", [None] * len(texts)), 1)]
    return texts, _mapped(named, labels), ids


def _open(path: Any) -> Any:
    """A file of Parquet or Arrow (the format of Feather and of IPC files)."""
    name = os.fspath(path)
    for package, parquet, arrow in (("pyarrow", "parquet.read_table", "feather.read_table"), ("polars", "read_parquet", "read_ipc")):
        function = parquet if name.endswith(".parquet") else arrow
        try:
            module = importlib.import_module(".".join([package, *function.split(".")[:-1]]))
        except ImportError:
            continue
        return getattr(module, function.split(".")[-1])(name)
    raise InvalidError(f"{name}: Parquet and Arrow are read by pyarrow or polars, and neither is installed")


def _columns(source: Any, choose: Any) -> Mapping[str, List[Any]]:
    if hasattr(source, "__arrow_c_stream__"):
        return read_stream(source, choose)
    names = source.column_names if hasattr(source, "column_names") else source.columns if hasattr(source, "columns") else source.keys()
    if isinstance(names, Mapping):  # datasets.DatasetDict
        raise InvalidError(f"texts: these are several data sets ({', '.join(map(str, names))}); choose one")
    found = {}
    for name in choose([str(name) for name in names]):
        values = source[name]
        if hasattr(values, "to_pylist"):  # pyarrow
            values = values.to_pylist()
        found[name] = values.tolist() if hasattr(values, "tolist") else list(values)
    lengths = {len(values) for values in found.values()}
    if len(lengths) > 1:
        raise InputError(f"the columns {', '.join(found)} have different lengths")
    return found


def _choose(names: List[str], columns: Mapping[str, Column]) -> Dict[str, str]:
    """The column of every role that has one."""
    chosen: Dict[str, str] = {}
    for role, wanted in columns.items():
        if wanted is not None:
            chosen[role] = _named(names, wanted, role)
    plain = {name.strip().lower(): name for name in reversed(names) if name not in chosen.values()}
    for role, known in NAMES.items():
        name = next((plain[k] for k in known if k in plain), None)
        if role not in chosen and name is not None:
            chosen[role] = name
    if "text" not in chosen:
        raise InputError(f"no column is called {', '.join(NAMES['text'][:-1])} or {NAMES['text'][-1]}; "
                         f"there are {', '.join(names) or 'none'}: choose one with text_column")
    return chosen


def _named(names: List[str], wanted: Union[str, int], role: str) -> str:
    if isinstance(wanted, int) and 1 <= wanted <= len(names):
        return names[wanted - 1]
    if wanted in names:
        return str(wanted)
    raise InvalidError(f"{role}_column: there is no column {wanted!r}; there are {', '.join(names) or 'none'}")


def _string(value: Any, column: str, row: int) -> str:
    if not isinstance(value, str):
        shown = "missing" if is_missing(value) else kind(value)
        raise InputError(f"column \"{column}\", row {row:,}: the value is {shown}; a str is needed")
    return value


def _mapped(named: List[Optional[str]], labels: Optional[Mapping[Any, Any]]) -> List[Optional[str]]:
    """Labels under other names."""
    if labels is None:
        return named
    known = {label_name(old): label_name(new) for old, new in labels.items()}
    for row, name in enumerate(named, 1):
        if name is not None and name not in known:
            raise InputError(f"row {row:,}: the label {name!r} is not among those that labels names ({', '.join(known)})")
    return [None if name is None else known[name] for name in named]
