"""An HTTP server that predicts and certifies, as `safer serve` does; docs/serve.md is its contract."""
from __future__ import annotations

import weakref
from ctypes import byref
from typing import Any, Callable, List, Optional, Sequence, Union

from . import _structs as c
from ._answers import kind
from ._errors import InvalidError
from ._guard import Guard, reporting
from ._handle import Handle
from ._lexicon import Lexicon
from ._library import call, default_options, library, make
from ._model import FunctionModel, Model, Predict, as_model
from ._parts import certify_options, draws_at_once, need_lexicon
from ._results import Radius


def _stop(address: int, used: List[Any], callbacks: Sequence[Any]) -> None:
    library.safer_server_stop(address)
    used.clear()


class Server(Handle):
    """A server with threads of its own, which runs until :meth:`stop`, or the end of its `with` block.

    >>> with safer.serve(model, lexicon, port=0) as server:
    ...     with urllib.request.urlopen(server.url + "/healthz") as answer:
    ...         answer.status
    200
    """

    _end = "safer_server_stop"

    def __init__(self, address: int, model: Union[Model, FunctionModel], lexicon: Lexicon, kept: Sequence[Any]) -> None:
        self._address = address
        self._used: List[Any] = [model, lexicon]
        self._finalizer = weakref.finalize(self, _stop, address, self._used, kept)  # which keeps what the server uses

    @property
    def url(self) -> str:
        """"http://127.0.0.1:8080"."""
        url: bytes = library.safer_server_url(self._pointer)
        return url.decode()

    @property
    def port(self) -> int:
        port: int = library.safer_server_port(self._pointer)
        return port

    def reload(self, model: Model, lexicon: Lexicon) -> None:
        """Serves another model and lexicon from now on. Returns when everything that was asked before is answered; on
        failure nothing has changed."""
        if not isinstance(model, Model):
            raise InvalidError(f"model: a safer_nlp.Model is needed, not {kind(model)}")
        with Guard() as guard:
            call("safer_server_reload", self._pointer, model._pointer, need_lexicon(lexicon)._pointer)
        guard.check()
        self._used[:] = [model, lexicon]

    def stop(self) -> None:
        """Accepts no more connections, answers what was asked, and ends. Stopping twice does nothing."""
        self.close()

    def __repr__(self) -> str:
        return f"<safer_nlp.Server at {self.url}>" if self._finalizer.alive else "<safer_nlp.Server, stopped>"


def serve(predict: Predict, lexicon: Lexicon, *, host: str = "127.0.0.1", port: int = 8080, token: Optional[str] = None,
          without_token: bool = False, classes: Optional[Sequence[Any]] = None, n: int = 5000, n0: Optional[int] = None,
          delta: float = 0.01, alpha: float = 0.001, method: str = "adaptive", radius: Radius = "all", seed: Optional[int] = None,
          batch: int = 256, random: bool = False, function: bool = False, cache: bool = False, threads: int = 0, delete: Union[float, str] = 0.0,
          edits: int = 1, edit_kind: str = "any", groups: Optional[int] = None, max_body: Optional[int] = None, max_text: Optional[int] = None,
          max_texts: Optional[int] = None, queue: Optional[int] = None, connections: Optional[int] = None,
          deadline: Optional[float] = None, patience: Optional[float] = None, client_connections: Optional[int] = None,
          client_rate: Optional[float] = None, log: Optional[Callable[[str], Any]] = None, log_texts: bool = False,
          second: Optional[Model] = None) -> Server:
    """Starts to serve the smoothed classifier over HTTP, in the background: the interface of `safer serve`, page included.

    `predict` and the options of certificates are those of :func:`certify`. A function of Python is called by threads of
    the server, one at a time; what it raises is reported by `threading.excepthook`, and the client gets an error.

    :param port: 0: any that is free
    :param token: a bearer token that clients must send, at least 16 characters; needed where `host` is no loopback
        address, unless `without_token`
    :param seed: of all draws, shown to clients; None: random, and a secret; with `groups`: 1
    :param max_body: bytes of a request; None, here and below: the default of `safer serve`
    :param max_text: bytes of a text
    :param max_texts: of a request
    :param queue: texts that wait, at most
    :param connections: open at a time
    :param deadline: seconds until a request must be answered
    :param patience: seconds in which a request must arrive, and its answer be received
    :param client_connections: of one address, open at a time
    :param client_rate: requests per second of one address; 0: any number
    :param log: takes a line of JSON about every request, in a thread of the server
    :param log_texts: the log holds the texts too
    :param second: another model, which requests may name (`"model": "second"`) and the page asks beside the first
    """
    lexicon = need_lexicon(lexicon)
    seed = 1 if seed is None and groups is not None else seed  # the classifier depends on it
    model = as_model(predict, classes, [], batch=batch, cache=cache, random=random, declared=function)
    certify = certify_options(n=n, n0=n0, delta=delta, alpha=alpha, method=method, radius=radius, seed=seed or 0, threads=threads,
                              delete=delete, edits=edits, edit_kind=edit_kind, groups=groups)
    certify.batch = draws_at_once(model, batch)
    if isinstance(model, FunctionModel):
        model.from_any_thread = True
    o = default_options("serve", c.ServeOptions)
    if not 0 <= port < 2**16:
        raise InvalidError(f"port: {port}; 0 to 65535")
    o.fixed_seed, o.host, o.port, o.without_token, o.log_texts = seed is not None, host.encode(), port, without_token, log_texts
    o.second = None if second is None else second._pointer
    o.token = None if token is None else token.encode()
    for name, value in dict(max_body=max_body, max_text=max_text, max_texts=max_texts, queue=queue, connections=connections,
                            deadline=deadline, patience=patience, client_connections=client_connections, client_rate=client_rate).items():
        if value is not None:
            if value < 0:
                raise InvalidError(f"{name}: {value}")
            setattr(o, name, value)

    def write(context: Any, line: bytes) -> None:
        with reporting():
            assert log is not None
            log(line.decode())

    callback = c.RECORD(write) if log is not None else c.RECORD(0)
    o.log = callback
    with Guard() as guard:  # a function is asked by this thread first, whether it stays with its answers
        server = Server(make("safer_server_start", model._pointer, lexicon._pointer, byref(certify), byref(o)), model, lexicon, [callback, second])
    guard.check()
    return server
