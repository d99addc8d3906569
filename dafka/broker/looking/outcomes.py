"""Refusals of a broker, as errors in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

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


def check(outcomes: Mapping[Any, Any]) -> None:
    """Raise RefusedError with a line for each thing that was refused.

    What came of each is an error (None: done), or has one as ``error`` and perhaps says in words why.
    """
    lines, names = [], []
    for what, outcome in outcomes.items():
        error = getattr(outcome, "error", outcome)
        if error is not None:
            detail = getattr(outcome, "detail", "") or getattr(outcome, "message", "")
            if outcome is error or not detail:
                detail = ""  # the name of the error says it all
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
