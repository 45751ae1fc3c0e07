"""Figures for people: per cent, the table of a notebook, a plot."""
from __future__ import annotations

import html
import importlib
from ctypes import byref, c_double
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple

from ._errors import InvalidError
from ._library import library

if TYPE_CHECKING:
    from ._results import Summary


def interval(part: int, whole: int) -> Optional[Tuple[float, float]]:
    """Wilson's 95% interval."""
    if not whole:
        return None
    low, high = c_double(), c_double()
    library.safer_interval(part, whole, byref(low), byref(high))
    return low.value, high.value


def percent(share: Optional[float], up: bool = False) -> str:
    """A share in per cent with two decimals, cut; `up`: rounded up, for upper ends. What is claimed is never rounded to
    the side that claims more."""
    if share is None:
        return "-"
    return f"{(100 * Decimal(repr(share))).quantize(Decimal('0.01'), ROUND_UP if up else ROUND_DOWN)}%"


def _range(share: Optional[float], whole: int) -> str:
    ends = None if share is None else interval(round(share * whole), whole)
    return "" if ends is None else f"95%: {percent(ends[0])[:-1]} to {percent(ends[1], up=True)[:-1]}"


def _rows(rows: List[List[str]], head: List[str]) -> str:
    def cells(kind: str, row: List[str]) -> str:
        return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in row) + "</tr>"

    return f"<table><thead>{cells('th', head)}</thead><tbody>{''.join(cells('td', row) for row in rows)}</tbody></table>"


def _at(s: Summary) -> Mapping[Any, float]:
    """The headline by radius."""
    return s.stable_at if s.headline[0] == "stable" else s.certified_answered_at


def html_of(s: Summary, radius: str) -> str:
    """The report's figures as tables. Nothing in them comes from texts but labels, which are escaped."""
    name, part, whole = s.headline
    shares: Dict[str, Tuple[Optional[float], int, str]] = {}
    if s.clean_unfolded_accuracy is not None:
        shares["clean, unfolded"] = s.clean_unfolded_accuracy, s.labelled, "the base model itself, texts as they were given"
    shares["clean"] = s.clean_accuracy, s.labelled, "the base model itself"
    shares["smoothed"] = s.smoothed_accuracy, s.labelled, "the vote over random synonyms"
    shares[name] = part / whole if whole else None, whole, f"at radius {radius}"
    if name != "stable":
        shares["certified"] = s.certified_accuracy, s.labelled, "answered or not: the paper's figure"
    found = [f"<p><strong>{html.escape(s.caution)}</strong></p>"] if s.caution else []
    found.append(_rows([[title, percent(share), _range(share, of), meaning] for title, (share, of, meaning) in shares.items()],
                       [f"{s.texts:,} texts", "", "", ""]))
    found.append(_rows([[name, *map(percent, _at(s).values())]], ["words changed", *map(str, _at(s))]))
    if s.labelled and len(s.classes) <= 20:
        found.append(_rows([[k.label, f"{k.texts:,}", percent(k.certified_recall), percent(k.certified_precision)] for k in s.classes],
                           ["label", "texts", "certified recall", "certified precision"]))
    return "<div>" + "".join(found) + f"<p>{s.abstained:,} abstained, {s.exact:,} exact, {s.queries:,} queries. No figure is rounded up.</p></div>"


def plot_of(s: Summary, ax: Any, style: Mapping[str, Any]) -> Any:
    name, _, whole = s.headline
    shares = _at(s)
    if not shares:
        raise InvalidError("plot: there are no texts")
    if ax is None:
        ax = importlib.import_module("matplotlib.pyplot").subplots()[1]
    ends = [interval(round(share * whole), whole) or (0.0, 1.0) for share in shares.values()]
    below = [max(0.0, share - low) for share, (low, _) in zip(shares.values(), ends)]
    above = [max(0.0, high - share) for share, (_, high) in zip(shares.values(), ends)]
    ax.errorbar([str(radius) for radius in shares], list(shares.values()), yerr=[below, above],
                **{"marker": "o", "capsize": 3, "label": name, **style})
    ax.set(xlabel="words that an attacker may change", ylabel=name, ylim=(0, 1.02))
    return ax
