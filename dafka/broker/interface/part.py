"""The parts of a broker, each of which answers some of its calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Generic, ParamSpec, TypeVar

B = TypeVar("B")
T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class Part(Generic[B, T]):
    """A part of a broker; ``of`` gives that of one broker, or raises what the call is to end with."""

    def __init__(self, of: Callable[[B], T]) -> None:
        self._of = of

    def answers(self, method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[B, P], R]:
        """``method`` of the part, as a method of the broker."""
        of = self._of

        @wraps(method)
        def call(broker: B, /, *args: P.args, **kwargs: P.kwargs) -> R:
            return method(of(broker), *args, **kwargs)

        return call
