"""What other programs read about a run, and what is required of it."""
from __future__ import annotations

import os
from ctypes import byref
from dataclasses import dataclass
from typing import List, Mapping, Optional, Tuple, Union

from . import _structs as c
from ._data import encode
from ._guard import Guard
from ._library import call, default_options, library, optional_bytes, path_bytes

Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Gate:
    """A requirement, and whether a run meets it."""

    kind: str  #: "accuracy", "recall" or "not-worse"
    name: str  #: what is required, a few words
    met: bool
    value: float  #: the share of texts; "not-worse": the p-value of the test
    threshold: float  #: what the value must be at least; "not-worse": what it must be above
    texts: Tuple[int, int]  #: those that count, of so many; "not-worse": certificates lost, of those lost or gained
    message: str  #: one line: what was found, and what was required


def evidence(run: Path, output: Path, *, require: Optional[float] = None, recall: Optional[Mapping[str, float]] = None,
             baseline: Optional[Path] = None, not_worse_than: Optional[Path] = None, model_card: Optional[Path] = None) -> List[Gate]:
    """Checks a run that :func:`safer_nlp.certify` wrote to a file, and writes what other programs read about it into the
    folder `output`: a CycloneDX bill of materials, an in-toto statement, SARIF, JUnit XML and a summary in Markdown, as
    `safer evidence` does. Returns the requirements, met or not; docs/evidence.md says what stands in the files.

    :param require: the share of texts that must be certified and answered
    :param recall: the same for the texts of single labels
    :param baseline: another run on the same texts: what held in it and does not any more is listed
    :param not_worse_than: the same, and a paired exact test may not say that the run is worse
    :param model_card: Markdown or JSON, from which name, version, license, tags and link are taken
    """
    recalls = [c.Recall(encode(str(label), "recall"), least) for label, least in (recall or {}).items()]
    o = default_options("evidence", c.EvidenceOptions)
    if require is not None:
        o.require = require
    o.recalls, o.recall_count = (c.Recall * len(recalls))(*recalls), len(recalls)
    o.baseline, o.not_worse_than, o.model_card = map(optional_bytes, (baseline, not_worse_than, model_card))
    count = len(recalls) + (require is not None) + (not_worse_than is not None)
    gates = (c.Gate * (count + 1))()
    with Guard() as guard:
        o.progress = guard.progress
        call("safer_evidence", gates, path_bytes(output), path_bytes(run), byref(o))
    guard.check()
    return [Gate(kind=library.safer_gate_kind_name(g.kind).decode(), name=g.name.decode(errors="replace"), met=bool(g.met), value=g.value,
                 threshold=g.threshold, texts=(g.part, g.whole), message=g.message.decode(errors="replace")) for g in gates[:count]]
