"""Very many clients that wait for records and are woken at once, or that say something at once."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import gevent
from broker.clients import batch
from broker.server.attack_scene import SLOW, Scene
from broker.server.client import encoded
from broker.server.samples import fetch
from kafka.protocol.metadata import ApiVersionsRequest

from dafka.broker.interface.topics import TopicSpec
from dafka.broker.server.limits import CONNECTIONS
from dafka.hub.hub import get_hub

SESSIONS = 900
OTHERS = 500  # descriptors and connections
_numbers = count()


def wake_sessions(scene: Scene) -> Callable[[], None]:
    """Records come to each of a hundred partitions that very many fetch sessions wait for."""
    sessions = _connections(min(SESSIONS, scene.partitions // 11))
    return _waking(scene, sessions, 1 + min(99, scene.partitions // 11))


def wake_fetches(scene: Scene) -> Callable[[], None]:
    """A record comes to a partition that very many clients wait for."""
    return _waking(scene, _connections(scene.partitions // 11), 1)


def send_at_once(scene: Scene) -> Callable[[], None]:
    """Very many clients have sent something when the hub looks."""
    connections = _connections(scene.partitions // 11)
    question = encoded(ApiVersionsRequest(), 0)

    def send() -> None:
        with scene.attackers(connections) as clients:
            for client in clients:  # all are accepted
                client.socket.sendall(question)
                client.receive_frame()
            looked_away, all_sent = threading.Event(), threading.Event()
            get_hub().post(lambda: (looked_away.set(), all_sent.wait(SLOW)))
            looked_away.wait(SLOW)
            for client in clients:
                client.socket.sendall(question)
            all_sent.set()
            for client in clients:
                client.receive_frame()

    return send


def _connections(wanted: int) -> int:
    """As many as are wanted and possible here, where both their ends are."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        descriptors = 2 * CONNECTIONS
    return max(1, min(wanted, CONNECTIONS - OTHERS, (descriptors - OTHERS) // 2))


def _waking(scene: Scene, connections: int, partitions: int) -> Callable[[], None]:
    topic = f"awaited-{next(_numbers)}"
    core = scene.broker._running.core  # type: ignore[union-attr]
    hub = get_hub()
    hub.run(core.create_topics, {topic: TopicSpec(partitions)})
    everything = encoded(fetch(topic, *[0] * partitions, session_epoch=0), 11)

    def wake() -> None:
        with scene.attackers(connections) as clients:
            for client in clients:
                client.socket.sendall(everything)
            for client in clients:
                session = int.from_bytes(client.receive_frame()[10:14], "big")
                more: dict[str, Any] = {"session_id": session, "session_epoch": 1, "topics": []}
                again = fetch(topic, wait=600_000, **more) if session else fetch(topic, 0, wait=600_000)
                client.socket.sendall(encoded(again, 11))
            hub.run(_all_wait, core, topic, connections)
            hub.run(core.produce, {(topic, number): [batch(b"x")] for number in range(partitions)})
            for client in clients:
                client.receive_frame()

    return wake


def _all_wait(core: Any, topic: str, connections: int) -> None:
    deadline = time.monotonic() + SLOW
    while len(core._topics.get(topic).partitions[0].watchers) < connections:
        assert time.monotonic() < deadline
        gevent.sleep(0.05)
