"""Listeners with TLS, beside those without: real clients of three libraries, and refused connections."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from broker.server.client import encoded
from confluent_kafka import Consumer as ConfluentConsumer
from descriptors import descriptors
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaConnectionError
from kafka.protocol.metadata import ApiVersionsRequest
from security.certificates import Authority
from timing import each_time, no_long_turn, until

from dafka import Broker
from dafka.broker.remote.remote import Remote
from dafka.hub.hub import get_hub
from dafka.security import ClientTls, ServerTls
from dafka.security.contexts import of_client

BOTH = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(authority):
    with Broker(listen=BOTH, tls=ServerTls(**authority.sign("server")._asdict())) as broker:
        yield broker


def test_values_that_lie_in_files_are_encrypted_too(tmp_path, authority, monkeypatch):
    monkeypatch.setattr("os.sendfile", None)
    large = os.urandom(900_000)
    tls = ServerTls(**authority.sign("server")._asdict())
    with Broker(tmp_path, listen=BOTH, tls=tls) as first:
        produce("clients", large, **options(first, authority))
    with Broker(tmp_path, listen=BOTH, tls=tls) as second:
        consumer = KafkaConsumer("clients", auto_offset_reset="earliest", **options(second, authority))
        with closing(consumer):
            assert next(consumer).value == large


@pytest.fixture
def strict(authority):
    """A broker that wants to see its clients' certificates."""
    signed = authority.sign("server")
    tls = ServerTls(**signed._asdict(), cafile=authority.cafile, client_auth="required")
    with Broker(listen="SSL://127.0.0.1:0", tls=tls) as broker:
        yield broker


def options(broker: Broker, authority: Authority, **more) -> dict:
    return {
        "bootstrap_servers": broker.listeners["SSL"],
        "security_protocol": "SSL",
        "ssl_cafile": authority.cafile,
        **more,
    }


def produce(topic: str, *values: bytes, **options) -> None:
    producer = KafkaProducer(**options)
    try:
        for value in values:
            producer.send(topic, value).get(100)
    finally:
        producer.close(5)


def test_kafka_python_writes_and_librdkafka_reads(broker, authority):
    large = os.urandom(900_000)  # many records of TLS, and a response that is sent in pieces
    produce("clients", b"one", large, **options(broker, authority))
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": broker.listeners["SSL"],
            "security.protocol": "SSL",
            "ssl.ca.location": authority.cafile,
            "group.id": "g",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.subscribe(["clients"])
        found = []
        while len(found) < 2:
            found += [message.value() for message in consumer.consume(2 - len(found), 20)]
        assert found == [b"one", large]
    finally:
        consumer.close()


def test_aiokafka_writes(broker, authority):
    async def write() -> int:
        context = ssl.create_default_context(cafile=authority.cafile)
        async with AIOKafkaProducer(
            bootstrap_servers=broker.listeners["SSL"], security_protocol="SSL", ssl_context=context
        ) as producer:
            return (await producer.send_and_wait("aiokafka", b"one")).offset

    assert asyncio.run(write()) == 0


def test_each_listener_tells_its_own_address(broker, authority):
    for protocol, address in broker.listeners.items():
        admin = KafkaAdminClient(
            bootstrap_servers=address, security_protocol=protocol, ssl_cafile=authority.cafile
        )
        try:
            (node,) = admin.describe_cluster()["brokers"]
            assert f"{node['host']}:{node['port']}" == address
        finally:
            admin.close()
    assert len(set(broker.listeners.values())) == 2


def test_after_a_restart_the_ports_are_the_same(authority):
    broker = Broker(listen=BOTH, tls=ServerTls(**authority.sign("server")._asdict()))

    def stay() -> bool:
        with broker:
            before = broker.listeners
        with broker:
            return broker.listeners == before

    assert any(stay() for _ in range(4))  # another process may take one in between


def test_a_client_that_trusts_somebody_else_does_not_connect(broker, tmp_path):
    with pytest.raises(KafkaConnectionError, match=r"TLS: the certificate is not accepted: .*issuer"):
        remote(broker, ClientTls(cafile=Authority(tmp_path).cafile))


