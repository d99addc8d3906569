"""Refusals of a broker, as errors in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dafka.broker.interface.groups import Error
from dafka.broker.interface.outcome import Answer, DetailedAnswer
from dafka.protocol.errors import DafkaError


class Asked(Protocol):
    """A broker whose methods are called by name, as a :class:`dafka.broker.connecting.Connection` does."""

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Returns or raises as the method of that name of the broker interface does."""


class RefusedError(DafkaError):
    """The broker refuses a request. ``names`` are those of the errors in :mod:`kafka.errors`, if any."""

    def __init__(self, text: str, names: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.names = tuple(names)


def check(outcomes: Mapping[Any, Error | Answer | None]) -> None:
    """Raise RefusedError with a line for each thing that was refused.

    The outcome of each thing is an error (None: done), or an answer of the broker interface.
    """
    lines, names = [], []
    for what, outcome in outcomes.items():
        error = outcome if outcome is None or isinstance(outcome, type) else outcome.error
        if error is not None:
            detail = outcome.detail if isinstance(outcome, DetailedAnswer) else ""
            lines.append(f"{named(what)}: {error.__name__}" + (f": {detail}" if detail else ""))
            names.append(error.__name__)
    if lines:
        raise RefusedError("\n".join(map(printable, lines)), names)


def named(what: Any) -> str:
    """A thing in words: a partition is TOPIC-NUMBER."""
    return f"{what[0]}-{what[1]}" if isinstance(what, tuple) else str(what)


def printable(text: str) -> str:
    """Text of strangers in one line: control characters are escaped."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
