"""A network in memory, under a virtual clock: it loses, doubles, delays and reorders messages, and is cut.

One seed decides everything: all chance comes from one generator, nothing depends on the machine's clock or on
the order of a hash table. So a failing seed replays exactly, message by message; ``digest`` sums up all that
arrived and shows it.

Only the promises of ZeroMQ are taken as given. A subscriber that connects has its subscriptions told to the
publisher a moment later; messages published before that do not reach it. While a link is cut everything on it
is lost; when it is mended subscriptions are told anew. A process that has ended hears nothing, one that is
stopped hears everything late. Records of a run are lost one by one. In half of the seeds processes come back
on the port that they had, and are connected to again when the role of a node expects them.
"""

from __future__ import annotations

import heapq
import random
import zlib
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from dafka.protocol.commands import Command
from dafka.protocol.framing import Framing, decode, encode
from dafka.protocol.runs import Run, RunReader, encode_run, topic_of

from .nodes import Node, ProducerNode, TowerNode
from .octets import OctetLink

if TYPE_CHECKING:
    from .consumer_node import ConsumerNode
    from .store_node import StoreNode

TICK = 0.1  # seconds, as the mesh does it
REST_DELAY = 0.001  # of octets behind those before them
AGAIN = 0.1  # between looks at whether who was lost is expected
LINK_DELAY = 0.002  # of subscriptions, which ZeroMQ neither loses nor reorders

Item = Run | Command


class Faults(NamedTuple):
    """Probabilities, but for ``delay``: the longest in seconds."""

    loss: float = 0.0
    doubling: float = 0.0
    delay: float = 0.005
    reorders: bool = False
    failing_writes: float = 0.0


CALM = Faults()


class Begin(NamedTuple):
    """The ``run``-th producer of a partition begins at ``first``; ``heard`` are consumers it could ask."""

    run: int
    first: int
    heard: frozenset[Node]


