"""What the tests write and read, whatever the client."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """A record with the partition it belongs in; ``offset`` is -1 for one that is not written yet."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int = 1_700_000_000_000
    partition: int = 0
    offset: int = -1


def to_line(record: Record) -> str:
    """For clients that are other programs: six fields with spaces between them."""
    headers = ",".join(f"{_encode(name.encode())}={_encode(value)}" for name, value in record.headers)
    return " ".join(
        map(
            str,
            (
                record.partition,
                record.offset,
                record.timestamp,
                _encode(record.key),
                _encode(record.value),
                headers or ".",
            ),
        )
    )


def from_line(line: str) -> Record:
    partition, offset, timestamp, key, value, headers = line.split()
    pairs = (pair.split("=") for pair in headers.split(",") if pair != ".")
    return Record(
        _decode(value),
        _decode(key),
        tuple(((_decode(name) or b"").decode(), _decode(value)) for name, value in pairs),
        int(timestamp),
        int(partition),
        int(offset),
    )


def written(records: Iterable[Record]) -> list[Record]:
    """The records with the offsets they get in an empty topic, in the order of partitions and offsets."""
    ends: dict[int, int] = {}
    numbered = []
    for record in records:
        offset = ends.setdefault(record.partition, 0)
        ends[record.partition] += 1
        numbered.append(record._replace(offset=offset))
    return in_order(numbered)


def in_order(records: Iterable[Record]) -> list[Record]:
    return sorted(records, key=lambda record: (record.partition, record.offset))


def _encode(data: bytes | None) -> str:
    return "-" if data is None else base64.urlsafe_b64encode(data).decode().rstrip("=") or "_"


def _decode(text: str) -> bytes | None:
    if text == "-":
        return None
    return b"" if text == "_" else base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
