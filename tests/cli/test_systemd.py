"""What a service manager is told, on a real socket."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.tools import LOOPBACK, running
from timing import SECONDS

from dafka.cli import systemd


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """What listens at NOTIFY_SOCKET, whose path has 107 octets at most: a test's folder may have more."""
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening,
    ):
        path = os.path.join(folder, "notify")
        listening.bind(path)
        listening.settimeout(SECONDS)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        yield listening


def test_a_broker_says_that_it_is_ready_alive_and_stopping(tmp_path: Path, manager: socket.socket) -> None:
    variables = {"NOTIFY_SOCKET": os.environ["NOTIFY_SOCKET"], "WATCHDOG_USEC": "300000"}
    with running("broker", *LOOPBACK, "--data", str(tmp_path / "data"), **variables) as process:
        ready, *status = manager.recv(1000).decode().splitlines()
        assert ready == "READY=1" and status[0].startswith("STATUS=serving 127.0.0.")
        assert manager.recv(1000) == b"WATCHDOG=1"
        process.send_signal(signal.SIGTERM)
        told = manager.recv(1000)
        while told == b"WATCHDOG=1":
            told = manager.recv(1000)
        assert told == b"STOPPING=1"
        assert process.wait(SECONDS) == 0


def test_a_name_of_the_abstract_namespace_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"dafka-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0" + name)
        listening.settimeout(SECONDS)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + name)
        systemd.notify("READY=1", "STATUS=here")
        assert listening.recv(100) == b"READY=1\nSTATUS=here"


@pytest.mark.parametrize("address", ["", "nothing", "/nothing/there", "@nobody listens"])
def test_notifications_nobody_listens_to_are_dropped(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    systemd.notify(systemd.READY)


@pytest.mark.parametrize(
    ("micros", "pid", "seconds"),
    [("3000000", "", 3.0), ("3000000", "own", 3.0), ("3000000", "1", None), ("x", "", None), ("0", "", None)],
)
def test_the_interval_of_a_watchdog(
    monkeypatch: pytest.MonkeyPatch, micros: str, pid: str, seconds: float | None
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", micros)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "own" else pid)
    assert systemd.watchdog_seconds() == seconds


def test_a_process_that_hangs_does_not_say_that_it_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "3000000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    told: list[str] = []
    monkeypatch.setattr(systemd, "notify", lambda *lines: told.extend(lines))
    now, alive = [0.0], [True]
    watchdog = systemd.Watchdog(lambda: alive[0], lambda: now[0])
    for now[0] in (0.0, 0.5, 1.0, 1.5, 2.0):
        watchdog.step()
    assert told == ["WATCHDOG=1"] * 3
    alive[0], now[0] = False, 3.0
    watchdog.step()
    assert len(told) == 3