def test_a_certificate_is_for_a_host(authority):
    signed = authority.sign("elsewhere", "elsewhere.example")
    with Broker(listen="SSL://127.0.0.1:0", tls=ServerTls(**signed._asdict())) as broker:
        with pytest.raises(KafkaConnectionError, match="TLS: the certificate is not accepted: IP address"):
            remote(broker, ClientTls(cafile=authority.cafile))
        assert remote(broker, ClientTls(cafile=authority.cafile, check_hostname=False))


def test_a_brokers_certificate_that_has_expired_is_not_accepted(authority):
    signed = authority.sign("old", expired=True)
    with (
        Broker(listen="SSL://127.0.0.1:0", tls=ServerTls(**signed._asdict())) as broker,
        pytest.raises(KafkaConnectionError, match="is not accepted: certificate has expired"),
    ):
        remote(broker, ClientTls(cafile=authority.cafile))


def test_a_clients_certificate_that_has_expired_is_refused_and_counted(strict, authority):
    expired = authority.sign("client", expired=True)
    with pytest.raises(KafkaConnectionError):
        remote(strict, ClientTls(cafile=authority.cafile, **expired._asdict()))
    until(lambda: strict.discarded.get("tls", 0) >= 1)


def test_a_client_shows_its_certificate_where_it_has_to(strict, authority, tmp_path):
    with pytest.raises(KafkaConnectionError):
        remote(strict, ClientTls(cafile=authority.cafile))
    stranger = Authority(tmp_path, "stranger").sign("client")
    with pytest.raises(KafkaConnectionError):
        remote(strict, ClientTls(cafile=authority.cafile, **stranger._asdict()))
    known = authority.sign("client")._asdict()
    assert remote(strict, ClientTls(cafile=authority.cafile, **known))
    keys = {f"ssl_{name}": path for name, path in known.items()}
    produce("strict", b"one", **options(strict, authority, **keys))
    until(lambda: strict.discarded.get("tls", 0) >= 2)


def test_a_certificate_says_who_a_client_is(authority, caplog):
    signed = authority.sign("server")._asdict()
    known = authority.sign("alice")._asdict()

    def connected(rules: str) -> list[str]:
        tls = ServerTls(**signed, cafile=authority.cafile, client_auth="requested", principal_rules=rules)
        caplog.clear()
        with (
            caplog.at_level(logging.INFO, "dafka.audit"),
            suppress(KafkaConnectionError),
            Broker(listen="SSL://127.0.0.1:0", tls=tls) as broker,
        ):
            remote(broker, ClientTls(cafile=authority.cafile, **known))
        return [one.message.split(" connected")[0] for one in caplog.records if one.name == "dafka.audit"]

    assert set(connected(r"RULE:.*CN=([a-z]*).*/$1/")) == {"User:alice"}
    assert connected(r"RULE:CN=bob/bob/") == []


def remote(broker: Broker, tls: ClientTls) -> str:
    """The cluster's id, by TCP."""
    host, port = broker.listeners["SSL"].split(":")
    hub = get_hub()
    there = Remote(hub, [(host, int(port))], tls=of_client(tls))
    try:
        return hub.run(there.metadata, ()).cluster_id
    finally:
        hub.run(there.close)


def test_the_new_certificate_counts_for_new_connections(tmp_path, monkeypatch):
    monkeypatch.setattr("dafka.security.renewing.LOOK_SECONDS", 0)
    before, after = Authority(tmp_path, "before"), Authority(tmp_path, "after")
    signed = before.sign("server")
    with Broker(listen="SSL://127.0.0.1:0", tls=ServerTls(**signed._asdict())) as broker:
        assert remote(broker, ClientTls(cafile=before.cafile))
        after.sign("server")
        assert remote(broker, ClientTls(cafile=after.cafile))


