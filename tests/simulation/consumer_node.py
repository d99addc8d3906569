"""A consumer of the simulated mesh, and its user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dafka.roles.consumer import ConsumerRole
from dafka.roles.follower import Follower
from dafka.roles.limits import Limits
from dafka.roles.outputs import Deliver, Gap

from .nodes import Node
from .rules import PLENTY, Key, Violation, check_skip, is_content_of, require, run_of
from .tables import check_tables

if TYPE_CHECKING:
    from .network import Network


class ConsumerNode(Node):
    """A consumer and its user, which takes records a few at a time."""

    name = "consumer"

    def __init__(
        self,
        network: Network,
        address: bytes,
        offset_reset: str,
        room: tuple[int, int],
        limits: Limits,
        offsets: dict[bytes, int] | None = None,
    ) -> None:
        super().__init__(network)
        self.address, self.offset_reset, self.limits = address, offset_reset, limits
        self.room_records, self.room_bytes = room
        self.earliest = offset_reset == "earliest"
        self.topics: list[bytes] = []
        self.positions: dict[Key, int] = {}
        self.offsets = dict(offsets or {})
        self.longest_break = 0.1  # of its user, between taking some and taking more
        self.inbox: list[int] = []  # sizes of the records that the user has not taken
        self.role = self._new_role()
        self._taking = False
        network.consumers.append(self)

    def _new_role(self) -> ConsumerRole:
        role = ConsumerRole(
            self.address, offset_reset=self.offset_reset, offsets=self.offsets, limits=self.limits
        )
        role.know_stores(self.known_stores)
        return role

    def begin(self, now: float) -> None:
        """Where its user, which has noted the positions, wants to go on."""
        super().begin(now)
        self.offsets.update({partition: position for (_, partition), position in self.positions.items()})
        self.inbox.clear()
        self._taking = False
        self.role = self._new_role()
        self.carry(self.role.set_room(now, self.room_records, self.room_bytes))
        for topic in self.topics:
            self.carry(self.role.subscribe(now, topic))

    def subscribe(self, topic: bytes) -> None:
        if topic not in self.topics:
            self.topics.append(topic)
            if self.alive:
                self.carry(self.role.subscribe(self.network.now, topic))

    def unsubscribe(self, topic: bytes) -> None:
        if topic in self.topics:
            self.topics.remove(topic)
            for key in [key for key in self.positions if key[0] == topic]:
                del self.positions[key]
            if self.alive:
                self.carry(self.role.unsubscribe(self.network.now, topic))

    def carry_out(self, output: Any) -> bool:
        if isinstance(output, Gap):
            key = (output.topic, output.address)
            self.network.note(f"{self} leaves out {output}")
            expected = self._expected(key, output.first)
            require(output.first == expected, f"{self} leaves out {output} and not from {expected} on")
            check_skip(self, key, output.first, output.next)
            self.positions[key] = output.next
            return True
        if not isinstance(output, Deliver):
            return False
        key = (output.topic, output.address)
        require(output.topic in self.topics, f"{self} is given records of {output.topic!r}")
        expected = self._expected(key, output.first)
        require(
            output.first == expected, f"{self} is given record {output.first} of {key} in place of {expected}"
        )
        for sequence, content in enumerate(output.contents, output.first):
            require(is_content_of(content, output.address, sequence), f"{self} is given {content!r}")
            self._check_run(key, sequence, content)
        self.positions[key] = output.first + len(output.contents)
        self.inbox += map(len, output.contents)
        require(len(self.inbox) <= self.room_records, f"{self} is given more records than it has room for")
        require(sum(self.inbox[:-1]) < self.room_bytes, f"{self} is given more bytes than it has room for")
        if not self._taking:
            self._taking = True
            self._take_later()
        return True

    def _check_run(self, key: Key, sequence: int, content: bytes) -> None:
        """What the user is given is not numbered again by a later producer that has asked this consumer.

        But for what a store has that was away at the time.
        """
        for begin in self.network.begins.get(key, ()):
            again = run_of(content) < begin.run and begin.first <= sequence and self in begin.heard
            if again and not any(store.has_stored(key, sequence, content) for store in self.network.stores):
                raise Violation(f"{self} is given {content!r} of {key}, and {begin} has numbered it again")

    @property
    def is_half_full(self) -> bool:
        return len(self.inbox) >= self.room_records // 2 or sum(self.inbox) >= self.room_bytes // 2

    def follower(self, key: Key) -> Follower | None:
        if not self.alive or self.room_records < PLENTY or self.room_bytes < PLENTY:
            return None
        return self.role._topics.get(key[0], {}).get(key[1])

    def _expected(self, key: Key, first: int) -> int:
        start = self.offsets.get(key[1], 0 if self.earliest else first)
        return self.positions.get(key, start)

    def _take_later(self) -> None:
        self.network.later_in(self, self.network.random.uniform(0.0, self.longest_break), self._take)

    def _take(self) -> None:
        del self.inbox[: self.network.random.randint(1, len(self.inbox))]
        room = self.room_records - len(self.inbox), max(0, self.room_bytes - sum(self.inbox))
        self._taking = bool(self.inbox)
        if self._taking:
            self._take_later()
        self.carry(self.role.set_room(self.network.now, *room))
        self.resume()
        if self.inbox and not self._taking:
            self._taking = True
            self._take_later()

    def tick(self, now: float) -> None:
        super().tick(now)
        if not self._lane:
            self.role.read_up()

    def check(self) -> None:
        check_tables(self, self.limits)
