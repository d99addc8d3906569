"""Clients that are told an ``api_version``: they connect when they have to, and old versions are old."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import kafka
import pytest
from ports import free_port
from timing import takes_less

import compat.kafka
from compat.kafka import KafkaConsumer, KafkaProducer
from compat.kafka.errors import KafkaConfigurationError, KafkaTimeoutError, UnrecognizedBrokerVersion
from dafka import Broker
from dafka.broker import running as registry

NEW = (2, 6)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens, and nobody else will."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture(params=[kafka, compat.kafka], ids=["kafka-python", "compat.kafka"])
def module(request: pytest.FixtureRequest) -> Any:
    """What is said here is true of both."""
    return request.param


def outcome(make: Any, **config: Any) -> Any:
    """The configuration that a client ends up with, or the class of what it raises."""
    try:
        client = make(**config)
    except Exception as error:
        return type(error)
    try:
        known = client.config
        return {key: known[key] for key in ("api_version", "enable_idempotence", "acks") if key in known}
    finally:
        client.close(**({"timeout": 0} if hasattr(client, "send") else {}))


@pytest.mark.parametrize(
    "config",
    [
        {"api_version": version, **more}
        for version in [(0, 8, 1), (0, 9), (0, 10), (0, 10, 2), (0, 11), (1, 0), NEW, (4, 0), "0.9", "2.6"]
        for more in (
            {},
            {"enable_idempotence": True},
            {"enable_idempotence": False},
            {"transactional_id": "billing"},
            {"acks": 1},
            {"enable_idempotence": True, "acks": 1},
            {"compression_type": "lz4"},
            {"compression_type": "zstd", "enable_idempotence": False},
        )
    ],
    ids=str,
)
def test_a_producer_of_that_version_is_configured_or_refused_as_kafka_pythons(
    nobody: str, config: dict[str, Any]
) -> None:
    expected = outcome(kafka.KafkaProducer, bootstrap_servers=nobody, **config)
    assert outcome(KafkaProducer, bootstrap_servers=nobody, **config) == expected


@pytest.mark.parametrize("version", [(0, 9), (0, 10), (0, 11), NEW, (4, 0)], ids=str)
def test_a_consumer_of_that_version_is_configured_as_kafka_pythons(nobody: str, version: Any) -> None:
    config = {"bootstrap_servers": nobody, "group_id": "g", "api_version": version}
    expected = outcome(kafka.KafkaConsumer, **config)
    assert outcome(KafkaConsumer, **config) == expected


@pytest.mark.parametrize("name", ["KafkaProducer", "KafkaConsumer"])
def test_a_client_that_is_told_the_version_does_not_wait_for_its_broker(
    module: ModuleType, nobody: str, name: str
) -> None:
    client = None

    def make() -> None:
        nonlocal client
        if client is not None:
            client.close()
        client = getattr(module, name)(bootstrap_servers=nobody, api_version=NEW)

    assert takes_less(3, make)
    assert client is not None
    client.close()
    with pytest.raises(KafkaTimeoutError, match="Unable to bootstrap"):
        getattr(module, name)(bootstrap_servers=nobody, bootstrap_timeout_ms=200)


def test_an_admin_client_waits_for_the_broker_in_any_case(module: ModuleType, nobody: str) -> None:
    with pytest.raises(KafkaTimeoutError, match="Unable to bootstrap"):
        module.KafkaAdminClient(bootstrap_servers=nobody, bootstrap_timeout_ms=200, api_version=NEW)


def test_a_version_that_is_older_than_all_is_refused(module: ModuleType, nobody: str) -> None:
    for name in ("KafkaProducer", "KafkaConsumer"):
        with pytest.raises(UnrecognizedBrokerVersion):
            getattr(module, name)(bootstrap_servers=nobody, api_version=(0, 7))


def test_sending_and_polling_wait_as_long_as_they_may(module: ModuleType, nobody: str) -> None:
    producer = module.KafkaProducer(bootstrap_servers=nobody, api_version=NEW, max_block_ms=600)
    with pytest.raises(KafkaTimeoutError, match=r"Failed to update metadata after 0\.6 secs"):
        producer.send("orders", b"one")
    producer.close(timeout=1)
    consumer = module.KafkaConsumer("orders", bootstrap_servers=nobody, api_version=NEW, group_id="g")
    assert consumer.poll(timeout_ms=300) == {}
    consumer.close()


def test_a_broker_that_starts_later_is_found(module: ModuleType, tmp_path: Any) -> None:
    address = f"127.0.0.1:{free_port()}"
    producer = module.KafkaProducer(bootstrap_servers=address, api_version=NEW)
    consumer = module.KafkaConsumer(
        "orders", bootstrap_servers=address, api_version=NEW, group_id="billing", auto_offset_reset="earliest"
    )
    sent: list[Any] = []
    sending = threading.Thread(target=lambda: sent.append(producer.send("orders", b"one").get(100)))
    sending.start()
    assert consumer.poll(timeout_ms=300) == {}
    with Broker(tmp_path, listen=address):
        sending.join(100)
        assert sent[0].offset == 0
        assert next(consumer).value == b"one"
        consumer.close()
        producer.close()


def test_a_broker_of_this_process_that_does_not_listen_is_found_when_it_starts_again(tmp_path: Any) -> None:
    broker = Broker(tmp_path).start()
    address = broker.bootstrap_servers
    broker.stop()
    producer = KafkaProducer(bootstrap_servers=address, api_version=NEW)
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=address, api_version=NEW, group_id="g", auto_offset_reset="earliest"
    )
    assert consumer.poll(timeout_ms=100) == {}
    with broker:
        assert broker.bootstrap_servers == address
        assert producer.send("orders", b"one").get(100).offset == 0
        assert next(consumer).value == b"one"
        consumer.close()
        producer.close()


def test_a_broker_of_this_process_is_used_directly(tmp_path: Any) -> None:
    with (
        Broker(tmp_path) as broker,
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers, api_version=NEW) as producer,
    ):
        assert producer.send("orders", b"one").get(100).offset == 0
        assert producer._client.broker in registry._brokers


def test_a_broker_that_cannot_be_reached_is_logged_once_however_long_it_is_looked_for(
    nobody: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(KafkaTimeoutError):
        KafkaProducer(bootstrap_servers=nobody, bootstrap_timeout_ms=2000)
    lines = [record for record in caplog.records if "cannot be reached" in record.getMessage()]
    assert len(lines) == 1


def test_it_is_logged_again_after_a_while(
    nobody: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dafka.broker.remote.limits.TROUBLE_LOGGED", 0.2)

    def lines() -> int:
        caplog.clear()
        with caplog.at_level(logging.WARNING), pytest.raises(KafkaTimeoutError):
            KafkaProducer(bootstrap_servers=nobody, bootstrap_timeout_ms=1500)
        return len([one for one in caplog.records if "cannot be reached" in one.getMessage()])

    assert any(2 <= lines() <= 7 for _ in range(6))  # a machine that stands still tries less often


def test_times_in_errors_are_for_people(tmp_path: Any) -> None:
    from dafka.testing import TestBroker

    with TestBroker(tmp_path) as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, max_block_ms=1234)
        consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, request_timeout_ms=1500)
        with broker.hang():
            said = r"1\.2 secs: The broker did not answer Metadata within 1\.2 s$"
            with pytest.raises(KafkaTimeoutError, match=said):
                producer.send("orders", b"one")
            with pytest.raises(KafkaTimeoutError, match=r"The broker did not answer Metadata within 1\.5 s$"):
                consumer.topics()
        consumer.close()
        producer.close()


def test_settings_that_need_a_newer_broker_name_the_version(nobody: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=r"brokers of 0\.11, not api_version=\(0, 10, 0\)"):
        KafkaProducer(bootstrap_servers=nobody, api_version=(0, 10), transactional_id="billing")
    with pytest.raises(ValueError, match=r"zstd requires brokers of \(2, 1\), not api_version=\(2, 0\)"):
        KafkaProducer(bootstrap_servers=nobody, api_version=(2, 0), compression_type="zstd")
