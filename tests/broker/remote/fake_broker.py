"""A Kafka broker that says what a test wants: kafka-python's classes on a plain socket and threads.

Each API has an answer, a function from the request to a response of kafka-python's classes, to a ``Body``,
to raw octets that are sent as they are, to ``HANG`` (no answer) or to ``CLOSE``. Answered without a script:
ApiVersions, Metadata of ``cluster``, and the coordinator.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from kafka.protocol import admin, consumer, metadata, producer
from kafka.protocol.consumer import FetchResponse
from kafka.protocol.metadata import (
    ApiVersionsResponse,
    FindCoordinatorResponse,
    MetadataResponse,
)
from kafka.protocol.producer import ProduceResponse
from ports import LOOPBACK

HANG, CLOSE = object(), object()


class Body(NamedTuple):
    """Octets that stand where a response's fields should."""

    octets: bytes


_CLASSES = {
    request.API_KEY: request
    for module in (admin, consumer, metadata, producer)
    for name, request in vars(module).items()
    if name.endswith("Request") and hasattr(request, "API_KEY")
}


class FakeCluster:
    """Brokers that know each other. ``leaders``: ``{topic: {partition: index of the broker}}``."""

    def __init__(self, count: int = 1) -> None:
        self.leaders: dict[str, dict[int, int]] = {}
        self.coordinator = 0
        self.brokers = [FakeBroker(self, index) for index in range(count)]

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [(LOOPBACK, broker.port) for broker in self.brokers]

    def __enter__(self) -> FakeCluster:
        return self

    def __exit__(self, *_: object) -> None:
        for broker in self.brokers:
            broker.stop()
            broker._reserved.close()

    def metadata(self, request: Any) -> MetadataResponse:
        topic_class = MetadataResponse.MetadataResponseTopic
        names = list(self.leaders) if request.topics is None else [topic.name for topic in request.topics]
        topics = []
        for name in names:
            leaders = self.leaders.get(name)
            partitions = [
                topic_class.MetadataResponsePartition(
                    error_code=0 if index >= 0 else 5,
                    partition_index=number,
                    leader_id=index,
                    leader_epoch=0,
                    replica_nodes=[0],
                    isr_nodes=[0],
                    offline_replicas=[],
                )
                for number, index in (leaders or {}).items()
            ]
            code = 3 if leaders is None else 0
            topics.append(topic_class(error_code=code, name=name, is_internal=False, partitions=partitions))
        brokers = [
            MetadataResponse.MetadataResponseBroker(
                node_id=one.index, host=LOOPBACK, port=one.port, rack=None
            )
            for one in self.brokers
        ]
        return MetadataResponse(
            throttle_time_ms=0, brokers=brokers, cluster_id="fake", controller_id=0, topics=topics
        )

    def find_coordinator(self, request: Any) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            throttle_time_ms=0,
            error_code=0,
            error_message=None,
            node_id=self.coordinator,
            host=LOOPBACK,
            port=self.brokers[self.coordinator].port,
        )


