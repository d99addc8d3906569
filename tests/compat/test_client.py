"""The common part of the three clients: finding the broker, following it, and giving it up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from kafka.errors import IllegalStateError, KafkaConnectionError, KafkaTimeoutError

from compat.kafka import _client
from compat.kafka._client import API_VERSION, Client, cut_off_in_child
from dafka import Broker
from dafka.log import Log


def config(servers: str, **more: Any) -> dict[str, Any]:
    known = {
        "bootstrap_servers": servers,
        "bootstrap_timeout_ms": 60_000,
        "request_timeout_ms": 60_000,
        "security_protocol": "PLAINTEXT",
        "api_version": None,
    }
    return {**known, **more}


def test_a_client_of_this_process_calls_the_broker_in_the_hub(broker: Broker) -> None:
    client = Client(config(broker.bootstrap_servers), eager=True)
    assert client.call(client.broker.metadata, ()).brokers[0][2] == int(
        broker.bootstrap_servers.split(":")[1]
    )
    assert client.connected()


def test_the_version_is_that_of_the_broker_unless_the_program_gives_one(broker: Broker) -> None:
    given, found = config(broker.bootstrap_servers, api_version=(2, 6)), config(broker.bootstrap_servers)
    for one in (given, found):
        Client(one, eager=True)
    assert (given["api_version"], found["api_version"]) == ((2, 6), API_VERSION)


def test_no_broker_within_the_bootstrap_timeout_is_a_timeout() -> None:
    with pytest.raises(KafkaTimeoutError, match=r"127\.0\.0\.1:1"):
        Client(config("127.0.0.1:1", bootstrap_timeout_ms=100), eager=True)


def test_a_client_that_is_not_eager_meets_a_broker_that_starts_later(tmp_path: Path) -> None:
    broker = Broker(tmp_path).start()
    servers = broker.bootstrap_servers
    broker.stop()  # it comes back under the same port
    client = Client(config(servers), eager=False)
    assert not client.connected()
    with broker.start():
        assert client.connected()


def test_a_broker_that_was_started_again_is_followed(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        client = Client(config(broker.bootstrap_servers), eager=True)
        first = client.broker
        broker.stop()
        broker.start()
        assert client.broker is not first
        assert client.connected()


def test_a_folder_that_is_in_use_is_an_error_of_kafka(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAFKA_EMBEDDED", str(tmp_path))
    with (
        Log(tmp_path),
        pytest.raises(KafkaConnectionError, match="no broker on the folder of DAFKA_EMBEDDED"),
    ):
        Client(config("kafka:9092"), eager=True)


def test_a_closed_client_is_not_connected_and_says_that_it_is_closed(broker: Broker) -> None:
    client = Client(config(broker.bootstrap_servers), eager=True)
    client.close()
    assert not client.connected()
    error = client.closed_error("the producer is closed")
    assert isinstance(error, IllegalStateError)
    assert "the producer is closed" in str(error)


def test_in_a_forked_child_every_client_is_cut_off() -> None:
    class Cut:
        times = 0

        def _cut_off(self) -> None:
            self.times += 1

    client = Cut()
    cut_off_in_child(client)
    child = os.fork()
    if not child:
        os._exit(client.times)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert client.times == 0
    _client._forkables.discard(client)
