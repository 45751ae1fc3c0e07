"""What Lexicon and Model have in common: an object of the library, ended once."""
from __future__ import annotations

import weakref
from types import TracebackType
from typing import Any, Optional, Type, TypeVar

from ._library import library

_Self = TypeVar("_Self", bound="Handle")


class Handle:
    """Owns an object of the library. It ends with close(), at the end of a `with` block, or
    when nothing refers to it any more. Any number of threads may use one; none may while it
    is being closed."""

    _end: str  # the name of the function that ends it

    def __init__(self, address: int) -> None:
        self._address = address
        self._finalizer = weakref.finalize(self, getattr(library, self._end), address)

    @property
    def _pointer(self) -> int:
        if not self._finalizer.alive:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._address

    def close(self) -> None:
        """Ends it; further use is an error. Closing twice does nothing."""
        self._finalizer()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be pickled or copied; load it again")
