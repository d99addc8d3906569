"""A broker on a disk that is really full: it refuses by name, serves what it has, and goes on."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from pathlib import Path

import pytest
from cli.tools import DAFKA, LOOPBACK, address_of, run, running
from disks import fill, small_disk
from kafka import KafkaProducer
from kafka.errors import KafkaStorageError
from timing import SECONDS

from dafka import Broker

REFUSED = "KafkaStorageError"


def kafka(address: str, *command: str, stdin: str = "") -> tuple[int, str, str]:
    done = run("kafka", *command, "-b", address, stdin=stdin)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def test_records_fill_a_disk_and_deleting_some_makes_room(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 16) as disk,
        running("broker", *LOOPBACK, "--data", str(disk / "db"), "--metrics-port", "0") as broker,
    ):
        address = address_of(broker)
        assert broker.stderr is not None
        health = broker.stderr.readline().split()[-1].removesuffix("metrics") + "health"
        kafka(address, "topics", "create", "large", "small")
        producer = KafkaProducer(bootstrap_servers=address, retries=0, max_request_size=2**24)
        written = 0
        with pytest.raises(KafkaStorageError, match="No space left on device"):
            while written < 100:
                producer.send("large", os.urandom(500_000), partition=0).get(SECONDS)
                written += 1
        producer.close()
        with urllib.request.urlopen(health, timeout=SECONDS) as page:
            assert json.load(page)["ready"], "what is there is served"
        status, read, _ = kafka(address, "consume", "large", "--exit", "-f", "%o\n")
        assert status == 0 and len(read.splitlines()) == written
        status, _, said = kafka(address, "topics", "empty", "large")
        assert status == 0, said
        assert kafka(address, "produce", "large", stdin="again\n")[0] == 0
        assert kafka(address, "consume", "large", "--exit")[1] == "again\n"


def test_a_disk_that_something_else_fills_stops_only_what_needs_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 16) as disk:
        with running("broker", *LOOPBACK, "--data", str(disk / "db")) as broker:
            address = address_of(broker)
            assert kafka(address, "produce", "orders", stdin="one\ntwo\n")[0] == 0
            filling = fill(disk)
            status, _, said = kafka(address, "produce", "orders", "--timeout", "2", stdin="three\n")
            assert status == 1 and REFUSED in said and "No space left" in said and "Free disk space" in said
            assert kafka(address, "consume", "orders", "--exit") == (0, "one\ntwo\n", "")
            assert (
                kafka(address, "groups", "list")[0] == kafka(address, "topics", "describe", "orders")[0] == 0
            )
            refused = run("broker", *LOOPBACK, "--data", str(disk / "another"))
            assert refused.returncode == 1 and "free some space" in refused.stderr
            refused = run("backup", "create", str(disk / "db"), str(disk / "backups"))
            assert refused.returncode == 1 and "No space left" in refused.stderr
            filling.unlink()
            assert kafka(address, "produce", "orders", stdin="three\n")[0] == 0
            assert kafka(address, "consume", "orders", "--exit")[1] == "one\ntwo\nthree\n"
        verified = run("log", "verify", str(disk / "db"))
        assert verified.returncode == 0 and "no damage" in verified.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("buffered", [True, False], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "words", ["--help", "--version", "kafka --help", "completion bash", "log verify {folder}"]
)
def test_output_to_a_file_on_a_full_disk_ends_with_a_line(tmp_path: Path, words: str, buffered: bool) -> None:
    """Buffered output is written at the end, where Python would say so in words of its own."""
    with Broker(tmp_path / "db"):
        pass
    command = [*DAFKA, *words.format(folder=tmp_path / "db").split()]
    others = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    more = {} if buffered else {"PYTHONUNBUFFERED": "1"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=SECONDS, env=others | more
        )
    assert done.returncode == 1 and done.stderr == "Error: [Errno 28] No space left on device\n"
