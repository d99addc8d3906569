"""kcat: librdkafka's command line client, an older one at that."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from clients.adapters.client import LARGEST, SECONDS, Client, Member
from clients.records import Record

# Lengths go before what may have any octets in it; kcat prints a length of -1 for None.
FORMAT = "%p %o %T %K %S %h\\n%k\\n%s\\n"


class Kcat(Client):
    """It cannot write timestamps, and of headers only text; tests leave them out."""

    name = "kcat"

    def __init__(self) -> None:
        near = str(Path(sys.executable).parent)
        self.path = shutil.which("kcat", path=os.pathsep.join([near, os.environ.get("PATH", "")]))

    def missing(self) -> str | None:
        return None if self.path else "there is no kcat here"

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
        settings = [f"acks={acks}", f"compression.codec={compression}", f"message.max.bytes={LARGEST}"]
        settings.append(f"enable.idempotence={str(idempotent).lower()}")
        by_place = groupby(records, key=lambda record: (record.partition, record.headers))
        for (partition, headers), run in by_place:
            options = [f"-H{name}={(value or b'').decode()}" for name, value in headers]
            data = b"".join((record.key or b"") + b"\x1d" + (record.value or b"") + b"\x1e" for record in run)
            self._run(
                [
                    "-P",
                    *("-b", servers, "-t", topic, "-p", str(partition)),
                    *("-K", "\x1d", "-D", "\x1e", "-Z"),
                    *options,
                    *(f"-X{setting}" for setting in settings),
                ],
                data,
            )

    def consume(self, servers: str, topic: str, partitions: int, *, committed: bool = False) -> list[Record]:
        isolation = "read_committed" if committed else "read_uncommitted"
        options = ["-C", "-e", "-q", "-o", "beginning", "-f", FORMAT, f"-Xisolation.level={isolation}"]
        data = self._run([*options, "-b", servers, "-t", topic], b"")
        records = []
        while data:
            record, data = _first(data)
            records.append(record)
        return records

    def member(self, servers: str, group: str, topic: str) -> Member:
        assert self.path is not None
        settings = [
            "auto.offset.reset=earliest",
            "auto.commit.interval.ms=100",
            "session.timeout.ms=6000",
            "heartbeat.interval.ms=200",
            "topic.metadata.refresh.interval.ms=1000",
            "partition.assignment.strategy=range",
        ]
        options = [f"-X{setting}" for setting in settings]
        return _Member(self.name, self.path, "-b", servers, *options, "-u", "-f", "%p %o %T %k %s\\n",
                       "-G", group, topic)  # fmt: skip

    def _run(self, arguments: Sequence[str], data: bytes) -> bytes:
        assert self.path is not None
        answer = subprocess.run([self.path, *arguments], input=data, capture_output=True, timeout=SECONDS)
        if answer.returncode:
            raise RuntimeError(f"kcat: {answer.stderr.decode(errors='replace')}")
        return answer.stdout


class _Member(Member):
    """kcat prints the records in its own format, and says on standard error what it was assigned."""

    def take(self, line: str) -> None:
        partition, offset, timestamp, key, value = line.split(" ")
        self.records.append(
            Record(value.encode(), key.encode(), (), int(timestamp), int(partition), int(offset))
        )

    def take_error(self, line: str) -> None:
        if "rebalanced" in line and "assigned" in line:
            self.assigned = frozenset(map(int, re.findall(r"\[(\d+)\]", line)))

    def close(self) -> None:
        self._process.terminate()
        super().close()


def _first(data: bytes) -> tuple[Record, bytes]:
    head, _, rest = data.partition(b"\n")
    partition, offset, timestamp, key_length, value_length, *headers = head.decode().split(" ")
    key, rest = _take(rest, int(key_length))
    value, rest = _take(rest, int(value_length))
    pairs = (pair.split("=") for pair in (headers[0].split(",") if headers and headers[0] else ()))
    return (
        Record(
            value,
            key,
            tuple((name, text.encode()) for name, text in pairs),
            int(timestamp),
            int(partition),
            int(offset),
        ),
        rest,
    )


def _take(data: bytes, length: int) -> tuple[bytes | None, bytes]:
    end = max(length, 0)
    assert data[end : end + 1] == b"\n", f"kcat printed something else: {data[: end + 20]!r}"
    return (None if length < 0 else data[:end]), data[end + 1 :]
