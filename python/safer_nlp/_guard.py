"""Calls of the library that call Python back.

ctypes prints and forgets an exception that leaves a callback, and the library then continues
with whatever is in memory. So no exception may leave one: it is kept, the library is asked to
stop, and when it has returned the exception is raised unchanged. Signal handlers are the
difficult part. Python runs them between any two instructions, also on the first one of a
callback, before its `try`; a KeyboardInterrupt would be lost there. While the library runs,
handlers of signals are therefore wrapped: inside a function of the user they may raise as
usual, elsewhere what they raise is kept.
"""
from __future__ import annotations

import contextlib
import importlib
import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Callable, Dict, Iterator, List, Optional, TextIO, Type, Union

from . import _structs as c

ProgressFunction = Callable[[str, int, int], Any]
ProgressOption = Union[bool, ProgressFunction, None]

_SIGNALS = sorted(int(number) for number in signal.valid_signals() if number < 32)
_local = threading.local()  # .guard: the innermost of this thread


def current_guard() -> "Optional[Guard]":
    return getattr(_local, "guard", None)


class Guard:
    """A `with` block around calls of the library. `progress` is its callback. After the block
    comes check()."""

    def __init__(self, progress: ProgressOption = False) -> None:
        self.error: Optional[BaseException] = None
        self._inside = False
        self._handlers: Dict[int, Any] = {}
        self._outer: Optional[Guard] = None
        self._function, self._bar = progress_function(progress)
        self._report = c.PROGRESS(self._on_report)
        self.progress = c.Progress(self._report, None)

    # ---- callbacks

    def run(self, function: Callable[..., Any], *arguments: Any) -> int:
        """Calls a function; 0, or 1 when the library is to stop."""
        if self.error is not None:
            return 1
        try:
            self._inside = True
            function(*arguments)
            self._inside = False
        except BaseException as error:
            self._inside = False
            self.error = error
        return 0 if self.error is None else 1

    def _on_report(self, context: Any, stage: bytes, done: int, total: int) -> int:
        if self._function is None:
            return 0 if self.error is None else 1
        answer = []
        if self.run(lambda function: answer.append(function(stage.decode(), done, total)), self._function):
            return 1
        return 1 if answer[0] else 0

    def check(self) -> None:
        """Raises what a callback or a signal handler has raised, unchanged."""
        error, self.error = self.error, None  # kept, it would be part of a cycle that ctypes hides from the collector
        if error is not None:
            try:
                raise error
            finally:
                del error

    # ---- signals

    def _on_signal(self, number: int, frame: Optional[FrameType]) -> Any:
        handler = self._handlers.get(number)
        if handler is None:
            return
        if self._inside:
            handler(number, frame)
            return
        try:
            handler(number, frame)
        except BaseException as error:
            if self.error is None:
                self.error = error

    def __enter__(self) -> "Guard":
        self._outer = current_guard()
        _local.guard = self
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler) and not isinstance(handler, signal.Handlers):
                    self._handlers[number] = handler
                    signal.signal(number, self._on_signal)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> bool:
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._on_signal:  # unless the user has set another meanwhile
                signal.signal(number, handler)
        _local.guard = self._outer
        if self._bar is not None:
            self._bar.clear()
        return self.error is not None  # it explains the library's "callback failed"; check() raises it, without that as its context


@contextlib.contextmanager
def reporting() -> Iterator[List[BaseException]]:
    """A block in a thread of the library, in which no caller waits for an exception: it is reported as those of other
    threads are (threading.excepthook), and the list that the block gets then holds it."""
    failed: List[BaseException] = []
    try:
        yield failed
    except BaseException as error:
        failed.append(error)
        threading.excepthook(threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread())))


# ----------------------------------------------------------------------- progress

class Bar:
    """One line on a terminal: how far, how fast, how long still."""

    WIDTH = 24

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._stage = ""
        self._start = time.monotonic()
        self._length = 0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        name = stage.split(",")[0]
        if name != self._stage:
            self._stage, self._start = name, now
        rate = done / (now - self._start) if now > self._start else 0.0
        line = stage
        if total:
            filled = self.WIDTH * done // total
            line += f" {100 * done // total:3d}% |{'#' * filled}{' ' * (self.WIDTH - filled)}| {done:,}/{total:,}"
        elif done:
            line += f" {done:,}"
        if rate > 0:
            line += f", {rate:,.0f}/s" if rate >= 10 else f", {rate:.2f}/s"
            if done < total:
                line += f", {_duration((total - done) / rate)} left"
        self._write(line)

    def clear(self) -> None:
        """Leaves no trace of the line."""
        if self._length:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _write(self, line: str) -> None:
        self._stream.write("\r" + line + " " * max(0, self._length - len(line)))
        self._stream.flush()
        self._length = len(line)


def _duration(seconds: float) -> str:
    whole = int(seconds + 0.5)
    if whole >= 3600:
        return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"{whole // 60}:{whole % 60:02d}"


class TqdmBar:
    """The same by tqdm, for notebooks: a bar per stage, gone at the end."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._stage = ""
        self._bar: Any = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        name = stage.split(",")[0]
        if self._bar is None or name != self._stage:
            self.clear()
            self._stage, self._bar = name, self._make(total=total or None, desc=name, leave=False)
        self._bar.set_description(stage, refresh=False)
        self._bar.update(done - self._bar.n)

    def clear(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this: its output is no terminal, but somebody looks at it."""
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None else None
    return hasattr(instance, "kernel")


def _notebook_bar() -> "Union[Bar, TqdmBar]":
    """tqdm's, with widgets where they are installed; else the bar of terminals, which notebooks understand."""
    try:
        tqdm: Any = importlib.import_module("tqdm.std").tqdm
    except ImportError:
        return Bar(sys.stderr)
    with contextlib.suppress(ImportError):
        importlib.import_module("ipywidgets")
        tqdm = importlib.import_module("tqdm.notebook").tqdm
    return TqdmBar(tqdm)


def progress_function(progress: ProgressOption) -> "tuple[Optional[ProgressFunction], Union[Bar, TqdmBar, None]]":
    stream = sys.stderr
    notebook = progress in (None, True) and _in_notebook()
    if progress is None:
        progress = notebook or stream is not None and stream.isatty()
    if progress is True:
        bar = _notebook_bar() if notebook else Bar(stream)
        return bar, bar
    return (None, None) if progress is False else (progress, None)
