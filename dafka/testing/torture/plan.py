"""Faults as plain values, and where they are taken from.

A fault is named by the call that it meets: ``Fault("produce orders-0", 3, "lost_answer")`` is for the third
Produce with records for partition 0 of the topic "orders". So a list of faults can be read, compared, printed
and pasted into a test: ``chaos.plan([...])``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from dafka.testing.torture.kinds import FETCH, KINDS, OPERATIONS, PRODUCE


class Fault:
    """A fault of one call.

    ``point``: ``"produce orders-0"``, ``"fetch orders-0"``, ``"commit billing"``, ``"join billing"``,
    ``"sync billing"`` or ``"transaction tx-1"``. ``call``: the how manyth call at that point, from 1 on.
    ``kind``: one of :data:`~dafka.testing.torture.kinds.KINDS`.

    Two are equal if all three are. Raises ValueError for a point, a call or a kind that there is not.
    """

    __slots__ = ("call", "kind", "point")

    point: str
    call: int
    kind: str

    def __init__(self, point: str, call: int, kind: str) -> None:
        operation = check_point(point)
        if type(call) is not int or call < 1:
            raise ValueError(f"the calls at a point are counted from 1 on, not {call!r}")
        if kind not in KINDS:
            raise ValueError(f"there is no fault {kind!r}; there are {', '.join(KINDS)}")
        if operation not in KINDS[kind].operations:
            raise ValueError(f"{kind!r} is not a fault of {operation}: {', '.join(KINDS[kind].operations)}")
        object.__setattr__(self, "point", point)
        object.__setattr__(self, "call", call)
        object.__setattr__(self, "kind", kind)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a fault does not change: {name}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fault) and _key(self) == _key(other)

    def __hash__(self) -> int:
        return hash(_key(self))

    def __lt__(self, other: Fault) -> bool:
        return _key(self) < _key(other)

    def __reduce__(self) -> tuple[type[Fault], tuple[str, int, str]]:
        return Fault, _key(self)

    def __repr__(self) -> str:
        return f"Fault({self.point!r}, {self.call}, {self.kind!r})"


def _key(fault: Fault) -> tuple[str, int, str]:
    return fault.point, fault.call, fault.kind


def check_point(point: str) -> str:
    """The operation of a point. Raises ValueError for an unknown one."""
    operation, _, subject = point.partition(" ")
    if operation not in OPERATIONS or not subject:
        raise ValueError(
            f"{point!r} is not a point: it begins with one of {', '.join(OPERATIONS)}, and names a "
            "partition (orders-0), a group or a transactional id behind a space"
        )
    if operation in (PRODUCE, FETCH):
        topic, _, number = subject.rpartition("-")
        if not topic or not number.isdecimal():
            raise ValueError(f"{point!r} names no partition, such as orders-0")
    return operation


def partition_point(operation: str, topic: str, number: int) -> str:
    """The point of an operation on a partition."""
    return f"{operation} {topic}-{number}"


class Faults(ABC):
    """Decides about each call."""

    @abstractmethod
    def kind(self, point: str, call: int) -> str | None:
        """The kind of fault that the ``call``th call at a point meets; None: none. Without state."""


class Plan(Faults):
    """The faults of a list. Raises ValueError for two of the same call."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: Sequence[Fault] = tuple(faults)
        self._kinds: dict[tuple[str, int], str] = {}
        for fault in self.faults:
            if not isinstance(fault, Fault):
                raise TypeError(f"a plan is a list of Fault, and has {fault!r}")
            if (fault.point, fault.call) in self._kinds:
                raise ValueError(f"two faults for call {fault.call} at {fault.point!r}")
            self._kinds[fault.point, fault.call] = fault.kind

    def kind(self, point: str, call: int) -> str | None:
        return self._kinds.get((point, call))

    def __repr__(self) -> str:
        return f"chaos.plan({written(self.faults)})"


def written(faults: Iterable[Fault]) -> str:
    """A list of faults as Python, one in a line, to be pasted."""
    lines = [f"    {fault!r},\n" for fault in faults]
    return "[\n" + "".join(lines) + "]" if lines else "[]"
