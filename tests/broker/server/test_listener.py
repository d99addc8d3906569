"""The listener: its port and its connections."""

from __future__ import annotations

import multiprocessing
import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from broker.clients import Client, batch
from broker.server.client import WireClient, discarded, encoded
from broker.server.samples import fetch, produce
from descriptors import descriptors
from kafka.errors import KafkaStorageError
from kafka.protocol.consumer import JoinGroupRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from timing import each_time, short_turns, until

from dafka import Broker
from dafka.broker import connect
from dafka.broker.server import connection, limits, listener
from dafka.hub.hub import get_hub
from dafka.testing import TestBroker


def told(broker: Broker) -> str:
    """The address that Metadata returns."""
    with WireClient(broker) as wire:
        (node,) = wire.ask(MetadataRequest(topics=[]), 9).brokers
    return f"{node.host}:{node.port}"


def test_a_broker_without_listen_has_no_port():
    with Broker() as broker, pytest.raises(ConnectionRefusedError):
        WireClient(broker)


def test_metadata_has_the_address_of_the_listener(broker: Broker):
    assert told(broker) == broker.bootstrap_servers


def test_metadata_has_the_advertised_address():
    with Broker(listen="0.0.0.0:0", advertised="127.0.0.1") as broker:
        assert told(broker) == broker.bootstrap_servers
        assert broker.bootstrap_servers.startswith("127.0.0.1:")


def test_the_advertised_port_may_differ():
    with Broker(listen="127.0.0.1:0", advertised="kafka.example:19092") as broker:
        assert broker.bootstrap_servers == "kafka.example:19092"
        assert connect("kafka.example:19092", 100.0).broker.running


def test_a_host_name_is_not_replaced_by_its_address():
    with Broker(listen="localhost:0") as broker:
        assert broker.bootstrap_servers.startswith("127.0.0.1:")
        assert told(broker) == broker.bootstrap_servers


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_the_listener_accepts_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    with Broker(listen="[::1]:0") as broker:
        assert broker.bootstrap_servers.startswith("[::1]:")
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        socket.create_connection(("::1", port), 5).close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"listen": "9092"}, "HOST:PORT"),
        ({"listen": "host:"}, "HOST:PORT"),
        ({"listen": ":9092"}, "HOST:PORT"),
        ({"listen": "host:70000"}, "HOST:PORT"),
        ({"listen": "host:-1"}, "HOST:PORT"),
        ({"listen": 9092}, "HOST:PORT"),
        ({"listen": "0.0.0.0:9092"}, "advertised"),
        ({"listen": "[::]:9092"}, "advertised"),
        ({"listen": "*:9092"}, "advertised"),
        ({"listen": "0.0.0.0:9092", "advertised": "0.0.0.0"}, "not an address"),
        ({"listen": "127.0.0.1:9092", "advertised": "host:port"}, "HOST:PORT"),
        ({"listen": "127.0.0.1:9092", "advertised": ":::"}, "HOST:PORT"),
        ({"listen": "127.0.0.1:9092", "advertised": "SSL://host:9092"}, "there is no SSL listener"),
        ({"listen": "127.0.0.1:9092", "advertised": "one host:9092"}, "HOST:PORT"),
        ({"listen": "127.0.0.1:9092", "advertised": "host,other:9092"}, "HOST:PORT"),
        ({"advertised": "host"}, "listen"),
    ],
)
def test_invalid_addresses_are_named_in_the_error(options, message: str):
    with pytest.raises(ValueError, match=message):
        Broker(**options)


