"""A broker interface with faults, wrapped around a real one. Hub side.

:class:`FaultyBroker` passes every operation of :class:`~dafka.broker.interface.broker.BrokerInterface` on,
those included that it does not know, and steps in only where a fault was ordered. It is what clients of a
:class:`~dafka.testing.TestBroker` are connected to, so the broker itself knows nothing of faults.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gevent.event import Event

from dafka.broker.interface.broker import (
    BrokerInterface,
    CommittedOffset,
    Error,
    Fetched,
    FetchFrom,
    PartitionWatch,
    Produced,
    TopicPartition,
)


class Failure(NamedTuple):
    """One ordered failure: ``error`` (a class of kafka.errors) for requests that touch ``topic`` (None: any).

    ``written``: a produce is carried out all the same, and only its answer gets lost.
    """

    error: Error
    topic: str | None = None
    written: bool = False

    def hits(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        return [partition for partition in partitions if self.topic in (None, partition[0])]


class FaultyBroker:
    """A broker that fails as ordered. Every operation not defined here is the real broker's."""

    def __init__(self, broker: Any) -> None:
        self.inner = broker
        self.time = broker.time  # clients ask for it in their threads
        self.produce_failures: deque[Failure] = deque()
        self.commit_failures: deque[Failure] = deque()
        self.fetch_delays: dict[str | None, float] = {}  # seconds by topic; None: all topics
        self._due: dict[tuple[TopicPartition, int], float] = {}  # when records from an offset on are seen
        self._answering = Event()  # not set while the broker hangs
        self._answering.set()
        self._release = Event()  # set when the records that are held back may go

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.inner, name)
        if self._answering.is_set() or not callable(attribute):
            return attribute

        def late(*args: Any, **kwargs: Any) -> Any:
            self._answering.wait()
            return attribute(*args, **kwargs)

        late.__name__ = name
        return late

    def for_client(self, client_id: str) -> BrokerInterface:
        return self  # type: ignore[return-value]

    def hang(self) -> None:
        """Answer nothing that is asked from now on, until :meth:`release`."""
        self._answering.clear()

    def watch(self) -> PartitionWatch:
        self._answering.wait()
        return _HangingWatch(self.inner.watch(), self._answering)

    def produce(
        self, batches: Mapping[TopicPartition, Sequence[bytes]], *args: Any, **kwargs: Any
    ) -> dict[TopicPartition, Produced]:
        self._answering.wait()
        failure, hit = _next(self.produce_failures, batches)
        if failure is None:
            return self.inner.produce(batches, *args, **kwargs)  # type: ignore[no-any-return]
        passed = batches if failure.written else _without(batches, hit)
        answers = self.inner.produce(passed, *args, **kwargs) if passed else {}
        return {**answers, **{key: Produced(failure.error, detail="ordered by the test") for key in hit}}

    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset], *args: Any, **kwargs: Any
    ) -> dict[TopicPartition, Error | None]:
        self._answering.wait()
        failure, hit = _next(self.commit_failures, offsets)
        if failure is None:
            return self.inner.commit_offsets(group, offsets, *args, **kwargs)  # type: ignore[no-any-return]
        passed = _without(offsets, hit)
        answers = self.inner.commit_offsets(group, passed, *args, **kwargs) if passed else {}
        return {**answers, **dict.fromkeys(hit, failure.error)}

    def fetch(
        self, partitions: Mapping[TopicPartition, FetchFrom], *, max_wait: float, **kwargs: Any
    ) -> dict[TopicPartition, Fetched]:
        """Records that are delayed are not there yet: a fetch that finds only such ones waits on.

        No longer than it would have waited for any records, though, so a ``poll`` returns when its time is
        over. The delay counts from the first request for that place in the partition.
        """
        self._answering.wait()
        deadline = time.monotonic() + max_wait
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            fetched: dict[TopicPartition, Fetched] = self.inner.fetch(partitions, max_wait=left, **kwargs)
            held = self._hold_back(fetched, partitions) if self.fetch_delays else {}
            if not held:
                return fetched
            rest = {key: answer for key, answer in fetched.items() if key not in held}
            if any(answer.batches or answer.error is not None for answer in rest.values()):
                return rest
            now = time.monotonic()
            if now >= deadline:
                return {**rest, **{key: fetched[key]._replace(batches=[]) for key in held}}
            self._release.wait(max(min(deadline, *held.values()) - now, 0.001))

    def _hold_back(
        self, fetched: Mapping[TopicPartition, Fetched], partitions: Mapping[TopicPartition, FetchFrom]
    ) -> dict[TopicPartition, float]:
        """The partitions whose records are still held back, and until when."""
        held = {}
        now = time.monotonic()
        for key, answer in fetched.items():
            delay = self.fetch_delays.get(key[0], self.fetch_delays.get(None, 0.0))
            if answer.batches and delay:
                place = key, partitions[key].offset
                due = self._due.setdefault(place, now + delay)
                if due > now:
                    held[key] = due
                else:
                    del self._due[place]
        return held

    def clear(self) -> None:
        """Take back every fault that is still ordered."""
        self.produce_failures.clear()
        self.commit_failures.clear()
        self.fetch_delays.clear()
        self.release()

    def release(self) -> None:
        """Let fetches that hold records back look again, and hanging calls continue."""
        self._answering.set()
        self._due.clear()
        self._release.set()
        self._release = Event()

    def close(self) -> None:
        self.release()
        self.inner.close()


class _HangingWatch(PartitionWatch):
    """Nothing is known of its partitions while the broker hangs: a Fetch at their end is answered from it."""

    def __init__(self, watch: PartitionWatch, answering: Event) -> None:
        self._watch = watch
        self._answering = answering

    def add(self, key: TopicPartition) -> bool:
        self._answering.wait()
        return self._watch.add(key)

    def remove(self, key: TopicPartition) -> None:
        self._watch.remove(key)

    def take(self) -> Collection[TopicPartition]:
        self._answering.wait()
        return self._watch.take()

    def wait(self, timeout: float) -> bool:
        changed = self._watch.wait(timeout)
        self._answering.wait()
        return changed

    def close(self) -> None:
        self._watch.close()


# isinstance() accepts it as the interface: __getattr__ passes the missing operations to the real broker.
BrokerInterface.register(FaultyBroker)


def _next(
    failures: deque[Failure], partitions: Mapping[TopicPartition, Any]
) -> tuple[Failure | None, list[TopicPartition]]:
    """Take the first failure that this request meets, with the partitions that it hits."""
    for failure in failures:
        hit = failure.hits(partitions)
        if hit:
            failures.remove(failure)
            return failure, hit
    return None, []


def _without(
    partitions: Mapping[TopicPartition, Any], hit: Collection[TopicPartition]
) -> dict[TopicPartition, Any]:
    return {key: value for key, value in partitions.items() if key not in hit}
