"""The store: keeps every partition it hears of, and stands in for producers that are gone.

"A store SHALL subscribe to all RECORD commands". "When a store saved a record from a producer it SHALL
ackowledge this by sending the ACK command to the same producer." "Upon receiving a FETCH command a producer
or store SHALL check if it has stored the requested record(s). In case a requested record is available it
SHALL send a DIRECT-RECORD command." "After receiving a GET-HEADS command a store SHALL send one DIRECT-HEAD
command for each partition it has records stored on the requested dafka topic". "When a store receives, on
its publisher socket, a STORE-HELLO subscription it SHALL send [...] a STORE-HELLO command to the
subscriber."

What has been handed to the log is kept apart from what the log has committed: only the latter is
acknowledged, told as a head, and served. An ACK that got lost would leave the producer waiting, so one is
repeated when a HEAD or a record shows up that is stored already. A FETCH for records that retention has
removed is answered with TRIMMED, our addition, or its sender would wait for ever.

A store also follows what the other stores have, or partitions whose producer is gone would never reach a
store that joins late. It asks them for the heads of all topics with a GET-HEADS whose topic is empty: every
name begins with the empty one, so C stores, which compare prefixes, answer it too. It asks when a store
subscribes, and again from time to time.
"""

from __future__ import annotations

from collections.abc import Mapping

from dafka.protocol.commands import (
    Ack,
    Command,
    ConsumerHello,
    DirectHead,
    Fetch,
    GetHeads,
    Head,
    StoreHello,
    Trimmed,
)
from dafka.protocol.runs import Run
from dafka.roles.follower import Follower
from dafka.roles.limits import ACK_REPEAT, HEADS_INTERVAL, PARTITIONS
from dafka.roles.outputs import Append, Output, Serve, Subscribe

ALL_TOPICS = b""
_UNBOUNDED = 1 << 40  # the log is a store's room

Key = tuple[bytes, bytes]  # topic, partition


class _Stored:
    """A partition: what is followed, and what of it the log has."""

    __slots__ = ("acked_at", "committed", "first", "follower")

    def __init__(self, topic: bytes, address: bytes, first: int, committed: int) -> None:
        self.follower = Follower(topic, address, committed)
        self.first = first
        self.committed = committed
        self.acked_at = float("-inf")


