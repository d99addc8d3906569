"""The brokers that clients are tested against, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import forking
import pytest

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120.0
STOP_SECONDS = 300.0
UNAVAILABLE = 77

DAFKA = "dafka"
APACHE = "apache-kafka"

# So that one core starts it, and groups wait no longer than kafka-python needs to learn of its partitions.
APACHE_SETTINGS = {
    "group.initial.rebalance.delay.ms": "300",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "log.retention.check.interval.ms": "1000000",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.min.heartbeat.interval.ms": "100",
}
NO_SETTINGS: Mapping[str, str] = {}


class Server:
    """A running broker; its process ends at the end of its input. Its errors are in ``errors``."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        self.errors: list[str] = []
        self.process = forking.Popen(
            command,
            env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._collect, daemon=True).start()
        assert self.process.stdout is not None
        self.bootstrap_servers = self.process.stdout.readline().strip()
        if not self.bootstrap_servers:
            status = self.process.wait(START_SECONDS)
            reason = "".join(self.errors) or f"{name} ended with status {status}"
            if status == UNAVAILABLE:
                pytest.skip(reason)
            pytest.fail(reason)

    def stop(self) -> None:
        self.process.communicate(timeout=STOP_SECONDS)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(STOP_SECONDS)

    def _collect(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(iter(self.process.stderr.readline, ""))


@contextmanager
def running(name: str, settings: Mapping[str, str] = NO_SETTINGS) -> Iterator[Server]:
    """A broker of that name, with these settings of groups; skips the test where it cannot be had."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(name, _dafka(folder, settings) if name == DAFKA else _apache(settings))
        try:
            yield server
        finally:
            server.stop()


def _dafka(folder: str, settings: Mapping[str, str]) -> list[str]:
    set_here = [f"{key}={value}" for key, value in settings.items()]
    return [sys.executable, str(Path(__file__).parent / "broker.py"), folder, *set_here]


def _apache(settings: Mapping[str, str]) -> list[str]:
    set_there = [f"--set={key}={value}" for key, value in {**APACHE_SETTINGS, **settings}.items()]
    return [str(ROOT / "scripts" / "apache_kafka"), "run", *set_there]
