"""The functions of the package for asyncio: the same arguments and results, awaited.

>>> async def main():
...     return await safer_nlp.aio.certify(pipeline, texts, labels, lexicon)
>>> len(asyncio.run(main()))
40

Each call works in a thread of its own, so the event loop goes on. `predict` may be a coroutine function: it then runs in the
event loop, one call at a time. Cancelling the task ends the work (a run with `output` can be resumed), and is over when
the work is. A `progress` function is called in the working thread.
"""
from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
from concurrent.futures import Future
from typing import Any, Callable, List, Optional, Sequence, TypeVar

from . import _attack, _certify, _label, _report, _train
from ._data import Data
from ._errors import Error
from ._guard import progress_function
from ._model import Model
from ._results import Prediction, Results, Verification

__all__ = ["attack", "attack_against", "certify", "label", "predict", "report", "train", "verify"]

T = TypeVar("T")


class _Work:
    """One call in a thread, which the event loop can stop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._stopped = threading.Event()
        self._asked: "Optional[Future[Any]]" = None

    def ask(self, function: Callable[[List[str]], Any], texts: List[str]) -> Any:
        """A coroutine function's answer, for the working thread."""
        self._asked = asyncio.run_coroutine_threadsafe(function(texts), self._loop)
        if self._stopped.is_set():  # looked at after _asked is set: stop() looks the other way round
            self._asked.cancel()
        return self._asked.result()

    def report(self, inner: Optional[Callable[[str, int, int], Any]], stage: str, done: int, total: int) -> bool:
        return self._stopped.is_set() or bool(inner is not None and inner(stage, done, total))

    def stop(self) -> None:
        self._stopped.set()
        if self._asked is not None:
            self._asked.cancel()


async def _run(function: Callable[..., T], arguments: Sequence[Any], options: Any, asks: Optional[int] = None) -> T:
    """Calls a function of the package in a thread; argument number `asks` is its `predict`."""
    loop = asyncio.get_running_loop()
    work, given = _Work(loop), list(arguments)
    if asks is not None and len(given) > asks:
        called = given[asks]
        if inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(getattr(called, "__call__", None)):
            given[asks] = functools.partial(work.ask, called)
    inner, bar = progress_function(options.pop("progress", None))
    options["progress"] = functools.partial(work.report, inner)
    running = loop.run_in_executor(None, functools.partial(function, *given, **options))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        work.stop()
        with contextlib.suppress(asyncio.CancelledError, Error):
            await running
        raise
    finally:
        if bar is not None:
            bar.clear()


async def certify(*arguments: Any, **options: Any) -> Results:
    """:func:`safer_nlp.certify`, awaited."""
    return await _run(_certify.certify, arguments, options, 0)


async def attack(*arguments: Any, **options: Any) -> _attack.Attacks:
    """:func:`safer_nlp.attack`, awaited."""
    return await _run(_attack.attack, arguments, options, 0)


async def attack_against(*arguments: Any, **options: Any) -> _attack.Against:
    """:func:`safer_nlp.attack_against`, awaited."""
    return await _run(_attack.attack_against, arguments, options, 1)


async def verify(*arguments: Any, **options: Any) -> Verification:
    """:func:`safer_nlp.verify`, awaited."""
    return await _run(_certify.verify, arguments, options, 1)


async def train(*arguments: Any, **options: Any) -> Model:
    """:func:`safer_nlp.train`, awaited."""
    return await _run(_train.train, arguments, options)


async def label(*arguments: Any, **options: Any) -> Data:
    """:func:`safer_nlp.label`, awaited."""
    return await _run(_label.label, arguments, options, 0)


async def report(*arguments: Any, **options: Any) -> Any:
    """:func:`safer_nlp.report`, awaited."""
    return await _run(_report.report, arguments, options)


async def predict(smoothed: _certify.Smoothed, texts: Sequence[str]) -> List[Prediction]:
    """The answers of a :class:`safer_nlp.Smoothed`, awaited. Threads take turns with a function of Python."""
    return await asyncio.get_running_loop().run_in_executor(None, smoothed.predict, texts)
