"""``--metrics-port`` of the daemons."""

from __future__ import annotations

import re
import sys
import urllib.request
from pathlib import Path

import pytest
from cli.tools import LOOPBACK, address_of, mesh, produce, running
from click.testing import CliRunner

from dafka import Tower
from dafka.cli import main
from dafka.cli.metrics import Metrics


def test_a_broker_serves_its_metrics(tmp_path: Path) -> None:
    with running("broker", *LOOPBACK, "--data", str(tmp_path / "data"), "--metrics-port", "0") as daemon:
        address = address_of(daemon)
        assert daemon.stderr is not None
        url = daemon.stderr.readline().split()[-1]
        produce(address, "topic", b"one")
        with urllib.request.urlopen(url, timeout=200) as page:
            text = page.read().decode()
    assert re.search(r"^dafka_broker_listener_requests_total [1-9]", text, re.M)
    assert re.search(r"^dafka_broker_partitions 1", text, re.M)
    assert re.search(r"^dafka_broker_mesh_lag 0", text, re.M)
    assert re.search(r'^kafka_log_log_logendoffset{partition="0",topic="topic"} 1', text, re.M)


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


@pytest.mark.parametrize("daemon", ["tower", "store"])
def test_a_node_serves_its_metrics(tmp_path: Path, daemon: str) -> None:
    with Tower() as other:
        loopback = "tcp://127.0.0.1:*"
        arguments = {
            "tower": ["--sub", loopback, "--pub", loopback],
            "store": [str(tmp_path / "data"), *mesh(other)],
        }
        with running(daemon, *arguments[daemon], "--metrics-port", "0") as process:
            assert process.stderr is not None
            assert process.stderr.readline().startswith(f"{daemon}: ")
            url = process.stderr.readline().split()[-1]
            with urllib.request.urlopen(url, timeout=200) as page:
                assert re.search(rf"^dafka_{daemon}_", page.read().decode(), re.M)


def test_without_a_port_nothing_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    def read() -> dict[str, int]:
        raise AssertionError("nobody may ask")

    with Metrics(None, "127.0.0.1").of("tower", read):
        assert capsys.readouterr().err == ""
