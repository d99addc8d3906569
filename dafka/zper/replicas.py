"""Replicas: messages to this node's ZPWriter go to other ZPWriters, too.

The offsets that a replica has answered for are those of a group ``zper-replica-HOST:PORT``: durable, and
shown by Kafka's own tools as that group's lag. A partition is copied from the moment on that a client of the
ZPWriter opens it, before its first message is taken, and with whatever else is written to it. Nothing waits
for a replica, except for answers in mode 2 if ``writer.replica.sync`` says so.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from math import inf
from uuid import UUID

import gevent
import gevent.event
from kafka.errors import UnknownTopicOrPartitionError

from dafka.broker.interface.broker import LATEST, BrokerInterface, CommittedOffset, TopicPartition
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace, in_pieces
from dafka.log.repeating import bounded_logger
from dafka.zper import limits
from dafka.zper.copying import Copy

log = bounded_logger(__name__)

GROUP = "zper-replica-"


class Replicas:
    """All replicas of a node. ``sync``: how many must have a message before mode 2 answers. Hub side."""

    def __init__(self, hub: Hub, broker: BrokerInterface, targets: tuple[str, ...], sync: int) -> None:
        self._broker = broker
        self._sync = sync
        self._targets = [_Target(hub, broker, address, self._acknowledged) for address in targets]
        self._waiting: dict[TopicPartition, deque[tuple[int, Callable[[], object]]]] = {}
        self._calling: set[TopicPartition] = set()  # partitions whose ``then`` are being called
        self._watch = broker.watch() if targets else None
        self._closed = False
        self._threads = (
            [hub.keep(self._begin), hub.keep(self._follow), hub.keep(self._note)] if targets else []
        )

    def __bool__(self) -> bool:
        return bool(self._targets)

    def lag(self) -> dict[str, int]:
        """How many records each replica has not answered for, by its address."""
        return {target.address: target.lag() for target in self._targets}

    def open(self, key: TopicPartition) -> None:
        """Copy a partition from now on, if it is not copied yet. Waits for a commit; raises KafkaError."""
        for target in self._targets:
            target.open(key)
        if self._watch is not None:
            self._watch.add(key)

    def are_open(self, key: TopicPartition) -> bool:
        """Whether a partition is copied: it is not any more when its topic was deleted."""
        return all(target.is_open(key) for target in self._targets)

    def when_copied(self, key: TopicPartition, offset: int, then: Callable[[], object]) -> None:
        """Call ``then`` when so many replicas as are wanted have everything before ``offset``."""
        self._waiting.setdefault(key, deque()).append((offset, then))
        self._acknowledged(key)

    def close(self) -> None:
        """Note how far each replica is, and disconnect."""
        self._closed = True
        for thread in self._threads:
            thread.kill()
        if self._watch is not None:
            self._watch.close()
        for target in self._targets:
            target.close()
        for waiting in self._waiting.values():
            log.error("%d flushes were not answered in mode 2: their replicas were not there", len(waiting))
        self._waiting.clear()

    def _is_copied(self, key: TopicPartition, offset: int) -> bool:
        return sum(target.acknowledged(key) >= offset for target in self._targets) >= self._sync

    def _acknowledged(self, key: TopicPartition) -> None:
        if key in self._calling:  # a call for this key is under way, and goes on with what comes meanwhile
            return
        self._calling.add(key)
        try:
            while (waiting := self._waiting.get(key)) and self._is_copied(key, waiting[0][0]):
                waiting.popleft()[1]()
            if not waiting:
                self._waiting.pop(key, None)
        finally:
            self._calling.discard(key)

    # -- green threads --------------------------------------------------------------------------

    def _begin(self) -> None:
        """Go on where the last run has ended."""
        assert self._watch is not None
        for target in self._targets:
            for key in Pace().over(list(target.load())):
                self._watch.add(key)
                target.wake(key)

    def _follow(self) -> None:
        """Have what has grown copied."""
        assert self._watch is not None
        while not self._closed:
            if self._watch.wait(limits.STREAM_SECONDS):
                for key in Pace().over(list(self._watch.take())):
                    for target in self._targets:
                        target.wake(key)

    def _note(self) -> None:
        """Commit now and then how far each replica is."""
        refreshed = time.monotonic()
        while True:
            gevent.sleep(limits.COPY_NOTE_SECONDS)
            refresh = time.monotonic() > refreshed + limits.COPY_REFRESH_SECONDS
            if refresh:
                refreshed = time.monotonic()
            for target in self._targets:
                target.note(refresh)


class _Target:
    """One replica: how far it is in each partition, and the copies that are under way."""

    def __init__(
        self, hub: Hub, broker: BrokerInterface, address: str, acknowledged: Callable[[TopicPartition], None]
    ) -> None:
        self.address = address
        self._group = GROUP + address.removeprefix("tcp://")
        self._hub = hub
        self._broker = broker
        self._tell_acknowledged = acknowledged
        self._offsets: dict[TopicPartition, int] = {}  # answered for
        self._topics: dict[TopicPartition, UUID] = {}  # that they are about, as far as known
        self._changed: dict[TopicPartition, None] = {}  # and not committed
        self._copies: dict[TopicPartition, Copy] = {}
        self._later: dict[TopicPartition, None] = {}  # to be copied when others are done
        self._loaded = gevent.event.Event()

    def load(self) -> list[TopicPartition]:
        """How far it was at the end of the last run; the partitions."""
        try:
            committed = self._broker.fetch_offsets(self._group, None)
        except BrokerStoppedError:
            return []
        for key, offset in committed.items():
            self._offsets.setdefault(key, offset.offset)
            self._changed[key] = None  # committed again, it does not expire
        self._loaded.set()
        return list(committed)

    def is_open(self, key: TopicPartition) -> bool:
        """Whether a partition is copied to it."""
        return key in self._offsets

    def acknowledged(self, key: TopicPartition) -> float:
        """The offset up to which it has everything; infinite for a deleted topic, of which nothing is left to
        be copied."""
        return self._offsets.get(key, inf)

    def lag(self) -> int:
        """Records that it has not answered for."""
        behind = 0
        for some in in_pieces(self._offsets, 1000):
            ends = self._broker.list_offsets(dict.fromkeys(some, LATEST), read_committed=True)
            behind += sum(
                max(end.offset - self._offsets.get(key, 0), 0)
                for key, end in ends.items()
                if end.error is None
            )
        return behind

    def open(self, key: TopicPartition) -> None:
        """Copy a partition from its end on, unless it is copied already."""
        self._loaded.wait()
        topic = self._broker.metadata([key[0]]).topics[key[0]].topic_id
        if self._topics.setdefault(key, topic) != topic:
            self._forget(key)  # it was deleted: this is another one of that name
            self._topics[key] = topic
        if key in self._offsets:
            return
        listed = self._broker.list_offsets({key: LATEST})[key]
        error = listed.error
        if error is None:
            error = self._broker.commit_offsets(self._group, {key: CommittedOffset(listed.offset)})[key]
        if error is not None:
            raise error(f"noting where replica {self.address} begins with {key}")
        self._offsets.setdefault(key, listed.offset)

    def wake(self, key: TopicPartition) -> None:
        """A partition may have more for it."""
        self._later.pop(key, None)
        offset = self._offsets.get(key)
        if offset is None:
            return
        copy = self._copies.get(key)
        if copy is not None:
            copy.wake()
            return
        end = self._broker.list_offsets({key: LATEST}, read_committed=True)[key]
        if end.error is UnknownTopicOrPartitionError or (end.error is None and end.offset < offset):
            self._forget(key)  # it was deleted; another one of that name may be there
        elif end.offset > offset and key not in self._copies:
            if len(self._copies) >= limits.COPIES_AT_ONCE:
                self._later[key] = None
                return
            self._copies[key] = Copy(
                self._hub,
                self._broker,
                key,
                self.address,
                offset,
                self._patience,
                self._copied,
                self._ended,
            )

    def note(self, everything: bool = False) -> None:
        """Commit how far it is, in the partitions where that has changed or in all."""
        changed, self._changed = self._changed, {}
        if everything:
            changed = dict.fromkeys(self._offsets)
        for some in in_pieces(changed, 500):
            wanted = {key: CommittedOffset(self._offsets[key]) for key in some if key in self._offsets}
            try:
                answers = self._broker.commit_offsets(self._group, wanted) if wanted else {}
            except BrokerStoppedError:
                return
            for key, error in answers.items():
                if error is UnknownTopicOrPartitionError:
                    self._forget(key)
                elif error is not None:
                    self._changed[key] = None
                    log.error("noting how far replica %s is: %s", self.address, error.__name__)

    def close(self) -> None:
        """End all copies."""
        for copy in list(self._copies.values()):
            copy.close()
        self.note()

    def _forget(self, key: TopicPartition) -> None:
        self._offsets.pop(key, None)
        self._topics.pop(key, None)
        self._later.pop(key, None)
        copy = self._copies.pop(key, None)
        if copy is not None:
            self._hub.spawn(copy.close)
        self._tell_acknowledged(key)

    def _copied(self, copy: Copy) -> None:
        if self._copies.get(copy.key) is not copy:  # it is about a topic that was deleted
            return
        self._offsets[copy.key] = copy.in_flight.acknowledged
        self._changed[copy.key] = None
        self._tell_acknowledged(copy.key)

    def _patience(self) -> float:
        return limits.COPY_IDLE_LEAST_SECONDS if self._later else limits.COPY_IDLE_SECONDS

    def _ended(self, copy: Copy) -> None:
        if self._copies.get(copy.key) is copy:
            del self._copies[copy.key]
            self._hub.spawn(self._go_on, copy.key)

    def _go_on(self, key: TopicPartition) -> None:
        while self._later and len(self._copies) < limits.COPIES_AT_ONCE:
            self.wake(next(iter(self._later)))
        self.wake(key)  # if something has come at the last moment