@pytest.mark.parametrize(
    "octets", [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x10\0\x12\0\0" + bytes(12), b"\x16\x03\x01"]
)
def test_other_protocols_at_the_port_are_closed_and_counted(broker, octets):
    before = broker.discarded.get("tls", 0)
    host, port = broker.listeners["SSL"].split(":")
    with socket.create_connection((host, int(port)), 100) as client:
        client.sendall(octets)
        with suppress(OSError):  # by then it may have been closed
            client.shutdown(socket.SHUT_WR)
            while client.recv(1000):
                pass
    until(lambda: broker.discarded.get("tls", 0) > before)


def test_a_handshake_has_a_time(broker, monkeypatch):
    before = broker.discarded.get("tls", 0)
    monkeypatch.setattr("dafka.broker.server.limits.HANDSHAKE_SECONDS", 0.1)
    host, port = broker.listeners["SSL"].split(":")
    with socket.create_connection((host, int(port)), 100) as client:
        assert client.recv(1) == b""
    until(lambda: broker.discarded.get("tls", 0) > before)  # others may end late


def test_a_fetch_whose_client_has_gone_ends(broker, authority):
    """TLS says goodbye with octets of its own, behind which the end of the connection must be seen."""
    consumer = KafkaConsumer(
        "waiting",
        **options(broker, authority),
        fetch_max_wait_ms=300_000,
        fetch_min_bytes=1000,
        request_timeout_ms=305_000,
        session_timeout_ms=6000,
        group_id=None,
    )
    until(lambda: consumer.poll(500) == {} and broker.metrics()["listener_connections"])
    consumer.close()
    until(lambda: broker.metrics()["listener_connections"] == 0)


def test_the_facade_reaches_a_broker_of_another_process(tmp_path: Path, authority):
    from cli.tools import running

    from compat.kafka import KafkaProducer as Facade

    signed = authority.sign("server")
    command = ("--listen", "SSL://127.0.0.1:0", "--data", str(tmp_path / "data"))
    with running(
        "broker", *command, "--ssl-certfile", signed.certfile, "--ssl-keyfile", signed.keyfile
    ) as daemon:
        line = daemon.stderr.readline()
        address = line.split("SSL://")[1].split(" ")[0]
        producer = Facade(bootstrap_servers=address, security_protocol="SSL", ssl_cafile=authority.cafile)
        try:
            assert producer.send("facade", b"one").get(100).offset == 0
        finally:
            producer.close()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"listen": "SSL://127.0.0.1:0"}, "SSL needs tls=ServerTls"),
        ({"listen": "127.0.0.1:0", "tls": ServerTls(certfile="a.pem")}, "no listener has it"),
        ({"listen": "SSL://127.0.0.1:0", "tls": "a.pem"}, r"tls is dafka\.security\.ServerTls"),
        ({"listen": "SSL://127.0.0.1:0", "tls": ServerTls(certfile="none.pem")}, "none.pem.*cannot be read"),
    ],
)
def test_options_that_do_not_go_together_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        Broker(**given).start()


def test_too_many_handshakes_end_the_oldest(broker, authority, monkeypatch):
    monkeypatch.setattr("dafka.broker.server.limits.HANDSHAKES", 3)
    monkeypatch.setattr("dafka.broker.server.limits.HANDSHAKE_LEAST_SECONDS", 0)
    host, port = broker.listeners["SSL"].split(":")
    before = broker.discarded.get("handshakes", 0)
    with ExitStack() as opened:
        clients = [opened.enter_context(socket.create_connection((host, int(port)), 100)) for _ in range(4)]
        assert clients[0].recv(1) == b""
        until(lambda: broker.discarded.get("handshakes", 0) > before)
        assert remote(broker, ClientTls(cafile=authority.cafile))  # a quick client is let in
        assert clients[1].recv(1) == b""


def test_a_new_handshake_is_not_ended_by_others(broker, authority, monkeypatch):
    monkeypatch.setattr("dafka.broker.server.limits.HANDSHAKES", 3)
    monkeypatch.setattr("dafka.broker.server.limits.HANDSHAKE_LEAST_SECONDS", 60)
    host, port = broker.listeners["SSL"].split(":")
    context = ssl.create_default_context(cafile=authority.cafile)
    before = broker.discarded.get("handshakes", 0)
    with ExitStack() as opened:
        clients = [opened.enter_context(socket.create_connection((host, int(port)), 100)) for _ in range(20)]
        with context.wrap_socket(clients[2], server_hostname=host):
            assert broker.discarded.get("handshakes", 0) == before


