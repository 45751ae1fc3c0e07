"""What a model answers, as class numbers.

A model may answer with labels (names, numbers, None for no answer), with rows of scores, or
as a HuggingFace pipeline does. NumPy is used where the answer is an array, and not needed
otherwise.
"""
from __future__ import annotations

import math
import re
from typing import Any, Dict, List, Optional, Sequence

from ._errors import InputError, InvalidError

NO_ANSWER = -1


def is_missing(value: Any) -> bool:
    """None, NaN, or what pandas has for a value that is not there."""
    return value is None or isinstance(value, float) and value != value or type(value).__name__ in ("NAType", "NaTType")


def kind(value: Any) -> str:
    """What a value is instead of what was asked for: "an int", "a list"; a missing one as it is written."""
    name = type(value).__name__
    return repr(value) if is_missing(value) else f"an {name}" if name[0] in "aeiouAEIO" else f"a {name}"


def label_name(label: Any) -> str:
    """The name of a label: its text; whole floats, as pandas makes them of integers, as integers."""
    if hasattr(label, "tolist"):  # a scalar of NumPy or torch
        label = label.tolist()
    if isinstance(label, float):
        if math.isnan(label):
            raise InvalidError("a class is called NaN, which stands for no label")
        if label.is_integer():
            return str(int(label))
    if isinstance(label, bytes):
        raise InvalidError(f"a label is of type bytes ({label!r:.60}); a str or a number is needed")
    return str(label)


def _is_number(name: str) -> bool:
    try:
        float(name)
        return True
    except ValueError:
        return False


