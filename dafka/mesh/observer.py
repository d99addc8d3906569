"""Observer: a node that listens and is nobody, for tools that look at a mesh from outside."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from dafka.mesh.address import TowerLike, new_address
from dafka.mesh.endpoint import Endpoint, EndpointOptions, Node, mesh_options
from dafka.mesh.hub import Hub, Waiter, get_hub
from dafka.protocol.commands import Command, GetHeads
from dafka.protocol.runs import Run
from dafka.roles.outputs import Subscribe

KEPT = 100_000  # runs and commands that wait to be taken; older ones are dropped

Heard = tuple[float, "Run | Command"]  # seconds since the epoch


class Observer:
    """Hears whatever matches its ``prefixes`` (ID octets, or an ID octet and a topic) and says nothing but
    what it is told to ask. ``tower`` and further keywords as for :class:`dafka.Producer`."""

    def __init__(self, prefixes: Iterable[bytes], *, tower: TowerLike = None, **mesh: Any) -> None:
        self._hub = get_hub()
        self.address = new_address()
        options = mesh_options(tower, **mesh)
        self._node = self._hub.run(_ObserverNode, self._hub, options, self.address, list(prefixes))

    def ask_heads(self, topic: bytes = b"") -> None:
        """Have the stores tell the heads of a topic's partitions, or (empty) of all; also those that join
        later. The answers are DIRECT-HEADs to :attr:`address`."""
        self._hub.run(self._node.ask_heads, topic)

    def poll(self, timeout: float) -> list[Heard]:
        """What has been heard since the last call; waits up to ``timeout`` seconds for something."""
        return self._node.take(timeout)

    @property
    def discarded(self) -> dict[str, int]:
        """How many malformed messages arrived, by cause."""
        return dict(self._node.endpoint.discarded)

    def close(self) -> None:
        """Leave the mesh."""
        self._hub.run(self._node.close)

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class _ObserverNode(Node):
    hello_ids = b"G"

    def __init__(self, hub: Hub, options: EndpointOptions, address: bytes, prefixes: list[bytes]) -> None:
        self._address = address
        self._heard: deque[Heard] = deque(maxlen=KEPT)
        self._waiter: Waiter | None = None
        self._asked: bytes | None = None
        self.endpoint = Endpoint.shared(hub, options)
        self.endpoint.publish(self, [Subscribe(prefix) for prefix in [*prefixes, b"E" + address]])
        self.endpoint.attach(self)

    def ask_heads(self, topic: bytes) -> None:
        self._asked = topic
        self.endpoint.publish(self, [GetHeads(topic, self._address)])

    def on_subscription(self, prefix: bytes) -> None:
        if prefix == b"G" and self._asked is not None:  # a store has joined
            self.ask_heads(self._asked)

    def on_run(self, run: Run) -> None:
        self._hear(run)

    def on_command(self, command: Command) -> None:
        self._hear(command)

    def _hear(self, item: Run | Command) -> None:
        self._heard.append((time.time(), item))
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
        while self._heard:
            taken.append(self._heard.popleft())
        return taken

    def close(self) -> None:
        self.endpoint.detach(self)
