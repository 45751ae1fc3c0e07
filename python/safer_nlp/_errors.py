"""Failures of the library as exceptions."""
from __future__ import annotations

import re
from typing import Dict, Type

from . import _structs as c


class Error(Exception):
    """Anything that libsafer refuses or fails at; the message says what and where."""


class InvalidError(Error, ValueError):
    """A parameter that is impossible."""


class InputError(Error, ValueError):
    """A file, a text or an answer of the model that does not hold what it should."""


class OperatingSystemError(Error, OSError):
    """A file could not be opened, read or written, or a process or thread not be started."""


class OutOfMemoryError(Error, MemoryError):
    """No memory is left."""


class CancelledError(Error):
    """The progress function asked to stop."""


class CallbackError(Error):
    """A function that the library called reported failure."""


_BY_STATUS: Dict[int, Type[Error]] = {1: InvalidError, 2: InputError, 3: OperatingSystemError, 4: OutOfMemoryError, 5: CancelledError,
                                      6: CallbackError}


# What the library calls a member of its options, where the argument has another name.
_ARGUMENTS: Dict[str, str] = {"bert.layers": "train_layers", "data": "texts", "deletion": "delete", "ngram.order": "ngrams", "train": "texts"}


def _argument(member: "re.Match[str]") -> str:
    name = member.group(1)
    return _ARGUMENTS.get(name, name.rpartition(".")[2])


def message_of(error: c.Error) -> str:
    """What went wrong, with the names of arguments; the library marks the members of its options: `deletion`."""
    return re.sub("`([a-z0-9_.]+)`", _argument, error.message.decode("utf-8", "replace"))


def check(status: int, error: c.Error) -> None:
    """Raises what a call of the library has reported."""
    if status:
        raise _BY_STATUS.get(status, Error)(message_of(error))
