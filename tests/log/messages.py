"""What the log's tests put into logs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dafka.protocol.batch_writer import encode_batch

ADDRESS = b"0123456789ABCDEF0123456789ABCDEF"
EVERYTHING = 2**40


def batch(base: int, *timestamps: int, compression: str | None = None, timestamp_type: int = 0) -> bytes:
    """A record batch at offset ``base`` with one record for each timestamp."""
    records = [(time, b"key", b"value at %d" % time, ()) for time in timestamps]
    return encode_batch(records, base_offset=base, compression=compression, timestamp_type=timestamp_type)


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
