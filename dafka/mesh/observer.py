"""Observer: a passive node, for tools that look at a mesh from outside."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from dafka.hub.hub import Hub, Waiter, get_hub
from dafka.hub.turns import Pace
from dafka.hub.waits import bounded_wait
from dafka.mesh import limits, metrics_port
from dafka.mesh.address import TowerLike
from dafka.mesh.endpoint import Endpoint, EndpointOptions, Node, node_options
from dafka.mesh.transport import Speaker
from dafka.protocol.commands import Command, GetHeads, StoreHello
from dafka.protocol.runs import Run
from dafka.roles.outputs import Subscribe

_FIRST_INTERVAL, _LONGEST_INTERVAL = 0.2, 5.0  # seconds between questions for heads; doubles


class Heard(NamedTuple):
    """``when`` in seconds since the epoch; ``speaker``: the host and the port of the endpoint that has sent
    it, None if it is in this process or not known."""

    when: float
    item: Run | Command
    speaker: Speaker | None = None


class Seen(NamedTuple):
    """An endpoint's knowledge of the mesh: subscriptions and addresses, without any message."""

    towers: tuple[tuple[str, str], ...]
    hears_tower: bool
    peers: dict[bytes, bytes]
    """Where each peer is (``tcp://host:port``), by the address of its beacon."""
    prefixes: Collection[bytes]
    """Subscriptions that tell of nodes: those that begin with W, L and K."""
    here: dict[bytes, set[bytes]]
    """The nodes of the same endpoint, with the topics whose records they hear."""
    metrics: Mapping[bytes, int] = {}
    """At which port of its host each node serves its metrics, of those that have told."""


