"""What a broker logs with ``-v``, as text and as JSON."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from cli.tools import LOOPBACK, address_of, produce, run, running
from confluent_kafka import Consumer
from timing import SECONDS, until


def test_each_line_of_a_brokers_log_is_a_json_object(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with running("broker", *LOOPBACK, "--data", data, "-v", "--log-format", "json") as process:
        assert process.stderr is not None
        lines: list[str] = []
        while not (lines and lines[-1].startswith("broker: ")):
            lines.append(process.stderr.readline())
        server = ["-b", lines[-1].split()[1]]
        for command in (
            ["topics", "create", "orders", "--partitions", "2", *server],
            ["topics", "alter", "orders", "--set", "retention.ms=5", *server],
        ):
            done = run("kafka", *command)
            assert done.returncode == 0, done.stderr
        consumer = Consumer({"bootstrap.servers": server[1], "group.id": "billing"})
        consumer.subscribe(["orders"])
        until(lambda: consumer.poll(0.05) or consumer.assignment(), "the group is not joined")
        consumer.close()
        produce(server[1], "orders", b"one")
        assert run("kafka", "topics", "delete", "orders", *server).returncode == 0
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=SECONDS)
        assert process.returncode == 0
    rows = [json.loads(line) for line in (*lines, *rest.splitlines()) if not line.startswith("broker: ")]
    assert all(row.keys() >= {"time", "level", "logger", "message"} for row in rows)
    said = [row["message"] for row in rows if row["level"] == "INFO"]
    for words in (
        "is started",
        "topic 'orders' is created: partitions 2",
        "settings of topic 'orders': retention.ms is 5",
        "classic group 'billing': Stable",
        "topic 'orders' is deleted",
        "stops: clients are disconnected",
    ):
        assert any(words in one for one in said), (words, said)


def test_without_verbose_a_broker_is_silent(tmp_path: Path) -> None:
    with running("broker", *LOOPBACK, "--data", str(tmp_path / "data")) as process:
        produce(address_of(process), "orders", b"one")
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=SECONDS)[1] == ""