class Classes:
    """The classes of a model: their names, and which of them an answer means."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self._index = {name: k for k, name in enumerate(self.names)}
        self._positional = not any(_is_number(name) for name in self.names)

    def find(self, value: Any) -> Optional[int]:
        """The number of a class by its name. Integers are names where names are numbers, else
        positions. None: there is no such class."""
        if hasattr(value, "tolist"):  # a scalar of NumPy or torch
            value = value.tolist()
        if isinstance(value, str):
            return self._index.get(value)
        if isinstance(value, bool):
            found = self._index.get(str(value))
            return found if found is not None else self.find(int(value))
        if isinstance(value, int):
            found = self._index.get(str(value))
            return value if found is None and self._positional and 0 <= value < len(self.names) else found
        if isinstance(value, float):
            found = self._index.get(str(value))
            return self._index.get(str(int(value))) if found is None and value.is_integer() else found
        if value is None or isinstance(value, (bytes, list, tuple, dict)):
            return None
        return self._index.get(str(value))  # a Decimal, a date: named as label_name does

    def __repr__(self) -> str:
        return f"Classes({self.names})"

    def describe(self) -> str:
        shown = ", ".join(self.names[:10])
        return shown + ", ..." if len(self.names) > 10 else shown

    # ---- answers

    def read(self, answers: Any, count: int) -> List[int]:
        """The class of each of `count` answers, or NO_ANSWER."""
        answers = _plain(answers)
        if hasattr(answers, "ndim") and hasattr(answers, "argmax"):  # an array of NumPy
            if answers.ndim == 2 and answers.dtype.kind in "fiu":
                return self._read_array(answers, count)
            if answers.ndim not in (1, 2):
                raise InputError(f"predict returned an array of {answers.ndim} dimensions; labels have one, scores two")
            answers = answers.tolist()
        elif hasattr(answers, "tolist"):
            answers = answers.tolist()
        if isinstance(answers, (str, bytes, dict)) or not hasattr(answers, "__iter__"):
            raise InputError(f"predict returned {_shown(answers)}; a list with an answer for each of its {count} texts is needed")
        answers = list(answers)
        if len(answers) != count:
            raise InputError(f"predict returned {len(answers)} answers for {count} texts")
        kinds = set(map(type, answers))
        if kinds == {str}:
            index = self._index
            try:
                return [index[answer] for answer in answers]
            except KeyError:
                pass  # found again, and named, below
        cache: Dict[Any, int] = {}
        return [self._read_one(answer, place, cache) for place, answer in enumerate(answers)]

    def _read_array(self, scores: Any, count: int) -> List[int]:
        if len(scores) != count:
            raise InputError(f"predict returned scores for {len(scores)} text{'' if len(scores) == 1 else 's'}, but was asked about {count}")
        if scores.shape[1] != len(self.names):
            raise InputError(f"predict returned {scores.shape[1]} scores per text; there are {len(self.names)} classes ({self.describe()})")
        best: List[int] = scores.argmax(axis=1).tolist()  # the first of equals; NaN would win
        # A sum is finite only if its parts are; most calls end here.
        if scores.dtype.kind == "f" and not math.isfinite(scores.sum()):
            for place, row in enumerate(scores.tolist()):
                self._check_scores(row, place)
        return best

    def _read_one(self, answer: Any, place: int, cache: Dict[Any, int]) -> int:
        if answer is None:
            return NO_ANSWER
        key = (type(answer), answer) if isinstance(answer, (str, int, float)) else None
        if key in cache:
            return cache[key]
        if isinstance(answer, dict):
            return self._read_scored([answer], place)
        if hasattr(answer, "tolist"):
            answer = answer.tolist()
        if isinstance(answer, (list, tuple)):
            if answer and isinstance(answer[0], dict):
                return self._read_scored(answer, place)
            return self._read_row(answer, place)
        found = self.find(answer)
        if found is None:
            raise InputError(f"predict answered {_shown(answer)} for text {place} of a batch; the classes are: {self.describe()}")
        if key is not None:
            cache[key] = found
        return found

    def _read_row(self, row: Sequence[Any], place: int) -> int:
        if len(row) != len(self.names):
            raise InputError(f"predict returned {len(row)} scores for text {place} of a batch; "
                             f"there are {len(self.names)} classes ({self.describe()})")
        row = [score.tolist() if hasattr(score, "tolist") else score for score in row]
        self._check_scores(row, place)
        return row.index(max(row))

    def _check_scores(self, row: Sequence[Any], place: int) -> None:
        for k, score in enumerate(row):
            if not isinstance(score, (int, float)) or not math.isfinite(score):
                raise InputError(f"predict returned {_shown(score)} as the score of class \"{self.names[k]}\" "
                                 f"for text {place} of a batch; a finite number is needed")

    def _read_scored(self, entries: Sequence[Any], place: int) -> int:
        """HuggingFace: [{"label": ..., "score": ...}, ...], one or all classes of a text."""
        best, best_score = None, -math.inf
        for entry in entries:
            if not isinstance(entry, dict) or "label" not in entry:
                raise InputError(f"predict answered {_shown(entry)} for text {place} of a batch; "
                                 "a dict of a pipeline has \"label\" and \"score\"")
            score = entry.get("score", 0.0)
            if not isinstance(score, (int, float)) or math.isnan(score):
                raise InputError(f"predict returned {_shown(score)} as the score of {_shown(entry['label'])} for text {place} of a batch")
            if score > best_score:
                best, best_score = entry["label"], score
        found = self.find(best)
        unnamed = re.fullmatch(r"LABEL_(\d+)", best) if found is None and isinstance(best, str) else None
        if unnamed and int(unnamed[1]) < len(self.names):
            return int(unnamed[1])  # what HuggingFace calls class k of a model without names
        if found is None:
            raise InputError(f"predict answered {_shown(best)} for text {place} of a batch; the classes are: {self.describe()}")
        return found


def _plain(answers: Any) -> Any:
    """Out of a model's output object, off the device."""
    if hasattr(answers, "logits"):
        answers = answers.logits
    if hasattr(answers, "detach"):  # torch
        answers = answers.detach().cpu()
        try:
            return answers.numpy()
        except (RuntimeError, TypeError):  # no NumPy, or bfloat16
            return answers.tolist()
    if hasattr(answers, "to_numpy"):  # pandas
        return answers.to_numpy()
    return answers


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
