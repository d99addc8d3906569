"""One connection: pipelining, timeouts, and servers that do not speak Kafka's protocol."""

from __future__ import annotations

import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import gevent
import pytest
from broker.remote.fake_broker import CLOSE, HANG, FakeCluster, after
from kafka.errors import (
    CorrelationIdError,
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    KafkaProtocolError,
    RequestTimedOutError,
)
from kafka.protocol.admin import ListGroupsRequest, ListGroupsResponse
from kafka.protocol.consumer import HeartbeatRequest, HeartbeatResponse
from ports import LOOPBACK

from dafka.broker.remote.connection import Connection
from dafka.broker.remote.limits import RESPONSE_BYTES
from dafka.hub.hub import get_hub

HEARTBEAT, LIST_GROUPS = 12, 16
SOON = 0.3  # seconds that servers are given that do not answer


def run(fn: Callable[[], Any]) -> Any:
    return get_hub().run(fn)


def connect(cluster: FakeCluster, timeout: float = 100.0) -> Connection:
    return run(lambda: Connection(*cluster.addresses[0], timeout))


def beat(connection: Connection, generation: int = 1, timeout: float = 100.0) -> Any:
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id="m")
    return connection.ask(request, 4, timeout)


def alive(request: Any) -> HeartbeatResponse:
    return HeartbeatResponse(throttle_time_ms=request.generation_id or 0, error_code=0)


def test_requests_go_out_before_earlier_ones_are_answered(fake):
    fake.brokers[0].answers[HEARTBEAT] = after(0.05, alive)
    connection = connect(fake)

    def together():
        greens = [gevent.spawn(beat, connection, number) for number in range(10)]
        gevent.joinall(greens, raise_error=True)
        return [green.value.throttle_time_ms for green in greens]

    assert run(together) == list(range(10))  # each has its own answer
    run(connection.close)


def test_an_answer_that_does_not_come_closes_the_connection(fake):
    fake.brokers[0].answers[HEARTBEAT] = lambda request: HANG
    connection = connect(fake)
    started = time.monotonic()
    with pytest.raises(RequestTimedOutError, match=f"{LOOPBACK}:{fake.brokers[0].port} .* within 300 ms"):
        run(lambda: beat(connection, timeout=SOON))
    assert SOON <= time.monotonic() - started < 30
    assert connection.closed


def test_all_that_wait_hear_of_a_connection_that_ends(fake):
    fake.brokers[0].answers[HEARTBEAT] = lambda request: HANG if request.generation_id < 3 else CLOSE

    def together():
        connection = Connection(*fake.addresses[0], 100.0)
        greens = [gevent.spawn(beat, connection, number) for number in range(4)]
        gevent.joinall(greens)
        return [type(green.exception) for green in greens]

    assert run(together) == [KafkaConnectionError] * 4


@pytest.mark.parametrize(
    ("octets", "error"),
    [
        (struct.pack(">ii", RESPONSE_BYTES + 1, 2), KafkaProtocolError),
        (struct.pack(">ii", -5, 2), KafkaProtocolError),
        (struct.pack(">ii", 4, 99), CorrelationIdError),
        (struct.pack(">ii", 4, 2), KafkaProtocolError),  # nothing behind the correlation id
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", KafkaProtocolError),
    ],
)
def test_a_malformed_answer_closes_the_connection(fake, octets, error):
    fake.brokers[0].answers[HEARTBEAT] = lambda request: octets
    connection = connect(fake)
    with pytest.raises(error):
        run(lambda: beat(connection))
    assert connection.closed
    with pytest.raises(error):  # and says so ever after
        run(lambda: beat(connection))


def test_a_length_that_is_only_a_promise_takes_no_memory(fake):
    fake.brokers[0].answers[HEARTBEAT] = lambda request: struct.pack(">ii", RESPONSE_BYTES, 2) + b"x" * 1000
    connection = connect(fake)
    tracemalloc.start()
    try:
        with pytest.raises(RequestTimedOutError):
            run(lambda: beat(connection, timeout=SOON))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_an_answer_without_a_request_closes_the_connection(fake):
    answer = struct.pack(">iiiih", 10, 2, 0, 0, 0)
    fake.brokers[0].answers[HEARTBEAT] = lambda request: alive(request).encode(version=4) and answer * 2
    connection = connect(fake)

    def ask_and_see():
        with suppress(KafkaProtocolError):
            beat(connection)
        with gevent.Timeout(100):
            while not connection.closed:
                gevent.sleep(0.01)

    run(ask_and_see)