def test_a_port_in_use_is_refused_and_nothing_is_left(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        broker = Broker(tmp_path, listen=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(OSError, match="cannot listen on"):
            broker.start()
    with broker.start():
        assert told(broker) == broker.bootstrap_servers


def test_an_address_of_another_machine_is_named_in_the_error():
    with pytest.raises(OSError, match=r"no\.such\.host\.invalid"):
        Broker(listen="no.such.host.invalid:0").start()


def test_two_brokers_do_not_share_a_port(broker: Broker):
    with pytest.raises(OSError, match="cannot listen on"):
        Broker(listen=broker.bootstrap_servers).start()


def test_stopping_ends_connections_and_their_waiting_requests(broker: Broker, client: Client):
    client.create("topic")
    with WireClient(broker) as idle, WireClient(broker) as parked, WireClient(broker) as joining:
        idle.ask(ApiVersionsRequest(), 0)
        parked.send(fetch("topic", 0, wait=60_000), 12)
        joining.send(
            JoinGroupRequest(
                group_id="group",
                session_timeout_ms=60_000,
                member_id="",
                protocol_type="consumer",
                protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
            ),
            0,
        )
        begun = time.monotonic()
        broker.stop()
        assert all(one.is_closed() for one in (idle, parked, joining))
        assert time.monotonic() - begun < 50
    assert broker.running is False


def test_a_restarted_broker_gets_its_port_and_clients_reconnect(tmp_path):
    broker = Broker(tmp_path, listen="127.0.0.1:0").start()
    kept = 0
    for _ in range(6):
        address = broker.bootstrap_servers
        with WireClient(broker) as wire:
            wire.ask(ApiVersionsRequest(), 0)
            broker.stop()  # closes the connection, which the system keeps for a while
            broker.start()
        kept += broker.bootstrap_servers == address
    broker.stop()
    assert kept >= 4  # another process may have taken it in between


def test_acknowledged_records_survive_a_restart(tmp_path):
    with Broker(tmp_path, listen="127.0.0.1:0") as broker:
        Client(broker).create("topic")
        with WireClient(broker) as wire:
            assert (
                wire.ask(produce("topic", batch(b"a")), 9).responses[0].partition_responses[0].error_code == 0
            )
    with Broker(tmp_path, listen="127.0.0.1:0") as broker:
        assert Client(broker).values("topic") == [b"a"]


def test_injected_faults_reach_clients_of_the_listener():
    with TestBroker(listen="127.0.0.1:0") as broker:
        broker.create_topic("topic")
        broker.fail_next_produce(KafkaStorageError, topic="topic")
        with WireClient(broker) as wire:
            (answer,) = wire.ask(produce("topic", batch(b"a")), 9).responses[0].partition_responses
            assert answer.error_code == KafkaStorageError.errno
            (answer,) = wire.ask(produce("topic", batch(b"a")), 9).responses[0].partition_responses
            assert answer.error_code == 0


def test_a_fork_keeps_neither_port_nor_connections(broker: Broker):
    """Otherwise a child that outlives its parent would keep the connections open and the port in use."""
    with WireClient(broker) as wire:
        wire.ask(ApiVersionsRequest(), 0)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(writing)
            os.read(reading, 1)  # until the parent has closed its end
            os._exit(0)
        os.close(reading)
        try:
            address = broker.bootstrap_servers
            broker.stop()
            assert wire.is_closed()
            host, port = address.rsplit(":", 1)
            until(lambda: _is_free(host, int(port)))  # the child gives it back when it gets to run
        finally:
            os.close(writing)
            os.waitpid(child, 0)


def _is_free(host: str, port: int) -> bool:
    try:
        socket.create_server((host, port)).close()
    except OSError:
        return False
    return True


def test_a_forked_process_may_be_a_client_of_its_parent(broker: Broker, client: Client):
    client.create("topic")
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_produce_from_a_child, args=(broker.bootstrap_servers,))
    process.start()
    process.join(150)
    assert process.exitcode == 0
    assert client.values("topic") == [b"from the child"]


def _produce_from_a_child(address: str) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=address)
    producer.send("topic", b"from the child").get(100)
    producer.close()


def test_a_thousand_idle_connections_do_not_slow_others(broker: Broker, client: Client):
    with descriptors(2500), ExitStack() as stack:  # both ends are in this process
        idle = [stack.enter_context(WireClient(broker)) for _ in range(1000)]
        until(lambda: broker.metrics()["listener_connections"] == 1000)
        client.create("topic")
        with WireClient(broker) as wire:
            for number in range(100):
                answer = wire.ask(produce("topic", batch(b"%d" % number)), 9)
                assert answer.responses[0].partition_responses[0].base_offset == number
        assert idle[-1].ask(ApiVersionsRequest(), 0).error_code == 0
        until(lambda: broker.metrics()["listener_held_bytes"] == 0)


def test_a_connection_from_this_machine_has_a_send_buffer_that_stays_in_the_cache(monkeypatch):
    monkeypatch.setattr(limits, "NEAR_SEND_BUFFER", 50_000)

    def send_buffer(peer: str) -> int:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
            accepted, _ = server.accept()
            with accepted:
                listener._prepare(accepted, (peer, 1))
                return accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)

    assert send_buffer("127.0.0.1") in (50_000, 100_000)  # Linux doubles it, for what it notes besides
    assert send_buffer("192.0.2.1") > 100_000