class FakeBroker:
    """One broker. ``answers`` by API key; ``requests`` are all it got, ``counts`` how many of each API."""

    def __init__(self, cluster: FakeCluster, index: int) -> None:
        self.index = index
        self.answers: dict[int, Callable[[Any], Any]] = {
            18: self._api_versions,
            3: cluster.metadata,
            10: cluster.find_coordinator,
        }
        self.versions: dict[int, tuple[int, int]] = {
            key: (0, request.max_version) for key, request in _CLASSES.items()
        }
        self.requests: list[Any] = []
        self.counts: Counter[int] = Counter()
        self.connections = 0
        self._sockets: set[socket.socket] = set()
        self._reserved = socket.socket()  # keeps the port from others while the broker is stopped
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind((LOOPBACK, 0))
        self.port: int = self._reserved.getsockname()[1]
        self.restart()

    def stop(self) -> None:
        """Close the port and all connections."""
        with suppress(OSError):  # already stopped
            self._listener.shutdown(socket.SHUT_RDWR)  # or a connection more would be accepted
        self._listener.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        """Close all connections."""
        for one in list(self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def restart(self) -> None:
        """Open the port, also after ``stop``."""
        self._listener = socket.create_server((LOOPBACK, self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def wait_for(self, api_key: int, count: int = 1, timeout: float = 100.0) -> None:
        """Until so many requests of an API have come."""
        deadline = time.monotonic() + timeout
        while self.counts[api_key] < count:
            assert time.monotonic() < deadline, f"only {self.counts[api_key]} requests {api_key}"
            time.sleep(0.005)

    def _api_versions(self, request: Any) -> ApiVersionsResponse:
        entries = [
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in self.versions.items()
        ]
        return ApiVersionsResponse(error_code=0, api_keys=entries, throttle_time_ms=0)

    def _accept(self) -> None:
        listener = self._listener
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            self._sockets.add(accepted)
            threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                first = _exactly(connection, 4)
                if first is None or first[0] > 0x7F:
                    return  # a ZeroMQ node that looks for a peer at a port which was that peer's before
                self.connections += 1
                while first is not None and self._answer_one(connection, first):
                    first = _exactly(connection, 4)
            except OSError:
                pass
            finally:
                self._sockets.discard(connection)

    def _answer_one(self, connection: socket.socket, head: bytes) -> bool:
        (length,) = struct.unpack(">i", head)
        frame = _exactly(connection, length)
        if frame is None:
            return False
        key, version, correlation, size = struct.unpack_from(">hhih", frame)
        request_class = _CLASSES[key]
        flexible = request_class.flexible_version_q(version)
        position = 10 + max(size, 0) + flexible
        request = request_class.decode(frame[position:], version=version)
        self.requests.append(request)
        self.counts[key] += 1
        answer = self.answers[key](request)
        if answer is CLOSE:
            _say_goodbye(connection)
            return False
        if answer is HANG:
            return True
        if not isinstance(answer, bytes):
            octets = answer.octets if isinstance(answer, Body) else answer.encode(version=version)
            tags = b"\0" if flexible and key != 18 else b""
            body = struct.pack(">i", correlation) + tags + octets
            answer = struct.pack(">i", len(body)) + body
        connection.sendall(answer)
        return True


def _say_goodbye(connection: socket.socket) -> None:
    """Read what still comes: if octets are left, the system drops answers that are on their way."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(10)
        while connection.recv(65536):
            pass


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        some = connection.recv(size - len(data))
        if not some:
            return None
        data += some
    return data


def produced(request: Any, code: int = 0, base_offset: int = 0) -> ProduceResponse:
    """The same outcome for every partition of a produce."""
    topic_class = ProduceResponse.TopicProduceResponse
    partition_class = topic_class.PartitionProduceResponse
    return ProduceResponse(
        responses=[
            topic_class(
                name=topic.name,
                partition_responses=[
                    partition_class(
                        index=one.index,
                        error_code=code,
                        base_offset=base_offset,
                        log_append_time_ms=-1,
                        log_start_offset=0,
                        record_errors=[],
                        error_message=None,
                    )
                    for one in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ],
        throttle_time_ms=0,
    )


def fetched(request: Any, records: bytes = b"", code: int = 0) -> FetchResponse:
    """The same for every partition of a fetch."""
    topic_class = FetchResponse.FetchableTopicResponse
    return FetchResponse(
        throttle_time_ms=0,
        error_code=0,
        session_id=0,
        responses=[
            topic_class(
                topic=topic.topic,
                partitions=[
                    topic_class.PartitionData(
                        partition_index=one.partition,
                        error_code=code,
                        high_watermark=10,
                        last_stable_offset=10,
                        log_start_offset=0,
                        aborted_transactions=None,
                        preferred_read_replica=-1,
                        records=records,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def after(seconds: float, answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The answer, later."""

    def late(request: Any) -> Any:
        time.sleep(seconds)
        return answer(request)

    return late


def once(first: Callable[[Any], Any], then: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """One answer for the first request, another for the others."""
    answers = iter([first])
    return lambda request: next(answers, then)(request)
