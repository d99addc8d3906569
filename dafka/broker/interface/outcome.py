"""The outcome of a change, and what all answers that can be an error have in common."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from dafka.broker.interface.groups import Error


class Outcome(NamedTuple):
    """``error`` is None if the change was made; ``detail`` says in words what is wrong."""

    error: Error | None
    detail: str = ""


class Answer(Protocol):
    """An answer about one thing: described, read or changed. ``error`` is None if there is none."""

    @property
    def error(self) -> Error | None: ...


@runtime_checkable
class DetailedAnswer(Answer, Protocol):
    """An answer whose ``detail`` says in words what is wrong; it may be empty."""

    @property
    def detail(self) -> str: ...
