"""Calls to the broker whose callers wait no longer than they want to.

A ``poll`` returns when its time is over, also where the broker is slow or hangs. Its calls go on in the
hub, and the next ``poll`` finds their outcome
(:meth:`Calls.resume`). So a program whose polls are shorter than the way to its broker gets on as well.

Methods with a timeout of their own give up instead (:meth:`Calls.within`). A commit that is given up may
still be carried out, as with any Kafka client.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import gevent.event
from kafka.errors import KafkaTimeoutError

from compat.kafka._client import Client
from dafka.broker import BrokerStoppedError
from dafka.broker.remote.limits import in_words

GRACE = 0.05  # seconds that every wait lasts at least, however little time a poll was given
SLICE = 1.0  # seconds that a wait lasts at most, so that its caller can see whether it was closed
USABLE = 1.0  # seconds after which an outcome that was not fetched is out of date


class NotYetError(Exception):
    """The broker has not answered; the call goes on."""


class Calls:
    """The calls of one consumer. Its methods are for the program's thread."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._left: dict[Any, _Call] = {}

    @property
    def broker(self) -> Any:
        """The broker that runs now, for the functions that are called in the hub."""
        return self._client.broker

    def within(self, timeout_ms: float | None, what: str, fn: Callable[..., Any], *args: Any) -> Any:
        """Call the broker, waiting ``timeout_ms`` at most (None: for ever).

        ``what``: Kafka's name of the request, for the error.

        Raises:
            KafkaTimeoutError: it has not answered.
        """
        seconds = None if timeout_ms is None else max(timeout_ms / 1000, 0.0)
        call = _Call(fn, args)
        if not self._client.call(self._wait, call, seconds):
            raise KafkaTimeoutError(f"The broker did not answer {what} within {in_words(seconds)}")
        return call.outcome()

    def resume(self, key: Any, seconds: float, fn: Callable[..., Any], *args: Any) -> Any:
        """Call the broker, or go on waiting for the call of that key that an earlier wait has left.

        Raises:
            NotYetError: it has not answered within (about) ``seconds``.
        """
        call = self._left.pop(key, None)
        if call is None or monotonic() - call.ended > USABLE or call.met_a_stop:
            call = _Call(fn, args)
        # Noted before the wait: after an interruption (Ctrl-C) the next call goes on with it.
        self._left[key] = call
        if not self._client.call(self._wait, call, min(max(seconds, GRACE), SLICE)):
            raise NotYetError
        self._left.pop(key, None)
        return call.outcome()

    def _wait(self, call: _Call, seconds: float | None) -> bool:
        """In the hub: begin the call if it has not begun, and wait for its end; whether it has ended."""
        if call.over is None:
            call.over = gevent.event.Event()
            self._client.hub.spawn(call.run)
        return bool(call.over.wait(seconds))


class _Call:
    """A call that runs in a green thread of its own."""

    def __init__(self, fn: Callable[..., Any], args: Any) -> None:
        self._call = fn, args
        self._value: Any = None
        self._error: BaseException | None = None
        self.over: gevent.event.Event | None = None  # from its beginning on
        self.ended = float("inf")  # monotonic seconds

    def run(self) -> None:
        fn, args = self._call
        try:
            self._value = fn(*args)
        except BaseException as error:
            self._error = error
        self.ended = monotonic()
        assert self.over is not None
        self.over.set()

    @property
    def met_a_stop(self) -> bool:
        """Whether a broker of this process was stopped meanwhile; it may have been started again since."""
        return isinstance(self._error, BrokerStoppedError)

    def outcome(self) -> Any:
        """The result of the call; raises its error."""
        if self._error is not None:
            raise self._error
        return self._value