@contextmanager
def heard_of_in_one_turn() -> Iterator[None]:
    """The hub stands still in the block, and then hears at once of all that has come of connections."""
    let_go = threading.Event()
    held = threading.Thread(target=get_hub().run, args=(let_go.wait,))
    held.start()
    yield
    let_go.set()
    held.join()


@each_time
def test_many_connections_that_send_at_once_hold_nobody_up(monkeypatch: pytest.MonkeyPatch):
    def read_slowly(data: Any) -> Any:
        ends = time.thread_time() + 0.001
        while time.thread_time() < ends:
            pass
        return read(data)

    read = connection.read_frame
    request = encoded(ApiVersionsRequest(), 0)
    with monkeypatch.context() as patched, Broker(listen="127.0.0.1:0") as broker, ExitStack() as opened:
        clients = [opened.enter_context(WireClient(broker)) for _ in range(100)]
        for one in clients:
            one.ask(ApiVersionsRequest(), 0)
        patched.setattr(connection, "read_frame", read_slowly)
        with short_turns():
            with heard_of_in_one_turn():
                for one in clients:
                    one.socket.sendall(request)
            for one in clients:
                one.receive_frame()


@pytest.mark.parametrize("how", ["their clients disconnect", "it stops"])
@each_time
def test_many_connections_that_end_at_once_hold_nobody_up(monkeypatch: pytest.MonkeyPatch, how: str):
    def shut_slowly(one: Any) -> None:
        shut(one)
        ends = time.thread_time() + 0.001
        while time.thread_time() < ends:
            pass

    with monkeypatch.context() as patched, Broker(listen="127.0.0.1:0") as broker, ExitStack() as opened:
        clients = [opened.enter_context(WireClient(broker)) for _ in range(100)]
        for one in clients:
            one.ask(ApiVersionsRequest(), 0)
            if "wait" in how:
                one.send(fetch("topic", 0, wait=600_000), 12)
        shut = connection._shut
        patched.setattr(connection, "_shut", shut_slowly)
        with short_turns():
            if how == "it stops":
                broker.stop()
                return
            with heard_of_in_one_turn():
                opened.close()
            until(lambda: broker.metrics()["listener_connections"] == 0)


def test_the_listener_accepts_again_after_the_process_was_out_of_descriptors(
    broker: Broker, caplog: pytest.LogCaptureFixture
):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with WireClient(broker) as known, socket.socket() as late:
        known.ask(ApiVersionsRequest(), 0)
        late.settimeout(100)
        host, port = broker.bootstrap_servers.rsplit(":", 1)
        used = os.open(os.devnull, os.O_RDONLY)
        os.close(used)
        resource.setrlimit(resource.RLIMIT_NOFILE, (used, hard))
        try:
            late.connect((host, int(port)))
            until(lambda: "no connection can be accepted" in caplog.text)
            assert known.ask(ApiVersionsRequest(), 0).error_code == 0
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        until(lambda: accepted(broker) == 2)


def accepted(broker: Broker) -> int:
    """How many connections it has accepted, but for those of nodes of other tests that look for a peer."""
    return broker.metrics()["listener_accepted"] - broker.discarded.get("zeromq", 0)


def test_metrics_count_requests_and_octets(broker: Broker, wire: WireClient):
    wire.ask(ApiVersionsRequest(), 0)
    until(lambda: broker.metrics()["listener_bytes_out"] > 100)
    until(lambda: broker.metrics()["listener_connections"] == accepted(broker) == 1)
    metrics = broker.metrics()
    assert metrics["listener_requests"] == 1
    assert metrics["listener_bytes_in"] > 10


def test_concurrent_producers_get_distinct_offsets(broker: Broker, client: Client):
    client.create("topic")
    offsets: list[int] = []

    def send() -> None:
        with WireClient(broker) as wire:
            for _ in range(50):
                answer = wire.ask(produce("topic", batch(b"x")), 9)
                offsets.append(answer.responses[0].partition_responses[0].base_offset)

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(offsets) == list(range(400))


def test_the_number_of_connections_is_limited(
    broker: Broker, wire: WireClient, monkeypatch: pytest.MonkeyPatch
):
    wire.ask(ApiVersionsRequest(), 0)
    monkeypatch.setattr(limits, "CONNECTIONS", 1)
    with WireClient(broker) as one_more:
        assert one_more.is_closed()
    assert discarded(broker).keys() == {"connections"}
    assert wire.ask(ApiVersionsRequest(), 0).error_code == 0
