"""A broker, its attacker and a bystander: the effect of one attack on the hub's turns and on others."""

from __future__ import annotations

import gc
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import gevent
from broker.clients import batch
from broker.server.client import WireClient, decoded, encoded
from broker.server.samples import fetch, produce
from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from dafka import Broker
from dafka.broker.server.limits import CHANGES_PER_REQUEST
from dafka.hub.hub import get_hub
from dafka.hub.turns import TurnGauge, next_turn

SMALL = "small"
SLOW = 1200.0  # seconds that an attack may take altogether: it only ends what hangs
TURN = 0.020  # seconds: no turn is to be longer


class Outcome(NamedTuple):
    """What an attack has come to: seconds."""

    turn: float
    turn_cpu: float
    own_cpu: float
    """The longest turn in processor time without what collections of garbage have taken of each."""
    collection: float
    """The longest collection of garbage in the hub's thread, in processor time."""
    bystander: float
    took: float


class Collections:
    """The collections of garbage in the hub's thread, and the longest turn without them."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._all = 0.0
        self._began: float | None = None  # the one that is under way
        self._thread = get_hub().run(threading.get_ident)

    def __enter__(self) -> Collections:
        gc.callbacks.append(self._seen)
        self._turns = get_hub().run(lambda: TurnGauge(gevent.get_hub().loop, cpu=self._own))
        return self

    def __exit__(self, *_: object) -> None:
        get_hub().run(self._turns.close)
        gc.callbacks.remove(self._seen)

    @property
    def longest_turn(self) -> float:
        """In processor time."""
        return self._turns.longest_cpu

    def _own(self) -> float:
        return time.thread_time() - self._all

    def _seen(self, phase: str, _: dict[str, int]) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._began = time.thread_time()
            return
        if self._began is None:
            return  # it had begun before anybody looked
        took = time.thread_time() - self._began
        self._all += took
        self.longest = max(self.longest, took)


class Bystander:
    """A client that goes on with its work, and how long it waits for an answer at most."""

    def __init__(self, broker: Broker, pause: float) -> None:
        self._broker = broker
        self._pause = pause
        self._ends = threading.Event()
        self.longest = 0.0
        self.errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Bystander:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        frames = [
            encoded(ApiVersionsRequest(client_software_name="tests", client_software_version="1"), 3),
            encoded(produce(SMALL, batch(b"value")), 9),
            encoded(MetadataRequest(topics=[metadata_topic(SMALL)], allow_auto_topic_creation=False), 9),
            encoded(fetch(SMALL, 0, max_bytes=1000), 11),
        ]
        try:
            with WireClient(self._broker) as wire:
                wire.socket.settimeout(SLOW)
                while not self._ends.is_set():
                    for frame in frames:
                        began = time.monotonic()
                        wire.socket.sendall(frame)
                        wire.receive_frame()
                        self.longest = max(self.longest, time.monotonic() - began)
                    self._ends.wait(self._pause)
        except BaseException as error:
            self.errors.append(error)


class Scene:
    """A broker with a topic of so many partitions, and its attacker."""

    def __init__(self, broker: Broker, partitions: int, offsets: int, topic: str = "wide") -> None:
        self.broker = broker
        self.topic = topic
        self.partitions = partitions
        self.offsets = offsets

    @contextmanager
    def attackers(self, count: int = 1) -> Iterator[list[WireClient]]:
        with ExitStack() as stack:
            clients = [stack.enter_context(WireClient(self.broker)) for _ in range(count)]
            for client in clients:
                client.socket.settimeout(SLOW)
            yield clients

    def ask(self, request: Any, version: int, wire: WireClient | None = None) -> Any:
        """The response to one request, decoded."""
        frame = encoded(request, version)
        with self.attackers() as (mine,):
            client = wire or mine
            client.socket.sendall(frame)
            answer = client.receive_frame()
        name = type(request).__name__.replace("Request", "Response")
        return decoded(request, name, version, answer, 1)


Attack = Callable[[Scene], Callable[[], None]]
"""Prepares its requests, and gives what sends them and waits for the answers."""


def sending(scene: Scene, *frames: bytes, connections: int = 1) -> Callable[[], None]:
    """Sends the frames on each of so many connections at once, and waits for all the answers."""

    def send() -> None:
        with scene.attackers(connections) as clients:
            for client in clients:
                for frame in frames:
                    client.socket.sendall(frame)
            for client in clients:
                for _ in frames:
                    assert len(client.receive_frame()) > 4

    return send


def sending_anything(scene: Scene, frame: bytes) -> Callable[[], None]:
    """Sends a frame, and waits for the answer, or until the connection is closed because of it."""

    def send() -> None:
        with scene.attackers() as (client,), suppress(EOFError):
            client.socket.sendall(frame)
            client.receive_frame()

    return send


def measured(scene: Scene, attack: Attack, pause: float = 0.005) -> Outcome:
    """The outcome of an attack, with so many seconds between the bystander's rounds."""
    send = attack(scene)
    hub = get_hub()
    with ExitStack() as stack:
        with Bystander(scene.broker, pause) as bystander:
            time.sleep(0.05)
            bystander.longest = 0.0
            collections = stack.enter_context(Collections())
            hub.run(hub.turns.reset)
            began = time.monotonic()
            send()
            took = time.monotonic() - began
        hub.run(next_turn)  # an answer goes out in the midst of a turn
        if bystander.errors:
            raise bystander.errors[0]
        turns, own = hub.turns, collections.longest_turn
        return Outcome(turns.longest, turns.longest_cpu, own, collections.longest, bystander.longest, took)


def metadata_topic(name: str) -> Any:
    return MetadataRequest.MetadataRequestTopic(topic_id=None, name=name)


def topic_of(name: str, partitions: int, **configs: str) -> Any:
    topic = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        topics=[
            topic(
                name=name,
                num_partitions=partitions,
                replication_factor=1,
                assignments=[],
                configs=[
                    topic.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                    for key, value in configs.items()
                ],
            )
        ],
        timeout_ms=int(1000 * SLOW),
        validate_only=False,
    )


def requests_for(name: str, partitions: int) -> Iterator[tuple[Any, int]]:
    """The requests that create a topic of very many partitions, and their versions: one creates no more than
    CHANGES_PER_REQUEST."""
    made = min(partitions, CHANGES_PER_REQUEST - 1)
    yield topic_of(name, made), 5
    while made < partitions:
        made = min(partitions, made + CHANGES_PER_REQUEST)
        topic = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=made, assignments=None)
        yield (
            CreatePartitionsRequest(topics=[topic], timeout_ms=int(1000 * SLOW), validate_only=False),
            1,
        )


@contextmanager
def copied(scene: Scene) -> Iterator[Path]:
    """A copy of the broker's folder."""
    with tempfile.TemporaryDirectory() as other:
        _copy(str(scene.broker.path), Path(other) / "copy")
        yield Path(other) / "copy"


def _copy(path: str, to: Path) -> None:
    to.mkdir()
    with sqlite3.connect(f"{path}/cache.db") as source, sqlite3.connect(to / "cache.db") as target:
        source.backup(target)
    for file in Path(path).iterdir():
        if file.is_file() and not file.name.startswith(("cache.db", "dafka.lock")):
            shutil.copy(file, to / file.name)
    if (Path(path) / "values").exists():
        shutil.copytree(Path(path) / "values", to / "values")
