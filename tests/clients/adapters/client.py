"""What a Kafka client does, in words that all of them share; each adapter says it in its client's own."""

from __future__ import annotations

import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import forking
from clients.records import Record, from_line

SECONDS = 100.0  # until a test gives up
LARGEST = 16 << 20  # bytes of a request that clients are set up for
MEMBER = Path(__file__).parent.parent / "member.py"


class Transaction(NamedTuple):
    """Records of one transaction and how it ends."""

    records: Sequence[Record]
    commit: bool


class Client(ABC):
    """A client; its methods block until they are done and raise if the broker refuses."""

    name: str

    def missing(self) -> str | None:
        """Why it cannot be used here."""
        return None

    @abstractmethod
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
        """Send records and wait until they are acknowledged (``acks`` is "0", "1" or "all")."""

    @abstractmethod
    def consume(self, servers: str, topic: str, partitions: int, *, committed: bool = False) -> list[Record]:
        """All records of a topic, in any order of partitions; ``committed`` leaves out aborted ones."""

    @abstractmethod
    def member(self, servers: str, group: str, topic: str) -> Member:
        """A member of a group, in a process of its own: range assignment, from the start, commits often."""


class TransactionalClient(Client):
    """A client that can also write in transactions."""

    @abstractmethod
    def transact(
        self, servers: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]
    ) -> None:
        """Write and end transactions one after the other, with one producer."""


class Member:
    """A group member in another process, which prints ``assigned 0 2`` and ``record`` lines."""

    def __init__(self, name: str, *command: str) -> None:
        self.name = name
        self.records: list[Record] = []
        self.assigned: frozenset[int] | None = None  # None: not yet
        self._errors: list[str] = []
        self._process = forking.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @classmethod
    def python(cls, client: str, servers: str, group: str, topic: str) -> Member:
        """A member with one of the Python clients."""
        return cls(client, sys.executable, str(MEMBER), client, servers, group, topic)

    def close(self) -> None:
        """Let it leave the group in an orderly way: its program ends at the end of its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(SECONDS)
        for reader in self._readers:
            reader.join(SECONDS)

    def kill(self) -> None:
        """With SIGKILL."""
        self._process.kill()
        self._process.wait(SECONDS)
        for reader in self._readers:
            reader.join(SECONDS)

    def __repr__(self) -> str:
        state = f"exit {self._process.poll()}, assigned {self.assigned}, {len(self.records)} records"
        return f"<{self.name}: {state}; {' '.join(self._errors[-5:])}>"

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.take(line.strip())
        self._process.stdout.close()

    def take(self, line: str) -> None:
        kind, _, rest = line.partition(" ")
        if kind == "assigned":
            self.assigned = frozenset(map(int, rest.split()))
        elif kind == "record":
            self.records.append(from_line(rest))

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors.append(line.strip())
            self.take_error(line.strip())
        self._process.stderr.close()

    def take_error(self, line: str) -> None:
        """For programs that report there."""
