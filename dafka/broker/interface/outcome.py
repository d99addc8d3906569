"""The outcome of a change."""

from __future__ import annotations

from typing import NamedTuple

from dafka.broker.interface.groups import Error


class Outcome(NamedTuple):
    """``error`` is None if the change was made; ``detail`` says in words what is wrong."""

    error: Error | None
    detail: str = ""
