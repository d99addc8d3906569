"""The Java client of Apache Kafka, in a small program that is compiled and started once a run."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from clients.adapters.client import LARGEST, SECONDS, Member, Transaction, TransactionalClient
from clients.records import Record, from_line, to_line

from scripts.apache import jars, node

PROGRAMS = [str(Path(__file__).parent / name) for name in ("Client.java", "Sharing.java")]
END = "end"  # of a command, and of its answer
FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class Java(TransactionalClient):
    """``settings`` are further ones of all its clients."""

    name = "java"

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self._settings = dict(settings or {})

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
            **self._settings,
        }
        _ask(["produce", topic, *_pairs(settings)], map(to_line, records))

    def consume(self, servers: str, topic: str, partitions: int, *, committed: bool = False) -> list[Record]:
        settings = {
            "bootstrap.servers": servers,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.auto.commit": "false",
            **self._settings,
        }
        lines = _ask(["consume", topic, str(partitions), *_pairs(settings)])
        return [from_line(line) for line in lines]

    def transact(
        self, servers: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]
    ) -> None:
        settings = {"bootstrap.servers": servers, "transactional.id": transactional_id, **self._settings}
        lines = []
        for records, commit in transactions:
            lines += [*map(to_line, records), "commit" if commit else "abort"]
        _ask(["transact", topic, *_pairs(settings)], lines)

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
            **self._settings,
        }
        return Member(self.name, *_command(), "member", topic, *_pairs(settings))


class _Process:
    """The program; it runs one command after the other, as starting Java takes longer than each of them."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            _command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        atexit.register(self.close)

    def ask(self, words: Sequence[str], lines: Iterable[str]) -> list[str]:
        """The lines of a command's answer. Raises RuntimeError if it fails."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.writelines(f"{line}\n" for line in ("\t".join(words), *lines, END))
        self._process.stdin.flush()
        answer = []
        for line in map(str.rstrip, self._process.stdout):
            if line == END:
                return answer
            if line.startswith("failed "):
                raise RuntimeError(f"Java's {words[0]} failed: {line[:3000]}")
            answer.append(line)
        raise RuntimeError(f"the Java client ended with {self._process.wait(SECONDS)} in {words[0]}")

    def close(self) -> None:
        """It ends at the end of its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(SECONDS)


@functools.lru_cache(maxsize=1)
def _process() -> _Process:
    return _Process()


def _ask(words: Sequence[str], lines: Iterable[str] = ()) -> list[str]:
    return _process().ask(words, lines)


def tool(name: str, *arguments: str) -> str:
    """What one of Kafka's console tools prints, a class of org.apache.kafka.tools.

    Raises RuntimeError if it fails.
    """
    return "\n".join(_ask(["tool", name, *arguments]))


class Connected:
    """A producer and a consumer that stay connected: one at a time. What fails is a RuntimeError."""

    def __init__(self, topic: str, settings: dict[str, str]) -> None:
        self._topic = topic
        _ask(["open", topic, *_pairs(settings)])

    def write(self, record: Record) -> None:
        _ask(["write", self._topic], [to_line(record)])

    def read(self) -> int:
        """How many records come within half a second."""
        return int(_ask(["read", self._topic])[0])

    def close(self) -> None:
        _ask(["close", self._topic])


class Delivered(NamedTuple):
    """A record of a share consumer. ``place`` is what it is acknowledged by."""

    place: str
    deliveries: int
    record: Record


class Sharing:
    """A share consumer. What fails is a RuntimeError."""

    def __init__(self, name: str, topic: str, settings: dict[str, str]) -> None:
        self._name = name
        _ask(["share-open", name, topic, *_pairs(settings)])

    def poll(self, milliseconds: int = 500) -> list[Delivered]:
        """The records of one poll, which acknowledges the last ones unless that is done explicitly."""
        parts = (line.split(" ", 2) for line in _ask(["share-poll", self._name, str(milliseconds)]) if line)
        return [Delivered(place, int(count), from_line(record)) for place, count, record in parts]

    def acknowledge(self, types: Iterable[tuple[Delivered, str]]) -> None:
        """Acknowledge records as ACCEPT, RELEASE, REJECT or RENEW."""
        _ask(["share-acknowledge", self._name], [f"{one.place} {type_}" for one, type_ in types])

    def commit(self) -> dict[int, str | None]:
        """Send the acknowledgements; the error of each partition."""
        parts = (line.split() for line in _ask(["share-commit", self._name]) if line)
        return {int(number): None if error == "-" else error for number, error in parts}

    def close(self) -> None:
        """Leave the group, unless it has; unacknowledged records are released."""
        _ask(["share-close", self._name])


def principals(rules: str, certificates: Iterable[str]) -> list[tuple[str, str | None]]:
    """The names in certificates (base64), and their principals by Kafka's ``ssl.principal.mapping.rules``."""
    lines = [line[:-1].rsplit(" -> ", 1) for line in _ask(["principals", rules], certificates)]
    return [(name, None if who == "-" else who) for name, who in lines]


def tools_missing() -> str | None:
    """Why Kafka's console tools cannot be used here."""
    return _program()[1]


def _pairs(settings: dict[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in settings.items()]


def _command() -> list[str]:
    path, reason = _program()
    assert reason is None, reason
    return [node.java(), *FLAGS, "-cp", path, "Client"]


def _java_missing() -> str | None:
    try:
        node.java()
        jars.classpath()
    except jars.UnavailableError as error:
        return str(error)
    return None


@functools.lru_cache(maxsize=1)
def _program() -> tuple[str, str | None]:
    """The class path to run it with, and why there is none."""
    reason = _java_missing()
    compiler = shutil.which("javac")
    if reason is None and compiler is None:
        reason = "there is no Java compiler here"
    if reason is not None or compiler is None:
        return "", reason
    folder = tempfile.mkdtemp(prefix="dafka-java-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    libraries = jars.classpath()
    subprocess.run([compiler, "-cp", libraries, "-d", folder, *PROGRAMS], check=True, timeout=2 * SECONDS)
    return folder + os.pathsep + libraries, None
