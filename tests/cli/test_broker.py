"""dafka broker: a daemon that Kafka's clients connect to."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from cli.tools import mesh, run, running
from click.testing import CliRunner
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from dafka import Tower
from dafka.cli import main

LOOPBACK = ["--listen", "127.0.0.1:0"]


def address_of(process: subprocess.Popen[str]) -> str:
    """The broker's address, from its first line."""
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.match(r"broker: (\S+) in ", line)
    assert found, line + process.stderr.read()
    return found[1]


def produce(address: str, topic: str, *values: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=address)
    try:
        for future in [producer.send(topic, value) for value in values]:
            future.get(20)
    finally:
        producer.close()


def values(address: str, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        topic, bootstrap_servers=address, auto_offset_reset="earliest", consumer_timeout_ms=20_000
    )
    try:
        return [next(consumer).value for _ in range(count)]
    finally:
        consumer.close()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_records_outlive_the_daemon(tmp_path: Path, ending: signal.Signals) -> None:
    data = str(tmp_path / "data")
    with running("broker", *LOOPBACK, "--data", data) as daemon:
        produce(address_of(daemon), "topic", b"one", b"two")
        daemon.send_signal(ending)
        assert daemon.wait(20) == 0
        assert daemon.stderr is not None
        assert daemon.stderr.read() == ""
    with running("broker", *LOOPBACK, "--data", data) as daemon:
        assert values(address_of(daemon), "topic", 2) == [b"one", b"two"]


def test_records_that_were_acknowledged_outlive_its_being_killed(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with running("broker", *LOOPBACK, "--data", data) as daemon:
        produce(address_of(daemon), "topic", b"one")
        daemon.kill()
        daemon.wait(20)
    with running("broker", *LOOPBACK, "--data", data) as daemon:
        assert values(address_of(daemon), "topic", 1) == [b"one"]


def test_a_port_that_somebody_has_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run("broker", "--listen", address, "--data", str(tmp_path / "data"))
    assert done.returncode == 1
    assert done.stderr == f"Error: [Errno 98] cannot listen on {address}: Address already in use\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--listen", "nonsense"], "listen is 'HOST:PORT'"),
        (["--listen", "127.0.0.1:99999"], "listen is 'HOST:PORT'"),
        (["--listen", "0.0.0.0:0"], "advertised"),
        (["--sub", "tcp://127.0.0.1:1"], "give both or none"),
        (["--data", ""], "a folder has a name"),
    ],
)
def test_options_that_make_no_sense_are_named(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = run("broker", "--data", str(tmp_path / "data"), *arguments)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_all_it_needs_comes_from_a_file(tmp_path: Path) -> None:
    config = tmp_path / "broker.zpl"
    config.write_text(
        f"""
broker
    listen = "0.0.0.0:0"
    advertised = 127.0.0.1
    db = "{tmp_path / "data"}"
    default_partitions = 3
    auto_create_topics = false
"""
    )
    with running("broker", "-c", str(config)) as daemon:
        address = address_of(daemon)
        assert address.startswith("127.0.0.1:")
        admin = KafkaAdminClient(bootstrap_servers=address)
        try:
            admin.create_topics({"topic": {}})
            (described,) = admin.describe_topics(["topic"])
            assert len(described["partitions"]) == 3
        finally:
            admin.close()
    assert (tmp_path / "data").is_dir()


def test_an_option_comes_from_the_environment(tmp_path: Path) -> None:
    more = {"DAFKA_BROKER_LISTEN": "127.0.0.1:0", "DAFKA_BROKER_DATA": str(tmp_path / "data")}
    with running("broker", **more) as daemon:
        address_of(daemon)
    assert (tmp_path / "data").is_dir()


def test_it_joins_a_mesh(tmp_path: Path) -> None:
    with Tower() as tower:
        addresses = ["--sub", tower.addresses[0], "--pub", tower.addresses[1]]
        with running("broker", *LOOPBACK, "--data", str(tmp_path / "data"), *addresses) as daemon:
            produce(address_of(daemon), "hello", b"from Kafka")
            with running("consume", "hello", "--from", "earliest", *mesh(tower)) as consumer:
                assert consumer.stdout is not None
                assert "from Kafka" in consumer.stdout.readline()


def test_it_serves_metrics(tmp_path: Path) -> None:
    with running("broker", *LOOPBACK, "--data", str(tmp_path / "data"), "--metrics-port", "0") as daemon:
        address = address_of(daemon)
        assert daemon.stderr is not None
        url = daemon.stderr.readline().split()[-1]
        produce(address, "topic", b"one")
        with urllib.request.urlopen(url, timeout=20) as page:
            text = page.read().decode()
    assert re.search(r"^dafka_broker_listener_requests_total [1-9]", text, re.M)
    assert re.search(r"^dafka_broker_partitions 1", text, re.M)


@pytest.mark.parametrize("daemon", ["broker", "store", "tower"])
def test_metrics_that_cannot_be_served_are_named_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, daemon: str
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, [daemon, "--metrics-port", "0"])
    assert done.exit_code == 1
    assert (
        done.output == "Error: metrics for Prometheus need prometheus_client: pip install 'dafka[metrics]'\n"
    )
    assert list(tmp_path.iterdir()) == []
