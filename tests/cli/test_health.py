"""``/health`` on the port of the metrics, and what it is made of."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from cli.tools import LOOPBACK, address_of, running

import dafka
from dafka import Broker
from dafka.broker.broker import Broker as BrokerClass
from dafka.cli.health import Health, health_of, hub_turns
from dafka.hub.hub import get_hub
from dafka.mesh.prometheus import MetricsServer


def get(url: str) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(url, timeout=200) as page:
            return page.status, json.load(page)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_broker_says_that_it_is_ready_and_alive(tmp_path: Path) -> None:
    with running("broker", *LOOPBACK, "--data", str(tmp_path / "data"), "--metrics-port", "0") as process:
        address_of(process)
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1].removesuffix("/metrics")
        for path in ("/health", "/health/ready", "/health/live", "/health/"):
            status, told = get(url + path)
            assert (status, told["alive"], told["ready"], told["detail"]) == (200, True, True, "")
            assert told["version"] == dafka.__version__ and told["disk_free"] and told["longest_turn"]


def test_a_starting_broker_is_alive_and_not_ready() -> None:
    with MetricsServer(0) as server:
        url = f"http://127.0.0.1:{server.port}/health"
        assert get(url)[0] == 503 and get(url + "/live")[0] == 200
        with server.serving("broker", dict):
            assert get(url)[0] == 200
        assert get(url) == (503, {"alive": True, "ready": False, "detail": "it is starting, or stopping"})


def test_an_error_of_the_health_is_its_answer() -> None:
    def health() -> dict[str, object]:
        raise RuntimeError("broken")

    with MetricsServer(0) as server, server.serving("broker", dict, health):
        status, told = get(f"http://127.0.0.1:{server.port}/health")
        assert status == 503 and told["detail"] == "RuntimeError: broken"


def test_a_broker_that_can_write_nothing_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(tmp_path / "data") as broker:
        assert health_of(broker)["ready"] and not health_of(broker)["detail"]
        monkeypatch.setattr(BrokerClass, "write_failure", OSError("the log may not show what is on the disk"))
        told = health_of(broker)
        assert not told["ready"] and told["detail"] == "the log may not show what is on the disk"
    assert health_of(broker) == Health(alive=True, ready=False, detail="the broker is stopped")


def test_a_broker_on_a_full_disk_serves_and_says_what_is_amiss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(tmp_path / "data") as broker:
        monkeypatch.setattr("dafka.cli.health.RESERVE_BYTES", 2**62)
        told = health_of(broker)
        assert told["ready"] and told["detail"].startswith("records are refused: ")


def test_a_hub_that_does_not_turn_is_noticed() -> None:
    get_hub().post(time.sleep, 0.5)
    assert not hub_turns(0.05)
    assert hub_turns()
