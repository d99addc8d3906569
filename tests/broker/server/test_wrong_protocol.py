"""Clients of other protocols at Kafka's port are named in the log."""

from __future__ import annotations

import http.client
import logging
import socket
import ssl

import confluent_kafka
import pytest
import zmq
from broker.server.client import alive, discarded
from contexts import new_context
from timing import until

from dafka import Broker
from dafka.broker.server.limits import REQUEST_MAX_BYTES
from dafka.broker.server.wrong_protocol import wrong_protocol

SECONDS = 100.0


@pytest.fixture
def address(broker: Broker) -> tuple[str, int]:
    host, port = broker.bootstrap_servers.rsplit(":", 1)
    return host, int(port)


def test_a_tls_client_is_named(broker: Broker, address: tuple[str, int], caplog: pytest.LogCaptureFixture):
    context = ssl.create_default_context()
    with (
        caplog.at_level(logging.WARNING, "dafka.broker.server"),
        socket.create_connection(address, SECONDS) as plain,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(plain, server_hostname="localhost")
    until(lambda: discarded(broker) == {"tls": 1})
    (line,) = [text for text in caplog.messages if "closed" in text and "ZeroMQ" not in text]
    assert "a TLS handshake, and this port has no TLS" in line
    assert "security_protocol" in line


def test_librdkafka_with_ssl_is_named_too(broker: Broker):
    settings = {"bootstrap.servers": broker.bootstrap_servers, "security.protocol": "ssl"}
    producer = confluent_kafka.Producer({**settings, "log_level": 0})
    producer.poll(0)
    until(lambda: discarded(broker).get("tls", 0) >= 1)


def test_an_http_client_is_named(broker: Broker, address: tuple[str, int]):
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        connection = http.client.HTTPConnection(*address, timeout=SECONDS)
        connection.request("GET", "/")
        connection.getresponse()
    until(lambda: discarded(broker) == {"http": 1})


def test_requests_of_an_accepted_length_are_not_taken_for_another_protocol():
    for size in [*range(0, REQUEST_MAX_BYTES, 9973), REQUEST_MAX_BYTES]:
        assert wrong_protocol(size.to_bytes(4, "big")) is None
    assert wrong_protocol(b"\x16\x04\0\0") is None
    assert wrong_protocol(b"\xff\xff\xff\xff") is None


def test_a_zeromq_node_is_named_in_the_log(broker: Broker, caplog: pytest.LogCaptureFixture):
    with new_context() as context, context.socket(zmq.SUB) as node:
        node.linger = 0
        with caplog.at_level(logging.WARNING, "dafka.broker.server"):
            node.connect(f"tcp://{broker.bootstrap_servers}")
            until(lambda: broker.discarded.get("zeromq", 0) >= 1)
    assert broker.discarded.keys() == {"zeromq"}
    assert "a ZeroMQ greeting; this port is for Kafka's protocol" in caplog.text
    assert alive(broker)
