"""The processes of the simulated mesh: the real roles, and what surrounds them there.

Each checks what its role may promise at the moment it promises it (:mod:`.rules`): records given to a
consumer, acknowledged by a store, or counted as acknowledged by a producer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dafka.protocol.beacons import NodeBeacon
from dafka.protocol.commands import Claim, Fetch, Head, Trimmed
from dafka.protocol.runs import Run
from dafka.roles.follower import Follower
from dafka.roles.known_stores import KnownStores
from dafka.roles.limits import Limits
from dafka.roles.outputs import Connect, Disconnect, HearAnswers, Hold, Subscribe, Unsubscribe
from dafka.roles.peers import PeersRole
from dafka.roles.producer import ProducerRole
from dafka.roles.tower import TowerRole

from .rules import Key, content_of, expect_prompt, note_gone, require
from .tables import check_tables

if TYPE_CHECKING:
    from .network import Network

LANE_ITEMS = 50  # that wait for room at a node that can stop reading; more are lost
MOST_REPETITIONS = 4  # of one FETCH within a second


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
        self.deaf_until = 0.0
        self.endpoint = b""
        self.subscriptions: list[bytes] = []
        self.connected: dict[bytes, float] = {}  # endpoint: when the last attempt began
        self.reached: dict[bytes, int] = {}  # endpoint: which process there has answered it
        self.listeners: dict[Node, tuple[bytes, ...]] = {}  # nodes that hear this one, by subscriptions
        self.listening_since: dict[Node, float] = {}
        self.peers: PeersRole
        self.known_stores = _Connected(self)
        self._ticks = 0
        self._fetched: dict[tuple[bytes, bytes, int], list[float]] = {}
        self._lane: deque[Any] = deque()  # published records and heads that wait for room
        network.nodes.append(self)

    def __str__(self) -> str:
        return f"{self.name}{self.number}"

    def begin(self, now: float) -> None:
        """A process has nothing from the one before it."""
        port = 1000 if self.network.same_ports else 1000 + self.incarnation
        self.subscriptions = []
        self.connected = {}
        self.reached = {}
        self.listeners = {}
        self.listening_since = {}
        self._fetched = {}
        self._lane.clear()
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
            elif isinstance(output, Hold):
                self._hold(output.run)
            elif not isinstance(output, HearAnswers) and not self.carry_out(output):
                if isinstance(output, Fetch):
                    self._check_fetch(output)
                self.network.publish(self, output)

    def carry_out(self, output: Any) -> bool:
        return False

    def _check_fetch(self, fetch: Fetch) -> None:
        """It asks for something, and the same is not asked for over and over."""
        require(fetch.count > 0, f"{self} fetches nothing: {fetch}")
        now, what = self.network.now, (fetch.topic, fetch.partition, fetch.sequence)
        recently = [time for time in self._fetched.get(what, ()) if time > now - 0.9]
        self._fetched[what] = [*recently, now]
        times = len(recently) + 1
        require(times <= MOST_REPETITIONS, f"{self} sent {times} times within a second: {fetch}")

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
        published = item.recipient is None if isinstance(item, Run) else isinstance(item, Head)
        if published and self._lane:
            if len(self._lane) < LANE_ITEMS:
                self._lane.append(item)
        else:
            self._receive(now, item)

    @property
    def keeps_what_it_has_no_room_for(self) -> bool:
        """Every other node does; the rest fetch it later."""
        return bool(self.number % 2)

    @property
    def is_half_full(self) -> bool:
        """Whether half of the room for records is in use; the other half may be set aside for fetches."""
        return True

    def follower(self, key: Key) -> Follower | None:
        """How far it has come with a partition; None if it has nothing of it, or is slow for want of room."""
        return None

    def resume(self) -> None:
        """There may be room again for what waits."""
        waiting, self._lane = self._lane, deque()
        while waiting and not self._lane:
            self._receive(self.network.now, waiting.popleft())
        self._lane.extend(waiting)

    def _hold(self, run: Run) -> None:
        require(self.is_half_full, f"{self} has no room for {run.first} and is not half full")
        if self.keeps_what_it_has_no_room_for:
            self._lane.appendleft(run)
        else:
            self._receive(self.network.now, Head(run.address, run.topic, run.next - 1))

    def _receive(self, now: float, item: Any) -> None:
        if isinstance(item, Claim) and self._lane:
            self.carry(self.role.receive(now, item, unread=True))
        elif not isinstance(item, Run):
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
        self.resume()
        self.carry_peers(self.peers.tick(now))
        self._ticks += 1
        if self._ticks % 5 == 0:
            self.check()

    def check(self) -> None:
        """What must hold at any time."""


class _Connected(KnownStores):
    """The stores that a node is connected to, by what it knows of its listeners."""

    def __init__(self, node: Node) -> None:
        self._node = node

    @property
    def present(self) -> set[bytes]:  # type: ignore[override]
        return self._subscribed(b"W")

    @property
    def ours(self) -> set[bytes]:  # type: ignore[override]
        return self.present & self._subscribed(b"T")

    def _subscribed(self, octet: bytes) -> set[bytes]:
        listeners = self._node.listeners.values()
        return {prefix[1:] for prefixes in listeners for prefix in prefixes if prefix[:1] == octet}


class ProducerNode(Node):
    name = "producer"

    def __init__(
        self,
        network: Network,
        topic: bytes,
        address: bytes,
        min_stores: int,
        limits: Limits,
        store_timeout: float | None = None,
    ) -> None:
        super().__init__(network)
        self.role = ProducerRole(
            topic,
            address,
            min_stores=min_stores,
            head_interval=1.0,
            store_timeout=store_timeout,
            limits=limits,
        )
        self.role.know_stores(self.known_stores)
        self.key = (topic, address)
        self.limits = limits
        self.asked_from = 0  # by the FETCH that it answers
        self.memory: int | None = None  # octets of contents that it has room for, with ``min_stores`` 0
        network.producers.append(self)

    def send(self, records: int) -> None:
        if self.alive and self.may_send():
            first = self.role.next_sequence
            contents = [self.content_of(first + index) for index in range(records)]
            expect_prompt(self.network, self, first, first + records)
            self.carry([self.role.publish(self.network.now, contents)])
            if self.memory is not None and self.role.retained_bytes > self.memory:
                self.forget()

    def may_send(self) -> bool:
        return True

    def content_of(self, sequence: int) -> bytes:
        return content_of(self.role.address, sequence)

    def forget(self) -> None:
        """Memory is short: let go of half of what is kept for consumers."""
        if self.alive:
            self.role.forget(self.role.retained_bytes // 2)
            note_gone(self.network, self.key, self.role.first_retained)

    def carry_out(self, output: Any) -> bool:
        # A store's own late FETCH of what it has acknowledged since is answered so, too: it ignores that.
        told = self.role._stores.get(output.recipient, 0) if isinstance(output, Trimmed) else 0
        if isinstance(output, Trimmed) and self.role.store_timeout is not None and told <= self.asked_from:
            # What it forgot is gone anyway; else all that is gone are the disks of the stores that had it.
            forgotten = self.network.gone.get(self.key, 0)
            for store in self.network.stores:
                held = store.log[self.key].records if self.key in store.log and not store.destroyed else ()
                lost = range(max(forgotten, self.asked_from), output.sequence)
                require(
                    not any(sequence in held for sequence in lost),
                    f"{self} says that {lost} is gone, and {store} has some of it",
                )
            note_gone(self.network, self.key, output.sequence)
        return False

    def holds(self, sequence: int) -> bool:
        return self.alive and self.role.first_retained <= sequence < self.role.next_sequence

    def hear(self, now: float, item: Any) -> None:
        if isinstance(item, Fetch):
            self.asked_from = item.sequence
        super().hear(now, item)
        if self.role.min_stores and self.role.first_unacknowledged > self.role.first_sequence:
            committed = sorted(store.acknowledged.get(self.key, 0) for store in self.network.stores)
            require(
                len(committed) >= self.role.min_stores
                and committed[-self.role.min_stores] >= self.role.first_unacknowledged,
                f"{self} counts records below {self.role.first_unacknowledged} as acknowledged by "
                f"{self.role.min_stores} stores, which have acknowledged up to {committed}",
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
                found == [self.content_of(number) for number in wanted],
                f"{self} no longer has record {first}, which is not acknowledged",
            )


class _Silent:
    """The role of a node that takes part in nothing."""

    def start(self) -> list[Any]:
        return []

    def tick(self, now: float) -> list[Any]:
        return []

    def receive(self, now: float, item: Any) -> list[Any]:
        return []


class IntruderNode(Node):
    """A node that tells of partitions that do not exist, so that others ask for what nobody sends."""

    name = "intruder"
    LARGEST = 100_000  # records that it tells of in one of them

    def __init__(self, network: Network, topics: list[bytes]) -> None:
        super().__init__(network)
        self.role = _Silent()
        self.topics = topics
        self._told = 0

    def tell(self, partitions: int) -> None:
        for _ in range(partitions):
            self._told += 1
            sequence = self.network.random.randrange(self.LARGEST)
            topic = self.network.random.choice(self.topics)
            self.network.publish(self, Head(b"I" * 24 + b"%08d" % self._told, topic, sequence))


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
