"""Faults of clients over TCP: octets on the socket, and that clients go on."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import TopicAuthorizationFailedError

from dafka.testing import Fault, chaos, wait_until
from dafka.testing.torture.kinds import KINDS

COMMIT_KINDS = [kind for kind, one in KINDS.items() if "commit" in one.operations and kind != "half_open"]


@pytest.mark.parametrize(
    "kind", [kind for kind, one in KINDS.items() if "produce" in one.operations and one.weight]
)
def test_kafka_python_writes_once_whatever_happens(kind):
    fault = Fault("produce t-0", 1, kind)
    with chaos.plan([fault]) as broker:
        producer = KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            client_id="writer",
            retry_backoff_ms=5,
            reconnect_backoff_ms=5,
        )
        broker.create_topic("t")
        future = producer.send("t", b"a")
        if kind == "denied":
            with pytest.raises(TopicAuthorizationFailedError):
                future.get(100)
        else:
            future.get(100)
            assert broker.values("t") == [b"a"]
        producer.close()
        assert broker.faults == [fault]
        assert {call.client for call in broker.history} == {"writer"}


@pytest.mark.parametrize("kind", COMMIT_KINDS)
def test_aiokafka_commits_or_reads_again(kind):
    aiokafka = pytest.importorskip("aiokafka")
    fault = Fault("commit g", 1, kind)

    async def bill(broker: chaos) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            "t",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="g",
            client_id="reader",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            retry_backoff_ms=5,
            heartbeat_interval_ms=100,
        )
        async with consumer:
            while broker.committed("g") != {("t", 0): 2}:
                await consumer.getmany(timeout_ms=100)
                try:
                    await consumer.commit()
                except aiokafka.errors.KafkaError:
                    continue

    with chaos.plan([fault]) as broker:
        broker.preload("t", [b"a", b"b"])
        asyncio.run(asyncio.wait_for(bill(broker), 100))
        assert broker.faults == [fault]


def test_confluent_kafka_writes_once_and_reads_again():
    confluent_kafka = pytest.importorskip("confluent_kafka")
    plan = [
        Fault("produce out-0", 1, "cut_answer"),
        Fault("produce out-0", 2, "not_leader"),
        Fault("commit g", 1, "evict"),
    ]
    with chaos.plan(plan) as broker:
        broker.preload("t", [b"a"])
        broker.create_topic("out")
        servers = {"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 5, "log_level": 0}
        producer = confluent_kafka.Producer({**servers, "enable.idempotence": True})
        producer.produce("out", b"a")
        assert producer.flush(100) == 0
        settings = {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = confluent_kafka.Consumer({**servers, **settings, "heartbeat.interval.ms": 100})
        consumer.subscribe(["t"])
        read = []

        def committed() -> bool:
            message = consumer.poll(0.1)
            if message is None or message.error():
                return False
            read.append(message.value())
            try:
                consumer.commit(message, asynchronous=False)
            except confluent_kafka.KafkaException:
                return False
            return True

        wait_until(committed, 100)
        consumer.close()
        assert (broker.values("out"), read, broker.faults) == ([b"a"], [b"a", b"a"], plan)


def fetch(broker: chaos, times: int = 1) -> socket.socket:
    """A client that asks for the first record of a topic, in octets."""
    client = socket.create_connection(broker.bootstrap_servers.split(":"), timeout=100)
    topic = struct.pack(">ih1sii", 1, 1, b"t", 1, 0) + struct.pack(">qi", 0, 1_000_000)
    body = struct.pack(">iiiib", -1, 1000, 1, 1_000_000, 0) + topic
    for correlation in range(times):
        frame = struct.pack(">hhih3s", 1, 4, correlation, 3, b"raw") + body
        client.sendall(struct.pack(">i", len(frame)) + frame)
    return client


def received(client: socket.socket) -> bytes:
    octets = b""
    while True:
        try:
            some = client.recv(65536)
        except ConnectionError:
            return octets
        if not some:
            return octets
        octets += some


@pytest.mark.parametrize("kind", ["lost_answer", "lost_request", "refused", "restart"])
def test_a_lost_answer_is_the_end_of_the_connection(kind):
    with chaos.plan([Fault("fetch t-0", 1, kind)]) as broker:
        broker.preload("t", [b"a" * 1000])
        with fetch(broker) as client:
            assert received(client) == b""
        assert [(call.client, call.told) for call in broker.history] == [("raw", "nothing")]


def test_a_cut_answer_ends_in_the_middle_of_its_frame():
    with chaos.plan([Fault("fetch t-0", 1, "cut_answer")]) as broker:
        broker.preload("t", [b"a" * 1000])
        with fetch(broker) as client:
            octets = received(client)
        assert 4 < len(octets) < int.from_bytes(octets[:4], "big")


def test_a_slow_answer_is_whole():
    with chaos.plan([Fault("fetch t-0", 1, "slow_answer")]) as broker:
        broker.preload("t", [b"a" * 1000])
        with fetch(broker) as client:
            octets = b""
            while len(octets) < 4 or len(octets) < 4 + int.from_bytes(octets[:4], "big"):
                some = client.recv(65536)
                assert some
                octets += some
        assert b"a" * 1000 in octets


def test_a_half_open_connection_takes_requests_and_answers_none():
    with chaos.plan([Fault("fetch t-0", 1, "half_open")]) as broker:
        broker.preload("t", [b"a" * 1000])
        with fetch(broker, times=3) as client:
            wait_until(lambda: len(broker.history) == 3)
            client.settimeout(0.05)
            with pytest.raises(TimeoutError):
                client.recv(1)


def test_after_a_refusal_the_next_connections_are_closed_and_then_no_more():
    with chaos.plan([Fault("fetch t-0", 1, "refused")]) as broker:
        broker.preload("t", [b"a" * 1000])
        answers = []
        for _ in range(4):
            with fetch(broker) as client:
                client.settimeout(100)
                try:
                    answers.append(len(client.recv(4)))
                except ConnectionError:
                    answers.append(0)
        assert answers == [0, 0, 0, 4]


def test_a_restart_ends_all_connections():
    with chaos.plan([Fault("fetch t-0", 2, "restart")]) as broker:
        broker.preload("t", [b"a" * 1000])
        with fetch(broker) as bystander:
            wait_until(lambda: broker.history)
            with fetch(broker) as client:
                assert received(client) == b""
            assert b"a" * 1000 in received(bystander)  # its answer, and the end


def test_closed_connections_are_forgotten():
    with chaos(1, rate=1.0) as broker:
        broker.preload("t", [b"a"])
        for _ in range(20):
            with fetch(broker) as client:
                client.settimeout(0.01)
                try:
                    client.recv(4)
                except OSError:
                    continue
        wait_until(lambda: not broker._chaos.links)


def test_with_tls_the_connection_ends_before_the_answer(tmp_path):
    trustme = pytest.importorskip("trustme")
    from dafka.security import ServerTls

    authority = trustme.CA()
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
        str(tmp_path / "server")
    )
    authority.cert_pem.write_to_path(str(tmp_path / "ca"))
    tls = ServerTls(certfile=str(tmp_path / "server"), keyfile=str(tmp_path / "server"))
    plan = [
        Fault("produce t-0", call, kind)
        for call, kind in enumerate(("cut_answer", "half_open", "lost_answer", "slow_answer"), 1)
    ]
    with chaos.plan(plan, listen="SSL://127.0.0.1:0", tls=tls) as broker:
        broker.create_topic("t")
        producer = KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            security_protocol="SSL",
            ssl_cafile=str(tmp_path / "ca"),
            retry_backoff_ms=5,
            reconnect_backoff_ms=5,
        )
        producer.send("t", b"a").get(100)
        producer.close()
        assert (broker.values("t"), broker.faults) == ([b"a"], plan)
        wait_until(lambda: not broker._chaos.links)


def test_a_consumer_is_named_by_its_client_id():
    with chaos.plan([]) as broker:
        broker.preload("t", [b"a"])
        consumer = KafkaConsumer(
            "t",
            bootstrap_servers=broker.bootstrap_servers,
            client_id="mine",
            group_id=None,
            auto_offset_reset="earliest",
        )
        assert next(consumer).value == b"a"
        consumer.close()
        assert {call.client for call in broker.history} == {"mine"}
