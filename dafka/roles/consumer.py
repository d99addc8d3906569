"""The consumer: the records of its topics, each partition in order.

"If a consumer subscribes to a dafka topic it SHALL sent a GET-HEADS command in order to get the heads for
each partition of that topic." "When a consumer receives, on its consumer socket, a STORE-HELLO command it
SHOULD reply with a CONSUMER-HELLO command. [...] If the consumer is not subscribed to any dafka topic it
MUST NOT send a CONSUMER-HELLO command." As in the field (wire/README), a consumer also sends it when a store
subscribes to its hello, and one that starts at the latest record names no topics in it, because it does
not want the heads of what is there already.

Where a partition starts that has not been heard of: ``earliest`` at sequence 0, ``latest`` at the first
record seen, or behind the first head seen; a start given for the partition goes before both. A partition
that has lost its beginning says so (TRIMMED): the consumer reports the gap and goes on behind it.

FETCH is credit: no more is asked for than there is room for, and what finds no room is dropped, remembered
as head, and fetched when there is room.
"""

from __future__ import annotations

from collections.abc import Mapping

from dafka.protocol.commands import (
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
from dafka.roles.limits import PARTITIONS
from dafka.roles.outputs import Deliver, Gap, Output, Subscribe, Unsubscribe


class ConsumerRole:
    """A consumer named ``address``. ``offsets``: the sequence to start at, by partition."""

    def __init__(
        self,
        address: bytes,
        *,
        offset_reset: str = "latest",
        offsets: Mapping[bytes, int] | None = None,
    ) -> None:
        self.address = address
        self.topics: list[bytes] = []
        self._latest = offset_reset == "latest"
        self._starts = dict(offsets or {})
        self._partitions: dict[tuple[bytes, bytes], Follower] = {}
        self._behind: dict[tuple[bytes, bytes], Follower] = {}
        self._room_records = 0
        self._room_bytes = 0

    def start(self) -> list[Output]:
        """The subscriptions that every consumer has."""
        return [Subscribe(octet + self.address) for octet in (b"D", b"E", b"L", b"T")]

    def subscribe(self, now: float, topic: bytes) -> list[Output]:
        """Consume ``topic`` too."""
        if topic in self.topics:
            return []
        self.topics.append(topic)
        return [Subscribe(b"M" + topic), Subscribe(b"H" + topic), GetHeads(topic, self.address)]

    def unsubscribe(self, now: float, topic: bytes) -> list[Output]:
        """Forget ``topic``, the positions in its partitions included."""
        if topic not in self.topics:
            return []
        self.topics.remove(topic)
        for key in [key for key in self._partitions if key[0] == topic]:
            del self._partitions[key]
            self._behind.pop(key, None)
        return [Unsubscribe(b"M" + topic), Unsubscribe(b"H" + topic)]

    def set_room(self, now: float, records: int, size: int) -> list[Output]:
        """The user has room for so many records and octets from now on."""
        had_room = self._has_room
        self._room_records, self._room_bytes = records, size
        return self._ask_all(now) if self._has_room and not had_room else []

    def receive_run(self, now: float, run: Run) -> list[Output]:
        """Published or fetched records of one partition."""
        if run.topic not in self.topics:
            return []
        follower = self._follower(run.topic, run.address, run.first)
        if follower is None:
            return []
        if not self._has_room:
            follower.heard_of(run.next)
            follower.stop_asking()
            self._note(follower)
            return []
        outputs: list[Output] = []
        for taken in follower.take(now, run, self._room_records):
            self._room_records -= len(taken.contents)
            self._room_bytes -= sum(map(len, taken.contents))
            outputs.append(Deliver(run.topic, run.address, taken.first, taken.contents))
        return outputs + self._ask(now, follower)

    def receive(self, now: float, command: Command) -> list[Output]:
        """Any other command."""
        if isinstance(command, (Head, DirectHead)):
            if command.topic in self.topics:
                follower = self._follower(command.topic, command.address, command.sequence + 1)
                if follower is not None:
                    follower.heard_of(command.sequence + 1)
                    return self._ask(now, follower)
        elif isinstance(command, StoreHello):
            return self._hello(command.address)
        elif isinstance(command, Trimmed):
            return self._trimmed(now, command)
        return []

    def peer_subscribed(self, now: float, prefix: bytes) -> list[Output]:
        """A peer subscribed to ``W`` and its own address: it is a store that wants to be greeted."""
        return self._hello(prefix[1:]) if prefix[:1] == b"W" and len(prefix) > 1 else []

    def tick(self, now: float) -> list[Output]:
        """Repeat the FETCHes that were not answered in time."""
        return self._ask_all(now)

    @property
    def _has_room(self) -> bool:
        return self._room_records > 0 and self._room_bytes > 0

    @property
    def lag(self) -> int:
        """Records known of and not delivered, over all partitions."""
        return sum(follower.end - follower.next for follower in self._behind.values())

    def _hello(self, store: bytes) -> list[Output]:
        if not self.topics:
            return []
        return [ConsumerHello(store, self.address, () if self._latest else tuple(self.topics))]

    def _follower(self, topic: bytes, address: bytes, latest: int) -> Follower | None:
        key = (topic, address)
        follower = self._partitions.get(key)
        if follower is None and len(self._partitions) < PARTITIONS:
            start = self._starts.get(address, latest if self._latest else 0)
            follower = self._partitions[key] = Follower(topic, address, start)
        return follower

    def _trimmed(self, now: float, command: Trimmed) -> list[Output]:
        follower = self._partitions.get((command.topic, command.address))
        if follower is None or command.sequence <= follower.next:
            return []
        gap = Gap(command.topic, command.address, follower.next, command.sequence)
        follower.skip_to(command.sequence)
        return [gap, *self._ask(now, follower)]

    def _note(self, follower: Follower) -> None:
        key = (follower.topic, follower.address)
        if follower.behind:
            self._behind[key] = follower
        else:
            self._behind.pop(key, None)

    def _ask(self, now: float, follower: Follower) -> list[Output]:
        self._note(follower)
        asked = follower.ask(now, self._room_records if self._has_room else 0)
        if asked is None:
            return []
        return [Fetch(follower.address, self.address, follower.topic, *asked)]

    def _ask_all(self, now: float) -> list[Output]:
        return [output for follower in list(self._behind.values()) for output in self._ask(now, follower)]
