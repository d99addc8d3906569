"""Nodes of the overlay in memory, under a virtual clock, and the connections between them.

One seed decides everything, so a failing one replays exactly; ``digest`` sums up all that arrived. A
connection is what TCP is: in order and without loss while it lives, each message somewhat late; messages
under way when it ends are lost. Its ends learn of that a little later, each for itself, or not at all.
"""

from __future__ import annotations

import heapq
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from dafka.overlay.core import Core
from dafka.overlay.flow import Pause, Resume
from dafka.overlay.limits import ALL_FILTER_OCTETS, MOST_PEERS
from dafka.overlay.peering.outputs import Close, PeerDown, PeerUp, Refused, Send
from dafka.overlay.peering.peerings import Peerings
from dafka.overlay.role import EndpointRole, Output
from dafka.overlay.routing.outputs import Deliver
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.outputs import clone_topic, master_topic, query_topic
from dafka.overlay.values import decode, encode
from dafka.overlay.wire.handshake import PROBE
from dafka.overlay.wire.routed import DATA, ROUTED, decode_routed

from ..libbroker import Libbroker

TICK = 0.5  # seconds
RETRY = 2.0
LATER = 0.1  # the longest until a node goes on with what it is behind with
CONNECTING = 0.05  # the longest that opening a connection takes
MOST_MESSAGES = 100_000
MOST_COPIES = 12
STORE = "shared"


class Violation(AssertionError):
    """Something that the overlay promises did not hold."""


def require(condition: bool, text: str) -> None:
    if not condition:
        raise Violation(text)


class Node:
    """A process. ``incarnation`` counts its lives; with each comes a new core, and sometimes a new id."""

    def __init__(self, number: int, is_libbroker: bool = False) -> None:
        self.number = number
        self.is_libbroker = is_libbroker
        self.id = b""
        self.incarnation = 0
        self.alive = False
        self.stopped_until = 0.0
        self.held: list[
            tuple[Callable[..., None], tuple[Any, ...]]
        ] = []  # messages that have arrived while it was stopped
        self.prefixes: tuple[bytes, ...] = ()
        self.changes = 0  # of the prefixes
        self.keeps_prefixes = False
        self.endpoint: EndpointRole = None  # type: ignore[assignment]
        self.content: Content | None = None  # of the master of the store, which is on a disk
        self.has_clone = False
        self.goes_on = False
        self.connections: dict[int, Connection] = {}
        self.unread: dict[int, list[bytes]] = {}  # of connections that it does not read
        self.received: Counter[bytes] = Counter()

    @property
    def core(self) -> Core:
        return self.endpoint.core

    @property
    def peerings(self) -> Peerings:
        if isinstance(self.endpoint, Libbroker):
            return self.endpoint.peerings
        return self.core.peerings

    @property
    def topics(self) -> list[bytes]:
        """Of its store."""
        topics = [] if self.content is None else [master_topic(STORE), query_topic(STORE)]
        return [*topics, clone_topic(STORE)] if self.has_clone else topics

    def __repr__(self) -> str:
        return f"{'libbroker ' if self.is_libbroker else ''}node {self.number}"


class Connection:
    """Between a connector and a listener. ``arrival`` is when the last message to each of them arrives."""

    def __init__(self, number: int, ends: tuple[Node, Node]) -> None:
        self.number = number
        self.ends = ends
        self.incarnations = (ends[0].incarnation, ends[1].incarnation)
        self.alive = True
        self.is_plain = ends[0].is_libbroker or ends[1].is_libbroker
        self.arrival = {ends[0]: 0.0, ends[1]: 0.0}

    def other(self, node: Node) -> Node:
        return self.ends[1] if node is self.ends[0] else self.ends[0]


class Faults(NamedTuple):
    """``delay``: the longest in seconds; ``loss``: of routed messages, as slow readers' queues drop them."""

    delay: float = 0.02
    loss: float = 0.0
    unnoticed: float = 0.0


CALM = Faults()


