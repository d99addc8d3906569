"""The two brokers that are compared, each in a process of its own and with its own defaults.

A start is measured with one client, which is loaded before and connects when the broker has said that it
listens. So neither broker's figure holds a pause of a client that came too early.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from compileall import compile_dir
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import confluent_kafka.admin  # noqa: F401  (not within the time of the broker that is started first)
import psutil
from kafka_clients import first_record

import dafka as package

sys.path.append(str(Path(__file__).resolve().parents[1]))

from apache.node import Node

APACHE_HEAP = "1g"  # as in Kafka's own start script
STOP_SECONDS = 60


class Server(NamedTuple):
    """A running broker. ``first_record``: seconds from its start until a record was written and read."""

    servers: str
    pid: int
    first_record: float

    def resident_memory(self) -> float:
        """Bytes."""
        return float(psutil.Process(self.pid).memory_info().rss)


@contextmanager
def dafka() -> Iterator[Server]:
    """This broker, as ``dafka broker``; its modules are compiled before, as ``pip install`` leaves them."""
    compile_dir(Path(package.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).parent / "dafka"), "broker", "--listen", "127.0.0.1:0"]
        began = perf_counter()
        process = subprocess.Popen(
            [*command, "--data", os.path.join(folder, "data")],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            if not line.startswith("broker: "):
                raise RuntimeError(f"dafka broker did not start: {line}{process.stderr.read()}")
            servers = line.split()[1]
            first_record(servers=servers)
            yield Server(servers, process.pid, perf_counter() - began)
        finally:
            process.terminate()
            process.communicate(timeout=STOP_SECONDS)


@contextmanager
def apache_kafka() -> Iterator[Server]:
    """Apache Kafka; its storage is formatted before the time begins."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        node = Node(Path(folder), heap=APACHE_HEAP)
        began = perf_counter()
        with node:
            first_record(servers=node.bootstrap_servers)
            yield Server(node.bootstrap_servers, node.pid, perf_counter() - began)


SERVERS = {"this broker": dafka, "Apache Kafka": apache_kafka}
