"""An endpoint: what one process shows the mesh through one pair of tower addresses.

One XPUB socket says everything that the nodes of this process say, one SUB socket hears everything they
are subscribed to, and one beacon announces them; ten thousand producers are still two sockets. The
endpoint decides nothing: it carries the outputs of roles to the sockets and what arrives to the roles.

What arrives is routed by the exact ZeroMQ topic, because a subscription also brings everything that merely
starts with it. Nodes of the same endpoint hear each other directly, as lists and not as bytes, so they
need no beacon to meet and can lose nothing to a high-water mark.

The sockets are raw ZeroMQ sockets read with DONTWAIT until they are empty. Their descriptors are edge
triggered: they tell of news once, and any call on the socket may be the one that hears it. Hence the loop
looks at the sockets again before each wait, and every place that sends or subscribes has it look again.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import gevent
import gevent.event
import zmq

from dafka.mesh.address import TowerLike, new_address, tower_addresses
from dafka.mesh.hub import Hub
from dafka.mesh.sockets import Socket
from dafka.protocol.beacons import WELCOME, NodeBeacon, TowerBeacon, decode_beacon, encode_beacon
from dafka.protocol.commands import Command
from dafka.protocol.errors import MalformedMessage
from dafka.protocol.framing import Framing, encode, zmq_topic
from dafka.protocol.runs import Run, RunReader, encode_run
from dafka.roles.outputs import Connect, Disconnect, Subscribe, Unsubscribe
from dafka.roles.peers import PeersRole

log = logging.getLogger(__name__)

ROUND_MESSAGES = 1000  # messages read before the loop lets other green threads run
HIGH_WATER_MARK = 100_000
LINGER_MS = 1000  # how long closed sockets go on sending in the background


class EndpointOptions(NamedTuple):
    """Settings of an endpoint; nodes with equal settings share one.

    ``towers``: pairs of (address nodes publish to, address nodes subscribe from). ``bind``: the interface
    that peers connect to; ``*`` listens on all. Times in seconds. ``high_water_mark``: messages that a socket
    queues for one peer before it drops.
    """

    towers: tuple[tuple[str, str], ...]
    bind: str = "127.0.0.1"
    framing: Framing = Framing.LIBDAFKA
    beacon_interval: float = 1.0
    beacon_timeout: float = 4.0
    high_water_mark: int = HIGH_WATER_MARK


def mesh_options(
    tower: TowerLike = None,
    *,
    bind: str = "127.0.0.1",
    framing: Framing | str = Framing.LIBDAFKA,
    beacon_interval: float = 1.0,
    beacon_timeout: float = 4.0,
    high_water_mark: int = HIGH_WATER_MARK,
) -> EndpointOptions:
    """The options of an endpoint as users give them to a node; see :class:`EndpointOptions`.

    ``tower``: a :class:`dafka.Tower`, a pair of addresses or several pairs; None is where the C daemon
    listens. Raises :class:`InvalidAddressError`, and ValueError for any other value that cannot be.
    """
    if not 0 < beacon_interval < beacon_timeout:
        raise ValueError(
            f"beacon_interval is above 0 and below beacon_timeout, not {beacon_interval!r} s "
            f"with a timeout of {beacon_timeout!r} s"
        )
    if not isinstance(high_water_mark, int) or high_water_mark < 1:
        raise ValueError(f"high_water_mark is a number of messages, 1 or more, not {high_water_mark!r}")
    return EndpointOptions(
        tower_addresses(tower), bind, Framing(framing), beacon_interval, beacon_timeout, high_water_mark
    )


class Node:
    """What an endpoint calls on the nodes attached to it. Hub side; none of these may block."""

    tick_interval = 0.1  # seconds between calls of tick()
    hello_ids = b""  # the ID octets of the subscriptions that this node wants to hear of

    def on_run(self, run: Run) -> None:
        """Consecutive records that match a subscription of this node."""

    def on_command(self, command: Command) -> None:
        """Any other command that matches a subscription of this node."""

    def on_subscription(self, prefix: bytes) -> None:
        """A peer subscribed to ``prefix``, whose ID octet is in :attr:`hello_ids`."""

    def tick(self, now: float) -> None:
        """Time has passed."""


class Endpoint:
    """The sockets, the beacon and the routing table shared by the nodes of one process."""

    _open: dict[tuple[int, EndpointOptions], Endpoint] = {}  # noqa: RUF012 - the process's table of endpoints

    @classmethod
    def shared(cls, hub: Hub, options: EndpointOptions) -> Endpoint:
        """The endpoint with these options, made if there is none yet."""
        key = (id(hub), options)
        endpoint = cls._open.get(key)
        if endpoint is None:
            endpoint = cls._open[key] = cls(hub, options)
        return endpoint

    def __init__(self, hub: Hub, options: EndpointOptions) -> None:
        self.hub = hub
        self.options = options
        self.address = new_address()
        self.discarded: Counter[str] = Counter()
        self.peers: set[bytes] = set()
        self._reader = RunReader()
        self._nodes: dict[Node, set[bytes]] = {}  # each with its subscriptions
        self._greeters: list[Node] = []  # those of the nodes that ask for subscriptions
        self._routes: dict[bytes, list[Node]] = {}
        self._heard: set[bytes] = set()  # prefixes that remote peers are subscribed to
        self._local: deque[tuple[Node | None, Run | Command]] = deque()
        self._closed = False
        self._ready = gevent.event.Event()
        self._ticking: dict[float, gevent.Greenlet] = {}

        context, water_mark = hub.context, options.high_water_mark
        self._publisher = Socket(context, zmq.XPUB, self._ready.set, water_mark)
        self._publisher.set(zmq.XPUB_VERBOSE, 1)
        port = self._publisher.bind_free_port(options.bind)
        self._subscriber = Socket(context, zmq.SUB, self._ready.set, water_mark)
        self._beacon_out = Socket(context, zmq.PUB, self._ready.set, water_mark)
        self._beacon_in = Socket(context, zmq.SUB, self._ready.set, water_mark)
        for prefix in (b"B", WELCOME):
            self._beacon_in.set(zmq.SUBSCRIBE, prefix)
        for publish_to, subscribe_from in options.towers:
            self._beacon_out.connect(publish_to)
            self._beacon_in.connect(subscribe_from)
        # A tower fills in an empty host with the address it sees us come from.
        host = b"" if options.bind in ("*", "0.0.0.0") else options.bind.encode()
        self._peers_role = PeersRole(
            self.address, host, port, interval=options.beacon_interval, timeout=options.beacon_timeout
        )
        self._carry_peers(self._peers_role.start(time.monotonic()))
        self._green = hub.spawn(self._loop)
        self._beaconing = hub.spawn(self._tick_peers)

    # -- nodes ----------------------------------------------------------------------------------

    def attach(self, node: Node) -> None:
        """Have ``node`` ticked and told of the subscriptions it asks for, those already there included."""
        self._nodes.setdefault(node, set())
        interval = node.tick_interval
        if interval not in self._ticking:
            self._ticking[interval] = self.hub.spawn(self._tick_nodes, interval)
        if node.hello_ids:
            self._greeters.append(node)
            for prefix in [*self._heard, *self._routes]:
                if prefix[:1] in node.hello_ids and prefix:
                    self._guard(node.on_subscription, prefix)

    def detach(self, node: Node) -> None:
        """Forget ``node`` and its subscriptions; the last one out closes the sockets."""
        if node in self._greeters:
            self._greeters.remove(node)
        for prefix in list(self._nodes.get(node, ())):
            self._unsubscribe(node, prefix)
        self._nodes.pop(node, None)
        if not self._nodes:
            self._close()

    def publish(self, node: Node, outputs: Iterable[Any]) -> None:
        """Carry out what a role has decided: send its commands and runs, change its subscriptions."""
        for output in outputs:
            kind = type(output)
            if kind is Run:
                self._publish_run(node, output)
            elif kind is Subscribe:
                self._subscribe(node, output.prefix)
            elif kind is Unsubscribe:
                self._unsubscribe(node, output.prefix)
            else:
                topic = zmq_topic(output)
                if self._others(topic, node):
                    self._to_local(node, output)
                if self._is_heard(topic):
                    self._publisher.send_messages((encode(output, self.options.framing),))
        if self._publisher.readable():
            self._ready.set()

    def _publish_run(self, node: Node, run: Run) -> None:
        topic = run_topic(run)
        if self._others(topic, node):
            self._to_local(node, run)
        if self._is_heard(topic):
            self._publisher.send_messages(encode_run(run, self.options.framing))

    def _to_local(self, origin: Node | None, item: Run | Command) -> None:
        self._local.append((origin, item))
        self._ready.set()

    # -- routing --------------------------------------------------------------------------------

    def _subscribe(self, node: Node, prefix: bytes) -> None:
        nodes = self._routes.get(prefix)
        if nodes is None:
            self._routes[prefix] = [node]
            self._subscriber.set(zmq.SUBSCRIBE, prefix)
            self._ready.set()
        elif node not in nodes:
            nodes.append(node)
        self._nodes.setdefault(node, set()).add(prefix)
        self._tell_subscription(prefix, node)

    def _unsubscribe(self, node: Node, prefix: bytes) -> None:
        nodes = self._routes.get(prefix, [])
        if node in nodes:
            self._nodes[node].discard(prefix)
            nodes.remove(node)
            if not nodes:
                del self._routes[prefix]
                if not self._subscriber.closed:
                    self._subscriber.set(zmq.UNSUBSCRIBE, prefix)
                    self._ready.set()

    def _tell_subscription(self, prefix: bytes, origin: Node | None) -> None:
        if prefix[:1] in b"GLW" and prefix:
            for node in self._greeters:
                if prefix[:1] in node.hello_ids and node is not origin:
                    self._guard(node.on_subscription, prefix)

    def _others(self, topic: bytes, origin: Node | None) -> bool:
        for prefix in (topic, topic[:1]):
            nodes = self._routes.get(prefix)
            if nodes and (len(nodes) > 1 or nodes[0] is not origin):
                return True
        return False

    def _is_heard(self, topic: bytes) -> bool:
        heard = self._heard
        return bool(heard) and any(topic[:end] in heard for end in range(len(topic) + 1))

    def _dispatch(self, item: Run | Command, origin: Node | None) -> None:
        is_run = type(item) is Run
        topic = run_topic(item) if is_run else zmq_topic(item)  # type: ignore[arg-type]
        exact, general = self._routes.get(topic), self._routes.get(topic[:1])
        receivers = [*(exact or ()), *(node for node in general or () if not exact or node not in exact)]
        for node in receivers:
            if node is not origin:
                self._guard(node.on_run if is_run else node.on_command, item)

    def _guard(self, call: Callable[[Any], None], argument: Any) -> None:
        try:
            call(argument)
        except Exception:
            log.exception("a node failed on %.200r", argument)

    # -- the loop -------------------------------------------------------------------------------

    def _loop(self) -> None:
        while not self._closed:
            busy = self._read_beacons()
            busy = self._read_subscriptions() or busy
            busy = self._read_messages() or busy
            busy = self._read_local() or busy
            if busy:
                gevent.sleep(0)
            else:
                self._ready.wait()
                self._ready.clear()

    def _read_messages(self) -> bool:
        messages = self._subscriber.receive(ROUND_MESSAGES)
        if not messages:
            return False
        inbound = self._reader.read(messages)
        if inbound.discarded:
            self.discarded.update(inbound.discarded)
        for run in inbound.runs:
            self._dispatch(run, None)
        for command in inbound.commands:
            self._dispatch(command, None)
        return True

    def _read_local(self) -> bool:
        local = self._local
        busy = bool(local)
        for _ in range(min(len(local), ROUND_MESSAGES)):
            origin, item = local.popleft()
            self._dispatch(item, origin)
        return busy

    def _read_subscriptions(self) -> bool:
        messages = self._publisher.receive(ROUND_MESSAGES)
        for message, *_rest in messages:
            prefix = message[1:]
            if message[:1] == b"\x01":
                self._heard.add(prefix)
                self._tell_subscription(prefix, None)
            elif message[:1] == b"\x00":
                self._heard.discard(prefix)
        return bool(messages)

    # -- beacons --------------------------------------------------------------------------------

    def _read_beacons(self) -> bool:
        messages = self._beacon_in.receive(ROUND_MESSAGES)
        now = time.monotonic()
        for frames in messages:
            if frames == [WELCOME]:
                self._carry_peers(self._peers_role.start(now))
                continue
            try:
                beacon = decode_beacon(frames)
            except MalformedMessage as error:
                self.discarded[error.cause] += 1
                continue
            if isinstance(beacon, TowerBeacon):
                self._carry_peers(self._peers_role.beacon(now, beacon))
        return bool(messages)

    def _carry_peers(self, outputs: Iterable[Any]) -> None:
        for output in outputs:
            if isinstance(output, NodeBeacon):
                self._beacon_out.send_messages((encode_beacon(output),))
            elif isinstance(output, Connect):
                self._connect(output.endpoint)
            elif isinstance(output, Disconnect):
                self._disconnect(output.endpoint)

    def _connect(self, peer: bytes) -> None:
        try:
            self._subscriber.connect(peer.decode())
            self.peers.add(peer)
        except (zmq.ZMQError, UnicodeDecodeError):
            self.discarded["peer-endpoint"] += 1
        self._ready.set()

    def _disconnect(self, peer: bytes) -> None:
        if peer in self.peers:
            self.peers.discard(peer)
            self._subscriber.disconnect(peer.decode())

    # -- time -----------------------------------------------------------------------------------

    def _tick_peers(self) -> None:
        interval = min(self.options.beacon_interval, 1.0) / 2
        while not self._closed:
            gevent.sleep(interval)
            self._carry_peers(self._peers_role.tick(time.monotonic()))

    def _tick_nodes(self, interval: float) -> None:
        while not self._closed:
            gevent.sleep(interval)
            now = time.monotonic()
            for node in [node for node in self._nodes if node.tick_interval == interval]:
                self._guard(node.tick, now)
            self._ready.set()

    def _close(self) -> None:
        self._closed = True
        Endpoint._open.pop((id(self.hub), self.options), None)
        self._ready.set()
        for socket in (self._publisher, self._subscriber, self._beacon_out, self._beacon_in):
            socket.close(LINGER_MS)
        current = gevent.getcurrent()
        for green in (self._green, self._beaconing, *self._ticking.values()):
            if green is not current:
                green.kill(block=False)


def run_topic(run: Run) -> bytes:
    """The ZeroMQ topic of a run's messages."""
    return b"M" + run.topic if run.recipient is None else b"D" + run.recipient