def test_large_answers_come_whole(fake):
    groups = [
        ListGroupsResponse.ListedGroup(group_id=f"group {number} " + "x" * 1000, protocol_type="consumer")
        for number in range(2000)
    ]
    response = ListGroupsResponse(throttle_time_ms=0, error_code=0, groups=groups)
    fake.brokers[0].answers[LIST_GROUPS] = lambda request: response
    connection = connect(fake)
    request = ListGroupsRequest(states_filter=[], types_filter=[])
    for _ in range(3):
        found = run(lambda: connection.ask(request, 4, 100.0))
        assert [one.group_id for one in found.groups] == [one.group_id for one in groups]
    run(connection.close)


def test_a_version_that_both_sides_know_is_chosen(fake):
    fake.brokers[0].versions = {HEARTBEAT: (1, 3)}
    connection = connect(fake)
    assert connection.version(HEARTBEAT, 0, 4) == 3
    assert connection.version(HEARTBEAT, 0, 2) == 2
    with pytest.raises(IncompatibleBrokerVersion, match=r"request 12 in versions 4 to 4: .* knows 1 to 3"):
        connection.version(HEARTBEAT, 4, 4)
    with pytest.raises(IncompatibleBrokerVersion, match="does not know it"):
        connection.version(LIST_GROUPS, 0, 4)
    run(connection.close)


def test_a_broker_too_old_for_the_newest_question_is_asked_the_oldest(fake):
    broker = fake.brokers[0]
    ours = broker.answers[18]

    def old(request: Any) -> Any:
        if request.version:
            return struct.pack(">iih", 6, 1, 35)
        return ours(request)

    broker.answers[18] = old
    connection = connect(fake)
    assert connection.versions[HEARTBEAT] == (0, 4)
    run(connection.close)


@contextmanager
def server(behave: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port where something else listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepted = []

        def accept() -> None:
            while True:
                try:
                    one, _ = listener.accept()
                except OSError:
                    return
                accepted.append(one)
                with suppress(OSError):
                    behave(one)

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        for one in accepted:
            one.close()


def silent(accepted: socket.socket) -> None:
    """Takes what comes and says nothing."""


def http(accepted: socket.socket) -> None:
    accepted.recv(1000)
    accepted.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    accepted.close()


def greets(accepted: socket.socket) -> None:
    accepted.sendall(b"220 mail.example.com ESMTP\r\n")


def dies(accepted: socket.socket) -> None:
    accepted.recv(1000)
    accepted.sendall(struct.pack(">ii", 100, 1) + b"only the beginning")
    accepted.close()


@pytest.mark.parametrize("behave", [silent, http, greets, dies])
def test_a_server_other_than_kafka_is_an_error_within_the_timeout(behave):
    with server(behave) as port:
        started = time.monotonic()
        with pytest.raises(KafkaConnectionError, match=f"127.0.0.1:{port}"):
            run(lambda: Connection("127.0.0.1", port, SOON))
        assert time.monotonic() - started < 30


def test_a_refused_connection_is_an_error(fake):
    fake.brokers[0].stop()
    with pytest.raises(KafkaConnectionError, match=f"{LOOPBACK}:{fake.brokers[0].port}.*refused"):
        connect(fake)


@pytest.mark.parametrize("name", ["no-such-host.invalid", "no..such", "n" * 70, "ñ" * 70, "\ud800"])
def test_a_name_without_addresses(name):
    with pytest.raises(KafkaConnectionError, match=f"{name}:9092"):
        run(lambda: Connection(name, 9092, 10.0))


def test_an_ipv6_address_is_written_in_brackets():
    with pytest.raises(KafkaConnectionError, match=r"^KafkaConnectionError: \[::1\]:1: "):
        run(lambda: Connection("::1", 1, 10.0))