class StoreRole:
    """A store named ``address``. ``partitions``: (first, next) sequence of each partition in its log."""

    def __init__(self, address: bytes, partitions: Mapping[Key, tuple[int, int]] | None = None) -> None:
        self.address = address
        self._partitions: dict[Key, _Stored] = {}
        self._by_topic: dict[bytes, dict[bytes, _Stored]] = {}
        self._behind: dict[Key, _Stored] = {}
        self._next_look: float | None = None
        for (topic, partition), (first, committed) in (partitions or {}).items():
            self._add(topic, partition, first, committed)

    def start(self) -> list[Output]:
        """The subscriptions of a store."""
        own = [octet + self.address for octet in (b"D", b"E", b"W", b"T")]
        return [Subscribe(prefix) for prefix in (b"M", b"H", b"F", b"G", *own)]

    def receive_run(self, now: float, run: Run) -> list[Output]:
        """Published or fetched records of one partition."""
        stored = self._partition(run.topic, run.address)
        if stored is None:
            return []
        outputs: list[Output] = [
            Append(run.topic, run.address, taken.first, taken.contents)
            for taken in stored.follower.take(now, run, _UNBOUNDED)
        ]
        if not outputs and run.recipient is None and run.next <= stored.committed:
            return self._ack_again(now, stored)
        return outputs + self._ask(now, stored)

    def stored(self, now: float, topic: bytes, address: bytes, end: int) -> list[Output]:
        """The log has committed the partition up to, not including, ``end``."""
        stored = self._partition(topic, address)
        if stored is None:
            return []
        stored.committed = max(stored.committed, end)
        if end > stored.follower.next:
            stored.follower.skip_to(end)
        return self._ack(now, stored)

    def not_stored(self, now: float, topic: bytes, address: bytes) -> list[Output]:
        """The log has refused an append: what it has not committed must be fetched again, in a while."""
        stored = self._partitions.get((topic, address))
        if stored is None:
            return []
        end = stored.follower.end
        stored.follower = Follower(topic, address, stored.committed)
        stored.follower.heard_of(end)
        stored.follower.wait(now)
        self._note(stored)
        return []

    def receive(self, now: float, command: Command) -> list[Output]:
        """Any other command."""
        if isinstance(command, (Head, DirectHead)):
            stored = self._partition(command.topic, command.address)
            if stored is not None:
                stored.follower.heard_of(command.sequence + 1)
                if command.sequence < stored.committed:
                    return self._ack_again(now, stored) if isinstance(command, Head) else []
                return self._ask(now, stored)
        elif isinstance(command, Fetch):
            return self._serve(command)
        elif isinstance(command, GetHeads):
            topics = tuple(self._by_topic) if command.topic == ALL_TOPICS else (command.topic,)
            return self._heads(command.address, topics) if command.address != self.address else []
        elif isinstance(command, ConsumerHello):
            return self._heads(command.address, command.topics)
        elif isinstance(command, Trimmed):
            return self._trimmed_elsewhere(now, command)
        return []

    def trimmed(self, topic: bytes, address: bytes, first: int) -> None:
        """Retention has removed the records below ``first`` from the log."""
        stored = self._partitions.get((topic, address))
        if stored is not None:
            stored.first = max(stored.first, first)

    def peer_subscribed(self, now: float, prefix: bytes) -> list[Output]:
        """A peer subscribed to ``L`` and its own address: it is a consumer that wants to be greeted; or to
        all GET-HEADS: it is another store."""
        if prefix == b"G":
            return [GetHeads(ALL_TOPICS, self.address)]
        return [StoreHello(prefix[1:], self.address)] if prefix[:1] == b"L" and len(prefix) > 1 else []

    def tick(self, now: float) -> list[Output]:
        """Repeat the FETCHes that were not answered in time; look at the other stores when it is time to."""
        outputs = [output for stored in list(self._behind.values()) for output in self._ask(now, stored)]
        if self._next_look is None or now >= self._next_look:
            if self._next_look is not None:
                outputs.append(GetHeads(ALL_TOPICS, self.address))
            self._next_look = now + HEADS_INTERVAL
        return outputs

    def _add(self, topic: bytes, address: bytes, first: int, committed: int) -> _Stored:
        stored = _Stored(topic, address, first, committed)
        self._partitions[topic, address] = stored
        self._by_topic.setdefault(topic, {})[address] = stored
        return stored

    def _partition(self, topic: bytes, address: bytes) -> _Stored | None:
        stored = self._partitions.get((topic, address))
        if stored is None and len(self._partitions) < PARTITIONS:
            stored = self._add(topic, address, 0, 0)
        return stored

    def _ack(self, now: float, stored: _Stored) -> list[Output]:
        stored.acked_at = now
        follower = stored.follower
        return [Ack(follower.address, follower.topic, stored.committed - 1, self.address)]

    def _ack_again(self, now: float, stored: _Stored) -> list[Output]:
        return self._ack(now, stored) if now - stored.acked_at >= ACK_REPEAT else []

    def _serve(self, fetch: Fetch) -> list[Output]:
        stored = self._partitions.get((fetch.topic, fetch.partition))
        if stored is None or fetch.address == self.address or fetch.sequence >= stored.committed:
            return []
        if fetch.sequence < stored.first:
            return [Trimmed(fetch.address, fetch.partition, fetch.topic, stored.first)]
        count = min(fetch.count, stored.committed - fetch.sequence)
        return [Serve(fetch.address, fetch.topic, fetch.partition, fetch.sequence, count)] if count else []

    def _heads(self, consumer: bytes, topics: tuple[bytes, ...]) -> list[Output]:
        return [
            DirectHead(consumer, address, topic, stored.committed - 1)
            for topic in topics
            for address, stored in self._by_topic.get(topic, {}).items()
            if stored.committed
        ]

    def _trimmed_elsewhere(self, now: float, command: Trimmed) -> list[Output]:
        """Another store has lost what this one fetches; a partition that is empty here begins there, then."""
        stored = self._partitions.get((command.topic, command.address))
        if stored is None or command.sequence <= stored.follower.next or stored.committed > stored.first:
            return []
        stored.follower.skip_to(command.sequence)
        stored.first = stored.committed = command.sequence
        return self._ask(now, stored)

    def _note(self, stored: _Stored) -> None:
        key = (stored.follower.topic, stored.follower.address)
        if stored.follower.behind:
            self._behind[key] = stored
        else:
            self._behind.pop(key, None)

    def _ask(self, now: float, stored: _Stored) -> list[Output]:
        self._note(stored)
        asked = stored.follower.ask(now, _UNBOUNDED)
        if asked is None:
            return []
        follower = stored.follower
        return [Fetch(follower.address, self.address, follower.topic, *asked)]
