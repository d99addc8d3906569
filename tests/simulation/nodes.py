"""The processes of the simulated mesh: the real roles, and what surrounds them there.

Each checks what its role may promise at the moment it promises it (:class:`Violation`): what a consumer is
given, what a store acknowledges, what a producer counts as acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dafka.protocol.beacons import NodeBeacon
from dafka.protocol.commands import Ack, Fetch, Head
from dafka.protocol.runs import Run
from dafka.roles.consumer import ConsumerRole
from dafka.roles.limits import Limits
from dafka.roles.outputs import (
    Append,
    Begin,
    Connect,
    Deliver,
    Disconnect,
    Gap,
    Serve,
    Subscribe,
    Unsubscribe,
)
from dafka.roles.peers import PeersRole
from dafka.roles.producer import ProducerRole
from dafka.roles.store import StoreRole
from dafka.roles.tower import TowerRole

from .tables import check_tables

if TYPE_CHECKING:
    from .network import Network

Key = tuple[bytes, bytes]  # topic, partition

SETTLED = 2.0  # seconds without faults after which an answer that exists is one that arrives


class Violation(AssertionError):
    """Something the mesh promises did not hold."""


def require(condition: bool, text: str) -> None:
    if not condition:
        raise Violation(text)


def content_of(address: bytes, sequence: int) -> bytes:
    return b"%s/%d" % (address[-4:], sequence)


class TowerNode:
    """A tower: tells every node of every beacon. Nodes it cannot reach hear nothing from it."""

    def __init__(self, network: Network, number: int) -> None:
        self.network = network
        self.number = number
        self.alive = True
        self.role = TowerRole(b"10.1.0.%d" % number)
        self.listeners: dict[Any, Any] = {}  # nobody subscribes to anything but beacons
        network.towers.append(self)

    def hear(self, sender: Node, beacon: NodeBeacon) -> None:
        network = self.network
        if not self.alive or network.is_cut(sender, self):
            return
        told = self.role.receive(beacon, f"10.0.0.{sender.number}")
        require(told is not None, "a tower could not tell where a node is")
        for node in network.nodes:
            if node.alive and not network.is_cut(self, node) and not network.is_lost():
                delay = network.delay_of(self.number, node.number)
                network.later_in(node, delay, node.hear_beacon, told)

    def go_down(self, seconds: float) -> None:
        self.alive = False
        self.network.later(seconds, self._come_back)

    def _come_back(self) -> None:
        self.alive = True
        for node in self.network.nodes:
            if node.alive:  # the welcome of a new connection
                self.network.later_in(node, 0.01, node.hear_welcome)


class Node:
    """A role with its sockets; sub-classes carry out what is not for the network."""

    role: Any
    name = "node"

    def __init__(self, network: Network) -> None:
        self.network = network
        self.number = len(network.nodes) + 100
        self.alive = False
        self.incarnation = 0
        self.stopped_until = 0.0
        self.endpoint = b""
        self.subscriptions: list[bytes] = []
        self.connected: dict[bytes, bool] = {}  # endpoints
        self.listeners: dict[Node, tuple[bytes, ...]] = {}  # who hears this node, and what of it
        self.listening_since: dict[Node, float] = {}
        self.peers: PeersRole
        self._ticks = 0
        network.nodes.append(self)

    def __str__(self) -> str:
        return f"{self.name}{self.number}"

    def begin(self, now: float) -> None:
        """A process has nothing from the one before it."""
        port = 1000 + self.incarnation
        self.subscriptions = []
        self.connected = {}
        self.listeners = {}
        self.listening_since = {}
        self.endpoint = b"tcp://10.0.0.%d:%d" % (self.number, port)
        self.peers = PeersRole(b"%032d" % (self.number * 1000 + self.incarnation), b"", port)

    def carry(self, outputs: Iterable[Any]) -> None:
        for output in outputs:
            if isinstance(output, Subscribe):
                self.subscriptions.append(output.prefix)
                self.network.subscribed(self, output.prefix)
            elif isinstance(output, Unsubscribe):
                self.subscriptions.remove(output.prefix)
                self.network.unsubscribed(self, output.prefix)
            elif not self.carry_out(output):
                self.network.publish(self, output)

    def carry_out(self, output: Any) -> bool:
        return False

    def carry_peers(self, outputs: Iterable[Any]) -> None:
        network = self.network
        for output in outputs:
            if isinstance(output, NodeBeacon):
                for tower in network.towers:
                    if not network.is_lost():
                        network.later(network.delay_of(self.number, tower.number), tower.hear, self, output)
            elif isinstance(output, Connect):
                network.connect(self, output.endpoint)
            elif isinstance(output, Disconnect):
                network.disconnect(self, output.endpoint)

    def hear(self, now: float, item: Any) -> None:
        if not isinstance(item, Run):
            self.carry(self.role.receive(now, item))
        elif hasattr(self.role, "receive_run"):
            self.carry(self.role.receive_run(now, item))

    def hear_beacon(self, beacon: Any) -> None:
        self.carry_peers(self.peers.beacon(self.network.now, beacon))

    def hear_welcome(self) -> None:
        self.carry_peers(self.peers.start(self.network.now))

    def hear_subscription(self, now: float, prefix: bytes) -> None:
        if hasattr(self.role, "peer_subscribed"):
            self.carry(self.role.peer_subscribed(now, prefix))

    def tick(self, now: float) -> None:
        self.carry(self.role.tick(now))
        self.carry_peers(self.peers.tick(now))
        self._ticks += 1
        if self._ticks % 5 == 0:
            self.check()

    def check(self) -> None:
        """What must hold at any time."""


class ProducerNode(Node):
    name = "producer"

    def __init__(
        self, network: Network, topic: bytes, address: bytes, min_stores: int, limits: Limits
    ) -> None:
        super().__init__(network)
        self.role = ProducerRole(topic, address, min_stores=min_stores, head_interval=1.0, limits=limits)
        self.key = (topic, address)
        self.limits = limits

    def send(self, records: int) -> None:
        if self.alive:
            first = self.role.next_sequence
            contents = [content_of(self.role.address, first + index) for index in range(records)]
            self.carry([self.role.publish(self.network.now, contents)])

    def forget(self) -> None:
        """Memory is short: let go of half of what is kept for consumers."""
        if self.alive:
            self.role.forget(self.role.retained_bytes // 2)
            note_gone(self.network, self.key, self.role.first_retained)

    def holds(self, sequence: int) -> bool:
        return self.alive and self.role.first_retained <= sequence < self.role.next_sequence

    def hear(self, now: float, item: Any) -> None:
        super().hear(now, item)
        if self.role.min_stores and self.role.first_unacknowledged:
            committed = sorted(store.end(self.key) for store in stores(self.network))
            require(
                len(committed) >= self.role.min_stores
                and committed[-self.role.min_stores] >= self.role.first_unacknowledged,
                f"{self} counts records below {self.role.first_unacknowledged} as acknowledged by "
                f"{self.role.min_stores} stores, which have committed up to {committed}",
            )

    def check(self) -> None:
        """What is not acknowledged can be fetched."""
        role = self.role
        check_tables(self, self.limits)
        if role.min_stores and role.unacknowledged:
            first = role.first_unacknowledged
            runs = role.receive(self.network.now, Fetch(role.address, b"C" * 32, role.topic, first, 5))
            found = [content for run in runs for content in run.contents]
            wanted = range(first, min(first + 5, role.next_sequence))
            require(
                found == [content_of(role.address, number) for number in wanted],
                f"{self} no longer has record {first}, which is not acknowledged",
            )


class Partition:
    """The records of one partition in a store's log, by sequence."""

    def __init__(self) -> None:
        self.first = self.next = 0
        self.records: dict[int, bytes] = {}


