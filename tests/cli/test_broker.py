"""dafka broker: a daemon that Kafka's clients connect to."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest
from cli.tools import LOOPBACK, address_of, mesh, produce, refused, run, running
from click.testing import CliRunner
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import ConfigResource, ConfigResourceType

from dafka import Tower
from dafka.cli import main


def values(address: str, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        topic, bootstrap_servers=address, auto_offset_reset="earliest", consumer_timeout_ms=100_000
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
        assert daemon.wait(200) == 0
        assert daemon.stderr is not None
        assert daemon.stderr.read() == ""
    with running("broker", *LOOPBACK, "--data", data) as daemon:
        assert values(address_of(daemon), "topic", 2) == [b"one", b"two"]


def test_records_that_were_acknowledged_outlive_its_being_killed(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with running("broker", *LOOPBACK, "--data", data) as daemon:
        produce(address_of(daemon), "topic", b"one")
        daemon.kill()
        daemon.wait(200)
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
        (["--group-settings", "group.share.session.timeout.ms"], "is not NAME=VALUE"),
        (["--group-settings", "group.share.max.session.timeout.ms=9"], "must be greater than or equal to"),
    ],
)
def test_options_that_make_no_sense_are_named(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = refused("broker", "--data", str(tmp_path / "data"), *arguments)
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
    group_settings = "group.share.session.timeout.ms=50000, group.consumer.migration.policy=upgrade"
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
            resource = ConfigResource(ConfigResourceType.BROKER, "0", configs=None)
            settings = admin.describe_configs([resource], config_filter="all")["broker"]["0"]
            assert settings["group.share.session.timeout.ms"]["value"] == "50000"
            assert settings["group.consumer.migration.policy"]["value"] == "upgrade"
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


@pytest.mark.parametrize("option", ["--retention-ms", "--retention-bytes"])
def test_a_bound_of_retention_is_refused_with_its_range(option: str) -> None:
    done = CliRunner().invoke(main, ["broker", option, str(2**63)])
    assert done.exit_code == 2
    assert f"{2**63} is not in the range -1<=x<={2**63 - 1}" in done.output