class Network:
    """All future events by time, and the subscriptions between nodes."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.now = 0.0
        self.faults = CALM
        self.calm_since = float("inf")
        self.through_frames = False  # commands travel as frames, not as objects
        self.through_octets = False  # they travel as octets, which are torn apart
        self.same_ports = False  # a process that comes back has the port that it had
        self.nodes: list[Node] = []
        self.towers: list[TowerNode] = []
        self.stores: list[StoreNode] = []
        self.producers: list[ProducerNode] = []
        self.consumers: list[ConsumerNode] = []
        self.endpoints: dict[bytes, Node] = {}  # of the processes that run
        self.gone: dict[tuple[bytes, bytes], int] = {}
        """By (topic, partition): records below were let go of somewhere, by retention or by ``forget``."""
        self.answered: dict[bytes, dict[StoreNode, None]] = {}
        """By the claimant of a partition: the stores that have told it what they have."""
        self.begins: dict[tuple[bytes, bytes], list[Begin]] = {}
        """By (topic, partition): where later producers of it have begun."""
        self.messages = 0
        self.digest = 0
        self.trace: Callable[[str], None] | None = None
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._serial = count()
        self._cut: dict[tuple[int, int], int] = {}
        self._last_arrival: dict[tuple[int, int], float] = {}
        self._links: dict[tuple[Node, Node], tuple[tuple[int, int], OctetLink]] = {}
        self._tearing = random.Random(f"tearing {seed}")

    # -- time ---------------------------------------------------------------------------------------

    def later(self, seconds: float, call: Callable[..., None], *arguments: Any) -> None:
        """Call after so many seconds."""
        heapq.heappush(self._events, (self.now + seconds, next(self._serial), call, arguments))

    def later_in(self, node: Node, seconds: float, call: Callable[..., None], *arguments: Any) -> None:
        """The same inside a node's process: not once it has ended, and late while it is stopped."""
        self.later(seconds, self._in_process, node, node.incarnation, call, arguments)

    def _in_process(self, node: Node, incarnation: int, call: Callable[..., None], arguments: Any) -> None:
        if not node.alive or node.incarnation != incarnation:
            return
        if node.stopped_until > self.now:
            self.later(node.stopped_until - self.now, self._in_process, node, incarnation, call, arguments)
        else:
            call(*arguments)

    def run(self, until: float) -> None:
        """Let everything happen that is due up to ``until``."""
        events = self._events
        while events and events[0][0] <= until:
            self.now, _, call, arguments = heapq.heappop(events)
            call(*arguments)
        self.now = until

    # -- processes ----------------------------------------------------------------------------------

    def start(self, node: Node) -> None:
        """A process begins, with the role that the node has now."""
        node.incarnation += 1
        node.alive = True
        node.begin(self.now)
        self.endpoints[node.endpoint] = node
        node.carry(node.role.start())
        node.carry_peers(node.peers.start(self.now))
        self.later_in(node, self.random.uniform(0.0, TICK), self._tick, node)

    def kill(self, node: Node) -> None:
        """A process ends without a word."""
        if node.alive:
            node.alive = False
            node.listeners = {}
            self.endpoints.pop(node.endpoint, None)
            for other in self.nodes:
                other.listeners.pop(node, None)
                if other.alive and node.endpoint in other.connected:
                    self._expect(other, node.endpoint, other.connected[node.endpoint], self.now)

    def stop(self, node: Node, seconds: float) -> None:
        """A process is stopped, and goes on later with everything that has arrived."""
        node.stopped_until = max(node.stopped_until, self.now + seconds)

    def deafen(self, node: Node, seconds: float) -> None:
        """Nothing reaches a node, while the others hear it."""
        node.deaf_until = max(node.deaf_until, self.now + seconds)

    def _tick(self, node: Node) -> None:
        node.tick(self.now)
        self.later_in(node, TICK, self._tick, node)

    # -- links --------------------------------------------------------------------------------------

    def connect(self, node: Node, endpoint: bytes) -> None:
        """The node's subscriber socket connects to a publisher."""
        began = node.connected[endpoint] = self.now
        peer = self.endpoints.get(endpoint)
        if peer is None:
            self._expect(node, endpoint, began, self.now)
        else:
            node.reached[endpoint] = peer.incarnation
            node.peers.reached(endpoint)
            self._establish(node, peer)

    def _expect(self, node: Node, endpoint: bytes, began: float, lost: float) -> None:
        """A connection, or an attempt, of the time ``began`` has failed."""
        if self.same_ports:
            self.later_in(node, AGAIN, self._connect_again, node, endpoint, began, lost)

    def _connect_again(self, node: Node, endpoint: bytes, began: float, lost: float) -> None:
        if node.connected.get(endpoint) != began:
            return
        if node.peers.expected(self.now, endpoint, began, lost):
            self.connect(node, endpoint)
        else:
            self._expect(node, endpoint, began, lost)

    def _publishers(self, node: Node) -> Iterator[Node]:
        """Those that the node is connected to."""
        for endpoint in node.connected:
            peer = self.endpoints.get(endpoint)
            if peer is not None and node.reached.get(endpoint) == peer.incarnation:
                yield peer

    def disconnect(self, node: Node, endpoint: bytes) -> None:
        node.connected.pop(endpoint, None)
        node.reached.pop(endpoint, None)
        peer = self.endpoints.get(endpoint)
        if peer is not None:
            peer.listeners.pop(node, None)

    def subscribed(self, node: Node, prefix: bytes) -> None:
        """The node subscribes: the publishers it is connected to learn of it."""
        for peer in self._publishers(node):
            self.later_in(peer, LINK_DELAY, self._hear_subscription, peer, node, node.incarnation, prefix)

    def unsubscribed(self, node: Node, prefix: bytes) -> None:
        for peer in self._publishers(node):
            self.later_in(peer, LINK_DELAY, self._forget_subscription, peer, node, prefix)

    def cut(self, one: Node | TowerNode, other: Node | TowerNode, seconds: float) -> None:
        """Nothing passes between two nodes, either way, for so long."""
        for a, b in ((one, other), (other, one)):
            self._cut[a.number, b.number] = self._cut.get((a.number, b.number), 0) + 1
            a.listeners.pop(b, None)  # type: ignore[arg-type]
        self.later(seconds, self._mend, one, other)

    def _mend(self, one: Node | TowerNode, other: Node | TowerNode) -> None:
        for a, b in ((one, other), (other, one)):
            self._cut[a.number, b.number] -= 1
            if isinstance(a, Node) and isinstance(b, Node) and b in self._publishers(a):
                self._establish(a, b)

    def is_cut(self, one: Node | TowerNode, other: Node | TowerNode) -> bool:
        return self._cut.get((one.number, other.number), 0) > 0

    def are_linked(self, one: Node, other: Node, since: float) -> bool:
        """Whether each has heard the other for some time."""
        return (
            one.listening_since.get(other, since + 1.0) <= since
            and other.listening_since.get(one, since + 1.0) <= since
            and other in one.listeners
            and one in other.listeners
        )

    def _establish(self, node: Node, peer: Node) -> None:
        for prefix in node.subscriptions:
            self.later_in(peer, LINK_DELAY, self._hear_subscription, peer, node, node.incarnation, prefix)

    def _hear_subscription(self, peer: Node, node: Node, incarnation: int, prefix: bytes) -> None:
        if not node.alive or node.incarnation != incarnation or peer not in self._publishers(node):
            return
        if self.is_cut(node, peer) or prefix not in node.subscriptions:
            return
        prefixes = peer.listeners.get(node, ())
        if not prefixes:
            peer.listening_since[node] = self.now
        if prefix not in prefixes:
            peer.listeners[node] = (*prefixes, prefix)
        peer.hear_subscription(self.now, prefix)

    def _forget_subscription(self, peer: Node, node: Node, prefix: bytes) -> None:
        if node in peer.listeners and prefix not in node.subscriptions:
            peer.listeners[node] = tuple(known for known in peer.listeners[node] if known != prefix)

    # -- messages -----------------------------------------------------------------------------------

    def publish(self, sender: Node, item: Item) -> None:
        """To everybody whose subscriptions the publisher knows."""
        topic = topic_of(item)
        for node, prefixes in sender.listeners.items():
            if topic.startswith(prefixes):
                for message in self._survivors(item):
                    self.messages += 1
                    arrival = self.delay_of(sender.number, node.number)
                    self.later_in(node, arrival, self._arrive, sender, node, message)

    def _arrive(self, sender: Node, node: Node, item: Item) -> None:
        if self.is_cut(sender, node) or node.deaf_until > self.now:
            self._links.pop((sender, node), None)  # with what was on the way
            return
        place = item.first if isinstance(item, Run) else len(item)
        line = f"{self.now:9.4f} {sender} -> {node}: {type(item).__name__} {place}"
        self.digest = zlib.crc32(line.encode(), self.digest)
        if self.trace is not None:
            self.trace(f"{self.now:9.4f} {sender} -> {node}: {_shown(item)}")
        framing = Framing.RFC46 if sender.number % 2 else Framing.LIBDAFKA
        if self.through_frames:
            for piece in _through_frames(item, framing):
                node.hear(self.now, piece)
        elif self.through_octets:
            link = self._link(sender, node)
            for piece in link.carry(item, framing):
                node.hear(self.now, piece)
            self.later_in(node, REST_DELAY, self._arrive_rest, sender, node, link)
        else:
            node.hear(self.now, item)

    def _link(self, sender: Node, node: Node) -> OctetLink:
        processes = sender.incarnation, node.incarnation
        known = self._links.get((sender, node))
        if known is None or known[0] != processes:
            known = self._links[sender, node] = processes, OctetLink(self._tearing)
        return known[1]

    def _arrive_rest(self, sender: Node, node: Node, link: OctetLink) -> None:
        """The octets of what has arrived that were on the way still."""
        known = self._links.get((sender, node))
        if known is None or known[1] is not link:
            return
        if self.is_cut(sender, node) or node.deaf_until > self.now:
            del self._links[sender, node]
            return
        for piece in link.rest():
            node.hear(self.now, piece)

    def note(self, text: str) -> None:
        """Something that is not a message, for the trace."""
        if self.trace is not None:
            self.trace(f"{self.now:9.4f} {text}")

    def delay_of(self, sender: int, receiver: int) -> float:
        """How long a message takes, which also says which one before it it must not overtake."""
        arrival = self.now + self.random.uniform(0.0005, self.faults.delay)
        if not self.faults.reorders:
            arrival = max(arrival, self._last_arrival.get((sender, receiver), 0.0))
            self._last_arrival[sender, receiver] = arrival
        return arrival - self.now

    def is_lost(self) -> bool:
        return self.random.random() < self.faults.loss

    def _survivors(self, item: Item) -> Iterator[Item]:
        """What arrives of a message: nothing, or it once or twice; of a run any pieces."""
        pieces = [item]
        if isinstance(item, Run) and self.faults.loss:
            pieces = []
            start = 0
            for position in range(len(item.contents) + 1):
                if position == len(item.contents) or self.is_lost():
                    if position > start:
                        pieces.append(
                            item._replace(first=item.first + start, contents=item.contents[start:position])
                        )
                    start = position + 1
        elif self.is_lost():
            return
        for piece in pieces:
            yield piece
            if self.random.random() < self.faults.doubling:
                yield piece


def _through_frames(item: Item, framing: Framing) -> list[Item]:
    """The same after the way through the protocol layer, in one of its framings."""
    if not isinstance(item, Run):
        return [decode(encode(item, framing))]
    inbound = RunReader().read(encode_run(item, framing))
    assert not inbound.commands and not inbound.discarded
    return list(inbound.runs)


def _shown(item: Item) -> str:
    if isinstance(item, Run):
        kind = "RECORD" if item.recipient is None else "DIRECT-RECORD"
        return f"{kind} {item.topic.decode()} {item.address[-4:].decode()} {item.first}..{item.next - 1}"
    return str(item)