class Network:
    """Everything that will happen, by time."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.now = 0.0
        self.faults = CALM
        self.nodes: list[Node] = []
        self.wanted: dict[tuple[int, int], bool] = {}  # the links of the topology, and whether they are cut
        self.epochs: Counter[tuple[int, int]] = Counter()  # how often a link has come or gone
        self.messages = 0
        self.told = 0
        self.digest = 0
        self.publishers: dict[bytes, Node] = {}
        self.is_quiet = False
        self.most_peers = MOST_PEERS  # that a node knows
        self.most_octets = ALL_FILTER_OCTETS  # of their filters
        self.trace: Callable[[str], None] | None = None
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._serial = count()
        self._numbers = count()
        self._hops: Counter[tuple[bytes, bytes]] = Counter()

    # -- time ---------------------------------------------------------------------------------------

    def later(self, seconds: float, call: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._serial), call, arguments))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, call, arguments = heapq.heappop(self._events)
            call(*arguments)
        self.now = until

    def in_process(self, node: Node, call: Callable[..., None], *arguments: Any) -> None:
        """Now, or when the process goes on; not if it has ended by then."""
        self._in_process(node, node.incarnation, call, arguments)

    def _in_process(self, node: Node, incarnation: int, call: Callable[..., None], arguments: Any) -> None:
        if not node.alive or node.incarnation != incarnation:
            return
        if node.stopped_until > self.now or node.held:
            if not node.held:
                self.later(node.stopped_until - self.now, self._go_on, node, incarnation)
            node.held.append((call, arguments))
        else:
            call(*arguments)

    def _go_on(self, node: Node, incarnation: int) -> None:
        if not node.alive or node.incarnation != incarnation:
            return
        if node.stopped_until > self.now:
            self.later(node.stopped_until - self.now, self._go_on, node, incarnation)
            return
        held, node.held = node.held, []
        for call, arguments in held:
            call(*arguments)

    # -- processes ----------------------------------------------------------------------------------

    def start(self, node: Node, prefixes: tuple[bytes, ...], keeps_id: bool = True) -> None:
        node.incarnation += 1
        node.alive = True
        if not (keeps_id and node.id):
            node.id = self.random.randbytes(16)
        node.prefixes = prefixes
        node.received = Counter()
        node.connections = {}
        node.unread = {}
        node.held = []
        node.goes_on = False
        node.endpoint = EndpointRole(node.id, int(self.now * 1e6), partial(next, self._numbers))
        if node.is_libbroker:
            node.endpoint = Libbroker(node.id)  # type: ignore[assignment]
        node.endpoint.subscribe(prefixes)
        if node.content is not None:
            node.endpoint.attach_master(STORE, node.content)
        if node.has_clone:
            node.endpoint.attach_clone(STORE)
        self.note(f"{node} begins as {node.id.hex()[:6]}")
        self.later(self.random.uniform(0, TICK), self._tick, node, node.incarnation)
        for one, other in self.wanted:
            if node.number in (one, other):
                self.changed(one, other)

    def kill(self, node: Node) -> None:
        """A process ends without a word; its connections do too, which others may notice or not."""
        if not node.alive:
            return
        self.note(f"{node} is killed")
        node.alive = False
        for connection in list(node.connections.values()):
            self.cut(connection)
        for one, other in self.wanted:
            if node.number in (one, other):
                self.changed(one, other)

    def stop(self, node: Node, seconds: float) -> None:
        """A process is stopped, and goes on later with everything that has arrived."""
        self.note(f"{node} is stopped for {seconds} s")
        node.stopped_until = max(node.stopped_until, self.now + seconds)
        for one, other in self.wanted:
            if node.number in (one, other):
                self.changed(one, other)

    def subscribe(self, node: Node, prefixes: tuple[bytes, ...]) -> None:
        node.prefixes = (*node.prefixes, *prefixes) if node.is_libbroker else prefixes
        node.changes += 1
        self.carry(node, node.endpoint.subscribe(prefixes))

    def unpeer(self, node: Node, peer: bytes) -> None:
        self.carry(node, node.endpoint.unpeer(self.now, peer))
        self._changed_for(node, peer)

    def _changed_for(self, node: Node, peer: bytes) -> None:
        for other in self.nodes:
            if other.id == peer:
                self.changed(node.number, other.number)

    def _tick(self, node: Node, incarnation: int) -> None:
        if node.incarnation != incarnation or not node.alive:
            return
        if node.stopped_until <= self.now:
            self.carry(node, node.endpoint.tick(self.now))
        self.later(TICK, self._tick, node, incarnation)

    # -- links --------------------------------------------------------------------------------------

    def changed(self, one: int, other: int) -> None:
        self.epochs[min(one, other), max(one, other)] += 1

    def want(self, one: int, other: int) -> None:
        """These two are to be connected; the first one connects, and again when the connection is gone."""
        self.wanted[one, other] = False
        self.later(self.random.uniform(0, 1.0), self._connect, one, other)

    def sever(self, one: int, other: int) -> None:
        """A link goes, and does not come back before :meth:`mend`."""
        self.note(f"link {one}-{other} goes")
        self.wanted[one, other] = True
        self.changed(one, other)
        node = self.nodes[one]
        for connection in list(node.connections.values()):
            if connection.other(node) is self.nodes[other]:
                self.cut(connection)

    def mend(self, one: int, other: int) -> None:
        self.note(f"link {one}-{other} is mended")
        self.wanted[one, other] = False
        self.changed(one, other)

    def _connect(self, one: int, other: int) -> None:
        self.later(self.random.uniform(RETRY / 2, RETRY), self._connect, one, other)
        node, peer = self.nodes[one], self.nodes[other]
        if self.wanted[one, other] or not node.alive or not peer.alive or node.stopped_until > self.now:
            return
        if peer.id in node.peerings.peers:
            return
        if any(connection.other(node) is peer for connection in node.connections.values()):
            return  # it is still in the handshake
        self.later(
            self.random.uniform(0, CONNECTING), self._open, Connection(next(self._numbers), (node, peer))
        )

    def _open(self, connection: Connection) -> None:
        for node, incarnation in zip(connection.ends, connection.incarnations, strict=True):
            if not node.alive or node.incarnation != incarnation:
                return
        for node in connection.ends:
            node.connections[connection.number] = connection
        for node in connection.ends:
            self.in_process(node, self._opened, node, connection)

    def _opened(self, node: Node, connection: Connection) -> None:
        self.carry(node, node.endpoint.connected(self.now, connection.number, node is connection.ends[0]))

    def cut(self, connection: Connection, told: Iterable[Node] | None = None) -> None:
        """A connection ends. Its ends learn of it, unless told otherwise, soon; or only by silence."""
        if not connection.alive:
            return
        connection.alive = False
        self.changed(*[node.number for node in connection.ends])
        for node in connection.ends if told is None else told:
            if told is not None or self.random.random() >= self.faults.unnoticed:
                self.later(self.random.uniform(0, 0.1), self._hear_end, node, node.incarnation, connection)

    def _hear_end(self, node: Node, incarnation: int, connection: Connection) -> None:
        self._in_process(node, incarnation, self._ended, (node, connection))

    def _ended(self, node: Node, connection: Connection) -> None:
        if node.connections.pop(connection.number, None) is not None:
            self.carry(node, node.endpoint.disconnected(self.now, connection.number))

    # -- messages -----------------------------------------------------------------------------------

    def carry(self, node: Node, outputs: list[Output]) -> None:
        for output in outputs:
            match output:
                case Send(number, octets):
                    self._send(node, number, octets)
                case Close(number):
                    connection = node.connections.pop(number, None)
                    if connection is not None:
                        # What was sent before arrives first.
                        other = connection.other(node)
                        wait = max(0.0, connection.arrival[other] - self.now)
                        self.later(wait, self.cut, connection, [other])
                case Deliver(publisher, _, topic, payload):
                    self.delivered(node, publisher, topic, payload)
                case Pause(number):
                    node.unread.setdefault(number, [])
                case Resume(number):
                    for message in node.unread.pop(number, []):
                        self._hear(node, node.connections[number], message)
                case PeerUp(_, peer) | PeerDown(_, peer):
                    self.note(f"{node}: {type(output).__name__} {peer.hex()[:6]}")
                    self._changed_for(node, peer)
                case Refused(_, _, code, description):
                    self.note(f"{node}: refused, {code} {description}")
        if not (node.is_libbroker or node.goes_on) and node.core.is_behind:
            node.goes_on = True
            self.later(self.random.uniform(0, LATER), self.in_process, node, self._settle, node)

    def _settle(self, node: Node) -> None:
        node.goes_on = False
        self.carry(node, node.endpoint.go_on(self.now))

    def delivered(self, node: Node, publisher: bytes, topic: bytes, payload: bytes) -> None:
        require(publisher != node.id, f"{node} gets its own message {payload!r}")
        if not topic.startswith(node.prefixes):
            return  # it was wanted when it was published
        payload = encode(decode(payload))  # without a mark
        node.received[payload] += 1
        source = self.publishers[payload]
        # The speaker for a node of libbroker, and the connections of its neighbours, have to be known before.
        most = MOST_COPIES if (source.is_libbroker or node.is_libbroker) and not self.is_quiet else 1
        require(node.received[payload] <= most, f"{node} gets {payload!r} of {source} again")

    def _send(self, node: Node, number: int, octets: bytes) -> None:
        connection = node.connections.get(number)
        if connection is None or not connection.alive:
            return
        while octets:
            end = 4 + int.from_bytes(octets[:4], "big")
            message, octets = octets[4:end], octets[end:]
            self.messages += 1
            is_routed = not connection.is_plain and message[0] == ROUTED
            self.told += not connection.is_plain and message[0] not in (4, 5, PROBE, ROUTED)
            require(self.messages <= MOST_MESSAGES, "messages without end")
            if is_routed and self.random.random() < self.faults.loss:
                continue
            other = connection.other(node)
            arrival = max(
                self.now + self.random.uniform(0.0005, self.faults.delay), connection.arrival[other]
            )
            connection.arrival[other] = arrival
            self.later(arrival - self.now, self._arrive, other, other.incarnation, connection, message)

    def _arrive(self, node: Node, incarnation: int, connection: Connection, message: bytes) -> None:
        if connection.alive and connection.number in node.connections:
            self._in_process(node, incarnation, self._hear, (node, connection, message))

    def _hear(self, node: Node, connection: Connection, message: bytes) -> None:
        if connection.number not in node.connections:
            return
        if connection.number in node.unread:
            node.unread[connection.number].append(message)
            return
        line = f"{self.now:9.4f} {connection.other(node)} -> {node}: {message.hex()}"
        self.digest = zlib.crc32(line.encode(), self.digest)
        if self.trace is not None:
            self.trace(line if len(line) < 400 else line[:400] + "...")
        if message[0] == ROUTED and not connection.is_plain:
            self._count_hop(node, message)
        self.carry(node, node.endpoint.received(self.now, connection.number, message))

    def _count_hop(self, node: Node, message: bytes) -> None:
        routed = decode_routed(message)
        if routed.kind != DATA:  # type: ignore[union-attr]
            return  # commands of stores may be equal
        self._hops[node.id, routed.payload] += 1  # type: ignore[union-attr]
        if self.publishers[routed.payload].is_libbroker and not self.is_quiet:  # type: ignore[union-attr]
            return  # two nodes may speak for it
        require(self._hops[node.id, routed.payload] == 1, f"{node} is a hop of one message twice")  # type: ignore[union-attr]

    def note(self, text: str) -> None:
        if self.trace is not None:
            self.trace(f"{self.now:9.4f} {text}")