class StoreNode(Node):
    """A store whose log outlives it; commits take a while and may fail."""

    name = "store"

    def __init__(self, network: Network, address: bytes, limits: Limits, *, plain: bool = False) -> None:
        super().__init__(network)
        self.address, self.limits = address, limits
        self.plain = plain  # its ACKs do not name it, as those of C stores
        self.destroyed = False
        self.log: dict[Key, Partition] = {}
        self.acknowledged: dict[Key, int] = {}  # sequences below
        self.role = StoreRole(address, limits=limits)
        self._committing = 0.0  # when the last commit under way will be done
        self._uncommitted = 0
        self._begins: dict[Key, int] = {}

    def begin(self, now: float) -> None:
        """With nothing but the log."""
        super().begin(now)
        known = {key: (partition.first, partition.next) for key, partition in self.log.items()}
        self.role = StoreRole(self.address, known, limits=self.limits)
        self._committing, self._uncommitted = 0.0, 0
        self._begins.clear()

    def destroy(self) -> None:
        """It is gone for good, and its disk with it."""
        self.network.kill(self)
        self.destroyed = True

    def trim(self) -> None:
        """Retention lets go of the beginning of a partition."""
        if self.alive and self.log:
            key = self.network.random.choice(list(self.log))
            partition = self.log[key]
            first = self.network.random.randint(partition.first, partition.next)
            for sequence in range(partition.first, first):
                partition.records.pop(sequence, None)
            partition.first = first
            note_gone(self.network, key, first)
            self.network.note(f"{self} trims {key[1][-4:].decode()} to {first}")
            self.role.trimmed(*key, first)

    def end(self, key: Key) -> int:
        partition = self.log.get(key)
        return partition.next if partition is not None else 0

    def holds(self, key: Key, sequence: int) -> bool:
        return self.alive and key in self.log and sequence in self.log[key].records

    def carry_out(self, output: Any) -> bool:
        network = self.network
        if isinstance(output, Append):
            key = (output.topic, output.address)
            begin = self._begins.pop(key, None)
            self._uncommitted += len(output.contents)
            require(
                self._uncommitted <= self.limits.uncommitted_records,
                f"{self} has {self._uncommitted} records under way to its log",
            )
            self._committing = max(self._committing, network.now + network.random.uniform(0.0, 0.05))
            delay = self._committing - network.now
            network.later_in(self, delay, self._commit, output, begin)
        elif isinstance(output, Begin):
            key = (output.topic, output.address)
            network.note(f"{self} begins {output.address[-4:].decode()} at {output.first}")
            check_skip(self, key, self.end(key), output.first)
            self._begins[key] = output.first
        elif isinstance(output, Serve):
            self._serve(output)
        elif isinstance(output, Ack):
            key = (output.topic, output.partition)
            require(
                output.sequence < self.end(key),
                f"{self} acknowledges record {output.sequence} and has committed up to {self.end(key)}",
            )
            self.acknowledged[key] = max(self.acknowledged.get(key, 0), output.sequence + 1)
            network.publish(self, output._replace(store=b"") if self.plain else output)
        else:
            return False
        return True

    def _commit(self, append: Append, begin: int | None) -> None:
        key = (append.topic, append.address)
        network, partition = self.network, self.log.get(key)
        self._uncommitted -= len(append.contents)
        at = self.end(key) if begin is None else begin
        if append.first != at or network.random.random() < network.faults.failing_writes:
            self.carry(self.role.not_stored(network.now, *key))
            return
        if partition is None:
            partition = self.log[key] = Partition()
        if not partition.records:
            partition.first = append.first
        for sequence, content in enumerate(append.contents, append.first):
            require(content == content_of(append.address, sequence), f"{self} stores {content!r}")
            partition.records[sequence] = content
        partition.next = append.first + len(append.contents)
        self.carry(self.role.stored(network.now, *key, partition.next))

    def _serve(self, serve: Serve) -> None:
        """As the mesh does: what is there from the first one on, or where the records go on."""
        partition = self.log[serve.topic, serve.address]
        require(
            serve.first + serve.count <= partition.next, f"{self} serves what it has not committed: {serve}"
        )
        contents = []
        for sequence in range(serve.first, serve.first + serve.count):
            if sequence not in partition.records:
                break
            contents.append(partition.records[sequence])
        if contents:
            run = Run(serve.recipient, serve.address, serve.topic, serve.first, contents)
            self.network.publish(self, run)
        else:
            following = min((number for number in partition.records if number > serve.first), default=None)
            if following is not None:
                self.network.publish(self, trimmed(serve, following))

    def check(self) -> None:
        check_tables(self, self.limits)