class Observer:
    """Hears whatever matches its ``prefixes`` (ID octets, or an ID octet and a topic) and says nothing but
    what it is told to ask. ``tower`` and further keywords as for :class:`dafka.Producer`; ``options``:
    instead of them those of an endpoint that is there already, which it then shares."""

    def __init__(
        self,
        prefixes: Iterable[bytes],
        *,
        tower: TowerLike = None,
        options: EndpointOptions | None = None,
        **mesh: Any,
    ) -> None:
        self._hub = get_hub()
        if options is None:
            options = node_options(self, tower, mesh)
        self.address = options.new_address()
        self._node = self._hub.run(_ObserverNode, self._hub, options, self.address, list(prefixes))

    def ask_heads(self, topic: bytes = b"") -> None:
        """Ask the stores for the heads of a topic's partitions, or (empty) of all; also those that join
        later. The answers are DIRECT-HEADs to :attr:`address`."""
        self._hub.run(self._node.ask_heads, topic)

    def stop_asking(self) -> None:
        """Ask for heads no more."""
        self._hub.run(self._node.stop_asking)

    def greet(self, consumer: bytes) -> None:
        """Ask a consumer for its topics, as a store does; the answer is a CONSUMER-HELLO."""
        self._hub.run(self._node.greet, consumer)

    def seen(self) -> Seen:
        """The nodes and prefixes that are known now."""
        seen, ports = self._hub.run(self._node.seen)
        # Sets of 250 000 subscriptions, as many as a peer may have, are not made in the hub.
        return seen._replace(prefixes=set(seen.prefixes), metrics=metrics_port.announced(ports))

    def metrics_of(self, address: bytes) -> dict[str, Any] | None:
        """The metrics of the node of this process that has this address, on the same endpoint."""
        return self._hub.run(self._node.metrics_of, address)

    def poll(self, timeout: float) -> list[Heard]:
        """The commands heard since the last call; waits up to ``timeout`` seconds for the first one."""
        return self._node.take(bounded_wait(timeout))

    @property
    def discarded(self) -> dict[str, int]:
        """How many malformed messages arrived, by cause."""
        return dict(self._node.endpoint.discarded)

    @property
    def hears_tower(self) -> bool:
        """Whether a tower has said anything: without one nobody is found."""
        return self._node.endpoint.hears_tower

    def close(self) -> None:
        """Leave the mesh."""
        self._hub.run(self._node.close)

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class _ObserverNode(Node):
    hello_ids = b"G"
    always_has_room = True

    def __init__(self, hub: Hub, options: EndpointOptions, address: bytes, prefixes: list[bytes]) -> None:
        self._address = address
        self._heard: deque[Heard] = deque()
        self._heard_bytes = 0  # written by the hub only, as is what follows
        self._taken_bytes = 0  # written by the user's thread only
        self._waiter: Waiter | None = None
        self._asked: bytes | None = None
        self._interval = _FIRST_INTERVAL
        self._next_ask = 0.0
        self.endpoint = Endpoint.shared(hub, options)
        self.endpoint.publish(self, [Subscribe(prefix) for prefix in [*prefixes, b"E" + address]])
        self.endpoint.attach(self)

    def ask_heads(self, topic: bytes) -> None:
        self._asked = topic
        self._interval = _FIRST_INTERVAL
        self._say(time.monotonic())

    def stop_asking(self) -> None:
        self._asked = None

    def greet(self, consumer: bytes) -> None:
        self.endpoint.publish(self, [StoreHello(consumer, self._address)])

    def seen(self) -> tuple[Seen, list[bytes]]:
        """And the subscriptions that tell ports of metrics."""
        endpoint = self.endpoint
        here = {
            node.known_as: {prefix[1:] for prefix in prefixes if prefix[:1] == b"M"}
            for node, prefixes in Pace().over(endpoint.nodes.items())
            if node.known_as
        }
        prefixes = endpoint.prefixes(b"WLK")
        seen = Seen(endpoint.options.towers, endpoint.hears_tower, endpoint.known, prefixes, here)
        return seen, endpoint.prefixes(metrics_port.ID)

    def metrics_of(self, address: bytes) -> dict[str, Any] | None:
        for node in self.endpoint.nodes:
            if node.known_as == address:
                return node.metrics()
        return None

    def _say(self, now: float) -> None:
        self._next_ask = now + self._interval
        self.endpoint.publish(self, [GetHeads(self._asked or b"", self._address)])

    def on_subscription(self, prefix: bytes) -> None:
        if prefix == b"G" and self._asked is not None:  # a store has joined
            self.ask_heads(self._asked)

    def tick(self, now: float) -> None:
        # A store may hear us before we are connected to it, and then its answer is lost.
        if self._asked is not None and now >= self._next_ask:
            self._interval = min(2 * self._interval, _LONGEST_INTERVAL)
            self._say(now)

    def on_run(self, run: Run) -> None:
        self._hear(run)

    def on_command(self, command: Command) -> None:
        self._hear(command)

    def _hear(self, item: Run | Command) -> None:
        heard = self._heard
        self._heard_bytes += _size(item)
        heard.append(Heard(time.time(), item, self.endpoint.speaker))
        while heard and (
            len(heard) > limits.OBSERVED_ITEMS
            or self._heard_bytes - self._taken_bytes > limits.OBSERVED_BYTES
        ):
            self._heard_bytes -= _size(heard.popleft().item)
            self.endpoint.discarded.add("observer-queue")
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.set()

    def take(self, timeout: float) -> list[Heard]:
        """In the user's thread."""
        if not self._heard:
            waiter = self._waiter = Waiter()
            if not self._heard:
                waiter.wait(timeout)
            self._waiter = None
            waiter.close()
        taken: list[Heard] = []
        with suppress(IndexError):  # the hub drops the oldest meanwhile
            while True:
                taken.append(self._heard.popleft())
        self._taken_bytes += sum(_size(heard.item) for heard in taken)
        return taken

    def close(self) -> None:
        self.endpoint.detach(self)


def _size(item: Run | Command) -> int:
    return sum(map(len, item.contents)) if type(item) is Run else 0
