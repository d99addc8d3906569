"""The waiting methods of a TestBroker.

Each method waits at most ``timeout`` seconds and raises :class:`~dafka.testing.waiting.NotInTimeError`, an
AssertionError that says what was found instead. They block their thread. A test in an event loop awaits the
``async_`` forms, which look at the broker in a thread beside the loop and leave it to the other tasks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, Generic, TypeVar

from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import TopicPartition

from dafka.broker.interface.broker import BrokerInterface
from dafka.testing.groups import GroupMember, described
from dafka.testing.waiting import TIMEOUT, async_wait_until, wait_until

T = TypeVar("T")


@dataclass(frozen=True)
class _Awaited(Generic[T]):
    """A condition to wait for: the check, its description with the present state, and the result."""

    there: Callable[[], bool]
    words: Callable[[], str]
    outcome: Callable[[], T]


class WaitingForBroker:
    """The part of a TestBroker that waits."""

    @abstractmethod
    def records(self, topic: str, partition: int | None = None) -> list[ConsumerRecord]: ...

    @abstractmethod
    def _sizes(self, topic: str) -> dict[int, int]: ...

    @abstractmethod
    def committed(self, group: str, topic: str | None = None) -> dict[TopicPartition, int]: ...

    @abstractmethod
    def lag(self, group: str, topic: str | None = None) -> dict[TopicPartition, int]: ...

    @abstractmethod
    def share_offsets(self, group: str, topic: str | None = None) -> dict[TopicPartition, int]: ...

    @abstractmethod
    def members(self, group: str) -> list[GroupMember]: ...

    @abstractmethod
    def group_state(self, group: str) -> str: ...

    @abstractmethod
    def _within(self, work: Callable[[BrokerInterface], T]) -> T: ...

    def wait_until(
        self, condition: Callable[[], T], timeout: float = TIMEOUT, what: str | Callable[[], str] = ""
    ) -> T:
        """:func:`dafka.testing.wait_until`."""
        __tracebackhide__ = True
        return wait_until(condition, timeout, what)

    async def async_wait_until(
        self,
        condition: Callable[[], T | Awaitable[T]],
        timeout: float = TIMEOUT,
        what: str | Callable[[], str] = "",
    ) -> T:
        """:func:`dafka.testing.async_wait_until`."""
        __tracebackhide__ = True
        return await async_wait_until(condition, timeout, what)

    def wait_for_records(
        self, topic: str, count: int = 1, *, partition: int | None = None, timeout: float = TIMEOUT
    ) -> list[ConsumerRecord]:
        """Wait until a topic, or one partition, has at least ``count`` records; all it has then."""
        __tracebackhide__ = True
        return _wait(self._records_awaited(topic, count, partition), timeout)

    async def async_wait_for_records(
        self, topic: str, count: int = 1, *, partition: int | None = None, timeout: float = TIMEOUT
    ) -> list[ConsumerRecord]:
        """:meth:`wait_for_records` for asyncio."""
        __tracebackhide__ = True
        return await _async_wait(self._records_awaited(topic, count, partition), timeout)

    def wait_for_lag(
        self, group: str, at_most: int = 0, *, topic: str | None = None, timeout: float = TIMEOUT
    ) -> None:
        """Wait until a group has committed its way to ``at_most`` records before the end, or a share group is
        done with all but so many.

        A group that has committed nothing yet (in that topic) has not arrived, however little there is.
        """
        __tracebackhide__ = True
        _wait(self._lag_awaited(group, at_most, topic), timeout)

    async def async_wait_for_lag(
        self, group: str, at_most: int = 0, *, topic: str | None = None, timeout: float = TIMEOUT
    ) -> None:
        """:meth:`wait_for_lag` for asyncio."""
        __tracebackhide__ = True
        await _async_wait(self._lag_awaited(group, at_most, topic), timeout)

    def wait_for_members(self, group: str, count: int = 1, *, timeout: float = TIMEOUT) -> list[GroupMember]:
        """Wait until a group is stable with exactly ``count`` members; the members."""
        __tracebackhide__ = True
        return _wait(self._members_awaited(group, count), timeout)

    async def async_wait_for_members(
        self, group: str, count: int = 1, *, timeout: float = TIMEOUT
    ) -> list[GroupMember]:
        """:meth:`wait_for_members` for asyncio."""
        __tracebackhide__ = True
        return await _async_wait(self._members_awaited(group, count), timeout)

    def _records_awaited(
        self, topic: str, count: int, partition: int | None
    ) -> _Awaited[list[ConsumerRecord]]:
        _check(count, "count", topic=topic)

        def found() -> int:
            sizes = self._sizes(topic)
            return sum(sizes.values()) if partition is None else sizes.get(partition, 0)

        return _Awaited(
            lambda: found() >= count,
            lambda: f"{count} records in topic {topic!r}, there are {found()}",
            lambda: self.records(topic, partition),
        )

    def _lag_awaited(self, group: str, at_most: int, topic: str | None) -> _Awaited[None]:
        _check(at_most, "at_most", group=group)

        def begun() -> bool:
            return bool(self.committed(group, topic) or self.share_offsets(group, topic))

        def arrived() -> bool:
            return begun() and sum(self.lag(group, topic).values()) <= at_most

        def seen() -> str:
            where = "" if topic is None else f" in topic {topic!r}"
            there: Mapping[Any, int] | str = self.lag(group, topic) if begun() else "nothing committed yet"
            return f"a lag of at most {at_most} of group {group!r}{where}, there is {there}"

        return _Awaited(arrived, seen, lambda: None)

    def _members_awaited(self, group: str, count: int) -> _Awaited[list[GroupMember]]:
        _check(count, "count", group=group)

        def stable() -> bool:
            state, members = self._within(lambda broker: described(broker, group))
            return len(members) == count and state == ("Stable" if count else "Empty")

        def seen() -> str:
            there = f"it is {self.group_state(group)} with {len(self.members(group))}"
            return f"{count} members of group {group!r}, {there}"

        return _Awaited(stable, seen, lambda: self.members(group))


def _check(count: int, what: str, **names: str) -> None:
    """Raise TypeError for what nobody need wait for: a number that is no count, a name that is no str."""
    if not isinstance(count, Integral):
        raise TypeError(f"{what} is an int, not {count!r:.100}")
    for what, name in names.items():
        if not isinstance(name, str):
            raise TypeError(f"{what} is a str, not {name!r:.100}")


def _wait(awaited: _Awaited[T], timeout: float) -> T:
    __tracebackhide__ = True
    wait_until(awaited.there, timeout, awaited.words)
    return awaited.outcome()


async def _async_wait(awaited: _Awaited[T], timeout: float) -> T:
    __tracebackhide__ = True
    import asyncio

    look: Callable[[], bool | Awaitable[bool]] = partial(asyncio.to_thread, awaited.there)
    await async_wait_until(look, timeout, awaited.words)
    return await asyncio.to_thread(awaited.outcome)