class ConsumerNode(Node):
    """A consumer and its user, who takes records a few at a time."""

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

    def _new_role(self) -> ConsumerRole:
        return ConsumerRole(
            self.address, offset_reset=self.offset_reset, offsets=self.offsets, limits=self.limits
        )

    def begin(self, now: float) -> None:
        """Where its user, who has noted the positions, wants to go on."""
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
            require(output.first == self._expected(key, output.first), f"{self} leaves out too much: {output}")
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
            require(content == content_of(output.address, sequence), f"{self} is given {content!r}")
        self.positions[key] = output.first + len(output.contents)
        self.inbox += map(len, output.contents)
        require(len(self.inbox) <= self.room_records, f"{self} is given more records than it has room for")
        require(sum(self.inbox[:-1]) < self.room_bytes, f"{self} is given more bytes than it has room for")
        if not self._taking:
            self._taking = True
            self._take_later()
        return True

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
        if self.inbox and not self._taking:
            self._taking = True
            self._take_later()

    def check(self) -> None:
        check_tables(self, self.limits)


class _Silent:
    """The role of a node that takes part in nothing."""

    def start(self) -> list[Any]:
        return []

    def tick(self, now: float) -> list[Any]:
        return []

    def receive(self, now: float, item: Any) -> list[Any]:
        return []