@each_time
def test_many_handshakes_at_once_hold_nobody_up(broker, authority):
    """Each is some milliseconds of arithmetic."""
    host, port = broker.listeners["SSL"].split(":")
    context = ssl.create_default_context(cafile=authority.cafile)
    hub = get_hub()

    def shake(_: int) -> None:
        with socket.create_connection((host, int(port)), 60) as plain:
            context.wrap_socket(plain, server_hostname=host).close()

    with ThreadPoolExecutor(60) as pool:
        hub.run(hub.turns.reset)
        list(pool.map(shake, range(60)))
        no_long_turn(hub.turns.longest_cpu, 0.02)


@each_time
def test_many_clients_that_send_at_once_make_no_long_turn(broker, authority):
    """To take one's octets out of TLS and answer them takes 170 microseconds of the hub's time."""
    host, port = broker.listeners["SSL"].split(":")
    context = ssl.create_default_context(cafile=authority.cafile)
    question = encoded(ApiVersionsRequest(), 0)
    hub, held, all_sent = get_hub(), threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        all_sent.wait(100)

    with ExitStack() as stack:
        clients = []
        stack.enter_context(descriptors(2048))
        for _ in range(600):
            plain = stack.enter_context(socket.create_connection((host, int(port)), 100))
            clients.append(stack.enter_context(context.wrap_socket(plain, server_hostname=host)))
        for client in clients:
            client.sendall(question)
            assert client.recv(65536)
        hub.run(hub.turns.reset)
        hub.post(hold)
        assert held.wait(100)
        for client in clients:
            client.sendall(question)
        all_sent.set()
        for client in clients:
            assert client.recv(65536)
        no_long_turn(hub.turns.longest_cpu, 0.02)


def test_fuzzed_records_disturb_nobody_else(broker, authority):
    """A client's first flight, changed somewhere and cut short somewhere."""
    chance = random.Random(5)
    host, port = broker.listeners["SSL"].split(":")
    for _ in range(200):
        into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context(cafile=authority.cafile)
        with suppress(ssl.SSLWantReadError):
            context.wrap_bio(into, out, server_hostname="localhost").do_handshake()
        octets = bytearray(out.read())
        for _ in range(chance.randint(1, 4)):
            octets[chance.randrange(len(octets))] = chance.randrange(256)
        with socket.create_connection((host, int(port)), 100) as stranger, suppress(OSError):
            stranger.sendall(octets[: chance.randint(1, len(octets))])
            stranger.shutdown(socket.SHUT_WR)
            while stranger.recv(65536):
                pass
    assert remote(broker, ClientTls(cafile=authority.cafile))
    assert "internal" not in broker.discarded


def test_thousands_of_half_open_connections_leave_room_for_quick_clients(broker, authority, monkeypatch):
    monkeypatch.setattr("dafka.broker.server.limits.HANDSHAKES", 200)
    host, port = broker.listeners["SSL"].split(":")

    def is_served() -> bool:
        with descriptors(2500), ExitStack() as opened:
            for _ in range(1000):
                stranger = opened.enter_context(socket.create_connection((host, int(port)), 100))
                with suppress(OSError):
                    stranger.sendall(b"\x16\x03\x01")
            try:
                assert remote(broker, ClientTls(cafile=authority.cafile))
            except KafkaConnectionError:
                return False
            assert broker.metrics()["listener_connections"] <= 210
            assert broker.metrics()["listener_held_bytes"] < 1 << 20
            return True

    for seconds in (0.2, 0.2, 0.5, 2.0, 5.0):  # on a busy machine a quick client may need some
        monkeypatch.setattr("dafka.broker.server.limits.HANDSHAKE_LEAST_SECONDS", seconds)
        if is_served():
            return
    raise AssertionError("no quick client is served")
