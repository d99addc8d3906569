"""``dafka console`` and ``dafka broker --console``."""

from __future__ import annotations

import re
import subprocess

import pytest
from cli.tools import refused, running
from console.asking import Client

from dafka.testing import TestBroker

pytest.importorskip("flask", reason="the extra console is not installed")


def console_of(program: subprocess.Popen[str]) -> Client:
    assert program.stderr is not None
    for line in program.stderr:
        if found := re.match(r"console: (http://\S+)", line):
            return Client(found[1])
    raise AssertionError("the program has ended")


def test_a_cluster_is_shown() -> None:
    with TestBroker() as broker:
        broker.create_topic("orders", 3)
        with running(
            "console", "--bootstrap-servers", broker.bootstrap_servers, "--listen", "127.0.0.1:0"
        ) as program:
            client = console_of(program)
            assert client.get("/api/topics")["topics"][0]["partitions"] == 3
            assert not client.get("/api/cluster")["embedded"] and client.get("/api/session")["writes"]


def test_a_broker_shows_itself(tmp_path) -> None:
    data = str(tmp_path / "data")
    with running("broker", "--listen", "127.0.0.1:0", "--data", data, "--console", "127.0.0.1:0") as program:
        client = console_of(program)
        assert client.get("/api/cluster")["embedded"]
        assert client.ask("POST", "/api/topics", {"name": "orders"}).status == 200


def test_an_address_that_cannot_be_is_refused() -> None:
    assert "listen='8080' is not HOST:PORT" in refused("console", "--listen", "8080").stderr