class FloodNode(Node):
    """A node that makes partitions up, more than anybody has a place for."""

    name = "flood"

    def __init__(self, network: Network, topics: list[bytes]) -> None:
        super().__init__(network)
        self.role = _Silent()
        self.topics = topics

    def flood(self, partitions: int) -> None:
        for _ in range(partitions):
            address = b"F" * 24 + b"%08d" % self.network.random.randrange(1000)
            topic = self.network.random.choice(self.topics)
            if self.network.random.random() < 0.5:
                self.network.publish(self, Head(address, topic, self.network.random.randrange(5)))
            else:
                self.network.publish(self, Run(None, address, topic, 0, [content_of(address, 0)]))


def stores(network: Network) -> list[StoreNode]:
    return [node for node in network.nodes if isinstance(node, StoreNode)]


def producers(network: Network) -> list[ProducerNode]:
    return [node for node in network.nodes if isinstance(node, ProducerNode)]


def consumers(network: Network) -> list[ConsumerNode]:
    return [node for node in network.nodes if isinstance(node, ConsumerNode)]


def trimmed(serve: Serve, following: int) -> Any:
    from dafka.protocol.commands import Trimmed

    return Trimmed(serve.recipient, serve.address, serve.topic, following)


def note_gone(network: Network, key: Key, first: int) -> None:
    network.gone[key] = max(first, network.gone.get(key, 0))


def check_skip(node: Node, key: Key, first: int, following: int) -> None:
    """A node leaves out the records ``first`` to ``following - 1``.

    They must have been let go of somewhere. And without faults nothing is left out that another node, with
    which this one has been connected for a while, could have sent.
    """
    network = node.network
    require(
        first < following <= network.gone.get(key, 0),
        f"{node} leaves out {first}..{following - 1} of {key}; let go of are those below "
        f"{network.gone.get(key, 0)}",
    )
    settled = network.now - SETTLED
    if network.calm_since > settled:
        return
    for other in network.nodes:
        if other is node or not network.are_linked(node, other, settled):
            continue
        for sequence in range(first, following):
            held = (isinstance(other, StoreNode) and other.holds(key, sequence)) or (
                isinstance(other, ProducerNode) and other.key == key and other.holds(sequence)
            )
            require(not held, f"{node} leaves out record {sequence} of {key}, which {other} has")
