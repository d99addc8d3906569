"""What the log's tests put into logs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crc32c import crc32c

from dafka.log import Log, LogPartition
from dafka.log.limits import FILE_BYTES
from dafka.log.verify import verify
from dafka.protocol.batch import CRC_END, CRC_START, HEADER, HEADER_OCTETS, read_header
from dafka.protocol.batch_writer import encode_batch

ADDRESS = b"0123456789ABCDEF0123456789ABCDEF"
EVERYTHING = 2**40


def batch(base: int, *timestamps: int, compression: str | None = None, timestamp_type: int = 0) -> bytes:
    """A record batch at offset ``base`` with one record for each timestamp."""
    records = [(time, b"key", b"value at %d" % time, ()) for time in timestamps]
    return encode_batch(records, base_offset=base, compression=compression, timestamp_type=timestamp_type)


def with_largest_timestamp(batch: bytes, time: int) -> bytes:
    """The batch with ``time`` as the largest timestamp in its header, whatever its records say."""
    head = HEADER.pack(*read_header(batch)._replace(max_timestamp=time))
    body = batch[HEADER_OCTETS:]
    crc = crc32c(body, crc32c(head[CRC_END:]))
    return head[:CRC_START] + crc.to_bytes(4, "big") + head[CRC_END:] + body


def numbered(first: int, count: int, size: int = 0) -> list[bytes]:
    """Raw messages that say their sequences."""
    return [b"message %d" % sequence + bytes(size) for sequence in range(first, first + count)]


@contextmanager
def database(folder: str | Path) -> Iterator[sqlite3.Connection]:
    """The database of a closed log, to do harm in it."""
    connection = sqlite3.connect(Path(folder) / "cache.db")
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


def chunk_rows(folder: str | Path) -> list[tuple[int, bytes, bytes]]:
    """(row number, key, value) of all chunks, in the order of their keys."""
    with database(folder) as rows:
        select = "SELECT rowid, key, value FROM Cache WHERE raw = 1 ORDER BY key"
        return [row for row in rows.execute(select) if isinstance(row[1], bytes) and row[1][:1] == b"c"]


def files(folder: Path) -> list[Path]:
    """The files of values, oldest first."""
    # Those of one tick of the system's clock have the same time, and names that count up.
    return sorted((folder / "values").glob("*"), key=lambda path: (path.stat().st_mtime_ns, path.name))


def large(sequence: int) -> list[bytes]:
    """A raw message that is stored as a file."""
    return numbered(sequence, 1, FILE_BYTES)


def everything(log: Log, partition: LogPartition) -> list[bytes]:
    """All messages of a partition."""
    return log.read(partition, partition.first_sequence, count=EVERYTHING, max_bytes=EVERYTHING)[1]


def damages(folder: Path) -> list[tuple[str, str]]:
    """The damages that verifying the folder finds."""
    *_, seen = verify(folder)
    return seen.damages
