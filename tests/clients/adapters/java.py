"""The Java client of Apache Kafka, in a small program that is compiled once a run."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from clients.adapters.client import LARGEST, SECONDS, Member, Transaction, TransactionalClient
from clients.records import Record, from_line, to_line

from scripts.apache import jars, node

PROGRAM = Path(__file__).parent / "Client.java"
FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class Java(TransactionalClient):
    name = "java"

    def missing(self) -> str | None:
        return _program()[1]

    def produce(
        self,
        servers: str,
        topic: str,
        records: Sequence[Record],
        *,
        acks: str = "all",
        compression: str = "none",
        idempotent: bool = False,
    ) -> None:
        settings = {
            "bootstrap.servers": servers,
            "acks": acks,
            "compression.type": compression,
            "enable.idempotence": str(idempotent).lower(),
            "max.request.size": str(LARGEST),
            "linger.ms": "5",
        }
        self._run(["produce", topic, *_pairs(settings)], "\n".join(map(to_line, records)))

    def consume(self, servers: str, topic: str, partitions: int, *, committed: bool = False) -> list[Record]:
        settings = {
            "bootstrap.servers": servers,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.auto.commit": "false",
        }
        lines = self._run(["consume", topic, str(partitions), *_pairs(settings)], "").splitlines()
        return [from_line(line) for line in lines]

    def transact(
        self, servers: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]
    ) -> None:
        settings = {"bootstrap.servers": servers, "transactional.id": transactional_id}
        lines = []
        for records, commit in transactions:
            lines += [*map(to_line, records), "commit" if commit else "abort"]
        self._run(["transact", topic, *_pairs(settings)], "\n".join(lines))

    def member(self, servers: str, group: str, topic: str) -> Member:
        settings = {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": "100",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "200",
            "metadata.max.age.ms": "1000",
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor",
        }
        return Member(self.name, *_command(), "member", topic, *_pairs(settings))

    def _run(self, arguments: Sequence[str], lines: str) -> str:
        answer = subprocess.run(
            [*_command(), *arguments], input=lines, capture_output=True, text=True, timeout=2 * SECONDS
        )
        if answer.returncode:
            raise RuntimeError(f"the Java client failed: {answer.stderr[-3000:]}")
        return answer.stdout


def tool(name: str, *arguments: str, lines: str = "") -> str:
    """What one of Kafka's console tools prints, a class of org.apache.kafka.tools.

    Raises RuntimeError if it fails.
    """
    command = [node.java(), *FLAGS, "-cp", jars.classpath(), f"org.apache.kafka.tools.{name}", *arguments]
    answer = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=2 * SECONDS)
    if answer.returncode:
        raise RuntimeError(f"{name} failed: {answer.stdout[-1500:]}{answer.stderr[-1500:]}")
    return answer.stdout


def tools_missing() -> str | None:
    """Why Kafka's console tools cannot be used here."""
    try:
        node.java()
        jars.classpath()
    except jars.UnavailableError as error:
        return str(error)
    return None


def _pairs(settings: dict[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in settings.items()]


def _command() -> list[str]:
    path, reason = _program()
    assert reason is None, reason
    return [node.java(), *FLAGS, "-cp", path, "Client"]


@functools.lru_cache(maxsize=1)
def _program() -> tuple[str, str | None]:
    """The class path to run it with, and why there is none."""
    reason = tools_missing()
    compiler = shutil.which("javac")
    if reason is None and compiler is None:
        reason = "there is no Java compiler here"
    if reason is not None or compiler is None:
        return "", reason
    folder = tempfile.mkdtemp(prefix="dafka-java-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    libraries = jars.classpath()
    subprocess.run([compiler, "-cp", libraries, "-d", folder, str(PROGRAM)], check=True, timeout=2 * SECONDS)
    return folder + os.pathsep + libraries, None
